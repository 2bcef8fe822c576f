//! The chain against known forms, and backends against each other.

use lanework_cpu::Cpu;
use lanework_integer::{Int, Uint};
use lanework_vdf::Engine;
use lanework_vdf::chain::{Chain, ChainError, Coefficients};
use num_bigint::{BigInt, Sign};

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
    for engine in Engine::available(&Cpu::detect()) {
        let magnitude = number(MAGNITUDE);
        let mut chain = Chain::new(engine, &magnitude, &generator(&magnitude)).expect("a form");
        for (n, a, negative, b, c) in KNOWN {
            if n > 100_000 && engine.name() == "portable" {
                continue;
            }
            chain.square(n - chain.done()).expect("no fault");
            let known = Coefficients { a: number(a), b: Int::new(negative, number(b)), c: number(c) };
            assert!(chain.form() == known, "{} after {n} squarings", engine.name());
            assert!(chain.slow() < 20 + n / 1000, "{} by the general code", chain.slow());
        }
    }
}

#[test]
fn a_flipped_bit_is_noticed() {
    let engine = Engine::portable();
    let magnitude = number(MAGNITUDE);
    for bit in [0, 1, 63, 64, 200, 400] {
        let mut chain = Chain::new(engine, &magnitude, &generator(&magnitude)).expect("a form");
        chain.square(100).expect("no fault");
        chain.corrupt(bit);
        assert_eq!(chain.square(100), Err(ChainError::Corrupted { good: 100 }), "bit {bit}");
    }
}

fn big(x: &Int<32>) -> BigInt {
    let bytes: Vec<u8> = x.magnitude().limbs().iter().flat_map(|x| x.to_le_bytes()).collect();
    BigInt::from_bytes_le(if x.is_negative() { Sign::Minus } else { Sign::Plus }, &bytes)
}

/// The floor of x / y, y > 0.
fn floor(x: &BigInt, y: &BigInt) -> BigInt {
    let q = x / y;
    if &q * y > *x { q - 1 } else { q }
}

/// The square of a form by Gauss's composition, reduced: straight from a textbook (Cohen, A Course in Computational
/// Algebraic Number Theory, 5.4.2 and 5.4.7).
fn textbook([a, b, c]: [BigInt; 3], magnitude: &BigInt) -> [BigInt; 3] {
    let (mut x, mut y, mut u, mut v) = (a.clone(), b.clone(), BigInt::ZERO, BigInt::from(1));
    while y != BigInt::ZERO {
        let q = floor(&(&x * y.clone().sign_one()), &y.clone().absolute());
        (x, y) = (y.clone(), &x - &q * &y);
        (u, v) = (v.clone(), &u - &q * &v);
    }
    if x < BigInt::ZERO {
        (x, u) = (-x, -u);
    }
    let part = &a / &x;
    let k = -(&u * &c);
    let k = &k - floor(&k, &part) * &part;
    let mut b: BigInt = &b + &part * k * 2;
    let mut a: BigInt = &part * &part;
    loop {
        // The nearest b to 0 modulo 2 a, then the smaller coefficient first.
        let q = floor(&(&b + &a - 1), &(&a * 2));
        b -= q * &a * 2;
        let c = (&b * &b + magnitude) / (&a * 4);
        if a > c || a == c && b < BigInt::ZERO {
            (a, b) = (c, -b);
        } else {
            return [a, b, c];
        }
    }
}

trait Signs {
    fn sign_one(self) -> BigInt;
    fn absolute(self) -> BigInt;
}

impl Signs for BigInt {
    fn sign_one(self) -> BigInt {
        BigInt::from(if self < BigInt::ZERO { -1 } else { 1 })
    }

    fn absolute(self) -> BigInt {
        if self < BigInt::ZERO { -self } else { self }
    }
}

#[test]
fn every_size_agrees_with_the_textbook() {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        state ^ state >> 32
    };
    for bits in
        [24, 40, 63, 64, 65, 128, 255, 300, 511, 512, 513, 768, 960, 1023, 1024, 1025, 1500, 2047, 2048]
    {
        for low in [3, 7] {
            let mut limbs = [0; 32];
            limbs.fill_with(&mut next);
            limbs[0] = limbs[0] & !7 | low;
            (bits..2048).for_each(|i| limbs[i / 64] &= !(1 << (i % 64)));
            limbs[(bits - 1) / 64] |= 1 << ((bits - 1) % 64);
            let magnitude = Uint::from_limbs(limbs);
            let known = big(&Int::new(false, magnitude));
            // A form of no special shape: a prime number that the discriminant is a square modulo.
            let Some(start) = (3u64..5000).step_by(2).find_map(|a| {
                let over = |b: u64| Int::<32>::new(false, magnitude.plus(&Uint::from_u64(b * b)));
                let b = (1..a)
                    .step_by(2)
                    .find(|&b| over(b).div_exact(&Int::<32>::from_i64(4 * a as i64)).is_some())?;
                let c = over(b).div_exact(&Int::<32>::from_i64(4 * a as i64))?;
                let common =
                    |x: u64, y: u64| (2..=x.min(y)).any(|d| x.is_multiple_of(d) && y.is_multiple_of(d));
                (!common(a, b)).then_some(Coefficients {
                    a: Uint::from_u64(a),
                    b: Int::from_i64(b as i64),
                    c: *c.magnitude(),
                })
            }) else {
                continue;
            };
            let count = 40 + bits as u64 / 8;
            let mut reference =
                [big(&Int::new(false, start.a)), big(&start.b), big(&Int::new(false, start.c))];
            for _ in 0..count {
                reference = textbook(reference, &known);
            }
            for engine in Engine::available(&Cpu::detect()) {
                let mut chain = Chain::new(engine, &magnitude, &start).expect("a form");
                chain.square(count).expect("no fault");
                let form = chain.form();
                let form = [big(&Int::new(false, form.a)), big(&form.b), big(&Int::new(false, form.c))];
                assert!(form == reference, "{} with {bits} bits", engine.name());
            }
        }
    }
}

#[test]
fn forms_of_another_discriminant_are_refused() {
    let engine = Engine::portable();
    let magnitude = number(MAGNITUDE);
    let form = generator(&magnitude);
    let start = |magnitude: &Uint<32>, form: &Coefficients| Chain::new(engine, magnitude, form).map(|_| ());
    assert_eq!(start(&magnitude, &form), Ok(()));
    assert_eq!(start(&magnitude.plus(&Uint::from_u64(8)), &form), Err(ChainError::Form));
    assert_eq!(start(&magnitude.plus(&Uint::ONE), &form), Err(ChainError::Discriminant));
    assert_eq!(start(&Uint::ZERO, &form), Err(ChainError::Discriminant));
    assert_eq!(start(&magnitude, &Coefficients { a: Uint::ZERO, ..form }), Err(ChainError::Form));
    assert_eq!(start(&magnitude, &Coefficients { b: Int::from_i64(3), ..form }), Err(ChainError::Form));
    let most = Uint::from_limbs([u64::MAX; 32]);
    assert_eq!(
        start(&magnitude, &Coefficients { a: most, b: Int::new(true, most), c: most }),
        Err(ChainError::Form)
    );
}
