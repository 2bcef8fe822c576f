//! The checks pass on every backend, and notice planted faults.

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
    for (name, kernels) in super::super::faulty::all() {
        let rows = of(name, &kernels, Depth::Quick);
        assert!(rows.iter().any(|row| row.failed > 0), "nothing noticed that {name} is wrong");
    }
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
