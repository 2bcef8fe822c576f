//! `leak-evidence`: everything known about leaks, as one page and one record.
#![forbid(unsafe_code)]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod evidence;

use lanework_study::Entry;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use evidence::run;

/// The study.
pub const ENTRY: Entry =
    Entry::new("leak-evidence", [include_str!("../study.toml"), include_str!("../study.md")], run);

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn run(
    _: &lanework_study::Session,
    _: &lanework_race::study::Study,
    _: &lanework_study::Options,
) -> Result<lanework_study::Found, lanework_study::Failure> {
    Err(lanework_study::Failure::unavailable("leaks are looked for on Linux on x86-64 only"))
}
