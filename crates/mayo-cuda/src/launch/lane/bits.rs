//! Verification with expanded keys by products of bits: `bits.cuh` in launches.

use core::ops::Range;

use lanework_cuda::{Argument, Buffer, Error, Kernel, Module, args};
use lanework_mayo::Params;

use super::{Expanded, Lane};
use crate::launch::shape::{self, Bits};

/// The kernels of one set.
#[derive(Debug)]
pub(crate) struct BitKernels {
    pub(crate) lay: Kernel,
    pub(crate) each: Kernel,
    pub(crate) one: Kernel,
}

impl BitKernels {
    pub(crate) fn new(module: &Module, params: &Params) -> Result<BitKernels, Error> {
        let of = |name: &str| module.kernel(&format!("mayo_bits_{name}_{}", params.index()));
        Ok(BitKernels { lay: of("lay")?, each: of("each")?, one: of("one")? })
    }
}

/// Threads of a block that lays keys.
const LAY_THREADS: u32 = 128;

/// The one key that all of these name.
pub(super) fn only(keys: &[u32]) -> Option<usize> {
    let first = keys.first()?;
    keys.iter().all(|key| key == first).then_some(*first as usize)
}

impl Lane {
    /// Queues the laying of the keys `from` of `staged` to keys `at`.. of `bits`.
    pub(crate) fn lay(
        &self,
        staged: &Expanded,
        from: Range<usize>,
        bits: &Buffer<u32>,
        at: usize,
    ) -> Result<(), Error> {
        let (set, count) = (self.kernels.params, from.len());
        let key = Bits::of(set).key;
        let p = staged.p.at(from.start * staged.total * shape::words(set))?;
        let to = bits.at(at * key)?;
        if (at + count) * key > bits.len() {
            return Err(Error::Shape(format!("{count} keys from {at} on are beyond the room for bits")));
        }
        // Eight words of a key to a thread.
        let blocks = (count * key / 8).div_ceil(LAY_THREADS as usize);
        let arguments = args![count as u32, p, staged.total as u32, to];
        self.launch(&self.kernels.bits.lay, blocks, LAY_THREADS, 0, arguments)
    }

    /// The products of verification with keys that are laid as bits; with one key for the whole chunk (`one`), by the
    /// kernel in which several signatures share it.
    pub(super) fn verify_bits(
        &self,
        count: usize,
        bits: &Buffer<u32>,
        one: Option<usize>,
    ) -> Result<(), Error> {
        let shape = Bits::of(self.kernels.params);
        let count_of = count as u32;
        let (lambda, signatures, u): (Argument, Argument, Argument) =
            ((&self.lambda).into(), (&self.signatures).into(), (&self.u).into());
        match one {
            Some(key) => {
                let blocks = count.div_ceil(shape.many) * shape.parts;
                let arguments = args![count_of, bits.at(key * shape.key)?, lambda, signatures, u];
                self.launch(&self.kernels.bits.one, blocks, shape.threads, shape.shared_one, arguments)
            }
            None => {
                let arguments = args![count_of, &self.keys, bits, lambda, signatures, u];
                let blocks = count * shape.parts;
                self.launch(&self.kernels.bits.each, blocks, shape.threads, shape.shared_each, arguments)
            }
        }
    }
}

#[cfg(all(test, feature = "emulated"))]
mod tests {
    use std::sync::Arc;

    use lanework_cuda::{Device, Emulation};

    use super::super::{Job, Kernels};
    use super::*;
    use crate::launch::IMAGE;
    use crate::launch::fuse::Plan;
    use lanework_mayo::{Round, Set};

    /// u of both kernels for bits and of the one for masks, from the same matrices, lambda and signatures.
    fn three_ways(params: &'static Params, fill: impl Fn(usize) -> u32, scalar: u8) {
        let (device, _) = Device::emulated(Emulation::default());
        let kernels = Arc::new(Kernels::new(&device.module(&IMAGE).unwrap(), params).unwrap());
        let count = Bits::of(params).many + 1;
        let mut lane =
            Lane::new(&device, &kernels, Job::VerifyExpanded, count, 1, Plan::alone(&kernels)).unwrap();
        let (total, words) = (shape::public_vecs(params), shape::words(params));
        let filled = |len: usize, from: usize| -> Vec<u32> { (0..len).map(|i| fill(i + from)).collect() };
        let put = |values: &[u32], to: &Buffer<u32>| {
            let mut pinned = device.pinned::<u32>(values.len()).unwrap();
            pinned.write().unwrap().copy_from_slice(values);
            lane.stream.upload(&pinned, 0..values.len(), to, 0).unwrap();
            lane.stream.finish().unwrap();
        };
        let of = Expanded {
            total,
            p: device.buffer(total * words).unwrap(),
            hashes: device.buffer(1).unwrap(),
            seeds: device.buffer(1).unwrap(),
            bits: None,
        };
        put(&filled(total * words, 0), &of.p);
        if params.linear_term() {
            put(&filled(count * params.n() * words, 1 << 20), &lane.lambda);
        }
        put(&vec![0; count], &lane.keys);
        let bytes = count * params.signature_bytes();
        let scalars = lane.host_signatures.write().unwrap();
        scalars.iter_mut().enumerate().for_each(|(i, s)| {
            *s = if scalar == 0 { fill(i + (2 << 20)) as u8 } else { scalar * 17 };
        });
        lane.stream.upload(&lane.host_signatures, 0..bytes, &lane.signatures, 0).unwrap();
        let bits = device.buffer(Bits::of(params).key).unwrap();
        lane.lay(&of, 0..1, &bits, 0).unwrap();
        let all = count * params.pairs() * words;
        lane.verify_all(count, &of).unwrap();
        let expected = lane.stream.get(&lane.u, 0..all).unwrap();
        for one in [None, Some(0)] {
            put(&vec![0x5a5a_5a5a; all], &lane.u);
            lane.verify_bits(count, &bits, one).unwrap();
            let got = lane.stream.get(&lane.u, 0..all).unwrap();
            let wrong = got.iter().zip(&expected).filter(|(a, b)| a != b).count();
            assert_eq!(wrong, 0, "{} of scalar {scalar}, {one:?}: {wrong} of {all} words", params.name());
        }
    }

    #[test]
    fn any_matrices_give_what_masks_give() {
        let mixed = |i: usize| (i as u32).wrapping_mul(0x9e37_79b9).rotate_left(i as u32 % 31) ^ 0x2545_f491;
        Params::all().for_each(|params| three_ways(params, mixed, 0));
    }

    /// The largest counts, beside others in the same word: every bit of P is set, and all scalars are equal. Three of
    /// the scalars' matrices have a row of ones.
    #[test]
    fn the_largest_counts_spoil_no_others() {
        for params in Params::all() {
            three_ways(params, |_| !0, 15);
        }
        for (round, set) in [(Round::Two, Set::Mayo2), (Round::Three, Set::Mayo5)] {
            three_ways(Params::of(round, set), |_| !0, 7);
            three_ways(Params::of(round, set), |_| !0, 10);
        }
    }
}
