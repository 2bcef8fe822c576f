//! `lanework study`: published questions, asked again on this machine.
#![forbid(unsafe_code)]

mod common;
mod data;
mod flags;
mod gpu;
mod ifma;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod leaks;
mod magma;
mod mayo;
mod self_check;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod spill;

use std::path::Path;

use lanework_race::record::Record;
use lanework_race::study::{Study, render};
use lanework_race::table;

use crate::args::{StudyArgs, WorkloadArgs};
use crate::bench;
use crate::outcome::{Failure, Outcome};
use crate::ui::Session;

type Workload = fn(&Session, &WorkloadArgs) -> Result<Outcome, Failure>;
type Run = fn(&Session, &Study, &StudyArgs) -> Result<Found, Failure>;

/// A study with code of its own. Its files are also built in, so that the command works outside its repository.
struct Entry {
    name: &'static str,
    toml: &'static str,
    template: &'static str,
    /// Measures all of it. (session, the question as data, what was asked for)
    run: Run,
    /// One process of its workload, where it starts any.
    workload: Option<Workload>,
}

/// What a study found.
struct Found {
    record: Record,
    /// What the template names.
    page: serde_json::Value,
    /// The same as data, which the record keeps; null where the rows say all.
    findings: serde_json::Value,
    /// Whether what it checks holds; true of a study that checks nothing.
    holds: bool,
}

/// Every study with code of its own. Others are folders: see [`data`].
const STUDIES: &[Entry] = &[
    flags::ENTRY,
    ifma::ENTRY,
    self_check::ENTRY,
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    leaks::ENTRY,
    magma::ENTRY,
    gpu::ENTRY,
    mayo::ENTRY,
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    spill::ENTRY,
];

fn unknown(name: &str) -> Failure {
    Failure::input(format!("there is no study '{name}'; `lanework study list` shows them"))
}

/// Why a folder cannot be run.
fn no_code(study: &Study) -> String {
    format!("{}: it has no [[race]], and this build has no code for it", study.name)
}

/// The study of this name: with its code, or from its folder alone.
fn named(name: &str, root: &Path) -> Result<(Study, String, Run), Failure> {
    if let Some(entry) = STUDIES.iter().find(|entry| entry.name == name) {
        let (study, template) = entry.load(root)?;
        return Ok((study, template, entry.run));
    }
    let folder = root.join(name);
    if name.contains(['/', '\\']) || !folder.join("study.toml").is_file() {
        return Err(unknown(name));
    }
    let (study, template) = Study::load(&folder).map_err(Failure::input)?;
    if !data::is_one(&study) {
        return Err(Failure::input(no_code(&study)));
    }
    Ok((study, template, data::run))
}

impl Entry {
    /// The question and the template as built in.
    fn built_in(&self) -> Result<(Study, String), Failure> {
        let study = Study::from_toml(self.name, self.toml).map_err(Failure::input)?;
        Ok((study, self.template.to_owned()))
    }

    /// From the study's folder if it is there, else as built in.
    fn load(&self, root: &Path) -> Result<(Study, String), Failure> {
        let folder = root.join(self.name);
        if folder.join("study.toml").is_file() {
            Study::load(&folder).map_err(Failure::input)
        } else {
            self.built_in()
        }
    }
}

/// A page as the template takes it.
fn document(page: impl serde::Serialize) -> Result<serde_json::Value, Failure> {
    serde_json::to_value(page).map_err(Failure::input)
}

pub(crate) fn run(session: &Session, args: &StudyArgs) -> Result<Outcome, Failure> {
    if args.name == "list" {
        return list(session, args);
    }
    bench::one_form(session, &args.output)?;
    bench::may_save(&args.output)?;
    let (study, template, run) = named(&args.name, &args.studies)?;
    let own = [
        ("--asm", !args.asm.is_empty(), "spill-homes"),
        ("--rows", !args.rows.is_empty(), "spill-homes"),
        ("--validate-only", args.validate_only, "spill-homes"),
        ("--keep", args.keep, "spill-homes"),
        ("--builds", args.builds.is_some(), "codegen-flags"),
        ("--as-built", args.as_built, "codegen-flags"),
        ("--build-only", args.build_only, "codegen-flags"),
    ];
    if let Some((option, _, whose)) = own.iter().find(|(_, said, whose)| *said && study.name != *whose) {
        let why = if *whose == "spill-homes" { "no rows of assembly" } else { "no builds of its own" };
        return Err(Failure::input(format!("{option}: the study {} has {why}", study.name)));
    }
    let Found { mut record, mut page, findings, holds } = run(session, &study, args)?;
    if let (Some(remark), Some(list)) = (&args.output.remark, page["remarks"].as_array_mut()) {
        list.push(remark.clone().into());
    }
    let page = render(&template, &page).map_err(Failure::input)?;
    record.page = Some(page.clone());
    record.findings = Some(findings).filter(|findings| !findings.is_null());
    let shown = bench::save_and_show(session, &mut record, &args.output, |record| {
        if session.json {
            print!("{}", record.to_json().map_err(Failure::input)?);
        } else if args.output.csv {
            print!("{}", table::csv(&record.results));
        } else {
            print!("{page}");
        }
        Ok(())
    })?;
    Ok(if holds { shown } else { Outcome::No })
}

fn list(session: &Session, args: &StudyArgs) -> Result<Outcome, Failure> {
    let (mut studies, skipped) = if args.studies.is_dir() {
        Study::list(&args.studies).map_err(Failure::input)?
    } else {
        let built_in = STUDIES.iter().map(|entry| Ok(entry.built_in()?.0));
        (built_in.collect::<Result<_, Failure>>()?, Vec::new())
    };
    let mut skipped: Vec<String> = skipped.iter().map(|e| e.to_string().trim_end().to_owned()).collect();
    // What cannot be run is not offered.
    studies.retain(|study| {
        let runs = data::is_one(study) || STUDIES.iter().any(|entry| entry.name == study.name);
        if !runs {
            skipped.push(no_code(study));
        }
        runs
    });
    if session.json {
        let rows: Vec<_> =
            studies.iter().map(|s| serde_json::json!({ "name": s.name, "question": s.question })).collect();
        println!("{}", serde_json::json!({ "studies": rows, "skipped": skipped }));
    } else {
        for s in &studies {
            println!("{}: {}", s.name, s.question);
        }
    }
    if !skipped.is_empty() {
        return Err(Failure::input(format!("skipped: {}", skipped.join("; "))).beside_data());
    }
    Ok(Outcome::Yes)
}

/// One process of a study's workload: prints what ran.
pub(crate) fn workload(session: &Session, args: &WorkloadArgs) -> Result<Outcome, Failure> {
    let entry = STUDIES.iter().find(|entry| entry.name == args.name).ok_or_else(|| unknown(&args.name))?;
    let Some(workload) = entry.workload else {
        return Err(Failure::input(format!("the study {} has no workload of its own", args.name)));
    };
    workload(session, args)
}
