//! The least time that the silicon allows for a squaring, from counts of steps and never from a clock.
//!
//! A squaring's inverse and its partial GCD are chains: each step of words waits for the one before, and the GCD for the inverse. Their
//! steps at an instruction's latency are a bound whatever else runs beside. Only `avx512` is counted, in the design's own terms. Rows,
//! products, reduction, mispredicted exits and the way from one chain to the other are not counted.
#![forbid(unsafe_code)]

use lanework_magma::internals::floor::{Ports, ZEN4};
use lanework_race::machine::Machine;
use lanework_race::record::ResultRow;

/// Shifts of an inverse modulo 512 bits, two to a step: 24 windows of 31.
const SHIFTS: f64 = 24.0 * 31.0;
/// A step: a subtraction, the count of zeros (the choice is made beside it), and a shift.
const BINARY_STEP: f64 = 3.0;
/// Bits that the partial GCD takes off 512: a quarter of the discriminant's less the stop's allowance.
const BITS: f64 = 251.0;
/// What a step of nearest-integer division takes off.
const BITS_OF_A_STEP: f64 = 2.47;
/// A division of 64 bits with a small quotient on Zen 4, and a subtraction and a move behind it.
const DIVISION_STEP: f64 = 10.0 + 2.0;

/// Core cycles of a squaring, where the design and the latencies of the CPU are written down here.
fn cycles(backend: &str, ports: &Ports) -> Option<f64> {
    let counted = backend == "avx512" && *ports == ZEN4;
    counted.then_some(SHIFTS / 2.0 * BINARY_STEP + BITS / BITS_OF_A_STEP * DIVISION_STEP)
}

/// The floor of a row whose unit is a squaring, in nanoseconds. A proof's squarings are one chain, on however many cores the proof is made.
pub(crate) fn floor(row: &ResultRow, machine: &Machine) -> Option<f64> {
    let squarings = ["vdf/1024/square", "vdf/1024/prove"].contains(&row.subject.as_str());
    if !squarings {
        return None;
    }
    let ports = Ports::of(machine.vendor.known()?, *machine.family.known()?, *machine.model.known()?)?;
    // The calibration before the races: the one after them is not made yet.
    Some(cycles(&row.backend, &ports)? / machine.calibration_before.known()?.median_ghz)
}

#[cfg(test)]
mod tests {
    use lanework_magma::internals::floor::ZEN5;

    use super::*;

    #[test]
    fn the_chains_add_up_and_an_uncounted_operation_has_no_floor() {
        // 372 steps of 3, and 101.6 of 12.
        let all = cycles("avx512", &ZEN4).expect("counted");
        assert!((all - (1116.0 + 1219.4)).abs() < 1.0, "{all}");
        assert_eq!(cycles("avx512", &ZEN5), None);
        assert_eq!(cycles("adx", &ZEN4), None);
    }
}
