//! OpenMP pragmas for published sources that have none, in a copy of them.
//!
//! They stand at every outer loop of a product whose iterations are independent as published. The triangular products have none: their
//! loops count through the matrix in a running index, which threads would share.
#![forbid(unsafe_code)]

use std::path::Path;

use super::tools::Problem;

/// A loop, by the function that holds it and the beginning of its line.
struct Loop {
    file: &'static str,
    function: &'static str,
    line: &'static str,
    pragma: &'static str,
}

const PARALLEL: &str = "#pragma omp parallel for";
/// Where an inner counter is declared outside the loop.
const PRIVATE_K: &str = "#pragma omp parallel for private(k)";

const fn at(file: &'static str, function: &'static str, line: &'static str, pragma: &'static str) -> Loop {
    Loop { file, function, line, pragma }
}

/// Loops of files that both implementations share.
const SHARED: [Loop; 2] = [
    at("mayo.c", "compute_A", "for (size_t c = 0; c < A_width*((", PARALLEL),
    at("mayo.c", "compute_A", "for (size_t c = 0; c < A_width; c+= 16)", PARALLEL),
];
const PLAIN_FILE: &str = "arithmetic_common.h";
const PLAIN: [Loop; 3] = [
    at(PLAIN_FILE, "mayo_generic_m_calculate_SPS", "for (int row = 0; row < k; row++)", PARALLEL),
    at(PLAIN_FILE, "mul_add_mat_trans_x_m_mat", "for (int r = 0; r < mat_cols; r++)", PARALLEL),
    at(PLAIN_FILE, "mul_add_mat_x_m_mat", "for (int r = 0; r < mat_rows; r++)", PARALLEL),
];
const BY_O: &str = "for (size_t c = 0; c < O_MAX; c++)";
const BY_K: &str = "for (size_t c = 0; c < K_MAX; c++)";
const F64: &str = "shuffle_arithmetic_64.h";
const F96: &str = "shuffle_arithmetic_96.h";
const F128: &str = "shuffle_arithmetic_128.h";
const VECTOR: [Loop; 12] = [
    at(F64, "mayo_12_Ot_times_P1O_P2_avx2", BY_O, PARALLEL),
    at(F64, "mayo_12_Vt_times_L_avx2", BY_O, PRIVATE_K),
    at(F64, "mayo_12_Vt_times_Pv_avx2", BY_K, PRIVATE_K),
    at(F64, "mayo_12_S2t_times_PS2_avx2", BY_K, PRIVATE_K),
    at(F96, "mayo_3_Ot_times_P1O_P2_avx2", BY_O, PARALLEL),
    at(F96, "mayo_3_Vt_times_L_avx2", BY_O, PRIVATE_K),
    at(F96, "mayo_3_Vt_times_Pv_avx2", BY_K, PRIVATE_K),
    at(F96, "mayo_3_S2t_times_PS2_avx2", BY_K, PRIVATE_K),
    at(F128, "mayo_5_Ot_times_P1O_P2_avx2", BY_O, PARALLEL),
    at(F128, "mayo_5_Vt_times_L_avx2", BY_O, PRIVATE_K),
    at(F128, "mayo_5_Vt_times_Pv_avx2", BY_K, PRIVATE_K),
    at(F128, "mayo_5_S2t_times_PS2_avx2", BY_K, PRIVATE_K),
];

/// Everything that decides where pragmas go, for a build's recipe.
pub(crate) fn recipe() -> String {
    all().map(|l| [l.file, l.function, l.line, l.pragma].join(" ")).collect::<Vec<_>>().join("\n")
}

fn all() -> impl Iterator<Item = &'static Loop> {
    SHARED.iter().chain(&PLAIN).chain(&VECTOR)
}

/// Copies liboqs to `copy` and writes the pragmas into MAYO's files there.
pub(crate) fn copy_with(
    source: &Path,
    copy: &Path,
    sets: impl Iterator<Item = String>,
) -> Result<(), Problem> {
    copy_tree(source, copy).map_err(|e| Problem::Failed(format!("{}: {e}", copy.display())))?;
    for set in sets {
        for (kind, own) in [("opt", &PLAIN[..]), ("avx2", &VECTOR[..])] {
            let folder = copy.join(format!("src/sig/mayo/pqmayo_{}_{kind}", set.replace('_', "-")));
            for place in SHARED.iter().chain(own) {
                let path = folder.join(place.file);
                let failed = |why: String| Problem::Failed(format!("{}: {why}", path.display()));
                let text = std::fs::read_to_string(&path).map_err(|e| failed(e.to_string()))?;
                let text = inserted(&text, place).map_err(failed)?;
                std::fs::write(&path, text).map_err(|e| failed(e.to_string()))?;
            }
        }
    }
    Ok(())
}

/// The text with the pragma before the loop, which must be in the function exactly once.
fn inserted(text: &str, place: &Loop) -> Result<String, String> {
    let lines: Vec<&str> = text.lines().collect();
    let begins = format!("{}(", place.function);
    let one = |found: Vec<usize>, what: &str| match found[..] {
        [at] => Ok(at),
        _ => Err(format!("{what} is there {} times, not once: other sources than expected", found.len())),
    };
    let starts =
        (0..lines.len()).filter(|&i| lines[i].contains(&begins) && lines[i].trim_end().ends_with('{'));
    // A call ends in a semicolon, and a condition on a call is indented.
    let starts = starts.filter(|&i| !lines[i].starts_with(' ')).collect();
    let start = one(starts, place.function)?;
    let end = (start..lines.len()).find(|&i| lines[i].trim_end() == "}").unwrap_or(lines.len());
    let loops = (start..end).filter(|&i| lines[i].trim_start().starts_with(place.line)).collect();
    let at = one(loops, &format!("the loop '{}' of {}", place.line, place.function))?;
    let mut out = lines;
    out.insert(at, place.pragma);
    Ok(out.join("\n") + "\n")
}

fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Loop = at("f.h", "product", "for (int r = 0; r < rows; r++)", PARALLEL);
    const SOURCE: &str = "static inline void product(int rows) {\n\n    for (int r = 0; r < rows; r++) {\n        work(r);\n    }\n}\n\
                          void other(int rows) {\n    product(rows);\n    for (int r = 0; r < rows; r++) {\n    }\n}\n";

    #[test]
    fn a_pragma_stands_before_its_loop_alone() {
        let text = inserted(SOURCE, &PLACE).expect("it is there");
        assert_eq!(text.matches(PARALLEL).count(), 1);
        let at = text.find(PARALLEL).expect("just counted");
        assert!(
            text[at..]
                .starts_with("#pragma omp parallel for\n    for (int r = 0; r < rows; r++) {\n        work")
        );
        assert_eq!(text.replace("#pragma omp parallel for\n", ""), SOURCE);
    }

    #[test]
    fn other_sources_are_refused() {
        for (planted, part) in [
            (SOURCE.replace("product(int rows)", "product_2(int rows)"), "product is there 0 times"),
            (SOURCE.replacen("r < rows", "r < 2 * rows", 1), "' of product is there 0 times"),
            (
                SOURCE.replacen("        work(r);", "    for (int r = 0; r < rows; r++) work(r);", 1),
                "there 2 times",
            ),
            (format!("{SOURCE}{SOURCE}"), "product is there 2 times"),
        ] {
            let why = inserted(&planted, &PLACE).expect_err(part);
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn every_pragma_is_in_the_recipe() {
        assert_eq!(recipe().lines().count(), all().count());
        assert!(all().all(|l| l.pragma.starts_with(PARALLEL)));
    }
}
