//! The kernels against the cipher's specification.
#![forbid(unsafe_code)]

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use lanework_cpu::memory::Block;

use super::{Depth, Numbers, Row};
use crate::backend::Engine;
use crate::backend::LANES;
use crate::internals::spec;
use crate::sbox::{Rows, Sbox};
use crate::schedule::{ByteOrder, Counter, Schedule};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

/// Keys whose words are at the ends of their range, where carries fail first, and random ones.
fn words(numbers: &mut Numbers, any: usize) -> Vec<[u32; 8]> {
    let mut words = vec![[0; 8], [u32::MAX; 8], [0x8000_0000; 8]];
    words.extend((0..any).map(|_| core::array::from_fn(|_| numbers.next() as u32)));
    words
}

/// One block under a schedule, by the specification with these substitutions.
fn expected(rows: &Rows, s: &Schedule, block: &[u8]) -> [u8; 8] {
    let number = s.order.number(block.try_into().unwrap_or_default());
    s.order.block(spec::rounds(rows, s.rounds.iter().copied(), number))
}

/// Encryption and decryption of blocks that all differ, with every S-box set in both byte orders.
#[must_use]
pub fn blocks(engine: Engine, depth: Depth) -> Row {
    blocks_against(engine, depth, Sbox::rows)
}

/// The same against other substitutions, which must be detected.
pub(super) fn blocks_against<'r>(engine: Engine, depth: Depth, rows: impl Fn(Sbox) -> &'r Rows) -> Row {
    let mut row = Row::new("blocks, with every S-box set", engine.name());
    let mut numbers = Numbers(1);
    let parallel = engine.parallel();
    let some = [1, 2, 5, 9, 17, 40];
    let counts: Vec<usize> = match depth {
        Depth::Quick => [&some[..], &[parallel + 3]].concat(),
        Depth::Full => (0..70).chain([parallel - 1, parallel, parallel + 1, 2 * parallel + 37]).collect(),
    };
    let keys = words(&mut numbers, if depth == Depth::Full { 6 } else { 1 });
    for sbox in Sbox::ALL {
        for order in ORDERS {
            for (k, words) in keys.iter().enumerate() {
                let ways = [Schedule::encrypt(words, sbox, order), Schedule::decrypt(words, sbox, order)];
                for (s, way) in ways.iter().zip(["encrypted", "decrypted"]) {
                    for &n in &counts {
                        let input = numbers.bytes(8 * n);
                        let mut output = input.clone();
                        engine.blocks(s, output.as_mut_slice().into());
                        let wrong = input
                            .chunks(8)
                            .zip(output.chunks(8))
                            .position(|(x, y)| expected(rows(sbox), s, x) != y);
                        row.case(wrong.is_none(), || {
                            format!(
                                "block {wrong:?} of {n} {way} under key {k}, set {}, {order:?}",
                                sbox.name()
                            )
                        });
                    }
                }
            }
        }
    }
    row
}

/// Counters in either half, cut anywhere; they wrap without touching the other half.
#[must_use]
pub fn counters(engine: Engine, depth: Depth) -> Row {
    let mut row = Row::new("counters", engine.name());
    let mut numbers = Numbers(2);
    let bulk = 8 * engine.parallel();
    let lengths: &[usize] = match depth {
        Depth::Quick => &[1, 31, 1024, bulk + 5],
        Depth::Full => {
            &[0, 1, 7, 8, 9, 63, 65, 255, 1023, 1024, 1031, bulk - 3, bulk, bulk + 5, 3 * bulk + 77]
        }
    };
    for words in words(&mut numbers, 2) {
        for order in ORDERS {
            let s = Schedule::encrypt(&words, Sbox::Z, order);
            for counter in [Counter::low(0x0123_4567_ffff_ffc0), Counter::high(0xffff_ffc0_89ab_cdef)] {
                for &n in lengths {
                    let input = numbers.bytes(n);
                    let mut output = input.clone();
                    engine.counter(&s, counter, output.as_mut_slice().into());
                    let right = |(i, (x, y)): (usize, (&[u8], &[u8]))| {
                        let gamma = expected(Sbox::Z.rows(), &s, &order.block(counter.at(i as u32)));
                        x.iter().zip(gamma).map(|(x, g)| x ^ g).eq(y.iter().copied())
                    };
                    let same = input.chunks(8).zip(output.chunks(8)).enumerate().all(right);
                    row.case(same, || format!("{n} bytes from {counter:?}, {order:?}"));
                    let mut gamma = vec![0; n / 8 * 8];
                    engine.keystream(&s, counter, &mut gamma);
                    let same = gamma.iter().zip(&input).zip(&output).all(|((g, x), y)| x ^ g == *y);
                    row.case(same, || format!("{} bytes of keystream from {counter:?}", gamma.len()));
                }
            }
        }
    }
    row
}

/// Every lane with its own key.
#[must_use]
pub fn lanes(engine: Engine, depth: Depth) -> Row {
    let mut row = Row::new("a key in every lane", engine.name());
    let mut numbers = Numbers(3);
    let kernels = engine.kernels();
    let sets: &[Sbox] = if depth == Depth::Full { &Sbox::ALL } else { &[Sbox::Z, Sbox::CryptoProA] };
    for &sbox in sets {
        for order in ORDERS {
            let keys: Vec<[u32; 8]> =
                (0..LANES).map(|_| core::array::from_fn(|_| numbers.next() as u32)).collect();
            let mut held = vec![Block::ZERO; kernels.lane_keys_blocks];
            keys.iter().enumerate().for_each(|(lane, key)| kernels.set_lane(&mut held, lane, key));
            for n in [1, 15, 16, 33, 64, 100, LANES] {
                let input: [[u8; 8]; LANES] = core::array::from_fn(|_| numbers.array());
                let mut output = input;
                kernels.lanes(&held, sbox, order, &mut output, n);
                let wrong = (0..n).find(|&i| {
                    let s = Schedule::encrypt(&keys[i], sbox, order);
                    expected(sbox.rows(), &s, &input[i]) != output[i]
                });
                row.case(wrong.is_none(), || {
                    format!("lane {wrong:?} of {n}, set {}, {order:?}", sbox.name())
                });
            }
        }
    }
    row
}

/// Sums of products of polynomials, bit by bit.
#[must_use]
pub fn products(engine: Engine, depth: Depth) -> Row {
    let mut row = Row::new("products of polynomials", engine.name());
    let mut numbers = Numbers(4);
    let counts: &[usize] =
        if depth == Depth::Full { &[0, 1, 2, 3, 7, 8, 15, 16, 31, 64, 200, 513] } else { &[1, 3, 16, 129] };
    for &n in counts {
        let (h, x) = (numbers.bytes(8 * n), numbers.bytes(8 * n));
        let before = [numbers.next(), numbers.next()];
        let mut sum = before;
        engine.products(&h, &x, &mut sum);
        let number = |b: &[u8]| u64::from_be_bytes(b.try_into().unwrap_or_default());
        let mut right = u128::from(before[1]) << 64 | u128::from(before[0]);
        for (h, x) in h.chunks(8).zip(x.chunks(8)) {
            let (h, x) = (u128::from(number(h)), number(x));
            right ^= (0..64).filter(|bit| x >> bit & 1 == 1).fold(0, |sum, bit| sum ^ h << bit);
        }
        row.case(sum == [right as u64, (right >> 64) as u64], || format!("the sum of {n} products"));
    }
    row
}
