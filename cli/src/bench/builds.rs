//! An older build of this command against this one, process by process: `lanework bench --old FILE`, and suspects of
//! `lanework history check`.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use lanework_race::binaries::{self, Admitted, Contender};
use lanework_race::clock::Monotonic;
use lanework_race::launch::LaunchError;
use lanework_race::machine::Machine;
use lanework_race::pairing::NotHere;
use lanework_race::race;
use lanework_race::record::Record;
use lanework_race::stats::least_pairs;
use lanework_race::subject::Subject;
use lanework_study::Failure;
use lanework_study::races::{Effort, peer_builds, plan};

use crate::ui::Session;

/// Both builds, and what their gates have admitted so far.
pub(crate) struct Builds<'a> {
    session: &'a Session,
    old: &'a Path,
    /// What the older one says of itself.
    version: String,
    /// By sets of subjects that share a gate.
    admitted: BTreeMap<String, [Admitted; 2]>,
}

impl<'a> Builds<'a> {
    /// Refuses a program that is not `lanework` early: every race against it would fail.
    pub(crate) fn new(session: &'a Session, old: &'a Path) -> Result<Self, Failure> {
        let answer = Command::new(old).arg("--version").stdin(Stdio::null()).output();
        let help = "name an older `lanework` executable with --old";
        let answer = answer.map_err(|e| Failure::file(old, format!("cannot be run: {e}")).help(help))?;
        if !answer.status.success() || !answer.stdout.starts_with(b"lanework ") {
            return Err(
                Failure::file(old, "not a Lanework binary: --version does not answer as one").help(help)
            );
        }
        let version = String::from_utf8_lossy(&answer.stdout).lines().next().unwrap_or_default().to_owned();
        Ok(Self { session, old, version, admitted: BTreeMap::new() })
    }

    /// Whether the older build has this variant of a subject, passes its checks and times it.
    fn older_knows(&self, subject: &str, variant: &str, effort: &Effort) -> bool {
        let older = Contender::new(format!("older {variant}"), self.old, self.arguments(subject, variant));
        older.admit(&plan(effort, 1)).is_ok()
    }

    /// The variant is its own baseline, which a worker always times.
    fn arguments(&self, subject: &str, variant: &str) -> Vec<String> {
        let mut arguments = self.session.arguments();
        arguments.extend(["__race", subject, "--baseline", variant].map(str::to_owned));
        arguments
    }

    /// Races one variant of a subject. Above 1, this build is faster.
    pub(crate) fn race(
        &mut self,
        subject: &str,
        variant: &str,
        effort: &Effort,
    ) -> Result<race::Outcome, LaunchError> {
        let names = [format!("older {variant}"), variant.to_owned()];
        let arguments = self.arguments(subject, variant);
        let plan = plan(effort, 1);
        let set = subject.rsplit_once('/').map_or(subject, |(set, _)| set);
        let mut gate = Vec::new();
        if !self.admitted.contains_key(set) {
            let [old, new] = &names;
            let new = Contender::current(new, arguments.clone())
                .map_err(|e| LaunchError::Failed { launch: 0, why: e.to_string() })?;
            let old = Contender::new(old, self.old, arguments.clone());
            let both = [old.admit(&plan)?, new.admit(&plan)?];
            gate = both[1].gate().to_vec();
            self.admitted.insert(set.to_owned(), both);
        }
        let [old, new] = &self.admitted[set];
        let [old, new] = [(old, &names[0]), (new, &names[1])].map(|(b, name)| b.at(name, arguments.clone()));
        let rounds = 2 * least_pairs(plan.rules.alpha);
        let outcome = binaries::race_all(subject, &old, &[new], rounds, &plan)?;
        Ok(race::Outcome { gate, ..outcome })
    }
}

/// The variants of a subject that can run here; why others cannot goes into the record.
fn here(subject: &Subject, only: &[String], record: &mut Record) -> Vec<String> {
    let all = std::iter::once(subject.baseline()).chain(subject.challengers());
    let mut here = Vec::new();
    for variant in all.filter(|v| only.is_empty() || only.iter().any(|o| o == v.name())) {
        match variant.prepare() {
            Ok(_) => here.push(variant.name().to_owned()),
            Err(e) => record.not_here.push(NotHere {
                subject: subject.path().to_owned(),
                variant: variant.name().to_owned(),
                why: e.to_string(),
            }),
        }
    }
    here
}

/// Races these variants of the subjects, or all, against the same of the older build.
pub(super) fn race_all(
    session: &Session,
    name: &str,
    old: &Path,
    subjects: &[Subject],
    only: &[String],
    effort: &Effort,
) -> Result<Record, Failure> {
    let mut builds = Builds::new(session, old)?;
    let (clock, start, asked) = (Monotonic::new(), Instant::now(), effort.seconds);
    let mut record = Record::new(name, &session.command, Machine::inspect(&clock, peer_builds(session)));
    let races: Vec<(&Subject, String)> = subjects
        .iter()
        .flat_map(|s| here(s, only, &mut record).into_iter().map(move |variant| (s, variant)))
        .collect();
    let effort = Effort { seconds: effort.seconds / races.len().max(1) as f64, ..effort.clone() };
    record.plan = Some(plan(&effort, 1));
    record.remarks.push(format!("the older build: {}", builds.version));
    let bar = session.progress(races.len() as u64, "racing");
    for (subject, variant) in races {
        bar.set_message(subject.path().to_owned());
        match builds.race(subject.path(), &variant, &effort) {
            Ok(outcome) => record.add(outcome),
            Err(e @ LaunchError::Refused { .. }) => {
                return Err(Failure::refused(e).help("`lanework check` of that build shows what fails"));
            }
            Err(e) if builds.older_knows(subject.path(), &variant, &effort) => {
                return Err(
                    Failure::unavailable(e).help("`lanework check` shows whether this build is right")
                );
            }
            Err(e) => {
                let (subject, why) = (subject.path().to_owned(), e.to_string());
                record.not_here.push(NotHere { subject, variant, why });
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let took = start.elapsed().as_secs_f64();
    // The least number of processes may take longer than was asked for.
    if took > 1.5 * asked && !record.results.is_empty() {
        record.remarks.push(format!(
            "the races took {took:.0} s, more than --seconds {asked}: two builds are raced in processes, and these were the fewest"
        ));
    }
    record.machine.finish(&clock);
    Ok(record)
}
