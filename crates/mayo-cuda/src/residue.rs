//! Searches freed memory for planted secrets, in the context that had them and in a fresh one.
//!
//! An empty search shows something only if the search works. So everything runs twice, the second time on a device that
//! frees secrets without clearing, and only kinds of secrets that are found then count.
#![forbid(unsafe_code)]

use getrandom::SysRng;
use lanework_cuda::{Device, Found, Reopener};
use lanework_mayo::internals::SEED_PK_BYTES;
use lanework_mayo::{Engine, Params, SecretKey};
use rand_core::TryRng as _;
use zeroize::Zeroizing;

use super::check::{ALONE, Row};
use super::{Gpu, GpuSigners, Options, Release};

/// Keys and messages of a batch.
const COUNT: usize = 4;
/// Bytes of a longer secret that are searched for.
const NEEDLE: usize = 32;

/// The kinds of needles, in the order of each key's.
const KINDS: [&str; 5] = ["secret seeds", "randomizers", "digests", "O", "vinegar vectors"];
/// The number of kinds that reach pinned memory: the host's inputs.
const GIVEN: usize = 3;

/// Searches freed memory of the device, and freed pinned memory of the host, for secrets. The device is opened anew; no other
/// user in this process may hold it, or the context is not fresh. A kind of secret that is not found even without
/// overwriting counts as skipped.
#[must_use]
pub fn secrets_left(device: Device, cpu: Engine, params: &'static Params) -> Row {
    let card = device.card();
    let what = format!("secrets left in freed memory, {}, device {}", params.name(), card.ordinal);
    let mut row = Row::new(what, card.backend());
    let reopener = device.reopener();
    drop(device);
    let mut unshown = Vec::new();
    for (fresh, context) in [(false, "the same context"), (true, "a fresh context")] {
        let both = look(&reopener, cpu, params, fresh, false)
            .and_then(|real| look(&reopener, cpu, params, fresh, true).map(|twin| (real, twin)));
        let (real, twin) = match both {
            Ok(both) => both,
            Err(why) => {
                row.case(false, || format!("{context}: {why}"));
                continue;
            }
        };
        let places = [
            ("device memory", &real.on_device, &twin.on_device, KINDS.len()),
            ("pinned memory", &real.pinned, &twin.pinned, GIVEN),
        ];
        for (place, real, twin, kinds) in places {
            for (i, kind) in KINDS[..kinds].iter().enumerate() {
                let among = |found: &[usize]| found.iter().any(|needle| needle % KINDS.len() == i);
                if among(real) {
                    row.case(false, || format!("{kind} are left in {place} of {context}"));
                } else if among(twin) {
                    row.case(true, String::new);
                } else {
                    unshown.push(format!("{kind} in {place} of {context}"));
                }
            }
        }
    }
    for _ in 0..unshown.len() {
        // All have the same wording; failures come first.
        let of =
            if row.passed + row.failed == 0 { String::new() } else { format!(" of {}", unshown.join(", ")) };
        let why = format!("nothing was shown{of}: they are not found where they were not overwritten either");
        let why = if row.failed > 0 { row.why.clone() } else { why };
        row.skip(&why);
    }
    row
}

/// Plants secrets, gives everything back, and searches.
fn look(
    reopener: &Reopener,
    cpu: Engine,
    params: &'static Params,
    fresh: bool,
    leave: bool,
) -> Result<Found, String> {
    let open = || reopener.open().map_err(|e| e.to_string());
    let device = open()?;
    let used = if leave { device.leaving_secrets() } else { device.clone() };
    let gpu = Gpu::of(used, cpu, Options { spot_check: 0, ..ALONE }).map_err(|e| e.to_string())?;
    let needles = plant(&gpu, cpu, params)?;
    drop(gpu);
    let device = if fresh {
        drop(device);
        open()?
    } else {
        device
    };
    device.search(&needles).map_err(|e| e.to_string())
}

/// The message's digest, O and the first attempt's vinegar vectors, packed as on a device.
fn secrets_of(
    cpu: Engine,
    params: &Params,
    seed_sk: &[u8],
    message: &[u8],
    salt: &[u8],
) -> [Zeroizing<Vec<u8>>; 3] {
    let hash = |input: &[&[u8]], bytes: usize| {
        let mut out = Zeroizing::new(vec![0; bytes]);
        cpu.expand().shake256(input, &mut out);
        out
    };
    let seeds = hash(&[seed_sk], SEED_PK_BYTES + params.o_bytes());
    let o = Zeroizing::new(seeds[SEED_PK_BYTES..].to_vec());
    let digest = hash(&[message], params.digest_bytes());
    let drawn = params.k() * params.v_bytes() + params.r_bytes();
    // Attempts are numbered from 0.
    let vinegar = hash(&[&digest, salt, seed_sk, &[0]], drawn);
    [digest, o, vinegar]
}

/// Key generation, signing, expanding and signing with expanded keys, by fresh secrets: the needles, key by key.
fn plant(gpu: &Gpu, cpu: Engine, params: &'static Params) -> Result<Vec<Vec<u8>>, String> {
    let draw = || -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; params.salt_bytes()];
        SysRng.try_fill_bytes(&mut bytes).map_err(|e| e.to_string())?;
        Ok(bytes)
    };
    gpu.test(params)?;
    // A further attempt would overwrite the first one's vinegar vectors; four signatures in a row seldom need one.
    for _ in 0..8 {
        let seeds: Vec<Vec<u8>> = (0..COUNT).map(|_| draw()).collect::<Result<_, _>>()?;
        let randomizers: Vec<Zeroizing<Vec<u8>>> =
            (0..COUNT).map(|_| draw().map(Zeroizing::new)).collect::<Result<_, _>>()?;
        let keys: Vec<SecretKey> = seeds
            .iter()
            .map(|seed| SecretKey::from_seed(params, seed).map_err(|e| e.to_string()))
            .collect::<Result<_, _>>()?;
        let messages: Vec<Vec<u8>> = (0..COUNT).map(|_| draw()).collect::<Result<_, _>>()?;
        let (_, tally) = gpu.keygen(&keys).map_err(|e| e.to_string())?;
        let mut tallies = vec![tally];
        let held = gpu.expand_secret(&keys).map_err(|e| e.to_string())?;
        let mut signed = Vec::new();
        for signers in [GpuSigners::Of(&held, &[0, 1, 2, 3]), GpuSigners::Each(&keys)] {
            let made = gpu.sign_randomized(params, signers, &messages, &randomizers, Release::Verified);
            let (made, tally) = made.map_err(|e| e.to_string())?;
            signed = made.into_iter().collect::<Result<_, _>>().map_err(|e| e.to_string())?;
            tallies.push(tally);
        }
        if let Some(tally) = tallies.iter().find(|t| t.device != COUNT || t.trouble.is_some()) {
            let why = tally.trouble.as_deref().unwrap_or("no reason given");
            return Err(format!("{} operations were left to the CPU: {why}", tally.cpu));
        }
        if tallies.iter().any(|t| t.restarts > 0) {
            continue;
        }
        let mut needles = Vec::new();
        for (i, signature) in signed.iter().enumerate() {
            let salt = &signature.as_bytes()[params.signature_bytes() - params.salt_bytes()..];
            needles.extend([seeds[i].clone(), randomizers[i].to_vec()]);
            let secrets = secrets_of(cpu, params, &seeds[i], &messages[i], salt);
            needles.extend(secrets.map(|secret| secret[..NEEDLE].to_vec()));
        }
        return Ok(needles);
    }
    Err("signing took further attempts again and again".to_owned())
}

#[cfg(all(test, feature = "emulated"))]
mod tests {
    use lanework_cuda::Emulation;

    use super::*;
    use lanework_mayo::{Round, Set};

    const EMULATION: Emulation = Emulation {
        memory: 64 << 20,
        shared_per_block: 99 * 1024,
        multiprocessors: 4,
        capability: (8, 9),
        order: lanework_cuda::Order::Forward,
        recycles: true,
    };
    /// Kinds of secrets in both places, in both contexts.
    const CASES: usize = 2 * (KINDS.len() + GIVEN);

    #[test]
    fn no_secret_is_left_and_each_is_found_that_is() {
        for params in [Params::of(Round::Three, Set::Mayo1), Params::of(Round::Two, Set::Mayo2)] {
            let (device, _) = Device::emulated(EMULATION);
            let row = secrets_left(device, Engine::best(), params);
            assert!(row.ok() && (row.passed, row.skipped) == (CASES, 0), "{row:?}");
        }
    }

    #[test]
    fn a_device_that_overwrites_nothing_is_found_out() {
        let (device, _) = Device::emulated(EMULATION);
        let row = secrets_left(device.leaving_secrets(), Engine::best(), Params::of(Round::Two, Set::Mayo2));
        assert!(row.failed == CASES && row.why.contains("secret seeds are left in device memory"), "{row:?}");
    }

    #[test]
    fn a_search_that_cannot_find_shows_nothing() {
        // Fresh memory for every buffer: old content never returns.
        let (device, _) = Device::emulated(Emulation { recycles: false, ..EMULATION });
        let row = secrets_left(device, Engine::best(), Params::of(Round::Two, Set::Mayo2));
        assert!(!row.ok() && (row.failed, row.skipped) == (0, CASES), "{row:?}");
        assert!(row.why.starts_with("nothing was shown: they are not found where"), "{row:?}");
    }
}
