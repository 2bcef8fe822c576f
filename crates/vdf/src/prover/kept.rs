//! Forms kept for a proof, packed: a and |b| in as many limbs as the group's reduced forms need, lowest first. b is odd, as the
//! discriminant is, so that its lowest bit has nothing to say and holds the sign. c follows from the other two.
#![forbid(unsafe_code)]

use crate::discriminant::Discriminant;
use crate::form::num::Num;
use crate::form::{Form, FormError};

/// Limbs of a, and of |b|, in a group whose discriminant has so many bits.
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

/// Packs a form whose a and b are as short as a reduced form's.
pub(crate) fn pack(limbs: usize, form: &Form, out: &mut Vec<u64>) {
    for number in [&form.a, &form.b] {
        let end = out.len() + limbs;
        out.extend_from_slice(number.magnitude());
        out.resize(end, 0);
    }
    let sign = out.len() - limbs;
    out[sign] = out[sign] & !1 | u64::from(form.b.is_negative());
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

/// The reduced form of what was packed.
///
/// # Errors
/// The numbers belong to no form of this discriminant.
pub(crate) fn unpack(d: &Discriminant, packed: &[u64]) -> Result<Form, FormError> {
    let (a, b) = unpack_numbers(packed);
    let mut form = Form::unreduced(d, &a, &b)?;
    form.reduce();
    Ok(form)
}

/// The kept forms of a segment: before squarings 0, m, 2 m and so on.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// Limbs of one packed form.
    size: usize,
    pub(crate) words: Vec<u64>,
}

impl Kept {
    pub(crate) fn new(d: &Discriminant) -> Kept {
        Kept { size: 2 * limbs(d.bits()), words: Vec::new() }
    }

    pub(crate) fn get(&self, i: usize) -> Option<&[u64]> {
        self.words.get(i * self.size..(i + 1) * self.size)
    }

    /// A copy of the first n.
    pub(crate) fn first(&self, n: usize) -> Kept {
        Kept { size: self.size, words: self.words[..(n * self.size).min(self.words.len())].to_vec() }
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.words.len() / self.size
    }
}
