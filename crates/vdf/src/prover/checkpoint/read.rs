//! Reading checkpoints.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{BufReader, Read, Seek};

use super::preamble::{self, Reader};
use super::{CHECK, CheckpointError, HEADER, Known, Link, POSITION, SEGMENT, State};
use crate::discriminant::Discriminant;
use crate::form::Form;
use crate::form::packed::{self, PackedForms};
use crate::prover::Task;
use crate::prover::plan::Part;

/// Reads a checkpoint up to its last whole record, where writing continues. `None` if it is empty.
///
/// # Errors
/// [`CheckpointError`].
pub(super) fn read(
    file: &File,
    task: &Task,
    proving: bool,
    parts: &[Part],
) -> Result<Option<(State, Link, u64)>, CheckpointError> {
    let size = file.metadata()?.len();
    let mut from = BufReader::with_capacity(1 << 18, file);
    from.rewind()?;
    let mut start = Vec::new();
    (&mut from).take(16).read_to_end(&mut start)?;
    let wanted = preamble::length(&start)?.map(|wanted| wanted as u64);
    let Some(wanted) = wanted.filter(|&wanted| wanted <= size) else {
        // The process ended while writing the preamble: the file is then a prefix of this preamble. A length beyond the
        // file means the same.
        (&mut from).take(1 << 20).read_to_end(&mut start)?;
        return if preamble::bytes(task, proving, parts).starts_with(&start) {
            Ok(None)
        } else {
            Err(CheckpointError::Damaged { at: 0 })
        };
    };
    (&mut from).take(wanted - start.len() as u64).read_to_end(&mut start)?;
    let state = State::new(preamble::read(&start, task, proving)?);
    let mut replay = Replay { task, proving, state };
    let (mut link, mut at) = (Link::of_preamble(&start), wanted);
    let mut payload = Vec::new();
    while let Some(next) = record(&mut from, &link, at, size, &mut payload)? {
        replay.apply(next.kind, &payload, at)?;
        (link, at) = (next.link, next.end);
    }
    Ok(Some((replay.state, link, at)))
}

struct Next {
    kind: u8,
    link: Link,
    end: u64,
}

/// The record at `at`; `None` if the file ends before the record does.
fn record(
    from: &mut impl Read,
    link: &Link,
    at: u64,
    size: u64,
    payload: &mut Vec<u8>,
) -> Result<Option<Next>, CheckpointError> {
    let left = size - at;
    let mut header = [0; HEADER];
    if left < HEADER as u64 {
        return Ok(None);
    }
    from.read_exact(&mut header)?;
    let (fields, check) = header.split_at(8);
    if link.of_header(fields) != check {
        return if is_torn(&header, at) { Ok(None) } else { Err(CheckpointError::Damaged { at }) };
    }
    let length = u64::from(u32::from_le_bytes([fields[4], fields[5], fields[6], fields[7]]));
    if left < HEADER as u64 + length + CHECK as u64 {
        return Ok(None);
    }
    payload.clear();
    from.take(length).read_to_end(payload)?;
    let mut check = [0; CHECK];
    from.read_exact(&mut check)?;
    let next = link.next(fields, payload);
    let end = at + HEADER as u64 + length + CHECK as u64;
    if next.check() != check {
        // The last record may have lost its end with the power. Any other was whole once.
        return if end == size { Ok(None) } else { Err(CheckpointError::Damaged { at }) };
    }
    Ok(Some(Next { kind: fields[0], link: next, end }))
}

/// The least that a disk writes, in bytes.
const SECTOR: usize = 512;

/// Whether a header without its check lost a sector: after a loss of power a file may have zeros in place of any sector of
/// its last record. A whole header begins with its kind and ends with a hash, so neither side of a boundary is zero.
fn is_torn(header: &[u8; HEADER], at: u64) -> bool {
    let boundary = SECTOR - at as usize % SECTOR;
    let (low, high) = header.split_at(boundary.min(HEADER));
    [low, high].iter().any(|part| !part.is_empty() && part.iter().all(|&byte| byte == 0))
}

struct Replay<'a> {
    task: &'a Task,
    proving: bool,
    state: State,
}

impl Replay<'_> {
    fn d(&self) -> &Discriminant {
        &self.task.discriminant
    }

    /// # Errors
    /// A record that no run writes, or a form of another discriminant.
    fn apply(&mut self, kind: u8, payload: &[u8], at: u64) -> Result<(), CheckpointError> {
        let mut rest = Reader(payload);
        let applied = match kind {
            POSITION => self.position(&mut rest, at),
            SEGMENT => self.segment(&mut rest, at),
            _ => None,
        };
        match applied {
            Some(Ok(())) if rest.0.is_empty() => Ok(()),
            Some(Err(e)) => Err(e),
            _ => Err(CheckpointError::Damaged { at }),
        }
    }

    fn form(&self, words: &[u64], at: u64) -> Result<Form, CheckpointError> {
        packed::unpack(self.d(), words).map_err(|why| CheckpointError::Form { at, why })
    }

    fn position(&mut self, rest: &mut Reader<'_>, at: u64) -> Option<Result<(), CheckpointError>> {
        let (index, done, slow, count) =
            (rest.u32()? as usize, rest.u64()?, rest.u64()?, rest.u32()? as usize);
        let size = 2 * packed::size(self.d().bits());
        let form = match self.form(&rest.words(size)?, at) {
            Ok(form) => form,
            Err(e) => return Some(Err(e)),
        };
        let words = rest.words(size.checked_mul(count)?)?;
        for form in words.chunks_exact(size) {
            if let Err(e) = self.form(form, at) {
                return Some(Err(e));
            }
        }
        let part = *self.state.parts.get(index)?;
        let known = &self.state.known;
        if index == known.len()
            && self.state.parts.iter().zip(known).all(|(part, known)| known.at == part.length)
        {
            let kept = PackedForms::new(self.d());
            self.state.known.push(Known { kept, at: 0, form: form.clone(), proof: None });
        }
        if index + 1 != self.state.known.len() {
            return None;
        }
        self.continued(index, part, (done, slow), form, words)
    }

    fn continued(
        &mut self,
        index: usize,
        part: Part,
        (done, slow): (u64, u64),
        form: Form,
        words: Vec<u64>,
    ) -> Option<Result<(), CheckpointError>> {
        let proving = self.proving;
        let known = self.state.known.get_mut(index)?;
        known.kept.words.extend_from_slice(&words);
        let at = done.checked_sub(part.start).filter(|&at| known.at <= at && at <= part.length)?;
        if known.kept.len() as u64 != if proving { at.div_ceil(part.parameters.every()) } else { 0 } {
            return None;
        }
        // They count among the squarings, and never decrease.
        if !(self.state.slow..=done).contains(&slow) {
            return None;
        }
        (known.at, known.form) = (at, form);
        self.state.slow = slow;
        Some(Ok(()))
    }

    fn segment(&mut self, rest: &mut Reader<'_>, at: u64) -> Option<Result<(), CheckpointError>> {
        let index = rest.u32()? as usize;
        let pi = match self.form(&rest.words(2 * packed::size(self.d().bits()))?, at) {
            Ok(pi) => pi,
            Err(e) => return Some(Err(e)),
        };
        let length = self.state.parts.get(index)?.length;
        let known = self.state.known.get_mut(index)?;
        if !self.proving || known.at != length || known.proof.is_some() {
            return None;
        }
        known.proof = Some(pi);
        known.kept.words = Vec::new();
        Some(Ok(()))
    }
}
