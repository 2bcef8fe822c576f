//! The group's operation against the textbook's and against the group's laws.
#![forbid(unsafe_code)]

use lanework_integer::Int;
use lanework_vdf::{Discriminant, Form, spec};

/// Every reduced form of a small discriminant, as for class numbers.
fn all(d: &Discriminant, number: i64) -> Vec<Form> {
    let mut out = Vec::new();
    for a in 1..=number.abs() {
        if 3 * a * a > number.abs() {
            break;
        }
        for b in -a..=a {
            if let Ok(form) = Form::new(d, &Int::from_i64(a), &Int::from_i64(b)) {
                // Only primitive forms make up the group.
                let c = (b * b - number) / (4 * a);
                let gcd = |mut x: i64, mut y: i64| {
                    while y != 0 {
                        (x, y) = (y, x % y);
                    }
                    x.abs()
                };
                if gcd(gcd(a, b), c) == 1 {
                    out.push(form);
                }
            }
        }
    }
    out
}

/// All products of all small groups: common divisors, ambiguous forms and composite discriminants in abundance.
#[test]
fn small_groups_whole() {
    let mut products = 0;
    // An interpreter, some thousand times slower, takes three groups.
    let (step, larger) =
        if cfg!(miri) { (400, &[][..]) } else { (4, &[4027, 10_403, 27_027 * 5 * 4 + 3][..]) };
    for n in (3..1200).step_by(step).chain(larger.iter().copied()) {
        let d = Discriminant::new(&Int::from_i64(-n)).unwrap();
        let forms = all(&d, -n);
        let identity = Form::identity(&d);
        assert!(forms.contains(&identity));
        for f in &forms {
            assert_eq!(f.square(&d), spec::square(f, &d).unwrap(), "square of {f:?}, D = -{n}");
            assert_eq!(f.compose(&f.inverse(), &d), identity);
            for g in &forms {
                let expected = spec::compose(f, g, &d).unwrap();
                assert!(forms.contains(&expected));
                assert_eq!(f.compose(g, &d), expected, "{f:?} {g:?}, D = -{n}");
                products += 1;
            }
        }
    }
    assert!(products > if cfg!(miri) { 50 } else { 10_000 }, "{products}");
    // The class numbers of -23, -47, -71, -4027.
    for (n, count) in [(23, 3), (47, 5), (71, 7), (4027, 9)] {
        let d = Discriminant::new(&Int::from_i64(-n)).unwrap();
        assert_eq!(all(&d, -n).len(), count);
    }
}

/// Chains of every size of discriminant.
#[test]
fn random_forms() {
    let all = [64, 192, 128, 256, 264, 384, 512, 768, 1024, 1032, 1536, 2048];
    let (sizes, rounds) = if cfg!(miri) { (&all[..2], 6) } else { (&all[..], 150) };
    for &bits in sizes {
        let d = Discriminant::from_seed(&[bits as u8, 7, (bits / 256) as u8], bits).unwrap();
        assert_eq!(d.bits(), bits);
        let mut x = Form::generator(&d).unwrap();
        let mut y = x.square(&d);
        for i in 0..rounds {
            let z = x.compose(&y, &d);
            assert_eq!(z, spec::compose(&x, &y, &d).unwrap(), "{bits} bits, product {i}");
            let w = z.square(&d);
            assert_eq!(w, spec::square(&z, &d).unwrap(), "{bits} bits, square {i}");
            assert!(w.is_reduced() && w.has_discriminant(&d));
            assert_eq!(w.compose(&z.inverse(), &d), z);
            (x, y) = (y, if i % 5 == 4 { w.inverse() } else { w });
        }
    }
}
