//! The contract that every backend of the squaring chain fulfils, and the table of backends.

#[cfg(target_arch = "x86_64")]
use lanework_cpu::Feature;
use lanework_cpu::{Backend, Backends, Features};

use candidates::Candidates;
use generic::nudupl::State;

#[cfg(target_arch = "x86_64")]
mod adx;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod candidates;
#[cfg(target_arch = "x86_64")]
mod eight;
pub(crate) mod generic;
mod portable;

/// Forms of discriminants of up to 512, 1,024 and 2,048 bits.
pub(crate) type Narrow = State<4, 5>;
pub(crate) type Middle = State<8, 9>;
pub(crate) type Broad = State<16, 17>;

/// The chain's kernels: each squares a form up to n times and gives how often it did. It stops early, with the form as it was
/// before, where a squaring needs the general code. The middle argument is a quarter of the discriminant's length in bits,
/// and a little. All values are public.
#[derive(Debug)]
pub struct Kernels {
    pub(crate) narrow: unsafe fn(&mut Narrow, usize, u64) -> u64,
    pub(crate) middle: unsafe fn(&mut Middle, usize, u64) -> u64,
    pub(crate) broad: unsafe fn(&mut Broad, usize, u64) -> u64,
    pub(crate) compose: Compose,
    /// The chain's code on many forms, each by itself, up to a phase: what the study of its phases times.
    pub(crate) phases: unsafe fn(&[Middle], usize, Phase) -> Tally,
    /// For numbers out of hashes that have to be prime.
    pub(crate) candidates: &'static Candidates,
}

/// The product of two forms for each width of chain: nothing, if the general code has to find it. The last argument is the
/// chain's.
#[derive(Debug)]
pub(crate) struct Compose {
    pub(crate) narrow: unsafe fn(&Narrow, &Narrow, usize) -> Option<Narrow>,
    pub(crate) middle: unsafe fn(&Middle, &Middle, usize) -> Option<Middle>,
    pub(crate) broad: unsafe fn(&Broad, &Broad, usize) -> Option<Broad>,
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
                Phase::Forms => rows(form).and_then(|r| compose::compose(&r)).map(|s: Middle| s.a[0]),
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
    pub(crate) fn narrow(&self, form: &mut Narrow, stop: usize, n: u64) -> u64 {
        // SAFETY: this value is reachable only through a backend whose features were checked.
        unsafe { (self.narrow)(form, stop, n) }
    }

    pub(crate) fn middle(&self, form: &mut Middle, stop: usize, n: u64) -> u64 {
        // SAFETY: as above.
        unsafe { (self.middle)(form, stop, n) }
    }

    pub(crate) fn broad(&self, form: &mut Broad, stop: usize, n: u64) -> u64 {
        // SAFETY: as above.
        unsafe { (self.broad)(form, stop, n) }
    }

    pub(crate) fn phases(&self, forms: &[Middle], stop: usize, upto: Phase) -> Tally {
        // SAFETY: as above.
        unsafe { (self.phases)(forms, stop, upto) }
    }

    pub(crate) fn compose_narrow(&self, x: &Narrow, y: &Narrow, stop: usize) -> Option<Narrow> {
        // SAFETY: as above.
        unsafe { (self.compose.narrow)(x, y, stop) }
    }

    pub(crate) fn compose_middle(&self, x: &Middle, y: &Middle, stop: usize) -> Option<Middle> {
        // SAFETY: as above.
        unsafe { (self.compose.middle)(x, y, stop) }
    }

    pub(crate) fn compose_broad(&self, x: &Broad, y: &Broad, stop: usize) -> Option<Broad> {
        // SAFETY: as above.
        unsafe { (self.compose.broad)(x, y, stop) }
    }
}
