//! The schedule and the sampler end to end, in planted time.

mod common;

use std::cell::RefCell;
use std::rc::Rc;

use common::{World, open_gate, plan, row};
use lanework_race::gate::{Gate, GateError, GateRow};
use lanework_race::history::compare;
use lanework_race::machine::{Fact, Machine};
use lanework_race::overrun::Overruns;
use lanework_race::pairing::{LaunchSamples, Pair, Plan, RaceError, Series};
use lanework_race::race::{Error, analyse, in_process};
use lanework_race::record::{LARGE, Record, RecordError, ResultRow};
use lanework_race::subject::{Facts, Subject, Variant, work};
use lanework_race::table::{Style, csv, render};
use lanework_race::verdict::{Lane, Verdict};

fn subject(world: &World) -> Subject {
    let gate =
        Gate::new(|| Ok(vec![row(10, 0), GateRow { backend: "wide after running".into(), ..row(7, 0) }]));
    Subject::new("planted/job", gate, world.variant("plain", 1000.0))
        .with(world.variant("wide", 250.0))
        .with(world.variant("slow", 1020.0))
        .with(world.variant("twin", 1000.0))
        .with(world.variant("hair", 995.0))
        .with(world.variant("batch", 8000.0).units(16))
        .with(world.absent("gpu", "no CUDA device"))
}

fn find<'a>(rows: &'a [ResultRow], name: &str) -> &'a ResultRow {
    rows.iter().find(|r| r.variant == name).expect("the variant ran")
}

#[test]
fn planted_effects_are_found() {
    let world = World::new(11);
    let outcome = in_process(&subject(&world), &plan(), &world.clock).expect("races");
    let get = |name| find(&outcome.results, name);
    for (name, truth, verdict) in [
        ("wide", 4.0, Verdict::Faster),
        ("slow", 1.0 / 1.02, Verdict::Slower),
        ("twin", 1.0, Verdict::Same),
        ("hair", 1.0 / 0.995, Verdict::Faster),
        ("batch", 2.0, Verdict::Faster),
    ] {
        let r = get(name);
        assert_eq!(r.verdict, verdict, "{name}: {} in {}..{}, noise {}", r.ratio, r.low, r.high, r.noise);
        assert!(r.low <= truth && truth <= r.high, "{name}: {truth} not in {}..{}", r.low, r.high);
        assert!((r.ratio / truth - 1.0).abs() < 0.003, "{name}: {} is not near {truth}", r.ratio);
        assert_eq!(r.backend, format!("{name} after running"));
        // The gate planted here names `wide` alone.
        assert_eq!(r.notes[0], "ran: true");
        assert_eq!(r.notes.len(), if name == "wide" { 1 } else { 2 }, "{:?}", r.notes);
        assert!(r.detectable < 0.005 && r.noise < 0.005, "{} {}", r.detectable, r.noise);
        let ticks = r.ticks.expect("the planted clock ticks");
        assert!((ticks / (r.median * 2.5) - 1.0).abs() < 0.01, "{ticks} ticks for {} ns", r.median);
    }
    let control = outcome.control.as_ref().expect("a control ran beside");
    assert!(control.low <= 1.0 && 1.0 <= control.high);
    assert_eq!(control.samples.len(), get("wide").samples.len());
    assert_eq!(outcome.not_here.len(), 1);
    assert_eq!(
        (outcome.not_here[0].variant.as_str(), outcome.not_here[0].why.as_str()),
        ("gpu", "no CUDA device")
    );
    assert_eq!(outcome.gate[0], row(10, 0));
    assert_eq!(get("wide").lane(), Lane::Pays { ratio: get("wide").ratio });
}

#[test]
fn a_shut_gate_times_nothing() {
    for (check, expected) in [
        (Ok(vec![row(99, 1)]), GateError::Failed(row(99, 1))),
        (Ok(vec![]), GateError::Empty),
        (Err("no vectors".to_owned()), GateError::Broken("no vectors".into())),
    ] {
        let world = World::new(1);
        let subject =
            Subject::new("planted/job", Gate::new(move || check.clone()), world.variant("plain", 1000.0))
                .with(world.variant("wide", 250.0));
        match in_process(&subject, &plan(), &world.clock) {
            Err(Error::Race(RaceError::Refused { subject, gate })) => {
                assert_eq!((subject.as_str(), gate), ("planted/job", expected));
            }
            other => panic!("the race was not refused: {other:?}"),
        }
        assert!(world.log.borrow().is_empty(), "something ran behind a shut gate");
        assert_eq!(world.clock.0.get(), 0.0);
    }
}

#[test]
fn samples_are_paired_abba_and_long_enough() {
    let world = World { noise: 0.0, drift: 0.0, outliers: 0.0, ..World::new(3) };
    let subject = Subject::new("s", open_gate(), world.variant("A", 1000.0)).with(world.variant("B", 250.0));
    let plan = Plan { min_pairs: 50, max_pairs: 50, ..plan() };
    let outcome = in_process(&subject, &plan, &world.clock).expect("races");
    let r = find(&outcome.results, "B");
    assert_eq!(r.samples.len(), 100);
    // The planted sample may not be shorter than the plan says.
    assert!(r.iterations[0] as f64 * 1000.0 >= plan.min_sample_ns as f64);
    assert!(r.iterations[1] as f64 * 250.0 >= plan.min_sample_ns as f64);
    // Timed samples have the full number of iterations; lead-ins an eighth.
    let timed: Vec<String> = {
        let log = world.log.borrow();
        let last = log.len() - 2 * 8 * 50;
        log[last..]
            .chunks(2)
            .map(|c| {
                assert_eq!(c[0].0, c[1].0, "a lead-in belongs to the sample after it");
                assert_eq!(c[0].1, c[1].1 / 8);
                c[1].0.clone()
            })
            .collect()
    };
    let mut seen = std::collections::BTreeMap::<String, u32>::new();
    for pair in timed.chunks(4) {
        *seen.entry(pair.concat()).or_default() += 1;
    }
    assert_eq!(seen.get("AAAA"), Some(&50), "{seen:?}");
    assert_eq!(seen.get("ABBA"), Some(&25), "{seen:?}");
    assert_eq!(seen.get("BAAB"), Some(&25), "{seen:?}");
    // Nothing varies: the only uncertainty is one step of the clock in a sample, and the interval is that wide.
    let step = 40.0 / (r.iterations[1] as f64 * 250.0).min(r.iterations[0] as f64 * 1000.0);
    assert_eq!(r.ratio, 4.0);
    for wide in [r.high / r.ratio, r.ratio / r.low, 1.0 + r.noise] {
        assert!((wide - 1.0 - step).abs() < 1e-6, "{wide} {step}");
    }
}

/// Samples of a launch in which the control and the challenger take these multiples of the baseline's time.
fn planted(control: f64, challenger: f64, resolution: f64) -> LaunchSamples {
    let facts = Facts { backend: "b".into(), notes: vec![] };
    let series = |name: &str, times: f64| Series {
        variant: name.into(),
        facts: facts.clone(),
        cores: 1,
        iterations: [1, 1],
        ticks: None,
        pairs: vec![Pair { baseline: [1000.0; 2], variant: [1000.0 * times; 2] }; 20],
        resolution,
    };
    LaunchSamples {
        launch: 0,
        subject: "s".into(),
        baseline: "A".into(),
        baseline_facts: facts.clone(),
        bytes: None,
        counted: None,
        gate: vec![],
        control: series("A", control),
        series: vec![series("B", challenger)],
        not_here: vec![],
        clock: "planted".into(),
        clock_step_ns: 1,
        overrun: None,
        remarks: vec![],
    }
}

#[test]
fn a_control_that_differs_from_itself_voids_its_race() {
    let row = |control, challenger, resolution| {
        let samples = planted(control, challenger, resolution);
        analyse(&[samples], &plan()).expect("one launch").results.remove(0)
    };
    // The control is off by 0.36 %, and known to 0.07 %: the challenger's 1.5 % is not evidence, but its factor of two is.
    let r = row(1.0036, 0.985, 0.0007);
    assert_eq!(r.verdict, Verdict::Void);
    assert!(r.notes.iter().any(|n| n.starts_with("void: ")), "{:?}", r.notes);
    assert!((r.noise - 0.0043).abs() < 1e-4, "{}", r.noise);
    assert_eq!(r.lane(), Lane::Void);
    assert_eq!(row(1.0036, 0.5, 0.0007).verdict, Verdict::Faster);
    // Unless the caller's effects are all small.
    for (control, verdict) in [(1.0036, Verdict::Void), (1.0005, Verdict::Faster)] {
        let mut outcome = analyse(&[planted(control, 0.5, 0.0007)], &plan()).expect("one launch");
        outcome.void_where_the_control_fails();
        assert_eq!(outcome.results[0].verdict, verdict);
    }
    // Within the clock's resolution it is equal to itself.
    assert_eq!(row(1.0005, 0.985, 0.0007).verdict, Verdict::Faster);
}

#[test]
fn an_interval_without_a_width_is_none() {
    // The clock's step is not known, and all ratios are the same.
    for (control, challenger) in [(1.0, 0.96), (1.0, 1.0)] {
        let outcome = analyse(&[planted(control, challenger, 0.0)], &plan()).expect("one launch");
        let r = &outcome.results[0];
        assert_eq!((r.verdict, r.low), (Verdict::CannotTell, r.high));
        assert!(r.notes.iter().any(|n| n.contains("not an interval")), "{:?}", r.notes);
    }
}

/// A record holds seven digits. An end that is 1 in them does not exclude 1, and the record can be saved.
#[test]
fn verdicts_are_judged_on_the_stored_interval() {
    let folder = tempfile::tempdir().expect("a folder");
    for (times, resolution) in [(0.999_999_5, 1e-7), (1.000_000_04, 1e-8)] {
        let outcome = analyse(&[planted(1.0, times, resolution)], &plan()).expect("one launch");
        let r = &outcome.results[0];
        assert_eq!(r.verdict, Verdict::Same, "{} {}", r.low, r.high);
        assert!(r.low == 1.0 || r.high == 1.0, "{} {}", r.low, r.high);
        let mut record = record();
        record.add(outcome);
        record.save(folder.path()).expect("it does not contradict itself");
    }
    // An end that is not 1 in seven digits excludes it.
    let outcome = analyse(&[planted(1.0, 0.999_998, 1e-7)], &plan()).expect("one launch");
    assert_eq!((outcome.results[0].verdict, outcome.results[0].low), (Verdict::Faster, 1.000_002));
}

#[test]
fn launches_that_outrun_their_budget_are_one_remark() {
    let world = World::new(5);
    let mut record =
        Record::new("planted", "lanework bench planted", Machine::inspect(&world.ticking(), vec![]));
    for name in ["one", "two", "three"] {
        let subject =
            Subject::new(name, open_gate(), world.variant("A", 1000.0)).with(world.variant("B", 900.0));
        let short = Plan { budget_ns: 1_000_000, ..plan() };
        record.add(in_process(&subject, &short, &world.clock).expect("races"));
    }
    let told: Vec<&String> = record.remarks.iter().filter(|r| r.contains("outran")).collect();
    assert_eq!(told.len(), 1, "{:?}", record.remarks);
    assert!(told[0].starts_with("3 of 3 launches "), "{told:?}");
    // It stays one after another record was appended.
    let more = record.clone();
    record.append(more);
    let told: Vec<&String> = record.remarks.iter().filter(|r| r.contains("outran")).collect();
    assert!(told.len() == 1 && told[0].starts_with("6 of 6 launches "), "{told:?}");
}

/// Contestants in planted time that differ only in when they had their last turn: the more turns others had since, the
/// longer the first calls.
fn forgetful(world: &World, name: &str, last: &Rc<RefCell<Vec<String>>>) -> Variant {
    /// In nanoseconds, of a call of 100 µs.
    const COLD: [f64; 4] = [25_000.0, 2_500.0, 1_000.0, 500.0];
    let (world, last, name) = (world.clone(), Rc::clone(last), name.to_owned());
    Variant::new(name.clone(), move || {
        let (world, last) = (world.clone(), Rc::clone(&last));
        let own = format!("{name}, instance {}", last.borrow().len());
        last.borrow_mut().push(own.clone());
        let facts = Facts { backend: name.clone(), notes: vec![] };
        Ok(work(
            move || {
                let mut last = last.borrow_mut();
                let own_turns = last.iter().rev().take_while(|who| **who == own).count();
                let before = last.len() - own_turns;
                let others = last[..before].iter().rev().take_while(|who| **who != own).count();
                let forgotten = (others as f64 / 24.0).min(1.0);
                let cold = COLD.get(own_turns).map_or(0.0, |ns| ns * forgotten);
                world.clock.0.set(world.clock.0.get() + 100_000.0 + cold);
                last.push(own.clone());
            },
            move || facts.clone(),
        ))
    })
}

#[test]
fn a_contestant_that_waited_for_its_turn_is_not_timed_cold() {
    let world = World { noise: 0.0, drift: 0.0, outliers: 0.0, ..World::new(7) };
    let last = Rc::default();
    let subject = (0..6)
        .fold(Subject::new("s", open_gate(), forgetful(&world, "stack", &last)), |subject, i| {
            subject.with(forgetful(&world, &format!("copy {i}"), &last))
        });
    let plan = Plan { max_pairs: 20, warm_up_ns: 1_000_000, ..plan() };
    let outcome = in_process(&subject, &plan, &world.clock).expect("races");
    // With a lead-in of an eighth of three calls, which is none, each copy seemed to take 3 % more than its original.
    for row in &outcome.results {
        assert!((row.ratio - 1.0).abs() < 2e-4, "{}: {}", row.variant, row.ratio);
    }
}

#[test]
fn the_budget_ends_the_race_and_coarse_clocks_lengthen_samples() {
    let world = World::new(5);
    let subject = Subject::new("s", open_gate(), world.variant("A", 1000.0)).with(world.variant("B", 900.0));
    let short = Plan { budget_ns: 100_000_000, max_pairs: 100_000, ..plan() };
    in_process(&subject, &short, &world.clock).expect("races");
    let spent = world.clock.0.get();
    assert!((1.0e8..1.1e8).contains(&spent), "{spent}");

    let world = World::new(5);
    let subject = Subject::new("s", open_gate(), world.variant("A", 1000.0)).with(world.variant("B", 900.0));
    let coarse = Plan { min_sample_steps: 100_000, ..plan() };
    let outcome = in_process(&subject, &coarse, &world.clock).expect("races");
    assert!(outcome.results[0].iterations[0] >= 3_900, "{:?}", outcome.results[0].iterations);
}

#[test]
fn too_few_pairs_cannot_tell() {
    let world = World::new(7);
    let subject = Subject::new("s", open_gate(), world.variant("A", 1000.0)).with(world.variant("B", 10.0));
    let outcome =
        in_process(&subject, &Plan { min_pairs: 3, max_pairs: 3, ..plan() }, &world.clock).expect("races");
    let r = &outcome.results[0];
    assert_eq!(r.verdict, Verdict::CannotTell);
    assert!(r.notes.iter().any(|n| n.contains("too few")), "{:?}", r.notes);
}

#[test]
fn a_missing_baseline_and_a_stopped_clock_are_errors() {
    let world = World::new(1);
    let subject =
        Subject::new("s", open_gate(), world.absent("A", "no such thing")).with(world.variant("B", 1.0));
    match in_process(&subject, &plan(), &world.clock) {
        Err(Error::Race(RaceError::NoBaseline(n))) => assert_eq!(n.why, "no such thing"),
        other => panic!("{other:?}"),
    }
    let subject = Subject::new("s", open_gate(), world.variant("A", 0.0));
    match in_process(&subject, &plan(), &world.clock) {
        Err(Error::Race(RaceError::BrokenClock { variant })) => assert_eq!(variant, "A"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn baselines_can_be_chosen_and_variants_left_out() {
    let world = World::new(2);
    let mut s = subject(&world);
    s.set_baseline("slow").expect("is there");
    s.keep(&["wide", "plain"]).expect("are there");
    assert_eq!(s.baseline().name(), "slow");
    assert_eq!(s.names().collect::<Vec<_>>(), ["plain", "wide", "slow"]);
    assert_eq!(s.challengers().count(), 2);
    let e = s.set_baseline("gone").expect_err("is not there");
    assert!(e.to_string().contains("plain, wide, slow"), "{e}");
}

fn record() -> Record {
    let world = World::new(11);
    let outcome = in_process(&subject(&world), &plan(), &world.clock).expect("races");
    let mut record =
        Record::new("planted study", "lanework bench planted", Machine::inspect(&world.ticking(), vec![]));
    record.plan = Some(plan());
    record.add(outcome);
    record
}

impl World {
    /// A clock that advances by a microsecond with each reading, for code that waits.
    fn ticking(&self) -> Ticking {
        Ticking(std::cell::Cell::new(0))
    }
}

struct Ticking(std::cell::Cell<u64>);

impl lanework_race::clock::Clock for Ticking {
    fn now_ns(&self) -> u64 {
        self.0.set(self.0.get() + 1000);
        self.0.get()
    }
    fn ticks(&self) -> Option<u64> {
        Some(self.0.get() * 3)
    }
    fn step_ns(&self) -> u64 {
        1000
    }
    fn name(&self) -> &'static str {
        "ticking"
    }
}

#[test]
fn the_machine_card_degrades_in_the_open() {
    let world = World::new(1);
    let mut card = Machine::inspect(&world.ticking(), vec![]);
    assert_eq!(card.frequency_drift(), None, "there is no second calibration yet");
    let kept = serde_json::to_string(&card).expect("a card is JSON");
    assert!(kept.contains("the races are not over"));
    assert!(!card.summary().contains("after"), "{}", card.summary());
    card.governor = Fact::Missing { missing: "planted reason".into() };
    assert!(card.summary().contains("governor    unknown (planted reason)"), "{}", card.summary());
    assert_eq!(card.tsc_ghz.known(), Some(&3.0), "the planted clock has three ticks in a nanosecond");
    card.finish(&world.ticking());
    // Every reading of the planted clock is a microsecond after the last: 2²⁰ additions seem to take 1 µs.
    if let Fact::Known(c) = card.calibration_after {
        assert_eq!((c.best_ghz, c.worst_ghz), (1048.576, 1048.576));
        assert_eq!(card.frequency_drift(), Some(0.0));
    }
    let text = serde_json::to_string(&card).expect("JSON");
    assert!(text.contains(r#""governor":{"missing":"planted reason"}"#), "{text}");
    assert_eq!(serde_json::from_str::<Machine>(&text).expect("reads back"), card);
}

#[test]
fn a_cold_first_run_does_not_shorten_samples() {
    let world = World { noise: 0.0, drift: 0.0, outliers: 0.0, ..World::new(3) };
    let cold = world.clone();
    let variant = Variant::new("cold", move || {
        let (w, mut first) = (cold.clone(), true);
        Ok(work(
            move || {
                let ns = if std::mem::take(&mut first) { 300_000.0 } else { 100.0 };
                w.clock.0.set(w.clock.0.get() + ns);
            },
            || Facts { backend: "cold".into(), notes: vec![] },
        ))
    });
    let subject = Subject::new("s", open_gate(), world.variant("A", 1000.0)).with(variant);
    let outcome = in_process(&subject, &Plan { warm_up_ns: 0, ..plan() }, &world.clock).expect("races");
    assert!(outcome.results[0].iterations[1] >= 2000, "{:?}", outcome.results[0].iterations);
    assert_eq!(outcome.results[0].ratio, 10.0);
}

#[test]
fn records_are_saved_whole_and_read_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = record();
    let first = record.save(folder.path()).expect("saves");
    let second = record.save(folder.path()).expect("saves beside the first");
    assert_ne!(first, second);
    assert!(first.ends_with(format!("{}/{}-planted-study.json", record.machine.slug(), &record.date[..10])));
    assert!(second.to_string_lossy().ends_with("-2.json"));
    // Running counts are not stored.
    let stored = Record { overruns: Overruns::default(), ..record };
    assert_eq!(Record::load(&first).expect("reads back"), stored);
    let left: Vec<_> = std::fs::read_dir(first.parent().expect("folder")).expect("lists").collect();
    assert_eq!(left.len(), 2, "temporary files were left behind");
}

#[test]
fn a_large_record_is_compressed_as_a_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let plain = record().save(folder.path()).expect("saves");
    let large = Record { page: Some("long ".repeat(LARGE / 4)), ..record() };
    let path = large.save(folder.path()).expect("saves");
    assert!(path.to_string_lossy().ends_with("-2.json.gz"), "{}", path.display());
    assert!(std::fs::metadata(&path).expect("a file").len() < LARGE as u64 / 4);
    assert_eq!(Record::load(&path).expect("reads back").page, large.page);
    let found = lanework_race::history::load_all(folder.path()).expect("lists");
    assert_eq!(found.entries.iter().map(|e| &e.path).collect::<Vec<_>>(), [&plain, &path]);
    assert!(found.skipped.is_empty());
    // A damaged one is named.
    let bytes = std::fs::read(&path).expect("bytes");
    std::fs::write(&path, &bytes[..bytes.len() - 9]).expect("written");
    let found = lanework_race::history::load_all(folder.path()).expect("lists");
    assert!(found.skipped.len() == 1 && found.skipped[0].path() == path);
}

/// A summary compares as equal to its record, and a change is found in either.
#[test]
fn a_record_without_samples_is_compared_like_a_whole_one() {
    let record = record();
    let summary = record.clone().without_samples();
    assert!(summary.results.iter().all(|row| row.samples.is_empty() && row.median_interval.is_some()));
    let folder = tempfile::tempdir().expect("a folder");
    let sizes = [&record, &summary].map(|record| {
        let path = record.save(folder.path()).expect("saves");
        let loaded = Record::load(&path).expect("loads");
        assert_eq!(loaded.results.len(), record.results.len());
        assert!(loaded.results.iter().zip(&record.results).all(|(l, r)| l.samples.len() == r.samples.len()));
        std::fs::metadata(&path).expect("a file").len()
    });
    assert!(sizes[1] < sizes[0], "{sizes:?}");
    let mut slower = record.clone();
    for row in &mut slower.results {
        let times = [&mut row.median, &mut row.mean, &mut row.min, &mut row.q1, &mut row.q3];
        times.into_iter().chain(&mut row.samples).for_each(|time| *time *= 3.0);
    }
    let words = |old: &Record, new: &Record| -> Vec<_> {
        compare(old, new).changes.iter().map(|change| change.time.verdict).collect()
    };
    for old in [&record, &summary] {
        assert_eq!(words(old, &slower), words(&record, &slower));
        assert_eq!(words(old, &slower.clone().without_samples()), words(&record, &slower));
        assert_eq!(words(old, &record), words(&record, &record));
    }
    assert_ne!(words(&record, &slower), words(&record, &record));
}

#[test]
fn records_follow_the_schema_and_refuse_what_does_not() {
    let record = record();
    let text = record.to_json().expect("JSON");
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["schema"], 1);
    assert!(value["machine"].is_object());
    let row = &value["results"][0];
    for key in [
        "subject", "variant", "baseline", "ratio", "low", "high", "noise", "verdict", "unit", "median",
        "samples",
    ] {
        assert!(!row[key].is_null(), "{key} is missing");
    }
    assert_eq!((row["verdict"].as_str(), row["unit"].as_str()), (Some("faster"), Some("ns")));

    let with = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut value = value.clone();
        change(&mut value);
        Record::from_json(&value.to_string())
    };
    assert!(with(&|_| ()).is_ok());
    let calibration = |ghz: f64| serde_json::json!({ "best_ghz": 4.0, "median_ghz": ghz, "worst_ghz": 3.0 });
    assert!(with(&|v| v["machine"]["calibration_before"] = calibration(3.5)).is_ok());
    assert!(matches!(with(&|v| v["schema"] = 3.into()), Err(RecordError::UnknownSchema { found: Some(3) })));
    assert!(matches!(with(&|v| v["schema"] = "1".into()), Err(RecordError::UnknownSchema { found: None })));
    assert!(matches!(with(&|v| v["results"][0]["verdict"] = "best".into()), Err(RecordError::Malformed(_))));
    assert!(matches!(Record::from_json("{"), Err(RecordError::Malformed(_))));
    for change in [
        (&|v: &mut serde_json::Value| v["results"][0]["low"] = 9.0.into()) as &dyn Fn(&mut serde_json::Value),
        &|v| v["results"][0]["verdict"] = "slower".into(),
        &|v| v["results"][0]["samples"][3] = (-1.0).into(),
        &|v| v["results"][0]["launch_pairs"] = vec![1].into(),
        &|v| v["results"][0]["launch_pairs"] = vec![1_u64 << 63, 1 << 63].into(),
        &|v| v["results"][0]["baseline_min"] = (-5.0).into(),
        &|v| v["results"][0]["baseline_mean"] = 0.into(),
        &|v| v["results"][0]["ticks"] = (-5.0).into(),
        &|v| v["results"][0]["margin"] = (-5.0).into(),
        // Each figure is one, and together they cannot be.
        &|v| v["results"][0]["verdict"] = "same".into(),
        &|v| v["results"][0]["noise"] = 9.0.into(),
        &|v| v["results"][0]["detectable"] = 0.0.into(),
        &|v| {
            // Faster by less than the noise.
            let row = &mut v["results"][0];
            (row["noise"], row["detectable"]) = (9.0.into(), 9.0.into());
        },
        &|v| v["results"][0]["median"] = 1e-9.into(),
        &|v| v["results"][0]["q1"] = 1e20.into(),
        &|v| v["results"][0]["q3"] = 1e-9.into(),
        &|v| v["results"][0]["mean"] = 1e-9.into(),
        &|v| v["results"][0]["baseline_median"] = 1e-9.into(),
        &|v| v["results"][0]["baseline_mean"] = 1e-9.into(),
        &|v| v["results"][0]["median_interval"] = vec![1e20, 1e21].into(),
        &|v| v["results"][0]["iterations"] = vec![0, 1].into(),
        &|v| v["results"][0]["cores"] = 0.into(),
        &|v| {
            let row = &mut v["results"][0];
            row["launch_pairs"] = vec![0].into();
            (row["samples"], row["baseline_samples"]) = (serde_json::json!([]), serde_json::json!([]));
        },
        &|v| v["gate"][0]["failed"] = 1.into(),
        &|v| {
            for field in ["samples", "baseline_samples"] {
                v["controls"][0][field].as_array_mut().expect("samples").pop();
            }
        },
        &|v| {
            for field in ["ratio", "low", "high"] {
                v["results"][0][field] = 1e308.into();
            }
        },
        &|v| v["controls"][0]["low"] = (-3.0).into(),
        &|v| v["controls"][0]["samples"][0] = 0.into(),
        &|v| v["plan"]["rules"]["alpha"] = 2.into(),
        &|v| v["plan"]["rules"]["alpha"] = (-1.0).into(),
        &|v| v["plan"]["rules"]["margin"] = 7.into(),
        &|v| v["machine"]["calibration_before"] = calibration(1e308),
        &|v| v["machine"]["calibration_after"] = calibration(0.0),
    ] {
        assert!(matches!(with(change), Err(RecordError::Inconsistent { .. })));
    }
}

#[test]
fn reports_show_every_variant_and_the_command() {
    let record = record();
    let text = render(&record, Style::Plain);
    for part in [
        "planted/job",
        "plain",
        "baseline",
        "wide",
        "faster",
        "slower",
        "same",
        "×4.00",
        "no CUDA device",
        "made by: lanework bench planted",
    ] {
        assert!(text.contains(part), "{part:?} is missing from\n{text}");
    }
    let mut drowned = record.clone();
    (drowned.results[0].low, drowned.results[0].high) = (5e-9, 1.92e13);
    assert!(
        render(&drowned, Style::Plain).contains(" ? … ? "),
        "an interval that says nothing is not spelt out"
    );
    assert!(!text.contains('\u{1b}'), "plain text has no escapes");
    assert!(render(&record, Style::Terminal).contains('\u{1b}'));
    let csv = csv(&record.results);
    assert_eq!(csv.lines().count(), 1 + record.results.len());
    let columns = csv.lines().next().expect("a header").split(',').count();
    assert!(csv.lines().all(|l| l.split(',').count() == columns), "{csv}");
}
