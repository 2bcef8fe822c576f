//! The stream of candidates that a seed starts.
#![forbid(unsafe_code)]

use alloc::vec::Vec;

use sha2::{Digest, Sha256};

/// Bytes at the sprout's end that are hashed for every value; whole blocks of SHA-256 before them are hashed once.
const COUNTER: usize = 8;
const BLOCK: usize = 64;

/// Numbers of `bits` bits from SHA-256 of a sprout. The sprout counts up before every hash, from candidate to candidate,
/// as one number with its highest byte first.
pub(super) struct Stream {
    sprout: Vec<u8>,
    /// Bytes of the sprout in `state`.
    taken: usize,
    state: Sha256,
    bytes: Vec<u8>,
    length: usize,
}

impl Stream {
    pub(super) fn new(seed: &[u8], bits: usize) -> Stream {
        let taken = seed.len().saturating_sub(COUNTER) / BLOCK * BLOCK;
        Stream {
            sprout: seed.to_vec(),
            taken,
            state: Sha256::new_with_prefix(&seed[..taken]),
            bytes: Vec::with_capacity(bits / 8 + 32),
            length: bits / 8,
        }
    }

    /// The next number's bytes, lowest first.
    pub(super) fn next(&mut self) -> &mut [u8] {
        self.bytes.clear();
        while self.bytes.len() < self.length {
            self.count();
            let mut hash = self.state.clone();
            hash.update(&self.sprout[self.taken..]);
            self.bytes.extend_from_slice(&hash.finalize());
        }
        self.bytes.truncate(self.length);
        self.bytes.reverse();
        &mut self.bytes
    }

    fn count(&mut self) {
        let mut at = self.sprout.len();
        while at > 0 {
            at -= 1;
            self.sprout[at] = self.sprout[at].wrapping_add(1);
            if self.sprout[at] != 0 {
                break;
            }
        }
        if at < self.taken {
            self.state = Sha256::new_with_prefix(&self.sprout[..self.taken]);
        }
    }
}

#[cfg(test)]
mod checks {
    use super::*;

    /// Counting carries over into the blocks hashed beforehand.
    #[test]
    fn carries_reach_the_whole_seed() {
        for length in [1usize, 8, 63, 64, 71, 72, 73, 200] {
            for zeros in [0, 1, length.saturating_sub(1), length] {
                // Ends in a run of 255s, so that the second or third count carries over all of it.
                let mut seed = vec![0x5au8; length];
                seed[length - zeros..].fill(0xff);
                if let Some(last) = seed.last_mut() {
                    *last = last.wrapping_sub(2);
                }
                let mut stream = Stream::new(&seed, 512);
                for i in 0..4 {
                    let mut expected = Vec::new();
                    for _ in 0..2 {
                        for byte in seed.iter_mut().rev() {
                            *byte = byte.wrapping_add(1);
                            if *byte != 0 {
                                break;
                            }
                        }
                        expected.extend_from_slice(&Sha256::digest(&seed));
                    }
                    expected.reverse();
                    assert!(stream.next() == expected, "{length} bytes, {zeros} of them 255, candidate {i}");
                }
            }
        }
    }
}
