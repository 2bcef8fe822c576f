//! What is known before a block: a guess that is made by following both versions, and that z3 then shows to be inductive.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::Register;

use super::symbolic::{CF, Cell, EMPTY, FLAGS, Home, State, ZF};
use super::terms::{Sort, Term, Terms};

/// How far x87's registers are the same in both versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Contents {
    Differ,
    /// Where they are empty, the last values may differ: nothing reads them.
    SameUnlessEmpty,
    Same,
}

/// What is known of x87 in both versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Float {
    pub(crate) tags: [Option<u64>; 2],
    pub(crate) same_tags: bool,
    pub(crate) contents: Contents,
}

impl Float {
    /// As the ABI has it at a function's entry.
    pub(crate) const EMPTY: Float =
        Float { tags: [Some(EMPTY); 2], same_tags: true, contents: Contents::Same };
    /// Something, and the same in both.
    pub(crate) const SAME: Float = Float { tags: [None; 2], same_tags: true, contents: Contents::Same };

    pub(crate) fn meet(&mut self, other: Float) {
        for n in 0..2 {
            self.tags[n] = self.tags[n].filter(|_| self.tags[n] == other.tags[n]);
        }
        self.same_tags &= other.same_tags;
        self.contents = self.contents.min(other.contents);
    }
}

/// What both versions' states have in common before a block. All that is not named here is equal: the other registers, the flags, and
/// memory apart from the moved slots.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Known {
    /// General registers that hold an address of the frame.
    pub(crate) frame: BTreeMap<usize, Cell>,
    /// General registers that hold a number between two others, without a sign.
    pub(crate) numbers: BTreeMap<usize, (u64, u64)>,
    /// General registers whose upper half is zero.
    pub(crate) short: BTreeSet<usize>,
    /// General registers that may differ: one was borrowed, and its old value is dead.
    pub(crate) differ: BTreeSet<usize>,
    /// Moved slots of the original that are equal to a home of the other version.
    pub(crate) equal: BTreeSet<(Cell, Home)>,
    /// Moved slots of the original with a known value.
    pub(crate) fixed: BTreeMap<Cell, u64>,
    /// Places of the frame that did not move, each with its bits and its number.
    pub(crate) stored: BTreeMap<Cell, (u32, u64)>,
    /// Mask registers of the other version with a known value.
    pub(crate) constants: BTreeMap<Home, u64>,
    pub(crate) float: Float,
}

impl Known {
    pub(crate) fn entry() -> Known {
        Known {
            frame: BTreeMap::from([(4, Cell { base: 0, offset: 0 })]),
            numbers: BTreeMap::new(),
            short: BTreeSet::new(),
            differ: BTreeSet::new(),
            equal: BTreeSet::new(),
            fixed: BTreeMap::new(),
            stored: BTreeMap::new(),
            constants: BTreeMap::new(),
            float: Float::EMPTY,
        }
    }

    /// What holds on both of two paths. True if that is less.
    pub(crate) fn meet(&mut self, other: &Known) -> bool {
        let before = self.clone();
        self.frame.retain(|register, cell| other.frame.get(register) == Some(cell));
        self.numbers.retain(|register, (low, high)| {
            let other = other.numbers.get(register);
            other.is_some_and(|&(a, b)| {
                (*low, *high) = (a.min(*low), b.max(*high));
                true
            })
        });
        self.short.retain(|register| other.short.contains(register));
        self.differ.extend(&other.differ);
        self.equal.retain(|pair| other.equal.contains(pair));
        self.fixed.retain(|cell, value| other.fixed.get(cell) == Some(value));
        self.stored.retain(|cell, number| other.stored.get(cell) == Some(number));
        self.constants.retain(|home, value| other.constants.get(home) == Some(value));
        self.float.meet(other.float);
        *self != before
    }
}

/// A function's moved slots, its registers that may differ, and the addresses from which its frame is counted.
pub(crate) struct Frame {
    pub(crate) moved: BTreeMap<Cell, u32>,
    pub(crate) homes: BTreeSet<Register>,
    pub(crate) bases: BTreeMap<Term, usize>,
    pub(crate) depths: BTreeMap<usize, i64>,
    /// Slots that must not move.
    pub(crate) wrong: Vec<String>,
}

impl Frame {
    /// The address of a place in the frame.
    pub(crate) fn address(&self, terms: &mut Terms, cell: Cell) -> Term {
        let base = self.bases.iter().find(|(_, base)| **base == cell.base).map(|(&term, _)| term);
        let distance = terms.constant(64, cell.offset as u64);
        terms.add(base.expect("a known base"), distance)
    }
}

const NAMES: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];

/// The states in which both versions of a block begin. A guess puts one term in a slot and its home; otherwise they are two, with an
/// equation.
pub(crate) fn begin(
    terms: &mut Terms,
    frame: &Frame,
    known: &Known,
    guess: bool,
) -> ([State; 2], Vec<(Term, Term)>) {
    let bits = Sort::Bits(64);
    let mut given = Vec::new();
    let common = |terms: &mut Terms, name: &str, sort: Sort| [terms.variable(name, sort); 2];
    let mut general: [[Term; 16]; 2] = [[terms.constant(64, 0); 16]; 2];
    for (n, name) in NAMES.iter().enumerate() {
        let [one, two] = match (known.frame.get(&n), known.numbers.get(&n)) {
            (Some(&cell), _) => [frame.address(terms, cell); 2],
            (None, Some(&(low, high))) if low == high => [terms.constant(64, low); 2],
            _ if known.short.contains(&n) => {
                let low = terms.variable(format!("{name} low"), Sort::Bits(32));
                [terms.resize(low, 64); 2]
            }
            _ if known.differ.contains(&n) => [terms.variable(*name, bits); 2],
            _ => common(terms, name, bits),
        };
        if let Some(&(low, high)) = known.numbers.get(&n)
            && low < high
        {
            given.push((terms.within(one, low, high), terms.constant(1, 1)));
        }
        general[0][n] = one;
        general[1][n] =
            if known.differ.contains(&n) { terms.variable(format!("{name}'"), bits) } else { two };
    }
    let mut flags = [[general[0][0]; 7]; 2];
    for (n, name) in FLAGS.iter().enumerate() {
        [flags[0][n], flags[1][n]] = common(terms, name, Sort::Bits(1));
    }
    // A number that is in memory already may be written there once more.
    let mut memory = terms.variable("memory", Sort::Memory);
    for (&cell, &(bits, number)) in &known.stored {
        let (address, number) = (frame.address(terms, cell), terms.constant(bits, number));
        memory = terms.store(memory, address, number);
    }
    let mxcsr = common(terms, "mxcsr", Sort::Bits(32));
    let control = common(terms, "control", Sort::Float);
    let mut tags = if known.float.same_tags {
        common(terms, "tags", Sort::Bits(2))
    } else {
        ["tags", "tags'"].map(|name| terms.variable(name, Sort::Bits(2)))
    };
    for n in 0..2 {
        if let Some(value) = known.float.tags[n] {
            tags[n] = terms.constant(2, value);
        }
    }
    let [float, other] = ["float", "float'"].map(|name| terms.variable(name, Sort::Float));
    let float = match known.float.contents {
        Contents::Same => [float; 2],
        Contents::SameUnlessEmpty => {
            let empty = terms.constant(2, EMPTY);
            let dead = terms.equal(tags[1], empty);
            [float, terms.choose(dead, other, float)]
        }
        Contents::Differ => [float, other],
    };
    let mut others = [BTreeMap::new(), BTreeMap::new()];
    let vectors = (0..32).map(|n| (Register::ZMM0 + n, Sort::Vector));
    let rest = (0..8).flat_map(|n| [(Register::MM0 + n, bits), (Register::K0 + n, bits)]);
    for (register, sort) in vectors.chain(rest).filter(|(register, _)| !frame.homes.contains(register)) {
        let [one, two] = common(terms, &format!("{register:?}"), sort);
        others[0].insert(register, one);
        others[1].insert(register, two);
    }
    let (cells, homes) = values(terms, frame, known, guess, &mut given);
    let [one, two] = others;
    let [first, second] = cells;
    let state = |n: usize, cells, homes, others| State {
        general: general[n],
        flags: flags[n],
        memory,
        cells,
        homes,
        others,
        tags: tags[n],
        float: float[n],
        control: control[n],
        mxcsr: mxcsr[n],
        compared: None,
    };
    ([state(0, first, BTreeMap::new(), one), state(1, second, homes, two)], given)
}

/// A slot or a home, whose halves of 4 bytes may be equal to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Slot(Cell),
    Home(Home),
}

/// The slots of both versions, and the homes.
fn values(
    terms: &mut Terms,
    frame: &Frame,
    known: &Known,
    guess: bool,
    given: &mut Vec<(Term, Term)>,
) -> ([BTreeMap<Cell, Term>; 2], BTreeMap<Home, Term>) {
    let parts = frame.homes.iter().flat_map(|&register| Home::parts(register)).map(Item::Home);
    let all: Vec<Item> = frame.moved.keys().copied().map(Item::Slot).chain(parts).collect();
    // What each half is equal to: the least of all such.
    let mut same: [BTreeMap<Item, Item>; 2] = [0, 1].map(|_| all.iter().map(|&item| (item, item)).collect());
    for &(cell, home) in &known.equal {
        for half in 0..frame.moved[&cell] as usize / 4 {
            let [a, b] = [Item::Slot(cell), Item::Home(home)].map(|item| same[half][&item]);
            same[half].values_mut().filter(|least| **least == a.max(b)).for_each(|least| *least = a.min(b));
        }
    }
    let half_of = |terms: &mut Terms, item: Item, half: usize| {
        let class = |other: Item| same[half][&other] == same[half][&item];
        let constants = known.constants.iter().map(|(&home, &value)| (Item::Home(home), value));
        let mut all = constants.chain(known.fixed.iter().map(|(&cell, &value)| (Item::Slot(cell), value)));
        match all.find(|&(known, _)| class(known)) {
            Some((_, value)) => terms.constant(32, value >> (32 * half)),
            None => {
                let named = if guess { same[half][&item] } else { item };
                terms.variable(format!("{named:?} half {half}"), Sort::Bits(32))
            }
        }
    };
    let mut halves: BTreeMap<Item, [Term; 2]> = BTreeMap::new();
    for &item in &all {
        halves.insert(item, [half_of(terms, item, 0), half_of(terms, item, 1)]);
    }
    if !guess {
        for &(cell, home) in &known.equal {
            let (slot, home) = (halves[&Item::Slot(cell)], halves[&Item::Home(home)]);
            given.extend((0..frame.moved[&cell] as usize / 4).map(|half| (home[half], slot[half])));
        }
    }
    let (mut cells, mut homes) = ([BTreeMap::new(), BTreeMap::new()], BTreeMap::new());
    for (item, [low, high]) in halves {
        let long = terms.concat(high, low);
        match item {
            Item::Home(home) => {
                homes.insert(home, long);
            }
            Item::Slot(cell) => {
                let size = frame.moved[&cell];
                cells[0].insert(cell, if size == 4 { low } else { long });
                cells[1].insert(cell, terms.variable(format!("{cell:?} in memory"), Sort::Bits(8 * size)));
            }
        }
    }
    (cells, homes)
}

/// The highest bound that is kept of a number that was masked or shifted: more may hold for many, and says little.
const MOST: u64 = i32::MAX as u64;

/// What is known where a block ends, guessed from the terms.
pub(crate) fn end(
    terms: &mut Terms,
    frame: &Frame,
    before: &Known,
    begin: &State,
    states: &[State; 2],
) -> Known {
    let [one, two] = states;
    let mut out = Known::entry();
    out.frame.clear();
    for n in 0..16 {
        let (root, offset) = terms.distance(one.general[n]);
        if let Some(&base) = frame.bases.get(&root) {
            out.frame.insert(n, Cell { base, offset });
        }
        // A value with bounds, and what is added to it.
        let distance = offset;
        let moved = |bounds: &(u64, u64)| {
            let by = |bound: u64| bound.checked_add_signed(distance);
            by(bounds.0).zip(by(bounds.1))
        };
        let from = (0..16).find(|&m| begin.general[m] == root).and_then(|m| before.numbers.get(&m));
        if let Some(value) = terms.value(one.general[n]) {
            out.numbers.insert(n, (value, value));
        } else if let Some(bounds) = from.and_then(moved) {
            out.numbers.insert(n, bounds);
        } else if let most @ ..=MOST = terms.most(one.general[n]) {
            out.numbers.insert(n, (0, most));
        }
        let high = terms.extract(63, 32, one.general[n]);
        if terms.value(high) == Some(0) {
            out.short.insert(n);
        }
        if one.general[n] != two.general[n] {
            out.differ.insert(n);
        }
    }
    for (&cell, &size) in &frame.moved {
        if let Some(value) = terms.value(one.cells[&cell]) {
            out.fixed.insert(cell, value);
        }
        for (&home, &value) in &two.homes {
            if terms.resize(value, 8 * size) == one.cells[&cell] {
                out.equal.insert((cell, home));
            }
        }
    }
    out.stored = stored(terms, frame, one.memory);
    for (&home, &value) in &two.homes {
        if let (Home::K(_), Some(value)) = (home, terms.value(value)) {
            out.constants.insert(home, value);
        }
    }
    out.float = Float {
        tags: [terms.value(one.tags), terms.value(two.tags)],
        same_tags: one.tags == two.tags,
        contents: if one.float == two.float {
            Contents::Same
        } else if contents(terms, one) == contents(terms, two) {
            Contents::SameUnlessEmpty
        } else {
            Contents::Differ
        },
    };
    out
}

/// The contents of x87, which are dead where all its registers are empty.
pub(crate) fn contents(terms: &mut Terms, state: &State) -> Term {
    let empty = terms.constant(2, EMPTY);
    let dead = terms.equal(state.tags, empty);
    let none = terms.variable("empty x87", Sort::Float);
    terms.choose(dead, none, state.float)
}

/// The numbers that were last stored in the frame. A store elsewhere may have changed any before it.
fn stored(terms: &Terms, frame: &Frame, memory: Term) -> BTreeMap<Cell, (u32, u64)> {
    let mut out = BTreeMap::new();
    let mut covered: Vec<(Cell, i64)> = Vec::new();
    for (to, bytes, value) in terms.stores(memory) {
        let (root, offset) = terms.distance(to);
        let Some(&base) = frame.bases.get(&root) else { break };
        if covered.first().is_some_and(|(first, _)| first.base != base) {
            break;
        }
        let end = offset.saturating_add(bytes);
        if let Some(number) = value.and_then(|value| terms.value(value))
            && covered.iter().all(|&(other, upto)| end <= other.offset || upto <= offset)
        {
            out.insert(Cell { base, offset }, (8 * bytes as u32, number));
        }
        covered.push((Cell { base, offset }, end));
    }
    out
}

/// The same on one way of a branch: where a result is known to be zero, registers that hold it are, and a comparison with a constant
/// bounds them. `None` if no number is within all bounds.
pub(crate) fn along(
    terms: &mut Terms,
    known: &Known,
    state: &State,
    taken: Option<Term>,
    way: bool,
) -> Option<Known> {
    let mut out = known.clone();
    let Some(taken) = taken else { return Some(out) };
    let [zero, carry] = [state.flags[ZF], state.flags[CF]];
    let [not_zero, not_carry] = [zero, carry].map(|flag| terms.not(flag));
    let is = |flag: Term, not: Term| way && taken == flag || !way && taken == not;
    let mut bound = |terms: &mut Terms, value: Term, low: u64, high: u64| {
        let wide = terms.resize(value, 64);
        for n in 0..16 {
            let short = known.short.contains(&n) && terms.resize(state.general[n], 32) == value;
            if (state.general[n] == wide || short) && !out.differ.contains(&n) {
                let old = out.numbers.get(&n).copied().unwrap_or((0, u64::MAX));
                out.numbers.insert(n, (old.0.max(low), old.1.min(high)));
            }
        }
    };
    if let Some(value) = terms.compared(zero).filter(|_| is(zero, not_zero)) {
        bound(terms, value, 0, 0);
    }
    if let Some((value, with, _)) = state.compared.filter(|(.., of)| *of == carry)
        && let Some(with) = terms.value(with)
    {
        let most = u64::MAX >> (64 - terms.width(value));
        if is(carry, not_carry) && with > 0 {
            bound(terms, value, 0, with - 1);
        } else if is(not_carry, carry) {
            bound(terms, value, with, most);
        }
    }
    out.numbers.values().all(|(low, high)| low <= high).then_some(out)
}
