//! What tests of the command share: a directory of their own, and the command in it.
#![allow(dead_code, reason = "each test file uses its part")]

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The command.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_lanework");

/// A directory that is removed at the end.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Place {
        Place(tempfile::tempdir().expect("a directory"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file that only its owner may read, as keys are kept.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).expect("a file");
        self.share(name, 0o600);
    }

    /// Gives a file this mode.
    pub(crate) fn share(&self, name: &str, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).expect("a mode");
    }

    pub(crate) fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("a file")
    }

    /// The names in the directory, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("a directory");
        let mut names: Vec<String> =
            entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.program(Command::new(PROGRAM), args)
    }

    /// The command with every signal's default action, even if the tests themselves run under `nohup` or in the background.
    pub(crate) fn signalled(&self, args: &[&str]) -> Command {
        let mut env = Command::new("env");
        env.args(["--default-signal", PROGRAM]);
        self.program(env, args)
    }

    fn program(&self, mut command: Command, args: &[&str]) -> Command {
        command.args(args).current_dir(self.0.path()).env("LANEWORK_PROFILE", self.path("no-profile.json"));
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.fed(args, b"")
    }

    pub(crate) fn fed(&self, args: &[&str], input: &[u8]) -> Output {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut pipe = child.stdin.take().expect("a pipe");
        std::thread::scope(|scope| {
            // Concurrent with the reading below, or both sides would wait for ever. A child that refuses its input may close the
            // pipe before it has read everything.
            scope.spawn(move || {
                let _ = pipe.write_all(input);
            });
            child.wait_with_output().expect("the command ends")
        })
    }
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().expect("an exit code, not a signal")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn json(bytes: &[u8]) -> serde_json::Value {
    serde_json::from_slice(bytes).expect("one JSON object")
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("digits")).collect()
}

/// Runs the command, which must succeed.
pub(crate) fn yes(place: &Place, args: &[&str]) -> Vec<u8> {
    let output = place.run(args);
    assert_eq!(code(&output), 0, "{args:?}: {}", stderr(&output));
    output.stdout
}

/// Runs the command, which must refuse its input: an error, and nothing on standard output.
pub(crate) fn no(place: &Place, args: &[&str], exit: i32, says: &str) {
    let output = place.run(args);
    let told = stderr(&output);
    assert_eq!(code(&output), exit, "{args:?}: {told}");
    assert!(output.stdout.is_empty(), "{args:?}: something came out");
    // Earlier notes may precede it.
    assert!(told.lines().any(|line| line.starts_with("error: ")), "{args:?}: {told}");
    assert!(told.contains(says), "{args:?}: {told}");
}
