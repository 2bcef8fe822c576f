//! Building, admitting and racing.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as MapEntry;
use std::path::{Path, PathBuf};
use std::time::Instant;

use lanework_race::binaries::{Admitted, Contender, race_all};
use lanework_race::clock::Monotonic;
use lanework_race::gate::GateRow;
use lanework_race::launch::{LaunchError, Worker};
use lanework_race::machine::{Build, Machine};
use lanework_race::pairing::{NotHere, Plan};
use lanework_race::record::{Record, ResultRow};
use lanework_race::subject::Subject;
use lanework_race::table::folded;
use lanework_study::{CORRECT, Failure, Session};
use serde::Serialize;

use super::ENTRY;
use super::build::{self, Tree};
use super::question::{Flags, Mode, Question};
use super::store;

/// A build and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Built {
    pub(super) name: String,
    pub(super) what: String,
    pub(super) made_by: String,
    /// The executable's size; `None` where there is none.
    pub(super) kib: Option<u64>,
}

/// All that was found. A row's `extra` names its build and backend.
pub(super) struct Measured {
    pub(super) record: Record,
    pub(super) builds: Vec<Built>,
}

/// The name in a record of a backend in one of the builds.
fn label(backend: &str, build: &str) -> String {
    format!("{backend} at {build}")
}

/// The arguments for a worker of any build, to time one backend alone.
fn orders(subject: &str, backend: &str) -> Vec<String> {
    ["__race", subject, "--baseline", backend].map(str::to_owned).to_vec()
}

fn refused(e: LaunchError) -> Failure {
    match e {
        LaunchError::Refused { .. } => Failure::refused(e),
        _ => Failure::unavailable(e),
    }
}

/// Whether two builds' gates checked the same, and found the same.
fn same_answers(name: &str, baseline: &[GateRow], other: &[GateRow]) -> Result<(), String> {
    let key = |r: &GateRow| (r.what.clone(), r.backend.clone(), r.passed, r.failed, r.skipped);
    let [a, b] = [baseline, other].map(|rows| rows.iter().map(key).collect::<Vec<_>>());
    if a.is_empty() || b.is_empty() {
        return Err(format!("{name}: nothing was checked"));
    }
    let of_either = a.iter().filter(|row| !b.contains(row)).chain(b.iter().filter(|row| !a.contains(row)));
    match of_either.map(|row| format!("{} ({})", row.0, row.1)).next() {
        None => Ok(()),
        Some(row) => {
            Err(format!("{name}: its checks are not those of the baseline, or end otherwise: {row}"))
        }
    }
}

/// The backends of a subject that the mode selects: those that can run here, and why others cannot.
fn backends(subject: &Subject, mode: &Mode) -> (Vec<String>, Vec<NotHere>) {
    let primitive = subject.path().split('/').next().unwrap_or_default();
    let known: Vec<&str> = lanework_suite::primitives()
        .into_iter()
        .filter(|(name, _)| *name == primitive)
        .flat_map(|(_, names)| names)
        .collect();
    let mut here = Vec::new();
    let mut absent = Vec::new();
    for variant in std::iter::once(subject.baseline()).chain(subject.challengers()) {
        let name = variant.name();
        if !known.contains(&name) || !mode.backends.iter().any(|want| want == "*" || want == name) {
            continue;
        }
        match variant.prepare() {
            Ok(_) => here.push(name.to_owned()),
            Err(e) => absent.push(NotHere {
                subject: subject.path().to_owned(),
                variant: name.to_owned(),
                why: e.to_string(),
            }),
        }
    }
    (here, absent)
}

/// What to do with builds, and whether to race them.
pub(super) struct Wanted<'a> {
    /// The folder that keeps them, if given.
    pub(super) folder: Option<&'a Path>,
    /// They are there already.
    pub(super) as_built: bool,
    /// Nothing is timed.
    pub(super) build_only: bool,
}

/// This command, if it was built with the baseline's flags. The quick form races it as it is, which saves a build.
fn own(flags: &Flags) -> Option<PathBuf> {
    store::is_of(flags, &Build::ours()).ok()?;
    std::env::current_exe().ok()
}

/// What a build that was not made is not raced at.
const EVERY: &str = "every subject";

/// Builds' files by their names.
type Executables = Vec<(String, PathBuf)>;

/// Makes the builds, or finds those that are kept: executables, and a row for each requested build.
fn make(
    session: &Session,
    asked: &Question,
    mode: &Mode,
    wanted: &Wanted<'_>,
    full: bool,
    record: &mut Record,
) -> Result<(Executables, Vec<Built>), Failure> {
    let folder = build::folder(wanted.folder).map_err(Failure::unavailable)?;
    let tree =
        if wanted.as_built { None } else { Some(Tree::find(folder.clone()).map_err(Failure::unavailable)?) };
    let training: Vec<Vec<String>> = asked
        .training
        .iter()
        .map(|subject| {
            let seconds = asked.training_seconds.to_string();
            ["bench", subject, "--launches", "1", "--seconds", &seconds, "--csv"].map(str::to_owned).to_vec()
        })
        .collect();
    let all: Vec<&Flags> =
        std::iter::once(&asked.baseline).chain(&mode.builds).filter_map(|name| asked.named(name)).collect();
    let bar = session.progress(all.len() as u64, if wanted.as_built { "finding" } else { "building" });
    let mut found = Vec::new();
    let mut rows = Vec::new();
    let mut baseline = None;
    for flags in all {
        bar.set_message(flags.name.clone());
        let as_it_is = tree.is_some() && !full && !wanted.build_only && flags.name == asked.baseline;
        let own = if as_it_is { own(flags) } else { None };
        let made_by = if own.is_some() { "this command".to_owned() } else { build::made_by(flags) };
        let made = match (own, &tree) {
            (Some(own), _) => Ok(own),
            (None, Some(tree)) => tree.build(flags, &training),
            (None, None) => store::find(&folder, &flags.name),
        };
        // A kept file need not be what its name says. A build that cargo just made is checked too.
        let made = made.and_then(|path| {
            let says = store::of_itself(&path)?;
            store::is_of(flags, &says)?;
            store::same_sources(baseline.as_ref().unwrap_or(&says), &says)?;
            Ok((path, says))
        });
        let size = |path: &Path| std::fs::metadata(path).ok().map(|m| m.len() / 1024);
        rows.push(Built {
            name: flags.name.clone(),
            what: flags.what.clone(),
            made_by,
            kib: made.as_ref().ok().and_then(|(path, _)| size(path)),
        });
        match made {
            Ok((path, says)) => {
                baseline.get_or_insert(says);
                found.push((flags.name.clone(), path));
            }
            Err(why) if flags.name == asked.baseline => return Err(Failure::unavailable(why)),
            Err(why) => record.not_here.push(NotHere {
                subject: EVERY.to_owned(),
                variant: format!("build {}", flags.name),
                why,
            }),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if found.len() < 2 {
        let builds = record.not_here.iter().filter(|n| n.subject == EVERY);
        let all = folded(builds.map(|n| (n.subject.as_str(), n.variant.as_str(), n.why.as_str())));
        return Err(Failure::unavailable(format!(
            "no build to race against the baseline: {}",
            all.join(", ")
        ))
        .help("leave --as-built out to make them"));
    }
    if let Some(says) = baseline {
        record.remarks.extend(remark(&says, &Build::ours(), wanted.as_built.then_some(folder.as_path())));
        record.machine.more.insert("builds of commit".to_owned(), format!("{} ({})", says.commit, says.tree));
    }
    Ok((found, rows))
}

/// What a reader must know about the builds' sources.
fn remark(builds: &Build, own: &Build, kept: Option<&Path>) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(folder) = kept {
        all.push(format!(
            "the builds were raced as they were kept in {}, of commit {} by {}; link-time optimisation, codegen units and the profile's \
             training are what their makers say",
            store::shown(folder),
            builds.commit,
            builds.rustc
        ));
    }
    if builds.tree != "clean" {
        all.push(format!(
            "the builds' sources are not commit {} as it stands: {}",
            builds.commit, builds.tree
        ));
    }
    if builds.commit != own.commit {
        all.push(format!("the builds are of commit {}, and this command of {}", builds.commit, own.commit));
    }
    all
}

/// Every build's admission to the races behind one gate.
fn admit(
    builds: &[(String, PathBuf)],
    subject: &str,
    backend: &str,
    plan: &Plan,
) -> Result<Vec<Admitted>, Failure> {
    // Nothing is timed here, so builds are checked side by side, on all cores.
    let one = |(name, path): &(String, PathBuf)| {
        Contender::new(label(backend, name), path, orders(subject, backend)).admit(plan).map_err(refused)
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut admitted = Vec::with_capacity(builds.len());
    for some in builds.chunks(cores) {
        let answers: Vec<_> = std::thread::scope(|scope| {
            let running: Vec<_> = some.iter().map(|build| scope.spawn(|| one(build))).collect();
            running.into_iter().map(|thread| thread.join()).collect()
        });
        for answer in answers {
            admitted.push(answer.map_err(|_| Failure::refused("checking a build ended in a panic"))??);
        }
    }
    if let Some((first, rest)) = admitted.split_first() {
        for ((name, _), other) in builds[1..].iter().zip(rest) {
            same_answers(name, first.gate(), other.gate()).map_err(Failure::refused)?;
        }
    }
    Ok(admitted)
}

/// The operations that share a gate: all operations of a parameter set.
fn set(subject: &str) -> String {
    subject.rsplit_once('/').map_or(subject, |(set, _)| set).to_owned()
}

/// Seconds that a process of a race takes besides its measurement: it starts, makes its inputs, and warms up.
fn start(build: &Path, orders: &[String], plan: &Plan) -> Result<f64, Failure> {
    let plan = Plan { budget_ns: 1_000_000, warm_up_ns: 3_000_000, ..plan.clone() };
    let begun = Instant::now();
    Worker::at(build, orders).sample(&plan, 0, true).map_err(refused)?;
    Ok(begun.elapsed().as_secs_f64())
}

/// Seconds that all races take: half of a race's time is shared by its processes, and each starts.
fn races(starts: &[f64], builds: usize, mode: &Mode) -> f64 {
    let processes = (4 * builds * mode.rounds) as f64;
    starts.iter().map(|start| mode.seconds / 2.0 + processes * start).sum()
}

/// Everything.
pub(super) fn measure(
    session: &Session,
    asked: &Question,
    wanted: &Wanted<'_>,
    full: bool,
) -> Result<Measured, Failure> {
    let mode = if full { &asked.full } else { &asked.quick };
    let clock = Monotonic::new();
    let mut record = Record::new(ENTRY.name, &session.command, Machine::inspect(&clock, Vec::new()));
    let mut jobs = Vec::new();
    for path in &mode.subjects {
        let subject = lanework_suite::find(&session.context, path).ok_or_else(|| {
            Failure::input(format!("{}/study.toml: no subject '{path}'", ENTRY.name)).help(CORRECT)
        })?;
        let (here, absent) = backends(&subject, mode);
        record.not_here.extend(absent);
        jobs.extend(here.into_iter().map(|backend| (path.clone(), backend)));
    }
    let (builds, rows) = make(session, asked, mode, wanted, full, &mut record)?;
    for built in &rows {
        record.machine.more.insert(format!("build {}", built.name), built.made_by.clone());
    }
    if wanted.build_only {
        record.remarks.push("nothing was raced: only the builds were asked for".to_owned());
        return Ok(Measured { record, builds: rows });
    }
    let plan = Plan { budget_ns: (mode.seconds * 1e9) as u64, launches: 1, ..Plan::default() };
    record.plan = Some(plan.clone());
    // What the machine card says of calibration began before the builds.
    record.machine.calibration_before = Machine::inspect(&clock, Vec::new()).calibration_before;
    session.note(format!("{} builds; the checks of each come first", builds.len()));
    let bar = session.progress(jobs.len() as u64, "checking");
    let mut behind: BTreeMap<String, Vec<Admitted>> = BTreeMap::new();
    for (subject, backend) in &jobs {
        // Operations of one parameter set share one gate; each build passes it once.
        if let MapEntry::Vacant(gate) = behind.entry(set(subject)) {
            let admitted = admit(&builds, subject, backend, &plan)?;
            record.gate.extend(admitted.iter().zip(&builds).flat_map(|(build, (name, _))| {
                let named =
                    |row: &GateRow| GateRow { what: format!("{}, at {name}", row.what), ..row.clone() };
                build.gate().iter().map(named).collect::<Vec<_>>()
            }));
            gate.insert(admitted);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if let Some((_, baseline)) = builds.first() {
        let start = |(subject, backend): &(String, String)| start(baseline, &orders(subject, backend), &plan);
        let starts = jobs.iter().map(start).collect::<Result<Vec<f64>, _>>()?;
        let seconds = races(&starts, builds.len(), mode);
        session.note(format!("{} races: about {:.1} min", jobs.len(), seconds / 60.0));
    }
    let bar = session.progress(jobs.len() as u64, "racing");
    for (subject, backend) in &jobs {
        bar.set_message(label(backend, subject));
        let set = set(subject);
        let contenders: Vec<Admitted> = behind
            .get(&set)
            .into_iter()
            .flatten()
            .zip(&builds)
            .map(|(build, (name, _))| build.at(label(backend, name), orders(subject, backend)))
            .collect();
        let Some((baseline, others)) = contenders.split_first() else { continue };
        let mut outcome = race_all(subject, baseline, others, mode.rounds, &plan).map_err(refused)?;
        for row in &mut outcome.results {
            tag(row, backend);
        }
        record.add(outcome);
        bar.inc(1);
    }
    bar.finish_and_clear();
    record.machine.finish(&clock);
    Ok(Measured { record, builds: rows })
}

/// Marks a row with its build and backend.
pub(super) fn tag(row: &mut ResultRow, backend: &str) {
    let build = row.variant.rsplit(' ').next().unwrap_or_default().to_owned();
    row.extra.insert("build".to_owned(), build.into());
    row.extra.insert("of_backend".to_owned(), backend.into());
}

/// The build and the backend that [`tag`] marked.
pub(super) fn tagged(row: &ResultRow) -> Option<(&str, &str)> {
    Some((row.extra.get("build")?.as_str()?, row.extra.get("of_backend")?.as_str()?))
}

#[cfg(test)]
mod tests {
    use lanework_cpu::Settings;
    use lanework_suite::Context;

    use super::*;
    use crate::question::tests::asked;

    fn gate(what: &str, passed: u64) -> GateRow {
        GateRow {
            what: what.into(),
            backend: "avx2".into(),
            passed,
            failed: 0,
            skipped: 0,
            why: String::new(),
        }
    }

    #[test]
    fn a_build_that_checks_less_or_answers_otherwise_is_not_raced() {
        let right = [gate("known answers", 100), gate("agreement", 5)];
        assert_eq!(same_answers("o1", &right, &right), Ok(()));
        assert_eq!(same_answers("o1", &right, &[right[1].clone(), right[0].clone()]), Ok(()));
        let mut wrong = right.clone();
        (wrong[0].passed, wrong[0].failed) = (99, 1);
        for other in [
            vec![],
            vec![right[0].clone()],
            vec![gate("known answers", 99), right[1].clone()],
            wrong.to_vec(),
        ] {
            assert!(same_answers("o1", &right, &other).is_err_and(|e| e.starts_with("o1: ")));
        }
        assert!(same_answers("o1", &[], &[]).is_err());
    }

    #[test]
    fn the_time_of_races_counts_every_process() {
        let mode = Mode { seconds: 3.0, rounds: 8, ..asked().quick };
        // Five builds: four processes in each of eight rounds, for four pairs and the control.
        let seconds = races(&[0.01, 0.05], 5, &mode);
        assert!((seconds - (2.0 * 1.5 + 160.0 * 0.06)).abs() < 1e-9, "{seconds}");
        assert_eq!(set("vdf/1024/square"), "vdf/1024");
    }

    #[test]
    fn what_the_builds_are_of_is_said() {
        let own = Build { commit: "abc".into(), tree: "clean".into(), ..Build::ours() };
        assert!(remark(&own, &own, None).is_empty());
        let kept = remark(&own, &own, Some(Path::new("/kept")));
        assert!(kept.len() == 1 && kept[0].contains("/kept") && kept[0].contains("commit abc"), "{kept:?}");
        let other = Build { commit: "def".into(), tree: "changed".into(), ..own.clone() };
        let said = remark(&other, &own, None);
        assert!(
            said[0].contains("changed") && said[1].contains("commit def, and this command of abc"),
            "{said:?}"
        );
    }

    #[test]
    fn only_backends_are_raced_and_only_those_asked_for() {
        let context = Context::new(Settings::default());
        let mut mode = asked().full;
        for path in mode.subjects.iter().chain(&asked().quick.subjects) {
            let subject = lanework_suite::find(&context, path).expect("the study names real subjects");
            let (here, _) = backends(&subject, &mode);
            assert!(here.iter().any(|b| b == "portable"), "{path}: {here:?}");
            assert!(here.iter().all(|b| !b.contains('+')), "{path}: {here:?}");
        }
        mode.backends = vec!["portable".to_owned()];
        let subject = lanework_suite::find(&context, &mode.subjects[0]).expect("a subject");
        assert_eq!(backends(&subject, &mode).0, ["portable"]);
    }
}
