//! Real subjects: a MAYO verification and Magma in CTR mode, each call repeated. A slowdown is more of the same calls.
//!
//! A few instructions behind a call would overlap with it on an out-of-order core, and cost less than their count. Another call
//! costs what every call costs.
#![forbid(unsafe_code)]

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use crate::subjects::{joined, variants};
use lanework_mayo::{Params, Round, Set};
use lanework_race::gate::{Gate, GateError};
use lanework_race::subject::{Facts, Runnable, Subject, Unavailable, Variant};
use lanework_suite::{Context, magma, mayo};

/// Work that all variants share, its keys and buffers included: another place in memory can change its time by more than 0.3 %.
type Shared = Rc<RefCell<Box<dyn Runnable>>>;

/// Work that is done `calls` times in each iteration.
struct Repeated {
    work: Shared,
    calls: u64,
}

impl Runnable for Repeated {
    fn run(&mut self, iterations: u64) {
        self.work.borrow_mut().run(iterations * self.calls);
    }

    fn facts(&self) -> Facts {
        self.work.borrow().facts()
    }
}

/// The variant `backend` of `raced`, repeated as often as each of `variants` says. The gate is that of `raced`.
fn repeated(
    raced: Subject,
    backend: Result<String, String>,
    variants: impl Iterator<Item = (String, u64)>,
) -> Subject {
    let path = format!("self-check/{}", raced.path());
    let raced = Rc::new(raced);
    let behind = Rc::clone(&raced);
    let gate = Gate::new(move || match behind.gate().pass() {
        Ok(passed) => Ok(passed.rows().to_vec()),
        Err(GateError::Failed(row)) => Ok(vec![row]),
        Err(other) => Err(other.to_string()),
    });
    let prepare = move || {
        let backend = backend.clone().map_err(Unavailable::because)?;
        let mut all = std::iter::once(raced.baseline()).chain(raced.challengers());
        let found = all.find(|variant| variant.name() == backend);
        let none = || Unavailable::because(format!("{} has no variant '{backend}'", raced.path()));
        found.ok_or_else(none)?.prepare()
    };
    let (prepare, shared) = (Rc::new(prepare), Rc::new(OnceCell::<Shared>::new()));
    let all = variants.map(|(name, calls)| {
        let (prepare, shared) = (Rc::clone(&prepare), Rc::clone(&shared));
        Variant::new(name, move || {
            let work = match shared.get() {
                Some(work) => Rc::clone(work),
                None => {
                    let work = prepare()?;
                    Rc::clone(shared.get_or_init(|| Rc::new(RefCell::new(work))))
                }
            };
            Ok(Box::new(Repeated { work, calls }) as Box<dyn Runnable>)
        })
    });
    joined(path, gate, all)
}

/// The subjects with the calls in a unit of work, on the backends that the command would take. A thousandth of the calls is a whole
/// number, and all of them take some 20 ms: the laboratory puts an untimed call before a shorter one, which would take half of the time.
pub(crate) fn subjects(context: &Context) -> Vec<(Subject, u64)> {
    let verify = mayo::subject(context, Params::of(Round::DEFAULT, Set::Mayo1), mayo::Operation::Verify);
    let case = magma::Case { operation: magma::Operation::Ctr, messages: 1, bytes: 16_384 };
    let ctr = magma::subject(context, case);
    let settings = &context.settings;
    let mayo = lanework_mayo::Engine::choose(&context.cpu, settings.select("mayo"));
    let magma = lanework_magma::Engine::choose(&context.cpu, settings.select("magma"));
    let mayo = mayo.map(|engine| engine.name().to_owned()).map_err(|e| e.to_string());
    let magma = magma.map(|engine| engine.name().to_owned()).map_err(|e| e.to_string());
    let of = |raced, backend, calls| (repeated(raced, backend, variants(calls)), calls);
    vec![of(verify, mayo, 2000), of(ctr, magma, 4000)]
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use lanework_cpu::Settings;
    use lanework_race::clock::Clock;
    use lanework_race::gate::GateRow;
    use lanework_race::pairing::{Pinning, Plan};
    use lanework_race::race::in_process;
    use lanework_race::record::ResultRow;
    use lanework_race::stats::Rng;

    use super::*;
    use crate::subjects::{EQUALS, SIZES, slower};
    use crate::tally::{Held, Kind, Luck, Tally};

    const CALLS: u64 = 1000;

    /// Time that passes only by work: each call takes 5 us, and each run up to 0.05 % more or less than its calls.
    #[derive(Clone)]
    struct Work(Rc<Cell<u64>>, Rc<Cell<u64>>, Rc<RefCell<Rng>>);

    impl Work {
        fn new(seed: u64) -> Work {
            Work(Rc::default(), Rc::default(), Rc::new(Rng::new(seed).into()))
        }
    }

    impl Runnable for Work {
        fn run(&mut self, iterations: u64) {
            let jitter = self.2.borrow_mut().below(1001) as u64;
            self.0.set(self.0.get() + 5 * iterations * (999_500 + jitter) / 1000);
            self.1.set(self.1.get() + iterations);
        }

        fn facts(&self) -> Facts {
            Facts { backend: "work".into(), notes: Vec::new() }
        }
    }

    impl Clock for Work {
        fn now_ns(&self) -> u64 {
            self.0.get()
        }

        fn ticks(&self) -> Option<u64> {
            None
        }

        fn step_ns(&self) -> u64 {
            1
        }

        fn name(&self) -> &'static str {
            "work"
        }
    }

    /// The work as a subject: what is repeated.
    fn raced(work: &Work) -> Subject {
        let gate = Gate::new(|| {
            let row = |backend: &str| GateRow {
                what: "it counts".into(),
                backend: backend.into(),
                passed: 1,
                failed: 0,
                skipped: 0,
                why: String::new(),
            };
            Ok(vec![row("work")])
        });
        let work = work.clone();
        Subject::new("work", gate, Variant::new("work", move || Ok(Box::new(work.clone()))))
    }

    #[test]
    fn what_is_planted_is_exactly_that_many_more_calls() {
        let work = Work::new(1);
        let subject = repeated(raced(&work), Ok("work".into()), variants(CALLS));
        let calls = |variant: &Variant| {
            let before = work.1.get();
            variant.prepare().expect("work").run(2);
            work.1.get() - before
        };
        assert_eq!(calls(subject.baseline()), 2 * CALLS);
        let all: Vec<u64> = subject.challengers().map(calls).collect();
        assert_eq!(all[0], 2 * CALLS);
        for (size, found) in SIZES.into_iter().zip(&all[1..]) {
            assert_eq!((found - 2 * CALLS) * 1000, 2 * CALLS * size);
        }
        let missing = repeated(raced(&work), Ok("another".into()), variants(CALLS));
        assert!(missing.baseline().prepare().is_err_and(|e| e.why.contains("'another'")));
    }

    /// Races of the work, and what the study says of them.
    fn held(variants: &[(String, u64)]) -> (Held, Vec<String>) {
        let rows: Vec<ResultRow> = (0..10)
            .flat_map(|race| {
                let work = Work::new(race + 1);
                let subject = repeated(raced(&work), Ok("work".into()), variants.iter().cloned());
                let plan = Plan { max_pairs: 20, pinning: Pinning::Off, seed: race, ..Plan::default() };
                in_process(&subject, &plan, &work).expect("a race").results
            })
            .collect();
        let tally = |name: &str, planted: f64| {
            Tally::of(&rows, name, planted, Some(1.0 / (1.0 + planted))).expect("races")
        };
        let kind = Kind {
            name: "the work".into(),
            equals: tally(EQUALS[1], 0.0),
            planted: vec![tally(&slower(3), 0.003)],
        };
        kind.verdict(&Luck { alpha: 0.01, luck: 0.005 }, 0.003)
    }

    #[test]
    fn planted_calls_are_found_and_those_left_out_are_not() {
        let all: Vec<_> = variants(CALLS).collect();
        let (all_held, lines) = held(&all);
        assert_eq!(all_held, Held::Yes, "{lines:?}");
        // Too few, or none at all, although the study says 0.3 %.
        for left_out in [CALLS, CALLS + 1] {
            let mut less = all.clone();
            less.iter_mut().filter(|(name, _)| *name == slower(3)).for_each(|(_, calls)| *calls = left_out);
            let (less_held, lines) = held(&less);
            assert_eq!(less_held, Held::No, "{left_out} calls: {lines:?}");
            assert!(lines[1].contains("DOES NOT HOLD"), "{lines:?}");
        }
        // Equals of which one works more.
        let mut unequal = all.clone();
        unequal.iter_mut().filter(|(name, _)| name == EQUALS[1]).for_each(|(_, calls)| *calls += 3);
        let (unequal_held, lines) = held(&unequal);
        assert!(unequal_held == Held::No && lines[0].contains("DOES NOT HOLD"), "{lines:?}");
    }

    #[test]
    fn the_subjects_run_on_the_best_backends_behind_their_own_gates() {
        let context = Context::new(Settings::default());
        let all = subjects(&context);
        let paths: Vec<&str> = all.iter().map(|(subject, _)| subject.path()).collect();
        assert_eq!(paths, ["self-check/mayo/round3/mayo1/verify", "self-check/magma/ctr/16384"]);
        for (subject, calls) in &all {
            assert!(calls.is_multiple_of(1000), "{calls}");
            let passed = subject.gate().pass().expect("it passes");
            let work = subject.baseline().prepare().expect("a backend");
            let backend = work.facts().backend;
            assert!(passed.rows().iter().any(|row| row.backend == backend && row.passed > 0), "{backend}");
        }
    }
}
