//! What the shipped kernels ask of memories, counted where their PTX is executed: `src/kernels/traffic.toml`.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lanework_cuda::{Accesses, Control, Device, Emulation, Launched, Traffic};
use lanework_mayo::{Params, PublicKey, Round, Set, Signature};

use super::{Batch, OPTIONS, on};
use crate::{Expand, GpuSigners, GpuVerifiers, Multiply, Options, Ring};

/// The size of the smaller batch. The other has twice as many, and the difference is the traffic of this many operations. Blocks and
/// warps are full in both, also where one takes four signatures of a key.
const OPERATIONS: usize = 4;

const TABLE: &str = "traffic.toml";

const HEADER: &str = "\
# What four operations ask of memories: accesses of warps to shared memory and their wavefronts, accesses to device memory and their sectors;
# `least` if no bank had a conflict, and if bytes lay side by side. What a block does once for all its operations is left out. `accesses` are
# the instructions of the text in its order, in runs: how many, the name in machine code, and the wavefronts or sectors of one execution, by
# the mean; - if none was executed. Counted in the PTX which ships; this writes the file, and without LANEWORK_BLESS compares it:
# LANEWORK_BLESS=1 LANEWORK_PTX=all cargo test --release -p lanework-mayo-cuda --features emulated,ptx --lib traffic
";

/// The launch of each kernel that asked for most: it was of all operations, where others test the device or try again.
fn launches(
    params: &'static Params,
    options: Options,
    count: usize,
    plant: &dyn Fn(&Control),
) -> BTreeMap<String, Launched> {
    let how = Emulation { shared_per_block: 227 << 10, ..Emulation::default() };
    let (device, control) = Device::ptx(how);
    plant(&control);
    let (gpu, control) = on((device, control), options);
    gpu.test(params).unwrap();
    control.count();
    let batch = Batch::new(params, count);
    let tested = control.launched().len();
    let (public, _): (Vec<PublicKey>, _) = gpu.keygen(&batch.keys).unwrap();
    let (signed, _) = batch.sign(&gpu, GpuSigners::Each(&batch.keys));
    let held = gpu.expand_secret(&batch.keys).unwrap();
    let each: Vec<usize> = (0..count).collect();
    batch.sign(&gpu, GpuSigners::Of(&held, &each));
    let signatures: Vec<Signature> = signed.into_iter().map(Result::unwrap).collect();
    let verifying = gpu.expand_public(&public).unwrap();
    for verifiers in
        [GpuVerifiers::Each(&public), GpuVerifiers::Of(&verifying, &each), GpuVerifiers::One(&verifying)]
    {
        gpu.verify(verifiers, &batch.messages, &signatures).unwrap();
    }
    let asked = |launched: &Launched| launched.traffic.shared + launched.traffic.global;
    let mut most: BTreeMap<String, Launched> = BTreeMap::new();
    for launched in control.launched().into_iter().skip(tested) {
        let name = launched.kernel.clone();
        if most.get(&name).is_none_or(|one| asked(one) < asked(&launched)) {
            most.insert(name, launched);
        }
    }
    most
}

/// The ways that have kernels of their own.
const WAYS: [(Expand, Multiply); 3] =
    [(Expand::Alone, Multiply::Masks), (Expand::Alone, Multiply::Bits), (Expand::Fused, Multiply::Masks)];

/// Instructions in the table: runs of the same name that ask for the same, each of them executed once.
fn rows(all: &[Accesses]) -> String {
    let each = all.iter().map(|one| {
        let of = if one.name.ends_with('G') { one.traffic.sectors } else { one.traffic.wavefronts };
        // In hundredths, by the mean.
        (one.name, (one.times > 0).then(|| (100 * of + one.times / 2) / one.times))
    });
    let mut runs: Vec<((&str, Option<u64>), usize)> = Vec::new();
    for one in each {
        match runs.last_mut() {
            Some((same, count)) if *same == one => *count += 1,
            _ => runs.push((one, 1)),
        }
    }
    let run = |((name, mean), count): ((&str, Option<u64>), usize)| {
        let mean = mean.map_or("-".to_owned(), |mean| (mean as f64 / 100.0).to_string());
        format!("\"{count} {name} {mean}\"")
    };
    runs.into_iter().map(run).collect::<Vec<_>>().join(", ")
}

/// Lines of the table for a set, by kernel.
fn counted(
    params: &'static Params,
    ways: &[(Expand, Multiply)],
    plant: &dyn Fn(&Control),
) -> BTreeMap<String, String> {
    let mut lines = BTreeMap::new();
    for &(expand, multiply) in ways {
        let options =
            Options { chunk: 2 * OPERATIONS, streams: 1, ring: Ring::Whole, expand, multiply, ..OPTIONS };
        let [some, twice] = [OPERATIONS, 2 * OPERATIONS].map(|count| launches(params, options, count, plant));
        assert_eq!(some.len(), twice.len());
        for (name, few) in some {
            let Some(kernel) = name.strip_suffix(&format!("_{}", params.index())) else { continue };
            // An operation to a thread: nothing in shared memory, and no full warps here.
            if few.traffic.shared == 0 && few.blocks == twice[&name].blocks {
                continue;
            }
            let more = |of: fn(&Traffic) -> u64| of(&twice[&name].traffic) - of(&few.traffic);
            assert!(more(|t| t.global) > 0, "{name}");
            let line = format!(
                "{kernel} = {{ shared = {}, wavefronts = {}, least_wavefronts = {}, global = {}, sectors = {}, least_sectors = {}, accesses = [{}] }}\n",
                more(|t| t.shared),
                more(|t| t.wavefronts),
                more(|t| t.least_wavefronts),
                more(|t| t.global),
                more(|t| t.sectors),
                more(|t| t.least_sectors),
                rows(&twice[&name].accesses)
            );
            lines.entry(kernel.to_owned()).or_insert(line);
        }
    }
    lines
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kernels").join(TABLE)
}

/// The lines that are not in a set's section of the table.
fn differing<'a>(
    table: &str,
    params: &Params,
    lines: &'a BTreeMap<String, String>,
) -> Vec<(&'a str, &'a str)> {
    let head = format!("\n[set.{}]\n", params.index());
    let section = table.split_once(&head).map_or("", |(_, rest)| rest.split("\n\n").next().unwrap_or(rest));
    let same = |line: &str| section.lines().any(|found| found == line);
    let lines = lines.iter().map(|(kernel, line)| (kernel.as_str(), line.trim_end()));
    lines.filter(|(_, line)| !same(line)).collect()
}

/// A number in a line of the table.
fn number(line: &str, name: &str) -> u64 {
    let (_, rest) = line.split_once(&format!(" {name} = ")).unwrap();
    rest[..rest.find([',', ' ']).unwrap()].parse().unwrap()
}

/// A kernel that asks for more than before is named. Planted: one more load of shared memory at the end of verification, and the same
/// load with all lanes on one bank.
#[test]
fn a_planted_load_and_a_planted_conflict_are_not_in_the_table() {
    let table = std::fs::read_to_string(path()).unwrap();
    let params = Params::of(Round::Three, Set::Mayo2);
    let planted = |distance: u32| {
        let lines = format!(
            "mov.u32 %r1, %tid.x;\nand.b32 %r1, %r1, 31;\nmul.lo.s32 %r1, %r1, {distance};\n\
             mov.u32 %r2, lw_dynamic_shared;\nadd.s32 %r1, %r1, %r2;\nld.shared.u32 %r2, [%r1];"
        );
        let lines = counted(params, &WAYS[..1], &|control| control.plant("mayo_verify_1", &lines));
        let told: Vec<(&str, &str)> = differing(&table, params, &lines);
        let [("mayo_verify", line)] = told[..] else { panic!("{told:?}") };
        ["shared", "wavefronts", "least_wavefronts", "sectors"].map(|name| number(line, name))
    };
    let section = table.split_once("\n[set.1]\n").unwrap().1;
    let line = section.lines().find(|line| line.starts_with("mayo_verify = ")).unwrap();
    let before = ["shared", "wavefronts", "least_wavefronts", "sectors"].map(|name| number(line, name));
    // Eight warps to a block, and a slice of an operation to each block.
    let warps = (8 * OPERATIONS * crate::launch::shape::words(params)
        / crate::launch::shape::slice_words(params)) as u64;
    let more = |planted: [u64; 4]| [0, 1, 2, 3].map(|i| planted[i] - before[i]);
    assert_eq!(more(planted(4)), [warps, warps, warps, 0]);
    assert_eq!(more(planted(128)), [warps, 32 * warps, warps, 0]);
}

#[test]
fn traffic_is_as_in_the_table() {
    let path = path();
    let bless = std::env::var_os("LANEWORK_BLESS").is_some();
    let all = bless || std::env::var_os("LANEWORK_PTX").is_some_and(|depth| depth == "all");
    // Otherwise one set, its expansion and products by masks.
    let sets =
        Params::all().filter(|params| all || (params.round(), params.set()) == (Round::Three, Set::Mayo2));
    let ways = if all { &WAYS[..] } else { &WAYS[..1] };
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let mut table = format!("{HEADER}\noperations = {OPERATIONS}\n");
    assert!(bless || found.starts_with(&table));
    for params in sets {
        let head = format!("\n[set.{}]\n", params.index());
        let lines = counted(params, ways, &|_| {});
        assert!(lines.len() >= 6, "{}: {lines:?}", params.name());
        let differing = differing(&found, params, &lines);
        assert!(bless || differing.is_empty(), "{}: {differing:?}", params.name());
        table += &head;
        table.extend(lines.into_values());
    }
    if bless {
        std::fs::write(&path, table).unwrap();
    }
}
