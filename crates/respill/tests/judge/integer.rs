//! The meaning of integer instructions, and of those whose operands and results alone are known.

use iced_x86::{
    ConditionCode, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, RflagsBits,
};

use super::image::Op;
use super::symbolic::{AF, CF, FLAGS, Machine, OF, PF, SF, State, ZF};
use super::terms::{Sort, Term};

/// A sum or a difference with its flags.
struct Sum {
    value: Term,
    carry: Term,
    overflow: Term,
    half: Term,
}

pub(crate) const BITS: [u32; 7] = [
    RflagsBits::CF,
    RflagsBits::PF,
    RflagsBits::AF,
    RflagsBits::ZF,
    RflagsBits::SF,
    RflagsBits::DF,
    RflagsBits::OF,
];

pub(crate) const fn reads(access: OpAccess) -> bool {
    use OpAccess::{CondRead, CondWrite, Read, ReadCondWrite, ReadWrite};
    matches!(access, Read | CondRead | ReadWrite | ReadCondWrite | CondWrite)
}

pub(crate) const fn writes(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

impl Machine<'_> {
    /// `a + b + carry`, or `a - b - carry`.
    fn sum(&mut self, a: Term, b: Term, carry: Option<Term>, minus: bool) -> Sum {
        let t = &mut *self.terms;
        let bits = t.width(a);
        let mut value = if minus { t.sub(a, b) } else { t.add(a, b) };
        let (long_a, long_b) = (t.resize(a, bits + 1), t.resize(b, bits + 1));
        let mut long = if minus { t.sub(long_a, long_b) } else { t.add(long_a, long_b) };
        if let Some(carry) = carry {
            let (short, wide) = (t.resize(carry, bits), t.resize(carry, bits + 1));
            value = if minus { t.sub(value, short) } else { t.add(value, short) };
            long = if minus { t.sub(long, wide) } else { t.add(long, wide) };
        }
        let carry = t.extract(bits, bits, long);
        let (ab, ar, br) = (t.xor(a, b), t.xor(a, value), t.xor(b, value));
        let over = if minus { t.and(ab, ar) } else { t.and(ar, br) };
        let overflow = t.extract(bits - 1, bits - 1, over);
        let half = t.xor(ab, value);
        let half = t.extract(4, 4, half);
        Sum { value, carry, overflow, half }
    }

    /// Zero, sign and parity.
    fn result(&mut self, state: &mut State, value: Term) {
        let t = &mut *self.terms;
        let bits = t.width(value);
        let zero = t.constant(bits, 0);
        state.flags[ZF] = t.equal(value, zero);
        state.flags[SF] = t.extract(bits - 1, bits - 1, value);
        let mut parity = t.extract(0, 0, value);
        for n in 1..8 {
            let bit = t.extract(n, n, value);
            parity = t.xor(parity, bit);
        }
        state.flags[PF] = t.not(parity);
    }

    fn arithmetic(&mut self, state: &mut State, sum: &Sum) {
        self.result(state, sum.value);
        state.flags[CF] = sum.carry;
        state.flags[OF] = sum.overflow;
        state.flags[AF] = sum.half;
    }

    /// A condition of a branch, a conditional move or a set byte.
    pub(crate) fn condition(&mut self, code: ConditionCode, state: &State) -> Term {
        let t = &mut *self.terms;
        let f = &state.flags;
        let less = t.xor(f[SF], f[OF]);
        use ConditionCode::{a, ae, b, be, e, g, ge, l, le, ne, no, np, ns, o, p, s};
        let (value, negated) = match code {
            o => (f[OF], false),
            no => (f[OF], true),
            b => (f[CF], false),
            ae => (f[CF], true),
            e => (f[ZF], false),
            ne => (f[ZF], true),
            be => (t.or(f[CF], f[ZF]), false),
            a => (t.or(f[CF], f[ZF]), true),
            s => (f[SF], false),
            ns => (f[SF], true),
            p => (f[PF], false),
            np => (f[PF], true),
            l => (less, false),
            ge => (less, true),
            le => (t.or(less, f[ZF]), false),
            g => (t.or(less, f[ZF]), true),
            ConditionCode::None => panic!("no condition"),
        };
        if negated { t.not(value) } else { value }
    }

    pub(crate) fn push(&mut self, i: &Instruction, state: &mut State, value: Term) {
        let minus = self.terms.constant(64, 8u64.wrapping_neg());
        let top = self.terms.add(state.general[4], minus);
        self.store(i, state, top, value);
        state.general[4] = top;
    }

    pub(crate) fn pop(&mut self, i: &Instruction, state: &mut State) -> Term {
        let value = self.load(i, state, state.general[4], 8);
        let eight = self.terms.constant(64, 8);
        state.general[4] = self.terms.add(state.general[4], eight);
        value
    }

    /// Instructions whose results and flags are terms. False for others.
    pub(crate) fn integer(&mut self, op: &Op, state: &mut State) -> bool {
        use Mnemonic::{
            Adc, Add, And, Cmp, Dec, Inc, Lea, Leave, Mov, Movsx, Movsxd, Movzx, Neg, Not, Or, Pop, Push,
            Sbb, Sub, Test, Xchg, Xor,
        };
        let i = &op.i;
        let scalar = (0..i.op_count()).all(|n| self.bytes(i, n).is_some());
        if matches!(i.mnemonic(), Mnemonic::Nop | Mnemonic::Endbr64) {
            return true;
        }
        if !scalar || i.has_lock_prefix() || i.has_rep_prefix() || i.has_repne_prefix() {
            return false;
        }
        let wide = if i.op_count() > 0 { self.bytes(i, 0).unwrap_or(8).max(1) } else { 8 };
        match i.mnemonic() {
            Mov => {
                let value = self.operand(op, state, 1, wide);
                self.put(op, state, 0, value);
            }
            Movzx | Movsx | Movsxd => {
                let from = self.bytes(i, 1).unwrap_or(1);
                let value = self.operand(op, state, 1, from);
                let value = if i.mnemonic() == Movzx {
                    self.terms.resize(value, 8 * wide)
                } else {
                    self.terms.signed(value, 8 * wide)
                };
                self.put(op, state, 0, value);
            }
            Lea => {
                let address = self.address(op, state);
                let value = self.terms.resize(address, 8 * wide);
                self.put(op, state, 0, value);
            }
            Add | Sub | Cmp | Adc | Sbb => {
                let (a, b) = (self.operand(op, state, 0, wide), self.operand(op, state, 1, wide));
                let carry = matches!(i.mnemonic(), Adc | Sbb).then_some(state.flags[CF]);
                let sum = self.sum(a, b, carry, matches!(i.mnemonic(), Sub | Cmp | Sbb));
                self.arithmetic(state, &sum);
                if i.mnemonic() == Cmp {
                    state.compared = Some((a, b, sum.carry));
                } else {
                    self.put(op, state, 0, sum.value);
                }
            }
            And | Or | Xor | Test => {
                let (a, b) = (self.operand(op, state, 0, wide), self.operand(op, state, 1, wide));
                let value = match i.mnemonic() {
                    Or => self.terms.or(a, b),
                    Xor => self.terms.xor(a, b),
                    And if i.op_kind(0) == OpKind::Register && i.op_register(0) == Register::RSP => {
                        self.aligned(a, b)
                    }
                    _ => self.terms.and(a, b),
                };
                self.result(state, value);
                let zero = self.terms.constant(1, 0);
                (state.flags[CF], state.flags[OF]) = (zero, zero);
                // Undefined: something that follows from the result.
                state.flags[AF] = self.terms.function("half of logic", vec![value], Sort::Bits(1));
                if i.mnemonic() != Test {
                    self.put(op, state, 0, value);
                }
            }
            Inc | Dec => {
                let a = self.operand(op, state, 0, wide);
                let one = self.terms.constant(8 * wide, 1);
                let sum = self.sum(a, one, None, i.mnemonic() == Dec);
                let carry = state.flags[CF];
                self.arithmetic(state, &sum);
                state.flags[CF] = carry;
                self.put(op, state, 0, sum.value);
            }
            Neg => {
                let a = self.operand(op, state, 0, wide);
                let zero = self.terms.constant(8 * wide, 0);
                let sum = self.sum(zero, a, None, true);
                self.arithmetic(state, &sum);
                self.put(op, state, 0, sum.value);
            }
            Not => {
                let a = self.operand(op, state, 0, wide);
                let value = self.terms.not(a);
                self.put(op, state, 0, value);
            }
            Xchg if i.op_kind(0) == OpKind::Register && i.op_kind(1) == OpKind::Register => {
                let (a, b) = (self.operand(op, state, 0, wide), self.operand(op, state, 1, wide));
                self.put(op, state, 0, b);
                self.put(op, state, 1, a);
            }
            Push if i.stack_pointer_increment() == -8 => {
                let value = self.operand(op, state, 0, 8);
                self.push(i, state, value);
            }
            Pop if i.stack_pointer_increment() == 8 && wide == 8 => {
                let value = self.pop(i, state);
                self.put(op, state, 0, value);
            }
            Leave if i.stack_pointer_increment() != 0 || i.op_count() == 0 => {
                state.general[4] = state.general[5];
                state.general[5] = self.pop(i, state);
            }
            _ if i.condition_code() != ConditionCode::None && i.op_count() == 2 => {
                // A conditional move writes its register in any case.
                let (old, new) = (self.operand(op, state, 0, wide), self.operand(op, state, 1, wide));
                let bit = self.condition(i.condition_code(), state);
                let value = self.terms.choose(bit, new, old);
                self.put(op, state, 0, value);
            }
            _ if i.condition_code() != ConditionCode::None && i.op_count() == 1 && wide == 1 => {
                let bit = self.condition(i.condition_code(), state);
                let value = self.terms.resize(bit, 8);
                self.put(op, state, 0, value);
            }
            _ => return false,
        }
        true
    }

    /// The stack pointer, aligned: a new base of the frame if it was counted from the entry.
    fn aligned(&mut self, a: Term, b: Term) -> Term {
        let value = self.terms.and(a, b);
        let down =
            self.terms.value(b).is_some_and(|by| (!by).wrapping_add(1).is_power_of_two() && by as i64 <= 0);
        let Some(cell) = self.cell(a).filter(|cell| down && cell.base == 0) else { return value };
        self.site += 1;
        let number = self.site;
        self.depths.insert(number, cell.offset);
        let base = self.terms.variable(format!("aligned {number}"), Sort::Bits(64));
        self.bases.insert(base, number);
        self.given.push((base, value));
        base
    }

    /// The result of a shift to the right by a known number, or of another shift or a product of known numbers.
    fn folded(&mut self, mnemonic: Mnemonic, inputs: &[Term], bits: u32) -> Option<Term> {
        let &[a, b] = inputs else { return None };
        let by = self.terms.value(b)?;
        let count = by as u32 & if bits == 64 { 63 } else { 31 };
        if mnemonic == Mnemonic::Shr && count < bits {
            let high = self.terms.extract(bits - 1, count, a);
            return Some(self.terms.resize(high, bits));
        }
        let value = self.terms.value(a)?;
        let signed = (value << (64 - bits)) as i64 >> (64 - bits);
        let folded = match mnemonic {
            Mnemonic::Shl | Mnemonic::Sal => value << count,
            Mnemonic::Shr => value >> count,
            Mnemonic::Sar => (signed >> count) as u64,
            Mnemonic::Imul => value.wrapping_mul(by),
            _ => return None,
        };
        Some(self.terms.constant(bits, folded))
    }

    /// Instructions that mean the same with a register as with memory, of which only that is known: results are functions of the
    /// operands. False for others.
    pub(crate) fn scalar(&mut self, op: &Op, state: &mut State) -> bool {
        use Mnemonic::{
            Adcx, Adox, Andn, Bextr, Blsi, Blsmsk, Blsr, Bsf, Bsr, Bt, Btc, Btr, Bts, Bzhi, Crc32, Div, Idiv,
            Imul, Lzcnt, Mul, Mulx, Pdep, Pext, Popcnt, Rcl, Rcr, Rol, Ror, Rorx, Sal, Sar, Sarx, Shl, Shld,
            Shlx, Shr, Shrd, Shrx, Tzcnt,
        };
        let i = &op.i;
        match i.mnemonic() {
            // A number in a register reaches beyond memory.
            Bt | Btc | Btr | Bts if i.op_kind(0) == OpKind::Memory && i.op_kind(1) == OpKind::Register => {
                return false;
            }
            Adcx | Adox | Andn | Bextr | Blsi | Blsmsk | Blsr | Bsf | Bsr | Bt | Btc | Btr | Bts | Bzhi
            | Crc32 | Div | Idiv | Imul | Lzcnt | Mul | Mulx | Pdep | Pext | Popcnt | Rcl | Rcr | Rol
            | Ror | Rorx | Sal | Sar | Sarx | Shl | Shld | Shlx | Shr | Shrd | Shrx | Tzcnt => (),
            _ => return false,
        }
        if i.has_lock_prefix() {
            return false;
        }
        let mut factory = InstructionInfoFactory::new();
        let access: Vec<OpAccess> = {
            let info = factory.info(i);
            (0..i.op_count()).map(|n| info.op_access(n)).collect()
        };
        let first = self.bytes(i, 0).unwrap_or(8).max(1);
        let mut name = format!("{:?}", i.mnemonic());
        let mut inputs = match i.mnemonic() {
            Rcl | Rcr | Adcx | Adox => vec![state.flags[CF], state.flags[OF]],
            _ => Vec::new(),
        };
        for n in 0..i.op_count() {
            let bytes = self.bytes(i, n).unwrap_or(0);
            name.push_str(&format!(" {bytes}"));
            if reads(access[n as usize]) {
                let bytes = if bytes == 0 { first } else { bytes };
                inputs.push(self.operand(op, state, n, bytes));
            }
        }
        // Registers that are not named.
        let pair = |bytes: u32| match bytes {
            8 => [Register::RAX, Register::RDX],
            4 => [Register::EAX, Register::EDX],
            2 => [Register::AX, Register::DX],
            _ => [Register::AL, Register::AH],
        };
        let mut hidden: Vec<Register> = Vec::new();
        match (i.mnemonic(), i.op_count()) {
            (Mul | Imul | Div | Idiv, 1) => {
                hidden.extend(pair(first));
                for register in pair(first) {
                    inputs.push(self.register(state, register));
                }
            }
            (Mulx, _) => {
                let register = pair(first)[1];
                inputs.push(self.register(state, register));
            }
            _ => (),
        }
        // A shift by nothing keeps all flags.
        let count = i.op_count() - 1;
        let shift = matches!(i.mnemonic(), Rcl | Rcr | Rol | Ror | Sal | Sar | Shl | Shld | Shr | Shrd);
        let mut of_flags = inputs.clone();
        if shift && (i.op_kind(count) != OpKind::Immediate8 || i.immediate(count) & 31 == 0) {
            of_flags.push(self.all_flags(state));
        }
        for (n, bit) in BITS.iter().enumerate() {
            if i.rflags_modified() & bit != 0 {
                let name = format!("{name} {}", FLAGS[n]);
                state.flags[n] = self.terms.function(name, of_flags.clone(), Sort::Bits(1));
            }
        }
        for (n, register) in hidden.into_iter().enumerate() {
            let bits = 8 * register.size() as u32;
            let value = self.terms.function(format!("{name} hidden {n}"), inputs.clone(), Sort::Bits(bits));
            self.set(state, register, value);
        }
        for n in 0..i.op_count() {
            if writes(access[n as usize]) {
                let bits = 8 * self.bytes(i, n).unwrap_or(8);
                let value = match self.folded(i.mnemonic(), &inputs, bits) {
                    Some(value) => value,
                    None => {
                        self.terms.function(format!("{name} result {n}"), inputs.clone(), Sort::Bits(bits))
                    }
                };
                self.put(op, state, n, value);
            }
        }
        true
    }
}
