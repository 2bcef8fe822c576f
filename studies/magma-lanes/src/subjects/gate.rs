//! What must hold before the study times anything.
#![forbid(unsafe_code)]

use crate::variants::{REPORT_F, Schedule, VARIANTS, Variant};
use lanework_cpu::check::Row;
use lanework_cpu::memory::{self, Block};
use lanework_cpu::{Backend, Select};
use lanework_magma::backend::BACKENDS;
use lanework_magma::internals::spec;
use lanework_magma::modes::hazmat::EcbEncryptor;
use lanework_magma::modes::legacy::{CfbEncryptor, Meshing};
use lanework_magma::modes::{Ctr, Stream};
use lanework_magma::{Engine, Gost28147, Magma, Sbox};
use lanework_race::gate::GateRow;
use lanework_suite::{Context, row, skipped};

use super::{CIPHER, CTR_IV, KEY, MESSAGES, PLAIN, REPORT, ReportCtr, fill, many};

/// Blocks of the comparison with the specification: several operations of every backend, and pieces of one.
const BLOCKS: [usize; 5] = [8, 16, 64, 136, 1032];

/// Blocks under the key of the study, as the specification has them.
pub(crate) fn expected(input: &[u8]) -> Vec<u8> {
    let words = spec::magma_words(&KEY);
    let one = |b: &[u8; 8]| spec::encrypt(Sbox::Z.rows(), &words, u64::from_be_bytes(*b)).to_be_bytes();
    input.as_chunks().0.iter().flat_map(one).collect()
}

/// The keystream of counter mode under that key.
pub(crate) fn gamma(iv: [u8; 4], bytes: usize) -> Vec<u8> {
    let first = u64::from(u32::from_be_bytes(iv)) << 32;
    let counters: Vec<u8> = (0..bytes.div_ceil(8) as u64).flat_map(|i| (first + i).to_be_bytes()).collect();
    let mut gamma = expected(&counters);
    gamma.truncate(bytes);
    gamma
}

/// All rows: the study's variants, every backend, and the peers where they are asked for.
pub(super) fn rows(context: &Context) -> Vec<GateRow> {
    let mut rows = Vec::new();
    for variant in VARIANTS {
        match variant.get(&context.cpu) {
            Ok(kernel) => rows.push(row(checked(variant, &kernel, context))),
            Err(unavailable) => rows.push(skipped("magma/lanes", &unavailable)),
        }
    }
    for backend in BACKENDS {
        match Engine::choose(&context.cpu, Select::Named(backend.name())) {
            Ok(engine) => rows.push(row(ours(engine))),
            Err(unavailable) => rows.push(skipped("magma/lanes", &unavailable)),
        }
    }
    #[cfg(feature = "peers")]
    rows.extend(super::peers::gate_rows(context));
    rows
}

/// One variant of the study.
fn checked(named: &Backend<Variant>, variant: &Variant, context: &Context) -> Row {
    let encrypt =
        |input: &[u8], output: &mut [u8]| variant.encrypt(&Schedule::new(&KEY), input, output).is_ok();
    let f = variant.f(&REPORT_F.map(|p| p.0));
    let constant = variant.constant_block(&Schedule::new(&KEY), &PLAIN, 2);
    let mut row = study_row(named.name(), f, &constant[..8 * variant.blocks_at_once()], encrypt);
    if named.name() == REPORT {
        let mut input = vec![0; 5000];
        fill(&mut input, 3);
        let want: Vec<u8> = input.iter().zip(gamma(CTR_IV, input.len())).map(|(x, g)| x ^ g).collect();
        let mut got = vec![0; input.len()];
        let cut = ReportCtr::new(&context.cpu, CTR_IV).is_ok_and(|mut ctr| {
            let (head, tail) = got.split_at_mut(4096 + 16);
            ctr.apply(&input[..head.len()], head).and_then(|()| ctr.apply(&input[4096 + 16..], tail)).is_ok()
        });
        row.case(cut && got == want, || "counter mode differs from the specification".to_owned());
    }
    row
}

/// The checks of a variant, which may be a faulty one in a test.
fn study_row(name: &str, f: [u32; 8], constant: &[u8], encrypt: impl Fn(&[u8], &mut [u8]) -> bool) -> Row {
    let mut row = Row::new("magma/lanes: the report's f and block, and blocks of the specification", name);
    for ((x, want), got) in REPORT_F.into_iter().zip(f) {
        row.case(got == want, || format!("f({x:#010x}) is {got:#010x}, not {want:#010x}"));
    }
    for (i, block) in constant.chunks(8).enumerate() {
        row.case(block == CIPHER, || format!("block {i} of the report's loop is {block:02x?}"));
    }
    for blocks in BLOCKS {
        let (mut input, mut output) = (vec![Block::ZERO; blocks / 8], vec![Block::ZERO; blocks / 8]);
        fill(memory::bytes_mut(&mut input), blocks as u64);
        let ran = encrypt(memory::bytes(&input), memory::bytes_mut(&mut output));
        let right = ran && memory::bytes(&output) == expected(memory::bytes(&input));
        row.case(right, || format!("{blocks} blocks differ from the specification"));
    }
    row
}

/// One backend of ours: blocks and counters against the specification, CFB messages together against one at a time.
fn ours(engine: Engine) -> Row {
    let mut row = Row::new("magma/lanes: blocks, counters and CFB with meshing", engine.name());
    for blocks in BLOCKS {
        let mut input = vec![0; 8 * blocks];
        fill(&mut input, blocks as u64);
        let mut got = vec![0; input.len()];
        let ran = EcbEncryptor::with_key(Magma::with(&KEY, engine)).apply_to(&input, &mut got).is_ok();
        row.case(ran && got == expected(&input), || format!("{blocks} blocks differ from the specification"));
        let ran = Ctr::with_key(Magma::with(&KEY, engine), &CTR_IV)
            .and_then(|mut c| c.apply_to(&input, &mut got))
            .is_ok();
        let want: Vec<u8> = input.iter().zip(gamma(CTR_IV, input.len())).map(|(x, g)| x ^ g).collect();
        row.case(ran && got == want, || {
            format!("counter mode over {blocks} blocks differs from the specification")
        });
    }
    // Sixty-four messages at once, in uneven pieces over a change of keys, against one at a time.
    let mut data = many::data(MESSAGES, 2064);
    let plain = data.clone();
    let mut state = many::Many::new(engine, MESSAGES);
    let mut pieces: Vec<Vec<u8>> = data.iter_mut().map(|d| d.split_off(1008)).collect();
    let ran = state.apply(&mut data).and_then(|()| state.apply(&mut pieces));
    for (i, plain) in plain.iter().enumerate() {
        let mut want = plain.clone();
        let key = Gost28147::with(&many::key(i), Sbox::Z, engine);
        let alone = CfbEncryptor::with_key(&key, &many::iv(i), Meshing::CryptoPro)
            .and_then(|mut c| c.apply(&mut want));
        let right = ran.is_ok() && alone.is_ok() && want[..1008] == data[i] && want[1008..] == pieces[i];
        row.case(right, || format!("message {i} of {MESSAGES} differs from the same message alone"));
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_runs_here_passes() {
        let context = Context::new(lanework_cpu::Settings::default());
        for row in rows(&context) {
            assert_eq!(row.failed, 0, "{}: {}", row.backend, row.why);
            assert!(row.passed > 0 || row.skipped > 0, "{}", row.backend);
        }
    }

    #[test]
    fn a_planted_fault_fails() {
        let f = REPORT_F.map(|p| p.1);
        let constant = CIPHER.repeat(8);
        let right = |input: &[u8], output: &mut [u8]| {
            output.copy_from_slice(&expected(input));
            true
        };
        assert!(study_row("right", f, &constant, right).ok());
        // A wrong word of f, in its last lane.
        let mut wrong = f;
        wrong[7] ^= 1;
        assert_eq!(study_row("f", wrong, &constant, right).failed, 1);
        // A wrong block in the last lane of the report's loop, which the report itself does not check.
        let mut lane = constant.clone();
        lane[63] ^= 0x80;
        assert_eq!(study_row("lane", f, &lane, right).failed, 1);
        // One bit of one block in the longest buffer.
        let late = |input: &[u8], output: &mut [u8]| {
            output.copy_from_slice(&expected(input));
            if let Some(byte) = output.get_mut(8 * 1031) {
                *byte ^= 1;
            }
            true
        };
        let row = study_row("late", f, &constant, late);
        assert_eq!((row.failed, row.why.as_str()), (1, "1032 blocks differ from the specification"));
        // A variant that refuses to run.
        assert_eq!(study_row("none", f, &constant, |_, _| false).failed, BLOCKS.len());
    }
}
