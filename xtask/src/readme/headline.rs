//! The README's headline: a few jobs, ours beside the fastest peer, from one machine.
#![forbid(unsafe_code)]

use lanework_race::history::Entry;
use lanework_race::record::ResultRow;
use lanework_race::table::{amount, times};
use lanework_race::verdict::Verdict;

use super::{Document, fastest, newest_first, peers, remarks};

/// The jobs, all from records of one machine.
pub(super) struct Headline {
    pub(super) jobs: Vec<Job>,
    /// The records behind them, each once.
    records: Vec<Entry>,
    /// The CPUs of other machines that have records of these jobs.
    others: Vec<String>,
}

/// One job against its peers.
pub(super) struct Job {
    pub(super) label: String,
    /// One row for each peer, the fastest first.
    pub(super) peers: Vec<ResultRow>,
}

/// A line of the mark: the study, the subject, and its label.
fn line(text: &str) -> Result<[&str; 3], String> {
    let mut parts = text.trim().splitn(3, ' ');
    match [parts.next(), parts.next(), parts.next()] {
        [Some(study), Some(subject), Some(label)] => Ok([study, subject, label]),
        _ => Err(format!("'{text}' is not RECORD SUBJECT LABEL")),
    }
}

/// The rows of one job in one record, the fastest peer first.
fn peers_of(entry: &Entry, subject: &str) -> Result<Vec<ResultRow>, String> {
    let rows = peers::rows(&entry.record)?;
    let mut rows: Vec<ResultRow> = rows.into_iter().filter(|r| r.subject == subject).cloned().collect();
    rows.sort_by(|a, b| a.median.total_cmp(&b.median));
    Ok(rows)
}

/// The largest noise floor of a figure on the front page.
const NOISE: f64 = 0.05;

/// Why a record's rows of one job are not for the front page.
fn unfit(entry: &Entry, peers: &[ResultRow]) -> Option<String> {
    let record = &entry.record;
    let words: Vec<&str> = record.command.split_whitespace().collect();
    let asked = words.windows(2).filter(|pair| pair[0] == "--only").flat_map(|pair| pair[1].split(','));
    // Not every peer has every operation.
    let missing = |name: &&str| !record.results.iter().any(|row| row.variant == *name);
    let noisy = peers.iter().find(|row| row.noise.is_nan() || row.noise > NOISE);
    let unsure = peers.iter().find(|row| matches!(row.verdict, Verdict::CannotTell | Verdict::Void));
    let what = if record.machine.build.tree != "clean" {
        "is of a changed tree".to_owned()
    } else if words.contains(&"--quick") {
        "is of a quick form".to_owned()
    } else if let Some(name) = asked.into_iter().find(missing) {
        format!("has no row of the peer {name}, which its command names")
    } else if let Some(row) = noisy {
        format!("has a noise floor of {:.1} % against {}", row.noise * 100.0, row.variant)
    } else if let Some(row) = unsure {
        format!("says '{}' against {}", peers::word(row), row.variant)
    } else {
        return None;
    };
    Some(format!("{}: {}, {what}", entry.record.study, peers.first().map_or("", |row| &row.subject)))
}

/// The headline from the machine whose records are the newest among those that have every job.
pub(super) fn read(document: &Document<'_>, lines: &[&str]) -> Result<Headline, String> {
    let asked = lines.iter().map(|text| line(text)).collect::<Result<Vec<_>, _>>()?;
    let entries = newest_first(document.root, |study| asked.iter().any(|[wanted, ..]| *wanted == study))?;
    let mut machines: Vec<String> = Vec::new();
    for entry in &entries {
        let machine = entry.record.machine.slug();
        if !machines.contains(&machine) {
            machines.push(machine);
        }
    }
    for machine in &machines {
        let here: Vec<&Entry> = entries.iter().filter(|e| e.record.machine.slug() == *machine).collect();
        let mut jobs = Vec::new();
        for [study, subject, label] in &asked {
            let Some(entry) = here.iter().find(|e| e.record.study == *study) else { continue };
            let peers = peers_of(entry, subject)?;
            if !peers.is_empty() {
                if let Some(why) = unfit(entry, &peers) {
                    return Err(why);
                }
                jobs.push(Job { label: (*label).to_owned(), peers });
            }
        }
        if jobs.len() == asked.len() {
            let elsewhere = entries.iter().filter(|e| e.record.machine.slug() != *machine);
            let mut others: Vec<String> = Vec::new();
            for cpu in elsewhere.map(|e| e.record.machine.title()) {
                if !others.contains(&cpu) {
                    others.push(cpu);
                }
            }
            return Ok(Headline { jobs, records: here.into_iter().cloned().collect(), others });
        }
    }
    Err("no machine has a record of every job of the headline".to_owned())
}

/// The table, and where it comes from.
pub(super) fn table(document: &Document<'_>, headline: &Headline) -> String {
    let mut out = String::from(
        "| job | ours | fastest peer | peer / ours | interval | verdict |\n|---|---:|---:|---:|---|---|\n",
    );
    for job in &headline.jobs {
        for r in fastest(job.peers.iter()) {
            let [ratio, low, high] = r.factor().map(times);
            let (ours, theirs) = (amount(r, r.baseline_median), amount(r, r.median));
            out += &format!(
                "| {} | {} {ours} | {} {theirs} | **{ratio}** | {low} … {high} | {} |\n",
                job.label,
                r.baseline,
                r.variant,
                peers::word(r)
            );
        }
    }
    let cpu = headline.records[0].record.machine.title();
    let links = headline.records.iter().map(|entry| {
        let day = entry.record.date.get(..10).unwrap_or("undated");
        format!("[{}]({}) of {day}{}", entry.record.study, document.link_to(entry), remarks(&entry.record))
    });
    out += &format!("\nMeasured on {cpu}: {}.\n", links.collect::<Vec<_>>().join(", "));
    if !headline.others.is_empty() {
        let all = document.link("docs/figures.md");
        out += &format!("Other machines: [{}]({all}).\n", headline.others.join(", "));
    }
    out
}

/// The picture as the document shows it, with its figures as text for those who do not see it.
pub(super) fn shown(document: &Document<'_>, headline: &Headline, file: &str) -> String {
    let jobs = headline.jobs.iter().map(|job| {
        let peers = job.peers.iter().map(|r| format!("{} {}", r.variant, times(r.factor()[0])));
        format!("{}: {}", job.label, peers.collect::<Vec<_>>().join(", "))
    });
    let alt = jobs.collect::<Vec<_>>().join("; ");
    format!("![Time of each peer as a multiple of ours. {alt}.]({})\n", document.link(file))
}
