//! A second judge of rewrites, independent of the first: every pair of blocks as SMT-LIB, decided by z3.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
#![forbid(unsafe_code)]

#[path = "../common/mod.rs"]
mod common;
mod flow;
mod goals;
mod image;
mod integer;
mod known;
mod processor;
mod solver;
mod symbolic;
mod terms;
mod vector;
mod verdict;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::PROGRAM;
use common::batch::{Batch, accepted};
use common::generator::Features;
use common::mutants::{PATHS, mutants};
use common::native::{moved, wish};
use lanework_respill::homes::Bank;
use lanework_respill::{Analysis, Program, plan, rewrite};
use solver::Solver;
use verdict::{Judgement, judge};

/// What was judged.
#[derive(Default)]
struct All {
    rewrites: usize,
    blocks: usize,
    goals: usize,
    moved: usize,
    slots: usize,
    unsupported: BTreeMap<String, usize>,
    wrong: Vec<String>,
}

impl All {
    fn add(&mut self, what: &str, moved: usize, judged: &Judgement) {
        self.rewrites += 1;
        self.blocks += judged.blocks;
        self.goals += judged.goals;
        self.slots += judged.slots;
        self.moved += moved;
        for (what, n) in &judged.unsupported {
            *self.unsupported.entry(what.clone()).or_default() += n;
        }
        if !judged.different.is_empty() || !judged.undecided.is_empty() {
            self.wrong.push(format!("{what}: {judged}"));
        }
    }

    /// The counts; a disagreement fails, and so do fewer rewrites than these.
    fn end(&self, least: usize) {
        println!(
            "{} rewrites, {} slots moved and {} found, {} blocks, {} equations",
            self.rewrites, self.moved, self.slots, self.blocks, self.goals
        );
        for (what, n) in &self.unsupported {
            println!("unsupported: {what}, {n} times");
        }
        assert!(self.rewrites >= least, "{} rewrites", self.rewrites);
        assert!(
            self.wrong.is_empty(),
            "the judges disagree on {} rewrites:\n{}",
            self.wrong.len(),
            self.wrong.join("\n")
        );
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |said| said.parse().unwrap_or_else(|_| panic!("{name}={said}")))
}

/// The functions of the adversarial corpus, each with a name.
fn corpus() -> Vec<(String, String)> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/adversarial");
    let mut out = Vec::new();
    for folder in [place.clone(), place.join("own")] {
        for entry in std::fs::read_dir(&folder).expect("the functions") {
            let path = entry.expect("an entry").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            match path.extension().and_then(|end| end.to_str()) {
                Some("s") => out.push((name, text)),
                Some("txt") => out.extend(common::native::own(&text)),
                _ => (),
            }
        }
    }
    out.sort();
    out
}

/// Rewrites that the first judge accepts by what it knows of several functions: the function, the home, and why this judge, which sees one
/// at a time, refuses them.
const BEYOND: [(&str, &str, &str); 3] = [
    // Every function begins with the entry's stack pointer here. A part begins with that of the jump, which only its owner's frame gives.
    ("parted", "", "a part of a function, which has no frame by itself"),
    // MMX must be free here where a function goes on in another. The first judge follows it to the `emms` there.
    ("shared_middle", "mm", "MMX in use on the way to another function of the file"),
    // A constant must be the same number here. The first judge finds that both lead to the same instruction.
    ("constant_beyond", "xmm32", "a place in code as a constant"),
];

#[test]
fn the_judges_agree_on_the_corpus() {
    let Some(mut solver) = Solver::start("the corpus") else { return };
    let mut all = All::default();
    for (name, text) in corpus() {
        let Ok(program) = Program::new(&name, text.as_str()) else { continue };
        let analysis = Analysis::new(program);
        for bank in Bank::ALL {
            if let Ok((slots @ 1.., made)) = moved(&analysis, bank) {
                let mut judged = judge(&text, &made, &mut solver);
                let home = bank.to_string();
                if let Some((_, _, why)) = BEYOND.iter().find(|one| one.0 == name && home.starts_with(one.1))
                {
                    assert!(!judged.different.is_empty(), "{judged}");
                    println!("{name} {home}, {why}: {judged}");
                    judged.different.clear();
                    judged.unsupported.insert((*why).to_owned(), 1);
                }
                all.add(&format!("{name} {bank}"), slots, &judged);
            }
        }
    }
    all.end(300);
    // Functions with a handler or a jump by a distance, counted for each home that takes a slot of theirs.
    let mut expected = BTreeMap::from([
        ("a table of exception handlers".to_owned(), 4),
        ("a branch to a place without a label".to_owned(), Bank::ALL.len()),
    ]);
    expected.extend(
        BEYOND.map(|(_, home, why)| (why.to_owned(), if home.is_empty() { Bank::ALL.len() } else { 1 })),
    );
    assert_eq!(all.unsupported, expected);
}

#[test]
fn the_judges_agree_on_generated_functions() {
    let Some(mut solver) = Solver::start("generated functions") else { return };
    let (count, first) = (number("LANEWORK_GENERATED", 60), number("LANEWORK_SEED", 1));
    let mut all = All::default();
    for begin in (first..first + count).step_by(100) {
        let batch = Batch::new(begin..(begin + 100).min(first + count), Features::here());
        let analysis = batch.analysis();
        for bank in Bank::ALL {
            let Ok(rewrite) = accepted(&analysis, bank) else { continue };
            let judged = judge(&batch.text, &rewrite.text, &mut solver);
            all.add(&format!("seeds from {begin}, {bank}"), rewrite.plan.homes.len(), &judged);
        }
    }
    all.end(5);
    assert!(all.unsupported.is_empty(), "{:?}", all.unsupported);
}

#[test]
fn an_unchanged_function_takes_nothing_outside_that_differs() {
    let Some(mut solver) = Solver::start("a function between") else { return };
    let text = |store: &str, load: &str, free: &str| {
        format!(
            "helper:\n\tsubq $8, %rsp\n\tcall ext\n\taddq $8, %rsp\n\tret\n\t.globl f\nf:\n\tsubq $24, %rsp\n\t{store}\n\
             \t{load}\n\t{free}\n\tcall helper\n\taddq $24, %rsp\n\temms\n\tret\n"
        )
    };
    let original = text("movq %rdi, 8(%rsp)", "movq 8(%rsp), %rax", "");
    for (home, free, right) in
        [("mm0", "emms", true), ("mm0", "", false), ("xmm9", "", true), ("xmm5", "", false), ("k1", "", true)]
    {
        let mov = if home == "k1" { "kmovq" } else { "movq" };
        let made = text(&format!("{mov} %rdi, %{home}"), &format!("{mov} %{home}, %rax"), free);
        let judged = judge(&original, &made, &mut solver);
        assert_eq!(judged.accepts(), right, "{home} {free}: {judged}");
    }
}

#[test]
fn a_number_in_the_frame_lasts_until_something_may_write_there() {
    let Some(mut solver) = Solver::start("a number in the frame") else { return };
    // The way to 2 is taken if the number is not 5 any more, and there the versions differ.
    let text = |between: &str, store: &str, load: &str, other: u32| {
        format!(
            "\t.globl f\nf:\n\tsubq $72, %rsp\n\tmovq $5, 16(%rsp)\n\t{store}\n\t{between}\n\ttestq %rsi, %rsi\n\tje 1f\n\
             \tincq %rsi\n1:\tcmpq $5, 16(%rsp)\n\tjne 2f\n\t{load}\n\taddq %rsi, %rax\n\taddq $72, %rsp\n\temms\n\tret\n\
             2:\tmovl ${other}, %eax\n\taddq $72, %rsp\n\temms\n\tret\n"
        )
    };
    for (between, lasts) in [
        ("", true),
        ("movb $1, 15(%rsp)", true),
        ("vmovdqu %ymm1, 24(%rsp)", true),
        ("vmovdqu %xmm1, (%rsp)", true),
        ("movb $5, 16(%rsp)", false),
        ("vmovdqu %ymm1, (%rsp)", false),
        ("vmovdqu %xmm1, (%rdx)", false),
        ("movq $5, (%rdx)", false),
        ("lock btsq %rcx, 24(%rsp)", false),
        ("rep stosb", false),
    ] {
        let original = text(between, "movq %rdi, 64(%rsp)", "movq 64(%rsp), %rax", 1);
        let made = text(between, "movq %rdi, %mm0", "movq %mm0, %rax", 2);
        let judged = judge(&original, &made, &mut solver);
        assert_eq!(judged.accepts(), lasts, "{between}: {judged}");
    }
}

/// Whether this is the long run.
fn long() -> bool {
    number("LANEWORK_GENERATED", 0) >= 1000
}

/// Why an edit of a correct rewrite can be correct after all, although the first judge refuses it.
fn right_after_all(edit: &str) -> Option<&'static str> {
    if edit.contains("kshiftrb") {
        Some("the lanes above, which the mask covers too, hold nothing")
    } else if edit.starts_with("a home is written on the way") {
        Some("the home's value is not wanted any more")
    } else if edit.starts_with("without") && edit.contains("mov") {
        Some("the register holds the slot's value already")
    } else {
        None
    }
}

#[test]
fn the_second_judge_refuses_wrong_edits() {
    let Some(mut solver) = Solver::start("mutated rewrites") else { return };
    let (mut tried, mut right, mut wrong) = (0, BTreeMap::<&str, usize>::new(), Vec::new());
    for text in [PROGRAM, PATHS] {
        let original = Analysis::new(Program::new("test.s", text).expect("a program"));
        for bank in Bank::ALL {
            let plan = plan::plan(&original, &wish(bank));
            if plan.homes.is_empty() {
                continue;
            }
            let made =
                rewrite::rewrite(&original, &plan, rewrite::Options::default()).expect("rewritten").text;
            let judged = judge(text, &made, &mut solver);
            assert!(judged.accepts() && judged.slots == plan.homes.len(), "{bank}: {judged}\n{made}");
            // Each takes a tenth of a second: all of them in the long run.
            for (edit, mutant) in mutants(&made).into_iter().step_by(if long() { 1 } else { 5 }) {
                tried += 1;
                if judge(text, &mutant, &mut solver).accepts() {
                    match right_after_all(&edit) {
                        Some(why) => *right.entry(why).or_default() += 1,
                        None => wrong.push(format!("{bank}: {edit}")),
                    }
                }
            }
        }
    }
    println!("{tried} edits, of which are right after all: {right:#?}");
    assert!(wrong.is_empty(), "{} of {tried} are accepted:\n{}", wrong.len(), wrong.join("\n"));
    assert!(tried >= if long() { 400 } else { 80 }, "{tried}");
    // The first judge refuses these twelve for their form.
    if long() {
        assert_eq!(right.values().copied().collect::<Vec<_>>(), [1, 2, 9]);
    }
}

/// libjade's assembly where cargo keeps it: the corpus of the study spill-homes.
fn libjade() -> Option<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/spill-homes/corpus/Cargo.toml");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["metadata", "--format-version", "1", "--locked", "--offline", "--quiet", "--manifest-path"]);
    let out = cargo.arg(manifest).output().ok().filter(|out| out.status.success())?;
    let said = String::from_utf8(out.stdout).ok()?;
    let quoted = said.split('"').find(|word| word.contains("libjade-sys") && word.ends_with("Cargo.toml"))?;
    Some(Path::new(quoted).parent()?.join("jazz"))
}

#[test]
fn the_judges_agree_on_libjade() {
    if Solver::start("libjade").is_none() {
        return;
    }
    let Some(folder) = libjade() else {
        let required = std::env::var("LANEWORK_REQUIRE_CORPUS").as_deref() == Ok("1");
        assert!(!required, "LANEWORK_REQUIRE_CORPUS=1, and libjade-sys is not here");
        println!("SKIPPED: libjade, since cargo has no libjade-sys");
        return;
    };
    let mut all = All::default();
    // All of it in the long run.
    for entry in std::fs::read_dir(folder).expect("libjade's files") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if !name.ends_with(".s") || !long() && name != "x25519_mulx.s" {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a text");
        let analysis = Analysis::new(Program::new(&name, text.as_str()).expect("a program"));
        // The longest of the tests: a thread and a solver for each home.
        let judged = |bank| {
            let (slots @ 1.., made) = moved(&analysis, bank).ok()? else { return None };
            let mut solver = Solver::start("libjade").expect("a second solver");
            Some((format!("{name} {bank}"), slots, judge(&text, &made, &mut solver)))
        };
        std::thread::scope(|scope| {
            let threads = Bank::ALL.map(|bank| scope.spawn(move || judged(bank)));
            for (what, slots, judged) in threads.into_iter().filter_map(|t| t.join().expect("judged")) {
                all.add(&what, slots, &judged);
            }
        });
    }
    all.end(5);
}
