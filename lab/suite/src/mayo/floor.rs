//! The least time that the silicon allows for an operation of MAYO, from counts of operations and never from a clock.
//!
//! Counted are the multiplications of m-vectors, which the design of the crate derives for each operation, at the rate of each
//! backend's one loop over them, and the rounds of AES that expand a compact key. Either is a bound by itself, and the larger is the
//! floor. Not counted: SHAKE, solving, loads, stores, and that both need the same pipes.
#![forbid(unsafe_code)]

use lanework_magma::internals::floor::Ports;
use lanework_mayo::Params;
use lanework_race::machine::Machine;
use lanework_race::record::ResultRow;

/// Instructions of AES on a block: two of the ten come from a table where the stream is long.
const AES: f64 = 8.0;

/// Multiplications of an m-vector by a constant, and whether P1 and P2 are expanded on the way.
fn counts(p: &Params, operation: &str) -> Option<(usize, bool)> {
    let (n, o, k, v) = (p.n(), p.o(), p.k(), p.v());
    let triangle = |n: usize| n * (n + 1) / 2;
    Some(match operation {
        "keygen" => (triangle(v) * o + v * o * o, true),
        // By whichever of the two ways takes fewer: rows and columns of P1, or U and X.
        "sign" => (triangle(v) * (k + o.min(k)) + 2 * v * o * k + v * k * k, true),
        "sign-expanded" => (triangle(v) * k + v * o * k + v * k * k, false),
        "verify" => (triangle(n) * k + n * k * k, true),
        "expand-public" => (0, true),
        _ => return None,
    })
}

/// Core cycles.
fn cycles(p: &Params, operation: &str, backend: &str, ports: &Ports) -> Option<f64> {
    let (products, expanded) = counts(p, operation)?;
    // Both of AMD's designs start byte shuffles, affine maps and instructions of AES at the same rate. A shuffle serves 64 elements,
    // an affine map 4 for each byte. `blocks` is the blocks of AES that a register holds.
    let (elements, blocks, rate) = match backend {
        "avx2" => (64.0, 1.0, ports.shuffle256),
        "avx2-vaes" => (64.0, 2.0, ports.shuffle256),
        "avx2-gfni" => (128.0, 2.0, ports.shuffle256),
        "avx512" => (256.0, 4.0, ports.shuffle512),
        _ => return None,
    };
    let multiplying = (products * p.m()) as f64 / elements / rate;
    let aes = if expanded { p.p12_bytes() as f64 / 16.0 * AES / blocks / rate } else { 0.0 };
    Some(multiplying.max(aes)).filter(|c| *c > 0.0)
}

/// The floor of a row, in nanoseconds.
pub(crate) fn floor(row: &ResultRow, machine: &Machine) -> Option<f64> {
    // A batch under one key expands it once.
    if row.cores != 1 || row.variant != row.backend {
        return None;
    }
    let (set, operation) = row.subject.strip_prefix("mayo/")?.rsplit_once('/')?;
    let params = Params::all().find(|p| p.path() == set)?;
    let ports = Ports::of(machine.vendor.known()?, *machine.family.known()?, *machine.model.known()?)?;
    // The chain before the races: the one after them is not made yet.
    let ghz = machine.calibration_before.known()?.median_ghz;
    Some(cycles(params, operation, &row.backend, &ports)? / ghz)
}

#[cfg(test)]
mod tests {
    use lanework_magma::internals::floor::{ZEN4, ZEN5};
    use lanework_mayo::{Round, Set};

    use super::*;

    /// The kernels' own derivation, in thousands of ticks of 1.42 core cycles, sets 1, 2, 3, 5 of round 2.
    #[test]
    fn multiplying_is_what_the_kernels_derive() {
        let sets = [Set::Mayo1, Set::Mayo2, Set::Mayo3, Set::Mayo5];
        let derived = [("keygen", [6.3, 9.5, 20.7, 55.5]), ("verify", [9.9, 2.6, 27.2, 64.4])];
        for (operation, ticks) in derived {
            for (set, ticks) in sets.into_iter().zip(ticks) {
                let p = Params::of(Round::Two, set);
                let (products, _) = counts(p, operation).expect("counted");
                let ours = (products * p.m()) as f64 / 256.0 / 1.42 / 1000.0;
                assert!((ours / ticks - 1.0).abs() < 0.02, "{set} {operation}: {ours} against {ticks}");
            }
        }
    }

    #[test]
    fn the_larger_bound_is_the_floor_and_an_uncounted_operation_has_none() {
        let p = Params::of(Round::Three, Set::Mayo1);
        let of = |operation, backend, ports| cycles(p, operation, backend, ports);
        let aes = p.p12_bytes() as f64 / 16.0 * 8.0;
        assert_eq!(of("expand-public", "avx2", &ZEN4), Some(aes / 2.0));
        assert_eq!(of("expand-public", "avx512", &ZEN4), Some(aes / 4.0));
        assert_eq!(of("expand-public", "avx512", &ZEN5), Some(aes / 8.0));
        for operation in ["keygen", "sign", "verify"] {
            let [slow, fast] = ["avx2", "avx512"].map(|b| of(operation, b, &ZEN4).expect("counted"));
            assert!(slow > fast && fast >= aes / 4.0, "{operation}");
        }
        assert!(of("sign-expanded", "avx512", &ZEN4) < of("sign", "avx512", &ZEN4));
        assert_eq!(of("verify", "portable", &ZEN4), None);
        assert_eq!(of("verify-expanded", "avx512", &ZEN4), None);
    }

    #[test]
    fn every_vector_backend_has_a_rate() {
        let p = Params::of(Round::Three, Set::Mayo1);
        for backend in lanework_mayo::internals::BACKENDS {
            let floor = cycles(p, "keygen", backend.name(), &ZEN4);
            assert_eq!(floor.is_some(), backend.name() != "portable", "{}", backend.name());
        }
    }
}
