//! What only a study runs: other forms of the vector kernels, and loops that show what a core has.
//!
//! Nothing here is in [`BACKENDS`](crate::arithmetic::BACKENDS). All forms of a product give the same numbers as the shipped one, and
//! the tests and the study's gate hold them to that.

use lanework_cpu::{Backend, Features};

use super::avx512::probes as kernels;
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

    /// Bytes of code of the product of 512 and of 1,024 bits, where the linker says.
    #[must_use]
    pub fn code_bytes(&self) -> [Option<usize>; 2] {
        self.bytes.map(|f| f())
    }
}

static UNROLLED: Product = Product {
    mul512: kernels::unrolled_512,
    mul1024: kernels::unrolled_1024,
    bytes: [kernels::bytes::unrolled_512, kernels::bytes::unrolled_1024],
};
static LOOPED: Product = Product {
    mul512: kernels::looped_512,
    mul1024: kernels::looped_1024,
    bytes: [kernels::bytes::looped_512, kernels::bytes::looped_1024],
};
static BUSY: Product = Product {
    mul512: kernels::busy_512,
    mul1024: kernels::busy_1024,
    bytes: [kernels::bytes::busy_512, kernels::bytes::busy_1024],
};

/// All forms.
pub static PRODUCTS: &[Backend<Product>] =
    // SAFETY: a row's list has every feature that its kernels enable.
    unsafe {
        &[
            Backend::new(
                "unrolled",
                "the shipped product: every row written out",
                Features::AVX512,
                &UNROLLED,
            ),
            Backend::new("looped", "one loop over the eight classes of rows", Features::AVX512, &LOOPED),
            Backend::new(
                "busy",
                "the shipped product, with as many multiply-adds again that nobody needs: half the ports",
                Features::AVX512,
                &BUSY,
            ),
        ]
    };

/// Sums in two's complement, and what the core is asked beside.
#[derive(Debug)]
pub struct Probes(());

impl Probes {
    /// From sign and magnitude to two's complement.
    #[inline]
    pub fn to_twos<const V: usize>(
        &self,
        x: &crate::arithmetic::Number<V>,
        out: &mut crate::arithmetic::Number<V>,
    ) {
        // SAFETY: this value is reachable only through a backend whose features were checked.
        unsafe { kernels::to_twos(x, out) }
    }

    /// From two's complement to sign and magnitude.
    #[inline]
    pub fn from_twos<const V: usize>(
        &self,
        x: &crate::arithmetic::Number<V>,
        out: &mut crate::arithmetic::Number<V>,
    ) {
        // SAFETY: as above.
        unsafe { kernels::from_twos(x, out) }
    }

    /// out = x + y, all in two's complement.
    #[inline]
    pub fn add_twos<const V: usize>(
        &self,
        x: &crate::arithmetic::Number<V>,
        y: &crate::arithmetic::Number<V>,
        out: &mut crate::arithmetic::Number<V>,
    ) {
        // SAFETY: as above.
        unsafe { kernels::add_twos(x, y, out) }
    }

    /// `count` times eight independent multiply-adds of 512 bits, or of 256.
    pub fn multiply_adds(&self, wide: bool, count: u64) {
        // SAFETY: as above.
        unsafe { kernels::multiply_adds(wide, count) }
    }

    /// Runs through 48 KiB of code that does nothing.
    pub fn other_code(&self) {
        kernels::other_code();
    }

    /// `count` times 64 additions that wait for each other: as many cycles.
    pub fn cycles(&self, count: u64) {
        kernels::cycles(count);
    }
}

/// The probes' only row.
pub static PROBES: Backend<Probes> =
    // SAFETY: the list has every feature that the probes enable.
    unsafe {
        Backend::new(
            "avx512",
            "sums in two's complement and loops of the core",
            Features::AVX512,
            &Probes(()),
        )
    };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::avx512::KERNELS;
    use lanework_cpu::Settings;
    use lanework_integer::Int;
    use lanework_integer::check::Numbers;

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
