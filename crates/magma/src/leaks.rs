//! Whether a branch or an address depends on a secret, asked of valgrind's memcheck, for the backends whose instructions
//! valgrind knows: portable and avx2.
//!
//! The tests run themselves under valgrind. There every kernel, and everything that is built of them, works under keys and on
//! data that memcheck takes for undefined. Released are ciphertexts and tags, by the operations here after the work is done,
//! and the three answers that `release` names, where they are given. That secrets came out is asserted everywhere: where
//! memcheck had lost track of them, silence would mean nothing. [`leaky`] shows that a leak in any kernel would be seen.
//!
//! [`traced`] compares runs on different secrets instruction by instruction, on every backend that this CPU has.
//!
//! What memcheck cannot see: instructions whose time depends on their operands; the backends that valgrind has no instructions
//! for, which the tests name when they pass; lengths and numbers of messages that are not tried; what another compiler makes
//! of the code. The traits of other crates, in `traits`, lead to the same code by other names. Streebog, which keys are
//! derived with, leaks: see [`STREEBOG`].
//!
//! Only an optimised build is judged, as it is shipped: `cargo test --release -p lanework-magma --lib leaks`.
#![forbid(unsafe_code)]

mod derivations;
mod kernels;
mod messages;
mod modes;
mod secrets;
mod traced;

use std::cell::RefCell;

use lanework_cpu::{Cpu, Settings};
use lanework_leakage::memcheck::running;
use lanework_leakage::plants::{self, BRANCH};
use lanework_leakage::valgrind::{Section, judged, observe, say};

use crate::backend::leaky::{self, Plant};
use crate::backend::{BACKENDS, Kernels};
use crate::check::Numbers;
use crate::key::{Choice, Magma};
use crate::modes::Omac;
use secrets::{both, done, secret};

/// Backends that valgrind must be able to run.
const TIERS: [&str; 2] = ["portable", "avx2"];

/// Where the one known leak is: the function that the crate `streebog` looks its S-box up in, at addresses that derive from the
/// keys that go through `kdf`, `tlstree` and a container's head. Whoever shares a cache with these may learn of them.
const STREEBOG: &str = ": lps (block_api.rs:";

/// Operations made of kernels.
const OPERATIONS: [(&str, fn(Choice)); 9] = [
    ("modes", modes::streams),
    ("modes on threads", modes::threads),
    ("authentication codes", modes::codes),
    ("padding", modes::padding),
    ("MGM", messages::mgm),
    ("MGM on threads", messages::mgm_on_threads),
    ("batches", messages::batches),
    ("batches of MGM", messages::mgm_batches),
    ("KExp15", messages::kexp15),
];

/// Through Streebog: these must leak there, and nowhere else.
const CONTAINER_KEYS: &str = "keys of a container";
const DERIVATIONS: &str = "derived keys";
const CONTAINER_CHUNKS: &str = "chunks of a container";

fn headline(tier: &str, operation: &str) -> String {
    format!("## {tier}: {operation}")
}

/// What the child says of a backend that it has run.
fn ran(tier: &str) -> String {
    format!("## {tier} runs under valgrind")
}

/// All backends that this process has; one that is required must be among them, unless valgrind is in between.
fn choices() -> Vec<Result<Choice, lanework_cpu::Unavailable>> {
    let settings = Settings::from_env().expect("the environment can be read");
    let cpu: Cpu = settings.cpu();
    let choose = |row: &lanework_cpu::Backend<Kernels>| {
        let choice = Choice::new(&cpu, lanework_cpu::Select::Named(row.name()));
        if let Err(why) = &choice {
            let needed = if running() { TIERS.contains(&row.name()) } else { true };
            assert!(!needed || !settings.requires(row.name()), "LANEWORK_REQUIRE names {why}");
        }
        choice
    };
    BACKENDS.iter().map(choose).collect()
}

/// The child's work on one backend.
fn operate(choice: Choice) {
    for (what, operation) in kernels::OPERATIONS {
        observe(&headline(choice.name(), what), || operation(choice.kernels()));
    }
    for (what, operation) in OPERATIONS {
        observe(&headline(choice.name(), what), || operation(choice));
    }
    let container = RefCell::new(None);
    observe(&headline(choice.name(), CONTAINER_KEYS), || {
        container.replace(Some(messages::container_keys(choice)));
    });
    observe(&headline(choice.name(), CONTAINER_CHUNKS), || {
        messages::container_chunks(container.borrow().as_ref().expect("was made"));
    });
}

/// Whether all that was said comes from inside Streebog.
fn only_streebog(section: &Section<'_>) -> bool {
    section.complaints().all(|complaint| {
        let innermost = complaint.lines().find(|line| line.contains(" at 0x"));
        innermost.is_some_and(|frame| frame.contains(STREEBOG))
    })
}

#[test]
fn no_branch_and_no_address_depends_on_a_secret() {
    if running() {
        for choice in choices().into_iter().flatten() {
            eprintln!("{}", ran(choice.name()));
            operate(choice);
        }
        observe(&headline("any", DERIVATIONS), derivations::derivations);
        return;
    }
    let Some(said) = judged("leaks::no_branch_and_no_address_depends_on_a_secret") else { return };
    let (mut silent, mut leaking) = (Vec::new(), Vec::new());
    let mut judge = |tier: &str, operation: &str, streebog: bool| {
        let headline = headline(tier, operation);
        let section = Section::of(&said, &headline);
        if section.is_silent() && !streebog {
            silent.push(headline);
        } else if !(streebog && only_streebog(&section)) {
            leaking.push(format!("{headline}\n{}", section.shortened("lanework_magma::")));
        } else {
            assert!(!section.is_silent(), "{headline}: Streebog leaks no longer; judge it like the others");
        }
    };
    let mut covered = Vec::new();
    for (row, choice) in BACKENDS.iter().zip(choices()) {
        let tier = row.name();
        match choice {
            Err(why) => say(&format!("skipped {tier} under valgrind: {why}")),
            Ok(_) if !TIERS.contains(&tier) && !said.contains(&ran(tier)) => say(&format!(
                "skipped {tier} under valgrind, which does not know all of its instructions: {:?}",
                row.needs()
            )),
            Ok(_) => {
                covered.push(tier);
                let kernels = kernels::OPERATIONS.iter().map(|(what, _)| what);
                for what in kernels.chain(OPERATIONS.iter().map(|(what, _)| what)) {
                    judge(tier, what, false);
                }
                judge(tier, CONTAINER_KEYS, true);
                judge(tier, CONTAINER_CHUNKS, false);
            }
        }
    }
    judge("any", DERIVATIONS, true);
    assert!(leaking.is_empty(), "secrets decide on branches or addresses:\n{}", leaking.join("\n"));
    say(&format!(
        "under valgrind: {} groups of operations of lanework-magma without a complaint, on {}; derived keys and keys of \
         containers with complaints of the crate streebog, which looks up tables, and no other",
        silent.len(),
        covered.join(" and ")
    ));
}

fn planted(plant: &Plant) -> String {
    format!("{} with {} in {}", plant.tier, plant.function, plant.kernel)
}

/// A comparison of tags that ends early, as a tier would make it: its name, what memcheck says, and what runs it.
fn comparisons(tier: &str) -> (&'static str, fn(&[u8], &[u8]) -> bool) {
    match tier {
        "portable" => ("plants::compare_until_different", plants::compare_until_different),
        _ => ("plants::compare_lanes_until_different", leaky::compare_lanes),
    }
}

/// A MAC that is looked at by such a comparison before it is released.
fn compared_early(choice: Choice) {
    let (hidden, open) = both(&mut Numbers(81));
    let mac = |key| {
        let mut mac = done("OMAC", Omac::new(Magma::with(key, choice), 8));
        done("OMAC", mac.update(b"a message"));
        mac.finish()
    };
    let right = mac(&open);
    let (_, equal) = comparisons(choice.name());
    assert!(equal(mac(&hidden).as_ref(), right.as_ref()));
    // So does one that meets a received tag.
    assert!(!equal(&secret(&[1; 8]), right.as_ref()));
}

#[test]
fn planted_leaks_are_found_and_named() {
    let settings = Settings::from_env().expect("the environment can be read");
    let tiers: Vec<(&str, Choice)> =
        choices().into_iter().flatten().map(|c| (c.name(), c)).filter(|(t, _)| TIERS.contains(t)).collect();
    assert!(TIERS.iter().all(|t| !settings.requires(t) || tiers.iter().any(|(have, _)| have == t)));
    let early = |tier: &str| headline(tier, "tags compared until they differ");
    if running() {
        for (tier, choice) in tiers {
            for plant in leaky::of(tier) {
                let operation = kernels::OPERATIONS.iter().find(|(what, _)| *what == plant.kernel);
                let (what, operation) = operation.expect("an operation for every kernel");
                observe(&headline(&planted(&plant), what), || operation(plant.kernels));
            }
            let plant = leaky::by_tables(tier);
            observe(&headline(&planted(&plant), plant.kernel), || kernels::magma_blocks(plant.kernels));
            observe(&early(tier), || compared_early(choice));
        }
        return;
    }
    let Some(said) = judged("leaks::planted_leaks_are_found_and_named") else { return };
    let mut found = 0;
    let mut named = |headline: &str, complaint: &str, function: &str, file: &str| {
        let section = Section::of(&said, headline);
        assert!(!section.is_silent(), "nothing is said to {headline}");
        assert!(
            section.names(complaint, function, file),
            "{headline}\nis called otherwise:\n{}",
            section.words
        );
        found += 1;
    };
    for (tier, _) in &tiers {
        for plant in leaky::of(tier).iter().chain([&leaky::by_tables(tier)]) {
            let headline = headline(&planted(plant), plant.kernel);
            named(&headline, plant.complaint, plant.function, plant.file);
        }
        named(&early(tier), BRANCH, comparisons(tier).0, plants::FILE);
    }
    say(&format!("under valgrind: {found} planted leaks of lanework-magma found, and named"));
}
