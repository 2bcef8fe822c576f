//! Whether runs on different secrets differ in their path or in the memory they touch.
#![forbid(unsafe_code)]

use crate::record::Step;
use crate::site::{Access, Touch};
use crate::snapshot::{Advance, Snapshot};
use crate::source_line::Place;
use crate::{Ending, Unavailable};
use iced_x86::{OpKind, Register};

/// The kind of a difference between two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A jump, call or return goes to different places, or one of the runs ends.
    Way([u64; 2]),
    /// Different memory is touched, or different amounts of it.
    Memory([Vec<Access>; 2]),
    /// A division's operands, on which its time may depend, differ.
    Division([u64; 2]),
}

/// An instruction at which runs differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The case that differs from the first.
    pub case: usize,
    /// Instructions executed before it.
    pub step: u64,
    /// What differs.
    pub kind: Kind,
    /// The instruction as text.
    pub instruction: String,
    /// Its place in the source.
    pub place: Place,
}

impl core::fmt::Display for Difference {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let what = match &self.kind {
            Kind::Way(_) => "the path differs",
            Kind::Memory(_) => "the memory touched differs",
            Kind::Division(_) => "the operands of a division differ",
        };
        let Difference { case, step, instruction, place, .. } = self;
        write!(f, "{what} with case {case} at step {step}: `{instruction}` in {place}")?;
        match &self.kind {
            Kind::Way([one, two]) => write!(f, ": {one:#x} and {two:#x}"),
            Kind::Memory([one, two]) => {
                let differing = one.iter().zip(two).find(|(a, b)| a != b);
                match differing {
                    Some((a, b)) => {
                        write!(
                            f,
                            ": {} bytes at {:#x} and {} at {:#x}",
                            a.bytes, a.address, b.bytes, b.address
                        )
                    }
                    None => write!(f, ": {} and {} pieces", one.len(), two.len()),
                }
            }
            Kind::Division(_) => Ok(()),
        }
    }
}

/// The result of a comparison.
#[derive(Clone, Debug)]
pub struct Report {
    /// Cases compared with the first.
    pub cases: usize,
    /// Instructions of the first case, as far as it was compared.
    pub steps: u64,
    /// Pairs of instructions that were compared, of all cases together.
    pub compared: u64,
    /// Instructions of the first case that touch memory, as far as it was compared.
    pub touched: u64,
    /// The first difference of every instruction and kind.
    pub differences: Vec<Difference>,
    /// The results of [`crate::Operation::answer`], of the first case and of every other whose run was complete.
    pub answers: Vec<(usize, Vec<u8>)>,
}

/// Why a comparison has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nothing can be traced here.
    Unavailable(Unavailable),
    /// A run did not end normally.
    Ended {
        /// The case.
        case: usize,
        /// How it ended.
        ending: Ending,
        /// The place of the last instruction, if known.
        place: Option<Box<Place>>,
    },
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Failure::Unavailable(why) => why.fmt(f),
            Failure::Ended { case, ending, place } => {
                write!(f, "the run of case {case} ended unexpectedly: {ending:?}")?;
                match place {
                    Some(place) => write!(f, " in {place}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl core::error::Error for Failure {}

impl From<Unavailable> for Failure {
    fn from(why: Unavailable) -> Failure {
        Failure::Unavailable(why)
    }
}

/// Differences that one comparison collects at most.
const MOST: usize = 100;

/// Whether two steps of one instruction differ in memory touched or operands divided.
fn differs(one: &Step<'_>, two: &Step<'_>, fs: u64, room: &mut [Vec<Access>; 2]) -> Option<Kind> {
    let site = one.site;
    if site.touches() {
        let general = site.bases.iter().any(|&r| one.general(r.into()) != two.general(r.into()));
        if general || site.by_vectors() {
            site.accesses(one, fs, &mut room[0]);
            site.accesses(two, fs, &mut room[1]);
            if room[0] != room[1] {
                return Some(Kind::Memory(room.clone()));
            }
        }
    }
    if site.divides {
        let operand = site.instruction.op0_register();
        let explicit = (site.instruction.op0_kind() == OpKind::Register).then_some(operand);
        let differing = [Register::RAX, Register::RDX]
            .into_iter()
            .chain(explicit)
            .map(|r| [one.register(r), two.register(r)])
            .find(|[a, b]| a != b);
        return differing.map(Kind::Division);
    }
    None
}

impl Snapshot {
    /// Compares the run of the first case with that of each other: instruction by instruction, the addresses and sizes of all
    /// memory that they touch, and the operands of divisions in registers.
    ///
    /// After a difference in memory or in a division the comparison continues. After one in the path the runs have
    /// parted, and the next case follows.
    ///
    /// # Errors
    /// If a run does not end normally, or nothing can be traced.
    pub fn compare(&mut self, cases: &[usize]) -> Result<Report, Failure> {
        let mut report = Report {
            cases: 0,
            steps: 0,
            compared: 0,
            touched: 0,
            differences: Vec::new(),
            answers: Vec::new(),
        };
        let Some((&first, others)) = cases.split_first() else { return Ok(report) };
        let mut room = [Vec::new(), Vec::new()];
        let mut found: Vec<(u64, bool, Difference)> = Vec::new();
        for &case in others {
            let (mut touched, mut parted) = (0, false);
            let mut last = 0;
            // Of a repeated comparison that was the last step: its text, the bytes of one turn, and before it the turns that
            // were left and the address, of both runs.
            let mut comparing: Option<(String, u64, [[u64; 2]; 2])> = None;
            let outcomes = self.pair([first, case], |one, two, fs| {
                let note = |address,
                            step,
                            instruction: String,
                            kind: Kind,
                            found: &mut Vec<(u64, bool, Difference)>| {
                    let division = matches!(kind, Kind::Division(_));
                    if found.len() < MOST && !found.iter().any(|(at, d, _)| *at == address && *d == division)
                    {
                        let place = Place { address, frames: Vec::new(), module: String::new() };
                        found.push((address, division, Difference { case, step, kind, instruction, place }));
                    }
                };
                let (Some(a), Some(b)) = (one, two) else {
                    let at = [one, two].map(|step| step.map_or(0, Step::address));
                    let step = one.or(two).map_or(0, |s| s.number);
                    note(last, step, String::new(), Kind::Way(at), &mut found);
                    parted = true;
                    return Advance::Stop;
                };
                if a.address() != b.address() {
                    note(last, a.number, String::new(), Kind::Way([a.address(), b.address()]), &mut found);
                    parted = true;
                    return Advance::Stop;
                }
                if let Some((text, bytes, before)) = comparing.take() {
                    let compared = [0, 1].map(|n| {
                        let [turns, address] = before[n];
                        let bytes = bytes * turns.wrapping_sub([a, b][n].register(Register::RCX));
                        Access { address, bytes, touch: Touch::Read, masked: false }
                    });
                    if compared[0].bytes != compared[1].bytes {
                        let compared = compared.map(|access| vec![access]);
                        note(last, a.number - 1, text, Kind::Memory(compared), &mut found);
                    }
                }
                comparing = a.site.compares().map(|bytes| {
                    let before = [a, b].map(|s| [Register::RCX, Register::RDI].map(|r| s.register(r)));
                    (a.site.instruction.to_string(), bytes, before)
                });
                if let Some(kind) = differs(a, b, fs, &mut room) {
                    note(a.address(), a.number, a.site.instruction.to_string(), kind, &mut found);
                }
                touched += u64::from(a.site.touches());
                last = a.address();
                Advance::Both
            })?;
            report.cases += 1;
            report.steps = report.steps.max(outcomes[0].steps);
            report.touched = report.touched.max(touched);
            report.compared += outcomes[0].steps.min(outcomes[1].steps);
            for (outcome, case) in outcomes.iter().zip([first, case]) {
                // Where two runs part, one of them is stopped.
                if outcome.ending != Ending::Returned && !(parted && outcome.ending == Ending::Stopped) {
                    let place = match outcome.ending {
                        Ending::Signal { address, .. } | Ending::Unsupported { address, .. } => {
                            Some(Box::new(self.symbols().place(address)))
                        }
                        _ => None,
                    };
                    return Err(Failure::Ended { case, ending: outcome.ending.clone(), place });
                }
            }
            if !parted {
                let [one, two] = outcomes;
                if report.answers.is_empty() {
                    report.answers.push((first, one.answer));
                }
                report.answers.push((case, two.answer));
            }
        }
        let mut symbols = self.symbols();
        for (address, _, mut difference) in found {
            difference.place = symbols.place(address);
            if difference.instruction.is_empty() {
                difference.instruction = self.instruction(address);
            }
            report.differences.push(difference);
        }
        Ok(report)
    }
}
