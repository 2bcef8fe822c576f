//! Whether a branch or an address depends on a secret, by valgrind's memcheck, for the backends that valgrind can run:
//! those that need at most AVX2.
//!
//! The tests run themselves under valgrind. There every kernel, and all code built on them, works with keys and data
//! that memcheck considers undefined. The operations here release ciphertexts and tags after the work, and `release`
//! releases the three answers that it names. Every operation asserts that its output is still secret, since silence
//! means nothing where memcheck has lost track. `leaky` shows that a leak in any kernel is found.
//!
//! `traced` compares runs on different secrets instruction by instruction, on every backend that this CPU has.
//!
//! Memcheck does not cover instructions whose time depends on their operands, backends that valgrind cannot run (the
//! tests name them), untried lengths and numbers of messages, and other compilers. The traits of other crates, in
//! `traits`, call the same code. Streebog, which derives keys, leaks: see `STREEBOG`.
//!
//! Only an optimised build is checked, as shipped: `cargo test --release -p lanework-magma --lib leaks`.
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

/// Whether valgrind must be able to run a backend: it supports AVX2 and earlier instructions.
fn valgrind_knows(row: &Backend<Kernels>) -> bool {
    row.needs().difference(Features::AVX2_AES_BMI_PCLMULQDQ) == Features::NONE
}

/// The place of the one known leak: the function where the crate `streebog` looks up its S-box, at addresses that derive
/// from the keys of `kdf`, `tlstree` and a container's header. An observer of the cache may learn about these keys.
const STREEBOG: &str = ": lps (block_api.rs:";

/// An operation's name and function.
type Operation = (&'static str, fn(Engine));

/// Operations built on kernels.
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

/// Operations through Streebog: these must leak there, and nowhere else.
const CONTAINER_KEYS: &str = "keys of a container";
const DERIVATIONS: &str = "derived keys";
const CONTAINER_CHUNKS: &str = "chunks of a container";

fn headline(tier: &str, operation: &str) -> String {
    format!("## {tier}: {operation}")
}

/// The child's output line about a backend that it has run.
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

/// Whether all complaints come from inside Streebog.
fn only_streebog(section: &Section<'_>) -> bool {
    section.complaints().all(|complaint| {
        let innermost = complaint.lines().find(|line| line.contains(" at 0x"));
        innermost.is_some_and(|frame| frame.contains(STREEBOG))
    })
}

/// The child's work under valgrind: every operation that `wanted` accepts by its path, on the backends available there.
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

/// All work of a backend under valgrind.
fn operations() -> Vec<&'static str> {
    let kernels = kernels::OPERATIONS.iter().map(|(what, _)| *what);
    let built = OPERATIONS.iter().map(|(what, _)| *what);
    kernels.chain(built).chain([CONTAINER_KEYS, CONTAINER_CHUNKS]).collect()
}

/// Memcheck's complaints about [`under_memcheck`] as rows, for every backend of `cpu`; those that valgrind cannot run
/// are skipped.
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
        // The declaration is then out of date.
        (Finding::Clean, _) => Finding::Broken("declared as leaking through Streebog, and does not".into()),
        (other, _) => other,
    }
}
