//! `mac`: the MAC of files.
#![forbid(unsafe_code)]

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use lanework_cpu::Threads;
use lanework_magma::modes::legacy::Imit;
use lanework_magma::modes::{Omac, OmacAcpkm, Tag};
use lanework_magma::{Engine, Error, Magma};
use lanework_study::{Failure, Outcome};
use lanework_suite::Job;
use lanework_suite::magma::Operation;

use super::args::{Hex, MacArgs, MacName};
use super::raw::{gost28147, limits, meshing};
use super::{refused_or_input, secrets, shown};
use crate::files::{Source, check_distinct};
use crate::ui::Session;

/// Bytes read at a time.
const PIECE: usize = 256 * 1024;

/// A MAC before its message. Each clone takes its own message; the key counts them all.
#[derive(Clone)]
enum Mac {
    Omac(Box<Omac<Magma>>),
    OmacAcpkm(Box<OmacAcpkm>),
    Imit(Box<Imit>),
}

impl Mac {
    fn new(session: &Session, args: &MacArgs, engine: Engine) -> Result<Mac, Failure> {
        if args.algorithm != MacName::Imit && (args.legacy.sbox.is_some() || args.legacy.meshing) {
            return Err(Failure::input("--sbox and --meshing are for --algorithm imit")
                .help("add it, or leave them out"));
        }
        if args.algorithm != MacName::OmacAcpkm && (args.section.is_some() || args.frequency.is_some()) {
            return Err(Failure::input("--section and --frequency are for --algorithm omac-acpkm")
                .help("add it, or leave them out"));
        }
        let wrong = |e: Error| match e {
            Error::TagLength(_) => {
                Failure::input(format!("--tag-length: {e}")).help("choose from 4 to 8 bytes")
            }
            Error::Section(_) => Failure::input(format!("--section: {e}")),
            Error::Parameter(_) => Failure::input(format!("--frequency: {e}")),
            _ => Failure::input(e),
        };
        let key = secrets::key_file(session, &args.key_file)?;
        let limits = limits(args.limit.key_limit);
        let magma = Magma::with(&key, engine).with_limits(limits);
        let length = args.tag_length.unwrap_or(8);
        match args.algorithm {
            MacName::Omac => Omac::with_key(magma, length).map(|mac| Mac::Omac(Box::new(mac))).map_err(wrong),
            MacName::OmacAcpkm => {
                let (Some(section), Some(frequency)) = (args.section, args.frequency) else {
                    return Err(Failure::input(
                        "--algorithm omac-acpkm: two parameters of the protocol are missing",
                    )
                    .help("name both --section and --frequency"));
                };
                let mac = OmacAcpkm::with_key(&magma, section, frequency, length).map_err(wrong)?;
                Ok(Mac::OmacAcpkm(Box::new(mac)))
            }
            MacName::Imit if args.tag_length.is_some_and(|n| n != 4) => {
                Err(Failure::input("--tag-length: the tag of IMIT has 4 bytes").help("leave it out"))
            }
            MacName::Imit => {
                let key = gost28147(&key, &args.legacy, engine)?.with_limits(limits);
                Ok(Mac::Imit(Box::new(Imit::with_key(&key, meshing(&args.legacy)))))
            }
        }
    }

    fn update(&mut self, data: &[u8]) -> Result<(), Error> {
        match self {
            Mac::Omac(mac) => mac.update(data),
            Mac::OmacAcpkm(mac) => mac.update(data),
            Mac::Imit(mac) => mac.update(data),
        }
    }

    fn finish(self) -> Tag {
        match self {
            Mac::Omac(mac) => mac.finish(),
            Mac::OmacAcpkm(mac) => mac.finish(),
            Mac::Imit(mac) => mac.finish(),
        }
    }

    fn verify(self, tag: &[u8]) -> Result<(), Error> {
        match self {
            Mac::Omac(mac) => mac.verify(tag),
            Mac::OmacAcpkm(mac) => mac.verify(tag),
            Mac::Imit(mac) => mac.verify(tag),
        }
    }

    /// Reads a whole file.
    fn read(&mut self, path: &Path, progress: &indicatif::ProgressBar) -> Result<(), Failure> {
        let mut source = Source::open(path)?;
        let name = source.name().to_owned();
        let mut buffer = vec![0; PIECE];
        let mut empty = true;
        let failed = |e: Error| match e {
            Error::KeyExhausted { .. } => exhausted(&name, &e),
            _ => refused_or_input(&name, &e),
        };
        loop {
            match source.file().read(&mut buffer) {
                Ok(0) if empty && matches!(self, Mac::Imit(_)) => {
                    let what =
                        "empty: its MAC by GOST 28147-89 is the same under every key and proves nothing";
                    return Err(Failure::input(format!("{name}: {what}"))
                        .help("use --algorithm omac, or data that is not empty"));
                }
                Ok(0) => return Ok(()),
                Ok(n) => {
                    empty = false;
                    self.update(&buffer[..n]).map_err(failed)?;
                    progress.inc(n as u64);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Failure::input(format!("{name}: cannot be read: {e}"))),
            }
        }
    }
}

fn exhausted(name: &str, e: &Error) -> Failure {
    Failure::input(format!("{name}: {e}"))
        .help("use --algorithm omac-acpkm, which changes its key, or raise --key-limit")
}

/// Bytes of the blocks of all files, if their lengths are known.
fn known(files: &[PathBuf]) -> Option<u64> {
    files.iter().try_fold(0u64, |sum, path| {
        let found =
            std::fs::metadata(path).ok().filter(|found| found.is_file() && path.as_os_str() != "-")?;
        Some(sum.saturating_add(found.len().div_ceil(8).saturating_mul(8)))
    })
}

pub(super) fn run(session: &Session, args: MacArgs) -> Result<Outcome, Failure> {
    check_distinct(args.files.iter().map(PathBuf::as_path).chain([args.key_file.as_path()]), [])?;
    // The longest file decides.
    let longest =
        args.files.iter().map(|file| std::fs::metadata(file).map_or(0, |m| m.len())).max().unwrap_or(0);
    let engine =
        session.engine(Job::Magma(Operation::Omac, usize::try_from(longest).unwrap_or(usize::MAX)))?;
    let mac = Mac::new(session, &args, engine)?;
    let lengths: Option<u64> =
        args.files.iter().map(|f| std::fs::metadata(f).ok().filter(|m| m.is_file()).map(|m| m.len())).sum();
    // Files of known length are refused before the first is read, unless the key changes on the way.
    let fixed = match args.algorithm {
        MacName::Omac => true,
        MacName::OmacAcpkm => false,
        MacName::Imit => !args.legacy.meshing,
    };
    let limit = limits(args.limit.key_limit).bytes();
    if fixed && known(&args.files).is_some_and(|bytes| bytes > limit) {
        let name = match args.files.as_slice() {
            [file] => lanework_study::text::shown(file),
            files => format!("{} files", files.len()),
        };
        return Err(exhausted(&name, &Error::KeyExhausted { limit }));
    }
    let bar = session.progress_bytes(lengths, "authenticating");
    if let Some(Hex(tag)) = &args.verify {
        let [file] = args.files.as_slice() else {
            return Err(Failure::input(format!("--verify: one MAC for {} files", args.files.len()))
                .help("name only one"));
        };
        let mut state = mac;
        state.read(file, &bar)?;
        bar.finish_and_clear();
        let valid = match state.verify(tag) {
            Ok(()) => true,
            Err(Error::Refused) => false,
            Err(e) => {
                return Err(
                    Failure::input(format!("--verify: {e}")).help("--tag-length sets the length of tags")
                );
            }
        };
        if session.json {
            println!(
                "{}",
                session.with_warnings(
                    serde_json::json!({ "file": shown(file), "valid": valid, "backend": engine.name() })
                )
            );
        } else {
            println!(
                "{}: {}",
                lanework_study::text::shown(file),
                if valid { "MAC is valid" } else { "MAC REFUSED" }
            );
        }
        return Ok(Outcome::from_bool(valid));
    }
    // A MAC is serial within a file, so threads serve several files.
    let mut jobs: Vec<(&Path, Result<Option<Tag>, Failure>)> =
        args.files.iter().map(|f| (f.as_path(), Ok(None))).collect();
    Threads::Own(args.threads)
        .for_each(&mut jobs, |_, (path, result)| {
            let mut state = mac.clone();
            *result = state.read(path, &bar).map(|()| Some(state.finish()));
        })
        .map_err(Failure::unavailable)?;
    bar.finish_and_clear();
    let mut results = Vec::with_capacity(jobs.len());
    for (path, result) in jobs {
        let Some(tag) = result? else { continue };
        let text: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        if session.json {
            results.push(serde_json::json!({ "file": shown(path), "mac": text }));
        } else {
            println!("{text}  {}", lanework_study::text::shown(path));
        }
    }
    if session.json {
        let object = serde_json::json!({ "backend": engine.name(), "results": results });
        println!("{}", session.with_warnings(object));
    }
    Ok(Outcome::Yes)
}
