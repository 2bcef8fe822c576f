//! The trees against the RFCs' leaves, records and packets, and against their definition without caches.

use super::*;
use crate::Mgm;
use crate::internals::known::keys::{CTR_OMAC, Leaf, MGM_L};
use crate::internals::known::mgm::MESSAGES;
use crate::internals::known::packets::{PACKETS, RECORDS, SEALED};
use crate::internals::known::{array, bytes};
use crate::kdf::kdf;
use crate::key::{Keyed, Sealed};
use crate::modes::{CtrAcpkm, Omac, Stream};

fn leaves(suite: Suite, leaves: &[Leaf]) {
    for leaf in leaves {
        let mut tree = TlsTree::new(&array(leaf.root), suite);
        // Some examples lie above the suite's last record.
        assert_eq!(*tree.leaf(leaf.number), array(leaf.key), "{} {}", leaf.source, leaf.number);
        for (level, key) in leaf.upper.iter().flatten().enumerate() {
            let inner = tree.tree.inner[level].as_ref().expect("made on the way");
            let same = inner.derive(b"", b"") == Prf::new(&bytes(key)).derive(b"", b"");
            assert!(same, "{} {}, level {}", leaf.source, leaf.number, level + 1);
        }
    }
}

#[test]
fn known_leaves() {
    leaves(Suite::CtrOmac, CTR_OMAC);
    leaves(Suite::MgmL, MGM_L);
}

/// RFC 9189, 8.1, without caches.
fn slowly(root: &[u8; 32], suite: Suite, number: u64) -> [u8; 32] {
    let mut key = *root;
    for (label, mask) in [b"level1", b"level2", b"level3"].iter().zip(suite.masks()) {
        key = *kdf(&key, *label, &(number & mask).to_be_bytes());
    }
    key
}

#[test]
fn kept_levels_change_when_their_numbers_do() {
    let root = [0x5a; 32];
    // Steps over every mask's edges, forwards and backwards, and jumps that change one level and come back.
    let edges = [7, 12, 13, 25, 26, 30, 38];
    for suite in Suite::ALL {
        let mut tree = TlsTree::new(&root, suite);
        let mut numbers = vec![0, 1, 0];
        for edge in edges {
            let near = 1u64 << edge;
            numbers.extend([near - 1, near, near - 1, near + 1, near | 1 << 31, near, 3]);
        }
        for number in numbers {
            match tree.key(number) {
                Ok(key) => assert_eq!(*key, slowly(&root, suite, number), "{suite:?} {number}"),
                Err(why) => {
                    assert!(number > suite.last());
                    assert_eq!(why, Error::SequenceOverflow { last: suite.last() });
                }
            }
        }
    }
}

#[test]
fn a_cipher_is_the_one_of_its_record() {
    let mut tree = TlsTree::new(&[1; 32], Suite::MgmL);
    for number in [0, 127, 128, 0, 1 << 31] {
        let cipher = tree.cipher(number, Engine::best()).expect("allowed").clone();
        let key = *tree.key(number).expect("allowed");
        assert_eq!(cipher.core().words, Magma::new(&key).core().words, "{number}");
        assert_eq!(cipher.backend(), Engine::best().name());
    }
}

#[test]
fn records_above_the_last_are_refused() {
    for (suite, last) in [(Suite::CtrOmac, (1 << 32) - 1), (Suite::MgmS, (1 << 39) - 1)] {
        let mut tree = TlsTree::new(&[0; 32], suite);
        assert!(tree.key(last).is_ok());
        for number in [last + 1, u64::MAX] {
            assert_eq!(tree.key(number).err(), Some(Error::SequenceOverflow { last }));
            assert_eq!(tree.cipher(number, Engine::best()).err(), Some(Error::SequenceOverflow { last }));
        }
    }
    assert!(TlsTree::new(&[0; 32], Suite::MgmL).key(u64::MAX).is_ok());
}

#[test]
fn rfc_9189_records() {
    for record in RECORDS {
        let (mut macs, mut encrypts) = (
            TlsTree::new(&array(record.mac_root), Suite::CtrOmac),
            TlsTree::new(&array(record.encrypt_root), Suite::CtrOmac),
        );
        let mut data = vec![0; record.zeros];
        let number = record.number.to_be_bytes();
        let key = macs.cipher(record.number, Engine::best()).expect("allowed");
        let mut omac = Omac::with_key(key, 8).expect("8 bytes");
        for part in [&number[..], &bytes(record.header), &data] {
            omac.update(part).expect("within limits");
        }
        let mac = omac.finish();
        assert_eq!(mac.as_ref(), bytes(record.mac), "record {}", record.number);
        data.extend(mac.as_ref());
        let key = encrypts.cipher(record.number, Engine::best()).expect("allowed");
        // The IV is the connection's IV, here zero, plus the number.
        let mut ctr = CtrAcpkm::with_key(key, &number[4..]).expect("an IV");
        ctr.apply(&mut data).expect("within limits");
        let sent = bytes(record.sent);
        let shown = sent.len() - 5;
        assert_eq!(sent[..3], bytes(record.header)[..3]);
        assert_eq!(usize::from(sent[3]) << 8 | usize::from(sent[4]), data.len());
        assert_eq!(data[..shown], sent[5..], "record {}", record.number);
    }
}

#[test]
fn a_record_sealed_by_gost_engine() {
    let mut tree = TlsTree::new(&array(SEALED.root), Suite::MgmL);
    let mgm =
        Mgm::with_key(tree.cipher(SEALED.number, Engine::best()).expect("allowed").clone(), 8).expect("8");
    let mut data = bytes(SEALED.plaintext);
    let tag = mgm.seal(&bytes(SEALED.nonce), &bytes(SEALED.aad), &mut data).expect("a message");
    assert_eq!((data, tag.as_slice()), (bytes(SEALED.ciphertext), &bytes(SEALED.tag)[..]));
}

#[test]
fn rfc_9227_keys_and_nonces() {
    // One tree for all packets of a transform key, so that levels are kept.
    let mut trees: Vec<(&str, EspTree)> = Vec::new();
    for packet in PACKETS {
        if !trees.iter().any(|(transform, _)| *transform == packet.transform) {
            trees.push((packet.transform, EspTree::new(&array(packet.transform))));
        }
        let tree = trees.iter_mut().find(|(transform, _)| *transform == packet.transform);
        let tree = &mut tree.expect("just put there").1;
        let path = EspPath::from_iv(array(packet.iv));
        assert_eq!(path.iv(), Ok(array(packet.iv)), "{}", packet.source);
        assert_eq!(*tree.key(path), array(packet.key), "{}", packet.source);
        assert_eq!(tree.nonce(path), Ok(array(packet.nonce)), "{}", packet.source);
        let message = MESSAGES.iter().find(|message| message.source == packet.source);
        let message = message.expect("a packet's message");
        assert_eq!((message.key, message.nonce), (packet.key, packet.nonce));
    }
}

#[test]
fn a_leaf_of_esp_has_2_to_the_24_packets() {
    let tree = EspTree::new(&[0; 36]);
    let path = |number| EspPath { i1: 1, i2: 2, i3: 3, number };
    assert_eq!(path((1 << 24) - 1).iv(), Ok([1, 0, 2, 0, 3, 255, 255, 255]));
    let overflow = Error::SequenceOverflow { last: (1 << 24) - 1 };
    assert_eq!(path(1 << 24).iv(), Err(overflow.clone()));
    assert_eq!(tree.nonce(path(1 << 24)), Err(overflow));
}
