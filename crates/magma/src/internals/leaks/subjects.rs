//! Operations under secret keys on secret messages, as subjects of `lanework-leakage`. IVs and lengths are public and
//! the same.
#![forbid(unsafe_code)]

use lanework_cpu::{Cpu, Select, Unavailable};
use lanework_leakage::evidence::{Job, Subject};

use crate::backend::BACKENDS;
use crate::backend::Engine;
use crate::batch::{Batch, CtrJob, OmacJob};
use crate::internals::check::Numbers;
use crate::kexp15::Kexp15;
use crate::key::{Gost28147, Magma};
use crate::mgm::Mgm;
use crate::modes::hazmat::{EcbDecryptor, EcbEncryptor};
use crate::modes::{CbcDecryptor, CbcEncryptor, CfbDecryptor, Ctr, CtrAcpkm, Omac, OmacAcpkm, Stream};
use crate::sbox::Sbox;

/// An operation's inputs.
pub(super) struct Work {
    key: [u8; 32],
    /// More keys, for operations that take several.
    keys: Vec<[u8; 32]>,
    text: Vec<u8>,
    made: Vec<u8>,
}

const IV: [u8; 16] = [0x5a; 16];

pub(super) fn prepare(case: usize) -> Work {
    let mut numbers = Numbers(90 + case as u64);
    let (mut key, mut text) = (numbers.array::<32>(), numbers.bytes(2400));
    // The first two are complementary. All cases allocate alike, so that addresses are the same, and the same
    // instructions make them.
    for byte in key.iter_mut().chain(&mut text) {
        *byte = [0, 255, *byte][case.min(2)];
    }
    Work { key, keys: (0..140).map(|_| numbers.array()).collect(), text, made: Vec::new() }
}

pub(super) type Operation = (&'static str, fn(Engine, &mut Work) -> core::result::Result<(), crate::Error>);

/// Numbers of blocks where kernels change their method.
const COUNTS: [usize; 6] = [1, 2, 9, 17, 129, 300];

pub(super) const OPERATIONS: [Operation; 12] = [
    ("keys", |engine, w| {
        let (magma, gost) =
            (Magma::with(&w.key, engine), Gost28147::with(&w.keys[0], Sbox::CryptoProA, engine));
        let mut block = [1; 8];
        EcbEncryptor::with_key(&magma).apply(&mut block)?;
        EcbDecryptor::with_key(&gost).apply(&mut block)?;
        w.made = block.to_vec();
        Ok(())
    }),
    ("blocks", |engine, w| {
        let magma = Magma::with(&w.key, engine);
        COUNTS.iter().try_for_each(|n| {
            EcbEncryptor::with_key(&magma).apply(&mut w.text[..8 * n])?;
            EcbDecryptor::with_key(&magma).apply(&mut w.text[2400 - 8 * n..])
        })
    }),
    ("28147", |engine, w| {
        let gost = Gost28147::with(&w.key, Sbox::CryptoProA, engine);
        EcbEncryptor::with_key(&gost).apply(&mut w.text[..1040])?;
        CfbDecryptor::with_key(&gost, &IV[..8])?.apply(&mut w.text)
    }),
    ("CTR", |engine, w| {
        let magma = Magma::with(&w.key, engine);
        Ctr::with_key(&magma, &IV[..4])?.apply(&mut w.text[..1101])?;
        CtrAcpkm::with_key(&magma, &IV[..4])?.apply(&mut w.text)
    }),
    ("CBC", |engine, w| {
        let magma = Magma::with(&w.key, engine);
        CbcEncryptor::with_key(&magma, &IV)?.apply(&mut w.text[..64])?;
        CbcDecryptor::with_key(&magma, &IV)?.apply(&mut w.text)
    }),
    ("OMAC", |engine, w| {
        let magma = Magma::with(&w.key, engine);
        let mut mac = Omac::with_key(&magma, 8)?;
        mac.update(&w.text[..1030])?;
        let tag = mac.finish();
        w.made = tag.as_ref().to_vec();
        let mut mac = Omac::with_key(&magma, 8)?;
        mac.update(&w.text[..1030])?;
        // The expected tag differs from key to key; the answer that it is right does not.
        mac.verify(tag.as_ref())
    }),
    ("OMAC-ACPKM", |engine, w| {
        let mut mac = OmacAcpkm::with_key(&Magma::with(&w.key, engine), 64, 80, 8)?;
        mac.update(&w.text[..300])?;
        w.made = mac.finish().as_ref().to_vec();
        Ok(())
    }),
    ("MGM", |engine, w| {
        let mgm = Mgm::with(&w.key, 8, engine)?;
        for n in [0, 5, 64, 1100] {
            let tag = mgm.seal(&IV[8..], &w.keys[0][..20], &mut w.text[..n])?;
            w.made.extend_from_slice(tag.as_slice());
            mgm.open(&IV[8..], &w.keys[0][..20], &mut w.text[..n], tag.as_slice())?;
        }
        Ok(())
    }),
    ("a forgery in MGM", |engine, w| {
        // Wrong in a byte that differs from case to case.
        let mgm = Mgm::with(&w.key, 8, engine)?;
        let tag = mgm.seal(&IV[8..], &[], &mut w.text[..40])?;
        let mut wrong = tag.as_slice().to_vec();
        for (i, byte) in wrong.iter_mut().enumerate() {
            *byte ^= w.keys[1][i] | 1;
        }
        assert!(mgm.open(&IV[8..], &[], &mut w.text[..40], &wrong).is_err());
        Ok(())
    }),
    ("CTR batch", |engine, w| {
        let keys: Vec<Magma> = w.keys.iter().map(|key| Magma::with(key, engine)).collect();
        let texts = w.text.chunks_mut(17);
        let mut jobs: Vec<_> =
            keys.iter().zip(texts).map(|(key, data)| CtrJob { key, iv: &IV[..4], data }).collect();
        let outcomes = Batch::new(engine).ctr(&mut jobs).expect("one thread");
        outcomes.into_iter().collect()
    }),
    ("OMAC batch", |engine, w| {
        let keys: Vec<Magma> = w.keys.iter().map(|key| Magma::with(key, engine)).collect();
        let mut macs = vec![[0u8; 8]; keys.len()];
        let jobs = keys.iter().zip(w.text.chunks(17)).zip(&mut macs);
        let mut jobs: Vec<_> = jobs.map(|((key, data), mac)| OmacJob { key, data, mac }).collect();
        let outcomes = Batch::new(engine).omac(&mut jobs).expect("one thread");
        w.made = macs.concat();
        outcomes.into_iter().collect()
    }),
    ("KExp15", |engine, w| {
        let key = Kexp15::new(&w.key, &w.keys[0], engine)?;
        let wrapped = key.wrap(&IV[..4], &w.text[..45])?;
        w.made = key.unwrap(&IV[..4], &wrapped)?.to_vec();
        Ok(())
    }),
];

/// Runs an operation.
///
/// # Panics
/// If it fails: its inputs are right.
pub(super) fn run(engine: Engine, (what, operation): Operation, work: &mut Work) {
    operation(engine, work).unwrap_or_else(|error| panic!("{what}: {error}"));
}

/// The operation's output.
pub(super) fn answer(work: &Work) -> Vec<u8> {
    [&work.made[..], &work.text].concat()
}

/// An operation on one case's secrets.
struct Operating {
    engine: Engine,
    operation: Operation,
    work: Work,
}

impl Job for Operating {
    fn run(&mut self) {
        run(self.engine, self.operation, &mut self.work);
    }

    fn answer(&self) -> Vec<u8> {
        answer(&self.work)
    }

    fn secret(&self) -> &[u8] {
        &self.work.key
    }
}

/// Cases that a subject can make: the fixed one of timings, and random ones.
const CASES: usize = 128;

/// An operation's path.
pub(super) fn path(operation: &str) -> String {
    format!("magma/{}", operation.replace(' ', "-").to_lowercase())
}

/// Every operation that `wanted` accepts by its path, on every backend; for backends that `cpu` cannot run, the reason.
pub fn subjects(cpu: &Cpu, wanted: &dyn Fn(&str) -> bool) -> Vec<(String, Result<Subject, Unavailable>)> {
    let mut subjects = Vec::new();
    for operation in OPERATIONS.into_iter().filter(|(what, _)| wanted(&path(what))) {
        for row in BACKENDS {
            let subject = Engine::choose(cpu, Select::Named(row.name())).map(|engine| {
                let make = move |case| Operating { engine, operation, work: prepare(case) };
                Subject::new(path(operation.0), engine.name(), CASES, make)
            });
            subjects.push((path(operation.0), subject));
        }
    }
    subjects
}
