//! Whether a branch or an address depends on a secret, asked of valgrind's memcheck, for the backends whose
//! instructions valgrind knows: those that need no more than AVX2 and what came with it.
//!
//! The tests run themselves under valgrind. There every kernel, and everything that is built of them, works under keys
//! and on data that memcheck takes for undefined. Released are ciphertexts and tags, by the operations here after the
//! work is done, and the three answers that `release` names, where they are given. That secrets came out is asserted
//! everywhere: where memcheck had lost track of them, silence would mean nothing. `leaky` shows that a leak in any
//! kernel would be seen.
//!
//! `traced` compares runs on different secrets instruction by instruction, on every backend that this CPU has.
//!
//! What memcheck cannot see: instructions whose time depends on their operands; the backends that valgrind has no
//! instructions for, which the tests name when they pass; lengths and numbers of messages that are not tried; what
//! another compiler makes of the code. The traits of other crates, in `traits`, lead to the same code by other names.
//! Streebog, which keys are derived with, leaks: see `STREEBOG`.
//!
//! Only an optimised build is judged, as it is shipped: `cargo test --release -p lanework-magma --lib leaks`.
#![forbid(unsafe_code)]

mod derivations;
mod kernels;
mod messages;
mod modes;
mod secrets;
mod subjects;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod traced;

use std::cell::RefCell;

use lanework_cpu::{Backend, Cpu, Features, Select};
use lanework_leakage::evidence::{Finding, Means, Row};
use lanework_leakage::valgrind::{self, NotRun, Section, observe};

use crate::backend::{BACKENDS, Engine, Kernels};
use subjects::path;

pub use subjects::subjects;

/// Whether valgrind must be able to run a backend: it knows the instructions of AVX2 and of what came with it.
fn valgrind_knows(row: &Backend<Kernels>) -> bool {
    row.needs().difference(Features::AVX2_AES_BMI_PCLMULQDQ) == Features::NONE
}

/// Where the one known leak is: the function that the crate `streebog` looks its S-box up in, at addresses that derive
/// from the keys that go through `kdf`, `tlstree` and a container's head. Whoever shares a cache with these may learn
/// of them.
const STREEBOG: &str = ": lps (block_api.rs:";

/// What an operation is called, and what does it.
type Operation = (&'static str, fn(Engine));

/// Operations made of kernels.
const OPERATIONS: [Operation; 9] = [
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

/// The child's work on one backend.
fn operate(engine: Engine) {
    for (what, operation) in kernels::OPERATIONS {
        observe(&headline(engine.name(), what), || operation(engine.kernels()));
    }
    for (what, operation) in OPERATIONS {
        observe(&headline(engine.name(), what), || operation(engine));
    }
    let container = RefCell::new(None);
    observe(&headline(engine.name(), CONTAINER_KEYS), || {
        container.replace(Some(messages::container_keys(engine)));
    });
    observe(&headline(engine.name(), CONTAINER_CHUNKS), || {
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

/// What the child does under valgrind: every operation that `wanted` says of its path, on the backends that it has
/// there.
pub fn under_memcheck(cpu: &Cpu, wanted: &dyn Fn(&str) -> bool) {
    // The groups of operations share their secrets; they take seconds.
    if operations().iter().any(|what| wanted(&path(what))) {
        for row in BACKENDS {
            if let Ok(engine) = Engine::choose(cpu, Select::Named(row.name())) {
                eprintln!("{}", ran(engine.name()));
                operate(engine);
            }
        }
    }
    if wanted(&path(DERIVATIONS)) {
        observe(&headline("any", DERIVATIONS), derivations::derivations);
    }
}

/// All that a backend does under valgrind.
fn operations() -> Vec<&'static str> {
    let kernels = kernels::OPERATIONS.iter().map(|(what, _)| *what);
    let built = OPERATIONS.iter().map(|(what, _)| *what);
    kernels.chain(built).chain([CONTAINER_KEYS, CONTAINER_CHUNKS]).collect()
}

/// What memcheck said to [`under_memcheck`], as rows: of every backend of `cpu`, those among them that valgrind cannot
/// run.
pub fn memcheck_rows(cpu: &Cpu, wanted: &dyn Fn(&str) -> bool, said: Result<&str, &NotRun>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut judge = |tier: &str, operation: &str, finding: Option<Finding>| {
        let what = path(operation);
        if wanted(&what) {
            let finding = finding.unwrap_or_else(|| finding_of(tier, operation, said));
            let (backend, extent) = (tier.to_owned(), "every bit followed".to_owned());
            rows.push(Row {
                what,
                backend,
                means: Means::Valgrind,
                finding,
                extent,
                unpromised: Vec::new(),
                suspicion: None,
            });
        }
    };
    for backend in BACKENDS {
        let tier = backend.name();
        let why = match Engine::choose(cpu, Select::Named(tier)) {
            Err(why) => Some(Finding::NotApplicable(why.why)),
            Ok(_) if !valgrind_knows(backend) && said.is_ok_and(|said| !said.contains(&ran(tier))) => {
                Some(Finding::NotApplicable("valgrind does not know its instructions".into()))
            }
            Ok(_) => None,
        };
        for operation in operations() {
            judge(tier, operation, why.clone());
        }
    }
    judge("any", DERIVATIONS, None);
    rows
}

fn finding_of(tier: &str, operation: &str, said: Result<&str, &NotRun>) -> Finding {
    let headline = headline(tier, operation);
    let finding = valgrind::finding(said, &headline, "lanework_magma::");
    if ![CONTAINER_KEYS, DERIVATIONS].contains(&operation) {
        return finding;
    }
    match (finding, said.ok().and_then(|said| Section::find(said, &headline))) {
        (Finding::Leak(_), Some(section)) if only_streebog(&section) => Finding::Known(
            "tables of the crate streebog, looked up at addresses that derive from keys; see SECURITY.md"
                .into(),
        ),
        // The declaration would have to go.
        (Finding::Clean, _) => Finding::Broken("declared as leaking through Streebog, and does not".into()),
        (other, _) => other,
    }
}
