//! The operations on 64-bit limbs for CPUs with BMI2 and ADX.
//!
//! A row of a product takes five instructions a limb in one loop of four limbs: MULX, ADOX with the high half before, ADCX with
//! what is there, a store. Floor: the multiplier takes one a cycle; two carry chains of one cycle a limb each run beside it.

use core::arch::asm;
use core::cmp::Ordering;

use super::portable::{self, Rows};
use super::{Arithmetic, Kernels, Matrix, Modulus, Number, Sum};
use lanework_integer::kernels::Adx;

impl Rows for Adx {
    #[inline(always)]
    fn add_mul(self, x: &mut [u64], y: &[u64], factor: u64) -> u64 {
        let n = y.len();
        assert!(x.len() == n, "two runs of one length");
        let mut carry = 0;
        let odd = n % 4;
        for (x, &y) in x[..odd].iter_mut().zip(y) {
            (*x, carry) = y.carrying_mul_add(factor, *x, carry);
        }
        if n == odd {
            return carry;
        }
        // SAFETY: BMI2 and ADX are there, by this type. The pointers run over n - odd limbs of each slice, four a turn; the counter
        // is the turns left, not 0 at the start, and nothing between the multiplications touches a flag but the chains.
        unsafe {
            asm!(
                "xor {l:e}, {l:e}",
                "2:",
                "mulx {h}, {l}, qword ptr [{y}]",
                "adox {l}, {c}",
                "adcx {l}, qword ptr [{x}]",
                "mov qword ptr [{x}], {l}",
                "mulx {c}, {l}, qword ptr [{y} + 8]",
                "adox {l}, {h}",
                "adcx {l}, qword ptr [{x} + 8]",
                "mov qword ptr [{x} + 8], {l}",
                "mulx {h}, {l}, qword ptr [{y} + 16]",
                "adox {l}, {c}",
                "adcx {l}, qword ptr [{x} + 16]",
                "mov qword ptr [{x} + 16], {l}",
                "mulx {c}, {l}, qword ptr [{y} + 24]",
                "adox {l}, {h}",
                "adcx {l}, qword ptr [{x} + 24]",
                "mov qword ptr [{x} + 24], {l}",
                "lea {x}, [{x} + 32]",
                "lea {y}, [{y} + 32]",
                "lea rcx, [rcx - 1]",
                "jrcxz 3f",
                "jmp 2b",
                "3:",
                "mov {l:e}, 0",
                "adox {c}, {l}",
                "adcx {c}, {l}",
                x = inout(reg) x.as_mut_ptr().add(odd) => _, y = inout(reg) y.as_ptr().add(odd) => _,
                c = inout(reg) carry, h = out(reg) _, l = out(reg) _,
                inout("rcx") n / 4 => _, in("rdx") factor,
                options(nostack)
            );
        }
        carry
    }
}

portable::stamp!(
    // SAFETY: the row of the table names these features, and kernels are reached only through it.
    unsafe { Adx::assume() },
    #[target_feature(enable = "bmi1,bmi2,lzcnt,adx")]
);
