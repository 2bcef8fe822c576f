//! The study `magma-lanes`: the report's constant block and real buffers, and rows as `openssl speed` makes them.
//!
//! | path | an iteration |
//! |---|---|
//! | `magma/lanes/constant` | the report's: one block or eight equal ones, the same each time, in a buffer that stays in the first cache |
//! | `magma/lanes/buffers` | 16 KiB of different blocks, from one buffer into another |
//! | `magma/lanes/ctr/N`, `magma/lanes/gost89/N` | the next N bytes of one long message, as `openssl speed` goes on with a context |
//! | `magma/lanes/gost89-x64/N` | the next N bytes of each of 64 messages with keys of their own |
//!
//! A unit of the first two is a block, of the others a call of N bytes (64 such calls in `gost89-x64` are 64 units).
#![forbid(unsafe_code)]

use std::hint::black_box;

use crate::variants::{self, Schedule, VARIANTS};
use lanework_cpu::memory::{self, Block};
use lanework_cpu::{Cpu, Select};
use lanework_magma::backend::BACKENDS;
use lanework_magma::modes::hazmat::EcbEncryptor;
use lanework_magma::modes::legacy::{CfbEncryptor, Meshing};
use lanework_magma::modes::{Ctr, Stream};
use lanework_magma::{Engine, Error, Gost28147, Limits, Magma, Sbox};
use lanework_race::gate::Gate;
use lanework_race::subject::{Facts, Runnable, Subject, Unavailable, Variant, work};
use lanework_suite::Context;

mod gate;
pub(crate) mod many;
#[cfg(feature = "peers")]
pub(crate) mod peers;

/// Bytes of a call in the table of `openssl speed`.
pub(crate) const SIZES: [usize; 6] = [16, 64, 256, 1024, 8192, 16_384];
/// Messages of `gost89-x64`.
pub(crate) const MESSAGES: usize = 64;
/// Bytes of the real buffers.
pub(crate) const BUFFER: usize = 16_384;
/// Blocks of an operation of ours at full speed in the constant loop.
const WIDE: usize = 128;
/// The variant of the report's design, which is SmokeRand's too.
pub(crate) const REPORT: &str = "report-avx2";

/// The key of RFC 8891, A.3.
pub(crate) const KEY: [u8; 32] = [
    0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x00, 0xf0,
    0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff,
];
/// The block of RFC 8891, A.4.
pub(crate) const PLAIN: [u8; 8] = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];
/// The same block encrypted.
pub(crate) const CIPHER: [u8; 8] = [0x85, 0x65, 0xc8, 0xc0, 0xcd, 0x6f, 0x1a, 0xca];

/// What the rows of `openssl speed` run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    /// Magma in counter mode.
    Ctr,
    /// GOST 28147-89 in CFB with set Z and key meshing: OpenSSL's `gost89`.
    Gost89,
    /// The same, 64 messages side by side.
    Gost89Many,
}

impl Row {
    /// All three.
    pub(crate) const ALL: [Row; 3] = [Row::Ctr, Row::Gost89, Row::Gost89Many];

    /// The component of the path.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Row::Ctr => "ctr",
            Row::Gost89 => "gost89",
            Row::Gost89Many => "gost89-x64",
        }
    }

    /// Calls of an iteration.
    const fn units(self) -> u64 {
        match self {
            Row::Gost89Many => MESSAGES as u64,
            _ => 1,
        }
    }
}

/// All subjects of the study.
#[must_use]
pub(crate) fn subjects(context: &Context) -> Vec<Subject> {
    let mut all = vec![constant(context), buffers(context)];
    all.extend(Row::ALL.iter().flat_map(|&row| SIZES.map(|size| speed(context, row, size))));
    all
}

/// A subject of these variants, the first of which is the baseline.
fn subject(context: &Context, path: &str, variants: Vec<Variant>) -> Subject {
    let gated = context.clone();
    let gate = Gate::new(move || Ok(gate::rows(&gated)));
    let mut variants = variants.into_iter();
    let first =
        variants.next().unwrap_or_else(|| Variant::new("none", || Err(Unavailable::because("no variant"))));
    variants.fold(Subject::new(path, gate, first), Subject::with)
}

fn missing(u: impl ToString) -> Unavailable {
    Unavailable::because(u.to_string())
}

fn facts(name: &str) -> impl Fn() -> Facts + use<> {
    let name = name.to_owned();
    move || Facts { backend: name.clone(), notes: Vec::new() }
}

/// A key without limits: a race encrypts the same few bytes over and over.
fn key(engine: Engine) -> Magma {
    Magma::with(&KEY, engine).with_limits(Limits::Unlimited)
}

fn choose(cpu: &Cpu, name: &'static str) -> Result<Engine, Unavailable> {
    Engine::choose(cpu, Select::Named(name)).map_err(missing)
}

/// Bytes that differ from block to block and are the same in every process.
pub(crate) fn fill(out: &mut [u8], seed: u64) {
    let mut state = seed;
    for chunk in out.chunks_mut(8) {
        // SplitMix64 (Steele, Lea and Flood, 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        chunk.copy_from_slice(&(z ^ z >> 31).to_le_bytes()[..chunk.len()]);
    }
}

/// The report's loop.
struct Constant {
    variant: &'static variants::Variant,
    name: &'static str,
    key: Schedule,
}

impl Runnable for Constant {
    fn run(&mut self, iterations: u64) {
        let times = usize::try_from(iterations).unwrap_or(usize::MAX);
        black_box(self.variant.constant_block(&self.key, &PLAIN, times));
    }

    fn facts(&self) -> Facts {
        facts(self.name)()
    }
}

/// Two buffers that may begin at any distance from a cache line, in one run of memory and half a page apart beyond their length. Their
/// distance is not left to the allocator: at whole pages apart a load looks like one of the bytes that were stored last, and code that
/// keeps its state in memory waits. That took two fifths of the byte planes' speed.
struct Buffers {
    memory: Vec<Block>,
    offset: usize,
    bytes: usize,
    second: usize,
}

impl Buffers {
    fn new(bytes: usize, offset: usize) -> Buffers {
        let second = (bytes + offset).next_multiple_of(4096) + 2048;
        let mut buffers =
            Buffers { memory: vec![Block::ZERO; (2 * second).div_ceil(64)], offset, bytes, second };
        fill(buffers.input(), 1);
        buffers
    }

    fn input(&mut self) -> &mut [u8] {
        &mut memory::bytes_mut(&mut self.memory)[self.offset..][..self.bytes]
    }

    fn both(&mut self) -> (&[u8], &mut [u8]) {
        let (first, second) = memory::bytes_mut(&mut self.memory).split_at_mut(self.second);
        (&first[self.offset..][..self.bytes], &mut second[self.offset..][..self.bytes])
    }
}

/// The report's constant block, for all: `+blocks=N` is an operation of N equal blocks.
fn constant(context: &Context) -> Subject {
    let cpu = context.cpu;
    let mut variants: Vec<Variant> = VARIANTS
        .iter()
        .map(|row| {
            let at_once = if row.name().starts_with("table") { 1 } else { 8 };
            Variant::new(row.name(), move || {
                let variant = row.get(&cpu).map_err(missing)?.kernels();
                let work: Box<dyn Runnable> =
                    Box::new(Constant { variant, name: row.name(), key: Schedule::new(&KEY) });
                Ok(work)
            })
            .units(at_once)
        })
        .collect();
    for row in BACKENDS {
        for blocks in [8, WIDE] {
            let name =
                if blocks == 8 { row.name().to_owned() } else { format!("{}+blocks={blocks}", row.name()) };
            let variant = Variant::new(name, move || {
                let mut ecb = EcbEncryptor::with_key(key(choose(&cpu, row.name())?));
                let mut buffers = Buffers::new(8 * blocks, 0);
                buffers.input().chunks_exact_mut(8).for_each(|b| b.copy_from_slice(&PLAIN));
                Ok(work(
                    move || {
                        let (input, output) = buffers.both();
                        assert_eq!(ecb.apply_to(black_box(input), output), Ok(()));
                        black_box(output);
                    },
                    facts(row.name()),
                ))
            });
            variants.push(variant.units(blocks as u64));
        }
    }
    subject(context, "magma/lanes/constant", variants)
}

/// Real buffers, block by block: `+offset=N` begins N bytes after a multiple of 64.
fn buffers(context: &Context) -> Subject {
    let cpu = context.cpu;
    let blocks = (BUFFER / 8) as u64;
    let named = |name: &str, offset: usize| {
        if offset == 0 { name.to_owned() } else { format!("{name}+offset={offset}") }
    };
    let mut variants = Vec::new();
    for row in VARIANTS {
        let offsets: &[usize] = if row.name().ends_with("aligned") { &[0] } else { &[0, 1, 16] };
        for &offset in offsets {
            let variant = Variant::new(named(row.name(), offset), move || {
                let variant = row.get(&cpu).map_err(missing)?.kernels();
                let (key, mut buffers) = (Schedule::new(&KEY), Buffers::new(BUFFER, offset));
                Ok(work(
                    move || {
                        let (input, output) = buffers.both();
                        assert_eq!(variant.encrypt(&key, black_box(input), output), Ok(()));
                        black_box(output);
                    },
                    facts(row.name()),
                ))
            });
            variants.push(variant.units(blocks));
        }
    }
    for row in BACKENDS {
        for offset in [0, 1] {
            let variant = Variant::new(named(row.name(), offset), move || {
                let mut ecb = EcbEncryptor::with_key(key(choose(&cpu, row.name())?));
                let mut buffers = Buffers::new(BUFFER, offset);
                Ok(work(
                    move || {
                        let (input, output) = buffers.both();
                        assert_eq!(ecb.apply_to(black_box(input), output), Ok(()));
                        black_box(output);
                    },
                    facts(row.name()),
                ))
            });
            variants.push(variant.units(blocks));
        }
    }
    #[cfg(feature = "peers")]
    variants.extend(peers::ecb(context).into_iter().map(|v| v.units(blocks)));
    subject(context, "magma/lanes/buffers", variants)
}

/// The report's eight blocks in counter mode: the design has none of its own, so counters are written out first.
pub(crate) struct ReportCtr {
    variant: &'static variants::Variant,
    key: Schedule,
    counter: u64,
    gamma: Vec<u8>,
}

impl ReportCtr {
    pub(crate) fn new(cpu: &Cpu, iv: [u8; 4]) -> Result<ReportCtr, Unavailable> {
        let row = VARIANTS.iter().find(|row| row.name() == REPORT);
        let row = row.ok_or_else(|| Unavailable::because("AVX2 exists on x86-64 only"))?;
        let variant = row.get(cpu).map_err(missing)?.kernels();
        let counter = u64::from(u32::from_be_bytes(iv)) << 32;
        Ok(ReportCtr { variant, key: Schedule::new(&KEY), counter, gamma: Vec::new() })
    }

    pub(crate) fn apply(&mut self, input: &[u8], output: &mut [u8]) -> Result<(), Error> {
        // Whole operations; the excess of the last one is thrown away.
        let mut counters = [0; 4096];
        self.gamma.resize(4096, 0);
        for (from, to) in input.chunks(4096).zip(output.chunks_mut(4096)) {
            let n = from.len().next_multiple_of(64);
            for block in counters[..n].chunks_exact_mut(8) {
                block.copy_from_slice(&self.counter.to_be_bytes());
                self.counter = self.counter.wrapping_add(1);
            }
            self.counter = self.counter.wrapping_sub(((n - from.len()) / 8) as u64);
            self.variant.encrypt(&self.key, &counters[..n], &mut self.gamma[..n])?;
            from.iter().zip(&self.gamma).zip(to).for_each(|((x, g), y)| *y = x ^ g);
        }
        Ok(())
    }
}

const CTR_IV: [u8; 4] = [0x12, 0x34, 0x56, 0x78];
const CFB_IV: [u8; 8] = [0x12, 0x34, 0x56, 0x78, 0x90, 0xab, 0xcd, 0xef];

/// Goes on with a message, or with the next one where a counter has ended.
fn go_on<S: Stream>(stream: &mut S, fresh: impl Fn() -> Result<S, Error>, input: &[u8], output: &mut [u8]) {
    if stream.apply_to(input, output).is_err() {
        let again = fresh().and_then(|s| {
            *stream = s;
            stream.apply_to(input, output)
        });
        assert_eq!(again, Ok(()));
    }
}

fn gost89(engine: Engine) -> Result<CfbEncryptor, Error> {
    let key = Gost28147::with(&KEY, Sbox::Z, engine).with_limits(Limits::Unlimited);
    CfbEncryptor::with_key(&key, &CFB_IV, Meshing::CryptoPro)
}

/// One row and column of the table.
fn speed(context: &Context, row: Row, size: usize) -> Subject {
    let cpu = context.cpu;
    let mut variants: Vec<Variant> = BACKENDS
        .iter()
        .map(|backend| Variant::new(backend.name(), move || ours(choose(&cpu, backend.name())?, row, size)))
        .collect();
    if row == Row::Ctr {
        variants.push(Variant::new(REPORT, move || {
            let mut report = ReportCtr::new(&cpu, CTR_IV)?;
            let mut buffers = Buffers::new(size, 0);
            Ok(work(
                move || {
                    let (input, output) = buffers.both();
                    assert_eq!(report.apply(black_box(input), output), Ok(()));
                    black_box(output);
                },
                facts(REPORT),
            ))
        }));
    }
    #[cfg(feature = "peers")]
    variants.extend(peers::speed(context, row, size));
    let variants = variants.into_iter().map(|v| v.units(row.units())).collect();
    subject(context, &format!("magma/lanes/{}/{size}", row.name()), variants)
}

fn ours(engine: Engine, row: Row, size: usize) -> Result<Box<dyn Runnable>, Unavailable> {
    let facts = facts(engine.name());
    let mut buffers = Buffers::new(size, 0);
    Ok(match row {
        Row::Ctr => {
            let fresh = move || Ctr::with_key(key(engine), &CTR_IV);
            let mut stream = fresh().map_err(missing)?;
            work(
                move || {
                    let (input, output) = buffers.both();
                    go_on(&mut stream, fresh, black_box(input), output);
                    black_box(output);
                },
                facts,
            )
        }
        Row::Gost89 => {
            let fresh = move || gost89(engine);
            let mut stream = fresh().map_err(missing)?;
            work(
                move || {
                    let (input, output) = buffers.both();
                    go_on(&mut stream, fresh, black_box(input), output);
                    black_box(output);
                },
                facts,
            )
        }
        Row::Gost89Many => {
            let mut many = many::Many::new(engine, MESSAGES);
            let mut data = many::data(MESSAGES, size);
            work(
                move || {
                    assert_eq!(many.apply(&mut data), Ok(()));
                    black_box(&mut data);
                },
                facts,
            )
        }
    })
}
