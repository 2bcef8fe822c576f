//! The first half of the study `ifma-vdf`: the report's synthetic benchmark, line by line and in its form, and its open questions
//! as loops of the same kind.
//!
//! All lines take turns: a round runs a thousand iterations of each, so that a slow moment falls on all of them. A line's samples are
//! ticks of the time-stamp counter for a thousand iterations, as in the report; a chain of additions in every round says how many
//! ticks a cycle of the core has, which on the report's laptop (without turbo) was one.
//!
//! "GMP format" is what GMP's numbers hold: limbs and their number. The lines `..._gmp` are GMP itself, where the peer is built.
#![forbid(unsafe_code)]

use std::fmt::{self, Write};
use std::hint::black_box;
use std::path::Path;

use crate::arithmetic::{Arithmetic, BACKENDS, Kernels, Number};
use crate::probes::{PROBES, PRODUCTS, Probes};
use lanework_cpu::{Backend, Cpu};
use lanework_integer::internals::check::Numbers;
use lanework_integer::{Int, Uint};
#[cfg(feature = "peers")]
use lanework_peers::gmp::Gmp;
#[cfg(feature = "peers")]
use lanework_peers::ifma::Ifma;
use lanework_race::clock::{Clock, Monotonic};
use lanework_race::histogram::Histogram;

mod findings;
mod report;
mod rivals;
pub(crate) use report::{Laptop, REPORT};

/// Iterations of a sample.
pub(crate) const ITERATIONS: u64 = 1000;

/// A line that was measured.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Its name: bits and what it does, as in the report, or a question's.
    pub name: String,
    /// Ticks for a thousand iterations, round by round.
    pub samples: Vec<u64>,
    /// The same in clusters.
    pub histogram: Histogram,
    /// The report's figures, if it has this line.
    pub laptop: Option<Laptop>,
    /// Bytes of code of the kernel, where the linker reports them.
    pub code_bytes: Option<usize>,
}

/// Why nothing was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// This machine, as masked, lacks something.
    Unavailable(String),
    /// A check failed: wrong code is not timed.
    Wrong(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Fault::Unavailable(why) | Fault::Wrong(why)) = self;
        f.write_str(why)
    }
}

impl std::error::Error for Fault {}

impl From<lanework_cpu::Unavailable> for Fault {
    fn from(unavailable: lanework_cpu::Unavailable) -> Fault {
        Fault::Unavailable(unavailable.to_string())
    }
}

/// All lines, and what a tick is.
#[derive(Clone, Debug)]
pub(crate) struct Synthetic {
    /// Ticks of the counter in a cycle of the core.
    pub ticks_per_cycle: f64,
    /// The lines.
    pub lines: Vec<Line>,
    /// Why lines are missing.
    pub missing: Vec<String>,
}

type Loop = Box<dyn FnMut()>;

/// A line before it is measured.
struct Bench {
    name: String,
    laptop: Option<Laptop>,
    code_bytes: Option<usize>,
    run: Loop,
}

/// A loop of a thousand iterations.
fn repeat(mut f: impl FnMut() + 'static) -> Loop {
    Box::new(move || (0..ITERATIONS).for_each(|_| f()))
}

struct Lines(Vec<Bench>);

impl Lines {
    fn push(&mut self, name: String, code_bytes: Option<usize>, f: impl FnMut() + 'static) {
        let laptop = REPORT.iter().find(|o| format!("{}_{}", o.bits, o.what) == name).map(|o| o.laptop);
        self.0.push(Bench { name, laptop, code_bytes, run: repeat(f) });
    }
}

/// An operand of full length, odd: so are then the low halves of all products of such operands, and none becomes 0.
fn operand<const N: usize>(numbers: &mut Numbers) -> Uint<N> {
    let mut x = Uint::<N>::ZERO;
    x.limbs_mut().fill_with(|| numbers.word());
    x.limbs_mut()[N - 1] |= 1 << 63;
    x.limbs_mut()[0] |= 1;
    x
}

/// One bit less, and odd too.
fn shorter<const N: usize>(numbers: &mut Numbers) -> Uint<N> {
    let mut x = operand(numbers) >> 1;
    x.limbs_mut()[0] |= 1;
    x
}

/// Limbs at the start of a cache line, where chiavdf's are: all conversions read and write such.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Aligned<const N: usize>([u64; N]);

/// The report's lines for operands of N limbs and products of N2, and those of the other backends beside them.
fn width<const V: usize, const D: usize, const N: usize, const N2: usize>(
    lines: &mut Lines,
    ops: &'static Arithmetic<V, D>,
    others: &[(&'static str, &'static Arithmetic<V, D>)],
) {
    let bits = 64 * N;
    let mut numbers = Numbers::new(bits as u64);
    let (x, y): (Uint<N>, Uint<N>) = (operand(&mut numbers), shorter(&mut numbers));
    let (xl, yl) = (Aligned(*x.limbs()), Aligned(*y.limbs()));
    let number = |ops: &Arithmetic<V, D>, x: Uint<N>| ops.number(&Int::new(false, x)).unwrap_or(ops.zero());
    let (a, b) = (number(ops, x), number(ops, y));
    // A sum that fits the width.
    let half = number(ops, x >> 1);
    let name = |what: &str| format!("{bits}_{what}");

    let mut out = ops.zero();
    lines.push(name("to_avx512"), None, move || {
        black_box(ops.read(&black_box(&xl).0, false, &mut out));
        black_box(&mut out);
    });
    let mut out = ops.zero();
    lines.push(name("add_avx512"), None, move || {
        black_box(ops.add(black_box(&half), black_box(&b), &mut out));
        black_box(&mut out);
    });
    let mut limbs = Aligned([0; N]);
    lines.push(name("add_to_gmp"), None, move || {
        black_box(ops.write(black_box(&half), &mut limbs.0));
        black_box(&mut limbs);
    });
    let mut out = ops.wide_zero();
    lines.push(name("mul_avx512"), None, move || {
        ops.mul(black_box(&a), black_box(&b), &mut out);
        black_box(&mut out);
    });
    let (mut limbs, mut product) = (Aligned([0; 33]), ops.wide_zero());
    ops.mul(&a, &b, &mut product);
    lines.push(name("mul_to_gmp"), None, move || {
        black_box(ops.write_wide(black_box(&product), &mut limbs.0));
        black_box(&mut limbs);
    });
    let (mut p, mut q, mut out, mut limbs) = (ops.zero(), ops.zero(), ops.wide_zero(), Aligned([0; 33]));
    lines.push(name("mul_avx512_gmp"), None, move || {
        ops.read(&black_box(&xl).0, false, &mut p);
        ops.read(&black_box(&yl).0, false, &mut q);
        ops.mul(&p, &q, &mut out);
        black_box(ops.write_wide(&out, &mut limbs.0));
        black_box(&mut limbs);
    });
    // The same, where each turn reads what the last one wrote.
    let (mut p, mut q, mut out, mut limbs) = (ops.zero(), ops.zero(), ops.wide_zero(), Aligned([0; 33]));
    limbs.0[..N].copy_from_slice(&xl.0);
    lines.push(name("mul_avx512_gmp, each from the last"), None, move || {
        ops.read(&limbs.0[..N], false, &mut p);
        ops.read(&black_box(&yl).0, false, &mut q);
        ops.mul(&p, &q, &mut out);
        black_box(ops.write_wide(&out, &mut limbs.0));
        black_box(&mut limbs);
    });
    for &(other, ops) in others {
        let (a, b, half) = (number(ops, x), number(ops, y), number(ops, x >> 1));
        let mut out = ops.zero();
        lines.push(name(&format!("add_{other}")), None, move || {
            black_box(ops.add(black_box(&half), black_box(&b), &mut out));
            black_box(&mut out);
        });
        let mut out = ops.wide_zero();
        lines.push(name(&format!("mul_{other}")), None, move || {
            ops.mul(black_box(&a), black_box(&b), &mut out);
            black_box(&mut out);
        });
    }
    #[cfg(feature = "peers")]
    {
        let (a, b) = (Gmp::new(&xl.0, false), Gmp::new(&yl.0, false));
        let (c, d, mut out) = (a.clone(), b.clone(), Gmp::with_room(64 * N2));
        lines.push(name("add_gmp"), None, move || {
            out.set_sum(black_box(&c), black_box(&d));
            black_box(&mut out);
        });
        let mut out = Gmp::with_room(64 * N2);
        lines.push(name("mul_gmp"), None, move || {
            out.set_product(black_box(&a), black_box(&b));
            black_box(&mut out);
        });
    }
    forwarding::<V, D, N>(lines, ops, xl.0);
}

/// Conversion of limbs that were written long ago, and of limbs just written one by one.
fn forwarding<const V: usize, const D: usize, const N: usize>(
    lines: &mut Lines,
    ops: &'static Arithmetic<V, D>,
    from: [u64; N],
) {
    let name = |what: &str| format!("{}_{what}", 64 * N);
    // Behind a black box: every limb is stored by itself.
    let store = move |limbs: &mut [u64; N]| {
        for i in 0..N {
            black_box(&mut *limbs)[i] = black_box(from[i]);
        }
    };
    let mut limbs = from;
    lines.push(name("limbs stored one by one"), None, move || store(black_box(&mut limbs)));
    let (mut limbs, mut out) = (from, ops.zero());
    lines.push(name("stored one by one, then to_avx512"), None, move || {
        store(black_box(&mut limbs));
        black_box(ops.read(&limbs, false, &mut out));
        black_box(&mut out);
    });
    let (mut limbs, old, mut out) = (from, from, ops.zero());
    lines.push(name("stored one by one, then another to_avx512"), None, move || {
        store(black_box(&mut limbs));
        black_box(ops.read(black_box(&old), false, &mut out));
        black_box(&mut out);
    });
}

/// The same kernels looped and written out, warm and after other code has filled the instruction cache.
fn code(lines: &mut Lines, cpu: &Cpu, kernels: &'static Kernels, probes: &'static Probes) {
    let mut numbers = Numbers::new(11);
    let (x, y): (Uint<16>, Uint<16>) = (operand(&mut numbers), operand(&mut numbers));
    let (small, large) = (kernels.w512(), kernels.w1024());
    let short = |x: &Uint<16>| {
        let mut low = [0; 8];
        low.copy_from_slice(&x.limbs()[..8]);
        small.number(&Int::<8>::new(false, Uint::from_limbs(low))).unwrap_or(small.zero())
    };
    let long = |x: &Uint<16>| large.number(&Int::new(false, *x)).unwrap_or(large.zero());
    let (a, b, c, d) = (short(&x), short(&y), long(&x), long(&y));
    lines.push("48 KiB of other code".to_owned(), None, move || probes.other_code());
    for row in PRODUCTS {
        let Ok(product) = row.get(cpu) else { continue };
        let [short_bytes, long_bytes] = product.code_bytes();
        for cold in [false, true] {
            if cold && row.name() == "busy" {
                continue;
            }
            let after = if cold { ", after other code" } else { "" };
            let mut out = small.wide_zero();
            lines.push(format!("512_mul {}{after}", row.name()), short_bytes, move || {
                if cold {
                    probes.other_code();
                }
                product.mul512(black_box(&a), black_box(&b), &mut out);
                black_box(&mut out);
            });
            let mut out = large.wide_zero();
            lines.push(format!("1024_mul {}{after}", row.name()), long_bytes, move || {
                if cold {
                    probes.other_code();
                }
                product.mul1024(black_box(&c), black_box(&d), &mut out);
                black_box(&mut out);
            });
        }
    }
    #[cfg(feature = "peers")]
    for (bits, n) in [(512, 8), (1024, 16)] {
        let (a, b) = (Gmp::new(&x.limbs()[..n], false), Gmp::new(&y.limbs()[..n], false));
        let mut out = Gmp::with_room(2 * bits);
        lines.push(format!("{bits}_mul_gmp, after other code"), None, move || {
            probes.other_code();
            out.set_product(black_box(&a), black_box(&b));
            black_box(&mut out);
        });
    }
}

/// Sums of numbers of equal signs and of random ones, in both formats; and the ports.
fn sums_and_ports(lines: &mut Lines, kernels: &'static Kernels, probes: &'static Probes) {
    const PAIRS: usize = 64;
    let ops = kernels.w512();
    for mixed in [false, true] {
        let mut numbers = Numbers::new(12);
        let mut number = || {
            let x = operand::<8>(&mut numbers) >> 1;
            let negative = mixed && numbers.word() & 1 == 1;
            ops.number(&Int::new(negative, x)).unwrap_or(ops.zero())
        };
        let pairs: Vec<(Number<2>, Number<2>)> = (0..PAIRS).map(|_| (number(), number())).collect();
        let twos: Vec<(Number<2>, Number<2>)> = pairs
            .iter()
            .map(|(x, y)| {
                let (mut a, mut b) = (ops.zero(), ops.zero());
                probes.to_twos(x, &mut a);
                probes.to_twos(y, &mut b);
                (a, b)
            })
            .collect();
        let signs = if mixed { "signs mixed" } else { "signs equal" };
        let (mut i, mut out) = (0, ops.zero());
        lines.push(format!("512_add sign and magnitude, {signs}"), None, move || {
            i = (i + 1) % PAIRS;
            black_box(ops.add(&pairs[i].0, &pairs[i].1, &mut out));
            black_box(&mut out);
        });
        let (mut i, mut out, again) = (0, ops.zero(), twos.clone());
        lines.push(format!("512_add two's complement, {signs}"), None, move || {
            i = (i + 1) % PAIRS;
            probes.add_twos(&again[i].0, &again[i].1, &mut out);
            black_box(&mut out);
        });
        let (mut i, mut out, mut sum) = (0, ops.zero(), ops.zero());
        lines.push(format!("512_add two's complement, to sign and magnitude, {signs}"), None, move || {
            i = (i + 1) % PAIRS;
            probes.add_twos(&twos[i].0, &twos[i].1, &mut sum);
            probes.from_twos(&sum, &mut out);
            black_box(&mut out);
        });
    }
    for wide in [true, false] {
        let bits = if wide { 512 } else { 256 };
        lines.push(format!("8 independent multiply-adds of {bits} bits"), None, move || {
            probes.multiply_adds(wide, 1);
        });
    }
}

/// Measures all lines, `rounds` samples each. Nothing is timed before the checks of the integers and the forms pass.
///
/// # Errors
/// [`Fault::Unavailable`] without the features of the backend `avx512` or a time-stamp counter; [`Fault::Wrong`] where a
/// check fails.
pub(crate) fn measure(cpu: &Cpu, peers: Option<&Path>, rounds: usize) -> Result<Synthetic, Fault> {
    let kernels = |name: &str| -> Result<&'static Kernels, Fault> {
        let row: Option<&'static Backend<Kernels>> = BACKENDS.iter().find(|b| b.name() == name);
        Ok(row.ok_or_else(|| Fault::Unavailable(format!("no backend {name}")))?.get(cpu)?.kernels())
    };
    let avx512 = kernels("avx512")?;
    let probes = PROBES.get(cpu)?.kernels();
    gate(cpu, avx512)?;
    let clock = Monotonic::new();
    if clock.ticks().is_none() {
        return Err(Fault::Unavailable("there is no time-stamp counter".to_owned()));
    }
    let mut others: Vec<(&'static str, &'static Kernels)> = Vec::new();
    let mut missing = Vec::new();
    for name in ["adx", "portable"] {
        match kernels(name) {
            Ok(k) => others.push((name, k)),
            Err(why) => missing.push(why.to_string()),
        }
    }
    let theirs = theirs(peers).unwrap_or_else(|why| {
        missing.push(format!("chiavdf's lines: {why}"));
        None
    });
    if cfg!(not(feature = "peers")) {
        missing.push("GMP's lines: this build has no peers".to_owned());
    }
    rivals::gate(avx512, probes, theirs.as_ref())?;
    let mut lines = Lines(Vec::new());
    let w512: Vec<_> = others.iter().map(|&(name, k)| (name, k.w512())).collect();
    let w1024: Vec<_> = others.iter().map(|&(name, k)| (name, k.w1024())).collect();
    width::<2, 3, 8, 16>(&mut lines, avx512.w512(), &w512);
    width::<3, 6, 16, 32>(&mut lines, avx512.w1024(), &w1024);
    let [small, large] = theirs.map_or([None, None], |pair| pair.map(Some));
    rivals::lines::<2, 3, 8>(&mut lines, avx512.w512(), probes, small);
    rivals::lines::<3, 6, 16>(&mut lines, avx512.w1024(), probes, large);
    code(&mut lines, cpu, avx512, probes);
    sums_and_ports(&mut lines, avx512, probes);

    let mut samples = vec![Vec::with_capacity(rounds); lines.0.len()];
    let mut cycles = Vec::with_capacity(rounds);
    let ticks = || clock.ticks().unwrap_or(0);
    for round in 0..=rounds {
        // The first round warms up.
        let timed = |f: &mut dyn FnMut()| {
            let start = ticks();
            f();
            ticks().saturating_sub(start)
        };
        let chain = timed(&mut || probes.cycles(CHAIN));
        for (bench, samples) in lines.0.iter_mut().zip(&mut samples) {
            let took = timed(&mut bench.run);
            if round > 0 {
                samples.push(took);
            }
        }
        if round > 0 {
            cycles.push(chain);
        }
    }
    cycles.sort_unstable();
    let chain = cycles.get(cycles.len() / 2).copied().unwrap_or(0).max(1);
    let lines = lines.0.into_iter().zip(samples).map(|(bench, samples)| Line {
        name: bench.name,
        histogram: Histogram::of(&samples),
        samples,
        laptop: bench.laptop,
        code_bytes: bench.code_bytes,
    });
    Ok(Synthetic { ticks_per_cycle: chain as f64 / (64 * CHAIN) as f64, lines: lines.collect(), missing })
}

/// chiavdf's operations on 512 and 1,024 bits.
#[cfg(feature = "peers")]
fn theirs(peers: Option<&Path>) -> Result<Option<[Ifma; 2]>, String> {
    let dir = peers.ok_or("peers were not asked for (--peers)")?;
    lanework_peers::Peers::ifma(dir).map(|(pair, _)| Some(pair)).map_err(|u| u.to_string())
}

/// What stands for chiavdf's operations where none can be.
#[cfg(not(feature = "peers"))]
type Ifma = std::convert::Infallible;

#[cfg(not(feature = "peers"))]
fn theirs(_: Option<&Path>) -> Result<Option<[Ifma; 2]>, String> {
    Err("this build has no peers".to_owned())
}

/// Turns of 64 additions of the chain that counts cycles.
const CHAIN: u64 = 2000;

/// The checks of the kernels that race, and products of all forms against each other.
fn gate(cpu: &Cpu, kernels: &'static Kernels) -> Result<(), Fault> {
    use crate::arithmetic::check;
    use lanework_cpu::check::Depth;
    for row in check::of("avx512", kernels, Depth::Quick) {
        if !row.ok() {
            return Err(Fault::Wrong(format!("{} on {}: {}", row.what, row.backend, row.why)));
        }
    }
    let (small, large) = (kernels.w512(), kernels.w1024());
    let mut numbers = Numbers::new(13);
    for _ in 0..1000 {
        let (x, y): (Int<16>, Int<16>) = (numbers.signed(1024), numbers.signed(1024));
        let (p, q): (Int<16>, Int<16>) = (numbers.signed(512), numbers.signed(512));
        for row in PRODUCTS {
            let product = row.get(cpu)?;
            let (Some(a), Some(b), Some(c), Some(d)) =
                (large.number(&x), large.number(&y), small.number(&p), small.number(&q))
            else {
                return Err(Fault::Wrong("operands do not fit".to_owned()));
            };
            let (mut wide, mut short) = (large.wide_zero(), small.wide_zero());
            product.mul1024(&a, &b, &mut wide);
            product.mul512(&c, &d, &mut short);
            if large.wide_int::<33>(&wide) != Some(x.times(&y))
                || small.wide_int::<16>(&short) != Some(p.times(&q))
            {
                return Err(Fault::Wrong(format!("the form '{}' of the product is wrong", row.name())));
            }
        }
    }
    Ok(())
}

impl Synthetic {
    /// Cycles of the core for an iteration of a line, from its main cluster.
    #[must_use]
    pub(crate) fn cycles(&self, name: &str) -> Option<f64> {
        let line = self.lines.iter().find(|l| l.name == name)?;
        let main = line.histogram.main()?;
        Some(main.middle as f64 / ITERATIONS as f64 / self.ticks_per_cycle)
    }

    /// Cycles that a line takes beyond another, from the differences of samples of one round: their median.
    #[must_use]
    pub(crate) fn beyond(&self, name: &str, other: &str) -> Option<f64> {
        let line = |name: &str| self.lines.iter().find(|l| l.name == name);
        let (line, other) = (line(name)?, line(other)?);
        let mut differences: Vec<f64> =
            line.samples.iter().zip(&other.samples).map(|(&x, &y)| x as f64 - y as f64).collect();
        differences.sort_unstable_by(f64::total_cmp);
        let middle = *differences.get(differences.len() / 2)?;
        Some(middle / ITERATIONS as f64 / self.ticks_per_cycle)
    }

    /// The report's lines in its order and form: clusters of ours, clusters of the laptop, cycles of the core.
    #[must_use]
    pub(crate) fn report(&self) -> String {
        let mut out = String::new();
        let clusters = |figures: Laptop| -> String {
            figures.iter().map(|(share, ticks)| format!("{share}%: {ticks}")).collect::<Vec<_>>().join(", ")
        };
        let rows: Vec<Vec<String>> = REPORT
            .iter()
            .map(|o| {
                let name = format!("{}_{}", o.bits, o.what);
                let line = self.lines.iter().find(|l| l.name == name);
                let ours =
                    line.map_or("-".to_owned(), |l| l.histogram.to_string().trim_end().replace('\n', ", "));
                let cycles = self.cycles(&name).map_or("-".to_owned(), |c| format!("{c:.1}"));
                vec![format!("benchmark_{name}"), ours, cycles, clusters(o.laptop)]
            })
            .collect();
        let header = ["", "ticks for 1,000, here", "cycles each, here", "ticks for 1,000, laptop"];
        let _ = writeln!(out, "| {} |\n|---|---|---:|---|", header.join(" | "));
        for row in rows {
            let _ = writeln!(out, "| {} |", row.join(" | "));
        }
        out
    }

    /// Ours, chiavdf's and GMP's, operation by operation.
    #[must_use]
    pub(crate) fn rivals(&self) -> String {
        let cell = |c: Option<f64>| c.map_or("-".to_owned(), |c| format!("{c:.1}"));
        let mut out =
            String::from("| | ours | chiavdf's | chiavdf's / ours | GMP |\n|---|---:|---:|---:|---:|\n");
        for row in rivals::rows(self) {
            let ratio = row.ours.zip(row.theirs).map_or("-".to_owned(), |(a, b)| format!("×{:.2}", b / a));
            let (ours, theirs, gmp) = (cell(row.ours), cell(row.theirs), cell(row.gmp));
            let _ = writeln!(out, "| {} | {ours} | {theirs} | {ratio} | {gmp} |", row.what);
        }
        out
    }

    /// Every other line: cycles of the core, and bytes of code where they are known.
    #[must_use]
    pub(crate) fn probes(&self) -> String {
        let mut out = String::from("| | cycles each | bytes of code |\n|---|---:|---:|\n");
        for line in self.lines.iter().filter(|l| l.laptop.is_none() && !rivals::is_one(&l.name)) {
            let cycles = self.cycles(&line.name).map_or("-".to_owned(), |c| format!("{c:.1}"));
            let bytes = line.code_bytes.map_or("-".to_owned(), |b| b.to_string());
            let _ = writeln!(out, "| {} | {cycles} | {bytes} |", line.name);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lines_of_the_report_are_there_and_gated() {
        let cpu = Cpu::detect();
        let synthetic = match measure(&cpu, None, 2) {
            Ok(s) => s,
            Err(why) => {
                assert!(matches!(why, Fault::Unavailable(_)), "{why}");
                return;
            }
        };
        for o in &REPORT {
            let there = synthetic.lines.iter().any(|l| l.name == format!("{}_{}", o.bits, o.what));
            assert!(
                there || o.what.ends_with("_gmp") && cfg!(not(feature = "peers")),
                "{}_{}",
                o.bits,
                o.what
            );
        }
        assert!(synthetic.ticks_per_cycle > 0.0);
        assert!(synthetic.lines.iter().all(|l| l.histogram.samples() == 2));
        assert!(synthetic.report().contains("benchmark_512_mul_avx512_gmp"));
        let findings = synthetic.findings();
        assert!(findings.len() >= 10, "{findings:?}");
        assert_eq!(findings.iter().filter(|f| f.contains("not settled")).count(), 1, "{findings:?}");
        assert!(synthetic.probes().contains("bytes of code"));
    }

    #[test]
    fn without_the_features_it_says_so() {
        let e = measure(&Cpu::baseline(), None, 1).expect_err("no vectors");
        assert!(matches!(&e, Fault::Unavailable(why) if why.contains("avx512")), "{e}");
    }
}
