//! A program frozen at one point, from which runs of an operation start that differ only in their case.
#![forbid(unsafe_code)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::lane::Runner;
use crate::layout::{
    CASE, CONTROL, DEAD, DONE, DOORBELL, OUT, OUT_LENGTH, OUT_ROOM, PANICKED, REAPED, RESULT, RETURNED,
    RUNNING, START, STATE, STATUS,
};
use crate::program::Program;
use crate::record::Step;
use crate::site::{Access, Depth, Sites};
use crate::source_line::Symbols;
use crate::sys::{self, Lane};
use crate::{Ending, Unavailable};

/// A traced operation, for each of several cases.
pub trait Operation {
    /// The operation's input.
    type Input;

    /// Makes the input of a case, untraced, in the child.
    fn prepare(&self, case: usize) -> Self::Input;

    /// The traced operation. The child has one thread; this must neither start nor wait for any.
    fn operate(&self, input: &mut Self::Input);

    /// The result for the tracer, at most 2 MiB; made in the child, untraced.
    fn answer(&self, _input: &Self::Input) -> Vec<u8> {
        Vec::new()
    }

    /// The seed of the noise that fills the dead stack below the operation.
    fn stack(&self, _case: usize) -> u64 {
        0
    }
}

/// The way in which instructions are executed and recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Engine {
    /// The program's code, copied with a record before each instruction: millions of steps a second, without privileges.
    #[default]
    Copies,
    /// The processor's trap flag through `ptrace`: the code in place, some ten thousand steps a second. Neither written
    /// bytes nor the vectors that gathers take their addresses from are recorded; [`Options::extended_state`] is.
    Steps,
}

/// The content of records, and the limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The engine that executes instructions.
    pub engine: Engine,
    /// Also record the bytes that instructions write through a memory operand.
    pub writes: bool,
    /// Also record the whole extended state (x87, MMX, vectors, masks) before every instruction, as `xsave` writes it: some
    /// 2.5 KB each.
    pub extended_state: bool,
    /// Instructions of one run.
    pub steps: u64,
    /// Time of one run or pair.
    pub time: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            engine: Engine::Copies,
            writes: false,
            extended_state: false,
            steps: 50_000_000,
            time: Duration::from_secs(120),
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// Instructions that were shown.
    pub steps: u64,
    /// What [`Operation::answer`] returned.
    pub answer: Vec<u8>,
}

/// Which of two runs continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// Step both.
    Both,
    /// Step the first.
    First,
    /// Step the second.
    Second,
    /// End both.
    Stop,
}

/// The frozen program. Runs of it are forks of one idle process, so they have the same memory at the same addresses.
pub struct Snapshot {
    zygote: i32,
    runners: [Runner; 2],
    sites: Sites,
    program: Program,
    options: Options,
    dead: bool,
}

impl core::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Snapshot")
            .field("zygote", &self.zygote)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Snapshot {
    /// Freezes this program.
    ///
    /// # Errors
    /// If the system or the processor does not allow tracing a child.
    pub fn take(operation: &impl Operation, options: Options) -> Result<Snapshot, Unavailable> {
        let state = match (options.extended_state, sys::extended_state()) {
            (false, _) => 0,
            (true, Some(bytes)) => bytes,
            (true, None) => return Err(Unavailable { why: "this processor has no xsave".into() }),
        };
        if options.engine == Engine::Steps {
            sys::step::permitted()?;
        }
        let depth = Depth { writes: options.writes && options.engine == Engine::Copies, state };
        let stepped = options.engine == Engine::Steps;
        let runners = [Runner::new(stepped)?, Runner::new(stepped)?];
        let program = Program::read()?;
        let parent = std::process::id();
        let zygote = sys::fork(|| {
            sys::orphans_die(parent, true);
            wait_for_orders(&runners, operation, state);
        })?;
        Ok(Snapshot { zygote, runners, sites: Sites::new(depth), program, options, dead: false })
    }

    /// The start of this thread's memory, which `fs` points to.
    #[must_use]
    pub fn fs_base(&self) -> u64 {
        self.runners[0].fs_base()
    }

    /// The memory that a step touches.
    pub fn accesses(&self, step: &Step<'_>, out: &mut Vec<Access>) {
        step.site.accesses(step, self.fs_base(), out);
    }

    /// Runs one case and shows every step. `look` says whether to continue.
    ///
    /// # Errors
    /// If an earlier run was killed, or no process can be started.
    pub fn run(
        &mut self,
        case: usize,
        mut look: impl FnMut(&Step<'_>, u64) -> bool,
    ) -> Result<Outcome, Unavailable> {
        let until = self.ready()?;
        let [runner, _] = &mut self.runners;
        runner.start_here(case);
        let fs_base = |runner: &Runner| runner.fs_base();
        loop {
            if !runner.wait(&mut self.sites, &self.program, until, self.zygote) {
                self.end_by_force();
                return Ok(self.outcome(0, Some(Ending::TimedOut)));
            }
            let fs = fs_base(runner);
            while let Some(step) = runner.step(&self.sites) {
                let go_on = look(&step, fs);
                runner.advance(&self.sites);
                if !go_on {
                    runner.abort(Ending::Stopped);
                    return Ok(self.outcome(0, Some(Ending::Stopped)));
                }
            }
            if runner.steps > self.options.steps {
                runner.abort(Ending::TooLong);
            }
            if runner.ended.is_some() {
                return Ok(self.outcome(0, None));
            }
            runner.resume(&mut self.sites, &self.program);
        }
    }

    /// Runs two cases side by side. `look` gets the current step of each, or `None` if that run has ended, and says
    /// which run continues.
    ///
    /// # Errors
    /// As for [`Snapshot::run`].
    pub fn pair(
        &mut self,
        cases: [usize; 2],
        mut look: impl FnMut(Option<&Step<'_>>, Option<&Step<'_>>, u64) -> Advance,
    ) -> Result<[Outcome; 2], Unavailable> {
        let until = self.ready()?;
        let [first, second] = &mut self.runners;
        // The bell is in the first lane: its order, given last, starts both.
        second.start(cases[1], &first.lane);
        first.start_here(cases[0]);
        loop {
            for runner in [&mut *first, &mut *second] {
                if runner.is_empty() {
                    if runner.steps > self.options.steps {
                        runner.abort(Ending::TooLong);
                    }
                    runner.resume(&mut self.sites, &self.program);
                }
            }
            let (sites, program, zygote) = (&mut self.sites, &self.program, self.zygote);
            if !(first.wait(sites, program, until, zygote) && second.wait(sites, program, until, zygote)) {
                self.end_by_force();
                let over = Some(Ending::TimedOut);
                return Ok([self.outcome(0, over.clone()), self.outcome(1, over)]);
            }
            let fs = first.fs_base();
            loop {
                let (one, two) = (first.step(&self.sites), second.step(&self.sites));
                let more = |runner: &Runner| runner.is_empty() && runner.ended.is_none();
                if more(first) || more(second) {
                    break;
                }
                let advance = if one.is_none() && two.is_none() {
                    Advance::Stop
                } else {
                    look(one.as_ref(), two.as_ref(), fs)
                };
                match advance {
                    Advance::Both => {
                        first.advance(&self.sites);
                        second.advance(&self.sites);
                    }
                    Advance::First => first.advance(&self.sites),
                    Advance::Second => second.advance(&self.sites),
                    Advance::Stop => {
                        first.abort(Ending::Stopped);
                        second.abort(Ending::Stopped);
                        return Ok([self.outcome(0, None), self.outcome(1, None)]);
                    }
                }
            }
        }
    }

    /// The program's debugging information.
    #[must_use]
    pub fn symbols(&self) -> Symbols {
        Symbols::new(self.program.clone())
    }

    /// The instruction at an address that was executed, as text.
    #[must_use]
    pub fn instruction(&self, address: u64) -> String {
        self.sites.at(address).map_or_else(String::new, |site| site.instruction.to_string())
    }

    fn ready(&mut self) -> Result<Instant, Unavailable> {
        // A sum with the longest `Duration` would overflow.
        let time = self.options.time.min(Duration::from_secs(1 << 30));
        let until = Instant::now() + time;
        if !self.dead && self.runners.iter().all(|r| r.wait_for_end(until, self.zygote)) {
            return Ok(Instant::now() + time);
        }
        self.end_by_force();
        Err(Unavailable {
            why: "a run of this snapshot had to be ended by force, and the snapshot with it".into(),
        })
    }

    fn outcome(&mut self, lane: usize, ending: Option<Ending>) -> Outcome {
        let runner = &mut self.runners[lane];
        Outcome {
            ending: ending.or(runner.ended.clone()).unwrap_or(Ending::Stopped),
            steps: runner.steps,
            answer: std::mem::take(&mut runner.answer),
        }
    }

    fn end_by_force(&mut self) {
        if !self.dead {
            sys::end_group(self.zygote);
            self.dead = true;
        }
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.end_by_force();
    }
}

/// The zygote's loop: it forks a child for every order and reports its end.
fn wait_for_orders(runners: &[Runner; 2], operation: &impl Operation, state: usize) {
    let bell = &runners[0].lane;
    let me = std::process::id();
    let mut children = [0; 2];
    loop {
        let rung = bell.half(CONTROL + DOORBELL);
        for (runner, child) in runners.iter().zip(&mut children) {
            let lane = &runner.lane;
            if lane.take_half(CONTROL + START) == 0 {
                continue;
            }
            let work = || {
                sys::orphans_die(me, false);
                run_case(runner, operation);
            };
            match sys::fork(work) {
                Ok(started) if runner.stepped => ended(lane, runner.step_through(started, state)),
                Ok(started) => *child = started,
                Err(_) => ended(lane, 0),
            }
        }
        while let Some((process, status)) = sys::reap() {
            for (runner, child) in runners.iter().zip(&mut children) {
                if *child == process {
                    *child = 0;
                    ended(&runner.lane, status);
                }
            }
        }
        let busy = children.iter().any(|&child| child != 0);
        bell.wait(CONTROL + DOORBELL, rung, Duration::from_millis(if busy { 1 } else { 1000 }));
    }
}

fn ended(lane: &Lane, status: i32) {
    lane.set_half(CONTROL + STATUS, status as u32);
    if lane.half(CONTROL + STATE) != DONE {
        lane.set_half(CONTROL + STATE, DEAD);
        lane.wake(CONTROL + STATE);
    }
    lane.set_half(CONTROL + REAPED, 1);
    lane.wake(CONTROL + REAPED);
}

/// The child's life.
fn run_case<O: Operation>(runner: &Runner, operation: &O) {
    let lane = &runner.lane;
    debug_assert_eq!(lane.half(CONTROL + STATE), RUNNING);
    sys::plain_signals();
    let case = lane.word(CONTROL + CASE) as usize;
    let mut failure: Option<Box<dyn Any + Send>> = None;
    let mut answer = Vec::new();
    match catch_unwind(AssertUnwindSafe(|| operation.prepare(case))) {
        Ok(mut input) => {
            sys::fill_stack(operation.stack(case));
            let mut operate = || {
                failure = catch_unwind(AssertUnwindSafe(|| operation.operate(&mut input))).err();
            };
            match sys::enter(lane, runner.enter(), runner.stepped, &mut operate) {
                Ok(()) if failure.is_none() => answer = operation.answer(&input),
                Ok(()) => {}
                Err(why) => failure = Some(Box::new(why.to_string())),
            }
        }
        Err(panic) => failure = Some(panic),
    }
    if let Some(failure) = &failure {
        let text = failure.downcast_ref::<String>().map(String::as_str);
        answer = text.or(failure.downcast_ref::<&str>().copied()).unwrap_or("a panic").as_bytes().to_vec();
    }
    answer.truncate(OUT_ROOM);
    lane.write(OUT, &answer);
    lane.set_word(CONTROL + OUT_LENGTH, answer.len() as u64);
    lane.set_half(CONTROL + RESULT, if failure.is_some() { PANICKED } else { RETURNED });
    lane.set_half(CONTROL + STATE, DONE);
    lane.wake(CONTROL + STATE);
    sys::leave(0)
}
