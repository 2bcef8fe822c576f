//! Other people's MAYO beside ours: variants for the races, and the check that both speak the same language.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::path::Path;

use lanework_mayo::{Engine, Params, PublicKey, SecretKey, SignOptions, Signature};
use lanework_peers::{ExpandedKey, FLAVOURS, PeerError, Peers, SetId, SignaturePeer, seed_random};
use lanework_race::gate::GateRow;
use lanework_race::machine::PeerBuild;
use lanework_race::subject::{Facts, Runnable, Unavailable, Variant, work};

use super::{Filler, Inputs, Operation, turns};
use crate::Context;

/// The name that peers give a parameter set.
fn set_name(params: &Params) -> String {
    format!("mayo{}", params.set().number())
}

fn round_name(params: &Params) -> String {
    format!("round{}", params.round().number())
}

/// Compilers and flags of every peer that is there, for the machine card.
#[must_use]
pub fn builds(dir: &Path) -> Vec<PeerBuild> {
    Peers::discover(dir)
        .into_iter()
        .flatten()
        .map(|peer| {
            let card = peer.card();
            PeerBuild {
                name: peer.name().to_owned(),
                version: format!("{} {} ({})", card.project, card.version, card.round),
                compiler: card.compiler_version.clone(),
                flags: card.flags.clone(),
            }
        })
        .collect()
}

/// The peers of this set's round as variants; a missing peer gives the reason when it is run.
pub(super) fn variants(context: &Context, params: &'static Params, operation: Operation) -> Vec<Variant> {
    let Some(dir) = context.peers.clone() else { return Vec::new() };
    FLAVOURS
        .iter()
        .filter(|f| f.release.round == round_name(params) && operation != Operation::SignExpanded)
        .filter(|_| operation != Operation::VerifyExpanded)
        .map(|flavour| {
            let dir = dir.clone();
            Variant::new(flavour.name, move || prepare(&dir, flavour.name, params, operation))
        })
        .collect()
}

fn failed(e: PeerError) -> Unavailable {
    Unavailable::because(e.to_string())
}

/// A peer with one of its sets and a key pair of it.
struct Ready {
    peer: Box<dyn SignaturePeer>,
    set: SetId,
    public: Vec<u8>,
    secret: Vec<u8>,
    signature_bytes: usize,
    code: String,
    expanded: Option<usize>,
}

impl Ready {
    fn new(dir: &Path, name: &str, params: &Params) -> Result<Ready, Unavailable> {
        let peer = Peers::find(dir, name).map_err(|u| Unavailable::because(u.to_string()))?;
        let set = peer
            .set(&set_name(params))
            .cloned()
            .ok_or_else(|| Unavailable::because(format!("{name} has no {}", params.set())))?;
        let (mut public, mut secret) = (vec![0; set.public_key], vec![0; set.secret_key]);
        seed_random(1);
        peer.keypair(set.id, &mut public, &mut secret).map_err(failed)?;
        let code = format!("{} aes:{}", set.code, peer.aes());
        Ok(Ready {
            peer,
            set: set.id,
            public,
            secret,
            signature_bytes: set.signature,
            code,
            expanded: set.expanded_key,
        })
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, PeerError> {
        let mut signature = vec![0; self.signature_bytes];
        let length = self.peer.sign(self.set, &mut signature, message, &self.secret)?;
        signature.truncate(length);
        Ok(signature)
    }
}

fn prepare(
    dir: &Path,
    name: &str,
    params: &'static Params,
    operation: Operation,
) -> Result<Box<dyn Runnable>, Unavailable> {
    let ready = Ready::new(dir, name, params)?;
    let notes = vec![format!("{}; runs {}", ready.peer.card().compiler_version, ready.code)];
    let name = name.to_owned();
    let facts = move || Facts { backend: name.clone(), notes: notes.clone() };
    let messages = Inputs::new(Engine::best(), params).messages;
    let mut next = turns();
    Ok(match operation {
        Operation::Keygen => {
            let (mut public, mut secret) = (ready.public.clone(), ready.secret.clone());
            work(move || assert!(ready.peer.keypair(ready.set, &mut public, &mut secret).is_ok()), facts)
        }
        Operation::Sign => work(move || assert!(black_box(ready.sign(&messages[next()])).is_ok()), facts),
        Operation::Verify => {
            let signatures =
                messages.iter().map(|m| ready.sign(m)).collect::<Result<Vec<_>, _>>().map_err(failed)?;
            work(
                move || {
                    let i = next();
                    let valid = ready.peer.verify(ready.set, &messages[i], &signatures[i], &ready.public);
                    assert_eq!(valid, Ok(true));
                },
                facts,
            )
        }
        Operation::ExpandPublic => {
            let bytes = ready.expanded.ok_or_else(|| failed(PeerError::Hidden))?;
            let mut out = ExpandedKey::new(bytes);
            work(move || assert!(ready.peer.expand_pk(ready.set, &ready.public, &mut out).is_ok()), facts)
        }
        Operation::SignExpanded | Operation::VerifyExpanded => {
            return Err(Unavailable::because("its interface takes compact keys only"));
        }
    })
}

/// Keys and signatures made by each side verify on the other, and damaged ones on neither: one row for each peer.
pub(super) fn gate_rows(context: &Context, params: &'static Params) -> Vec<GateRow> {
    let Some(dir) = &context.peers else { return Vec::new() };
    FLAVOURS
        .iter()
        .filter(|f| f.release.round == round_name(params))
        .map(|flavour| {
            let mut row = GateRow {
                what: format!("mayo/{}: keys and signatures both ways", params.path()),
                backend: flavour.name.to_owned(),
                passed: 0,
                failed: 0,
                skipped: 0,
                why: String::new(),
            };
            match Ready::new(dir, flavour.name, params) {
                Err(unavailable) => (row.skipped, row.why) = (1, unavailable.why),
                Ok(ready) => {
                    for (what, held) in both_ways(&ready, params) {
                        if held {
                            row.passed += 1;
                        } else {
                            row.failed += 1;
                            row.why = what.to_owned();
                        }
                    }
                }
            }
            row
        })
        .collect()
}

fn both_ways(ready: &Ready, params: &'static Params) -> Vec<(&'static str, bool)> {
    let engine = Engine::best();
    let message = b"keys and signatures both ways";
    let mut cases = Vec::new();

    // Theirs, on our side: the key's bytes mean the same key, and their signature verifies.
    let our_view = SecretKey::from_seed(params, &ready.secret);
    cases.push((
        "the public key of their secret key differs from ours",
        our_view.is_ok_and(|s| s.public_key(engine).as_bytes() == ready.public.as_slice()),
    ));
    let theirs = ready.sign(message).ok().and_then(|s| Signature::from_bytes(params, &s).ok());
    let key = PublicKey::from_bytes(params, &ready.public).ok();
    let accepts = |key: &PublicKey, s: &Signature| key.verify(engine, message, s).is_ok();
    cases.push((
        "their signature is refused here",
        key.as_ref().zip(theirs.as_ref()).is_some_and(|(k, s)| accepts(k, s)),
    ));
    let damaged = theirs.as_ref().and_then(|s| {
        let mut bytes = s.as_bytes().to_vec();
        bytes[params.n() / 2] ^= 1;
        Signature::from_bytes(params, &bytes).ok()
    });
    cases.push((
        "their signature with a flipped bit is accepted here",
        key.as_ref().zip(damaged.as_ref()).is_some_and(|(k, s)| !accepts(k, s)),
    ));

    // Ours, on their side.
    let mut filler = Filler::new(7);
    let secret = SecretKey::generate(params, &mut filler);
    let public = secret.public_key(engine);
    let ours = secret.sign_with(engine, message, SignOptions::default(), &mut filler);
    let they_say = |s: &[u8]| ready.peer.verify(ready.set, message, s, public.as_bytes());
    cases.push((
        "our signature is refused there",
        ours.as_ref().is_ok_and(|s| they_say(s.as_bytes()) == Ok(true)),
    ));
    cases.push((
        "our signature with a flipped bit is accepted there",
        ours.is_ok_and(|s| {
            let mut bytes = s.into_bytes();
            bytes[params.n() / 2] ^= 1;
            they_say(&bytes) == Ok(false)
        }),
    ));
    cases
}
