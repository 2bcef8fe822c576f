//! `ifma-vdf`: whether 52-bit multiply-add pays in the delay function, alone and end to end.
#![forbid(unsafe_code)]

mod measure;
mod original;
mod page;
mod synthetic;
mod told;

use std::time::Instant;

use lanework_cpu::Select;
use lanework_race::study::Study;
use serde_json::json;

use super::{Entry, Found, document};
use crate::args::{StudyArgs, WorkloadArgs};
use crate::outcome::{Failure, Outcome};
use crate::ui::Session;
use original::Plan;

pub(super) const ENTRY: Entry = Entry {
    name: "ifma-vdf",
    toml: include_str!("../../../studies/ifma-vdf/study.toml"),
    template: include_str!("../../../studies/ifma-vdf/study.md"),
    run,
    workload: Some(workload),
};

fn run(session: &Session, study: &Study, args: &StudyArgs) -> Result<Found, Failure> {
    let full = args.full;
    let plan = Plan::of(study).map_err(Failure::input)?;
    let measured = measure::measure(session, study, &plan, full)?;
    let told = told::told(&plan, &measured);
    let page = page::page(&study.question, &plan, &measured, &told, full);
    let synthetic = match &measured.synthetic {
        Ok(half) => json!(half),
        Err(why) => json!({ "not_here": why }),
    };
    let findings = json!({ "synthetic": synthetic, "runs": measured.runs, "told": told });
    Ok(Found { page: document(&page)?, findings, holds: true, record: measured.record })
}

/// One process: squares the generator so often on a backend, and prints what that took.
fn workload(session: &Session, args: &WorkloadArgs) -> Result<Outcome, Failure> {
    let engine = lanework_vdf::Engine::choose(&session.context.cpu, Select::Named(&args.configuration))
        .map_err(Failure::unavailable)?;
    let mut chain = lanework_suite::vdf::chain(engine).map_err(Failure::refused)?;
    let count = args.count as u64;
    let start = Instant::now();
    chain.square(count).map_err(Failure::refused)?;
    let ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let said = measure::Said { ns, slow: Some(chain.slow()), backend: engine.name().to_owned() };
    println!("{}", serde_json::to_string(&said).map_err(Failure::input)?);
    Ok(Outcome::Yes)
}
