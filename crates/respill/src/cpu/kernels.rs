//! The text of the small loops that are timed: a spill and a reload for each home, alone and beside other work.
#![forbid(unsafe_code)]

use std::fmt::Write as _;

use iced_x86::Register;
use lanework_cpu::{Feature, Features};

use crate::homes::{Home, Style, Syntax};

/// A kind of place for a value, in one way to write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The stack, addressed by the stack pointer.
    Stack,
    /// The same with values of 4 bytes.
    Stack32,
    /// The stack by another base register.
    StackByBase,
    /// The stack by a base and an index register.
    StackByIndex,
    /// An MMX register.
    Mm,
    /// A vector register's low lane by an SSE move.
    Xmm,
    /// The same by a VEX-encoded move.
    XmmVex,
    /// The low lane of a register that only EVEX can name.
    Xmm17,
    /// A mask register.
    K,
    /// A vector register's high lane, by insertion and extraction.
    XmmHigh,
    /// A lane of a long vector register, by a masked broadcast and a shift of lanes.
    ZmmLane,
}

impl Kind {
    /// All of them, in the order of the table.
    pub const ALL: [Kind; 11] = [
        Kind::Stack,
        Kind::Stack32,
        Kind::StackByBase,
        Kind::StackByIndex,
        Kind::Mm,
        Kind::Xmm,
        Kind::XmmVex,
        Kind::Xmm17,
        Kind::K,
        Kind::XmmHigh,
        Kind::ZmmLane,
    ];

    /// Its name in the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Stack => "stack",
            Kind::Stack32 => "stack, 32 bits",
            Kind::StackByBase => "stack by another base",
            Kind::StackByIndex => "stack by base and index",
            Kind::Mm => "mm",
            Kind::Xmm => "xmm, SSE",
            Kind::XmmVex => "xmm, VEX",
            Kind::Xmm17 => "xmm17, EVEX",
            Kind::K => "k",
            Kind::XmmHigh => "xmm, high lane",
            Kind::ZmmLane => "zmm lane",
        }
    }

    /// The extensions that its moves belong to.
    #[must_use]
    pub const fn extensions(self) -> &'static [Feature] {
        match self {
            Kind::Stack | Kind::Stack32 | Kind::StackByBase | Kind::StackByIndex | Kind::Mm | Kind::Xmm => {
                &[]
            }
            Kind::XmmVex => &[Feature::Avx],
            Kind::Xmm17 => &[Feature::Avx512f],
            Kind::K => &[Feature::Avx512bw],
            Kind::XmmHigh => &[Feature::Sse41],
            Kind::ZmmLane => &[Feature::Avx512bw, Feature::Avx512dq],
        }
    }

    /// The required features.
    #[must_use]
    pub const fn needs(self) -> Features {
        Features::of(self.extensions())
    }

    /// The `n`th of the places that a loop uses in turn; the vector work beside uses none of them.
    fn place(self, n: u8) -> Place {
        match self {
            Kind::Stack | Kind::Stack32 | Kind::StackByBase | Kind::StackByIndex => Place::Memory(n),
            Kind::Mm => Place::Home(Home::Mm(n), false),
            Kind::Xmm => Place::Home(Home::Xmm(8 + n), false),
            Kind::XmmVex => Place::Home(Home::Xmm(8 + n), true),
            Kind::Xmm17 => Place::Home(Home::Xmm(17 + n), true),
            Kind::K => Place::Home(Home::K(n % 7 + 1), true),
            Kind::XmmHigh => Place::High(8 + n),
            Kind::ZmmLane => Place::Home(Home::Lane { zmm: 16 + n, lane: 1 }, true),
        }
    }

    fn address(self, n: u8) -> String {
        let offset = 8 * u32::from(n);
        match self {
            Kind::StackByBase => format!("{offset}(%rbp)"),
            Kind::StackByIndex => format!("{offset}(%rsp,%r10,8)"),
            _ => format!("{offset}(%rsp)"),
        }
    }

    fn put(self, from: Register, n: u8) -> String {
        match self.place(n) {
            Place::Memory(n) if self == Kind::Stack32 => {
                format!("movl {}, {}", name(from.full_register32()), self.address(n))
            }
            Place::Memory(n) => format!("movq {}, {}", name(from), self.address(n)),
            Place::High(n) => format!("pinsrq $1, {}, %xmm{n}", name(from)),
            Place::Home(home, vex) => Style { syntax: Syntax::Att, vex }.put(from, home, 8),
        }
    }

    fn take(self, n: u8, to: Register) -> String {
        match self.place(n) {
            Place::Memory(n) if self == Kind::Stack32 => {
                format!("movl {}, {}", self.address(n), name(to.full_register32()))
            }
            Place::Memory(n) => format!("movq {}, {}", self.address(n), name(to)),
            Place::High(n) => format!("pextrq $1, %xmm{n}, {}", name(to)),
            Place::Home(home, vex) => Style { syntax: Syntax::Att, vex }.take(home, to, 8),
        }
    }
}

enum Place {
    Memory(u8),
    High(u8),
    Home(Home, bool),
}

fn name(register: Register) -> String {
    format!("%{register:?}").to_ascii_lowercase()
}

/// The work of a loop's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A spill and a reload in a chain with one addition.
    Dependent,
    /// An independent spill and reload.
    Pair,
    /// A reload.
    Reload,
    /// A spill.
    Spill,
    /// A pair beside loads and stores that keep their ports busy.
    BesideMemory,
    /// A pair beside vector arithmetic that keeps its ports busy.
    BesideVectors,
    /// A spill and `emms`.
    Emms,
}

/// A loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// Additions that wait for each other: one cycle each.
    Chain,
    /// A home and the work with it.
    Home(Kind, Shape),
    /// The loads and stores alone.
    Memory,
    /// The same and two `nop`, which only use the front end.
    MemoryAndNops,
    /// The vector arithmetic alone.
    Vectors,
    /// The same and two `nop`.
    VectorsAndNops,
}

/// Units in one turn of a loop.
pub const UNITS: u64 = 16;
/// Places that a loop uses in turn.
const PLACES: u8 = 7;
/// Registers that reloads go to in turn; rax is spilled, rbp and r10 are addresses, rdi counts.
const TO: [Register; 6] =
    [Register::RCX, Register::RDX, Register::RSI, Register::R8, Register::R11, Register::RBX];

impl Kernel {
    /// Every loop that a processor with these features can run.
    #[must_use]
    pub fn all(features: Features) -> Vec<Kernel> {
        let mut out = vec![
            Kernel::Chain,
            Kernel::Memory,
            Kernel::MemoryAndNops,
            Kernel::Vectors,
            Kernel::VectorsAndNops,
            Kernel::Home(Kind::Mm, Shape::Emms),
        ];
        for kind in Kind::ALL.into_iter().filter(|kind| features.includes(kind.needs())) {
            for shape in [
                Shape::Dependent,
                Shape::Pair,
                Shape::Reload,
                Shape::Spill,
                Shape::BesideMemory,
                Shape::BesideVectors,
            ] {
                out.push(Kernel::Home(kind, shape));
            }
        }
        out
    }

    /// The name of its function, which takes the number of turns as its one argument.
    #[must_use]
    pub fn symbol(self) -> String {
        format!("lanework_{self:?}").replace(['(', ')', ' '], "").replace(',', "_").to_ascii_lowercase()
    }

    fn unit(self, n: u8) -> Vec<String> {
        let turn = n % PLACES;
        let to = TO[usize::from(n) % TO.len()];
        let pair = |kind: Kind| vec![kind.put(Register::RAX, turn), kind.take(turn, to)];
        let nops = || vec!["nop".to_owned(); 2];
        match self {
            Kernel::Chain => vec!["addq %rcx, %rax".to_owned()],
            Kernel::Memory => memory(n),
            Kernel::MemoryAndNops => [memory(n), nops()].concat(),
            Kernel::Vectors => vectors(),
            Kernel::VectorsAndNops => [vectors(), nops()].concat(),
            Kernel::Home(kind, shape) => match shape {
                Shape::Dependent => vec![
                    "addq %rcx, %rax".to_owned(),
                    kind.put(Register::RAX, 0),
                    kind.take(0, Register::RAX),
                ],
                Shape::Pair => pair(kind),
                Shape::Reload => vec![kind.take(turn, to)],
                Shape::Spill => vec![kind.put(Register::RAX, turn)],
                Shape::BesideMemory => [memory(n), pair(kind)].concat(),
                Shape::BesideVectors => [vectors(), pair(kind)].concat(),
                Shape::Emms => vec![kind.put(Register::RAX, turn), "emms".to_owned()],
            },
        }
    }
}

/// Six loads and four stores of cells of their own.
fn memory(n: u8) -> Vec<String> {
    let mut out = Vec::new();
    for i in 0..6u32 {
        let to = name(TO[(i as usize + usize::from(n)) % TO.len()]);
        out.push(format!("movq {}(%rsp), {to}", 256 + 8 * i));
        if i % 3 != 2 {
            out.push(format!("movq %rax, {}(%rsp)", 512 + 8 * (i + 6 * u32::from(n % 2))));
        }
    }
    out
}

/// Eight additions, each waiting only for its own in the unit before.
fn vectors() -> Vec<String> {
    (0..8).map(|i| format!("paddq %xmm{i}, %xmm{i}")).collect()
}

/// The assembly text of loops, a function for each.
#[must_use]
pub fn text(kernels: &[Kernel]) -> String {
    let mut out = String::from("\t.text\n");
    for &kernel in kernels {
        let symbol = kernel.symbol();
        let lanes = matches!(kernel, Kernel::Home(Kind::ZmmLane, _));
        let long = matches!(kernel, Kernel::Home(kind, _) if kind.needs().contains(Feature::Avx));
        // Infallible: the target is a string.
        let _ = write!(
            out,
            "\t.globl {symbol}\n\t.type {symbol}, @function\n\t.p2align 6\n{symbol}:\n\tpushq %rbx\n\tpushq %rbp\n\
             \tsubq $1032, %rsp\n\tmovq %rsp, %rbp\n\txorl %r10d, %r10d\n\tmovl $1, %ecx\n\tmovl $3, %eax\n"
        );
        if lanes {
            for line in (Style { syntax: Syntax::Att, vex: true }).prepare(&[1]) {
                let _ = writeln!(out, "\t{line}");
            }
        }
        // In every loop reloads find a spilled value.
        if let Kernel::Home(kind, _) = kernel {
            for n in 0..PLACES {
                let _ = writeln!(out, "\t{}", kind.put(Register::RAX, n));
            }
        }
        let _ = writeln!(out, "\t.p2align 6\n1:");
        for n in 0..UNITS as u8 {
            for line in kernel.unit(n) {
                let _ = writeln!(out, "\t{line}");
            }
        }
        out.push_str("\tdecq %rdi\n\tjnz 1b\n\taddq $1032, %rsp\n\tpopq %rbp\n\tpopq %rbx\n");
        if matches!(kernel, Kernel::Home(Kind::Mm, _)) {
            out.push_str("\temms\n");
        }
        if long {
            out.push_str("\tvzeroupper\n");
        }
        let _ = writeln!(out, "\tret\n\t.size {symbol}, .-{symbol}");
    }
    out.push_str("\t.section .note.GNU-stack,\"\",@progbits\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Program;

    #[test]
    fn every_loop_assembles_under_its_own_name() {
        let all = Kernel::all(Features::of(Feature::ALL));
        let program = Program::new("kernels", text(&all)).unwrap_or_else(|e| panic!("{e}"));
        let names: Vec<&str> =
            program.names.values().flatten().filter(|n| n.global).map(|n| n.name.as_str()).collect();
        let mut symbols: Vec<String> = all.iter().map(|k| k.symbol()).collect();
        symbols.sort();
        symbols.dedup();
        assert_eq!((names.len(), symbols.len()), (all.len(), all.len()));
        assert_eq!(all.len(), 6 + 6 * Kind::ALL.len());
    }

    #[test]
    fn without_extensions_only_their_homes_are_missing() {
        let plain = Kernel::all(Features::NONE);
        assert_eq!(plain.len(), 6 + 6 * 6);
        assert!(!text(&plain).contains("vmov"), "a plain processor runs no VEX move");
        assert!(
            Kernel::all(Features::of(&[Feature::Avx])).contains(&Kernel::Home(Kind::XmmVex, Shape::Pair))
        );
    }
}
