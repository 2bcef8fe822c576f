//! Key generation, signing and verification: the schedule of kernels, for one item or for a few at once.
//!
//! Hashing that does not depend on field arithmetic comes first, for all items of a group together, so that a backend
//! can hash them side by side into a `Prepared` for each. The rest runs item by item. A group's memory is wiped once,
//! at its end.
//!
//! Callers have checked the lengths of all bytes; `keys` has types and errors. A wrong length panics: nothing is
//! computed from an earlier operation's remains in the workspace.
#![forbid(unsafe_code)]

use alloc::vec;
use alloc::vec::Vec;

use crate::backend::operands::{ExpandSecret, Finish, Keygen, Matrices, Sign, Solve, Verify, Whip};
use crate::backend::{Expand, SLACK, SetKernels};
use crate::digest::Message;
use crate::error::Error;
use crate::field::{pack, unpack};
use crate::params::{SEED_PK_BYTES, Sizes};
use crate::sys::Block;
use crate::verify::Admitted;
use crate::workspace::{self, Elements, Holds, Prepared, Public, Secret};

/// Attempts before signing gives up, as the specification sets.
const ATTEMPTS: core::ops::RangeInclusive<u8> = 0..=255;

/// Messages that one call of [`hash_each`] hands to a backend at a time: no backend has more lanes.
const AT_ONCE: usize = 8;

/// MAYO of one parameter set on one backend: what an operation runs on.
#[derive(Clone, Copy, Debug)]
pub struct Scheme {
    /// The backend's AES and SHAKE.
    pub symmetric: &'static Expand,
    /// The set's kernels.
    pub kernels: &'static SetKernels,
}

/// Hashes each input into the output beside it, as many side by side as the backend can.
pub fn hash_each<'a>(e: &Expand, mut pairs: impl Iterator<Item = (&'a [u8], &'a mut [u8])>) {
    let Some((input, out)) = pairs.next() else { return };
    // One alone, as in every single call, needs no lists.
    let Some(second) = pairs.next() else { return e.shake256(&[input], out) };
    let (mut inputs, mut outs) = ([&[][..]; AT_ONCE], <[&mut [u8]; AT_ONCE]>::default());
    ((inputs[0], outs[0]), (inputs[1], outs[1])) = ((input, out), second);
    let mut count = 2;
    for (input, out) in pairs {
        if count == AT_ONCE {
            e.shake256_xn(&inputs, &mut outs);
            count = 0;
        }
        (inputs[count], outs[count]) = (input, out);
        count += 1;
    }
    e.shake256_xn(&inputs[..count], &mut outs[..count]);
}

/// Bytes of seed_pk and packed O.
const fn seed_hash_bytes(set: &Sizes) -> usize {
    SEED_PK_BYTES + set.o_bytes()
}

/// seed_pk, and O into `elements`, from the hash of the seed.
fn take_seed(set: &Sizes, hash: &[u8], elements: &mut Elements) -> [u8; SEED_PK_BYTES] {
    let mut seed_pk = [0; SEED_PK_BYTES];
    seed_pk.copy_from_slice(&hash[..SEED_PK_BYTES]);
    unpack(&hash[SEED_PK_BYTES..seed_hash_bytes(set)], &mut elements.o[..set.v() * set.o]);
    seed_pk
}

/// Hashes seeds side by side. The hash of one alone runs beside the expansion of its P; returns whether it did.
fn hash_seeds<'a>(
    on: Scheme,
    mut pairs: impl Iterator<Item = (&'a [u8], &'a mut [u8])>,
    public: &mut Public<'_>,
) -> bool {
    let (e, set) = (on.symmetric, on.kernels.sizes);
    let Some((seed_sk, hash)) = pairs.next() else { return false };
    let Some(second) = pairs.next() else {
        e.seed_and_stream(seed_sk, hash, &mut public.p[..set.p12_bytes()]);
        return true;
    };
    hash_each(e, [(seed_sk, hash), second].into_iter().chain(pairs));
    false
}

fn expand_p(on: Scheme, seed_pk: &[u8; SEED_PK_BYTES], public: &mut Public<'_>) {
    let (e, set) = (on.symmetric, on.kernels.sizes);
    e.aes128_ctr(seed_pk, 0, &mut public.p[..set.p12_bytes()]);
}

/// P1, P2 and P3 of a compact public key.
fn expand_key(on: Scheme, public_key: &[u8], public: &mut Public<'_>) {
    let set = on.kernels.sizes;
    let (head, p3) = public_key.split_at(SEED_PK_BYTES);
    let mut seed_pk = [0; SEED_PK_BYTES];
    seed_pk.copy_from_slice(head);
    expand_p(on, &seed_pk, public);
    // All of P3: the workspace still holds that of an earlier key.
    public.p3[..set.p3_vecs() * set.m_bytes()].copy_from_slice(p3);
}

/// Bytes of the target t, with lambda's key and nonce where the set has a linear term.
const fn target_bytes(set: &Sizes) -> usize {
    set.m_bytes() + if set.linear_term { 32 } else { 0 }
}

/// lambda, where the set has a linear term.
fn expand_lambda(on: Scheme, t: &[u8], lambda: &mut [u8]) {
    let (e, set) = (on.symmetric, on.kernels.sizes);
    if set.linear_term {
        let mb = set.m_bytes();
        let (mut key, mut nonce) = ([0; 16], [0; 16]);
        key.copy_from_slice(&t[mb..mb + 16]);
        nonce.copy_from_slice(&t[mb + 16..mb + 32]);
        e.aes128_ctr_xor(&key, &nonce, &mut lambda[..set.n * mb]);
    }
}

/// A key to generate.
pub(crate) struct KeygenItem<'a> {
    pub(crate) seed_sk: &'a [u8],
    /// Gets the compact public key.
    pub(crate) public_key: &'a mut [u8],
}

/// The compact public keys of secret seeds. Seeds are hashed side by side, the rest runs one by one.
pub(crate) fn keygen_group(on: Scheme, items: &mut [KeygenItem<'_>]) {
    let (kernels, set) = (on.kernels, on.kernels.sizes);
    assert!(items.iter().all(|item| item.seed_sk.len() == set.secret_key_bytes()), "a seed of another set");
    workspace::with(kernels, Holds::KeygenSecrets, |w| {
        let (mut public, secret) = w.parts(kernels, true, items.len());
        let seeds = items.iter().map(|item| item.seed_sk);
        let hashes = secret.prepared.iter_mut().map(|p| &mut p.seed[..seed_hash_bytes(set)]);
        let expanded = hash_seeds(on, seeds.zip(hashes), &mut public);
        for (item, prepared) in items.iter_mut().zip(secret.prepared) {
            let seed_pk = take_seed(set, &prepared.seed, secret.elements);
            if !expanded {
                expand_p(on, &seed_pk, &mut public);
            }
            let (head, p3) = item.public_key.split_at_mut(SEED_PK_BYTES);
            head.copy_from_slice(&seed_pk);
            kernels.keygen(Keygen {
                p: public.p,
                o: &secret.elements.o[..set.v() * set.o],
                p3,
                scratch: secret.scratch,
            });
        }
    });
}

/// The compact public key of a secret seed, into `public_key`.
pub(crate) fn keygen(on: Scheme, seed_sk: &[u8], public_key: &mut [u8]) {
    keygen_group(on, &mut [KeygenItem { seed_sk, public_key }]);
}

/// The source of a signer's matrices.
#[derive(Clone, Copy)]
pub(crate) enum SecretSource<'a> {
    /// The compact key alone: everything is expanded for each signature.
    Compact,
    /// O (elements) and the backend's layout of P1 and L.
    Expanded { o: &'a [u8], layout: &'a [Block] },
}

/// A message to sign.
pub(crate) struct SignItem<'a> {
    pub(crate) seed_sk: &'a [u8],
    pub(crate) source: SecretSource<'a>,
    pub(crate) message: Message<'a>,
    pub(crate) randomizer: &'a [u8],
    /// Gets the signature, or zeros on failure.
    pub(crate) signature: &'a mut [u8],
    /// Gets whether signing succeeded: false if all attempts failed.
    pub(crate) made: bool,
}

/// All hashes of signing up to the first attempt's vinegar vectors. Returns whether the P of the only compact key is there.
fn prepare_signing(
    on: Scheme,
    items: &mut [SignItem<'_>],
    prepared: &mut [Prepared],
    public: &mut Public<'_>,
) -> bool {
    let (e, set) = (on.symmetric, on.kernels.sizes);
    let salted = set.digest_bytes + set.salt_bytes;
    let seeded = salted + set.secret_key_bytes();
    for (item, p) in items.iter().zip(&mut *prepared) {
        p.line[set.digest_bytes..salted].copy_from_slice(item.randomizer);
        p.line[salted..seeded].copy_from_slice(item.seed_sk);
        p.line[seeded] = *ATTEMPTS.start();
    }
    let both = items.iter().zip(&mut *prepared);
    let compact = both.filter(|(item, _)| matches!(item.source, SecretSource::Compact));
    let seeds = compact.map(|(item, p)| (item.seed_sk, &mut p.seed[..seed_hash_bytes(set)]));
    let expanded = hash_seeds(on, seeds, public);
    let both = items.iter().zip(&mut *prepared);
    hash_each(e, both.filter_map(|(item, p)| item.message.to_hash(&mut p.line[..set.digest_bytes])));
    let both = items.iter_mut().zip(&*prepared);
    hash_each(e, both.map(|(item, p)| (&p.line[..seeded], salt_of(set, item.signature))));
    for (item, p) in items.iter_mut().zip(&mut *prepared) {
        p.line[set.digest_bytes..salted].copy_from_slice(salt_of(set, item.signature));
    }
    hash_each(e, prepared.iter_mut().map(|p| (&p.line[..salted], &mut p.t[..target_bytes(set)])));
    hash_each(e, prepared.iter_mut().map(|p| (&p.line[..=seeded], &mut p.drawn[..drawn_bytes(set)])));
    expanded
}

fn salt_of<'a>(set: &Sizes, signature: &'a mut [u8]) -> &'a mut [u8] {
    let at = signature.len() - set.salt_bytes;
    &mut signature[at..]
}

/// Bytes of the packed vinegar vectors and r.
const fn drawn_bytes(set: &Sizes) -> usize {
    set.k * set.v_bytes() + set.r_bytes()
}

/// Signs with given randomizers. Hashes for the first attempts side by side, the rest one by one.
pub(crate) fn sign_group(on: Scheme, items: &mut [SignItem<'_>]) {
    let kernels = on.kernels;
    let is_compact = |item: &SignItem<'_>| matches!(item.source, SecretSource::Compact);
    let compact = items.iter().any(is_compact);
    let holds = match (compact, items.iter().all(is_compact)) {
        (false, _) => Holds::SignExpandedSecrets,
        (true, true) => Holds::SignSecrets,
        (true, false) => Holds::Secrets,
    };
    workspace::with(kernels, holds, |w| {
        let (mut public, mut secret) = w.parts(kernels, compact, items.len());
        let prepared = core::mem::take(&mut secret.prepared);
        let expanded = prepare_signing(on, items, prepared, &mut public);
        for (item, prepared) in items.iter_mut().zip(prepared) {
            item.made = sign_prepared(on, item, prepared, expanded, &mut public, &mut secret);
            if !item.made {
                item.signature.fill(0);
            }
        }
    });
}

/// Makes the attempts at one signature, from the P that is there if it is `expanded`. Returns whether one succeeded.
fn sign_prepared(
    on: Scheme,
    item: &mut SignItem<'_>,
    prepared: &mut Prepared,
    expanded: bool,
    public: &mut Public<'_>,
    secret: &mut Secret<'_>,
) -> bool {
    let (e, kernels, set) = (on.symmetric, on.kernels, on.kernels.sizes);
    let el = &mut *secret.elements;
    match item.source {
        SecretSource::Compact => {
            let seed_pk = take_seed(set, &prepared.seed, el);
            if !expanded {
                expand_p(on, &seed_pk, public);
            }
        }
        SecretSource::Expanded { o, .. } => el.o[..o.len()].copy_from_slice(o),
    }
    expand_lambda(on, &prepared.t, public.lambda);
    let (v, k, oil) = (set.v(), set.k, set.o);
    let numbered = set.digest_bytes + set.salt_bytes + set.secret_key_bytes();
    for attempt in ATTEMPTS {
        let drawn = &mut prepared.drawn[..drawn_bytes(set)];
        if attempt > *ATTEMPTS.start() {
            prepared.line[numbered] = attempt;
            e.shake256(&[&prepared.line[..=numbered]], drawn);
        }
        let (vinegar, r) = drawn.split_at(k * set.v_bytes());
        for (packed, elements) in
            vinegar.chunks_exact(set.v_bytes()).zip(el.vinegar[..k * v].chunks_exact_mut(v))
        {
            unpack(packed, elements);
        }
        unpack(r, &mut el.r[..k * oil]);
        let (o, vinegar) = (&el.o[..v * oil], &el.vinegar[..k * v]);
        let (lambda, m, u, scratch) = (&*public.lambda, &mut *secret.m, &mut *secret.u, &mut *secret.scratch);
        match item.source {
            SecretSource::Compact => {
                kernels.sign(Sign { key: public.p, o, vinegar, lambda, m, u, scratch });
            }
            SecretSource::Expanded { layout, .. } => {
                kernels.sign_expanded(Sign { key: layout, o, vinegar, lambda, m, u, scratch });
            }
        }
        let (t, r, x) = (&prepared.t[..set.m_bytes()], &el.r[..k * oil], &mut el.x[..k * oil]);
        let (m, u, scratch) = (&*secret.m, &*secret.u, &mut *secret.scratch);
        // Full rank is public: the time shows it, and the specification releases it.
        if kernels.solve(Solve { m, u, t, r, x, scratch }) {
            let s = &mut el.s[..k * set.n];
            kernels.finish(Finish { o, vinegar, x, s });
            let encoded = item.signature.len() - set.salt_bytes;
            pack(s, &mut item.signature[..encoded]);
            return true;
        }
    }
    false
}

/// Signs with a given randomizer. `signature` gets the signature, or zeros with the error.
pub(crate) fn sign(
    on: Scheme,
    seed_sk: &[u8],
    source: SecretSource<'_>,
    message: Message<'_>,
    randomizer: &[u8],
    signature: &mut [u8],
) -> Result<(), Error> {
    let mut item = [SignItem { seed_sk, source, message, randomizer, signature, made: false }];
    sign_group(on, &mut item);
    if item[0].made { Ok(()) } else { Err(Error::Exhausted) }
}

/// The source of a verifier's matrices.
#[derive(Clone, Copy)]
pub(crate) enum PublicSource<'a> {
    /// The compact public key.
    Compact(&'a [u8]),
    /// The backend's layout of P1, P2 and P3.
    Expanded(&'a [Block]),
}

/// A signature to verify.
pub(crate) struct VerifyItem<'a> {
    pub(crate) source: PublicSource<'a>,
    pub(crate) admitted: Admitted<'a>,
    /// Gets the verdict.
    pub(crate) valid: bool,
}

/// The packed s and the salt of a signature.
fn parts<'a>(set: &Sizes, signature: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    assert_eq!(signature.len(), set.signature_bytes(), "a signature of another set");
    signature.split_at(set.signature_bytes() - set.salt_bytes)
}

/// Verifies signatures. Hashes side by side, then runs one by one. One that does not verify may be a faulty one of this
/// machine, which may reveal the key, so it is wiped.
pub(crate) fn verify_group(on: Scheme, items: &mut [VerifyItem<'_>]) {
    let (e, kernels, set) = (on.symmetric, on.kernels, on.kernels.sizes);
    workspace::with(kernels, Holds::Secrets, |w| {
        let compact = items.iter().any(|item| matches!(item.source, PublicSource::Compact(_)));
        let (mut public, mut secret) = w.parts(kernels, compact, items.len());
        let prepared = core::mem::take(&mut secret.prepared);
        let (d, salted) = (set.digest_bytes, set.digest_bytes + set.salt_bytes);
        for (item, p) in items.iter().zip(&mut *prepared) {
            p.line[d..salted].copy_from_slice(parts(set, item.admitted.signature()).1);
        }
        let both = items.iter().zip(&mut *prepared);
        hash_each(e, both.filter_map(|(item, p)| item.admitted.message().to_hash(&mut p.line[..d])));
        hash_each(e, prepared.iter_mut().map(|p| (&p.line[..salted], &mut p.t[..target_bytes(set)])));
        for (item, prepared) in items.iter_mut().zip(prepared) {
            item.valid = verify_prepared(on, item, &prepared.t, &mut public, &mut secret);
        }
        if items.iter().all(|item| item.valid) {
            w.holds_public_data();
        }
    });
}

/// Whether P*(s) is t.
fn verify_prepared(
    on: Scheme,
    item: &VerifyItem<'_>,
    t: &[u8],
    public: &mut Public<'_>,
    secret: &mut Secret<'_>,
) -> bool {
    let (kernels, set) = (on.kernels, on.kernels.sizes);
    let s = &mut secret.elements.s[..set.k * set.n];
    unpack(parts(set, item.admitted.signature()).0, s);
    expand_lambda(on, t, public.lambda);
    if let PublicSource::Compact(key) = item.source {
        expand_key(on, key, public);
    }
    let (lambda, u, scratch) = (&*public.lambda, &mut *secret.u, &mut *secret.scratch);
    match item.source {
        PublicSource::Compact(_) => {
            let key = Matrices { p: public.p, p3: public.p3 };
            kernels.verify(Verify { key, s, lambda, u, scratch });
        }
        PublicSource::Expanded(key) => kernels.verify_expanded(Verify { key, s, lambda, u, scratch }),
    }
    let mut y = [0; 128];
    let y = &mut y[..set.m_bytes()];
    kernels.whip(Whip { u: secret.u, y });
    *y == t[..set.m_bytes()]
}

/// Whether the signature is valid.
pub(crate) fn verify(on: Scheme, source: PublicSource<'_>, admitted: Admitted<'_>) -> bool {
    let mut item = [VerifyItem { source, admitted, valid: false }];
    verify_group(on, &mut item);
    item[0].valid
}

/// The backend's layout of an expanded public key.
pub(crate) fn expand_public(on: Scheme, public_key: &[u8]) -> Vec<Block> {
    let kernels = on.kernels;
    match &kernels.public {
        None => {
            let mut layout = vec![Block::ZERO; kernels.public_blocks()];
            let (p, p3) = kernels.places(&mut layout);
            expand_key(on, public_key, &mut Public { p, p3, lambda: &mut [] });
            layout
        }
        Some(own) => workspace::with(kernels, Holds::Public, |w| {
            let (mut public, _) = w.parts(kernels, true, 0);
            expand_key(on, public_key, &mut public);
            own.expanded(kernels, Matrices { p: public.p, p3: public.p3 })
        }),
    }
}

/// O as elements into `o`, and the backend's layout of P1 and L.
pub(crate) fn expand_secret(on: Scheme, seed_sk: &[u8], o: &mut [u8]) -> Vec<Block> {
    let (kernels, set) = (on.kernels, on.kernels.sizes);
    let mut layout = vec![Block::ZERO; kernels.secret_blocks];
    workspace::with(kernels, Holds::Secrets, |w| {
        let (mut public, secret) = w.parts(kernels, true, 1);
        let hash = &mut secret.prepared[0].seed[..seed_hash_bytes(set)];
        hash_seeds(on, core::iter::once((seed_sk, &mut *hash)), &mut public);
        take_seed(set, hash, secret.elements);
        o.copy_from_slice(&secret.elements.o[..o.len()]);
        kernels.expand_secret(ExpandSecret { p: public.p, o, layout: &mut layout, scratch: secret.scratch });
    });
    layout
}

// The slack after P, P3 and lambda is only for over-reads; no result may depend on its value.
const _: () = assert!(SLACK >= 128);
