//! The traits of other crates: their generic modes over this cipher against this crate's modes and the specification,
//! on every backend.

use cipher::common::{InnerIvInit, KeyIvInit};
use cipher::consts::{U4, U5, U8};
use cipher::inout::InOutBuf;
use cipher::{
    Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, KeyInit, StreamCipher,
    StreamCipherSeek,
};
use digest::Mac;
use lanework_cpu::{Cpu, Select, Settings};
use lanework_magma::backend::BACKENDS;
use lanework_magma::internals::known::mgm::MESSAGES;
use lanework_magma::internals::known::{array, bytes};
use lanework_magma::internals::spec;
use lanework_magma::modes::{CbcDecryptor, CbcEncryptor, CfbDecryptor, CfbEncryptor, Ctr, Ofb, Omac, Stream};
use lanework_magma::traits::{MagmaMgm, MagmaOmac};
use lanework_magma::{Engine, Gost28147, Keyed, Limits, Magma, Mgm, Sbox};

type Block = Array<u8, U8>;

const KEY: [u8; 32] = *b"a key of thirty-two bytes, tests";

fn engines() -> Vec<Engine> {
    let settings = Settings::from_env().expect("the environment can be read");
    let cpu = Cpu::detect();
    let chosen = BACKENDS.iter().filter_map(|row| match Engine::choose(&cpu, Select::Named(row.name())) {
        Ok(engine) => Some(engine),
        Err(why) => {
            assert!(!settings.requires(row.name()), "{why}, but LANEWORK_REQUIRE asks for it");
            None
        }
    });
    chosen.collect()
}

fn numbers(seed: u64, n: usize) -> Vec<u8> {
    let mut state = seed;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

fn blocks(data: &[u8]) -> Vec<Block> {
    data.chunks(8).map(|block| block.try_into().expect("whole blocks")).collect()
}

/// Every way into a block cipher against the specification.
fn every_way<C: BlockCipherEncrypt<BlockSize = U8> + BlockCipherDecrypt>(
    name: &str,
    cipher: &C,
    encrypt: impl Fn(u64) -> u64,
    number: fn([u8; 8]) -> u64,
    block: fn(u64) -> [u8; 8],
) {
    for n in (0..20).chain([63, 64, 127, 128, 129, 255, 256, 257, 512, 600]) {
        let plain = blocks(&numbers(n as u64, 8 * n));
        let sealed: Vec<Block> = plain.iter().map(|b| Array(block(encrypt(number(b.0))))).collect();
        let mut data = plain.clone();
        cipher.encrypt_blocks(&mut data);
        assert!(data == sealed, "{name}: {n} blocks in place");
        cipher.decrypt_blocks(&mut data);
        assert!(data == plain, "{name}: {n} blocks in place, back");
        let mut out = vec![Block::default(); n];
        cipher.encrypt_blocks_b2b(&plain, &mut out).expect("one length");
        assert!(out == sealed, "{name}: {n} blocks");
        cipher.decrypt_blocks_b2b(&sealed, &mut out).expect("one length");
        assert!(out == plain, "{name}: {n} blocks, back");
        cipher.encrypt_blocks_inout(InOutBuf::new(&plain, &mut out).expect("one length"));
        assert!(out == sealed, "{name}: {n} blocks inout");
        cipher.decrypt_blocks_inout(InOutBuf::new(&sealed, &mut out).expect("one length"));
        assert!(out == plain, "{name}: {n} blocks inout, back");
        assert!(cipher.encrypt_blocks_b2b(&plain, &mut vec![Block::default(); n + 1]).is_err());
        for (plain, sealed) in plain.iter().zip(&sealed).take(3) {
            let mut one = *plain;
            cipher.encrypt_block(&mut one);
            assert_eq!(one, *sealed, "{name}: one block");
            cipher.decrypt_block(&mut one);
            assert_eq!(one, *plain, "{name}: one block, back");
        }
    }
}

#[test]
fn block_ciphers_are_the_specifications() {
    for engine in engines() {
        let words = spec::magma_words(&KEY);
        let e = |b| spec::encrypt(Sbox::Z.rows(), &words, b);
        every_way(engine.name(), &Magma::with(&KEY, engine), e, u64::from_be_bytes, u64::to_be_bytes);
        let words = spec::gost28147_words(&KEY);
        for sbox in Sbox::ALL {
            let e = |b| spec::encrypt(sbox.rows(), &words, b);
            let cipher = Gost28147::with(&KEY, sbox, engine);
            every_way(engine.name(), &cipher, e, u64::from_le_bytes, u64::to_le_bytes);
        }
    }
}

#[test]
fn a_key_from_the_trait_is_the_key() {
    let mut one = Block::default();
    let mut other = one;
    <Magma as KeyInit>::new(&Array(KEY)).encrypt_block(&mut one);
    Magma::new(&KEY).encrypt_block(&mut other);
    assert_eq!(one, other);
    assert!(<Magma as KeyInit>::new_from_slice(&KEY[1..]).is_err());
}

#[test]
fn generic_modes_over_our_cipher_are_our_modes() {
    let iv = [1, 2, 3, 4, 0, 0, 0, 0];
    for engine in engines() {
        let name = engine.name();
        let key = || Magma::with(&KEY, engine);
        for n in [0, 8, 16, 1024, 2048, 2056, 4096, 8 * 700] {
            let plain = numbers(n as u64, n);

            let (mut theirs, mut ours) = (plain.clone(), plain.clone());
            ctr::Ctr32BE::from_core(ctr::CtrCore::inner_iv_init(key(), &Array(iv)))
                .apply_keystream(&mut theirs);
            Ctr::with_key(key(), &iv[..4]).and_then(|mut ctr| ctr.apply(&mut ours)).expect("within limits");
            assert!(theirs == ours, "{name}: CTR of {n}");

            let mut theirs = blocks(&plain);
            cbc::Encryptor::inner_iv_init(key(), &Array(iv)).encrypt_blocks(&mut theirs);
            let mut ours = plain.clone();
            CbcEncryptor::with_key(key(), &iv)
                .and_then(|mut cbc| cbc.apply(&mut ours))
                .expect("within limits");
            assert!(Array::slice_as_flattened(&theirs) == ours, "{name}: CBC of {n}");
            cbc::Decryptor::inner_iv_init(key(), &Array(iv)).decrypt_blocks(&mut theirs);
            CbcDecryptor::with_key(key(), &iv)
                .and_then(|mut cbc| cbc.apply(&mut ours))
                .expect("within limits");
            assert!(Array::slice_as_flattened(&theirs) == plain && ours == plain, "{name}: CBC of {n}, back");

            let mut theirs = blocks(&plain);
            cfb_mode::Encryptor::inner_iv_init(key(), &Array(iv)).encrypt_blocks(&mut theirs);
            let mut ours = plain.clone();
            CfbEncryptor::with_key(key(), &iv)
                .and_then(|mut cfb| cfb.apply(&mut ours))
                .expect("within limits");
            assert!(Array::slice_as_flattened(&theirs) == ours, "{name}: CFB of {n}");
            cfb_mode::Decryptor::inner_iv_init(key(), &Array(iv)).decrypt_blocks(&mut theirs);
            CfbDecryptor::with_key(key(), &iv)
                .and_then(|mut cfb| cfb.apply(&mut ours))
                .expect("within limits");
            assert!(Array::slice_as_flattened(&theirs) == plain && ours == plain, "{name}: CFB of {n}, back");

            let (mut theirs, mut ours) = (plain.clone(), plain.clone());
            ofb::Ofb::from_core(ofb::OfbCore::inner_iv_init(key(), &Array(iv))).apply_keystream(&mut theirs);
            Ofb::with_key(key(), &iv).and_then(|mut ofb| ofb.apply(&mut ours)).expect("within limits");
            assert!(theirs == ours, "{name}: OFB of {n}");
        }
        for n in [0, 1, 7, 8, 9, 16, 1000] {
            let message = numbers(n as u64, n);
            let mut theirs = <cmac::Cmac<Magma> as cmac::KeyInit>::new(&Array(KEY));
            Mac::update(&mut theirs, &message);
            let mut ours = Omac::with_key(key(), 8).expect("8 bytes");
            ours.update(&message).expect("within limits");
            let ours = ours.finish();
            assert_eq!(theirs.finalize().into_bytes()[..], *ours.as_ref(), "{name}: OMAC of {n}");
            let mut mac = MagmaOmac::with(&KEY, engine);
            for piece in message.chunks(5) {
                Mac::update(&mut mac, piece);
            }
            assert_eq!(mac.finalize_reset().into_bytes()[..], *ours.as_ref(), "{name}: Mac of {n}");
            // After the reset, the same again.
            mac.chain_update(&message).verify_slice(ours.as_ref()).expect("its own tag");
        }
    }
}

#[test]
fn a_mac_refuses_other_tags() {
    let mac = <MagmaOmac as digest::KeyInit>::new(&Array(KEY)).chain_update(b"message");
    let tag = mac.clone().finalize().into_bytes();
    mac.clone().verify(&tag).expect("its own tag");
    mac.clone().verify_truncated_left(&tag[..4]).expect("its own tag's beginning");
    for bit in 0..64 {
        let mut bad = tag;
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(mac.clone().verify(&bad).is_err(), "bit {bit}");
    }
    assert!(mac.verify_slice(&tag[..7]).is_err());
}

#[test]
fn a_stream_cipher_seeks_and_stops_where_ctr_does() {
    let message = numbers(1, 3000);
    let mut sealed = message.clone();
    Ctr::<Magma>::new(&KEY.into(), &(*b"iv04").into()).apply_keystream(&mut sealed);
    let mut expected = message.clone();
    Ctr::with_key(Magma::new(&KEY), b"iv04")
        .and_then(|mut ctr| ctr.apply(&mut expected))
        .expect("within limits");
    assert!(sealed == expected);
    for engine in engines() {
        let mut ctr = Ctr::with_key(Magma::with(&KEY, engine), b"iv04").expect("an IV");
        for start in (0..40usize).chain([1023, 1024, 1025, 2999, 5]) {
            StreamCipherSeek::seek(&mut ctr, start);
            assert_eq!(ctr.current_pos::<usize>(), start);
            let mut at = start;
            for length in [1, 2, 5, 8, 13, 600] {
                let end = (at + length).min(sealed.len());
                let mut piece = sealed[at..end].to_vec();
                ctr.apply_keystream(&mut piece);
                assert!(piece == message[at..end], "{} from {start}: {at} to {end}", engine.name());
                at = end;
                assert_eq!(ctr.current_pos::<u64>(), at as u64);
            }
        }
        let mut keystream = vec![0xa5; 100];
        StreamCipherSeek::seek(&mut ctr, 17u32);
        ctr.write_keystream(&mut keystream);
        assert!(keystream.iter().zip(&sealed[17..]).zip(&message[17..]).all(|((k, c), m)| k ^ c == *m));
        // The last byte, and no more.
        let end = 1u64 << 35;
        ctr.try_seek(end - 3).expect("before the end");
        let mut rest = [7; 4];
        assert!(ctr.try_apply_keystream(&mut rest).is_err());
        assert_eq!(rest, [7; 4], "refused whole");
        ctr.try_apply_keystream(&mut rest[..3]).expect("to the end");
        assert_eq!(ctr.current_pos::<u64>(), end);
        assert!(ctr.try_apply_keystream(&mut rest[..1]).is_err());
        assert!(ctr.try_seek(end + 1).is_err() && ctr.try_seek(end).is_ok());
    }
}

#[test]
fn a_stream_cipher_keeps_to_the_keys_limits() {
    let limits = Limits::Custom { bytes: 104, section: 8 };
    let key = Magma::new(&KEY).with_limits(limits);
    let mut ctr = Ctr::with_key(&key, b"iv04").expect("an IV");
    let mut data = [0; 105];
    assert!(ctr.try_apply_keystream(&mut data).is_err());
    assert_eq!(data, [0; 105], "refused whole");
    ctr.try_apply_keystream(&mut data[..100]).expect("to the block");
    assert_eq!(key.used(), 104);
    assert!(ctr.check_remaining(5).is_err() && ctr.check_remaining(4).is_ok());
}

#[test]
fn aead_is_mgm() {
    use aead::{Aead, AeadInOut, Payload};
    for engine in engines() {
        for m in MESSAGES {
            let mgm = Mgm::with(&array(m.key), 8, engine).expect("8 bytes");
            let aead = MagmaMgm::<U8>::try_from(mgm).expect("8 bytes");
            let (nonce, aad) = (Array(array(m.nonce)), bytes(m.aad));
            let (plaintext, sealed) = (bytes(m.plaintext), bytes(&[m.ciphertext, m.tag].concat()));
            let out = aead.encrypt(&nonce, Payload { msg: &plaintext, aad: &aad }).expect("a message");
            assert_eq!(out, sealed, "{} {}", engine.name(), m.source);
            let out = aead.decrypt(&nonce, Payload { msg: &sealed, aad: &aad }).expect("its own tag");
            assert_eq!(out, plaintext, "{} {}", engine.name(), m.source);
            for byte in 0..sealed.len() {
                let mut bad = sealed.clone();
                bad[byte] ^= 0x10;
                assert!(aead.decrypt(&nonce, Payload { msg: &bad, aad: &aad }).is_err(), "byte {byte}");
            }
            assert!(aead.decrypt(&nonce, Payload { msg: &sealed, aad: b"other" }).is_err());
            let mut in_place = plaintext.clone();
            let short = MagmaMgm::<U5>::new(&Array(array(m.key)));
            let tag = short.encrypt_inout_detached(&nonce, &aad, in_place.as_mut_slice().into());
            assert_eq!(tag.expect("a message")[..], bytes(m.tag)[..5]);
        }
    }
    let aead = MagmaMgm::<U4>::new(&Array(KEY));
    assert!(aead.encrypt(&Array([0x80, 0, 0, 0, 0, 0, 0, 0]), &b"top bit"[..]).is_err());
    assert!(aead.encrypt(&Array([0; 8]), &b""[..]).is_err(), "an empty message");
    assert!(aead.decrypt(&Array([0; 8]), &b"abc"[..]).is_err(), "shorter than a tag");
    assert!(MagmaMgm::<U4>::try_from(Mgm::new(&KEY)).is_err(), "a tag of another length");
}

#[test]
fn keys_say_that_they_are_wiped() {
    fn wiped<T: cipher::zeroize::ZeroizeOnDrop>() {}
    wiped::<Magma>();
    wiped::<Gost28147>();
    wiped::<Mgm>();
    wiped::<MagmaMgm>();
    wiped::<MagmaOmac>();
    wiped::<Ctr<Magma>>();
}
