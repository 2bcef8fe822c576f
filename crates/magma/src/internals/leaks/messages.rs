//! MGM, batches, wrapped keys and containers' chunks: keys, associated data and messages are secret, nonces public.
//! Ciphertexts, tags, and whether a tag is right are released.
#![forbid(unsafe_code)]

use lanework_cpu::Threads;
use lanework_leakage::memcheck::{release, secret_bytes};
use zeroize::Zeroizing;

use super::secrets::{both, came_out, done, secret};
use crate::backend::Engine;
use crate::batch::hazmat::{EcbJob, ecb_encrypt};
use crate::batch::{Batch, CbcJob, CfbJob, CtrJob, OmacJob, OpenJob, SealJob};
use crate::container::{Decryptor, Encryptor, Header, Options, SMALLEST_CHUNK, Secret};
use crate::error::Error;
use crate::internals::check::Numbers;
use crate::internals::spec::modes as plain;
use crate::kexp15::Kexp15;
use crate::key::Magma;
use crate::mgm::Mgm;

fn nonce(numbers: &mut Numbers) -> [u8; 8] {
    let mut nonce: [u8; 8] = numbers.array();
    nonce[0] &= 0x7f;
    nonce
}

pub(super) fn mgm(engine: Engine) {
    let mut numbers = Numbers(61);
    let (hidden, open) = both(&mut numbers);
    let key = done("MGM", Mgm::with(&hidden, 8, engine));
    for n in [0, 1, 8, 9, 63, 64, 200, 1024, 1029, 4100, 9000] {
        let nonce = nonce(&mut numbers);
        let (aad, message) = (numbers.bytes(1 + n % 97), numbers.bytes(n));
        let (want, tag) = plain::mgm(&open, nonce, &aad, &message);
        let hidden_aad = secret(&aad);
        let mut data = secret(&message);
        let sealed = done("MGM", key.seal(&nonce, &hidden_aad, &mut data));
        came_out("MGM, tag", sealed.as_slice(), &tag);
        came_out("MGM", &data, &want);
        let mut data = secret(&want);
        done("MGM", key.open(&nonce, &hidden_aad, &mut data, &tag));
        came_out("MGM, opened", &data, &message);
        for at in 0..8 {
            let mut wrong = tag;
            wrong[at] ^= 1;
            let mut data = secret(&want);
            assert_eq!(key.open(&nonce, &hidden_aad, &mut data, &wrong), Err(Error::Refused));
        }
        in_pieces(&key, nonce, &hidden_aad, &message, &want, &tag);
    }
}

fn in_pieces(key: &Mgm, nonce: [u8; 8], aad: &[u8], message: &[u8], want: &[u8], tag: &[u8]) {
    let cut = message.len() / 3;
    let mut sealer = done("MGM", key.sealer(&nonce));
    done("MGM", sealer.aad(aad));
    let mut data = secret(message);
    let (head, tail) = data.split_at_mut(cut);
    done("MGM", sealer.data(head));
    done("MGM", sealer.data(tail));
    came_out("MGM in pieces, tag", done("MGM", sealer.finish()).as_slice(), tag);
    came_out("MGM in pieces", &data, want);
    let mut verifier = done("MGM", key.verifier(&nonce));
    done("MGM", verifier.aad(aad));
    let mut data = secret(want);
    done("MGM", verifier.data(&data[..cut]));
    done("MGM", verifier.data(&data[cut..]));
    let mut decrypter = done("MGM", verifier.finish(tag));
    let (head, tail) = data.split_at_mut(cut);
    done("MGM", decrypter.data(head));
    done("MGM", decrypter.data(tail));
    came_out("MGM in pieces, checked", &data, message);
    let mut opener = done("MGM", key.opener(&nonce));
    done("MGM", opener.aad(aad));
    let mut data = secret(want);
    done("MGM", opener.data_unverified(&mut data));
    done("MGM", opener.finish(tag));
    came_out("MGM in pieces, opened", &data, message);
    let mut wrong = tag.to_vec();
    wrong[3] ^= 0x80;
    let mut opener = done("MGM", key.opener(&nonce));
    done("MGM", opener.aad(aad));
    done("MGM", opener.data_unverified(&mut secret(want)));
    assert_eq!(opener.finish(&wrong), Err(Error::Refused));
}

pub(super) fn mgm_on_threads(engine: Engine) {
    let mut numbers = Numbers(62);
    let (hidden, open) = both(&mut numbers);
    let key = done("MGM", Mgm::with(&hidden, 8, engine));
    let plain = done("MGM", Mgm::with(&open, 8, engine));
    let (nonce, aad, message) = (nonce(&mut numbers), numbers.bytes(50), numbers.bytes(200_000));
    let mut want = message.clone();
    let tag = done("MGM", plain.seal(&nonce, &aad, &mut want));
    let mut data = secret(&message);
    let sealed = done("MGM", key.seal_with(Threads::Own(2), &nonce, &secret(&aad), &mut data));
    came_out("MGM on threads, tag", sealed.as_slice(), tag.as_slice());
    came_out("MGM on threads", &data, &want);
    let mut data = secret(&want);
    done("MGM", key.open_with(Threads::Own(2), &nonce, &secret(&aad), &mut data, tag.as_slice()));
    came_out("MGM on threads, opened", &data, &message);
}

/// Messages that share lanes, and some long enough to be processed alone.
const LENGTHS: [usize; 12] = [8, 8, 16, 24, 24, 40, 64, 64, 72, 136, 1024, 2400];

pub(super) fn batches(engine: Engine) {
    let mut numbers = Numbers(63);
    let batch = Batch::new(engine);
    // More than the lanes hold at once.
    let count = 140;
    let mut keys = Vec::new();
    for _ in 0..count {
        let (hidden, open) = both(&mut numbers);
        keys.push((Magma::with(&hidden, engine), open));
    }
    let messages: Vec<Vec<u8>> = (0..count).map(|i| numbers.bytes(LENGTHS[i % LENGTHS.len()])).collect();
    let iv = numbers.array::<16>();
    type Specified<'a> = dyn Fn(&[u8; 32], &[u8]) -> Vec<u8> + 'a;
    let every = |what: &str, data: &[Vec<u8>], want: &Specified<'_>| {
        for ((data, message), (_, open)) in data.iter().zip(&messages).zip(&keys) {
            came_out(what, data, &want(open, message));
        }
    };
    let hidden = || messages.iter().map(|message| secret(message)).collect::<Vec<_>>();
    macro_rules! batch {
        ($what:literal, |$key:ident, $data:ident| $job:expr, $run:expr, $want:expr) => {
            let mut texts = hidden();
            let mut jobs: Vec<_> = texts.iter_mut().zip(&keys).map(|($data, ($key, _))| $job).collect();
            let outcomes = $run(&mut jobs).expect("one thread");
            assert!(outcomes.iter().all(Result::is_ok), $what);
            every($what, &texts, &$want);
        };
    }
    batch!(
        "CTR batch",
        |key, data| CtrJob { key, iv: &iv[..4], data },
        |jobs: &mut Vec<_>| batch.ctr(jobs),
        |key, text| plain::Cipher::magma(key).ctr(&iv[..4], text)
    );
    batch!(
        "ECB batch",
        |key, data| EcbJob { key, data },
        |jobs: &mut Vec<_>| ecb_encrypt(&batch, jobs),
        |key, text| plain::Cipher::magma(key).ecb(text)
    );
    batch!(
        "CBC batch",
        |key, data| CbcJob { key, iv: &iv, data },
        |jobs: &mut Vec<_>| batch.cbc_encrypt(jobs),
        |key, text| plain::Cipher::magma(key).cbc(&iv, text)
    );
    batch!(
        "CFB batch",
        |key, data| CfbJob { key, iv: &iv, data },
        |jobs: &mut Vec<_>| batch.cfb_encrypt(jobs),
        |key, text| plain::Cipher::magma(key).cfb(&iv, text)
    );
    let texts = hidden();
    let mut macs = vec![[0u8; 8]; count];
    let jobs = texts.iter().zip(&keys).zip(&mut macs);
    let mut jobs: Vec<_> = jobs.map(|((data, (key, _)), mac)| OmacJob { key, data, mac }).collect();
    assert!(batch.omac(&mut jobs).expect("one thread").iter().all(Result::is_ok));
    for ((mac, message), (_, open)) in macs.iter().zip(&messages).zip(&keys) {
        came_out("OMAC batch", mac, &plain::Cipher::magma(open).omac(message));
    }
    let mut mac = [0; 8];
    let alone = OmacJob { key: &keys[0].0, data: &texts[0], mac: &mut mac };
    assert!(batch.omac(&mut [alone]).expect("one thread").iter().all(Result::is_ok));
    came_out("OMAC batch of one", &mac, &plain::Cipher::magma(&keys[0].1).omac(&messages[0]));
}

pub(super) fn mgm_batches(engine: Engine) {
    let mut numbers = Numbers(64);
    let batch = Batch::new(engine);
    let count = 140;
    let (mut keys, mut known) = (Vec::new(), Vec::new());
    for i in 0..count {
        let (hidden, open) = both(&mut numbers);
        let (nonce, aad) = (nonce(&mut numbers), numbers.bytes(1 + i % 30));
        let message = numbers.bytes(LENGTHS[i % LENGTHS.len()] + i % 8);
        let (want, tag) = plain::mgm(&open, nonce, &aad, &message);
        keys.push((Magma::with(&hidden, engine), nonce, secret(&aad)));
        known.push((message, want, tag));
    }
    let mut data: Vec<_> = known.iter().map(|(message, ..)| secret(message)).collect();
    let mut tags = vec![[0u8; 8]; count];
    let jobs = keys.iter().zip(&mut data).zip(&mut tags);
    let mut jobs: Vec<_> =
        jobs.map(|(((key, nonce, aad), data), tag)| SealJob { key, nonce, aad, data, tag }).collect();
    assert!(batch.mgm_seal(8, &mut jobs).expect("one thread").iter().all(Result::is_ok));
    for ((data, tag), (_, want, known)) in data.iter().zip(&tags).zip(&known) {
        came_out("MGM batch", data, want);
        came_out("MGM batch, tag", tag, known);
    }
    // Every third tag is wrong.
    let mut data: Vec<_> = known.iter().map(|(_, want, _)| secret(want)).collect();
    let tags: Vec<[u8; 8]> = known
        .iter()
        .enumerate()
        .map(|(i, (.., tag))| {
            let mut tag = *tag;
            tag[i % 8] ^= u8::from(i % 3 == 0);
            tag
        })
        .collect();
    let jobs = keys.iter().zip(&mut data).zip(&tags);
    let mut jobs: Vec<_> =
        jobs.map(|(((key, nonce, aad), data), tag)| OpenJob { key, nonce, aad, data, tag }).collect();
    let outcomes = batch.mgm_open(8, &mut jobs).expect("one thread");
    for (i, ((data, outcome), (message, ..))) in data.iter().zip(outcomes).zip(&known).enumerate() {
        if i % 3 == 0 {
            assert_eq!(outcome, Err(Error::Refused));
        } else {
            assert_eq!(outcome, Ok(()));
            came_out("MGM batch, opened", data, message);
        }
    }
}

pub(super) fn kexp15(engine: Engine) {
    let mut numbers = Numbers(65);
    let ((mac, open_mac), (enc, open_enc)) = (both(&mut numbers), both(&mut numbers));
    let key = done("KExp15", Kexp15::new(&mac, &enc, engine));
    let plain = done("KExp15", Kexp15::new(&open_mac, &open_enc, engine));
    for n in [1, 8, 31, 32, 64, 300] {
        let (iv, bytes) = (numbers.array::<4>(), numbers.bytes(n));
        let want = done("KExp15", plain.wrap(&iv, &bytes));
        let wrapped = done("KExp15", key.wrap(&iv, &secret(&bytes)));
        came_out("KExp15", &wrapped, &want);
        let unwrapped = done("KImp15", key.unwrap(&iv, &wrapped));
        came_out("KImp15", &unwrapped, &bytes);
        let mut wrong = wrapped.clone();
        wrong[n / 2] ^= 1;
        assert_eq!(key.unwrap(&iv, &wrong).err(), Some(Error::Refused));
    }
}

/// A container under a secret key, with the keys of its first chunks drawn.
pub(super) struct Container {
    encryptor: Encryptor,
    decryptor: Decryptor,
}

/// Derives a container's keys: the part that uses Streebog.
pub(super) fn container_keys(engine: Engine) -> Container {
    let mut numbers = Numbers(66);
    let (hidden, _) = both(&mut numbers);
    let options = Options { chunk: SMALLEST_CHUNK, ..Options::default() };
    let key = || Secret::Key(Zeroizing::new(hidden));
    let encryptor = Encryptor::new(&key(), options, numbers.array(), engine).expect("a container");
    let header = encryptor.header().to_vec();
    // Memcheck treats an entry of a public table as public, and so parts of the commitment and of the branch's key.
    // Magma's output from that key stays secret: `container_chunks` asserts it.
    assert!(secret_bytes(&header) > 0, "the commitment: memcheck has lost track of secrets");
    release(&header);
    release(encryptor.header());
    let header = Header::parse(&header).expect("a header");
    let decryptor = Decryptor::new(&key(), &header, engine).expect("the right key");
    let other = Secret::Key(Zeroizing::new(both(&mut numbers).0));
    assert!(Decryptor::new(&other, &header, engine).is_err(), "another key opens a container");
    let places = encryptor.places(1, false).expect("a place");
    let mut record = vec![0; SMALLEST_CHUNK];
    for place in places {
        let tag = encryptor.seal(place, &mut record).expect("a whole chunk");
        record.extend_from_slice(&tag);
    }
    release(&record);
    assert_eq!(decryptor.open(0, false, &mut record), Ok(SMALLEST_CHUNK));
    Container { encryptor, decryptor }
}

/// Seals and opens chunks whose branch of keys has been drawn.
pub(super) fn container_chunks(container: &Container) {
    let mut numbers = Numbers(67);
    let Container { encryptor, decryptor } = container;
    let places = encryptor.places(2, false).expect("places").chain(encryptor.places(1, true).expect("one"));
    for (place, (chunk, n)) in places.zip([(1, SMALLEST_CHUNK), (2, SMALLEST_CHUNK), (3, 1000)]) {
        let message = numbers.bytes(n);
        // Public once, so that the output's secrecy comes from the key alone.
        let mut record = if chunk == 1 { message.clone() } else { secret(&message) };
        let tag = encryptor.seal(place, &mut record).expect("a chunk");
        record.extend_from_slice(&tag);
        assert_eq!(secret_bytes(&record), n + 8, "a chunk: memcheck has lost track of secrets");
        release(&record);
        for at in [0, n, n + 7] {
            let mut wrong = record.clone();
            wrong[at] ^= 2;
            assert!(decryptor.open(chunk, chunk == 3, &mut wrong).is_err());
        }
        assert_eq!(decryptor.open(chunk, chunk == 3, &mut record), Ok(n));
        came_out("a chunk", &record[..n], &message);
    }
}
