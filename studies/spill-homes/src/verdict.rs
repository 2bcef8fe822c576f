//! What the figures say: an overview, why it is so here, and what the controls say of small effects.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};

use lanework_race::record::Record;
use lanework_race::table::times;
use lanework_race::verdict::Verdict;
use lanework_spill::finding::Finding;
use lanework_study::Spill;

use super::races::{Checks, Column, Measured, OWN, Row};

fn raced(row: &Row) -> impl Iterator<Item = (&String, &Finding)> {
    row.homes.iter().filter_map(|(name, column)| match column {
        Column::Checked { finding, .. } => finding.as_ref().map(|finding| (name, finding)),
        Column::Not { .. } => None,
    })
}

fn percent(x: f64) -> String {
    format!("{:+.2} %", 100.0 * x + 0.0)
}

/// The smallest and the largest.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|x| x.is_finite()).fold(None, |range, x| match range {
        None => Some((x, x)),
        Some((low, high)) => Some((low.min(x), high.max(x))),
    })
}

pub(super) fn told(measured: &Measured, timed: bool) -> Vec<String> {
    if !timed {
        return vec![untimed(&measured.rows)];
    }
    let mut out = overview(&measured.rows);
    out.extend(why(measured));
    out.extend(small(&measured.rows));
    out.extend(own(&measured.rows));
    out.extend(ours(&measured.rows));
    out
}

/// What is known where nothing was timed: how many rewrites are proved, and how many are only tested.
fn untimed(rows: &[Row]) -> String {
    let checks = rows.iter().flat_map(|row| row.homes.values()).filter_map(|column| match column {
        Column::Checked { checks, .. } => Some(checks),
        Column::Not { .. } => None,
    });
    let (proved, tested): (Vec<&Checks>, Vec<&Checks>) = checks.partition(|checks| checks.proved);
    let number = |n: usize| match n {
        1 => "1 rewrite is".to_owned(),
        n => format!("{n} rewrites are"),
    };
    let inputs: u64 = tested.iter().map(|checks| checks.inputs).sum();
    let on = || format!("tested on {inputs} inputs");
    match (proved.len(), tested.len()) {
        (0, 0) => "Nothing was timed, and no rewrite was accepted.".to_owned(),
        (n, 0) => format!("Nothing was timed. {} proved.", number(n)),
        (0, n) => format!("Nothing was timed. {} {}.", number(n), on()),
        (n, m) => {
            let are = if m == 1 { "is" } else { "are" };
            format!("Nothing was timed. {} proved, {m} {are} {}.", number(n), on())
        }
    }
}

/// Where a home beats the stack in whole programs, by the newest record of `cargo xtask real-code --race`.
pub(super) fn whole_programs(record: Option<&Record>) -> String {
    let Some(record) = record else {
        return "Whole programs: no record of `cargo xtask real-code --race` is here.".to_owned();
    };
    let rows = &record.results;
    let programs: BTreeSet<&str> = rows.iter().map(|row| row.subject.as_str()).collect();
    let faster: Vec<String> = rows
        .iter()
        .filter(|row| row.verdict == Verdict::Faster)
        .map(|row| {
            let program = row.subject.trim_start_matches("real-code/");
            format!("{program} in {} ({})", row.variant, times(row.ratio))
        })
        .collect();
    let place = if faster.is_empty() { "nowhere".to_owned() } else { faster.join(", ") };
    format!(
        "In {} programs that nobody here wrote, raced whole with {} rewrites on {} ({}), a home beats the stack by more than the noise \
         floor: {place}.",
        programs.len(),
        rows.len(),
        record.machine.cpu,
        record.date.get(..10).unwrap_or("undated"),
    )
}

/// How often each verdict occurs.
fn overview(rows: &[Row]) -> Vec<String> {
    let all: Vec<(&Row, &String, &Finding)> =
        rows.iter().flat_map(|row| raced(row).map(move |(name, f)| (row, name, f))).collect();
    if all.is_empty() {
        return vec!["No rewrite was raced, so there is nothing to say of homes.".to_owned()];
    }
    let with = |verdict: Verdict| all.iter().filter(move |(_, _, f)| f.whole.verdict == verdict);
    let void = with(Verdict::Void).count();
    let mut out = vec![format!(
        "Overview: of {} rewrites of {} functions, {} are slower than the stack, {} the same, {} faster, of {} it cannot be told, and {void} \
         are void.",
        all.len(),
        rows.iter().filter(|row| row.timed).count(),
        with(Verdict::Slower).count(),
        with(Verdict::Same).count(),
        with(Verdict::Faster).count(),
        with(Verdict::CannotTell).count()
    )];
    if void > 0 {
        let mut names: Vec<&str> = with(Verdict::Void).map(|(row, ..)| row.name.as_str()).collect();
        names.dedup();
        out.push(format!(
            "Void: {}. An A/A control of theirs differs from itself, so they say nothing and must be raced again.",
            names.join(", ")
        ));
    }
    let valid = || all.iter().filter(|(_, _, f)| f.whole.verdict != Verdict::Void);
    if let Some((low, high)) = range(valid().map(|(_, _, f)| f.whole.more)) {
        out.push(format!("Their times lie between {} and {} of the stack's.", percent(low), percent(high)));
    }
    for (row, name, finding) in with(Verdict::Faster) {
        let alone = match &finding.home_alone {
            Some(part) if part.verdict == Verdict::Faster => {
                "and so is the home in one layout with its placebo: it is the home that pays"
            }
            Some(_) => "but not in one layout with its placebo: the layout may be what pays",
            None => "without a placebo to tell whether that is the home's doing",
        };
        out.push(format!("{} in {name} is faster ({}), {alone}.", row.name, percent(finding.whole.more)));
    }
    for (row, name, finding) in valid().filter(|(_, _, f)| f.whole.verdict != Verdict::Faster) {
        if let Some(part) = finding.home_alone.filter(|part| part.verdict == Verdict::Faster) {
            out.push(format!(
                "{} in {name} is faster than its placebo in one layout ({}), and not shown to be so against the function where it was ({}).",
                row.name,
                percent(part.more),
                percent(finding.whole.more)
            ));
        }
    }
    if with(Verdict::Faster).next().is_none() {
        let open = with(Verdict::CannotTell).count() + void;
        out.push(if open == 0 {
            "Leaving the values on the stack is the answer for every function here.".to_owned()
        } else {
            format!(
                "None was shown to be faster, so the values stay on the stack; a quieter machine or `--full` may tell of the {open} that are open."
            )
        });
    }
    out
}

/// The loops' figures that explain it.
fn why(measured: &Measured) -> Vec<String> {
    let Ok(table) = &measured.costs else { return Vec::new() };
    let line = |home: &str| {
        table.lines.iter().find(|line| line.home.starts_with(home)).and_then(|line| line.costs.as_ref().ok())
    };
    let (Some(stack), Some(mm)) = (line("stack"), line("mm")) else { return Vec::new() };
    let mut out = vec![format!(
        "Why: a value that is spilled and wanted back at once costs {:.1} cycles on the stack and {:.1} in an MMX register, and a pair that nobody \
         waits for {:.2} and {:.2}.",
        stack.dependent.cycles, mm.dependent.cycles, stack.pair.cycles, mm.pair.cycles
    )];
    out.push(if stack.dependent.cycles < 1.0 {
        "This processor forwards a store to its load at no cost (it renames memory), so a register home can only add its moves' latency.".to_owned()
    } else if stack.dependent.cycles < mm.dependent.cycles {
        "The stack's way back is the shorter one, so that a home can win only where loads and stores are what is short.".to_owned()
    } else {
        "The home's way back is the shorter one: values on a critical path can gain by moving.".to_owned()
    });
    if stack.beside_memory.cycles > mm.beside_memory.cycles + 0.05 {
        out.push(format!(
            "Where loads and stores are saturated a pair on the stack adds {:.2} cycles and one in MMX {:.2}: there, and only there, the homes \
             have something to give.",
            stack.beside_memory.cycles, mm.beside_memory.cycles
        ));
    }
    out
}

/// A control whose interval is wider than this, as a fraction, says nothing of effects of one per cent.
const SHARP: f64 = 0.01;

/// What the controls say about effects of the report's size.
fn small(rows: &[Row]) -> Vec<String> {
    let theirs: Vec<f64> =
        rows.iter().filter_map(|row| row.figures).map(|(stack, mmx)| mmx / stack - 1.0).collect();
    let copies: Vec<[f64; 3]> =
        rows.iter().filter_map(|row| row.copy).map(|copy| [copy.more, copy.low, copy.high]).collect();
    let parts = rows.iter().flat_map(raced).filter_map(|(_, f)| f.layout_alone.as_ref());
    let parts = parts.filter(|part| part.verdict != Verdict::Void);
    let layouts: Vec<[f64; 3]> = parts.map(|part| [part.more, part.low, part.high]).collect();
    let sharp = |all: &[[f64; 3]]| {
        range(all.iter().filter(|[_, low, high]| high - low <= SHARP).map(|[more, ..]| *more))
    };
    let mut out = Vec::new();
    let all = copies.len() + layouts.len();
    let open = copies.iter().chain(&layouts).filter(|[_, low, high]| high - low > SHARP).count();
    if open > 0 {
        out.push(format!(
            "{open} of {all} controls are not known to {:.0} % on this run, and are left out of what follows.",
            100.0 * SHARP
        ));
    }
    if let Some((low, high)) = sharp(&copies) {
        out.push(format!(
            "A/A: the same bytes at another place take between {} and {} more.",
            percent(low),
            percent(high)
        ));
    }
    let Some((low, high)) = sharp(&layouts) else {
        if !layouts.is_empty() {
            out.push("Of effects of one per cent, the report's included, this run says nothing.".to_owned());
        }
        return out;
    };
    out.push(format!(
        "Placebo: the same instructions on the stack, in the rewritten text's layout, take between {} and {} more.",
        percent(low),
        percent(high)
    ));
    if !theirs.is_empty() {
        let reach = [Some((low, high)), sharp(&copies)].into_iter().flatten();
        let reach = reach.fold(0.0, |most: f64, (low, high)| most.max(low.abs()).max(high.abs()));
        let inside = theirs.iter().filter(|x| x.abs() <= reach).count();
        out.push(format!(
            "{inside} of the report's {} differences shown here are no larger than what layout alone does on this machine (up to {:.2} %): without \
             such controls a difference of that size is no evidence for or against a home.",
            theirs.len(),
            100.0 * reach
        ));
    }
    out
}

/// The report's own policy, there and here.
fn own(rows: &[Row]) -> Vec<String> {
    let mut same = 0;
    let mut all = 0;
    for row in rows.iter().filter(|row| row.original) {
        let (Some((stack, mmx)), Some(Column::Checked { finding: Some(finding), .. })) =
            (row.figures, row.homes.get(OWN))
        else {
            continue;
        };
        if finding.whole.verdict == Verdict::Void {
            continue;
        }
        all += 1;
        let there = mmx / stack - 1.0;
        same += usize::from(match finding.whole.verdict {
            Verdict::Slower => there > 0.0,
            Verdict::Faster => there < 0.0,
            _ => false,
        });
    }
    if all == 0 {
        return Vec::new();
    }
    vec![format!(
        "The report's own choice of slots, in its own functions: {same} of {all} are faster or slower here beyond doubt and in the direction \
         that it saw."
    )]
}

/// Whether a kernel of Lanework's own was raced with a verdict that counts.
fn own_and_told(row: &Row) -> bool {
    row.table == "own" && raced(row).any(|(_, f)| f.whole.verdict != Verdict::Void)
}

/// Whether a function is faster with its values in this home, and by the home's doing.
fn wins(f: &Finding) -> bool {
    f.whole.verdict == Verdict::Faster
        && f.home_alone.as_ref().is_some_and(|alone| alone.verdict == Verdict::Faster)
}

/// What the profile is to keep of Lanework's own kernels: the homes that make one fastest, if any does beyond doubt; else that all
/// values stay on the stack. It keeps nothing of kernels that were not raced, or only in void races.
pub(super) fn best(rows: &[Row]) -> BTreeMap<String, Spill> {
    let mut out = BTreeMap::new();
    for row in rows.iter().filter(|row| own_and_told(row)) {
        let fastest = row
            .homes
            .iter()
            .filter_map(|(name, column)| match column {
                Column::Checked { finding: Some(finding), .. } if wins(finding) => {
                    Some((finding, row.moved.get(name)?))
                }
                _ => None,
            })
            .min_by(|(a, _), (b, _)| a.whole.more.total_cmp(&b.whole.more));
        let spill = match fastest {
            Some((finding, moved)) => Spill { homes: moved.clone(), ratio: 1.0 / (1.0 + finding.whole.more) },
            None => Spill { homes: BTreeMap::new(), ratio: 1.0 },
        };
        out.insert(row.key.clone(), spill);
    }
    out
}

/// Lanework's own kernels: whether there is a home to be chosen for any.
fn ours(rows: &[Row]) -> Vec<String> {
    let own: Vec<&Row> = rows.iter().filter(|row| own_and_told(row)).collect();
    if own.is_empty() {
        return Vec::new();
    }
    let won: Vec<String> = own
        .iter()
        .flat_map(|row| {
            raced(row).filter(|(_, f)| wins(f)).map(|(name, _)| format!("{} in {name}", row.name))
        })
        .collect();
    vec![if won.is_empty() {
        format!(
            "Of Lanework's own {} kernels with values to move none is faster by a home's doing: there is nothing to choose for them.",
            own.len()
        )
    } else {
        format!("Lanework's own kernels that a home makes faster: {}.", won.join(", "))
    }]
}

#[cfg(test)]
pub(super) mod tests {
    use lanework_spill::finding::Part;

    use super::*;
    use crate::races::Control;

    fn part(more: f64, verdict: Verdict) -> Part {
        Part { more, low: more - 0.001, high: more + 0.001, verdict }
    }

    pub(crate) fn row(more: f64, verdict: Verdict, alone: Verdict) -> Row {
        let finding = Finding {
            home: "mm".to_owned(),
            slots: 3,
            stack_bytes: 24,
            code_bytes: -6,
            whole: part(more, verdict),
            home_alone: Some(part(more, alone)),
            layout_alone: Some(part(0.012, Verdict::Slower)),
            wiping: None,
        };
        let column = Column::Checked { checks: Checks::default(), finding: Some(finding) };
        let moved = BTreeMap::from([("f:-8".to_owned(), "mm0".to_owned())]);
        Row {
            name: "f".to_owned(),
            table: "kem".to_owned(),
            key: "f#0123".to_owned(),
            original: true,
            timed: true,
            figures: Some((1000.0, 990.0)),
            from: String::new(),
            made_by: None,
            policy: None,
            stack_ns: Some(1.0),
            ticks: None,
            copy: Some(Control { more: 0.001, low: 0.0, high: 0.002 }),
            code: None,
            builds: BTreeMap::new(),
            homes: BTreeMap::from([(OWN.to_owned(), column)]),
            moved: BTreeMap::from([(OWN.to_owned(), moved)]),
        }
    }

    #[test]
    fn what_is_not_timed_is_proved_or_tested() {
        let of = |checks: &[Checks]| {
            let mut row = row(0.0, Verdict::Same, Verdict::Same);
            let columns = checks.iter().enumerate();
            let column =
                |(n, &checks): (usize, &Checks)| (n.to_string(), Column::Checked { checks, finding: None });
            row.homes = columns.map(column).collect();
            untimed(&[row])
        };
        let proved = Checks { proved: true, inputs: 7, ..Checks::default() };
        let tested = Checks { inputs: 20, ..Checks::default() };
        assert_eq!(of(&[]), "Nothing was timed, and no rewrite was accepted.");
        assert_eq!(of(&[proved]), "Nothing was timed. 1 rewrite is proved.");
        assert_eq!(of(&[tested, tested]), "Nothing was timed. 2 rewrites are tested on 40 inputs.");
        assert_eq!(
            of(&[proved, tested, proved, tested]),
            "Nothing was timed. 2 rewrites are proved, 2 are tested on 40 inputs."
        );
    }

    #[test]
    fn the_text_follows_the_figures() {
        let slower = overview(&[row(0.05, Verdict::Slower, Verdict::Slower)]).join("\n");
        assert!(
            slower.contains("1 are slower") && slower.contains("Leaving the values on the stack"),
            "{slower}"
        );
        let layout = overview(&[row(-0.05, Verdict::Faster, Verdict::Same)]).join("\n");
        assert!(layout.contains("the layout may be what pays") && !layout.contains("Leaving"), "{layout}");
        let home = overview(&[row(-0.05, Verdict::Faster, Verdict::Faster)]).join("\n");
        assert!(home.contains("it is the home that pays"), "{home}");
        // One per cent there, 1.2 % by layout alone here.
        let said = small(&[row(0.0, Verdict::Same, Verdict::Same)]).join("\n");
        assert!(said.contains("1 of the report's 1 differences"), "{said}");
        // Controls that are not known well say nothing.
        let mut blurred = row(0.0, Verdict::Same, Verdict::Same);
        for column in blurred.homes.values_mut() {
            if let Column::Checked { finding: Some(finding), .. } = column {
                finding.layout_alone = Some(Part { high: 0.5, ..part(0.2, Verdict::CannotTell) });
            }
        }
        let said = small(&[blurred]).join("\n");
        assert!(said.contains("1 of 2 controls") && said.contains("says nothing"), "{said}");
        assert!(!said.contains("of the report's 1"), "{said}");
        let open = overview(&[row(0.05, Verdict::CannotTell, Verdict::CannotTell)]).join("\n");
        assert!(open.contains("the 1 that are open"), "{open}");
        assert!(own(&[row(-0.05, Verdict::Faster, Verdict::Faster)])[0].contains("1 of 1"));
        assert!(own(&[row(0.05, Verdict::Slower, Verdict::Slower)])[0].contains("0 of 1"));
        assert!(overview(&[])[0].starts_with("No rewrite was raced"));
        // A race that failed its control has no winner, and is counted apart.
        let void = row(-0.05, Verdict::Void, Verdict::Void);
        let said = overview(std::slice::from_ref(&void)).join("\n");
        assert!(
            said.contains("0 faster, of 0 it cannot be told, and 1 are void") && said.contains("Void: f."),
            "{said}"
        );
        assert!(!said.contains("is faster") && !said.contains("times lie"), "{said}");
        assert!(own(&[void]).is_empty());
        let kernel = |row: Row| Row { table: "own".to_owned(), ..row };
        let said = ours(&[kernel(row(-0.05, Verdict::Faster, Verdict::Faster))]);
        assert!(said[0].contains("faster: f in own"), "{said:?}");
        let said = ours(&[kernel(row(-0.05, Verdict::Faster, Verdict::Same))]);
        assert!(said[0].contains("nothing to choose"), "{said:?}");
    }

    #[test]
    fn whole_programs_are_told_of_by_their_record() {
        assert!(whole_programs(None).starts_with("Whole programs: no record"));
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../records");
        let all = lanework_race::history::load_all(&root).expect("records").entries;
        let mut record = all.into_iter().find(|e| e.record.study == "real-code").expect("one is kept").record;
        record.results.iter_mut().for_each(|row| row.verdict = Verdict::Same);
        assert!(whole_programs(Some(&record)).ends_with("noise floor: nowhere."));
        let row = &mut record.results[7];
        row.verdict = Verdict::Faster;
        let place = format!("{} in {} (", row.subject.trim_start_matches("real-code/"), row.variant);
        let told = whole_programs(Some(&record));
        assert!(told.contains(&place) && !told.contains("nowhere"), "{told}");
    }

    #[test]
    fn a_winning_home_is_kept_and_else_the_stack() {
        let kernel = |row: Row| Row { table: "own".to_owned(), ..row };
        let won = best(&[kernel(row(-0.05, Verdict::Faster, Verdict::Faster))]);
        let spill = &won["f#0123"];
        assert_eq!(spill.homes, BTreeMap::from([("f:-8".to_owned(), "mm0".to_owned())]));
        assert!((spill.ratio - 1.0 / 0.95).abs() < 1e-12);
        assert!(spill.told().starts_with("f:-8 in mm0 (×1.053)"), "{}", spill.told());
        // Of two winners, the faster one.
        let mut two = kernel(row(-0.05, Verdict::Faster, Verdict::Faster));
        let slower = row(-0.02, Verdict::Faster, Verdict::Faster).homes.remove(OWN).expect("a column");
        two.homes.insert("a".to_owned(), slower);
        two.moved.insert("a".to_owned(), BTreeMap::from([("f:-8".to_owned(), "k1".to_owned())]));
        assert_eq!(best(&[two]), won);
        // A gain that may be layout's alone, an undecided race and a slower home leave values on the stack, and that is kept.
        for (more, whole, alone) in [
            (-0.05, Verdict::Faster, Verdict::Same),
            (-0.05, Verdict::CannotTell, Verdict::Faster),
            (0.05, Verdict::Slower, Verdict::Slower),
        ] {
            let said = best(&[kernel(row(more, whole, alone))]);
            assert_eq!(said["f#0123"], Spill { homes: BTreeMap::new(), ratio: 1.0 });
            assert!(said["f#0123"].told().starts_with("all on the stack"), "{}", said["f#0123"].told());
        }
        // The profile keeps nothing of others' functions and of kernels that were not raced.
        assert!(best(&[row(-0.05, Verdict::Faster, Verdict::Faster)]).is_empty());
        assert!(best(&[kernel(row(-0.05, Verdict::Void, Verdict::Void))]).is_empty());
        let mut unraced = kernel(row(-0.05, Verdict::Faster, Verdict::Faster));
        unraced.homes.clear();
        assert!(best(&[unraced]).is_empty());
    }
}
