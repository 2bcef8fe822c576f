//! What the laboratory races: one file per primitive, with its inputs, gates, backends and peers.
//!
//! The laboratory contains no cryptography and the primitives no laboratory; this crate joins them. A subject's
//! path is `<primitive>/<parameters>/<operation>`, a variant is `<backend>[+threads=N]` or a peer's name.
#![forbid(unsafe_code)]

use core::fmt;
use std::path::PathBuf;

use lanework_cpu::{Cpu, Settings};
use lanework_race::gate::GateRow;
use lanework_race::machine::Machine;
use lanework_race::record::ResultRow;
use lanework_race::subject::Subject;

use device::{CUDA, DeviceChoice};
pub use job::Job;

pub mod device;
pub mod features;
pub mod integer;
mod job;
pub mod lanes;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod leaks;
pub mod magma;
pub mod mayo;
#[cfg(feature = "peers")]
pub mod signatures;
pub mod vdf;

/// What every subject is built from: the processor as it may be used, and where the peers are.
#[derive(Clone, Debug)]
pub struct Context {
    /// The CPU without its masked features.
    pub cpu: Cpu,
    /// Forced and required backends.
    pub settings: Settings,
    /// The directory of the peers' shared libraries; `None` races no peer.
    pub peers: Option<PathBuf>,
    /// A newer gost-engine that was built elsewhere, instead of the one among the peers.
    pub gost_engine: Option<PathBuf>,
    /// The devices that may be used.
    pub device: DeviceChoice,
}

impl Context {
    /// A context for these settings, without peers.
    #[must_use]
    pub fn new(settings: Settings) -> Context {
        Context {
            cpu: settings.cpu(),
            settings,
            peers: None,
            gost_engine: None,
            device: DeviceChoice::default(),
        }
    }
}

/// How much a check runs: a depth of a primitive's own checks (`lanework_cpu::check::Depth`), or some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// A second or two for each backend: the tour's and the gates'.
    Quick,
    /// All records of the known answers and nothing else.
    KnownAnswers,
    /// Everything, all known-answer records included.
    Full,
}

/// Every primitive with the names of its backends, available here or not; `cuda` among them where it has kernels for devices.
#[must_use]
pub fn primitives() -> Vec<(&'static str, Vec<&'static str>)> {
    let mayo =
        lanework_mayo::internals::BACKENDS.iter().map(lanework_cpu::Backend::name).chain([CUDA]).collect();
    vec![
        ("mayo", mayo),
        ("magma", lanework_magma::backend::BACKENDS.iter().map(lanework_cpu::Backend::name).collect()),
        ("integer", lanework_integer::backend::BACKENDS.iter().map(lanework_cpu::Backend::name).collect()),
        ("vdf", lanework_vdf::backend::BACKENDS.iter().map(lanework_cpu::Backend::name).collect()),
    ]
}

/// A name that no primitive or backend has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    what: String,
    /// Those that there are.
    pub known: Vec<&'static str>,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl core::error::Error for Unknown {}

/// Checks that every forced and every required backend exists, available here or not.
///
/// # Errors
/// [`Unknown`], naming the primitive or backend that does not exist, and those that do.
pub fn known(settings: &Settings) -> Result<(), Unknown> {
    let primitives = primitives();
    let forced =
        settings.forced().map(|(primitive, backend)| (primitive, backend, "--backend, LANEWORK_BACKEND"));
    let required = settings.required().iter().map(|backend| ("", backend.as_str(), "LANEWORK_REQUIRE"));
    for (primitive, backend, place) in forced.chain(required) {
        let mut tables =
            primitives.iter().filter(|(name, _)| primitive.is_empty() || *name == primitive).peekable();
        if tables.peek().is_none() {
            return Err(Unknown {
                what: format!("'{primitive}={backend}': no primitive '{primitive}'"),
                known: primitives.iter().map(|(name, _)| *name).collect(),
            });
        }
        // Primitives share names: each is listed once.
        let mut names: Vec<&str> = Vec::new();
        for name in tables.flat_map(|(_, names)| names.iter().copied()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if !names.contains(&backend) {
            return Err(Unknown { what: format!("no backend '{backend}' ({place})"), known: names });
        }
    }
    Ok(())
}

/// Every subject there is.
#[must_use]
pub fn all(context: &Context) -> Vec<Subject> {
    let mut subjects = mayo::subjects(context);
    subjects.extend(magma::subjects(context));
    subjects.extend(vdf::subjects(context));
    subjects.extend(beside(context));
    subjects
}

/// MAYO beside other signature schemes, which all come from peers.
fn beside(context: &Context) -> Vec<Subject> {
    #[cfg(feature = "peers")]
    return signatures::subjects(context);
    #[cfg(not(feature = "peers"))]
    {
        let _ = context;
        Vec::new()
    }
}

/// The subjects that a bare primitive name stands for: its headline operations.
#[must_use]
pub fn headline(context: &Context) -> Vec<Subject> {
    let mut subjects = mayo::headline(context);
    subjects.extend(magma::headline(context));
    subjects.extend(vdf::headline(context));
    subjects
}

/// The subjects that `pattern` selects: a path's first components, `*` standing for any one of them. A bare primitive's
/// name, or nothing, selects its headline operations; `signatures`, which needs peers, MAYO beside other schemes; `all` selects everything.
#[must_use]
pub fn matching(context: &Context, pattern: &str) -> Vec<Subject> {
    match pattern {
        "" => headline(context),
        "all" => all(context),
        _ if !pattern.contains('/') => headline(context)
            .into_iter()
            .chain(beside(context))
            .filter(|s| selects(pattern, s.path()))
            .collect(),
        _ => all(context).into_iter().filter(|s| selects(pattern, s.path())).collect(),
    }
}

/// The subject of exactly this path.
#[must_use]
pub fn find(context: &Context, path: &str) -> Option<Subject> {
    all(context).into_iter().find(|s| s.path() == path)
}

/// The jobs that a page opens with, one for each primitive that other people have code for: the subject, and what it is.
pub const HEADLINE: &[(&str, &str)] = &[
    ("mayo/round2/mayo1/sign", "A MAYO-1 signature (round 2)"),
    ("magma/ctr/16384", "Magma in CTR mode, 16 KiB"),
    ("vdf/1024/square", "A squaring of the delay function, 1,024 bits"),
];

/// The least time that the silicon allows for a unit of a result's work, in its unit, where the operations of its backend's
/// design have been counted and this CPU's ports are known; computed, never measured.
#[must_use]
pub fn floor(row: &ResultRow, machine: &Machine) -> Option<f64> {
    magma::floor(row, machine).or_else(|| mayo::floor(row, machine)).or_else(|| vdf::floor(row, machine))
}

/// Runs the checks of the primitives that `pattern` names (all of them for ""), and reports each row to `progress`.
pub fn check(
    context: &Context,
    pattern: &str,
    depth: Depth,
    progress: &mut dyn FnMut(&GateRow),
) -> Vec<GateRow> {
    let mut rows = mayo::check(context, pattern, depth, progress);
    rows.extend(magma::check(context, pattern, depth, progress));
    rows.extend(integer::check(context, pattern, depth, progress));
    rows.extend(vdf::check(context, pattern, depth, progress));
    rows
}

/// A primitive's row as a gate's.
#[must_use]
pub fn row(r: lanework_cpu::check::Row) -> GateRow {
    GateRow {
        what: r.what,
        backend: r.backend,
        passed: r.passed as u64,
        failed: r.failed as u64,
        skipped: r.skipped as u64,
        why: r.why,
    }
}

/// The row of a backend that cannot run here.
#[must_use]
pub fn skipped(what: &str, unavailable: &lanework_cpu::Unavailable) -> GateRow {
    row(lanework_cpu::check::Row::unavailable(what, unavailable))
}

/// How the reason begins in the failed row of a required backend that cannot run here.
const REQUIRED: &str = "required, but ";

/// Whether a check ran: neither skipped nor failed because a required backend is not there.
#[must_use]
pub fn ran(row: &GateRow) -> bool {
    row.passed + row.failed > 0 && !row.why.starts_with(REQUIRED)
}

/// The same row, failed if the backend is required.
fn missing(context: &Context, what: &str, unavailable: &lanework_cpu::Unavailable) -> GateRow {
    let mut row = skipped(what, unavailable);
    if context.settings.requires(&unavailable.what) {
        (row.failed, row.skipped) = (1, 0);
        row.why = format!("{REQUIRED}{}", row.why);
    }
    row
}

/// The rows that `each` hands over, named after the primitive and reported as they come; none if the pattern selects others.
pub(crate) fn checked(
    primitive: &str,
    pattern: &str,
    progress: &mut dyn FnMut(&GateRow),
    each: impl FnOnce(&mut dyn FnMut(GateRow)),
) -> Vec<GateRow> {
    let mut rows = Vec::new();
    if pattern.is_empty() || selects(pattern, primitive) {
        each(&mut |mut row| {
            row.what = format!("{primitive}: {}", row.what);
            progress(&row);
            rows.push(row);
        });
    }
    rows
}

/// Whether `pattern` stands for `path`: component by component, `*` for any, a shorter pattern for all below it.
#[must_use]
pub fn selects(pattern: &str, path: &str) -> bool {
    let mut parts = path.split('/');
    pattern.split('/').all(|want| parts.next().is_some_and(|have| want == "*" || want == have))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_select_by_component() {
        let path = "mayo/round3/mayo1/sign";
        for yes in ["mayo", "mayo/round3", "mayo/*/mayo1", "mayo/*/*/sign", path] {
            assert!(selects(yes, path), "{yes}");
        }
        for no in ["may", "mayo/round2", "mayo/*/*/verify", "mayo/round3/mayo1/sign/more"] {
            assert!(!selects(no, path), "{no}");
        }
    }

    #[test]
    fn forced_names_must_exist() {
        let of = |text| known(&Settings::parse("", text, "").expect("it can be read"));
        assert_eq!(of(""), Ok(()));
        assert_eq!(of("portable"), Ok(()));
        // Known, even where it is not available: that is another error, with another exit code.
        assert_eq!(of("mayo=avx512"), Ok(()));
        let names = |text, stranger: &str, known: &str| {
            of(text).is_err_and(|e| e.to_string().contains(stranger) && e.known.contains(&known))
        };
        assert!(names("mayi=avx2", "'mayi'", "mayo"));
        assert_eq!(of("magma=portable"), Ok(()));
        assert_eq!(of("integer=portable"), Ok(()));
        assert!(names("integer=gfni", "'gfni'", "portable"));
        assert!(names("magma=sse9", "'sse9'", "portable"));
        assert!(names("mayo=sse9", "'sse9'", "portable"));
        assert!(of("sse9").is_err());
        assert_eq!(of("mayo=cuda"), Ok(()));
        assert!(names("magma=cuda", "'cuda'", "portable"));
        let required = |text| known(&Settings::parse("", "", text).expect("it can be read"));
        assert_eq!(required("portable,cuda"), Ok(()));
        assert!(
            required("portable,avx21")
                .is_err_and(|e| e.to_string() == "no backend 'avx21' (LANEWORK_REQUIRE)")
        );
    }

    #[test]
    fn paths_are_unique() {
        let context = Context::new(Settings::default());
        let mut paths: Vec<String> = all(&context).iter().map(|s| s.path().to_owned()).collect();
        let count = paths.len();
        assert!(count > 0);
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), count);
    }
}
