//! The delay function: discriminants, proving, verifying, and proofs of results that are known.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use lanework_vdf::prover::{self, Options, Phase};
use lanework_vdf::verify::verify_compact as verify_compact_proof;
use lanework_vdf::{
    Challenge, Claim, Claims, Form, Group, Lenient, Limits, Mode, Outcome, ProverError, Question, Strict,
    Task, VerifyError, number,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyType};

use crate::errors::{Kind, Raise, exception, malformed};
use crate::mayo::threads as checked_threads;
use crate::sys::Buffer;

/// Time between two looks for signals and two calls of a progress function.
const LOOK: Duration = Duration::from_millis(100);

/// A discriminant: the class group that a chain runs in.
///
/// ``Discriminant(d)`` takes a negative number, 1 modulo 4, of at most 2,048 bits, and refuses it unless ``-d`` is
/// prime: where factors are known, false results have proofs. ``trust = True`` skips that test.
#[pyclass(frozen, eq, hash, skip_from_py_object, module = "lanework.vdf")]
#[derive(PartialEq, Clone)]
pub(crate) struct Discriminant(pub(crate) lanework_vdf::Discriminant);

impl std::hash::Hash for Discriminant {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        number::to_hexadecimal(&self.0.value()).hash(state);
    }
}

#[pymethods]
impl Discriminant {
    #[new]
    #[pyo3(signature = (d, *, trust = false))]
    fn new(py: Python<'_>, d: &Bound<'_, PyInt>, trust: bool) -> PyResult<Discriminant> {
        // Longer numbers are refused before they become text.
        if d.call_method0("bit_length")?.extract::<usize>()? > 4096 {
            return Err(malformed("a discriminant has at most 2048 bits"));
        }
        let text: String = d.call_method1("__format__", ("#x",))?.extract()?;
        let d = lanework_vdf::Discriminant::new(&number::parse(text.as_bytes()).raise()?).raise()?;
        if !trust && !py.detach(|| d.is_prime()) {
            return Err(exception(
                Kind::Refused,
                "the discriminant is not the negative of a prime".to_owned(),
            ));
        }
        Ok(Discriminant(d))
    }

    /// The discriminant of a challenge, as in Chia.
    #[classmethod]
    #[pyo3(signature = (challenge, bits = 1024))]
    fn from_challenge(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        challenge: Buffer,
        bits: usize,
    ) -> PyResult<Discriminant> {
        Ok(Discriminant(py.detach(|| lanework_vdf::Discriminant::from_seed(&challenge, bits)).raise()?))
    }

    /// Bits of the number.
    #[getter]
    fn bits(&self) -> usize {
        self.0.bits()
    }

    /// Bytes of a form.
    #[getter]
    fn form_length(&self) -> usize {
        lanework_vdf::serial::form_bytes(&self.0)
    }

    /// The form (2, 1) as bytes, where Chia's chains start.
    fn generator<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &generator(&self.0)?.to_bytes(&self.0)))
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = number::to_hexadecimal(&self.0.value());
        py.get_type::<PyInt>().call1((text, 16))
    }

    fn __repr__(&self) -> String {
        format!("<lanework.vdf.Discriminant of {} bits>", self.0.bits())
    }
}

fn generator(d: &lanework_vdf::Discriminant) -> PyResult<Form> {
    Form::generator(d)
        .ok_or_else(|| malformed("the discriminant is not 1 modulo 8, so (2, 1) is not a form of it"))
}

/// The form that a chain starts from: the given one, or the generator.
fn start(py: Python<'_>, d: &lanework_vdf::Discriminant, x: Option<&Buffer>) -> PyResult<Form> {
    match x {
        Some(bytes) => {
            let form = py.detach(|| Form::from_bytes(Strict, d, bytes));
            form.map_err(|why| malformed(format!("the input: {why}")))
        }
        None => generator(d),
    }
}

/// A proof, verified, with everything that its verification needs.
#[pyclass(frozen, get_all, module = "lanework.vdf")]
pub(crate) struct Proof {
    /// The group.
    discriminant: Discriminant,
    /// The form that the chain starts from.
    x: Py<PyBytes>,
    /// Squarings.
    iterations: u64,
    /// The result.
    y: Py<PyBytes>,
    /// The proof in Chia's layout, the result included.
    proof: Py<PyBytes>,
    /// Segments before the last: Chia's witness type.
    depth: u64,
    /// The last segment's prime, 33 bytes: with it ``compact`` proves the same result.
    b: Py<PyBytes>,
    /// The proof without its result.
    compact: Py<PyBytes>,
    /// Squarings that were taken from a checkpoint.
    resumed: u64,
}

#[pymethods]
impl Proof {
    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        self.proof.bind(py).clone()
    }

    fn __repr__(&self) -> String {
        format!("<lanework.vdf.Proof of {} squarings, depth {}>", self.iterations, self.depth)
    }
}

impl Proof {
    fn of(
        py: Python<'_>,
        d: &lanework_vdf::Discriminant,
        x: &Form,
        iterations: u64,
        (proof, b, resumed): (&lanework_vdf::Proof, &Challenge, u64),
    ) -> Proof {
        let encode = || (x.to_bytes(d), proof.y.to_bytes(d), proof.to_bytes(d), proof.compact().to_bytes(d));
        let (x, y, whole, compact) = py.detach(encode);
        let bytes = |bytes: &[u8]| PyBytes::new(py, bytes).unbind();
        Proof {
            discriminant: Discriminant(d.clone()),
            x: bytes(&x),
            iterations,
            y: bytes(&y),
            proof: bytes(&whole),
            depth: proof.depth(),
            b: bytes(&b.to_bytes()),
            compact: bytes(&compact),
            resumed,
        }
    }
}

/// How far a computation is.
#[pyclass(frozen, get_all, module = "lanework.vdf")]
pub(crate) struct Progress {
    /// ``squaring``, ``proving`` or ``verifying``.
    phase: String,
    /// Done of ``total``: squarings; while proving, products of forms; while verifying, segments.
    done: u64,
    /// The value of ``done`` at the end of the phase.
    total: u64,
    /// Squarings taken from a checkpoint.
    resumed: u64,
}

#[pymethods]
impl Progress {
    fn __repr__(&self) -> String {
        format!("<lanework.vdf.Progress {}: {} of {}>", self.phase, self.done, self.total)
    }
}

/// Signals and the caller's function, looked at ten times a second on the thread that called.
struct Watch {
    progress: Option<Py<PyAny>>,
    last: Option<(Instant, Phase)>,
    stopped: Option<PyErr>,
}

impl Watch {
    fn new(progress: Option<Bound<'_, PyAny>>) -> PyResult<Watch> {
        if let Some(function) = &progress
            && !function.is_callable()
        {
            return Err(pyo3::exceptions::PyTypeError::new_err("progress must be callable"));
        }
        Ok(Watch { progress: progress.map(Bound::unbind), last: None, stopped: None })
    }

    /// Whether to go on.
    fn look(&mut self, now: prover::Progress) -> bool {
        if self.last.is_some_and(|(at, phase)| phase == now.phase && at.elapsed() < LOOK) {
            return true;
        }
        self.last = Some((Instant::now(), now.phase));
        let look = |py: Python<'_>| -> PyResult<()> {
            py.check_signals()?;
            let Some(function) = &self.progress else { return Ok(()) };
            let (done, total, resumed) = (now.done, now.total, now.resumed);
            function.call1(py, (Progress { phase: now.phase.to_string(), done, total, resumed },)).map(drop)
        };
        match Python::attach(look) {
            Ok(()) => true,
            Err(why) => {
                self.stopped = Some(why);
                false
            }
        }
    }

    /// The computation's outcome, or the exception that stopped it.
    fn end<T>(self, outcome: Result<T, ProverError>) -> PyResult<T> {
        match self.stopped {
            Some(why) => Err(why),
            None => outcome.raise(),
        }
    }
}

/// A function's options.
fn options<'a>(
    threads: usize,
    memory: Option<usize>,
    checkpoint: Option<&'a PathBuf>,
    interval: f64,
) -> PyResult<Options<'a>> {
    checked_threads(threads)?;
    let mut options = Options::default();
    if threads > 0 {
        options = options.threads(threads);
    }
    if let Some(bytes) = memory {
        options = options.memory(bytes);
    }
    if let Some(path) = checkpoint {
        options = options.checkpoint(path);
    }
    let interval = Duration::try_from_secs_f64(interval);
    Ok(options.interval(interval.map_err(|why| malformed(format!("the interval: {why}")))?))
}

/// Squares ``iterations`` times and proves the result.
///
/// The chain starts from ``x``, a form as bytes, or from the generator. ``segments`` is the most segments before the
/// last, of the lengths that Chia's timelords use. ``threads = 0`` means one for each core; ``memory`` bounds the kept
/// forms in bytes. ``progress`` is called with a ``Progress`` about ten times a second; an exception that it raises, and
/// Ctrl-C, stop the computation. With ``checkpoint``, a file, the same call goes on where it was stopped; ``interval``
/// is the time between its records in seconds.
#[pyfunction]
#[pyo3(signature = (
    discriminant, iterations, *, x = None, segments = 0, threads = 0, memory = None, checkpoint = None,
    interval = 1.0, progress = None
))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn prove(
    py: Python<'_>,
    discriminant: PyRef<'_, Discriminant>,
    iterations: u64,
    x: Option<Buffer>,
    segments: usize,
    threads: usize,
    memory: Option<usize>,
    checkpoint: Option<PathBuf>,
    interval: f64,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Proof> {
    let d = &discriminant.0;
    let x = start(py, d, x.as_ref())?;
    let options = options(threads, memory, checkpoint.as_ref(), interval)?;
    let mut watch = Watch::new(progress)?;
    let task = Task::new(d.clone(), x, iterations);
    let task = if segments > 0 { task.in_chia_segments(segments) } else { task };
    let outcome = py.detach(|| prover::prove(&task, &options, &mut |now| watch.look(now)));
    let proved = watch.end(outcome)?;
    Ok(Proof::of(py, d, &task.x, iterations, (&proved.proof, &proved.b, proved.resumed)))
}

/// Squares ``iterations`` times without a proof: the result as bytes. Arguments as in ``prove``.
#[pyfunction]
#[pyo3(signature = (
    discriminant, iterations, *, x = None, checkpoint = None, interval = 1.0, progress = None
))]
pub(crate) fn evaluate<'py>(
    py: Python<'py>,
    discriminant: PyRef<'_, Discriminant>,
    iterations: u64,
    x: Option<Buffer>,
    checkpoint: Option<PathBuf>,
    interval: f64,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let d = &discriminant.0;
    let x = start(py, d, x.as_ref())?;
    let options = options(1, None, checkpoint.as_ref(), interval)?;
    let mut watch = Watch::new(progress)?;
    let task = Task::new(d.clone(), x, iterations);
    let outcome = py.detach(|| prover::evaluate(&task, &options, &mut |now| watch.look(now)));
    Ok(PyBytes::new(py, &watch.end(outcome)?.y.to_bytes(d)))
}

/// Proves results that are known beforehand, all of one chain, while it is squared once (Chia's blueboxes).
///
/// ``claims`` is a list of pairs: squarings, and the result as bytes. Returns a list with a ``Proof`` in one segment for
/// each, or ``None`` where the chain has another result. ``outcome`` is called with the index and that value as soon as it
/// is known. The other arguments are as in ``prove``.
#[pyfunction]
#[pyo3(signature = (
    discriminant, claims, *, x = None, threads = 0, memory = None, checkpoint = None, interval = 60.0,
    progress = None, outcome = None
))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn compact(
    py: Python<'_>,
    discriminant: PyRef<'_, Discriminant>,
    claims: Vec<(u64, Buffer)>,
    x: Option<Buffer>,
    threads: usize,
    memory: Option<usize>,
    checkpoint: Option<PathBuf>,
    interval: f64,
    progress: Option<Bound<'_, PyAny>>,
    outcome: Option<Bound<'_, PyAny>>,
) -> PyResult<Vec<Option<Py<Proof>>>> {
    let d = &discriminant.0;
    let x = start(py, d, x.as_ref())?;
    let options = options(threads, memory, checkpoint.as_ref(), interval)?;
    let read = |(i, (iterations, bytes)): (usize, &(u64, Buffer))| {
        let y = Form::from_bytes(Strict, d, bytes);
        let y = y.map_err(|why| malformed(format!("the result of claim {i}: {why}")))?;
        Ok(Claim { iterations: *iterations, y })
    };
    let claims: Vec<Claim> = py.detach(|| claims.iter().enumerate().map(read).collect::<PyResult<_>>())?;
    let all = Claims { discriminant: d.clone(), x, claims };
    let function = Watch::new(outcome)?.progress;
    let mut watch = Watch::new(progress)?;
    let mut found: Vec<Option<Py<Proof>>> = (0..all.claims.len()).map(|_| None).collect();
    // An exception of `outcome` ends the computation at the observer's next call.
    let raised = std::cell::RefCell::new(None);
    let squared = py.detach(|| {
        let mut observer = |now| raised.borrow().is_none() && watch.look(now);
        let mut tell = |i: usize, end: Outcome| {
            let told = Python::attach(|py| -> PyResult<()> {
                if let Outcome::Proved(both) = &end {
                    let (proof, b) = &**both;
                    let made = Proof::of(py, d, &all.x, all.claims[i].iterations, (proof, b, 0));
                    found[i] = Some(Py::new(py, made)?);
                }
                let Some(function) = &function else { return Ok(()) };
                let value = found[i].as_ref().map(|proof| proof.clone_ref(py));
                function.call1(py, (i, value)).map(drop)
            });
            if let Err(why) = told {
                raised.borrow_mut().get_or_insert(why);
            }
        };
        let outcome = lanework_vdf::compact(&all, &options, &mut observer, &mut tell);
        (outcome, raised.into_inner())
    });
    match squared {
        (_, Some(why)) => Err(why),
        (outcome, None) => watch.end(outcome).map(|_| found),
    }
}

fn limits(depth: u64, iterations: u64) -> Limits {
    Limits { depth, iterations, ..Limits::default() }
}

fn judge(
    d: &lanework_vdf::Discriminant,
    question: &Question<'_>,
    limits: &Limits,
    lenient: bool,
) -> Result<(), VerifyError> {
    if lenient {
        lanework_vdf::verify(Lenient, d, question, limits)
    } else {
        lanework_vdf::verify(Strict, d, question, limits)
    }
}

/// Verifies that ``proof`` shows its result: ``x`` squared ``iterations`` times, in a proof of ``depth`` segments before
/// the last. ``Refused`` if it does not, ``Malformed`` if the question makes no sense.
///
/// ``lenient`` accepts what Chia's nodes accept. ``max_depth`` and ``max_iterations`` bound the cost.
#[pyfunction]
#[pyo3(signature = (
    discriminant, x, proof, iterations, depth = 0, *, lenient = false, max_depth = 63,
    max_iterations = 281_474_976_710_656
))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn verify(
    py: Python<'_>,
    discriminant: PyRef<'_, Discriminant>,
    x: Buffer,
    proof: Buffer,
    iterations: u64,
    depth: u64,
    lenient: bool,
    max_depth: u64,
    max_iterations: u64,
) -> PyResult<()> {
    let d = &discriminant.0;
    let question = Question { x: &x, proof: &proof, iterations, depth };
    py.detach(|| judge(d, &question, &limits(max_depth, max_iterations), lenient)).raise()
}

/// Verifies many proofs: a list of ``bool``. Each item is a tuple of the first arguments of ``verify``: discriminant, x,
/// proof, iterations, depth. A malformed item gives ``False``. ``threads = 0`` means one for each core.
#[pyfunction]
#[pyo3(signature = (
    items, *, threads = 1, lenient = false, max_depth = 63, max_iterations = 281_474_976_710_656
))]
pub(crate) fn verify_batch(
    py: Python<'_>,
    items: Vec<(PyRef<'_, Discriminant>, Buffer, Buffer, u64, u64)>,
    threads: usize,
    lenient: bool,
    max_depth: u64,
    max_iterations: u64,
) -> PyResult<Vec<bool>> {
    fn all<M: Mode>(
        mode: M,
        questions: &[(Group<'_>, Question<'_>)],
        limits: &Limits,
        threads: lanework_cpu::Threads<'_>,
    ) -> PyResult<Vec<Result<(), VerifyError>>> {
        lanework_vdf::verify_all(mode, questions, limits, threads).raise()
    }
    let threads = checked_threads(threads)?;
    let questions: Vec<(Group<'_>, Question<'_>)> = items
        .iter()
        .map(|(d, x, proof, iterations, depth)| {
            let question = Question { x, proof, iterations: *iterations, depth: *depth };
            (Group::from(&d.0), question)
        })
        .collect();
    let limits = limits(max_depth, max_iterations);
    let outcomes = py.detach(|| {
        if lenient {
            all(Lenient, &questions, &limits, threads)
        } else {
            all(Strict, &questions, &limits, threads)
        }
    })?;
    Ok(outcomes.iter().map(Result::is_ok).collect())
}

/// The result that a compact proof shows, given the last segment's prime ``b``; see ``Proof.compact``.
#[pyfunction]
#[pyo3(signature = (
    discriminant, x, proof, b, iterations, depth = 0, *, lenient = false, max_depth = 63,
    max_iterations = 281_474_976_710_656
))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn verify_compact<'py>(
    py: Python<'py>,
    discriminant: PyRef<'_, Discriminant>,
    x: Buffer,
    proof: Buffer,
    b: Buffer,
    iterations: u64,
    depth: u64,
    lenient: bool,
    max_depth: u64,
    max_iterations: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    let d = &discriminant.0;
    let bytes: &[u8; 33] =
        (&*b).try_into().map_err(|_| malformed(format!("b has {} bytes instead of 33", b.len())))?;
    let b = Challenge::from_bytes(bytes);
    let question = Question { x: &x, proof: &proof, iterations, depth };
    let limits = limits(max_depth, max_iterations);
    let found = py.detach(|| {
        if lenient {
            verify_compact_proof(Lenient, d, &b, &question, &limits)
        } else {
            verify_compact_proof(Strict, d, &b, &question, &limits)
        }
    });
    Ok(PyBytes::new(py, &found.raise()?.to_bytes(d)))
}
