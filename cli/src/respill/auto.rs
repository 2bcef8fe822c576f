//! `respill auto`: each slot in its fastest accepted home, most often the stack.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use lanework_race::pairing::Plan as RacePlan;
use lanework_race::verdict::Verdict;
use lanework_respill::Analysis;
use lanework_respill::auto::{Found, Judge, Judged, Options, Refused, Tried, search};
use lanework_respill::case::Case;
use lanework_respill::homes::Bank;
use lanework_respill::measure::{Job, Role, Variant, unchanged, variants};
use lanework_respill::names;
use lanework_respill::plan::Plan;
use lanework_respill::rewrite::{self, rewrite};
use lanework_respill::validate::{self, validate};
use lanework_spill::race::race;
use lanework_spill::settle::of_judge;
use lanework_spill::{Homes, needs, of_program, unit};
use lanework_study::{Failure, Outcome, Spill};
use serde_json::json;

use super::measure::{case_text, counted, parsed, source_of, wished, worked_out};
use super::timing_args::AutoArgs;
use crate::files::{Access, Sink, check_distinct};
use crate::profile::Profile;
use crate::ui::Session;

/// Checks with `validate`, races in the laboratory.
struct Here<'a> {
    analysis: &'a Analysis,
    case: &'a Case,
    text: &'a str,
    inputs: u64,
    plan: RacePlan,
    progress: indicatif::ProgressBar,
    /// Plans that were checked, by their homes.
    judged: Vec<(Plan, Result<(), Refused>)>,
}

impl Here<'_> {
    fn variant(&self, name: &str, plan: &Plan) -> Result<Variant, Failure> {
        if plan.homes.is_empty() {
            let [stack, _] = unchanged(self.analysis);
            return Ok(stack);
        }
        let made = variants(self.analysis, name, plan, false).map_err(Failure::input)?;
        made.into_iter()
            .find(|v| v.role == Role::Home)
            .ok_or_else(|| Failure::input("a plan gave no rewritten text"))
    }
}

impl Judge for Here<'_> {
    type Error = Failure;

    fn check(&mut self, plan: &Plan) -> Result<Result<(), Refused>, Failure> {
        if let Some((_, said)) = self.judged.iter().find(|(known, _)| known.homes == plan.homes) {
            return Ok(said.clone());
        }
        self.progress.set_message("checking");
        let made = rewrite(self.analysis, plan, rewrite::Options::default()).map_err(Failure::input)?;
        let name = format!("{} as rewritten", self.analysis.program.file);
        let program = match self.analysis.program.again(&name, &*made.text) {
            Ok(program) => program,
            Err(e) => {
                let slots = e.line.map(|line| made.moved_at(self.analysis, plan, line)).unwrap_or_default();
                if slots.is_empty() {
                    return Err(of_program(&e));
                }
                let said = Refused { why: e.to_string(), slots };
                self.judged.push((plan.clone(), Err(said.clone())));
                return Ok(Err(said));
            }
        };
        let options = validate::Options { inputs: self.inputs, ..validate::Options::default() };
        let said = match validate(self.analysis, &program, std::slice::from_ref(self.case), &options) {
            Ok(_) => Ok(()),
            Err(validate::Failure::Refused(refused)) => {
                Err(Refused { why: refused.to_string(), slots: refused.stay() })
            }
            Err(e) => return Err(of_judge(&self.analysis.program.file, &e)),
        };
        self.judged.push((plan.clone(), said.clone()));
        Ok(said)
    }

    fn race(&mut self, kept: &Plan, challengers: &[&Plan]) -> Result<Vec<Judged>, Failure> {
        self.progress.set_message("racing");
        let mut raced = vec![self.variant("kept", kept)?];
        for (n, plan) in challengers.iter().enumerate() {
            raced.push(self.variant(&format!("plan{n}"), plan)?);
        }
        let job = Job {
            subject: format!("spill/{}", self.case.measured()),
            file: self.analysis.program.file.clone(),
            case: self.text.to_owned(),
            input: 0,
            variants: raced,
        };
        let outcome = race(&job, self.inputs.min(100), &self.plan, |_, _| self.progress.inc(1))?;
        let judged = |n: usize| {
            let row = outcome.results.iter().find(|row| row.variant == format!("plan{n}"));
            row.map_or(Judged { ratio: 1.0, faster: false }, |row| Judged {
                ratio: row.ratio,
                faster: row.verdict == Verdict::Faster,
            })
        };
        Ok((0..challengers.len()).map(judged).collect())
    }
}

pub(super) fn run(session: &Session, args: &AutoArgs) -> Result<Outcome, Failure> {
    let path = args.output.as_deref();
    if session.json && path == Some(Path::new("-")) {
        return Err(Failure::input("--json puts the report on standard output")
            .help("name a file for the text with -o"));
    }
    check_distinct([args.source.file.as_path()].into_iter().chain(args.case.case.as_deref()), path)?;
    let sink = path.map(|path| Sink::create(path, Access::Public, args.force)).transpose()?;
    let text = case_text(&args.case)?;
    let case = parsed(&args.case, &text)?;
    worked_out(args.slots.policy)?;
    let source = source_of(&args.source, &case)?;
    let analysis = &source.analysis;
    let counts = counted(&source, &case)?;
    let features = session.context.cpu.features();
    let banks: Vec<Bank> = if args.homes.is_empty() { Bank::ALL.to_vec() } else { args.homes.clone() };
    let banks: Vec<Bank> = banks.into_iter().filter(|b| features.includes(needs(*b))).collect();
    if banks.is_empty() {
        return Err(Failure::unavailable("no home named with --home exists on this processor")
            .help("leave --home out to search all"));
    }
    let mut wish = wished(&source, &args.slots, &Homes(Vec::new()), &counts)?;
    wish.banks.clear();
    let options = Options { banks, wish, slots: args.one_by_one };
    let races = lanework_study::races::plan(&args.effort, args.one_by_one + 2);
    let mut judge = Here {
        analysis,
        case: &case,
        text: &text,
        inputs: args.inputs,
        progress: session.progress(u64::from(races.launches) * (args.one_by_one as u64 + 2), "searching"),
        plan: races,
        judged: Vec::new(),
    };
    let found = search(analysis, &options, &mut judge)?;
    judge.progress.finish_and_clear();
    let homes = names::homes(analysis, &found.plan);
    let saved = if args.keep {
        let spill = Spill { homes: homes.clone(), ratio: found.ratio };
        let key = names::key(analysis, unit(analysis, case.measured())?);
        Some(Profile::keep(&session.context, BTreeMap::from([(key, spill)]))?)
    } else {
        None
    };
    if let Some(sink) = sink {
        let made = rewrite(analysis, &found.plan, rewrite::Options::default()).map_err(Failure::input)?;
        sink.put(made.text.as_bytes())?;
    }
    if session.json {
        let object = json!({
            "file": analysis.program.file, "function": case.measured(), "homes": homes, "ratio": found.ratio,
            "trials": found.trials, "profile": saved.map(|p| p.display().to_string()),
        });
        println!("{object}");
    } else if path != Some(Path::new("-")) {
        print!("{}", told(&found, &homes));
        if let Some(path) = saved {
            println!("profile: {}", lanework_study::text::shown(&path));
        }
    }
    Ok(Outcome::Yes)
}

/// What was tried and what was found, as text.
fn told(found: &Found, homes: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    for trial in &found.trials {
        let said = match &trial.outcome {
            Tried::Nothing => "nothing can move".to_owned(),
            // It begins with the word and the reason's name.
            Tried::Refused(why) => why.lines().next().unwrap_or_default().to_owned(),
            Tried::NotFaster(ratio) => format!("×{ratio:.4}, not faster beyond doubt"),
            Tried::Faster(ratio) => format!("×{ratio:.4}, faster"),
            Tried::NotAgain(ratio) => format!("faster once, ×{ratio:.4} when raced again"),
        };
        out += &format!("{}, {} moved: {said}\n", trial.what, trial.moved);
    }
    if homes.is_empty() {
        out += "all values stay on the stack: no accepted home is faster here\n";
    } else {
        let kinds: BTreeSet<&String> = homes.values().collect();
        let registers = names::counted(kinds.len() as u64, "register");
        let slots = names::counted(homes.len() as u64, "slot");
        out += &format!("{slots} moved, to {registers}: ×{:.4}\n", found.ratio);
        for (slot, home) in homes {
            out += &format!("  {slot} in {home}\n");
        }
    }
    out
}
