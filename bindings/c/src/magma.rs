//! Magma: keys, blocks, CTR, CTR-ACPKM, OMAC, KExp15, TLSTREE and KDF_TREE. MGM is in `magma/mgm.rs`.
#![allow(non_camel_case_types, reason = "the names that C sees")]

use core::ptr;

use lanework_magma::modes::hazmat::{EcbDecryptor, EcbEncryptor};
use lanework_magma::modes::{Ctr, CtrAcpkm, Omac, Stream};
use lanework_magma::tlstree::Suite;
use lanework_magma::{Engine, Error, Kexp15, Keyed, Limits, Magma, TlsTree, kdf};

use crate::entry::{
    Answer, claim, claim_data, exclusive, free, guard, place, place_and_claim, reference, release, shared,
};
use crate::status::lw_status;

pub mod mgm;

/// Bytes of a key.
pub const LW_MAGMA_KEY_BYTES: usize = 32;
/// Bytes of a block.
pub const LW_MAGMA_BLOCK_BYTES: usize = 8;
/// Bytes of an IV of CTR, CTR-ACPKM and KExp15.
pub const LW_MAGMA_IV_BYTES: usize = 4;
/// Bytes of a nonce of MGM.
pub const LW_MAGMA_NONCE_BYTES: usize = 8;
/// The fewest bytes of a tag.
pub const LW_MAGMA_TAG_BYTES_MIN: usize = 4;
/// The most bytes of a tag.
pub const LW_MAGMA_TAG_BYTES_MAX: usize = 8;
/// Bytes by which KExp15 lengthens a secret.
pub const LW_MAGMA_KEXP15_OVERHEAD_BYTES: usize = 8;

/// TLSTREE of TLS_GOSTR341112_256_WITH_MAGMA_CTR_OMAC (RFC 9189): a new key every 4,096 records.
pub const LW_MAGMA_TLSTREE_CTR_OMAC: u32 = 1;
/// TLSTREE of TLS_GOSTR341112_256_WITH_MAGMA_MGM_L (RFC 9367): a new key every 128 records.
pub const LW_MAGMA_TLSTREE_MGM_L: u32 = 2;
/// TLSTREE of TLS_GOSTR341112_256_WITH_MAGMA_MGM_S (RFC 9367): a new key for every record.
pub const LW_MAGMA_TLSTREE_MGM_S: u32 = 3;

impl From<Error> for lw_status {
    fn from(why: Error) -> lw_status {
        match why {
            Error::Refused => lw_status::Refused,
            Error::KeyLength(_)
            | Error::NonceLength { .. }
            | Error::Unaligned(_)
            | Error::TagLength(_)
            | Error::Lengths { .. } => lw_status::Length,
            Error::NonceTopBit => lw_status::NonceTopBit,
            Error::EmptyMessage => lw_status::EmptyMessage,
            Error::TooLong { .. } => lw_status::TooLong,
            Error::OutOfOrder => lw_status::State,
            Error::CounterExhausted => lw_status::CounterExhausted,
            Error::KeyExhausted { .. } => lw_status::KeyExhausted,
            Error::TooManyRefused { .. } => lw_status::TooManyRefused,
            Error::SequenceOverflow { .. } => lw_status::SequenceOverflow,
            Error::Overlap => lw_status::Overlap,
            Error::Threads(_) => lw_status::Threads,
            Error::Section(_) | Error::Parameter(_) => lw_status::Parameter,
            _ => lw_status::Internal,
        }
    }
}

/// Bytes of a key: LW_MAGMA_KEY_BYTES.
#[unsafe(no_mangle)]
pub extern "C" fn lw_magma_key_bytes() -> usize {
    LW_MAGMA_KEY_BYTES
}

/// Bytes of a block: LW_MAGMA_BLOCK_BYTES.
#[unsafe(no_mangle)]
pub extern "C" fn lw_magma_block_bytes() -> usize {
    LW_MAGMA_BLOCK_BYTES
}

/// Bytes of an IV: LW_MAGMA_IV_BYTES.
#[unsafe(no_mangle)]
pub extern "C" fn lw_magma_iv_bytes() -> usize {
    LW_MAGMA_IV_BYTES
}

/// Bytes of a nonce: LW_MAGMA_NONCE_BYTES.
#[unsafe(no_mangle)]
pub extern "C" fn lw_magma_nonce_bytes() -> usize {
    LW_MAGMA_NONCE_BYTES
}

/// A key of Magma (GOST R 34.12-2015, RFC 8891). It counts the blocks of 8 bytes that are begun under it, and four more for each
/// message of MGM. It refuses more than its limit.
pub struct lw_magma_key(Magma);

/// A key of LW_MAGMA_KEY_BYTES, for at most 2^28 bytes (RFC 9227).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_key_new(
    key: *const u8,
    key_len: usize,
    out: *mut *const lw_magma_key,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and a place for a handle.
        let (out, ([key], [])) = unsafe { place_and_claim(out, ptr::null(), [(key, key_len)], []) }?;
        out.share(lw_magma_key(Magma::from_slice(key, Engine::best())?));
        Ok(())
    })
}

/// A key that processes at most `bytes` bytes, or any number with UINT64_MAX. A section of CTR-ACPKM has `section` bytes, a positive
/// multiple of 8, unless a call gives another length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_key_new_limited(
    key: *const u8,
    key_len: usize,
    bytes: u64,
    section: usize,
    out: *mut *const lw_magma_key,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and a place for a handle.
        let (out, ([key], [])) = unsafe { place_and_claim(out, ptr::null(), [(key, key_len)], []) }?;
        let magma = Magma::from_slice(key, Engine::best())?;
        if section == 0 || !section.is_multiple_of(8) || section > Limits::LONGEST_SECTION {
            return Err(lw_status::Parameter);
        }
        out.share(lw_magma_key(magma.with_limits(Limits::Custom { bytes, section })));
        Ok(())
    })
}

/// Another reference to a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_key_ref(key: *const lw_magma_key) -> lw_status {
    // SAFETY: the caller has a reference.
    unsafe { reference(key) }
}

/// Gives a reference back; the last one wipes the key. Streams keep a copy of their key and may live longer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_key_free(key: *const lw_magma_key) {
    // SAFETY: the caller gives up a reference.
    unsafe { release(key) }
}

/// The bytes that count for a key, and the streams made of it; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_key_used(key: *const lw_magma_key) -> u64 {
    // SAFETY: the caller has a reference.
    unsafe { shared(key) }.map_or(0, |key| key.0.used())
}

/// Encrypts whole blocks, each by itself: to build modes from, not to encrypt data. `len` is a multiple of 8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_encrypt_blocks(
    key: *const lw_magma_key,
    input: *const u8,
    output: *mut u8,
    len: usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends buffers and has a reference.
        let ((mut data, [], []), key) = unsafe { (claim_data((input, output, len), [], [])?, shared(key)?) };
        EcbEncryptor::with_key(&key.0).process(data.buffers())?;
        data.keep();
        Ok(())
    })
}

/// The inverse of lw_magma_encrypt_blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_decrypt_blocks(
    key: *const lw_magma_key,
    input: *const u8,
    output: *mut u8,
    len: usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends buffers and has a reference.
        let ((mut data, [], []), key) = unsafe { (claim_data((input, output, len), [], [])?, shared(key)?) };
        EcbDecryptor::with_key(&key.0).process(data.buffers())?;
        data.keep();
        Ok(())
    })
}

/// CTR of a message (GOST R 34.13-2015, 5.2); encryption and decryption are one. An IV of LW_MAGMA_IV_BYTES, never twice under one
/// key. It does not authenticate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_ctr(
    key: *const lw_magma_key,
    iv: *const u8,
    iv_len: usize,
    input: *const u8,
    output: *mut u8,
    len: usize,
) -> lw_status {
    guard(|| {
        let data = (input, output, len);
        // SAFETY: the caller lends buffers and has a reference.
        let ((mut data, [iv], []), key) = unsafe { (claim_data(data, [(iv, iv_len)], [])?, shared(key)?) };
        Ctr::with_key(&key.0, iv)?.process(data.buffers())?;
        data.keep();
        Ok(())
    })
}

/// A message in CTR that comes in pieces.
pub struct lw_magma_ctr_stream(Ctr<Magma>);

/// Begins a message; see lw_magma_ctr.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_ctr_new(
    key: *const lw_magma_key,
    iv: *const u8,
    iv_len: usize,
    out: *mut *mut lw_magma_ctr_stream,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and a place for a handle, and has a reference.
        let ((out, ([iv], [])), key) =
            unsafe { (place_and_claim(out, ptr::null_mut(), [(iv, iv_len)], [])?, shared(key)?) };
        out.give(lw_magma_ctr_stream(Ctr::with_key(key.0.clone(), iv)?));
        Ok(())
    })
}

/// The next piece, of any length. A refused piece changes nothing in the stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_ctr_update(
    stream: *mut lw_magma_ctr_stream,
    input: *const u8,
    output: *mut u8,
    len: usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends buffers, and this thread alone uses the stream.
        let ((mut data, [], []), stream) =
            unsafe { (claim_data((input, output, len), [], [])?, exclusive(stream)?) };
        stream.0.process(data.buffers())?;
        data.keep();
        Ok(())
    })
}

/// Goes to the beginning of a block, counted from 0; 2^32 is the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_ctr_seek(stream: *mut lw_magma_ctr_stream, block: u64) -> lw_status {
    // SAFETY: this thread alone uses the stream.
    guard(|| Ok(unsafe { exclusive(stream) }?.0.seek_block(block)?))
}

/// Frees the stream, and wipes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_ctr_free(stream: *mut lw_magma_ctr_stream) {
    // SAFETY: the caller gives it up.
    unsafe { free(stream) }
}

fn acpkm(key: &lw_magma_key, iv: &[u8], section: usize) -> Answer<CtrAcpkm> {
    let made = match section {
        0 => CtrAcpkm::with_key(&key.0, iv),
        _ => CtrAcpkm::with_section(&key.0, iv, section),
    };
    Ok(made?)
}

/// CTR-ACPKM of a message (RFC 8645, 6.2): CTR that changes its key after every `section` bytes, a multiple of 8; 0 is the key's
/// own number, by default 1024. An IV never twice under one key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_ctr_acpkm(
    key: *const lw_magma_key,
    iv: *const u8,
    iv_len: usize,
    section: usize,
    input: *const u8,
    output: *mut u8,
    len: usize,
) -> lw_status {
    guard(|| {
        let data = (input, output, len);
        // SAFETY: the caller lends buffers and has a reference.
        let ((mut data, [iv], []), key) = unsafe { (claim_data(data, [(iv, iv_len)], [])?, shared(key)?) };
        acpkm(key, iv, section)?.process(data.buffers())?;
        data.keep();
        Ok(())
    })
}

/// A message in CTR-ACPKM that comes in pieces.
pub struct lw_magma_ctr_acpkm_stream(CtrAcpkm);

/// Begins a message; see lw_magma_ctr_acpkm.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_ctr_acpkm_new(
    key: *const lw_magma_key,
    iv: *const u8,
    iv_len: usize,
    section: usize,
    out: *mut *mut lw_magma_ctr_acpkm_stream,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and a place for a handle, and has a reference.
        let ((out, ([iv], [])), key) =
            unsafe { (place_and_claim(out, ptr::null_mut(), [(iv, iv_len)], [])?, shared(key)?) };
        out.give(lw_magma_ctr_acpkm_stream(acpkm(key, iv, section)?));
        Ok(())
    })
}

/// The next piece, of any length. A refused piece changes nothing in the stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_ctr_acpkm_update(
    stream: *mut lw_magma_ctr_acpkm_stream,
    input: *const u8,
    output: *mut u8,
    len: usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends buffers, and this thread alone uses the stream.
        let ((mut data, [], []), stream) =
            unsafe { (claim_data((input, output, len), [], [])?, exclusive(stream)?) };
        stream.0.process(data.buffers())?;
        data.keep();
        Ok(())
    })
}

/// Frees the stream, and wipes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_ctr_acpkm_free(stream: *mut lw_magma_ctr_acpkm_stream) {
    // SAFETY: the caller gives it up.
    unsafe { free(stream) }
}

/// OMAC of a message (GOST R 34.13-2015, 5.6): `tag_len` is 4 to 8. Do not encrypt under the same key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_omac(
    key: *const lw_magma_key,
    message: *const u8,
    message_len: usize,
    tag: *mut u8,
    tag_len: usize,
) -> lw_status {
    guard(|| {
        let (message, tag) = ((message, message_len), (tag, tag_len));
        // SAFETY: the caller lends buffers and has a reference.
        let (([message], [tag]), key) = unsafe { (claim([message], [tag])?, shared(key)?) };
        let mut omac = Omac::with_key(&key.0, tag.len())?;
        omac.update(message)?;
        tag.fill(omac.finish().as_ref())
    })
}

/// Whether `tag` is the message's: LW_STATUS_REFUSED if not. The protocol fixes `tag_len`; do not take it from the message.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_omac_verify(
    key: *const lw_magma_key,
    message: *const u8,
    message_len: usize,
    tag: *const u8,
    tag_len: usize,
) -> lw_status {
    guard(|| {
        let buffers = [(message, message_len), (tag, tag_len)];
        // SAFETY: the caller lends buffers and has a reference.
        let (([message, tag], []), key) = unsafe { (claim(buffers, [])?, shared(key)?) };
        let mut omac = Omac::with_key(&key.0, tag.len())?;
        omac.update(message)?;
        Ok(omac.verify(tag)?)
    })
}

/// A message for OMAC that comes in pieces.
pub struct lw_magma_omac_stream(Option<Omac<Magma>>);

impl lw_magma_omac_stream {
    fn open(&mut self) -> Answer<&mut Omac<Magma>> {
        self.0.as_mut().ok_or(lw_status::State)
    }

    fn end(&mut self) -> Answer<Omac<Magma>> {
        self.0.take().ok_or(lw_status::State)
    }
}

/// Begins a message with a tag of `tag_len` bytes; see lw_magma_omac.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_omac_new(
    key: *const lw_magma_key,
    tag_len: usize,
    out: *mut *mut lw_magma_omac_stream,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a place for a handle and has a reference.
        let (out, key) = unsafe { (place(out, ptr::null_mut())?, shared(key)?) };
        out.give(lw_magma_omac_stream(Some(Omac::with_key(key.0.clone(), tag_len)?)));
        Ok(())
    })
}

/// The next piece, of any length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_omac_update(
    stream: *mut lw_magma_omac_stream,
    message: *const u8,
    message_len: usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer, and this thread alone uses the stream.
        let (([message], []), stream) = unsafe { (claim([(message, message_len)], [])?, exclusive(stream)?) };
        Ok(stream.open()?.update(message)?)
    })
}

/// The tag, of as many bytes as were agreed at the beginning. Ends the stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_omac_final(
    stream: *mut lw_magma_omac_stream,
    tag: *mut u8,
    tag_len: usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer, and this thread alone uses the stream.
        let (([], [tag]), stream) = unsafe { (claim([], [(tag, tag_len)])?, exclusive(stream)?) };
        tag.fill(stream.end()?.finish().as_ref())
    })
}

/// Whether `tag` is the message's: LW_STATUS_REFUSED if not. Ends the stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_omac_final_verify(
    stream: *mut lw_magma_omac_stream,
    tag: *const u8,
    tag_len: usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer, and this thread alone uses the stream.
        let (([tag], []), stream) = unsafe { (claim([(tag, tag_len)], [])?, exclusive(stream)?) };
        Ok(stream.end()?.verify(tag)?)
    })
}

/// Frees the stream, and wipes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_omac_free(stream: *mut lw_magma_omac_stream) {
    // SAFETY: the caller gives it up.
    unsafe { free(stream) }
}

/// The two keys of KExp15 (RFC 9189, 8.2.1).
pub struct lw_magma_kexp15(Kexp15);

/// The keys K_Exp_MAC and K_Exp_ENC, LW_MAGMA_KEY_BYTES each: LW_STATUS_KEY_MISMATCH if they are the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_kexp15_new(
    mac_key: *const u8,
    mac_key_len: usize,
    encryption_key: *const u8,
    encryption_key_len: usize,
    out: *mut *const lw_magma_kexp15,
) -> lw_status {
    guard(|| {
        let keys = [(mac_key, mac_key_len), (encryption_key, encryption_key_len)];
        // SAFETY: the caller lends buffers and a place for a handle.
        let (out, ([mac, encryption], [])) = unsafe { place_and_claim(out, ptr::null(), keys, []) }?;
        let (Ok(mac), Ok(encryption)) = (mac.try_into(), encryption.try_into()) else {
            return Err(lw_status::Length);
        };
        // The one reason for which it refuses keys of the right length.
        let keys = Kexp15::new(mac, encryption, Engine::best()).map_err(|_| lw_status::KeyMismatch)?;
        out.share(lw_magma_kexp15(keys));
        Ok(())
    })
}

/// Another reference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_kexp15_ref(keys: *const lw_magma_kexp15) -> lw_status {
    // SAFETY: the caller has a reference.
    unsafe { reference(keys) }
}

/// Gives a reference back; the last one wipes the keys.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_kexp15_free(keys: *const lw_magma_kexp15) {
    // SAFETY: the caller gives up a reference.
    unsafe { release(keys) }
}

/// Wraps a secret of up to 2^20 bytes under an IV of LW_MAGMA_IV_BYTES, new for these keys. `wrapped_len` is
/// `secret_len + LW_MAGMA_KEXP15_OVERHEAD_BYTES`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_kexp15_wrap(
    keys: *const lw_magma_kexp15,
    iv: *const u8,
    iv_len: usize,
    secret: *const u8,
    secret_len: usize,
    wrapped: *mut u8,
    wrapped_len: usize,
) -> lw_status {
    guard(|| {
        let (inputs, wrapped) = ([(iv, iv_len), (secret, secret_len)], (wrapped, wrapped_len));
        // SAFETY: the caller lends buffers and has a reference.
        let (([iv, secret], [wrapped]), keys) = unsafe { (claim(inputs, [wrapped])?, shared(keys)?) };
        if Some(wrapped.len()) != secret.len().checked_add(LW_MAGMA_KEXP15_OVERHEAD_BYTES) {
            return Err(lw_status::Length);
        }
        wrapped.fill(&keys.0.wrap(iv, secret)?)
    })
}

/// The secret, if it was wrapped under these keys and this IV: LW_STATUS_REFUSED if not. `secret_len` is
/// `wrapped_len - LW_MAGMA_KEXP15_OVERHEAD_BYTES`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_kexp15_unwrap(
    keys: *const lw_magma_kexp15,
    iv: *const u8,
    iv_len: usize,
    wrapped: *const u8,
    wrapped_len: usize,
    secret: *mut u8,
    secret_len: usize,
) -> lw_status {
    guard(|| {
        let (inputs, secret) = ([(iv, iv_len), (wrapped, wrapped_len)], (secret, secret_len));
        // SAFETY: the caller lends buffers and has a reference.
        let (([iv, wrapped], [secret]), keys) = unsafe { (claim(inputs, [secret])?, shared(keys)?) };
        if Some(wrapped.len()) != secret.len().checked_add(LW_MAGMA_KEXP15_OVERHEAD_BYTES) {
            return Err(lw_status::Length);
        }
        secret.fill(&keys.0.unwrap(iv, wrapped)?)
    })
}

/// A tree of record keys (RFC 9189, 8.1). It remembers the last path, so one thread at a time.
pub struct lw_magma_tlstree(TlsTree);

/// A tree under a root of LW_MAGMA_KEY_BYTES, for a suite: LW_MAGMA_TLSTREE_CTR_OMAC, _MGM_L or _MGM_S.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_tlstree_new(
    root: *const u8,
    root_len: usize,
    suite: u32,
    out: *mut *mut lw_magma_tlstree,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer and a place for a handle.
        let (out, ([root], [])) = unsafe { place_and_claim(out, ptr::null_mut(), [(root, root_len)], []) }?;
        let suite = match suite {
            LW_MAGMA_TLSTREE_CTR_OMAC => Suite::CtrOmac,
            LW_MAGMA_TLSTREE_MGM_L => Suite::MgmL,
            LW_MAGMA_TLSTREE_MGM_S => Suite::MgmS,
            _ => return Err(lw_status::Parameter),
        };
        let root = root.try_into().map_err(|_| lw_status::Length)?;
        out.give(lw_magma_tlstree(TlsTree::new(root, suite)));
        Ok(())
    })
}

/// The key of record `number`, LW_MAGMA_KEY_BYTES: LW_STATUS_SEQUENCE_OVERFLOW above the suite's last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_tlstree_key(
    tree: *mut lw_magma_tlstree,
    number: u64,
    key: *mut u8,
    key_len: usize,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a buffer, and this thread alone uses the tree.
        let (([], [key]), tree) = unsafe { (claim([], [(key, key_len)])?, exclusive(tree)?) };
        key.fill(tree.0.key(number)?)
    })
}

/// The same as a handle, without a copy of the bytes. Handles of neighbouring records that share a key count together.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_tlstree_cipher(
    tree: *mut lw_magma_tlstree,
    number: u64,
    out: *mut *const lw_magma_key,
) -> lw_status {
    guard(|| {
        // SAFETY: the caller lends a place for a handle, and this thread alone uses the tree.
        let (out, tree) = unsafe { (place(out, ptr::null())?, exclusive(tree)?) };
        out.share(lw_magma_key(tree.0.cipher(number, Engine::best())?.clone()));
        Ok(())
    })
}

/// Frees the tree, and wipes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_tlstree_free(tree: *mut lw_magma_tlstree) {
    // SAFETY: the caller gives it up.
    unsafe { free(tree) }
}

/// KDF_TREE_GOSTR3411_2012_256 (RFC 7836, 4.4): fills `out` with 1 to 32 * (2^(8R) - 1) bytes. `counter_len` is R, 1 to 4. Its hash
/// reads tables at addresses that depend on the key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_magma_kdf_tree(
    key: *const u8,
    key_len: usize,
    label: *const u8,
    label_len: usize,
    seed: *const u8,
    seed_len: usize,
    counter_len: usize,
    out: *mut u8,
    out_len: usize,
) -> lw_status {
    guard(|| {
        let inputs = [(key, key_len), (label, label_len), (seed, seed_len)];
        // SAFETY: the caller lends buffers.
        let ([key, label, seed], [mut out]) = unsafe { claim(inputs, [(out, out_len)]) }?;
        kdf::kdf_tree(key, label, seed, counter_len, &mut out)?;
        out.keep();
        Ok(())
    })
}
