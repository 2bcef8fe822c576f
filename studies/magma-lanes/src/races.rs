//! Running the study: the values of the report's tests, the races, the builds under other flags.
#![forbid(unsafe_code)]

use crate::subjects::{KEY, PLAIN, REPORT};
use crate::variants::{REPORT_F, Schedule, VARIANTS};
use lanework_race::clock::Monotonic;
use lanework_race::record::{Record, ResultRow};
use lanework_race::study::Study;
use lanework_study::races::Effort;
use lanework_study::{CORRECT, Failure, Session, data, races};
use lanework_suite::Context;

use super::flags::{self, Line};
use super::question::Plan;

/// The report's scalar code, as a variant.
pub(super) const SCALAR: &str = "table-scalar (leaks)";

/// All that was found.
pub(super) struct Measured {
    pub(super) record: Record,
    pub(super) values: Values,
    pub(super) flags: Vec<Line>,
    pub(super) launches: u32,
    pub(super) seconds: f64,
    /// Whether peers were asked for, and whether this build could race them.
    pub(super) peers: bool,
}

/// The report's tests of f and of one block, computed here.
#[derive(Clone, Default)]
pub(super) struct Values {
    pub(super) scalar_f: Option<[u32; 8]>,
    pub(super) vector_f: Option<[u32; 8]>,
    pub(super) scalar_block: Option<[u8; 8]>,
    /// One block from each of eight lanes.
    pub(super) vector_blocks: Option<[[u8; 8]; 8]>,
}

impl Values {
    fn here(context: &Context) -> Values {
        let variant = |name: &str| {
            VARIANTS.iter().find(|row| row.name() == name).and_then(|row| row.get(&context.cpu).ok())
        };
        let block = |name| {
            let out = variant(name)?.constant_block(&Schedule::new(&KEY), &PLAIN, 1);
            let mut blocks = [[0; 8]; 8];
            blocks.copy_from_slice(out.as_chunks().0);
            Some(blocks)
        };
        let f = |name| Some(variant(name)?.f(&REPORT_F.map(|p| p.0)));
        Values {
            scalar_f: f(SCALAR),
            vector_f: f(REPORT),
            scalar_block: block(SCALAR).map(|b| b[0]),
            vector_blocks: block(REPORT),
        }
    }
}

impl Measured {
    /// The row of a race.
    pub(super) fn row(&self, subject: &str, variant: &str, baseline: &str) -> Option<&ResultRow> {
        let rows = &self.record.results;
        rows.iter().find(|r| r.subject == subject && r.variant == variant && r.baseline == baseline)
    }

    /// Nanoseconds of a unit, from the race in which it was a variant, else from one in which it was the baseline.
    pub(super) fn ns(&self, subject: &str, variant: &str) -> Option<f64> {
        let mut rows = self.record.results.iter().filter(|r| r.subject == subject);
        let own = rows.clone().find(|r| r.variant == variant).map(|r| r.median);
        own.or_else(|| rows.find(|r| r.baseline == variant).map(|r| r.baseline_median))
    }

    /// How many times as fast one is as another: from their own race if there is one, else from their ratios to a third.
    pub(super) fn ratio(&self, subject: &str, variant: &str, baseline: &str) -> Option<f64> {
        if let Some(row) = self.row(subject, variant, baseline) {
            return Some(row.ratio);
        }
        if let Some(row) = self.row(subject, baseline, variant) {
            return Some(1.0 / row.ratio);
        }
        let rows = self.record.results.iter().filter(|r| r.subject == subject && r.variant == variant);
        rows.into_iter().find_map(|r| Some(r.ratio / self.row(subject, baseline, &r.baseline)?.ratio))
    }
}

/// Everything.
pub(super) fn measure(
    session: &Session,
    study: &Study,
    plan: &Plan,
    full: bool,
) -> Result<Measured, Failure> {
    let effort = if full { &plan.full } else { &plan.quick };
    let mut races = Vec::new();
    for asked in &plan.race {
        // The other names are those of peers that were not asked for: a test checks that.
        let (here, _) = data::races(&session.context, crate::subjects::subjects(&session.context), asked)
            .map_err(|why| Failure::input(format!("{}/study.toml: {why}", study.name)).help(CORRECT))?;
        races.extend(here);
    }
    let shared = Effort { seconds: effort.seconds, launches: effort.launches, core: None };
    let mut record = races::race_all(session, &study.name, &races, &shared)?;
    let clock = Monotonic::new();
    let flags = flags::measure(session, &study.name, effort, &mut record, &clock)?;
    record.machine.finish(&clock);
    record.gate.dedup();
    record.not_here.dedup_by(|a, b| a.variant == b.variant && a.why == b.why);
    #[cfg(feature = "peers")]
    if let Some(dir) = &session.context.peers {
        record.machine.peers = crate::subjects::peers::builds(dir);
    }
    Ok(Measured {
        record,
        values: Values::here(&session.context),
        flags,
        launches: effort.launches,
        seconds: effort.seconds,
        peers: session.context.peers.is_some(),
    })
}
