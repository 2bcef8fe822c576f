//! `lanework check --leaks`.
#![forbid(unsafe_code)]

use crate::args::{CheckArgs, MemcheckArgs, TimingArgs};
use crate::outcome::{Failure, Outcome};
use crate::ui::Session;

#[cfg(all(feature = "study", target_os = "linux", target_arch = "x86_64"))]
pub(crate) use here::{gather, json, optimised};
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) use here::{run, timing, under_memcheck};

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub(crate) fn run(_: &Session, _: &CheckArgs) -> Result<Outcome, Failure> {
    Err(Failure::unavailable("leaks are looked for on Linux on x86-64 only"))
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub(crate) fn under_memcheck(_: &Session, _: &MemcheckArgs) -> Result<Outcome, Failure> {
    Err(Failure::unavailable("leaks are looked for on Linux on x86-64 only"))
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub(crate) fn timing(_: &Session, _: TimingArgs) -> Result<Outcome, Failure> {
    Err(Failure::unavailable("leaks are looked for on Linux on x86-64 only"))
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod here {
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::Duration;

    use lanework_suite::leaks::evidence::{Means, PlantedRow, Row};
    use lanework_suite::leaks::{self, Children, Evidence, Request, TimingOrder};

    use super::{CheckArgs, Failure, MemcheckArgs, Outcome, Session, TimingArgs};
    use crate::args::MeansName;

    /// Refuses where nothing can be judged.
    pub(crate) fn optimised() -> Result<(), Failure> {
        if cfg!(debug_assertions) {
            return Err(Failure::unavailable(
                "debug assertions branch on secrets: leaks are judged in an optimised build, `cargo run --release`",
            ));
        }
        Ok(())
    }

    /// All evidence of the operations under `what`, each piece told as it comes.
    pub(crate) fn gather(
        session: &Session,
        what: &str,
        means: Vec<Means>,
        seconds: Option<f64>,
    ) -> Result<Vec<Evidence>, Failure> {
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(|e| Failure::unavailable(format!("no random numbers: {e}")))?;
        let request = Request {
            what: what.to_owned(),
            means,
            time: seconds.map(Duration::from_secs_f64),
            seed: u64::from_le_bytes(seed),
        };
        let child = ["__memcheck".to_owned(), what.to_owned()];
        let valgrind = || leaks::run_under_valgrind(&child);
        let again = |order: &TimingOrder| leaks::run_again(&arguments(order));
        let children = Children { valgrind: &valgrind, again: &again };
        Ok(leaks::gather(&session.context, &request, &children, &mut |piece| match piece {
            Evidence::Operation(row) => session.say(line(row)),
            Evidence::Planted(row) => session.say(planted(row)),
        }))
    }

    pub(crate) fn run(session: &Session, args: &CheckArgs) -> Result<Outcome, Failure> {
        optimised()?;
        let means = |name: &MeansName| match name {
            MeansName::Traced => Means::Traced,
            MeansName::Instructions => Means::Instructions,
            MeansName::Valgrind => Means::Valgrind,
            MeansName::Timing => Means::Timing,
        };
        let means = match &args.means[..] {
            [] => Means::ALL.to_vec(),
            some => some.iter().map(means).collect(),
        };
        if args.what != "planted" && !leaks::any(&session.context, &args.what, &means) {
            return Err(Failure::input(format!(
                "no operation on secrets under '{}' that is judged by {}; try magma, magma/ctr, mayo, mayo/round2, mayo/*/mayo1/sign or planted",
                args.what,
                means.iter().map(|m| m.name()).collect::<Vec<_>>().join(", ")
            )));
        }
        let all = gather(session, &args.what, means.clone(), args.seconds)?;
        let (rows, planted): (Vec<&Row>, Vec<&PlantedRow>) = parts(&all);
        let failed = rows.iter().filter(|row| row.finding.fails()).count()
            + planted.iter().filter(|row| !row.right).count();
        if session.json {
            println!("{}", json(&rows, &planted));
        } else {
            println!("\n{}", table(&rows, &means));
            println!("{}", summary(&rows, &planted));
            if let Some(kinds) = unpromised(&rows) {
                println!("{kinds}");
            }
        }
        Ok(Outcome::from_bool(failed == 0))
    }

    /// What the process is told that does a series again.
    fn arguments(order: &TimingOrder) -> Vec<String> {
        let TimingOrder { what, backend, samples, time, turns, seed } = order;
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let options = [
            ("--samples", *samples),
            ("--nanoseconds", nanoseconds),
            ("--turns", u64::from(*turns)),
            ("--seed", *seed),
        ];
        let options = options.into_iter().flat_map(|(name, value)| [name.to_owned(), value.to_string()]);
        ["__timing", what, backend].map(str::to_owned).into_iter().chain(options).collect()
    }

    pub(crate) fn timing(session: &Session, args: TimingArgs) -> Result<Outcome, Failure> {
        optimised()?;
        let TimingArgs { what, of, samples, nanoseconds, turns, seed } = args;
        let time = Duration::from_nanos(nanoseconds);
        let order = TimingOrder { what, backend: of, samples, time, turns, seed };
        crate::files::print(
            leaks::timing_series(&session.context, &order).map_err(Failure::unavailable)?.as_bytes(),
        )?;
        Ok(Outcome::Yes)
    }

    pub(crate) fn under_memcheck(session: &Session, args: &MemcheckArgs) -> Result<Outcome, Failure> {
        leaks::under_memcheck(&session.context, &args.what);
        Ok(Outcome::Yes)
    }

    fn parts(all: &[Evidence]) -> (Vec<&Row>, Vec<&PlantedRow>) {
        let (mut rows, mut planted) = (Vec::new(), Vec::new());
        for piece in all {
            match piece {
                Evidence::Operation(row) => rows.push(row),
                Evidence::Planted(row) => planted.push(row),
            }
        }
        (rows, planted)
    }

    /// A row for people.
    fn line(row: &Row) -> String {
        let Row { what, backend, means, finding, extent, suspicion, .. } = row;
        let parts = [extent.as_str(), suspicion.as_deref().unwrap_or_default(), finding.detail()];
        let said: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        format!("{:7} {means:12} {backend:10} {what}: {}", finding.word(), said.join("; "))
    }

    fn planted(row: &PlantedRow) -> String {
        let word = match (row.sound, row.right) {
            (false, true) => "found",
            (true, true) => "sound",
            (false, false) => "MISSED",
            (true, false) => "ACCUSED",
        };
        format!("{word:7} {:12} {:10} planted {}: {}", row.means, row.tier, row.plant, row.said)
    }

    /// One line for each operation and backend, one column for each means.
    fn table(rows: &[&Row], means: &[Means]) -> String {
        type Line<'a> = (&'a str, BTreeMap<Means, &'a str>);
        let mut lines: BTreeMap<(&str, usize), Line<'_>> = BTreeMap::new();
        let mut backends: Vec<&str> = Vec::new();
        for row in rows {
            let order = backends.iter().position(|b| *b == row.backend).unwrap_or_else(|| {
                backends.push(&row.backend);
                backends.len() - 1
            });
            let entry = lines.entry((&row.what, order)).or_insert((&row.backend, BTreeMap::new()));
            entry.1.insert(row.means, row.finding.word());
        }
        let mut text = format!("{:44} {:10}", "operation", "backend");
        for one in means {
            text += &format!(" {one:12}");
        }
        for ((what, _), (backend, found)) in lines {
            text += &format!("\n{what:44} {backend:10}");
            for one in means {
                text += &format!(" {:12}", found.get(one).unwrap_or(&"-"));
            }
        }
        text
    }

    fn summary(rows: &[&Row], planted: &[&PlantedRow]) -> String {
        let count = |word: &str| rows.iter().filter(|row| row.finding.word() == word).count();
        let leaks: Vec<&&PlantedRow> = planted.iter().filter(|row| !row.sound).collect();
        format!(
            "{} clean, {} leaks, {} known, {} broken, {} not applicable; {} of {} planted leaks found",
            count("clean"),
            count("LEAK"),
            count("known"),
            count("BROKEN"),
            count("n/a"),
            leaks.iter().filter(|row| row.right).count(),
            leaks.len(),
        )
    }

    /// Which instructions of the list no vendor promises, of all operations together.
    fn unpromised(rows: &[&Row]) -> Option<String> {
        let names: BTreeSet<&str> = rows.iter().flat_map(|r| &r.unpromised).map(String::as_str).collect();
        let list = names.iter().copied().collect::<Vec<_>>().join(" ");
        (!names.is_empty())
            .then(|| format!("on the list, but promised by no vendor (docs/soundness.md): {list}"))
    }

    /// The rows as data.
    pub(crate) fn json(rows: &[&Row], planted: &[&PlantedRow]) -> serde_json::Value {
        let row = |row: &&Row| {
            serde_json::json!({
                "what": row.what, "backend": row.backend, "means": row.means.name(),
                "finding": row.finding.word().to_lowercase(), "detail": row.finding.detail(),
                "extent": row.extent, "unpromised": row.unpromised, "suspicion": row.suspicion,
            })
        };
        let plant = |row: &&PlantedRow| {
            serde_json::json!({
                "tier": row.tier, "plant": row.plant, "means": row.means.name(), "sound": row.sound,
                "right": row.right, "said": row.said,
            })
        };
        serde_json::json!({
            "results": rows.iter().map(row).collect::<Vec<_>>(),
            "planted": planted.iter().map(plant).collect::<Vec<_>>(),
        })
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use lanework_suite::leaks::evidence::Finding;

        fn row(what: &str, backend: &str, means: Means, finding: Finding) -> Row {
            Row {
                what: what.into(),
                backend: backend.into(),
                means,
                finding,
                extent: "5 secrets".into(),
                unpromised: Vec::new(),
                suspicion: None,
            }
        }

        #[test]
        fn a_second_series_is_asked_for_in_full() {
            use crate::args::{Cli, Command};
            use clap::Parser;

            let order = TimingOrder {
                what: "magma/ctr".into(),
                backend: "avx512".into(),
                samples: 7,
                time: Duration::from_secs(600),
                turns: 5,
                seed: u64::MAX,
            };
            let told = [vec!["lanework".to_owned()], arguments(&order)].concat();
            let Some(Command::Timing(read)) = Cli::parse_from(told).command else {
                panic!("another command")
            };
            assert_eq!((read.what.as_str(), read.of.as_str()), ("magma/ctr", "avx512"));
            assert_eq!((read.samples, read.nanoseconds), (7, 600_000_000_000));
            assert_eq!((read.turns, read.seed), (5, u64::MAX));
        }

        #[test]
        fn a_leak_stands_in_its_line_its_column_and_the_count() {
            let rows = [
                row("magma/ctr", "portable", Means::Traced, Finding::Clean),
                row("magma/ctr", "avx2", Means::Traced, Finding::Leak("`je` in f".into())),
                row("magma/ctr", "avx2", Means::Timing, Finding::NotApplicable("why".into())),
            ];
            let mut rows: Vec<Row> = rows.into();
            rows[0].unpromised = vec!["rol".into(), "vpermb".into()];
            rows[1].unpromised = vec!["rol".into()];
            let rows: Vec<&Row> = rows.iter().collect();
            assert!(unpromised(&rows).is_some_and(|text| text.ends_with(": rol vpermb")));
            assert_eq!(unpromised(&rows[2..]), None);
            assert_eq!(line(rows[1]), "LEAK    traced       avx2       magma/ctr: 5 secrets; `je` in f");
            let table = table(&rows, &[Means::Traced, Means::Timing]);
            let lines: Vec<Vec<&str>> = table.lines().map(|l| l.split_whitespace().collect()).collect();
            assert_eq!(lines[1], ["magma/ctr", "portable", "clean", "-"]);
            assert_eq!(lines[2], ["magma/ctr", "avx2", "LEAK", "n/a"]);
            let missed = PlantedRow {
                tier: "avx2",
                plant: "load_by_lanes",
                means: Means::Traced,
                sound: false,
                right: false,
                said: "no difference".into(),
            };
            assert!(planted(&missed).starts_with("MISSED"));
            assert_eq!(
                summary(&rows, &[&missed]),
                "1 clean, 1 leaks, 0 known, 0 broken, 1 not applicable; 0 of 1 planted leaks found"
            );
            let json = json(&rows, &[&missed]);
            assert_eq!(json["results"][1]["finding"], "leak");
            assert_eq!(json["planted"][0]["right"], false);
        }
    }
}
