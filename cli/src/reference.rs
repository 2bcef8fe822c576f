//! `docs/cli.md`: the reference of every command, as the parser itself defines it.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};

use crate::args::Cli;

const HEAD: &str = "\
<!-- Generated from the command's own definitions. `LANEWORK_BLESS=1 cargo test -p lanework --bins reference` rewrites it. -->

# Command reference

Every command and option. The [guide](guide.md) groups them by job.
";

/// One argument: its forms, what it does, and what it takes.
fn argument(arg: &Arg) -> String {
    let mut forms: Vec<String> = arg.get_short().map(|c| format!("-{c}")).into_iter().collect();
    forms.extend(arg.get_long().map(|long| format!("--{long}")));
    let names: Vec<String> =
        arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect();
    let mut form = if forms.is_empty() { names.join(" ") } else { forms.join(", ") };
    if !forms.is_empty() && arg.get_action().takes_values() {
        let value = names.join(" ");
        form += &if arg.is_require_equals_set() { format!("[={value}]") } else { format!(" {value}") };
    }
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut out = format!("- `{form}`: {}", help.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut more = Vec::new();
    if arg.is_required_set() {
        more.push("required".to_owned());
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|v| v.to_string_lossy()).collect();
    if arg.get_action().takes_values() && defaults.iter().any(|d| !d.is_empty()) {
        more.push(format!("default `{}`", defaults.join(" ")));
    }
    if let Some(variable) = arg.get_env() {
        more.push(format!("variable `{}`", variable.to_string_lossy()));
    }
    if !more.is_empty() {
        out += &format!(" ({})", more.join("; "));
    }
    out.push('\n');
    if arg.get_action().takes_values() {
        for value in arg.get_possible_values().iter().filter(|v| !v.is_hide_set()) {
            let help = value.get_help().map(|h| format!(": {h}")).unwrap_or_default();
            out += &format!("  - `{}`{help}\n", value.get_name());
        }
    }
    out
}

/// A command and those below it. Options of every command are listed only with the first.
fn section(command: &Command, path: &str, depth: usize, out: &mut String) {
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").split_whitespace().collect::<Vec<_>>().join(" ");
    *out += &format!("\n{} `{path}`\n\n{about}\n\n```text\n{usage}\n```\n", "#".repeat(depth.min(4)));
    let own = |arg: &&Arg| !arg.is_hide_set() && (depth == 2 && path == "lanework" || !arg.is_global_set());
    let arguments: Vec<&Arg> = command.get_arguments().filter(own).collect();
    let arguments = arguments.into_iter().filter(|arg| !matches!(arg.get_id().as_str(), "help" | "version"));
    let mut groups: Vec<(Option<&str>, String)> = Vec::new();
    for arg in arguments {
        let heading = arg.get_help_heading();
        match groups.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, list)) => *list += &argument(arg),
            None => groups.push((heading, argument(arg))),
        }
    }
    for (heading, list) in groups {
        *out += &heading.map_or(String::new(), |heading| format!("\n{heading}:\n"));
        *out += &format!("\n{list}");
    }
    if let Some(after) = command.get_after_help().map(ToString::to_string) {
        let after = after.trim_end();
        // Indented lists would run together.
        *out +=
            &if after.contains('\n') { format!("\n```text\n{after}\n```\n") } else { format!("\n{after}\n") };
    }
    for inner in command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
        let depth = if path == "lanework" { 2 } else { depth + 1 };
        section(inner, &format!("{path} {}", inner.get_name()), depth, out);
    }
}

fn rendered(mut command: Command) -> String {
    command.build();
    let mut out = HEAD.to_owned();
    section(&command, "lanework", 2, &mut out);
    out
}

#[test]
fn the_reference_has_every_command_and_option_and_nothing_hidden() {
    let text = rendered(Cli::command());
    for part in
        ["## `lanework check`", "### `lanework mayo sign`", "- `--leaks`", "variable `LANEWORK_PEERS`"]
    {
        assert!(text.contains(part), "{part}");
    }
    assert!(!text.contains("__race"));
    assert_eq!(text.matches("- `--json`").count(), 1, "an option of every command is listed once");
    let planted = Command::new("lanework").subcommand(
        Command::new("plant")
            .arg(Arg::new("deep").long("deep").value_name("N").default_value("3").help("Dig"))
            .arg(Arg::new("save").long("save").value_name("DIR").num_args(0..=1).require_equals(true))
            .arg(Arg::new("red").long("red").value_name("N").help("Paint").help_heading("Colours"))
            .arg(Arg::new("never").long("never").hide(true)),
    );
    let text = rendered(planted);
    assert!(text.contains("## `lanework plant`\n\n\n\n```text\nlanework plant [OPTIONS]\n```\n\n- `--deep N`: Dig (default `3`)\n- `--save[=DIR]`: \n\nColours:\n\n- `--red N`: Paint\n"), "{text}");
    assert!(!text.contains("never"));
}

#[test]
fn the_committed_reference_is_this_one() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md");
    let due = rendered(Cli::command());
    if std::env::var_os("LANEWORK_BLESS").is_some() {
        fs::write(&file, due).expect("written");
        return;
    }
    let found = fs::read_to_string(&file).expect("docs/cli.md");
    assert!(
        found == due,
        "docs/cli.md is out of date; LANEWORK_BLESS=1 cargo test -p lanework --bins reference rewrites it"
    );
}
