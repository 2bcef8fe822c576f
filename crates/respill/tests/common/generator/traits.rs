//! What a function may have besides plain arithmetic and slots, and how each is written.

use super::Privacy;
use super::maker::{Base, CONDITIONS, Kind, Maker, R32, R64};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trait {
    Vectors,
    Float,
    Mmx,
    Masks,
    LocalCalls,
    OutsideCalls,
    /// Calls of C's `memset`, a name that the analysis knows.
    Memset,
    Table,
    /// Jumps to a helper at its end.
    TailCall,
    /// Jumps to a helper on a condition.
    HalfTail,
    /// Moves its stack pointer down by a number that is not known.
    Alloca,
    Recursion,
    CallBack,
    Indirect,
    /// Calls a function that returns in st(0), or returns there itself.
    LongDouble,
    /// Returns in xmm0.
    ReturnsVector,
    Pushes,
    /// One of the ways to make a pointer, by number.
    Pointer(usize),
    /// An index that a mask keeps inside.
    Bounded,
    /// An index that a mask lets reach slots.
    TooFar,
    /// An index that memory holds.
    Wild,
    /// A vector that is loaded over two slots.
    Overlap,
    Narrow,
    /// Instructions that need memory.
    Odd,
}

/// Ways to make a pointer to a slot; what is beside it; whether the address leaves the function.
pub(super) const POINTERS: [(&str, bool); 15] = [
    ("lea", false),
    ("lea and add", false),
    ("lea and sub", false),
    ("copy of rsp", false),
    ("xchg", false),
    ("push and pop", false),
    ("kept in a slot", false),
    ("cmov", false),
    ("string instruction", false),
    ("bit number", false),
    ("pointer for a local callee", false),
    ("through a vector", true),
    ("through a global", true),
    ("outside callee", true),
    ("outside callee through a global", true),
];

impl Maker<'_> {
    pub(super) fn special(&mut self, one: Trait) {
        let (a, b) = (self.register(), self.register());
        match one {
            Trait::Vectors => self.vectors(),
            Trait::Float => {
                // Through a slot: x87 has no other way.
                let all = self.slots();
                let n = self.random.of(&all);
                if matches!(self.cells[n].kind, Kind::Slot(8)) {
                    let slot = self.cell(n);
                    self.say(format!("movq\t%{}, {slot}", R64[a]));
                    self.say(format!("fildq\t{slot}"));
                    self.say("fld1");
                    self.say("faddp\t%st, %st(1)");
                    self.say(format!("fistpq\t{slot}"));
                    self.cells[n].fill();
                    if self.cells[n].privacy == Privacy::Private {
                        self.cells[n].privacy = Privacy::Memory;
                    }
                    self.features.insert("x87");
                }
            }
            Trait::Mmx => {
                let n = self.random.below(8);
                self.say(format!("movq\t%{}, %mm{n}", R64[a]));
                self.say(format!("paddd\t%mm{n}, %mm{n}"));
                self.say(format!("movq\t%mm{n}, %{}", R64[b]));
                self.say("emms");
                self.features.insert("MMX");
            }
            Trait::Masks if self.here.avx512 => {
                let n = self.random.below(8);
                self.say(format!("kmovq\t%{}, %k{n}", R64[a]));
                self.say(format!("knotq\t%k{n}, %k{n}"));
                self.say(format!("kmovq\t%k{n}, %{}", R64[b]));
                self.features.insert("masks");
            }
            Trait::LocalCalls if !self.no_calls() && !self.helpers.is_empty() => {
                let n = self.random.below(self.helpers.len());
                let name = self.helpers[n].clone();
                self.call(&name);
                self.features.insert("local call");
            }
            // The stack pointer is the entry's.
            Trait::HalfTail if self.base == Base::RedZone && !self.helpers.is_empty() => {
                let (helper, condition) = (self.helpers[0].clone(), self.random.of(&CONDITIONS));
                self.compare();
                self.say(format!("j{condition}\t{helper}"));
                self.features.insert("conditional tail call");
            }
            Trait::Alloca if self.base == Base::Rbp && self.pushed == 0 => {
                let q = self.besides(&[a]);
                self.say(format!("andl\t$48, %{}", R32[a]));
                self.say(format!("subq\t%{}, %rsp", R64[a]));
                self.say(format!("movq\t%{}, (%rsp)", R64[q]));
                self.open = self.open.or(Some("dynamic frame"));
                self.features.insert("dynamic frame");
            }
            Trait::Recursion if !self.no_calls() => {
                let name = format!("{}_r", self.name);
                self.call(&name);
                self.features.insert("recursion");
            }
            Trait::OutsideCalls if !self.no_calls() => {
                if self.random.one_in(3) {
                    // The cells of outgoing arguments are the first of the frame.
                    let (one, two) = (self.operand_of_arguments(0), self.operand_of_arguments(8));
                    if self.pushed == 0 {
                        self.say(format!("movq\t%{}, {one}", R64[a]));
                        self.say(format!("movq\t%{}, {two}", R64[b]));
                        self.call_outside("ext8");
                        self.features.insert("stack arguments");
                    }
                } else {
                    self.call_outside("ext_a");
                }
                self.features.insert("outside call");
            }
            Trait::Memset if !self.no_calls() => {
                self.say("leaq\tg_buf+64(%rip), %rdi");
                self.say("movzbl\t%al, %esi");
                self.say("movl\t$40, %edx");
                self.call("memset");
                // What it leaves in registers is its own.
                for n in [1, 2, 6, 7, 8, 9, 10, 11] {
                    self.say(format!("leaq\t{n}(%rax), %{}", R64[n]));
                }
                self.features.insert("memset");
            }
            Trait::CallBack if !self.no_calls() && !self.helpers.is_empty() => {
                let helper = self.helpers[0].clone();
                self.say(format!("movq\t%{}, %rsi", R64[a]));
                self.say(format!("leaq\t{helper}(%rip), %rdi"));
                self.call_outside("ext_cb");
                self.features.insert("callback");
            }
            Trait::Indirect if !self.no_calls() && !self.helpers.is_empty() => {
                let helper = self.helpers[0].clone();
                self.say(format!("call\t*.L{helper}_pointer(%rip)"));
                self.features.insert("indirect call");
            }
            Trait::LongDouble if !self.no_calls() => {
                let wide = (0..self.cells.len()).find(|&n| self.cells[n].kind == Kind::Vector(16));
                let Some(n) = wide else { return };
                let slot = self.cell(n);
                self.call_outside("ext_ld");
                self.say(format!("fstpt\t{slot}"));
                self.say(format!("movq\t{slot}, %{}", R64[a]));
                self.features.insert("long double");
            }
            Trait::Table => {
                let (table, end) = (self.label(), self.label());
                let cases: Vec<String> = (0..4).map(|_| self.label()).collect();
                let q = self.besides(&[a]);
                self.say(format!("andl\t$3, %{}", R32[a]));
                self.say(format!("leaq\t{table}(%rip), %{}", R64[q]));
                self.say(format!("movslq\t(%{},%{},4), %{}", R64[q], R64[a], R64[a]));
                self.say(format!("addq\t%{}, %{}", R64[q], R64[a]));
                self.say(format!("jmp\t*%{}", R64[a]));
                self.lines.push("\t.section\t.rodata".to_owned());
                self.lines.push("\t.align\t4".to_owned());
                self.lines.push(format!("{table}:"));
                for case in &cases {
                    self.lines.push(format!("\t.long\t{case}-{table}"));
                }
                self.lines.push("\t.text".to_owned());
                let before = self.held();
                let mut after = vec![true; before.len()];
                for case in &cases {
                    for (cell, &init) in self.cells.iter_mut().zip(&before) {
                        cell.init = init;
                    }
                    self.lines.push(format!("{case}:"));
                    for r in [a, q] {
                        let by = self.small();
                        self.say(format!("movl\t${by}, %{}", R32[r]));
                    }
                    self.statement(2);
                    self.say(format!("jmp\t{end}"));
                    after.iter_mut().zip(self.held()).for_each(|(all, one)| *all &= one);
                }
                for (cell, init) in self.cells.iter_mut().zip(after) {
                    cell.init = init;
                }
                self.lines.push(format!("{end}:"));
                self.features.insert("jump table");
            }
            Trait::Pushes if self.base != Base::RedZone => {
                self.say(format!("pushq\t%{}", R64[a]));
                self.pushed += 8;
                for _ in 0..self.random.below(4) {
                    match self.random.below(3) {
                        0 => self.arithmetic(),
                        1 => {
                            let to = self.register();
                            self.load(to);
                        }
                        _ => {
                            let all = self.slots();
                            let n = self.random.of(&all);
                            self.store(n);
                        }
                    }
                }
                self.pushed -= 8;
                self.say(format!("popq\t%{}", R64[b]));
                self.features.insert("push and pop");
            }
            Trait::Bounded => self.bounded(),
            Trait::TooFar => self.too_far(),
            Trait::Wild => {
                let Some(array) = self.array() else { return };
                let q = self.besides(&[a]);
                let at = 8 * self.random.below(16);
                self.say(format!("movq\tg_idx+{}(%rip), %{}", at, R64[a]));
                let place = self.operand(self.cells[array].at, &format!(",%{},8", R64[a]));
                if self.random.one_in(2) {
                    self.say(format!("movq\t%{}, {place}", R64[q]));
                } else {
                    self.say(format!("addq\t{place}, %{}", R64[q]));
                }
                self.open = self.open.or(Some("index from memory"));
                self.features.insert("index from memory");
            }
            Trait::Overlap => {
                // Two slots that lie beside each other, as one vector.
                let all = self.full();
                let pair = all.iter().copied().find(|&n| {
                    n + 1 < self.cells.len()
                        && self.cells[n].kind == Kind::Slot(8)
                        && self.cells[n + 1].kind == Kind::Slot(8)
                        && self.cells[n + 1].init
                });
                let Some(n) = pair else { return };
                let v = self.random.below(16);
                let slot = self.cell(n);
                self.say(format!("movdqu\t{slot}, %xmm{v}"));
                self.say(format!("paddq\t%xmm{v}, %xmm{v}"));
                if self.random.one_in(2) {
                    self.say(format!("movdqu\t%xmm{v}, {slot}"));
                } else {
                    self.say(format!("movq\t%xmm{v}, %{}", R64[a]));
                    self.say(format!("pextrq\t$1, %xmm{v}, %{}", R64[b]));
                }
                self.alias(n, "vector over slots");
                self.alias(n + 1, "vector over slots");
                self.features.insert("vector over slots");
            }
            Trait::Narrow => {
                let full = self.full();
                let n = self.random.of(&full);
                let slot = self.operand(self.cells[n].at + 1, "");
                let line = match self.random.below(4) {
                    0 => format!("movb\t$7, {slot}"),
                    1 => format!("addw\t$300, {slot}"),
                    2 => format!("movzbl\t{slot}, %{}", R32[a]),
                    _ => format!("xorb\t$-1, {slot}"),
                };
                self.say(line);
                self.alias(n, "part of a slot");
                self.features.insert("part of a slot");
            }
            Trait::Odd => {
                let full = self.full();
                let n = self.random.of(&full);
                if self.cells[n].kind == Kind::Slot(8) {
                    let slot = self.cell(n);
                    let line = match self.random.below(5) {
                        0 => format!("lock xaddq\t%{}, {slot}", R64[a]),
                        1 => format!("xchgq\t%{}, {slot}", R64[a]),
                        2 => format!("cvtsi2sdq\t{slot}, %xmm5"),
                        3 => format!("movhps\t{slot}, %xmm4"),
                        _ => format!("lock addq\t%{}, {slot}", R64[a]),
                    };
                    self.say(line);
                    if self.cells[n].privacy == Privacy::Private {
                        self.cells[n].privacy = Privacy::Memory;
                    }
                    self.features.insert("odd operand");
                }
            }
            Trait::Pointer(which) => self.pointer(which),
            _ => (),
        }
    }

    fn operand_of_arguments(&self, at: i64) -> String {
        format!("{at}(%rsp)")
    }

    fn vectors(&mut self) {
        let wide: Vec<usize> =
            (0..self.cells.len()).filter(|&n| matches!(self.cells[n].kind, Kind::Vector(_))).collect();
        let Some(n) = wide.get(self.random.below(wide.len().max(1))).copied() else { return };
        let (a, b) = (self.register(), self.register());
        let (x, y) = (self.random.below(16), self.random.below(16));
        let slot = self.cell(n);
        self.features.insert("vector spill");
        if self.cells[n].kind == Kind::Vector(32) {
            self.say(format!("vmovq\t%{}, %xmm{x}", R64[a]));
            self.say(format!("vpbroadcastq\t%xmm{x}, %ymm{x}"));
            self.say(format!("vmovdqu\t%ymm{x}, {slot}"));
            self.arithmetic();
            self.say(format!("vpaddq\t{slot}, %ymm{x}, %ymm{y}"));
            self.say(format!("vmovq\t%xmm{y}, %{}", R64[b]));
            if self.random.one_in(2) {
                self.say("vzeroupper");
            }
        } else if self.vex {
            self.say(format!("vmovq\t%{}, %xmm{x}", R64[a]));
            self.say(format!("vmovdqu\t%xmm{x}, {slot}"));
            self.arithmetic();
            self.say(format!("vpaddq\t{slot}, %xmm{x}, %xmm{y}"));
            self.say(format!("vmovq\t%xmm{y}, %{}", R64[b]));
        } else {
            self.say(format!("movq\t%{}, %xmm{x}", R64[a]));
            self.say(format!("movdqu\t%xmm{x}, {slot}"));
            self.arithmetic();
            self.say(format!("movdqu\t{slot}, %xmm{y}"));
            self.say(format!("paddd\t%xmm{x}, %xmm{y}"));
            self.say(format!("movq\t%xmm{y}, %{}", R64[b]));
        }
        self.cells[n].fill();
    }

    /// An array at an index whose bounds are seen.
    fn bounded(&mut self) {
        let Some(array) = self.array() else { return };
        let a = self.register();
        let q = self.besides(&[a]);
        let i = format!(",%{},8", R64[a]);
        let place = self.operand(self.cells[array].at, &i);
        match self.random.below(3) {
            0 => {
                self.say(format!("andl\t$3, %{}", R32[a]));
                self.say(format!("movq\t%{}, {place}", R64[q]));
            }
            1 => {
                self.say(format!("andl\t$3, %{}", R32[a]));
                self.say(format!("xorq\t{place}, %{}", R64[q]));
            }
            _ => {
                let again = self.label();
                self.say(format!("xorl\t%{0}, %{0}", R32[a]));
                self.lines.push(format!("{again}:"));
                self.say(format!("addq\t%{}, {place}", R64[q]));
                self.say(format!("incq\t%{}", R64[a]));
                self.say(format!("cmpq\t$4, %{}", R64[a]));
                self.say(format!("jb\t{again}"));
            }
        }
        self.features.insert("bounded index");
    }

    /// An array at an index that may reach what follows it.
    fn too_far(&mut self) {
        let Some(array) = self.array() else { return };
        let start = self.cells[array].at;
        let mask = if self.size - start >= 64 { 7 } else { 3 };
        let end = start + 8 * (mask + 1);
        let behind: Vec<usize> = (0..self.cells.len())
            .filter(|&n| self.cells[n].at >= start + 32 && self.cells[n].at < end)
            .collect();
        if behind.iter().any(|&n| !matches!(self.cells[n].kind, Kind::Slot(_))) {
            return;
        }
        // Everything that is read has been written, to the last byte.
        for n in behind {
            self.alias(n, "index beyond the array");
            self.cells[n].fill();
        }
        for at in (start + 32..end).step_by(8) {
            let place = self.operand(at, "");
            self.say(format!("movq\t${at}, {place}"));
        }
        let a = self.register();
        let q = self.besides(&[a]);
        self.say(format!("andl\t${mask}, %{}", R32[a]));
        let place = self.operand(start, &format!(",%{},8", R64[a]));
        if self.random.one_in(3) {
            self.say(format!("movq\t{place}, %{}", R64[q]));
        } else {
            self.say(format!("addq\t%{}, {place}", R64[q]));
        }
        self.features.insert("index beyond the array");
    }

    fn pointer(&mut self, which: usize) {
        let (class, leaves) = POINTERS[which];
        let full = self.full();
        let n = self.random.of(&full);
        let slot = self.cell(n);
        let p = self.register();
        let q = self.besides(&[p]);
        let v = self.besides(&[p, q]);
        let (value, suffix) = self.sized(n, v);
        let by = 8 * (1 + self.random.below(8));
        let through = |to: &str, r: usize, s: &str| -> String {
            match s {
                "load" => format!("mov{suffix}\t{to}(%{}), %{value}", R64[r]),
                "store" => format!("mov{suffix}\t%{value}, {to}(%{})", R64[r]),
                _ => format!("add{suffix}\t%{value}, {to}(%{})", R64[r]),
            }
        };
        let how = self.random.of(&["load", "store", "add", "add"]);
        self.features.insert(class);
        match which {
            0 => {
                self.say(format!("leaq\t{slot}, %{}", R64[p]));
                self.say(through("", p, how));
            }
            1 => {
                self.say(format!("leaq\t{slot}, %{}", R64[p]));
                self.say(format!("addq\t${by}, %{}", R64[p]));
                self.say(through(&format!("-{by}"), p, how));
            }
            2 => {
                self.say(format!("leaq\t{slot}, %{}", R64[p]));
                self.say(format!("subq\t${by}, %{}", R64[p]));
                self.say(through(&by.to_string(), p, how));
            }
            3 => {
                let (at, register) = match slot.split_once('(') {
                    Some((at, rest)) => (at.to_owned(), rest.trim_end_matches(')').to_owned()),
                    None => return,
                };
                self.say(format!("movq\t{register}, %{}", R64[p]));
                self.say(through(&at, p, how));
            }
            4 => {
                self.say(format!("leaq\t{slot}, %{}", R64[p]));
                self.say(format!("xchgq\t%{}, %{}", R64[p], R64[q]));
                self.say(through("", q, how));
            }
            5 => {
                if self.base == Base::RedZone {
                    return;
                }
                self.say(format!("leaq\t{slot}, %{}", R64[p]));
                self.say(format!("pushq\t%{}", R64[p]));
                self.say(format!("popq\t%{}", R64[q]));
                self.say(through("", q, how));
            }
            6 => {
                let other: Vec<usize> = self
                    .slots()
                    .into_iter()
                    .filter(|&k| k != n && self.cells[k].kind == Kind::Slot(8))
                    .collect();
                let Some(&k) = other.first() else { return };
                let keeps = self.cell(k);
                self.say(format!("leaq\t{slot}, %{}", R64[p]));
                self.say(format!("movq\t%{}, {keeps}", R64[p]));
                self.say(format!("xorl\t%{0}, %{0}", R32[p]));
                self.say(format!("movq\t{keeps}, %{}", R64[q]));
                self.say(through("", q, how));
                self.say(format!("movq\t%{}, {keeps}", R64[p]));
                self.cells[k].fill();
            }
            7 => {
                let other: Vec<usize> =
                    full.iter().copied().filter(|&k| self.cells[k].kind == self.cells[n].kind).collect();
                let k = self.random.of(&other);
                let second = self.cell(k);
                self.say(format!("leaq\t{slot}, %{}", R64[p]));
                self.say(format!("leaq\t{second}, %{}", R64[q]));
                self.say(format!("testq\t%{0}, %{0}", R64[v]));
                self.say(format!("cmovsq\t%{}, %{}", R64[q], R64[p]));
                self.say(through("", p, how));
                self.alias(k, class);
            }
            8 => {
                let Some(array) = self.array() else { return };
                if self.reserved.iter().any(|r| [0, 1, 6, 7].contains(r)) {
                    return;
                }
                let place = self.cell(array);
                self.say(format!("leaq\t{place}, %rdi"));
                self.say("movl\t$4, %ecx");
                self.say("rep stosq");
                self.say("xorl\t%edi, %edi");
                self.beside = Some(class);
                return;
            }
            9 => {
                let Some(array) = self.array() else { return };
                let place = self.cell(array);
                self.say(format!("andl\t$127, %{}", R32[q]));
                self.say(format!("btsq\t%{}, {place}", R64[q]));
                self.beside = Some(class);
                return;
            }
            10 => {
                if self.no_calls()
                    || self.reserved.contains(&7)
                    || self.reserved.contains(&6)
                    || suffix == "l"
                {
                    return;
                }
                self.say(format!("leaq\t{slot}, %rdi"));
                let name = format!("{}_p", self.name);
                self.call(&name);
                self.beside = Some(class);
                self.alias(n, class);
                return;
            }
            11 => {
                let x = 2 + self.random.below(6);
                self.say(format!("leaq\t{slot}, %{}", R64[p]));
                self.say(format!("movq\t%{}, %xmm{x}", R64[p]));
                self.say(format!("movq\t%xmm{x}, %{}", R64[q]));
                self.say(through("", q, how));
                self.say(format!("pxor\t%xmm{x}, %xmm{x}"));
            }
            12 => {
                self.say(format!("leaq\t{slot}, %{}", R64[p]));
                self.say(format!("movq\t%{}, g_ptr(%rip)", R64[p]));
                self.say(format!("movq\tg_ptr(%rip), %{}", R64[q]));
                self.say(through("", q, how));
                self.say("movq\t$0, g_ptr(%rip)");
            }
            13 => {
                if self.no_calls() || suffix == "l" {
                    return;
                }
                self.say(format!("leaq\t{slot}, %rdi"));
                self.say("xorl\t%esi, %esi");
                let name = self.random.of(&["ext_poke", "ext_peek"]);
                self.call_outside(name);
            }
            _ => {
                if self.no_calls() || suffix == "l" {
                    return;
                }
                self.say(format!("leaq\t{slot}, %{}", R64[p]));
                self.say(format!("movq\t%{}, g_ptr(%rip)", R64[p]));
                self.say(format!("xorl\t%{0}, %{0}", R32[p]));
                self.call_outside("ext_through");
                self.say("movq\t$0, g_ptr(%rip)");
            }
        }
        self.alias(n, class);
        if leaves {
            self.open = self.open.or(Some(class));
        } else {
            self.beside = Some(class);
        }
        // The address is gone from here on.
        for r in [p, q] {
            let by = self.small();
            self.say(format!("movl\t${by}, %{}", R32[r]));
        }
    }
}
