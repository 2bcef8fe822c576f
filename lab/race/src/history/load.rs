//! A folder of records, read oldest first.
#![forbid(unsafe_code)]

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::differences;
use crate::record::{Record, RecordError, slug, stem};
use crate::text::shown;

/// A record and its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its file.
    pub path: PathBuf,
    /// What is in it.
    pub record: Record,
}

/// Why a file of the history cannot be used.
#[derive(Debug)]
pub enum HistoryError {
    /// A folder cannot be listed.
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file is not a record.
    Record {
        /// The file.
        path: PathBuf,
        /// Why.
        source: RecordError,
    },
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", shown(self.path()), self.why())
    }
}

impl HistoryError {
    /// The file or folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Folder { path, .. } | Self::Record { path, .. } => path,
        }
    }

    /// Why it cannot be used, without its name.
    #[must_use]
    pub fn why(&self) -> String {
        match self {
            Self::Folder { source, .. } | Self::Record { source: RecordError::Io { source, .. }, .. } => {
                source.to_string()
            }
            Self::Record { source, .. } => source.to_string(),
        }
    }
}

impl std::error::Error for HistoryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Folder { source, .. } => Some(source),
            Self::Record { source, .. } => Some(source),
        }
    }
}

/// Reads one record.
///
/// # Errors
/// [`HistoryError::Record`], naming the file.
pub fn load(path: &Path) -> Result<Entry, HistoryError> {
    let record =
        Record::load(path).map_err(|source| HistoryError::Record { path: path.to_owned(), source })?;
    Ok(Entry { path: path.to_owned(), record })
}

/// What a folder of records holds.
#[derive(Debug, Default)]
pub struct History {
    /// Its records, the oldest first.
    pub entries: Vec<Entry>,
    /// The files and folders in it that cannot be used, each with the reason. A verdict on the rest must name them.
    pub skipped: Vec<HistoryError>,
}

/// Reads every `<root>/<machine>/*.json` and `*.json.gz`. A missing root has no records.
///
/// # Errors
/// [`HistoryError::Folder`] when the root itself cannot be listed.
pub fn load_all(root: &Path) -> Result<History, HistoryError> {
    let mut history = History::default();
    if !root.exists() {
        return Ok(history);
    }
    let History { entries, skipped } = &mut history;
    for machine in listed(root)?.into_iter().filter(|p| p.is_dir()) {
        match listed(&machine) {
            Err(e) => skipped.push(e),
            Ok(files) => {
                for path in files.into_iter().filter(|p| stem(p).is_some()) {
                    // Reading a pipe would wait for its writer.
                    let readable = if path.is_file() { load(&path) } else { Err(not_a_file(path)) };
                    match readable {
                        Ok(entry) => entries.push(entry),
                        Err(e) => skipped.push(e),
                    }
                }
            }
        }
    }
    // Records of the same second are ordered by number: `x.json`, `x-2.json`, `x-10.json`.
    entries.sort_by(|a, b| {
        let place = |e: &Entry| {
            let stem = stem(&e.path).unwrap_or_default().to_owned();
            let number = stem.rsplit_once('-').and_then(|(_, n)| n.parse::<u32>().ok()).unwrap_or(1);
            let plain = format!("{}-{}", e.record.date.get(..10).unwrap_or("undated"), slug(&e.record.study));
            (e.path.parent().map(Path::to_owned), if stem == plain { 1 } else { number })
        };
        (&a.record.date, place(a)).cmp(&(&b.record.date, place(b)))
    });
    Ok(history)
}

fn not_a_file(path: PathBuf) -> HistoryError {
    let source = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
    HistoryError::Record { path: path.clone(), source: RecordError::Io { path, source } }
}

fn listed(folder: &Path) -> Result<Vec<PathBuf>, HistoryError> {
    let failed = |source| HistoryError::Folder { path: folder.to_owned(), source };
    let mut paths = fs::read_dir(folder)
        .map_err(failed)?
        .map(|e| Ok(e?.path()))
        .collect::<io::Result<Vec<_>>>()
        .map_err(failed)?;
    paths.sort();
    Ok(paths)
}

/// The newest entry of every study on every machine. Both `entries` and the result are oldest first.
#[must_use]
pub fn newest_of_each(entries: Vec<Entry>) -> Vec<Entry> {
    let mut kept: Vec<Entry> = Vec::new();
    for entry in entries.into_iter().rev() {
        let known = kept.iter().any(|k| {
            k.record.study == entry.record.study
                && differences(&k.record.machine, &entry.record.machine).is_empty()
        });
        if !known {
            kept.push(entry);
        }
    }
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::super::tests::{record, row};
    use super::*;

    #[test]
    fn foreign_texts_are_escaped() {
        let path = PathBuf::from("a\x1b[2J\n.json");
        let source = RecordError::Inconsistent { result: "subject \x1b]0;title\x07".into(), why: "planted" };
        for e in [
            HistoryError::Record { path: path.clone(), source },
            HistoryError::Folder { path, source: io::Error::other("planted") },
        ] {
            let told = e.to_string();
            assert!(
                told.starts_with("a\\u{1b}[2J\\n.json: ") && !told.contains(char::is_control),
                "{told:?}"
            );
        }
    }

    #[test]
    fn a_history_is_read_in_order_and_what_cannot_be_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(load_all(&folder.path().join("nowhere")).expect("empty").entries.is_empty());
        let mut first = record(vec![row("avx2", 100.0, 4.0, 1)]);
        first.date = "2026-01-02T00:00:00Z".into();
        let mut second = first.clone();
        second.date = "2026-01-01T00:00:00Z".into();
        let mut other = first.clone();
        other.study = "other".into();
        for r in [&first, &second, &other] {
            r.save(folder.path()).expect("saved");
        }
        let all = load_all(folder.path()).expect("reads").entries;
        assert_eq!(all.iter().map(|e| e.record.date.as_str()).collect::<Vec<_>>()[0], second.date);
        assert_eq!(all.len(), 3);
        let newest = newest_of_each(all);
        assert_eq!(newest.len(), 2);
        assert!(newest.iter().all(|e| e.record.date == first.date));
        // Records of one second are in the order in which they were stored: the tenth is not before the second.
        let many = tempfile::tempdir().expect("a folder");
        for n in 0..11 {
            let mut record = first.clone();
            record.remarks = vec![n.to_string()];
            record.save(many.path()).expect("saved");
        }
        let all = load_all(many.path()).expect("reads").entries;
        let order: Vec<usize> = all.iter().map(|e| e.record.remarks[0].parse().expect("a number")).collect();
        assert!(order.iter().copied().eq(0..11), "{order:?}");
        // An unreadable file does not hide the others.
        let bad = newest[0].path.with_file_name("a.json");
        fs::write(&bad, "{}").expect("written");
        let folder_there = bad.with_file_name("b.json");
        fs::create_dir(&folder_there).expect("made");
        let history = load_all(folder.path()).expect("reads");
        assert_eq!(history.entries.len(), 3);
        let [skipped, other] = &history.skipped[..] else { panic!("{:?}", history.skipped) };
        assert_eq!((skipped.path(), other.path()), (bad.as_path(), folder_there.as_path()));
        assert_eq!(other.why(), "not a regular file");
        assert!(skipped.why().contains("schema") && skipped.to_string().contains("a.json"), "{skipped}");
        assert!(matches!(load_all(&bad), Err(HistoryError::Folder { path, .. }) if path == bad));
    }
}
