//! Whether a branch or an address in a kernel depends on a secret, by memcheck on the emulated device.
//!
//! Seeds and randomizers are undefined; the kernels mark their releases. This checks the host compiler's output for the
//! kernels' sources, and finds reads of unwritten memory. The lint over machine code checks the device compiler's
//! output.
#![forbid(unsafe_code)]

use std::sync::{Arc, OnceLock};

use lanework_cuda::{Device, Emulation};
use lanework_leakage::memcheck::{make_secret, release, running, secret_bytes};
use lanework_leakage::plants::{ADDRESS, BRANCH};
use lanework_leakage::valgrind::{Section, judged, observe};
use lanework_mayo::hazmat::sign_with_randomizer;
use lanework_mayo::{Engine, Params, Round, SecretKey, Set, SignOptions};
use zeroize::Zeroizing;

use crate::launch::kernels::Kernels;
use crate::launch::{IMAGE, PLANTED};
use crate::{Expand, Gpu, GpuSigners, Multiply, Options, Release, Ring};

/// The CPU's part is checked elsewhere: here it sees no secret.
const OPTIONS: Options = Options {
    chunk: 8,
    streams: 1,
    ring: Ring::Cache,
    expand: Expand::Alone,
    multiply: Multiply::Masks,
    break_even: 0,
    cpu_share: 0.0,
    cpu_threads: 1,
    spot_check: 0,
};

const MESSAGE: &[u8] = b"a message";

/// Key generation, signing and signing with an expanded key, verified, from secrets; headlines have `name`.
fn operate(gpu: &Gpu, params: &'static Params, name: &str) {
    let seed: Vec<u8> = (0..params.salt_bytes()).map(|i| (i * 151 + 77) as u8).collect();
    let key = || SecretKey::from_seed(params, &seed).unwrap();
    let (open, secret) = (key(), [key()]);
    make_secret(secret[0].expose_seed());
    let randomizer = Zeroizing::new(vec![0x42; params.salt_bytes()]);
    let engine = Engine::portable();
    let expected =
        sign_with_randomizer(&(engine, &open), MESSAGE, &randomizer, SignOptions::default()).unwrap();
    let hidden = [randomizer];
    make_secret(&hidden[0]);
    let sign = |signers: GpuSigners<'_>| {
        let (signed, tally) =
            gpu.sign_randomized(params, signers, &[MESSAGE], &hidden, Release::Verified).unwrap();
        assert_eq!((tally.device, tally.trouble), (1, None));
        let signature = signed.into_iter().next().unwrap().unwrap();
        let encoded = signature.as_bytes();
        assert!(
            secret_bytes(encoded) >= encoded.len() - params.salt_bytes(),
            "s is secret until it is released"
        );
        release(encoded);
        assert!(signature == expected);
    };
    observe(&format!("## {name}, keygen"), || {
        let (public, tally) = gpu.keygen(&secret).unwrap();
        assert_eq!((tally.device, tally.trouble), (1, None));
        release(public[0].as_bytes());
        assert!(public[0] == open.public_key(engine));
    });
    observe(&format!("## {name}, sign"), || sign(GpuSigners::Each(&secret)));
    observe(&format!("## {name}, sign expanded"), || {
        sign(GpuSigners::One(&gpu.expand_secret(&secret).unwrap()));
    });
}

const OPERATIONS: [&str; 3] = ["keygen", "sign", "sign expanded"];

#[test]
fn no_branch_and_no_address_in_a_kernel_depends_on_a_secret() {
    const THIS: &str = "tests::secrecy::no_branch_and_no_address_in_a_kernel_depends_on_a_secret";
    if running() {
        let (device, _) = Device::emulated(Emulation { multiprocessors: 1, ..Emulation::default() });
        for params in Params::all() {
            operate(&kernels(&device, params, None), params, &params.name());
        }
        return;
    }
    let Some(said) = judged(THIS) else { return };
    for params in Params::all() {
        for operation in OPERATIONS {
            let headline = format!("## {}, {operation}", params.name());
            let section = Section::of(&said, &headline);
            assert!(section.is_silent(), "{headline}\n{}", section.shortened(".cuh"));
        }
    }
    assert!(!said.contains("=="), "memcheck complains outside of the operations:\n{said}");
}

/// With as much shared memory as sm_90 has, so that all fit.
fn large() -> Emulation {
    Emulation { multiprocessors: 1, shared_per_block: 227 << 10, ..Emulation::default() }
}

/// The same device with the kernels that make their matrices themselves, which need no self-test either.
fn fused(gpu: &Gpu, params: &'static Params) -> Gpu {
    let mut gpu = gpu.with(Options { expand: Expand::Fused, ..OPTIONS });
    gpu.fused[params.index()] = OnceLock::from(Ok(()));
    gpu
}

#[test]
fn kernels_that_make_their_matrices_themselves_keep_secrets_too() {
    const THIS: &str = "tests::secrecy::kernels_that_make_their_matrices_themselves_keep_secrets_too";
    // With a linear term and without one.
    let sets = [Params::of(Round::Three, Set::Mayo1), Params::of(Round::Two, Set::Mayo2)];
    if running() {
        let (device, control) = Device::emulated(large());
        for params in sets {
            operate(&fused(&kernels(&device, params, None), params), params, &params.name());
        }
        for name in ["mayo_fused_keygen", "mayo_fused_sign", "mayo_fused_verify"] {
            assert!(control.launched().iter().any(|l| l.kernel.starts_with(name)), "{name} ran");
        }
        return;
    }
    let Some(said) = judged(THIS) else { return };
    for params in sets {
        for operation in OPERATIONS {
            let headline = format!("## {}, {operation}", params.name());
            let section = Section::of(&said, &headline);
            assert!(section.is_silent(), "{headline}\n{}", section.shortened(".cuh"));
        }
    }
    assert!(!said.contains("=="), "memcheck complains outside of the operations:\n{said}");
}

/// A device whose kernels for one set need no self-test, with a leak in one of them.
fn kernels(device: &Device, params: &'static Params, planted: Option<&str>) -> Gpu {
    let mut kernels = Kernels::new(&device.module(&IMAGE).unwrap(), params).unwrap();
    if let Some(name) = planted {
        kernels = kernels.planted(&device.module(&PLANTED).unwrap(), name).unwrap();
    }
    let mut gpu = Gpu::of(device.clone(), Engine::portable(), OPTIONS).unwrap();
    gpu.sets[params.index()] = OnceLock::from(Ok(Arc::new(kernels)));
    gpu
}

#[test]
fn planted_leaks_in_kernels_are_found_and_named() {
    const THIS: &str = "tests::secrecy::planted_leaks_in_kernels_are_found_and_named";
    // The set that `planted_emulated.cpp` stamps.
    let params = Params::of(Round::Two, Set::Mayo2);
    let plants = [
        ("draw", ADDRESS, "hash.cuh:"),
        ("sign", BRANCH, "products.cuh:"),
        ("solve", BRANCH, "solve.cuh:"),
        ("fused_sign", BRANCH, "fused.cuh:"),
    ];
    if running() {
        let (device, _) = Device::emulated(large());
        for (name, ..) in plants {
            let gpu = kernels(&device, params, Some(name));
            operate(&if name.starts_with("fused") { fused(&gpu, params) } else { gpu }, params, name);
        }
        return;
    }
    let Some(said) = judged(THIS) else { return };
    for (name, complaint, file) in plants {
        let headline = format!("## {name}, sign");
        let section = Section::of(&said, &headline);
        assert!(
            section.names(complaint, "", file),
            "{headline}\nis reported differently:\n{}",
            section.words
        );
    }
}
