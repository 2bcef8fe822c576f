//! The refusals of modes, which must change nothing.
#![forbid(unsafe_code)]

use super::*;
use crate::key::Sealed as _;

fn key() -> Magma {
    Magma::new(&[7; 32])
}

fn gost() -> Gost28147 {
    Gost28147::new(&[7; 32], Sbox::Z)
}

/// The refusal of `result`.
fn refusal<T>(result: Result<T, Error>) -> Error {
    match result {
        Ok(_) => panic!("accepted"),
        Err(why) => why,
    }
}

#[test]
fn keys_have_32_bytes() {
    for n in [0, 16, 31, 33] {
        assert_eq!(refusal(Magma::from_slice(&vec![0; n], Engine::best())), Error::KeyLength(n));
        let gost = Gost28147::from_slice(&vec![0; n], Sbox::Z, Engine::best());
        assert_eq!(refusal(gost), Error::KeyLength(n));
    }
}

#[test]
fn ivs_have_their_mode_s_length() {
    let (key, gost) = (&key(), &gost());
    for n in (0..40).filter(|&n| n != 4) {
        let iv = vec![0; n];
        let want = Error::NonceLength { got: n, want: "4" };
        assert_eq!(refusal(Ctr::with_key(key, &iv)), want);
        assert_eq!(refusal(CtrAcpkm::with_key(key, &iv)), want);
    }
    for n in (0..40).filter(|&n| n == 0 || n % 8 != 0) {
        let iv = vec![0; n];
        let want = Error::NonceLength { got: n, want: "a positive multiple of 8" };
        assert_eq!(refusal(CbcEncryptor::with_key(key, &iv)), want);
        assert_eq!(refusal(CbcDecryptor::with_key(key, &iv)), want);
        assert_eq!(refusal(CfbEncryptor::with_key(gost, &iv)), want);
        assert_eq!(refusal(CfbDecryptor::with_key(gost, &iv)), want);
        assert_eq!(refusal(Ofb::with_key(key, &iv)), want);
    }
    for n in (0..40).filter(|&n| n != 8) {
        let iv = vec![0; n];
        let want = Error::NonceLength { got: n, want: "8" };
        assert_eq!(refusal(legacy::Cnt::with_key(gost, &iv, Meshing::None)), want);
        assert_eq!(refusal(legacy::CfbEncryptor::with_key(gost, &iv, Meshing::None)), want);
        assert_eq!(refusal(legacy::CfbDecryptor::with_key(gost, &iv, Meshing::None)), want);
    }
}

/// Refuses `data`, and processes the rest as if the call had not happened.
fn refuses(state: impl Stream + Clone, len: usize, want: &Error) {
    let mut fresh = state.clone();
    let mut state = state;
    let mut data = vec![0x5a; len];
    assert_eq!(state.apply(&mut data), Err(want.clone()));
    assert!(data.iter().all(|&byte| byte == 0x5a), "nothing was written");
    let (mut a, mut b) = ([1; 8], [1; 8]);
    assert_eq!(state.apply(&mut a), fresh.apply(&mut b));
    assert_eq!(a, b);
}

#[test]
fn modes_of_whole_blocks_take_whole_blocks() {
    let key = &key();
    for n in [1, 7, 9, 4097] {
        let want = Error::Unaligned(n);
        refuses(CbcEncryptor::with_key(key, &[0; 8]).unwrap(), n, &want);
        refuses(CbcDecryptor::with_key(key, &[0; 16]).unwrap(), n, &want);
        refuses(EcbEncryptor::with_key(key), n, &want);
        refuses(EcbDecryptor::with_key(key), n, &want);
        let mut data = vec![0; n];
        let threads = Threads::Own(2);
        assert_eq!(
            CbcDecryptor::with_key(key, &[0; 8]).unwrap().apply_with(threads, &mut data),
            Err(want.clone())
        );
        assert_eq!(EcbEncryptor::with_key(key).apply_with(threads, &mut data), Err(want.clone()));
        assert_eq!(EcbDecryptor::with_key(key).apply_with(threads, &mut data), Err(want.clone()));
        assert!(data.iter().all(|&byte| byte == 0));
    }
}

#[test]
fn a_counter_does_not_come_back() {
    let key = &key();
    let mut state = Ctr::with_key(key, &[0; 4]).unwrap();
    state.seek_block((1 << 32) - 2).unwrap();
    refuses(state.clone(), 17, &Error::CounterExhausted);
    assert_eq!(state.apply_with(Threads::Own(2), &mut vec![0; 1 << 20]), Err(Error::CounterExhausted));
    // The last two blocks are available, in pieces, and no further byte.
    let mut last = [0; 16];
    state.apply(&mut last[..3]).unwrap();
    state.apply(&mut last[3..]).unwrap();
    assert_eq!(state.position(), 1 << 35);
    assert_eq!(state.apply(&mut [0]), Err(Error::CounterExhausted));
    state.apply(&mut []).unwrap();
    assert_eq!(state.seek_block((1 << 32) + 1), Err(Error::CounterExhausted));
    state.seek_block(1 << 32).unwrap();
    assert_eq!(state.apply(&mut [0]), Err(Error::CounterExhausted));
    // The output is the keystream of the counter's last numbers.
    let mut blocks = [[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xfe], [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]].concat();
    EcbEncryptor::with_key(key).apply(&mut blocks).unwrap();
    assert_eq!(last[..], blocks[..]);
}

#[test]
fn messages_end_where_rekeying_does() {
    let key = &key();
    let mut state = CtrAcpkm::with_section(key, &[0; 4], Limits::LONGEST_SECTION).unwrap();
    state.jump(1 << 34);
    assert_eq!(state.apply(&mut [0]), Err(Error::TooLong { limit: 1 << 34 }));
    let mut state = CtrAcpkm::with_section(key, &[0; 4], Limits::LONGEST_SECTION).unwrap();
    state.jump((1 << 34) - 1);
    refuses(state.clone(), 2, &Error::TooLong { limit: 1 << 34 });
    let long = state.apply_with(Threads::Own(2), &mut vec![0; 1 << 20]);
    assert_eq!(long, Err(Error::TooLong { limit: 1 << 34 }));
    state.apply(&mut [0]).unwrap();
    let mut mac = OmacAcpkm::with_key(key, 8, 40, 8).unwrap();
    let limit = (1 << 34) / 40 * 8;
    mac.jump(limit - 1);
    assert_eq!(mac.update(&[0, 0]), Err(Error::TooLong { limit }));
    mac.update(&[0]).unwrap();
}

#[test]
fn sections_and_frequencies_are_whole() {
    let key = &key();
    // The longest section is the most that one key may process; with a longer one the key would almost never change.
    let longest = Limits::LONGEST_SECTION;
    assert_eq!(longest as u64, Limits::default().bytes());
    CtrAcpkm::with_section(key, &[0; 4], longest).unwrap();
    OmacAcpkm::with_key(key, longest, longest / 40 * 40, 8).unwrap();
    for section in [0, 1, 7, 12, 1023, longest + 8, usize::MAX - 7] {
        assert_eq!(refusal(CtrAcpkm::with_section(key, &[0; 4], section)), Error::Section(section));
        assert_eq!(refusal(OmacAcpkm::with_key(key, section, 80, 8)), Error::Section(section));
    }
    let error = refusal(CtrAcpkm::with_section(key, &[0; 4], usize::MAX - 7)).to_string();
    assert!(error.ends_with("is not a positive multiple of 8 up to 268435456"), "{error}");
    for frequency in [0, 8, 39, 96, longest.next_multiple_of(40), usize::MAX / 40 * 40] {
        assert!(matches!(refusal(OmacAcpkm::with_key(key, 16, frequency, 8)), Error::Parameter(_)));
    }
    let odd = self::key().with_limits(Limits::Custom { bytes: 1 << 20, section: 12 });
    assert_eq!(refusal(CtrAcpkm::with_key(&odd, &[0; 4])), Error::Section(12));
}

/// A mode's answer about a length agrees with its later behaviour, and the question changes nothing.
fn foretells(mut state: impl Stream + Clone, lengths: &[usize]) {
    for &n in lengths {
        let told = state.would_take(n as u64);
        assert_eq!(told, state.clone().would_take(n as u64), "{n}");
        let done = state.apply(&mut vec![0; n]);
        match (told, done) {
            // A refusal names the processed piece, not the one in question: here they are the same.
            (Ok(()), Ok(())) => {}
            (Err(told), Err(done)) => assert_eq!(told, done, "{n}"),
            (told, done) => panic!("{n} bytes: told {told:?}, then {done:?}"),
        }
    }
}

#[test]
fn modes_say_ahead_what_they_will_refuse() {
    let lengths = [0, 8, 7, 1000, 16, 1023, 1024, 1025, 4096, 8, 64, 3];
    let limits = Limits::Custom { bytes: 4096, section: 1024 };
    let (key, gost) = (|| self::key().with_limits(limits), || gost().with_limits(limits));
    foretells(Ctr::with_key(key(), &[0; 4]).unwrap(), &lengths);
    foretells(CtrAcpkm::with_key(&key(), &[0; 4]).unwrap(), &lengths);
    foretells(CbcEncryptor::with_key(key(), &[0; 8]).unwrap(), &lengths);
    foretells(CbcDecryptor::with_key(key(), &[0; 8]).unwrap(), &lengths);
    foretells(CfbEncryptor::with_key(key(), &[0; 8]).unwrap(), &lengths);
    foretells(CfbDecryptor::with_key(key(), &[0; 8]).unwrap(), &lengths);
    foretells(Ofb::with_key(key(), &[0; 8]).unwrap(), &lengths);
    foretells(EcbEncryptor::with_key(gost()), &lengths);
    foretells(EcbDecryptor::with_key(gost()), &lengths);
    for meshing in [Meshing::None, Meshing::CryptoPro] {
        foretells(legacy::Cnt::with_key(&gost(), &[0; 8], meshing).unwrap(), &lengths);
        foretells(legacy::CfbEncryptor::with_key(&gost(), &[0; 8], meshing).unwrap(), &lengths);
        foretells(legacy::CfbDecryptor::with_key(&gost(), &[0; 8], meshing).unwrap(), &lengths);
    }
    // A key that is too small for a section, and lengths that no buffer has.
    let small = self::key().with_limits(Limits::Custom { bytes: 1023, section: 1024 });
    let state = CtrAcpkm::with_key(&small, &[0; 4]).unwrap();
    assert_eq!(state.would_take(1 << 20), Err(Error::KeyExhausted { limit: 1023 }));
    assert_eq!(state.would_take((1 << 34) + 1), Err(Error::TooLong { limit: 1 << 34 }));
    let free = self::key().with_limits(Limits::Unlimited);
    assert_eq!(Ctr::with_key(&free, &[0; 4]).unwrap().would_take(1 << 35), Ok(()));
    assert_eq!(
        Ctr::with_key(&free, &[0; 4]).unwrap().would_take((1 << 35) + 1),
        Err(Error::CounterExhausted)
    );
    assert_eq!(Ofb::with_key(&free, &[0; 8]).unwrap().would_take(u64::MAX), Ok(()));
    let unaligned = CbcEncryptor::with_key(&free, &[0; 8]).unwrap().would_take((1 << 40) + 4);
    assert!(matches!(unaligned, Err(Error::Unaligned(_))));
}

/// Guesses at tags count separately from processed bytes, also for empty messages.
#[test]
fn refused_codes_are_counted() {
    let (key, gost) = (key(), gost());
    let closed = Err(Error::TooManyRefused { limit: Limits::REFUSED });
    let omac = || Omac::with_key(&key, 4).unwrap();
    let acpkm = || OmacAcpkm::with_key(&key, 64, 80, 4).unwrap();
    let imit = || {
        let mut mac = Imit::with_key(&gost, Meshing::CryptoPro);
        mac.update(&[1; 3]).unwrap();
        mac
    };
    let (right, other, code) = (omac().finish(), acpkm().finish(), imit().finish());
    assert_eq!(omac().verify(&[0; 8]), Err(Error::TagLength(8)), "not judged, not counted");
    assert_eq!((key.refused(), gost.refused()), (0, 0));
    for _ in 0..3 {
        assert_eq!(omac().verify(&[0; 4]), Err(Error::Refused));
        assert_eq!(acpkm().verify(&[0; 4]), Err(Error::Refused));
        assert_eq!(imit().verify(&[0; 4]), Err(Error::Refused));
    }
    assert_eq!((key.refused(), gost.refused()), (6 * 256, 3 * 256));
    assert_eq!(omac().verify(right.as_ref()), Ok(()));
    let used = key.used();
    while key.refused() < Limits::REFUSED && !cfg!(miri) {
        assert_eq!(omac().verify(&[0; 4]), Err(Error::Refused));
    }
    for key in [key.core(), gost.core()] {
        let _ = key.budget.judge(Limits::REFUSED, || Err(Error::Refused));
    }
    assert_eq!(omac().verify(right.as_ref()), closed);
    assert_eq!(acpkm().verify(other.as_ref()), closed);
    assert_eq!(imit().verify(code.as_ref()), closed);
    // Its limit has not shrunk, and it makes codes as before.
    assert_eq!((omac().finish().as_ref(), key.used() >= used), (right.as_ref(), true));
}

#[test]
fn tags_have_their_length_and_value() {
    let key = &key();
    for n in [0, 1, 3, 9, 16] {
        assert_eq!(refusal(Omac::with_key(key, n)), Error::TagLength(n));
        assert_eq!(refusal(OmacAcpkm::with_key(key, 16, 80, n)), Error::TagLength(n));
    }
    let mut mac = Omac::with_key(key, 6).unwrap();
    mac.update(b"a message").unwrap();
    let mut acpkm = OmacAcpkm::with_key(key, 8, 40, 6).unwrap();
    acpkm.update(b"a message").unwrap();
    let mut imit = Imit::with_key(&gost(), Meshing::CryptoPro);
    imit.update(b"a message").unwrap();
    macro_rules! checks {
        ($mac:expr, $len:literal) => {{
            let tag = $mac.clone().finish().as_ref().to_vec();
            assert_eq!(tag.len(), $len);
            assert_eq!($mac.clone().verify(&tag), Ok(()));
            for bit in 0..8 * $len {
                let mut other = tag.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                assert_eq!($mac.clone().verify(&other), Err(Error::Refused), "bit {bit}");
            }
            assert_eq!($mac.clone().verify(&tag[..$len - 1]), Err(Error::TagLength($len - 1)));
            assert_eq!($mac.clone().verify(&[]), Err(Error::TagLength(0)));
            let longer = [&tag[..], &[0]].concat();
            assert_eq!($mac.clone().verify(&longer), Err(Error::TagLength($len + 1)));
        }};
    }
    checks!(mac, 6);
    checks!(acpkm, 6);
    checks!(imit, 4);
}

#[test]
fn buffers_are_the_same_or_apart() {
    let key = &key();
    let mut state = Ctr::with_key(key, &[0; 4]).unwrap();
    let lengths = Error::Lengths { input: 3, output: 4 };
    assert_eq!(state.apply_to(&[0; 3], &mut [0; 4]), Err(lengths));
    let mut buffer = [0x5a; 32];
    for (from, to) in [(0..16, 8), (8..24, 0), (0..2, 1), (1..3, 0)] {
        assert_eq!(state.apply_within(&mut buffer, from, to), Err(Error::Overlap));
    }
    #[allow(clippy::reversed_empty_ranges, reason = "it is what is refused")]
    for (from, to) in [(0..33, 0), (0..8, 25), (40..41, 0), (9..8, 0), (0..8, usize::MAX)] {
        assert!(matches!(state.apply_within(&mut buffer, from, to), Err(Error::Parameter(_))));
    }
    assert_eq!((buffer, state.position()), ([0x5a; 32], 0));
    state.apply_within(&mut buffer, 8..16, 8).unwrap();
    assert_eq!(state.position(), 8);
}

/// A key's limits hold for all its clones and modes together; rekeying modes charge it only for its own part.
#[test]
fn keys_are_used_up() {
    let limits = Limits::Custom { bytes: 2048, section: 1024 };
    let want = Error::KeyExhausted { limit: 2048 };
    let key = self::key().with_limits(limits);
    let copy = key.clone();
    Ctr::with_key(&key, &[0; 4]).unwrap().apply(&mut [0; 1000]).unwrap();
    Omac::with_key(copy.clone(), 8).unwrap().update(&[0; 48]).unwrap();
    assert_eq!((key.used(), copy.used()), (1048, 1048));
    for n in [1008, if cfg!(miri) { 2000 } else { 100_000 }] {
        refuses(EcbEncryptor::with_key(&copy), n, &want);
        let key = &self::key().with_limits(Limits::Custom { bytes: n as u64 - 1, section: 8 });
        let want = Error::KeyExhausted { limit: n as u64 - 1 };
        refuses(EcbDecryptor::with_key(key), n, &want);
        refuses(Ctr::with_key(key, &[0; 4]).unwrap(), n, &want);
        refuses(Ofb::with_key(key, &[0; 8]).unwrap(), n, &want);
        refuses(CbcEncryptor::with_key(key, &[0; 8]).unwrap(), n, &want);
        refuses(CbcDecryptor::with_key(key, &[0; 8]).unwrap(), n, &want);
        refuses(CfbEncryptor::with_key(key, &[0; 8]).unwrap(), n, &want);
        refuses(CfbDecryptor::with_key(key, &[0; 8]).unwrap(), n, &want);
        assert_eq!(Omac::with_key(key, 8).unwrap().update(&vec![0; n]), Err(want.clone()));
        let gost = &gost().with_limits(Limits::Custom { bytes: n as u64 - 1, section: 8 });
        refuses(legacy::Cnt::with_key(gost, &[0; 8], Meshing::None).unwrap(), n, &want);
        refuses(legacy::CfbEncryptor::with_key(gost, &[0; 8], Meshing::None).unwrap(), n, &want);
        refuses(legacy::CfbDecryptor::with_key(gost, &[0; 8], Meshing::None).unwrap(), n, &want);
        assert_eq!(Imit::with_key(gost, Meshing::None).update(&vec![0; n]), Err(want));
    }
    // A section of 1024 and no more, whatever the length of the message and the cuts.
    let key = self::key().with_limits(limits);
    let mut state = CtrAcpkm::with_key(&key, &[0; 4]).unwrap();
    for n in [1000, 48, 5000, 1] {
        state.apply(&mut vec![0; n]).unwrap();
    }
    assert_eq!(key.used(), 1024);
    CtrAcpkm::with_key(&key, &[1; 4]).unwrap().apply(&mut [0; 9000]).unwrap();
    assert_eq!(key.used(), 2048);
    refuses(CtrAcpkm::with_key(&key, &[2; 4]).unwrap(), 1, &want);
    assert_eq!(refusal(OmacAcpkm::with_key(&key, 16, 80, 8)), want);
    // CNT encrypts its IV under the given key, too.
    let want = Error::KeyExhausted { limit: 2056 };
    let gost = gost().with_limits(Limits::Custom { bytes: 2056, section: 1024 });
    let mut state = legacy::Cnt::with_key(&gost, &[0; 8], Meshing::CryptoPro).unwrap();
    let mut mac = Imit::with_key(&gost, Meshing::CryptoPro);
    for n in [1000, 48, 5000, 1] {
        state.apply(&mut vec![0; n]).unwrap();
        mac.update(&vec![0; n]).unwrap();
    }
    assert_eq!(gost.used(), 2056);
    assert_eq!(Imit::with_key(&gost, Meshing::CryptoPro).update(&[0]), Err(want));
}

/// A key counts blocks when they are begun, whatever the cuts: short messages use it up as fast as the cipher is called.
#[test]
fn a_begun_block_counts_in_full() {
    for n in 0..=40usize {
        let blocks = 8 * n.div_ceil(8) as u64;
        for cut in [1, 3, 8, 40] {
            let pieces = || (0..n).step_by(cut).map(move |at| vec![0; cut.min(n - at)]);
            macro_rules! counts {
                ($key:ident, $state:expr, $take:ident, $want:expr) => {{
                    let mut state = $state.unwrap();
                    pieces().for_each(|mut piece| state.$take(&mut piece).unwrap());
                    assert_eq!($key.used(), $want, "{n} bytes in pieces of {cut}");
                }};
            }
            let [a, b, c, d, e, f] = core::array::from_fn(|_| key());
            counts!(a, Ctr::with_key(&a, &[0; 4]), apply, blocks);
            counts!(b, CtrAcpkm::with_section(&b, &[0; 4], 16), apply, blocks.min(16));
            counts!(c, CfbEncryptor::with_key(&c, &[0; 16]), apply, blocks);
            counts!(d, CfbDecryptor::with_key(&d, &[0; 16]), apply, blocks);
            counts!(e, Ofb::with_key(&e, &[0; 16]), apply, blocks);
            counts!(f, Omac::with_key(&f, 8), update, blocks);
            let ([a, b, c, d], none) = (core::array::from_fn(|_| gost()), Meshing::None);
            counts!(a, legacy::Cnt::with_key(&a, &[0; 8], none), apply, blocks + 8);
            counts!(b, legacy::CfbEncryptor::with_key(&b, &[0; 8], none), apply, blocks);
            counts!(c, legacy::CfbDecryptor::with_key(&c, &[0; 8], none), apply, blocks);
            counts!(d, Ok::<_, Error>(Imit::with_key(&d, none)), update, blocks);
        }
    }
    // A block that is sought, or continued by a clone, counts again.
    let key = key();
    let mut ctr = Ctr::with_key(&key, &[0; 4]).unwrap();
    for used in [8, 16, 24] {
        ctr.seek_byte(5, 3).unwrap();
        ctr.apply(&mut [0; 2]).unwrap();
        assert_eq!(key.used(), used);
    }
    ctr.apply(&mut [0; 3]).unwrap();
    assert_eq!(key.used(), 24, "the rest of the block is free");
    let mut omac = Omac::with_key(&key, 8).unwrap();
    omac.update(&[0]).unwrap();
    let mut other = omac.clone();
    omac.update(&[0; 7]).unwrap();
    assert_eq!(key.used(), 32);
    other.update(&[1; 7]).unwrap();
    assert_eq!(key.used(), 40);
}

/// OMAC-ACPKM charges the given key for key material before it takes a piece. A refused piece changes nothing.
#[test]
fn a_master_key_runs_out() {
    let want = Err(Error::KeyExhausted { limit: 80 });
    let key = self::key().with_limits(Limits::Custom { bytes: 80, section: 8 });
    let mut mac = OmacAcpkm::with_key(&key, 8, 400, 8).unwrap();
    assert_eq!(key.used(), 40);
    let message = [0x5a; 24];
    // Refused again and again: nothing is counted for the section keys either.
    for _ in 0..20 {
        assert_eq!(mac.update(&message), want);
        assert_eq!(key.used(), 40);
    }
    mac.update(&message[..9]).unwrap();
    assert_eq!(mac.update(&message[9..]), want);
    mac.update(&message[9..16]).unwrap();
    assert_eq!(mac.update(&message[16..]), want);
    assert_eq!(key.used(), 80);
    let tag = plain::omac_acpkm(&[7; 32], 8, 400, &message[..16]);
    assert_eq!(mac.finish().as_ref(), tag);
}

/// The section keys of OMAC-ACPKM are the same in every message. All messages and clones of a key use them up together.
#[test]
fn section_keys_are_used_up() {
    let want = Err(Error::KeyExhausted { limit: 2048 });
    let key = self::key().with_limits(Limits::Custom { bytes: 2048, section: 1024 });
    let begin = |key: &Magma| OmacAcpkm::with_key(key, 1024, 400, 8).unwrap();
    // One section counts, whatever the length of the message and the cuts.
    let mut long = begin(&key);
    for n in [1000, 48, 2000] {
        long.update(&vec![0; n]).unwrap();
    }
    assert_eq!(key.used(), 3 * 40, "key material");
    let mut first = begin(&key.clone());
    first.update(&[0; 1000]).unwrap();
    let mut second = begin(&key);
    assert_eq!(second.update(&[0; 25]), want);
    second.update(&[0; 24]).unwrap();
    assert_eq!(first.update(&[0]), want);
    assert_eq!(begin(&key).update(&[0]), want);
    // The refused pieces are not part of their messages, and the long message is paid for.
    assert_eq!(first.finish().as_ref(), plain::omac_acpkm(&[7; 32], 1024, 400, &[0; 1000]));
    assert_eq!(second.finish().as_ref(), plain::omac_acpkm(&[7; 32], 1024, 400, &[0; 24]));
    long.update(&[0; 5000]).unwrap();
    assert_eq!(long.finish().as_ref(), plain::omac_acpkm(&[7; 32], 1024, 400, &[0; 8048]));
    // The count of the key itself is another one.
    assert_eq!(key.used(), 3 * 40 + 3 * 40 + 5 * 40);
}

/// A clone of a message in a later section may continue differently under the keys of the original.
#[test]
fn clones_of_messages_count() {
    let limits = Limits::Custom { bytes: 2048, section: 1024 };
    let want = Err(Error::KeyExhausted { limit: 2048 });
    macro_rules! counts {
        ($state:expr, $next:expr) => {{
            let (mut state, next) = ($state, $next);
            next(&mut state, &mut [0; 1500]).unwrap();
            let (mut one, mut other) = (state.clone(), state.clone());
            next(&mut one, &mut [0; 1024]).unwrap();
            assert_eq!(next(&mut other, &mut [0]), want);
            assert_eq!(next(&mut one.clone(), &mut [0]), want);
            // Both are paid for up to their end.
            next(&mut state, &mut [0; 5000]).unwrap();
            next(&mut one, &mut [0; 5000]).unwrap();
        }};
    }
    let (key, gost) = (self::key().with_limits(limits), gost().with_limits(limits));
    let meshing = Meshing::CryptoPro;
    counts!(CtrAcpkm::with_key(&key, &[0; 4]).unwrap(), |s: &mut CtrAcpkm, d: &mut [u8]| s.apply(d));
    let key = self::key().with_limits(limits);
    counts!(OmacAcpkm::with_key(&key, 1024, 400, 8).unwrap(), |s: &mut OmacAcpkm, d: &mut [u8]| s.update(d));
    counts!(Imit::with_key(&gost, meshing), |s: &mut Imit, d: &mut [u8]| s.update(d));
}

#[test]
fn limits_can_be_changed_but_not_forgotten() {
    let key = self::key().with_limits(Limits::Custom { bytes: 16, section: 8 });
    EcbEncryptor::with_key(&key).apply(&mut [0; 16]).unwrap();
    let key = key.with_limits(Limits::Custom { bytes: 24, section: 8 });
    EcbEncryptor::with_key(&key).apply(&mut [0; 8]).unwrap();
    assert_eq!(EcbEncryptor::with_key(&key).apply(&mut [0; 8]), Err(Error::KeyExhausted { limit: 24 }));
    assert_eq!(self::key().limits(), Limits::Rfc9227);
    let free = key.with_limits(Limits::Unlimited);
    EcbEncryptor::with_key(&free).apply(&mut [0; 8]).unwrap();
}
