//! Splits an input. Where it is too short, zeros follow.
#![forbid(unsafe_code)]

/// An input that is consumed from its beginning.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        let taken = self.some(N);
        out[..taken.len()].copy_from_slice(taken);
        out
    }

    /// At most this many bytes.
    pub(crate) fn some(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Exactly this many bytes.
    pub(crate) fn exactly(&mut self, n: usize) -> Vec<u8> {
        let mut out = self.some(n).to_vec();
        out.resize(n, 0);
        out
    }
}
