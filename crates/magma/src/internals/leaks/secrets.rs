//! Secrets for memcheck, and assertions about everything computed from them.
#![forbid(unsafe_code)]

use std::hint::black_box;

use lanework_leakage::memcheck::{make_secret, release, secret_bytes};

use crate::internals::check::Numbers;

/// A copy of these bytes, secret from now on.
pub(super) fn secret(bytes: &[u8]) -> Vec<u8> {
    // The values are hidden from the compiler, which would otherwise compute with them at compile time.
    let bytes = black_box(bytes.to_vec());
    make_secret(&bytes);
    black_box(bytes)
}

/// The next numbers as a secret array and as public bytes.
pub(super) fn both<const N: usize>(numbers: &mut Numbers) -> ([u8; N], [u8; N]) {
    let open = numbers.array::<N>();
    (secret(&open).try_into().expect("as long as it was"), open)
}

/// Asserts that all of these bytes are secret, so memcheck has not lost track of them, and then releases them and
/// asserts their values.
pub(super) fn came_out(what: &str, got: &[u8], want: &[u8]) {
    assert_eq!(secret_bytes(got), got.len(), "{what}: memcheck has lost track of secrets");
    is_right(what, got, want);
}

/// The second half of [`came_out`].
pub(super) fn is_right(what: &str, got: &[u8], want: &[u8]) {
    release(got);
    assert!(got == want, "{what} gives something else under valgrind");
}

/// Releases an answer's content and returns it: errors and verdicts are public already.
pub(super) fn done<T>(what: &str, result: Result<T, crate::Error>) -> T {
    result.unwrap_or_else(|error| panic!("{what}: {error}"))
}
