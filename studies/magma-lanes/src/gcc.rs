//! The report's loop in C, by this machine's gcc under the flags that the report chose among.
//!
//! The source is ours (`sources/loop.c`). With `--kuznyechik FILE`, that file is raced as well: `magma.c` of kuznyechik-kernel, from which
//! the report's scalar code comes. It is read where it lies and is not part of this repository.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use lanework_study::compiler::Compiler;

const SOURCE: &str = include_str!("../sources/loop.c");

/// Headers that kuznyechik-kernel's file includes; `loop.c` declares what it uses of them.
const HEADERS: [&str; 5] = ["init.h", "module.h", "mm.h", "crypto.h", "types.h"];

/// The flags that race, the report's own first.
pub(super) const FLAGS: [&str; 8] = [
    "-O3 -march=native",
    "-O3",
    "-O2 -march=native",
    "-O2",
    "-O1 -march=native",
    "-O1",
    "-O0 -march=native",
    "-O0",
];

/// What the program can loop over: its argument, and the configuration's name in tables.
pub(super) const LOOPS: [(&str, &str); 3] =
    [("scalar", "C-scalar (leaks)"), ("eight", "C-avx2"), ("kuznyechik", "kuznyechik-kernel (leaks)")];

/// The loop under these flags, as a program in `folder`.
pub(super) fn build(
    gcc: &Compiler,
    folder: &Path,
    flags: &str,
    kuznyechik: Option<&Path>,
) -> Result<PathBuf, String> {
    compile(gcc, folder, SOURCE, flags, kuznyechik)
}

fn compile(
    gcc: &Compiler,
    folder: &Path,
    text: &str,
    flags: &str,
    kuznyechik: Option<&Path>,
) -> Result<PathBuf, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", gcc.command);
    let (source, program) = (folder.join("loop.c"), folder.join(format!("loop{}", flags.replace(' ', ""))));
    fs::write(&source, text).map_err(failed)?;
    let mut arguments: Vec<OsString> = flags.split(' ').chain(["-w"]).map(OsString::from).collect();
    if cfg!(target_arch = "x86_64") {
        arguments.push("-mavx2".into());
    }
    if let Some(file) = kuznyechik {
        let file = std::path::absolute(file).map_err(failed)?;
        fs::create_dir_all(folder.join("linux")).map_err(failed)?;
        for header in HEADERS {
            fs::write(folder.join("linux").join(header), "").map_err(failed)?;
        }
        arguments.push(format!("-DKUZNYECHIK=\"{}\"", file.display()).into());
        arguments.extend(["-I".into(), folder.into()]);
    }
    arguments.extend(["-o".into(), program.clone().into(), source.into()]);
    gcc.run(arguments).map_err(|why| format!("{why} ({flags})"))?;
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{GATE_COUNT, Report, judge};
    use crate::subjects::REPORT;
    use crate::variants::VARIANTS;
    use lanework_race::process::Program;
    use lanework_study::process::answer;

    fn run(program: PathBuf, which: &str) -> Report {
        answer(&Program::new(which, program, [which.to_owned(), GATE_COUNT.to_string()])).expect("it answers")
    }

    #[test]
    fn every_build_has_the_standard_s_block_and_a_wrong_table_is_refused() {
        let Ok(gcc) = Compiler::gcc() else {
            println!("SKIPPED: no gcc on this machine");
            return;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let row = VARIANTS.iter().find(|row| row.name() == REPORT);
        let avx2 = row.is_some_and(|row| row.get(&lanework_cpu::Cpu::detect()).is_ok());
        // One entry of one row of the substitution.
        let wrong = SOURCE.replace("{5, 13, 15, 6,", "{5, 13, 6, 15,");
        assert_ne!(wrong, SOURCE);
        for flags in ["-O0", "-O3 -march=native"] {
            for (which, name) in &LOOPS[..1 + usize::from(avx2)] {
                let of =
                    |text| run(compile(&gcc, folder.path(), text, flags, None).expect("it compiles"), which);
                assert_eq!(judge(flags, name, which, &of(SOURCE)).passed, 1);
                let wrong = judge(flags, name, which, &of(&wrong));
                assert!(wrong.failed == 1 && wrong.why.contains("are not the standard's"), "{}", wrong.why);
            }
        }
        let why =
            compile(&gcc, folder.path(), "int main(void) { return y; }", "-O1", None).expect_err("no y");
        assert!(why.contains("'y' undeclared"), "{why}");
    }

    /// A file in kuznyechik-kernel's place, with the same interface: it runs, and its block is judged as any other's.
    #[test]
    fn a_file_that_is_given_runs_and_is_judged() {
        let Ok(gcc) = Compiler::gcc() else {
            println!("SKIPPED: no gcc on this machine");
            return;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let block = crate::subjects::CIPHER.map(|byte| byte.to_string()).join(", ");
        for (last, passed) in [("0", 1), ("1", 0)] {
            let file = folder.path().join("magma.c");
            let text = format!(
                "#include <linux/crypto.h>\n\
                 static int magma_setkey(struct crypto_tfm *tfm, const u8 *key, unsigned int n) {{ return 0; }}\n\
                 static void magma_encrypt(struct crypto_tfm *tfm, u8 *out, const u8 *in) {{\n\
                 static const u8 block[] = {{{block}}};\n\
                 for (int i = 0; i < 8; i++) out[i] = block[i] ^ {last};\n}}\n"
            );
            fs::write(&file, text).expect("written");
            let program = build(&gcc, folder.path(), "-O1", Some(&file)).expect("it compiles");
            let (asked, name) = LOOPS[2];
            assert_eq!(judge("-O1", name, asked, &run(program, asked)).passed, passed);
        }
        let why =
            build(&gcc, folder.path(), "-O1", Some(&folder.path().join("none.c"))).expect_err("no file");
        assert!(why.contains("none.c"), "{why}");
    }
}
