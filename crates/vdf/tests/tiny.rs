//! Discriminants of a few bits, prime or not: a timelord may send them, and every backend squares in their groups too.

use lanework_cpu::Cpu;
use lanework_integer::Int;
use lanework_vdf::chain::Chain;
use lanework_vdf::{Discriminant, Engine, Form, Lenient, spec};

#[test]
fn every_group_of_a_small_discriminant() {
    let engine: Vec<_> = Engine::available(&Cpu::detect()).collect();
    let mut forms = 0;
    // An interpreter, some thousand times slower, takes six of the groups.
    let (step, few, squarings) = if cfg!(miri) { (1100, 3, 4) } else { (4, 32, 20) };
    for n in (3..3000).step_by(step).chain([(1 << 31) - 1, (1 << 62) - 57, i64::MAX]) {
        let d = Discriminant::new(&Int::from_i64(-n)).expect("1 modulo 4");
        for (a, b) in (1i64..few).flat_map(|a| (-a..=a).map(move |b| (a, b))) {
            let Ok(x) = Form::new(&d, &Int::from_i64(a), &Int::from_i64(b)) else { continue };
            // Forms whose coefficients have a common divisor have no encoding, so they cannot arrive.
            let Ok(x) = Form::from_bytes(Lenient, &d, &x.to_bytes(&d)) else { continue };
            forms += 1;
            let square = |x: Form, _| spec::square(&x, &d).expect("a form of d");
            let expected = (0..squarings).fold(x.clone(), square);
            assert_eq!((0..squarings).fold(x.clone(), |x, _| x.square(&d)), expected, "discriminant -{n}");
            for engine in &engine {
                let mut chain = Chain::new(d.on(*engine), &x).expect("a form of d");
                chain.square(squarings).expect("no fault");
                assert_eq!(chain.form().as_ref(), Ok(&expected), "discriminant -{n}, form {a}, {b}");
            }
        }
    }
    assert!(forms > if cfg!(miri) { 8 } else { 3000 }, "{forms} forms");
}
