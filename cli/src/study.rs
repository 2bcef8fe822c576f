//! `lanework study`: published questions, answered on this machine.
#![forbid(unsafe_code)]

use std::path::Path;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, FromArgMatches};
use lanework_race::study::{Study, render};
use lanework_race::subject::Subject;
use lanework_race::table;
use lanework_study::{Entry, Failure, Found, Options, Outcome, Workload, data};
use lanework_suite::Context;

use crate::args::{StudyArgs, WorkloadArgs};
use crate::bench;
use crate::profile::Profile;
use crate::scratch::Scratch;
use crate::ui::Session;

type Run = fn(&lanework_study::Session, &Study, &Options) -> Result<Found, Failure>;

/// Every study with code of its own. Others are data: see [`data`].
fn studies() -> impl Iterator<Item = &'static Entry> {
    lanework_studies::STUDIES.iter()
}

/// Every study that is built in: its name, question and template.
fn built_in() -> impl Iterator<Item = (&'static str, [&'static str; 2])> {
    let code = studies().map(|entry| (entry.name, [entry.toml, entry.template]));
    code.chain(lanework_studies::DATA.iter().copied())
}

/// The descriptions of the studies that are built in.
pub(crate) fn all() -> Result<Vec<Study>, Failure> {
    built_in().map(|(name, [toml, _])| Study::from_toml(name, toml).map_err(Failure::input)).collect()
}

/// The study about a lane that the tour does not race, by the key `lane` of its `study.toml`.
pub(crate) fn of_lane(lane: &str) -> Option<&'static str> {
    let asks = |entry: &&Entry| {
        let study = Study::from_toml(entry.name, entry.toml).ok();
        study.is_some_and(|study| study.table.get("lane").and_then(|l| l.as_str()) == Some(lane))
    };
    studies().find(asks).map(|entry| entry.name)
}

/// The options of all studies, for `lanework study`.
#[derive(Debug)]
pub(crate) struct OwnOptions(ArgMatches);

impl FromArgMatches for OwnOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<OwnOptions, clap::Error> {
        Ok(OwnOptions(matches.clone()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0 = matches.clone();
        Ok(())
    }
}

impl Args for OwnOptions {
    fn augment_args(command: clap::Command) -> clap::Command {
        studies().fold(command, |command, entry| (entry.options)(command))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        OwnOptions::augment_args(command)
    }
}

impl OwnOptions {
    /// A given option that belongs to another study: its flag, and that study.
    fn stranger(&self, name: &str) -> Option<(String, &'static str)> {
        let given = |id: &str| self.0.value_source(id) == Some(ValueSource::CommandLine);
        studies().filter(|entry| entry.name != name).find_map(|entry| {
            let own = (entry.options)(clap::Command::new(entry.name));
            let option = own.get_arguments().find(|option| given(option.get_id().as_str()))?;
            Some((option.get_long().unwrap_or_default().to_owned(), entry.name))
        })
    }
}

/// The subject with exactly this path, including those that only a study races.
pub(crate) fn find(context: &Context, path: &str) -> Option<Subject> {
    let own = || studies().flat_map(|entry| (entry.subjects)(context)).find(|subject| subject.path() == path);
    lanework_suite::find(context, path).or_else(own)
}

fn unknown(name: &str, root: &Path) -> Failure {
    Failure::input(format!("no study '{name}' in {}, and none is built in", root.display()))
        .help("`lanework study list` shows them")
}

/// Why a folder cannot be run.
fn no_code(study: &Study) -> String {
    format!("{}: no [[race]], and this build has no code for it", study.name)
}

/// The study of this name: from its folder, or as built in; with its code, or as data.
fn named(name: &str, root: &Path) -> Result<(Study, String, Run), Failure> {
    let entry = studies().find(|entry| entry.name == name);
    let folder = root.join(name);
    let there = !name.contains(['/', '\\']) && folder.join("study.toml").is_file();
    let (study, template) = match built_in().find(|(known, _)| *known == name) {
        _ if there => Study::load(&folder).map_err(|e| {
            Failure::input(e).help("correct it, or name another directory of studies with --studies")
        })?,
        Some((name, [toml, template])) => {
            (Study::from_toml(name, toml).map_err(Failure::input)?, template.to_owned())
        }
        None => return Err(unknown(name, root)),
    };
    match entry {
        Some(entry) => Ok((study, template, entry.run)),
        None if data::is_one(&study) => {
            data::check(&study, &template)?;
            Ok((study, template, data::run))
        }
        None => Err(Failure::input(no_code(&study))
            .help("give study.toml a [[race]], or build the command with the study's crate")),
    }
}

pub(crate) fn run(session: &Session, args: &StudyArgs) -> Result<Outcome, Failure> {
    if args.name == "list" {
        return list(session, args);
    }
    bench::one_form(session, &args.output)?;
    bench::may_save(&args.output)?;
    let (study, template, run) = named(&args.name, &args.studies)?;
    if let Some((option, whose)) = args.own.stranger(&study.name) {
        let what = format!("--{option}: an option of the study {whose}, not of {}", study.name);
        return Err(Failure::input(what).help(format!("leave it out, or run `lanework study {whose}`")));
    }
    let _scratch = Scratch::new()?;
    let options = Options { full: args.full, own: args.own.0.clone(), keep: Profile::keep };
    let Found { mut record, mut page, findings, outcome } = run(session, &study, &options)?;
    if let (Some(remark), Some(list)) = (&args.output.remark, page["remarks"].as_array_mut()) {
        list.push(remark.clone().into());
    }
    let page = match render(&template, &page) {
        Ok(page) => page,
        // The races took their time: what they found is not lost.
        Err(e) => {
            if let (false, Some(found)) = (session.json || args.output.csv, page["table"].as_str()) {
                print!("{found}");
            }
            return Err(
                Failure::input(e).help("correct study.md: the page is not made, and nothing is saved")
            );
        }
    };
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
    Ok(if outcome == Outcome::Yes { shown } else { outcome })
}

fn list(session: &Session, args: &StudyArgs) -> Result<Outcome, Failure> {
    // The folder may be of something else, and hold no study at all.
    let (mut found, skipped) = if args.studies.is_dir() {
        Study::list(&args.studies)
            .map_err(|e| Failure::input(e).help("name another directory of studies with --studies"))?
    } else {
        (Vec::new(), Vec::new())
    };
    for study in all()? {
        if !found.iter().any(|own| own.name == study.name) {
            found.push(study);
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let mut skipped: Vec<String> = skipped.iter().map(|e| e.to_string().trim_end().to_owned()).collect();
    // A study that cannot run is not listed.
    found.retain(|study| {
        let runs = data::is_one(study) || studies().any(|entry| entry.name == study.name);
        if !runs {
            skipped.push(no_code(study));
        }
        runs
    });
    if session.json {
        let rows: Vec<_> =
            found.iter().map(|s| serde_json::json!({ "name": s.name, "question": s.question })).collect();
        println!("{}", serde_json::json!({ "studies": rows, "skipped": skipped }));
    } else {
        for s in &found {
            println!("{}: {}", s.name, s.question);
        }
    }
    if !skipped.is_empty() {
        return Err(Failure::input(format!("skipped: {}", skipped.join("; ")))
            .help("correct these studies, or remove their folders")
            .beside_data());
    }
    Ok(Outcome::Yes)
}

/// One process of a study's workload: prints what ran.
pub(crate) fn workload(session: &Session, args: &WorkloadArgs) -> Result<Outcome, Failure> {
    let WorkloadArgs { name, configuration, subject, count } = args;
    let entry = studies()
        .find(|entry| entry.name == name)
        .ok_or_else(|| Failure::input(format!("no study '{name}' is built in")))?;
    let Some(workload) = entry.workload else {
        return Err(Failure::input(format!("the study {name} has no workload of its own")));
    };
    let asked = Workload { configuration: configuration.clone(), subject: subject.clone(), count: *count };
    workload(session, &asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_study_is_found_without_its_folder() {
        let nowhere = Path::new("no such folder");
        for (name, _) in built_in() {
            let (study, _, _) = named(name, nowhere).unwrap_or_else(|e| panic!("{name}: {}", e.message()));
            assert_eq!(study.name, name);
        }
        assert!(named("nothing", nowhere).is_err());
    }
}
