//! `encrypt --mode` and `decrypt --mode`: exactly the bytes of a standard.
#![forbid(unsafe_code)]

use std::sync::{Mutex, PoisonError};

use lanework_cpu::Threads;
use lanework_magma::modes::hazmat::{EcbDecryptor, EcbEncryptor};
use lanework_magma::modes::legacy::{self, Meshing};
use lanework_magma::modes::padding::{Padding, unpad_one_zeros};
use lanework_magma::modes::{
    CbcDecryptor, CbcEncryptor, CfbDecryptor, CfbEncryptor, Ctr, CtrAcpkm, Ofb, Stream,
};
use lanework_magma::{Engine, Error, Gost28147, Keyed, Limits, Magma};
use lanework_study::{Failure, Outcome};
use lanework_suite::magma::Operation;

use super::args::{CipherName, Hex, LegacyArgs, Mode, PaddingName, RawArgs, SecretArgs, StreamArgs};
use super::flow::{self, Layout, Order};
use super::{job, no_terminal, refused_or_input, report, secrets, streamed, target};
use crate::files::{Access, Sink, Source, check_distinct};
use crate::ui::Session;

/// The direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Encrypt,
    Decrypt,
}

/// A mode that has begun: takes the next piece, in place, on several threads where it can.
type Running = Box<dyn FnMut(Threads<'_>, &mut [u8]) -> Result<(), Error> + Send>;

/// The limits for `--key-limit`.
pub(super) fn limits(asked: Option<u64>) -> Limits {
    match asked {
        None => Limits::default(),
        Some(u64::MAX) => Limits::Unlimited,
        Some(bytes) => Limits::Custom { bytes, section: Limits::default().section() },
    }
}

/// A key of GOST 28147-89, whose S-box set must be named.
pub(super) fn gost28147(key: &[u8; 32], args: &LegacyArgs, engine: Engine) -> Result<Gost28147, Failure> {
    let sbox = args.sbox.ok_or_else(|| {
        Failure::input("--cipher gost28147: the standard has no S-box set of its own")
            .help("name the one that the data was made with: --sbox NAME")
    })?;
    Ok(Gost28147::with(key, sbox, engine))
}

pub(super) fn meshing(args: &LegacyArgs) -> Meshing {
    if args.meshing { Meshing::CryptoPro } else { Meshing::None }
}

/// The raced operation that is the mode, or that it spends its time on.
fn operation(mode: Mode, cipher: CipherName, way: Way) -> Operation {
    match (mode, way) {
        (Mode::Ctr | Mode::Cnt, _) => Operation::Ctr,
        (Mode::CtrAcpkm, _) => Operation::CtrAcpkm,
        (Mode::Ecb, _) => Operation::Ecb,
        (Mode::Cbc, Way::Decrypt) => Operation::CbcDecrypt,
        (Mode::Cfb, Way::Decrypt) => Operation::CfbDecrypt,
        (Mode::Cfb, Way::Encrypt) if cipher == CipherName::Gost28147 => Operation::Gost89Cfb,
        // One block after the other, as in a MAC.
        (Mode::Cbc | Mode::Cfb, Way::Encrypt) | (Mode::Ofb, _) => Operation::Omac,
    }
}

/// Refuses options that do not go together, before any file is touched.
fn check(mode: Mode, args: &RawArgs) -> Result<(), Failure> {
    let refuse = |text: &str, remedy: &str| Err(Failure::input(text).help(remedy));
    let legacy = args.cipher == CipherName::Gost28147;
    match (mode, &args.iv) {
        (Mode::Ecb, Some(_)) => return refuse("--iv: ECB has no initialisation vector", "leave it out"),
        (Mode::Ecb, None) if !args.hazmat => {
            return refuse(
                "--mode ecb: equal blocks stay equal, and an observer sees them",
                "use another mode, or add --hazmat if it must be ECB",
            );
        }
        (Mode::Ecb, None) => {}
        (_, None) => return refuse("this mode needs its initialisation vector", "add --iv HEX"),
        (_, Some(_)) => {}
    }
    if args.padding != PaddingName::None && !matches!(mode, Mode::Ecb | Mode::Cbc) {
        return refuse("--padding: this mode takes data of any length", "leave it out");
    }
    if args.section.is_some() && mode != Mode::CtrAcpkm {
        return refuse("--section: only CTR-ACPKM has sections", "leave it out");
    }
    if !legacy && (args.legacy.sbox.is_some() || args.legacy.meshing) {
        return refuse(
            "--sbox and --meshing are for --cipher gost28147",
            "leave them out: Magma has one S-box set and no meshing",
        );
    }
    if args.legacy.meshing && !matches!(mode, Mode::Cfb | Mode::Cnt) {
        return refuse("--meshing: only CFB and CNT have it", "leave it out");
    }
    match (mode, legacy) {
        (Mode::Ctr | Mode::CtrAcpkm, true) => {
            refuse("--mode ctr: a mode of Magma", "the counter mode of GOST 28147-89 is --mode cnt")
        }
        (Mode::Cnt, false) => {
            refuse("--mode cnt: a mode of GOST 28147-89", "add --cipher gost28147 --sbox NAME")
        }
        _ => Ok(()),
    }
}

/// How long the message will be, if that is known before it is read.
type Length = Option<u64>;

/// A mode, unless it would refuse a message of this length.
fn admitted<S: Stream>(stream: S, length: Length) -> Result<S, Error> {
    length.map_or(Ok(()), |bytes| stream.would_take(bytes))?;
    Ok(stream)
}

/// A mode without threads.
fn serial(stream: impl Stream + Send + 'static, length: Length) -> Result<Running, Error> {
    let mut stream = admitted(stream, length)?;
    Ok(Box::new(move |_, data| stream.apply(data)))
}

/// A mode with threads.
macro_rules! threaded {
    ($stream:expr, $length:expr) => {{
        let mut stream = admitted($stream, $length)?;
        Ok(Box::new(move |threads: Threads<'_>, data: &mut [u8]| stream.apply_with(threads, data)))
    }};
}

/// The modes that both ciphers have.
fn common<K: Keyed + Send + 'static>(
    key: K,
    mode: Mode,
    iv: &[u8],
    way: Way,
    length: Length,
) -> Result<Running, Error> {
    match (mode, way) {
        (Mode::Cbc, Way::Encrypt) => serial(CbcEncryptor::with_key(key, iv)?, length),
        (Mode::Cbc, Way::Decrypt) => threaded!(CbcDecryptor::with_key(key, iv)?, length),
        (Mode::Cfb, Way::Encrypt) => serial(CfbEncryptor::with_key(key, iv)?, length),
        (Mode::Cfb, Way::Decrypt) => threaded!(CfbDecryptor::with_key(key, iv)?, length),
        (Mode::Ofb, _) => serial(Ofb::with_key(key, iv)?, length),
        (Mode::Ecb, Way::Encrypt) => threaded!(EcbEncryptor::with_key(key), length),
        (Mode::Ecb, Way::Decrypt) => threaded!(EcbDecryptor::with_key(key), length),
        (Mode::Ctr | Mode::CtrAcpkm | Mode::Cnt, _) => {
            Err(Error::Parameter("a mode that this cipher does not have"))
        }
    }
}

/// A mode of Magma.
fn of_magma(key: Magma, mode: Mode, args: &RawArgs, way: Way, length: Length) -> Result<Running, Error> {
    let iv = iv(args);
    match mode {
        Mode::Ctr => threaded!(Ctr::with_key(key, iv)?, length),
        Mode::CtrAcpkm => {
            let section = args.section.unwrap_or_else(|| key.limits().section());
            threaded!(CtrAcpkm::with_section(&key, iv, section)?, length)
        }
        _ => common(key, mode, iv, way, length),
    }
}

/// A mode of GOST 28147-89.
fn of_gost28147(
    key: Gost28147,
    mode: Mode,
    args: &RawArgs,
    way: Way,
    length: Length,
) -> Result<Running, Error> {
    let (iv, meshing) = (iv(args), meshing(&args.legacy));
    match (mode, way) {
        (Mode::Cnt, _) => serial(legacy::Cnt::with_key(&key, iv, meshing)?, length),
        (Mode::Cfb, Way::Encrypt) if args.legacy.meshing => {
            serial(legacy::CfbEncryptor::with_key(&key, iv, meshing)?, length)
        }
        (Mode::Cfb, Way::Decrypt) if args.legacy.meshing => {
            serial(legacy::CfbDecryptor::with_key(&key, iv, meshing)?, length)
        }
        _ => common(key, mode, iv, way, length),
    }
}

fn iv(args: &RawArgs) -> &[u8] {
    args.iv.as_ref().map_or(&[], |Hex(bytes)| bytes)
}

/// The mode under its key, for a message from `source`. A message that would be refused is refused here if its length is known.
fn begin(
    key: &[u8; 32],
    mode: Mode,
    args: &RawArgs,
    way: Way,
    engine: Engine,
    source: &Source,
) -> Result<Running, Failure> {
    let limits = limits(args.limit.key_limit);
    let length = source.length().map(|length| match (way, padding(args.padding)) {
        // The padding depends only on the last block.
        (Way::Encrypt, Some(padding)) => length.saturating_add(padding.bytes((length % 8) as usize) as u64),
        _ => length,
    });
    let running = match args.cipher {
        CipherName::Magma => of_magma(Magma::with(key, engine).with_limits(limits), mode, args, way, length),
        CipherName::Gost28147 => {
            let key = gost28147(key, &args.legacy, engine)?.with_limits(limits);
            of_gost28147(key, mode, args, way, length)
        }
    };
    running.map_err(|e| match e {
        Error::NonceLength { .. } => {
            Failure::input(format!("--iv: {e}")).help("give it the length that the mode takes")
        }
        Error::Section(_) => Failure::input(format!("--section: {e}")),
        _ => refused_or_input(source.name(), &e),
    })
}

fn padding(name: PaddingName) -> Option<Padding> {
    match name {
        PaddingName::None => None,
        PaddingName::One => Some(Padding::Zeros),
        PaddingName::Two => Some(Padding::OneZeros),
    }
}

/// Pads the last block; returns the new length.
fn pad(name: PaddingName, buffer: &mut [u8], length: usize) -> usize {
    let Some(padding) = padding(name) else { return length };
    let added = padding.bytes(length);
    buffer[length..length + added].fill(0);
    if padding == Padding::OneZeros {
        buffer[length] = 0x80;
    }
    length + added
}

pub(super) fn run(
    session: &Session,
    way: Way,
    secret: &SecretArgs,
    args: RawArgs,
    stream: &StreamArgs,
) -> Result<Outcome, Failure> {
    let (Some(mode), Some(key_path)) = (args.mode, secret.key_file.as_deref()) else {
        return Err(Failure::input("--mode: the bare bytes of a mode need a key").help("add --key-file FILE"));
    };
    check(mode, &args)?;
    check_distinct([key_path, &*stream.input], [target(stream.output.as_deref())])?;
    if way == Way::Encrypt {
        no_terminal(stream)?;
    }
    let mut source = Source::open(&stream.input)?;
    let access = if way == Way::Encrypt { Access::Public } else { Access::Private };
    let mut sink = Sink::create(target(stream.output.as_deref()), access, stream.force)?;
    let job = job(operation(mode, args.cipher, way), &source);
    let engine = session.engine(job)?;
    let key = secrets::key_file(session, key_path)?;
    let running = Mutex::new(begin(&key, mode, &args, way, engine, &source)?);
    let pool = session.pool(stream.threads, job)?;
    let inner = pool.as_ref().map_or(Threads::One, Threads::Pool);
    let threads = inner.count();
    let name = source.name().to_owned();
    let bar = session
        .progress_bytes(source.length(), if way == Way::Encrypt { "encrypting" } else { "decrypting" });
    let totals = flow::run(
        &mut source,
        &mut sink,
        Layout::whole(8),
        // Reading, the mode itself and writing, side by side.
        (if threads > 1 { 3 } else { 1 }, Order::InTurn),
        &bar,
        |_, _| Ok(()),
        |part, ()| {
            let mut length = part.length;
            if way == Way::Encrypt && part.last {
                length = pad(args.padding, part.buffer, length);
            }
            let data = &mut part.buffer[..length];
            let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
            running(inner, data).map_err(|e| refused_or_input(&name, &e))?;
            part.done = if way == Way::Decrypt && part.last && args.padding == PaddingName::Two {
                unpad_one_zeros(data).map_err(|_| {
                    Failure::refused(format!("{name}: the end is not the padding of procedure 2"))
                        .help("check key, IV and data, or decrypt without --padding")
                })?
            } else {
                length
            };
            Ok(())
        },
    )?;
    sink.commit(stream.sync)?;
    let what = serde_json::json!({ "format": format!("{mode:?}").to_lowercase(), "cipher": format!("{:?}", args.cipher).to_lowercase() });
    report(session, target(stream.output.as_deref()), streamed(stream, engine.name(), threads, totals, what));
    Ok(Outcome::Yes)
}
