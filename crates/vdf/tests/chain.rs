//! The chain against known forms, and backends against each other.

use lanework_cpu::Cpu;
use lanework_integer::{Int, Uint};
use lanework_vdf::chain::{Chain, ChainError};
use lanework_vdf::form::LIMBS;
use lanework_vdf::{Discriminant, Engine, Form, spec};
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

fn number(negative: bool, hex: &str) -> Int<LIMBS> {
    let mut x = Uint::ZERO;
    for digit in hex.chars() {
        x = (x << 4).plus(&Uint::from_u64(digit.to_digit(16).expect("hex").into()));
    }
    Int::new(negative, x)
}

fn start() -> (Discriminant, Form) {
    let d = Discriminant::new(&number(true, MAGNITUDE)).expect("1 modulo 8");
    let x = Form::generator(&d).expect("1 modulo 8");
    (d, x)
}

#[test]
fn known_forms_are_reached() {
    for engine in Engine::available(&Cpu::detect()) {
        let (d, x) = start();
        let mut chain = Chain::new(d.on(engine), &x).expect("a form");
        for (n, a, negative, b, c) in KNOWN {
            if n > 100_000 && engine.name() == "portable" {
                continue;
            }
            chain.square(n - chain.done()).expect("no fault");
            let form = chain.form().expect("no fault");
            let known = (number(false, a), number(negative, b), number(false, c));
            assert!((form.a(), form.b(), form.c()) == known, "{} after {n} squarings", engine.name());
            assert!(chain.slow() < 20 + n / 1000, "{} by the general code", chain.slow());
        }
    }
}

#[test]
fn a_flipped_bit_is_noticed() {
    let (d, x) = start();
    for bit in [0, 1, 63, 64, 200, 400] {
        let mut chain = Chain::new(d.on(Engine::portable()), &x).expect("a form");
        chain.square(100).expect("no fault");
        chain.corrupt(bit);
        assert_eq!(chain.square(100), Err(ChainError::Corrupted { good: 100 }), "bit {bit}");
    }
}

fn big(x: &Int<LIMBS>) -> BigInt {
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
            let mut limbs = [0; LIMBS];
            limbs[..32].fill_with(&mut next);
            limbs[0] = limbs[0] & !7 | low;
            (bits..2048).for_each(|i| limbs[i / 64] &= !(1 << (i % 64)));
            limbs[(bits - 1) / 64] |= 1 << ((bits - 1) % 64);
            let d = Int::new(true, Uint::from_limbs(limbs));
            let known = big(&-d);
            let d = Discriminant::new(&d).expect("1 modulo 4");
            // A form of no special shape: a prime number that the discriminant is a square modulo.
            let Some(start) = (3i64..5000).step_by(2).find_map(|a| {
                let form = |b| Form::new(&d, &Int::from_i64(a), &Int::from_i64(b)).ok();
                let (b, form) = (1..a).step_by(2).find_map(|b| Some((b, form(b)?)))?;
                let common = (2..=b).any(|divisor| a % divisor == 0 && b % divisor == 0);
                (!common).then_some(form)
            }) else {
                continue;
            };
            let count = 40 + bits as u64 / 8;
            let mut reference = [big(&start.a()), big(&start.b()), big(&start.c())];
            for _ in 0..count {
                reference = textbook(reference, &known);
            }
            for engine in Engine::available(&Cpu::detect()) {
                let mut chain = Chain::new(d.on(engine), &start).expect("a form");
                chain.square(count).expect("no fault");
                let form = chain.form().expect("no fault");
                let form = [big(&form.a()), big(&form.b()), big(&form.c())];
                assert!(form == reference, "{} with {bits} bits", engine.name());
            }
        }
    }
}

#[test]
fn a_chain_counts_on_from_where_it_is_resumed() {
    let (d, x) = start();
    let mut whole = Chain::new(&d, &x).expect("a form");
    whole.square(700).expect("no fault");
    let mut resumed =
        Chain::resume(&d, &whole.form().expect("no fault"), whole.done(), whole.slow()).expect("a form");
    whole.square(800).expect("no fault");
    resumed.square(800).expect("no fault");
    assert_eq!((resumed.done(), resumed.slow()), (1500, whole.slow()));
    assert!(resumed.form() == whole.form());
    resumed.corrupt(70);
    assert_eq!(resumed.form().err(), Some(ChainError::Corrupted { good: 1500 }));
    assert_eq!(resumed.square(1), Err(ChainError::Corrupted { good: 1500 }));
}

/// Squarings that the count can hold are done, and more are refused before the first.
#[test]
fn a_chain_refuses_squarings_that_it_cannot_count() {
    let (d, x) = start();
    for (left, slow) in [(5, 0), (1500, u64::MAX)] {
        let mut chain = Chain::resume(&d, &x, u64::MAX - left, slow).expect("a form");
        for n in [left + 1, 2000, u64::MAX] {
            assert_eq!(chain.square(n), Err(ChainError::TooMany), "{n} squarings");
            assert_eq!(chain.run(n), Err(ChainError::TooMany), "{n} squarings");
            assert_eq!(chain.done(), u64::MAX - left);
            assert_eq!(chain.form(), Ok(x.clone()), "the chain is as it was");
        }
        assert_eq!(chain.square(left), Ok(()));
        let mut other = Chain::new(&d, &x).expect("a form");
        other.square(left).expect("no fault");
        assert_eq!((chain.done(), chain.form()), (u64::MAX, other.form()));
        assert_eq!(chain.slow(), slow.saturating_add(other.slow()));
        assert_eq!((chain.square(0), chain.square(1)), (Ok(()), Err(ChainError::TooMany)));
    }
    let mut chain = Chain::new(&d, &x).expect("a form");
    chain.square(1).expect("no fault");
    assert_eq!(chain.square(u64::MAX), Err(ChainError::TooMany));
}

#[test]
fn a_form_of_another_discriminant_is_refused() {
    let d = |seed: &[u8], bits| Discriminant::from_seed(seed, bits).expect("a discriminant");
    let right = d(b"right", 512);
    for wrong in [d(b"wrong", 512), d(b"wrong", 2048)] {
        let x = Form::generator(&wrong).expect("a generator");
        assert_eq!(Chain::new(&right, &x).map(drop), Err(ChainError::Form));
        assert_eq!(Chain::new(&wrong, &Form::identity(&right)).map(drop), Err(ChainError::Form));
    }
}

/// Near the generator a is short and c long; between the kernels' sizes such a c fits.
#[test]
fn the_first_forms_are_right_at_every_size() {
    for bits in (64..=1024).step_by(64).chain([1088, 1152, 1280]) {
        for seed in 0..if bits > 1024 { 1 } else { 5 } {
            let d = Discriminant::from_seed(&[seed, 3], bits).expect("a discriminant");
            let mut form = Form::generator(&d).expect("a generator");
            let mut chains: Vec<_> = Engine::available(&Cpu::detect())
                .map(|engine| (engine.name(), Chain::new(d.on(engine), &form).expect("a form of d")))
                .collect();
            for i in 0..14 {
                form = spec::square(&form, &d).expect("a form of d");
                for (name, chain) in &mut chains {
                    let outcome = chain.square(1);
                    assert!(outcome.is_ok() && chain.form() == Ok(form.clone()), "{name}, {bits} bits, {i}");
                }
            }
        }
    }
}
