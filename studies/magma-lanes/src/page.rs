//! The study's page, as the template needs it.
#![forbid(unsafe_code)]

use std::fmt::Write as _;

use crate::subjects::{BUFFER, CIPHER, PLAIN, REPORT};
use crate::variants::REPORT_F;
use lanework_cpu::Backend;
use lanework_magma::backend::BACKENDS;
use lanework_magma::internals::floor::Ports;
use lanework_race::record::ResultRow;
use lanework_race::table::{percent, times};
use lanework_study::markdown::{NONE, strings, table};
use lanework_study::process;
use serde::Serialize;

use super::flags;
use super::floor::{Share, ghz, ports, shares};
use super::gcc;
use super::question::{Loop, Plan, gbit};
use super::races::{Measured, SCALAR, Values};
use super::verdict::{ALL, Answer, BUFFERS, CONSTANT, answers, why};

/// Everything that the template names.
#[derive(Serialize)]
pub(super) struct Page {
    question: String,
    title: String,
    their_machine: String,
    compiler: String,
    machine: String,
    command: String,
    method: String,
    f_test: String,
    block_test: String,
    loops: String,
    performance: String,
    buffers: String,
    alone: String,
    less_one: String,
    flags: String,
    gcc: String,
    gcc_version: Option<String>,
    flags_missing: Vec<String>,
    speed: String,
    peers: String,
    bounds: String,
    pub(super) shares: Vec<Share>,
    pub(super) verdict: Vec<Answer>,
    why: Vec<String>,
    not_here: Vec<String>,
    remarks: Vec<String>,
}

/// The paths of the races behind the table and the peers.
const CTR: &str = "magma/lanes/ctr/16384";

fn mark(right: bool) -> &'static str {
    if right { "✓ MATCH" } else { "✗ DIFFERENT" }
}

fn word(x: Option<u32>) -> String {
    x.map_or_else(|| "not here".to_owned(), |x| format!("{x:#010x}"))
}

/// The report's eight tests of f.
fn f_test(values: &Values) -> String {
    let mut text = String::new();
    for (i, (x, theirs)) in REPORT_F.into_iter().enumerate() {
        let (scalar, vector) = (values.scalar_f.map(|f| f[i]), values.vector_f.map(|f| f[i]));
        let right = [scalar, vector].iter().flatten().all(|&y| y == theirs);
        let _ = write!(
            text,
            "Test {i}: {x:#010x}\n  scalar f: {}\n  SIMD f:   {}\n  report:   {theirs:#010x}\n  {}\n",
            word(scalar),
            word(vector),
            mark(right)
        );
    }
    text
}

fn hex(block: &[u8]) -> String {
    block.iter().map(|b| format!("{b:02x} ")).collect::<String>().trim_end().to_owned()
}

/// The report's test of one block, and what it left out: every lane.
fn block_test(values: &Values) -> String {
    let shown = |block: Option<[u8; 8]>| block.map_or_else(|| "not here".to_owned(), |b| hex(&b));
    let first = values.vector_blocks.map(|b| b[0]);
    let right = [values.scalar_block, first].iter().flatten().all(|b| *b == CIPHER);
    let lanes = values.vector_blocks.map_or_else(
        || "not here".to_owned(),
        |b| format!("{} of 8 lanes", b.iter().filter(|b| **b == CIPHER).count()),
    );
    format!(
        "Plaintext: {}\nscalar ciphertext: {}\nSIMD ciphertext (first block): {}\n{}\nSIMD ciphertext, all lanes: {lanes}\n",
        hex(&PLAIN),
        shown(values.scalar_block),
        shown(first),
        mark(right)
    )
}

fn number(x: Option<f64>, decimals: usize) -> String {
    x.map_or_else(|| NONE.to_owned(), |x| format!("{x:.decimals$}"))
}

fn verdict(row: Option<&ResultRow>) -> String {
    row.map_or_else(|| NONE.to_owned(), |r| format!("{} {}", times(r.ratio), r.verdict))
}

/// The report's two loops, line for line, with what the same number of operations takes here.
fn loops(plan: &Plan, found: &Measured) -> String {
    let o = &plan.original;
    let mut text = String::new();
    let kinds = [("scalar", &o.scalar, SCALAR), ("simd", &o.vector, ALL)];
    for (kind, there, variant) in kinds {
        let ns = found.ns(CONSTANT, variant).map(|ns| ns * there.blocks as f64);
        let operations = there.iterations as f64;
        let lines = [
            (
                format!("speed_{kind}, Gbit/s"),
                format!("{:.2}", there.gbit),
                number(ns.map(|ns| gbit(ns / there.blocks as f64)), 2),
            ),
            (
                "  time, s".to_owned(),
                format!("{:.9}", there.seconds),
                number(ns.map(|ns| ns * operations / 1e9), 3),
            ),
            (
                "  operations/s".to_owned(),
                format!("{:.0}", operations / there.seconds),
                number(ns.map(|ns| 1e9 / ns), 0),
            ),
            ("  time of an operation, ns".to_owned(), format!("{:.1}", there.ns), number(ns, 1)),
        ];
        let _ = writeln!(
            text,
            "bytes_processed_{kind}: {}; {} iterations of {} block(s){:>11} {:>13}",
            o.bytes, there.iterations, there.blocks, "report", "here"
        );
        for (what, theirs, ours) in lines {
            let _ = writeln!(text, "{what:<60} {theirs:>16} {ours:>13}");
        }
    }
    let here = found.row(CONSTANT, ALL, SCALAR).map(|r| r.ratio);
    let _ = writeln!(text, "{:<60} {:>16} {:>13}", "Speedup", format!("{:.6}", o.speedup), number(here, 6));
    text
}

/// Scalar, the report's design, ours: Gbit/s, time of an operation, speed-up over the scalar code.
fn performance(plan: &Plan, found: &Measured) -> String {
    let line = |label: &str, variant: &str, blocks: u64, theirs: Option<(&Loop, f64)>| {
        let ns = found.ns(CONSTANT, variant);
        let speedup = if variant == SCALAR {
            found.ns(CONSTANT, SCALAR).map_or_else(|| NONE.to_owned(), |_| times(1.0))
        } else {
            verdict(found.row(CONSTANT, variant, SCALAR))
        };
        vec![
            label.to_owned(),
            blocks.to_string(),
            number(theirs.map(|t| t.0.gbit), 2),
            number(ns.map(gbit), 2),
            number(theirs.map(|t| t.0.ns), 1),
            number(ns.map(|ns| ns * blocks as f64), 1),
            theirs.map_or_else(|| NONE.to_owned(), |t| times(t.1)),
            speedup,
        ]
    };
    let o = &plan.original;
    let mut rows = vec![
        line("scalar, tables (leaks)", SCALAR, 1, Some((&o.scalar, 1.0))),
        line("SIMD, the report's eight blocks", ALL, 8, Some((&o.vector, o.speedup))),
    ];
    for name in BACKENDS.iter().map(Backend::name) {
        rows.push(line(&format!("ours, {name}"), name, 8, None));
        rows.push(line(&format!("ours, {name}"), &format!("{name}+blocks=128"), 128, None));
    }
    rows.retain(|r| r[3] != NONE || r[2] != NONE);
    table(
        &strings(&[
            "Version",
            "blocks",
            "Gbit/s, report",
            "here",
            "ns an operation, report",
            "here",
            "speed-up, report",
            "here",
        ]),
        &rows,
    )
}

/// The same blocks in real buffers, beside peers that encrypt whole blocks.
fn buffers(found: &Measured) -> String {
    let names = found.record.results.iter().filter(|r| r.subject == BUFFERS && r.baseline == SCALAR);
    let mut rows: Vec<Vec<String>> = std::iter::once(SCALAR)
        .chain(names.map(|r| r.variant.as_str()))
        .filter_map(|name| {
            let ns = found.ns(BUFFERS, name)?;
            let speedup = if name == SCALAR { times(1.0) } else { verdict(found.row(BUFFERS, name, SCALAR)) };
            Some(vec![
                name.to_owned(),
                format!("{:.2}", gbit(ns)),
                format!("{:.1}", 8000.0 / ns),
                number(found.ns(CONSTANT, name).map(gbit), 2),
                speedup,
            ])
        })
        .collect();
    if rows.is_empty() {
        rows.push(strings(&[NONE; 5]));
    }
    table(&strings(&["Version", "Gbit/s", "MB/s", "constant block, Gbit/s", "speed-up"]), &rows)
}

/// Each measure by itself, from a program without any.
fn alone(found: &Measured) -> String {
    let none = "table-scalar-calls (leaks)";
    let lines = [
        ("none of them", none),
        ("inlining alone (one block)", SCALAR),
        ("eight blocks alone", "report-avx2-calls"),
        ("eight blocks, aligned", "report-avx2-calls-aligned"),
        ("eight blocks, inlined", REPORT),
        ("all three", ALL),
    ];
    let rows: Vec<Vec<String>> = lines
        .iter()
        .map(|(label, variant)| {
            let cell = |subject| {
                if *variant == none {
                    number(found.ns(subject, none).map(|_| 1.0), 0)
                } else {
                    verdict(found.row(subject, variant, none))
                }
            };
            let speed = |subject| number(found.ns(subject, variant).map(gbit), 2);
            vec![(*label).to_owned(), speed(CONSTANT), cell(CONSTANT), speed(BUFFERS), cell(BUFFERS)]
        })
        .collect();
    table(
        &strings(&["Measures", "constant block, Gbit/s", "against none", "16 KiB, Gbit/s", "against none"]),
        &rows,
    )
}

/// All measures less one; and what alignment is to ours.
fn less_one(found: &Measured) -> String {
    let lines = [
        ("without inlining", "report-avx2-calls-aligned", ALL),
        ("unaligned loads, aligned buffers", REPORT, ALL),
        ("unaligned loads, buffers 1 byte off", "report-avx2+offset=1", ALL),
        ("unaligned loads, buffers 16 bytes off", "report-avx2+offset=16", ALL),
        ("ours, avx2: buffers 1 byte off", "avx2+offset=1", "avx2"),
        ("ours, avx512: buffers 1 byte off", "avx512+offset=1", "avx512"),
    ];
    let rows: Vec<Vec<String>> = lines
        .iter()
        .map(|(label, variant, baseline)| {
            let row = found.row(BUFFERS, variant, baseline);
            let seen = row.map_or_else(|| NONE.to_owned(), |r| percent(r.detectable));
            vec![(*label).to_owned(), (*baseline).to_owned(), verdict(row), seen]
        })
        .collect();
    table(&strings(&["Changed", "against", "ratio", "smallest effect seen"]), &rows)
}

fn flag_table(found: &Measured) -> String {
    let rows: Vec<Vec<String>> = found
        .flags
        .lines
        .iter()
        .map(|l| {
            let what = flags::BUILDS.iter().find(|b| b.0 == l.build).map_or("this build", |b| b.1);
            let label = flags::label(&l.configuration, &l.build);
            let row = found.row(&flags::subject(&l.configuration), &label, &l.configuration);
            vec![l.configuration.clone(), what.to_owned(), format!("{:.1}", l.ns), verdict(row)]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let header = ["Version", "built at", "ns an operation", "whole processes against this build"];
    table(&strings(&header), &rows)
}

/// gcc's builds of the loop in C.
fn gcc_table(found: &Measured) -> String {
    let best = format!("gcc {}", gcc::FLAGS[0]);
    let rows: Vec<Vec<String>> = found
        .flags
        .gcc
        .iter()
        .map(|l| {
            let [label, baseline] = [&l.build, &best].map(|build| flags::label(&l.configuration, build));
            let row = found.row(&flags::subject(&l.configuration), &label, &baseline);
            // A run of the quick form that is as short as a start has no time of its own.
            let ns = number((l.ns > 0.0).then_some(l.ns), 1);
            vec![l.configuration.clone(), l.build.clone(), ns, verdict(row)]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let against = format!("whole processes against {best}");
    table(&strings(&["Version", "built by", "ns an operation", &against]), &rows)
}

/// The table of `openssl speed`, in thousands of bytes a second.
fn speed(plan: &Plan, found: &Measured) -> String {
    let sizes = plan.original.table.sizes;
    let mut header = vec!["type".to_owned()];
    header.extend(sizes.map(|s| format!("{s} bytes")));
    let mut rows = vec![
        std::iter::once("gost89, report".to_owned())
            .chain(plan.original.table.gost89.iter().map(|k| format!("{k:.2}k")))
            .collect::<Vec<_>>(),
    ];
    let kinds = [("gost89", "gost89"), ("gost89-x64", "gost89, 64 messages"), ("ctr", "magma-ctr")];
    for (path, label) in kinds {
        for variant in ["gost-engine", REPORT].into_iter().chain(BACKENDS.iter().map(Backend::name)) {
            let cells: Vec<Option<f64>> = sizes
                .iter()
                .map(|size| {
                    Some(*size as f64 / found.ns(&format!("magma/lanes/{path}/{size}"), variant)? * 1e6)
                })
                .collect();
            if cells.iter().any(Option::is_some) {
                let cells =
                    cells.into_iter().map(|k| k.map_or_else(|| NONE.to_owned(), |k| format!("{k:.2}k")));
                rows.push(std::iter::once(format!("{label}, {variant}")).chain(cells).collect());
            }
        }
    }
    table(&header, &rows)
}

/// Everyone at 16 KiB in counter mode.
fn peers(found: &Measured) -> String {
    let engine = "gost-engine";
    let names = found.record.results.iter().filter(|r| r.subject == CTR && r.baseline == "portable");
    let rows: Vec<Vec<String>> = std::iter::once("portable")
        .chain(names.map(|r| r.variant.as_str()))
        .filter_map(|name| {
            let ns = found.ns(CTR, name)?;
            let of = |other: &str| {
                if name == other {
                    return Some(1.0);
                }
                found.ratio(CTR, name, other)
            };
            let label = if name == REPORT { "report-avx2 (SmokeRand's design too)" } else { name };
            let cell = |x: Option<f64>| x.map_or_else(|| NONE.to_owned(), times);
            Some(vec![
                label.to_owned(),
                format!("{:.1}", BUFFER as f64 / ns * 1e3),
                cell(of(engine)),
                cell(of(REPORT)),
            ])
        })
        .collect();
    table(&strings(&["CTR, 16384 bytes", "MB/s", "of gost-engine", "of the report's design"]), &rows)
}

/// The bounds, if this machine's ports are known.
fn bounds(ports: Option<&Ports>, shares: &[Share]) -> String {
    let Some(ports) = ports else {
        return "Nobody has written down what this CPU's ports do in a cycle, so there is no bound.\n"
            .to_owned();
    };
    let rows: Vec<Vec<String>> = shares
        .iter()
        .map(|s| {
            let bound = s.bound.map_or_else(|| "not counted".to_owned(), |c| format!("{c:.3}"));
            let share = s.share.map_or_else(|| NONE.to_owned(), percent);
            vec![s.variant.clone(), bound, format!("{:.3}", s.took), share, s.what.clone()]
        })
        .collect();
    let header = ["ECB, 16384 bytes", "bound, cycles a byte", "took", "share of the bound", "design"];
    format!(
        "Instructions of the design over instructions a cycle ({}: {} of 256 bits, {} of 512), at the clock of the calibration chain.\n\n{}",
        ports.name,
        ports.any256,
        ports.any512,
        table(&strings(&header), &rows)
    )
}

/// Fills in everything.
pub(super) fn page(question: &str, plan: &Plan, found: &Measured, full: bool) -> Page {
    let (record, original) = (&found.record, &plan.original);
    let ports = ports(&record.machine);
    let shares = ports
        .zip(ghz(&record.machine))
        .map(|(ports, ghz)| shares(&ports, ghz, |name| found.ns(BUFFERS, name).map(|ns| ns / 8.0)))
        .unwrap_or_default();
    let missing = flags::BUILDS.iter().filter(|b| process::other_build(b.0).is_none());
    let method = format!(
        "{}: races in pairs over {} processes each, {} seconds in all, behind the gates; medians, and ratios of pairs with their \
         verdicts.{}",
        if full { "Full form" } else { "Quick form" },
        found.launches,
        found.seconds,
        if full { "" } else { " `--full` takes enough for publishing." }
    );
    let mut not_here: Vec<String> = Vec::new();
    if !found.peers {
        not_here.push(
            "peers: not asked for; `cargo xtask peers`, then `cargo run --release --features peers -- --peers study magma-lanes`"
                .to_owned(),
        );
    }
    for n in &record.not_here {
        let line = format!("{} in {}: {}", n.variant, n.subject, n.why);
        if !not_here.contains(&line) {
            not_here.push(line);
        }
    }
    Page {
        question: question.to_owned(),
        title: original.title.clone(),
        their_machine: original.machine.clone(),
        compiler: original.compiler.clone(),
        machine: record.machine.summary(),
        command: record.command.clone(),
        method,
        f_test: f_test(&found.values),
        block_test: block_test(&found.values),
        loops: loops(plan, found),
        performance: performance(plan, found),
        buffers: buffers(found),
        alone: alone(found),
        less_one: less_one(found),
        flags: flag_table(found),
        gcc: gcc_table(found),
        gcc_version: found.flags.gcc_version.clone(),
        flags_missing: missing
            .map(|(_, what, how)| format!("{what}: not built; `{how}` puts it where this study finds it"))
            .chain(found.flags.missing.iter().cloned())
            .collect(),
        speed: speed(plan, found),
        peers: peers(found),
        bounds: bounds(ports.as_ref(), &shares),
        verdict: answers(plan, found),
        why: why(plan, found, &shares),
        shares,
        not_here,
        remarks: record.remarks.clone(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use lanework_race::clock::Monotonic;
    use lanework_race::machine::Machine;
    use lanework_race::record::Record;
    use lanework_race::study::render;

    use super::*;
    use crate::ENTRY;
    use crate::flags::{Flags, Line};
    use crate::question::tests::plan;

    /// A synthetic row: the baseline takes 100 ns a unit.
    pub(in super::super) fn row(
        subject: &str,
        variant: &str,
        baseline: &str,
        ratio: f64,
        verdict: &str,
    ) -> ResultRow {
        let ns = 100.0 / ratio;
        serde_json::from_value(serde_json::json!({
            "subject": subject, "variant": variant, "baseline": baseline, "ratio": ratio, "low": ratio, "high": ratio,
            "noise": 0.001, "verdict": verdict, "unit": "ns", "median": ns, "mean": ns, "min": ns, "q1": ns, "q3": ns,
            "ticks": null, "baseline_median": 100.0, "baseline_mean": 100.0, "baseline_min": 100.0, "margin": 0.005,
            "detectable": 0.01, "backend": variant, "baseline_backend": baseline, "cores": 1, "iterations": [1, 1],
            "launch_pairs": [8], "samples": [], "baseline_samples": [],
        }))
        .expect("a row")
    }

    pub(in super::super) fn found(rows: Vec<ResultRow>) -> Measured {
        let mut record = Record::new(
            ENTRY.name,
            "lanework study magma-lanes",
            Machine::inspect(&Monotonic::new(), Vec::new()),
        );
        record.results = rows;
        let values = Values {
            scalar_f: Some(REPORT_F.map(|p| p.1)),
            vector_f: Some(REPORT_F.map(|p| p.1)),
            scalar_block: Some(CIPHER),
            vector_blocks: Some([CIPHER; 8]),
        };
        Measured { record, values, flags: Flags::default(), launches: 5, seconds: 1.0, peers: false }
    }

    #[test]
    fn the_template_shows_the_reports_figures_and_ours() {
        let mut found = found(vec![
            row(CONSTANT, ALL, SCALAR, 4.0, "faster"),
            row(CONSTANT, "avx512+blocks=128", SCALAR, 50.0, "faster"),
            row(BUFFERS, ALL, SCALAR, 5.0, "faster"),
            row("magma/lanes/gost89/16", "avx512", "gost-engine", 2.0, "faster"),
            row(CTR, REPORT, "portable", 0.5, "slower"),
            row(CTR, "gost-engine", "portable", 0.1, "slower"),
        ]);
        let line = |configuration: &str, build: &str, ns| Line {
            configuration: configuration.to_owned(),
            build: build.to_owned(),
            ns,
        };
        found.flags.lines = vec![line(REPORT, "study-o0", 4321.0)];
        found.flags.gcc =
            vec![line("C-avx2", "gcc -O3 -march=native", 100.0), line("C-avx2", "gcc -O0", 1789.0)];
        found.flags.gcc_version = Some("gcc (X) 12".to_owned());
        found.flags.missing = vec!["kuznyechik-kernel: not given".to_owned()];
        found.record.results.push(row(
            "magma/lanes/flags/C-avx2",
            "C-avx2 at gcc -O0",
            "C-avx2 at gcc -O3 -march=native",
            0.125,
            "slower",
        ));
        let page = page("Which?", &plan(), &found, false);
        let text = render(ENTRY.template, &page).expect("the template renders");
        for part in [
            "# Which?",
            "Test 7: 0x9abcdef0\n  scalar f: 0xdf37e7d8\n  SIMD f:   0xdf37e7d8\n  report:   0xdf37e7d8\n  ✓ MATCH",
            "SIMD ciphertext (first block): 85 65 c8 c0 cd 6f 1a ca\n✓ MATCH\nSIMD ciphertext, all lanes: 8 of 8",
            // 25 ns a block are 200 ns an operation, 2.56 Gbit/s and two seconds for ten million operations.
            "540.0         200.0",
            "5.400076663         2.000",
            "2.139166      4.000000",
            "| gost89, report ",
            "20867.32k",
            // 16 bytes in 50 ns.
            "320000.00k",
            // Ten times as slow as portable, and the report's design five times as fast as it.
            "×5.00",
            "4321.0",
            "**HOLDS, AND MORE**",
            "peers: not asked for",
            "cargo build --profile study-o0",
            "compiled by gcc (X) 12",
            "1789.0",
            "×0.125",
            "gcc: OPTIMISATION PAYS ×8.00",
            "- kuznyechik-kernel: not given",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }

    #[test]
    fn a_wrong_value_is_marked() {
        let mut values = found(Vec::new()).values;
        assert!(!f_test(&values).contains('✗') && !block_test(&values).contains('✗'));
        if let Some(f) = &mut values.vector_f {
            f[3] ^= 1;
        }
        values.vector_blocks = Some(std::array::from_fn(|i| if i == 5 { [0; 8] } else { CIPHER }));
        assert_eq!(f_test(&values).matches('✗').count(), 1);
        assert!(block_test(&values).contains("7 of 8 lanes"));
    }
}
