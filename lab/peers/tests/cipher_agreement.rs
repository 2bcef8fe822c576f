//! Peers of the GOST family against each other and against themselves: every mode that two have, in both
//! directions, and contexts that are used again.
#![forbid(unsafe_code)]

mod common;

use std::collections::BTreeMap;

use common::{places, present_ciphers};
use lanework_peers::cipher::{reorder_blocks, reorder_key};
use lanework_peers::{
    CipherFlavour, CipherKey, CipherKind, CipherMode, CipherPeer, CipherPlaces, Direction, Gost89Mode,
    PeerError, Peers, Sbox,
};

/// Bytes that follow no pattern, the same in every run.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn key(seed: u64) -> CipherKey {
    noise(seed, 32).try_into().expect("32 bytes")
}

/// Past the 1,024 bytes after which meshing and ACPKM change the key, twice.
const LENGTHS: [usize; 7] = [0, 8, 64, 1016, 1024, 1032, 3000];

fn run(
    peer: &dyn CipherPeer,
    mode: CipherMode,
    way: Direction,
    key: &CipherKey,
    iv: &[u8],
    text: &[u8],
) -> Vec<u8> {
    let mut output = vec![0; text.len()];
    let mut context = peer.cipher(mode, way, key, iv).expect("a context");
    context.update(text, &mut output).unwrap_or_else(|e| panic!("{} {mode:?}: {e}", peer.name()));
    output
}

/// What peers must agree on, by mode. Little-endian modes that are Magma reordered have Magma's name.
fn answers(peer: &dyn CipherPeer) -> Vec<(CipherMode, Vec<u8>)> {
    let mut found = Vec::new();
    for set in peer.sets() {
        for (seed, length) in (1..).zip(LENGTHS) {
            let (key, iv, mut text) = (key(seed), noise(seed + 50, set.iv), noise(seed + 90, length));
            match set.mode.kind() {
                CipherKind::Cipher => {
                    let sealed = run(peer, set.mode, Direction::Encrypt, &key, &iv, &text);
                    let opened = run(peer, set.mode, Direction::Decrypt, &key, &iv, &sealed);
                    assert!(opened == text, "{} {:?} {length}", peer.name(), set.mode);
                    found.push((set.mode, sealed));
                    if let Some(mode) = turned_round(set.mode) {
                        let (key, mut iv) = (reorder_key(&key), iv.clone());
                        reorder_blocks(&mut iv);
                        reorder_blocks(&mut text);
                        let mut sealed = run(peer, set.mode, Direction::Encrypt, &key, &iv, &text);
                        reorder_blocks(&mut sealed);
                        found.push((mode, sealed));
                    }
                }
                CipherKind::Mac => {
                    let mut tag = vec![0; set.tag];
                    let mut context = peer.mac(set.mode, &key).expect("a context");
                    context.mac(&text, &mut tag).expect("a tag");
                    found.push((set.mode, tag));
                }
                CipherKind::Aead => {
                    let (mut iv, aad) = (iv, noise(seed, length / 3 + 1));
                    iv[0] &= 0x7f;
                    let (mut sealed, mut tag) = (vec![0; length], vec![0; set.tag]);
                    let mut context = peer.aead(set.mode, &key).expect("a context");
                    context.seal(&iv, &aad, &text, &mut sealed, &mut tag).expect("sealed");
                    let mut opened = vec![0; length];
                    assert_eq!(context.open(&iv, &aad, &sealed, &mut opened, &tag), Ok(true));
                    assert!(opened == text, "{} {:?} {length}", peer.name(), set.mode);
                    sealed.extend(tag);
                    found.push((set.mode, sealed));
                }
            }
        }
    }
    found
}

/// The mode of Magma that a little-endian mode becomes by reordering.
fn turned_round(mode: CipherMode) -> Option<CipherMode> {
    let CipherMode::Gost89 { mode, sbox: Sbox::Tc26Z, meshing: false } = mode else { return None };
    match mode {
        Gost89Mode::Ecb => Some(CipherMode::MagmaEcb),
        Gost89Mode::Cbc => Some(CipherMode::MagmaCbc),
        Gost89Mode::Cfb => Some(CipherMode::MagmaCfb),
        Gost89Mode::Ofb => Some(CipherMode::MagmaOfb),
        _ => None,
    }
}

/// A peer's name, and what it answered in which mode.
type Answers = (String, Vec<(CipherMode, Vec<u8>)>);

/// All answers are collected by mode and place; the answers to one question must agree.
fn disagreements(peers: &[Answers]) -> (usize, Vec<String>) {
    let mut first: BTreeMap<(CipherMode, usize), (&str, &[u8])> = BTreeMap::new();
    let (mut compared, mut wrong) = (0, Vec::new());
    for (name, answers) in peers {
        let mut places: BTreeMap<CipherMode, usize> = BTreeMap::new();
        for (mode, answer) in answers {
            let place = places.entry(*mode).or_default();
            match first.get(&(*mode, *place)) {
                None => _ = first.insert((*mode, *place), (name, answer)),
                Some((_, other)) if other == answer => compared += 1,
                Some((other, _)) => wrong.push(format!("{name} and {other}: {mode:?} {}", LENGTHS[*place])),
            }
            *place += 1;
        }
    }
    (compared, wrong)
}

#[test]
fn peers_agree_on_every_mode_that_two_have() {
    let mut all: Vec<_> = present_ciphers("agreement")
        .iter()
        .map(|peer| (peer.name().to_owned(), answers(peer.as_ref())))
        .collect();
    let (compared, wrong) = disagreements(&all);
    assert!(wrong.is_empty(), "{wrong:?}");
    if all.len() < 2 {
        return;
    }
    assert!(compared >= 7, "only {compared} answers met another");
    // The comparison itself: a planted fault is seen, in the last answer of a peer that shares its modes.
    let shared: Vec<_> = all[0].1.iter().map(|(mode, _)| *mode).collect();
    let last = all.len() - 1;
    let place = all[last].1.iter().rposition(|(mode, text)| shared.contains(mode) && !text.is_empty());
    let place = place.expect("the first and the last peer share a mode");
    all[last].1[place].1[0] ^= 1;
    assert_eq!(disagreements(&all).1.len(), 1);
}

/// A context used before, stopped anywhere, must start again as if it were new.
#[test]
fn contexts_start_again_from_the_beginning() {
    for peer in present_ciphers("contexts used again") {
        for set in peer.sets().iter().filter(|set| set.mode.kind() == CipherKind::Cipher) {
            let cases = [Direction::Encrypt, Direction::Decrypt].map(|way| [(way, 2000), (way, 1003)]);
            for (direction, used) in cases.into_iter().flatten() {
                let used = used / set.granule * set.granule;
                let (first, second) = (noise(7, set.iv), noise(8, set.iv));
                let text = noise(9, 2400);
                let mut output = vec![0; 2400];
                let mut context = peer.cipher(set.mode, direction, &key(1), &first).expect("a context");
                let who = format!("{} {:?} {direction:?} {used}", peer.name(), set.mode);
                context.update(&text[..used], &mut output[..used]).expect("used");
                context.restart(&second).expect("restarted");
                context.update(&text, &mut output).expect("again");
                let fresh = run(peer.as_ref(), set.mode, direction, &key(1), &second, &text);
                assert!(output == fresh, "{who}: restarted");
                context.update(&text[..used], &mut output[..used]).expect("used");
                context.rekey(&key(2), &second).expect("another key");
                context.update(&text, &mut output).expect("again");
                let fresh = run(peer.as_ref(), set.mode, direction, &key(2), &second, &text);
                assert!(output == fresh, "{who}: another key");
            }
        }
    }
}

/// The standard's gamma, from the block cipher of a peer that has it: RFC 5830, section 6.
fn gamma(block: &mut dyn FnMut([u8; 8]) -> [u8; 8], iv: &[u8], text: &mut [u8]) {
    let start = block(iv.try_into().expect("a block"));
    let word = |half: &[u8]| u32::from_le_bytes(half.try_into().expect("four bytes"));
    let (mut low, mut high) = (word(&start[..4]), word(&start[4..]));
    for chunk in text.chunks_mut(8) {
        low = low.wrapping_add(0x0101_0101);
        let (sum, carry) = high.overflowing_add(0x0101_0104);
        high = sum.wrapping_add(u32::from(carry));
        let mut counter = [0; 8];
        counter[..4].copy_from_slice(&low.to_le_bytes());
        counter[4..].copy_from_slice(&high.to_le_bytes());
        chunk.iter_mut().zip(block(counter)).for_each(|(byte, gamma)| *byte ^= gamma);
    }
}

/// CMAC from a block cipher: NIST SP 800-38B with blocks of 64 bits.
fn cmac(block: &mut dyn FnMut([u8; 8]) -> [u8; 8], message: &[u8]) -> [u8; 8] {
    let double = |x: u64| x << 1 ^ if x >> 63 == 1 { 0x1b } else { 0 };
    let mut encrypt = |x: u64| u64::from_be_bytes(block(x.to_be_bytes()));
    let once = double(encrypt(0));
    let whole = !message.is_empty() && message.len().is_multiple_of(8);
    let mut padded = message.to_vec();
    if !whole {
        padded.push(0x80);
        padded.resize(padded.len().next_multiple_of(8), 0);
    }
    let mut sum = 0;
    let blocks = padded.as_chunks::<8>().0;
    for (index, part) in blocks.iter().enumerate() {
        let last = index + 1 == blocks.len();
        let mask = if !last {
            0
        } else if whole {
            once
        } else {
            double(once)
        };
        sum = encrypt(sum ^ u64::from_be_bytes(*part) ^ mask);
    }
    sum.to_be_bytes()
}

/// Modes that no second peer has, rebuilt here on the block cipher of a peer that agrees with the others.
#[test]
fn what_only_one_peer_has_is_what_its_document_says() {
    let peers = present_ciphers("rebuilt modes");
    let ecb = CipherMode::gost89(Gost89Mode::Ecb, Sbox::Tc26Z, false);
    let Some(with_block) = peers.iter().find(|peer| peer.set(ecb).is_some()) else { return };
    let key = key(3);
    let mut context = with_block.cipher(ecb, Direction::Encrypt, &key, &[]).expect("a context");
    let mut block = |input: [u8; 8]| {
        let mut output = [0; 8];
        context.update(&input, &mut output).expect("a block");
        output
    };
    let cnt = CipherMode::gost89(Gost89Mode::Cnt, Sbox::Tc26Z, true);
    for peer in peers.iter().filter(|peer| peer.set(cnt).is_some()) {
        // No longer than the bytes before the first meshing. The additions carry in every way within them.
        let (iv, mut text) = (noise(4, 8), noise(5, 1021));
        let sealed = run(peer.as_ref(), cnt, Direction::Encrypt, &key, &iv, &text);
        gamma(&mut block, &iv, &mut text);
        assert!(sealed == text, "{}: gamma", peer.name());
    }
    let (mode, ecb) = (
        CipherMode::gost89(Gost89Mode::Cmac, Sbox::Gost94Test, false),
        CipherMode::gost89(Gost89Mode::Ecb, Sbox::Gost94Test, false),
    );
    let mut context = with_block.cipher(ecb, Direction::Encrypt, &key, &[]).expect("a context");
    let mut block = |input: [u8; 8]| {
        let mut output = [0; 8];
        context.update(&input, &mut output).expect("a block");
        output
    };
    for peer in peers.iter().filter(|peer| peer.set(mode).is_some()) {
        for length in [0, 5, 8, 16, 100] {
            let (message, mut tag) = (noise(6, length), [0; 8]);
            peer.mac(mode, &key).expect("a context").mac(&message, &mut tag).expect("a tag");
            assert_eq!(tag, cmac(&mut block, &message), "{}: CMAC of {length}", peer.name());
        }
    }
}

#[test]
fn wrong_sizes_and_modes_are_named() {
    for peer in present_ciphers("wrong sizes") {
        for set in peer.sets() {
            let who = format!("{} {:?}", peer.name(), set.mode);
            match set.mode.kind() {
                CipherKind::Cipher => {
                    let long = vec![0; set.iv + 1];
                    let opened = peer.cipher(set.mode, Direction::Encrypt, &key(1), &long);
                    let error = opened.err().unwrap_or_else(|| panic!("{who}"));
                    let wrong = PeerError::Length { what: "vector", expected: set.iv, actual: set.iv + 1 };
                    assert_eq!(error, wrong, "{who}");
                    let iv = vec![0; set.iv];
                    let mut context = peer.cipher(set.mode, Direction::Encrypt, &key(1), &iv).expect("one");
                    assert_eq!(context.rekey(&key(2), &long), Err(wrong), "{who}");
                    assert_eq!(context.restart(&long), Err(wrong), "{who}");
                    let short = context.update(&[0; 16], &mut [0; 8]);
                    assert!(matches!(short, Err(PeerError::Length { what: "output", .. })), "{who}");
                    let odd = context.update(&[0; 9], &mut [0; 9]);
                    let unaligned = Err(PeerError::Unaligned { granule: 8, actual: 9 });
                    assert_eq!(odd, if set.granule == 8 { unaligned } else { Ok(()) }, "{who}");
                    assert_eq!(peer.mac(set.mode, &key(1)).err(), Some(PeerError::UnknownMode), "{who}");
                }
                CipherKind::Mac => {
                    let mut context = peer.mac(set.mode, &key(1)).expect("a context");
                    let short = context.mac(b"text", &mut vec![0; set.tag - 1]);
                    assert!(matches!(short, Err(PeerError::Length { what: "tag", .. })), "{who}");
                    assert_eq!(peer.aead(set.mode, &key(1)).err(), Some(PeerError::UnknownMode), "{who}");
                }
                CipherKind::Aead => {
                    let mut context = peer.aead(set.mode, &key(1)).expect("a context");
                    let nonce = context.seal(&[0; 7], b"", b"text", &mut [0; 4], &mut [0; 8]);
                    assert!(matches!(nonce, Err(PeerError::Length { what: "nonce", .. })), "{who}");
                    let tag = context.open(&[0; 8], b"", b"text", &mut [0; 4], &[0; 7]);
                    assert!(matches!(tag, Err(PeerError::Length { what: "tag", .. })), "{who}");
                }
            }
        }
    }
}

#[test]
fn what_is_missing_or_damaged_is_named_with_the_remedy() {
    let empty = tempfile::tempdir().expect("a directory");
    let none = CipherPlaces { built: empty.path().to_owned(), gost_engine: None };
    let refused =
        |places: &CipherPlaces, name: &str| Peers::find_cipher(places, name).err().expect("refused");
    for name in ["rustcrypto-native", "rustcrypto-generic", "gost-engine-head"] {
        let unavailable = refused(&none, name);
        assert!(unavailable.why.contains("does not exist"), "{unavailable}");
        assert!(unavailable.remedy.contains("cargo xtask peers"), "{unavailable}");
    }
    let flavour: fn(&str) -> &'static CipherFlavour =
        |name| lanework_peers::CIPHER_FLAVOURS.iter().find(|flavour| flavour.name == name).expect("known");
    let library = empty.path().join(flavour("rustcrypto-generic").library());
    std::fs::write(&library, "no library").expect("written");
    assert!(refused(&none, "rustcrypto-generic").why.contains("rustcrypto-generic.json"));
    // A card that describes another file: the one here has been replaced.
    let built = places().built;
    if let Ok(card) = std::fs::read(built.join(flavour("rustcrypto-generic").card())) {
        std::fs::write(empty.path().join(flavour("rustcrypto-generic").card()), card).expect("written");
        assert!(refused(&none, "rustcrypto-generic").why.contains("damaged, or replaced"));
    }
    let named = |path| CipherPlaces { built: empty.path().to_owned(), gost_engine: Some(path) };
    assert!(refused(&named(empty.path().join("gost.so")), "gost-engine-head").why.contains("gost.so"));
    assert!(!refused(&named(library), "gost-engine-head").why.is_empty());
    assert!(refused(&none, "another").why.contains("libgcrypt"));
}
