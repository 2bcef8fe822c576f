//! The queued work of a device that the CPU computes.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hasher as _};

use super::{Body, Freed, Launched, Order, Work};

/// A piece of work. Addresses are numbers: the device's, and of pinned memory the host's.
pub(super) enum Step<K> {
    Upload {
        from: usize,
        to: u64,
        bytes: usize,
    },
    Download {
        from: u64,
        to: usize,
        bytes: usize,
    },
    Copy {
        from: u64,
        to: u64,
        bytes: usize,
    },
    Zero {
        at: u64,
        bytes: usize,
    },
    Kernel(Work<K>),
    /// The event has come to this many of its records.
    Record {
        event: usize,
        turn: u64,
    },
    /// Nothing goes on before it has.
    Wait {
        event: usize,
        turn: u64,
    },
}

#[derive(Default)]
pub(super) struct Event {
    /// Records queued, and records reached.
    pub(super) asked: u64,
    reached: u64,
    /// Where the last was put.
    stream: usize,
}

/// Planned faults.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) lose_after: Option<u64>,
    pub(super) corrupt: Option<(u64, usize, u8)>,
    pub(super) memory: Option<u64>,
    /// Kernels, and lines of PTX to put before their ends.
    pub(super) lines: Vec<(String, String)>,
}

/// A kernel, and the bytes and a hash of each buffer after its launch.
pub(super) type Watched = (String, Vec<(usize, u64)>);

/// What a control sees.
#[derive(Default)]
pub(super) struct Common {
    pub(super) order: Order,
    pub(super) used: u64,
    pub(super) plan: Plan,
    pub(super) launched: Vec<Launched>,
    pub(super) freed: Vec<Freed>,
    /// After each launch: bytes and hash of each buffer.
    pub(super) watched: Option<Vec<Watched>>,
    pub(super) counting: bool,
}

pub(super) struct State<B: Body> {
    pub(super) body: B,
    pub(super) common: Common,
    pub(super) stack: u64,
    /// Buffers by their age: addresses and bytes.
    buffers: BTreeMap<u64, (u64, usize)>,
    ages: HashMap<u64, u64>,
    born: u64,
    pub(super) streams: HashMap<usize, VecDeque<Step<B::Kernel>>>,
    pub(super) events: HashMap<usize, Event>,
    pub(super) functions: HashMap<usize, B::Kernel>,
    next: usize,
}

impl<B: Body> core::fmt::Debug for State<B> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("State").field("used", &self.common.used).finish_non_exhaustive()
    }
}

impl<B: Body> State<B> {
    pub(super) fn new(order: Order, body: B) -> State<B> {
        State {
            body,
            common: Common { order, ..Common::default() },
            stack: 1024,
            buffers: BTreeMap::new(),
            ages: HashMap::new(),
            born: 0,
            streams: HashMap::new(),
            events: HashMap::new(),
            functions: HashMap::new(),
            next: 0,
        }
    }

    /// A new number.
    pub(super) fn number(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    /// A buffer of this many bytes of unspecified content.
    pub(super) fn allocate(&mut self, bytes: usize) -> Option<u64> {
        let buffer = self.body.allocate(bytes)?;
        self.born += 1;
        self.ages.insert(buffer, self.born);
        self.buffers.insert(self.born, (buffer, bytes));
        self.common.used += bytes as u64;
        Some(buffer)
    }

    /// Frees a buffer, and logs its state.
    pub(super) fn free(&mut self, address: u64, secret: bool) {
        let age = self.ages.remove(&address);
        let Some((_, bytes)) = age.and_then(|age| self.buffers.remove(&age)) else { return };
        let zero = self.body.free(address, bytes, secret);
        self.common.used -= bytes as u64;
        self.common.freed.push(Freed { bytes, secret, zero });
    }

    /// A record of the event after the stream's queued work.
    pub(super) fn record(&mut self, stream: usize, event: usize) {
        let Some(state) = self.events.get_mut(&event) else { return };
        state.asked += 1;
        state.stream = stream;
        let turn = state.asked;
        self.push(stream, Step::Record { event, turn });
    }

    pub(super) fn push(&mut self, stream: usize, work: Step<B::Kernel>) {
        self.streams.entry(stream).or_default().push_back(work);
    }

    /// Whether the event has reached its last record.
    pub(super) fn is_reached(&self, event: usize) -> bool {
        self.events.get(&event).is_none_or(|e| e.reached >= e.asked)
    }

    /// The place of the event's last record.
    pub(super) fn stream_of(&self, event: usize) -> Option<usize> {
        self.events.get(&event).map(|e| e.stream)
    }

    /// Does one piece of the stream's work, and its dependencies before. False if there was none.
    pub(super) fn step(&mut self, stream: usize) -> Result<bool, String> {
        let Some(work) = self.streams.get_mut(&stream).and_then(VecDeque::pop_front) else {
            return Ok(false);
        };
        match work {
            Step::Upload { from, to, bytes } => {
                let from = core::ptr::with_exposed_provenance(from);
                // SAFETY: both have that many bytes, by the contract of the method that queued it; pinned memory waits for
                // its copies before it goes, and buffers for all work.
                unsafe { self.body.upload(from, to, bytes) }?;
            }
            Step::Download { from, to, bytes } => self.download(from, to, bytes)?,
            // SAFETY: both lie in buffers, by the contract of the method that queued it; buffers wait for all work.
            Step::Copy { from, to, bytes } => unsafe { self.body.copy(from, to, bytes) }?,
            // SAFETY: it lies in a buffer, by the contract of the method that queued it; buffers are freed only when
            // nothing is queued.
            Step::Zero { at, bytes } => unsafe { self.body.zero(at, bytes) }?,
            Step::Kernel(work) => self.launch(work)?,
            Step::Record { event, turn } => {
                if let Some(event) = self.events.get_mut(&event) {
                    event.reached = turn;
                }
            }
            Step::Wait { event, turn } => {
                while let Some(e) = self.events.get(&event).filter(|e| e.reached < turn) {
                    let other = e.stream;
                    if !self.step(other)? {
                        break;
                    }
                }
            }
        }
        Ok(true)
    }

    /// Does all work of the stream.
    pub(super) fn drain(&mut self, stream: usize) -> Result<(), String> {
        while self.step(stream)? {}
        Ok(())
    }

    /// Does all queued work.
    pub(super) fn drain_all(&mut self) -> Result<(), String> {
        let mut streams: Vec<usize> = self.streams.keys().copied().collect();
        streams.sort_unstable();
        streams.into_iter().try_for_each(|stream| self.drain(stream))
    }

    fn download(&mut self, from: u64, to: usize, bytes: usize) -> Result<(), String> {
        let to: *mut u8 = core::ptr::with_exposed_provenance_mut(to);
        // SAFETY: as for uploads.
        unsafe { self.body.download(from, to, bytes) }?;
        if let Some((left, at, mask)) = self.common.plan.corrupt.take() {
            match left.checked_sub(1) {
                Some(left) => self.common.plan.corrupt = Some((left, at, mask)),
                // SAFETY: inside the bytes just written.
                None => unsafe { *to.add(at % bytes) ^= mask },
            }
        }
        Ok(())
    }

    fn launch(&mut self, work: Work<B::Kernel>) -> Result<(), String> {
        let (name, grid) = (B::name(&work.kernel), work.grid);
        if let Some(left) = self.common.plan.lose_after.take() {
            match left.checked_sub(1) {
                Some(left) => self.common.plan.lose_after = Some(left),
                None => return Err(format!("{name}: an illegal address, as planned")),
            }
        }
        let work =
            Work { order: self.common.order, counting: self.common.counting, stack: self.stack, ..work };
        // SAFETY: the values are the arguments that the kernel declares, by the launch's promise; buffers that they
        // point to are alive, since all work is done before one is freed.
        let ran = unsafe { self.body.launch(&work) }?;
        self.look(&name)?;
        self.common.launched.push(Launched {
            kernel: name,
            blocks: grid.blocks,
            threads: grid.threads,
            shared: grid.shared,
            left: ran.left,
            collectives: ran.collectives,
            traffic: ran.traffic,
            accesses: ran.accesses,
        });
        Ok(())
    }
}

impl<B: Body> State<B> {
    /// Hashes of all buffers, if they are watched.
    fn look(&mut self, kernel: &str) -> Result<(), String> {
        let Some(watched) = &mut self.common.watched else { return Ok(()) };
        let mut hashes = Vec::new();
        for (address, bytes) in self.buffers.values() {
            let mut content = vec![0; *bytes];
            // SAFETY: the buffer has that many bytes, and the vector too.
            unsafe { self.body.download(*address, content.as_mut_ptr(), *bytes) }?;
            let mut hasher = DefaultHasher::new();
            hasher.write(&content);
            hashes.push((*bytes, hasher.finish()));
        }
        watched.push((kernel.to_owned(), hashes));
        Ok(())
    }
}

impl<B: Body> Drop for State<B> {
    fn drop(&mut self) {
        let left: Vec<u64> = self.ages.keys().copied().collect();
        for address in left {
            self.free(address, false);
        }
    }
}
