//! The jobs of a lane, and the memory that each takes.
#![forbid(unsafe_code)]

use lanework_mayo::Params;

use super::shape;

/// The job of a lane, which determines its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// Public keys of seeds.
    Keygen,
    /// Expanded keys, into memory of their own.
    Expand,
    /// Signatures with compact keys, a key to each.
    Sign,
    /// Signatures with expanded keys.
    SignExpanded,
    /// Verdicts with compact keys, a key to each.
    Verify,
    /// Verdicts with expanded keys.
    VerifyExpanded,
}

impl Job {
    pub(super) const fn signs(self) -> bool {
        matches!(self, Job::Sign | Job::SignExpanded)
    }
    pub(super) const fn judges(self) -> bool {
        !matches!(self, Job::Keygen | Job::Expand)
    }
    pub(super) const fn has_seeds(self) -> bool {
        matches!(self, Job::Keygen | Job::Expand | Job::Sign)
    }
    pub(super) const fn expands(self) -> bool {
        matches!(self, Job::Keygen | Job::Sign | Job::Verify)
    }
}

/// Values of each buffer that an operation takes. A buffer that a job does not use has one value.
pub(super) struct Need {
    pub(super) seeds: usize,
    pub(super) hashes: usize,
    pub(super) schedules: usize,
    pub(super) p: usize,
    pub(super) public_keys: usize,
    pub(super) judged: bool,
    pub(super) signs: bool,
}

pub(super) fn need(p: &Params, job: Job) -> Need {
    let own = |used: bool, each: usize| if used { each } else { 0 };
    let vecs = if job == Job::Keygen { shape::p12(p) } else { shape::public_vecs(p) };
    Need {
        seeds: own(job.has_seeds(), p.salt_bytes()),
        hashes: own(job.has_seeds(), shape::seed(p)),
        schedules: 44,
        p: own(job.expands(), vecs * shape::words(p)),
        public_keys: own(job.expands() || job == Job::Expand, p.public_key_bytes()),
        judged: job.judges(),
        signs: job.signs(),
    }
}

/// Bytes of the matrices that one operation expands for itself.
pub(crate) fn matrix_bytes(p: &Params, job: Job) -> usize {
    need(p, job).p * 4
}

/// Bytes of device memory that one operation takes beside its matrices.
pub(crate) fn bytes_each(p: &Params, job: Job) -> usize {
    let n = need(p, job);
    let judged = p.digest_bytes()
        + shape::target(p)
        + (p.n() + p.pairs()) * shape::words(p) * 4
        + p.signature_bytes()
        + 2
        + 8;
    let signs = p.salt_bytes() + shape::SALT + shape::drawn(p) + p.k() * p.o() * shape::words(p) * 4;
    n.seeds
        + n.hashes
        + n.schedules * 4
        + n.public_keys
        + if n.judged { judged } else { 0 }
        + if n.signs { signs } else { 0 }
}
