//! Random functions with spills. Each knows which of its slots are private.
//!
//! A slot is *private* if, for every input, only the instructions that name it touch it, and if that follows from the function: each
//! other access to the frame has a known distance or a bounded index, and no address of the frame leaves the function for code that
//! may do anything with it. Everything else about a slot is said in [`Privacy`].
//!
//! A function never reads what it has not written, and never keeps an address of code, so it computes the same on every stack.

mod traits;

use std::collections::BTreeSet;

use traits::{POINTERS, Trait};

/// SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// True once in `n` times.
    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// Vectors that this machine has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Features {
    pub(crate) avx2: bool,
    pub(crate) avx512: bool,
}

impl Features {
    pub(crate) fn here() -> Features {
        Features {
            avx2: std::arch::is_x86_feature_detected!("avx2"),
            avx512: super::native::runs_here(lanework_respill::homes::Bank::K),
        }
    }
}

/// What the generator knows of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Privacy {
    /// Nothing but the instructions that name it touches it.
    Private,
    /// The same, and the function makes an address of its frame in this way, or has such an access to it.
    Beside(&'static str),
    /// It is private, and its function calls itself.
    Recursive,
    /// An instruction names it that only memory can serve.
    Memory,
    /// Something else touches it.
    Aliased(&'static str),
    /// Something else may touch it, as far as the function tells.
    Open(&'static str),
}

/// A slot of 4 or 8 bytes.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) function: String,
    /// Bytes from the stack pointer at the entry, or from where that was aligned.
    pub(crate) offset: i64,
    pub(crate) aligned: bool,
    /// 4 or 8.
    pub(crate) size: i64,
    /// How the function names it, unless it has pushed something.
    pub(crate) operand: String,
    pub(crate) privacy: Privacy,
}

/// A function with its helpers.
#[derive(Clone, Debug)]
pub(crate) struct Generated {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) slots: Vec<Known>,
    /// What it has, by name.
    pub(crate) features: BTreeSet<&'static str>,
}

/// The prefix of every name that a batch defines.
pub(crate) const PREFIX: &str = "zq_";

const R64: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];
const R32: [&str; 16] = [
    "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "r8d", "r9d", "r10d", "r11d", "r12d", "r13d",
    "r14d", "r15d",
];
const CONDITIONS: [&str; 12] = ["e", "ne", "b", "ae", "be", "a", "l", "ge", "le", "g", "s", "ns"];
const SAVED: [usize; 5] = [3, 12, 13, 14, 15];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// Below the stack pointer of a function that calls nothing.
    RedZone,
    /// From rsp.
    Rsp,
    /// From rbp.
    Rbp,
    /// From an aligned rsp.
    Aligned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Slot(i64),
    /// So many elements of 8 bytes.
    Array(i64),
    /// 16 or 32 bytes.
    Vector(i64),
}

#[derive(Clone, Debug)]
struct Cell {
    at: i64,
    kind: Kind,
    /// Whether it holds a value here on every path.
    init: bool,
    /// Whether anything has been written to it so far.
    written: bool,
    privacy: Privacy,
}

impl Cell {
    fn fill(&mut self) {
        (self.init, self.written) = (true, true);
    }
}

struct Maker<'a> {
    random: &'a mut Random,
    here: Features,
    name: String,
    lines: Vec<String>,
    base: Base,
    size: i64,
    cells: Vec<Cell>,
    saved: Vec<usize>,
    /// Bytes pushed since the prologue.
    pushed: i64,
    traits: Vec<Trait>,
    labels: usize,
    /// Registers that hold a loop's counter.
    reserved: Vec<usize>,
    /// Names of helpers that take nothing but registers.
    helpers: Vec<String>,
    features: BTreeSet<&'static str>,
    /// Whether an address of the frame has left, or an index has no bounds.
    open: Option<&'static str>,
    beside: Option<&'static str>,
    vex: bool,
    helper: bool,
}

/// A function of its own seed, with its helpers.
pub(crate) fn function(seed: u64, indirect: bool, here: Features) -> Generated {
    let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x1234);
    let name = format!("{PREFIX}{seed}");
    let mut traits: Vec<Trait> = Vec::new();
    let common = [
        (Trait::Vectors, 5),
        (Trait::Float, 14),
        (Trait::Mmx, 16),
        (Trait::Masks, 16),
        (Trait::LocalCalls, 3),
        (Trait::OutsideCalls, 6),
        (Trait::Memset, 16),
        (Trait::Table, 14),
        (Trait::TailCall, 40),
        (Trait::HalfTail, 12),
        (Trait::Alloca, 40),
        (Trait::Recursion, 40),
        (Trait::CallBack, 32),
        (Trait::LongDouble, 24),
        (Trait::ReturnsVector, 10),
        (Trait::Pushes, 4),
        (Trait::Bounded, 4),
        (Trait::TooFar, 12),
        (Trait::Wild, 16),
        (Trait::Overlap, 14),
        (Trait::Narrow, 12),
        (Trait::Odd, 12),
    ];
    for (one, times) in common {
        if random.one_in(times) {
            traits.push(one);
        }
    }
    if random.one_in(6) {
        let which = random.below(POINTERS.len());
        traits.push(Trait::Pointer(which));
    }
    if indirect && random.one_in(3) {
        traits.push(Trait::Indirect);
    }
    let mut out =
        Generated { name: name.clone(), text: String::new(), slots: Vec::new(), features: BTreeSet::new() };
    let mut helpers = Vec::new();
    let wanted = [Trait::LocalCalls, Trait::TailCall, Trait::HalfTail, Trait::CallBack, Trait::Indirect];
    if traits.iter().any(|one| wanted.contains(one)) {
        for n in 0..1 + random.below(2) {
            let helper = format!("{name}_h{n}");
            let mut few: Vec<Trait> = Vec::new();
            if random.one_in(2) {
                out.text.push_str(&format!("\t.type\t{helper},@function\n"));
            }
            for (one, times) in
                [(Trait::Vectors, 6), (Trait::Bounded, 5), (Trait::Pushes, 6), (Trait::Memset, 24)]
            {
                if random.one_in(times) {
                    few.push(one);
                }
            }
            if n == 1 && random.one_in(2) {
                few.push(Trait::LocalCalls);
            }
            let below = helpers.clone();
            let made = Maker::new(&mut random, here, &helper, few, below, true).make();
            helpers.push(helper);
            out.add(made);
        }
    }
    if traits.contains(&Trait::Recursion) {
        out.add(recursive(&format!("{name}_r")));
    }
    if traits.contains(&Trait::Pointer(10)) {
        out.text.push_str(&format!(
            "{name}_p:\n\tmovq\t(%rdi), %rax\n\taddq\t%rsi, (%rdi)\n\txorl\t%edi, %edi\n\tret\n"
        ));
    }
    let main = Maker::new(&mut random, here, &name, traits, helpers, false).make();
    out.add(main);
    out
}

impl Generated {
    fn add(&mut self, other: Generated) {
        self.text.push_str(&other.text);
        self.slots.extend(other.slots);
        self.features.extend(other.features);
    }
}

/// A function that calls itself up to three times with a live slot.
fn recursive(name: &str) -> Generated {
    let text = format!(
        "{name}:\n\tsubq\t$24, %rsp\n\tmovq\t%rsi, 8(%rsp)\n\tandl\t$3, %edi\n\tje\t.L{name}\n\tdecl\t%edi\n\tleaq\t1(%rsi,%rsi), %rsi\n\
         \tcall\t{name}\n\txorl\t%edi, %edi\n.L{name}:\n\tmovq\t8(%rsp), %rax\n\taddq\t%rsi, %rax\n\taddq\t$24, %rsp\n\tret\n"
    );
    let slot = Known {
        function: name.to_owned(),
        offset: -16,
        aligned: false,
        size: 8,
        operand: "8(%rsp)".to_owned(),
        privacy: Privacy::Recursive,
    };
    Generated { name: name.to_owned(), text, slots: vec![slot], features: BTreeSet::from(["recursion"]) }
}

impl<'a> Maker<'a> {
    fn new(
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

    fn has(&self, one: Trait) -> bool {
        self.traits.contains(&one)
    }

    fn say(&mut self, line: impl Into<String>) {
        self.lines.push(format!("\t{}", line.into()));
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!(".L{}_{}", self.name, self.labels)
    }

    /// The operand of `at` bytes into the frame, with what follows the base register.
    fn operand(&self, at: i64, index: &str) -> String {
        match self.base {
            Base::RedZone => format!("{}(%rsp{index})", at - self.size),
            Base::Rsp | Base::Aligned => format!("{}(%rsp{index})", at + self.pushed),
            Base::Rbp => format!("{}(%rbp{index})", at - self.size - 8 * self.saved.len() as i64),
        }
    }

    /// Bytes from the stack pointer at the entry, or from the aligned base.
    fn offset(&self, at: i64) -> i64 {
        match self.base {
            Base::RedZone => at - self.size,
            Base::Rsp => at - self.size - 8 * self.saved.len() as i64,
            Base::Rbp => at - self.size - 8 * self.saved.len() as i64 - 8,
            Base::Aligned => at - self.size,
        }
    }

    fn cell(&self, n: usize) -> String {
        self.operand(self.cells[n].at, "")
    }

    /// The registers for values: not the stack pointer, nor a frame pointer, nor one that is in use.
    fn registers(&self) -> Vec<usize> {
        let mut all = vec![0, 1, 2, 6, 7, 8, 9, 10, 11];
        all.extend(&self.saved);
        all.retain(|n| !self.reserved.contains(n));
        all
    }

    fn register(&mut self) -> usize {
        let all = self.registers();
        self.random.of(&all)
    }

    /// Another register than these.
    fn besides(&mut self, not: &[usize]) -> usize {
        let all: Vec<usize> = self.registers().into_iter().filter(|n| !not.contains(n)).collect();
        self.random.of(&all)
    }

    fn small(&mut self) -> i64 {
        match self.random.below(4) {
            0 => self.random.below(8) as i64,
            1 => -(self.random.below(200) as i64),
            2 => self.random.below(1 << 30) as i64,
            _ => self.random.below(256) as i64,
        }
    }

    /// Plain slots that hold a value.
    fn full(&self) -> Vec<usize> {
        (0..self.cells.len())
            .filter(|&n| self.cells[n].init && matches!(self.cells[n].kind, Kind::Slot(_)))
            .collect()
    }

    fn slots(&self) -> Vec<usize> {
        (0..self.cells.len()).filter(|&n| matches!(self.cells[n].kind, Kind::Slot(_))).collect()
    }

    fn alias(&mut self, n: usize, class: &'static str) {
        self.cells[n].privacy = Privacy::Aliased(class);
    }

    /// The size of a slot, a register of it, and the suffix of an instruction.
    fn sized(&self, n: usize, register: usize) -> (&'static str, &'static str) {
        match self.cells[n].kind {
            Kind::Slot(4) => (R32[register], "l"),
            _ => (R64[register], "q"),
        }
    }

    fn make(mut self) -> Generated {
        // The frame.
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

    fn prologue(&mut self) {
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

    fn epilogue(&mut self) {
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
    fn begin(&mut self) {
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

    fn store(&mut self, n: usize) {
        let from = self.register();
        let (register, suffix) = self.sized(n, from);
        let to = self.cell(n);
        if self.random.one_in(8) {
            let by = self.small();
            self.say(format!("mov{suffix}\t${by}, {to}"));
        } else {
            self.say(format!("mov{suffix}\t%{register}, {to}"));
        }
        self.cells[n].fill();
    }

    fn load(&mut self, to: usize) {
        let full = self.full();
        let n = self.random.of(&full);
        let (register, suffix) = self.sized(n, to);
        let from = self.cell(n);
        if suffix == "l" && self.random.one_in(4) {
            self.say(format!("movslq\t{from}, %{}", R64[to]));
        } else {
            self.say(format!("mov{suffix}\t{from}, %{register}"));
        }
    }

    fn arithmetic(&mut self) {
        let (to, from) = (self.register(), self.register());
        let (a, b) = if self.random.one_in(3) { (R32[to], R32[from]) } else { (R64[to], R64[from]) };
        let by = self.small();
        let line = match self.random.below(16) {
            0..2 => format!("add\t%{b}, %{a}"),
            2 => format!("sub\t%{b}, %{a}"),
            3..5 => format!("xor\t%{b}, %{a}"),
            5 => format!("and\t${by}, %{a}"),
            6 => format!("or\t%{b}, %{a}"),
            7 => format!("imul\t%{b}, %{a}"),
            8 => format!("rol\t${}, %{a}", 1 + self.random.below(31)),
            9 => format!("shr\t${}, %{a}", 1 + self.random.below(15)),
            10 => format!("leaq\t{by}(%{},%{},4), %{}", R64[to], R64[from], R64[to]),
            11 => format!("not\t%{a}"),
            12 => format!("mov\t%{b}, %{a}"),
            13 => format!("mov\t${by}, %{a}"),
            14 => format!("add\t${by}, %{a}"),
            _ => format!("neg\t%{a}"),
        };
        self.say(line);
    }

    /// Sets the flags, by registers or a slot.
    fn compare(&mut self) {
        let a = self.register();
        let full = self.full();
        match self.random.below(4) {
            0 => {
                let b = self.register();
                self.say(format!("cmpq\t%{}, %{}", R64[b], R64[a]));
            }
            1 => self.say(format!("testl\t%{0}, %{0}", R32[a])),
            2 => {
                let n = self.random.of(&full);
                let (register, suffix) = self.sized(n, a);
                let with = self.cell(n);
                self.say(format!("cmp{suffix}\t%{register}, {with}"));
            }
            _ => {
                let by = self.random.below(16);
                self.say(format!("cmpl\t${by}, %{}", R32[a]));
            }
        }
    }

    /// An instruction that names a slot as an operand.
    fn operand_of_slot(&mut self) {
        let full = self.full();
        let n = self.random.of(&full);
        let r = self.register();
        let (register, suffix) = self.sized(n, r);
        let slot = self.cell(n);
        let by = self.small().clamp(-100, 100);
        let line = match self.random.below(14) {
            0..3 => format!("add{suffix}\t{slot}, %{register}"),
            3 => format!("xor{suffix}\t{slot}, %{register}"),
            4 => format!("sub{suffix}\t{slot}, %{register}"),
            5 => format!("imul{suffix}\t{slot}, %{register}"),
            6 => format!("add{suffix}\t%{register}, {slot}"),
            7 => format!("xor{suffix}\t%{register}, {slot}"),
            8 => format!("add{suffix}\t${by}, {slot}"),
            9 => format!("inc{suffix}\t{slot}"),
            10 => format!("rol{suffix}\t$3, {slot}"),
            11 => format!("imul{suffix}\t${by}, {slot}, %{register}"),
            12 => format!("not{suffix}\t{slot}"),
            _ => {
                let condition = self.random.of(&CONDITIONS);
                self.compare();
                format!("cmov{condition}{suffix}\t{slot}, %{register}")
            }
        };
        self.say(line);
    }

    /// An addition with carry over slots: flags live across.
    fn chain(&mut self) {
        let full = self.full();
        let (a, b) = (self.register(), self.register());
        self.say(format!("addq\t%{}, %{}", R64[a], R64[b]));
        for _ in 0..1 + self.random.below(3) {
            let n = self.random.of(&full);
            let (register, suffix) = self.sized(n, b);
            let slot = self.cell(n);
            match self.random.below(4) {
                0 => self.say(format!("mov{suffix}\t%{register}, {slot}")),
                1 => self.say(format!("adc{suffix}\t%{register}, {slot}")),
                _ => self.say(format!("adc{suffix}\t{slot}, %{register}")),
            }
        }
        self.say(format!("adcq\t$0, %{}", R64[a]));
    }

    fn statement(&mut self, depth: usize) {
        match self.random.below(40) {
            0..11 => self.arithmetic(),
            11..17 => {
                let all = self.slots();
                let n = self.random.of(&all);
                self.store(n);
            }
            17..24 => {
                let to = self.register();
                self.load(to);
            }
            24..28 => self.operand_of_slot(),
            28 => self.chain(),
            29..31 => {
                let (r, condition) = (self.register(), self.random.of(&CONDITIONS));
                self.compare();
                if self.random.one_in(2) {
                    // Flags live across a load.
                    let to = self.besides(&[r]);
                    self.load(to);
                }
                let from = self.register();
                self.say(format!("cmov{condition}q\t%{}, %{}", R64[from], R64[r]));
            }
            31..34 if depth < 2 => self.branch(depth),
            34..36 if depth < 2 => self.around(depth),
            36..38 => {
                let r = self.register();
                let at = 8 * self.random.below(64);
                let line = match self.random.below(3) {
                    0 => format!("movq\t%{}, g_buf+{at}(%rip)", R64[r]),
                    1 => format!("addq\t%{}, g_buf+{at}(%rip)", R64[r]),
                    _ => format!("xorq\tg_buf+{at}(%rip), %{}", R64[r]),
                };
                self.say(line);
            }
            38 if depth < 2 => {
                let again: Vec<Trait> = self.traits.clone();
                if !again.is_empty() {
                    let one = self.random.of(&again);
                    self.special(one);
                }
            }
            _ => self.arithmetic(),
        }
    }

    fn held(&self) -> Vec<bool> {
        self.cells.iter().map(|cell| cell.init).collect()
    }

    fn branch(&mut self, depth: usize) {
        let (other, end) = (self.label(), self.label());
        let condition = self.random.of(&CONDITIONS);
        self.compare();
        if self.random.one_in(3) {
            let to = self.register();
            self.load(to);
        }
        self.say(format!("j{condition}\t{other}"));
        let before = self.held();
        for _ in 0..1 + self.random.below(3) {
            self.statement(depth + 1);
        }
        let one = self.held();
        for (cell, init) in self.cells.iter_mut().zip(before) {
            cell.init = init;
        }
        if self.random.one_in(2) {
            self.say(format!("jmp\t{end}"));
            self.lines.push(format!("{other}:"));
            for _ in 0..1 + self.random.below(3) {
                self.statement(depth + 1);
            }
            self.lines.push(format!("{end}:"));
        } else {
            self.lines.push(format!("{other}:"));
        }
        for (cell, init) in self.cells.iter_mut().zip(one) {
            cell.init &= init;
        }
    }

    /// A loop that is left after a few rounds.
    fn around(&mut self, depth: usize) {
        let again = self.label();
        let rounds = 1 + self.random.below(4);
        let counter: Vec<usize> = self.saved.iter().copied().filter(|n| !self.reserved.contains(n)).collect();
        if !counter.is_empty() {
            let r = self.random.of(&counter);
            self.reserved.push(r);
            self.say(format!("movl\t${rounds}, %{}", R32[r]));
            self.lines.push(format!("{again}:"));
            for _ in 0..1 + self.random.below(4) {
                self.statement(depth + 1);
            }
            self.say(format!("decl\t%{}", R32[r]));
            self.say(format!("jne\t{again}"));
            self.reserved.pop();
        } else {
            // Without a register that stays, only a straight body.
            let r = self.register();
            self.reserved.push(r);
            self.say(format!("movl\t${rounds}, %{}", R32[r]));
            self.lines.push(format!("{again}:"));
            for _ in 0..1 + self.random.below(4) {
                match self.random.below(4) {
                    0 => self.arithmetic(),
                    1 => self.operand_of_slot(),
                    2 => {
                        let all = self.slots();
                        let n = self.random.of(&all);
                        self.store(n);
                    }
                    _ => {
                        let to = self.register();
                        self.load(to);
                    }
                }
            }
            self.say(format!("decl\t%{}", R32[r]));
            self.say(format!("jne\t{again}"));
            self.reserved.pop();
        }
    }

    fn array(&self) -> Option<usize> {
        (0..self.cells.len()).find(|&n| matches!(self.cells[n].kind, Kind::Array(_)))
    }

    fn call(&mut self, name: &str) {
        self.say(format!("call\t{name}"));
    }

    /// A call of code outside, which may take what lies on the stack for its arguments.
    fn call_outside(&mut self, name: &str) {
        self.call(name);
        let inside = !self.reserved.is_empty();
        for cell in self.cells.iter_mut().filter(|cell| cell.written || inside) {
            if cell.privacy == Privacy::Private {
                cell.privacy = Privacy::Open("stored before an outside call");
            }
        }
    }

    /// Whether a register that a call does not keep holds a loop's counter.
    fn no_calls(&self) -> bool {
        self.base == Base::RedZone || self.reserved.iter().any(|n| !SAVED.contains(n))
    }

    /// The result depends on every slot that holds a value.
    fn end(&mut self) {
        for n in self.full() {
            if self.random.below(4) > 0 {
                let slot = self.cell(n);
                if self.cells[n].kind == Kind::Slot(4) {
                    self.say(format!("addl\t{slot}, %eax"));
                } else {
                    self.say(format!("addq\t{slot}, %rax"));
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

    fn finish(self) -> Generated {
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
