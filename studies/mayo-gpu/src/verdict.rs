//! The verdict, from the data.
#![forbid(unsafe_code)]

use lanework_mayo::Params;
use lanework_race::table::times;

use super::figures::WHOLE;
use super::question::{Original, Plan, SETS};
use super::races::Measured;
use super::threads;

/// What the report's own table says of itself.
pub(super) fn of_the_report(original: &Original) -> Vec<String> {
    let flight = original.in_flight();
    let list: Vec<String> = flight.iter().map(|n| format!("{n:.1}")).collect();
    let same = flight.iter().all(|n| (n / flight[0] - 1.0).abs() < 1e-3);
    let computed = original.computed_cpu();
    let agrees = (computed / original.table.cpu[0] - 1.0).abs() < 1e-3;
    vec![
        format!(
            "Throughput times latency in the report's GPU columns is {}: {}, where its launch had {} threads. A card of that size \
             holds tens of thousands of threads; it was all but idle.",
            list.join(", "),
            if same {
                format!("{:.0} operations in flight in every set", flight[0])
            } else {
                "not the same number of operations in flight in every set".to_owned()
            },
            original.launched(),
        ),
        format!(
            "Its CPU figure for MAYO-1, {} a second, is {}: {:.1} GHz by {} cycles of its profile are {computed:.1}. A processor of \
             that kind has sixteen cores.",
            original.table.cpu[0],
            if agrees {
                "one thread's, and follows from cycle counts"
            } else {
                "not what its cycle counts give"
            },
            original.ghz,
            original.profile.iter().map(|p| p.whole).sum::<u64>(),
        ),
    ]
}

/// The set's column in the report's table.
pub(super) fn column(params: &Params) -> Option<usize> {
    SETS.iter().position(|set| params.path().ends_with(&format!("/{set}")))
}

/// What was found here.
fn found(plan: &Plan, measured: &Measured) -> Vec<String> {
    let figures = measured.figures();
    let original = &plan.original;
    let mut lines = Vec::new();
    for params in &measured.params {
        let Some(i) = column(params) else { continue };
        let one = figures.whole(|o| figures.ns(params, o, crate::subjects::ONE));
        if let Some(one) = one {
            lines.push(format!(
                "{}: one core of {} here does {one:.0} MAYO/s, {} the report's RTX 4090.",
                params.name(),
                measured.backend,
                times(one / original.table.gpu[i]),
            ));
        }
        lines.extend(threads::verdict(measured, params, original.shape()));
        let (Some(gpu), Some(all)) = (
            figures.whole(|o| figures.best(params, o).map(|b| b.ns)),
            figures.whole(|o| figures.all_cores(params, o)),
        ) else {
            continue;
        };
        let word = if gpu > all { "PAYS" } else { "DOES NOT PAY" };
        lines.push(format!(
            "{}: {word}. {gpu:.0} MAYO/s on the device, {} all {} cores here and {} the report's.",
            params.name(),
            times(gpu / all),
            measured.cores,
            times(gpu / original.table.gpu[i]),
        ));
    }
    lines
}

/// Every line of it.
pub(super) fn verdict(plan: &Plan, measured: &Measured) -> Vec<String> {
    let mut lines = of_the_report(&plan.original);
    if measured.emulated {
        lines.push(format!("No verdict: the device is {}, and its times mean nothing.", measured.hosted()));
        return lines;
    }
    if let Some(why) = &measured.missing {
        lines.push(format!("No verdict on a GPU: none is here ({why}). What follows is the CPU's half."));
    }
    lines.extend(found(plan, measured));
    let judged = measured.missing.is_none()
        && measured.params.iter().all(|p| {
            let figures = measured.figures();
            WHOLE.into_iter().all(|o| figures.best(p, o).is_some())
        });
    if measured.missing.is_none() && !judged {
        lines.push(
            "Not every set has figures on the device: what is missing stands under \"Not here\".".to_owned(),
        );
    }
    lines
}
