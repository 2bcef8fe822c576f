//! The arguments of the jobs that run the code they check: `respill validate` and `lint`.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use clap::Args;

use super::args::{SourceArgs, WishArgs};

// The cases to run. Each calls one function; together they should reach everything that was changed.
#[derive(Debug, Default, Args)]
pub(crate) struct CasesArgs {
    /// A file with one step per line: `seed = random 64`, `call keypair(pk: out 1184, sk: out 2400, seed)`, and last
    /// `measure dec(ss: out 32, ct, sk)`. May be given several times.
    #[arg(long = "case", value_name = "FILE")]
    pub(crate) cases: Vec<PathBuf>,
    /// The steps themselves, separated by `;`. May be given several times.
    #[arg(long = "call", value_name = "TEXT")]
    pub(crate) calls: Vec<String>,
}

// How much to run.
#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    #[command(flatten)]
    pub(crate) cases: CasesArgs,
    /// Inputs per case whose results are compared, on stacks with different contents.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) inputs: u64,
    /// Inputs per case that are followed access by access and compared instruction by instruction.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) traced: u64,
    /// Accept instructions that no case reaches, even if they may touch a slot. What they do is not checked; the verdict names them.
    #[arg(long)]
    pub(crate) unreached: bool,
}

// `respill validate`.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// The rewritten text. Default: FILE rewritten with these options.
    #[arg(value_name = "REWRITTEN", conflicts_with_all = ["home", "slots", "policy", "moves_only", "naive"])]
    pub(crate) rewritten: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) wish: WishArgs,
    #[command(flatten)]
    pub(crate) runs: RunsArgs,
}

// `respill lint`.
#[derive(Debug, Args)]
pub(crate) struct LintArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) cases: CasesArgs,
}
