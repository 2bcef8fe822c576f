//! The least core cycles that a backend takes: for a byte in bulk, and for a block that waits for the one before it.
//!
//! A figure here is arithmetic, not a measurement. In bulk it is the round's operations divided by those that a core
//! starts in a cycle; in a chain it is the latencies of the operations that wait for each other. Transpositions, loads,
//! stores and calls are not counted. Each kernel's file derives its counts. With a frequency, such as the laboratory's
//! calibration, a floor gives a rate that no run can exceed.
#![forbid(unsafe_code)]

/// The operations that a core starts in a cycle, on registers of 256 and of 512 bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ports {
    /// The design.
    pub name: &'static str,
    /// Vector operations of any kind on 256 bits.
    pub any256: f64,
    /// Of these, shuffles, shifts and rotations.
    pub shuffle256: f64,
    /// Vector operations of any kind on 512 bits.
    pub any512: f64,
    /// Of these, shuffles, shifts and rotations.
    pub shuffle512: f64,
}

/// AMD's fourth generation, which runs 512 bits as two halves.
pub const ZEN4: Ports = Ports { name: "Zen 4", any256: 4.0, shuffle256: 2.0, any512: 2.0, shuffle512: 1.0 };

/// AMD's fifth generation in servers and desktops, whose pipes are 512 bits wide.
pub const ZEN5: Ports = Ports { name: "Zen 5", any256: 4.0, shuffle256: 2.0, any512: 4.0, shuffle512: 2.0 };

impl Ports {
    /// The ports of a CPU by its vendor, family and model, as CPUID gives them with the extended parts included; `None`
    /// for designs that are not listed here.
    #[must_use]
    pub fn of(vendor: &str, family: u8, model: u8) -> Option<Ports> {
        match (vendor, family, model) {
            ("AuthenticAMD", 25, 0x10..=0x1f | 0x60..=0xaf) => Some(ZEN4),
            // The mobile parts 0x20 to 0x3f and 0x60 to 0x7f of this family have the narrow pipes of the fourth.
            ("AuthenticAMD", 26, 0x00..=0x1f | 0x40..=0x4f) => Some(ZEN5),
            _ => None,
        }
    }
}

/// One round of a backend's bulk kernel: its operations for `bytes` bytes of text.
struct Round {
    backend: &'static str,
    wide: bool,
    bytes: f64,
    operations: f64,
    shuffles: f64,
}

/// Rounds of a block.
pub const ROUNDS: f64 = 32.0;

/// Counted by hand, for some rows of `BACKENDS`; the others were not counted. `portable` cannot be here: the compiler
/// chooses its operations.
const BULK: &[Round] = &[
    // 12 operations a register, four registers for 32 blocks: 12 shuffles, 4 shifts, 2 saturating subtractions.
    Round { backend: "avx2", wide: false, bytes: 256.0, operations: 48.0, shuffles: 18.0 },
    // One operation in twelve less: GFNI extracts the high nibble by one.
    Round { backend: "avx2-gfni", wide: false, bytes: 256.0, operations: 44.0, shuffles: 18.0 },
    // 12 operations for the addition, 20 for the look-ups and 8 for the sums.
    Round { backend: "avx512bw", wide: true, bytes: 512.0, operations: 40.0, shuffles: 12.0 },
    // 143 `vpternlog` for 512 blocks.
    Round { backend: "avx512-bitslice", wide: true, bytes: 4096.0, operations: 143.0, shuffles: 0.0 },
    // Eight operations for 16 blocks: rotation, shift and two permutations among them.
    Round { backend: "avx512", wide: true, bytes: 128.0, operations: 8.0, shuffles: 4.0 },
];

/// The least core cycles for a byte in bulk, or `None` for a backend whose operations were not counted.
#[must_use]
pub fn cycles_per_byte(backend: &str, ports: &Ports) -> Option<f64> {
    let round = BULK.iter().find(|round| round.backend == backend)?;
    let (any, shuffle) =
        if round.wide { (ports.any512, ports.shuffle512) } else { (ports.any256, ports.shuffle256) };
    Some(ROUNDS * (round.operations / any).max(round.shuffles / shuffle) / round.bytes)
}

/// The latency of a round in Zen 4's cycles, for rows whose file derives it.
const CHAINS: &[(&str, f64)] = &[("avx512bw", 11.0), ("avx512", 10.0)];

/// The least core cycles from one block of a chain to the next, as in CFB's encryption and in OMAC, or `None` where the
/// latencies were not counted.
#[must_use]
pub fn cycles_per_chained_block(backend: &str, ports: &Ports) -> Option<f64> {
    let (_, round) = CHAINS.iter().find(|(name, _)| *name == backend && *ports == ZEN4)?;
    Some(ROUNDS * round)
}

/// The most bytes a second at a frequency in GHz.
#[must_use]
pub fn bytes_per_second(backend: &str, ports: &Ports, ghz: f64) -> Option<f64> {
    Some(ghz * 1e9 / cycles_per_byte(backend, ports)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::BACKENDS;

    fn close(a: Option<f64>, b: f64) -> bool {
        a.is_some_and(|a| (a - b).abs() < 1e-3 * b)
    }

    #[test]
    fn floors_are_those_that_the_kernels_derive() {
        assert!(close(cycles_per_byte("avx512", &ZEN5), 0.5));
        assert!(close(cycles_per_byte("avx512", &ZEN4), 1.0));
        assert!(close(cycles_per_byte("avx2", &ZEN5), 1.5));
        assert!(close(cycles_per_byte("avx2", &ZEN4), 1.5));
        assert!(close(cycles_per_byte("avx2-gfni", &ZEN4), 1.375));
        assert!(close(cycles_per_byte("avx512bw", &ZEN4), 1.25));
        assert!(close(cycles_per_byte("avx512-bitslice", &ZEN4), 0.5586));
        assert_eq!(cycles_per_byte("portable", &ZEN4), None);
        assert!(close(cycles_per_chained_block("avx512", &ZEN4), 320.0));
        assert_eq!(cycles_per_chained_block("avx512", &ZEN5), None);
        assert!(close(bytes_per_second("avx512", &ZEN5, 3.75), 7.5e9));
    }

    #[test]
    fn every_count_is_of_a_row() {
        for name in BULK.iter().map(|round| round.backend).chain(CHAINS.iter().map(|(name, _)| *name)) {
            assert!(BACKENDS.iter().any(|row| row.name() == name), "{name}");
        }
    }

    #[test]
    fn cpus_are_told_apart_and_strangers_are_not_guessed() {
        assert_eq!(Ports::of("AuthenticAMD", 25, 17), Some(ZEN4));
        assert_eq!(Ports::of("AuthenticAMD", 26, 2), Some(ZEN5));
        assert_eq!(Ports::of("AuthenticAMD", 25, 0x21), None);
        assert_eq!(Ports::of("GenuineIntel", 6, 143), None);
    }
}
