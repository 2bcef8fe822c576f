//! The instructions around translated ones. Between two traced instructions they change no flag, and restore every
//! register.
#![forbid(unsafe_code)]

use iced_x86::code_asm::{
    CodeAssembler, CodeLabel, dword_ptr, eax, ecx, edi, edx, esi, ptr, qword_ptr, r8, r9, r10, r11, r12, r13,
    r14, r15, rax, rbp, rbx, rcx, rdi, rdx, rsi, rsp,
};
use iced_x86::{IcedError, Register};

use crate::layout::{
    ADDRESS, ASKING, CONTROL, EXIT, EXTRA, GOTO, HOST_RSP, KIND, NEXT, PRIVATE_STACK, SAVED_RAX, SAVED_RCX,
    SAVED_RSP, SCRATCH, SITE, STATE, TABLE, TARGET, TRANSLATE, WORDS, WRITTEN,
};

/// A general register's number, as instructions encode it.
pub(crate) fn number(register: Register) -> usize {
    register.full_register() as usize - Register::RAX as usize
}

/// Machine code for one place.
pub(crate) struct Code {
    pub(crate) at: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Code {
    pub(crate) fn new(at: u64) -> Code {
        Code { at, bytes: Vec::with_capacity(4096) }
    }

    pub(crate) fn here(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn gs(&mut self, opcode: u8, register: usize, field: usize) {
        let rex = 0x48 | (register as u8 >> 3) << 2;
        self.raw(&[0x65, rex, opcode, 0x04 | (register as u8 & 7) << 3, 0x25]);
        self.raw(&(field as u32).to_le_bytes());
    }

    /// mov gs:[field], register
    pub(crate) fn save(&mut self, register: usize, field: usize) {
        self.gs(0x89, register, field);
    }

    /// mov register, gs:[field]
    pub(crate) fn load(&mut self, register: usize, field: usize) {
        self.gs(0x8b, register, field);
    }

    /// mov dword ptr gs:[field], value
    pub(crate) fn set(&mut self, field: usize, value: u32) {
        self.raw(&[0x65, 0xc7, 0x04, 0x25]);
        self.raw(&(field as u32).to_le_bytes());
        self.raw(&value.to_le_bytes());
    }

    pub(crate) fn set_both(&mut self, field: usize, value: u64) {
        self.set(field, value as u32);
        self.set(field + 4, (value >> 32) as u32);
    }

    /// mov register, value
    pub(crate) fn constant(&mut self, register: usize, value: u64) {
        self.raw(&[0x48 | register as u8 >> 3, 0xb8 | register as u8 & 7]);
        self.raw(&value.to_le_bytes());
    }

    pub(crate) fn jump(&mut self, to: u64) {
        let after = self.here() + 5;
        self.raw(&[0xe9]);
        self.raw(&(to.wrapping_sub(after) as u32).to_le_bytes());
    }

    /// Pushes a constant of 64 bits.
    pub(crate) fn push(&mut self, value: u64) {
        self.raw(&[0x68]);
        self.raw(&(value as u32).to_le_bytes());
        self.raw(&[0xc7, 0x44, 0x24, 0x04]);
        self.raw(&((value >> 32) as u32).to_le_bytes());
    }
}

/// The routines that all translated code of a lane shares.
pub(crate) struct Routines {
    /// `extern "C" fn(argument, function)`: calls the function traced.
    pub(crate) enter: u64,
    /// The same without tracing, for `ptrace`. Only the return address differs.
    pub(crate) enter_plainly: u64,
    /// Its return address.
    pub(crate) back: u64,
    /// The function's real return address.
    pub(crate) leave: u64,
    /// Asks the tracer; continues at [`GOTO`].
    pub(crate) ask: u64,
    /// Goes to the translation of [`TARGET`].
    pub(crate) look_up: u64,
    /// Ends the process.
    pub(crate) quit: u64,
}

const EVERY: [iced_x86::code_asm::AsmRegister64; 15] =
    [rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15];
const KEPT: [iced_x86::code_asm::AsmRegister64; 6] = [rbx, rbp, r12, r13, r14, r15];

fn put(
    code: &mut Code,
    build: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>,
) -> Result<u64, IcedError> {
    while !code.here().is_multiple_of(16) {
        code.raw(&[0xcc]);
    }
    let at = code.here();
    let mut a = CodeAssembler::new(64)?;
    build(&mut a)?;
    code.raw(&a.assemble(at)?);
    Ok(at)
}

/// Writes the routines of the lane that begins at `base`.
pub(crate) fn routines(code: &mut Code, base: u64) -> Result<Routines, IcedError> {
    let control = base + CONTROL as u64;
    let ask = put(code, |a| {
        a.mov(qword_ptr(SAVED_RSP).gs(), rsp)?;
        a.mov(rsp, qword_ptr(PRIVATE_STACK).gs())?;
        a.pushfq()?;
        for register in EVERY {
            a.push(register)?;
        }
        a.cld()?;
        a.mov(dword_ptr(STATE).gs(), ASKING as i32)?;
        futex(a, control, 1, 1)?;
        let (mut wait, mut go): (CodeLabel, CodeLabel) = (a.create_label(), a.create_label());
        a.set_label(&mut wait)?;
        a.cmp(dword_ptr(STATE).gs(), ASKING as i32)?;
        a.jne(go)?;
        futex(a, control, 0, ASKING)?;
        a.jmp(wait)?;
        a.set_label(&mut go)?;
        // The tracer may have written code: discard prefetched instructions.
        a.xor(eax, eax)?;
        a.cpuid()?;
        for register in EVERY.into_iter().rev() {
            a.pop(register)?;
        }
        a.popfq()?;
        a.mov(rsp, qword_ptr(SAVED_RSP).gs())?;
        a.jmp(qword_ptr(GOTO).gs())
    })?;
    let look_up = put(code, |a| {
        let mut hit = a.create_label();
        a.mov(qword_ptr(SAVED_RAX).gs(), rax)?;
        a.mov(qword_ptr(SAVED_RCX).gs(), rcx)?;
        a.mov(rax, qword_ptr(TARGET).gs())?;
        a.movzx(ecx, iced_x86::code_asm::ax)?;
        a.lea(rcx, ptr(rcx + rcx))?;
        a.mov(rcx, qword_ptr(rcx * 8 + TABLE).gs())?;
        a.lea(rcx, ptr(rcx + rax))?;
        a.jrcxz(hit)?;
        a.mov(rax, qword_ptr(SAVED_RAX).gs())?;
        a.mov(rcx, qword_ptr(SAVED_RCX).gs())?;
        a.mov(dword_ptr(KIND).gs(), TRANSLATE as i32)?;
        a.mov(dword_ptr(SITE).gs(), 0)?;
        a.jmp(ask)?;
        a.set_label(&mut hit)?;
        a.movzx(ecx, iced_x86::code_asm::ax)?;
        a.lea(rcx, ptr(rcx + rcx))?;
        a.mov(rcx, qword_ptr(rcx * 8 + (TABLE + 8)).gs())?;
        a.mov(qword_ptr(GOTO).gs(), rcx)?;
        a.mov(rax, qword_ptr(SAVED_RAX).gs())?;
        a.mov(rcx, qword_ptr(SAVED_RCX).gs())?;
        a.jmp(qword_ptr(GOTO).gs())
    })?;
    let enter = put(code, |a| {
        for register in KEPT {
            a.push(register)?;
        }
        a.mov(qword_ptr(HOST_RSP).gs(), rsp)?;
        a.mov(qword_ptr(TARGET).gs(), rsi)?;
        a.mov(rax, control + EXIT as u64)?;
        a.lea(rsp, ptr(rsp - 8))?;
        a.push(rax)?;
        forget(a)?;
        a.jmp(look_up)
    })?;
    let leave = put(code, |a| {
        a.mov(rsp, qword_ptr(HOST_RSP).gs())?;
        for register in KEPT.into_iter().rev() {
            a.pop(register)?;
        }
        a.ret()
    })?;
    let enter_plainly = put(code, |a| {
        for register in KEPT {
            a.push(register)?;
        }
        a.mov(qword_ptr(HOST_RSP).gs(), rsp)?;
        a.lea(rsp, ptr(rsp - 8))?;
        forget(a)?;
        a.call(rsi)
    })?;
    let back = code.here();
    let mut a = CodeAssembler::new(64)?;
    a.jmp(leave)?;
    code.raw(&a.assemble(back)?);
    let quit = put(code, |a| {
        a.mov(eax, 231)?;
        a.mov(edi, 0)?;
        a.syscall()?;
        a.ud2()
    })?;
    Ok(Routines { enter, enter_plainly, back, leave, ask, look_up, quit })
}

/// Clears state that the called function does not use, so that runs in different lanes begin alike.
fn forget(a: &mut CodeAssembler) -> Result<(), IcedError> {
    for register in [rcx, rdx, rbx, rbp, r8, r9, r10, r11, r12, r13, r14, r15] {
        a.mov(register, 0i64)?;
    }
    a.xor(eax, eax)
}

fn futex(a: &mut CodeAssembler, control: u64, operation: i32, value: u32) -> Result<(), IcedError> {
    a.mov(rdi, control + STATE as u64)?;
    a.mov(esi, operation)?;
    a.mov(edx, value)?;
    a.mov(r10, 0i64)?;
    a.mov(eax, 202)?;
    a.syscall()
}

/// A record's content besides registers and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Shape {
    /// The vector registers that addresses derive from: indices and mask.
    pub(crate) indices: Option<Register>,
    pub(crate) mask: Option<Register>,
    /// Whether a mask register is as wide as it can be, or has 16 bits.
    pub(crate) wide_mask: bool,
    /// Bytes of the processor's extended state, 0 for none.
    pub(crate) state: usize,
    /// Records are multiples of this many bytes: 8 or 64.
    pub(crate) grain: usize,
}

impl Shape {
    /// Bytes before the extended state.
    pub(crate) fn head(self) -> usize {
        let extra = if self.indices.is_some() || self.mask.is_some() { EXTRA } else { 0 };
        (WORDS * 8).next_multiple_of(self.grain) + extra
    }

    pub(crate) fn bytes(self) -> usize {
        (self.head() + self.state).next_multiple_of(self.grain)
    }

    /// Words before the vector registers.
    pub(crate) fn extra_at(self) -> usize {
        (WORDS * 8).next_multiple_of(self.grain) / 8
    }
}

/// A placeholder for the instruction's number.
const NUMBER: u32 = 0x1357_9bdf;

/// The code that writes a record, and the offset of the instruction's number.
pub(crate) fn record(shape: Shape) -> Result<(Vec<u8>, usize), IcedError> {
    let mut a = CodeAssembler::new(64)?;
    a.mov(qword_ptr(SAVED_RSP).gs(), rsp)?;
    a.mov(rsp, qword_ptr(NEXT).gs())?;
    let extra = shape.extra_at() * 8;
    for (register, at) in [(shape.indices, extra), (shape.mask, extra + 64)] {
        let Some(register) = register else { continue };
        a.add_instruction(store_vector(register, at, shape.wide_mask)?)?;
    }
    a.lea(rsp, ptr(rsp + WORDS * 8))?;
    a.pushfq()?;
    for register in [rax, rcx, rdx, rbx] {
        a.push(register)?;
    }
    a.push(qword_ptr(SAVED_RSP).gs())?;
    for register in [rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15] {
        a.push(register)?;
    }
    a.push(NUMBER as i32)?;
    if shape.state > 0 {
        // x87, xmm, ymm, masks, zmm: as far as this processor has them.
        a.mov(eax, 0xe7)?;
        a.mov(edx, 0)?;
        a.xsave64(ptr(rsp + shape.head()))?;
        a.mov(rax, qword_ptr(rsp + 16 * 8))?;
        a.mov(rdx, qword_ptr(rsp + 14 * 8))?;
    }
    a.lea(rsp, ptr(rsp + shape.bytes()))?;
    a.mov(qword_ptr(NEXT).gs(), rsp)?;
    a.mov(rsp, qword_ptr(SAVED_RSP).gs())?;
    let bytes = a.assemble(0)?;
    let at = bytes.windows(4).position(|w| w == NUMBER.to_le_bytes()).unwrap_or_default();
    Ok((bytes, at))
}

fn store_vector(register: Register, at: usize, wide: bool) -> Result<iced_x86::Instruction, IcedError> {
    use iced_x86::{Code as C, Instruction, MemoryOperand};
    let code = if register.is_zmm() {
        C::EVEX_Vmovdqu64_zmmm512_k1z_zmm
    } else if register.is_ymm() && register.number() < 16 {
        C::VEX_Vmovdqu_ymmm256_ymm
    } else if register.is_ymm() {
        C::EVEX_Vmovdqu64_ymmm256_k1z_ymm
    } else if register.is_xmm() && register.number() < 16 {
        // Stores leave the upper halves alone, and every processor has the plain SSE form.
        C::Movdqu_xmmm128_xmm
    } else if register.is_xmm() {
        C::EVEX_Vmovdqu64_xmmm128_k1z_xmm
    } else if register.is_k() && wide {
        C::VEX_Kmovq_m64_kr
    } else if register.is_k() {
        C::VEX_Kmovw_m16_kr
    } else {
        C::Movq_mmm64_mm
    };
    let memory = MemoryOperand::with_base_displ(Register::RSP, at as i64);
    Instruction::with2(code, memory, register)
}

/// The code after an instruction that wrote `length` bytes at [`ADDRESS`]: the same bytes as a record.
pub(crate) fn written(
    code: &mut Code,
    id: u32,
    length: usize,
    fs: bool,
    grain: usize,
) -> Result<(), IcedError> {
    let at = code.here();
    let mut a = CodeAssembler::new(64)?;
    a.mov(qword_ptr(SAVED_RAX).gs(), rax)?;
    a.mov(qword_ptr(SAVED_RCX).gs(), rcx)?;
    a.mov(rcx, qword_ptr(NEXT).gs())?;
    a.mov(rax, qword_ptr(ADDRESS).gs())?;
    a.mov(qword_ptr(rcx + 8), rax)?;
    a.mov(eax, id | WRITTEN as u32)?;
    a.mov(qword_ptr(rcx), rax)?;
    if !length.is_multiple_of(8) {
        a.mov(qword_ptr(rcx + (16 + length / 8 * 8)), 0)?;
    }
    let mut done = 0;
    while done < length {
        a.mov(rax, qword_ptr(ADDRESS).gs())?;
        let from = |step| {
            let m = match step {
                1 => iced_x86::code_asm::byte_ptr(rax + done),
                2 => iced_x86::code_asm::word_ptr(rax + done),
                4 => dword_ptr(rax + done),
                _ => qword_ptr(rax + done),
            };
            if fs { m.fs() } else { m }
        };
        let step = [8, 4, 2, 1].into_iter().find(|s| *s <= length - done).unwrap_or(1);
        match step {
            8 => a.mov(rax, from(8))?,
            4 => a.mov(eax, from(4))?,
            n => a.movzx(eax, from(n))?,
        }
        match step {
            8 => a.mov(qword_ptr(rcx + (16 + done)), rax)?,
            4 => a.mov(dword_ptr(rcx + (16 + done)), eax)?,
            2 => a.mov(iced_x86::code_asm::word_ptr(rcx + (16 + done)), iced_x86::code_asm::ax)?,
            _ => a.mov(iced_x86::code_asm::byte_ptr(rcx + (16 + done)), iced_x86::code_asm::al)?,
        }
        done += step;
    }
    a.lea(rcx, ptr(rcx + written_bytes(length, grain)))?;
    a.mov(qword_ptr(NEXT).gs(), rcx)?;
    a.mov(rcx, qword_ptr(SAVED_RCX).gs())?;
    a.mov(rax, qword_ptr(SAVED_RAX).gs())?;
    code.raw(&a.assemble(at)?);
    Ok(())
}

/// Bytes of the record that [`written`] makes.
pub(crate) fn written_bytes(length: usize, grain: usize) -> usize {
    (16 + length).next_multiple_of(grain)
}

/// Frees a register for a moment; its value is kept in [`SCRATCH`].
pub(crate) fn borrow(code: &mut Code, register: usize) {
    code.save(register, SCRATCH);
}

/// Restores it.
pub(crate) fn give_back(code: &mut Code, register: usize) {
    code.load(register, SCRATCH);
}
