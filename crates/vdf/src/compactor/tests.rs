//! Gathered proofs against those of the prover, and behaviour.
#![forbid(unsafe_code)]

use super::*;
use crate::prover::checkpoint::Difference;
use crate::prover::{Task, prove};
use crate::{Engine, spec};
use lanework_cpu::Cpu;

fn claims(bits: usize, iterations: &[u64]) -> Claims {
    let d = Discriminant::from_seed(b"a compactor's test", bits).expect("a discriminant");
    let x = Form::generator(&d).expect("a generator");
    let claim = |&iterations: &u64| {
        let mut chain = Chain::new(&d, &x).expect("a form of d");
        chain.square(iterations).expect("no fault");
        Claim { iterations, y: chain.form().expect("a form of d") }
    };
    let claims = iterations.iter().map(claim).collect();
    Claims { discriminant: d, x, claims }
}

/// The outcomes in the claims' order; each comes once.
fn outcomes(claims: &Claims, options: &Options<'_>) -> Result<Vec<Outcome>, ProverError> {
    let mut out = vec![None; claims.claims.len()];
    compact(claims, options, &mut |_| true, &mut |n, outcome| {
        assert!(out[n].replace(outcome).is_none(), "claim {n} twice");
    })?;
    Ok(out.into_iter().map(|outcome| outcome.expect("an outcome")).collect())
}

#[test]
fn proofs_are_those_of_the_prover() {
    for (bits, iterations) in [
        (1024, &[3000, 1, 2999, 264, 263, 3000, 1700][..]),
        (512, &[5001]),
        (256, &[100, 800, 267]),
        (64, &[400]),
        (2048, &[333, 310]),
    ] {
        let claims = claims(bits, iterations);
        let expected: Vec<_> = iterations
            .iter()
            .map(|&n| {
                spec::prove(&Task::new(claims.discriminant.clone(), claims.x.clone(), n)).expect("a proof")
            })
            .collect();
        for engine in Engine::available(&Cpu::detect()) {
            // The least memory: one bucket.
            for (threads, memory) in [(1, 256 << 20), (2, 256 << 20), (6, 5000), (1, 0)] {
                let options = Options::new(engine).threads(threads).memory(memory);
                let got = outcomes(&claims, &options).expect("outcomes");
                for (n, (outcome, proof)) in got.iter().zip(&expected).enumerate() {
                    let case =
                        format!("{}, {bits} bits, {threads} threads, {memory} bytes, {n}", engine.name());
                    assert!(matches!(outcome, Outcome::Proved(got) if got.0 == *proof), "{case}");
                }
            }
        }
    }
}

/// More threads than buckets, and more than any system has.
#[test]
fn any_number_of_threads_is_possible() {
    let claims = claims(256, &[3000, 100, 2999]);
    let expected = outcomes(&claims, &Options::default().threads(1)).expect("outcomes");
    for threads in [0, 1000, usize::MAX / 2, usize::MAX] {
        let options = Options { threads, ..Options::default() };
        let got = outcomes(&claims, &options).expect("outcomes");
        assert!(got == expected, "{threads} threads");
    }
}

#[test]
fn a_longer_chain_gives_the_provers_bytes() {
    let claims = claims(1024, &[40_000, 65_536]);
    let options = Options::default();
    for (claim, outcome) in claims.claims.iter().zip(outcomes(&claims, &options).expect("outcomes")) {
        let task = Task::new(claims.discriminant.clone(), claims.x.clone(), claim.iterations);
        let proved = prove(&task, &options, &mut |_| true).expect("a proof");
        assert!(outcome == Outcome::Proved(Box::new((proved.proof, proved.b))), "{}", claim.iterations);
    }
}

#[test]
fn a_wrong_result_is_refused_and_the_others_are_proved() {
    let mut claims = claims(512, &[1000, 700, 300, 700]);
    let right = outcomes(&claims, &Options::default()).expect("outcomes");
    claims.claims[1].y = claims.claims[2].y.clone();
    for threads in [1, 3] {
        let got = outcomes(&claims, &Options::default().threads(threads)).expect("outcomes");
        assert_eq!(got[1], Outcome::Wrong);
        for n in [0, 2, 3] {
            assert!(got[n] == right[n] && got[n] != Outcome::Wrong, "{n}");
        }
    }
}

#[test]
fn wishes_that_make_no_sense_are_refused() {
    let good = claims(256, &[10]);
    let options = Options::default();
    let none = Claims { claims: Vec::new(), ..good.clone() };
    assert!(matches!(outcomes(&none, &options), Err(ProverError::NoIterations)));
    let mut zero = good.clone();
    zero.claims[0].iterations = 0;
    assert!(matches!(outcomes(&zero, &options), Err(ProverError::NoIterations)));
    let other = claims(512, &[10]);
    let foreign = Claims { x: other.x.clone(), ..good.clone() };
    let elsewhere = Claims { claims: other.claims, ..good };
    for claims in [foreign, elsewhere] {
        assert!(matches!(outcomes(&claims, &options), Err(ProverError::Chain(ChainError::Form))));
    }
}

#[test]
fn the_observer_can_stop_it() {
    let claims = claims(512, &[40_000, 4000]);
    for threads in [1, 2] {
        let options = Options::default().threads(threads);
        let mut came = Vec::new();
        let stopped = compact(&claims, &options, &mut |seen| seen.done < 20_000, &mut |n, _| came.push(n));
        assert!(matches!(stopped, Err(ProverError::Cancelled { after: 20_480, .. })), "{stopped:?}");
        assert_eq!(came, [1]);
    }
}

/// The chain has fewer squarings than the observer is called after, and very many products.
#[test]
fn with_many_claims_the_observer_is_called_all_the_same() {
    let one = claims(64, &[1500]);
    let right = outcomes(&one, &Options::default()).expect("outcomes").remove(0);
    let many = Claims { claims: vec![one.claims[0].clone(); 300], ..one };
    for threads in [1, 3] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state");
        let options = Options::default().checkpoint(&path).threads(threads);
        // Each time it may go on for longer.
        let (mut places, mut rounds) = (Vec::new(), 0);
        let ended = loop {
            let (mut calls, mut ended) = (0, vec![false; 300]);
            let mut observer = |progress: Progress| {
                calls += 1;
                places.push(progress.done);
                calls < 2 * rounds || progress.phase != Phase::Squaring
            };
            let done = compact(&many, &options, &mut observer, &mut |n, outcome| {
                assert!(outcome == right && !std::mem::replace(&mut ended[n], true), "claim {n}");
            });
            match done {
                Ok(_) => break ended,
                Err(ProverError::Cancelled { .. }) => rounds += 1,
                Err(e) => panic!("round {rounds}: {e}"),
            }
        };
        assert_eq!(ended, [true; 300]);
        // While the primes are found, between places, and between the ends, which are all at one place.
        places.sort_unstable();
        places.dedup();
        assert!(places.len() > 8 && rounds > 10, "{places:?}, {rounds} rounds");
        assert!(places.first() == Some(&0) && places.last() == Some(&1500), "{places:?}");
    }
}

/// Widths balance the products that fill buckets against those that empty them, within the memory.
#[test]
fn widths_are_chosen_for_cost_and_memory() {
    assert_eq!(buckets::width(1, usize::MAX), 2);
    assert_eq!(buckets::width(10_000_000, usize::MAX), 16);
    assert_eq!(buckets::width(u64::MAX, usize::MAX), 18);
    assert_eq!(buckets::width(u64::MAX, 0), 2);
    assert_eq!(buckets::width(u64::MAX, 8), 5);
    let bytes = [64, 512, 1024, 2048].map(Layout::bytes);
    assert!(bytes[..3] == [216; 3] && (600..700).contains(&bytes[3]), "{bytes:?} bytes a form");
}

/// Buckets and the forms that wait for them take no more than a claim's share, however many threads there are.
#[test]
fn what_waits_for_buckets_counts_as_memory() {
    assert_eq!(crew::waiting(1, 1 << 20), (64, 64));
    assert_eq!(crew::waiting(9, 1 << 20), (64, 512));
    assert_eq!(crew::waiting(9, 0), (1, 1));
    for threads in [0, 1, 2, 5, 9, 100, usize::MAX] {
        for share in (2..3000).chain([100_000, 1 << 20]) {
            let (each, all) = crew::waiting(threads, share);
            let count = buckets::count(buckets::width(u64::MAX, share - all));
            let ranges = crew::ranges(threads, &[count]);
            assert!(count + ranges * each <= share, "{threads} threads, room for {share}");
        }
    }
}

/// Stops after some squarings; returns the claims with an outcome by then.
fn part(claims: &Claims, options: &Options<'_>, until: u64) -> Vec<usize> {
    let mut came = Vec::new();
    let stopped = compact(claims, options, &mut |seen| seen.done < until, &mut |n, _| came.push(n));
    assert!(matches!(stopped, Err(ProverError::Cancelled { .. })), "{stopped:?}");
    came
}

#[test]
fn a_checkpoint_goes_on_where_it_was_and_gives_the_same() {
    let mut claims = claims(512, &[40_000, 6000, 5000, 39_000, 264]);
    claims.claims[2].y = claims.claims[4].y.clone();
    let expected = outcomes(&claims, &Options::default()).expect("outcomes");
    let folder = tempfile::tempdir().expect("a folder");
    for (i, threads) in [(0, [1, 3, 2]), (1, [2, 1, 4])] {
        let path = folder.path().join(i.to_string());
        let options = |n: usize| Options::default().checkpoint(&path).threads(threads[n]);
        assert_eq!(part(&claims, &options(0), 4096), [4]);
        // Earlier outcomes come again; widths are the file's, whatever memory is allowed now.
        let mut came = part(&claims, &options(1).memory(0), 20_000);
        came.sort_unstable();
        assert_eq!(came, [1, 2, 4]);
        assert!(outcomes(&claims, &options(2)).is_ok_and(|got| got == expected));
        let mut seen = Vec::new();
        let again = compact(&claims, &options(0), &mut |_| true, &mut |n, outcome| seen.push((n, outcome)));
        assert!(again.is_ok_and(|done| done.resumed == 40_000));
        assert!(seen.into_iter().all(|(n, outcome)| outcome == expected[n]));
    }
}

#[test]
fn a_checkpoint_is_checked() {
    let good = claims(256, &[9000, 300]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state");
    let options = Options::default().checkpoint(&path).threads(1);
    part(&good, &options, 4096);
    part(&good, &options, 8192);
    let whole = std::fs::read(&path).expect("a file");
    let refused = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("written");
        let got = outcomes(&good, &options);
        assert!(got.is_ok() || std::fs::read(&path).expect("a file") == bytes, "it was changed");
        got.err()
    };
    assert!(matches!(
        refused(b"something else"),
        Some(ProverError::Checkpoint(CheckpointError::NotACheckpoint))
    ));
    let mut later = whole.clone();
    later[8] = 2;
    assert!(matches!(refused(&later), Some(ProverError::Checkpoint(CheckpointError::Version { got: 2 }))));
    // A changed byte: of the preamble, of one state, of both.
    let (head, half) = (8 + 4 + 32 + 2 + 32, (whole.len() - 78) / 2);
    let changed = |places: &[usize]| {
        let mut bytes = whole.clone();
        places.iter().for_each(|&at| bytes[at] ^= 1);
        bytes
    };
    for places in [&[44][..], &[head - 1], &[head + 40, head + half + 40]] {
        let why = refused(&changed(places));
        assert!(matches!(why, Some(ProverError::Checkpoint(CheckpointError::Damaged { .. }))), "{why:?}");
    }
    assert!(matches!(
        refused(&changed(&[20])),
        Some(ProverError::Checkpoint(CheckpointError::Foreign(Difference::Claims)))
    ));
    for at in [head + 40, head + half + 40] {
        assert!(refused(&changed(&[at])).is_none(), "the other state is whole");
    }
    // The very first state goes behind the second one's place.
    assert!(refused(&whole[..head + 50]).is_some(), "the first state was whole once");
    assert!(refused(&whole[..head + half + 50]).is_none(), "the third state was being written");
    let mut first = whole[..head + half + 50].to_vec();
    first[head..head + half].fill(0);
    assert!(refused(&first).is_none(), "nothing is lost but the beginning");
    let other = claims(256, &[9000]);
    std::fs::write(&path, &whole).expect("written");
    let foreign = outcomes(&other, &options).err();
    assert!(matches!(foreign, Some(ProverError::Checkpoint(CheckpointError::Foreign(Difference::Claims)))));
    assert_eq!(std::fs::read(&path).expect("a file"), whole);
}

#[test]
fn a_wrong_bucket_in_a_checkpoint_is_found_by_verification() {
    let claims = claims(256, &[9000]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state");
    let options = Options::default().checkpoint(&path).threads(1);
    part(&claims, &options, 4096);
    let mut widths = [0];
    let (mut file, state) = Checkpoint::open(&path, &claims, &mut widths).expect("a checkpoint");
    let mut state = state.expect("a state");
    let Kept::Buckets(words) = &mut state.kept[0] else { panic!("it has not ended") };
    // The inverse of the form there.
    let size = 2 * packed::size(256);
    let full = words.chunks_exact_mut(size).find(|form| form.iter().any(|&word| word != 0)).expect("a form");
    full[size / 2] ^= 1;
    file.write(&state).expect("written");
    drop(file);
    assert!(matches!(outcomes(&claims, &options), Err(ProverError::Wrong { segment: 0, .. })));
}

/// States with valid checks that no run writes: an open claim beyond its squarings, more squarings than any claim, more
/// general squarings than squarings.
#[test]
fn a_state_that_no_run_writes_is_refused() {
    let claims = claims(256, &[9000, 20_000, 300]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state");
    let options = Options::default().checkpoint(&path).threads(1);
    let ended = |state: &mut State| state.kept.iter_mut().for_each(|kept| *kept = Kept::Wrong);
    let lies: [&dyn Fn(&mut State); 6] = [
        &|state| state.done = 9001,
        &|state| state.done = u64::MAX,
        &|state| state.slow = state.done + 1,
        &|state| state.slow = u64::MAX,
        &|state| {
            ended(state);
            state.done = 20_001;
        },
        &|state| {
            ended(state);
            (state.done, state.slow) = (u64::MAX, u64::MAX);
        },
    ];
    for (i, lie) in lies.iter().enumerate() {
        part(&claims, &options, 4096);
        let (mut file, state) = Checkpoint::open(&path, &claims, &mut [0; 3]).expect("a checkpoint");
        let mut state = state.expect("a state");
        lie(&mut state);
        file.write(&state).expect("written");
        drop(file);
        let bytes = std::fs::read(&path).expect("a file");
        let refused = outcomes(&claims, &options);
        let damaged = |e: &ProverError| matches!(e, ProverError::Checkpoint(CheckpointError::Damaged { .. }));
        assert!(refused.as_ref().is_err_and(damaged), "lie {i}: {:?}", refused.map(|all| all.len()));
        assert_eq!(std::fs::read(&path).expect("a file"), bytes, "lie {i}: a refused file is left alone");
        std::fs::remove_file(&path).expect("removed");
    }
}

#[cfg(unix)]
#[test]
fn a_removed_checkpoint_is_written_anew_and_a_strangers_file_is_left_alone() {
    let claims = claims(256, &[30_000]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state");
    let options = Options::default().checkpoint(&path).threads(1).interval(Duration::ZERO);
    let mut seen = Vec::new();
    let mut observer = |progress: Progress| {
        seen.push(progress.checkpoint);
        match seen.len() {
            2 => std::fs::remove_file(&path).expect("removed"),
            4 => std::fs::rename(&path, folder.path().join("away"))
                .and_then(|()| std::fs::write(&path, "a stranger's"))
                .expect("replaced"),
            _ => (),
        }
        progress.done < 20_480
    };
    use CheckpointFile::{Anew, Kept, Lost};
    let stopped = compact(&claims, &options, &mut observer, &mut |_, _| ());
    let told = matches!(stopped, Err(ProverError::Cancelled { after: 20_480, checkpoint: Lost }));
    assert!(told, "{stopped:?}");
    assert_eq!(seen, [Kept, Kept, Anew(1), Anew(1), Lost]);
    assert_eq!(std::fs::read(&path).expect("a file"), b"a stranger's");
}

/// A checkpoint that cannot be written again does not end the work.
#[cfg(unix)]
#[test]
fn a_checkpoint_whose_directory_is_removed_is_lost_until_it_is_back() {
    use CheckpointFile::{Anew, Kept, Lost};
    let claims = claims(256, &[30_000]);
    let expected = outcomes(&claims, &Options::default()).expect("outcomes");
    let above = tempfile::tempdir().expect("a folder");
    let folder = above.path().join("folder");
    std::fs::create_dir(&folder).expect("a folder");
    let path = folder.join("state");
    let options = Options::default().checkpoint(&path).threads(1).interval(Duration::ZERO);
    let mut seen = Vec::new();
    let mut observer = |progress: Progress| {
        seen.push(progress.checkpoint);
        match seen.len() {
            1 => std::fs::remove_dir_all(&folder).expect("removed"),
            3 => std::fs::create_dir(&folder).expect("a folder"),
            _ => (),
        }
        progress.done < 20_480
    };
    let stopped = compact(&claims, &options, &mut observer, &mut |_, _| ());
    let told = matches!(stopped, Err(ProverError::Cancelled { after: 20_480, checkpoint: Anew(1) }));
    assert!(told, "{stopped:?}");
    assert_eq!(seen, [Kept, Lost, Lost, Anew(1), Anew(1)]);
    let mut resumed = Vec::new();
    let done = compact(&claims, &options, &mut |_| true, &mut |_, outcome| resumed.push(outcome));
    assert!(done.is_ok_and(|done| done.resumed == 20_480) && resumed == expected);
    // Lost until the end, the proof is made all the same.
    std::fs::remove_file(&path).expect("it is there");
    let mut came = Vec::new();
    let mut observer = |_: Progress| {
        let _ = std::fs::remove_dir_all(&folder);
        true
    };
    let done = compact(&claims, &options, &mut observer, &mut |_, outcome| came.push(outcome));
    assert!(done.is_ok_and(|done| done.checkpoint == Lost) && came == expected);
}
