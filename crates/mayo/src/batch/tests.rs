//! Groups of every size agree with the single calls, on every backend: restarts, failures and mixed keys included.
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicUsize, Ordering};

use lanework_cpu::Cpu;

use super::*;
use crate::backend::altered;
use crate::backend::operands::{Finish, Solve};
use crate::backend::{Kernels, SetKernels, portable};
use crate::internals::known::NistDrbg;
use crate::params::{Round, Set};

/// A generator with the same numbers for two callers.
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

impl TryCryptoRng for Seeded {}

fn seeded() -> Seeded {
    Seeded(NistDrbg::new(&[9; 48]))
}

fn engines() -> Vec<Engine> {
    Engine::all(&Cpu::detect()).flatten().collect()
}

fn key(params: &Params, i: usize) -> SecretKey {
    SecretKey::from_seed(params, &vec![i as u8 + 1; params.secret_key_bytes()]).unwrap()
}

/// The single calls' results with the same randomness.
fn singly(signers: Signers<'_>, messages: &[Vec<u8>], options: SignOptions) -> Vec<Result<Signature, Error>> {
    let mut rng = seeded();
    let sign = |(i, message): (usize, &Vec<u8>)| {
        let randomizer = draw_randomizer(signers.params(i), &mut rng).unwrap();
        match signers {
            Signers::One(key) => key.sign_randomized(message, &randomizer, options),
            Signers::Each(keys) => keys[i].sign_randomized(message, &randomizer, options),
            Signers::OneCompact(e, key) => key.sign_randomized(e, message, &randomizer, options),
            Signers::EachCompact(e, keys) => keys[i].sign_randomized(e, message, &randomizer, options),
        }
    };
    messages.iter().enumerate().map(sign).collect()
}

fn together(
    signers: Signers<'_>,
    messages: &[Vec<u8>],
    options: SignOptions,
    threads: Threads<'_>,
) -> Vec<Result<Signature, Error>> {
    sign(signers, messages, options, &mut seeded(), threads).unwrap()
}

#[test]
fn every_size_of_group_gives_what_single_calls_give() {
    for engine in engines() {
        let most = engine.expand().lanes() + 3;
        let even: Vec<Vec<u8>> = (0..most).map(|i| vec![i as u8; 33]).collect();
        let uneven: Vec<Vec<u8>> = (0..most).map(|i| vec![i as u8; 57 * i]).collect();
        for params in Params::all() {
            let keys: Vec<SecretKey> = (0..most).map(|i| key(params, i)).collect();
            let public: Vec<PublicKey> = keys.iter().map(|k| k.public_key(engine)).collect();
            let signing: Vec<SigningKey> = keys.iter().map(|k| SigningKey::new(engine, k)).collect();
            let verifying: Vec<VerifyingKey> = public.iter().map(|k| VerifyingKey::new(engine, k)).collect();
            for messages in [&even, &uneven] {
                let options = SignOptions::default();
                let one = singly(Signers::One(&signing[0]), messages, options);
                let each = singly(Signers::Each(&signing), messages, options);
                for size in 1..=most {
                    let at = format!("{} {} {size}", engine.name(), params.name());
                    let m = &messages[..size];
                    let threads = Threads::One;
                    assert_eq!(keygen(engine, &keys[..size], threads).unwrap(), public[..size], "{at}");
                    for (signers, expected) in [
                        (Signers::One(&signing[0]), &one),
                        (Signers::OneCompact(engine, &keys[0]), &one),
                        (Signers::Each(&signing[..size]), &each),
                        (Signers::EachCompact(engine, &keys[..size]), &each),
                    ] {
                        assert_eq!(together(signers, m, options, threads), expected[..size], "{at}");
                    }
                    let mut signatures: Vec<Signature> = each[..size].iter().flatten().cloned().collect();
                    assert_eq!(signatures.len(), size, "{at}");
                    // A corrupted one in the middle is refused, and no other.
                    let spoilt = size / 2;
                    let mut bytes = signatures[spoilt].clone().into_bytes();
                    bytes[0] ^= 1;
                    signatures[spoilt] = Signature::made(params_of(params), bytes);
                    for verifiers in
                        [Verifiers::Each(&verifying[..size]), Verifiers::EachCompact(engine, &public[..size])]
                    {
                        let verdicts = verify(verifiers, m, &signatures, threads).unwrap();
                        for (i, verdict) in verdicts.iter().enumerate() {
                            let expected = if i == spoilt { Err(Error::Refused) } else { Ok(()) };
                            assert_eq!(*verdict, expected, "{at}: {i}");
                        }
                    }
                }
            }
        }
    }
}

fn params_of(params: &Params) -> &'static Params {
    Params::of(params.round, params.set)
}

/// The set that faults are planted in.
fn planted() -> &'static Params {
    Params::of(Round::Three, Set::Mayo2)
}

fn sound() -> &'static SetKernels {
    &portable::KERNELS.sets[planted().index()]
}

/// `base` with one set's kernels changed. Kernels exchange plain formats, so portable ones fit everywhere.
fn plant(base: Engine, plant: impl FnOnce(&mut SetKernels)) -> Engine {
    let mut kernels = Kernels { expand: base.expand, sets: base.sets };
    let set = &mut kernels.sets[planted().index()];
    set.scratch_blocks = set.scratch_blocks.max(sound().scratch_blocks);
    *set = set.around_another();
    plant(set);
    altered(base.name(), kernels)
}

fn planted_keys(count: usize) -> Vec<SecretKey> {
    (0..count).map(|i| key(planted(), i)).collect()
}

static RESTARTS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn restarts_in_a_group_give_what_single_calls_give() {
    /// Refuses two systems of three, by what the attempt drew.
    fn choosy(Solve { m, u, t, r, x, scratch }: Solve<'_>) -> bool {
        let solved = sound().solve(Solve { m, u, t, r, x, scratch }) && r[0].is_multiple_of(3);
        RESTARTS.fetch_add(usize::from(!solved), Ordering::Relaxed);
        solved
    }
    for base in engines() {
        let engine = plant(base, |k| k.solve = choosy);
        let count = 2 * engine.expand().lanes() + 3;
        let keys = planted_keys(count);
        let messages: Vec<Vec<u8>> = (0..count).map(|i| vec![i as u8; 32]).collect();
        let options = SignOptions { verify: true };
        let signers = Signers::EachCompact(engine, &keys);
        let before = RESTARTS.load(Ordering::Relaxed);
        let expected = singly(signers, &messages, options);
        assert!(RESTARTS.load(Ordering::Relaxed) > before + 2, "{}", engine.name());
        assert!(expected.iter().all(Result::is_ok));
        for threads in [Threads::One, Threads::Own(2)] {
            assert_eq!(together(signers, &messages, options, threads), expected, "{}", engine.name());
        }
    }
}

#[test]
fn what_goes_wrong_with_one_goes_wrong_with_no_other() {
    /// No system of some targets can be solved.
    fn hopeless(Solve { m, u, t, r, x, scratch }: Solve<'_>) -> bool {
        sound().solve(Solve { m, u, t, r, x, scratch }) && !t[0].is_multiple_of(3)
    }
    /// Some signatures have a wrong bit.
    fn flipping(Finish { o, vinegar, x, s }: Finish<'_>) {
        sound().finish(Finish { o, vinegar, x, s });
        s[planted().n() - 1] ^= u8::from(x[0].is_multiple_of(3));
    }
    for base in engines() {
        let engine = plant(base, |k| {
            k.solve = hopeless;
            k.finish = flipping;
        });
        let count = 2 * engine.expand().lanes() + 9;
        let keys = planted_keys(count);
        let signing: Vec<SigningKey> = keys.iter().map(|k| SigningKey::new(engine, k)).collect();
        let messages: Vec<Vec<u8>> = (0..count).map(|i| vec![i as u8; 32]).collect();
        for options in [SignOptions { verify: true }, SignOptions { verify: false }] {
            for signers in [Signers::EachCompact(engine, &keys), Signers::Each(&signing)] {
                let expected = singly(signers, &messages, options);
                let made = together(signers, &messages, options, Threads::One);
                assert_eq!(made, expected, "{}", engine.name());
                let count = |error: &Error| made.iter().filter(|m| m.as_ref().err() == Some(error)).count();
                let faults = count(&Error::Fault);
                assert!(count(&Error::Exhausted) > 0 && (faults > 0) == options.verify, "{made:?}");
                assert!(made.iter().any(Result::is_ok));
            }
        }
    }
}

#[test]
fn a_batch_may_mix_sets_rounds_and_backends() {
    let engines = engines();
    let sets: Vec<&Params> = [0, 0, 1, 1, 1, 5, 1, 0, 0, 0, 4, 4, 0]
        .iter()
        .map(|&i| Params::all().nth(i).unwrap())
        .map(params_of)
        .collect();
    let keys: Vec<SecretKey> = sets.iter().enumerate().map(|(i, set)| key(set, i)).collect();
    let messages: Vec<Vec<u8>> = (0..sets.len()).map(|i| vec![i as u8; 32]).collect();
    // Neighbours on different backends, and sometimes on one.
    let signing: Vec<SigningKey> =
        keys.iter().enumerate().map(|(i, k)| SigningKey::new(engines[i / 2 % engines.len()], k)).collect();
    let verifying: Vec<VerifyingKey> = signing.iter().map(|k| k.verifying_key().clone()).collect();
    let options = SignOptions { verify: true };
    let expected = singly(Signers::Each(&signing), &messages, options);
    let best = Engine::best();
    let public = keygen(best, &keys, Threads::One).unwrap();
    assert!(public.iter().zip(&keys).all(|(p, k)| *p == k.public_key(best)));
    for signers in [Signers::Each(&signing), Signers::EachCompact(best, &keys)] {
        for threads in [Threads::One, Threads::Own(2)] {
            assert_eq!(together(signers, &messages, options, threads), expected);
        }
    }
    let mut signatures: Vec<Signature> = expected.into_iter().flatten().collect();
    signatures.swap(4, 5);
    signatures.swap(0, 2);
    signatures.swap(8, 9);
    for verifiers in [Verifiers::Each(&verifying), Verifiers::EachCompact(best, &public)] {
        let verdicts = verify(verifiers, &messages, &signatures, Threads::One).unwrap();
        let singly: Vec<_> =
            (0..sets.len()).map(|i| verifying[i].verify(&messages[i], &signatures[i])).collect();
        assert_eq!(verdicts, singly);
        let wrong = |of: fn(&Error) -> bool| -> Vec<usize> {
            (0..verdicts.len()).filter(|&i| verdicts[i].as_ref().is_err_and(of)).collect()
        };
        assert_eq!(wrong(|e| matches!(e, Error::WrongRound { .. })), [4, 5]);
        assert_eq!(wrong(|e| matches!(e, Error::WrongSet { .. })), [0, 2]);
        assert_eq!(wrong(|e| *e == Error::Refused), [8, 9]);
    }
}

#[test]
fn groups_cover_all_items_and_leave_no_thread_idle() {
    for lanes in [1, 4, 8] {
        for threads in 1..6 {
            for count in 0..100 {
                let sizes: Vec<usize> = group_sizes(count, lanes, threads).collect();
                let at = format!("{count} items, {lanes} lanes, {threads} threads: {sizes:?}");
                assert_eq!(sizes.iter().sum::<usize>(), count, "{at}");
                assert!(sizes.iter().all(|&size| (1..=lanes).contains(&size)), "{at}");
                if threads > 1 {
                    assert!(sizes.len().is_multiple_of(threads) || sizes.len() == count, "{at}");
                    let (least, most) = (sizes.iter().min(), sizes.iter().max());
                    assert!(most.is_none_or(|most| most - least.unwrap() <= 1), "{at}");
                }
            }
        }
    }
}
