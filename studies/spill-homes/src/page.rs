//! The study's tables, as the template needs them.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use lanework_race::verdict::Verdict;
use lanework_spill::finding::{Finding, Part};
use lanework_study::markdown::{NONE, strings, table};
use serde::Serialize;

use super::given::MMX;
use super::overview;
use super::question::{Effort, Plan};
use super::races::{Checks, Column, Measured, OWN, Row};

/// Everything that the template names.
#[derive(Serialize)]
pub(super) struct Page {
    question: String,
    title: String,
    their_machine: String,
    their_command: String,
    machine: String,
    command: String,
    checked: String,
    repository: String,
    commit: String,
    claims: String,
    why: Vec<String>,
    launches: u32,
    timed: bool,
    tables: Vec<Table>,
    costs: String,
    told: Vec<String>,
    not_here: Vec<String>,
    remarks: Vec<String>,
}

/// One table.
#[derive(Serialize)]
struct Table {
    title: String,
    note: String,
    text: String,
}

/// The headings of the report, and what stands under them here.
const TABLES: [(&str, &str); 3] = [
    ("kem", "Kem and Scalarmult"),
    ("hash", "Hash, Stream, Onetimeauth, and Secretbox (input length: 16384)"),
    ("xof", "Xof (output length: 32, input length: 16384)"),
];

/// A difference in per cent.
pub(super) fn percent(x: f64) -> String {
    format!("{:+.2}", 100.0 * x + 0.0)
}

/// An interval in per cent, with as many more digits as keep its ends apart.
pub(super) fn between(low: f64, high: f64) -> String {
    let ends = |digits: usize| [low, high].map(|x| format!("{:+.digits$}", 100.0 * x + 0.0));
    let apart = (2..=5).map(ends).find(|[low, high]| low != high);
    apart.unwrap_or_else(|| ends(2)).join(", ")
}

pub(super) fn part(part: &Part) -> String {
    let mark = match part.verdict {
        Verdict::Faster | Verdict::Slower => "*",
        Verdict::Void => " void",
        Verdict::Same | Verdict::CannotTell => "",
    };
    format!("{}{mark} [{}]", percent(part.more), between(part.low, part.high))
}

pub(super) fn finding<'a>(row: &'a Row, column: &str) -> Option<&'a Finding> {
    match row.homes.get(column) {
        Some(Column::Checked { finding, .. }) => finding.as_ref(),
        _ => None,
    }
}

/// A figure of a column.
fn cell(row: &Row, column: &str, which: impl Fn(&Finding) -> Option<Part>) -> String {
    finding(row, column).and_then(which).map_or_else(|| NONE.to_owned(), |p| part(&p))
}

/// The report's table: its own policy with its controls, and its figures if `theirs`. Rows without a policy of the report's show the
/// first home.
fn report_table(rows: &[&Row], homes: &[String], theirs: bool) -> String {
    let first = homes.first().map_or("mm", String::as_str);
    let column = if rows.iter().any(|row| row.policy.is_some()) { OWN } else { first };
    let mut header = strings(&["Implementation"]);
    if theirs {
        header.extend(strings(&["i7-10700K: Baseline / MMX", "Overhead"]));
    }
    header.extend(strings(&["here, ns", "A/A"]));
    if theirs {
        header.push("its MMX build".to_owned());
    }
    let said = if column == OWN { "its own policy" } else { first };
    header.extend([said.to_owned(), "placebo".to_owned(), "home alone".to_owned()]);
    let lines: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let mut line = vec![row.name.clone()];
            if theirs {
                match row.figures {
                    Some((stack, mmx)) => {
                        line.extend([
                            format!("{stack:.0} / {mmx:.0}"),
                            format!("{} %", percent(mmx / stack - 1.0)),
                        ]);
                    }
                    None => line.extend(strings(&[NONE, NONE])),
                }
            }
            line.push(row.stack_ns.map_or_else(|| NONE.to_owned(), |ns| format!("{ns:.0}")));
            line.push(row.copy.map_or_else(
                || NONE.to_owned(),
                |c| format!("{} [{}]", percent(c.more), between(c.low, c.high)),
            ));
            if theirs {
                let build = row.builds.get(MMX).and_then(|build| build.beside_stack);
                line.push(build.map_or_else(|| NONE.to_owned(), |time| part(&time)));
            }
            line.push(cell(row, column, |f| Some(f.whole)));
            line.push(cell(row, column, |f| f.layout_alone));
            line.push(cell(row, column, |f| f.home_alone));
            line
        })
        .collect();
    table(&header, &lines)
}

/// Every row in every home, one figure of each.
fn homes_table(rows: &[&Row], homes: &[String], which: impl Fn(&Finding) -> Option<Part>) -> String {
    let header: Vec<String> = strings(&["Implementation"]).into_iter().chain(homes.iter().cloned()).collect();
    let line = |row: &&Row| -> Vec<String> {
        let cells = homes.iter().map(|home| cell(row, home, &which));
        std::iter::once(row.name.clone()).chain(cells).collect()
    };
    table(&header, &rows.iter().map(line).collect::<Vec<_>>())
}

/// The checks of every row in every home.
fn checks_table(rows: &[Row], homes: &[String]) -> String {
    let columns: Vec<&str> = std::iter::once(OWN).chain(homes.iter().map(String::as_str)).collect();
    let mut header = strings(&["Implementation"]);
    header.extend(columns.iter().map(|&c| if c == OWN { "its own policy".to_owned() } else { c.to_owned() }));
    header.extend(strings(&["instructions compared", "inputs"]));
    let line = |row: &Row| -> Vec<String> {
        let mut line =
            vec![if row.timed { row.name.clone() } else { format!("{} ({})", row.name, row.from) }];
        let (mut pairs, mut inputs) = (0, Vec::new());
        for &column in &columns {
            line.push(match row.homes.get(column) {
                Some(Column::Checked { checks, .. }) => {
                    pairs += checks.compared;
                    inputs.push(checks.inputs);
                    let word = if checks.proved { "proved" } else { "tested" };
                    format!("{word} {}+{}, {} stay", checks.by_text, checks.by_runs, checks.taken_back)
                }
                _ => NONE.to_owned(),
            });
        }
        let least = inputs.iter().min().copied().unwrap_or(0);
        line.extend([pairs.to_string(), format!("{} x {least}", inputs.len())]);
        line
    };
    table(&header, &rows.iter().map(line).collect::<Vec<_>>())
}

/// The tables with times.
fn timed(effort: &Effort, measured: &Measured) -> Vec<Table> {
    let of = |name: &str, original: bool| -> Vec<&Row> {
        let here = |row: &&Row| row.timed && row.table == name && row.original == original;
        measured.rows.iter().filter(here).collect()
    };
    let mut tables = Vec::new();
    let mut put = |title: &str, note: &str, text: String| {
        tables.push(Table { title: title.to_owned(), note: note.to_owned(), text });
    };
    for (name, title) in TABLES {
        let rows = of(name, true);
        if !rows.is_empty() {
            put(
                title,
                "The report's own functions, with its figures in cycles beside ours; slots and homes are those that its notes give.",
                report_table(&rows, &effort.homes, true),
            );
        }
    }
    let ours: Vec<&Row> = TABLES.iter().flat_map(|(name, _)| of(name, false)).collect();
    if !ours.is_empty() {
        put(
            "Rows whose functions are in no package",
            "The same primitives from our own C, starved of registers; these are other functions than the report's, and no figure here \
             stands beside one of its. `--asm ROW=BASELINE,MMX` puts the report's own files in a row's place.",
            report_table(&ours, &effort.homes, false),
        );
    }
    let fiat = of("fiat", false);
    if !fiat.is_empty() {
        put(
            "fiat-crypto's field multiplications",
            "From aws-lc-sys, as compilers of this machine spill them.",
            report_table(&fiat, &effort.homes, false),
        );
    }
    let own = of("own", false);
    if !own.is_empty() {
        put(
            "Lanework's own kernels",
            "From the crates' own modules, compiled on the spot. Values that are also used on ways to a panic move too: no input takes \
             those ways, and what happens on them is not checked.",
            report_table(&own, &effort.homes, false),
        );
    }
    let raced: Vec<&Row> = measured.rows.iter().filter(|row| row.stack_ns.is_some()).collect();
    if !raced.is_empty() {
        put(
            "Every home: time against the stack",
            "All slots that can move, moved: what a user gets.",
            homes_table(&raced, &effort.homes, |f| Some(f.whole)),
        );
        put(
            "Every home: the home alone",
            "The same against the placebo, in one layout, raced against each other.",
            homes_table(&raced, &effort.homes, |f| f.home_alone),
        );
    }
    tables
}

pub(super) fn page(
    question: &str,
    plan: &Plan,
    effort: &Effort,
    measured: &Measured,
    told: &[String],
) -> Page {
    let mut tables = if effort.timed { timed(effort, measured) } else { Vec::new() };
    let builds = overview::builds(&measured.rows);
    if !builds.is_empty() {
        tables.push(Table {
            title: "The report's own builds".to_owned(),
            note: "Instructions of each file that name an MMX register or the stack pointer; what a caller computes in `long double` after a \
                   call (1.5 * 2 + 1.5); faults that `respill lint` names; inputs with equal results."
                .to_owned(),
            text: builds,
        });
    }
    tables.push(Table {
        title: "What was checked".to_owned(),
        note: "*proved* holds for all inputs; *tested* means that runs show for some slots that nothing else touches them. Slots whose \
               separation was checked by the text + by following every access of runs, and those that had to stay. Instructions compared \
               in lockstep and, for each home, results compared on stacks with other contents. Rows with a source in brackets were not timed."
            .to_owned(),
        text: checks_table(&measured.rows, &effort.homes),
    });
    Page {
        question: question.to_owned(),
        title: plan.original.title.clone(),
        their_machine: plan.original.machine.clone(),
        their_command: plan.original.command.clone(),
        machine: machine(&measured.record.machine.summary(), effort.timed),
        command: measured.record.command.clone(),
        checked: checked(measured),
        repository: plan.original.repository.clone(),
        commit: plan.original.commit.clone(),
        claims: overview::claims(&plan.claim, &measured.rows),
        why: overview::why(&measured.rows),
        launches: effort.launches,
        timed: effort.timed,
        tables,
        costs: match &measured.costs {
            Ok(table) => format!("```\n{table}```\n"),
            Err(why) => format!("Not measured: {why}\n"),
        },
        told: told.to_vec(),
        not_here: measured.not_here.clone(),
        remarks: remarks(measured),
    }
}

/// The machine's summary; its clock before and after the races only if there were any.
fn machine(summary: &str, timed: bool) -> String {
    let lines = summary.lines().filter(|line| timed || !line.starts_with("core runs"));
    lines.map(|line| format!("{line}\n")).collect()
}

/// How many rewrites were checked, and by which means.
fn checked(measured: &Measured) -> String {
    let (mut rewrites, mut proved) = (0, 0);
    let mut sum = Checks::default();
    for column in measured.rows.iter().flat_map(|row| row.homes.values()) {
        if let Column::Checked { checks, .. } = column {
            rewrites += 1;
            proved += usize::from(checks.proved);
            sum.by_text += checks.by_text;
            sum.by_runs += checks.by_runs;
            sum.taken_back += checks.taken_back;
            sum.compared += checks.compared;
            sum.inputs += checks.inputs;
        }
    }
    format!(
        "{rewrites} rewrites, {proved} of them proved for all inputs and the others tested; separation of the slots checked by the text for {} and by following every access for {}, while {} more had to \
         stay; {} pairs of instructions compared in lockstep; tested on {} inputs: no difference",
        sum.by_text, sum.by_runs, sum.taken_back, sum.compared, sum.inputs
    )
}

fn remarks(measured: &Measured) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for row in &measured.rows {
        let by = row.made_by.as_ref().map_or_else(String::new, |by| format!(", made by {by}"));
        let policy =
            row.policy.as_ref().map_or_else(String::new, |policy| format!("; its own policy: {policy}"));
        out.push(format!("{}: from {}{by}{policy}", row.name, row.from));
        let mut whys: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, column) in &row.homes {
            if let Column::Not { why } = column {
                whys.entry(why.lines().next().unwrap_or_default()).or_default().push(name);
            }
        }
        out.extend(whys.iter().map(|(why, names)| format!("{} ({}): {why}", row.name, names.join(", "))));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_without_races_does_not_speak_of_them() {
        let summary = "CPU         one\ncore runs   1 GHz before the races, 1 GHz after\nclock       two\n";
        assert_eq!(machine(summary, true), summary);
        assert_eq!(machine(summary, false), "CPU         one\nclock       two\n");
    }

    #[test]
    fn an_interval_has_two_ends_and_a_void_figure_no_star() {
        let of = |verdict, low, high| part(&Part { more: 0.0425, low, high, verdict });
        assert_eq!(of(Verdict::Slower, 0.0424, 0.0426), "+4.25* [+4.24, +4.26]");
        assert_eq!(of(Verdict::Slower, 0.042_495, 0.042_504), "+4.25* [+4.249, +4.250]");
        assert_eq!(of(Verdict::Void, 0.04, 0.05), "+4.25 void [+4.00, +5.00]");
    }
}
