//! Key generation, signing and verification: the schedule of kernels, one operation at a time.
//!
//! These functions take and give bytes of lengths that their callers have checked; `keys` puts types and errors around.
#![forbid(unsafe_code)]

use lanework_cpu::{Backend, Cpu, Select, Unavailable};

use crate::backend::{BACKENDS, Expand, Kernels, SLACK, SetKernels};
use crate::error::Error;
use crate::field::{pack, unpack};
use crate::params::{Params, SEED_PK_BYTES};
use crate::sys::Block;
use crate::workspace::{self, Elements, Holds, Public};

/// A backend's kernels together with its name: what every key holds on to.
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    pub(crate) name: &'static str,
    pub(crate) kernels: &'static Kernels,
}

/// Attempts before signing gives up, as the specification sets.
const ATTEMPTS: core::ops::RangeInclusive<u8> = 0..=255;

impl Engine {
    /// The fastest backend that this machine can run.
    #[must_use]
    pub fn best() -> Engine {
        // The first row of the table is the one that needs nothing, so that the choice cannot fail.
        Engine::choose(&Cpu::detect(), Select::Best).unwrap_or_else(|_| Engine::portable())
    }

    /// The backend for `cpu` that `how` asks for.
    ///
    /// # Errors
    /// [`Unavailable`] when a named backend does not exist or cannot run on `cpu`, with the reason.
    pub fn choose(cpu: &Cpu, how: Select<'_>) -> Result<Engine, Unavailable> {
        lanework_cpu::select(BACKENDS, cpu, how).and_then(|row| Engine::of(row, cpu))
    }

    /// Every backend, from the plainest to the fastest; for those that `cpu` cannot run, the reason.
    pub fn all(cpu: &Cpu) -> impl Iterator<Item = Result<Engine, Unavailable>> {
        BACKENDS.iter().map(move |row| Engine::of(row, cpu))
    }

    /// The backend's name, as taken by [`Select::Named`].
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What the backend's AES-128-CTR runs on: `bitsliced`, `aes-ni`, `vaes-512`.
    #[must_use]
    pub const fn aes(&self) -> &'static str {
        self.kernels.expand.aes
    }

    fn of(row: &'static Backend<Kernels>, cpu: &Cpu) -> Result<Engine, Unavailable> {
        row.get(cpu).map(|kernels| Engine { name: row.name(), kernels })
    }

    pub(crate) fn portable() -> Engine {
        Engine { name: "portable", kernels: &crate::backend::portable::KERNELS }
    }

    pub(crate) fn set(&self, params: &Params) -> &'static SetKernels {
        &self.kernels.sets[params.index()]
    }

    /// The backend's symmetric kernels, for [`crate::spec`] and for comparing them.
    #[must_use]
    pub const fn expand(&self) -> &'static Expand {
        &self.kernels.expand
    }

    /// Heap bytes that one thread needs for any operation of `params` on this backend.
    #[must_use]
    pub fn workspace_bytes(&self, params: &Params) -> usize {
        workspace::Workspace::bytes(self.set(params))
    }
}

/// seed_pk, and O into `elements`.
fn expand_seed(e: Engine, set: &Params, seed_sk: &[u8], elements: &mut Elements) -> [u8; SEED_PK_BYTES] {
    let hash = &mut elements.hash[..SEED_PK_BYTES + set.o_bytes()];
    e.expand().shake256(&[seed_sk], hash);
    let mut seed_pk = [0; SEED_PK_BYTES];
    seed_pk.copy_from_slice(&hash[..SEED_PK_BYTES]);
    unpack(&hash[SEED_PK_BYTES..], &mut elements.o[..set.v() * set.o]);
    seed_pk
}

fn expand_p(e: Engine, set: &Params, seed_pk: &[u8; SEED_PK_BYTES], public: &mut Public<'_>) {
    e.expand().aes128_ctr(seed_pk, 0, &mut public.p[..set.p12_bytes()]);
}

/// The target t (one m-vector), and lambda where the set has a linear term.
fn target(e: Engine, set: &Params, digest: &[u8], salt: &[u8], lambda: &mut [u8]) -> [u8; 128] {
    let mut t = [0; 128];
    let mb = set.m_bytes();
    if set.linear_term {
        e.expand().shake256(&[digest, salt], &mut t[..mb + 32]);
        let (mut key, mut nonce) = ([0; 16], [0; 16]);
        key.copy_from_slice(&t[mb..mb + 16]);
        nonce.copy_from_slice(&t[mb + 16..mb + 32]);
        e.expand().aes128_ctr_xor(&key, &nonce, &mut lambda[..set.n * mb]);
    } else {
        e.expand().shake256(&[digest, salt], &mut t[..mb]);
    }
    t
}

/// The compact public key of a secret seed, into `public_key`.
pub(crate) fn keygen(e: Engine, set: &Params, seed_sk: &[u8], public_key: &mut [u8]) {
    let kernels = e.set(set);
    workspace::with(kernels, Holds::KeygenSecrets, |w| {
        let (mut public, secret) = w.parts(kernels, true);
        let seed_pk = expand_seed(e, set, seed_sk, secret.elements);
        expand_p(e, set, &seed_pk, &mut public);
        let (head, p3) = public_key.split_at_mut(SEED_PK_BYTES);
        head.copy_from_slice(&seed_pk);
        kernels.keygen(public.p, &secret.elements.o[..set.v() * set.o], p3, secret.scratch);
    });
}

/// Where a signer's matrices come from.
#[derive(Clone, Copy)]
pub(crate) enum SecretSource<'a> {
    /// The compact key alone: everything is expanded on the way.
    Compact,
    /// O (elements) and the backend's layout of P1 and L.
    Expanded { o: &'a [u8], layout: &'a [Block] },
}

/// Signs with a given randomizer. `signature` gets the signature, or zeros with the error.
pub(crate) fn sign(
    e: Engine,
    set: &Params,
    seed_sk: &[u8],
    source: SecretSource<'_>,
    message: &[u8],
    randomizer: &[u8],
    signature: &mut [u8],
) -> Result<(), Error> {
    let kernels = e.set(set);
    workspace::with(kernels, Holds::Secrets, |w| {
        let compact = matches!(source, SecretSource::Compact);
        let (mut public, secret) = w.parts(kernels, compact);
        let el = secret.elements;
        match source {
            SecretSource::Compact => {
                let seed_pk = expand_seed(e, set, seed_sk, el);
                expand_p(e, set, &seed_pk, &mut public);
            }
            SecretSource::Expanded { o, .. } => el.o[..o.len()].copy_from_slice(o),
        }
        let (v, k, oil) = (set.v(), set.k, set.o);
        let mut digest = [0; 64];
        let digest = &mut digest[..set.digest_bytes];
        e.expand().shake256(&[message], digest);
        let (encoded, salt) = signature.split_at_mut(signature.len() - set.salt_bytes);
        e.expand().shake256(&[digest, randomizer, seed_sk], salt);
        let t = target(e, set, digest, salt, public.lambda);
        for attempt in ATTEMPTS {
            let hash = &mut el.hash[..k * set.v_bytes() + set.r_bytes()];
            e.expand().shake256(&[digest, salt, seed_sk, &[attempt]], hash);
            let (vinegar, r) = hash.split_at(k * set.v_bytes());
            for (packed, elements) in
                vinegar.chunks_exact(set.v_bytes()).zip(el.vinegar[..k * v].chunks_exact_mut(v))
            {
                unpack(packed, elements);
            }
            unpack(r, &mut el.r[..k * oil]);
            let (o, vinegar) = (&el.o[..v * oil], &el.vinegar[..k * v]);
            match source {
                SecretSource::Compact => {
                    kernels.sign(public.p, o, vinegar, public.lambda, secret.m, secret.u, secret.scratch);
                }
                SecretSource::Expanded { layout, .. } => kernels.sign_expanded(
                    layout,
                    o,
                    vinegar,
                    public.lambda,
                    secret.m,
                    secret.u,
                    secret.scratch,
                ),
            }
            let (r, x) = (&el.r[..k * oil], &mut el.x[..k * oil]);
            // Whether the system had full rank is public: it shows in the time, and the specification releases it.
            if kernels.solve(secret.m, secret.u, &t[..set.m_bytes()], r, x, secret.scratch) {
                let s = &mut el.s[..k * set.n];
                kernels.finish(o, vinegar, x, s);
                pack(s, encoded);
                return Ok(());
            }
        }
        signature.fill(0);
        Err(Error::Exhausted)
    })
}

/// Where a verifier's matrices come from.
#[derive(Clone, Copy)]
pub(crate) enum PublicSource<'a> {
    /// The compact public key.
    Compact(&'a [u8]),
    /// The backend's layout of P1, P2 and P3.
    Expanded(&'a [Block]),
}

/// Whether the signature, of the right length, is valid.
pub(crate) fn verify(
    e: Engine,
    set: &Params,
    source: PublicSource<'_>,
    message: &[u8],
    signature: &[u8],
) -> bool {
    let kernels = e.set(set);
    workspace::with(kernels, Holds::Public, |w| {
        let compact = matches!(source, PublicSource::Compact(_));
        let (mut public, secret) = w.parts(kernels, compact);
        let el = secret.elements;
        let (encoded, salt) = signature.split_at(signature.len() - set.salt_bytes);
        let s = &mut el.s[..set.k * set.n];
        unpack(encoded, s);
        let mut digest = [0; 64];
        let digest = &mut digest[..set.digest_bytes];
        e.expand().shake256(&[message], digest);
        let t = target(e, set, digest, salt, public.lambda);
        match source {
            PublicSource::Compact(key) => {
                let (head, p3) = key.split_at(SEED_PK_BYTES);
                let mut seed_pk = [0; SEED_PK_BYTES];
                seed_pk.copy_from_slice(head);
                expand_p(e, set, &seed_pk, &mut public);
                public.p3[..p3.len()].copy_from_slice(p3);
                kernels.verify(public.p, public.p3, s, public.lambda, secret.u, secret.scratch);
            }
            PublicSource::Expanded(layout) => {
                kernels.verify_expanded(layout, s, public.lambda, secret.u, secret.scratch);
            }
        }
        let mut y = [0; 128];
        let y = &mut y[..set.m_bytes()];
        kernels.whip(secret.u, y);
        *y == t[..set.m_bytes()]
    })
}

/// The backend's layout of an expanded public key.
pub(crate) fn expand_public(e: Engine, set: &Params, public_key: &[u8]) -> Vec<Block> {
    let kernels = e.set(set);
    let mut layout = vec![Block::ZERO; kernels.public_blocks];
    workspace::with(kernels, Holds::Public, |w| {
        let (mut public, _) = w.parts(kernels, true);
        let (head, p3) = public_key.split_at(SEED_PK_BYTES);
        let mut seed_pk = [0; SEED_PK_BYTES];
        seed_pk.copy_from_slice(head);
        expand_p(e, set, &seed_pk, &mut public);
        public.p3[..p3.len()].copy_from_slice(p3);
        kernels.expand_public(public.p, public.p3, &mut layout);
    });
    layout
}

/// O as elements into `o`, and the backend's layout of P1 and L.
pub(crate) fn expand_secret(e: Engine, set: &Params, seed_sk: &[u8], o: &mut [u8]) -> Vec<Block> {
    let kernels = e.set(set);
    let mut layout = vec![Block::ZERO; kernels.secret_blocks];
    workspace::with(kernels, Holds::Secrets, |w| {
        let (mut public, secret) = w.parts(kernels, true);
        let seed_pk = expand_seed(e, set, seed_sk, secret.elements);
        expand_p(e, set, &seed_pk, &mut public);
        o.copy_from_slice(&secret.elements.o[..o.len()]);
        kernels.expand_secret(public.p, o, &mut layout, secret.scratch);
    });
    layout
}

// The slack behind P, P3 and lambda is there for reads only; nothing may come to rely on its value.
const _: () = assert!(SLACK >= 128);
