//! Every CPU feature that a backend's sources enable is one that its row in `BACKENDS` requires. Otherwise a CPU without the feature, or a
//! mask, would reach code that it cannot run.

use std::fs;
use std::path::{Path, PathBuf};

use lanework_cpu::Features;

/// A backend, and which sources below `src/backend` are its own. A path without an extension is a folder.
struct Row {
    name: &'static str,
    needs: Features,
    sources: &'static [&'static str],
}

/// Code in a file that several rows share, and the one row that it is not for.
struct Exception {
    file: &'static str,
    features: &'static str,
    not_for: &'static str,
}

/// The features that string literals of `text` name: attributes hold them, and so do the arguments of the macros that stamp kernels.
fn literals(text: &str) -> Vec<&str> {
    const FAMILIES: [&str; 12] =
        ["adx", "aes", "avx", "bmi", "fma", "gfni", "lzcnt", "movbe", "pclmul", "popcnt", "vaes", "vpclmul"];
    let is_feature = |word: &str| {
        let plain = word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.');
        // `avx512` is the name of backends, not of a feature.
        plain
            && word != "avx512"
            && (word.starts_with("sse4") || FAMILIES.iter().any(|f| word.starts_with(f)))
    };
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split('"').skip(1).step_by(2))
        .filter(|literal| literal.split(',').all(|word| is_feature(word.trim())))
        .collect()
}

/// What is wrong with one file: features that its rows do not require, or features without a row.
fn faults(file: &str, text: &str, rows: &[Row], exceptions: &[Exception]) -> Vec<String> {
    let owns = |row: &&Row| {
        row.sources
            .iter()
            .any(|own| file == *own || file.strip_prefix(own).is_some_and(|r| r.starts_with('/')))
    };
    let owners: Vec<&Row> = rows.iter().filter(owns).collect();
    let mut faults = Vec::new();
    for literal in literals(text) {
        if owners.is_empty() {
            faults.push(format!("{file}: enables {literal}, and no row is said to own this file"));
        }
        let enabled = match Features::parse(literal) {
            Ok(enabled) => enabled,
            Err(unknown) => {
                faults.push(format!("{file}: {unknown}"));
                continue;
            }
        };
        for row in &owners {
            let excepted = |e: &Exception| e.file == file && e.features == literal && e.not_for == row.name;
            let missing = enabled.difference(row.needs);
            if missing != Features::NONE && !exceptions.iter().any(excepted) {
                faults
                    .push(format!("{file}: enables {missing}, which the row {} does not require", row.name));
            }
        }
    }
    faults
}

/// All Rust files below a folder but tests, each with its name from there on.
fn sources(folder: &Path, root: &Path, found: &mut Vec<(String, PathBuf)>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        let name = path.strip_prefix(root).expect("below").to_string_lossy().into_owned();
        if path.is_dir() {
            sources(&path, root, found);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            found.push((name, path));
        }
    }
}

fn check(primitive: &str, rows: &[Row], exceptions: &[Exception]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(primitive).join("src/backend");
    let mut found = Vec::new();
    sources(&root, &root, &mut found);
    let mut seen = 0;
    let mut wrong = Vec::new();
    for (name, path) in &found {
        let text = fs::read_to_string(path).expect("a source");
        seen += literals(&text).len();
        wrong.extend(faults(name, &text, rows, exceptions));
    }
    assert!(wrong.is_empty(), "{primitive}:\n{}", wrong.join("\n"));
    assert!(seen > 5, "{primitive}: only {seen} places enable features");
}

/// The rows of a table, with the sources of each that needs any feature.
macro_rules! rows {
    ($table:expr, $($name:literal: $sources:expr,)*) => {{
        let owned: &[(&str, &'static [&'static str])] = &[$(($name, $sources)),*];
        let rows: Vec<Row> = $table
            .iter()
            .filter(|row| row.needs() != Features::NONE)
            .map(|row| {
                let own = owned.iter().find(|(name, _)| *name == row.name());
                let (_, sources) = own.unwrap_or_else(|| panic!("which sources are those of {}?", row.name()));
                Row { name: row.name(), needs: row.needs(), sources }
            })
            .collect();
        assert_eq!(rows.len(), owned.len(), "a backend is listed that the table lacks");
        rows
    }};
}

#[cfg(target_arch = "x86_64")]
#[test]
fn rows_require_what_their_kernels_enable() {
    const AVX2: &[&str] = &["avx2", "avx2.rs", "aesni.rs", "inside/avx2.rs"];
    check(
        "mayo",
        &rows! { lanework_mayo::backend::BACKENDS,
            "avx2": AVX2,
            "avx2-vaes": AVX2,
            "avx512": &["avx512", "avx512.rs", "aesni.rs", "inside/avx512.rs"],
        },
        // The module of two blocks to a register, which the table `KERNELS_VAES` names and `KERNELS` does not.
        &[Exception { file: "aesni.rs", features: "aes,vaes,avx2", not_for: "avx2" }],
    );
    check(
        "magma",
        &rows! { lanework_magma::backend::BACKENDS,
            "avx2": &["avx2", "avx2.rs"],
            "avx2-gfni": &["avx2", "avx2.rs"],
            "avx512bw": &["avx512bw", "avx512bw.rs", "chain"],
            "avx512-bitslice": &["avx512", "avx512.rs", "chain", "leaky.rs", "study"],
            "avx512": &["avx512", "avx512.rs", "chain", "leaky.rs", "study"],
        },
        // The tier that the table `KERNELS_GFNI` is made of.
        &[Exception { file: "avx2.rs", features: "avx2,gfni", not_for: "avx2" }],
    );
    check(
        "vdf",
        &rows! { lanework_vdf::backend::BACKENDS,
            "adx": &["adx.rs", "candidates/adx.rs"],
            "avx512": &["adx.rs", "avx512", "avx512.rs", "candidates/adx.rs", "candidates/avx512.rs"],
        },
        &[],
    );
    check(
        "integer",
        &rows! { lanework_integer::BACKENDS,
            "adx": &["adx.rs", "gcd.rs"],
            "avx512": &["avx512", "avx512.rs", "gcd.rs"],
        },
        &[],
    );
}

#[test]
fn what_a_row_does_not_require_is_found() {
    let needs = Features::parse("avx2,bmi1").expect("features");
    let rows = [Row { name: "avx2", needs, sources: &["avx2", "avx2.rs"] }];
    let of = |file: &str, text: &str| faults(file, text, &rows, &[]);
    assert!(of("avx2.rs", "#[target_feature(enable = \"avx2,bmi1\")]").is_empty());
    assert!(of("avx2/a.rs", "// stamp!(\"avx2,gfni\");").is_empty());
    let found = of("avx2/a.rs", "stamp!(A, \"avx2,gfni\",);");
    assert!(found.len() == 1 && found[0].contains("gfni") && found[0].contains("row avx2"), "{found:?}");
    let found = of("avx2.rs", "#[target_feature(enable = \"avx2,fma\")]");
    assert!(found.len() == 1 && found[0].contains("'fma' is not a CPU feature"), "{found:?}");
    let found = of("avx2x.rs", "#[target_feature(enable = \"avx2\")]");
    assert!(found.len() == 1 && found[0].contains("no row"), "{found:?}");
    let excepted = [Exception { file: "avx2.rs", features: "gfni", not_for: "avx2" }];
    assert!(faults("avx2.rs", "x(\"gfni\")", &rows, &excepted).is_empty());
    assert_eq!(faults("avx2/b.rs", "x(\"gfni\")", &rows, &excepted).len(), 1);
}
