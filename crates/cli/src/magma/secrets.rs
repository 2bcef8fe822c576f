//! Key files and passphrases.
#![forbid(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

use lanework_magma::container::Secret;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use zeroize::{Zeroize, Zeroizing};

use crate::magma::args::{SecretArgs, digit, hex};
use crate::outcome::Failure;
use crate::ui::Session;
use crate::{files, secret_file};

/// Longer than any key file: 64 digits and a line end.
const KEY_FILE_LIMIT: u64 = 256;
/// Longer than any passphrase.
const PASSPHRASE_LIMIT: u64 = 4096;

/// A key from a file of 32 raw bytes or of 64 hexadecimal digits.
pub(crate) fn key_file(session: &Session, path: &Path) -> Result<Zeroizing<[u8; 32]>, Failure> {
    secret_file::warn_if_shared(session, path);
    let bytes = files::read_small(path, KEY_FILE_LIMIT)?;
    let mut key = Zeroizing::new([0; 32]);
    if bytes.len() == 32 {
        // Only the answer is a branch, and of a key that was drawn at random it is no.
        if bytes.iter().fold(0, |all, &byte| all | digit(byte)) <= 15 {
            return Err(Failure::file(
                path,
                "32 hexadecimal digits, which are 128 bits of a key that has 256; write all 64 digits, \
                 and so also if these 32 characters are the key",
            ));
        }
        key.copy_from_slice(&bytes);
    } else {
        // An editor leaves a line end behind, of one kind or the other.
        let line = bytes.strip_suffix(b"\n").map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let digits = line.unwrap_or(&bytes);
        if digits.len() != 64 {
            return Err(Failure::file(
                path,
                format!("{} bytes; a key file holds 32 raw bytes or 64 hexadecimal digits", bytes.len()),
            ));
        }
        let bytes = Zeroizing::new(hex(digits).map_err(|e| Failure::file(path, e))?);
        key.copy_from_slice(&bytes);
    }
    if key.iter().fold(0, |all, &byte| all | (byte ^ key[0])) == 0 {
        session.warn(format!(
            "{}: all bytes of this key are the same; draw one at random, from /dev/urandom say",
            crate::ui::shown(path)
        ));
    }
    Ok(key)
}

/// The secret of a container. A new one's passphrase is asked for twice.
pub(crate) fn secret(session: &Session, args: &SecretArgs, new: bool) -> Result<Secret, Failure> {
    if let Some(path) = &args.key_file {
        return Ok(Secret::Key(key_file(session, path)?));
    }
    let text = match &args.passphrase_file {
        Some(path) => {
            secret_file::warn_if_shared(session, path);
            let mut bytes = files::read_small(path, PASSPHRASE_LIMIT)?;
            strip_line_end(&mut bytes);
            if bytes.contains(&b'\n') {
                return Err(Failure::file(path, "more than one line; a passphrase is one"));
            }
            if bytes.is_empty() {
                return Err(Failure::file(path, "the passphrase is empty"));
            }
            bytes
        }
        None => prompted(new)?,
    };
    Ok(Secret::Passphrase(text))
}

fn strip_line_end(bytes: &mut Vec<u8>) {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
}

/// The terminal without echo, until it is dropped.
struct Silent {
    terminal: File,
    before: Termios,
}

impl Silent {
    fn new(terminal: File) -> std::io::Result<Silent> {
        let before = tcgetattr(&terminal)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        silent.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(&terminal, OptionalActions::Flush, &silent)?;
        Ok(Silent { terminal, before })
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing back.
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}

/// A passphrase from the terminal itself: standard input may be the data.
fn prompted(twice: bool) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let none =
        || Failure::input("there is no terminal to ask for the passphrase at; use --passphrase-file FILE");
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty").map_err(|_| none())?;
    let failed = |e: std::io::Error| Failure::input(format!("the terminal: {e}"));
    let ask = |question: &str| -> Result<Zeroizing<Vec<u8>>, Failure> {
        let silent = Silent::new(terminal.try_clone().map_err(failed)?).map_err(failed)?;
        let mut out = &silent.terminal;
        out.write_all(question.as_bytes()).map_err(failed)?;
        let mut line = Zeroizing::new(Vec::with_capacity(PASSPHRASE_LIMIT as usize + 1));
        // A terminal gives a line at a time, so that nothing of the next is lost in this buffer, which is wiped below.
        let mut reader = BufReader::with_capacity(1, &silent.terminal);
        reader.by_ref().take(PASSPHRASE_LIMIT).read_until(b'\n', &mut line).map_err(failed)?;
        strip_line_end(&mut line);
        if line.is_empty() {
            return Err(Failure::input("the passphrase is empty"));
        }
        Ok(line)
    };
    let mut first = ask("passphrase: ")?;
    if twice && *ask("the same again: ")? != *first {
        first.zeroize();
        return Err(Failure::input("the two passphrases differ; nothing was done"));
    }
    Ok(first)
}
