//! Other people's Magma beside ours: variants for the races, and the check that both speak the same language.
#![forbid(unsafe_code)]

mod agreement;

use std::hint::black_box;

use lanework_magma::Engine;
use lanework_peers::{
    CIPHER_FLAVOURS, CipherKind, CipherMode, CipherPeer, CipherPlaces, Direction, Gost89Mode, PeerError,
    Peers, Sbox,
};
use lanework_race::gate::GateRow;
use lanework_race::machine::PeerBuild;
use lanework_race::subject::{Facts, Runnable, Unavailable, Variant, work};

use super::{Case, Inputs, Operation};
use crate::Context;

pub use agreement::{Lengths, agreement};

/// Where the peers are; nowhere unless they are asked for.
fn places(context: &Context) -> Option<CipherPlaces> {
    let built = context.peers.clone()?;
    Some(CipherPlaces { built, gost_engine: context.gost_engine.clone() })
}

/// Compilers and flags of every peer that is there, for the machine card.
#[must_use]
pub fn builds(context: &Context) -> Vec<PeerBuild> {
    let Some(places) = places(context) else { return Vec::new() };
    Peers::discover_ciphers(&places)
        .into_iter()
        .flatten()
        .map(|peer| {
            let card = peer.card();
            PeerBuild {
                name: peer.name().to_owned(),
                version: format!("{} {}", card.project, card.version),
                compiler: card.compiler_version.clone(),
                flags: card.flags.clone(),
            }
        })
        .collect()
}

/// The peers as variants; a missing peer gives the reason when it is run.
pub(super) fn variants(context: &Context, case: Case) -> Vec<Variant> {
    let Some(places) = places(context) else { return Vec::new() };
    CIPHER_FLAVOURS
        .iter()
        .map(|flavour| {
            let places = places.clone();
            Variant::new(flavour.name, move || prepare(&places, flavour.name, case))
        })
        .collect()
}

/// The modes that a peer may run for an operation, the most alike first, and the direction.
fn modes(operation: Operation) -> (&'static [CipherMode], Direction) {
    const ECB: CipherMode = CipherMode::gost89(Gost89Mode::Ecb, Sbox::Tc26Z, false);
    const CTR: CipherMode = CipherMode::gost89(Gost89Mode::Ctr, Sbox::Tc26Z, false);
    const CBC: CipherMode = CipherMode::gost89(Gost89Mode::Cbc, Sbox::Tc26Z, false);
    const CFB: CipherMode = CipherMode::gost89(Gost89Mode::Cfb, Sbox::Tc26Z, false);
    const MESHING: CipherMode = CipherMode::gost89(Gost89Mode::Cfb, Sbox::Tc26Z, true);
    const CMAC: CipherMode = CipherMode::gost89(Gost89Mode::Cmac, Sbox::Gost94Test, false);
    match operation {
        Operation::Ctr | Operation::CtrBatch => (&[CipherMode::MagmaCtr, CTR], Direction::Encrypt),
        Operation::Ecb => (&[CipherMode::MagmaEcb, ECB], Direction::Encrypt),
        Operation::CbcDecrypt => (&[CipherMode::MagmaCbc, CBC], Direction::Decrypt),
        Operation::CbcEncryptBatch => (&[CipherMode::MagmaCbc, CBC], Direction::Encrypt),
        Operation::CfbDecrypt => (&[CipherMode::MagmaCfb, CFB, MESHING], Direction::Decrypt),
        Operation::CtrAcpkm => (&[CipherMode::MagmaCtrAcpkm], Direction::Encrypt),
        Operation::MgmSeal | Operation::MgmBatch => (&[CipherMode::MagmaMgm], Direction::Encrypt),
        Operation::MgmOpen => (&[CipherMode::MagmaMgm], Direction::Decrypt),
        Operation::Omac | Operation::OmacBatch => (&[CipherMode::MagmaOmac, CMAC], Direction::Encrypt),
        Operation::Gost89Cfb => (&[MESHING, CFB, CipherMode::MagmaCfb], Direction::Encrypt),
        Operation::Gost89CfbBatch => (&[CFB, MESHING, CipherMode::MagmaCfb], Direction::Encrypt),
    }
}

fn failed(e: PeerError) -> Unavailable {
    Unavailable::because(e.to_string())
}

/// How a peer does a case. A single message goes on from iteration to iteration, which spares the peer what a new context
/// costs, as `openssl speed` does; a batch puts every message's key into the one context that there is.
fn prepare(places: &CipherPlaces, name: &str, case: Case) -> Result<Box<dyn Runnable>, Unavailable> {
    let peer = Peers::find_cipher(places, name).map_err(|u| Unavailable::because(u.to_string()))?;
    let (modes, direction) = modes(case.operation);
    let set = *modes
        .iter()
        .find_map(|mode| peer.set(*mode))
        .ok_or_else(|| Unavailable::because(format!("{name} has no {}", case.operation.name())))?;
    let Inputs { keys, texts, aad } = Inputs::new(case);
    let mut output = vec![0; case.bytes];
    let mut tag = vec![0; set.tag];
    let iv = vec![1; set.iv];
    let mut notes = vec![format!("runs {}; {}", set.native, peer.card().compiler_version)];
    if set.mode != modes[0] {
        notes.push(format!("stands in for {:?}: {:?}", modes[0], set.mode));
    }
    let name = name.to_owned();
    let facts = move || Facts { backend: name.clone(), notes: notes.clone() };
    let several = case.operation.is_batch();
    // Contexts come after the peer in the closures below, so that its library outlives them.
    Ok(match set.mode.kind() {
        CipherKind::Cipher => {
            let mut context = peer.cipher(set.mode, direction, &keys[0], &iv).map_err(failed)?;
            work(
                move || {
                    let _ = &peer;
                    for (key, text) in keys.iter().zip(&texts) {
                        if several {
                            assert!(context.rekey(key, &iv).is_ok());
                        }
                        assert!(context.update(text, &mut output).is_ok());
                        black_box(&mut output);
                    }
                },
                facts,
            )
        }
        CipherKind::Mac => {
            let mut context = peer.mac(set.mode, &keys[0]).map_err(failed)?;
            work(
                move || {
                    let _ = &peer;
                    for (key, text) in keys.iter().zip(&texts) {
                        if several {
                            assert!(context.rekey(key).is_ok());
                        }
                        assert!(context.mac(text, &mut tag).is_ok());
                        black_box(&mut tag);
                    }
                },
                facts,
            )
        }
        CipherKind::Aead if direction == Direction::Decrypt => {
            let mut context = peer.aead(set.mode, &keys[0]).map_err(failed)?;
            let mut sealed = vec![0; case.bytes];
            context.seal(&iv, &aad, &texts[0], &mut sealed, &mut tag).map_err(failed)?;
            work(
                move || {
                    let _ = &peer;
                    assert_eq!(context.open(&iv, &aad, &sealed, &mut output, &tag), Ok(true));
                },
                facts,
            )
        }
        CipherKind::Aead => {
            let mut context = peer.aead(set.mode, &keys[0]).map_err(failed)?;
            work(
                move || {
                    let _ = &peer;
                    for (key, text) in keys.iter().zip(&texts) {
                        if several {
                            assert!(context.rekey(key).is_ok());
                        }
                        assert!(context.seal(&iv, &aad, text, &mut output, &mut tag).is_ok());
                        black_box(&mut output);
                    }
                },
                facts,
            )
        }
    })
}

/// Ours and theirs give the same bytes, in every mode that both have, both ways: one row for each peer.
pub(super) fn gate_rows(context: &Context) -> Vec<GateRow> {
    let Some(places) = places(context) else { return Vec::new() };
    Peers::discover_ciphers(&places)
        .into_iter()
        .map(|found| match found {
            Ok(peer) => agreement(peer.as_ref(), Engine::best(), Lengths::Sample),
            Err(unavailable) => GateRow {
                what: agreement::WHAT.to_owned(),
                backend: unavailable.name.clone(),
                passed: 0,
                failed: 0,
                skipped: 1,
                why: unavailable.why,
            },
        })
        .collect()
}

/// The modes of a peer that no mode of ours can answer.
#[must_use]
pub fn unanswered(peer: &dyn CipherPeer) -> Vec<&'static str> {
    peer.sets().iter().filter(|set| !agreement::answers(set.mode)).map(|set| set.native).collect()
}
