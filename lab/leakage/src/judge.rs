//! Checks a [`Subject`] by single steps: by comparison, and by the list of [`crate::instructions`]. Each check is made
//! twice, once with a leak of the subject's tier planted after the operation. If that is not found, the other proves nothing.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lanework_trace::iced_x86::{InstructionInfoFactory, Mnemonic, OpAccess, Register};
use lanework_trace::{Advance, Ending, Failure, Operation, Options, Snapshot, Step, Symbols};

use crate::evidence::{Finding, Job, Means, PlantedRow, Row, Subject};
use crate::instructions::{Class, class, promised};
use crate::plants::{self, Gives, Plant};
use crate::traced::{Difference, Kind, Report};

/// The limits of both checks.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Cases, including the first.
    pub cases: usize,
    /// Instructions of one run; a longer run is not checked.
    pub steps: u64,
    /// The time limit of one pair of runs.
    pub time: Duration,
}

impl Default for Extent {
    fn default() -> Extent {
        Extent { cases: 6, steps: 16_000_000, time: Duration::from_secs(60) }
    }
}

impl Extent {
    fn options(self) -> Options {
        Options { steps: self.steps, time: self.time, ..Options::default() }
    }
}

/// A subject's operation, and a plant after it.
struct Planted<'a>(&'a Subject, Option<&'a Plant>);

impl Operation for Planted<'_> {
    type Input = Box<dyn Job>;

    fn prepare(&self, case: usize) -> Box<dyn Job> {
        self.0.prepare(case)
    }

    fn operate(&self, job: &mut Box<dyn Job>) {
        job.run();
        if let Some(plant) = self.1 {
            (plant.run)(job.secret());
        }
    }

    fn answer(&self, job: &Box<dyn Job>) -> Vec<u8> {
        job.answer()
    }
}

/// A plant alone, on secrets whose bytes all differ.
struct Alone<'a>(&'a Plant);

impl Operation for Alone<'_> {
    type Input = [u8; 16];

    fn prepare(&self, case: usize) -> [u8; 16] {
        core::array::from_fn(|i| [0, 0x81, 0x3c, 255][case % 4] ^ (i as u8 >> 3))
    }

    fn operate(&self, secret: &mut [u8; 16]) {
        (self.0.run)(secret);
    }
}

fn gives(difference: &Difference) -> Gives {
    match difference.kind {
        Kind::Way(_) => Gives::Way,
        Kind::Memory(_) => Gives::Memory,
        Kind::Division(_) => Gives::Division,
    }
}

fn names(report: &Report, plant: &Plant) -> bool {
    report.differences.iter().any(|d| gives(d) == plant.gives && d.place.is_in(plant.function))
}

/// What a failure to trace means: a run that is too long is not a fault, nor is a machine that cannot trace.
fn failed(failure: &Failure, steps: u64) -> Finding {
    match failure {
        Failure::Unavailable(why) => Finding::NotApplicable(why.to_string()),
        Failure::Ended { ending: Ending::TooLong, .. } => {
            Finding::NotApplicable(format!("more than {:.0} million instructions", steps as f64 / 1e6))
        }
        Failure::Ended { ending: Ending::TimedOut, .. } => Finding::NotApplicable("it takes too long".into()),
        other => Finding::Broken(other.to_string()),
    }
}

/// Plants to put after an operation of this backend: one for the way and one for memory, of the widest tier that the backend
/// has and this CPU can run.
fn twins(backend: &str) -> Vec<&'static Plant> {
    let widest = ["avx512", "avx2"].into_iter().find(|tier| backend.starts_with(tier) && plants::runs(tier));
    let tier = widest.unwrap_or("portable");
    let of = |gives| PLANTS.iter().find(|p| p.tier == tier && p.gives == gives);
    [of(Gives::Way), of(Gives::Memory)].into_iter().flatten().collect()
}

static PLANTS: [Plant; 17] = plants::ALL;

fn compare(operation: &impl Operation, cases: usize, extent: Extent) -> Result<Report, Failure> {
    let cases: Vec<usize> = (0..cases).collect();
    Snapshot::take(operation, extent.options()).map_err(Failure::from).and_then(|mut s| s.compare(&cases))
}

fn too_few() -> Finding {
    Finding::NotApplicable("runs on fewer than two secrets say nothing".into())
}

/// Compares runs of a subject.
#[must_use]
pub fn traced(subject: &Subject, extent: Extent) -> Row {
    let row = |finding, extent| subject.row(Means::Traced, finding, extent);
    let cases = extent.cases.min(subject.cases);
    if cases < 2 {
        return row(too_few(), String::new());
    }
    let report = match compare(&Planted(subject, None), cases, extent) {
        Ok(report) if report.cases == 0 || report.compared == 0 => {
            return row(Finding::Broken("nothing was compared".into()), String::new());
        }
        Ok(report) => report,
        Err(failure) => return row(failed(&failure, extent.steps), String::new()),
    };
    let seen = format!("{} instructions, {} secrets", report.steps, report.cases + 1);
    if let Some(first) = report.differences.iter().min_by_key(|d| d.step) {
        let more = match report.differences.len() - 1 {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        return row(Finding::Leak(format!("{first}{more}")), seen);
    }
    // Traced runs must give the same answers as others.
    for (case, answer) in &report.answers {
        let mut job = subject.prepare(*case);
        job.run();
        if *answer != job.answer() {
            let what = format!("case {case} gives a different result when it is traced");
            return row(Finding::Broken(what), seen);
        }
    }
    for plant in twins(subject.backend) {
        match compare(&Planted(subject, Some(plant)), 2, extent) {
            Ok(report) if names(&report, plant) => {}
            Ok(_) => {
                let what = format!("`{}` was planted after it and not found", plant.function);
                return row(Finding::Broken(what), seen);
            }
            Err(failure) => return row(Finding::Broken(failure.to_string()), seen),
        }
    }
    row(Finding::Clean, seen)
}

/// What ran, and what of it is not on the list.
struct Executed {
    /// Different instructions that ran.
    sites: usize,
    /// Steps of the first case.
    steps: u64,
    /// Not on the list: address, text, and whether its operands were the same in all cases.
    unlisted: BTreeMap<u64, (String, bool)>,
    /// Names of instructions that are on the list though no vendor promises their time.
    unpromised: BTreeSet<String>,
}

/// Whether two steps of an instruction have equal operands, in all general registers that it reads. Vectors and memory are not
/// recorded, so an instruction that reads them counts as having different ones.
fn works_on_the_same(one: &Step<'_>, two: &Step<'_>, factory: &mut InstructionInfoFactory) -> bool {
    let i = &one.site.instruction;
    // A copied string's bytes pass through; its length and addresses are in registers. So is the value that an exchange
    // compares memory with. A comparison of strings ends where they differ.
    let by_registers =
        (i.is_string_instruction() && !one.site.compares_strings()) || i.mnemonic() == Mnemonic::Cmpxchg;
    let info = factory.info(i);
    let reads = |access| {
        matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
    };
    let registers = info.used_registers().iter().filter(|r| reads(r.access())).map(|r| r.register());
    let mut same = true;
    for register in registers {
        let whole = register.full_register();
        same &= if whole.is_gpr() {
            one.register(whole) == two.register(whole)
        } else {
            whole.is_segment_register() || whole == Register::RIP
        };
    }
    same && (by_registers || !info.used_memory().iter().any(|m| reads(m.access())))
}

fn execute(operation: &impl Operation, cases: usize, extent: Extent) -> Result<(Executed, Symbols), Failure> {
    let mut snapshot = Snapshot::take(operation, extent.options())?;
    let mut executed =
        Executed { sites: 0, steps: 0, unlisted: BTreeMap::new(), unpromised: BTreeSet::new() };
    let mut known: std::collections::HashMap<u64, Class> = std::collections::HashMap::new();
    let mut factory = InstructionInfoFactory::new();
    for case in 1..cases {
        let mut look = |step: &Step<'_>, other: Option<&Step<'_>>| {
            let class = *known.entry(step.address()).or_insert_with(|| {
                let i = &step.site.instruction;
                let class = class(i);
                if class == Class::Listed && !promised(i) {
                    executed.unpromised.insert(format!("{:?}", i.mnemonic()).to_ascii_lowercase());
                }
                class
            });
            if class == Class::Unlisted {
                let same = other.is_some_and(|other| works_on_the_same(step, other, &mut factory));
                let entry = executed
                    .unlisted
                    .entry(step.address())
                    .or_insert_with(|| (step.site.instruction.to_string(), true));
                entry.1 &= same;
            }
        };
        let outcomes = snapshot.pair([0, case], |one, two, _| match (one, two) {
            (Some(one), Some(two)) if one.address() == two.address() => {
                look(one, Some(two));
                Advance::Both
            }
            // Runs that have parted are followed one by one, to their ends.
            (Some(one), _) => {
                look(one, None);
                Advance::First
            }
            (None, Some(two)) => {
                look(two, None);
                Advance::Second
            }
            (None, None) => Advance::Stop,
        })?;
        executed.steps = executed.steps.max(outcomes[0].steps);
        for (outcome, case) in outcomes.into_iter().zip([0, case]) {
            if !matches!(outcome.ending, Ending::Returned | Ending::Stopped) {
                return Err(Failure::Ended { case, ending: outcome.ending, place: None });
            }
        }
    }
    executed.sites = known.len();
    Ok((executed, snapshot.symbols()))
}

/// The plant that the list must refuse: a division by a secret.
fn division() -> &'static Plant {
    PLANTS.iter().find(|p| p.gives == Gives::Division).unwrap_or(&PLANTS[0])
}

/// Checks every instruction that a subject ran against the list.
#[must_use]
pub fn instructions(subject: &Subject, extent: Extent) -> Row {
    let row = |finding, extent| subject.row(Means::Instructions, finding, extent);
    let cases = 3.min(extent.cases).min(subject.cases);
    if cases < 2 {
        return row(too_few(), String::new());
    }
    let (executed, mut symbols) = match execute(&Planted(subject, None), cases, extent) {
        Ok(done) => done,
        Err(failure) => return row(failed(&failure, extent.steps), String::new()),
    };
    let excused = executed.unlisted.values().filter(|(_, same)| *same).count();
    let mut seen = format!("{} instructions of the program", executed.sites);
    if excused > 0 {
        seen += &format!(", {excused} unlisted on public operands");
    }
    let unpromised: Vec<String> = executed.unpromised.iter().cloned().collect();
    if !unpromised.is_empty() {
        seen += &format!(", {} kinds that no vendor promises", unpromised.len());
    }
    let row = |finding, extent| Row { unpromised: unpromised.clone(), ..row(finding, extent) };
    let mut refused = executed.unlisted.iter().filter(|(_, (_, same))| !same);
    if let Some((address, (text, _))) = refused.next() {
        let more = match refused.count() {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let place = symbols.place(*address);
        return row(Finding::Leak(format!("`{text}` is not on the list, in {place}{more}")), seen);
    }
    let plant = division();
    match execute(&Planted(subject, Some(plant)), 2, extent) {
        Ok((planted, mut symbols)) => {
            if refuses(&planted, &mut symbols, plant) {
                return row(Finding::Clean, seen);
            }
            let what = format!("`{}` was planted after it and not refused", plant.function);
            row(Finding::Broken(what), seen)
        }
        Err(failure) => row(Finding::Broken(failure.to_string()), seen),
    }
}

fn refuses(executed: &Executed, symbols: &mut Symbols, plant: &Plant) -> bool {
    executed
        .unlisted
        .iter()
        .any(|(address, (_, same))| !same && symbols.place(*address).is_in(plant.function))
}

/// Whether single steps find each planted leak and name it, and let the sound twins pass. Plants whose tier this CPU lacks are
/// left out.
#[must_use]
pub fn traced_plants(extent: Extent) -> Vec<PlantedRow> {
    let runs = PLANTS.iter().filter(|plant| plants::runs(plant.tier));
    let judge = |plant: &'static Plant| {
        let sound = plant.gives == Gives::Nothing;
        let (right, said) = match compare(&Alone(plant), 4, extent) {
            Ok(report) => {
                let named = report
                    .differences
                    .iter()
                    .find(|d| gives(d) == plant.gives && d.place.is_in(plant.function));
                let said = named.or(report.differences.first()).map(ToString::to_string);
                let right = if sound { report.differences.is_empty() } else { named.is_some() };
                (right, said.unwrap_or_else(|| "no difference".into()))
            }
            Err(Failure::Unavailable(_)) => return None,
            Err(failure) => (false, failure.to_string()),
        };
        Some(PlantedRow { tier: plant.tier, plant: plant.function, means: Means::Traced, sound, right, said })
    };
    runs.filter_map(judge).collect()
}

/// Plants with an instruction that is not on the list, and a sound twin of each tier without one.
const BY_INSTRUCTION: [&str; 8] = [
    "divide_byte",
    "select_by_byte",
    "load_by_lanes",
    "select_by_lanes",
    "gather_wide",
    "scatter_wide",
    "store_packed",
    "select_by_mask",
];

/// Whether the list of instructions does the same, for the plants that it applies to.
#[must_use]
pub fn instruction_plants(extent: Extent) -> Vec<PlantedRow> {
    let runs =
        PLANTS.iter().filter(|plant| BY_INSTRUCTION.contains(&plant.function) && plants::runs(plant.tier));
    let judge = |plant: &'static Plant| {
        let sound = plant.gives == Gives::Nothing;
        let (right, said) = match execute(&Alone(plant), 4, extent) {
            Ok((executed, mut symbols)) => {
                let refused = executed
                    .unlisted
                    .iter()
                    .filter(|(_, (_, same))| !same)
                    .map(|(address, (text, _))| (text, symbols.place(*address)))
                    .find(|(_, place)| place.is_in(plant.function));
                let said = refused
                    .as_ref()
                    .map_or("nothing refused".into(), |(text, place)| format!("`{text}` refused in {place}"));
                (refused.is_some() != sound, said)
            }
            Err(Failure::Unavailable(_)) => return None,
            Err(failure) => (false, failure.to_string()),
        };
        Some(PlantedRow {
            tier: plant.tier,
            plant: plant.function,
            means: Means::Instructions,
            sound,
            right,
            said,
        })
    };
    runs.filter_map(judge).collect()
}
