//! The findings, sentence by sentence: each follows from a verdict, and none says more than its verdict.
#![forbid(unsafe_code)]

use lanework_race::record::ResultRow;
use lanework_race::table::{percent, times};
use lanework_race::verdict::Verdict;

use super::question::Plan;
use super::races::{Measured, OFF, ON, THEIRS_OFF, THEIRS_ON, THEIRS_ONE};

/// A comparison in words.
fn said(row: &ResultRow) -> String {
    let ratio = times(row.ratio);
    match row.verdict {
        Verdict::Faster => format!("{ratio}: faster"),
        Verdict::Slower => format!("{ratio}: slower"),
        Verdict::Same => format!("{ratio}: the same"),
        Verdict::CannotTell => format!("cannot tell (seen would be {} or more)", percent(row.detectable)),
        Verdict::Void => format!("{ratio}, but void: the A/A control failed"),
    }
}

/// The sentences.
pub(super) fn told(plan: &Plan, measured: &Measured) -> Vec<String> {
    let mut told = vec![format!(
        "There, chiavdf with IFMA ran at {} of its speed without, though its 512-bit multiplication won ({} cycles with conversions \
         against GMP's {}). Suspected: {}.",
        times(plan.their_gain()),
        plan.original.multiply.ifma_converted,
        plan.original.multiply.gmp,
        plan.original.cause
    )];
    let theirs = measured.row(THEIRS_ON, THEIRS_OFF);
    match theirs {
        Some(row) => {
            told.push(format!("The same programs here, on against off: {}.", said(row)));
            told.push(cause(row.verdict).to_owned());
        }
        None => told.push(
            "The report's own programs did not race here, so this run says nothing of its loss.".to_owned(),
        ),
    }
    match measured.row(ON, OFF) {
        Some(row) => told.push(format!(
            "Ours, on against off, one algorithm: {}. Numbers stay in one form for the whole of a phase there, and what IFMA \
             serves is the rows of the GCDs, not the products alone.",
            said(row)
        )),
        None => told.push("Ours with IFMA and without did not race here; what is not here says why.".to_owned()),
    }
    for (name, baseline, what) in [
        (OFF, THEIRS_ONE, "Ours without IFMA against chiavdf's one thread"),
        (ON, THEIRS_ONE, "Ours with IFMA against chiavdf's one thread"),
        (OFF, THEIRS_OFF, "Ours without IFMA, one thread, against chiavdf's two"),
        (ON, THEIRS_OFF, "Ours with IFMA, one thread, against chiavdf's two"),
    ] {
        if let Some(row) = measured.row(name, baseline) {
            told.push(format!("{what}: {}.", said(row)));
        }
    }
    told
}

/// Which cause of the loss holds here, as far as the same programs show one.
fn cause(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Slower => {
            "So the loss is not specific to the report's laptop. Sampled, large multiplications take about 5 % of chiavdf's squaring, and the two \
             GCDs two thirds. Faster multiplications could win at most those 5 %, so the loss went into converting numbers. Nothing measured \
             here excludes the instruction cache, which the report suspected: the laptop's core has another one."
        }
        Verdict::Faster => {
            "So its loss does not show on this machine; what caused it there cannot be told from here."
        }
        Verdict::Same | Verdict::CannotTell | Verdict::Void => {
            "So its loss was not seen here: multiplications are about 5 % of chiavdf's squaring, and neither a loss nor a gain in them need be \
             seen in the whole. What caused it there cannot be told from here."
        }
    }
}
