//! Parses machine code as the disassembler prints it.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

/// A thread's or a warp's register, or a predicate of either. Constant ones are left out when code is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Cell {
    Register(u16),
    Uniform(u16),
    Predicate(u16),
    UniformPredicate(u16),
}

/// An operand's cells, the first of each run, and whether they are inside brackets: an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Operand {
    pub(super) text: String,
    /// Cells of the value.
    pub(super) value: Vec<Cell>,
    /// Cells of an address.
    pub(super) address: Vec<Cell>,
    /// The bank of constants, and the offset in it unless a register gives it.
    pub(super) constant: Option<(u64, Option<u64>)>,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) at: u64,
    /// The predicate that guards it.
    pub(super) guard: Option<Cell>,
    /// The name up to the first dot, and all of it.
    pub(super) root: String,
    pub(super) name: String,
    pub(super) operands: Vec<Operand>,
    pub(super) text: String,
}

impl Instruction {
    /// Whether the name has this part.
    pub(super) fn has(&self, part: &str) -> bool {
        self.name.split('.').skip(1).any(|p| p == part)
    }

    /// The address that control may go to.
    pub(super) fn target(&self) -> Option<u64> {
        self.operands.iter().rev().find_map(|o| u64::from_str_radix(o.text.strip_prefix("0x")?, 16).ok())
    }
}

/// A kernel's code for one architecture.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) architecture: String,
    pub(super) code: Vec<Instruction>,
}

/// Parses a whole listing. The error quotes the line that could not be read.
pub(super) fn parse(listing: &str) -> Result<Vec<Function>, String> {
    let mut functions: Vec<Function> = Vec::new();
    let mut architecture = String::new();
    for line in listing.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("Function : ") {
            functions.push(Function {
                name: name.to_owned(),
                architecture: architecture.clone(),
                code: Vec::new(),
            });
        } else if let Some(name) = line.strip_prefix("code for ") {
            architecture = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("/*") {
            let Some((at, rest)) = rest.split_once("*/") else { continue };
            // The second line of an instruction is only its encoding.
            let Ok(at) = u64::from_str_radix(at, 16) else { continue };
            let Some((text, _)) = rest.split_once(';') else { continue };
            let function = functions.last_mut().ok_or_else(|| format!("code before any function: {line}"))?;
            function.code.push(instruction(at, text.trim())?);
        }
    }
    Ok(functions)
}

/// The constants that the compiler made for each kernel (bank 2), by architecture and name, of a listing of the whole binary.
pub(super) fn constants(listing: &str) -> BTreeMap<(String, String), Vec<u32>> {
    let (mut found, mut architecture) = (BTreeMap::new(), String::new());
    let mut name: Option<String> = None;
    for line in listing.lines() {
        if let Some(arch) = line.strip_prefix("arch = ") {
            architecture = arch.trim().to_owned();
        }
        if let Some(kernel) = line.strip_prefix(".nv.constant2.") {
            name = Some(kernel.trim().to_owned());
        } else if let Some(kernel) = &name {
            let words: Option<Vec<u32>> = line
                .split_whitespace()
                .map(|w| u32::from_str_radix(w.strip_prefix("0x")?, 16).ok())
                .collect();
            match words.filter(|words| !words.is_empty()) {
                Some(words) => {
                    let bank: &mut Vec<u32> =
                        found.entry((architecture.clone(), kernel.clone())).or_default();
                    bank.extend(words);
                }
                None => name = None,
            }
        }
    }
    found
}

fn instruction(at: u64, text: &str) -> Result<Instruction, String> {
    let bad = || format!("cannot read '{text}' at {at:#x}");
    let (guard, rest) = match text.strip_prefix('@') {
        Some(rest) => {
            let (guard, rest) = rest.split_once(' ').ok_or_else(bad)?;
            let guard = guard.trim_start_matches('!');
            (predicate(guard).ok_or_else(bad)?, rest.trim())
        }
        None => (None, text),
    };
    let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let operands = split(rest).into_iter().map(operand).collect::<Result<_, _>>().map_err(|()| bad())?;
    let root = name.split('.').next().unwrap_or_default().to_owned();
    Ok(Instruction { at, guard, root, name: name.to_owned(), operands, text: text.to_owned() })
}

/// Operands are separated by commas outside brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0i32, 0, Vec::new());
    for (i, c) in text.char_indices() {
        match c {
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// A predicate such as `P3`: `Some(None)` for a constant one, `None` if the word is not a predicate.
#[expect(clippy::option_option, reason = "not a predicate, a constant one, and a real one are three things")]
fn predicate(word: &str) -> Option<Option<Cell>> {
    let numbered = |text: &str| text.parse::<u16>().ok();
    match word {
        "PT" | "UPT" => Some(None),
        _ => match word.strip_prefix("UP") {
            Some(n) => numbered(n).map(|n| Some(Cell::UniformPredicate(n))),
            None => word.strip_prefix('P').and_then(numbered).map(|n| Some(Cell::Predicate(n))),
        },
    }
}

/// The cells named by a word such as `R12.64` or `UR4`. `PR` is all predicates.
fn cells(word: &str, out: &mut Vec<Cell>) {
    let mut parts = word.split('.');
    let name = parts.next().unwrap_or_default();
    let wide = if parts.any(|part| part == "64") { 2 } else { 1 };
    if name == "PR" || name == "UPR" {
        let all = 0..8;
        out.extend(all.map(|n| if name == "PR" { Cell::Predicate(n) } else { Cell::UniformPredicate(n) }));
    } else if let Some(cell) = predicate(name) {
        out.extend(cell);
    } else if let Some(n) = name.strip_prefix("UR").and_then(|n| n.parse::<u16>().ok()) {
        out.extend((n..n + wide).map(Cell::Uniform));
    } else if let Some(n) = name.strip_prefix('R').and_then(|n| n.parse::<u16>().ok()) {
        out.extend((n..n + wide).map(Cell::Register));
    }
}

/// `c[0x0][0x210]`: the bank and the place, unknown if registers take part.
fn constant(text: &str) -> Option<(u64, Option<u64>)> {
    let (bank, at) = text.split_once("c[")?.1.split_once("][")?;
    let number = |text: &str| match text.strip_prefix("RZ").unwrap_or(text).trim_start_matches('+') {
        "" => Some(0),
        digits => u64::from_str_radix(digits.strip_prefix("0x")?, 16).ok(),
    };
    // A bank that a register names may be that of the arguments.
    Some((number(bank).unwrap_or(0), number(bank).and_then(|_| number(at.split(']').next()?))))
}

fn operand(text: &str) -> Result<Operand, ()> {
    let mut operand = Operand { text: text.to_owned(), constant: constant(text), ..Operand::default() };
    let mut depth = 0usize;
    let mut word = String::new();
    // `desc[..]` describes the memory and is not part of the address; `c[bank][..]` is one.
    let mut descriptor = false;
    for c in text.chars().chain([' ']) {
        if c.is_ascii_alphanumeric() || c == '.' || c == '_' {
            word.push(c);
            continue;
        }
        if c == '[' {
            descriptor = word == "desc";
        } else {
            match (depth, descriptor) {
                (0, _) => cells(&word, &mut operand.value),
                (_, true) => {}
                (_, false) => cells(&word, &mut operand.address),
            }
        }
        word.clear();
        match c {
            '[' => depth += 1,
            ']' => depth = depth.checked_sub(1).ok_or(())?,
            _ => {}
        }
    }
    Ok(operand)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_each_kernels_own() {
        let listing = "arch = sm_89\n 1 .nv.constant2.a\n.nv.constant2.a\n0x00000010 0x00000000\n0x00000001 \n\n0x5\n\
                       arch = sm_90\n.nv.constant2.a\n0x7\n";
        let found = constants(listing);
        assert_eq!(found[&("sm_89".to_owned(), "a".to_owned())], [16, 0, 1]);
        assert_eq!(found[&("sm_90".to_owned(), "a".to_owned())], [7]);
    }

    #[test]
    fn instructions_come_apart() {
        let i = instruction(0x10, "@!P0 LDG.E.64 R10, desc[UR4][R4.64+UR8+0x10]").unwrap();
        assert_eq!((i.guard, i.root.as_str()), (Some(Cell::Predicate(0)), "LDG"));
        assert_eq!(i.operands[0].value, [Cell::Register(10)]);
        assert_eq!(i.operands[1].address, [Cell::Register(4), Cell::Register(5), Cell::Uniform(8)]);
        let i = instruction(0, "LOP3.LUT R0, R6.reuse, 0x1f, RZ, 0xc0, !PT").unwrap();
        assert_eq!(i.operands[1].value, [Cell::Register(6)]);
        assert!(i.operands[3].value.is_empty() && i.operands[5].value.is_empty());
        let i = instruction(0, "LDC R2, c[0x0][R3+0x210]").unwrap();
        assert_eq!(i.operands[1].address, [Cell::Register(3)]);
        assert_eq!(i.operands[1].constant, Some((0, None)));
        let i = instruction(0, "LDC R2, c[0x0][RZ]").unwrap();
        assert_eq!(i.operands[1].constant, Some((0, Some(0))));
        let i = instruction(0, "IMAD.WIDE.U32 R2, R5, 0x4, c[0x0][0x168]").unwrap();
        assert_eq!(i.operands[3].constant, Some((0, Some(0x168))));
        assert_eq!(instruction(0, "@P0 BRA 0x2b0").unwrap().target(), Some(0x2b0));
        assert!(instruction(0, "@Q1 BRA 0x2b0").is_err());
    }
}
