//! The same inputs to other people's implementations, which must answer as ours do. They are those that `cargo xtask peers`
//! built and those of the system, from `LANEWORK_PEERS` or `target/peers`; with none of them a target cannot be run, and says so.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use lanework_cpu::Cpu;
use lanework_integer::Uint;
use lanework_magma::mgm::Mgm;
use lanework_magma::modes::{
    CbcDecryptor, CbcEncryptor, CfbDecryptor, CfbEncryptor, Ctr, CtrAcpkm, Ofb, Omac, Stream,
};
use lanework_magma::{Engine, Magma};
use lanework_mayo::{PublicKey, Round, Signature};
use lanework_peers::gmp::Gmp;
use lanework_peers::{
    CIPHER_FLAVOURS, CipherMode, CipherPeer, CipherPlaces, DelayLibrary, Direction, PeerError, Peers,
    SignaturePeer,
};
use lanework_vdf::{Limits, Question, Strict};

use crate::bytes::Bytes;
use crate::{mayo, vdf};

fn folder() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/peers");
    std::env::var_os("LANEWORK_PEERS").map_or(built, PathBuf::from)
}

/// The available ones, or why there are none.
struct Found<T>(Vec<T>, Vec<String>);

impl<T> Found<T> {
    fn of(all: impl IntoIterator<Item = Result<T, String>>) -> Found<T> {
        let mut found = Found(Vec::new(), Vec::new());
        for one in all {
            match one {
                Ok(peer) => found.0.push(peer),
                Err(why) => found.1.push(why),
            }
        }
        found
    }

    fn missing(&self) -> Option<String> {
        self.0.is_empty().then(|| self.1.join("; "))
    }
}

static SIGNERS: LazyLock<Found<Box<dyn SignaturePeer>>> = LazyLock::new(|| {
    let all = Peers::discover(&folder()).into_iter().map(|peer| peer.map_err(|why| why.to_string()));
    // Ours have no round 1.
    Found::of(all.filter(|peer| peer.as_ref().map_or(true, |peer| peer.round() == "round2")))
});

static CIPHERS: LazyLock<Found<Box<dyn CipherPeer>>> = LazyLock::new(|| {
    let gost_engine = std::env::var_os("LANEWORK_GOST_ENGINE").map(PathBuf::from);
    let all = Peers::discover_ciphers(&CipherPlaces { built: folder(), gost_engine });
    debug_assert_eq!(all.len(), CIPHER_FLAVOURS.len());
    Found::of(all.into_iter().map(|peer| peer.map_err(|why| why.to_string())))
});

static DELAY: LazyLock<Found<DelayLibrary>> =
    LazyLock::new(|| Found::of([Peers::delay_library(&folder()).map_err(|why| why.to_string())]));

pub(crate) fn no_signers() -> Option<String> {
    SIGNERS.missing()
}

pub(crate) fn no_ciphers() -> Option<String> {
    CIPHERS.missing()
}

pub(crate) fn no_delay() -> Option<String> {
    DELAY.missing()
}

/// As [`mayo::verify`], in round 2: every peer's verdict on a signature, a key and a message, changed or not, equals ours.
pub(crate) fn signatures(data: &[u8]) {
    let Some(case) = mayo::case(data, |p| p.round() == Round::Two) else { return };
    let key = PublicKey::from_bytes(case.params, &case.public).expect("any bytes of this length are a key");
    let ours = Signature::from_bytes(case.params, &case.signature)
        .is_ok_and(|s| key.verify(lanework_mayo::Engine::best(), &case.message, &s).is_ok());
    let name = format!("mayo{}", case.params.set().number());
    for peer in &SIGNERS.0 {
        let Some(set) = peer.set(&name) else { continue };
        let theirs = peer.verify(set.id, &case.message, &case.signature, &case.public);
        same(peer.name(), &name, theirs, ours);
    }
}

fn same(peer: &str, what: &str, theirs: Result<bool, PeerError>, ours: bool) {
    assert!(theirs == Ok(ours), "{what}: {peer} says {theirs:?}, we say {ours}");
}

fn engines() -> Vec<Engine> {
    let cpu = Cpu::detect();
    Engine::available(&cpu).collect()
}

fn apply(state: Result<impl Stream, lanework_magma::Error>, text: &[u8]) -> Vec<u8> {
    let mut data = text.to_vec();
    state.expect("an IV of the mode's length").apply(&mut data).expect("text that the mode takes");
    data
}

/// A mode, a backend, a change, a key, an IV, a text: in every mode that a peer has too, both ways, its output equals ours,
/// and so does its verdict on a changed sealed message.
pub(crate) fn ciphers(data: &[u8]) {
    CIPHERS.0.iter().for_each(|peer| cipher(peer.as_ref(), data));
}

fn cipher(peer: &dyn CipherPeer, data: &[u8]) {
    let mut input = Bytes(data);
    let (mode, engine, change) = (input.byte() % 9, input.byte(), input.byte());
    let (key, mut iv) = (input.array::<32>(), input.array::<8>());
    let engines = engines();
    let engine = engines[usize::from(engine) % engines.len()];
    let magma = Magma::with(&key, engine);
    let whole = &input.0[..input.0.len() / 8 * 8];
    let (mode, way, text) = match mode {
        0 => (CipherMode::MagmaCtr, Direction::Encrypt, input.0),
        1 => (CipherMode::MagmaCtrAcpkm, Direction::Encrypt, input.0),
        2 => (CipherMode::MagmaCbc, Direction::Encrypt, whole),
        3 => (CipherMode::MagmaCbc, Direction::Decrypt, whole),
        4 => (CipherMode::MagmaCfb, Direction::Encrypt, input.0),
        5 => (CipherMode::MagmaCfb, Direction::Decrypt, input.0),
        6 => (CipherMode::MagmaOfb, Direction::Encrypt, input.0),
        7 => (CipherMode::MagmaOmac, Direction::Encrypt, input.0),
        _ => (CipherMode::MagmaMgm, Direction::Encrypt, input.0),
    };
    let Some(set) = peer.set(mode) else { return };
    let of = || format!("{mode:?} {way:?} of {} and of ours on {}", peer.name(), engine.name());
    match mode {
        CipherMode::MagmaOmac => {
            let mut mac = Omac::with_key(&magma, set.tag).expect("a tag of the mode's length");
            mac.update(text).expect("short enough");
            let ours = mac.finish();
            let mut theirs = vec![0; set.tag];
            let done = peer.mac(mode, &key).and_then(|mut mac| mac.mac(text, &mut theirs));
            assert!(done.is_ok() && theirs == ours.as_ref(), "{} differ: {done:?}", of());
        }
        CipherMode::MagmaMgm => {
            iv[0] &= 0x7f;
            let (aad, text) = text.split_at(usize::from(change).min(text.len()));
            if aad.is_empty() && text.is_empty() {
                return;
            }
            let mgm = Mgm::with(&key, 8, engine).expect("a tag of 8 bytes");
            let mut ours = text.to_vec();
            let made = mgm.seal(&iv, aad, &mut ours).expect("lengths are within bounds");
            let (mut sealed, mut tag) = (vec![0; text.len()], vec![0; set.tag]);
            let mut theirs = peer.aead(mode, &key).unwrap_or_else(|e| panic!("{}: {e}", of()));
            let done = theirs.seal(&iv, aad, text, &mut sealed, &mut tag);
            let same = done.is_ok() && sealed == ours && tag == made.as_slice()[..set.tag];
            assert!(same, "{} seal differently: {done:?}", of());
            // One bit, of the tag or of the text.
            let at = usize::from(change) % (tag.len() + sealed.len());
            match at.checked_sub(tag.len()) {
                None => tag[at] ^= 1 << (change % 8),
                Some(at) => sealed[at] ^= 1 << (change % 8),
            }
            let refused = theirs.open(&iv, aad, &sealed, &mut vec![0; text.len()], &tag);
            let mut opened = sealed.clone();
            let ours = mgm.open(&iv, aad, &mut opened, &tag);
            assert!(refused == Ok(false) && ours.is_err(), "{}: {refused:?}, {ours:?}", of());
        }
        _ => {
            let iv = &iv[..set.iv.min(8)];
            let ours = match (mode, way) {
                (CipherMode::MagmaCtr, _) => apply(Ctr::with_key(&magma, iv), text),
                (CipherMode::MagmaCtrAcpkm, _) => apply(CtrAcpkm::with_key(&magma, iv), text),
                (CipherMode::MagmaCbc, Direction::Encrypt) => apply(CbcEncryptor::with_key(&magma, iv), text),
                (CipherMode::MagmaCbc, _) => apply(CbcDecryptor::with_key(&magma, iv), text),
                (CipherMode::MagmaCfb, Direction::Encrypt) => apply(CfbEncryptor::with_key(&magma, iv), text),
                (CipherMode::MagmaCfb, _) => apply(CfbDecryptor::with_key(&magma, iv), text),
                _ => apply(Ofb::with_key(&magma, iv), text),
            };
            let mut theirs = vec![0; text.len()];
            let done = peer.cipher(mode, way, &key, iv).and_then(|mut c| c.update(text, &mut theirs));
            assert!(done.is_ok() && theirs == ours, "{} differ: {done:?}", of());
        }
    }
}

pub(crate) fn cipher_seeds() -> Vec<Vec<u8>> {
    let text = |n: usize| (0..n).map(|i| (i * i / 7) as u8).collect::<Vec<u8>>();
    (0..9u8).map(|mode| [&[mode, mode, 9 * mode][..], &text(50 + 260 * usize::from(mode))].concat()).collect()
}

/// As [`vdf::verify`]: chiavdf's verdict on a proof, changed or not, equals our strict mode's.
pub(crate) fn proofs(data: &[u8]) {
    let case = vdf::case(data);
    let question = Question { x: case.x, proof: &case.proof, iterations: case.iterations, depth: case.depth };
    let ours = lanework_vdf::verify(Strict, case.d, &question, &Limits::default()).is_ok();
    let mut number = vec![0; case.d.bits().div_ceil(8)];
    case.d.value().magnitude().write_be_bytes(&mut number);
    for library in &DELAY.0 {
        let theirs = library.verify(&number, case.x, &case.proof, case.iterations, case.depth);
        same("chiavdf", "a proof", theirs, ours);
    }
}

fn gmp<const N: usize>(x: &Uint<N>) -> Gmp {
    Gmp::new(x.limbs(), false)
}

/// Two numbers of 1056 bits and a modulus: the plain types' product, quotient and remainder against GMP's.
pub(crate) fn integers(data: &[u8]) {
    const R: usize = 17;
    let mut input = Bytes(data);
    let mut number = || Uint::<R>::from_le_bytes(&input.exactly(8 * R)).expect("its length");
    let (x, y, m) = (number(), number(), number());
    let product: Uint<{ 2 * R }> = x.times(&y);
    let mut theirs = Gmp::default();
    theirs.set_product(&gmp(&x), &gmp(&y));
    assert!(gmp(&product) == theirs, "the product of {x:?} and {y:?}");
    match (m.is_zero(), theirs.divided(&gmp(&m))) {
        (true, divided) => assert!(divided.is_none()),
        (false, None) => panic!("GMP cannot divide by {m:?}"),
        (false, Some((quotient, rest))) => {
            let (q, r) = product.div_rem(&m);
            assert!(gmp(&q) == quotient && gmp(&r) == rest, "{product:?} by {m:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use lanework_peers::{AeadContext, Card, CipherContext, CipherKey, CipherSet, MacContext, card};

    use super::*;

    /// A peer that returns the bytes unchanged.
    struct Idle(Card, [CipherSet; 1]);

    impl CipherContext for Idle {
        fn rekey(&mut self, _: &CipherKey, _: &[u8]) -> Result<(), PeerError> {
            Ok(())
        }
        fn restart(&mut self, _: &[u8]) -> Result<(), PeerError> {
            Ok(())
        }
        fn update(&mut self, input: &[u8], output: &mut [u8]) -> Result<(), PeerError> {
            output.copy_from_slice(input);
            Ok(())
        }
    }

    impl CipherPeer for Idle {
        fn name(&self) -> &str {
            "idle"
        }
        fn card(&self) -> &Card {
            &self.0
        }
        fn sets(&self) -> &[CipherSet] {
            &self.1
        }
        fn cipher(
            &self,
            _: CipherMode,
            _: Direction,
            _: &CipherKey,
            _: &[u8],
        ) -> Result<Box<dyn CipherContext>, PeerError> {
            Ok(Box::new(Idle(self.0.clone(), self.1)))
        }
        fn mac(&self, _: CipherMode, _: &CipherKey) -> Result<Box<dyn MacContext>, PeerError> {
            Err(PeerError::UnknownMode)
        }
        fn aead(&self, _: CipherMode, _: &CipherKey) -> Result<Box<dyn AeadContext>, PeerError> {
            Err(PeerError::UnknownMode)
        }
    }

    #[test]
    fn a_peer_that_does_otherwise_is_found() {
        let set = CipherSet { mode: CipherMode::MagmaOfb, native: "none", iv: 8, tag: 0, granule: 1 };
        // The card of a peer that only handles bytes is not read.
        let card = serde_json::json!({
            "schema": card::SCHEMA, "name": "idle", "family": "", "project": "", "version": "", "round": "", "source": "",
            "source_sha256": "", "compiler": "", "compiler_version": "", "flags": "", "options": [], "target": "",
            "cpu": null, "recipe": "", "checked": [], "library_bytes": 0, "library_sha256": "",
        });
        let idle = Idle(serde_json::from_value(card).expect("a card"), [set]);
        let seeds = cipher_seeds();
        // Modes that it lacks are skipped.
        seeds.iter().filter(|seed| seed[0] != 6).for_each(|seed| cipher(&idle, seed));
        let seed = seeds.into_iter().find(|seed| seed[0] == 6).expect("there is one");
        let why = catch_unwind(|| cipher(&idle, &seed)).expect_err("it is found");
        let why = why.downcast_ref::<String>().expect("with words");
        assert!(why.contains("MagmaOfb") && why.contains("idle"), "{why}");
        let lies = catch_unwind(|| same("liar", "mayo1", Ok(true), false)).expect_err("it is found");
        assert!(lies.downcast_ref::<String>().is_some_and(|why| why.contains("liar says Ok(true)")));
        assert!(catch_unwind(|| same("liar", "mayo1", Err(PeerError::UnknownSet), false)).is_err());
        same("honest", "mayo1", Ok(false), false);
    }

    #[test]
    fn where_there_are_none_that_is_said() {
        let none = Found::<()>::of([Err("one is not built".to_owned()), Err("nor another".to_owned())]);
        assert_eq!(none.missing().as_deref(), Some("one is not built; nor another"));
        assert_eq!(Found::of([Err("not built".to_owned()), Ok(())]).missing(), None);
    }
}
