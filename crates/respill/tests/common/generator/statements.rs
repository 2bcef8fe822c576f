//! Statements that need no trait: arithmetic, loads and stores of slots, branches, loops and calls.

use super::Privacy;
use super::maker::{Base, CONDITIONS, Maker, R32, R64, SAVED};
use super::traits::Trait;

impl Maker<'_> {
    pub(super) fn store(&mut self, n: usize) {
        let from = self.register();
        let (register, suffix) = self.sized(n, from);
        let to = self.cell(n);
        if self.random.one_in(8) {
            let by = self.small();
            self.say(format!("mov{suffix}\t${by}, {to}"));
            self.spare(from);
        } else {
            self.say(format!("mov{suffix}\t%{register}, {to}"));
        }
        self.cells[n].fill();
    }

    pub(super) fn load(&mut self, to: usize) {
        let full = self.full();
        let n = self.random.of(&full);
        let (register, suffix) = self.sized(n, to);
        let from = self.cell(n);
        if suffix == "l" && self.random.one_in(4) {
            self.say(format!("movslq\t{from}, %{}", R64[to]));
            self.spare(to);
        } else {
            self.say(format!("mov{suffix}\t{from}, %{register}"));
        }
    }

    pub(super) fn arithmetic(&mut self) {
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
    pub(super) fn compare(&mut self) {
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
                self.spare(a);
            }
            _ => {
                let by = self.random.below(16);
                self.say(format!("cmpl\t${by}, %{}", R32[a]));
            }
        }
    }

    /// An instruction that names a slot as an operand.
    pub(super) fn operand_of_slot(&mut self) {
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
        self.spare(r);
    }

    /// Gives some other register a new value, so that it was free before: compilers seldom keep a value in every register. The flags stay.
    fn spare(&mut self, not: usize) {
        if !self.random.one_in(16) {
            let (r, at) = (self.besides(&[not]), 8 * self.random.below(64));
            self.say(format!("movq\tg_buf+{at}(%rip), %{}", R64[r]));
        }
    }

    /// An addition with carry over slots: flags live across.
    pub(super) fn chain(&mut self) {
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
            self.spare(b);
        }
        self.say(format!("adcq\t$0, %{}", R64[a]));
    }

    pub(super) fn statement(&mut self, depth: usize) {
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

    pub(super) fn held(&self) -> Vec<bool> {
        self.cells.iter().map(|cell| cell.init).collect()
    }

    pub(super) fn branch(&mut self, depth: usize) {
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
    pub(super) fn around(&mut self, depth: usize) {
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
            // A compiler knows that the counter is zero now, and tests it no more.
            let from = self.besides(&[r]);
            self.say(format!("movq\t%{}, %{}", R64[from], R64[r]));
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
            // A compiler knows that the counter is zero now, and tests it no more.
            let from = self.besides(&[r]);
            self.say(format!("movq\t%{}, %{}", R64[from], R64[r]));
        }
    }

    pub(super) fn call(&mut self, name: &str) {
        self.say(format!("call\t{name}"));
    }

    /// A call of code outside, which may take what lies on the stack for its arguments.
    pub(super) fn call_outside(&mut self, name: &str) {
        self.call(name);
        let inside = !self.reserved.is_empty();
        for cell in self.cells.iter_mut().filter(|cell| cell.written || inside) {
            if cell.privacy == Privacy::Private {
                cell.privacy = Privacy::Open("stored before an outside call");
            }
        }
    }

    /// Whether a register that a call does not keep holds a loop's counter.
    pub(super) fn no_calls(&self) -> bool {
        self.base == Base::RedZone || self.reserved.iter().any(|n| !SAVED.contains(n))
    }
}
