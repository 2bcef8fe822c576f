//! Which functions a program enters: each marks a byte, and the bytes go to the standard error at the end.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::list::{Build, Here, run};

/// The marker before the bytes.
const TITLE: &str = "respill_entered:";

/// The text with a mark after the label of each function, and the names in the marks' order.
///
/// # Errors
/// A function has no label.
fn marked<'a>(text: &str, functions: &'a BTreeSet<String>) -> Result<(String, Vec<&'a str>), String> {
    let names: Vec<&str> = functions.iter().map(String::as_str).collect();
    let mut due: BTreeMap<&str, usize> = names.iter().enumerate().map(|(n, name)| (*name, n)).collect();
    let mut out = String::with_capacity(text.len() + 100 * names.len());
    for line in text.lines() {
        let labelled = line.split_once(':').and_then(|(label, rest)| Some((label, due.remove(label)?, rest)));
        match labelled {
            // `movb $'1', respill_marks+n(%rip)` in bytes, since the file's syntax may differ. It changes no flag.
            Some((label, n, rest)) => {
                let _ = writeln!(
                    out,
                    "{label}:\n\t.byte 0xc6, 0x05\n\t.long respill_marks + {n} - . - 5\n\t.byte 0x31\n{rest}"
                );
            }
            None => {
                out += line;
                out.push('\n');
            }
        }
    }
    if let Some(name) = due.keys().next() {
        return Err(format!("no label of {name}"));
    }
    let (count, bytes) = (names.len(), TITLE.len() + names.len());
    let _ = write!(
        out,
        "\t.att_syntax prefix
\t.section .fini_array, \"aw\", @fini_array
\t.balign 8
\t.quad respill_tell
\t.text
respill_tell:
\tmovl $1, %eax
\tmovl $2, %edi
\tleaq respill_title(%rip), %rsi
\tmovl ${bytes}, %edx
\tsyscall
\tret
\t.data
respill_title:
\t.ascii \"{TITLE}\"
respill_marks:
\t.fill {count}, 1, 0x30
"
    );
    Ok((out, names))
}

/// The functions among these that no run of the program enters.
///
/// # Errors
/// A function has no label, the marked program is not built or fails, or does not report.
pub(crate) fn never(here: &Here, build: &Build, functions: &BTreeSet<String>) -> Result<Vec<String>, String> {
    let (text, names) = marked(&build.text, functions)?;
    let folder = tempfile::tempdir().map_err(|e| format!("a temporary folder: {e}"))?;
    here.program(build, &text, folder.path())?;
    let (_, told) = run(build, folder.path())?;
    let told: Vec<&[u8]> = told.split(TITLE).skip(1).map(str::as_bytes).collect();
    if told.len() != build.runs().len() || told.iter().any(|marks| marks.len() < names.len()) {
        return Err("the marked program does not report what it entered".to_owned());
    }
    let never = |&(n, _): &(usize, &str)| told.iter().all(|marks| marks[n] == b'0');
    Ok(names.into_iter().enumerate().filter(never).map(|(_, name)| name.to_owned()).collect())
}
