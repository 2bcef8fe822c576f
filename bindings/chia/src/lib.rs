#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

use lanework_integer::{Int, Uint};
use lanework_vdf::form::LIMBS;
use lanework_vdf::serial::{CHIA_BITS, CHIA_BYTES};
use lanework_vdf::{Discriminant, Form, Lenient, Limits, Options, Question, Task};

/// Witness types are bytes in Chia's blocks.
const DEEPEST: u64 = 255;

/// Chia's discriminants have at most 1,024 bits.
fn from_seed(seed: &[u8], bits: usize) -> Option<Discriminant> {
    if bits <= CHIA_BITS { Discriminant::from_seed(seed, bits).ok() } else { None }
}

fn verified(d: &Int<LIMBS>, x: &[u8], proof: &[u8], iterations: u64, depth: u64) -> bool {
    let Ok(d) = Discriminant::new(d) else { return false };
    let limits = Limits { depth: DEEPEST, bits: CHIA_BITS, iterations: u64::MAX };
    let question = Question { x, proof, iterations, depth };
    x.len() == CHIA_BYTES && lanework_vdf::verify(Lenient, &d, &question, &limits).is_ok()
}

/// Writes the absolute value of a challenge's discriminant to `result`, highest byte first. The discriminant gets 8 bits for
/// each byte of `result`. False if there is none: an empty challenge or result, or one of more than 128 bytes.
#[must_use]
pub fn create_discriminant(seed: &[u8], result: &mut [u8]) -> bool {
    let Some(d) = from_seed(seed, result.len().saturating_mul(8)) else { return false };
    d.value().magnitude().write_be_bytes(result);
    true
}

/// Squares the form `x_s` of 100 bytes `num_iterations` times, and proves it in one segment: 100 bytes of result and 100 of proof.
/// `None` if there is no such discriminant or form, or too little memory.
#[must_use]
pub fn prove(
    challenge: &[u8],
    x_s: &[u8],
    discriminant_size_bits: usize,
    num_iterations: u64,
) -> Option<Vec<u8>> {
    let d = from_seed(challenge, discriminant_size_bits)?;
    let task = Task::new(d.clone(), Form::from_bytes(Lenient, &d, x_s).ok()?, num_iterations);
    let proved = lanework_vdf::prove(&task, &Options::default(), &mut |_| true).ok()?;
    Some(proved.proof.to_bytes(&d))
}

/// Whether a proof shows that its result is `x_s` squared `num_iterations` times. `discriminant` is an absolute value, highest byte
/// first, and `recursion` the number of segments before the last.
#[must_use]
pub fn verify_n_wesolowski(
    discriminant: &[u8],
    x_s: &[u8],
    proof: &[u8],
    num_iterations: u64,
    recursion: u64,
) -> bool {
    Uint::from_be_bytes(discriminant)
        .is_some_and(|magnitude| verified(&Int::new(true, magnitude), x_s, proof, num_iterations, recursion))
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
