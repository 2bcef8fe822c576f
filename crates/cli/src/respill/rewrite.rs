//! `respill rewrite`: assembly in, assembly out.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::Path;

use lanework_respill::Program;
use lanework_respill::plan::{self, Plan, Stays};
use lanework_respill::rewrite::{self, Options};
use serde_json::json;

use super::args::RewriteArgs;
use super::wish::{slot_name, wish};
use super::{Source, of_program};
use crate::files::{self, Access};
use crate::outcome::{Failure, Outcome};
use crate::ui::Session;

pub(super) fn run(session: &Session, args: &RewriteArgs) -> Result<Outcome, Failure> {
    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    let to_stdout = path == Path::new("-");
    files::may_write(path, args.force)?;
    if session.json && to_stdout {
        return Err(Failure::input(
            "--json puts the report on standard output; name a file for the text with -o",
        ));
    }
    let source = Source::load(&args.source)?;
    let analysis = &source.analysis;
    let wish = wish(&source, &args.wish)?;
    let plan = plan::plan(analysis, &wish);
    for key @ (n, s) in &wish.only {
        if let Some(why) = plan.stays.get(key) {
            let slot = slot_name(analysis, &analysis.units[*n], *s);
            return Err(Failure::refused(format!("{}: {slot} stays: {why}", analysis.program.file)));
        }
    }
    if plan.homes.is_empty() {
        return Err(Failure::refused(format!(
            "{}: no slot can move: {}",
            analysis.program.file,
            reasons(&plan)
        )));
    }
    let options = Options { wipe: !args.no_wipe, ..Options::default() };
    let made = rewrite::rewrite(analysis, &plan, options).map_err(Failure::input)?;
    // What cannot be assembled is not given out.
    Program::new(&format!("{} as rewritten", analysis.program.file), &*made.text)
        .map_err(|e| of_program(&e))?;
    files::write(path, made.text.as_bytes(), Access::Public, args.force)?;
    if session.json {
        println!("{}", report(&source, &plan, made.changed.len()));
    } else if !to_stdout {
        println!(
            "{}: {} slots moved, {} instructions changed; not proved by that: `lanework respill validate` does",
            path.display(),
            plan.homes.len(),
            made.changed.len()
        );
        if !plan.stays.is_empty() {
            println!("{} stay: {}", plan.stays.len(), reasons(&plan));
        }
    }
    Ok(Outcome::Yes)
}

/// Why slots stay, each reason with how many there are.
fn reasons(plan: &Plan) -> String {
    let mut counted: BTreeMap<String, usize> = BTreeMap::new();
    for why in plan.stays.values() {
        let said = match why {
            Stays::Class(_) => "no spilled value".to_owned(),
            why => why.to_string().trim_start_matches("it ").to_owned(),
        };
        *counted.entry(said).or_default() += 1;
    }
    if counted.is_empty() {
        return "there is none in the frame".to_owned();
    }
    let mut counted: Vec<(String, usize)> = counted.into_iter().collect();
    counted.sort_by_key(|(said, n)| (usize::MAX - n, said.clone()));
    counted.iter().map(|(said, n)| format!("{n} {said}")).collect::<Vec<_>>().join("; ")
}

fn report(source: &Source, plan: &Plan, changed: usize) -> serde_json::Value {
    let analysis = &source.analysis;
    let name = |&(n, s): &(usize, usize)| slot_name(analysis, &analysis.units[n], s);
    let moved: Vec<_> = plan
        .homes
        .iter()
        .map(|(key, home)| json!({ "slot": name(key), "home": home.to_string(), "bytes": analysis.units[key.0].slots[key.1].size }))
        .collect();
    let stays: Vec<_> =
        plan.stays.iter().map(|(key, why)| json!({ "slot": name(key), "why": why.to_string() })).collect();
    json!({ "file": analysis.program.file, "moved": moved, "stays": stays, "instructions_changed": changed, "validated": false })
}
