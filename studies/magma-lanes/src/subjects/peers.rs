//! Other people's Magma and GOST 28147-89 in the study's races.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::path::Path;

use lanework_magma::modes::Stream;
use lanework_magma::modes::hazmat::EcbEncryptor;
use lanework_magma::modes::legacy::{CfbEncryptor, Meshing};
use lanework_magma::{Engine, Gost28147, Sbox as OurSbox};
use lanework_peers::{
    CIPHER_FLAVOURS, CipherContext, CipherMode, CipherPeer, CipherPlaces, Direction, Gost89Mode, PeerError,
    Peers, Sbox,
};
use lanework_race::gate::GateRow;
use lanework_race::machine::PeerBuild;
use lanework_race::subject::{Facts, Runnable, Unavailable, Variant, work};
use lanework_suite::Context;

use super::{BUFFER, Buffers, CFB_IV, CTR_IV, KEY, MESSAGES, Row, fill, many};

/// The modes tried on a peer, best first: Magma's own counter mode, or the same work in another byte order.
const CTR: [CipherMode; 2] = [CipherMode::MagmaCtr, CipherMode::gost89(Gost89Mode::Ctr, Sbox::Tc26Z, false)];
const ECB: [CipherMode; 2] = [CipherMode::MagmaEcb, CipherMode::gost89(Gost89Mode::Ecb, Sbox::Tc26Z, false)];
const GOST89: [CipherMode; 1] = [CipherMode::gost89(Gost89Mode::Cfb, Sbox::Tc26Z, true)];

/// The variable that names a built gost-engine.
const GOST_ENGINE: &str = "LANEWORK_GOST_ENGINE";

fn places(dir: &Path) -> CipherPlaces {
    CipherPlaces { built: dir.to_owned(), gost_engine: std::env::var_os(GOST_ENGINE).map(Into::into) }
}

fn failed(e: impl ToString) -> Unavailable {
    Unavailable::because(e.to_string())
}

/// Compilers and flags of every peer that is there, for the machine card.
#[must_use]
pub(crate) fn builds(dir: &Path) -> Vec<PeerBuild> {
    Peers::discover_ciphers(&places(dir))
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

fn find(
    dir: &Path,
    name: &str,
    modes: &[CipherMode],
) -> Result<(Box<dyn CipherPeer>, CipherMode), Unavailable> {
    let peer = Peers::find_cipher(&places(dir), name).map_err(failed)?;
    let mode = modes.iter().copied().find(|&mode| peer.set(mode).is_some());
    let mode = mode.ok_or_else(|| Unavailable::because(format!("{name} does not have this mode")))?;
    Ok((peer, mode))
}

/// The vector that the peer's form of a mode takes.
fn vector(peer: &dyn CipherPeer, mode: CipherMode, iv: &[u8]) -> Vec<u8> {
    let mut iv = iv.to_vec();
    iv.resize(peer.set(mode).map_or(0, |set| set.iv), 0);
    iv
}

fn open(
    peer: &dyn CipherPeer,
    mode: CipherMode,
    key: &[u8; 32],
    iv: &[u8],
) -> Result<Box<dyn CipherContext>, PeerError> {
    peer.cipher(mode, Direction::Encrypt, key, &vector(peer, mode, iv))
}

fn note(peer: &dyn CipherPeer, mode: CipherMode) -> impl Fn() -> Facts + use<> {
    let card = peer.card();
    let native = peer.set(mode).map_or("", |set| set.native);
    let notes = vec![format!("{} {}, {native}; {}", card.project, card.version, card.compiler_version)];
    let backend = peer.name().to_owned();
    move || Facts { backend: backend.clone(), notes: notes.clone() }
}

fn each(
    context: &Context,
    prepare: fn(&Path, &str, usize, Row) -> Prepared,
    bytes: usize,
    row: Row,
) -> Vec<Variant> {
    let Some(dir) = context.peers.clone() else { return Vec::new() };
    CIPHER_FLAVOURS
        .iter()
        .map(|flavour| {
            let dir = dir.clone();
            Variant::new(flavour.name, move || prepare(&dir, flavour.name, bytes, row))
        })
        .collect()
}

type Prepared = Result<Box<dyn Runnable>, Unavailable>;

/// The peers over the study's real buffers.
pub(super) fn ecb(context: &Context) -> Vec<Variant> {
    // The row is not used.
    each(context, |dir, name, bytes, _| message(dir, name, bytes, &ECB, &[]), BUFFER, Row::Ctr)
}

/// The peers in a row and column of the table.
pub(super) fn speed(context: &Context, row: Row, size: usize) -> Vec<Variant> {
    each(
        context,
        |dir, name, bytes, row| match row {
            Row::Ctr => message(dir, name, bytes, &CTR, &CTR_IV),
            Row::Gost89 => message(dir, name, bytes, &GOST89, &CFB_IV),
            Row::Gost89Many => messages(dir, name, bytes),
        },
        size,
        row,
    )
}

/// One context that goes on, as `openssl speed` does.
fn message(dir: &Path, name: &str, bytes: usize, modes: &[CipherMode], iv: &[u8]) -> Prepared {
    let (peer, mode) = find(dir, name, modes)?;
    let mut context = open(peer.as_ref(), mode, &KEY, iv).map_err(failed)?;
    let facts = note(peer.as_ref(), mode);
    let mut buffers = Buffers::new(bytes, 0);
    Ok(work(
        move || {
            let (input, output) = buffers.both();
            assert_eq!(context.update(black_box(input), output), Ok(()));
            black_box(output);
        },
        facts,
    ))
}

/// A context for each message, so that none has to be restarted.
fn messages(dir: &Path, name: &str, bytes: usize) -> Prepared {
    let (peer, mode) = find(dir, name, &GOST89)?;
    let contexts = (0..MESSAGES).map(|i| open(peer.as_ref(), mode, &many::key(i), &many::iv(i)));
    let mut contexts = contexts.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let facts = note(peer.as_ref(), mode);
    let input = many::data(MESSAGES, bytes);
    let mut output = input.clone();
    Ok(work(
        move || {
            for ((context, input), output) in contexts.iter_mut().zip(&input).zip(&mut output) {
                assert_eq!(context.update(black_box(input), output), Ok(()));
            }
            black_box(&mut output);
        },
        facts,
    ))
}

/// Each peer against ours: the same bytes in every mode that is raced.
pub(super) fn gate_rows(context: &Context) -> Vec<GateRow> {
    let Some(dir) = &context.peers else { return Vec::new() };
    CIPHER_FLAVOURS
        .iter()
        .map(|flavour| {
            let mut row = lanework_cpu::check::Row::new("magma/lanes: the same bytes as ours", flavour.name);
            match Peers::find_cipher(&places(dir), flavour.name) {
                Err(why) => row.skip(&why.to_string()),
                Ok(peer) => {
                    for (modes, iv) in [(&CTR[..], &CTR_IV[..]), (&ECB, &[]), (&GOST89, &CFB_IV)] {
                        for mode in modes.iter().copied().filter(|&mode| peer.set(mode).is_some()) {
                            for bytes in [8, 64, 1024, 4104] {
                                let right = agrees(peer.as_ref(), mode, iv, bytes);
                                row.case(right, || format!("{mode:?} over {bytes} bytes differs from ours"));
                            }
                        }
                    }
                }
            }
            lanework_suite::row(row)
        })
        .collect()
}

/// Our output for the input in a mode that a peer has.
fn want(mode: CipherMode, iv: &[u8], input: &[u8]) -> Option<Vec<u8>> {
    let words = Gost28147::with(&KEY, OurSbox::Z, Engine::best());
    let mut out = input.to_vec();
    match mode {
        CipherMode::MagmaEcb => return Some(super::gate::expected(input)),
        CipherMode::MagmaCtr => {
            let gamma = super::gate::gamma(iv.try_into().ok()?, input.len());
            out.iter_mut().zip(gamma).for_each(|(x, g)| *x ^= g);
        }
        CipherMode::Gost89 { mode: Gost89Mode::Ecb, .. } => {
            EcbEncryptor::with_key(words).apply(&mut out).ok()?
        }
        CipherMode::Gost89 { mode: Gost89Mode::Ctr, .. } => {
            // Big-endian over the block's bytes, whatever the cipher's own order.
            let first = u64::from_be_bytes(iv.try_into().ok()?);
            let mut gamma: Vec<u8> = (0..input.len().div_ceil(8) as u64)
                .flat_map(|i| first.wrapping_add(i).to_be_bytes())
                .collect();
            EcbEncryptor::with_key(words).apply(&mut gamma).ok()?;
            out.iter_mut().zip(gamma).for_each(|(x, g)| *x ^= g);
        }
        CipherMode::Gost89 { mode: Gost89Mode::Cfb, meshing: true, .. } => {
            CfbEncryptor::with_key(&words, iv, Meshing::CryptoPro)
                .and_then(|mut c| c.apply(&mut out))
                .ok()?;
        }
        _ => return None,
    }
    Some(out)
}

/// In two pieces, as a race goes on.
fn agrees(peer: &dyn CipherPeer, mode: CipherMode, iv: &[u8], bytes: usize) -> bool {
    let mut input = vec![0; bytes];
    fill(&mut input, bytes as u64);
    let iv = vector(peer, mode, iv);
    let mut got = vec![0; bytes];
    let cut = bytes / 16 * 8;
    let (head, tail) = got.split_at_mut(cut);
    let ran = open(peer, mode, &KEY, &iv)
        .and_then(|mut c| c.update(&input[..cut], head).and_then(|()| c.update(&input[cut..], tail)));
    ran.is_ok() && want(mode, &iv, &input).is_some_and(|want| want == got)
}
