//! `wrap` and `unwrap`: a key on its way, by KExp15 and KImp15.
#![forbid(unsafe_code)]

use std::path::Path;

use lanework_magma::Error;
use lanework_magma::kexp15::{Kexp15, OVERHEAD};

use super::args::{Hex, WrapArgs};
use super::{only_one_stream, report, secrets, shown, target};
use crate::files::{self, Access};
use crate::outcome::{Failure, Outcome};
use crate::ui::Session;

/// The keys that KExp15 wraps here: Magma's own.
const KEY: usize = 32;

fn begin(session: &Session, args: &WrapArgs) -> Result<(Kexp15, &'static str), Failure> {
    only_one_stream([args.mac_key_file.as_path(), &*args.enc_key_file, &*args.input])?;
    files::may_write(target(args.output.as_deref()), args.force)?;
    let choice = session.magma_choice("magma/kexp15")?;
    let (mac, encrypt) =
        (secrets::key_file(session, &args.mac_key_file)?, secrets::key_file(session, &args.enc_key_file)?);
    let keys = Kexp15::new(&mac, &encrypt, choice).map_err(|e| {
        Failure::file(&args.enc_key_file, format!("{e}; draw a second key, independent of --mac-key-file's"))
    })?;
    Ok((keys, choice.name()))
}

fn failure(path: &Path, e: &Error) -> Failure {
    match e {
        Error::NonceLength { .. } => Failure::input(format!("--iv: {e}")),
        Error::Refused => Failure::refused(format!(
            "{}: refused: not what was wrapped with these keys and this IV; nothing was given out",
            crate::ui::shown(path)
        )),
        _ => Failure::file(path, e),
    }
}

pub(super) fn wrap(session: &Session, args: &WrapArgs) -> Result<Outcome, Failure> {
    let (keys, backend) = begin(session, args)?;
    let Hex(iv) = &args.iv;
    let key = secrets::key_file(session, &args.input)?;
    let wrapped = keys.wrap(iv, key.as_slice()).map_err(|e| failure(&args.input, &e))?;
    put(session, args, backend, &wrapped, Access::Public)
}

pub(super) fn unwrap(session: &Session, args: &WrapArgs) -> Result<Outcome, Failure> {
    let (keys, backend) = begin(session, args)?;
    let Hex(iv) = &args.iv;
    let wrapped = files::read_small(&args.input, 256)?;
    if wrapped.len() != KEY + OVERHEAD {
        return Err(Failure::refused(format!(
            "{}: refused: {} bytes; a wrapped key has {}; nothing was given out",
            crate::ui::shown(&args.input),
            wrapped.len(),
            KEY + OVERHEAD
        )));
    }
    let key = keys.unwrap(iv, &wrapped).map_err(|e| failure(&args.input, &e))?;
    put(session, args, backend, &key, Access::Private)
}

fn put(
    session: &Session,
    args: &WrapArgs,
    backend: &str,
    bytes: &[u8],
    access: Access,
) -> Result<Outcome, Failure> {
    let output = target(args.output.as_deref());
    files::write(output, bytes, access, args.force)?;
    let object = serde_json::json!({
        "input": shown(&args.input), "output": shown(output), "bytes_written": bytes.len(), "backend": backend,
    });
    report(session, output, object);
    Ok(Outcome::Yes)
}
