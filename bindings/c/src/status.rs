//! What an entry answers.

use core::ffi::{CStr, c_char};

/// The outcome of a call. Further values may be added.
#[allow(non_camel_case_types, reason = "the name that C sees")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum lw_status {
    /// Done.
    Ok = 0,
    /// The signature, tag, check or proof is well formed, and wrong.
    Refused = 1,
    /// A pointer is NULL.
    NullPointer = 2,
    /// A pointer is not aligned for its type.
    Misaligned = 3,
    /// A buffer that is written overlaps another.
    Overlap = 4,
    /// A buffer has the wrong length.
    Length = 5,
    /// A parameter is out of its range.
    Parameter = 6,
    /// The call does not fit the handle's state: it is finished, or associated data came after data.
    State = 7,
    /// The message is longer than its mode allows.
    TooLong = 8,
    /// MGM was given neither data nor associated data.
    EmptyMessage = 9,
    /// The top bit of an MGM nonce is set.
    NonceTopBit = 10,
    /// The counter would repeat.
    CounterExhausted = 11,
    /// The key has processed as many bytes as its limit allows.
    KeyExhausted = 12,
    /// The key has refused as many messages as its limit allows; it still seals.
    TooManyRefused = 13,
    /// The record's number is above the suite's last.
    SequenceOverflow = 14,
    /// A key document cannot be read.
    Unreadable = 15,
    /// The operands belong to different parameter sets or rounds.
    WrongSet = 16,
    /// The two halves of a key document do not belong together, or two keys that must differ are the same.
    KeyMismatch = 17,
    /// The parameter set has no published object identifier, so no DER form; it has a PEM form.
    NoIdentifier = 18,
    /// Signing found no solution; this does not happen with honest keys.
    NoSolution = 19,
    /// A result did not verify: the machine miscalculated, and nothing was returned.
    Fault = 20,
    /// The operating system gave no randomness.
    Random = 21,
    /// The operating system refused threads.
    Threads = 22,
    /// The number, or the challenge, is not a discriminant.
    Discriminant = 23,
    /// The bytes are not a form of this discriminant.
    Form = 24,
    /// The proof is deeper, longer or for more bits than verification allows.
    Limit = 25,
    /// The progress function stopped the computation.
    Cancelled = 26,
    /// The checkpoint cannot be used or written.
    Checkpoint = 27,
    /// A defect of this library.
    Internal = 28,
}

/// A sentence about a status, static and in English; about a number that is not one, too.
#[unsafe(no_mangle)]
pub extern "C" fn lw_status_text(status: i32) -> *const c_char {
    text(status).as_ptr()
}

fn text(status: i32) -> &'static CStr {
    match status {
        0 => c"done",
        1 => c"the signature, tag, check or proof is wrong",
        2 => c"a pointer is NULL",
        3 => c"a pointer is not aligned for its type",
        4 => c"a buffer that is written overlaps another",
        5 => c"a buffer has the wrong length",
        6 => c"a parameter is out of its range",
        7 => c"the call does not fit the handle's state",
        8 => c"the message is longer than its mode allows",
        9 => c"there is neither data nor associated data",
        10 => c"the top bit of the nonce is set",
        11 => c"the counter would repeat",
        12 => c"the key has processed as many bytes as its limit allows",
        13 => c"the key has refused as many messages as its limit allows",
        14 => c"the record's number is above the suite's last",
        15 => c"the key document cannot be read",
        16 => c"the operands belong to different parameter sets or rounds",
        17 => c"the keys do not belong together, or are the same",
        18 => c"the parameter set has no object identifier; it has a PEM form",
        19 => c"signing found no solution",
        20 => c"the machine miscalculated, and nothing was returned",
        21 => c"the operating system gave no randomness",
        22 => c"the operating system refused threads",
        23 => c"not a discriminant",
        24 => c"not a form of this discriminant",
        25 => c"the proof is beyond the limits of verification",
        26 => c"the progress function stopped the computation",
        27 => c"the checkpoint cannot be used or written",
        28 => c"a defect of the library",
        _ => c"not a status of this version",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_its_own_text_and_other_numbers_have_one() {
        let last = lw_status::Internal as i32;
        let texts: std::collections::BTreeSet<&CStr> = (0..=last).map(text).collect();
        assert_eq!(texts.len() as i32, last + 1);
        for other in [-1, last + 1, i32::MIN, i32::MAX] {
            assert_eq!(text(other), c"not a status of this version");
        }
    }
}
