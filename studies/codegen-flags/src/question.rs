//! The study as data: builds, and the races of each mode.
#![forbid(unsafe_code)]

use lanework_race::stats::least_pairs;
use lanework_race::study::Study;
use lanework_race::verdict::Rules;
use serde::Deserialize;

/// What a build changes about the `release` profile.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Flags {
    pub(super) name: String,
    /// How tables show it.
    pub(super) what: String,
    pub(super) opt_level: Option<String>,
    pub(super) target_cpu: Option<String>,
    pub(super) lto: Option<String>,
    pub(super) codegen_units: Option<u32>,
    /// Guided by a profile that an instrumented build has made.
    #[serde(default)]
    pub(super) pgo: bool,
}

impl Flags {
    /// The first fault in it: names become cargo profiles and folders, and values parts of a command line.
    fn fault(&self) -> Option<String> {
        let plain = |text: &str, more: &str| {
            !text.is_empty()
                && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || more.contains(c))
        };
        if !plain(&self.name, "-") {
            return Some("a build's name is of small letters, digits and dashes".to_owned());
        }
        let wrong = |key: &str, value: &str| Some(format!("{}: {key} cannot be {value:?}", self.name));
        match self {
            Flags { opt_level: Some(o), .. } if !["0", "1", "2", "3", "s", "z"].contains(&o.as_str()) => {
                wrong("opt-level", o)
            }
            Flags { target_cpu: Some(cpu), .. } if !plain(cpu, "-_.") => wrong("target-cpu", cpu),
            Flags { lto: Some(lto), .. } if !["off", "thin", "fat"].contains(&lto.as_str()) => {
                wrong("lto", lto)
            }
            Flags { codegen_units: Some(0), .. } => wrong("codegen-units", "0"),
            _ => None,
        }
    }
}

/// What a mode of the study races.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mode {
    pub(super) builds: Vec<String>,
    pub(super) subjects: Vec<String>,
    /// Backends by name, `*` for all.
    pub(super) backends: Vec<String>,
    /// For one race.
    pub(super) seconds: f64,
    pub(super) rounds: usize,
}

/// All of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Question {
    pub(super) baseline: String,
    pub(super) training: Vec<String>,
    pub(super) training_seconds: f64,
    pub(super) worth: f64,
    pub(super) build: Vec<Flags>,
    pub(super) quick: Mode,
    pub(super) full: Mode,
}

impl Question {
    pub(super) fn of(study: &Study) -> Result<Question, String> {
        let wrong = |why: String| format!("{}: {why}", study.name);
        let asked: Question =
            study.table.clone().try_into().map_err(|e: toml::de::Error| wrong(e.to_string()))?;
        asked.fault().map_or(Ok(asked), |why| Err(wrong(why)))
    }

    fn fault(&self) -> Option<String> {
        if let Some(why) = self.build.iter().find_map(Flags::fault) {
            return Some(why);
        }
        for (i, b) in self.build.iter().enumerate() {
            if self.build[..i].iter().any(|a| a.name == b.name) {
                return Some(format!("two builds are called {}", b.name));
            }
        }
        let seconds = 0.1..=86_400.0;
        if self.named(&self.baseline).is_none() {
            return Some(format!("there is no build '{}' to race against", self.baseline));
        }
        let fraction = self.worth > 0.0 && self.worth < 1.0;
        if !fraction || !seconds.contains(&self.training_seconds) {
            return Some("training-seconds are 0.1 to 86400, and worth is a fraction".to_owned());
        }
        for mode in [&self.quick, &self.full] {
            if let Some(name) = mode.builds.iter().find(|n| **n == self.baseline || self.named(n).is_none()) {
                return Some(format!("'{name}' is not a build that could be raced against the baseline"));
            }
            if mode.builds.is_empty() || mode.subjects.is_empty() || mode.backends.is_empty() {
                return Some("a mode races nothing".to_owned());
            }
            let least = least_pairs(Rules::default().alpha);
            if !seconds.contains(&mode.seconds) || !(least..=1000).contains(&mode.rounds) {
                return Some(format!("a race takes 0.1 to 86400 seconds and {least} to 1000 rounds"));
            }
        }
        None
    }

    /// The build of that name.
    pub(super) fn named(&self, name: &str) -> Option<&Flags> {
        self.build.iter().find(|b| b.name == name)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::ENTRY;

    pub(in super::super) fn asked() -> Question {
        Question::of(&Study::from_toml(ENTRY.name, ENTRY.toml).expect("a study")).expect("it reads")
    }

    #[test]
    fn the_study_reads_and_nonsense_is_refused() {
        assert!(asked().build.len() > 8);
        let study = |text: &str| Study::from_toml(ENTRY.name, text).expect("a study");
        for (from, to) in [
            ("baseline = \"release\"", "baseline = \"debug\""),
            ("name = \"o1\"", "name = \"../o1\""),
            ("name = \"o1\"", "name = \"o2\""),
            ("opt-level = \"1\"", "opt-level = \"9\""),
            ("lto = \"fat\"", "lto = \"slim\""),
            ("target-cpu = \"native\"", "target-cpu = \"a b\""),
            ("codegen-units = 16", "codegen-units = 0"),
            ("builds = [\"native\"", "builds = [\"o7\""),
            ("builds = [\"native\"", "builds = [\"release\""),
            ("rounds = 8", "rounds = 2"),
            ("worth = 0.02", "worth = 2"),
            ("pgo = true", "pgi = true"),
        ] {
            assert!(ENTRY.toml.contains(from), "{from}");
            assert!(Question::of(&study(&ENTRY.toml.replacen(from, to, 1))).is_err(), "{to}");
        }
    }
}
