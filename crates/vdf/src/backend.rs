//! The contract that every backend of the squaring chain fulfils, and the table of backends.

#[cfg(target_arch = "x86_64")]
use lanework_cpu::Feature;
use lanework_cpu::{Backend, Backends, Features};

use candidates::Candidates;

#[cfg(target_arch = "x86_64")]
mod adx;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod candidates;
#[cfg(target_arch = "x86_64")]
mod eight;
pub(crate) mod generic;
mod portable;

/// A form (a, b, c) as kernels take it: magnitudes in whole limbs, lowest first, N for a and b and C = N + 1 for c, and b's sign apart.
///
/// b is odd, |b| <= a <= c. The form need not be quite reduced: where two of these are equal, b may be negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FormLimbs<const N: usize, const C: usize> {
    pub(crate) a: [u64; N],
    pub(crate) b: [u64; N],
    pub(crate) negative: bool,
    pub(crate) c: [u64; C],
}

/// A form whose discriminant has at most 512 bits.
pub(crate) type Form512 = FormLimbs<4, 5>;
/// A form whose discriminant has 513 to 1,024 bits.
pub(crate) type Form1024 = FormLimbs<8, 9>;
/// A form whose discriminant has 1,025 to 2,048 bits.
pub(crate) type Form2048 = FormLimbs<16, 17>;

/// The kernels of a backend. All values are public: kernels branch and divide as they like.
///
/// Forms are of one discriminant. `stop` is the bit length at which rows of Euclid's algorithm stop: a quarter of the discriminant's
/// length, and a little (`Discriminant::stop`). Where a number comes out longer or shorter than a kernel provides for, it leaves the
/// work to the general code of `form::compose`, and never gives a wrong form of a right one.
#[derive(Debug)]
pub struct Kernels {
    /// Squares `form` up to `n` times in place, and gives how often it did. Where that is less than `n`, the next squaring is for the
    /// general code. Must equal [`spec::square`](crate::spec::square) repeated.
    pub(crate) square512: unsafe fn(form: &mut Form512, stop: usize, n: u64) -> u64,
    /// The same for longer forms.
    pub(crate) square1024: unsafe fn(form: &mut Form1024, stop: usize, n: u64) -> u64,
    /// The same for the longest.
    pub(crate) square2048: unsafe fn(form: &mut Form2048, stop: usize, n: u64) -> u64,
    /// The product of `x` and `y`, or nothing if it is for the general code. Must equal [`spec::compose`](crate::spec::compose).
    pub(crate) compose512: unsafe fn(x: &Form512, y: &Form512, stop: usize) -> Option<Form512>,
    /// The same for longer forms.
    pub(crate) compose1024: unsafe fn(x: &Form1024, y: &Form1024, stop: usize) -> Option<Form1024>,
    /// The same for the longest.
    pub(crate) compose2048: unsafe fn(x: &Form2048, y: &Form2048, stop: usize) -> Option<Form2048>,
    /// The chain's code on many forms, each by itself, up to a phase: what the study of its phases times.
    #[cfg_attr(not(feature = "std"), allow(dead_code, reason = "only a study asks for phases"))]
    pub(crate) phases: unsafe fn(forms: &[Form1024], stop: usize, upto: Phase) -> Tally,
    /// For numbers out of hashes that have to be prime.
    pub(crate) candidates: &'static Candidates,
}

/// Every backend, from the plainest, which needs nothing, to the fastest.
pub static BACKENDS: &[Backend<Kernels>] =
    // SAFETY: a row's list has every feature that its kernels enable; `subjects/tests/features.rs` holds the sources against it.
    unsafe {
        &[
            Backend::new("portable", "plain Rust on 64-bit limbs", Features::NONE, &portable::KERNELS),
            #[cfg(target_arch = "x86_64")]
            Backend::new(
                "adx",
                "64-bit limbs with MULX, and a binary inverse of moves",
                Features::of(&[Feature::Bmi1, Feature::Bmi2, Feature::Adx]),
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

/// An engine of a test's kernels.
#[cfg(test)]
pub(crate) fn altered(name: &'static str, kernels: Kernels) -> Engine {
    // SAFETY: a test takes kernels from an engine that runs here, and replaces some by code without any feature.
    unsafe { Engine::outside(name, Box::leak(Box::new(kernels))) }
}

/// A phase of a squaring, and all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The inverse of a modulo b.
    Inverse,
    /// m = c / a modulo b and k = (a m - c) / b.
    Multiples,
    /// The partial GCD on (a, k), with the columns that go along.
    Partial,
    /// The products, and reduction: the square.
    Forms,
}

/// What came of many forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Forms that the phase had a result for.
    pub(crate) done: usize,
    /// All results' lowest limbs together, so that none is left out.
    pub(crate) mixed: u64,
}

impl Tally {
    /// Takes one result in, and waits for it: the next form's instructions begin after its last.
    #[inline(always)]
    pub(crate) fn take(&mut self, result: Option<u64>) {
        self.done += usize::from(result.is_some());
        self.mixed = self.mixed.rotate_left(1) ^ result.unwrap_or(0);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 has SSE2.
        unsafe {
            core::arch::x86_64::_mm_lfence();
        }
    }
}

/// The phases of the generic code: the lane, the inverse and the step after it.
macro_rules! phases_kernel {
    ($lane:expr, $forms:ident, $stop:ident, $upto:ident, $invert:expr, $multiples:expr) => {{
        use crate::backend::Phase;
        use crate::backend::generic::{compose, nudupl};
        let mut tally = crate::backend::Tally::default();
        let rows = |form: &_| nudupl::rows::<_, 8, 9, 5>($lane, form, $stop, $multiples);
        for form in $forms {
            tally.take(match $upto {
                Phase::Inverse => $invert(&form.a, &form.b).map(|x: Inverse<13>| x.magnitude[0]),
                Phase::Multiples => $multiples(form).map(|(m, k)| m[0] ^ k[0]),
                Phase::Partial => rows(form).map(|r| r.x[0][0] ^ r.x[1][0] ^ r.v[1][0] ^ r.e[1][0]),
                Phase::Forms => rows(form).and_then(|r| compose::compose(&r)).map(|s: Form1024| s.a[0]),
            });
        }
        tally
    }};
}
pub(crate) use phases_kernel;

/// The loop that every kernel is.
macro_rules! chain_kernel {
    ($lane:expr, $form:ident, $stop:ident, $n:ident, $($sizes:literal)*) => {{
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

    #[cfg_attr(not(feature = "std"), allow(dead_code, reason = "only a study asks for phases"))]
    pub(crate) fn phases(&self, forms: &[Form1024], stop: usize, upto: Phase) -> Tally {
        // SAFETY: as for `square512`.
        unsafe { (self.phases)(forms, stop, upto) }
    }
}
