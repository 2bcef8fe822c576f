//! `wrap` and `unwrap`: a key for transport, by KExp15 and KImp15.
#![forbid(unsafe_code)]

use std::path::Path;

use lanework_magma::Error;
use lanework_magma::kexp15::{Kexp15, OVERHEAD};
use lanework_study::{Failure, Outcome};
use lanework_suite::Job;
use lanework_suite::magma::Operation;

use super::args::{Hex, WrapArgs};
use super::{report, secrets, shown, target};
use crate::files::{Access, Sink, check_distinct, read_small};
use crate::ui::Session;

/// Bytes of the keys that KExp15 wraps here: those of Magma.
const KEY: usize = 32;

/// The keys, the backend's name, and where the result goes.
fn begin<'a>(
    session: &Session,
    args: &'a WrapArgs,
    access: Access,
) -> Result<(Kexp15, &'static str, Sink<'a>), Failure> {
    let output = target(args.output.as_deref());
    check_distinct([args.mac_key_file.as_path(), &*args.enc_key_file, &*args.input], [output])?;
    let sink = Sink::create(output, access, args.force)?;
    let engine = session.engine(Job::Magma(Operation::Omac, KEY))?;
    let (mac, encrypt) =
        (secrets::key_file(session, &args.mac_key_file)?, secrets::key_file(session, &args.enc_key_file)?);
    let keys = Kexp15::new(&mac, &encrypt, engine).map_err(|e| {
        Failure::file(&args.enc_key_file, e).help("draw a second key, independent of --mac-key-file's")
    })?;
    Ok((keys, engine.name(), sink))
}

fn failure(path: &Path, e: &Error) -> Failure {
    match e {
        Error::NonceLength { .. } => {
            Failure::input(format!("--iv: {e}")).help("give it the length that wrapping takes")
        }
        Error::Refused => Failure::refused(format!(
            "{}: refused: not what was wrapped with these keys and this IV",
            lanework_study::text::shown(path)
        ))
        .help("check keys, IV and file: nothing was written"),
        _ => Failure::file(path, e),
    }
}

pub(super) fn wrap(session: &Session, args: &WrapArgs) -> Result<Outcome, Failure> {
    let (keys, backend, sink) = begin(session, args, Access::Public)?;
    let Hex(iv) = &args.iv;
    let key = secrets::key_file(session, &args.input)?;
    let wrapped = keys.wrap(iv, key.as_slice()).map_err(|e| failure(&args.input, &e))?;
    put(session, args, backend, sink, &wrapped)
}

pub(super) fn unwrap(session: &Session, args: &WrapArgs) -> Result<Outcome, Failure> {
    let (keys, backend, sink) = begin(session, args, Access::Private)?;
    let Hex(iv) = &args.iv;
    let wrapped = read_small(&args.input, 256)?;
    if wrapped.len() != KEY + OVERHEAD {
        return Err(Failure::refused(format!(
            "{}: refused: {} bytes, a wrapped key has {}",
            lanework_study::text::shown(&args.input),
            wrapped.len(),
            KEY + OVERHEAD
        ))
        .help("name a file that `lanework magma wrap` wrote: nothing was written"));
    }
    let key = keys.unwrap(iv, &wrapped).map_err(|e| failure(&args.input, &e))?;
    put(session, args, backend, sink, &key)
}

fn put(
    session: &Session,
    args: &WrapArgs,
    backend: &str,
    sink: Sink<'_>,
    bytes: &[u8],
) -> Result<Outcome, Failure> {
    let output = target(args.output.as_deref());
    sink.put(bytes)?;
    let object = serde_json::json!({
        "input": shown(&args.input), "output": shown(output), "bytes_written": bytes.len(), "backend": backend,
    });
    report(session, output, object);
    Ok(Outcome::Yes)
}
