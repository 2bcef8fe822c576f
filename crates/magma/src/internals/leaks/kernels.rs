//! Every kernel alone, under secret keys, on secret and on public blocks, at the numbers of blocks where kernels change
//! their method.
#![forbid(unsafe_code)]

use lanework_cpu::memory::Block;
use lanework_leakage::memcheck::release;

use super::secrets::{came_out, secret};
use crate::backend::chain::{Half, Scratch, Step, Strands, Table};
use crate::backend::{Kernels, LANES};
use crate::internals::check::Numbers;
use crate::internals::spec;
use crate::sbox::Sbox;
use crate::schedule::{ByteOrder, Counter, Schedule};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

/// Around 1, 8, 16, 32, 64 and 128 blocks, and more than a batch of any tier with a rest.
const COUNTS: [usize; 22] =
    [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200, 300];

/// The name of an operation on kernels.
pub(super) type Operation = (&'static str, fn(&Kernels));

/// Each kernel's operation, by its name.
pub(super) const OPERATIONS: [Operation; 7] = [
    ("blocks", blocks),
    ("counter", counter),
    ("keystream", keystream),
    ("set_lane", set_lane),
    ("lanes", lanes),
    ("chain", chain),
    ("products", products),
];

fn words(numbers: &mut Numbers) -> ([u32; 8], [u32; 8]) {
    let open = numbers.array::<32>();
    let hidden: [u8; 32] = secret(&open).try_into().expect("32 bytes");
    (ByteOrder::Big.words(&hidden), ByteOrder::Big.words(&open))
}

fn input(numbers: &mut Numbers, n: usize, hide: bool) -> (Vec<u8>, Vec<u8>) {
    let open = numbers.bytes(n);
    (if hide { secret(&open) } else { open.clone() }, open)
}

/// One block by the specification.
fn plain(s: &Schedule, block: &[u8]) -> [u8; 8] {
    let number = s.order.number(block.try_into().expect("8 bytes"));
    s.order.block(spec::rounds(s.sbox.rows(), s.rounds.iter().copied(), number))
}

fn blocks(kernels: &Kernels) {
    blocks_under(kernels, &Sbox::ALL, &ORDERS, &[true, false]);
}

/// The same only for Magma on secret blocks, for a kernel made for that.
#[cfg(test)]
pub(super) fn magma_blocks(kernels: &Kernels) {
    blocks_under(kernels, &[Sbox::Z], &[ByteOrder::Big], &[true]);
}

fn blocks_under(kernels: &Kernels, sets: &[Sbox], orders: &[ByteOrder], hiding: &[bool]) {
    let mut numbers = Numbers(41);
    for &sbox in sets {
        for &order in orders {
            let (hidden, open) = words(&mut numbers);
            let ways = [
                (Schedule::encrypt(&hidden, sbox, order), Schedule::encrypt(&open, sbox, order)),
                (Schedule::decrypt(&hidden, sbox, order), Schedule::decrypt(&open, sbox, order)),
            ];
            for (hidden, open) in &ways {
                for &hide in hiding {
                    // All sets run the same code; one of them goes through all numbers.
                    for &n in if sbox == Sbox::Z { &COUNTS[..] } else { &[1, 9, 129] } {
                        let (mut data, message) = input(&mut numbers, 8 * n, hide);
                        kernels.blocks(hidden, data.as_mut_slice().into());
                        let want: Vec<u8> = message.chunks(8).flat_map(|b| plain(open, b)).collect();
                        came_out("blocks", &data, &want);
                    }
                }
            }
        }
    }
}

/// Counters whose halves overflow on their way.
const COUNTERS: [fn() -> Counter; 2] =
    [|| Counter::low(0x0123_4567_ffff_ffc0), || Counter::high(0xffff_ffc0_89ab_cdef)];

fn gamma(s: &Schedule, counter: &Counter, n: usize) -> Vec<u8> {
    (0..n).flat_map(|i| plain(s, &s.order.block(counter.at(i as u32)))).collect()
}

fn counter(kernels: &Kernels) {
    let mut numbers = Numbers(42);
    for order in ORDERS {
        let (hidden, open) = words(&mut numbers);
        let (hidden, open) =
            (Schedule::encrypt(&hidden, Sbox::Z, order), Schedule::encrypt(&open, Sbox::Z, order));
        for counter in COUNTERS.map(|counter| counter()) {
            for n in COUNTS {
                for cut in [0, 3] {
                    for hide in [true, false] {
                        let (mut data, message) = input(&mut numbers, 8 * n - cut, hide);
                        kernels.counter(&hidden, counter, data.as_mut_slice().into());
                        let gamma = gamma(&open, &counter, n);
                        let want: Vec<u8> = message.iter().zip(gamma).map(|(x, g)| x ^ g).collect();
                        came_out("counter", &data, &want);
                    }
                }
            }
        }
    }
}

fn keystream(kernels: &Kernels) {
    let mut numbers = Numbers(43);
    for order in ORDERS {
        let (hidden, open) = words(&mut numbers);
        let (hidden, open) =
            (Schedule::encrypt(&hidden, Sbox::Z, order), Schedule::encrypt(&open, Sbox::Z, order));
        for counter in COUNTERS.map(|counter| counter()) {
            for n in COUNTS {
                let mut data = vec![0; 8 * n];
                kernels.keystream(&hidden, counter, &mut data);
                came_out("keystream", &data, &gamma(&open, &counter, n));
            }
        }
    }
}

/// Every lane's secret key in the backend's layout, and as public bytes.
fn keys(kernels: &Kernels, numbers: &mut Numbers) -> (Vec<Block>, Vec<[u32; 8]>) {
    let mut held = vec![Block::ZERO; kernels.lane_keys_blocks];
    let open = (0..LANES).map(|lane| {
        let (hidden, open) = words(numbers);
        kernels.set_lane(&mut held, lane, &hidden);
        open
    });
    let open = open.collect();
    (held, open)
}

fn set_lane(kernels: &Kernels) {
    // The layout is the backend's own; `lanes` shows that it is right.
    let (held, _) = keys(kernels, &mut Numbers(44));
    let hidden = lanework_leakage::memcheck::secret_bytes(lanework_cpu::memory::bytes(&held));
    assert!(hidden >= 32 * LANES, "set_lane: memcheck has lost track of secrets");
}

fn lanes(kernels: &Kernels) {
    let mut numbers = Numbers(45);
    let (held, open) = keys(kernels, &mut numbers);
    for sbox in Sbox::ALL {
        for order in ORDERS {
            for n in [1, 8, 15, 16, 33, 64, 100, LANES] {
                for hide in [true, false] {
                    let (hidden, message) = input(&mut numbers, 8 * LANES, hide);
                    let mut data = [[0; 8]; LANES];
                    data.as_flattened_mut().copy_from_slice(&hidden);
                    kernels.lanes(&held, sbox, order, &mut data, n);
                    let each = message.chunks(8).zip(&open).take(n);
                    let want: Vec<u8> =
                        each.flat_map(|(b, key)| plain(&Schedule::encrypt(key, sbox, order), b)).collect();
                    came_out("lanes", data[..n].as_flattened(), &want);
                }
            }
        }
    }
}

/// All steps over strands of different lengths; the batches' operations check the values.
fn chain(kernels: &Kernels) {
    let mut numbers = Numbers(46);
    let (held, _) = keys(kernels, &mut numbers);
    let halves = [Half::Low, Half::High];
    let counting = halves.into_iter().flat_map(|half| [Step::Counter(half), Step::Multiply(half)]);
    for step in [Step::Mac, Step::Cbc, Step::Cfb, Step::Ecb].into_iter().chain(counting) {
        for lanes in [1, 16, 33, LANES] {
            for order in ORDERS {
                let mut texts: Vec<Vec<u8>> =
                    (0..lanes).map(|i| secret(&numbers.bytes(8 * (9 + 5 * (i % 4))))).collect();
                let mut scratch = Scratch::new();
                let states = secret(&numbers.bytes(8 * LANES));
                scratch.states.as_flattened_mut().copy_from_slice(&states);
                let mut strands = Strands::writing(Table::new());
                texts.iter_mut().for_each(|text| strands.write(text, 1));
                kernels.chain(&held, Sbox::Z, order, step, strands, &mut scratch);
                for text in &texts {
                    let hidden = lanework_leakage::memcheck::secret_bytes(text);
                    assert_eq!(hidden, text.len(), "chain: memcheck has lost track of secrets");
                    release(text);
                }
            }
        }
    }
}

fn products(kernels: &Kernels) {
    let mut numbers = Numbers(47);
    for n in COUNTS {
        let (h, x) = (numbers.bytes(8 * n), numbers.bytes(8 * n));
        let before = numbers.array::<16>();
        let halves = |bytes: &[u8]| {
            let half = |at| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
            [half(0), half(8)]
        };
        let mut sum = halves(&secret(&before));
        kernels.products(&secret(&h), &secret(&x), &mut sum);
        let number = |b: &[u8]| u64::from_be_bytes(b.try_into().expect("8 bytes"));
        let mut want = u128::from_le_bytes(before);
        for (h, x) in h.chunks(8).zip(x.chunks(8)) {
            let (h, x) = (u128::from(number(h)), number(x));
            want ^= (0..64).filter(|bit| x >> bit & 1 == 1).fold(0, |sum, bit| sum ^ h << bit);
        }
        let sum = [sum[0].to_le_bytes(), sum[1].to_le_bytes()];
        came_out("products", sum.as_flattened(), &want.to_le_bytes());
    }
}
