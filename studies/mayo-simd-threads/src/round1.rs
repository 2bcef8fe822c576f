//! NIST round 1's parameters, with the nibble-packed m-vectors of liboqs 0.12 (the submission of 2023 itself sliced them by
//! bits), and its known answers. No key can have them.

use lanework_mayo::internals::{SetKernels, SetSpec, Sizes, running, set_kernels};

macro_rules! sets {
    ($($at:literal $set:ident),*) => {$(
        /// The set of this name.
        pub enum $set {}

        // SAFETY: the sizes are those of the specification of round 1, and the tests compare the kernels with it.
        unsafe impl SetSpec for $set {
            const SIZES: &'static Sizes = &SETS[$at].1;
        }
    )*};
}

sets!(0 Mayo1, 1 Mayo2, 2 Mayo3, 3 Mayo5);

/// The sets, each with its name in subjects.
#[rustfmt::skip]
pub static SETS: [(&str, Sizes); 4] = [
    ("mayo1", Sizes { n: 66, m: 64, o: 8, k: 9, tail: [8, 0, 2, 8, 0],
        schedule: &running::<9, 45>(), linear_term: false, salt_bytes: 24, digest_bytes: 32 }),
    ("mayo2", Sizes { n: 78, m: 64, o: 18, k: 4, tail: [8, 0, 2, 8, 0],
        schedule: &running::<4, 10>(), linear_term: false, salt_bytes: 24, digest_bytes: 32 }),
    ("mayo3", Sizes { n: 99, m: 96, o: 10, k: 11, tail: [2, 2, 0, 2, 0],
        schedule: &running::<11, 66>(), linear_term: false, salt_bytes: 32, digest_bytes: 48 }),
    ("mayo5", Sizes { n: 133, m: 128, o: 12, k: 12, tail: [4, 8, 0, 4, 2],
        schedule: &running::<12, 78>(), linear_term: false, salt_bytes: 40, digest_bytes: 64 }),
];

/// SHA-256 of the response files, of all 100 records and of record 0 alone, published with liboqs 0.12 (tests/KATs, MIT). In the order of
/// [`SETS`].
pub const DIGESTS: [[&str; 2]; 4] = [
    [
        "5cf156cf74fc65b43863399ecc4b26ad7b4b3b2cd8485215dc0c011e2825b145",
        "ba2473dedd92cf3b8a1fc14fc22f2ffdde972c8b64cfcd8cddb4f803e48df017",
    ],
    [
        "c0daf74b54fae78685c87b32d3b36a418bac884c3564ea96d56c6601b138d449",
        "72cb237642b2c0c4e7f8c824d9c8601ac7189784649d28dbb2cccfb94732c9a3",
    ],
    [
        "f66b95dda153b7df00610aa018f0644146e7e564b33562c51bb088c40fb0dcb2",
        "dbc49f4fdfa0de69d416051215cb53c042c4a329d325452d079f3734b7467a6b",
    ],
    [
        "7b230c2626f57159a243d8dfc69c62cb94dd0f179dd2b4f2ef3606deb6404477",
        "f2c1c69045c7d15e714a04119965e8a7007ef54f9293158587560227c97b237d",
    ],
];

macro_rules! kernels {
    ($backend:ident) => {
        [
            set_kernels!($backend, Mayo1),
            set_kernels!($backend, Mayo2),
            set_kernels!($backend, Mayo3),
            set_kernels!($backend, Mayo5),
        ]
    };
}

/// The kernels of a tier, `portable`, `avx2` or `avx512`, in the order of [`SETS`].
///
/// # Safety
/// They may be reached only on a CPU with the features that the tier's row of backends needs.
pub(crate) unsafe fn kernels(tier: &str) -> [SetKernels; 4] {
    // SAFETY: the caller's promise.
    unsafe {
        match tier {
            #[cfg(target_arch = "x86_64")]
            "avx512" => kernels!(avx512),
            #[cfg(target_arch = "x86_64")]
            "avx2" => kernels!(avx2),
            _ => kernels!(portable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_round_1s() {
        // As liboqs 0.12 has them: expanded matrices, public key, signature, secret key.
        let sizes = [
            (54_752 + 14_848, 1168, 321, 24),
            (58_560 + 34_560, 5488, 180, 24),
            (192_240 + 42_720, 2656, 577, 32),
            (472_384 + 92_928, 5008, 838, 40),
        ];
        for ((name, p), expect) in SETS.iter().zip(sizes) {
            let got = (p.p12_bytes(), p.public_key_bytes(), p.signature_bytes(), p.secret_key_bytes());
            assert_eq!(got, expect, "{name}");
        }
    }
}
