//! Batches against the same messages one by one.
#![forbid(unsafe_code)]

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use lanework_cpu::Threads;

use super::{Depth, Numbers, Row, done};
use crate::backend::Engine;
use crate::batch::hazmat::{EcbJob, ecb_encrypt};
use crate::batch::{Batch, CbcJob, CfbJob, CtrJob, OmacJob, OpenJob, Outcomes, SealJob};
use crate::error::Error;
use crate::key::{Gost28147, Magma};
use crate::limits::Limits;
use crate::mgm::Mgm;
use crate::modes::hazmat::EcbEncryptor;
use crate::modes::{CbcEncryptor, CfbEncryptor, Ctr, Omac, Stream};
use crate::sbox::Sbox;

/// A message with its own key.
struct Message {
    magma: Magma,
    gost: Gost28147,
    iv: [u8; 16],
    nonce: [u8; 8],
    aad: Vec<u8>,
    data: Vec<u8>,
}

fn message(numbers: &mut Numbers, engine: Engine, n: usize) -> Message {
    let key = numbers.array();
    let mut nonce: [u8; 8] = numbers.array();
    nonce[0] &= 0x7f;
    let sbox = Sbox::ALL[numbers.below(3)];
    let aad = 1 + numbers.below(30);
    Message {
        magma: Magma::with(&key, engine).with_limits(Limits::Unlimited),
        gost: Gost28147::with(&key, sbox, engine).with_limits(Limits::Unlimited),
        iv: numbers.array(),
        nonce,
        aad: numbers.bytes(aad),
        data: numbers.bytes(n),
    }
}

type Buffers = Vec<Vec<u8>>;

/// Every outcome and every buffer is as expected.
fn judge<E: core::fmt::Debug>(
    row: &mut Row,
    what: &str,
    outcomes: Result<Outcomes, E>,
    data: &Buffers,
    want: &[Result<Vec<u8>, Error>],
) {
    let Ok(outcomes) = outcomes else {
        row.case(false, || format!("{what}: {outcomes:?}"));
        return;
    };
    row.case(outcomes.len() == want.len(), || format!("{what}: {} outcomes", outcomes.len()));
    for (i, ((outcome, data), want)) in outcomes.into_iter().zip(data).zip(want).enumerate() {
        let got = done(outcome, data.clone());
        row.case(got == *want, || format!("{what}: message {i} of {}, {} bytes", want_len(want), data.len()));
    }
}

fn want_len(want: &Result<Vec<u8>, Error>) -> usize {
    want.as_ref().map_or(0, Vec::len)
}

/// Many messages of lengths from 0 up, each with its key, against one after the other; also on two threads.
#[must_use]
pub fn batches(engine: Engine, depth: Depth) -> Row {
    let mut row = Row::new("batches against one by one", engine.name());
    let mut numbers = Numbers(9);
    let counts: &[usize] = if depth == Depth::Full { &[0, 1, 2, 17, 128, 129, 300] } else { &[3, 130] };
    for (round, &count) in counts.iter().enumerate() {
        let most = [50, 700, 3000][round % 3];
        let lengths: Vec<usize> = (0..count).map(|_| numbers.below(most)).collect();
        let messages: Vec<Message> = lengths.iter().map(|&n| message(&mut numbers, engine, n)).collect();
        for threads in [Threads::One, Threads::Own(2)] {
            let batch = Batch::new(engine).threads(threads);
            row.case(batch.backend() == engine.name(), || "another backend runs".to_owned());
            serial(&mut row, &batch, &messages);
            parallel(&mut row, &batch, &messages);
        }
    }
    row
}

fn whole_blocks(data: &[u8]) -> Vec<u8> {
    data[..data.len() / 8 * 8].to_vec()
}

fn one(data: &[u8], state: Result<impl Stream, Error>) -> Result<Vec<u8>, Error> {
    let mut data = data.to_vec();
    state?.apply(&mut data)?;
    Ok(data)
}

/// The modes that are serial within a message.
fn serial(row: &mut Row, batch: &Batch<'_>, messages: &[Message]) {
    let mut data: Buffers = messages.iter().map(|m| whole_blocks(&m.data)).collect();
    let want: Vec<_> =
        messages.iter().zip(&data).map(|(m, d)| one(d, CbcEncryptor::with_key(&m.magma, &m.iv))).collect();
    let mut jobs: Vec<_> =
        messages.iter().zip(&mut data).map(|(m, data)| CbcJob { key: &m.magma, iv: &m.iv, data }).collect();
    let outcomes = batch.cbc_encrypt(&mut jobs);
    judge(row, "CBC", outcomes, &data, &want);

    let mut data: Buffers = messages.iter().map(|m| m.data.clone()).collect();
    let want: Vec<_> = messages
        .iter()
        .zip(&data)
        .map(|(m, d)| one(d, CfbEncryptor::with_key(&m.gost, &m.iv[..8])))
        .collect();
    let mut jobs: Vec<_> = messages
        .iter()
        .zip(&mut data)
        .map(|(m, data)| CfbJob { key: &m.gost, iv: &m.iv[..8], data })
        .collect();
    let outcomes = batch.cfb_encrypt(&mut jobs);
    judge(row, "CFB of 28147", outcomes, &data, &want);

    let omac = |m: &Message| {
        let mut mac = Omac::with_key(&m.magma, 8)?;
        mac.update(&m.data)?;
        Ok(mac.finish().as_ref().to_vec())
    };
    let want: Vec<Result<Vec<u8>, Error>> = messages.iter().map(omac).collect();
    let mut macs: Buffers = vec![vec![0; 8]; messages.len()];
    let mut jobs: Vec<_> = messages
        .iter()
        .zip(&mut macs)
        .map(|(m, mac)| OmacJob { key: &m.magma, data: &m.data, mac })
        .collect();
    let outcomes = batch.omac(&mut jobs);
    judge(row, "OMAC", outcomes, &macs, &want);
}

/// The modes that are parallel within a message too, for those too short to fill a CPU.
fn parallel(row: &mut Row, batch: &Batch<'_>, messages: &[Message]) {
    let mut data: Buffers = messages.iter().map(|m| whole_blocks(&m.data)).collect();
    let want: Vec<_> =
        messages.iter().zip(&data).map(|(m, d)| one(d, Ok(EcbEncryptor::with_key(&m.gost)))).collect();
    let mut jobs: Vec<_> =
        messages.iter().zip(&mut data).map(|(m, data)| EcbJob { key: &m.gost, data }).collect();
    let outcomes = ecb_encrypt(batch, &mut jobs);
    judge(row, "ECB", outcomes, &data, &want);

    let mut data: Buffers = messages.iter().map(|m| m.data.clone()).collect();
    let want: Vec<_> =
        messages.iter().zip(&data).map(|(m, d)| one(d, Ctr::with_key(&m.magma, &m.iv[..4]))).collect();
    let mut jobs: Vec<_> = messages
        .iter()
        .zip(&mut data)
        .map(|(m, data)| CtrJob { key: &m.magma, iv: &m.iv[..4], data })
        .collect();
    let outcomes = batch.ctr(&mut jobs);
    judge(row, "CTR", outcomes, &data, &want);

    let mut data: Buffers = messages.iter().map(|m| m.data.clone()).collect();
    let mut tags: Buffers = vec![vec![0; 8]; messages.len()];
    let mut whole_tags = Vec::new();
    let want: Vec<_> = messages
        .iter()
        .map(|m| {
            let mut data = m.data.clone();
            let tag = Mgm::with_key(m.magma.clone(), 8)?.seal(&m.nonce, &m.aad, &mut data)?;
            whole_tags.push(Ok(tag.as_slice().to_vec()));
            Ok(data)
        })
        .collect();
    let mut jobs: Vec<_> = messages
        .iter()
        .zip(data.iter_mut().zip(&mut tags))
        .map(|(m, (data, tag))| SealJob { key: &m.magma, nonce: &m.nonce, aad: &m.aad, data, tag })
        .collect();
    let outcomes = batch.mgm_seal(8, &mut jobs);
    judge(row, "MGM's tags", outcomes.as_ref().map(Clone::clone), &tags, &whole_tags);
    judge(row, "MGM", outcomes, &data, &want);

    // Every third message is damaged: it is refused and zeroed, and its neighbours are opened.
    let damaged = |i: usize| i % 3 == 1;
    tags.iter_mut().enumerate().filter(|(i, _)| damaged(*i)).for_each(|(i, tag)| tag[i % 8] ^= 1);
    let want: Vec<_> = messages
        .iter()
        .enumerate()
        .map(|(i, m)| if damaged(i) { Err(Error::Refused) } else { Ok(m.data.clone()) })
        .collect();
    let mut jobs: Vec<_> = messages
        .iter()
        .zip(data.iter_mut().zip(&tags))
        .map(|(m, (data, tag))| OpenJob { key: &m.magma, nonce: &m.nonce, aad: &m.aad, data, tag })
        .collect();
    let outcomes = batch.mgm_open(8, &mut jobs);
    judge(row, "MGM opened", outcomes, &data, &want);
    let zeroed = data.iter().enumerate().filter(|(i, _)| damaged(*i)).all(|(_, d)| d.iter().all(|b| *b == 0));
    row.case(zeroed, || "a refused message was not zeroed".to_owned());
}
