//! Known answers of chiavdf (Chia Network, Apache-2.0): published ones, and some computed with its programs.
#![forbid(unsafe_code)]

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec::Vec;

use lanework_integer::{Int, Uint};

use crate::form::LIMBS;

/// The 110 proofs that chiavdf publishes as `src/vdf.txt`.
pub const PROOFS: &str = include_str!("known/chiavdf-vdf.txt");

/// One published proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The challenge that the discriminant comes from.
    pub challenge: Vec<u8>,
    /// Bits of the discriminant.
    pub bits: usize,
    /// The form that the chain starts from.
    pub x: Vec<u8>,
    /// The proof.
    pub proof: Vec<u8>,
    /// Squarings.
    pub iterations: u64,
    /// Segments before the last.
    pub depth: u64,
}

/// Bytes from hexadecimal digits; `None` for any other text.
#[must_use]
pub fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = hex.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect();
    let digits = digits?;
    digits
        .len()
        .is_multiple_of(2)
        .then(|| digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// The published proofs.
///
/// # Panics
/// Never: the file is part of this crate, and a test reads it.
pub fn records() -> impl Iterator<Item = Record> {
    let lines: Vec<&str> = PROOFS.lines().collect();
    let records: Vec<Record> = lines
        .chunks_exact(6)
        .map(|lines| Record {
            challenge: bytes(lines[0]).expect("hexadecimal"),
            bits: lines[1].parse().expect("a number"),
            x: bytes(lines[2]).expect("hexadecimal"),
            proof: bytes(lines[3]).expect("hexadecimal"),
            iterations: lines[4].parse().expect("a number"),
            depth: lines[5].parse().expect("a number"),
        })
        .collect();
    records.into_iter()
}

/// A number from hexadecimal digits with a sign in front.
///
/// # Panics
/// If the text is anything else: it is for constants.
#[must_use]
pub fn number(hex: &str) -> Int<LIMBS> {
    let (negative, digits) = hex.strip_prefix('-').map_or((false, hex), |digits| (true, digits));
    let digits = if digits.len().is_multiple_of(2) { digits.to_owned() } else { format!("0{digits}") };
    let bytes = bytes(&digits).expect("hexadecimal");
    Int::new(negative, Uint::from_be_bytes(&bytes).expect("a constant fits"))
}

/// The discriminant of [`SQUARINGS`]: that of chiavdf's `vdf_bench`.
pub const SQUARINGS_D: &str = "-c8fd905ec4869c162aa4fde5f2630fd51a44784a380aaff309d9df647b2060fc5e63b9bceb19113e8f3f2291397239e\
     d415c9cd4e5e600e574204eec5a39884cfc9fe40f1f6c68b533b5c5721512c8924cb8792668a2e5eab823c27c5dc8509\
     b37455a314514fa25a82584bc764500518cf9e43931151c41d824a2ba1f3e0897";

/// Numbers of squarings of the generator, with a and b of the reduced form after them.
pub const SQUARINGS: [(u64, &str, &str); 3] = [
    (
        1_000,
        "4a3c8a30caf8598ebc7f959084f5ca57c27ffee77e130d59f447e77f21fe340f5edeab176e05f7ef14636d1b3bc34de1\
     4e90c2ad84ba899fbf60a52b596b5bb9",
        "-2616634a456afa70ff018e5a422d921c4632c21416ac2f4665efc93bf827966bac2315f5091fe91380416dcede5ef0c\
     0d384a9ec0272c97cef340e25b546a621",
    ),
    (
        100_000,
        "565ec0f1144116de4ef08542829a7630720308529d6194263a69b8c47a9101c6a38b9ab42c3fc3f55d05909d88e37122\
     e27584248973c78ede88064d6f486354",
        "4e66a4049a0173e9dee653668b8a4a1538f4ba79daffbd7051a3e59d610fb334a5e3688c6284417b9399ce32e3335ad7\
     28d35c4b88a224e4098e21d39d683723",
    ),
    (
        1_000_000,
        "75cae01275396eecb97f56761eaa431fda912c8f06467f0e04c34cdc250bfde37403a4d8287f128d9d0e0fec84e80b30\
     892ec24ae385727fc95f8d1192a9314",
        "-8c5609e0d6a8d23874e25334dfeae89121739659d6312b4b5a6b7d96a7d9e3478bd21bc34f2288b67f1ea785fecc40c\
     8bbfb4301ccec012b7d9a7e3f2e698d",
    ),
];

/// Challenges and the magnitudes of their discriminants of 512 bits.
pub const DISCRIMINANTS: [(&str, &str); 5] = [
    (
        "6c3b9aa767f785b537c0",
        "9a8eaf9c52d9a5f1db648cdf7bcd04b35cb1ac4f421c978fa61fe1344b97d4199dbff700d24e7cfc0b785e4b8b8023dc\
     49f0e90227f74f54234032ac3381879f",
    ),
    (
        "b10da48cea4c09676b8e",
        "b193cdb02f1c2615a257b98933ee0d24157ac5f8c46774d5d635022e6e6bd3f7372898066c2a40fa211d1df8c45cb95c\
     02e36ef878bc67325473d9c0bb34b047",
    ),
    (
        "c51b8a31c98b9fe13065",
        "bb5bd19ae50efe98b5ac56c69453a95e92dc16bb4b2824e73b39b9db0a077fa33fc2e775958af14f675a071bf53f1c22\
     f90ccbd456e2291276951830dba9dcaf",
    ),
    (
        "5de9bc1bb4cb7a9f9cf9",
        "a1e93b8f2e9b0fd3b1325fbe40601f55e2afbdc6161409c0aff8737b7213d7d71cab21ffc83a0b6d5bdeee2fdcbbb34f\
     bc8fc0b439915075afa9ffac8bb1b337",
    ),
    (
        "22cfaefc92e4edb9b0ae",
        "f2a10f70148fb30e4a16c4eda44cc0f9917cb9c2d460926d59a408318472e2cfd597193aa58e1fdccc6ae6a4d85bc9b2\
     7f77567ebe94fcedbf530a60ff709fd7",
    ),
];

/// The discriminant of [`MALLEABLE`].
pub const MALLEABLE_D: &str = "-d036828612e0ccf69971b6b14438171cf08074bc5ea450b3d5ae0526be867a8015671af4648aa59d64ec06091036385\
     cd351dc5bdf01c694bb915316b4f2fee9509ff1dbaebf6407994962d77aaedd403d08436096cce62465eddcd652f6970\
     ba48e3759f8d226cac0a2976f24de3da40c744286cec5ad666d62a51ac32ac1a7";
/// A form of Chia's main chain (height 309155) whose b0 can be raised by 4 or 8 without the lenient decoder noticing.
pub const MALLEABLE: &str = "0300d8262c430e78e7c06cf60c9b2049968f604f3b506a85bfe4fff319f8176760e06cab8ab45524458bf558101f9b4c\
     e8c23cc1e053263272b808b76c6f26493a113b62ded5707b28d9eedc0503ac2efcd32be670726725be0fa7ea01f0ef3f\
     60250201";

/// A proof of a million squarings of the generator by chiavdf: challenge of 1,024 bits, result and proof.
pub const MILLION: (&str, &str) = (
    "0000010203030404",
    "020009c9cc279e1370a0e66b278e777279cea3587bc8d3f622d26ea623b234ec5b90b74429604653b87dc83d573e6114\
     4aa159c9452fe00c354e17ce151f701990071abcc65eb510aeaf7dc13584ae2823805cdc328ec5cc7906ae115b06101b\
     5d1f01000300aabf66985b1598585248ff96f473daaa60dc9a666d9cac897ece6e00afe514b792b9a605837c2dfc6782\
     291c763b25ecfcd7f0c03cbc9ea8cecb1d1cf222b62fe3bb285f48ebfd06bd67715462275d7ee74ed284336eb97711c0\
     aa5d6fe09a330200",
);

/// Challenge of 512 bits and start of a chain of 90,909 squarings that once overflowed an approximation in chiavdf.
pub const OVERFLOWED: (&str, &str) = (
    "a6c42558174fb1eedc64",
    "0300aca4849458af5c557710c80f21519f196907764d2d55c9b70581a90d49ca7b3201ad6a9da836429e6592c200e965\
     434f01000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
     00000000",
);

#[cfg(test)]
mod checks {
    #[test]
    fn the_records_can_be_read() {
        let depths: Vec<u64> = super::records().map(|record| record.depth).collect();
        assert_eq!(depths.len(), 110);
        assert_eq!(depths.iter().filter(|&&depth| depth == 0).count(), 74);
        assert!(super::bytes("0g").is_none() && super::bytes("000").is_none());
    }
}
