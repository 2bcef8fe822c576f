//! `respill measure`: a function with its values on the stack and in each home, raced in pairs.
#![forbid(unsafe_code)]

use lanework_cpu::Features;
use lanework_race::clock::Monotonic;
use lanework_race::machine::Machine;
use lanework_race::record::Record;
use lanework_race::table;
use lanework_race::verdict::Verdict;
use lanework_respill::case::Case;
use lanework_respill::counts::{CountError, Counts, counts};
use lanework_respill::homes::Bank;
use lanework_respill::load::{Externals, LoadError, Loaded};
use lanework_respill::measure::{Job, unchanged, variants};
use lanework_respill::plan::{Plan, Wish};
use lanework_respill::validate;
use lanework_spill::finding::{Finding, Part, findings};
use lanework_spill::race::{comparisons, race};
use lanework_spill::settle::{Settled, settle};
use lanework_spill::{Homes, needs};
use lanework_study::{Failure, Outcome, races};
use serde_json::json;

use super::Source;
use super::args::SourceArgs;
use super::args::{PolicyName, WishArgs};
use super::rewrite::nothing_moves;
use super::selection::wish;
use super::timing_args::{CaseArgs, MeasureArgs, SlotsArgs};
use crate::bench;
use crate::files;
use crate::ui::Session;

/// The text of a case.
pub(super) fn case_text(args: &CaseArgs) -> Result<String, Failure> {
    match (&args.case, &args.call) {
        (Some(path), _) => Ok(files::read_text(path, 1 << 20)?.to_string()),
        (None, Some(text)) => Ok(text.clone()),
        (None, None) => {
            Err(Failure::input("nothing to call").help("name a call with --case FILE or --call TEXT"))
        }
    }
}

/// The case in the text.
pub(super) fn parsed(args: &CaseArgs, text: &str) -> Result<Case, Failure> {
    Case::parse(text).map_err(|e| match &args.case {
        Some(path) => Failure::file(path, e),
        None => Failure::input(format!("--call: {e}")),
    })
}

/// The source, narrowed to the measured function and what it calls if no function was named.
pub(super) fn source_of(args: &SourceArgs, case: &Case) -> Result<Source, Failure> {
    let mut args = args.clone();
    if args.functions.is_empty() {
        args.functions.push(case.measured().to_owned());
    }
    Source::load(&args)
}

/// How often each instruction runs in the measured call.
pub(super) fn counted(source: &Source, case: &Case) -> Result<Counts, Failure> {
    let loaded = Loaded::new(&source.analysis.program, &Externals::default()).map_err(|e| match e {
        LoadError::Unavailable(_) | LoadError::Memory(_) => Failure::unavailable(e),
        _ => Failure::input(format!("{}: {e}", source.analysis.program.file)),
    })?;
    counts(&loaded, case, 0).map_err(|e| match e {
        CountError::Unavailable(_) => Failure::unavailable(e),
        CountError::Missing(_) => Failure::input(e),
        _ => {
            let said = e.told(&loaded, &source.analysis.program);
            let failure = Failure::input(format!("{}: {said}", case.measured()));
            if e.is_late() { failure.help("give the call a smaller count") } else { failure }
        }
    })
}

/// Refuses `--policy auto`: a search or a measurement does not use what was kept.
pub(super) fn worked_out(policy: PolicyName) -> Result<(), Failure> {
    if policy == PolicyName::Auto {
        return Err(Failure::input(
            "--policy auto is for rewrite and validate, which use what auto has kept",
        )
        .help("choose another --policy"));
    }
    Ok(())
}

/// What the options ask for, including slots that something else may touch: validation decides whether they can move.
pub(super) fn wished(
    source: &Source,
    slots: &SlotsArgs,
    homes: &Homes,
    counts: &Counts,
) -> Result<Wish, Failure> {
    let args = WishArgs {
        home: homes.clone(),
        slots: slots.slots.clone(),
        policy: slots.policy,
        moves_only: slots.moves_only,
        naive: true,
    };
    let mut wish = wish(source, &args)?;
    wish.counts = Some(counts.by_op.clone());
    Ok(wish)
}

/// The accepted plan that moves what can be moved into these homes.
fn accepted(
    features: Features,
    source: &Source,
    wish: &Wish,
    case: &Case,
    inputs: u64,
) -> Result<Plan, Failure> {
    let analysis = &source.analysis;
    let options = validate::Options { inputs, ..validate::Options::default() };
    match settle(features, analysis, wish, std::slice::from_ref(case), &options)? {
        Settled::Moved(found) => Ok(found.plan),
        Settled::Nothing { plan, dropped } => Err(nothing_moves(source, &plan, &dropped, None)),
    }
}

/// A variant's name for homes such as `mm:4,xmm`.
pub(super) fn name(homes: &Homes) -> String {
    let one = |&(bank, most): &(Bank, Option<usize>)| match most {
        Some(most) => format!("{bank}:{most}"),
        None => bank.to_string(),
    };
    homes.0.iter().map(one).collect::<Vec<_>>().join("/")
}

pub(super) fn run(session: &Session, args: &MeasureArgs) -> Result<Outcome, Failure> {
    bench::one_form(session, &args.output)?;
    bench::may_save(&args.output)?;
    let read = [args.source.file.as_path()].into_iter().chain(args.case.case.as_deref());
    files::check_distinct(read, [])?;
    let text = case_text(&args.case)?;
    let case = parsed(&args.case, &text)?;
    worked_out(args.slots.policy)?;
    let source = source_of(&args.source, &case)?;
    let counts = counted(&source, &case)?;
    let features = session.context.cpu.features();
    let all = || Bank::ALL.into_iter().filter(|b| features.includes(needs(*b)));
    let homes: Vec<Homes> = if args.homes.is_empty() {
        all().map(|b| Homes(vec![(b, None)])).collect()
    } else {
        args.homes.clone()
    };
    if let Some((bank, _)) = homes.iter().flat_map(|h| &h.0).find(|(b, _)| !features.includes(needs(*b))) {
        return Err(Failure::unavailable(format!("no {bank} homes on this processor"))
            .help("leave them out of --home"));
    }
    let mut raced = unchanged(&source.analysis).to_vec();
    if args.no_controls {
        raced.truncate(1);
    }
    for home in &homes {
        let wish = wished(&source, &args.slots, home, &counts)?;
        let plan = accepted(features, &source, &wish, &case, args.inputs)?;
        let made = variants(&source.analysis, &name(home), &plan, !args.no_controls);
        raced.extend(made.map_err(Failure::input)?);
    }
    let job = Job {
        subject: format!("spill/{}", case.measured()),
        file: source.analysis.program.file.clone(),
        case: text,
        input: 0,
        variants: raced,
    };
    let mut record = record(session, &job, args)?;
    let findings = findings(&job, &record.results);
    record.findings = Some(json!(findings));
    bench::save_and_show(session, &mut record, &args.output, |record| {
        if session.json {
            print!("{}", record.to_json().map_err(Failure::input)?);
        } else if args.output.csv {
            print!("{}", table::csv(&record.results));
        } else {
            print!("{}", table::render(record, session.style));
            println!();
            print!("{}", shown(&findings));
        }
        Ok(())
    })
}

fn record(session: &Session, job: &Job, args: &MeasureArgs) -> Result<Record, Failure> {
    let clock = Monotonic::new();
    let name = format!("respill-{}", job.subject.rsplit('/').next().unwrap_or("measure"));
    let mut record = Record::new(&name, &session.command, Machine::inspect(&clock, Vec::new()));
    record.plan = Some(races::plan(&args.effort, 1));
    let jobs = comparisons(job);
    let bar = session.progress(u64::from(args.effort.launches) * jobs.len() as u64, "racing");
    let count: usize = jobs.iter().map(|job| job.variants.len() - 1).sum();
    for job in &jobs {
        // Every comparison gets the same time.
        let mut plan = races::plan(&args.effort, count);
        plan.budget_ns *= job.variants.len() as u64 - 1;
        let mut outcome = race(job, args.inputs, &plan, |_, _| bar.inc(1))?;
        for row in &mut outcome.results {
            if let Some(v) = job.variants.iter().find(|v| v.name == row.variant) {
                row.extra.insert("role".into(), json!(v.role));
                row.extra.insert("code_bytes".into(), json!(v.code_bytes));
                row.extra.insert("slots".into(), json!(v.slots));
                row.extra.insert("stack_bytes".into(), json!(v.stack_bytes));
            }
        }
        record.add(outcome);
    }
    bar.finish_and_clear();
    record.machine.finish(&clock);
    Ok(record)
}

/// The findings as a table.
pub(super) fn shown(findings: &[Finding]) -> String {
    // With few samples, an interval may be meaninglessly wide.
    let percent = |x: f64| match 100.0 * x + 0.0 {
        far if !(-99.0..1000.0).contains(&far) => "?".to_owned(),
        x => format!("{x:+.2}"),
    };
    let cell = |part: Option<Part>| match part {
        Some(p) => format!("{} {}..{} {}", percent(p.more), percent(p.low), percent(p.high), p.verdict),
        None => String::new(),
    };
    let mut out = format!(
        "{:<16}{:>6}{:>8}{:>7}  {:<33} {:<33} {:<33} wiping, %\n",
        "home", "slots", "stack B", "code B", "time against stack, %", "home alone, %", "layout alone, %"
    );
    for f in findings {
        out += &format!(
            "{:<16}{:>6}{:>8}{:>+7}  {:<33} {:<33} {:<33} {}\n",
            f.home,
            f.slots,
            f.stack_bytes,
            f.code_bytes,
            cell(Some(f.whole)),
            cell(f.home_alone),
            cell(f.layout_alone),
            cell(f.wiping)
        );
    }
    let best = findings
        .iter()
        .filter(|f| f.whole.verdict == Verdict::Faster)
        .min_by(|a, b| a.whole.more.total_cmp(&b.whole.more));
    out += &match best {
        Some(f) => match f.home_alone {
            Some(p) if p.verdict != Verdict::Faster => format!(
                "{} is faster by {} %, but the reason may be the layout rather than the home\n",
                f.home,
                percent(-f.whole.more)
            ),
            _ => format!("{} is faster by {} %\n", f.home, percent(-f.whole.more)),
        },
        None if findings.iter().any(|f| f.whole.verdict == Verdict::Void) => {
            "void: an A/A control differs from itself; measure again\n".to_owned()
        }
        None if findings.iter().any(|f| f.whole.verdict == Verdict::CannotTell) => {
            "no home is faster beyond doubt: leave the values on the stack\n".to_owned()
        }
        None => "no home is faster: leave the values on the stack\n".to_owned(),
    };
    out
}
