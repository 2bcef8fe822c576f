//! NIST's record 0 of every parameter set of MAYO through the C interface: the published digest comes out.

use core::ptr;

use lanework::mayo::{
    lw_mayo_public_key_free, lw_mayo_public_key_to_bytes, lw_mayo_secret_key_free,
    lw_mayo_secret_key_from_seed, lw_mayo_secret_key_public, lw_mayo_sign_with_randomizer, lw_mayo_verify,
};
use lanework::status::lw_status;
use lanework_mayo::Params;
use lanework_mayo::internals::known::{Record, digests, drawn, response, sha256_hex};

#[test]
fn record_0_of_every_set() {
    for params in Params::all() {
        let set = 100 * u32::from(params.round().number()) + u32::from(params.set().number());
        let draw = drawn(params.sizes(), 1).next().expect("a record");
        let mut public = vec![0; params.public_key_bytes()];
        let mut signed = vec![0; params.signature_bytes()];
        let (mut secret, mut key) = (ptr::null(), ptr::null());
        // SAFETY: every pointer is of a live vector with its length, or of a handle.
        unsafe {
            let (seed, message, randomizer) = (&draw.secret_key, &draw.message, &draw.randomizer);
            assert_eq!(
                lw_mayo_secret_key_from_seed(set, seed.as_ptr(), seed.len(), &mut secret),
                lw_status::Ok
            );
            assert_eq!(lw_mayo_secret_key_public(secret, &mut key), lw_status::Ok);
            assert_eq!(lw_mayo_public_key_to_bytes(key, public.as_mut_ptr(), public.len()), lw_status::Ok);
            let (m, r, s) = (message.as_ptr(), randomizer.as_ptr(), signed.as_mut_ptr());
            let status =
                lw_mayo_sign_with_randomizer(secret, m, message.len(), r, randomizer.len(), s, signed.len());
            assert_eq!(status, lw_status::Ok);
            assert_eq!(lw_mayo_verify(key, m, message.len(), s, signed.len()), lw_status::Ok);
            lw_mayo_public_key_free(key);
            lw_mayo_secret_key_free(secret);
        }
        signed.extend_from_slice(&draw.message);
        let record = Record {
            seed: draw.seed,
            message: draw.message,
            public_key: public,
            secret_key: draw.secret_key,
            randomizer: draw.randomizer,
            signed,
        };
        assert_eq!(sha256_hex(response(&[record]).as_bytes()), digests(params).first, "{}", params.name());
    }
}
