//! Cutting one long message for threads.
#![forbid(unsafe_code)]

use lanework_cpu::Threads;

/// For smaller pieces, waking a thread costs more than it saves.
const LEAST: usize = 64 << 10;

/// Bytes of a piece for `len` bytes on these threads: a multiple of `granule`, at least [`LEAST`] bytes, and a few
/// pieces for each thread, so that one late thread does not delay the others.
pub(super) fn piece(len: usize, granule: usize, threads: Threads<'_>) -> usize {
    let even = len.div_ceil(4 * threads.count().max(1));
    even.max(LEAST).next_multiple_of(granule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_whole_granules_and_not_small() {
        for len in [0, 1, 1 << 10, 1 << 20, (1 << 26) + 5] {
            for granule in [8, 1024, 3000] {
                for threads in [1, 2, 7] {
                    let piece = piece(len, granule, Threads::Own(threads));
                    assert!(piece.is_multiple_of(granule) && piece >= LEAST);
                    assert!(len.div_ceil(piece) <= 4 * threads);
                }
            }
        }
    }
}
