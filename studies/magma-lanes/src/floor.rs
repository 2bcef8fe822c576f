//! The measured speeds, as shares of what the silicon allows.
#![forbid(unsafe_code)]

use crate::subjects::REPORT;
use lanework_magma::backend::BACKENDS;
use lanework_magma::internals::floor::{Ports, ROUNDS, cycles_per_byte};
use lanework_race::machine::Machine;
use serde::Serialize;

/// A bound beside the measured figure.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub(super) struct Share {
    pub(super) variant: String,
    pub(super) what: String,
    /// Cycles a byte, if the design's operations were counted.
    pub(super) bound: Option<f64>,
    /// Cycles a byte of the calibration chain's clock.
    pub(super) took: f64,
    pub(super) share: Option<f64>,
}

/// The clock that the core ran at: the mean of the calibration chain before and after.
pub(super) fn ghz(machine: &Machine) -> Option<f64> {
    let before = machine.calibration_before.known()?.median_ghz;
    Some(machine.calibration_after.known().map_or(before, |after| f64::midpoint(before, after.median_ghz)))
}

/// This machine's ports, if known.
pub(super) fn ports(machine: &Machine) -> Option<Ports> {
    let vendor = machine.vendor.known().map_or("", String::as_str);
    Ports::of(vendor, *machine.family.known()?, *machine.model.known()?)
}

/// The report's design, cycles a byte: 64 bytes take eight masked look-ups with a union each, six operations to part nibbles and to
/// rotate, addition and sum in each round.
fn report_bound(ports: &Ports) -> f64 {
    ROUNDS * f64::max(31.0 / ports.any256, 11.0 / ports.shuffle256) / 64.0
}

/// Every design that was measured, its speed given in nanoseconds a byte.
pub(super) fn shares(ports: &Ports, ghz: f64, ns_per_byte: impl Fn(&str) -> Option<f64>) -> Vec<Share> {
    let report = (REPORT, "eight look-ups and masks a round, of which each counts for one byte in four");
    std::iter::once(report)
        .chain(BACKENDS.iter().map(|row| (row.name(), row.summary())))
        .filter_map(|(variant, what)| {
            let took = ns_per_byte(variant)? * ghz;
            let bound =
                if variant == REPORT { Some(report_bound(ports)) } else { cycles_per_byte(variant, ports) };
            let (variant, what) = (variant.to_owned(), what.to_owned());
            Some(Share { variant, what, bound, took, share: bound.map(|bound| bound / took) })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanework_magma::internals::floor::{ZEN4, ZEN5};

    #[test]
    fn every_design_is_shown_with_its_bound_or_without_one() {
        // 0.2 ns a byte at 3.75 GHz is 0.75 cycles.
        let zen5 = shares(&ZEN5, 3.75, |_| Some(0.2));
        assert_eq!(zen5.len(), 1 + BACKENDS.len());
        let share = zen5.iter().find(|s| s.variant == "avx512").unwrap();
        assert!((share.took - 0.75).abs() < 1e-9 && (share.share.unwrap() - 0.5 / 0.75).abs() < 1e-9);
        let uncounted = zen5.iter().find(|s| s.variant == "portable").unwrap();
        assert_eq!((uncounted.bound, uncounted.share), (None, None));
        assert!(shares(&ZEN4, 1.0, |_| None).is_empty());
        assert!((report_bound(&ZEN4) - 3.875).abs() < 1e-9);
    }
}
