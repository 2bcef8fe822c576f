//! The delay function: numbers, forms, proofs, and what a timelord says.
#![forbid(unsafe_code)]

use std::sync::LazyLock;

use lanework_cpu::Cpu;
use lanework_vdf::client::frames::{Decoder, Message};
use lanework_vdf::number::{parse, to_decimal, to_hexadecimal};
use lanework_vdf::verify::check_without_group;
use lanework_vdf::{Discriminant, Engine, Form, Lenient, Limits, Question, Strict, Task, spec};

use crate::bytes::Bytes;

/// A number as text: decimal and hexadecimal, both ways.
pub(crate) fn numbers(data: &[u8]) {
    if let Ok(number) = parse(data) {
        for text in [to_decimal(&number), to_hexadecimal(&number)] {
            assert!(parse(text.as_bytes()).is_ok_and(|again| again == number), "{text} is read as another");
        }
        // A number may not be a discriminant; checking must not panic.
        let _ = Discriminant::new(&number);
    }
}

pub(crate) fn number_seeds() -> Vec<Vec<u8>> {
    let texts = ["0", "-7", "+12", "-0x1f", "0xdeadbeef", "18446744073709551616", "-", "0x", " 1", "1_0", ""];
    let mut seeds: Vec<Vec<u8>> = texts.iter().map(|t| t.as_bytes().to_vec()).collect();
    seeds.push(to_decimal(&DISCRIMINANTS[1].value()).into_bytes());
    seeds.push(vec![b'9'; 700]);
    seeds
}

/// One of Chia's size, one below, one above, which has another encoding.
static DISCRIMINANTS: LazyLock<[Discriminant; 3]> = LazyLock::new(|| {
    [256, 1024, 1088].map(|bits| Discriminant::from_seed(b"fuzz", bits).expect("the seed has a prime"))
});

/// A discriminant, then a form's bytes. A strictly valid form is also leniently valid, is reduced, is written as it was read, and is
/// squared alike by all backends.
pub(crate) fn forms(data: &[u8]) {
    let mut input = Bytes(data);
    let d = &DISCRIMINANTS[usize::from(input.byte() % 3)];
    let strict = Form::from_bytes(Strict, d, input.0);
    let lenient = Form::from_bytes(Lenient, d, input.0);
    if let Ok(form) = &strict {
        assert!(lenient.as_ref().is_ok_and(|lenient| lenient == form), "leniently it is another form");
        assert!(form.to_bytes(d) == input.0, "one form has two strict encodings");
    }
    let Ok(form) = lenient else { return };
    assert!(form.has_discriminant(d) && form.is_reduced());
    assert!(form.compose(&form.inverse(), d) == Form::identity(d));
    let square = form.compose(&form, d);
    for engine in Engine::available(&Cpu::detect()) {
        assert!(form.square(d.on(engine)) == square, "a backend squares otherwise");
    }
}

pub(crate) fn form_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (number, d) in DISCRIMINANTS.iter().enumerate() {
        let Some(mut form) = Form::generator(d) else { continue };
        seeds.push([&[number as u8][..], &Form::identity(d).to_bytes(d)].concat());
        for _ in 0..2 {
            seeds.push([&[number as u8][..], &form.to_bytes(d)].concat());
            for _ in 0..300 {
                form = form.square(d);
            }
        }
        seeds.push([&[number as u8][..], &form.to_bytes(d)].concat());
    }
    seeds
}

const SQUARINGS: u64 = 40;

type Proof = (&'static Discriminant, Vec<u8>, Vec<u8>);

/// A proof of the small discriminant with its segments before the last, the first of which is `1 + first` squarings long.
fn proof(depth: usize) -> Proof {
    let d = &DISCRIMINANTS[0];
    let x = Form::generator(d).expect("1 modulo 8");
    let task = Task { segments: [9, 12][..depth].to_vec(), ..Task::new(d.clone(), x.clone(), SQUARINGS) };
    let proof = spec::prove(&task).expect("forty squarings can be proved");
    (d, x.to_bytes(d), proof.to_bytes(d))
}

/// A proof, good unless changed.
pub(crate) struct Case {
    pub(crate) d: &'static Discriminant,
    pub(crate) x: &'static [u8],
    pub(crate) proof: Vec<u8>,
    pub(crate) iterations: u64,
    pub(crate) depth: u64,
    unchanged: bool,
}

/// A depth, a number of squarings, then places and values that a good proof is changed by.
pub(crate) fn case(data: &[u8]) -> Case {
    static PROOFS: LazyLock<[Proof; 3]> = LazyLock::new(|| [0, 1, 2].map(proof));
    let mut input = Bytes(data);
    let depth = usize::from(input.byte() % 3);
    let (d, x, good) = &PROOFS[depth];
    let (iterations, mut bytes) = (u64::from(input.byte()), good.clone());
    while let [low, high, value, rest @ ..] = input.0 {
        let at = usize::from(u16::from_le_bytes([*low, *high])) % bytes.len();
        bytes[at] ^= value;
        input.0 = rest;
    }
    let iterations = if iterations == 0 { SQUARINGS } else { iterations };
    let unchanged = bytes == *good && iterations == SQUARINGS;
    Case { d, x, proof: bytes, iterations, depth: depth as u64, unchanged }
}

/// A proof is refused if and only if it was changed, by backends alike.
pub(crate) fn verify(data: &[u8]) {
    let Case { d, x, proof, iterations, depth, unchanged } = case(data);
    let question = Question { x, proof: &proof, iterations, depth };
    let limits = Limits::default();
    let strict = lanework_vdf::verify(Strict, d, &question, &limits);
    assert!(strict.is_ok() == unchanged, "{strict:?} of a proof that is unchanged: {unchanged}");
    let lenient = lanework_vdf::verify(Lenient, d, &question, &limits);
    assert!(lenient.is_ok() || strict.is_err(), "strictly good, leniently not");
    // A proof refused without a group is refused in it too.
    let early = check_without_group(Strict, d.bits(), &question, None, &limits);
    assert!(early.is_ok() || strict.is_err(), "{early:?} of a proof that is good");
    let early = check_without_group(Lenient, d.bits(), &question, None, &limits);
    assert!(early.is_ok() || lenient.is_err(), "{early:?} of a proof that is leniently good");
    for engine in Engine::available(&Cpu::detect()) {
        let verdict = lanework_vdf::verify(Strict, d.on(engine), &question, &limits);
        assert!(verdict == strict, "a backend verifies otherwise");
    }
    // Bytes that are not a proof at all.
    let raw = Question { proof: data, ..question };
    assert!(lanework_vdf::verify(Strict, d, &raw, &limits).is_err());
}

pub(crate) fn verify_seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = (0..3u8).map(|depth| vec![depth, 0]).collect();
    seeds.extend([vec![0, 41], vec![1, 0, 0, 0, 1], vec![2, 0, 120, 0, 4], vec![2, 0, 200, 0, 128, 1, 0, 1]]);
    seeds
}

/// A timelord's output in one piece and in pieces: the same messages, the same end.
pub(crate) fn client(data: &[u8]) {
    let mut input = Bytes(data);
    let cut = usize::from(input.byte()) % 40 + 1;
    let said = |piece: usize| {
        let (mut decoder, mut messages) = (Decoder::new(Lenient), Vec::new());
        let end = input.0.chunks(piece).try_for_each(|piece| decoder.feed(piece, &mut messages));
        (messages, end.map_err(|e| e.to_string()), decoder.awaited())
    };
    let (whole, pieces) = (said(input.0.len().max(1)), said(cut));
    assert!(whole == pieces, "cut in pieces it says something else");
    for message in &whole.0 {
        if let Message::Assignment(assignment) = message {
            assert!(assignment.x.has_discriminant(&assignment.discriminant));
        }
    }
}

pub(crate) fn client_seeds() -> Vec<Vec<u8>> {
    let d = &DISCRIMINANTS[1];
    let number = to_decimal(&d.value());
    let start = Form::generator(d).expect("1 modulo 8").to_bytes(d);
    let said = |kind: &str, rest: &str| {
        let head = format!("{kind}{:03}{number}", number.len()).into_bytes();
        [&[7][..], &head, &[start.len() as u8], &start, rest.as_bytes()].concat()
    };
    vec![
        said("S", "041000010ACK"),
        said("T", "0510000010ACK"),
        said("N", "011010ACKx"),
        vec![0],
        b"\x05S003-15".to_vec(),
    ]
}
