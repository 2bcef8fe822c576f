//! The rows of every primitive's `BACKENDS` table.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;

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
    /// A table row.
    ///
    /// # Safety
    /// Every safe method of `kernels` must be sound to call on a CPU that has all of `needs`: each feature that a
    /// kernel enables is in `needs`, or implied by a member. [`Backend::get`] gives the kernels to safe code, which
    /// relies on this promise.
    #[must_use]
    pub const unsafe fn new(
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

    /// A description in one line.
    #[must_use]
    pub const fn summary(&self) -> &'static str {
        self.summary
    }

    /// The features it needs.
    #[must_use]
    pub const fn needs(&self) -> Features {
        self.needs
    }

    /// The engine, if `cpu` has every feature that the row needs. This is the only way to the kernels.
    ///
    /// # Errors
    /// [`Unavailable`] naming the missing features, and whether they are absent or masked.
    pub fn get(&self, cpu: &Cpu) -> Result<Engine<K>, Unavailable> {
        let missing = self.needs.difference(cpu.features());
        if missing == Features::NONE {
            return Ok(Engine { name: self.name, kernels: self.kernels });
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

/// The kernels of a primitive, with their table of backends.
pub trait Backends: Sized + 'static {
    /// The primitive's name, as `LANEWORK_BACKEND` takes it: `mayo`.
    const PRIMITIVE: &'static str;

    /// Every backend, from the plainest, which needs nothing, to the fastest.
    const BACKENDS: &'static [Backend<Self>];
}

/// A backend that this CPU can run: its name and its kernels. Every primitive's `Engine` is one of these.
///
/// It dereferences to the kernels. Holding one is the proof that the CPU has the features that they need.
#[derive(Debug)]
pub struct Engine<K: 'static> {
    name: &'static str,
    kernels: &'static K,
}

impl<K> Clone for Engine<K> {
    fn clone(&self) -> Engine<K> {
        *self
    }
}

impl<K> Copy for Engine<K> {}

/// Two engines are equal if they run the same kernels.
impl<K> PartialEq for Engine<K> {
    fn eq(&self, other: &Engine<K>) -> bool {
        core::ptr::eq(self.kernels, other.kernels)
    }
}

impl<K> Eq for Engine<K> {}

impl<K> Deref for Engine<K> {
    type Target = K;

    fn deref(&self) -> &K {
        self.kernels
    }
}

/// The fastest backend of this machine.
impl<K: Backends> Default for Engine<K> {
    fn default() -> Engine<K> {
        Engine::best()
    }
}

impl<K> Engine<K> {
    /// An engine of kernels outside the table: a copy of a row's kernels under a check, or a test's with a planted fault.
    ///
    /// # Safety
    /// As for [`Backend::new`], with the features of the CPU that this runs on for `needs`.
    #[must_use]
    pub const unsafe fn outside(name: &'static str, kernels: &'static K) -> Engine<K> {
        Engine { name, kernels }
    }

    /// The backend's name, as taken by [`Select::Named`].
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The backend's kernels, for as long as the program runs.
    #[must_use]
    pub const fn kernels(&self) -> &'static K {
        self.kernels
    }
}

impl<K: Backends> Engine<K> {
    /// The fastest backend this machine can run.
    ///
    /// # Panics
    /// If no row of the table can run here. Every primitive's first row needs nothing.
    #[must_use]
    pub fn best() -> Engine<K> {
        match Engine::choose(&Cpu::detect(), Select::Best) {
            Ok(engine) => engine,
            Err(why) => unreachable!("the first row of a table needs nothing: {why}"),
        }
    }

    /// The first backend of the table, which needs no CPU feature.
    ///
    /// # Panics
    /// If the first row needs something. No primitive's does.
    #[must_use]
    pub fn portable() -> Engine<K> {
        match K::BACKENDS[0].get(&Cpu::baseline()) {
            Ok(engine) => engine,
            Err(why) => unreachable!("the first row of a table needs nothing: {why}"),
        }
    }

    /// The backend for `cpu` that `how` selects.
    ///
    /// # Errors
    /// [`Unavailable`] when a named backend does not exist or cannot run on `cpu`, with the reason.
    pub fn choose(cpu: &Cpu, how: Select<'_>) -> Result<Engine<K>, Unavailable> {
        match how {
            Select::Best => Engine::available(cpu).next_back().ok_or_else(|| Unavailable {
                what: "every backend".to_owned(),
                why: "the table has no row that can run on this CPU".to_owned(),
            }),
            Select::Named(name) => {
                let row = K::BACKENDS.iter().find(|row| row.name == name).ok_or_else(|| Unavailable {
                    what: format!("backend '{name}'"),
                    why: format!(
                        "no backend has that name; known: {}",
                        K::BACKENDS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ")
                    ),
                })?;
                row.get(cpu)
            }
        }
    }

    /// Every backend, from the plainest to the fastest; for those that `cpu` cannot run, the reason.
    pub fn all(cpu: &Cpu) -> impl DoubleEndedIterator<Item = Result<Engine<K>, Unavailable>> {
        K::BACKENDS.iter().map(move |row| row.get(cpu))
    }

    /// Every backend that `cpu` can run, from the plainest to the fastest.
    pub fn available(cpu: &Cpu) -> impl DoubleEndedIterator<Item = Engine<K>> {
        Engine::all(cpu).filter_map(Result::ok)
    }
}

/// Why a requested backend or peer cannot run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// The requested backend's or peer's name.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Feature;

    #[derive(Debug)]
    struct Width(u8);

    // SAFETY: `Width` has no methods.
    const ROWS: [Backend<Width>; 2] = unsafe {
        [
            Backend::new("portable", "plain", Features::NONE, &Width(1)),
            Backend::new("avx2", "wide", Features::of(&[Feature::Avx2]), &Width(2)),
        ]
    };

    impl Backends for Width {
        const PRIMITIVE: &'static str = "width";
        const BACKENDS: &'static [Backend<Width>] = &ROWS;
    }

    type Engine = super::Engine<Width>;

    #[test]
    fn a_missing_feature_is_named_and_falls_back() {
        let cpu = Cpu::baseline();
        assert_eq!(Engine::choose(&cpu, Select::Best).unwrap().name(), "portable");
        let why = Engine::choose(&cpu, Select::Named("avx2")).unwrap_err().why;
        assert!(why.contains("lacks") && why.contains("avx2"), "{why}");
        assert_eq!(Engine::available(&cpu).count(), 1);
    }

    #[test]
    fn a_masked_feature_is_told_apart_from_an_absent_one() {
        let cpu = Cpu::detect();
        if !cpu.features().contains(Feature::Avx2) {
            // The machine cannot show masking; absence is covered by the other test.
            assert!(ROWS[1].get(&cpu).is_err());
            return;
        }
        assert_eq!(ROWS[1].get(&cpu).unwrap().0, 2);
        assert_eq!(Engine::best().name(), "avx2");
        let why = ROWS[1].get(&cpu.masking(Features::parse("avx").unwrap())).unwrap_err().why;
        assert!(why.starts_with("masked:"), "{why}");
    }

    #[test]
    fn an_unknown_name_lists_the_known() {
        let e = Engine::choose(&Cpu::baseline(), Select::Named("sse9")).unwrap_err();
        assert!(e.to_string().contains("sse9") && e.to_string().contains("portable, avx2"), "{e}");
    }
}
