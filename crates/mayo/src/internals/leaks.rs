//! Whether a branch or an address depends on a secret, by valgrind's memcheck, for the backends that valgrind can run:
//! portable and avx2.
//!
//! The tests run themselves under valgrind. There the library's operations run with a seed and a randomizer that
//! memcheck takes for undefined, on the real kernels and the real schedule of `scheme`; `instrument` has the releases.
//! `plants` shows that a leak in any kernel is found.
//!
//! `traced` compares runs on different secrets instruction by instruction, on every backend that this CPU has; it is
//! the only evidence for those that valgrind cannot run.
//!
//! Memcheck does not cover instructions whose time depends on their operands, VAES, GFNI and AVX-512, key files, paths that
//! the keys and messages here do not take, and other compilers. Debug assertions check sums of secrets for overflow by
//! branches, so only an optimised build without them, as shipped, is checked: `cargo test --release -p lanework-mayo
//! --lib leaks`.
#![forbid(unsafe_code)]

mod instrument;
#[cfg(test)]
mod plants;
mod subjects;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod traced;

use lanework_cpu::{Backend, Cpu, Features, Threads};
use lanework_leakage::evidence::{Finding, Means, Row};
use lanework_leakage::memcheck::{make_secret, release, secret_bytes};
use lanework_leakage::valgrind::{self, NotRun};
use rand_core::utils::next_word_via_fill;
use rand_core::{TryCryptoRng, TryRng};

use crate::backend::{BACKENDS, Engine, Kernels};
use crate::batch::{self, Signers};
use crate::expanded::SigningKey;
use crate::hazmat::{Signer, sign_with_randomizer};
use crate::keys::{PublicKey, SecretKey, SignOptions, Signature};
use crate::params::{Params, Round, Set};
use instrument::{Seen, instrument};
use subjects::path;

pub use subjects::subjects;

/// Whether valgrind has every instruction of a backend: those of AVX2 and earlier.
fn valgrind_knows(backend: &str) -> bool {
    let known = |row: &Backend<Kernels>| Features::AVX2_AES_BMI_PCLMULQDQ.includes(row.needs());
    BACKENDS.iter().any(|row| row.name() == backend && known(row))
}

/// The operations of every backend and set, and last, for one set only, [`AFTER_RESTART`].
const OPERATIONS: [&str; 10] = [
    "keygen",
    "sign",
    "expand",
    "sign expanded",
    "sign and verify",
    "sign expanded and verify",
    "batch keygen",
    "batch sign",
    "batch sign expanded",
    AFTER_RESTART,
];

/// Items of a batch: enough to be hashed side by side where the backend does that. More would run the same code longer.
const BATCH: usize = 2;

/// The items of a batch that a thread takes together on `engine`.
fn batch_size(engine: Engine) -> usize {
    engine.expand().lanes().min(BATCH)
}

fn operations(params: &Params) -> &'static [&'static str] {
    let restarts = (params.round, params.set) == (RESTARTING.0, RESTARTING.1);
    &OPERATIONS[..OPERATIONS.len() - usize::from(!restarts)]
}

const MESSAGE: &[u8] = b"a message";

/// A set, and a message whose first system has too small a rank under [`seed`] and [`randomizer`].
const RESTARTING: (Round, Set, &[u8]) = (Round::Three, Set::Mayo1, b"restart 27");
const AFTER_RESTART: &str = "sign after a restart";

fn seed(params: &Params) -> Vec<u8> {
    (0..params.secret_key_bytes()).map(|i| (i * 151 + 77) as u8).collect()
}

fn randomizer(params: &Params) -> Vec<u8> {
    vec![0x42; params.salt_bytes()]
}

/// The line before memcheck's complaints about an operation.
fn headline(tier: &str, params: &Params, operation: &str) -> String {
    format!("## {tier}, {}, {operation}", params.name())
}

/// Runs one operation between its two lines.
fn observe(headline: &str, operation: impl FnOnce()) {
    Seen::take();
    valgrind::observe(headline, operation);
}

/// The randomizers of a batch, all alike and secret to memcheck.
struct Randomizers(Vec<u8>);

impl TryRng for Randomizers {
    type Error = core::convert::Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        next_word_via_fill(self)
    }
    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        next_word_via_fill(self)
    }
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Self::Error> {
        out.copy_from_slice(&self.0[..out.len()]);
        make_secret(out);
        Ok(())
    }
}

impl TryCryptoRng for Randomizers {}

/// Signs a batch with randomizers that are alike.
fn sign_batch(signers: Signers<'_>, count: usize, randomizer: Vec<u8>) -> Vec<Signature> {
    let (messages, options) = (vec![MESSAGE; count], SignOptions { verify: false });
    let made = batch::sign(signers, &messages, options, &mut Randomizers(randomizer), Threads::One);
    // One thread, a randomizer of the set's length, and cases that are known to sign.
    made.expect("a batch").into_iter().map(|signature| signature.expect("signs")).collect()
}

/// Releases a signature, all of which was secret except for the salt.
fn give_away(signature: &Signature, expected: &[u8]) {
    let encoded = signature.as_bytes();
    assert_eq!(
        secret_bytes(encoded),
        encoded.len() - signature.params().salt_bytes(),
        "s is secret until it is given away"
    );
    release(encoded);
    assert!(encoded == expected, "the kernels under instruments sign differently");
}

/// Signs `message` with inputs that are secret to memcheck; returns the number of attempts.
fn sign_secretly(
    signer: &impl Signer,
    params: &Params,
    expected: &[u8],
    message: &[u8],
    verify: bool,
) -> usize {
    let randomizer = randomizer(params);
    make_secret(&randomizer);
    let signature = sign_with_randomizer(signer, message, &randomizer, SignOptions { verify }).unwrap();
    give_away(&signature, expected);
    let seen = Seen::take();
    assert_eq!(seen.salts, 1);
    seen.attempts
}

/// The operations named, on `engine` under instruments; `plain` is the same without them.
fn operate(plain: Engine, engine: Engine, params: &'static Params, operations: &[&str]) {
    let key = |secret| {
        let key = SecretKey::from_seed(params, &seed(params)).unwrap();
        if secret {
            make_secret(key.expose_seed());
        }
        key
    };
    let (open, secret) = (key(false), key(true));
    let expected = |message: &[u8]| {
        let options = SignOptions { verify: false };
        sign_with_randomizer(&(plain, &open), message, &randomizer(params), options).unwrap().into_bytes()
    };
    let signature = expected(MESSAGE);
    let compact = (engine, &secret);
    let expanded = if operations.iter().any(|what| what.contains("sign expanded")) {
        Some(SigningKey::new(engine, &secret))
    } else {
        None
    };
    let count = batch_size(engine);
    let keys = vec![secret.clone(); count];
    // A batch's hashes, of which several ran side by side where the backend can.
    let batch_seen = || {
        let seen = Seen::take();
        assert_eq!(seen.lanes, if count > 1 { count } else { 0 });
        seen
    };
    let is_right = |public: &PublicKey| {
        assert_eq!(secret_bytes(public.as_bytes()), 0);
        assert!(*public == open.public_key(plain), "the kernels under instruments make a different key");
    };
    for what in operations {
        let verify = what.ends_with("and verify");
        observe(&headline(engine.name(), params, what), || match *what {
            "keygen" => {
                is_right(&secret.public_key(engine));
                assert_eq!(Seen::take().public_seeds, 1);
            }
            "batch keygen" => {
                let made = batch::keygen(engine, &keys, Threads::One).unwrap();
                made.iter().for_each(is_right);
                assert_eq!((made.len(), batch_seen().public_seeds), (count, count));
            }
            "batch sign" | "batch sign expanded" => {
                let signers = match &expanded {
                    Some(expanded) if what.ends_with("expanded") => Signers::One(expanded),
                    _ => Signers::EachCompact(engine, &keys),
                };
                let made = sign_batch(signers, count, randomizer(params));
                made.iter().for_each(|made| give_away(made, &signature));
                let seen = batch_seen();
                assert_eq!((made.len(), seen.salts), (count, count));
                assert!(seen.attempts >= count);
            }
            "expand" => {
                let expanded = SigningKey::new(engine, &secret);
                assert_eq!(secret_bytes(expanded.secret_key().expose_seed()), params.secret_key_bytes());
                assert_eq!(Seen::take().public_seeds, 1);
            }
            AFTER_RESTART => {
                let message = RESTARTING.2;
                let attempts = sign_secretly(&compact, params, &expected(message), message, false);
                assert!(attempts > 1, "the message for a restart needs none");
            }
            _ => {
                let attempts = match &expanded {
                    Some(expanded) if what.starts_with("sign expanded") => {
                        sign_secretly(expanded, params, &signature, MESSAGE, verify)
                    }
                    _ => sign_secretly(&compact, params, &signature, MESSAGE, verify),
                };
                assert!(attempts >= 1);
            }
        });
    }
}

/// The child's work under valgrind: every operation that `wanted` accepts by its path, on the backends available there.
pub fn under_memcheck(cpu: &Cpu, wanted: &dyn Fn(&str) -> bool) {
    for plain in Engine::all(cpu).filter_map(Result::ok).filter(|engine| valgrind_knows(engine.name())) {
        for params in Params::all() {
            let operations: Vec<&str> =
                operations(params).iter().copied().filter(|what| wanted(&path(params, what))).collect();
            if !operations.is_empty() {
                operate(plain, instrument(plain.name(), plain.kernels(), params), params, &operations);
            }
        }
    }
}

/// Memcheck's complaints about [`under_memcheck`] as rows, for every backend of `cpu`; those that valgrind cannot run
/// are skipped.
pub fn memcheck_rows(cpu: &Cpu, wanted: &dyn Fn(&str) -> bool, said: Result<&str, &NotRun>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (params, operation) in Params::all().flat_map(|p| operations(p).iter().map(move |what| (p, *what))) {
        let what = path(params, operation);
        if !wanted(&what) {
            continue;
        }
        for engine in Engine::all(cpu) {
            let (backend, finding) = match &engine {
                Err(why) => (why.what.clone(), Finding::NotApplicable(why.why.clone())),
                Ok(engine) => (engine.name().to_owned(), finding(*engine, params, operation, said)),
            };
            let extent = "every bit followed".to_owned();
            rows.push(Row {
                what: what.clone(),
                backend,
                means: Means::Valgrind,
                finding,
                extent,
                unpromised: Vec::new(),
                suspicion: None,
            });
        }
    }
    rows
}

fn finding(engine: Engine, params: &Params, operation: &str, said: Result<&str, &NotRun>) -> Finding {
    if !valgrind_knows(engine.name()) {
        return Finding::NotApplicable("valgrind does not know its instructions".into());
    }
    valgrind::finding(said, &headline(engine.name(), params, operation), "::backend::")
}
