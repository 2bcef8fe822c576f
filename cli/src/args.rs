//! The command line as types.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use clap::builder::{NonEmptyStringValueParser, RangedU64ValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use lanework_cpu::Threads;
use lanework_study::races::{Effort, seconds};
use lanework_suite::device::DeviceChoice;

/// Cryptography that uses every lane of your machine: checked, raced, and the fastest kept.
///
/// Without a command, it runs the tour (about 45 seconds): checks every backend that can run, races them, and prints a bar for
/// each primitive and lane, then whether the lane pays.
#[derive(Debug, Parser)]
#[command(name = "lanework", version, propagate_version = true, max_term_width = 110)]
#[command(
    after_help = "Exit codes: 0 success; 1 refused (signature, tag, key, proof, failed check, regression); \
    2 usage error, file error or malformed input; 3 unavailable here."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    /// Tour only: print the whole machine, every race with its interval, and every remark.
    #[arg(short, long)]
    pub(crate) verbose: bool,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Cli {
    /// Whether the command reads or makes keys of its user's.
    pub(crate) fn reads_keys(&self) -> bool {
        match &self.command {
            Some(Command::Magma(_)) => true,
            Some(Command::Mayo(a)) => !matches!(a.job, MayoJob::Verify { .. }),
            _ => false,
        }
    }

    /// Whether the command prints its findings. Commands with `-o` check their output themselves, and a timelord's worker
    /// answers over its connection.
    pub(crate) fn prints(&self) -> bool {
        match &self.command {
            _ if self.global.json => true,
            Some(Command::Magma(a)) => matches!(a.job, crate::magma::args::MagmaJob::Mac(_)),
            Some(Command::Mayo(a)) => matches!(a.job, MayoJob::Verify { .. }),
            Some(Command::Vdf(a)) => matches!(a.job, crate::vdf::args::VdfJob::Verify(_)),
            Some(Command::Report(_) | Command::Man { .. }) => false,
            _ => true,
        }
    }
}

// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Print one JSON object instead of text.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Use this backend: NAME, or PRIMITIVE=NAME,... Overrides LANEWORK_BACKEND and the profile.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) backend: Option<String>,
    /// Devices to use: none, cuda, all, or a list of numbers. With ptx, this CPU executes the shipped PTX. Several devices share
    /// each batch by the rates that `tune` measured. By default, checks use every device and jobs use none.
    #[arg(long, global = true, value_name = "N,...")]
    pub(crate) device: Option<DeviceChoice>,
    /// Also race other people's implementations (needs the `peers` feature and `cargo xtask peers`).
    #[arg(long, global = true)]
    pub(crate) peers: bool,
    /// Directory of the peers' shared libraries.
    #[arg(long, global = true, value_name = "DIR", env = "LANEWORK_PEERS", default_value = "target/peers")]
    pub(crate) peers_dir: PathBuf,
}

/// The commands. Arguments are built when their command is named: all of them take longer than a signature to verify. By then a doc
/// comment of an `Args` type would replace that of the command, so such types have plain comments.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Show the CPU, the backends (chosen, available, or unavailable and why), the profile, the clocks, and what limits
    /// measurements here.
    Doctor,
    /// Check every backend: known answers, agreement with the specification, invalid inputs.
    Check(CheckArgs),
    /// Race the backends of a subject against its baseline, in pairs.
    Bench(BenchArgs),
    /// Race two variants of a subject against each other.
    Compare(CompareArgs),
    /// Measure which backend and thread count are fastest on this machine, and store them as its profile.
    Tune(TuneArgs),
    /// Run a study: answer a published question on this machine.
    #[cfg(feature = "study")]
    Study(StudyArgs),
    /// Render records as one HTML page that needs no network.
    Report(ReportArgs),
    /// List past records, compare two, plot one figure, or look for regressions on this machine.
    History(crate::history::HistoryArgs),
    /// Magma and GOST 28147-89: encrypt files and pipes, seal messages, compute MACs, wrap keys.
    Magma(crate::magma::args::MagmaArgs),
    /// MAYO signatures: generate keys, sign, verify.
    Mayo(MayoArgs),
    /// The delay function: square, prove, verify, or work for a timelord.
    Vdf(crate::vdf::args::VdfArgs),
    /// Spilled values in assembly: find them, move them into free registers, check and measure.
    Respill(crate::respill::args::RespillArgs),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one page for each command into a directory.
    Man {
        /// Write the pages into this directory.
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

// `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Subjects: mayo, mayo/round3, mayo/round2/mayo5, magma, integer, vdf. Default: everything.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) what: Option<String>,
    /// Run only the quick checks: record 0 of the known answers, fewer invalid inputs.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Check only the known answers, every record.
    #[arg(long, conflicts_with = "quick")]
    pub(crate) known_answers: bool,
    /// Look for leaks of secrets instead. WHAT may also be "planted": only the leaks that the checks must find. Default:
    /// magma and mayo/round3/mayo1.
    #[arg(long, conflicts_with_all = ["quick", "known_answers"])]
    pub(crate) leaks: bool,
    /// Use only these methods.
    #[arg(long, value_enum, value_name = "NAME,...", value_delimiter = ',', requires = "leaks")]
    pub(crate) means: Vec<MeansName>,
    /// Seconds for each series of timings. Default: 60, or a million samples if the operation is shorter than 50 us.
    #[arg(long, value_name = "N", value_parser = seconds, allow_negative_numbers = true, requires = "leaks")]
    pub(crate) seconds: Option<f64>,
}

/// A way to look for leaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MeansName {
    /// Compare runs on several secrets, instruction by instruction, on this processor.
    Traced,
    /// Check every executed instruction against a list of those whose time does not depend on data.
    Instructions,
    /// Run Valgrind's memcheck with secrets undefined.
    Valgrind,
    /// Time fixed secrets against random ones.
    Timing,
}

// `__memcheck`.
#[derive(Debug, Args)]
pub(crate) struct MemcheckArgs {
    /// As for check.
    #[arg(default_value = "")]
    pub(crate) what: String,
}

// `__timing`.
#[derive(Debug, Args)]
pub(crate) struct TimingArgs {
    /// The operation's path, or planted/NAME.
    pub(crate) what: String,
    /// Its backend, or the planted leak's tier.
    pub(crate) of: String,
    /// Stop after this many samples.
    #[arg(long)]
    pub(crate) samples: u64,
    /// Stop after this many nanoseconds.
    #[arg(long)]
    pub(crate) nanoseconds: u64,
    /// Turns of the loop planted behind it.
    #[arg(long)]
    pub(crate) turns: u32,
    /// The seed that classes and cases are drawn with.
    #[arg(long)]
    pub(crate) seed: u64,
}

/// A number of threads; 0 means one per core.
pub(crate) fn threads() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(0..=Threads::MOST as u64)
}

// Where the figures go.
#[derive(Clone, Debug, Args)]
pub(crate) struct Output {
    /// Print CSV.
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Store the record as DIR/MACHINE/DATE-NAME.json; without `=DIR`, in `records`.
    // With a space, the DIR of `bench --save mayo` would swallow the subject.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "records")]
    pub(crate) save: Option<PathBuf>,
    /// Store every sample with the record, compressed; without this, the record is a summary.
    #[arg(long, requires = "save")]
    pub(crate) save_samples: bool,
    /// Store a remark on the conditions of the run, such as "made while other work ran".
    #[arg(long, value_name = "TEXT")]
    pub(crate) remark: Option<String>,
}

/// How a race's figures are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum StyleName {
    /// A table of ratios with their intervals and verdicts.
    #[default]
    Table,
    /// Clusters of core cycles per 1,000 units of work, each with its share of the samples, such as "99%: 11719".
    Histogram,
}

// `bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Subjects: the first components of a path, with `*` for any one component; "all" for everything. A primitive's name
    /// alone selects its headline operations.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) what: Option<String>,
    /// Race only these variants against the baseline.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// The variant that the others are compared with.
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<String>,
    /// List the subjects and their variants instead of racing them.
    #[arg(long)]
    pub(crate) list: bool,
    /// Race every variant against the same variant of this older `lanework` executable.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["baseline", "list", "launches"])]
    pub(crate) old: Option<PathBuf>,
    /// Race two commands instead, in pairs: wall, user and system time, and peak memory. They run without a shell; to use one,
    /// write `sh -c '...'`.
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = ["what", "only", "baseline", "list", "old", "launches", "core"])]
    pub(crate) process: Vec<String>,
    /// With --process: refuse commands whose outputs differ.
    #[arg(long, requires = "process")]
    pub(crate) same_output: bool,
    /// How to print the figures.
    #[arg(long, value_enum, value_name = "NAME", default_value_t, conflicts_with_all = ["list", "csv", "process"])]
    pub(crate) style: StyleName,
    #[command(flatten)]
    pub(crate) effort: Effort,
    #[command(flatten)]
    pub(crate) output: Output,
}

// `compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The baseline: a variant's name, such as avx2 or liboqs-clang-native.
    pub(crate) a: String,
    /// The challenger.
    pub(crate) b: String,
    /// The subjects, as for bench.
    #[arg(long = "on", value_name = "WHAT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) what: Option<String>,
    #[command(flatten)]
    pub(crate) effort: Effort,
    #[command(flatten)]
    pub(crate) output: Output,
}

// `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The records to show. Default: the newest record of every study on every machine.
    #[arg(value_name = "RECORD")]
    pub(crate) records: Vec<PathBuf>,
    /// Where to write the page; `-` for standard output.
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub(crate) output: PathBuf,
    /// Directory of records.
    #[arg(long = "records", value_name = "DIR", default_value = "records")]
    pub(crate) folder: PathBuf,
    /// Include every sample in the page, compressed (megabytes).
    #[arg(long)]
    pub(crate) samples: bool,
    /// Replace an existing file.
    #[arg(long)]
    pub(crate) force: bool,
}

// `tune`.
#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    /// Subjects, as for bench: a primitive's name alone selects its headline operations. Default: every operation that a
    /// command performs.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) what: Option<String>,
    /// Measure and print the results, but write no profile.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Replace a profile of another machine, or one that this version cannot read.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) effort: Effort,
}

// `mayo`.
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

// The jobs of `mayo`.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum MayoJob {
    /// Generate a key pair.
    Keygen {
        /// The parameter set.
        #[arg(long, value_enum)]
        set: SetName,
        /// The round of the specification. Rounds never share a key.
        #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=3))]
        round: u8,
        /// Where to write the secret key (PEM); `-` for standard output. Round 2: PKCS#8, as oqs-provider writes it. Round 3
        /// has no published identifier; its label is "LANEWORK MAYO ROUND 3 PRIVATE KEY".
        #[arg(long, value_name = "FILE")]
        secret_key: PathBuf,
        /// Where to write the public key (PEM); `-` for standard output. Round 2: SPKI. Round 3: the label "LANEWORK MAYO
        /// ROUND 3 PUBLIC KEY".
        #[arg(long, value_name = "FILE")]
        public_key: PathBuf,
        /// Replace existing files.
        #[arg(long)]
        force: bool,
    },
    /// Sign files of any size. The signature of a single file goes to standard output or --output; with several files, each
    /// signature goes to FILE.sig.
    Sign {
        /// The secret key (PEM).
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// Where to write the signature of a single file; `-` for standard output, even if that is a terminal.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Threads for several files; 0 means one per core.
        #[arg(long, value_name = "N", value_parser = threads())]
        threads: Option<usize>,
        /// Verify each signature before writing it, as a defence against faults.
        #[arg(long)]
        verify: bool,
        /// Replace existing files.
        #[arg(long)]
        force: bool,
        /// The files to sign; `-` for standard input.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Verify signatures. Each file gets a verdict, in the order given. Exits 2 if any is unreadable or malformed, otherwise
    /// 1 if any is refused.
    Verify {
        /// The public key (PEM).
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// The signature of a single file. Default: FILE.sig beside each file.
        #[arg(long, value_name = "FILE")]
        signature: Option<PathBuf>,
        /// Threads for several files; 0 means one per core.
        #[arg(long, value_name = "N", value_parser = threads())]
        threads: Option<usize>,
        /// The files that were signed; `-` for standard input.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
}

// `__race`.
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

// `study`.
#[cfg(feature = "study")]
#[derive(Debug, Args)]
pub(crate) struct StudyArgs {
    /// The study's name, or `list`.
    pub(crate) name: String,
    /// Run long enough to publish the results.
    #[arg(long)]
    pub(crate) full: bool,
    /// Run the short version (the default).
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// Directory of studies: those in it are used instead of built-in ones of the same name.
    #[arg(long, value_name = "DIR", default_value = "studies")]
    pub(crate) studies: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
    /// Options of single studies. Last, since each starts a heading that would capture later options.
    #[command(flatten)]
    pub(crate) own: crate::study::OwnOptions,
}

// `__workload`.
#[cfg(feature = "study")]
#[derive(Debug, Args)]
pub(crate) struct WorkloadArgs {
    /// The study's name.
    pub(crate) name: String,
    /// The study's configuration.
    pub(crate) configuration: String,
    /// The subject within it.
    pub(crate) subject: String,
    /// How many operations.
    #[arg(long, default_value_t = 1000)]
    pub(crate) count: usize,
}
