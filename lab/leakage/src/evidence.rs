//! What the checks judge, what they find, and in which words: one [`Row`] for an operation, a backend and a means, and one
//! [`PlantedRow`] for a leak that a means has to find.
#![forbid(unsafe_code)]

use core::fmt;

/// A way to look for leaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Means {
    /// Runs compared instruction by instruction on the processor itself.
    Traced,
    /// Valgrind's memcheck with secrets undefined.
    Valgrind,
    /// The time that runs take, fixed secrets against random ones.
    Timing,
    /// Every instruction that ran, held against the list of those whose time does not depend on data.
    Instructions,
}

impl Means {
    /// All of them, in the order that they are reported in.
    pub const ALL: [Means; 4] = [Means::Traced, Means::Instructions, Means::Valgrind, Means::Timing];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Means::Traced => "traced",
            Means::Valgrind => "valgrind",
            Means::Timing => "timing",
            Means::Instructions => "instructions",
        }
    }
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a means says to an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Nothing depends on the secrets, as far as this means can see; and the leak that was planted beside it was seen.
    Clean,
    /// Something does, and this is the first of it.
    Leak(String),
    /// A leak that is known and declared, and nothing else.
    Known(String),
    /// The check itself is worth nothing: its planted leak was not seen, or a run went wrong.
    Broken(String),
    /// This means has nothing to say here, for this reason.
    NotApplicable(String),
}

impl Finding {
    /// One word.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Finding::Clean => "clean",
            Finding::Leak(_) => "LEAK",
            Finding::Known(_) => "known",
            Finding::Broken(_) => "BROKEN",
            Finding::NotApplicable(_) => "n/a",
        }
    }

    /// The rest; empty where all is well.
    #[must_use]
    pub fn detail(&self) -> &str {
        match self {
            Finding::Clean => "",
            Finding::Leak(text)
            | Finding::Known(text)
            | Finding::Broken(text)
            | Finding::NotApplicable(text) => text,
        }
    }

    /// Whether the check has to fail for it.
    #[must_use]
    pub const fn fails(&self) -> bool {
        matches!(self, Finding::Leak(_) | Finding::Broken(_))
    }
}

/// What one means says to one operation of one backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The operation's path: `mayo/round3/mayo1/sign`.
    pub what: String,
    /// The backend that ran.
    pub backend: String,
    /// The means.
    pub means: Means,
    /// What it says.
    pub finding: Finding,
    /// How much was looked at, in words with figures.
    pub extent: String,
    /// Names of instructions that ran, are on the list, and that no vendor promises; of [`Means::Instructions`] alone.
    pub unpromised: Vec<String>,
    /// What one process saw and others did not, in words; of [`Means::Timing`] alone, and no leak.
    pub suspicion: Option<String>,
}

/// Whether a means found a leak that was planted for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlantedRow {
    /// The tier whose instructions leak.
    pub tier: &'static str,
    /// The function that leaks.
    pub plant: &'static str,
    /// The means.
    pub means: Means,
    /// Whether it is sound and has to be left alone.
    pub sound: bool,
    /// Whether the means did what it had to: found the leak and named it, or found nothing.
    pub right: bool,
    /// What it said.
    pub said: String,
}

/// An operation on one set of secrets, ready to run. Preparing and judging it are not looked at.
pub trait Job {
    /// The operation.
    fn run(&mut self);

    /// What came of it, for seeing that a run did what it should.
    fn answer(&self) -> Vec<u8>;

    /// Sixteen bytes or more of its secrets, which planted leaks give away.
    fn secret(&self) -> &[u8];
}

/// An operation on secrets, of one backend.
pub struct Subject {
    /// Its path.
    pub what: String,
    /// The backend, which is the tier of the leaks that are planted beside it.
    pub backend: &'static str,
    /// How many cases [`Subject::prepare`] can make.
    pub cases: usize,
    make: Box<dyn Fn(usize) -> Box<dyn Job>>,
}

impl Subject {
    /// A subject of `cases` cases. Case 0 is the fixed one of timings; cases 0 and 1 should be as unlike as they can be, and
    /// all must ask for memory alike, so that addresses are the same.
    pub fn new<J: Job + 'static>(
        what: impl Into<String>,
        backend: &'static str,
        cases: usize,
        make: impl Fn(usize) -> J + 'static,
    ) -> Subject {
        Subject { what: what.into(), backend, cases, make: Box::new(move |case| Box::new(make(case))) }
    }

    /// Makes the input of a case.
    #[must_use]
    pub fn prepare(&self, case: usize) -> Box<dyn Job> {
        (self.make)(case)
    }

    /// A row about this subject.
    pub(crate) fn row(&self, means: Means, finding: Finding, extent: String) -> Row {
        Row {
            what: self.what.clone(),
            backend: self.backend.to_owned(),
            means,
            finding,
            extent,
            unpromised: Vec::new(),
            suspicion: None,
        }
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject")
            .field("what", &self.what)
            .field("backend", &self.backend)
            .finish_non_exhaustive()
    }
}
