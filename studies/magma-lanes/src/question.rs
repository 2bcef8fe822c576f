//! The published report's figures, and the races that ask about them again.
#![forbid(unsafe_code)]

use lanework_race::study::Study;
use lanework_study::data::AskedRace;
use serde::Deserialize;

/// `study.toml` behind its question.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Plan {
    pub(super) original: Original,
    pub(super) quick: Effort,
    pub(super) full: Effort,
    pub(super) race: Vec<AskedRace>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Original {
    pub(super) title: String,
    pub(super) machine: String,
    pub(super) compiler: String,
    pub(super) bytes: u64,
    pub(super) speedup: f64,
    pub(super) claimed: f64,
    pub(super) measures: [String; 4],
    pub(super) scalar: Loop,
    pub(super) vector: Loop,
    pub(super) table: Table,
}

/// One of the report's two loops.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Loop {
    pub(super) iterations: u64,
    pub(super) blocks: u64,
    pub(super) seconds: f64,
    pub(super) gbit: f64,
    pub(super) ns: f64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Table {
    pub(super) sizes: [usize; 6],
    pub(super) gost89: [f64; 6],
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Effort {
    pub(super) seconds: f64,
    pub(super) launches: u32,
    pub(super) flags_ms: f64,
    pub(super) pairs: usize,
}

impl Plan {
    pub(super) fn of(study: &Study) -> Result<Plan, String> {
        toml::Value::Table(study.table.clone())
            .try_into()
            .map_err(|e| format!("{}/study.toml: {e}", study.name))
    }
}

/// Gigabits a second of blocks of 64 bits that take `ns_per_block` each.
pub(super) fn gbit(ns_per_block: f64) -> f64 {
    64.0 / ns_per_block
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use lanework_study::data::races;

    pub(in super::super) fn plan() -> Plan {
        let entry = &crate::ENTRY;
        Plan::of(&Study::from_toml(entry.name, entry.toml).unwrap()).unwrap()
    }

    #[test]
    fn the_reports_figures_belong_together() {
        let o = plan().original;
        for l in [&o.scalar, &o.vector] {
            assert_eq!(l.iterations * l.blocks * 8, o.bytes);
            let ns = l.seconds * 1e9 / l.iterations as f64;
            assert!((ns - l.ns).abs() < 0.05, "{ns}");
            assert!((gbit(ns / l.blocks as f64) - l.gbit).abs() < 0.005, "{ns}");
        }
        assert!((o.scalar.seconds / o.vector.seconds - o.speedup).abs() < 1e-6);
    }

    #[test]
    fn every_race_can_be_had() {
        let plan = plan();
        let context = lanework_suite::Context::new(lanework_cpu::Settings::default());
        let peers =
            ["gost-engine", "gost-engine-head", "rustcrypto-native", "rustcrypto-generic", "libgcrypt"];
        let mut count = 0;
        for race in &plan.race {
            let (races, strangers) =
                races(&context, crate::subjects::subjects(&context), race).expect("its subjects are here");
            // Off x86-64 there are no vector variants.
            let known = |name: &String| peers.contains(&name.as_str()) || !cfg!(target_arch = "x86_64");
            assert!(strangers.iter().all(known), "{}: {strangers:?}", race.subject);
            count += races.len();
        }
        assert!(count >= 20);
        assert!(plan.quick.pairs >= lanework_race::stats::least_pairs(0.01));
    }
}
