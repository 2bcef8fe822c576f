//! Cases beyond the tests of all backends: every carry between planes, and counters with any step.

use inout::InOutBuf;
use lanework_cpu::{Cpu, Settings};

use crate::backend::{BACKENDS, Kernels};
use crate::internals::spec;
use crate::sbox::Sbox;
use crate::schedule::{ByteOrder, Counter, Schedule};

/// Both tiers, as far as this machine has them.
fn each(test: impl Fn(&str, &Kernels)) {
    let settings = Settings::from_env().expect("the environment can be read");
    for row in BACKENDS.iter().filter(|row| row.name().starts_with("avx2")) {
        match row.get(&Cpu::detect()) {
            Ok(kernels) => test(row.name(), kernels.kernels()),
            Err(why) => {
                assert!(!settings.requires(row.name()), "{why}, but LANEWORK_REQUIRE asks for it");
                println!("skipped {}: {why}", row.name());
            }
        }
    }
}

/// Bytes 1 and 2 with every value, every key and both carries from below: the first round has each of them.
#[test]
fn every_carry_is_right() {
    each(|name, kernels| {
        for shift in [8, 16] {
            let words: Vec<u32> =
                (0..512).map(|i: u32| (i & 255) << shift | (i >> 8) << (shift - 1)).collect();
            let input: Vec<u8> = words.iter().flat_map(|&w| u64::from(w).to_le_bytes()).collect();
            for k in 0..256 {
                let s = Schedule::encrypt(
                    &[k << shift | 1 << (shift - 1); 8],
                    Sbox::CryptoProA,
                    ByteOrder::Little,
                );
                let mut out = vec![0; input.len()];
                kernels.blocks(&s, InOutBuf::new(&input, &mut out).expect("one length"));
                for (i, &word) in words.iter().enumerate() {
                    let want = spec::rounds(s.sbox.rows(), s.rounds.iter().copied(), word.into());
                    let same = out[8 * i..8 * i + 8] == want.to_le_bytes();
                    assert!(same, "{name}: {word:#x} + {:#x}", s.rounds[0]);
                }
            }
        }
    });
}

#[test]
fn counters_take_any_step() {
    each(|name, kernels| {
        let s = Schedule::encrypt(&[0x9e37_79b9; 8], Sbox::Z, ByteOrder::Big);
        let counter =
            Counter { high: 0xfedc_ba98, low: 0xfff0_1234, step_high: 0x0101_0104, step_low: 0x8101_0101 };
        for blocks in [1, 3, 8, 9, 31, 70, 128, 300] {
            let mut out = vec![0; 8 * blocks];
            kernels.keystream(&s, counter, &mut out);
            for (i, block) in out.chunks(8).enumerate() {
                let want = spec::rounds(s.sbox.rows(), s.rounds.iter().copied(), counter.at(i as u32));
                assert!(block == want.to_be_bytes(), "{name}: block {i} of {blocks}");
            }
        }
    });
}
