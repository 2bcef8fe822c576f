//! Why rounds never share a key: one seed, one message and one randomizer in rounds 2 and 3 give the secret away.
//!
//! MAYO-3 and MAYO-5 have the same sizes in both rounds, hence the same keys from the same seed. A signature is
//! s_i = (v_i + O x_i, x_i) with vinegar v_i that depends only on key, message and salt; the two rounds solve different
//! systems for x. The difference of the two signatures is (O dx, dx): a vector of the oil space, on which P vanishes.

use lanework_mayo::hazmat::{sign_deterministic, sign_with_randomizer};
use lanework_mayo::internals::field::{inv, mul, unpack};
use lanework_mayo::internals::known;
use lanework_mayo::{Engine, Params, Round, SecretKey, Set, SignOptions, Signature};

/// The k vectors of a signature, n elements each.
fn vectors(signature: &Signature) -> Vec<Vec<u8>> {
    let p = signature.params();
    let mut s = vec![0; p.n() * p.k()];
    unpack(&signature.as_bytes()[..(p.n() * p.k()).div_ceil(2)], &mut s);
    s.chunks(p.n()).map(<[u8]>::to_vec).collect()
}

fn differences(a: &Signature, b: &Signature) -> Vec<Vec<u8>> {
    let pairs = vectors(a).into_iter().zip(vectors(b));
    pairs.map(|(a, b)| a.iter().zip(&b).map(|(a, b)| a ^ b).collect()).collect()
}

/// Reduced echelon form with pivots from the last column on, so that the oil part becomes the identity.
fn reduce(mut rows: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let columns = rows[0].len();
    let mut rank = 0;
    for c in (0..columns).rev() {
        let Some(pivot) = (rank..rows.len()).find(|&r| rows[r][c] != 0) else { continue };
        rows.swap(rank, pivot);
        let scale = inv(rows[rank][c]);
        rows[rank].iter_mut().for_each(|x| *x = mul(scale, *x));
        let pivot = rows[rank].clone();
        for (r, row) in rows.iter_mut().enumerate().filter(|&(r, _)| r != rank) {
            assert_ne!(r, rank);
            let factor = row[c];
            row.iter_mut().zip(&pivot).for_each(|(x, p)| *x ^= mul(factor, *p));
        }
        rank += 1;
    }
    rows.truncate(rank);
    rows
}

/// The public map, expanded: m-vectors of the upper triangle of n x n, row by row.
struct Map {
    p: &'static Params,
    entries: Vec<Vec<u8>>,
}

impl Map {
    fn new(p: &'static Params, public_key: &[u8]) -> Map {
        let (seed, p3) = public_key.split_at(16);
        let mut stream = vec![0; p.p12_bytes()];
        Engine::best().expand().aes128_ctr(seed.try_into().unwrap(), 0, &mut stream);
        let vecs = |bytes: &[u8]| -> Vec<Vec<u8>> {
            let unpacked = |chunk: &[u8]| {
                let mut v = vec![0; p.m()];
                unpack(chunk, &mut v);
                v
            };
            bytes.chunks_exact(p.m_bytes()).map(unpacked).collect()
        };
        let mut all = vecs(&stream);
        let p2 = all.split_off(p.p1_vecs());
        let (mut p1, mut p2, mut p3) = (all.into_iter(), p2.into_iter(), vecs(p3).into_iter());
        let (v, mut entries) = (p.v(), Vec::new());
        for r in 0..p.n() {
            for c in r..p.n() {
                let from = if c < v {
                    &mut p1
                } else if r < v {
                    &mut p2
                } else {
                    &mut p3
                };
                entries.push(from.next().unwrap());
            }
        }
        Map { p, entries }
    }

    fn at(&self, x: &[u8]) -> Vec<u8> {
        let mut sum = vec![0; self.p.m()];
        let mut entries = self.entries.iter();
        for r in 0..self.p.n() {
            for c in r..self.p.n() {
                let product = mul(x[r], x[c]);
                sum.iter_mut().zip(entries.next().unwrap()).for_each(|(s, e)| *s ^= mul(product, *e));
            }
        }
        sum
    }
}

/// O of a seed, row by row, straight from SHAKE256.
fn oil_space(p: &Params, seed: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 16 + p.o_bytes()];
    Engine::best().expand().shake256(&[seed], &mut bytes);
    let mut o = vec![0; p.v() * p.o()];
    unpack(&bytes[16..], &mut o);
    o
}

/// Recovers O from the differences and compares it with the seed's own.
fn assert_leaks(p: &'static Params, seed: &[u8], public_key: &[u8], differences: Vec<Vec<u8>>) {
    let map = Map::new(p, public_key);
    // A random vector is not a zero of P: the map is not trivially zero.
    let mut other = differences[0].clone();
    other[0] ^= 1;
    assert!(map.at(&other).iter().any(|&x| x != 0));
    let basis = reduce(differences);
    assert_eq!(basis.len(), p.o(), "the differences span the whole oil space and no more");
    let mut sum = vec![0; p.n()];
    for row in &basis {
        assert!(map.at(row).iter().all(|&x| x == 0), "P vanishes on it");
        sum.iter_mut().zip(row).for_each(|(s, x)| *s ^= x);
        assert!(map.at(&sum).iter().all(|&x| x == 0), "and on sums: it is a space");
    }
    // Row j of the basis is (column of O, unit vector).
    let o = oil_space(p, seed);
    for row in &basis {
        let column = (0..p.o()).find(|&j| row[p.v() + j] == 1).unwrap();
        assert!((0..p.v()).all(|r| row[r] == o[r * p.o() + column]), "the column of O is recovered");
    }
}

/// The known answers of the two rounds share seeds, messages and randomizers: published data shows the leak.
#[test]
fn the_known_answers_of_two_rounds_give_the_key_away() {
    let engine = Engine::best();
    for set in [Set::Mayo3, Set::Mayo5] {
        let [two, three] = [Round::Two, Round::Three].map(|round| Params::of(round, set));
        let [a, b] =
            [two, three].map(|p| known::records(&known::Library { engine, params: p }, 1).unwrap().remove(0));
        assert_eq!((&a.public_key, &a.secret_key, &a.message), (&b.public_key, &b.secret_key, &b.message));
        let read =
            |p: &Params, signed: &[u8]| Signature::from_bytes(p, &signed[..p.signature_bytes()]).unwrap();
        let (s2, s3) = (read(two, &a.signed), read(three, &b.signed));
        let mut found = differences(&s2, &s3);
        if set == Set::Mayo5 {
            // k = o there, so that one pair of signatures may fall short of the full rank; one more message completes it.
            let keys = [two, three].map(|p| SecretKey::from_seed(p, &a.secret_key).unwrap());
            let [s2, s3] = keys.map(|k| {
                sign_with_randomizer(&(engine, &k), b"more", &[9; 40], SignOptions { verify: true }).unwrap()
            });
            found.extend(differences(&s2, &s3));
        }
        assert_leaks(three, &b.secret_key, &b.public_key, found);
    }
}

/// The same by deterministic signing, through the typed keys that otherwise separate the rounds.
#[test]
fn deterministic_signatures_of_two_rounds_give_the_key_away() {
    let engine = Engine::best();
    for (set, seed) in [(Set::Mayo3, vec![0x33; 32]), (Set::Mayo5, vec![0x55; 40])] {
        let keys =
            [Round::Two, Round::Three].map(|r| SecretKey::from_seed(Params::of(r, set), &seed).unwrap());
        let mut found = Vec::new();
        for message in [b"one", b"two"] {
            let [s2, s3] = keys.each_ref().map(|k| sign_deterministic(&(engine, k), message).unwrap());
            let salt = |s: &Signature| s.as_bytes()[s.as_bytes().len() - seed.len()..].to_vec();
            assert_eq!(salt(&s2), salt(&s3));
            found.extend(differences(&s2, &s3));
        }
        assert_leaks(keys[1].params(), &seed, keys[1].public_key(engine).as_bytes(), found);
    }
}

/// Hedged signatures do not give the key away like this: their vinegar differs, so the differences fill the space.
#[test]
fn hedged_signatures_do_not_line_up() {
    let engine = Engine::best();
    let keys = [Round::Two, Round::Three]
        .map(|r| SecretKey::from_seed(Params::of(r, Set::Mayo3), &[3; 32]).unwrap());
    let mut found = Vec::new();
    for _ in 0..2 {
        let [s2, s3] = keys.each_ref().map(|k| k.sign(engine, b"m").unwrap());
        found.extend(differences(&s2, &s3));
    }
    assert_eq!(reduce(found).len(), 22);
}
