//! Rewrites that are built with a driver and run.

use core::fmt;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use lanework_respill::homes::Bank;
use lanework_respill::plan::{self, Policy, Wish};
use lanework_respill::rewrite::{self, Options as Rewriting};
use lanework_respill::validate::{Failure, Options, validate};
use lanework_respill::{Analysis, Program};

/// What became of one function with one home.
pub(crate) struct Tried {
    name: String,
    bank: Bank,
    pub(crate) outcome: Outcome,
}

pub(crate) enum Outcome {
    /// The file is refused as a whole.
    Unread(String),
    /// No value can move.
    Nothing,
    /// Refused, with the reasons.
    Refused(String),
    /// Accepted with this many values moved, and the program prints the same.
    Right(usize),
    /// Accepted, and this processor cannot run it.
    NotRun(usize),
    /// Accepted and wrong, or not assembled.
    Wrong(String),
}

impl Outcome {
    pub(crate) const fn is_wrong(&self) -> bool {
        matches!(self, Outcome::Wrong(_))
    }

    /// The values that moved and were accepted.
    pub(crate) const fn moved(&self) -> usize {
        if let Outcome::Right(moved) | Outcome::NotRun(moved) = self { *moved } else { 0 }
    }
}

impl Tried {
    pub(crate) fn is_of(&self, name: &str) -> bool {
        self.name == name
    }
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tried { name, bank, outcome } = self;
        write!(f, "{name} {bank}: ")?;
        match outcome {
            Outcome::Unread(why) => write!(f, "unread: {why}"),
            Outcome::Nothing => write!(f, "nothing moves"),
            Outcome::Refused(why) => write!(f, "refused: {why}"),
            Outcome::Right(moved) => write!(f, "right, {moved} moved"),
            Outcome::NotRun(moved) => write!(f, "not run here, {moved} moved"),
            Outcome::Wrong(why) => write!(f, "WRONG: {why}"),
        }
    }
}

pub(crate) fn runs_here(bank: Bank) -> bool {
    matches!(bank, Bank::Mm | Bank::Xmm)
        || std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512vl")
            && std::arch::is_x86_feature_detected!("avx512dq")
}

pub(crate) fn wish(bank: Bank) -> Wish {
    Wish {
        banks: vec![(bank, None)],
        policy: Policy::Hottest,
        counts: None,
        stay: BTreeSet::new(),
        only: BTreeSet::new(),
        operands: true,
    }
}

/// The driver, compiled once.
pub(crate) fn library(driver: &Path, directory: &Path) -> PathBuf {
    let object = directory.join("driver.o");
    let out =
        Command::new("cc").args(["-O1", "-w", "-c", "-o"]).arg(&object).arg(driver).output().expect("cc");
    assert!(out.status.success(), "{}: {}", driver.display(), String::from_utf8_lossy(&out.stderr));
    object
}

/// What the program prints, and how it ends.
pub(crate) fn printed(text: &str, driver: &Path, directory: &Path) -> Result<String, String> {
    let (source, program) = (directory.join("f.s"), directory.join("f"));
    std::fs::write(&source, text).expect("written");
    let mut cc = Command::new("cc");
    cc.args(["-no-pie", "-o"]).arg(&program).arg(driver).arg(&source);
    if text.contains("__gxx_personality_v0") {
        cc.arg("-l:libstdc++.so.6");
    }
    let out = cc.output().expect("cc");
    if !out.status.success() {
        return Err(String::from_utf8_lossy(&out.stderr).lines().take(4).collect());
    }
    let out = Command::new("timeout").arg("20").arg(&program).output().expect("it starts");
    Ok(format!("{}{}", String::from_utf8_lossy(&out.stdout), out.status))
}

/// Rewrites a text with every kind of home, without any input, and runs what is accepted.
pub(crate) fn every_home(name: &str, text: &str, driver: &Path, directory: &Path) -> Vec<Tried> {
    let tried = |bank, outcome| Tried { name: name.to_owned(), bank, outcome };
    let original = match Program::new(name, text) {
        Ok(program) => Analysis::new(program),
        Err(e) => return vec![tried(Bank::Mm, Outcome::Unread(e.to_string()))],
    };
    let before = printed(text, driver, directory).unwrap_or_else(|e| panic!("{name}: {e}"));
    Bank::ALL
        .into_iter()
        .map(|bank| {
            tried(
                bank,
                match moved(&original, bank) {
                    Ok((0, _)) => Outcome::Nothing,
                    Ok((moved, _)) if !runs_here(bank) => Outcome::NotRun(moved),
                    Ok((moved, made)) => match printed(&made, driver, directory) {
                        Ok(after) if after == before => Outcome::Right(moved),
                        Ok(after) => Outcome::Wrong(format!("{} and not {}", after.trim(), before.trim())),
                        Err(e) => Outcome::Wrong(e),
                    },
                    Err(outcome) => outcome,
                },
            )
        })
        .collect()
}

/// The rewrite that is accepted without an input, as the command makes it: what is refused stays, and the rest is tried
/// again.
pub(crate) fn moved(original: &Analysis, bank: Bank) -> Result<(usize, String), Outcome> {
    let mut wish = wish(bank);
    loop {
        let plan = plan::plan(original, &wish);
        let made = rewrite::rewrite(original, &plan, Rewriting::default());
        let made = made.map_err(|e| Outcome::Wrong(e.to_string()))?.text;
        if plan.homes.is_empty() {
            return Ok((0, made));
        }
        let other = original.program.again("rewritten.s", made.clone());
        let other = other.map_err(|e| Outcome::Wrong(format!("{e}\n{made}")))?;
        match validate(original, &other, &[], &Options::default()) {
            Ok(_) => return Ok((plan.homes.len(), made)),
            Err(Failure::Refused(refused)) => {
                let before = wish.stay.len();
                wish.stay.extend(refused.stay());
                if wish.stay.len() == before {
                    return Err(Outcome::Refused(refused.to_string()));
                }
            }
            Err(failure) => panic!("{failure}"),
        }
    }
}

/// The functions of a file: a line with the name and the reason, then the code of `f` and of what it needs.
pub(crate) fn own(text: &str) -> Vec<(String, String)> {
    text.split("== ")
        .filter_map(|one| one.split_once('\n'))
        .map(|(head, code)| {
            let name = head.split(':').next().expect("a name").to_owned();
            let text = format!(
                "\t.text\n\t.globl f\n\t.type f,@function\nf:\n{code}\t.section .note.GNU-stack,\"\",@progbits\n"
            );
            (name, text)
        })
        .collect()
}
