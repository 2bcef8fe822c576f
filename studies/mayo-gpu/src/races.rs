//! Running the study: checks on the device, races, memory, joules, the CPU's own profile.
#![forbid(unsafe_code)]

use crate::subjects::{ALL, ONE, path};
use lanework_cpu::{Select, Threads};
use lanework_cuda::Card;
use lanework_mayo::{Engine, Params, Round};
use lanework_race::gate::GateRow;
use lanework_race::record::Record;
use lanework_study::races::Effort;
use lanework_study::races::{Race, race_all};
use lanework_study::{Failure, Session};
use lanework_suite::device::DeviceChoice;
use lanework_suite::mayo::Operation;
use lanework_suite::mayo::phases::{self, Profile};

use super::device::{self, Joules, Memory};
use super::figures::{Best, Figures, WHOLE};
use super::question::{Plan, Sweep};
use super::sanitizer;
use super::threads::Baseline;

/// All that was found.
pub(super) struct Measured {
    pub(super) record: Record,
    pub(super) sweep: Sweep,
    pub(super) params: Vec<&'static Params>,
    pub(super) operations: Vec<Operation>,
    pub(super) cards: Vec<Card>,
    /// Why there is no device.
    pub(super) missing: Option<String>,
    pub(super) emulated: bool,
    pub(super) device: &'static str,
    pub(super) checks: Vec<GateRow>,
    pub(super) memory: Vec<Memory>,
    /// A thread for a whole operation, set by set; empty without a device.
    pub(super) threads: Vec<Baseline>,
    /// Joules by the counter, or why there are none.
    pub(super) joules: Result<Vec<Joules>, String>,
    /// The CPU's profile; empty where it is not asked for.
    pub(super) phases: Vec<Profile>,
    pub(super) backend: &'static str,
    pub(super) cores: usize,
}

impl Measured {
    pub(super) fn figures(&self) -> Figures<'_> {
        Figures { record: &self.record, device: self.device, batches: &self.sweep.batches }
    }

    /// What computes for a device that is no GPU.
    pub(super) fn hosted(&self) -> &'static str {
        if self.device == "ptx" { "PTX executed on this CPU" } else { "emulated" }
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.cards.iter().map(ToString::to_string).collect()
    }
}

/// The same session on this device, its child processes too.
fn on(session: &Session, device: DeviceChoice) -> Session {
    let mut inherited = session.inherited.clone();
    inherited.retain(|option| option[0] != "--device");
    inherited.push(vec!["--device".to_owned(), device.to_string()]);
    let mut context = session.context.clone();
    context.device = device;
    Session { context, inherited, ..session.clone() }
}

/// The races of an operation: every core and every batch size against one core.
fn race(
    sweep: &Sweep,
    name: &str,
    device: bool,
    cores: usize,
    params: &Params,
    operation: Operation,
) -> Race {
    let mut challengers = Vec::new();
    if cores > 1 {
        challengers.push(ALL.to_owned());
    }
    if device {
        challengers.extend(sweep.batches.iter().map(|batch| format!("{name}+batch={batch}")));
        if WHOLE.contains(&operation) {
            let forms = ["whole", "beside", "fused"];
            challengers.extend(forms.map(|form| format!("{name}+batch={}+{form}", sweep.largest())));
        }
        if matches!(operation, Operation::Sign | Operation::SignExpanded) {
            challengers.push(format!("{name}+batch={}+unverified", sweep.largest()));
        }
        if operation == Operation::VerifyExpanded {
            challengers.push(format!("{name}+batch={}+bits", sweep.largest()));
        }
    }
    Race { subject: path(params, operation), baseline: ONE.to_owned(), challengers }
}

/// Runs everything. A device that computes wrongly ends it before anything is timed.
pub(super) fn measure(session: &Session, name: &str, plan: &Plan, full: bool) -> Result<Measured, Failure> {
    let asked = session.context.device.is_asked();
    let choice = match &session.context.device {
        DeviceChoice::Unasked => DeviceChoice::Cuda(Vec::new()),
        asked => asked.clone(),
    };
    let emulated = choice.is_hosted();
    let engine = match session.context.settings.select("mayo") {
        Select::Best => Engine::choose(&session.context.cpu, Select::Best),
        forced => Engine::choose(&session.context.cpu, forced),
    }
    .map_err(Failure::unavailable)?;
    let session = on(session, choice);
    let opened = lanework_suite::mayo::cuda::fleet(&session.context, engine);
    let (missing, session) = match &opened {
        Ok(_) => (None, session),
        // A missing device is an error if it was named; else only the CPU's rows are left.
        Err(u) if asked => return Err(Failure::unavailable(&u.why)),
        Err(u) => (Some(u.why.clone()), on(&session, DeviceChoice::None)),
    };
    let sweep = match (emulated, full) {
        (true, _) => &plan.emulated,
        (_, true) => &plan.full,
        _ => &plan.quick,
    };
    let params = sweep.params().map_err(Failure::input)?;
    let operations = sweep.operations().map_err(Failure::input)?;
    let fleet = opened.ok();
    let cards: Vec<Card> =
        fleet.iter().flat_map(|f| f.gpus()).map(|gpu| gpu.device().card().clone()).collect();
    let memory = params.iter().map(|p| device::memory(fleet.as_ref(), p)).collect();
    // Races run in processes of their own, which need the device's memory free.
    drop(fleet);

    let device = session.context.device.name();
    let mut checks = Vec::new();
    if missing.is_none() {
        let round2 = Params::all().filter(|p| p.round() == Round::Two && !emulated);
        let sets: Vec<&'static Params> = params.iter().copied().chain(round2).collect();
        checks = device::check(&session.context, &sets, engine, !emulated);
        checks.extend(sanitizer::check(&session, &sweep.sanitized().map_err(Failure::input)?, emulated)?);
        if let Some(row) = checks.iter().find(|row| row.failed > 0) {
            return Err(Failure::refused(format!("{} on {}: {}", row.what, row.backend, row.why)));
        }
    }
    let threads = match missing {
        Some(_) => Vec::new(),
        None => params
            .iter()
            .map(|p| {
                Baseline::measure(
                    &session.context,
                    p,
                    &sweep.shapes(plan.original.shape()),
                    sweep.thread_turns,
                )
            })
            .collect(),
    };
    let cores = Threads::Own(0).count();
    let races: Vec<Race> = params
        .iter()
        .flat_map(|p| operations.iter().map(move |&o| (p, o)))
        .map(|(p, o)| race(sweep, device, missing.is_none(), cores, p, o))
        .filter(|race| !race.challengers.is_empty())
        .collect();
    let effort = Effort { seconds: sweep.seconds, launches: sweep.launches, core: None };
    let record = race_all(&session, name, &races, &effort)?;
    let mut measured = Measured {
        record,
        sweep: sweep.clone(),
        params,
        operations,
        cards,
        missing,
        emulated,
        device,
        checks,
        memory,
        threads,
        joules: Ok(Vec::new()),
        phases: Vec::new(),
        backend: engine.name(),
        cores,
    };
    measured.joules = joules(&session, &measured);
    if !emulated {
        let sets: Vec<&Params> = Params::all().filter(|p| p.round() == Round::Three).collect();
        measured.phases =
            phases::profile(&session.context.cpu, &sets, &[engine.name()]).map_err(Failure::refused)?;
    }
    Ok(measured)
}

/// The three operations of every set, each at its best batch. The first that cannot be counted ends the count for all.
fn joules(session: &Session, measured: &Measured) -> Result<Vec<Joules>, String> {
    if let Some(why) = &measured.missing {
        return Err(why.clone());
    }
    let figures = measured.figures();
    let mut all = Vec::new();
    for params in &measured.params {
        for operation in WHOLE {
            let Some(Best { batch, .. }) = figures.best(params, operation) else { continue };
            let seconds = measured.sweep.joules_seconds;
            all.push(device::joules(&session.context, params, operation, batch, seconds)?);
        }
    }
    Ok(all)
}
