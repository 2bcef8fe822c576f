//! The same ways and the same memory for different secrets, on the processor itself and on every backend that it has: each
//! operation is run for several seeds, messages' randomizers included, and compared instruction by instruction.
//!
//! The public seed and the salt differ from case to case like the secrets: nothing may depend on them either. Released is
//! alone the number of restarts, so that cases are taken which need none.
#![forbid(unsafe_code)]

use std::cell::Cell;

use lanework_cpu::Settings;
use lanework_leakage::plants::BRANCH;
use lanework_leakage::traced::{Kind, Report, Tally, compared, to_be_judged};
use lanework_leakage::valgrind::say;

use super::plants::{self, Plant};
use super::{MESSAGE, showing};
use crate::backend::{BACKENDS, Kernels, SetKernels, portable};
use crate::expanded::SigningKey;
use crate::hazmat::sign_with_randomizer;
use crate::keys::{SecretKey, SignOptions};
use crate::params::{Params, Round, Set};
use crate::scheme::Engine;
use crate::sys::Block;

const OPERATIONS: [&str; 4] = ["keygen", "expand", "sign", "sign expanded"];

/// Secrets that each operation is compared for.
const SECRETS: usize = 6;

/// A case's secret seed and randomizer. The first two are as unlike as bytes can be.
fn secrets(params: &Params, number: usize) -> (Vec<u8>, Vec<u8>) {
    let mut x = number as u64;
    let mut bytes = |length: usize| -> Vec<u8> {
        // Memory is asked for alike in all cases, so that addresses are the same.
        let mut bytes = vec![0; length];
        for byte in &mut bytes {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = [0, 255, (x >> 56) as u8][number.min(2)];
        }
        bytes
    };
    (bytes(params.secret_key_bytes()), bytes(params.salt_bytes))
}

fn sign(engine: Engine, secret: &SecretKey, randomizer: &[u8]) -> Vec<u8> {
    let options = SignOptions { verify: false };
    sign_with_randomizer(&(engine, secret), MESSAGE, randomizer, options).unwrap().into_bytes()
}

thread_local! {
    static ATTEMPTS: Cell<usize> = const { Cell::new(0) };
    static SOLVING: Cell<usize> = const { Cell::new(0) };
}

fn counted(m: &[Block], u: &[Block], t: &[u8], r: &[u8], x: &mut [u8], scratch: &mut [Block]) -> bool {
    ATTEMPTS.set(ATTEMPTS.get() + 1);
    portable::KERNELS.sets[SOLVING.get()].solve(m, u, t, r, x, scratch)
}

/// The first numbers whose secrets sign without a restart.
fn cases(params: &'static Params, count: usize) -> Vec<usize> {
    let sets = portable::KERNELS.sets.map(|set| SetKernels { solve: counted, ..set });
    let kernels = Box::leak(Box::new(Kernels { expand: portable::KERNELS.expand, sets }));
    let counting = Engine { name: "portable", kernels };
    SOLVING.set(params.index());
    let attempts = |number: &usize| {
        let (seed, randomizer) = secrets(params, *number);
        ATTEMPTS.set(0);
        sign(counting, &SecretKey::from_seed(params, &seed).unwrap(), &randomizer);
        ATTEMPTS.get()
    };
    (0..1000).filter(|number| attempts(number) == 1).take(count).collect()
}

/// What an operation works on and makes.
struct Work {
    secret: SecretKey,
    randomizer: Vec<u8>,
    expanded: Option<SigningKey>,
    made: Vec<u8>,
}

fn prepare(engine: Engine, params: &'static Params, number: usize, what: &str) -> Work {
    let (seed, randomizer) = secrets(params, number);
    let secret = SecretKey::from_seed(params, &seed).unwrap();
    let expanded = (what == "sign expanded").then(|| SigningKey::new(engine, &secret));
    Work { secret, randomizer, expanded, made: Vec::new() }
}

fn operate(engine: Engine, work: &mut Work, what: &str) {
    let options = SignOptions { verify: false };
    match (what, &work.expanded) {
        ("keygen", _) => work.made = work.secret.public_key(engine).as_bytes().to_vec(),
        ("expand", _) => work.expanded = Some(SigningKey::new(engine, &work.secret)),
        (_, Some(key)) => {
            let signature = sign_with_randomizer(key, MESSAGE, &work.randomizer, options);
            work.made = signature.unwrap().into_bytes();
        }
        (_, None) => work.made = sign(engine, &work.secret, &work.randomizer),
    }
}

fn compare(engine: Engine, params: &'static Params, what: &str, cases: &[usize]) -> Option<Report> {
    let report = compared(
        &format!("{}, {}, {what}", engine.name(), params.name()),
        cases.len(),
        |case| prepare(engine, params, cases[case], what),
        |work| operate(engine, work, what),
        |work| work.made.clone(),
    )?;
    // The trace is of what it seems to be of: what came out is right.
    for (case, answer) in &report.answers {
        let mut work = prepare(engine, params, cases[*case], what);
        operate(engine, &mut work, what);
        assert!(*answer == work.made, "{what} gives something else when it is traced");
    }
    Some(report)
}

/// The tiers of this process.
fn engines() -> Vec<Engine> {
    let settings = Settings::from_env().unwrap();
    let cpu = settings.cpu();
    let engines = Engine::all(&cpu).filter_map(|engine| match engine {
        Ok(engine) => Some(engine),
        Err(why) => {
            assert!(!settings.requires(&why.what), "LANEWORK_REQUIRE names {why}");
            say(&format!("skipped {} under single steps: {why}", why.what));
            None
        }
    });
    engines.collect()
}

#[test]
fn every_secret_takes_the_same_way() {
    if !to_be_judged("every_secret_takes_the_same_way") {
        return;
    }
    let params = Params::of(Round::Three, Set::Mayo1);
    let cases = cases(params, SECRETS);
    assert_eq!(cases.len(), SECRETS);
    let (tally, mut leaking, mut covered) = (Tally::default(), Vec::new(), Vec::new());
    for engine in engines() {
        for what in OPERATIONS {
            let Some(report) = compare(engine, params, what, &cases) else { return };
            tally.count(&report);
            println!(
                "{}: {what}: {} instructions, {} with memory",
                engine.name(),
                report.steps,
                report.touched
            );
            assert!(report.steps > 10_000 && report.cases == SECRETS - 1, "too little was compared");
            leaking.extend(report.differences.iter().map(|d| format!("{}, {what}: {d}", engine.name())));
        }
        covered.push(engine.name());
    }
    assert!(leaking.is_empty(), "secrets decide on ways or memory:\n{}", leaking.join("\n"));
    assert_eq!(covered.is_empty(), BACKENDS.is_empty());
    say(&format!(
        "under single steps: {tally} of lanework-mayo without a difference, on {}",
        covered.join(", ")
    ));
}

/// Whether a difference is the planted one.
fn is_named(report: &Report, plant: &Plant) -> bool {
    report.differences.iter().any(|d| {
        let kind = if plant.complaint == BRANCH {
            matches!(d.kind, Kind::Way(_))
        } else {
            matches!(d.kind, Kind::Memory(_))
        };
        kind && d.place.is_in(plant.function)
    })
}

#[test]
fn planted_leaks_are_found_on_the_processor() {
    if !to_be_judged("planted_leaks_are_found_on_the_processor") {
        return;
    }
    let params = plants::params();
    let cases = cases(params, 3);
    let mut found = 0;
    // The tier that valgrind cannot judge; the others have their plants there.
    for engine in engines().into_iter().filter(|engine| engine.name() == "avx512") {
        for plant in plants::of(engine.name()) {
            let planted = Engine { name: plant.tier, kernels: plant.kernels };
            for what in showing(&plant) {
                let Some(report) = compare(planted, params, what, &cases) else { return };
                let says: Vec<String> = report.differences.iter().map(ToString::to_string).collect();
                assert!(is_named(&report, &plant), "{} in {}: {says:#?}", plant.function, plant.kernel);
                found += 1;
            }
        }
    }
    say(&format!("under single steps: {found} planted leaks of lanework-mayo found, and named"));
}
