//! Batches agree with the single calls, in order, on any number of threads.

use lanework_cpu::Threads;
use lanework_mayo::batch::{self, Signers, Verifiers};
use lanework_mayo::internals::known::NistDrbg;
use lanework_mayo::{
    Engine, Error, MessageHasher, Params, Round, SecretKey, Set, SignOptions, Signature, SigningKey,
    VerifyingKey,
};

/// A seeded generator, so that two batches can be compared.
struct Seeded(NistDrbg);

impl rand_core::TryRng for Seeded {
    type Error = core::convert::Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        rand_core::utils::next_word_via_fill(self)
    }
    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        rand_core::utils::next_word_via_fill(self)
    }
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Self::Error> {
        self.0.fill(out);
        Ok(())
    }
}

impl rand_core::TryCryptoRng for Seeded {}

fn seeded() -> Seeded {
    Seeded(NistDrbg::new(&[1; 48]))
}

fn messages() -> Vec<Vec<u8>> {
    (0..23).map(|i| vec![i as u8; 7 * i]).collect()
}

fn unwrap_all(signed: Vec<Result<Signature, Error>>) -> Vec<Signature> {
    signed.into_iter().collect::<Result<_, _>>().unwrap()
}

#[test]
fn every_kind_of_batch_on_every_kind_of_threads() {
    let engine = Engine::best();
    let pool = Threads::pool(2).unwrap();
    let (messages, options) = (messages(), SignOptions::default());
    for params in [Params::of(Round::Three, Set::Mayo1), Params::of(Round::Two, Set::Mayo2)] {
        let mut expected = None;
        for threads in [Threads::One, Threads::Own(3), Threads::Own(0), Threads::Pool(&pool)] {
            let rng = &mut seeded();
            let pairs = batch::generate(engine, params, messages.len(), rng, threads).unwrap();
            let (secret, public): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
            assert!(secret.iter().zip(&public).all(|(s, p)| s.public_key(engine) == *p));
            assert_eq!(batch::keygen(engine, &secret, threads).unwrap(), public);
            let signing: Vec<SigningKey> = secret.iter().map(|s| SigningKey::new(engine, s)).collect();
            let verifying: Vec<VerifyingKey> = public.iter().map(|p| VerifyingKey::new(engine, p)).collect();

            let each =
                batch::sign(Signers::Each(&signing), &messages, options, &mut seeded(), threads).unwrap();
            let each = unwrap_all(each);
            let compact = Signers::EachCompact(engine, &secret);
            let compact = batch::sign(compact, &messages, options, &mut seeded(), threads).unwrap();
            assert_eq!(unwrap_all(compact), each);
            let one =
                batch::sign(Signers::One(&signing[5]), &messages, options, &mut seeded(), threads).unwrap();
            let one = unwrap_all(one);
            let compact = Signers::OneCompact(engine, &secret[5]);
            let compact = batch::sign(compact, &messages, options, &mut seeded(), threads).unwrap();
            assert_eq!(unwrap_all(compact), one);
            assert_eq!(one[5], each[5]);

            for (verifiers, signatures) in [
                (Verifiers::Each(&verifying), &each),
                (Verifiers::EachCompact(engine, &public), &each),
                (Verifiers::One(&verifying[5]), &one),
                (Verifiers::OneCompact(engine, &public[5]), &one),
            ] {
                let verdicts = batch::verify(verifiers, &messages, signatures, threads).unwrap();
                assert!(verdicts.iter().all(Result::is_ok), "{threads:?}");
                // One wrong signature in the middle changes only that item's result.
                let mut spoilt = signatures.clone();
                spoilt.swap(7, 8);
                let verdicts = batch::verify(verifiers, &messages, &spoilt, threads).unwrap();
                let refused: Vec<usize> =
                    (0..verdicts.len()).filter(|&i| verdicts[i] == Err(Error::Refused)).collect();
                assert_eq!(refused, [7, 8]);
            }
            // The same randomness gives the same signatures on all threads.
            assert_eq!(*expected.get_or_insert(each.clone()), each, "{threads:?}");
        }
    }
}

#[test]
fn hedged_signatures_of_one_message_differ() {
    let key = SecretKey::generate_os(Params::of(Round::Three, Set::Mayo2)).unwrap();
    let signers = Signers::OneCompact(Engine::best(), &key);
    let signed =
        batch::sign(signers, &[b"m"; 4], SignOptions { verify: true }, &mut getrandom::SysRng, Threads::One)
            .unwrap();
    let signed = unwrap_all(signed);
    for i in 0..4 {
        assert!((0..i).all(|j| signed[i] != signed[j]));
    }
}

#[test]
fn lists_that_do_not_fit_are_refused() {
    let engine = Engine::best();
    let params = Params::of(Round::Three, Set::Mayo2);
    let secret: Vec<SecretKey> = (0..3).map(|i| SecretKey::from_seed(params, &[i; 24]).unwrap()).collect();
    let signing: Vec<SigningKey> = secret.iter().map(|key| SigningKey::new(engine, key)).collect();
    let public: Vec<_> = secret.iter().map(|key| key.public_key(engine)).collect();
    let verifying: Vec<VerifyingKey> = public.iter().map(|key| VerifyingKey::new(engine, key)).collect();
    let signatures: Vec<Signature> = secret.iter().map(|key| key.sign(engine, b"a").unwrap()).collect();
    let (messages, options) = ([b"a", b"b"], SignOptions::default());
    let digests = messages.map(|message| {
        let mut hasher = MessageHasher::new(engine, params);
        hasher.update(message);
        hasher.finish()
    });
    let (one, rng) = (Threads::One, &mut seeded());
    // One too few, and one too many.
    for got in [1, 3] {
        let keys = Error::Count { what: "keys", expected: 2, got };
        for signers in [Signers::Each(&signing[..got]), Signers::EachCompact(engine, &secret[..got])] {
            assert_eq!(batch::sign(signers, &messages, options, rng, one), Err(keys.clone()));
            assert_eq!(batch::sign_digests(signers, &digests, options, rng, one), Err(keys.clone()));
        }
        let two = &signatures[..2];
        for verifiers in [Verifiers::Each(&verifying[..got]), Verifiers::EachCompact(engine, &public[..got])]
        {
            assert_eq!(batch::verify(verifiers, &messages, two, one), Err(keys.clone()));
            assert_eq!(batch::verify_digests(verifiers, &digests, two, one), Err(keys.clone()));
        }
        let (some, expected) = (&signatures[..got], Error::Count { what: "signatures", expected: 2, got });
        for verifiers in [Verifiers::One(&verifying[0]), Verifiers::OneCompact(engine, &public[0])] {
            assert_eq!(batch::verify(verifiers, &messages, some, one), Err(expected.clone()));
            assert_eq!(batch::verify_digests(verifiers, &digests, some, one), Err(expected.clone()));
        }
    }
    let none: [&[u8]; 0] = [];
    let empty = batch::sign(Signers::OneCompact(engine, &secret[0]), &none, options, rng, Threads::Own(2));
    assert_eq!(empty.unwrap(), []);
}
