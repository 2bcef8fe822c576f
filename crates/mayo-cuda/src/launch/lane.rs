//! One stream with room for a chunk of operations of one set: memory, and the launches of each operation.

pub(super) mod bits;

use core::ops::Range;
use std::sync::Arc;

use lanework_cuda::{Argument, Buffer, Device, Error, Grid, Kernel, Pinned, Stream, args};
use lanework_mayo::internals::SEED_PK_BYTES;

use super::fuse::Plan;
use super::job::{Job, need};
use super::kernels::Kernels;
use super::shape::{self, Products};

/// Expanded keys in a device's memory: P1, P2 and P3, and for signers L after them, with seeds and O.
#[derive(Debug)]
pub(crate) struct Expanded {
    pub(crate) total: usize,
    pub(crate) p: Buffer<u32>,
    pub(crate) hashes: Buffer<u8>,
    pub(crate) seeds: Buffer<u8>,
    /// Public keys laid for products of bits, and nothing in `p`.
    pub(crate) bits: Option<Buffer<u32>>,
}

/// A stream and its memory.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(super) kernels: Arc<Kernels>,
    pub(super) plan: Plan,
    pub(crate) capacity: usize,
    /// Operations whose matrices fit at the same time.
    slots: usize,
    pub(super) multiprocessors: u32,
    stream: Stream,
    seeds: Buffer<u8>,
    pub(super) hashes: Buffer<u8>,
    pub(super) schedules: Buffer<u32>,
    pub(super) p: Buffer<u32>,
    pub(super) public_keys: Buffer<u8>,
    digests: Buffer<u8>,
    randomizers: Buffer<u8>,
    salts: Buffer<u8>,
    targets: Buffer<u8>,
    pub(super) lambda: Buffer<u32>,
    pub(super) drawn: Buffer<u8>,
    pub(super) u: Buffer<u32>,
    pub(super) m: Buffer<u32>,
    pub(super) signatures: Buffer<u8>,
    flags: Buffer<u8>,
    pub(super) list: Buffer<u32>,
    keys: Buffer<u32>,
    pub(crate) host_seeds: Pinned<u8>,
    pub(crate) host_public_keys: Pinned<u8>,
    pub(crate) host_digests: Pinned<u8>,
    pub(crate) host_randomizers: Pinned<u8>,
    pub(crate) host_signatures: Pinned<u8>,
    pub(crate) host_flags: Pinned<u8>,
    host_list: Pinned<u32>,
    pub(crate) host_keys: Pinned<u32>,
}

impl Lane {
    /// A lane for chunks of up to `capacity` operations, of which `slots` at a time have matrices; `plan` says which
    /// operations need none.
    pub(crate) fn new(
        device: &Device,
        kernels: &Arc<Kernels>,
        job: Job,
        capacity: usize,
        slots: usize,
        plan: Plan,
    ) -> Result<Lane, Error> {
        let slots = slots.clamp(1, capacity);
        let p = kernels.params;
        let n = need(p, job);
        let matrices = if plan.covers(job) { 0 } else { n.p };
        let words = shape::words(p);
        let of = |each: usize| (each * capacity).max(1);
        let when = |used: bool, each: usize| if used { of(each) } else { 1 };
        Ok(Lane {
            kernels: Arc::clone(kernels),
            plan,
            capacity,
            slots,
            multiprocessors: device.card().multiprocessors.max(1),
            stream: device.stream()?,
            seeds: device.secret(of(n.seeds))?,
            hashes: device.secret(of(n.hashes))?,
            schedules: device.buffer(of(n.schedules))?,
            p: device.buffer((matrices * slots).max(1))?,
            public_keys: device.buffer(of(n.public_keys))?,
            digests: device.secret(when(n.judged, p.digest_bytes()))?,
            randomizers: device.secret(when(n.signs, p.salt_bytes()))?,
            salts: device.buffer(when(n.signs, shape::SALT))?,
            targets: device.buffer(when(n.judged, shape::target(p)))?,
            lambda: device.buffer(when(n.judged && p.linear_term(), p.n() * words))?,
            drawn: device.secret(when(n.signs, shape::drawn(p)))?,
            u: device.secret(when(n.judged, p.pairs() * words))?,
            m: device.secret(when(n.signs, p.k() * p.o() * words))?,
            signatures: device.secret(when(n.judged, p.signature_bytes()))?,
            flags: device.buffer(when(n.judged, 1))?,
            list: device.buffer(when(n.signs, 1))?,
            keys: device.buffer(when(n.judged, 1))?,
            host_seeds: device.pinned(of(n.seeds))?,
            host_public_keys: device.pinned(of(n.public_keys))?,
            host_digests: device.pinned(when(n.judged, p.digest_bytes()))?,
            host_randomizers: device.pinned(when(n.signs, p.salt_bytes()))?,
            host_signatures: device.pinned(when(n.judged, p.signature_bytes()))?,
            host_flags: device.pinned(when(n.judged, 1))?,
            host_list: device.pinned(when(n.signs, 1))?,
            host_keys: device.pinned(when(n.judged, 1))?,
        })
    }

    pub(super) fn launch(
        &self,
        kernel: &Kernel,
        blocks: usize,
        threads: u32,
        shared: usize,
        arguments: &[Argument],
    ) -> Result<(), Error> {
        let shape = |what: &str| Error::Shape(format!("{what} of {} are too many", kernel.name()));
        let blocks = u32::try_from(blocks).map_err(|_| shape("the blocks"))?;
        let shared = u32::try_from(shared).map_err(|_| shape("the shared bytes"))?;
        // SAFETY: the callers below pass what `mayo.cu` declares, and buffers of this device (`can_reach`) with room for `capacity`
        // operations, of which they launch at most `capacity`; a test compares the sizes of `shape` with the kernels'.
        unsafe { self.stream.launch(kernel, Grid { blocks, threads, shared }, arguments) }
    }

    pub(super) fn hash(&self, kernel: &Kernel, count: usize, arguments: &[Argument]) -> Result<(), Error> {
        let blocks = count.div_ceil(shape::HASH_THREADS as usize);
        self.launch(kernel, blocks, shape::HASH_THREADS, 0, arguments)
    }

    /// The parts of `count` operations that have matrices at the same time, one part after the other.
    pub(super) fn parts(&self, count: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let slots = self.slots;
        (0..count).step_by(slots).map(move |start| start..count.min(start + slots))
    }

    /// `vectors` m-vectors of key stream for each of `count` keys, `stride` bytes apart; with a `list`, for the keys
    /// that it names.
    pub(super) fn expand(
        &self,
        count: usize,
        list: Argument,
        (keys, nonces, stride): (Argument, Argument, usize),
        vectors: usize,
        total: usize,
        out: Argument,
    ) -> Result<(), Error> {
        let (k, (threads, each)) = (&self.kernels, self.plan.expand);
        self.schedules_of(count, list, (keys, nonces, stride))?;
        // As many blocks as run at once, or one to a multiprocessor that it shares with products. Each warp processes
        // tile after tile.
        let tiles = count * vectors.div_ceil(shape::expand_tile(k.params));
        let blocks = tiles.div_ceil(threads as usize / 32).min((self.multiprocessors * each) as usize);
        let arguments = args![count as u32, &self.schedules, vectors as u32, total as u32, out];
        self.launch(&k.expand, blocks, threads, shape::EXPAND_SHARED, arguments)
    }

    /// Schedules of `count` keys with their nonces, `stride` bytes apart; with a `list`, of the keys that it names.
    pub(super) fn schedules_of(
        &self,
        count: usize,
        list: Argument,
        (keys, nonces, stride): (Argument, Argument, usize),
    ) -> Result<(), Error> {
        let arguments = args![count as u32, list, keys, nonces, stride as u32, &self.schedules];
        self.hash(&self.kernels.schedules, count, arguments)
    }

    fn products(
        &self,
        kernel: &Kernel,
        what: Products,
        count: usize,
        arguments: &[Argument],
    ) -> Result<(), Error> {
        let p = self.kernels.params;
        let blocks = count * (shape::words(p) / shape::slice_words(p));
        let (threads, shared) = (shape::product_threads(p, what), shape::products_shared(p, what));
        self.launch(kernel, blocks, threads, shared, arguments)
    }

    /// Hashes of seeds on the device.
    fn open_seeds(&self, count: usize, hashes: Argument, seeds: Argument) -> Result<(), Error> {
        self.hash(&self.kernels.seed, count, args![count as u32, seeds, hashes])
    }

    /// P3 of public keys after P1 and P2, in buffers of `total` vectors.
    fn place(&self, count: usize, public_keys: Argument, total: usize, p: Argument) -> Result<(), Error> {
        let set = self.kernels.params;
        let values = count * set.p3_vecs() * shape::words(set);
        let blocks = values.div_ceil(shape::LOWER_THREADS as usize);
        let arguments = args![count as u32, public_keys, total as u32, p];
        self.launch(&self.kernels.place, blocks, shape::LOWER_THREADS, 0, arguments)
    }

    /// Queues key generation for the `count` seeds in `host_seeds`; the keys come to `host_public_keys`.
    pub(crate) fn keygen(&mut self, count: usize) -> Result<(), Error> {
        let set = self.kernels.params;
        self.stream.upload(&self.host_seeds, 0..count * set.salt_bytes(), &self.seeds, 0)?;
        self.open_seeds(count, (&self.hashes).into(), (&self.seeds).into())?;
        self.all_public_keys(count)?;
        let bytes = count * set.public_key_bytes();
        self.stream.download(&self.public_keys, 0..bytes, &mut self.host_public_keys, 0)
    }

    /// P1 and P2 of one part, in buffers of `total` vectors, and its public keys. The hashes are ready.
    pub(super) fn public_keys_of(&self, part: Range<usize>, total: usize) -> Result<(), Error> {
        let (set, count) = (self.kernels.params, part.len());
        let hashes = self.hashes.at(part.start * shape::seed(set))?;
        let from = (hashes, Argument::null(), shape::seed(set));
        self.expand(count, Argument::null(), from, shape::p12(set), total, (&self.p).into())?;
        let public_keys = self.public_keys.at(part.start * set.public_key_bytes())?;
        let arguments = args![&self.p, total as u32, hashes, public_keys];
        self.products(&self.kernels.keygen, Products::Keygen, count, arguments)
    }

    /// Targets and lambda of `count` salts, `stride` bytes apart.
    fn targets(&self, count: usize, salts: Argument, stride: usize) -> Result<(), Error> {
        let set = self.kernels.params;
        let arguments = args![count as u32, &self.digests, salts, stride as u32, &self.targets];
        self.hash(&self.kernels.target, count, arguments)?;
        if !set.linear_term() {
            return Ok(());
        }
        let (key, nonce) = (self.targets.at(set.m_bytes())?, self.targets.at(set.m_bytes() + SEED_PK_BYTES)?);
        let from = (key, nonce, shape::target(set));
        self.expand(count, Argument::null(), from, set.n(), set.n(), (&self.lambda).into())
    }

    /// Refuses keys that were expanded on another device: this one's kernels have no such address.
    fn can_reach(&self, expanded: Option<&Expanded>) -> Result<(), Error> {
        match expanded {
            Some(of) if !of.p.is_beside(&self.digests) => {
                Err(Error::Shape("the keys were expanded on another device".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Queues signing up to the first attempt's flags. Seeds, digests and randomizers are in pinned memory, with
    /// expanded keys also their numbers for each message.
    pub(crate) fn sign(&mut self, count: usize, expanded: Option<&Expanded>) -> Result<(), Error> {
        self.can_reach(expanded)?;
        let set = self.kernels.params;
        let stream = &self.stream;
        stream.upload(&self.host_digests, 0..count * set.digest_bytes(), &self.digests, 0)?;
        stream.upload(&self.host_randomizers, 0..count * set.salt_bytes(), &self.randomizers, 0)?;
        match expanded {
            None => {
                stream.upload(&self.host_seeds, 0..count * set.salt_bytes(), &self.seeds, 0)?;
                self.open_seeds(count, (&self.hashes).into(), (&self.seeds).into())?;
            }
            Some(_) => stream.upload(&self.host_keys, 0..count, &self.keys, 0)?,
        }
        let (seeds, keys) = self.seeds_and_keys(expanded);
        let arguments = args![count as u32, &self.digests, &self.randomizers, seeds, keys, &self.salts];
        self.hash(&self.kernels.salt, count, arguments)?;
        self.targets(count, (&self.salts).into(), shape::SALT)?;
        let all: Vec<usize> = (0..count).collect();
        self.attempt(&all, 0, expanded)?;
        self.stream.download(&self.flags, 0..count, &mut self.host_flags, 0)
    }

    fn seeds_and_keys(&self, expanded: Option<&Expanded>) -> (Argument, Argument) {
        match expanded {
            None => ((&self.seeds).into(), Argument::null()),
            Some(of) => ((&of.seeds).into(), (&self.keys).into()),
        }
    }

    /// Queues one attempt at the signatures that `list` names.
    fn attempt(&mut self, list: &[usize], attempt: u32, expanded: Option<&Expanded>) -> Result<(), Error> {
        let set = self.kernels.params;
        let names = self.host_list.write()?;
        names.iter_mut().zip(list).for_each(|(to, &from)| *to = from as u32);
        self.stream.upload(&self.host_list, 0..list.len(), &self.list, 0)?;
        let (count, (seeds, keys)) = (list.len(), self.seeds_and_keys(expanded));
        let arguments =
            args![count as u32, &self.list, attempt, &self.digests, &self.salts, seeds, keys, &self.drawn];
        let k = &self.kernels;
        self.hash(&k.draw, count, arguments)?;
        match expanded {
            None => self.sign_compact(count)?,
            Some(of) => {
                let (p, total, hashes) = (&of.p, of.total as u32, &of.hashes);
                let arguments =
                    args![&self.list, keys, p, total, &self.lambda, hashes, &self.drawn, &self.u, &self.m];
                self.products(&k.sign_expanded, Products::SignExpanded, count, arguments)?;
            }
        }
        let arguments = args![
            &self.list,
            keys,
            &self.u,
            &self.m,
            &self.targets,
            expanded.map_or(&self.hashes, |of| &of.hashes),
            &self.drawn,
            &self.salts,
            &self.signatures,
            &self.flags
        ];
        self.launch(&k.solve, count, 32, shape::solve_shared(set), arguments)
    }

    /// Matrices and products of a part of the list, with compact keys: the slot of a signature is its place in the
    /// part.
    pub(super) fn sign_part(&self, part: Range<usize>) -> Result<(), Error> {
        let (set, count, list) = (self.kernels.params, part.len(), self.list.at(part.start)?);
        let (total, none) = (shape::p12(set), Argument::null());
        let from = ((&self.hashes).into(), none, shape::seed(set));
        self.expand(count, list, from, shape::p12(set), total, (&self.p).into())?;
        let (p, total) = (&self.p, total as u32);
        let arguments =
            args![list, none, p, total, &self.lambda, &self.hashes, &self.drawn, &self.u, &self.m];
        self.products(&self.kernels.sign, Products::Sign, count, arguments)
    }

    /// Waits for the first attempts, makes further ones where they failed, up to the 256 that the specification allows,
    /// and with `verify` verifies the signatures on matrices expanded anew. Returns for every signature whether it was
    /// made and, with `verify`, is valid, and the attempts after the first; the signatures are in `host_signatures`.
    pub(crate) fn finish_signing(
        &mut self,
        count: usize,
        expanded: Option<&Expanded>,
        verify: bool,
    ) -> Result<Signed, Error> {
        let set = self.kernels.params;
        let mut made: Vec<bool> = self.host_flags.read()?[..count].iter().map(|&f| f == 1).collect();
        let mut restarts = 0;
        for attempt in 1..=255 {
            let left: Vec<usize> = (0..count).filter(|&i| !made[i]).collect();
            if left.is_empty() {
                break;
            }
            restarts += left.len();
            self.attempt(&left, attempt, expanded)?;
            self.stream.download(&self.flags, 0..count, &mut self.host_flags, 0)?;
            made = self.host_flags.read()?[..count].iter().map(|&f| f == 1).collect();
        }
        let mut valid = made.clone();
        if verify {
            match expanded {
                None => {
                    // Expanded anew: a fault in P that signing used would pass a verification on the same P.
                    self.open_seeds(count, (&self.hashes).into(), (&self.seeds).into())?;
                    self.verify_anew(count)?;
                }
                Some(of) => self.verify_all(count, of)?,
            }
            self.judge(count)?;
            self.stream.download(&self.flags, 0..count, &mut self.host_flags, 0)?;
        }
        let bytes = count * set.signature_bytes();
        self.stream.download(&self.signatures, 0..bytes, &mut self.host_signatures, 0)?;
        if verify {
            let flags = &self.host_flags.read()?[..count];
            valid.iter_mut().zip(flags).for_each(|(v, &f)| *v &= f == 1);
        }
        self.host_signatures.read()?;
        Ok(Signed { made, valid, restarts })
    }

    /// P3 after P1 and P2 of a part, and its products of verification; lambda is ready.
    pub(super) fn verify_part(&self, part: Range<usize>) -> Result<(), Error> {
        let (set, count, total) = (self.kernels.params, part.len(), shape::public_vecs(self.kernels.params));
        let public_keys = self.public_keys.at(part.start * set.public_key_bytes())?;
        self.place(count, public_keys, total, (&self.p).into())?;
        let lambda = if set.linear_term() { part.start * set.n() * shape::words(set) } else { 0 };
        let signatures = self.signatures.at(part.start * set.signature_bytes())?;
        let (lambda, u) = (self.lambda.at(lambda)?, self.u.at(part.start * set.pairs() * shape::words(set))?);
        let arguments = args![Argument::null(), &self.p, total as u32, lambda, signatures, u];
        self.products(&self.kernels.verify, Products::Verify, count, arguments)
    }

    /// The products of verification with expanded keys.
    fn verify_all(&self, count: usize, of: &Expanded) -> Result<(), Error> {
        let arguments = args![&self.keys, &of.p, of.total as u32, &self.lambda, &self.signatures, &self.u];
        self.products(&self.kernels.verify, Products::Verify, count, arguments)
    }

    /// Queues the verdicts into `flags`; targets and the products of verification are ready.
    fn judge(&self, count: usize) -> Result<(), Error> {
        let blocks = (count * 32).div_ceil(shape::HASH_THREADS as usize);
        let arguments = args![count as u32, &self.u, &self.targets, &self.flags];
        self.launch(&self.kernels.check, blocks, shape::HASH_THREADS, 0, arguments)
    }

    /// Queues the verification of the signatures in `host_signatures`; verdicts come to `host_flags`, 1 for valid.
    pub(crate) fn verify(&mut self, count: usize, expanded: Option<&Expanded>) -> Result<(), Error> {
        self.can_reach(expanded)?;
        let set = self.kernels.params;
        let stream = &self.stream;
        stream.upload(&self.host_digests, 0..count * set.digest_bytes(), &self.digests, 0)?;
        stream.upload(&self.host_signatures, 0..count * set.signature_bytes(), &self.signatures, 0)?;
        let salts = self.signatures.at(set.signature_bytes() - set.salt_bytes())?;
        match expanded {
            None => {
                let bytes = count * set.public_key_bytes();
                stream.upload(&self.host_public_keys, 0..bytes, &self.public_keys, 0)?;
                self.targets(count, salts, set.signature_bytes())?;
                self.verify_compact(count)?;
            }
            Some(of) => {
                // Read before the copy starts, so nothing waits for it.
                let one = bits::only(&self.host_keys.read()?[..count]);
                stream.upload(&self.host_keys, 0..count, &self.keys, 0)?;
                self.targets(count, salts, set.signature_bytes())?;
                match &of.bits {
                    Some(bits) => self.verify_bits(count, bits, one)?,
                    None => self.verify_all(count, of)?,
                }
            }
        }
        self.judge(count)?;
        self.stream.download(&self.flags, 0..count, &mut self.host_flags, 0)
    }

    /// Expands the `count` seeds in `host_seeds` to keys `at`.. of `into`. A lane for [`Job::Keygen`].
    pub(crate) fn expand_secret(&mut self, count: usize, into: &Expanded, at: usize) -> Result<(), Error> {
        let set = self.kernels.params;
        let (seeds, hashes) = (into.seeds.at(at * set.salt_bytes())?, into.hashes.at(at * shape::seed(set))?);
        let p = into.p.at(at * into.total * shape::words(set))?;
        let total = into.total as u32;
        self.stream.upload(
            &self.host_seeds,
            0..count * set.salt_bytes(),
            &into.seeds,
            at * set.salt_bytes(),
        )?;
        self.open_seeds(count, hashes, seeds)?;
        let from = (hashes, Argument::null(), shape::seed(set));
        self.expand(count, Argument::null(), from, shape::p12(set), into.total, p)?;
        let k = &self.kernels;
        self.products(&k.keygen, Products::Keygen, count, args![p, total, hashes, &self.public_keys])?;
        self.place(count, (&self.public_keys).into(), into.total, p)?;
        let blocks = count * (shape::words(set) / shape::slice_words(set));
        let (threads, shared) = (shape::LOWER_THREADS, shape::lower_shared(set));
        self.launch(&k.lower, blocks, threads, shared, args![p, total, hashes])?;
        let bytes = count * set.public_key_bytes();
        self.stream.download(&self.public_keys, 0..bytes, &mut self.host_public_keys, 0)
    }

    /// Expands the `count` keys in `host_public_keys` to keys `at`.. of `into`.
    pub(crate) fn expand_public(&mut self, count: usize, into: &Expanded, at: usize) -> Result<(), Error> {
        let set = self.kernels.params;
        let p = into.p.at(at * into.total * shape::words(set))?;
        let bytes = count * set.public_key_bytes();
        self.stream.upload(&self.host_public_keys, 0..bytes, &self.public_keys, 0)?;
        let from = ((&self.public_keys).into(), Argument::null(), set.public_key_bytes());
        self.expand(count, Argument::null(), from, shape::p12(set), into.total, p)?;
        self.place(count, (&self.public_keys).into(), into.total, p)
    }

    /// Waits for everything.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        self.stream.finish()
    }

    /// The device's secrets, in bytes and in words. Digests are of messages that may be secret; targets follow from a signature
    /// and its public key. A signature that does not verify may reveal the key.
    fn secrets(&self) -> ([&Buffer<u8>; 6], [&Buffer<u32>; 2]) {
        let bytes =
            [&self.seeds, &self.hashes, &self.digests, &self.randomizers, &self.drawn, &self.signatures];
        (bytes, [&self.u, &self.m])
    }

    /// Waits for everything and overwrites what is secret, on the device and in pinned memory: another batch may follow
    /// at any time, or none.
    pub(crate) fn clear(&mut self) -> Result<(), Error> {
        let (bytes, words) = self.secrets();
        for buffer in bytes.into_iter().filter(|buffer| buffer.is_secret()) {
            self.stream.zero(buffer, 0..buffer.len())?;
        }
        for buffer in words.into_iter().filter(|buffer| buffer.is_secret()) {
            self.stream.zero(buffer, 0..buffer.len())?;
        }
        self.host_seeds.wipe()?;
        self.host_randomizers.wipe()?;
        self.host_signatures.wipe()?;
        self.host_digests.wipe()?;
        self.finish()
    }

    /// Whether everything secret is overwritten.
    #[cfg(all(test, feature = "emulated"))]
    pub(crate) fn is_clear(&mut self) -> bool {
        let on_device = {
            let (bytes, words) = self.secrets();
            let mut bytes = bytes.into_iter().flat_map(|b| self.stream.get(b, 0..b.len()).unwrap());
            let mut words = words.into_iter().flat_map(|b| self.stream.get(b, 0..b.len()).unwrap());
            bytes.all(|b| b == 0) && words.all(|w| w == 0)
        };
        let host = [
            self.host_seeds.read().unwrap(),
            self.host_randomizers.read().unwrap(),
            self.host_signatures.read().unwrap(),
            self.host_digests.read().unwrap(),
        ];
        on_device && host.concat().iter().all(|&b| b == 0)
    }
}

/// The result of signing a chunk.
#[derive(Debug)]
pub(crate) struct Signed {
    /// Whether each signature was made; otherwise all attempts failed.
    pub(crate) made: Vec<bool>,
    /// Whether each was made and, with `verify`, is valid.
    pub(crate) valid: Vec<bool>,
    /// Attempts after the first.
    pub(crate) restarts: usize,
}
