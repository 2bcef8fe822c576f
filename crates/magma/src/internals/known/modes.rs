//! Known answers of the modes, each with its source.
//!
//! The Russian texts of GOST R 34.13-2015 and R 1323565.1.017-2018 were not available: their answers were taken from the
//! tests of other implementations. Where the source names two of them, these do not share code. Answers from RFCs were
//! taken from the RFCs themselves.
#![forbid(unsafe_code)]

use alloc::vec::Vec;

use crate::backend::Engine;
use crate::error::Error;
use crate::key::{Gost28147, Keyed, Magma};
use crate::modes::hazmat::{EcbDecryptor, EcbEncryptor};
use crate::modes::legacy::{self, Meshing};
use crate::modes::{
    CbcDecryptor, CbcEncryptor, CfbDecryptor, CfbEncryptor, Ctr, CtrAcpkm, Ofb, Omac, OmacAcpkm, Stream, Tag,
};
use crate::sbox::Sbox;

mod legacy_answers;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use tests::engines;

pub use legacy_answers::LEGACY;

/// The cipher of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// Magma.
    Magma,
    /// GOST 28147-89 with an S-box set.
    Gost28147(Sbox),
}

/// The mode of an answer. Numbers are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the modes', and the fields the parameters'")]
pub enum Mode {
    Ecb,
    Ctr,
    Ofb,
    Cbc,
    Cfb,
    /// With a tag of this many bytes.
    Omac(usize),
    CtrAcpkm {
        section: usize,
    },
    OmacAcpkm {
        section: usize,
        frequency: usize,
    },
    /// With CryptoPro key meshing.
    Cnt,
    /// With CryptoPro key meshing.
    CfbMeshing,
    /// With CryptoPro key meshing.
    Imit,
}

/// A message: hexadecimal digits, a number of zeros, hexadecimal digits.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "said above")]
pub struct Plain {
    pub before: &'static str,
    pub zeros: usize,
    pub after: &'static str,
}

/// The beginning and end of a ciphertext or tag, in hexadecimal. Where `tail` is empty, `head` is all of it.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "said above")]
pub struct Sealed {
    pub head: &'static str,
    pub tail: &'static str,
}

/// One known answer.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// The document's name for it.
    pub name: &'static str,
    /// The source of the bytes.
    pub source: &'static str,
    /// The cipher.
    pub cipher: Cipher,
    /// The mode.
    pub mode: Mode,
    /// The key, in hexadecimal.
    pub key: &'static str,
    /// The IV, in hexadecimal; empty where the mode has none.
    pub iv: &'static str,
    /// The message.
    pub plain: Plain,
    /// Its ciphertext or tag.
    pub sealed: Sealed,
}

/// The bytes of hexadecimal digits.
fn bytes(hex: &str) -> Vec<u8> {
    let digit = |c: u8| (c as char).to_digit(16).unwrap_or_default() as u8;
    hex.as_bytes().chunks(2).map(|pair| pair.iter().fold(0, |byte, &c| byte << 4 | digit(c))).collect()
}

/// Cuts `data` into pieces of these lengths, repeatedly, and passes each to `piece`. Modes of whole blocks get whole blocks.
fn pieces<E>(
    data: &mut [u8],
    cuts: &[usize],
    granule: usize,
    mut piece: impl FnMut(&mut [u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut rest = data;
    let mut cuts = cuts.iter().cycle();
    while !rest.is_empty() {
        let cut = cuts.next().copied().unwrap_or(usize::MAX).max(1);
        let cut = cut.checked_next_multiple_of(granule).unwrap_or(usize::MAX).min(rest.len());
        let (now, later) = rest.split_at_mut(cut);
        piece(now)?;
        rest = later;
    }
    Ok(())
}

impl Answer {
    /// The message's bytes.
    #[must_use]
    pub fn plain(&self) -> Vec<u8> {
        let mut plain = bytes(self.plain.before);
        plain.resize(plain.len() + self.plain.zeros, 0);
        plain.extend(bytes(self.plain.after));
        plain
    }

    /// Whether these are the ciphertext or tag.
    #[must_use]
    pub fn is_sealed(&self, sealed: &[u8]) -> bool {
        let (head, tail) = (bytes(self.sealed.head), bytes(self.sealed.tail));
        if tail.is_empty() {
            return sealed == head;
        }
        sealed.len() == self.plain().len() && sealed.starts_with(&head) && sealed.ends_with(&tail)
    }

    /// Whether a backend gives this answer for a message in pieces of the given lengths, both ways: ciphertexts are decrypted
    /// again, and tags are accepted while damaged ones are not.
    ///
    /// # Errors
    /// The mode's refusal; there should be none.
    pub fn holds(&self, engine: Engine, cuts: &[usize]) -> Result<bool, Error> {
        let (key, iv) = (bytes(self.key), bytes(self.iv));
        let iv = iv.as_slice();
        match self.cipher {
            Cipher::Magma => {
                let key = &Magma::from_slice(&key, engine)?;
                match self.mode {
                    Mode::Ctr => self.stream(8, cuts, Ctr::with_key(key, iv)?, Ctr::with_key(key, iv)?),
                    Mode::CtrAcpkm { section } => {
                        let state = CtrAcpkm::with_section(key, iv, section)?;
                        self.stream(1, cuts, state.clone(), state)
                    }
                    Mode::OmacAcpkm { section, frequency } => {
                        let state = OmacAcpkm::with_key(key, section, frequency, 8)?;
                        self.tag(cuts, state, OmacAcpkm::update, OmacAcpkm::finish, OmacAcpkm::verify)
                    }
                    Mode::Cnt | Mode::CfbMeshing | Mode::Imit => {
                        Err(Error::Parameter("a mode of the other cipher"))
                    }
                    _ => self.either(key, iv, cuts),
                }
            }
            Cipher::Gost28147(sbox) => {
                let key = &Gost28147::from_slice(&key, sbox, engine)?;
                let meshing = Meshing::CryptoPro;
                match self.mode {
                    Mode::Cnt => {
                        let state = legacy::Cnt::with_key(key, iv, meshing)?;
                        self.stream(1, cuts, state.clone(), state)
                    }
                    Mode::CfbMeshing => self.stream(
                        1,
                        cuts,
                        legacy::CfbEncryptor::with_key(key, iv, meshing)?,
                        legacy::CfbDecryptor::with_key(key, iv, meshing)?,
                    ),
                    Mode::Imit => {
                        let state = legacy::Imit::with_key(key, meshing);
                        self.tag(
                            cuts,
                            state,
                            legacy::Imit::update,
                            legacy::Imit::finish,
                            legacy::Imit::verify,
                        )
                    }
                    Mode::Ctr | Mode::CtrAcpkm { .. } | Mode::OmacAcpkm { .. } => {
                        Err(Error::Parameter("a mode of the other cipher"))
                    }
                    _ => self.either(key, iv, cuts),
                }
            }
        }
    }

    /// The modes that both ciphers have.
    fn either<K: Keyed + Copy>(&self, key: K, iv: &[u8], cuts: &[usize]) -> Result<bool, Error> {
        match self.mode {
            Mode::Cbc => {
                self.stream(8, cuts, CbcEncryptor::with_key(key, iv)?, CbcDecryptor::with_key(key, iv)?)
            }
            Mode::Cfb => {
                self.stream(1, cuts, CfbEncryptor::with_key(key, iv)?, CfbDecryptor::with_key(key, iv)?)
            }
            Mode::Ofb => self.stream(1, cuts, Ofb::with_key(key, iv)?, Ofb::with_key(key, iv)?),
            Mode::Omac(tag) => {
                let state = Omac::with_key(key, tag)?;
                self.tag(cuts, state, Omac::update, Omac::finish, Omac::verify)
            }
            _ => self.stream(8, cuts, EcbEncryptor::with_key(key), EcbDecryptor::with_key(key)),
        }
    }

    fn stream(
        &self,
        granule: usize,
        cuts: &[usize],
        mut forth: impl Stream,
        mut back: impl Stream,
    ) -> Result<bool, Error> {
        let plain = self.plain();
        let mut data = plain.clone();
        pieces(&mut data, cuts, granule, |piece| forth.apply(piece))?;
        if !self.is_sealed(&data) {
            return Ok(false);
        }
        pieces(&mut data, cuts, granule, |piece| back.apply(piece))?;
        Ok(data == plain)
    }

    fn tag<M: Clone>(
        &self,
        cuts: &[usize],
        mut mac: M,
        update: impl Fn(&mut M, &[u8]) -> Result<(), Error>,
        finish: impl Fn(M) -> Tag,
        verify: impl Fn(M, &[u8]) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        pieces(&mut self.plain(), cuts, 1, |piece| update(&mut mac, piece))?;
        let tag = finish(mac.clone());
        let mut damaged = tag.as_ref().to_vec();
        damaged[0] ^= 1;
        // IMIT of an empty message is the same under every key: it has an answer, but proves nothing.
        let (wrong, right) = if matches!(self.mode, Mode::Imit) && self.plain().is_empty() {
            (Err(Error::EmptyMessage), Err(Error::EmptyMessage))
        } else {
            (Err(Error::Refused), Ok(()))
        };
        let judged = verify(mac.clone(), &damaged) == wrong && verify(mac, tag.as_ref()) == right;
        Ok(self.is_sealed(tag.as_ref()) && judged)
    }
}

const BOTH: &str = "the tests of pygost (test_gost3413.py) and of RustCrypto's gost-modes (tests/lib.rs)";
const CTR_SOURCES: &str = "the tests of gost-engine (test_ciphers.c), pygost and RustCrypto's gost-modes";
const ENGINE: &str = "gost-engine's test_ciphers.c, made there with TC26's own implementation";
const MAC_SOURCES: &str = "the tests of gost-engine (test_digest.c) and pygost (test_gost3413.py)";
const MAC_WHOLE: &str =
    "the intermediate value of A.2.6 as the tests of RustCrypto's cmac and others quote it";
const ACPKM: &str = "crypto_vectors (sheroz) and the tests of other implementations";
const MATERIAL_SOURCES: &str = "the tests of one implementation in TypeScript; implied by A.3.1 and A.3.2";
const OMAC_ACPKM: &str = "gost-engine's test_digest.c";

/// Magma in every mode.
#[rustfmt::skip]
pub static MAGMA: &[Answer] = &[
    Answer {
        name: "RFC 8891 A.4",
        source: "RFC 8891",
        cipher: Cipher::Magma,
        mode: Mode::Ecb,
        key: "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        iv: "",
        plain: Plain { before: "fedcba9876543210", zeros: 0, after: "" },
        sealed: Sealed { head: "4ee901e5c2d8ca3d", tail: "" },
    },
    Answer {
        name: "GOST R 34.13-2015 A.2.1 ECB",
        source: BOTH,
        cipher: Cipher::Magma,
        mode: Mode::Ecb,
        key: "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        iv: "",
        plain: Plain { before: "92def06b3c130a59db54c704f8189d204a98fb2e67a8024c8912409b17b57e41", zeros: 0, after: "" },
        sealed: Sealed { head: "2b073f0494f372a0de70e715d3556e4811d8d9e9eacfbc1e7c68260996c67efb", tail: "" },
    },
    Answer {
        name: "GOST R 34.13-2015 A.2.2 CTR",
        source: CTR_SOURCES,
        cipher: Cipher::Magma,
        mode: Mode::Ctr,
        key: "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        iv: "12345678",
        plain: Plain { before: "92def06b3c130a59db54c704f8189d204a98fb2e67a8024c8912409b17b57e41", zeros: 0, after: "" },
        sealed: Sealed { head: "4e98110c97b7b93c3e250d93d6e85d69136d868807b2dbef568eb680ab52a12d", tail: "" },
    },
    Answer {
        name: "GOST R 34.13-2015 A.2.3 OFB, z = 2",
        source: BOTH,
        cipher: Cipher::Magma,
        mode: Mode::Ofb,
        key: "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        iv: "1234567890abcdef234567890abcdef1",
        plain: Plain { before: "92def06b3c130a59db54c704f8189d204a98fb2e67a8024c8912409b17b57e41", zeros: 0, after: "" },
        sealed: Sealed { head: "db37e0e266903c830d46644c1f9a089ca0f83062430e327ec824efb8bd4fdb05", tail: "" },
    },
    Answer {
        name: "GOST R 34.13-2015 A.2.4 CBC, z = 3",
        source: BOTH,
        cipher: Cipher::Magma,
        mode: Mode::Cbc,
        key: "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        iv: "1234567890abcdef234567890abcdef134567890abcdef12",
        plain: Plain { before: "92def06b3c130a59db54c704f8189d204a98fb2e67a8024c8912409b17b57e41", zeros: 0, after: "" },
        sealed: Sealed { head: "96d1b05eea683919aff76129abb937b95058b4a1c4bc001920b78b1a7cd7e667", tail: "" },
    },
    Answer {
        name: "CBC with the first block of that IV, z = 1",
        source: ENGINE,
        cipher: Cipher::Magma,
        mode: Mode::Cbc,
        key: "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        iv: "1234567890abcdef",
        plain: Plain { before: "92def06b3c130a59db54c704f8189d204a98fb2e67a8024c8912409b17b57e41", zeros: 0, after: "" },
        sealed: Sealed { head: "96d1b05eea683919f396b78c1d47bb616183e2cca976a4babe9ce87d6fa73cf2", tail: "" },
    },
    Answer {
        name: "GOST R 34.13-2015 A.2.5 CFB, z = 2",
        source: BOTH,
        cipher: Cipher::Magma,
        mode: Mode::Cfb,
        key: "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        iv: "1234567890abcdef234567890abcdef1",
        plain: Plain { before: "92def06b3c130a59db54c704f8189d204a98fb2e67a8024c8912409b17b57e41", zeros: 0, after: "" },
        sealed: Sealed { head: "db37e0e266903c830d46644c1f9a089c24bdd2035315d38bbcc0321421075505", tail: "" },
    },
    Answer {
        name: "GOST R 34.13-2015 A.2.6 MAC, s = 32",
        source: MAC_SOURCES,
        cipher: Cipher::Magma,
        mode: Mode::Omac(4),
        key: "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        iv: "",
        plain: Plain { before: "92def06b3c130a59db54c704f8189d204a98fb2e67a8024c8912409b17b57e41", zeros: 0, after: "" },
        sealed: Sealed { head: "154e7210", tail: "" },
    },
    Answer {
        name: "GOST R 34.13-2015 A.2.6 MAC, its last block whole",
        source: MAC_WHOLE,
        cipher: Cipher::Magma,
        mode: Mode::Omac(8),
        key: "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        iv: "",
        plain: Plain { before: "92def06b3c130a59db54c704f8189d204a98fb2e67a8024c8912409b17b57e41", zeros: 0, after: "" },
        sealed: Sealed { head: "154e72102030c5bb", tail: "" },
    },
    Answer {
        name: "R 1323565.1.017-2018 A.1 CTR-ACPKM",
        source: ACPKM,
        cipher: Cipher::Magma,
        mode: Mode::CtrAcpkm { section: 16 },
        key: "8899aabbccddeeff0011223344556677fedcba98765432100123456789abcdef",
        iv: "12345678",
        plain: Plain { before: "\
        1122334455667700ffeeddccbbaa998800112233445566778899aabbcceeff0a112233445566778899aabbcc\
        eeff0a002233445566778899", zeros: 0, after: "" },
        sealed: Sealed { head: "\
        2ab81deeeb1e4cab68e104c4bd6b94eac72c67af6c2e5b6b0eafb61770f1b32ea1ae71149eed1382abd46718\
        0672ec6f84a2f15b3fca72c1", tail: "" },
    },
    Answer {
        name: "R 1323565.1.017-2018 A.3 key material: CTR-ACPKM of zeros",
        source: MATERIAL_SOURCES,
        cipher: Cipher::Magma,
        mode: Mode::CtrAcpkm { section: 80 },
        key: "8899aabbccddeeff0011223344556677fedcba98765432100123456789abcdef",
        iv: "ffffffff",
        plain: Plain { before: "", zeros: 120, after: "" },
        sealed: Sealed { head: "\
        0df2f5273da328932ac49d81d36b2558a50dbf9bbcac74a614b2ccb2f1cbcd8a70638e3de8b3571e8d3826d5\
        5e63a167e2406640547b9f1f5f2b43612aaeafda180bac8604dfa6fe53c2ce270e9c9f5268d0fdbfe1a3bdd9\
        be5b96d0a12023486ef1710f924ae0313052cb5fca0b791e1babe8576d0fe3a8", tail: "" },
    },
    Answer {
        name: "R 1323565.1.017-2018 A.3.1 OMAC-ACPKM",
        source: OMAC_ACPKM,
        cipher: Cipher::Magma,
        mode: Mode::OmacAcpkm { section: 16, frequency: 80 },
        key: "8899aabbccddeeff0011223344556677fedcba98765432100123456789abcdef",
        iv: "",
        plain: Plain { before: "1122334455667700ffeeddcc", zeros: 0, after: "" },
        sealed: Sealed { head: "a0540e3730acbcf3", tail: "" },
    },
    Answer {
        name: "R 1323565.1.017-2018 A.3.2 OMAC-ACPKM",
        source: OMAC_ACPKM,
        cipher: Cipher::Magma,
        mode: Mode::OmacAcpkm { section: 16, frequency: 80 },
        key: "8899aabbccddeeff0011223344556677fedcba98765432100123456789abcdef",
        iv: "",
        plain: Plain { before: "\
        1122334455667700ffeeddccbbaa998800112233445566778899aabbcceeff0a1122334455667788", zeros: 0, after: "" },
        sealed: Sealed { head: "34008dad5496bb8e", tail: "" },
    },
    Answer {
        name: "RFC 9189 A.1.2.1 record 0, MAC",
        source: "RFC 9189 A.1.2.1",
        cipher: Cipher::Magma,
        mode: Mode::Omac(8),
        key: "19a76ed30f4d6d1f5b7263ec491ad83817c0b57d8a0356127140fb4f7425494d",
        iv: "",
        plain: Plain { before: "00000000000000001703030007", zeros: 7, after: "" },
        sealed: Sealed { head: "f33eb6896fece286", tail: "" },
    },
    Answer {
        name: "RFC 9189 A.1.2.1 record 0, encryption",
        source: "RFC 9189 A.1.2.1",
        cipher: Cipher::Magma,
        mode: Mode::CtrAcpkm { section: 1024 },
        key: "58afbe9a4c3198aaabaa2692c419f1797c9b92deb3cc7446b363577113f0fb56",
        iv: "00000000",
        plain: Plain { before: "", zeros: 7, after: "f33eb6896fece286" },
        sealed: Sealed { head: "9b420da86faf367f051443ce9c1072", tail: "" },
    },
    Answer {
        name: "RFC 9189 A.1.2.1 record 4095, MAC",
        source: "RFC 9189 A.1.2.1",
        cipher: Cipher::Magma,
        mode: Mode::Omac(8),
        key: "19a76ed30f4d6d1f5b7263ec491ad83817c0b57d8a0356127140fb4f7425494d",
        iv: "",
        plain: Plain { before: "0000000000000fff1703030400", zeros: 1024, after: "" },
        sealed: Sealed { head: "58d3bb608fbc98b8", tail: "" },
    },
    Answer {
        name: "RFC 9189 A.1.2.1 record 4095, encryption",
        source: "RFC 9189 A.1.2.1",
        cipher: Cipher::Magma,
        mode: Mode::CtrAcpkm { section: 1024 },
        key: "58afbe9a4c3198aaabaa2692c419f1797c9b92deb3cc7446b363577113f0fb56",
        iv: "00000fff",
        plain: Plain { before: "", zeros: 1024, after: "58d3bb608fbc98b8" },
        sealed: Sealed { head: "\
        b711438b16201f3c49339521c9c8ca7566d4c20fd33e581f8007dc76043e2b35c8e84bb25508276613596f", tail: "\
        e77770bf4517e1f8dd1b2c0564ad68fc4a889a48b8b1ff0ea4e1bb704d56a4752f51a582cc541a808f8c8b62\
        976888c81059de412763a3e0999acdda77" },
    },
    Answer {
        name: "RFC 9189 A.1.2.1 record 4096, MAC",
        source: "RFC 9189 A.1.2.1",
        cipher: Cipher::Magma,
        mode: Mode::Omac(8),
        key: "fb30ee53cfcf89d748fc0c72ef160b8b53cbbbfd031282b026214ab2e07758ff",
        iv: "",
        plain: Plain { before: "00000000000010001703030800", zeros: 2048, after: "" },
        sealed: Sealed { head: "5055a26abe196381", tail: "" },
    },
    Answer {
        name: "RFC 9189 A.1.2.1 record 4096, encryption",
        source: "RFC 9189 A.1.2.1",
        cipher: Cipher::Magma,
        mode: Mode::CtrAcpkm { section: 1024 },
        key: "edf2fd02477160238309002d1d57df9fd2ed18d64566c76f4bf03d3abf7bbb1e",
        iv: "00001000",
        plain: Plain { before: "", zeros: 2048, after: "5055a26abe196381" },
        sealed: Sealed { head: "\
        9995260703471deda2e655b6b393835e338b1ed00edd2247a2fb88fbb7a8948062088af32caeb6aa2c4f2a", tail: "\
        7f0b2461e75fe10634b84dc57035725aca4f0cbca9b06cb9f76fbd2f80462b8d775ebd416f634139ac89c2ed\
        3df19fe24ef8c05aa890931b0186fd7ddf" },
    },
];
