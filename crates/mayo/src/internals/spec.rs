//! MAYO straight from the specification: slow, readable, the oracle that every backend must agree with.
//!
//! Matrices are plain vectors of field elements, the whipping is polynomial arithmetic, the linear system is solved by
//! the textbook. Nothing here is constant time; it is for checking only, never for real keys. Section numbers are those
//! of the round-2 specification (2025-02-05); changes of the round-3 specification (2026-08-31) are marked.
#![forbid(unsafe_code)]

use alloc::vec;
use alloc::vec::Vec;

use crate::backend::Expand;
use crate::field::{inv, mul, pack, unpack};
use crate::params::{SEED_PK_BYTES, Sizes};

/// An element of F_16^m.
type MVec = Vec<u8>;

/// An expanded compact key: the m quadratic maps, entry by entry.
struct Maps {
    p1: Vec<MVec>,
    p2: Vec<MVec>,
}

fn m_vecs(p: &Sizes, bytes: &[u8]) -> Vec<MVec> {
    bytes
        .chunks_exact(p.m_bytes())
        .map(|chunk| {
            let mut v = vec![0; p.m];
            unpack(chunk, &mut v);
            v
        })
        .collect()
}

fn add_scaled(acc: &mut [u8], scalar: u8, v: &[u8]) {
    for (a, &x) in acc.iter_mut().zip(v) {
        *a ^= mul(scalar, x);
    }
}

/// Position of (r, c), r <= c, in the upper triangle of a matrix of `size` columns.
fn upper(size: usize, r: usize, c: usize) -> usize {
    r * (2 * size + 1 - r) / 2 + (c - r)
}

fn expand_maps(p: &Sizes, symmetric: &Expand, seed_pk: &[u8; SEED_PK_BYTES]) -> Maps {
    let mut bytes = vec![0; p.p12_bytes()];
    symmetric.aes128_ctr(seed_pk, 0, &mut bytes);
    let mut all = m_vecs(p, &bytes);
    let p2 = all.split_off(p.p1_vecs());
    Maps { p1: all, p2 }
}

/// seed_pk and O (v x o, row by row) of a secret seed: section 2.1.5, the head of CompactKeyGen.
fn expand_seed(p: &Sizes, symmetric: &Expand, seed_sk: &[u8]) -> ([u8; SEED_PK_BYTES], Vec<u8>) {
    let mut s = vec![0; SEED_PK_BYTES + p.o_bytes()];
    symmetric.shake256(&[seed_sk], &mut s);
    let mut seed_pk = [0; SEED_PK_BYTES];
    seed_pk.copy_from_slice(&s[..SEED_PK_BYTES]);
    let mut o = vec![0; p.v() * p.o];
    unpack(&s[SEED_PK_BYTES..], &mut o);
    (seed_pk, o)
}

/// The public key of a secret seed: MAYO.CompactKeyGen (algorithm 4) less the drawing of the seed.
#[must_use]
pub fn public_key(p: &Sizes, symmetric: &Expand, seed_sk: &[u8]) -> Vec<u8> {
    let (seed_pk, o) = expand_seed(p, symmetric, seed_sk);
    let maps = expand_maps(p, symmetric, &seed_pk);
    let (v, oil) = (p.v(), p.o);
    // X = P1 O + P2, and P3 = Upper(O^T X).
    let mut x = maps.p2;
    for r in 0..v {
        for c in r..v {
            for j in 0..oil {
                add_scaled(&mut x[r * oil + j], o[c * oil + j], &maps.p1[upper(v, r, c)]);
            }
        }
    }
    let mut pk = seed_pk.to_vec();
    for i in 0..oil {
        for j in i..oil {
            let mut entry = vec![0; p.m];
            for r in 0..v {
                add_scaled(&mut entry, o[r * oil + i], &x[r * oil + j]);
                if i != j {
                    add_scaled(&mut entry, o[r * oil + j], &x[r * oil + i]);
                }
            }
            let mut packed = vec![0; p.m_bytes()];
            pack(&entry, &mut packed);
            pk.extend(packed);
        }
    }
    pk
}

/// Sum over l of z^l u_l modulo f(z).
fn whip(p: &Sizes, u: impl Iterator<Item = MVec>) -> MVec {
    let mut long = vec![0; p.m + p.pairs() + 4];
    for (l, u) in u.enumerate() {
        for (i, x) in u.into_iter().enumerate() {
            long[l + i] ^= x;
        }
    }
    for d in (p.m..long.len()).rev() {
        let c = core::mem::take(&mut long[d]);
        for (t, &f) in p.tail.iter().enumerate() {
            long[d - p.m + t] ^= mul(c, f);
        }
    }
    long.truncate(p.m);
    long
}

/// The target t and, in round 3, the linear term lambda (n m-vectors).
fn target(p: &Sizes, symmetric: &Expand, digest: &[u8], salt: &[u8]) -> (MVec, Option<Vec<MVec>>) {
    let mut bytes = vec![0; p.m_bytes() + if p.linear_term { 32 } else { 0 }];
    symmetric.shake256(&[digest, salt], &mut bytes);
    let mut t = vec![0; p.m];
    unpack(&bytes[..p.m_bytes()], &mut t);
    let lambda = p.linear_term.then(|| {
        let (mut key, mut nonce) = ([0; 16], [0; 16]);
        key.copy_from_slice(&bytes[p.m_bytes()..p.m_bytes() + 16]);
        nonce.copy_from_slice(&bytes[p.m_bytes() + 16..]);
        let mut stream = vec![0; p.n * p.m_bytes()];
        symmetric.aes128_ctr_xor(&key, &nonce, &mut stream);
        m_vecs(p, &stream)
    });
    (t, lambda)
}

/// x^T P y for one triangle-held matrix of m-vectors.
fn bilinear(p: &Sizes, entry: &dyn Fn(usize, usize) -> MVec, size: usize, x: &[u8], y: &[u8]) -> MVec {
    let mut sum = vec![0; p.m];
    for r in 0..size {
        for c in r..size {
            add_scaled(&mut sum, mul(x[r], y[c]), &entry(r, c));
        }
    }
    sum
}

/// Signs with a given randomizer R: MAYO.Sign (algorithm 8) from a compact secret key.
///
/// `None` if all 256 attempts fail, which no honest seed does.
#[must_use]
pub fn sign(
    p: &Sizes,
    symmetric: &Expand,
    seed_sk: &[u8],
    message: &[u8],
    randomizer: &[u8],
) -> Option<Vec<u8>> {
    let (v, oil, k) = (p.v(), p.o, p.k);
    let (seed_pk, o) = expand_seed(p, symmetric, seed_sk);
    let maps = expand_maps(p, symmetric, &seed_pk);
    // L = (P1 + P1^T) O + P2, v x o.
    let mut l = maps.p2.clone();
    for r in 0..v {
        for c in 0..v {
            if r == c {
                continue;
            }
            for j in 0..oil {
                add_scaled(&mut l[r * oil + j], o[c * oil + j], &maps.p1[upper(v, r.min(c), r.max(c))]);
            }
        }
    }
    let mut digest = vec![0; p.digest_bytes];
    symmetric.shake256(&[message], &mut digest);
    let mut salt = vec![0; p.salt_bytes];
    symmetric.shake256(&[&digest, randomizer, seed_sk], &mut salt);
    let (t, lambda) = target(p, symmetric, &digest, &salt);

    for ctr in 0..=255u8 {
        let mut bytes = vec![0; k * p.v_bytes() + p.r_bytes()];
        symmetric.shake256(&[&digest, &salt, seed_sk, &[ctr]], &mut bytes);
        let vinegar: Vec<Vec<u8>> = (0..k)
            .map(|i| {
                let mut x = vec![0; v];
                unpack(&bytes[i * p.v_bytes()..(i + 1) * p.v_bytes()], &mut x);
                x
            })
            .collect();
        let mut r = vec![0; k * oil];
        unpack(&bytes[k * p.v_bytes()..], &mut r);

        // M_i, m x o: v_i^T L, and in round 3 the linear term's share of the oil variables in M_0.
        let mut m: Vec<Vec<MVec>> = vinegar
            .iter()
            .map(|vi| {
                (0..oil)
                    .map(|j| {
                        let mut sum = vec![0; p.m];
                        (0..v).for_each(|r| add_scaled(&mut sum, vi[r], &l[r * oil + j]));
                        sum
                    })
                    .collect()
            })
            .collect();
        if let Some(lambda) = &lambda {
            for j in 0..oil {
                add_scaled(&mut m[0][j], 1, &lambda[v + j]);
                (0..v).for_each(|r| add_scaled(&mut m[0][j], o[r * oil + j], &lambda[r]));
            }
        }
        // y = t - sum of E_ij u_ij.
        let p1 = |r: usize, c: usize| maps.p1[upper(v, r, c)].clone();
        let u = p.schedule.iter().map(|&(a, b)| {
            let (i, j) = (usize::from(a.min(b)), usize::from(a.max(b)));
            let mut u = bilinear(p, &p1, v, &vinegar[i], &vinegar[j]);
            if i != j {
                add_scaled(&mut u, 1, &bilinear(p, &p1, v, &vinegar[j], &vinegar[i]));
            }
            if let (0, Some(lambda)) = (i, &lambda) {
                (0..v).for_each(|r| add_scaled(&mut u, vinegar[j][r], &lambda[r]));
            }
            u
        });
        let mut y = whip(p, u);
        add_scaled(&mut y, 1, &t);
        // A: block i holds the sum over j of E_ij M_j.
        let mut a: Vec<MVec> = Vec::new();
        for i in 0..k {
            for c in 0..oil {
                let column = p.schedule.iter().map(|&(a, b)| {
                    let (a, b) = (usize::from(a), usize::from(b));
                    match (a == i, b == i) {
                        (true, _) => m[b][c].clone(),
                        (_, true) => m[a][c].clone(),
                        _ => vec![0; p.m],
                    }
                });
                a.push(whip(p, column));
            }
        }
        if let Some(x) = sample_solution(p, a, y, &r) {
            let mut s = Vec::with_capacity(k * p.n);
            for i in 0..k {
                let xi = &x[i * oil..(i + 1) * oil];
                for r in 0..v {
                    s.push((0..oil).fold(vinegar[i][r], |sum, j| sum ^ mul(o[r * oil + j], xi[j])));
                }
                s.extend_from_slice(xi);
            }
            let mut signature = vec![0; (p.n * k).div_ceil(2)];
            pack(&s, &mut signature);
            signature.extend_from_slice(&salt);
            return Some(signature);
        }
    }
    None
}

/// A random solution of A x = y, `columns` being A's columns: SampleSolution (algorithm 2). `None` if A does not have rank m.
fn sample_solution(p: &Sizes, mut columns: Vec<MVec>, mut y: MVec, r: &[u8]) -> Option<Vec<u8>> {
    let mut x = r.to_vec();
    for (column, &r) in columns.iter().zip(r) {
        add_scaled(&mut y, r, column);
    }
    columns.push(y);
    let mut pivots = Vec::new();
    let mut row = 0;
    for c in 0..x.len() {
        let Some(found) = (row..p.m).find(|&i| columns[c][i] != 0) else { continue };
        let scale = inv(columns[c][found]);
        for column in &mut columns {
            column.swap(row, found);
            column[row] = mul(scale, column[row]);
        }
        let factors: Vec<u8> = columns[c].clone();
        for column in &mut columns {
            let pivot = column[row];
            for i in (0..p.m).filter(|&i| i != row) {
                column[i] ^= mul(factors[i], pivot);
            }
        }
        pivots.push(c);
        row += 1;
        if row == p.m {
            break;
        }
    }
    if row < p.m {
        return None;
    }
    let y = &columns[x.len()];
    for (i, &c) in pivots.iter().enumerate() {
        x[c] ^= y[i];
    }
    Some(x)
}

/// Whether `signature` is valid: MAYO.Verify (algorithm 9). Wrong lengths are invalid.
#[must_use]
pub fn verify(p: &Sizes, symmetric: &Expand, public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    if public_key.len() != p.public_key_bytes() || signature.len() != p.signature_bytes() {
        return false;
    }
    let (v, oil) = (p.v(), p.o);
    let mut seed_pk = [0; SEED_PK_BYTES];
    seed_pk.copy_from_slice(&public_key[..SEED_PK_BYTES]);
    let maps = expand_maps(p, symmetric, &seed_pk);
    let p3 = m_vecs(p, &public_key[SEED_PK_BYTES..]);
    let (encoded, salt) = signature.split_at(signature.len() - p.salt_bytes);
    let mut s = vec![0; p.n * p.k];
    unpack(encoded, &mut s);
    let mut digest = vec![0; p.digest_bytes];
    symmetric.shake256(&[message], &mut digest);
    let (t, lambda) = target(p, symmetric, &digest, salt);
    let entry = |r: usize, c: usize| match (r < v, c < v) {
        (true, true) => maps.p1[upper(v, r, c)].clone(),
        (true, false) => maps.p2[r * oil + c - v].clone(),
        _ => p3[upper(oil, r - v, c - v)].clone(),
    };
    let vector = |i: usize| &s[i * p.n..(i + 1) * p.n];
    let u = p.schedule.iter().map(|&(a, b)| {
        let (i, j) = (usize::from(a.min(b)), usize::from(a.max(b)));
        let mut u = bilinear(p, &entry, p.n, vector(i), vector(j));
        if i != j {
            add_scaled(&mut u, 1, &bilinear(p, &entry, p.n, vector(j), vector(i)));
        }
        if let (0, Some(lambda)) = (i, &lambda) {
            (0..p.n).for_each(|r| add_scaled(&mut u, vector(j)[r], &lambda[r]));
        }
        u
    });
    whip(p, u) == t
}
