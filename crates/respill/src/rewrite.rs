//! A plan carried out on the text.
#![forbid(unsafe_code)]

use core::fmt;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use iced_x86::{Mnemonic, OpKind, Register};

use crate::analysis::{Analysis, Unit};
use crate::flow::{Callee, Exit, Function};
use crate::homes::{Home, Style, Syntax};
use crate::plan::Plan;
use crate::program::Program;
use crate::text::{Edits, Kind};

/// Options of the rewritten text.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether homes are cleared at the exits of functions that are called from outside.
    pub wipe: bool,
    /// Whether `emms` is added where needed. Without it the text is wrong, which tests of the check use.
    pub emms: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { wipe: true, emms: true }
    }
}

/// An instruction whose text cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewriteError {
    /// The file.
    pub file: String,
    /// The line.
    pub line: usize,
    /// The instruction.
    pub said: String,
}

impl fmt::Display for RewriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: `{}` cannot be rewritten: its operands cannot be told apart",
            self.file, self.line, self.said
        )
    }
}

impl core::error::Error for RewriteError {}

/// A rewritten text, and its correspondence with the original.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The text.
    pub text: String,
    /// Changed statements of the original text.
    pub changed: BTreeSet<usize>,
    /// The changes themselves.
    pub edits: Edits,
}

impl Rewritten {
    /// The slots that moved in the function of a line of the text, and in those that it calls: what the assembler refuses there.
    #[must_use]
    pub fn moved_at(&self, analysis: &Analysis, plan: &Plan, line: usize) -> BTreeSet<(usize, usize)> {
        let program = &analysis.program;
        let ends = self.text.match_indices('\n').map(|(end, _)| end + 1);
        let Some(at) = core::iter::once(0).chain(ends).nth(line.saturating_sub(1)) else {
            return BTreeSet::new();
        };
        let statements = program.text.statements();
        let (_, parts) = program.text.edited_parts(&self.edits);
        let statement = match parts.iter().rev().find(|(_, parts)| parts.before.start <= at) {
            Some((&statement, parts)) if at < parts.behind.end => statement,
            known => {
                let original = known.map_or(at, |(&s, parts)| statements[s].span.end + at - parts.behind.end);
                statements.partition_point(|statement| statement.span.start < original)
            }
        };
        // Or the last instruction before it.
        let Some(op) = (0..program.ops.len()).rev().find(|&op| program.ops[op].statement <= statement) else {
            return BTreeSet::new();
        };
        let owners =
            (0..analysis.units.len()).filter(|&n| analysis.units[n].function.body.binary_search(&op).is_ok());
        let all: BTreeSet<usize> = owners.flat_map(|n| analysis.below(n).into_iter().chain([n])).collect();
        plan.homes.keys().filter(|(n, _)| all.contains(n)).copied().collect()
    }
}

/// Carries out a plan.
///
/// # Errors
/// [`RewriteError`]: nothing is changed then.
pub fn rewrite(analysis: &Analysis, plan: &Plan, options: Options) -> Result<Rewritten, RewriteError> {
    let program = &analysis.program;
    let syntaxes = syntaxes(analysis);
    let mut edits = Edits::default();
    let mut changed = BTreeSet::new();
    let homes: Vec<BTreeSet<Home>> = (0..analysis.units.len()).map(|n| homes(analysis, plan, n)).collect();
    let mut shared: HashMap<usize, Vec<usize>> = HashMap::new();
    for (n, unit) in analysis.units.iter().enumerate() {
        unit.function.exits.keys().for_each(|&op| shared.entry(op).or_default().push(n));
    }
    for (n, unit) in analysis.units.iter().enumerate() {
        let own: BTreeMap<usize, Home> =
            plan.homes.range((n, 0)..(n + 1, 0)).map(|(&(_, s), &h)| (s, h)).collect();
        for (&s, &home) in &own {
            let slot = &unit.slots[s];
            for op in slot.uses() {
                let statement = program.ops[op].statement;
                let style = Style { syntax: syntaxes[&statement], vex: unit.vex };
                edits.instead(statement, changed_text(analysis, unit, op, home, slot.size, style)?);
                changed.insert(statement);
            }
        }
        // A unit that outside code calls prepares and clears its homes and those of all that it calls.
        let all = &homes[n];
        if all.is_empty() {
            continue;
        }
        let mmx = all.iter().any(|home| matches!(home, Home::Mm(_)));
        let indent = |said: Vec<String>| said.into_iter().map(|line| line + "\n\t").collect::<String>();
        if unit.entered {
            let entry = program.ops[behind_mark(program, &unit.function)].statement;
            let style = Style { syntax: syntaxes[&entry], vex: unit.vex };
            let lanes: BTreeSet<u8> = all
                .iter()
                .filter_map(|home| if let Home::Lane { lane, .. } = home { Some(*lane) } else { None })
                .collect();
            let lanes: Vec<u8> = lanes.into_iter().collect();
            edits.before(entry, indent(style.prepare(&lanes)));
            for (&op, exit) in &unit.function.exits {
                if *exit == Exit::Stop {
                    continue;
                }
                let statement = program.ops[op].statement;
                let style = Style { syntax: syntaxes[&statement], vex: unit.vex };
                let mut said = Vec::new();
                // Where a conditional jump leaves, values that live on in the function stay.
                let wanted = &unit.live.after[&op];
                let stays =
                    |home: &Home| wanted.iter().any(|s| own.get(s).is_some_and(|own| own.clashes(*home)));
                let leaves = unit.function.next[&op].is_empty();
                // Code that functions share clears homes only if all of them use the same.
                let common = shared[&op].iter().all(|&other| homes[other] == *all);
                if options.wipe && common {
                    let cleared = all.iter().filter(|home| leaves || lanes.is_empty() && !stays(home));
                    said.extend(cleared.map(|&home| style.wipe(home)));
                    if !lanes.is_empty() && leaves {
                        said.push(style.wipe(Home::Xmm(31)));
                        said.extend(lanes.iter().map(|&lane| style.wipe(Home::K(lane))));
                    }
                }
                if mmx && options.emms {
                    said.push("emms".to_owned());
                }
                edits.before(statement, indent(said));
                changed.insert(statement);
            }
        }
        if mmx && options.emms {
            let calls = unit.function.calls.iter().filter(|(_, call)| goes_outside(analysis, &call.callee));
            // A function that is entered from outside frees MMX at all its exits.
            let jumps =
                unit.function.exits.iter().filter(|(_, exit)| !unit.entered && matches!(exit, Exit::Tail(_)));
            for &op in calls.map(|(op, _)| op).chain(jumps.map(|(op, _)| op)) {
                edits.before(program.ops[op].statement, "emms\n\t");
                changed.insert(program.ops[op].statement);
            }
        }
    }
    Ok(Rewritten { text: program.text.edited(&edits), changed, edits })
}

/// The first instruction, or the one behind an `endbr64` that an indirect call wants to find first. No jump leads in between.
fn behind_mark(program: &Program, function: &Function) -> usize {
    let (entry, next) = (function.entry, function.entry + 1);
    let marked = program.ops[entry].instruction.mnemonic() == Mnemonic::Endbr64;
    let labelled = |to: usize| {
        let between = &program.text.statements()[program.ops[entry].statement..program.ops[to].statement];
        between.iter().any(|statement| statement.kind == Kind::Label)
    };
    if marked && function.next[&entry] == [next] && !labelled(next) { next } else { entry }
}

/// Whether a callee is outside, or may call or jump to code outside, including code that does not return.
fn goes_outside(analysis: &Analysis, callee: &Callee) -> bool {
    let Callee::Local(entry) = callee else { return true };
    let Some(n) = analysis.at(*entry) else { return true };
    let mut all = analysis.below(n).into_iter().chain([n]);
    all.any(|n| analysis.units[n].function.callees().any(|(_, callee)| !matches!(callee, Callee::Local(_))))
}

/// The homes of a unit and of all that it calls.
fn homes(analysis: &Analysis, plan: &Plan, n: usize) -> BTreeSet<Home> {
    let all = analysis.below(n).into_iter().chain([n]);
    all.flat_map(|n| plan.homes.range((n, 0)..(n + 1, 0)).map(|(_, &home)| home)).collect()
}

/// The syntax in force at every statement.
fn syntaxes(analysis: &Analysis) -> HashMap<usize, Syntax> {
    let text = &analysis.program.text;
    let mut now = Syntax::Att;
    let mut out = HashMap::new();
    for (i, statement) in text.statements().iter().enumerate() {
        if statement.kind == Kind::Directive {
            let mut words = text.of(i).split_whitespace();
            match (words.next(), words.next()) {
                (Some(".att_syntax"), _) => now = Syntax::Att,
                (Some(".intel_syntax"), word) => now = Syntax::Intel { prefix: word != Some("noprefix") },
                _ => (),
            }
        }
        out.insert(i, now);
    }
    out
}

/// The replacement of an instruction that names a slot.
fn changed_text(
    analysis: &Analysis,
    unit: &Unit,
    op: usize,
    home: Home,
    size: usize,
    style: Style,
) -> Result<String, RewriteError> {
    let program = &analysis.program;
    let instruction = &program.ops[op].instruction;
    let said = program.said(op);
    let fail = || RewriteError { file: program.file.clone(), line: program.line(op), said: said.to_owned() };
    let register = |n: u32| (instruction.op_kind(n) == OpKind::Register).then(|| instruction.op_register(n));
    if instruction.mnemonic() == Mnemonic::Mov {
        if let Some(from) = register(1) {
            return Ok(style.put(from, home, size));
        }
        if let Some(to) = register(0) {
            return Ok(style.take(home, to, size));
        }
    }
    // Through a free register: taken unless it is only written, put back unless it is only read.
    let free = unit.registers.free(op).ok_or_else(fail)?;
    let name = style.syntax.register(&general_name(free, size));
    let through = with_register(said, &name, style.syntax).ok_or_else(fail)?;
    let mut info = iced_x86::InstructionInfoFactory::new();
    let access = info.info(instruction).op_access(memory_operand(instruction).ok_or_else(fail)?);
    use iced_x86::OpAccess::{CondRead, CondWrite, Read, ReadCondWrite, ReadWrite, Write};
    let mut out = Vec::new();
    if matches!(access, Read | CondRead | ReadWrite | ReadCondWrite | CondWrite) {
        out.push(style.take(home, free, size));
    }
    out.push(through);
    if matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite) {
        out.push(style.put(free, home, size));
    }
    Ok(out.join("\n\t"))
}

fn memory_operand(instruction: &iced_x86::Instruction) -> Option<u32> {
    (0..instruction.op_count()).find(|&n| instruction.op_kind(n) == OpKind::Memory)
}

fn general_name(register: Register, size: usize) -> String {
    let register = if size == 8 { register.full_register() } else { register.full_register32() };
    format!("{register:?}").to_ascii_lowercase()
}

/// Whether the text of an instruction shows which operand is in memory. One in brackets is of Intel's syntax.
pub(crate) fn is_apart(said: &str) -> bool {
    let syntax = if said.contains('[') { Syntax::Intel { prefix: true } } else { Syntax::Att };
    with_register(said, "", syntax).is_some()
}

/// An instruction's text with a register in place of its one memory operand.
fn with_register(said: &str, register: &str, syntax: Syntax) -> Option<String> {
    let open = if syntax == Syntax::Att { '(' } else { '[' };
    let start = said.find(char::is_whitespace)?;
    let (mnemonic, operands) = said.split_at(start);
    let (mut depth, mut begin, mut parts) = (0usize, 0, Vec::new());
    for (i, c) in operands.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                parts.push(&operands[begin..i]);
                begin = i + 1;
            }
            _ => (),
        }
    }
    parts.push(&operands[begin..]);
    if depth != 0 || parts.iter().filter(|part| part.contains(open)).count() != 1 {
        return None;
    }
    let parts: Vec<String> = parts
        .iter()
        .map(|part| if part.contains(open) { register.to_owned() } else { part.trim().to_owned() })
        .collect();
    Some(format!("{mnemonic}\t{}", parts.join(", ")))
}
