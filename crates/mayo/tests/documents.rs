//! Key files: oqs-provider's in both directions, documents written by hand, and refusals.

use lanework_mayo::{Engine, Error, Params, PublicKey, Round, SecretKey, Set, Signature};

struct Fixture {
    set: Set,
    secret: &'static str,
    public: &'static str,
    signature: &'static [u8],
}

macro_rules! fixture {
    ($set:ident, $name:literal) => {
        Fixture {
            set: Set::$set,
            secret: include_str!(concat!("oqs-provider/", $name, ".key.pem")),
            public: include_str!(concat!("oqs-provider/", $name, ".pub.pem")),
            signature: include_bytes!(concat!("oqs-provider/", $name, ".sig")),
        }
    };
}

const MADE_BY_OQS_PROVIDER: [Fixture; 4] =
    [fixture!(Mayo1, "mayo1"), fixture!(Mayo2, "mayo2"), fixture!(Mayo3, "mayo3"), fixture!(Mayo5, "mayo5")];
const MESSAGE: &[u8] = include_bytes!("oqs-provider/message.txt");

fn key(params: &Params) -> SecretKey {
    let seed: Vec<u8> = (1..).take(params.secret_key_bytes()).collect();
    SecretKey::from_seed(params, &seed).unwrap()
}

#[test]
fn files_of_oqs_provider_open_and_come_out_the_same() {
    let engine = Engine::best();
    for f in MADE_BY_OQS_PROVIDER {
        let params = Params::of(Round::Two, f.set);
        // Reading checks that the public key inside is that of the secret key.
        let secret = SecretKey::from_pem_expecting(engine, f.secret, params).unwrap();
        let public = PublicKey::from_pem_expecting(f.public, params).unwrap();
        assert_eq!(secret.public_key(engine), public);
        let signature = Signature::from_bytes(params, f.signature).unwrap();
        assert_eq!(public.verify(engine, MESSAGE, &signature), Ok(()), "{}", f.set);
        // Written files equal oqs-provider's byte for byte, so it reads them like its own.
        assert_eq!(*secret.to_pem(engine).unwrap(), f.secret, "{}", f.set);
        assert_eq!(public.to_pem().unwrap(), f.public, "{}", f.set);
    }
}

#[test]
fn every_set_and_round_goes_through_a_file() {
    let engine = Engine::best();
    for params in Params::all() {
        let secret = key(params);
        let text = secret.to_pem(engine).unwrap();
        assert_eq!(SecretKey::from_pem(engine, &text).unwrap(), secret, "{}", params.name());
        let public = secret.public_key(engine);
        let text = public.to_pem().unwrap();
        assert_eq!(PublicKey::from_pem(&text).unwrap(), public, "{}", params.name());
    }
}

#[test]
fn round_3_has_no_pkcs8() {
    for set in Set::ALL {
        let secret = key(Params::of(Round::Three, set));
        let refusal = Error::NoIdentifier { round: Round::Three, set };
        assert_eq!(secret.to_pkcs8_der(Engine::best()).unwrap_err(), refusal);
        assert_eq!(secret.public_key(Engine::best()).to_spki_der().unwrap_err(), refusal);
        let text = secret.to_pem(Engine::best()).unwrap();
        assert!(text.starts_with("-----BEGIN LANEWORK MAYO ROUND 3 PRIVATE KEY-----\n"), "{}", &text[..60]);
    }
}

#[test]
fn a_document_of_one_round_or_set_is_refused_by_the_others() {
    let engine = Engine::best();
    for params in Params::all() {
        let secret = key(params);
        let (private, public) = (secret.to_pem(engine).unwrap(), secret.public_key(engine).to_pem().unwrap());
        for other in Params::all() {
            let refusal = if other.round() != params.round() {
                Some(Error::WrongRound { expected: other.round(), got: params.round() })
            } else if other.set() != params.set() {
                Some(Error::WrongSet { expected: other.set(), got: params.set() })
            } else {
                None
            };
            assert_eq!(SecretKey::from_pem_expecting(engine, &private, other).err(), refusal);
            assert_eq!(PublicKey::from_pem_expecting(&public, other).err(), refusal);
        }
    }
}

/// DER of a tag, a long-form length of two bytes, and content.
fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
    let n = content.len();
    let mut out = match n {
        0..=127 => vec![tag, n as u8],
        128..=255 => vec![tag, 0x81, n as u8],
        _ => vec![tag, 0x82, (n >> 8) as u8, n as u8],
    };
    out.extend_from_slice(content);
    out
}

/// SEQUENCE { OID 1.3.9999.8.3.3 }: 1.3 is 2b, 9999 is ce 0f.
const MAYO3_ALGORITHM: [u8; 10] = [0x30, 0x08, 0x06, 0x06, 0x2b, 0xce, 0x0f, 0x08, 0x03, 0x03];

fn by_hand(version: u8, algorithm: &[u8], inner: &[u8]) -> Vec<u8> {
    let mut content = vec![0x02, 0x01, version];
    content.extend_from_slice(algorithm);
    content.extend(tlv(0x04, inner));
    tlv(0x30, &content)
}

#[test]
fn documents_written_out_by_hand() {
    let engine = Engine::best();
    let secret = key(Params::of(Round::Two, Set::Mayo3));
    let public = secret.public_key(engine);
    let joined = [secret.expose_seed(), public.as_bytes()].concat();
    let whole = by_hand(0, &MAYO3_ALGORITHM, &tlv(0x04, &joined));
    assert_eq!(*secret.to_pkcs8_der(engine).unwrap(), whole);
    assert_eq!(SecretKey::from_pkcs8_der(engine, &whole).unwrap(), secret);
    // oqs-provider built with NOPUBKEY_IN_PRIVKEY.
    let alone = by_hand(0, &MAYO3_ALGORITHM, &tlv(0x04, secret.expose_seed()));
    assert_eq!(SecretKey::from_pkcs8_der(engine, &alone).unwrap(), secret);
    let mut bits = vec![0];
    bits.extend_from_slice(public.as_bytes());
    let spki = tlv(0x30, &[&MAYO3_ALGORITHM[..], &tlv(0x03, &bits)].concat());
    assert_eq!(public.to_spki_der().unwrap(), spki);
    assert_eq!(PublicKey::from_spki_der(&spki).unwrap(), public);

    // Without the inner OCTET STRING neither oqs-provider nor this library reads it.
    let flat = by_hand(0, &MAYO3_ALGORITHM, &joined);
    assert!(matches!(SecretKey::from_pkcs8_der(engine, &flat), Err(Error::Unreadable { .. })));
    // A NULL parameter.
    let mut with_null = vec![0x30, 0x0a];
    with_null.extend_from_slice(&MAYO3_ALGORITHM[2..]);
    with_null.extend_from_slice(&[0x05, 0x00]);
    let document = by_hand(0, &with_null, &tlv(0x04, &joined));
    let refusal = SecretKey::from_pkcs8_der(engine, &document).unwrap_err();
    assert!(refusal.to_string().contains("parameters"), "{refusal}");
    // Round 1's identifier, 1.3.9999.8.3.1, and one beyond round 2.
    for last in [1, 5] {
        let mut algorithm = MAYO3_ALGORITHM;
        algorithm[9] = last;
        let refusal =
            SecretKey::from_pkcs8_der(engine, &by_hand(0, &algorithm, &tlv(0x04, &joined))).unwrap_err();
        assert!(refusal.to_string().contains(&format!("1.3.9999.8.3.{last}")), "{refusal}");
    }
}

#[test]
fn halves_that_do_not_belong_together_are_refused() {
    let engine = Engine::best();
    let secret = key(Params::of(Round::Two, Set::Mayo3));
    let public = secret.public_key(engine);
    let joined = [secret.expose_seed(), public.as_bytes()].concat();
    for bit in [0, 8 * 31 + 7, 8 * 32, 8 * joined.len() - 1] {
        let mut wrong = joined.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        let document = by_hand(0, &MAYO3_ALGORITHM, &tlv(0x04, &wrong));
        assert_eq!(SecretKey::from_pkcs8_der(engine, &document), Err(Error::KeyMismatch), "bit {bit}");
    }
    for length in [0, 1, 31, 33, joined.len() - 1] {
        let document = by_hand(0, &MAYO3_ALGORITHM, &tlv(0x04, &joined[..length]));
        let refusal = SecretKey::from_pkcs8_der(engine, &document);
        assert!(matches!(refusal, Err(Error::Length { .. })), "{length}: {refusal:?}");
    }
    let longer = by_hand(0, &MAYO3_ALGORITHM, &tlv(0x04, &[&joined[..], &[0]].concat()));
    assert!(matches!(SecretKey::from_pkcs8_der(engine, &longer), Err(Error::Length { .. })));
}

/// A round-3 document of the library's own form, from numbers and a key.
fn own(label: &str, numbers: [u8; 3], key: &[u8]) -> String {
    let mut content = Vec::new();
    numbers.iter().for_each(|&n| content.extend([0x02, 0x01, n]));
    content.extend(tlv(0x04, key));
    pem_rfc7468::encode_string(label, pem_rfc7468::LineEnding::LF, &tlv(0x30, &content)).unwrap()
}

#[test]
fn the_round_3_form_is_as_documented() {
    let engine = Engine::best();
    let secret = key(Params::of(Round::Three, Set::Mayo5));
    let public = secret.public_key(engine);
    let joined = [secret.expose_seed(), public.as_bytes()].concat();
    let label = "LANEWORK MAYO ROUND 3 PRIVATE KEY";
    assert_eq!(*secret.to_pem(engine).unwrap(), own(label, [0, 3, 5], &joined));
    assert_eq!(
        public.to_pem().unwrap(),
        own("LANEWORK MAYO ROUND 3 PUBLIC KEY", [0, 3, 5], public.as_bytes())
    );
    for (numbers, hint) in [([1, 3, 5], "version"), ([0, 2, 5], "round 2"), ([0, 3, 4], "set")] {
        let refusal = SecretKey::from_pem(engine, &own(label, numbers, &joined)).unwrap_err();
        assert!(
            matches!(refusal, Error::Unreadable { .. }) && refusal.to_string().contains(hint),
            "{refusal}"
        );
    }
    let mut wrong = joined.clone();
    wrong[0] ^= 1;
    assert_eq!(SecretKey::from_pem(engine, &own(label, [0, 3, 5], &wrong)), Err(Error::KeyMismatch));
    let short = own(label, [0, 3, 5], &joined[..joined.len() - 1]);
    assert!(matches!(SecretKey::from_pem(engine, &short), Err(Error::Length { what: "public key", .. })));
}

#[test]
fn damaged_files_are_errors_and_never_panics() {
    let engine = Engine::best();
    let secret = key(Params::of(Round::Three, Set::Mayo2));
    let text = secret.to_pem(engine).unwrap();
    for nonsense in ["", "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n", "no key here"] {
        assert!(matches!(SecretKey::from_pem(engine, nonsense), Err(Error::Unreadable { .. })), "{nonsense}");
        assert!(matches!(PublicKey::from_pem(nonsense), Err(Error::Unreadable { .. })), "{nonsense}");
    }
    // A private key where a public one belongs, and the other way round.
    let refusal = PublicKey::from_pem(&text).unwrap_err();
    assert!(refusal.to_string().contains("LANEWORK MAYO ROUND 3 PRIVATE KEY"), "{refusal}");
    assert!(SecretKey::from_pem(engine, &secret.public_key(engine).to_pem().unwrap()).is_err());
    for end in (0..text.len() - 1).step_by(97) {
        assert!(SecretKey::from_pem(engine, &text[..end]).is_err(), "cut at {end}");
    }
    let der = key(Params::of(Round::Two, Set::Mayo1)).to_pkcs8_der(engine).unwrap();
    for i in 0..64 {
        let mut damaged = der.to_vec();
        damaged[i] ^= 0x11;
        assert!(SecretKey::from_pkcs8_der(engine, &damaged).is_err(), "byte {i}");
    }
    for end in 0..der.len() {
        assert!(SecretKey::from_pkcs8_der(engine, &der[..end]).is_err(), "cut at {end}");
    }
    assert!(SecretKey::from_pkcs8_der(engine, &[&der[..], &[0]].concat()).is_err(), "one byte too many");
}

/// RFC 7468, section 2: parsers are to ignore explanatory text around a document, and line ends may be CRLF.
#[test]
fn text_around_a_document_is_ignored() {
    let engine = Engine::best();
    for params in Params::all() {
        let secret = SecretKey::generate_os(params).unwrap();
        let public = secret.public_key(engine);
        for text in [secret.to_pem(engine).unwrap().to_string(), public.to_pem().unwrap()] {
            let dressed = format!("Bag Attributes\n    friendlyName: x\n{text}and some words after it\n");
            for text in [dressed, text.replace('\n', "\r\n")] {
                match SecretKey::from_pem(engine, &text) {
                    Ok(read) => assert_eq!(read.expose_seed(), secret.expose_seed()),
                    Err(_) => assert_eq!(PublicKey::from_pem(&text).unwrap(), public),
                }
            }
        }
        assert!(SecretKey::from_pem(engine, "no document at all").is_err());
    }
}
