//! Facts about the devices themselves, outside races: correct results, memory and joules.
#![forbid(unsafe_code)]

use std::time::Instant;

use lanework_cuda::Energy;
use lanework_mayo::{Engine, Params};
use lanework_mayo_cuda::{Fleet, bytes_in_flight};
use lanework_race::gate::GateRow;
use lanework_suite::mayo::Operation;
use lanework_suite::mayo::cuda::{Batch, How};
use lanework_suite::{Context, Depth};
use serde::Serialize;

/// The memory that one set takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Memory {
    pub(super) set: String,
    /// Key generation, signing and verification with compact keys, then both with expanded ones.
    pub(super) bytes: [usize; 5],
    /// The most local bytes and registers of any kernel, and its name; not in emulation.
    pub(super) local: Option<(u32, String)>,
    pub(super) registers: Option<(u32, String)>,
}

/// Energy for one operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Joules {
    pub(super) set: String,
    pub(super) operation: &'static str,
    pub(super) batch: usize,
    pub(super) operations: usize,
    pub(super) joules_each: f64,
    pub(super) watts: f64,
}

/// Checks every set against the published answers and the CPU, and searches freed memory for secrets; devices' rows only.
pub(super) fn check(context: &Context, sets: &[&'static Params], engine: Engine, full: bool) -> Vec<GateRow> {
    let mut rows = Vec::new();
    for params in sets {
        let pattern = format!("mayo/{}", params.path());
        let depths: &[Depth] = if full { &[Depth::KnownAnswers, Depth::Quick] } else { &[Depth::Quick] };
        for depth in depths {
            let all = lanework_suite::check(context, &pattern, *depth, &mut |_| {});
            rows.extend(all.into_iter().filter(|row| row.backend == context.device.name()));
        }
    }
    // One set is enough: sets differ only in the size of what is freed. Nothing else holds a device by now.
    let devices = context.device.open().unwrap_or_default();
    for (device, params) in devices.into_iter().zip(std::iter::repeat(sets.first())) {
        rows.extend(params.map(|params| lanework_suite::mayo::cuda::secrets_left(device, engine, params)));
    }
    rows
}

pub(super) fn memory(fleet: Option<&Fleet>, params: &Params) -> Memory {
    let facts = fleet
        .and_then(|fleet| fleet.gpus().first())
        .filter(|gpu| !gpu.device().card().emulated)
        .and_then(|gpu| gpu.facts(params).ok())
        .unwrap_or_default();
    let most = |of: fn(&lanework_cuda::Facts) -> u32| {
        facts.iter().max_by_key(|(_, f)| of(f)).map(|(name, f)| (of(f), name.clone()))
    };
    Memory {
        set: params.path(),
        bytes: bytes_in_flight(params),
        local: most(|f| f.local),
        registers: most(|f| f.registers),
    }
}

/// Repeats a batch for this long, between two readings of the first device's counter.
pub(super) fn joules(
    context: &Context,
    params: &'static Params,
    operation: Operation,
    batch: usize,
    seconds: f64,
) -> Result<Joules, String> {
    let mut work = Batch::new(context, params, operation, How::of(batch)).map_err(|u| u.why)?;
    let card = work.cards.first().ok_or("no device")?;
    if work.cards.len() > 1 {
        return Err("counted on a single device only; name one".to_owned());
    }
    let counter = Energy::of(card).map_err(|u| u.why)?;
    // The counter moves in steps of some milliseconds: one batch warms up, and many make the steps small.
    work.run();
    let (start, before) = (Instant::now(), counter.millijoules().map_err(|u| u.why)?);
    let mut operations = 0;
    while start.elapsed().as_secs_f64() < seconds {
        work.run();
        operations += batch;
    }
    let (took, after) = (start.elapsed().as_secs_f64(), counter.millijoules().map_err(|u| u.why)?);
    let joules = after.saturating_sub(before) as f64 / 1e3;
    if operations == 0 || joules == 0.0 {
        return Err("the counter did not move".to_owned());
    }
    let (joules_each, watts) = (joules / operations as f64, joules / took);
    Ok(Joules { set: params.path(), operation: operation.name(), batch, operations, joules_each, watts })
}
