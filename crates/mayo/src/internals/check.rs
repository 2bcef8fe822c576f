//! The checks that every backend must pass, as functions: the tests, the command and the laboratory call the same ones.
//!
//! Each returns a [`Row`]. Inputs come from a seeded generator, so that a failure can be repeated.
#![forbid(unsafe_code)]

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use crate::backend::Engine;
use crate::digest::{Message, MessageDigest, MessageHasher};
use crate::error::Error;
use crate::expanded::{SigningKey, VerifyingKey};
use crate::hazmat::{self, sign_with_randomizer};
use crate::internals::known::{self, Library, Maker, NistDrbg, Specification};
use crate::keys::{PublicKey, SecretKey, SignOptions, Signature};
use crate::params::{Params, Sizes};

pub use lanework_cpu::check::{Depth, Row};

fn new_row(what: &str, engine: Engine, params: &Params) -> Row {
    Row::new(format!("{what}, {}", params.name()), engine.name())
}

/// Seeded inputs. Every check has its own stream, the same on every backend.
struct Inputs(NistDrbg);

impl Inputs {
    fn new(params: &Params, purpose: u8) -> Inputs {
        Inputs(NistDrbg::new(&[params.index() as u8 ^ purpose << 4; 48]))
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.fill(&mut bytes);
        bytes
    }
}

/// A key, a message and a signature that the engine under test made.
struct Case {
    secret: SecretKey,
    public: PublicKey,
    message: Vec<u8>,
    signature: Signature,
}

impl Case {
    fn new(
        engine: Engine,
        params: &Params,
        inputs: &mut Inputs,
        message_bytes: usize,
    ) -> Result<Case, Error> {
        let secret = SecretKey::from_seed(params, &inputs.bytes(params.secret_key_bytes()))?;
        let public = secret.public_key(engine);
        let message = inputs.bytes(message_bytes);
        let randomizer = inputs.bytes(params.salt_bytes());
        let options = SignOptions::default();
        let signature = sign_with_randomizer(&(engine, &secret), &message, &randomizer, options)?;
        Ok(Case { secret, public, message, signature })
    }
}

/// NIST's response file by its published digest: record 0, or all 100 records.
#[must_use]
pub fn known_answers(engine: Engine, params: &Params, depth: Depth) -> Row {
    answers(if depth == Depth::Full { 100 } else { 1 }, "", &Library { engine, params }, engine, params)
}

/// The same with messages that come in pieces.
#[must_use]
pub fn known_answers_in_pieces(engine: Engine, params: &Params, depth: Depth) -> Row {
    answers(
        if depth == Depth::Full { 100 } else { 1 },
        " in pieces",
        &Pieces(Library { engine, params }),
        engine,
        params,
    )
}

/// The first `count` known answers by `maker`, whose name ends in `how`.
fn answers(count: usize, how: &str, maker: &dyn Maker, engine: Engine, params: &Params) -> Row {
    let what = if count == 1 { "known answer 0" } else { "known answers" };
    let mut row = new_row(&format!("{what}{how}"), engine, params);
    let digests = known::digests(params);
    let Some(records) = known::records(maker, count) else {
        row.case(false, || "a record could not be signed, or did not verify".to_owned());
        return row;
    };
    let digest = known::sha256_hex(known::response(&records).as_bytes());
    let right = if count == 1 { digest == digests.first } else { digest == digests.all };
    row.case(right, || format!("the digest is {digest}"));
    row.passed *= count;
    row
}

/// A backend that gets its messages in pieces of odd sizes: some within a block of SHAKE256 (136 bytes), some across
/// several.
struct Pieces<'a>(Library<'a>);

impl Pieces<'_> {
    fn digest(&self, message: &[u8]) -> MessageDigest {
        let mut hasher = MessageHasher::new(self.0.engine, self.0.params);
        let (mut rest, mut sizes) = (message, [1, 134, 2, 7, 136, 273, 0, 137].into_iter().cycle());
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(rest.len().min(sizes.next().unwrap_or(1)));
            hasher.update(piece);
            rest = later;
        }
        hasher.finish()
    }
}

impl Maker for Pieces<'_> {
    fn sizes(&self) -> &Sizes {
        self.0.sizes()
    }
    fn public_key(&self, seed: &[u8]) -> Vec<u8> {
        self.0.public_key(seed)
    }
    fn sign(&self, seed: &[u8], message: &[u8], randomizer: &[u8]) -> Option<Vec<u8>> {
        let (key, digest) = (SecretKey::from_seed(self.0.params, seed).ok()?, self.digest(message));
        let options = SignOptions::default();
        let signed = key.randomized(self.0.engine, Message::Hashed(&digest), randomizer, options);
        signed.ok().map(Signature::into_bytes)
    }
    fn verify(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
        let Library { engine, params } = self.0;
        let (Ok(key), Ok(signature)) =
            (PublicKey::from_bytes(params, public_key), Signature::from_bytes(params, signature))
        else {
            return false;
        };
        key.verify_digest(engine, &self.digest(message), &signature).is_ok()
    }
}

/// Key, signature and verdict against the specification's, on random inputs. The specification runs on the portable
/// symmetric kernels, so that a wrong AES or SHAKE does not agree with itself.
#[must_use]
pub fn agreement(engine: Engine, params: &Params, depth: Depth) -> Row {
    let mut row = new_row("agreement with the specification", engine, params);
    let mut inputs = Inputs::new(params, 1);
    let ours = Library { engine, params };
    let spec = Specification { symmetric: Engine::portable().kernels().expand(), sizes: params.sizes() };
    let count = if depth == Depth::Full { 16 } else { 2 };
    for i in 0..count {
        let seed = inputs.bytes(params.secret_key_bytes());
        // Lengths around the rate of SHAKE256 (136 bytes), where padding fails first.
        let message = inputs.bytes([0, 1, 32, 135, 136, 137, 271, 272, 273, 1000][i % 10]);
        let randomizer = inputs.bytes(params.salt_bytes());
        let public = ours.public_key(&seed);
        row.case(public == spec.public_key(&seed), || format!("public key of input {i}"));
        let signature = ours.sign(&seed, &message, &randomizer);
        let expected = spec.sign(&seed, &message, &randomizer);
        row.case(signature == expected, || format!("signature of input {i}"));
        let Some(mut signature) = expected else { continue };
        let verdict = ours.verify(&public, &message, &signature);
        row.case(verdict, || format!("the valid signature of input {i} was refused"));
        let at = usize::from(seed[0]) % signature.len();
        signature[at] ^= 1 << (seed[1] % 8);
        let verdict = ours.verify(&public, &message, &signature);
        let expected = spec.verify(&public, &message, &signature);
        row.case(verdict == expected, || format!("verdict on the spoilt signature of input {i}"));
    }
    row
}

/// Expanded keys against compact ones: same signatures, same verdicts.
#[must_use]
pub fn expanded(engine: Engine, params: &Params, depth: Depth) -> Row {
    let mut row = new_row("expanded against compact keys", engine, params);
    let mut inputs = Inputs::new(params, 2);
    for i in 0..if depth == Depth::Full { 24 } else { 3 } {
        let case = match Case::new(engine, params, &mut inputs, 11 * i) {
            Ok(case) => case,
            Err(e) => {
                row.case(false, || e.to_string());
                continue;
            }
        };
        let signing = SigningKey::new(engine, &case.secret);
        let randomizer = inputs.bytes(params.salt_bytes());
        let options = SignOptions { verify: false };
        let compact = sign_with_randomizer(&(engine, &case.secret), &case.message, &randomizer, options);
        let expanded = sign_with_randomizer(&signing, &case.message, &randomizer, options);
        row.case(compact.is_ok() && compact == expanded, || format!("signature of input {i}"));
        let verifying = VerifyingKey::new(engine, &case.public);
        let mut other = case.message.clone();
        other.push(0);
        for (message, right) in [(&case.message, Ok(())), (&other, Err(Error::Refused))] {
            let compact = case.public.verify(engine, message, &case.signature);
            let expanded = verifying.verify(message, &case.signature);
            row.case(compact == right && expanded == right, || {
                format!("verdicts on input {i}: compact {compact:?}, expanded {expanded:?}, right {right:?}")
            });
        }
        let deterministic = hazmat::sign_deterministic(&signing, &case.message);
        let verdict = deterministic.and_then(|s| verifying.verify(&case.message, &s));
        row.case(verdict == Ok(()), || format!("deterministic signature of input {i}: {verdict:?}"));
    }
    row
}

/// The bits of `count` bits to flip: all, or a sample spread over the whole with both ends.
fn bits(count: usize, depth: Depth, sample: usize) -> impl Iterator<Item = usize> {
    let step = if depth == Depth::Full { 1 } else { (count / sample).max(1) | 1 };
    (0..count).step_by(step).chain((depth == Depth::Quick).then(|| count - 1))
}

fn flip(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

/// Single-bit flips of a signature: every bit on the expanded key and a sample on the compact one.
#[must_use]
pub fn signature_flips(engine: Engine, params: &Params, depth: Depth) -> Row {
    let mut row = new_row("flipped signature bits refused", engine, params);
    let case = match Case::new(engine, params, &mut Inputs::new(params, 3), 59) {
        Ok(case) => case,
        Err(e) => {
            row.case(false, || e.to_string());
            return row;
        }
    };
    let verifying = VerifyingKey::new(engine, &case.public);
    row.case(verifying.verify(&case.message, &case.signature) == Ok(()), || {
        "the whole one was refused".into()
    });
    let bytes = case.signature.as_bytes();
    for bit in bits(bytes.len() * 8, depth, 64) {
        let spoilt = flip(bytes, bit);
        let verdict = Signature::from_bytes(params, &spoilt).and_then(|s| {
            let verdict = verifying.verify(&case.message, &s);
            // The two paths share all but the products; a sample of the other suffices.
            if bit % 61 == 0 && case.public.verify(engine, &case.message, &s) != verdict {
                Ok(())
            } else {
                verdict
            }
        });
        row.case(verdict == Err(Error::Refused), || format!("signature with bit {bit} flipped: {verdict:?}"));
    }
    row
}

/// Single-bit flips of the message (every bit) and of the public key (all of its seed and a dense sample of P3).
#[must_use]
pub fn other_flips(engine: Engine, params: &Params, depth: Depth) -> Row {
    let mut row = new_row("flipped key and message bits refused", engine, params);
    let case = match Case::new(engine, params, &mut Inputs::new(params, 4), 41) {
        Ok(case) => case,
        Err(e) => {
            row.case(false, || e.to_string());
            return row;
        }
    };
    let verifying = VerifyingKey::new(engine, &case.public);
    for bit in bits(case.message.len() * 8, depth, 32) {
        let verdict = verifying.verify(&flip(&case.message, bit), &case.signature);
        row.case(verdict == Err(Error::Refused), || format!("message with bit {bit} flipped: {verdict:?}"));
    }
    let key = case.public.as_bytes();
    let seed_bits = 8 * crate::params::SEED_PK_BYTES;
    let p3_bits = key.len() * 8 - seed_bits;
    let sample = if depth == Depth::Full { 701 } else { 29 };
    let in_p3 = (0..sample).map(|i| seed_bits + i * (p3_bits - 1) / (sample - 1));
    for bit in bits(seed_bits, depth, 8).chain(in_p3) {
        let verdict = PublicKey::from_bytes(params, &flip(key, bit))
            .and_then(|spoilt| spoilt.verify(engine, &case.message, &case.signature));
        row.case(verdict == Err(Error::Refused), || format!("key with bit {bit} flipped: {verdict:?}"));
    }
    row
}

/// Every wrong length of every input, from 0 to twice the right one.
#[must_use]
pub fn lengths(engine: Engine, params: &Params, depth: Depth) -> Row {
    let mut row = new_row("wrong lengths refused", engine, params);
    let case = match Case::new(engine, params, &mut Inputs::new(params, 5), 0) {
        Ok(case) => case,
        Err(e) => {
            row.case(false, || e.to_string());
            return row;
        }
    };
    let randomized = |r: &[u8]| {
        let signed = sign_with_randomizer(&(engine, &case.secret), b"", r, SignOptions::default());
        signed.map(|_| ())
    };
    type Reader<'a> = &'a dyn Fn(&[u8]) -> Result<(), Error>;
    let readers: [(&str, usize, Reader<'_>); 5] = [
        ("secret key", params.secret_key_bytes(), &|b| SecretKey::from_seed(params, b).map(|_| ())),
        ("public key", params.public_key_bytes(), &|b| PublicKey::from_bytes(params, b).map(|_| ())),
        ("signature", params.signature_bytes(), &|b| Signature::from_bytes(params, b).map(|_| ())),
        ("randomizer", params.salt_bytes(), &randomized),
        ("signed message", params.signature_bytes(), &|b| case.public.open(engine, b).map(|_| ())),
    ];
    for (what, right, read) in readers {
        let step = if depth == Depth::Full { 1 } else { (right / 16) | 1 };
        let near = [right - 1, right + 1].into_iter();
        for got in (0..=2 * right).step_by(step).chain(near).filter(|&got| got != right) {
            if what == "signed message" && got > right {
                // Longer ones are a signature and a message.
                continue;
            }
            let answer = read(&vec![0; got]);
            let refused = matches!(answer, Err(Error::Length { expected, got: g, .. }) if expected == right && g == got);
            row.case(refused, || format!("{what} of {got} bytes: {answer:?}"));
        }
    }
    row
}

/// Inputs of another set or round: refused by name where the type carries it, refused as invalid where only bytes do.
#[must_use]
pub fn strangers(engine: Engine, params: &Params) -> Row {
    let mut row = new_row("other sets and rounds refused", engine, params);
    let case = match Case::new(engine, params, &mut Inputs::new(params, 6), 17) {
        Ok(case) => case,
        Err(e) => {
            row.case(false, || e.to_string());
            return row;
        }
    };
    let verifying = VerifyingKey::new(engine, &case.public);
    for other in Params::all().filter(|p| *p != params) {
        let Ok(foreign) = Signature::from_bytes(other, &vec![0; other.signature_bytes()]) else {
            row.case(false, || format!("no signature of {}", other.name()));
            continue;
        };
        let right = if other.round == params.round {
            Err(Error::WrongSet { expected: params.set, got: other.set })
        } else {
            Err(Error::WrongRound { expected: params.round, got: other.round })
        };
        let (compact, expanded) =
            (case.public.verify(engine, &case.message, &foreign), verifying.verify(&case.message, &foreign));
        row.case(compact == right && expanded == right, || {
            format!("signature of {}: {compact:?}", other.name())
        });
        let same_sizes = other.set == params.set
            && other.public_key_bytes() == params.public_key_bytes()
            && other.signature_bytes() == params.signature_bytes();
        if same_sizes {
            // The bytes fit both rounds; the equations do not.
            let verdict = PublicKey::from_bytes(other, case.public.as_bytes()).and_then(|key| {
                let relabelled = Signature::from_bytes(other, case.signature.as_bytes())?;
                key.verify(engine, &case.message, &relabelled)
            });
            row.case(verdict == Err(Error::Refused), || {
                format!("bytes relabelled {}: {verdict:?}", other.name())
            });
        }
    }
    row
}

/// Every check of one set on one backend, each row as it is done.
pub fn run(engine: Engine, params: &Params, depth: Depth, each: &mut dyn FnMut(Row)) {
    each(known_answers(engine, params, depth));
    each(known_answers_in_pieces(engine, params, depth));
    each(agreement(engine, params, depth));
    each(expanded(engine, params, depth));
    each(signature_flips(engine, params, depth));
    each(other_flips(engine, params, depth));
    each(lengths(engine, params, depth));
    each(strangers(engine, params));
}
