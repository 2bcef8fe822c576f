//! What this machine's profile keeps of a function's spilled values.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use lanework_suite::Context;
use serde::{Deserialize, Serialize};

use crate::Failure;

/// Where a function's spilled values live best.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spill {
    /// The homes of slots that leave the stack; empty if all stay.
    pub homes: BTreeMap<String, String>,
    /// The old time divided by the new.
    pub ratio: f64,
}

impl Spill {
    /// In words: where which slot lives, or that all are best left on the stack.
    #[must_use]
    pub fn told(&self) -> String {
        let homes: Vec<String> = self.homes.iter().map(|(slot, home)| format!("{slot} in {home}")).collect();
        let homes = if homes.is_empty() { "all on the stack".to_owned() } else { homes.join(", ") };
        format!("{homes} (×{:.3})", self.ratio)
    }
}

/// Puts the findings about functions, by their keys, into this machine's profile. Returns the profile's path.
pub type Keep = fn(&Context, BTreeMap<String, Spill>) -> Result<PathBuf, Failure>;
