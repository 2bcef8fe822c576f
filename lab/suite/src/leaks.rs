//! Leak evidence of every primitive that has secrets, and of the leaks that are planted so that the checks are seen working.
//!
//! The delay function and its integers work on public numbers alone; they have a row that says so.
#![forbid(unsafe_code)]

use std::process::Stdio;
use std::time::Duration;

use lanework_cpu::Unavailable;
use lanework_leakage::evidence::{Finding, Means, PlantedRow, Row, Subject};
use lanework_leakage::judge::{self, Extent};
use lanework_leakage::memcheck::make_secret;
use lanework_leakage::plants::{self, ADDRESS, BRANCH, Gives, Plant};
use lanework_leakage::timing::{self, Again, Effort};
use lanework_leakage::valgrind::{self, NotRun, Section, observe};

use crate::{Context, selects};

pub use lanework_leakage::evidence;
pub use lanework_leakage::timing::Again as TimingOrder;

/// What is checked by default: all of Magma, and MAYO's first set.
pub const USUAL: [&str; 2] = ["mayo/round3/mayo1", "magma"];

/// The backend of an operation that is public on every one.
pub const ANY: &str = "any";

/// Primitives without secrets, and why.
const PUBLIC: [(&str, &str); 2] =
    [("vdf", "all numbers of the delay function are public"), ("integer", "so are its integers")];

/// What to check, and for how long.
#[derive(Clone, Debug)]
pub struct Request {
    /// A path's first components; the usual for "".
    pub what: String,
    /// The means.
    pub means: Vec<Means>,
    /// Time of one series of timings; the default if left out.
    pub time: Option<Duration>,
    /// What classes and cases of timings are drawn with.
    pub seed: u64,
}

impl Request {
    fn wants(&self, path: &str) -> bool {
        match self.what.as_str() {
            "" => USUAL.iter().any(|usual| selects(usual, path)),
            "planted" => false,
            what => selects(what, path),
        }
    }

    fn effort(&self) -> Effort {
        self.time.map_or_else(Effort::default, Effort::within)
    }
}

/// One piece of evidence.
#[derive(Clone, Debug)]
pub enum Evidence {
    /// About an operation.
    Operation(Row),
    /// About a planted leak.
    Planted(PlantedRow),
}

/// Evidence that needs other processes.
pub struct Children<'a> {
    /// Runs [`under_memcheck`] under valgrind, and gives its standard error.
    pub valgrind: &'a dyn Fn() -> Result<String, NotRun>,
    /// Runs [`timing_series`], and gives its standard output.
    pub again: &'a dyn Fn(&Again) -> Result<String, String>,
}

impl core::fmt::Debug for Children<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Children").finish_non_exhaustive()
    }
}

/// Gathers the evidence that was asked for, and reports each piece to `progress`.
pub fn gather(
    context: &Context,
    request: &Request,
    children: &Children<'_>,
    progress: &mut dyn FnMut(&Evidence),
) -> Vec<Evidence> {
    let mut all = Vec::new();
    let mut tell = |piece: Evidence| {
        progress(&piece);
        all.push(piece);
    };
    let has = |means| request.means.contains(&means);
    let extent = Extent::default();
    let said = has(Means::Valgrind).then(children.valgrind);
    if has(Means::Traced) {
        judge::traced_plants(extent).into_iter().for_each(|row| tell(Evidence::Planted(row)));
    }
    if has(Means::Instructions) {
        judge::instruction_plants(extent).into_iter().for_each(|row| tell(Evidence::Planted(row)));
    }
    if let Some(Ok(said)) = &said {
        planted_under_memcheck(said).into_iter().for_each(|row| tell(Evidence::Planted(row)));
    }
    if has(Means::Timing) {
        let effort = request.effort();
        let rows = timing::plants(effort, request.seed, children.again);
        rows.into_iter().for_each(|row| tell(Evidence::Planted(row)));
    }
    for (what, why) in PUBLIC {
        if request.what.is_empty() || selects(&request.what, what) {
            for means in &request.means {
                let finding = Finding::NotApplicable(why.into());
                tell(Evidence::Operation(row(what.into(), ANY, *means, finding)));
            }
        }
    }
    let wanted = |path: &str| request.wants(path);
    if let Some(said) = &said {
        let said = said.as_ref().map(String::as_str);
        let rows = lanework_mayo::internals::leaks::memcheck_rows(&context.cpu, &wanted, said);
        rows.into_iter().for_each(|row| tell(Evidence::Operation(required(context, row))));
        let rows = lanework_magma::internals::leaks::memcheck_rows(&context.cpu, &wanted, said);
        rows.into_iter().for_each(|row| tell(Evidence::Operation(required(context, row))));
    }
    for (path, subject) in subjects(context, &wanted) {
        for means in &request.means {
            let found = match (&subject, means) {
                (_, Means::Valgrind) => continue,
                (Err(why), _) => {
                    let finding = Finding::NotApplicable(why.why.clone());
                    required(context, row(path.clone(), &why.what, *means, finding))
                }
                (Ok(subject), Means::Traced) => judge::traced(subject, extent),
                (Ok(subject), Means::Instructions) => judge::instructions(subject, extent),
                (Ok(subject), Means::Timing) => {
                    timing::judge(subject, request.effort(), request.seed, children.again)
                }
            };
            tell(Evidence::Operation(found));
        }
    }
    all
}

/// What there is to check: paths with the operations, or with the backends that are missing here.
fn subjects(context: &Context, wanted: &dyn Fn(&str) -> bool) -> Vec<(String, Result<Subject, Unavailable>)> {
    let mut all = lanework_mayo::internals::leaks::subjects(&context.cpu, wanted);
    all.extend(lanework_magma::internals::leaks::subjects(&context.cpu, wanted));
    all
}

/// Whether `what` names anything that [`gather`] has a row for by these means: valgrind checks operations of its own.
#[must_use]
pub fn any(context: &Context, what: &str, means: &[Means]) -> bool {
    let request = Request { what: what.to_owned(), means: Vec::new(), time: None, seed: 0 };
    let met = core::cell::Cell::new(PUBLIC.iter().any(|(path, _)| what.is_empty() || selects(what, path)));
    // Every path is looked at, and none is prepared.
    let asked = |path: &str| {
        met.set(met.get() || request.wants(path));
        false
    };
    if means.iter().any(|m| *m != Means::Valgrind) {
        subjects(context, &asked);
    }
    if means.contains(&Means::Valgrind) {
        lanework_mayo::internals::leaks::memcheck_rows(&context.cpu, &asked, Ok(""));
        lanework_magma::internals::leaks::memcheck_rows(&context.cpu, &asked, Ok(""));
    }
    met.get()
}

/// One series of timings in a child process: returns what it prints.
///
/// # Errors
/// In words, where there is no such operation or planted leak.
pub fn timing_series(context: &Context, again: &Again) -> Result<String, String> {
    let all = || subjects(context, &|path| path == again.what).into_iter();
    timing::series(again, || all().find_map(|(_, s)| s.ok().filter(|s| s.backend == again.backend)))
}

fn row(what: String, backend: &str, means: Means, finding: Finding) -> Row {
    Row {
        what,
        backend: backend.to_owned(),
        means,
        finding,
        extent: String::new(),
        unpromised: Vec::new(),
        suspicion: None,
    }
}

/// A required backend that is not there must not pass unnoticed.
fn required(context: &Context, mut row: Row) -> Row {
    let mayo = lanework_mayo::internals::BACKENDS.iter().map(|b| (b.name(), b.get(&context.cpu).is_ok()));
    let magma = lanework_magma::backend::BACKENDS.iter().map(|b| (b.name(), b.get(&context.cpu).is_ok()));
    let there = mayo.chain(magma).filter(|(name, _)| *name == row.backend).all(|(_, there)| there);
    if let Finding::NotApplicable(why) = &row.finding
        && !there
        && context.settings.requires(&row.backend)
    {
        row.finding = Finding::Broken(format!("required, but {why}"));
    }
    row
}

/// Plants that the child runs: of the tiers that valgrind can run.
fn for_memcheck() -> impl Iterator<Item = Plant> {
    plants::ALL.into_iter().filter(|plant| plant.tier != "avx512")
}

fn headline(plant: &Plant) -> String {
    format!("## planted: {} on {}", plant.function, plant.tier)
}

/// What the child does under valgrind: the plants, and whatever of the operations is wanted.
pub fn under_memcheck(context: &Context, what: &str) {
    let request = Request { what: what.to_owned(), means: Vec::new(), time: None, seed: 0 };
    for plant in for_memcheck() {
        // On the heap, so that the compiler does not know the content.
        let secret = std::hint::black_box(vec![0x5a; 16]);
        make_secret(&secret);
        observe(&headline(&plant), || (plant.run)(std::hint::black_box(&secret)));
    }
    let wanted = |path: &str| request.wants(path);
    lanework_mayo::internals::leaks::under_memcheck(&context.cpu, &wanted);
    lanework_magma::internals::leaks::under_memcheck(&context.cpu, &wanted);
}

/// Whether memcheck found each planted leak and named it.
fn planted_under_memcheck(said: &str) -> Vec<PlantedRow> {
    // Memcheck does not check divisions.
    let judged = for_memcheck().filter(|plant| plant.gives != Gives::Division && plants::runs(plant.tier));
    let judge = |plant: Plant| {
        let sound = plant.gives == Gives::Nothing;
        let words = if plant.gives == Gives::Memory { ADDRESS } else { BRANCH };
        let (right, said) = match Section::find(said, &headline(&plant)) {
            None => (false, "it was not run".to_owned()),
            Some(section) if section.is_silent() => (sound, "no complaint".to_owned()),
            Some(section) => {
                let named = section.names(words, plant.function, plants::FILE);
                (named && !sound, section.shortened(plants::FILE).replace('\n', ";"))
            }
        };
        PlantedRow { tier: plant.tier, plant: plant.function, means: Means::Valgrind, sound, right, said }
    };
    judged.map(judge).collect()
}

/// Runs this program's hidden command, and gives its standard output.
///
/// # Errors
/// In words: why this program cannot be run, or its own error.
pub fn run_again(arguments: &[String]) -> Result<String, String> {
    let this = std::env::current_exe().map_err(|e| format!("cannot find this program's file: {e}"))?;
    let done = std::process::Command::new(this).args(arguments).stdin(Stdio::null()).output();
    let done = done.map_err(|e| format!("a process for a second series could not be started: {e}"))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if done.status.success() {
        return Ok(said(&done.stdout));
    }
    Err(format!("a process for a second series ended with {}: {}", done.status, said(&done.stderr).trim()))
}

/// Runs this program's hidden command under valgrind.
///
/// # Errors
/// [`NotRun`], also where this program's own file cannot be found.
pub fn run_under_valgrind(arguments: &[String]) -> Result<String, NotRun> {
    let this = std::env::current_exe()
        .map_err(|e| NotRun::Failed(format!("cannot find this program's file: {e}")))?;
    valgrind::run(&this, arguments).map(|(said, _)| said)
}

#[cfg(test)]
mod tests {
    use lanework_cpu::Settings;

    use super::*;

    #[test]
    fn operations_are_known_by_the_means_that_judge_them() {
        let context = Context::new(Settings::default());
        let valgrind = [Means::Valgrind];
        let others = [Means::Traced, Means::Instructions, Means::Timing];
        // Valgrind's operations are wider ones.
        for what in ["magma/derived-keys", "magma/modes", "mayo/round3/mayo1/sign-and-verify"] {
            assert!(any(&context, what, &valgrind) && any(&context, what, &Means::ALL), "{what}");
            assert!(!any(&context, what, &others), "{what}");
        }
        for means in [&valgrind[..], &others] {
            assert!(
                any(&context, "magma", means)
                    && any(&context, "mayo/round3", means)
                    && any(&context, "", means)
            );
            assert!(!any(&context, "magma/nothing", means) && !any(&context, "streebog", means));
        }
        assert!(any(&context, "magma/ctr", &others));
    }
}
