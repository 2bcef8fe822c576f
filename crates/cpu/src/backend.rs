//! The backend table: what every primitive's `BACKENDS` is made of.
#![forbid(unsafe_code)]

use core::fmt;

use crate::{Cpu, Features};

/// One implementation of a primitive for one instruction set: a row of the primitive's `BACKENDS` table.
#[derive(Debug)]
pub struct Backend<K: 'static> {
    name: &'static str,
    summary: &'static str,
    needs: Features,
    kernels: &'static K,
}

impl<K> Backend<K> {
    /// A table row. `kernels` must be sound to call wherever all of `needs` is present.
    #[must_use]
    pub const fn new(
        name: &'static str,
        summary: &'static str,
        needs: Features,
        kernels: &'static K,
    ) -> Backend<K> {
        Backend { name, summary, needs, kernels }
    }

    /// The name: an ISA name, as taken by `--backend` and `LANEWORK_BACKEND`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// One line on what it is.
    #[must_use]
    pub const fn summary(&self) -> &'static str {
        self.summary
    }

    /// The features it needs.
    #[must_use]
    pub const fn needs(&self) -> Features {
        self.needs
    }

    /// The kernels, if `cpu` has everything they need. This is the only way to them.
    ///
    /// # Errors
    /// [`Unavailable`] naming the missing features, and whether they are absent or masked.
    pub fn get(&self, cpu: &Cpu) -> Result<&'static K, Unavailable> {
        let missing = self.needs.difference(cpu.features());
        if missing == Features::NONE {
            return Ok(self.kernels);
        }
        let masked = missing.difference(missing.difference(cpu.masked()));
        let absent = missing.difference(masked);
        let mut why = String::new();
        if absent != Features::NONE {
            why += &format!("this CPU lacks {absent}");
        }
        if masked != Features::NONE {
            why += &format!("{}masked: {masked}", if why.is_empty() { "" } else { "; " });
        }
        Err(Unavailable { what: self.name.to_owned(), why })
    }
}

/// Why something that was asked for cannot run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// What was asked for: a backend's or a peer's name.
    pub what: String,
    /// The reason, as a phrase.
    pub why: String,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not available here: {}", self.what, self.why)
    }
}

impl core::error::Error for Unavailable {}

/// How to choose a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Select<'a> {
    /// The last row of the table that can run: tables are ordered from the plainest to the fastest.
    #[default]
    Best,
    /// This one, or an error.
    Named(&'a str),
}

/// Chooses a row of `table` for `cpu`. Rows are ordered from the plainest, which needs nothing, to the fastest.
///
/// # Errors
/// [`Unavailable`] when the named row does not exist or cannot run here.
pub fn select<K>(
    table: &'static [Backend<K>],
    cpu: &Cpu,
    how: Select<'_>,
) -> Result<&'static Backend<K>, Unavailable> {
    match how {
        Select::Best => table.iter().rev().find(|b| b.get(cpu).is_ok()).ok_or_else(|| Unavailable {
            what: "every backend".to_owned(),
            why: "the table has no row that can run on this CPU".to_owned(),
        }),
        Select::Named(name) => {
            let row = table.iter().find(|b| b.name == name).ok_or_else(|| Unavailable {
                what: format!("backend '{name}'"),
                why: format!(
                    "there is none of that name; known: {}",
                    table.iter().map(|b| b.name).collect::<Vec<_>>().join(", ")
                ),
            })?;
            row.get(cpu).map(|_| row)
        }
    }
}

/// The rows of `table` that can run on `cpu`, and for the others the reason why not.
pub fn available<K>(
    table: &'static [Backend<K>],
    cpu: &Cpu,
) -> impl Iterator<Item = Result<&'static Backend<K>, Unavailable>> {
    table.iter().map(move |row| row.get(cpu).map(|_| row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Feature;

    static PLAIN: u8 = 1;
    static WIDE: u8 = 2;
    static TABLE: [Backend<u8>; 2] = [
        Backend::new("portable", "plain", Features::NONE, &PLAIN),
        Backend::new("avx2", "wide", Features::of(&[Feature::Avx2]), &WIDE),
    ];

    #[test]
    fn a_missing_feature_is_named_and_falls_back() {
        let cpu = Cpu::baseline();
        assert_eq!(select(&TABLE, &cpu, Select::Best).unwrap().name(), "portable");
        let why = select(&TABLE, &cpu, Select::Named("avx2")).unwrap_err().why;
        assert!(why.contains("lacks") && why.contains("avx2"), "{why}");
    }

    #[test]
    fn a_masked_feature_is_told_apart_from_an_absent_one() {
        let cpu = Cpu::detect();
        if !cpu.features().contains(Feature::Avx2) {
            // The machine cannot show masking; absence is covered by the other test.
            assert!(TABLE[1].get(&cpu).is_err());
            return;
        }
        assert_eq!(*TABLE[1].get(&cpu).unwrap(), 2);
        let why = TABLE[1].get(&cpu.masking(Features::parse("avx").unwrap())).unwrap_err().why;
        assert!(why.starts_with("masked:"), "{why}");
    }

    #[test]
    fn an_unknown_name_lists_the_known() {
        let e = select(&TABLE, &Cpu::baseline(), Select::Named("sse9")).unwrap_err();
        assert!(e.to_string().contains("sse9") && e.to_string().contains("portable, avx2"), "{e}");
    }
}
