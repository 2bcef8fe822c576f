//! Squares and products by a backend's kernels, where a form has the shape that they are made for.
#![forbid(unsafe_code)]

use super::Form;
use super::num::Num;
use crate::backend::generic::nudupl::State;
use crate::backend::{Broad, Middle, Narrow};
use crate::discriminant::Discriminant;

/// Shorter discriminants are left to the general code.
const LEAST_BITS: usize = 200;
/// c may be longer than half the discriminant by so many bits: then no number of a kernel leaves the room made for it.
const IMBALANCE: usize = 48;

fn state<const N: usize, const C: usize>(form: &Form) -> State<N, C> {
    fn limbs<const K: usize>(x: &Num) -> [u64; K] {
        let mut out = [0; K];
        out[..x.len()].copy_from_slice(x.magnitude());
        out
    }
    State { a: limbs(&form.a), b: limbs(&form.b), negative: form.b.is_negative(), c: limbs(&form.c) }
}

fn form<const N: usize, const C: usize>(state: &State<N, C>) -> Form {
    let mut out = Form {
        a: Num::from_limbs(false, &state.a),
        b: Num::from_limbs(state.negative, &state.b),
        c: Num::from_limbs(false, &state.c),
    };
    // Kernels stop at |b| <= a.
    out.reduce();
    out
}

/// Where rows of Euclid's algorithm stop. A quarter of the length would balance them; a few bits more often save a step.
fn stop(d: &Discriminant) -> usize {
    d.bits().div_ceil(4) + 5
}

fn fits(x: &Form, d: &Discriminant) -> bool {
    d.bits() >= LEAST_BITS && x.c.bits() <= d.bits() / 2 + IMBALANCE
}

/// The form squared up to n > 0 times, and how often, if a kernel does it once at least.
pub(super) fn squares(x: &Form, n: u64, d: &Discriminant) -> Option<(Form, u64)> {
    if !fits(x, d) {
        return None;
    }
    let (engine, stop) = (d.engine(), stop(d));
    let (square, done) = match d.bits() {
        ..=512 => {
            let mut x: Narrow = state(x);
            let done = engine.narrow(&mut x, stop, n);
            (form(&x), done)
        }
        513..=1024 => {
            let mut x: Middle = state(x);
            let done = engine.middle(&mut x, stop, n);
            (form(&x), done)
        }
        _ => {
            let mut x: Broad = state(x);
            let done = engine.broad(&mut x, stop, n);
            (form(&x), done)
        }
    };
    (done > 0).then_some((square, done))
}

/// The product, if a kernel finds it.
pub(super) fn compose(x: &Form, y: &Form, d: &Discriminant) -> Option<Form> {
    if !fits(x, d) || !fits(y, d) {
        return None;
    }
    let (engine, stop) = (d.engine(), stop(d));
    match d.bits() {
        ..=512 => engine.compose_narrow(&state(x), &state(y), stop).map(|z| form(&z)),
        513..=1024 => engine.compose_middle(&state(x), &state(y), stop).map(|z| form(&z)),
        _ => engine.compose_broad(&state(x), &state(y), stop).map(|z| form(&z)),
    }
}
