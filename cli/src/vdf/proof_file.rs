//! The file that `prove` writes, as `verify` reads it.
#![forbid(unsafe_code)]

use std::fmt::Display;
use std::path::Path;

use lanework_study::Failure;
use lanework_study::text::cut;
use serde::{Deserialize, Deserializer};

use super::args::Number;
use crate::files;
use crate::magma::args::hex;

/// More than the longest file that prove writes: 63 segments of 2,048 bits have 76,000 bytes, and the compact proof as many.
const FILE_LIMIT: u64 = 1 << 20;
/// The longest reason for refusing a text, in characters: it may repeat part of the text.
const REASON: usize = 160;

/// The members that describe a proof. Others are figures of the run that made it. A member that appears twice is refused, and so is
/// null, except as the `id`, where it means no `id`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Members {
    #[serde(deserialize_with = "some")]
    challenge: Option<String>,
    #[serde(deserialize_with = "some")]
    discriminant: Option<String>,
    #[serde(deserialize_with = "some")]
    bits: Option<usize>,
    #[serde(deserialize_with = "some")]
    input: Option<String>,
    #[serde(deserialize_with = "some")]
    iterations: Option<u64>,
    #[serde(deserialize_with = "some")]
    witness: Option<u64>,
    #[serde(deserialize_with = "some")]
    proof: Option<String>,
    #[serde(deserialize_with = "some")]
    y: Option<String>,
    #[serde(deserialize_with = "some")]
    b: Option<String>,
    #[serde(deserialize_with = "some")]
    compact: Option<String>,
    id: Option<serde_json::Value>,
}

fn some<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// What a file says about a proof. Any member may be missing.
#[derive(Debug, Default)]
pub(super) struct ProofFile {
    name: String,
    pub(super) challenge: Option<Vec<u8>>,
    pub(super) discriminant: Option<Number>,
    pub(super) bits: Option<usize>,
    pub(super) input: Option<Vec<u8>>,
    pub(super) iterations: Option<u64>,
    pub(super) witness: Option<u64>,
    pub(super) proof: Option<Vec<u8>>,
    pub(super) y: Option<Vec<u8>>,
    pub(super) b: Option<Vec<u8>>,
    pub(super) compact: Option<Vec<u8>>,
    /// The id of this job in a list.
    pub(super) id: Option<serde_json::Value>,
}

impl ProofFile {
    pub(super) fn read(path: &Path) -> Result<ProofFile, Failure> {
        let text = files::read_small(path, FILE_LIMIT)?;
        ProofFile::parse(
            &text,
            lanework_study::text::shown(path),
            "a proof",
            "name a file that `lanework vdf prove` wrote",
        )
    }

    /// From one JSON object named `name`: `what` it should be, and `help` if it is not.
    pub(super) fn parse(text: &[u8], name: String, what: &str, help: &str) -> Result<ProofFile, Failure> {
        let members: Members = serde_json::from_slice(text).map_err(|e| {
            Failure::input(format!("{name}: not {what} in JSON: {}", cut(&e.to_string(), REASON))).help(help)
        })?;
        let wrong = |member: &str, e: &dyn Display| Failure::input(format!("{name}: {member}: {e}"));
        let bytes = |member: &str, text: &Option<String>| {
            text.as_ref().map(|text| hex(text.as_bytes()).map_err(|e| wrong(member, &e))).transpose()
        };
        let number = |text: &String| text.parse().map_err(|e| wrong("discriminant", &e));
        Ok(ProofFile {
            challenge: bytes("challenge", &members.challenge)?,
            discriminant: members.discriminant.as_ref().map(number).transpose()?,
            bits: members.bits,
            input: bytes("input", &members.input)?,
            iterations: members.iterations,
            witness: members.witness,
            proof: bytes("proof", &members.proof)?,
            y: bytes("y", &members.y)?,
            b: bytes("b", &members.b)?,
            compact: bytes("compact", &members.compact)?,
            id: members.id,
            name,
        })
    }

    /// A member's name in messages.
    pub(super) fn place(&self, member: &str) -> String {
        format!("{}: {member}", self.name)
    }
}
