//! The study's page, as the template needs it.
#![forbid(unsafe_code)]

use crate::subjects::{ALL, ONE};
use lanework_mayo::Params;
use lanework_race::table::{percent, time, times};
use lanework_study::markdown::{NONE, strings, table};
use lanework_suite::mayo::Operation;
use lanework_suite::mayo::phases::{PHASES, Profile};
use lanework_suite::mayo::threads::Ran;
use serde::Serialize;

use super::question::{Plan, SETS};
use super::races::Measured;
use super::threads;
use super::verdict::verdict;

/// Everything that the template names.
#[derive(Serialize)]
pub(super) struct Page {
    question: String,
    title: String,
    their_cpu: String,
    their_gpu: String,
    grid: u32,
    block: u32,
    machine: String,
    cards: Vec<Card>,
    emulated: bool,
    hosted: &'static str,
    method: String,
    command: String,
    pub(super) verdict: Vec<String>,
    checks: String,
    profiled: String,
    profile: String,
    whole: String,
    operations: String,
    sweep: String,
    break_even: String,
    ring: String,
    bits: String,
    release: String,
    memory: String,
    joules: String,
    threads: String,
    not_here: Vec<String>,
    remarks: Vec<String>,
}

#[derive(Serialize)]
struct Card {
    ordinal: u32,
    what: String,
}

fn cell(x: Option<f64>, shown: impl Fn(f64) -> String) -> String {
    x.map_or_else(|| NONE.to_owned(), shown)
}

/// Thousands a second from nanoseconds.
fn thousands(ns: Option<f64>) -> String {
    cell(ns, |ns| format!("{:.1}", 1e6 / ns))
}

fn whole_number(x: Option<f64>) -> String {
    cell(x, |x| format!("{x:.0}"))
}

/// A table, or what to say where it would have no rows.
fn filled(header: &[&str], rows: &[Vec<String>], empty: &str) -> String {
    if rows.is_empty() { empty.to_owned() } else { table(&strings(header), rows) }
}

fn checks(measured: &Measured) -> String {
    let rows: Vec<Vec<String>> = measured
        .checks
        .iter()
        .map(|r| {
            let skipped = if r.skipped == 0 { NONE.to_owned() } else { format!("{}: {}", r.skipped, r.why) };
            vec![r.what.clone(), r.passed.to_string(), r.failed.to_string(), skipped]
        })
        .collect();
    filled(&["Check", "passed", "failed", "skipped"], &rows, "Nothing: no device is here.\n")
}

fn profile(plan: &Plan, measured: &Measured, ghz: Option<f64>) -> String {
    let phases: &[Profile] = &measured.phases;
    let on_gpu = |operation: &str, phase: Option<&str>| {
        let found = threads::cycles(&measured.threads, plan.original.shape(), operation, phase);
        [whole_number(found.map(|(cycles, _)| cycles)), cell(found.map(|(_, share)| share), percent)]
    };
    let mut rows = Vec::new();
    for p in &plan.original.profile {
        let ours = phases.iter().find(|f| f.set.ends_with("/mayo1") && f.operation == p.operation);
        let cycles = |share: f64| ours.zip(ghz).map(|(o, ghz)| o.whole_ns * ghz * share);
        for part in &p.parts {
            let at = PHASES.iter().position(|phase| phase.name() == part.phase);
            let share = at.and_then(|at| ours?.shares[at]);
            let [cycles_there, share_there] = on_gpu(&p.operation, Some(&part.phase));
            rows.push(vec![
                format!("{}: {}", p.operation, part.name),
                part.cycles.to_string(),
                percent(part.cycles as f64 / p.whole as f64),
                part.phase.clone(),
                whole_number(share.and_then(cycles)),
                cell(share, percent),
                cycles_there,
                share_there,
            ]);
        }
        let whole = whole_number(cycles(1.0));
        let [cycles_there, share_there] = on_gpu(&p.operation, None);
        rows.push(vec![
            format!("{}: whole", p.operation),
            p.whole.to_string(),
            percent(1.0),
            NONE.to_owned(),
            whole,
            percent(1.0),
            cycles_there,
            share_there,
        ]);
    }
    let header = [
        "Part",
        "report, cycles",
        "share",
        "our phase",
        "ours, cycles",
        "share",
        "a device's thread, cycles",
        "share",
    ];
    filled(&header, &rows, NONE)
}

/// The report's second table, its rows and ours by turns.
fn whole(plan: &Plan, measured: &Measured) -> String {
    let figures = measured.figures();
    let o = &plan.original.table;
    let set = |name: &str| measured.params.iter().copied().find(|p| p.path().ends_with(&format!("/{name}")));
    let row = |label: &str, value: &dyn Fn(usize, Option<&'static Params>) -> String| {
        let cells = SETS.iter().enumerate().map(|(i, name)| value(i, set(name)));
        std::iter::once(label.to_owned()).chain(cells).collect::<Vec<String>>()
    };
    let on_one = |p: &Params| figures.whole(|op| figures.ns(p, op, ONE));
    let on_all = |p: &Params| figures.whole(|op| figures.all_cores(p, op));
    let on_gpu = |p: &Params| figures.whole(|op| figures.best(p, op).map(|b| b.ns));
    let published = plan.original.shape();
    let first = measured.sweep.batches.first().copied().unwrap_or(1);
    let rows = vec![
        row("CPU, report (one thread)", &|i, _| format!("{:.2}", o.cpu[i])),
        row("CPU, one core here", &|_, p| whole_number(p.and_then(on_one))),
        row("CPU, all cores here", &|_, p| whole_number(p.and_then(on_all))),
        row("GPU, report", &|i, _| format!("{:.2}", o.gpu[i])),
        row(&format!("GPU here, a thread each, {}", threads::shown(published)), &|_, p| {
            whole_number(p.and_then(|p| threads::of(measured, p)?.at(published)).and_then(Ran::per_second))
        }),
        row("GPU here, a thread each, best launch", &|_, p| {
            p.and_then(|p| threads::of(measured, p)?.best()).map_or_else(
                || NONE.to_owned(),
                |(ran, rate)| format!("{rate:.0} ({})", threads::shown(ran.shape)),
            )
        }),
        row("GPU here, cooperative", &|_, p| whole_number(p.and_then(on_gpu))),
        row("cooperative over a thread each at its best", &|_, p| {
            cell(p.and_then(|p| threads::advantage(measured, p)), times)
        }),
        row("gain over the CPU, report", &|i, _| format!("{:+.2} %", o.gain_percent[i])),
        row("gain over one core here", &|_, p| {
            cell(p.and_then(|p| Some(on_gpu(p)? / on_one(p)?)), |x| format!("{:+.2} %", (x - 1.0) * 100.0))
        }),
        row("gain over all cores here", &|_, p| {
            cell(p.and_then(|p| Some(on_gpu(p)? / on_all(p)?)), |x| format!("{:+.2} %", (x - 1.0) * 100.0))
        }),
        row("latency on GPU in ms, report", &|i, _| format!("{:.2}", o.latency_ms[i])),
        row(&format!("latency here, a thread each, {}", threads::shown(published)), &|_, p| {
            cell(
                p.and_then(|p| threads::of(measured, p)?.at(published))
                    .filter(|ran| ran.per_second().is_some())
                    .map(Ran::latency_ms),
                |ms| format!("{ms:.3}"),
            )
        }),
        row("latency here, best batches", &|_, p| {
            cell(
                p.and_then(|p| figures.latency_ms(|op| figures.best(p, op).map(|b| (b.batch, b.ns)))),
                |ms| format!("{ms:.3}"),
            )
        }),
        row(&format!("latency here, batches of {first}"), &|_, p| {
            let of = |p: &Params| figures.latency_ms(|op| Some((first, figures.at(p, op, first)?)));
            cell(p.and_then(of), |ms| format!("{ms:.3}"))
        }),
        row("operations in flight, report", &|i, _| format!("{:.1}", plan.original.in_flight()[i])),
    ];
    let mut header = vec!["MAYO per second"];
    header.extend(["MAYO-1", "MAYO-2", "MAYO-3", "MAYO-5"]);
    table(&strings(&header), &rows)
}

/// Each set with each operation.
fn pairs(measured: &Measured) -> impl Iterator<Item = (&'static Params, Operation)> + '_ {
    measured.params.iter().flat_map(|&p| measured.operations.iter().map(move |&o| (p, o)))
}

fn operations(measured: &Measured) -> String {
    let figures = measured.figures();
    let rows: Vec<Vec<String>> = pairs(measured)
        .map(|(p, o)| {
            let best = figures.best(p, o);
            let row = best.and_then(|b| figures.row(p, o, &format!("{}{}", figures.name(b.batch), b.form)));
            let all = figures.all_cores(p, o).zip(best).map(|(all, best)| all / best.ns);
            vec![
                format!("{} {}", p.name(), o.name()),
                thousands(figures.ns(p, o, ONE)),
                thousands(figures.ns(p, o, ALL)),
                thousands(best.map(|b| b.ns)),
                best.map_or_else(|| NONE.to_owned(), |b| format!("{}{}", b.batch, b.form)),
                row.map_or_else(|| NONE.to_owned(), |r| format!("{:.1} ({})", r.ratio, r.verdict)),
                cell(all, times),
            ]
        })
        .collect();
    let header =
        ["Operation", "one core", "all cores", "device", "batch", "cores equalled", "against all cores"];
    filled(&header, &rows, NONE)
}

fn sweep(measured: &Measured) -> String {
    let figures = measured.figures();
    let batches = &measured.sweep.batches;
    let rows: Vec<Vec<String>> = pairs(measured)
        .filter(|&(p, o)| figures.best(p, o).is_some())
        .map(|(p, o)| {
            let cells = batches.iter().map(|&b| match figures.at(p, o, b) {
                Some(ns) => format!("{} in {}", thousands(Some(ns)), time(ns * b as f64)),
                None => NONE.to_owned(),
            });
            std::iter::once(format!("{} {}", p.name(), o.name())).chain(cells).collect()
        })
        .collect();
    let names: Vec<String> = batches.iter().map(usize::to_string).collect();
    let header: Vec<&str> = std::iter::once("Operation").chain(names.iter().map(String::as_str)).collect();
    filled(&header, &rows, "Nothing: no device is here.\n")
}

fn break_even(measured: &Measured) -> String {
    let figures = measured.figures();
    let rows: Vec<Vec<String>> = pairs(measured)
        .filter_map(|(p, o)| {
            let pace = figures.pace(p, o)?;
            let (fixed, each) = pace.line();
            Some(vec![
                format!("{} {}", p.name(), o.name()),
                time(fixed),
                time(each),
                time(pace.cpu),
                pace.break_even().map_or_else(|| "never".to_owned(), |n| n.to_string()),
                percent(pace.cpu_share()),
            ])
        })
        .collect();
    let header = [
        "Operation",
        "to start",
        "each more",
        "each on the CPU",
        "pays from",
        "CPU's share of a large batch",
    ];
    filled(&header, &rows, "Nothing: no device is here.\n")
}

fn ring(measured: &Measured) -> String {
    let figures = measured.figures();
    let name = figures.name(measured.sweep.largest());
    let rows: Vec<Vec<String>> = pairs(measured)
        .filter_map(|(p, o)| {
            let (ring, whole) = (figures.ns(p, o, &name)?, figures.ns(p, o, &format!("{name}+whole"))?);
            Some(vec![
                format!("{} {}", p.name(), o.name()),
                thousands(Some(ring)),
                thousands(Some(whole)),
                format!("{:.3}", whole / ring),
                thousands(figures.ns(p, o, &format!("{name}+beside"))),
                thousands(figures.ns(p, o, &format!("{name}+fused"))),
            ])
        })
        .collect();
    let header = [
        "Operation",
        "by the cache, thousands/s",
        "all at once",
        "all at once in the ring's time",
        "beside products",
        "in one kernel",
    ];
    filled(&header, &rows, "Nothing: no device is here.\n")
}

fn bits(measured: &Measured) -> String {
    let figures = measured.figures();
    let name = figures.name(measured.sweep.largest());
    let rows: Vec<Vec<String>> = pairs(measured)
        .filter_map(|(p, o)| {
            let (masks, bits) = (figures.ns(p, o, &name)?, figures.ns(p, o, &format!("{name}+bits"))?);
            Some(vec![
                p.name().to_owned(),
                thousands(Some(masks)),
                thousands(Some(bits)),
                format!("{:.2}", masks / bits),
            ])
        })
        .collect();
    let header = ["Verification, expanded key", "by masks, thousands/s", "by bits", "bits over masks"];
    filled(&header, &rows, "Nothing: no device is here, or none that has the instruction.\n")
}

fn release(measured: &Measured) -> String {
    let figures = measured.figures();
    let name = figures.name(measured.sweep.largest());
    let rows: Vec<Vec<String>> = pairs(measured)
        .filter_map(|(p, o)| {
            let (with, without) =
                (figures.ns(p, o, &name)?, figures.ns(p, o, &format!("{name}+unverified"))?);
            Some(vec![
                format!("{} {}", p.name(), o.name()),
                thousands(Some(with)),
                thousands(Some(without)),
                percent(1.0 - without / with),
            ])
        })
        .collect();
    let header = ["Operation", "verified, thousands/s", "as they come", "share of the time"];
    filled(&header, &rows, "Nothing: no device is here.\n")
}

fn memory(measured: &Measured) -> String {
    let rows: Vec<Vec<String>> = measured
        .memory
        .iter()
        .map(|m| {
            let of = |x: &Option<(u32, String)>| {
                x.as_ref().map_or_else(
                    || NONE.to_owned(),
                    |(n, kernel)| match n {
                        0 => "0".to_owned(),
                        n => format!("{n} ({kernel})"),
                    },
                )
            };
            std::iter::once(m.set.clone())
                .chain(m.bytes.iter().map(usize::to_string))
                .chain([of(&m.local), of(&m.registers)])
                .collect()
        })
        .collect();
    let header = [
        "Set",
        "keygen",
        "sign",
        "verify",
        "sign-expanded",
        "verify-expanded",
        "local bytes a thread",
        "registers a thread",
    ];
    filled(&header, &rows, NONE)
}

fn joules(measured: &Measured) -> String {
    match &measured.joules {
        Err(why) => format!("Not told: {why}.\n"),
        Ok(all) => {
            let rows: Vec<Vec<String>> = all
                .iter()
                .map(|j| {
                    let each = j.joules_each * 1e6;
                    let what = format!("{} {}", j.set, j.operation);
                    vec![what, j.batch.to_string(), format!("{each:.1}"), format!("{:.0}", j.watts)]
                })
                .collect();
            filled(&["Operation", "batch", "microjoules each", "watts"], &rows, "Nothing was counted.\n")
        }
    }
}

fn threads_table(measured: &Measured) -> String {
    let rows: Vec<Vec<String>> = measured
        .threads
        .iter()
        .flat_map(|b| b.runs().map(move |ran| (b, ran)))
        .map(|(b, ran)| {
            let each = ran.ms.iter().map(|ms| format!("{ms:.3}"));
            let best = b.best().is_some_and(|(best, _)| best.shape == ran.shape);
            let rate = format!("{}{}", whole_number(ran.per_second()), if best { " (best)" } else { "" });
            [b.set.clone(), threads::shown(ran.shape), ran.in_flight().to_string(), ran.bytes.to_string()]
                .into_iter()
                .chain(each)
                .chain([rate])
                .collect()
        })
        .collect();
    let header = [
        "Set",
        "launch",
        "in flight",
        "bytes a thread",
        "keygen, ms",
        "sign, ms",
        "verify, ms",
        "MAYO per second",
    ];
    filled(
        &header,
        &rows,
        if measured.missing.is_some() { "Nothing: no device is here.\n" } else { "No launch ran.\n" },
    )
}

fn method(measured: &Measured, full: bool) -> String {
    let form = match (measured.emulated, full) {
        (true, _) => "Short form, on no GPU",
        (_, true) => "Full form",
        _ => "Quick form",
    };
    format!(
        "{form}: races in pairs over {} process(es) each, {} seconds in all, behind the gates; medians, and ratios of pairs with \
         their verdicts. A device's batch is timed from the host: copies, launches, the verification before release, all of it. \
         The CPU's backend is {}, in batches of its own, on one core and on {}.{}",
        measured.sweep.launches,
        measured.sweep.seconds,
        measured.backend,
        measured.cores,
        if full { "" } else { " `--full` takes enough for publishing." }
    )
}

/// Fills in everything.
pub(super) fn page(question: &str, plan: &Plan, measured: &Measured, full: bool) -> Page {
    let (record, original) = (&measured.record, &plan.original);
    let ghz = record.machine.calibration_before.known().map(|c| c.median_ghz);
    let mut not_here: Vec<String> =
        measured.missing.iter().map(|why| format!("a CUDA device: {why}")).collect();
    if let Err(why) = &measured.joules {
        not_here.push(format!("joules: {why}"));
    }
    for n in &record.not_here {
        not_here.push(format!("{} in {}: {}", n.variant, n.subject, n.why));
    }
    not_here.extend(threads::lost(measured));
    let profiled = match (ghz, measured.phases.is_empty()) {
        (_, true) => "not profiled in this form".to_owned(),
        (Some(ghz), _) => format!("backend {} at {ghz:.2} GHz as calibrated", measured.backend),
        (None, _) => "without a clock to count cycles by".to_owned(),
    };
    Page {
        question: question.to_owned(),
        title: original.title.clone(),
        their_cpu: original.cpu.clone(),
        their_gpu: original.gpu.clone(),
        grid: original.grid,
        block: original.block,
        machine: record.machine.summary(),
        cards: measured.cards.iter().map(|c| Card { ordinal: c.ordinal, what: c.to_string() }).collect(),
        emulated: measured.emulated,
        hosted: measured.hosted(),
        method: method(measured, full),
        command: record.command.clone(),
        verdict: verdict(plan, measured),
        checks: checks(measured),
        profiled,
        profile: profile(plan, measured, ghz),
        whole: whole(plan, measured),
        operations: operations(measured),
        sweep: sweep(measured),
        break_even: break_even(measured),
        ring: ring(measured),
        bits: bits(measured),
        release: release(measured),
        memory: memory(measured),
        joules: joules(measured),
        threads: threads_table(measured),
        not_here,
        remarks: record.remarks.clone(),
    }
}
