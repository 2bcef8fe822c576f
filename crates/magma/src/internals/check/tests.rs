//! The checks pass on every backend, and find planted faults.

use super::*;
use crate::internals::known::modes::engines;
use crate::key::{Gost28147, Magma};
use crate::sbox::{Rows, Sbox};

#[test]
fn every_backend_passes() {
    for engine in engines() {
        run(engine, Depth::Quick, &mut |row| {
            assert!(
                row.ok() && row.skipped == 0,
                "{} on {}: {} of {} failed: {}",
                row.what,
                row.backend,
                row.failed,
                row.failed + row.passed,
                row.why
            );
        });
    }
}

/// The block of RFC 8891 uses only 116 of the 128 entries, so it alone would let a wrong cipher pass.
#[test]
fn every_changed_s_box_entry_is_noticed() {
    let engine = Engine::best();
    let before = kernels::blocks_against(engine, Depth::Quick, Sbox::rows);
    assert!(before.ok(), "{}", before.why);
    for sbox in Sbox::ALL {
        for entry in 0..128 {
            let mut rows: Rows = *sbox.rows();
            rows[entry / 16][entry % 16] ^= 1 + (entry % 15) as u8;
            let row =
                kernels::blocks_against(engine, Depth::Quick, |s| if s == sbox { &rows } else { s.rows() });
            assert!(row.failed > 0 && !row.ok(), "entry {entry} of {} was not noticed", sbox.name());
        }
    }
}

#[test]
fn a_changed_known_answer_is_noticed() {
    let engine = Engine::best();
    // IMIT of nothing is zeros under any key.
    let telling = |a: &&Answer| a.plain.zeros <= QUICK_BYTES && !a.plain().is_empty();
    for answer in MAGMA.iter().chain(LEGACY).filter(telling) {
        let mut key = answer.key.to_owned();
        let digit = key.pop();
        key.push(if digit == Some('0') { '1' } else { '0' });
        let mut wrong = *answer;
        wrong.key = Box::leak(key.into_boxed_str());
        let row = known_answers_of(engine, Depth::Quick, &[wrong], &[]);
        assert_eq!((row.passed, row.failed), (0, 2), "{} with another key", answer.name);
    }
    for message in MESSAGES {
        for change in
            [|m: &mut Message| m.tag = "0000000000000000", |m: &mut Message| m.nonce = "0000000000000000"]
        {
            let mut wrong = *message;
            change(&mut wrong);
            let row = known_answers_of(engine, Depth::Quick, &[], &[wrong]);
            assert_eq!((row.passed, row.failed), (0, 1), "{}", message.source);
        }
    }
}

#[test]
fn rows_name_the_backend_that_ran() {
    for engine in engines() {
        let row = known_answers(engine, Depth::Quick);
        assert_eq!(row.backend, engine.name());
        assert!(row.passed > MAGMA.len());
    }
}

/// Empty messages: a code that wrongly accepts or refuses one is found.
#[test]
fn a_wrong_verdict_on_an_empty_message_is_noticed() {
    let (magma, gost) = (Magma::new(&[1; 32]), Gost28147::new(&[1; 32], Sbox::Z));
    let failed = |code: &refusals::Code<'_>| {
        let mut row = Row::new("planted", "best");
        refusals::damaged(&mut row, code, b"");
        row.failed
    };
    let names: Vec<&str> = refusals::codes(&magma, &gost)
        .into_iter()
        .map(|mut code| {
            assert_eq!(failed(&code), 0, "{}", code.name);
            let tag = (code.tag)(b"").expect("a tag");
            let cases = 1 + 8 * tag.len();
            if code.of_nothing {
                code.verify = Box::new(|_, _| Err(Error::EmptyMessage));
                assert_eq!(failed(&code), cases, "{} refuses an empty message", code.name);
            } else {
                code.verify = Box::new(move |_, got| if got == tag { Ok(()) } else { Err(Error::Refused) });
                assert_eq!(failed(&code), cases, "{} takes an empty message", code.name);
            }
            code.name
        })
        .collect();
    assert_eq!(names, ["OMAC", "28147 OMAC", "OMAC-ACPKM", "IMIT", "IMIT, meshing"]);
}
