//! The studies that have code of their own. Folders without code are studies too: `lanework_study::data`.
#![forbid(unsafe_code)]

use lanework_study::Entry;

/// Each is one folder beside this file.
pub static STUDIES: &[Entry] = &[
    study_codegen_flags::ENTRY,
    study_ifma_vdf::ENTRY,
    study_leak_evidence::ENTRY,
    study_lab_self_check::ENTRY,
    study_magma_lanes::ENTRY,
    study_mayo_gpu::ENTRY,
    study_mayo_simd_threads::ENTRY,
    study_spill_homes::ENTRY,
];
