//! Decoders on random bytes: an answer, never a panic, and an accepted form is one of the group.
#![forbid(unsafe_code)]

use lanework_vdf::internals::known;
use lanework_vdf::{Discriminant, Form, Lenient, Limits, Question, Strict, serial, verify};

/// A reproducible generator (SplitMix64, Steele, Lea and Flood).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

#[test]
fn forms() {
    let mut random = Random(1);
    let (mut accepted, mut refused) = (0, 0);
    for bits in [8, 16, 24, 32, 40, 64, 96, 256, 504, 1000, 1024, 1032, 2048] {
        let d = Discriminant::from_seed(b"garbage", bits).unwrap();
        let mut x = Form::generator(&d).unwrap();
        for i in 0..3000 {
            let mut bytes = x.to_bytes(&d);
            for _ in 0..random.below(4) {
                let at = random.below(bytes.len());
                bytes[at] = match i % 3 {
                    0 => random.next() as u8,
                    1 => bytes[at] ^ 1 << random.below(8),
                    _ => [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
                };
            }
            if i % 10 == 9 {
                let from = random.below(bytes.len());
                bytes[from..].iter_mut().for_each(|byte| *byte = random.next() as u8);
            }
            let strict = Form::from_bytes(Strict, &d, &bytes);
            let lenient = Form::from_bytes(Lenient, &d, &bytes);
            for form in [&strict, &lenient].into_iter().flatten() {
                assert!(form.is_reduced() && form.has_discriminant(&d));
                accepted += 1;
            }
            if let Ok(form) = &strict {
                assert_eq!(form.to_bytes(&d), bytes, "strict is canonical");
                assert_eq!(lenient.as_ref(), Ok(form), "what strict accepts, lenient does");
            } else {
                refused += 1;
            }
            if i % 7 == 0 {
                x = x.square(&d);
            }
        }
    }
    assert!(accepted > 1000 && refused > 1000, "{accepted} {refused}");
}

/// Garbage whose length and depth do not match is refused before anything is computed.
#[test]
fn proofs() {
    let mut random = Random(2);
    let record = known::records().next().unwrap();
    let d = Discriminant::from_seed(&record.challenge, record.bits).unwrap();
    for _ in 0..3000 {
        let proof: Vec<u8> = (0..random.below(2000)).map(|_| random.next() as u8).collect();
        let question = Question {
            x: &record.x,
            proof: &proof,
            iterations: random.next() >> random.below(64),
            depth: random.next() >> random.below(64),
        };
        assert!(verify(Lenient, &d, &question, &Limits::default()).is_err());
        assert!(verify(Strict, &d, &question, &Limits::default()).is_err());
    }
    assert_eq!(serial::form_bytes(&d), 100);
}
