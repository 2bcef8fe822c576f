//! The oracle, known answers, checks and leak evidence, for the tests and the laboratory, and kernels that a study stamps for
//! sets of its own. Not a part of the public interface.

pub mod check;
pub mod known;
#[cfg(all(any(test, feature = "leaks"), target_os = "linux", target_arch = "x86_64"))]
pub mod leaks;
pub mod spec;
pub mod symmetric_spec;

pub use crate::backend::{BACKENDS, Expand, Kernels, SETS, SLACK, SetKernels, SetSpec, operands};
pub use crate::params::tables::running;
pub use crate::params::{SEED_PK_BYTES, Schedule, Sizes, TAIL};
pub use crate::scheme::Scheme;
pub use crate::set_kernels;

/// What batches have in common wherever they run, for crates that run them on other processors.
pub mod batch {
    pub use crate::digest::Message;
    pub use crate::keys::{draw_randomizer, emit, expect};
    pub use crate::scheme::hash_each;
    pub use crate::verify::{Admission, admit_each, verdict};
}

/// The field.
pub mod field {
    pub use crate::field::*;
}

/// The portable kernels.
pub mod portable {
    pub use crate::backend::portable::{Widths, set, words};
}

/// The kernels of `avx2`.
#[cfg(target_arch = "x86_64")]
pub mod avx2 {
    pub use crate::backend::avx2::{Widths, set};
}

/// The kernels of `avx2-gfni`.
#[cfg(target_arch = "x86_64")]
pub mod avx2_gfni {
    pub use crate::backend::avx2_gfni::{Widths, set};
}

/// The kernels of `avx512`.
#[cfg(target_arch = "x86_64")]
pub mod avx512 {
    pub use crate::backend::avx512::{Widths, set};
}
