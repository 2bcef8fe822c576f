//! The arguments of `lanework respill`.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use lanework_respill::assumption::Assumption;
use lanework_respill::plan::Policy;
use lanework_respill::validate::{Obligation, UNDECIDED, UNTESTED};
use lanework_spill::Homes;

// `respill`.
#[derive(Debug, Args)]
pub(crate) struct RespillArgs {
    #[command(subcommand)]
    pub(crate) job: RespillJob,
}

// The jobs of `respill`.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum RespillJob {
    /// Show functions, frames and stack slots: the purpose of each slot, what may touch it, and possible homes.
    Analyse(AnalyseArgs),
    /// Move slots into free registers: assembly in, assembly out. Moves only slots that validate accepts, by the text or by
    /// running a case.
    #[command(after_help = limits())]
    Rewrite(RewriteArgs),
    /// Check a rewrite by its text or, failing that, by following every access of runs and comparing both versions instruction by
    /// instruction. Exits 1 with the reason if it is refused.
    #[command(after_help = limits())]
    Validate(super::run_args::ValidateArgs),
    /// Find code that leaves MMX in use where floating point may begin; exits 1 if there is any.
    Lint(super::run_args::LintArgs),

    /// Race a function with its values on the stack against each home, with controls for layout.
    Measure(super::timing_args::MeasureArgs),
    /// Find the fastest accepted home of each slot on this processor, often the stack.
    Auto(super::timing_args::AutoArgs),
    /// Show the cost of a spill and a reload on this processor, for each home.
    Cpu(super::timing_args::CpuArgs),
    /// The inner half of a race, started by measure.
    #[command(name = "__race", hide = true)]
    Race(super::timing_args::JobArgs),
}

/// What is checked and what is not, for the help.
fn limits() -> String {
    let checked = Obligation::ALL.map(|obligation| format!("  {}: {}", obligation.name(), obligation.says()));
    let not = UNDECIDED.iter().chain(&UNTESTED).map(|what| format!("  {what}"));
    let assumed = Assumption::ALL.map(|one| format!("  {one}: {}", one.says()));
    format!(
        "Checked, unless --naive asks for unchecked moves:\n{}\nWith a case, results are tested on N inputs.\n\nAssumptions, each named by a verdict that needs it:\n{}\n\nNot decided:\n{}",
        checked.join("\n"),
        assumed.join("\n"),
        not.collect::<Vec<_>>().join("\n")
    )
}

// The text to analyse.
#[derive(Clone, Debug, Args)]
pub(crate) struct SourceArgs {
    /// GNU assembly, AT&T or Intel syntax, preprocessed, without macros; `-` for standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Only this function and its callees. May be given several times.
    #[arg(long = "function", value_name = "NAME")]
    pub(crate) functions: Vec<String>,
}

// `respill analyse`.
#[derive(Debug, Args)]
pub(crate) struct AnalyseArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Also show callee-saves, narrow cells and other slots without spilled values.
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) cases: super::run_args::CasesArgs,
}

/// Which slots to move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyName {
    /// Slots that hold pointers, the hottest first.
    Pointers,
    /// Every slot that can move, the hottest first.
    #[default]
    Hottest,
    /// Every slot that can move, the coldest first.
    Coldest,
    /// The same as hottest.
    All,
    /// The fastest choice that `respill auto --keep` stored for this function, which may leave everything on the stack.
    Auto,
}

impl PolicyName {
    pub(crate) fn policy(self) -> Policy {
        match self {
            PolicyName::Pointers => Policy::Pointers,
            PolicyName::Coldest => Policy::Coldest,
            PolicyName::Hottest | PolicyName::All | PolicyName::Auto => Policy::Hottest,
        }
    }
}

/// A slot as `respill analyse` names it: `FUNCTION:PLACE`, or `PLACE` if one function is selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlotName {
    pub(crate) function: Option<String>,
    pub(crate) place: String,
}

impl FromStr for SlotName {
    type Err = String;

    fn from_str(said: &str) -> Result<SlotName, String> {
        let (function, place) = match said.rsplit_once(':') {
            Some((function, place)) => (Some(function.to_owned()), place),
            None => (None, said),
        };
        let number = place.rsplit_once(['@']).map_or(place, |(_, rest)| {
            rest.find(['+', '-'])
                .map_or("", |sign| if rest[..sign].parse::<usize>().is_ok() { &rest[sign..] } else { "" })
        });
        if number.parse::<i64>().is_err() || function.as_deref() == Some("") {
            return Err(format!(
                "'{said}' is not a slot: `lanework respill analyse` shows names such as f:-24 and f:@7+16"
            ));
        }
        Ok(SlotName { function, place: place.to_owned() })
    }
}

// Which slots go where.
#[derive(Debug, Args)]
pub(crate) struct WishArgs {
    /// Homes: mm, xmm, xmm32, k, zmm-lane. Several are filled in the order given; N limits the registers used of a home.
    #[arg(long, value_name = "HOME[:N],...", default_value = "xmm")]
    pub(crate) home: Homes,
    /// Move only these slots, as analyse names them: `FUNCTION:-24`, or `-24` with one --function.
    #[arg(long, value_name = "SLOT,...", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) slots: Vec<SlotName>,
    /// Which slots to move, and in which order.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) policy: PolicyName,
    /// Skip slots that arithmetic uses as operands; otherwise they pass through a free register.
    #[arg(long)]
    pub(crate) moves_only: bool,
    /// Also move slots that something else may touch. The result may be wrong code, which validate must refuse.
    #[arg(long, conflicts_with = "unreached")]
    pub(crate) naive: bool,
}

// `respill rewrite`.
#[derive(Debug, Args)]
pub(crate) struct RewriteArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) wish: WishArgs,
    #[command(flatten)]
    pub(crate) runs: super::run_args::RunsArgs,
    /// Leave spilled values in their homes when a function ends. Slightly faster, but secrets stay in registers.
    #[arg(long)]
    pub(crate) no_wipe: bool,
    /// Where to write the text; a file appears only once it is complete. Default, and `-`: standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing file.
    #[arg(long)]
    pub(crate) force: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_read() {
        let slot: SlotName = "f:-24".parse().expect("a slot");
        assert_eq!((slot.function.as_deref(), slot.place.as_str()), (Some("f"), "-24"));
        let slot: SlotName = "@7+16".parse().expect("a slot");
        assert_eq!((slot.function, slot.place.as_str()), (None, "@7+16"));
        for bad in ["", "f:", ":-8", "f:x", "@+8", "@x+8", "@7"] {
            assert!(bad.parse::<SlotName>().is_err(), "{bad}");
        }
    }
}
