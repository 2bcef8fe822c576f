//! Reading messages and signatures: messages are hashed as streams, signatures are read no further than their length.
#![forbid(unsafe_code)]

use std::io::{ErrorKind, Read};
use std::path::Path;

use lanework_cpu::Threads;
use lanework_mayo::{Engine, MessageDigest, MessageHasher, Params, Signature};
use lanework_study::Failure;
use lanework_study::text::shown;

use crate::files::Source;

/// Bytes that are read and hashed at a time.
const PIECE: usize = 256 << 10;

const NOT_A_SIGNATURE: &str = "name a signature that `lanework mayo sign` wrote";

/// The digest of a file, or of standard input for `-`, of any size.
pub(super) fn digest(engine: Engine, params: &Params, path: &Path) -> Result<MessageDigest, Failure> {
    let mut source = Source::open(path)?;
    let mut hasher = MessageHasher::new(engine, params);
    let expected = source.length().and_then(|length| usize::try_from(length).ok()).unwrap_or(PIECE);
    let mut piece = vec![0; expected.clamp(1, PIECE)];
    loop {
        match source.file().read(&mut piece) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(count) => hasher.update(&piece[..count]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(Failure::input(format!("{}: {e}", source.name()))),
        }
    }
}

/// The digests of several files, each by one thread.
pub(super) fn digests<P: AsRef<Path> + Sync>(
    engine: Engine,
    params: &Params,
    paths: &[P],
    threads: Threads<'_>,
) -> Result<Vec<Result<MessageDigest, Failure>>, Failure> {
    let mut made: Vec<Option<Result<MessageDigest, Failure>>> = paths.iter().map(|_| None).collect();
    threads
        .for_each(&mut made, |i, made| *made = Some(digest(engine, params, paths[i].as_ref())))
        .map_err(Failure::unavailable)?;
    // Every item was run.
    Ok(made.into_iter().flatten().collect())
}

/// The signature in a file, read no further than the longest signature. `key` is the file of the public key, which is for `params`.
pub(super) fn signature(params: &'static Params, key: &Path, path: &Path) -> Result<Signature, Failure> {
    let mut source = Source::open(path)?;
    let longest = Params::all().map(Params::signature_bytes).max().unwrap_or(0);
    let mut bytes = Vec::with_capacity(longest + 1);
    let read = source.file().take(longest as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|e| Failure::input(format!("{}: {e}", source.name())))?;
    if bytes.len() > longest {
        let (name, expected) = (params.name(), params.signature_bytes());
        let why = format!("a {name} signature has {expected} bytes, this file has more");
        return Err(Failure::input(format!("{}: {why}", source.name())).help(NOT_A_SIGNATURE));
    }
    Signature::from_bytes(params, &bytes).map_err(|wrong| {
        let fits = Params::all().filter(|other| other.signature_bytes() == bytes.len());
        match fits.map(Params::name).collect::<Vec<_>>().join(" or ") {
            none if none.is_empty() => {
                Failure::input(format!("{}: {wrong}", source.name())).help(NOT_A_SIGNATURE)
            }
            sets => Failure::input(format!(
                "wrong public key: {} holds {}, the signature in {} has the length of {sets}",
                shown(key),
                params.name(),
                source.name()
            ))
            .help("name the public key of the signer; rounds and sets never share one"),
        }
    })
}
