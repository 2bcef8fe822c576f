//! MGM (RFC 9058) over many messages.
//!
//! A message of q blocks with h blocks of associated data costs 2q + h + 4 encryptions: a few dozen in a TLS record or
//! an ESP packet, too few to fill a batch under one key. Here every message has one lane for all its encryptions, and
//! the products of its multipliers are taken row by row from the lanes' output.
#![forbid(unsafe_code)]

use alloc::vec::Vec;

use lanework_cpu::PoolError;
use lanework_cpu::memory::wipe;

use super::parallel::{Cost, alone, time};
use super::{Batch, Job, LANES, Lanes, Outcomes, Ready, Shape, add, block, key};
use crate::backend::Kernels;
use crate::backend::chain::{Half, Scratch, Step, Strands};
use crate::error::Error;
use crate::key::{Core, Magma};
use crate::mgm::{admit, charge, field::reduce, lengths};
use crate::release::equal;
use crate::sbox::Sbox;
use crate::schedule::Counter;

/// A message for [`Batch::mgm_seal`].
#[derive(Debug)]
pub struct SealJob<'a> {
    /// The key; any number of jobs may share one, each with its own nonce.
    pub key: &'a Magma,
    /// 8 bytes whose top bit is 0; never twice under one key.
    pub nonce: &'a [u8],
    /// Associated data: authenticated only.
    pub aad: &'a [u8],
    /// Any number of bytes, encrypted in place.
    pub data: &'a mut [u8],
    /// The place for the tag, as long as the batch's tags.
    pub tag: &'a mut [u8],
}

/// A message for [`Batch::mgm_open`].
#[derive(Debug)]
pub struct OpenJob<'a> {
    /// The key.
    pub key: &'a Magma,
    /// 8 bytes whose top bit is 0.
    pub nonce: &'a [u8],
    /// Associated data.
    pub aad: &'a [u8],
    /// Decrypted in place if the tag is right, and zeroed if it is not.
    pub data: &'a mut [u8],
    /// The tag, as long as the batch's tags.
    pub tag: &'a [u8],
}

/// A job, and the length of tags.
struct Sealing<'j, 'a>(&'j mut SealJob<'a>, usize);
struct Opening<'j, 'a>(&'j mut OpenJob<'a>, usize);

/// The blocks whose products are summed: associated data and ciphertext, each padded with zeros to whole blocks, and
/// the block of their lengths in bits.
#[derive(Clone, Copy)]
struct Text<'x> {
    aad: &'x [u8],
    data: &'x [u8],
}

impl Text<'_> {
    fn blocks(&self) -> usize {
        self.aad.len().div_ceil(8) + self.data.len().div_ceil(8) + 1
    }

    /// Blocks `first`, `first` + 1, ..., as many as `out` holds.
    fn copy(&self, first: usize, out: &mut [u8]) {
        let aad = self.aad.len().next_multiple_of(8);
        let data = aad + self.data.len().next_multiple_of(8);
        // Both lengths are below 2^29 bytes, so their bits fit.
        let lengths = lengths(self.aad.len(), self.data.len());
        out.fill(0);
        let (from, to) = (8 * first, 8 * first + out.len());
        for (start, bytes) in [(0, self.aad), (aad, self.data), (data, &lengths[..])] {
            let (a, b) = (from.max(start), to.min(start + bytes.len()));
            if a < b {
                out[a - from..b - from].copy_from_slice(&bytes[a - start..b - start]);
            }
        }
    }
}

fn check(nonce: &[u8], aad: &[u8], data: &[u8], tag: usize, want: usize) -> Result<(), Error> {
    admit(nonce, aad.len(), data.len())?;
    if tag == want && (4..=8).contains(&tag) { Ok(()) } else { Err(Error::TagLength(tag)) }
}

fn shape(aad: &[u8], data: &[u8]) -> Shape {
    let blocks = data.len().div_ceil(8);
    Shape { lanes: 1, steps: aad.len().div_ceil(8) + 2 * blocks + 4, sbox: Sbox::Z }
}

/// Two runs of blocks, and three blocks that each wait for the one before.
fn cost(parallel: usize, aad: &[u8], data: &[u8]) -> Cost {
    let encryption = time(parallel, data.len().div_ceil(8));
    let authentication = time(parallel, Text { aad, data }.blocks());
    Cost { alone: encryption + authentication + 3 * time(parallel, 1), steps: shape(aad, data).steps }
}

impl Sealing<'_, '_> {
    fn cost(&self, parallel: usize) -> Cost {
        cost(parallel, self.0.aad, self.0.data)
    }
}

impl Opening<'_, '_> {
    fn cost(&self, parallel: usize) -> Cost {
        cost(parallel, self.0.aad, self.0.data)
    }
}

impl Job for Sealing<'_, '_> {
    fn core(&self) -> &Core {
        key(self.0.key)
    }

    fn check(&self) -> Result<(), Error> {
        check(self.0.nonce, self.0.aad, self.0.data, self.0.tag.len(), self.1)
    }

    fn charge(&self) -> u64 {
        charge(self.0.aad.len() as u64, self.0.data.len() as u64)
    }

    fn shape(&self) -> Shape {
        shape(self.0.aad, self.0.data)
    }
}

impl Job for Opening<'_, '_> {
    fn core(&self) -> &Core {
        key(self.0.key)
    }

    fn check(&self) -> Result<(), Error> {
        check(self.0.nonce, self.0.aad, self.0.data, self.0.tag.len(), self.1)?;
        self.core().budget.may_open(charge(self.0.aad.len() as u64, self.0.data.len() as u64))
    }

    /// A message is charged only when it is found authentic: forgeries are not the key owner's traffic.
    fn charge(&self) -> u64 {
        0
    }

    fn shape(&self) -> Shape {
        shape(self.0.aad, self.0.data)
    }
}

/// The nonce, with its top bit unchanged for encryption, or set for authentication.
fn first_block(nonce: &[u8], authentication: bool) -> [u8; 8] {
    let mut first = block(nonce);
    first[0] |= u8::from(authentication) << 7;
    first
}

/// Leaves E(nonce) in the first lanes' states.
fn nonces<'x>(lanes: &mut Lanes, nonces: impl Iterator<Item = &'x [u8]>, authentication: bool) {
    let mut n = 0;
    for nonce in nonces {
        lanes.states()[n] = first_block(nonce, authentication);
        n += 1;
    }
    lanes.encrypt(n);
}

/// Encrypts or decrypts. Each lane's state is its first counter's block.
fn crypt<'d>(lanes: &mut Lanes, messages: impl Iterator<Item = &'d mut [u8]>) {
    let mut strands = Strands::writing(lanes.table());
    let mut cut: [&mut [u8]; LANES] = core::array::from_fn(|_| &mut [][..]);
    let (mut n, mut cuts) = (0, 0);
    for data in messages {
        let (head, tail) = data.split_at_mut(data.len() / 8 * 8);
        strands.write(head, 1);
        cuts += usize::from(!tail.is_empty());
        cut[n] = tail;
        n += 1;
    }
    lanes.chain(Step::Counter(Half::Low), strands);
    if cuts > 0 {
        lanes.encrypt(n);
        for (tail, gamma) in cut.iter_mut().zip(lanes.states()) {
            add(tail, gamma);
        }
    }
}

/// Associated data up to this length is copied, so that its padding needs no step of its own.
const SHORT: usize = 32;

/// Leaves every message's full tag in its lane's state.
fn tags<'x>(lanes: &mut Lanes, messages: impl Iterator<Item = (&'x [u8], Text<'x>)> + Clone) {
    nonces(lanes, messages.clone().map(|(nonce, _)| nonce), true);
    let n = messages.clone().count();
    lanes.scratch.sums = [[0; 2]; LANES];
    // Four runs of blocks one after the other. The ends of associated data are padded in a copy, and so are the ends of
    // the text, which the lengths follow.
    let mut ends = [[0u8; SHORT]; LANES];
    let split =
        |aad: &'x [u8]| if aad.len() <= SHORT { (&[][..], aad) } else { aad.split_at(aad.len() / 8 * 8) };
    multiply(lanes, messages.clone().map(|(_, text)| split(text.aad).0));
    for ((_, text), end) in messages.clone().zip(&mut ends) {
        let (_, tail) = split(text.aad);
        end[..tail.len()].copy_from_slice(tail);
    }
    let blocks = |bytes: usize| bytes.next_multiple_of(8);
    let aad_ends = messages.clone().zip(&ends);
    multiply(lanes, aad_ends.map(|((_, text), end)| &end[..blocks(split(text.aad).1.len())]));
    multiply(lanes, messages.clone().map(|(_, text)| &text.data[..text.data.len() / 8 * 8]));
    for ((_, text), end) in messages.clone().zip(&mut ends) {
        let cut = !text.data.len().is_multiple_of(8);
        text.copy(text.blocks() - 1 - usize::from(cut), &mut end[..8 + 8 * usize::from(cut)]);
    }
    let text_ends = messages.zip(&ends);
    multiply(lanes, text_ends.map(|((_, text), end)| &end[..8 + blocks(text.data.len() % 8)]));
    let Scratch { states, sums, .. } = &mut *lanes.scratch;
    for (state, sum) in states.iter_mut().zip(sums).take(n) {
        *state = reduce(*sum).to_be_bytes();
    }
    lanes.encrypt(n);
}

/// Adds the products of one run of blocks in every lane to the lane's sum.
fn multiply<'x>(lanes: &mut Lanes, runs: impl Iterator<Item = &'x [u8]> + Clone) {
    if runs.clone().any(|run| !run.is_empty()) {
        let mut strands = Strands::reading(lanes.table());
        runs.for_each(|run| strands.read(run));
        lanes.chain(Step::Multiply(Half::High), strands);
    }
}

/// One message by itself, with all lanes on its blocks.
struct Alone<'k> {
    kernels: &'static Kernels,
    core: &'k Core,
}

impl Alone<'_> {
    fn encrypt(&self, mut block: [u8; 8]) -> [u8; 8] {
        self.kernels.blocks(&self.core.encrypt, block.as_mut_slice().into());
        block
    }

    fn crypt(&self, nonce: &[u8], data: &mut [u8]) {
        let counter = Counter::low(u64::from_be_bytes(self.encrypt(first_block(nonce, false))));
        self.kernels.counter(&self.core.encrypt, counter, data.into());
    }

    fn tag(&self, nonce: &[u8], text: Text<'_>) -> [u8; 8] {
        const MOST: usize = 512;
        let counter = Counter::high(u64::from_be_bytes(self.encrypt(first_block(nonce, true))));
        let (mut h, mut x) = ([0; 8 * MOST], [0; 8 * MOST]);
        let mut sum = [0; 2];
        for first in (0..text.blocks()).step_by(MOST) {
            let bytes = 8 * MOST.min(text.blocks() - first);
            self.kernels.keystream(&self.core.encrypt, counter.from(first as u32), &mut h[..bytes]);
            text.copy(first, &mut x[..bytes]);
            self.kernels.products(&h[..bytes], &x[..bytes], &mut sum);
        }
        wipe(&mut h);
        self.encrypt(reduce(sum).to_be_bytes())
    }
}

fn seal(lanes: &mut Lanes, group: &mut [Ready<'_, Sealing<'_, '_>>]) {
    let parallel = lanes.parallel();
    let n = alone(parallel, group.iter().map(|r| r.job.cost(parallel)));
    let (alone, together) = group.split_at_mut(n);
    for Ready { job: Sealing(job, _), .. } in alone {
        let one = Alone { kernels: lanes.kernels, core: key(job.key) };
        one.crypt(job.nonce, job.data);
        let tag = one.tag(job.nonce, Text { aad: job.aad, data: job.data });
        job.tag.copy_from_slice(&tag[..job.tag.len()]);
    }
    for (lane, Ready { job, .. }) in together.iter().enumerate() {
        lanes.load(lane, key(job.0.key));
    }
    nonces(lanes, together.iter().map(|r| r.job.0.nonce), false);
    crypt(lanes, together.iter_mut().map(|r| &mut *r.job.0.data));
    tags(lanes, together.iter().map(|r| (r.job.0.nonce, Text { aad: r.job.0.aad, data: r.job.0.data })));
    for (Ready { job, .. }, state) in together.iter_mut().zip(lanes.states()) {
        let n = job.0.tag.len();
        job.0.tag.copy_from_slice(&state[..n]);
    }
}

fn judge(job: &mut OpenJob<'_>, tag: &[u8; 8], outcome: &mut Result<(), Error>) {
    let (aad, data) = (job.aad.len() as u64, job.data.len() as u64);
    let authentic = equal(&tag[..job.tag.len()], job.tag);
    *outcome = key(job.key).budget.open(aad + data, charge(aad, data), authentic);
    if *outcome == Err(Error::Refused) {
        wipe(job.data);
    }
}

fn open(lanes: &mut Lanes, group: &mut [Ready<'_, Opening<'_, '_>>]) {
    let parallel = lanes.parallel();
    let n = alone(parallel, group.iter().map(|r| r.job.cost(parallel)));
    let (alone, together) = group.split_at_mut(n);
    for Ready { job: Opening(job, _), outcome, .. } in alone {
        let one = Alone { kernels: lanes.kernels, core: key(job.key) };
        let tag = one.tag(job.nonce, Text { aad: job.aad, data: job.data });
        judge(job, &tag, outcome);
        if outcome.is_ok() {
            one.crypt(job.nonce, job.data);
        }
    }
    for (lane, Ready { job, .. }) in together.iter().enumerate() {
        lanes.load(lane, key(job.0.key));
    }
    tags(lanes, together.iter().map(|r| (r.job.0.nonce, Text { aad: r.job.0.aad, data: r.job.0.data })));
    for (Ready { job, outcome, .. }, tag) in together.iter_mut().zip(lanes.states()) {
        judge(job.0, tag, outcome);
    }
    // Nothing is decrypted before its tag is verified; lanes of refused messages stay idle.
    nonces(lanes, together.iter().map(|r| r.job.0.nonce), false);
    let accepted = |r: &mut Ready<'_, Opening<'_, '_>>| r.outcome.is_ok();
    crypt(lanes, together.iter_mut().map(|r| if accepted(r) { &mut *r.job.0.data } else { &mut [][..] }));
}

impl Batch<'_> {
    /// MGM encryption of every message, with tags of `tag` bytes (4 to 8), which the protocol must fix once and for
    /// all.
    ///
    /// A job can fail with [`Error::NonceLength`], [`Error::NonceTopBit`], [`Error::TagLength`],
    /// [`Error::EmptyMessage`], [`Error::TooLong`] and [`Error::KeyExhausted`].
    ///
    /// # Errors
    /// [`PoolError`] when threads cannot be started; no job has been touched then, though the keys count them.
    pub fn mgm_seal(&self, tag: usize, jobs: &mut [SealJob<'_>]) -> Result<Outcomes, PoolError> {
        let mut jobs: Vec<Sealing<'_, '_>> = jobs.iter_mut().map(|job| Sealing(job, tag)).collect();
        self.drive(&mut jobs, seal)
    }

    /// MGM decryption of every message whose tag of `tag` bytes is right; the data of others is zeroed, and their
    /// outcome is [`Error::Refused`].
    ///
    /// A job's other errors are those of [`Batch::mgm_seal`] and [`Error::TooManyRefused`], and leave its data alone.
    ///
    /// # Errors
    /// [`PoolError`] when threads cannot be started; no job has been touched then.
    pub fn mgm_open(&self, tag: usize, jobs: &mut [OpenJob<'_>]) -> Result<Outcomes, PoolError> {
        let mut jobs: Vec<Opening<'_, '_>> = jobs.iter_mut().map(|job| Opening(job, tag)).collect();
        self.drive(&mut jobs, open)
    }
}
