//! One candidate at a time, with two carry chains in every row of a product.

use core::arch::asm;

use lanework_integer::limbs;

use super::{Batch, Candidates, portable};
use crate::form::num::Num;
use crate::prime::bpsw;
use crate::prime::montgomery::Words;

pub(in crate::backend) static CANDIDATES: Candidates =
    Candidates { lanes: 1, coprime: portable::small, likely, strong, lucas };

/// Proof that this CPU has BMI2 and ADX.
#[derive(Clone, Copy, Debug)]
struct Chains(());

impl Words for Chains {
    #[inline(always)]
    fn add_mul(self, x: &mut [u64], y: &[u64], factor: u64) -> u64 {
        let n = y.len();
        assert!(x.len() == n, "two runs of one length");
        if n < 8 || !n.is_multiple_of(4) {
            return limbs::add_mul(x, y, factor);
        }
        let high;
        // SAFETY: a value of this type proves BMI2 and ADX; n limbs of both runs are accessed, four a turn. One carry
        // chain adds the products' halves, the other adds x; no instruction between them changes the flags.
        unsafe {
            asm!(
                "xor {h:e}, {h:e}",
                "2:",
                "mulx {g}, {l}, qword ptr [{y}]",
                "adcx {l}, {h}",
                "adox {l}, qword ptr [{x}]",
                "mov qword ptr [{x}], {l}",
                "mulx {h}, {l}, qword ptr [{y} + 8]",
                "adcx {l}, {g}",
                "adox {l}, qword ptr [{x} + 8]",
                "mov qword ptr [{x} + 8], {l}",
                "mulx {g}, {l}, qword ptr [{y} + 16]",
                "adcx {l}, {h}",
                "adox {l}, qword ptr [{x} + 16]",
                "mov qword ptr [{x} + 16], {l}",
                "mulx {h}, {l}, qword ptr [{y} + 24]",
                "adcx {l}, {g}",
                "adox {l}, qword ptr [{x} + 24]",
                "mov qword ptr [{x} + 24], {l}",
                "lea {y}, [{y} + 32]",
                "lea {x}, [{x} + 32]",
                "lea rcx, [rcx - 1]",
                "jrcxz 3f",
                "jmp 2b",
                "3:",
                "mov {l:e}, 0",
                "adcx {h}, {l}",
                "adox {h}, {l}",
                x = inout(reg) x.as_mut_ptr() => _, y = inout(reg) y.as_ptr() => _,
                h = out(reg) high, g = out(reg) _, l = out(reg) _,
                inout("rcx") n / 4 => _, in("rdx") factor,
                options(nostack)
            );
        }
        high
    }
}

/// # Safety
/// The CPU must have BMI2 and ADX.
#[target_feature(enable = "bmi1,bmi2,adx")]
unsafe fn likely(batch: Batch<'_>) -> u8 {
    // SAFETY: the caller's promise.
    u8::from(batch.numbers().all(|n| unsafe { strong(&Num::from_limbs(false, n)) }))
}

/// # Safety
/// The CPU must have BMI2 and ADX.
#[target_feature(enable = "bmi1,bmi2,adx")]
pub(super) unsafe fn strong(n: &Num) -> bool {
    bpsw::strong(Chains(()), n)
}

/// # Safety
/// The CPU must have BMI2 and ADX.
#[target_feature(enable = "bmi1,bmi2,adx")]
pub(super) unsafe fn lucas(n: &Num) -> bool {
    bpsw::lucas(Chains(()), n)
}
