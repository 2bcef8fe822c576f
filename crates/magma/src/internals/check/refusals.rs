//! Refusals: every misuse has its own error and changes nothing, and all data that is not authentic is refused.
#![forbid(unsafe_code)]

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use super::{Depth, Numbers, Row};
use crate::backend::Engine;
use crate::batch::{Batch, CbcJob, CtrJob, OmacJob, SealJob};
use crate::error::Error;
use crate::key::{Gost28147, Magma};
use crate::limits::Limits;
use crate::mgm::{LONGEST, Mgm};
use crate::modes::hazmat::EcbEncryptor;
use crate::modes::legacy::{Cnt, Imit, Meshing};
use crate::modes::padding::{unpad_one_zeros, unpad_zeros};
use crate::modes::{CbcDecryptor, CbcEncryptor, CfbDecryptor, Ctr, CtrAcpkm, Ofb, Omac, OmacAcpkm, Stream};
use crate::sbox::Sbox;

/// Misuses: each has its own error.
#[must_use]
pub fn refusals(engine: Engine) -> Row {
    let mut row = Row::new("misuse refused", engine.name());
    let mut numbers = Numbers(10);
    let bytes: [u8; 32] = numbers.array();
    let key = &Magma::with(&bytes, engine);
    let gost = &Gost28147::with(&bytes, Sbox::CryptoProA, engine);
    let mut expect = |what: &str, got: Result<(), Error>, right: fn(&Error) -> bool| {
        row.case(got.as_ref().is_err_and(right), || format!("{what}: {got:?}"));
    };
    for n in [0, 16, 31, 33, 64] {
        let wrong = vec![0; n];
        let length = |e: &Error| matches!(e, Error::KeyLength(_));
        expect("a key's length", Magma::from_slice(&wrong, engine).map(drop), length);
        expect("a key's length", Gost28147::from_slice(&wrong, Sbox::Z, engine).map(drop), length);
    }
    let iv_length: fn(&Error) -> bool = |e| matches!(e, Error::NonceLength { .. });
    for n in [0, 3, 5, 8, 16] {
        let iv = vec![0; n];
        expect("CTR's IV", Ctr::with_key(key, &iv).map(drop), iv_length);
        expect("CTR-ACPKM's IV", CtrAcpkm::with_key(key, &iv).map(drop), iv_length);
    }
    for n in [0, 1, 7, 9, 12, 23] {
        let iv = vec![0; n];
        expect("CBC's IV", CbcEncryptor::with_key(key, &iv).map(drop), iv_length);
        expect("CFB's IV", CfbDecryptor::with_key(key, &iv).map(drop), iv_length);
        expect("OFB's IV", Ofb::with_key(key, &iv).map(drop), iv_length);
        expect("CNT's IV", Cnt::with_key(gost, &iv, Meshing::None).map(drop), iv_length);
    }
    for n in [1, 7, 9, 15, 4097] {
        let message = numbers.bytes(n);
        let unaligned: fn(&Error) -> bool = |e| matches!(e, Error::Unaligned(_));
        let mut states: [Box<dyn Stream>; 2] = [
            Box::new(EcbEncryptor::with_key(key.clone())),
            match CbcDecryptor::with_key(key.clone(), &[0; 8]) {
                Ok(state) => Box::new(state),
                Err(_) => Box::new(EcbEncryptor::with_key(key.clone())),
            },
        ];
        for state in &mut states {
            let mut data = message.clone();
            expect("a part of a block", state.apply(&mut data), unaligned);
            expect(
                "a part of a block changed",
                if data == message { Err(Error::Unaligned(n)) } else { Ok(()) },
                unaligned,
            );
        }
    }
    for tag in [0, 3, 9, 16] {
        let wrong: fn(&Error) -> bool = |e| matches!(e, Error::TagLength(_));
        expect("MGM's tag", Mgm::with(&bytes, tag, engine).map(drop), wrong);
        if tag != 3 {
            expect("OMAC's tag", Omac::with_key(key, tag).map(drop), wrong);
        }
        expect("OMAC-ACPKM's tag", OmacAcpkm::with_key(key, 1024, 80, tag).map(drop), wrong);
    }
    for section in [0, 1, 7, 12, Limits::LONGEST_SECTION + 8] {
        let wrong: fn(&Error) -> bool = |e| matches!(e, Error::Section(_));
        expect("a section", CtrAcpkm::with_section(key, &[0; 4], section).map(drop), wrong);
        expect("a section", OmacAcpkm::with_key(key, section, 80, 8).map(drop), wrong);
    }
    let parameter: fn(&Error) -> bool = |e| matches!(e, Error::Parameter(_));
    expect("T*", OmacAcpkm::with_key(key, 1024, 41, 8).map(drop), parameter);
    let counter: fn(&Error) -> bool = |e| matches!(e, Error::CounterExhausted);
    let at_end = |n: usize| {
        let mut ctr = Ctr::with_key(key, &[1; 4])?;
        ctr.seek_block((1 << 32) - 1)?;
        ctr.apply(&mut vec![0; n])
    };
    expect("CTR beyond its last block", at_end(9), counter);
    expect("CTR's last block", at_end(8).and(Err(Error::CounterExhausted)), counter);
    expect(
        "CTR sought too far",
        Ctr::with_key(key, &[1; 4]).and_then(|mut c| c.seek_block((1 << 32) + 1)),
        counter,
    );
    let few = Magma::with(&bytes, engine).with_limits(Limits::Custom { bytes: 100, section: 8 });
    let used_up: fn(&Error) -> bool = |e| matches!(e, Error::KeyExhausted { limit: 100 });
    let spent = Ctr::with_key(&few, &[1; 4]).and_then(|mut ctr| {
        ctr.apply(&mut [0; 60])?;
        ctr.apply(&mut [0; 41])
    });
    expect("a key beyond its limit", spent, used_up);
    let mut output = [0; 7];
    let lengths: fn(&Error) -> bool = |e| matches!(e, Error::Lengths { input: 8, output: 7 });
    let to = |output: &mut [u8]| Ctr::with_key(key, &[1; 4])?.apply_to(&[0; 8], output);
    expect("buffers of two lengths", to(&mut output), lengths);
    let within =
        |from: core::ops::Range<usize>, to| Ctr::with_key(key, &[1; 4])?.apply_within(&mut [0; 32], from, to);
    expect("buffers that overlap", within(0..16, 8), |e| matches!(e, Error::Overlap));
    expect("a place beyond the buffer", within(0..16, 24), parameter);
    for padded in [&[][..], &[0; 8], &[1; 8], &[0x80, 0, 0, 0, 0, 0, 0, 1]] {
        let refused: fn(&Error) -> bool = |e| matches!(e, Error::Refused | Error::Unaligned(_));
        expect("padding 2", unpad_one_zeros(padded).map(drop), refused);
    }
    expect("padding 1", unpad_zeros(&[1; 8], 3).map(drop), |e| matches!(e, Error::Refused));
    mgm(&mut row, key, &bytes, engine);
    jobs(&mut row, key, engine);
    row
}

/// Misuses of MGM.
fn mgm(row: &mut Row, key: &Magma, bytes: &[u8; 32], engine: Engine) {
    let Ok(mgm) = Mgm::with(bytes, 8, engine) else {
        row.case(false, || "MGM with a tag of 8 bytes was refused".to_owned());
        return;
    };
    let mut expect = |what: &str, got: Result<(), Error>, right: fn(&Error) -> bool| {
        row.case(got.as_ref().is_err_and(right), || format!("MGM, {what}: {got:?}"));
    };
    for n in [0, 7, 9, 16] {
        let nonce = vec![0; n];
        let length: fn(&Error) -> bool = |e| matches!(e, Error::NonceLength { .. });
        expect("a nonce's length", mgm.seal(&nonce, &[], &mut [0; 8]).map(drop), length);
        expect("a nonce's length", mgm.open(&nonce, &[], &mut [0; 8], &[0; 8]), length);
    }
    let nonce = [0x80, 0, 0, 0, 0, 0, 0, 1];
    let top: fn(&Error) -> bool = |e| matches!(e, Error::NonceTopBit);
    expect("a nonce's top bit", mgm.seal(&nonce, &[], &mut [0; 8]).map(drop), top);
    expect("a nonce's top bit", mgm.sealer(&nonce).map(drop), top);
    let nonce = [0; 8];
    let empty: fn(&Error) -> bool = |e| matches!(e, Error::EmptyMessage);
    expect("nothing at all", mgm.seal(&nonce, &[], &mut []).map(drop), empty);
    expect("nothing at all", mgm.sealer(&nonce).and_then(|s| s.finish()).map(drop), empty);
    for n in [0, 4, 7, 9] {
        let wrong: fn(&Error) -> bool = |e| matches!(e, Error::TagLength(_));
        expect("a tag's length", mgm.open(&nonce, &[1], &mut [0; 8], &vec![0; n]), wrong);
    }
    // Untouched zeros take no memory.
    let long = vec![0; LONGEST as usize + 1];
    let too_long: fn(&Error) -> bool = |e| matches!(e, Error::TooLong { limit: LONGEST });
    expect("a message too long", mgm.seal(&nonce, &long, &mut []).map(drop), too_long);
    let late = mgm.sealer(&nonce).and_then(|mut sealer| {
        sealer.data(&mut [0; 3])?;
        sealer.aad(&[1])
    });
    expect("associated data after data", late, |e| matches!(e, Error::OutOfOrder));
    let shorter = Mgm::with_key(key.clone(), 4).and_then(|m| m.open(&nonce, &[1], &mut [0; 8], &[0; 8]));
    expect("a whole tag where short ones are agreed on", shorter, |e| matches!(e, Error::TagLength(8)));
}

/// Bad jobs among good ones are named and left unchanged, and the others are done.
fn jobs(row: &mut Row, key: &Magma, engine: Engine) {
    let batch = Batch::new(engine);
    let mut data = [[1; 16]; 3];
    let [a, b, c] = &mut data;
    let mut jobs = [
        CbcJob { key, iv: &[0; 8], data: a },
        CbcJob { key, iv: &[0; 7], data: b },
        CbcJob { key, iv: &[0; 8], data: &mut c[..9] },
    ];
    let outcomes = batch.cbc_encrypt(&mut jobs);
    let right = outcomes.as_ref().is_ok_and(|o| {
        matches!(&o[..], [Ok(()), Err(Error::NonceLength { got: 7, .. }), Err(Error::Unaligned(9))])
    });
    row.case(right && data[0] != [1; 16] && data[1..] == [[1; 16]; 2], || format!("CBC jobs: {outcomes:?}"));
    let mut jobs = [CtrJob { key, iv: &[0; 8], data: &mut data[1] }];
    let outcomes = batch.ctr(&mut jobs);
    let right = outcomes.as_ref().is_ok_and(|o| matches!(&o[..], [Err(Error::NonceLength { got: 8, .. })]));
    row.case(right && data[1] == [1; 16], || format!("CTR jobs: {outcomes:?}"));
    let mut macs = [vec![0; 8], vec![0; 9]];
    let [good, bad] = &mut macs;
    let outcomes =
        batch.omac(&mut [OmacJob { key, data: &[1], mac: good }, OmacJob { key, data: &[1], mac: bad }]);
    let right = outcomes.as_ref().is_ok_and(|o| matches!(&o[..], [Ok(()), Err(Error::TagLength(9))]));
    row.case(right && macs[1] == [0; 9], || format!("OMAC jobs: {outcomes:?}"));
    let mut tag = [0; 8];
    let mut jobs =
        [SealJob { key, nonce: &[0x80, 0, 0, 0, 0, 0, 0, 0], aad: &[], data: &mut data[2], tag: &mut tag }];
    let outcomes = batch.mgm_seal(8, &mut jobs);
    let right = outcomes.as_ref().is_ok_and(|o| matches!(&o[..], [Err(Error::NonceTopBit)]));
    row.case(right && data[2] == [1; 16], || format!("MGM jobs: {outcomes:?}"));
}

/// Damage: a flipped bit anywhere in ciphertext, associated data, nonce or tag is refused, and the data is zeroed.
#[must_use]
pub fn damage(engine: Engine, depth: Depth) -> Row {
    let mut row = Row::new("damage refused", engine.name());
    let mut numbers = Numbers(11);
    let lengths: &[usize] = if depth == Depth::Full { &[0, 5, 8, 67, 1100] } else { &[0, 13] };
    for &n in lengths {
        let (message, aad) = (numbers.bytes(n), numbers.bytes(11));
        let mut nonce: [u8; 8] = numbers.array();
        nonce[0] &= 0x7f;
        let key = numbers.array();
        let mut data = message.clone();
        let made = Mgm::with(&key, 8, engine).and_then(|m| Ok((m.seal(&nonce, &aad, &mut data)?, m)));
        let Ok((tag, mgm)) = made else {
            row.case(false, || "a message could not be sealed".to_owned());
            continue;
        };
        let parts = [data, aad, nonce.to_vec(), tag.as_slice().to_vec()];
        let bits: usize = parts.iter().map(|part| 8 * part.len()).sum();
        for bit in 0..=bits {
            let mut parts = parts.clone();
            let mut at = bit;
            for part in &mut parts {
                if at < 8 * part.len() {
                    part[at / 8] ^= 0x80 >> (at % 8);
                    break;
                }
                at -= 8 * part.len();
            }
            let [data, aad, nonce, tag] = &mut parts;
            let verdict = mgm.open(nonce, aad, data, tag);
            let right = if bit == bits {
                verdict == Ok(()) && *data == message
            } else if verdict == Err(Error::NonceTopBit) {
                nonce[0] & 0x80 != 0
            } else {
                verdict == Err(Error::Refused) && data.iter().all(|b| *b == 0)
            };
            row.case(right, || format!("MGM of {n} bytes with bit {bit} of {bits} flipped: {verdict:?}"));
        }
        let (magma, gost) = (Magma::with(&key, engine), Gost28147::with(&key, Sbox::Z, engine));
        for code in codes(&magma, &gost) {
            damaged(&mut row, &code, &message);
        }
    }
    row
}

type Tag<'k> = dyn Fn(&[u8]) -> Result<Vec<u8>, Error> + 'k;
type Verify<'k> = dyn Fn(&[u8], &[u8]) -> Result<(), Error> + 'k;

/// An authentication code under some key: its tag of a message, and its verification of one.
pub(super) struct Code<'k> {
    pub(super) name: &'static str,
    /// Whether it authenticates an empty message. IMIT does not: that code is the same under every key.
    pub(super) of_nothing: bool,
    pub(super) tag: Box<Tag<'k>>,
    pub(super) verify: Box<Verify<'k>>,
}

macro_rules! code {
    ($name:literal, $of_nothing:literal, $new:expr) => {
        Code {
            name: $name,
            of_nothing: $of_nothing,
            tag: Box::new(move |message| {
                let mut mac = $new?;
                mac.update(message)?;
                Ok(mac.finish().as_ref().to_vec())
            }),
            verify: Box::new(move |message, tag| {
                let mut mac = $new?;
                mac.update(message)?;
                mac.verify(tag)
            }),
        }
    };
}

/// Every authentication code.
pub(super) fn codes<'k>(magma: &'k Magma, gost: &'k Gost28147) -> Vec<Code<'k>> {
    vec![
        code!("OMAC", true, Omac::with_key(magma, 8)),
        code!("28147 OMAC", true, Omac::with_key(gost, 8)),
        code!("OMAC-ACPKM", true, OmacAcpkm::with_key(magma, 64, 80, 8)),
        code!("IMIT", false, Ok::<_, Error>(Imit::with_key(gost, Meshing::None))),
        code!("IMIT, meshing", false, Ok::<_, Error>(Imit::with_key(gost, Meshing::CryptoPro))),
    ]
}

/// A flipped bit anywhere in an authentication code or its message is refused. So is every tag of an empty message that
/// the code does not authenticate, even the right one.
pub(super) fn damaged(row: &mut Row, code: &Code<'_>, message: &[u8]) {
    let name = code.name;
    let Ok(tag) = (code.tag)(message) else {
        row.case(false, || format!("{name} refused its message"));
        return;
    };
    let verify = |message: &[u8], tag: &[u8]| (code.verify)(message, tag);
    let (right, wrong) = if message.is_empty() && !code.of_nothing {
        (Err(Error::EmptyMessage), Err(Error::EmptyMessage))
    } else {
        (Ok(()), Err(Error::Refused))
    };
    let verdict = verify(message, &tag);
    row.case(verdict == right, || {
        format!("{name}: its own tag of {} bytes gave {verdict:?}, not {right:?}", message.len())
    });
    for bit in 0..8 * tag.len() {
        let mut tag = tag.clone();
        tag[bit / 8] ^= 1 << (bit % 8);
        let verdict = verify(message, &tag);
        row.case(verdict == wrong, || format!("{name} with bit {bit} flipped: {verdict:?}"));
    }
    if let Some(last) = message.len().checked_sub(1) {
        let mut message = message.to_vec();
        message[last] ^= 1;
        let verdict = verify(&message, &tag);
        row.case(verdict == wrong, || format!("{name} of another message: {verdict:?}"));
    }
}
