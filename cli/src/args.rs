//! The command line as types.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use lanework_cpu::Threads;
use lanework_study::races::{Effort, seconds};
use lanework_suite::device::DeviceChoice;

/// Cryptography that uses every lane of your machine: checked, raced, and the fastest kept.
///
/// Without a command: the tour (45 seconds at most). It checks every backend that can run, races them, and prints a bar for each
/// primitive and lane, then whether the lane pays.
#[derive(Debug, Parser)]
#[command(name = "lanework", version, propagate_version = true, max_term_width = 110)]
#[command(after_help = "Exit codes: 0 yes; 1 refused (signature, tag, key, failed check, regression); \
    2 usage, file or malformed input; 3 unavailable here.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    /// The tour alone: print the whole machine, every race with its interval, and every remark.
    #[arg(short, long)]
    pub(crate) verbose: bool,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Print one JSON object instead of text.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Use this backend: NAME, or PRIMITIVE=NAME,... Overrides LANEWORK_BACKEND and the profile.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) backend: Option<String>,
    /// Devices to use: none, cuda or all, or their numbers. Several share each batch by the rates that `tune` measured. By
    /// default checks use every device and jobs none.
    #[arg(long, global = true, value_name = "N,...")]
    pub(crate) device: Option<DeviceChoice>,
    /// Also race other people's implementations (needs the `peers` feature and `cargo xtask peers`).
    #[arg(long, global = true)]
    pub(crate) peers: bool,
    /// Where the peers' shared libraries are.
    #[arg(long, global = true, value_name = "DIR", env = "LANEWORK_PEERS", default_value = "target/peers")]
    pub(crate) peers_dir: PathBuf,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show CPU, backends (chosen, available, unavailable and why), the profile, clocks, and what limits measuring here.
    Doctor,
    /// Check every backend: known answers, agreement with the specification, invalid inputs.
    Check(CheckArgs),
    /// Race the backends of a subject against its baseline, in pairs.
    Bench(BenchArgs),
    /// Race two variants of a subject against each other.
    Compare(CompareArgs),
    /// Measure which backend and how many threads are fastest on this machine, and store them as its profile.
    Tune(TuneArgs),
    /// Run a study: a published question, asked again on this machine.
    #[cfg(feature = "study")]
    Study(StudyArgs),
    /// Show records as one HTML page, which needs no network.
    Report(ReportArgs),
    /// Past records: list, compare two, follow one figure, look for regressions on this machine.
    History(crate::history::HistoryArgs),
    /// Magma and GOST 28147-89: encrypting files and pipes, sealing messages, MACs, wrapping keys.
    Magma(crate::magma::args::MagmaArgs),
    /// MAYO signatures: keys, signing, verifying.
    Mayo(MayoArgs),
    /// The delay function: squaring, proving, verifying, and working for a timelord.
    Vdf(crate::vdf::args::VdfArgs),
    /// Spilled values of assembly: find them, move them into free registers, check and measure.
    Respill(crate::respill::args::RespillArgs),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one page for each command into a directory.
    Man {
        /// The directory.
        #[arg(short, long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// The inner half of `check --leaks`, run under valgrind.
    #[command(name = "__memcheck", hide = true)]
    Memcheck(MemcheckArgs),
    /// A second series of timings, started by `check --leaks`.
    #[command(name = "__timing", hide = true)]
    Timing(TimingArgs),
    /// The inner half of a race, started by bench.
    #[command(name = "__race", hide = true)]
    Race(RaceArgs),
    /// The fixed workload of a study, started by study.
    #[cfg(feature = "study")]
    #[command(name = "__workload", hide = true)]
    Workload(WorkloadArgs),
}

/// `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Subjects: mayo, mayo/round3, mayo/round2/mayo5, magma, integer, vdf. Default: everything.
    #[arg(default_value = "")]
    pub(crate) what: String,
    /// Only the quick part: record 0 of the known answers, fewer invalid inputs.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Only the known answers, all records of them.
    #[arg(long, conflicts_with = "quick")]
    pub(crate) known_answers: bool,
    /// Look for leaks of secrets instead. WHAT may also be "planted": only the leaks that the checks must find. Default:
    /// magma, and mayo/round3/mayo1.
    #[arg(long, conflicts_with_all = ["quick", "known_answers"])]
    pub(crate) leaks: bool,
    /// Only these means.
    #[arg(long, value_enum, value_name = "NAME", value_delimiter = ',', requires = "leaks")]
    pub(crate) means: Vec<MeansName>,
    /// Seconds for each series of timings: 60, or a million samples where the operation is shorter than 50 us.
    #[arg(long, value_name = "N", value_parser = seconds, requires = "leaks")]
    pub(crate) seconds: Option<f64>,
}

/// A way to look for leaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MeansName {
    /// Runs on several secrets, compared instruction by instruction on this processor.
    Traced,
    /// Every instruction that ran, against a list of those whose time does not depend on data.
    Instructions,
    /// Valgrind's memcheck, with secrets undefined.
    Valgrind,
    /// Fixed secrets against random ones, by the clock.
    Timing,
}

/// `__memcheck`.
#[derive(Debug, Args)]
pub(crate) struct MemcheckArgs {
    /// As for check.
    #[arg(default_value = "")]
    pub(crate) what: String,
}

/// `__timing`.
#[derive(Debug, Args)]
pub(crate) struct TimingArgs {
    /// The operation's path, or planted/NAME.
    pub(crate) what: String,
    /// Its backend, or the planted leak's tier.
    pub(crate) of: String,
    /// Samples after which it ends.
    #[arg(long)]
    pub(crate) samples: u64,
    /// Nanoseconds after which it ends.
    #[arg(long)]
    pub(crate) nanoseconds: u64,
    /// Turns of the loop planted behind it.
    #[arg(long)]
    pub(crate) turns: u32,
    /// What classes and cases are drawn with.
    #[arg(long)]
    pub(crate) seed: u64,
}

/// A number of threads; 0 for one on each core.
pub(crate) fn threads() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(0..=Threads::MOST as u64)
}

/// Where the figures go.
#[derive(Clone, Debug, Args)]
pub(crate) struct Output {
    /// Print CSV.
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Store the record as DIR/MACHINE/DATE-NAME.json; without `=DIR`, in `records`.
    // With a space, the DIR of `bench --save mayo` would swallow the subject.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "records")]
    pub(crate) save: Option<PathBuf>,
    /// Store every sample with the record, compressed; without it, the record is a summary.
    #[arg(long, requires = "save")]
    pub(crate) save_samples: bool,
    /// Store a remark on the conditions of the run, such as "made while other work ran".
    #[arg(long, value_name = "TEXT")]
    pub(crate) remark: Option<String>,
}

/// The form of a race's figures on a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum StyleName {
    /// A table of ratios with their intervals and verdicts.
    #[default]
    Table,
    /// Clusters of core cycles for 1,000 units of work, each with its share of the samples: "99%: 11719".
    Histogram,
}

/// `bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Subjects: a path's first components, `*` for any one of them; "all" for everything. A primitive's name alone
    /// stands for its headline operations.
    #[arg(default_value = "")]
    pub(crate) what: String,
    /// Only these variants, by name, beside the baseline.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// The variant that the others are compared with.
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<String>,
    /// List the subjects and their variants instead of racing them.
    #[arg(long)]
    pub(crate) list: bool,
    /// Race two commands instead: wall, user and system time and peak memory, in pairs. They run without a shell; for one,
    /// write `sh -c '...'`.
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = ["what", "only", "baseline", "list", "launches", "core"])]
    pub(crate) process: Vec<String>,
    /// With --process: refuse two commands that print different output.
    #[arg(long, requires = "process")]
    pub(crate) same_output: bool,
    /// How the figures are printed.
    #[arg(long, value_enum, value_name = "NAME", default_value_t, conflicts_with_all = ["list", "csv", "process"])]
    pub(crate) style: StyleName,
    #[command(flatten)]
    pub(crate) effort: Effort,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The baseline: a variant's name, such as avx2 or liboqs-clang-native.
    pub(crate) a: String,
    /// The challenger.
    pub(crate) b: String,
    /// The subjects, as for bench.
    #[arg(long = "on", value_name = "WHAT", default_value = "")]
    pub(crate) what: String,
    #[command(flatten)]
    pub(crate) effort: Effort,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The records. Default: the newest of every study on every machine.
    #[arg(value_name = "RECORD")]
    pub(crate) records: Vec<PathBuf>,
    /// Where the page goes; `-` for standard output.
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub(crate) output: PathBuf,
    /// Where records are kept.
    #[arg(long = "records", value_name = "DIR", default_value = "records")]
    pub(crate) folder: PathBuf,
    /// Include every sample in the page, compressed (megabytes).
    #[arg(long)]
    pub(crate) samples: bool,
    /// Replace a file that exists.
    #[arg(long)]
    pub(crate) force: bool,
}

/// `tune`.
#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    /// The primitive. Default: everything.
    #[arg(default_value = "")]
    pub(crate) what: String,
    /// Measure and show, but write no profile.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) effort: Effort,
}

/// `mayo`.
#[derive(Debug, Args)]
pub(crate) struct MayoArgs {
    #[command(subcommand)]
    pub(crate) job: MayoJob,
}

/// A parameter set by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SetName {
    /// Level 1, small public key.
    Mayo1,
    /// Level 1, small signature.
    Mayo2,
    /// Level 3.
    Mayo3,
    /// Level 5.
    Mayo5,
}

/// The jobs of `mayo`.
#[derive(Debug, Subcommand)]
pub(crate) enum MayoJob {
    /// Make a key pair.
    Keygen {
        /// The parameter set.
        #[arg(long, value_enum)]
        set: SetName,
        /// The round of the specification. Rounds never share a key.
        #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=3))]
        round: u8,
        /// Where the secret key goes, in PEM; `-` for standard output. Round 2: PKCS#8, as oqs-provider writes it. Round 3
        /// has no published identifier; its label is "LANEWORK MAYO ROUND 3 PRIVATE KEY".
        #[arg(long, value_name = "FILE")]
        secret_key: PathBuf,
        /// Where the public key goes, in PEM; `-` for standard output. Round 2: SPKI. Round 3: the label "LANEWORK MAYO
        /// ROUND 3 PUBLIC KEY".
        #[arg(long, value_name = "FILE")]
        public_key: PathBuf,
        /// Replace files that exist.
        #[arg(long)]
        force: bool,
    },
    /// Sign files of any size. The signature of one file goes to standard output or --output, those of several to FILE.sig
    /// beside each.
    Sign {
        /// The secret key (PEM).
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// Where the signature of a single file goes; `-` for standard output, even if that is a terminal.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Threads for several files; 0 for one on each core.
        #[arg(long, value_name = "N", value_parser = threads())]
        threads: Option<usize>,
        /// Verify each signature before it is written, as a defence against faults.
        #[arg(long)]
        verify: bool,
        /// Replace files that exist.
        #[arg(long)]
        force: bool,
        /// The files to sign; `-` for standard input.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Verify signatures. Each file gets a verdict, in the order given. Exits 2 if one cannot be read or is malformed, else
    /// 1 if one is refused.
    Verify {
        /// The public key (PEM).
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// The signature of a single file. Default: FILE.sig beside each file.
        #[arg(long, value_name = "FILE")]
        signature: Option<PathBuf>,
        /// Threads for several files; 0 for one on each core.
        #[arg(long, value_name = "N", value_parser = threads())]
        threads: Option<usize>,
        /// The files that were signed; `-` for standard input.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
}

/// `__race`.
#[derive(Debug, Args)]
pub(crate) struct RaceArgs {
    /// The subject's path.
    pub(crate) subject: String,
    /// The baseline.
    #[arg(long)]
    pub(crate) baseline: String,
    /// The challengers.
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<String>,
}

/// `study`.
#[cfg(feature = "study")]
#[derive(Debug, Args)]
pub(crate) struct StudyArgs {
    /// The study's name, or `list`.
    pub(crate) name: String,
    /// Enough runs for publishing.
    #[arg(long)]
    pub(crate) full: bool,
    /// The short run, which is the default.
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// Where the studies are. Without them, the command uses its own copy.
    #[arg(long, value_name = "DIR", default_value = "studies")]
    pub(crate) studies: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
    /// Options of single studies: last, since each begins a heading that the next option would stand under.
    #[command(flatten)]
    pub(crate) own: crate::study::OwnOptions,
}

/// `__workload`.
#[cfg(feature = "study")]
#[derive(Debug, Args)]
pub(crate) struct WorkloadArgs {
    /// Which one: the study's name.
    pub(crate) name: String,
    /// Which configuration of it.
    pub(crate) configuration: String,
    /// The subject within it.
    pub(crate) subject: String,
    /// How many operations.
    #[arg(long, default_value_t = 1000)]
    pub(crate) count: usize,
}
