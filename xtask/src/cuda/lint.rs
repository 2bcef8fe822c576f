//! What the machine code of a kernel that holds secrets may not do.
//!
//! What a kernel loads from memory counts as secret, and so does everything computed from it. The exceptions are loads through
//! pointers from arguments that `kernels.toml` calls public, or to the module's own constants. Arguments themselves, and the
//! numbers of threads and blocks, are public. The lint refuses branches, exits and calls under a secret predicate, jumps through a
//! register, and secret addresses and shuffle lanes. It refuses memory accesses that a secret decides, and secrets written to
//! public or unknown memory. It refuses local memory (spilled registers lie where others may find them), calls that leave the
//! kernel, and unknown instructions. The dot product with 1 of `lw_declassify` makes its value public, and so does the one with a
//! single 128 of `lw_public_row`; both are counted. Dot products with other numbers are compilers' multiplications.
#![forbid(unsafe_code)]

use super::flow::{Flow, Memory, addressed, guarded, read, releases};
use super::sass::{Cell, Function, Instruction};
use super::state::State;

/// What was found in a kernel.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Why it is refused, with the instruction.
    pub(super) refusals: Vec<String>,
    /// Instructions that make a value public.
    pub(super) declassified: usize,
}

/// How an instruction treats its operands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
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
    /// Jumps, or ends.
    Jump,
    /// Has no result and reveals no secret.
    Still,
    /// A dot product; with 1 it makes its value public.
    Dot,
    /// Is forbidden.
    Refused(&'static str),
}

pub(super) fn kind(i: &Instruction) -> Option<Kind> {
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
        "NOP" | "BAR" | "BSSY" | "BSYNC" | "WARPSYNC" | "ENDCOLLECTIVE" | "MEMBAR" | "ERRBAR"
        | "CGAERRBAR" | "DEPBAR" | "LDGDEPBAR" | "CCTL" | "YIELD" | "BMOV" | "NANOSLEEP" | "PMTRIG" => {
            Kind::Still
        }
        "IDP" => Kind::Dot,
        "LDL" | "STL" => Kind::Refused("local memory"),
        "BRX" | "JMX" | "BRXU" | "JMXU" => Kind::Refused("a jump through a register"),
        // Compilers move collectives in code that may diverge into routines and call those. Other calls leave the kernel.
        "CALL" if i.has("REL") && i.target().is_some() => Kind::Jump,
        "RET" if i.has("REL") => Kind::Jump,
        "CALL" | "RET" | "JMP" => Kind::Refused("a call that the lint does not follow"),
        _ => return None,
    })
}

pub(super) fn predicate(cell: Cell) -> bool {
    matches!(cell, Cell::Predicate(_) | Cell::UniformPredicate(_))
}

pub(super) fn next(cell: Cell, by: u16) -> Cell {
    match cell {
        Cell::Register(n) => Cell::Register(n + by),
        Cell::Uniform(n) => Cell::Uniform(n + by),
        other => other,
    }
}

/// How many registers a result has.
pub(super) fn width(i: &Instruction) -> u16 {
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
pub(super) fn results(i: &Instruction, kind: Kind) -> usize {
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
        Kind::Compute | Kind::Load | Kind::Constant | Kind::Atomic | Kind::Dot => {
            if i.root == "VOTE" || i.root == "VOTEU" {
                // The last operand is voted on.
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

/// What the instruction reads, except for addresses.
pub(super) fn sources(i: &Instruction, from: usize) -> Vec<Cell> {
    let mut last = i.operands.len().saturating_sub(1);
    if i.operands
        .get(last)
        .is_some_and(|o| o.text.trim_start_matches('!') == "PT" || o.value.iter().any(|c| predicate(*c)))
    {
        last = last.saturating_sub(1);
    }
    let mut cells = Vec::new();
    for (n, operand) in i.operands.iter().enumerate().skip(from) {
        for cell in operand.value.iter().filter(|cell| i.root != "P2R" || masked(i, **cell)) {
            let wide = match i.root.as_str() {
                "BMMA" | "IMMA" | "HMMA" => 4,
                // The sum that a wide product is added to; a carry may follow it.
                "IMAD" | "UIMAD" if i.has("WIDE") && n == last => 2,
                _ => 1,
            };
            cells.extend((0..wide).map(|by| next(*cell, by)));
        }
    }
    cells
}

/// Whether a mask of predicates, the last operand, selects this one.
pub(super) fn masked(i: &Instruction, cell: Cell) -> bool {
    let (Cell::Predicate(n) | Cell::UniformPredicate(n)) = cell else { return true };
    i.target().is_none_or(|mask| mask >> n & 1 == 1)
}

/// Lints a kernel.
pub(super) fn judge(function: &Function, memory: Memory) -> Findings {
    let mut findings = Findings::default();
    let mut flow = Flow::new(function, memory);
    flow.run(|i, state, memory| {
        findings.declassified += usize::from(releases(i, state, memory));
        if let Some(why) = refuse(i, state, memory) {
            findings.refusals.push(format!("{:#06x} {}: {why}", i.at, i.text));
        }
    });
    findings.refusals.extend(flow.lost);
    findings
}

/// Why the instruction is refused, given what is known before it.
fn refuse(i: &Instruction, state: &State, memory: &Memory) -> Option<&'static str> {
    let Some(kind) = kind(i) else { return Some("an instruction that the lint does not know") };
    if let Kind::Refused(why) = kind {
        return Some(why);
    }
    let guarded = guarded(i, state);
    let secret = |cells: &[Cell]| cells.iter().any(|cell| read(i, *cell, state).is_secret());
    let address = addressed(i, state);
    if address.is_secret() {
        return Some("an address from a secret");
    }
    match kind {
        Kind::Jump if guarded || i.operands.iter().any(|o| secret(&o.value)) => {
            Some("a secret decides where control goes")
        }
        Kind::Load | Kind::Store | Kind::Atomic | Kind::Constant if guarded => {
            Some("a secret decides whether memory is touched")
        }
        Kind::Store | Kind::Atomic
            if !matches!(i.root.as_str(), "STS" | "ATOMS" | "LDGSTS")
                && memory.may_be_public(address.from)
                && secret(&stored(i)) =>
        {
            Some("a secret is written to public or unknown memory")
        }
        Kind::Still if guarded => Some("a secret decides whether threads wait"),
        _ if i.root == "SHFL" && i.operands.get(3).is_some_and(|lane| secret(&lane.value)) => {
            Some("a secret decides which lane is read")
        }
        _ => None,
    }
}

/// The cells that are stored.
fn stored(i: &Instruction) -> Vec<Cell> {
    let wide = if i.has("128") {
        4
    } else if i.has("64") {
        2
    } else {
        1
    };
    let address = i.operands.iter().position(|o| !o.address.is_empty()).unwrap_or(0);
    let cells = i.operands.iter().skip(address + 1).flat_map(|o| &o.value);
    cells.flat_map(|cell| (0..wide).map(|by| next(*cell, by))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::{sass, signature};

    /// The listing of `plants.cu`, which `cargo xtask cuda` also recompiles and lints.
    const PLANTS: &str = include_str!("plants/plants.sass");

    #[test]
    fn every_plant_is_refused_and_the_others_pass() {
        let functions = sass::parse(PLANTS).unwrap();
        let source = include_str!("plants/plants.cu");
        assert!(functions.len() >= 18, "{}", functions.len());
        for function in functions {
            let open = if function.name.contains("_open_") { vec!["open".to_owned()] } else { Vec::new() };
            let memory = signature::memory(source, &function.name, &function.architecture, &open, None);
            let findings = judge(&function, memory.unwrap());
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
        let function = &sass::parse(&format!("code for sm_90\nFunction : f\n{listing}")).unwrap()[0];
        // Two pointers, the second to public memory.
        let words = [(true, false), (true, false), (true, true), (true, true)];
        judge(function, Memory::of("sm_90", words).with_constants(vec![1, 5]))
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
        // The branch is first reached with a public R4, then with what the loop loads.
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
        // The return address is followed to where it was set, also through another register.
        let mut moved = lines("@P0 BRA 0x0");
        moved[5] = "MOV R10, R9";
        moved[2] = "CALL.REL.NOINC 0x50";
        moved[7] = "RET.REL.NODEC R10 0x0";
        assert_eq!(code(&moved).refusals.len(), 1);
        // A return to an unknown address, and a call out of the kernel.
        let mut lost = lines("NOP");
        lost[1] = "IADD3 R9, R9, 0x40, RZ";
        assert_eq!(code(&lost).refusals.len(), 1);
        let mut gone = lines("NOP");
        gone[2] = "CALL.REL.NOINC 0x4000";
        assert_eq!(code(&gone).refusals.len(), 1);
    }

    #[test]
    fn what_is_public_is_known_by_its_pointer() {
        let lines = |pointer, load| {
            [
                "LDC.64 R2, X",
                "IADD3 R2, P1, R2, R0, RZ",
                "LDG.E R4, desc[UR4][R2.64]",
                "IMAD.WIDE R6, R4, 0x4, R8",
                "Y",
            ]
            .map(|line: &str| line.replace('X', pointer).replace('Y', load))
        };
        let of = |pointer, load| {
            let lines = lines(pointer, load);
            let lines: Vec<&str> = lines.iter().map(String::as_str).chain(["EXIT"]).collect();
            code(&lines).refusals.len()
        };
        let (secret, public, module) = ("c[0x0][0x210]", "c[0x0][0x218]", "c[0x4][0x8]");
        let load = "LDG.E R1, desc[UR4][R6.64]";
        assert_eq!((of(secret, load), of(public, load), of(module, load)), (1, 0, 0));
        // Another bank, or an unknown place in it, proves nothing.
        assert_eq!((of("c[0x3][0x218]", load), of("c[0x0][R5+0x218]", load)), (1, 1));
        // A difference of two pointers is not the public one of them.
        let mixed = "IADD3 R2, R2, c[0x0][0x210], RZ";
        let after =
            ["LDC.64 R2, c[0x0][0x218]", mixed, "LDG.E R4, desc[UR4][R2.64]", "LDG.E R1, [R4.64]", "EXIT"];
        assert_eq!(code(&after).refusals.len(), 1);
        // Public memory stays public: no secret is written there, or to an unknown place.
        let store = |pointer, value| {
            let lines = lines(pointer, "NOP");
            let address = if value == "R9" { "LDG.E R9, desc[UR4][R20.64]" } else { "NOP" };
            let text = format!("STG.E.64 desc[UR4][R2.64], {value}");
            code(&[&lines[0], address, &lines[1], &text, "EXIT"]).refusals.len()
        };
        assert_eq!((store(secret, "R9"), store(public, "R9"), store(module, "R9")), (0, 1, 1));
        assert_eq!((store("c[0x3][0x8]", "R9"), store(public, "R12")), (1, 0));
        // The second of two registers counts.
        let wide = [
            "LDG.E R9, desc[UR4][R20.64]",
            "LDC.64 R2, c[0x0][0x218]",
            "STG.E.64 desc[UR4][R2.64], R8",
            "EXIT",
        ];
        assert_eq!(code(&wide).refusals.len(), 1);
    }

    #[test]
    fn bytes_that_are_kept_apart_are_told_apart() {
        let load = "LDG.E R4, desc[UR4][R2.64]";
        // A public half beside a secret one.
        let half = "PRMT R4, R0, 0x7610, R4";
        let of = |lines: &[&str]| {
            let all: Vec<&str> = [load, half]
                .into_iter()
                .chain(lines.iter().copied())
                .chain(["LDS R1, [R5]", "EXIT"])
                .collect();
            code(&all).refusals.len()
        };
        let low = "LOP3.LUT R5, R5, 0xffff, RZ, 0xc0, !PT";
        assert_eq!(of(&["LOP3.LUT R5, R4, 0xffff, RZ, 0xc0, !PT"]), 0);
        assert_eq!(of(&["LOP3.LUT R5, R4, 0x10000, RZ, 0xc0, !PT"]), 1);
        assert_eq!(of(&["LOP3.LUT R5, R4, 0xffff, RZ, 0xfc, !PT"]), 1);
        for sum in [
            "IMAD R5, R0, 0x3, R4",
            "IADD3 R5, R4, R4, RZ",
            "LEA R5, R4, 0x10, 0x2",
            "LEA.HI R5, R0, R4, RZ, 0x1b",
        ] {
            assert_eq!((of(&[sum, low]), of(&[sum])), (0, 1), "{sum}");
        }
        for down in
            ["SHF.R.U32.HI R5, RZ, 0x1, R4", "LEA.HI R5, R4, R0, RZ, 0x1b", "IMAD.HI.U32 R5, R4, R0, RZ"]
        {
            assert_eq!(of(&[down, low]), 1, "{down}");
        }
        assert_eq!(of(&["PRMT R5, R4, 0x1010, R0"]), 0);
        assert_eq!(of(&["PRMT R5, R4, 0x1012, R0"]), 1);
    }

    #[test]
    fn a_product_by_another_number_than_1_makes_nothing_public() {
        let of =
            |one: &str, dot: &str| code(&["LDG.E R4, desc[UR4][R2.64]", one, dot, "LDS R1, [R5]", "EXIT"]);
        let dot = "IDP.2A.LO.U16.U8 R5, R4, UR6, RZ";
        let found = of("UMOV UR6, 0x1", dot);
        assert_eq!((found.refusals.len(), found.declassified), (0, 1));
        for (one, dot) in [
            ("UMOV UR6, 0x5", dot),
            ("ULDC UR6, c[0x0][0x210]", dot),
            ("UMOV UR6, 0x1", "IDP.2A.LO.U16.U8 R5, R4, UR6, R0"),
            ("UMOV UR6, 0x1", "IDP.4A.U8.U8 R5, R4, UR6, RZ"),
            ("NOP", "IDP.2A.LO.U16.U8 R5, R4, c[0x2][0x4], RZ"),
        ] {
            let found = of(one, dot);
            assert_eq!((found.refusals.len(), found.declassified), (1, 0), "{one}; {dot}");
        }
        // The kernel's own constants are known.
        let found = of("NOP", "IDP.2A.LO.U16.U8 R5, R4, c[0x2][0x0], RZ");
        assert_eq!((found.refusals.len(), found.declassified), (0, 1));
    }

    #[test]
    fn a_row_of_a_table_is_public_where_it_begins_at_what_is_public() {
        let of = |factor: &str, dot: &str| {
            code(&["LDG.E R4, desc[UR4][R2.64]", factor, dot, "LDS R1, [R5]", "EXIT"])
        };
        let row = "IDP.4A.U8.U8 R5, R4.reuse, UR6, R0";
        for byte in ["0x80", "0x8000", "0x800000", "0x80000000"] {
            let found = of(&format!("UMOV UR6, {byte}"), row);
            assert_eq!((found.refusals.len(), found.declassified), (0, 1), "{byte}");
        }
        for (factor, dot) in [
            ("UMOV UR6, 0x81", row),
            ("UMOV UR6, 0x8080", row),
            ("ULDC UR6, c[0x0][0x210]", row),
            // Rows of a table in an unknown place.
            ("UMOV UR6, 0x80", "IDP.4A.U8.U8 R5, R0, UR6, R4"),
            ("UMOV UR6, 0x80", "IDP.4A.S8.U8 R5, R4, UR6, R0"),
            ("UMOV UR6, 0x80", "IDP.2A.LO.U16.U8 R5, R4, UR6, R0"),
        ] {
            let found = of(factor, dot);
            assert_eq!((found.refusals.len(), found.declassified), (1, 0), "{factor}; {dot}");
        }
    }

    #[test]
    fn a_predicate_on_both_sides_is_one_condition() {
        let load = "LDG.E R4, desc[UR4][R2.64]";
        let address = "@!P0 LDC.64 R4, c[0x0][0x210]";
        let of = |use_of: &str| code(&[load, address, use_of, "EXIT"]).refusals.len();
        assert_eq!(of("@!P0 LDG.E R6, desc[UR4][R4.64]"), 0);
        for other in ["@P0", "@!P1", ""] {
            assert_eq!(of(&format!("{other} LDG.E R6, desc[UR4][R4.64]")), 1, "{other}");
        }
        // Not if it was written in between.
        let between =
            [load, address, "ISETP.NE.AND P0, PT, R0, RZ, PT", "@!P0 LDG.E R6, desc[UR4][R4.64]", "EXIT"];
        assert_eq!(code(&between).refusals.len(), 1);
        // A branch under it counts as well, in both directions.
        let ways = [load, address, "@P0 BRA 0x40", "LDG.E R6, desc[UR4][R4.64]", "EXIT"];
        assert_eq!(code(&ways).refusals.len(), 0);
        let ways = [load, address, "@!P0 BRA 0x40", "LDG.E R6, desc[UR4][R4.64]", "EXIT"];
        assert_eq!(code(&ways).refusals.len(), 1);
    }

    #[test]
    fn a_comparison_looks_where_the_predicate_joined_to_it_lets_it() {
        let load = "LDG.E R4, desc[UR4][R2.64]";
        let of = |write: &str, test: &str| code(&[load, write, test, "@P2 BRA 0x0", "EXIT"]).refusals.len();
        let under = "@!P1 MOV R4, 0x1";
        // Where P1 is true R4 is secret, but there "and" is false and "or" is true whatever R4 holds.
        assert_eq!(of(under, "ISETP.EQ.AND P2, PT, R4, RZ, !P1"), 0);
        assert_eq!(of(under, "ISETP.EQ.OR P2, PT, RZ, R4, P1"), 0);
        for other in [
            "ISETP.EQ.AND P2, PT, R4, RZ, P1",
            "ISETP.EQ.OR P2, PT, R4, RZ, !P1",
            "ISETP.EQ.XOR P2, PT, R4, RZ, !P1",
            "ISETP.EQ.AND P2, PT, R4, RZ, !P3",
            "ISETP.EQ.AND P2, PT, R4, RZ, PT",
            "ISETP.EQ.AND.EX P2, PT, R4, RZ, PT, !P1",
        ] {
            assert_eq!(of(under, other), 1, "{other}");
        }
        assert_eq!(of("@P1 MOV R4, 0x1", "ISETP.EQ.AND P2, PT, R4, RZ, !P1"), 1);
        // A predicate that is itself secret excuses nothing.
        let secret =
            ["ISETP.NE.AND P1, PT, R4, RZ, PT", "@!P1 MOV R4, 0x1", "ISETP.EQ.AND P2, PT, R4, RZ, !P1"];
        assert_eq!(code(&[&[load][..], &secret, &["@P2 BRA 0x0", "EXIT"]].concat()).refusals.len(), 1);
    }

    #[test]
    fn what_is_not_known_and_jumps_through_registers_are_refused() {
        for line in [
            "DADD R0, R2, R4",
            "BRX R2 0x10",
            "CALL.ABS.NOINC 0x10",
            "STL [R1], R0",
            "BAR.RED.POPC.DEFER_BLOCKING 0x0, P0",
        ] {
            assert_eq!(code(&[line, "EXIT"]).refusals.len(), 1, "{line}");
        }
    }
}
