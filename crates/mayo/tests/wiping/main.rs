//! After an operation on secrets nothing of the seed, of O or of the vinegar is left on the stack, in thread-local memory,
//! on the heap (freed or kept) or in the vector and mask registers; and no operation needs more than 256 KiB of stack.
//!
//! `cargo test -p lanework-mayo --test wiping -- --nocapture` prints stack and heap of every operation.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

mod needles;

use std::alloc::{GlobalAlloc, Layout, System};
use std::arch::asm;
use std::cell::RefCell;
use std::hint::black_box;

use lanework_cpu::memory::wipe_vector_registers;
use lanework_cpu::{Settings, Threads};
use lanework_leakage::residue::{Found, Needles, Watching, probe};
use lanework_mayo::batch::{self, Signers};
use lanework_mayo::hazmat::{sign_deterministic, sign_with_randomizer};
use lanework_mayo::{
    Engine, Params, PublicKey, Round, SecretKey, Set, SignOptions, Signature, SigningKey, VerifyingKey,
};

use needles::needles;

#[global_allocator]
static HEAP: Watching = Watching;

const MESSAGE: &[u8] = b"what was signed";

/// A generator whose every byte is the same, so that a batch draws the randomizers that the needles are made for.
struct Constant(u8);

impl rand_core::TryRng for Constant {
    type Error = std::convert::Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        rand_core::utils::next_word_via_fill(self)
    }
    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        rand_core::utils::next_word_via_fill(self)
    }
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Self::Error> {
        out.fill(self.0);
        Ok(())
    }
}

impl rand_core::TryCryptoRng for Constant {}

/// A key, its needles, and the operations' inputs.
struct Subject {
    engine: Engine,
    secret: SecretKey,
    public: PublicKey,
    randomizer: Vec<u8>,
    signature: Signature,
    needles: Needles,
}

impl Subject {
    fn new(engine: Engine, params: &Params, deterministic: bool) -> Subject {
        let seed: Vec<u8> = (0..params.secret_key_bytes()).map(|i| (i * 151 + 77) as u8).collect();
        let secret = SecretKey::from_seed(params, &seed).unwrap();
        let randomizer = vec![if deterministic { 0 } else { 0x42 }; params.salt_bytes()];
        let options = SignOptions::default();
        let signature = sign_with_randomizer(&(engine, &secret), MESSAGE, &randomizer, options).unwrap();
        let salt = &signature.as_bytes()[params.signature_bytes() - params.salt_bytes()..];
        let needles = needles(engine, params, &seed, MESSAGE, salt);
        Subject { engine, public: secret.public_key(engine), secret, randomizer, signature, needles }
    }

    fn keygen(&self) {
        black_box(self.secret.public_key(self.engine));
    }

    fn sign(&self, options: SignOptions) {
        let signer = (self.engine, &self.secret);
        let signed = sign_with_randomizer(&signer, MESSAGE, &self.randomizer, options).unwrap();
        assert!(signed == self.signature);
        black_box(signed);
    }
}

fn check(subject: &Subject, what: &str, peaks: &mut Vec<String>, operation: impl FnMut() + Send) {
    let found = probe(&subject.needles, operation);
    let (engine, params) = (subject.engine, subject.secret.params());
    assert!(found.nothing(), "{what}, {}, {}: {found:?}", params.name(), engine.name());
    assert!(found.peak_stack <= 256 << 10, "{what}, {}, {}: {found:?}", params.name(), engine.name());
    // The deepest reach of an operation on secrets must be its own wiping. (The portable AES reaches deeper, on public
    // data; the frames above the wiped area take less than 4 KiB.)
    let public_only = what.starts_with("verify") || ["expand-public", "clone-drop"].contains(&what);
    if !public_only && engine.name() != "portable" {
        assert!(
            (12 << 10..16 << 10).contains(&found.peak_stack),
            "{what} is deeper than what it wipes: {found:?}"
        );
    }
    peaks.push(format!("{what} {}", found.peak_stack));
}

/// Every operation that touches a secret, and verification for its stack.
fn check_all(engine: Engine, params: &Params) {
    let mut peaks = Vec::new();
    let hedged = Subject::new(engine, params, false);
    let s = &hedged;
    check(s, "keygen", &mut peaks, || s.keygen());
    check(s, "sign", &mut peaks, || s.sign(SignOptions { verify: false }));
    check(s, "sign+verify", &mut peaks, || s.sign(SignOptions { verify: true }));
    check(s, "expand", &mut peaks, || drop(black_box(SigningKey::new(engine, &s.secret))));
    let expanded = SigningKey::new(engine, &s.secret);
    check(s, "sign-expanded", &mut peaks, || {
        let options = SignOptions { verify: false };
        let signed = sign_with_randomizer(&expanded, MESSAGE, &s.randomizer, options).unwrap();
        assert!(signed == s.signature);
    });
    // As many as a thread takes at a time, and one more.
    let count = engine.expand().lanes() + 1;
    let keys = vec![s.secret.clone(); count];
    check(s, "batch-keygen", &mut peaks, || {
        assert!(batch::keygen(engine, &keys, Threads::One).unwrap().iter().all(|made| *made == s.public));
    });
    let messages = vec![MESSAGE; count];
    let batch = |signers, options| {
        let rng = &mut Constant(s.randomizer[0]);
        let signed = batch::sign(signers, &messages, options, rng, Threads::One).unwrap();
        assert!(signed.iter().all(|made| made.as_ref() == Ok(&s.signature)));
    };
    check(s, "batch-sign+verify", &mut peaks, || {
        batch(Signers::OneCompact(engine, &s.secret), SignOptions { verify: true });
    });
    check(s, "batch-sign-expanded", &mut peaks, || {
        batch(Signers::One(&expanded), SignOptions { verify: false });
    });
    check(s, "two-signatures", &mut peaks, || {
        s.sign(SignOptions { verify: false });
        black_box(s.secret.sign(engine, MESSAGE).unwrap());
    });
    check(s, "clone-drop", &mut peaks, || drop(black_box(s.secret.clone())));
    let text = s.secret.to_pem(engine).unwrap();
    check(s, "to-pem", &mut peaks, || drop(black_box(s.secret.to_pem(engine).unwrap())));
    check(s, "from-pem", &mut peaks, || drop(black_box(SecretKey::from_pem(engine, &text).unwrap())));
    check(s, "verify", &mut peaks, || s.public.verify(engine, MESSAGE, &s.signature).unwrap());
    let verifying = VerifyingKey::new(engine, &s.public);
    check(s, "expand-public", &mut peaks, || drop(black_box(VerifyingKey::new(engine, &s.public))));
    check(s, "verify-expanded", &mut peaks, || verifying.verify(MESSAGE, &s.signature).unwrap());
    let deterministic = Subject::new(engine, params, true);
    let d = &deterministic;
    check(d, "sign-deterministic", &mut peaks, || {
        let signed = sign_deterministic(&(engine, &d.secret), MESSAGE).unwrap();
        assert!(signed == d.signature);
    });
    println!(
        "{:<9} {:<15} heap {:>8} B a thread, expanded keys {} B and {} B; stack in B: {}",
        engine.name(),
        params.name(),
        engine.workspace_bytes(params),
        expanded.expanded_bytes(),
        verifying.expanded_bytes(),
        peaks.join(", ")
    );
}

#[test]
fn nothing_is_left_on_any_backend() {
    let settings = Settings::from_env().unwrap();
    let mut engines = Vec::new();
    for engine in Engine::all(&settings.cpu()) {
        match engine {
            Ok(engine) => engines.push(engine),
            Err(reason) => {
                println!("skipped: {reason}");
                assert!(!settings.requires(&reason.what), "LANEWORK_REQUIRE names {reason}");
            }
        }
    }
    // A probe watches its own thread only.
    std::thread::scope(|scope| {
        for params in Params::all() {
            let engines = &engines;
            scope.spawn(move || engines.iter().for_each(|engine| check_all(*engine, params)));
        }
    });
}

// The scanner itself: a copy planted in each place, of each kind of secret, must be found there.

fn subject() -> Subject {
    Subject::new(Engine::best(), Params::of(Round::Three, Set::Mayo1), false)
}

/// The secrets by kind, as the scanner names them.
fn secrets(s: &Subject) -> Vec<(&'static str, Vec<u8>)> {
    let p = s.secret.params();
    let seed = s.secret.expose_seed();
    let shake = |parts: &[&[u8]], length| {
        let mut out = vec![0; length];
        s.engine.expand().shake256(parts, &mut out);
        out
    };
    let elements = |packed: &[u8]| -> Vec<u8> { packed.iter().flat_map(|b| [b & 15, b >> 4]).collect() };
    let o = shake(&[seed], 16 + p.o_bytes()).split_off(16);
    let digest = shake(&[MESSAGE], p.digest_bytes());
    let salt = &s.signature.as_bytes()[p.signature_bytes() - p.salt_bytes()..];
    let vinegar = shake(&[&digest, salt, seed, &[0]], p.v_bytes());
    vec![
        ("the seed", seed[5..13].to_vec()),
        ("O as elements", elements(&o)[40..56].to_vec()),
        ("O packed", o[100..116].to_vec()),
        ("vinegar as elements", elements(&vinegar)[3..19].to_vec()),
        ("vinegar packed", vinegar[9..25].to_vec()),
    ]
}

fn plant_each(plant: impl Fn(&[u8]) + Send + Sync, place: impl Fn(&Found) -> Option<&'static str>) {
    let s = subject();
    for (name, secret) in secrets(&s) {
        // Planted after a whole operation, as a forgotten buffer would be.
        let found = probe(&s.needles, || {
            s.sign(SignOptions::default());
            plant(&secret);
        });
        assert_eq!(place(&found), Some(name), "{found:?}");
    }
    // The same copy wiped, or another key's secret, is not found.
    let found = probe(&s.needles, || {
        s.sign(SignOptions::default());
        plant(&[0x11; 16]);
    });
    assert!(found.nothing(), "{found:?}");
}

/// A frame with `depth` bytes between the copy and the caller.
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

thread_local! {
    static KEPT: RefCell<[u8; 64]> = const { RefCell::new([0; 64]) };
}

#[test]
fn a_copy_in_thread_local_memory_is_found() {
    plant_each(
        |secret| KEPT.with_borrow_mut(|kept| kept[7..7 + secret.len()].copy_from_slice(secret)),
        |f| f.stack,
    );
}

#[test]
fn a_copy_in_freed_heap_is_found() {
    plant_each(|secret| drop(black_box(secret.to_vec())), |f| f.freed_heap);
}

/// Tests run side by side and free their own copies of secrets, which the system's allocator may give to the watched
/// thread.
#[test]
fn a_copy_that_came_with_fresh_memory_is_no_finding() {
    let s = subject();
    let (_, secret) = secrets(&s).swap_remove(0);
    let layout = Layout::from_size_align(secret.len() + 64, 1).unwrap();
    let mut came_back = false;
    let found = probe(&s.needles, || {
        // SAFETY: written within the block, which is freed by the allocator that it came from.
        let unseen = unsafe {
            let block = System.alloc(layout);
            block.add(32).copy_from_nonoverlapping(secret.as_ptr(), secret.len());
            System.dealloc(block, layout);
            block as usize
        };
        let fresh = black_box(Vec::<u8>::with_capacity(layout.size()));
        came_back = fresh.as_ptr() as usize == unseen;
    });
    assert!(came_back, "the allocator gave another block, so that nothing was tried");
    assert!(found.nothing(), "{found:?}");
}

#[test]
fn a_copy_in_kept_heap_is_found() {
    plant_each(|secret| std::mem::forget(black_box(secret.to_vec())), |f| f.live_heap);
}

#[test]
fn a_copy_in_the_first_or_last_vector_register_is_found() {
    plant_each(
        |secret| {
            let mut block = [0u8; 16];
            block[..secret.len()].copy_from_slice(secret);
            let first = secret[0] & 1 == 0;
            // SAFETY: loads 16 bytes into a register that is declared as written.
            unsafe {
                match (first, std::is_x86_feature_detected!("avx512f")) {
                    (true, _) => asm!("movdqu xmm0, [{}]", in(reg) &block, out("xmm0") _),
                    (_, true) => asm!("vmovdqu64 xmm31, [{}]", in(reg) &block, out("xmm31") _),
                    _ => asm!("movdqu xmm15, [{}]", in(reg) &block, out("xmm15") _),
                }
            }
        },
        |f| f.registers,
    );
}

/// A mask has 8 bytes; longer secrets fill the next one, too.
#[test]
fn a_copy_in_mask_registers_is_found() {
    if !std::is_x86_feature_detected!("avx512bw") {
        let settings = Settings::from_env().unwrap();
        assert!(!settings.requires("avx512"), "LANEWORK_REQUIRE names avx512, whose masks this CPU lacks");
        return println!("skipped: this CPU has no masks of 64 bits");
    }
    plant_each(
        |secret| {
            let mut block = [0u8; 16];
            block[..secret.len()].copy_from_slice(secret);
            // Copying uses vector registers, where it would be found as well.
            wipe_vector_registers();
            let first = secret[0] & 1 == 0;
            // SAFETY: AVX-512BW is present; all mask registers are declared.
            unsafe {
                if first {
                    asm!("kmovq k0, [{0}]", "kmovq k1, [{0} + 8]", in(reg) &block, clobber_abi("sysv64"));
                } else {
                    asm!("kmovq k6, [{0}]", "kmovq k7, [{0} + 8]", in(reg) &block, clobber_abi("sysv64"));
                }
            }
        },
        |f| f.registers,
    );
}

#[test]
fn a_deep_stack_is_measured() {
    #[inline(never)]
    fn deep() {
        black_box(&mut [1u8; 300_000]);
    }
    let found = probe(&subject().needles, deep);
    assert!((300_000..304_096).contains(&found.peak_stack), "{found:?}");
}
