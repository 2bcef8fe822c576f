//! Published answers of Magma and GOST 28147-89, reproduced through the peers.
#![forbid(unsafe_code)]

mod common;

use common::{bytes, present_ciphers};
use lanework_peers::cipher::{reorder_blocks, reorder_key};
use lanework_peers::{CipherKey, CipherMode, CipherPeer, Direction, Gost89Mode, Sbox};

/// The key of RFC 8891 and of GOST R 34.13-2015, A.2.
const KEY: &str = "ffeeddccbbaa99887766554433221100 f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";

/// The text of GOST R 34.13-2015, A.2, as gost-engine's `test_ciphers.c` quotes it.
const TEXT: &str = "92def06b3c130a59 db54c704f8189d20 4a98fb2e67a8024c 8912409b17b57e41";

fn key(hex: &str) -> CipherKey {
    bytes(hex).try_into().expect("32 bytes")
}

struct Answer {
    source: &'static str,
    mode: CipherMode,
    key: &'static str,
    iv: &'static str,
    plain: &'static str,
    sealed: &'static str,
}

const ANSWERS: &[Answer] = &[
    Answer {
        source: "RFC 8891, A.4",
        mode: CipherMode::MagmaEcb,
        key: KEY,
        iv: "",
        plain: "fedcba9876543210",
        sealed: "4ee901e5c2d8ca3d",
    },
    Answer {
        source: "RFC 9058, A.2.1: Z_1, the first block of GOST R 34.13-2015, A.2.1",
        mode: CipherMode::MagmaEcb,
        key: KEY,
        iv: "",
        plain: "92def06b3c130a59",
        sealed: "2b073f0494f372a0",
    },
    Answer {
        source: "GOST R 34.13-2015, A.2.2, from gost-engine's test_ciphers.c",
        mode: CipherMode::MagmaCtr,
        key: KEY,
        iv: "12345678",
        plain: TEXT,
        sealed: "4e98110c97b7b93c 3e250d93d6e85d69 136d868807b2dbef 568eb680ab52a12d",
    },
    Answer {
        source: "gost-engine's test_ciphers.c, with a third of the vector of GOST R 34.13-2015, A.2.4",
        mode: CipherMode::MagmaCbc,
        key: KEY,
        iv: "1234567890abcdef",
        plain: TEXT,
        sealed: "96d1b05eea683919 f396b78c1d47bb61 6183e2cca976a4ba be9ce87d6fa73cf2",
    },
    Answer {
        source: "CryptoPro's test testcnt1, from gost-engine's test_gost2814789.c",
        mode: CipherMode::gost89(Gost89Mode::Cnt, Sbox::CryptoProA, true),
        key: "599f84bac3f3d2f160e1e3f26a961af9 9c48b24ebcbbbf7cd8f3accd968d286a",
        iv: "8dafa8d158ed058d",
        plain: "90a23966ae01b9a3524ec8ed6cdd8830",
        sealed: "6e7262cce3593690833afea91bc9bece",
    },
];

/// The answer's cipher text, made in two parts where the mode allows, and its plain text again.
fn both_ways(peer: &dyn CipherPeer, answer: &Answer) {
    let (iv, plain, sealed) = (bytes(answer.iv), bytes(answer.plain), bytes(answer.sealed));
    let who = format!("{} {}", peer.name(), answer.source);
    for (direction, input, expected) in
        [(Direction::Encrypt, &plain, &sealed), (Direction::Decrypt, &sealed, &plain)]
    {
        let mut context = peer.cipher(answer.mode, direction, &key(answer.key), &iv).expect("a context");
        let mut output = vec![0; input.len()];
        let at = input.len() / 2 / 8 * 8;
        let (front, back) = output.split_at_mut(at);
        context.update(&input[..at], front).expect("the front");
        context.update(&input[at..], back).expect("the back");
        assert!(output == *expected, "{who} {direction:?}: {output:02x?}");
    }
}

#[test]
fn every_peer_gives_the_published_answers() {
    for peer in present_ciphers("cipher answers") {
        for answer in ANSWERS.iter().filter(|answer| peer.set(answer.mode).is_some()) {
            both_ways(peer.as_ref(), answer);
        }
    }
}

/// RFC 9189, A.1.2.1, record 4095: 1,024 bytes of zeros, then the record's tag under the section's next key.
#[test]
fn counter_mode_changes_its_key_where_rfc_9189_says() {
    for peer in present_ciphers("CTR-ACPKM") {
        if peer.set(CipherMode::MagmaCtrAcpkm).is_none() {
            continue;
        }
        let key = key("58afbe9a4c3198aaabaa2692c419f179 7c9b92deb3cc7446b3635771 13f0fb56");
        let mut plain = vec![0; 1024];
        plain.extend(bytes("58d3bb608fbc98b8"));
        let (iv, mode) = (bytes("00000fff"), CipherMode::MagmaCtrAcpkm);
        let mut context = peer.cipher(mode, Direction::Encrypt, &key, &iv).expect("a context");
        // Twice: the first message leaves a changed key behind, which must not be the second's.
        for round in 0..2 {
            let mut sealed = vec![0; plain.len()];
            context.update(&plain, &mut sealed).expect("encrypted");
            let (front, tag) = (&sealed[..11], &sealed[1024..]);
            assert_eq!(front, bytes("b711438b16201f3c493395"), "{} {round}", peer.name());
            assert_eq!(tag, bytes("63a3e0999acdda77"), "{} {round}", peer.name());
            context.restart(&iv).expect("restarted");
        }
    }
}

struct Code {
    source: &'static str,
    mode: CipherMode,
    key: &'static str,
    message: &'static str,
    tag: &'static str,
}

const CODES: &[Code] = &[
    Code {
        source: "RFC 9189, A.1.2.1: record 0",
        mode: CipherMode::MagmaOmac,
        key: "19a76ed30f4d6d1f5b7263ec491ad838 17c0b57d8a0356127140fb4f7425494d",
        message: "0000000000000000 1703030007 00000000000000",
        tag: "f33eb6896fece286",
    },
    Code {
        source: "GOST R 34.13-2015, A.2.6, from gost-engine's test_digest.c",
        mode: CipherMode::MagmaOmac,
        key: KEY,
        message: TEXT,
        tag: "154e7210",
    },
    Code {
        source: "R 1323565.1.017-2018, A.3.1, from gost-engine's test_digest.c; shorter than any section",
        mode: CipherMode::MagmaOmacAcpkm,
        key: "8899aabbccddeeff0011223344556677 fedcba98765432100123456789abcdef",
        message: "1122334455667700ffeeddcc",
        tag: "a0540e3730acbcf3",
    },
    Code {
        source: "CryptoPro's test testimit1, from gost-engine's test_gost2814789.c",
        mode: CipherMode::gost89(Gost89Mode::Imit, Sbox::CryptoProA, true),
        key: "9d05b79e90cad00a2cdad22ef4e86f5c f5dc37681985b3bfaa18c1c3050a91a2",
        message: "b5a1f0e3ce2f021d67619434 5c41e36e",
        tag: "f81f08a3",
    },
];

#[test]
fn every_code_gives_the_published_answers() {
    for peer in present_ciphers("authentication codes") {
        for code in CODES {
            let Some(set) = peer.set(code.mode) else { continue };
            let mut context = peer.mac(code.mode, &[0; 32]).expect("a context");
            context.rekey(&key(code.key)).expect("another key");
            let (mut tag, message) = (vec![0; set.tag], bytes(code.message));
            for _ in 0..2 {
                context.mac(&message, &mut tag).expect("a tag");
                let expected = bytes(code.tag);
                assert_eq!(tag[..expected.len()], expected, "{} {}", peer.name(), code.source);
            }
            let mut other = message.clone();
            other[0] ^= 1;
            let mut damaged = vec![0; set.tag];
            context.mac(&other, &mut damaged).expect("a tag");
            assert_ne!(tag, damaged, "{} {}", peer.name(), code.source);
        }
    }
}

/// RFC 9058, A.2.1 and A.2.2: key, nonce, associated data, plain text, cipher text, tag.
const SEALED: [[&str; 6]; 2] = [
    [
        KEY,
        "12def06b3c130a59",
        "01010101010101010202020202020202030303030303030304040404040404040505050505050505ea",
        "ffeeddccbbaa99881122334455667700 8899aabbcceeff0a0011223344556677 99aabbcceeff0a001122334455667788 \
         aabbcceeff0a00112233445566778899 aabbcc",
        "c795066c5f9ea03b85113342459185ae 1f2e00d6bf2b785d940470b8bb9c8e7d 9a5dd3731f7ddc70ec27cb0ace6fa576 \
         70f65c646abb75d547aa37c3bcb5c34e 03bb9c",
        "a7928069aa10fd10",
    ],
    [
        "99aabbccddeeff0011223344556677fe dcba98765432100123456789abcdef88",
        "0077665544332211",
        "",
        "22334455667700ff",
        "6a95e1426b259d4e",
        "334ee270450bec9e",
    ],
];

#[test]
fn mgm_gives_the_answers_of_rfc_9058_and_refuses_damage() {
    for peer in present_ciphers("MGM") {
        if peer.set(CipherMode::MagmaMgm).is_none() {
            continue;
        }
        for example in SEALED {
            let [_, nonce, aad, plain, sealed, tag] = example.map(bytes);
            let mut context = peer.aead(CipherMode::MagmaMgm, &[1; 32]).expect("a context");
            context.rekey(&key(example[0])).expect("another key");
            let (mut text, mut found) = (vec![0; plain.len()], vec![0; 8]);
            for _ in 0..2 {
                context.seal(&nonce, &aad, &plain, &mut text, &mut found).expect("sealed");
                assert_eq!((&text, &found), (&sealed, &tag), "{}", peer.name());
            }
            assert_eq!(context.open(&nonce, &aad, &sealed, &mut text, &tag), Ok(true), "{}", peer.name());
            assert_eq!(text, plain, "{}", peer.name());
            let flipped = |bytes: &[u8]| bytes.iter().map(|byte| byte ^ 1).collect::<Vec<_>>();
            let (other_tag, other_text) = (flipped(&tag), flipped(&sealed));
            assert_eq!(context.open(&nonce, &aad, &sealed, &mut text, &other_tag), Ok(false));
            assert_eq!(context.open(&nonce, &aad, &other_text, &mut text, &tag), Ok(false));
            assert_eq!(context.open(&nonce, b"other", &sealed, &mut text, &tag), Ok(false));
            assert_eq!(context.open(&nonce, &aad, &sealed, &mut text, &tag), Ok(true), "{}", peer.name());
        }
    }
}

/// What the standard forbids, as each peer treats it: RustCrypto refuses, gost-engine clears the bit.
#[test]
fn a_nonce_with_its_top_bit_set_is_treated_as_documented() {
    for peer in present_ciphers("MGM's nonce") {
        if peer.set(CipherMode::MagmaMgm).is_none() {
            continue;
        }
        let mut context = peer.aead(CipherMode::MagmaMgm, &key(KEY)).expect("a context");
        let seal = |context: &mut dyn lanework_peers::AeadContext, first: u8| {
            let (mut text, mut tag) = ([0; 5], [0; 8]);
            let done = context.seal(&[first, 2, 3, 4, 5, 6, 7, 8], b"", b"plain", &mut text, &mut tag);
            done.map(|()| (text, tag))
        };
        let allowed = seal(context.as_mut(), 0x12).expect("an allowed nonce");
        match (peer.name(), seal(context.as_mut(), 0x92)) {
            ("gost-engine-head", found) => assert_eq!(found, Ok(allowed)),
            (name, found) => assert!(found.is_err(), "{name}"),
        }
    }
}

/// libgcrypt has only the little-endian cipher: with the orders turned round it must be Magma.
#[test]
fn the_little_endian_cipher_is_magma_after_reordering() {
    let ecb = CipherMode::gost89(Gost89Mode::Ecb, Sbox::Tc26Z, false);
    let cbc = CipherMode::gost89(Gost89Mode::Cbc, Sbox::Tc26Z, false);
    for peer in present_ciphers("reordering") {
        for (mode, answer) in [(ecb, &ANSWERS[0]), (cbc, &ANSWERS[3])] {
            if peer.set(mode).is_none() {
                continue;
            }
            let (mut iv, mut text) = (bytes(answer.iv), bytes(answer.plain));
            reorder_blocks(&mut iv);
            reorder_blocks(&mut text);
            let key = reorder_key(&key(answer.key));
            let mut context = peer.cipher(mode, Direction::Encrypt, &key, &iv).expect("a context");
            let mut sealed = vec![0; text.len()];
            context.update(&text, &mut sealed).expect("encrypted");
            reorder_blocks(&mut sealed);
            assert_eq!(sealed, bytes(answer.sealed), "{} {}", peer.name(), answer.source);
        }
    }
}
