//! Our own variants.
#![forbid(unsafe_code)]

use std::hint::black_box;

use lanework_cpu::{ThreadPool, Threads};
use lanework_magma::batch::{Batch, CbcJob, CfbJob, CtrJob, OmacJob, Outcomes, SealJob};
use lanework_magma::modes::hazmat::EcbEncryptor;
use lanework_magma::modes::legacy::{self, Meshing};
use lanework_magma::modes::{CbcDecryptor, CfbDecryptor, Ctr, CtrAcpkm, Omac, Stream};
use lanework_magma::{Engine, Error, Gost28147, Limits, Magma, Mgm, Sbox};
use lanework_race::subject::{Facts, Runnable, Unavailable, work};

use super::{Case, Inputs, Operation};

fn failed(e: impl ToString) -> Unavailable {
    Unavailable::because(e.to_string())
}

/// Work on `threads` threads by the calls that take them, or by the plain calls. A result that is wrong ends the race by a
/// panic, which the laboratory reports as a failed launch. Keys have no limits: a race is longer than any message should be.
pub(super) fn prepare(
    engine: Engine,
    case: Case,
    threads: Option<usize>,
) -> Result<Box<dyn Runnable>, Unavailable> {
    let pool = threads.map(Threads::pool).transpose().map_err(failed)?;
    if case.operation.is_batch() {
        return Ok(batch(engine, case, pool));
    }
    match pool {
        Some(pool) => spread(engine, case, pool),
        None => one(engine, case),
    }
}

fn facts(engine: Engine) -> impl Fn() -> Facts {
    move || Facts { backend: engine.name().to_owned(), notes: Vec::new() }
}

/// One message by the plain calls, from one buffer into another.
fn one(engine: Engine, case: Case) -> Result<Box<dyn Runnable>, Unavailable> {
    let Inputs { keys, mut texts, aad } = Inputs::new(case);
    let key = Magma::with(&keys[0], engine).with_limits(Limits::Unlimited);
    let gost = Gost28147::with(&keys[0], Sbox::Z, engine).with_limits(Limits::Unlimited);
    let input = texts.pop().unwrap_or_default();
    let mut output = vec![0; input.len()];
    let facts = facts(engine);
    let mut count = 0u32;
    // Another message each time, as far as IVs go.
    let mut iv = move || {
        count = count.wrapping_add(1);
        u64::from(count).to_be_bytes()
    };
    /// A message from its state.
    macro_rules! stream {
        ($iv:ident => $new:expr) => {
            work(
                move || {
                    let $iv = iv();
                    let done = $new.and_then(|mut state| state.apply_to(&input, &mut output));
                    assert!(black_box(done).is_ok());
                },
                facts,
            )
        };
    }
    Ok(match case.operation {
        Operation::Ctr => stream!(iv => Ctr::with_key(&key, &iv[4..])),
        Operation::Ecb => stream!(_iv => Ok::<_, Error>(EcbEncryptor::with_key(&key))),
        Operation::CbcDecrypt => stream!(iv => CbcDecryptor::with_key(&key, &iv)),
        Operation::CfbDecrypt => stream!(iv => CfbDecryptor::with_key(&key, &iv)),
        Operation::CtrAcpkm => stream!(iv => CtrAcpkm::with_key(&key, &iv[4..])),
        Operation::Gost89Cfb => stream!(iv => legacy::CfbEncryptor::with_key(&gost, &iv, Meshing::CryptoPro)),
        Operation::Omac => work(
            move || {
                let tag = Omac::with_key(&key, 8).and_then(|mut mac| {
                    mac.update(&input)?;
                    Ok(mac.finish())
                });
                assert!(black_box(tag).is_ok());
            },
            facts,
        ),
        Operation::MgmSeal => {
            let mgm = Mgm::with_key(key, 8).map_err(failed)?;
            work(move || assert!(black_box(mgm.seal_to(&iv(), &aad, &input, &mut output)).is_ok()), facts)
        }
        Operation::MgmOpen => {
            let mgm = Mgm::with_key(key, 8).map_err(failed)?;
            let nonce = iv();
            let mut sealed = input;
            let tag = mgm.seal(&nonce, &aad, &mut sealed).map_err(failed)?;
            work(
                move || {
                    let opened = mgm.open_to(&nonce, &aad, &sealed, &mut output, tag.as_slice());
                    assert!(black_box(opened).is_ok());
                },
                facts,
            )
        }
        _ => return Err(Unavailable::because("a batch is not one message")),
    })
}

/// One message by the calls that take threads, in place.
fn spread(engine: Engine, case: Case, pool: ThreadPool) -> Result<Box<dyn Runnable>, Unavailable> {
    let Inputs { keys, mut texts, aad } = Inputs::new(case);
    let key = Magma::with(&keys[0], engine).with_limits(Limits::Unlimited);
    let mut text = texts.pop().unwrap_or_default();
    let facts = facts(engine);
    let mut count = 0u32;
    let mut iv = move || {
        count = count.wrapping_add(1);
        u64::from(count).to_be_bytes()
    };
    Ok(match case.operation {
        Operation::Ctr => work(
            move || {
                let done = Ctr::with_key(&key, &iv()[4..])
                    .and_then(|mut s| s.apply_with(Threads::Pool(&pool), &mut text));
                assert!(black_box(done).is_ok());
            },
            facts,
        ),
        Operation::CtrAcpkm => work(
            move || {
                let done = CtrAcpkm::with_key(&key, &iv()[4..])
                    .and_then(|mut s| s.apply_with(Threads::Pool(&pool), &mut text));
                assert!(black_box(done).is_ok());
            },
            facts,
        ),
        Operation::MgmSeal => {
            let mgm = Mgm::with_key(key, 8).map_err(failed)?;
            work(
                move || {
                    let tag = mgm.seal_with(Threads::Pool(&pool), &iv(), &aad, &mut text);
                    assert!(black_box(tag).is_ok());
                },
                facts,
            )
        }
        _ => return Err(Unavailable::because("it has no call that takes threads")),
    })
}

/// All messages of a batch, in place, each under a key of its own; the list of jobs is made anew for each batch, as in real
/// use.
fn batch(engine: Engine, case: Case, pool: Option<ThreadPool>) -> Box<dyn Runnable> {
    let Inputs { keys, mut texts, aad } = Inputs::new(case);
    let magma: Vec<Magma> =
        keys.iter().map(|k| Magma::with(k, engine).with_limits(Limits::Unlimited)).collect();
    let gost: Vec<Gost28147> =
        keys.iter().map(|k| Gost28147::with(k, Sbox::Z, engine).with_limits(Limits::Unlimited)).collect();
    let mut tags = vec![[0; 8]; texts.len()];
    let mut count = 0u32;
    let right = |outcomes: Outcomes| outcomes.iter().all(Result::is_ok);
    work(
        move || {
            let threads = pool.as_ref().map_or(Threads::One, Threads::Pool);
            let batch = Batch::new(engine).threads(threads);
            count = count.wrapping_add(1);
            let iv = u64::from(count).to_be_bytes();
            let text = texts.iter_mut().map(Vec::as_mut_slice);
            let done = match case.operation {
                Operation::CtrBatch => {
                    let mut jobs: Vec<_> = magma
                        .iter()
                        .zip(text)
                        .map(|(key, data)| CtrJob { key, iv: &iv[4..], data })
                        .collect();
                    batch.ctr(&mut jobs)
                }
                Operation::CbcEncryptBatch => {
                    let mut jobs: Vec<_> =
                        magma.iter().zip(text).map(|(key, data)| CbcJob { key, iv: &iv, data }).collect();
                    batch.cbc_encrypt(&mut jobs)
                }
                Operation::Gost89CfbBatch => {
                    let mut jobs: Vec<_> =
                        gost.iter().zip(text).map(|(key, data)| CfbJob { key, iv: &iv, data }).collect();
                    batch.cfb_encrypt(&mut jobs)
                }
                Operation::OmacBatch => {
                    let mut jobs: Vec<_> = magma
                        .iter()
                        .zip(text.zip(&mut tags))
                        .map(|(key, (data, mac))| OmacJob { key, data, mac })
                        .collect();
                    batch.omac(&mut jobs)
                }
                _ => {
                    let mut jobs: Vec<_> = magma
                        .iter()
                        .zip(text.zip(&mut tags))
                        .map(|(key, (data, tag))| SealJob { key, nonce: &iv, aad: &aad, data, tag })
                        .collect();
                    batch.mgm_seal(8, &mut jobs)
                }
            };
            assert!(black_box(done).is_ok_and(right));
        },
        facts(engine),
    )
}
