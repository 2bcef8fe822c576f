//! What a warp's accesses ask of memories: wavefronts of shared memory, sectors of device memory.
//!
//! Shared memory has 32 banks of four bytes. A wavefront gives a word of each bank, to all lanes that want it. Accesses of eight bytes
//! go by half warps, of 16 by quarters; by whole warps and by halves, where lanes want the same in pairs (each lane and its neighbour, or
//! each and the one after that). Sources: CUDA C++ Programming Guide, "Shared Memory" of compute capabilities 5.x to 9.x; halves, quarters
//! and pairs are NVIDIA's answer in its forum (thread 77228), assumed for 8.9 and 9.0. An H100's counter agrees for `lower`, whose lanes
//! all want one address.
#![forbid(unsafe_code)]

use std::collections::HashMap;

use super::execute::each;
use super::program::{Code, Kind};
use super::warp::{LANES, Longs};
use crate::backend::hosted::{Accesses, Traffic};

const BANKS: usize = 32;
const WORD: u64 = 4;
const SECTOR: u64 = 32;

/// The different ones of up to 128 numbers.
fn distinct(of: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut all: Vec<u64> = of.collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The words of an access.
fn words(addresses: &Longs, lanes: u32, bytes: u64) -> Vec<u64> {
    let last = |address: u64| (address + bytes - 1) / WORD;
    distinct(each(lanes).flat_map(|lane| addresses[lane] / WORD..=last(addresses[lane])))
}

/// Wavefronts for these words: as many as the bank with the most has.
fn of_banks(words: &[u64]) -> u64 {
    let mut wanted = [0; BANKS];
    words.iter().for_each(|word| wanted[*word as usize % BANKS] += 1);
    wanted.into_iter().max().unwrap_or(0)
}

/// An access of so many bytes of shared memory by each of the lanes.
pub(super) fn shared(traffic: &mut Traffic, addresses: &Longs, lanes: u32, bytes: u64) {
    let in_pairs = |by: usize| {
        each(lanes).all(|lane| lanes >> (lane ^ by) & 1 == 0 || addresses[lane] == addresses[lane ^ by])
    };
    let turns = (bytes.max(WORD) / WORD) as usize;
    let turns = if turns > 1 && (in_pairs(1) || in_pairs(2)) { turns / 2 } else { turns };
    let together = LANES / turns;
    let part = u32::MAX >> (LANES - together);
    traffic.shared += 1;
    for first in (0..LANES).step_by(together) {
        let words = words(addresses, lanes & part << first, bytes);
        traffic.wavefronts += of_banks(&words);
        traffic.least_wavefronts += words.len().div_ceil(BANKS) as u64;
    }
}

/// An atomic operation on a word of shared memory: lanes with one word go one after the other.
pub(super) fn atomic(traffic: &mut Traffic, addresses: &Longs, lanes: u32) {
    let all: Vec<u64> = each(lanes).map(|lane| addresses[lane] / WORD).collect();
    traffic.shared += 1;
    traffic.wavefronts += of_banks(&all);
    traffic.least_wavefronts += all.len().div_ceil(BANKS) as u64;
}

/// An access of so many bytes of device memory, aligned, by each of the lanes.
pub(super) fn global(traffic: &mut Traffic, addresses: &Longs, lanes: u32, bytes: u64) {
    traffic.global += 1;
    traffic.sectors += distinct(each(lanes).map(|lane| addresses[lane] / SECTOR)).len() as u64;
    let places = distinct(each(lanes).map(|lane| addresses[lane])).len() as u64;
    traffic.least_sectors += (places * bytes).div_ceil(SECTOR);
}

/// The instructions that access memories, from the executions of each line and what they asked for.
pub(super) fn accesses(code: &Code, by_line: &HashMap<u32, (u64, Traffic)>) -> Vec<Accesses> {
    let name = |kind| {
        Some(match kind {
            Kind::LoadShared => "LDS",
            Kind::StoreShared => "STS",
            Kind::AtomicXorShared => "ATOMS",
            Kind::LoadGlobal => "LDG",
            Kind::StoreGlobal => "STG",
            _ => return None,
        })
    };
    let mut all: Vec<_> = code.insts.iter().filter_map(|i| Some((i.line, name(i.kind)?))).collect();
    all.sort_unstable();
    let of = |(line, name)| {
        let (times, traffic) = by_line.get(&line).copied().unwrap_or_default();
        Accesses { name, times, traffic }
    };
    all.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wavefronts(bytes: u64, lanes: u32, address: impl Fn(u64) -> u64) -> (u64, u64) {
        let mut traffic = Traffic::default();
        shared(&mut traffic, &core::array::from_fn(|lane| address(lane as u64)), lanes, bytes);
        assert_eq!(traffic.shared, 1);
        (traffic.wavefronts, traffic.least_wavefronts)
    }

    #[test]
    fn banks_give_a_word_each() {
        const ALL: u32 = u32::MAX;
        // Neighbours, one word for all, and every second, fourth and 32nd word.
        assert_eq!(wavefronts(4, ALL, |lane| 4 * lane), (1, 1));
        assert_eq!(wavefronts(4, ALL, |_| 64), (1, 1));
        assert_eq!(wavefronts(4, ALL, |lane| 8 * lane), (2, 1));
        assert_eq!(wavefronts(4, ALL, |lane| 16 * lane), (4, 1));
        assert_eq!(wavefronts(4, ALL, |lane| 128 * lane), (32, 1));
        // An odd distance has no conflict; nor have bytes of one word.
        assert_eq!(wavefronts(4, ALL, |lane| 132 * lane), (1, 1));
        assert_eq!(wavefronts(1, ALL, |lane| lane), (1, 1));
        // Lanes that are not there want nothing.
        assert_eq!(wavefronts(4, 0b11, |lane| 128 * lane), (2, 1));
        // Wide accesses take turns.
        assert_eq!(wavefronts(8, ALL, |lane| 8 * lane), (2, 2));
        assert_eq!(wavefronts(16, ALL, |lane| 16 * lane), (4, 4));
        assert_eq!(wavefronts(16, ALL, |lane| 32 * lane), (8, 4));
        // Half as many where neighbours, or next neighbours, want the same; all lanes must.
        assert_eq!(wavefronts(8, ALL, |lane| 8 * (lane / 2)), (1, 1));
        assert_eq!(wavefronts(16, ALL, |lane| 16 * (lane / 2)), (2, 2));
        assert_eq!(wavefronts(16, ALL, |lane| 16 * (lane & !2)), (4, 2));
        assert_eq!(wavefronts(16, ALL, |_| 64), (2, 2));
        assert_eq!(wavefronts(16, 0x101, |_| 64), (1, 1));
        assert_eq!(wavefronts(16, ALL, |lane| if lane < 31 { 64 } else { 128 }), (4, 4));
    }

    #[test]
    fn atomic_lanes_of_a_word_take_turns() {
        let mut traffic = Traffic::default();
        atomic(&mut traffic, &[0; LANES], u32::MAX);
        atomic(&mut traffic, &core::array::from_fn(|lane| 4 * lane as u64), u32::MAX);
        assert_eq!((traffic.shared, traffic.wavefronts, traffic.least_wavefronts), (2, 33, 2));
    }

    #[test]
    fn sectors_have_32_bytes() {
        let sectors = |bytes, address: fn(u64) -> u64| {
            let mut traffic = Traffic::default();
            global(&mut traffic, &core::array::from_fn(|lane| address(lane as u64)), u32::MAX, bytes);
            (traffic.global, traffic.sectors, traffic.least_sectors)
        };
        assert_eq!(sectors(4, |lane| 4 * lane), (1, 4, 4));
        assert_eq!(sectors(4, |lane| 16 + 4 * lane), (1, 5, 4));
        assert_eq!(sectors(4, |_| 64), (1, 1, 1));
        assert_eq!(sectors(16, |lane| 32 * lane), (1, 32, 16));
        assert_eq!(sectors(1, |lane| 40 * lane), (1, 32, 1));
    }
}
