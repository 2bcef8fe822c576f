//! Variants of a function as subjects of the laboratory.
#![forbid(unsafe_code)]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::rc::Rc;

use lanework_race::clock::Monotonic;
use lanework_race::gate::{Gate, GateRow};
use lanework_race::launch::{self, LaunchError, Worker};
use lanework_race::pairing::Plan;
use lanework_race::race::Outcome as Raced;
use lanework_race::subject::{Facts, Runnable, Subject, Unavailable, Variant as Contestant};
use lanework_respill::case::Case;
use lanework_respill::measure::{Assembled, Job, Role, Variant};
use lanework_respill::timed::{MOST_SHIFT, Timed};
use lanework_study::Failure;

/// The races of a job. The first compares with the stack all variants whose time beside it is a question. The others compare
/// variants that differ in one thing alone: a levelled text with its placebo, and a text that clears its homes with one that does
/// not. They are raced against each other, since the quotient of two ratios is less certain than one ratio.
#[must_use]
pub fn comparisons(job: &Job) -> Vec<Job> {
    let find = |name: &str| job.variants.iter().find(|v| v.name == name);
    let pair = |own: &str, what: &str, one: &Variant, two: &Variant| Job {
        subject: format!("{}/{}/{what}", job.subject, own.replace('/', ",")),
        variants: vec![one.clone(), two.clone()],
        ..job.clone()
    };
    let of = |own: &Variant| {
        let level = find(&format!("{}+level", own.name)).unwrap_or(own);
        let placebo = find(&format!("{}+placebo", own.name));
        let unwiped = find(&format!("{}+unwiped", own.name));
        [
            placebo.map(|p| pair(&own.name, "home-alone", p, level)),
            unwiped.map(|u| pair(&own.name, "wiping", u, own)),
        ]
    };
    let mut main = job.clone();
    main.variants.retain(|v| !matches!(v.role, Role::Level | Role::Unwiped));
    let homes = job.variants.iter().filter(|v| v.role == Role::Home);
    core::iter::once(main).chain(homes.flat_map(of).flatten()).filter(|job| job.variants.len() > 1).collect()
}

/// Races the variants of a job over several processes, behind a gate where they must agree on `inputs` inputs.
///
/// # Errors
/// [`Failure::refused`] where they do not, [`Failure::unavailable`] where a process cannot be run.
pub fn race(job: &Job, inputs: u64, plan: &Plan, progress: impl FnMut(u32, u32)) -> Result<Raced, Failure> {
    race_beside(job, &[], inputs, plan, progress)
}

/// The same with other builds of the function among the variants, by their names: they may leave MMX in use.
///
/// # Errors
/// As [`race`].
pub fn race_beside(
    job: &Job,
    builds: &[&str],
    inputs: u64,
    plan: &Plan,
    progress: impl FnMut(u32, u32),
) -> Result<Raced, Failure> {
    let mut file = tempfile::NamedTempFile::new().map_err(Failure::unavailable)?;
    let text = serde_json::to_vec(&(job, builds)).map_err(Failure::input)?;
    file.write_all(&text).and_then(|()| file.flush()).map_err(|e| Failure::file(file.path(), e))?;
    let path = file.path().display().to_string();
    let worker = Worker::new(["respill".to_owned(), "__race".to_owned(), path, inputs.to_string()])
        .map_err(Failure::unavailable)?;
    let (mut outcome, _) = worker.race(plan, progress).map_err(|e| match e {
        LaunchError::Refused { .. } => Failure::refused(e),
        _ => Failure::unavailable(e),
    })?;
    // Homes differ by a few percent.
    outcome.void_where_the_control_fails();
    Ok(outcome)
}

/// The inner half of a race: reads the job from that file and serves it.
///
/// # Errors
/// [`Failure`]: a file that holds no job, or no random numbers.
pub fn serve(file: &Path, inputs: u64) -> Result<(), Failure> {
    let text = fs::read_to_string(file).map_err(|e| Failure::file(file, e))?;
    let (job, builds): (Job, Vec<String>) =
        serde_json::from_str(&text).map_err(|e| Failure::file(file, e))?;
    let case = Case::parse(&job.case).map_err(Failure::input)?;
    let shift = stack_shift().map_err(Failure::unavailable)?;
    // Before the race's clock begins.
    let subject = subject(&Rc::new(job.assembled()), builds, Rc::new(case), inputs, shift)?;
    launch::serve(&subject, &Monotonic::new(), &mut std::io::stdout()).map_err(Failure::input)
}

/// By how much this process moves the stack pointer down before it calls: 0 to 3072 bytes, the same for all variants.
fn stack_shift() -> Result<u64, getrandom::Error> {
    Ok(getrandom::u32().map(u64::from)? % (MOST_SHIFT / 64 + 1) * 64)
}

/// A call that is repeated.
struct Calls {
    name: String,
    timed: Timed,
    shift: u64,
}

impl Runnable for Calls {
    fn run(&mut self, iterations: u64) {
        self.timed.run(iterations);
    }

    fn facts(&self) -> Facts {
        let notes =
            if self.name == "copy" { vec![format!("stack moved by {} bytes", self.shift)] } else { vec![] };
        Facts { backend: self.name.clone(), notes }
    }
}

/// The subject of a job, its first variant the baseline.
fn subject(
    job: &Rc<Assembled>,
    builds: Vec<String>,
    case: Rc<Case>,
    inputs: u64,
    shift: u64,
) -> Result<Subject, Failure> {
    let gate = {
        let (job, case) = (Rc::clone(job), Rc::clone(&case));
        Gate::new(move || {
            let build = |name: &str| builds.iter().any(|build| build == name);
            let rows = job.agreement_but(&case, inputs, build).into_iter().map(|row| GateRow {
                what: format!("{}: same results as {}", job.job.subject, job.job.variants[0].name),
                backend: row.name,
                passed: row.same,
                failed: row.different,
                skipped: 0,
                why: row.why,
            });
            Ok(rows.collect())
        })
    };
    let contestant = |(n, variant): (usize, &Variant)| {
        let (job, case, name) = (Rc::clone(job), Rc::clone(&case), variant.name.clone());
        Contestant::new(name.clone(), move || {
            let timed = job.timed(n, &case, shift).map_err(Unavailable::because)?;
            Ok(Box::new(Calls { name: name.clone(), timed, shift }))
        })
    };
    let mut contestants = job.job.variants.iter().enumerate().map(contestant);
    let Some(first) = contestants.next() else {
        return Err(Failure::input("a race needs variants"));
    };
    Ok(contestants.fold(Subject::new(&*job.job.subject, gate, first), Subject::with))
}
