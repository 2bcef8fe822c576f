//! What `study.toml` and the options ask for.
#![forbid(unsafe_code)]

use lanework_race::study::Study;
use lanework_study::Failure;
use serde::Deserialize;

use crate::Own;
use crate::overview::Claim;
use crate::rows::Rows;

/// `study.toml` behind its question.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Plan {
    pub(super) original: Original,
    pub(super) quick: Effort,
    pub(super) full: Effort,
    /// What the report notes of its rows.
    pub(super) claim: Vec<Claim>,
    #[serde(flatten)]
    pub(super) rows: Rows,
}

/// The report that asked first.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Original {
    pub(super) title: String,
    pub(super) machine: String,
    pub(super) command: String,
    /// Where its sources are.
    pub(super) repository: String,
    pub(super) commit: String,
}

/// How much is run.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Effort {
    /// Processes that a race is spread over.
    pub(super) launches: u32,
    /// For the race of one home of one function.
    pub(super) milliseconds: u64,
    /// Inputs on which results are compared.
    pub(super) inputs: u64,
    /// The homes, besides the report's own choice.
    pub(super) homes: Vec<String>,
    /// Whether rows that the user gives files for are also checked without those files, untimed.
    #[serde(default)]
    pub(super) stand_ins: bool,
    /// The rows, if not all.
    #[serde(default)]
    pub(super) rows: Vec<String>,
    /// Whether the user named the rows, so that files for others are left alone.
    #[serde(skip)]
    pub(super) named: bool,
    /// Whether anything is timed.
    #[serde(skip)]
    pub(super) timed: bool,
}

impl Plan {
    pub(super) fn of(study: &Study) -> Result<Plan, String> {
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
    pub(super) fn effort(&self, full: bool, args: &Own) -> Result<Effort, Failure> {
        let mut effort = if full { self.full.clone() } else { self.quick.clone() };
        if let Some(name) = args.rows.iter().find(|name| !self.has(name)) {
            return Err(Failure::input(format!("--rows: no row '{name}'"))
                .help(format!("choose among {}", self.names().join(", "))));
        }
        if !args.rows.is_empty() {
            effort.rows.clone_from(&args.rows);
        }
        effort.named = !args.rows.is_empty();
        effort.timed = !args.validate_only;
        Ok(effort)
    }
}

#[cfg(test)]
mod tests {
    use lanework_spill::Homes;

    use super::*;
    use crate::{ENTRY, races};

    #[test]
    fn the_studys_file_is_read_and_its_mistakes_are_named() {
        let toml = ENTRY.toml;
        let study = Study::from_toml("spill-homes", toml).expect("a study");
        let plan = Plan::of(&study).expect("a plan");
        assert_eq!(plan.rows.row.iter().filter(|row| row.original.is_some()).count(), 17);
        for row in &plan.rows.row {
            assert!(row.home.parse::<Homes>().is_ok(), "{}", row.name);
            assert!(races::policy(&row.policy).is_ok(), "{}", row.name);
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
