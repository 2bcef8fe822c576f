//! After keys, modes, MGM, batches and wrapped keys are dropped, the key is gone: neither its bytes nor its words in
//! the order of the rounds remain on the stack, in thread-local memory, on the heap (freed or kept) or in the vector
//! registers.
//!
//! The test does not look for a backend's own layouts of a key (bit and byte planes), keystream or messages. `cargo
//! test -p lanework-magma --test wiping -- --nocapture` prints the operations of every backend.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::arch::asm;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use lanework_cpu::{Select, Settings, Threads};
use lanework_leakage::residue::{Found, Needles, Watching, probe};
use lanework_magma::backend::BACKENDS;
use lanework_magma::batch::{Batch, CtrJob, OmacJob, SealJob};
use lanework_magma::container::{Decryptor, Encryptor, Header, Options, Secret};
use lanework_magma::modes::hazmat::EcbEncryptor;
use lanework_magma::modes::{CbcEncryptor, Ctr, CtrAcpkm, Omac, OmacAcpkm, Stream};
use lanework_magma::tlstree::{Suite, TlsTree};
use lanework_magma::{Engine, Gost28147, Kexp15, Magma, Mgm, Sbox, kdf};
use zeroize::Zeroizing;

#[global_allocator]
static HEAP: Watching = Watching;

const KEY_BYTES: &str = "the key";
const RISING: &str = "words";
const FALLING: &str = "words, last first";

fn key() -> [u8; 32] {
    std::array::from_fn(|i| (i * 151 + 77) as u8)
}

/// The secrets by kind: the key's bytes, and its words as numbers in memory, as schedules hold them. (Under 28147-89's byte
/// order these are the key's own bytes.)
fn secrets() -> [(&'static str, Vec<u8>); 3] {
    forms(key())
}

fn forms(bytes: [u8; 32]) -> [(&'static str, Vec<u8>); 3] {
    let swapped = |word: &[u8]| word.iter().rev().copied().collect::<Vec<u8>>();
    let rising: Vec<u8> = bytes.chunks(4).flat_map(swapped).collect();
    let falling: Vec<u8> = bytes.chunks(4).rev().flat_map(swapped).collect();
    [(KEY_BYTES, bytes.to_vec()), (RISING, rising), (FALLING, falling)]
}

fn needles() -> Needles {
    needles_of(&secrets(), 8)
}

fn needles_of(secrets: &[(&'static str, Vec<u8>)], width: usize) -> Needles {
    Needles::new(secrets.iter().map(|(kind, bytes)| (*kind, &bytes[..], width)))
}

/// Operations, each with a key that is made for it and dropped after it. The caller owns the key's bytes.
type Operation = (&'static str, fn(&[u8; 32], Engine, &mut [u8]));

const OPERATIONS: [Operation; 15] = [
    ("Magma", |key, engine, _| drop(black_box(&Magma::with(key, engine)).clone())),
    ("28147-89", |key, engine, _| drop(black_box(&Gost28147::with(key, Sbox::CryptoProA, engine)).clone())),
    ("CTR", |key, engine, data| {
        Ctr::with_key(Magma::with(key, engine), &[1; 4]).unwrap().apply(data).unwrap();
    }),
    ("CBC", |key, engine, data| {
        CbcEncryptor::with_key(Magma::with(key, engine), &[1; 8]).unwrap().apply(data).unwrap();
    }),
    ("CTR-ACPKM", |key, engine, data| {
        CtrAcpkm::with_key(&Magma::with(key, engine), &[1; 4]).unwrap().apply(data).unwrap();
    }),
    ("OMAC", |key, engine, data| {
        let mut mac = Omac::with_key(Magma::with(key, engine), 8).unwrap();
        mac.update(data).unwrap();
        black_box(mac.finish());
    }),
    ("OMAC-ACPKM", |key, engine, data| {
        let mut mac = OmacAcpkm::with_key(&Magma::with(key, engine), 64, 80, 8).unwrap();
        mac.update(data).unwrap();
        black_box(mac.finish());
    }),
    ("MGM", |key, engine, data| {
        let mgm = Mgm::with(key, 8, engine).unwrap();
        let tag = mgm.seal(&[1; 8], b"more", data).unwrap();
        mgm.open(&[1; 8], b"more", data, tag.as_slice()).unwrap();
    }),
    ("KExp15", |key, engine, data| {
        let mut other = *key;
        other[0] ^= 1;
        let wrapping = Kexp15::new(&other, key, engine);
        lanework_cpu::memory::wipe(&mut other);
        black_box(wrapping.unwrap().wrap(&[1; 4], data).unwrap());
    }),
    ("batches", |key, engine, data| {
        let magma = Magma::with(key, engine);
        let mut jobs: Vec<_> =
            data.chunks_mut(64).map(|data| CtrJob { key: &magma, iv: &[1; 4], data }).collect();
        assert!(Batch::new(engine).ctr(&mut jobs).unwrap().iter().all(Result::is_ok));
        let mut macs = vec![[0; 8]; data.len() / 64];
        let mut jobs: Vec<_> =
            data.chunks(64).zip(&mut macs).map(|(data, mac)| OmacJob { key: &magma, data, mac }).collect();
        assert!(Batch::new(engine).omac(&mut jobs).unwrap().iter().all(Result::is_ok));
    }),
    ("batch of MGM", |key, engine, data| {
        let magma = Magma::with(key, engine);
        let mut tags = vec![[0; 8]; data.len() / 64];
        let mut jobs: Vec<_> = data
            .chunks_mut(64)
            .zip(&mut tags)
            .map(|(data, tag)| SealJob { key: &magma, nonce: &[1; 8], aad: b"more", data, tag })
            .collect();
        assert!(Batch::new(engine).mgm_seal(8, &mut jobs).unwrap().iter().all(Result::is_ok));
    }),
    ("KDF", |key, _, data| {
        black_box(kdf::kdf(key, b"label", b"seed"));
        kdf::kdf_tree(key, b"label", b"seed", 1, data).unwrap();
    }),
    ("PBKDF2", |key, _, _| kdf::pbkdf2(key, &[1; 32], 1000, &mut [0; 32]).unwrap()),
    ("TLSTREE", |key, engine, _| {
        let mut tree = TlsTree::new(key, Suite::CtrOmac);
        black_box(tree.cipher(0, engine).unwrap().clone());
    }),
    ("container", |key, engine, data| {
        let mut secret = Box::new(Secret::Key(Zeroizing::new([0; 32])));
        if let Secret::Key(inside) = &mut *secret {
            inside.copy_from_slice(key);
        }
        let encryptor = Encryptor::new(&secret, Options::default(), [1; 32], engine).unwrap();
        let place = encryptor.places(1, true).unwrap().next().unwrap();
        let tag = encryptor.seal(place, data).unwrap();
        let header = Header::parse(encryptor.header()).unwrap();
        let mut record = [&*data, &tag[..]].concat();
        Decryptor::new(&secret, &header, engine).unwrap().open(0, true, &mut record).unwrap();
    }),
];

/// The backends that run here.
fn engines() -> Vec<Engine> {
    let settings = Settings::from_env().unwrap();
    let mut engines = Vec::new();
    for row in BACKENDS {
        match Engine::choose(&settings.cpu(), Select::Named(row.name())) {
            Ok(engine) => engines.push(engine),
            Err(reason) => {
                println!("skipped: {reason}");
                assert!(!settings.requires(row.name()), "LANEWORK_REQUIRE names {reason}");
            }
        }
    }
    engines
}

#[test]
fn nothing_of_a_key_is_left_on_any_backend() {
    let (needles, key) = (needles(), key());
    let mut left = Vec::new();
    for engine in engines() {
        for (what, operation) in OPERATIONS {
            // One message in a few blocks, one in whole batches and more.
            for n in [64, 64 * 70] {
                let mut data = vec![7; n];
                let found = probe(&needles, || operation(&key, engine, &mut data));
                if !found.nothing() {
                    left.push(format!("{}, {what}, {n} bytes: {found:?}", engine.name()));
                }
                assert!(found.peak_stack <= 256 << 10, "{}, {what}: {found:?}", engine.name());
            }
        }
        println!("ran: {}: {} operations looked at", engine.name(), OPERATIONS.len());
    }
    assert!(left.is_empty(), "left behind:\n{}", left.join("\n"));
}

/// The section keys of CTR-ACPKM, one for each section of a message.
fn section_keys(sections: usize) -> Vec<[u8; 32]> {
    let d: [u8; 32] = std::array::from_fn(|i| 0x80 + i as u8);
    let next = |key: &[u8; 32]| {
        let mut next = d;
        EcbEncryptor::with_key(Magma::new(key)).apply(&mut next).unwrap();
        Some(next)
    };
    let mut keys = Vec::with_capacity(sections);
    keys.extend(std::iter::successors(Some(key()), next).take(sections));
    keys
}

/// Lets the threads of a pool go, whatever happens.
struct Release<'a>(&'a AtomicBool);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Keys that a mode derives are gone too, on one thread and where later keys are made ahead for threads.
#[test]
fn nothing_of_a_section_key_is_left_on_any_backend() {
    // With sections of 8 bytes, the keys for 64 KiB are made at a time, after the first section.
    const WINDOW: usize = (64 << 10) / 8;
    let keys = section_keys(1 + 3 * WINDOW);
    let ends = [1, 1 + WINDOW, 1 + 2 * WINDOW, 1 + 3 * WINDOW];
    let searched = ends.iter().flat_map(|end| end - 1..(end + 2).min(keys.len()));
    let ctr: Vec<_> = searched.flat_map(|i| forms(keys[i])).collect();
    let mut material = [0; 8 * 40];
    CtrAcpkm::with_section(&Magma::new(&key()), &[0xff; 4], 80).unwrap().apply(&mut material).unwrap();
    let omac: Vec<_> = material.chunks(40).flat_map(|k| forms(k[..32].try_into().unwrap())).collect();
    // Lists of needles leave the first eight bytes of each in freed memory as they grow.
    let (ctr, omac) = (needles_of(&ctr, 16), needles_of(&omac, 16));
    let pool = Threads::pool(2).unwrap();
    let (taken, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut left = Vec::new();
    std::thread::scope(|scope| {
        // Only the caller's stack is searched. A caller that finds a pool's threads taken does all tasks itself.
        scope.spawn(|| {
            let hold = |_, (): &mut ()| {
                taken.fetch_add(1, SeqCst);
                while !done.load(SeqCst) {
                    std::thread::yield_now();
                }
            };
            Threads::Pool(&pool).for_each(&mut [(), ()], hold).unwrap();
        });
        let _release = Release(&done);
        while taken.load(SeqCst) < 2 {
            std::thread::yield_now();
        }
        for engine in engines() {
            let key = Box::new(key());
            let mut data = vec![7; 8 * keys.len()];
            let mut look = |what: &str, needles: &Needles, operation: &mut (dyn FnMut(&mut [u8]) + Send)| {
                let found = probe(needles, || operation(&mut data));
                if !found.nothing() {
                    left.push(format!("{}, {what}: {found:?}", engine.name()));
                }
            };
            let begin = || CtrAcpkm::with_section(&Magma::with(&key, engine), &[1; 4], 8).unwrap();
            look("CTR-ACPKM", &ctr, &mut |data| begin().apply(data).unwrap());
            look("CTR-ACPKM in pieces", &ctr, &mut |data| {
                let mut state = begin();
                data.chunks_mut(1001).for_each(|data| state.apply(data).unwrap());
            });
            look("CTR-ACPKM for threads", &ctr, &mut |data| {
                begin().apply_with(Threads::Pool(&pool), data).unwrap();
            });
            look("OMAC-ACPKM", &omac, &mut |data| {
                let mut mac = OmacAcpkm::with_key(&Magma::with(&key, engine), 64, 80, 8).unwrap();
                mac.update(&data[..512]).unwrap();
                black_box(mac.finish());
            });
        }
    });
    assert!(left.is_empty(), "left behind:\n{}", left.join("\n"));
}

// The scanner itself: it must find a planted copy of each kind of secret in each place.

fn plant_each(plant: impl Fn(&[u8]) + Send + Sync, place: impl Fn(&Found) -> Option<&'static str>) {
    let (needles, key) = (needles(), key());
    // Planted after a whole operation, as a forgotten buffer would be. It also clears the registers through which the test copied secrets.
    let planted = |bytes: &[u8]| {
        let mut data = [7; 64];
        probe(&needles, || {
            OPERATIONS[2].1(&key, Engine::best(), &mut data);
            plant(bytes);
        })
    };
    for (kind, bytes) in secrets() {
        let found = planted(&bytes[5..21]);
        assert_eq!(place(&found), Some(kind), "{found:?}");
    }
    let found = planted(&[0x11; 16]);
    assert!(found.nothing(), "other bytes are not found: {found:?}");
}

#[inline(never)]
fn forgotten_on_the_stack(secret: &[u8]) {
    let mut frame = [0u8; 9000];
    frame[1000..1000 + secret.len()].copy_from_slice(secret);
    black_box(&mut frame);
}

#[test]
fn a_copy_on_the_stack_is_found() {
    plant_each(forgotten_on_the_stack, |f| f.stack);
}

#[test]
fn a_copy_in_freed_heap_is_found() {
    plant_each(|secret| drop(black_box(secret.to_vec())), |f| f.freed_heap);
}

#[test]
fn a_copy_in_kept_heap_is_found() {
    plant_each(|secret| std::mem::forget(black_box(secret.to_vec())), |f| f.live_heap);
}

#[test]
fn a_copy_in_a_vector_register_is_found() {
    plant_each(
        |secret| {
            let mut block = [0u8; 16];
            block[..secret.len()].copy_from_slice(secret);
            // SAFETY: loads 16 bytes into a register that is declared as written.
            unsafe { asm!("movdqu xmm15, [{}]", in(reg) &block, out("xmm15") _) };
        },
        |f| f.registers,
    );
}
