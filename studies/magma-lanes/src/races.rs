//! Running the study: the values of the report's tests, the races, the builds under other flags.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::path::Path;

use crate::subjects::{KEY, PLAIN, REPORT};
use crate::variants::{REPORT_F, Schedule, VARIANTS};
use lanework_race::clock::Monotonic;
use lanework_race::record::{Record, ResultRow};
use lanework_race::study::Study;
use lanework_study::races::{Effort, Race};
use lanework_study::{CORRECT, Failure, Session, data, races};
use lanework_suite::Context;

use super::flags::{self, Flags};
use super::question::Plan;

/// The report's scalar code, as a variant.
pub(super) const SCALAR: &str = "table-scalar (leaks)";

/// All that was found.
pub(super) struct Measured {
    pub(super) record: Record,
    pub(super) values: Values,
    pub(super) flags: Flags,
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

/// Leaves out what an earlier race compares already: where gost-engine is not here, two races have one baseline.
fn once(races: &mut Vec<Race>) {
    let mut seen = BTreeSet::new();
    for race in races.iter_mut() {
        let (subject, baseline) = (&race.subject, &race.baseline);
        race.challengers.retain(|c| seen.insert((subject.clone(), baseline.clone(), c.clone())));
    }
    races.retain(|race| !race.challengers.is_empty());
}

/// Everything.
pub(super) fn measure(
    session: &Session,
    study: &Study,
    plan: &Plan,
    kuznyechik: Option<&Path>,
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
    once(&mut races);
    let shared = Effort { seconds: effort.seconds, launches: effort.launches, core: None };
    let mut record = races::race_all(session, &study.name, &races, &shared)?;
    let clock = Monotonic::new();
    let flags = flags::measure(session, &study.name, effort, kuznyechik, &mut record, &clock)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_compared_twice() {
        let race = |subject: &str, baseline: &str, challengers: &[&str]| Race {
            subject: subject.to_owned(),
            baseline: baseline.to_owned(),
            challengers: challengers.iter().map(|&c| c.to_owned()).collect(),
        };
        let mut races = vec![
            race("ctr/16384", "portable", &["avx2", "avx512"]),
            race("ctr/16384", "portable", &["avx512", "libgcrypt", "avx2"]),
            race("ctr/64", "portable", &["avx2"]),
            race("ctr/64", "avx2", &["portable"]),
            race("ctr/64", "portable", &["avx2"]),
        ];
        once(&mut races);
        let left: Vec<_> = races.iter().map(|r| (r.subject.as_str(), r.challengers.join(" "))).collect();
        let expected = [
            ("ctr/16384", "avx2 avx512"),
            ("ctr/16384", "libgcrypt"),
            ("ctr/64", "avx2"),
            ("ctr/64", "portable"),
        ];
        assert_eq!(left, expected.map(|(subject, left)| (subject, left.to_owned())));
    }

    #[test]
    fn the_study_races_no_pair_twice() {
        let plan = crate::question::tests::plan();
        let context = Context::new(lanework_cpu::Settings::default());
        let own = || crate::subjects::subjects(&context);
        let mut all: Vec<Race> = plan
            .race
            .iter()
            .flat_map(|asked| data::races(&context, own(), asked).expect("known").0)
            .collect();
        let pairs = |races: &[Race]| {
            let pairs = races.iter().flat_map(|r| r.challengers.iter().map(|c| (&r.subject, &r.baseline, c)));
            (pairs.clone().count(), pairs.collect::<BTreeSet<_>>().len())
        };
        let (_, different) = pairs(&all);
        once(&mut all);
        assert_eq!(pairs(&all), (different, different));
    }
}
