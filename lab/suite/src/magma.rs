//! Magma and GOST 28147-89 as subjects: `magma/ctr/16384` and its siblings; sizes are bytes, batches `MESSAGESxBYTES`.
//!
//! A unit of work is one message, or one batch. Texts are random bytes, so that table-driven peers meet the cache as they do in
//! use. They go from one buffer into another, as peers require; variants with `+threads` and batches work in place, as their
//! calls do. A key that serves all messages is ready before timing, as in use. In a batch every message has a key of its own:
//! ours are ready, and a peer puts them into its one context in turn by its cheapest way.
#![forbid(unsafe_code)]

use lanework_cpu::{Cpu, Select, Threads};
use lanework_magma::Engine;
use lanework_magma::backend::BACKENDS;
use lanework_magma::internals::check as checks;
use lanework_magma::internals::floor::{Ports, cycles_per_byte, cycles_per_chained_block};
use lanework_race::gate::{Gate, GateRow};
use lanework_race::machine::Machine;
use lanework_race::record::ResultRow;
use lanework_race::subject::{Subject, Unavailable, Variant};

use crate::{Context, Depth, Job, checked, missing, row, skipped};

mod ours;
#[cfg(feature = "peers")]
pub mod peers;
mod traits;

/// What races.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Magma in counter mode.
    Ctr,
    /// Magma block by block.
    Ecb,
    /// Decryption in CBC.
    CbcDecrypt,
    /// Decryption in CFB.
    CfbDecrypt,
    /// CTR whose key changes every 1 KiB.
    CtrAcpkm,
    /// MGM, with 13 bytes of associated data, as a record of TLS has.
    MgmSeal,
    /// The same, opened.
    MgmOpen,
    /// OMAC of one message: serial.
    Omac,
    /// GOST 28147-89 in CFB with key meshing, one message: what gost-engine calls `gost89`; serial.
    Gost89Cfb,
    /// CTR of many messages, a key for each.
    CtrBatch,
    /// MGM of many messages.
    MgmBatch,
    /// OMAC of many messages.
    OmacBatch,
    /// Encryption in CBC of many messages.
    CbcEncryptBatch,
    /// GOST 28147-89 in CFB, many messages; without meshing, which batches do not have.
    Gost89CfbBatch,
}

impl Operation {
    /// The second component of the subject's path.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Ctr => "ctr",
            Operation::Ecb => "ecb",
            Operation::CbcDecrypt => "cbc-decrypt",
            Operation::CfbDecrypt => "cfb-decrypt",
            Operation::CtrAcpkm => "ctr-acpkm",
            Operation::MgmSeal => "mgm-seal",
            Operation::MgmOpen => "mgm-open",
            Operation::Omac => "omac",
            Operation::Gost89Cfb => "gost89-cfb",
            Operation::CtrBatch => "ctr-batch",
            Operation::MgmBatch => "mgm-batch",
            Operation::OmacBatch => "omac-batch",
            Operation::CbcEncryptBatch => "cbc-encrypt-batch",
            Operation::Gost89CfbBatch => "gost89-cfb-batch",
        }
    }

    /// The command that does it on one message.
    #[must_use]
    pub const fn command(self) -> Option<&'static str> {
        match self {
            Operation::Ctr => Some("magma encrypt --mode ctr"),
            Operation::Ecb => Some("magma encrypt --mode ecb"),
            Operation::CbcDecrypt => Some("magma decrypt --mode cbc"),
            Operation::CfbDecrypt => Some("magma decrypt --mode cfb"),
            Operation::CtrAcpkm => Some("magma encrypt --mode ctr-acpkm"),
            Operation::MgmSeal => Some("magma encrypt"),
            Operation::MgmOpen => Some("magma decrypt"),
            Operation::Omac => Some("magma mac"),
            Operation::Gost89Cfb => Some("magma encrypt --mode cfb --cipher gost28147"),
            Operation::CtrBatch
            | Operation::MgmBatch
            | Operation::OmacBatch
            | Operation::CbcEncryptBatch
            | Operation::Gost89CfbBatch => None,
        }
    }

    /// Whether it is about many messages.
    #[must_use]
    pub const fn is_batch(self) -> bool {
        matches!(
            self,
            Operation::CtrBatch
                | Operation::MgmBatch
                | Operation::OmacBatch
                | Operation::CbcEncryptBatch
                | Operation::Gost89CfbBatch
        )
    }
}

/// An operation on texts of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// What is done.
    pub operation: Operation,
    /// How many messages a unit of work has; 1 unless it is a batch.
    pub messages: usize,
    /// Bytes of each message.
    pub bytes: usize,
}

impl Case {
    const fn one(operation: Operation, bytes: usize) -> Case {
        Case { operation, messages: 1, bytes }
    }

    const fn many(operation: Operation, messages: usize, bytes: usize) -> Case {
        Case { operation, messages, bytes }
    }

    /// The subject's path.
    #[must_use]
    pub fn path(&self) -> String {
        let Case { operation, messages, bytes } = self;
        if operation.is_batch() {
            format!("magma/{}/{messages}x{bytes}", operation.name())
        } else {
            Job::Magma(*operation, *bytes).to_string()
        }
    }

    /// Whether there are variants on several threads: where a unit of work is long enough to be handed out.
    fn threaded(&self) -> bool {
        let spreads = self.operation.is_batch()
            || matches!(self.operation, Operation::Ctr | Operation::CtrAcpkm | Operation::MgmSeal);
        spreads && self.messages * self.bytes >= 1 << 16
    }
}

/// Every case.
pub const CASES: &[Case] = &[
    Case::one(Operation::Ctr, 16),
    Case::one(Operation::Ctr, 64),
    Case::one(Operation::Ctr, 256),
    Case::one(Operation::Ctr, 1024),
    Case::one(Operation::Ctr, 8192),
    Case::one(Operation::Ctr, 16_384),
    Case::one(Operation::Ctr, 1 << 20),
    Case::one(Operation::Ctr, 1 << 24),
    Case::one(Operation::Ecb, 16_384),
    Case::one(Operation::CbcDecrypt, 16_384),
    Case::one(Operation::CfbDecrypt, 16_384),
    Case::one(Operation::CtrAcpkm, 16_384),
    Case::one(Operation::CtrAcpkm, 1 << 20),
    Case::one(Operation::MgmSeal, 64),
    Case::one(Operation::MgmSeal, 1024),
    Case::one(Operation::MgmSeal, 16_384),
    Case::one(Operation::MgmSeal, 1 << 20),
    Case::one(Operation::MgmOpen, 16_384),
    Case::one(Operation::Omac, 16_384),
    Case::one(Operation::Gost89Cfb, 16),
    Case::one(Operation::Gost89Cfb, 64),
    Case::one(Operation::Gost89Cfb, 256),
    Case::one(Operation::Gost89Cfb, 1024),
    Case::one(Operation::Gost89Cfb, 8192),
    Case::one(Operation::Gost89Cfb, 16_384),
    Case::many(Operation::CtrBatch, 1000, 64),
    Case::many(Operation::MgmBatch, 1000, 64),
    Case::many(Operation::MgmBatch, 128, 1024),
    // By the number of messages: how many it takes until the lanes are full.
    Case::many(Operation::OmacBatch, 1, 1024),
    Case::many(Operation::OmacBatch, 8, 1024),
    Case::many(Operation::OmacBatch, 32, 1024),
    Case::many(Operation::OmacBatch, 128, 1024),
    Case::many(Operation::OmacBatch, 512, 1024),
    Case::many(Operation::CbcEncryptBatch, 128, 1024),
    Case::many(Operation::Gost89CfbBatch, 64, 16_384),
];

/// What the tour shows and a bare `magma` stands for.
const HEADLINE: &[Case] = &[
    Case::one(Operation::Ctr, 16_384),
    Case::one(Operation::MgmSeal, 16_384),
    Case::many(Operation::OmacBatch, 128, 1024),
];

/// Every Magma subject.
#[must_use]
pub fn subjects(context: &Context) -> Vec<Subject> {
    CASES.iter().map(|case| subject(context, *case)).chain(traits::subjects(context)).collect()
}

/// CTR, MGM and a batch of OMACs.
#[must_use]
pub fn headline(context: &Context) -> Vec<Subject> {
    HEADLINE.iter().map(|case| subject(context, *case)).collect()
}

/// One subject with all its variants; `portable` is the baseline.
#[must_use]
pub fn subject(context: &Context, case: Case) -> Subject {
    let mut variants = BACKENDS.iter().map(|b| {
        let (cpu, name) = (context.cpu, b.name());
        Variant::new(name, move || {
            // The variant's name is the backend's, so the reason does not repeat it.
            let engine =
                Engine::choose(&cpu, Select::Named(name)).map_err(|u| Unavailable::because(u.why))?;
            ours::prepare(engine, case, None)
        })
    });
    let first =
        variants.next().unwrap_or_else(|| Variant::new("none", || Err(Unavailable::because("no backend"))));
    let mut subject =
        Subject::new(case.path(), gate(context), first).bytes((case.messages * case.bytes) as u64);
    for v in variants {
        subject = subject.with(v);
    }
    let cores = Threads::Own(0).count();
    if case.threaded() && cores > 1 {
        let engine = choose(&context.cpu, context.settings.select("magma"));
        let backend = engine.as_ref().map_or("best", Engine::name).to_owned();
        for threads in [1, cores] {
            let engine = engine.clone();
            let variant = Variant::new(format!("{backend}+threads={threads}"), move || {
                ours::prepare(engine.clone()?, case, Some(threads))
            });
            subject = subject.with(variant.cores(threads));
        }
    }
    #[cfg(feature = "peers")]
    for variant in peers::variants(context, case) {
        subject = subject.with(variant);
    }
    subject
}

/// The gate before every subject of Magma.
fn gate(context: &Context) -> Gate {
    let context = context.clone();
    Gate::new(move || Ok(gate_rows(&context)))
}

fn choose(cpu: &Cpu, how: Select<'_>) -> Result<Engine, Unavailable> {
    Engine::choose(cpu, how).map_err(|u| Unavailable::because(u.to_string()))
}

/// Every backend, in the table's order.
fn engines(cpu: &Cpu) -> impl Iterator<Item = Result<Engine, lanework_cpu::Unavailable>> + '_ {
    BACKENDS.iter().map(|b| Engine::choose(cpu, Select::Named(b.name())))
}

/// What must hold before Magma is timed: every backend that can run passes the quick checks, and every peer agrees with ours.
fn gate_rows(context: &Context) -> Vec<GateRow> {
    let mut rows = Vec::new();
    for engine in engines(&context.cpu) {
        match engine {
            Ok(engine) => checks::run(engine, checks::Depth::Quick, &mut |r| rows.push(row(r))),
            Err(unavailable) => rows.push(skipped("magma", &unavailable)),
        }
    }
    #[cfg(feature = "peers")]
    rows.extend(peers::gate_rows(context));
    rows
}

/// All checks of Magma on every backend; a required backend that cannot run is a failed row.
pub fn check(
    context: &Context,
    pattern: &str,
    depth: Depth,
    progress: &mut dyn FnMut(&GateRow),
) -> Vec<GateRow> {
    checked("magma", pattern, progress, |push| {
        for engine in engines(&context.cpu) {
            match engine {
                Ok(engine) => {
                    let mut each = |r| push(row(r));
                    match depth {
                        Depth::Quick => checks::run(engine, checks::Depth::Quick, &mut each),
                        Depth::KnownAnswers => each(checks::known_answers(engine, checks::Depth::Full)),
                        Depth::Full => checks::run(engine, checks::Depth::Full, &mut each),
                    }
                }
                Err(unavailable) => push(missing(context, "every check", &unavailable)),
            }
        }
        #[cfg(feature = "peers")]
        peers::gate_rows(context).into_iter().for_each(push);
    })
}

/// Bytes for inputs. Races need variety, not secrecy.
pub(crate) struct Filler(u64);

impl Filler {
    pub(crate) fn new(seed: u64) -> Filler {
        Filler(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        // SplitMix64 (Steele, Lea and Flood, 2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn bytes(&mut self, n: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..n.div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).collect();
        bytes.truncate(n);
        bytes
    }

    pub(crate) fn key(&mut self) -> [u8; 32] {
        core::array::from_fn(|_| self.next() as u8)
    }
}

/// Keys and texts of a case; made from fixed seeds, so that every launch and every variant sees the same.
struct Inputs {
    keys: Vec<[u8; 32]>,
    texts: Vec<Vec<u8>>,
    aad: [u8; 13],
}

impl Inputs {
    fn new(case: Case) -> Inputs {
        let mut filler = Filler::new(1);
        Inputs {
            keys: (0..case.messages).map(|_| filler.key()).collect(),
            texts: (0..case.messages).map(|_| filler.bytes(case.bytes)).collect(),
            aad: core::array::from_fn(|i| i as u8),
        }
    }
}

/// The floor of independent blocks in bulk (CTR and ECB of a buffer that fills the lanes), and of the modes in which each block
/// waits for the one before it (28147-89 CFB and OMAC of one message).
pub(crate) fn floor(row: &ResultRow, machine: &Machine) -> Option<f64> {
    /// Less than this does not fill the widest lanes, where another bound holds.
    const BULK: u64 = 8192;
    let of = |modes: &[&str]| modes.iter().any(|mode| row.subject.starts_with(mode));
    let bytes = row.bytes.filter(|_| row.cores == 1)?;
    let ports = Ports::of(machine.vendor.known()?, *machine.family.known()?, *machine.model.known()?)?;
    let cycles = if of(&["magma/ctr/", "magma/ecb/"]) && bytes >= BULK {
        cycles_per_byte(&row.backend, &ports)? * bytes as f64
    } else if of(&["magma/gost89-cfb/", "magma/omac/", "magma/omac-batch/1x"]) {
        cycles_per_chained_block(&row.backend, &ports)? * bytes.div_ceil(8) as f64
    } else {
        return None;
    };
    // The chain before the races: the one after them is not made yet.
    let ghz = machine.calibration_before.known()?.median_ghz;
    Some(cycles / ghz)
}
