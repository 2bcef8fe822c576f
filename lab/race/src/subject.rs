//! What a race runs: a subject, its variants, and the facts a variant reports about itself.
#![forbid(unsafe_code)]

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::gate::Gate;

/// What a variant reports about itself after it has run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The backend that really ran, as it names itself.
    pub backend: String,
    /// Anything a reader of the figure should know.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Prepared work that can be repeated.
pub trait Runnable {
    /// Does the work `iterations` times. Nothing else belongs in here: this is what is timed.
    fn run(&mut self, iterations: u64);

    /// Called after the last run, so that it reports what happened, not what was meant to happen.
    fn facts(&self) -> Facts;
}

/// A variant that cannot run here, and why. Not `lanework_cpu::Unavailable`: not every variant is a backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unavailable {
    /// Why, in words a user can act on.
    pub why: String,
}

impl Unavailable {
    /// Not here, because of `why`.
    pub fn because(why: impl Into<String>) -> Self {
        Self { why: why.into() }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Unavailable {}

struct Work<F, G> {
    body: F,
    facts: G,
}

impl<F: FnMut(), G: Fn() -> Facts> Runnable for Work<F, G> {
    fn run(&mut self, iterations: u64) {
        for _ in 0..iterations {
            (self.body)();
        }
    }

    fn facts(&self) -> Facts {
        (self.facts)()
    }
}

/// A [`Runnable`] from two closures: the work itself, once, and the facts, read afterwards. The work must keep its
/// results alive with `std::hint::black_box`.
pub fn work<F, G>(body: F, facts: G) -> Box<dyn Runnable>
where
    F: FnMut() + 'static,
    G: Fn() -> Facts + 'static,
{
    Box::new(Work { body, facts })
}

type Factory = dyn Fn() -> Result<Box<dyn Runnable>, Unavailable>;

/// A contestant: an implementation with its threads and device, or a peer.
pub struct Variant {
    name: String,
    cores: usize,
    units: u64,
    factory: Box<Factory>,
}

impl fmt::Debug for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variant")
            .field("name", &self.name)
            .field("cores", &self.cores)
            .field("units", &self.units)
            .finish_non_exhaustive()
    }
}

impl Variant {
    /// A variant on one core whose iteration does one unit of work. `factory` prepares keys, inputs and
    /// buffers; it runs untimed, on the variant's cores, possibly more than once.
    pub fn new(
        name: impl Into<String>,
        factory: impl Fn() -> Result<Box<dyn Runnable>, Unavailable> + 'static,
    ) -> Self {
        Self { name: name.into(), cores: 1, units: 1, factory: Box::new(factory) }
    }

    /// Declares how many cores the variant uses (at least one).
    #[must_use]
    pub fn cores(mut self, cores: usize) -> Self {
        self.cores = cores.max(1);
        self
    }

    /// Declares how many units of work (signatures, blocks) one iteration does, so that a batch can race a single
    /// call. At least one. All figures are per unit.
    #[must_use]
    pub fn units(mut self, units: u64) -> Self {
        self.units = units.max(1);
        self
    }

    /// `backend[+threads=N]`, or a peer's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many cores it uses.
    #[must_use]
    pub fn core_count(&self) -> usize {
        self.cores
    }

    /// How many units of work one iteration does.
    #[must_use]
    pub fn units_per_iteration(&self) -> u64 {
        self.units
    }

    /// Prepares the work.
    ///
    /// # Errors
    /// [`Unavailable`] when the variant cannot run here.
    pub fn prepare(&self) -> Result<Box<dyn Runnable>, Unavailable> {
        (self.factory)()
    }
}

/// Something to race: a path such as `sort/quick/1000`, the checks before it, and its variants.
#[derive(Debug)]
pub struct Subject {
    path: String,
    gate: Gate,
    variants: Vec<Variant>,
    baseline: usize,
    bytes: Option<u64>,
    counted: Option<String>,
}

/// The subject has no variant of that name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSuchVariant {
    /// The subject's path.
    pub subject: String,
    /// The requested name.
    pub name: String,
    /// The names it has.
    pub have: Vec<String>,
}

impl fmt::Display for NoSuchVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "subject {:?} has no variant {:?}; it has {}",
            self.subject,
            self.name,
            self.have.join(", ")
        )
    }
}

impl std::error::Error for NoSuchVariant {}

impl Subject {
    /// A subject whose first variant is the baseline.
    pub fn new(path: impl Into<String>, gate: Gate, baseline: Variant) -> Self {
        Self { path: path.into(), gate, variants: vec![baseline], baseline: 0, bytes: None, counted: None }
    }

    /// Adds a variant.
    #[must_use]
    pub fn with(mut self, variant: Variant) -> Self {
        self.variants.push(variant);
        self
    }

    /// Declares how many bytes a unit of work processes, so that reports can give rates.
    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes).filter(|bytes| *bytes > 0);
        self
    }

    /// Declares what a unit of work is (`squarings`), so that reports can say how many there are in a second.
    #[must_use]
    pub fn counted(mut self, units: impl Into<String>) -> Self {
        self.counted = Some(units.into());
        self
    }

    /// What a unit of work is, where counting them makes sense.
    #[must_use]
    pub fn counted_units(&self) -> Option<&str> {
        self.counted.as_deref()
    }

    /// How many bytes a unit of work processes, where that makes sense.
    #[must_use]
    pub fn bytes_per_unit(&self) -> Option<u64> {
        self.bytes
    }

    /// Makes the variant called `name` the baseline.
    ///
    /// # Errors
    /// [`NoSuchVariant`].
    pub fn set_baseline(&mut self, name: &str) -> Result<(), NoSuchVariant> {
        self.baseline = self.position(name)?;
        Ok(())
    }

    /// Keeps the baseline and the variants called one of `names`, in the subject's order.
    ///
    /// # Errors
    /// [`NoSuchVariant`]; the subject is then unchanged.
    pub fn keep(&mut self, names: &[&str]) -> Result<(), NoSuchVariant> {
        for name in names {
            self.position(name)?;
        }
        let baseline = self.variants[self.baseline].name.clone();
        self.variants.retain(|v| v.name == baseline || names.contains(&v.name.as_str()));
        self.baseline = self.position(&baseline)?;
        Ok(())
    }

    fn position(&self, name: &str) -> Result<usize, NoSuchVariant> {
        self.variants.iter().position(|v| v.name == name).ok_or_else(|| NoSuchVariant {
            subject: self.path.clone(),
            name: name.into(),
            have: self.variants.iter().map(|v| v.name.clone()).collect(),
        })
    }

    /// The subject's path.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The checks before the race.
    #[must_use]
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The variant that all others are compared with.
    #[must_use]
    pub fn baseline(&self) -> &Variant {
        &self.variants[self.baseline]
    }

    /// All variants but the baseline.
    pub fn challengers(&self) -> impl Iterator<Item = &Variant> {
        self.variants.iter().enumerate().filter(|(i, _)| *i != self.baseline).map(|(_, v)| v)
    }

    /// The names of all variants, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variants.iter().map(|v| v.name.as_str())
    }
}
