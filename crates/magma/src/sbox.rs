//! The substitution boxes: Magma's own and those of GOST 28147-89.
#![forbid(unsafe_code)]

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

/// A set of eight 4-bit substitutions. The standard of 2015 fixes [`Sbox::Z`]; GOST 28147-89 left the choice open, and
/// these are the sets that RFC 4357 and RFC 7836 publish for encryption.
///
/// The two sets of the hash GOST R 34.11-94 (RFC 4357, 11.2) are not here: `id-GostR3411-94-TestParamSet`
/// (1.2.643.2.2.30.0) and `id-GostR3411-94-CryptoProParamSet` (1.2.643.2.2.30.1). Some programs encrypt with them;
/// their data cannot be read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Sbox {
    /// `id-tc26-gost-28147-param-Z` (RFC 7836, appendix C): Magma's.
    #[default]
    Z = 0,
    /// `id-Gost28147-89-CryptoPro-A-ParamSet` (RFC 4357, 11.1), as are the next three.
    CryptoProA = 1,
    /// `id-Gost28147-89-CryptoPro-B-ParamSet`.
    CryptoProB = 2,
    /// `id-Gost28147-89-CryptoPro-C-ParamSet`.
    CryptoProC = 3,
    /// `id-Gost28147-89-CryptoPro-D-ParamSet`.
    CryptoProD = 4,
    /// `id-Gost28147-89-TestParamSet` (RFC 4357, 11.1). Not the set of the same name that belongs to the hash of 1994.
    Test = 5,
}

/// Row i substitutes bits 4i to 4i+3 of the word.
pub type Rows = [[u8; 16]; 8];

/// An unknown name or object identifier of a substitution set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSbox(pub String);

impl fmt::Display for UnknownSbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no S-box set '{}'; there are:", self.0)?;
        Sbox::ALL.iter().try_for_each(|s| write!(f, " {}", s.name()))
    }
}

impl core::error::Error for UnknownSbox {}

impl Sbox {
    /// Every set, in the order of its discriminant.
    pub const ALL: [Sbox; 6] =
        [Sbox::Z, Sbox::CryptoProA, Sbox::CryptoProB, Sbox::CryptoProC, Sbox::CryptoProD, Sbox::Test];

    /// The name for the command line and [`FromStr`].
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Sbox::Z => "z",
            Sbox::CryptoProA => "cryptopro-a",
            Sbox::CryptoProB => "cryptopro-b",
            Sbox::CryptoProC => "cryptopro-c",
            Sbox::CryptoProD => "cryptopro-d",
            Sbox::Test => "test",
        }
    }

    /// Its object identifier, in dotted form (RFC 4357, 10.8; RFC 7836, appendix C).
    #[must_use]
    pub const fn oid(self) -> &'static str {
        match self {
            Sbox::Z => "1.2.643.7.1.2.5.1.1",
            Sbox::CryptoProA => "1.2.643.2.2.31.1",
            Sbox::CryptoProB => "1.2.643.2.2.31.2",
            Sbox::CryptoProC => "1.2.643.2.2.31.3",
            Sbox::CryptoProD => "1.2.643.2.2.31.4",
            Sbox::Test => "1.2.643.2.2.31.0",
        }
    }

    /// The substitutions themselves.
    #[must_use]
    pub const fn rows(self) -> &'static Rows {
        &ROWS[self as usize]
    }
}

impl FromStr for Sbox {
    type Err = UnknownSbox;

    fn from_str(text: &str) -> Result<Sbox, UnknownSbox> {
        Sbox::ALL
            .into_iter()
            .find(|s| s.name() == text || s.oid() == text)
            .ok_or_else(|| UnknownSbox(text.to_owned()))
    }
}

/// By discriminant.
#[rustfmt::skip]
pub(crate) static ROWS: [Rows; 6] = [
    // Z
    [
        [12, 4, 6, 2, 10, 5, 11, 9, 14, 8, 13, 7, 0, 3, 15, 1],
        [6, 8, 2, 3, 9, 10, 5, 12, 1, 14, 4, 7, 11, 13, 0, 15],
        [11, 3, 5, 8, 2, 15, 10, 13, 14, 1, 7, 4, 12, 9, 6, 0],
        [12, 8, 2, 1, 13, 4, 15, 6, 7, 0, 10, 5, 3, 14, 9, 11],
        [7, 15, 5, 10, 8, 1, 6, 13, 0, 9, 3, 14, 11, 4, 2, 12],
        [5, 13, 15, 6, 9, 2, 12, 10, 11, 7, 8, 1, 4, 3, 14, 0],
        [8, 14, 2, 5, 6, 9, 1, 12, 15, 4, 11, 0, 13, 10, 3, 7],
        [1, 7, 14, 13, 0, 5, 8, 3, 4, 15, 10, 6, 9, 12, 11, 2],
    ],
    // CryptoPro A
    [
        [9, 6, 3, 2, 8, 11, 1, 7, 10, 4, 14, 15, 12, 0, 13, 5],
        [3, 7, 14, 9, 8, 10, 15, 0, 5, 2, 6, 12, 11, 4, 13, 1],
        [14, 4, 6, 2, 11, 3, 13, 8, 12, 15, 5, 10, 0, 7, 1, 9],
        [14, 7, 10, 12, 13, 1, 3, 9, 0, 2, 11, 4, 15, 8, 5, 6],
        [11, 5, 1, 9, 8, 13, 15, 0, 14, 4, 2, 3, 12, 7, 10, 6],
        [3, 10, 13, 12, 1, 2, 0, 11, 7, 5, 9, 4, 8, 15, 14, 6],
        [1, 13, 2, 9, 7, 10, 6, 0, 8, 12, 4, 5, 15, 3, 11, 14],
        [11, 10, 15, 5, 0, 12, 14, 8, 6, 2, 3, 9, 1, 7, 13, 4],
    ],
    // CryptoPro B
    [
        [8, 4, 11, 1, 3, 5, 0, 9, 2, 14, 10, 12, 13, 6, 7, 15],
        [0, 1, 2, 10, 4, 13, 5, 12, 9, 7, 3, 15, 11, 8, 6, 14],
        [14, 12, 0, 10, 9, 2, 13, 11, 7, 5, 8, 15, 3, 6, 1, 4],
        [7, 5, 0, 13, 11, 6, 1, 2, 3, 10, 12, 15, 4, 14, 9, 8],
        [2, 7, 12, 15, 9, 5, 10, 11, 1, 4, 0, 13, 6, 8, 14, 3],
        [8, 3, 2, 6, 4, 13, 14, 11, 12, 1, 7, 15, 10, 0, 9, 5],
        [5, 2, 10, 11, 9, 1, 12, 3, 7, 4, 13, 0, 6, 15, 8, 14],
        [0, 4, 11, 14, 8, 3, 7, 1, 10, 2, 9, 6, 15, 13, 5, 12],
    ],
    // CryptoPro C
    [
        [1, 11, 12, 2, 9, 13, 0, 15, 4, 5, 8, 14, 10, 7, 6, 3],
        [0, 1, 7, 13, 11, 4, 5, 2, 8, 14, 15, 12, 9, 10, 6, 3],
        [8, 2, 5, 0, 4, 9, 15, 10, 3, 7, 12, 13, 6, 14, 1, 11],
        [3, 6, 0, 1, 5, 13, 10, 8, 11, 2, 9, 7, 14, 15, 12, 4],
        [8, 13, 11, 0, 4, 5, 1, 2, 9, 3, 12, 14, 6, 15, 10, 7],
        [12, 9, 11, 1, 8, 14, 2, 4, 7, 3, 6, 5, 10, 0, 15, 13],
        [10, 9, 6, 8, 13, 14, 2, 0, 15, 3, 5, 11, 4, 1, 12, 7],
        [7, 4, 0, 5, 10, 2, 15, 14, 12, 6, 1, 11, 13, 9, 3, 8],
    ],
    // CryptoPro D
    [
        [15, 12, 2, 10, 6, 4, 5, 0, 7, 9, 14, 13, 1, 11, 8, 3],
        [11, 6, 3, 4, 12, 15, 14, 2, 7, 13, 8, 0, 5, 10, 9, 1],
        [1, 12, 11, 0, 15, 14, 6, 5, 10, 13, 4, 8, 9, 3, 7, 2],
        [1, 5, 14, 12, 10, 7, 0, 13, 6, 2, 11, 4, 9, 3, 15, 8],
        [0, 12, 8, 9, 13, 2, 10, 11, 7, 3, 6, 5, 4, 14, 15, 1],
        [8, 0, 15, 3, 2, 5, 14, 11, 1, 10, 4, 7, 12, 9, 13, 6],
        [3, 0, 6, 15, 1, 14, 9, 2, 13, 8, 12, 4, 11, 10, 5, 7],
        [1, 10, 6, 8, 15, 11, 0, 4, 12, 3, 5, 9, 7, 13, 2, 14],
    ],
    // Test
    [
        [4, 2, 15, 5, 9, 1, 0, 8, 14, 3, 11, 12, 13, 7, 10, 6],
        [12, 9, 15, 14, 8, 1, 3, 10, 2, 7, 4, 13, 6, 0, 11, 5],
        [13, 8, 14, 12, 7, 3, 9, 10, 1, 5, 2, 4, 6, 15, 0, 11],
        [14, 9, 11, 2, 5, 15, 7, 1, 0, 13, 12, 6, 10, 4, 3, 8],
        [3, 14, 5, 9, 6, 8, 0, 13, 10, 11, 7, 12, 2, 1, 15, 4],
        [8, 15, 6, 11, 1, 9, 12, 5, 13, 3, 7, 10, 0, 14, 2, 4],
        [9, 11, 12, 0, 3, 6, 7, 5, 4, 8, 14, 15, 1, 10, 2, 13],
        [12, 6, 5, 2, 11, 0, 9, 13, 3, 14, 7, 10, 15, 4, 1, 8],
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_a_permutation() {
        for set in Sbox::ALL {
            for row in set.rows() {
                assert_eq!(row.iter().fold(0u32, |seen, &x| seen | 1 << x), 0xffff, "{set:?}");
            }
        }
    }

    /// The parameter set's encoding: a nibble for each row, in the order of the entries.
    #[test]
    fn the_rows_are_those_of_rfc_4357_and_rfc_7836() {
        let encodings = [
            (
                Sbox::Z,
                "c6bc75814838fde762525f2e2381a65da92d89605af41295b5af6c189cd6dac3\
                e1e70bf48e10974fd47a38ba7745e1060bc3b4d93d9e43acf0692e3b1f0bc072",
            ),
            (
                Sbox::CryptoProA,
                "93eeb31b67475ada3e6a1d2f292c9c9588bd8170ba31d2ac1fd3f06e70890b08\
                a5c0e78642f245c2e65b2943fca43459cb0fc8f104787f37dd15aebd519666e4",
            ),
            (
                Sbox::CryptoProB,
                "80e7285041c57324b200c2ab1aadf6be349b94985d265d1305d1aec79cb2bb31\
                29731c7ae75a4142a38c07d9cfffdf06db346a6f686e80fd7619e985fe4835ec",
            ),
            (
                Sbox::CryptoProC,
                "10838ca7b126d994c750bb602d0101859b4548dad49d5ee205fa122ff2a8240e\
                483b97fc5e7233368fc9c651ecd7e5bba96e6a4d7aeff019661cafc333b47d78",
            ),
            (
                Sbox::CryptoProD,
                "fb110831c6c5c00a23be8f66a40c93f86cfad21f4fe725eb5e60ae90025dbb24\
                77a671dc9dd23a83e84b64c5d084574915994cb7ba33e9ad897ffd523128167e",
            ),
            (
                Sbox::Test,
                "4cde389c2989efb6ffeb56c55ec29b029875613b113f896003970c798aa1d55d\
                e210ad43375db38eb42c77e7cd46cafad66a201f70f41ea4ab03f22165b844d8",
            ),
        ];
        for (set, encoding) in encodings {
            for (at, digit) in encoding.chars().enumerate() {
                assert_eq!(Some(u32::from(set.rows()[at % 8][at / 8])), digit.to_digit(16), "{set:?}, {at}");
            }
        }
    }

    #[test]
    fn names_and_oids_lead_back() {
        for set in Sbox::ALL {
            assert_eq!(set.name().parse(), Ok(set));
            assert_eq!(set.oid().parse(), Ok(set));
        }
        assert_eq!("q".parse::<Sbox>(), Err(UnknownSbox("q".to_owned())));
    }
}
