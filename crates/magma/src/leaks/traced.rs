//! The same ways and the same memory for different secrets, on the processor itself and on every backend that it has: each
//! operation is run under several keys on as many messages, and compared instruction by instruction. IVs and lengths are
//! public and the same.
#![forbid(unsafe_code)]

use lanework_leakage::plants::BRANCH;
use lanework_leakage::traced::{Kind, Report, Tally, compared, to_be_judged};
use lanework_leakage::valgrind::say;

use super::choices;
use crate::backend::BACKENDS;
use crate::backend::leaky::{self, Plant};
use crate::batch::{Batch, CtrJob, OmacJob};
use crate::check::Numbers;
use crate::kexp15::Kexp15;
use crate::key::{Choice, Gost28147, Magma};
use crate::mgm::Mgm;
use crate::modes::hazmat::{EcbDecryptor, EcbEncryptor};
use crate::modes::{CbcDecryptor, CbcEncryptor, CfbDecryptor, Ctr, CtrAcpkm, Omac, OmacAcpkm, Stream};
use crate::sbox::Sbox;

/// Keys that each operation is compared for.
const SECRETS: usize = 6;

/// What an operation works on.
struct Work {
    key: [u8; 32],
    /// For operations that take many keys, or one more.
    keys: Vec<[u8; 32]>,
    text: Vec<u8>,
    made: Vec<u8>,
}

const IV: [u8; 16] = [0x5a; 16];

fn prepare(case: usize) -> Work {
    let mut numbers = Numbers(90 + case as u64);
    let (mut key, mut text) = (numbers.array(), numbers.bytes(2400));
    // The first two are as unlike as bytes can be. Memory is asked for alike in all cases, so that addresses are the same.
    if case < 2 {
        key.fill([0, 255][case]);
        text.fill([0, 255][case]);
    }
    Work { key, keys: (0..140).map(|_| numbers.array()).collect(), text, made: Vec::new() }
}

type Result = core::result::Result<(), crate::Error>;
type Operation = (&'static str, fn(Choice, &mut Work) -> Result);

/// Numbers of blocks where kernels change their ways.
const COUNTS: [usize; 6] = [1, 2, 9, 17, 129, 300];

const OPERATIONS: [Operation; 12] = [
    ("keys", |choice, w| {
        let (magma, gost) =
            (Magma::with(&w.key, choice), Gost28147::with(&w.keys[0], Sbox::CryptoProA, choice));
        let mut block = [1; 8];
        EcbEncryptor::new(&magma).apply(&mut block)?;
        EcbDecryptor::new(&gost).apply(&mut block)?;
        w.made = block.to_vec();
        Ok(())
    }),
    ("blocks", |choice, w| {
        let magma = Magma::with(&w.key, choice);
        COUNTS.iter().try_for_each(|n| {
            EcbEncryptor::new(&magma).apply(&mut w.text[..8 * n])?;
            EcbDecryptor::new(&magma).apply(&mut w.text[2400 - 8 * n..])
        })
    }),
    ("28147", |choice, w| {
        let gost = Gost28147::with(&w.key, Sbox::CryptoProA, choice);
        EcbEncryptor::new(&gost).apply(&mut w.text[..1040])?;
        CfbDecryptor::new(&gost, &IV[..8])?.apply(&mut w.text)
    }),
    ("CTR", |choice, w| {
        let magma = Magma::with(&w.key, choice);
        Ctr::new(&magma, &IV[..4])?.apply(&mut w.text[..1101])?;
        CtrAcpkm::new(&magma, &IV[..4])?.apply(&mut w.text)
    }),
    ("CBC", |choice, w| {
        let magma = Magma::with(&w.key, choice);
        CbcEncryptor::new(&magma, &IV)?.apply(&mut w.text[..64])?;
        CbcDecryptor::new(&magma, &IV)?.apply(&mut w.text)
    }),
    ("OMAC", |choice, w| {
        let magma = Magma::with(&w.key, choice);
        let mut mac = Omac::new(&magma, 8)?;
        mac.update(&w.text[..1030])?;
        let tag = mac.finish();
        w.made = tag.as_ref().to_vec();
        let mut mac = Omac::new(&magma, 8)?;
        mac.update(&w.text[..1030])?;
        // The tag that was expected differs from key to key; that it is right does not.
        mac.verify(tag.as_ref())
    }),
    ("OMAC-ACPKM", |choice, w| {
        let mut mac = OmacAcpkm::new(&Magma::with(&w.key, choice), 64, 80, 8)?;
        mac.update(&w.text[..300])?;
        w.made = mac.finish().as_ref().to_vec();
        Ok(())
    }),
    ("MGM", |choice, w| {
        let mgm = Mgm::with(&w.key, 8, choice)?;
        for n in [0, 5, 64, 1100] {
            let tag = mgm.seal(&IV[8..], &w.keys[0][..20], &mut w.text[..n])?;
            w.made.extend_from_slice(tag.as_slice());
            mgm.open(&IV[8..], &w.keys[0][..20], &mut w.text[..n], tag.as_slice())?;
        }
        Ok(())
    }),
    ("a forgery in MGM", |choice, w| {
        // Wrong in a byte that differs from case to case.
        let mgm = Mgm::with(&w.key, 8, choice)?;
        let tag = mgm.seal(&IV[8..], &[], &mut w.text[..40])?;
        let mut wrong = tag.as_slice().to_vec();
        for (i, byte) in wrong.iter_mut().enumerate() {
            *byte ^= w.keys[1][i] | 1;
        }
        assert!(mgm.open(&IV[8..], &[], &mut w.text[..40], &wrong).is_err());
        Ok(())
    }),
    ("CTR batch", |choice, w| {
        let keys: Vec<Magma> = w.keys.iter().map(|key| Magma::with(key, choice)).collect();
        let texts = w.text.chunks_mut(17);
        let mut jobs: Vec<_> =
            keys.iter().zip(texts).map(|(key, data)| CtrJob { key, iv: &IV[..4], data }).collect();
        let outcomes = Batch::new(choice).ctr(&mut jobs).expect("one thread");
        outcomes.into_iter().collect()
    }),
    ("OMAC batch", |choice, w| {
        let keys: Vec<Magma> = w.keys.iter().map(|key| Magma::with(key, choice)).collect();
        let mut macs = vec![[0u8; 8]; keys.len()];
        let jobs = keys.iter().zip(w.text.chunks(17)).zip(&mut macs);
        let mut jobs: Vec<_> = jobs.map(|((key, data), mac)| OmacJob { key, data, mac }).collect();
        let outcomes = Batch::new(choice).omac(&mut jobs).expect("one thread");
        w.made = macs.concat();
        outcomes.into_iter().collect()
    }),
    ("KExp15", |choice, w| {
        let key = Kexp15::new(&w.key, &w.keys[0], choice)?;
        let wrapped = key.wrap(&IV[..4], &w.text[..45])?;
        w.made = key.unwrap(&IV[..4], &wrapped)?.to_vec();
        Ok(())
    }),
];

fn compare(choice: Choice, (what, operation): Operation, secrets: usize) -> Option<Report> {
    let run = |work: &mut Work| operation(choice, work).unwrap_or_else(|error| panic!("{what}: {error}"));
    let answer = |work: &Work| [&work.made[..], &work.text].concat();
    let report = compared(&format!("{}: {what}", choice.name()), secrets, prepare, run, answer)?;
    for (case, traced) in &report.answers {
        let mut work = prepare(*case);
        run(&mut work);
        assert!(*traced == answer(&work), "{what} gives something else when it is traced");
    }
    Some(report)
}

#[test]
fn every_secret_takes_the_same_way() {
    if !to_be_judged("every_secret_takes_the_same_way") {
        return;
    }
    let (tally, mut leaking, mut covered) = (Tally::default(), Vec::new(), Vec::new());
    for (row, choice) in BACKENDS.iter().zip(choices()) {
        let choice = match choice {
            Ok(choice) => choice,
            Err(why) => {
                say(&format!("skipped {} under single steps: {why}", row.name()));
                continue;
            }
        };
        for operation in OPERATIONS {
            let Some(report) = compare(choice, operation, SECRETS) else { return };
            tally.count(&report);
            println!(
                "{}: {}: {} instructions, {} with memory",
                row.name(),
                operation.0,
                report.steps,
                report.touched
            );
            assert!(report.steps > 300 && report.cases == SECRETS - 1, "too little was compared");
            leaking
                .extend(report.differences.iter().map(|d| format!("{}, {}: {d}", row.name(), operation.0)));
        }
        covered.push(row.name());
    }
    assert!(leaking.is_empty(), "secrets decide on ways or memory:\n{}", leaking.join("\n"));
    say(&format!(
        "under single steps: {tally} of lanework-magma without a difference, on {}",
        covered.join(", ")
    ));
}

/// What shows a leak in a kernel.
fn showing(plant: &Plant) -> &'static str {
    match plant.kernel {
        "blocks" => "blocks",
        "counter" => "CTR",
        "chain" => "OMAC batch",
        "products" | "keystream" => "MGM",
        _ => "CTR batch",
    }
}

#[test]
fn planted_leaks_are_found_on_the_processor() {
    if !to_be_judged("planted_leaks_are_found_on_the_processor") {
        return;
    }
    let mut found = 0;
    // The tier that valgrind cannot judge; the others have their plants there.
    for choice in choices().into_iter().flatten().filter(|choice| choice.name() == "avx512") {
        for plant in leaky::of(choice.name()) {
            let operation =
                OPERATIONS.iter().find(|(what, _)| *what == showing(&plant)).expect("an operation");
            let Some(report) = compare(Choice::of(plant.tier, plant.kernels), *operation, SECRETS) else {
                return;
            };
            let named = report.differences.iter().any(|d| {
                let kind = match d.kind {
                    Kind::Way(_) => plant.complaint == BRANCH,
                    _ => plant.complaint != BRANCH,
                };
                kind && d.place.is_in(plant.function)
            });
            let says: Vec<String> = report.differences.iter().map(ToString::to_string).collect();
            assert!(named, "{} in {}: {says:#?}", plant.function, plant.kernel);
            found += 1;
        }
    }
    say(&format!("under single steps: {found} planted leaks of lanework-magma found, and named"));
}
