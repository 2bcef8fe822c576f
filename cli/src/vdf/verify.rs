//! `verify`.
#![forbid(unsafe_code)]

use std::time::Instant;

use lanework_study::{Failure, Message, Outcome};
use lanework_suite::Job;
use lanework_suite::vdf::{BITS, Operation};
use lanework_vdf::proof::B_BYTES;
use lanework_vdf::serial::{Mode, form_bytes_for};
use lanework_vdf::verify::{check_without_group, verify_compact, verify_with_b};
use lanework_vdf::{Challenge, Lenient, Limits, Malformed, ProofError, Question, Strict, VerifyError};

use super::args::VerifyArgs;
use super::group::{Group, Named, no_group};
use super::hex;
use super::proof_file::ProofFile;
use crate::magma::args::Hex;
use crate::ui::Session;

pub(super) fn run(session: &Session, args: &VerifyArgs) -> Result<Outcome, Failure> {
    let engine = session.engine(Job::Vdf(Operation::Verify, BITS))?;
    let asked = Asked::new(args)?;
    let mode = if args.mode.lenient { Lenient::NAME } else { Strict::NAME };
    let begin = Instant::now();
    let verdict = asked.verdict(&mut |named| named.find(engine))?;
    let seconds = begin.elapsed().as_secs_f64();
    if session.json {
        let mut object = verdict.group.as_ref().map(Group::json).unwrap_or_default();
        let rest = serde_json::json!({
            "valid": verdict.result.is_ok(), "mode": mode, "iterations": asked.iterations,
            "witness": asked.witness, "seconds": seconds, "backend": engine.name(),
        });
        object.extend(super::members(rest));
        match &verdict.result {
            Ok(y) => object.insert("y".to_owned(), hex(y).into()),
            Err(why) => {
                if let Some(help) = why.remedy() {
                    object.insert("help".to_owned(), help.into());
                }
                object.insert("why".to_owned(), why.what().into())
            }
        };
        println!("{}", serde_json::Value::Object(object));
    } else {
        match &verdict.result {
            Ok(y) => {
                println!(
                    "proof is valid: {} squarings, {} segments before the last",
                    asked.iterations, asked.witness
                );
                println!("y {}", hex(y));
            }
            Err(why) => println!("{}", why.text("PROOF REFUSED")),
        }
    }
    Ok(Outcome::from_bool(verdict.result.is_ok()))
}

/// The answer to a question.
pub(super) struct Verdict {
    /// None if the question was answered without it.
    group: Option<Group>,
    /// The result that is proved, or why none is.
    pub(super) result: Result<Vec<u8>, Message>,
}

/// Why there is no result.
enum Stop {
    /// The question is well formed, and the answer is no.
    Refused(Message),
    Failed(Failure),
}

impl Stop {
    fn refused(why: impl Into<Message>) -> Stop {
        Stop::Refused(why.into())
    }
}

impl From<Failure> for Stop {
    fn from(e: Failure) -> Stop {
        Stop::Failed(e)
    }
}

/// Searches for a group.
pub(super) type Find<'a> = dyn FnMut(&Named) -> Result<Group, Failure> + 'a;

/// The question, from the options or else from the file; and what else the file says.
pub(super) struct Asked<'a> {
    args: &'a VerifyArgs,
    named: Named,
    input: Vec<u8>,
    iterations: u64,
    witness: u64,
    /// The proof; with b a compact one.
    proof: Vec<u8>,
    b: Option<Challenge>,
    /// The discriminant's length as an option or the file gives it, and its place.
    bits: Option<(usize, String)>,
    /// The file's members without those that options replace: the rest must agree with what is verified.
    said: ProofFile,
}

impl<'a> Asked<'a> {
    pub(super) fn new(args: &'a VerifyArgs) -> Result<Asked<'a>, Failure> {
        let mut said = args.file.as_deref().map(ProofFile::read).transpose()?.unwrap_or_default();
        let bits = match args.bits.bits {
            Some(bits) => Some((bits, "--bits".to_owned())),
            None => said.bits.map(|bits| (bits, said.place("bits"))),
        };
        let named = match Named::by_options(&args.group, bits.as_ref())? {
            Some(named) => named,
            None => by_file(&said, bits.as_ref())?.ok_or_else(no_group)?,
        };
        let missing = |option: &str, member: &str| {
            let help = format!("name {option}, or a file that prove wrote");
            if args.file.is_none() {
                return Failure::input("nothing to verify").help(help);
            }
            let failure = Failure::input(format!("{}: missing", said.place(member)));
            match (member, &said.compact, &said.b) {
                ("proof", Some(_), Some(_)) => {
                    failure.help("its compact proof is verified with --b B, its own b")
                }
                _ => failure.help(help),
            }
        };
        let bytes = |option: &Option<Hex>| option.as_ref().map(|Hex(bytes)| bytes.clone());
        let (in_file, member) =
            if args.b.is_some() { (&said.compact, "compact") } else { (&said.proof, "proof") };
        let proof =
            bytes(&args.proof).or_else(|| in_file.clone()).ok_or_else(|| missing("--proof", member))?;
        let iterations =
            args.iterations.or(said.iterations).ok_or_else(|| missing("--iterations", "iterations"))?;
        let b = match &args.b {
            Some(Hex(bytes)) => {
                let bytes: &[u8; B_BYTES] =
                    bytes.as_slice().try_into().map_err(|_| wrong_length("--b", bytes.len(), B_BYTES))?;
                Some(Challenge::from_bytes(bytes))
            }
            None => None,
        };
        let input = match bytes(&args.input).or_else(|| said.input.clone()) {
            Some(input) => input,
            None => named.generator()?,
        };
        let witness = args.witness.or(said.witness).unwrap_or(0);
        // An option replaces the member of its name, and no other.
        if args.group.challenge.is_some() {
            said.challenge = None;
        }
        if args.group.discriminant.is_some() {
            said.discriminant = None;
        }
        if args.proof.is_some() {
            said.proof = None;
        }
        if args.b.is_some() {
            said.b = None;
        }
        Ok(Asked { args, named, input, iterations, witness, proof, b, bits, said })
    }

    pub(super) fn verdict(&self, find: &mut Find<'_>) -> Result<Verdict, Failure> {
        let mut group = None;
        let result = if self.args.mode.lenient {
            self.result(Lenient, find, &mut group)
        } else {
            self.result(Strict, find, &mut group)
        };
        match result {
            Ok(y) => Ok(Verdict { group, result: Ok(y) }),
            Err(Stop::Refused(why)) => Ok(Verdict { group, result: Err(why) }),
            Err(Stop::Failed(e)) => Err(e),
        }
    }

    /// The result that is proved. What can be refused without the group is refused before the search for it.
    fn result<M: Mode>(
        &self,
        mode: M,
        find: &mut Find<'_>,
        found: &mut Option<Group>,
    ) -> Result<Vec<u8>, Stop> {
        self.check_bits()?;
        let (bits, limits) = (self.named.bits(), &Limits::default());
        let stop = |e: VerifyError| self.stop(&e);
        let question =
            Question { x: &self.input, proof: &self.proof, iterations: self.iterations, depth: self.witness };
        check_without_group(mode, bits, &question, self.b.as_ref(), limits).map_err(stop)?;
        let form = form_bytes_for(bits);
        let (y, compact) = self.proof.split_at(if self.b.is_some() { 0 } else { form });
        self.check_sizes(form, compact.len())?;
        if self.b.is_none() {
            agree(&self.said, "y", &self.said.y, y)?;
        }
        agree(&self.said, "compact", &self.said.compact, compact)?;

        let group = found.insert(find(&self.named)?);
        let d = &group.discriminant;
        if !self.args.trust.trust_discriminant
            && let Some(why) = self.named.distrust(group)
        {
            return Err(Stop::Refused(why));
        }
        if self.said.discriminant.as_ref().is_some_and(|said| *said.0 != d.value()) {
            let place = self.said.place("discriminant");
            return Err(Stop::refused(format!("{place}: not the one of {}", self.named.place)));
        }
        let (y, b) = match &self.b {
            Some(b) => {
                let y = verify_compact(mode, group.on_engine(), b, &question, limits).map_err(stop)?;
                (y.to_bytes(d), b.clone())
            }
            None => (y.to_vec(), verify_with_b(mode, group.on_engine(), &question, limits).map_err(stop)?),
        };
        agree(&self.said, "y", &self.said.y, &y)?;
        agree(&self.said, "b", &self.said.b, &b.to_bytes())?;
        agree(&self.said, "proof", &self.said.proof, &[&y, compact].concat())?;
        // Last, as it may need another search.
        if let Some(challenge) = &self.said.challenge
            && group.challenge.is_none()
        {
            let (place, bits_place) = (self.said.place("challenge"), self.said.place("bits"));
            let named = Named::by_challenge(challenge, place, bits, &bits_place)?;
            if find(&named)?.discriminant != *d {
                return Err(Stop::refused(format!("{}: it gives another discriminant", named.place)));
            }
        }
        Ok(y)
    }

    /// Refuses a length that is not the discriminant's, as far as it is known without a search.
    fn check_bits(&self) -> Result<(), Stop> {
        let bits = self.named.bits();
        if let Some((said, place)) = &self.bits
            && *said != bits
        {
            return Err(Stop::refused(format!("{place}: {said} bits, {} has {bits}", self.named.place)));
        }
        if let Some(number) = &self.said.discriminant {
            let said = Named::by_number(number, self.said.place("discriminant"))?;
            if said.bits() != bits {
                let asked = self.bits.as_ref().map_or("--bits", |(_, place)| place);
                let (place, has) = (&said.place, said.bits());
                return Err(Stop::refused(format!("{place}: a number of {has} bits, {asked}: {bits}")));
            }
        }
        Ok(())
    }

    /// Refuses members of the file whose number of bytes cannot be right.
    fn check_sizes(&self, form: usize, compact: usize) -> Result<(), Failure> {
        for (member, said, expected) in [
            ("y", &self.said.y, form),
            ("b", &self.said.b, B_BYTES),
            ("compact", &self.said.compact, compact),
            ("proof", &self.said.proof, form + compact),
        ] {
            if let Some(said) = said
                && said.len() != expected
            {
                let (place, got) = (self.said.place(member), said.len());
                return Err(wrong_length(&place, got, expected));
            }
        }
        Ok(())
    }

    fn stop(&self, e: &VerifyError) -> Stop {
        use Malformed as E;
        let VerifyError::Malformed(why) = e else { return Stop::refused(e) };
        let place = |option: &str, given: bool, member: &str| {
            if given || self.args.file.is_none() { option.to_owned() } else { self.said.place(member) }
        };
        let proof = || {
            let member = if self.b.is_some() { "compact" } else { "proof" };
            place("--proof", self.args.proof.is_some(), member)
        };
        let iterations = || place("--iterations", self.args.iterations.is_some(), "iterations");
        let (place, help) = match why {
            E::Input(_) => (place("--input", self.args.input.is_some(), "input"), None),
            E::Proof(ProofError::Depth { .. }) => {
                (place("--witness", self.args.witness.is_some(), "witness"), None)
            }
            E::Proof(ProofError::Length { .. }) => (
                proof(),
                Some(
                    "--witness says how many segments come before the last, and with --b the result is left out",
                ),
            ),
            E::Proof(_) => (proof(), None),
            E::NoIterations => (iterations(), Some("--lenient accepts them, as Chia does")),
            E::Iterations { .. } => (iterations(), None),
            _ => return Stop::Failed(Failure::input(e)),
        };
        let why = if let E::Input(why) = why { why.to_string() } else { why.to_string() };
        let failure = Failure::input(format!("{place}: {why}"));
        Stop::Failed(match help {
            Some(help) => failure.help(help),
            None => failure,
        })
    }
}

fn wrong_length(place: &str, got: usize, expected: usize) -> Failure {
    Failure::input(format!("{place}: {got} bytes, expected {expected}"))
        .help("give all of it, two hexadecimal digits for each byte")
}

/// The group that a file names.
pub(super) fn by_file(said: &ProofFile, bits: Option<&(usize, String)>) -> Result<Option<Named>, Failure> {
    if let Some(challenge) = &said.challenge {
        let (bits, place) = bits.ok_or_else(|| {
            Failure::input(format!("{}: missing", said.place("bits"))).help("name it with --bits")
        })?;
        return Named::by_challenge(challenge, said.place("challenge"), *bits, place).map(Some);
    }
    said.discriminant.as_ref().map(|number| Named::by_number(number, said.place("discriminant"))).transpose()
}

/// Refuses a member of the file that is not what the proof shows.
fn agree(file: &ProofFile, member: &str, said: &Option<Vec<u8>>, shown: &[u8]) -> Result<(), Stop> {
    let Some(said) = said else { return Ok(()) };
    match said.iter().zip(shown).position(|(said, shown)| said != shown) {
        None => Ok(()),
        Some(at) => Err(Stop::refused(format!(
            "{}: byte {} is {:02x}, but the proof shows {:02x}",
            file.place(member),
            at + 1,
            said[at],
            shown[at]
        ))),
    }
}
