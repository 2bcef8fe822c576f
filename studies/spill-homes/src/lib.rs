//! `spill-homes`: where a register-starved function should keep what does not fit, on this processor.
#![forbid(unsafe_code)]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod builds;
pub mod compile;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod earlier;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod given;
pub mod kernels;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod overview;
pub mod packages;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod page;
pub mod programs;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod question;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod races;
pub mod rows;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod run;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod verdict;

use clap::Args;
use lanework_study::Entry;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use run::run;

/// The study.
pub const ENTRY: Entry = Entry {
    options: Own::augment_args,
    ..Entry::new("spill-homes", [include_str!("../study.toml"), include_str!("../study.md")], run)
};

// The study's own options.
#[derive(Debug, Args)]
#[command(next_help_heading = "The study spill-homes")]
#[group(skip)]
struct Own {
    /// A row's own assembly, and that of its build with values in MMX registers. REBUILT is the baseline with that build's flags.
    /// A name may end in `*`. May be given several times.
    #[arg(long, value_name = "ROW=BASELINE[,MMX[,REBUILT]]")]
    asm: Vec<String>,
    /// Run only these rows.
    #[arg(long, value_name = "ROW", value_delimiter = ',')]
    rows: Vec<String>,
    /// Check every rewrite, and time nothing.
    #[arg(long)]
    validate_only: bool,
    /// Keep the findings about Lanework's own kernels in this machine's profile, "all on the stack" included.
    #[arg(long, conflicts_with = "validate_only")]
    keep: bool,
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn run(
    _: &lanework_study::Session,
    _: &lanework_race::study::Study,
    _: &lanework_study::Options,
) -> Result<lanework_study::Found, lanework_study::Failure> {
    Err(lanework_study::Failure::unavailable("assembly is run on x86-64 Linux only"))
}
