//! The environment variables that select backends. Only the command and the tests read them.
#![forbid(unsafe_code)]

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::{Cpu, Features, Select, UnknownFeature};

/// The values of `LANEWORK_MASK`, `LANEWORK_BACKEND` and `LANEWORK_REQUIRE`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    mask: Features,
    /// Backend by primitive; the empty key serves every primitive without an entry of its own.
    forced: BTreeMap<String, String>,
    require: Vec<String>,
}

/// An invalid variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsError {
    /// `LANEWORK_MASK` names something that is not a feature.
    Mask(UnknownFeature),
    /// `LANEWORK_BACKEND` has an entry without a name, or two entries for one primitive.
    Backend(String),
    /// The variable of this name is not UTF-8.
    NotText(&'static str),
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingsError::Mask(e) => write!(f, "LANEWORK_MASK: {e}"),
            SettingsError::Backend(entry) => {
                write!(f, "LANEWORK_BACKEND: cannot read '{entry}'")
            }
            SettingsError::NotText(variable) => write!(f, "{variable} is not UTF-8 text"),
        }
    }
}

impl core::error::Error for SettingsError {}

impl Settings {
    /// Reads the three variables of this process.
    ///
    /// # Errors
    /// [`SettingsError`] naming the variable and the part that cannot be read.
    #[cfg(any(test, feature = "std"))]
    pub fn from_env() -> Result<Settings, SettingsError> {
        use std::env::VarError;
        let var = |name| match std::env::var(name) {
            Ok(text) => Ok(text),
            Err(VarError::NotPresent) => Ok(String::new()),
            Err(VarError::NotUnicode(_)) => Err(SettingsError::NotText(name)),
        };
        Settings::parse(&var("LANEWORK_MASK")?, &var("LANEWORK_BACKEND")?, &var("LANEWORK_REQUIRE")?)
    }

    /// Parses the three values.
    ///
    /// # Errors
    /// As [`Settings::from_env`].
    pub fn parse(mask: &str, backend: &str, require: &str) -> Result<Settings, SettingsError> {
        let mut forced = BTreeMap::new();
        for entry in backend.split(',').map(str::trim).filter(|e| !e.is_empty()) {
            let (primitive, name) = entry.split_once('=').unwrap_or(("", entry));
            let (primitive, name) = (primitive.trim(), name.trim());
            if name.is_empty() || forced.insert(primitive.to_owned(), name.to_owned()).is_some() {
                return Err(SettingsError::Backend(entry.to_owned()));
            }
        }
        Ok(Settings {
            mask: Features::parse(mask).map_err(SettingsError::Mask)?,
            forced,
            require: require.split(',').map(str::trim).filter(|r| !r.is_empty()).map(str::to_owned).collect(),
        })
    }

    /// This machine's CPU without the masked features.
    #[must_use]
    pub fn cpu(&self) -> Cpu {
        Cpu::detect().masking(self.mask)
    }

    /// The backend for `primitive`.
    #[must_use]
    pub fn select(&self, primitive: &str) -> Select<'_> {
        self.forced
            .get(primitive)
            .or_else(|| self.forced.get(""))
            .map_or(Select::Best, |name| Select::Named(name))
    }

    /// The primitives that have a backend forced by name; the empty name means all.
    pub fn forced(&self) -> impl Iterator<Item = (&str, &str)> {
        self.forced.iter().map(|(p, b)| (p.as_str(), b.as_str()))
    }

    /// Forces `backend` for `primitive`, as `--backend` does; it overrides the environment.
    pub fn force(&mut self, primitive: &str, backend: &str) {
        self.forced.insert(primitive.to_owned(), backend.to_owned());
    }

    /// Removes every entry that forces `backend`, and returns whether there was one. For backend-like names that
    /// are chosen by other means.
    pub fn unforce(&mut self, backend: &str) -> bool {
        let before = self.forced.len();
        self.forced.retain(|_, name| name != backend);
        self.forced.len() < before
    }

    /// Whether a test may not skip `backend`.
    #[must_use]
    pub fn requires(&self, backend: &str) -> bool {
        self.require.iter().any(|r| r == backend)
    }

    /// The backends that may not be skipped.
    #[must_use]
    pub fn required(&self) -> &[String] {
        &self.require
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_primitive_of_its_own_beats_the_general_entry() {
        let s = Settings::parse("", "avx2, magma=portable", "").unwrap();
        assert_eq!(s.select("mayo"), Select::Named("avx2"));
        assert_eq!(s.select("magma"), Select::Named("portable"));
        assert_eq!(Settings::default().select("mayo"), Select::Best);
        let mut s = s;
        assert!(s.unforce("avx2") && !s.unforce("avx2"));
        assert_eq!((s.select("mayo"), s.select("magma")), (Select::Best, Select::Named("portable")));
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        assert!(matches!(Settings::parse("", "mayo=", ""), Err(SettingsError::Backend(e)) if e == "mayo="));
        assert!(matches!(Settings::parse("", "a,b", ""), Err(SettingsError::Backend(e)) if e == "b"));
        assert!(matches!(Settings::parse("mmx9", "", ""), Err(SettingsError::Mask(_))));
    }

    #[test]
    fn required_backends_are_listed() {
        let s = Settings::parse("", "", "portable, avx512").unwrap();
        assert!(s.requires("avx512") && !s.requires("avx2"));
    }
}
