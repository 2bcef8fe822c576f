//! Keys from keys, all through HMAC of Streebog, which is another crate's code and looks its S-box up in tables.
//!
//! Memcheck treats an entry of a public table as public, so only some bytes of these keys are still secret in the end.
//! This shows that only those tables leak.
#![forbid(unsafe_code)]

use super::secrets::{both, done, is_right, secret};
use crate::internals::check::Numbers;
use crate::kdf::{FEWEST_ITERATIONS, kdf, kdf_tree, pbkdf2};
use crate::tlstree::{EspPath, EspTree, Suite, TlsTree};

pub(super) fn derivations() {
    let mut numbers = Numbers(71);
    let (hidden, open) = both::<36>(&mut numbers);
    is_right("KDF", kdf(&hidden, b"label", b"seed").as_slice(), kdf(&open, b"label", b"seed").as_slice());
    let tree = |key: &[u8]| {
        let mut out = [0; 96];
        done("KDF_TREE", kdf_tree(key, b"label", b"seed", 1, &mut out));
        out
    };
    is_right("KDF_TREE", &tree(&hidden), &tree(&open));
    let stretched = |passphrase: &[u8]| {
        let mut out = [0; 32];
        done("PBKDF2", pbkdf2(passphrase, b"the salt", FEWEST_ITERATIONS, &mut out));
        out
    };
    is_right("PBKDF2", &stretched(&secret(b"a passphrase")), &stretched(b"a passphrase"));
    let root = |key: &[u8; 36]| -> [u8; 32] { key[..32].try_into().expect("32 bytes") };
    let mut trees = (TlsTree::new(&root(&hidden), Suite::MgmL), TlsTree::new(&root(&open), Suite::MgmL));
    for number in [0, 1, 5000] {
        let (hidden, open) = (done("TLSTREE", trees.0.key(number)), done("TLSTREE", trees.1.key(number)));
        is_right("TLSTREE", hidden, open);
    }
    let path = EspPath { i1: 1, i2: 2, i3: 3, number: 4 };
    is_right("ESPTREE", EspTree::new(&hidden).key(path), EspTree::new(&open).key(path));
}
