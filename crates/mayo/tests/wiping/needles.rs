//! The needles of a signature's secrets.

use lanework_leakage::residue::Needles;
use lanework_mayo::internals::field::unpack;
use lanework_mayo::{Engine, Params};

/// The secrets of one seed and of the signature with `salt` on `message`: windows of 8 bytes of the seed, 16 of everything
/// else.
pub(crate) fn needles(engine: Engine, p: &Params, seed: &[u8], message: &[u8], salt: &[u8]) -> Needles {
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
    let o = shake(&[seed], 16 + p.o_bytes()).split_off(16);
    let mut secrets = vec![
        ("the seed", seed.to_vec(), 8),
        ("O as elements", elements(&o, p.v() * p.o()), 16),
        ("O packed", o, 16),
    ];
    let digest = shake(&[message], p.digest_bytes());
    // A restart draws the vinegar anew; no case needs a fifth.
    for attempt in 0..4 {
        let drawn = shake(&[&digest, salt, seed, &[attempt]], p.k() * p.v_bytes() + p.r_bytes());
        for vinegar in drawn[..p.k() * p.v_bytes()].chunks(p.v_bytes()) {
            secrets.push(("vinegar packed", vinegar.to_vec(), 16));
            secrets.push(("vinegar as elements", elements(vinegar, p.v()), 16));
        }
    }
    Needles::new(secrets.iter().map(|(kind, bytes, width)| (*kind, &bytes[..], *width)))
}
