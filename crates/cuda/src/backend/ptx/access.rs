//! Loads, stores, atomics, asynchronous copies and the heap (9.7.9 and 9.7.13 of the PTX ISA 9.0), each access checked.
#![forbid(unsafe_code)]

use super::device_race::Conflict;
use super::execute::{Block, Fault, each, fault};
use super::memory::{KNOWN, Owner, load, store};
use super::program::{Class, Inst, Kind, LOCAL_WINDOW, SHARED_BASE};
use super::race::{Race, SEVERAL};
use super::traffic;
use super::warp::{LANES, Longs, Pending, Warp};
use crate::backend::hosted::Traffic;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    Global,
    Shared,
    Local,
    Generic,
}

fn space(kind: Kind) -> Space {
    match kind {
        Kind::LoadGlobal | Kind::StoreGlobal => Space::Global,
        Kind::LoadLocal | Kind::StoreLocal => Space::Local,
        Kind::LoadGeneric | Kind::StoreGeneric => Space::Generic,
        _ => Space::Shared,
    }
}

/// Up to eight bytes, little-endian.
#[inline(always)]
fn wide<const N: usize>(bytes: [u8; N]) -> u64 {
    // One load each: bytes put together in memory would have to wait for it.
    if let Some(bytes) = bytes.first_chunk::<8>() {
        u64::from_le_bytes(*bytes)
    } else if let Some(bytes) = bytes.first_chunk::<4>() {
        u32::from_le_bytes(*bytes).into()
    } else if let Some(bytes) = bytes.first_chunk::<2>() {
        u16::from_le_bytes(*bytes).into()
    } else {
        bytes.first().copied().unwrap_or_default().into()
    }
}

/// A race on the place with this name.
fn raced(warp: &Warp, inst: &Inst, lane: usize, what: &str, place: &str, race: Race) -> Fault {
    let who = match race.lane {
        Some(lane) => format!("thread {}", race.warp * LANES + lane as usize),
        None if race.warp == SEVERAL => "several warps".to_owned(),
        None => format!("several threads of warp {}", race.warp),
    };
    let line = if race.line == 0 { String::new() } else { format!(" at line {}", race.line) };
    let why = format!("its {what} of {place} and {} by {who}{line} are in no order", race.other);
    fault(warp, inst, Some(lane), why)
}

fn raced_in_shared(warp: &Warp, inst: &Inst, lane: usize, what: &str, at: usize, race: Race) -> Fault {
    raced(warp, inst, lane, what, &format!("shared byte {at}"), race)
}

fn raced_on_device(
    warp: &Warp,
    inst: &Inst,
    lane: usize,
    what: &str,
    address: u64,
    conflict: Conflict,
) -> Fault {
    let place = format!("device byte {address:#x}");
    match conflict {
        Conflict::Threads(race) => raced(warp, inst, lane, what, &place, race),
        Conflict::Blocks(other, block) => {
            let who = block.map_or("several blocks".to_owned(), |block| format!("block {block}"));
            fault(
                warp,
                inst,
                Some(lane),
                format!("its {what} of {place} and {other} by {who} are in no order"),
            )
        }
    }
}

impl Block<'_> {
    /// Each lane's address with the offset; all of the lanes have one.
    fn addresses(&self, warp: &Warp, inst: &Inst, place: u16, lanes: u32) -> Result<Longs, Fault> {
        let place = usize::from(place);
        // Shared memory is addressed by words, everything else by longs.
        let by_word = matches!(
            inst.kind,
            Kind::LoadShared | Kind::StoreShared | Kind::AtomicXorShared | Kind::CopyAsync
        );
        let (known, all) = if by_word {
            let offset = inst.aux as u32;
            let words = &warp.words[place];
            let mut all = [0; LANES];
            for lane in 0..LANES {
                all[lane] = words[lane].wrapping_add(offset).into();
            }
            (warp.known_words[place], all)
        } else {
            let longs = &warp.longs[place];
            let mut all = [0; LANES];
            for lane in 0..LANES {
                all[lane] = longs[lane].wrapping_add(inst.aux);
            }
            (warp.known_longs[place], all)
        };
        if lanes & !known != 0 {
            let lane = each(lanes & !known).next();
            return Err(fault(warp, inst, lane, "its address comes from a value that nothing has written"));
        }
        let bytes = u64::from(inst.code) * inst.values() as u64;
        if bytes > 1 {
            for lane in each(lanes) {
                if all[lane] & (bytes - 1) != 0 {
                    let why = format!("its {bytes} bytes at {:#x} are not aligned", all[lane]);
                    return Err(fault(warp, inst, Some(lane), why));
                }
            }
        }
        Ok(all)
    }

    /// Counts an access, if that is wanted. Local memory is not counted.
    fn count(&mut self, inst: &Inst, lanes: u32, addresses: &Longs) {
        if !self.counting {
            return;
        }
        let bytes = u64::from(inst.code) * inst.values() as u64;
        let mut sum = Traffic::default();
        let traffic = &mut sum;
        match space(inst.kind) {
            Space::Shared => traffic::shared(traffic, addresses, lanes, bytes),
            Space::Global => traffic::global(traffic, addresses, lanes, bytes),
            Space::Local => {}
            Space::Generic => {
                let device = each(lanes).filter(|lane| addresses[*lane] >> 32 != 1);
                let lanes = device.fold(0, |lanes, lane| lanes | 1 << lane);
                if lanes != 0 {
                    traffic::global(traffic, addresses, lanes, bytes);
                }
            }
        }
        self.counted(inst.line, sum);
    }

    /// What an instruction asked for.
    fn counted(&mut self, line: u32, sum: Traffic) {
        self.ran.traffic += sum;
        let (times, all) = self.by_line.entry(line).or_default();
        *times += 1;
        *all += sum;
    }

    /// Where in shared memory these bytes are.
    fn in_shared(
        &self,
        warp: &Warp,
        inst: &Inst,
        lane: usize,
        address: u64,
        bytes: usize,
    ) -> Result<usize, Fault> {
        let at = (address as usize).wrapping_sub(SHARED_BASE as usize);
        if address < SHARED_BASE.into() || at + bytes > self.shared.len() {
            let why = format!(
                "its {bytes} bytes at {} of shared memory end beyond the block's {}",
                address as i64 - i64::from(SHARED_BASE),
                self.shared.len()
            );
            return Err(fault(warp, inst, Some(lane), why));
        }
        Ok(at)
    }

    fn in_local(
        &self,
        warp: &Warp,
        inst: &Inst,
        lane: usize,
        address: u64,
        bytes: usize,
    ) -> Result<usize, Fault> {
        let (size, own) = (self.code.local_bytes(), &self.code.local);
        if address < own.start || address.saturating_add(bytes as u64) > own.end {
            let why = format!("its {bytes} bytes at {address:#x} are not in the thread's own {size}");
            return Err(fault(warp, inst, Some(lane), why));
        }
        Ok(lane * size + (address - own.start) as usize)
    }

    pub(super) fn load(&mut self, warp: &mut Warp, inst: &Inst, lanes: u32) -> Result<(), Fault> {
        let addresses = self.addresses(warp, inst, inst.o[0], lanes)?;
        self.count(inst, lanes, &addresses);
        match (inst.code, inst.values()) {
            (1, 1) => self.load_as::<1, 1>(warp, inst, lanes, &addresses),
            (1, _) => self.load_as::<1, 4>(warp, inst, lanes, &addresses),
            (2, 1) => self.load_as::<2, 1>(warp, inst, lanes, &addresses),
            (2, _) => self.load_as::<2, 4>(warp, inst, lanes, &addresses),
            (4, 1) => self.load_as::<4, 1>(warp, inst, lanes, &addresses),
            (4, _) => self.load_as::<4, 4>(warp, inst, lanes, &addresses),
            (_, 1) => self.load_as::<8, 1>(warp, inst, lanes, &addresses),
            _ => self.load_as::<8, 4>(warp, inst, lanes, &addresses),
        }
    }

    /// Up to `COUNT` values of `N` bytes.
    fn load_as<const N: usize, const COUNT: usize>(
        &mut self,
        warp: &mut Warp,
        inst: &Inst,
        lanes: u32,
        addresses: &Longs,
    ) -> Result<(), Fault> {
        let count = inst.values().min(COUNT);
        let space = space(inst.kind);
        let (mut values, mut known) = ([[0u64; LANES]; COUNT], [0u32; COUNT]);
        let mut unknown = [[0u64; LANES]; COUNT];
        for lane in each(lanes) {
            let mut address = addresses[lane];
            let local = space == Space::Local || (space == Space::Generic && address >> 32 == 1);
            if local && space == Space::Generic {
                address -= LOCAL_WINDOW;
            }
            let (bytes, marks, at): (&[u8], &[u8], usize) = if space == Space::Shared {
                let at = self.in_shared(warp, inst, lane, address, N * count)?;
                self.cells
                    .read(at, N * count, &warp.clock, lane as u32, inst.line)
                    .map_err(|race| raced_in_shared(warp, inst, lane, "read", at, race))?;
                (&self.shared, &self.shared_known, at)
            } else if local {
                let at = self.in_local(warp, inst, lane, address, N * count)?;
                (&warp.local, &warp.local_known, at)
            } else {
                let place = self.memory.place(address, N * count);
                let (buffer, range) = place.map_err(|why| fault(warp, inst, Some(lane), why))?;
                self.device
                    .read(address, N * count, &warp.clock, lane as u32, inst.line)
                    .map_err(|conflict| raced_on_device(warp, inst, lane, "read", address, conflict))?;
                (&buffer.bytes, &buffer.known, range.start)
            };
            for i in 0..count {
                let (value, known_bits) = load::<N>(bytes, marks, at + i * N);
                values[i][lane] = wide(value);
                if known_bits == [KNOWN; N] {
                    known[i] |= 1 << lane;
                } else {
                    unknown[i][lane] = wide(known_bits.map(|bits| !bits));
                }
            }
        }
        for i in 0..count {
            if inst.is_long() {
                warp.put_long(inst.o[1 + i], &values[i], lanes, known[i]);
            } else {
                let words = values[i].map(|value| value as u32);
                warp.put(inst.o[1 + i], &words, lanes, known[i]);
            }
            if lanes & !known[i] != 0 {
                let class = if inst.is_long() { Class::Long } else { Class::Word };
                warp.mark(class, inst.o[1 + i], lanes, &unknown[i]);
            }
        }
        Ok(())
    }

    pub(super) fn store(&mut self, warp: &mut Warp, inst: &Inst, lanes: u32) -> Result<(), Fault> {
        let addresses = self.addresses(warp, inst, inst.o[0], lanes)?;
        self.count(inst, lanes, &addresses);
        match inst.code {
            1 => self.store_as::<1>(warp, inst, lanes, &addresses),
            2 => self.store_as::<2>(warp, inst, lanes, &addresses),
            4 => self.store_as::<4>(warp, inst, lanes, &addresses),
            _ => self.store_as::<8>(warp, inst, lanes, &addresses),
        }
    }

    fn store_as<const N: usize>(
        &mut self,
        warp: &mut Warp,
        inst: &Inst,
        lanes: u32,
        addresses: &Longs,
    ) -> Result<(), Fault> {
        let count = inst.values();
        let space = space(inst.kind);
        for lane in each(lanes) {
            let mut address = addresses[lane];
            let local = space == Space::Local || (space == Space::Generic && address >> 32 == 1);
            if local && space == Space::Generic {
                address -= LOCAL_WINDOW;
            }
            let mut values = [([0; N], [KNOWN; N]); 4];
            for (i, (value, known)) in values.iter_mut().enumerate().take(count) {
                let place = inst.o[1 + i];
                let (bits, class) = if inst.is_long() {
                    (warp.longs[usize::from(place)][lane], Class::Long)
                } else {
                    (warp.words[usize::from(place)][lane].into(), Class::Word)
                };
                value.copy_from_slice(&bits.to_le_bytes()[..N]);
                let unknown = warp.unknown_bits(class, place, lane).to_le_bytes();
                known.iter_mut().zip(unknown).for_each(|(known, unknown)| *known = !unknown);
                if *known != [KNOWN; N] && !local && space != Space::Shared {
                    return Err(fault(warp, inst, Some(lane), "it stores a value that nothing has written"));
                }
            }
            let (bytes, marks, at): (&mut [u8], &mut [u8], usize) = if space == Space::Shared {
                let at = self.in_shared(warp, inst, lane, address, N * count)?;
                self.overwrite(warp, inst, lane, at, N * count)?;
                (&mut self.shared, &mut self.shared_known, at)
            } else if local {
                let at = self.in_local(warp, inst, lane, address, N * count)?;
                (&mut warp.local, &mut warp.local_known, at)
            } else {
                let place = self.memory.place(address, N * count);
                let (buffer, range) = place.map_err(|why| fault(warp, inst, Some(lane), why))?;
                self.device
                    .write(address, N * count, &warp.clock, lane as u32, inst.line)
                    .map_err(|conflict| raced_on_device(warp, inst, lane, "write", address, conflict))?;
                (&mut buffer.bytes, &mut buffer.known, range.start)
            };
            for (i, (value, known)) in values.into_iter().enumerate().take(count) {
                store(bytes, marks, at + i * N, value, known);
            }
        }
        Ok(())
    }

    /// 9.7.13 atom: lanes one after the other.
    pub(super) fn atomic_xor(&mut self, warp: &mut Warp, inst: &Inst, lanes: u32) -> Result<(), Fault> {
        let inst = &Inst { code: 4, count: 1, ..*inst };
        let addresses = self.addresses(warp, inst, inst.o[1], lanes)?;
        if self.counting {
            let mut sum = Traffic::default();
            traffic::atomic(&mut sum, &addresses, lanes);
            self.counted(inst.line, sum);
        }
        let operand = usize::from(inst.o[2]);
        let (mut old, mut unknown) = ([0; LANES], [0; LANES]);
        for lane in each(lanes) {
            let at = self.in_shared(warp, inst, lane, addresses[lane], 4)?;
            self.cells
                .atomic(at, 4, &warp.clock, lane as u32)
                .map_err(|race| raced_in_shared(warp, inst, lane, "atomic operation", at, race))?;
            let (value, known) = load::<4>(&self.shared, &self.shared_known, at);
            old[lane] = u32::from_le_bytes(value);
            unknown[lane] = wide(known.map(|bits| !bits));
            let both = !(unknown[lane] | warp.unknown_bits(Class::Word, inst.o[2], lane)) as u32;
            let new = (old[lane] ^ warp.words[operand][lane]).to_le_bytes();
            store(&mut self.shared, &mut self.shared_known, at, new, both.to_le_bytes());
        }
        warp.put(inst.o[0], &old, lanes, u32::MAX);
        warp.mark(Class::Word, inst.o[0], lanes, &unknown);
        Ok(())
    }

    /// 9.7.9 cp.async: a copy happens at any time until it is waited for. What it overwrites has no value meanwhile.
    pub(super) fn copy(&mut self, warp: &mut Warp, inst: &Inst, lanes: u32) -> Result<(), Fault> {
        match inst.kind {
            Kind::CopyAsync => {
                let sized = Inst { code: 16, count: 1, aux: 0, ..*inst };
                let to = self.addresses(warp, &sized, inst.o[0], lanes)?;
                let read = Inst { kind: Kind::LoadGlobal, ..sized };
                let from = self.addresses(warp, &read, inst.o[1], lanes)?;
                self.count(&sized, lanes, &to);
                self.count(&read, lanes, &from);
                for lane in each(lanes) {
                    let at = self.in_shared(warp, inst, lane, to[lane], 16)?;
                    // What is outside of every buffer is found when the copy happens.
                    if self.memory.place(from[lane], 16).is_ok() {
                        self.device
                            .read(from[lane], 16, &warp.clock, lane as u32, inst.line)
                            .map_err(|race| raced_on_device(warp, inst, lane, "read", from[lane], race))?;
                    }
                    self.overwrite(warp, inst, lane, at, 16)?;
                    self.shared_known[at..at + 16].fill(!KNOWN);
                    warp.pending.push(Pending { group: warp.groups[lane], lane, to: at, from: from[lane] });
                }
            }
            Kind::CopyCommit => each(lanes).for_each(|lane| warp.groups[lane] += 1),
            _ => {
                for copy in core::mem::take(&mut warp.pending) {
                    let done = warp.groups[copy.lane].saturating_sub(inst.aux);
                    if copy.group < done && lanes >> copy.lane & 1 == 1 {
                        self.arrive(warp, inst, copy)?;
                    } else {
                        warp.pending.push(copy);
                    }
                }
            }
        }
        Ok(())
    }

    fn arrive(
        &mut self,
        warp: &Warp,
        inst: &Inst,
        Pending { lane, to, from, .. }: Pending,
    ) -> Result<(), Fault> {
        self.overwrite(warp, inst, lane, to, 16)?;
        let (buffer, range) =
            self.memory.place(from, 16).map_err(|why| fault(warp, inst, Some(lane), why))?;
        self.shared[to..to + 16].copy_from_slice(&buffer.bytes[range.clone()]);
        self.shared_known[to..to + 16].copy_from_slice(&buffer.known[range]);
        Ok(())
    }

    /// These bytes of shared memory change.
    #[inline(always)]
    fn overwrite(
        &mut self,
        warp: &Warp,
        inst: &Inst,
        lane: usize,
        at: usize,
        bytes: usize,
    ) -> Result<(), Fault> {
        let written = self.cells.write(at, bytes, &warp.clock, lane as u32, inst.line);
        written.map_err(|race| raced_in_shared(warp, inst, lane, "write", at, race))
    }

    pub(super) fn heap(&mut self, warp: &mut Warp, inst: &Inst, lanes: u32) -> Result<(), Fault> {
        let argument = usize::from(if inst.kind == Kind::Allocate { inst.o[1] } else { inst.o[0] });
        let missing = lanes & !warp.known_longs[argument];
        if missing != 0 {
            let lane = each(missing).next();
            return Err(fault(warp, inst, lane, "its argument is a value that nothing has written"));
        }
        let argument = warp.longs[argument];
        if inst.kind == Kind::Allocate {
            let mut addresses = [0; LANES];
            for lane in each(lanes) {
                addresses[lane] = self.memory.allocate_on_heap(argument[lane]);
            }
            warp.put_long(inst.o[0], &addresses, lanes, u32::MAX);
            return Ok(());
        }
        for lane in each(lanes).filter(|lane| argument[*lane] != 0) {
            if self.memory.free(argument[lane], Owner::Heap).is_none() {
                let why = format!("{:#x} is freed, which malloc did not return", argument[lane]);
                return Err(fault(warp, inst, Some(lane), why));
            }
        }
        Ok(())
    }

    /// Bytes of shared memory that are not zero in the bits that were written.
    pub(super) fn left(&self) -> u64 {
        self.shared.iter().zip(&self.shared_known).filter(|(b, k)| **b & **k != 0).count() as u64
    }
}
