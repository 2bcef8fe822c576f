//! A function as it is made: its frame and registers, from the prologue to the return.

use std::collections::BTreeSet;

use super::traits::Trait;
use super::{Features, Generated, Known, Privacy, Random};

pub(super) const R64: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];
pub(super) const R32: [&str; 16] = [
    "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "r8d", "r9d", "r10d", "r11d", "r12d", "r13d",
    "r14d", "r15d",
];
pub(super) const CONDITIONS: [&str; 12] = ["e", "ne", "b", "ae", "be", "a", "l", "ge", "le", "g", "s", "ns"];
pub(super) const SAVED: [usize; 5] = [3, 12, 13, 14, 15];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// Below the stack pointer of a function that calls nothing.
    RedZone,
    Rsp,
    Rbp,
    /// From an aligned rsp.
    Aligned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Slot(i64),
    /// This many elements of 8 bytes.
    Array(i64),
    /// 16 or 32 bytes.
    Vector(i64),
}

#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) at: i64,
    pub(super) kind: Kind,
    /// Whether it holds a value here on every path.
    pub(super) init: bool,
    /// Whether anything has been written to it so far.
    pub(super) written: bool,
    pub(super) privacy: Privacy,
}

impl Cell {
    pub(super) fn fill(&mut self) {
        (self.init, self.written) = (true, true);
    }
}

pub(super) struct Maker<'a> {
    pub(super) random: &'a mut Random,
    pub(super) here: Features,
    pub(super) name: String,
    pub(super) lines: Vec<String>,
    pub(super) base: Base,
    pub(super) size: i64,
    pub(super) cells: Vec<Cell>,
    pub(super) saved: Vec<usize>,
    /// Bytes pushed since the prologue.
    pub(super) pushed: i64,
    pub(super) traits: Vec<Trait>,
    pub(super) labels: usize,
    /// Registers that hold a loop's counter.
    pub(super) reserved: Vec<usize>,
    /// Names of helpers that take nothing but registers.
    pub(super) helpers: Vec<String>,
    pub(super) features: BTreeSet<&'static str>,
    /// Whether an address of the frame has left, or an index has no bounds.
    pub(super) open: Option<&'static str>,
    pub(super) beside: Option<&'static str>,
    pub(super) vex: bool,
    pub(super) helper: bool,
}

impl<'a> Maker<'a> {
    pub(super) fn new(
        random: &'a mut Random,
        here: Features,
        name: &str,
        traits: Vec<Trait>,
        helpers: Vec<String>,
        helper: bool,
    ) -> Maker<'a> {
        let calls = [
            Trait::LocalCalls,
            Trait::OutsideCalls,
            Trait::Memset,
            Trait::CallBack,
            Trait::Indirect,
            Trait::LongDouble,
            Trait::Recursion,
            Trait::Pushes,
            Trait::Pointer(5),
            Trait::Pointer(10),
            Trait::Pointer(13),
            Trait::Pointer(14),
        ];
        let base = match random.below(10) {
            0..2 if !traits.iter().any(|one| calls.contains(one)) => Base::RedZone,
            0..6 => Base::Rsp,
            6..9 => Base::Rbp,
            _ => Base::Aligned,
        };
        let vex = here.avx2 && random.one_in(2);
        Maker {
            random,
            here,
            name: name.to_owned(),
            lines: Vec::new(),
            base,
            size: 0,
            cells: Vec::new(),
            saved: Vec::new(),
            pushed: 0,
            traits,
            labels: 0,
            reserved: Vec::new(),
            helpers,
            features: BTreeSet::new(),
            open: None,
            beside: None,
            vex,
            helper,
        }
    }

    pub(super) fn has(&self, one: Trait) -> bool {
        self.traits.contains(&one)
    }

    pub(super) fn say(&mut self, line: impl Into<String>) {
        self.lines.push(format!("\t{}", line.into()));
    }

    pub(super) fn label(&mut self) -> String {
        self.labels += 1;
        format!(".L{}_{}", self.name, self.labels)
    }

    /// The operand of `at` bytes into the frame, with what follows the base register.
    pub(super) fn operand(&self, at: i64, index: &str) -> String {
        match self.base {
            Base::RedZone => format!("{}(%rsp{index})", at - self.size),
            Base::Rsp | Base::Aligned => format!("{}(%rsp{index})", at + self.pushed),
            Base::Rbp => format!("{}(%rbp{index})", at - self.size - 8 * self.saved.len() as i64),
        }
    }

    /// Bytes from the stack pointer at the entry, or from the aligned base.
    pub(super) fn offset(&self, at: i64) -> i64 {
        match self.base {
            Base::RedZone => at - self.size,
            Base::Rsp => at - self.size - 8 * self.saved.len() as i64,
            Base::Rbp => at - self.size - 8 * self.saved.len() as i64 - 8,
            Base::Aligned => at - self.size,
        }
    }

    pub(super) fn cell(&self, n: usize) -> String {
        self.operand(self.cells[n].at, "")
    }

    /// The registers for values: not the stack pointer, nor a frame pointer, nor one that is in use.
    pub(super) fn registers(&self) -> Vec<usize> {
        let mut all = vec![0, 1, 2, 6, 7, 8, 9, 10, 11];
        all.extend(&self.saved);
        all.retain(|n| !self.reserved.contains(n));
        all
    }

    pub(super) fn register(&mut self) -> usize {
        let all = self.registers();
        self.random.of(&all)
    }

    /// A register other than these.
    pub(super) fn besides(&mut self, not: &[usize]) -> usize {
        let all: Vec<usize> = self.registers().into_iter().filter(|n| !not.contains(n)).collect();
        self.random.of(&all)
    }

    pub(super) fn small(&mut self) -> i64 {
        match self.random.below(4) {
            0 => self.random.below(8) as i64,
            1 => -(self.random.below(200) as i64),
            2 => self.random.below(1 << 30) as i64,
            _ => self.random.below(256) as i64,
        }
    }

    /// Plain slots that hold a value.
    pub(super) fn full(&self) -> Vec<usize> {
        (0..self.cells.len())
            .filter(|&n| self.cells[n].init && matches!(self.cells[n].kind, Kind::Slot(_)))
            .collect()
    }

    pub(super) fn slots(&self) -> Vec<usize> {
        (0..self.cells.len()).filter(|&n| matches!(self.cells[n].kind, Kind::Slot(_))).collect()
    }

    pub(super) fn alias(&mut self, n: usize, class: &'static str) {
        self.cells[n].privacy = Privacy::Aliased(class);
    }

    /// The size of a slot, a register of it, and the suffix of an instruction.
    pub(super) fn sized(&self, n: usize, register: usize) -> (&'static str, &'static str) {
        match self.cells[n].kind {
            Kind::Slot(4) => (R32[register], "l"),
            _ => (R64[register], "q"),
        }
    }

    pub(super) fn array(&self) -> Option<usize> {
        (0..self.cells.len()).find(|&n| matches!(self.cells[n].kind, Kind::Array(_)))
    }

    pub(super) fn make(mut self) -> Generated {
        let slots = if self.helper { 1 + self.random.below(3) } else { 2 + self.random.below(7) };
        let mut kinds: Vec<Kind> =
            (0..slots).map(|_| Kind::Slot(if self.random.one_in(3) { 4 } else { 8 })).collect();
        let arrays = self.has(Trait::Bounded)
            || self.has(Trait::TooFar)
            || self.has(Trait::Wild)
            || self.has(Trait::Pointer(8))
            || self.has(Trait::Pointer(9));
        if arrays && self.base != Base::RedZone {
            kinds.push(Kind::Array(4));
        }
        if self.has(Trait::Vectors) || self.has(Trait::LongDouble) {
            kinds.push(Kind::Vector(16));
            if self.vex {
                kinds.push(Kind::Vector(32));
            }
        }
        for n in (1..kinds.len()).rev() {
            let other = self.random.below(n + 1);
            kinds.swap(n, other);
        }
        let outgoing = if self.has(Trait::OutsideCalls) && self.base != Base::RedZone { 16 } else { 0 };
        let mut at = outgoing;
        for kind in kinds {
            let size = match kind {
                Kind::Slot(n) | Kind::Vector(n) => n,
                Kind::Array(n) => 8 * n,
            };
            // Slots of 4 bytes lie beside each other, or half of one is left.
            if size >= 8 {
                at = (at + 7) & !7;
            }
            self.cells.push(Cell { at, kind, init: false, written: false, privacy: Privacy::Private });
            at += size;
        }
        self.size = (at + 15) & !15;
        if self.base == Base::RedZone && self.size > 128 {
            self.base = Base::Rsp;
        }
        let pushes = self.random.below(4);
        if self.base != Base::RedZone {
            self.saved = SAVED.into_iter().filter(|_| self.random.below(5) < pushes).collect();
        }
        self.prologue();
        self.begin();
        let statements = if self.helper { 3 + self.random.below(8) } else { 8 + self.random.below(22) };
        let places: Vec<usize> = (0..self.traits.len()).map(|_| self.random.below(statements)).collect();
        for n in 0..statements {
            for k in 0..places.len() {
                if places[k] == n {
                    self.special(self.traits[k]);
                }
            }
            self.statement(0);
        }
        self.end();
        self.finish()
    }

    pub(super) fn prologue(&mut self) {
        let frame = self.size;
        match self.base {
            Base::RedZone => (),
            Base::Rsp => {
                for n in self.saved.clone() {
                    self.say(format!("pushq\t%{}", R64[n]));
                }
                self.say(format!("subq\t${frame}, %rsp"));
            }
            Base::Rbp | Base::Aligned => {
                self.say("pushq\t%rbp");
                self.say("movq\t%rsp, %rbp");
                for n in self.saved.clone() {
                    self.say(format!("pushq\t%{}", R64[n]));
                }
                if self.base == Base::Aligned {
                    self.say("andq\t$-32, %rsp");
                }
                self.say(format!("subq\t${frame}, %rsp"));
            }
        }
    }

    pub(super) fn epilogue(&mut self) {
        match self.base {
            Base::RedZone => (),
            Base::Rsp => {
                self.say(format!("addq\t${}, %rsp", self.size));
                for n in self.saved.clone().into_iter().rev() {
                    self.say(format!("popq\t%{}", R64[n]));
                }
            }
            Base::Rbp | Base::Aligned => {
                if self.saved.is_empty() {
                    self.say("movq\t%rbp, %rsp");
                } else {
                    self.say(format!("leaq\t{}(%rbp), %rsp", -8 * self.saved.len() as i64));
                }
                for n in self.saved.clone().into_iter().rev() {
                    self.say(format!("popq\t%{}", R64[n]));
                }
                self.say("popq\t%rbp");
            }
        }
    }

    /// The first stores, and the bytes of arrays.
    pub(super) fn begin(&mut self) {
        for n in self.saved.clone() {
            let from = self.random.of(&[0, 1, 2, 6, 7, 8, 9, 10, 11]);
            let by = self.random.below(64);
            self.say(format!("leaq\t{by}(%{}), %{}", R64[from], R64[n]));
        }
        for n in 0..self.cells.len() {
            match self.cells[n].kind {
                Kind::Slot(_) if self.random.below(3) > 0 => self.store(n),
                Kind::Array(elements) => {
                    for k in 0..elements {
                        let from = self.register();
                        let to = self.operand(self.cells[n].at + 8 * k, "");
                        self.say(format!("movq\t%{}, {to}", R64[from]));
                    }
                    self.cells[n].fill();
                }
                _ => (),
            }
        }
        if self.full().is_empty() {
            self.store(self.slots()[0]);
        }
    }

    /// The result depends on every slot that holds a value.
    pub(super) fn end(&mut self) {
        for n in self.full() {
            if self.random.below(4) > 0 {
                let slot = self.cell(n);
                let (suffix, rax, rcx) = if self.cells[n].kind == Kind::Slot(4) {
                    ("l", "eax", "ecx")
                } else {
                    ("q", "rax", "rcx")
                };
                // Where the file may rely on every register at the end, none is free, unless a compiler writes one there.
                let relied = self.helper || self.has(Trait::TailCall) || self.has(Trait::HalfTail);
                if relied && !self.random.one_in(4) {
                    self.say(format!("mov{suffix}\t{slot}, %{rcx}"));
                    self.say(format!("add{suffix}\t%{rcx}, %{rax}"));
                } else {
                    self.say(format!("add{suffix}\t{slot}, %{rax}"));
                }
                self.say("imulq\t$31, %rax, %rax");
            }
        }
        if let Some(array) = self.array() {
            for k in 0..4 {
                let place = self.operand(self.cells[array].at + 8 * k, "");
                self.say(format!("xorq\t{place}, %rax"));
                self.say("rolq\t$5, %rax");
            }
        }
        if self.has(Trait::ReturnsVector) {
            self.say("movq\t%rax, %xmm0");
            self.say("pshufd\t$68, %xmm0, %xmm0");
            self.features.insert("returns a vector");
        }
        if self.has(Trait::LongDouble) && self.random.one_in(2) && !self.helper {
            self.say("fildq\tg_buf(%rip)");
            self.features.insert("returns in st(0)");
        }
        self.epilogue();
        if self.has(Trait::HalfTail) && !self.helpers.is_empty() {
            let (helper, condition) = (self.helpers[0].clone(), self.random.of(&CONDITIONS));
            self.say("testb\t%al, %al");
            self.say(format!("j{condition}\t{helper}"));
            self.features.insert("conditional tail call");
        }
        if self.has(Trait::TailCall) && !self.helpers.is_empty() && self.base != Base::RedZone {
            let helper = self.helpers[0].clone();
            self.say(format!("jmp\t{helper}"));
            self.features.insert("tail call");
        } else {
            self.say("ret");
        }
    }

    pub(super) fn finish(self) -> Generated {
        let mut text = String::new();
        if self.has(Trait::Indirect) && self.features.contains("indirect call") {
            let helper = &self.helpers[0];
            text.push_str(&format!(
                "\t.data\n\t.align\t8\n.L{helper}_pointer:\n\t.quad\t{helper}\n\t.text\n"
            ));
        }
        if !self.helper {
            text.push_str(&format!("\t.globl\t{0}\n\t.type\t{0},@function\n", self.name));
        }
        text.push_str(&format!("{}:\n", self.name));
        for line in &self.lines {
            text.push_str(line);
            text.push('\n');
        }
        let privacy = |cell: &Cell| match (cell.privacy, self.open, self.beside) {
            (Privacy::Private, Some(class), _) => Privacy::Open(class),
            (Privacy::Private, None, Some(class)) => Privacy::Beside(class),
            (privacy, ..) => privacy,
        };
        let slots = self
            .cells
            .iter()
            .filter(|cell| matches!(cell.kind, Kind::Slot(_)))
            .map(|cell| Known {
                function: self.name.clone(),
                offset: self.offset(cell.at),
                aligned: self.base == Base::Aligned,
                size: if cell.kind == Kind::Slot(4) { 4 } else { 8 },
                operand: self.operand(cell.at, ""),
                privacy: privacy(cell),
            })
            .collect();
        Generated { name: self.name.clone(), text, slots, features: self.features }
    }
}
