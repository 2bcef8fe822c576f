//! `lanework magma`: the jobs themselves, on files and pipes.
#![forbid(unsafe_code)]

use std::path::Path;

use lanework_magma::container::Error as ContainerError;
use lanework_study::{Failure, Outcome};
use lanework_suite::Job;
use lanework_suite::magma::Operation;

use crate::ui::Session;

pub(crate) mod args;
mod container;
mod flow;
mod mac;
mod mgm;
mod raw;
mod secrets;
mod wrap;

use args::{MagmaArgs, MagmaJob, RawArgs, StreamArgs};
use flow::Totals;

pub(crate) fn run(session: &Session, args: MagmaArgs) -> Result<Outcome, Failure> {
    // A damaged profile is reported before any file is touched, not passed over.
    session.profile.as_ref().map_err(Clone::clone)?;
    let piped = args.job.output().is_some_and(|output| output.as_os_str() == "-");
    // Nothing but the result may be written where the result goes.
    dispatch(session, args.job).map_err(|e| if piped { e.beside_data() } else { e })
}

fn dispatch(session: &Session, job: MagmaJob) -> Result<Outcome, Failure> {
    match job {
        MagmaJob::Encrypt(a) if a.raw.mode.is_some() => {
            raw::run(session, raw::Way::Encrypt, &a.secret, a.raw, &a.stream)
        }
        MagmaJob::Decrypt(a) if a.raw.mode.is_some() => {
            raw::run(session, raw::Way::Decrypt, &a.secret, a.raw, &a.stream)
        }
        MagmaJob::Encrypt(a) => only_for_modes(&a.raw).and_then(|()| container::encrypt(session, &a)),
        MagmaJob::Decrypt(a) => only_for_modes(&a.raw).and_then(|()| container::decrypt(session, &a)),
        MagmaJob::Seal(a) => mgm::seal(session, &a.message),
        MagmaJob::Open(a) => mgm::open(session, &a.message),
        MagmaJob::Mac(a) => mac::run(session, a),
        MagmaJob::Wrap(a) => wrap::wrap(session, &a),
        MagmaJob::Unwrap(a) => wrap::unwrap(session, &a),
    }
}

impl MagmaJob {
    /// Where the result goes, for jobs whose result is bytes.
    fn output(&self) -> Option<&Path> {
        let named = match self {
            MagmaJob::Encrypt(a) => &a.stream.output,
            MagmaJob::Decrypt(a) => &a.stream.output,
            MagmaJob::Seal(a) => &a.message.stream.output,
            MagmaJob::Open(a) => &a.message.stream.output,
            MagmaJob::Wrap(a) | MagmaJob::Unwrap(a) => &a.output,
            MagmaJob::Mac(_) => return None,
        };
        Some(target(named.as_deref()))
    }
}

/// Refuses options that a container cannot use: ignoring them would give an unexpected result.
fn only_for_modes(raw: &RawArgs) -> Result<(), Failure> {
    if raw.legacy.sbox.is_some() || raw.legacy.meshing {
        return Err(Failure::input("--sbox and --meshing are for a bare mode of GOST 28147-89")
            .help("add --mode and --cipher gost28147, or leave them out"));
    }
    if raw.limit.key_limit.is_some() {
        return Err(Failure::input("--key-limit is for --mode: a container has a key for each chunk")
            .help("leave it out, or add --mode"));
    }
    Ok(())
}

/// Standard output, unless a file is named.
fn target(output: Option<&Path>) -> &Path {
    output.unwrap_or(Path::new("-"))
}

/// Keeps ciphertext off a terminal, unless `-o -` asks for it.
fn no_terminal(stream: &StreamArgs) -> Result<(), Failure> {
    crate::ui::no_terminal(stream.output.as_deref())
}

/// The JSON line goes to standard output unless that carries the result.
fn report(session: &Session, output: &Path, object: serde_json::Value) {
    if session.json {
        let object = session.with_warnings(object);
        if output.as_os_str() == "-" { eprintln!("{object}") } else { println!("{object}") }
    }
}

/// What every stream's report contains.
fn streamed(
    stream: &StreamArgs,
    backend: &str,
    threads: usize,
    totals: Totals,
    what: serde_json::Value,
) -> serde_json::Value {
    let mut object = serde_json::json!({
        "input": shown(&stream.input), "output": shown(target(stream.output.as_deref())),
        "bytes_read": totals.read, "bytes_written": totals.written, "backend": backend,
        "threads": threads,
    });
    if let (Some(object), serde_json::Value::Object(what)) = (object.as_object_mut(), what) {
        object.extend(what);
    }
    object
}

/// A job on the bytes of a source; one of unknown length counts as long.
fn job(operation: Operation, source: &crate::files::Source) -> Job {
    Job::Magma(
        operation,
        source.length().map_or(usize::MAX, |length| usize::try_from(length).unwrap_or(usize::MAX)),
    )
}

/// A path for JSON, which cannot hold names that are not Unicode.
fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// A library error about an input: a refusal, or malformed input.
fn refused_or_input(name: &str, e: &lanework_magma::Error) -> Failure {
    use lanework_magma::Error;
    let text = format!("{name}: {e}");
    match e {
        Error::Refused | Error::TooManyRefused { .. } => Failure::refused(text),
        Error::Threads(_) => Failure::unavailable(text).help("ask for fewer with --threads"),
        Error::KeyExhausted { .. } => Failure::input(text).help(
            "split the data over several keys, use --mode ctr-acpkm or a container, or raise --key-limit",
        ),
        Error::Unaligned(_) => Failure::input(text).help("--padding 2 fills the last block"),
        Error::CounterExhausted => Failure::input(text).help("this mode ends at 32 GiB: use a container"),
        _ => Failure::input(text),
    }
}

/// A container's error about an input.
fn container_failure(name: &str, e: &ContainerError) -> Failure {
    let text = format!("{name}: {e}");
    match e {
        ContainerError::Damaged { .. }
        | ContainerError::Torn { .. }
        | ContainerError::Truncated { .. }
        | ContainerError::Trailing { .. }
        | ContainerError::TooManyRefused { .. } => Failure::refused(text)
            .help("get the file again from its source: the output, if any, is incomplete"),
        // It begins like a container, so it was cut short: refused, not malformed.
        ContainerError::HeaderEnds(_) => {
            Failure::refused(text).help("get the file again from its source: nothing was written")
        }
        ContainerError::WrongKey => {
            Failure::refused(text).help("name the key or passphrase that sealed it: nothing was written")
        }
        ContainerError::NeedsPassphrase => Failure::input(text).help("use --passphrase"),
        ContainerError::NeedsKey => Failure::input(text).help("use --key-file"),
        ContainerError::TooLong { .. } => Failure::input(text).help("split it"),
        ContainerError::Magic => {
            Failure::input(text).help("name the --mode if these are the bare bytes of one")
        }
        _ => Failure::input(text),
    }
}
