//! Messages of the parser of arguments, cut to a readable length.
#![forbid(unsafe_code)]

use clap::error::{ContextKind, ContextValue};
use lanework_study::text::echoed;

/// Cuts what the user wrote in a message about the arguments.
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
            // Advice repeats the text.
            usage.remove(ContextKind::Suggested);
        }
    }
}
