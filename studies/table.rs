//! The studies that are built in. Other folders are studies too: `lanework_study::data`.
#![forbid(unsafe_code)]

use lanework_study::Entry;

/// Those without code of their own: name, `study.toml`, `study.md`.
pub static DATA: &[(&str, [&str; 2])] =
    &[("ctr-sizes", [include_str!("ctr-sizes/study.toml"), include_str!("ctr-sizes/study.md")])];

/// Those with code of their own. Each is one folder beside this file.
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
