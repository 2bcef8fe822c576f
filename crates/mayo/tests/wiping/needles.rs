//! What must not be found, and a search for it that allocates nothing.

use lanework_mayo::field::unpack;
use lanework_mayo::{Engine, Params};

/// Kinds of secrets, named by their index.
pub(crate) const KINDS: [&str; 5] =
    ["the seed", "O packed", "O as elements", "vinegar packed", "vinegar as elements"];

const FILTER_BITS: usize = 1 << 20;

/// Windows of secret bytes: 8 of the seed, 16 of everything else.
pub(crate) struct Needles {
    /// First eight bytes, all bytes, kind; sorted.
    windows: Vec<(u64, Vec<u8>, usize)>,
    filter: Vec<u64>,
}

fn head(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap())
}

fn slot(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) as usize % FILTER_BITS
}

impl Needles {
    /// The secrets of one seed and of the signature with `salt` on `message`.
    pub(crate) fn new(engine: Engine, p: &Params, seed: &[u8], message: &[u8], salt: &[u8]) -> Needles {
        let mut needles = Needles { windows: Vec::new(), filter: vec![0; FILTER_BITS / 64] };
        needles.add(seed, 8, 0);
        let shake = |parts: &[&[u8]], length| {
            let mut out = vec![0; length];
            engine.expand().shake256(parts, &mut out);
            out
        };
        let elements = |packed: &[u8], count| {
            let mut elements = vec![0; count];
            unpack(packed, &mut elements);
            elements
        };
        let expanded = shake(&[seed], 16 + p.o_bytes());
        needles.add(&expanded[16..], 16, 1);
        needles.add(&elements(&expanded[16..], p.v() * p.o), 16, 2);
        let digest = shake(&[message], p.digest_bytes);
        // A restart draws the vinegar anew; nobody needs a fifth.
        for attempt in 0..4 {
            let drawn = shake(&[&digest, salt, seed, &[attempt]], p.k * p.v_bytes() + p.r_bytes());
            for vinegar in drawn[..p.k * p.v_bytes()].chunks(p.v_bytes()) {
                needles.add(vinegar, 16, 3);
                needles.add(&elements(vinegar, p.v()), 16, 4);
            }
        }
        needles.windows.sort_unstable();
        needles
    }

    fn add(&mut self, bytes: &[u8], width: usize, kind: usize) {
        for window in bytes.windows(width) {
            let key = head(window);
            self.filter[slot(key) / 64] |= 1 << (slot(key) % 64);
            self.windows.push((key, window.to_vec(), kind));
        }
    }

    /// The kind and place of the first secret in `bytes`.
    pub(crate) fn find(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        (0..bytes.len().saturating_sub(7)).find_map(|at| {
            let key = head(&bytes[at..]);
            if self.filter[slot(key) / 64] >> (slot(key) % 64) & 1 == 0 {
                return None;
            }
            let first = self.windows.partition_point(|w| w.0 < key);
            let candidates = self.windows[first..].iter().take_while(|w| w.0 == key);
            candidates.clone().find(|w| bytes[at..].starts_with(&w.1)).map(|w| (w.2, at))
        })
    }
}
