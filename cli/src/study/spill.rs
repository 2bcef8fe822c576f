//! `spill-homes`: where a register-starved function should keep what does not fit, on this processor.
#![forbid(unsafe_code)]

mod measure;
mod page;
mod told;

use std::collections::BTreeMap;

use clap::{Args, FromArgMatches};
use lanework_race::study::Study;
use lanework_study::{Entry, Failure, Found, Options, Session, document};
use lanework_suite::spill::rows::Rows;
use serde::Deserialize;
use serde_json::json;

use crate::profile::Spill;
use crate::respill::kept;

pub(super) static ENTRY: Entry = Entry {
    options: Own::augment_args,
    ..Entry::new(
        "spill-homes",
        [
            include_str!("../../../studies/spill-homes/study.toml"),
            include_str!("../../../studies/spill-homes/study.md"),
        ],
        run,
    )
};

/// Its own options.
#[derive(Debug, Args)]
#[command(next_help_heading = "The study spill-homes")]
struct Own {
    /// A row's own assembly, such as libjade's, in place of what stands in for it. May be given several times.
    #[arg(long, value_name = "ROW=FILE")]
    asm: Vec<String>,
    /// These rows and no others.
    #[arg(long, value_name = "ROW", value_delimiter = ',')]
    rows: Vec<String>,
    /// Every rewrite is checked, and nothing is timed.
    #[arg(long)]
    validate_only: bool,
    /// What is found of Lanework's own kernels goes into this machine's profile, "all on the stack" included.
    #[arg(long, conflicts_with = "validate_only")]
    keep: bool,
}

/// `study.toml` behind its question.
#[derive(Clone, Debug, Deserialize)]
struct Plan {
    original: Original,
    quick: Effort,
    full: Effort,
    #[serde(flatten)]
    rows: Rows,
}

/// Who asked first, and where.
#[derive(Clone, Debug, Deserialize)]
struct Original {
    title: String,
    machine: String,
    command: String,
}

/// How much is run.
#[derive(Clone, Debug, Deserialize)]
struct Effort {
    /// Processes that a race is spread over.
    launches: u32,
    /// For the race of one home of one function.
    milliseconds: u64,
    /// Inputs on which results are compared.
    inputs: u64,
    /// The homes, beside the report's own choice.
    homes: Vec<String>,
    /// The rows, if not all.
    #[serde(default)]
    rows: Vec<String>,
    /// Whether anything is timed.
    #[serde(skip)]
    timed: bool,
}

impl Plan {
    fn of(study: &Study) -> Result<Plan, String> {
        let plan: Plan = toml::Value::Table(study.table.clone())
            .try_into()
            .map_err(|e| format!("{}/study.toml: {e}", study.name))?;
        for effort in [&plan.quick, &plan.full] {
            if effort.launches == 0 || effort.milliseconds == 0 || effort.inputs == 0 {
                return Err(format!(
                    "{}/study.toml: launches, milliseconds and inputs must be positive",
                    study.name
                ));
            }
            if let Some(name) = effort.rows.iter().find(|name| !plan.has(name)) {
                return Err(format!("{}/study.toml: there is no row {name}", study.name));
            }
        }
        Ok(plan)
    }

    /// Whether there is a row of this name.
    fn has(&self, name: &str) -> bool {
        let of_fiat = |fiat: &str| matches!(name.strip_prefix(fiat), Some("-gcc" | "-clang"));
        self.rows.row.iter().any(|row| row.name == name)
            || self.rows.kernel.iter().any(|kernel| kernel.name == name)
            || self.rows.fiat.iter().any(|fiat| of_fiat(&fiat.name))
    }

    /// The names of all rows.
    fn names(&self) -> Vec<String> {
        let fiat =
            self.rows.fiat.iter().flat_map(|fiat| ["gcc", "clang"].map(|by| format!("{}-{by}", fiat.name)));
        let report = self.rows.row.iter().map(|row| row.name.clone());
        report.chain(fiat).chain(self.rows.kernel.iter().map(|kernel| kernel.name.clone())).collect()
    }

    /// A mode as asked for.
    fn effort(&self, full: bool, args: &Own) -> Result<Effort, Failure> {
        let mut effort = if full { self.full.clone() } else { self.quick.clone() };
        if let Some(name) = args.rows.iter().find(|name| !self.has(name)) {
            return Err(Failure::input(format!(
                "--rows: there is no row '{name}'; there are {}",
                self.names().join(", ")
            )));
        }
        if !args.rows.is_empty() {
            effort.rows.clone_from(&args.rows);
        }
        effort.timed = !args.validate_only;
        Ok(effort)
    }
}

fn run(session: &Session, study: &Study, options: &Options) -> Result<Found, Failure> {
    let args = &Own::from_arg_matches(&options.own).map_err(Failure::input)?;
    let plan = Plan::of(study).map_err(Failure::input)?;
    let effort = &plan.effort(options.full, args)?;
    let own = measure::own(&plan, &args.asm)?;
    let measured = measure::measure(session, study, &plan, effort, own)?;
    let mut told = told::told(&measured, effort.timed);
    if args.keep {
        told.extend(keep(session, told::kept(&measured.rows))?);
    }
    let page = page::page(&study.question, &plan, effort, &measured, &told);
    let costs = match &measured.costs {
        Ok(table) => json!(table),
        Err(why) => json!({ "not_here": why }),
    };
    let findings = json!({ "rows": measured.rows, "costs": costs, "told": told });
    Ok(Found { page: document(&page)?, findings, holds: true, record: measured.record })
}

/// Puts what was found of Lanework's own kernels into the profile, and says what that was.
fn keep(session: &Session, found: BTreeMap<String, Spill>) -> Result<Vec<String>, Failure> {
    if found.is_empty() {
        return Ok(vec![
            "None of Lanework's own kernels was raced, so nothing is kept in the profile.".to_owned(),
        ]);
    }
    let mut said: Vec<String> = found
        .iter()
        .map(|(function, spill)| format!("Kept in the profile: {function}: {}.", spill.told()))
        .collect();
    kept::keep(&session.context, found)?;
    said.push("`lanework tune` and `lanework doctor` show what is kept; `lanework respill rewrite --policy auto` takes it.".to_owned());
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_studys_file_is_read_and_its_mistakes_are_named() {
        let toml = ENTRY.toml;
        let study = Study::from_toml("spill-homes", toml).expect("a study");
        let plan = Plan::of(&study).expect("a plan");
        assert_eq!(plan.rows.row.iter().filter(|row| row.original.is_some()).count(), 17);
        for row in &plan.rows.row {
            assert!(row.home.parse::<crate::respill::args::Homes>().is_ok(), "{}", row.name);
            assert!(measure::policy(&row.policy).is_ok(), "{}", row.name);
        }
        for (good, bad, says) in [
            ("launches = 1\n", "launches = 0\n", "must be positive"),
            ("\"kyber768-dec\",", "\"kyber768-doc\",", "there is no row kyber768-doc"),
            ("\"p384-mul-gcc\",", "\"p384-mul-icc\",", "there is no row p384-mul-icc"),
        ] {
            assert!(toml.contains(good), "{good}");
            let study = Study::from_toml("spill-homes", &toml.replacen(good, bad, 1)).expect("a study");
            let why = Plan::of(&study).expect_err("a mistake");
            assert!(why.contains(says), "{why}");
        }
    }
}
