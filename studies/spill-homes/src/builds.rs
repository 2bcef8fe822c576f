//! Other builds of a row's function: their code, their effect on a caller's floating point, and their time.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::time::Duration;

use lanework_race::record::ResultRow;
use lanework_respill::Program;
use lanework_respill::analysis::Analysis;
use lanework_respill::case::Case;
use lanework_respill::layout::code_bytes;
use lanework_respill::lint::{evidence, lint};
use lanework_respill::load::{Externals, Loaded};
use lanework_respill::measure::{Job, Role, Variant};
use lanework_spill::finding::{Part, part};
use lanework_spill::of_program;
use lanework_study::Failure;
use serde::Serialize;

use super::given::{MMX, REBUILT};
use crate::programs::Assembly;

/// The longest that a call may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Instructions of a file, by what their text names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Code {
    /// An MMX register.
    pub(super) mmx: usize,
    /// The stack pointer.
    pub(super) stack: usize,
    pub(super) emms: usize,
    pub(super) bytes: u64,
}

impl Code {
    pub(super) fn of(program: &Program) -> Code {
        let count = |word: &str| (0..program.ops.len()).filter(|&op| program.said(op).contains(word)).count();
        Code { mmx: count("%mm"), stack: count("%rsp"), emms: count("emms"), bytes: code_bytes(program) }
    }
}

/// Another build of a row's function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Build {
    pub(super) from: String,
    /// Whether its text is the baseline's, so that its race is another A/A control.
    pub(super) identical: bool,
    pub(super) code: Code,
    /// Inputs on which its results are the baseline's.
    pub(super) same_results: u64,
    /// Faults around MMX that `respill lint` names in what the row calls, and the first of them.
    pub(super) faults: usize,
    pub(super) first_fault: Option<String>,
    /// A caller's `long double` 1.5 * 2 + 1.5 after the call.
    pub(super) float_after: Option<String>,
    /// Its time beside the baseline's, and beside the rebuilt baseline's.
    pub(super) beside_stack: Option<Part>,
    pub(super) beside_rebuilt: Option<Part>,
}

impl Build {
    /// Whether a caller's next floating point is broken.
    pub(super) fn breaks_floats(&self) -> bool {
        self.float_after.as_deref() == Some("NaN")
    }
}

/// The builds of a row, and the contestants made of them.
#[derive(Default)]
pub(super) struct Builds {
    pub(super) found: BTreeMap<String, Build>,
    pub(super) variants: Vec<Variant>,
}

impl Builds {
    /// Looks at each build, and compares its results with the baseline's. MMX may be left in use: that is recorded, not refused.
    ///
    /// # Errors
    /// [`Failure::refused`]: other results. [`Failure`] for a text that is not a program, or a machine that cannot run it.
    pub(super) fn of(
        row: &str,
        case: &str,
        baseline: &Variant,
        builds: &[(&'static str, Assembly)],
        inputs: u64,
    ) -> Result<Builds, Failure> {
        let mut out = Builds::default();
        let read = Case::parse(case).map_err(Failure::input)?;
        for (name, assembly) in builds {
            let program = Program::new(&assembly.name, &*assembly.text).map_err(|e| of_program(&e))?;
            let loaded = Loaded::new(&program, &Externals::default()).map_err(Failure::input)?;
            let ran = evidence::run(&read, &loaded, LIMIT).map_err(Failure::input)?;
            let code = Code::of(&program);
            let analysis = Analysis::new(program);
            let reached = super::races::reached(&analysis, &read);
            let faults: Vec<String> = lint(&analysis)
                .iter()
                .filter(|finding| reached.contains(&finding.unit))
                .map(ToString::to_string)
                .collect();
            out.variants.push(Variant {
                name: (*name).to_owned(),
                role: Role::Home,
                text: assembly.text.clone(),
                code_bytes: code.bytes,
                slots: 0,
                stack_bytes: 0,
            });
            out.found.insert(
                (*name).to_owned(),
                Build {
                    from: assembly.name.clone(),
                    identical: assembly.text == baseline.text,
                    code,
                    same_results: 0,
                    faults: faults.len(),
                    first_fault: faults.into_iter().next(),
                    float_after: ran.float.map(|[_, after]| after.to_string()),
                    beside_stack: None,
                    beside_rebuilt: None,
                },
            );
        }
        let variants = std::iter::once(baseline).chain(&out.variants).cloned().collect();
        let job = job(row, case, variants).assembled();
        for row in job.agreement_but(&read, inputs, |name| out.found.contains_key(name)) {
            let build = out.found.get_mut(&row.name).filter(|_| row.different == 0);
            let build = build.ok_or_else(|| Failure::refused(format!("{}: {}", row.name, row.why)))?;
            build.same_results = row.same;
        }
        Ok(out)
    }

    /// The names of the contestants.
    pub(super) fn names(&self) -> Vec<&str> {
        self.found.keys().map(String::as_str).collect()
    }

    /// The race that leaves the flags out: the MMX build against the baseline rebuilt with them.
    pub(super) fn without_flags(&self, row: &str, case: &str) -> Option<Job> {
        let find = |name: &str| self.variants.iter().find(|variant| variant.name == name).cloned();
        let variants = vec![find(REBUILT)?, find(MMX)?];
        Some(job(&format!("{row}/{REBUILT}/{MMX}"), case, variants))
    }

    /// Notes the races' results.
    pub(super) fn note(&mut self, job: &Job, rows: &[ResultRow]) {
        let stack = job.variants.first().map_or("", |stack| &stack.name);
        for (name, build) in &mut self.found {
            build.beside_stack = part(job, rows, stack, name);
            build.beside_rebuilt = part(job, rows, REBUILT, name);
        }
    }
}

fn job(row: &str, case: &str, variants: Vec<Variant>) -> Job {
    Job { subject: format!("spill/{row}"), file: row.to_owned(), case: case.to_owned(), input: 0, variants }
}
