//! Moves to and from home registers, and instructions whose operands alone are known.

use iced_x86::{EncodingKind, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use super::image::Op;
use super::integer::{BITS, reads, writes};
use super::known::contents;
use super::symbolic::{EMPTY, FLAGS, Home, MARKED, Machine, State, full};
use super::terms::{Sort, Term};

/// Whether an instruction belongs to x87, by its name.
fn is_float(i: &Instruction) -> bool {
    let name = format!("{:?}", i.mnemonic());
    name.starts_with('F') && !name.starts_with("Fx") && i.mnemonic() != Mnemonic::Femms
        || i.mnemonic() == Mnemonic::Wait
}

/// Instructions that may write beside their operand: at a bit that a register counts from it, or with indices.
fn beside(i: &Instruction) -> bool {
    matches!(i.mnemonic(), Mnemonic::Btc | Mnemonic::Btr | Mnemonic::Bts) || i.is_vsib()
}

/// Instructions that read or write registers of all kinds without naming them.
fn names_none(i: &Instruction) -> bool {
    let name = format!("{:?}", i.mnemonic());
    ["Fxsave", "Fxrstor", "Xsave", "Xrstor"].iter().any(|start| name.starts_with(start))
}

/// MMX, vector and mask registers that an instruction names.
pub(crate) fn named(i: &Instruction) -> Vec<Register> {
    if matches!(i.mnemonic(), Mnemonic::Vzeroupper | Mnemonic::Vzeroall) {
        return Vec::new();
    }
    let mut factory = InstructionInfoFactory::new();
    let mut out: Vec<Register> =
        factory.info(i).used_registers().iter().filter_map(|used| full(used.register())).collect();
    out.sort();
    out.dedup();
    out
}

impl Machine<'_> {
    fn home(&self, state: &State, part: Home) -> Term {
        state.homes[&part]
    }

    fn zero_lanes(&mut self, state: &mut State, n: u8, from: u8) {
        let zero = self.terms.constant(64, 0);
        (from..8).for_each(|lane| {
            state.homes.insert(Home::Lane(n, lane), zero);
        });
    }

    /// Moves and clears of home registers. False for instructions without one.
    pub(crate) fn transfer(&mut self, op: &Op, state: &mut State) -> bool {
        use Mnemonic::{
            Emms, Femms, Kmovd, Kmovq, Kshiftlb, Kshiftrb, Kxnorb, Kxorq, Movd, Movq, Pxor, Valignq, Vmovd,
            Vmovq, Vpbroadcastq, Vpxor, Vpxorq, Vzeroall, Vzeroupper,
        };
        let i = &op.i;
        match i.mnemonic() {
            Emms | Femms => {
                state.tags = self.terms.constant(2, EMPTY);
                return true;
            }
            Vzeroupper | Vzeroall => {
                let from = if i.mnemonic() == Vzeroall { 0 } else { 2 };
                for n in 0..16u8 {
                    let register = Register::ZMM0 + u32::from(n);
                    if self.homes.contains(&register) {
                        self.zero_lanes(state, n, from);
                    } else {
                        let old = state.others[&register];
                        let name = format!("{:?}", i.mnemonic());
                        let new = self.terms.function(name, vec![old], Sort::Vector);
                        state.others.insert(register, new);
                    }
                }
                return true;
            }
            _ => (),
        }
        let named = named(i);
        if !named.iter().any(|register| self.homes.contains(register)) {
            return false;
        }
        if named.iter().any(|register| register.is_mm()) {
            state.tags = self.terms.constant(2, MARKED);
            state.float = self.terms.function("under MMX", vec![state.float], Sort::Float);
        }
        let all = named.iter().all(|register| self.homes.contains(register));
        let registers =
            (0..i.op_count()).all(|n| i.op_kind(n) == OpKind::Register || i.op_kind(n) == OpKind::Immediate8);
        let register = |n: u32| {
            if n < i.op_count() && i.op_kind(n) == OpKind::Register {
                i.op_register(n)
            } else {
                Register::None
            }
        };
        let (a, b, c) = (register(0), register(1), register(2));
        let number = a.number() as u8;
        let vex = i.encoding() != EncodingKind::Legacy;
        let known = all
            && registers
            && match i.mnemonic() {
                Movd | Movq | Vmovd | Vmovq | Kmovd | Kmovq if a.is_gpr() != b.is_gpr() => {
                    if a.is_gpr() {
                        let part = match full(b) {
                            Some(zmm) if b.is_xmm() => Home::Lane(zmm.number() as u8, 0),
                            _ => Home::parts(b)[0],
                        };
                        let value = self.home(state, part);
                        let value = self.terms.resize(value, 8 * a.size() as u32);
                        self.set(state, a, value);
                    } else {
                        let value = self.register(state, b);
                        let value = self.terms.resize(value, 64);
                        if a.is_xmm() {
                            // The lane above is cleared, and with VEX all of them.
                            let zero = self.terms.constant(64, 0);
                            state.homes.insert(Home::Lane(number, 0), value);
                            state.homes.insert(Home::Lane(number, 1), zero);
                            if vex {
                                self.zero_lanes(state, number, 2);
                            }
                        } else {
                            state.homes.insert(Home::parts(a)[0], value);
                        }
                    }
                    true
                }
                Vpbroadcastq
                    if a.is_zmm()
                        && b.is_gpr64()
                        && i.op_mask() != Register::None
                        && !i.zeroing_masking() =>
                {
                    let value = self.register(state, b);
                    let mask = self.home(state, Home::parts(i.op_mask())[0]);
                    for lane in 0..8u8 {
                        let bit = self.terms.extract(u32::from(lane), u32::from(lane), mask);
                        let part = Home::Lane(number, lane);
                        let old = self.home(state, part);
                        let new = self.terms.choose(bit, value, old);
                        state.homes.insert(part, new);
                    }
                    true
                }
                // Lanes of the second source, then of the first, from this one on.
                Valignq if a.is_zmm() && i.op_mask() == Register::None => {
                    let by = i.immediate8() % 8;
                    let lanes: Vec<Term> = (0..8u8)
                        .map(|lane| {
                            let from = lane + by;
                            let source = if from < 8 { c } else { b };
                            self.home(state, Home::Lane(source.number() as u8, from % 8))
                        })
                        .collect();
                    for (lane, value) in lanes.into_iter().enumerate() {
                        state.homes.insert(Home::Lane(number, lane as u8), value);
                    }
                    true
                }
                Pxor if a == b => {
                    let zero = self.terms.constant(64, 0);
                    let parts = if a.is_mm() {
                        vec![Home::Mm(number)]
                    } else {
                        vec![Home::Lane(number, 0), Home::Lane(number, 1)]
                    };
                    parts.into_iter().for_each(|part| {
                        state.homes.insert(part, zero);
                    });
                    true
                }
                Vpxor | Vpxorq if b == c && i.op_mask() == Register::None => {
                    self.zero_lanes(state, number, 0);
                    true
                }
                Kxorq if b == c => {
                    let zero = self.terms.constant(64, 0);
                    state.homes.insert(Home::K(number), zero);
                    true
                }
                Kxnorb => {
                    let (x, y) = (self.home(state, Home::parts(b)[0]), self.home(state, Home::parts(c)[0]));
                    let value = self.terms.xor(x, y);
                    let value = self.terms.not(value);
                    let value = self.terms.extract(7, 0, value);
                    let value = self.terms.resize(value, 64);
                    state.homes.insert(Home::K(number), value);
                    true
                }
                Kshiftlb | Kshiftrb => {
                    let by = u32::from(i.immediate8());
                    let value = self.home(state, Home::parts(b)[0]);
                    let value = match (i.mnemonic(), by) {
                        (_, 8..) => self.terms.constant(8, 0),
                        (_, 0) => self.terms.extract(7, 0, value),
                        (Kshiftlb, _) => {
                            let (kept, zero) =
                                (self.terms.extract(7 - by, 0, value), self.terms.constant(by, 0));
                            self.terms.concat(kept, zero)
                        }
                        _ => self.terms.extract(7, by, value),
                    };
                    let value = self.terms.resize(value, 64);
                    state.homes.insert(Home::K(number), value);
                    true
                }
                _ => false,
            };
        if !known {
            self.problem(i, "no meaning for it with a home register");
        }
        true
    }

    fn other(&self, state: &State, register: Register) -> Term {
        state.others[&register]
    }

    /// An instruction that both versions share: results are functions of all that it reads.
    pub(crate) fn opaque(&mut self, op: &Op, state: &mut State) {
        let i = &op.i;
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(i);
        let registers: Vec<(Register, OpAccess)> =
            info.used_registers().iter().map(|used| (used.register(), used.access())).collect();
        let memory: Vec<(bool, bool)> =
            info.used_memory().iter().map(|used| (reads(used.access()), writes(used.access()))).collect();
        if names_none(i) && !self.homes.is_empty() {
            self.problem(i, "it reads or writes the home registers, too");
        }
        // What the instruction is, but for the values.
        let mut name = format!("{:?}", i.code());
        for n in 0..i.op_count() {
            match i.op_kind(n) {
                OpKind::Register => name.push_str(&format!(" {:?}", i.op_register(n))),
                OpKind::Memory => name.push_str(" memory"),
                _ => name.push_str(&format!(" {:?}", i.try_immediate(n).ok())),
            }
        }
        name.push_str(&format!(
            " {:?}{}{}{:?}{}{}{}{}",
            i.op_mask(),
            i.zeroing_masking(),
            i.is_broadcast(),
            i.rounding_control(),
            i.suppress_all_exceptions(),
            i.has_lock_prefix(),
            i.has_rep_prefix(),
            i.has_repne_prefix()
        ));
        if let Some(said) = &op.named[1] {
            name.push_str(said);
        }
        let mut inputs = vec![self.all_flags(state)];
        let float = is_float(i);
        let mut vectors = false;
        for &(register, access) in &registers {
            if register.is_gpr() {
                if register.full_register() == Register::RSP && i.stack_pointer_increment() != 0 {
                    inputs.push(state.general[4]);
                } else if reads(access) || register.size() < 4 {
                    let wide = if register.size() < 4 { register.full_register() } else { register };
                    inputs.push(self.register(state, wide));
                }
            } else if let Some(register) = full(register) {
                vectors = true;
                inputs.push(self.other(state, register));
            }
        }
        let explicit = (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory);
        let address = explicit.then(|| self.address(op, state));
        let bytes = i.memory_size().size() as u32;
        if let Some(address) = address {
            if !memory.is_empty() {
                self.note(i, address, bytes);
                let end = |cell: super::symbolic::Cell| cell.offset + i64::from(bytes);
                let hit = self.cell(address).is_some_and(|cell| {
                    self.moved.iter().any(|(slot, size)| {
                        slot.base == cell.base
                            && slot.offset < end(cell)
                            && cell.offset < slot.offset + i64::from(*size)
                    })
                });
                if hit {
                    self.problem(i, "a moved slot is its operand");
                }
            }
            inputs.push(address);
        }
        if !memory.is_empty() || i.is_string_instruction() {
            inputs.push(state.memory);
        }
        if vectors {
            inputs.push(state.mxcsr);
        }
        if matches!(i.mnemonic(), Mnemonic::Stmxcsr | Mnemonic::Vstmxcsr) {
            inputs.push(state.mxcsr);
        }
        if float {
            let contents = contents(self.terms, state);
            inputs.extend([state.tags, contents, state.control]);
        }
        // What it writes.
        for (n, &(register, access)) in registers.iter().enumerate() {
            if !writes(access) {
                continue;
            }
            if register.is_gpr() {
                let number = register.full_register().number();
                if number == 4 && i.stack_pointer_increment() != 0 {
                    continue;
                }
                state.general[number] =
                    self.terms.function(format!("{name} to {n}"), inputs.clone(), Sort::Bits(64));
            } else if let Some(register) = full(register) {
                let sort = self.terms.sort(state.others[&register]);
                let value = self.terms.function(format!("{name} to {n}"), inputs.clone(), sort);
                state.others.insert(register, value);
            }
        }
        if i.stack_pointer_increment() != 0 {
            let by = self.terms.constant(64, i64::from(i.stack_pointer_increment()) as u64);
            state.general[4] = self.terms.add(state.general[4], by);
        }
        for (n, bit) in BITS.iter().enumerate() {
            if i.rflags_modified() & bit != 0 {
                state.flags[n] =
                    self.terms.function(format!("{name} {}", FLAGS[n]), inputs.clone(), Sort::Bits(1));
            }
        }
        if memory.iter().any(|&(_, written)| written) {
            let after = self.terms.function(format!("{name} memory"), inputs.clone(), Sort::Memory);
            // Where it writes a whole operand and nothing else, all other bytes stay.
            let one = memory.len() == 1 && bytes > 0 && !beside(i) && !names_none(i);
            state.memory = match address.filter(|_| one) {
                Some(address) => self.terms.over(state.memory, address, bytes, after),
                None => after,
            };
        }
        if vectors || matches!(i.mnemonic(), Mnemonic::Ldmxcsr | Mnemonic::Vldmxcsr) {
            state.mxcsr = self.terms.function(format!("{name} mxcsr"), inputs.clone(), Sort::Bits(32));
        }
        if float {
            state.tags = self.terms.function(format!("{name} tags"), inputs.clone(), Sort::Bits(2));
            state.float = self.terms.function(format!("{name} float"), inputs.clone(), Sort::Float);
            state.control = self.terms.function(format!("{name} control"), inputs, Sort::Float);
        } else if registers.iter().any(|(register, _)| register.is_mm()) {
            state.tags = self.terms.constant(2, MARKED);
        }
    }
}
