//! What races say about a home: the whole difference, and the parts due to the home, the layout and clearing.
#![forbid(unsafe_code)]

use lanework_race::record::ResultRow;
use lanework_race::stats::Interval;
use lanework_race::verdict::{Verdict, fails};
use lanework_respill::measure::{Job, Role, Variant};
use serde::Serialize;

/// The findings on one home.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Its name, `mm:4/xmm`.
    pub home: String,
    /// Slots that moved there.
    pub slots: usize,
    /// Bytes of stack that no longer hold spilled values.
    pub stack_bytes: usize,
    /// What the code has grown by.
    pub code_bytes: i64,
    /// The rewritten text against the function as it is, in time: above 0 it takes longer.
    pub whole: Part,
    /// The same in one layout: the part due to the home.
    pub home_alone: Option<Part>,
    /// The function as it is in the other layout: the part not due to the home.
    pub layout_alone: Option<Part>,
    /// What clearing homes at the end adds.
    pub wiping: Option<Part>,
}

/// A difference in time as a fraction: above 0 it takes longer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Part {
    /// Its estimate.
    pub more: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// What the race says of it.
    pub verdict: Verdict,
}

impl Part {
    /// From a row's ratio of the baseline's time to the variant's.
    fn of(row: &ResultRow) -> Part {
        let more = |ratio: f64| 1.0 / ratio - 1.0;
        Part { more: more(row.ratio), low: more(row.high), high: more(row.low), verdict: row.verdict }
    }
}

/// Whether the copy of the same bytes differs from its original. It is an A/A control like any other; if it fails, no result of this
/// function counts.
fn copy_fails(job: &Job, rows: &[ResultRow]) -> bool {
    let name = job.variants.iter().find(|v| v.role == Role::Copy).map(|v| &v.name);
    let copy = rows.iter().find(|row| Some(&row.variant) == name);
    copy.is_some_and(|row| fails(Interval { estimate: row.ratio, low: row.low, high: row.high }))
}

/// What the rows of a race say about one variant beside another.
#[must_use]
pub fn part(job: &Job, rows: &[ResultRow], baseline: &str, variant: &str) -> Option<Part> {
    let row = rows.iter().find(|row| row.variant == variant && row.baseline == baseline)?;
    let part = Part::of(row);
    Some(if copy_fails(job, rows) { Part { verdict: Verdict::Void, ..part } } else { part })
}

/// What the rows of a race say about each home.
#[must_use]
pub fn findings(job: &Job, rows: &[ResultRow]) -> Vec<Finding> {
    let Some((stack, _)) = job.variants.split_first() else { return Vec::new() };
    let part = |baseline: &str, variant: &str| part(job, rows, baseline, variant);
    let finding = |v: &Variant| -> Option<Finding> {
        let with = |suffix: &str| format!("{}{suffix}", v.name);
        let (placebo, level, unwiped) = (with("+placebo"), with("+level"), with("+unwiped"));
        Some(Finding {
            home: v.name.clone(),
            slots: v.slots,
            stack_bytes: v.stack_bytes,
            code_bytes: v.code_bytes as i64 - stack.code_bytes as i64,
            whole: part(&stack.name, &v.name)?,
            // Where nothing had to be filled up, the rewritten text has the placebo's layout itself.
            home_alone: part(&placebo, &level).or_else(|| part(&placebo, &v.name)),
            layout_alone: part(&stack.name, &placebo),
            wiping: part(&unwiped, &v.name),
        })
    };
    job.variants.iter().filter(|v| v.role == Role::Home).filter_map(finding).collect()
}
