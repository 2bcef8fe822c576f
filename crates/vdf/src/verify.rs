//! Verification. Its cost is bounded before it starts: the number of bytes and the caller's limits bound the segments,
//! and a segment costs a power of 264 bits for any iterations.
#![forbid(unsafe_code)]

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use lanework_cpu::{PoolError, Threads};

use crate::backend::BESIDE;
use crate::discriminant::{Discriminant, DiscriminantError, MAX_BITS};
use crate::form::Form;
use crate::form::power::products_of_powers;
use crate::group::Group;
use crate::prime::power_of_two;
use crate::proof::{self, B_BITS, Challenge, Compact, Part, Proof, ProofError, Segment};
use crate::serial::{self, DecodeError, Mode};

/// The caller's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Segments before the last. Chia allows 63.
    pub depth: u64,
    /// Squarings altogether.
    pub iterations: u64,
    /// Bits of the discriminant. A value above [`MAX_BITS`] counts as that.
    pub bits: usize,
}

impl Default for Limits {
    /// Chia's depth, 2^48 squarings (thirty years at the fastest known rate), and 2,048 bits.
    fn default() -> Limits {
        Limits { depth: 63, iterations: 1 << 48, bits: MAX_BITS }
    }
}

/// Why a proof was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifyError {
    /// The question makes no sense.
    Malformed(Malformed),
    /// The proof is well formed, but does not prove the result.
    Refused(Refused),
}

/// Faults of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// No discriminant.
    Discriminant(DiscriminantError),
    /// The form that the chain starts from.
    Input(DecodeError),
    /// The proof's bytes.
    Proof(ProofError),
    /// No squarings. [`crate::serial::Lenient`] accepts them, as Chia does, if the form is unchanged.
    NoIterations,
    /// More squarings than the limit allows.
    Iterations {
        /// The limit.
        most: u64,
        /// The question's number.
        got: u64,
    },
    /// A discriminant longer than the limit allows.
    Bits {
        /// The limit.
        most: usize,
        /// The discriminant's bits.
        got: usize,
    },
}

/// Why a well-formed proof is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The segments are longer than the whole chain.
    SegmentIterations {
        /// The first that is too long, counted from the chain's start.
        segment: usize,
    },
    /// A segment's B is 0, even, or too short to come from the hash.
    NotAPrime {
        /// Which.
        part: Part,
    },
    /// The end of a segment's proof does not hash to its B.
    WrongChallenge {
        /// Which.
        part: Part,
    },
    /// The last segment's proof does not lead to the result.
    WrongResult,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VerifyError::Malformed(e) => e.fmt(f),
            VerifyError::Refused(e) => e.fmt(f),
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::Discriminant(e) => e.fmt(f),
            Malformed::Input(e) => write!(f, "the input: {e}"),
            Malformed::Proof(e) => e.fmt(f),
            Malformed::NoIterations => f.write_str("a proof of no squarings"),
            Malformed::Iterations { most, got } => write!(f, "{got} squarings; at most {most} are allowed"),
            Malformed::Bits { most, got } => {
                write!(f, "a discriminant of {got} bits; at most {most} are allowed")
            }
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::SegmentIterations { segment } => {
                write!(f, "segment {segment}: more squarings than are left of the chain")
            }
            Refused::NotAPrime { part } => write!(f, "{part}: B is no prime of {B_BITS} bits"),
            Refused::WrongChallenge { part } => write!(f, "{part}: the proof is not one for its B"),
            Refused::WrongResult => f.write_str("the proof does not lead to the result"),
        }
    }
}

impl core::error::Error for VerifyError {}
impl core::error::Error for Malformed {}
impl core::error::Error for Refused {}

impl From<Refused> for VerifyError {
    fn from(e: Refused) -> VerifyError {
        VerifyError::Refused(e)
    }
}

impl From<Malformed> for VerifyError {
    fn from(e: Malformed) -> VerifyError {
        VerifyError::Malformed(e)
    }
}

impl From<ProofError> for VerifyError {
    fn from(e: ProofError) -> VerifyError {
        VerifyError::Malformed(Malformed::Proof(e))
    }
}

impl From<DiscriminantError> for VerifyError {
    fn from(e: DiscriminantError) -> VerifyError {
        VerifyError::Malformed(Malformed::Discriminant(e))
    }
}

impl VerifyError {
    /// Whether the question made no sense, as opposed to a negative answer.
    #[must_use]
    pub fn is_malformed(&self) -> bool {
        matches!(self, VerifyError::Malformed(_))
    }
}

/// A question as it arrives, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The form that the chain starts from.
    pub x: &'a [u8],
    /// The proof.
    pub proof: &'a [u8],
    /// Squarings altogether.
    pub iterations: u64,
    /// Segments before the last: Chia's witness type.
    pub depth: u64,
}

/// Refuses questions that are wrong in every group, given only the discriminant's length `bits`. Called before a search
/// for the discriminant, it makes bad questions cheap; [`verify_challenge`] does so. With `b`, the proof in `question`
/// is a compact one.
///
/// # Errors
/// The question is malformed, or its segments are refused, for every discriminant of `bits` bits.
pub fn check_without_group<M: Mode>(
    mode: M,
    bits: usize,
    question: &Question<'_>,
    b: Option<&Challenge>,
    limits: &Limits,
) -> Result<(), VerifyError> {
    check_limits(mode, bits, question, limits)?;
    serial::check_without_group(bits, question.x).map_err(Malformed::Input)?;
    let forms: &[Part] = if b.is_some() { &[Part::Pi] } else { &[Part::Y, Part::Pi] };
    let segments = proof::check_without_group(bits, forms, question.proof, question.depth, limits.depth)?;
    check_segments(segments.iter().map(|(iterations, b)| (*iterations, b)), question.iterations)?;
    Ok(b.map_or(Ok(()), |b| check_challenge(b, Part::Pi))?)
}

fn check_limits<M: Mode>(
    _: M,
    bits: usize,
    question: &Question<'_>,
    limits: &Limits,
) -> Result<(), Malformed> {
    let most = limits.bits.min(MAX_BITS);
    if bits > most {
        return Err(Malformed::Bits { most, got: bits });
    }
    if question.iterations > limits.iterations {
        return Err(Malformed::Iterations { most: limits.iterations, got: question.iterations });
    }
    if M::STRICT && question.iterations == 0 {
        return Err(Malformed::NoIterations);
    }
    Ok(())
}

fn ready<M: Mode>(
    mode: M,
    d: &Discriminant,
    question: &Question<'_>,
    limits: &Limits,
) -> Result<Form, Malformed> {
    check_limits(mode, d.bits(), question, limits)?;
    Form::from_bytes(mode, d, question.x).map_err(Malformed::Input)
}

/// Whether the proof shows that its result is x squared `question.iterations` times.
///
/// It shows that only where no forms of small order are known. Take the discriminant from a challenge
/// ([`verify_challenge`]), or check that it [is prime](Discriminant::is_prime). Where a form e of order 2 is known, the
/// false result y e passes: its proof is e times what an honest prover of y would send for the B of y e.
///
/// # Errors
/// The question is malformed, or the proof is refused.
pub fn verify<'a, M: Mode>(
    mode: M,
    group: impl Into<Group<'a>>,
    question: &Question<'_>,
    limits: &Limits,
) -> Result<(), VerifyError> {
    verify_with_b(mode, group, question, limits).map(drop)
}

/// [`verify`], and the last segment's B, which is stored with a compact proof.
///
/// # Errors
/// As [`verify`].
pub fn verify_with_b<'a, M: Mode>(
    mode: M,
    group: impl Into<Group<'a>>,
    question: &Question<'_>,
    limits: &Limits,
) -> Result<Challenge, VerifyError> {
    let group = group.into();
    let d = group.discriminant();
    let x = ready(mode, d, question, limits)?;
    let proof = Proof::from_bytes(mode, d, question.proof, question.depth, limits.depth)?;
    Ok(challenge_of_valid(group, &x, &proof, question.iterations)?)
}

/// [`verify`] of many proofs, each with its own group, spread over threads: the outcomes, in their order. On the backend
/// `avx512` a thread verifies up to sixteen proofs side by side, if their discriminants have one length of 513 to 1,024 bits: in
/// half to two thirds of the time.
///
/// # Errors
/// The operating system refused the threads; nothing has been verified then.
pub fn verify_all<M: Mode>(
    mode: M,
    questions: &[(Group<'_>, Question<'_>)],
    limits: &Limits,
    threads: Threads<'_>,
) -> Result<Vec<Result<(), VerifyError>>, PoolError> {
    // As many for a thread as are verified side by side, but every thread gets some.
    let size = questions.len().div_ceil(threads.count()).clamp(1, BESIDE);
    let mut outcomes = vec![Ok(()); questions.len()];
    let mut parts: Vec<_> = questions.chunks(size).zip(outcomes.chunks_mut(size)).collect();
    threads
        .for_each(&mut parts, |_, (questions, outcomes)| verify_some(mode, questions, limits, outcomes))?;
    drop(parts);
    Ok(outcomes)
}

/// [`verify`] of proofs side by side.
fn verify_some<M: Mode>(
    mode: M,
    questions: &[(Group<'_>, Question<'_>)],
    limits: &Limits,
    outcomes: &mut [Result<(), VerifyError>],
) {
    let read = |(group, question): &(Group<'_>, Question<'_>)| {
        let d = group.discriminant();
        let x = ready(mode, d, question, limits)?;
        let proof = Proof::from_bytes(mode, d, question.proof, question.depth, limits.depth)?;
        Ok((x, proof))
    };
    let read: Vec<Result<(Form, Proof), VerifyError>> = questions.iter().map(read).collect();
    let (mut places, mut cases) = (vec![], vec![]);
    for (i, (read, (group, question))) in read.iter().zip(questions).enumerate() {
        match read {
            Ok((x, proof)) => {
                places.push(i);
                cases.push(Case { group: *group, x, proof, iterations: question.iterations });
            }
            Err(e) => outcomes[i] = Err(e.clone()),
        }
    }
    for (i, valid) in places.into_iter().zip(challenges_of_valid(&cases)) {
        outcomes[i] = valid.map(drop).map_err(VerifyError::from);
    }
}

/// [`verify`] for a challenge's discriminant.
///
/// # Errors
/// As [`verify`], and for a challenge without a discriminant.
pub fn verify_challenge<M: Mode>(
    mode: M,
    seed: &[u8],
    bits: usize,
    question: &Question<'_>,
    limits: &Limits,
) -> Result<(), VerifyError> {
    Discriminant::check_seed(seed, bits)?;
    check_without_group(mode, bits, question, None, limits)?;
    verify(mode, &Discriminant::from_seed(seed, bits)?, question, limits)
}

/// The result that a compact proof leads to, given the last segment's B; the proof in `question` has no result.
///
/// # Errors
/// The question is malformed, or the proof is not one for these primes.
pub fn verify_compact<'a, M: Mode>(
    mode: M,
    group: impl Into<Group<'a>>,
    b: &Challenge,
    question: &Question<'_>,
    limits: &Limits,
) -> Result<Form, VerifyError> {
    let group = group.into();
    let d = group.discriminant();
    let x = ready(mode, d, question, limits)?;
    let proof = Compact::from_bytes(mode, d, question.proof, question.depth, limits.depth)?;
    let mut walks = [Walk::start(group, &x, &proof.segments, question.iterations)];
    walk(&mut walks);
    let [walk] = walks;
    let walk = walk?;
    check_challenge(b, Part::Pi)?;
    let y = ends(&[walk.step(b, walk.left, &proof.pi)]).remove(0);
    if Challenge::of(group, &walk.x, &y) == *b {
        Ok(y)
    } else {
        Err(Refused::WrongChallenge { part: Part::Pi }.into())
    }
}

/// Whether a decoded proof shows that its result is x squared `iterations` times. All forms must have the group's
/// discriminant.
///
/// # Errors
/// The refusal.
pub fn verify_proof<'a>(
    group: impl Into<Group<'a>>,
    x: &Form,
    proof: &Proof,
    iterations: u64,
) -> Result<(), Refused> {
    challenge_of_valid(group.into(), x, proof, iterations).map(drop)
}

/// The last segment's B, if the proof is right.
fn challenge_of_valid(
    group: Group<'_>,
    x: &Form,
    proof: &Proof,
    iterations: u64,
) -> Result<Challenge, Refused> {
    let case = Case { group, x, proof, iterations };
    challenges_of_valid(&[case]).pop().unwrap_or(Err(Refused::WrongResult))
}

/// A decoded proof, whose forms have the group's discriminant.
struct Case<'a> {
    group: Group<'a>,
    x: &'a Form,
    proof: &'a Proof,
    iterations: u64,
}

/// The last segment's B of each case whose proof is right; the cases are verified side by side.
fn challenges_of_valid(cases: &[Case<'_>]) -> Vec<Result<Challenge, Refused>> {
    let mut walks = Vec::with_capacity(cases.len());
    for case in cases {
        walks.push(Walk::start(case.group, case.x, &case.proof.segments, case.iterations));
    }
    walk(&mut walks);
    let challenge = |(case, walk): (&Case<'_>, &Result<Walk<'_>, Refused>)| {
        let walk = walk.as_ref().map_err(|&why| why)?;
        Ok(Challenge::of(case.group, &walk.x, &case.proof.y))
    };
    let challenges: Vec<_> = cases.iter().zip(&walks).map(challenge).collect();
    let parts = cases.iter().zip(&walks).zip(&challenges);
    let last = parts.filter_map(|((case, walk), b)| {
        Some(walk.as_ref().ok()?.step(b.as_ref().ok()?, walk.as_ref().ok()?.left, &case.proof.pi))
    });
    let mut ends = ends(&last.collect::<Vec<_>>()).into_iter();
    let verdict = |(case, b): (&Case<'_>, Result<Challenge, Refused>)| {
        let b = b?;
        if ends.next().as_ref() == Some(&case.proof.y) { Ok(b) } else { Err(Refused::WrongResult) }
    };
    cases.iter().zip(challenges).map(verdict).collect()
}

fn heads(segments: &[Segment]) -> impl Iterator<Item = (u64, &Challenge)> {
    segments.iter().map(|segment| (segment.iterations, &segment.b))
}

/// The cheap checks of segments, by their squarings and B. Returns the iterations left for the last one.
fn check_segments<'a>(
    segments: impl Iterator<Item = (u64, &'a Challenge)>,
    mut iterations: u64,
) -> Result<u64, Refused> {
    for (i, (length, b)) in segments.enumerate() {
        iterations = iterations.checked_sub(length).ok_or(Refused::SegmentIterations { segment: i })?;
        check_challenge(b, Part::Segment(i))?;
    }
    Ok(iterations)
}

fn check_challenge(b: &Challenge, part: Part) -> Result<(), Refused> {
    if b.0.bits() == B_BITS && b.0.is_odd() { Ok(()) } else { Err(Refused::NotAPrime { part }) }
}

/// A proof of which some segments have been verified.
struct Walk<'a> {
    group: Group<'a>,
    segments: &'a [Segment],
    /// The end of those.
    x: Form,
    /// Squarings of the last segment.
    left: u64,
}

impl<'a> Walk<'a> {
    fn start(
        group: Group<'a>,
        x: &Form,
        segments: &'a [Segment],
        iterations: u64,
    ) -> Result<Walk<'a>, Refused> {
        let left = check_segments(heads(segments), iterations)?;
        Ok(Walk { group, segments, x: x.clone(), left })
    }

    fn step<'b>(&'b self, b: &'b Challenge, iterations: u64, pi: &'b Form) -> Step<'b> {
        Step { group: self.group, x: &self.x, iterations, b, pi }
    }
}

/// Verifies the segments before the last, side by side.
fn walk(walks: &mut [Result<Walk<'_>, Refused>]) {
    for i in 0.. {
        let segment = |walk: &Walk<'_>| walk.segments.get(i).cloned();
        let going: Vec<(usize, Segment)> = walks
            .iter()
            .enumerate()
            .filter_map(|(n, walk)| Some((n, segment(walk.as_ref().ok()?)?)))
            .collect();
        if going.is_empty() {
            return;
        }
        let steps = going.iter().filter_map(|(n, segment)| {
            Some(walks[*n].as_ref().ok()?.step(&segment.b, segment.iterations, &segment.pi))
        });
        let ends = ends(&steps.collect::<Vec<_>>());
        for ((n, segment), y) in going.into_iter().zip(ends) {
            let Ok(walk) = &mut walks[n] else { continue };
            if Challenge::of(walk.group, &walk.x, &y) == segment.b {
                walk.x = y;
            } else {
                walks[n] = Err(Refused::WrongChallenge { part: Part::Segment(i) });
            }
        }
    }
}

/// A segment, and what is said to be its proof.
struct Step<'a> {
    group: Group<'a>,
    x: &'a Form,
    iterations: u64,
    b: &'a Challenge,
    pi: &'a Form,
}

/// pi^B x^r, r = 2^T modulo B, of each: the end of a segment if pi is its proof.
fn ends(steps: &[Step<'_>]) -> Vec<Form> {
    let r: Vec<_> = steps.iter().map(|step| power_of_two(step.iterations, &step.b.0)).collect();
    let case = |(step, r)| {
        let Step { group, x, b, pi, .. }: &Step<'_> = step;
        (*group, [(*pi, &b.0), (*x, r)])
    };
    products_of_powers(&steps.iter().zip(&r).map(case).collect::<Vec<_>>())
}
