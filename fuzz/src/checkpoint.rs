//! Checkpoints of the delay function: files that were cut or edited, and files whose checks are all valid and whose records lie.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use lanework_vdf::{
    Discriminant, Engine, Evaluated, Form, Options, Proof, Proved, ProverError, Task, evaluate, prove,
};
use sha2::{Digest, Sha256};

use crate::bytes::Bytes;

/// A short computation with the files of its proof and of its evaluation.
struct Good {
    task: Task,
    proof: Proof,
    y: Form,
    proving: Vec<u8>,
    evaluating: Vec<u8>,
}

/// A folder in memory instead of on a disk, if there is one: every record waits for the disk.
fn folder() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.into() } else { std::env::temp_dir() }
}

/// Runs both over a file of these bytes, each of which may change it.
fn with_file<T>(bytes: &[u8], run: impl FnOnce(&Path) -> T) -> (T, Vec<u8>) {
    let file = tempfile::NamedTempFile::new_in(folder()).expect("a file");
    fs::write(file.path(), bytes).expect("it can be written");
    let out = run(file.path());
    (out, fs::read(file.path()).expect("it can be read"))
}

fn options(path: &Path) -> Options<'_> {
    // One thread: records always come in the same order.
    Options::new(Engine::portable()).threads(1).checkpoint(path).interval(Duration::ZERO)
}

fn proved(task: &Task, bytes: &[u8]) -> (Result<Proved, ProverError>, Vec<u8>) {
    with_file(bytes, |path| prove(task, &options(path), &mut |_| true))
}

fn evaluated(task: &Task, bytes: &[u8]) -> (Result<Evaluated, ProverError>, Vec<u8>) {
    with_file(bytes, |path| evaluate(task, &options(path), &mut |_| true))
}

static GOOD: LazyLock<Good> = LazyLock::new(|| {
    let d = Discriminant::from_seed(b"fuzz", 64).expect("the seed has a prime");
    let x = Form::generator(&d).expect("1 modulo 8");
    let task = Task { segments: vec![20, 30], ..Task::new(d, x, 90) };
    let (proof, proving) = proved(&task, &[]);
    let (y, evaluating) = evaluated(&task, &[]);
    let (proof, y) = (proof.expect("a proof").proof, y.expect("a result").y);
    Good { task, proof, y, proving, evaluating }
});

/// Places and values of bytes to change.
fn edit(input: &mut Bytes<'_>, bytes: &mut [u8], most: usize) {
    for _ in 0..most {
        let [low, high, value] = input.array();
        if let Some(at) = usize::from(u16::from_le_bytes([low, high])).checked_rem(bytes.len()) {
            bytes[at] ^= value;
        }
    }
}

/// Whatever its content, a file gives the right proof or is refused; a refused file stays unchanged.
pub(crate) fn checkpoint(data: &[u8]) {
    let mut input = Bytes(data);
    let good = &*GOOD;
    let kind = input.byte();
    // A hash protects the bytes of every file but those made to be believed.
    let (bytes, honest) = match kind % 4 {
        0 => (input.0.to_vec(), true),
        1 => (cut(&mut input, &good.proving), true),
        2 => (cut(&mut input, &good.evaluating), true),
        _ => (linked(&mut input), false),
    };
    let (outcome, after) = proved(&good.task, &bytes);
    match outcome {
        Ok(found) => assert!(found.proof == good.proof, "another proof of {bytes:02x?}"),
        Err(ProverError::Checkpoint(_)) => assert!(after == bytes, "a refused file was changed"),
        // A false position is detected by its proof.
        Err(ProverError::Wrong { .. }) => assert!(!honest, "a wrong form from an honest file"),
        Err(other) => panic!("{other}"),
    }
    let (outcome, after) = evaluated(&good.task, &bytes);
    match outcome {
        Ok(found) => assert!(!honest || found.y == good.y, "another result"),
        Err(ProverError::Checkpoint(_)) => assert!(after == bytes, "a refused file was changed"),
        Err(other) => panic!("{other}"),
    }
}

/// A good file, cut somewhere and with some bytes changed.
fn cut(input: &mut Bytes<'_>, good: &[u8]) -> Vec<u8> {
    let [low, high] = input.array();
    let mut bytes = good.to_vec();
    match usize::from(u16::from_le_bytes([low, high])) {
        0 => (),
        at => bytes.truncate(at % (good.len() + 1)),
    }
    let edits = input.0.len() / 3;
    edit(input, &mut bytes, edits.min(8));
    bytes
}

/// The payload and kind of each record, and the preamble without its check, as `CHECKPOINT.md` says.
fn records(file: &[u8]) -> (Vec<u8>, Vec<(u8, Vec<u8>)>) {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four")) as usize;
    let body = 16 + word(12);
    let (mut at, mut out) = (body + 16, Vec::new());
    while at < file.len() {
        let length = word(at + 4);
        out.push((file[at], file[at + 16..at + 16 + length].to_vec()));
        at += 16 + length + 16;
    }
    (file[..body].to_vec(), out)
}

/// A file of records that were left out, repeated, moved and edited, with every check valid.
fn linked(input: &mut Bytes<'_>) -> Vec<u8> {
    let of_evaluation = input.byte() & 1 == 1;
    let (mut preamble, good) = records(if of_evaluation { &GOOD.evaluating } else { &GOOD.proving });
    // The segments' parameters are the last words; larger ones take their time.
    let windows = input.byte();
    if windows != 0 {
        let parts = if of_evaluation { 1 } else { 3 };
        for part in 1..=parts {
            let at = preamble.len() - 16 * part + 8;
            let (k, l) = (u32::from(windows % 9), u32::from(windows / 9));
            preamble[at..at + 4].copy_from_slice(&k.to_le_bytes());
            preamble[at + 4..at + 8].copy_from_slice(&l.to_le_bytes());
        }
    }
    let edits = usize::from(input.byte() % 3);
    let windows_at = preamble.len() - 16 * if of_evaluation { 1 } else { 3 };
    edit(input, &mut preamble[16..windows_at], edits);
    let mut file = preamble;
    let check: [u8; 32] = Sha256::digest(&file).into();
    file.extend_from_slice(&check[..16]);
    let mut link: [u8; 32] = Sha256::digest(&file).into();
    for _ in 0..12 {
        let [which, edits] = input.array();
        if input.0.is_empty() && which == 0 {
            break;
        }
        // A record of the good file, perhaps as the other kind, or one of any kind and any bytes.
        let (kind, mut payload) = match good.get(usize::from(which).wrapping_sub(1)) {
            Some((kind, payload)) => (if edits & 0x80 == 0 { *kind } else { kind ^ 3 }, payload.clone()),
            None => (which & 0x7f, input.some(usize::from(edits & 0x7f)).to_vec()),
        };
        edit(input, &mut payload, usize::from(edits & 3));
        let mut fields = vec![kind, 0, 0, 0];
        fields.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        let head: [u8; 32] = Sha256::new().chain_update(link).chain_update(&fields).finalize().into();
        link =
            Sha256::new().chain_update(link).chain_update(&fields).chain_update(&payload).finalize().into();
        file.extend_from_slice(&fields);
        file.extend_from_slice(&head[..8]);
        file.extend_from_slice(&payload);
        file.extend_from_slice(&link[..16]);
    }
    file
}

pub(crate) fn checkpoint_seeds() -> Vec<Vec<u8>> {
    let raw = |file: &[u8]| [&[0], file].concat();
    vec![
        raw(&GOOD.proving),
        raw(&GOOD.evaluating),
        vec![0],
        // Cut nowhere, in the middle, and with a bit changed.
        vec![1, 0, 0],
        vec![1, 0, 2],
        vec![1, 0, 0, 200, 1, 1],
        vec![2, 0, 0],
        vec![2, 90, 0],
        // Records as they are, without the first, the first twice, with a number changed: done, general squarings, kept forms.
        vec![3, 0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0],
        vec![3, 0, 0, 0, 2, 0, 3, 0],
        vec![3, 0, 0, 0, 1, 0, 1, 0],
        vec![3, 0, 0, 0, 1, 1, 4, 0, 1],
        vec![3, 0, 0, 0, 1, 1, 12, 0, 1],
        vec![3, 0, 0, 0, 1, 1, 20, 0, 1],
        vec![3, 0, 40, 0, 1, 0, 2, 0],
        vec![3, 1, 0, 0, 1, 0],
        vec![3, 1, 0, 0, 1, 1, 19, 0, 0x80],
        vec![3, 0, 0, 0, 0x89, 4, b'w', b'h', b'a', b't'],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanework_vdf::prover::CheckpointError;

    fn outcome(seed: &[u8]) -> Result<Proved, ProverError> {
        proved(&GOOD.task, &linked(&mut Bytes(seed))).0
    }

    /// Otherwise every such file would be refused for its checks, and the code behind them would never run.
    #[test]
    fn files_that_are_linked_here_are_those_that_the_prover_writes() {
        assert!(linked(&mut Bytes(&[0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0])) == GOOD.proving);
        let records = records(&GOOD.evaluating).1.len();
        let all: Vec<u8> = (1..=records as u8).flat_map(|record| [record, 0]).collect();
        assert!(linked(&mut Bytes(&[&[1, 0, 0][..], &all].concat())) == GOOD.evaluating);
    }

    #[test]
    fn lies_behind_good_checks_get_as_far_as_they_should() {
        assert!(
            outcome(&[0, 0, 0, 1, 0, 2, 0])
                .is_ok_and(|found| found.resumed == 20 && found.proof == GOOD.proof)
        );
        // A segment's proof that is another form: the chain's end in its place.
        let (_, good) = records(&GOOD.proving);
        let end = good[0].1[24..24 + 64].to_vec();
        let pi = [&[0, 0, 0, 1, 0, 0x82, 68, 0, 0, 0, 0][..], &end].concat();
        let wrong = outcome(&pi);
        assert!(matches!(wrong, Err(ProverError::Wrong { segment: 0, .. })), "{wrong:?}");
        // More general squarings than squarings.
        let damaged = outcome(&[0, 0, 0, 1, 1, 19, 0, 0x80]);
        assert!(
            matches!(damaged, Err(ProverError::Checkpoint(CheckpointError::Damaged { .. }))),
            "{damaged:?}"
        );
    }
}
