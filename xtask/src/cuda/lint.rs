//! What the machine code of a kernel that holds secrets may not do.
//!
//! Everything a kernel loads from memory counts as secret, and so does all that is computed from it. Arguments, constants,
//! and the numbers of threads and blocks are public. From there cells are followed through the code, along every path that
//! control can take, until nothing changes. Refused are: a branch, exit or call under a secret predicate, a jump through a register,
//! an address or the lane of a shuffle from a secret, memory that is touched or not by a secret, local memory (spilled
//! registers lie where others may find them), calls (they hide what they do), and instructions that are not known
//! here. The dot product that `lw_declassify` stands for makes its value public, and is counted.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, HashSet};

use super::sass::{Cell, Function, Instruction};

/// What was found in a kernel.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Why it is refused, with the instruction.
    pub(super) refusals: Vec<String>,
    /// Instructions that make a value public.
    pub(super) declassified: usize,
}

type Secrets = HashSet<Cell>;

/// How an instruction treats its operands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Computes its first operands from the others.
    Compute,
    /// Writes two predicates.
    Compare,
    /// Reads memory into registers.
    Load,
    /// Reads the bank of arguments and constants.
    Constant,
    /// Writes memory, or copies between memories.
    Store,
    /// Reads and writes memory at once.
    Atomic,
    /// Goes elsewhere, or ends.
    Jump,
    /// Has no result and no secret to tell.
    Still,
    /// Makes public.
    Public,
    /// Is not to be there.
    Refused(&'static str),
}

fn kind(i: &Instruction) -> Option<Kind> {
    if i.root == "BAR" && i.has("RED") {
        return None;
    }
    Some(match i.root.as_str() {
        "ISETP" | "UISETP" | "PLOP3" | "UPLOP3" | "PSETP" | "FSETP" => Kind::Compare,
        "IADD3" | "UIADD3" | "IMAD" | "UIMAD" | "LOP3" | "ULOP3" | "SHF" | "USHF" | "SEL" | "USEL"
        | "MOV" | "UMOV" | "PRMT" | "UPRMT" | "LEA" | "ULEA" | "VIADD" | "VIMNMX" | "VIADDMNMX" | "IMNMX"
        | "UIMNMX" | "VABSDIFF" | "POPC" | "UPOPC" | "FLO" | "UFLO" | "BREV" | "UBREV" | "IABS" | "SGXT"
        | "USGXT" | "BMSK" | "UBMSK" | "P2R" | "UP2UR" | "R2P" | "R2UR" | "S2R" | "S2UR" | "CS2R"
        | "SHFL" | "VOTE" | "VOTEU" | "REDUX" | "CREDUX" | "MATCH" | "BMMA" | "IMMA" | "HMMA" | "HFMA2"
        | "FADD" | "FMUL" | "FFMA" | "I2F" | "I2FP" | "F2I" | "MUFU" | "FSEL" | "LEPC" => Kind::Compute,
        "LDG" | "LDS" | "LD" | "LDSM" => Kind::Load,
        "LDC" | "ULDC" => Kind::Constant,
        "STG" | "STS" | "ST" | "LDGSTS" | "RED" => Kind::Store,
        "ATOM" | "ATOMG" | "ATOMS" => Kind::Atomic,
        "BRA" | "EXIT" | "BREAK" | "KILL" => Kind::Jump,
        "NOP" | "BAR" | "BSSY" | "BSYNC" | "WARPSYNC" | "MEMBAR" | "ERRBAR" | "CGAERRBAR" | "DEPBAR"
        | "LDGDEPBAR" | "CCTL" | "YIELD" | "BMOV" | "NANOSLEEP" | "PMTRIG" => Kind::Still,
        "IDP" => Kind::Public,
        "LDL" | "STL" => Kind::Refused("local memory"),
        "BRX" | "JMX" | "BRXU" | "JMXU" => Kind::Refused("a jump through a register"),
        // Collectives in code that may diverge are put aside, and called. Other calls leave the kernel.
        "CALL" if i.has("REL") && i.target().is_some() => Kind::Jump,
        "RET" if i.has("REL") => Kind::Jump,
        "CALL" | "RET" | "JMP" => Kind::Refused("a call, behind which the lint does not look"),
        _ => return None,
    })
}

fn predicate(cell: Cell) -> bool {
    matches!(cell, Cell::Predicate(_) | Cell::UniformPredicate(_))
}

fn next(cell: Cell, by: u16) -> Cell {
    match cell {
        Cell::Register(n) => Cell::Register(n + by),
        Cell::Uniform(n) => Cell::Uniform(n + by),
        other => other,
    }
}

/// How many registers a result has.
fn width(i: &Instruction) -> u16 {
    match i.root.as_str() {
        "BMMA" | "IMMA" | "HMMA" => 4,
        "CS2R" if !i.has("32") => 2,
        "IMAD" | "UIMAD" if i.has("WIDE") => 2,
        "LDSM" if i.has("4") => 4,
        "LDSM" if i.has("2") => 2,
        _ if i.has("128") => 4,
        _ if i.has("64")
            && matches!(
                i.root.as_str(),
                "LDG" | "LDS" | "LD" | "LDC" | "ULDC" | "ATOM" | "ATOMG" | "ATOMS"
            ) =>
        {
            2
        }
        _ => 1,
    }
}

/// The number of operands at the front that are results.
fn results(i: &Instruction, kind: Kind) -> usize {
    let is_predicate = |n: usize| {
        i.operands.get(n).is_some_and(|o| {
            let name = o.text.as_str();
            name == "PT"
                || name == "UPT"
                || (o.value.len() == 1 && predicate(o.value[0]) && !name.starts_with('!'))
        })
    };
    match kind {
        Kind::Compare => 2,
        Kind::Store | Kind::Jump | Kind::Still | Kind::Refused(_) => 0,
        Kind::Compute | Kind::Load | Kind::Constant | Kind::Atomic | Kind::Public => {
            if i.root == "VOTE" || i.root == "VOTEU" {
                // The last is what is voted on.
                return i.operands.len().saturating_sub(1);
            }
            let mut n = 0;
            while is_predicate(n) {
                n += 1;
            }
            // The register itself, then the carries of a sum.
            n += 1;
            if matches!(i.root.as_str(), "IADD3" | "UIADD3" | "LEA" | "ULEA" | "IMAD" | "UIMAD") {
                while is_predicate(n) && n + 1 < i.operands.len() {
                    n += 1;
                }
            }
            n
        }
    }
}

/// What the instruction reads, addresses apart.
fn sources(i: &Instruction, from: usize) -> Vec<Cell> {
    let mut last = i.operands.len().saturating_sub(1);
    if i.operands
        .get(last)
        .is_some_and(|o| o.text.trim_start_matches('!') == "PT" || o.value.iter().any(|c| predicate(*c)))
    {
        last = last.saturating_sub(1);
    }
    let mut cells = Vec::new();
    for (n, operand) in i.operands.iter().enumerate().skip(from) {
        for cell in &operand.value {
            let wide = match i.root.as_str() {
                "BMMA" | "IMMA" | "HMMA" => 4,
                // The sum that a wide product is added to; a carry may stand behind it.
                "IMAD" | "UIMAD" if i.has("WIDE") && n == last => 2,
                _ => 1,
            };
            cells.extend((0..wide).map(|by| next(*cell, by)));
        }
    }
    cells
}

/// Judges a kernel.
pub(super) fn judge(function: &Function) -> Findings {
    let code = &function.code;
    let position: BTreeMap<u64, usize> = code.iter().enumerate().map(|(n, i)| (i.at, n)).collect();
    let mut findings = Findings::default();
    let returns = returns(code, &position, &mut findings);
    // What is secret before each instruction; none until control has been seen to come there.
    let mut before: Vec<Option<Secrets>> = vec![None; code.len()];
    let mut work = Vec::new();
    if !code.is_empty() {
        before[0] = Some(Secrets::new());
        work.push(0);
    }
    while let Some(start) = work.pop() {
        // Straight on while nothing else changes what comes next.
        let mut n = start;
        let Some(mut state) = before[n].clone() else { continue };
        loop {
            step(&code[n], &mut state);
            let mut goes = Vec::new();
            let jump = kind(&code[n]) == Some(Kind::Jump)
                || (code[n].root == "WARPSYNC" && code[n].has("COLLECTIVE"));
            if code[n].root == "RET" {
                goes.extend(&returns);
            } else if let Some(target) = code[n].target().filter(|_| jump) {
                match position.get(&target) {
                    Some(target) => goes.push(*target),
                    None => findings.refusals.push(format!("{}: leaves the kernel", code[n].text)),
                }
            }
            let always = code[n].guard.is_none() && !code[n].text.starts_with('@');
            let stops = always
                && matches!(code[n].root.as_str(), "EXIT" | "BRA" | "KILL" | "RET")
                && plain_jump(&code[n]);
            for target in goes {
                if merge(&mut before[target], &state) {
                    work.push(target);
                }
            }
            if stops || n + 1 >= code.len() || !merge(&mut before[n + 1], &state) {
                break;
            }
            n += 1;
            // What was known there from elsewhere counts as well.
            state = before[n].clone().unwrap_or_default();
        }
    }
    for (i, state) in code.iter().zip(&before) {
        // Padding behind the end is never come to.
        let Some(state) = state else { continue };
        findings.declassified += usize::from(kind(i) == Some(Kind::Public));
        if let Some(why) = refuse(i, state) {
            findings.refusals.push(format!("{:#06x} {}: {why}", i.at, i.text));
        }
    }
    findings
}

/// Where calls inside the kernel come back to: behind each, as the address says that is put into a register for it.
fn returns(code: &[Instruction], position: &BTreeMap<u64, usize>, findings: &mut Findings) -> Vec<usize> {
    let mut returns = Vec::new();
    for call in code.iter().filter(|i| i.root == "CALL") {
        let back = call.at + 16;
        let named = code.iter().any(|i| i.root == "MOV" && i.target() == Some(back));
        match position.get(&back) {
            Some(n) if named => returns.push(*n),
            _ => findings
                .refusals
                .push(format!("{:#06x} {}: a call that comes back nobody knows where", call.at, call.text)),
        }
    }
    returns
}

/// Whether the jump happens whenever it is come to: it has no condition among its operands.
fn plain_jump(i: &Instruction) -> bool {
    i.root == "RET" || i.operands.iter().all(|o| o.value.is_empty()) && !i.has("DIV") && !i.has("CONV")
}

/// Adds what is secret. True where that is news.
fn merge(into: &mut Option<Secrets>, state: &Secrets) -> bool {
    match into {
        None => {
            *into = Some(state.clone());
            true
        }
        Some(known) => {
            let before = known.len();
            known.extend(state);
            known.len() != before
        }
    }
}

/// What is secret after the instruction.
fn step(i: &Instruction, state: &mut Secrets) {
    let Some(kind) = kind(i) else { return };
    let count = results(i, kind);
    let guarded = i.guard.is_some_and(|guard| state.contains(&guard));
    let secret = guarded
        || match kind {
            Kind::Public => false,
            Kind::Load | Kind::Atomic => true,
            _ => sources(i, count).iter().any(|cell| state.contains(cell)),
        };
    let wide = width(i);
    for operand in i.operands.iter().take(count) {
        for cell in &operand.value {
            let run = if predicate(*cell) { 1 } else { wide };
            for cell in (0..run).map(|by| next(*cell, by)) {
                if secret {
                    state.insert(cell);
                } else if i.guard.is_none() && !i.text.starts_with('@') {
                    state.remove(&cell);
                }
            }
        }
    }
}

/// Why the instruction may not be there, with these cells secret.
fn refuse(i: &Instruction, state: &Secrets) -> Option<&'static str> {
    let Some(kind) = kind(i) else { return Some("an instruction that the lint does not know") };
    if let Kind::Refused(why) = kind {
        return Some(why);
    }
    let guarded = i.guard.is_some_and(|guard| state.contains(&guard));
    let secret = |cells: &[Cell]| cells.iter().any(|cell| state.contains(cell));
    if i.operands.iter().any(|o| secret(&o.address)) {
        return Some("an address from a secret");
    }
    match kind {
        Kind::Jump if guarded || i.operands.iter().any(|o| secret(&o.value)) => {
            Some("a secret decides where control goes")
        }
        Kind::Load | Kind::Store | Kind::Atomic | Kind::Constant if guarded => {
            Some("a secret decides whether memory is touched")
        }
        Kind::Still if guarded => Some("a secret decides whether threads wait"),
        _ if i.root == "SHFL" && i.operands.get(3).is_some_and(|lane| secret(&lane.value)) => {
            Some("a secret decides which lane is read")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::sass;

    /// The listing of `plants.cu`, which `cargo xtask cuda` also compiles anew and judges.
    const PLANTS: &str = include_str!("plants/plants.sass");

    #[test]
    fn every_plant_is_refused_and_the_others_pass() {
        let functions = sass::parse(PLANTS).unwrap();
        assert!(functions.len() >= 10, "{}", functions.len());
        for function in functions {
            let findings = judge(&function);
            let passes = findings.refusals.is_empty();
            assert_eq!(
                passes,
                function.name.starts_with("pass_"),
                "{}: {:#?}",
                function.name,
                findings.refusals
            );
            assert_eq!(findings.declassified > 0, function.name == "pass_declassified");
        }
    }

    fn code(lines: &[&str]) -> Findings {
        let listing: String =
            lines.iter().enumerate().map(|(n, line)| format!("/*{:04x}*/ {line} ;\n", n * 16)).collect();
        judge(&sass::parse(&format!("code for sm_90\nFunction : f\n{listing}")).unwrap()[0])
    }

    #[test]
    fn a_secret_keeps_to_its_cell_and_leaves_it_when_overwritten() {
        let load = "LDG.E R4, desc[UR4][R2.64]";
        let branch = "@P0 BRA 0x0";
        let test = "ISETP.NE.AND P0, PT, R4, RZ, PT";
        assert_eq!(code(&[load, test, branch, "EXIT"]).refusals.len(), 1);
        assert_eq!(code(&[load, "MOV R4, 0x1", test, branch, "EXIT"]).refusals.len(), 0);
        // A move under a predicate may not have happened.
        assert_eq!(code(&[load, "@P1 MOV R4, 0x1", test, branch, "EXIT"]).refusals.len(), 1);
        // Two registers are loaded, and a wide sum has two.
        let wide = "LDG.E.64 R4, desc[UR4][R2.64]";
        assert_eq!(code(&[wide, "ISETP.NE.AND P0, PT, R5, RZ, PT", branch, "EXIT"]).refusals.len(), 1);
        let sum = "IMAD.WIDE.U32 R8, R0, 0x4, R4";
        assert_eq!(code(&[wide, sum, "LDG.E R1, desc[UR4][R8.64]", "EXIT"]).refusals.len(), 1);
        // Carries.
        let carry = "IADD3 R6, P0, R4, R5, RZ";
        assert_eq!(code(&[load, carry, branch, "EXIT"]).refusals.len(), 1);
        let carried = "IADD3.X R7, RZ, RZ, RZ, P0, !PT";
        assert_eq!(code(&[load, carry, carried, "STG.E desc[UR4][R6.64], R0", "EXIT"]).refusals.len(), 1);
    }

    #[test]
    fn a_secret_that_comes_round_a_loop_is_seen() {
        // The branch is first met with a public R4, and with what the loop loads afterwards.
        let found = code(&[
            "MOV R4, 0x1",
            "ISETP.NE.AND P0, PT, R4, RZ, PT",
            "@P0 BRA 0x40",
            "EXIT",
            "LDG.E R4, desc[UR4][R2.64]",
            "BRA 0x10",
        ]);
        assert_eq!(found.refusals.len(), 1, "{:?}", found.refusals);
    }

    #[test]
    fn a_secret_is_followed_through_a_call() {
        let lines = |branch| {
            [
                "LDG.E R4, desc[UR4][R2.64]",
                "MOV R9, 0x30",
                "CALL.REL.NOINC 0x60",
                branch,
                "EXIT",
                "NOP",
                "ISETP.NE.AND P0, PT, R4, RZ, PT",
                "RET.REL.NODEC R9 0x0",
            ]
        };
        assert_eq!(code(&lines("@P0 BRA 0x0")).refusals.len(), 1);
        assert_eq!(code(&lines("@P1 BRA 0x0")).refusals.len(), 0);
        // One whose way back is not known.
        let mut lost = lines("NOP");
        lost[1] = "MOV R9, 0x40";
        assert_eq!(code(&lost).refusals.len(), 1);
    }

    #[test]
    fn what_is_not_known_and_jumps_through_registers_are_refused() {
        for line in [
            "DADD R0, R2, R4",
            "BRX R2 0x10",
            "CALL.REL.NOINC 0x10",
            "STL [R1], R0",
            "BAR.RED.POPC.DEFER_BLOCKING 0x0, P0",
        ] {
            assert_eq!(code(&[line, "EXIT"]).refusals.len(), 1, "{line}");
        }
    }
}
