//! Checks, known answers and parts of the chain's code, for the tests and the laboratory. Not part of the public interface.
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "std"))]
pub mod check;
pub mod known;

pub use crate::backend::Form1024;
pub use crate::backend::generic::compose::compose;
pub use crate::backend::generic::nudupl::{multiples, rows};
use crate::chain::Chain;

/// The kernels of `adx`.
#[cfg(target_arch = "x86_64")]
pub mod adx {
    pub use crate::backend::adx::lower;
}

/// The kernels of `avx512`.
#[cfg(target_arch = "x86_64")]
pub mod avx512 {
    pub use crate::backend::avx512::{invert, multiples, rows, square};
}

/// The chain's form as the kernels for 513 to 1,024 bits take it, if it fits them, and where they stop.
#[must_use]
pub fn form1024(chain: &Chain) -> Option<(Form1024, usize)> {
    chain.form1024()
}
