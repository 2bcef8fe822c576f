#![no_main]
//! One of the targets of `lanework-fuzz`, for libFuzzer.

libfuzzer_sys::fuzz_target!(|data: &[u8]| lanework_fuzz::run("peers_vdf", data));
