//! Batches count against their keys' limits as the modes do for single messages.
#![forbid(unsafe_code)]

use super::hazmat::{EcbJob, ecb_encrypt};
use super::*;
use crate::key::Magma;
use crate::limits::Limits;
use crate::mgm::Mgm;

/// Two messages of 48 bytes, and a block.
const LIMIT: u64 = 104;

fn key(limit: u64) -> Magma {
    Magma::new(&[7; 32]).with_limits(Limits::Custom { bytes: limit, section: 1024 })
}

/// Three messages of 48 bytes and one of 4 under a key for two of 48 and a block, with `more` bytes for each of them: the
/// third exceeds the limit, and the last fits again.
fn outcomes(more: u64, run: impl FnOnce(&Batch<'_>, &Magma, &mut [Vec<u8>]) -> Outcomes) {
    let limit = LIMIT + 3 * more;
    let key = key(limit);
    let mut data = [vec![5; 48], vec![5; 48], vec![5; 48], vec![5; 4]];
    let outcomes = run(&Batch::default(), &key, &mut data);
    let exhausted = Err(Error::KeyExhausted { limit });
    assert_eq!(outcomes, [Ok(()), Ok(()), exhausted, Ok(())]);
    assert_eq!(key.used(), limit);
    assert_eq!(data[2], [5; 48], "a refused job is left as it was");
}

#[test]
fn ciphers_charge_their_keys() {
    outcomes(0, |batch, key, data| {
        let mut jobs: Vec<_> = data.iter_mut().map(|data| CtrJob { key, iv: &[1; 4], data }).collect();
        batch.ctr(&mut jobs).unwrap()
    });
    outcomes(0, |batch, key, data| {
        let mut jobs: Vec<_> = data.iter_mut().map(|data| CfbJob { key, iv: &[1; 8], data }).collect();
        batch.cfb_encrypt(&mut jobs).unwrap()
    });
}

#[test]
fn whole_blocks_charge_their_keys() {
    let exhausted = || Err(Error::KeyExhausted { limit: LIMIT });
    let (cbc, ecb) = (key(LIMIT), key(LIMIT));
    let mut data = [[5; 48]; 3];
    let mut jobs: Vec<_> = data.iter_mut().map(|data| CbcJob { key: &cbc, iv: &[1; 8], data }).collect();
    assert_eq!(Batch::default().cbc_encrypt(&mut jobs).unwrap(), [Ok(()), Ok(()), exhausted()]);
    let mut jobs: Vec<_> = data.iter_mut().map(|data| EcbJob { key: &ecb, data }).collect();
    assert_eq!(ecb_encrypt(&Batch::default(), &mut jobs).unwrap(), [Ok(()), Ok(()), exhausted()]);
    assert_eq!((cbc.used(), ecb.used()), (96, 96));
}

#[test]
fn macs_charge_their_keys() {
    outcomes(0, |batch, key, data| {
        let mut macs = [[0; 8]; 4];
        let mut jobs: Vec<_> =
            data.iter().zip(&mut macs).map(|(data, mac)| OmacJob { key, data, mac }).collect();
        let outcomes = batch.omac(&mut jobs).unwrap();
        assert_eq!(macs[2], [0; 8]);
        outcomes
    });
}

#[test]
fn sealing_charges_all_and_opening_what_was_authentic() {
    outcomes(32, |batch, key, data| {
        let (mut tags, nonces) = ([[0; 8]; 4], [[1; 8], [2; 8], [3; 8], [4; 8]]);
        let messages = data.iter_mut().zip(&mut tags).zip(&nonces);
        let mut jobs: Vec<_> =
            messages.map(|((data, tag), nonce)| SealJob { key, nonce, aad: &[], data, tag }).collect();
        batch.mgm_seal(8, &mut jobs).unwrap()
    });

    let mgm = Mgm::new(&[7; 32]);
    let (mut good, mut forged) = (vec![5; 60], vec![5; 90]);
    let tag = mgm.seal(&[1; 8], &[], &mut good).unwrap();
    let sealed = good.clone();
    // Enough for one of the forgeries, but not for two good messages.
    let key = key(136);
    let open = |data: &mut [u8], tag: &[u8]| {
        let mut jobs = [OpenJob { key: &key, nonce: &[1; 8], aad: &[], data, tag }];
        Batch::default().mgm_open(8, &mut jobs).unwrap().remove(0)
    };
    // Forgeries cannot use the key up.
    for _ in 0..3 {
        assert_eq!(open(&mut forged, &[0; 8]), Err(Error::Refused));
    }
    assert_eq!(key.used(), 0);
    assert_eq!(open(&mut good, tag.as_slice()), Ok(()));
    assert_eq!((key.used(), &good), (64 + 32, &vec![5; 60]));
    // They count separately, each of 90 bytes as 256.
    assert_eq!(key.refused(), 3 * 256);
    // Authentic, but beyond the limit: it stays encrypted.
    good.copy_from_slice(&sealed);
    assert_eq!(open(&mut good, tag.as_slice()), Err(Error::KeyExhausted { limit: 136 }));
    assert_eq!((key.used(), &good), (64 + 32, &sealed));
}

/// One batch reaches the limit of refused messages in its middle; nothing is opened afterwards, and sealing continues.
#[test]
fn batches_end_where_refused_messages_do() {
    const MEBIBYTE: usize = 1 << 20;
    if cfg!(miri) {
        // 256 MiB of forgeries: the account itself is tested in `limits`.
        return;
    }
    let key = Magma::new(&[7; 32]);
    let mgm = Mgm::new(&[7; 32]);
    let mut good = vec![5; 100];
    let tag = mgm.seal(&[1; 8], &[], &mut good).unwrap();
    let sealed = good.clone();
    let mut forged = vec![vec![3; MEBIBYTE]; 64];
    let closed = Err(Error::TooManyRefused { limit: Limits::REFUSED });
    for round in 0..4 {
        let mut jobs: Vec<_> = forged
            .iter_mut()
            .map(|data| OpenJob { key: &key, nonce: &[1; 8], aad: &[], data, tag: &[0; 8] })
            .collect();
        // The longest run first: the short good one comes when the limit is reached.
        jobs.push(OpenJob { key: &key, nonce: &[1; 8], aad: &[], data: &mut good, tag: tag.as_slice() });
        let mut outcomes = Batch::default().mgm_open(8, &mut jobs).unwrap();
        let last = outcomes.pop();
        assert!(outcomes.iter().all(|outcome| *outcome == Err(Error::Refused)));
        if round < 3 {
            assert_eq!((last, &good), (Some(Ok(())), &vec![5; 100]));
            good.copy_from_slice(&sealed);
        } else {
            assert_eq!((last, &good), (Some(closed.clone()), &sealed));
        }
    }
    assert_eq!(key.refused(), Limits::REFUSED);
    let mut jobs = [OpenJob { key: &key, nonce: &[1; 8], aad: &[], data: &mut good, tag: tag.as_slice() }];
    assert_eq!(Batch::default().mgm_open(8, &mut jobs).unwrap(), [closed]);
    assert_eq!(good, sealed, "nothing is decrypted");
    let (mut data, mut tag) = ([5; 100], [0; 8]);
    let mut jobs = [SealJob { key: &key, nonce: &[2; 8], aad: &[], data: &mut data, tag: &mut tag }];
    assert_eq!(Batch::default().mgm_seal(8, &mut jobs).unwrap(), [Ok(())]);
}
