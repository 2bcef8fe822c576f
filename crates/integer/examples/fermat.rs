//! Fermat's test: whether an odd number of up to 512 bits, in hexadecimal digits, may be a prime.
//!
//! `cargo run -p lanework-integer --example fermat -- [DIGITS]`
#![forbid(unsafe_code)]

use lanework_integer::{Engine, Int, Uint};

/// Whether the number passes; nothing if it is even.
fn may_be_prime(n: &Uint<8>) -> Option<bool> {
    let engine = Engine::best();
    let ops = engine.w512();
    let modulus = ops.modulus(&ops.number(&Int::new(false, *n))?)?;
    let base = ops.number(&Int::<8>::from_i64(3))?;

    // Montgomery's products: x y / R modulo n. The n-th power of 3 by them is 3^n / R^(n - 1), which a prime n leaves at 3.
    let (mut wide, mut power) = (ops.wide_zero(), base);
    for i in (0..n.bits() - 1).rev() {
        ops.square(&power, &mut wide);
        ops.reduce(&wide, &modulus, &mut power);
        if n.bit(i) {
            ops.mul(&power, &base, &mut wide);
            ops.reduce(&wide, &modulus, &mut power);
        }
    }
    Some(ops.int::<8>(&power)? == Int::from_i64(3))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let default = format!("7{}ed", "f".repeat(61)); // 2^255 - 19
    let digits = std::env::args().nth(1).unwrap_or(default);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(format!("not a number in hexadecimal digits: '{digits}'").into());
    }
    let even = format!("{}{digits}", if digits.len() % 2 == 1 { "0" } else { "" });
    let bytes: Vec<u8> = (0..even.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&even[i..i + 2], 16))
        .collect::<Result<_, _>>()?;
    let n = Uint::from_be_bytes(&bytes).ok_or("the number is longer than 512 bits")?;
    if n.bits() < 3 {
        return Err("the number is below 5".into());
    }
    match may_be_prime(&n) {
        Some(true) => println!("may be a prime"),
        Some(false) => println!("not a prime"),
        None => return Err("the number is even".into()),
    }
    Ok(())
}
