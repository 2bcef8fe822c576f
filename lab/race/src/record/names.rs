//! How records are called and dated.
#![forbid(unsafe_code)]

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::ENDINGS;

/// The name of a record's file without its ending; `None` if it does not end as records do.
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

/// The time as `YYYY-MM-DDThh:mm:ssZ`. A calendar crate would bring ten others for these lines.
#[must_use]
pub fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Gregorian calendar in eras of 400 years, each year beginning in March, so that leap days come last.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates() {
        let at = |s| utc(UNIX_EPOCH + Duration::from_secs(s));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(at(1_709_251_200), "2024-03-01T00:00:00Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn slugs() {
        assert_eq!(slug("AMD EPYC 9R14 (family 25)"), "amd-epyc-9r14-family-25");
        assert_eq!(slug("../../etc"), "etc");
        assert_eq!(slug("…"), "unnamed");
    }
}
