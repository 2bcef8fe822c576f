//! What respill reads: assembly as a program, whose spilled values get other homes; and cases.
#![forbid(unsafe_code)]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use lanework_respill::case::Case;
use lanework_respill::homes::Bank;
use lanework_respill::lint::lint;
use lanework_respill::plan::{Policy, Wish, plan};
use lanework_respill::program::Why;
use lanework_respill::rewrite::{self, rewrite};
use lanework_respill::text::{Edits, Kind, Text};
use lanework_respill::{Analysis, Program};

/// Assembly is cut into statements and kept as it is.
pub(crate) fn assembly(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    if let Ok(text) = Text::new(source) {
        assert!(text.text() == source);
        let mut edits = Edits::default();
        assert!(text.edited(&edits) == source, "a text without edits is another");
        for statement in 0..text.statements().len() {
            assert!(source.contains(text.of(statement)));
            edits.instead(statement, text.of(statement));
        }
        // Every statement instead of itself: nothing may be lost and the result must be readable.
        assert!(Text::new(text.edited(&edits)).is_ok(), "an edited text cannot be read");
    }
}

pub(crate) fn assembly_seeds() -> Vec<Vec<u8>> {
    [
        "\t.text\nf:\n\tpushq %rbp\n\tmovq %rax, -8(%rsp) # spill\n\tret\n",
        ".intel_syntax noprefix\nf: mov qword ptr [rsp-8], rax; mov rax, [rsp-8]\nret\n",
        ".ascii \"a;b\\\"#\"\n.byte 1,2\n/* c */ 1: jmp 1b\n",
        "",
        "f:",
        "\"",
    ]
    .map(|t| t.as_bytes().to_vec())
    .to_vec()
}

/// Directives for which an assembler writes at most as many bytes as they have characters. Others could make it write files of
/// any size, which random inputs must not.
const HARMLESS: [&str; 19] = [
    ".text",
    ".data",
    ".globl",
    ".global",
    ".type",
    ".size",
    ".byte",
    ".long",
    ".quad",
    ".ascii",
    ".asciz",
    ".section",
    ".intel_syntax",
    ".att_syntax",
    ".ident",
    ".file",
    ".cfi_startproc",
    ".cfi_endproc",
    ".local",
];

fn harmless(text: &str) -> bool {
    Text::new(text).is_ok_and(|text| {
        (0..text.statements().len()).all(|statement| {
            let said = text.of(statement);
            let word = said.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_')).next();
            match text.statements()[statement].kind {
                Kind::Directive => !said.contains('=') && HARMLESS.contains(&word.unwrap_or_default()),
                // A directive may hide behind a prefix, or in a line that is split differently.
                _ => !said
                    .split_ascii_whitespace()
                    .any(|word| word.starts_with('.') && !word.starts_with(".L")),
            }
        })
    })
}

/// A text is refused, or it is a program. Whatever homes its spilled values get, the rewritten text is a program with the
/// same functions.
pub(crate) fn program(data: &[u8]) {
    let _ = moved(data);
}

/// How many values got another home; `None` if the text is not a program.
fn moved(data: &[u8]) -> Option<usize> {
    let mut bytes = data;
    let wish = take_wish(&mut bytes);
    let Ok(source) = std::str::from_utf8(bytes) else { return None };
    if !harmless(source) {
        return None;
    }
    let program = match Program::new("fuzz.s", source) {
        Ok(program) => program,
        Err(e) => {
            assert!(
                !matches!(&e.why, Why::Assemble(w) if w.to_string().is_empty()),
                "refused without a word"
            );
            assert!(
                e.line.is_none_or(|line| (1..=source.lines().count().max(1)).contains(&line)),
                "{e}: no such line"
            );
            return None;
        }
    };
    for op in 0..program.ops.len() {
        assert!(source.contains(program.said(op)));
    }
    let analysis = Analysis::new(program);
    for finding in lint(&analysis) {
        assert!(!finding.to_string().is_empty());
    }
    let plan = plan(&analysis, &wish);
    for (unit, slot) in plan.homes.keys() {
        assert!(analysis.units.get(*unit).is_some_and(|unit| *slot < unit.slots.len()), "a home for no slot");
        assert!(!plan.stays.contains_key(&(*unit, *slot)), "a slot that moves and stays");
    }
    let Ok(rewritten) = rewrite(&analysis, &plan, rewrite::Options::default()) else { return None };
    if plan.homes.is_empty() {
        assert!(rewritten.text == source, "nothing moved, but the text changed");
        return Some(0);
    }
    match Program::new("fuzz.s", rewritten.text.as_str()) {
        Ok(again) => {
            let names = |program: &Program| -> Vec<String> {
                program.names.values().flatten().map(|name| name.name.clone()).collect()
            };
            assert!(names(&again) == names(&analysis.program), "the rewritten text has other names");
        }
        Err(e) => panic!("the rewritten text is not a program: {e}\n{}", rewritten.text),
    }
    Some(plan.homes.len())
}

fn take_wish(bytes: &mut &[u8]) -> Wish {
    let byte = bytes.first().copied().unwrap_or_default();
    *bytes = bytes.get(1..).unwrap_or_default();
    let bank = Bank::ALL[usize::from(byte) % Bank::ALL.len()];
    let policy = [Policy::Pointers, Policy::Hottest, Policy::Coldest][usize::from(byte / 8) % 3];
    Wish {
        banks: vec![(bank, (byte & 0x80 != 0).then_some(2))],
        policy,
        counts: None,
        stay: Default::default(),
        only: Default::default(),
        operands: byte & 0x40 != 0,
    }
}

const SPILLING: [&str; 4] = [
    "\t.text\n\t.globl f\n\t.type f, @function\nf:\n\tsubq $40, %rsp\n\tmovq %rdi, 8(%rsp)\n\tmovq %rsi, 16(%rsp)\n\txorl %eax, %eax\n\
     .L1:\n\taddq 8(%rsp), %rax\n\tmovq 16(%rsp), %rdx\n\tdecq %rdx\n\tmovq %rdx, 16(%rsp)\n\tjne .L1\n\taddq $40, %rsp\n\tret\n\t.size f, .-f\n",
    "\t.text\n\t.globl g\ng:\n\tpushq %rbx\n\tsubq $24, %rsp\n\tmovq %rdi, (%rsp)\n\tcall h\n\tmovq (%rsp), %rbx\n\tmovq (%rbx), %rax\n\taddq $24, %rsp\n\tpopq %rbx\n\tret\n\
     h:\n\tmovl %edi, -4(%rsp)\n\tmovl -4(%rsp), %eax\n\tret\n",
    ".intel_syntax noprefix\n.text\n.globl k\nk:\nsub rsp, 24\nmov qword ptr [rsp+8], rdi\nmov rax, qword ptr [rsp+8]\nadd rax, qword ptr [rsp+8]\nadd rsp, 24\nret\n",
    "\t.text\nj:\n\tmovq %rdi, -8(%rsp)\n\tleaq -8(%rsp), %rax\n\tvmovdqu %ymm0, -64(%rsp)\n\tmovq -8(%rsp), %rdx\n\tjmp *%rdx\n",
];

pub(crate) fn program_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for text in SPILLING {
        for wish in [0x08, 0x49, 0x4a, 0x0b, 0x8c] {
            seeds.push([&[wish][..], text.as_bytes()].concat());
        }
    }
    seeds
}

/// A case is refused with a line that it has, or names what it measures.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) fn case(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Case::parse(text) {
        Ok(case) => {
            assert!(!case.measured().is_empty() && case.preparing().all(|name| !name.is_empty()));
            let mut end = 0;
            for (name, range) in case.written() {
                assert!(
                    !name.is_empty() && range.start >= end && range.start.is_multiple_of(64),
                    "buffers overlap"
                );
                if !range.is_empty() {
                    assert!(case.buffer_at(range.start) == Some((name, 0)), "another buffer at this place");
                }
                end = range.end;
            }
        }
        Err(e) => assert!((1..=text.lines().count().max(1)).contains(&e.line) && !e.why.is_empty(), "{e}"),
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) fn case_seeds() -> Vec<Vec<u8>> {
    [
        "seed = random 64\ntable = zero 32 # constant\nk = bytes 0x00ff17\ncall keypair(pk: out 1184, sk: out 2400, seed)\n\
         measure dec(ss: out 32, pk, sk, k, 7)\n",
        "a = zero 8; measure f(a: inout, b: inout 16, -1, 0x10)",
        "measure f()",
        "x = random 99999999999\nmeasure f(x)",
        "measure f(a: out 9, a: out 8)",
        "",
    ]
    .map(|t| t.as_bytes().to_vec())
    .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_are_programs_whose_values_move() {
        let moved: Vec<Option<usize>> = program_seeds().iter().map(|seed| moved(seed)).collect();
        assert!(moved.iter().all(Option::is_some), "a seed is not a program: {moved:?}");
        assert!(moved.iter().filter(|n| **n > Some(0)).count() > moved.len() / 3, "nothing moves: {moved:?}");
    }

    #[test]
    fn what_could_write_files_of_any_size_is_not_assembled() {
        for text in [
            ".zero 1000000000",
            ".p2align 30",
            "x = 5",
            ".include\"/etc/passwd\"",
            "nop\nrep .space 99999999",
        ] {
            assert!(!harmless(text), "{text}");
        }
        assert!(SPILLING.iter().all(|text| harmless(text)));
    }
}
