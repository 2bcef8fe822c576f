//! What the synthetic benchmark's lines say, in sentences.
#![forbid(unsafe_code)]

use super::Synthetic;

/// What the figures after other code do not show. They are differences of two large times, and repeated runs on one machine
/// put the same one on either side of 0.
const CACHE: &str = "Whether the instruction cache is the cause is not settled. What a product adds to other code's time is a difference of two \
    large times. It swings by tens of cycles and across 0 between runs (from -66 to +14 in earlier ones on a Zen 4), since fetching the \
    other code hides some of the work.";

/// The report's sum of parts for 512 bits takes the conversion of 1,024.
const SLIP: &str = "The report adds up 17 + 17 + 67 + 24 = 125 cycles for a 512-bit product with its conversions. Its own line for one 512-bit \
    conversion says 12; 17 is the line of 1,024 bits. The sum is 12 + 12 + 67 + 24 = 115, against 180 in one loop.";

impl Synthetic {
    /// What the lines say about the report's questions, as sentences with their figures.
    #[must_use]
    pub(crate) fn findings(&self) -> Vec<String> {
        let c = |name: &str| self.cycles(name);
        let (mut out, mut cooled) = (vec![SLIP.to_owned()], false);
        out.extend(super::rivals::finding(self));
        for bits in [512, 1024] {
            let name = |what: &str| format!("{bits}_{what}");
            let parts = (c(&name("to_avx512")), c(&name("mul_avx512")), c(&name("mul_to_gmp")));
            if let ((Some(to), Some(mul), Some(from)), Some(all)) = (parts, c(&name("mul_avx512_gmp"))) {
                let gmp = c(&name("mul_gmp")).map_or(String::new(), |g| {
                    let verdict = if all < g { "wins" } else { "loses" };
                    format!(
                        "; GMP takes {g:.0}, so with conversions IFMA {verdict} by {:.2}",
                        (all / g).max(g / all)
                    )
                });
                out.push(format!(
                    "{bits} bits: conversions and product take {all:.0} cycles together, {:.0} as a sum of parts{gmp}.",
                    2.0 * to + mul + from
                ));
            }
            let (just, old) =
                ("stored one by one, then to_avx512", "stored one by one, then another to_avx512");
            if let Some(more) = self.beyond(&name(just), &name(old)) {
                out.push(format!(
                    "{bits} bits: converting limbs that were just stored one by one costs {more:+.0} cycles over converting others: \
                     what is not forwarded from stores to wider loads."
                ));
            }
            for form in ["mul unrolled", "mul looped", "mul_gmp"] {
                let cold = self.beyond(&name(&format!("{form}, after other code")), "48 KiB of other code");
                if let (Some(warm), Some(cold)) = (c(&name(form)), cold) {
                    cooled = true;
                    let line = self.lines.iter().find(|l| l.name == name(form));
                    let bytes =
                        line.and_then(|l| l.code_bytes).map_or(String::new(), |b| format!(" ({b} bytes)"));
                    out.push(format!(
                        "{bits} bits, {form}{bytes}: {warm:.0} cycles warm; after other code has had the instruction cache it adds \
                         {cold:+.0} to that code's time, in this run."
                    ));
                }
            }
            if let (Some(plain), Some(busy)) = (c(&name("mul unrolled")), c(&name("mul busy"))) {
                out.push(format!(
                    "{bits} bits: with half of the multiply-add slots taken away a product takes {busy:.0} cycles in place of {plain:.0}."
                ));
            }
        }
        if cooled {
            out.push(CACHE.to_owned());
        }
        let madds = |bits: u32| c(&format!("8 independent multiply-adds of {bits} bits")).map(|c| 8.0 / c);
        if let (Some(wide), Some(narrow)) = (madds(512), madds(256)) {
            out.push(format!(
                "This core starts {wide:.2} multiply-adds of 512 bits a cycle and {narrow:.2} of 256; the laptop's one port is 1 of 512."
            ));
        }
        for signs in ["signs equal", "signs mixed"] {
            let (s, t, u) = (
                c(&format!("512_add sign and magnitude, {signs}")),
                c(&format!("512_add two's complement, {signs}")),
                c(&format!("512_add two's complement, to sign and magnitude, {signs}")),
            );
            if let (Some(s), Some(t), Some(u)) = (s, t, u) {
                out.push(format!(
                    "Sums of 512 bits, {signs}: {s:.0} cycles in sign and magnitude, {t:.0} in two's complement, {u:.0} if the next \
                     step needs sign and magnitude."
                ));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::SLIP;
    use crate::synthetic::REPORT;

    #[test]
    fn the_slip_is_the_report_s() {
        let cycles = |bits: usize, what: &str| {
            let line = REPORT.iter().find(|o| o.bits == bits && o.what == what).expect("a line");
            (line.laptop[0].1 + 500) / 1000
        };
        let (one, mul, back) =
            (cycles(512, "to_avx512"), cycles(512, "mul_avx512"), cycles(512, "mul_to_gmp"));
        let other = cycles(1024, "to_avx512");
        for (to, text) in [(other, "125 cycles"), (one, "115, against 180")] {
            assert!(
                SLIP.contains(&format!("{to} + {to} + {mul} + {back} = {}", 2 * to + mul + back))
                    && SLIP.contains(text)
            );
        }
        assert_eq!(cycles(512, "mul_avx512_gmp") / 10, 18);
    }
}
