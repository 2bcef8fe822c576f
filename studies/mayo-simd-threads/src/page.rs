//! The study's tables, as the template needs them.
#![forbid(unsafe_code)]

use lanework_race::record::ResultRow;
use lanework_race::table::{percent, time, times};
use lanework_study::markdown::{NONE, strings, table};
use lanework_suite::mayo::phases::{PHASES, Profile};
use serde::Serialize;

use super::answers::{Answer, Findings, set_name};
use super::builds::tables::Tables;
use super::question::{Evidence, Plan, SETS, improvement, mean};
use super::races::{Measured, shown, thread_counts, unoptimised};

/// Everything that the template names.
#[derive(Serialize)]
pub(super) struct Page {
    question: String,
    title: String,
    their_machine: String,
    their_flags: String,
    machine: String,
    command: String,
    method: String,
    rounds: Vec<RoundTables>,
    averages: String,
    separation: String,
    optimisation: String,
    shape: String,
    scaling: String,
    code: String,
    implied: String,
    puzzle: Vec<String>,
    builds: Option<BuildTables>,
    settle: Option<String>,
    phases: String,
    pub(super) answers: Vec<Answer>,
    not_here: Vec<String>,
    remarks: Vec<String>,
}

/// What the published sources show.
#[derive(Serialize)]
struct BuildTables {
    code: String,
    seconds: String,
}

/// The report's tables for one round.
#[derive(Serialize)]
struct RoundTables {
    name: String,
    note: String,
    summary: String,
    avx2: String,
    threads: String,
}

fn seconds(s: Option<f64>) -> String {
    s.map_or_else(|| NONE.to_owned(), |s| if s < 0.1 { format!("{s:.4}s") } else { format!("{s:.3}s") })
}

fn plus(percent: Option<f64>) -> String {
    percent.map_or_else(|| NONE.to_owned(), |p| format!("{p:+.1}%"))
}

/// The measured figures, by set and configuration.
pub(super) struct Figures<'a> {
    pub(super) plan: &'a Plan,
    pub(super) found: &'a Measured,
}

impl Figures<'_> {
    fn seconds(&self, round: &str, set: &str, configuration: &str) -> Option<f64> {
        self.found.seconds.get(&(format!("{round}/{set}"), configuration.to_owned())).map(|f| f.seconds)
    }

    fn improvement(&self, round: &str, set: &str, configuration: &str) -> Option<f64> {
        let base = self.seconds(round, set, &self.plan.columns.baseline)?;
        Some(improvement(base, self.seconds(round, set, configuration)?))
    }

    fn row(&self, round: &str, set: &str, variant: &str, baseline: &str) -> Option<&ResultRow> {
        let subject = format!("mayo/{round}/{set}/keygen+sign+verify");
        let rows = &self.found.record.results;
        rows.iter().find(|r| r.subject == subject && r.variant == variant && r.baseline == baseline)
    }

    fn batch(&self, tier: &str) -> String {
        format!("{tier}+threads={}", self.found.cores)
    }

    fn summary(&self, round: &str) -> String {
        let cores = self.found.cores;
        let shown = shown(self.plan, cores);
        let mut header =
            strings(&["Level", "", "Baseline", "AVX2", "Threads (2)", "Threads (4)", "AVX2+threads"]);
        header.extend(strings(&["AVX-512", "AVX-512+threads"]));
        header.extend(["Baseline", "AVX2", "AVX-512"].map(|t| format!("{t} batch x{cores}")));
        let mut rows = Vec::new();
        for (set, theirs) in SETS.iter().zip(self.plan.original.seconds.in_order()) {
            let mut row = vec![set_name(set), "report".to_owned()];
            row.extend(theirs.map(|s| seconds(Some(s))));
            rows.push(row);
            let mut row = vec![String::new(), "here".to_owned()];
            row.extend(shown.iter().map(|c| seconds(self.seconds(round, set, c))));
            rows.push(row);
        }
        table(&header, &rows)
    }

    fn avx2(&self, round: &str) -> String {
        let mut rows: Vec<Vec<String>> = SETS
            .iter()
            .zip(self.plan.original.improvement.avx2)
            .map(|(set, theirs)| {
                let ours = |c: &str| plus(self.improvement(round, set, c));
                vec![set_name(set), plus(Some(theirs)), ours(&self.plan.columns.avx2), ours("avx512")]
            })
            .collect();
        let average = |c: &str| plus(self.average(round, c));
        let theirs = plus(Some(self.plan.original.average.avx2));
        rows.push(vec!["Average".to_owned(), theirs, average(&self.plan.columns.avx2), average("avx512")]);
        table(&strings(&["Level", "AVX2, report", "AVX2, here", "AVX-512, here"]), &rows)
    }

    fn threads(&self, round: &str) -> String {
        let batch = self.batch("portable");
        let cells =
            |set: &str| [&self.plan.columns.omp4, &batch].map(|c| plus(self.improvement(round, set, c)));
        let mut rows: Vec<Vec<String>> = SETS
            .iter()
            .zip(self.plan.original.improvement.omp4)
            .map(|(set, theirs)| {
                let [inside, across] = cells(set);
                vec![set_name(set), plus(Some(theirs)), inside, across]
            })
            .collect();
        let average = |c: &str| plus(self.average(round, c));
        let theirs = plus(Some(self.plan.original.average.omp4));
        rows.push(vec!["Average".to_owned(), theirs, average(&self.plan.columns.omp4), average(&batch)]);
        let over = if self.found.cores < 4 { " (oversubscribed)" } else { "" };
        let here = format!("4 inside, here{over}");
        let across = format!("batch x{}, here", self.found.cores);
        table(&["Level".to_owned(), "4 threads, report".to_owned(), here, across], &rows)
    }

    fn average(&self, round: &str, configuration: &str) -> Option<f64> {
        let all: Option<Vec<f64>> =
            SETS.iter().map(|set| self.improvement(round, set, configuration)).collect();
        all.and_then(|all| mean(&all))
    }

    fn averages(&self, rounds: &[&str]) -> String {
        let (columns, average) = (&self.plan.columns, &self.plan.original.average);
        let techniques = [
            ("AVX2", columns.avx2.clone(), Some(average.avx2)),
            ("threads inside (4)", columns.omp4.clone(), Some(average.omp4)),
            ("threads inside (2)", columns.omp2.clone(), Some(average.omp2)),
            ("AVX2 + threads inside", columns.both.clone(), Some(average.both)),
            ("AVX-512", "avx512".to_owned(), None),
            ("AVX-512 + threads inside (4)", "avx512+inside=4".to_owned(), None),
            ("portable, batch on all cores", self.batch("portable"), None),
            ("AVX2, batch on all cores", self.batch("avx2"), None),
            ("AVX-512, batch on all cores", self.batch("avx512"), None),
        ];
        let rows: Vec<Vec<String>> = techniques
            .iter()
            .map(|(name, configuration, theirs)| {
                let mut row = vec![(*name).to_owned(), plus(*theirs)];
                row.extend(rounds.iter().map(|round| plus(self.average(round, configuration))));
                row
            })
            .collect();
        let mut header = strings(&["Technique", "report"]);
        header.extend(rounds.iter().map(|r| format!("here, {}", r.replace("round", "round "))));
        table(&header, &rows)
    }

    /// A ratio with its verdict.
    fn cell(&self, round: &str, set: &str, variant: &str, baseline: &str) -> String {
        self.row(round, set, variant, baseline)
            .map_or_else(|| NONE.to_owned(), |r| format!("{} {}", times(r.ratio), r.verdict))
    }

    /// The same with the ratio of the tables of seconds, which start-up does not flatten.
    fn cell_of_seconds(&self, round: &str, set: &str, variant: &str, baseline: &str) -> String {
        let ratio =
            self.seconds(round, set, baseline).zip(self.seconds(round, set, variant)).map(|(b, v)| b / v);
        match (self.row(round, set, variant, baseline), ratio) {
            (Some(row), Some(ratio)) => format!("{} {}", times(ratio), row.verdict),
            _ => NONE.to_owned(),
        }
    }

    fn ratios(
        &self,
        round: &str,
        pairs: &[(String, String, String)],
        cell: impl Fn(&Self, &str, &str, &str, &str) -> String,
    ) -> String {
        let rows: Vec<Vec<String>> = pairs
            .iter()
            .filter(|(_, v, b)| SETS.iter().any(|set| self.row(round, set, v, b).is_some()))
            .map(|(label, variant, baseline)| {
                let mut row = vec![label.clone()];
                row.extend(SETS.iter().map(|set| cell(self, round, set, variant, baseline)));
                row
            })
            .collect();
        let mut header = vec!["".to_owned()];
        header.extend(SETS.iter().map(|s| set_name(s)));
        table(&header, &rows)
    }

    fn separation(&self, round: &str) -> String {
        let of = |label: &str, variant: &str| (label.to_owned(), variant.to_owned(), "portable".to_owned());
        self.ratios(
            round,
            &[
                of("portable at opt-level 0", "portable at -O0"),
                of("portable at opt-level 1", "portable at -O1"),
                of("+ AES-NI, portable arithmetic", "portable+aesni"),
                of("+ AVX2 arithmetic, bitsliced AES", "avx2-softaes"),
                of("+ both: avx2", "avx2"),
                of("+ avx512", "avx512"),
            ],
            Self::cell_of_seconds,
        )
    }

    fn shape(&self, round: &str) -> String {
        let over = |n: usize| if n > self.found.cores { ", oversubscribed" } else { "" };
        let one = |tier: &str, n: usize, against: &str| {
            let (what, baseline) = if against.is_empty() {
                ("against the plain kernels", tier.to_owned())
            } else {
                ("against the same loops not forked", format!("{tier}+{against}"))
            };
            let forked = if n == 1 { "not forked".to_owned() } else { format!("forked over {n}{}", over(n)) };
            (format!("{tier}, {forked}, {what}"), format!("{tier}+inside={n}"), baseline)
        };
        let all: Vec<_> = ["portable", "avx2", "avx512"]
            .iter()
            .flat_map(|tier| {
                let plain = [1, 2, 4].map(|n| one(tier, n, ""));
                plain.into_iter().chain([2, 4].map(|n| one(tier, n, "inside=1")))
            })
            .collect();
        self.ratios(round, &all, Self::cell)
    }

    /// What it would take to settle the verdicts on threads inside an operation that this run leaves open.
    fn settle(&self, round: &str) -> Option<String> {
        let open: Vec<&ResultRow> = self
            .found
            .record
            .results
            .iter()
            .filter(|r| r.subject.starts_with(&format!("mayo/{round}/")) && r.variant.contains("+inside="))
            .filter(|r| !r.verdict.is_settled())
            .collect();
        let most =
            open.iter().filter_map(|r| more_pairs(r.low, r.high, r.ratio, r.margin)).reduce(f64::max)?;
        Some(format!(
            "{} verdicts on threads inside an operation are not settled. An interval narrows with the square root of the \
             number of pairs, so the widest of them needs about {most:.0} times as many.",
            open.len()
        ))
    }

    fn scaling(&self, round: &str) -> String {
        let cores = self.found.cores;
        let all: Vec<_> = ["portable", "avx2", "avx512"]
            .iter()
            .flat_map(|tier| {
                thread_counts(cores).into_iter().map(move |n| {
                    let over = if n > cores { ", oversubscribed" } else { "" };
                    (
                        format!("{tier}: batch over {n}{over}"),
                        format!("{tier}+threads={n}"),
                        (*tier).to_owned(),
                    )
                })
            })
            .collect();
        self.ratios(round, &all, Self::cell)
    }

    fn code(&self) -> String {
        let rows: Vec<Vec<String>> = self
            .found
            .ran
            .iter()
            .filter(|(name, _)| !super::builds::is_build(name))
            .map(|(name, r)| {
                let products =
                    if r.own_products { format!("{}'s own", r.elimination) } else { "rows".to_owned() };
                let threads = if r.threads == 0 { NONE.to_owned() } else { r.threads.to_string() };
                let (backend, summary) = (r.backend.clone(), r.summary.clone());
                vec![name.clone(), backend, products, r.elimination.clone(), r.aes.clone(), threads, summary]
            })
            .collect();
        let header = [
            "Configuration",
            "Engine",
            "Products",
            "Elimination",
            "AES",
            "Threads seen",
            "The row says of itself",
        ];
        table(&strings(&header), &rows)
    }

    fn optimisation(&self) -> String {
        let built: Vec<String> =
            [0, 1].iter().filter(|&&l| unoptimised(l).is_some()).map(|l| format!("opt-level {l}")).collect();
        if built.is_empty() {
            "The optimisation level is not separated in this run: `cargo build --profile study-o0` (and `study-o1`) puts \
             a build of the same command without optimisation where this study finds it."
                .to_owned()
        } else {
            format!(
                "The first rows are the same source built at {}; everything else is at opt-level 3.",
                built.join(" and ")
            )
        }
    }

    fn implied(&self, evidence: &Evidence) -> String {
        let rows: Vec<Vec<String>> = SETS
            .iter()
            .zip(self.plan.original.seconds.in_order())
            .zip(&evidence.sets)
            .map(|((set, s), &(one, share, explained))| {
                let cells = [s[0], s[2], s[3], s[4], one].map(|s| seconds(Some(s)));
                let mut row = vec![set_name(set)];
                row.extend(cells);
                row.extend([percent(share), percent(explained)]);
                row
            })
            .collect();
        let header = [
            "Level",
            "baseline",
            "OMP (2)",
            "OMP (4)",
            "AVX2+OMP",
            "implied (1)",
            "parallel share",
            "gain explained",
        ];
        table(&strings(&header), &rows)
    }

    /// The evidence about the report's equal columns, line by line.
    fn puzzle(&self, round: &str, evidence: &Evidence) -> Vec<String> {
        let original = &self.plan.original;
        let step = original.clock_step;
        let mut lines = vec![format!(
            "In the report AVX2+OpenMP and OpenMP are never more than {:.0} ms apart, half a step of its clock ({:.0} ms): \
             as far as it could measure they are one column.",
            evidence.apart * 1e3,
            step * 1e3
        )];
        lines.push(if evidence.threads_explain_little() {
            format!(
                "On {} of {} sets four threads took no less time than two. By Amdahl's law one thread of that binary would \
                 have taken what the table above says, so threads explain less than half of the gain over the baseline on \
                 every set; the rest must come from the build. The baseline's flags are {}, the OpenMP build's are {}.",
                evidence.no_faster,
                evidence.sets.len(),
                original.flags.baseline,
                original.flags.omp4
            )
        } else {
            "The two thread columns are consistent with threads that work.".to_owned()
        });
        let gap = |a: &str, b: &str| -> Option<(f64, f64)> {
            let all: Option<Vec<f64>> = SETS
                .iter()
                .map(|set| Some(self.seconds(round, set, a)? / self.seconds(round, set, b)?))
                .collect();
            let all = all?;
            Some((all.iter().copied().fold(f64::INFINITY, f64::min), all.iter().copied().fold(0.0, f64::max)))
        };
        let columns = &self.plan.columns;
        let Some((low, high)) = gap(&columns.omp4, &columns.both) else {
            lines.push("AVX2 cannot run here, so this machine adds no evidence.".to_owned());
            return lines;
        };
        lines.push(format!(
            "Here, where the table of what ran shows AVX2 code in the combined configuration, it is {} to {} as fast as \
             threads without AVX2.",
            times(low),
            times(high)
        ));
        let built = Tables(self.found).says();
        if !built.is_empty() {
            lines.extend(built);
            return lines;
        }
        lines.push(if low > 1.1 && evidence.apart <= step {
            "A combined binary that ran AVX2 kernels would have stood apart from the OpenMP one by that much, whatever the \
             threads cost it. The likelier cause is that the report's combined binary ran no AVX2 kernel: `-mavx2 -march=native` lets a compiler use \
             AVX2, but MAYO's hand-written AVX2 kernels are other source files, chosen by a build option. With `--peers` this \
             study builds the published sources by those flags and shows it."
                .to_owned()
        } else {
            "That is too little to tell whether the report's combined binary ran AVX2 kernels.".to_owned()
        });
        lines
    }
}

/// How many times as many pairs would settle a ratio: its interval must fit between 1 and the ratio, or within the margin.
fn more_pairs(low: f64, high: f64, ratio: f64, margin: f64) -> Option<f64> {
    let half = (high / low).ln() / 2.0;
    let room = ratio.ln().abs().max(margin);
    (half.is_finite() && room > 0.0).then(|| (half / room).powi(2).max(1.0).round())
}

fn phases(profiles: &[Profile]) -> String {
    let mut header = strings(&["Set", "Backend", "Operation", "Time"]);
    header.extend(PHASES.map(|p| p.name().to_owned()));
    header.push("rest".to_owned());
    let rows: Vec<Vec<String>> = profiles
        .iter()
        .map(|p| {
            let mut row =
                vec![set_name(&p.set), p.backend.to_owned(), p.operation.to_owned(), time(p.whole_ns)];
            row.extend(
                p.shares.map(|s| s.map_or_else(|| NONE.to_owned(), |s| format!("{:.1} %", s * 100.0))),
            );
            row.push(format!("{:.1} %", p.rest() * 100.0));
            row
        })
        .collect();
    table(&header, &rows)
}

/// Fills in everything. `rounds` begins with the one that recommendations are decided on.
pub(super) fn page(
    question: &str,
    figures: &Figures<'_>,
    profiles: &[Profile],
    rounds: &[&str],
    full: bool,
) -> Page {
    let (plan, found) = (figures.plan, figures.found);
    let main = rounds[0];
    let evidence = Evidence::of(&plan.original);
    let names = plan.original.flags.in_order();
    let flags: Vec<String> =
        super::question::COLUMNS.iter().zip(names).map(|(c, f)| format!("{c}: {f}")).collect();
    let (fewest, most) = found.counts;
    let raced = if full {
        "its baseline, and figures are medians".to_owned()
    } else {
        let sets: Vec<String> = plan.workload.quick_sets.iter().map(|s| set_name(s)).collect();
        let main = main.replace("round", "round ");
        format!("its baseline in {main} ({}), and medians of a few runs elsewhere", sets.join(", "))
    };
    let method = format!(
        "{} form: whole processes of {fewest} to {most} operations of each kind (of {}, as many as last about {} ms on a race's \
         baseline). In the tables of seconds start-up is subtracted, and times are scaled to {}. There are {} runs of each \
         configuration, in ABBA pairs with {raced}. Verdicts, and ratios between threads, are of whole processes with their start-up, which draws them \
         towards 1{}.",
        if full { "Full" } else { "Quick" },
        plan.workload.count,
        plan.workload.ms(full),
        plan.workload.count,
        found.runs,
        if full { "" } else { "; longer runs, as `--full` makes them, do so less" },
    );
    let tables = rounds
        .iter()
        .map(|round| RoundTables {
            name: round.replace("round", "round "),
            note: if *round == "round1" {
                "The parameters that the report, by its date, almost certainly ran (liboqs 0.12's form of round 1)."
                    .to_owned()
            } else {
                "The parameters of liboqs 0.13; between sets the report's ratios are those of round 1.".to_owned()
            },
            summary: figures.summary(round),
            avx2: figures.avx2(round),
            threads: figures.threads(round),
        })
        .collect();
    let record = &found.record;
    Page {
        question: question.to_owned(),
        title: plan.original.title.clone(),
        their_machine: plan.original.machine.clone(),
        their_flags: flags.join("; "),
        machine: record.machine.summary(),
        command: record.command.clone(),
        method,
        rounds: tables,
        averages: figures.averages(rounds),
        separation: figures.separation(main),
        optimisation: figures.optimisation(),
        shape: figures.shape(main),
        scaling: figures.scaling(main),
        code: figures.code(),
        implied: figures.implied(&evidence),
        puzzle: figures.puzzle(main, &evidence),
        builds: (!found.builds.is_empty())
            .then(|| BuildTables { code: Tables(found).code(), seconds: Tables(found).seconds() }),
        settle: figures.settle(main),
        phases: phases(profiles),
        answers: Findings::of(&record.results, main, found.cores).answers(&plan.original.recommendations),
        not_here: record.not_here.iter().map(|n| format!("{}: {}", n.variant, n.why)).collect(),
        remarks: record.remarks.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_verdict_needs_more_pairs_the_wider_its_interval() {
        // Twice as wide as the distance from 1 needs four times the pairs; one that fits needs no more.
        assert_eq!(more_pairs(1.0 / 1.04, 1.04, 1.02, 0.005), Some(4.0));
        assert_eq!(more_pairs(1.01, 1.03, 1.02, 0.005), Some(1.0));
        // A ratio of 1 is settled as the same, within the margin.
        assert_eq!(more_pairs(1.0 / 1.015, 1.015, 1.0, 0.005), Some(9.0));
        assert_eq!(more_pairs(0.0, 1.0, 1.0, 0.005), None);
    }

    #[test]
    fn figures_are_written_as_the_report_does() {
        assert_eq!(seconds(Some(0.295)), "0.295s");
        assert_eq!(seconds(Some(0.012_34)), "0.0123s");
        assert_eq!(plus(Some(improvement(0.295, 0.140))), "+110.7%");
        assert_eq!(plus(None), NONE);
    }
}
