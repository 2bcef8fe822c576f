//! Races over several processes, end to end: this executable is both parent and worker. Time is planted.

mod common;

use std::env;
use std::io::{self, Write};

use common::{World, open_gate, plan, row};
use lanework_race::binaries::{Contender, race_all};
use lanework_race::gate::{Gate, GateError};
use lanework_race::launch::{LaunchError, Worker, is_worker, serve};
use lanework_race::pairing::Plan;
use lanework_race::subject::Subject;
use lanework_race::verdict::Verdict;

fn worker(what: &str) -> io::Result<()> {
    // A launch has a lasting shift of its own, as memory layout would give: here, one taken from the padding.
    let padding = env::var("LANEWORK_LAB_PADDING").map_or(0, |p| p.len());
    let shift = 1.0 + (padding % 16) as f64 / 16.0 * 0.002;
    let world = World::new(padding as u64);
    let gate = match what {
        "shut" => Gate::new(|| Ok(vec![row(5, 2)])),
        _ => open_gate(),
    };
    let baseline = match what {
        "homeless" => world.absent("plain", "not built"),
        "slower" => world.variant("plain", 1030.0),
        _ => world.variant("plain", 1000.0),
    };
    let subject = Subject::new("planted/job", gate, baseline)
        .with(world.variant("wide", 250.0 * shift))
        .with(world.variant("twin", 1000.0 * shift));
    match what {
        "mute" => {
            eprintln!("planted: I say nothing");
            std::process::exit(7);
        }
        "hang" => std::thread::sleep(std::time::Duration::from_secs(3600)),
        "babble" => println!("progress: 10 %"),
        _ => {}
    }
    serve(&subject, &world.clock, &mut io::stdout())
}

fn race(what: &str, plan: &Plan) -> Result<(lanework_race::race::Outcome, usize, Vec<u32>), LaunchError> {
    let worker = Worker::new(["worker", what]).expect("this executable is known");
    let mut told = Vec::new();
    let (outcome, launches) = worker.race(plan, |done, _| told.push(done))?;
    Ok((outcome, launches.len(), told))
}

/// Three builds against one: the same again, a slower one, and one whose gate is shut.
fn builds(plan: &Plan) {
    let build =
        |name: &str, what: &str| Contender::current(name, ["worker", what]).expect("known").admit(plan);
    let [old, same, slower] = [("old", "race"), ("same", "race"), ("slow", "slower")]
        .map(|(name, what)| build(name, what).expect("its gate opens"));
    assert_eq!(old.gate(), [row(10, 0)]);
    match build("broken", "shut") {
        Err(LaunchError::Refused { subject, .. }) => assert!(subject.ends_with("of broken"), "{subject}"),
        other => panic!("a shut gate let a build through: {other:?}"),
    }
    let outcome =
        race_all("planted/job", &old, &[same, slower.at("slow twin", ["worker", "race"]), slower], 10, plan)
            .expect("races");
    let verdict = |name: &str| {
        let row = outcome.results.iter().find(|r| r.variant == name).expect("it was raced");
        assert_eq!((row.baseline.as_str(), &row.launch_pairs), ("old", &vec![1; 10]));
        assert_eq!(row.backend, "plain after running");
        (row.verdict, row.ratio)
    };
    assert_eq!(verdict("slow").0, Verdict::Slower);
    assert!((verdict("slow").1 - 1.0 / 1.03).abs() < 0.005, "{}", verdict("slow").1);
    assert!(!matches!(verdict("same").0, Verdict::Faster | Verdict::Slower), "{:?}", verdict("same"));
    assert!(
        !matches!(verdict("slow twin").0, Verdict::Faster | Verdict::Slower),
        "{:?}",
        verdict("slow twin")
    );
    assert!(outcome.control.is_some());
}

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    if args.first().is_some_and(|a| a == "worker") {
        worker(&args[1]).expect("the worker serves");
        return;
    }
    // A test runner that only lists the tests.
    if args.iter().any(|a| a == "--list") {
        println!("launches: test");
        return;
    }
    assert!(!is_worker());
    let mut out = Vec::new();
    let world = World::new(1);
    let lone = Subject::new("s", open_gate(), world.variant("a", 1.0));
    let refused = serve(&lone, &world.clock, &mut out).expect_err("no orders were given");
    assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    assert!(out.is_empty());

    let plan = Plan { launches: 6, max_pairs: 30, ..plan() };
    let (outcome, launches, told) = race("race", &plan).expect("races");
    assert_eq!((launches, told), (6, vec![1, 2, 3, 4, 5, 6]));
    let wide = &outcome.results[0];
    assert_eq!((wide.variant.as_str(), wide.verdict), ("wide", Verdict::Faster));
    assert!((3.96..4.02).contains(&wide.ratio), "{}", wide.ratio);
    assert_eq!(wide.launch_pairs, [30; 6]);
    assert_eq!(wide.samples.len(), 360);
    assert_eq!(wide.backend, "wide after running");
    assert_ne!(outcome.results[1].verdict, Verdict::Faster);
    assert_eq!(outcome.gate, [row(10, 0)], "the first launch alone reports the gate");

    match race("shut", &plan) {
        Err(LaunchError::Refused { subject, gate: GateError::Failed(r) }) => {
            assert_eq!((subject.as_str(), r), ("planted/job", row(5, 2)));
        }
        other => panic!("a shut gate let a race through: {other:?}"),
    }
    match race("homeless", &plan) {
        Err(LaunchError::Failed { launch: 0, why }) => assert!(why.contains("not built"), "{why}"),
        other => panic!("{other:?}"),
    }
    match race("mute", &plan) {
        Err(LaunchError::NoAnswer { launch: 0, why }) => {
            assert!(why.contains("I say nothing") && why.contains('7'), "{why}");
        }
        other => panic!("{other:?}"),
    }
    match race("babble", &plan) {
        Err(LaunchError::NoAnswer { .. }) => {}
        other => panic!("noise on standard output was taken for an answer: {other:?}"),
    }
    let hang = Worker::new(["worker", "hang"]).expect("known").limit(std::time::Duration::from_millis(300));
    match hang.race(&plan, |_, _| ()) {
        Err(LaunchError::NoAnswer { launch: 0, why }) => assert!(why.contains("still running"), "{why}"),
        other => panic!("{other:?}"),
    }
    builds(&plan);
    writeln!(io::stdout(), "launches: ok").expect("standard output is there");
}
