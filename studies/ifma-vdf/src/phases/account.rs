//! The chain's code up to the end of each of its phases.

use lanework_integer::gcd::binary::{self, Inverse};
use lanework_integer::kernels::Portable;
use lanework_vdf::chain::{Chain, ChainError};
use lanework_vdf::internals::{Form1024, compose, form1024, multiples, rows};
#[cfg(target_arch = "x86_64")]
use lanework_vdf::internals::{adx, avx512};
use lanework_vdf::{Discriminant, Engine, Form};

/// A phase of a squaring, and all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The inverse of a modulo b.
    Inverse,
    /// m = c / a modulo b and k = (a m - c) / b.
    Multiples,
    /// The partial GCD on (a, k), with the columns that go along.
    Partial,
    /// The products, and reduction: the square.
    Forms,
}

impl Phase {
    /// In the order in which they come.
    pub(crate) const ALL: [Phase; 4] = [Phase::Inverse, Phase::Multiples, Phase::Partial, Phase::Forms];
}

/// The results of many forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    /// Forms for which the phase had a result.
    done: usize,
    /// All results' lowest limbs together, so that none is left out.
    mixed: u64,
}

impl Tally {
    /// Takes one result in, and waits for it: the next form's instructions begin after its last.
    #[inline(always)]
    fn take(&mut self, result: Option<u64>) {
        self.done += usize::from(result.is_some());
        self.mixed = self.mixed.rotate_left(1) ^ result.unwrap_or(0);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 has SSE2.
        unsafe {
            core::arch::x86_64::_mm_lfence();
        }
    }
}

/// The chain's code on many forms, each by itself, up to a phase.
type Kernel = fn(&[Form1024], usize, Phase) -> Tally;

/// The phases of the generic code: the lane, the inverse and the step after it.
macro_rules! generic {
    ($lane:expr, $forms:ident, $stop:ident, $upto:ident, $invert:expr, $multiples:expr) => {{
        let mut tally = Tally::default();
        let rows = |form: &_| rows::<_, 8, 9, 5>($lane, form, $stop, $multiples);
        for form in $forms {
            tally.take(match $upto {
                Phase::Inverse => $invert(&form.a, &form.b).map(|x: Inverse<13>| x.magnitude[0]),
                Phase::Multiples => $multiples(form).map(|(m, k)| m[0] ^ k[0]),
                Phase::Partial => rows(form).map(|r| r.x[0][0] ^ r.x[1][0] ^ r.v[1][0] ^ r.e[1][0]),
                Phase::Forms => rows(form).and_then(|r| compose(&r, &form.b)).map(|s: Form1024| s.a[0]),
            });
        }
        tally
    }};
}

fn portable(forms: &[Form1024], stop: usize, upto: Phase) -> Tally {
    let invert = |a: &_, b: &_| binary::invert(Portable, a, b);
    generic!(Portable, forms, stop, upto, invert, |form: &_| multiples(form, invert))
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use lanework_integer::kernels::Adx;

    use super::*;

    /// # Safety
    /// The CPU must have BMI1, BMI2, LZCNT and ADX.
    #[target_feature(enable = "bmi1,bmi2,lzcnt,adx")]
    pub(super) unsafe fn adx(forms: &[Form1024], stop: usize, upto: Phase) -> Tally {
        // SAFETY: this function's own contract has all four.
        let lane = unsafe { Adx::assume() };
        let stop = adx::lower(stop);
        let invert = |a: &_, b: &_| binary::invert(lane, a, b);
        generic!(lane, forms, stop, upto, invert, |form: &_| multiples(form, invert))
    }

    /// # Safety
    /// The CPU must have the features that are enabled here.
    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,lzcnt,bmi1,bmi2,adx"
    )]
    pub(super) unsafe fn avx512(forms: &[Form1024], stop: usize, upto: Phase) -> Tally {
        // SAFETY: BMI1, BMI2, LZCNT and ADX are in this function's own contract.
        let lane = unsafe { Adx::assume() };
        let mut tally = Tally::default();
        for form in forms {
            tally.take(match upto {
                Phase::Inverse => avx512::invert(lane, &form.a, &form.b).map(|x| x.magnitude[0]),
                Phase::Multiples => {
                    // SAFETY: BMI2 and ADX are in this function's own contract.
                    let found = unsafe { avx512::multiples(form, |a, b| avx512::invert(lane, a, b)) };
                    found.map(|(m, k)| m[0] ^ k[0])
                }
                Phase::Partial => avx512::rows(lane, form, stop).map(|(rows, determinant)| {
                    core::hint::black_box(rows);
                    determinant as u64
                }),
                Phase::Forms => avx512::square(lane, form, stop).map(|s| s.a[0]),
            });
        }
        tally
    }
}

/// The engine's code up to a phase, if it is known here.
fn kernel(engine: Engine) -> Option<Kernel> {
    match engine.name() {
        // SAFETY: an engine of this name exists only where its row's features were found. They are BMI1, BMI2, LZCNT and ADX.
        #[cfg(target_arch = "x86_64")]
        "adx" => Some(|forms, stop, upto| unsafe { x86_64::adx(forms, stop, upto) }),
        // SAFETY: an engine of this name exists only where its row's features were found. They are those of this kernel.
        #[cfg(target_arch = "x86_64")]
        "avx512" => Some(|forms, stop, upto| unsafe { x86_64::avx512(forms, stop, upto) }),
        "portable" => Some(portable),
        _ => None,
    }
}

/// Forms along one chain of 513 to 1,024 bits, for each of which a backend's code can run up to a phase.
#[derive(Debug)]
pub(crate) struct Account {
    kernel: Kernel,
    forms: Vec<Form1024>,
    stop: usize,
    /// The lowest limbs of the squares, together, as the chain made them.
    squares: Tally,
}

impl Account {
    /// The first `count` forms of a chain from x that its fast code squares, from `skip` squarings on. Empty for an engine whose
    /// phases are not known here.
    ///
    /// # Errors
    /// [`ChainError`], as for [`Chain::new`] and [`Chain::square`].
    pub(crate) fn new(
        engine: Engine,
        d: &Discriminant,
        x: &Form,
        skip: u64,
        count: usize,
    ) -> Result<Option<Account>, ChainError> {
        let Some(kernel) = kernel(engine) else { return Ok(None) };
        let mut chain = Chain::new(d.on(engine), x)?;
        chain.square(skip)?;
        let mut account = Account { kernel, forms: Vec::new(), stop: 0, squares: Tally::default() };
        // Forms of other lengths never become ones of this.
        for _ in 0..2 * count {
            let before = form1024(&chain);
            let slow = chain.slow();
            chain.square(1)?;
            if let (Some((before, stop)), Some((after, _))) = (before, form1024(&chain))
                && slow == chain.slow()
                && account.forms.len() < count
            {
                account.forms.push(before);
                account.stop = stop;
                account.squares.take(Some(after.a[0]));
            }
        }
        Ok(Some(account))
    }

    /// How many forms there are.
    #[must_use]
    pub(crate) const fn forms(&self) -> usize {
        self.forms.len()
    }

    /// Runs the code up to the phase's end on every form, each after the one before has ended. Returns a number that depends on
    /// all results.
    pub(crate) fn run(&self, upto: Phase) -> u64 {
        (self.kernel)(&self.forms, self.stop, upto).mixed
    }

    /// Whether every phase has a result for every form, and the last phase has the chain's.
    #[must_use]
    pub(crate) fn agrees(&self) -> bool {
        let tally = |phase| (self.kernel)(&self.forms, self.stop, phase);
        Phase::ALL.iter().all(|&phase| tally(phase).done == self.forms.len())
            && tally(Phase::Forms) == self.squares
    }
}

#[cfg(test)]
mod tests {
    use lanework_cpu::Cpu;

    use super::*;

    #[test]
    fn phases_end_in_the_chain_s_squares() {
        for (bits, some) in [(1024, true), (640, true), (512, false)] {
            let d = Discriminant::from_seed(b"phases", bits).expect("a discriminant");
            let x = Form::generator(&d).expect("a generator");
            for engine in Engine::available(&Cpu::detect()) {
                let account =
                    Account::new(engine, &d, &x, 100, 50).expect("a chain").expect("its phases are known");
                assert_eq!(account.forms(), if some { 50 } else { 0 }, "{} at {bits}", engine.name());
                assert!(account.agrees(), "{} at {bits}", engine.name());
            }
        }
    }

    #[test]
    fn a_wrong_form_is_noticed() {
        let d = Discriminant::from_seed(b"phases", 1024).expect("a discriminant");
        let x = Form::generator(&d).expect("a generator");
        let mut account =
            Account::new(Engine::best(), &d, &x, 100, 5).expect("a chain").expect("its phases are known");
        account.forms[3].c[0] ^= 2;
        assert!(!account.agrees());
    }
}
