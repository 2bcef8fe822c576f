//! `verify`.
#![forbid(unsafe_code)]

use std::path::Path;

use lanework_vdf::backend::Kernels;
use lanework_vdf::proof::B_BYTES;
use lanework_vdf::serial::Mode;
use lanework_vdf::{Challenge, Form, Lenient, Limits, Question, Strict, VerifyError, verify};
use serde::Deserialize;

use super::args::VerifyArgs;
use super::group::{Group, generator, no_group};
use super::hex;
use crate::files;
use crate::magma::args::Hex;
use crate::outcome::{Failure, Outcome};
use crate::ui::Session;

/// Bytes of the longest file that prove writes, and some: 63 segments of 2,048 bits have 76,000.
const FILE_LIMIT: u64 = 1 << 20;

/// What is read of a file that prove wrote. The rest of it is for people.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Written {
    challenge: Option<String>,
    discriminant: Option<String>,
    bits: Option<usize>,
    input: Option<String>,
    iterations: Option<u64>,
    witness: Option<u64>,
    proof: Option<String>,
}

/// The question, from the options first and from the file where they say nothing.
struct Asked {
    group: Group,
    input: Vec<u8>,
    iterations: u64,
    proof: Vec<u8>,
    witness: u64,
    b: Option<Challenge>,
}

pub(super) fn run(session: &Session, args: &VerifyArgs) -> Result<Outcome, Failure> {
    let (backend, kernels) = super::kernels(session, "vdf/1024/verify")?;
    let asked = asked(kernels, args)?;
    let mode = if args.mode.lenient { Lenient::NAME } else { Strict::NAME };
    let begin = std::time::Instant::now();
    let answer = if args.mode.lenient { answer(Lenient, &asked) } else { answer(Strict, &asked) };
    let seconds = begin.elapsed().as_secs_f64();
    let (y, why) = match answer {
        Ok(y) => (Some(y), None),
        Err(VerifyError::Refused(why)) => (None, Some(why)),
        Err(e) => return Err(malformed(&e)),
    };
    if session.json {
        let mut object = asked.group.json();
        let rest = serde_json::json!({
            "valid": why.is_none(), "mode": mode, "iterations": asked.iterations, "witness": asked.witness,
            "seconds": seconds, "backend": backend,
        });
        object.extend(super::members(rest));
        if let Some(y) = &y {
            object.insert("y".to_owned(), hex(y).into());
        }
        if let Some(why) = &why {
            object.insert("why".to_owned(), why.to_string().into());
        }
        println!("{}", serde_json::Value::Object(object));
    } else if let Some(why) = &why {
        println!("PROOF REFUSED: {why}");
    } else {
        println!(
            "proof is valid: {} squarings, {} segments before the last",
            asked.iterations, asked.witness
        );
        if let (Some(y), Some(_)) = (&y, &asked.b) {
            println!("y {}", hex(y));
        }
    }
    Ok(Outcome::from_bool(why.is_none()))
}

/// The result that is proved, or why none is.
fn answer<M: Mode>(mode: M, asked: &Asked) -> Result<Vec<u8>, VerifyError> {
    let d = &asked.group.discriminant;
    let question =
        Question { x: &asked.input, proof: &asked.proof, iterations: asked.iterations, depth: asked.witness };
    if let Some(b) = &asked.b {
        let y = lanework_vdf::verify::verify_compact(mode, d, b, &question, &Limits::default())?;
        return Ok(y.to_bytes(d));
    }
    verify(mode, d, &question, &Limits::default())?;
    // Its length was right.
    Ok(asked.proof[..asked.input.len()].to_vec())
}

fn malformed(e: &VerifyError) -> Failure {
    use lanework_vdf::{Malformed as E, ProofError};
    match e {
        VerifyError::Malformed(E::Input(why)) => Failure::input(format!("--input: {why}")),
        VerifyError::Malformed(E::Proof(ProofError::Depth { .. })) => {
            Failure::input(format!("--witness: {e}"))
        }
        VerifyError::Malformed(E::Proof(ProofError::Length { .. })) => Failure::input(format!(
            "--proof: {e}; --witness says how many segments come before the last, and with --b the result is left out"
        )),
        VerifyError::Malformed(E::Proof(_)) => Failure::input(format!("--proof: {e}")),
        VerifyError::Malformed(E::NoIterations) => {
            Failure::input(format!("--iterations: {e}; --lenient lets them pass, as Chia does"))
        }
        VerifyError::Malformed(E::Iterations { .. }) => Failure::input(format!("--iterations: {e}")),
        _ => Failure::input(e),
    }
}

fn asked(kernels: &'static Kernels, args: &VerifyArgs) -> Result<Asked, Failure> {
    let (written, name) = match &args.file {
        Some(path) => (read(path)?, crate::ui::shown(path)),
        None => (Written::default(), String::new()),
    };
    let from_file = |text: &Option<String>, what: &str| match text {
        Some(text) => crate::magma::args::hex(text.as_bytes())
            .map(Some)
            .map_err(|e| Failure::input(format!("{name}: {what}: {e}"))),
        None => Ok(None),
    };
    let group = match Group::of_arguments(kernels, &args.group, args.bits.bits.or(written.bits))? {
        Some(group) => group,
        None => group_of(kernels, &written, args.bits.bits, &name)?.ok_or_else(no_group)?,
    };
    let missing =
        |what: &str| Failure::input(format!("nothing to verify: name {what}, or a file that prove wrote"));
    let given = |option: &Option<Hex>, text, what| match option {
        Some(Hex(bytes)) => Ok(Some(bytes.clone())),
        None => from_file(text, what),
    };
    let input = match given(&args.input, &written.input, "input")? {
        Some(bytes) => bytes,
        None => {
            let x: Form = generator(&group.discriminant)?;
            x.to_bytes(&group.discriminant)
        }
    };
    let proof = given(&args.proof, &written.proof, "proof")?.ok_or_else(|| missing("--proof"))?;
    let iterations = args.iterations.or(written.iterations).ok_or_else(|| missing("--iterations"))?;
    let b = match &args.b {
        Some(Hex(bytes)) => {
            let bytes: &[u8; B_BYTES] = bytes
                .as_slice()
                .try_into()
                .map_err(|_| Failure::input(format!("--b: {} bytes; it has {B_BYTES}", bytes.len())))?;
            Some(Challenge::from_bytes(bytes))
        }
        None => None,
    };
    Ok(Asked { group, input, iterations, proof, witness: args.witness.or(written.witness).unwrap_or(0), b })
}

fn read(path: &Path) -> Result<Written, Failure> {
    let text = files::read_small(path, FILE_LIMIT)?;
    serde_json::from_slice(&text)
        .map_err(|e| Failure::file(path, format!("not what prove writes as JSON: {e}")))
}

/// The group that a file names.
fn group_of(
    kernels: &'static Kernels,
    written: &Written,
    bits: Option<usize>,
    name: &str,
) -> Result<Option<Group>, Failure> {
    if let Some(challenge) = &written.challenge {
        let challenge = crate::magma::args::hex(challenge.as_bytes())
            .map_err(|e| Failure::input(format!("{name}: challenge: {e}")))?;
        let bits = bits.or(written.bits).ok_or_else(|| Failure::input(format!("{name}: bits: missing")))?;
        return Group::of_challenge(kernels, &challenge, bits).map(Some);
    }
    let Some(number) = &written.discriminant else { return Ok(None) };
    let wrong = |e: &dyn std::fmt::Display| Failure::input(format!("{name}: discriminant: {e}"));
    let number = lanework_vdf::number::parse(number.as_bytes()).map_err(|e| wrong(&e))?;
    let discriminant = lanework_vdf::Discriminant::new(&number).map_err(|e| wrong(&e))?;
    Ok(Some(Group { discriminant: discriminant.on(kernels), challenge: None }))
}
