//! A backend with the real kernels, each inside a function that marks the scheme's releases for memcheck.
//!
//! These are released: the public seed, where it comes out of SHAKE256; the salt, likewise; the bit that `solve` returns; P3,
//! as key generation leaves it; s, where verification takes it up. Everything else that derives from the secret seed
//! stays secret. The functions also assert that secrets arrive as secrets, since silence means nothing where memcheck
//! has lost track.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::hint::black_box;

use lanework_leakage::memcheck::{release, secret_bytes};

use crate::backend::operands::{ExpandSecret, Finish, Keygen, Matrices, Sign, Solve, Verify};
use crate::backend::{Engine, altered};
use crate::backend::{Expand, Kernels, PublicLayout, SetKernels};
use crate::params::{Params, SEED_PK_BYTES};
use crate::sys::{Block, bytes};

thread_local! {
    /// The real kernels, and the set of this thread's operations.
    static TRUE: Cell<Option<(&'static Kernels, &'static Params)>> = const { Cell::new(None) };
    static SEEN: Cell<Seen> = const { Cell::new(Seen::NOTHING) };
}

/// What an operation has released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) public_seeds: usize,
    pub(super) salts: usize,
    /// Systems tried; all but the last of each signature had too small a rank.
    pub(super) attempts: usize,
    /// The most messages hashed side by side.
    pub(super) lanes: usize,
}

impl Seen {
    const NOTHING: Seen = Seen { public_seeds: 0, salts: 0, attempts: 0, lanes: 0 };

    fn note(change: impl FnOnce(&mut Seen)) {
        let mut seen = SEEN.get();
        change(&mut seen);
        SEEN.set(seen);
    }

    /// What was released since the last call.
    pub(super) fn take() -> Seen {
        SEEN.replace(Seen::NOTHING)
    }
}

/// `kernels` under instruments, for operations of `params` on this thread until the next call.
pub(super) fn instrument(name: &'static str, kernels: &'static Kernels, params: &'static Params) -> Engine {
    TRUE.set(Some((kernels, params)));
    let side_by_side = kernels.expand.seed_and_stream.map(|_| seed_and_stream as _);
    let expand = Expand {
        aes128_ctr,
        aes128_ctr_xor,
        shake256,
        seed_and_stream: side_by_side,
        shake256_xn,
        ..kernels.expand
    };
    let sets = kernels.sets.map(|set| SetKernels {
        keygen,
        sign,
        verify,
        solve,
        finish,
        public: set.public.map(|own| PublicLayout { verify: verify_expanded, ..own }),
        expand_secret,
        sign_expanded,
        ..set.around_another()
    });
    altered(name, Kernels { expand, sets })
}

fn params() -> &'static Params {
    TRUE.get().unwrap().1
}

fn expand() -> &'static Expand {
    &TRUE.get().unwrap().0.expand
}

fn set() -> &'static SetKernels {
    let (kernels, params) = TRUE.get().unwrap();
    &kernels.sets[params.index()]
}

fn all_secret(what: &str, bytes: &[u8]) {
    assert_eq!(secret_bytes(bytes), bytes.len(), "{what}: memcheck has lost track of secrets");
}

/// For data that is secret except for its padding.
fn holds_secrets(what: &str, blocks: &[Block]) {
    assert!(secret_bytes(bytes(blocks)) >= blocks.len() * 32, "{what}: memcheck has lost track of secrets");
}

fn public(what: &str, bytes: &[u8]) {
    assert_eq!(secret_bytes(bytes), 0, "{what} should be public and is not");
}

fn aes128_ctr(key: &[u8; 16], first_block: u32, out: &mut [u8]) {
    public("the key of P", key);
    expand().aes128_ctr(key, first_block, out);
}

fn aes128_ctr_xor(key: &[u8; 16], nonce: &[u8; 16], out: &mut [u8]) {
    public("the key of lambda", key);
    public("the nonce of lambda", nonce);
    expand().aes128_ctr_xor(key, nonce, out);
}

fn seed_and_stream(seed: &[u8], hash: &mut [u8], stream: &mut [u8]) {
    expand().seed_and_stream(seed, hash, stream);
    all_secret("seed_pk and O", hash);
    release(&hash[..SEED_PK_BYTES]);
    // The key of P was secret until now, so P counts as secret, too.
    release(stream);
    Seen::note(|seen| seen.public_seeds += 1);
}

fn shake256(parts: &[&[u8]], out: &mut [u8]) {
    expand().shake256(parts, out);
    give_away(parts.iter().map(|part| part.len()).sum(), out);
}

fn shake256_xn(messages: &[&[u8]], outs: &mut [&mut [u8]]) {
    expand().shake256_xn(messages, outs);
    messages.iter().zip(outs).for_each(|(message, out)| give_away(message.len(), out));
    Seen::note(|seen| seen.lanes = seen.lanes.max(messages.len()));
}

/// Releases of a hash of `absorbed` bytes what the scheme does.
fn give_away(absorbed: usize, out: &[u8]) {
    let set = params();
    // The lengths of input and output identify a hash: no two have both in common.
    match (absorbed, out.len()) {
        (seed, length) if seed == set.secret_key_bytes() && length == SEED_PK_BYTES + set.o_bytes() => {
            all_secret("seed_pk and O", out);
            release(&out[..SEED_PK_BYTES]);
            Seen::note(|seen| seen.public_seeds += 1);
        }
        // Of the digest, the randomizer and the seed.
        (line, length)
            if line == set.digest_bytes() + set.salt_bytes() + set.secret_key_bytes()
                && length == set.salt_bytes() =>
        {
            all_secret("the salt", out);
            release(out);
            Seen::note(|seen| seen.salts += 1);
        }
        // The digest, t and lambda's key are public; the vinegar's input stays secret.
        _ => {}
    }
}

fn keygen(Keygen { p, o, p3, scratch }: Keygen<'_>) {
    all_secret("O", o);
    public("P", p);
    set().keygen(Keygen { p, o, p3, scratch });
    all_secret("P3", p3);
    release(p3);
}

fn expand_secret(ExpandSecret { p, o, layout, scratch }: ExpandSecret<'_>) {
    all_secret("O", o);
    public("P", p);
    set().expand_secret(ExpandSecret { p, o, layout, scratch });
}

fn sign(Sign { key: p, o, vinegar, lambda, m, u, scratch }: Sign<'_, &[u8]>) {
    all_secret("O", o);
    all_secret("the vinegar", vinegar);
    public("P", p);
    public("lambda", lambda);
    set().sign(Sign { key: p, o, vinegar, lambda, m, u, scratch });
}

fn sign_expanded(Sign { key: layout, o, vinegar, lambda, m, u, scratch }: Sign<'_, &[Block]>) {
    all_secret("O", o);
    all_secret("the vinegar", vinegar);
    assert!(secret_bytes(bytes(layout)) > 0, "L: memcheck has lost track of secrets");
    public("lambda", lambda);
    set().sign_expanded(Sign { key: layout, o, vinegar, lambda, m, u, scratch });
}

fn solve(Solve { m, u, t, r, x, scratch }: Solve<'_>) -> bool {
    holds_secrets("M", m);
    holds_secrets("U", u);
    all_secret("r", r);
    public("t", t);
    let solvable = black_box([u8::from(set().solve(Solve { m, u, t, r, x, scratch }))]);
    assert_eq!(secret_bytes(&solvable), 1, "solvability: memcheck has lost track of secrets");
    all_secret("x", x);
    release(&solvable);
    Seen::note(|seen| seen.attempts += 1);
    // Read from memory again: the copy in a register is still a secret to memcheck.
    black_box(&solvable)[0] != 0
}

fn finish(Finish { o, vinegar, x, s }: Finish<'_>) {
    set().finish(Finish { o, vinegar, x, s });
    all_secret("s", s);
}

fn verify(Verify { key: Matrices { p, p3 }, s, lambda, u, scratch }: Verify<'_, Matrices<'_>>) {
    release(s);
    set().verify(Verify { key: Matrices { p, p3 }, s, lambda, u, scratch });
}

fn verify_expanded(Verify { key: layout, s, lambda, u, scratch }: Verify<'_, &[Block]>) {
    release(s);
    set().verify_expanded(Verify { key: layout, s, lambda, u, scratch });
}
