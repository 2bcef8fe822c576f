//! Challenges, discriminants and forms as the command line gives them.
#![forbid(unsafe_code)]

use lanework_vdf::backend::Kernels;
use lanework_vdf::{Discriminant, Form, Lenient, Strict};

use super::args::{ChainArgs, GroupArgs, ModeArgs};
use crate::outcome::Failure;

/// Bits of a discriminant if nothing is said: Chia's.
const BITS: usize = 1024;

/// The group, and the challenge that it comes from if it comes from one.
pub(super) struct Group {
    pub(super) discriminant: Discriminant,
    pub(super) challenge: Option<Vec<u8>>,
}

impl Group {
    /// From a challenge.
    pub(super) fn of_challenge(
        kernels: &'static Kernels,
        challenge: &[u8],
        bits: usize,
    ) -> Result<Group, Failure> {
        use lanework_vdf::DiscriminantError as E;
        let discriminant = Discriminant::from_seed_on(kernels, challenge, bits).map_err(|e| match e {
            E::EmptySeed => Failure::input(format!("--challenge: {e}")),
            _ => Failure::input(format!("--bits: {e}")),
        })?;
        Ok(Group { discriminant, challenge: Some(challenge.to_vec()) })
    }

    /// From the arguments; nothing if they name no group.
    pub(super) fn of_arguments(
        kernels: &'static Kernels,
        args: &GroupArgs,
        bits: Option<usize>,
    ) -> Result<Option<Group>, Failure> {
        match (&args.challenge, &args.discriminant) {
            (Some(challenge), _) => {
                Group::of_challenge(kernels, &challenge.0, bits.unwrap_or(BITS)).map(Some)
            }
            (None, Some(number)) => {
                let discriminant = Discriminant::new(&number.0)
                    .map_err(|e| Failure::input(format!("--discriminant: {e}")))?;
                Ok(Some(Group { discriminant: discriminant.on(kernels), challenge: None }))
            }
            (None, None) => Ok(None),
        }
    }

    /// What every result says about its group.
    pub(super) fn json(&self) -> serde_json::Map<String, serde_json::Value> {
        let mut object = serde_json::Map::new();
        if let Some(challenge) = &self.challenge {
            object.insert("challenge".to_owned(), super::hex(challenge).into());
        }
        let number = self.discriminant.value();
        object.insert("discriminant".to_owned(), lanework_vdf::number::to_hexadecimal(&number).into());
        object.insert("bits".to_owned(), self.discriminant.bits().into());
        object
    }
}

/// The remedy where neither is given.
pub(super) fn no_group() -> Failure {
    Failure::input("no group to work in: name a --challenge or a --discriminant")
}

/// The form that a chain of these arguments starts from.
pub(super) fn start(kernels: &'static Kernels, args: &ChainArgs) -> Result<(Group, Form), Failure> {
    let group = Group::of_arguments(kernels, &args.group, args.bits.bits)?.ok_or_else(no_group)?;
    let d = &group.discriminant;
    let x = match &args.input {
        Some(input) => {
            read_form(args.mode, d, &input.0).map_err(|e| Failure::input(format!("--input: {e}")))?
        }
        None => generator(d)?,
    };
    Ok((group, x))
}

fn read_form(mode: ModeArgs, d: &Discriminant, bytes: &[u8]) -> Result<Form, lanework_vdf::DecodeError> {
    if mode.lenient { Form::from_bytes(Lenient, d, bytes) } else { Form::from_bytes(Strict, d, bytes) }
}

/// The form that a chain starts from if none is named.
pub(super) fn generator(d: &Discriminant) -> Result<Form, Failure> {
    Form::generator(d).ok_or_else(|| {
        Failure::input("a discriminant that is not 1 modulo 8 has no generator (2, 1); name the form to start from with --input")
    })
}
