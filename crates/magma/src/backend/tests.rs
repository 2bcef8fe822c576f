//! Every kernel of every backend that can run here against the specification, at every length up to several batches, in
//! place and not, with every lane different.

use inout::InOutBuf;
use lanework_cpu::memory::Block;
use lanework_cpu::{Cpu, Settings};

use super::{BACKENDS, Kernels, LANES};
use crate::internals::spec;
use crate::sbox::Sbox;
use crate::schedule::{ByteOrder, Counter, Schedule};

/// Reproducible pseudorandom numbers.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next() as u8).collect()
    }

    fn words(&mut self) -> [u32; 8] {
        core::array::from_fn(|_| self.next() as u32)
    }
}

/// Runs `test` on every backend that this machine has, and prints which.
fn each(test: impl Fn(&str, &Kernels)) {
    let settings = Settings::from_env().expect("the environment can be read");
    let cpu = Cpu::detect();
    for row in BACKENDS {
        match row.get(&cpu) {
            Ok(kernels) => {
                test(row.name(), kernels.kernels());
                println!("ran: {}", row.name());
            }
            Err(why) => {
                assert!(!settings.requires(row.name()), "{why}, but LANEWORK_REQUIRE asks for it");
                println!("skipped {}: {why}", row.name());
            }
        }
    }
}

/// Keys unlike random ones: carries through every byte, and none.
fn keys(numbers: &mut Numbers) -> Vec<[u32; 8]> {
    let mut keys = vec![[0; 8], [u32::MAX; 8], [0x00ff_00ff; 8], [0xff00_ff00; 8], [0x8000_0000; 8]];
    keys.extend((0..3).map(|_| numbers.words()));
    keys
}

fn expected(s: &Schedule, block: &[u8]) -> [u8; 8] {
    let number = s.order.number(block.try_into().expect("8 bytes"));
    s.order.block(spec::rounds(s.sbox.rows(), s.rounds.iter().copied(), number))
}

/// The tested lengths, in blocks: all small ones, and those around whole batches.
fn lengths(parallel: usize) -> Vec<usize> {
    if cfg!(miri) {
        return vec![0, 3, parallel + 1];
    }
    let mut lengths: Vec<usize> = (0..=40).collect();
    for batch in [64, 128, 192, 256, 384, 512, parallel, 2 * parallel] {
        lengths.extend([batch.saturating_sub(1), batch, batch + 1, batch + 17]);
    }
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

#[test]
fn blocks_are_the_specifications() {
    each(|name, kernels| {
        let mut numbers = Numbers(1);
        for (k, words) in keys(&mut numbers).iter().enumerate() {
            // One under an interpreter, which is some thousand times slower.
            if cfg!(miri) && k != 5 {
                continue;
            }
            for sbox in Sbox::ALL {
                for order in [ByteOrder::Big, ByteOrder::Little] {
                    for s in [Schedule::encrypt(words, sbox, order), Schedule::decrypt(words, sbox, order)] {
                        let all = lengths(kernels.parallel);
                        let some = [1, 7, 130, kernels.parallel + 3];
                        // All lengths once for each set; a few under every key.
                        let lengths = if k == 5 { &all[..] } else { &some[..] };
                        for &n in lengths {
                            let input = numbers.bytes(8 * n);
                            let mut out = vec![0xa5; 8 * n + 8];
                            let buffers = InOutBuf::new(&input, &mut out[..8 * n]).expect("one length");
                            kernels.blocks(&s, buffers);
                            for (i, block) in input.chunks(8).enumerate() {
                                let same = out[8 * i..8 * i + 8] == expected(&s, block);
                                assert!(same, "{name} {sbox:?} {order:?}: block {i} of {n}");
                            }
                            assert!(out[8 * n..] == [0xa5; 8], "{name}: wrote behind {n} blocks");
                            let mut in_place = input.clone();
                            kernels.blocks(&s, in_place.as_mut_slice().into());
                            assert!(in_place == out[..8 * n], "{name} {sbox:?}: {n} blocks in place");
                        }
                    }
                }
            }
        }
    });
}

#[test]
fn counters_count_and_are_cut() {
    each(|name, kernels| {
        let mut numbers = Numbers(2);
        for words in keys(&mut numbers).into_iter().skip(if cfg!(miri) { 7 } else { 0 }) {
            for order in [ByteOrder::Big, ByteOrder::Little] {
                let s = Schedule::encrypt(&words, Sbox::Z, order);
                // Both halves wrap within the message, each without touching the other.
                for counter in [
                    Counter::low(0x1234_5678_ffff_ffc0),
                    Counter::high(0xffff_ffc0_8765_4321),
                    Counter::low(0),
                ] {
                    let all =
                        [0, 1, 7, 8, 9, 63, 64, 65, 255, 1023, 1024, 1031, 8 * kernels.parallel + 5, 5000];
                    // Under an interpreter, some thousand times slower, only short lengths that are not whole blocks.
                    for &n in if cfg!(miri) { &all[4..6] } else { &all[..] } {
                        let input = numbers.bytes(n);
                        let mut out = vec![0xa5; n + 8];
                        kernels.counter(
                            &s,
                            counter,
                            InOutBuf::new(&input, &mut out[..n]).expect("one length"),
                        );
                        for i in 0..n {
                            let gamma = spec::rounds(
                                s.sbox.rows(),
                                s.rounds.iter().copied(),
                                counter.at((i / 8) as u32),
                            );
                            let same = out[i] == input[i] ^ order.block(gamma)[i % 8];
                            assert!(same, "{name} {order:?} {counter:?}: byte {i} of {n}");
                        }
                        assert!(out[n..] == [0xa5; 8], "{name}: wrote behind {n} bytes");
                        let mut in_place = input.clone();
                        kernels.counter(&s, counter, in_place.as_mut_slice().into());
                        assert!(in_place == out[..n], "{name}: {n} bytes in place");
                        let mut stream = vec![0xa5; n / 8 * 8 + 8];
                        kernels.keystream(&s, counter, &mut stream[..n / 8 * 8]);
                        for i in 0..n / 8 * 8 {
                            assert!(stream[i] == out[i] ^ input[i], "{name}: keystream byte {i} of {n}");
                        }
                        assert!(stream[n / 8 * 8..] == [0xa5; 8], "{name}: wrote behind the keystream");
                    }
                }
            }
        }
    });
}

#[test]
fn every_lane_has_its_own_key() {
    each(|name, kernels| {
        let mut numbers = Numbers(3);
        for sbox in Sbox::ALL {
            for order in [ByteOrder::Big, ByteOrder::Little] {
                let mut keys = vec![Block([0xa5; 64]); kernels.lane_keys_blocks];
                let mut words: Vec<[u32; 8]> = (0..LANES).map(|_| numbers.words()).collect();
                words[..5].copy_from_slice(&self::keys(&mut numbers)[..5]);
                for (lane, words) in words.iter().enumerate() {
                    kernels.set_lane(&mut keys, lane, words);
                }
                // A lane that gets another key does not change its neighbours.
                for lane in [0, 31, 64, 127] {
                    words[lane] = numbers.words();
                    kernels.set_lane(&mut keys, lane, &words[lane]);
                }
                for n in [0, 1, 2, 3, 4, 5, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 128] {
                    let before: [[u8; 8]; LANES] = core::array::from_fn(|_| numbers.next().to_le_bytes());
                    let mut data = before;
                    kernels.lanes(&keys, sbox, order, &mut data, n);
                    for lane in 0..n {
                        let s = Schedule::encrypt(&words[lane], sbox, order);
                        let same = data[lane] == expected(&s, &before[lane]);
                        assert!(same, "{name} {sbox:?} {order:?}: lane {lane} of {n}");
                    }
                }
            }
        }
    });
}

#[test]
fn products_add_up() {
    each(|name, kernels| {
        let mut numbers = Numbers(4);
        for n in (0..70).step_by(if cfg!(miri) { 23 } else { 1 }).chain([127, 128, 129, 500]) {
            let (h, x) = (numbers.bytes(8 * n), numbers.bytes(8 * n));
            let start = [numbers.next(), numbers.next()];
            let mut sum = start;
            kernels.products(&h, &x, &mut sum);
            let mut want = u128::from(start[1]) << 64 | u128::from(start[0]);
            for (h, x) in h.chunks(8).zip(x.chunks(8)) {
                let h = u64::from_be_bytes(h.try_into().expect("8 bytes"));
                let x = u64::from_be_bytes(x.try_into().expect("8 bytes"));
                want ^= (0..64).filter(|bit| x >> bit & 1 == 1).fold(0, |p, bit| p ^ u128::from(h) << bit);
            }
            assert!(sum == [want as u64, (want >> 64) as u64], "{name}: {n} products");
        }
    });
}
