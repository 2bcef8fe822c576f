//! The `signature` traits on typed keys, which separate sets and rounds at run time too.

use lanework_mayo::hazmat::Deterministic;
use lanework_mayo::typed::{ParameterSet, Signature, SigningKey, VerifyingKey, round2, round3};
use lanework_mayo::{Engine, Error, Round, SecretKey, Set};
use signature::{Keypair, RandomizedSigner, SignatureEncoding, Signer, Verifier};

fn all_traits<P: ParameterSet>() {
    let engine = Engine::best();
    let seed = vec![0x11; P::PARAMS.secret_key_bytes()];
    let key = SigningKey::<P>::from_seed(engine, &seed).unwrap();
    let verifying = key.verifying_key();
    let hedged = key.try_sign_with_rng(&mut getrandom::SysRng, b"m").unwrap();
    let again = key.sign(b"m").unwrap();
    assert_ne!(hedged, again);
    verifying.verify(b"m", &hedged).unwrap();
    verifying.verify(b"m", &again).unwrap();
    assert!(verifying.verify(b"n", &hedged).is_err());

    let bytes = hedged.to_bytes();
    assert_eq!(bytes.len(), P::PARAMS.signature_bytes());
    assert_eq!(Signature::<P>::try_from(&bytes[..]).unwrap(), hedged);
    assert!(matches!(Signature::<P>::try_from(&bytes[1..]), Err(Error::Length { .. })));

    let deterministic = Deterministic(key);
    let signed = deterministic.sign(b"m");
    assert_eq!(signed, deterministic.sign(b"m"));
    deterministic.verifying_key().verify(b"m", &signed).unwrap();
    let public = verifying.erased().public_key();
    assert_eq!(VerifyingKey::<P>::from_bytes(engine, public.as_bytes()).unwrap(), verifying);
}

#[test]
fn every_set_of_both_rounds() {
    all_traits::<round3::Mayo1>();
    all_traits::<round3::Mayo2>();
    all_traits::<round3::Mayo3>();
    all_traits::<round3::Mayo5>();
    all_traits::<round2::Mayo1>();
    all_traits::<round2::Mayo2>();
    all_traits::<round2::Mayo3>();
    all_traits::<round2::Mayo5>();
}

#[test]
fn a_key_of_another_round_or_set_is_refused() {
    let engine = Engine::best();
    let secret = SecretKey::from_seed(round2::Mayo3::PARAMS, &[5; 32]).unwrap();
    let round = SigningKey::<round3::Mayo3>::new(engine, &secret).unwrap_err();
    assert_eq!(round, Error::WrongRound { expected: Round::Three, got: Round::Two });
    let set = SigningKey::<round2::Mayo5>::new(engine, &secret).unwrap_err();
    assert_eq!(set, Error::WrongSet { expected: Set::Mayo5, got: Set::Mayo3 });
    let public = secret.public_key(engine);
    let round = VerifyingKey::<round3::Mayo3>::new(engine, &public).unwrap_err();
    assert_eq!(round, Error::WrongRound { expected: Round::Three, got: Round::Two });
}
