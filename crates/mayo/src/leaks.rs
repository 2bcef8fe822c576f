//! Whether a branch or an address depends on a secret, asked of valgrind's memcheck, for the backends whose instructions
//! valgrind knows: portable and avx2.
//!
//! The tests run themselves under valgrind. There the library's operations are done with a seed and a randomizer that
//! memcheck takes for undefined, on the true kernels and through the true schedule of `scheme`; `instrument` says what
//! counts as released. `plants` shows that a leak in any kernel would be seen.
//!
//! [`traced`] compares runs on different secrets instruction by instruction, on every backend that this CPU has: all that there
//! is for those whose instructions valgrind does not know.
//!
//! What memcheck cannot see: instructions whose time depends on their operands; the avx512 backend; key files; paths that the
//! keys and messages here do not take; what another compiler makes of the portable code. And it looks at the build that it
//! is part of: debug assertions check sums of secrets for overflow, by branches, so that only an optimised build without
//! them, as it is shipped, is judged: `cargo test --release -p lanework-mayo --lib leaks`.
#![forbid(unsafe_code)]

mod instrument;
mod plants;
mod traced;

use lanework_cpu::Settings;
use lanework_leakage::memcheck::{make_secret, release, running, secret_bytes};
use lanework_leakage::valgrind::{Section, judged};
use lanework_leakage::{plants as leaking, valgrind};

use crate::expanded::SigningKey;
use crate::hazmat::{Signer, sign_with_randomizer};
use crate::keys::{SecretKey, SignOptions};
use crate::params::{Params, Round, Set};
use crate::scheme::Engine;
use instrument::{Seen, instrument};
use plants::Plant;

/// Backends whose every instruction valgrind knows.
const TIERS: [&str; 2] = ["portable", "avx2"];

/// What is done with every backend and set, and last, for one set only, [`AFTER_RESTART`].
const OPERATIONS: [&str; 7] = [
    "keygen",
    "sign",
    "expand",
    "sign expanded",
    "sign and verify",
    "sign expanded and verify",
    AFTER_RESTART,
];

fn operations(params: &Params) -> &'static [&'static str] {
    let restarts = (params.round, params.set) == (RESTARTING.0, RESTARTING.1);
    &OPERATIONS[..OPERATIONS.len() - usize::from(!restarts)]
}

const MESSAGE: &[u8] = b"a message";

/// A set, and a message whose first system has too small a rank under [`seed`] and [`randomizer`].
const RESTARTING: (Round, Set, &[u8]) = (Round::Three, Set::Mayo1, b"restart 27");
const AFTER_RESTART: &str = "sign after a restart";

fn seed(params: &Params) -> Vec<u8> {
    (0..params.secret_key_bytes()).map(|i| (i * 151 + 77) as u8).collect()
}

fn randomizer(params: &Params) -> Vec<u8> {
    vec![0x42; params.salt_bytes]
}

/// The line that precedes what memcheck says to an operation.
fn headline(tier: &str, params: &Params, operation: &str) -> String {
    format!("## {tier}, {}, {operation}", params.name())
}

/// Does one operation between its two lines.
fn observe(headline: &str, operation: impl FnOnce()) {
    Seen::take();
    valgrind::observe(headline, operation);
}

/// Signs `message`, by memcheck's eyes with secrets alone; returns the number of attempts.
fn sign_secretly(
    signer: &impl Signer,
    params: &Params,
    expected: &[u8],
    message: &[u8],
    verify: bool,
) -> usize {
    let randomizer = randomizer(params);
    make_secret(&randomizer);
    let signature = sign_with_randomizer(signer, message, &randomizer, SignOptions { verify }).unwrap();
    let encoded = signature.as_bytes();
    assert_eq!(
        secret_bytes(encoded),
        encoded.len() - params.salt_bytes,
        "s is secret until it is given away"
    );
    release(encoded);
    assert!(encoded == expected, "the kernels under instruments sign otherwise");
    let seen = Seen::take();
    assert_eq!(seen.salts, 1);
    seen.attempts
}

/// The operations named, on `engine` under instruments; `plain` is the same without them.
fn operate(plain: Engine, engine: Engine, params: &'static Params, operations: &[&str]) {
    let key = |secret| {
        let key = SecretKey::from_seed(params, &seed(params)).unwrap();
        if secret {
            make_secret(key.expose_seed());
        }
        key
    };
    let (open, secret) = (key(false), key(true));
    let expected = |message: &[u8]| {
        let options = SignOptions { verify: false };
        sign_with_randomizer(&(plain, &open), message, &randomizer(params), options).unwrap().into_bytes()
    };
    let signature = expected(MESSAGE);
    let compact = (engine, &secret);
    let expanded = if operations.iter().any(|what| what.starts_with("sign expanded")) {
        Some(SigningKey::new(engine, &secret))
    } else {
        None
    };
    for what in operations {
        let verify = what.ends_with("and verify");
        observe(&headline(engine.name(), params, what), || match *what {
            "keygen" => {
                let public = secret.public_key(engine);
                assert_eq!(secret_bytes(public.as_bytes()), 0);
                assert!(public == open.public_key(plain), "the kernels under instruments make another key");
                assert_eq!(Seen::take().public_seeds, 1);
            }
            "expand" => {
                let expanded = SigningKey::new(engine, &secret);
                assert_eq!(secret_bytes(expanded.secret_key().expose_seed()), params.secret_key_bytes());
                assert_eq!(Seen::take().public_seeds, 1);
            }
            AFTER_RESTART => {
                let message = RESTARTING.2;
                let attempts = sign_secretly(&compact, params, &expected(message), message, false);
                assert!(attempts > 1, "the message for a restart needs none");
            }
            _ => {
                let attempts = match &expanded {
                    Some(expanded) if what.starts_with("sign expanded") => {
                        sign_secretly(expanded, params, &signature, MESSAGE, verify)
                    }
                    _ => sign_secretly(&compact, params, &signature, MESSAGE, verify),
                };
                assert!(attempts >= 1);
            }
        });
    }
}

/// The tiers that this process can run; under valgrind, those that valgrind lets it.
fn engines() -> Vec<Engine> {
    let settings = Settings::from_env().unwrap();
    let mut engines = Vec::new();
    for engine in Engine::all(&settings.cpu()) {
        match engine {
            Ok(engine) if TIERS.contains(&engine.name()) => engines.push(engine),
            Ok(_) => {}
            Err(reason) => assert!(
                !TIERS.contains(&reason.what.as_str()) || !settings.requires(&reason.what),
                "LANEWORK_REQUIRE names {reason}"
            ),
        }
    }
    engines
}

#[test]
fn no_branch_and_no_address_depends_on_a_secret() {
    const THIS: &str = "leaks::no_branch_and_no_address_depends_on_a_secret";
    if running() {
        for plain in engines() {
            for params in Params::all() {
                let engine = instrument(plain.name(), plain.kernels, params);
                operate(plain, engine, params, operations(params));
            }
        }
        return;
    }
    let Some(said) = judged(THIS) else { return };
    let (mut silent, mut leaking) = (0, Vec::new());
    for engine in engines() {
        for params in Params::all() {
            for operation in operations(params) {
                let headline = headline(engine.name(), params, operation);
                let section = Section::of(&said, &headline);
                if section.is_silent() {
                    silent += 1;
                } else {
                    // The rest is the schedule.
                    leaking.push(format!("{headline}\n{}", section.shortened("::backend::")));
                }
            }
        }
    }
    println!("{silent} operations on secrets, no complaint");
    assert!(leaking.is_empty(), "secrets decide on branches or addresses:\n{}", leaking.join("\n"));
    assert!(!said.contains("=="), "memcheck complains outside of the operations:\n{said}");
}

/// What shows a leak in a kernel.
fn showing(plant: &Plant) -> &'static [&'static str] {
    match plant.kernel {
        "shake256" | "keygen" => &["keygen"],
        "expand_secret" => &["expand"],
        "sign_expanded" => &["sign expanded"],
        _ => &["sign"],
    }
}

fn planted(plant: &Plant) -> String {
    format!("{} with {} in {}", plant.tier, plant.function, plant.kernel)
}

#[test]
fn planted_leaks_are_found_and_named() {
    const THIS: &str = "leaks::planted_leaks_are_found_and_named";
    let plants = || engines().into_iter().flat_map(|engine| plants::of(engine.name()));
    let params = plants::params();
    if running() {
        for plant in plants() {
            let plain = Engine { name: plant.tier, kernels: plant.kernels };
            let engine = instrument(Box::leak(planted(&plant).into_boxed_str()), plant.kernels, params);
            operate(plain, engine, params, showing(&plant));
        }
        return;
    }
    let Some(said) = judged(THIS) else { return };
    for plant in plants() {
        for operation in showing(&plant) {
            let headline = headline(&planted(&plant), params, operation);
            let section = Section::of(&said, &headline);
            assert!(!section.is_silent(), "nothing is said to {headline}");
            assert!(
                section.names(plant.complaint, plant.function, leaking::FILE),
                "{headline}\nis called otherwise:\n{}",
                section.words
            );
        }
    }
}
