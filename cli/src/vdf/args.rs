//! The arguments of `lanework vdf`.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use lanework_integer::Int;
use lanework_vdf::form::LIMBS;
use lanework_vdf::number;

use crate::magma::args::Hex;

// `vdf`.
#[derive(Debug, Args)]
pub(crate) struct VdfArgs {
    #[command(subcommand)]
    pub(crate) job: VdfJob,
}

// The jobs of `vdf`.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum VdfJob {
    /// Print the discriminant of a challenge.
    Discriminant(DiscriminantArgs),
    /// Square a form N times and print the result.
    Evaluate(EvaluateArgs),
    /// Square a form N times, then verify the proof and print it.
    Prove(ProveArgs),
    /// Prove known results, in one segment each, while squaring (as Chia's blueboxes do).
    Compact(CompactArgs),
    /// Verify a proof and print its result; exits 1 if it is refused, 2 if it is malformed.
    Verify(VerifyArgs),
    /// Work for a timelord: square what it sends, and answer its requests with proofs (chiavdf's vdf_client).
    Client(ClientArgs),
}

/// A whole number, as [`number::parse`] reads it.
#[derive(Clone, Debug)]
pub(crate) struct Number(pub(crate) Box<Int<LIMBS>>);

impl std::str::FromStr for Number {
    type Err = number::NumberError;

    fn from_str(text: &str) -> Result<Number, Self::Err> {
        number::parse(text.as_bytes()).map(|number| Number(Box::new(number)))
    }
}

// The group to work in.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct GroupArgs {
    /// The challenge that the discriminant comes from.
    #[arg(long, value_name = "HEX")]
    pub(crate) challenge: Option<Hex>,
    /// The discriminant itself: the negative of a prime, in decimal, or in hexadecimal after 0x.
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub(crate) discriminant: Option<Number>,
}

// The discriminant's length.
#[derive(Debug, Args)]
pub(crate) struct BitsArgs {
    /// With --challenge, the discriminant's length: a multiple of 8 up to 2048. Default: 1024.
    #[arg(long, value_name = "N", conflicts_with = "discriminant")]
    pub(crate) bits: Option<usize>,
}

// Whether the discriminant is tested.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct TrustArgs {
    /// Skip the primality test of a discriminant given without a challenge. The author of a composite discriminant can prove
    /// false results.
    #[arg(long)]
    pub(crate) trust_discriminant: bool,
}

// Which encodings of forms are accepted.
#[derive(Clone, Copy, Debug, Args)]
#[group(multiple = false)]
pub(crate) struct ModeArgs {
    /// Accept one encoding for each form (the default).
    #[arg(long)]
    pub(crate) strict: bool,
    /// Accept what Chia's nodes accept by consensus as of 2026, including some other encodings of a form.
    #[arg(long)]
    pub(crate) lenient: bool,
}

/// How a result is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object with all details.
    #[default]
    Json,
    /// The result in hexadecimal.
    Hex,
    /// The result's bytes.
    Raw,
}

// Where a result goes.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Format of the result.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Where to write the result; a file appears only once it is complete. Default, and `-`: standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing file.
    #[arg(long)]
    pub(crate) force: bool,
}

// `vdf discriminant`.
#[derive(Debug, Args)]
pub(crate) struct DiscriminantArgs {
    /// The challenge.
    #[arg(long, value_name = "HEX")]
    pub(crate) challenge: Hex,
    /// The discriminant's length: a multiple of 8 up to 2048.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub(crate) bits: usize,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

// What is squared, and how.
#[derive(Debug, Args)]
pub(crate) struct ChainArgs {
    #[command(flatten)]
    pub(crate) group: GroupArgs,
    #[command(flatten)]
    pub(crate) bits: BitsArgs,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
    /// The form to start from. Default: the generator (2, 1).
    #[arg(long, value_name = "HEX")]
    pub(crate) input: Option<Hex>,
    #[command(flatten)]
    pub(crate) mode: ModeArgs,
    /// Number of squarings.
    #[arg(long, value_name = "N")]
    pub(crate) iterations: u64,
    /// Store progress in this file, and continue from it if it exists.
    #[arg(long, value_name = "FILE")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Seconds between updates of the checkpoint: the most work that a kill can lose.
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = seconds, requires = "checkpoint")]
    pub(crate) every: f64,
}

/// A time between two updates.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=86_400.0).contains(&seconds) => Ok(seconds),
        Ok(_) => Err("expected 0.001 to 86400 seconds".to_owned()),
        Err(e) => Err(e.to_string()),
    }
}

// `vdf evaluate`.
#[derive(Debug, Args)]
pub(crate) struct EvaluateArgs {
    #[command(flatten)]
    pub(crate) chain: ChainArgs,
    /// In JSON, also write the coefficients a, b and c.
    #[arg(long)]
    pub(crate) coefficients: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

// `vdf prove`.
#[derive(Debug, Args)]
pub(crate) struct ProveArgs {
    #[command(flatten)]
    pub(crate) chain: ChainArgs,
    /// Segments before the last, of Chia's lengths (2^16, 2^18, 2^20 and so on, the longest first). Earlier segments are proved
    /// while later ones are squared.
    #[arg(long, value_name = "D", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=63))]
    pub(crate) witness: u64,
    /// Threads; 0 means one per core. Default: what `lanework tune` found fastest, otherwise one per core.
    #[arg(long, value_name = "N", value_parser = crate::args::threads())]
    pub(crate) threads: Option<usize>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

// `vdf compact`.
#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    /// The results to prove, one JSON object per line, with the members that evaluate and prove print: challenge (and bits, if not
    /// 1024) or discriminant, iterations, y, and input unless it is the generator (2, 1). An id is returned with the proof. `-` for
    /// standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) jobs: PathBuf,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
    #[command(flatten)]
    pub(crate) mode: ModeArgs,
    /// MiB for all buckets together. Less memory means more products.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) memory: u64,
    /// Threads; 0 means one per core. Each chain takes one; spare threads help. Default: what `lanework tune` found fastest,
    /// otherwise one per core.
    #[arg(long, value_name = "N", value_parser = crate::args::threads())]
    pub(crate) threads: Option<usize>,
    /// Keep the state of each chain in a file in this folder, and continue from there. The files are removed once the proofs are
    /// written.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Seconds between updates of a checkpoint: the most work that a kill can lose.
    #[arg(long, value_name = "N", default_value_t = 60.0, value_parser = seconds, requires = "checkpoint")]
    pub(crate) every: f64,
    /// Where to write the proofs, one per line, as they are made; a file appears only once it is complete. Default, and `-`:
    /// standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing file.
    #[arg(long)]
    pub(crate) force: bool,
}

// `vdf verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) group: GroupArgs,
    #[command(flatten)]
    pub(crate) bits: BitsArgs,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
    /// The form that the chain starts from. Default: the generator (2, 1).
    #[arg(long, value_name = "HEX")]
    pub(crate) input: Option<Hex>,
    /// Number of squarings.
    #[arg(long, value_name = "N")]
    pub(crate) iterations: Option<u64>,
    /// The result and the proof; with --b, only the proof.
    #[arg(long, value_name = "HEX")]
    pub(crate) proof: Option<Hex>,
    /// Segments before the last: Chia's witness type. Default: 0.
    #[arg(long, value_name = "D")]
    pub(crate) witness: Option<u64>,
    /// The last segment's B (33 bytes): verify a compact proof, and print the result that it leads to.
    #[arg(long, value_name = "HEX")]
    pub(crate) b: Option<Hex>,
    #[command(flatten)]
    pub(crate) mode: ModeArgs,
    /// The JSON output of prove; `-` for standard input. Options replace its fields; all other fields must be correct.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

// `vdf client`.
#[derive(Debug, Args)]
pub(crate) struct ClientArgs {
    /// The timelord's host.
    pub(crate) host: String,
    /// Its port.
    pub(crate) port: u16,
    /// The worker's name in messages.
    #[arg(default_value = "0", value_name = "ID")]
    pub(crate) id: String,
    /// Threads: one squares, the others prove. 0 means one per core. Default: what `lanework tune` found fastest, otherwise
    /// one per core.
    #[arg(long, value_name = "N", value_parser = crate::args::threads())]
    pub(crate) threads: Option<usize>,
    /// Accept only one encoding for each form, not the others that Chia's nodes accept.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Seconds that the timelord may take to send its task, from the first byte on, to read an answer, and to send its last
    /// message. There is no limit before the task.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
    /// Reconnect after each conversation, until a signal ends the command.
    #[arg(long)]
    pub(crate) repeat: bool,
}
