#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

use lanework_integer::{Int, Uint};
use lanework_vdf::form::LIMBS;
use lanework_vdf::serial::{CHIA_BITS, CHIA_BYTES};
use lanework_vdf::{Discriminant, Form, Lenient, Limits, Options, Proof, Question, Task};

/// Witness types are bytes in Chia's blocks.
const DEEPEST: u64 = 255;

/// Chia's discriminants have at most 1,024 bits.
fn from_seed(seed: &[u8], bits: usize) -> Option<Discriminant> {
    if bits <= CHIA_BITS { Discriminant::from_seed(seed, bits).ok() } else { None }
}

/// chiavdf's discriminant: it refuses the other primes of 8 bits.
fn of_chiavdf(seed: &[u8], bits: usize) -> Option<Discriminant> {
    let d = from_seed(seed, bits)?;
    if bits == 8 { Discriminant::new(&Int::new(true, Uint::from_u64(239))).ok() } else { Some(d) }
}

fn verified(d: &Int<LIMBS>, x: &[u8], proof: &[u8], iterations: u64, depth: u64) -> bool {
    let Ok(d) = Discriminant::new(d) else { return false };
    let limits = Limits { depth: DEEPEST, bits: CHIA_BITS, iterations: u64::MAX };
    let question = Question { x, proof, iterations, depth };
    x.len() == CHIA_BYTES && lanework_vdf::verify(Lenient, &d, &question, &limits).is_ok()
}

/// Writes the absolute value of a challenge's discriminant to `result`, highest byte first. The discriminant gets 8 bits for
/// each byte of `result`; one of 8 bits is always -239, as chiavdf's. False if there is none: an empty challenge or result, or
/// one of more than 128 bytes.
#[must_use]
pub fn create_discriminant(seed: &[u8], result: &mut [u8]) -> bool {
    let Some(d) = of_chiavdf(seed, result.len().saturating_mul(8)) else { return false };
    d.value().magnitude().write_be_bytes(result);
    true
}

/// Squares the form `x_s` of 100 bytes `num_iterations` times, and proves it in one segment: 100 bytes of result and 100 of proof.
/// After no squarings the result is `x_s` and the proof the identity. `None` if there is no such discriminant or form, or too little memory.
#[must_use]
pub fn prove(
    challenge: &[u8],
    x_s: &[u8],
    discriminant_size_bits: usize,
    num_iterations: u64,
) -> Option<Vec<u8>> {
    let d = of_chiavdf(challenge, discriminant_size_bits)?;
    let x = Form::from_bytes(Lenient, &d, x_s).ok()?;
    if num_iterations == 0 {
        let proof = Proof { y: x, pi: Form::identity(&d), segments: Vec::new() };
        return Some(proof.to_bytes(&d));
    }
    let task = Task::new(d.clone(), x, num_iterations);
    let proved = lanework_vdf::prove(&task, &Options::default(), &mut |_| true).ok()?;
    Some(proved.proof.to_bytes(&d))
}

/// Whether a proof shows that its result is `x_s` squared `num_iterations` times. `discriminant` is an absolute value in at most 128
/// bytes, leading zeros included, highest byte first. `recursion` is the number of segments before the last.
#[must_use]
pub fn verify_n_wesolowski(
    discriminant: &[u8],
    x_s: &[u8],
    proof: &[u8],
    num_iterations: u64,
    recursion: u64,
) -> bool {
    discriminant.len() <= CHIA_BITS / 8
        && Uint::from_be_bytes(discriminant)
            .is_some_and(|d| verified(&Int::new(true, d), x_s, proof, num_iterations, recursion))
}

/// Of chia-vdf-verify: discriminants.
pub mod discriminant {
    use super::{Int, LIMBS};

    /// The discriminant of a challenge.
    ///
    /// # Panics
    /// There is none: an empty challenge, one of a byte or two without a prime, or a length that is not a multiple of 8 from 8 to
    /// 1,024. chia-vdf-verify panics at such lengths, too.
    #[must_use]
    pub fn create_discriminant(seed: &[u8], length: usize) -> Int<LIMBS> {
        let Some(d) = super::from_seed(seed, length) else {
            panic!("no discriminant of {length} bits from a challenge of {} bytes", seed.len())
        };
        d.value()
    }
}

/// Of chia-vdf-verify: proofs.
pub mod verifier {
    use super::{Int, LIMBS};

    /// Whether a proof shows that its result is `x_s` squared `iterations` times; `depth` is the number of segments before the last.
    #[must_use]
    pub fn check_proof_of_time_n_wesolowski(
        d: &Int<LIMBS>,
        x_s: &[u8],
        proof_blob: &[u8],
        iterations: u64,
        depth: u64,
    ) -> bool {
        super::verified(d, x_s, proof_blob, iterations, depth)
    }
}
