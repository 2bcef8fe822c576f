//! The user's own texts in messages: short, and without anything that a terminal would obey.
#![forbid(unsafe_code)]

use clap::error::{ContextKind, ContextValue};

/// Characters of a text that a message repeats.
const MOST: usize = 60;

/// A text as a message repeats it: characters that do not print are escaped, and of a long text there is the beginning, and its length.
pub(crate) fn echoed(text: &str) -> String {
    cut(text, MOST)
}

/// The same with at most so many characters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let mut out = String::new();
    for c in text.chars().take(most) {
        match c {
            '\'' | '"' | '\\' => out.push(c),
            _ => out.extend(c.escape_debug()),
        }
    }
    let length = text.chars().count();
    if length > most {
        out.push_str(&format!("... ({length} characters)"));
    }
    out
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_and_harmless() {
        for plain in ["", "-0x1f", "a 'quoted' \\ word", "für", &"x".repeat(60)] {
            assert_eq!(echoed(plain), plain);
        }
        assert_eq!(echoed("\u{1b}[2J\n\u{202e}"), "\\u{1b}[2J\\n\\u{202e}");
        assert_eq!(echoed(&"é".repeat(61)), format!("{}... (61 characters)", "é".repeat(60)));
    }
}
