//! What a branch says about the registers that were compared.
#![forbid(unsafe_code)]

use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind, Register};

use super::value::{Compared, Range, State, Value};
use crate::program::Program;

/// The register with which an instruction compares the stack pointer.
pub(super) fn same(instruction: &Instruction) -> Option<Register> {
    let registers = instruction.mnemonic() == Mnemonic::Cmp
        && instruction.op0_kind() == OpKind::Register
        && instruction.op1_kind() == OpKind::Register;
    match registers.then(|| (instruction.op0_register(), instruction.op1_register())) {
        Some((Register::RSP, other) | (other, Register::RSP)) if other.is_gpr64() => Some(other),
        _ => None,
    }
}

/// The state on one edge after an instruction: a branch on a comparison bounds the register. `None` if no value goes there.
pub(super) fn refined(
    program: &Program,
    op: usize,
    next: usize,
    all: &[usize],
    after: &State,
) -> Option<State> {
    let mut out = after.clone();
    let instruction = &program.ops[op].instruction;
    let code = instruction.condition_code();
    // `loope` also continues where the flags say equal.
    if !instruction.is_jcc_short_or_near() || all.len() != 2 || all[0] == all[1] {
        return Some(out);
    }
    let taken = next != op + 1;
    let code = if taken { code } else { negated(code) };
    if let (Some(other), ConditionCode::e) = (after.same, code)
        && let value @ Value::Stack(_) = after.of(other)
    {
        out.set(Register::RSP, value);
        return Some(out);
    }
    let Some(Compared { register, size, with, order }) = after.compared else { return Some(out) };
    let value = after.of(register);
    // A comparison of 32 bits says nothing about the upper ones.
    let word = value.bounds().is_some_and(|(low, high)| low >= 0 && high <= i64::from(u32::MAX));
    if value.of_stack() || matches!(value, Value::Entry(_)) || size == 4 && !word {
        return Some(out);
    }
    let (low, high) = value.bounds().unwrap_or((i64::MIN, i64::MAX));
    // Below the sign bit signed and unsigned numbers are in one order.
    let small =
        low >= 0 && with >= 0 && (size == 8 || high <= i64::from(i32::MAX) && with <= i64::from(i32::MAX));
    use ConditionCode::{a, ae, b, be, e, g, ge, l, le, ne};
    let (low, high) = match code {
        e => (low.max(with), high.min(with)),
        ne if low == with => (low.checked_add(1)?, high),
        ne if high == with => (low, high.checked_sub(1)?),
        b if order && with >= 0 && (size == 8 || word) => (low.max(0), high.min(with - 1)),
        be if order && with >= 0 && (size == 8 || word) => (low.max(0), high.min(with)),
        ae if order && small => (low.max(with), high),
        a if order && small => (low.max(with.checked_add(1)?), high),
        l if order && (size == 8 || small) => (low, high.min(with.checked_sub(1)?)),
        le if order && (size == 8 || small) => (low, high.min(with)),
        ge if order && (size == 8 || small) => (low.max(with), high),
        g if order && (size == 8 || small) => (low.max(with.checked_add(1)?), high),
        _ => return Some(out),
    };
    if low > high {
        return None;
    }
    // A pointer stays one.
    if matches!(value, Value::Above(..)) && !Range::between(low, high).is_near() {
        return Some(out);
    }
    let compared = out.compared;
    out.set(
        register,
        match value {
            _ if (low, high) == (i64::MIN, i64::MAX) => Value::Other,
            // It may still grow by steps.
            Value::Number(range) if high == range.most() => Value::Number(range.above(low)),
            _ => Value::between(low, high),
        },
    );
    out.compared = compared;
    Some(out)
}

pub(crate) const fn negated(code: ConditionCode) -> ConditionCode {
    use ConditionCode::{None, a, ae, b, be, e, g, ge, l, le, ne};
    match code {
        e => ne,
        ne => e,
        b => ae,
        ae => b,
        a => be,
        be => a,
        l => ge,
        ge => l,
        g => le,
        le => g,
        _ => None,
    }
}
