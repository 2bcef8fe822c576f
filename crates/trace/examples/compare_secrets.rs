//! Checks whether password comparisons branch on the passwords: one that stops at the first difference, and one that does not.
//!
//! `cargo run -p lanework-trace --example compare_secrets`
#![forbid(unsafe_code)]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::hint::black_box;

    use lanework_trace::{Operation, Options, Snapshot};

    const PASSWORD: [u8; 16] = *b"correct password";

    /// A comparison, and what is compared with the password in each case.
    struct Compare(fn(&[u8; 16]) -> bool);

    impl Operation for Compare {
        type Input = ([u8; 16], bool);

        fn prepare(&self, case: usize) -> ([u8; 16], bool) {
            // Each case first differs at a different byte.
            let mut guess = PASSWORD;
            guess[5 * case] ^= 1;
            (guess, false)
        }

        fn operate(&self, (guess, same): &mut ([u8; 16], bool)) {
            *same = (self.0)(guess);
        }
    }

    #[inline(never)]
    fn early(guess: &[u8; 16]) -> bool {
        guess.iter().zip(&PASSWORD).all(|(a, b)| black_box(*a) == *b)
    }

    #[inline(never)]
    fn steady(guess: &[u8; 16]) -> bool {
        guess.iter().zip(&PASSWORD).fold(0, |different, (a, b)| black_box(different) | (a ^ b)) == 0
    }

    for (name, compare) in [("early", early as fn(&[u8; 16]) -> bool), ("steady", steady)] {
        let mut snapshot = Snapshot::take(&Compare(compare), Options::default())?;
        let report = snapshot.compare(&[0, 1, 2])?;
        println!("{name}: {} differences", report.differences.len());
        for difference in &report.differences {
            println!("  {difference}");
        }
    }
    Ok(())
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() {
    println!("tracing needs Linux on x86-64");
}
