//! MGM: one message, messages in pieces, batches.
#![allow(non_camel_case_types, reason = "the names that C sees")]

use core::mem;
use core::ptr;

use lanework_magma::batch::{Batch, OpenJob, SealJob};
use lanework_magma::mgm::{Decrypter, Mgm, Opener, Sealer, Verifier};
use lanework_magma::{Engine, Error};
use std::sync::Arc;

use super::lw_magma_key;
use crate::entry::{
    Answer, Buffers, Output, batch, bytes, claim, claim_data, exclusive, free, guard, place, place_and_claim,
    reference, release, settle, shared, threads,
};
use crate::status::lw_status;

/// MGM (RFC 9058) under a key, with tags of one length.
pub struct lw_magma_mgm(Arc<Mgm>);

/// MGM with tags of `tag_len` bytes, 4 to 8; the protocol fixes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_mgm_new(
    key: *const lw_magma_key,
    tag_len: usize,
    out: *mut *const lw_magma_mgm,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a place for a handle and has a reference.
        let (out, key) = unsafe { (place(out, ptr::null())?, shared(key)?) };
        out.share(lw_magma_mgm(Arc::new(Mgm::with_key(key.0.clone(), tag_len)?)));
        Ok(())
    })
}

/// Another reference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_mgm_ref(mgm: *const lw_magma_mgm) -> lw_status {
    // SAFETY: the caller has a reference.
    unsafe { reference(mgm) }
}

/// Gives a reference back; the last one, of handles and streams, wipes the key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_mgm_free(mgm: *const lw_magma_mgm) {
    // SAFETY: the caller gives up a reference.
    unsafe { release(mgm) }
}

/// Encrypts a message, and authenticates it with its associated data. The nonce has LW_MAGMA_NONCE_BYTES, its top bit is 0, and it is
/// never used twice under one key: count them. Data and associated data are not both empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_mgm_seal(
    mgm: *const lw_magma_mgm,
    nonce: *const u8,
    nonce_len: usize,
    aad: *const u8,
    aad_len: usize,
    input: *const u8,
    output: *mut u8,
    len: usize,
    tag: *mut u8,
    tag_len: usize,
) -> lw_status {
    guard(|| {
        let (data, inputs) = ((input, output, len), [(nonce, nonce_len), (aad, aad_len)]);
        // SAFETY: the caller lends buffers and has a reference.
        let ((mut data, [nonce, aad], [tag]), mgm) =
            unsafe { (claim_data(data, inputs, [(tag, tag_len)])?, shared(mgm)?) };
        if tag.len() != mgm.0.tag_length() {
            return Err(lw_status::Length);
        }
        tag.fill(mgm.0.seal_inout(nonce, aad, data.buffers())?.as_slice())?;
        data.keep();
        Ok(())
    })
}

/// Decrypts a message if its tag is right: LW_STATUS_REFUSED if not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_mgm_open(
    mgm: *const lw_magma_mgm,
    nonce: *const u8,
    nonce_len: usize,
    aad: *const u8,
    aad_len: usize,
    input: *const u8,
    output: *mut u8,
    len: usize,
    tag: *const u8,
    tag_len: usize,
) -> lw_status {
    guard(|| {
        let (data, inputs) = ((input, output, len), [(nonce, nonce_len), (aad, aad_len), (tag, tag_len)]);
        // SAFETY: the caller lends buffers and has a reference.
        let ((mut data, [nonce, aad, tag], []), mgm) =
            unsafe { (claim_data(data, inputs, [])?, shared(mgm)?) };
        mgm.0.open_inout(nonce, aad, data.buffers(), tag)?;
        data.keep();
        Ok(())
    })
}

/// What a message in pieces is doing. It borrows from the key beside it.
enum State {
    Sealing(Sealer<'static>),
    Opening(Opener<'static>),
    Verifying(Verifier<'static>),
    Decrypting(Decrypter<'static>),
    Ended,
}

/// A message in MGM that comes in pieces: first all associated data, then all data, each cut anywhere.
pub struct lw_magma_mgm_stream {
    // Dropped before the key that it borrows.
    state: State,
    _key: Arc<Mgm>,
}

impl lw_magma_mgm_stream {
    fn begin(mgm: &lw_magma_mgm, begin: impl FnOnce(&'static Mgm) -> Result<State, Error>) -> Answer<Self> {
        let key = Arc::clone(&mgm.0);
        // SAFETY: the stream owns a reference to the key, which does not move in its `Arc`, and drops the state first. No
        // state leaves the stream.
        let state = begin(unsafe { &*Arc::as_ptr(&key) })?;
        Ok(lw_magma_mgm_stream { state, _key: key })
    }
}

/// Begins to encrypt; see lw_magma_mgm_seal. The key counts the four blocks of every message: LW_STATUS_KEY_EXHAUSTED without room
/// for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_mgm_sealer_new(
    mgm: *const lw_magma_mgm,
    nonce: *const u8,
    nonce_len: usize,
    out: *mut *mut lw_magma_mgm_stream,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and a place for a handle, and has a reference.
        let ((out, ([nonce], [])), mgm) =
            unsafe { (place_and_claim(out, ptr::null_mut(), [(nonce, nonce_len)], [])?, shared(mgm)?) };
        out.give(lw_magma_mgm_stream::begin(mgm, |key| key.sealer(nonce).map(State::Sealing))?);
        Ok(())
    })
}

/// Begins to check a message before it is decrypted in a second reading: lw_magma_mgm_stream_data with the ciphertext and NULL for
/// `output`, lw_magma_mgm_stream_final_verify, and then lw_magma_mgm_stream_data again with the same ciphertext, which must not have
/// changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_mgm_verifier_new(
    mgm: *const lw_magma_mgm,
    nonce: *const u8,
    nonce_len: usize,
    out: *mut *mut lw_magma_mgm_stream,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and a place for a handle, and has a reference.
        let ((out, ([nonce], [])), mgm) =
            unsafe { (place_and_claim(out, ptr::null_mut(), [(nonce, nonce_len)], [])?, shared(mgm)?) };
        out.give(lw_magma_mgm_stream::begin(mgm, |key| key.verifier(nonce).map(State::Verifying))?);
        Ok(())
    })
}

/// Begins to decrypt in one reading, before anything is checked. The plaintext is not authentic until
/// lw_magma_mgm_stream_final_verify returned LW_STATUS_OK: use none of it before, and destroy it if the tag is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_mgm_opener_new(
    mgm: *const lw_magma_mgm,
    nonce: *const u8,
    nonce_len: usize,
    out: *mut *mut lw_magma_mgm_stream,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and a place for a handle, and has a reference.
        let ((out, ([nonce], [])), mgm) =
            unsafe { (place_and_claim(out, ptr::null_mut(), [(nonce, nonce_len)], [])?, shared(mgm)?) };
        out.give(lw_magma_mgm_stream::begin(mgm, |key| key.opener(nonce).map(State::Opening))?);
        Ok(())
    })
}

/// The next associated data. LW_STATUS_STATE after data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_mgm_stream_aad(
    stream: *mut lw_magma_mgm_stream,
    aad: *const u8,
    aad_len: usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer, and this thread alone uses the stream.
        let (([aad], []), stream) = unsafe { (claim([(aad, aad_len)], [])?, exclusive(stream)?) };
        match &mut stream.state {
            State::Sealing(sealer) => sealer.aad(aad)?,
            State::Opening(opener) => opener.aad(aad)?,
            State::Verifying(verifier) => verifier.aad(aad)?,
            State::Decrypting(_) | State::Ended => return Err(lw_status::State),
        }
        Ok(())
    })
}

/// The next data. A verifier that has not verified yet takes NULL for `output`, and everything else a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_mgm_stream_data(
    stream: *mut lw_magma_mgm_stream,
    input: *const u8,
    output: *mut u8,
    len: usize,
) -> lw_status {
    guard(|| {
        if output.is_null() {
            // SAFETY: the caller lends a buffer, and this thread alone uses the stream.
            let (([input], []), stream) = unsafe { (claim([(input, len)], [])?, exclusive(stream)?) };
            return match &mut stream.state {
                State::Verifying(verifier) => Ok(verifier.data(input)?),
                State::Ended => Err(lw_status::State),
                _ if len == 0 => Ok(()),
                _ => Err(lw_status::NullPointer),
            };
        }
        // SAFETY: the caller lends buffers, and this thread alone uses the stream.
        let ((mut data, [], []), stream) =
            unsafe { (claim_data((input, output, len), [], [])?, exclusive(stream)?) };
        match &mut stream.state {
            State::Sealing(sealer) => sealer.data_inout(data.buffers())?,
            State::Opening(opener) => opener.data_unverified_inout(data.buffers())?,
            State::Decrypting(decrypter) => decrypter.data_inout(data.buffers())?,
            State::Verifying(_) | State::Ended => return Err(lw_status::State),
        }
        data.keep();
        Ok(())
    })
}

/// The tag of a sealed message, of the key's length. Ends the stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_mgm_stream_final(
    stream: *mut lw_magma_mgm_stream,
    tag: *mut u8,
    tag_len: usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer, and this thread alone uses the stream.
        let (([], [tag]), stream) = unsafe { (claim([], [(tag, tag_len)])?, exclusive(stream)?) };
        match mem::replace(&mut stream.state, State::Ended) {
            State::Sealing(sealer) => tag.fill(sealer.finish()?.as_slice()),
            other => {
                stream.state = other;
                Err(lw_status::State)
            }
        }
    })
}

/// Whether `tag` is the message's: LW_STATUS_REFUSED if not. Ends the stream, except that a verifier may then decrypt.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_mgm_stream_final_verify(
    stream: *mut lw_magma_mgm_stream,
    tag: *const u8,
    tag_len: usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer, and this thread alone uses the stream.
        let (([tag], []), stream) = unsafe { (claim([(tag, tag_len)], [])?, exclusive(stream)?) };
        match mem::replace(&mut stream.state, State::Ended) {
            State::Opening(opener) => opener.finish(tag)?,
            State::Verifying(verifier) => stream.state = State::Decrypting(verifier.finish(tag)?),
            other => {
                stream.state = other;
                return Err(lw_status::State);
            }
        }
        Ok(())
    })
}

/// Frees the stream, and wipes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_mgm_stream_free(stream: *mut lw_magma_mgm_stream) {
    // SAFETY: the caller gives it up.
    unsafe { free(stream) }
}

/// A message for lw_magma_mgm_seal_batch.
#[repr(C)]
pub struct lw_magma_seal_job {
    /// Any number of jobs may share a key, each with its own nonce.
    pub key: *const lw_magma_key,
    /// LW_MAGMA_NONCE_BYTES.
    pub nonce: *const u8,
    /// Bytes of `nonce`.
    pub nonce_len: usize,
    /// Associated data.
    pub aad: *const u8,
    /// Bytes of `aad`.
    pub aad_len: usize,
    /// Encrypted in place.
    pub data: *mut u8,
    /// Bytes of `data`.
    pub data_len: usize,
    /// The place for the tag, as long as the batch's tags.
    pub tag: *mut u8,
}

/// A message for lw_magma_mgm_open_batch.
#[repr(C)]
pub struct lw_magma_open_job {
    /// Any number of jobs may share a key.
    pub key: *const lw_magma_key,
    /// LW_MAGMA_NONCE_BYTES.
    pub nonce: *const u8,
    /// Bytes of `nonce`.
    pub nonce_len: usize,
    /// Associated data.
    pub aad: *const u8,
    /// Bytes of `aad`.
    pub aad_len: usize,
    /// Decrypted in place if the tag is right, and zeroed if not.
    pub data: *mut u8,
    /// Bytes of `data`.
    pub data_len: usize,
    /// The tag, as long as the batch's tags.
    pub tag: *const u8,
}

/// Seals `count` messages with tags of `tag_len` bytes. Each has its status; the call's is the first that is not LW_STATUS_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_mgm_seal_batch(
    jobs: *const lw_magma_seal_job,
    count: usize,
    tag_len: usize,
    thread_count: usize,
    statuses: *mut lw_status,
) -> lw_status {
    let body = |jobs: &[lw_magma_seal_job], statuses: &mut [lw_status]| {
        let mut buffers = Buffers::new(jobs, statuses);
        for job in jobs {
            buffers.read(job.nonce, job.nonce_len);
            buffers.read(job.aad, job.aad_len);
            buffers.write(job.data, job.data_len);
            buffers.write(job.tag, tag_len);
        }
        // SAFETY: the caller lends them all.
        unsafe { buffers.claim() }?;
        // SAFETY: claimed above.
        let place = |job: &lw_magma_seal_job| unsafe {
            [Output::new((job.data, job.data_len)), Output::new((job.tag, tag_len))]
        };
        let mut places: Vec<_> = jobs.iter().map(place).collect();
        let mut messages = Vec::with_capacity(count);
        for (job, [data, tag]) in jobs.iter().zip(&mut places) {
            // SAFETY: claimed above, and the caller has a reference.
            let (key, nonce, aad) = unsafe {
                (shared(job.key)?, bytes((job.nonce, job.nonce_len)), bytes((job.aad, job.aad_len)))
            };
            messages.push(SealJob { key: &key.0, nonce, aad, data, tag });
        }
        let engine = Batch::new(Engine::best()).threads(threads(thread_count)?);
        let outcomes = engine.mgm_seal(tag_len, &mut messages).map_err(Error::from)?;
        settle(statuses, outcomes, places);
        Ok(())
    };
    // SAFETY: the caller lends jobs and statuses.
    unsafe { batch(jobs, count, statuses, body) }
}

/// Opens `count` messages with tags of `tag_len` bytes. Each has its status, LW_STATUS_REFUSED if its tag is wrong; the call's is the
/// first that is not LW_STATUS_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_mgm_open_batch(
    jobs: *const lw_magma_open_job,
    count: usize,
    tag_len: usize,
    thread_count: usize,
    statuses: *mut lw_status,
) -> lw_status {
    let body = |jobs: &[lw_magma_open_job], statuses: &mut [lw_status]| {
        let mut buffers = Buffers::new(jobs, statuses);
        for job in jobs {
            buffers.read(job.nonce, job.nonce_len);
            buffers.read(job.aad, job.aad_len);
            buffers.write(job.data, job.data_len);
            buffers.read(job.tag, tag_len);
        }
        // SAFETY: the caller lends them all.
        unsafe { buffers.claim() }?;
        // SAFETY: claimed above.
        let place = |job: &lw_magma_open_job| unsafe { [Output::new((job.data, job.data_len))] };
        let mut places: Vec<_> = jobs.iter().map(place).collect();
        let mut messages = Vec::with_capacity(count);
        for (job, [data]) in jobs.iter().zip(&mut places) {
            // SAFETY: claimed above, and the caller has a reference.
            let (key, nonce, aad, tag) = unsafe {
                let (nonce, aad) = (bytes((job.nonce, job.nonce_len)), bytes((job.aad, job.aad_len)));
                (shared(job.key)?, nonce, aad, bytes((job.tag, tag_len)))
            };
            messages.push(OpenJob { key: &key.0, nonce, aad, data, tag });
        }
        let engine = Batch::new(Engine::best()).threads(threads(thread_count)?);
        let outcomes = engine.mgm_open(tag_len, &mut messages).map_err(Error::from)?;
        settle(statuses, outcomes, places);
        Ok(())
    };
    // SAFETY: the caller lends jobs and statuses.
    unsafe { batch(jobs, count, statuses, body) }
}
