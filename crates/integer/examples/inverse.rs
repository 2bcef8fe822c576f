//! The inverse of A modulo an odd B, numbers of up to 512 bits in hexadecimal digits.
//!
//! `cargo run -p lanework-integer --example inverse -- A B`
#![forbid(unsafe_code)]

use lanework_integer::{Engine, Int, Uint};

/// `None` if there is no inverse, or b is even.
fn inverse(a: &Uint<8>, b: &Uint<8>) -> Option<Uint<9>> {
    let found = Engine::best().w512.invert(a.limbs(), b.limbs())?;
    // v a = 2^shift modulo b: halve v modulo b `shift` times.
    let v = Int::new(found.negative, Uint::from_limbs(found.magnitude));
    let (_, rest) = v.div_floor(&Int::new(false, *b));
    let (mut x, b) = (rest.magnitude().resize::<9>(), b.resize::<9>());
    for _ in 0..found.shift {
        x = if x.bit(0) { x.plus(&b) } else { x } >> 1;
    }
    Some(x)
}

fn number(digits: &str) -> Result<Uint<8>, Box<dyn std::error::Error>> {
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(format!("not a number in hexadecimal digits: '{digits}'").into());
    }
    let even = format!("{}{digits}", if digits.len() % 2 == 1 { "0" } else { "" });
    let bytes: Vec<u8> = (0..even.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&even[i..i + 2], 16))
        .collect::<Result<_, _>>()?;
    Ok(Uint::from_be_bytes(&bytes).ok_or("a number is longer than 512 bits")?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [a, b] = &words[..] else { return Err("usage: inverse A B".into()) };
    let found = inverse(&number(a)?, &number(b)?).ok_or("B is even, or has a divisor in common with A")?;
    println!("{found:x}");
    Ok(())
}
