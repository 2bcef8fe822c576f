//! Every kernel against the portable one, byte for byte, and the known answers.

use lanework_cpu::{Cpu, Select};

use crate::backend::Engine;
use crate::backend::operands::{ExpandSecret, Finish, Keygen, Matrices, Sign, Solve, Verify, Whip};
use crate::backend::{SLACK, SetKernels, portable};
use crate::internals::known::{Library, digests, records, response, sha256_hex};
use crate::params::Params;
use crate::sys::{Block, bytes, bytes_mut};

/// The kernels, or `None` with a printed line where this machine cannot run them and they are not required.
fn engine() -> Option<Engine> {
    match Engine::choose(&Cpu::detect(), Select::Named("avx512")) {
        Ok(engine) => Some(engine),
        Err(why) => {
            let required = std::env::var("LANEWORK_REQUIRE").unwrap_or_default();
            assert!(!required.split(',').any(|name| name == "avx512"), "required, but: {why}");
            println!("skipped: {why}");
            None
        }
    }
}

/// xorshift64*: reproducible, unlike anything structured.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next() >> 32) as u8).collect()
    }
    fn elements(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next() >> 60) as u8).collect()
    }
    /// Padded m-vectors, zero after the last element.
    fn vectors(&mut self, set: &Params, count: usize) -> Vec<Block> {
        let mut out = vec![Block::ZERO; SetKernels::padded_blocks(set.sizes(), count)];
        for vector in bytes_mut(&mut out).chunks_exact_mut(SetKernels::stride(set.sizes())) {
            vector[..set.m_bytes()].copy_from_slice(&self.bytes(set.m_bytes()));
        }
        out
    }
}

/// Memory full of a pattern, to find kernels that rely on zeros or omit a write.
fn dirty(blocks: usize) -> Vec<Block> {
    vec![Block([0xa7; 64]); blocks]
}

struct Case {
    p: Vec<u8>,
    p3: Vec<u8>,
    lambda: Vec<u8>,
    o: Vec<u8>,
    vinegar: Vec<u8>,
    s: Vec<u8>,
}

impl Case {
    fn random(set: &Params, random: &mut Random) -> Case {
        let mb = set.m_bytes();
        Case {
            p: random.bytes(set.p12_bytes() + SLACK),
            p3: random.bytes(set.p3_vecs() * mb + SLACK),
            lambda: random.bytes(if set.linear_term() { set.n() * mb + SLACK } else { 0 }),
            o: random.elements(set.v() * set.o()),
            vinegar: random.elements(set.k() * set.v()),
            s: random.elements(set.k() * set.n()),
        }
    }
}

fn same(what: &str, set: &Params, got: &[u8], want: &[u8]) {
    let at = got.iter().zip(want).position(|(a, b)| a != b);
    assert!(got.len() == want.len() && at.is_none(), "{what}, {}: byte {at:?} differs", set.name());
}

#[test]
fn products_agree_with_portable() {
    let Some(engine) = engine() else { return };
    let mut random = Random(0x1234_5678_9abc_def1);
    for set in Params::all() {
        let (ours, plain) = (engine.set(set), &portable::SETS[set.index()]);
        for _ in 0..3 {
            let case = Case::random(set, &mut random);
            let run = |kernels: &SetKernels| {
                let mut scratch = dirty(kernels.scratch_blocks);
                let mut p3 = vec![0xee; set.p3_vecs() * set.m_bytes()];
                kernels.keygen(Keygen { p: &case.p, o: &case.o, p3: &mut p3, scratch: &mut scratch });
                let (m_blocks, u_blocks) = (
                    SetKernels::padded_blocks(set.sizes(), set.k() * set.o()),
                    SetKernels::padded_blocks(set.sizes(), set.pairs()),
                );
                let (mut m, mut u) = (dirty(m_blocks), dirty(u_blocks));
                kernels.sign(Sign {
                    key: &case.p,
                    o: &case.o,
                    vinegar: &case.vinegar,
                    lambda: &case.lambda,
                    m: &mut m,
                    u: &mut u,
                    scratch: &mut scratch,
                });
                let mut verified = dirty(u_blocks);
                kernels.verify(Verify {
                    key: Matrices { p: &case.p, p3: &case.p3 },
                    s: &case.s,
                    lambda: &case.lambda,
                    u: &mut verified,
                    scratch: &mut scratch,
                });
                let mut layout = dirty(kernels.secret_blocks);
                kernels.expand_secret(ExpandSecret {
                    p: &case.p,
                    o: &case.o,
                    layout: &mut layout,
                    scratch: &mut scratch,
                });
                let (mut m2, mut u2) = (dirty(m_blocks), dirty(u_blocks));
                kernels.sign_expanded(Sign {
                    key: &layout,
                    o: &case.o,
                    vinegar: &case.vinegar,
                    lambda: &case.lambda,
                    m: &mut m2,
                    u: &mut u2,
                    scratch: &mut scratch,
                });
                let mut layout = dirty(kernels.public_blocks());
                kernels.expand_public(Matrices { p: &case.p, p3: &case.p3 }, &mut layout);
                let mut verified2 = dirty(u_blocks);
                kernels.verify_expanded(Verify {
                    key: &layout,
                    s: &case.s,
                    lambda: &case.lambda,
                    u: &mut verified2,
                    scratch: &mut scratch,
                });
                let mut y = vec![0xee; set.m_bytes()];
                kernels.whip(Whip { u: &verified, y: &mut y });
                [
                    ("keygen's P3", p3),
                    ("sign's m", bytes(&m).to_vec()),
                    ("sign's u", bytes(&u).to_vec()),
                    ("sign_expanded's m", bytes(&m2).to_vec()),
                    ("sign_expanded's u", bytes(&u2).to_vec()),
                    ("verify's u", bytes(&verified).to_vec()),
                    ("verify_expanded's u", bytes(&verified2).to_vec()),
                    ("whip's y", y),
                ]
            };
            for ((what, got), (_, want)) in run(ours).into_iter().zip(run(plain)) {
                same(what, set, &got, &want);
            }
        }
    }
}

/// Solves with both backends and compares; returns the rank verdict.
fn solve_both(engine: Engine, set: &Params, m: &[Block], u: &[Block], random: &mut Random) -> bool {
    let (ours, plain) = (engine.set(set), &portable::SETS[set.index()]);
    let (t, r) = (random.bytes(set.m_bytes()), random.elements(set.k() * set.o()));
    let solve = |kernels: &SetKernels| {
        let mut x = vec![0xee; set.k() * set.o()];
        let full = kernels.solve(Solve {
            m,
            u,
            t: &t,
            r: &r,
            x: &mut x,
            scratch: &mut dirty(kernels.scratch_blocks),
        });
        (full, x)
    };
    let (got, want) = (solve(ours), solve(plain));
    assert_eq!(got.0, want.0, "{}: rank verdict", set.name());
    // Only a system of full rank has a solution that does not depend on the choice of pivot rows.
    if got.0 {
        same("solve's x", set, &got.1, &want.1);
    }
    got.0
}

#[test]
fn solving_agrees_with_portable_at_every_rank() {
    let Some(engine) = engine() else { return };
    let mut random = Random(0xfeed_beef_0bad_cafe);
    for set in Params::all() {
        let (mut full, mut deficient) = (0, 0);
        let stride = SetKernels::stride(set.sizes());
        // In random systems the last column often must give a pivot, or cannot.
        for round in 0..200 {
            let mut m = random.vectors(set, set.k() * set.o());
            let u = random.vectors(set, set.pairs());
            let vectors = bytes_mut(&mut m);
            match round % 8 {
                // No variable of the first oil column; only low nibbles; only the last rows; repeated columns; nothing.
                1 => (0..set.k()).for_each(|i| vectors[i * set.o() * stride..][..stride].fill(0)),
                2 => vectors.iter_mut().for_each(|b| *b &= 0x0f),
                3 => vectors.chunks_exact_mut(stride).for_each(|v| v[..set.m_bytes() - 2].fill(0)),
                4 => (1..set.k() * set.o()).for_each(|i| {
                    vectors.copy_within((i - 1) % 3 * stride..((i - 1) % 3 + 1) * stride, i * stride)
                }),
                5 => vectors.fill(0),
                6 => vectors.iter_mut().for_each(|b| *b &= 0xf0),
                _ => {}
            }
            if solve_both(engine, set, &m, &u, &mut random) { full += 1 } else { deficient += 1 }
        }
        assert!(full > 0 && deficient > 0, "{}: {full} full, {deficient} deficient", set.name());
    }
}

#[test]
fn a_system_with_few_entries_is_solved_right() {
    let Some(engine) = engine() else { return };
    let mut random = Random(77);
    for set in Params::all() {
        for entries in [1, 5, 30, 300] {
            let mut m = vec![Block::ZERO; SetKernels::padded_blocks(set.sizes(), set.k() * set.o())];
            let stride = SetKernels::stride(set.sizes());
            for _ in 0..entries {
                let vector = random.next() as usize % (set.k() * set.o());
                let byte = random.next() as usize % set.m_bytes();
                bytes_mut(&mut m)[vector * stride + byte] = random.next() as u8;
            }
            solve_both(engine, set, &m, &random.vectors(set, set.pairs()), &mut random);
        }
    }
}

#[test]
fn finish_agrees_with_portable() {
    let Some(engine) = engine() else { return };
    let mut random = Random(4242);
    for set in Params::all() {
        for _ in 0..4 {
            let o = random.elements(set.v() * set.o());
            let vinegar = random.elements(set.k() * set.v());
            let x = random.elements(set.k() * set.o());
            let finish = |kernels: &SetKernels| {
                let mut s = vec![0xee; set.k() * set.n()];
                kernels.finish(Finish { o: &o, vinegar: &vinegar, x: &x, s: &mut s });
                s
            };
            same("finish", set, &finish(engine.set(set)), &finish(&portable::SETS[set.index()]));
        }
    }
}

#[test]
fn all_known_answers() {
    let Some(engine) = engine() else { return };
    for set in Params::all() {
        let all = records(&Library { engine, params: set }, 100).expect("signing succeeds");
        assert_eq!(sha256_hex(response(&all).as_bytes()), digests(set).all, "{}", set.name());
    }
}
