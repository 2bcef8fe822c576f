//! Terms over bit-vectors, memory and uninterpreted functions, each kept once, and their SMT-LIB.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

/// A term of a [`Terms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Term(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Sort {
    Bits(u32),
    /// Bytes by their addresses.
    Memory,
    /// A vector register that is not a home; only functions of it are known.
    Vector,
    /// The x87 registers and their control and status.
    Float,
}

impl Sort {
    fn said(self) -> String {
        match self {
            Sort::Bits(n) => format!("(_ BitVec {n})"),
            Sort::Memory => "(Array (_ BitVec 64) (_ BitVec 8))".to_owned(),
            Sort::Vector => "Vector".to_owned(),
            Sort::Float => "Float".to_owned(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Head {
    Variable(String),
    Constant(u128),
    Extract(u32, u32),
    /// A function of SMT-LIB, or one that [`PRELUDE`] defines.
    Known(&'static str),
    /// A function whose arguments alone are known.
    Function(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Node {
    head: Head,
    arguments: Vec<Term>,
    sort: Sort,
}

/// What every query begins with.
const PRELUDE: &str = "(set-logic QF_AUFBV)
(declare-sort Vector 0)
(declare-sort Float 0)
(define-sort Memory () (Array (_ BitVec 64) (_ BitVec 8)))
(define-sort Address () (_ BitVec 64))
(define-fun within ((a Address) (low Address) (high Address)) (_ BitVec 1)
  (ite (and (bvule low a) (bvule a high)) #b1 #b0))
(define-fun ld8 ((m Memory) (a Address)) (_ BitVec 8) (select m a))
(define-fun ld16 ((m Memory) (a Address)) (_ BitVec 16) (concat (select m (bvadd a #x0000000000000001)) (select m a)))
(define-fun ld32 ((m Memory) (a Address)) (_ BitVec 32) (concat (ld16 m (bvadd a #x0000000000000002)) (ld16 m a)))
(define-fun ld64 ((m Memory) (a Address)) (_ BitVec 64) (concat (ld32 m (bvadd a #x0000000000000004)) (ld32 m a)))
(define-fun st8 ((m Memory) (a Address) (v (_ BitVec 8))) Memory (store m a v))
(define-fun st16 ((m Memory) (a Address) (v (_ BitVec 16))) Memory
  (store (store m a ((_ extract 7 0) v)) (bvadd a #x0000000000000001) ((_ extract 15 8) v)))
(define-fun st32 ((m Memory) (a Address) (v (_ BitVec 32))) Memory
  (st16 (st16 m a ((_ extract 15 0) v)) (bvadd a #x0000000000000002) ((_ extract 31 16) v)))
(define-fun st64 ((m Memory) (a Address) (v (_ BitVec 64))) Memory
  (st32 (st32 m a ((_ extract 31 0) v)) (bvadd a #x0000000000000004) ((_ extract 63 32) v)))
";

/// All terms of one function.
#[derive(Debug, Default)]
pub(crate) struct Terms {
    nodes: Vec<Node>,
    known: HashMap<Node, Term>,
}

fn mask(bits: u32) -> u128 {
    (1 << bits) - 1
}

impl Terms {
    fn node(&mut self, head: Head, arguments: Vec<Term>, sort: Sort) -> Term {
        let node = Node { head, arguments, sort };
        if let Some(&term) = self.known.get(&node) {
            return term;
        }
        let term = Term(u32::try_from(self.nodes.len()).expect("few terms"));
        self.nodes.push(node.clone());
        self.known.insert(node, term);
        term
    }

    fn at(&self, term: Term) -> &Node {
        &self.nodes[term.0 as usize]
    }

    pub(crate) fn sort(&self, term: Term) -> Sort {
        self.at(term).sort
    }

    pub(crate) fn width(&self, term: Term) -> u32 {
        match self.sort(term) {
            Sort::Bits(n) => n,
            other => panic!("{other:?} has no width"),
        }
    }

    pub(crate) fn variable(&mut self, name: impl Into<String>, sort: Sort) -> Term {
        self.node(Head::Variable(name.into()), Vec::new(), sort)
    }

    pub(crate) fn constant(&mut self, bits: u32, value: u64) -> Term {
        self.number(bits, value.into())
    }

    /// Of up to 127 bits.
    fn number(&mut self, bits: u32, value: u128) -> Term {
        self.node(Head::Constant(value & mask(bits)), Vec::new(), Sort::Bits(bits))
    }

    /// The value of a constant of up to 64 bits.
    pub(crate) fn value(&self, term: Term) -> Option<u64> {
        self.known_value(term).and_then(|value| u64::try_from(value).ok())
    }

    fn known_value(&self, term: Term) -> Option<u128> {
        if let Head::Constant(value) = self.at(term).head { Some(value) } else { None }
    }

    pub(crate) fn function(&mut self, name: impl Into<String>, arguments: Vec<Term>, sort: Sort) -> Term {
        let mut name = name.into();
        for &argument in &arguments {
            write!(name, " {:?}", self.sort(argument)).expect("written");
        }
        self.node(Head::Function(name), arguments, sort)
    }

    fn known2(&mut self, name: &'static str, a: Term, b: Term) -> Term {
        let sort = self.sort(a);
        self.node(Head::Known(name), vec![a, b], sort)
    }

    pub(crate) fn add(&mut self, a: Term, b: Term) -> Term {
        let bits = self.width(a);
        match (self.known_value(a), self.known_value(b)) {
            (Some(x), Some(y)) => self.number(bits, x.wrapping_add(y)),
            (Some(_), None) => self.add(b, a),
            (None, Some(0)) => a,
            (None, Some(y)) => match self.at(a).clone() {
                Node { head: Head::Known("bvadd"), arguments, .. }
                    if self.known_value(arguments[1]).is_some() =>
                {
                    let sum = self.known_value(arguments[1]).unwrap_or(0).wrapping_add(y);
                    let sum = self.number(bits, sum);
                    self.add(arguments[0], sum)
                }
                _ => self.known2("bvadd", a, b),
            },
            (None, None) => self.known2("bvadd", a, b),
        }
    }

    pub(crate) fn sub(&mut self, a: Term, b: Term) -> Term {
        match self.known_value(b) {
            Some(y) => {
                let minus = self.number(self.width(a), y.wrapping_neg());
                self.add(a, minus)
            }
            None if a == b => self.number(self.width(a), 0),
            None => self.known2("bvsub", a, b),
        }
    }

    /// A term as another term and a distance from it.
    pub(crate) fn distance(&self, term: Term) -> (Term, i64) {
        let node = self.at(term);
        if node.head == Head::Known("bvadd")
            && let Some(distance) = self.value(node.arguments[1])
        {
            return (node.arguments[0], distance as i64);
        }
        (term, 0)
    }

    pub(crate) fn mul(&mut self, a: Term, b: Term) -> Term {
        if let (Some(x), Some(y)) = (self.known_value(a), self.known_value(b)) {
            return self.number(self.width(a), x.wrapping_mul(y));
        }
        self.known2("bvmul", a, b)
    }

    pub(crate) fn and(&mut self, a: Term, b: Term) -> Term {
        let (bits, ones) = (self.width(a), mask(self.width(a)));
        match (self.known_value(a), self.known_value(b)) {
            (Some(x), Some(y)) => self.number(bits, x & y),
            (Some(_), None) => self.and(b, a),
            (None, Some(0)) => b,
            (None, Some(y)) if y == ones => a,
            _ if a == b => a,
            _ => self.known2("bvand", a, b),
        }
    }

    pub(crate) fn or(&mut self, a: Term, b: Term) -> Term {
        let (bits, ones) = (self.width(a), mask(self.width(a)));
        match (self.known_value(a), self.known_value(b)) {
            (Some(x), Some(y)) => self.number(bits, x | y),
            (Some(_), None) => self.or(b, a),
            (None, Some(0)) => a,
            (None, Some(y)) if y == ones => b,
            _ if a == b => a,
            _ => self.known2("bvor", a, b),
        }
    }

    pub(crate) fn xor(&mut self, a: Term, b: Term) -> Term {
        let bits = self.width(a);
        match (self.known_value(a), self.known_value(b)) {
            (Some(x), Some(y)) => self.number(bits, x ^ y),
            (Some(_), None) => self.xor(b, a),
            (None, Some(0)) => a,
            _ if a == b => self.number(bits, 0),
            _ => self.known2("bvxor", a, b),
        }
    }

    pub(crate) fn not(&mut self, a: Term) -> Term {
        let (bits, sort) = (self.width(a), self.sort(a));
        match self.known_value(a) {
            Some(x) => self.number(bits, !x),
            None => self.node(Head::Known("bvnot"), vec![a], sort),
        }
    }

    /// Bits `low` to `high`, both included.
    pub(crate) fn extract(&mut self, high: u32, low: u32, a: Term) -> Term {
        let bits = self.width(a);
        if high + 1 - low == bits {
            return a;
        }
        match self.at(a).clone() {
            Node { head: Head::Constant(value), .. } => self.number(high + 1 - low, value >> low),
            Node { head: Head::Extract(_, from), arguments, .. } => {
                self.extract(high + from, low + from, arguments[0])
            }
            Node { head: Head::Known("concat"), arguments, .. } => {
                let split = self.width(arguments[1]);
                if high < split {
                    self.extract(high, low, arguments[1])
                } else if low >= split {
                    self.extract(high - split, low - split, arguments[0])
                } else {
                    let above = self.extract(high - split, 0, arguments[0]);
                    let below = self.extract(split - 1, low, arguments[1]);
                    self.concat(above, below)
                }
            }
            Node { head: Head::Known("bvand"), arguments, .. } if self.value(arguments[1]).is_some() => {
                let [a, b] = [0, 1].map(|n| self.extract(high, low, arguments[n]));
                self.and(a, b)
            }
            _ => self.node(Head::Extract(high, low), vec![a], Sort::Bits(high + 1 - low)),
        }
    }

    pub(crate) fn concat(&mut self, high: Term, low: Term) -> Term {
        let (a, b) = (self.width(high), self.width(low));
        if let (Some(x), Some(y)) = (self.known_value(high), self.known_value(low))
            && a + b < 128
        {
            return self.number(a + b, x << b | y);
        }
        if let (
            Node { head: Head::Extract(h, l), arguments: x, .. },
            Node { head: Head::Extract(m, n), arguments: y, .. },
        ) = (self.at(high).clone(), self.at(low).clone())
            && x == y
            && l == m + 1
        {
            return self.extract(h, n, x[0]);
        }
        self.node(Head::Known("concat"), vec![high, low], Sort::Bits(a + b))
    }

    /// Extended by zeros, or cut.
    pub(crate) fn resize(&mut self, a: Term, bits: u32) -> Term {
        let width = self.width(a);
        if width >= bits {
            return self.extract(bits - 1, 0, a);
        }
        if let Some(value) = self.known_value(a)
            && bits < 128
        {
            return self.number(bits, value);
        }
        let zero = self.number(bits - width, 0);
        self.concat(zero, a)
    }

    /// Extended by the sign.
    pub(crate) fn signed(&mut self, a: Term, bits: u32) -> Term {
        let width = self.width(a);
        if width == bits {
            return a;
        }
        let sign = self.extract(width - 1, width - 1, a);
        let ones = self.number(bits - width, u128::MAX);
        let zero = self.number(bits - width, 0);
        let high = self.choose(sign, ones, zero);
        self.concat(high, a)
    }

    /// `a` where the bit is set, else `b`.
    pub(crate) fn choose(&mut self, bit: Term, a: Term, b: Term) -> Term {
        match self.value(bit) {
            Some(1) => a,
            Some(_) => b,
            None if a == b => a,
            None => {
                let sort = self.sort(a);
                // The same bit has been decided.
                let b = match self.at(b) {
                    Node { head: Head::Known("choose"), arguments, .. } if arguments[0] == bit => {
                        arguments[2]
                    }
                    _ => b,
                };
                self.node(Head::Known("choose"), vec![bit, a, b], sort)
            }
        }
    }

    /// A number that a term does not exceed, if it has no sign.
    pub(crate) fn most(&self, a: Term) -> u64 {
        let node = self.at(a);
        let full = mask(self.width(a).min(64)) as u64;
        match &node.head {
            Head::Constant(_) => self.value(a).unwrap_or(full),
            Head::Known("bvand") => self.most(node.arguments[0]).min(self.most(node.arguments[1])),
            Head::Known("concat") if self.value(node.arguments[0]) == Some(0) => self.most(node.arguments[1]),
            Head::Known("choose") => self.most(node.arguments[1]).max(self.most(node.arguments[2])),
            _ => full,
        }
    }

    /// One bit: whether two terms are equal.
    pub(crate) fn equal(&mut self, a: Term, b: Term) -> Term {
        match (self.known_value(a), self.known_value(b)) {
            (Some(x), Some(y)) => self.constant(1, u64::from(x == y)),
            _ if a == b => self.constant(1, 1),
            _ => self.node(Head::Known("equal"), vec![a, b], Sort::Bits(1)),
        }
    }

    /// One bit: whether a number without a sign lies between two others.
    pub(crate) fn within(&mut self, a: Term, low: u64, high: u64) -> Term {
        if let Some(value) = self.value(a) {
            return self.constant(1, u64::from((low..=high).contains(&value)));
        }
        let [low, high] = [low, high].map(|bound| self.constant(64, bound));
        self.node(Head::Known("within"), vec![a, low, high], Sort::Bits(1))
    }

    /// The term that an equation compares with a constant.
    pub(crate) fn compared(&self, equation: Term) -> Option<Term> {
        let node = self.at(equation);
        let is = node.head == Head::Known("equal") && self.value(node.arguments[1]) == Some(0);
        is.then(|| node.arguments[0])
    }

    /// The stores that made a memory, the last one first: each with its address, its bytes, and its value if that is known.
    pub(crate) fn stores(&self, memory: Term) -> impl Iterator<Item = (Term, i64, Option<Term>)> {
        let mut at = memory;
        std::iter::from_fn(move || {
            let Node { head: Head::Known(name), arguments, .. } = self.at(at) else { return None };
            at = *arguments.first()?;
            match *name {
                "st8" | "st16" | "st32" | "st64" => {
                    let value = arguments[2];
                    Some((arguments[1], i64::from(self.width(value) / 8), Some(value)))
                }
                "over" => Some((arguments[1], self.value(arguments[2])? as i64, None)),
                _ => None,
            }
        })
    }

    /// What was stored at the same distance from the same address is taken from there.
    pub(crate) fn load(&mut self, memory: Term, address: Term, bits: u32) -> Term {
        let (root, distance) = self.distance(address);
        for (to, written, value) in self.stores(memory) {
            let (other, at) = self.distance(to);
            let bytes = i64::from(bits / 8);
            if let Some(value) = value.filter(|_| to == address && bytes == written) {
                return value;
            }
            let beside = distance.checked_add(bytes).is_some_and(|end| end <= at)
                || at.checked_add(written).is_some_and(|end| end <= distance);
            if other != root || !beside {
                break;
            }
        }
        let name = match bits {
            8 => "ld8",
            16 => "ld16",
            32 => "ld32",
            _ => "ld64",
        };
        self.node(Head::Known(name), vec![memory, address], Sort::Bits(bits))
    }

    pub(crate) fn store(&mut self, memory: Term, address: Term, value: Term) -> Term {
        let name = match self.width(value) {
            8 => "st8",
            16 => "st16",
            32 => "st32",
            _ => "st64",
        };
        self.node(Head::Known(name), vec![memory, address, value], Sort::Memory)
    }

    /// `after`, which is `before` except for `bytes` bytes from an address on.
    pub(crate) fn over(&mut self, before: Term, address: Term, bytes: u32, after: Term) -> Term {
        let bytes = self.constant(64, u64::from(bytes));
        self.node(Head::Known("over"), vec![before, address, bytes, after], Sort::Memory)
    }

    fn said(&self, term: Term) -> String {
        let node = self.at(term);
        let arguments: Vec<String> = node.arguments.iter().map(|a| format!("t{}", a.0)).collect();
        let arguments = arguments.join(" ");
        match &node.head {
            Head::Variable(name) => format!("|{name}|"),
            Head::Constant(value) => {
                let bits = self.width(term);
                format!("#b{value:0width$b}", width = bits as usize)
            }
            Head::Extract(high, low) => format!("((_ extract {high} {low}) {arguments})"),
            Head::Known("choose") => {
                let [bit, a, b] = [0, 1, 2].map(|n| format!("t{}", node.arguments[n].0));
                format!("(ite (= {bit} #b1) {a} {b})")
            }
            Head::Known("over") => format!("t{}", node.arguments[3].0),
            Head::Known("equal") => format!("(ite (= {arguments}) #b1 #b0)"),
            Head::Known(name) => format!("({name} {arguments})"),
            Head::Function(name) if node.arguments.is_empty() => format!("|{name}|"),
            Head::Function(name) => format!("(|{name}| {arguments})"),
        }
    }

    /// A query: are there values with these equations, and one of those others not an equation? `unsat` means that the goals hold.
    pub(crate) fn query(&self, given: &[(Term, Term)], goals: &[(Term, Term)]) -> String {
        let mut wanted: BTreeSet<Term> = BTreeSet::new();
        let mut todo: Vec<Term> = given.iter().chain(goals).flat_map(|&(a, b)| [a, b]).collect();
        while let Some(term) = todo.pop() {
            if wanted.insert(term) {
                todo.extend(&self.at(term).arguments);
            }
        }
        let mut out = PRELUDE.to_owned();
        let mut functions: BTreeMap<&str, String> = BTreeMap::new();
        for &term in &wanted {
            let node = self.at(term);
            match &node.head {
                Head::Variable(name) => {
                    writeln!(out, "(declare-const |{name}| {})", node.sort.said()).expect("written");
                }
                Head::Function(name) => {
                    let sorts: Vec<String> = node.arguments.iter().map(|&a| self.sort(a).said()).collect();
                    functions.insert(
                        name,
                        format!("(declare-fun |{name}| ({}) {})", sorts.join(" "), node.sort.said()),
                    );
                }
                _ => (),
            }
        }
        functions.values().for_each(|said| out.push_str(&format!("{said}\n")));
        for &term in &wanted {
            writeln!(out, "(define-fun t{} () {} {})", term.0, self.sort(term).said(), self.said(term))
                .expect("written");
        }
        for (a, b) in given {
            writeln!(out, "(assert (= t{} t{}))", a.0, b.0).expect("written");
        }
        let goals: Vec<String> = goals.iter().map(|(a, b)| format!("(= t{} t{})", a.0, b.0)).collect();
        writeln!(out, "(assert (not (and true {})))\n(check-sat)", goals.join(" ")).expect("written");
        out
    }
}
