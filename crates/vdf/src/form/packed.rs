//! Forms kept for a proof and in checkpoints, packed: a and |b| in as many limbs as the group's reduced forms need,
//! lowest first. b is odd, as the discriminant is, so its lowest bit holds the sign instead. c follows from the other
//! two.
#![forbid(unsafe_code)]

use alloc::vec::Vec;

use super::num::Num;
use super::{Form, FormError};
use crate::discriminant::Discriminant;

/// Limbs of a, and of |b|, in a group whose discriminant has `bits` bits.
pub(crate) fn limbs(bits: usize) -> usize {
    // a <= sqrt(|D| / 3).
    if bits <= 512 {
        4
    } else if bits <= 1024 {
        8
    } else {
        16
    }
}

/// Packs a and b, which are as short as a reduced form's, in `limbs` limbs each.
pub(crate) fn append(limbs: usize, a: &[u64], b: &[u64], negative: bool, out: &mut Vec<u64>) {
    for number in [a, b] {
        let end = out.len() + limbs;
        out.extend_from_slice(number);
        out.resize(end, 0);
    }
    let sign = out.len() - limbs;
    out[sign] = out[sign] & !1 | u64::from(negative);
}

/// Packs a reduced form.
pub(crate) fn pack(d: &Discriminant, form: &Form) -> Vec<u64> {
    let mut out = Vec::new();
    append(limbs(d.bits()), form.a.magnitude(), form.b.magnitude(), form.b.is_negative(), &mut out);
    out
}

/// A packed form's a and b.
pub(crate) fn unpack_numbers(packed: &[u64]) -> (Num, Num) {
    let (a, b) = packed.split_at(packed.len() / 2);
    let negative = b[0] & 1 == 1;
    let mut store = [0; 16];
    let b = {
        let out = &mut store[..b.len()];
        out.copy_from_slice(b);
        out[0] |= 1;
        Num::from_limbs(negative, out)
    };
    (Num::from_limbs(false, a), b)
}

/// The reduced form of a packed one.
///
/// # Errors
/// The numbers are not a form of this discriminant.
pub(crate) fn unpack(d: &Discriminant, packed: &[u64]) -> Result<Form, FormError> {
    let (a, b) = unpack_numbers(packed);
    let mut form = Form::unreduced(d, &a, &b)?;
    form.reduce();
    Ok(form)
}

/// Packed forms, one behind the other: those of a segment before squarings 0, m, 2 m and so on.
#[derive(Clone, Debug)]
pub(crate) struct PackedForms {
    /// Limbs of one packed form.
    size: usize,
    pub(crate) words: Vec<u64>,
}

impl PackedForms {
    pub(crate) fn new(d: &Discriminant) -> PackedForms {
        PackedForms { size: 2 * limbs(d.bits()), words: Vec::new() }
    }

    pub(crate) fn get(&self, i: usize) -> Option<&[u64]> {
        self.words.get(i * self.size..(i + 1) * self.size)
    }

    /// A copy of the first n.
    pub(crate) fn first(&self, n: usize) -> PackedForms {
        PackedForms { size: self.size, words: self.words[..(n * self.size).min(self.words.len())].to_vec() }
    }

    /// The number of forms.
    pub(crate) fn len(&self) -> usize {
        self.words.len() / self.size
    }
}
