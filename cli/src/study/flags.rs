//! `codegen-flags`: every CPU backend rebuilt under other flags of the compiler, and the builds raced.
#![forbid(unsafe_code)]

mod asked;
mod build;
mod kept;
mod measure;
mod page;

use lanework_race::study::Study;
use serde_json::json;

use super::{Entry, Found, document};
use crate::args::StudyArgs;
use crate::outcome::Failure;
use crate::ui::Session;
use asked::Asked;

pub(super) const ENTRY: Entry = Entry {
    name: "codegen-flags",
    toml: include_str!("../../../studies/codegen-flags/study.toml"),
    template: include_str!("../../../studies/codegen-flags/study.md"),
    run,
    workload: None,
};

fn run(session: &Session, study: &Study, args: &StudyArgs) -> Result<Found, Failure> {
    let asked = Asked::of(study).map_err(Failure::input)?;
    let wanted = measure::Wanted {
        folder: args.builds.as_deref(),
        as_built: args.as_built,
        build_only: args.build_only,
    };
    let measured = measure::measure(session, &asked, &wanted, args.full)?;
    let page = page::page(&study.question, &asked, &measured, args.full);
    let findings = json!({ "builds": measured.builds, "flags": page.flags, "told": page.verdict });
    Ok(Found { page: document(&page)?, findings, holds: true, record: measured.record })
}
