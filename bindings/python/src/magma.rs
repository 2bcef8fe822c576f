//! Magma: MGM, CTR, OMAC and files.
#![forbid(unsafe_code)]

use std::fs::{self, File, Metadata};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lanework_cpu::memory::wipe_vector_registers;
use lanework_magma::container::{self, Options, Secret, StreamError};
use lanework_magma::modes::{self, Stream};
use lanework_magma::{Engine, Error, Keyed, Limits, Magma, mgm};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};
use zeroize::Zeroizing;

use crate::errors::{Raise, malformed};
use crate::sys::{Buffer, Writable};

/// Shorter inputs take less time than releasing the GIL.
const SHORT: usize = 256;

/// Runs `work` without the GIL if `bytes` is so many that it pays.
fn released<T: Send>(py: Python<'_>, bytes: usize, work: impl FnOnce() -> T + Send) -> T {
    if bytes < SHORT { work() } else { py.detach(work) }
}

/// A secret key of 32 bytes. Its memory is wiped when the object goes; ``export`` is the only way to its bytes.
///
/// A key counts the blocks of 8 bytes that are begun under it, whatever uses it, and four more for each message of
/// ``Mgm``. It refuses more than ``limit`` bytes of them (``Exhausted``). The default, 2**28, is that of RFC 9227.
#[pyclass(frozen, module = "lanework.magma")]
pub(crate) struct Key {
    cipher: Magma,
    bytes: Box<Zeroizing<[u8; 32]>>,
}

impl Key {
    fn with(bytes: Box<Zeroizing<[u8; 32]>>, limit: u64) -> Key {
        let limits = Limits::Custom { bytes: limit, section: Limits::default().section() };
        Key { cipher: Magma::new(&bytes).with_limits(limits), bytes }
    }

    fn read(bytes: &[u8], limit: u64) -> PyResult<Key> {
        let mut copy = Box::new(Zeroizing::new([0; 32]));
        if bytes.len() != copy.len() {
            return Err(Error::KeyLength(bytes.len())).raise();
        }
        copy.copy_from_slice(bytes);
        wipe_vector_registers();
        Ok(Key::with(copy, limit))
    }
}

#[pymethods]
impl Key {
    #[new]
    #[pyo3(signature = (data, *, limit = 268_435_456))]
    fn new(data: Buffer, limit: u64) -> PyResult<Key> {
        Key::read(&data, limit)
    }

    /// A key from the operating system's randomness.
    #[classmethod]
    #[pyo3(signature = (*, limit = 268_435_456))]
    fn generate(_class: &Bound<'_, PyType>, limit: u64) -> PyResult<Key> {
        let mut bytes = Box::new(Zeroizing::new([0; 32]));
        getrandom::fill(bytes.as_mut_slice()).raise()?;
        Ok(Key::with(bytes, limit))
    }

    /// The 32 secret bytes. Python keeps copies of ``bytes`` as it likes; nothing wipes them.
    fn export<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.bytes.as_slice())
    }

    /// Bytes of the blocks that count for this key so far.
    #[getter]
    fn used(&self) -> u64 {
        self.cipher.used()
    }

    /// Bytes of messages that this key has refused. Short messages count as 256, and so does every tag that
    /// ``Omac.verify`` refuses, whatever its message's length.
    #[getter]
    fn refused(&self) -> u64 {
        self.cipher.refused()
    }

    /// The most bytes under this key.
    #[getter]
    fn limit(&self) -> u64 {
        self.cipher.limits().bytes()
    }

    /// The backend in use.
    #[getter]
    fn backend(&self) -> &'static str {
        self.cipher.backend()
    }

    fn __repr__(&self) -> String {
        format!("<lanework.magma.Key {}>", self.cipher.backend())
    }
}

/// A key object, or 32 bytes.
pub(crate) enum KeyOrBytes<'py> {
    Key(PyRef<'py, Key>),
    Bytes(Buffer),
}

impl<'py> FromPyObject<'_, 'py> for KeyOrBytes<'py> {
    type Error = PyErr;

    fn extract(obj: Borrowed<'_, 'py, PyAny>) -> PyResult<KeyOrBytes<'py>> {
        match obj.cast::<Key>() {
            Ok(key) => Ok(KeyOrBytes::Key(key.to_owned().borrow())),
            Err(_) => Ok(KeyOrBytes::Bytes(Buffer::get(&obj)?)),
        }
    }
}

impl KeyOrBytes<'_> {
    fn cipher(&self) -> PyResult<Magma> {
        match self {
            KeyOrBytes::Key(key) => Ok(key.cipher.clone()),
            KeyOrBytes::Bytes(bytes) => Ok(Key::read(bytes, Limits::default().bytes())?.cipher),
        }
    }
}

/// Authenticated encryption in MGM (RFC 9058), in the shape of ``cryptography``'s AEAD classes.
///
/// A nonce has 8 bytes, the top bit of the first one 0, and must never repeat under one key: use a counter.
/// ``encrypt`` returns the ciphertext with the tag behind it.
#[pyclass(frozen, module = "lanework.magma")]
pub(crate) struct Mgm {
    inner: mgm::Mgm,
    cipher: Magma,
    tag: usize,
}

impl Mgm {
    fn split<'a>(&self, data: &'a [u8]) -> PyResult<(&'a [u8], &'a [u8])> {
        match data.len().checked_sub(self.tag) {
            Some(at) => Ok(data.split_at(at)),
            None => Err(malformed(format!("{} bytes are shorter than a tag of {}", data.len(), self.tag))),
        }
    }
}

#[pymethods]
impl Mgm {
    #[new]
    #[pyo3(signature = (key, *, tag_length = 8))]
    fn new(key: KeyOrBytes<'_>, tag_length: usize) -> PyResult<Mgm> {
        let cipher = key.cipher()?;
        Ok(Mgm { inner: mgm::Mgm::with_key(cipher.clone(), tag_length).raise()?, cipher, tag: tag_length })
    }

    /// A fresh key object.
    #[staticmethod]
    fn generate_key(py: Python<'_>) -> PyResult<Key> {
        Key::generate(&py.get_type::<Key>(), 1 << 28)
    }

    /// The ciphertext of ``data``, followed by the tag.
    #[pyo3(signature = (nonce, data, associated_data = None))]
    fn encrypt<'py>(
        &self,
        py: Python<'py>,
        nonce: Buffer,
        data: Buffer,
        associated_data: Option<Buffer>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let aad = associated_data.as_deref().unwrap_or(&[]);
        PyBytes::new_with(py, data.len() + self.tag, |out| {
            released(py, aad.len() + data.len(), || self.seal(&nonce, aad, &data, out)).raise()
        })
    }

    /// The plaintext of what ``encrypt`` returned. ``Refused`` if it is not authentic.
    #[pyo3(signature = (nonce, data, associated_data = None))]
    fn decrypt<'py>(
        &self,
        py: Python<'py>,
        nonce: Buffer,
        data: Buffer,
        associated_data: Option<Buffer>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let aad = associated_data.as_deref().unwrap_or(&[]);
        let (body, tag) = self.split(&data)?;
        PyBytes::new_with(py, body.len(), |out| {
            released(py, aad.len() + data.len(), || self.inner.open_to(&nonce, aad, body, out, tag)).raise()
        })
    }

    /// ``encrypt`` into a buffer of exactly the right length; returns that length. ``buf`` may begin where ``data``
    /// does, for work in place; otherwise they must not overlap.
    fn encrypt_into(
        &self,
        py: Python<'_>,
        nonce: Buffer,
        data: Buffer,
        associated_data: Option<Buffer>,
        mut buf: Writable,
    ) -> PyResult<usize> {
        let length = data.len() + self.tag;
        exact(length, buf.len())?;
        let nonce = nonce.to_vec();
        let aad = associated_data.iter().collect::<Vec<_>>();
        if buf.begins_at(&data, data.len()) {
            let body = data.len();
            drop(data);
            let out = buf.beside(&aad)?;
            let aad = associated_data.as_deref().unwrap_or(&[]);
            let (out, tag) = out.split_at_mut(body);
            let made = released(py, aad.len() + body, || self.inner.seal(&nonce, aad, out)).raise()?;
            tag.copy_from_slice(made.as_slice());
            return Ok(length);
        }
        let out = buf.beside(&[&aad[..], &[&data]].concat())?;
        let aad = associated_data.as_deref().unwrap_or(&[]);
        released(py, aad.len() + data.len(), || self.seal(&nonce, aad, &data, out)).raise()?;
        Ok(length)
    }

    /// ``decrypt`` into a buffer of exactly the plaintext's length; returns that length. If the message is not authentic,
    /// ``buf`` is zeros. ``buf`` may begin where ``data`` does; otherwise they must not overlap.
    fn decrypt_into(
        &self,
        py: Python<'_>,
        nonce: Buffer,
        data: Buffer,
        associated_data: Option<Buffer>,
        mut buf: Writable,
    ) -> PyResult<usize> {
        let (body, tag) = self.split(&data)?;
        let length = body.len();
        exact(length, buf.len())?;
        let (nonce, tag) = (nonce.to_vec(), tag.to_vec());
        let aad = associated_data.iter().collect::<Vec<_>>();
        if buf.begins_at(&data, length) {
            drop(data);
            let out = buf.beside(&aad)?;
            let aad = associated_data.as_deref().unwrap_or(&[]);
            released(py, aad.len() + length, || self.inner.open(&nonce, aad, out, &tag)).raise()?;
            return Ok(length);
        }
        let out = buf.beside(&[&aad[..], &[&data]].concat())?;
        let aad = associated_data.as_deref().unwrap_or(&[]);
        let body = &data[..length];
        released(py, aad.len() + length, || self.inner.open_to(&nonce, aad, body, out, &tag)).raise()?;
        Ok(length)
    }

    /// Bytes of a tag.
    #[getter]
    fn tag_length(&self) -> usize {
        self.tag
    }

    /// The backend in use.
    #[getter]
    fn backend(&self) -> &'static str {
        self.cipher.backend()
    }

    fn __repr__(&self) -> String {
        format!("<lanework.magma.Mgm {}, tags of {} bytes>", self.cipher.backend(), self.tag)
    }
}

impl Mgm {
    fn seal(&self, nonce: &[u8], aad: &[u8], data: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let (body, tag) = out.split_at_mut(data.len());
        tag.copy_from_slice(self.inner.seal_to(nonce, aad, data, body)?.as_slice());
        Ok(())
    }
}

fn exact(expected: usize, got: usize) -> PyResult<()> {
    if expected == got {
        Ok(())
    } else {
        Err(malformed(format!("the output needs {expected} bytes, this buffer has {got}")))
    }
}

/// Magma in CTR: encryption and decryption are one. It does not authenticate.
///
/// The IV has 4 bytes and must never repeat under one key. A message may come in pieces of any size.
#[pyclass(module = "lanework.magma")]
pub(crate) struct Ctr(modes::Ctr<Magma>);

#[pymethods]
impl Ctr {
    #[new]
    fn new(key: KeyOrBytes<'_>, iv: Buffer) -> PyResult<Ctr> {
        Ok(Ctr(modes::Ctr::with_key(key.cipher()?, &iv).raise()?))
    }

    /// The next piece, encrypted or decrypted.
    fn update<'py>(&mut self, py: Python<'py>, data: Buffer) -> PyResult<Bound<'py, PyBytes>> {
        PyBytes::new_with(py, data.len(), |out| {
            released(py, data.len(), || self.0.apply_to(&data, out)).raise()
        })
    }

    /// ``update`` into a buffer of the same length, which may be ``data`` itself; returns that length.
    fn update_into(&mut self, py: Python<'_>, data: Buffer, mut buf: Writable) -> PyResult<usize> {
        exact(data.len(), buf.len())?;
        let length = data.len();
        if buf.begins_at(&data, length) {
            drop(data);
            let out = buf.beside(&[])?;
            released(py, length, || self.0.apply(out)).raise()?;
            return Ok(length);
        }
        let out = buf.beside(&[&data])?;
        released(py, length, || self.0.apply_to(&data, out)).raise()?;
        Ok(length)
    }

    /// Goes to the beginning of a block of 8 bytes, counted from 0.
    fn seek(&mut self, block: u64) -> PyResult<()> {
        self.0.seek_block(block).raise()
    }

    /// Bytes from the beginning of the message to where the next piece begins.
    #[getter]
    fn position(&self) -> u64 {
        self.0.position()
    }

    fn __repr__(&self) -> String {
        format!("<lanework.magma.Ctr at byte {}>", self.0.position())
    }
}

/// OMAC (CMAC) over Magma, in the shape of ``cryptography``'s ``CMAC``.
///
/// Do not encrypt with the same key.
#[pyclass(module = "lanework.magma")]
pub(crate) struct Omac(Option<modes::Omac<Magma>>);

impl Omac {
    fn take(&mut self) -> PyResult<modes::Omac<Magma>> {
        self.0.take().ok_or_else(finished)
    }
}

fn finished() -> PyErr {
    malformed("this code is finished; make another object for another message")
}

#[pymethods]
impl Omac {
    #[new]
    #[pyo3(signature = (key, *, tag_length = 8))]
    fn new(key: KeyOrBytes<'_>, tag_length: usize) -> PyResult<Omac> {
        Ok(Omac(Some(modes::Omac::with_key(key.cipher()?, tag_length).raise()?)))
    }

    /// The next piece of the message.
    fn update(&mut self, py: Python<'_>, data: Buffer) -> PyResult<()> {
        let state = self.0.as_mut().ok_or_else(finished)?;
        released(py, data.len(), || state.update(&data)).raise()
    }

    /// The tag. The object is finished then.
    fn finalize<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.take()?.finish().as_ref()))
    }

    /// Compares in constant time with the message's tag: ``Refused`` if it is another. The object is finished then. The
    /// message stays counted in ``Key.used``.
    fn verify(&mut self, tag: Buffer) -> PyResult<()> {
        self.take()?.verify(&tag).raise()
    }

    /// The same state again, for messages with a common beginning.
    fn copy(&self) -> PyResult<Omac> {
        Ok(Omac(Some(self.0.clone().ok_or_else(finished)?)))
    }

    fn __repr__(&self) -> String {
        format!("<lanework.magma.Omac{}>", if self.0.is_some() { "" } else { ", finished" })
    }
}

/// The secret of a container, on the heap from the start: a value that moves leaves a copy of itself on the stack.
fn secret(key: Option<KeyOrBytes<'_>>, passphrase: Option<Buffer>) -> PyResult<Box<Secret>> {
    let given = match (&key, passphrase) {
        (Some(KeyOrBytes::Key(key)), None) => key.bytes.as_slice(),
        (Some(KeyOrBytes::Bytes(bytes)), None) => bytes.as_slice(),
        (None, Some(text)) => return Ok(Box::new(Secret::Passphrase(Zeroizing::new(text.to_vec())))),
        _ => return Err(pyo3::exceptions::PyTypeError::new_err("either a key or a passphrase is needed")),
    };
    let mut secret = Box::new(Secret::Key(Zeroizing::new([0; 32])));
    if let Secret::Key(copy) = &mut *secret {
        if given.len() != copy.len() {
            return Err(Error::KeyLength(given.len())).raise();
        }
        copy.copy_from_slice(given);
    }
    wipe_vector_registers();
    Ok(secret)
}

/// Why a file was not processed, until there is a Python exception.
enum Failure {
    Python(PyErr),
    Io(io::Error, PathBuf),
    Container(container::Error),
}

impl Failure {
    fn exception(self) -> PyErr {
        match self {
            Failure::Python(why) => why,
            Failure::Container(why) => Err::<(), _>(why).raise().expect_err("an error"),
            Failure::Io(why, path) => match why.raw_os_error() {
                // With a number and a name, Python chooses the class, such as FileNotFoundError.
                Some(number) => {
                    let text = why.to_string();
                    let text = text.split(" (os error").next().unwrap_or_default().to_owned();
                    pyo3::exceptions::PyOSError::new_err((number, text, path))
                }
                None => pyo3::exceptions::PyOSError::new_err(format!("{}: {why}", path.display())),
            },
        }
    }
}

/// A file that is read, with a look for signals about every 100 ms.
struct Watched<'a> {
    file: BufReader<File>,
    last: Instant,
    stopped: &'a mut Option<PyErr>,
}

impl Read for Watched<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.last.elapsed() > Duration::from_millis(100) {
            self.last = Instant::now();
            if let Err(why) = Python::attach(|py| py.check_signals()) {
                *self.stopped = Some(why);
                return Err(io::Error::other("stopped"));
            }
        }
        self.file.read(buf)
    }
}

/// Who may read a file that is written.
#[derive(Clone, Copy)]
enum Access {
    /// The owner alone.
    Private,
    /// Everyone the umask allows.
    Public,
}

/// Creates a file with the permissions that `access`, the umask and the file it will replace all allow.
#[cfg(unix)]
fn create(path: &Path, access: Access, old: Option<&Metadata>) -> io::Result<File> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let most = match access {
        Access::Private => 0o600,
        Access::Public => 0o666,
    };
    let mode = old.map_or(most, |old| most & old.permissions().mode());
    File::options().write(true).create_new(true).mode(mode).open(path)
}

/// Elsewhere, a file has the permissions of its directory.
#[cfg(not(unix))]
fn create(path: &Path, _: Access, _: Option<&Metadata>) -> io::Result<File> {
    File::options().write(true).create_new(true).open(path)
}

/// Removes the permissions that the file at `target` does not have by now.
#[cfg(unix)]
fn restrict(file: &File, target: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let ours = file.metadata()?;
    let old = match fs::symlink_metadata(target) {
        // Another group may have other members.
        Ok(old) if old.is_file() && old.gid() == ours.gid() => old.permissions().mode(),
        Ok(old) if old.is_file() => old.permissions().mode() & !0o070,
        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
        _ => return Ok(()),
    };
    let ours = ours.permissions().mode();
    if ours & old & 0o777 == ours & 0o777 {
        return Ok(());
    }
    file.set_permissions(fs::Permissions::from_mode(ours & old & 0o777))
}

#[cfg(not(unix))]
fn restrict(_: &File, _: &Path) -> io::Result<()> {
    Ok(())
}

/// Whether two paths lead to one file, whatever links are on the way.
#[cfg(unix)]
fn same(source: &Metadata, _: &Path, target: &Metadata, _: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    (source.dev(), source.ino()) == (target.dev(), target.ino())
}

/// Elsewhere, hard links are not found.
#[cfg(not(unix))]
fn same(_: &Metadata, source: &Path, _: &Metadata, target: &Path) -> bool {
    matches!((fs::canonicalize(source), fs::canonicalize(target)), (Ok(source), Ok(target)) if source == target)
}

/// What is at `target`, if anything.
///
/// # Errors
/// It must not be replaced: it is the source, or not a regular file.
fn replaceable(source: &Path, target: &Path) -> Result<Option<Metadata>, Failure> {
    let at = |path: &Path| fs::metadata(path).map_err(|why| Failure::Io(why, path.to_owned()));
    let from = at(source)?;
    let old = match at(target) {
        Err(Failure::Io(why, _)) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    let refused = |why: String| Err(Failure::Python(malformed(why)));
    if same(&from, source, &old, target) {
        let (source, target) = (source.display(), target.display());
        return refused(format!(
            "{target} and {source} are the same file, and the result would destroy the input"
        ));
    }
    if !old.is_file() {
        return refused(format!("{} is not a regular file, and is not replaced", target.display()));
    }
    Ok(Some(old))
}

/// Writes `target` whole or not at all: into a file beside it, which gets its name at the end.
fn whole(
    source: &Path,
    target: &Path,
    access: Access,
    process: impl FnOnce(Watched<'_>, &mut File) -> Result<(), StreamError>,
) -> Result<(), Failure> {
    let named = |path: &Path| {
        let path = path.to_owned();
        move |why| Failure::Io(why, path)
    };
    let old = replaceable(source, target)?;
    // A link stays a link: its target is replaced. A dangling link is replaced itself.
    let place = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
    let reader = File::open(source).map_err(named(source))?;
    let mut random = [0; 8];
    getrandom::fill(&mut random).raise().map_err(Failure::Python)?;
    let mut name = place.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{:016x}.partial", u64::from_ne_bytes(random)));
    let partial = place.with_file_name(name);
    let mut writer = create(&partial, access, old.as_ref()).map_err(named(target))?;
    let mut stopped = None;
    let watched = Watched { file: BufReader::new(reader), last: Instant::now(), stopped: &mut stopped };
    let done = process(watched, &mut writer)
        .map_err(|why| match why {
            StreamError::Container(why) => Failure::Container(why),
            StreamError::Read(why) => Failure::Io(why, source.to_owned()),
            StreamError::Write(why) => Failure::Io(why, target.to_owned()),
            other => Failure::Io(io::Error::other(other.to_string()), source.to_owned()),
        })
        .and_then(|()| writer.flush().and_then(|()| writer.sync_all()).map_err(named(target)))
        .and_then(|()| restrict(&writer, &place).map_err(named(target)))
        .and_then(|()| fs::rename(&partial, &place).map_err(named(target)));
    if done.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&partial);
    }
    match stopped {
        Some(why) => Err(Failure::Python(why)),
        None => done,
    }
}

/// Encrypts a file of any size into an authenticated container, written whole or not at all.
///
/// Either a ``key`` of 32 bytes or a ``passphrase`` (bytes) is needed. ``chunk`` is a power of two from 4096 to 65536;
/// ``iterations`` are those of PBKDF2. ``lanework magma decrypt`` reads the file, too.
///
/// A regular file at ``target`` is replaced and gains no readers. ``Malformed`` if ``target`` is ``source`` or not a regular
/// file.
#[pyfunction]
#[pyo3(signature = (source, target, key = None, *, passphrase = None, chunk = 65536, iterations = 100_000))]
pub(crate) fn encrypt_file(
    py: Python<'_>,
    source: PathBuf,
    target: PathBuf,
    key: Option<KeyOrBytes<'_>>,
    passphrase: Option<Buffer>,
    chunk: usize,
    iterations: u32,
) -> PyResult<()> {
    let secret = secret(key, passphrase)?;
    let mut salt = [0; 32];
    getrandom::fill(&mut salt).raise()?;
    let options = Options { chunk, iterations };
    let process = |reader: Watched<'_>, writer: &mut File| {
        container::encrypt(&secret, options, salt, Engine::best(), reader, writer)
    };
    py.detach(|| whole(&source, &target, Access::Public, process)).map_err(Failure::exception)
}

/// Decrypts a container, written whole or not at all. ``Refused`` if it is not authentic.
///
/// Only the owner may read the new file. ``target`` is replaced or refused as ``encrypt_file`` does it.
#[pyfunction]
#[pyo3(signature = (source, target, key = None, *, passphrase = None))]
pub(crate) fn decrypt_file(
    py: Python<'_>,
    source: PathBuf,
    target: PathBuf,
    key: Option<KeyOrBytes<'_>>,
    passphrase: Option<Buffer>,
) -> PyResult<()> {
    let secret = secret(key, passphrase)?;
    let process =
        |reader: Watched<'_>, writer: &mut File| container::decrypt(&secret, Engine::best(), reader, writer);
    py.detach(|| whole(&source, &target, Access::Private, process)).map_err(Failure::exception)
}
