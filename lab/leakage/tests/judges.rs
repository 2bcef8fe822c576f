//! The judges over whole subjects: sound ones are clean, and each kind of leak in one is found by the means that must find it.
//! Single steps alone; nothing here is timed.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use lanework_leakage::evidence::{Finding, Job, Subject};
use lanework_leakage::judge::{self, Extent};
use lanework_leakage::plants::{self, Gives};
use lanework_leakage::traced::to_be_judged;

/// Mixes a secret of sixteen bytes, then runs a plant on it.
struct Mix {
    secret: [u8; 16],
    made: Vec<u8>,
    then: fn(&[u8]),
}

impl Job for Mix {
    fn run(&mut self) {
        let mut sum = 7u8;
        for byte in self.secret {
            sum = sum.wrapping_mul(5).wrapping_add(std::hint::black_box(byte));
        }
        (self.then)(&self.secret);
        self.made = vec![sum];
    }

    fn answer(&self) -> Vec<u8> {
        self.made.clone()
    }

    fn secret(&self) -> &[u8] {
        &self.secret
    }
}

fn subject(tier: &'static str, then: fn(&[u8])) -> Subject {
    subject_of(6, tier, then)
}

fn subject_of(cases: usize, tier: &'static str, then: fn(&[u8])) -> Subject {
    Subject::new("test/mix", tier, cases, move |case| {
        let secret = core::array::from_fn(|i| [0, 255, 0x3c, 0x81, 7, 90][case] ^ (i as u8 >> 3));
        Mix { secret, made: Vec::new(), then }
    })
}

/// Whether single steps are available here; fails where they are required and are not.
fn available(finding: &Finding) -> bool {
    let missing = matches!(finding, Finding::NotApplicable(_));
    let required = std::env::var_os("LANEWORK_REQUIRE_TRACE").is_some_and(|v| v == "1");
    assert!(!(missing && required), "LANEWORK_REQUIRE_TRACE=1, and {finding:?}");
    !missing
}

#[test]
fn judges_find_what_is_traced_and_planted() {
    if !to_be_judged("judges_find_what_is_traced_and_planted") {
        return;
    }
    let extent = Extent::default();
    for plant in plants::ALL.into_iter().filter(|plant| plants::runs(plant.tier)) {
        let subject = subject(plant.tier, plant.run);
        let row = judge::traced(&subject, extent);
        if !available(&row.finding) {
            return;
        }
        match (&row.finding, plant.gives) {
            (Finding::Clean, Gives::Nothing) => {}
            (Finding::Leak(said), gives) if gives != Gives::Nothing => {
                assert!(said.contains(plant.function), "{}: {said}", plant.function);
            }
            (other, _) => panic!("{}: {other:?}", plant.function),
        }
        let row = judge::instructions(&subject, extent);
        let by_list = ["divide_byte", "load_by_lanes", "gather_wide", "scatter_wide", "store_packed"];
        match (&row.finding, by_list.contains(&plant.function)) {
            (Finding::Clean, false) => {}
            (Finding::Leak(said), true) => {
                assert!(said.contains(plant.function), "{}: {said}", plant.function);
            }
            (other, _) => panic!("{}: {other:?}", plant.function),
        }
    }
    for row in judge::traced_plants(extent).into_iter().chain(judge::instruction_plants(extent)) {
        assert!(row.right, "{row:?}");
    }
}

#[test]
fn a_run_that_traced_is_too_long_is_not_called_clean() {
    if !to_be_judged("a_run_that_traced_is_too_long_is_not_called_clean") {
        return;
    }
    let row = judge::traced(
        &subject("portable", plants::select_by_byte),
        Extent { steps: 20, ..Extent::default() },
    );
    assert!(matches!(row.finding, Finding::NotApplicable(_)), "{row:?}");
}

/// A check needs two secrets to compare. With one it gives no verdict, even for code that leaks.
#[test]
fn one_secret_is_not_judged() {
    let leaks =
        plants::ALL.into_iter().find(|p| p.gives == Gives::Way && p.tier == "portable").expect("a leak");
    let alone = subject_of(1, "portable", leaks.run);
    let few = Extent { cases: 1, ..Extent::default() };
    let limited = subject_of(6, "portable", leaks.run);
    for row in [
        judge::traced(&alone, Extent::default()),
        judge::instructions(&alone, Extent::default()),
        judge::traced(&limited, few),
        judge::instructions(&limited, few),
    ] {
        let why = "runs on fewer than two secrets say nothing";
        assert_eq!(row.finding, Finding::NotApplicable(why.into()), "{row:?}");
        assert!(!row.finding.fails());
    }
}
