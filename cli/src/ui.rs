//! What every command needs: settings, the terminal, progress.
#![forbid(unsafe_code)]

use std::io::IsTerminal;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use lanework_cpu::{Feature, Features, Settings, SettingsError};
use lanework_race::table::Style;
use lanework_study::{Failure, Message};
use lanework_suite::Context;
use lanework_suite::device::{CUDA, DeviceChoice};

use crate::args::Global;
use crate::profile::Profile;

/// One run of the command.
pub(crate) struct Session {
    /// The part that races and studies need.
    lab: lanework_study::Session,
    /// The profile, if there is one for this machine; a damaged one stops only the jobs that read it.
    pub(crate) profile: Result<Option<Profile>, Failure>,
    pub(crate) style: Style,
    /// Warnings so far.
    warnings: Mutex<Vec<Message>>,
}

impl Deref for Session {
    type Target = lanework_study::Session;

    fn deref(&self) -> &lanework_study::Session {
        &self.lab
    }
}

impl Session {
    pub(crate) fn new(global: &Global) -> Result<Session, Failure> {
        let mut settings = Settings::from_env().map_err(|e| setting("LANEWORK_BACKEND", &e))?;
        let mut inherited = Vec::new();
        if let Some(forced) = &global.backend {
            let flag = Settings::parse("", forced, "").map_err(|e| setting("--backend", &e))?;
            for (primitive, backend) in flag.forced() {
                settings.force(primitive, backend);
            }
            inherited.push(vec!["--backend".to_owned(), forced.clone()]);
        }
        let mut context = Context::new(settings);
        if global.peers {
            if !cfg!(feature = "peers") {
                return Err(Failure::unavailable("--peers: this build has no peers")
                    .help("build with `cargo build --release --features peers`"));
            }
            context.peers = Some(global.peers_dir.clone());
            // Inherited by child processes as it is.
            context.gost_engine =
                std::env::var_os("LANEWORK_GOST_ENGINE").filter(|v| !v.is_empty()).map(Into::into);
            inherited.push(vec![
                "--peers".to_owned(),
                "--peers-dir".to_owned(),
                global.peers_dir.display().to_string(),
            ]);
        }
        lanework_suite::known(&context.settings).map_err(|unknown| {
            Failure::input(&unknown).help(format!("choose one of {}", unknown.known.join(", ")))
        })?;
        // Devices are chosen separately, but naming one as a backend selects it too.
        if context.settings.unforce(CUDA) {
            context.device = DeviceChoice::Cuda(Vec::new());
        }
        if let Some(device) = &global.device {
            context.device = device.clone();
            inherited.push(vec!["--device".to_owned(), device.to_string()]);
        }
        let profile = Profile::load(&context);
        let given = std::env::args_os().skip(1).map(|a| placeless(a.to_string_lossy().into_owned()));
        let mut arguments = vec![command_line(std::iter::once("lanework".to_owned()).chain(given))];
        for variable in ["LANEWORK_BACKEND", "LANEWORK_MASK"] {
            if let Some(value) = std::env::var(variable).ok().filter(|v| !v.is_empty()) {
                arguments.insert(0, format!("{variable}={value}"));
            }
        }
        Ok(Session {
            lab: lanework_study::Session {
                json: global.json,
                context,
                command: arguments.join(" "),
                inherited,
            },
            profile,
            style: Style::for_stdout(std::env::var("NO_COLOR").ok().as_deref()),
            warnings: Mutex::default(),
        })
    }

    /// Gives a warning once: on standard error, or in the report's list under `--json`.
    pub(crate) fn warn(&self, warning: Message) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.contains(&warning) {
            return;
        }
        if !self.json {
            warning.print("warning");
        }
        warnings.push(warning);
    }

    /// A report with its warnings: a list called `warnings` of objects like those of errors, present only if it is not empty.
    pub(crate) fn with_warnings(&self, mut report: serde_json::Value) -> serde_json::Value {
        let warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(object), false) = (report.as_object_mut(), warnings.is_empty()) {
            let warnings: Vec<_> = warnings.iter().map(|w| w.json("warning")).collect();
            object.insert("warnings".to_owned(), warnings.into());
        }
        report
    }
}

/// A setting that cannot be read, and how to write it.
fn setting(place: &str, e: &SettingsError) -> Failure {
    match e {
        SettingsError::Backend(entry) => Failure::input(format!("{place}: cannot read '{entry}'"))
            .help("write NAME, or PRIMITIVE=NAME with commas between several"),
        SettingsError::Mask(unknown) => {
            Failure::input(format!("LANEWORK_MASK: not a CPU feature: '{}'", unknown.name))
                .help(format!("choose among {}", Features::of(Feature::ALL)))
        }
        SettingsError::NotText(_) => Failure::input(e).help("write it in UTF-8"),
    }
}

/// Refuses to print bytes on a terminal, unless `-o -` asks for it.
pub(crate) fn no_terminal(output: Option<&Path>) -> Result<(), Failure> {
    if output.is_none() && std::io::stdout().is_terminal() {
        return Err(Failure::input("the result is not text, and standard output is a terminal")
            .help("name a file with -o FILE, or ask for it with -o -"));
    }
    Ok(())
}

/// The shell's status for a program that a closed pipe ended.
pub(crate) const CLOSED_PIPE: i32 = 141;

/// Rust's `println!` panics if standard output cannot be written. A reader that stops early (`head`) is not an error and
/// ends the command quietly, with the shell's usual status. Anything else, such as a full disk, is reported as an error.
pub(crate) fn end_without_panic_on_closed_streams() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.payload().downcast_ref::<String>().map_or("", String::as_str);
        let Some(why) = text.strip_prefix("failed printing to ") else { return default(info) };
        // The hook gets only the sentence; the number in it is EPIPE's.
        if why.contains("(os error 32)") {
            std::process::exit(CLOSED_PIPE);
        }
        Message::new(format!("standard output: {}", why.trim_start_matches("stdout: "))).print("error");
        std::process::exit(2);
    }));
}

/// An argument as records keep it: where a record was stored or a file lay does not affect the figures, and is a folder on
/// somebody's machine.
fn placeless(argument: String) -> String {
    if argument.starts_with("--save=") {
        return "--save".to_owned();
    }
    let (option, value) = match argument.split_once('=') {
        Some((option, value)) if option.starts_with("--") => (format!("{option}="), value),
        _ => (String::new(), argument.as_str()),
    };
    let path = Path::new(value);
    match path.file_name() {
        // A whole command to be timed stays as it is.
        Some(name) if path.is_absolute() && !value.contains(' ') => option + &name.to_string_lossy(),
        _ => argument,
    }
}

/// The command as a line for a shell: arguments that a shell would interpret are quoted.
fn command_line(arguments: impl Iterator<Item = String>) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=+,./:@%".contains(c);
    let quoted = |a: String| {
        if !a.is_empty() && a.chars().all(plain) { a } else { format!("'{}'", a.replace('\'', "'\\''")) }
    };
    arguments.map(quoted).collect::<Vec<_>>().join(" ")
}

/// A number with its noun.
pub(crate) fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_can_be_pasted() {
        let line = |a: &[&str]| command_line(a.iter().map(|a| (*a).to_owned()));
        assert_eq!(line(&["lanework", "bench", "mayo/*/mayo1"]), "lanework bench 'mayo/*/mayo1'");
        assert_eq!(line(&["a b", "", "it's", "avx512+threads=2"]), "'a b' '' 'it'\\''s' avx512+threads=2");
        let kept = [
            "study",
            "--save=/home/somebody/records",
            "--save",
            "--remark=--save=x",
            "/home/somebody/magma.c",
            "--kuznyechik=/home/somebody/magma.c",
            "target/magma.c",
            "/bin/cat /home/somebody/file",
        ];
        let kept: Vec<String> = kept.iter().map(|a| placeless((*a).to_owned())).collect();
        let expected = [
            "study",
            "--save",
            "--save",
            "--remark=--save=x",
            "magma.c",
            "--kuznyechik=magma.c",
            "target/magma.c",
            "/bin/cat /home/somebody/file",
        ];
        assert_eq!(kept, expected);
    }
}
