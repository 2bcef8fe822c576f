//! Tests that run themselves under valgrind. The child does one operation after another, each between two lines of output;
//! the parent reads what memcheck printed in between.
//!
//! Debug assertions check sums of secrets for overflow, by branches. So only an optimised build without them, as it is
//! shipped, can be checked: [`judged`].
#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::io::{ErrorKind, Write as _, stderr};
use std::path::Path;
use std::process::Command;

use crate::evidence::Finding;
use crate::memcheck::complaints;

/// Set to 1 to make a missing valgrind a failure.
pub const REQUIRE: &str = "LANEWORK_REQUIRE_VALGRIND";

/// Prints a line past libtest, which captures the output of a passing test.
pub fn say(line: &str) {
    let _ = writeln!(stderr(), "{line}");
}

fn verdict(complaints: u64) -> String {
    format!("## {complaints} complaints")
}

/// In the child: does one operation between its two lines. Headlines begin with `## ` and are all different.
pub fn observe(headline: &str, operation: impl FnOnce()) {
    eprintln!("{headline}");
    let before = complaints();
    operation();
    eprintln!("{}", verdict(complaints() - before));
}

/// In the parent: what the test of this path and memcheck wrote under valgrind. `None`, with a printed reason, where the
/// build has debug assertions or there is no valgrind.
///
/// # Panics
/// If the test fails in the child, or there is no valgrind and [`REQUIRE`] is 1.
#[must_use]
pub fn judged(test: &str) -> Option<String> {
    if cfg!(debug_assertions) {
        say(&format!("SKIPPED: {test}: debug assertions branch on secrets; run it with --release"));
        return None;
    }
    let this = std::env::current_exe().expect("a test knows its own file");
    match run(&this, &["--exact", test, "--nocapture", "--test-threads=1"]) {
        Ok((said, results)) => {
            // The status alone is not enough: complaints hide the test's own.
            assert!(
                results.contains("test result: ok. 1 passed"),
                "the test failed under valgrind:\n{said}{results}"
            );
            Some(said)
        }
        Err(NotRun::NoValgrind) => {
            assert!(
                std::env::var_os(REQUIRE).is_none_or(|v| v != "1"),
                "{REQUIRE}=1, but valgrind is not installed"
            );
            say(&format!("SKIPPED: {test}: valgrind is not installed"));
            None
        }
        Err(NotRun::Failed(why)) => panic!("{why}"),
    }
}

/// Why a program was not run to its end under valgrind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRun {
    /// There is no valgrind.
    NoValgrind,
    /// It failed, for this reason.
    Failed(String),
}

/// Runs a program under valgrind, and returns its standard error, which includes valgrind's output, and its standard output.
///
/// # Errors
/// [`NotRun`], also where the program itself fails, unless complaints hide that.
pub fn run(program: &Path, arguments: &[impl AsRef<OsStr>]) -> Result<(String, String), NotRun> {
    let output = Command::new("valgrind")
        .args(["--quiet", "--leak-check=no", "--error-limit=no", "--error-exitcode=99", "--num-callers=12"])
        .arg(program)
        .args(arguments)
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(NotRun::NoValgrind),
        Err(error) => return Err(NotRun::Failed(format!("valgrind does not start: {error}"))),
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let code = output.status.code();
    if !matches!(code, Some(0 | 99)) {
        return Err(NotRun::Failed(format!("it ended with {} under valgrind:\n{said}", output.status)));
    }
    if (code == Some(99)) != said.contains("==") {
        return Err(NotRun::Failed(format!("valgrind's exit status contradicts its output:\n{said}")));
    }
    Ok((said, String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// What memcheck printed about one operation.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// Its output. A repeated complaint, from the same functions, is counted and not printed again.
    pub words: &'a str,
    verdict: &'a str,
}

impl<'a> Section<'a> {
    /// The section of the operation with this headline.
    ///
    /// # Panics
    /// If the operation was not run to its end: that is not a clean result.
    #[must_use]
    pub fn of(said: &'a str, headline: &str) -> Section<'a> {
        Section::find(said, headline).unwrap_or_else(|| panic!("not run under valgrind: {headline}\n{said}"))
    }

    /// As [`Section::of`], or `None` where the operation was not run to its end.
    #[must_use]
    pub fn find(said: &'a str, headline: &str) -> Option<Section<'a>> {
        let (_, rest) = said.split_once(&format!("{headline}\n"))?;
        let end = rest.find("## ")?;
        let verdict = rest[end..].lines().next().unwrap_or_default();
        verdict.ends_with(" complaints").then_some(Section { words: &rest[..end], verdict })
    }

    /// Whether there was no complaint.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.verdict == verdict(0)
    }

    /// The complaints, each with its frames, innermost first.
    pub fn complaints(&self) -> impl Iterator<Item = &'a str> {
        self.words.split("== \n").filter(|complaint| complaint.contains(" at 0x"))
    }

    /// Whether a complaint with these words comes from this function in this file.
    #[must_use]
    pub fn names(&self, words: &str, function: &str, file: &str) -> bool {
        self.complaints().any(|complaint| {
            let mut frames = complaint.lines().skip_while(|line| !line.contains(words)).skip(1);
            frames.any(|frame| frame.contains(function) && frame.contains(file))
        })
    }

    /// Every complaint's subject, its place and the frames that name `path`, then the number of complaints.
    #[must_use]
    pub fn shortened(&self, path: &str) -> String {
        let mut lines = String::new();
        for line in self.words.lines() {
            let line = line.trim_start_matches(|c: char| c == '=' || c.is_ascii_digit()).trim_end();
            let is_frame = line.contains(" at 0x") || line.contains(" by 0x");
            if !line.is_empty() && (!is_frame || line.contains(" at 0x") || line.contains(path)) {
                lines += &format!("  {line}\n");
            }
        }
        lines + self.verdict
    }
}

/// What memcheck printed about the operation of a headline, as a finding; `path` as for [`Section::shortened`].
#[must_use]
pub fn finding(said: Result<&str, &NotRun>, headline: &str, path: &str) -> Finding {
    let said = match said {
        Ok(said) => said,
        Err(NotRun::NoValgrind) => return Finding::NotApplicable("valgrind is not installed".into()),
        Err(NotRun::Failed(why)) => return Finding::Broken(why.clone()),
    };
    match Section::find(said, headline) {
        None => Finding::Broken("it was not run under valgrind".into()),
        Some(section) if section.is_silent() => Finding::Clean,
        Some(section) => Finding::Leak(section.shortened(path)),
    }
}
