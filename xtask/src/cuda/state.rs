//! What is known about registers and predicates at one point of a kernel.
//!
//! A value is secret or public, and was computed from some of the kernel's pointers. An instruction under a predicate
//! writes what others read under the same predicate. So a cell has, beside what it may hold at all, what
//! it holds while a predicate is true or false. A branch makes one of the two certain.
#![forbid(unsafe_code)]

use std::collections::HashMap;

use super::sass::Cell;

/// Kernel arguments, a bit for each word of four bytes; the last bit stands for the module's own constants.
pub(super) type Origins = u64;

/// The module's own constants.
pub(super) const MODULE: Origins = 1 << 63;

/// What a cell may hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Value {
    /// Which of its four bytes depend on a secret, a bit for each.
    pub(super) secret: u8,
    /// The pointers that it was computed from.
    pub(super) from: Origins,
    /// The code addresses that it may be, if these are known.
    pub(super) places: Option<Vec<u64>>,
}

/// All bytes.
pub(super) const ALL: u8 = 15;

impl Value {
    /// Whether any of it depends on a secret.
    pub(super) const fn is_secret(&self) -> bool {
        self.secret != 0
    }

    /// What either may be.
    pub(super) fn or(&self, other: &Value) -> Value {
        let places = match (&self.places, &other.places) {
            (Some(a), Some(b)) => {
                let mut both: Vec<u64> = a.iter().chain(b).copied().collect();
                both.sort_unstable();
                both.dedup();
                Some(both)
            }
            _ => None,
        };
        Value { secret: self.secret | other.secret, from: self.from | other.from, places }
    }
}

/// A predicate and its value.
pub(super) type Fact = (Cell, bool);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Slot {
    value: Value,
    /// Its value while a fact holds, where that is narrower than `value`.
    under: Vec<(Fact, Value)>,
}

impl Slot {
    fn get(&self, fact: Option<Fact>) -> &Value {
        self.under.iter().find(|(held, _)| Some(*held) == fact).map_or(&self.value, |(_, value)| value)
    }
}

/// All cells. One that was never written is public and not a pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    cells: HashMap<Cell, Slot>,
    /// What the branches that led here made certain.
    facts: Vec<Fact>,
}

impl State {
    /// What the cell may hold while the fact, if any, holds.
    pub(super) fn get(&self, cell: Cell, fact: Option<Fact>) -> Value {
        self.cells.get(&cell).map_or_else(Value::default, |slot| slot.get(fact).clone())
    }

    /// Writes the cell, unconditionally.
    pub(super) fn set(&mut self, cell: Cell, value: Value) {
        self.forget(cell);
        self.cells.insert(cell, Slot { value, under: Vec::new() });
    }

    /// Writes the cell if the fact, which is not secret, holds.
    pub(super) fn set_under(&mut self, cell: Cell, fact: Fact, value: Value) {
        self.forget(cell);
        if cell == fact.0 {
            return self.set_perhaps(cell, value);
        }
        let slot = self.cells.entry(cell).or_default();
        let otherwise = (fact.0, !fact.1);
        let kept = slot.get(Some(otherwise)).clone();
        for (held, old) in &mut slot.under {
            if held.0 != fact.0 {
                *old = old.or(&value);
            }
        }
        slot.under.retain(|(held, _)| held.0 != fact.0);
        slot.value = kept.or(&value);
        slot.under.push((fact, value));
        slot.under.push((otherwise, kept));
    }

    /// Writes the cell, or does not.
    pub(super) fn set_perhaps(&mut self, cell: Cell, value: Value) {
        self.forget(cell);
        let slot = self.cells.entry(cell).or_default();
        slot.value = slot.value.or(&value);
        slot.under.clear();
    }

    /// Forgets everything that was known under this predicate.
    fn forget(&mut self, cell: Cell) {
        if matches!(cell, Cell::Predicate(_) | Cell::UniformPredicate(_)) {
            self.facts.retain(|fact| fact.0 != cell);
            self.cells.values_mut().for_each(|slot| slot.under.retain(|(held, _)| held.0 != cell));
        }
    }

    /// The state where the fact holds.
    pub(super) fn knowing(&self, fact: Fact) -> State {
        let mut state = self.clone();
        for slot in state.cells.values_mut() {
            slot.value = slot.get(Some(fact)).clone();
            slot.under.retain(|(held, _)| held.0 != fact.0);
        }
        state.facts.retain(|held| held.0 != fact.0);
        state.facts.push(fact);
        state
    }

    /// What the cell may hold while the fact holds; nothing if the fact is known not to hold.
    fn possible(&self, cell: Cell, fact: Fact) -> Option<Value> {
        if self.facts.contains(&(fact.0, !fact.1)) { None } else { Some(self.get(cell, Some(fact))) }
    }

    /// Merges another path to this point. True if that changes anything.
    pub(super) fn merge(&mut self, other: &State) -> bool {
        // A predicate that tells the two paths apart goes on doing so.
        let apart: Vec<Fact> = self
            .facts
            .iter()
            .flat_map(|&(cell, how)| [(cell, how), (cell, !how)])
            .filter(|fact| {
                self.facts.contains(&(fact.0, !fact.1)) && other.facts.contains(fact)
                    || self.facts.contains(fact) && other.facts.contains(&(fact.0, !fact.1))
            })
            .collect();
        let cells: Vec<Cell> = self
            .cells
            .keys()
            .chain(other.cells.keys().filter(|c| !self.cells.contains_key(*c)))
            .copied()
            .collect();
        let (empty, mut merged) = (Slot::default(), HashMap::with_capacity(cells.len()));
        for cell in cells {
            let (a, b) = (self.cells.get(&cell).unwrap_or(&empty), other.cells.get(&cell).unwrap_or(&empty));
            let value = a.value.or(&b.value);
            let mut under: Vec<(Fact, Value)> = Vec::new();
            let held = a.under.iter().chain(&b.under).map(|(fact, _)| *fact);
            let named: Vec<Fact> = held.chain(apart.iter().copied()).collect();
            for fact in named {
                if under.iter().any(|(held, _)| *held == fact) {
                    continue;
                }
                let both = match (self.possible(cell, fact), other.possible(cell, fact)) {
                    (Some(a), Some(b)) => a.or(&b),
                    (Some(one), None) | (None, Some(one)) => one,
                    (None, None) => continue,
                };
                if both != value {
                    under.push((fact, both));
                }
            }
            under.sort_by_key(|(fact, _)| *fact);
            merged.insert(cell, Slot { value, under });
        }
        let facts: Vec<Fact> = self.facts.iter().filter(|f| other.facts.contains(f)).copied().collect();
        let merged = State { cells: merged, facts };
        let news = !merged.same(self);
        *self = merged;
        news
    }

    /// Whether no query can tell the two apart.
    fn same(&self, other: &State) -> bool {
        let empty = Slot::default();
        let sorted = |slot: &Slot| {
            let mut under: Vec<(Fact, Value)> =
                slot.under.iter().filter(|(_, value)| *value != slot.value).cloned().collect();
            under.sort_by_key(|(fact, _)| *fact);
            under
        };
        let equal = |a: &Slot, b: &Slot| a.value == b.value && sorted(a) == sorted(b);
        self.facts == other.facts
            && self.cells.iter().all(|(cell, a)| equal(a, other.cells.get(cell).unwrap_or(&empty)))
            && other.cells.keys().all(|cell| self.cells.contains_key(cell))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: Cell = Cell::Register(4);
    const P: Cell = Cell::Predicate(0);
    const Q: Cell = Cell::Predicate(1);

    fn secret() -> Value {
        Value { secret: ALL, ..Value::default() }
    }

    #[test]
    fn a_write_under_a_predicate_is_read_under_it() {
        let mut state = State::default();
        state.set(R, secret());
        state.set_under(R, (P, true), Value::default());
        assert!(state.get(R, None).is_secret() && state.get(R, Some((P, false))).is_secret());
        assert!(!state.get(R, Some((P, true))).is_secret() && state.get(R, Some((Q, true))).is_secret());
        assert!(!state.knowing((P, true)).get(R, None).is_secret());
        assert!(state.knowing((P, false)).get(R, None).is_secret());
        // The other half is written too.
        state.set_under(R, (P, false), Value::default());
        assert!(!state.get(R, None).is_secret());
        // A predicate that is overwritten says nothing about earlier writes.
        state.set(R, secret());
        state.set_under(R, (P, true), Value::default());
        state.set(P, Value::default());
        assert!(state.get(R, Some((P, true))).is_secret());
    }

    #[test]
    fn ways_that_a_predicate_tells_apart_stay_apart() {
        let mut state = State::default();
        state.set(R, secret());
        let (mut yes, no) = (state.knowing((P, true)), state.knowing((P, false)));
        yes.set(R, Value::default());
        let mut both = yes.clone();
        assert!(both.merge(&no));
        assert!(both.get(R, None).is_secret() && both.get(R, Some((P, false))).is_secret());
        assert!(!both.get(R, Some((P, true))).is_secret());
        // Merging a path again changes nothing; a path with nothing known removes the knowledge.
        assert!(!both.merge(&yes) && !both.merge(&no));
        assert!(both.merge(&state) && both.get(R, Some((P, true))).is_secret());
    }
}
