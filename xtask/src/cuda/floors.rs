//! Counts machine code: what a trip through each loop of a kernel asks of every pipe, and the least time of an operation that follows.
//!
//! `floors.toml` beside `kernels.toml` declares how often warps go through the loops; `floors.md` is written from it and the
//! shipped program. The counts are of instructions that a warp issues, whether or not a predicate lets its lanes act.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::compile::Toolchain;
use super::manifest::{matches, sha256};
use super::sass::{Function, Instruction, parse};

/// What executes an instruction. `Other` takes a slot of a scheduler and is held against no pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pipe {
    Alu,
    Imad,
    Lsu,
    Tensor,
    Uniform,
    Xu,
    Other,
}

/// The pipe of an instruction; `None` for one that nobody has assigned.
fn pipe(i: &Instruction) -> Option<Pipe> {
    Some(match i.root.as_str() {
        "LOP3" | "SHF" | "IADD3" | "ISETP" | "LEA" | "PRMT" | "SEL" | "VIADD" | "VIMNMX" | "VIADDMNMX"
        | "IMNMX" | "PLOP3" | "MOV" | "P2R" | "R2P" => Pipe::Alu,
        "IMAD" | "IDP" => Pipe::Imad,
        "LDS" | "STS" | "ATOMS" | "LDG" | "STG" | "SHFL" => Pipe::Lsu,
        "BMMA" => Pipe::Tensor,
        "ULOP3" | "USHF" | "UIADD3" | "UMOV" | "ULEA" | "UIMAD" | "UISETP" => Pipe::Uniform,
        "MUFU" | "I2F" | "F2I" => Pipe::Xu,
        "BRA" | "BSSY" | "BSYNC" | "CALL" | "RET" | "EXIT" | "WARPSYNC" | "ENDCOLLECTIVE" | "YIELD"
        | "BAR" | "NOP" | "CS2R" | "S2R" | "S2UR" | "R2UR" | "LDC" | "ULDC" | "VOTE" | "REDUX" | "HFMA2" => {
            Pipe::Other
        }
        _ => return None,
    })
}

/// How many warps' instructions a multiprocessor takes in a clock.
struct Rate {
    name: &'static str,
    pipe: Option<Pipe>,
    /// For sm_89 and sm_90; without one the pipe is counted and limits nothing.
    rates: [Option<f64>; 2],
    holds: &'static str,
    source: &'static str,
}

const ARCHITECTURES: [&str; 2] = ["sm_89", "sm_90"];

/// The first is the schedulers' own; the order is that of the table's columns.
const RATES: [Rate; 7] = [
    Rate {
        name: "issue",
        pipe: None,
        rates: [Some(4.0); 2],
        holds: "every instruction",
        source: "four schedulers, an instruction a clock each: NVIDIA's architecture papers",
    },
    Rate {
        name: "ALU",
        pipe: Some(Pipe::Alu),
        rates: [Some(2.0); 2],
        holds: "logic, shifts, sums, comparisons, selections, moves, permutations of bytes",
        source: "64 lanes: guide; pipe: forum; PLOP3, P2R, R2P assumed",
    },
    Rate {
        name: "IMAD",
        pipe: Some(Pipe::Imad),
        rates: [Some(2.0); 2],
        holds: "IMAD in all forms, IDP",
        source: "64 lanes: guide, GH200; pipe: forum; moves and wide products assumed",
    },
    Rate {
        name: "LSU",
        pipe: Some(Pipe::Lsu),
        rates: [Some(1.0); 2],
        holds: "LDS, STS, ATOMS, LDG, STG, SHFL",
        source: "32 banks of four bytes, shuffles of 32 lanes: guide; global memory assumed",
    },
    Rate {
        name: "tensor",
        pipe: Some(Pipe::Tensor),
        rates: [None, Some(0.54)],
        holds: "BMMA",
        source: "GH200, perhaps not the most that is possible; none known for 8.9",
    },
    Rate {
        name: "uniform",
        pipe: Some(Pipe::Uniform),
        rates: [Some(4.0); 2],
        holds: "ULOP3, USHF, UIADD3, UMOV, ULEA, UIMAD, UISETP",
        source: "assumed: as fast as they issue",
    },
    Rate {
        name: "XU",
        pipe: Some(Pipe::Xu),
        rates: [Some(0.5); 2],
        holds: "MUFU, I2F, F2I",
        source: "16 lanes: guide",
    },
];

/// Instructions by column of `RATES`; the first is all of them.
type Counts = [f64; RATES.len()];

fn counted(i: &Instruction) -> Result<Counts, String> {
    let pipe =
        pipe(i).ok_or_else(|| format!("no pipe is assigned to {}: '{}' at {:#x}", i.root, i.text, i.at))?;
    Ok(std::array::from_fn(|n| if RATES[n].pipe.is_none_or(|own| own == pipe) { 1.0 } else { 0.0 }))
}

fn add(sum: &mut Counts, counts: &Counts, times: f64) {
    for (sum, count) in sum.iter_mut().zip(counts) {
        *sum += times * count;
    }
}

/// Clocks of a multiprocessor, and the column that takes the longest.
fn clocks(counts: &Counts, architecture: usize) -> (f64, usize) {
    let each =
        RATES.iter().zip(counts).map(|(rate, count)| rate.rates[architecture].map_or(0.0, |r| count / r));
    each.enumerate().fold((0.0, 0), |most, (n, clocks)| if clocks > most.0 { (clocks, n) } else { most })
}

/// A stretch of code without jumps into it or out of it.
struct Block {
    code: Vec<usize>,
    next: Vec<usize>,
    /// Whether the kernel ends behind it.
    ends: bool,
}

/// The blocks that control reaches, each behind those that all paths to it lead through. A call of a routine without jumps counts
/// as the routine's own instructions.
fn blocks(function: &Function) -> Result<Vec<Block>, String> {
    let code = function.code.as_slice();
    let at: BTreeMap<u64, usize> = code.iter().enumerate().map(|(n, i)| (i.at, n)).collect();
    let place = |i: &Instruction| {
        let target = i.target().and_then(|to| at.get(&to)).copied();
        target.ok_or_else(|| format!("'{}' at {:#x} goes to an unknown place", i.text, i.at))
    };
    let jumps =
        |i: &Instruction| matches!(i.root.as_str(), "BRA" | "CALL" | "RET" | "EXIT" | "BSYNC" | "WARPSYNC");
    // Where the routine ends that a call enters, unless the call is a jump.
    let routine = |i: &Instruction| -> Result<Option<(usize, usize)>, String> {
        let from = place(i)?;
        let ends = |i: &Instruction| matches!(i.root.as_str(), "BRA" | "CALL" | "RET" | "EXIT");
        let to = (from..code.len()).find(|n| ends(&code[*n]));
        Ok(to.filter(|to| code[*to].root == "RET").map(|to| (from, to)))
    };
    let mut joins: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut starts = BTreeSet::from([0]);
    for (n, i) in code.iter().enumerate() {
        if jumps(i) {
            starts.insert(n + 1);
        }
        match i.root.as_str() {
            "BSSY" => joins.entry(&i.operands[0].text).or_default().push(place(i)?),
            "BRA" | "CALL" => _ = starts.insert(place(i)?),
            "WARPSYNC" if i.has("COLLECTIVE") => _ = starts.insert(place(i)?),
            _ => {}
        }
    }
    starts.extend(joins.values().flatten());
    let starts: Vec<usize> = starts.into_iter().filter(|n| *n < code.len()).collect();
    let mut all = Vec::new();
    for (n, from) in starts.iter().enumerate() {
        let to = starts.get(n + 1).copied().unwrap_or(code.len());
        let mut own: Vec<usize> = (*from..to).collect();
        let (mut next, last) = (Vec::new(), &code[to - 1]);
        let guarded = last.text.starts_with('@');
        let mut goes_on = true;
        match last.root.as_str() {
            "BRA" => {
                next.push(place(last)?);
                let decided = last.operands.iter().any(|o| !o.value.is_empty());
                goes_on = guarded || decided || last.has("DIV") || last.has("CONV");
            }
            "CALL" => match routine(last)? {
                Some((from, end)) => {
                    let behind = code.get(to).map(|i| i.at);
                    if !own.iter().any(|n| code[*n].root != "CALL" && code[*n].target() == behind) {
                        return Err(format!("the call at {:#x} does not return behind itself", last.at));
                    }
                    own.extend(from..=end);
                }
                None => {
                    next.push(place(last)?);
                    goes_on = guarded;
                }
            },
            "WARPSYNC" if last.has("COLLECTIVE") => next.push(place(last)?),
            // Threads that meet go on where the barrier says, which is the next instruction if that is one of its places.
            "BSYNC" => {
                let joins = joins.get(last.operands[0].text.as_str()).map_or(&[][..], Vec::as_slice);
                if !joins.contains(&to) {
                    next.extend(joins);
                }
            }
            "EXIT" | "RET" => goes_on = guarded,
            _ => {}
        }
        let ends = last.root == "EXIT" && !guarded;
        if goes_on && to < code.len() {
            next.push(to);
        }
        let next = next.iter().filter_map(|to| starts.binary_search(to).ok()).collect();
        all.push(Block { code: own, next, ends });
    }
    Ok(ordered(all))
}

/// The blocks that the first one reaches, in reverse postorder.
fn ordered(mut blocks: Vec<Block>) -> Vec<Block> {
    let (mut order, mut seen, mut path) = (Vec::new(), BTreeSet::from([0]), vec![(0, 0)]);
    while let Some((block, way)) = path.last_mut() {
        let to = blocks[*block].next.get(*way).copied();
        *way += 1;
        match to {
            Some(to) if seen.insert(to) => path.push((to, 0)),
            Some(_) => {}
            None => {
                order.push(*block);
                path.pop();
            }
        }
    }
    order.reverse();
    let place: BTreeMap<usize, usize> = order.iter().enumerate().map(|(new, old)| (*old, new)).collect();
    let mut take =
        |old: &usize| std::mem::replace(&mut blocks[*old], Block { code: vec![], next: vec![], ends: false });
    let mut all: Vec<Block> = order.iter().map(&mut take).collect();
    for block in &mut all {
        block.next = block.next.iter().map(|old| place[old]).collect();
    }
    all
}

/// A loop: its own blocks without those of the loops inside it, and whether each runs on every trip.
#[derive(Debug)]
struct Loop {
    /// The loop around it, by its number in order.
    inside: Option<usize>,
    own: Vec<(usize, bool)>,
}

/// The loops of a kernel by their places in the code, and last what is in none.
fn loops(blocks: &[Block]) -> Result<Vec<Loop>, String> {
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); blocks.len()];
    for (n, block) in blocks.iter().enumerate() {
        block.next.iter().for_each(|to| before[*to].push(n));
    }
    // The nearest block that all paths to a block lead through.
    let mut nearest: Vec<Option<usize>> = vec![None; blocks.len()];
    nearest[0] = Some(0);
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for n in 1..blocks.len() {
            let mut new: Option<usize> = None;
            for from in before[n].iter().filter(|from| nearest[**from].is_some()) {
                let (mut a, mut b) = (*from, new.unwrap_or(*from));
                while a != b {
                    let later = if a > b { &mut a } else { &mut b };
                    *later = nearest[*later].unwrap_or(0);
                }
                new = Some(a);
            }
            if nearest[n] != new {
                nearest[n] = new;
                changed = true;
            }
        }
    }
    let leads = |from: usize, to: usize| {
        let mut at = to;
        while at > from {
            at = nearest[at].unwrap_or(0);
        }
        at == from
    };
    // By first block: all blocks of the loop, and those that go back.
    let mut found: BTreeMap<usize, (BTreeSet<usize>, Vec<usize>)> = BTreeMap::new();
    for (n, block) in blocks.iter().enumerate() {
        for to in block.next.iter().filter(|to| **to <= n) {
            if !leads(*to, n) {
                return Err(format!("a loop has two entries, one at instruction {}", blocks[*to].code[0]));
            }
            let (all, back) = found.entry(*to).or_insert_with(|| (BTreeSet::from([*to]), Vec::new()));
            back.push(n);
            let mut work = vec![n];
            while let Some(n) = work.pop() {
                if all.insert(n) {
                    work.extend(&before[n]);
                }
            }
        }
    }
    let mut found: Vec<_> =
        found.into_iter().map(|(head, (all, back))| (blocks[head].code[0], all, back)).collect();
    found.sort_by_key(|(begin, ..)| *begin);
    let ends = (0..blocks.len()).filter(|n| blocks[*n].ends).collect();
    found.push((usize::MAX, (0..blocks.len()).collect(), ends));
    let contains = |outer: usize, inner: usize| outer != inner && found[outer].1.is_superset(&found[inner].1);
    let of = |n: usize| {
        let inner: BTreeSet<usize> =
            (0..found.len()).filter(|m| contains(n, *m)).flat_map(|m| found[m].1.clone()).collect();
        let around = (0..found.len() - 1).filter(|m| contains(*m, n));
        let (_, all, back) = &found[n];
        let own = all.difference(&inner).map(|block| (*block, back.iter().all(|end| leads(*block, *end))));
        Loop { inside: around.min_by_key(|m| found[*m].1.len()), own: own.collect() }
    };
    Ok((0..found.len()).map(of).collect())
}

/// `floors.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    /// The fat binary, and the header with the parameter sets.
    code: String,
    header: String,
    sets: Vec<String>,
    card: Card,
    /// Kernels whose trips do not follow from the parameters, and why.
    undeclared: BTreeMap<String, String>,
    /// Names for the formulas of all kernels.
    #[serde(default)]
    with: BTreeMap<String, Formula>,
    kernel: Vec<Kernel>,
}

/// The card that was measured.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Card {
    name: String,
    architecture: String,
    multiprocessors: f64,
    ghz: f64,
}

/// A kernel of every set, or of none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kernel {
    name: String,
    /// Names for its formulas, before those of all.
    #[serde(default)]
    with: BTreeMap<String, Formula>,
    /// The code outside of loops, and the loops by their places in the code.
    straight: Trips,
    #[serde(default)]
    loops: Vec<Trips>,
    /// Nanoseconds of an operation on the card, by set.
    #[serde(default)]
    measured: BTreeMap<String, f64>,
}

/// One formula for all sets, or a number for each.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Formula {
    One(String),
    Each(Vec<f64>),
}

/// How often the warps of an operation go through a loop, all together.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trips {
    trips: String,
    /// `trips` are instructions of this name, however many of them the compiler put into one trip.
    per: Option<String>,
    /// Guarded parts with an instruction of this name run too, on the share of all trips that `share` gives, or on all.
    also: Option<String>,
    share: Option<String>,
    /// So many loops behind one another, of which `i` is the number.
    repeat: Option<String>,
    /// The sets that have the loop; otherwise all.
    sets: Option<Vec<usize>>,
}

/// Values of names in formulas.
struct Names<'a> {
    set: usize,
    parameters: &'a BTreeMap<String, f64>,
    with: [&'a BTreeMap<String, Formula>; 2],
    i: f64,
    /// Names that stand for names, so that a circle ends.
    depth: usize,
}

impl Names<'_> {
    fn value(&self, formula: &str) -> Result<f64, String> {
        let mut rest = formula;
        let value = self.sum(&mut rest).map_err(|why| format!("'{formula}': {why}"))?;
        if rest.trim().is_empty() && value.is_finite() {
            return Ok(value);
        }
        Err(format!("'{formula}': not a number, or more than one"))
    }

    fn sum(&self, rest: &mut &str) -> Result<f64, String> {
        let mut sum = self.product(rest)?;
        loop {
            match taken(rest, "+-") {
                Some('+') => sum += self.product(rest)?,
                Some(_) => sum -= self.product(rest)?,
                None => return Ok(sum),
            }
        }
    }

    fn product(&self, rest: &mut &str) -> Result<f64, String> {
        let mut product = self.factor(rest)?;
        loop {
            match taken(rest, "*/") {
                Some('*') => product *= self.factor(rest)?,
                Some(_) => product /= self.factor(rest)?,
                None => return Ok(product),
            }
        }
    }

    fn factor(&self, rest: &mut &str) -> Result<f64, String> {
        let mut arguments = Vec::new();
        let text = rest.trim_start();
        let (word, behind) =
            text.split_at(text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len()));
        *rest = behind;
        if taken(rest, "(").is_some() {
            loop {
                arguments.push(self.sum(rest)?);
                match taken(rest, ",)") {
                    Some(',') => {}
                    Some(_) => break,
                    None => return Err("a bracket is not closed".into()),
                }
            }
        }
        match (word, arguments.as_slice()) {
            ("", [value]) => Ok(*value),
            ("ceil", [value]) => Ok(value.ceil()),
            ("floor", [value]) => Ok(value.floor()),
            ("odd", [value]) => Ok(value + 1.0 - value % 2.0),
            ("min", [a, b]) => Ok(a.min(*b)),
            ("max", [a, b]) => Ok(a.max(*b)),
            ("i", []) => Ok(self.i),
            (word, []) => self.name(word),
            _ => Err(format!("unknown function {word}")),
        }
    }

    fn name(&self, word: &str) -> Result<f64, String> {
        if let Ok(number) = word.parse() {
            return Ok(number);
        }
        match (self.with.iter().find_map(|names| names.get(word)), self.parameters.get(word)) {
            (Some(Formula::Each(values)), _) => values
                .get(self.set)
                .copied()
                .ok_or_else(|| format!("{word} has no value for set {}", self.set)),
            (Some(Formula::One(_)), _) if self.depth > 9 => Err(format!("{word} needs itself")),
            (Some(Formula::One(formula)), _) => Names { depth: self.depth + 1, ..*self }.value(formula),
            (None, Some(value)) => Ok(*value),
            (None, None) => Err(format!("unknown name '{word}'")),
        }
    }
}

/// Takes one of these characters off the front.
fn taken(rest: &mut &str, any: &str) -> Option<char> {
    let text = rest.trim_start();
    let first = text.chars().next().filter(|c| any.contains(*c))?;
    *rest = &text[1..];
    Some(first)
}

/// The numbers of each parameter set in the kernels' header.
fn parameters(header: &str) -> Vec<BTreeMap<String, f64>> {
    let sets = header.split("struct Set").skip(1);
    sets.map(|set| {
        let lines = set.lines().filter_map(|line| line.trim().strip_prefix("static constexpr int "));
        let pairs = lines.filter_map(|line| line.trim_end_matches(';').split_once(" = "));
        pairs.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
    })
    .collect()
}

/// A loop as counted.
#[derive(Debug, Default)]
struct Counted {
    inside: Option<usize>,
    /// On every trip, and if all guarded blocks run.
    least: Counts,
    most: Counts,
    /// For each guarded block: the names in it, and its counts.
    guarded: Vec<(BTreeSet<String>, Counts)>,
    /// Instructions by name.
    names: BTreeMap<String, f64>,
}

/// A kernel's loops in the order of their places, and last the code outside of all.
fn count(function: &Function) -> Result<Vec<Counted>, String> {
    let each: Vec<Counts> = function.code.iter().map(counted).collect::<Result<_, _>>()?;
    let blocks = blocks(function)?;
    let mut all = Vec::new();
    for one in loops(&blocks)? {
        let mut sums = Counted { inside: one.inside, ..Counted::default() };
        for (block, always) in one.own {
            let code = &blocks[block].code;
            let mut sum = Counts::default();
            code.iter().for_each(|n| add(&mut sum, &each[*n], 1.0));
            let names = code.iter().map(|n| function.code[*n].root.clone());
            names.clone().for_each(|name| *sums.names.entry(name).or_default() += 1.0);
            add(&mut sums.most, &sum, 1.0);
            if always {
                add(&mut sums.least, &sum, 1.0);
            } else {
                sums.guarded.push((names.collect(), sum));
            }
        }
        all.push(sums);
    }
    Ok(all)
}

/// What an operation asks for: at least, and if all guarded parts of loops run.
fn operation(kernel: &Kernel, names: &Names<'_>, loops: &[Counted]) -> Result<[Counts; 2], String> {
    let mut trips: Vec<(&Trips, f64)> = Vec::new();
    for one in &kernel.loops {
        if one.sets.as_ref().is_some_and(|sets| !sets.contains(&names.set)) {
            continue;
        }
        let Some(repeat) = &one.repeat else {
            trips.push((one, names.value(&one.trips)?));
            continue;
        };
        let mut i = 0.0;
        while i < names.value(repeat)? {
            trips.push((one, Names { i, ..*names }.value(&one.trips)?));
            i += 1.0;
        }
    }
    if trips.len() + 1 != loops.len() {
        return Err(format!("it has {} loops, floors.toml declares {}", loops.len() - 1, trips.len()));
    }
    trips.push((&kernel.straight, names.value(&kernel.straight.trips)?));
    let mut sums = [Counts::default(); 2];
    for (n, ((declared, trips), counted)) in trips.into_iter().zip(loops).enumerate() {
        let has = |name: &String| {
            let number = counted.names.get(name).copied();
            number.ok_or_else(|| format!("loop {} has no {name}, but floors.toml names it", n + 1))
        };
        let trips = declared.per.as_ref().map_or(Ok(trips), |per| has(per).map(|each| trips / each))?;
        let mut least = counted.least;
        if let Some(also) = &declared.also {
            has(also)?;
            let share = declared.share.as_ref().map_or(Ok(1.0), |share| names.value(share))?;
            for (_, counts) in counted.guarded.iter().filter(|(names, _)| names.contains(also)) {
                add(&mut least, counts, share);
            }
        }
        add(&mut sums[0], &least, trips);
        add(&mut sums[1], &counted.most, trips);
    }
    Ok(sums)
}

/// The files beside `kernels.toml`.
const DECLARED: &str = "floors.toml";
const TABLE: &str = "floors.md";

/// Loops with fewer instructions are counted, and not listed.
const LISTED: f64 = 40.0;

fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn declared(folder: &Path) -> Result<Declared, String> {
    let path = folder.join(DECLARED);
    toml::from_str(&text(&path)?).map_err(|e| format!("{}: {e}", path.display()))
}

/// The line of the table that names a file that it was made from.
fn mark(folder: &Path, file: &str) -> Result<String, String> {
    let path = folder.join(file);
    let bytes = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(format!("- `{file}`, SHA-256 `{}`", sha256(&bytes)))
}

/// How the table in a folder differs from what it was made from, as far as that shows without a disassembler.
pub(super) fn stale(folder: &Path) -> Result<Vec<String>, String> {
    if !folder.join(DECLARED).exists() {
        return Ok(Vec::new());
    }
    let (table, declared) = (text(&folder.join(TABLE))?, declared(folder)?);
    let mut why = Vec::new();
    for file in [&declared.code, DECLARED, &declared.header] {
        if !table.lines().any(|line| Ok(line) == mark(folder, file).as_deref()) {
            why.push(format!("{TABLE} was not counted from this {file}: run `cargo xtask cuda --floors`"));
        }
    }
    Ok(why)
}

/// Counts the shipped program of a folder that declares floors, and writes the table, or with `check` compares it.
/// Returns how many checks failed.
pub(super) fn renew(toolchain: &Toolchain, folder: &Path, check: bool) -> Result<usize, String> {
    if !folder.join(DECLARED).exists() {
        return Ok(0);
    }
    let declared = declared(folder)?;
    let listing = toolchain.listing(&folder.join(&declared.code)).map_err(|e| e.to_string())?;
    let due = table(folder, &declared, &parse(&listing)?)?;
    let path = folder.join(TABLE);
    if fs::read_to_string(&path).is_ok_and(|found| found == due) {
        println!("{}: as counted", path.display());
        return Ok(0);
    }
    if check {
        println!("FAILED {}: it differs from the counts: run `cargo xtask cuda --floors`", path.display());
        return Ok(1);
    }
    fs::write(&path, due).map_err(|e| format!("{}: {e}", path.display()))?;
    println!("{}: renewed", path.display());
    Ok(0)
}

/// A kernel's name without the number of its set, and that number.
fn family(name: &str) -> (&str, usize) {
    let parts = name.rsplit_once('_').and_then(|(family, set)| Some((family, set.parse().ok()?)));
    parts.unwrap_or((name, 0))
}

/// Operations as counted: by kernel, architecture and set.
type Operations<'a> = BTreeMap<(&'a str, usize, usize), [Counts; 2]>;

fn table(folder: &Path, declared: &Declared, functions: &[Function]) -> Result<String, String> {
    let parameters = parameters(&text(&folder.join(&declared.header))?);
    if parameters.len() != declared.sets.len() {
        return Err(format!(
            "{} has {} sets, {DECLARED} {}",
            declared.header,
            parameters.len(),
            declared.sets.len()
        ));
    }
    let mut operations = Operations::new();
    // Rows of the loops' tables, with the sets that share each.
    let mut rows: [Vec<(String, String, Vec<usize>)>; 2] = Default::default();
    let mut functions: Vec<&Function> = functions.iter().collect();
    functions.sort_by_key(|f| (&f.architecture, family(&f.name)));
    let mut missing: BTreeSet<&str> = declared.undeclared.keys().map(String::as_str).collect();
    missing.extend(declared.kernel.iter().map(|kernel| kernel.name.as_str()));
    for function in functions {
        let wrong = |why: String| format!("{} ({}): {why}", function.name, function.architecture);
        let architecture = ARCHITECTURES.iter().position(|name| *name == function.architecture);
        let architecture = architecture.ok_or_else(|| wrong("no rates for this architecture".into()))?;
        let (family, set) = family(&function.name);
        let loops = count(function).map_err(wrong)?;
        for row in listed(family, &loops, architecture) {
            match rows[architecture].iter_mut().find(|(name, rest, _)| (name, rest) == (&row.0, &row.1)) {
                Some((_, _, sets)) => sets.push(set),
                None => rows[architecture].push((row.0, row.1, vec![set])),
            }
        }
        if let Some((pattern, _)) =
            declared.undeclared.iter().find(|(pattern, _)| matches(pattern, &function.name))
        {
            missing.remove(pattern.as_str());
            continue;
        }
        let kernel = declared.kernel.iter().find(|kernel| kernel.name == family);
        let kernel = kernel.ok_or_else(|| wrong(format!("{DECLARED} does not name it")))?;
        missing.remove(kernel.name.as_str());
        let own = parameters.get(set).ok_or_else(|| wrong("no such set".into()))?;
        let names = Names { set, parameters: own, with: [&kernel.with, &declared.with], i: 0.0, depth: 0 };
        let sums = operation(kernel, &names, &loops).map_err(wrong)?;
        operations.insert((&kernel.name, architecture, set), sums);
    }
    if let Some(name) = missing.first() {
        return Err(format!("{DECLARED} names {name}, which {} does not have", declared.code));
    }
    render(folder, declared, &operations, &rows)
}

/// Two numbers with a dash between them, or one if they are the same.
fn range([least, most]: [f64; 2]) -> String {
    if least == most { format!("{most}") } else { format!("{least}–{most}") }
}

/// The rows of a kernel's longer loops: which one, and the rest of the line.
fn listed(family: &str, loops: &[Counted], architecture: usize) -> Vec<(String, String)> {
    let straight = loops.len() - 1;
    let long = loops.iter().enumerate().filter(|(n, one)| *n != straight && one.most[0] >= LISTED);
    long.map(|(n, one)| {
        let inside = one.inside.map_or(String::new(), |outer| format!(" in {}", outer + 1));
        let pipes: String = one.most[1..].iter().map(|count| format!("{count}|")).collect();
        let other = one.most[0] - one.most[1..].iter().sum::<f64>();
        let times = [&one.least, &one.most].map(|counts| clocks(counts, architecture));
        let exact = times.map(|(clocks, _)| (clocks * 100.0).round() / 100.0);
        let issued = range([one.least[0], one.most[0]]);
        (
            format!("`{}` {}{inside}", short(family), n + 1),
            format!("{issued}|{pipes}{other}|{}|{}|", range(exact), RATES[times[1].1].name),
        )
    })
    .collect()
}

fn short(name: &str) -> &str {
    name.trim_start_matches("mayo_")
}

const OPENING: &str = "\
# Floors counted from machine code

Written by `cargo xtask cuda --floors` from these files beside it:

MADE_FROM

**Counted** are the instructions that warps issue, by the pipe that executes them. One whose predicate stops all lanes counts in full, at its pipe
too, which is assumed. The counts of a loop leave out the loops inside it. Blocks that every trip goes through are its least. All blocks, each once
a trip, are its most. A call of a routine without jumps counts as the routine's instructions. Where `floors.toml` gives a loop no trips, it counts
as nothing.

**Limits.** Each pipe stands alone, as if all else and all waiting were hidden behind it. At a pipe of rate r, an instruction takes 1/r clocks of
the multiprocessor. No card can be faster than the least, as far as the rates hold.

**Not counted** are wavefronts of shared memory, conflicts of banks, sectors, caches, bandwidth, latency, barriers and launches. An access to
memory is one instruction. It takes two or four times as long with 8 or 16 bytes to each lane at different places, and longer with a conflict.

## Rates

Warp instructions a clock of a multiprocessor:

";

const SOURCES: &str = "
Branches, barriers, calls, CS2R, S2R, S2UR, R2UR, LDC, ULDC, VOTE, REDUX, HFMA2 and NOP take a slot of issue alone.

- guide: the tables of the CUDA C++ Programming Guide, as read for compute capabilities 7.x and 8.x. That 8.9 and 9.0 have the same is assumed.
- forum: NVIDIA's engineers on the pipes of
  [Volta](https://forums.developer.nvidia.com/t/int-32-and-fp64-can-be-used-concurrently-in-the-volta-architecture/108729/4) and of
  [Ampere and Hopper](https://forums.developer.nvidia.com/t/separate-cuda-core-pipeline-for-fp16-and-fp32/302018/7).
- GH200: measured by others, in [PowerCapping](https://github.com/mredenti/PowerCapping).
";

/// One cell for each kernel that has trips, and each set.
fn grid(
    declared: &Declared,
    operations: &Operations<'_>,
    architecture: usize,
    cell: impl Fn(&[Counts; 2]) -> String,
) -> String {
    let heads: String = declared.sets.iter().map(|set| format!(" {set} |")).collect();
    let mut out = format!("| kernel |{heads}\n|---|{}\n", "---|".repeat(declared.sets.len()));
    for kernel in &declared.kernel {
        let sums = |set| operations.get(&(kernel.name.as_str(), architecture, set));
        let cells =
            (0..declared.sets.len()).map(|set| format!(" {} |", sums(set).map_or("-".to_owned(), &cell)));
        out += &format!("| `{}` |{}\n", short(&kernel.name), cells.collect::<String>());
    }
    out
}

/// The measured kernels beside their floors.
fn measured(declared: &Declared, operations: &Operations<'_>) -> Result<String, String> {
    let card = &declared.card;
    let home = ARCHITECTURES.iter().position(|name| *name == card.architecture);
    let home = home.ok_or_else(|| format!("no rates for {}", card.architecture))?;
    let mut out = format!(
        "Nanoseconds of an operation on the {} ({} multiprocessors, {} GHz), and the floor's share of the measured time:\n\n\
         | kernel | set | floor, least to most | limit | measured | share |\n|---|---|---:|---|---:|---:|\n",
        card.name, card.multiprocessors, card.ghz
    );
    for kernel in &declared.kernel {
        for set in declared.sets.iter().filter(|set| kernel.measured.contains_key(*set)) {
            let at = declared.sets.iter().position(|name| name == set);
            let sums = at.and_then(|at| operations.get(&(kernel.name.as_str(), home, at)));
            let sums = sums.ok_or_else(|| format!("{} has no {set}", kernel.name))?;
            let time = |counts| clocks(counts, home).0 / card.multiprocessors / card.ghz;
            let (floor, time_taken) = ([time(&sums[0]), time(&sums[1])], kernel.measured[set]);
            out += &format!(
                "| `{}` | {set} | {} | {} | {time_taken} | {} % |\n",
                short(&kernel.name),
                range(floor.map(f64::round)),
                RATES[clocks(&sums[0], home).1].name,
                range(floor.map(|time| (100.0 * time / time_taken).round()))
            );
        }
        if let Some(set) = kernel.measured.keys().find(|set| !declared.sets.contains(*set)) {
            return Err(format!("{} was measured for an unknown set {set}", kernel.name));
        }
    }
    Ok(out)
}

fn render(
    folder: &Path,
    declared: &Declared,
    operations: &Operations<'_>,
    rows: &[Vec<(String, String, Vec<usize>)>; 2],
) -> Result<String, String> {
    let made_from = [declared.code.as_str(), DECLARED, &declared.header].map(|file| mark(folder, file));
    let made_from = made_from.into_iter().collect::<Result<Vec<_>, _>>()?.join("\n");
    let mut out = OPENING.replace("MADE_FROM", &made_from);
    out += "| pipe | sm_89 | sm_90 | holds | source |\n|---|---:|---:|---|---|\n";
    for rate in &RATES {
        let [old, new] = rate.rates.map(|rate| rate.map_or("-".to_owned(), |rate| rate.to_string()));
        out += &format!("| {} | {old} | {new} | {} | {} |\n", rate.name, rate.holds, rate.source);
    }
    out += SOURCES;
    out += &format!("\n## Measured\n\n{}", measured(declared, operations)?);
    for (n, name) in ARCHITECTURES.iter().enumerate() {
        let cell = |sums: &[Counts; 2]| {
            let [(least, limit), (most, _)] = [clocks(&sums[0], n), clocks(&sums[1], n)];
            format!("{} {}", range([least.round(), most.round()]), RATES[limit].name)
        };
        out += &format!(
            "\n## An operation on {name}\n\nClocks of a multiprocessor, least to most, and what limits the least:\n\n{}",
            grid(declared, operations, n, cell)
        );
    }
    out += "\nWithout a floor, since the trips do not follow from the parameters or do not matter:\n\n";
    for (pattern, why) in &declared.undeclared {
        out += &format!("- `{pattern}`: {why}\n");
    }
    let heads: String = RATES[1..].iter().map(|rate| format!(" {} |", rate.name)).collect();
    for (n, name) in ARCHITECTURES.iter().enumerate() {
        out += &format!(
            "\n## Loops on {name}\n\n\
             One trip of one warp. A loop has the number of its place in the code; sets are numbered from 0. Pipes, clocks and limit are those of\n\
             the most. Loops of fewer than {LISTED} instructions are left out.\n\n\
             | loop | sets | issued |{heads} other | clocks | limit |\n|---|---|---:|{}---:|---:|---|\n",
            "---:|".repeat(RATES.len() - 1)
        );
        for (name, rest, sets) in &rows[n] {
            out += &format!("|{name}|{}|{rest}\n", sets.iter().map(ToString::to_string).collect::<String>());
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code at every 16 bytes from 0.
    fn listing(name: &str, code: &[&str]) -> String {
        let lines =
            code.iter().enumerate().map(|(n, text)| format!("  /*{:04x}*/  {text} ;  /* 0x0 */\n", 16 * n));
        format!("code for sm_90\nFunction : {name}\n{}", lines.collect::<String>())
    }

    /// A loop with a guarded block, a loop inside it, and a call of a routine.
    const PLANTED: [&str; 16] = [
        "MOV R0, c[0x0][0x210]",
        "LOP3.LUT R1, R1, R2, RZ, 0xc0, !PT", // 0x10: the outer loop
        "@P1 BRA 0x50",
        "IMAD R3, R3, R4, RZ",
        "STS [R3], R4",
        "LDS R5, [R3]", // 0x50: the inner loop
        "IADD3 R5, R5, 0x1, RZ",
        "@P0 BRA 0x50",
        "MOV R6, 0xa0",
        "CALL.REL.NOINC 0xc0",
        "@P2 BRA 0x10", // 0xa0
        "EXIT",
        "SHF.R.U32.HI R7, RZ, 0x1, R7", // 0xc0: the routine
        "BMMA.168256.AND.POPC R8, R8.ROW, R8.COL, R8",
        "RET.REL.NODEC R6 0x0",
        "BRA 0xf0",
    ];

    fn planted(name: &str, code: &[&str]) -> Result<Vec<Counted>, String> {
        count(&parse(&listing(name, code)).unwrap()[0])
    }

    #[test]
    fn a_planted_loop_is_counted() {
        let loops = planted("p_0", &PLANTED).unwrap();
        let [outer, inner, straight] = loops.as_slice() else { panic!("{loops:?}") };
        //                        issue ALU IMAD LSU tensor uniform XU
        assert_eq!(inner.least, [3.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
        assert_eq!((inner.most, inner.inside, outer.inside), (inner.least, Some(0), None));
        assert_eq!(outer.least, [8.0, 3.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
        assert_eq!(outer.most, [10.0, 3.0, 1.0, 1.0, 1.0, 0.0, 0.0]);
        assert_eq!(straight.least, [2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(clocks(&outer.most, 1), (10.0 / 4.0, 0));
        assert_eq!(clocks(&[10.0, 3.0, 0.0, 3.0, 1.0, 0.0, 0.0], 1), (3.0, 3));
    }

    #[test]
    fn an_unknown_instruction_and_odd_control_are_refused() {
        let mut code = PLANTED;
        code[6] = "FROB.X R5, R5";
        assert!(planted("p_0", &code).unwrap_err().contains("FROB"));
        code = PLANTED;
        code[0] = "@P3 BRA 0x60";
        assert!(planted("p_0", &code).unwrap_err().contains("two entries"));
        code[0] = "BRA 0x7770";
        assert!(planted("p_0", &code).unwrap_err().contains("unknown place"));
        code = PLANTED;
        code[8] = "MOV R6, 0xb0";
        assert!(planted("p_0", &code).unwrap_err().contains("does not return"));
    }

    /// A folder with a declaration of the planted kernel, and the table made there.
    fn made(dir: &Path, floors: &str) -> Result<String, String> {
        fs::write(dir.join("a.fatbin"), "code").unwrap();
        fs::write(dir.join("a.cuh"), "struct Set0 {\n    static constexpr int N = 5;\n};\n").unwrap();
        fs::write(dir.join(DECLARED), floors).unwrap();
        table(dir, &declared(dir)?, &parse(&listing("p_0", &PLANTED)).unwrap())
    }

    const FLOORS: &str = "code = 'a.fatbin'\nheader = 'a.cuh'\nsets = ['S']\nundeclared = {}\n\
        [card]\nname = 'C'\narchitecture = 'sm_90'\nmultiprocessors = 2\nghz = 0.5\n\
        [with]\nTWICE = '2 * N'\n\
        [[kernel]]\nname = 'p'\nstraight = { trips = '1' }\nmeasured = { S = 100 }\n\
        loops = [{ trips = 'N', also = 'STS' }, { trips = 'TWICE', per = 'LDS' }]\n";

    #[test]
    fn declared_trips_make_a_floor() {
        let dir = tempfile::tempdir().unwrap();
        let text = made(dir.path(), FLOORS).unwrap();
        // 5 * 10 + 10 * 3 + 2 instructions, four a clock, on two multiprocessors at half a gigahertz.
        assert!(text.contains("| `p` | 21 issue |"), "{text}");
        assert!(text.contains("| `p` | S | 21 | issue | 100 | 21 % |"), "{text}");
        for (right, wrong, why) in [
            (", { trips = 'TWICE', per = 'LDS' }", "", "it has 2 loops, floors.toml declares 1"),
            ("'TWICE', per", "'TWICE', sets = [1], per", "it has 2 loops"),
            ("per = 'LDS'", "per = 'LDG'", "no LDG"),
            ("2 * N", "2 * M", "unknown name 'M'"),
            ("2 * N", "2 * TWICE", "needs itself"),
            ("'p'", "'q'", "does not name it"),
            ("undeclared = {}", "undeclared = { q = 'x' }", "names q"),
            ("S = 100", "T = 100", "unknown set T"),
        ] {
            let found = made(dir.path(), &FLOORS.replace(right, wrong)).unwrap_err();
            assert!(found.contains(why), "{wrong}: {found}");
        }
    }

    #[test]
    fn a_changed_binary_or_declaration_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(stale(dir.path()).unwrap(), Vec::<String>::new());
        fs::write(dir.path().join(TABLE), made(dir.path(), FLOORS).unwrap()).unwrap();
        assert_eq!(stale(dir.path()).unwrap(), Vec::<String>::new());
        fs::write(dir.path().join("a.fatbin"), "other").unwrap();
        assert!(matches!(&stale(dir.path()).unwrap()[..], [one] if one.contains("a.fatbin")));
        fs::write(dir.path().join(DECLARED), FLOORS.replace("100", "99")).unwrap();
        assert_eq!(stale(dir.path()).unwrap().len(), 2);
    }

    #[test]
    fn formulas() {
        let parameters = BTreeMap::from([("N".to_owned(), 7.0)]);
        let with = BTreeMap::from([("E".to_owned(), Formula::Each(vec![1.0, 2.0]))]);
        let names =
            Names { set: 1, parameters: &parameters, with: [&with, &BTreeMap::new()], i: 3.0, depth: 0 };
        assert_eq!(names.value("(N + 1) * E / 4 - i").unwrap(), 1.0);
        assert_eq!(
            names.value("ceil(N / 2) + floor(N / 2) + odd(6) + odd(7) + min(N, 2) + max(N, 2)").unwrap(),
            30.0
        );
        for wrong in ["", "N N", "f(N)", "min(N", "N / 0", "2 +"] {
            assert!(names.value(wrong).is_err(), "{wrong}");
        }
    }
}
