//! The GCDs under the delay function: their backends and checks.
//!
//! They have no subjects: a loop over one operation says little about its cost inside a squaring. The race is over the
//! delay function.
#![forbid(unsafe_code)]

use lanework_integer::backend::BACKENDS;
use lanework_integer::internals::check as checks;
use lanework_race::gate::GateRow;

use crate::{Context, Depth, checked, missing, row};

/// All checks of the GCDs on every backend; a required backend that cannot run is a failed row. There are no rows at
/// [`Depth::KnownAnswers`]: none are published, the oracle is plain arithmetic.
pub fn check(
    context: &Context,
    pattern: &str,
    depth: Depth,
    progress: &mut dyn FnMut(&GateRow),
) -> Vec<GateRow> {
    let inner = match depth {
        Depth::KnownAnswers => return Vec::new(),
        Depth::Quick => checks::Depth::Quick,
        Depth::Full => checks::Depth::Full,
    };
    checked("integer", pattern, progress, |push| {
        for backend in BACKENDS {
            match backend.get(&context.cpu) {
                Ok(kernels) => push(row(checks::gcds(backend.name(), &kernels, inner))),
                Err(unavailable) => push(missing(context, "every check", &unavailable)),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use lanework_cpu::Settings;

    use super::*;

    fn context(mask: &str, require: &str) -> Context {
        Context::new(Settings::parse(mask, "", require).expect("it can be read"))
    }

    #[test]
    fn every_check_of_the_integers_is_a_row() {
        let context = context("bmi1,bmi2,adx,avx", "");
        let mut told = 0;
        let rows = check(&context, "integer", Depth::Quick, &mut |_| told += 1);
        assert_eq!(told, rows.len());
        assert!(rows.iter().all(|r| r.what.starts_with("integer: ") && r.failed == 0), "{rows:?}");
        // What runs everywhere is checked by as much as the crate itself checks.
        let ran: Vec<_> = rows.iter().filter(|r| r.backend == "portable" && r.passed > 0).collect();
        let all = checks::all(&context.cpu, checks::Depth::Quick);
        assert_eq!(ran.len(), all.iter().filter(|r| r.backend == "portable").count());
        // And every other backend has a row that says why not.
        for backend in BACKENDS.iter().filter(|b| b.name() != "portable") {
            assert!(
                rows.iter().any(|r| r.backend == backend.name() && r.skipped > 0 && !r.why.is_empty()),
                "{}",
                backend.name()
            );
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_required_backend_that_is_masked_fails() {
        let rows = check(&context("bmi1,bmi2,adx,avx", "adx"), "integer", Depth::Quick, &mut |_| ());
        let failed: Vec<_> = rows.iter().filter(|r| r.failed > 0).collect();
        assert_eq!(failed.len(), 1, "{rows:?}");
        assert!(failed[0].backend == "adx" && failed[0].why.starts_with("required, but"), "{failed:?}");
    }

    #[test]
    fn other_patterns_and_known_answers_have_no_rows() {
        let context = context("", "");
        for (pattern, depth) in [("vdf", Depth::Quick), ("integers", Depth::Quick), ("", Depth::KnownAnswers)]
        {
            assert!(check(&context, pattern, depth, &mut |_| ()).is_empty(), "{pattern}");
        }
    }
}
