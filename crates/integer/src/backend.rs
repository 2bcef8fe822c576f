//! The table of backends and their two GCDs. Lehmer's stops at any length and gives matrices; the one from the bottom gives inverses.
//! Both work on 64-bit limbs and are stamped for the lanes of [`crate::kernels`].

#[cfg(target_arch = "x86_64")]
use lanework_cpu::Feature;
use lanework_cpu::{Backend, Backends, Features};

use crate::gcd::binary::{self, Inverse};
use crate::gcd::euclid::{self, GaveUp, Matrix};

type Reduce<const N: usize> = unsafe fn(
    x0: &mut [u64; N],
    x1: &mut [u64; N],
    stop: usize,
    step: &mut dyn FnMut(&Matrix),
) -> Result<(), GaveUp>;

/// Both GCDs for numbers of N limbs; the second one's cofactors have M.
#[derive(Debug)]
pub struct Gcd<const N: usize, const M: usize> {
    /// As [`euclid::reduce`].
    reduce: Reduce<N>,
    /// As [`binary::invert`].
    invert: unsafe fn(&[u64; N], &[u64; N]) -> Option<Inverse<M>>,
}

impl<const N: usize, const M: usize> Gcd<N, M> {
    /// Reduces x0 >= x1 > 0 until x1 has at most `stop` bits and passes every matrix to `step`: [`euclid::reduce`]. With 0 bits x0 is
    /// the greatest common divisor, and the product of the matrices has its cofactors.
    ///
    /// # Errors
    /// [`GaveUp`], as for [`euclid::reduce`].
    pub fn reduce(
        &self,
        x0: &mut [u64; N],
        x1: &mut [u64; N],
        stop: usize,
        step: &mut dyn FnMut(&Matrix),
    ) -> Result<(), GaveUp> {
        // SAFETY: this value is reachable only through a backend whose features were checked.
        unsafe { (self.reduce)(x0, x1, stop, step) }
    }

    /// The inverse of a modulo an odd b, times a power of two: [`binary::invert`].
    #[must_use]
    pub fn invert(&self, a: &[u64; N], b: &[u64; N]) -> Option<Inverse<M>> {
        // SAFETY: as above.
        unsafe { (self.invert)(a, b) }
    }
}

/// The GCDs on a lane that needs nothing.
#[cfg(test)]
pub(crate) fn of_lane<L: crate::kernels::Lane + Default, const N: usize, const M: usize>() -> Gcd<N, M> {
    unsafe fn reduce<L: crate::kernels::Lane + Default, const N: usize>(
        x0: &mut [u64; N],
        x1: &mut [u64; N],
        stop: usize,
        step: &mut dyn FnMut(&Matrix),
    ) -> Result<(), GaveUp> {
        euclid::reduce(L::default(), x0, x1, stop, step)
    }
    unsafe fn invert<L: crate::kernels::Lane + Default, const N: usize, const M: usize>(
        a: &[u64; N],
        b: &[u64; N],
    ) -> Option<Inverse<M>> {
        binary::invert(L::default(), a, b)
    }
    Gcd { reduce: reduce::<L, N>, invert: invert::<L, N, M> }
}

/// The kernels of a backend: the GCDs of all widths.
#[derive(Debug)]
pub struct Gcds {
    /// Numbers of 256 bits.
    pub w256: Gcd<4, 9>,
    /// Numbers of 512 bits.
    pub w512: Gcd<8, 13>,
    /// Numbers of 1,024 bits.
    pub w1024: Gcd<16, 21>,
    /// Numbers of 2,112 bits.
    pub w2112: Gcd<33, 38>,
}

/// Stamps both GCDs for a lane.
macro_rules! stamp {
    ($lane:expr, $(#[$attribute:meta])*) => {
        $(#[$attribute])*
        unsafe fn reduce<const N: usize>(
            x0: &mut [u64; N],
            x1: &mut [u64; N],
            stop: usize,
            step: &mut dyn FnMut(&Matrix),
        ) -> Result<(), GaveUp> {
            euclid::reduce($lane, x0, x1, stop, step)
        }

        $(#[$attribute])*
        unsafe fn invert<const N: usize, const M: usize>(a: &[u64; N], b: &[u64; N]) -> Option<Inverse<M>> {
            binary::invert($lane, a, b)
        }

        /// The GCDs of this lane.
        pub(super) static KERNELS: Gcds = Gcds {
            w256: Gcd { reduce, invert },
            w512: Gcd { reduce, invert },
            w1024: Gcd { reduce, invert },
            w2112: Gcd { reduce, invert },
        };
    };
}

#[cfg(target_arch = "x86_64")]
mod adx;
mod portable;

/// Every backend, from the plainest, which needs nothing, to the fastest.
pub static BACKENDS: &[Backend<Gcds>] =
    // SAFETY: a row's list has every feature that its kernels enable; `lab/suite/tests/features.rs` compares it with the sources.
    unsafe {
        &[
            Backend::new("portable", "plain Rust on 64-bit limbs", Features::NONE, &portable::KERNELS),
            #[cfg(target_arch = "x86_64")]
            Backend::new(
                "adx",
                "64-bit limbs with MULX, and loops in assembly",
                Features::of(&[Feature::Bmi1, Feature::Bmi2, Feature::Lzcnt, Feature::Adx]),
                &adx::KERNELS,
            ),
        ]
    };

/// A backend of the GCDs that this CPU can run.
pub type Engine = lanework_cpu::Engine<Gcds>;

impl Backends for Gcds {
    const PRIMITIVE: &'static str = "integer";
    const BACKENDS: &'static [Backend<Gcds>] = BACKENDS;
}
