//! The MMX lint finds faults that a caller would notice, and shows them in a run.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![forbid(unsafe_code)]

use std::time::Duration;

use lanework_respill::case::Case;
use lanework_respill::lint::{evidence, lint};
use lanework_respill::load::{Externals, Loaded};
use lanework_respill::{Analysis, Program};

fn program(text: &str) -> Program {
    Program::new("test.s", text).unwrap_or_else(|e| panic!("{e}"))
}

/// Names, functions and lines.
fn found(text: &str) -> Vec<(&'static str, String, usize)> {
    let findings = lint(&Analysis::new(program(text)));
    findings.iter().map(|f| (f.fault.name(), f.function.clone(), f.at.line)).collect()
}

/// As an old compiler of cryptographic code writes it: a pointer is saved in mm2 across a helper that is called by a
/// register.
const PUT_ASIDE: &str = "
        .globl hash
        .globl _hash
_hash:
hash:   movq %rdi, %mm2
        leaq back(%rip), %rcx
        jmp L_mix
back:   movq %mm2, %rdi
        movq %rax, (%rdi)
        ret
L_mix:  leaq (%rsi,%rsi,2), %rax
        jmp *%rcx
";

#[test]
fn a_function_that_leaves_mmx_in_use_is_found_and_shown() {
    assert_eq!(found(PUT_ASIDE), [("left-without-emms", "hash".to_owned(), 10)]);
    let case = Case::parse("measure hash(out: out 8, 5)").unwrap();
    let run = |text: &str| {
        let loaded = Loaded::new(&program(text), &Externals::default()).unwrap();
        evidence::run(&case, &loaded, Duration::from_secs(20)).unwrap()
    };
    let evidence = run(PUT_ASIDE);
    assert!(evidence.broken() && !evidence.x87_empty, "{evidence}");
    assert!(evidence.to_string().contains("is 4.5 before the call and NaN after it"), "{evidence}");
    let clean = PUT_ASIDE.replace("        ret\nL_mix", "        emms\n        ret\nL_mix");
    assert_eq!(found(&clean), []);
    let evidence = run(&clean);
    assert!(!evidence.broken() && evidence.x87_empty, "{evidence}");
}

#[test]
fn every_way_out_counts() {
    let found = found(
        "
        .globl ways, tail, calls, fine
ways:   movd %edi, %mm0
        testl %edi, %edi
        je .Lclean
        movl %edi, %eax
        ret                             # line 7: in use
.Lclean: emms
        ret
tail:   movq %rdi, %mm1
        jmp elsewhere                   # line 11
calls:  subq $8, %rsp
        movq %rdi, %mm1
        call elsewhere                  # line 14
        emms
        addq $8, %rsp
        ret
fine:   movq %rdi, %mm7
        movq %mm7, %rax
        emms
        jmp elsewhere
",
    );
    let want = [
        ("left-without-emms", "ways", 7),
        ("left-without-emms", "tail", 11),
        ("call-without-emms", "calls", 14),
    ];
    assert_eq!(found, want.map(|(name, function, line)| (name, function.to_owned(), line)));
}

#[test]
fn what_a_helper_leaves_is_its_callers_and_floating_point_is_followed() {
    let found = found(
        "
        .globl uses, cleans, floats, holds
uses:   subq $8, %rsp
        call L_dirty
        addq $8, %rsp
        ret                             # line 6
cleans: subq $8, %rsp
        call L_dirty
        call L_clean
        addq $8, %rsp
        ret
floats: movq %rdi, %mm3
        fld1                            # line 13
        fstp %st(0)
        emms
        ret
holds:  fld1
        movq %rdi, %mm3                 # line 18
        emms
        ret
L_dirty: movq %rdi, %mm0
        ret
L_clean: emms
        ret
",
    );
    let want =
        [("left-without-emms", "uses", 6), ("x87-while-mmx", "floats", 13), ("mmx-while-x87", "holds", 18)];
    assert_eq!(found, want.map(|(name, function, line)| (name, function.to_owned(), line)));
}

#[test]
fn what_a_helper_meets_is_its_callers() {
    let found = found(
        "
        .globl calls, floats, jumps, fine
calls:  movq %rdi, %mm0
        subq $8, %rsp
        call L_middle                   # line 5
        emms
        addq $8, %rsp
        ret
floats: movq %rdi, %mm0
        call L_float                    # line 10
        emms
        ret
jumps:  call L_jumps
        call L_inside
        ret
fine:   movq %rdi, %mm0
        subq $8, %rsp
        call L_frees
        addq $8, %rsp
        ret
L_middle: subq $8, %rsp
        call L_outside
        addq $8, %rsp
        ret
L_outside: jmp elsewhere
L_float: fld1
        fstp %st(0)
        ret
L_frees: emms
        jmp elsewhere
L_jumps: movq %rdi, %mm0
        jmp L_inside                    # line 32
L_inside: emms
        ret
",
    );
    let want = [
        ("call-without-emms", "calls", 5),
        ("x87-while-mmx", "floats", 10),
        ("left-without-emms", "L_jumps", 32),
    ];
    assert_eq!(found, want.map(|(name, function, line)| (name, function.to_owned(), line)));
}

#[test]
fn a_crash_is_a_result() {
    let loaded = Loaded::new(&program("f: movl $1, 8\nret\n"), &Externals::default()).unwrap();
    let case = Case::parse("measure f()").unwrap();
    let evidence = evidence::run(&case, &loaded, Duration::from_secs(20)).unwrap();
    assert!(evidence.float.is_none() && evidence.to_string().contains("did not come back"), "{evidence}");
    let missing = Case::parse("measure g()").unwrap();
    assert!(evidence::run(&missing, &loaded, Duration::from_secs(20)).is_err());
}
