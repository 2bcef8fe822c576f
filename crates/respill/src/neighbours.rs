//! Homes that a function's callers and callees refuse to it.
//!
//! A rewrite puts a value of one function into a register and clears the register at the end. Another function of the
//! file may use that register by itself: a callee; a caller that keeps a value there although the ABI does not allow it
//! (hand-written code, or a compiler that has analysed its callees); or a third function that the same caller calls
//! before and after. So a home is refused where any of them uses it. The functions that count are all that some caller
//! of this one can reach, callers of callers included. A call through a pointer may reach every function that can be
//! entered from outside.
//!
//! ```text
//! callers   = all that reach the function by calls and jumps
//! neighbours = all that the callers and the function itself reach
//! refused   = registers that a neighbour's instructions use
//! ```
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use iced_x86::Register;

use crate::analysis::Analysis;
use crate::homes::Home;

/// Why a home is refused. Functions are given by unit number, `None` for code to which no jump of the file leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Objection {
    /// A neighbour uses the register.
    Used {
        /// The function whose value was to move.
        of: usize,
        /// The home.
        home: Home,
        /// The neighbour.
        unit: Option<usize>,
        /// Its instruction.
        op: usize,
    },
    /// A neighbour itself uses x87 or MMX, which share registers and tags.
    Float {
        /// The function whose value was to move.
        of: usize,
        /// The home.
        home: Home,
        /// The neighbour.
        unit: Option<usize>,
        /// Its instruction.
        op: usize,
    },
    /// It may carry the result of the function or of one that it calls.
    Result {
        /// The home.
        home: Home,
    },
    /// A neighbour calls code outside the file, and this register may carry an argument there without being named.
    Argument {
        /// The function whose value was to move.
        of: usize,
        /// The home.
        home: Home,
        /// The neighbour.
        unit: usize,
        /// The call.
        op: usize,
    },
    /// Code outside the file is called, which may return its result in st(0).
    FloatResult {
        /// The function whose value was to move.
        of: usize,
        /// The home.
        home: Home,
        /// The function that calls.
        unit: usize,
        /// The call.
        op: usize,
    },
    /// A neighbour calls code outside the file, which may change the lanes' masks.
    Masks {
        /// The function whose value was to move.
        of: usize,
        /// The home.
        home: Home,
        /// The neighbour.
        unit: usize,
        /// The call.
        op: usize,
    },
}

impl Objection {
    /// The instruction at fault, where there is one.
    #[must_use]
    pub const fn op(self) -> Option<usize> {
        match self {
            Objection::Result { .. } => None,
            Objection::Used { op, .. }
            | Objection::Float { op, .. }
            | Objection::Argument { op, .. }
            | Objection::FloatResult { op, .. }
            | Objection::Masks { op, .. } => Some(op),
        }
    }

    /// In words, with the other function and the line.
    #[must_use]
    pub fn says(self, analysis: &Analysis) -> String {
        let at = |of: usize, unit: Option<usize>, op: usize| {
            let line = analysis.program.line(op);
            let Some(n) = unit else { return format!("in line {line}, to which no path leads") };
            let name = analysis.units[n].function.name();
            let relation = if n == of {
                "the function itself"
            } else if analysis.below(of).contains(&n) {
                "a callee"
            } else if analysis.below(n).contains(&of) {
                "a caller"
            } else {
                "reached through a caller or a pointer"
            };
            format!("in line {line} by {name}, {relation}")
        };
        match self {
            Objection::Used { home, unit: None, op, .. } => {
                let line = analysis.program.line(op);
                format!("line {line} uses {home}, and no path leads to line {line}")
            }
            Objection::Used { of, home, unit, op } => format!("{home} is used {}", at(of, unit, op)),
            Objection::Float { of, home, unit, op } => {
                format!("{home} is a register of x87, which is used {}", at(of, unit, op))
            }
            Objection::Result { home } => format!("{home} may carry a result"),
            Objection::Argument { of, home, unit, op } => {
                format!(
                    "{home} may carry an argument to code outside the file, called {}",
                    at(of, Some(unit), op)
                )
            }
            Objection::FloatResult { of, home, unit, op } => format!(
                "{home} is a register of x87, and code outside the file may return a value in st(0) when called {}",
                at(of, Some(unit), op)
            ),
            Objection::Masks { of, home, unit, op } => {
                format!(
                    "{home} needs a mask that code outside the file may change when called {}",
                    at(of, Some(unit), op)
                )
            }
        }
    }
}

/// The registers used by the functions around one function.
#[derive(Clone, Debug)]
pub struct Neighbours {
    unit: usize,
    registers: BTreeMap<Register, (Option<usize>, usize)>,
    x87: Option<(Option<usize>, usize)>,
    /// The place where one of them leaves the file.
    leaves: Option<(usize, usize)>,
    /// The place where one of them calls code that may return in st(0), which a caller may pass on.
    outward: Option<(usize, usize)>,
}

impl Neighbours {
    /// The registers used around a unit.
    #[must_use]
    pub fn of(analysis: &Analysis, unit: usize) -> Neighbours {
        let units = &analysis.units;
        let entered: Vec<usize> = (0..units.len()).filter(|&n| units[n].entered).collect();
        let indirect: Vec<usize> = (0..units.len()).filter(|&n| units[n].indirect).collect();
        let mut callers: Vec<Vec<usize>> = vec![Vec::new(); units.len()];
        for (n, from) in units.iter().enumerate() {
            from.callees.iter().for_each(|&to| callers[to].push(n));
        }
        let mut all = vec![false; units.len()];
        all[unit] = true;
        let above = closed(&mut all, vec![unit], |n| &callers[n], |n| units[n].entered, &indirect);
        closed(&mut all, above, |n| &units[n].callees, |n| units[n].indirect, &entered);
        // The function's own use comes first.
        let order = core::iter::once(unit).chain((0..units.len()).filter(|&n| all[n] && n != unit));
        let mut out = Neighbours { unit, registers: BTreeMap::new(), x87: None, leaves: None, outward: None };
        for n in order {
            let one = &units[n];
            for (&register, &op) in &one.uses {
                out.registers.entry(register).or_insert((Some(n), op));
            }
            out.x87 = out.x87.or(one.x87.or(mmx(&one.uses)).map(|op| (Some(n), op)));
            out.leaves = out.leaves.or(one.leaves.map(|op| (n, op)));
            out.outward = out.outward.or(one.float_leaves.map(|op| (n, op)));
        }
        for (&register, &op) in &analysis.stray.registers {
            out.registers.entry(register).or_insert((None, op));
        }
        let stray = analysis.stray.x87.or(mmx(&analysis.stray.registers));
        out.x87 = out.x87.or(stray.map(|op| (None, op)));
        out
    }

    /// Their objection to a home for a value of the unit.
    #[must_use]
    pub fn objection(&self, home: Home) -> Option<Objection> {
        let of = self.unit;
        if let Some(&(unit, op)) = home.registers().iter().find_map(|r| self.registers.get(r)) {
            return Some(Objection::Used { of, home, unit, op });
        }
        match home {
            Home::Mm(_) => {
                let float = |(unit, op)| Objection::Float { of, home, unit, op };
                let result = |(unit, op)| Objection::FloatResult { of, home, unit, op };
                self.x87.map(float).or(self.outward.map(result))
            }
            Home::Xmm(0 | 1) => Some(Objection::Result { home }),
            Home::Xmm(2..8) => self.leaves.map(|(unit, op)| Objection::Argument { of, home, unit, op }),
            Home::Lane { .. } => self.leaves.map(|(unit, op)| Objection::Masks { of, home, unit, op }),
            Home::Xmm(_) | Home::K(_) => None,
        }
    }
}

/// Adds to a set all that follows from `todo`: what is `next` to each, and what lies `behind` once a member `opens` it. Returns `todo`
/// and the members that were added.
fn closed<'a, T: IntoIterator<Item = &'a usize>>(
    set: &mut [bool],
    mut todo: Vec<usize>,
    next: impl Fn(usize) -> T,
    opens: impl Fn(usize) -> bool,
    behind: &[usize],
) -> Vec<usize> {
    let (mut out, mut open) = (todo.clone(), false);
    while let Some(n) = todo.pop() {
        let begin = out.len();
        out.extend(next(n).into_iter().filter(|&&other| !core::mem::replace(&mut set[other], true)));
        if !open && opens(n) {
            open = true;
            out.extend(behind.iter().filter(|&&other| !core::mem::replace(&mut set[other], true)));
        }
        todo.extend(&out[begin..]);
    }
    out
}

/// The first instruction that uses MMX.
fn mmx(uses: &BTreeMap<Register, usize>) -> Option<usize> {
    uses.iter().filter(|(register, _)| register.is_mm()).map(|(_, &op)| op).min()
}
