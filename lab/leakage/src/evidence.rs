//! The subjects of the checks and their findings: one [`Row`] for an operation, a backend and a means, and one
//! [`PlantedRow`] for a leak that a means must find.
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
    /// Every instruction that ran, checked against the list of those whose time does not depend on data.
    Instructions,
}

impl Means {
    /// All of them, in the order of reports.
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

/// What a means finds in an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Nothing depends on the secrets, as far as this means can see, and the planted leak was found.
    Clean,
    /// Something does; this is the first instance.
    Leak(String),
    /// A leak that is known and declared, and nothing else.
    Known(String),
    /// The check itself failed: its planted leak was not found, or a run went wrong.
    Broken(String),
    /// This means does not apply here, for this reason.
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

    /// The details; empty where all is well.
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

    /// Whether it makes the check fail.
    #[must_use]
    pub const fn fails(&self) -> bool {
        matches!(self, Finding::Leak(_) | Finding::Broken(_))
    }
}

/// What one means finds in one operation of one backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The operation's path: `mayo/round3/mayo1/sign`.
    pub what: String,
    /// The backend that ran.
    pub backend: String,
    /// The means.
    pub means: Means,
    /// What it found.
    pub finding: Finding,
    /// How much was examined, in words with figures.
    pub extent: String,
    /// Names of listed instructions that ran and that no vendor promises; [`Means::Instructions`] only.
    pub unpromised: Vec<String>,
    /// What one process saw and others did not, in words; [`Means::Timing`] only. Not a leak.
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
    /// Whether it is sound and must pass.
    pub sound: bool,
    /// Whether the means was right: it found the leak and named it, or found nothing.
    pub right: bool,
    /// What it reported.
    pub said: String,
}

/// An operation on one set of secrets, ready to run. Its preparation and its answer are not checked for leaks.
pub trait Job {
    /// The operation.
    fn run(&mut self);

    /// The result, to check that a run did what it should.
    fn answer(&self) -> Vec<u8>;

    /// Sixteen bytes or more of its secrets, which planted leaks give away.
    fn secret(&self) -> &[u8];
}

/// An operation on secrets, of one backend.
pub struct Subject {
    /// Its path.
    pub what: String,
    /// The backend, which decides the tier of the planted leaks.
    pub backend: &'static str,
    /// How many cases [`Subject::prepare`] can make.
    pub cases: usize,
    make: Box<dyn Fn(usize) -> Box<dyn Job>>,
}

impl Subject {
    /// A subject of `cases` cases. Case 0 is the fixed one of timings. Cases 0 and 1 should differ as much as possible, and
    /// all must allocate alike, so that addresses are the same.
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
