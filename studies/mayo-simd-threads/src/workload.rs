//! The fixed workload, one process for each run: keys made, messages signed, signatures verified.
#![forbid(unsafe_code)]

use lanework_cpu::{Cpu, Threads};
use lanework_mayo::internals::Scheme;
use lanework_mayo::internals::known::Maker;
use lanework_study::Failure;
use serde::{Deserialize, Serialize};

use super::backends::{self, Engine, Made};
use super::sets::Set;

/// A backend of either table, and how many threads share the batch; or a build of the published sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Configuration {
    pub(super) backend: String,
    pub(super) threads: usize,
    /// OMP_NUM_THREADS, for a build.
    pub(super) openmp: Option<usize>,
}

impl Configuration {
    /// From `BACKEND`, `BACKEND+threads=N` or `BUILD+omp=N`.
    pub(super) fn parse(name: &str) -> Result<Configuration, Failure> {
        let wrong =
            || Failure::input(format!("'{name}': write BACKEND+threads=N or BUILD+omp=N, N from 1 to 4096"));
        let number = |text: &str| match text.parse() {
            Ok(n @ 1..=4096) => Ok(n),
            _ => Err(wrong()),
        };
        if let Some((build, n)) = name.split_once("+omp=") {
            return Ok(Configuration { backend: build.to_owned(), threads: 1, openmp: Some(number(n)?) });
        }
        match name.split_once("+threads=") {
            Some((backend, n)) => {
                Ok(Configuration { backend: backend.to_owned(), threads: number(n)?, openmp: None })
            }
            None => Ok(Configuration { backend: name.to_owned(), threads: 1, openmp: None }),
        }
    }

    pub(super) fn engine(&self, cpu: &Cpu) -> Result<Engine, Failure> {
        backends::engine(&self.backend, cpu).map_err(Failure::unavailable)
    }

    /// Threads that work at the same time: in a batch, or inside one operation.
    pub(super) fn busy(&self) -> usize {
        if let Some(threads) = self.openmp {
            return threads;
        }
        let inside = self.backend.split_once("+inside=").and_then(|(_, n)| n.parse().ok());
        self.threads * inside.unwrap_or(1)
    }
}

/// What a run of the workload reports. The parent compares reports, and prints what ran, not what it requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) backend: String,
    pub(super) summary: String,
    pub(super) elimination: String,
    pub(super) own_products: bool,
    pub(super) aes: String,
    /// Threads of the process at its end, as the system counts them; 0 where it does not report them.
    pub(super) threads: usize,
    pub(super) count: usize,
    /// Signatures that verified.
    pub(super) valid: usize,
    /// A checksum of all public keys and signatures: the same for every configuration.
    pub(super) sum: u64,
}

/// The set at a path like `round2/mayo1`.
pub(super) fn set(path: &str) -> Result<Set, Failure> {
    Set::all()
        .find(|set| set.path() == path)
        .ok_or_else(|| Failure::input(format!("there is no parameter set '{path}'")))
}

/// Threads of this process, as Linux counts them.
pub(super) fn threads_now() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("Threads:"));
    line.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
}

/// Bytes that differ from item to item and are the same in every process.
pub(super) fn filled<const N: usize>(item: usize, purpose: u64) -> [u8; N] {
    let mut state = (item as u64) << 8 | purpose;
    let mut out = [0; N];
    for chunk in out.chunks_mut(8) {
        // SplitMix64: inputs of a benchmark, not secrets.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        chunk.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes()[..chunk.len()]);
    }
    out
}

/// A running checksum of words; cheap enough not to show beside the work.
pub(super) fn fold(sum: u64, bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(sum, |sum, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (sum ^ u64::from_le_bytes(word)).wrapping_mul(0x2545_f491_4f6c_dd1d).rotate_left(29)
    })
}

/// Key generation, signing and verification of item number `item`: the checksum, and whether the signature is valid.
fn one(on: Scheme, item: usize) -> (u64, bool) {
    let set = on.sizes();
    let seed = &filled::<40>(item, 1)[..set.secret_key_bytes()];
    let randomizer = &filled::<40>(item, 2)[..set.salt_bytes];
    let message = filled::<32>(item, 3);
    let public_key = on.public_key(seed);
    let Some(signature) = on.sign(seed, &message, randomizer) else { return (0, false) };
    let valid = on.verify(&public_key, &message, &signature);
    (fold(fold(0, &public_key), &signature), valid)
}

/// Runs it.
pub(super) fn run(c: &Configuration, cpu: &Cpu, set: Set, count: usize) -> Result<Report, Failure> {
    let engine = c.engine(cpu)?;
    let on = engine.scheme(set);
    let mut items = vec![(0, false); count];
    let mut work = |threads: Threads<'_>| {
        threads.for_each(&mut items, |i, item| *item = one(on, i)).map_err(Failure::unavailable)
    };
    let threads = if c.threads == 1 {
        work(Threads::One)?;
        threads_now()
    } else {
        let pool = Threads::pool(c.threads).map_err(Failure::unavailable)?;
        work(Threads::Pool(&pool))?;
        threads_now()
    };
    let Made { name, summary, elimination, own_products, aes } = engine.describe();
    Ok(Report {
        backend: name.to_owned(),
        summary: summary.to_owned(),
        elimination: elimination.to_owned(),
        own_products,
        aes: aes.to_owned(),
        threads,
        count,
        valid: items.iter().filter(|i| i.1).count(),
        sum: items.iter().fold(0, |sum, i| fold(sum, &i.0.to_le_bytes())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(name: &str, path: &str, count: usize) -> Report {
        let c = Configuration::parse(name).unwrap();
        run(&c, &Cpu::detect(), set(path).unwrap(), count).unwrap()
    }

    #[test]
    fn configurations_are_read_and_refused() {
        let c = Configuration::parse("avx2+inside=2+threads=3").unwrap();
        assert_eq!((c.backend.as_str(), c.threads, c.busy()), ("avx2+inside=2", 3, 6));
        assert_eq!(Configuration::parse("portable").unwrap().busy(), 1);
        for bad in
            ["portable+threads=", "portable+threads=0", "portable+threads=x", "portable+threads=9999999"]
        {
            assert!(Configuration::parse(bad).is_err(), "{bad}");
        }
        let c = Configuration::parse("liboqs12-flags-omp-pragmas+omp=4").unwrap();
        assert_eq!((c.backend.as_str(), c.threads, c.busy()), ("liboqs12-flags-omp-pragmas", 1, 4));
        assert!(Configuration::parse("liboqs12-flags-omp+omp=0").is_err());
        assert!(set("round4/mayo1").is_err() && set("round1/mayo5").is_ok());
        assert!(Configuration::parse("sse9").unwrap().engine(&Cpu::detect()).is_err());
    }

    #[test]
    fn every_configuration_does_the_same_work() {
        let plain = report("portable", "round2/mayo2", 3);
        assert_eq!((plain.valid, plain.backend.as_str(), plain.aes.as_str()), (3, "portable", "bitsliced"));
        for name in ["portable+inside=2", "portable+threads=2"] {
            let other = report(name, "round2/mayo2", 3);
            assert_eq!((other.sum, other.valid), (plain.sum, 3), "{name}");
        }
        assert_ne!(report("portable", "round2/mayo2", 2).sum, plain.sum);
        assert_ne!(report("portable", "round1/mayo2", 3).sum, plain.sum);
    }

    #[test]
    fn the_checksum_sees_every_byte() {
        let mut bytes = [7u8; 21];
        let sum = fold(0, &bytes);
        for i in 0..bytes.len() {
            bytes[i] ^= 0x10;
            assert_ne!(fold(0, &bytes), sum, "{i}");
            bytes[i] ^= 0x10;
        }
    }
}
