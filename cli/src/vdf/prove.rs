//! `evaluate` and `prove`.
#![forbid(unsafe_code)]

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use lanework_study::{Failure, Message, Outcome};
use lanework_suite::Job;
use lanework_suite::vdf::{BITS, Operation};
use lanework_vdf::prover::{CheckpointError, CheckpointFile, Phase, Seconds, chia_segments};
use lanework_vdf::{Challenge, Discriminant, Limits, Options, Progress, Proof, ProverError, Task};
use rustix::fs::Access;

use super::args::{ChainArgs, EvaluateArgs, ProveArgs};
use super::group::{Group, Named, start};
use super::interrupt::{Interrupt, shell_status};
use super::meter::{Meter, counted};
use super::{Output, hex, members};
use crate::ui::Session;

/// The squarings of the shortest of Chia's segments, for messages.
const SHORTEST: u64 = 1 << 16;

pub(super) fn evaluate(session: &Session, args: &EvaluateArgs) -> Result<Outcome, Failure> {
    let output = Output::new(session, &args.output, args.chain.checkpoint.as_deref())?;
    let work = Work::new(session, &args.chain, 0, Operation::Square, Some(1))?;
    let done = work.watched(|options, observer| lanework_vdf::evaluate(&work.task, options, observer))?;
    let d = &work.task.discriminant;
    let y = done.y.to_bytes(d);
    let mut object = work.json();
    object.extend(members(serde_json::json!({ "y": hex(&y) })));
    if args.coefficients {
        let coefficients = [("a", done.y.a()), ("b", done.y.b()), ("c", done.y.c())];
        for (name, number) in coefficients {
            object.insert(name.to_owned(), lanework_vdf::number::to_hexadecimal(&number).into());
        }
    }
    let figures = Figures { slow: done.slow, resumed: done.resumed, seconds: done.seconds };
    object.extend(figures.json(&work));
    let for_people = output.is_elsewhere();
    output.write(object, &hex(&y), &y)?;
    if for_people {
        session.say(figures.words("squared", &work));
    }
    Ok(Outcome::Yes)
}

pub(super) fn prove(session: &Session, args: &ProveArgs) -> Result<Outcome, Failure> {
    let output = Output::new(session, &args.output, args.chain.checkpoint.as_deref())?;
    let work = Work::new(session, &args.chain, args.witness, Operation::Prove, args.threads)?;
    let done = work.watched(|options, observer| lanework_vdf::prove(&work.task, options, observer))?;
    let d = &work.task.discriminant;
    let proof = done.proof.to_bytes(d);
    let mut object = work.json();
    object.extend(proof_json(d, &done.proof, &done.b));
    let figures = Figures { slow: done.slow, resumed: done.resumed, seconds: done.seconds };
    object.extend(figures.json(&work));
    object.insert("threads".to_owned(), work.options.threads.into());
    let for_people = output.is_elsewhere();
    output.write(object, &hex(&proof), &proof)?;
    if for_people {
        session.say(figures.words("proved and verified", &work));
    }
    Ok(Outcome::Yes)
}

/// The members that describe a proof.
pub(super) fn proof_json(
    d: &Discriminant,
    proof: &Proof,
    b: &Challenge,
) -> serde_json::Map<String, serde_json::Value> {
    members(serde_json::json!({
        "witness": proof.depth(), "proof": hex(&proof.to_bytes(d)), "y": hex(&proof.y.to_bytes(d)),
        "b": hex(&b.to_bytes()), "compact": hex(&proof.compact().to_bytes(d)),
    }))
}

/// Refuses a number of squarings that is out of range; `place` names it.
pub(super) fn check_iterations(place: &str, iterations: u64) -> Result<(), Failure> {
    let most = Limits::default().iterations;
    if (1..=most).contains(&iterations) {
        return Ok(());
    }
    Err(Failure::input(format!("{place}: {iterations} squarings")).help(format!("ask for 1 to {most}")))
}

/// The lengths of the segments before the last.
fn segments(iterations: u64, witness: u64) -> Result<Vec<u64>, Failure> {
    let lengths = chia_segments(iterations, witness as usize);
    if (lengths.len() as u64) < witness {
        return Err(Failure::input(format!(
            "--witness: {witness} segments, {} have at most {} of {SHORTEST} or more before the last",
            counted(iterations, "squarings"),
            lengths.len()
        ))
        .help(format!("ask for {} or fewer", lengths.len())));
    }
    Ok(lengths)
}

/// The group, and what is to be computed in it. What can be refused without the group is
/// refused before the search for it.
pub(super) fn begin(
    args: &ChainArgs,
    witness: u64,
    find: impl FnOnce(&Named) -> Result<Group, Failure>,
) -> Result<(Group, Task), Failure> {
    check_iterations("--iterations", args.iterations)?;
    if let Some(path) = &args.checkpoint {
        may_keep(path)?;
    }
    let segments = segments(args.iterations, witness)?;
    let (group, x) = start(args, find)?;
    let task = Task { segments, ..Task::new(group.discriminant.clone(), x, args.iterations) };
    Ok((group, task))
}

/// Refuses a path that cannot be a checkpoint, as far as that shows without reading or making it.
fn may_keep(path: &Path) -> Result<(), Failure> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(Failure::file(path, "not a file").help("name another one")),
        Ok(_) => {
            OpenOptions::new().read(true).write(true).open(path).map(drop).map_err(|e| Failure::file(path, e))
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(|e| {
                Failure::file(
                    path,
                    format!("{}: {}", lanework_study::text::shown(folder), io::Error::from(e)),
                )
            })
        }
        Err(e) => Err(Failure::file(path, e)),
    }
}

/// What is wrong with a checkpoint, and what to do about it.
fn checkpoint(why: &CheckpointError) -> Message {
    let message = Message::new(why);
    match why {
        CheckpointError::Foreign(_) => {
            message.help("repeat the command that made it, or name another file with --checkpoint")
        }
        CheckpointError::Damaged { .. } | CheckpointError::Form { .. } => {
            message.help("begin again with another file: nothing in this one can be trusted")
        }
        CheckpointError::NotACheckpoint => message.help("name another one: this file is left as it is"),
        _ => message,
    }
}

/// Why there is no result, if no signal caused that.
pub(super) fn failure(e: &ProverError, place: Option<&Path>) -> Failure {
    match (e, place) {
        (ProverError::Thread(_), _) => Failure::unavailable(e),
        (ProverError::Checkpoint(why), Some(path)) => Failure::file(path, checkpoint(why)),
        // The machine miscalculated: there is no result.
        (ProverError::Wrong { .. } | ProverError::Chain(_), _) => Failure::refused(e),
        _ => Failure::input(e),
    }
}

/// The warning where another program has removed a checkpoint or replaced it.
pub(super) fn warning(checkpoint: CheckpointFile, path: &Path) -> Message {
    let message = match checkpoint {
        CheckpointFile::Kept => Message::new("is back"),
        CheckpointFile::Anew(_) => Message::new("was removed while it was in use, and has been rewritten"),
        CheckpointFile::Lost => {
            let Lost { how, undo } = Lost::of(path);
            Message::new(format!("{how}: the work continues, but nothing of it is saved"))
                .help(format!("{undo}, and the next update saves all of it"))
        }
    };
    message.at(lanework_study::text::shown(path))
}

/// How a checkpoint was lost, and what brings it back.
pub(super) struct Lost {
    pub(super) how: &'static str,
    pub(super) undo: &'static str,
}

impl Lost {
    pub(super) fn of(path: &Path) -> Lost {
        if fs::symlink_metadata(path).is_ok() {
            Lost { how: "was replaced by another file", undo: "move that file away" }
        } else {
            Lost { how: "was removed and cannot be created again", undo: "restore its directory" }
        }
    }
}

/// What both commands share.
struct Work<'a> {
    session: &'a Session,
    args: &'a ChainArgs,
    group: Group,
    task: Task,
    options: Options<'a>,
}

impl<'a> Work<'a> {
    fn new(
        session: &'a Session,
        args: &'a ChainArgs,
        witness: u64,
        operation: Operation,
        threads: Option<usize>,
    ) -> Result<Work<'a>, Failure> {
        let job = Job::Vdf(operation, BITS);
        let engine = session.engine(job)?;
        let threads = session.threads(threads, job).count();
        let (group, task) = begin(args, witness, |named| named.find(engine))?;
        let mut options = Options::new(engine).threads(threads).interval(Duration::from_secs_f64(args.every));
        if let Some(path) = &args.checkpoint {
            options = options.checkpoint(path);
        }
        Ok(Work { session, args, group, task, options })
    }

    /// Runs the work with progress on the terminal, until it ends or a signal comes.
    fn watched<T>(
        &self,
        work: impl FnOnce(&Options<'_>, &mut dyn FnMut(Progress) -> bool) -> Result<T, ProverError>,
    ) -> Result<T, Failure> {
        let interrupt = Interrupt::listen()?;
        let mut watch = Watch::new(self.session, self.args);
        let result = work(&self.options, &mut |progress| {
            watch.see(progress);
            interrupt.signal().is_none()
        });
        // The last record's fate is known only now.
        if let Err(ProverError::Cancelled { checkpoint, .. }) = &result {
            watch.see_checkpoint(*checkpoint);
        }
        watch.bar.finish_and_clear();
        result.map_err(|e| self.failure(&e, interrupt.signal()))
    }

    fn failure(&self, e: &ProverError, signal: Option<i32>) -> Failure {
        match (e, signal) {
            (ProverError::Cancelled { after, checkpoint }, Some(signal)) => {
                let shown = lanework_study::text::shown;
                let (kept, help) = match &self.args.checkpoint {
                    Some(path) if *checkpoint == CheckpointFile::Lost => (
                        format!("they are lost: {} {}", shown(path), Lost::of(path).how),
                        "name another file to begin anew",
                    ),
                    Some(path) if !path.exists() => (
                        format!("they are lost: {} was removed", shown(path)),
                        "run the same command again to begin anew",
                    ),
                    Some(path) => (
                        format!("{} keeps them", shown(path)),
                        "run the same command again to continue from there",
                    ),
                    None => ("they are lost".to_owned(), "--checkpoint FILE keeps them"),
                };
                let done = counted(*after, "squarings");
                let what = format!("interrupted after {done}: {kept}");
                Failure::interrupted(shell_status(signal), what).help(help)
            }
            _ => failure(e, self.args.checkpoint.as_deref()),
        }
    }

    /// What was asked for.
    fn json(&self) -> serde_json::Map<String, serde_json::Value> {
        let Task { discriminant, x, iterations, .. } = &self.task;
        let mut object = self.group.json();
        object.insert("input".to_owned(), hex(&x.to_bytes(discriminant)).into());
        object.insert("iterations".to_owned(), (*iterations).into());
        object
    }
}

/// The figures of a run.
struct Figures {
    slow: u64,
    resumed: u64,
    seconds: Seconds,
}

impl Figures {
    /// Squarings of this run for each second of its squaring phase.
    fn speed(&self, work: &Work<'_>) -> f64 {
        let squared = work.args.iterations.saturating_sub(self.resumed);
        if self.seconds.squaring > 0.0 { squared as f64 / self.seconds.squaring } else { 0.0 }
    }

    fn json(&self, work: &Work<'_>) -> serde_json::Map<String, serde_json::Value> {
        let round = |x: f64| (x * 1000.0).round() / 1000.0;
        let Seconds { squaring, proving, verifying } = self.seconds;
        members(serde_json::json!({
            "n_slow": self.slow, "resumed": self.resumed, "backend": work.options.engine.name(),
            "squarings_per_second": self.speed(work).round(),
            "seconds": {
                "squaring": round(squaring), "proving": round(proving), "verifying": round(verifying),
            },
        }))
    }

    fn words(&self, what: &str, work: &Work<'_>) -> String {
        let Seconds { squaring, proving, verifying } = self.seconds;
        format!(
            "{} {what} in {:.1} s ({}/s while squaring with {}; n_slow {})",
            counted(work.args.iterations, "squarings"),
            squaring + proving + verifying,
            counted(self.speed(work).round() as u64, "squarings"),
            work.options.engine.name(),
            self.slow,
        )
    }
}

/// The progress bar.
struct Watch<'a> {
    path: &'a Path,
    checkpoint: CheckpointFile,
    bar: ProgressBar,
    begin: Instant,
    drawn: Option<Duration>,
    phase: Phase,
    meter: Meter,
}

/// Between two updates of the bar.
const DRAW: Duration = Duration::from_millis(100);

impl<'a> Watch<'a> {
    fn new(session: &Session, args: &'a ChainArgs) -> Watch<'a> {
        Watch {
            path: args.checkpoint.as_deref().unwrap_or(Path::new("")),
            checkpoint: CheckpointFile::Kept,
            bar: session.progress_counted(args.iterations, "squaring"),
            begin: Instant::now(),
            drawn: None,
            phase: Phase::Squaring,
            meter: Meter::default(),
        }
    }

    /// Warns if the checkpoint's state has changed.
    fn see_checkpoint(&mut self, checkpoint: CheckpointFile) {
        if checkpoint == self.checkpoint {
            return;
        }
        self.checkpoint = checkpoint;
        self.bar.suspend(|| warning(checkpoint, self.path).print("warning"));
    }

    fn see(&mut self, progress: Progress) {
        self.see_checkpoint(progress.checkpoint);
        let now = self.begin.elapsed();
        if progress.phase != self.phase {
            self.phase = progress.phase;
            self.meter = Meter::default();
            self.bar.set_prefix(progress.phase.to_string());
        } else if self.drawn.is_some_and(|drawn| now.saturating_sub(drawn) < DRAW) {
            return;
        }
        self.drawn = Some(now);
        self.meter.read(now, progress.done);
        let unit = match progress.phase {
            Phase::Squaring => "squarings",
            Phase::Proving => "products",
            Phase::Verifying => "segments",
        };
        self.bar.set_length(progress.total);
        self.bar.set_position(progress.done);
        self.bar.set_message(self.meter.words(progress.total.saturating_sub(progress.done), unit));
    }
}
