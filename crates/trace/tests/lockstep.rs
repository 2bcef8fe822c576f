//! Two versions of one piece of code in lockstep: equal ones are found equal, and an edit that clobbers a flag is found at its
//! instruction.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::ops::Range;

use lanework_trace::iced_x86::{Code, Decoder, Instruction, Register};
use lanework_trace::{Correspondence, Engine, Mismatch, Operation, Options, Snapshot};

mod versions;

use versions::Version;

/// Calls one of two versions on the same words, with different stacks below.
struct Versions([Version; 2]);

impl Operation for Versions {
    type Input = ([u64; 8], usize, u64);

    fn prepare(&self, case: usize) -> Self::Input {
        (core::array::from_fn(|i| i as u64 * 0x0123_4567_89ab_cdef), case, 0)
    }

    fn operate(&self, (words, case, result): &mut Self::Input) {
        *result = self.0[*case](words, 1000);
    }

    fn answer(&self, (words, _, result): &Self::Input) -> Vec<u8> {
        words.iter().chain([result]).flat_map(|w| w.to_le_bytes()).collect()
    }

    fn stack(&self, case: usize) -> u64 {
        case as u64 + 1
    }
}

/// The instructions of a version up to its return.
fn code(version: Version) -> Vec<Instruction> {
    let from = version as *const () as u64;
    let mut all = Vec::new();
    let bytes = versions::bytes(version);
    for instruction in &mut Decoder::with_ip(64, bytes, from, 0) {
        all.push(instruction);
        if instruction.code() == Code::Retnq {
            break;
        }
    }
    all
}

fn range(code: &[Instruction]) -> Range<u64> {
    code[0].ip()..code.last().unwrap().next_ip()
}

/// Instructions in order, except for the second version's additions.
fn correspondence(versions: [Version; 2], additions: &[usize]) -> Correspondence {
    let [first, second] = versions.map(code);
    let kept = second.iter().enumerate().filter(|(i, _)| !additions.contains(i)).map(|(_, i)| i.ip());
    let pairs = first.iter().map(Instruction::ip).zip(kept).collect();
    Correspondence { first: range(&first), second: range(&second), pairs, ..Correspondence::default() }
}

fn snapshot(versions: [Version; 2]) -> Option<Snapshot> {
    match Snapshot::take(&Versions(versions), Options { writes: true, ..Options::default() }) {
        Ok(snapshot) => Some(snapshot),
        Err(why) => {
            assert!(std::env::var_os("LANEWORK_REQUIRE_TRACE").is_none_or(|v| v != "1"), "{why}");
            eprintln!("SKIPPED: {why}");
            None
        }
    }
}

#[test]
fn a_rewrite_that_is_right_passes() {
    let versions: [Version; 2] = [versions::spills, versions::rehomed];
    let Some(mut snapshot) = snapshot(versions) else { return };
    let mut how = correspondence(versions, &[]);
    // The slot that the second version keeps in an mm register.
    how.given_up.push(-8..0);
    // And `emms` before the return, which the first does not have.
    how.pairs = correspondence(versions, &[versions::EMMS]).pairs;
    let lockstep = snapshot.lockstep([0, 1], &how).unwrap();
    assert_eq!(lockstep.divergence, None);
    assert_eq!(lockstep.answers[0], lockstep.answers[1]);
    assert_eq!(lockstep.extra, [0, 1]);
    assert!(lockstep.compared > 9000, "{}", lockstep.compared);
    // Unless the slot is declared as given up, the missing store is a difference.
    how.given_up.clear();
    let divergence = snapshot.lockstep([0, 1], &how).unwrap().divergence.unwrap();
    assert!(matches!(divergence.mismatch, Mismatch::Written { .. }), "{divergence}");
}

#[test]
fn an_edit_that_clobbers_a_flag_is_found_at_its_instruction() {
    let versions: [Version; 2] = [versions::spills, versions::clobbers];
    let Some(mut snapshot) = snapshot(versions) else { return };
    let how = correspondence(versions, &[]);
    let divergence = snapshot.lockstep([0, 1], &how).unwrap().divergence.unwrap();
    println!("{divergence}");
    assert!(matches!(divergence.mismatch, Mismatch::Flags { .. }), "{divergence}");
    assert!(divergence.instruction.starts_with("lea") && divergence.other.starts_with("add"), "{divergence}");
    assert_eq!(divergence.place.address, code(versions[0])[versions::EDIT].ip());
}

#[test]
fn a_wrong_register_and_a_wrong_store_are_found() {
    let versions: [Version; 2] = [versions::spills, versions::forgets];
    let Some(mut snapshot) = snapshot(versions) else { return };
    let mut how = correspondence(versions, &[]);
    let divergence = snapshot.lockstep([0, 1], &how).unwrap().divergence.unwrap();
    assert!(matches!(divergence.mismatch, Mismatch::Written { .. }), "{divergence}");
    // It reads its home before any store: the old stack contents differ.
    how.given_up.push(-16..0);
    let divergence = snapshot.lockstep([0, 1], &how).unwrap().divergence.unwrap();
    assert!(
        matches!(divergence.mismatch, Mismatch::Register { register: Register::RSI, .. }),
        "{divergence}"
    );
    let registers: [Version; 2] = [versions::spills, versions::miscounts];
    let Some(mut snapshot) = self::snapshot(registers) else { return };
    let divergence = snapshot.lockstep([0, 1], &correspondence(registers, &[])).unwrap().divergence.unwrap();
    assert!(
        matches!(divergence.mismatch, Mismatch::Register { register: Register::RAX, .. }),
        "{divergence}"
    );
}

#[test]
fn a_version_equals_itself_elsewhere() {
    let versions: [Version; 2] = [versions::spills, versions::again];
    let Some(mut snapshot) = snapshot(versions) else { return };
    let first = range(&code(versions[0]));
    let how = Correspondence::shifted(first, versions[1] as *const () as u64);
    let lockstep = snapshot.lockstep([0, 1], &how).unwrap();
    assert_eq!(lockstep.divergence, None);
    assert!(lockstep.compared > 9000 && lockstep.extra == [0, 0], "{lockstep:?}");
}

/// The x87 tags and the register mm3, as both engines find them in the extended state.
#[test]
fn the_extended_state_shows_mmx_registers_and_their_tags() {
    let versions: [Version; 2] = [versions::spills, versions::rehomed];
    let code = code(versions[1]);
    let (emms, ret) = (code[versions::EMMS].ip(), code[versions::EMMS + 1].ip());
    for engine in [Engine::Copies, Engine::Steps] {
        let options = Options { engine, extended_state: true, ..Options::default() };
        let Ok(mut snapshot) = Snapshot::take(&Versions(versions), options) else {
            assert!(std::env::var_os("LANEWORK_REQUIRE_TRACE").is_none_or(|v| v != "1"), "{engine:?}");
            eprintln!("SKIPPED: {engine:?}");
            continue;
        };
        let mut seen = Vec::new();
        let outcome = snapshot.run(1, |step, _| {
            if [emms, ret].contains(&step.address()) {
                let state = step.extended_state();
                // The layout of fxsave: abridged tags in byte 4, mm3 where st3 is.
                seen.push((step.address(), state[0] >> 32 & 0xff, state[(32 + 3 * 16) / 8]));
            }
            true
        });
        assert_eq!(outcome.unwrap().ending, lanework_trace::Ending::Returned);
        // The counter's last spilled value is 1; emms empties the tags and leaves the rest.
        assert_eq!(seen, [(emms, 0xff, 1), (ret, 0, 1)], "{engine:?}");
    }
}
