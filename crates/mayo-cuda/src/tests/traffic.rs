//! What the shipped kernels ask of memories, counted where their PTX is executed: `src/kernels/traffic.toml`.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::Path;

use lanework_cuda::{Device, Emulation, Launched, Traffic};
use lanework_mayo::{Params, PublicKey, Round, Set, Signature};

use super::{Batch, OPTIONS, on};
use crate::{Expand, GpuSigners, GpuVerifiers, Multiply, Options, Ring};

/// Batches of so many and of twice as many: what the second has more is that of so many operations. Blocks and warps are
/// full in both, also where one takes four signatures of a key.
const OPERATIONS: usize = 4;

const TABLE: &str = "traffic.toml";

const HEADER: &str = "\
# What four operations ask of memories: accesses of warps to shared memory and their wavefronts, accesses to device memory and their sectors;
# `least` if no bank had a conflict, and if bytes lay side by side. What a block does once for all its operations is left out. Counted in
# the PTX which ships; this writes the file, and without LANEWORK_BLESS compares it:
# LANEWORK_BLESS=1 LANEWORK_PTX=all cargo test --release -p lanework-mayo-cuda --features emulated,ptx --lib traffic
";

/// The launch of each kernel that asked for most: it was of all operations, where others test the device or try again.
fn launches(params: &'static Params, options: Options, count: usize) -> BTreeMap<String, Launched> {
    let how = Emulation { shared_per_block: 227 << 10, ..Emulation::default() };
    let (gpu, control) = on(Device::ptx(how), options);
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

/// Lines of the table for a set, by kernel.
fn counted(params: &'static Params, ways: &[(Expand, Multiply)]) -> BTreeMap<String, String> {
    let mut lines = BTreeMap::new();
    for &(expand, multiply) in ways {
        let options =
            Options { chunk: 2 * OPERATIONS, streams: 1, ring: Ring::Whole, expand, multiply, ..OPTIONS };
        let [some, twice] = [OPERATIONS, 2 * OPERATIONS].map(|count| launches(params, options, count));
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
                "{kernel} = {{ shared = {}, wavefronts = {}, least_wavefronts = {}, global = {}, sectors = {}, least_sectors = {} }}\n",
                more(|t| t.shared),
                more(|t| t.wavefronts),
                more(|t| t.least_wavefronts),
                more(|t| t.global),
                more(|t| t.sectors),
                more(|t| t.least_sectors)
            );
            lines.entry(kernel.to_owned()).or_insert(line);
        }
    }
    lines
}

#[test]
fn traffic_is_as_in_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kernels").join(TABLE);
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
        let lines = counted(params, ways);
        assert!(lines.len() >= 6, "{}: {lines:?}", params.name());
        let section =
            found.split_once(&head).map_or("", |(_, rest)| rest.split("\n\n").next().unwrap_or(rest));
        for (kernel, line) in &lines {
            assert!(bless || section.contains(line.trim_end()), "{}, {kernel}: {line}", params.name());
        }
        table += &head;
        table.extend(lines.into_values());
    }
    if bless {
        std::fs::write(&path, table).unwrap();
    }
}
