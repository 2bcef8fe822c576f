//! Instructions of the traced program: the memory that each reads and writes, and the registers that decide its
//! addresses.
#![forbid(unsafe_code)]

use std::collections::HashMap;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register, UsedMemory,
};

use crate::emit::{Shape, number};
use crate::record::Step;

/// The kind of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Touch {
    /// Read only.
    Read,
    /// Written only.
    Write,
    /// Read, then written.
    Both,
    /// Fetched into a cache, or thrown out of it.
    Cache,
}

/// One piece of memory that an instruction touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// The address of its first byte.
    pub address: u64,
    /// Bytes; 0 if the instruction has no fixed number of them (`xsave`).
    pub bytes: u64,
    /// The kind of access.
    pub touch: Touch,
    /// Whether a mask that is not recorded decides if it is touched: plain masked loads and stores.
    pub masked: bool,
}

/// The role of a mask for an instruction with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Masking {
    None,
    /// Element by element; plain loads and stores, which processors do as one access.
    Plain,
    /// It says which of the elements are gathered or scattered.
    Elements,
    /// It says how many elements are stored or loaded side by side.
    Packed,
}

/// An instruction of the traced program.
#[derive(Clone, Debug)]
pub struct Site {
    /// Its address.
    pub address: u64,
    /// Itself.
    pub instruction: Instruction,
    pub(crate) shape: Shape,
    /// Bytes of memory that it writes through a memory operand, if they are to be recorded after it.
    pub(crate) written: usize,
    memory: Vec<UsedMemory>,
    /// Numbers of the general registers that addresses derive from.
    pub(crate) bases: Vec<u8>,
    /// Numbers of the general registers that a division's time may derive from, and whether its divisor is in memory.
    pub(crate) divides: bool,
    masking: Masking,
}

fn masking(i: &Instruction) -> Masking {
    use Mnemonic::{
        Maskmovdqu, Maskmovq, Vcompresspd, Vcompressps, Vexpandpd, Vexpandps, Vmaskmovdqu, Vmaskmovpd,
        Vmaskmovps, Vpcompressb, Vpcompressd, Vpcompressq, Vpcompressw, Vpexpandb, Vpexpandd, Vpexpandq,
        Vpexpandw, Vpmaskmovd, Vpmaskmovq,
    };
    if i.is_vsib() {
        return Masking::Elements;
    }
    match i.mnemonic() {
        Vcompresspd | Vcompressps | Vpcompressb | Vpcompressd | Vpcompressq | Vpcompressw | Vexpandpd
        | Vexpandps | Vpexpandb | Vpexpandd | Vpexpandq | Vpexpandw
            if i.op_mask() != Register::None =>
        {
            Masking::Packed
        }
        Maskmovdqu | Maskmovq | Vmaskmovdqu | Vmaskmovpd | Vmaskmovps | Vpmaskmovd | Vpmaskmovq => {
            Masking::Plain
        }
        _ if i.op_mask() != Register::None => Masking::Plain,
        _ => Masking::None,
    }
}

fn is_prefetch(i: &Instruction) -> bool {
    use Mnemonic::{
        Clflush, Clflushopt, Clwb, Prefetch, Prefetchnta, Prefetcht0, Prefetcht1, Prefetcht2, Prefetchw,
        Prefetchwt1,
    };
    matches!(
        i.mnemonic(),
        Clflush
            | Clflushopt
            | Clwb
            | Prefetch
            | Prefetchnta
            | Prefetcht0
            | Prefetcht1
            | Prefetcht2
            | Prefetchw
            | Prefetchwt1
    )
}

impl Site {
    fn new(instruction: Instruction, factory: &mut InstructionInfoFactory, depth: Depth) -> Site {
        let info = factory.info(&instruction);
        let lea = instruction.mnemonic() == Mnemonic::Lea;
        let touched = |m: &&UsedMemory| {
            !lea && (!matches!(m.access(), OpAccess::None | OpAccess::NoMemAccess)
                || is_prefetch(&instruction))
        };
        let memory: Vec<UsedMemory> = info.used_memory().iter().filter(touched).copied().collect();
        let masking = masking(&instruction);
        let mut bases: Vec<u8> = Vec::new();
        for m in &memory {
            for register in [m.base(), m.index()] {
                if register.is_gpr() {
                    bases.push(number(register) as u8);
                }
            }
        }
        if instruction.is_string_instruction() && has_rep(&instruction) {
            bases.push(number(Register::RCX) as u8);
        }
        if let Some(register) = bit_number(&instruction) {
            bases.push(number(register) as u8);
        }
        bases.sort_unstable();
        bases.dedup();
        let mut shape = Shape { state: depth.state, grain: depth.grain(), ..Shape::default() };
        if instruction.is_vsib() {
            shape.indices = Some(instruction.memory_index());
            // AVX2 gathers have their mask in the last operand.
            shape.mask = Some(match instruction.op_mask() {
                Register::None => instruction.op2_register(),
                mask => mask,
            });
        } else if masking == Masking::Packed && !memory.is_empty() {
            shape.mask = Some(instruction.op_mask());
            shape.wide_mask = !matches!(
                instruction.mnemonic(),
                Mnemonic::Vcompresspd
                    | Mnemonic::Vcompressps
                    | Mnemonic::Vpcompressd
                    | Mnemonic::Vpcompressq
                    | Mnemonic::Vexpandpd
                    | Mnemonic::Vexpandps
                    | Mnemonic::Vpexpandd
                    | Mnemonic::Vpexpandq
            );
        }
        let writes = instruction.op0_kind() == OpKind::Memory
            && matches!(
                info.op0_access(),
                OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite | OpAccess::ReadCondWrite
            );
        let written = if depth.writes
            && writes
            && !instruction.is_vsib()
            && masking == Masking::None
            && instruction.flow_control() == FlowControl::Next
            && matches!(instruction.segment_prefix(), Register::None | Register::FS | Register::DS)
        {
            // `xsave` and its like have no size here, or one too large.
            Some(instruction.memory_size().size()).filter(|n| *n <= 64).unwrap_or(0)
        } else {
            0
        };
        let divides = matches!(instruction.mnemonic(), Mnemonic::Div | Mnemonic::Idiv);
        Site { address: instruction.ip(), instruction, shape, written, memory, bases, divides, masking }
    }

    /// Whether the instruction touches memory.
    #[must_use]
    pub fn touches(&self) -> bool {
        !self.memory.is_empty()
    }

    /// Whether other state than general registers decides the addresses.
    pub(crate) fn by_vectors(&self) -> bool {
        self.shape.indices.is_some() || self.shape.mask.is_some()
    }

    /// The memory that a step of this instruction touches.
    pub fn accesses(&self, step: &Step<'_>, fs_base: u64, out: &mut Vec<Access>) {
        out.clear();
        let turns = if self.instruction.is_string_instruction() && has_rep(&self.instruction) {
            Some(step.register(Register::RCX))
        } else {
            None
        };
        for m in &self.memory {
            let touch = match m.access() {
                OpAccess::Read | OpAccess::CondRead => Touch::Read,
                OpAccess::Write | OpAccess::CondWrite => Touch::Write,
                OpAccess::None | OpAccess::NoMemAccess => Touch::Cache,
                _ => Touch::Both,
            };
            let value = |register: Register, element: usize, size: usize| {
                Some(match register {
                    Register::FS => fs_base,
                    r if r.is_segment_register() => 0,
                    r if r.is_gpr() => step.register(r),
                    _ => step.index(element, size),
                })
            };
            let mut bytes = m.memory_size().size() as u64;
            if let Masking::Elements = self.masking {
                let element = bytes;
                let lanes = self.lanes(m, element);
                for lane in 0..lanes {
                    if step.has_lane(lane, self.instruction.op_mask() == Register::None, element as usize) {
                        let address = m.virtual_address(lane, value).unwrap_or(0);
                        out.push(Access { address, bytes: element, touch, masked: false });
                    }
                }
                continue;
            }
            let mut address = m.virtual_address(0, value).unwrap_or(0);
            if let Masking::Packed = self.masking {
                let element = self.instruction.memory_size().element_size().max(1) as u64;
                // The register's bits above the last element mean nothing.
                let used = u64::MAX >> (64 - (bytes / element).clamp(1, 64));
                bytes = element * u64::from((step.mask(self.shape.wide_mask) & used).count_ones());
            }
            if let Some(register) = bit_number(&self.instruction) {
                let unused = 64 - 8 * register.size() as u32;
                let bit = (step.register(register) << unused) as i64 >> unused;
                address = address.wrapping_add_signed(bit.div_euclid(8 * bytes as i64) * bytes as i64);
            }
            if let Some(turns) = turns {
                bytes *= turns;
                // With the direction flag set a string is walked downwards.
                if step.flags() & 0x400 != 0 && turns > 0 {
                    address = address.wrapping_sub(bytes - bytes / turns);
                }
            }
            out.push(Access { address, bytes, touch, masked: self.masking == Masking::Plain });
        }
    }

    /// Whether this is a string instruction that compares what it reads, once or repeatedly: `cmps` or `scas`.
    #[must_use]
    pub fn compares_strings(&self) -> bool {
        use Mnemonic::{Cmpsb, Cmpsd, Cmpsq, Cmpsw, Scasb, Scasd, Scasq, Scasw};
        let i = &self.instruction;
        // `cmpsd` is a comparison of vectors, too.
        matches!(i.mnemonic(), Cmpsb | Cmpsw | Cmpsd | Cmpsq | Scasb | Scasw | Scasd | Scasq)
            && i.is_string_instruction()
    }

    /// Of one comparison of a repeated string instruction that ends by what it compares: its bytes.
    pub(crate) fn compares(&self) -> Option<u64> {
        let ends = self.compares_strings() && has_rep(&self.instruction);
        ends.then(|| self.instruction.memory_size().size() as u64)
    }

    fn lanes(&self, m: &UsedMemory, element: u64) -> usize {
        let index = self.instruction.memory_index().size() / m.vsib_size().max(1) as usize;
        let data = if self.instruction.op0_kind() == OpKind::Register {
            self.instruction.op0_register().size()
        } else {
            self.instruction.op1_register().size()
        };
        index.min(data / element.max(1) as usize)
    }
}

fn has_rep(i: &Instruction) -> bool {
    i.has_rep_prefix() || i.has_repne_prefix()
}

/// The register that numbers a bit of memory: its high part moves the address.
fn bit_number(i: &Instruction) -> Option<Register> {
    let bits = matches!(i.mnemonic(), Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc);
    (bits && i.op0_kind() == OpKind::Memory && i.op1_kind() == OpKind::Register).then(|| i.op1_register())
}

/// The content of records besides registers and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Depth {
    /// The bytes that were written to memory.
    pub(crate) writes: bool,
    /// Bytes of the extended state, or 0 without it.
    pub(crate) state: usize,
}

impl Depth {
    pub(crate) fn grain(self) -> usize {
        if self.state > 0 { 64 } else { 8 }
    }
}

/// All instructions so far, by number.
pub(crate) struct Sites {
    list: Vec<Site>,
    by_address: HashMap<u64, u32>,
    factory: InstructionInfoFactory,
    pub(crate) depth: Depth,
}

impl Sites {
    pub(crate) fn new(depth: Depth) -> Sites {
        Sites { list: Vec::new(), by_address: HashMap::new(), factory: InstructionInfoFactory::new(), depth }
    }

    pub(crate) fn get(&self, id: u32) -> &Site {
        &self.list[id as usize]
    }

    /// The instruction at an address, of which these bytes and more are code; and the bytes that it takes.
    pub(crate) fn number(&mut self, address: u64, bytes: &[u8]) -> Option<u32> {
        if let Some(&id) = self.by_address.get(&address) {
            return Some(id);
        }
        let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return None;
        }
        let id = self.list.len() as u32;
        self.list.push(Site::new(instruction, &mut self.factory, self.depth));
        self.by_address.insert(address, id);
        Some(id)
    }
}

impl Sites {
    pub(crate) fn at(&self, address: u64) -> Option<&Site> {
        self.by_address.get(&address).map(|&id| self.get(id))
    }

    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{EXTRA, WORDS};

    /// What an instruction touches, from these general registers and this mask.
    fn touched(code: &[u8], registers: &[(Register, u64)], mask: u64) -> Vec<(u64, u64)> {
        let mut sites = Sites::new(Depth { writes: false, state: 0 });
        let id = sites.number(0x1000, code).expect("an instruction");
        let mut words = [0; WORDS + EXTRA / 8];
        for (register, value) in registers {
            words[16 - number(*register)] = *value;
        }
        let site = sites.get(id);
        words[site.shape.extra_at() + 8] = mask;
        let mut out = Vec::new();
        site.accesses(&Step::new(site, 0, &words, &[]), 0, &mut out);
        out.iter().map(|access| (access.address, access.bytes)).collect()
    }

    #[test]
    fn the_number_of_a_bit_moves_the_address() {
        let at = |code: &[u8], number| touched(code, &[(Register::RAX, 0x8000), (Register::RCX, number)], 0);
        let (q, d, w) = (&[0x48, 0x0f, 0xa3, 0x08], &[0x0f, 0xa3, 0x08], &[0x66, 0x0f, 0xa3, 0x08]);
        for (code, width) in [(&q[..], 8), (&d[..], 4), (&w[..], 2)] {
            let bits = 8 * width;
            for (number, words) in [(0, 0), (bits - 1, 0), (bits, 1), (-1, -1), (-bits, -1), (-bits - 1, -2)]
            {
                let address = 0x8000_u64.wrapping_add_signed(words * width);
                assert_eq!(at(code, number as u64), [(address, width as u64)], "{code:x?} {number}");
            }
        }
        // The upper half of a register that is not used does not count.
        assert_eq!(at(d, 0xdead_0000_0000_0040), [(0x8008, 4)]);
        // A number in the instruction stays within its operand.
        assert_eq!(touched(&[0x0f, 0xba, 0x20, 40], &[(Register::RAX, 0x8000)], 0), [(0x8000, 4)]);
    }

    #[test]
    fn comparisons_of_strings_are_told_from_copies_and_vectors() {
        let site = |code: &[u8]| {
            let mut sites = Sites::new(Depth { writes: false, state: 0 });
            let id = sites.number(0x1000, code).expect("an instruction");
            let site = sites.get(id);
            (site.compares_strings(), site.compares())
        };
        assert_eq!(site(&[0xf3, 0xa6]), (true, Some(1)), "repe cmpsb");
        assert_eq!(site(&[0xf2, 0x48, 0xaf]), (true, Some(8)), "repne scasq");
        assert_eq!(site(&[0xa7]), (true, None), "cmpsd, once");
        assert_eq!(site(&[0xf3, 0xa4]), (false, None), "rep movsb");
        assert_eq!(site(&[0xf2, 0x0f, 0xc2, 0xc1, 0x00]), (false, None), "cmpsd xmm0, xmm1, 0");
    }

    #[test]
    fn a_masks_unused_bits_store_nothing() {
        // vpcompressq [rax]{k1}, zmm0, eight lanes; vpcompressb, 64 of them.
        let quads = [0x62, 0xf2, 0xfd, 0x49, 0x8b, 0x00];
        let bytes = [0x62, 0xf2, 0x7d, 0x49, 0x63, 0x00];
        for (mask, lanes) in [(0, 0), (0b101, 2), (0xff00, 0), (0xff7f, 7), (u64::MAX, 8)] {
            assert_eq!(touched(&quads, &[(Register::RAX, 64)], mask), [(64, 8 * lanes)], "{mask:x}");
        }
        for mask in [0, 1 << 63, 0xff00, u64::MAX] {
            let lanes = u64::from(mask.count_ones());
            assert_eq!(touched(&bytes, &[(Register::RAX, 64)], mask), [(64, lanes)], "{mask:x}");
        }
    }
}
