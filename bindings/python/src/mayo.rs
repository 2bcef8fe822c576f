//! MAYO: keys as objects, signing, verifying, and batches.
#![forbid(unsafe_code)]

use getrandom::SysRng;
use lanework_cpu::Threads;
use lanework_mayo::batch::{self, Signers, Verifiers};
use lanework_mayo::{Engine, Error, Params, Round, Set, SignOptions, Signature};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyType};

use crate::errors::{Raise, kind, malformed};
use crate::rows::Rows;
use crate::sys::Buffer;

/// The parameter set that a name and a round stand for.
fn params(name: &str, round: i64) -> PyResult<&'static Params> {
    let set = Set::ALL.into_iter().find(|set| set.to_string() == name);
    let set =
        set.ok_or_else(|| malformed(format!("no set {name:?}: MAYO-1, MAYO-2, MAYO-3 and MAYO-5 exist")))?;
    let round = match round {
        2 => Round::Two,
        3 => Round::Three,
        other => return Err(malformed(format!("no round {other}: 2 and 3 exist"))),
    };
    Ok(Params::of(round, set))
}

/// The number of threads of a call; 0 means one for each core.
pub(crate) fn threads(n: usize) -> PyResult<Threads<'static>> {
    match n {
        1 => Ok(Threads::One),
        n if n <= Threads::MOST => Ok(Threads::Own(n)),
        n => Err(malformed(format!("{n} threads; at most {} are started", Threads::MOST))),
    }
}

/// A secret key: 24 to 40 bytes of seed, with set and round. Its memory is wiped when the object goes; ``export`` and
/// ``to_pem`` are the only ways to its bytes.
#[pyclass(frozen, module = "lanework.mayo")]
pub(crate) struct SecretKey(lanework_mayo::SecretKey);

/// A public key, with set and round.
#[pyclass(frozen, eq, hash, skip_from_py_object, module = "lanework.mayo")]
#[derive(PartialEq, Clone)]
pub(crate) struct PublicKey(lanework_mayo::PublicKey);

impl std::hash::Hash for PublicKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.as_bytes().hash(state);
    }
}

/// A secret key with everything that depends only on it computed beforehand: for many signatures. Wiped when the object
/// goes.
#[pyclass(frozen, module = "lanework.mayo")]
pub(crate) struct SigningKey(lanework_mayo::SigningKey);

/// A public key with everything that depends only on it computed beforehand: for many verifications.
#[pyclass(frozen, module = "lanework.mayo")]
pub(crate) struct VerifyingKey(lanework_mayo::VerifyingKey);

#[pymethods]
impl SecretKey {
    /// A key from the operating system's randomness.
    #[classmethod]
    #[pyo3(signature = (name, *, round = 3))]
    fn generate(_class: &Bound<'_, PyType>, name: &str, round: i64) -> PyResult<SecretKey> {
        Ok(SecretKey(lanework_mayo::SecretKey::generate_os(params(name, round)?).raise()?))
    }

    /// A key from its bytes, which carry neither set nor round. Never use a seed in two rounds.
    #[classmethod]
    #[pyo3(signature = (data, name, *, round = 3))]
    fn from_bytes(_class: &Bound<'_, PyType>, data: Buffer, name: &str, round: i64) -> PyResult<SecretKey> {
        Ok(SecretKey(lanework_mayo::SecretKey::from_seed(params(name, round)?, &data).raise()?))
    }

    /// A key file of any set and round.
    #[classmethod]
    fn from_pem(_class: &Bound<'_, PyType>, py: Python<'_>, text: &str) -> PyResult<SecretKey> {
        Ok(SecretKey(py.detach(|| lanework_mayo::SecretKey::from_pem(Engine::best(), text)).raise()?))
    }

    /// The secret bytes. Python keeps copies of ``bytes`` as it likes; nothing wipes them.
    fn export<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.expose_seed())
    }

    /// The key file, which is secret, too.
    fn to_pem<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let text = py.detach(|| self.0.to_pem(Engine::best())).raise()?;
        Ok(PyString::new(py, &text))
    }

    /// The public key.
    fn public_key(&self, py: Python<'_>) -> PublicKey {
        PublicKey(py.detach(|| self.0.public_key(Engine::best())))
    }

    /// The key expanded, for many signatures.
    fn expand(&self, py: Python<'_>) -> SigningKey {
        SigningKey(py.detach(|| lanework_mayo::SigningKey::new(Engine::best(), &self.0)))
    }

    /// Signs. With ``verify``, the signature is verified before it is returned, against faults of the machine.
    #[pyo3(signature = (message, *, verify = false))]
    fn sign<'py>(&self, py: Python<'py>, message: Buffer, verify: bool) -> PyResult<Bound<'py, PyBytes>> {
        let sign = || self.0.sign_with(Engine::best(), &message, SignOptions { verify }, &mut SysRng);
        Ok(PyBytes::new(py, py.detach(sign).raise()?.as_bytes()))
    }

    /// Compares in constant time.
    fn __eq__(&self, other: PyRef<'_, SecretKey>) -> bool {
        self.0 == other.0
    }

    fn __repr__(&self) -> String {
        format!("<lanework.mayo.SecretKey {}>", self.0.params().name())
    }

    /// The set's name, such as ``MAYO-2``.
    #[getter]
    fn name(&self) -> String {
        self.0.params().set().to_string()
    }

    /// The round: 2 or 3.
    #[getter]
    fn round(&self) -> u8 {
        self.0.params().round().number()
    }
}

#[pymethods]
impl PublicKey {
    /// A key from its bytes, which carry neither set nor round.
    #[classmethod]
    #[pyo3(signature = (data, name, *, round = 3))]
    fn from_bytes(_class: &Bound<'_, PyType>, data: Buffer, name: &str, round: i64) -> PyResult<PublicKey> {
        Ok(PublicKey(lanework_mayo::PublicKey::from_bytes(params(name, round)?, &data).raise()?))
    }

    /// A key file of any set and round.
    #[classmethod]
    fn from_pem(_class: &Bound<'_, PyType>, text: &str) -> PyResult<PublicKey> {
        Ok(PublicKey(lanework_mayo::PublicKey::from_pem(text).raise()?))
    }

    /// The key file.
    fn to_pem(&self) -> PyResult<String> {
        self.0.to_pem().raise()
    }

    /// The key's bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.as_bytes())
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        self.to_bytes(py)
    }

    /// The key expanded, for many verifications.
    fn expand(&self, py: Python<'_>) -> VerifyingKey {
        VerifyingKey(py.detach(|| lanework_mayo::VerifyingKey::new(Engine::best(), &self.0)))
    }

    /// Verifies: ``Refused`` if the signature is not valid, ``Malformed`` if it has the wrong length.
    fn verify(&self, py: Python<'_>, message: Buffer, signature: Buffer) -> PyResult<()> {
        let signature = Signature::from_bytes(self.0.params(), &signature).raise()?;
        py.detach(|| self.0.verify(Engine::best(), &message, &signature)).raise()
    }

    fn __repr__(&self) -> String {
        format!("<lanework.mayo.PublicKey {}>", self.0.params().name())
    }

    /// The set's name, such as ``MAYO-2``.
    #[getter]
    fn name(&self) -> String {
        self.0.params().set().to_string()
    }

    /// The round: 2 or 3.
    #[getter]
    fn round(&self) -> u8 {
        self.0.params().round().number()
    }

    /// Bytes of a signature.
    #[getter]
    fn signature_length(&self) -> usize {
        self.0.params().signature_bytes()
    }
}

#[pymethods]
impl SigningKey {
    #[new]
    fn new(py: Python<'_>, key: PyRef<'_, SecretKey>) -> SigningKey {
        key.expand(py)
    }

    /// Signs. With ``verify``, the signature is verified before it is returned, against faults of the machine.
    #[pyo3(signature = (message, *, verify = false))]
    fn sign<'py>(&self, py: Python<'py>, message: Buffer, verify: bool) -> PyResult<Bound<'py, PyBytes>> {
        let sign = || self.0.sign_with(&message, SignOptions { verify }, &mut SysRng);
        Ok(PyBytes::new(py, py.detach(sign).raise()?.as_bytes()))
    }

    fn __repr__(&self) -> String {
        format!("<lanework.mayo.SigningKey {} on {}>", self.0.params().name(), self.0.engine().name())
    }

    /// The set's name, such as ``MAYO-2``.
    #[getter]
    fn name(&self) -> String {
        self.0.params().set().to_string()
    }

    /// The round: 2 or 3.
    #[getter]
    fn round(&self) -> u8 {
        self.0.params().round().number()
    }

    /// The backend in use.
    #[getter]
    fn backend(&self) -> &'static str {
        self.0.engine().name()
    }
}

#[pymethods]
impl VerifyingKey {
    #[new]
    fn new(py: Python<'_>, key: PyRef<'_, PublicKey>) -> VerifyingKey {
        key.expand(py)
    }

    /// Verifies: ``Refused`` if the signature is not valid, ``Malformed`` if it has the wrong length.
    fn verify(&self, py: Python<'_>, message: Buffer, signature: Buffer) -> PyResult<()> {
        let signature = Signature::from_bytes(self.0.params(), &signature).raise()?;
        py.detach(|| self.0.verify(&message, &signature)).raise()
    }

    /// The compact key.
    fn public_key(&self) -> PublicKey {
        PublicKey(self.0.public_key().clone())
    }

    fn __repr__(&self) -> String {
        format!("<lanework.mayo.VerifyingKey {} on {}>", self.0.params().name(), self.0.engine().name())
    }

    /// The set's name, such as ``MAYO-2``.
    #[getter]
    fn name(&self) -> String {
        self.0.params().set().to_string()
    }

    /// The round: 2 or 3.
    #[getter]
    fn round(&self) -> u8 {
        self.0.params().round().number()
    }

    /// The backend in use.
    #[getter]
    fn backend(&self) -> &'static str {
        self.0.engine().name()
    }
}

/// Whose signatures a batch makes.
pub(crate) enum SigningKeys<'py> {
    One(PyRef<'py, SigningKey>),
    OneCompact(PyRef<'py, SecretKey>),
    EachCompact(Vec<PyRef<'py, SecretKey>>),
}

impl<'py> FromPyObject<'_, 'py> for SigningKeys<'py> {
    type Error = PyErr;

    fn extract(obj: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let one = obj.extract().map(SigningKeys::One);
        let one = one.or_else(|_| obj.extract().map(SigningKeys::OneCompact));
        let each = one.or_else(|_| obj.extract().map(SigningKeys::EachCompact));
        each.map_err(|_| not_keys("a SigningKey, a SecretKey or a list of SecretKey", &obj))
    }
}

/// Whose signatures a batch verifies.
pub(crate) enum VerifyingKeys<'py> {
    One(PyRef<'py, VerifyingKey>),
    OneCompact(PyRef<'py, PublicKey>),
    Each(Vec<PyRef<'py, VerifyingKey>>),
    EachCompact(Vec<PyRef<'py, PublicKey>>),
}

impl<'py> FromPyObject<'_, 'py> for VerifyingKeys<'py> {
    type Error = PyErr;

    fn extract(obj: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let one = obj.extract().map(VerifyingKeys::One);
        let one = one.or_else(|_| obj.extract().map(VerifyingKeys::OneCompact));
        let each = one.or_else(|_| obj.extract().map(VerifyingKeys::Each));
        let each = each.or_else(|_| obj.extract().map(VerifyingKeys::EachCompact));
        each.map_err(|_| not_keys("a VerifyingKey, a PublicKey or a list of one of the two", &obj))
    }
}

fn not_keys(needed: &str, obj: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("the key is {needed}, not {}", kind(obj)))
}

fn count(what: &'static str, expected: usize, got: usize) -> PyResult<()> {
    if expected == got { Ok(()) } else { Err(Error::Count { what, expected, got }).raise() }
}

/// Signs each message: the signatures, in the order of the messages.
///
/// ``key`` is one key for all messages, expanded or not, or a list of ``SecretKey``, one for each. ``messages`` is a
/// list of bytes-like objects, a two-dimensional array of bytes (its rows), or an Arrow array of binary values.
/// ``threads = 0`` means one for each core.
#[pyfunction]
#[pyo3(signature = (key, messages, *, threads = 1, verify = false))]
pub(crate) fn sign_batch<'py>(
    py: Python<'py>,
    key: SigningKeys<'_>,
    messages: Rows,
    threads: usize,
    verify: bool,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let threads = self::threads(threads)?;
    let rows = messages.slices();
    let some =
        rows.iter().enumerate().map(|(i, row)| row.ok_or_else(|| malformed(format!("message {i} is null"))));
    let rows: Vec<&[u8]> = some.collect::<PyResult<_>>()?;
    let compact: Vec<lanework_mayo::SecretKey> = match &key {
        SigningKeys::EachCompact(keys) => keys.iter().map(|key| key.0.clone()).collect(),
        _ => Vec::new(),
    };
    let signers = match &key {
        SigningKeys::One(key) => Signers::One(&key.0),
        SigningKeys::OneCompact(key) => Signers::OneCompact(Engine::best(), &key.0),
        SigningKeys::EachCompact(_) => Signers::EachCompact(Engine::best(), &compact),
    };
    let options = SignOptions { verify };
    let made = py.detach(|| batch::sign(signers, &rows, options, &mut SysRng, threads)).raise()?;
    made.into_iter().map(|one| Ok(PyBytes::new(py, one.raise()?.as_bytes()))).collect()
}

/// Verifies each signature against the message of the same index: a list of ``bool``.
///
/// ``key`` is one key for all, expanded or not, or a list of keys of one kind, one for each. ``messages`` and
/// ``signatures`` are lists of bytes-like objects, two-dimensional arrays of bytes (their rows), or Arrow arrays of
/// binary values. A signature of the wrong length and a null value give ``False``. ``threads = 0`` means one for each
/// core.
#[pyfunction]
#[pyo3(signature = (key, messages, signatures, *, threads = 1))]
pub(crate) fn verify_batch(
    py: Python<'_>,
    key: VerifyingKeys<'_>,
    messages: Rows,
    signatures: Rows,
    threads: usize,
) -> PyResult<Vec<bool>> {
    let threads = self::threads(threads)?;
    let all = messages.len();
    count("signatures", all, signatures.len())?;
    match &key {
        VerifyingKeys::Each(keys) => count("keys", all, keys.len())?,
        VerifyingKeys::EachCompact(keys) => count("keys", all, keys.len())?,
        VerifyingKeys::One(_) | VerifyingKeys::OneCompact(_) => {}
    }
    let params = |i: usize| match &key {
        VerifyingKeys::One(key) => key.0.params(),
        VerifyingKeys::OneCompact(key) => key.0.params(),
        VerifyingKeys::Each(keys) => keys[i].0.params(),
        VerifyingKeys::EachCompact(keys) => keys[i].0.params(),
    };
    // Items without a message or a signature of the right length are not valid; the others form the batch.
    let (mut places, mut kept, mut parsed) = (Vec::new(), Vec::new(), Vec::new());
    for (i, (message, signature)) in messages.slices().into_iter().zip(signatures.slices()).enumerate() {
        let (Some(message), Some(signature)) = (message, signature) else { continue };
        let Ok(signature) = Signature::from_bytes(params(i), signature) else { continue };
        places.push(i);
        kept.push(message);
        parsed.push(signature);
    }
    let (mut expanded, mut compact) = (Vec::new(), Vec::new());
    match &key {
        VerifyingKeys::Each(keys) => expanded.extend(places.iter().map(|&i| keys[i].0.clone())),
        VerifyingKeys::EachCompact(keys) => compact.extend(places.iter().map(|&i| keys[i].0.clone())),
        VerifyingKeys::One(_) | VerifyingKeys::OneCompact(_) => {}
    }
    let verifiers = match &key {
        VerifyingKeys::One(key) => Verifiers::One(&key.0),
        VerifyingKeys::OneCompact(key) => Verifiers::OneCompact(Engine::best(), &key.0),
        VerifyingKeys::Each(_) => Verifiers::Each(&expanded),
        VerifyingKeys::EachCompact(_) => Verifiers::EachCompact(Engine::best(), &compact),
    };
    let outcomes = py.detach(|| batch::verify(verifiers, &kept, &parsed, threads)).raise()?;
    let mut valid = vec![false; all];
    for (i, outcome) in places.into_iter().zip(outcomes) {
        valid[i] = outcome.is_ok();
    }
    Ok(valid)
}
