//! Looking into a finished library: is it really what its flavour's name says?
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

use lanework_peers::card::{Code, hex_sha256};
use lanework_peers::flavour::{Flags, Tuning};

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
        Tuning::Flags(flags) => {
            let chosen = flags.native() && !flags.plain;
            (avx2 && chosen, aes && chosen)
        }
    };
    // The compiler's own vector instructions; nothing is chosen by hand.
    let vectorised = matches!(tuning, Tuning::Flags(flags) if flags.native());
    let Contents { avx2_symbols, wide, aes } = contents;
    let has_avx2 = avx2_symbols > 0 && wide > 0;
    if wants_avx2 && !has_avx2 {
        return Err(Problem::Failed(format!(
            "MAYO's AVX2 code is missing from the library ({avx2_symbols} symbols, {wide} wide instructions)"
        )));
    }
    if !wants_avx2 && (avx2_symbols > 0 || (wide > 0 && !vectorised)) {
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

/// Reads the files that run in a build by flags, and checks that threads start exactly where they should. `sets` are the names in
/// symbols, such as `mayo_1`.
pub(crate) fn code(
    tools: &Tools,
    directory: &Path,
    sets: &[&str],
    flags: Flags,
    vector_files: bool,
) -> Result<Code, Problem> {
    let objdump = tools.need("objdump", "to read the code that a build by flags runs")?;
    let kind = if vector_files { "avx2" } else { "opt" };
    let folders = sets.iter().map(|set| {
        format!("src/sig/mayo/CMakeFiles/{set}_{kind}.dir/pqmayo_{}_{kind}", set.replace('_', "-"))
    });
    let (mut all, mut scheme) = (String::new(), String::new());
    for folder in folders.chain(["src/common/CMakeFiles/common.dir/aes".to_owned()]) {
        for object in objects(&directory.join(&folder))? {
            let text = capture(Command::new(&objdump).args(["-dr", "--no-show-raw-insn"]).arg(&object))?;
            // The first lines name the file.
            let text: Vec<&str> = text.lines().filter(|line| !line.contains("file format")).collect();
            let text = text.join("\n");
            if !folder.ends_with("aes") {
                scheme.push_str(&text);
            }
            all.push_str(&text);
        }
    }
    judge_code(read_code(&scheme, &all), flags)
}

fn objects(folder: &Path) -> Result<Vec<PathBuf>, Problem> {
    let failed = |e: std::io::Error| Problem::Failed(format!("{}: {e}", folder.display()));
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let mut all = entries.map(|e| e.map(|e| e.path())).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    all.retain(|path| path.extension().is_some_and(|e| e == "o"));
    all.sort();
    Ok(all)
}

fn read_code(scheme: &str, all: &str) -> Code {
    let has = |part: &'static [&str]| scheme.lines().filter(|l| part.iter().any(|p| l.contains(p))).count();
    Code {
        wide: has(&["%ymm", "%zmm"]),
        forks: has(&["R_X86_64_PLT32\tGOMP_parallel", "R_X86_64_GOTPCRELX\tGOMP_parallel"]),
        digest: hex_sha256(all.as_bytes()),
    }
}

fn judge_code(code: Code, flags: Flags) -> Result<Code, Problem> {
    let wanted = flags.openmp() && flags.pragmas;
    if wanted == (code.forks > 0) {
        return Ok(code);
    }
    Err(Problem::Failed(format!(
        "MAYO's code starts threads in {} places where {} expected",
        code.forks,
        if wanted { "some were" } else { "none was" }
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENMP: Flags = Flags { flags: "-O3 -mavx2 -fopenmp -march=native", plain: true, pragmas: true };

    #[test]
    fn code_is_read_and_judged() {
        let line = "  4:\tcall   9 <product+0x9>\n\t\t\t5: R_X86_64_PLT32\tGOMP_parallel-0x4\n  9:\tvpxor  %ymm0,%ymm1,%ymm2\n";
        let threads = read_code(line, line);
        assert_eq!((threads.wide, threads.forks), (1, 1));
        let none = read_code("  4:\tret\n", "  4:\tret\n");
        assert_ne!(none.digest, threads.digest);
        judge_code(threads.clone(), OPENMP).expect("as asked for");
        judge_code(none.clone(), Flags { pragmas: false, ..OPENMP }).expect("as asked for");
        // Pragmas that the compiler did not heed, and threads that nobody asked for.
        assert!(judge_code(none, OPENMP).is_err());
        for flags in [Flags { pragmas: false, ..OPENMP }, Flags { flags: "-O3", ..OPENMP }] {
            assert!(judge_code(threads.clone(), flags).is_err(), "{flags:?}");
        }
    }

    #[test]
    fn flags_decide_what_a_library_may_contain() {
        let vectorised = Contents { wide: 9, ..Contents::default() };
        judge(vectorised, Tuning::Flags(OPENMP)).expect("the compiler's own");
        let plain = Tuning::Flags(Flags { flags: "-O3 -fopenmp", ..OPENMP });
        judge(Contents::default(), plain).expect("plain");
        for (contents, tuning) in [(vectorised, plain), (FULL, plain), (FULL, Tuning::Flags(OPENMP))] {
            assert!(judge(contents, tuning).is_err(), "{contents:?} {tuning:?}");
        }
    }

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
