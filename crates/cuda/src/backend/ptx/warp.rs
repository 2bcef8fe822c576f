//! A warp: its registers, 32 lanes side by side, and the paths that its threads are on.
#![forbid(unsafe_code)]

use super::follow::Bits;
use super::memory::KNOWN;
use super::program::{Class, Code, Constant, NEVER};
use super::race::Clock;

pub(super) const LANES: usize = 32;
/// Each lane's bit, which loops over lanes test without a shift.
const BITS: Words = {
    let mut bits = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        bits[lane] = 1 << lane;
        lane += 1;
    }
    bits
};
pub(super) type Words = [u32; LANES];
pub(super) type Longs = [u64; LANES];

/// Threads on the same path: where they are, and where they meet the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) at: u32,
    pub(super) meet: u32,
    pub(super) lanes: u32,
}

/// Whether a warp can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    /// At a barrier.
    Waiting,
    Ended,
}

/// A copy of 16 bytes that is on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) group: u64,
    pub(super) lane: usize,
    /// Where in shared memory.
    pub(super) to: usize,
    pub(super) from: u64,
}

pub(super) struct Warp {
    pub(super) number: usize,
    pub(super) words: Vec<Words>,
    pub(super) longs: Vec<Longs>,
    /// A bit for each lane.
    pub(super) predicates: Vec<u32>,
    /// Lanes that have a value in each place.
    pub(super) known_words: Vec<u32>,
    pub(super) known_longs: Vec<u32>,
    pub(super) known_predicates: Vec<u32>,
    pub(super) paths: Vec<Path>,
    /// Lanes that the block has, and those that have not ended.
    pub(super) exists: u32,
    pub(super) live: u32,
    pub(super) state: State,
    pub(super) clock: Clock,
    pub(super) pending: Vec<Pending>,
    /// Groups of copies that each thread has closed.
    pub(super) groups: Longs,
    /// Each thread's own memory, one after the other, and its marks.
    pub(super) local: Vec<u8>,
    pub(super) local_known: Vec<u8>,
    /// The bits of lanes that are not known, and whether there may be any.
    pub(super) bits: Bits,
    pub(super) follows: bool,
}

/// What a launch gives to every thread.
pub(super) struct Given<'a> {
    pub(super) parameters: &'a [u8],
    pub(super) globals: &'a [u64],
    pub(super) threads: u32,
    pub(super) blocks: u32,
}

impl Given<'_> {
    fn value(&self, constant: Constant, block: u32, thread: u32) -> u64 {
        match constant {
            Constant::Value(value) => value,
            Constant::Thread => thread.into(),
            Constant::Threads => self.threads.into(),
            Constant::Block => block.into(),
            Constant::Blocks => self.blocks.into(),
            Constant::Lane => (thread % 32).into(),
            Constant::Parameter(at, bytes) => {
                let bytes = &self.parameters[at as usize..(at + bytes) as usize];
                bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
            }
            Constant::Global(number) => self.globals[number],
        }
    }
}

impl Warp {
    pub(super) fn new(code: &Code, number: usize) -> Warp {
        let [predicates, words, longs] = code.places;
        Warp {
            number,
            words: vec![[0; LANES]; words],
            longs: vec![[0; LANES]; longs],
            predicates: vec![0; predicates],
            known_words: vec![0; words],
            known_longs: vec![0; longs],
            known_predicates: vec![0; predicates],
            paths: Vec::new(),
            exists: 0,
            live: 0,
            state: State::Ready,
            clock: Clock::new(number, 0),
            pending: Vec::new(),
            groups: [0; LANES],
            local: vec![0; code.local_bytes() * LANES],
            local_known: vec![0; code.local_bytes() * LANES],
            bits: Bits::new(),
            follows: false,
        }
    }

    /// At the entry, for this block, after everything that happened up to clock `base`.
    pub(super) fn start(&mut self, code: &Code, given: &Given<'_>, block: u32, base: u32) {
        let first = (self.number * LANES) as u32;
        let there = given.threads.saturating_sub(first).min(LANES as u32);
        self.exists = u32::MAX.checked_shl(there).map_or(u32::MAX, |above| !above);
        (self.live, self.state) = (self.exists, State::Ready);
        self.clock = Clock::new(self.number, base);
        self.pending.clear();
        self.groups = [0; LANES];
        self.bits.clear();
        self.follows = code.early_reads;
        self.paths.clear();
        self.paths.push(Path { at: 0, meet: NEVER, lanes: self.exists });
        self.known_words.fill(0);
        self.known_longs.fill(0);
        self.known_predicates.fill(0);
        self.local_known.fill(!KNOWN);
        self.local.fill(0xa5);
        for (place, constant) in code.words.iter().enumerate() {
            self.words[place] =
                core::array::from_fn(|lane| given.value(*constant, block, first + lane as u32) as u32);
            self.known_words[place] = u32::MAX;
        }
        for (place, constant) in code.longs.iter().enumerate() {
            self.longs[place] =
                core::array::from_fn(|lane| given.value(*constant, block, first + lane as u32));
            self.known_longs[place] = u32::MAX;
        }
        for (place, constant) in code.predicates.iter().enumerate() {
            self.predicates[place] = 0u32.wrapping_sub(given.value(*constant, block, first) as u32 & 1);
            self.known_predicates[place] = u32::MAX;
        }
    }

    #[inline(always)]
    pub(super) fn put(&mut self, place: u16, value: &Words, lanes: u32, known: u32) {
        let to = &mut self.words[place as usize];
        if lanes == u32::MAX {
            *to = *value;
        } else {
            for lane in 0..LANES {
                to[lane] = if lanes & BITS[lane] == 0 { to[lane] } else { value[lane] };
            }
        }
        let marks = &mut self.known_words[place as usize];
        *marks = *marks & !lanes | known & lanes;
        if lanes & !known != 0 {
            self.blur(Class::Word, place, lanes & !known);
        }
    }

    #[inline(always)]
    pub(super) fn put_long(&mut self, place: u16, value: &Longs, lanes: u32, known: u32) {
        let to = &mut self.longs[place as usize];
        if lanes == u32::MAX {
            *to = *value;
        } else {
            for lane in 0..LANES {
                to[lane] = if lanes & BITS[lane] == 0 { to[lane] } else { value[lane] };
            }
        }
        let marks = &mut self.known_longs[place as usize];
        *marks = *marks & !lanes | known & lanes;
        if lanes & !known != 0 {
            self.blur(Class::Long, place, lanes & !known);
        }
    }

    #[inline(always)]
    pub(super) fn put_predicate(&mut self, place: u16, value: u32, lanes: u32, known: u32) {
        let place = place as usize;
        self.predicates[place] = self.predicates[place] & !lanes | value & lanes;
        self.known_predicates[place] = self.known_predicates[place] & !lanes | known & lanes;
        self.follows |= lanes & !known != 0;
    }

    #[inline(always)]
    pub(super) fn map1(&mut self, o: &[u16; 6], lanes: u32, f: impl Fn(u32) -> u32) {
        let [d, a] = [o[0], o[1]];
        let mut value = [0; LANES];
        let x = &self.words[a as usize];
        for lane in 0..LANES {
            value[lane] = f(x[lane]);
        }
        self.put(d, &value, lanes, self.known_words[a as usize]);
    }

    #[inline(always)]
    pub(super) fn map2(&mut self, o: &[u16; 6], lanes: u32, f: impl Fn(u32, u32) -> u32) {
        let [d, a, b] = [o[0], o[1], o[2]].map(usize::from);
        let mut value = [0; LANES];
        let (x, y) = (&self.words[a], &self.words[b]);
        for lane in 0..LANES {
            value[lane] = f(x[lane], y[lane]);
        }
        self.put(d as u16, &value, lanes, self.known_words[a] & self.known_words[b]);
    }

    #[inline(always)]
    pub(super) fn map3(&mut self, o: &[u16; 6], lanes: u32, f: impl Fn(u32, u32, u32) -> u32) {
        let [d, a, b, c] = [o[0], o[1], o[2], o[3]].map(usize::from);
        let mut value = [0; LANES];
        let (x, y, z) = (&self.words[a], &self.words[b], &self.words[c]);
        for lane in 0..LANES {
            value[lane] = f(x[lane], y[lane], z[lane]);
        }
        let known = self.known_words[a] & self.known_words[b] & self.known_words[c];
        self.put(d as u16, &value, lanes, known);
    }

    #[inline(always)]
    pub(super) fn map4(&mut self, o: &[u16; 6], lanes: u32, f: impl Fn(u32, u32, u32, u32) -> u32) {
        let [d, a, b, c, e] = [o[0], o[1], o[2], o[3], o[4]].map(usize::from);
        let mut value = [0; LANES];
        let (x, y, z, w) = (&self.words[a], &self.words[b], &self.words[c], &self.words[e]);
        for lane in 0..LANES {
            value[lane] = f(x[lane], y[lane], z[lane], w[lane]);
        }
        let known = [a, b, c, e].iter().fold(u32::MAX, |known, place| known & self.known_words[*place]);
        self.put(d as u16, &value, lanes, known);
    }

    #[inline(always)]
    pub(super) fn map_long1(&mut self, o: &[u16; 6], lanes: u32, f: impl Fn(u64) -> u64) {
        let [d, a] = [o[0], o[1]].map(usize::from);
        let mut value = [0; LANES];
        let x = &self.longs[a];
        for lane in 0..LANES {
            value[lane] = f(x[lane]);
        }
        self.put_long(d as u16, &value, lanes, self.known_longs[a]);
    }

    #[inline(always)]
    pub(super) fn map_long2(&mut self, o: &[u16; 6], lanes: u32, f: impl Fn(u64, u64) -> u64) {
        let [d, a, b] = [o[0], o[1], o[2]].map(usize::from);
        let mut value = [0; LANES];
        let (x, y) = (&self.longs[a], &self.longs[b]);
        for lane in 0..LANES {
            value[lane] = f(x[lane], y[lane]);
        }
        self.put_long(d as u16, &value, lanes, self.known_longs[a] & self.known_longs[b]);
    }

    /// A long and a word to a long.
    #[inline(always)]
    pub(super) fn map_mixed(&mut self, o: &[u16; 6], lanes: u32, f: impl Fn(u64, u32) -> u64) {
        let [d, a, b] = [o[0], o[1], o[2]].map(usize::from);
        let mut value = [0; LANES];
        let (x, y) = (&self.longs[a], &self.words[b]);
        for lane in 0..LANES {
            value[lane] = f(x[lane], y[lane]);
        }
        self.put_long(d as u16, &value, lanes, self.known_longs[a] & self.known_words[b]);
    }

    /// Two words to a long.
    #[inline(always)]
    pub(super) fn map_wide(&mut self, o: &[u16; 6], lanes: u32, f: impl Fn(u32, u32) -> u64) {
        let [d, a, b] = [o[0], o[1], o[2]].map(usize::from);
        let mut value = [0; LANES];
        let (x, y) = (&self.words[a], &self.words[b]);
        for lane in 0..LANES {
            value[lane] = f(x[lane], y[lane]);
        }
        self.put_long(d as u16, &value, lanes, self.known_words[a] & self.known_words[b]);
    }

    #[inline(always)]
    pub(super) fn compare(&mut self, o: &[u16; 6], lanes: u32, f: impl Fn(u32, u32) -> bool) {
        let [d, a, b] = [o[0], o[1], o[2]].map(usize::from);
        let (x, y) = (&self.words[a], &self.words[b]);
        let mut value = 0;
        for lane in 0..LANES {
            value |= u32::from(f(x[lane], y[lane])) << lane;
        }
        self.put_predicate(d as u16, value, lanes, self.known_words[a] & self.known_words[b]);
    }

    #[inline(always)]
    pub(super) fn compare_long(&mut self, o: &[u16; 6], lanes: u32, f: impl Fn(u64, u64) -> bool) {
        let [d, a, b] = [o[0], o[1], o[2]].map(usize::from);
        let (x, y) = (&self.longs[a], &self.longs[b]);
        let mut value = 0;
        for lane in 0..LANES {
            value |= u32::from(f(x[lane], y[lane])) << lane;
        }
        self.put_predicate(d as u16, value, lanes, self.known_longs[a] & self.known_longs[b]);
    }

    #[inline(always)]
    pub(super) fn logic_predicate(&mut self, o: &[u16; 6], lanes: u32, f: impl Fn(u32, u32) -> u32) {
        let [d, a, b] = [o[0], o[1], o[2]].map(usize::from);
        let value = f(self.predicates[a], self.predicates[b]);
        self.put_predicate(d as u16, value, lanes, self.known_predicates[a] & self.known_predicates[b]);
    }
}
