//! Messages of the argument parser, cut to a readable length.
#![forbid(unsafe_code)]

use clap::error::{ContextKind, ContextValue};
use lanework_study::Message;
use lanework_study::text::echoed;

/// The error in the arguments, in the form of all errors of the command. None if the parser's text is not an error: help, the
/// version, or a list of commands.
pub(crate) fn message(usage: &clap::Error) -> Option<Message> {
    let text = usage.render().to_string();
    let text = text.strip_prefix("error: ")?;
    let (what, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    let tip = rest.lines().find_map(|line| line.trim_start().strip_prefix("tip: "));
    let asked = rest.lines().find_map(|line| line.strip_prefix("Usage: "));
    let help = match (tip, asked) {
        (Some(tip), _) => tip.to_owned(),
        (None, Some(asked)) => format!("write {asked}; --help explains it"),
        (None, None) => "--help lists the arguments".to_owned(),
    };
    // Values and missing arguments are on lines of their own.
    let what = what.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    Some(Message::new(what).help(help))
}

/// Shortens the user's words in a message about the arguments.
pub(crate) fn shorten(usage: &mut clap::Error) {
    for kind in [
        ContextKind::InvalidValue,
        ContextKind::InvalidArg,
        ContextKind::InvalidSubcommand,
        ContextKind::TrailingArg,
    ] {
        let Some(ContextValue::String(text)) = usage.get(kind) else { continue };
        let short = echoed(text);
        if short != *text {
            usage.insert(kind, ContextValue::String(short));
            // The suggestion repeats the text.
            usage.remove(ContextKind::Suggested);
        }
    }
}
