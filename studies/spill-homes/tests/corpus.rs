//! Rewrites of other people's assembly. A rewrite that moves slots without checking what else touches them passes random testing and is
//! refused; an accepted rewrite gives the same results.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use lanework_cpu::Settings;
use lanework_respill::case::{Case, poison};
use lanework_respill::load::{Externals, Loaded};
use lanework_respill::plan::{Policy, Wish, plan};
use lanework_respill::rewrite::{Options as Rewriting, rewrite};
use lanework_respill::slots::Class;
use lanework_respill::validate::{Options, validate};
use lanework_respill::{Analysis, Program};
use lanework_spill::settle::{Settled, settle};
use lanework_spill::{Homes, unit};
use study_spill_homes::packages::Packages;

const DEC: &str = "\
call jade_kem_kyber_kyber768_amd64_ref_keypair_derand(pk: out 1184, sk: out 2400, seed: random 64)
call jade_kem_kyber_kyber768_amd64_ref_enc_derand(ct: out 1088, ss: out 32, pk, coins: random 32)
measure jade_kem_kyber_kyber768_amd64_ref_dec(got: out 32, ct, sk)
";
const RANDOM_DEC: &str =
    "measure jade_kem_kyber_kyber768_amd64_ref_dec(got: out 32, ct: random 1088, sk: random 2400)";
const MULX: &str = "measure jade_scalarmult_curve25519_amd64_mulx(q: out 32, n: random 32, p: random 32)";

/// A file of the corpus; a machine without it skips with a reason, unless skips are forbidden.
fn corpus(package: &str, path: &str) -> Option<String> {
    match Packages::find().and_then(|packages| packages.assembly(package, path)) {
        Ok(assembly) => Some(assembly.text),
        Err(why) => {
            assert!(std::env::var("LANEWORK_REQUIRE_CORPUS").as_deref() != Ok("1"), "{why}");
            println!("SKIPPED: {why}");
            None
        }
    }
}

/// Inputs of a case on which another version leaves other bytes. Each run is compared with the original's, as by a tester who knows
/// nothing of stacks, or with the dead stack filled in between.
fn differing(original: &Loaded, other: &Loaded, case: &str, inputs: u64, poisoned: bool) -> u64 {
    let case = Case::parse(case).expect("a case");
    let mut arena = case.arena();
    let mut out = 0;
    for input in 0..inputs {
        let fill = |seed: u64| if poisoned { poison(seed) } else { Vec::new() };
        let ready = case.prepare(original, &mut arena, input).expect("its functions are there");
        let before = arena.contents().to_vec();
        let one = ready.call(&fill(2 * input));
        let after = arena.contents().to_vec();
        arena.restore(&before);
        let ready = case.ready_in(other, &mut arena).expect("its functions are there");
        let two = ready.call(&fill(2 * input + 1));
        out += u64::from(after != arena.contents() || one.result != two.result);
    }
    out
}

fn loaded(text: &str) -> Loaded {
    let program = Program::new("test.s", text).unwrap_or_else(|e| panic!("{e}"));
    Loaded::new(&program, &Externals::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// A text of the corpus, the function in question, and the call.
struct Subject {
    analysis: Analysis,
    function: usize,
    case: Case,
}

impl Subject {
    fn new(text: &str, case: &str) -> Subject {
        let analysis = Analysis::new(Program::new("test.s", text).unwrap_or_else(|e| panic!("{e}")));
        let case = Case::parse(case).expect("a case");
        let function = unit(&analysis, case.measured()).unwrap_or_else(|e| panic!("{}", e.message()));
        Subject { analysis, function, case }
    }

    /// Moves these slots, or all of the function's and its callees', whatever else touches them.
    fn wish(&self, home: &str, only: BTreeSet<(usize, usize)>) -> Wish {
        let reached: BTreeSet<usize> =
            self.analysis.below(self.function).into_iter().chain([self.function]).collect();
        let slots = |n: usize| (0..self.analysis.units[n].slots.len()).map(move |s| (n, s));
        let outside = (0..self.analysis.units.len()).filter(|n| !reached.contains(n)).flat_map(slots);
        Wish {
            banks: home.parse::<Homes>().expect("homes").0,
            policy: Policy::Hottest,
            counts: None,
            stay: outside.collect(),
            only,
            operands: false,
        }
    }

    /// The function's own spilled values, not those of what it calls.
    fn own_values(&self) -> BTreeSet<(usize, usize)> {
        let slots = self.analysis.units[self.function].slots.iter().enumerate();
        let values = slots.filter(|(_, slot)| matches!(slot.class, Class::Spill | Class::Pointer));
        values.map(|(s, _)| (self.function, s)).collect()
    }

    /// The rewrite without checks.
    fn naive(&self, wish: &Wish) -> Program {
        let made = rewrite(&self.analysis, &plan(&self.analysis, wish), Rewriting::default())
            .unwrap_or_else(|e| panic!("{e}"));
        Program::new("naive.s", made.text).unwrap_or_else(|e| panic!("{e}"))
    }

    /// The naive rewrite is refused, and the fault is named. The rewrite accepted instead moves fewer slots.
    fn refused_and_fixed(&self, naive: &Program) -> Loaded {
        let cases = std::slice::from_ref(&self.case);
        let options = Options { inputs: 5, traced: 1, ..Options::default() };
        let refused = validate(&self.analysis, naive, cases, &options).expect_err("it is wrong");
        let refused = refused.refused().unwrap_or_else(|| panic!("{refused}"));
        let aliased = refused.reasons.iter().filter(|reason| reason.name() == "aliased").count();
        assert!(aliased > 0, "{refused}");
        println!("{}: {aliased} slots refused since something else touches them", self.case.measured());
        let options = Options { inputs: 20, traced: 1, ..Options::default() };
        let wish = self.wish("mm", BTreeSet::new());
        let features = Settings::default().cpu().features();
        let settled = settle(features, &self.analysis, &wish, cases, &options);
        let Settled::Moved(checked) = settled.unwrap_or_else(|e| panic!("{}", e.message())) else {
            panic!("nothing can move")
        };
        assert!(!checked.dropped.is_empty(), "all slots moved");
        loaded(&checked.text)
    }
}

#[test]
fn a_naive_rewrite_of_kyber_decapsulation_passes_random_tests_and_is_refused() {
    let Some(text) = corpus("oqs-sys", "liboqs/src/kem/kyber/libjade_kyber768_ref/kem.S") else { return };
    let subject = Subject::new(&text, DEC);
    let naive = subject.naive(&subject.wish("mm,xmm", subject.own_values()));
    let (original, other) = (loaded(&text), loaded(naive.text.text()));
    // The case's own steps run the original before each: valid ciphertexts, and still nothing to see.
    println!("kyber: valid ciphertexts that differ: {}", differing(&original, &other, DEC, 20, false));
    assert_eq!(differing(&original, &other, RANDOM_DEC, 20, false), 0, "random inputs say nothing");
    assert_eq!(differing(&original, &other, DEC, 20, true), 20, "and yet all is wrong");
    let checked = subject.refused_and_fixed(&naive);
    assert_eq!(differing(&original, &checked, DEC, 20, true), 0);
}

#[test]
fn a_naive_rewrite_of_x25519_passes_random_tests_and_is_refused() {
    let Some(text) = corpus("libjade-sys", "jazz/x25519_mulx.s") else { return };
    if !std::arch::is_x86_feature_detected!("bmi2") || !std::arch::is_x86_feature_detected!("adx") {
        println!("SKIPPED: this processor has no MULX");
        return;
    }
    let subject = Subject::new(&text, MULX);
    let naive = subject.naive(&subject.wish("mm", BTreeSet::new()));
    let (original, other) = (loaded(&text), loaded(naive.text.text()));
    assert_eq!(differing(&original, &other, MULX, 20, false), 0, "random inputs say nothing");
    assert_eq!(differing(&original, &other, MULX, 20, true), 20, "and yet all is wrong");
    let checked = subject.refused_and_fixed(&naive);
    assert_eq!(differing(&original, &checked, MULX, 20, true), 0);
}
