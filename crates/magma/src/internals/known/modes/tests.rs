//! Every answer on every backend in many cuts, and whether the answers can tell a wrong cipher.

use lanework_cpu::{Cpu, Select, Settings};

use super::{Answer, Cipher, LEGACY, MAGMA, Mode, bytes};
use crate::backend::BACKENDS;
use crate::backend::Engine;
use crate::internals::spec;
use crate::sbox::{Rows, Sbox};

/// Every backend that this machine has; prints which.
pub(crate) fn engines() -> Vec<Engine> {
    let settings = Settings::from_env().expect("the environment can be read");
    let cpu = Cpu::detect();
    let available = BACKENDS.iter().filter_map(|row| match Engine::choose(&cpu, Select::Named(row.name())) {
        Ok(engine) => Some(engine),
        Err(why) => {
            assert!(!settings.requires(row.name()), "{why}, but LANEWORK_REQUIRE asks for it");
            println!("skipped {}: {why}", row.name());
            None
        }
    });
    available.collect()
}

fn check(answers: &[Answer]) {
    for engine in engines() {
        for answer in answers {
            // Answers of mebibytes once, the others in many ways.
            let cuts: &[&[usize]] = if answer.plain.zeros > 1 << 20 {
                &[&[65_536 + 24, 8]]
            } else {
                &[&[], &[1], &[3, 5, 8], &[7], &[8], &[16, 1], &[23, 1000, 1], &[1024], &[513, 511], &[2047]]
            };
            for cut in cuts {
                let holds = answer.holds(engine, cut);
                assert_eq!(holds, Ok(true), "{} on {} in pieces of {cut:?}", answer.name, engine.name());
            }
        }
        println!("ran: {}", engine.name());
    }
}

#[test]
fn magma_gives_the_known_answers() {
    check(MAGMA);
}

#[test]
fn gost28147_gives_the_known_answers() {
    check(LEGACY);
}

#[test]
fn a_damaged_answer_is_noticed() {
    let engine = engines()[0];
    for answer in MAGMA.iter().chain(LEGACY).filter(|answer| answer.plain.zeros < 1 << 20) {
        let mut damaged = *answer;
        let text = [answer.sealed.head, answer.sealed.tail].iter().find(|text| !text.is_empty()).copied();
        let mut text = text.expect("an answer").to_owned();
        let last = text.pop().expect("digits");
        text.push(if last == '0' { '1' } else { '0' });
        let text: &'static str = Box::leak(text.into_boxed_str());
        if answer.sealed.head.is_empty() {
            damaged.sealed.tail = text;
        } else {
            damaged.sealed.head = text;
        }
        assert_eq!(damaged.holds(engine, &[]), Ok(false), "{}", answer.name);
    }
}

/// Whether the specification with these substitutions gives the answers of ECB.
fn ecb_holds(rows: &Rows) -> bool {
    let of_ecb = MAGMA.iter().filter(|answer| answer.mode == Mode::Ecb && answer.cipher == Cipher::Magma);
    let mut blocks = 0;
    for answer in of_ecb {
        let key = bytes(answer.key).try_into().expect("32 bytes");
        let words = spec::magma_words(&key);
        let number = |block: &[u8]| u64::from_be_bytes(block.try_into().expect("8 bytes"));
        for (plain, sealed) in answer.plain().chunks(8).zip(bytes(answer.sealed.head).chunks(8)) {
            blocks += 1;
            if spec::encrypt(rows, &words, number(plain)) != number(sealed) {
                return false;
            }
        }
    }
    assert_eq!(blocks, 5, "the answers that this rests on");
    true
}

#[test]
fn every_entry_of_the_sbox_is_covered() {
    assert!(ecb_holds(Sbox::Z.rows()));
    for row in 0..8 {
        for entry in 0..16 {
            for bit in 0..4 {
                let mut rows = *Sbox::Z.rows();
                rows[row][entry] ^= 1 << bit;
                assert!(!ecb_holds(&rows), "no answer meets entry {entry} of row {row}");
            }
        }
    }
}
