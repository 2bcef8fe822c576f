//! `lanework` alone: the tour. Every check, every race, a bar for each primitive and lane, and whether the lane pays.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Instant;

use lanework_cpu::Threads;
use lanework_race::record::{Record, ResultRow};
use lanework_race::table;
use lanework_race::verdict::{Lane, Verdict};
use lanework_study::text::cut;
use lanework_study::{Failure, Outcome};
use lanework_suite::Depth;
use lanework_suite::lanes::{Finding, LANES, LaneQuestion, summarise};

use crate::doctor;
#[cfg(feature = "study")]
use crate::study::of_lane;
use crate::ui::Session;
use lanework_study::races::{Effort, Race, race_all, race_of};

/// Seconds for the whole tour.
const TOUR_SECONDS: f64 = 45.0;
/// The least and the most time for the races: with less, there are no pairs for a verdict.
const RACING_SECONDS: std::ops::RangeInclusive<f64> = 8.0..=24.0;
/// Processes for each race. The interval over launches needs five to be narrow; one would be blind to memory layout.
const LAUNCHES: u32 = 5;
/// The backend that runs everywhere, against which the others race.
const PORTABLE: &str = "portable";
/// The backend with only 64-bit multiplication, and the one that also has 52-bit multiply-add.
const NARROW: &str = "adx";
const WIDE: &str = "avx512";
/// Roughly the time of each launch to start a process, find the cores' frequency and prepare inputs.
const LAUNCH_SECONDS: f64 = 0.04;

pub(crate) fn run(session: &Session, verbose: bool) -> Result<Outcome, Failure> {
    let start = Instant::now();
    session.say("Lanework: every lane of this machine, checked, then raced.\n");
    let found = doctor::inspect(session);
    let checking = Instant::now();
    if !session.json {
        print!("{}", if verbose { doctor::short(&found) } else { doctor::brief(&found) });
        println!("\nChecks (known answers, agreement with the specification, invalid inputs):");
    }
    stage(session, "checking");
    let bar = session.progress(0, "checking");
    let rows = lanework_suite::check(&session.context, "", Depth::Quick, &mut |row| {
        bar.inc_length(1);
        bar.inc(1);
        bar.set_message(format!("{} {}", row.backend, row.what));
        if row.failed > 0 {
            bar.suspend(|| session.say(crate::check::line(row)));
        }
    });
    bar.finish_and_clear();
    let (passed, failed): (u64, u64) = rows.iter().fold((0, 0), |(p, f), r| (p + r.passed, f + r.failed));
    let checked = checking.elapsed().as_secs_f64();
    session.say(crate::check::ran(&rows));
    session.say(format!("{passed} passed, {failed} failed"));
    if failed > 0 {
        return Err(Failure::refused(format!("{failed} checks failed, and failing code is not raced"))
            .help("`lanework check` shows each"));
    }

    let subjects = lanework_suite::headline(&session.context);
    let mut races: Vec<Race> = subjects.iter().map(race_of).collect();
    for race in &mut races {
        race.challengers.retain(|c| !c.contains('+'));
    }
    let threaded: Vec<Race> = subjects.iter().filter_map(threads_race).collect();
    races.extend(threaded);
    races.extend(subjects.iter().filter_map(multiplier_race));
    stage(session, &format!("racing: {} races", races.len()));
    let effort =
        Effort { seconds: racing_seconds(start, checked, races.len()), launches: LAUNCHES, core: None };
    let record = race_all(session, "tour", &races, &effort)?;
    let lanes: Vec<(LaneQuestion, Finding)> =
        LANES.into_iter().map(|q| (q, answer(&q, &record.results))).collect();
    if session.json {
        let lines: Vec<_> = lanes
            .iter()
            .map(|(q, f)| {
                serde_json::json!({
                    "name": q.name, "answer": f.lane, "races": f.races, "agree": f.agree, "faster": f.faster,
                })
            })
            .collect();
        let record: serde_json::Value =
            serde_json::from_str(&record.to_json().map_err(Failure::input)?).map_err(Failure::input)?;
        println!("{}", serde_json::json!({ "record": record, "lanes": lines }));
    } else {
        if verbose {
            println!(
                "\nRaces (paired, one pinned core unless a variant says threads; a ratio above 1 is faster):"
            );
            print!("{}", table::render(&record, session.style));
        }
        println!("\n{}", bars(&record.results));
        if let Some(remarks) = remarks(&record).filter(|_| !verbose) {
            println!("{remarks}");
        }
        println!("\nDoes the lane pay on this machine?");
        for (q, found) in &lanes {
            println!("  {:16} {}", q.name, line(q, found));
        }
        println!(
            "\nThe tour took {:.0} s. Next: `lanework --verbose` for every race, `lanework bench --seconds 300` for firmer\n\
             figures, `lanework tune` to keep what won, `lanework --help` for the rest.",
            start.elapsed().as_secs_f64()
        );
    }
    Ok(Outcome::Yes)
}

/// Names the stage that begins, if no progress bar shows it.
fn stage(session: &Session, what: &str) {
    if !std::io::stderr().is_terminal() {
        session.note(format!("{what} ..."));
    }
}

/// Columns of the longest bar.
const BAR: usize = 20;

/// The row to show for each primitive and lane: signing for MAYO, and the first race of the others. Without a vector backend, the
/// best other one is shown.
fn shown(rows: &[ResultRow]) -> Vec<&ResultRow> {
    let threads = rows.iter().filter(|r| r.variant.contains("+threads="));
    let multiplier = rows.iter().filter(|r| r.baseline == NARROW && r.variant == WIDE);
    let mut best = best_vector_rows(rows);
    let narrow = rows.iter().filter(|r| r.baseline == PORTABLE && r.variant == NARROW);
    best.extend(narrow.filter(|r| !best.iter().any(|b| b.subject == r.subject)).collect::<Vec<_>>());
    let lanes: [Vec<&ResultRow>; 3] = [best, threads.collect(), multiplier.collect()];
    let primitive = |r: &ResultRow| r.subject.split('/').next().unwrap_or_default().to_owned();
    let mut shown: Vec<&ResultRow> = Vec::new();
    for lane in lanes {
        let mut of_lane: Vec<&ResultRow> = Vec::new();
        for row in lane {
            match of_lane.iter_mut().find(|r| primitive(r) == primitive(row)) {
                Some(r) if !r.subject.ends_with("/sign") && row.subject.ends_with("/sign") => *r = row,
                Some(_) => {}
                None => of_lane.push(row),
            }
        }
        shown.extend(of_lane);
    }
    shown
}

/// A line for each row shown: the operation, the variant, its time, and its ratio over the baseline.
fn bars(rows: &[ResultRow]) -> String {
    let shown = shown(rows);
    let most = shown.iter().map(|r| r.ratio).fold(1.0, f64::max);
    let mut out = String::new();
    for row in shown {
        let verdict = match row.verdict {
            Verdict::Faster => String::new(),
            _ => format!(", {}", table::verdict(row)),
        };
        let over = if row.variant.contains("+threads=") { "one core" } else { &row.baseline };
        let _ = writeln!(
            out,
            "{:17} {:17} {:>8} {:BAR$} {:>6} over {over}{verdict}",
            title(&row.subject),
            row.variant,
            table::amount(row, row.median),
            bar(row.ratio, most),
            table::times(row.ratio),
        );
    }
    let _ = write!(out, "A full bar is {}, and the scale is logarithmic.", table::times(most));
    out
}

/// A bar for a ratio from 1 to `most`, in eighths of a column.
fn bar(ratio: f64, most: f64) -> String {
    let share = if most > 1.0 { (ratio.max(1.0).ln() / most.ln()).min(1.0) } else { 0.0 };
    let eighths = (share * (BAR * 8) as f64).round() as usize;
    let end = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + end
}

/// A subject's path as people name it: `mayo/round3/mayo2/sign` is MAYO-2 sign.
fn title(path: &str) -> String {
    match path.split('/').collect::<Vec<_>>().as_slice() {
        ["mayo", _, set, operation] => format!("MAYO-{} {operation}", set.trim_start_matches("mayo")),
        ["magma", operation, ..] => format!("Magma {operation}"),
        ["vdf", _, operation] => format!("VDF {operation}"),
        _ => path.to_owned(),
    }
}

/// The remarks on the races, in one line.
fn remarks(record: &Record) -> Option<String> {
    let mut all: Vec<&str> = Vec::new();
    let notes = record.results.iter().flat_map(|r| &r.notes);
    for text in record.not_here.iter().map(|n| &n.why).chain(&record.remarks).chain(notes) {
        if !all.contains(&text.as_str()) {
            all.push(text);
        }
    }
    let (first, rest) = all.split_first()?;
    let more = if rest.is_empty() { String::new() } else { format!(", and {} more", rest.len()) };
    Some(format!("Remarks: {}{more} (--verbose prints all).", cut(first, 60)))
}

/// The race of all cores against one over the same batch, where a subject has both.
fn threads_race(subject: &lanework_race::subject::Subject) -> Option<Race> {
    let names: Vec<&str> = subject.names().collect();
    let one = |n: &&&str| n.ends_with("+batch") || n.ends_with("+threads=1");
    let baseline = names.iter().find(one)?;
    let many = |n: &&&str| n.contains("+threads=") && !one(n);
    let challengers: Vec<String> = names.iter().filter(many).map(|n| (*n).to_owned()).collect();
    // Two sets of MAYO represent the four: the smallest key and the largest.
    let shown = !subject.path().starts_with("mayo/")
        || subject.path().contains("/mayo1/")
        || subject.path().contains("/mayo5/");
    (shown && !challengers.is_empty()).then(|| Race {
        subject: subject.path().to_owned(),
        baseline: (*baseline).to_owned(),
        challengers,
    })
}

/// The race of 52-bit multiply-add against 64-bit multiplication in the same algorithm, where a subject has both.
fn multiplier_race(subject: &lanework_race::subject::Subject) -> Option<Race> {
    let has = |name: &str| subject.names().any(|n| n == name);
    (has(NARROW) && has(WIDE)).then(|| Race {
        subject: subject.path().to_owned(),
        baseline: NARROW.to_owned(),
        challengers: vec![WIDE.to_owned()],
    })
}

/// The tour's time that is left for races after their gates and launches. The gate of a race checks one parameter set or
/// cipher, at the speed that the earlier checks have shown.
fn racing_seconds(start: Instant, checked: f64, races: usize) -> f64 {
    let sets = lanework_mayo::Params::all().count() + 2;
    let aside = races as f64 * (checked / sets as f64 + f64::from(LAUNCHES) * LAUNCH_SECONDS);
    let left = TOUR_SECONDS - 2.0 - start.elapsed().as_secs_f64() - aside;
    left.clamp(*RACING_SECONDS.start(), *RACING_SECONDS.end())
}

/// The lane's line: the verdict, in how many races, and what was compared.
fn line(question: &LaneQuestion, found: &Finding) -> String {
    match &found.lane {
        Lane::NotHere { .. } => found.lane.to_string(),
        // No noise hides it: the races differ.
        Lane::CannotTell { .. } if found.faster > 0 && found.faster < found.told => format!(
            "CANNOT TELL (faster in {} of {} races, not in {}): {}",
            found.faster,
            found.races,
            found.told - found.faster,
            question.compares
        ),
        Lane::CannotTell { .. } => format!("{}: {}", found.lane, question.compares),
        lane => format!("{lane} in {} of {} races: {}", found.agree, found.races, question.compares),
    }
}

/// A build without studies has none to name.
#[cfg(not(feature = "study"))]
fn of_lane(_: &str) -> Option<&'static str> {
    None
}

fn answer(question: &LaneQuestion, rows: &[ResultRow]) -> Finding {
    let not_here = |why: &str| Finding {
        lane: Lane::NotHere { why: why.to_owned() },
        agree: 0,
        told: 0,
        faster: 0,
        races: 0,
    };
    if let Some(study) = of_lane(question.name) {
        return not_here(&format!("`lanework study {study}` answers this"));
    }
    let found = match question.name {
        "vector lanes" => summarise(best_vector_rows(rows).into_iter()),
        "other threads" => summarise(rows.iter().filter(|r| r.variant.contains("+threads="))),
        "wide multiplier" => summarise(rows.iter().filter(|r| r.baseline == NARROW && r.variant == WIDE)),
        _ => None,
    };
    found.unwrap_or_else(|| match question.name {
        "other threads" if Threads::Own(0).count() == 1 => not_here("this process may use only one core"),
        _ => not_here("no variant of it can run here"),
    })
}

/// For each subject, the fastest vector backend that raced against portable code: one that is faster beyond doubt, else one that may be.
fn best_vector_rows(rows: &[ResultRow]) -> Vec<&ResultRow> {
    let mut best: Vec<&ResultRow> = Vec::new();
    let rank = |r: &ResultRow| (r.verdict == Verdict::Faster, !r.verdict.is_settled(), r.ratio);
    for row in
        rows.iter().filter(|r| r.baseline == PORTABLE && r.variant != NARROW && !r.variant.contains('+'))
    {
        match best.iter_mut().find(|b| b.subject == row.subject) {
            Some(b) if rank(b) < rank(row) => *b = row,
            Some(_) => {}
            None => best.push(row),
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A result with only the fields that a bar uses.
    fn row(subject: &str, baseline: &str, variant: &str, ratio: f64, verdict: &str) -> ResultRow {
        serde_json::from_value(serde_json::json!({
            "subject": subject, "variant": variant, "baseline": baseline, "ratio": ratio, "low": ratio, "high": ratio,
            "noise": 0.001, "verdict": verdict, "unit": "ns", "median": 8_600.0, "mean": 1.0, "min": 1.0, "q1": 1.0,
            "q3": 1.0, "ticks": null, "baseline_median": 1.0, "baseline_mean": 1.0, "baseline_min": 1.0,
            "margin": 0.005, "detectable": 0.01, "backend": variant, "baseline_backend": baseline, "cores": 1,
            "iterations": [1, 1], "launch_pairs": [0], "samples": [], "baseline_samples": [],
        }))
        .expect("a row")
    }

    #[test]
    fn each_primitive_and_lane_has_one_line_of_a_hundred_columns_at_most() {
        let rows = [
            row("mayo/round3/mayo1/keygen", "portable", "avx512", 40.0, "faster"),
            row("mayo/round3/mayo1/sign", "portable", "avx2", 9.0, "faster"),
            row("mayo/round3/mayo1/sign", "portable", "avx512", 31.0, "faster"),
            row("mayo/round3/mayo1/sign", "avx512+batch", "avx512+threads=16", 1.0, "cannot tell"),
            row("magma/ctr/16384", "portable", "avx512-bitslice", 961.0, "faster"),
            row("magma/omac-batch/128x1024", "avx512+threads=1", "avx512+threads=2", 1.9, "faster"),
            row("vdf/1024/square", "portable", "avx512", 4.0, "faster"),
            row("vdf/1024/square", "adx", "avx512", 0.5, "slower"),
        ];
        let text = bars(&rows);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 7, "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= 100), "{text}");
        let bar = |line: &str| line.chars().filter(|c| *c == '█').count();
        // The largest ratio fills its bar, its square root fills half, and a row that is not faster has none.
        assert!(lines[0].starts_with("MAYO-1 sign ") && lines[0].ends_with("×31.0 over portable"), "{text}");
        assert_eq!((bar(lines[0]), bar(lines[1])), (BAR / 2, BAR), "{text}");
        assert!(lines[3].contains("over one core, cannot tell") && bar(lines[3]) == 0, "{text}");
        assert!(lines[5].contains("VDF square") && lines[5].contains("over adx, slower"), "{text}");
        assert!(lines[6].ends_with("×961, and the scale is logarithmic."), "{text}");
    }

    /// Without AVX-512 the delay function has one backend beside portable code, which is not a vector backend.
    #[test]
    fn the_delay_function_is_shown_on_every_x86_machine() {
        let rows = [
            row("mayo/round3/mayo1/sign", "portable", "avx2", 9.0, "faster"),
            row("vdf/1024/square", "portable", "adx", 2.0, "faster"),
        ];
        let text = bars(&rows);
        let line = text.lines().find(|line| line.starts_with("VDF square")).expect("a line");
        assert!(line.contains(" adx ") && line.ends_with("×2.00 over portable"), "{text}");
        // It says nothing about vector lanes.
        let vector = answer(&LANES[0], &rows);
        assert_eq!((LANES[0].name, vector.races), ("vector lanes", 1));
        // Where there is a vector backend, it is shown instead.
        let both = [rows[1].clone(), row("vdf/1024/square", "portable", "avx512", 1.5, "faster")];
        assert!(bars(&both).lines().any(|line| line.contains(" avx512 ") && line.ends_with("over portable")));
        assert!(!bars(&both).contains(" adx "));
    }

    #[test]
    fn the_best_vector_backend_is_one_that_may_be_faster() {
        let best = |rows: &[ResultRow]| best_vector_rows(rows)[0].variant.clone();
        let slower = row("magma/ctr/16", "portable", "avx2", 0.9, "slower");
        let untold = row("magma/ctr/16", "portable", "avx512", 1.5, "cannot tell");
        let faster = row("magma/ctr/16", "portable", "avx2-gfni", 1.2, "faster");
        assert_eq!(best(&[slower.clone(), untold.clone()]), "avx512");
        assert_eq!(best(&[untold.clone(), slower.clone()]), "avx512");
        assert_eq!(best(&[untold, faster, slower]), "avx2-gfni");
    }

    #[test]
    fn races_that_differ_are_said_to_differ() {
        let rows = [
            row("a/sign", "portable", "avx2", 9.0, "faster"),
            row("b/sign", "portable", "avx2", 0.5, "slower"),
            row("c/sign", "portable", "avx2", 1.0, "cannot tell"),
        ];
        let told = line(&LANES[0], &answer(&LANES[0], &rows));
        assert!(
            told.starts_with("CANNOT TELL (faster in 1 of 3 races, not in 1): the best vector"),
            "{told}"
        );
        let told = line(&LANES[0], &answer(&LANES[0], &rows[2..]));
        assert!(told.starts_with("CANNOT TELL (effects below"), "{told}");
    }
}
