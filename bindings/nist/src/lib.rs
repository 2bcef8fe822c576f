//! MAYO of round 3 with the functions that NIST asks of submissions. `api.h` gives those of one parameter set their usual names.

use core::ffi::{c_int, c_ulonglong};
use std::panic::{AssertUnwindSafe, catch_unwind};

use lanework_cpu::memory::wipe;
use lanework_mayo::{Engine, Params, PublicKey, Round, SecretKey, Set};

/// Runs an entry; a panic, which C could not catch, is its fault.
fn guard<T>(body: impl FnOnce() -> Option<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        // Dropping it could panic again.
        core::mem::forget(payload);
        None
    })
}

/// # Safety
/// `at` is NULL, or may be read for `len` bytes.
unsafe fn copied(at: *const u8, len: usize) -> Option<Vec<u8>> {
    if len == 0 {
        return Some(Vec::new());
    }
    if at.is_null() || isize::try_from(len).is_err() {
        return None;
    }
    // SAFETY: not NULL, no longer than an object; the rest is promised.
    Some(unsafe { core::slice::from_raw_parts(at, len) }.to_vec())
}

/// # Safety
/// `at` is NULL, or may be written for `bytes.len()` bytes.
unsafe fn write(at: *mut u8, bytes: &[u8]) -> Option<()> {
    if at.is_null() && !bytes.is_empty() {
        return None;
    }
    // SAFETY: promised, and `bytes` are the library's own.
    unsafe { at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    Some(())
}

/// # Safety
/// Each is NULL, or may be written for the set's bytes.
unsafe fn keypair(params: &Params, pk: *mut u8, sk: *mut u8) -> c_int {
    let made = guard(|| {
        let secret = SecretKey::generate_os(params).ok()?;
        let public = secret.public_key(Engine::best());
        if pk.is_null() || sk.is_null() {
            return None;
        }
        // SAFETY: the caller lends both.
        unsafe { write(pk, public.as_bytes()).and(write(sk, secret.expose_seed())) }
    });
    if made.is_some() {
        return 0;
    }
    for (at, len) in [(pk, params.public_key_bytes()), (sk, params.secret_key_bytes())] {
        // SAFETY: the caller lends both.
        unsafe { write(at, &vec![0; len]) };
    }
    -1
}

/// # Safety
/// `m` and `sk` are NULL or may be read, `sm` and `smlen` are NULL or may be written.
unsafe fn sign(
    params: &Params,
    sm: *mut u8,
    smlen: *mut c_ulonglong,
    m: *const u8,
    mlen: c_ulonglong,
    sk: *const u8,
) -> c_int {
    let made = guard(|| {
        // SAFETY: the caller lends both.
        let (message, mut seed) =
            unsafe { (copied(m, usize::try_from(mlen).ok()?)?, copied(sk, params.secret_key_bytes())?) };
        let secret = SecretKey::from_seed(params, &seed);
        wipe(&mut seed);
        secret.ok()?.sign_message(Engine::best(), &message).ok()
    });
    // SAFETY: the caller lends all of them.
    unsafe { answer(made, sm, smlen, mlen.checked_add(params.signature_bytes() as u64)) }
}

/// # Safety
/// `sm` and `pk` are NULL or may be read, `m` and `mlen` are NULL or may be written.
unsafe fn open(
    params: &Params,
    m: *mut u8,
    mlen: *mut c_ulonglong,
    sm: *const u8,
    smlen: c_ulonglong,
    pk: *const u8,
) -> c_int {
    let made = guard(|| {
        // SAFETY: the caller lends both.
        let (signed, key) =
            unsafe { (copied(sm, usize::try_from(smlen).ok()?)?, copied(pk, params.public_key_bytes())?) };
        let key = PublicKey::from_bytes(params, &key).ok()?;
        key.open(Engine::best(), &signed).ok().map(<[u8]>::to_vec)
    });
    // A buffer that no object can be has no part that may be zeroed.
    let room = smlen.checked_sub(params.signature_bytes() as u64).filter(|_| isize::try_from(smlen).is_ok());
    // SAFETY: the caller lends all of them.
    unsafe { answer(made, m, mlen, room) }
}

/// Writes a result and its length, or zeros over the `room` that it would have taken and as its length.
///
/// # Safety
/// `out` is NULL, or may be written for `room` bytes, unless no object is that long; `length` is NULL, or may be written.
unsafe fn answer(made: Option<Vec<u8>>, out: *mut u8, length: *mut c_ulonglong, room: Option<u64>) -> c_int {
    let made = made.filter(|made| !length.is_null() && (!out.is_null() || made.is_empty()));
    if let Some(made) = &made {
        // SAFETY: promised.
        unsafe { write(out, made) };
    } else if let Some(Ok(room)) = room.map(isize::try_from)
        && !out.is_null()
    {
        // SAFETY: promised.
        unsafe { out.write_bytes(0, room.unsigned_abs()) };
    }
    if !length.is_null() {
        // SAFETY: promised.
        unsafe { length.write(made.as_ref().map_or(0, |made| made.len() as c_ulonglong)) };
    }
    if made.is_some() { 0 } else { -1 }
}

macro_rules! set {
    ($set:expr, $keypair:ident, $sign:ident, $open:ident) => {
        /// `crypto_sign_keypair`.
        ///
        /// # Safety
        /// As in `api.h`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $keypair(pk: *mut u8, sk: *mut u8) -> c_int {
            // SAFETY: the caller's buffers, as `api.h` says.
            unsafe { keypair(Params::of(Round::Three, $set), pk, sk) }
        }

        /// `crypto_sign`.
        ///
        /// # Safety
        /// As in `api.h`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $sign(
            sm: *mut u8,
            smlen: *mut c_ulonglong,
            m: *const u8,
            mlen: c_ulonglong,
            sk: *const u8,
        ) -> c_int {
            // SAFETY: the caller's buffers, as `api.h` says.
            unsafe { sign(Params::of(Round::Three, $set), sm, smlen, m, mlen, sk) }
        }

        /// `crypto_sign_open`.
        ///
        /// # Safety
        /// As in `api.h`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $open(
            m: *mut u8,
            mlen: *mut c_ulonglong,
            sm: *const u8,
            smlen: c_ulonglong,
            pk: *const u8,
        ) -> c_int {
            // SAFETY: the caller's buffers, as `api.h` says.
            unsafe { open(Params::of(Round::Three, $set), m, mlen, sm, smlen, pk) }
        }
    };
}

set!(Set::Mayo1, lanework_mayo1_keypair, lanework_mayo1_sign, lanework_mayo1_open);
set!(Set::Mayo2, lanework_mayo2_keypair, lanework_mayo2_sign, lanework_mayo2_open);
set!(Set::Mayo3, lanework_mayo3_keypair, lanework_mayo3_sign, lanework_mayo3_open);
set!(Set::Mayo5, lanework_mayo5_keypair, lanework_mayo5_sign, lanework_mayo5_open);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_back_in_place_and_a_changed_one_does_not() {
        for set in Set::ALL {
            let p = Params::of(Round::Three, set);
            let (mut pk, mut sk) = (vec![0; p.public_key_bytes()], vec![0; p.secret_key_bytes()]);
            let mut buffer = vec![7; 10 + p.signature_bytes()];
            let mut length = 0;
            let at = buffer.as_mut_ptr();
            // SAFETY: all buffers are live and long enough.
            unsafe {
                assert_eq!(keypair(p, pk.as_mut_ptr(), sk.as_mut_ptr()), 0);
                assert_eq!(sign(p, at, &mut length, at, 10, sk.as_ptr()), 0);
                assert_eq!(length as usize, 10 + p.signature_bytes());
                let mut changed = core::slice::from_raw_parts(at, length as usize).to_vec();
                assert_eq!(open(p, at, &mut length, at, length, pk.as_ptr()), 0);
                assert_eq!((length, core::slice::from_raw_parts(at, 10)), (10, &[7; 10][..]));
                changed[0] ^= 1;
                let (from, n) = (changed.as_mut_ptr(), changed.len() as u64);
                assert_eq!(open(p, from, &mut length, from, n, pk.as_ptr()), -1);
                assert_eq!((length, core::slice::from_raw_parts(from, 10)), (0, &[0; 10][..]));
                assert_eq!(open(p, at, &mut length, at, 3, pk.as_ptr()), -1);
                assert_eq!(length, 0);
                assert_eq!(keypair(p, pk.as_mut_ptr(), core::ptr::null_mut()), -1);
                assert!(pk.iter().all(|&byte| byte == 0));
                assert_eq!(sign(p, at, core::ptr::null_mut(), at, 10, sk.as_ptr()), -1);
            }
        }
    }

    /// A failure has the length 0, also where the place for the result is missing, and lengths that no object has are
    /// refused before anything is written.
    #[test]
    fn failures_have_no_length_and_write_only_zeros() {
        let p = Params::of(Round::Three, Set::Mayo2);
        let bytes = p.signature_bytes();
        let (mut pk, mut sk) = (vec![0; p.public_key_bytes()], vec![0; p.secret_key_bytes()]);
        let (mut sm, mut m, message) = (vec![0; 10 + bytes], vec![5; 10], [7; 10]);
        let null = core::ptr::null_mut();
        let (mut length, mut other) = (0, 9);
        // SAFETY: all buffers are live and long enough, or refused before they are touched.
        unsafe {
            assert_eq!(keypair(p, pk.as_mut_ptr(), sk.as_mut_ptr()), 0);
            assert_eq!(sign(p, null, &mut other, message.as_ptr(), 10, sk.as_ptr()), -1);
            assert_eq!(other, 0);
            assert_eq!(sign(p, sm.as_mut_ptr(), &mut length, message.as_ptr(), 10, sk.as_ptr()), 0);
            other = 9;
            assert_eq!(open(p, null, &mut other, sm.as_ptr(), length, pk.as_ptr()), -1);
            assert_eq!(other, 0);
            for huge in [u64::MAX, u64::MAX - bytes as u64, 1 << 63] {
                (length, other) = (9, 9);
                m.fill(5);
                assert_eq!(sign(p, m.as_mut_ptr(), &mut length, message.as_ptr(), huge, sk.as_ptr()), -1);
                assert_eq!(open(p, m.as_mut_ptr(), &mut other, sm.as_ptr(), huge, pk.as_ptr()), -1);
                assert_eq!((length, other, &m), (0, 0, &vec![5; 10]), "{huge}");
            }
            // An empty message needs no place.
            assert_eq!(sign(p, sm.as_mut_ptr(), &mut length, null, 0, sk.as_ptr()), 0);
            assert_eq!(length, bytes as u64);
            assert_eq!(open(p, null, &mut other, sm.as_ptr(), length, pk.as_ptr()), 0);
            assert_eq!(other, 0);
        }
    }

    /// The message and the signed message may lie anywhere in one buffer.
    #[test]
    fn buffers_may_overlap_in_every_way() {
        let p = Params::of(Round::Three, Set::Mayo2);
        let bytes = p.signature_bytes();
        let (mut pk, mut sk) = (vec![0; p.public_key_bytes()], vec![0; p.secret_key_bytes()]);
        let message: Vec<u8> = (0..100).collect();
        let mut length = 0;
        for at in [0, 1, 50, bytes - 1, bytes, bytes + 60] {
            let mut buffer = vec![0; 2 * bytes + 200];
            buffer[at..at + 100].copy_from_slice(&message);
            let base = buffer.as_mut_ptr();
            // SAFETY: all buffers are live and long enough.
            unsafe {
                assert_eq!(keypair(p, pk.as_mut_ptr(), sk.as_mut_ptr()), 0);
                assert_eq!(sign(p, base, &mut length, base.add(at), 100, sk.as_ptr()), 0);
                assert_eq!(open(p, base.add(at), &mut length, base, length, pk.as_ptr()), 0);
            }
            assert_eq!((length, &buffer[at..at + 100]), (100, &message[..]), "{at}");
        }
    }

    #[test]
    fn the_header_has_the_sets_sizes() {
        let header = include_str!("../api.h");
        for set in Set::ALL {
            let p = Params::of(Round::Three, set);
            let (n, sk, pk, s) =
                (set.number(), p.secret_key_bytes(), p.public_key_bytes(), p.signature_bytes());
            let block = format!(
                "#elif LANEWORK_MAYO == {n}\n#define CRYPTO_ALGNAME \"MAYO-{n}\"\n#define CRYPTO_SECRETKEYBYTES {sk}\n\
                 #define CRYPTO_PUBLICKEYBYTES {pk}\n#define CRYPTO_BYTES {s}\n#define crypto_sign_keypair lanework_mayo{n}_keypair\n\
                 #define crypto_sign lanework_mayo{n}_sign\n#define crypto_sign_open lanework_mayo{n}_open\n"
            );
            assert!(header.contains(&block), "{block}");
        }
    }
}
