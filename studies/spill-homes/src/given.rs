//! The files of `--asm`: a row's own assembly, and other builds of the same function.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use lanework_race::files::read_at_most;
use lanework_respill::Program;
use lanework_respill::case::Case;
use lanework_spill::of_program;
use lanework_study::Failure;

use super::question::Plan;
use crate::programs::Assembly;
use crate::rows::Row;

/// The build that keeps values in MMX registers.
pub(super) const MMX: &str = "mmx-build";
/// The baseline built again with the other build's flags.
pub(super) const REBUILT: &str = "rebuilt";

/// The forms of `--asm`.
const FORM: &str = "write ROW=BASELINE[,MMX[,REBUILT]]; a row's name may end in `*`";

/// A row's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) baseline: Assembly,
    /// Other builds, by what they are.
    pub(super) builds: Vec<(&'static str, Assembly)>,
}

/// The files that the user gives for rows.
///
/// # Errors
/// [`Failure`]: an unknown row, or a file that is missing, is named twice, is not assembly, or lacks what the row calls.
pub(super) fn given(plan: &Plan, said: &[String]) -> Result<BTreeMap<String, Given>, Failure> {
    let mut out = BTreeMap::new();
    for said in said {
        let wrong = |what: &str| Failure::input(format!("--asm: {what} in '{said}'")).help(FORM);
        let Some((name, files)) = said.split_once('=') else { return Err(wrong("no row named")) };
        if files.split(',').any(str::is_empty) {
            return Err(wrong("an empty file name"));
        }
        let rows = rows(plan, name);
        if rows.is_empty() {
            let known: Vec<&str> = plan.rows.row.iter().map(|row| row.name.as_str()).collect();
            return Err(Failure::input(format!("--asm: no row '{name}'"))
                .help(format!("choose among {}", known.join(", "))));
        }
        let files: Vec<PathBuf> = files.split(',').map(PathBuf::from).collect();
        if files.len() > 3 {
            let what = format!("--asm: {} files for '{name}', three at most", files.len());
            return Err(Failure::input(what).help(FORM));
        }
        let assemblies = read(&files)?;
        for row in rows {
            for (file, (_, program)) in files.iter().zip(&assemblies) {
                has_all(row, file, program)?;
            }
            let mut assemblies = assemblies.iter().map(|(assembly, _)| assembly.clone());
            let Some(baseline) = assemblies.next() else { continue };
            let builds = [MMX, REBUILT].into_iter().zip(assemblies).collect();
            if out.insert(row.name.clone(), Given { baseline, builds }).is_some() {
                return Err(Failure::input(format!("--asm: row '{}' is there twice", row.name))
                    .help("give each row its files once"));
            }
        }
    }
    Ok(out)
}

/// The rows with this name, or this beginning.
fn rows<'a>(plan: &'a Plan, name: &str) -> Vec<&'a Row> {
    let named = |row: &&Row| match name.strip_suffix('*') {
        Some(beginning) => row.name.starts_with(beginning),
        None => row.name == name,
    };
    plan.rows.row.iter().filter(named).collect()
}

/// The files' texts, each a program.
fn read(files: &[PathBuf]) -> Result<Vec<(Assembly, Program)>, Failure> {
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut out = Vec::new();
    for path in files {
        let place = path.canonicalize();
        let place = place.map_err(|e| Failure::file(path, e).help("name a file that exists"))?;
        if seen.contains(&place) {
            return Err(Failure::file(path, "the same file twice for one row")
                .help("the baseline and each other build are files of their own"));
        }
        let bytes = fs::File::open(&place).and_then(|file| read_at_most(file, Program::LONGEST));
        let bytes = bytes.map_err(|e| Failure::file(path, e).help("name a file of text"))?;
        seen.push(place);
        let text = String::from_utf8(bytes).map_err(|_| {
            Failure::file(path, "not text: bytes that are not UTF-8").help("name a .s file, not an object")
        })?;
        let shown = path.display().to_string();
        let program = Program::new(&shown, text.as_str()).map_err(|e| {
            of_program(&e).help("name assembly as GNU as reads it: what `jasminc -o` or `gcc -S` writes")
        })?;
        out.push((Assembly { name: file_name(path), text, made_by: None }, program));
    }
    Ok(out)
}

/// Whether a program has every function that a row's case calls.
fn has_all(row: &Row, file: &Path, program: &Program) -> Result<(), Failure> {
    let case = Case::parse(&row.case.replace("{function}", &row.function)).map_err(Failure::input)?;
    let names = || program.names.values().flatten().filter(|name| name.global);
    let missing = case.preparing().chain([case.measured()]).find(|f| names().all(|name| name.name != *f));
    let Some(missing) = missing else { return Ok(()) };
    let known: Vec<&str> = names().map(|name| name.name.as_str()).take(6).collect();
    let help = if known.is_empty() {
        "no function in it is .globl".to_owned()
    } else {
        format!("row {} needs it; this file has {}", row.name, known.join(", "))
    };
    Err(Failure::file(file, format!("no function {missing} in it")).help(help))
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}
