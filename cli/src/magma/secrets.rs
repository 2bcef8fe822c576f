//! Key files and passphrases.
#![forbid(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use lanework_cpu::memory::wipe_stack_and_registers;
use lanework_magma::container::Secret;
use lanework_study::{Failure, Message};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use zeroize::Zeroizing;

use crate::magma::args::{SecretArgs, digit, hex_into};
use crate::signals::{self, Moment};
use crate::ui::Session;
use crate::{files, secret_file};

/// Longer than any key file: 64 digits and a line end.
const KEY_FILE_LIMIT: u64 = 256;
/// Longer than any passphrase.
const PASSPHRASE_LIMIT: u64 = 4096;

/// A key from a file of 32 raw bytes or of 64 hexadecimal digits.
///
/// On the heap from the start: a value that moves leaves a copy of itself on the stack, which ends up in whatever is next made
/// of uninitialised stack.
pub(crate) fn key_file(session: &Session, path: &Path) -> Result<Box<Zeroizing<[u8; 32]>>, Failure> {
    secret_file::warn_if_shared(session, path);
    let bytes = files::read_small(path, KEY_FILE_LIMIT)?;
    let mut key = Box::new(Zeroizing::new([0; 32]));
    if bytes.len() == 32 {
        // The branch depends only on whether all 32 bytes are digits, which no random key is.
        if bytes.iter().fold(0, |all, &byte| all | digit(byte)) <= 15 {
            return Err(Failure::file(path, "32 hexadecimal digits: 128 bits of a key that has 256")
                .help("write all 64 digits, even if these 32 characters are the key"));
        }
        key.copy_from_slice(&bytes);
    } else {
        // An editor leaves a line end behind, LF or CRLF.
        let line = bytes.strip_suffix(b"\n").map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let digits = line.unwrap_or(&bytes);
        if digits.len() != 64 {
            return Err(Failure::file(path, format!("not a key: {} bytes", bytes.len()))
                .help("a key file holds 32 raw bytes or 64 hexadecimal digits"));
        }
        // In place: a vector that grows would leave parts of the key behind.
        hex_into(digits, &mut **key).map_err(|e| Failure::file(path, e))?;
    }
    if key.iter().fold(0, |all, &byte| all | (byte ^ key[0])) == 0 {
        let warning =
            Message::new("all bytes of this key are the same").at(lanework_study::text::shown(path));
        session.warn(warning.help("draw one at random, from /dev/urandom for example"));
    }
    Ok(key)
}

/// The secret of a container, on the heap from the start as in [`key_file`]. For a new container, a passphrase is asked for twice.
pub(crate) fn secret(session: &Session, args: &SecretArgs, new: bool) -> Result<Box<Secret>, Failure> {
    let secret = read_secret(session, args, new);
    // Reading left the bytes on the stack below.
    wipe_stack_and_registers::<4096>();
    secret
}

#[inline(never)]
fn read_secret(session: &Session, args: &SecretArgs, new: bool) -> Result<Box<Secret>, Failure> {
    if let Some(path) = &args.key_file {
        let read = key_file(session, path)?;
        let mut secret = Box::new(Secret::Key(Zeroizing::new([0; 32])));
        if let Secret::Key(key) = &mut *secret {
            key.copy_from_slice(&**read);
        }
        return Ok(secret);
    }
    let text = match &args.passphrase_file {
        Some(path) => {
            secret_file::warn_if_shared(session, path);
            let mut bytes = files::read_small(path, PASSPHRASE_LIMIT)?;
            strip_line_end(&mut bytes);
            if bytes.contains(&b'\n') {
                return Err(Failure::file(path, "more than one line").help("a passphrase is one line"));
            }
            if bytes.is_empty() {
                return Err(Failure::file(path, "the passphrase is empty").help("write one into the file"));
            }
            bytes
        }
        None => prompted(new)?,
    };
    Ok(Box::new(Secret::Passphrase(text)))
}

fn strip_line_end(bytes: &mut Vec<u8>) {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
}

/// The terminal without echo, until it is dropped or a signal ends or suspends the command.
struct Silent {
    number: u64,
    terminal: Arc<File>,
    before: Termios,
}

impl Silent {
    /// Asks a question. It is asked again after a suspension, which discards what was typed.
    fn new(terminal: &Arc<File>, question: &'static str) -> io::Result<Silent> {
        let before = tcgetattr(terminal)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        silent.local_modes.insert(LocalModes::ECHONL);
        let (there, old) = (Arc::clone(terminal), before.clone());
        let ask = move || -> io::Result<()> {
            tcsetattr(&*there, OptionalActions::Flush, &silent)?;
            (&*there).write_all(question.as_bytes())
        };
        let there = Arc::clone(terminal);
        // No signal comes between turning the echo off and registering the action that restores it.
        let mut held = signals::hold();
        ask()?;
        let number = held.on(move |moment| {
            // A terminal that is gone needs nothing.
            let _ = match moment {
                Moment::Resume => ask(),
                Moment::End | Moment::Suspend => {
                    tcsetattr(&*there, OptionalActions::Flush, &old).map_err(io::Error::from)
                }
            };
        });
        Ok(Silent { number, terminal: Arc::clone(terminal), before })
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        let mut held = signals::hold();
        held.forget(self.number);
        // A terminal that is gone needs nothing.
        let _ = tcsetattr(&*self.terminal, OptionalActions::Flush, &self.before);
    }
}

/// A line without its end, from a terminal, which gives one line at a time.
fn line(terminal: &File) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut line = Zeroizing::new(vec![0; PASSPHRASE_LIMIT as usize]);
    let mut filled = 0;
    while filled < line.len() && !line[..filled].ends_with(b"\n") {
        match (&*terminal).read(&mut line[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    line.truncate(filled);
    strip_line_end(&mut line);
    Ok(line)
}

/// A passphrase from the terminal itself: standard input may be the data.
fn prompted(twice: bool) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let none = || Failure::input("no terminal to ask for the passphrase").help("use --passphrase-file FILE");
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty").map_err(|_| none())?;
    let terminal = Arc::new(terminal);
    signals::listen_for_suspension()?;
    let failed = |e: io::Error| Failure::input(format!("the terminal: {e}"));
    let ask = |question: &'static str| -> Result<Zeroizing<Vec<u8>>, Failure> {
        let _silent = Silent::new(&terminal, question).map_err(failed)?;
        let line = line(&terminal).map_err(failed)?;
        if line.is_empty() {
            return Err(Failure::input("the passphrase is empty").help("type at least one character"));
        }
        Ok(line)
    };
    let first = ask("passphrase: ")?;
    if twice && *ask("passphrase again: ")? != *first {
        return Err(
            Failure::input("the two passphrases differ").help("run the command again: nothing was written")
        );
    }
    Ok(first)
}
