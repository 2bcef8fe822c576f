//! Key generation, expansion and signing, singly and in batches, as subjects of `lanework-leakage`.
//!
//! The public seed and the salt differ from case to case like the secrets: nothing may depend on them either. Only the
//! number of restarts is released, so the cases need none.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::rc::Rc;

use lanework_cpu::{Cpu, Select, Threads, Unavailable};
use lanework_leakage::evidence::{Job, Subject};

use super::{MESSAGE, batch_size, sign_batch};
use crate::backend::operands::Solve;
use crate::backend::{Engine, altered};
use crate::backend::{Kernels, SetKernels};
use crate::batch::{self, Signers};
use crate::expanded::SigningKey;
use crate::hazmat::sign_with_randomizer;
use crate::keys::{SecretKey, SignOptions};
use crate::params::Params;

pub(super) const OPERATIONS: [&str; 7] =
    ["keygen", "expand", "sign", "sign expanded", "batch keygen", "batch sign", "batch sign expanded"];

/// Cases that a subject can make: the fixed one of timings, and random ones.
const CASES: usize = 128;

/// A case's secret seed and randomizer. The first two are complementary.
fn secrets(params: &Params, number: usize) -> (Vec<u8>, Vec<u8>) {
    let mut x = number as u64;
    let mut bytes = |length: usize| -> Vec<u8> {
        // All cases allocate alike, so that addresses are the same.
        let mut bytes = vec![0; length];
        for byte in &mut bytes {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = [0, 255, (x >> 56) as u8][number.min(2)];
        }
        bytes
    };
    (bytes(params.secret_key_bytes()), bytes(params.salt_bytes()))
}

fn sign(engine: Engine, secret: &SecretKey, randomizer: &[u8]) -> Vec<u8> {
    let options = SignOptions { verify: false };
    // The randomizers above have the set's length, and their cases are known to sign.
    sign_with_randomizer(&(engine, secret), MESSAGE, randomizer, options).expect("signs").into_bytes()
}

thread_local! {
    static ATTEMPTS: Cell<usize> = const { Cell::new(0) };
    static SOLVING: Cell<Option<&'static SetKernels>> = const { Cell::new(None) };
}

fn counted(Solve { m, u, t, r, x, scratch }: Solve<'_>) -> bool {
    ATTEMPTS.set(ATTEMPTS.get() + 1);
    SOLVING.get().expect("was set").solve(Solve { m, u, t, r, x, scratch })
}

/// The first numbers whose secrets sign without a restart on `engine`.
pub(super) fn cases(engine: Engine, params: &'static Params, count: usize) -> Vec<usize> {
    let sets = engine.sets.map(|set| SetKernels { solve: counted, ..set.around_another() });
    let counting = altered(engine.name(), Kernels { expand: engine.expand, sets });
    SOLVING.set(Some(engine.kernels().set(params)));
    let attempts = |number: &usize| {
        let (seed, randomizer) = secrets(params, *number);
        ATTEMPTS.set(0);
        sign(counting, &secret_key(params, &seed), &randomizer);
        ATTEMPTS.get()
    };
    (0..1000).filter(|number| attempts(number) == 1).take(count).collect()
}

fn secret_key(params: &'static Params, seed: &[u8]) -> SecretKey {
    SecretKey::from_seed(params, seed).expect("a seed of the set's length")
}

/// An operation's inputs and outputs.
pub(super) struct Work {
    engine: Engine,
    what: &'static str,
    secret: SecretKey,
    /// Those of a batch.
    keys: Vec<SecretKey>,
    randomizer: Vec<u8>,
    expanded: Option<SigningKey>,
    pub(super) made: Vec<u8>,
}

impl Work {
    pub(super) fn new(engine: Engine, params: &'static Params, number: usize, what: &'static str) -> Work {
        let (seed, randomizer) = secrets(params, number);
        let secret = secret_key(params, &seed);
        let expanded = what.ends_with("sign expanded").then(|| SigningKey::new(engine, &secret));
        let keys = vec![secret.clone(); batch_size(engine)];
        Work { engine, what, secret, keys, randomizer, expanded, made: Vec::new() }
    }
}

impl Job for Work {
    fn run(&mut self) {
        let options = SignOptions { verify: false };
        match (self.what, &self.expanded) {
            ("keygen", _) => self.made = self.secret.public_key(self.engine).as_bytes().to_vec(),
            ("batch keygen", _) => {
                let made = batch::keygen(self.engine, &self.keys, Threads::One).expect("one thread");
                self.made = made.iter().flat_map(|key| key.as_bytes().to_vec()).collect();
            }
            ("batch sign" | "batch sign expanded", expanded) => {
                let compact = Signers::EachCompact(self.engine, &self.keys);
                let signers = expanded.as_ref().map_or(compact, Signers::One);
                let made = sign_batch(signers, self.keys.len(), self.randomizer.clone());
                self.made = made.iter().flat_map(|signature| signature.as_bytes().to_vec()).collect();
            }
            ("expand", _) => self.expanded = Some(SigningKey::new(self.engine, &self.secret)),
            (_, Some(key)) => {
                let signature = sign_with_randomizer(key, MESSAGE, &self.randomizer, options);
                self.made = signature.expect("signs").into_bytes();
            }
            (_, None) => self.made = sign(self.engine, &self.secret, &self.randomizer),
        }
    }

    fn answer(&self) -> Vec<u8> {
        self.made.clone()
    }

    fn secret(&self) -> &[u8] {
        self.secret.expose_seed()
    }
}

/// An operation's path.
pub(super) fn path(params: &Params, operation: &str) -> String {
    format!("mayo/{}/{}", params.path(), operation.replace(' ', "-"))
}

/// Every operation that `wanted` accepts by its path, on every backend; for backends that `cpu` cannot run, the reason.
pub fn subjects(cpu: &Cpu, wanted: &dyn Fn(&str) -> bool) -> Vec<(String, Result<Subject, Unavailable>)> {
    let mut subjects = Vec::new();
    for params in Params::all() {
        let operations: Vec<&'static str> =
            OPERATIONS.into_iter().filter(|what| wanted(&path(params, what))).collect();
        if operations.is_empty() {
            continue;
        }
        let fastest = Engine::choose(cpu, Select::Best).unwrap_or_else(|_| Engine::portable());
        let numbers = Rc::new(cases(fastest, params, CASES));
        for what in operations {
            for engine in Engine::all(cpu) {
                let numbers = Rc::clone(&numbers);
                let subject = engine.map(|engine| {
                    let make = move |case: usize| Work::new(engine, params, numbers[case], what);
                    Subject::new(path(params, what), engine.name(), CASES, make)
                });
                subjects.push((path(params, what), subject));
            }
        }
    }
    subjects
}
