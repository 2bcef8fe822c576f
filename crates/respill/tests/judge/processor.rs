//! The judge's meanings of instructions, against the processor: both begin in the same random state, and z3 compares the ends.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use iced_x86::{Mnemonic, Register};

use super::common::generator::Random;
use super::common::native::runs_here;
use super::image::Image;
use super::known::{Frame, Known, begin};
use super::solver::{Answer, Solver};
use super::symbolic::{AF, Home, Machine};
use super::terms::{Term, Terms};
use lanework_respill::homes::Bank;

/// One line of assembly for each form that has a meaning: with general registers and memory at the stack pointer.
const INTEGER: &str = "
movq %rcx, %rax|movl %ecx, %eax|movw %cx, %ax|movb %cl, %al|movb %ch, %al|movb %cl, %ah|movq $-5, %rax|movl $-5, %eax|movabsq $0x123456789abcdef0, %rax
movq 16(%rsp), %rax|movl 16(%rsp), %eax|movw 16(%rsp), %ax|movb 16(%rsp), %ah|movq %rcx, 16(%rsp)|movl %ecx, 16(%rsp)|movw %cx, 16(%rsp)|movb %ch, 16(%rsp)|movl $77, 16(%rsp)|movq $-7, 16(%rsp)
movzbl %cl, %eax|movzbw %ch, %ax|movzwl 16(%rsp), %eax|movsbl %cl, %eax|movsbw %ch, %ax|movswq 16(%rsp), %rax|movslq %ecx, %rax|movslq 16(%rsp), %rax
leaq 7(%rcx,%rdx,4), %rax|leal 7(%rcx,%rdx,8), %eax|leaw -3(%rcx), %ax|leaq (%ecx,%edx), %rax
addq %rcx, %rax|addl %ecx, %eax|addw %cx, %ax|addb %ch, %al|addq 16(%rsp), %rax|addl %ecx, 16(%rsp)|addq $-100, %rax|addb $100, %ah
subq %rcx, %rax|subl 16(%rsp), %eax|subw %cx, %ax|subb %cl, %al|subl $5, 16(%rsp)
cmpq %rcx, %rax|cmpl %ecx, 16(%rsp)|cmpw $3, %ax|cmpb %ch, %al
adcq %rcx, %rax|adcl 16(%rsp), %eax|adcb %cl, %al|sbbq %rcx, %rax|sbbl %ecx, 16(%rsp)|sbbw %cx, %ax|sbbq %rax, %rax
andq %rcx, %rax|andl 16(%rsp), %eax|andb $15, %al|orq %rcx, %rax|orw %cx, %ax|orl $1, 16(%rsp)|xorq %rcx, %rax|xorl %eax, %eax|xorb %ch, %al|testq %rcx, %rax|testl %ecx, 16(%rsp)|testb $1, %al
incq %rax|incl 16(%rsp)|incb %al|decq %rax|decw %ax|decl 16(%rsp)|negq %rax|negl %eax|negb 16(%rsp)|notq %rax|notl 16(%rsp)|notw %ax
xchgq %rcx, %rax|xchgl %ecx, %eax|xchgb %ch, %al
pushq %rcx|pushq $-9|pushq 16(%rsp)|popq %rax|popq 16(%rsp)
cmovoq %rcx, %rax|cmovnol %ecx, %eax|cmovbq 16(%rsp), %rax|cmovael %ecx, %eax|cmoveq %rcx, %rax|cmovnew %cx, %ax|cmovbel 16(%rsp), %eax|cmovaq %rcx, %rax
cmovsl %ecx, %eax|cmovnsq %rcx, %rax|cmovpq %rcx, %rax|cmovnpl %ecx, %eax|cmovlq %rcx, %rax|cmovgel %ecx, %eax|cmovleq %rcx, %rax|cmovgl %ecx, %eax
seto %al|setno %ah|setb %al|setae %al|sete %al|setne 16(%rsp)|setbe %al|seta %al|sets %al|setns %al|setp %al|setnp %al|setl %al|setge %al|setle %al|setg %al
nop|endbr64";

/// Forms that give known results for known numbers; flags are functions of them.
const FOLDED: &str = "
shlq $3, %rax|shll $31, %eax|shlw $9, %ax|shlb $3, %al|salq $63, %rax|shrq $10, %rax|shrl $1, %eax|shrw $15, %ax|shrb $2, %ah|shrl $7, %ecx
sarq $10, %rax|sarl $31, %eax|sarw $3, %ax|sarb $7, %al|shlq %cl, %rax|shrl %cl, %eax|sarq %cl, %rax
imulq %rcx, %rax|imulw %cx, %ax|imulq $-31, %rcx, %rax|imull $31, %ecx, %eax|imulw $7, %cx, %ax";

/// The same for home registers.
const HOMES: &str = "
movq %rax, %xmm15|movd %eax, %xmm15|movq %xmm15, %rax|movd %xmm15, %eax|pxor %xmm15, %xmm15
movq %rax, %mm3|movd %eax, %mm3|movq %mm3, %rax|movd %mm3, %eax|pxor %mm3, %mm3";
const AVX512: &str = "
vmovq %rax, %xmm15|vmovd %eax, %xmm15|vmovq %xmm15, %rax|vmovd %xmm15, %eax|vmovq %rax, %xmm16|vmovd %xmm16, %eax|vpxor %xmm15, %xmm15, %xmm15|vpxorq %xmm16, %xmm16, %xmm16
kmovq %rax, %k3|kmovd %eax, %k3|kmovq %k3, %rax|kmovd %k3, %eax|kxorq %k3, %k3, %k3|kxnorb %k3, %k3, %k3|kxnorb %k2, %k3, %k3|kshiftrb $7, %k3, %k3|kshiftlb $3, %k3, %k3|kshiftlb $9, %k3, %k3|kshiftrb $0, %k3, %k3
vpbroadcastq %rax, %zmm16{%k3}|vpbroadcastq %rax, %zmm15{%k2}|valignq $3, %zmm16, %zmm16, %zmm15|valignq $5, %zmm15, %zmm16, %zmm16|vzeroupper|vzeroall";

/// Words of a state: 16 general registers, flags, 16 words of memory from the stack pointer less 64, two vectors, two masks, mm3.
const WORDS: usize = 16 + 1 + 16 + 16 + 2 + 1;
const BITS: [u32; 7] = [0, 2, 4, 6, 7, 10, 11];

/// A program that runs each form on each state: it reads states, and writes those after them.
fn program(forms: &[&str], wide: bool) -> String {
    let mut out = "\t.text\n".to_owned();
    let names = [
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
        "r14", "r15",
    ];
    for (n, form) in forms.iter().enumerate() {
        let mut say = |line: &str| writeln!(out, "\t{line}").expect("written");
        say(&format!(".globl form{n}\nform{n}:"));
        for name in ["rbx", "rbp", "r12", "r13", "r14", "r15"] {
            say(&format!("push %{name}"));
        }
        say("mov %rsp, saved(%rip)\n\tmov %rdi, here(%rip)");
        // Memory, vectors, masks, flags, then the general registers.
        for k in 0..16 {
            say(&format!("mov {}(%rdi), %rax\n\tmov %rax, frame+{}(%rip)", 8 * (17 + k), 8 * k));
        }
        if wide {
            say(&format!("vmovdqu64 {}(%rdi), %zmm15\n\tvmovdqu64 {}(%rdi), %zmm16", 8 * 33, 8 * 41));
            say(&format!("kmovq {}(%rdi), %k2\n\tkmovq {}(%rdi), %k3", 8 * 49, 8 * 50));
        } else {
            say(&format!("movdqu {}(%rdi), %xmm15", 8 * 33));
        }
        say(&format!("movq {}(%rdi), %mm3\n\tpush {}(%rdi)\n\tpopf", 8 * 51, 8 * 16));
        for (k, name) in names.iter().enumerate().filter(|(k, _)| ![4, 7].contains(k)) {
            say(&format!("mov {}(%rdi), %{name}", 8 * k));
        }
        say("lea frame+64(%rip), %rsp\n\tmov 56(%rdi), %rdi");
        say(form);
        say("mov %rdi, saved+8(%rip)\n\tmov here(%rip), %rdi\n\tmov %rsp, 32(%rdi)\n\tmov saved(%rip), %rsp");
        say(&format!("pushf\n\tpop {}(%rdi)\n\tcld", 8 * 16));
        for (k, name) in names.iter().enumerate().filter(|(k, _)| ![4, 7].contains(k)) {
            say(&format!("mov %{name}, {}(%rdi)", 8 * k));
        }
        say(
            "mov saved+8(%rip), %rax\n\tmov %rax, 56(%rdi)\n\tlea frame+64(%rip), %rax\n\tsub %rax, 32(%rdi)",
        );
        for k in 0..16 {
            say(&format!("mov frame+{}(%rip), %rax\n\tmov %rax, {}(%rdi)", 8 * k, 8 * (17 + k)));
        }
        if wide {
            say(&format!("vmovdqu64 %zmm15, {}(%rdi)\n\tvmovdqu64 %zmm16, {}(%rdi)", 8 * 33, 8 * 41));
            say(&format!("kmovq %k2, {}(%rdi)\n\tkmovq %k3, {}(%rdi)", 8 * 49, 8 * 50));
        } else {
            say(&format!("movdqu %xmm15, {}(%rdi)", 8 * 33));
        }
        say(&format!("movq %mm3, {}(%rdi)\n\temms", 8 * 51));
        for name in ["r15", "r14", "r13", "r12", "rbp", "rbx"] {
            say(&format!("pop %{name}"));
        }
        say("ret");
    }
    out.push_str("\t.data\n\t.balign 64\n\t.globl forms\nforms:\n");
    (0..forms.len()).for_each(|n| writeln!(out, "\t.quad form{n}").expect("written"));
    out.push_str("\t.bss\n\t.balign 64\nsaved: .zero 16\nhere: .zero 8\n\t.balign 64\nframe: .zero 4096\n");
    out + "\t.section .note.GNU-stack,\"\",@progbits\n"
}

/// States of each form.
const TIMES: usize = 6;

const DRIVER: &str = "#include <stdint.h>
#include <stdio.h>
extern void (*forms[])(uint64_t *);
int main(void) {
    uint64_t state[WORDS];
    unsigned form;
    while (scanf(\"%u\", &form) == 1) {
        for (int n = 0; n < WORDS; n++) if (scanf(\"%lx\", &state[n]) != 1) return 1;
        forms[form](state);
        for (int n = 0; n < WORDS; n++) printf(\"%lx \", state[n]);
        puts(\"\");
    }
}
";

/// What the processor makes of states, each for one form.
fn ran(forms: &[&str], wide: bool, states: &[(usize, Vec<u64>)]) -> Vec<Vec<u64>> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("forms.s"), program(forms, wide)).expect("written");
    std::fs::write(path("driver.c"), DRIVER.replace("WORDS", &WORDS.to_string())).expect("written");
    let mut input = String::new();
    for (form, state) in states {
        let words: Vec<String> = state.iter().map(|word| format!("{word:x}")).collect();
        writeln!(input, "{form} {}", words.join(" ")).expect("written");
    }
    std::fs::write(path("input"), input).expect("written");
    let mut cc = Command::new("cc");
    cc.args(["-O0", "-w", "-no-pie", "-o"]).arg(path("program")).arg(path("driver.c")).arg(path("forms.s"));
    let out = cc.output().expect("cc");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let input = std::fs::File::open(path("input")).expect("the states");
    let out = Command::new(path("program")).stdin(input).output().expect("it starts");
    assert!(out.status.success(), "{}", out.status);
    let said = String::from_utf8_lossy(&out.stdout);
    let word = |said: &str| u64::from_str_radix(said, 16).expect("a number");
    said.lines().map(|line| line.split_whitespace().map(word).collect()).collect()
}

/// Whether the judge's meaning of a form leads from each state to the other.
fn agrees(image: &Image, form: usize, wide: bool, states: &[(&[u64], &[u64])], solver: &mut Solver) -> bool {
    let mut terms = Terms::default();
    let mut goals: Vec<(Term, Term)> = Vec::new();
    for (words, ends) in states {
        one(&mut terms, image, form, wide, words, ends, &mut goals);
    }
    goals.retain(|(a, b)| a != b);
    goals.is_empty() || solver.ask(&terms.query(&[], &goals)) == Answer::Never
}

/// The equations of one state.
fn one(
    t: &mut Terms,
    image: &Image,
    form: usize,
    wide: bool,
    words: &[u64],
    ends: &[u64],
    goals: &mut Vec<(Term, Term)>,
) {
    let registers = if wide {
        vec![Register::ZMM15, Register::ZMM16, Register::K2, Register::K3, Register::MM3]
    } else {
        vec![Register::ZMM15, Register::MM3]
    };
    let mut frame = Frame {
        moved: BTreeMap::new(),
        homes: registers.into_iter().collect(),
        bases: BTreeMap::from([(t.constant(64, 0), 0)]),
        depths: BTreeMap::new(),
        wrong: Vec::new(),
    };
    let ([_, mut state], _) = begin(t, &frame, &Known::entry(), true);
    frame.bases.clear();
    let top = 0x1_0000u64;
    for n in 0..16 {
        state.general[n] = t.constant(64, if n == 4 { top } else { words[n] });
    }
    for (n, bit) in BITS.iter().enumerate() {
        state.flags[n] = t.constant(1, words[16] >> bit & 1);
    }
    let place = |n: usize| top - 64 + 8 * n as u64;
    for n in 0..16 {
        let (address, value) = (t.constant(64, place(n)), t.constant(64, words[17 + n]));
        state.memory = t.store(state.memory, address, value);
    }
    // The word of each part of a home.
    let mut parts: Vec<(Home, usize)> = vec![(Home::Mm(3), 51)];
    if wide {
        parts.extend(
            (0..8).flat_map(|n| [(Home::Lane(15, n), 33 + n as usize), (Home::Lane(16, n), 41 + n as usize)]),
        );
        parts.extend([(Home::K(2), 49), (Home::K(3), 50)]);
    } else {
        parts.extend([(Home::Lane(15, 0), 33), (Home::Lane(15, 1), 34)]);
    }
    for &(home, word) in &parts {
        state.homes.insert(home, t.constant(64, words[word]));
    }
    let op = &image.ops[image.labels[&format!("form{form}")]];
    let Frame { moved, homes, bases, depths, .. } = &mut frame;
    let mut machine = Machine {
        terms: t,
        bases,
        moved,
        homes,
        depths,
        site: 0,
        given: Vec::new(),
        problems: Vec::new(),
        touched: Vec::new(),
    };
    let flags = machine.integer(op, &mut state) || machine.transfer(op, &mut state);
    let known = flags || machine.scalar(op, &mut state);
    assert!(known && machine.problems.is_empty(), "no meaning: {:?}", machine.problems);
    for n in 0..16 {
        let want = t.constant(64, if n == 4 { top.wrapping_add(ends[4]) } else { ends[n] });
        goals.push((state.general[n], want));
        let address = t.constant(64, place(n));
        goals.push((t.load(state.memory, address, 64), t.constant(64, ends[17 + n])));
    }
    // What the manual leaves undefined is not compared.
    let undefined = matches!(op.i.mnemonic(), Mnemonic::And | Mnemonic::Or | Mnemonic::Xor | Mnemonic::Test);
    for (n, bit) in BITS.iter().enumerate().filter(|(n, _)| flags && (*n != AF || !undefined)) {
        goals.push((state.flags[n], t.constant(1, ends[16] >> bit & 1)));
    }
    goals.extend(parts.iter().map(|&(home, word)| (state.homes[&home], t.constant(64, ends[word]))));
}

fn forms(all: &str) -> Vec<&str> {
    all.split(['|', '\n']).map(str::trim).filter(|form| !form.is_empty()).collect()
}

fn states(forms: usize, times: usize) -> Vec<(usize, Vec<u64>)> {
    let mut random = Random(7);
    let mut out = Vec::new();
    for form in 0..forms {
        for n in 0..times {
            let mut words: Vec<u64> = (0..WORDS).map(|_| random.next()).collect();
            // Small numbers and equal ones reach flags that random ones do not.
            if n % 3 == 1 {
                words.iter_mut().for_each(|word| *word = (*word % 5).wrapping_sub(2));
            }
            // Carry, parity, half carry, zero, sign and overflow; no direction.
            words[16] = words[16] & 0x8d5 | 2;
            out.push((form, words));
        }
    }
    out
}

fn image(forms: &[&str]) -> Image {
    let lines: String = forms.iter().enumerate().map(|(n, form)| format!("form{n}:\t{form}\n")).collect();
    Image::of(&format!("\t.text\n{lines}\tret\n")).expect("assembled")
}

#[test]
fn the_meanings_are_those_of_the_processor() {
    let Some(mut solver) = Solver::start("meanings of instructions") else { return };
    let wide = runs_here(Bank::ZmmLane);
    let all = [INTEGER, FOLDED, HOMES, if wide { AVX512 } else { "" }].join("\n");
    let forms = forms(&all);
    let states = states(forms.len(), TIMES);
    let ends = ran(&forms, wide, &states);
    let image = image(&forms);
    let all: Vec<(&[u64], &[u64])> = states.iter().zip(&ends).map(|((_, a), b)| (&a[..], &b[..])).collect();
    let wrong: Vec<&str> = all
        .chunks(TIMES)
        .enumerate()
        .filter(|(form, states)| !agrees(&image, *form, wide, states, &mut solver))
        .map(|(form, _)| forms[form])
        .collect();
    println!("{} forms on {} states, {} asked of z3", forms.len(), states.len(), solver.queries);
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn another_instruction_has_another_meaning() {
    let Some(mut solver) = Solver::start("planted meanings") else { return };
    let pairs = [
        ("addq %rcx, %rax", "adcq %rcx, %rax"),
        ("movl %ecx, %eax", "movq %rcx, %rax"),
        ("movw %cx, %ax", "movl %ecx, %eax"),
        ("movb %ch, %al", "movb %cl, %al"),
        ("cmpl %ecx, %eax", "cmpq %rcx, %rax"),
        ("incq %rax", "addq $1, %rax"),
        ("negq %rax", "notq %rax"),
        ("cmovlq %rcx, %rax", "cmovleq %rcx, %rax"),
        ("cmovaq %rcx, %rax", "cmovaeq %rcx, %rax"),
        ("sets %al", "setl %al"),
        ("movzbl %cl, %eax", "movsbl %cl, %eax"),
        ("pushq %rcx", "movq %rcx, -8(%rsp)"),
        ("movd %eax, %xmm15", "movq %rax, %xmm15"),
        ("shrq $10, %rax", "sarq $10, %rax"),
        ("shlq $10, %rax", "shlq $11, %rax"),
        ("imulq %rcx, %rax", "imull %ecx, %eax"),
        ("movd %mm3, %eax", "movq %mm3, %rax"),
    ];
    for (meant, run) in pairs {
        let states = states(1, TIMES);
        let ends = ran(&[run], false, &states);
        let image = image(&[meant]);
        let all: Vec<(&[u64], &[u64])> =
            states.iter().zip(&ends).map(|((_, a), b)| (&a[..], &b[..])).collect();
        let found = !agrees(&image, 0, false, &all, &mut solver);
        assert!(found, "{meant} passes for {run}");
    }
}
