//! How records are named and dated.
#![forbid(unsafe_code)]

use std::path::Path;
use std::time::SystemTime;

use super::ENDINGS;

/// The name of a record's file without its ending; `None` if the ending is not a record's.
#[must_use]
pub fn stem(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    ENDINGS.iter().find_map(|ending| name.strip_suffix(ending))
}

/// A name with only lower-case letters, digits, dots and dashes, safe as a file name; never empty.
#[must_use]
pub fn slug(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_alphanumeric() || (c == '.' && !out.is_empty()) {
            out.push(c.to_ascii_lowercase());
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
    }
    let out = out.trim_end_matches(['-', '.']);
    if out.is_empty() { "unnamed".into() } else { out.into() }
}

/// The time as `YYYY-MM-DDThh:mm:ssZ`.
#[must_use]
pub fn utc(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs() {
        assert_eq!(slug("AMD EPYC 9R14 (family 25)"), "amd-epyc-9r14-family-25");
        assert_eq!(slug("../../etc"), "etc");
        assert_eq!(slug("…"), "unnamed");
    }
}
