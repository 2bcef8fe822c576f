//! The number of operations of a chunk that have their matrices in device memory at the same time.
//!
//! With a compact key every operation has its own matrices, 0.1 to 0.8 MB, that one kernel writes and the next one
//! reads once. All matrices of a chunk pass through device memory twice; those of a few operations at a time, which
//! reuse places, stay in the second-level cache. The streams' places together are the ring.
#![forbid(unsafe_code)]

use lanework_cuda::Card;

/// The operations that expand their matrices before the products read them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ring {
    /// As many as half of the device's second-level cache holds, over all streams, and at least a block for every
    /// multiprocessor.
    #[default]
    Cache,
    /// The whole chunk: one launch of each kernel, and every matrix goes through the device's memory.
    Whole,
    /// This many on each stream, at least one.
    Operations(usize),
}

impl Ring {
    /// Operations on one of `streams` whose matrices take `bytes` each and whose products take `blocks` blocks each.
    pub(super) fn slots(self, card: &Card, streams: usize, bytes: usize, blocks: usize) -> usize {
        match self {
            Ring::Whole => usize::MAX,
            Ring::Operations(n) => n.max(1),
            // A device that does not report its cache counts as without one.
            Ring::Cache if card.l2 == 0 || bytes == 0 => usize::MAX,
            Ring::Cache => {
                let streams = streams.max(1);
                // Half: tables, hashes and the products' results use the other half.
                let held = card.l2 as usize / 2 / streams / bytes;
                held.max((card.multiprocessors as usize).div_ceil(blocks.max(1) * streams)).max(1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::job::{Job, matrix_bytes};
    use crate::launch::shape::{slice_words, words};
    use lanework_mayo::{Params, Round, Set};

    fn card(l2: u32, multiprocessors: u32) -> Card {
        Card {
            ordinal: 0,
            name: "a device".to_owned(),
            capability: (9, 0),
            multiprocessors,
            memory: 1 << 36,
            shared_per_block: 227 << 10,
            l2,
            clock_khz: 0,
            place: (0, 0, 0),
            driver: (13, 0),
            emulated: false,
        }
    }

    #[test]
    fn the_ring_stays_in_the_cache_and_fills_the_device() {
        // An H100's numbers: 50 MB and 132 multiprocessors.
        let h100 = card(50 << 20, 132);
        for params in Params::all() {
            let (bytes, blocks) = (matrix_bytes(params, Job::Sign), words(params) / slice_words(params));
            let slots = Ring::Cache.slots(&h100, 3, bytes, blocks);
            assert!(3 * slots * bytes < 40 << 20, "{}: {slots} of {bytes}", params.name());
            assert!(3 * slots * blocks >= 132, "{}: {slots}", params.name());
        }
        let mayo1 = matrix_bytes(Params::of(Round::Three, Set::Mayo1), Job::Sign);
        assert_eq!(Ring::Cache.slots(&h100, 3, mayo1, 2), (25 << 20) / 3 / mayo1);
    }

    #[test]
    fn what_is_not_known_or_not_wanted_is_no_limit() {
        let unknown = card(0, 132);
        assert_eq!(Ring::Cache.slots(&unknown, 3, 1000, 2), usize::MAX);
        assert_eq!(Ring::Cache.slots(&card(1 << 20, 8), 1, 0, 2), usize::MAX);
        assert_eq!(Ring::Whole.slots(&card(1 << 20, 8), 1, 1000, 2), usize::MAX);
        assert_eq!(Ring::Operations(0).slots(&unknown, 1, 1000, 2), 1);
        assert_eq!(Ring::Operations(7).slots(&unknown, 9, 1000, 2), 7);
        // A cache too small for one operation: still a block for each multiprocessor.
        assert_eq!(Ring::Cache.slots(&card(1000, 10), 1, 1_000_000, 3), 4);
    }
}
