//! A whole operation to one thread, as in the first publication of MAYO on a device: the baseline of all measurements.
//!
//! The caller sets grid and block, to find the best launch; a thread works on its stack or on the device's heap. Copies
//! do not overlap with work, the CPU does not take over, and batches are not halved: a batch that does not fit is an
//! error.
#![forbid(unsafe_code)]

use std::time::Duration;

use lanework_cuda::{Buffer, Device, Error as DeviceError, Limit, Module, Stream};
use lanework_mayo::internals::batch::{Message, admit_each, draw_randomizer, emit, verdict};
use lanework_mayo::{Engine, Error, Params, PublicKey, SecretKey, Signature};
use rand_core::TryCryptoRng;
use zeroize::Zeroizing;

use super::operations::{digests, placed};
use super::{GpuError, Release, expect_count, one_set};
use crate::launch::THREAD;
use crate::launch::threads::{Strings, bytes, run};

/// The place of a thread's matrices and working memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadMemory {
    /// On its stack, which is 512 KiB at most: for the smaller sets only. A device reserves that much for every thread
    /// that it can hold at once, for any launch, and may refuse.
    Stack,
    /// On the device's heap.
    Heap,
}

/// How operations are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadLaunch {
    /// Blocks.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Where they work.
    pub memory: ThreadMemory,
}

impl ThreadLaunch {
    /// As published: four blocks of four threads.
    pub const PUBLISHED: ThreadLaunch = ThreadLaunch { blocks: 4, threads: 4, memory: ThreadMemory::Heap };

    /// Operations of one launch.
    #[must_use]
    pub const fn in_flight(self) -> usize {
        self.blocks as usize * self.threads as usize
    }
}

/// A batch's time on the device. Meaningless in emulation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadTimes {
    /// All launches, one after the other, without copies.
    pub time: Duration,
    /// Launches.
    pub launches: usize,
    /// Cycles of an operation, on average.
    pub whole: f64,
    /// Those of them that expand matrices: for key generation and verification P, for signing P and L.
    pub expansion: f64,
    /// Those that compute products: P1 O for key generation, P1 V^T for signing, all for verification.
    pub products: f64,
}

/// A device with these kernels.
#[derive(Debug)]
pub struct GpuThreads {
    device: Device,
    cpu: Engine,
    module: Module,
    stream: Stream,
    bytes: Vec<u32>,
}

/// A batch's buffers on the device.
struct Buffers {
    keys: Buffer<u8>,
    digests: Buffer<u8>,
    randomizers: Buffer<u8>,
    out: Buffer<u8>,
    flags: Buffer<u8>,
    cycles: Buffer<u64>,
}

/// Copies equal pieces one after another.
fn packed<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Zeroizing<Vec<u8>> {
    let pieces: Vec<&[u8]> = pieces.collect();
    Zeroizing::new(pieces.concat())
}

impl GpuThreads {
    /// The device, with a heap of `heap` bytes for its threads: see [`heap`](GpuThreads::heap). A heap cannot grow once
    /// a kernel has used it, so pass the largest need of all launches. 0 keeps the driver's.
    ///
    /// # Errors
    /// The device's errors; [`lanework_cuda::Error::OutOfMemory`] for such a heap.
    pub fn open(device: &Device, cpu: Engine, heap: usize) -> Result<GpuThreads, DeviceError> {
        if heap > 0 {
            device.limit(Limit::Heap, heap)?;
        }
        let (module, stream) = (device.module(&THREAD)?, device.stream()?);
        let bytes = bytes(device, &module)?;
        Ok(GpuThreads { device: device.clone(), cpu, module, stream, bytes })
    }

    /// Bytes of the heap that `in_flight` threads of `bytes` each need: twice as many and a MiB, for what the heap loses between
    /// them. A tenth more was too little on an H100 for 4,096 threads of 0.2 to 0.6 MB, and enough for as many of 1.2 MB.
    #[must_use]
    pub const fn heap(bytes: usize, in_flight: usize) -> usize {
        let all = bytes.saturating_mul(in_flight);
        all.saturating_mul(2).saturating_add(1 << 20)
    }

    /// Bytes of a thread's working memory.
    #[must_use]
    pub fn bytes(&self, params: &Params) -> usize {
        self.bytes.get(params.index()).map_or(0, |bytes| *bytes as usize)
    }

    /// Whether there are kernels for the set with such memory.
    #[must_use]
    pub fn has(&self, params: &Params, memory: ThreadMemory) -> bool {
        self.module.kernel(&name("keygen", params, memory)).is_ok()
    }

    fn buffers(
        &self,
        params: &Params,
        count: usize,
        keys: usize,
        out: usize,
    ) -> Result<Buffers, DeviceError> {
        let of = |each: usize| (each * count).max(1);
        Ok(Buffers {
            keys: self.device.secret(of(keys))?,
            digests: self.device.secret(of(params.digest_bytes()))?,
            randomizers: self.device.secret(of(params.salt_bytes()))?,
            out: self.device.secret(of(out))?,
            flags: self.device.buffer(of(1))?,
            cycles: self.device.buffer(of(3))?,
        })
    }

    /// Runs the kernel and returns its flags.
    fn run(
        &self,
        what: &str,
        params: &Params,
        launch: ThreadLaunch,
        count: usize,
        strings: &Strings<'_>,
    ) -> Result<(Vec<u8>, ThreadTimes), DeviceError> {
        if launch.memory == ThreadMemory::Stack {
            // The compiler's frame; this leaves room for its callees.
            self.device.limit(Limit::Stack, (self.bytes(params) + 8192).next_multiple_of(1024))?;
        }
        let kernel = name(what, params, launch.memory);
        let (time, launches) =
            run(&self.stream, &self.module, &kernel, (launch.blocks, launch.threads), count, strings)?;
        let flags = self.stream.get(strings.flags, 0..count)?;
        if flags.contains(&2) {
            let bytes = self.bytes(params) * count.min(launch.in_flight());
            return Err(DeviceError::OutOfMemory { what: "the heap of kernels", bytes });
        }
        let cycles = self.stream.get(strings.cycles, 0..3 * count)?;
        let mean = |part: usize| {
            cycles.iter().skip(part).step_by(3).map(|&c| c as f64).sum::<f64>() / count.max(1) as f64
        };
        Ok((flags, ThreadTimes { time, launches, whole: mean(0), expansion: mean(1), products: mean(2) }))
    }

    /// The public keys of `keys`, all of one set.
    ///
    /// # Errors
    /// [`GpuError`].
    pub fn keygen(
        &self,
        launch: ThreadLaunch,
        keys: &[SecretKey],
    ) -> Result<(Vec<PublicKey>, ThreadTimes), GpuError> {
        let Some(params) = one_set(keys.iter().map(SecretKey::params))? else {
            return Ok(Default::default());
        };
        let (count, size) = (keys.len(), params.public_key_bytes());
        let b = self.buffers(params, count, params.salt_bytes(), size)?;
        self.stream.put(&packed(keys.iter().map(SecretKey::expose_seed)), &b.keys, 0)?;
        let strings = Strings {
            keys: (&b.keys, params.salt_bytes()),
            digests: None,
            randomizers: None,
            out: (&b.out, size),
            flags: &b.flags,
            cycles: &b.cycles,
        };
        let (_, times) = self.run("keygen", params, launch, count, &strings)?;
        let made = self.stream.get(&b.out, 0..count * size)?;
        let keys = made.chunks_exact(size).map(|key| PublicKey::from_bytes(params, key));
        Ok((keys.collect::<Result<_, _>>()?, times))
    }

    /// A signature of each message by the key of the same index, hedged with `rng`. Unless `release` says otherwise the
    /// CPU verifies each before it is returned, and those that fail are [`Error::Fault`].
    ///
    /// # Errors
    /// [`GpuError`]; the fault of one signature is that item's own result.
    pub fn sign<M: AsRef<[u8]>, R: TryCryptoRng + ?Sized>(
        &self,
        launch: ThreadLaunch,
        keys: &[SecretKey],
        messages: &[M],
        release: Release,
        rng: &mut R,
    ) -> Result<(Vec<Result<Signature, Error>>, ThreadTimes), GpuError> {
        expect_count("messages", keys.len(), messages.len())?;
        let Some(params) = one_set(keys.iter().map(SecretKey::params))? else {
            return Ok(Default::default());
        };
        let randomizers: Vec<Zeroizing<Vec<u8>>> =
            keys.iter().map(|_| draw_randomizer(params, rng)).collect::<Result<_, _>>()?;
        self.sign_randomized(launch, keys, messages, &randomizers, release)
    }

    pub(crate) fn sign_randomized<M: AsRef<[u8]>>(
        &self,
        launch: ThreadLaunch,
        keys: &[SecretKey],
        messages: &[M],
        randomizers: &[Zeroizing<Vec<u8>>],
        release: Release,
    ) -> Result<(Vec<Result<Signature, Error>>, ThreadTimes), GpuError> {
        expect_count("messages", keys.len(), messages.len())?;
        expect_count("randomizers", keys.len(), randomizers.len())?;
        let Some(params) = one_set(keys.iter().map(SecretKey::params))? else {
            return Ok(Default::default());
        };
        let (count, size) = (keys.len(), params.signature_bytes());
        let b = self.buffers(params, count, params.salt_bytes(), size)?;
        self.stream.put(&packed(keys.iter().map(SecretKey::expose_seed)), &b.keys, 0)?;
        self.stream.put(&packed(randomizers.iter().map(|r| r.as_slice())), &b.randomizers, 0)?;
        let whole = Message::whole(messages);
        self.stream.put(&self.digests(params, count, whole.iter().copied()), &b.digests, 0)?;
        let strings = Strings {
            keys: (&b.keys, params.salt_bytes()),
            digests: Some((&b.digests, params.digest_bytes())),
            randomizers: Some((&b.randomizers, params.salt_bytes())),
            out: (&b.out, size),
            flags: &b.flags,
            cycles: &b.cycles,
        };
        let (flags, times) = self.run("sign", params, launch, count, &strings)?;
        let made = Zeroizing::new(self.stream.get(&b.out, 0..count * size)?);
        let one = |(i, bytes): (usize, &[u8])| {
            if flags[i] != 1 {
                return Err(Error::Exhausted);
            }
            let signature = Signature::from_bytes(params, bytes)?;
            let valid = release == Release::Unverified
                || keys[i].public_key(self.cpu).verify(self.cpu, messages[i].as_ref(), &signature).is_ok();
            emit(signature, valid)
        };
        Ok((made.chunks_exact(size).enumerate().map(one).collect(), times))
    }

    /// Whether each signature is valid for the message and the key of the same index.
    ///
    /// # Errors
    /// [`GpuError`]. Each item's result is its own: that of a signature of another set or round is
    /// [`Error::WrongSet`] or [`Error::WrongRound`].
    pub fn verify<M: AsRef<[u8]>>(
        &self,
        launch: ThreadLaunch,
        keys: &[PublicKey],
        messages: &[M],
        signatures: &[Signature],
    ) -> Result<(Vec<Result<(), Error>>, ThreadTimes), GpuError> {
        expect_count("messages", keys.len(), messages.len())?;
        expect_count("signatures", keys.len(), signatures.len())?;
        let Some(params) = one_set(keys.iter().map(PublicKey::params))? else {
            return Ok(Default::default());
        };
        let (messages, zeros) = (Message::whole(messages), vec![0; params.signature_bytes()]);
        let admissions = admit_each(|_| params, &messages, signatures);
        let (messages, signatures) = placed(&admissions, &zeros);
        let (count, size, key) = (keys.len(), params.signature_bytes(), params.public_key_bytes());
        let b = self.buffers(params, count, key, size)?;
        self.stream.put(&packed(keys.iter().map(PublicKey::as_bytes)), &b.keys, 0)?;
        self.stream.put(&packed(signatures), &b.out, 0)?;
        self.stream.put(&self.digests(params, count, messages), &b.digests, 0)?;
        let strings = Strings {
            keys: (&b.keys, key),
            digests: Some((&b.digests, params.digest_bytes())),
            randomizers: None,
            out: (&b.out, size),
            flags: &b.flags,
            cycles: &b.cycles,
        };
        let (flags, times) = self.run("verify", params, launch, count, &strings)?;
        let both = admissions.iter().zip(flags);
        Ok((both.map(|(admission, flag)| verdict(admission, flag == 1)).collect(), times))
    }

    fn digests<'a>(
        &self,
        params: &Params,
        count: usize,
        messages: impl Iterator<Item = Message<'a>>,
    ) -> Zeroizing<Vec<u8>> {
        let mut to = Zeroizing::new(vec![0; count * params.digest_bytes()]);
        digests(self.cpu, params, messages, &mut to);
        to
    }
}

/// The kernel of an operation.
fn name(what: &str, params: &Params, memory: ThreadMemory) -> String {
    let memory = match memory {
        ThreadMemory::Stack => "stack",
        ThreadMemory::Heap => "heap",
    };
    format!("thread_{what}_{memory}_{}", params.index())
}
