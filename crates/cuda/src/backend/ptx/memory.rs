//! Global memory: buffers far apart, each bit with a mark whether it has a value.
#![forbid(unsafe_code)]

use core::ops::Range;

/// Bytes of addresses from one buffer to the next: no computed address leads from one into another.
const APART: u32 = 36;
/// The marks of a byte with a value, and of one without.
pub(super) const KNOWN: u8 = 0xff;
const UNKNOWN: u8 = 0;
/// The content of new memory.
const UNTOUCHED: u8 = 0xa5;

/// Who a buffer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Host,
    Module,
    /// `malloc` of a kernel.
    Heap,
}

#[derive(Debug)]
pub(super) struct Buffer {
    /// Its first address, from the first that could be its own.
    start: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) known: Vec<u8>,
    pub(super) owner: Owner,
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    buffers: Vec<Option<Buffer>>,
    /// Bytes that kernels hold, and the most that they may.
    heap: u64,
    pub(super) heap_limit: u64,
}

impl Memory {
    /// Aligned to so many bytes and to no more, since more is not promised.
    pub(super) fn allocate(&mut self, bytes: usize, align: u32, owner: Owner) -> u64 {
        self.heap += if owner == Owner::Heap { bytes as u64 } else { 0 };
        let (start, known) = (align.into(), vec![UNKNOWN; bytes]);
        self.buffers.push(Some(Buffer { start, bytes: vec![UNTOUCHED; bytes], known, owner }));
        ((self.buffers.len() as u64) << APART) + start
    }

    /// `malloc` in the CUDA C++ programming guide: null where the heap has no room, otherwise aligned to 16 bytes.
    pub(super) fn allocate_on_heap(&mut self, bytes: u64) -> u64 {
        if self.heap.saturating_add(bytes) > self.heap_limit {
            return 0;
        }
        self.allocate(bytes as usize, 16, Owner::Heap)
    }

    /// Frees what begins there, if the owner fits, and returns it.
    pub(super) fn free(&mut self, address: u64, owner: Owner) -> Option<Buffer> {
        let slot = self.buffers.get_mut(number(address)?)?;
        slot.as_ref().filter(|buffer| offset(address) == buffer.start && buffer.owner == owner)?;
        let buffer = slot.take()?;
        self.heap -= if owner == Owner::Heap { buffer.bytes.len() as u64 } else { 0 };
        Some(buffer)
    }

    /// Whether the address is inside a buffer of the host, or just after it, or nothing.
    pub(super) fn knows(&self, address: u64) -> bool {
        address == 0
            || number(address).and_then(|n| self.buffers.get(n)?.as_ref()).is_some_and(|buffer| {
                let there = buffer.start..=buffer.start + buffer.bytes.len() as u64;
                buffer.owner == Owner::Host && there.contains(&offset(address))
            })
    }

    /// The buffer, and where in it these bytes are; otherwise why they cannot be accessed.
    pub(super) fn place(
        &mut self,
        address: u64,
        bytes: usize,
    ) -> Result<(&mut Buffer, Range<usize>), String> {
        let slot = number(address).and_then(|n| self.buffers.get_mut(n)).and_then(Option::as_mut);
        let Some(buffer) = slot.filter(|buffer| offset(address) >= buffer.start) else {
            return Err(format!("{address:#x} is in no buffer"));
        };
        let (start, len) = (offset(address) - buffer.start, buffer.bytes.len() as u64);
        if start + bytes as u64 > len {
            let past = start + bytes as u64 - len;
            return Err(format!("{bytes} bytes at {start} of a buffer of {len} bytes end {past} beyond it"));
        }
        let start = start as usize;
        Ok((buffer, start..start + bytes))
    }

    /// From the host.
    pub(super) fn write(&mut self, address: u64, from: &[u8]) -> Result<(), String> {
        let (buffer, range) = self.place(address, from.len())?;
        buffer.bytes[range.clone()].copy_from_slice(from);
        buffer.known[range].fill(KNOWN);
        Ok(())
    }

    /// To the host.
    pub(super) fn read(&mut self, address: u64, to: &mut [u8]) -> Result<(), String> {
        let (buffer, range) = self.place(address, to.len())?;
        to.copy_from_slice(&buffer.bytes[range]);
        Ok(())
    }

    pub(super) fn zero(&mut self, address: u64, bytes: usize) -> Result<(), String> {
        let (buffer, range) = self.place(address, bytes)?;
        buffer.bytes[range.clone()].fill(0);
        buffer.known[range].fill(KNOWN);
        Ok(())
    }

    /// Within the device: what has no value has none afterwards.
    pub(super) fn copy(&mut self, from: u64, to: u64, bytes: usize) -> Result<(), String> {
        let (buffer, range) = self.place(from, bytes)?;
        let (data, known) = (buffer.bytes[range.clone()].to_vec(), buffer.known[range].to_vec());
        let (buffer, range) = self.place(to, bytes)?;
        buffer.bytes[range.clone()].copy_from_slice(&data);
        buffer.known[range].copy_from_slice(&known);
        Ok(())
    }
}

/// The number of an address's buffer.
pub(super) fn number(address: u64) -> Option<usize> {
    ((address >> APART) as usize).checked_sub(1)
}

/// Where in its range of addresses one is.
pub(super) fn offset(address: u64) -> u64 {
    address & ((1 << APART) - 1)
}

/// Bytes, and the bits of them that have a value.
#[inline(always)]
pub(super) fn load<const N: usize>(bytes: &[u8], known: &[u8], at: usize) -> ([u8; N], [u8; N]) {
    let (mut value, mut marks) = ([0; N], [0; N]);
    value.copy_from_slice(&bytes[at..at + N]);
    marks.copy_from_slice(&known[at..at + N]);
    (value, marks)
}

#[inline(always)]
pub(super) fn store<const N: usize>(
    bytes: &mut [u8],
    known: &mut [u8],
    at: usize,
    value: [u8; N],
    marks: [u8; N],
) {
    bytes[at..at + N].copy_from_slice(&value);
    known[at..at + N].copy_from_slice(&marks);
}
