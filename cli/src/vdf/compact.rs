//! `compact`: results of many chains proved, several chains at once.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use lanework_study::{Failure, Outcome};
use lanework_suite::Job;
use lanework_suite::vdf::{BITS, Operation};
use lanework_vdf::prover::CheckpointFile;
use lanework_vdf::serial::check_without_group;
use lanework_vdf::{Claim, Claims, Limits, Options, Progress, ProverError};

use super::args::CompactArgs;
use super::group::{Group, Named, no_group, read_form};
use super::interrupt::{Interrupt, shell_status};
use super::meter::{Meter, counted};
use super::proof_file::ProofFile;
use super::{group, hex, members, prove, verify};
use crate::files::{self, Access, Sink, check_distinct};
use crate::ui::Session;

/// Bytes of the longest list: some 40,000 jobs.
const JOBS_LIMIT: u64 = 64 << 20;

pub(super) fn run(session: &Session, args: &CompactArgs) -> Result<Outcome, Failure> {
    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    check_distinct([args.jobs.as_path()], [path])?;
    if let Some(folder) = args.checkpoint.as_deref().filter(|folder| !folder.is_dir()) {
        return Err(Failure::file(folder, "not a folder").help("make it, or name another one"));
    }
    let sink = Sink::create(path, Access::Public, args.force)?;
    let job = Job::Vdf(Operation::Prove, BITS);
    let engine = session.engine(job)?;
    let threads = session.threads(args.threads, job).count();
    let chains = chains(args, &mut |named| named.find(engine))?;
    // Every thread takes the longest chain that is left; with fewer chains than threads, several work at one.
    let at_once = threads.min(chains.len());
    let options = Options::new(engine)
        .memory(((args.memory << 20) as usize) / at_once)
        .interval(Duration::from_secs_f64(args.every));
    let interrupt = Interrupt::listen()?;
    let work = Work {
        chains: &chains,
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        interrupt: &interrupt,
        told: Mutex::new(Told {
            sink,
            bar: session.progress_counted(chains.iter().map(Chain::squarings).sum(), "squaring"),
            begin: Instant::now(),
            meter: Meter::default(),
            proved: 0,
            refused: 0,
            broken: None,
            files: Vec::new(),
        }),
        done: AtomicU64::new(0),
        backend: engine.name(),
    };
    let failure = std::thread::scope(|scope| {
        let share = |n: usize| threads / at_once + usize::from(n < threads % at_once);
        let others: Vec<_> = (1..at_once)
            .map(|n| {
                (
                    n,
                    std::thread::Builder::new().spawn_scoped(scope, {
                        let (work, options) = (&work, options.threads(share(n)));
                        move || work.all(&options)
                    }),
                )
            })
            .collect();
        let mut failure = work.all(&options.threads(share(0))).err();
        for (n, other) in others {
            let ended = match other {
                Ok(handle) => handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                // The others do the work of a thread that could not be started.
                Err(_) => work.all(&options.threads(share(n))),
            };
            // An interruption elsewhere follows from the first failure.
            failure = match (failure, ended.err()) {
                (Some((e, place)), Some(other)) if matches!(e, ProverError::Cancelled { .. }) => {
                    Some(if matches!(other.0, ProverError::Cancelled { .. }) { (e, place) } else { other })
                }
                (first, other) => first.or(other),
            };
        }
        failure
    });
    let told = work.told.into_inner().unwrap_or_else(PoisonError::into_inner);
    told.bar.finish_and_clear();
    let (proved, refused, seconds) = (told.proved, told.refused, told.begin.elapsed().as_secs_f64());
    let Told { sink, broken, files, .. } = told;
    if let Some(e) = broken {
        return Err(sink.failed(&e));
    }
    if let Some((e, place)) = failure {
        return Err(failed(&e, place.as_deref(), interrupt.signal(), args));
    }
    sink.commit(true)?;
    for path in files {
        std::fs::remove_file(&path).map_err(|e| Failure::file(&path, e))?;
    }
    if path != Path::new("-") {
        let squarings = chains.iter().map(Chain::squarings).sum();
        session.say(format!(
            "{} proved and verified, {refused} refused, on {} of {} altogether in {seconds:.1} s with {}",
            crate::ui::counted(proved, "result", "results"),
            crate::ui::counted(chains.len() as u64, "chain", "chains"),
            counted(squarings, "squarings"),
            engine.name(),
        ));
    }
    Ok(Outcome::from_bool(refused == 0))
}

/// A chain, and where its claims come from.
struct Chain {
    group: Group,
    claims: Claims,
    /// For each claim its line, and what it is called.
    lines: Vec<(usize, Option<serde_json::Value>)>,
    checkpoint: Option<PathBuf>,
}

impl Chain {
    fn squarings(&self) -> u64 {
        self.claims.claims.iter().map(|claim| claim.iterations).max().unwrap_or(0)
    }
}

/// Reads the list: its chains, the longest first. All of it is checked before anything is squared.
fn chains(
    args: &CompactArgs,
    find: &mut dyn FnMut(&Named) -> Result<Group, Failure>,
) -> Result<Vec<Chain>, Failure> {
    let text = files::read_small(&args.jobs, JOBS_LIMIT)?;
    let name = match args.jobs.as_path() {
        path if path == Path::new("-") => "standard input".to_owned(),
        path => lanework_study::text::shown(path),
    };
    let mut out: Vec<Chain> = Vec::new();
    let mut places: BTreeMap<(Vec<u8>, Vec<u8>), usize> = BTreeMap::new();
    for (n, line) in text.split(|&byte| byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let place = format!("{name}: line {}", n + 1);
        let help = "write an object on each line, as `lanework vdf evaluate` prints it";
        let said = ProofFile::parse(line, place, "a job", help)?;
        let (group, x, claim) = job(args, &said, find)?;
        let d = &group.discriminant;
        let (d, number) = (d.clone(), lanework_vdf::number::to_hexadecimal(&d.value()));
        let key = (number.into_bytes(), x.to_bytes(&d));
        let at = *places.entry(key).or_insert_with(|| {
            let claims = Claims { discriminant: d, x, claims: Vec::new() };
            out.push(Chain { group, claims, lines: Vec::new(), checkpoint: None });
            out.len() - 1
        });
        out[at].claims.claims.push(claim);
        out[at].lines.push((n + 1, said.id));
    }
    if out.is_empty() {
        return Err(Failure::input(format!("{name}: no jobs")).help("write one on each line"));
    }
    out.sort_by_key(|chain| std::cmp::Reverse(chain.squarings()));
    if let Some(folder) = &args.checkpoint {
        for chain in &mut out {
            chain.checkpoint = Some(folder.join(format!("{}.lanecmp", hex(&chain.claims.digest()[..16]))));
        }
    }
    Ok(out)
}

/// One line: the group, where the chain starts, and the result.
fn job(
    args: &CompactArgs,
    said: &ProofFile,
    find: &mut dyn FnMut(&Named) -> Result<Group, Failure>,
) -> Result<(Group, lanework_vdf::Form, Claim), Failure> {
    let bits = (said.bits.unwrap_or(group::BITS), said.place("bits"));
    let named = verify::by_file(said, Some(&bits))?.ok_or_else(|| no_group_at(said))?;
    let missing = |member: &str| {
        Failure::input(format!("{}: missing", said.place(member)))
            .help("each line says iterations and y, and its group")
    };
    let iterations = said.iterations.ok_or_else(|| missing("iterations"))?;
    let most = Limits::default().iterations;
    if !(1..=most).contains(&iterations) {
        let place = said.place("iterations");
        return Err(
            Failure::input(format!("{place}: {iterations} squarings")).help(format!("ask for 1 to {most}"))
        );
    }
    if said.bits.is_some() && said.bits != Some(named.bits()) {
        let (place, has) = (said.place("bits"), named.bits());
        return Err(Failure::input(format!("{place}: the discriminant has {has}")));
    }
    let y = said.y.as_ref().ok_or_else(|| missing("y"))?;
    let input = match &said.input {
        Some(input) => input.clone(),
        None => named.generator()?,
    };
    for (member, bytes) in [("y", y), ("input", &input)] {
        check_without_group(named.bits(), bytes)
            .map_err(|e| Failure::input(format!("{}: {e}", said.place(member))))?;
    }
    let group = find(&named)?;
    let d = &group.discriminant;
    if said.discriminant.as_ref().is_some_and(|number| *number.0 != d.value()) {
        return Err(Failure::input(format!("{}: not the one of the challenge", said.place("discriminant"))));
    }
    if !args.trust.trust_discriminant
        && let Some(why) = named.distrust(&group)
    {
        return Err(Failure::refused(why));
    }
    let form = |member: &str, bytes: &[u8]| {
        read_form(args.mode, d, bytes).map_err(|e| Failure::input(format!("{}: {e}", said.place(member))))
    };
    let (x, y) = (form("input", &input)?, form("y", y)?);
    Ok((group, x, Claim { iterations, y }))
}

fn no_group_at(said: &ProofFile) -> Failure {
    let place = said.place("challenge");
    no_group().help(format!("{place} or discriminant is missing"))
}

/// What the threads share.
struct Work<'a, 'b> {
    chains: &'a [Chain],
    next: AtomicUsize,
    stop: AtomicBool,
    interrupt: &'a Interrupt,
    told: Mutex<Told<'b>>,
    /// Squarings of all chains.
    done: AtomicU64,
    backend: &'static str,
}

/// What is told to people and programs.
struct Told<'b> {
    sink: Sink<'b>,
    bar: ProgressBar,
    begin: Instant,
    meter: Meter,
    proved: u64,
    refused: u64,
    /// Why a proof could not be written.
    broken: Option<std::io::Error>,
    /// Checkpoints of chains that are done.
    files: Vec<PathBuf>,
}

impl Work<'_, '_> {
    /// Takes chains until none is left. A failure stops all threads.
    fn all(&self, options: &Options<'_>) -> Result<(), (ProverError, Option<PathBuf>)> {
        while let Some(chain) = self.chains.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            self.chain(chain, options).map_err(|e| {
                self.stop.store(true, Ordering::Relaxed);
                (e, chain.checkpoint.clone())
            })?;
        }
        Ok(())
    }

    fn chain(&self, chain: &Chain, options: &Options<'_>) -> Result<(), ProverError> {
        let options = match &chain.checkpoint {
            Some(path) => options.checkpoint(path),
            None => *options,
        };
        let mut before = 0;
        let mut observer = |progress: Progress| {
            if progress.phase == lanework_vdf::prover::Phase::Squaring {
                self.done.fetch_add(progress.done - before, Ordering::Relaxed);
                before = progress.done;
            }
            if let Ok(mut told) = self.told.try_lock() {
                told.see(self.done.load(Ordering::Relaxed), progress.checkpoint, chain);
            }
            !self.stop.load(Ordering::Relaxed) && self.interrupt.signal().is_none()
        };
        let mut outcome = |n: usize, outcome: lanework_vdf::Outcome| {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.outcome(chain, n, outcome, self.backend);
            if told.broken.is_some() {
                self.stop.store(true, Ordering::Relaxed);
            }
        };
        let done = lanework_vdf::compact(&chain.claims, &options, &mut observer, &mut outcome)?;
        if let Some(path) = chain.checkpoint.as_deref().filter(|_| done.checkpoint != CheckpointFile::Lost) {
            self.told.lock().unwrap_or_else(PoisonError::into_inner).files.push(path.to_owned());
        }
        Ok(())
    }
}

impl Told<'_> {
    fn see(&mut self, done: u64, checkpoint: CheckpointFile, chain: &Chain) {
        self.meter.read(self.begin.elapsed(), done);
        let left = self.bar.length().unwrap_or(0).saturating_sub(done);
        self.bar.set_position(done);
        let mut words = self.meter.words(left, "squarings");
        if let (CheckpointFile::Lost, Some(path)) = (checkpoint, &chain.checkpoint) {
            words = format!("{} was replaced, and nothing is kept", lanework_study::text::shown(path));
        }
        self.bar.set_message(words);
    }

    fn outcome(&mut self, chain: &Chain, n: usize, outcome: lanework_vdf::Outcome, backend: &str) {
        let Claims { discriminant: d, x, claims } = &chain.claims;
        let (line, id) = &chain.lines[n];
        let mut object = members(serde_json::json!({ "line": line }));
        if let Some(id) = id {
            object.insert("id".to_owned(), id.clone());
        }
        object.extend(chain.group.json());
        object.extend(members(serde_json::json!({
            "input": hex(&x.to_bytes(d)), "iterations": claims[n].iterations, "y": hex(&claims[n].y.to_bytes(d)),
        })));
        match outcome {
            lanework_vdf::Outcome::Proved(proved) => {
                let (proof, b) = *proved;
                self.proved += 1;
                object.extend(members(serde_json::json!({
                    "witness": 0, "proof": hex(&proof.to_bytes(d)), "b": hex(&b.to_bytes()),
                    "compact": hex(&proof.compact().to_bytes(d)), "backend": backend,
                })));
            }
            lanework_vdf::Outcome::Wrong => {
                self.refused += 1;
                object.insert("refused".to_owned(), "the chain has another result".into());
            }
        }
        let text = format!("{}\n", serde_json::Value::Object(object));
        let written = self.bar.suspend(|| self.sink.write_all(text.as_bytes()));
        self.broken = self.broken.take().or(written.err());
    }
}

/// What went wrong, and what to do.
fn failed(e: &ProverError, place: Option<&Path>, signal: Option<i32>, args: &CompactArgs) -> Failure {
    match (e, signal) {
        (ProverError::Cancelled { .. }, Some(signal)) => {
            let (kept, help) = match &args.checkpoint {
                Some(folder) => (
                    format!("{} keeps what was done", lanework_study::text::shown(folder)),
                    "run the same command again to go on from there",
                ),
                None => ("what was not proved is lost".to_owned(), "--checkpoint FOLDER keeps it"),
            };
            Failure::interrupted(shell_status(signal), format!("interrupted: {kept}")).help(help)
        }
        (ProverError::Thread(_), _) => Failure::unavailable(e),
        (ProverError::Checkpoint(why), _) => match place {
            Some(path) => Failure::file(path, prove::checkpoint(why)),
            None => Failure::input(e),
        },
        // The machine miscalculated.
        (ProverError::Wrong { .. } | ProverError::Chain(_), _) => Failure::refused(e),
        _ => Failure::input(e),
    }
}
