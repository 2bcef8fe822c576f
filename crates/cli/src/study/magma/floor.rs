//! The least time that the silicon allows, from counts of operations.
//!
//! A design's bound is the number of vector instructions of a round, divided by how many of them the core starts in a cycle. Only
//! this counts: loads, stores and waiting come on top of it in any real program. Where a design also changes the layout of its blocks, that is
//! in the bound too.
#![forbid(unsafe_code)]

use lanework_lab::machine::Machine;
use serde::Serialize;

/// How many vector instructions the core starts in a cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Core {
    /// Of 256 bits.
    ymm: f64,
    /// Of 512 bits.
    zmm: f64,
    /// Whether the figures are this core's own, and not a guess from its vendor.
    pub(super) known: bool,
    pub(super) name: &'static str,
}

impl Core {
    /// By CPUID's vendor and family. AMD's optimisation guides: four vector pipes since Zen; of 512 bits in Zen 5, two
    /// halves of 256 in Zen 4. Others are taken as Intel's servers: three pipes of 256 bits, two of 512.
    pub(super) fn of(vendor: &str, family: u8) -> Core {
        match (vendor, family) {
            ("AuthenticAMD", 26) => {
                Core { ymm: 4.0, zmm: 4.0, known: true, name: "Zen 5: four of 512 bits a cycle" }
            }
            ("AuthenticAMD", 25) => Core {
                ymm: 4.0,
                zmm: 2.0,
                known: true,
                name: "Zen 3 and 4: four of 256 bits a cycle, or two of 512",
            },
            ("AuthenticAMD", 23) => {
                Core { ymm: 4.0, zmm: 2.0, known: true, name: "Zen 2: four of 256 bits a cycle" }
            }
            _ => Core {
                ymm: 3.0,
                zmm: 2.0,
                known: false,
                name: "taken as three of 256 bits a cycle, or two of 512",
            },
        }
    }

    pub(super) fn here(machine: &Machine) -> Core {
        let vendor = machine.vendor.known().map_or("", String::as_str);
        Core::of(vendor, machine.family.known().copied().unwrap_or(0))
    }
}

/// A design, and the instructions of its round.
struct Design {
    variant: &'static str,
    /// Vector instructions for a round of `blocks` blocks.
    round: f64,
    /// And once for those blocks, into its layout and back.
    once: f64,
    blocks: f64,
    wide: bool,
    what: &'static str,
}

/// 32 rounds each. `report-avx2`: 8 look-ups, 8 masks and 7 unions, 3 to part nibbles, 3 to rotate, an addition and an exclusive or. `avx2`: 12 instructions a register, of which a half of 32 blocks is four; 0.13 cycles a byte at four a cycle for the
/// transpositions. `avx512`: the round of eight instructions for 16 blocks.
const DESIGNS: [Design; 4] = [
    Design {
        variant: "report-avx2",
        round: 31.0,
        once: 8.0,
        blocks: 8.0,
        wide: false,
        what: "eight look-ups and masks a round, of which each counts for one byte in four",
    },
    Design {
        variant: "avx2",
        round: 48.0,
        once: 133.0,
        blocks: 32.0,
        wide: false,
        what: "byte planes: a look-up serves 32 bytes",
    },
    Design {
        variant: "avx2-gfni",
        round: 44.0,
        once: 133.0,
        blocks: 32.0,
        wide: false,
        what: "the same with GFNI parting nibbles",
    },
    Design {
        variant: "avx512",
        round: 8.0,
        once: 8.0,
        blocks: 16.0,
        wide: true,
        what: "the round of eight instructions, two of them look-ups in 64 bytes",
    },
];

/// A bound beside what was measured.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub(super) struct Share {
    pub(super) variant: String,
    pub(super) what: String,
    /// Cycles a byte.
    pub(super) bound: f64,
    /// Cycles a byte of the calibration chain's clock.
    pub(super) took: f64,
    pub(super) share: f64,
}

/// The clock that the core ran at: the mean of the calibration chain before and after.
pub(super) fn ghz(machine: &Machine) -> Option<f64> {
    let before = machine.calibration_before.known()?.median_ghz;
    Some(machine.calibration_after.known().map_or(before, |after| f64::midpoint(before, after.median_ghz)))
}

/// Every design that was measured, its speed given in nanoseconds a byte.
pub(super) fn shares(core: Core, ghz: f64, ns_per_byte: impl Fn(&str) -> Option<f64>) -> Vec<Share> {
    DESIGNS
        .iter()
        .filter_map(|d| {
            let took = ns_per_byte(d.variant)? * ghz;
            let bound =
                (32.0 * d.round + d.once) / (if d.wide { core.zmm } else { core.ymm }) / (8.0 * d.blocks);
            let (variant, what) = (d.variant.to_owned(), d.what.to_owned());
            Some(Share { variant, what, bound, took, share: bound / took })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_follow_from_the_counts() {
        let zen5 = shares(Core::of("AuthenticAMD", 26), 3.75, |_| Some(0.2));
        let bound = |list: &[Share], name: &str| list.iter().find(|s| s.variant == name).unwrap().bound;
        // 8 instructions for 16 blocks and 32 rounds: 64 cycles for 128 bytes, and the way in and out.
        assert!((bound(&zen5, "avx512") - (64.0 + 2.0) / 128.0).abs() < 1e-9);
        assert!((bound(&zen5, "avx2") - 1.63).abs() < 0.001);
        let zen4 = shares(Core::of("AuthenticAMD", 25), 3.75, |_| Some(0.2));
        assert!((bound(&zen4, "avx512") / bound(&zen5, "avx512") - 2.0).abs() < 1e-9);
        assert_eq!(bound(&zen4, "avx2"), bound(&zen5, "avx2"));
        // 0.2 ns a byte at 3.75 GHz is 0.75 cycles.
        let share = zen5.iter().find(|s| s.variant == "avx512").unwrap();
        assert!((share.took - 0.75).abs() < 1e-9 && (share.share - share.bound / 0.75).abs() < 1e-9);
        assert!(!Core::of("GenuineIntel", 6).known);
        assert!(shares(Core::of("", 0), 1.0, |_| None).is_empty());
    }
}
