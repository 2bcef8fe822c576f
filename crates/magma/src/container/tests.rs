//! The container against its description, and against tampering.
#![forbid(unsafe_code)]

use hmac::{Hmac, KeyInit, Mac};
use lanework_cpu::Cpu;
use streebog::{Digest, Streebog256};
use zeroize::Zeroizing;

use super::*;
use crate::internals::spec;
use crate::limits::Limits;
use crate::{Engine, Mgm, Sbox};

const KEY: [u8; 32] = *b"\x01\x23\x45\x67\x89\xab\xcd\xef\xfe\xdc\xba\x98\x76\x54\x32\x10\0\x11\x22\x33DUfw\x88\x99\xaa\xbb\xcc\xdd\xee\xff";
const SALT: [u8; 32] = [0xa7; 32];
const SMALL: Options = Options { chunk: SMALLEST_CHUNK, iterations: FEWEST_ITERATIONS };
const RECORD: usize = SMALLEST_CHUNK + TAG;

fn key() -> Secret {
    Secret::Key(Zeroizing::new(KEY))
}

fn passphrase(text: &str) -> Secret {
    Secret::Passphrase(Zeroizing::new(text.as_bytes().to_vec()))
}

fn message(length: usize) -> Vec<u8> {
    (0..length).map(|i| ((i * i) >> 3) as u8 ^ (i >> 11) as u8).collect()
}

fn sealed(secret: &Secret, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encrypt(secret, SMALL, SALT, Engine::best(), data, &mut out).unwrap();
    out
}

/// The output, and the result.
fn opened(secret: &Secret, container: &[u8]) -> (Vec<u8>, Result<(), Error>) {
    let mut out = Vec::new();
    let ended = decrypt(secret, Engine::best(), container, &mut out).map_err(|e| match e {
        StreamError::Container(e) => e,
        other => panic!("memory failed: {other}"),
    });
    (out, ended)
}

/// FORMAT.md line by line, without this module: HMAC by its own crate, the chunk keys by the specification's cipher.
fn described(key: &[u8; 32], data: &[u8]) -> Vec<u8> {
    let hmac = |key: &[u8], parts: &[&[u8]]| -> [u8; 32] {
        let mut mac = <Hmac<Streebog256> as KeyInit>::new_from_slice(key).unwrap();
        parts.iter().for_each(|p| mac.update(p));
        mac.finalize().into_bytes().into()
    };
    let mut out = b"\x89LWMGM\r\n\x01\x01\x00\x0c\x00\x00\x00\x00".to_vec();
    out.extend(SALT);
    let label = b"lanework magma container: file";
    let file = hmac(key, &[&[1], label, &[0], &out, &[2, 0]]);
    let commitment = hmac(key, &[&[2], label, &[0], &out, &[2, 0]]);
    out.extend(commitment);
    let header = out.clone();
    let count = data.len().div_ceil(4096).max(1);
    for j in 0..count {
        let number = (j as u64 / 256).to_be_bytes();
        let branch = hmac(&file, &[&[1], b"lanework magma container: branch", &[0], &number, &[1, 0]]);
        let mut chunk_key = [0; 32];
        for (t, part) in chunk_key.chunks_mut(8).enumerate() {
            let block = 4 * (j as u64 % 256) + t as u64;
            let words = spec::magma_words(&branch);
            part.copy_from_slice(&spec::encrypt(Sbox::Z.rows(), &words, block).to_be_bytes());
        }
        let nonce = j as u64 | if j + 1 == count { 1 << 62 } else { 0 };
        let mut chunk = data[j * 4096..data.len().min(j * 4096 + 4096)].to_vec();
        let tag = Mgm::new(&chunk_key).seal(&nonce.to_be_bytes(), &header, &mut chunk).unwrap();
        out.extend(chunk);
        out.extend(tag.as_slice());
    }
    out
}

#[test]
fn the_format_is_as_described() {
    // Past the first branch, at the chunks' edges, and empty.
    for length in [0, 1, 4095, 4096, 4097, 8192, 300 * 4096 + 5] {
        assert!(sealed(&key(), &message(length)) == described(&KEY, &message(length)), "{length}");
    }
}

/// The format must not change between versions of this crate: the digest of a container.
#[test]
fn the_format_stays() {
    let digest: String = Streebog256::digest(sealed(&key(), &message(10_000)))[..8]
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    assert_eq!(digest, "da78fa883305382a");
    let made = sealed(&passphrase("correct horse"), &message(10));
    let digest: String = Streebog256::digest(made)[..8].iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(digest, "785b997798adb792");
}

#[test]
fn what_was_sealed_opens_on_every_backend() {
    for engine in Engine::available(&Cpu::detect()) {
        for length in [0, 1, 7, 4095, 4096, 4097, 12_288, 30_000] {
            let (mut container, mut back) = (Vec::new(), Vec::new());
            encrypt(&key(), SMALL, SALT, engine, message(length).as_slice(), &mut container).unwrap();
            assert_eq!(container.len(), HEADER + length + TAG * length.div_ceil(4096).max(1));
            assert!(container == sealed(&key(), &message(length)), "{} {length}", engine.name());
            decrypt(&key(), engine, container.as_slice(), &mut back).unwrap();
            assert!(back == message(length), "{} {length}", engine.name());
        }
    }
}

#[test]
fn every_chunk_size_and_both_secrets() {
    for exponent in 12..=16 {
        let options = Options { chunk: 1 << exponent, iterations: FEWEST_ITERATIONS };
        for secret in [key(), passphrase("пароль")] {
            let mut container = Vec::new();
            encrypt(&secret, options, SALT, Engine::best(), message(150_000).as_slice(), &mut container)
                .unwrap();
            let (back, ended) = opened(&secret, &container);
            assert_eq!(ended, Ok(()));
            assert!(back == message(150_000));
        }
    }
}

#[test]
fn a_header_that_is_none_is_told_from_one_that_is_new() {
    let whole = sealed(&key(), b"text");
    let with = |at: usize, byte: u8| {
        let mut other = whole.clone();
        other[at] = byte;
        opened(&key(), &other).1
    };
    for at in 0..8 {
        assert_eq!(with(at, b'x'), Err(Error::Magic));
    }
    assert_eq!(with(8, 2), Err(Error::Version(2)));
    assert_eq!(with(9, 0), Err(Error::Suite(0)));
    assert_eq!(with(10, 2), Err(Error::Source(2)));
    assert_eq!(with(11, 11), Err(Error::ChunkSize(2048)));
    assert_eq!(with(11, 17), Err(Error::ChunkSize(131_072)));
    assert_eq!(with(11, 255), Err(Error::ChunkSize(u64::MAX)));
    assert_eq!(with(11, 13), Err(Error::WrongKey), "a chunk size that is one, but not this container's");
    assert_eq!(with(15, 1), Err(Error::Iterations(1)), "a key has no iterations");
    for at in 16..HEADER {
        assert_eq!(with(at, whole[at] ^ 1), Err(Error::WrongKey), "salt and commitment");
    }
    for length in 0..HEADER {
        assert_eq!(opened(&key(), &whole[..length]).1, Err(Error::HeaderEnds(length)));
    }
    assert_eq!(opened(&key(), b"%PDF").1, Err(Error::Magic));
}

#[test]
fn iterations_are_looked_at_before_they_are_done() {
    let mut made = sealed(&passphrase("word"), b"text");
    for bad in [0, 999, 10_000_001, u32::MAX] {
        made[12..16].copy_from_slice(&u32::to_be_bytes(bad));
        assert_eq!(opened(&passphrase("word"), &made).1, Err(Error::Iterations(bad)));
    }
    made[12..16].copy_from_slice(&1001u32.to_be_bytes());
    assert_eq!(opened(&passphrase("word"), &made).1, Err(Error::WrongKey));
    let options = Options { iterations: 1, ..SMALL };
    let new = |secret: &Secret, options| Encryptor::new(secret, options, SALT, Engine::best()).err();
    assert_eq!(new(&passphrase("word"), options), Some(Error::Iterations(1)));
    assert_eq!(new(&passphrase(""), SMALL), Some(Error::EmptyPassphrase));
    for chunk in [0, 1, 4095, 4097, 2048, 131_072, usize::MAX] {
        assert_eq!(new(&key(), Options { chunk, ..SMALL }), Some(Error::ChunkSize(chunk as u64)));
    }
}

#[test]
fn another_secret_is_refused_before_any_chunk() {
    let (by_key, by_word) = (sealed(&key(), &message(9000)), sealed(&passphrase("word"), &message(9000)));
    let mut other = KEY;
    other[31] ^= 0x80;
    assert_eq!(opened(&Secret::Key(Zeroizing::new(other)), &by_key), (vec![], Err(Error::WrongKey)));
    assert_eq!(opened(&passphrase("Word"), &by_word), (vec![], Err(Error::WrongKey)));
    assert_eq!(opened(&passphrase("word"), &by_key).1, Err(Error::NeedsKey));
    assert_eq!(opened(&key(), &by_word).1, Err(Error::NeedsPassphrase));
    assert_eq!(opened(&passphrase(""), &by_word).1, Err(Error::EmptyPassphrase));
}

#[test]
fn a_changed_bit_stops_before_its_chunk() {
    let data = message(2 * 4096 + 100);
    let whole = sealed(&key(), &data);
    let places = (0..HEADER).step_by(7).chain((HEADER..whole.len()).step_by(61)).chain([whole.len() - 1]);
    for at in places {
        let mut bad = whole.clone();
        bad[at] ^= 1 << (at % 8);
        let (out, ended) = opened(&key(), &bad);
        let Some(at) = at.checked_sub(HEADER) else {
            assert!(out.is_empty() && ended.is_err());
            continue;
        };
        let chunk = at as u64 / RECORD as u64;
        let error = if chunk == 2 { Error::Torn { chunk } } else { Error::Damaged { chunk } };
        assert_eq!(ended, Err(error), "byte {at}");
        assert!(out == data[..chunk as usize * 4096], "only what was verified");
    }
}

#[test]
fn every_kind_of_missing_end_is_noticed() {
    let data = message(3 * 4096);
    let whole = sealed(&key(), &data);
    let chunk = |length: usize| (length - HEADER) as u64 / RECORD as u64;
    for length in (HEADER..whole.len()).step_by(97).chain(HEADER..HEADER + 10).chain([HEADER + RECORD - 1]) {
        let at = chunk(length);
        let (out, ended) = opened(&key(), &whole[..length]);
        let clean = (length - HEADER).is_multiple_of(RECORD);
        assert_eq!(
            ended,
            Err(if clean { Error::Truncated { chunk: at } } else { Error::Torn { chunk: at } })
        );
        // The last whole chunk verifies only as one with a successor, so it is not accepted as the end.
        let given = if clean { at.saturating_sub(1) } else { at };
        assert!(out == data[..given as usize * 4096], "{length}");
    }
    for length in [HEADER + RECORD, HEADER + 2 * RECORD] {
        let missing = chunk(length);
        assert_eq!(opened(&key(), &whole[..length]).1, Err(Error::Truncated { chunk: missing }));
    }
}

#[test]
fn chunks_cannot_be_moved_doubled_left_out_or_added() {
    let data = message(4 * 4096);
    let whole = sealed(&key(), &data);
    let (header, records) = whole.split_at(HEADER);
    let records: Vec<&[u8]> = records.chunks(RECORD).collect();
    let with = |order: &[usize]| {
        let mut made = header.to_vec();
        order.iter().for_each(|&i| made.extend(records[i]));
        opened(&key(), &made)
    };
    assert_eq!(with(&[0, 1, 2, 3]), (data.clone(), Ok(())));
    let refused = |order: &[usize], error| {
        let (out, ended) = with(order);
        assert_eq!(ended, Err(error), "{order:?}");
        assert!(out.len() < data.len() && data.starts_with(&out));
    };
    refused(&[1, 0, 2, 3], Error::Damaged { chunk: 0 });
    refused(&[0, 2, 1, 3], Error::Damaged { chunk: 1 });
    refused(&[0, 1, 1, 2, 3], Error::Damaged { chunk: 2 });
    refused(&[0, 1, 3], Error::Damaged { chunk: 2 });
    refused(&[0, 1, 2], Error::Truncated { chunk: 3 });
    refused(&[0, 1, 3, 2], Error::Damaged { chunk: 2 });
    refused(&[3], Error::Damaged { chunk: 0 });
    let (out, ended) = with(&[0, 1, 2, 3, 3]);
    assert_eq!(ended, Err(Error::Trailing { chunk: 3 }));
    assert!(out == data[..3 * 4096]);
    // Bytes after a short last chunk look like more of it.
    let mut longer = sealed(&key(), b"text");
    longer.push(0);
    assert_eq!(opened(&key(), &longer), (vec![], Err(Error::Torn { chunk: 0 })));
}

#[test]
fn a_chunk_of_another_container_is_refused() {
    let data = message(2 * 4096 + 1);
    let first = sealed(&key(), &data);
    let mut second = Vec::new();
    encrypt(&key(), SMALL, [0xa8; 32], Engine::best(), data.as_slice(), &mut second).unwrap();
    second[HEADER..HEADER + RECORD].copy_from_slice(&first[HEADER..HEADER + RECORD]);
    assert_eq!(opened(&key(), &second), (vec![], Err(Error::Damaged { chunk: 0 })));
}

#[test]
fn places_are_given_once_and_take_what_belongs_there() {
    let encryptor = Encryptor::new(&key(), SMALL, SALT, Engine::best()).unwrap();
    let limit = MOST_CHUNKS * 4096;
    assert!(
        matches!(encryptor.places(MOST_CHUNKS + 1, false), Err(Error::TooLong { limit: l }) if l == limit)
    );
    let mut first: Vec<Place> = encryptor.places(3, false).unwrap().collect();
    let mut last: Vec<Place> = encryptor.places(2, true).unwrap().collect();
    assert!(encryptor.places(1, true).is_err(), "the end has been given out");
    let wrong = |place, length| encryptor.seal(place, &mut vec![1; length]);
    assert_eq!(wrong(first.remove(0), 4095), Err(Error::ChunkLength { chunk: 0, got: 4095 }));
    assert_eq!(wrong(first.remove(0), 4097), Err(Error::ChunkLength { chunk: 1, got: 4097 }));
    assert_eq!(wrong(last.remove(1), 0), Err(Error::ChunkLength { chunk: 4, got: 0 }));
    assert_eq!(wrong(last.remove(0), 1), Err(Error::ChunkLength { chunk: 3, got: 1 }));
    assert!(wrong(first.remove(0), 4096).is_ok());
}

#[test]
fn a_place_serves_its_own_encryptor_only_and_an_end_needs_one() {
    let [one, other] = [0, 1].map(|_| Encryptor::new(&key(), SMALL, SALT, Engine::best()).unwrap());
    let place = one.places(1, true).unwrap().next().unwrap();
    let mut data = message(100);
    assert_eq!(other.seal(place, &mut data), Err(Error::NoPlace));
    assert_eq!(data, message(100), "nothing was encrypted");
    assert_eq!(other.places(0, true).err(), Some(Error::NoPlace));
    assert!(other.places(1, true).is_ok(), "the end is still to be had");
}

#[test]
fn a_decryptor_knows_the_limit_and_wipes_what_it_refuses() {
    let whole = sealed(&key(), &message(5000));
    let header = Header::parse(&whole).unwrap();
    let decryptor = Decryptor::new(&key(), &header, Engine::best()).unwrap();
    let mut record = whole[HEADER..HEADER + RECORD].to_vec();
    assert_eq!(
        decryptor.open(MOST_CHUNKS, false, &mut record),
        Err(Error::TooLong { limit: MOST_CHUNKS * 4096 })
    );
    assert_eq!(decryptor.open(1, false, &mut record), Err(Error::Damaged { chunk: 1 }));
    assert!(record.iter().all(|&b| b == 0));
}

/// A decryptor limits repeated guesses at tags.
#[test]
fn refused_chunks_are_counted() {
    let text = message(2 * SMALLEST_CHUNK);
    let made = sealed(&key(), &text);
    let header = Header::parse(&made).unwrap();
    let decryptor = Decryptor::new(&key(), &header, Engine::best()).unwrap();
    let record = |chunk: usize| made[HEADER + chunk * RECORD..][..RECORD].to_vec();
    // A first chunk passed as the last is verified twice; the second verification succeeds, the first one counts.
    assert_eq!(decryptor.open(0, true, &mut record(0)), Err(Error::Truncated { chunk: 1 }));
    let each = (HEADER + SMALLEST_CHUNK) as u64;
    assert_eq!(decryptor.refused.bytes(), each);
    // A damaged one counts twice. Data that is not a chunk is not verified and does not count.
    let mut damaged = record(0);
    damaged[5] ^= 1;
    assert_eq!(decryptor.open(0, false, &mut damaged), Err(Error::Damaged { chunk: 0 }));
    assert_eq!(decryptor.open(0, true, &mut [0; TAG - 1]), Err(Error::Torn { chunk: 0 }));
    assert_eq!(decryptor.refused.bytes(), 3 * each);
    assert_eq!(decryptor.open(0, false, &mut record(0)), Ok(SMALLEST_CHUNK));
    decryptor.refused.count(Limits::REFUSED - 3 * each);
    let (mut last, closed) = (record(1), Err(Error::TooManyRefused { limit: Limits::REFUSED }));
    assert_eq!((decryptor.open(1, true, &mut last), last), (closed, record(1)), "left as it was");
}
