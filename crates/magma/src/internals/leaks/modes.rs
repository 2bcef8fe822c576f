//! Every mode and every code, both ways, whole, in pieces and on threads: the key and the message are secret, IVs
//! public.
#![forbid(unsafe_code)]

use lanework_cpu::Threads;
use lanework_leakage::memcheck::{make_secret, release};

use super::secrets::{both, came_out, done, is_right, secret};
use crate::backend::Engine;
use crate::error::Error;
use crate::internals::check::Numbers;
use crate::internals::check::streams::{Keys, modes};
use crate::internals::spec::modes as plain;
use crate::key::{Gost28147, Magma};
use crate::modes::hazmat::EcbEncryptor;
use crate::modes::legacy::{Imit, Meshing};
use crate::modes::padding::{Padding, unpad_one_zeros, unpad_zeros};
use crate::modes::{CbcDecryptor, CfbDecryptor, Ctr, CtrAcpkm, Omac, OmacAcpkm};
use crate::sbox::Sbox;

/// Around blocks, sections of 1 KiB and batches.
const LENGTHS: [usize; 9] = [1, 7, 8, 24, 65, 1023, 1024, 1100, 2200];

pub(super) fn streams(engine: Engine) {
    let mut numbers = Numbers(51);
    let (hidden, open) = both(&mut numbers);
    let iv = numbers.array();
    for sbox in [Sbox::Z, Sbox::CryptoProA] {
        let (hidden, open) = (Keys::of(hidden, iv, engine, sbox), Keys::of(open, iv, engine, sbox));
        for (mode, known) in modes(&hidden).iter().zip(&modes(&open)) {
            for n in LENGTHS {
                let message = numbers.bytes(n.next_multiple_of(mode.granule));
                let want = (known.plain)(&message);
                // Ciphertexts are public, but nothing may depend on that.
                for (make, input, output) in [(&mode.forth, &message, &want), (&mode.back, &want, &message)] {
                    let mut data = secret(input);
                    done(mode.name, done(mode.name, make()).apply(&mut data));
                    came_out(mode.name, &data, output);
                    // A public message, so that the output's secrecy comes from the key alone.
                    let mut data = vec![0; input.len()];
                    let mut state = done(mode.name, make());
                    let mut rest = &mut data[..];
                    for cut in [1usize, 7, 9, 100, 1030].into_iter().cycle() {
                        let (now, later) =
                            rest.split_at_mut(cut.next_multiple_of(mode.granule).min(rest.len()));
                        now.copy_from_slice(&input[input.len() - now.len() - later.len()..][..now.len()]);
                        done(mode.name, state.apply(now));
                        rest = later;
                        if rest.is_empty() {
                            break;
                        }
                    }
                    came_out(mode.name, &data, output);
                }
            }
        }
    }
}

pub(super) fn threads(engine: Engine) {
    let mut numbers = Numbers(52);
    let (hidden, open) = both(&mut numbers);
    let keys = |bytes| (Magma::with(bytes, engine), Gost28147::with(bytes, Sbox::Z, engine));
    let ((magma, gost), (open_magma, open_gost)) = (keys(&hidden), keys(&open));
    let iv = numbers.array::<8>();
    // Three pieces for two threads.
    let message = numbers.bytes(200_000);
    type Run = fn(&Magma, &Gost28147, &[u8], Threads<'_>, &mut [u8]) -> Result<(), Error>;
    let runs: [(&str, Run); 5] = [
        ("CTR", |m, _, iv, t, d| Ctr::with_key(m, &iv[..4])?.apply_with(t, d)),
        ("CTR-ACPKM", |m, _, iv, t, d| CtrAcpkm::with_key(m, &iv[..4])?.apply_with(t, d)),
        ("ECB", |_, g, _, t, d| EcbEncryptor::with_key(g).apply_with(t, d)),
        ("CBC decryption", |m, _, iv, t, d| CbcDecryptor::with_key(m, iv)?.apply_with(t, d)),
        ("CFB decryption", |_, g, iv, t, d| CfbDecryptor::with_key(g, iv)?.apply_with(t, d)),
    ];
    for (name, run) in runs {
        let (mut data, mut want) = (secret(&message), message.clone());
        done(name, run(&magma, &gost, &iv, Threads::Own(2), &mut data));
        done(name, run(&open_magma, &open_gost, &iv, Threads::One, &mut want));
        came_out(name, &data, &want);
    }
}

pub(super) fn codes(engine: Engine) {
    let mut numbers = Numbers(53);
    let (hidden, open) = both(&mut numbers);
    let magma = Magma::with(&hidden, engine);
    let gost = Gost28147::with(&hidden, Sbox::CryptoProA, engine);
    for n in [0, 1, 7, 8, 9, 64, 1023, 1030, 2100] {
        let message = numbers.bytes(n);
        let text = secret(&message);
        let (head, tail) = text.split_at(n / 3);
        macro_rules! code {
            ($name:literal, $new:expr, $want:expr) => {
                let new = || {
                    let mut mac = $new;
                    done($name, mac.update(head));
                    done($name, mac.update(tail));
                    mac
                };
                let (tag, want) = (new().finish(), $want);
                came_out($name, tag.as_ref(), &want);
                // The received tag is as public as the answer; the computed one stays secret where they differ.
                assert!(new().verify(&want).is_ok(), "{}", $name);
                for at in 0..want.len() {
                    let mut wrong = want;
                    wrong[at] ^= 0x10;
                    assert!(matches!(new().verify(&wrong), Err(Error::Refused)), "{}", $name);
                }
            };
        }
        let m = || plain::Cipher::magma(&open);
        let g = || plain::Cipher::gost28147(&open, Sbox::CryptoProA);
        code!("OMAC", done("OMAC", Omac::with_key(&magma, 8)), m().omac(&message));
        code!("28147 OMAC", done("OMAC", Omac::with_key(&gost, 8)), g().omac(&message));
        code!(
            "OMAC-ACPKM",
            done("OMAC-ACPKM", OmacAcpkm::with_key(&magma, 64, 80, 8)),
            plain::omac_acpkm(&open, 64, 80, &message)
        );
        // IMIT of an empty message is zeros under every key.
        let meshings: &[_] = if n == 0 { &[] } else { &[(Meshing::None, false), (Meshing::CryptoPro, true)] };
        for &(meshing, mesh) in meshings {
            code!(
                "IMIT",
                Imit::with_key(&gost, meshing),
                plain::imit(&open, Sbox::CryptoProA, &[0; 8], mesh, &message)
            );
        }
    }
}

pub(super) fn padding(_: Engine) {
    let mut numbers = Numbers(54);
    for n in 0..20 {
        let message = numbers.bytes(n);
        for padding in [Padding::Zeros, Padding::OneZeros, Padding::Mac] {
            let mut padded = secret(&message);
            padding.pad(&mut padded);
            release(&padded);
            let public = padded.clone();
            make_secret(&padded);
            match padding {
                Padding::Zeros => {
                    assert_eq!(unpad_zeros(&padded, n), Ok(n));
                    if public.len() > n {
                        let mut wrong = public.clone();
                        wrong[public.len() - 1] = 1;
                        assert_eq!(unpad_zeros(&secret(&wrong), n), Err(Error::Refused));
                    }
                }
                Padding::OneZeros => {
                    // The message's length is the answer, and secret until it is released.
                    let length = done("padding", unpad_one_zeros(&padded)).to_le_bytes();
                    is_right("padding", &length, &n.to_le_bytes());
                    let zeros = secret(&vec![0; public.len()]);
                    assert!(unpad_one_zeros(&zeros).is_err());
                }
                Padding::Mac => {}
            }
        }
    }
}
