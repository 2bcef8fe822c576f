//! `seal` and `open`: one MGM message.
#![forbid(unsafe_code)]

use std::io::{Read, Write};
use std::sync::{Mutex, PoisonError};

use lanework_cpu::Threads;
use lanework_magma::mgm::{LONGEST, Mgm, Nonce};
use lanework_magma::{Engine, Error, Magma};
use lanework_study::{Failure, Outcome};
use lanework_suite::magma::Operation;
use zeroize::Zeroizing;

use super::args::{Hex, MessageArgs};
use super::flow::{self, Layout, Order, Totals};
use super::raw::limits;
use super::{no_terminal, report, secrets, streamed, target};
use crate::files::{Access, Sink, Source, check_distinct};
use crate::ui::Session;

/// An error of MGM about a message.
fn failure(name: &str, e: &Error) -> Failure {
    match e {
        Error::NonceLength { .. } | Error::NonceTopBit => {
            Failure::input(format!("--nonce: {e}")).help("give 16 hexadecimal digits, the first from 0 to 7")
        }
        Error::TagLength(_) => Failure::input(format!("--tag-length: {e}")).help("choose from 4 to 8 bytes"),
        Error::TooLong { .. } => Failure::input(format!("{name}: {e}, the most that one MGM message takes"))
            .help("`lanework magma encrypt` makes a container of any size"),
        Error::EmptyMessage => {
            Failure::input(format!("{name}: {e}")).help("give --aad, or data that is not empty (RFC 9058, 6)")
        }
        Error::KeyExhausted { .. } => Failure::input(format!("{name}: {e}"))
            .help("raise --key-limit, or let encrypt make a container, which has a key for each chunk"),
        Error::Refused | Error::TooManyRefused { .. } => Failure::refused(format!(
            "{name}: refused: not what was sealed with this key, nonce, associated data and tag length"
        ))
        .help("check all four and the file: nothing was written"),
        Error::Threads(_) => Failure::unavailable(e).help("ask for fewer with --threads"),
        _ => Failure::input(format!("{name}: {e}")),
    }
}

/// A message that is about to be sealed or opened.
struct Begun {
    source: Source,
    aad: Vec<u8>,
    mgm: Mgm,
    engine: Engine,
    threads: Threads<'static>,
}

fn begin(session: &Session, args: &MessageArgs, operation: Operation) -> Result<Begun, Failure> {
    let Hex(nonce) = &args.nonce;
    let inputs = [Some(args.key_file.as_path()), args.aad_file.as_deref(), Some(&*args.stream.input)];
    check_distinct(inputs.into_iter().flatten(), [target(args.stream.output.as_deref())])?;
    let source = Source::open(&args.stream.input)?;
    let job = super::job(operation, &source);
    let engine = session.engine(job)?;
    let threads = session.threads(args.stream.threads, job);
    let key = secrets::key_file(session, &args.key_file)?;
    let magma = Magma::with(&key, engine).with_limits(limits(args.limit.key_limit));
    let mgm = Mgm::with_key(magma, args.tag_length).map_err(|e| failure("", &e))?;
    // The nonce is checked before anything is read.
    Nonce::try_from(nonce.as_slice()).map_err(|e| failure("", &e))?;
    let aad = match (&args.aad, &args.aad_file) {
        (Some(Hex(bytes)), _) => bytes.clone(),
        (None, Some(path)) => {
            let mut source = Source::open(path)?;
            let name = source.name().to_owned();
            whole(&mut source, LONGEST)
                .map_err(|e| e.unwrap_or_else(|| failure(&name, &Error::TooLong { limit: LONGEST })))?
                .to_vec()
        }
        (None, None) => Vec::new(),
    };
    Ok(Begun { source, aad, mgm, engine, threads })
}

/// All that a source gives, if that is at most `limit` bytes; `None` is the error for more.
fn whole(source: &mut Source, limit: u64) -> Result<Zeroizing<Vec<u8>>, Option<Failure>> {
    if source.length().is_some_and(|length| length > limit) {
        return Err(None);
    }
    // If the length is known, the vector never grows and leaves no copy behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(source.length().unwrap_or(0) as usize + 1));
    let name = source.name().to_owned();
    source
        .file()
        .take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| Some(Failure::input(format!("{name}: cannot be read: {e}"))))?;
    if bytes.len() as u64 > limit { Err(None) } else { Ok(bytes) }
}

pub(super) fn seal(session: &Session, args: &MessageArgs) -> Result<Outcome, Failure> {
    let stream = &args.stream;
    no_terminal(stream)?;
    let Begun { mut source, aad, mgm, engine, threads } = begin(session, args, Operation::MgmSeal)?;
    let mut sink = Sink::create(target(stream.output.as_deref()), Access::Public, stream.force)?;
    let name = source.name().to_owned();
    let failed = |e: Error| failure(&name, &e);
    // A message that is too long, for MGM or for the key, is refused before any of it is sealed, if its length is known.
    if let Some(length) = source.length() {
        mgm.would_seal(aad.len() as u64, length).map_err(failed)?;
    }
    let mut sealer = mgm.sealer(&args.nonce.0).map_err(failed)?;
    sealer.aad(&aad).map_err(failed)?;
    let sealer = Mutex::new(sealer);
    let bar = session.progress_bytes(source.length(), "sealing");
    // Reading, sealing and writing, side by side.
    let threads = threads.count().min(3);
    let mut totals = flow::run(
        &mut source,
        &mut sink,
        Layout::whole(0),
        (threads, Order::InTurn),
        &bar,
        |_, _| Ok(()),
        |job, ()| {
            let mut sealer = sealer.lock().unwrap_or_else(PoisonError::into_inner);
            sealer.data(&mut job.buffer[..job.length]).map_err(failed)?;
            job.done = job.length;
            Ok(())
        },
    )?;
    let tag = sealer.into_inner().unwrap_or_else(PoisonError::into_inner).finish().map_err(failed)?;
    sink.write_all(tag.as_slice()).map_err(|e| sink.failed(&e))?;
    sink.commit(stream.sync)?;
    totals.written += tag.as_slice().len() as u64;
    let what = serde_json::json!({ "format": "mgm", "tag_length": args.tag_length });
    report(session, target(stream.output.as_deref()), streamed(stream, engine.name(), threads, totals, what));
    Ok(Outcome::Yes)
}

pub(super) fn open(session: &Session, args: &MessageArgs) -> Result<Outcome, Failure> {
    let stream = &args.stream;
    let Begun { mut source, aad, mgm, engine, threads } = begin(session, args, Operation::MgmOpen)?;
    let mut sink = Sink::create(target(stream.output.as_deref()), Access::Private, stream.force)?;
    let name = source.name().to_owned();
    let failed = |e: Error| failure(&name, &e);
    // The whole message is held: nothing may be released before the tag, which comes last, is verified, and a file may change
    // between two reads.
    let mut message = whole(&mut source, LONGEST + args.tag_length as u64)
        .map_err(|e| e.unwrap_or_else(|| failed(Error::TooLong { limit: LONGEST })))?;
    let read = message.len() as u64;
    let Some(length) = message.len().checked_sub(args.tag_length) else {
        return Err(Failure::refused(format!(
            "{name}: refused: cut short: {read} bytes cannot hold a tag of {}",
            args.tag_length
        ))
        .help("get the file again from its source: nothing was written"));
    };
    let (data, tag) = message.split_at_mut(length);
    mgm.open_with(threads, &args.nonce.0, &aad, data, tag).map_err(failed)?;
    sink.write_all(data).map_err(|e| sink.failed(&e))?;
    sink.commit(stream.sync)?;
    let totals = Totals { read, written: length as u64 };
    let what = serde_json::json!({ "format": "mgm", "tag_length": args.tag_length });
    let threads = threads.count();
    report(session, target(stream.output.as_deref()), streamed(stream, engine.name(), threads, totals, what));
    Ok(Outcome::Yes)
}
