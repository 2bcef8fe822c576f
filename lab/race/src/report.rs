//! `lanework report`: records as one HTML page.
//!
//! The page is one file: it needs no network, and works from a disk, on a phone, in light and dark mode. It holds each
//! record once, compressed, as a link that works without scripts. Its one script makes each table's CSV and JSON from that
//! on demand. The page's policy names the script by its hash; nothing else may run or be fetched.
#![forbid(unsafe_code)]

mod axis;
pub mod chart;
mod figures;
mod lean;
mod peers;
mod plane;
mod prose;
mod races;
mod scaling;
mod strips;

use std::cmp::Reverse;
use std::fmt;

use std::io::Write as _;

use base64ct::{Base64, Encoding};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::answer::Answer;
use crate::machine::{Calibration, Fact, Machine};
use crate::record::{Record, RecordError, ResultRow, slug};
use crate::study::{Study, StudyError};
use crate::table;
use crate::verdict::Verdict;
use chart::ChartError;
use figures::{Figure, Figures};

/// The computed floor of a row on a machine, if it has been counted.
pub type Floor = dyn Fn(&ResultRow, &Machine) -> Option<f64>;

/// What a page holds, and the floors of its rows.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Holds every record whole, with all its samples, compressed. Otherwise the page leaves out the samples, which are most of
    /// a record, and stays small enough to send.
    pub samples: bool,
    /// The computed floor of a row that has none, in the unit of its times: a record may be older than the count.
    pub floor: Option<&'a Floor>,
    /// The studies whose answers open their chapters; those about a report's question are on the first screen, too.
    pub studies: &'a [Study],
    /// The jobs whose races against other people's code are on the first screen: a subject, and what it is in words.
    pub headline: &'a [(&'a str, &'a str)],
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("samples", &self.samples).finish_non_exhaustive()
    }
}

/// Why there is no page.
#[derive(Debug)]
pub enum ReportError {
    /// There are no records to show.
    Nothing,
    /// A chart could not be drawn.
    Chart(ChartError),
    /// A record could not be written into the page.
    Record(RecordError),
    /// The page's template is faulty.
    Page(StudyError),
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("there are no records to show"),
            Self::Chart(e) => e.fmt(f),
            Self::Record(e) => e.fmt(f),
            Self::Page(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for ReportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Nothing => None,
            Self::Chart(e) => Some(e),
            Self::Record(e) => Some(e),
            Self::Page(e) => Some(e),
        }
    }
}

/// A table, and the file name of its download.
#[derive(Debug, Serialize)]
struct Sheet {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    /// The class name that colours each row.
    classes: Vec<&'static str>,
    file: String,
    /// The record's rows that it shows: those of subjects with this prefix. Otherwise its cells are all there is to download.
    of: Option<String>,
}

/// What one primitive's races found.
#[derive(Debug, Serialize)]
struct Section {
    id: String,
    name: String,
    figures: Figures,
    sheet: Sheet,
}

#[derive(Debug, Serialize)]
struct Chapter {
    id: String,
    title: String,
    date: String,
    cpu: String,
    command: String,
    machine: Sheet,
    gates: Sheet,
    gates_line: String,
    /// The class name of each verdict, the verdict in words, and how many rows have it.
    verdicts: Vec<(&'static str, String, usize)>,
    /// Whether every variant is other people's, so that a verdict is theirs.
    theirs: bool,
    /// A study's answer, whether a report asked first, and the chart that decides.
    answer: Option<Answer>,
    /// Why there is none, where the study has an answer for other records.
    unanswered: Option<String>,
    asked: bool,
    deciding: Option<Figure>,
    /// A study's own page, as HTML; empty where the record has none.
    prose: String,
    sections: Vec<Section>,
    not_here: Vec<String>,
    remarks: Vec<String>,
    /// The record's file name and link.
    whole: Whole,
    /// The floors that the page has and the record lacks, as JSON, by the number of their row.
    floors: String,
    file: String,
}

/// A record to download.
#[derive(Debug, Serialize)]
struct Whole {
    file: String,
    link: String,
    words: &'static str,
}

#[derive(Debug, Serialize)]
struct Page<'a> {
    version: &'a str,
    style: &'a str,
    script: &'a str,
    /// What the browser lets this page do: run that script, and nothing else.
    policy: String,
    /// The columns of a table of results as CSV, as JSON.
    columns: String,
    /// The CPUs, each once.
    machines: Vec<String>,
    /// The charts against other people's code.
    peers: Vec<Figure>,
    chapters: Vec<Chapter>,
}

/// The record to download, compressed, with or without its samples.
fn whole(record: &Record, file: &str, samples: bool) -> Result<Whole, ReportError> {
    let malformed = |e| ReportError::Record(RecordError::Malformed(e));
    let samples = samples && record.results.iter().any(|row| !row.samples.is_empty());
    let text = if samples { record.to_json() } else { record.clone().without_samples().to_json() };
    let text = text.map_err(ReportError::Record)?;
    let io = |e: std::io::Error| malformed(serde_json::Error::io(e));
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(text.as_bytes()).map_err(io)?;
    let bytes = gzip.finish().map_err(io)?;
    let (ending, words) = if samples {
        (".json.gz", "the whole record, samples included")
    } else {
        ("-summary.json.gz", "the record without its samples")
    };
    Ok(Whole {
        file: format!("{file}{ending}"),
        // In characters that the template does not escape.
        link: format!("data:application/gzip;base64,{}", Base64::encode_string(&bytes)),
        words,
    })
}

/// A table of texts only.
fn plain_sheet(file: String, header: Vec<&'static str>, rows: Vec<Vec<String>>) -> Sheet {
    Sheet { classes: vec![""; rows.len()], header, rows, file, of: None }
}

fn ghz(calibration: &Fact<Calibration>) -> String {
    match calibration {
        Fact::Known(c) => format!("{:.3} GHz ({:.3} to {:.3})", c.median_ghz, c.worst_ghz, c.best_ghz),
        Fact::Missing { missing } => format!("unknown ({missing})"),
    }
}

fn machine_rows(m: &Machine) -> Vec<Vec<String>> {
    let caches = match &m.caches {
        Fact::Known(list) => list
            .iter()
            .map(|c| format!("L{} {} {} KiB", c.level, c.kind, c.kib))
            .collect::<Vec<_>>()
            .join(", "),
        Fact::Missing { missing } => format!("unknown ({missing})"),
    };
    let features = match &m.features {
        Fact::Known(list) => list.join(" "),
        Fact::Missing { missing } => format!("unknown ({missing})"),
    };
    let b = &m.build;
    let mut rows = vec![
        ("CPU", m.cpu.to_string()),
        (
            "vendor, family, model, stepping",
            format!("{}, {}, {}, {}", m.vendor, m.family, m.model, m.stepping),
        ),
        ("cores usable", m.cores.to_string()),
        ("hypervisor", m.hypervisor.to_string()),
        ("caches", caches),
        ("core clock before the races", ghz(&m.calibration_before)),
        ("core clock after the races", ghz(&m.calibration_after)),
        ("clock", format!("{}, step {} ns", m.clock_source, m.clock_step_ns)),
        ("time-stamp counter", format!("{} GHz, invariant: {}", m.tsc_ghz, m.tsc_invariant)),
        ("hardware counters", m.counters.to_string()),
        ("governor", m.governor.to_string()),
        ("boost", m.boost.to_string()),
        ("kernel", m.kernel.to_string()),
        ("compiler", format!("{}, profile {}, opt-level {}, {}", b.rustc, b.profile, b.opt_level, b.target)),
        ("compiler's flags", if b.rustflags.is_empty() { "none".to_owned() } else { b.rustflags.clone() }),
        ("commit", format!("{} ({})", b.commit, b.tree)),
    ];
    rows.extend(m.more.iter().map(|(k, v)| (k.as_str(), v.clone())));
    let mut rows: Vec<Vec<String>> = rows.into_iter().map(|(k, v)| vec![k.to_owned(), v]).collect();
    for p in &m.peers {
        rows.push(vec![format!("peer {}", p.name), format!("{}; {}; {}", p.version, p.compiler, p.flags)]);
    }
    rows.push(vec!["CPU features".to_owned(), features]);
    rows
}

/// The results of a section: the cells for people.
fn results_sheet(record: &Record, name: &str, rows: &[&ResultRow], file: String) -> Sheet {
    let cells = |r: &&ResultRow| {
        vec![
            r.subject.clone(),
            r.variant.clone(),
            r.baseline.clone(),
            table::times(r.ratio),
            table::interval(r),
            figures::told(r),
            table::floor(r.noise),
            table::amount(r, r.median),
            table::shown_rate(r, r.median),
            table::cycles(record, r, r.median),
            r.floor.map_or_else(String::new, |f| table::percent(f / r.median)),
        ]
    };
    Sheet {
        header: vec![
            "subject",
            "variant",
            "baseline",
            "ratio",
            "interval",
            "verdict",
            "noise floor",
            "median",
            "rate",
            "cycles/B",
            "of the computed floor's speed",
        ],
        rows: rows.iter().map(cells).collect(),
        classes: rows.iter().map(|r| figures::class(r.verdict)).collect(),
        file,
        of: Some(name.to_owned()),
    }
}

fn chapter(index: usize, original: &Record, options: &Options<'_>) -> Result<Chapter, ReportError> {
    // Floors are for the page; the record to download is unchanged.
    let mut record = original.clone();
    let mut floors = std::collections::BTreeMap::new();
    if let Some(floor) = options.floor {
        for (i, row) in record.results.iter_mut().enumerate().filter(|(_, row)| row.floor.is_none()) {
            row.floor = floor(row, &original.machine).filter(|f| f.is_finite() && *f > 0.0);
            floors.extend(row.floor.map(|f| (i, f)));
        }
    }
    let floors =
        serde_json::to_string(&floors).map_err(|e| ReportError::Record(RecordError::Malformed(e)))?;
    let record = &record;
    let id = format!("r{index}");
    let date = record.date.get(..10).unwrap_or("undated").to_owned();
    let file = format!("{}-{}", slug(&date), slug(&record.study));
    let mut names: Vec<&str> = Vec::new();
    for r in &record.results {
        let name = r.subject.split('/').next().unwrap_or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut sections = Vec::new();
    for name in names {
        let rows: Vec<&ResultRow> =
            record.results.iter().filter(|r| r.subject.split('/').next() == Some(name)).collect();
        sections.push(Section {
            id: format!("{id}-{}", slug(name)),
            name: name.to_owned(),
            figures: figures::of(record, &rows).map_err(ReportError::Chart)?,
            sheet: results_sheet(record, name, &rows, format!("{file}-{}", slug(name))),
        });
    }
    let (passed, failed, skipped) = record
        .gate
        .iter()
        .fold((0, 0, 0), |(p, f, s), row| (p + row.passed, f + row.failed, s + row.skipped));
    let gates_line = if record.gate.is_empty() {
        "The record lists no checks.".to_owned()
    } else {
        format!("{passed} cases passed, {failed} failed, {skipped} could not run, before anything was timed.")
    };
    let gates = record
        .gate
        .iter()
        .map(|g| {
            let [p, f, s] = [g.passed, g.failed, g.skipped].map(|n| n.to_string());
            vec![g.what.clone(), g.backend.clone(), p, f, s, g.why.clone()]
        })
        .collect();
    let mut verdicts = Vec::new();
    for verdict in [Verdict::Faster, Verdict::Slower, Verdict::Same, Verdict::CannotTell, Verdict::Void] {
        let (times, others): (Vec<&ResultRow>, Vec<_>) =
            record.results.iter().filter(|r| r.verdict == verdict).partition(|r| r.unit == "ns");
        let class = figures::class(verdict);
        // Less memory is not faster.
        let apart = matches!(verdict, Verdict::Faster | Verdict::Slower);
        let count = if apart { times.len() } else { times.len() + others.len() };
        if count > 0 || verdict != Verdict::Void {
            verdicts.push((class, verdict.word().to_owned(), count));
        }
        if let Some(row) = others.first().filter(|_| apart) {
            verdicts.push((class, format!("{} memory", table::verdict(row)), others.len()));
        }
    }
    let theirs = !record.results.is_empty()
        && record.results.iter().all(|r| record.machine.peer(&r.variant).is_some());
    let study = options.studies.iter().find(|s| s.name == record.study);
    // A record that lacks a row of the answer says which, and has its tables all the same.
    let (answer, unanswered) = match study.map(|s| s.answer(record)) {
        Some(Ok(answer)) => (answer, None),
        Some(Err(StudyError::Template(why))) => {
            (None, Some(why.detail().map_or_else(|| why.to_string(), str::to_owned)))
        }
        Some(Err(why)) => (None, Some(why.to_string())),
        None => (None, None),
    };
    let deciding = match &answer {
        Some(answer) => figures::deciding(record, &answer.rows).map_err(ReportError::Chart)?,
        None => None,
    };
    Ok(Chapter {
        title: record.study.clone(),
        asked: answer.is_some() && study.is_some_and(|s| s.table.contains_key("original")),
        answer,
        unanswered,
        deciding,
        date,
        cpu: record.machine.title(),
        command: record.command.clone(),
        machine: plain_sheet(format!("{file}-machine"), vec!["what", "value"], machine_rows(&record.machine)),
        gates: plain_sheet(
            format!("{file}-gates"),
            vec!["what", "backend", "passed", "failed", "skipped", "why"],
            gates,
        ),
        gates_line,
        verdicts,
        theirs,
        prose: record.page.as_deref().map(prose::html).unwrap_or_default(),
        sections,
        not_here: table::folded(
            record.not_here.iter().map(|n| (n.subject.as_str(), n.variant.as_str(), n.why.as_str())),
        ),
        remarks: record.remarks.clone(),
        whole: whole(original, &file, options.samples)?,
        floors,
        file,
        id,
    })
}

/// The page for these records: the first screen, then a chapter for each record. Those that answer a study's question come
/// first, and the newest of a study before its others; the rest keep their order.
///
/// # Errors
/// [`ReportError`] where there are none, or one cannot be shown.
pub fn html(records: &[Record], options: &Options<'_>) -> Result<String, ReportError> {
    if records.is_empty() {
        return Err(ReportError::Nothing);
    }
    let mut chapters = records
        .iter()
        .enumerate()
        .map(|(i, record)| Ok((chapter(i + 1, record, options)?, record)))
        .collect::<Result<Vec<_>, _>>()?;
    chapters.sort_by_key(|(c, record)| {
        let newest_first = c.answer.as_ref().map(|_| (&record.study, Reverse(&record.date)));
        (c.answer.is_none(), !c.asked, newest_first)
    });
    let chapters = chapters.into_iter().map(|(chapter, _)| chapter).collect();
    let mut machines: Vec<String> = Vec::new();
    for record in records {
        let named = record.machine.title();
        if !machines.contains(&named) {
            machines.push(named);
        }
    }
    let script = include_str!("report/take.js");
    let page = Page {
        version: env!("CARGO_PKG_VERSION"),
        style: include_str!("report/page.css"),
        script,
        policy: format!(
            "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
            Base64::encode_string(&Sha256::digest(script.as_bytes()))
        ),
        columns: serde_json::to_string(&table::columns())
            .map_err(|e| ReportError::Record(RecordError::Malformed(e)))?,
        machines,
        peers: peers::of(records, options.headline).map_err(ReportError::Chart)?,
        chapters,
    };
    crate::study::render_as("page.html", include_str!("report/page.html"), page).map_err(ReportError::Page)
}
