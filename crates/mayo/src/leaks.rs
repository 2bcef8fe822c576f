//! Whether a branch or an address depends on a secret, asked of valgrind's memcheck, for the backends whose instructions
//! valgrind knows: portable and avx2.
//!
//! The tests run themselves under valgrind. There the library's operations are done with a seed and a randomizer that
//! memcheck takes for undefined, on the true kernels and through the true schedule of `scheme`; `instrument` says what
//! counts as released. `plants` shows that a leak in any kernel would be seen.
//!
//! What this cannot see: instructions whose time depends on their operands; the avx512 backend; key files; paths that the
//! keys and messages here do not take; what another compiler makes of the portable code. And it looks at the build that it
//! is part of: debug assertions check sums of secrets for overflow, by branches, so that only an optimised build without
//! them, as it is shipped, is judged: `cargo test --release -p lanework-mayo --lib leaks`.
#![forbid(unsafe_code)]

mod instrument;
mod plants;

use std::io::{ErrorKind, Write as _, stderr};
use std::process::Command;

use lanework_cpu::Settings;

use crate::expanded::SigningKey;
use crate::hazmat::{Signer, sign_with_randomizer};
use crate::keys::{SecretKey, SignOptions};
use crate::params::{Params, Round, Set};
use crate::scheme::Engine;
use crate::sys::memcheck::{complaints, make_secret, release, running, secret_bytes};
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

/// Set to 1 where a machine without valgrind is to count as a failure.
const REQUIRE: &str = "LANEWORK_REQUIRE_VALGRIND";

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

/// The line that follows it.
fn verdict(complaints: u64) -> String {
    format!("## {complaints} complaints")
}

/// Does one operation between its two lines.
fn observe(headline: &str, operation: impl FnOnce()) {
    Seen::take();
    eprintln!("{headline}");
    let before = complaints();
    operation();
    eprintln!("{}", verdict(complaints() - before));
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

/// One test of this binary, under valgrind: what it and memcheck wrote, or nothing where there is no valgrind.
fn under_valgrind(test: &str) -> Option<String> {
    let output = Command::new("valgrind")
        .args(["--quiet", "--leak-check=no", "--error-limit=no", "--error-exitcode=99", "--num-callers=12"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("leaks::{test}"), "--nocapture", "--test-threads=1"])
        .output();
    match output {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let code = output.status.code();
            assert!(
                matches!(code, Some(0 | 99)),
                "under valgrind the test ended with {}:\n{said}{}",
                output.status,
                String::from_utf8_lossy(&output.stdout)
            );
            assert_eq!(
                code == Some(99),
                said.contains("=="),
                "valgrind's status contradicts its words:\n{said}"
            );
            Some(said)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            assert!(
                std::env::var_os(REQUIRE).is_none_or(|v| v != "1"),
                "{REQUIRE}=1, and there is no valgrind"
            );
            // Past libtest, which keeps what a passing test prints to itself.
            let _ = writeln!(stderr(), "SKIPPED: leaks::{test}, since valgrind is not installed");
            None
        }
        Err(error) => panic!("valgrind does not start: {error}"),
    }
}

/// Of every complaint what it is about and the frames of this crate's kernels that it came from; the rest is the schedule.
fn shortened(complaints: &str) -> String {
    let mut lines = String::new();
    for line in complaints.lines() {
        let line = line.trim_start_matches(|c: char| c == '=' || c.is_ascii_digit()).trim_end();
        let is_frame = line.contains(" at 0x") || line.contains(" by 0x");
        if !line.is_empty() && (!is_frame || line.contains(" at 0x") || line.contains("::backend::")) {
            lines += &format!("  {line}\n");
        }
    }
    lines
}

/// What memcheck said to the operation with this headline, and its verdict line.
fn section<'a>(said: &'a str, headline: &str) -> (&'a str, &'a str) {
    let (_, rest) = said
        .split_once(&format!("{headline}\n"))
        .unwrap_or_else(|| panic!("not run under valgrind: {headline}\n{said}"));
    let end = rest.find("## ").unwrap_or_else(|| panic!("not ended: {headline}\n{said}"));
    (&rest[..end], rest[end..].lines().next().unwrap_or_default())
}

/// Whether this build is one to judge; says so if not.
fn ships(test: &str) -> bool {
    if cfg!(debug_assertions) {
        // Past libtest, which keeps what a passing test prints to itself.
        let _ = writeln!(
            stderr(),
            "SKIPPED: leaks::{test}, since debug assertions branch on secrets; judged in --release"
        );
    }
    !cfg!(debug_assertions)
}

#[test]
fn no_branch_and_no_address_depends_on_a_secret() {
    const THIS: &str = "no_branch_and_no_address_depends_on_a_secret";
    if running() {
        for plain in engines() {
            for params in Params::all() {
                let engine = instrument(plain.name(), plain.kernels, params);
                operate(plain, engine, params, operations(params));
            }
        }
        return;
    }
    if !ships(THIS) {
        return;
    }
    let Some(said) = under_valgrind(THIS) else { return };
    let (mut silent, mut leaking) = (0, Vec::new());
    for engine in engines() {
        for params in Params::all() {
            for operation in operations(params) {
                let headline = headline(engine.name(), params, operation);
                match section(&said, &headline) {
                    (_, end) if end == verdict(0) => silent += 1,
                    (complaints, end) => leaking.push(format!("{headline}\n{}{end}", shortened(complaints))),
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
    const THIS: &str = "planted_leaks_are_found_and_named";
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
    if !ships(THIS) {
        return;
    }
    let Some(said) = under_valgrind(THIS) else { return };
    for plant in plants() {
        for operation in showing(&plant) {
            let headline = headline(&planted(&plant), params, operation);
            let (complaints, end) = section(&said, &headline);
            assert!(end != verdict(0), "nothing is said to {headline}");
            // A complaint and its frames, innermost first; an empty line ends each.
            let named = complaints.split("== \n").any(|complaint| {
                let mut frames = complaint.lines().skip_while(|line| !line.contains(plant.complaint)).skip(1);
                frames.any(|frame| frame.contains(plant.function) && frame.contains("plants.rs:"))
            });
            assert!(named, "{headline}\nis called otherwise:\n{complaints}");
        }
    }
}
