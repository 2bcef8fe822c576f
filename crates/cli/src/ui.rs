//! What every command needs: settings, the terminal, progress.
#![forbid(unsafe_code)]

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lanework_cpu::Settings;
use lanework_lab::table::Style;
use lanework_subjects::Context;

use crate::args::Global;
use crate::outcome::Failure;
use crate::profile::Profile;

/// One run of the command.
pub(crate) struct Session {
    pub(crate) json: bool,
    pub(crate) context: Context,
    pub(crate) profile: Option<Profile>,
    pub(crate) style: Style,
    /// The arguments as given, for "made by" lines.
    pub(crate) command: String,
    /// Options that a child process needs to see the same machine and the same variants.
    pub(crate) inherited: Vec<String>,
}

impl Session {
    pub(crate) fn new(global: &Global) -> Result<Session, Failure> {
        let mut settings = Settings::from_env().map_err(Failure::input)?;
        let mut inherited = Vec::new();
        if let Some(forced) = &global.backend {
            let flag =
                Settings::parse("", forced, "").map_err(|e| Failure::input(format!("--backend: {e}")))?;
            for (primitive, backend) in flag.forced() {
                settings.force(primitive, backend);
            }
            inherited.extend(["--backend".to_owned(), forced.clone()]);
        }
        let mut context = Context::new(settings);
        if global.peers {
            if !cfg!(feature = "peers") {
                return Err(Failure::unavailable(
                    "this build races no peers; build with `cargo build --release --features peers`",
                ));
            }
            context.peers = Some(global.peers_dir.clone());
            inherited.extend([
                "--peers".to_owned(),
                "--peers-dir".to_owned(),
                global.peers_dir.display().to_string(),
            ]);
        }
        let profile = Profile::load(&context)?;
        let mut arguments: Vec<String> = std::env::args().skip(1).collect();
        arguments.insert(0, "lanework".to_owned());
        for variable in ["LANEWORK_BACKEND", "LANEWORK_MASK"] {
            if let Some(value) = std::env::var(variable).ok().filter(|v| !v.is_empty()) {
                arguments.insert(0, format!("{variable}={value}"));
            }
        }
        Ok(Session {
            json: global.json,
            context,
            profile,
            style: Style::for_stdout(std::env::var("NO_COLOR").ok().as_deref()),
            command: arguments.join(" "),
            inherited,
        })
    }

    /// Prints a line for people; nothing under `--json`.
    pub(crate) fn say(&self, line: impl std::fmt::Display) {
        if !self.json {
            println!("{line}");
        }
    }

    /// A progress bar on standard error; none when that is not a terminal.
    pub(crate) fn progress(&self, length: u64, what: &str) -> ProgressBar {
        let target = if std::io::stderr().is_terminal() && !self.json {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(length), target);
        // A template without placeholders that indicatif does not know cannot fail.
        if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(what.to_owned());
        bar
    }
}

/// A reader that stops early (`head`) is no error of ours: Rust's `println!` panics then, which this turns into a quiet
/// end with the shell's usual status.
pub(crate) fn die_quietly_on_closed_pipe() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.payload().downcast_ref::<String>().map_or("", String::as_str);
        if text.starts_with("failed printing to stdout") {
            std::process::exit(141);
        }
        default(info);
    }));
}
