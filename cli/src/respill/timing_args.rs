//! The arguments of the jobs that take time: `respill cpu`, `measure` and `auto`.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use clap::Args;
use lanework_respill::homes::Bank;
use lanework_spill::Homes;

use super::args::{PolicyName, SlotName, SourceArgs};
use crate::args::Output;
use lanework_study::races::Effort;

// `respill cpu`.
#[derive(Debug, Args)]
pub(crate) struct CpuArgs {
    /// Comparisons for each figure.
    #[arg(long, value_name = "N", default_value_t = 31, value_parser = clap::value_parser!(u16).range(3..=10_000))]
    pub(crate) pairs: u16,
    /// Pin to this core (default: the highest allowed).
    #[arg(long, value_name = "N")]
    pub(crate) core: Option<usize>,
}

// The call to run.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct CaseArgs {
    /// A file with one step per line: `seed = random 64`, `call keypair(pk: out 1184, sk: out 2400, seed)`, and last
    /// `measure dec(ss: out 32, ct, sk)`.
    #[arg(long, value_name = "FILE")]
    pub(crate) case: Option<PathBuf>,
    /// The steps themselves, separated by `;`.
    #[arg(long, value_name = "TEXT")]
    pub(crate) call: Option<String>,
}

// The slots to move, whatever their home.
#[derive(Clone, Debug, Args)]
pub(crate) struct SlotsArgs {
    /// Move only these slots, as analyse names them: `FUNCTION:-24`, or `-24` with one --function.
    #[arg(long, value_name = "SLOT,...", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) slots: Vec<SlotName>,
    /// Which slots to move, and in which order.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) policy: PolicyName,
    /// Skip slots that arithmetic uses as operands; otherwise they pass through a free register.
    #[arg(long)]
    pub(crate) moves_only: bool,
}

// `respill measure`.
#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) case: CaseArgs,
    /// One home, or several in the order they are filled. May be given several times. Default: every home of this processor.
    #[arg(long = "home", value_name = "HOME[:N],...")]
    pub(crate) homes: Vec<Homes>,
    #[command(flatten)]
    pub(crate) slots: SlotsArgs,
    /// Race only the rewritten texts, without copies, placebos, levelled texts and texts that leave homes uncleared.
    #[arg(long)]
    pub(crate) no_controls: bool,
    /// Inputs on which every variant must match the original function before anything is timed.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) inputs: u64,
    #[command(flatten)]
    pub(crate) effort: Effort,
    #[command(flatten)]
    pub(crate) output: Output,
}

// `respill auto`.
#[derive(Debug, Args)]
pub(crate) struct AutoArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) case: CaseArgs,
    /// Homes to try. Default: every home of this processor.
    #[arg(long = "home", value_name = "HOME,...", value_delimiter = ',')]
    pub(crate) homes: Vec<Bank>,
    #[command(flatten)]
    pub(crate) slots: SlotsArgs,
    /// How many of the hottest slots to try one by one, after whole homes.
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) one_by_one: usize,
    /// Inputs on which every kept rewrite must match the original.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) inputs: u64,
    /// Store the result in this machine's profile.
    #[arg(long)]
    pub(crate) keep: bool,
    /// Where to write the text; a file appears only once it is complete. `-` for standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing file.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) effort: Effort,
}

// The inner half of a race.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// What to race.
    pub(crate) job: PathBuf,
    /// Inputs of the gate.
    pub(crate) inputs: u64,
}
