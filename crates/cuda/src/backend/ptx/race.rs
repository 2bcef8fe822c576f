//! Races between threads of a block on shared memory, by vector clocks.
//!
//! Barriers of a block are reached by whole warps, so a clock belongs to a warp: it counts the warp's barriers, and knows how far
//! each other warp was when they last met. Two accesses of the same word, one of them a write, race unless the first is before
//! the second: by the same thread, before a barrier of their warp (`bar.warp.sync`, 9.7.13), or before a barrier of the block
//! (`bar.sync`, `bar.arrive`, with their numbers and counts) that the second's warp waited at later. Shuffles, votes and reductions order
//! nothing. Two atomic operations do not race.
//!
//! For each word the last write is kept, and of reads and atomic operations the last of each warp: Flanagan and Freund,
//! "FastTrack: efficient and precise dynamic race detection". What is found depends on no schedule: only on which accesses happen.
//! In kernels whose only barriers between warps are the whole block's, two warps' accesses in no order are in the same interval
//! between such barriers; then the interval is kept in place of each warp's access.
#![forbid(unsafe_code)]

/// Places have 2^2 bytes, or 2^0 in kernels that store bytes.
pub(super) type Grain = u32;

/// An access: the clock of its warp, the warp, the lane. 0 is none.
type Mark = u64;

const SEVERAL_LANES: u64 = 0xff;
/// In place of a warp: the marks of all warps are kept elsewhere, or the mark is of an interval.
const SEVERAL_WARPS: u64 = 0xff;
/// The same in a [`Race`].
pub(super) const SEVERAL: usize = SEVERAL_WARPS as usize;

#[inline(always)]
fn warp_of(mark: Mark) -> usize {
    (mark >> 8 & 0xff) as usize
}

#[inline(always)]
fn clock_of(mark: Mark) -> u32 {
    (mark >> 32) as u32
}

/// Clocks that fit above a lane's bits, with as many again for a block.
const MOST_CLOCKS: u32 = 1 << 24;

/// A mark without its warp, in half the bits.
#[inline(always)]
fn short(mark: Mark) -> u32 {
    clock_of(mark) << 7 | (mark as u32 & 0xff).min(0x7f)
}

#[inline(always)]
fn long(short: u32, warp: usize) -> Mark {
    if short == 0 {
        return 0;
    }
    let lane = if short & 0x7f == 0x7f { SEVERAL_LANES } else { u64::from(short & 0x7f) };
    u64::from(short >> 7) << 32 | (warp as u64) << 8 | lane
}

#[derive(Clone, Copy, Default)]
struct Cell {
    write: Mark,
    read: Mark,
    atomic: Mark,
    write_line: u32,
    read_line: u32,
}

/// What a warp knows of the others' progress.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    warp: usize,
    now: u32,
    /// Accesses of a warp up to this clock are before everything that follows; of the own warp, all before `now`.
    seen: [u32; 32],
}

impl Clock {
    /// At the start of a block, after everything up to `base`.
    pub(super) fn new(warp: usize, base: u32) -> Clock {
        Clock { warp, now: base + 1, seen: [base; 32] }
    }

    /// After a barrier of the warp.
    pub(super) fn tick(&mut self) {
        self.seen[self.warp] = self.now;
        self.go_on();
    }

    /// What follows is not before the last account, and lanes are in no new order.
    pub(super) fn go_on(&mut self) {
        self.now += 1;
    }

    /// Everything before this moment, for a barrier's account.
    pub(super) fn give(&self, account: &mut [u32; 32]) {
        for (to, from) in account.iter_mut().zip(self.seen) {
            *to = from.max(*to);
        }
        account[self.warp] = self.now;
    }

    /// Leaves a barrier that had this account. The own part ends.
    pub(super) fn take(&mut self, account: &[u32; 32]) {
        for (to, from) in self.seen.iter_mut().zip(account) {
            *to = (*from).max(*to);
        }
        self.tick();
    }

    pub(super) fn now(&self) -> u32 {
        self.now
    }
}

/// Two accesses that nothing orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Race {
    /// What the other one was.
    pub(super) other: &'static str,
    pub(super) warp: usize,
    /// `None` for several.
    pub(super) lane: Option<u32>,
    /// The other one's line; 0 for atomic operations.
    pub(super) line: u32,
}

/// The accesses of a block's shared memory.
pub(super) struct Cells {
    grain: Grain,
    cells: Vec<Cell>,
    /// The last access of each warp, row by row: its clock above seven bits of its lane, so that a row is a line of the cache.
    several: Vec<u32>,
    warps: usize,
    /// The interval between barriers of the whole block, where warps have no others.
    interval: Option<u32>,
}

impl Cells {
    /// `whole` if warps have no barriers but the whole block's.
    pub(super) fn new(bytes: usize, grain: Grain, warps: usize, whole: bool) -> Cells {
        let cells = vec![Cell::default(); (bytes >> grain) + 1];
        Cells { grain, cells, several: Vec::new(), warps, interval: whole.then_some(1) }
    }

    /// After a barrier of the whole block.
    pub(super) fn pass(&mut self) {
        self.interval = self.interval.map(|interval| interval + 1);
    }

    /// Where another's barriers decide the interval.
    #[inline(always)]
    pub(super) fn set_interval(&mut self, interval: Option<u32>) {
        self.interval = interval;
    }

    /// The accesses of a place.
    pub(super) fn forget(&mut self, place: usize) {
        self.cells[place] = Cell::default();
    }

    /// The sets of accesses, once no place that has one is looked at before it is forgotten.
    pub(super) fn forget_sets(&mut self) {
        self.several.clear();
    }

    fn cells(&self, at: usize, bytes: usize) -> core::ops::Range<usize> {
        at >> self.grain..((at + bytes - 1) >> self.grain) + 1
    }

    /// The first mark that is not before this moment of `lane`.
    #[inline(always)]
    fn unordered(&self, mark: Mark, clock: &Clock, lane: u32) -> Option<Mark> {
        if mark == 0 {
            return None;
        }
        if mark >> 8 & 0xff == SEVERAL_WARPS {
            if let Some(interval) = self.interval {
                return (clock_of(mark) == interval).then_some(mark);
            }
            let row = &self.several[(mark >> 32) as usize..][..self.warps];
            let mut marks = row.iter().enumerate().map(|(warp, short)| long(*short, warp));
            return marks.find(|mark| *mark != 0 && Self::late(*mark, clock, lane));
        }
        Self::late(mark, clock, lane).then_some(mark)
    }

    #[inline(always)]
    fn late(mark: Mark, clock: &Clock, lane: u32) -> bool {
        clock_of(mark) > clock.seen[warp_of(mark) & 31]
            && !(warp_of(mark) == clock.warp && mark & 0xff == u64::from(lane))
    }

    /// Adds an access to a place that keeps the last of each warp.
    #[inline(always)]
    fn join(
        (several, warps): (&mut Vec<u32>, usize),
        interval: Option<u32>,
        to: &mut Mark,
        clock: &Clock,
        lane: u32,
    ) {
        let together = |interval: u32| u64::from(interval) << 32 | SEVERAL_WARPS << 8 | SEVERAL_LANES;
        let mine = u64::from(clock.now) << 32 | (clock.warp as u64) << 8 | u64::from(lane);
        let merged = |old| if Self::late(old, clock, lane) { mine | SEVERAL_LANES } else { mine };
        if *to >> 8 & 0xff == SEVERAL_WARPS {
            if let Some(interval) = interval {
                if *to != together(interval) {
                    *to = mine;
                }
                return;
            }
            let own = &mut several[(*to >> 32) as usize + clock.warp];
            *own = short(merged(long(*own, clock.warp)));
        } else if *to == 0 || warp_of(*to) == clock.warp || clock_of(*to) <= clock.seen[warp_of(*to) & 31] {
            *to = merged(*to);
        } else if let Some(interval) = interval {
            *to = together(interval);
        } else {
            let row = several.len();
            several.resize(row + warps, 0);
            several[row + warp_of(*to)] = short(*to);
            several[row + clock.warp] = short(mine);
            *to = (row as u64) << 32 | SEVERAL_WARPS << 8;
        }
    }

    fn race(mark: Mark, other: &'static str, line: u32) -> Race {
        let lane = mark & 0xff;
        Race { other, warp: warp_of(mark), lane: (lane != SEVERAL_LANES).then_some(lane as u32), line }
    }

    #[inline(always)]
    pub(super) fn read(
        &mut self,
        at: usize,
        bytes: usize,
        clock: &Clock,
        lane: u32,
        line: u32,
    ) -> Result<(), Race> {
        for cell in self.cells(at, bytes) {
            let Cell { write, atomic, write_line, .. } = self.cells[cell];
            if let Some(mark) = self.unordered(write, clock, lane) {
                return Err(Self::race(mark, "a write", write_line));
            }
            if let Some(mark) = self.unordered(atomic, clock, lane) {
                return Err(Self::race(mark, "an atomic operation", 0));
            }
            let cell = &mut self.cells[cell];
            Self::join((&mut self.several, self.warps), self.interval, &mut cell.read, clock, lane);
            cell.read_line = line;
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn write(
        &mut self,
        at: usize,
        bytes: usize,
        clock: &Clock,
        lane: u32,
        line: u32,
    ) -> Result<(), Race> {
        for cell in self.cells(at, bytes) {
            let Cell { write, read, atomic, write_line, read_line } = self.cells[cell];
            for (mark, other, line) in [
                (write, "a write", write_line),
                (read, "a read", read_line),
                (atomic, "an atomic operation", 0),
            ] {
                if let Some(mark) = self.unordered(mark, clock, lane) {
                    return Err(Self::race(mark, other, line));
                }
            }
            let mine = u64::from(clock.now) << 32 | (clock.warp as u64) << 8 | u64::from(lane);
            // What was before this write is before all that is ordered after it.
            self.cells[cell] = Cell { write: mine, write_line: line, ..Cell::default() };
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn atomic(&mut self, at: usize, bytes: usize, clock: &Clock, lane: u32) -> Result<(), Race> {
        for cell in self.cells(at, bytes) {
            let Cell { write, read, write_line, read_line, .. } = self.cells[cell];
            for (mark, other, line) in [(write, "a write", write_line), (read, "a read", read_line)] {
                if let Some(mark) = self.unordered(mark, clock, lane) {
                    return Err(Self::race(mark, other, line));
                }
            }
            let sets = (&mut self.several, self.warps);
            Self::join(sets, self.interval, &mut self.cells[cell].atomic, clock, lane);
        }
        Ok(())
    }

    /// For the next block, after one whose clocks went up to `base`. Returns the clock after which it begins.
    pub(super) fn next_block(&mut self, base: u32) -> u32 {
        self.pass();
        if self.several.is_empty() && base < MOST_CLOCKS {
            return base;
        }
        self.several.clear();
        self.cells.fill(Cell::default());
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn barriers_order_and_nothing_else_does() {
        let (mut a, mut b) = (Clock::new(0, 0), Clock::new(1, 0));
        let mut cells = Cells::new(64, 2, 2, false);
        cells.write(8, 4, &a, 3, 10).unwrap();
        cells.read(8, 4, &a, 3, 11).unwrap();
        // Another lane of the same warp, and another warp.
        assert_eq!(cells.read(8, 4, &a, 4, 12).unwrap_err().other, "a write");
        let race = cells.read(4, 16, &b, 3, 13).unwrap_err();
        assert_eq!(race, Race { other: "a write", warp: 0, lane: Some(3), line: 10 });
        // A barrier of the warp orders its lanes alone.
        a.tick();
        cells.read(8, 4, &a, 4, 14).unwrap();
        assert!(cells.read(8, 4, &b, 3, 15).is_err());
        // One arrives, the other waits: ordered in this direction alone.
        let mut account = [0; 32];
        cells.read(12, 4, &a, 5, 15).unwrap();
        a.give(&mut account);
        a.go_on();
        b.give(&mut account);
        b.take(&account);
        cells.read(8, 4, &b, 3, 16).unwrap();
        cells.write(8, 4, &b, 3, 17).unwrap();
        assert!(cells.read(8, 4, &a, 3, 18).is_err());
        // What the first did after it arrived is not before.
        cells.write(32, 4, &a, 0, 19).unwrap();
        assert!(cells.write(32, 4, &b, 0, 20).is_err());
        // Nor is it after what the warp's other lanes did before.
        cells.read(12, 4, &a, 6, 21).unwrap();
        assert_eq!(cells.write(12, 4, &a, 6, 22).unwrap_err().lane, None);
    }

    #[test]
    fn a_write_meets_the_reads_of_every_warp() {
        let clocks: Vec<Clock> = (0..4).map(|warp| Clock::new(warp, 0)).collect();
        let mut cells = Cells::new(16, 2, 4, false);
        for clock in &clocks[..3] {
            cells.read(0, 4, clock, 1, 1).unwrap();
            cells.read(0, 4, clock, 2, 1).unwrap();
        }
        // The writer has met two of the three readers.
        let mut account = [0; 32];
        clocks[0].give(&mut account);
        clocks[2].give(&mut account);
        let mut writer = clocks[3].clone();
        writer.take(&account);
        let race = cells.write(0, 4, &writer, 0, 2).unwrap_err();
        assert_eq!((race.other, race.warp, race.lane), ("a read", 1, None));
    }

    #[test]
    fn intervals_end_at_barriers_of_the_whole_block() {
        let mut clocks: Vec<Clock> = (0..3).map(|warp| Clock::new(warp, 0)).collect();
        let mut cells = Cells::new(16, 2, 4, true);
        for interval in 0..3 {
            for clock in &clocks[..2] {
                cells.read(0, 4, clock, 1, 1).unwrap();
            }
            for clock in &clocks {
                let race = cells.write(0, 4, clock, 1, 2).unwrap_err();
                assert_eq!((race.other, race.warp, race.lane), ("a read", SEVERAL, None), "{interval}");
            }
            let mut account = [0; 32];
            clocks.iter().for_each(|clock| clock.give(&mut account));
            clocks.iter_mut().for_each(|clock| clock.take(&account));
            cells.pass();
            if interval == 1 {
                // Ordered after the reads; the next reads are not after this.
                cells.write(0, 4, &clocks[2], 5, 3).unwrap();
                assert!(cells.read(0, 4, &clocks[0], 5, 4).is_err());
                let mut account = [0; 32];
                clocks.iter().for_each(|clock| clock.give(&mut account));
                clocks.iter_mut().for_each(|clock| clock.take(&account));
                cells.pass();
            }
        }
    }

    #[test]
    fn atomic_operations_race_with_plain_accesses_alone() {
        [false, true].into_iter().for_each(atomic_and_plain);
    }

    fn atomic_and_plain(whole: bool) {
        let (a, b) = (Clock::new(0, 0), Clock::new(1, 0));
        let mut cells = Cells::new(16, 2, 4, whole);
        cells.atomic(0, 4, &a, 1).unwrap();
        cells.atomic(0, 4, &a, 2).unwrap();
        cells.atomic(0, 4, &b, 1).unwrap();
        assert!(cells.read(0, 4, &b, 1, 1).is_err());
        assert!(cells.write(0, 4, &a, 1, 1).is_err());
        cells.write(4, 4, &a, 1, 1).unwrap();
        assert!(cells.atomic(4, 4, &b, 1).is_err());
    }

    const WARPS: usize = 4;
    const LANES: usize = 3;

    /// Every access of a block, and for each thread how much of each other's is before what it does next.
    struct Plain {
        accesses: Vec<(usize, u8, usize, u32)>,
        seen: Vec<[u32; WARPS * LANES]>,
    }

    impl Plain {
        fn races(&self, place: usize, kind: u8, thread: usize) -> bool {
            self.accesses.iter().any(|&(at, other, by, time)| {
                let conflict = at == place && (other != kind || kind == b'w');
                conflict && by != thread && time > self.seen[thread][by]
            })
        }

        /// A warp's threads come to a barrier.
        fn give(&mut self, warp: usize, account: &mut [u32; WARPS * LANES]) {
            for thread in warp * LANES..(warp + 1) * LANES {
                self.seen[thread][thread] += 1;
                account.iter_mut().zip(self.seen[thread]).for_each(|(to, from)| *to = from.max(*to));
            }
        }

        fn take(&mut self, warp: usize, account: &[u32; WARPS * LANES]) {
            for seen in &mut self.seen[warp * LANES..(warp + 1) * LANES] {
                seen.iter_mut().zip(account).for_each(|(to, from)| *to = (*from).max(*to));
            }
        }
    }

    #[test]
    fn a_record_of_every_access_finds_the_same() {
        let mut state = 1u64;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let mut found = [0, 0];
        for run in 0..6000 {
            let whole = run % 2 == 0;
            let (mut cells, mut base) = (Cells::new(8, 2, WARPS, whole), 0);
            for _block in 0..2 {
                base = cells.next_block(base);
                let mut clocks: Vec<Clock> = (0..WARPS).map(|warp| Clock::new(warp, base)).collect();
                let mut plain = Plain { accesses: Vec::new(), seen: vec![[0; _]; WARPS * LANES] };
                let (mut account, mut all, mut here) = ([0; 32], [0; _], 0);
                for _step in 0..80 {
                    let warp = random(WARPS);
                    match random(10) {
                        0 => {
                            clocks[warp].tick();
                            let mut own = [0; _];
                            plain.give(warp, &mut own);
                            plain.take(warp, &own);
                        }
                        1 if !whole && here >> warp & 1 == 0 => {
                            clocks[warp].give(&mut account);
                            clocks[warp].go_on();
                            plain.give(warp, &mut all);
                            here |= 1 << warp;
                        }
                        2 => {
                            let some = if whole { !0 } else { random(1 << WARPS) };
                            let waits = |warp: &usize| (some & !here) >> warp & 1 == 1;
                            for warp in (0..WARPS).filter(waits) {
                                clocks[warp].give(&mut account);
                                plain.give(warp, &mut all);
                            }
                            for warp in (0..WARPS).filter(waits) {
                                clocks[warp].take(&account);
                                plain.take(warp, &all);
                            }
                            if whole {
                                cells.pass();
                            }
                            (account, all, here) = ([0; 32], [0; _], 0);
                        }
                        _ => {
                            let (place, lane, kind) = (random(2), random(LANES), b"rrrwwa"[random(6)]);
                            let thread = warp * LANES + lane;
                            let races = plain.races(place, kind, thread);
                            // Most races are left out, so that there is much before the one that is not.
                            if races && random(16) != 0 {
                                continue;
                            }
                            let (at, clock, lane) = (4 * place, &clocks[warp], lane as u32);
                            let result = match kind {
                                b'r' => cells.read(at, 4, clock, lane, 1),
                                b'w' => cells.write(at, 4, clock, lane, 1),
                                _ => cells.atomic(at, 4, clock, lane),
                            };
                            assert_eq!(result.is_err(), races, "run {run}: {result:?}");
                            found[usize::from(races)] += 1;
                            if races {
                                break;
                            }
                            plain.accesses.push((place, kind, thread, plain.seen[thread][thread] + 1));
                        }
                    }
                }
                base = clocks.iter().map(Clock::now).max().unwrap_or(0);
            }
        }
        assert!(found[0] > 50_000 && found[1] > 5_000, "{found:?}");
    }
}
