//! Cut, edited, foreign and forged checkpoints.
#![forbid(unsafe_code)]

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::Discriminant;
use crate::backend::Engine;
use crate::prover::{Options, Phase, Progress, Proved, ProverError, evaluate, plan, prove};

fn engine() -> Engine {
    Engine::portable()
}

fn task(seed: &[u8], bits: usize, iterations: u64, segments: &[u64]) -> Task {
    let d = Discriminant::from_seed(seed, bits).expect("a discriminant");
    let x = Form::generator(&d).expect("a generator");
    Task { segments: segments.to_vec(), ..Task::new(d, x, iterations) }
}

fn small() -> Task {
    task(b"checkpoints", 64, 90, &[20, 30])
}

fn options(path: &Path) -> Options<'_> {
    // One thread: the records always come in the same order.
    Options::new(engine()).threads(1).checkpoint(path).interval(Duration::ZERO)
}

fn run(task: &Task, path: &Path) -> Result<Proved, ProverError> {
    prove(task, &options(path), &mut |_| true)
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("checkpoint");
    (folder, path)
}

/// The beginning of each record of a whole file, and its end.
fn records(bytes: &[u8]) -> Vec<usize> {
    let mut out = vec![preamble::length(&bytes[..16]).expect("a preamble").expect("whole")];
    while let Some(&at) = out.last().filter(|&&at| at < bytes.len()) {
        let length = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().expect("four")) as usize;
        out.push(at + HEADER + length + CHECK);
    }
    assert_eq!(out.last(), Some(&bytes.len()));
    out
}

#[test]
fn a_file_cut_anywhere_gives_the_same_proof() {
    let (_folder, path) = folder();
    let task = small();
    let expected = run(&task, &path).expect("a proof");
    assert_eq!(expected.resumed, 0);
    let whole = fs::read(&path).expect("a file");
    let starts = records(&whole);
    assert_eq!(starts.len(), 1 + 6, "three positions and three proofs");
    let parts = plan::parts(&task, options(&path).memory).expect("parts");
    for cut in 0..=whole.len() {
        fs::write(&path, &whole[..cut]).expect("written");
        let (state, writer) = open(&path, &task, true, parts.clone()).expect("a torn file");
        drop(writer);
        // Only whole records count: positions are the first, third and fifth.
        let there = starts.iter().filter(|&&start| start <= cut).count();
        assert_eq!(state.done(), [0, 0, 20, 20, 50, 50, 90, 90][there], "cut at {cut}");
        let proofs = state.known.iter().filter(|known| known.proof.is_some()).count();
        assert_eq!(proofs, there.saturating_sub(1) / 2, "cut at {cut}");
        let left = starts.get(there.max(1) - 1).copied().expect("a start");
        assert!(fs::read(&path).expect("a file") == whole[..left], "cut at {cut}");
        // Continuing from there makes the same file again.
        if starts.contains(&cut) || starts.contains(&(cut + 1)) || cut % 97 == 0 {
            let again = run(&task, &path).expect("a proof");
            assert!(again.proof == expected.proof && again.resumed == state.done(), "cut at {cut}");
            assert!(fs::read(&path).expect("a file") == whole, "cut at {cut}");
        }
    }
}

#[test]
fn an_edited_file_is_refused() {
    let (_folder, path) = folder();
    let task = small();
    let expected = run(&task, &path).expect("a proof");
    let whole = fs::read(&path).expect("a file");
    let starts = records(&whole);
    let last = starts[starts.len() - 2];
    let parts = plan::parts(&task, options(&path).memory).expect("parts");
    for at in 0..whole.len() {
        for bit in [0, 7] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            fs::write(&path, &bytes).expect("written");
            match open(&path, &task, true, parts.clone()) {
                Err(CheckpointError::NotACheckpoint) => assert!(at < 8),
                Err(CheckpointError::Version { .. }) => assert!((8..12).contains(&at)),
                Err(CheckpointError::Damaged { at: record }) => {
                    let inside =
                        record as usize <= at && (record == 0 || starts.contains(&(record as usize)));
                    assert!(inside, "byte {at} is not in the record at {record}");
                    assert!(fs::read(&path).expect("a file") == bytes, "a refused file is left alone");
                }
                // The last record counts as torn.
                Ok((state, _)) => {
                    let whole = state.known.iter().filter(|known| known.proof.is_some()).count();
                    assert!(at >= last && state.done() == 90 && whole == 2, "byte {at}");
                }
                Err(other) => panic!("byte {at}: {other}"),
            }
        }
    }
    // Records left out, swapped, or from another file of the same computation.
    for (from, to) in [(1, 2), (2, 3), (3, 5)] {
        let bytes = [&whole[..starts[from]], &whole[starts[to]..]].concat();
        fs::write(&path, &bytes).expect("written");
        let refused = run(&task, &path);
        let at = starts[from] as u64;
        let damaged = |e: &ProverError| matches!(e, ProverError::Checkpoint(CheckpointError::Damaged { at: found }) if *found == at);
        assert!(refused.as_ref().is_err_and(damaged), "{refused:?}");
    }
    // A loss of power leaves zeros in the place of a header, but no other bytes.
    for end in [&[0; 100][..], &[&[0; 600][..], &[1; 50]].concat()] {
        fs::write(&path, [&whole[..], end].concat()).expect("written");
        assert!(run(&task, &path).expect("a proof").proof == expected.proof);
    }
    fs::write(&path, [&whole[..], &[1], &[0; 100]].concat()).expect("written");
    assert!(matches!(run(&task, &path), Err(ProverError::Checkpoint(CheckpointError::Damaged { .. }))));
}

/// Each sector of the record that was being written has its bytes or zeros.
#[test]
fn a_last_record_that_lost_any_sector_is_cut_off() {
    const SECTOR: usize = 512;
    let task = task(b"sectors", 64, 90, &[]);
    let part = plan::Part { start: 0, length: 90, parameters: plan::Parameters { k: 1, l: 1 } };
    let x = crate::form::packed::pack(&task.discriminant, &task.x);
    let (_folder, path) = folder();
    let (_, mut writer) = open(&path, &task, false, vec![part]).expect("opened");
    (1..=70).for_each(|done| writer.position(0, done, 0, &x, &[]).expect("queued"));
    writer.finish().expect("written");
    drop(writer);
    let whole = fs::read(&path).expect("a file");
    let mut divided = 0;
    for (n, ends) in records(&whole).windows(2).enumerate() {
        let (from, to) = (ends[0], ends[1]);
        divided += usize::from(from / SECTOR != (from + HEADER - 1) / SECTOR);
        for sector in from / SECTOR..=(to - 1) / SECTOR {
            let mut bytes = whole[..to].to_vec();
            bytes[from.max(SECTOR * sector)..to.min(SECTOR * (sector + 1))].fill(0);
            let lost = bytes != whole[..to];
            fs::write(&path, &bytes).expect("written");
            let (state, _) = open(&path, &task, false, vec![part]).expect("a torn file");
            assert_eq!(state.done(), (n + usize::from(!lost)) as u64, "sector {sector} of record {n}");
        }
    }
    assert!(divided > 0, "no header lies in two sectors");
}

#[test]
fn foreign_files_are_refused_by_name() {
    let (_folder, path) = folder();
    let mine = small();
    run(&mine, &path).expect("a proof");
    let whole = fs::read(&path).expect("a file");
    let other_d = task(b"others", 64, 90, &[20, 30]);
    let other_x = Task { x: mine.x.square(&mine.discriminant), ..mine.clone() };
    let other_n = Task { iterations: 91, ..mine.clone() };
    let other_s = Task { segments: vec![20], ..mine.clone() };
    for (other, expected) in [
        (other_d, Difference::Discriminant),
        (other_x, Difference::Input),
        (other_n, Difference::Iterations),
        (other_s, Difference::Segments),
    ] {
        let refused = run(&other, &path);
        assert!(
            matches!(refused, Err(ProverError::Checkpoint(CheckpointError::Foreign(found))) if found == expected),
            "{expected}: {refused:?}"
        );
    }
    let refused = evaluate(&mine, &options(&path), &mut |_| true);
    assert!(
        matches!(refused, Err(ProverError::Checkpoint(CheckpointError::Foreign(Difference::Purpose)))),
        "{refused:?}"
    );
    assert!(fs::read(&path).expect("a file") == whole, "a refused file is left alone");
    for text in [&b"short"[..], b"lanevdg\n", &[0; 4000]] {
        fs::write(&path, text).expect("written");
        let refused = run(&mine, &path);
        assert!(
            matches!(refused, Err(ProverError::Checkpoint(CheckpointError::NotACheckpoint))),
            "{refused:?}"
        );
        assert_eq!(fs::read(&path).expect("a file"), text, "a refused file is left alone");
    }
    assert!(matches!(
        run(&mine, Path::new("/nowhere/checkpoint")),
        Err(ProverError::Checkpoint(CheckpointError::File(_)))
    ));
}

#[test]
fn two_processes_do_not_share_a_file() {
    let (_folder, path) = folder();
    let parts = plan::parts(&small(), 1 << 20).expect("parts");
    let _held = open(&path, &small(), true, parts).expect("opened");
    assert!(matches!(run(&small(), &path), Err(ProverError::Checkpoint(CheckpointError::Busy))));
}

/// Records with valid checks and false content.
#[test]
fn lies_are_noticed() {
    let task = small();
    let packed = |form: &Form| crate::form::packed::pack(&task.discriminant, form);
    let mut y = task.x.clone();
    (0..20).for_each(|_| y = y.square(&task.discriminant));
    let parts = plan::parts(&task, 1 << 20).expect("parts");
    let kept = |n: usize| packed(&task.x).repeat(n);
    let needed = 20u64.div_ceil(parts[0].parameters.every()) as usize;
    let outcome = |write: &dyn Fn(&mut Writer)| {
        let (_folder, path) = folder();
        let (_, mut writer) = open(&path, &task, true, parts.clone()).expect("opened");
        write(&mut writer);
        writer.finish().expect("written");
        drop(writer);
        run(&task, &path)
    };
    // Another element of the group.
    let wrong =
        outcome(&|writer| writer.position(0, 20, 0, &packed(&task.x), &kept(needed)).expect("queued"));
    assert!(matches!(wrong, Err(ProverError::Wrong { segment: 0, .. })), "{wrong:?}");
    // A form of another group.
    let mut foreign = packed(&y);
    foreign[0] += 1;
    let wrong = outcome(&|writer| writer.position(0, 20, 0, &foreign, &kept(needed)).expect("queued"));
    assert!(matches!(wrong, Err(ProverError::Checkpoint(CheckpointError::Form { .. }))), "{wrong:?}");
    let wrong = outcome(&|writer| {
        let kept = [&foreign[..], &kept(needed - 1)].concat();
        writer.position(0, 20, 0, &packed(&y), &kept).expect("queued");
    });
    assert!(matches!(wrong, Err(ProverError::Checkpoint(CheckpointError::Form { .. }))), "{wrong:?}");
    // Another proof.
    let wrong = outcome(&|writer| {
        writer.position(0, 20, 0, &packed(&y), &kept(needed)).expect("queued");
        writer.segment(0, &packed(&y)).expect("queued");
    });
    assert!(matches!(wrong, Err(ProverError::Wrong { segment: 0, .. })), "{wrong:?}");
    // Records that no run writes: too few forms, squarings beyond the part, parts out of order, proofs of nothing, and
    // general squarings that exceed the squarings or decrease.
    let (y, few) = (packed(&y), needed - 1);
    let lies: [&dyn Fn(&mut Writer); 9] = [
        &|writer| writer.position(0, 20, 0, &y, &kept(few)).expect("queued"),
        &|writer| writer.position(0, 21, 0, &y, &kept(needed)).expect("queued"),
        &|writer| writer.position(1, 20, 0, &y, &[]).expect("queued"),
        &|writer| writer.position(7, 20, 0, &y, &[]).expect("queued"),
        &|writer| writer.segment(0, &y).expect("queued"),
        &|writer| writer.append(9, b"what").expect("queued"),
        &|writer| writer.position(0, 20, 21, &y, &kept(needed)).expect("queued"),
        &|writer| writer.position(0, 20, u64::MAX, &y, &kept(needed)).expect("queued"),
        &|writer| {
            writer.position(0, 20, 2, &y, &kept(needed)).expect("queued");
            writer.position(0, 20, 1, &y, &[]).expect("queued");
        },
    ];
    for (i, lie) in lies.iter().enumerate() {
        let wrong = outcome(lie);
        assert!(
            matches!(wrong, Err(ProverError::Checkpoint(CheckpointError::Damaged { .. }))),
            "lie {i}: {wrong:?}"
        );
    }
}

#[test]
fn stopped_again_and_again_it_ends_with_the_same_proof() {
    for (segments, threads) in [(&[][..], 2), (&[], 1), (&[9_000, 20_000], 2), (&[9_000, 20_000], 1)] {
        let task = task(b"stopping", 256, 40_000, segments);
        let expected = prove(&task, &Options::new(engine()), &mut |_| true).expect("a proof");
        let (_folder, path) = folder();
        let options = Options::new(engine()).threads(threads).checkpoint(&path);
        let (mut stops, mut last) = (0, 0);
        let proved = loop {
            let mut calls = 0;
            let outcome = prove(&task, &options, &mut |progress| {
                assert!(progress.resumed >= last, "squarings were lost");
                last = progress.resumed;
                calls += 1;
                // Once in the proving phase, too.
                calls < 3 || progress.phase == Phase::Verifying || stops > 20
            });
            match outcome {
                Ok(proved) => break proved,
                Err(ProverError::Cancelled { .. }) => stops += 1,
                Err(other) => panic!("{other}"),
            }
        };
        assert!(stops >= 3, "{stops}");
        assert!(proved.proof == expected.proof && proved.slow == expected.slow, "{segments:?}");
        // The file now has all of it.
        let again = prove(&task, &options, &mut |_| true).expect("a proof");
        assert!(again.proof == expected.proof && again.resumed == 40_000);
    }
}

#[test]
fn evaluation_resumes() {
    let task = task(b"evaluating", 256, 30_000, &[]);
    let expected = evaluate(&task, &Options::new(engine()), &mut |_| true).expect("a result");
    let (_folder, path) = folder();
    let options = options(&path);
    let stopped = evaluate(&task, &options, &mut |progress| progress.done < 10_000);
    assert!(matches!(stopped, Err(ProverError::Cancelled { .. })), "{stopped:?}");
    let whole = fs::read(&path).expect("a file");
    let resumed = evaluate(&task, &options, &mut |_| true).expect("a result");
    assert!(resumed.y == expected.y && resumed.resumed >= 10_000 && resumed.slow == expected.slow);
    // From the middle of its last record.
    fs::write(&path, &whole[..whole.len() - 20]).expect("written");
    let resumed = evaluate(&task, &options, &mut |_| true).expect("a result");
    assert!(resumed.y == expected.y && (1..10_000).contains(&resumed.resumed));
}

/// A file may have any count that the task allows, up to the last number.
#[test]
fn evaluation_resumes_near_the_end_of_the_count() {
    let task = task(b"the last squarings", 64, u64::MAX, &[]);
    let part = plan::Part { start: 0, length: u64::MAX, parameters: plan::Parameters { k: 1, l: 1 } };
    let x = crate::form::packed::pack(&task.discriminant, &task.x);
    let mut y = task.x.clone();
    (0..5).for_each(|_| y = y.square(&task.discriminant));
    for slow in [0, u64::MAX - 5] {
        let (_folder, path) = folder();
        let (_, mut writer) = open(&path, &task, false, vec![part]).expect("opened");
        writer.position(0, u64::MAX - 5, slow, &x, &[]).expect("queued");
        writer.finish().expect("written");
        drop(writer);
        let evaluated = evaluate(&task, &options(&path), &mut |_| true).expect("a result");
        assert!(evaluated.y == y && evaluated.resumed == u64::MAX - 5, "{slow} general squarings");
    }
}

#[cfg(unix)]
#[test]
fn who_stops_is_told_what_became_of_the_last_record() {
    use crate::prover::CheckpointFile::{self, Anew, Kept, Lost};
    let task = task(b"stopping", 256, 100_000, &[]);
    let after = |meddle: fn(&Path), proving: bool| {
        let (_folder, path) = folder();
        let options = options(&path);
        let mut observer = |_: Progress| {
            meddle(&path);
            false
        };
        let stopped = if proving {
            prove(&task, &options, &mut observer).map(drop)
        } else {
            evaluate(&task, &options, &mut observer).map(drop)
        };
        let Err(ProverError::Cancelled { after, checkpoint }) = stopped else { panic!("{stopped:?}") };
        (after, checkpoint, resumed_from(&path, &task, proving))
    };
    let remove: fn(&Path) = |path| fs::remove_file(path).expect("it was there");
    let replace: fn(&Path) = |path| {
        fs::rename(path, path.with_extension("away"))
            .and_then(|()| fs::write(path, "a diary"))
            .expect("moved");
    };
    for proving in [false, true] {
        for (meddle, expected) in [((|_| ()) as fn(&Path), Kept), (remove, Anew(1)), (replace, Lost)] {
            let (after, checkpoint, resumed) = after(meddle, proving);
            assert_eq!(checkpoint, expected);
            assert_eq!(resumed, (checkpoint != CheckpointFile::Lost).then_some(after), "{checkpoint:?}");
        }
    }
}

/// The squarings that a checkpoint keeps, if it is one.
fn resumed_from(path: &Path, task: &Task, proving: bool) -> Option<u64> {
    let options = options(path);
    if proving {
        prove(task, &options, &mut |_| true).ok().map(|proved| proved.resumed)
    } else {
        evaluate(task, &options, &mut |_| true).ok().map(|evaluated| evaluated.resumed)
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_is_removed_is_written_anew_and_another_one_is_left_alone() {
    use crate::prover::CheckpointFile::{Anew, Kept, Lost};
    const DONE: u64 = 200_000;
    let task = task(b"removing", 256, DONE, &[]);
    let (_folder, path) = folder();
    let options = options(&path);
    let mut seen = vec![Kept];
    let made = evaluate(&task, &options, &mut |progress| {
        // The writer is a few records behind at most, and there is time for many more.
        let new = seen.last() != Some(&progress.checkpoint);
        if new {
            seen.push(progress.checkpoint);
        }
        match progress.checkpoint {
            // Removed at the beginning, replaced when it is back, and the replacement removed in the end.
            Kept if progress.done < 8000 => fs::remove_file(&path).expect("it was there"),
            Anew(1) if new => {
                let diary = path.with_extension("diary");
                fs::write(&diary, "a diary").expect("written");
                fs::rename(&diary, &path).expect("moved");
            }
            Lost if new => {
                assert_eq!(fs::read(&path).expect("a file"), b"a diary");
                fs::remove_file(&path).expect("it was there");
            }
            _ => {}
        }
        true
    });
    let made = made.expect("a result");
    assert_eq!(seen, [Kept, Anew(1), Lost, Anew(2)]);
    let again = evaluate(&task, &options, &mut |_| true).expect("a result");
    assert!(again.y == made.y && again.resumed == DONE, "all of it is in the file");
}
