//! Exit codes and errors that name the file, the reason and the remedy.
#![forbid(unsafe_code)]

use std::fmt::Display;
use std::io::Write as _;
use std::path::Path;

use crate::text::shown;

/// What a command found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Exit code 0.
    Yes,
    /// Well-formed but refused: exit code 1.
    No,
    /// Said in full already, and some of the input was malformed: exit code 2.
    Malformed,
    /// Said in full already, and the machine lacks what was asked for: exit code 3.
    Unavailable,
}

impl Outcome {
    /// Yes or no.
    #[must_use]
    pub fn from_bool(yes: bool) -> Outcome {
        if yes { Outcome::Yes } else { Outcome::No }
    }

    /// The exit code.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Outcome::Yes => 0,
            Outcome::No => 1,
            Outcome::Malformed => 2,
            Outcome::Unavailable => 3,
        }
    }
}

/// Why a command could not do what it was asked to.
#[derive(Clone, Debug)]
pub struct Failure {
    kind: Kind,
    message: String,
    /// Whether standard output carries the result's bytes, which a message must not follow.
    beside_data: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Refused,
    Input,
    Unavailable,
    /// With the status that a shell reports of a command that the signal ended.
    Interrupted(u8),
}

impl Failure {
    /// A gate stayed shut, or a fault was found: exit code 1.
    pub fn refused(message: impl Display) -> Failure {
        Failure { kind: Kind::Refused, message: message.to_string(), beside_data: false }
    }

    /// Usage, a file, or malformed input: exit code 2.
    pub fn input(message: impl Display) -> Failure {
        Failure { kind: Kind::Input, message: message.to_string(), beside_data: false }
    }

    /// The same about a file.
    pub fn file(path: &Path, reason: impl Display) -> Failure {
        Failure::input(format!("{}: {reason}", shown(path)))
    }

    /// Keeps the JSON object out of standard output, which carries the result.
    pub fn beside_data(mut self) -> Failure {
        self.beside_data = true;
        self
    }

    /// Not on this machine, or not in this build: exit code 3.
    pub fn unavailable(message: impl Display) -> Failure {
        Failure { kind: Kind::Unavailable, message: message.to_string(), beside_data: false }
    }

    /// A signal ended the work before its end; the exit code is the one that a shell reports of such a command.
    pub fn interrupted(status: i32, message: impl Display) -> Failure {
        let kind = Kind::Interrupted(u8::try_from(status).unwrap_or(u8::MAX));
        Failure { kind, message: message.to_string(), beside_data: false }
    }

    /// The reason, for a report that goes on.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The exit code.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self.kind {
            Kind::Refused => 1,
            Kind::Input => 2,
            Kind::Unavailable => 3,
            Kind::Interrupted(status) => status,
        }
    }

    /// Tells the user, on standard error; with `--json` also as an object on standard output, or on standard error where
    /// standard output carries the result.
    pub fn print(&self, json: bool) {
        // Neither stream need be there, and the exit code says it all the same.
        if json {
            let object = serde_json::json!({ "error": self.message, "exit": self.code() });
            let _ = if self.beside_data {
                writeln!(std::io::stderr(), "{object}")
            } else {
                writeln!(std::io::stdout(), "{object}")
            };
        }
        let _ = writeln!(std::io::stderr(), "lanework: {}", self.message);
    }
}
