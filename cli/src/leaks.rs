//! `lanework check --leaks`.
#![forbid(unsafe_code)]

use lanework_study::{Failure, Outcome};

use crate::args::{CheckArgs, MemcheckArgs, TimingArgs};
use crate::ui::Session;

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

    use lanework_study::leaks::{gather, json, optimised};
    use lanework_suite::leaks::evidence::{Finding, Means, PlantedRow, Row};
    use lanework_suite::leaks::{self, Evidence, TimingOrder};

    use super::{CheckArgs, Failure, MemcheckArgs, Outcome, Session, TimingArgs};
    use crate::args::MeansName;
    use crate::ui::counted;

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
        let asked = args.what.as_deref().unwrap_or_default();
        if asked != "planted" && !leaks::any(&session.context, asked, &means) {
            let means = means.iter().map(|m| m.name()).collect::<Vec<_>>().join(", ");
            let what = format!("no operation on secrets under '{asked}' that is checked by {means}");
            return Err(Failure::input(what)
                .help("choose magma, magma/ctr, mayo, mayo/round2, mayo/*/mayo1/sign or planted"));
        }
        let all = gather(session, asked, means.clone(), args.seconds)?;
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
        if failed == 0
            && let Some(why) = unchecked(&rows, &planted)
        {
            return Err(Failure::unavailable(format!("nothing was checked: {why}"))
                .help("choose other --means, or install what is missing")
                .beside_data());
        }
        Ok(Outcome::from_bool(failed == 0))
    }

    /// Why no row is a judgement. Operations that are public by declaration need none; planted leaks judge the means, not an
    /// operation.
    fn unchecked(rows: &[&Row], planted: &[&PlantedRow]) -> Option<String> {
        if rows.is_empty() {
            return planted.is_empty().then(|| "these means cannot be used here".to_owned());
        }
        if rows.iter().any(|row| !matches!(row.finding, Finding::NotApplicable(_))) {
            return None;
        }
        rows.iter().find(|row| row.backend != leaks::ANY).map(|row| row.finding.detail().to_owned())
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
            "{} clean, {}, {} known, {} broken, {} not applicable; {} of {} found",
            count("clean"),
            counted(count("LEAK") as u64, "leak", "leaks"),
            count("known"),
            count("BROKEN"),
            count("n/a"),
            leaks.iter().filter(|row| row.right).count(),
            counted(leaks.len() as u64, "planted leak", "planted leaks"),
        )
    }

    /// The listed instructions that no vendor promises, over all operations.
    fn unpromised(rows: &[&Row]) -> Option<String> {
        let names: BTreeSet<&str> = rows.iter().flat_map(|r| &r.unpromised).map(String::as_str).collect();
        let list = names.iter().copied().collect::<Vec<_>>().join(" ");
        (!names.is_empty())
            .then(|| format!("on the list, but no vendor promises them (docs/soundness.md): {list}"))
    }

    #[cfg(test)]
    mod tests {
        use lanework_study::leaks::{arguments, line, planted};
        use lanework_suite::leaks::evidence::Finding;

        use super::*;

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
                "1 clean, 1 leak, 0 known, 0 broken, 1 not applicable; 0 of 1 planted leak found"
            );
            assert_eq!(unchecked(&rows, &[]), None);
            assert_eq!(unchecked(&rows[2..], &[]).as_deref(), Some("why"));
            assert_eq!(unchecked(&rows[2..], &[&missed]).as_deref(), Some("why"));
            assert!(unchecked(&[], &[]).is_some());
            assert_eq!(unchecked(&[], &[&missed]), None);
            let public =
                row("vdf", leaks::ANY, Means::Traced, Finding::NotApplicable("all of it is public".into()));
            assert_eq!(unchecked(&[&public], &[]), None);
            let json = json(&rows, &[&missed]);
            assert_eq!(json["results"][1]["finding"], "leak");
            assert_eq!(json["planted"][0]["right"], false);
        }
    }
}
