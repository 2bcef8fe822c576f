//! One file: what the analysis says about it, and its proved rewrite for each home.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use lanework_respill::homes::Bank;
use lanework_respill::plan::{Plan, Policy, Stays, Wish, plan};
use lanework_respill::rewrite::{Options as Rewriting, rewrite};
use lanework_respill::validate::{Failure, Options, validate};
use lanework_respill::{Analysis, Program};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// How often something occurs, by its name.
pub(crate) type Counts = BTreeMap<String, usize>;

/// What the analysis says about a file, as the committed table has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Survey {
    /// SHA-256 of the assembly: other sources or another compiler give a different one.
    pub(crate) text: String,
    /// Why the file is refused as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<String>,
    /// Its lines.
    pub(crate) lines: usize,
    /// Its functions.
    pub(crate) functions: usize,
    /// Functions whose slots cannot be analysed.
    pub(crate) opaque: usize,
    /// Cells of all frames.
    pub(crate) slots: usize,
    /// SHA-256 of what the original's test prints, where some home is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) prints: Option<String>,
    /// Functions with moved slots that no test enters: their rewrites are proved and assembled, and never run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unreached: Vec<String>,
    /// Opaque functions by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) why_opaque: Counts,
    /// Slots by their purpose.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) classes: Counts,
    /// The outcome for the slots, by home.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) homes: BTreeMap<String, Moved>,
}

/// The rewrite for one home.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Moved {
    /// Slots that moved; 0 if nothing is accepted.
    pub(crate) moved: usize,
    /// Why there is no rewrite although slots could move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
    /// Slots that stay, by the plan's reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) stay: Counts,
    /// Slots that the judge sent back, by its reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) sent_back: Counts,
}

/// A survey, and the accepted texts.
pub(crate) struct Surveyed {
    pub(crate) survey: Survey,
    pub(crate) rewritten: BTreeMap<Bank, String>,
    /// The functions that moved slots belong to.
    pub(crate) touched: BTreeMap<Bank, BTreeSet<String>>,
    /// Processor time of one analysis, the assembler's included, if Linux tells it.
    pub(crate) seconds: Option<f64>,
}

/// The processor time of this thread and of finished child processes, in seconds.
fn processor_time() -> Option<f64> {
    let own = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let own: f64 = own.split_whitespace().next()?.parse().ok()?;
    // The name in parentheses may have spaces. User and system time of children come 13 and 14 fields behind it, in ticks of 10 ms.
    let all = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields = all.rsplit_once(") ")?.1.split(' ').skip(13).take(2);
    let ticks: f64 = fields.filter_map(|field| field.parse::<f64>().ok()).sum();
    Some(own / 1e9 + ticks / 100.0)
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The name of an enumeration's variant, without its content.
fn variant(of: &impl Debug) -> String {
    let said = format!("{of:?}");
    said.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default().to_owned()
}

fn count(counts: &mut Counts, name: String) {
    *counts.entry(name).or_default() += 1;
}

/// Analyses a text and rewrites it for each home, without a run. A rewrite that is accepted like this is proved.
pub(crate) fn survey(name: &str, text: &str, homes: &[Bank]) -> Surveyed {
    let mut survey =
        Survey { text: sha256(text.as_bytes()), lines: text.lines().count(), ..Survey::default() };
    let (mut rewritten, mut touched) = (BTreeMap::new(), BTreeMap::new());
    let begun = processor_time();
    let program = match Program::new(name, text) {
        Ok(program) => program,
        Err(e) => {
            survey.refused = Some(e.to_string());
            return Surveyed { survey, rewritten, touched, seconds: None };
        }
    };
    let analysis = Analysis::new(program);
    let seconds = begun.zip(processor_time()).map(|(begun, end)| end - begun);
    count_slots(&analysis, &mut survey);
    for &home in homes {
        let (moved, accepted) = proved(&analysis, home);
        if let Some((plan, text)) = accepted {
            rewritten.insert(home, text);
            let name = |&(unit, _): &(usize, usize)| analysis.units[unit].function.name().to_owned();
            touched.insert(home, plan.homes.keys().map(name).collect());
        }
        survey.homes.insert(home.name().to_owned(), moved);
    }
    Surveyed { survey, rewritten, touched, seconds }
}

fn count_slots(analysis: &Analysis, survey: &mut Survey) {
    for unit in &analysis.units {
        survey.functions += 1;
        survey.slots += unit.slots.len();
        if let Some(why) = &unit.opaque {
            survey.opaque += 1;
            count(&mut survey.why_opaque, variant(why));
        }
        unit.slots.iter().for_each(|slot| count(&mut survey.classes, variant(&slot.class)));
    }
}

/// The rewrite that is accepted without inputs: slots with an objection stay, and the rest is judged again.
fn proved(analysis: &Analysis, bank: Bank) -> (Moved, Option<(Plan, String)>) {
    let mut out = Moved::default();
    let mut wish = Wish {
        banks: vec![(bank, None)],
        policy: Policy::Hottest,
        counts: None,
        stay: BTreeSet::new(),
        only: BTreeSet::new(),
        operands: true,
    };
    loop {
        let plan = plan(analysis, &wish);
        out.stay = Counts::new();
        for why in plan.stays.values() {
            match why {
                // Counted by the judge's reason.
                Stays::Aliased => (),
                Stays::Refused(objection) => count(&mut out.stay, format!("Refused{}", variant(objection))),
                Stays::Class(_) => count(&mut out.stay, "Class".to_owned()),
                _ => count(&mut out.stay, variant(why)),
            }
        }
        if plan.homes.is_empty() {
            return (out, None);
        }
        let failed = |out: Moved, why: String| (Moved { failed: Some(why), ..out }, None);
        let text = match rewrite(analysis, &plan, Rewriting::default()) {
            Ok(made) => made.text,
            Err(e) => return failed(out, e.to_string()),
        };
        let program = match Program::new(&format!("{} rewritten", analysis.program.file), &*text) {
            Ok(program) => program,
            Err(e) => return failed(out, e.to_string()),
        };
        match validate(analysis, &program, &[], &Options::default()) {
            Ok(_) => {
                out.moved = plan.homes.len();
                return (out, Some((plan, text)));
            }
            Err(Failure::Refused(refused)) => {
                let before = wish.stay.len();
                for key in refused.stay().into_iter().filter(|key| plan.homes.contains_key(key)) {
                    if wish.stay.insert(key) {
                        let mut reasons = refused.reasons.iter();
                        let why = reasons.find(|why| why.slot().is_some_and(|slot| slot.key == key));
                        count(&mut out.sent_back, why.map_or("", |why| why.name()).to_owned());
                    }
                }
                if wish.stay.len() == before {
                    let first = refused.reasons.first().map_or_else(String::new, ToString::to_string);
                    return failed(out, first);
                }
            }
            Err(e) => return failed(out, e.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\t.globl f\nf:\tmovq %rdi, -8(%rsp)\n\tleaq (%rsi,%rsi), %rdi\n\tmovq -8(%rsp), %rax\n\taddq %rdi, %rax\n\tret\n";

    #[test]
    fn a_spilled_value_is_counted_and_moved() {
        let surveyed = survey("f.s", TEXT, &[Bank::Mm, Bank::K]);
        assert_eq!((surveyed.survey.functions, surveyed.survey.slots, surveyed.survey.opaque), (1, 1, 0));
        assert_eq!(surveyed.survey.homes["mm"].moved, 1, "{:?}", surveyed.survey);
        assert!(surveyed.rewritten[&Bank::Mm].contains("%mm0"));
        assert!(surveyed.touched[&Bank::K].contains("f"));
        assert!(surveyed.seconds.is_some_and(|seconds| seconds > 0.0), "{:?}", surveyed.seconds);
    }

    #[test]
    fn what_no_assembler_reads_is_refused_as_a_file() {
        let why = survey("f.s", "f: nonsense %rax\n", &[Bank::Mm]).survey.refused.expect("refused");
        assert!(why.starts_with("f.s:1"), "{why}");
    }
}
