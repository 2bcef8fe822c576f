//! Texts of users and of foreign records, and file names, in messages: short, and without anything that a terminal would obey.
#![forbid(unsafe_code)]

use std::path::Path;

/// The most characters of a text that a message repeats.
const MOST: usize = 60;

/// A text as a message repeats it: escaped, and a long text cut to its beginning and its length.
#[must_use]
pub fn echoed(text: &str) -> String {
    cut(text, MOST)
}

/// The same with at most `most` characters.
#[must_use]
pub fn cut(text: &str, most: usize) -> String {
    let mut out: String = text.chars().take(most).flat_map(harmless).collect();
    let length = text.chars().count();
    if length > most {
        out.push_str(&format!("... ({length} characters)"));
    }
    out
}

/// The whole text, escaped in the same way.
#[must_use]
pub fn whole(text: &str) -> String {
    text.chars().flat_map(harmless).collect()
}

/// A file's name in a line of text, escaped so that it stays on that line.
#[must_use]
pub fn shown(path: &Path) -> String {
    whole(&path.to_string_lossy())
}

/// A character as it is, or escaped as in Rust's strings: one that would end the line, move the cursor or turn the direction of
/// writing.
fn harmless(c: char) -> impl Iterator<Item = char> {
    // Beside the control characters: line and paragraph separators, and what changes the direction of text.
    let moves = matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let (escaped, plain) =
        if c.is_control() || moves { (Some(c.escape_default()), None) } else { (None, Some(c)) };
    escaped.into_iter().flatten().chain(plain)
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

    #[test]
    fn a_name_stays_on_its_line() {
        let shown = |name: &str| shown(Path::new(name));
        assert_eq!(shown("a b/ü.sig"), "a b/ü.sig");
        assert_eq!(shown("a: signature is valid\nb"), "a: signature is valid\\nb");
        assert_eq!(shown("\x1b[2K\r\u{9b}A\u{202e}\u{2028}"), "\\u{1b}[2K\\r\\u{9b}A\\u{202e}\\u{2028}");
    }
}
