//! The program's code, copied block by block into a lane, with a record written before every instruction.
//!
//! The copies are the program's own instructions, executed by the processor. Only references to places are rewritten:
//! jumps, calls and returns, which go to other copies, and operands relative to the instruction pointer. Return
//! addresses on the stack are the original's, so the unwinder works.
#![forbid(unsafe_code)]

use std::collections::HashMap;

use iced_x86::{
    Code as C, Encoder, FlowControl, IcedError, Instruction, MemoryOperand, Mnemonic, OpKind, Register,
};

use crate::emit::{
    Code, Routines, Shape, borrow, give_back, number, record, routines, written, written_bytes,
};
use crate::layout::{
    ADDRESS, CODE, CODE_END, CONTROL, EXIT, FLUSH, GOTO, KIND, NEXT, SAVED_RAX, SAVED_RCX, SITE, SYSCALL,
    TABLE, TARGET, TRANSLATE, UNSUPPORTED,
};
use crate::site::Sites;

/// Instructions of one block.
const LONGEST: usize = 64;

/// Length of the code of [`Translator::exit`].
const EXIT_BYTES: usize = 58;

/// Blocks copied at once.
const AHEAD: usize = 200;

/// Why there is no translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The address is not executable.
    NoCode,
    /// The space for copies is used up.
    Full,
    /// An instruction could not be encoded again.
    Encoding,
}

impl From<IcedError> for Refusal {
    fn from(_: IcedError) -> Refusal {
        Refusal::Encoding
    }
}

/// The copies of one lane.
pub(crate) struct Translator {
    base: u64,
    end: u64,
    pub(crate) routines: Routines,
    known: HashMap<u64, u64>,
    templates: HashMap<Shape, (Vec<u8>, usize)>,
    /// Jumps to known places that have not been joined to a copy: their places, and their targets.
    open: Vec<(u32, u64)>,
}

/// Bytes to be put into the lane, at an offset.
pub(crate) type Patch = (usize, Vec<u8>);

impl Translator {
    /// For the lane that begins at `base`.
    pub(crate) fn new(base: u64) -> Result<(Translator, Vec<Patch>), Refusal> {
        let mut code = Code::new(base + CODE as u64);
        let routines = routines(&mut code, base)?;
        let (end, leave) = (code.here().next_multiple_of(16), routines.leave);
        let exit = base + (CONTROL + EXIT) as u64;
        let known = HashMap::from([(exit, leave)]);
        let this = Translator { base, end, routines, known, templates: HashMap::new(), open: Vec::new() };
        let patches = vec![(CODE, code.bytes), this.entry(exit, leave)];
        Ok((this, patches))
    }

    /// The entry of the table for indirect jumps.
    pub(crate) fn entry(&self, target: u64, copy: u64) -> Patch {
        let mut bytes = target.wrapping_neg().to_le_bytes().to_vec();
        bytes.extend_from_slice(&copy.to_le_bytes());
        (CONTROL + TABLE + (target & 0xffff) as usize * 16, bytes)
    }

    /// Joins the jump at a site to a copy.
    pub(crate) fn join(&self, site: u32, copy: u64) -> Patch {
        let after = self.base + u64::from(site) + 5;
        (site as usize + 1, (copy.wrapping_sub(after) as u32).to_le_bytes().to_vec())
    }

    /// The copy of the code at `target`, and the bytes to write for it. The targets of new code are copied with it, and
    /// theirs, up to a limit: asking takes far longer than copying.
    pub(crate) fn copy<'c>(
        &mut self,
        target: u64,
        sites: &mut Sites,
        fetch: impl Fn(u64) -> &'c [u8],
    ) -> Result<(u64, Vec<Patch>), Refusal> {
        self.open.clear();
        let (copy, first) = self.block(target, sites, &fetch)?;
        let mut patches: Vec<Patch> = first.into_iter().collect();
        let mut turns = 0;
        while turns < AHEAD && !patches.is_empty() {
            let Some((site, target)) = self.open.pop() else { break };
            let before = self.open.len();
            let Ok((copy, patch)) = self.block(target, sites, &fetch) else {
                // The jumps of a block that was not copied are dropped.
                self.open.truncate(before);
                continue;
            };
            patches.extend(patch);
            patches.push(self.join(site, copy));
            turns += 1;
        }
        // Remaining targets are copied when they are reached.
        Ok((copy, patches))
    }

    fn block<'c>(
        &mut self,
        target: u64,
        sites: &mut Sites,
        fetch: &impl Fn(u64) -> &'c [u8],
    ) -> Result<(u64, Option<Patch>), Refusal> {
        if let Some(&copy) = self.known.get(&target) {
            return Ok((copy, None));
        }
        let mut code = Code::new(self.end);
        let copy = code.here();
        self.begin(&mut code, copy);
        let mut at = target;
        let mut count = 0;
        loop {
            let Some(id) = sites.number(at, fetch(at)) else {
                if count == 0 {
                    return Err(Refusal::NoCode);
                }
                self.exit(&mut code, at);
                break;
            };
            let site = sites.get(id);
            let instruction = site.instruction;
            self.record(&mut code, site.shape, id)?;
            let grain = sites.depth.grain();
            let done = self.instruction(&mut code, &instruction, site.written, id, grain)?;
            at = instruction.next_ip();
            count += 1;
            if done {
                break;
            }
            if count == LONGEST {
                self.exit(&mut code, at);
                break;
            }
        }
        let end = code.here().next_multiple_of(16);
        if end > self.base + CODE_END as u64 {
            return Err(Refusal::Full);
        }
        self.end = end;
        self.known.insert(target, copy);
        Ok((copy, Some(((copy - self.base) as usize, code.bytes))))
    }

    /// Asks for space if the records are full. It tests with `jrcxz`, so flags stay.
    fn begin(&self, code: &mut Code, copy: u64) {
        let mut full = Code::new(0);
        full.load(1, SAVED_RCX);
        full.set(KIND, FLUSH);
        full.set_both(GOTO, copy);
        let rest = full.bytes.len() + 5;
        code.save(1, SAVED_RCX);
        // movzx ecx, byte ptr gs:[NEXT + 3]
        code.raw(&[0x65, 0x0f, 0xb6, 0x0c, 0x25]);
        code.raw(&(NEXT as u32 + 3).to_le_bytes());
        code.raw(&[0xe3, rest as u8]);
        code.raw(&full.bytes);
        code.jump(self.routines.ask);
        code.load(1, SAVED_RCX);
    }

    fn record(&mut self, code: &mut Code, shape: Shape, id: u32) -> Result<(), Refusal> {
        let (bytes, at) = match self.templates.entry(shape) {
            std::collections::hash_map::Entry::Occupied(e) => e.into_mut(),
            std::collections::hash_map::Entry::Vacant(e) => e.insert(record(shape)?),
        };
        let from = code.bytes.len() + *at;
        code.raw(bytes);
        code.bytes[from..from + 4].copy_from_slice(&id.to_le_bytes());
        Ok(())
    }

    /// Continues at a known address of the program.
    fn exit(&mut self, code: &mut Code, target: u64) {
        let site = code.here() - self.base;
        self.open.push((site as u32, target));
        let next = code.here() + 5;
        code.jump(next);
        code.set_both(TARGET, target);
        code.set(KIND, TRANSLATE);
        code.set(SITE, site as u32);
        code.jump(self.routines.ask);
        debug_assert_eq!(code.here() - self.base - site, EXIT_BYTES as u64);
    }

    fn refuse(&self, code: &mut Code, address: u64) {
        code.set_both(TARGET, address);
        code.set(KIND, UNSUPPORTED);
        code.jump(self.routines.ask);
    }

    /// Writes one instruction; whether the block ends with it.
    fn instruction(
        &mut self,
        code: &mut Code,
        i: &Instruction,
        written: usize,
        id: u32,
        grain: usize,
    ) -> Result<bool, Refusal> {
        let unsupported = i.segment_prefix() == Register::GS
            || matches!(i.mnemonic(), Mnemonic::Wrgsbase | Mnemonic::Swapgs | Mnemonic::Sysenter);
        if unsupported {
            self.refuse(code, i.ip());
            return Ok(true);
        }
        match i.flow_control() {
            FlowControl::Next | FlowControl::Interrupt | FlowControl::Exception => {
                if written > 0 {
                    self.note_address(code, i)?;
                }
                self.plain(code, i)?;
                if written > 0 {
                    let fs = i.segment_prefix() == Register::FS;
                    self::written(code, id, written, fs, grain)?;
                }
                Ok(false)
            }
            FlowControl::Call if i.mnemonic() == Mnemonic::Syscall => {
                code.set(KIND, SYSCALL);
                let after = code.here() + 24 + 5;
                code.set_both(GOTO, after);
                code.jump(self.routines.ask);
                code.raw(&[0x0f, 0x05]);
                code.constant(1, i.next_ip());
                Ok(false)
            }
            FlowControl::UnconditionalBranch if i.op0_kind() == OpKind::NearBranch64 => {
                self.exit(code, i.near_branch64());
                Ok(true)
            }
            FlowControl::Call if i.op0_kind() == OpKind::NearBranch64 => {
                code.push(i.next_ip());
                self.exit(code, i.near_branch64());
                Ok(true)
            }
            FlowControl::ConditionalBranch if i.op0_kind() == OpKind::NearBranch64 => {
                let over = EXIT_BYTES as u8;
                if i.is_jcc_short_or_near() {
                    // Conditions are numbered as in the opcode, plus one: 0 is "none".
                    let condition = i.condition_code() as u8 - 1;
                    code.raw(&[0x0f, 0x80 | condition, over, 0, 0, 0]);
                } else {
                    let opcode = match i.mnemonic() {
                        Mnemonic::Loopne => 0xe0,
                        Mnemonic::Loope => 0xe1,
                        Mnemonic::Loop => 0xe2,
                        Mnemonic::Jrcxz | Mnemonic::Jecxz => 0xe3,
                        _ => return Err(Refusal::Encoding),
                    };
                    let narrow = matches!(
                        i.code(),
                        C::Jecxz_rel8_64 | C::Loop_rel8_64_ECX | C::Loope_rel8_64_ECX | C::Loopne_rel8_64_ECX
                    );
                    code.raw(if narrow { &[0x67][..] } else { &[] });
                    code.raw(&[opcode, over]);
                }
                self.exit(code, i.next_ip());
                self.exit(code, i.near_branch64());
                Ok(true)
            }
            FlowControl::IndirectBranch | FlowControl::IndirectCall
                if matches!(i.code(), C::Jmp_rm64 | C::Call_rm64) =>
            {
                if i.op0_kind() == OpKind::Register {
                    code.save(number(i.op0_register()), TARGET);
                } else {
                    // Base and index may be overwritten: the load reads them before it writes.
                    borrow(code, 0);
                    if i.is_ip_rel_memory_operand() {
                        code.constant(0, i.ip_rel_memory_address());
                        code.raw(&[0x48, 0x8b, 0x00]);
                    } else {
                        let load = Instruction::with2(C::Mov_r64_rm64, Register::RAX, memory_of(i))?;
                        encode(code, &load)?;
                    }
                    code.save(0, TARGET);
                    give_back(code, 0);
                }
                if i.flow_control() == FlowControl::IndirectCall {
                    code.push(i.next_ip());
                }
                code.jump(self.routines.look_up);
                Ok(true)
            }
            FlowControl::Return if matches!(i.code(), C::Retnq | C::Retnq_imm16) => {
                // pop qword ptr gs:[TARGET]
                code.raw(&[0x65, 0x8f, 0x04, 0x25]);
                code.raw(&(TARGET as u32).to_le_bytes());
                if i.code() == C::Retnq_imm16 {
                    // lea rsp, [rsp + n]
                    code.raw(&[0x48, 0x8d, 0xa4, 0x24]);
                    code.raw(&u32::from(i.immediate16()).to_le_bytes());
                }
                code.jump(self.routines.look_up);
                Ok(true)
            }
            _ => {
                self.refuse(code, i.ip());
                Ok(true)
            }
        }
    }

    /// An instruction that continues with the next one.
    fn plain(&self, code: &mut Code, i: &Instruction) -> Result<(), Refusal> {
        if !i.is_ip_rel_memory_operand() {
            return Ok(encode(code, i)?);
        }
        if i.mnemonic() == Mnemonic::Lea && i.op0_register().is_gpr64() {
            code.constant(number(i.op0_register()), i.ip_rel_memory_address());
            return Ok(());
        }
        let spare = spare(i).ok_or(Refusal::Encoding)?;
        let register = number(spare);
        borrow(code, register);
        code.constant(register, i.ip_rel_memory_address());
        let mut moved = *i;
        moved.set_memory_base(spare);
        moved.set_memory_displacement64(0);
        moved.set_memory_displ_size(0);
        encode(code, &moved)?;
        give_back(code, register);
        Ok(())
    }

    /// Keeps the address of the memory operand, less its segment's base, in [`ADDRESS`].
    fn note_address(&self, code: &mut Code, i: &Instruction) -> Result<(), Refusal> {
        code.save(0, SAVED_RAX);
        if i.is_ip_rel_memory_operand() {
            code.constant(0, i.ip_rel_memory_address());
        } else {
            let mut memory = memory_of(i);
            memory.segment_prefix = Register::None;
            encode(code, &Instruction::with2(C::Lea_r64_m, Register::RAX, memory)?)?;
        }
        code.save(0, ADDRESS);
        code.load(0, SAVED_RAX);
        Ok(())
    }
}

/// Bytes of the record that follows an instruction which writes `written` bytes.
pub(crate) fn after(written: usize, grain: usize) -> usize {
    if written == 0 { 0 } else { written_bytes(written, grain) }
}

fn encode(code: &mut Code, i: &Instruction) -> Result<(), IcedError> {
    let mut encoder = Encoder::try_with_capacity(64, 16)?;
    encoder.encode(i, code.here())?;
    code.raw(&encoder.take_buffer());
    Ok(())
}

fn memory_of(i: &Instruction) -> MemoryOperand {
    MemoryOperand::new(
        i.memory_base(),
        i.memory_index(),
        i.memory_index_scale(),
        i.memory_displacement64() as i64,
        i.memory_displ_size(),
        false,
        i.segment_prefix(),
    )
}

/// A register that an instruction does not use and that can be encoded without a REX prefix.
fn spare(i: &Instruction) -> Option<Register> {
    use Register::{RAX, RBX, RCX, RDI, RDX, RSI};
    let mut factory = iced_x86::InstructionInfoFactory::new();
    let info = factory.info(i);
    [RAX, RCX, RDX, RBX, RSI, RDI]
        .into_iter()
        .find(|&r| info.used_registers().iter().all(|used| used.register().full_register() != r))
}
