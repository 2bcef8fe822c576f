//! Variants that only a study may run: mixtures of tiers, threads inside one operation, round 1.
//!
//! They are rows of the same type as those of [`BACKENDS`] and are reached in the same way, but stand in a table of
//! their own that no choice of a backend ever looks at. What a row is made of shows in [`describe`].

use lanework_cpu::{Backend, Cpu, Feature, Features, Unavailable};

use crate::backend::Engine;
use crate::backend::inside::{self, with_threads};
use crate::backend::{BACKENDS, Expand, Kernels, portable};
#[cfg(target_arch = "x86_64")]
use crate::backend::{aesni, avx2, avx512};

mod phases;

pub use phases::{Bench, Operation, Phase};

/// The features that the mixed rows need beside those of a tier.
const AESNI: Features = Features::of(&[Feature::Sse41, Feature::Aes]);

/// The study's rows. None is in [`BACKENDS`].
#[cfg(target_arch = "x86_64")]
pub static STUDY_BACKENDS: &[Backend<Kernels>] =
    // SAFETY: a row's list has every feature that its kernels enable.
    unsafe {
        &[
            Backend::new("portable+aesni", "portable arithmetic and hashing, AES-NI", AESNI, &PORTABLE_AESNI),
            Backend::new(
                "avx2-softaes",
                "AVX2 arithmetic and hashing, bitsliced AES",
                Features::AVX2_AES_BMI_PCLMULQDQ,
                &AVX2_SOFTAES,
            ),
            Backend::new(
                "portable+inside=1",
                "portable rows, never forked",
                Features::NONE,
                &PORTABLE_INSIDE[0],
            ),
            Backend::new(
                "portable+inside=2",
                "portable rows, forked over 2",
                Features::NONE,
                &PORTABLE_INSIDE[1],
            ),
            Backend::new(
                "portable+inside=4",
                "portable rows, forked over 4",
                Features::NONE,
                &PORTABLE_INSIDE[2],
            ),
            Backend::new(
                "avx2+inside=1",
                "AVX2 rows, never forked",
                Features::AVX2_AES_BMI_PCLMULQDQ,
                &AVX2_INSIDE[0],
            ),
            Backend::new(
                "avx2+inside=2",
                "AVX2 rows, forked over 2",
                Features::AVX2_AES_BMI_PCLMULQDQ,
                &AVX2_INSIDE[1],
            ),
            Backend::new(
                "avx2+inside=4",
                "AVX2 rows, forked over 4",
                Features::AVX2_AES_BMI_PCLMULQDQ,
                &AVX2_INSIDE[2],
            ),
            Backend::new(
                "avx512+inside=1",
                "AVX-512 rows, never forked",
                Features::AVX512,
                &AVX512_INSIDE[0],
            ),
            Backend::new(
                "avx512+inside=2",
                "AVX-512 rows, forked over 2",
                Features::AVX512,
                &AVX512_INSIDE[1],
            ),
            Backend::new(
                "avx512+inside=4",
                "AVX-512 rows, forked over 4",
                Features::AVX512,
                &AVX512_INSIDE[2],
            ),
        ]
    };

/// The study's rows. None is in [`BACKENDS`].
#[cfg(not(target_arch = "x86_64"))]
pub static STUDY_BACKENDS: &[Backend<Kernels>] =
    // SAFETY: a row's list has every feature that its kernels enable.
    unsafe {
        &[
            Backend::new(
                "portable+inside=1",
                "portable rows, never forked",
                Features::NONE,
                &PORTABLE_INSIDE[0],
            ),
            Backend::new(
                "portable+inside=2",
                "portable rows, forked over 2",
                Features::NONE,
                &PORTABLE_INSIDE[1],
            ),
            Backend::new(
                "portable+inside=4",
                "portable rows, forked over 4",
                Features::NONE,
                &PORTABLE_INSIDE[2],
            ),
        ]
    };

#[cfg(target_arch = "x86_64")]
static PORTABLE_AESNI: Kernels = Kernels {
    expand: Expand {
        aes: "aes-ni",
        aes128_ctr: aesni::aes128_ctr,
        aes128_ctr_xor: aesni::aes128_ctr_xor,
        ..portable::EXPAND
    },
    sets: portable::SETS,
};

#[cfg(target_arch = "x86_64")]
static AVX2_SOFTAES: Kernels = Kernels {
    expand: Expand {
        aes: portable::EXPAND.aes,
        aes128_ctr: portable::EXPAND.aes128_ctr,
        aes128_ctr_xor: portable::EXPAND.aes128_ctr_xor,
        ..avx2::EXPAND
    },
    sets: avx2::SETS,
};

/// One, two and four threads.
macro_rules! inside {
    ($tier:ident, $isa:ty) => {{
        const PLAIN: Kernels = Kernels { expand: $tier::EXPAND, sets: $tier::SETS };
        [with_threads::<1, $isa>(PLAIN), with_threads::<2, $isa>(PLAIN), with_threads::<4, $isa>(PLAIN)]
    }};
}

static PORTABLE_INSIDE: [Kernels; 3] = inside!(portable, inside::Portable);
#[cfg(target_arch = "x86_64")]
static AVX2_INSIDE: [Kernels; 3] = inside!(avx2, inside::Avx2);
#[cfg(target_arch = "x86_64")]
static AVX512_INSIDE: [Kernels; 3] = inside!(avx512, inside::Avx512);

/// The row called `name`, of either table, if `cpu` can run it.
///
/// # Errors
/// [`Unavailable`] when there is no such row or the CPU lacks what it needs.
pub fn engine(name: &str, cpu: &Cpu) -> Result<Engine, Unavailable> {
    let row = rows().find(|row| row.name() == name).ok_or_else(|| Unavailable {
        what: format!("backend '{name}'"),
        why: format!(
            "there is none of that name; known: {}",
            rows().map(Backend::name).collect::<Vec<_>>().join(", ")
        ),
    })?;
    row.get(cpu)
}

/// All rows: those that anybody may run, then the study's.
pub fn rows() -> impl Iterator<Item = &'static Backend<Kernels>> {
    BACKENDS.iter().chain(STUDY_BACKENDS)
}

/// What an engine runs, read off its kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// The engine's own name.
    pub name: &'static str,
    /// What the row that holds these kernels says of itself; empty if no row holds them.
    pub summary: &'static str,
    /// The tier whose elimination this is, by the address of the code; empty if it is nobody's.
    pub elimination: &'static str,
    /// Whether the products are that tier's own code too.
    pub own_products: bool,
    /// What AES-128 runs on.
    pub aes: &'static str,
}

/// Reads off an engine's kernels what it runs, so that a report need not trust the name that was asked for.
#[must_use]
pub fn describe(engine: &Engine) -> Made {
    // Taking kernels out of a row asks for the CPU; here only addresses are compared, so any CPU that can run this
    // engine serves, and rows that it cannot run hold other kernels anyway.
    let cpu = Cpu::detect();
    let held = |row: &&Backend<Kernels>| row.get(&cpu).is_ok_and(|theirs| theirs == *engine);
    let index = crate::params::Params::of(crate::params::Round::DEFAULT, crate::params::Set::Mayo1).index();
    let mine = &engine.sets[index];
    let tier = BACKENDS.iter().find_map(|row| {
        let theirs = &row.get(&cpu).ok()?.kernels().sets[index];
        core::ptr::fn_addr_eq(theirs.solve, mine.solve)
            .then(|| (row.name(), core::ptr::fn_addr_eq(theirs.sign, mine.sign)))
    });
    Made {
        name: engine.name(),
        summary: rows().find(held).map_or("", |row| row.summary()),
        elimination: tier.map_or("", |t| t.0),
        own_products: tier.is_some_and(|t| t.1),
        aes: engine.aes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::{Record, Specification, digests, records, response, sha256_hex};
    use crate::params::{Params, Round, Set};
    use lanework_cpu::Settings;

    /// The rows that can run; a row that a skip is forbidden for fails instead.
    fn engines() -> Vec<Engine> {
        let settings = Settings::from_env().expect("the environment can be read");
        let cpu = settings.cpu();
        rows()
            .filter_map(|row| match engine(row.name(), &cpu) {
                Ok(e) => Some(e),
                Err(why) => {
                    let tier = row.name().split(['+', '-']).next().unwrap_or_default();
                    assert!(!settings.requires(row.name()) && !settings.requires(tier), "required: {why}");
                    eprintln!("SKIPPED {why}");
                    None
                }
            })
            .collect()
    }

    #[test]
    fn study_rows_are_out_of_reach() {
        for row in STUDY_BACKENDS {
            assert!(BACKENDS.iter().all(|b| b.name() != row.name()), "{}", row.name());
            let cpu = Cpu::detect();
            assert!(Engine::choose(&cpu, lanework_cpu::Select::Named(row.name())).is_err());
        }
        assert!(Params::all().all(|p| p.round != Round::One));
    }

    #[test]
    fn round_1_is_the_specification_and_the_published_answers() {
        for (p, e) in Params::study_only().flat_map(|p| engines().into_iter().map(move |e| (p, e))) {
            let all =
                records(&e, p, if e.name().contains('=') { 3 } else { 100 }).expect("honest seeds sign");
            let published = digests(p).expect("published");
            let first = sha256_hex(response(&all[..1]).as_bytes());
            assert_eq!(first, published.first, "{} {}", e.name(), p.name());
            if all.len() == 100 {
                let all = sha256_hex(response(&all).as_bytes());
                assert_eq!(all, published.all, "{} {}", e.name(), p.name());
            }
        }
        let e = engines()[0];
        for p in Params::study_only() {
            assert_eq!(records(&Specification(e), p, 1), records(&e, p, 1), "{}", p.name());
        }
    }

    #[test]
    fn round_1_refuses_what_was_tampered_with() {
        use crate::known::Maker;
        for e in engines() {
            for p in Params::study_only() {
                let mut made = records(&e, p, 1).expect("honest seeds sign");
                let Record { public_key, message, signed, .. } = made.remove(0);
                let mut signature = signed[..p.signature_bytes()].to_vec();
                assert!(e.verify(p, &public_key, &message, &signature));
                for at in [0, p.n / 2, signature.len() - 1] {
                    signature[at] ^= 1;
                    assert!(
                        !e.verify(p, &public_key, &message, &signature),
                        "{} {} {at}",
                        e.name(),
                        p.name()
                    );
                    signature[at] ^= 1;
                }
            }
        }
    }

    #[test]
    fn every_row_agrees_with_its_plain_twin() {
        let engines = engines();
        let plain = engines[0];
        for p in Params::all().chain(Params::study_only()) {
            let expect = records(&plain, p, 4).expect("honest seeds sign");
            for e in &engines {
                assert_eq!(records(e, p, 4).as_ref(), Some(&expect), "{} {}", e.name(), p.name());
            }
        }
    }

    #[test]
    fn the_products_of_every_row_are_portables_byte_for_byte() {
        let engines = engines();
        for p in Params::all().chain(Params::study_only()) {
            let mut expect = Bench::new(engines[0], p);
            for &e in &engines {
                let mut got = Bench::new(e, p);
                for op in Operation::ALL {
                    expect.run(op, Phase::Products);
                    got.run(op, Phase::Products);
                    assert_eq!(got.products(), expect.products(), "{} {} {op:?}", e.name(), p.name());
                }
            }
        }
    }

    #[test]
    fn an_engine_tells_what_it_is_made_of() {
        let cpu = Cpu::detect();
        let portable = describe(&engine("portable", &cpu).expect("needs nothing"));
        assert_eq!(
            (portable.elimination, portable.own_products, portable.aes),
            ("portable", true, "bitsliced")
        );
        let inside = describe(&engine("portable+inside=2", &cpu).expect("needs nothing"));
        assert_eq!((inside.elimination, inside.own_products), ("portable", false));
        assert!(inside.summary.contains("forked over 2"));
        if let Ok(mixed) = engine("portable+aesni", &cpu) {
            let mixed = describe(&mixed);
            assert_eq!((mixed.elimination, mixed.own_products, mixed.aes), ("portable", true, "aes-ni"));
        }
    }

    #[test]
    fn a_team_is_kept_and_works() {
        let e = engine("portable+inside=2", &Cpu::detect()).expect("needs nothing");
        let p = Params::of(Round::Three, Set::Mayo2);
        // Inside a thread that belongs to a pool already, and from several threads at once.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("threads");
        let expect = records(&e, p, 1);
        let (a, b) = pool.join(|| records(&e, p, 1), || records(&e, p, 1));
        assert!(expect.is_some() && a == expect && b == expect);
    }
}
