//! What only a study runs: other forms of the vector kernels, and loops that show what a core has.
//!
//! Nothing here is in [`BACKENDS`](crate::arithmetic::BACKENDS). All forms of a product give the same numbers as the shipped one, and
//! the tests and the study's gate check that.

use lanework_cpu::{Backend, Features};

mod kernels;

pub use kernels::Probes;

use crate::arithmetic::{Number512, Number1024, Number2112};

/// A form of the product of two 512-bit and of two 1,024-bit numbers.
#[derive(Debug)]
pub struct Product {
    mul512: unsafe fn(&Number512, &Number512, &mut Number1024),
    mul1024: unsafe fn(&Number1024, &Number1024, &mut Number2112),
    bytes: [fn() -> Option<usize>; 2],
}

impl Product {
    /// out = x y, 512 bits each.
    #[inline]
    pub fn mul512(&self, x: &Number512, y: &Number512, out: &mut Number1024) {
        // SAFETY: this value is reachable only through a backend whose features were checked.
        unsafe { (self.mul512)(x, y, out) }
    }

    /// out = x y, 1,024 bits each.
    #[inline]
    pub fn mul1024(&self, x: &Number1024, y: &Number1024, out: &mut Number2112) {
        // SAFETY: as above.
        unsafe { (self.mul1024)(x, y, out) }
    }

    /// Bytes of code of the product of 512 and of 1,024 bits, where the linker reports them.
    #[must_use]
    pub fn code_bytes(&self) -> [Option<usize>; 2] {
        self.bytes.map(|f| f())
    }
}

/// All forms.
pub static PRODUCTS: &[Backend<Product>] =
    // SAFETY: a row's list has every feature that its kernels enable.
    unsafe {
        &[
            Backend::new(
                "unrolled",
                "the shipped product: every row written out",
                Features::AVX512,
                &kernels::UNROLLED,
            ),
            Backend::new(
                "looped",
                "one loop over the eight classes of rows",
                Features::AVX512,
                &kernels::LOOPED,
            ),
            Backend::new(
                "busy",
                "the shipped product, with as many superfluous multiply-adds again: half the ports",
                Features::AVX512,
                &kernels::BUSY,
            ),
        ]
    };

/// The probes' only row.
pub static PROBES: Backend<Probes> =
    // SAFETY: the list has every feature that the probes enable.
    unsafe {
        Backend::new(
            "avx512",
            "sums in two's complement and loops of the core",
            Features::AVX512,
            &kernels::PROBES,
        )
    };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::avx512::KERNELS;
    use lanework_cpu::Settings;
    use lanework_integer::Int;
    use lanework_integer::internals::check::Numbers;

    fn probes() -> Option<&'static Probes> {
        PROBES.get(&Settings::from_env().expect("settings").cpu()).ok().map(|engine| engine.kernels())
    }

    #[test]
    fn every_form_gives_the_shipped_product() {
        if probes().is_none() {
            return;
        }
        let cpu = lanework_cpu::Cpu::detect();
        let (small, large) = (&KERNELS.w512, &KERNELS.w1024);
        let mut numbers = Numbers::new(3);
        for _ in 0..20_000 {
            let (x, y): (Int<8>, Int<8>) = (numbers.signed(512), numbers.signed(512));
            let (a, b) = (small.number(&x).expect("fits"), small.number(&y).expect("fits"));
            let (p, q): (Int<16>, Int<16>) = (numbers.signed(1024), numbers.signed(1024));
            let (c, d) = (large.number(&p).expect("fits"), large.number(&q).expect("fits"));
            for form in PRODUCTS {
                let product = form.get(&cpu).expect("as the probes");
                let (mut out, mut wide) = (small.wide_zero(), large.wide_zero());
                product.mul512(&a, &b, &mut out);
                assert_eq!(small.wide_int::<16>(&out), Some(x.times(&y)), "{}: {x:?} {y:?}", form.name());
                product.mul1024(&c, &d, &mut wide);
                assert_eq!(large.wide_int::<33>(&wide), Some(p.times(&q)), "{}: {p:?} {q:?}", form.name());
            }
        }
    }

    #[test]
    fn sums_in_twos_complement_are_sums() {
        let Some(probes) = probes() else { return };
        let ops = &KERNELS.w512;
        let mut numbers = Numbers::new(4);
        for i in 0..50_000 {
            let x: Int<9> = numbers.signed(511);
            let y = if i % 8 == 0 { -x } else { numbers.signed(511) };
            let (mut a, mut b) = (ops.number(&x).expect("fits"), ops.number(&y).expect("fits"));
            let (mut sum, mut out) = (ops.zero(), ops.zero());
            for x in [&mut a, &mut b] {
                let from = *x;
                probes.to_twos(&from, x);
            }
            probes.add_twos(&a, &b, &mut sum);
            probes.from_twos(&sum, &mut out);
            assert_eq!(ops.int::<9>(&out), Some(x.plus(&y)), "{x:?} {y:?}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn code_has_a_length() {
        if probes().is_none() {
            return;
        }
        let cpu = lanework_cpu::Cpu::detect();
        let bytes = |i: usize| PRODUCTS[i].get(&cpu).expect("as the probes").code_bytes();
        let ([Some(u512), Some(u1024)], [Some(l512), Some(l1024)]) = (bytes(0), bytes(1)) else {
            panic!("no lengths");
        };
        assert!(0 < l512 && 0 < l1024 && u512 < u1024 && l1024 < u1024, "{u512} {u1024} {l512} {l1024}");
    }
}
