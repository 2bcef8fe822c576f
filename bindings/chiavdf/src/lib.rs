//! libchiavdfc: the symbols of chiavdf's `src/c_bindings`, so that a program of Chia's can link this library in its place.
//!
//! Forms are read as Chia's nodes read them. Every fault, and a panic, is the false or NULL that chiavdf answers to an exception.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Bytes of a form.
const FORM: usize = 100;

/// Bytes that the library allocated.
#[derive(Debug)]
#[repr(C)]
pub struct ByteArray {
    /// NULL if there are none.
    pub data: *mut u8,
    /// How many.
    pub length: usize,
}

/// Runs an entry; a panic, which C could not catch, is its fault.
fn guard<T>(body: impl FnOnce() -> Option<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        // Dropping it could panic again.
        core::mem::forget(payload);
        None
    })
}

/// # Safety
/// `at` is NULL, or may be read for `len` bytes during `'a`.
unsafe fn bytes<'a>(at: *const u8, len: usize) -> Option<&'a [u8]> {
    if at.is_null() || isize::try_from(len).is_err() {
        return None;
    }
    // SAFETY: not NULL, no longer than an object; the rest is promised.
    Some(unsafe { core::slice::from_raw_parts(at, len) })
}

/// Writes the absolute value of a challenge's discriminant, highest byte first.
///
/// # Safety
/// `seed` may be read for `seed_size` bytes, and `result` written for `size_bits / 8`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn create_discriminant_wrapper(
    seed: *const u8,
    seed_size: usize,
    size_bits: usize,
    result: *mut u8,
) -> bool {
    guard(|| {
        // SAFETY: the caller lends it.
        let seed = unsafe { bytes(seed, seed_size) }?;
        let mut longest = [0; 128];
        let magnitude = longest.get_mut(..size_bits / 8).filter(|_| size_bits.is_multiple_of(8))?;
        if result.is_null() || !lanework_chia::create_discriminant(seed, magnitude) {
            return None;
        }
        // SAFETY: the caller lends that many bytes, which cannot overlap an array of ours.
        unsafe { result.copy_from_nonoverlapping(magnitude.as_ptr(), magnitude.len()) };
        Some(())
    })
    .is_some()
}

/// Squares a form and proves the result in one segment.
///
/// # Safety
/// `challenge_hash` and `x_s` may be read for their sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prove_wrapper(
    challenge_hash: *const u8,
    challenge_size: usize,
    x_s: *const u8,
    x_s_size: usize,
    discriminant_size_bits: usize,
    num_iterations: u64,
) -> ByteArray {
    let proved = guard(|| {
        // SAFETY: the caller lends both.
        let (seed, x) = unsafe { (bytes(challenge_hash, challenge_size)?, bytes(x_s, x_s_size)?) };
        lanework_chia::prove(seed, x, discriminant_size_bits, num_iterations).map(Vec::into_boxed_slice)
    });
    match proved {
        Some(proof) => ByteArray { length: proof.len(), data: Box::into_raw(proof).cast() },
        None => ByteArray { data: core::ptr::null_mut(), length: 0 },
    }
}

/// Whether a proof is right.
///
/// # Safety
/// `x_s` may be read for 100 bytes, the others for their sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn verify_n_wesolowski_wrapper(
    discriminant_bytes: *const u8,
    discriminant_size: usize,
    x_s: *const u8,
    proof_blob: *const u8,
    proof_blob_size: usize,
    num_iterations: u64,
    recursion: u64,
) -> bool {
    guard(|| {
        // SAFETY: the caller lends them.
        let (magnitude, x, proof) = unsafe {
            let magnitude = bytes(discriminant_bytes, discriminant_size)?;
            (magnitude, bytes(x_s, FORM)?, bytes(proof_blob, proof_blob_size)?)
        };
        lanework_chia::verify_n_wesolowski(magnitude, x, proof, num_iterations, recursion).then_some(())
    })
    .is_some()
}

/// Frees what [`prove_wrapper`] returned.
///
/// # Safety
/// It came from there, and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn delete_byte_array(array: ByteArray) {
    if !array.data.is_null() {
        // SAFETY: a boxed slice of this length, which the caller gives up.
        drop(unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(array.data, array.length)) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanework_vdf::internals::known;

    #[test]
    fn published_proofs_verify_and_changed_ones_do_not() {
        for depth in [0, 2] {
            let record = known::records().find(|r| r.depth == depth && r.bits == 1024).expect("a record");
            let (seed, x, proof) = (&record.challenge, &record.x, &record.proof);
            let mut d = [0; 128];
            // SAFETY: every pointer is of a live vector with its length.
            let verified = |d: &[u8], iterations| unsafe {
                let (d, n) = (d.as_ptr(), d.len());
                verify_n_wesolowski_wrapper(d, n, x.as_ptr(), proof.as_ptr(), proof.len(), iterations, depth)
            };
            // SAFETY: 128 bytes are the discriminant's.
            assert!(unsafe { create_discriminant_wrapper(seed.as_ptr(), seed.len(), 1024, d.as_mut_ptr()) });
            assert!(verified(&d, record.iterations));
            assert!(!verified(&d, record.iterations + 1));
            assert!(!verified(&d[..127], record.iterations));
        }
    }

    #[test]
    fn a_proof_of_ours_verifies_and_is_freed() {
        let (seed, mut x, mut d) = ([7; 32], [0; 100], [0; 64]);
        x[0] = 8;
        // SAFETY: every pointer is of a live array with its length.
        unsafe {
            assert!(create_discriminant_wrapper(seed.as_ptr(), 32, 512, d.as_mut_ptr()));
            let proof = prove_wrapper(seed.as_ptr(), 32, x.as_ptr(), 100, 512, 1000);
            assert_eq!(proof.length, 200);
            assert!(verify_n_wesolowski_wrapper(d.as_ptr(), 64, x.as_ptr(), proof.data, 200, 1000, 0));
            delete_byte_array(proof);
        }
    }

    #[test]
    fn faults_are_false_and_null() {
        let (seed, null) = ([1; 32], core::ptr::null());
        let mut d = [0; 256];
        // SAFETY: what is not NULL is of a live array, and long enough.
        unsafe {
            for bits in [0, 1023, 1032, usize::MAX] {
                assert!(!create_discriminant_wrapper(seed.as_ptr(), 32, bits, d.as_mut_ptr()));
            }
            assert!(!create_discriminant_wrapper(null, 32, 512, d.as_mut_ptr()));
            assert!(!create_discriminant_wrapper(seed.as_ptr(), 32, 512, core::ptr::null_mut()));
            assert!(!verify_n_wesolowski_wrapper(d.as_ptr(), 128, d.as_ptr(), d.as_ptr(), 200, 1, 0));
            assert!(!verify_n_wesolowski_wrapper(d.as_ptr(), 128, d.as_ptr(), null, 200, 1, u64::MAX));
            let none = prove_wrapper(seed.as_ptr(), 32, d.as_ptr(), 99, 512, 10);
            assert!(none.data.is_null() && none.length == 0);
            delete_byte_array(none);
        }
    }
}
