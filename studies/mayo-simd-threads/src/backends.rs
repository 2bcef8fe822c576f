//! The backends of the study: those that ship, mixtures of tiers, and threads inside one operation.
//!
//! No choice of a backend ever reads the rows here. What a row is made of shows in [`Engine::describe`].

use lanework_cpu::{Backend, Cpu, Feature, Features, Select, Unavailable};
use lanework_mayo::Kernels;
use lanework_mayo::internals::{BACKENDS, Expand, SETS, Scheme, SetKernels};

use crate::forked::{self, split};
use crate::round1;
use crate::sets::Set;

/// What a row changes in its tier. The first two are x86's.
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code))]
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// AES-NI instead of the tier's AES.
    AesNi,
    /// Bitsliced AES instead of the tier's.
    SoftAes,
    /// Products forked over 1, 2 or 4 threads.
    Inside(usize),
}

/// A row that only this study may run.
struct Row {
    name: &'static str,
    summary: &'static str,
    /// The backend that it is made of.
    tier: &'static str,
    change: Change,
}

const fn row(name: &'static str, summary: &'static str, tier: &'static str, change: Change) -> Row {
    Row { name, summary, tier, change }
}

static ROWS: &[Row] = &[
    #[cfg(target_arch = "x86_64")]
    row("portable+aesni", "portable arithmetic and hashing, AES-NI", "portable", Change::AesNi),
    #[cfg(target_arch = "x86_64")]
    row("avx2-softaes", "AVX2 arithmetic and hashing, bitsliced AES", "avx2", Change::SoftAes),
    row("portable+inside=1", "portable rows, never forked", "portable", Change::Inside(1)),
    row("portable+inside=2", "portable rows, forked over 2", "portable", Change::Inside(2)),
    row("portable+inside=4", "portable rows, forked over 4", "portable", Change::Inside(4)),
    #[cfg(target_arch = "x86_64")]
    row("avx2+inside=1", "AVX2 rows, never forked", "avx2", Change::Inside(1)),
    #[cfg(target_arch = "x86_64")]
    row("avx2+inside=2", "AVX2 rows, forked over 2", "avx2", Change::Inside(2)),
    #[cfg(target_arch = "x86_64")]
    row("avx2+inside=4", "AVX2 rows, forked over 4", "avx2", Change::Inside(4)),
    #[cfg(target_arch = "x86_64")]
    row("avx512+inside=1", "AVX-512 rows, never forked", "avx512", Change::Inside(1)),
    #[cfg(target_arch = "x86_64")]
    row("avx512+inside=2", "AVX-512 rows, forked over 2", "avx512", Change::Inside(2)),
    #[cfg(target_arch = "x86_64")]
    row("avx512+inside=4", "AVX-512 rows, forked over 4", "avx512", Change::Inside(4)),
];

impl Change {
    /// The features that it needs besides its tier's.
    fn needs(self) -> Features {
        match self {
            Change::AesNi => Features::of(&[Feature::Sse41, Feature::Aes]),
            _ => Features::NONE,
        }
    }

    fn expand(self, plain: Expand) -> Expand {
        match self {
            // SAFETY: `Row::get` makes a backend of it that needs these features.
            #[cfg(target_arch = "x86_64")]
            Change::AesNi => unsafe { plain.with_aesni() },
            Change::SoftAes => plain.with_aes_of(lanework_mayo::Engine::portable().kernels().expand()),
            _ => plain,
        }
    }
}

/// The kernels of round 1's sets for a backend that this CPU has.
fn round1_of(tier: &lanework_mayo::Engine) -> [SetKernels; 4] {
    let name = tier.name().split('-').next().unwrap_or_default();
    // SAFETY: an engine of the tier exists, so its features were checked.
    unsafe { round1::kernels(name) }
}

impl Row {
    fn get(&'static self, cpu: &Cpu) -> Result<Engine, Unavailable> {
        let named = |why: Unavailable| Unavailable { what: format!("backend '{}'", self.name), ..why };
        let tier = lanework_mayo::Engine::choose(cpu, Select::Named(self.tier)).map_err(named)?;
        let (shipped, round1) = (tier.kernels().sets(), round1_of(&tier));
        // SAFETY: an engine of the tier exists, so its features were checked, and they are what its rows need.
        let (shipped, round1) = unsafe {
            match (self.change, self.tier) {
                (Change::Inside(threads), "portable") => {
                    inside::<forked::Portable>(threads, shipped, &round1)
                }
                #[cfg(target_arch = "x86_64")]
                (Change::Inside(threads), "avx2") => inside::<forked::Avx2>(threads, shipped, &round1),
                #[cfg(target_arch = "x86_64")]
                (Change::Inside(threads), "avx512") => inside::<forked::Avx512>(threads, shipped, &round1),
                _ => (*shipped, round1),
            }
        };
        let expand = self.change.expand(*tier.kernels().expand());
        // SAFETY: the sets are in the tier's order, and the tier's features were checked above.
        let kernels = Box::leak(Box::new(unsafe { Kernels::new(expand, shipped) }));
        // SAFETY: besides the tier's features, which were checked, the kernels enable those of the change.
        let backend = unsafe { Backend::new(self.name, self.summary, self.change.needs(), kernels) };
        Ok(Engine { shipped: backend.get(cpu)?, summary: self.summary, round1: Box::leak(Box::new(round1)) })
    }
}

/// Products split over 1, 2 or 4 threads.
///
/// # Safety
/// As for [`split`].
unsafe fn inside<I: forked::Isa>(
    threads: usize,
    shipped: &[SetKernels; SETS],
    round1: &[SetKernels; 4],
) -> ([SetKernels; SETS], [SetKernels; 4]) {
    // SAFETY: the caller's promise: the CPU has what `I` needs.
    unsafe {
        match threads {
            1 => split::<1, I>(shipped, round1),
            2 => split::<2, I>(shipped, round1),
            _ => split::<4, I>(shipped, round1),
        }
    }
}

/// A backend of the study that this CPU can run, with kernels for round 1 too.
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    shipped: lanework_mayo::Engine,
    summary: &'static str,
    round1: &'static [SetKernels; 4],
}

/// What an engine runs, read off its kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// The engine's own name.
    pub name: &'static str,
    /// Its row's description.
    pub summary: &'static str,
    /// The tier whose elimination this is, by the address of the code; empty if no tier's.
    pub elimination: &'static str,
    /// Whether the products are that tier's own code too.
    pub own_products: bool,
    /// What AES-128 runs on.
    pub aes: &'static str,
}

impl Engine {
    /// The row's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.shipped.name()
    }

    /// What operations on a set run on.
    #[must_use]
    pub fn scheme(&self, set: Set) -> Scheme {
        match set {
            Set::Shipped(params) => self.shipped.kernels().scheme(params),
            Set::Round1(at) => {
                Scheme { symmetric: self.shipped.kernels().expand(), kernels: &self.round1[at] }
            }
        }
    }

    /// Identifies the kernels by their code, so that a report need not trust the requested name.
    #[must_use]
    pub fn describe(&self) -> Made {
        // Only addresses are compared, so the tiers that this CPU can run suffice: it runs these kernels.
        let mine = &self.shipped.kernels().sets()[0];
        let tier = lanework_mayo::Engine::available(&Cpu::detect()).find_map(|tier| {
            let theirs = &tier.kernels().sets()[0];
            theirs.solves_as(mine).then(|| (tier.name(), theirs.multiplies_as(mine)))
        });
        Made {
            name: self.name(),
            summary: self.summary,
            elimination: tier.map_or("", |t| t.0),
            own_products: tier.is_some_and(|t| t.1),
            aes: self.shipped.kernels().aes(),
        }
    }
}

/// The names of all rows: those that ship, then the study's.
pub fn names() -> impl Iterator<Item = &'static str> {
    BACKENDS.iter().map(Backend::name).chain(ROWS.iter().map(|row| row.name))
}

/// The row called `name` of either table, if `cpu` can run it.
///
/// # Errors
/// [`Unavailable`] when there is no such row or the CPU lacks what it needs.
pub fn engine(name: &str, cpu: &Cpu) -> Result<Engine, Unavailable> {
    if let Some(row) = ROWS.iter().find(|row| row.name == name) {
        return row.get(cpu);
    }
    let row = BACKENDS.iter().find(|row| row.name() == name).ok_or_else(|| Unavailable {
        what: format!("backend '{name}'"),
        why: format!("there is none of that name; known: {}", names().collect::<Vec<_>>().join(", ")),
    })?;
    let shipped = row.get(cpu)?;
    Ok(Engine { shipped, summary: row.summary(), round1: Box::leak(Box::new(round1_of(&shipped))) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanework_cpu::{Settings, Threads};
    use lanework_mayo::internals::known::{
        Maker, Record, Specification, digests, records, response, sha256_hex,
    };
    use lanework_mayo::{Params, Round};
    use lanework_suite::mayo::phases::{Bench, Operation, Phase};

    /// The rows that can run; a required row that cannot run fails instead.
    fn engines() -> Vec<Engine> {
        let settings = Settings::from_env().expect("the environment can be read");
        let cpu = settings.cpu();
        names()
            .filter_map(|name| match engine(name, &cpu) {
                Ok(e) => Some(e),
                Err(why) => {
                    let tier = ROWS.iter().find(|row| row.name == name).map_or(name, |row| row.tier);
                    assert!(!settings.requires(tier), "required: {why}");
                    eprintln!("SKIPPED {why}");
                    None
                }
            })
            .collect()
    }

    fn round_1() -> impl Iterator<Item = Set> {
        Set::all().filter(|set| matches!(set, Set::Round1(_)))
    }

    #[test]
    fn the_studys_rows_are_out_of_reach() {
        for row in ROWS {
            assert!(BACKENDS.iter().all(|b| b.name() != row.name), "{}", row.name);
            assert!(lanework_mayo::Engine::choose(&Cpu::detect(), Select::Named(row.name)).is_err());
        }
    }

    /// Every engine's answers to the known seeds of a set of round 1.
    fn published_answers(set: Set) {
        let Set::Round1(at) = set else { unreachable!() };
        let [hundred, first] = round1::DIGESTS[at];
        for e in engines() {
            let count = if e.name().contains('=') { 3 } else { 100 };
            let all = records(&e.scheme(set), count).expect("honest seeds sign");
            let what = format!("{} {}", e.name(), set.path());
            assert_eq!(sha256_hex(response(&all[..1]).as_bytes()), first, "{what}");
            if all.len() == 100 {
                assert_eq!(sha256_hex(response(&all).as_bytes()), hundred, "{what}");
            }
        }
    }

    #[test]
    fn round_1_is_the_specification_and_the_published_answers() {
        std::thread::scope(|scope| {
            for set in round_1() {
                scope.spawn(move || published_answers(set));
            }
        });
        for set in round_1() {
            let Scheme { symmetric, kernels } = engines()[0].scheme(set);
            let specification = Specification { symmetric, sizes: kernels.sizes() };
            assert_eq!(records(&specification, 1), records(&engines()[0].scheme(set), 1), "{}", set.path());
        }
    }

    #[test]
    fn round_1_refuses_what_was_tampered_with() {
        for e in engines() {
            for set in round_1() {
                let on = e.scheme(set);
                let mut made = records(&on, 1).expect("honest seeds sign");
                let Record { public_key, message, signed, .. } = made.remove(0);
                let mut signature = signed[..on.sizes().signature_bytes()].to_vec();
                assert!(on.verify(&public_key, &message, &signature));
                for at in [0, on.sizes().n / 2, signature.len() - 1] {
                    signature[at] ^= 1;
                    let valid = on.verify(&public_key, &message, &signature);
                    assert!(!valid, "{} {} {at}", e.name(), set.path());
                    signature[at] ^= 1;
                }
                assert!(!on.verify(&public_key, &message, &signature[1..]));
                assert!(!on.verify(&public_key[1..], &message, &signature));
                assert!(on.public_key(&[1]).is_empty() && on.sign(&[1], &message, &[1; 24]).is_none());
            }
        }
    }

    #[test]
    fn every_row_agrees_with_its_plain_twin() {
        let engines = engines();
        for set in Set::all() {
            let expect = records(&engines[0].scheme(set), 4).expect("honest seeds sign");
            for e in &engines {
                let made = records(&e.scheme(set), 4);
                assert_eq!(made.as_ref(), Some(&expect), "{} {}", e.name(), set.path());
            }
            if let Set::Shipped(params) = set {
                let first = sha256_hex(response(&expect[..1]).as_bytes());
                assert_eq!(first, digests(params).first, "{}", set.path());
            }
        }
    }

    #[test]
    fn the_products_of_every_row_are_portables_byte_for_byte() {
        let engines = engines();
        for set in Set::all() {
            let mut expect = Bench::new(engines[0].scheme(set));
            for e in &engines {
                let mut got = Bench::new(e.scheme(set));
                for op in Operation::ALL {
                    expect.run(op, Phase::Products);
                    got.run(op, Phase::Products);
                    let what = format!("{} {} {op:?}", e.name(), set.path());
                    assert_eq!(got.products(), expect.products(), "{what}");
                }
            }
        }
    }

    #[test]
    fn an_engine_tells_what_it_is_made_of() {
        let cpu = Cpu::detect();
        let portable = engine("portable", &cpu).expect("needs nothing").describe();
        assert_eq!(
            (portable.elimination, portable.own_products, portable.aes),
            ("portable", true, "bitsliced")
        );
        let inside = engine("portable+inside=2", &cpu).expect("needs nothing").describe();
        assert_eq!((inside.elimination, inside.own_products), ("portable", false));
        assert!(inside.summary.contains("forked over 2"));
        if let Ok(mixed) = engine("portable+aesni", &cpu) {
            let mixed = mixed.describe();
            assert_eq!((mixed.elimination, mixed.own_products, mixed.aes), ("portable", true, "aes-ni"));
        }
        if let Ok(mixed) = engine("avx2-softaes", &cpu) {
            let mixed = mixed.describe();
            assert_eq!((mixed.elimination, mixed.own_products, mixed.aes), ("avx2", true, "bitsliced"));
        }
    }

    #[test]
    fn a_team_is_kept_and_works() {
        let e = engine("portable+inside=2", &Cpu::detect()).expect("needs nothing");
        let on = e.scheme(Set::Shipped(Params::of(Round::Three, lanework_mayo::Set::Mayo2)));
        // Inside a thread that belongs to a pool already, and from several threads at once.
        let expect = records(&on, 1);
        let mut made = [const { None }; 2];
        Threads::Own(2).for_each(&mut made, |_, made| *made = records(&on, 1)).expect("threads");
        assert!(expect.is_some() && made.iter().all(|made| *made == expect));
    }
}
