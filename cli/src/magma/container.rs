//! `encrypt` and `decrypt` of the container.
#![forbid(unsafe_code)]

use std::io::{Read, Write};

use getrandom::SysRng;
use getrandom::rand_core::TryRng;
use lanework_magma::container::{
    Decryptor, Encryptor, Error, HEADER, Header, Options, Source as KeySource, TAG,
};
use lanework_study::{Failure, Outcome};
use lanework_suite::Job;
use lanework_suite::magma::Operation;

use super::args::{DecryptArgs, EncryptArgs, SecretArgs, StreamArgs};
use super::flow::{self, JOB, Layout, Order};
use super::{container_failure, job, no_terminal, report, secrets, streamed, target};
use crate::files::{Access, Sink, Source, check_distinct};
use crate::ui::Session;

fn distinct(secret: &SecretArgs, stream: &StreamArgs) -> Result<(), Failure> {
    let inputs = [secret.key_file.as_deref(), secret.passphrase_file.as_deref(), Some(&*stream.input)];
    check_distinct(inputs.into_iter().flatten(), [target(stream.output.as_deref())])
}

pub(super) fn encrypt(session: &Session, args: &EncryptArgs) -> Result<Outcome, Failure> {
    let stream = &args.stream;
    distinct(&args.secret, stream)?;
    no_terminal(stream)?;
    let mut source = Source::open(&stream.input)?;
    let mut sink = Sink::create(target(stream.output.as_deref()), Access::Public, stream.force)?;
    let defaults = Options::default();
    let options = Options {
        chunk: args.chunk_size.unwrap_or(defaults.chunk),
        iterations: args.iterations.unwrap_or(defaults.iterations),
    };
    // Each chunk is sealed by itself; threads share the chunks.
    let engine = session.engine(Job::Magma(Operation::MgmSeal, options.chunk))?;
    let threads = session.threads(stream.threads, job(Operation::MgmSeal, &source)).count();
    let secret = secrets::secret(session, &args.secret, true)?;
    let mut salt = [0; 32];
    SysRng.try_fill_bytes(&mut salt).map_err(Failure::unavailable)?;
    let name = source.name().to_owned();
    let failed = |e| container_failure(&name, &e);
    let encryptor = Encryptor::new(&secret, options, salt, engine).map_err(|e| match e {
        Error::ChunkSize(_) => Failure::input(format!("--chunk-size: {e}")),
        Error::Iterations(_) => Failure::input(format!("--iterations: {e}")),
        _ => failed(e),
    })?;
    sink.write_all(encryptor.header()).map_err(|e| sink.failed(&e))?;
    let chunk = encryptor.chunk();
    let layout = Layout { read: chunk, write: chunk + TAG, pieces: JOB / chunk };
    let bar = session.progress_bytes(source.length(), "encrypting");
    let mut totals = flow::run(
        &mut source,
        &mut sink,
        layout,
        (threads, Order::Any),
        &bar,
        |length, last| encryptor.places(length.div_ceil(chunk).max(1) as u64, last).map_err(failed),
        |job, places| {
            for (i, (place, piece)) in places.zip(job.buffer.chunks_mut(layout.stride())).enumerate() {
                let length = (job.length - i * chunk).min(chunk);
                let tag = encryptor.seal(place, &mut piece[..length]).map_err(failed)?;
                piece[length..length + TAG].copy_from_slice(&tag);
                job.done += length + TAG;
            }
            Ok(())
        },
    )?;
    sink.commit(stream.sync)?;
    totals.written += HEADER as u64;
    let what =
        serde_json::json!({ "format": "container", "chunk": chunk, "passphrase": secret.is_passphrase() });
    report(session, target(stream.output.as_deref()), streamed(stream, engine.name(), threads, totals, what));
    Ok(Outcome::Yes)
}

/// The bytes of the header, or fewer if the source is shorter.
fn header(source: &mut Source) -> Result<([u8; HEADER], usize), Failure> {
    let mut bytes = [0; HEADER];
    let mut filled = 0;
    while filled < HEADER {
        match source.file().read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Failure::input(format!("{}: cannot be read: {e}", source.name()))),
        }
    }
    Ok((bytes, filled))
}

pub(super) fn decrypt(session: &Session, args: &DecryptArgs) -> Result<Outcome, Failure> {
    let stream = &args.stream;
    distinct(&args.secret, stream)?;
    let mut source = Source::open(&stream.input)?;
    // The plaintext was worth encrypting: only its owner may read it.
    let mut sink = Sink::create(target(stream.output.as_deref()), Access::Private, stream.force)?;
    let name = source.name().to_owned();
    let failed = |e| container_failure(&name, &e);
    let (bytes, filled) = header(&mut source)?;
    let header = Header::parse(&bytes[..filled]).map_err(failed)?;
    check_kind(&args.secret, &header).map_err(failed)?;
    let secret = secrets::secret(session, &args.secret, false)?;
    let engine = session.engine(Job::Magma(Operation::MgmOpen, header.start().chunk()))?;
    let threads = session.threads(stream.threads, job(Operation::MgmOpen, &source)).count();
    let decryptor = Decryptor::new(&secret, &header, engine).map_err(failed)?;
    let chunk = decryptor.chunk();
    let layout = Layout { read: chunk + TAG, write: chunk, pieces: JOB / chunk };
    let bar = session.progress_bytes(source.length(), "decrypting");
    let mut totals = flow::run(
        &mut source,
        &mut sink,
        layout,
        (threads, Order::Any),
        &bar,
        |_, _| Ok(()),
        |job, ()| {
            let first = job.index * layout.pieces as u64;
            let count = job.length.div_ceil(layout.read).max(1);
            for (i, piece) in job.buffer.chunks_mut(layout.stride()).take(count).enumerate() {
                let length = (job.length - i * layout.read).min(layout.read);
                let last = job.last && i + 1 == count;
                job.done += decryptor.open(first + i as u64, last, &mut piece[..length]).map_err(failed)?;
            }
            Ok(())
        },
    )?;
    sink.commit(stream.sync)?;
    totals.read += HEADER as u64;
    let what =
        serde_json::json!({ "format": "container", "chunk": chunk, "passphrase": secret.is_passphrase() });
    report(session, target(stream.output.as_deref()), streamed(stream, engine.name(), threads, totals, what));
    Ok(Outcome::Yes)
}

/// Refuses a key where a passphrase is needed, or the reverse, before prompting for one.
fn check_kind(args: &SecretArgs, header: &Header) -> Result<(), lanework_magma::container::Error> {
    match (header.start().source(), &args.key_file) {
        (KeySource::Passphrase { .. }, Some(_)) => Err(lanework_magma::container::Error::NeedsPassphrase),
        (KeySource::Key, None) => Err(lanework_magma::container::Error::NeedsKey),
        _ => Ok(()),
    }
}
