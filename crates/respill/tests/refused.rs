//! Texts that hide entries, references, effects or sizes from a reader of instructions are refused by name; what is right and written alike
//! is accepted.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
#![forbid(unsafe_code)]

use lanework_respill::analysis::Opaque;
use lanework_respill::assembler::{AssembleError, LARGEST};
use lanework_respill::program::Why;
use lanework_respill::text::TextError;
use lanework_respill::validate::{Failure, Options, validate};
use lanework_respill::{Analysis, Program};

fn program(text: &str) -> Program {
    Program::new("test.s", text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The verdict on a text as a rewrite, without an input.
fn verdict(original: &str, text: &str) -> Result<(), String> {
    match validate(&Analysis::new(program(original)), &program(text), &[], &Options::default()) {
        Ok(report) => {
            assert!(!report.slots.is_empty(), "nothing moved\n{text}");
            Ok(())
        }
        Err(Failure::Refused(refused)) => Err(refused.to_string()),
        Err(failure) => panic!("{failure}"),
    }
}

#[track_caller]
fn accepted(original: &str, text: &str) {
    verdict(original, text).unwrap_or_else(|why| panic!("{why}\n{text}"));
}

#[track_caller]
fn refused(original: &str, text: &str, reason: &str) -> String {
    let why = verdict(original, text).expect_err(text);
    assert!(why.contains(&format!("refused ({reason})")), "{why}\n{text}");
    why
}

const STACK: [&str; 2] = ["movq %rdi, 8(%rsp)", "movq 8(%rsp), %rax"];
/// As long as the moves to and from the stack.
const XMM: [&str; 2] = ["movq %rdi, %xmm15", "movq %xmm15, %rax"];
/// Longer.
const XMM32: [&str; 2] = ["vmovq %rdi, %xmm16", "vmovq %xmm16, %rax"];
const MM: [&str; 2] = ["movq %rdi, %mm0", "movq %mm0, %rax"];

/// A function with a slot, code at its beginning and in its middle, and more behind it.
fn with(begin: &str, [store, load]: [&str; 2], middle: &str, more: &str) -> String {
    format!(
        ".globl f\nf: {begin}\n subq $24, %rsp\n {store}\n.Lm: leaq 1(%rdi), %rdi\n {middle}\n {load}\n addq %rdi, %rax\n addq $24, %rsp\n ret\n{more}\n"
    )
}

#[test]
fn a_function_that_is_entered_inside_an_instruction_stays() {
    // Without its first byte each instruction here is one, too.
    let other = ".globl h\nh:\n.Lh: addq $1, %rax\n ret\n";
    // By a symbol, by the jump of another function, by an address in data, in a register, for code outside.
    for (middle, more) in [
        (".globl g\n.set g, . + 1\n addq $0, %r8", ""),
        (".globl g\ng = . + 1\n addq $0, %r8", ""),
        (".equ g, . + 1\n.type g, @function\n addq $0, %r8", ""),
        ("", ".globl h\nh: jmp .Lm+1\n"),
        ("", ".globl h\nh: testl %eax, %eax\n je .Lm+1\n ret\n"),
        ("", ".globl h\nh: call .Lm+1\n ret\n"),
        ("", ".globl h\nh: leaq .Lm+1(%rip), %rdi\n jmp elsewhere\n"),
        ("", ".globl h\nh: movl $.Lm+1, %edi\n jmp elsewhere\n"),
        ("", ".data\n.globl t\nt: .quad .Lm+1\n"),
        ("", ".data\n.globl t\nt: .long .Lm+1-t\n"),
        ("", ".globl h\nh: ret\nt: .long .Lm+1-h\n"),
        ("", ".set k, 1\n.globl h\nh: ret\n.section .rodata\n.globl t\nt: .long .Lm+k-t\n"),
        ("", ".globl h\nh: ret\n.section .rodata\n.globl t\nt: .long .Lm-t+1\n"),
        ("lock\n1: addl $1, (%rsi)", ".globl h\nh: jmp 1b\n"),
    ] {
        let original = with("", STACK, middle, more);
        // An address inside an instruction has no counterpart, as a constant or in data.
        let reason = match more {
            _ if more.contains("$.Lm") => "decoded",
            _ if more.contains("data\n.globl t") => "data",
            _ => "opaque",
        };
        refused(&original, &with("", XMM, middle, more), reason);
    }
    // Another function is.
    for more in [
        ".globl g\n.set g, . + 1\n",
        ".globl g\ng: jmp .Lh+1\n",
        ".globl g\ng: call .Lh+1\n ret\n",
        ".globl g\n.set g, . + 4\n",
        ".data\n.globl t\nt: .quad h\n .text\n",
        ".section .rodata\n.globl t\nt: .long h-t\n .text\n",
    ] {
        let more = format!("{more}{other}");
        accepted(&with("", STACK, "", &more), &with("", XMM, "", &more));
    }
}

#[test]
fn bytes_that_run_lead_to_no_function_whose_values_move() {
    // `add %al, (%rax)` twice, in bytes that are not instructions by themselves.
    let middle = |symbol: &str| format!("jmp .Ln\n{symbol}g: .long 0\n.Ln: nop");
    let original = with("", STACK, &middle(".globl g\n"), "");
    refused(&original, &with("", XMM, &middle(".globl g\n"), ""), "opaque");
    let jump = ".globl h\nh: jmp g\n";
    refused(&with("", STACK, &middle(""), jump), &with("", XMM, &middle(""), jump), "opaque");
    for data in ["", ".globl g\n.type g, @object\n"] {
        accepted(&with("", STACK, &middle(data), ""), &with("", XMM, &middle(data), ""));
    }
}

#[test]
fn a_symbol_that_counts_bytes_is_compared() {
    // The second of four words behind 26 bytes of code, or more.
    let words = ".globl w\n.type w, @object\nw: .quad 1, 2, 3, 4\n";
    let counted = ".globl t\n.type t, @object\n.set t, . + 34";
    let text = |moves| with(counted, moves, "", words);
    accepted(&text(STACK), &text(XMM));
    refused(&text(STACK), &text(XMM32), "symbol");
    let labelled = ".globl t\n.type t, @object\n.set t, w";
    accepted(&with(labelled, STACK, "", words), &with(labelled, XMM32, "", words));
    // A number, the place of data, its size.
    for more in [
        ".globl n\n.set n, . - f\n",
        ".data\n.globl t\n.type t, @object\n.set t, u + .Lend\nu: .quad 1, 2, 3, 4, 5, 6, 7, 8\n",
        ".data\n.globl t\n.type t, @object\nt: .quad 1, 2, 3, 4, 5, 6, 7, 8\n.size t, .Lend\n",
        ".comm t, .Lend, 8\n",
    ] {
        let text = |moves| with("", moves, "", &format!(".set .Lend, . - f\n{more}"));
        accepted(&text(STACK), &text(XMM));
        refused(&text(STACK), &text(XMM32), "symbol");
    }
    let text = |moves| with("", moves, "", ".set .Lend, . - f\n.bss\n.skip .Lend\n");
    accepted(&text(STACK), &text(XMM));
    refused(&text(STACK), &text(XMM32), "data");
}

#[test]
fn an_mmx_home_is_beside_no_instruction_of_x87() {
    for said in [
        "fldcw (%rsi)",
        "fnstcw (%rsi)",
        "fnclex",
        "fnstsw %ax",
        "fnstsw (%rsi)",
        "fninit",
        "fwait",
        "fnop",
        "fabs",
        "fincstp",
        "ffree %st(1)",
        "fldenv (%rsi)",
        "fnstenv (%rsi)",
        "fnsave (%rsi)",
        "frstor (%rsi)",
        "fxsave (%rsi)",
        "fxrstor (%rsi)",
        "emms",
        "femms",
        "xsave (%rsi)",
        "xrstor (%rsi)",
    ] {
        // In the function, in a callee, in a caller.
        for (middle, more) in [
            (said, String::new()),
            ("call h", format!("h: {said}\n ret\n")),
            ("", format!(".globl h\nh: pushq %rbx\n call f\n {said}\n popq %rbx\n ret\n")),
        ] {
            let text = |[store, load]: [&str; 2], end: &str| {
                with("", [store, &format!("{load}\n {end}")], middle, &more)
            };
            let why = verdict(&text(STACK, ""), &text(MM, "emms")).expect_err(said);
            assert!(why.contains("home-taken"), "{said}: {why}");
        }
    }
    let text = |[store, load]: [&str; 2], end: &str| {
        with("", [store, &format!("{load}\n {end}")], "ldmxcsr (%rsi)", "")
    };
    accepted(&text(STACK, ""), &text(MM, "emms"));
}

#[test]
fn what_depends_on_the_length_of_code_is_refused() {
    for (begin, end) in [
        (".if . - f > 16", ".endif"),
        (".if n", ".endif"),
        (".ifdef n", ".endif"),
        (".ifeq . - f - 16", ".endif"),
        (".if 1\n.elseif . - f > 16", ".endif"),
    ] {
        for directive in [".weak f", ".type f, @function", ".set g, f", ".globl g", ".hidden f", ".p2align 5"]
        {
            let more = format!(".set n, . - f\n{begin}\n{directive}\n{end}\n");
            let why = refused(&with("", STACK, "", &more), &with("", XMM, "", &more), "not-constant");
            assert!(why.contains("`.if") || why.contains("`.elseif"), "{why}");
        }
    }
    for (condition, _) in [("1", 0), ("0", 0), ("n == 4", 0), ("n > 4", 0)] {
        for directive in [".weak g", ".type f, @function", ".set g, f", ".hidden f"] {
            let more = format!(".set n, 4\n.if {condition}\n{directive}\n.else\n.type f, @notype\n.endif\n");
            accepted(&with("", STACK, "", &more), &with("", XMM32, "", &more));
        }
    }
    // What the unwinder reads.
    let begin = ".cfi_startproc";
    for (operand, right) in [("16 + 16", true), ("(8*4)", true), ("32 + (. - f) / 64", false), ("n", false)] {
        let more = format!(
            ".cfi_endproc\n.set n, 32\nh: .cfi_startproc\n subq $24, %rsp\n.cfi_def_cfa_offset {operand}\n addq $24, %rsp\n ret\n.cfi_endproc\n"
        );
        if right {
            accepted(&with(begin, STACK, "", &more), &with(begin, XMM32, "", &more));
        } else {
            refused(&with(begin, STACK, "", &more), &with(begin, XMM32, "", &more), "not-constant");
        }
    }
}

#[test]
fn a_condition_that_does_not_hold_has_no_directives() {
    // The register that the unwinder finds at -16 lies there for both texts, and a slot at the same place does not move.
    let text = |condition: &str, [store, load]: [&str; 2]| {
        format!(
            ".globl f\nf: .cfi_startproc\n subq $24, %rsp\n.if {condition}\n.cfi_adjust_cfa_offset 24\n.cfi_offset %rbx, -24\n.endif\n {store}\n \
             call g\n leaq 1(%rax), %rdi\n {load}\n addq $24, %rsp\n ret\n.cfi_endproc\ng: .cfi_startproc\n leaq 1(%rdi), %rax\n ret\n.cfi_endproc\n"
        )
    };
    refused(&text("1", STACK), &text("1", XMM), "no-spill");
    accepted(&text("0", STACK), &text("0", XMM));
}

#[test]
fn a_reference_fills_in_one_whole_constant_at_the_same_place() {
    // `movl $0, %ecx` has its constant in bytes 1 to 4 of the function.
    let text = |offset: usize, kind: &str, moves| {
        with(&format!("movl $0, %ecx\n.reloc {offset}, {kind}, elsewhere"), moves, "", "")
    };
    accepted(&text(1, "R_X86_64_32", STACK), &text(1, "R_X86_64_32", XMM32));
    accepted(&text(3, "R_X86_64_NONE", STACK), &text(3, "R_X86_64_NONE", XMM32));
    for (offset, kind) in
        [(0, "R_X86_64_32"), (2, "R_X86_64_32"), (1, "R_X86_64_64"), (1, "R_X86_64_16"), (11, "R_X86_64_8")]
    {
        let error = Program::new("test.s", text(offset, kind, STACK)).expect_err("torn");
        assert!(matches!(error.why, Why::Reference), "{offset} {kind}: {error}");
        assert!(error.line.is_some(), "{error}");
    }
    // One that counts bytes of code is somewhere else in the rewrite: in another instruction, or in other data.
    let behind = |moves| {
        with(".reloc 22, R_X86_64_32, elsewhere", moves, "", "")
            .replace(" addq $24, %rsp\n ret", " movl $0, %ecx\n addq $24, %rsp\n ret")
    };
    accepted(&behind(STACK), &behind(XMM));
    assert!(matches!(Program::new("test.s", behind(XMM32)).map_err(|e| e.why), Err(Why::Reference)));
    let data = |moves| with(".reloc 34, R_X86_64_64, elsewhere", moves, "", "w: .quad 0, 0, 0, 0\n");
    accepted(&data(STACK), &data(XMM));
    refused(&data(STACK), &data(XMM32), "data");
    // Two for the same bytes.
    let two = with("movl $elsewhere, %ecx\n.reloc 1, R_X86_64_32, other", STACK, "", "");
    let error = Program::new("test.s", two).expect_err("two references");
    assert!(error.to_string().contains("two references"), "{error}");
}

#[test]
fn what_is_not_known_of_an_instruction_is_refused() {
    for said in [
        "enclu",
        "encls",
        "enclv",
        "vmcall",
        "vmmcall",
        "vmfunc",
        "getsec",
        "sysenter",
        "iretq",
        "uiret",
        "senduipi %rsi",
        "rdpkru",
        "wrpkru",
        "monitor",
        "mwait",
        "pconfig",
        "xbegin .Lm",
        "xabort $1",
        "xend",
        "swapgs",
        "wrmsr",
        "rsm",
        "vmlaunch",
        "lcall *(%rsi)",
        "ljmp *(%rsi)",
        "lretq",
        "int $0x80",
        "llwpcb %rsi",
        "rep xcryptecb",
        "inb $1, %al",
        "aesencwide128kl (%rsi)",
        "enqcmd (%rsi), %rdx",
        "saveprevssp",
        "clui",
    ] {
        let original = with("", STACK, said, "");
        let why = refused(&original, &with("", XMM, said, ""), "opaque");
        assert!(!why.contains("the instruction in line 6 is unknown"), "{said}: {why}");
        // A caller does not follow it either.
        let (callee, call) = (format!("h: {said}\n ret\n"), "call h");
        assert!(verdict(&with("", STACK, call, &callee), &with("", XMM, call, &callee)).is_err(), "{said}");
    }
    for said in [
        "cpuid",
        "rdtsc",
        "pause",
        "lfence",
        "tilerelease",
        "rdrand %rdx",
        "xgetbv",
        "endbr64",
        "clflush (%rsi)",
    ] {
        accepted(&with("movq %rbx, %r8", STACK, said, ""), &with("movq %rbx, %r8", XMM, said, ""));
    }
}

#[test]
fn repetitions_without_end_have_a_typed_error() {
    for (text, line) in [
        ("f: ret\n.rept 18446744073709551615\n nop\n nop\n.endr\n", 2),
        ("f: ret\n.rept 18446744073709551615\n.endr\n", 2),
        ("f: ret\n.rept 100000\n.rept 100000\n nop\n.endr\n.endr\n", 3),
    ] {
        let error = Program::new("test.s", text).expect_err("too long");
        assert!(matches!(error.why, Why::Text(TextError::Repeated { .. })), "{error}");
        assert_eq!(error.line, Some(line), "{error}");
    }
    assert_eq!(program("f:\n.rept 3\n nop\n.endr\n ret\n").ops.len(), 4);
}

#[test]
fn an_object_without_bound_has_a_typed_error() {
    for more in [".bss\n.skip 1 << 40\n", ".bss\n.p2align 31\n.skip 1\n"] {
        let error = Program::new("test.s", format!("f: ret\n{more}")).expect_err("too large");
        assert!(
            matches!(error.why, Why::Assemble(AssembleError::Large { bytes }) if bytes > LARGEST),
            "{error}"
        );
    }
    let error = Program::new("test.s", "f: ret\n.data\n.skip 1 << 40\n").expect_err("too large");
    assert!(
        matches!(error.why, Why::Assemble(AssembleError::Large { .. } | AssembleError::Refused { .. })),
        "{error}"
    );
    program("f: ret\n.bss\n.skip 1 << 20\n");
}

#[test]
fn what_grows_with_the_square_of_a_text_is_refused() {
    let many = |count: usize, said: &dyn Fn(usize) -> String| (0..count).map(said).collect::<String>();
    for (what, code) in [
        ("cells", many(12_000, &|_| " pushq %rdi\n".into()) + " addq $96000, %rsp\n"),
        ("live values", {
            let store = many(8_000, &|n| format!(" movq %rax, -{}(%rsp)\n", 8 * n + 16));
            store + &many(8_000, &|n| format!(" movq -{}(%rsp), %rax\n", 8 * n + 16))
        }),
        ("shared instructions", many(12_000, &|n| format!(".globl g{n}\ng{n}: nop\n"))),
        ("places", many(9_000, &|n| format!(" testl %eax, %eax\n je .Ln{n}\n jmp *%rax\n.Ln{n}: nop\n"))),
    ] {
        let more = if what == "places" {
            ".data\n".to_owned() + &many(9_000, &|n| format!(".quad .Ln{n}\n"))
        } else {
            String::new()
        };
        let text = |moves| with("", moves, "", &format!(".globl k\nk: nop\n{code} ret\n{more}"));
        let original = Analysis::new(program(&text(STACK)));
        assert!(original.units.iter().all(|unit| unit.opaque == Some(Opaque::Large)), "{what}");
        let failure = validate(&original, &program(&text(XMM)), &[], &Options::default()).expect_err(what);
        assert!(failure.refused().is_some_and(|refused| refused.has("large")), "{what}: {failure}");
    }
    // Fewer are followed.
    let code = many(100, &|_| " pushq %rdi\n".into()) + " addq $800, %rsp\n";
    let text = |moves| with("", moves, "", &format!(".globl k\nk: nop\n{code} ret\n"));
    accepted(&text(STACK), &text(XMM));
}
