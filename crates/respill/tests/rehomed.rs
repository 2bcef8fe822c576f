//! Slots of small functions, and whole programs that compute the same before and after their slots have moved.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![forbid(unsafe_code)]

mod common;

use std::collections::BTreeSet;
use std::process::Command;

use common::PROGRAM;
use lanework_respill::analysis::Opaque;
use lanework_respill::homes::Bank;
use lanework_respill::plan::{self, Plan, Policy, Stays, Wish};
use lanework_respill::rewrite::{self, Options};
use lanework_respill::slots::Class;
use lanework_respill::{Analysis, Program};

fn analysed(text: &str) -> Analysis {
    Analysis::new(Program::new("test.s", text).unwrap_or_else(|e| panic!("{e}")))
}

fn unit(analysis: &Analysis, name: &str) -> usize {
    analysis
        .units
        .iter()
        .position(|u| u.function.names.iter().any(|n| n == name))
        .expect("a function of this name")
}

fn classes(analysis: &Analysis, name: &str) -> Vec<(i64, Class, bool, bool)> {
    let unit = &analysis.units[unit(analysis, name)];
    unit.slots.iter().map(|s| (s.address.offset, s.class, s.suspects.is_empty(), s.from_outside)).collect()
}

fn wish(bank: Bank) -> Wish {
    Wish {
        banks: vec![(bank, None)],
        policy: Policy::Hottest,
        counts: None,
        stay: BTreeSet::new(),
        only: BTreeSet::new(),
        operands: true,
    }
}

#[test]
fn slots_are_told_apart() {
    let analysis = analysed(
        "
        .globl f
f:      pushq %rbx
        subq $80, %rsp
        movq %rdi, 8(%rsp)              # a pointer: used as an address below
        movl %esi, 16(%rsp)             # a spill of 4 bytes
        movq %rdx, 24(%rsp)             # an operand
        movb $1, 32(%rsp)               # narrow
        vmovdqu %xmm0, 48(%rsp)         # a vector
        movq %rcx, 64(%rsp)             # mixed: read by half
        movl 64(%rsp), %ecx
        movq 8(%rsp), %rax
        movq (%rax), %rax
        movl 16(%rsp), %esi
        addq 24(%rsp), %rax
        movq 40(%rsp), %rbx             # never written
        addq %rbx, %rax
        addq $80, %rsp
        popq %rbx
        ret
",
    );
    assert_eq!(
        classes(&analysis, "f"),
        [
            (-80, Class::Pointer, true, false),
            (-72, Class::Spill, true, false),
            (-64, Class::Operand, true, false),
            (-56, Class::Narrow, true, false),
            (-48, Class::Spill, true, true),
            (-40, Class::Vector, true, false),
            (-24, Class::Mixed, true, false),
            (-8, Class::CalleeSave, true, false),
        ]
    );
}

#[test]
fn aligned_frames_links_and_taken_addresses() {
    let analysis = analysed(
        "
        .globl f
f:      movq %rsp, %rax
        leaq -64(%rsp), %rsp
        andq $-32, %rsp
        movq %rax, 56(%rsp)
        movq %rdi, (%rsp)
        leaq back(%rip), %rcx
        jmp  L_g
back:   movq (%rsp), %rdi
        movq %rsi, 8(%rsp)
        leaq 8(%rsp), %rdx
        addq $1, (%rdx)
        movq 8(%rsp), %rax
        movq 56(%rsp), %rsp
        ret
L_g:    addq $1, %rdi
        jmp *%rcx
",
    );
    let f = &analysis.units[unit(&analysis, "f")];
    assert!(f.opaque.is_none(), "{:?}", f.opaque);
    assert!(f.function.calls.values().all(|call| call.link) && f.function.calls.len() == 1);
    // The address that was taken is followed, and counts as a use of the slot; the callee was given the frame's addresses in memory.
    let found = classes(&analysis, "f");
    assert_eq!(found[0].1, Class::Spill);
    assert_eq!((found[1].0, found[1].1, found[1].2), (8, Class::Operand, false), "{found:?}");
    assert_eq!(found[2].1, Class::SavedStack);
    assert_eq!(analysis.units[unit(&analysis, "L_g")].function.exits.len(), 1);
}

#[test]
fn what_cannot_be_followed_stays() {
    let analysis = analysed(
        "
        .globl jumps
jumps:  movq %rdi, -8(%rsp)
        leaq table(%rip), %rax
        jmp *(%rax,%rdi,8)
.Lhere: ret
        .section .data.rel.ro, \"aw\"
table:  .quad .Lhere
        .text
        .globl grows
grows:  subq %rdi, %rsp
        movq %rdi, 8(%rsp)
        addq %rdi, %rsp
        ret
        .globl calls
calls:  subq $24, %rsp
        movq %rdi, 8(%rsp)
        call elsewhere
        movq 8(%rsp), %rax
        addq $24, %rsp
        ret
        .globl itself
itself: subq $8, %rsp
        call itself
        addq $8, %rsp
        ret
        .globl half
half:   movq %rdi, -8(%rsp)
        testq %rdi, %rdi
        je   elsewhere
        movq -8(%rsp), %rax
        ret
",
    );
    let opaque = |name: &str| analysis.units[unit(&analysis, name)].opaque;
    assert_eq!(opaque("jumps"), None);
    assert!(matches!(opaque("grows"), Some(Opaque::Unbalanced(_))));
    assert_eq!(["itself", "half"].map(opaque), [None; 2]);
    let calls = unit(&analysis, "calls");
    let plan = plan::plan(&analysis, &wish(Bank::Xmm));
    let moving = ["jumps", "half"].map(|name| unit(&analysis, name));
    assert!(plan.homes.keys().all(|(unit, _)| moving.contains(unit)), "{:?}", plan.homes);
    assert!(matches!(plan.stays[&(calls, 0)], Stays::Across(_)));
}

/// Places of a `switch` whose table others know lie deeper in the stack than a tail jump through a pointer, which does not go there.
#[test]
fn a_tail_jump_does_not_go_to_another_stack_pointer() {
    let opaque = |before_the_jump: &str| {
        let analysis = analysed(&format!(
            ".globl f\n.type f, @function\nf: subq $24, %rsp\n movq %rdi, 8(%rsp)\n leaq .Lt(%rip), %rdx\n andl $1, %esi\n \
             movslq (%rdx,%rsi,4), %rax\n addq %rdx, %rax\n jmp *%rax\n\
             .La: movq 8(%rsp), %rdi\n{before_the_jump} jmp *pointer(%rip)\n\
             .Lb: movq 8(%rsp), %rax\n addq $24, %rsp\n ret\n\
             .section .rodata\n.Lt: .long .La-.Lt\n .long .Lb-.Lt\n.data\n.quad .Lt\n"
        ));
        analysis.units[unit(&analysis, "f")].opaque
    };
    assert_eq!(opaque(" addq $24, %rsp\n"), None);
    // With that of the places it is a `goto`; with another one its target is unknown.
    assert_eq!(opaque(""), None);
    assert!(matches!(opaque(" addq $8, %rsp\n"), Some(Opaque::Jump(_))));
}

#[test]
fn bad_texts_are_refused_by_file_and_line() {
    for (text, said) in [
        ("f:\n movq %rax, %nosuch\n", "test.s:2: "),
        (".globl f\n.data\n.byte 1\n", "test.s: there is no instruction in it"),
        ("nop\n#define X\n", "test.s:2: the C preprocessor"),
        (".macro m\n nop\n.endm\n", "test.s:1: `.macro` makes up statements"),
        ("nop\n.nosuchdirective 3\n", "test.s:2: "),
    ] {
        let error = Program::new("test.s", text).expect_err("refused").to_string();
        assert!(error.starts_with(said), "{error}");
    }
}

/// An instruction that the assembler or the decoder does not know costs its function, what jumps there, and what it names.
#[test]
fn an_unknown_instruction_costs_its_function() {
    let spill = "movq %rdi, -8(%rsp)\n movq %rsi, %rdi\n movq -8(%rsp), %rax\n";
    let text = |odd: &str| {
        let mut out = String::new();
        for (name, extra) in [("a", ""), ("b", odd), ("c", "call b\n"), ("d", "1: .globl e\ne:\n"), ("g", "")]
        {
            out += &format!(".globl {name}\n.type {name}, @function\n{name}: {spill} {extra} ret\n");
        }
        out
    };
    for odd in ["frobnicate %rax, %r8\n", "movq (%r99), %rax; nosuch\n", ".byte 0x06\n", "foo e\n"] {
        let analysis = analysed(&text(odd));
        let opaque = |name| analysis.units[unit(&analysis, name)].opaque;
        assert!(opaque("a").is_none() && opaque("g").is_none(), "{odd}");
        assert!(opaque("c").is_some(), "{odd}");
        let b = opaque("b");
        assert!(matches!(b, Some(Opaque::Unknown(_) | Opaque::Bytes(_))), "{odd}: {b:?}");
        assert_eq!(matches!(opaque("e"), Some(Opaque::Unknown(_))), odd.starts_with("foo"), "{odd}");
        // The others still move, and the text assembles as far as before.
        let plan = plan::plan(&analysis, &wish(Bank::Xmm));
        let moves = |name| plan.homes.keys().any(|&(n, _)| n == unit(&analysis, name));
        assert_eq!(["a", "g", "b", "c"].map(moves), [true, true, false, false], "{odd}");
        let made = rewrite::rewrite(&analysis, &plan, Options::default()).expect("a text").text;
        analysis.program.again("rewritten.s", &*made).expect("a program");
        let worse = made.replacen("%xmm15", "%xmn15", 1);
        analysis.program.again("rewritten.s", worse).expect_err("an instruction of ours is not known");
    }
}

/// Main in assembly, so that the exit status is the whole harness: 0 if the result is right, 1 if it is not, 2 if floating point
/// is broken afterwards.
fn main_program(expected: u64, poison: u8) -> String {
    format!(
        "
        .text
        .globl main
main:   pushq %rbx
        leaq -4096(%rsp), %rdi
        movl $4096, %ecx
        movl ${poison}, %eax
        rep stosb
        movabsq $0x123456789abcdef0, %rdi
        movabsq $0xfedcba9876543210, %rsi
        movabsq $0xffffffff89abcdef, %rdx
        call work
        movabsq ${expected:#x}, %rcx
        cmpq %rcx, %rax
        movl $1, %eax
        jne .Lout
        fld1
        fld1
        faddp
        fld1
        fld1
        faddp
        fucomip %st(1), %st
        fstp %st(0)
        movl $2, %eax
        jne .Lout
        jp .Lout
        xorl %eax, %eax
.Lout:  popq %rbx
        ret
        .section .note.GNU-stack,\"\",@progbits
"
    )
}

/// What `work` computes.
fn expected() -> u64 {
    let (a, mut b, c) = (0x1234_5678_9abc_def0u64, 0xfedc_ba98_7654_3210u64, 0x89ab_cdefu64);
    let mut sum = 0u64;
    for _ in 0..5 {
        sum = sum.wrapping_add(b);
        b = (c.rotate_left(7) ^ b).wrapping_add(c).wrapping_add(a);
    }
    sum.wrapping_mul(b).wrapping_add(c)
}

fn run(text: &str, poison: u8) -> Option<i32> {
    let directory = tempfile::tempdir().expect("a directory");
    let (source, program) = (directory.path().join("p.s"), directory.path().join("p"));
    std::fs::write(&source, format!("{text}{}", main_program(expected(), poison))).expect("written");
    let linked = Command::new("cc").arg("-o").arg(&program).arg(&source).output().expect("a linker");
    assert!(linked.status.success(), "{}", String::from_utf8_lossy(&linked.stderr));
    Command::new(&program).status().expect("it starts").code()
}

fn runs_here(bank: Bank) -> bool {
    match bank {
        Bank::Mm | Bank::Xmm => true,
        Bank::Xmm32 | Bank::K | Bank::ZmmLane => {
            std::arch::is_x86_feature_detected!("avx512bw")
                && std::arch::is_x86_feature_detected!("avx512vl")
                && std::arch::is_x86_feature_detected!("avx512dq")
        }
    }
}

#[test]
fn programs_do_the_same_from_every_home() {
    assert_eq!(run(PROGRAM, 0xaa), Some(0), "as it was");
    for bank in Bank::ALL {
        let analysis = analysed(PROGRAM);
        let plan = plan::plan(&analysis, &wish(bank));
        assert_eq!(plan.homes.len(), 7, "{bank}: {:?}", plan.stays);
        let text = rewrite::rewrite(&analysis, &plan, Options::default()).expect("rewritten").text;
        let after = analysed(&text);
        assert!(after.units.iter().all(|u| u.slots.is_empty()), "{bank}: something is left in memory");
        if runs_here(bank) {
            for poison in [0x00, 0xaa, 0xff] {
                assert_eq!(run(&text, poison), Some(0), "{bank}");
            }
        } else {
            println!("{bank}: rewritten and assembled, not run: this processor has no AVX-512");
        }
    }
}

#[test]
fn without_emms_the_callers_floating_point_breaks() {
    let analysis = analysed(PROGRAM);
    let plan = plan::plan(&analysis, &wish(Bank::Mm));
    let text = rewrite::rewrite(&analysis, &plan, Options { emms: false, ..Options::default() })
        .expect("rewritten")
        .text;
    assert_eq!(run(&text, 0), Some(2));
}

#[test]
fn a_home_that_a_callee_uses_is_noticed() {
    let analysis = analysed(PROGRAM);
    let plan = plan::plan(&analysis, &wish(Bank::Xmm));
    let work = unit(&analysis, "work");
    let mix = unit(&analysis, "L_mix");
    let mut wrong: Plan = plan.clone();
    let home = plan.homes[&(mix, 0)];
    wrong.homes.insert((work, 0), home);
    assert_ne!(plan.homes[&(work, 0)], home, "its value lives across the call");
    let text = rewrite::rewrite(&analysis, &wrong, Options::default()).expect("rewritten").text;
    assert_eq!(run(&text, 0), Some(1), "the harness sees a clobbered home");
}

#[test]
fn few_homes_go_where_the_policy_says() {
    let analysis = analysed(PROGRAM);
    let most = |policy| {
        let wish = Wish { banks: vec![(Bank::Mm, Some(3))], policy, ..wish(Bank::Mm) };
        plan::plan(&analysis, &wish).homes.keys().copied().collect::<Vec<_>>()
    };
    assert_ne!(most(Policy::Hottest), most(Policy::Coldest));
    assert!(most(Policy::Pointers).is_empty());
}

#[test]
fn intel_syntax_is_kept() {
    let analysis = analysed(
        "
        .intel_syntax noprefix
        .globl f
f:      mov qword ptr [rsp - 8], rdi
        mov dword ptr [rsp - 16], esi
        mov rax, qword ptr [rsp - 8] # kept
        mov ecx, dword ptr [rsp - 16]
        add rax, qword ptr [rsp - 8]
        ret
",
    );
    let plan = plan::plan(&analysis, &wish(Bank::Xmm));
    assert_eq!(plan.homes.len(), 2, "{:?}", plan.stays);
    let text = rewrite::rewrite(&analysis, &plan, Options::default()).expect("rewritten").text;
    assert!(text.contains("movq\trax, xmm") && text.contains(" # kept\n"), "{text}");
    assert!(analysed(&text).units[0].slots.is_empty(), "{text}");
}

#[test]
fn what_clang_tells_the_linker_is_let_pass_and_kept() {
    let text =
        "\t.globl f\nf:\tmovq %rdi, -8(%rsp)\n\tmovq -8(%rsp), %rax\n\tret\n\t.addrsig\n\t.addrsig_sym f\n";
    let analysis = analysed(text);
    let plan = plan::plan(&analysis, &wish(Bank::Mm));
    let made = rewrite::rewrite(&analysis, &plan, Options::default()).expect("rewritten");
    assert!(
        made.text.contains("%mm0") && made.text.ends_with("\t.addrsig\n\t.addrsig_sym f\n"),
        "{}",
        made.text
    );
    // Lines after it keep their numbers.
    let error = Program::new("test.s", format!("{text}\t.nosuch\n")).expect_err("refused").to_string();
    assert!(error.starts_with("test.s:7: "), "{error}");
}

#[test]
fn functions_are_known_again_by_what_they_do() {
    let text = "
        .globl f
f:      movq %rdi, -8(%rsp)
1:      decq %rdi
        jnz 1b
        call L_g
        ret
L_g:    movq -8(%rsp), %rax
        ret
";
    let of = |text: &str| {
        let analysis = analysed(text);
        analysis.fingerprint(unit(&analysis, "f"))
    };
    let was = of(text);
    // Only its own instructions and its callees' count, not labels and other code.
    assert_eq!(was, of(&text.replace("1:", ".L7:").replace("1b", ".L7")));
    assert_eq!(was, of(&format!("        .globl e\ne:      xorl %eax, %eax\n        ret\n{text}")));
    for (from, to) in
        [("decq", "incq"), ("jnz 1b", "jnz f"), ("-8(%rsp), %rax", "-16(%rsp), %rax"), ("L_g", "L_h")]
    {
        assert_ne!(was, of(&text.replace(from, to)), "{from}");
    }
}

#[test]
fn a_frame_pointer_is_known_behind_a_call_that_keeps_it() {
    let text = "
        .globl f
f:      pushq %rbp
        movq %rsp, %rbp
        subq $32, %rsp
        movq %rdi, -8(%rbp)
        call L_g
        movq -8(%rbp), %rax
        leave
        ret
L_g:    pushq %rbp
        movq %rsp, %rbp
        call L_h
        popq %rbp
        ret
L_h:    xorl %edi, %edi
        ret
";
    let opaque = |text: &str| {
        let analysis = analysed(text);
        analysis.units[unit(&analysis, "f")].opaque
    };
    assert_eq!(opaque(text), None);
    let analysis = analysed(text);
    assert_eq!(plan::plan(&analysis, &wish(Bank::Xmm)).homes.len(), 1);
    // A callee that does not restore it, and one that restores it after its own callee.
    let lost = opaque(&text.replace("        popq %rbp\n", "        addq $8, %rsp\n"));
    assert!(matches!(lost, Some(Opaque::Unbalanced(_) | Opaque::Calls(_))), "{lost:?}");
    assert_eq!(opaque(&text.replace("xorl %edi, %edi", "xorl %ebp, %ebp")), None);
}

#[test]
fn what_the_unwinder_goes_on_with_is_no_dead_code() {
    // The value's last use on paths of jumps is before the call; the handler has another.
    let text = "
        .globl f
f:      .cfi_startproc
        .cfi_personality 0x9b,handles
        .cfi_lsda 0x1b,.Ltable
        subq $24, %rsp
        movq %rdi, 8(%rsp)
        movq 8(%rsp), %rdi
        call elsewhere
        addq $24, %rsp
        ret
.Lhandler:
        movq 8(%rsp), %rax
        addq $24, %rsp
        ret
        .cfi_endproc
        .globl g
g:      movq %rdi, -8(%rsp)
        movq -8(%rsp), %rax
        ret
        .section .gcc_except_table,\"a\"
.Ltable: .long .Lhandler-f
        .hidden handles
        .weak handles
        .section .data.rel.local.handles,\"aw\"
        .p2align 3
handles: .quad 0
";
    let found = |text: &str| {
        let analysis = analysed(text);
        let moved = plan::plan(&analysis, &wish(Bank::Xmm)).homes.len();
        (["f", "g"].map(|name| analysis.units[unit(&analysis, name)].opaque), moved)
    };
    assert!(matches!(found(text), ([Some(Opaque::Landing(_)), None], 1)), "{:?}", found(text));
    let analysis = analysed(text);
    let why = analysis.units[unit(&analysis, "f")].opaque.map(|why| analysis.told(why));
    assert!(why.as_ref().is_some_and(|why| why.contains("line 9 throws")), "{why:?}");
    // Without a table, or without calls, that path does not exist.
    assert_eq!(found(&text.replace("0x1b,.Ltable", "0xff")).0, [None; 2]);
    assert_eq!(found(&text.replace("        call elsewhere\n", "")).0, [None; 2]);
}

#[test]
fn real_files_parse_and_lose_a_function_at_most() {
    let text = "
        .globl f
f:      movq %rdi, -8(%rsp)
        leaq buffer(%rip), %rdi
        rep;movsq
        data16
        leaq (%rsi), %rdi
        movq -8(%rsp), %rax
        ret
        .globl g
        .type g, @function
g:
        .byte 0xf3,0x0f,0x1e,0xfa
        movq %rdi, -8(%rsp)
        leaq 1(%rdi), %rax
        addq -8(%rsp), %rax
        ret
        .globl h
h:      movq %rdi, -8(%rsp)
        .byte 0x48, 0x83, 0x44, 0x24, 0xf8, 0x05
        movq -8(%rsp), %rax
        ret
        .globl i
i:      movq %rdi, -8(%rsp)
        .byte 0x48, 0x83, 0x44, 0x24, 0xf8, 0x05, 0x90
        movq -8(%rsp), %rax
        ret
        .comm buffer, 64, 8
        .addrsig
";
    let analysis = analysed(text);
    let opaque = |name: &str| analysis.units[unit(&analysis, name)].opaque;
    assert_eq!(["f", "g", "h"].map(opaque), [None; 3]);
    assert!(matches!(opaque("i"), Some(Opaque::Bytes(_))), "{:?}", opaque("i"));
    let plan = plan::plan(&analysis, &wish(Bank::Xmm));
    assert_eq!(plan.homes.len(), 2, "{:?}", plan.stays);
    let text = rewrite::rewrite(&analysis, &plan, Options::default()).expect("rewritten").text;
    assert!(analysed(&text).units.len() == 4, "{text}");
}
