//! Debian's z3, one process for all queries.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Set to 1 if a machine without z3 counts as a failure.
pub(crate) const REQUIRE: &str = "LANEWORK_REQUIRE_Z3";

/// Milliseconds for one query. The slowest takes one second on an idle machine.
const LIMIT: u64 = 120_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// No values make the query true.
    Never,
    Sometimes,
    Unknown,
}

pub(crate) struct Solver {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub(crate) queries: usize,
}

impl Solver {
    /// Starts z3. Without one the test is skipped, by name.
    ///
    /// # Panics
    /// If there is none, and [`REQUIRE`] asks for it.
    pub(crate) fn start(test: &str) -> Option<Solver> {
        let started =
            Command::new("z3").args(["-in", "-smt2"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = match started {
            Ok(child) => child,
            Err(e) => {
                assert!(
                    std::env::var(REQUIRE).as_deref() != Ok("1"),
                    "{REQUIRE}=1, and z3 does not start: {e}"
                );
                println!("SKIPPED: {test}, since z3 is not installed");
                return None;
            }
        };
        let (input, output) = (child.stdin.take()?, child.stdout.take()?);
        Some(Solver { child, input, output: BufReader::new(output), queries: 0 })
    }

    pub(crate) fn ask(&mut self, query: &str) -> Answer {
        self.queries += 1;
        writeln!(self.input, "(reset)\n(set-option :timeout {LIMIT})\n{query}(echo \"end\")")
            .expect("z3 reads");
        self.input.flush().expect("z3 reads");
        let mut said = String::new();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("z3 answers") > 0, "z3 ended: {said}\n{query}");
            if line.trim() == "end" {
                break;
            }
            said.push_str(&line);
        }
        match said.trim() {
            "unsat" => Answer::Never,
            "sat" => Answer::Sometimes,
            "unknown" | "timeout" => Answer::Unknown,
            other => panic!("z3: {other}\n{query}"),
        }
    }
}

impl Drop for Solver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
