//! Magma: modes, MGM, key wrapping and containers, by every backend and against the specification.
#![forbid(unsafe_code)]

use lanework_cpu::Cpu;
use lanework_magma::container::{Options, Secret, decrypt, encrypt};
use lanework_magma::internals::spec::modes as spec;
use lanework_magma::kexp15::Kexp15;
use lanework_magma::mgm::Mgm;
use lanework_magma::modes::{
    CbcDecryptor, CbcEncryptor, CfbDecryptor, CfbEncryptor, Ctr, CtrAcpkm, Ofb, Omac, Stream,
};
use lanework_magma::{Engine, Magma};

use crate::bytes::Bytes;

fn engines() -> Vec<Engine> {
    let cpu = Cpu::detect();
    Engine::available(&cpu).collect()
}

/// Cuts a message in pieces whose lengths follow from `cut`, multiples of `unit`.
fn in_pieces<S: Stream>(mut state: S, data: &[u8], cut: u8, unit: usize) -> Vec<u8> {
    let mut out = data.to_vec();
    let (mut rest, mut step) = (&mut out[..], usize::from(cut));
    while !rest.is_empty() {
        step = (step * 7 + 3) % 613;
        let n = (unit * (step % 97)).clamp(unit, rest.len().max(unit)).min(rest.len());
        let (piece, behind) = std::mem::take(&mut rest).split_at_mut(n);
        state.apply(piece).expect("a piece that the mode takes");
        rest = behind;
    }
    out
}

/// A mode, a cut, a key, an IV, a message.
pub(crate) fn modes(data: &[u8]) {
    let mut input = Bytes(data);
    let (mode, cut) = (input.byte() % 8, input.byte());
    let key = input.array::<32>();
    let iv = input.array::<8>();
    let text = input.0;
    // Whole blocks for the modes that take no others.
    let whole = &text[..text.len() / 8 * 8];
    let cipher = spec::Cipher::magma(&key);
    let expected = match mode {
        0 => cipher.ctr(&iv[..4], text),
        1 => spec::ctr_acpkm(&key, &iv[..4], 1024, text),
        2 | 3 => cipher.cbc(&iv, whole),
        4 | 5 => cipher.cfb(&iv, text),
        6 => cipher.ofb(&iv, text),
        _ => cipher.omac(text).to_vec(),
    };
    for engine in engines() {
        let magma = Magma::with(&key, engine);
        let good = "an IV of the mode's length";
        let made = match mode {
            0 => in_pieces(Ctr::with_key(&magma, &iv[..4]).expect(good), text, cut, 1),
            1 => in_pieces(CtrAcpkm::with_key(&magma, &iv[..4]).expect(good), text, cut, 1),
            2 => in_pieces(CbcEncryptor::with_key(&magma, &iv).expect(good), whole, cut, 8),
            3 => in_pieces(CbcDecryptor::with_key(&magma, &iv).expect(good), &expected, cut, 8),
            4 => in_pieces(CfbEncryptor::with_key(&magma, &iv).expect(good), text, cut, 1),
            5 => in_pieces(CfbDecryptor::with_key(&magma, &iv).expect(good), &expected, cut, 1),
            6 => in_pieces(Ofb::with_key(&magma, &iv).expect(good), text, cut, 1),
            _ => {
                let mut mac = Omac::with_key(&magma, 8).expect("a tag of 8 bytes");
                for piece in text.chunks(usize::from(cut) + 1) {
                    mac.update(piece).expect("short enough");
                }
                mac.finish().as_ref().to_vec()
            }
        };
        let right = match mode {
            3 => made == whole,
            5 => made == text,
            _ => made == expected,
        };
        assert!(right, "mode {mode} of {} differs from the specification", engine.name());
    }
}

pub(crate) fn plain_seeds() -> Vec<Vec<u8>> {
    let text = |n: usize| (0..n).map(|i| (i * i / 5) as u8).collect::<Vec<u8>>();
    (0..8u8)
        .map(|mode| [&[mode, mode.wrapping_mul(37)][..], &text(60 + 211 * usize::from(mode))].concat())
        .collect()
}

/// A change, a key, a nonce, associated data, a message: sealing as specified, opening what was sealed, refusing what was
/// changed, and wiping what was refused.
pub(crate) fn mgm(data: &[u8]) {
    let mut input = Bytes(data);
    let (change, at, aad) = (input.byte(), input.byte(), input.byte());
    let key = input.array::<32>();
    let mut nonce = input.array::<8>();
    // The highest bit is the mode's own.
    nonce[0] &= 0x7f;
    let aad = input.some(usize::from(aad));
    let text = input.0;
    if text.is_empty() && aad.is_empty() {
        return;
    }
    let (expected, tag) = spec::mgm(&key, nonce, aad, text);
    for engine in engines() {
        let mgm = Mgm::with(&key, 8, engine).expect("a tag of 8 bytes");
        let mut data = text.to_vec();
        let made = mgm.seal(&nonce, aad, &mut data).expect("lengths are within bounds");
        assert!(data == expected && made.as_slice() == tag, "{} seals otherwise", engine.name());
        let mut wrong = tag;
        wrong[usize::from(at) % 8] ^= change;
        let opened = mgm.open(&nonce, aad, &mut data, &wrong);
        assert!(opened.is_ok() == (change == 0), "{}: {opened:?} with a change of {change}", engine.name());
        assert!(if change == 0 { data == text } else { data.iter().all(|&byte| byte == 0) });
        assert!(mgm.open(&nonce, aad, &mut data, &tag[..7]).is_err(), "a short tag is accepted");
    }
}

/// Two keys, an IV, and both a secret to wrap and bytes to unwrap.
pub(crate) fn kexp15(data: &[u8]) {
    let mut input = Bytes(data);
    let (mac, encrypt, iv) = (input.array::<32>(), input.array::<32>(), input.array::<4>());
    let (change, at) = (input.byte(), input.byte());
    let mut first: Option<Result<Vec<u8>, String>> = None;
    for engine in engines() {
        let Ok(key) = Kexp15::new(&mac, &encrypt, engine) else {
            assert!(mac == encrypt, "two keys are refused");
            return;
        };
        let made = key.wrap(&iv, input.0).map_err(|e| e.to_string());
        if let Ok(wrapped) = &made {
            assert!(key.unwrap(&iv, wrapped).is_ok_and(|secret| secret[..] == *input.0));
            let mut wrong = wrapped.clone();
            let place = usize::from(at) % wrong.len();
            wrong[place] ^= change;
            assert!(key.unwrap(&iv, &wrong).is_ok() == (change == 0));
        }
        // What was not wrapped is refused; a forgery by chance takes 2^64 inputs.
        assert!(key.unwrap(&iv, input.0).is_err());
        match &first {
            None => first = Some(made),
            Some(first) => assert!(*first == made, "{} wraps otherwise", engine.name()),
        }
    }
}

fn secret() -> Secret {
    let key: [u8; 32] = core::array::from_fn(|i| 3 * i as u8);
    Secret::Key(key.into())
}

fn contain(data: &[u8]) -> Vec<u8> {
    let options = Options { chunk: 4096, ..Options::default() };
    let mut out = Vec::new();
    encrypt(&secret(), options, [0x5c; 32], engines()[0], data, &mut out).expect("it fits in memory");
    out
}

/// Bytes as a container, and as the message of one: all backends accept and refuse the same, and an intact one opens.
pub(crate) fn container(data: &[u8]) {
    let mut first: Option<(Vec<u8>, String)> = None;
    for engine in engines() {
        let mut out = Vec::new();
        let opened = decrypt(&secret(), engine, data, &mut out);
        let told = format!("{opened:?}");
        match &first {
            None => first = Some((out, told)),
            Some(first) => assert!(*first == (out, told), "{} opens otherwise", engine.name()),
        }
    }
    let best = *engines().last().expect("portable is there");
    let whole = contain(data);
    let mut out = Vec::new();
    assert!(decrypt(&secret(), best, &whole[..], &mut out).is_ok() && out == data);
    // One bit, somewhere that follows from the input.
    let mut wrong = whole;
    let at = data.iter().fold(7usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    let place = at % wrong.len();
    wrong[place] ^= 1 << (at / 7 % 8);
    assert!(decrypt(&secret(), best, &wrong[..], &mut Vec::new()).is_err(), "a changed container opens");
}

pub(crate) fn container_seeds() -> Vec<Vec<u8>> {
    let text = |n: usize| (0..n).map(|i| (i * 7) as u8).collect::<Vec<u8>>();
    [0, 1, 1000, 4095, 4096, 4097].into_iter().map(|n| contain(&text(n))).collect()
}
