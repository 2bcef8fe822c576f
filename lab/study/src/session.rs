//! One run of the command, as far as races and studies need it.
#![forbid(unsafe_code)]

use std::io::{IsTerminal, Write as _};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lanework_suite::Context;

/// One run of the command.
#[derive(Clone, Debug)]
pub struct Session {
    /// Whether the result is printed as one JSON object.
    pub json: bool,
    /// The processor as it may be used, peers and devices.
    pub context: Context,
    /// The arguments as given, for "made by" lines.
    pub command: String,
    /// Options that a child process needs to see the same machine and the same variants, each with its values.
    pub inherited: Vec<Vec<String>>,
}

impl Session {
    /// The first arguments of a child process: the options that it inherits.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        self.inherited.concat()
    }

    /// The first arguments of a child process that is another build of this command: the studies build without peers.
    #[must_use]
    pub fn arguments_without_peers(&self) -> Vec<String> {
        self.inherited.iter().filter(|option| option[0] != "--peers").flatten().cloned().collect()
    }

    /// Prints a line for people; nothing under `--json`.
    pub fn say(&self, line: impl std::fmt::Display) {
        if !self.json {
            println!("{line}");
        }
    }

    /// Prints a line for people beside the result; nothing under `--json`.
    pub fn note(&self, line: impl std::fmt::Display) {
        if !self.json {
            // A closed stream does not stop the work.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }

    /// A progress bar on standard error; none when that is not a terminal.
    pub fn progress(&self, length: u64, what: &str) -> ProgressBar {
        self.bar(Some(length), "{prefix} [{bar:30}] {pos}/{len} {msg}", what)
    }

    /// The same for a stream of bytes, whose length may be unknown.
    pub fn progress_bytes(&self, length: Option<u64>, what: &str) -> ProgressBar {
        let template = match length {
            Some(_) => "{prefix} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta}",
            None => "{prefix} {spinner} {bytes} {bytes_per_sec}",
        };
        self.bar(length, template, what)
    }

    /// The same for very many steps, whose speed is in the message.
    pub fn progress_counted(&self, length: u64, what: &str) -> ProgressBar {
        self.bar(Some(length), "{prefix} [{bar:30}] {human_pos}/{human_len} {msg}", what)
    }

    fn bar(&self, length: Option<u64>, template: &str, what: &str) -> ProgressBar {
        let target = if std::io::stderr().is_terminal() && !self.json {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(length, target);
        // A template without placeholders that indicatif does not know cannot fail.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(what.to_owned());
        bar
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_build_inherits_everything_but_peers() {
        let options: [&[&str]; 3] =
            [&["--backend", "mayo=avx2"], &["--peers", "--peers-dir", "target/peers"], &["--device", "0"]];
        let session = Session {
            json: false,
            context: Context::new(Default::default()),
            command: "lanework".to_owned(),
            inherited: options.map(|o| o.iter().map(|&s| s.to_owned()).collect()).to_vec(),
        };
        assert_eq!(session.arguments(), options.concat());
        assert_eq!(session.arguments_without_peers(), ["--backend", "mayo=avx2", "--device", "0"]);
    }
}
