//! The working memory of operations: one aligned arena per thread, made once, wiped after every operation on secrets and every
//! signature that does not verify, for one item or for a group of a batch.
#![forbid(unsafe_code)]

use alloc::vec::Vec;

#[cfg(any(test, feature = "std"))]
use core::cell::RefCell;

use crate::backend::{SLACK, SetKernels};
use crate::params::Sizes;
use crate::sys::{Block, bytes_mut, wipe, wipe_blocks, wipe_stack_and_registers};

/// Buffers of one operation. Public and secret data never share one.
pub(crate) struct Workspace {
    public: Vec<Block>,
    secret: Vec<Block>,
    elements: Elements,
    prepared: Vec<Prepared>,
    /// The part of `prepared` that the current operation uses.
    items: usize,
    /// What the current operation has to wipe.
    holds: Holds,
}

/// The hashes of one item of a group, before any field arithmetic. Sized for the largest set.
pub(crate) struct Prepared {
    /// Digest, salt (first the randomizer), seed and number of the attempt, one after the other: every hash but the
    /// first two takes a prefix of them.
    pub(crate) line: [u8; 64 + 40 + 40 + 1],
    /// seed_pk, and O packed.
    pub(crate) seed: [u8; 16 + 864],
    /// The vinegar vectors and r, packed.
    pub(crate) drawn: [u8; 1024],
    /// t, and with a linear term lambda's key and nonce.
    pub(crate) t: [u8; 128],
}

impl Prepared {
    const ZERO: Prepared = Prepared { line: [0; 145], seed: [0; 880], drawn: [0; 1024], t: [0; 128] };

    fn wipe(&mut self) {
        for buffer in [&mut self.line[..], &mut self.seed, &mut self.drawn, &mut self.t] {
            wipe(buffer);
        }
    }
}

/// Elements and short strings of one operation, each sized for the largest set.
pub(crate) struct Elements {
    /// O, v x o.
    pub(crate) o: [u8; 1728],
    /// The vinegar vectors, k x v.
    pub(crate) vinegar: [u8; 1728],
    /// r, k*o.
    pub(crate) r: [u8; 160],
    /// x, k*o.
    pub(crate) x: [u8; 160],
    /// s, k x n.
    pub(crate) s: [u8; 1856],
}

impl Elements {
    const ZERO: Elements =
        Elements { o: [0; 1728], vinegar: [0; 1728], r: [0; 160], x: [0; 160], s: [0; 1856] };

    /// Wipes the parts that operations of `set` fill.
    fn wipe(&mut self, set: &Sizes) {
        wipe(&mut self.o[..set.v() * set.o]);
        wipe(&mut self.vinegar[..set.k * set.v()]);
        wipe(&mut self.r[..set.k * set.o]);
        wipe(&mut self.x[..set.k * set.o]);
        wipe(&mut self.s[..set.k * set.n]);
    }
}

/// The public part of a workspace, cut up for one set.
pub(crate) struct Public<'a> {
    /// P1 and P2 with slack.
    pub(crate) p: &'a mut [u8],
    /// P3 with slack.
    pub(crate) p3: &'a mut [u8],
    /// lambda with slack, or empty.
    pub(crate) lambda: &'a mut [u8],
}

/// The secret part of a workspace, cut up for one set.
pub(crate) struct Secret<'a> {
    pub(crate) m: &'a mut [Block],
    pub(crate) u: &'a mut [Block],
    pub(crate) scratch: &'a mut [Block],
    pub(crate) elements: &'a mut Elements,
    /// One for each item.
    pub(crate) prepared: &'a mut [Prepared],
}

const fn blocks(bytes: usize) -> usize {
    bytes.div_ceil(64)
}

impl Workspace {
    const fn new() -> Workspace {
        Workspace {
            public: Vec::new(),
            secret: Vec::new(),
            elements: Elements::ZERO,
            prepared: Vec::new(),
            items: 0,
            holds: Holds::Public,
        }
    }

    /// Ends an operation that turned out to have left public data alone: nothing is wiped.
    pub(crate) fn holds_public_data(&mut self) {
        self.holds = Holds::Public;
    }

    /// Both parts, cut up for `kernels`' set. `whole_p` says whether P itself is needed; `items` is the operation's
    /// number of keys or messages.
    pub(crate) fn parts(
        &mut self,
        kernels: &SetKernels,
        whole_p: bool,
        items: usize,
    ) -> (Public<'_>, Secret<'_>) {
        let set = kernels.sizes;
        let p = if whole_p { blocks(set.p12_bytes() + SLACK) } else { 0 };
        let p3 = blocks(set.p3_vecs() * set.m_bytes() + SLACK);
        let lambda = if set.linear_term { blocks(set.n * set.m_bytes() + SLACK) } else { 0 };
        let m = SetKernels::padded_blocks(set, set.k * set.o);
        let u = SetKernels::padded_blocks(set, set.pairs());
        let grow = |v: &mut Vec<Block>, len| {
            if v.len() < len {
                v.resize(len, Block::ZERO);
            }
        };
        // The secret arena is empty (wiped) between operations, so growing copies no secret.
        grow(&mut self.public, p + p3 + lambda);
        grow(&mut self.secret, m + u + kernels.scratch_blocks);
        if self.prepared.len() < items {
            self.prepared.resize_with(items, || Prepared::ZERO);
        }
        self.items = items;
        let (p, rest) = self.public.split_at_mut(p);
        let (p3, rest) = rest.split_at_mut(p3);
        let lambda = &mut rest[..lambda];
        let (m, rest) = self.secret.split_at_mut(m);
        let (u, rest) = rest.split_at_mut(u);
        (
            Public { p: bytes_mut(p), p3: bytes_mut(p3), lambda: bytes_mut(lambda) },
            Secret {
                m,
                u,
                scratch: &mut rest[..kernels.scratch_blocks],
                elements: &mut self.elements,
                prepared: &mut self.prepared[..items],
            },
        )
    }

    /// Bytes that an operation of this set on that many items keeps on the heap in the thread's arena.
    #[must_use]
    pub(crate) fn bytes(kernels: &SetKernels, items: usize) -> usize {
        let mut w = Workspace::new();
        w.parts(kernels, true, items);
        (w.public.len() + w.secret.len()) * 64 + size_of::<Elements>() + items * size_of::<Prepared>()
    }
}

/// The part of the workspace that an operation makes secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Nothing.
    Public,
    /// The secret arena, the elements, the stack below and the vector registers.
    Secrets,
    /// The same, but of the secret arena only what the kernel `keygen` uses.
    KeygenSecrets,
    /// The same for the kernels `sign` and `solve`.
    SignSecrets,
    /// The same for the kernels `sign_expanded` and `solve`.
    SignExpandedSecrets,
}

/// Wipes when dropped, so that a panic wipes too.
struct Guard<'a> {
    workspace: &'a mut Workspace,
    set: &'static Sizes,
    /// The part of the secret arena that was used, in blocks.
    used: core::ops::Range<usize>,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if self.workspace.holds != Holds::Public {
            // Shorter only if the operation failed before it cut up its parts.
            let len = self.workspace.secret.len();
            let used = self.used.start.min(len)..self.used.end.min(len);
            wipe_blocks(&mut self.workspace.secret[used]);
            self.workspace.elements.wipe(self.set);
            let items = core::mem::take(&mut self.workspace.items);
            self.workspace.prepared.iter_mut().take(items).for_each(Prepared::wipe);
            wipe_stack_and_registers();
        }
    }
}

#[cfg(any(test, feature = "std"))]
thread_local! {
    static WORKSPACE: RefCell<Workspace> = const { RefCell::new(Workspace::new()) };
}

/// Fills this thread's workspace with a pattern, as if an earlier operation had left it there.
#[cfg(test)]
pub(crate) fn poison(pattern: u8) {
    WORKSPACE.with_borrow_mut(|w| {
        w.public.iter_mut().chain(&mut w.secret).for_each(|block| block.0.fill(pattern));
        let e = &mut w.elements;
        for buffer in [&mut e.o[..], &mut e.vinegar, &mut e.r, &mut e.x, &mut e.s] {
            buffer.fill(pattern);
        }
        for p in &mut w.prepared {
            for buffer in [&mut p.line[..], &mut p.seed, &mut p.drawn, &mut p.t] {
                buffer.fill(pattern);
            }
        }
    });
}

/// Bytes of this thread's secret arena and elements that are not zero, and the arena's length.
#[cfg(test)]
pub(crate) fn left() -> (usize, usize) {
    WORKSPACE.with_borrow(|w| {
        let e = &w.elements;
        let elements = [&e.o[..], &e.vinegar, &e.r, &e.x, &e.s].concat();
        let prepared = w.prepared.iter().flat_map(|p| [&p.line[..], &p.seed, &p.drawn, &p.t].concat());
        let arena = w.secret.iter().flat_map(|block| block.0);
        (arena.chain(elements).chain(prepared).filter(|&b| b != 0).count(), w.secret.len())
    })
}

/// Runs `operation` in this thread's workspace and then wipes it, unless only public data is there.
pub(crate) fn with<R>(kernels: &SetKernels, holds: Holds, operation: impl FnOnce(&mut Workspace) -> R) -> R {
    let set = kernels.sizes;
    let system = SetKernels::padded_blocks(set, set.k * set.o + set.pairs());
    let used = match holds {
        Holds::KeygenSecrets => system..system + kernels.keygen_blocks,
        Holds::SignSecrets => 0..system + kernels.sign_blocks,
        Holds::SignExpandedSecrets => 0..system + kernels.sign_expanded_blocks,
        Holds::Public | Holds::Secrets => 0..system + kernels.scratch_blocks,
    };
    let run = |workspace: &mut Workspace| {
        workspace.holds = holds;
        let guard = Guard { workspace, set, used };
        operation(guard.workspace)
    };
    #[cfg(any(test, feature = "std"))]
    return WORKSPACE.with_borrow_mut(run);
    // Without thread-local memory, each operation has a workspace of its own.
    #[cfg(not(any(test, feature = "std")))]
    run(&mut alloc::boxed::Box::new(Workspace::new()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Engine;
    use crate::batch::{self, Signers, Verifiers};
    use crate::error::Error;
    use crate::expanded::SigningKey;
    use crate::hazmat::sign_deterministic;
    use crate::keys::{SecretKey, SignOptions, Signature};
    use crate::params::Params;
    use getrandom::SysRng;
    use lanework_cpu::{Cpu, Threads};

    /// `tests/wiping` looks for the seed, O and the vinegar; the products of them are secret as well.
    #[test]
    fn no_operation_on_secrets_leaves_anything_in_the_workspace() {
        for engine in Engine::all(&Cpu::detect()).flatten() {
            for params in Params::all() {
                let key = SecretKey::from_seed(params, &vec![0x77; params.secret_key_bytes()]).unwrap();
                let _ = key.public_key(engine);
                assert_eq!(left().0, 0, "keygen, {}, {}", params.name(), engine.name());
                let _ = key.sign(engine, b"m").unwrap();
                assert_eq!(left().0, 0, "sign, {}, {}", params.name(), engine.name());
                let expanded = SigningKey::new(engine, &key);
                assert_eq!(left().0, 0, "expand, {}, {}", params.name(), engine.name());
                let _ = expanded.sign(b"m").unwrap();
                assert_eq!(left().0, 0, "sign expanded, {}, {}", params.name(), engine.name());
                // Verification of a valid signature leaves public data there, so the arena above is really used.
                let _ = sign_deterministic(&expanded, b"m").unwrap();
                assert!(left().0 > 0 && left().1 > 0);
                let _ = key.public_key(engine);
                let _ = key.sign(engine, b"m").unwrap();
                // Several at a time. Verification's remains in the part that only a larger group uses are public.
                let keys = vec![key.clone(); engine.expand().lanes()];
                let messages = vec![b"m"; keys.len()];
                let options = SignOptions::default();
                let _ = batch::keygen(engine, &keys, Threads::One).unwrap();
                assert_eq!(left().0, 0, "batch of keys, {}, {}", params.name(), engine.name());
                for signers in [Signers::One(&expanded), Signers::EachCompact(engine, &keys)] {
                    let _ = batch::sign(signers, &messages, options, &mut SysRng, Threads::One).unwrap();
                    assert_eq!(left().0, 0, "batch of signatures, {}, {}", params.name(), engine.name());
                }
            }
        }
    }

    /// One that a fault spoilt may reveal the key.
    #[test]
    fn a_signature_that_does_not_verify_leaves_nothing_in_the_workspace() {
        for engine in Engine::all(&Cpu::detect()).flatten() {
            for params in Params::all() {
                let key = SecretKey::from_seed(params, &vec![0x77; params.secret_key_bytes()]).unwrap();
                let signing = SigningKey::new(engine, &key);
                let (verifying, public) = (signing.verifying_key(), key.public_key(engine));
                let valid = key.sign(engine, b"m").unwrap();
                let mut bytes = valid.as_bytes().to_vec();
                bytes[0] ^= 1;
                let wrong = Signature::from_bytes(params, &bytes).unwrap();
                let what = format!("{}, {}", params.name(), engine.name());
                assert_eq!(public.verify(engine, b"m", &wrong), Err(Error::Refused));
                assert_eq!(left().0, 0, "{what}");
                assert_eq!(verifying.verify(b"m", &wrong), Err(Error::Refused));
                assert_eq!(left().0, 0, "expanded, {what}");
                // Among valid ones.
                let mut signatures = vec![valid; engine.expand().lanes()];
                *signatures.last_mut().unwrap() = wrong;
                let messages = vec![b"m"; signatures.len()];
                for verifiers in [Verifiers::One(verifying), Verifiers::OneCompact(engine, &public)] {
                    let verdicts = batch::verify(verifiers, &messages, &signatures, Threads::One).unwrap();
                    assert_eq!(verdicts.last(), Some(&Err(Error::Refused)));
                    assert_eq!(left().0, 0, "batch, {what}");
                }
            }
        }
    }
}
