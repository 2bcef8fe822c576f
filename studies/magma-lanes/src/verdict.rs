//! What the report claimed and what the races say, in words drawn from the figures.
#![forbid(unsafe_code)]

use crate::subjects::REPORT;
use lanework_race::table::{percent, times};
use lanework_race::verdict::Verdict;
use serde::Serialize;

use super::flags;
use super::floor::Share;
use super::gcc;
use super::question::{Plan, gbit};
use super::races::{Measured, SCALAR};

pub(super) const CONSTANT: &str = "magma/lanes/constant";
pub(super) const BUFFERS: &str = "magma/lanes/buffers";
/// The report's program as it was: eight blocks, bodies in their places, aligned.
pub(super) const ALL: &str = "report-avx2-aligned";
/// Ratios this close to the report's count as the report's: its compiler and core were different.
const NEAR: f64 = 0.15;

/// A claim, decided.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Answer {
    pub(super) claim: String,
    pub(super) verdict: String,
    pub(super) reason: String,
}

/// A word for one comparison.
fn word(found: &Measured, subject: &str, variant: &str, baseline: &str) -> String {
    found.row(subject, variant, baseline).map_or_else(|| "NOT HERE".to_owned(), |row| row.lane().to_string())
}

fn ratio(found: &Measured, subject: &str, variant: &str, baseline: &str) -> String {
    found.ratio(subject, variant, baseline).map_or_else(|| "not measured".to_owned(), times)
}

/// The speed-up itself.
fn speedup(plan: &Plan, found: &Measured) -> Answer {
    let claim = format!(
        "SIMD makes encryption ×{} as fast (the printed times give ×{:.3})",
        plan.original.claimed, plan.original.speedup
    );
    let Some(row) = found.row(CONSTANT, ALL, SCALAR) else {
        let reason = "the eight blocks of AVX2 cannot run here".to_owned();
        return Answer { claim, verdict: "NOT HERE".to_owned(), reason };
    };
    let off = row.ratio / plan.original.claimed;
    let verdict = match row.verdict {
        Verdict::Faster if (off.ln()).abs() <= (1.0 + NEAR).ln() => "HOLDS",
        Verdict::Faster if off > 1.0 => "HOLDS, AND MORE",
        Verdict::Faster => "HOLDS, BUT LESS",
        Verdict::CannotTell => "CANNOT TELL",
        Verdict::Void => "VOID",
        Verdict::Same | Verdict::Slower => "DOES NOT HOLD",
    };
    let real = found.row(BUFFERS, ALL, SCALAR).map_or_else(
        || "real buffers were not measured".to_owned(),
        |row| format!("{} on real buffers of 16 KiB", times(row.ratio)),
    );
    let reason = format!("{} in the report's loop, {real}", times(row.ratio));
    Answer { claim, verdict: verdict.to_owned(), reason }
}

/// The four measures.
fn measures(plan: &Plan, found: &Measured) -> Vec<Answer> {
    let [eight, inline, aligned, compiler] = &plan.original.measures;
    let none = "table-scalar-calls (leaks)";
    let answer =
        |claim: &String, verdict: String, reason: String| Answer { claim: claim.clone(), verdict, reason };
    let mut all = vec![
        answer(
            eight,
            word(found, BUFFERS, "report-avx2-calls", none),
            format!(
                "alone, with calls left in: {} in the report's loop, {} on real buffers",
                ratio(found, CONSTANT, "report-avx2-calls", none),
                ratio(found, BUFFERS, "report-avx2-calls", none)
            ),
        ),
        answer(
            inline,
            word(found, BUFFERS, SCALAR, none),
            format!(
                "alone, on one block: {} in the report's loop, {} on real buffers; taken out of the finished eight blocks they \
                 run at {} of the speed",
                ratio(found, CONSTANT, SCALAR, none),
                ratio(found, BUFFERS, SCALAR, none),
                ratio(found, BUFFERS, "report-avx2-calls-aligned", ALL)
            ),
        ),
        answer(
            aligned,
            found.row(BUFFERS, "report-avx2", ALL).map_or_else(
                || "NOT HERE".to_owned(),
                // What is left out is the variant: where that is no slower, the measure does not pay.
                |row| match row.verdict {
                    Verdict::Slower => format!("PAYS {}", times(1.0 / row.ratio)),
                    Verdict::Same | Verdict::Faster => format!("DOES NOT PAY ({})", times(1.0 / row.ratio)),
                    Verdict::Void => row.lane().to_string(),
                    Verdict::CannotTell => {
                        format!("CANNOT TELL (effects below {} drown here)", percent(row.detectable))
                    }
                },
            ),
            format!(
                "loads that ask for no alignment run at {} on aligned buffers, at {} on buffers one byte off and at {} on \
                 buffers 16 bytes off",
                ratio(found, BUFFERS, "report-avx2", ALL),
                ratio(found, BUFFERS, "report-avx2+offset=1", ALL),
                ratio(found, BUFFERS, "report-avx2+offset=16", ALL)
            ),
        ),
    ];
    all.push(flags_answer(compiler, found));
    all
}

fn flags_answer(claim: &str, found: &Measured) -> Answer {
    let ns = |configuration: &str, build: &str| {
        found.flags.lines.iter().find(|l| l.configuration == configuration && l.build == build).map(|l| l.ns)
    };
    // The table has the other loop, too.
    let of = |configuration: &str| -> Vec<String> {
        let ratio = |profile| Some(ns(configuration, profile)? / ns(configuration, "")?);
        let built = flags::BUILDS.iter();
        built.filter_map(|(profile, what, _)| Some(format!("{} at {what}", times(ratio(profile)?)))).collect()
    };
    let (configuration, parts) = [REPORT, SCALAR]
        .map(|configuration| (configuration, of(configuration)))
        .into_iter()
        .find(|(_, parts)| !parts.is_empty())
        .unwrap_or_default();
    let (verdict, reason) = if parts.is_empty() {
        ("NOT HERE".to_owned(), "no build under other flags lies beside this one".to_owned())
    } else {
        let row = |profile| found.row(&flags::subject(REPORT), &flags::label(REPORT, profile), REPORT);
        // Beside a build without optimisation, this build is the one that may pay.
        let verdict = match (row("study-native"), row("study-o0").or_else(|| row("study-o1"))) {
            (Some(native), _) => format!("THIS CPU'S OWN FLAGS: {}", native.lane()),
            (None, Some(plain)) if plain.verdict == Verdict::Slower => {
                format!("OPTIMISATION PAYS {}", times(1.0 / plain.ratio))
            }
            (None, Some(plain)) => format!("OPTIMISATION: {}", plain.verdict),
            (None, None) => "NOT HERE".to_owned(),
        };
        (verdict, format!("{configuration} takes {} of its time", parts.join(", ")))
    };
    let Some((by_gcc, why)) = gcc_answer(found) else {
        return Answer { claim: claim.to_owned(), verdict, reason };
    };
    // The report's compiler decides; ours is said after it.
    Answer { claim: claim.to_owned(), verdict: by_gcc, reason: format!("{why}; in Rust: {reason}") }
}

/// What gcc's flags are worth on eight blocks, else on one.
fn gcc_answer(found: &Measured) -> Option<(String, String)> {
    let ns = |configuration: &str, flags: &str| {
        let build = format!("gcc {flags}");
        found.flags.gcc.iter().find(|l| l.configuration == configuration && l.build == build).map(|l| l.ns)
    };
    let row = |configuration: &str, flags: &str| {
        let label = |flags: &str| flags::label(configuration, &format!("gcc {flags}"));
        found.row(&flags::subject(configuration), &label(flags), &label(gcc::FLAGS[0]))
    };
    let configuration =
        [1, 0].map(|i| gcc::LOOPS[i].1).into_iter().find(|name| row(name, "-O0").is_some())?;
    let mut verdict = match row(configuration, "-O0")? {
        r if r.verdict == Verdict::Slower => format!("gcc: OPTIMISATION PAYS {}", times(1.0 / r.ratio)),
        r => format!("gcc: OPTIMISATION: {}", r.verdict),
    };
    if let Some(plain) = row(configuration, "-O3") {
        verdict.push_str(&match plain.verdict {
            Verdict::Slower => format!(", -march=native PAYS {}", times(1.0 / plain.ratio)),
            other => format!(", -O3 without -march=native: {other}"),
        });
    }
    let parts: Vec<String> = gcc::FLAGS[1..]
        .iter()
        .filter_map(|flags| {
            let ratio = ns(configuration, flags)? / ns(configuration, gcc::FLAGS[0])?;
            (ratio > 0.0 && ratio.is_finite()).then(|| format!("{} at {flags}", times(ratio)))
        })
        .collect();
    Some((
        verdict,
        format!("{configuration} takes {} of its time at gcc {}", parts.join(", "), gcc::FLAGS[0]),
    ))
}

/// Why the report's figure is what it is, as far as this run shows.
pub(super) fn why(plan: &Plan, found: &Measured, shares: &[Share]) -> Vec<String> {
    let mut lines = Vec::new();
    let ns = |subject: &str, variant: &str| found.ns(subject, variant);
    if let Some((constant, real)) = ns(CONSTANT, ALL).zip(ns(BUFFERS, ALL)) {
        lines.push(format!(
            "The report's loop encrypts the same block eight times in a buffer that never leaves the first cache, and looks at the first \
             block only. Real buffers of 16 KiB take {} of its time for each block ({:.2} against {:.2} Gbit/s): the loop {} the \
             design.",
            times(real / constant),
            gbit(real),
            gbit(constant),
            if (real / constant).ln().abs() < 0.1 { "does not flatter" } else if real > constant { "flatters" } else { "is unkind to" }
        ));
    }
    if let Some((row, wide)) = ns(CONSTANT, ALL).zip(ns(CONSTANT, "avx2+blocks=128")) {
        lines.push(format!(
            "Its 32 rounds are one chain in which each instruction waits for the one before. Eight look-ups a round, of which each is \
             masked down to one byte in four, do the work of two; 128 blocks in byte planes, also in AVX2, take {} less time for a \
             block in the same loop.",
            times(row / wide)
        ));
    }
    if let Some(share) = shares.iter().find(|s| s.variant == REPORT).and_then(|s| s.share) {
        lines.push(format!(
            "On real buffers it reaches {} of what its own count of instructions allows: the rest is waiting, which more blocks at once \
             would fill.",
            percent(share)
        ));
    }
    if let Some((ours, theirs)) = ns(CONSTANT, "avx512").zip(ns(CONSTANT, ALL)) {
        lines.push(format!(
            "Eight blocks are too few for any design: AVX-512 with eight takes {} of the report's time a block, and {} with 128.",
            times(ours / theirs),
            ns(CONSTANT, "avx512+blocks=128").map_or_else(|| "-".to_owned(), |wide| times(wide / theirs))
        ));
    }
    if let Some(here) = ns(CONSTANT, ALL) {
        let there = plan.original.vector.ns;
        lines.push(format!(
            "An operation of the report's took {there} ns, which is {:.1} a round; this rebuilding of its design with byte \
             shuffles takes {:.0}, or {:.1} a round. A core of its kind is not so much slower, so its f_simd is not this one; one look-up in memory \
             for each lane (a gather) would take about as long as it did. Its source is not shown, and this remains an inference.",
            there / 32.0,
            here * 8.0,
            here * 8.0 / 32.0
        ));
    }
    if let Some(scalar) = ns(CONSTANT, SCALAR) {
        let there = plan.original.scalar.ns;
        lines.push(format!(
            "The scalar code took {there} ns a block there and takes {scalar:.1} here; a speed-up is as large as its baseline is slow."
        ));
    }
    lines.push(
        "Tables indexed by secret bytes, the scalar code's and every deployed peer's, leak through the cache; the report's eight blocks \
         do not, which it does not mention."
            .to_owned(),
    );
    lines
}

/// All claims, in the report's order.
pub(super) fn answers(plan: &Plan, found: &Measured) -> Vec<Answer> {
    let mut all = vec![speedup(plan, found)];
    all.extend(measures(plan, found));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::{found, row};

    fn decided(rows: Vec<lanework_race::record::ResultRow>) -> Vec<String> {
        let plan = crate::question::tests::plan();
        answers(&plan, &found(rows)).into_iter().map(|a| a.verdict).collect()
    }

    #[test]
    fn words_follow_the_figures() {
        let speedup = |ratio, verdict| decided(vec![row(CONSTANT, ALL, SCALAR, ratio, verdict)])[0].clone();
        assert_eq!(speedup(2.2, "faster"), "HOLDS");
        assert_eq!(speedup(5.0, "faster"), "HOLDS, AND MORE");
        assert_eq!(speedup(1.4, "faster"), "HOLDS, BUT LESS");
        assert_eq!(speedup(0.9, "slower"), "DOES NOT HOLD");
        assert_eq!(speedup(1.0, "cannot tell"), "CANNOT TELL");
        assert!(decided(Vec::new()).iter().all(|v| v == "NOT HERE"));
        // Alignment pays when leaving it out is slower.
        let aligned =
            |ratio, verdict| decided(vec![row(BUFFERS, "report-avx2", ALL, ratio, verdict)])[3].clone();
        assert_eq!(aligned(0.5, "slower"), "PAYS ×2.00");
        assert!(aligned(1.0, "same").starts_with("DOES NOT PAY"));
    }
}
