//! One lane from the tracer's side: a child that runs and sends requests, and its records.
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use crate::layout::{
    ASKING, CASE, CONTROL, DEAD, DONE, DOORBELL, FLUSH, FS_BASE, FULL, GOTO, KIND, LANE, NEXT, OUT,
    OUT_LENGTH, OUT_ROOM, PANICKED, REAPED, RESULT, RUNNING, SITE, START, STATE, STATUS, SYSCALL, TARGET,
    TRANSLATE, WORDS, WRITTEN,
};
use crate::program::Program;
use crate::record::Step;
use crate::site::Sites;
use crate::sys::step::{self, Stepped};
use crate::sys::{self, Lane};
use crate::translate::{Patch, Refusal, Translator, after};
use crate::{Ending, Unavailable};

/// A lane and its state.
pub(crate) struct Runner {
    pub(crate) lane: Lane,
    translator: Translator,
    records: Vec<u64>,
    /// The beginning of the current record, in words.
    cursor: usize,
    /// Instructions recorded before the current one.
    pub(crate) steps: u64,
    pub(crate) ended: Option<Ending>,
    pub(crate) answer: Vec<u8>,
    /// The last record's rax: the number of a system call, if it records one.
    last: u64,
    begun: bool,
    /// The child is waiting for an answer, and its records have been taken.
    taken: bool,
    /// Stepped by the trap flag, not by copies.
    pub(crate) stepped: bool,
}

impl Runner {
    pub(crate) fn new(stepped: bool) -> Result<Runner, Unavailable> {
        let lane = Lane::map()?;
        let (translator, patches) = Translator::new(lane.base())
            .map_err(|_| Unavailable { why: "the tracer's own code cannot be assembled".into() })?;
        for (offset, bytes) in patches {
            lane.write(offset, &bytes);
        }
        lane.set_half(CONTROL + REAPED, 1);
        Ok(Runner {
            lane,
            translator,
            records: Vec::new(),
            cursor: 0,
            steps: 0,
            ended: None,
            answer: Vec::new(),
            last: 0,
            begun: false,
            taken: false,
            stepped,
        })
    }

    pub(crate) fn enter(&self) -> u64 {
        let routines = &self.translator.routines;
        if self.stepped { routines.enter_plainly } else { routines.enter }
    }

    /// The zygote's part for a stepped child: steps it from the first traced instruction to the last, writing records whose
    /// first word is the instruction's address. Returns the child's status once it has ended.
    pub(crate) fn step_through(&self, child: i32, state: usize) -> i32 {
        let routines = &self.translator.routines;
        let lane = &self.lane;
        let (mut now, mut inside, mut next) = (step::wait(child), false, 0);
        let mut raw = [0u8; 8192];
        loop {
            match now {
                Stepped::Stands => {}
                Stepped::Signalled(signal) => return step::meet(child, signal),
                Stepped::Ended(status) => return status,
            }
            let Some(registers) = step::registers(child) else { break };
            inside |= registers[0] == sys::first();
            if registers[0] == routines.back {
                break;
            }
            if inside {
                for (i, word) in registers.iter().enumerate() {
                    lane.set_word(next + 8 * i, *word);
                }
                next += 8 * registers.len();
                if state > 0 {
                    step::extended(child, &mut raw);
                    lane.write(next, &raw[..state.min(raw.len())]);
                    next += state;
                }
                lane.set_word(CONTROL + NEXT, lane.base() + next as u64);
            }
            if next >= FULL {
                lane.set_half(CONTROL + KIND, FLUSH);
                lane.set_word(CONTROL + GOTO, 0);
                lane.set_half(CONTROL + STATE, ASKING);
                lane.wake(CONTROL + STATE);
                while lane.half(CONTROL + STATE) == ASKING {
                    lane.wait(CONTROL + STATE, ASKING, Duration::from_secs(1));
                }
                if lane.word(CONTROL + GOTO) == routines.quit {
                    step::end(child);
                }
                next = 0;
            }
            now = step::step(child, 0);
        }
        step::release(child);
        match step::wait(child) {
            Stepped::Ended(status) => status,
            _ => {
                step::end(child);
                0
            }
        }
    }

    /// Brings the records of a stepped child into the form of the others.
    fn adopt(&self, raw: &[u64], sites: &mut Sites, program: &Program) -> Vec<u64> {
        let state = sites.depth.state / 8;
        let mut records = Vec::with_capacity(raw.len());
        for record in raw.chunks_exact(WORDS + state) {
            let Some(id) = sites.number(record[0], program.code(record[0])) else { break };
            let shape = sites.get(id).shape;
            let begin = records.len();
            records.push(u64::from(id));
            records.extend_from_slice(&record[1..WORDS]);
            records.resize(begin + shape.head() / 8, 0);
            records.extend_from_slice(&record[WORDS..]);
            records.resize(begin + shape.bytes() / 8, 0);
        }
        records
    }

    /// Has the zygote begin a run. The previous run has ended.
    pub(crate) fn start(&mut self, case: usize, bell: &Lane) {
        self.begin(case);
        bell.ring(CONTROL + DOORBELL);
    }

    /// The same where this lane has the bell.
    pub(crate) fn start_here(&mut self, case: usize) {
        self.begin(case);
        self.lane.ring(CONTROL + DOORBELL);
    }

    fn begin(&mut self, case: usize) {
        self.records.clear();
        (self.cursor, self.steps, self.last) = (0, 0, 0);
        (self.ended, self.begun, self.taken) = (None, true, false);
        self.answer.clear();
        let control = [(STATE, RUNNING), (REAPED, 0), (RESULT, 0)];
        control.into_iter().for_each(|(field, value)| self.lane.set_half(CONTROL + field, value));
        self.lane.set_word(CONTROL + OUT_LENGTH, 0);
        self.lane.set_word(CONTROL + NEXT, self.lane.base());
        self.lane.set_word(CONTROL + CASE, case as u64);
        self.lane.set_half(CONTROL + START, 1);
    }

    pub(crate) fn fs_base(&self) -> u64 {
        self.lane.word(CONTROL + FS_BASE)
    }

    /// Whether all records so far have been read.
    pub(crate) fn is_empty(&self) -> bool {
        self.cursor >= self.records.len()
    }

    fn put(&self, (offset, bytes): Patch) {
        self.lane.write(offset, &bytes);
    }

    /// Answers the child, which continues. Does nothing if it has ended or not asked yet.
    pub(crate) fn resume(&mut self, sites: &mut Sites, program: &Program) {
        if self.ended.is_some() || !self.taken {
            return;
        }
        match self.lane.half(CONTROL + KIND) {
            TRANSLATE => {
                let target = self.lane.word(CONTROL + TARGET);
                match self.translator.copy(target, sites, |at| program.code(at)) {
                    Ok((copy, patches)) => {
                        patches.into_iter().for_each(|patch| self.put(patch));
                        match self.lane.half(CONTROL + SITE) {
                            0 => self.put(self.translator.entry(target, copy)),
                            site => self.put(self.translator.join(site, copy)),
                        }
                        self.lane.set_word(CONTROL + GOTO, copy);
                    }
                    Err(refusal) => {
                        let why = match refusal {
                            Refusal::NoCode => "a jump to an address without code",
                            Refusal::Full => "more code than there is room for",
                            Refusal::Encoding => "an instruction that cannot be moved",
                        };
                        return self.abort(Ending::Unsupported { address: target, why });
                    }
                }
            }
            FLUSH => {}
            SYSCALL => {
                if let Some(ending) = self.forbidden() {
                    return self.abort(ending);
                }
            }
            _ => {
                let address = self.lane.word(CONTROL + TARGET);
                return self.abort(Ending::Unsupported { address, why: "an instruction that is not traced" });
            }
        }
        self.go();
    }

    fn go(&mut self) {
        self.records.clear();
        (self.cursor, self.taken) = (0, false);
        self.lane.set_word(CONTROL + NEXT, self.lane.base());
        self.lane.set_half(CONTROL + STATE, RUNNING);
        self.lane.wake(CONTROL + STATE);
    }

    /// Why the last record's system call must not be made.
    fn forbidden(&self) -> Option<Ending> {
        let number = self.last;
        let starts = [
            libc::SYS_clone,
            libc::SYS_clone3,
            libc::SYS_fork,
            libc::SYS_vfork,
            libc::SYS_execve,
            libc::SYS_execveat,
        ];
        let number = number as libc::c_long;
        if starts.contains(&number) {
            let why = "the operation starts a thread or a process";
            return Some(Ending::Unsupported { address: 0, why });
        }
        (number == libc::SYS_exit_group || number == libc::SYS_exit).then_some(Ending::Exited)
    }

    /// Ends a run whose child is asking.
    pub(crate) fn abort(&mut self, why: Ending) {
        if self.ended.is_none() && self.taken {
            self.lane.set_word(CONTROL + GOTO, self.translator.routines.quit);
            self.go();
        }
        self.ended.get_or_insert(why);
    }

    /// Waits until the child asks or has ended, and takes its records. False if time runs out first, or the zygote is
    /// gone.
    pub(crate) fn wait(&mut self, sites: &mut Sites, program: &Program, until: Instant, zygote: i32) -> bool {
        if self.ended.is_some() || self.taken {
            return true;
        }
        let state = loop {
            match self.lane.half(CONTROL + STATE) {
                RUNNING => {}
                state => break state,
            }
            let now = Instant::now();
            if now >= until || sys::has_ended(zygote) {
                return false;
            }
            self.lane.wait(CONTROL + STATE, RUNNING, (until - now).min(Duration::from_millis(50)));
        };
        let end = self.lane.word(CONTROL + NEXT).wrapping_sub(self.lane.base());
        // A faulty child may have written anything there.
        let words = (end as usize).min(LANE) / 8;
        let mut records = std::mem::take(&mut self.records);
        self.lane.read(0, words, &mut records);
        self.records = if self.stepped { self.adopt(&records, sites, program) } else { records };
        self.cursor = 0;
        let mut last_address = 0;
        let mut at = 0;
        while let Some((site, words, _)) = self.parse(sites, at) {
            last_address = sites.get(site).address;
            self.last = self.records[at + 16];
            at += words;
        }
        // Records that cannot be parsed are dropped.
        self.records.truncate(at);
        self.taken = state == ASKING;
        match state {
            DONE => {
                let length = (self.lane.word(CONTROL + OUT_LENGTH) as usize).min(OUT_ROOM);
                self.answer = self.lane.bytes(OUT, length);
                self.ended = Some(match self.lane.half(CONTROL + RESULT) {
                    PANICKED => Ending::Panicked(String::from_utf8_lossy(&self.answer).into_owned()),
                    _ => Ending::Returned,
                });
            }
            DEAD => {
                self.ended = Some(match sys::ending(self.lane.half(CONTROL + STATUS) as i32) {
                    Err(signal) => Ending::Signal { signal, address: last_address },
                    Ok(_) => Ending::Exited,
                });
            }
            _ => {}
        }
        true
    }

    /// Waits until the zygote has reaped the last run's child.
    pub(crate) fn wait_for_end(&self, until: Instant, zygote: i32) -> bool {
        if !self.begun {
            return true;
        }
        while self.lane.half(CONTROL + REAPED) == 0 {
            let now = Instant::now();
            if now >= until || sys::has_ended(zygote) {
                return false;
            }
            self.lane.wait(CONTROL + REAPED, 0, (until - now).min(Duration::from_millis(50)));
        }
        true
    }

    /// The instruction of the record at a word, and its length in words, without and with written bytes.
    fn parse(&self, sites: &Sites, at: usize) -> Option<(u32, usize, usize)> {
        let id = *self.records.get(at)?;
        let id = u32::try_from(id).ok().filter(|id| (*id as usize) < sites.count())?;
        let site = sites.get(id);
        let grain = sites.depth.grain();
        let own = site.shape.bytes() / 8;
        let mut all = own;
        if site.written > 0 && self.records.get(at + own) == Some(&(u64::from(id) | WRITTEN)) {
            all += after(site.written, grain) / 8;
        }
        (at + all <= self.records.len()).then_some((id, all, own))
    }

    /// The current step.
    pub(crate) fn step<'a>(&'a self, sites: &'a Sites) -> Option<Step<'a>> {
        let (id, all, own) = self.parse(sites, self.cursor)?;
        let site = sites.get(id);
        let words = &self.records[self.cursor..][..own];
        let written = if all > own {
            &self.records[self.cursor + own + 1..][..1 + site.written.div_ceil(8)]
        } else {
            &[]
        };
        Some(Step::new(site, self.steps, words, written))
    }

    /// Advances to the next record.
    pub(crate) fn advance(&mut self, sites: &Sites) {
        match self.parse(sites, self.cursor) {
            Some((_, all, _)) => self.cursor += all,
            None => self.cursor = self.records.len(),
        }
        self.steps += 1;
    }
}
