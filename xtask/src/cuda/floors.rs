//! Counts machine code: what a trip through each loop of a kernel asks of every pipe, and the least time of an operation that follows.
//!
//! `floors.toml` beside `kernels.toml` declares how often warps go through the loops; `floors.md` is written from it and the
//! shipped program. The counts are of instructions that a warp issues, whether or not a predicate lets its lanes act.
#![forbid(unsafe_code)]

mod declared;
mod loops;
mod origins;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::compile::Toolchain;
use super::manifest::{matches, sha256};
use super::sass::{Function, Instruction, parse};
use declared::{Asked, Declared, Kernel, Names, Traffic, Trips, parameters};
use loops::{blocks, loops};
use origins::{Origins, Trip, access};

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
        "ULOP3" | "USHF" | "UIADD3" | "UMOV" | "USEL" | "ULEA" | "UIMAD" | "UISETP" => Pipe::Uniform,
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

/// Where it is in `RATES`.
const LSU: usize = 3;

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
        holds: "LDS, STS, ATOMS, LDG, STG, SHFL, and each further wavefront or four sectors of one",
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
        holds: "ULOP3, USHF, UIADD3, UMOV, USEL, ULEA, UIMAD, UISETP",
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
    /// The places of its accesses to memories.
    accesses: Vec<u64>,
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
            sums.accesses.extend(code.iter().map(|n| &function.code[*n]).filter(|i| access(i)).map(|i| i.at));
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

impl Declared {
    /// The files that the table is made from.
    fn sources(&self) -> impl Iterator<Item = &str> {
        [self.code.as_str(), DECLARED, &self.header].into_iter().chain(self.traffic.as_deref())
    }
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
    for file in declared.sources() {
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
    let code = folder.join(&declared.code);
    let listing = toolchain.listing(&code).map_err(|e| e.to_string())?;
    let functions = parse(&listing)?;
    let origins = match declared.traffic {
        Some(_) => Origins::of(toolchain, &code, &listing, &functions)?,
        None => Origins::default(),
    };
    let due = table(folder, &declared, &functions, &origins)?;
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

fn table(
    folder: &Path,
    declared: &Declared,
    functions: &[Function],
    origins: &Origins,
) -> Result<String, String> {
    let parameters = parameters(&text(&folder.join(&declared.header))?);
    if parameters.len() != declared.sets.len() {
        return Err(format!(
            "{} has {} sets, {DECLARED} {}",
            declared.header,
            parameters.len(),
            declared.sets.len()
        ));
    }
    let traffic = match declared.traffic.as_ref().map(|file| folder.join(file)) {
        Some(path) => toml::from_str(&text(&path)?).map_err(|e| format!("{}: {e}", path.display()))?,
        None => Traffic::default(),
    };
    let mut operations = Operations::new();
    // Rows of the loops' tables, with the sets that share each.
    let mut rows: [Vec<(String, String, Vec<usize>)>; 2] = Default::default();
    let mut functions: Vec<&Function> = functions.iter().collect();
    functions.sort_by_key(|f| (&f.architecture, family(&f.name)));
    let mut missing: BTreeSet<&str> = declared.undeclared.keys().map(String::as_str).collect();
    missing.extend(declared.kernel.iter().map(|kernel| kernel.name.as_str()));
    let mut unexplained: BTreeSet<&str> = declared.unseen.keys().map(String::as_str).collect();
    for function in functions {
        let wrong = |why: String| format!("{} ({}): {why}", function.name, function.architecture);
        let architecture = ARCHITECTURES.iter().position(|name| *name == function.architecture);
        let architecture = architecture.ok_or_else(|| wrong("no rates for this architecture".into()))?;
        let (family, set) = family(&function.name);
        let loops = count(function).map_err(wrong)?;
        let asked = traffic.set.get(&set.to_string()).and_then(|of| of.get(family));
        let trips = origins.asked(function, asked, &loops).map_err(wrong)?;
        let unseen = |n: usize| declared.traffic.is_some() && long(&loops, n) && trips[n].unseen > 0.0;
        if let Some(n) = (0..loops.len()).find(|n| unseen(*n)) {
            let why = declared.unseen.keys().find(|pattern| matches(pattern, &function.name));
            let why = why.ok_or_else(|| {
                wrong(format!(
                    "loop {} has accesses that were never executed: {DECLARED} does not say why",
                    n + 1
                ))
            })?;
            unexplained.remove(why.as_str());
        }
        for row in listed(family, &loops, &trips, architecture) {
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
        let mut sums = operation(kernel, &names, &loops).map_err(wrong)?;
        let longer = asked.map_or(0.0, |asked| asked.longer() / traffic.operations);
        sums.iter_mut().for_each(|counts| counts[LSU] += longer);
        operations.insert((&kernel.name, architecture, set), sums);
    }
    if let Some(name) = missing.first() {
        return Err(format!("{DECLARED} names {name}, which {} does not have", declared.code));
    }
    if let Some(name) = unexplained.first() {
        return Err(format!(
            "{DECLARED} says why accesses of {name} were never executed, but all of them were"
        ));
    }
    render(folder, declared, &traffic, &operations, &rows)
}

/// Two numbers with a dash between them, or one if they are the same.
fn range([least, most]: [f64; 2]) -> String {
    if least == most { format!("{most}") } else { format!("{least}–{most}") }
}

/// Whether this is a loop that is listed, and not the code outside of all.
fn long(loops: &[Counted], n: usize) -> bool {
    n + 1 < loops.len() && loops[n].most[0] >= LISTED
}

/// The rows of a kernel's longer loops: which one, and the rest of the line.
fn listed(family: &str, loops: &[Counted], trips: &[Trip], architecture: usize) -> Vec<(String, String)> {
    let long = loops.iter().enumerate().filter(|(n, _)| long(loops, *n));
    long.map(|(n, one)| {
        let trip = trips[n];
        let mut longest = one.most;
        longest[LSU] += trip.longer();
        let memories = format!("{:.0}|{:.0}|{}", trip.wavefronts, trip.sectors, trip.unseen);
        let inside = one.inside.map_or(String::new(), |outer| format!(" in {}", outer + 1));
        let pipes: String = one.most[1..].iter().map(|count| format!("{count}|")).collect();
        let other = one.most[0] - one.most[1..].iter().sum::<f64>();
        let times = [&one.least, &longest].map(|counts| clocks(counts, architecture));
        let exact = times.map(|(clocks, _)| (clocks * 100.0).round() / 100.0);
        let issued = range([one.least[0], one.most[0]]);
        (
            format!("`{}` {}{inside}", short(family), n + 1),
            format!("{issued}|{pipes}{other}|{memories}|{}|{}|", range(exact), RATES[times[1].1].name),
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

**Memories.** An operation's wavefronts of shared memory and sectors of device memory are counted where the PTX which ships is executed. LSU takes
a clock for each access, and one for each further wavefront or four sectors. A loop's are those of its accesses, each executed once, by the
mean of all executions. Each access of the machine code is known by the instruction of the PTX that it comes from. The assembler names it, in a
translation with line numbers, which is compared with the machine code that ships: all instructions are the same. `unseen` are accesses that were
never executed there, for the reasons below the tables. They count as one instruction each, and the other columns leave them out.

**Not counted** are caches, bandwidth, latency, barriers and launches.

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

/// Operations that take several kernels, and how many a card can do at most of one of each.
fn wholes(declared: &Declared, operations: &Operations<'_>) -> Result<String, String> {
    if declared.whole.is_empty() {
        return Ok(String::new());
    }
    let card = &declared.card;
    let home = ARCHITECTURES.iter().position(|name| *name == card.architecture).unwrap_or(0);
    let heads: String = declared.sets.iter().map(|set| format!(" {set} |")).collect();
    let mut out = format!(
        "\n## Whole\n\nClocks of a multiprocessor of the {} ({}), least to most, where the kernels go one after another:\n\n\
         | operation | kernels |{heads}\n|---|---|{}\n",
        card.name,
        card.architecture,
        "---|".repeat(declared.sets.len())
    );
    let mut all = vec![[0.0; 2]; declared.sets.len()];
    for (name, kernels) in &declared.whole {
        let names: Vec<&str> = kernels.iter().map(|kernel| short(kernel)).collect();
        out += &format!("| {name} | `{}` |", names.join("`, `"));
        for (set, all) in all.iter_mut().enumerate() {
            let mut sums = [0.0; 2];
            for kernel in kernels {
                let counts = operations.get(&(kernel.as_str(), home, set));
                let counts = counts.ok_or_else(|| format!("{name} takes {kernel}, which has no floor"))?;
                sums.iter_mut().zip(counts).for_each(|(sum, counts)| *sum += clocks(counts, home).0);
            }
            all.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum);
            out += &format!(" {} |", range(sums.map(f64::round)));
        }
        out += "\n";
    }
    out += "| of all, thousands a second | |";
    for [least, most] in all {
        let rate = |clocks: f64| (card.multiprocessors * card.ghz * 1e6 / clocks).round();
        out += &format!(" {} |", range([rate(most), rate(least)]));
    }
    Ok(out + "\n")
}

/// What an operation asks of memories, by kernel and set.
fn memories(declared: &Declared, traffic: &Traffic) -> String {
    let heads: String = declared.sets.iter().map(|set| format!(" {set} |")).collect();
    let head = format!("| kernel |{heads}\n|---|{}\n", "---|".repeat(declared.sets.len()));
    let rows = |asked: fn(&Asked) -> [f64; 2]| -> String {
        let cell = |set: usize, kernel: &Kernel| {
            let Some(of) = traffic.set.get(&set.to_string()).and_then(|of| of.get(&kernel.name)) else {
                return " - |".to_owned();
            };
            let [all, least] = asked(of).map(|sum| sum / traffic.operations);
            if all == 0.0 { " 0 |".to_owned() } else { format!(" {} ×{:.2} |", all.round(), all / least) }
        };
        let kernels = declared
            .kernel
            .iter()
            .filter(|kernel| traffic.set.values().any(|of| of.contains_key(&kernel.name)));
        let row = |kernel: &Kernel| {
            let cells: String = (0..declared.sets.len()).map(|set| cell(set, kernel)).collect();
            format!("| `{}` |{cells}\n", short(&kernel.name))
        };
        kernels.map(row).collect()
    };
    if traffic.set.is_empty() {
        return String::new();
    }
    format!(
        "\n## Shared memory\n\nWavefronts of an operation. At ×1 no banks conflict:\n\n{head}{}\n\
         ## Device memory\n\nSectors of an operation. At ×1 all bytes lie side by side:\n\n{head}{}",
        rows(|of| [of.wavefronts, of.least_wavefronts]),
        rows(|of| [of.sectors, of.least_sectors])
    )
}

fn render(
    folder: &Path,
    declared: &Declared,
    traffic: &Traffic,
    operations: &Operations<'_>,
    rows: &[Vec<(String, String, Vec<usize>)>; 2],
) -> Result<String, String> {
    let made_from = declared.sources().map(|file| mark(folder, file));
    let made_from = made_from.collect::<Result<Vec<_>, _>>()?.join("\n");
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
    out += &wholes(declared, operations)?;
    out += &memories(declared, traffic);
    out += "\nWithout a floor, since the trips do not follow from the parameters or do not matter:\n\n";
    for (pattern, why) in &declared.undeclared {
        out += &format!("- `{pattern}`: {why}\n");
    }
    let heads: String = RATES[1..].iter().map(|rate| format!(" {} |", rate.name)).collect();
    let mut unseen = String::new();
    if !declared.unseen.is_empty() {
        unseen += "\n## Unseen accesses\n\nLoops with accesses that were never executed where they are counted:\n\n";
        declared.unseen.iter().for_each(|(pattern, why)| unseen += &format!("- `{pattern}`: {why}\n"));
    }
    for (n, name) in ARCHITECTURES.iter().enumerate() {
        out += &format!(
            "\n## Loops on {name}\n\n\
             One trip of one warp. A loop has the number of its place in the code; sets are numbered from 0. Pipes, clocks and limit are those of\n\
             the most. Loops of fewer than {LISTED} instructions are left out.\n\n\
             | loop | sets | issued |{heads} other | wavefronts | sectors | unseen | clocks | limit |\n|---|---|---:|{}---:|---:|---:|---:|---:|---|\n",
            "---:|".repeat(RATES.len() - 1)
        );
        for (name, rest, sets) in &rows[n] {
            out += &format!("|{name}|{}|{rest}\n", sets.iter().map(ToString::to_string).collect::<String>());
        }
    }
    Ok(out + &unseen)
}
