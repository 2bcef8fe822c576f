//! `compact`: proves results of many chains, several chains at once.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use lanework_study::{Failure, Outcome};
use lanework_suite::Job;
use lanework_suite::vdf::{BITS, Operation};
use lanework_vdf::prover::{CheckpointFile, Phase};
use lanework_vdf::serial::check_without_group;
use lanework_vdf::{Claim, Claims, Options, Progress, ProverError};

use super::args::CompactArgs;
use super::group::{Group, Named, no_group, read_form};
use super::interrupt::{Interrupt, shell_status};
use super::meter::{Meter, counted};
use super::proof_file::ProofFile;
use super::prove::Lost;
use super::{group, hex, members, prove, verify};
use crate::files::{self, Access, Sink, check_distinct};
use crate::ui::Session;

/// The longest list in bytes: some 40,000 jobs.
const JOBS_LIMIT: u64 = 64 << 20;

pub(super) fn run(session: &Session, args: &CompactArgs) -> Result<Outcome, Failure> {
    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    check_distinct([args.jobs.as_path()], [path])?;
    if let Some(folder) = args.checkpoint.as_deref().filter(|folder| !folder.is_dir()) {
        return Err(Failure::file(folder, "not a directory").help("create it, or name another one"));
    }
    let sink = Sink::create(path, Access::Public, args.force)?;
    let job = Job::Vdf(Operation::Prove, BITS);
    let engine = session.engine(job)?;
    let threads = session.threads(args.threads, job).count();
    let chains = chains(args, &mut |named| named.find(engine))?;
    // Every thread takes the longest chain that is left; with fewer chains than threads, several share one.
    let at_once = threads.min(chains.len());
    let options = Options::new(engine)
        .memory(((args.memory << 20) as usize) / at_once)
        .interval(Duration::from_secs_f64(args.every));
    let work = Work {
        chains: &chains,
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        interrupt: Interrupt::listen()?,
        backend: engine.name(),
        done: AtomicU64::new(0),
        output: Mutex::new(Output {
            sink,
            bar: session.progress_counted(chains.iter().map(Chain::squarings).sum(), "squaring"),
            begin: Instant::now(),
            meter: Meter::default(),
            proved: 0,
            refused: 0,
            failure: None,
            files: Vec::new(),
        }),
    };
    std::thread::scope(|scope| {
        let share = |n: usize| options.threads(threads / at_once + usize::from(n < threads % at_once));
        for n in 1..at_once {
            let (work, options) = (&work, share(n));
            // If a thread cannot be started, the others take its chains.
            let _ = Builder::new().spawn_scoped(scope, move || work.all(&options));
        }
        work.all(&share(0));
    });
    let signal = work.interrupt.signal();
    let output = work.output.into_inner().unwrap_or_else(PoisonError::into_inner);
    output.bar.finish_and_clear();
    let Output { sink, begin, proved, refused, failure, files, .. } = output;
    match failure {
        None => (),
        Some(Stop::Output(e)) => return Err(sink.failed(&e)),
        Some(Stop::Prover(e, chain)) => return Err(failed(&e, chain, signal, args)),
    }
    sink.commit(true)?;
    for path in files {
        std::fs::remove_file(path).map_err(|e| Failure::file(path, e))?;
    }
    if path != Path::new("-") {
        session.say(format!(
            "{} proved and verified, {refused} refused, on {} of {} altogether in {:.1} s with {}",
            crate::ui::counted(proved, "result", "results"),
            crate::ui::counted(chains.len() as u64, "chain", "chains"),
            counted(chains.iter().map(Chain::squarings).sum(), "squarings"),
            begin.elapsed().as_secs_f64(),
            engine.name(),
        ));
    }
    Ok(Outcome::from_bool(refused == 0))
}

/// A chain, and where its claims come from.
pub(super) struct Chain {
    group: Group,
    claims: Claims,
    /// The line of each claim, and its id.
    lines: Vec<(usize, Option<serde_json::Value>)>,
    checkpoint: Option<PathBuf>,
}

impl Chain {
    fn squarings(&self) -> u64 {
        self.claims.claims.iter().map(|claim| claim.iterations).max().unwrap_or(0)
    }
}

/// Reads the list: its chains, longest first. All of it is checked before anything is squared. The discriminant of each
/// challenge and length is searched for once.
pub(super) fn chains(
    args: &CompactArgs,
    find: &mut dyn FnMut(&Named) -> Result<Group, Failure>,
) -> Result<Vec<Chain>, Failure> {
    let text = files::read_small(&args.jobs, JOBS_LIMIT)?;
    let name = match args.jobs.as_path() {
        path if path == Path::new("-") => "standard input".to_owned(),
        path => lanework_study::text::shown(path),
    };
    let mut found: BTreeMap<(Vec<u8>, usize), Group> = BTreeMap::new();
    let mut find = |named: &Named| {
        let Some((challenge, bits)) = named.challenge() else { return find(named) };
        match found.entry((challenge.to_vec(), bits)) {
            Entry::Occupied(group) => Ok(group.get().clone()),
            Entry::Vacant(place) => Ok(place.insert(find(named)?).clone()),
        }
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
        let (group, x, claim) = job(args, &said, &mut find)?;
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
    let named = verify::by_file(said, Some(&bits))?
        .ok_or_else(|| no_group().help(format!("{} or discriminant is missing", said.place("challenge"))))?;
    let missing = |member: &str| {
        Failure::input(format!("{}: missing", said.place(member)))
            .help("each line needs iterations and y, and its group")
    };
    let iterations = said.iterations.ok_or_else(|| missing("iterations"))?;
    prove::check_iterations(&said.place("iterations"), iterations)?;
    if said.bits.is_some() && said.bits != Some(named.bits()) {
        let (place, has) = (said.place("bits"), named.bits());
        return Err(Failure::input(format!("{place}: the discriminant has {has} bits")));
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

/// What the threads share.
struct Work<'a> {
    chains: &'a [Chain],
    next: AtomicUsize,
    /// Set by the first failure.
    stop: AtomicBool,
    interrupt: Interrupt,
    backend: &'static str,
    /// Squarings of all chains.
    done: AtomicU64,
    output: Mutex<Output<'a>>,
}

/// The first failure.
enum Stop<'a> {
    Prover(ProverError, &'a Chain),
    Output(std::io::Error),
}

impl Stop<'_> {
    /// How much a reader should know of it: of several, the heaviest is reported.
    fn weight(&self) -> u8 {
        match self {
            Stop::Prover(ProverError::Cancelled { checkpoint: CheckpointFile::Lost, .. }, _) => 1,
            Stop::Prover(ProverError::Cancelled { .. }, _) => 0,
            _ => 2,
        }
    }
}

/// Where proofs and progress go, with counts.
struct Output<'a> {
    sink: Sink<'a>,
    bar: ProgressBar,
    begin: Instant,
    meter: Meter,
    proved: u64,
    refused: u64,
    failure: Option<Stop<'a>>,
    /// Checkpoints of chains that are done.
    files: Vec<&'a Path>,
}

impl<'a> Work<'a> {
    fn output(&self) -> MutexGuard<'_, Output<'a>> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes chains until none is left or something failed.
    fn all(&self, options: &Options<'_>) {
        while !self.stop.load(Ordering::Relaxed)
            && let Some(chain) = self.chains.get(self.next.fetch_add(1, Ordering::Relaxed))
        {
            if let Err(e) = self.chain(chain, options) {
                self.fail(Stop::Prover(e, chain));
            }
        }
    }

    /// Stops all threads, and keeps the heaviest reason: the other threads stop only because this one did.
    fn fail(&self, why: Stop<'a>) {
        self.stop.store(true, Ordering::Relaxed);
        let failure = &mut self.output().failure;
        if failure.as_ref().is_none_or(|before| before.weight() < why.weight()) {
            *failure = Some(why);
        }
    }

    fn chain(&self, chain: &'a Chain, options: &Options<'_>) -> Result<(), ProverError> {
        let options = match &chain.checkpoint {
            Some(path) => options.checkpoint(path),
            None => *options,
        };
        let mut checkpoint = CheckpointFile::Kept;
        let mut warn = |output: &Output<'_>, now| {
            if let Some(path) = chain.checkpoint.as_deref().filter(|_| now != checkpoint) {
                checkpoint = now;
                output.bar.suspend(|| prove::warning(now, path).print("warning"));
            }
        };
        let mut before = 0;
        let mut observer = |progress: Progress| {
            if progress.phase == Phase::Squaring {
                self.done.fetch_add(progress.done - before, Ordering::Relaxed);
                before = progress.done;
            }
            let mut output = self.output();
            output.see(self.done.load(Ordering::Relaxed));
            warn(&output, progress.checkpoint);
            !self.stop.load(Ordering::Relaxed) && self.interrupt.signal().is_none()
        };
        let mut outcome = |n: usize, outcome: lanework_vdf::Outcome| {
            let written = self.output().outcome(chain, n, &outcome, self.backend);
            if let Err(e) = written {
                self.fail(Stop::Output(e));
            }
        };
        let done = lanework_vdf::compact(&chain.claims, &options, &mut observer, &mut outcome);
        // The last state's fate is known only now.
        if let Err(ProverError::Cancelled { checkpoint, .. }) = done {
            warn(&self.output(), checkpoint);
        }
        let done = done?;
        // A file that replaced the checkpoint is not ours.
        let own = chain.checkpoint.as_deref().filter(|_| done.checkpoint != CheckpointFile::Lost);
        self.output().files.extend(own);
        Ok(())
    }
}

impl Output<'_> {
    fn see(&mut self, done: u64) {
        self.meter.read(self.begin.elapsed(), done);
        let left = self.bar.length().unwrap_or(0).saturating_sub(done);
        self.bar.set_position(done);
        self.bar.set_message(self.meter.words(left, "squarings"));
    }

    /// Writes a line.
    fn outcome(
        &mut self,
        chain: &Chain,
        n: usize,
        outcome: &lanework_vdf::Outcome,
        backend: &str,
    ) -> std::io::Result<()> {
        let Claims { discriminant: d, x, claims } = &chain.claims;
        let (line, id) = &chain.lines[n];
        let mut object = members(serde_json::json!({ "line": line }));
        if let Some(id) = id {
            object.insert("id".to_owned(), id.clone());
        }
        object.extend(chain.group.json());
        object.extend(members(serde_json::json!({
            "input": hex(&x.to_bytes(d)), "iterations": claims[n].iterations, "backend": backend,
        })));
        match outcome {
            lanework_vdf::Outcome::Proved(proved) => {
                let (proof, b) = &**proved;
                self.proved += 1;
                object.extend(prove::proof_json(d, proof, b));
            }
            lanework_vdf::Outcome::Wrong => {
                self.refused += 1;
                object.insert("y".to_owned(), hex(&claims[n].y.to_bytes(d)).into());
                object.insert("refused".to_owned(), "the chain has another result".into());
            }
        }
        let text = format!("{}\n", serde_json::Value::Object(object));
        self.bar.suspend(|| self.sink.write_all(text.as_bytes()))
    }
}

/// What went wrong on a chain, and what to do.
fn failed(e: &ProverError, chain: &Chain, signal: Option<i32>, args: &CompactArgs) -> Failure {
    match (e, signal) {
        (ProverError::Cancelled { checkpoint, .. }, Some(signal)) => {
            let shown = lanework_study::text::shown;
            let (kept, help) = match (&args.checkpoint, &chain.checkpoint) {
                (_, Some(path)) if *checkpoint == CheckpointFile::Lost => (
                    format!("the work on a chain is lost: {} {}", shown(path), Lost::of(path).how),
                    format!("{}; the same command then begins this chain anew", Lost::of(path).undo),
                ),
                (Some(folder), _) => (
                    format!("the checkpoints in {} keep what was done", shown(folder)),
                    "run the same command again to continue from there".to_owned(),
                ),
                (None, _) => {
                    ("what was not proved is lost".to_owned(), "--checkpoint FOLDER keeps it".to_owned())
                }
            };
            Failure::interrupted(shell_status(signal), format!("interrupted: {kept}")).help(help)
        }
        _ => prove::failure(e, chain.checkpoint.as_deref()),
    }
}
