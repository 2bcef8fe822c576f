//! Whole programs in pairs of runs: as rewritten for each home against the original, and the original against itself.
#![forbid(unsafe_code)]

use std::time::Instant;

use lanework_race::stats::{Rng, interval};
use lanework_race::verdict::{Rules, judge, noise_floor};

use super::list::{Build, Here, run};
use super::survey::Surveyed;

/// Prints the ratio of the original's time to each home's, with its interval. Above 1 the rewrite is faster.
///
/// # Errors
/// A program is not built or fails, or there are too few pairs.
pub(crate) fn race(here: &Here, build: &Build, surveyed: &Surveyed, pairs: usize) -> Result<(), String> {
    let folder = || tempfile::tempdir().map_err(|e| format!("a temporary folder: {e}"));
    let original = folder()?;
    here.program(build, &build.text, original.path())?;
    let mut noise = 0.0;
    let rules = Rules::default();
    let mut homes = vec![("itself", &build.text)];
    homes.extend(surveyed.rewritten.iter().map(|(home, text)| (*home, text)));
    for (home, text) in homes {
        let other = folder()?;
        here.program(build, text, other.path())?;
        let timed = |folder: &tempfile::TempDir| {
            let begun = Instant::now();
            run(build, folder.path()).map(|_| begun.elapsed().as_secs_f64())
        };
        timed(&original)?;
        timed(&other)?;
        let mut rng = Rng::new(1);
        let mut ratios = Vec::new();
        for _ in 0..pairs {
            let first = rng.below(2) == 0;
            let before = if first { Some(timed(&original)?) } else { None };
            let theirs = timed(&other)?;
            let ours = before.map_or_else(|| timed(&original), Ok)?;
            ratios.push((ours / theirs).ln());
        }
        let found = interval(&[ratios], rules.alpha, 2000, 1)
            .map_err(|e| format!("{pairs} pairs are too few: {e}"))?;
        let found = found.exp();
        if home == "itself" {
            noise = noise_floor(found);
        }
        let verdict = if home == "itself" { "control" } else { judge(found, noise, &rules).verdict.word() };
        println!(
            "{} against {home}: {:.4} [{:.4}, {:.4}] {verdict}, noise floor {:.2} %, {pairs} pairs",
            build.name(),
            found.estimate,
            found.low,
            found.high,
            100.0 * noise
        );
    }
    Ok(())
}
