//! The per-machine profile: what `tune` found fastest here, read by every later choice of a backend.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lanework_cpu::Threads;
use lanework_study::{Failure, Spill};
use lanework_suite::{Context, Job};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::files::{self, Access};
use crate::tune::DeviceChoices;

/// The version of the file's layout.
pub(crate) const SCHEMA: u64 = 2;

/// What won, by job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Profile {
    schema: u64,
    /// The machine that it was measured on.
    pub(crate) machine: Fingerprint,
    /// When, in UTC.
    pub(crate) date: String,
    /// Backends and threads.
    pub(crate) choices: BTreeMap<Job, Choice>,
    /// How devices are used.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) devices: BTreeMap<Job, DeviceChoices>,
    /// Homes of spilled values, by the function that was measured: its name, `#`, and a number derived from its instructions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) spills: BTreeMap<String, Spill>,
}

/// What identifies a machine, as far as choices go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    cpu: String,
    features: String,
    cores: usize,
}

/// What won for one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Choice {
    /// The backend.
    pub(crate) backend: String,
    /// The baseline's time over its own: above 1 it is faster.
    pub(crate) ratio: f64,
    /// Threads, 0 for one per core; none if threads were not raced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) threads: Option<usize>,
}

impl Fingerprint {
    fn here(context: &Context) -> Fingerprint {
        Fingerprint {
            cpu: lanework_race::machine::cpu_identity(),
            features: context.cpu.features().to_string(),
            cores: Threads::Own(0).count(),
        }
    }
}

/// The profile's path: `LANEWORK_PROFILE`, or in the user's configuration directory.
pub(crate) fn path() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("LANEWORK_PROFILE")
        .or_else(|| Some(set("XDG_CONFIG_HOME")?.join("lanework/profile.json")))
        .or_else(|| Some(set("HOME")?.join(".config/lanework/profile.json")))
}

/// What is said of a profile that is not this machine's.
const ANOTHER: &str = "a profile of another machine, or of this one with other cores or features";

/// The text of a file that is a profile, of this version or another.
fn read(path: &Path) -> Result<Zeroizing<String>, Failure> {
    /// What profiles of all versions have.
    #[derive(Deserialize)]
    struct Head {
        #[serde(rename = "schema")]
        _schema: u64,
        #[serde(rename = "machine")]
        _machine: Fingerprint,
    }
    let text = files::read_text(path, 1 << 20)?;
    serde_json::from_str::<Head>(&text).map_err(|e| {
        Failure::file(path, format!("not a profile: {e}")).help(
            "set LANEWORK_PROFILE to another file, or delete this one; `lanework tune` writes a profile",
        )
    })?;
    Ok(text)
}

impl Profile {
    pub(crate) fn new(context: &Context, date: String) -> Profile {
        Profile {
            schema: SCHEMA,
            machine: Fingerprint::here(context),
            date,
            choices: BTreeMap::new(),
            devices: BTreeMap::new(),
            spills: BTreeMap::new(),
        }
    }

    /// The user's profile, if there is one for this machine. One for another machine (or for this one with features masked)
    /// counts as none; a damaged one is an error that names it.
    pub(crate) fn load(context: &Context) -> Result<Option<Profile>, Failure> {
        let Some(path) = path().filter(|p| p.exists()) else { return Ok(None) };
        let text = read(&path)?;
        let unreadable = |what: String| {
            Failure::file(&path, what).help("`lanework tune --force` writes a new one, or delete it")
        };
        let profile: Profile = serde_json::from_str(&text)
            .map_err(|e| unreadable(format!("a profile that this version cannot read: {e}")))?;
        if profile.schema != SCHEMA {
            let what = format!("a profile of layout {}, this version reads {SCHEMA}", profile.schema);
            return Err(unreadable(what));
        }
        for (job, choice) in &profile.choices {
            if let Some(threads) = choice.threads.filter(|&threads| threads > Threads::MOST) {
                let what = format!("{threads} threads for {job}, at most {} are started", Threads::MOST);
                return Err(unreadable(what));
            }
        }
        Ok((profile.machine == Fingerprint::here(context)).then_some(profile))
    }

    /// Stores the homes found for functions in the profile, including those with all values on the stack. Returns its path. What
    /// `tune` stored for another machine, or for this one with other cores or features, is not replaced.
    pub(crate) fn keep(context: &Context, found: BTreeMap<String, Spill>) -> Result<PathBuf, Failure> {
        let date = lanework_race::record::utc(std::time::SystemTime::now());
        let mut profile = match (Profile::load(context)?, path().filter(|p| p.exists())) {
            (Some(old), _) => old,
            (None, None) => Profile::new(context, date.clone()),
            (None, Some(path)) => {
                return Err(Failure::file(&path, ANOTHER).help(
                    "set LANEWORK_PROFILE to another file, or let `lanework tune --force` write this one anew",
                ));
            }
        };
        profile.date = date;
        profile.spills.extend(found);
        profile.save()
    }

    /// Refuses, before anything is measured, to write over a file that is not a profile. One of another machine, or one that this
    /// version cannot read, is replaced only with `force`.
    pub(crate) fn may_save(context: &Context, force: bool) -> Result<(), Failure> {
        let Some(path) = path().filter(|p| p.exists()) else { return Ok(()) };
        if force {
            return read(&path).map(drop);
        }
        match Profile::load(context)? {
            Some(_) => Ok(()),
            None => Err(Failure::file(&path, ANOTHER)
                .help("set LANEWORK_PROFILE to another file, or replace this one with --force")),
        }
    }

    pub(crate) fn save(&self) -> Result<PathBuf, Failure> {
        let path = path().ok_or_else(|| {
            Failure::input("no place for a profile")
                .help("set LANEWORK_PROFILE to a file, or HOME to a directory")
        })?;
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|e| Failure::file(folder, e))?;
        }
        let text = serde_json::to_string_pretty(self).map_err(Failure::input)? + "\n";
        files::write(&path, text.as_bytes(), Access::Public, true)?;
        Ok(path)
    }
}
