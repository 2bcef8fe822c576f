//! The variants against the specification and the report's own values.

use lanework_cpu::memory::{Block, bytes, bytes_mut};
use lanework_cpu::{Cpu, Settings};

use lanework_magma::Sbox;
use lanework_magma::backend::BACKENDS;

use super::*;

const KEY: &str = "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";

fn key() -> [u8; 32] {
    core::array::from_fn(|i| u8::from_str_radix(&KEY[2 * i..2 * i + 2], 16).expect("hexadecimal"))
}

fn each(test: impl Fn(&str, &Variant)) {
    let settings = Settings::from_env().expect("the environment can be read");
    let cpu = Cpu::detect();
    for row in VARIANTS {
        match row.get(&cpu) {
            Ok(variant) => test(row.name(), variant.kernels()),
            Err(why) => {
                let mut enough =
                    BACKENDS.iter().filter(|b| row.needs().difference(b.needs()) == Features::NONE);
                let required = enough.any(|backend| settings.requires(backend.name()));
                assert!(!required, "{why}, but LANEWORK_REQUIRE asks for a backend that needs as much");
                println!("skipped {}: {why}", row.name());
            }
        }
    }
}

fn expected(block: &[u8]) -> [u8; 8] {
    let number = u64::from_be_bytes(block.try_into().expect("8 bytes"));
    spec::encrypt(Sbox::Z.rows(), &spec::magma_words(&key()), number).to_be_bytes()
}

#[test]
fn no_backend_is_a_variant() {
    for row in VARIANTS {
        assert!(BACKENDS.iter().all(|b| b.name() != row.name()), "{}", row.name());
    }
}

#[test]
fn f_is_the_reports_and_the_specifications() {
    let rows = Sbox::Z.rows();
    for (x, y) in REPORT_F {
        assert_eq!(spec::g(rows, 0, x), y);
    }
    each(|name, variant| {
        assert_eq!(variant.f(&REPORT_F.map(|p| p.0)), REPORT_F.map(|p| p.1), "{name}");
        // Every entry of every S-box.
        for x in 0..16u32 {
            let words =
                core::array::from_fn(|i| (x * 0x1111_1111).rotate_left(i as u32) ^ (i as u32 * 0x1032_5476));
            assert_eq!(variant.f(&words), words.map(|w| spec::g(rows, 0, w)), "{name}");
            assert_eq!(variant.f(&[x * 0x1111_1111; 8]), [spec::g(rows, 0, x * 0x1111_1111); 8], "{name}");
        }
    });
}

#[test]
fn blocks_are_the_specifications_at_any_alignment() {
    let magma = Schedule::new(&key());
    each(|name, variant| {
        let step = 8 * variant.blocks_at_once();
        let offsets: &[usize] = if variant.aligned { &[0, 32] } else { &[0, 1, 8, 31] };
        for n in [0, step, 2 * step, 5 * step, 1024] {
            for &offset in offsets {
                let (mut input, mut output) =
                    (vec![Block::ZERO; n / 64 + 2], vec![Block([0xa5; 64]); n / 64 + 2]);
                for (i, byte) in bytes_mut(&mut input).iter_mut().enumerate() {
                    *byte = ((i * i * 31 + i * 7) >> 3) as u8;
                }
                let input = &bytes(&input)[offset..offset + n];
                let out = bytes_mut(&mut output);
                variant.encrypt(&magma, input, &mut out[offset..offset + n]).expect("whole operations");
                for (i, block) in input.chunks(8).enumerate() {
                    assert_eq!(
                        out[offset + 8 * i..][..8],
                        expected(block),
                        "{name}: block {i} of {n} at {offset}"
                    );
                }
                assert!(
                    out[..offset].iter().chain(&out[offset + n..]).all(|&b| b == 0xa5),
                    "{name}: around {n}"
                );
            }
        }
    });
}

#[test]
fn the_reports_block_in_its_loop() {
    let magma = Schedule::new(&key());
    let plain = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];
    let cipher = [0x85, 0x65, 0xc8, 0xc0, 0xcd, 0x6f, 0x1a, 0xca];
    assert_eq!(expected(&plain), cipher);
    each(|name, variant| {
        let out = variant.constant_block(&magma, &plain, 3);
        for (i, block) in out.chunks(8).enumerate() {
            let want = if i < variant.blocks_at_once() { cipher } else { [0; 8] };
            assert_eq!(block, want, "{name}: block {i}");
        }
        assert_eq!(variant.constant_block(&magma, &plain, 0), [0; 64], "{name}: no operation");
    });
}

#[test]
fn what_is_wrong_is_named() {
    let magma = Schedule::new(&key());
    each(|name, variant| {
        let input = [Block::ZERO; 3];
        let mut output = [Block::ZERO; 3];
        let (input, output) = (bytes(&input), bytes_mut(&mut output));
        let lengths = variant.encrypt(&magma, &input[..64], &mut output[..128]);
        assert_eq!(lengths, Err(Error::Lengths { input: 64, output: 128 }), "{name}");
        let odd = 8 * variant.blocks_at_once() + 4;
        let unaligned = variant.encrypt(&magma, &input[..odd], &mut output[..odd]);
        assert_eq!(unaligned, Err(Error::Unaligned(odd)), "{name}");
        if variant.aligned {
            let wrong = Err(Error::Parameter("buffers at multiples of 32 bytes"));
            assert_eq!(variant.encrypt(&magma, &input[16..80], &mut output[..64]), wrong, "{name}");
            assert_eq!(variant.encrypt(&magma, &input[..64], &mut output[8..72]), wrong, "{name}");
        }
    });
}
