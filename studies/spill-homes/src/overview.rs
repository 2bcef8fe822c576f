//! The overview that the report leaves open: its claims, its own builds' results here, and why the two may differ.
#![forbid(unsafe_code)]

use lanework_race::verdict::Verdict;
use lanework_spill::finding::Part;
use lanework_study::markdown::{NONE, strings, table};
use serde::Deserialize;

use super::builds::Build;
use super::given::{MMX, REBUILT};
use super::page::{between, finding, part, percent};
use super::races::{OWN, Row};

/// A note of the report's about some rows.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Claim {
    /// The beginning of their names.
    rows: String,
    says: String,
}

/// The lowest and the highest, in per cent.
fn range(values: impl Iterator<Item = f64>) -> Option<String> {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
    let [a, b] = [low, high].map(percent);
    (low <= high).then(|| if a == b { a } else { format!("{a} to {b}") })
}

/// The range of some differences, and how many have each verdict.
fn summed(parts: &[Part]) -> String {
    let valid = || parts.iter().filter(|part| part.verdict != Verdict::Void);
    let words: Vec<String> = Verdict::ALL
        .iter()
        .map(|verdict| (verdict, parts.iter().filter(|part| part.verdict == *verdict).count()))
        .filter(|(_, n)| *n > 0)
        .map(|(verdict, n)| format!("{n} {verdict}"))
        .collect();
    match range(valid().map(|part| part.more)) {
        Some(range) => format!("{range} ({})", words.join(", ")),
        None if words.is_empty() => NONE.to_owned(),
        None => words.join(", "),
    }
}

fn mmx(row: &Row) -> Option<&Build> {
    row.builds.get(MMX)
}

/// Each note of the report beside its builds' results here.
pub(super) fn claims(claims: &[Claim], rows: &[Row]) -> String {
    let header =
        ["Rows", "The report's note", "i7-10700K", "Its MMX build here", "Its policy by `respill` here"];
    let lines: Vec<Vec<String>> = claims
        .iter()
        .map(|claim| {
            let rows =
                || rows.iter().filter(|row| row.timed && row.original && row.name.starts_with(&claim.rows));
            let builds: Vec<Part> = rows().filter_map(|row| mmx(row)?.beside_stack).collect();
            let ours: Vec<Part> = rows().filter_map(|row| Some(finding(row, OWN)?.whole)).collect();
            let there = range(rows().filter_map(|row| row.figures).map(|(stack, mmx)| mmx / stack - 1.0));
            let there = there.unwrap_or_else(|| NONE.to_owned());
            vec![claim.rows.clone(), claim.says.clone(), there, summed(&builds), summed(&ours)]
        })
        .collect();
    table(&strings(&header), &lines)
}

/// The other builds that were given, and the findings on each.
pub(super) fn builds(rows: &[Row]) -> String {
    let header = [
        "Implementation",
        "build",
        "mm",
        "%rsp",
        "bytes",
        "emms",
        "long double after it",
        "lint",
        "equal results",
        "beside the baseline",
        "beside the rebuilt",
    ];
    let mut lines = Vec::new();
    for row in rows {
        let Some(code) = row.code.filter(|_| !row.builds.is_empty()) else { continue };
        let numbers = |code: super::builds::Code| {
            [code.mmx as u64, code.stack as u64, code.bytes, code.emms as u64].map(|n| n.to_string())
        };
        let mut line = vec![row.name.clone(), "baseline".to_owned()];
        line.extend(numbers(code));
        lines.push(line);
        for (name, build) in &row.builds {
            let mut line = vec![String::new(), name.clone()];
            line.extend(numbers(build.code));
            line.push(build.float_after.clone().unwrap_or_else(|| NONE.to_owned()));
            line.push(build.faults.to_string());
            line.push(build.same_results.to_string());
            let of = |time: Option<Part>| time.map_or_else(|| NONE.to_owned(), |time| part(&time));
            line.extend([of(build.beside_stack), of(build.beside_rebuilt)]);
            lines.push(line);
        }
    }
    if lines.is_empty() { String::new() } else { table(&strings(&header), &lines) }
}

/// Why the report's figures and these may differ, as far as this run shows it.
pub(super) fn why(rows: &[Row]) -> Vec<String> {
    let given: Vec<(&Row, &Build)> = rows.iter().filter_map(|row| Some((row, mmx(row)?))).collect();
    if given.is_empty() {
        return vec![
            "The report's own builds were not given (`--asm`): libjade's functions from packages, or ours, stand in for them."
                .to_owned(),
        ];
    }
    let mut out = direction(&given);
    for (row, build) in given.iter().filter(|(_, build)| build.identical) {
        let said = build.beside_stack.map_or_else(String::new, |time| format!(" {} here,", shown(&time)));
        let there = row
            .figures
            .map_or_else(String::new, |(stack, mmx)| format!(" {} % there", percent(mmx / stack - 1.0)));
        out.push(format!("{}: its two files are equal. The row is an A/A control:{said}{there}.", row.name));
    }
    for (row, build) in &given {
        let rebuilt = row.builds.get(REBUILT).and_then(|rebuilt| rebuilt.beside_stack);
        if let (Some(flags), Some(alone), Some(both)) = (rebuilt, build.beside_rebuilt, build.beside_stack) {
            out.push(format!(
                "{}, its flags apart: the baseline rebuilt with the MMX build's flags takes {} more. The MMX build takes {} more than that one, and {} \
                 more than the baseline.",
                row.name,
                shown(&flags),
                shown(&alone),
                shown(&both)
            ));
        }
    }
    let without = given.iter().filter(|(_, build)| build.code.mmx > 0 && build.code.emms == 0).count();
    let broken: Vec<&(&Row, &Build)> = given.iter().filter(|(_, build)| build.breaks_floats()).collect();
    if let Some((row, build)) = broken.first() {
        out.push(format!(
            "{without} of {} MMX builds use MMX and have no `emms`. In {} rows a caller's first `long double` after the call is NaN.",
            given.len(),
            broken.len(),
        ));
        let linted = given.iter().filter(|(_, build)| build.faults > 0).count();
        out.push(format!(
            "`respill lint` names the fault in {linted} of these rows. Of {}: `{}`.",
            row.name,
            build.first_fault.as_deref().unwrap_or("nothing").replace('`', "")
        ));
    }
    out
}

fn shown(time: &Part) -> String {
    let word = if time.verdict == Verdict::Void { " (void)" } else { "" };
    format!("{} % [{}]{word}", percent(time.more), between(time.low, time.high))
}

/// How often the MMX builds differ here as they did there.
fn direction(given: &[(&Row, &Build)]) -> Vec<String> {
    let (mut same, mut opposite, mut neither, mut void) = (0, 0, 0, 0);
    for (row, build) in given {
        let (Some((stack, mmx)), Some(time)) = (row.figures, build.beside_stack) else { continue };
        match (time.verdict, mmx > stack) {
            (Verdict::Void, _) => void += 1,
            (Verdict::Slower, true) | (Verdict::Faster, false) => same += 1,
            (Verdict::Slower, false) | (Verdict::Faster, true) => opposite += 1,
            _ => neither += 1,
        }
    }
    let all = same + opposite + neither + void;
    if all == 0 {
        return vec!["The report's own builds were checked and not timed.".to_owned()];
    }
    vec![format!(
        "Of {all} MMX builds, {same} are faster or slower here as in the report, {opposite} the other way round, {neither} show no difference, \
         and {void} are void."
    )]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::builds::Code;
    use crate::verdict::tests::row;

    fn time(more: f64, verdict: Verdict) -> Option<Part> {
        Some(Part { more, low: more - 0.001, high: more + 0.001, verdict })
    }

    fn build(mmx: usize, more: f64, verdict: Verdict) -> Build {
        Build {
            from: "f.s".to_owned(),
            identical: false,
            code: Code { mmx, stack: 3, emms: 0, bytes: 9 },
            same_results: 20,
            faults: usize::from(mmx > 0),
            first_fault: (mmx > 0).then(|| "f: left without emms".to_owned()),
            float_after: Some(if mmx > 0 { "NaN" } else { "4.5" }.to_owned()),
            beside_stack: time(more, verdict),
            beside_rebuilt: None,
        }
    }

    /// A row whose MMX build was 1 % faster in the report.
    fn with(builds: &[(&str, Build)]) -> Row {
        let builds = builds.iter().map(|(name, build)| ((*name).to_owned(), build.clone()));
        let code = Some(Code { mmx: 0, stack: 5, emms: 0, bytes: 10 });
        Row {
            builds: builds.collect::<BTreeMap<_, _>>(),
            code,
            ..row(0.05, Verdict::Slower, Verdict::Slower)
        }
    }

    #[test]
    fn each_reason_follows_from_what_was_found() {
        assert!(why(&[with(&[])])[0].contains("were not given"));
        let said = why(&[with(&[(MMX, build(4, -0.02, Verdict::Faster))])]).join("\n");
        assert!(
            said.contains("Of 1 MMX builds, 1 are faster or slower here as in the report, 0 the other"),
            "{said}"
        );
        assert!(said.contains("1 of 1 MMX builds use MMX and have no `emms`. In 1 rows"), "{said}");
        assert!(said.contains("names the fault in 1 of these rows. Of f: `f: left without emms`."), "{said}");
        assert!(!said.contains("two files are equal") && !said.contains("its flags apart"), "{said}");
        for (more, verdict, says) in [
            (
                0.02,
                Verdict::Slower,
                "0 are faster or slower here as in the report, 1 the other way round, 0 show",
            ),
            (0.02, Verdict::Same, "0 the other way round, 1 show no difference, and 0 are void"),
            (-0.02, Verdict::Void, "0 the other way round, 0 show no difference, and 1 are void"),
        ] {
            let said = why(&[with(&[(MMX, build(4, more, verdict))])]).join("\n");
            assert!(said.contains(says), "{said}");
        }
        let equal = Build { identical: true, ..build(0, 0.0, Verdict::Same) };
        let said = why(&[with(&[(MMX, equal)])]).join("\n");
        assert!(said.contains("f: its two files are equal. The row is an A/A control: +0.00 % [-0.10, +0.10] here, -1.00 % there."), "{said}");
        assert!(!said.contains("NaN"), "{said}");
        let flags = Build { beside_rebuilt: time(-0.03, Verdict::Faster), ..build(4, 0.02, Verdict::Slower) };
        let said = why(&[with(&[(MMX, flags), (REBUILT, build(0, 0.05, Verdict::Slower))])]).join("\n");
        assert!(
            said.contains("flags takes +5.00 % [+4.90, +5.10] more. The MMX build takes -3.00 %"),
            "{said}"
        );
    }

    #[test]
    fn the_tables_have_what_was_given() {
        let claim = Claim { rows: "f".to_owned(), says: "\"faster\"".to_owned() };
        let one = [with(&[(MMX, build(4, -0.02, Verdict::Faster))])];
        let said = claims(std::slice::from_ref(&claim), &one);
        assert!(
            said.contains("-1.00 |")
                && said.contains("-2.00 (1 faster)")
                && said.contains("+5.00 (1 slower)"),
            "{said}"
        );
        let said = claims(&[claim], &[Row { timed: false, ..with(&[]) }]);
        assert!(!said.contains("slower"), "{said}");
        let said = builds(&one);
        assert!(
            said.contains(" baseline |") && said.contains("NaN") && said.contains("-2.00* [-2.10, -1.90]"),
            "{said}"
        );
        assert!(builds(&[with(&[])]).is_empty());
    }
}
