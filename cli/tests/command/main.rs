//! The command as its users run it. One program for all of these tests: each more is compiled and linked anew.

mod common;
mod files;
mod flags_study;
mod interrupted;
mod lab;
mod magma;
mod magma_messages;
mod mayo;
mod mayo_files;
mod messages;
mod profile;
mod report;
mod residue;
mod respill;
mod respill_compiler;
mod respill_refusals;
mod respill_timing;
mod spill_study;
mod study_data;
mod vdf;
mod vdf_checkpoint;
mod vdf_client;
mod vdf_compact;
mod vdf_verify;
