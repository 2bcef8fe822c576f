//! The AVX2 kernels, those with GFNI too, against the portable ones, phase by phase, and against the known answers.

use lanework_cpu::{Cpu, Select};

use crate::backend::Engine;
use crate::backend::operands::{ExpandSecret, Finish, Keygen, Matrices, Sign, Solve, Verify, Whip};
use crate::backend::{SLACK, SetKernels};
use crate::field::mul;
use crate::internals::known::{Library, digests, records, response, sha256_hex};
use crate::params::{Params, Sizes};
use crate::sys::{Block, bytes, bytes_mut};

/// The backend, or a printed skip; a failure if LANEWORK_REQUIRE names it.
fn named(name: &str) -> Option<Engine> {
    match Engine::choose(&Cpu::detect(), Select::Named(name)) {
        Ok(engine) => Some(engine),
        Err(why) => {
            let required = std::env::var("LANEWORK_REQUIRE").unwrap_or_default();
            assert!(!required.split(',').any(|n| n.trim() == name), "required, but {why}");
            println!("skipped: {why}");
            None
        }
    }
}

fn avx2() -> Option<Engine> {
    named("avx2")
}

/// The rows whose products differ.
fn rows() -> impl Iterator<Item = Engine> {
    ["avx2", "avx2-gfni"].into_iter().filter_map(named)
}

fn portable() -> Engine {
    Engine::portable()
}

/// Pseudorandom bytes, by splitmix64.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
    fn elements(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8 & 15).collect()
    }
    /// Blocks of arbitrary content.
    fn blocks(&mut self, len: usize) -> Vec<Block> {
        let mut out = vec![Block::ZERO; len];
        let fill = self.bytes(64 * len);
        bytes_mut(&mut out).copy_from_slice(&fill);
        out
    }
    /// Padded m-vectors of random elements.
    fn vectors(&mut self, set: &Sizes, count: usize) -> Vec<Block> {
        let mut out = vec![Block::ZERO; SetKernels::padded_blocks(set, count)];
        for slot in bytes_mut(&mut out).chunks_exact_mut(SetKernels::stride(set)) {
            slot[..set.m_bytes()].copy_from_slice(&self.bytes(set.m_bytes()));
        }
        out
    }
}

/// The results of every phase on the same inputs: (phase, bytes).
fn phases(k: &SetKernels, seed: u64) -> Vec<(&'static str, Vec<u8>)> {
    let set = k.sizes;
    let mut noise = Noise(seed);
    let (v, o, kk, n, mb) = (set.v(), set.o, set.k, set.n, set.m_bytes());
    let p = noise.bytes(set.p12_bytes() + SLACK);
    let p3 = noise.bytes(set.p3_vecs() * mb + SLACK);
    let lambda = if set.linear_term { noise.bytes(n * mb + SLACK) } else { vec![] };
    let (oil, vin, s) = (noise.elements(v * o), noise.elements(kk * v), noise.elements(kk * n));
    let (r, t) = (noise.elements(kk * o), noise.bytes(mb));
    let (m_in, u_in) = (noise.vectors(set, kk * o), noise.vectors(set, set.pairs()));
    let mut scratch = noise.blocks(k.scratch_blocks);
    let mut out = Vec::new();

    let mut made = noise.bytes(set.p3_vecs() * mb);
    k.keygen(Keygen { p: &p, o: &oil, p3: &mut made, scratch: &mut scratch });
    out.push(("keygen", made));

    let mut m = noise.blocks(SetKernels::padded_blocks(set, kk * o));
    let mut u = noise.blocks(SetKernels::padded_blocks(set, set.pairs()));
    k.sign(Sign {
        key: &p,
        o: &oil,
        vinegar: &vin,
        lambda: &lambda,
        m: &mut m,
        u: &mut u,
        scratch: &mut scratch,
    });
    out.push(("sign: m", bytes(&m).to_vec()));
    out.push(("sign: u", bytes(&u).to_vec()));

    let mut expanded = noise.blocks(k.secret_blocks);
    k.expand_secret(ExpandSecret { p: &p, o: &oil, layout: &mut expanded, scratch: &mut scratch });
    let mut m = noise.blocks(m.len());
    let mut u = noise.blocks(u.len());
    k.sign_expanded(Sign {
        key: &expanded,
        o: &oil,
        vinegar: &vin,
        lambda: &lambda,
        m: &mut m,
        u: &mut u,
        scratch: &mut scratch,
    });
    out.push(("sign_expanded: m", bytes(&m).to_vec()));
    out.push(("sign_expanded: u", bytes(&u).to_vec()));

    let mut u = noise.blocks(u.len());
    k.verify(Verify {
        key: Matrices { p: &p, p3: &p3 },
        s: &s,
        lambda: &lambda,
        u: &mut u,
        scratch: &mut scratch,
    });
    out.push(("verify", bytes(&u).to_vec()));
    let mut expanded = noise.blocks(k.public_blocks());
    k.expand_public(Matrices { p: &p, p3: &p3 }, &mut expanded);
    let mut u = noise.blocks(u.len());
    k.verify_expanded(Verify { key: &expanded, s: &s, lambda: &lambda, u: &mut u, scratch: &mut scratch });
    out.push(("verify_expanded", bytes(&u).to_vec()));

    let mut y = noise.bytes(mb);
    k.whip(Whip { u: &u_in, y: &mut y });
    out.push(("whip", y));
    let mut x = noise.elements(kk * o);
    let full = k.solve(Solve { m: &m_in, u: &u_in, t: &t, r: &r, x: &mut x, scratch: &mut scratch });
    out.push(("solve", x.iter().copied().chain([u8::from(full)]).collect()));
    let mut sig = noise.elements(kk * n);
    k.finish(Finish { o: &oil, vinegar: &vin, x: &x, s: &mut sig });
    out.push(("finish", sig));
    out
}

#[test]
fn every_phase_agrees_with_portable() {
    for engine in rows() {
        for (params, (ours, theirs)) in Params::all().zip(engine.sets.iter().zip(&portable().sets)) {
            for seed in 0..3 {
                for ((phase, got), (_, want)) in phases(ours, seed).into_iter().zip(phases(theirs, seed)) {
                    assert_eq!(got, want, "{}, {}: {phase}, seed {seed}", engine.name(), params.name());
                }
            }
        }
    }
}

/// m of which some rows (equations) or vectors are zero, so that A has a known or at least a lower rank.
fn degenerate(set: &Sizes, noise: &mut Noise, how: usize) -> Vec<Block> {
    let mut m = noise.vectors(set, set.k * set.o);
    let stride = SetKernels::stride(set);
    for (at, vector) in bytes_mut(&mut m).chunks_exact_mut(stride).enumerate() {
        let column = at % set.o;
        match how {
            // Nothing at all.
            0 => vector.fill(0),
            // One column of M, so one column of A in every block.
            1 if column == 0 => vector.fill(0),
            // All but one column.
            2 if column != set.o - 1 => vector.fill(0),
            // Equal columns.
            3 if column > 0 => (0..stride).for_each(|i| vector[i] = if i < set.m_bytes() { 0x11 } else { 0 }),
            // Sparse: most pivots are far down.
            4 => vector[..set.m_bytes() - 1].fill(0),
            // Only the first element.
            5 => vector[1..].fill(0),
            _ => {}
        }
    }
    m
}

#[test]
fn deficient_systems_agree_with_portable() {
    let Some(avx2) = avx2() else { return };
    let (mut refused, mut solved) = (0, 0);
    for (params, (ours, theirs)) in Params::all().zip(avx2.sets.iter().zip(&portable().sets)) {
        let set = ours.sizes;
        let mut noise = Noise(7);
        let mut scratch = noise.blocks(ours.scratch_blocks.max(theirs.scratch_blocks));
        for how in 0..12 {
            let m = degenerate(set, &mut noise, how);
            let u = noise.vectors(set, set.pairs());
            let (t, r) = (noise.bytes(set.m_bytes()), noise.elements(set.k * set.o));
            let (mut x, mut want) = (vec![0xff; r.len()], vec![0xee; r.len()]);
            let full =
                theirs.solve(Solve { m: &m, u: &u, t: &t, r: &r, x: &mut want, scratch: &mut scratch });
            assert_eq!(
                ours.solve(Solve { m: &m, u: &u, t: &t, r: &r, x: &mut x, scratch: &mut scratch }),
                full,
                "{}: rank, case {how}",
                params.name()
            );
            assert_eq!(x, want, "{}: x, case {how}", params.name());
            if full { solved += 1 } else { refused += 1 }
        }
    }
    assert!(refused > 0 && solved > 0, "{refused} refused, {solved} solved: both must occur");
}

#[test]
fn all_known_answers() {
    for engine in rows() {
        for params in Params::all() {
            let r = records(&Library { engine, params }, 100).unwrap();
            let got = sha256_hex(response(&r).as_bytes());
            assert_eq!(got, digests(params).all, "{}, {}", engine.name(), params.name());
        }
    }
}

/// The comparison must find kernels with one flipped bit in one phase, and name the phase.
#[test]
fn planted_faults_are_seen() {
    let Some(avx2) = avx2() else { return };
    fn differing(a: &SetKernels, b: &SetKernels) -> Vec<&'static str> {
        let (a, b) = (phases(a, 5), phases(b, 5));
        a.iter().zip(&b).filter(|(a, b)| a != b).map(|(a, _)| a.0).collect()
    }
    unsafe fn whip(Whip { u, y }: Whip<'_>) {
        portable().sets[0].whip(Whip { u, y });
        y[7] ^= 0x10;
    }
    unsafe fn finish(Finish { o, vinegar, x, s }: Finish<'_>) {
        portable().sets[0].finish(Finish { o, vinegar, x, s });
        s[87] ^= 8;
    }
    let theirs = &portable().sets[0];
    assert!(differing(&avx2.sets[0], theirs).is_empty());
    let mut broken = avx2.sets[0];
    broken.whip = whip;
    assert_eq!(differing(&broken, theirs), ["whip"]);
    let mut broken = avx2.sets[0];
    broken.finish = finish;
    assert_eq!(differing(&broken, theirs), ["finish"]);
}

#[test]
fn tables_multiply() {
    if avx2().is_none() {
        return;
    }
    let pairs: Vec<u8> = (0..=255).collect();
    let mut out = vec![0u8; 256 * super::lanes::TABLE];
    // SAFETY: this CPU has AVX2, and the buffer has room for 256 tables.
    unsafe { super::lanes::tables(&pairs, out.as_mut_ptr()) };
    for (e, table) in (0..=255u8).zip(out.chunks_exact(16)) {
        for (n, &got) in (0..16u8).zip(table) {
            assert_eq!(got, mul(e & 15, n) | mul(e >> 4, n) << 4, "{n} times {e:02x}");
        }
    }
}
