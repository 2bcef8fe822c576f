//! Challenges, discriminants and forms as the command line gives them.
#![forbid(unsafe_code)]

use lanework_study::{Failure, Message};
use lanework_vdf::Engine;
use lanework_vdf::serial::{check_without_group, generator_bytes};
use lanework_vdf::{DecodeError, Discriminant, DiscriminantError, Form, Lenient, Strict};

use super::args::{ChainArgs, GroupArgs, ModeArgs, Number};

/// The default length of a discriminant in bits: Chia's.
pub(super) const BITS: usize = 1024;

/// A group as the user names it. A challenge's discriminant still has to be searched for, which can take seconds: whatever can be
/// refused without it is refused first.
#[derive(Debug)]
pub(super) struct Named {
    what: What,
    /// The option or the member of a file, for messages.
    pub(super) place: String,
}

#[derive(Debug)]
enum What {
    Challenge { challenge: Vec<u8>, bits: usize },
    Number(Box<Discriminant>),
}

impl Named {
    /// By a challenge and a length; each has its place.
    pub(super) fn by_challenge(
        challenge: &[u8],
        place: String,
        bits: usize,
        bits_place: &str,
    ) -> Result<Named, Failure> {
        Discriminant::check_seed(challenge, bits).map_err(|e| {
            let place = if e == DiscriminantError::EmptySeed { &place } else { bits_place };
            Failure::input(format!("{place}: {e}"))
        })?;
        Ok(Named { what: What::Challenge { challenge: challenge.to_vec(), bits }, place })
    }

    /// By a number.
    pub(super) fn by_number(number: &Number, place: String) -> Result<Named, Failure> {
        match Discriminant::new(&number.0) {
            Ok(discriminant) => Ok(Named { what: What::Number(Box::new(discriminant)), place }),
            Err(e) => Err(Failure::input(format!("{place}: {e}"))),
        }
    }

    /// By the options; none if they name no group. `bits` and their place are what a challenge also needs.
    pub(super) fn by_options(
        args: &GroupArgs,
        bits: Option<&(usize, String)>,
    ) -> Result<Option<Named>, Failure> {
        match (&args.challenge, &args.discriminant) {
            (Some(challenge), _) => {
                let (bits, place) = bits.map_or((BITS, "--bits"), |(bits, place)| (*bits, place));
                Named::by_challenge(&challenge.0, "--challenge".to_owned(), bits, place).map(Some)
            }
            (None, Some(number)) => Named::by_number(number, "--discriminant".to_owned()).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Bits of the discriminant.
    pub(super) fn bits(&self) -> usize {
        match &self.what {
            What::Challenge { bits, .. } => *bits,
            What::Number(discriminant) => discriminant.bits(),
        }
    }

    /// The challenge and the length, if it is named by them.
    pub(super) fn challenge(&self) -> Option<(&[u8], usize)> {
        match &self.what {
            What::Challenge { challenge, bits } => Some((challenge, *bits)),
            What::Number(_) => None,
        }
    }

    /// The bytes of the form that a chain starts from if none is named.
    pub(super) fn generator(&self) -> Result<Vec<u8>, Failure> {
        match &self.what {
            // Its discriminant has at least 8 bits, and is 1 modulo 8.
            What::Challenge { bits, .. } => Ok(generator_bytes(*bits)),
            What::Number(d) => generator(d).map(|form| form.to_bytes(d)),
        }
    }

    /// The group, searched for if necessary.
    pub(super) fn find(&self, engine: Engine) -> Result<Group, Failure> {
        match &self.what {
            What::Challenge { challenge, bits } => {
                // The only possible error by now is that the challenge has no prime.
                let discriminant = Discriminant::from_seed_on(engine, challenge, *bits)
                    .map_err(|e| Failure::input(format!("{}: {e}", self.place)).help("name a longer one"))?;
                Ok(Group { discriminant, engine, challenge: Some(challenge.clone()) })
            }
            What::Number(discriminant) => {
                Ok(Group { discriminant: Discriminant::clone(discriminant), engine, challenge: None })
            }
        }
    }

    /// Why proofs in a group of this name may be worthless: its discriminant is composite. One from a challenge is prime.
    pub(super) fn distrust(&self, group: &Group) -> Option<Message> {
        (group.challenge.is_none() && !group.on_engine().is_prime()).then(|| {
            Message::new("not the negative of a prime: false results can be proved in such a group")
                .at(&self.place)
                .help("--trust-discriminant accepts it anyway")
        })
    }
}

/// The group, the backend that it was found with, and the challenge that it comes from, if any.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) discriminant: Discriminant,
    engine: Engine,
    pub(super) challenge: Option<Vec<u8>>,
}

impl Group {
    /// The group on its backend.
    pub(super) fn on_engine(&self) -> lanework_vdf::Group<'_> {
        self.discriminant.on(self.engine)
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

/// The failure if neither is given.
pub(super) fn no_group() -> Failure {
    Failure::input("no group to work in").help("name a --challenge or a --discriminant")
}

/// The form that a chain of these arguments starts from.
pub(super) fn start(
    args: &ChainArgs,
    find: impl FnOnce(&Named) -> Result<Group, Failure>,
) -> Result<(Group, Form), Failure> {
    let bits = args.bits.bits.map(|bits| (bits, "--bits".to_owned()));
    let named = Named::by_options(&args.group, bits.as_ref())?.ok_or_else(no_group)?;
    let wrong = |e: DecodeError| Failure::input(format!("--input: {e}"));
    if let Some(input) = &args.input {
        check_without_group(named.bits(), &input.0).map_err(wrong)?;
    }
    let group = find(&named)?;
    if !args.trust.trust_discriminant
        && let Some(why) = named.distrust(&group)
    {
        return Err(Failure::refused(why));
    }
    let d = &group.discriminant;
    let x = match &args.input {
        Some(input) => read_form(args.mode, d, &input.0).map_err(wrong)?,
        None => generator(d)?,
    };
    Ok((group, x))
}

pub(super) fn read_form(mode: ModeArgs, d: &Discriminant, bytes: &[u8]) -> Result<Form, DecodeError> {
    if mode.lenient { Form::from_bytes(Lenient, d, bytes) } else { Form::from_bytes(Strict, d, bytes) }
}

/// The form that a chain starts from if none is named.
fn generator(d: &Discriminant) -> Result<Form, Failure> {
    Form::generator(d).ok_or_else(|| {
        Failure::input("--discriminant: not 1 modulo 8, so there is no generator (2, 1)")
            .help("name the form to start from with --input")
    })
}
