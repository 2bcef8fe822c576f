//! What must be equal at the end of a pair of blocks.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::Register;

use super::flow::{Block, Callee, End, Function, Pair};
use super::known::{Contents, Float, Frame, Known, contents as contents_of};
use super::symbolic::Home;
use super::terms::{Term, Terms};
use super::verdict::{Goal, Judge, KEPT, Ran};

/// Registers that carry arguments, and results.
const ARGUMENTS: [usize; 8] = [0, 1, 2, 6, 7, 8, 9, 10];
const RESULTS: [usize; 2] = [0, 2];

impl Judge<'_> {
    #[allow(clippy::too_many_arguments, reason = "a block with all that is known of it")]
    pub(super) fn goals(
        &self,
        function: &Function,
        pair: Pair,
        block: &Block,
        terms: &mut Terms,
        frame: &Frame,
        ran: &Ran,
        (known, closed): (&BTreeMap<Pair, Known>, &BTreeSet<(Pair, usize)>),
        out: &mut Vec<Goal>,
    ) {
        let [one, two] = &ran.end;
        // Always: flags, memory, and the registers that are not homes.
        out.extend((0..7).map(|n| ("flags".to_owned(), one.flags[n], two.flags[n])));
        out.push(("memory".to_owned(), one.memory, two.memory));
        out.push(("mxcsr".to_owned(), one.mxcsr, two.mxcsr));
        out.push(("x87's control".to_owned(), one.control, two.control));
        for (register, &value) in &one.others {
            out.push((format!("{register:?}"), value, two.others[register]));
        }
        let all: Vec<usize> = (0..16).collect();
        let general = |out: &mut Vec<Goal>, which: &[usize]| {
            out.extend(
                which.iter().map(|&n| (format!("general register {n}"), one.general[n], two.general[n])),
            );
        };
        let bit = [terms.constant(1, 0), terms.constant(1, 1)];
        let never = |out: &mut Vec<Goal>, why: String| out.push((why, bit[0], bit[1]));
        let contents = |out: &mut Vec<Goal>, terms: &mut Terms| {
            let (a, b) = (contents_of(terms, one), contents_of(terms, two));
            out.push(("x87's tags".to_owned(), one.tags, two.tags));
            out.push(("x87's registers".to_owned(), a, b));
        };
        let float = |out: &mut Vec<Goal>, terms: &mut Terms, want: Float| {
            for (n, state) in ran.end.iter().enumerate() {
                if let Some(value) = want.tags[n] {
                    out.push(("x87's tags".to_owned(), state.tags, terms.constant(2, value)));
                }
            }
            if want.same_tags {
                out.push(("x87's tags".to_owned(), one.tags, two.tags));
            }
            let (a, b) = match want.contents {
                Contents::Differ => return,
                Contents::SameUnlessEmpty => (contents_of(terms, one), contents_of(terms, two)),
                Contents::Same => (one.float, two.float),
            };
            out.push(("x87's registers".to_owned(), a, b));
        };
        let holds = |out: &mut Vec<Goal>, registers: &[Register], what: &str| {
            for register in registers.iter().filter(|register| frame.homes.contains(register)) {
                never(out, format!("{register:?} {what}"));
            }
        };
        let vector = |n: u32| Register::ZMM0 + n;
        // A function of the file is judged by itself.
        let arguments = |out: &mut Vec<Goal>, callee: &Callee| {
            if !matches!(callee, Callee::Local(_)) {
                let all: Vec<Register> = (0..8).map(vector).collect();
                holds(out, &all, "may carry an argument");
            }
        };
        let with: Vec<usize> = ARGUMENTS.iter().chain(&KEPT).copied().collect();
        let passed: Vec<usize> = ARGUMENTS.iter().copied().chain([4]).collect();
        let mut carried = None;
        match &block.end {
            // A conditional jump to another function also falls through.
            End::Goes | End::Tail(_) => {
                if let End::Tail(callee) = &block.end {
                    general(out, if matches!(callee, Callee::Outside(_)) { &with } else { &all });
                    contents(out, terms);
                    arguments(out, callee);
                }
                for (way, next) in block.next.iter().enumerate() {
                    if let Some(taken) = ran.taken
                        && closed.contains(&(pair, way))
                    {
                        let never = terms.constant(1, 1 - way as u64);
                        out.push(("a way that is never taken".to_owned(), taken, never));
                        continue;
                    }
                    let want = &known[next];
                    for (&n, &(low, high)) in &want.numbers {
                        // Only on this way.
                        let value = terms.constant(1, 1);
                        let real = terms.within(one.general[n], low, high);
                        let real = match ran.taken {
                            Some(taken) if way == 1 => terms.choose(taken, real, value),
                            Some(taken) => terms.choose(taken, value, real),
                            None => real,
                        };
                        out.push(("a number".to_owned(), real, value));
                    }
                    let same: Vec<usize> = all.iter().copied().filter(|n| !want.differ.contains(n)).collect();
                    general(out, &same);
                    float(out, terms, want.float);
                    carried = Some(carried.map_or(want.clone(), |mut old: Known| {
                        // Each way asks for its own.
                        old.frame.extend(want.frame.clone());
                        old.short.extend(&want.short);
                        old.equal.extend(&want.equal);
                        old.fixed.extend(want.fixed.clone());
                        old.stored.extend(want.stored.clone());
                        old.constants.extend(want.constants.clone());
                        old
                    }));
                }
            }
            End::Call(callee) => {
                match callee {
                    Callee::Local(entry) => {
                        general(out, &all);
                        let (_, theirs) =
                            self.frames.get(entry).map_or((None, frame), |(_, theirs)| (Some(()), theirs));
                        for register in frame.homes.difference(&theirs.homes) {
                            never(out, format!("{register:?} is used by a callee"));
                        }
                        let changed = self.summaries.get(entry).and_then(|summary| summary.changed.clone());
                        let mut below = self.both.below(*entry);
                        below.insert(*entry);
                        for register in theirs.homes.difference(&frame.homes) {
                            // A register that nothing there names is changed only by code outside, and equally.
                            let named =
                                below.iter().any(|n| self.both.functions[n].names[1].contains(register));
                            let parts = Home::parts(*register);
                            let kept =
                                |changed: &BTreeSet<Home>| parts.iter().all(|part| !changed.contains(part));
                            if named && !changed.as_ref().is_some_and(kept) {
                                never(out, format!("{register:?} is changed by a callee"));
                            }
                        }
                        if let Some(want) = self.entries.get(entry) {
                            float(out, terms, want.float);
                            let want = want.constants.iter().map(|(&home, &value)| (two.homes[&home], value));
                            let want: Vec<(Term, u64)> = want.collect();
                            for (term, value) in want {
                                out.push(("a mask".to_owned(), term, terms.constant(64, value)));
                            }
                        }
                    }
                    Callee::Outside(_) | Callee::Unknown => {
                        general(out, if matches!(callee, Callee::Unknown) { &all } else { &passed });
                        contents(out, terms);
                    }
                }
                arguments(out, callee);
                // What is kept after the call was true before it.
                carried = block.next.first().and_then(|next| known.get(next)).cloned();
            }
            End::Return => {
                let results: Vec<usize> = RESULTS.iter().chain(&KEPT).copied().collect();
                general(out, if function.entered { &results } else { &all });
                if function.entered {
                    contents(out, terms);
                    holds(out, &[vector(0), vector(1)], "may carry a result");
                }
                if let Some(float_of) = self.summaries[&function.id].float {
                    float(out, terms, float_of);
                }
            }
            End::Stops => return,
        }
        if let Some(want) = carried {
            if matches!(block.end, End::Call(_)) {
                let kept: Vec<usize> = KEPT.iter().copied().filter(|n| !want.differ.contains(n)).collect();
                general(out, &kept);
                for (&n, &(low, high)) in &want.numbers {
                    let within = terms.within(one.general[n], low, high);
                    out.push(("a number".to_owned(), within, terms.constant(1, 1)));
                }
            }
            for &n in &want.short {
                let high = terms.extract(63, 32, one.general[n]);
                out.push(("a short number".to_owned(), high, terms.constant(32, 0)));
            }
            for (&n, &cell) in &want.frame {
                let address = frame.address(terms, cell);
                out.push(("an address of the frame".to_owned(), one.general[n], address));
            }
            for (cell, home) in &want.equal {
                let value = terms.resize(two.homes[home], 8 * frame.moved[cell]);
                out.push((format!("the slot at {} in {home:?}", cell.offset), one.cells[cell], value));
            }
            for (cell, value) in &want.fixed {
                let size = frame.moved[cell];
                out.push((
                    "a number in a slot".to_owned(),
                    one.cells[cell],
                    terms.constant(8 * size, *value),
                ));
            }
            for (&cell, &(bits, number)) in &want.stored {
                let address = frame.address(terms, cell);
                let value = terms.load(one.memory, address, bits);
                out.push(("a number in the frame".to_owned(), value, terms.constant(bits, number)));
            }
            for (home, value) in &want.constants {
                out.push(("a mask".to_owned(), two.homes[home], terms.constant(64, *value)));
            }
        }
        // What callers rely on.
        if self.summaries[&function.id].leaves_float {
            for (begin, end) in ran.begin.iter().zip(&ran.end) {
                out.push(("x87's tags are a caller's".to_owned(), begin.tags, end.tags));
                out.push(("x87's registers are a caller's".to_owned(), begin.float, end.float));
            }
        }
        if let Some(changed) = &self.summaries[&function.id].changed {
            for (home, &value) in &ran.begin[1].homes {
                if !changed.contains(home) {
                    out.push((format!("{home:?} is a caller's"), value, two.homes[home]));
                }
            }
        }
    }
}
