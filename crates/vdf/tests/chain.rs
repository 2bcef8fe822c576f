//! The chain against known forms, and backends against each other.

use lanework_cpu::{Cpu, available};
use lanework_integer::{Int, Uint};
use lanework_vdf::backend::BACKENDS;
use lanework_vdf::chain::{Chain, ChainError, Coefficients};

/// The discriminant of chiavdf's `vdf_bench` (Apache-2.0), and the forms that it reaches from the generator.
const MAGNITUDE: &str = "c8fd905ec4869c162aa4fde5f2630fd51a44784a380aaff309d9df647b2060fc5e63b9bceb19113e8f3f2291397239ed415c9cd4e5e600e574204eec5a39884cfc9fe40f1f6c68b533b5c5721512c8924cb8792668a2e5eab823c27c5dc8509b37455a314514fa25a82584bc764500518cf9e43931151c41d824a2ba1f3e0897";
const KNOWN: [(u64, &str, bool, &str, &str); 3] = [
    (
        1_000,
        "4a3c8a30caf8598ebc7f959084f5ca57c27ffee77e130d59f447e77f21fe340f5edeab176e05f7ef14636d1b3bc34de14e90c2ad84ba899fbf60a52b596b5bb9",
        true,
        "2616634a456afa70ff018e5a422d921c4632c21416ac2f4665efc93bf827966bac2315f5091fe91380416dcede5ef0c0d384a9ec0272c97cef340e25b546a621",
        "b2293ea83df1b2e0c167c977b6926262f7ad4547070aaa585057df16632ccc7a705b16c3918104ef6dacf87eae2a1f8de7465571a1c5a4f88f12a27541733ee6",
    ),
    (
        100_000,
        "565ec0f1144116de4ef08542829a7630720308529d6194263a69b8c47a9101c6a38b9ab42c3fc3f55d05909d88e37122e27584248973c78ede88064d6f486354",
        false,
        "4e66a4049a0173e9dee653668b8a4a1538f4ba79daffbd7051a3e59d610fb334a5e3688c6284417b9399ce32e3335ad728d35c4b88a224e4098e21d39d683723",
        "a6b99f6969e8884ea7ceea3ea1448bba854aa59a045892c6c1eb107a3a26aa2390b758119ab3a32c2ec167cf9be13718de8522cb1a2a37952ce432c64ffe569e",
    ),
    (
        1_000_000,
        "75cae01275396eecb97f56761eaa431fda912c8f06467f0e04c34cdc250bfde37403a4d8287f128d9d0e0fec84e80b30892ec24ae385727fc95f8d1192a9314",
        true,
        "8c5609e0d6a8d23874e25334dfeae89121739659d6312b4b5a6b7d96a7d9e3478bd21bc34f2288b67f1ea785fecc40c8bbfb4301ccec012b7d9a7e3f2e698d",
        "6d345879ff552bb1d1b7ca7b2fbcb07c5dddc25728ed1b35263b6b1354a79bcf546ddfed9d13e7a35c335a57ac9e367f332bfb6707c0983edff5d7b75f99f1834",
    ),
];

fn number(hex: &str) -> Uint<32> {
    let mut x = Uint::ZERO;
    for digit in hex.chars() {
        x = (x << 4).plus(&Uint::from_u64(digit.to_digit(16).expect("hex").into()));
    }
    x
}

fn generator(magnitude: &Uint<32>) -> Coefficients {
    // (2, 1, (1 + |D|) / 8) if that is whole, else the principal form.
    let over = magnitude.plus(&Uint::ONE);
    if over.limbs()[0] & 7 == 0 {
        Coefficients { a: Uint::from_u64(2), b: Int::ONE, c: over >> 3 }
    } else {
        Coefficients { a: Uint::ONE, b: Int::ONE, c: over >> 2 }
    }
}

#[test]
fn known_forms_are_reached() {
    for backend in available(BACKENDS, &Cpu::detect()).flatten() {
        let kernels = backend.get(&Cpu::detect()).expect("available");
        let magnitude = number(MAGNITUDE);
        let mut chain = Chain::new(kernels, &magnitude, &generator(&magnitude)).expect("a form");
        for (n, a, negative, b, c) in KNOWN {
            if n > 100_000 && backend.name() == "portable" {
                continue;
            }
            chain.square(n - chain.done()).expect("no fault");
            let known = Coefficients { a: number(a), b: Int::new(negative, number(b)), c: number(c) };
            assert!(chain.form() == known, "{} after {n} squarings", backend.name());
            assert!(chain.slow() < 20 + n / 1000, "{} by the general code", chain.slow());
        }
    }
}

#[test]
fn a_flipped_bit_is_noticed() {
    let kernels = BACKENDS[0].get(&Cpu::detect()).expect("portable");
    let magnitude = number(MAGNITUDE);
    for bit in [0, 1, 63, 64, 200, 400] {
        let mut chain = Chain::new(kernels, &magnitude, &generator(&magnitude)).expect("a form");
        chain.square(100).expect("no fault");
        chain.corrupt(bit);
        assert_eq!(chain.square(100), Err(ChainError::Corrupted { good: 100 }), "bit {bit}");
    }
}
