//! The contract that every backend of the squaring chain fulfils, and the table of backends.

#[cfg(target_arch = "x86_64")]
use lanework_cpu::Feature;
use lanework_cpu::{Backend, Backends, Features};

use candidates::Candidates;

#[cfg(target_arch = "x86_64")]
pub(crate) mod adx;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
pub(crate) mod candidates;
pub(crate) mod generic;
mod portable;

/// A form (a, b, c) in the kernels' layout: magnitudes in whole limbs, lowest first, N for a and b and C = N + 1 for c,
/// and b's sign apart.
///
/// b is odd, |b| <= a <= c. Where two of these are equal, b may be negative, although the form is then not reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormLimbs<const N: usize, const C: usize> {
    /// a.
    pub a: [u64; N],
    /// The magnitude of b.
    pub b: [u64; N],
    /// Whether b is below 0.
    pub negative: bool,
    /// c.
    pub c: [u64; C],
}

/// A form whose discriminant has at most 512 bits.
pub(crate) type Form512 = FormLimbs<4, 5>;
/// A form whose discriminant has 513 to 1,024 bits.
pub type Form1024 = FormLimbs<8, 9>;
/// A form whose discriminant has 1,025 to 2,048 bits.
pub(crate) type Form2048 = FormLimbs<16, 17>;

/// The most products that a kernel computes side by side.
pub(crate) const BESIDE: usize = 16;

/// The kernels of a backend. All values are public: kernels branch and divide freely.
///
/// Forms are of one discriminant. `stop` is the bit length at which rows of Euclid's algorithm stop: a quarter of the
/// discriminant's length, and a little (`Discriminant::stop`). Where a number is longer or shorter than a kernel
/// provides for, it leaves the work to the general code of `form::compose`. It never makes a wrong form from a right
/// one.
#[derive(Debug)]
pub struct Kernels {
    /// Squares `form` up to `n` times in place, and returns how often. If that is less than `n`, the general code must
    /// do the next squaring. Must equal [`spec::square`](crate::spec::square) repeated.
    pub(crate) square512: unsafe fn(form: &mut Form512, stop: usize, n: u64) -> u64,
    /// The same for longer forms.
    pub(crate) square1024: unsafe fn(form: &mut Form1024, stop: usize, n: u64) -> u64,
    /// The same for the longest.
    pub(crate) square2048: unsafe fn(form: &mut Form2048, stop: usize, n: u64) -> u64,
    /// The product of `x` and `y`, or `None` if the general code must compute it. Must equal
    /// [`spec::compose`](crate::spec::compose).
    pub(crate) compose512: unsafe fn(x: &Form512, y: &Form512, stop: usize) -> Option<Form512>,
    /// The same for longer forms.
    pub(crate) compose1024: unsafe fn(x: &Form1024, y: &Form1024, stop: usize) -> Option<Form1024>,
    /// The same for the longest.
    pub(crate) compose2048: unsafe fn(x: &Form2048, y: &Form2048, stop: usize) -> Option<Form2048>,
    /// Multiplies the first form of each pair by the second, of at most [`BESIDE`] pairs. A bit of the result is set if
    /// its pair was multiplied; the general code must do the others, which are as they were.
    /// Pairs need not have one discriminant, but discriminants of one length.
    pub(crate) multiply1024: unsafe fn(pairs: &mut [(Form1024, Form1024)], stop: usize) -> u64,
    /// The fewest products that take it less time than one after the other; `usize::MAX` if none do.
    pub(crate) worthwhile: usize,
    /// Tests of prime candidates.
    pub(crate) candidates: &'static Candidates,
}

/// Every backend, from the plainest, which needs nothing, to the fastest.
pub static BACKENDS: &[Backend<Kernels>] =
    // SAFETY: a row's list has every feature that its kernels enable; `lab/suite/tests/features.rs` compares it with the sources.
    unsafe {
        &[
            Backend::new("portable", "plain Rust on 64-bit limbs", Features::NONE, &portable::KERNELS),
            #[cfg(target_arch = "x86_64")]
            Backend::new(
                "adx",
                "64-bit limbs with MULX, a binary inverse of moves, and primes in AVX2 lanes",
                Features::of(&[Feature::Bmi1, Feature::Bmi2, Feature::Lzcnt, Feature::Adx, Feature::Avx2]),
                &adx::KERNELS,
            ),
            #[cfg(target_arch = "x86_64")]
            Backend::new(
                "avx512",
                "as adx; discriminants of up to 1,024 bits with long rows in IFMA lanes",
                Features::of(&[
                    Feature::Avx512f,
                    Feature::Avx512bw,
                    Feature::Avx512dq,
                    Feature::Avx512vl,
                    Feature::Avx512ifma,
                    Feature::Avx512vbmi,
                    Feature::Avx512vbmi2,
                    Feature::Bmi1,
                    Feature::Bmi2,
                    Feature::Lzcnt,
                    Feature::Adx,
                ]),
                &avx512::KERNELS,
            ),
        ]
    };

/// A backend of the delay function that this CPU can run.
pub type Engine = lanework_cpu::Engine<Kernels>;

impl Backends for Kernels {
    const PRIMITIVE: &'static str = "vdf";
    const BACKENDS: &'static [Backend<Kernels>] = BACKENDS;
}

/// An engine with a test's kernels.
#[cfg(test)]
pub(crate) fn altered(name: &'static str, kernels: Kernels) -> Engine {
    // SAFETY: a test takes kernels from an engine that runs here, and replaces some by code that needs no feature.
    unsafe { Engine::outside(name, Box::leak(Box::new(kernels))) }
}

/// `multiply1024` for kernels that compute one product after the other.
macro_rules! one_by_one {
    ($pairs:ident, $compose:expr) => {{
        let mut done = 0;
        for (i, (x, y)) in $pairs.iter_mut().enumerate() {
            if let Some(product) = $compose(&*x, &*y) {
                *x = product;
                done |= 1 << i;
            }
        }
        done
    }};
}
pub(crate) use one_by_one;

/// The loop of every kernel.
macro_rules! chain_kernel {
    ($lane:expr, $form:ident, $stop:expr, $n:ident, $($sizes:literal)*) => {{
        let mut done = 0;
        while done < $n {
            let invert = |a: &_, b: &_| lanework_integer::gcd::binary::invert($lane, a, b);
            if !crate::backend::generic::nudupl::square::<_, $($sizes),*>($lane, $form, $stop, invert) {
                break;
            }
            done += 1;
        }
        done
    }};
}
pub(crate) use chain_kernel;

impl Kernels {
    pub(crate) fn square512(&self, form: &mut Form512, stop: usize, n: u64) -> u64 {
        // SAFETY: kernels are reachable only through an engine, for which their features were found on this CPU.
        unsafe { (self.square512)(form, stop, n) }
    }

    pub(crate) fn square1024(&self, form: &mut Form1024, stop: usize, n: u64) -> u64 {
        // SAFETY: kernels are reachable only through an engine, for which their features were found on this CPU.
        unsafe { (self.square1024)(form, stop, n) }
    }

    pub(crate) fn square2048(&self, form: &mut Form2048, stop: usize, n: u64) -> u64 {
        // SAFETY: kernels are reachable only through an engine, for which their features were found on this CPU.
        unsafe { (self.square2048)(form, stop, n) }
    }

    pub(crate) fn compose512(&self, x: &Form512, y: &Form512, stop: usize) -> Option<Form512> {
        // SAFETY: as for `square512`.
        unsafe { (self.compose512)(x, y, stop) }
    }

    pub(crate) fn compose1024(&self, x: &Form1024, y: &Form1024, stop: usize) -> Option<Form1024> {
        // SAFETY: as for `square512`.
        unsafe { (self.compose1024)(x, y, stop) }
    }

    pub(crate) fn compose2048(&self, x: &Form2048, y: &Form2048, stop: usize) -> Option<Form2048> {
        // SAFETY: as for `square512`.
        unsafe { (self.compose2048)(x, y, stop) }
    }

    pub(crate) fn multiply1024(&self, pairs: &mut [(Form1024, Form1024)], stop: usize) -> u64 {
        // SAFETY: as for `square512`.
        unsafe { (self.multiply1024)(pairs, stop) }
    }
}
