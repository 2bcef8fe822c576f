//! The arguments of `lanework vdf`.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use lanework_integer::Int;
use lanework_vdf::form::LIMBS;
use lanework_vdf::number;

use crate::magma::args::Hex;

/// `vdf`.
#[derive(Debug, Args)]
pub(crate) struct VdfArgs {
    #[command(subcommand)]
    pub(crate) job: VdfJob,
}

/// The jobs of `vdf`.
#[derive(Debug, Subcommand)]
pub(crate) enum VdfJob {
    /// Print the discriminant of a challenge.
    Discriminant(DiscriminantArgs),
    /// Square a form N times and print the result.
    Evaluate(EvaluateArgs),
    /// Square a form N times and print a proof, after verifying it.
    Prove(ProveArgs),
    /// Prove results that are known beforehand, in one segment each, while squaring (Chia's blueboxes).
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

/// The group to work in.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct GroupArgs {
    /// The challenge that the discriminant comes from.
    #[arg(long, value_name = "HEX")]
    pub(crate) challenge: Option<Hex>,
    /// The discriminant itself: the negative of a prime, in decimal digits, or in hexadecimal ones after 0x.
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub(crate) discriminant: Option<Number>,
}

/// The discriminant's length.
#[derive(Debug, Args)]
pub(crate) struct BitsArgs {
    /// With --challenge, the discriminant's length: a multiple of 8 up to 2048. Default: 1024.
    #[arg(long, value_name = "N", conflicts_with = "discriminant")]
    pub(crate) bits: Option<usize>,
}

/// What is asked of the discriminant.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct TrustArgs {
    /// Skip the primality test of a discriminant given without a challenge. The author of a composite one can prove false
    /// results in its group.
    #[arg(long)]
    pub(crate) trust_discriminant: bool,
}

/// Which encodings of forms count.
#[derive(Clone, Copy, Debug, Args)]
#[group(multiple = false)]
pub(crate) struct ModeArgs {
    /// Each form has one encoding (the default).
    #[arg(long)]
    pub(crate) strict: bool,
    /// Accept what Chia's nodes accept by consensus as of 2026: also some other encodings of a form.
    #[arg(long)]
    pub(crate) lenient: bool,
}

/// How a result is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object, with everything about it.
    #[default]
    Json,
    /// The result in hexadecimal digits.
    Hex,
    /// The result's bytes.
    Raw,
}

/// Where a result goes.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// How the result is written.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Where it goes; a file appears only when it is whole. Default, and `-`: standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace a file that exists.
    #[arg(long)]
    pub(crate) force: bool,
}

/// `vdf discriminant`.
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

/// What is squared, and how.
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
    /// Squarings.
    #[arg(long, value_name = "N")]
    pub(crate) iterations: u64,
    /// Store progress in this file, and continue from it if it exists.
    #[arg(long, value_name = "FILE")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Seconds between two records of the checkpoint: the most work that a kill can lose.
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = seconds, requires = "checkpoint")]
    pub(crate) every: f64,
}

/// A time between two records.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=86_400.0).contains(&seconds) => Ok(seconds),
        Ok(_) => Err("it takes from 0.001 to 86400 seconds".to_owned()),
        Err(e) => Err(e.to_string()),
    }
}

/// `vdf evaluate`.
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

/// `vdf prove`.
#[derive(Debug, Args)]
pub(crate) struct ProveArgs {
    #[command(flatten)]
    pub(crate) chain: ChainArgs,
    /// Segments before the last, of Chia's lengths (2^16, 2^18, 2^20 and so on, the longest first): the earlier ones are proved
    /// while the later ones are squared.
    #[arg(long, value_name = "D", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=63))]
    pub(crate) witness: u64,
    /// Threads; 0 for one on each core. Default: as `lanework tune` found fastest, else one on each core.
    #[arg(long, value_name = "N", value_parser = crate::args::threads())]
    pub(crate) threads: Option<usize>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// `vdf compact`.
#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    /// The results to prove, a JSON object on each line, with the members that evaluate and prove print: challenge (and bits, if not
    /// 1024) or discriminant, iterations, y, and input if it is not the generator (2, 1). An id comes back with the proof. `-` for
    /// standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) jobs: PathBuf,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
    #[command(flatten)]
    pub(crate) mode: ModeArgs,
    /// MiB for all buckets together. Fewer make more products.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) memory: u64,
    /// Threads; 0 for one on each core. Each chain takes one, and what is left helps. Default: as `lanework tune` found fastest, else
    /// one on each core.
    #[arg(long, value_name = "N", value_parser = crate::args::threads())]
    pub(crate) threads: Option<usize>,
    /// Keep the state of each chain in a file in this folder, and continue from there. The files go when the proofs are written.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Seconds between two records of a checkpoint: the most work that a kill can lose.
    #[arg(long, value_name = "N", default_value_t = 60.0, value_parser = seconds, requires = "checkpoint")]
    pub(crate) every: f64,
    /// Where the proofs go, one on each line, as they are made; a file appears only when it is whole. Default, and `-`: standard
    /// output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace a file that exists.
    #[arg(long)]
    pub(crate) force: bool,
}

/// `vdf verify`.
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
    /// Squarings.
    #[arg(long, value_name = "N")]
    pub(crate) iterations: Option<u64>,
    /// The result and the proof, or with --b the proof without its result.
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
    /// The JSON output of prove; `-` for standard input. Options replace its fields; all other fields must be right.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// `vdf client`.
#[derive(Debug, Args)]
pub(crate) struct ClientArgs {
    /// The timelord's host.
    pub(crate) host: String,
    /// Its port.
    pub(crate) port: u16,
    /// The worker's name in messages.
    #[arg(default_value = "0", value_name = "ID")]
    pub(crate) id: String,
    /// Threads: one squares, the others prove. 0 for one on each core.
    #[arg(long, value_name = "N", value_parser = crate::args::threads())]
    pub(crate) threads: Option<usize>,
    /// Accept one encoding for each form, not the others that Chia's nodes accept.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Seconds that the timelord may take to send its task, from the first byte on, and its last message. Before the task
    /// there is no limit.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
    /// Connect again after each conversation, until a signal ends the command.
    #[arg(long)]
    pub(crate) repeat: bool,
}
