//! Controls for the layout that changes with the length of instructions.
//!
//! A move to a register is shorter or longer than one to the stack, so all code of a rewritten function moves, which
//! alone can change its time by percents. Two texts separate this effect. In the *placebo* the values stay on the stack, in
//! the *levelled* text they live in their homes, and every instruction has the same place in both: the shorter of the
//! two is padded with meaningless prefixes where these suffice, so that no instruction is added, and otherwise with
//! `nop`. The clearing of homes at a function's end, and `emms`, are `nop` of their length in the placebo.
#![forbid(unsafe_code)]

use core::fmt;
use core::ops::Range;
use std::collections::{BTreeMap, HashMap};

use crate::assembler::Place;
use crate::program::{Program, ProgramError};
use crate::rewrite::Rewritten;
use crate::text::Edits;

/// Prefixes that one instruction takes at most: decoders slow down for more.
const PREFIXES: usize = 4;
/// A segment without meaning for a 64-bit program.
const PREFIX: &str = "0x3e";

/// The two texts of one layout.
#[derive(Clone, Debug)]
pub struct Layouts {
    /// The values on the stack.
    pub placebo: String,
    /// The values in their homes; `None` if the rewritten text itself has this layout.
    pub level: Option<String>,
}

/// Why the pair cannot be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum LayoutError {
    /// One of the texts is not a program.
    Program(ProgramError),
    /// The code of this line of the original text has different places in the two.
    Differs {
        /// The file.
        file: String,
        /// The line.
        line: usize,
    },
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LayoutError::Program(e) => e.fmt(f),
            LayoutError::Differs { file, line } => {
                write!(f, "{file}:{line}: this instruction could not be put at the same place in both texts")
            }
        }
    }
}

impl core::error::Error for LayoutError {}

impl From<ProgramError> for LayoutError {
    fn from(e: ProgramError) -> LayoutError {
        LayoutError::Program(e)
    }
}

/// Instructions that do nothing, of `bytes` in all, as few as possible.
fn nops(mut bytes: usize) -> Vec<String> {
    // The forms that processors' manuals advise.
    const FORMS: [&str; 9] = [
        "0x90",
        "0x66,0x90",
        "0x0f,0x1f,0x00",
        "0x0f,0x1f,0x40,0x00",
        "0x0f,0x1f,0x44,0x00,0x00",
        "0x66,0x0f,0x1f,0x44,0x00,0x00",
        "0x0f,0x1f,0x80,0x00,0x00,0x00,0x00",
        "0x0f,0x1f,0x84,0x00,0x00,0x00,0x00,0x00",
        "0x66,0x0f,0x1f,0x84,0x00,0x00,0x00,0x00,0x00",
    ];
    let mut out = Vec::new();
    while bytes > 0 {
        let now = bytes.min(FORMS.len());
        out.push(format!(".byte {}", FORMS[now - 1]));
        bytes -= now;
    }
    out
}

/// Instructions padded by `bytes`.
fn filled(said: &str, bytes: usize, single: bool) -> String {
    match bytes {
        0 => said.to_owned(),
        n if single && n <= PREFIXES => format!(".byte {}\n\t{said}", vec![PREFIX; n].join(",")),
        n => format!("{said}\n\t{}", nops(n).join("\n\t")),
    }
}

/// The lengths of instructions, by the beginning of their text.
struct Lengths(BTreeMap<usize, usize>);

impl Lengths {
    fn of(program: &Program) -> Lengths {
        let start = |op: &crate::program::Op| program.text.statements()[op.statement].span.start;
        Lengths(program.ops.iter().map(|op| (start(op), op.instruction.len())).collect())
    }

    fn within(&self, part: &Range<usize>) -> Vec<usize> {
        self.0.range(part.clone()).map(|(_, &bytes)| bytes).collect()
    }
}

/// The placebo and the levelled text of a rewriting of `program`.
///
/// # Errors
/// [`LayoutError`].
pub fn layouts(program: &Program, rewritten: &Rewritten) -> Result<Layouts, LayoutError> {
    let (text, parts) = program.text.edited_parts(&rewritten.edits);
    let after = Program::new(&program.file, text)?;
    let (old, new) = (Lengths::of(program), Lengths::of(&after));
    let said = |part: &Range<usize>| &after.text.text()[part.clone()];
    let (mut placebo, mut level) = (Edits::default(), Edits::default());
    let mut padded = false;
    for (&statement, parts) in &parts {
        for (part, before) in [(&parts.before, true), (&parts.behind, false)] {
            if part.is_empty() {
                continue;
            }
            let idle: Vec<String> = new.within(part).into_iter().flat_map(nops).collect();
            if before {
                placebo.before(statement, idle.iter().map(|nop| nop.clone() + "\n\t").collect::<String>());
                level.before(statement, said(part));
            } else {
                placebo.behind(statement, idle.iter().map(|nop| format!("\n\t{nop}")).collect::<String>());
                level.behind(statement, said(part));
            }
        }
        if parts.replaced {
            let was: usize = old.within(&program.text.statements()[statement].span).iter().sum();
            let now = new.within(&parts.itself);
            let (single, now) = (now.len() == 1, now.iter().sum::<usize>());
            placebo.instead(statement, filled(program.text.of(statement), now.saturating_sub(was), single));
            level.instead(statement, filled(said(&parts.itself), was.saturating_sub(now), single));
            padded |= was > now;
        }
    }
    let placebo = program.text.edited_parts(&placebo);
    let level = program.text.edited_parts(&level);
    same_places(program, [&placebo, &level])?;
    Ok(Layouts { placebo: placebo.0, level: padded.then_some(level.0) })
}

type Edited = (String, BTreeMap<usize, crate::text::Parts>);

/// Checks that every instruction that both texts have from `program` unchanged lies at the same place in both.
fn same_places(program: &Program, texts: [&Edited; 2]) -> Result<(), LayoutError> {
    let places = |(text, parts): &Edited| -> Result<HashMap<usize, Place>, ProgramError> {
        let edited = Program::new(&program.file, text.clone())?;
        // Statements that were not edited keep their order: they are found one after the other.
        let inside = |at: usize| {
            let reach = |p: &crate::text::Parts| p.before.start..p.behind.end;
            parts.values().any(|p| reach(p).contains(&at))
        };
        let kept = edited
            .ops
            .iter()
            .filter(|op| !inside(edited.text.statements()[op.statement].span.start))
            .map(|op| op.place);
        let known = program.ops.iter().filter(|op| !parts.contains_key(&op.statement)).map(|op| op.statement);
        Ok(known.zip(kept).collect())
    };
    let [one, two] = [places(texts[0])?, places(texts[1])?];
    let mut ops = program.ops.iter().filter(|op| one.get(&op.statement) != two.get(&op.statement));
    match ops.next() {
        None => Ok(()),
        Some(op) => Err(LayoutError::Differs {
            file: program.file.clone(),
            line: program.text.statements()[op.statement].line,
        }),
    }
}

/// The bytes of a program's code, alignment between its instructions included.
#[must_use]
pub fn code_bytes(program: &Program) -> u64 {
    let mut sections: HashMap<usize, (u64, u64)> = HashMap::new();
    for op in &program.ops {
        let (from, to) = (op.place.offset, op.place.offset + op.instruction.len() as u64);
        let reach = sections.entry(op.place.section).or_insert((from, to));
        *reach = (reach.0.min(from), reach.1.max(to));
    }
    sections.values().map(|(from, to)| to - from).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Analysis;
    use crate::homes::Bank;
    use crate::plan::{self, Policy, Wish};
    use crate::rewrite::{self, Options};

    const TEXT: &str = "
        .globl f
f:      movq %rdi, -8(%rsp)
        movl %esi, -16(%rsp)
        movq %rdx, -24(%rsp)
        .p2align 4
1:      movq -8(%rsp), %rax
        addq -24(%rsp), %rax
        movl -16(%rsp), %ecx
        decq %rax
        jnz 1b
        ret
";

    fn rewritten(bank: Bank) -> (Program, Rewritten) {
        let analysis = Analysis::new(Program::new("f.s", TEXT).expect("a program"));
        let wish = Wish {
            banks: vec![(bank, None)],
            policy: Policy::Hottest,
            counts: None,
            stay: Default::default(),
            only: Default::default(),
            operands: true,
        };
        let plan = plan::plan(&analysis, &wish);
        assert_eq!(plan.homes.len(), 3, "{:?}", plan.stays);
        let rewritten = rewrite::rewrite(&analysis, &plan, Options::default()).expect("rewritten");
        (analysis.program, rewritten)
    }

    #[test]
    fn every_home_has_a_placebo_of_its_layout() {
        for bank in Bank::ALL {
            let (program, rewritten) = rewritten(bank);
            let both = layouts(&program, &rewritten).unwrap_or_else(|e| panic!("{bank}: {e}"));
            let placebo = Program::new("placebo", both.placebo.clone()).expect("a program");
            let level =
                Program::new("level", both.level.clone().unwrap_or(rewritten.text)).expect("a program");
            // The last instruction is `ret` in both; what differs before it has the same length.
            let last = |program: &Program| program.ops.last().expect("some").place.offset;
            assert_eq!(last(&placebo), last(&level), "{bank}");
            assert!(!both.placebo.contains("mm") && both.placebo.contains("-24(%rsp)"), "{}", both.placebo);
            // A move from and to MMX is shorter than one from and to the stack, one to a lane longer.
            assert_eq!(both.level.is_some(), bank == Bank::Mm, "{bank}");
        }
    }

    #[test]
    fn a_byte_too_many_is_noticed() {
        let program = Program::new("f.s", TEXT).expect("a program");
        let edited = |text: &str| {
            let mut edits = Edits::default();
            edits.before(1, text);
            program.text.edited_parts(&edits)
        };
        assert!(same_places(&program, [&edited("nop\n\t"), &edited(".byte 0x90\n\t")]).is_ok());
        let error =
            same_places(&program, [&edited("nop\n\t"), &edited("nop; nop\n\t")]).expect_err("differs");
        // The first line after the edited one.
        assert_eq!(error.to_string().split(": ").next(), Some("f.s:3"));
    }

    #[test]
    fn what_does_nothing_has_the_length_asked_for() {
        for bytes in 1..40 {
            let program = Program::new("nops", nops(bytes).join("\n") + "\nf: nop\n.globl f\n");
            assert_eq!(program.expect("a program").ops[0].place.offset, bytes as u64);
        }
    }
}
