//! Looking into a finished library: is it really what its flavour's name says?
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::Command;

use lanework_peers::flavour::Tuning;

use super::tools::{Problem, Tools, capture};

/// What was found in a library's symbols and instructions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Symbols of MAYO's AVX2 implementation.
    avx2_symbols: usize,
    /// Instructions that name a 256- or 512-bit register.
    wide: usize,
    /// Instructions of AES-NI or VAES.
    aes: usize,
}

/// Checks the library against its tuning; returns one sentence for each thing checked.
///
/// Only for x86-64, and only where binutils are installed: otherwise the sentence says so.
pub(crate) fn check(tools: &Tools, library: &Path, tuning: Tuning) -> Result<Vec<String>, Problem> {
    if std::env::consts::ARCH != "x86_64" {
        return Ok(vec![format!("contents not checked on {}", std::env::consts::ARCH)]);
    }
    let (Some(nm), Some(objdump)) = (tools.find("nm"), tools.find("objdump")) else {
        return Ok(vec!["contents not checked: nm and objdump are not both on the search path".to_owned()]);
    };
    let symbols = capture(Command::new(nm).arg(library))?;
    let code = capture(Command::new(objdump).args(["-d", "--no-show-raw-insn"]).arg(library))?;
    judge(count(&symbols, &code), tuning)
}

fn count(symbols: &str, code: &str) -> Contents {
    let mut contents = Contents {
        avx2_symbols: symbols
            .lines()
            .filter(|line| line.contains("pqmayo_MAYO_") && line.contains("_avx2_"))
            .count(),
        ..Contents::default()
    };
    for line in code.lines() {
        contents.wide += usize::from(line.contains("%ymm") || line.contains("%zmm"));
        contents.aes += usize::from(line.contains("aesenc"));
    }
    contents
}

/// Whether such contents fit the tuning. A native build follows the CPU it is built on.
fn judge(contents: Contents, tuning: Tuning) -> Result<Vec<String>, Problem> {
    #[cfg(target_arch = "x86_64")]
    let (avx2, aes) =
        (std::arch::is_x86_feature_detected!("avx2"), std::arch::is_x86_feature_detected!("aes"));
    #[cfg(not(target_arch = "x86_64"))]
    let (avx2, aes) = (false, false);
    let (wants_avx2, wants_aes) = match tuning {
        Tuning::Native => (avx2, aes),
        Tuning::Dispatch => (true, true),
        Tuning::Generic => (false, false),
    };
    let Contents { avx2_symbols, wide, aes } = contents;
    let has_avx2 = avx2_symbols > 0 && wide > 0;
    if wants_avx2 && !has_avx2 {
        return Err(Problem::Failed(format!(
            "MAYO's AVX2 code is missing from the library ({avx2_symbols} symbols, {wide} wide instructions)"
        )));
    }
    if !wants_avx2 && (avx2_symbols > 0 || wide > 0) {
        return Err(Problem::Failed(format!(
            "the library has AVX2 code it should not have ({avx2_symbols} symbols, {wide} wide instructions)"
        )));
    }
    if wants_aes != (aes > 0) {
        return Err(Problem::Failed(format!(
            "the library has {aes} AES instructions where {} expected",
            if wants_aes { "some were" } else { "none was" }
        )));
    }
    Ok(vec![
        format!("{avx2_symbols} symbols of MAYO's AVX2 code"),
        format!("{wide} instructions on 256- or 512-bit registers"),
        format!("{aes} AES instructions"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Contents = Contents { avx2_symbols: 40, wide: 9000, aes: 60 };

    #[test]
    fn symbols_and_instructions_are_counted() {
        let symbols = "00 t pqmayo_MAYO_1_avx2_mayo_verify\n00 t pqmayo_MAYO_1_opt_mayo_verify\n";
        let code = "  10:\tvpxor  %ymm0,%ymm1,%ymm2\n  20:\taesenc %xmm1,%xmm0\n  30:\tvaesenc %zmm1,%zmm0,%zmm0\n\
                    \x20 40:\tret\n";
        assert_eq!(count(symbols, code), Contents { avx2_symbols: 1, wide: 2, aes: 2 });
    }

    #[test]
    fn a_library_that_is_not_what_it_says_is_refused() {
        judge(FULL, Tuning::Dispatch).expect("as distributed");
        judge(Contents::default(), Tuning::Generic).expect("plain");
        for (contents, tuning) in [
            (Contents::default(), Tuning::Dispatch),
            (Contents { aes: 0, ..FULL }, Tuning::Dispatch),
            (Contents { avx2_symbols: 0, ..FULL }, Tuning::Dispatch),
            (FULL, Tuning::Generic),
            (Contents { wide: 1, ..Contents::default() }, Tuning::Generic),
            (Contents { aes: 1, ..Contents::default() }, Tuning::Generic),
        ] {
            assert!(judge(contents, tuning).is_err(), "{contents:?} {tuning:?}");
        }
    }
}
