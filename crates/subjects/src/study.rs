//! Subjects that only a study races: variants among them leak, or exist to be measured against. No bench, no tour and no
//! choice of a backend sees them.
#![forbid(unsafe_code)]

use lanework_lab::subject::Subject;

use crate::Context;

pub mod ifma_vdf;
pub mod magma_lanes;

/// Every such subject.
#[must_use]
pub fn subjects(context: &Context) -> Vec<Subject> {
    magma_lanes::subjects(context)
}
