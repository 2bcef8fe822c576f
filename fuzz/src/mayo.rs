//! MAYO: key documents, signatures, and signing by every backend.
#![forbid(unsafe_code)]

use lanework_cpu::Cpu;
use lanework_mayo::hazmat::sign_with_randomizer;
use lanework_mayo::internals::spec;
use lanework_mayo::{Engine, Error, Params, PublicKey, SecretKey, SignOptions, Signature};

use crate::bytes::Bytes;

fn engines() -> Vec<Engine> {
    Engine::all(&Cpu::detect()).filter_map(Result::ok).collect()
}

fn set(number: u8) -> &'static Params {
    let sets: Vec<&'static Params> = Params::all().collect();
    sets[usize::from(number) % sets.len()]
}

fn seeded(params: &Params, byte: u8) -> SecretKey {
    let seed: Vec<u8> =
        (0..params.secret_key_bytes()).map(|i| byte.wrapping_add(31u8.wrapping_mul(i as u8))).collect();
    SecretKey::from_seed(params, &seed).expect("a seed of the set's length")
}

/// Key documents: a key that is read can be written, and reads as the same key again.
pub(crate) fn keys(data: &[u8]) {
    let engine = Engine::best();
    let text = std::str::from_utf8(data).ok();
    let public = [PublicKey::from_spki_der(data).ok(), text.and_then(|t| PublicKey::from_pem(t).ok())];
    for key in public.into_iter().flatten() {
        // Sets without an identifier have no DER of the standard's form.
        if let Ok(der) = key.to_spki_der() {
            assert!(PublicKey::from_spki_der(&der).is_ok_and(|again| again == key));
        }
        let pem = key.to_pem().expect("a key that was read can be written");
        assert!(PublicKey::from_pem(&pem).is_ok_and(|again| again == key));
    }
    let secret = [
        SecretKey::from_pkcs8_der(engine, data).ok(),
        text.and_then(|t| SecretKey::from_pem(engine, t).ok()),
    ];
    for key in secret.into_iter().flatten() {
        let pem = key.to_pem(engine).expect("a key that was read can be written");
        let again = SecretKey::from_pem(engine, &pem).expect("what was written can be read");
        assert!(again.expose_seed() == key.expose_seed());
        if let Ok(der) = key.to_pkcs8_der(engine) {
            let again = SecretKey::from_pkcs8_der(engine, &der).expect("what was written can be read");
            assert!(again.expose_seed() == key.expose_seed());
        }
    }
}

pub(crate) fn key_seeds() -> Vec<Vec<u8>> {
    let engine = Engine::best();
    let mut seeds = Vec::new();
    // The sets' secret documents are short; the smallest public key is some hundred bytes.
    for number in [0, 3, 4, 5] {
        let secret = seeded(set(number), number);
        seeds.extend(secret.to_pkcs8_der(engine).map(|der| der.to_vec()));
        seeds.extend(secret.to_pem(engine).map(|pem| pem.as_bytes().to_vec()));
    }
    let smallest = Params::all().min_by_key(|p| p.public_key_bytes()).expect("there are sets");
    let public = seeded(smallest, 9).public_key(engine);
    seeds.extend(public.to_spki_der());
    seeds
}

/// Signing: a set, a randomizer, a seed, a message. All backends give the same signature, and it verifies.
pub(crate) fn sign(data: &[u8]) {
    let mut input = Bytes(data);
    let params = set(input.byte());
    let randomizer = input.exactly(params.salt_bytes());
    let secret = SecretKey::from_seed(params, &input.exactly(params.secret_key_bytes())).expect("its length");
    let message = input.0;
    let options = SignOptions { verify: false };
    let made: Vec<(Engine, Result<Signature, Error>)> = engines()
        .into_iter()
        .map(|engine| (engine, sign_with_randomizer(&(engine, &secret), message, &randomizer, options)))
        .collect();
    let (first, signature) = &made[0];
    for (engine, other) in &made[1..] {
        assert!(other.is_ok() == signature.is_ok(), "{} and {} differ", first.name(), engine.name());
    }
    let Ok(signature) = signature else { return };
    for (engine, other) in &made {
        let other = other.as_ref().expect("as above");
        assert!(other.as_bytes() == signature.as_bytes(), "{} signs otherwise", engine.name());
        let public = secret.public_key(*engine);
        assert!(public.verify(*engine, message, signature).is_ok(), "{} refuses its own", engine.name());
    }
}

pub(crate) fn sign_seeds() -> Vec<Vec<u8>> {
    (0..8u8)
        .map(|set| (0..90u8).map(|i| if i == 0 { set } else { i.wrapping_mul(set | 1) }).collect())
        .collect()
}

/// A signature with its key and message, good unless changed.
pub(crate) struct Case {
    pub(crate) params: &'static Params,
    pub(crate) message: Vec<u8>,
    pub(crate) public: Vec<u8>,
    pub(crate) signature: Vec<u8>,
    changed: bool,
}

/// A set among those wanted, a key, then places and values that a good signature is changed by; two of them may change the
/// message or the public key.
pub(crate) fn case(data: &[u8], wanted: fn(&Params) -> bool) -> Option<Case> {
    let mut input = Bytes(data);
    let sets: Vec<&'static Params> = Params::all().filter(|p| wanted(p)).collect();
    let params = sets[usize::from(input.byte()) % sets.len()];
    let secret = seeded(params, input.byte() % 4);
    let best = Engine::best();
    let mut message = input.array::<8>().to_vec();
    let randomizer = vec![7; params.salt_bytes()];
    let made = sign_with_randomizer(&(best, &secret), &message, &randomizer, SignOptions { verify: false });
    let signature = made.ok()?;
    let (mut public, mut signature) = (secret.public_key(best).as_bytes().to_vec(), signature.into_bytes());
    let mut changed = false;
    while let [where_to, low, high, value, rest @ ..] = input.0 {
        let target = match where_to {
            0..16 => &mut message,
            16..32 => &mut public,
            _ => &mut signature,
        };
        let at = usize::from(u16::from_le_bytes([*low, *high])) % target.len();
        target[at] ^= value;
        changed |= *value != 0;
        input.0 = rest;
    }
    Some(Case { params, message, public, signature, changed })
}

/// Verifying: all backends and the specification agree; an unchanged signature is good.
pub(crate) fn verify(data: &[u8]) {
    let Some(Case { params, message, public, signature, changed }) = case(data, |_| true) else { return };
    let best = Engine::best();
    // A length that the set does not have is not a signature at all.
    assert!(Signature::from_bytes(params, &signature[1..]).is_err());
    assert!(PublicKey::from_bytes(params, &public[1..]).is_err());
    let key = PublicKey::from_bytes(params, &public).expect("any bytes of this length are a key");
    let expected = spec::verify(params.sizes(), best.expand(), &public, &message, &signature);
    assert!(changed || expected, "{}: a good signature is refused by the specification", params.name());
    let parsed = Signature::from_bytes(params, &signature);
    for engine in engines() {
        let good = parsed.as_ref().is_ok_and(|s| key.verify(engine, &message, s).is_ok());
        assert!(good == expected, "{}: {} says {good} of {expected}", params.name(), engine.name());
        let expanded = lanework_mayo::VerifyingKey::new(engine, &key);
        let again = parsed.as_ref().is_ok_and(|s| expanded.verify(&message, s).is_ok());
        assert!(again == expected, "{}: {} expanded says {again}", params.name(), engine.name());
    }
}

pub(crate) fn verify_seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = (0..8u8).map(|set| vec![set, set, 1, 2, 3, 4, 5, 6, 7, 8]).collect();
    let changes: [&[u8]; 4] =
        [&[200, 0, 0, 1], &[20, 5, 0, 16], &[3, 0, 0, 128], &[255, 9, 0, 0xf0, 99, 9, 0, 0xf0]];
    for (set, change) in changes.into_iter().enumerate() {
        seeds.push([&[set as u8 + 4, 1, 0, 0, 0, 0, 0, 0, 0, 0][..], change].concat());
    }
    seeds
}
