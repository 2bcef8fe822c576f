//! The entry to verification: every form of it (single, batch, and batches of other crates) admits a signature and makes its
//! verdict here. A new reason for refusal is a variant in `error.rs`, a line in [`Admitted::new`] below the set and round, and an item in
//! `verify/tests.rs`, which tests every path of the CPU. Batches of a device plant their items in `mayo-cuda/src/tests/verdicts.rs`. The
//! command prints the variant's words.
#![forbid(unsafe_code)]

use alloc::vec::Vec;

use crate::digest::Message;
use crate::error::Error;
use crate::keys::{Signature, expect};
use crate::params::{Params, Sizes};
use crate::scheme::{self, PublicSource, Scheme, VerifyItem};

#[cfg(test)]
mod tests;

/// A message and its signature, both for the verifying key's set and round, so of the lengths that the computation
/// needs.
#[derive(Clone, Copy)]
pub struct Admitted<'a> {
    message: Message<'a>,
    signature: &'a [u8],
}

impl<'a> Admitted<'a> {
    /// Refuses inputs that do not fit a key of `key`, without computation.
    pub(crate) fn new(
        key: &Params,
        message: Message<'a>,
        signature: &'a Signature,
    ) -> Result<Admitted<'a>, Error> {
        expect(key, signature.params())?;
        message.expect(key)?;
        Ok(Admitted { message, signature: signature.as_bytes() })
    }

    /// The same for a set without a name, of which only bytes exist.
    pub(crate) fn of_bytes(sizes: &Sizes, message: &'a [u8], signature: &'a [u8]) -> Option<Admitted<'a>> {
        let whole = signature.len() == sizes.signature_bytes();
        whole.then_some(Admitted { message: Message::Whole(message), signature })
    }

    /// The message.
    #[must_use]
    pub const fn message(self) -> Message<'a> {
        self.message
    }

    /// The signature's encoding.
    #[must_use]
    pub const fn signature(self) -> &'a [u8] {
        self.signature
    }
}

/// An item of a batch: admitted, or refused by itself.
pub type Admission<'a> = Result<Admitted<'a>, Error>;

/// The admission of each signature with the message of the same index; `key` gives the set of the key at an index.
///
/// # Panics
/// If there are not as many signatures as messages.
pub fn admit_each<'a>(
    key: impl Fn(usize) -> &'static Params,
    messages: &[Message<'a>],
    signatures: &'a [Signature],
) -> Vec<Admission<'a>> {
    assert_eq!(messages.len(), signatures.len(), "a signature for each message");
    let both = messages.iter().zip(signatures).enumerate();
    both.map(|(i, (&message, signature))| Admitted::new(key(i), message, signature)).collect()
}

/// An item's verdict, given whether the equations hold for it if it was admitted.
///
/// # Errors
/// The reason for which it was refused; [`Error::Refused`] if the equations do not hold.
pub fn verdict(admission: &Admission<'_>, valid: bool) -> Result<(), Error> {
    match admission {
        Err(refusal) => Err(refusal.clone()),
        Ok(_) if valid => Ok(()),
        Ok(_) => Err(Error::Refused),
    }
}

/// Verifies one that may have been refused already.
pub(crate) fn one(on: Scheme, source: PublicSource<'_>, admission: &Admission<'_>) -> Result<(), Error> {
    let valid = admission.as_ref().is_ok_and(|&item| scheme::verify(on, source, item));
    verdict(admission, valid)
}

/// Verifies neighbours, all of one backend and one set, those that were admitted side by side; `source` gives the key's
/// matrices at an index.
pub(crate) fn group<'a>(
    on: Scheme,
    source: impl Fn(usize) -> PublicSource<'a>,
    admissions: &[Admission<'a>],
) -> Vec<Result<(), Error>> {
    let item = |(i, admission): (usize, &Admission<'a>)| {
        let admitted = *admission.as_ref().ok()?;
        Some(VerifyItem { source: source(i), admitted, valid: false })
    };
    let mut items: Vec<VerifyItem<'_>> = admissions.iter().enumerate().filter_map(item).collect();
    scheme::verify_group(on, &mut items);
    let mut valid = items.iter().map(|item| item.valid);
    admissions.iter().map(|a| verdict(a, a.is_ok() && valid.next() == Some(true))).collect()
}
