//! The prover against the plain one, and its manners.
#![forbid(unsafe_code)]

use super::plan;
use super::*;
use crate::backend::Engine;
use crate::proof::{Parameters, prove_segments};

fn engine() -> Engine {
    Engine::best()
}

fn job(bits: usize, iterations: u64, segments: &[u64]) -> Job {
    let d = Discriminant::from_seed(b"a prover's test", bits).expect("a discriminant");
    let x = Form::generator(&d).expect("a generator");
    Job { segments: segments.to_vec(), ..Job::new(d, x, iterations) }
}

#[test]
fn proofs_are_those_of_the_plain_prover() {
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
        let job = job(bits, iterations, segments);
        let expected = prove_segments(&job.discriminant, &job.x, iterations, segments).expect("a proof");
        for threads in [1, 2, 5] {
            // Little memory: many passes.
            for memory in [0, 5000, 1 << 20] {
                let options = Options::new(engine()).threads(threads).memory(memory);
                let case = format!("{bits} bits, {iterations} squarings, {threads} threads, {memory} bytes");
                let proved = prove(&job, &options, &mut |_| true);
                assert!(proved.is_ok_and(|proved| proved.proof == expected), "{case}");
            }
        }
        let evaluated = evaluate(&job, &Options::new(engine()), &mut |_| true).expect("a result");
        assert!(evaluated.y == expected.y, "{bits} bits, {iterations}");
    }
}

#[test]
fn wishes_that_make_no_sense_are_refused() {
    for (iterations, segments) in [(10, &[10][..]), (10, &[11]), (10, &[0]), (10, &[u64::MAX, 11])] {
        let refused = prove(&job(256, iterations, segments), &Options::new(engine()), &mut |_| true);
        assert!(matches!(refused, Err(ProverError::Segments)), "{segments:?}");
    }
    let refused = prove(&job(256, 0, &[]), &Options::new(engine()), &mut |_| true);
    assert!(matches!(refused, Err(ProverError::NoIterations)));
    let mut foreign = job(256, 10, &[]);
    foreign.x = job(512, 10, &[]).x;
    for outcome in [
        prove(&foreign, &Options::new(engine()), &mut |_| true).err(),
        evaluate(&foreign, &Options::new(engine()), &mut |_| true).err(),
    ] {
        assert!(matches!(outcome, Some(ProverError::Chain(crate::chain::ChainError::Form))), "{outcome:?}");
    }
}

#[test]
fn the_observer_sees_every_phase_and_can_stop_in_each() {
    let job = job(512, 40_000, &[10_000]);
    let mut seen = Vec::new();
    let options = Options::new(engine()).threads(2);
    prove(&job, &options, &mut |progress| {
        assert!(progress.done <= progress.total, "{progress:?}");
        seen.push(progress.phase);
        true
    })
    .expect("a proof");
    seen.dedup();
    assert_eq!(seen.first(), Some(&Phase::Squaring));
    assert!(seen.contains(&Phase::Proving), "{seen:?}");
    for phase in [Phase::Squaring, Phase::Proving] {
        let stopped = prove(&job, &options, &mut |progress| progress.phase != phase);
        assert!(matches!(stopped, Err(ProverError::Cancelled { .. })), "{phase}: {stopped:?}");
    }
    let stopped = evaluate(&job, &options, &mut |progress| progress.done < 20_000);
    assert!(matches!(stopped, Err(ProverError::Cancelled { after: 20_480 })), "{stopped:?}");
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
    assert_eq!(job(64, 40_000, &[]).in_two_thirds().segments, [26_600, 8_900]);
    assert_eq!(job(64, 4_000_000, &[]).in_two_thirds().segments, [2_666_600, 888_900]);
}

#[test]
fn a_flipped_bit_raises_the_alarm() {
    for fault in [1, 500, 1700, 2999] {
        let mut options = Options::new(engine());
        options.fault = Some(fault);
        let job = job(1024, 3000, &[1000]);
        for outcome in
            [prove(&job, &options, &mut |_| true).err(), evaluate(&job, &options, &mut |_| true).err()]
        {
            let Some(ProverError::Chain(crate::chain::ChainError::Corrupted { good })) = outcome else {
                panic!("{fault}: {outcome:?}");
            };
            // `evaluate` takes its steps together, so that the flip may come later than asked for.
            assert!(good <= 3000, "{good}");
        }
    }
}
