//! Random functions, rewritten for every home: every accepted rewrite is run against its original.
//!
//! Of the private slots that some home can take, 9 of 10 must move, and 6 of 10 of all. No home can take a slot without a register: an
//! instruction that names it has no free one, it lives across a call outside, neighbours refuse every home, or all homes are taken. Of
//! those that live across no call outside, 9 of 10 must move to `xmm32`.
//!
//! `LANEWORK_GENERATED` is the number of functions, `LANEWORK_SEED` the first seed.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
#![forbid(unsafe_code)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use common::batch::{Batch, Count, accepted, driver, run, tried};
use common::generator::{Features, Generated, Known, Privacy, function};
use common::native::runs_here;
use lanework_respill::homes::{Bank, Home};
use lanework_respill::plan::{Plan, Stays};
use lanework_respill::rewrite::{self, Options as Rewriting};

const BATCH: u64 = 100;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |said| said.parse().unwrap_or_else(|_| panic!("{name}={said}")))
}

#[test]
fn no_generated_function_is_accepted_and_wrong() {
    let (count, first) = (number("LANEWORK_GENERATED", 1000), number("LANEWORK_SEED", 1));
    let here = Features::here();
    let next = AtomicU64::new(0);
    #[derive(Default)]
    struct All {
        counts: BTreeMap<Bank, Count>,
        features: BTreeMap<&'static str, usize>,
        refused: Vec<String>,
        bad: Vec<String>,
        runs: u64,
        accepted: usize,
    }
    let all = Mutex::new(All::default());
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let directory = tempfile::tempdir().expect("a directory");
                let driver = driver(directory.path());
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n * BATCH >= count {
                        break;
                    }
                    let begin = first + n * BATCH;
                    let batch = Batch::new(begin..begin + BATCH.min(count - n * BATCH), here);
                    let one = tried(&batch, &driver, 16, directory.path());
                    let mut all = all.lock().expect("no panic");
                    for (bank, count) in &one.counts {
                        all.counts.entry(*bank).or_default().merge(count);
                    }
                    for feature in batch.functions.iter().flat_map(|one| &one.features) {
                        *all.features.entry(feature).or_default() += 1;
                    }
                    all.refused.extend(one.refused.iter().map(|why| format!("seeds from {begin}: {why}")));
                    all.bad.extend(one.bad.iter().map(|bad| match bad.version {
                        None => format!("{}: the generator's fault: {}", bad.function, bad.what),
                        Some(n) => format!("{} {}: {}", bad.function, Bank::ALL[n], bad.what),
                    }));
                    all.runs += one.runs;
                    all.accepted += one.accepted;
                }
            });
        }
    });
    let all = all.into_inner().expect("no panic");
    println!("{count} functions from seed {first}, {} rewrites, {} calls compared", all.accepted, all.runs);
    println!("{:?}", all.features);
    for (bank, count) in &all.counts {
        let [moved, lack, stay] = count.private();
        println!(
            "{bank}: of private slots {moved} moved, {lack} without a register, {stay} stay: {} % of all, {} % of those with a register",
            100 * moved / (moved + lack + stay).max(1),
            100 * moved / (moved + stay).max(1)
        );
        for (privacy, [moved, lack, stay]) in &count.by {
            println!("    {privacy:?}: {moved} moved, {lack} without a register, {stay} stay");
        }
        println!("    without a register: {:?}", count.lack);
        println!("    others: {:?}", count.why);
    }
    for why in &all.refused {
        println!("refused whole: {why}");
    }
    assert!(all.bad.is_empty(), "{} differences:\n{}", all.bad.len(), all.bad.join("\n"));
    assert!(all.refused.is_empty(), "{} refusals of a whole batch", all.refused.len());
    // A few functions may be of any kind.
    for (bank, count) in all.counts.iter().filter(|_| count >= 1000) {
        let [moved, lack, stay] = count.private();
        assert!(10 * moved >= 9 * (moved + stay), "{bank}: {moved} of {}", moved + stay);
        let all = moved + lack + stay;
        assert!(10 * moved >= 6 * all, "{bank}: {moved} of {all}");
        let across = count.lack.get("Across").copied().unwrap_or_default();
        assert!(
            *bank != Bank::Xmm32 || 10 * moved >= 9 * (all - across),
            "{bank}: {moved} of {all}, {across} across"
        );
    }
}

/// The wrong rewrites that a planted fault makes of a batch, or the fault's edit of a correct rewrite.
struct Plant {
    class: String,
    text: String,
}

/// A register that no function of the batch's text `of` names.
fn free_vector(of: &str) -> Option<u32> {
    (2..16).rev().find(|n| !["xmm", "ymm", "zmm"].iter().any(|kind| of.contains(&format!("%{kind}{n}"))))
}

/// A function whose slot is moved by its name alone, whatever else touches it: each `mov` of it becomes a move of a vector register.
fn moved_by_name(one: &Generated, slot: &Known) -> Option<String> {
    let register = free_vector(&one.text)?;
    let mut inside = false;
    let mut edits = 0;
    let mut out = String::new();
    for line in one.text.lines() {
        if line.ends_with(':') && !line.starts_with('.') {
            inside = line.trim_end_matches(':') == slot.function;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let home = format!("%xmm{register}");
        let new = match words.as_slice() {
            // The stack pointer has moved, and the name means another slot.
            ["pushq", ..] if inside && slot.operand.contains("%rsp") && edits > 0 => return None,
            ["movq" | "movl", from, to] if inside && *to == slot.operand && from.starts_with('%') => {
                Some(format!("\t{}\t{from} {home}", if words[0] == "movq" { "movq" } else { "movd" }))
            }
            ["movq" | "movl", from, to] if inside && from.trim_end_matches(',') == slot.operand => {
                Some(format!("\t{}\t{home}, {to}", if words[0] == "movq" { "movq" } else { "movd" }))
            }
            // Other instructions see the value in memory for a moment.
            [name, ..]
                if inside
                    && !name.starts_with("lea")
                    && !name.starts_with("movdqu")
                    && words[1..].iter().any(|word| word.trim_end_matches(',') == slot.operand) =>
            {
                let operand = &slot.operand;
                Some(format!("\tmovd\t{home}, {operand}\n{line}\n\tmovd\t{operand}, {home}"))
                    .map(|said| if slot.size == 8 { said.replace("movd\t", "movq\t") } else { said })
            }
            _ => None,
        };
        edits += usize::from(new.is_some());
        out.push_str(new.as_deref().unwrap_or(line));
        out.push('\n');
    }
    (edits > 0).then_some(out)
}

/// Every function that has an aliased slot of this class, with that slot moved.
fn aliased(batch: &Batch, class: &str) -> Option<String> {
    let mut some = false;
    let mut text = "\t.text\n".to_owned();
    for one in &batch.functions {
        let mut slots =
            one.slots.iter().filter(|slot| matches!(slot.privacy, Privacy::Aliased(own) if own == class));
        let edited = slots.find_map(|slot| moved_by_name(one, slot));
        some |= edited.is_some();
        text.push_str(edited.as_deref().unwrap_or(&one.text));
    }
    text.push_str("\t.section .note.GNU-stack,\"\",@progbits\n");
    some.then_some(text)
}

/// A correct rewrite's text with every line changed by `edit`, which may return several.
fn edited(text: &str, edit: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut changed = false;
    let lines = text.lines().map(|line| {
        let new = edit(line);
        changed |= new.is_some();
        new.unwrap_or_else(|| line.to_owned()) + "\n"
    });
    let out: String = lines.collect();
    changed.then_some(out)
}

/// Of each class of aliased slots, functions that have one, and these slots moved.
fn aliases(here: Features) -> (Batch, Vec<Plant>) {
    let mut most: BTreeMap<&str, usize> = BTreeMap::new();
    let wanted = |one: &Generated| {
        let classes: BTreeSet<&'static str> = one
            .slots
            .iter()
            .filter(|slot| moved_by_name(one, slot).is_some())
            .filter_map(|slot| if let Privacy::Aliased(class) = slot.privacy { Some(class) } else { None })
            .collect();
        let few = classes.iter().any(|class| most.get(class).is_none_or(|count| *count < 10));
        classes.into_iter().for_each(|class| *most.entry(class).or_default() += 1);
        few
    };
    let batch = Batch::of((1..2000).map(|seed| function(seed, false, here)).filter(wanted).collect());
    let plant =
        |class: &str| Some(Plant { class: format!("aliased: {class}"), text: aliased(&batch, class)? });
    let plants = most.keys().filter_map(|class| plant(class)).collect();
    (batch, plants)
}

fn plants(batch: &Batch) -> Vec<Plant> {
    let mut out: Vec<Plant> = Vec::new();
    let mut add = |class: &str, text: Option<String>| {
        out.extend(text.map(|text| Plant { class: class.to_owned(), text }));
    };
    let analysis = batch.analysis();
    let [mm, xmm, k, lane] = [Bank::Mm, Bank::Xmm, Bank::K, Bank::ZmmLane]
        .map(|bank| accepted(&analysis, bank).unwrap_or_else(|why| panic!("{bank}: {why}")));
    let rewritten = |plan: &Plan, options: Rewriting| {
        rewrite::rewrite(&analysis, plan, options).map(|made| made.text).ok()
    };
    let right = Rewriting::default();
    // Plans.
    let mut one_home = xmm.plan.clone();
    let first: BTreeMap<usize, Home> =
        one_home.homes.iter().rev().map(|(key, home)| (key.0, *home)).collect();
    one_home.homes.iter_mut().for_each(|(key, home)| *home = first[&key.0]);
    add("one home for all slots of a function", rewritten(&one_home, right));
    let mut result = xmm.plan.clone();
    let returns: BTreeSet<usize> = (0..analysis.units.len())
        .filter(|&n| result.homes.keys().filter(|key| key.0 == n).count() == 1)
        .collect();
    for (key, home) in &mut result.homes {
        if returns.contains(&key.0) {
            *home = Home::Xmm(0);
        }
    }
    add("a result's register", rewritten(&result, right));
    let mut across = Plan::default();
    for (&key, stays) in &xmm.plan.stays {
        if matches!(stays, Stays::Across(_)) && !across.homes.keys().any(|other| other.0 == key.0) {
            across.homes.insert(key, Home::Xmm(9));
        }
    }
    add("a home across a call", rewritten(&across, right));
    let mut shared = mm.plan.clone();
    shared.homes.values_mut().for_each(|home| {
        if let Home::Mm(n) = home {
            *n = 0;
        }
    });
    add("mm0 for caller and callee", rewritten(&shared, right));
    add("no emms", rewritten(&mm.plan, Rewriting { emms: false, ..right }));
    // Edits.
    let moves = |line: &str, kind: &str| line.trim_start().starts_with("mov") && line.contains(kind);
    let text = &mm.text;
    add(
        "flags of a load",
        edited(text, |line| {
            let (_, to) = line.split_once("movq\t%mm")?.1.split_once(", ")?;
            to.starts_with("%r").then(|| format!("{line}\n\taddq\t$0, {to}"))
        }),
    );
    add(
        "a store is lost",
        edited(text, |line| {
            let (from, to) = line.split_once("movq\t")?.1.split_once(", ")?;
            (from.starts_with("%r") && to.starts_with("%mm")).then(|| "\tnop".to_owned())
        }),
    );
    add(
        "a load from another home",
        edited(text, |line| {
            let (from, _) = line.split_once("movq\t%mm")?.1.split_once(", ")?;
            let other = (from.parse::<u8>().ok()? + 1) % 8;
            Some(line.replacen(&format!("%mm{from}"), &format!("%mm{other}"), 1))
        }),
    );
    add(
        "8 bytes of a value of 4",
        edited(text, |line| {
            (moves(line, "%mm") && line.contains("movd\t")).then(|| {
                let mut out = line.replace("movd\t", "movq\t");
                for (long, short) in [("%r8d", "%r8"), ("%r9d", "%r9")] {
                    out = out.replace(long, short);
                }
                for n in 10..16 {
                    out = out.replace(&format!("%r{n}d"), &format!("%r{n}"));
                }
                for name in ["ax", "bx", "cx", "dx", "si", "di", "bp"] {
                    out = out.replace(&format!("%e{name}"), &format!("%r{name}"));
                }
                out
            })
        }),
    );
    add(
        "a register is lost on the way",
        edited(text, |line| moves(line, "%mm").then(|| format!("{line}\n\tmovl\t$77, %ecx"))),
    );
    let masks = edited(&lane.text, |line| line.contains("kshiftlb").then(|| "\tnop".to_owned()));
    add("masks are not made", masks.filter(|_| runs_here(Bank::ZmmLane)));
    let mask = edited(&k.text, |line| {
        (line.contains("kmov") && line.contains(", %k1")).then(|| line.replace(", %k1", ", %k7"))
    });
    add("another mask register", mask.filter(|_| runs_here(Bank::K)));
    out
}

#[test]
fn planted_faults_are_found_by_running_them() {
    let here = Features::here();
    let directory = tempfile::tempdir().expect("a directory");
    let driver = driver(directory.path());
    let mut found = BTreeMap::<String, usize>::new();
    let batch = Batch::new(1..101, here);
    let edits = plants(&batch);
    for (batch, plants) in [(batch, edits), aliases(here)] {
        for five in plants.chunks(5) {
            let texts: Vec<Option<&str>> = five.iter().map(|plant| Some(plant.text.as_str())).collect();
            let (_, bad) = run(&batch, &texts, &driver, 16, directory.path());
            for (n, plant) in five.iter().enumerate() {
                let count = bad.iter().filter(|bad| bad.version == Some(n)).count();
                *found.entry(plant.class.clone()).or_default() += count;
            }
        }
    }
    println!("{found:#?}");
    let missed: Vec<&String> =
        found.iter().filter(|(_, count)| **count == 0).map(|(class, _)| class).collect();
    assert!(missed.is_empty(), "never found: {missed:?}");
    assert!(found.len() >= 20, "{} classes", found.len());
}

#[test]
fn the_function_of_a_seed_is_always_the_same() {
    let here = Features::here();
    let seed = number("LANEWORK_SEED", 1);
    let [one, two] = [(); 2].map(|()| function(seed, false, here));
    println!("{}{:#?}", one.text, one.slots);
    assert_eq!(one.text, two.text);
}
