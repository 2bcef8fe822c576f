//! Races between threads of a launch on device memory.
//!
//! Barriers of a block order its accesses to device memory as they order those to shared memory (9.7.13), so the same clocks judge them. Nothing
//! orders the blocks of a launch: there are no atomic operations on device memory, and fences without them order nothing. So a
//! place that one block writes and another reads or writes is a race, in whatever order the blocks came here.
#![forbid(unsafe_code)]

use super::memory::{number, offset};
use super::race::{Cells, Clock, Grain, Race};

/// Bytes whose accesses are kept together, once there is one.
const PAGE: usize = 4096;

/// In place of a block.
const SEVERAL: u32 = u32::MAX;

/// Blocks that wrote and read a place, and the last that accessed it: their numbers and one, or 0.
#[derive(Clone, Copy, Default)]
struct Blocks {
    write: u32,
    read: u32,
    last: u32,
}

struct Page {
    /// Accesses of the block that accessed each place last.
    cells: Cells,
    blocks: Vec<Blocks>,
    /// The block that `cells` keeps sets of accesses for.
    block: u32,
}

/// Two accesses that nothing orders.
pub(super) enum Conflict {
    /// In one block.
    Threads(Race),
    /// The other one, and its block unless there are several.
    Blocks(&'static str, Option<u32>),
}

/// The accesses of a launch.
pub(super) struct DeviceCells {
    grain: Grain,
    warps: usize,
    /// As in [`Cells`].
    interval: Option<u32>,
    block: u32,
    /// By the number of a buffer; the one that was accessed last comes first.
    buffers: Vec<(usize, Vec<Option<Box<Page>>>)>,
}

impl DeviceCells {
    pub(super) fn new(grain: Grain, warps: usize, whole: bool) -> DeviceCells {
        DeviceCells { grain, warps, interval: whole.then_some(1), block: 0, buffers: Vec::new() }
    }

    /// The block with this number begins.
    pub(super) fn begin(&mut self, number: u32) {
        self.block = number + 1;
        self.pass();
    }

    /// After a barrier of the whole block.
    pub(super) fn pass(&mut self) {
        self.interval = self.interval.map(|interval| interval + 1);
    }

    /// The page of an address that is in a buffer, and where in it.
    fn page(&mut self, address: u64) -> (&mut Page, usize) {
        let (buffer, at) = (number(address).unwrap_or(0), offset(address) as usize);
        if self.buffers.first().is_none_or(|(first, _)| *first != buffer) {
            let place = self.buffers.iter().position(|(other, _)| *other == buffer);
            let place = place.unwrap_or_else(|| {
                self.buffers.push((buffer, Vec::new()));
                self.buffers.len() - 1
            });
            self.buffers.swap(0, place);
        }
        let pages = &mut self.buffers[0].1;
        if pages.len() <= at / PAGE {
            pages.resize_with(at / PAGE + 1, || None);
        }
        let page = pages[at / PAGE].get_or_insert_with(|| {
            let cells = Cells::new(PAGE, self.grain, self.warps, self.interval.is_some());
            Box::new(Page { cells, blocks: vec![Blocks::default(); PAGE >> self.grain], block: 0 })
        });
        // What it keeps of other blocks is forgotten place by place, before it is looked at.
        if page.block != self.block {
            page.block = self.block;
            page.cells.forget_sets();
        }
        page.cells.set_interval(self.interval);
        (page, at % PAGE)
    }

    /// The places of an access, in blocks' order; those that another block accessed last begin anew for this one.
    fn enter(&mut self, address: u64, bytes: usize, writes: bool) -> Result<(&mut Page, usize), Conflict> {
        let (grain, block) = (self.grain, self.block);
        let (page, at) = self.page(address);
        let other = |of: u32| of != 0 && of != block;
        let name = |of: u32| (of != SEVERAL).then(|| of - 1);
        for place in at >> grain..=(at + bytes - 1) >> grain {
            let Blocks { write, read, last } = page.blocks[place];
            if other(write) {
                return Err(Conflict::Blocks("a write", name(write)));
            }
            if writes && other(read) {
                return Err(Conflict::Blocks("a read", name(read)));
            }
            if last != block {
                page.cells.forget(place);
            }
            let read = if writes {
                read
            } else if other(read) {
                SEVERAL
            } else {
                block
            };
            page.blocks[place] = Blocks { write: if writes { block } else { write }, read, last: block };
        }
        Ok((page, at))
    }

    #[inline(always)]
    pub(super) fn read(
        &mut self,
        address: u64,
        bytes: usize,
        clock: &Clock,
        lane: u32,
        line: u32,
    ) -> Result<(), Conflict> {
        let (page, at) = self.enter(address, bytes, false)?;
        page.cells.read(at, bytes, clock, lane, line).map_err(Conflict::Threads)
    }

    #[inline(always)]
    pub(super) fn write(
        &mut self,
        address: u64,
        bytes: usize,
        clock: &Clock,
        lane: u32,
        line: u32,
    ) -> Result<(), Conflict> {
        let (page, at) = self.enter(address, bytes, true)?;
        page.cells.write(at, bytes, clock, lane, line).map_err(Conflict::Threads)
    }
}
