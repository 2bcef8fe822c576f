//! Forms kept for a proof and in checkpoints, packed: a and |b| in as many limbs as the group's reduced forms need,
//! lowest first. b is odd, as the discriminant is, so its lowest bit holds the sign instead. c follows from the other
//! two.
#![forbid(unsafe_code)]

use alloc::vec::Vec;

use lanework_integer::limbs;

use super::num::Num;
use super::{Form, FormError};
use crate::backend::FormLimbs;
use crate::backend::generic::compose::{minus, modulo, mul_low, residue};
use crate::backend::generic::nudupl::{inverse64, quotient};
use crate::discriminant::Discriminant;

/// Limbs of a, and of |b|, in a group whose discriminant has `bits` bits.
pub(crate) fn size(bits: usize) -> usize {
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
    append(size(d.bits()), form.a.magnitude(), form.b.magnitude(), form.b.is_negative(), &mut out);
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

/// A packed form in the kernels' layout: c is (b^2 - D) / 4a, divided from the bottom. `None` where that is not so, modulo
/// 2^64 - 1, or where c may be too long. C = N + 1, E = C + 1.
pub(crate) fn limbs_of<const N: usize, const C: usize, const E: usize>(
    d: &Discriminant,
    packed: &[u64],
) -> Option<FormLimbs<N, C>> {
    let a: [u64; N] = packed.get(..N)?.try_into().ok()?;
    let mut b: [u64; N] = packed.get(N..2 * N)?.try_into().ok()?;
    let negative = b[0] & 1 == 1;
    b[0] |= 1;
    let even = a[0].trailing_zeros();
    if even > 60 {
        return None;
    }
    let magnitude = d.number().magnitude();
    // b^2 - D, of which 4 and the powers of 2 in a are divided out.
    let mut rest: [u64; E] = mul_low(&b, &b);
    limbs::add(&mut rest, &magnitude[..magnitude.len().min(E)]);
    let shifted = |x: &[u64], by: u32, i: usize| {
        let above = x.get(i + 1).copied().unwrap_or(0);
        x.get(i).copied().unwrap_or(0) >> by | above << 1 << (63 - by)
    };
    let rest: [u64; C] = core::array::from_fn(|i| shifted(&rest, even + 2, i));
    let odd: [u64; C] = core::array::from_fn(|i| shifted(&a, even, i));
    let one = core::array::from_fn(|i| u64::from(i == 0));
    let c = quotient::<C, C>(&rest, &one, &[0; C], &odd, inverse64(odd[0]));
    let kept = residue(&a, &b, &c) == modulo(&[minus(modulo(magnitude))]);
    kept.then_some(FormLimbs { a, b, negative, c })
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
        PackedForms { size: 2 * size(d.bits()), words: Vec::new() }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Engine;
    use crate::chain::Chain;
    use crate::form::layout::Layout;

    /// Forms of a chain from its start on, where a is short and even, and later ones; and with a flipped bit, which is noticed.
    #[test]
    fn packed_forms_come_back() {
        let mut flipped = 0;
        for bits in [40, 128, 256, 512, 520, 1024, 1032, 2048] {
            let d = Discriminant::from_seed(b"packed", bits).expect("a discriminant");
            let group = d.on(Engine::best());
            let mut chain =
                Chain::new(group, &Form::generator(&d).expect("D is 1 modulo 8")).expect("a form");
            for _ in 0..100 {
                let mut packed = chain.packed();
                let form = chain.form().expect("no fault");
                let back = Layout::unpacked(&packed, group).and_then(|back| back.form(group));
                assert!(back.as_ref() == Some(&form), "{bits} bits");
                let bit = chain.done() as usize * 5 % (64 * packed.len());
                // A short a may begin another form of the group.
                if form.a.bits() > 100 {
                    packed[bit / 64] ^= 1 << (bit % 64);
                    // The lowest bit of b is its sign.
                    let inverse = bit == 32 * packed.len();
                    let other = Layout::unpacked(&packed, group).and_then(|other| other.form(group));
                    assert!(other == inverse.then(|| form.inverse()), "{bits} bits, bit {bit}");
                    flipped += 1;
                }
                chain.square(1).expect("no fault");
            }
        }
        assert!(flipped > 400, "{flipped}");
    }
}
