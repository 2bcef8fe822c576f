//! The submissions' known answers, reproduced through the peers.
//!
//! This shows two things at once: the peers are the rounds they say they are, and they draw from a
//! generator plugged in with `set_random`.
#![forbid(unsafe_code)]

mod common;

use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;

use aes::Aes256;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use common::{present, with_stack};
use lanework_peers::{SetId, SignaturePeer, seed_random, set_random};
use sha2::{Digest, Sha256};

/// The generator of NIST's known-answer programs: SP 800-90A's CTR_DRBG with AES-256, without a
/// derivation function, without personalisation, never reseeded.
struct Drbg {
    key: [u8; 32],
    counter: u128,
}

impl Drbg {
    fn new(entropy: &[u8; 48]) -> Self {
        let mut drbg = Self { key: [0; 32], counter: 0 };
        drbg.update(entropy);
        drbg
    }

    fn blocks(&mut self, out: &mut [u8]) {
        let cipher = Aes256::new(&self.key.into());
        for chunk in out.chunks_mut(16) {
            self.counter = self.counter.wrapping_add(1);
            let mut block = self.counter.to_be_bytes().into();
            cipher.encrypt_block(&mut block);
            chunk.copy_from_slice(&block[..chunk.len()]);
        }
    }

    fn update(&mut self, input: &[u8; 48]) {
        let mut state = [0; 48];
        self.blocks(&mut state);
        for (byte, other) in state.iter_mut().zip(input) {
            *byte ^= other;
        }
        self.key.copy_from_slice(&state[..32]);
        self.counter = u128::from_be_bytes(state[32..].try_into().expect("sixteen bytes"));
    }

    fn fill(&mut self, out: &mut [u8]) {
        self.blocks(out);
        self.update(&[0; 48]);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02X}");
        text
    })
}

/// Record `count` of the answer file, made by `peer`; also checks that the signature verifies.
fn record(peer: &dyn SignaturePeer, id: SetId, count: usize, seed: &[u8; 48], message: &[u8]) -> String {
    let set = &peer.sets().iter().find(|set| set.id == id).expect("its own id");
    let drbg = Rc::new(RefCell::new(Drbg::new(seed)));
    let source = Rc::clone(&drbg);
    set_random(Box::new(move |out| source.borrow_mut().fill(out)));
    let mut pk = vec![0; set.public_key];
    let mut sk = vec![0; set.secret_key];
    let mut signed = vec![0; set.signature];
    peer.keypair(id, &mut pk, &mut sk).expect("a key pair");
    peer.sign(id, &mut signed, message, &sk).expect("a signature");
    assert_eq!(peer.verify(id, message, &signed, &pk), Ok(true), "{} {count}", peer.name());
    signed.extend_from_slice(message);
    format!(
        "count = {count}\nseed = {}\nmlen = {}\nmsg = {}\npk = {}\nsk = {}\nsmlen = {}\nsm = {}\n",
        hex(seed),
        message.len(),
        hex(message),
        hex(&pk),
        hex(&sk),
        signed.len(),
        hex(&signed)
    )
}

/// SHA-256 of record 0, and of all hundred records with an empty line between them.
fn digests(peer: &dyn SignaturePeer, id: SetId) -> (String, String) {
    let mut outer = Drbg::new(&std::array::from_fn(|index| index as u8));
    let mut records = Vec::new();
    for count in 0..100 {
        let mut seed = [0; 48];
        outer.fill(&mut seed);
        let mut message = vec![0; 33 * (count + 1)];
        outer.fill(&mut message);
        records.push(record(peer, id, count, &seed, &message));
    }
    seed_random(0);
    let digest = |text: &str| hex(&Sha256::digest(text)).to_lowercase();
    (digest(&records[0]), digest(&records.join("\n")))
}

/// As liboqs publishes them with each release, in `tests/KATs/sig/kats.json`.
fn published(round: &str, set: &str) -> (&'static str, &'static str) {
    match (round, set) {
        ("round1", "mayo1") => (
            "ba2473dedd92cf3b8a1fc14fc22f2ffdde972c8b64cfcd8cddb4f803e48df017",
            "5cf156cf74fc65b43863399ecc4b26ad7b4b3b2cd8485215dc0c011e2825b145",
        ),
        ("round1", "mayo2") => (
            "72cb237642b2c0c4e7f8c824d9c8601ac7189784649d28dbb2cccfb94732c9a3",
            "c0daf74b54fae78685c87b32d3b36a418bac884c3564ea96d56c6601b138d449",
        ),
        ("round1", "mayo3") => (
            "dbc49f4fdfa0de69d416051215cb53c042c4a329d325452d079f3734b7467a6b",
            "f66b95dda153b7df00610aa018f0644146e7e564b33562c51bb088c40fb0dcb2",
        ),
        ("round1", "mayo5") => (
            "f2c1c69045c7d15e714a04119965e8a7007ef54f9293158587560227c97b237d",
            "7b230c2626f57159a243d8dfc69c62cb94dd0f179dd2b4f2ef3606deb6404477",
        ),
        ("round2", "mayo1") => (
            "178adb997203ae0512b1bd6fa4a5cfae25805d88aeb0ce5226981423153418ee",
            "c76a60a0a32ec71a078a831a4c2afd4b12460015b0a9685c2e8d42e809689865",
        ),
        ("round2", "mayo2") => (
            "777df9b41af1a58536ef76d483775b5c8389ff991e70652fa3af803770a5fce3",
            "765644834840300b36d070878156225370b5bcc8e4ce64e7b2e74fefd2597aea",
        ),
        ("round2", "mayo3") => (
            "af940f5cd678bde08f452d3ee7e831ec1a2269715579c604ae699069b6fd9c15",
            "65e7af190b552b70b2ccf7276a560122742aa5773a42dd760944d93dc5a63ce8",
        ),
        ("round2", "mayo5") => (
            "9a2ede41913131ab479c2581a1a8e86b97222d800aeb16bf67f6163481f2d587",
            "63068306163c9b65a2227cf808ca0cd60e5bf0f536f9c7119da325a2d3707bc7",
        ),
        other => panic!("no answers are published for {other:?}"),
    }
}

#[test]
fn every_peer_gives_the_published_answers() {
    with_stack(|| {
        for peer in present("every_peer_gives_the_published_answers") {
            for set in peer.sets() {
                let (first, all) = digests(peer.as_ref(), set.id);
                let expected = published(peer.round(), set.name);
                assert_eq!((&*first, &*all), expected, "{} {}", peer.name(), set.name);
            }
        }
    });
}

/// The first numbers of the known-answer programs: the seed and message of record 0 are the same in
/// every NIST submission that uses them.
#[test]
fn the_generator_is_nists() {
    let mut outer = Drbg::new(&std::array::from_fn(|index| index as u8));
    let mut seed = [0; 48];
    outer.fill(&mut seed);
    let expected =
        "061550234D158C5EC95595FE04EF7A25767F2E24CC2BC479D09D86DC9ABCFDE7056A8C266F9EF97ED08541DBD2E1FFA1";
    assert_eq!(hex(&seed), expected);
    let mut message = [0; 33];
    outer.fill(&mut message);
    assert_eq!(hex(&message), "D81C4D8D734FCBFBEADE3D3F8A039FAA2A2C9957E835AD55B22E75BF57BB556AC8");
}

/// A panic in a plugged-in source comes out of the peer's method, past the foreign code.
#[test]
fn a_panicking_source_is_the_callers_panic() {
    with_stack(|| {
        for peer in present("a_panicking_source") {
            let set = &peer.sets()[0];
            let (mut pk, mut sk) = (vec![0; set.public_key], vec![0; set.secret_key]);
            set_random(Box::new(|_| std::panic::panic_any("planted")));
            let keypair = std::panic::AssertUnwindSafe(|| peer.keypair(set.id, &mut pk, &mut sk));
            let panic = std::panic::catch_unwind(keypair).expect_err("the panic comes through");
            assert_eq!(panic.downcast_ref::<&str>(), Some(&"planted"), "{}", peer.name());
            seed_random(0);
            peer.keypair(set.id, &mut pk, &mut sk).expect("and the peer still works");
        }
    });
}
