//! MAYO: keys, signatures of whole messages and of messages in pieces, batches.
#![allow(non_camel_case_types, reason = "the names that C sees")]

use core::ptr;

use getrandom::SysRng;
use lanework_cpu::Threads;
use lanework_mayo::batch::{self, Signers, Verifiers};
use lanework_mayo::{
    Engine, Error, MessageDigest, MessageHasher, Params, PublicKey, SecretKey, SignOptions, Signature,
    SigningKey, VerifyingKey, hazmat,
};

use crate::entry::{
    self, Answer, Buffers, Output, bytes, claim, exclusive, free, guard, place, place_and_claim, reference,
    release, settle, shared, threads,
};
use crate::status::lw_status;

/// MAYO-1 of round 3. A parameter set is a round and a set; rounds never share a key.
pub const LW_MAYO1: u32 = 301;
/// MAYO-2 of round 3.
pub const LW_MAYO2: u32 = 302;
/// MAYO-3 of round 3.
pub const LW_MAYO3: u32 = 303;
/// MAYO-5 of round 3.
pub const LW_MAYO5: u32 = 305;
/// MAYO-1 of round 2.
pub const LW_MAYO1_ROUND2: u32 = 201;
/// MAYO-2 of round 2.
pub const LW_MAYO2_ROUND2: u32 = 202;
/// MAYO-3 of round 2.
pub const LW_MAYO3_ROUND2: u32 = 203;
/// MAYO-5 of round 2.
pub const LW_MAYO5_ROUND2: u32 = 205;

/// Bytes of a secret key of LW_MAYO1.
pub const LW_MAYO1_SECRET_KEY_BYTES: usize = 24;
/// Bytes of a public key of LW_MAYO1.
pub const LW_MAYO1_PUBLIC_KEY_BYTES: usize = 1456;
/// Bytes of a signature of LW_MAYO1.
pub const LW_MAYO1_SIGNATURE_BYTES: usize = 464;
/// Bytes of a secret key of LW_MAYO2.
pub const LW_MAYO2_SECRET_KEY_BYTES: usize = 24;
/// Bytes of a public key of LW_MAYO2.
pub const LW_MAYO2_PUBLIC_KEY_BYTES: usize = 2928;
/// Bytes of a signature of LW_MAYO2.
pub const LW_MAYO2_SIGNATURE_BYTES: usize = 239;
/// Bytes of a secret key of LW_MAYO3.
pub const LW_MAYO3_SECRET_KEY_BYTES: usize = 32;
/// Bytes of a public key of LW_MAYO3.
pub const LW_MAYO3_PUBLIC_KEY_BYTES: usize = 2986;
/// Bytes of a signature of LW_MAYO3.
pub const LW_MAYO3_SIGNATURE_BYTES: usize = 681;
/// Bytes of a secret key of LW_MAYO5.
pub const LW_MAYO5_SECRET_KEY_BYTES: usize = 40;
/// Bytes of a public key of LW_MAYO5.
pub const LW_MAYO5_PUBLIC_KEY_BYTES: usize = 5554;
/// Bytes of a signature of LW_MAYO5.
pub const LW_MAYO5_SIGNATURE_BYTES: usize = 964;
/// Bytes of a secret key of LW_MAYO1_ROUND2.
pub const LW_MAYO1_ROUND2_SECRET_KEY_BYTES: usize = 24;
/// Bytes of a public key of LW_MAYO1_ROUND2.
pub const LW_MAYO1_ROUND2_PUBLIC_KEY_BYTES: usize = 1420;
/// Bytes of a signature of LW_MAYO1_ROUND2.
pub const LW_MAYO1_ROUND2_SIGNATURE_BYTES: usize = 454;
/// Bytes of a secret key of LW_MAYO2_ROUND2.
pub const LW_MAYO2_ROUND2_SECRET_KEY_BYTES: usize = 24;
/// Bytes of a public key of LW_MAYO2_ROUND2.
pub const LW_MAYO2_ROUND2_PUBLIC_KEY_BYTES: usize = 4912;
/// Bytes of a signature of LW_MAYO2_ROUND2.
pub const LW_MAYO2_ROUND2_SIGNATURE_BYTES: usize = 186;
/// Bytes of a secret key of LW_MAYO3_ROUND2.
pub const LW_MAYO3_ROUND2_SECRET_KEY_BYTES: usize = 32;
/// Bytes of a public key of LW_MAYO3_ROUND2.
pub const LW_MAYO3_ROUND2_PUBLIC_KEY_BYTES: usize = 2986;
/// Bytes of a signature of LW_MAYO3_ROUND2.
pub const LW_MAYO3_ROUND2_SIGNATURE_BYTES: usize = 681;
/// Bytes of a secret key of LW_MAYO5_ROUND2.
pub const LW_MAYO5_ROUND2_SECRET_KEY_BYTES: usize = 40;
/// Bytes of a public key of LW_MAYO5_ROUND2.
pub const LW_MAYO5_ROUND2_PUBLIC_KEY_BYTES: usize = 5554;
/// Bytes of a signature of LW_MAYO5_ROUND2.
pub const LW_MAYO5_ROUND2_SIGNATURE_BYTES: usize = 964;

impl From<Error> for lw_status {
    fn from(why: Error) -> lw_status {
        match why {
            Error::Refused => lw_status::Refused,
            Error::Length { .. } | Error::Count { .. } => lw_status::Length,
            Error::WrongRound { .. } | Error::WrongSet { .. } => lw_status::WrongSet,
            Error::Unreadable { .. } => lw_status::Unreadable,
            Error::KeyMismatch => lw_status::KeyMismatch,
            Error::NoIdentifier { .. } => lw_status::NoIdentifier,
            Error::Exhausted => lw_status::NoSolution,
            Error::Fault => lw_status::Fault,
            Error::Random(_) => lw_status::Random,
            Error::Threads(_) => lw_status::Threads,
            _ => lw_status::Internal,
        }
    }
}

fn params(set: u32) -> Answer<&'static Params> {
    Params::all().find(|params| number(params) == set).ok_or(lw_status::Parameter)
}

fn number(params: &Params) -> u32 {
    100 * u32::from(params.round().number()) + u32::from(params.set().number())
}

/// Bytes of a secret key, its seed; 0 for an unknown set.
#[unsafe(no_mangle)]
pub extern "C" fn lw_mayo_secret_key_bytes(set: u32) -> usize {
    params(set).map_or(0, Params::secret_key_bytes)
}

/// Bytes of a public key; 0 for an unknown set.
#[unsafe(no_mangle)]
pub extern "C" fn lw_mayo_public_key_bytes(set: u32) -> usize {
    params(set).map_or(0, Params::public_key_bytes)
}

/// Bytes of a signature; 0 for an unknown set.
#[unsafe(no_mangle)]
pub extern "C" fn lw_mayo_signature_bytes(set: u32) -> usize {
    params(set).map_or(0, Params::signature_bytes)
}

/// Bytes of a randomizer, which are those of a secret key; 0 for an unknown set.
#[unsafe(no_mangle)]
pub extern "C" fn lw_mayo_randomizer_bytes(set: u32) -> usize {
    params(set).map_or(0, Params::salt_bytes)
}

/// A secret key, with everything computed that does not depend on the message: 0.3 to 1.8 MB of memory.
pub struct lw_mayo_secret_key(SigningKey);

/// A public key, with everything computed that does not depend on the message: 0.1 to 0.9 MB of memory.
pub struct lw_mayo_public_key(VerifyingKey);

fn expand(secret: &SecretKey) -> lw_mayo_secret_key {
    lw_mayo_secret_key(SigningKey::new(Engine::best(), secret))
}

/// A key from the operating system's randomness.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_secret_key_generate(
    set: u32,
    out: *mut *const lw_mayo_secret_key,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a place for a handle.
        let out = unsafe { place(out, ptr::null()) }?;
        out.share(expand(&SecretKey::generate_os(params(set)?)?));
        Ok(())
    })
}

/// A key from its seed of lw_mayo_secret_key_bytes, which is the whole secret. Never use a seed in two rounds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_secret_key_from_seed(
    set: u32,
    seed: *const u8,
    seed_len: usize,
    out: *mut *const lw_mayo_secret_key,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and a place for a handle.
        let (out, ([seed], [])) = unsafe { place_and_claim(out, ptr::null(), [(seed, seed_len)], []) }?;
        out.share(expand(&SecretKey::from_seed(params(set)?, seed)?));
        Ok(())
    })
}

/// Reads a PKCS#8 document in DER, of round 2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_secret_key_from_der(
    der: *const u8,
    der_len: usize,
    out: *mut *const lw_mayo_secret_key,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and a place for a handle.
        let (out, ([der], [])) = unsafe { place_and_claim(out, ptr::null(), [(der, der_len)], []) }?;
        out.share(expand(&SecretKey::from_pkcs8_der(Engine::best(), der)?));
        Ok(())
    })
}

/// Reads a key file in PEM, of any round; `pem` need not end with a 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_secret_key_from_pem(
    pem: *const u8,
    pem_len: usize,
    out: *mut *const lw_mayo_secret_key,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and a place for a handle.
        let (out, ([pem], [])) = unsafe { place_and_claim(out, ptr::null(), [(pem, pem_len)], []) }?;
        let pem = str::from_utf8(pem).map_err(|_| lw_status::Unreadable)?;
        out.share(expand(&SecretKey::from_pem(Engine::best(), pem)?));
        Ok(())
    })
}

/// Another reference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_secret_key_ref(key: *const lw_mayo_secret_key) -> lw_status {
    // SAFETY: the caller has a reference.
    unsafe { reference(key) }
}

/// Gives a reference back; the last one wipes the key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_secret_key_free(key: *const lw_mayo_secret_key) {
    // SAFETY: the caller gives up a reference.
    unsafe { release(key) }
}

/// The parameter set, such as LW_MAYO2; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_secret_key_set(key: *const lw_mayo_secret_key) -> u32 {
    // SAFETY: the caller has a reference.
    unsafe { shared(key) }.map_or(0, |key| number(key.0.params()))
}

/// The seed, of lw_mayo_secret_key_bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_secret_key_seed(
    key: *const lw_mayo_secret_key,
    seed: *mut u8,
    seed_len: usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and has a reference.
        let (([], [seed]), key) = unsafe { (claim([], [(seed, seed_len)])?, shared(key)?) };
        seed.fill(key.0.secret_key().expose_seed())
    })
}

/// The public key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_secret_key_public(
    key: *const lw_mayo_secret_key,
    out: *mut *const lw_mayo_public_key,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a place for a handle and has a reference.
        let (out, key) = unsafe { (place(out, ptr::null())?, shared(key)?) };
        out.share(lw_mayo_public_key(key.0.verifying_key().clone()));
        Ok(())
    })
}

/// Writes the PKCS#8 document in DER, of round 2: LW_STATUS_NO_IDENTIFIER in round 3. `room` is the bytes of `der`, and `*length` those
/// that the document has: with less room the status is LW_STATUS_LENGTH, so NULL and 0 ask for the length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_secret_key_to_der(
    key: *const lw_mayo_secret_key,
    der: *mut u8,
    room: usize,
    length: *mut usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and a place for a length.
        let (length, ([], [der])) = unsafe { place_and_claim(length, 0, [], [(der, room)]) }?;
        // SAFETY: the caller has a reference.
        let key = unsafe { shared(key) }?;
        der.fill_some(&key.0.secret_key().to_pkcs8_der(key.0.engine())?, &length)
    })
}

/// Writes the key file in PEM, without a 0 at its end: PKCS#8 in round 2, this library's own form in round 3. See
/// lw_mayo_secret_key_to_der for `room` and `*length`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_secret_key_to_pem(
    key: *const lw_mayo_secret_key,
    pem: *mut u8,
    room: usize,
    length: *mut usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and a place for a length.
        let (length, ([], [pem])) = unsafe { place_and_claim(length, 0, [], [(pem, room)]) }?;
        // SAFETY: the caller has a reference.
        let key = unsafe { shared(key) }?;
        pem.fill_some(key.0.secret_key().to_pem(key.0.engine())?.as_bytes(), &length)
    })
}

fn expand_public(public: &PublicKey) -> lw_mayo_public_key {
    lw_mayo_public_key(VerifyingKey::new(Engine::best(), public))
}

/// A key from its lw_mayo_public_key_bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_public_key_from_bytes(
    set: u32,
    key: *const u8,
    key_len: usize,
    out: *mut *const lw_mayo_public_key,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and a place for a handle.
        let (out, ([key], [])) = unsafe { place_and_claim(out, ptr::null(), [(key, key_len)], []) }?;
        out.share(expand_public(&PublicKey::from_bytes(params(set)?, key)?));
        Ok(())
    })
}

/// Reads an SPKI document in DER, of round 2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_public_key_from_der(
    der: *const u8,
    der_len: usize,
    out: *mut *const lw_mayo_public_key,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and a place for a handle.
        let (out, ([der], [])) = unsafe { place_and_claim(out, ptr::null(), [(der, der_len)], []) }?;
        out.share(expand_public(&PublicKey::from_spki_der(der)?));
        Ok(())
    })
}

/// Reads a key file in PEM, of any round; `pem` need not end with a 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_public_key_from_pem(
    pem: *const u8,
    pem_len: usize,
    out: *mut *const lw_mayo_public_key,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and a place for a handle.
        let (out, ([pem], [])) = unsafe { place_and_claim(out, ptr::null(), [(pem, pem_len)], []) }?;
        let pem = str::from_utf8(pem).map_err(|_| lw_status::Unreadable)?;
        out.share(expand_public(&PublicKey::from_pem(pem)?));
        Ok(())
    })
}

/// Another reference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_public_key_ref(key: *const lw_mayo_public_key) -> lw_status {
    // SAFETY: the caller has a reference.
    unsafe { reference(key) }
}

/// Gives a reference back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_public_key_free(key: *const lw_mayo_public_key) {
    // SAFETY: the caller gives up a reference.
    unsafe { release(key) }
}

/// The parameter set, such as LW_MAYO2; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_public_key_set(key: *const lw_mayo_public_key) -> u32 {
    // SAFETY: the caller has a reference.
    unsafe { shared(key) }.map_or(0, |key| number(key.0.params()))
}

/// The key's lw_mayo_public_key_bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_public_key_to_bytes(
    key: *const lw_mayo_public_key,
    bytes: *mut u8,
    bytes_len: usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and has a reference.
        let (([], [bytes]), key) = unsafe { (claim([], [(bytes, bytes_len)])?, shared(key)?) };
        bytes.fill(key.0.public_key().as_bytes())
    })
}

/// Writes the SPKI document in DER, of round 2. See lw_mayo_secret_key_to_der.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_public_key_to_der(
    key: *const lw_mayo_public_key,
    der: *mut u8,
    room: usize,
    length: *mut usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and a place for a length.
        let (length, ([], [der])) = unsafe { place_and_claim(length, 0, [], [(der, room)]) }?;
        // SAFETY: the caller has a reference.
        der.fill_some(&unsafe { shared(key) }?.0.public_key().to_spki_der()?, &length)
    })
}

/// Writes the key file in PEM. See lw_mayo_secret_key_to_pem.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_public_key_to_pem(
    key: *const lw_mayo_public_key,
    pem: *mut u8,
    room: usize,
    length: *mut usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and a place for a length.
        let (length, ([], [pem])) = unsafe { place_and_claim(length, 0, [], [(pem, room)]) }?;
        // SAFETY: the caller has a reference.
        pem.fill_some(unsafe { shared(key) }?.0.public_key().to_pem()?.as_bytes(), &length)
    })
}

/// Signs a message, hedged with the operating system's randomness. The signature has lw_mayo_signature_bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_sign(
    key: *const lw_mayo_secret_key,
    message: *const u8,
    message_len: usize,
    signature: *mut u8,
    signature_len: usize,
) -> lw_status {
    guard(|| {
        let buffers = ((message, message_len), (signature, signature_len));
        // SAFETY: the caller lends buffers and has a reference.
        let (([message], [signature]), key) = unsafe { (claim([buffers.0], [buffers.1])?, shared(key)?) };
        room_for(&key.0, &signature)?;
        signature.fill(key.0.sign(message)?.as_bytes())
    })
}

/// Signs with a randomizer of lw_mayo_randomizer_bytes: for known answers. Fresh randomness in place of it is lw_mayo_sign. The same
/// message, seed and randomizer in two rounds reveal the key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_sign_with_randomizer(
    key: *const lw_mayo_secret_key,
    message: *const u8,
    message_len: usize,
    randomizer: *const u8,
    randomizer_len: usize,
    signature: *mut u8,
    signature_len: usize,
) -> lw_status {
    guard(|| {
        let (inputs, signature) =
            ([(message, message_len), (randomizer, randomizer_len)], (signature, signature_len));
        // SAFETY: the caller lends buffers and has a reference.
        let (([message, randomizer], [signature]), key) =
            unsafe { (claim(inputs, [signature])?, shared(key)?) };
        room_for(&key.0, &signature)?;
        let options = SignOptions { verify: true };
        signature.fill(hazmat::sign_with_randomizer(&key.0, message, randomizer, options)?.as_bytes())
    })
}

/// Refuses a place of another length before the work.
fn room_for(key: &SigningKey, signature: &[u8]) -> Answer<()> {
    if signature.len() == key.params().signature_bytes() { Ok(()) } else { Err(lw_status::Length) }
}

/// Whether a signature is the key's for this message: LW_STATUS_REFUSED if not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_verify(
    key: *const lw_mayo_public_key,
    message: *const u8,
    message_len: usize,
    signature: *const u8,
    signature_len: usize,
) -> lw_status {
    guard(|| {
        let buffers = [(message, message_len), (signature, signature_len)];
        // SAFETY: the caller lends buffers and has a reference.
        let (([message, signature], []), key) = unsafe { (claim(buffers, [])?, shared(key)?) };
        Ok(key.0.verify(message, &Signature::from_bytes(key.0.params(), signature)?)?)
    })
}

/// A message that comes in pieces, to be signed or verified.
pub struct lw_mayo_stream(Option<MessageHasher>);

impl lw_mayo_stream {
    fn end(&mut self) -> Answer<MessageDigest> {
        Ok(self.0.take().ok_or(lw_status::State)?.finish())
    }
}

/// Begins a message for keys of this set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_stream_new(set: u32, out: *mut *mut lw_mayo_stream) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a place for a handle.
        let out = unsafe { place(out, ptr::null_mut()) }?;
        out.give(lw_mayo_stream(Some(MessageHasher::new(Engine::best(), params(set)?))));
        Ok(())
    })
}

/// The next piece, of any length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_stream_update(
    stream: *mut lw_mayo_stream,
    message: *const u8,
    message_len: usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer, and this thread alone uses the stream.
        let (([message], []), stream) = unsafe { (claim([(message, message_len)], [])?, exclusive(stream)?) };
        stream.0.as_mut().ok_or(lw_status::State)?.update(message);
        Ok(())
    })
}

/// Signs the message of all pieces as lw_mayo_sign does, and ends the stream. LW_STATUS_WRONG_SET if the key is of another set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_stream_sign(
    stream: *mut lw_mayo_stream,
    key: *const lw_mayo_secret_key,
    signature: *mut u8,
    signature_len: usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer.
        let ([], [signature]) = unsafe { claim([], [(signature, signature_len)]) }?;
        // SAFETY: the caller has a reference, and this thread alone uses the stream.
        let (key, stream) = unsafe { (shared(key)?, exclusive(stream)?) };
        room_for(&key.0, &signature)?;
        let (options, digests) = (SignOptions::default(), [stream.end()?]);
        let made = batch::sign_digests(Signers::One(&key.0), &digests, options, &mut SysRng, Threads::One)?;
        let made = made.into_iter().next().ok_or(lw_status::Internal)??;
        signature.fill(made.as_bytes())
    })
}

/// Verifies a signature of the message of all pieces, and ends the stream. LW_STATUS_WRONG_SET if the key is of another set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_stream_verify(
    stream: *mut lw_mayo_stream,
    key: *const lw_mayo_public_key,
    signature: *const u8,
    signature_len: usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer.
        let ([signature], []) = unsafe { claim([(signature, signature_len)], []) }?;
        // SAFETY: the caller has a reference, and this thread alone uses the stream.
        let (key, stream) = unsafe { (shared(key)?, exclusive(stream)?) };
        let signature = Signature::from_bytes(key.0.params(), signature)?;
        let verdicts =
            batch::verify_digests(Verifiers::One(&key.0), &[stream.end()?], &[signature], Threads::One)?;
        Ok(verdicts.into_iter().next().ok_or(lw_status::Internal)??)
    })
}

/// Frees the stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_stream_free(stream: *mut lw_mayo_stream) {
    // SAFETY: the caller gives it up.
    unsafe { free(stream) }
}

/// A message for lw_mayo_sign_batch.
#[repr(C)]
pub struct lw_mayo_sign_job {
    /// The message.
    pub message: *const u8,
    /// Bytes of `message`.
    pub message_len: usize,
    /// The place for the signature, of lw_mayo_signature_bytes.
    pub signature: *mut u8,
}

/// A signature for lw_mayo_verify_batch.
#[repr(C)]
pub struct lw_mayo_verify_job {
    /// Any number of jobs may share a key.
    pub key: *const lw_mayo_public_key,
    /// The message.
    pub message: *const u8,
    /// Bytes of `message`.
    pub message_len: usize,
    /// The signature.
    pub signature: *const u8,
    /// Bytes of `signature`.
    pub signature_len: usize,
}

/// Signs `count` messages as lw_mayo_sign does. Each has its status; the call's is the first that is not LW_STATUS_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_sign_batch(
    key: *const lw_mayo_secret_key,
    jobs: *const lw_mayo_sign_job,
    count: usize,
    thread_count: usize,
    statuses: *mut lw_status,
) -> lw_status {
    let body = |jobs: &[lw_mayo_sign_job], statuses: &mut [lw_status]| {
        // SAFETY: the caller has a reference.
        let key = unsafe { shared(key) }?;
        let length = key.0.params().signature_bytes();
        let mut buffers = Buffers::new(jobs, statuses);
        for job in jobs {
            buffers.read(job.message, job.message_len);
            buffers.write(job.signature, length);
        }
        // SAFETY: the caller lends them all.
        unsafe { buffers.claim() }?;
        // SAFETY: claimed above.
        let place = |job: &lw_mayo_sign_job| unsafe { [Output::new((job.signature, length))] };
        let mut places: Vec<_> = jobs.iter().map(place).collect();
        // SAFETY: claimed above.
        let messages: Vec<&[u8]> =
            jobs.iter().map(|job| unsafe { bytes((job.message, job.message_len)) }).collect();
        let (signers, options) = (Signers::One(&key.0), SignOptions::default());
        let made = batch::sign(signers, &messages, options, &mut SysRng, threads(thread_count)?)?;
        let write = |(made, [place]): (Result<Signature, Error>, &mut [Output<'_>; 1])| {
            made.map(|signature| place.copy_from_slice(signature.as_bytes()))
        };
        let outcomes = made.into_iter().zip(&mut places).map(write).collect();
        settle(statuses, outcomes, places);
        Ok(())
    };
    // SAFETY: the caller lends jobs and statuses.
    unsafe { entry::batch(jobs, count, statuses, body) }
}

/// Verifies `count` signatures. Each has its status; the call's is the first that is not LW_STATUS_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mayo_verify_batch(
    jobs: *const lw_mayo_verify_job,
    count: usize,
    thread_count: usize,
    statuses: *mut lw_status,
) -> lw_status {
    let body = |jobs: &[lw_mayo_verify_job], statuses: &mut [lw_status]| {
        let mut buffers = Buffers::new(jobs, statuses);
        for job in jobs {
            buffers.read(job.message, job.message_len);
            buffers.read(job.signature, job.signature_len);
        }
        // SAFETY: the caller lends them all.
        unsafe { buffers.claim() }?;
        // Signatures of a wrong length have their status; the others are verified together.
        let (mut keys, mut messages, mut signatures, mut which) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (i, job) in jobs.iter().enumerate() {
            // SAFETY: claimed above, and the caller has a reference.
            let (key, message, signature) = unsafe {
                let message = bytes((job.message, job.message_len));
                (shared(job.key)?, message, bytes((job.signature, job.signature_len)))
            };
            match Signature::from_bytes(key.0.params(), signature) {
                Ok(signature) => {
                    keys.push(key.0.clone());
                    messages.push(message);
                    signatures.push(signature);
                    which.push(i);
                }
                Err(why) => statuses[i] = why.into(),
            }
        }
        let verdicts = batch::verify(Verifiers::Each(&keys), &messages, &signatures, threads(thread_count)?)?;
        for (i, verdict) in which.into_iter().zip(verdicts) {
            statuses[i] = verdict.map_or_else(Into::into, |()| lw_status::Ok);
        }
        Ok(())
    };
    // SAFETY: the caller lends jobs and statuses.
    unsafe { entry::batch(jobs, count, statuses, body) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_parameter_sets() {
        for (set, secret, public, signature) in [
            (LW_MAYO1, LW_MAYO1_SECRET_KEY_BYTES, LW_MAYO1_PUBLIC_KEY_BYTES, LW_MAYO1_SIGNATURE_BYTES),
            (LW_MAYO2, LW_MAYO2_SECRET_KEY_BYTES, LW_MAYO2_PUBLIC_KEY_BYTES, LW_MAYO2_SIGNATURE_BYTES),
            (LW_MAYO3, LW_MAYO3_SECRET_KEY_BYTES, LW_MAYO3_PUBLIC_KEY_BYTES, LW_MAYO3_SIGNATURE_BYTES),
            (LW_MAYO5, LW_MAYO5_SECRET_KEY_BYTES, LW_MAYO5_PUBLIC_KEY_BYTES, LW_MAYO5_SIGNATURE_BYTES),
            (
                LW_MAYO1_ROUND2,
                LW_MAYO1_ROUND2_SECRET_KEY_BYTES,
                LW_MAYO1_ROUND2_PUBLIC_KEY_BYTES,
                LW_MAYO1_ROUND2_SIGNATURE_BYTES,
            ),
            (
                LW_MAYO2_ROUND2,
                LW_MAYO2_ROUND2_SECRET_KEY_BYTES,
                LW_MAYO2_ROUND2_PUBLIC_KEY_BYTES,
                LW_MAYO2_ROUND2_SIGNATURE_BYTES,
            ),
            (
                LW_MAYO3_ROUND2,
                LW_MAYO3_ROUND2_SECRET_KEY_BYTES,
                LW_MAYO3_ROUND2_PUBLIC_KEY_BYTES,
                LW_MAYO3_ROUND2_SIGNATURE_BYTES,
            ),
            (
                LW_MAYO5_ROUND2,
                LW_MAYO5_ROUND2_SECRET_KEY_BYTES,
                LW_MAYO5_ROUND2_PUBLIC_KEY_BYTES,
                LW_MAYO5_ROUND2_SIGNATURE_BYTES,
            ),
        ] {
            assert_eq!(lw_mayo_secret_key_bytes(set), secret, "{set}");
            assert_eq!(lw_mayo_public_key_bytes(set), public, "{set}");
            assert_eq!(lw_mayo_signature_bytes(set), signature, "{set}");
        }
        assert_eq!(Params::all().count(), 8);
        assert_eq!(lw_mayo_signature_bytes(304), 0);
    }
}
