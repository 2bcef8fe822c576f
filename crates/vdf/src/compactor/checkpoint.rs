//! A file with the state of a compaction, twice: the older state is overwritten, so one is always whole.
//! `CHECKPOINT.md` has its format.
#![forbid(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::buckets;
use super::{Claim, Claims};
use crate::form::packed;
use crate::prover::CheckpointFile;
use crate::prover::checkpoint::{CheckpointError, Difference, Reader, has_name, lock, sync_name};

const MAGIC: &[u8; 8] = b"lanecmp\n";
const VERSION: u32 = 1;
/// Bytes of a hash.
const HASH: usize = 32;
/// Bytes of a state before its forms: its number, squarings, general squarings.
const COUNTS: usize = 24;

/// The state of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// Its buckets, packed; zeros for an empty one.
    Buckets(Vec<u64>),
    /// Its proof, packed.
    Proof(Vec<u64>),
    /// It was refused.
    Wrong,
}

/// The state of a compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) done: u64,
    pub(super) slow: u64,
    /// The form reached, packed.
    pub(super) form: Vec<u64>,
    /// One for each claim.
    pub(super) kept: Vec<Kept>,
}

impl State {
    /// Whether a compaction can be in this state: no claim is open beyond its squarings, and general squarings are
    /// squarings.
    fn is_possible(&self, claims: &[Claim]) -> bool {
        let longest = claims.iter().map(|claim| claim.iterations).max().unwrap_or(0);
        let mut claims = claims.iter().zip(&self.kept);
        self.slow <= self.done
            && self.done <= longest
            && claims.all(|(claim, kept)| !matches!(kept, Kept::Buckets(_)) || self.done <= claim.iterations)
    }
}

/// The open file.
pub(super) struct Checkpoint {
    file: File,
    path: PathBuf,
    head: Vec<u8>,
    /// The number of buckets of each claim.
    counts: Vec<usize>,
    /// Words of a packed form.
    size: usize,
    /// The number of the newest state.
    number: u64,
    anew: u32,
}

impl Checkpoint {
    /// Opens or makes a file, for claims whose buckets have these widths. An existing file's widths replace them.
    pub(super) fn open(
        path: &Path,
        claims: &Claims,
        widths: &mut [u32],
    ) -> Result<(Checkpoint, Option<State>), CheckpointError> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        lock(&file)?;
        let task = claims.digest();
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(&VERSION.to_le_bytes());
        head.extend_from_slice(&task);
        head.extend(widths.iter().map(|&width| width as u8));
        let fixed = MAGIC.len() + 4 + HASH;
        let mut found = Vec::new();
        (&file).take((head.len() + HASH) as u64).read_to_end(&mut found)?;
        let fresh = found.len() < head.len() + HASH;
        if fresh {
            // No file, or that of a process that ended at once.
            if !head.starts_with(&found[..found.len().min(fixed)]) {
                return Err(foreign(&found));
            }
            let hash: [u8; HASH] = Sha256::digest(&head).into();
            head.extend_from_slice(&hash);
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(&head)?;
            file.sync_all()?;
            sync_name(path);
        } else {
            if found[..fixed] != head[..fixed] {
                return Err(foreign(&found));
            }
            let (before, hash) = found.split_at(head.len());
            let sane = before[fixed..].iter().all(|&width| buckets::WIDTHS.contains(&u32::from(width)));
            if Sha256::digest(before)[..] != *hash || !sane {
                return Err(CheckpointError::Damaged { at: 0 });
            }
            widths.iter_mut().zip(&before[fixed..]).for_each(|(width, &said)| *width = u32::from(said));
            head = found;
        }
        let counts = widths.iter().map(|&width| buckets::count(width)).collect();
        let size = 2 * packed::size(claims.discriminant.bits());
        let mut out = Checkpoint { file, path: path.to_owned(), head, counts, size, number: 0, anew: 0 };
        let state = if fresh { None } else { out.newest()? };
        if state.as_ref().is_some_and(|state| !state.is_possible(&claims.claims)) {
            return Err(out.damaged());
        }
        Ok((out, state))
    }

    /// The error for a whole state that no run writes.
    fn damaged(&self) -> CheckpointError {
        CheckpointError::Damaged { at: self.head.len() as u64 }
    }

    /// Bytes of a state with its hash.
    fn length(&self) -> u64 {
        let forms: usize = self.counts.iter().sum::<usize>() + 1;
        (COUNTS + self.counts.len() + 8 * self.size * forms + HASH) as u64
    }

    fn place(&self, number: u64) -> u64 {
        self.head.len() as u64 + number % 2 * self.length()
    }

    fn hash(&self, state: &[u8]) -> [u8; HASH] {
        Sha256::new().chain_update(&self.head).chain_update(state).finalize().into()
    }

    /// The whole state with the higher number.
    fn newest(&mut self) -> Result<Option<State>, CheckpointError> {
        let (mut states, mut torn) = (Vec::new(), Vec::new());
        for half in 0..2 {
            let mut bytes = Vec::new();
            self.file.seek(SeekFrom::Start(self.place(half)))?;
            (&self.file).take(self.length()).read_to_end(&mut bytes)?;
            match bytes.split_last_chunk::<HASH>() {
                Some((state, hash)) if bytes.len() as u64 == self.length() && self.hash(state) == *hash => {
                    states.push(state.to_vec());
                }
                _ if bytes.iter().any(|&byte| byte != 0) => torn.push(half),
                _ => (),
            }
        }
        // Only the state that was being written may be torn.
        if let [.., at] = torn[..]
            && (torn.len() > 1 || states.is_empty() && at == 0)
        {
            return Err(CheckpointError::Damaged { at: self.place(at) });
        }
        let newest =
            states.into_iter().max_by_key(|state| state.first_chunk().map(|&n| u64::from_le_bytes(n)));
        let Some(bytes) = newest else { return Ok(None) };
        let damaged = self.damaged();
        self.parse(&bytes).map(Some).ok_or(damaged)
    }

    fn parse(&mut self, bytes: &[u8]) -> Option<State> {
        let mut from = Reader(bytes);
        self.number = from.u64()?;
        let (done, slow) = (from.u64()?, from.u64()?);
        let form = from.words(self.size)?;
        let mut kept = Vec::new();
        for count in &self.counts {
            let kind = from.take(1)?[0];
            let mut words = from.words(count * self.size)?;
            kept.push(match kind {
                0 => Kept::Buckets(words),
                1 => {
                    words.truncate(self.size);
                    Kept::Proof(words)
                }
                2 => Kept::Wrong,
                _ => return None,
            });
        }
        Some(State { done, slow, form, kept })
    }

    /// A file in the place of one that was removed. Another file there is left alone.
    fn new_file(&self) -> Result<File, CheckpointError> {
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&self.path)?;
        let begun = lock(&file).and_then(|()| Ok(file.write_all(&self.head)?));
        // The next state tries again, and must not find a stranger's file.
        begun.inspect_err(|_| drop(fs::remove_file(&self.path)))?;
        sync_name(&self.path);
        Ok(file)
    }

    /// Overwrites the older state.
    pub(super) fn write(&mut self, state: &State) -> Result<CheckpointFile, CheckpointError> {
        let mut told = CheckpointFile::Kept;
        if !has_name(&self.file, &self.path)? {
            // Removing the file does not lose its work. If the new one cannot be made, the work goes on without.
            match self.new_file() {
                // Its first state goes where every file's first state goes.
                Ok(file) => (self.file, self.number, self.anew) = (file, 0, self.anew + 1),
                Err(_) => told = CheckpointFile::Lost,
            }
        }
        if told == CheckpointFile::Kept && self.anew > 0 {
            told = CheckpointFile::Anew(self.anew);
        }
        let number = self.number + 1;
        let mut bytes = Vec::with_capacity(self.length() as usize);
        [number, state.done, state.slow].iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        let append = |words: &[u64], bytes: &mut Vec<u8>| {
            words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        };
        append(&state.form, &mut bytes);
        for (kept, count) in state.kept.iter().zip(&self.counts) {
            let (kind, words) = match kept {
                Kept::Buckets(words) => (0, &words[..]),
                Kept::Proof(words) => (1, &words[..]),
                Kept::Wrong => (2, &[][..]),
            };
            bytes.push(kind);
            let end = bytes.len() + 8 * self.size * count;
            append(words, &mut bytes);
            bytes.resize(end, 0);
        }
        let hash = self.hash(&bytes);
        bytes.extend_from_slice(&hash);
        self.file.seek(SeekFrom::Start(self.place(number)))?;
        self.file.write_all(&bytes)?;
        self.file.sync_data()?;
        self.number = number;
        Ok(told)
    }
}

/// The error for a file with another beginning.
fn foreign(found: &[u8]) -> CheckpointError {
    let version = found.get(8..12).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    match version {
        _ if !found.starts_with(MAGIC) => CheckpointError::NotACheckpoint,
        Some(got) if got != VERSION => CheckpointError::Version { got },
        _ => CheckpointError::Foreign(Difference::Claims),
    }
}
