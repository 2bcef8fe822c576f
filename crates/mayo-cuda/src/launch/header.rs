//! The parameter table and the AES S-box as a C++ header, so that kernels and `lanework-mayo` cannot differ.
//!
//! The file `params.cuh` is committed; a test compares it with the text made here.
#![forbid(unsafe_code)]

use std::fmt::Write as _;

use lanework_mayo::Params;
use lanework_mayo::internals::symmetric_spec::sub_byte;

use super::shape::{slice_words, words};

fn table(out: &mut String, name: &str, values: &[u8]) {
    let _ = write!(out, "__device__ const u8 {name}[{}] = {{", values.len());
    for (i, value) in values.iter().enumerate() {
        let _ = write!(out, "{}{value}", if i % 30 == 0 { "\n    " } else { " " });
        out.push(',');
    }
    out.push_str("\n};\n");
}

fn set(out: &mut String, p: &Params) {
    let index = p.index();
    let flat: Vec<u8> = p.schedule().iter().flat_map(|&(i, j)| [i, j]).collect();
    let mut powers = vec![0; p.k() * p.k()];
    for (l, &(i, j)) in (0u8..).zip(p.schedule()) {
        powers[usize::from(i) * p.k() + usize::from(j)] = l;
        powers[usize::from(j) * p.k() + usize::from(i)] = l;
    }
    let _ = writeln!(out, "\n// {}: which pair has which power of z, and the other way round.", p.name());
    table(out, &format!("SCHEDULE_{index}"), &flat);
    table(out, &format!("POWER_{index}"), &powers);
    let sizes = [
        ("N", p.n()),
        ("M", p.m()),
        ("O", p.o()),
        ("K", p.k()),
        ("V", p.v()),
        ("PAIRS", p.pairs()),
        ("M_BYTES", p.m_bytes()),
        ("V_BYTES", p.v_bytes()),
        ("O_BYTES", p.o_bytes()),
        ("R_BYTES", p.r_bytes()),
        ("SALT_BYTES", p.salt_bytes()),
        ("DIGEST_BYTES", p.digest_bytes()),
        ("PK_BYTES", p.public_key_bytes()),
        ("SIG_BYTES", p.signature_bytes()),
        ("P1_VECS", p.p1_vecs()),
        ("P12_VECS", p.p1_vecs() + p.p2_vecs()),
        ("P3_VECS", p.p3_vecs()),
        ("TAIL0", p.tail()[0].into()),
        ("TAIL1", p.tail()[1].into()),
        ("TAIL2", p.tail()[2].into()),
        ("TAIL3", p.tail()[3].into()),
        ("WS", slice_words(p)),
        ("SLICES", words(p) / slice_words(p)),
    ];
    let _ = writeln!(out, "struct Set{index} {{");
    for (name, value) in sizes {
        let _ = writeln!(out, "    static constexpr int {name} = {value};");
    }
    let _ = writeln!(out, "    static constexpr bool LINEAR = {};", p.linear_term());
    let _ = writeln!(
        out,
        "    DEVICE u32 schedule(u32 l, int which) {{ return SCHEDULE_{index}[2 * l + which]; }}"
    );
    let _ = writeln!(out, "    DEVICE u32 power(u32 i, u32 j) {{ return POWER_{index}[i * K + j]; }}");
    out.push_str("};\n");
}

/// The header's text.
pub(crate) fn text() -> String {
    let mut out = String::from(
        "// Made from the sets of `lanework-mayo` by src/launch/header.rs; a test compares. Do not edit.\n#pragma once\n\n",
    );
    let sbox: Vec<u8> = (0..=255).map(sub_byte).collect();
    table(&mut out, "AES_SBOX", &sbox);
    Params::all().for_each(|p| set(&mut out, p));
    out.push_str("\n#define EACH_SET(stamp)");
    Params::all().for_each(|p| {
        let _ = write!(out, " stamp({})", p.index());
    });
    // One thread needs about one and a half times P there.
    out.push_str("\n#define EACH_SMALL_SET(stamp)");
    Params::all().filter(|p| p.p12_bytes() < 300_000).for_each(|p| {
        let _ = write!(out, " stamp({})", p.index());
    });
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_header_is_the_tables() {
        let same = include_str!("../kernels/params.cuh") == text();
        assert!(
            same,
            "params.cuh is stale: cargo test -p lanework-mayo-cuda --lib write_the_header -- --ignored"
        );
    }

    #[test]
    #[ignore = "writes src/kernels/params.cuh"]
    fn write_the_header() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/kernels/params.cuh");
        std::fs::write(path, text()).unwrap();
    }
}
