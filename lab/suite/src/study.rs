//! Subjects that only a study races: variants among them leak, or exist to be measured against. No bench, no tour and no
//! choice of a backend sees them.
#![forbid(unsafe_code)]

use lanework_race::subject::Subject;

use crate::Context;

pub mod ifma_vdf;
pub mod magma_lanes;
pub mod mayo_gpu;
pub mod self_check;

/// Every such subject.
#[must_use]
pub fn subjects(context: &Context) -> Vec<Subject> {
    let mut all = magma_lanes::subjects(context);
    all.extend(mayo_gpu::subjects(context));
    all.push(self_check::subject());
    all
}
