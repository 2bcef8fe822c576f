//! `respill cpu`: what a spill and a reload cost here, for each home.
#![forbid(unsafe_code)]

use lanework_race::affinity::Pin;
use lanework_respill::assembler::AssembleError;
use lanework_respill::cpu::Effort;
use lanework_respill::cpu::loops::{CpuError, here};
use lanework_respill::program::Why;
use lanework_study::{Failure, Outcome};

use super::timing_args::CpuArgs;
use crate::ui::Session;

pub(super) fn run(session: &Session, args: &CpuArgs) -> Result<Outcome, Failure> {
    let mut pin = Pin::hold(args.core).map_err(|e| match args.core {
        Some(_) => Failure::input(e),
        None => Failure::unavailable(e),
    })?;
    // Without a pin the figures are only less precise, but a core that was asked for must be used.
    if let (Err(e), Some(_)) = (pin.use_cores(1), args.core) {
        return Err(Failure::unavailable(e));
    }
    let bar = session.progress(0, "timing");
    let effort = Effort { pairs: usize::from(args.pairs), ..Effort::default() };
    let table = here(session.context.cpu.features(), effort, |done, of| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    })
    .map_err(|e| match &e {
        // The loops are ours: an instruction that an assembler refuses is one it does not know.
        CpuError::Program(p) if !matches!(p.why, Why::Assemble(AssembleError::Missing { .. })) => {
            Failure::unavailable(format!("the assembler here does not know every instruction: {e}"))
        }
        _ => Failure::unavailable(e),
    })?;
    bar.finish_and_clear();
    if session.json {
        println!("{}", serde_json::json!({ "cpu": lanework_race::machine::cpu_identity(), "table": table }));
    } else {
        println!("{}", lanework_race::machine::cpu_identity());
        print!("{table}");
    }
    Ok(Outcome::Yes)
}
