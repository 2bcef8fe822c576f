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
    /// Reported in full already, with some of the input malformed: exit code 2.
    Malformed,
    /// Reported in full already, and the machine lacks what was asked for: exit code 3.
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

/// What is wrong, and what to do about it, as the command prints it: `error: <what>`, and below it `help: <remedy>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    what: String,
    help: Option<String>,
}

impl<T: Display> From<T> for Message {
    fn from(what: T) -> Message {
        Message { what: what.to_string(), help: None }
    }
}

impl Message {
    /// Lower case, without a full stop; it names the file or option, the expected and the found value.
    pub fn new(what: impl Display) -> Message {
        Message::from(what)
    }

    /// Adds what to do about it, in the same form.
    pub fn help(mut self, remedy: impl Display) -> Message {
        self.help = Some(remedy.to_string());
        self
    }

    /// The same about a file, an option or another place.
    pub fn at(mut self, place: impl Display) -> Message {
        self.what = format!("{place}: {}", self.what);
        self
    }

    /// What is wrong.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// As an object: what is wrong under the level's name, and the remedy under `help` if there is one.
    #[must_use]
    pub fn json(&self, level: &str) -> serde_json::Value {
        let mut object = serde_json::json!({ level: self.what });
        if let Some(help) = &self.help {
            object["help"] = help.as_str().into();
        }
        object
    }

    /// Prints it on standard error: `error` or `warning` is its level.
    pub fn print(&self, level: &str) {
        // The stream may be closed.
        let _ = writeln!(std::io::stderr(), "{}", self.text(level));
    }

    /// Its lines.
    #[must_use]
    pub fn text(&self, level: &str) -> String {
        match &self.help {
            Some(help) => format!("{level}: {}\nhelp: {help}", self.what),
            None => format!("{level}: {}", self.what),
        }
    }
}

/// Why a command failed.
#[derive(Clone, Debug)]
pub struct Failure {
    kind: Kind,
    message: Message,
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
    fn new(kind: Kind, message: impl Into<Message>) -> Failure {
        Failure { kind, message: message.into(), beside_data: false }
    }

    /// A gate stayed shut, or a fault was found: exit code 1.
    pub fn refused(message: impl Into<Message>) -> Failure {
        Failure::new(Kind::Refused, message)
    }

    /// Usage, a file, or malformed input: exit code 2.
    pub fn input(message: impl Into<Message>) -> Failure {
        Failure::new(Kind::Input, message)
    }

    /// The same about a file.
    pub fn file(path: &Path, reason: impl Into<Message>) -> Failure {
        Failure::input(reason.into().at(shown(path)))
    }

    /// Not on this machine, or not in this build: exit code 3.
    pub fn unavailable(message: impl Into<Message>) -> Failure {
        Failure::new(Kind::Unavailable, message)
    }

    /// A signal ended the work before its end; the exit code is the one that a shell reports of such a command.
    pub fn interrupted(status: i32, message: impl Into<Message>) -> Failure {
        Failure::new(Kind::Interrupted(u8::try_from(status).unwrap_or(u8::MAX)), message)
    }

    /// Adds what to do about it.
    pub fn help(mut self, remedy: impl Display) -> Failure {
        self.message = self.message.help(remedy);
        self
    }

    /// Keeps the JSON object out of standard output, which carries the result.
    pub fn beside_data(mut self) -> Failure {
        self.beside_data = true;
        self
    }

    /// What is wrong, for a report that goes on.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message.what
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> Option<&str> {
        self.message.remedy()
    }

    /// Prints it as a warning, where the work goes on.
    pub fn warn(&self) {
        self.message.print("warning");
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

    /// Prints it on standard error; with `--json` also as an object on standard output, or on standard error where standard output
    /// carries the result.
    pub fn print(&self, json: bool) {
        if json {
            let mut object = self.message.json("error");
            object["exit"] = self.code().into();
            // Either stream may be closed; the exit code is the same.
            let _ = if self.beside_data {
                writeln!(std::io::stderr(), "{object}")
            } else {
                writeln!(std::io::stdout(), "{object}")
            };
        }
        self.message.print("error");
    }
}
