//! The prover against the textbook proof, and its behaviour.
#![forbid(unsafe_code)]

use super::plan::{self, Parameters};
use super::*;
use crate::Strict;
use crate::backend::Engine;
use crate::chain::{Chain, ChainError};
use crate::spec;
use crate::verify::{Limits, Question, verify_with_b};

fn engine() -> Engine {
    Engine::best()
}

fn task(bits: usize, iterations: u64, segments: &[u64]) -> Task {
    let d = Discriminant::from_seed(b"a prover's test", bits).expect("a discriminant");
    let x = Form::generator(&d).expect("a generator");
    Task { segments: segments.to_vec(), ..Task::new(d, x, iterations) }
}

#[test]
fn proofs_are_those_of_the_books() {
    for (bits, iterations, segments) in [
        (1024, 3000, &[][..]),
        (1024, 3000, &[1000, 1, 999]),
        (512, 5001, &[700, 41]),
        (256, 100, &[]),
        (64, 400, &[10]),
        (2048, 333, &[100]),
        (1024, 1, &[]),
        (1024, 2, &[1]),
    ] {
        let task = task(bits, iterations, segments);
        let expected = spec::prove(&task).expect("a proof");
        for threads in [1, 2, 5] {
            // Little memory: many passes.
            for memory in [0, 5000, 1 << 20] {
                let options = Options::new(engine()).threads(threads).memory(memory);
                let case = format!("{bits} bits, {iterations} squarings, {threads} threads, {memory} bytes");
                let proved = prove(&task, &options, &mut |_| true);
                assert!(proved.is_ok_and(|proved| proved.proof == expected), "{case}");
            }
        }
        let evaluated = evaluate(&task, &Options::new(engine()), &mut |_| true).expect("a result");
        assert!(evaluated.y == expected.y, "{bits} bits, {iterations}");
    }
}

#[test]
fn wishes_that_make_no_sense_are_refused() {
    for (iterations, segments) in [(10, &[10][..]), (10, &[11]), (10, &[0]), (10, &[u64::MAX, 11])] {
        let refused = prove(&task(256, iterations, segments), &Options::new(engine()), &mut |_| true);
        assert!(matches!(refused, Err(ProverError::Segments)), "{segments:?}");
    }
    let refused = prove(&task(256, 0, &[]), &Options::new(engine()), &mut |_| true);
    assert!(matches!(refused, Err(ProverError::NoIterations)));
    let mut foreign = task(256, 10, &[]);
    foreign.x = task(512, 10, &[]).x;
    for outcome in [
        prove(&foreign, &Options::new(engine()), &mut |_| true).err(),
        evaluate(&foreign, &Options::new(engine()), &mut |_| true).err(),
    ] {
        assert!(matches!(outcome, Some(ProverError::Chain(ChainError::Form))), "{outcome:?}");
    }
}

#[test]
fn the_observer_sees_every_phase_and_can_stop_in_each() {
    let task = task(512, 40_000, &[10_000]);
    let mut seen = Vec::new();
    let options = Options::new(engine()).threads(2);
    prove(&task, &options, &mut |progress| {
        assert!(progress.done <= progress.total, "{progress:?}");
        seen.push(progress.phase);
        true
    })
    .expect("a proof");
    seen.dedup();
    assert_eq!(seen.first(), Some(&Phase::Squaring));
    assert!(seen.contains(&Phase::Proving), "{seen:?}");
    for phase in [Phase::Squaring, Phase::Proving] {
        let stopped = prove(&task, &options, &mut |progress| progress.phase != phase);
        assert!(matches!(stopped, Err(ProverError::Cancelled { .. })), "{phase}: {stopped:?}");
    }
    let stopped = evaluate(&task, &options, &mut |progress| progress.done < 20_000);
    assert!(matches!(stopped, Err(ProverError::Cancelled { after: 20_480, .. })), "{stopped:?}");
}

#[test]
fn windows_are_chosen_for_cost_and_memory() {
    assert_eq!(plan::choose(1_000_000, usize::MAX), Parameters { k: 13, l: 1 });
    assert_eq!(plan::choose(1, usize::MAX), Parameters { k: 1, l: 1 });
    for (iterations, most) in [(1u64 << 30, 100_000usize), (1 << 40, 1 << 20), (12345, 10), (500, 0)] {
        let Parameters { k, l } = plan::choose(iterations, most);
        let kept = iterations.div_ceil(u64::from(k) * u64::from(l));
        assert!(kept <= most.max(1) as u64, "{iterations} with {most}: {k}, {l}");
    }
}

#[test]
fn two_thirds_are_cut_as_chiavdf_cuts_them() {
    assert_eq!(task(64, 40_000, &[]).in_two_thirds().segments, [26_600, 8_900]);
    assert_eq!(task(64, 4_000_000, &[]).in_two_thirds().segments, [2_666_600, 888_900]);
}

#[test]
fn a_flipped_bit_raises_the_alarm() {
    for at in [1, 500, 1700, 2999] {
        let mut options = Options::new(engine());
        options.fault = Some((at, |chain| chain.corrupt(70)));
        let task = task(1024, 3000, &[1000]);
        for outcome in
            [prove(&task, &options, &mut |_| true).err(), evaluate(&task, &options, &mut |_| true).err()]
        {
            let Some(ProverError::Chain(ChainError::Corrupted { good })) = outcome else {
                panic!("{at}: {outcome:?}");
            };
            // `evaluate` squares many steps at a time, so the flip may come later than requested.
            assert!(good <= 3000, "{good}");
        }
    }
}

/// A fault that keeps the discriminant.
#[test]
fn a_wrong_element_of_the_group_is_not_proved() {
    fn astray(chain: &mut Chain) {
        let d = chain.discriminant();
        let form = chain.form().expect("right so far").compose(&Form::generator(d).expect("a generator"), d);
        *chain = Chain::resume(d, &form, chain.done(), chain.slow()).expect("a form of the group");
    }
    let task = task(256, 700, &[400]);
    for (at, wrong) in [(1, 0), (250, 0), (400, 0), (500, 1), (700, 1)] {
        let mut options = Options::new(engine());
        options.fault = Some((at, astray));
        let outcome = prove(&task, &options, &mut |_| true);
        assert!(
            matches!(outcome, Err(ProverError::Wrong { segment, .. }) if segment == wrong),
            "{at}: {outcome:?}"
        );
    }
}

#[test]
fn b_is_the_one_that_verification_finds() {
    for segments in [&[][..], &[100, 20]] {
        let task = task(512, 300, segments);
        let d = &task.discriminant;
        let proved = prove(&task, &Options::new(engine()), &mut |_| true).expect("a proof");
        let (x, proof) = (task.x.to_bytes(d), proved.proof.to_bytes(d));
        let question = Question { x: &x, proof: &proof, iterations: 300, depth: proved.proof.depth() };
        assert_eq!(verify_with_b(Strict, d, &question, &Limits::default()), Ok(proved.b));
    }
}
