//! The stored result of a run: one JSON object, versioned, checked when read, written whole or not at all.
//! `RECORDS.md` in this crate describes it for readers without this library.
#![forbid(unsafe_code)]

mod gzip;
mod names;
mod packed;

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

pub use names::{slug, stem, utc};

use crate::files::read_at_most;
use crate::gate::GateRow;
use crate::machine::{Calibration, Fact, Machine};
use crate::overrun::Overruns;
use crate::pairing::{NotHere, Plan};
use crate::text::{shown, whole};
use crate::verdict::{Lane, Rules, Verdict};

/// The schema of a record in memory and in a pipe: samples are arrays of numbers.
pub const SCHEMA: u64 = 1;

/// The schema of a record in a file: the same, with its samples packed. Both are read.
pub const PACKED: u64 = 2;

/// Bytes beyond which a record's file is compressed as a whole.
pub const LARGE: usize = 300_000;

/// How the names of records' files end: plain, and compressed as a whole.
const ENDINGS: [&str; 2] = [".json", ".json.gz"];

fn utf8(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

/// Seven significant digits: below any clock's resolution, and a third of the bytes.
pub(crate) fn round(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    format!("{x:.6e}").parse().unwrap_or(x)
}

/// The A/A control of a race: the baseline against a second instance of itself. One per race.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// The subject's path.
    pub subject: String,
    /// The baseline's name.
    pub baseline: String,
    /// The ratio, which ought to be 1.
    pub ratio: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end of its interval.
    pub high: f64,
    /// The second instance's samples, like [`ResultRow::samples`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<f64>,
    /// The first instance's samples, like [`ResultRow::baseline_samples`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baseline_samples: Vec<f64>,
}

/// Whether a time is in range, in its unit. A record may be anybody's file, and work on it must come to an end.
fn is_time(t: &f64) -> bool {
    (1e-12..1e24).contains(t)
}

/// Whether a ratio of two times is in range, with its interval. The interval of two processes alone may be very wide.
fn is_interval(low: f64, ratio: f64, high: f64) -> bool {
    (1e-12..1e12).contains(&ratio) && 0.0 < low && low <= ratio && ratio <= high && high < f64::INFINITY
}

impl Control {
    fn fault(&self) -> Option<&'static str> {
        if !self.samples.iter().chain(&self.baseline_samples).all(is_time) {
            Some("a time is not a positive number")
        } else if !is_interval(self.low, self.ratio, self.high) {
            Some("the ratio is outside its interval, or is not a ratio of two times")
        } else if self.samples.len() != self.baseline_samples.len() || !self.samples.len().is_multiple_of(2) {
            Some("samples and pairs do not match")
        } else {
            None
        }
    }
}

/// Whether figures that were rounded on their own are in this order.
fn ascend<const N: usize>(figures: [f64; N]) -> bool {
    figures.windows(2).all(|two| two[0] <= two[1] * (1.0 + 1e-6))
}

/// What is wrong with a calibration. A clock that stands still shows a million GHz.
fn calibration_fault(c: &Calibration) -> Option<&'static str> {
    let sound = [c.best_ghz, c.median_ghz, c.worst_ghz].iter().all(|ghz| (1e-9..1e9).contains(ghz));
    (!sound).then_some("a frequency is outside 10⁻⁹ to 10⁹ GHz")
}

/// What is wrong with the part of a plan that readers of records go by.
fn rules_fault(rules: &Rules) -> Option<&'static str> {
    let fraction = |f: f64| (0.0..1.0).contains(&f);
    if !(1e-12..1.0).contains(&rules.alpha) {
        Some("its error rate is not between 0 and 1")
    } else if !fraction(rules.margin) || !fraction(rules.widest_margin) {
        Some("a margin is not a fraction")
    } else {
        None
    }
}

/// One comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultRow {
    /// The subject's path.
    pub subject: String,
    /// The variant's name.
    pub variant: String,
    /// The baseline's name.
    pub baseline: String,
    /// Baseline's time / variant's time: above 1 the variant is faster.
    pub ratio: f64,
    /// The lower end of the ratio's interval.
    pub low: f64,
    /// The upper end of the ratio's interval.
    pub high: f64,
    /// The noise floor, as a fraction.
    pub noise: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// The unit of all times here, per unit of work: `ns`.
    pub unit: String,
    /// The variant's median time.
    pub median: f64,
    /// The variant's mean time.
    pub mean: f64,
    /// The variant's shortest time.
    pub min: f64,
    /// The first quartile of the variant's times.
    pub q1: f64,
    /// The third quartile of the variant's times.
    pub q3: f64,
    /// Time-stamp ticks per unit of work (median), where there is a counter. Ticks are not core cycles.
    pub ticks: Option<f64>,
    /// The baseline's median time in the same pairs.
    pub baseline_median: f64,
    /// The baseline's mean time in the same pairs.
    pub baseline_mean: f64,
    /// The baseline's shortest time in the same pairs.
    pub baseline_min: f64,
    /// Differences within this fraction counted as the same.
    pub margin: f64,
    /// The smallest effect that could have been seen, as a fraction.
    pub detectable: f64,
    /// The backend that really ran.
    pub backend: String,
    /// The backend that really ran as the baseline.
    pub baseline_backend: String,
    /// How many cores the variant uses.
    pub cores: usize,
    /// Bytes that a unit of work processes, where the subject says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// What a unit of work is, where the subject counts them: `squarings`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<String>,
    /// The least time that this machine's silicon allows for a unit of work on the variant's design, in the unit of the
    /// times. It is computed, never measured; `None` where it has not been counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<f64>,
    /// Iterations in a sample: the baseline's, the variant's.
    pub iterations: [u64; 2],
    /// How many pairs each launch took, in the order of the samples.
    pub launch_pairs: Vec<usize>,
    /// What a reader should know.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The interval of the median time, in its unit, where the samples were left out: [`Record::without_samples`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_interval: Option<[f64; 2]>,
    /// All samples of the variant, or none of them. Pair `i` is samples `2i` and `2i + 1` here and in `baseline_samples`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<f64>,
    /// All samples of the baseline in the same pairs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baseline_samples: Vec<f64>,
    /// Further fields from the caller.
    #[serde(flatten)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

impl ResultRow {
    /// How many times as long the variant takes as the baseline, and the ends of that figure's interval, the lower first.
    #[must_use]
    pub fn factor(&self) -> [f64; 3] {
        [1.0 / self.ratio, 1.0 / self.high, 1.0 / self.low]
    }

    /// Whether the lane that this variant stands for pays.
    #[must_use]
    pub fn lane(&self) -> Lane {
        Lane::of(self.verdict, self.ratio, self.detectable)
    }

    /// Bytes a second in a time of `ns` for a unit of work, where a unit has bytes.
    #[must_use]
    pub fn rate(&self, ns: f64) -> Option<f64> {
        self.bytes.map(|bytes| bytes as f64 / ns * 1e9)
    }

    fn fault(&self) -> Option<&'static str> {
        let times = [self.median, self.mean, self.min, self.q1, self.q3];
        let baseline = [self.baseline_median, self.baseline_mean, self.baseline_min];
        let samples = self.samples.iter().chain(&self.baseline_samples);
        let pairs = self.launch_pairs.iter().try_fold(0usize, |sum, &n| sum.checked_add(n));
        let pairs = pairs.and_then(|n| n.checked_mul(2));
        let times = times.iter().chain(&baseline).chain(self.median_interval.iter().flatten());
        if !times.chain(&self.floor).chain(&self.ticks).chain(samples).all(is_time) {
            Some("a time is not a positive number")
        } else if !is_interval(self.low, self.ratio, self.high) {
            Some("the ratio is outside its interval, or is not a ratio of two times")
        } else if self.samples.len() != self.baseline_samples.len()
            || !self.samples.is_empty() && pairs != Some(self.samples.len())
        {
            Some("samples and pairs do not match")
        } else if self.bytes == Some(0) {
            Some("a unit of work has no bytes")
        } else if ![self.noise, self.margin, self.detectable].iter().all(|f| (0.0..f64::INFINITY).contains(f))
        {
            Some("the noise floor, the margin or the detectable effect is not a fraction")
        } else if !ascend([self.noise, self.detectable]) {
            Some("an effect below the noise floor is called detectable")
        } else if !self.verdict_fits() {
            Some("the verdict contradicts the interval, the noise floor or the margin")
        } else if !ascend([self.min, self.q1, self.median, self.q3])
            || !ascend([self.min, self.mean])
            || !ascend([self.baseline_min, self.baseline_median])
            || !ascend([self.baseline_min, self.baseline_mean])
        {
            Some("its times are out of order: a median, a quartile or a mean is below the shortest, say")
        } else if self.median_interval.is_some_and(|[low, high]| !ascend([low, self.median, high])) {
            Some("the median is outside its interval")
        } else if pairs == Some(0) || self.iterations.contains(&0) || self.cores == 0 {
            Some("it comes from no pair, no iteration or no core")
        } else {
            None
        }
    }

    /// Whether the figures allow the verdict, by the rules of [`crate::verdict::judge`]. The unsettled ones may have reasons of their own.
    fn verdict_fits(&self) -> bool {
        let beyond_noise = ascend([self.noise.ln_1p(), self.ratio.ln().abs()]);
        match self.verdict {
            Verdict::Faster => self.low > 1.0 && beyond_noise,
            Verdict::Slower => self.high < 1.0 && beyond_noise,
            Verdict::Same => {
                ascend([1.0 / (1.0 + self.margin), self.low]) && ascend([self.high, 1.0 + self.margin])
            }
            Verdict::CannotTell | Verdict::Void => true,
        }
    }
}

/// One run, as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: u64,
    /// The study or subject this is about.
    #[serde(default)]
    pub study: String,
    /// When, in UTC: `YYYY-MM-DDThh:mm:ssZ`.
    #[serde(default)]
    pub date: String,
    /// The command that reproduces these figures.
    #[serde(default)]
    pub command: String,
    /// How the races were run.
    #[serde(default)]
    pub plan: Option<Plan>,
    /// The machine card.
    pub machine: Machine,
    /// One entry for each comparison.
    pub results: Vec<ResultRow>,
    /// The A/A controls, one for each race; their samples are like those of the results.
    #[serde(default)]
    pub controls: Vec<Control>,
    /// Variants that could not run.
    #[serde(default)]
    pub not_here: Vec<NotHere>,
    /// What the gates checked.
    #[serde(default)]
    pub gate: Vec<GateRow>,
    /// Departures from the plan.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// What a study says beyond its rows, as Markdown: the page that it printed, with its tables and its verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// The same as data, in the study's own shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings: Option<serde_json::Value>,
    /// The overruns of all races so far, while the record is made; their remark is renewed with each race. Not stored.
    #[serde(skip)]
    pub overruns: Overruns,
}

/// Why a record could not be read or written.
#[derive(Debug)]
pub enum RecordError {
    /// The file cannot be read or written.
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It is not JSON, or not a record.
    Malformed(serde_json::Error),
    /// Samples cannot be unpacked.
    Packed {
        /// Where: `results[3].samples`.
        place: String,
        /// What is wrong with them.
        why: String,
    },
    /// The record's schema is unknown to this version.
    UnknownSchema {
        /// The schema it claims; `None` when it claims none.
        found: Option<u64>,
    },
    /// It contradicts itself.
    Inconsistent {
        /// Which result: `subject variant`.
        result: String,
        /// How.
        why: &'static str,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, source } => write!(f, "{}: {source}", shown(path)),
            Self::Malformed(e) => write!(f, "not a record: {}", whole(&e.to_string())),
            Self::Packed { place, why } => {
                write!(f, "the record's {place} cannot be unpacked: {}", whole(why))
            }
            Self::UnknownSchema { found: Some(n) } => {
                write!(f, "the record has schema {n}; this version reads schemas {SCHEMA} and {PACKED}")
            }
            Self::UnknownSchema { found: None } => f.write_str("not a record: it has no schema number"),
            Self::Inconsistent { result, why } => {
                write!(f, "the record contradicts itself at {}: {why}", whole(result))
            }
        }
    }
}

impl std::error::Error for RecordError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Malformed(e) => Some(e),
            _ => None,
        }
    }
}

impl Record {
    /// An empty record, dated now.
    #[must_use]
    pub fn new(study: &str, command: &str, machine: Machine) -> Self {
        Self {
            schema: SCHEMA,
            study: study.into(),
            date: utc(SystemTime::now()),
            command: command.into(),
            plan: None,
            machine,
            results: Vec::new(),
            controls: Vec::new(),
            not_here: Vec::new(),
            gate: Vec::new(),
            remarks: Vec::new(),
            page: None,
            findings: None,
            overruns: Overruns::default(),
        }
    }

    /// Adds what a race found.
    pub fn add(&mut self, outcome: crate::race::Outcome) {
        self.results.extend(outcome.results);
        self.controls.extend(outcome.control);
        self.not_here.extend(outcome.not_here);
        self.gate.extend(outcome.gate);
        self.remark(outcome.remarks, &outcome.overruns);
    }

    /// Appends the results of a later record of the same study and machine, whose gates checked the same.
    pub fn append(&mut self, more: Self) {
        self.results.extend(more.results);
        self.controls.extend(more.controls);
        self.not_here.extend(more.not_here);
        let own = more.overruns.told();
        let remarks = more.remarks.into_iter().filter(|r| own.as_ref() != Some(r)).collect();
        self.remark(remarks, &more.overruns);
        self.machine.calibration_after = more.machine.calibration_after;
    }

    /// Adds each remark once, and one for all overruns.
    fn remark(&mut self, remarks: Vec<String>, overruns: &Overruns) {
        let before = self.overruns.told();
        self.overruns.add(overruns);
        self.remarks.retain(|r| before.as_ref() != Some(r));
        for remark in remarks.into_iter().chain(self.overruns.told()) {
            if !self.remarks.contains(&remark) {
                self.remarks.push(remark);
            }
        }
    }

    /// Reads a record from JSON and checks that it does not contradict itself.
    ///
    /// # Errors
    /// [`RecordError`] if the text is not a record, has an unknown schema, or is inconsistent.
    pub fn from_json(text: &str) -> Result<Self, RecordError> {
        let mut value: serde_json::Value = serde_json::from_str(text).map_err(RecordError::Malformed)?;
        match value.get("schema").and_then(serde_json::Value::as_u64) {
            Some(SCHEMA) => {}
            Some(PACKED) => packed::unpack(&mut value)?,
            found => return Err(RecordError::UnknownSchema { found }),
        }
        let record: Self = serde_json::from_value(value).map_err(RecordError::Malformed)?;
        record.validate()?;
        Ok(record)
    }

    /// Checks that the record does not contradict itself.
    ///
    /// # Errors
    /// [`RecordError::Inconsistent`] or [`RecordError::UnknownSchema`].
    pub fn validate(&self) -> Result<(), RecordError> {
        if self.schema != SCHEMA {
            return Err(RecordError::UnknownSchema { found: Some(self.schema) });
        }
        let rows = self.results.iter().map(|r| (format!("{} {}", r.subject, r.variant), r.fault()));
        let controls = self.controls.iter();
        let controls = controls.map(|c| (format!("the control of {} {}", c.subject, c.baseline), c.fault()));
        let plan = self.plan.iter().map(|plan| ("the plan".to_owned(), rules_fault(&plan.rules)));
        let calibrations = [&self.machine.calibration_before, &self.machine.calibration_after];
        let calibrations = calibrations.into_iter().filter_map(Fact::known);
        let machine = calibrations.map(|c| ("the machine's calibration".to_owned(), calibration_fault(c)));
        let failed = self.gate.iter().find(|row| row.failed > 0 && !self.results.is_empty());
        let gate = failed
            .map(|row| (format!("the gate's {}", row.what), Some("a check failed, and races were timed")));
        let mut all = rows.chain(controls).chain(plan).chain(machine).chain(gate);
        match all.find_map(|(what, fault)| Some((what, fault?))) {
            Some((result, why)) => Err(RecordError::Inconsistent { result, why }),
            None => Ok(()),
        }
    }

    /// The record as a summary: its samples, which are most of it, are replaced by the interval of each median.
    /// Checks of one name on one backend are counted together.
    /// Histories and reports work with either; only how samples are spread cannot be drawn from a summary.
    #[must_use]
    pub fn without_samples(mut self) -> Record {
        let rules = self.plan.as_ref().map_or_else(Rules::default, |plan| plan.rules);
        for row in &mut self.results {
            // The interval is made launch by launch, the median of all samples.
            row.median_interval = row.median_interval.or_else(|| {
                let [low, high] = crate::history::median_interval(row, &rules)?.map(round);
                Some([low.min(row.median), high.max(row.median)])
            });
            (row.samples, row.baseline_samples) = (Vec::new(), Vec::new());
        }
        for control in &mut self.controls {
            (control.samples, control.baseline_samples) = (Vec::new(), Vec::new());
        }
        // Every launch of a process may have passed the same gate.
        let mut gate: Vec<GateRow> = Vec::new();
        for row in core::mem::take(&mut self.gate) {
            let same =
                |of: &&mut GateRow| (&of.what, &of.backend, &of.why) == (&row.what, &row.backend, &row.why);
            match gate.iter_mut().find(same) {
                Some(of) => {
                    of.passed += row.passed;
                    of.failed += row.failed;
                    of.skipped += row.skipped;
                }
                None => gate.push(row),
            }
        }
        self.gate = gate;
        self
    }

    /// The record as JSON with a line end.
    ///
    /// # Errors
    /// [`RecordError::Malformed`] if a caller's extra field cannot be serialised.
    pub fn to_json(&self) -> Result<String, RecordError> {
        let mut text = serde_json::to_string(self).map_err(RecordError::Malformed)?;
        text.push('\n');
        Ok(text)
    }

    /// The record as a file holds it: [`PACKED`], with a line end.
    ///
    /// # Errors
    /// [`RecordError::Malformed`] if a caller's extra field cannot be serialised.
    pub fn to_packed_json(&self) -> Result<String, RecordError> {
        let mut value = serde_json::to_value(self).map_err(RecordError::Malformed)?;
        packed::pack(&mut value)?;
        let mut text = value.to_string();
        text.push('\n');
        Ok(text)
    }

    /// Reads and checks a record file, of either schema, compressed or not.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn load(path: &Path) -> Result<Self, RecordError> {
        let failed = |source| RecordError::Io { path: path.to_owned(), source };
        let bytes = fs::File::open(path).and_then(|file| read_at_most(file, gzip::LIMIT)).map_err(failed)?;
        let text = if bytes.starts_with(&gzip::MAGIC) { gzip::unpack(&bytes) } else { utf8(bytes) };
        Self::from_json(&text.map_err(failed)?)
    }

    /// Writes `<root>/<machine>/<date>-<study>.json`, whole or not at all, and returns its path. A text of more than
    /// [`LARGE`] bytes is written as `.json.gz`. Records are never overwritten: a second one on the same day gets `-2`, and so on.
    ///
    /// # Errors
    /// [`RecordError`] when the record contradicts itself or cannot be written.
    pub fn save(&self, root: &Path) -> Result<PathBuf, RecordError> {
        self.validate()?;
        let text = self.to_packed_json()?;
        let folder = root.join(self.machine.slug());
        let failed = |path: &Path, source| RecordError::Io { path: path.to_owned(), source };
        fs::create_dir_all(&folder).map_err(|e| failed(&folder, e))?;
        let mut builder = tempfile::Builder::new();
        // A temporary file is private; a record's permissions follow the user's umask.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.tempfile_in(&folder).map_err(|e| failed(&folder, e))?;
        let large = text.len() > LARGE;
        let bytes =
            if large { gzip::pack(&text).map_err(|e| failed(&folder, e))? } else { text.into_bytes() };
        file.write_all(&bytes).map_err(|e| failed(file.path(), e))?;
        file.as_file().sync_all().map_err(|e| failed(file.path(), e))?;
        let date = self.date.get(..10).unwrap_or("undated");
        let stem = format!("{}-{}", slug(date), slug(&self.study));
        for n in 1_u32.. {
            let name = if n == 1 { stem.clone() } else { format!("{stem}-{n}") };
            let [plain, packed] = ENDINGS.map(|ending| folder.join(format!("{name}{ending}")));
            let (path, other) = if large { (packed, plain) } else { (plain, packed) };
            if other.exists() {
                continue;
            }
            match file.persist_noclobber(&path) {
                Ok(_) => return Ok(path),
                Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => file = e.file,
                Err(e) => return Err(failed(&path, e.error)),
            }
        }
        Err(failed(&folder, io::Error::from(io::ErrorKind::AlreadyExists)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_texts_are_escaped() {
        let verdict = serde_json::from_str::<Verdict>("\"\\u001b[2J\"").expect_err("not a verdict");
        for e in [
            RecordError::Io { path: "\x1b[2J".into(), source: io::Error::other("planted") },
            RecordError::Malformed(verdict),
            RecordError::Packed { place: "results[0].samples".into(), why: "field \x1b[2J".into() },
            RecordError::Inconsistent { result: "subject \x1b[2J".into(), why: "planted" },
        ] {
            assert!(e.to_string().contains("\\u{1b}[2J"), "{e:?}");
        }
    }

    #[test]
    fn seven_digits() {
        assert_eq!(round(123_456.789_12), 123_456.8);
        assert_eq!(round(0.000_123_456_789), 0.000_123_456_8);
        assert_eq!(round(0.0), 0.0);
    }
}
