//! Modes, codes and MGM against their descriptions, at all lengths and cut anywhere.
#![forbid(unsafe_code)]

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use lanework_cpu::Threads;

use super::{Depth, Numbers, Row, done, lengths, runs_here};
use crate::backend::Engine;
use crate::error::Error;
use crate::internals::spec::modes as plain;
use crate::key::{Gost28147, Magma};
use crate::limits::Limits;
use crate::mgm::Mgm;
use crate::modes::hazmat::{EcbDecryptor, EcbEncryptor};
use crate::modes::legacy::{self, Imit, Meshing};
use crate::modes::{
    CbcDecryptor, CbcEncryptor, CfbDecryptor, CfbEncryptor, Ctr, CtrAcpkm, Ofb, Omac, OmacAcpkm, Stream,
};
use crate::sbox::Sbox;

/// The keys of one round of cases; the modes below borrow them.
pub(crate) struct Keys {
    bytes: [u8; 32],
    iv: [u8; 24],
    sbox: Sbox,
    magma: Magma,
    gost: Gost28147,
}

impl Keys {
    pub(super) fn new(numbers: &mut Numbers, engine: Engine, sbox: Sbox) -> Keys {
        let bytes = numbers.array();
        Keys::of(bytes, numbers.array(), engine, sbox)
    }

    /// The keys from these bytes.
    pub(crate) fn of(bytes: [u8; 32], iv: [u8; 24], engine: Engine, sbox: Sbox) -> Keys {
        Keys {
            bytes,
            iv,
            sbox,
            magma: Magma::with(&bytes, engine).with_limits(Limits::Unlimited),
            gost: Gost28147::with(&bytes, sbox, engine).with_limits(Limits::Unlimited),
        }
    }
}

type Made<'k> = Result<Box<dyn Stream + 'k>, Error>;
type Plain<'k> = dyn Fn(&[u8]) -> Vec<u8> + 'k;

/// A mode: new states for both directions, and the specification's result for a message.
pub(crate) struct Mode<'k> {
    pub(crate) name: &'static str,
    /// The lengths it takes are multiples of this.
    pub(crate) granule: usize,
    pub(crate) forth: Box<dyn Fn() -> Made<'k> + 'k>,
    pub(crate) back: Box<dyn Fn() -> Made<'k> + 'k>,
    pub(crate) plain: Box<Plain<'k>>,
}

fn mode<'k, F: Stream + 'k, B: Stream + 'k>(
    name: &'static str,
    granule: usize,
    forth: impl Fn() -> Result<F, Error> + 'k,
    back: impl Fn() -> Result<B, Error> + 'k,
    plain: impl Fn(&[u8]) -> Vec<u8> + 'k,
) -> Mode<'k> {
    Mode {
        name,
        granule,
        forth: Box::new(move || Ok(Box::new(forth()?))),
        back: Box::new(move || Ok(Box::new(back()?))),
        plain: Box::new(plain),
    }
}

/// A mode that is its own inverse.
fn own_inverse<'k, S: Stream + 'k>(
    name: &'static str,
    new: impl Fn() -> Result<S, Error> + Copy + 'k,
    plain: impl Fn(&[u8]) -> Vec<u8> + 'k,
) -> Mode<'k> {
    mode(name, 1, new, new, plain)
}

/// All modes that encrypt.
pub(crate) fn modes(k: &Keys) -> Vec<Mode<'_>> {
    let (magma, gost, iv) = (&k.magma, &k.gost, &k.iv);
    let m = || plain::Cipher::magma(&k.bytes);
    let g = || plain::Cipher::gost28147(&k.bytes, k.sbox);
    let mut all = vec![
        mode(
            "ECB",
            8,
            move || Ok(EcbEncryptor::with_key(magma)),
            move || Ok(EcbDecryptor::with_key(magma)),
            move |d| m().ecb(d),
        ),
        own_inverse("CTR", move || Ctr::with_key(magma, &iv[..4]), move |d| m().ctr(&k.iv[..4], d)),
        own_inverse(
            "CTR-ACPKM",
            move || CtrAcpkm::with_key(magma, &iv[..4]),
            move |d| plain::ctr_acpkm(&k.bytes, &k.iv[..4], 1024, d),
        ),
        own_inverse(
            "CTR-ACPKM in short sections",
            move || CtrAcpkm::with_section(magma, &iv[..4], 40),
            move |d| plain::ctr_acpkm(&k.bytes, &k.iv[..4], 40, d),
        ),
        mode(
            "CBC",
            8,
            move || CbcEncryptor::with_key(magma, iv),
            move || CbcDecryptor::with_key(magma, iv),
            move |d| m().cbc(iv, d),
        ),
        mode(
            "CFB",
            1,
            move || CfbEncryptor::with_key(magma, &iv[..16]),
            move || CfbDecryptor::with_key(magma, &iv[..16]),
            move |d| m().cfb(&iv[..16], d),
        ),
        own_inverse("OFB", move || Ofb::with_key(magma, &iv[..16]), move |d| m().ofb(&iv[..16], d)),
        mode(
            "28147 ECB",
            8,
            move || Ok(EcbEncryptor::with_key(gost)),
            move || Ok(EcbDecryptor::with_key(gost)),
            move |d| g().ecb(d),
        ),
        mode(
            "28147 CBC",
            8,
            move || CbcEncryptor::with_key(gost, &iv[..8]),
            move || CbcDecryptor::with_key(gost, &iv[..8]),
            move |d| g().cbc(&iv[..8], d),
        ),
        mode(
            "28147 CFB",
            1,
            move || CfbEncryptor::with_key(gost, &iv[..8]),
            move || CfbDecryptor::with_key(gost, &iv[..8]),
            move |d| g().cfb(&iv[..8], d),
        ),
        own_inverse("28147 OFB", move || Ofb::with_key(gost, iv), move |d| g().ofb(iv, d)),
    ];
    for (meshing, mesh) in [(Meshing::None, false), (Meshing::CryptoPro, true)] {
        let iv = &iv[..8];
        all.push(own_inverse(
            if mesh { "28147 CNT, meshing" } else { "28147 CNT" },
            move || legacy::Cnt::with_key(gost, iv, meshing),
            move |d| plain::cnt(&k.bytes, k.sbox, iv, mesh, d),
        ));
        all.push(mode(
            if mesh { "28147 CFB, meshing" } else { "28147 CFB without meshing" },
            1,
            move || legacy::CfbEncryptor::with_key(gost, iv, meshing),
            move || legacy::CfbDecryptor::with_key(gost, iv, meshing),
            move |d| plain::cfb_meshing(&k.bytes, k.sbox, iv, mesh, d),
        ));
    }
    all
}

fn sets(depth: Depth) -> &'static [Sbox] {
    if depth == Depth::Full { &Sbox::ALL } else { &[Sbox::Z] }
}

/// Every mode that encrypts, both ways, against its description.
#[must_use]
pub fn streams(engine: Engine, depth: Depth) -> Row {
    let mut row = Row::new("modes against the specification", engine.name());
    let mut numbers = Numbers(5);
    for &sbox in sets(depth) {
        let keys = Keys::new(&mut numbers, engine, sbox);
        row.case(runs_here(&keys.magma, engine) && runs_here(&keys.gost, engine), || {
            "another backend runs".to_owned()
        });
        for mode in modes(&keys) {
            for n in lengths(depth, &mut numbers) {
                let message = numbers.bytes(n.next_multiple_of(mode.granule));
                let want = (mode.plain)(&message);
                let mut data = message.clone();
                let sealed = (mode.forth)().and_then(|mut s| s.apply(&mut data));
                row.case(done(sealed, data) == Ok(want.clone()), || {
                    format!("{}: {n} bytes encrypted", mode.name)
                });
                let mut data = vec![0xa5; want.len()];
                let opened = (mode.back)().and_then(|mut s| s.apply_to(&want, &mut data));
                row.case(done(opened, data) == Ok(message), || format!("{}: {n} bytes decrypted", mode.name));
            }
        }
    }
    row
}

/// The authentication codes against their descriptions.
#[must_use]
pub fn codes(engine: Engine, depth: Depth) -> Row {
    let mut row = Row::new("authentication codes against the specification", engine.name());
    let mut numbers = Numbers(6);
    for &sbox in sets(depth) {
        let k = Keys::new(&mut numbers, engine, sbox);
        for n in lengths(depth, &mut numbers) {
            let message = numbers.bytes(n);
            let (head, tail) = message.split_at(numbers.below(n + 1));
            let omac = Omac::with_key(&k.magma, 8).and_then(|mut mac| {
                mac.update(head)?;
                mac.update(tail)?;
                Ok(mac.finish())
            });
            let want = plain::Cipher::magma(&k.bytes).omac(&message);
            row.case(omac.is_ok_and(|tag| tag.as_ref() == want), || format!("OMAC of {n} bytes"));
            let omac = Omac::with_key(&k.gost, 8).and_then(|mut mac| {
                mac.update(&message)?;
                Ok(mac.finish())
            });
            let want = plain::Cipher::gost28147(&k.bytes, sbox).omac(&message);
            row.case(omac.is_ok_and(|tag| tag.as_ref() == want), || format!("28147 OMAC of {n} bytes"));
            let acpkm = OmacAcpkm::with_key(&k.magma, 64, 80, 8).and_then(|mut mac| {
                mac.update(head)?;
                mac.update(tail)?;
                Ok(mac.finish())
            });
            let want = plain::omac_acpkm(&k.bytes, 64, 80, &message);
            row.case(acpkm.is_ok_and(|tag| tag.as_ref() == want), || format!("OMAC-ACPKM of {n} bytes"));
            for (meshing, mesh) in [(Meshing::None, false), (Meshing::CryptoPro, true)] {
                let mut mac = Imit::with_key(&k.gost, meshing);
                let imit = mac.update(head).and_then(|()| mac.update(tail)).map(|()| mac.finish());
                let want = plain::imit(&k.bytes, sbox, &[0; 8], mesh, &message);
                row.case(imit.is_ok_and(|tag| tag.as_ref() == want), || {
                    format!("IMIT of {n} bytes, {meshing:?}")
                });
            }
        }
    }
    row
}

/// MGM against its description, sealed and opened, with associated data of many lengths.
#[must_use]
pub fn aead(engine: Engine, depth: Depth) -> Row {
    let mut row = Row::new("MGM against the specification", engine.name());
    let mut numbers = Numbers(7);
    for n in lengths(depth, &mut numbers) {
        let key = numbers.array();
        let mut nonce: [u8; 8] = numbers.array();
        nonce[0] &= 0x7f;
        // Never an empty message: it is refused.
        let count = numbers.below(100) + usize::from(n == 0);
        let aad = numbers.bytes(count);
        let message = numbers.bytes(n);
        let (sealed, tag) = plain::mgm(&key, nonce, &aad, &message);
        let mut data = message.clone();
        let ours = Mgm::with(&key, 8, engine).and_then(|mgm| mgm.seal(&nonce, &aad, &mut data));
        let right = ours.is_ok_and(|t| t.as_slice() == tag) && data == sealed;
        row.case(right, || format!("{n} bytes sealed with {} more", aad.len()));
        let opened = Mgm::with(&key, 8, engine).and_then(|mgm| mgm.open(&nonce, &aad, &mut data, &tag));
        row.case(done(opened, data) == Ok(message), || format!("{n} bytes opened with {} more", aad.len()));
    }
    row
}

/// Messages in pieces, cut anywhere, and on threads: the bytes of the whole message.
#[must_use]
pub fn pieces(engine: Engine, depth: Depth) -> Row {
    let mut row = Row::new("messages in pieces and on threads", engine.name());
    let mut numbers = Numbers(8);
    let rounds = if depth == Depth::Full { 12 } else { 2 };
    for round in 0..rounds {
        let keys =
            Keys::new(&mut numbers, engine, Sbox::ALL[round % if depth == Depth::Full { 6 } else { 1 }]);
        for mode in modes(&keys) {
            let n = (1000 + numbers.below(9000)).next_multiple_of(mode.granule);
            let message = numbers.bytes(n);
            let mut whole = message.clone();
            let sealed = (mode.forth)().and_then(|mut s| s.apply(&mut whole));
            row.case(sealed.is_ok(), || format!("{}: {sealed:?}", mode.name));
            for (make, input, want, way) in
                [(&mode.forth, &message, &whole, "encrypted"), (&mode.back, &whole, &message, "decrypted")]
            {
                let most = [9, 100, 3000][numbers.below(3)];
                let mut data = input.clone();
                let cut = make().and_then(|mut state| {
                    let mut rest = &mut data[..];
                    while !rest.is_empty() {
                        let n = numbers.below(most).next_multiple_of(mode.granule).min(rest.len());
                        let (now, later) = rest.split_at_mut(n);
                        state.apply(now)?;
                        rest = later;
                    }
                    Ok(())
                });
                row.case(done(cut, data).as_ref() == Ok(want), || {
                    format!("{}: {n} bytes {way} in pieces of up to {most}", mode.name)
                });
            }
        }
        let n = 150_000 + numbers.below(1000);
        let message = numbers.bytes(n);
        sealed_in_pieces(&mut row, &mut numbers, engine, &message);
        on_threads(&mut row, &keys, &message);
    }
    row
}

/// MGM in pieces against MGM in one call.
fn sealed_in_pieces(row: &mut Row, numbers: &mut Numbers, engine: Engine, message: &[u8]) {
    let Ok(mgm) = Mgm::with(&numbers.array(), 8, engine) else {
        row.case(false, || "MGM with a tag of 8 bytes was refused".to_owned());
        return;
    };
    let (nonce, aad) = ([1, 2, 3, 4, 5, 6, 7, 8], numbers.bytes(37));
    let mut whole = message.to_vec();
    let tag = mgm.seal(&nonce, &aad, &mut whole);
    let mut data = message.to_vec();
    let cut = mgm.sealer(&nonce).and_then(|mut sealer| {
        let (first, second) = aad.split_at(numbers.below(aad.len()));
        sealer.aad(first)?;
        sealer.aad(second)?;
        let mut rest = &mut data[..];
        while !rest.is_empty() {
            let n = (1 + numbers.below(40_000)).min(rest.len());
            let (now, later) = rest.split_at_mut(n);
            sealer.data(now)?;
            rest = later;
        }
        sealer.finish()
    });
    let same = matches!((&tag, &cut), (Ok(a), Ok(b)) if a.as_slice() == b.as_slice()) && data == whole;
    row.case(same, || "MGM in pieces differs from MGM at once".to_owned());
    let mut data = message.to_vec();
    let threaded = mgm.seal_with(Threads::Own(2), &nonce, &aad, &mut data);
    let same = matches!((&tag, &threaded), (Ok(a), Ok(b)) if a.as_slice() == b.as_slice()) && data == whole;
    row.case(same, || "MGM on two threads differs from MGM on one".to_owned());
}

/// The parallel modes on two threads against one.
fn on_threads(row: &mut Row, k: &Keys, message: &[u8]) {
    let message = &message[..message.len() / 8 * 8];
    let two = Threads::Own(2);
    type Run<'k> = Box<dyn Fn(Threads<'_>, &mut [u8]) -> Result<(), Error> + 'k>;
    let runs: [(&str, Run<'_>); 5] = [
        ("CTR", Box::new(|t, d| Ctr::with_key(&k.magma, &k.iv[..4])?.apply_with(t, d))),
        ("CTR-ACPKM", Box::new(|t, d| CtrAcpkm::with_key(&k.magma, &k.iv[..4])?.apply_with(t, d))),
        ("ECB", Box::new(|t, d| EcbEncryptor::with_key(&k.gost).apply_with(t, d))),
        ("CBC decryption", Box::new(|t, d| CbcDecryptor::with_key(&k.magma, &k.iv)?.apply_with(t, d))),
        ("CFB decryption", Box::new(|t, d| CfbDecryptor::with_key(&k.gost, &k.iv[..16])?.apply_with(t, d))),
    ];
    for (name, run) in runs {
        let (mut one, mut both) = (message.to_vec(), message.to_vec());
        let results = (run(Threads::One, &mut one), run(two, &mut both));
        row.case(results == (Ok(()), Ok(())) && one == both, || {
            format!("{name} on two threads differs from one: {results:?}")
        });
    }
}
