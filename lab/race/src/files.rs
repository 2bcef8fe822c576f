//! Files that somebody else wrote, such as a device that never ends.
#![forbid(unsafe_code)]

use std::io::{self, Read};

/// All that a file gives, if that is at most `most` bytes.
///
/// # Errors
/// Reading fails, or there is more.
pub fn read_at_most(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("longer than {most} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_refused() {
        assert_eq!(read_at_most(&b"four"[..], 4).expect("all of it"), b"four");
        let endless = read_at_most(io::repeat(0), 4).expect_err("it is too long");
        assert_eq!(endless.to_string(), "longer than 4 bytes");
    }
}
