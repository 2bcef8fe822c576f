//! The study's run: measurements, findings, and the part that is kept.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use clap::FromArgMatches;
use lanework_race::study::Study;
use lanework_study::{CORRECT, Failure, Found, Keep, Options, Outcome, Session, Spill, document};
use serde_json::json;

use crate::question::Plan;
use crate::{Own, earlier, given, page, races, verdict};

pub(crate) fn run(session: &Session, study: &Study, options: &Options) -> Result<Found, Failure> {
    let args = &Own::from_arg_matches(&options.own).map_err(Failure::input)?;
    let plan = Plan::of(study).map_err(|why| Failure::input(why).help(CORRECT))?;
    let effort = &plan.effort(options.full, args)?;
    let given = given::given(&plan, &args.asm)?;
    let earlier = earlier::records(&study.name).into_iter().filter_map(|record| record.findings);
    let earlier: Vec<_> = earlier.collect();
    let measured = races::measure(session, study, &plan, effort, given)?;
    let mut told = verdict::told(&measured, effort.timed);
    if effort.timed {
        let whole = verdict::whole_programs(earlier::records("real-code").first());
        told.insert(told.len().min(3), whole);
    }
    told.extend(earlier::weaker(&measured.rows, &earlier));
    if args.keep {
        told.extend(keep(session, options.keep, verdict::best(&measured.rows))?);
    }
    let page = page::page(&study.question, &plan, effort, &measured, &told);
    let costs = match &measured.costs {
        Ok(table) => json!(table),
        Err(why) => json!({ "not_here": why }),
    };
    let findings = json!({ "rows": measured.rows, "costs": costs, "told": told });
    Ok(Found { page: document(&page)?, findings, outcome: Outcome::Yes, record: measured.record })
}

/// Puts the findings about Lanework's own kernels into the profile, and describes them.
fn keep(session: &Session, keep: Keep, found: BTreeMap<String, Spill>) -> Result<Vec<String>, Failure> {
    if found.is_empty() {
        return Ok(vec![
            "None of Lanework's own kernels was raced, so nothing is kept in the profile.".to_owned(),
        ]);
    }
    let mut said: Vec<String> = found
        .iter()
        .map(|(function, spill)| format!("Kept in the profile: {function}: {}.", spill.told()))
        .collect();
    keep(&session.context, found)?;
    said.push("`lanework tune` and `lanework doctor` show what is kept; `lanework respill rewrite --policy auto` takes it.".to_owned());
    Ok(said)
}
