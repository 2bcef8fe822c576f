//! The lane operations for CPUs with BMI2 and ADX: the loops whose branches and moves a compiler gets wrong.
//!
//! Floors, in cycles of latency on Zen 4 and 5: a step of Euclid is a division with small quotient (10) and its use; a step
//! of the binary algorithm is subtract, count zeros, shift: 4.

use core::arch::asm;

use crate::kernels::Lane;

/// Proof that BMI1, BMI2 and ADX are there.
#[derive(Clone, Copy, Debug)]
pub struct Adx(());

impl Adx {
    /// The proof.
    ///
    /// # Safety
    /// The CPU must have BMI1, BMI2 and ADX, and the caller must be compiled for them.
    #[inline(always)]
    #[must_use]
    pub const unsafe fn assume() -> Adx {
        Adx(())
    }
}

impl Lane for Adx {
    #[inline(always)]
    fn div(self, a: u64, b: u64) -> (u64, u64) {
        let (quotient, rest);
        // SAFETY: the high half of the dividend is 0 and b is not, by contract; were it 0, the CPU would trap.
        unsafe {
            asm!("div {b}", b = in(reg) b, inout("rax") a => quotient, inout("rdx") 0u64 => rest,
                options(pure, nomem, nostack));
        }
        (quotient, rest)
    }

    #[inline(always)]
    fn halve31(self, mut a: u64, b: u64) -> (u64, u64) {
        let z = (a | 1 << 31).trailing_zeros();
        a >>= z;
        let (mut m0, mut m1) = (1u64, 1u64 << 32 << z);
        // SAFETY: BMI1 and BMI2 are there, by this type; registers only. A step is the plain definition's, with moves on the
        // carry of a - b in place of masks. Shifts are counted down, not guarded: if the last one goes too far it is
        // repeated from its input, so the guard is not on the critical path between steps.
        unsafe {
            asm!(
                "test {l:e}, {l:e}",
                "jz 3f",
                ".p2align 6",
                "2:",
                "mov {t}, {b}",
                "sub {t}, {a}",
                "tzcnt {z}, {t}",
                "mov {r}, {m0}",
                "sub {r}, {m1}",
                "mov {n}, {m1}",
                "sub {n}, {m0}",
                "mov {d}, {a}",
                "sub {d}, {b}",
                "cmovc {b}, {a}",
                "cmovc {d}, {t}",
                "cmovc {m1}, {m0}",
                "cmovc {r}, {n}",
                "mov {n}, {m1}",
                "shrx {a}, {d}, {z}",
                "shlx {m1}, {m1}, {z}",
                "mov {m0}, {r}",
                "sub {l}, {z}",
                "ja 2b",
                "add {z}, {l}",
                "shlx {m1}, {n}, {z}",
                "3:",
                a = inout(reg) a => _, b = inout(reg) b => _, m0 = inout(reg) m0, m1 = inout(reg) m1,
                l = inout(reg) u64::from(31 - z) => _, t = out(reg) _, z = out(reg) _, r = out(reg) _, n = out(reg) _,
                d = out(reg) _,
                options(pure, nomem, nostack)
            );
        }
        (m0, m1)
    }

    #[inline(always)]
    fn nearest(self, a: u64, b: u64, limit: u64) -> (u64, u64) {
        let (mut m0, mut m1) = (1u64, 1u64 << 32);
        // SAFETY: registers only; the dividend's upper half is 0 and b is not, being at least `limit`; were it 0, the CPU would trap. A
        // step is the plain definition's, its selections by moves.
        unsafe {
            asm!(
                "cmp {b}, {limit}",
                "jb 3f",
                ".p2align 4",
                "2:",
                "xor edx, edx",
                "mov {h}, {b}",
                "shr {h}, 1",
                "mov {t}, {b}",
                "mov {n}, {m1}",
                "div {b}",
                "sub {t}, rdx",
                "cmp {h}, rdx",
                "cmovb rdx, {t}",
                "sbb {t}, {t}",
                "sub rax, {t}",
                "imul {n}, rax",
                "mov rax, {b}",
                "mov {b}, rdx",
                "sub {m0}, {n}",
                "xor {m0}, {t}",
                "sub {m0}, {t}",
                "mov {n}, {m0}",
                "mov {m0}, {m1}",
                "mov {m1}, {n}",
                "cmp {b}, {limit}",
                "jae 2b",
                "3:",
                b = inout(reg) b => _, m0 = inout(reg) m0, m1 = inout(reg) m1, limit = in(reg) limit,
                t = out(reg) _, h = out(reg) _, n = out(reg) _, inout("rax") a => _, out("rdx") _,
                options(pure, nomem, nostack)
            );
        }
        (m0, m1)
    }

    #[inline(always)]
    fn minus<const K: usize>(self, a: &[u64; K], b: &[u64; K], p: u64, q: u64, out: &mut [u64; K]) -> u64 {
        let top: u64;
        // SAFETY: BMI2 and ADX are there, by this type; each pointer has K limbs.
        // -q b = q (2^(64 K) - 1 - b) + q - 2^(64 K) q, so that only sums are formed, with two carries; the high halves of the
        // products are below 2^63, so their sum needs none.
        unsafe {
            asm!(
                "xor {h:e}, {h:e}",
                ".set lanework_at, 0",
                ".rept {k}",
                "mov rdx, {p}",
                "mulx {h}, {l}, qword ptr [{a} + lanework_at]",
                "mov rdx, qword ptr [{b} + lanework_at]",
                "not rdx",
                "mulx {g}, {m}, {q}",
                "adcx {s}, {l}",
                "adox {s}, {m}",
                "mov qword ptr [{o} + lanework_at], {s}",
                "lea {s}, [{h} + {g}]",
                ".set lanework_at, lanework_at + 8",
                ".endr",
                "mov {l:e}, 0",
                "adcx {s}, {l}",
                "adox {s}, {l}",
                k = const K,
                p = in(reg) p, q = in(reg) q, a = in(reg) a.as_ptr(), b = in(reg) b.as_ptr(),
                o = in(reg) out.as_mut_ptr(), s = inout(reg) q => top,
                h = out(reg) _, g = out(reg) _, l = out(reg) _, m = out(reg) _,
                out("rdx") _,
                options(nostack)
            );
        }
        top.wrapping_sub(q)
    }

    #[inline(always)]
    fn divided<const K: usize>(
        self,
        a: &[u64; K],
        b: &[u64; K],
        p: u64,
        q: u64,
        shift: u32,
        out: &mut [u64; K],
    ) -> u64 {
        let top: u64;
        let last: u64;
        // SAFETY: as for `minus`; each pointer has K limbs. The limb below is shifted when the next one is known.
        unsafe {
            asm!(
                "mov rdx, {p}",
                "mulx {h}, {l}, qword ptr [{a}]",
                "mov rdx, qword ptr [{b}]",
                "not rdx",
                "mulx {g}, {m}, {q}",
                "xor {t:e}, {t:e}",
                "adcx {s}, {l}",
                "adox {s}, {m}",
                "shrx {t}, {s}, {r}",
                "lea {s}, [{h} + {g}]",
                ".set lanework_at, 8",
                ".rept {k} - 1",
                "mov rdx, {p}",
                "mulx {h}, {l}, qword ptr [{a} + lanework_at]",
                "mov rdx, qword ptr [{b} + lanework_at]",
                "not rdx",
                "mulx {g}, {m}, {q}",
                "adcx {s}, {l}",
                "adox {s}, {m}",
                "shlx {l}, {s}, {c}",
                "lea {t}, [{t} + {l}]",
                "mov qword ptr [{o} + lanework_at - 8], {t}",
                "shrx {t}, {s}, {r}",
                "lea {s}, [{h} + {g}]",
                ".set lanework_at, lanework_at + 8",
                ".endr",
                "mov {l:e}, 0",
                "adcx {s}, {l}",
                "adox {s}, {l}",
                k = const K,
                p = in(reg) p, q = in(reg) q, a = in(reg) a.as_ptr(), b = in(reg) b.as_ptr(),
                o = in(reg) out.as_mut_ptr(), s = inout(reg) q => top,
                h = out(reg) _, g = out(reg) _, l = out(reg) _, m = out(reg) _, t = out(reg) last,
                r = in(reg) u64::from(shift), c = in(reg) u64::from(64 - shift),
                out("rdx") _,
                options(nostack)
            );
        }
        let top = top.wrapping_sub(q);
        out[K - 1] = last | top << (64 - shift);
        (top as i64 >> shift) as u64
    }

    #[inline(always)]
    fn plus<const K: usize>(self, a: &[u64; K], b: &[u64; K], p: u64, q: u64, out: &mut [u64; K]) -> u64 {
        let top: u64;
        // SAFETY: as for `minus`.
        unsafe {
            asm!(
                "xor {h:e}, {h:e}",
                ".set lanework_at, 0",
                ".rept {k}",
                "mov rdx, {p}",
                "mulx {h}, {l}, qword ptr [{a} + lanework_at]",
                "mov rdx, qword ptr [{b} + lanework_at]",
                "mulx {g}, {m}, {q}",
                "adcx {s}, {l}",
                "adox {s}, {m}",
                "mov qword ptr [{o} + lanework_at], {s}",
                "lea {s}, [{h} + {g}]",
                ".set lanework_at, lanework_at + 8",
                ".endr",
                "mov {l:e}, 0",
                "adcx {s}, {l}",
                "adox {s}, {l}",
                k = const K,
                p = in(reg) p, q = in(reg) q, a = in(reg) a.as_ptr(), b = in(reg) b.as_ptr(),
                o = in(reg) out.as_mut_ptr(), s = inout(reg) 0u64 => top,
                h = out(reg) _, g = out(reg) _, l = out(reg) _, m = out(reg) _,
                out("rdx") _,
                options(nostack)
            );
        }
        top
    }
}
