//! `ifma-vdf`: whether 52-bit multiply-add pays in the delay function, alone and end to end.

pub mod arithmetic;
mod operations;
mod page;
#[cfg(target_arch = "x86_64")]
mod phases;
#[cfg(target_arch = "x86_64")]
pub mod probes;
mod question;
mod races;
mod sentences;
#[cfg(target_arch = "x86_64")]
mod synthetic;

use std::time::Instant;

use lanework_cpu::Select;
use lanework_race::study::Study;
use lanework_study::{CORRECT, Entry, Failure, Found, Options, Outcome, Session, Workload, document};
use serde_json::json;

use question::Plan;

/// The study.
pub const ENTRY: Entry = Entry {
    workload: Some(workload),
    ..Entry::new("ifma-vdf", [include_str!("../study.toml"), include_str!("../study.md")], run)
};

fn run(session: &Session, study: &Study, options: &Options) -> Result<Found, Failure> {
    let full = options.full;
    let plan = Plan::of(study).map_err(|why| Failure::input(why).help(CORRECT))?;
    let measured = races::measure(session, study, &plan, full)?;
    let told = sentences::told(&plan, &measured);
    let page = page::page(&study.question, &plan, &measured, &told, full);
    let synthetic = match &measured.synthetic {
        Ok(half) => json!(half),
        Err(why) => json!({ "not_here": why }),
    };
    let findings = json!({ "synthetic": synthetic, "runs": measured.runs, "told": told });
    Ok(Found { page: document(&page)?, findings, outcome: Outcome::Yes, record: measured.record })
}

/// One process: squares the generator a number of times on a backend, and prints the time.
fn workload(session: &Session, args: &Workload) -> Result<Outcome, Failure> {
    let engine = lanework_vdf::Engine::choose(&session.context.cpu, Select::Named(&args.configuration))
        .map_err(Failure::unavailable)?;
    let mut chain = lanework_suite::vdf::chain(engine).map_err(Failure::refused)?;
    let count = args.count as u64;
    let start = Instant::now();
    chain.square(count).map_err(Failure::refused)?;
    let ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let said = races::Said { ns, slow: Some(chain.slow()), backend: engine.name().to_owned() };
    println!("{}", serde_json::to_string(&said).map_err(Failure::input)?);
    Ok(Outcome::Yes)
}
