//! The beginning of a checkpoint, which binds it to its computation.
#![forbid(unsafe_code)]

use super::{CHECK, CheckpointError, Difference, Link, MAGIC, VERSION};
use crate::form::packed;
use crate::prover::Task;
use crate::prover::plan::{MOST_K, MOST_L, Parameters, Part};

/// Magic, version, and the length of the rest without its check.
const FIXED: usize = 16;

fn words(words: &[u64], out: &mut Vec<u8>) {
    words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

/// The whole preamble.
pub(super) fn bytes(task: &Task, proving: bool, parts: &[Part]) -> Vec<u8> {
    let d = &task.discriminant;
    let mut body = vec![u8::from(proving)];
    let magnitude = d.number().magnitude();
    body.extend_from_slice(&(magnitude.len() as u32).to_le_bytes());
    words(magnitude, &mut body);
    words(&packed::pack(d, &task.x), &mut body);
    body.extend_from_slice(&task.iterations.to_le_bytes());
    body.extend_from_slice(&(parts.len() as u32).to_le_bytes());
    for part in parts {
        body.extend_from_slice(&part.length.to_le_bytes());
        body.extend_from_slice(&part.parameters.k.to_le_bytes());
        body.extend_from_slice(&part.parameters.l.to_le_bytes());
    }
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(&body);
    let check = Link::of_preamble(&out);
    out.extend_from_slice(check.check());
    out
}

/// Reads bytes one after the other.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (out, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(out)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(crate) fn words(&mut self, n: usize) -> Option<Vec<u64>> {
        let bytes = self.take(n.checked_mul(8)?)?;
        Some(bytes.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap_or_default())).collect())
    }
}

/// The length of the preamble that begins like this; `None` if there are too few bytes.
///
/// # Errors
/// [`CheckpointError::NotACheckpoint`] and [`CheckpointError::Version`].
pub(super) fn length(start: &[u8]) -> Result<Option<usize>, CheckpointError> {
    let known = start.len().min(MAGIC.len());
    if start[..known] != MAGIC[..known] {
        return Err(CheckpointError::NotACheckpoint);
    }
    let mut rest = Reader(&start[known..]);
    let (Some(version), body) = (rest.u32(), rest.u32()) else { return Ok(None) };
    if version != VERSION {
        return Err(CheckpointError::Version { got: version });
    }
    Ok(body.map(|body| FIXED + body as usize + CHECK))
}

/// The segments and parameters in a whole preamble, if it is the task's.
///
/// # Errors
/// The difference, or that the bytes were changed.
pub(super) fn read(bytes: &[u8], task: &Task, proving: bool) -> Result<Vec<Part>, CheckpointError> {
    let damaged = CheckpointError::Damaged { at: 0 };
    let Some((content, check)) = bytes.split_at_checked(bytes.len().saturating_sub(CHECK)) else {
        return Err(damaged);
    };
    if Link::of_preamble(content).check() != check {
        return Err(damaged);
    }
    let mut rest = Reader(content.get(FIXED..).unwrap_or_default());
    match fields(&mut rest, task, proving) {
        Some(Ok(parts)) if rest.0.is_empty() => Ok(parts),
        Some(Err(what)) => Err(CheckpointError::Foreign(what)),
        _ => Err(damaged),
    }
}

/// `None` if the fields are invalid.
fn fields(rest: &mut Reader<'_>, task: &Task, proving: bool) -> Option<Result<Vec<Part>, Difference>> {
    let d = &task.discriminant;
    if rest.take(1)? != [u8::from(proving)] {
        return Some(Err(Difference::Purpose));
    }
    let limbs = rest.u32()? as usize;
    if rest.words(limbs)? != d.number().magnitude() {
        return Some(Err(Difference::Discriminant));
    }
    let x = packed::pack(d, &task.x);
    if rest.words(x.len())? != x {
        return Some(Err(Difference::Input));
    }
    if rest.u64()? != task.iterations {
        return Some(Err(Difference::Iterations));
    }
    let count = rest.u32()? as usize;
    let (mut parts, mut start) = (Vec::new(), 0u64);
    for _ in 0..count {
        let (length, k, l) = (rest.u64()?, rest.u32()?, rest.u32()?);
        if !(1..=MOST_K).contains(&k) || !(1..=MOST_L).contains(&l) || length == 0 {
            return None;
        }
        parts.push(Part { start, length, parameters: Parameters { k, l } });
        start = start.checked_add(length)?;
    }
    if start != task.iterations {
        return None;
    }
    let before = &parts[..count.checked_sub(1)?];
    let segments: &[u64] = if proving { &task.segments } else { &[] };
    if !before.iter().map(|part| part.length).eq(segments.iter().copied()) {
        return Some(Err(Difference::Segments));
    }
    Some(Ok(parts))
}
