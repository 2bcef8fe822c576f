//! Names that outlive an analysis: of slots, of functions, and of the homes of a plan.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use crate::analysis::{Analysis, Unit};
use crate::frame::Address;
use crate::plan::Plan;

/// A number with its noun, whose plural ends in `s`.
#[must_use]
pub fn counted(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// A signal by its name and in words.
#[must_use]
pub fn signal(number: i32) -> String {
    let said = match number {
        4 => "SIGILL (illegal instruction)",
        5 => "SIGTRAP (trap)",
        6 => "SIGABRT (abort)",
        7 => "SIGBUS (bus error)",
        8 => "SIGFPE (arithmetic exception)",
        9 => "SIGKILL (killed)",
        11 => "SIGSEGV (segmentation fault)",
        15 => "SIGTERM (terminated)",
        _ => return format!("signal {number}"),
    };
    said.to_owned()
}

/// The name of an address in a frame: bytes from the stack pointer at the entry, `@LINE+BYTES` from what the
/// instruction of that line aligned it to, or `@@LINE+BYTES` from where it was before that line.
#[must_use]
pub fn place(analysis: &Analysis, address: Address) -> String {
    match address.made() {
        None => address.offset.to_string(),
        Some((op, false)) => format!("@{}{:+}", analysis.program.line(op), address.offset),
        Some((op, true)) => format!("@@{}{:+}", analysis.program.line(op), address.offset),
    }
}

/// The name of a slot, with its function: `f:-24`.
///
/// # Panics
/// If the function has no slot of this number.
#[must_use]
pub fn slot(analysis: &Analysis, unit: &Unit, slot: usize) -> String {
    format!("{}:{}", unit.function.name(), place(analysis, unit.slots[slot].address))
}

/// The homes of a plan by the names of their slots.
#[must_use]
pub fn homes(analysis: &Analysis, plan: &Plan) -> BTreeMap<String, String> {
    let named = |&(n, s): &(usize, usize)| slot(analysis, &analysis.units[n], s);
    plan.homes.iter().map(|(key, home)| (named(key), home.to_string())).collect()
}

/// A function's name with a number that follows from its instructions and those of all that it calls, so that another
/// function of the same name has another key.
///
/// # Panics
/// If there is no function of this number.
#[must_use]
pub fn key(analysis: &Analysis, unit: usize) -> String {
    format!("{}#{:016x}", analysis.units[unit].function.name(), analysis.fingerprint(unit))
}
