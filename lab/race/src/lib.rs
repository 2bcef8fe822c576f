#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

pub mod affinity;
pub mod answer;
pub mod binaries;
pub mod clock;
pub mod files;
pub mod gate;
pub mod histogram;
pub mod history;
pub mod launch;
pub mod machine;
pub mod overrun;
pub mod pairing;
pub mod process;
pub mod race;
pub mod record;
pub mod report;
pub mod schedule;
pub mod stats;
pub mod study;
pub mod subject;
mod sys;
pub mod table;
pub mod text;
pub mod verdict;
