//! The checks pass on every backend, and notice what is planted.

use super::*;
use lanework_cpu::Settings;

#[test]
fn every_backend_passes() {
    let settings = Settings::from_env().expect("settings");
    let mut faults = Vec::new();
    for row in all(&settings.cpu(), Depth::Quick) {
        if row.skipped > 0 {
            assert!(!settings.requires(&row.backend), "{} is required: {}", row.backend, row.why);
            continue;
        }
        if !row.ok() {
            faults.push(format!("{} on {}: {} failed: {:.600}", row.what, row.backend, row.failed, row.why));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_planted_fault_is_noticed() {
    for (name, kernels) in crate::backend::faulty::all() {
        let rows = of(name, &kernels, Depth::Quick);
        assert!(rows.iter().any(|row| row.failed > 0), "nothing noticed that {name} is wrong");
    }
}

#[test]
fn a_faulty_gcd_is_noticed() {
    use crate::kernels::{Lane, Portable};
    #[derive(Clone, Copy, Default)]
    struct Wrong;
    impl Lane for Wrong {
        fn minus(self, a: &[u64], b: &[u64], p: u64, q: u64, out: &mut [u64]) -> u64 {
            let high = Portable.minus(a, b, p, q, out);
            // A bit that is wrong for one factor in 256.
            out[0] ^= u64::from(p & 0xff == 0x5a);
            high
        }
    }
    let gcd = crate::backend::gcd::of_lane::<Wrong, 8, 13>();
    let mut numbers = Numbers::new(1);
    let (mut partial, mut inverse, mut up) = (0, 0, 0);
    for _ in 0..200 {
        let (mut a, mut b): (Uint<8>, Uint<8>) = (numbers.skewed(512), numbers.skewed(511));
        a.limbs_mut()[7] |= 1 << 63;
        b.limbs_mut()[0] |= 1;
        partial += usize::from(partial_fault::<8, 13, 32>(&gcd, &a, &b, 257, &mut up).is_some());
        inverse += usize::from(inverse_fault::<8, 13, 32>(&gcd, &a, &b, &mut up).is_some());
    }
    assert!(partial > 0 && inverse + up > 0, "{partial} and {inverse} with {up} given up");
}

#[test]
#[should_panic(expected = "the backend that made it")]
fn numbers_of_two_backends_do_not_mix() {
    let cpu = Cpu::detect();
    let mut all: Vec<_> = BACKENDS.iter().filter_map(|b| b.get(&cpu).ok()).collect();
    let (last, first) = (all.pop(), all.first());
    let (Some(last), Some(first)) = (last, first) else {
        panic!("one backend only: nothing to mix with the backend that made it");
    };
    if last.w512().montgomery() == first.w512().montgomery() {
        panic!("one format only: numbers may be used beyond the backend that made it");
    }
    let (x, y) = (last.w512().zero(), first.w512().zero());
    let mut out = first.w512().zero();
    first.w512().add(&x, &y, &mut out);
}
