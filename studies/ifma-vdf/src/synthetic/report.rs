//! The report's figures. They are facts.
#![forbid(unsafe_code)]

/// The report's figures for a line: shares in percent and ticks for a thousand iterations.
pub(crate) type Laptop = &'static [(u32, u64)];

/// A line of the report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Original {
    /// Bits of an operand.
    pub bits: usize,
    /// What a line does, as in the report's names.
    pub what: &'static str,
    /// Its figures.
    pub laptop: Laptop,
}

const fn original(bits: usize, what: &'static str, laptop: Laptop) -> Original {
    Original { bits, what, laptop }
}

/// The report's lines: an HP notebook 14-dq1045cl, whose core has one 512-bit port, turbo off.
pub(crate) const REPORT: [Original; 16] = [
    original(512, "to_avx512", &[(99, 11_719), (0, 22_699), (0, 40_319)]),
    original(512, "add_avx512", &[(99, 28_838), (0, 36_706)]),
    original(512, "add_to_gmp", &[(100, 19_118)]),
    original(512, "add_gmp", &[(99, 28_084), (0, 37_884)]),
    original(512, "mul_avx512", &[(100, 67_262)]),
    original(512, "mul_to_gmp", &[(99, 24_376), (0, 35_036)]),
    original(512, "mul_avx512_gmp", &[(100, 180_744)]),
    original(512, "mul_gmp", &[(100, 207_191)]),
    original(1024, "to_avx512", &[(99, 16_981), (0, 46_808)]),
    original(1024, "add_avx512", &[(99, 41_645), (0, 72_434)]),
    original(1024, "add_to_gmp", &[(99, 24_406), (0, 55_040)]),
    original(1024, "add_gmp", &[(99, 37_362), (0, 66_657)]),
    original(1024, "mul_avx512", &[(100, 175_146)]),
    original(1024, "mul_to_gmp", &[(99, 36_454), (0, 69_371)]),
    original(1024, "mul_avx512_gmp", &[(100, 300_046)]),
    original(1024, "mul_gmp", &[(100, 676_242)]),
];
