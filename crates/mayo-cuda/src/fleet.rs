//! Several devices and the CPU on one batch.
#![forbid(unsafe_code)]

use core::ops::Range;

use lanework_mayo::internals::batch::{Message, admit_each, draw_randomizer};
use lanework_mayo::{Engine, Error, MessageDigest, Params, PublicKey, SecretKey, Signature};
use rand_core::TryCryptoRng;
use zeroize::Zeroizing;

use super::operations::{Keygen, Signing, Verifying, expect_numbers};
use super::{
    Gpu, GpuError, GpuSigners, GpuSigningKeys, GpuVerifiers, GpuVerifyingKeys, Options, Release, Tally,
    expect_count, one_set,
};

/// Devices over which batches are split, each with its own thread, and the CPU beside them.
///
/// A batch is cut into one piece for each live device, by its weight, and the CPU's share after them. Results do not
/// depend on the cut: randomness is drawn before it, and the CPU computes the operations that a device cannot. Batches
/// below the break-even go to the CPU whole.
#[derive(Debug)]
pub struct Fleet {
    gpus: Vec<Gpu>,
    weights: Vec<f64>,
}

/// Secret keys, expanded on every device of a fleet.
#[derive(Debug)]
pub struct FleetSigningKeys(Vec<GpuSigningKeys>);

/// Public keys, expanded on every device of a fleet.
#[derive(Debug)]
pub struct FleetVerifyingKeys(Vec<GpuVerifyingKeys>);

/// Whose signatures a fleet makes.
#[derive(Clone, Copy, Debug)]
pub enum FleetSigners<'a> {
    /// A compact key for each message.
    Each(&'a [SecretKey]),
    /// One expanded key for all messages: the first of these.
    One(&'a FleetSigningKeys),
    /// For each message the number of one of these expanded keys.
    Of(&'a FleetSigningKeys, &'a [usize]),
}

/// Whose signatures a fleet verifies.
#[derive(Clone, Copy, Debug)]
pub enum FleetVerifiers<'a> {
    /// A compact key for each message.
    Each(&'a [PublicKey]),
    /// One expanded key for all messages: the first of these.
    One(&'a FleetVerifyingKeys),
    /// For each message the number of one of these expanded keys.
    Of(&'a FleetVerifyingKeys, &'a [usize]),
}

impl FleetSigningKeys {
    /// The public halves.
    #[must_use]
    pub fn public_keys(&self) -> &[PublicKey] {
        self.0.first().map_or(&[], GpuSigningKeys::public_keys)
    }
}

/// A batch's results in order, and each device's tally.
pub type FleetResult<T> = Result<(Vec<T>, Vec<Tally>), Error>;

/// A device's piece of a batch: its place, and the CPU's share of its end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    gpu: usize,
    range: Range<usize>,
    cpu: usize,
}

/// Cuts `count` by weights (those of 0 get nothing), the CPU's share off the last piece's end.
fn cut(count: usize, weights: &[f64], cpu_share: f64) -> Vec<Piece> {
    let sum: f64 = weights.iter().sum();
    let cpu = if sum > 0.0 { (count as f64 * cpu_share.clamp(0.0, 1.0)).round() as usize } else { count };
    let devices = count - cpu;
    let (mut pieces, mut at, mut seen) = (Vec::new(), 0, 0.0);
    for (gpu, weight) in weights.iter().enumerate().filter(|(_, w)| **w > 0.0) {
        seen += weight;
        // By running sums, so that rounding errors cancel.
        let end = (devices as f64 * (seen / sum)).round() as usize;
        pieces.push(Piece { gpu, range: at..end.clamp(at, devices), cpu: 0 });
        at = end.clamp(at, devices);
    }
    if pieces.is_empty() {
        pieces.push(Piece { gpu: 0, range: 0..0, cpu: 0 });
    }
    if let Some(last) = pieces.last_mut() {
        // The last running sum may fall short of 1 by its rounding.
        (last.range.end, last.cpu) = (count, count - at);
        if sum > 0.0 {
            last.cpu = cpu;
        }
    }
    pieces
}

/// The devices' weights before any measurement.
fn multiprocessors(gpus: &[Gpu]) -> Vec<f64> {
    gpus.iter().map(|gpu| f64::from(gpu.device().card().multiprocessors.max(1))).collect()
}

impl Fleet {
    /// The devices with these numbers; all devices if there are none.
    ///
    /// # Errors
    /// The error of `lanework_cuda` for an unavailable device.
    pub fn open(ordinals: &[u32], cpu: Engine, options: Options) -> Result<Fleet, lanework_cuda::Error> {
        let all: Vec<u32> = match ordinals {
            [] => lanework_cuda::devices()?.iter().map(|card| card.ordinal).collect(),
            some => some.to_vec(),
        };
        let gpus = all.iter().map(|&n| Gpu::open(n, cpu, options)).collect::<Result<Vec<_>, _>>()?;
        Ok(Fleet::of(gpus))
    }

    /// Devices that are open already, with their multiprocessors as weights. They keep their options, except for the
    /// first's break-even and CPU share. A fleet without devices refuses every call, since the CPU belongs to a device.
    #[must_use]
    pub fn of(gpus: Vec<Gpu>) -> Fleet {
        let weights = multiprocessors(&gpus);
        Fleet { gpus, weights }
    }

    /// Splits by multiprocessors again, as at first.
    pub fn reset_weights(&mut self) {
        self.weights = multiprocessors(&self.gpus);
    }

    /// The devices.
    #[must_use]
    pub fn gpus(&self) -> &[Gpu] {
        &self.gpus
    }

    /// Sets the options of all devices.
    pub fn set_options(&mut self, options: Options) {
        self.gpus.iter_mut().for_each(|gpu| gpu.set_options(options));
    }

    /// Splits by these weights from now on, for example measured rates: one for each device, 0 for an idle one.
    ///
    /// # Errors
    /// [`Error::Count`] for another number of weights.
    pub fn set_weights(&mut self, weights: &[f64]) -> Result<(), Error> {
        expect_count("weights", self.gpus.len(), weights.len())?;
        self.weights = weights.iter().map(|w| if w.is_finite() { w.max(0.0) } else { 0.0 }).collect();
        Ok(())
    }

    /// The pieces of a batch, none of them for a device that is lost.
    fn pieces(&self, count: usize) -> Vec<Piece> {
        let options = self.gpus.first().map(Gpu::options).copied().unwrap_or_default();
        let worth = count >= options.break_even.max(1);
        let alive = |(gpu, &weight): (&Gpu, &f64)| {
            if worth && !gpu.device().is_dead() { weight } else { 0.0 }
        };
        let weights: Vec<f64> = self.gpus.iter().zip(&self.weights).map(alive).collect();
        cut(count, &weights, options.cpu_share)
    }

    /// Refuses a fleet without devices, which would lose every item.
    fn expect_devices(&self) -> Result<(), Error> {
        if self.gpus.is_empty() { Err(Error::Count { what: "devices", expected: 1, got: 0 }) } else { Ok(()) }
    }

    /// Computes a batch piece by piece, one thread for each, and puts the results in order.
    fn spread<T: Send>(
        &self,
        count: usize,
        part: impl Fn(&Gpu, usize, Range<usize>, usize) -> Result<(Vec<T>, Tally), Error> + Sync,
    ) -> FleetResult<T> {
        let mut tallies = vec![Tally::default(); self.gpus.len()];
        let pieces = self.pieces(count);
        let part = &part;
        let done: Vec<(usize, Result<_, Error>)> = std::thread::scope(|scope| {
            let started: Vec<_> = pieces
                .into_iter()
                .map(|p| (p.gpu, scope.spawn(move || part(&self.gpus[p.gpu], p.gpu, p.range, p.cpu))))
                .collect();
            started
                .into_iter()
                .map(|(n, thread)| (n, thread.join().unwrap_or_else(|e| std::panic::resume_unwind(e))))
                .collect()
        });
        let mut all = Vec::with_capacity(count);
        for (n, result) in done {
            let (some, tally) = result?;
            all.extend(some);
            tallies[n] = tally;
        }
        expect_count("results", count, all.len())?;
        Ok((all, tallies))
    }

    /// The public keys of `keys`, all of one set, and each device's tally; the CPU's share counts with the last.
    ///
    /// # Errors
    /// As for [`Gpu::keygen`]; [`Error::Count`] for a fleet without devices.
    pub fn keygen(&self, keys: &[SecretKey]) -> FleetResult<PublicKey> {
        self.expect_devices()?;
        let Some(params) = one_set(keys.iter().map(SecretKey::params))? else {
            return Ok((Vec::new(), vec![Tally::default(); self.gpus.len()]));
        };
        self.spread(keys.len(), |gpu, _, range, cpu| {
            let count = range.len();
            let (device, engine, spot_check) = (&gpu.device, gpu.cpu, gpu.options.spot_check);
            let work = Keygen { device, cpu: engine, params, keys: &keys[range], spot_check };
            gpu.run_part(params, count, cpu, &work)
        })
    }

    /// Expands secret keys of one set on every device.
    ///
    /// # Errors
    /// As for [`Gpu::expand_secret`], of the first device that fails; [`Error::Count`] for a fleet without devices.
    pub fn expand_secret(&self, keys: &[SecretKey]) -> Result<FleetSigningKeys, GpuError> {
        self.expect_devices()?;
        self.gpus.iter().map(|gpu| gpu.expand_secret(keys)).collect::<Result<_, _>>().map(FleetSigningKeys)
    }

    /// Expands public keys of one set on every device.
    ///
    /// # Errors
    /// As for [`Gpu::expand_public`], of the first device that fails; [`Error::Count`] for a fleet without devices.
    pub fn expand_public(&self, keys: &[PublicKey]) -> Result<FleetVerifyingKeys, GpuError> {
        self.expect_devices()?;
        self.gpus.iter().map(|gpu| gpu.expand_public(keys)).collect::<Result<_, _>>().map(FleetVerifyingKeys)
    }

    /// Signs each message, hedged with `rng`.
    ///
    /// # Errors
    /// As for [`Gpu::sign`]; [`Error::Count`] for a fleet without devices, or keys that were expanded on fewer.
    pub fn sign<M: AsRef<[u8]> + Sync, R: TryCryptoRng + ?Sized>(
        &self,
        signers: FleetSigners<'_>,
        messages: &[M],
        release: Release,
        rng: &mut R,
    ) -> FleetResult<Result<Signature, Error>> {
        self.sign_each(signers, &Message::whole(messages), release, rng)
    }

    /// [`Fleet::sign`] for messages that were hashed piece by piece.
    ///
    /// # Errors
    /// As for [`Fleet::sign`]; [`Error::WrongRound`] and [`Error::WrongSet`] if a digest belongs elsewhere.
    pub fn sign_digests<R: TryCryptoRng + ?Sized>(
        &self,
        signers: FleetSigners<'_>,
        digests: &[MessageDigest],
        release: Release,
        rng: &mut R,
    ) -> FleetResult<Result<Signature, Error>> {
        self.sign_each(signers, &Message::hashed(digests), release, rng)
    }

    fn sign_each<R: TryCryptoRng + ?Sized>(
        &self,
        signers: FleetSigners<'_>,
        messages: &[Message<'_>],
        release: Release,
        rng: &mut R,
    ) -> FleetResult<Result<Signature, Error>> {
        self.expect_devices()?;
        let params = match signers {
            FleetSigners::Each(keys) => {
                expect_count("keys", messages.len(), keys.len())?;
                one_set(keys.iter().map(SecretKey::params))?
            }
            FleetSigners::One(FleetSigningKeys(held)) => self.set_of(held, GpuSigningKeys::params)?,
            FleetSigners::Of(FleetSigningKeys(held), which) => {
                expect_numbers(messages.len(), held.first().map_or(0, GpuSigningKeys::len), which)?;
                self.set_of(held, GpuSigningKeys::params)?
            }
        };
        let Some(params) = params.filter(|_| !messages.is_empty()) else {
            return Ok((Vec::new(), vec![Tally::default(); self.gpus.len()]));
        };
        messages.iter().try_for_each(|message| message.expect(params))?;
        let randomizers: Vec<Zeroizing<Vec<u8>>> =
            messages.iter().map(|_| draw_randomizer(params, rng)).collect::<Result<_, _>>()?;
        self.spread(messages.len(), |gpu, n, range, cpu| {
            let signers = match signers {
                FleetSigners::Each(keys) => GpuSigners::Each(&keys[range.clone()]),
                FleetSigners::One(FleetSigningKeys(held)) => GpuSigners::One(&held[n]),
                FleetSigners::Of(FleetSigningKeys(held), which) => {
                    GpuSigners::Of(&held[n], &which[range.clone()])
                }
            };
            let (count, messages, randomizers) = (range.len(), &messages[range.clone()], &randomizers[range]);
            let (device, engine) = (&gpu.device, gpu.cpu);
            let work = Signing { device, cpu: engine, params, signers, messages, randomizers, release };
            gpu.run_part(params, count, cpu, &work)
        })
    }

    /// Verifies each signature against the message of the same index.
    ///
    /// # Errors
    /// As for [`Gpu::verify`]; [`Error::Count`] for a fleet without devices, or keys that were expanded on fewer.
    pub fn verify<M: AsRef<[u8]> + Sync>(
        &self,
        verifiers: FleetVerifiers<'_>,
        messages: &[M],
        signatures: &[Signature],
    ) -> FleetResult<Result<(), Error>> {
        self.verify_each(verifiers, &Message::whole(messages), signatures)
    }

    /// [`Fleet::verify`] for messages that were hashed piece by piece.
    ///
    /// # Errors
    /// As for [`Fleet::verify`].
    pub fn verify_digests(
        &self,
        verifiers: FleetVerifiers<'_>,
        digests: &[MessageDigest],
        signatures: &[Signature],
    ) -> FleetResult<Result<(), Error>> {
        self.verify_each(verifiers, &Message::hashed(digests), signatures)
    }

    fn verify_each(
        &self,
        verifiers: FleetVerifiers<'_>,
        messages: &[Message<'_>],
        signatures: &[Signature],
    ) -> FleetResult<Result<(), Error>> {
        self.expect_devices()?;
        expect_count("signatures", messages.len(), signatures.len())?;
        let params = match verifiers {
            FleetVerifiers::Each(keys) => {
                expect_count("keys", messages.len(), keys.len())?;
                one_set(keys.iter().map(PublicKey::params))?
            }
            FleetVerifiers::One(FleetVerifyingKeys(held)) => self.set_of(held, GpuVerifyingKeys::params)?,
            FleetVerifiers::Of(FleetVerifyingKeys(held), which) => {
                expect_numbers(messages.len(), held.first().map_or(0, GpuVerifyingKeys::len), which)?;
                self.set_of(held, GpuVerifyingKeys::params)?
            }
        };
        let Some(params) = params.filter(|_| !messages.is_empty()) else {
            return Ok((Vec::new(), vec![Tally::default(); self.gpus.len()]));
        };
        let admissions = admit_each(|_| params, messages, signatures);
        self.spread(messages.len(), |gpu, n, range, cpu| {
            let verifiers = match verifiers {
                FleetVerifiers::Each(keys) => GpuVerifiers::Each(&keys[range.clone()]),
                FleetVerifiers::One(FleetVerifyingKeys(held)) => GpuVerifiers::One(&held[n]),
                FleetVerifiers::Of(FleetVerifyingKeys(held), which) => {
                    GpuVerifiers::Of(&held[n], &which[range.clone()])
                }
            };
            let (count, admissions) = (range.len(), &admissions[range]);
            let work = Verifying { cpu: gpu.cpu, params, verifiers, admissions };
            gpu.run_part(params, count, cpu, &work)
        })
    }

    /// The set of keys that every device holds.
    fn set_of<K>(
        &self,
        held: &[K],
        set: impl Fn(&K) -> &'static Params,
    ) -> Result<Option<&'static Params>, Error> {
        expect_count("devices with expanded keys", self.gpus.len(), held.len())?;
        Ok(held.first().map(set))
    }
}

#[cfg(test)]
mod tests {
    use getrandom::SysRng;
    use lanework_mayo::{Round, Set};

    use super::*;

    #[test]
    fn a_fleet_without_devices_refuses_every_call() {
        let (fleet, engine) = (Fleet::of(Vec::new()), Engine::portable());
        let params = Params::of(Round::Two, Set::Mayo2);
        let secret = [SecretKey::from_seed(params, &[7; 24]).unwrap()];
        let public = [secret[0].public_key(engine)];
        let signatures = [secret[0].sign(engine, b"m").unwrap()];
        let none = Error::Count { what: "devices", expected: 1, got: 0 };
        assert_eq!(fleet.keygen(&secret), Err(none.clone()));
        assert_eq!(fleet.expand_secret(&secret).unwrap_err(), GpuError::Batch(none.clone()));
        assert_eq!(fleet.expand_public(&public).unwrap_err(), GpuError::Batch(none.clone()));
        let (signing, verifying) = (FleetSigningKeys(Vec::new()), FleetVerifyingKeys(Vec::new()));
        for signers in [FleetSigners::Each(&secret), FleetSigners::One(&signing)] {
            let made = fleet.sign(signers, &[b"m"], Release::Verified, &mut SysRng);
            assert_eq!(made, Err(none.clone()), "{signers:?}");
        }
        for verifiers in [FleetVerifiers::Each(&public), FleetVerifiers::One(&verifying)] {
            assert_eq!(fleet.verify(verifiers, &[b"m"], &signatures), Err(none.clone()), "{verifiers:?}");
        }
    }

    fn piece(gpu: usize, range: Range<usize>, cpu: usize) -> Piece {
        Piece { gpu, range, cpu }
    }

    #[test]
    fn pieces_cover_a_batch_by_weight() {
        assert_eq!(cut(10, &[1.0, 1.0], 0.0), [piece(0, 0..5, 0), piece(1, 5..10, 0)]);
        assert_eq!(cut(12, &[1.0, 0.0, 2.0], 0.25), [piece(0, 0..3, 0), piece(2, 3..12, 3)]);
        // No device is wanted: the CPU computes everything.
        assert_eq!(cut(7, &[0.0, 0.0], 0.1), [piece(0, 0..7, 7)]);
        assert_eq!(cut(0, &[1.0, 3.0], 0.5).iter().map(|p| p.range.len()).sum::<usize>(), 0);
        for count in 0..200 {
            for share in [0.0, 0.31, 1.0] {
                let pieces = cut(count, &[0.1, 0.7, 0.1], share);
                assert_eq!(pieces[0].range.start, 0);
                assert!(pieces.windows(2).all(|w| w[0].range.end == w[1].range.start), "{pieces:?}");
                let last = &pieces[2];
                assert!(last.range.end == count && last.cpu <= last.range.len(), "{pieces:?}");
            }
        }
    }
}
