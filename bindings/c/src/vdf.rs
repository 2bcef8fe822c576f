//! The delay function: discriminants, verification, proving, compact proofs.
#![allow(non_camel_case_types, reason = "the names that C sees")]

use core::ffi::{CStr, c_char, c_void};
use core::ptr;
use std::path::Path;

use lanework_integer::{Int, Uint};
use lanework_vdf::form::LIMBS;
use lanework_vdf::prover::{Phase, chia_segments};
use lanework_vdf::verify::{self, Malformed};
use lanework_vdf::{
    Challenge, Claim, Claims, DecodeError, Discriminant, DiscriminantError, Form, Group, Lenient, Limits,
    Options, Outcome, Progress, ProofError, ProverError, Question, Strict, Task, VerifyError, compact, prove,
    serial, verify_challenge,
};

use crate::entry::{
    Answer, Buffers, Output, batch, bytes, claim, guard, place_and_claim, reference, release, shared, threads,
};
use crate::status::lw_status;

/// Bytes of a form, up to 1,024 bits of discriminant. lw_vdf_form_bytes has those of longer ones.
pub const LW_VDF_FORM_BYTES: usize = 100;
/// Bytes of B, the prime of a compact proof.
pub const LW_VDF_B_BYTES: usize = 33;
/// The most bits of a discriminant.
pub const LW_VDF_BITS_MAX: usize = 2048;
/// The most segments before the last that verification allows, as in Chia.
pub const LW_VDF_DEPTH_MAX: u64 = 63;

/// Every form has one encoding.
pub const LW_VDF_STRICT: u32 = 0;
/// The encodings that Chia's nodes accept by consensus.
pub const LW_VDF_LENIENT: u32 = 1;

/// lw_vdf_progress.phase: squaring.
pub const LW_VDF_SQUARING: u32 = 0;
/// lw_vdf_progress.phase: proving, after the squaring.
pub const LW_VDF_PROVING: u32 = 1;
/// lw_vdf_progress.phase: verifying what was proved.
pub const LW_VDF_VERIFYING: u32 = 2;

impl From<DiscriminantError> for lw_status {
    fn from(why: DiscriminantError) -> lw_status {
        match why {
            DiscriminantError::TooLong { .. } | DiscriminantError::OddLength { .. } => lw_status::Parameter,
            _ => lw_status::Discriminant,
        }
    }
}

impl From<DecodeError> for lw_status {
    fn from(why: DecodeError) -> lw_status {
        match why {
            DecodeError::Length { .. } => lw_status::Length,
            _ => lw_status::Form,
        }
    }
}

impl From<VerifyError> for lw_status {
    fn from(why: VerifyError) -> lw_status {
        match why {
            VerifyError::Refused(_) => lw_status::Refused,
            VerifyError::Malformed(Malformed::Discriminant(why)) => why.into(),
            VerifyError::Malformed(Malformed::Input(why)) => why.into(),
            VerifyError::Malformed(Malformed::Proof(ProofError::Form { why, .. })) => why.into(),
            VerifyError::Malformed(Malformed::Proof(ProofError::Length { .. })) => lw_status::Length,
            VerifyError::Malformed(Malformed::NoIterations) => lw_status::Parameter,
            VerifyError::Malformed(
                Malformed::Proof(ProofError::Depth { .. })
                | Malformed::Iterations { .. }
                | Malformed::Bits { .. },
            ) => lw_status::Limit,
            _ => lw_status::Internal,
        }
    }
}

impl From<ProverError> for lw_status {
    fn from(why: ProverError) -> lw_status {
        match why {
            ProverError::NoIterations | ProverError::Segments => lw_status::Parameter,
            ProverError::Chain(lanework_vdf::chain::ChainError::Form) => lw_status::Form,
            ProverError::Chain(_) | ProverError::Wrong { .. } => lw_status::Fault,
            ProverError::Cancelled { .. } => lw_status::Cancelled,
            ProverError::Checkpoint(_) => lw_status::Checkpoint,
            ProverError::Thread(_) => lw_status::Threads,
            _ => lw_status::Internal,
        }
    }
}

/// Bytes of a form for a discriminant of `bits` bits.
#[unsafe(no_mangle)]
pub extern "C" fn lw_vdf_form_bytes(bits: usize) -> usize {
    serial::form_bytes_for(bits.min(LW_VDF_BITS_MAX))
}

/// Bytes of a proof with `depth` segments before the last: the result, its proof, and for each segment its squarings (8 bytes, highest
/// first), its B and its proof. 0 above LW_VDF_DEPTH_MAX. A compact proof lacks the result.
#[unsafe(no_mangle)]
pub extern "C" fn lw_vdf_proof_bytes(bits: usize, depth: u64) -> usize {
    let form = lw_vdf_form_bytes(bits);
    if depth > LW_VDF_DEPTH_MAX { 0 } else { 2 * form + depth as usize * (8 + LW_VDF_B_BYTES + form) }
}

/// A class group, by its discriminant.
pub struct lw_vdf_discriminant(Discriminant);

/// The discriminant of a challenge: the negative of a prime of `bits` bits, a multiple of 8 up to LW_VDF_BITS_MAX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_vdf_discriminant_from_challenge(
    challenge: *const u8,
    challenge_len: usize,
    bits: usize,
    out: *mut *const lw_vdf_discriminant,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and a place for a handle.
        let (out, ([challenge], [])) =
            unsafe { place_and_claim(out, ptr::null(), [(challenge, challenge_len)], []) }?;
        out.share(lw_vdf_discriminant(Discriminant::from_seed(challenge, bits)?));
        Ok(())
    })
}

/// The discriminant whose absolute value these bytes are, highest first. It must be 1 modulo 4, but need not be the negative of a
/// prime: a proof in the group of a composite number shows nothing. See lw_vdf_discriminant_is_prime.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_vdf_discriminant_from_bytes(
    magnitude: *const u8,
    magnitude_len: usize,
    out: *mut *const lw_vdf_discriminant,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and a place for a handle.
        let (out, ([magnitude], [])) =
            unsafe { place_and_claim(out, ptr::null(), [(magnitude, magnitude_len)], []) }?;
        let magnitude: Uint<LIMBS> = Uint::from_be_bytes(magnitude).ok_or(lw_status::Discriminant)?;
        out.share(lw_vdf_discriminant(Discriminant::new(&Int::new(true, magnitude))?));
        Ok(())
    })
}

/// Another reference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_vdf_discriminant_ref(discriminant: *const lw_vdf_discriminant) -> lw_status {
    // SAFETY: the caller has a reference.
    unsafe { reference(discriminant) }
}

/// Gives a reference back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_vdf_discriminant_free(discriminant: *const lw_vdf_discriminant) {
    // SAFETY: the caller gives up a reference.
    unsafe { release(discriminant) }
}

/// Bits of its absolute value; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_vdf_discriminant_bits(discriminant: *const lw_vdf_discriminant) -> usize {
    // SAFETY: the caller has a reference.
    unsafe { shared(discriminant) }.map_or(0, |discriminant| discriminant.0.bits())
}

/// Whether it is the negative of a prime; false for NULL. It takes milliseconds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_vdf_discriminant_is_prime(discriminant: *const lw_vdf_discriminant) -> bool {
    let mut prime = false;
    guard(|| {
        // SAFETY: the caller has a reference.
        prime = unsafe { shared(discriminant) }?.0.is_prime();
        Ok(())
    });
    prime
}

/// Its absolute value, highest byte first, in (bits + 7) / 8 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_vdf_discriminant_to_bytes(
    discriminant: *const lw_vdf_discriminant,
    magnitude: *mut u8,
    magnitude_len: usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and has a reference.
        let (([], [mut magnitude]), discriminant) =
            unsafe { (claim([], [(magnitude, magnitude_len)])?, shared(discriminant)?) };
        if magnitude.len() != discriminant.0.bits().div_ceil(8) {
            return Err(lw_status::Length);
        }
        discriminant.0.value().magnitude().write_be_bytes(&mut magnitude);
        magnitude.keep();
        Ok(())
    })
}

/// The form that Chia's chains start from, in lw_vdf_form_bytes: LW_STATUS_DISCRIMINANT unless the discriminant is 1 modulo 8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_vdf_generator(
    discriminant: *const lw_vdf_discriminant,
    form: *mut u8,
    form_len: usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and has a reference.
        let (([], [form]), discriminant) = unsafe { (claim([], [(form, form_len)])?, shared(discriminant)?) };
        let generator = Form::generator(&discriminant.0).ok_or(lw_status::Discriminant)?;
        form.fill(&generator.to_bytes(&discriminant.0))
    })
}

/// Whether a proof shows that its result is `x` squared `iterations` times: LW_STATUS_REFUSED if not. `encoding` is LW_VDF_STRICT or
/// LW_VDF_LENIENT. `proof` has lw_vdf_proof_bytes, and begins with the result. Take the discriminant from a challenge, or check that it
/// is prime.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_vdf_verify(
    discriminant: *const lw_vdf_discriminant,
    encoding: u32,
    x: *const u8,
    x_len: usize,
    proof: *const u8,
    proof_len: usize,
    iterations: u64,
    depth: u64,
) -> lw_status {
    guard(|| {
        let buffers = [(x, x_len), (proof, proof_len)];
        // SAFETY: the caller lends buffers and has a reference.
        let (([x, proof], []), discriminant) = unsafe { (claim(buffers, [])?, shared(discriminant)?) };
        let (question, limits) = (Question { x, proof, iterations, depth }, Limits::default());
        Ok(match encoding {
            LW_VDF_STRICT => verify::verify(Strict, &discriminant.0, &question, &limits),
            LW_VDF_LENIENT => verify::verify(Lenient, &discriminant.0, &question, &limits),
            _ => return Err(lw_status::Parameter),
        }?)
    })
}

/// lw_vdf_verify with the discriminant of a challenge. Malformed questions are refused before the search for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_vdf_verify_challenge(
    challenge: *const u8,
    challenge_len: usize,
    bits: usize,
    encoding: u32,
    x: *const u8,
    x_len: usize,
    proof: *const u8,
    proof_len: usize,
    iterations: u64,
    depth: u64,
) -> lw_status {
    guard(|| {
        let buffers = [(challenge, challenge_len), (x, x_len), (proof, proof_len)];
        // SAFETY: the caller lends buffers.
        let ([challenge, x, proof], []) = unsafe { claim(buffers, []) }?;
        let (question, limits) = (Question { x, proof, iterations, depth }, Limits::default());
        Ok(match encoding {
            LW_VDF_STRICT => verify_challenge(Strict, challenge, bits, &question, &limits),
            LW_VDF_LENIENT => verify_challenge(Lenient, challenge, bits, &question, &limits),
            _ => return Err(lw_status::Parameter),
        }?)
    })
}

/// The result that a compact proof leads to, in lw_vdf_form_bytes, given the last segment's B of LW_VDF_B_BYTES. LW_STATUS_REFUSED if it
/// does not prove a result for that prime.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_vdf_verify_compact(
    discriminant: *const lw_vdf_discriminant,
    encoding: u32,
    b: *const u8,
    b_len: usize,
    x: *const u8,
    x_len: usize,
    proof: *const u8,
    proof_len: usize,
    iterations: u64,
    depth: u64,
    y: *mut u8,
    y_len: usize,
) -> lw_status {
    guard(|| {
        let buffers = [(b, b_len), (x, x_len), (proof, proof_len)];
        // SAFETY: the caller lends buffers and has a reference.
        let (([b, x, proof], [y]), discriminant) =
            unsafe { (claim(buffers, [(y, y_len)])?, shared(discriminant)?) };
        let b = Challenge::from_bytes(b.try_into().map_err(|_| lw_status::Length)?);
        let (question, limits) = (Question { x, proof, iterations, depth }, Limits::default());
        let form = match encoding {
            LW_VDF_STRICT => verify::verify_compact(Strict, &discriminant.0, &b, &question, &limits),
            LW_VDF_LENIENT => verify::verify_compact(Lenient, &discriminant.0, &b, &question, &limits),
            _ => return Err(lw_status::Parameter),
        }?;
        y.fill(&form.to_bytes(&discriminant.0))
    })
}

/// A proof for lw_vdf_verify_batch; see lw_vdf_verify.
#[repr(C)]
pub struct lw_vdf_verify_job {
    /// The group.
    pub discriminant: *const lw_vdf_discriminant,
    /// The form that the chain starts from.
    pub x: *const u8,
    /// Bytes of `x`.
    pub x_len: usize,
    /// The result and the proof.
    pub proof: *const u8,
    /// Bytes of `proof`.
    pub proof_len: usize,
    /// Squarings.
    pub iterations: u64,
    /// Segments before the last.
    pub depth: u64,
}

/// Verifies `count` proofs. Each has its status; the call's is the first that is not LW_STATUS_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_vdf_verify_batch(
    jobs: *const lw_vdf_verify_job,
    count: usize,
    encoding: u32,
    thread_count: usize,
    statuses: *mut lw_status,
) -> lw_status {
    let body = |jobs: &[lw_vdf_verify_job], statuses: &mut [lw_status]| {
        let mut buffers = Buffers::new(jobs, statuses);
        for job in jobs {
            buffers.read(job.x, job.x_len);
            buffers.read(job.proof, job.proof_len);
        }
        // SAFETY: the caller lends them all.
        unsafe { buffers.claim() }?;
        let question = |job: &lw_vdf_verify_job| {
            // SAFETY: claimed above, and the caller has a reference.
            let (discriminant, x, proof) = unsafe {
                (shared(job.discriminant)?, bytes((job.x, job.x_len)), bytes((job.proof, job.proof_len)))
            };
            let question = Question { x, proof, iterations: job.iterations, depth: job.depth };
            Ok((Group::from(&discriminant.0), question))
        };
        let questions = jobs.iter().map(question).collect::<Answer<Vec<_>>>()?;
        let (limits, threads) = (Limits::default(), threads(thread_count)?);
        let outcomes = match encoding {
            LW_VDF_STRICT => verify::verify_all(Strict, &questions, &limits, threads),
            LW_VDF_LENIENT => verify::verify_all(Lenient, &questions, &limits, threads),
            _ => return Err(lw_status::Parameter),
        };
        for (status, outcome) in statuses.iter_mut().zip(outcomes.map_err(|_| lw_status::Threads)?) {
            *status = outcome.map_or_else(Into::into, |()| lw_status::Ok);
        }
        Ok(())
    };
    // SAFETY: the caller lends jobs and statuses.
    unsafe { batch(jobs, count, statuses, body) }
}

/// How far a computation is.
#[repr(C)]
pub struct lw_vdf_progress {
    /// Done of `total`: squarings, products of forms, or segments verified.
    pub done: u64,
    /// `done` at the end of the phase.
    pub total: u64,
    /// Squarings that came from the checkpoint.
    pub resumed: u64,
    /// LW_VDF_SQUARING, LW_VDF_PROVING or LW_VDF_VERIFYING.
    pub phase: u32,
}

/// Called several times a second, always on the thread of the call; false stops the computation. It returns in the ordinary way: no
/// longjmp, no C++ exception.
pub type lw_vdf_observer =
    Option<unsafe extern "C" fn(context: *mut c_void, progress: *const lw_vdf_progress) -> bool>;

/// What an observer of C makes of progress; without one, the computation goes on.
fn observe(observer: lw_vdf_observer, context: *mut c_void) -> impl FnMut(Progress) -> bool {
    move |progress| {
        let Some(observer) = observer else { return true };
        let Progress { done, total, resumed, .. } = progress;
        let phase = match progress.phase {
            Phase::Squaring => LW_VDF_SQUARING,
            Phase::Proving => LW_VDF_PROVING,
            Phase::Verifying => LW_VDF_VERIFYING,
        };
        // SAFETY: the caller gave the function together with its context, and the progress lives during the call.
        unsafe { observer(context, &lw_vdf_progress { done, total, resumed, phase }) }
    }
}

/// The prover's options. Zero threads is one for each core.
///
/// # Safety
/// `checkpoint` is NULL, or a string that lives for `'a`.
unsafe fn options<'a>(thread_count: usize, checkpoint: *const c_char) -> Answer<Options<'a>> {
    let threads = threads(thread_count)?.count();
    let options = Options::default().threads(threads);
    if checkpoint.is_null() {
        return Ok(options);
    }
    // SAFETY: a string, as promised.
    let path = unsafe { CStr::from_ptr(checkpoint) };
    Ok(options.checkpoint(path_of(path)?))
}

#[cfg(unix)]
fn path_of(path: &CStr) -> Answer<&Path> {
    use std::os::unix::ffi::OsStrExt;
    Ok(Path::new(std::ffi::OsStr::from_bytes(path.to_bytes())))
}

#[cfg(not(unix))]
fn path_of(path: &CStr) -> Answer<&Path> {
    path.to_str().map(Path::new).map_err(|_| lw_status::Checkpoint)
}

/// The segments before the last, at most `most`, that lw_vdf_prove makes for this many squarings: the depth of its proof.
#[unsafe(no_mangle)]
pub extern "C" fn lw_vdf_depth(iterations: u64, most: u64) -> u64 {
    let (most, mut depth) = (most.min(LW_VDF_DEPTH_MAX) as usize, 0);
    guard(|| {
        depth = chia_segments(iterations, most).len() as u64;
        Ok(())
    });
    depth
}

/// Squares `x` `iterations` times and proves the result, in at most `most_segments` segments before the last, of Chia's lengths. The proof
/// has lw_vdf_proof_bytes for the depth that lw_vdf_depth tells; it is verified before it is returned. `b` takes the last segment's B, of
/// LW_VDF_B_BYTES, or is empty. `observer` may be NULL. `checkpoint` is NULL, or the name of a file from which the same call continues after
/// a stop.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_vdf_prove(
    discriminant: *const lw_vdf_discriminant,
    x: *const u8,
    x_len: usize,
    iterations: u64,
    most_segments: u64,
    thread_count: usize,
    checkpoint: *const c_char,
    observer: lw_vdf_observer,
    context: *mut c_void,
    proof: *mut u8,
    proof_len: usize,
    b: *mut u8,
    b_len: usize,
) -> lw_status {
    guard(|| {
        let outputs = [(proof, proof_len), (b, b_len)];
        // SAFETY: the caller lends buffers and has a reference.
        let (([x], [proof, b]), discriminant) =
            unsafe { (claim([(x, x_len)], outputs)?, shared(discriminant)?) };
        let d = &discriminant.0;
        // SAFETY: a string that lives during the call, or NULL.
        let options = unsafe { options(thread_count, checkpoint) }?;
        let depth = lw_vdf_depth(iterations, most_segments);
        if proof.len() != lw_vdf_proof_bytes(d.bits(), depth) || ![0, LW_VDF_B_BYTES].contains(&b.len()) {
            return Err(lw_status::Length);
        }
        let x = Form::from_bytes(Strict, d, x)?;
        let task = Task::new(d.clone(), x, iterations).in_chia_segments(depth as usize);
        let proved = prove(&task, &options, &mut observe(observer, context))?;
        if !b.is_empty() {
            b.fill(&proved.b.to_bytes())?;
        }
        proof.fill(&proved.proof.to_bytes(d))
    })
}

/// A result that is known, for lw_vdf_compact.
#[repr(C)]
pub struct lw_vdf_claim {
    /// Squarings.
    pub iterations: u64,
    /// The result, a form.
    pub y: *const u8,
    /// Bytes of `y`: lw_vdf_form_bytes.
    pub y_len: usize,
    /// The place for the proof in one segment: the result and the proof, lw_vdf_proof_bytes for depth 0.
    pub proof: *mut u8,
    /// The place for its B: LW_VDF_B_BYTES.
    pub b: *mut u8,
}

/// Proves `count` results of one chain in one segment each, while squaring `x` once, up to the longest (Chia's blueboxes). Each has
/// its status: LW_STATUS_REFUSED if the chain has another result there. Everything else is as in lw_vdf_prove. Results that were
/// proved before a stop are kept, and their status is LW_STATUS_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_vdf_compact(
    discriminant: *const lw_vdf_discriminant,
    x: *const u8,
    x_len: usize,
    claims: *const lw_vdf_claim,
    count: usize,
    thread_count: usize,
    checkpoint: *const c_char,
    observer: lw_vdf_observer,
    context: *mut c_void,
    statuses: *mut lw_status,
) -> lw_status {
    let body = |jobs: &[lw_vdf_claim], statuses: &mut [lw_status]| {
        // SAFETY: the caller has a reference.
        let discriminant = unsafe { shared(discriminant) }?;
        let d = &discriminant.0;
        let proof_len = lw_vdf_proof_bytes(d.bits(), 0);
        let mut buffers = Buffers::new(jobs, statuses);
        buffers.read(x, x_len);
        for job in jobs {
            buffers.read(job.y, job.y_len);
            buffers.write(job.proof, proof_len);
            buffers.write(job.b, LW_VDF_B_BYTES);
        }
        // SAFETY: the caller lends them all.
        unsafe { buffers.claim() }?;
        // SAFETY: claimed above.
        let place = |job: &lw_vdf_claim| unsafe {
            Some([Output::new((job.proof, proof_len)), Output::new((job.b, LW_VDF_B_BYTES))])
        };
        let mut places: Vec<_> = jobs.iter().map(place).collect();
        // SAFETY: claimed above; the checkpoint is a string that lives during the call, or NULL.
        let (x, options) = unsafe { (bytes((x, x_len)), options(thread_count, checkpoint)?) };
        let claim = |job: &lw_vdf_claim| {
            // SAFETY: claimed above.
            let y = Form::from_bytes(Strict, d, unsafe { bytes((job.y, job.y_len)) })?;
            Ok(Claim { iterations: job.iterations, y })
        };
        let claims = jobs.iter().map(claim).collect::<Answer<Vec<_>>>()?;
        let all = Claims { discriminant: d.clone(), x: Form::from_bytes(Strict, d, x)?, claims };
        let mut outcome = |n: usize, outcome: Outcome| {
            statuses[n] = match (outcome, places[n].take()) {
                (Outcome::Proved(proved), Some([proof, b])) => {
                    let written =
                        proof.fill(&proved.0.to_bytes(d)).and_then(|()| b.fill(&proved.1.to_bytes()));
                    written.err().unwrap_or(lw_status::Ok)
                }
                (Outcome::Wrong, _) => lw_status::Refused,
                _ => lw_status::Internal,
            };
        };
        // Outcomes before a stop are valid; those that did not come have the stop's status.
        if let Err(why) = compact(&all, &options, &mut observe(observer, context), &mut outcome) {
            let why = lw_status::from(why);
            for (status, _) in statuses.iter_mut().zip(&places).filter(|(_, place)| place.is_some()) {
                *status = why;
            }
        }
        Ok(())
    };
    // SAFETY: the caller lends jobs and statuses.
    unsafe { batch(claims, count, statuses, body) }
}
