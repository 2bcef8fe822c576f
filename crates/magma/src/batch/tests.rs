//! Batches against one-message references by the specification, on every backend: all mixes of lengths, fewer and more
//! jobs than lanes, shared keys, several S-boxes at once, and every error beside good jobs.

use lanework_cpu::{Cpu, Select, Settings, Threads};

use super::hazmat::{EcbJob, ecb_encrypt};
use super::*;
use crate::backend::BACKENDS;
use crate::internals::spec;
use crate::key::{Gost28147, Magma};

/// Reproducible pseudorandom numbers.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        self.next() as usize % n
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next() as u8).collect()
    }
}

/// Runs `test` on every backend that this machine has, on one thread and on three.
fn each(test: impl Fn(&str, &Batch<'_>)) {
    let settings = Settings::from_env().expect("the environment can be read");
    let cpu = Cpu::detect();
    let pool = Threads::pool(3).expect("three threads");
    for row in BACKENDS {
        match Engine::choose(&cpu, Select::Named(row.name())) {
            Ok(engine) => {
                test(row.name(), &Batch::new(engine));
                test(row.name(), &Batch::new(engine).threads(Threads::Pool(&pool)));
                println!("ran: {}", row.name());
            }
            Err(why) => {
                assert!(!settings.requires(row.name()), "{why}, but LANEWORK_REQUIRE asks for it");
                println!("skipped {}: {why}", row.name());
            }
        }
    }
}

/// A cipher of this crate together with its description.
trait Cipher: Keyed + Sync {
    const ORDER: ByteOrder;

    fn make(key: &[u8; 32], sbox: Sbox) -> Self;
}

impl Cipher for Magma {
    const ORDER: ByteOrder = ByteOrder::Big;

    fn make(key: &[u8; 32], _: Sbox) -> Magma {
        Magma::new(key)
    }
}

impl Cipher for Gost28147 {
    const ORDER: ByteOrder = ByteOrder::Little;

    fn make(key: &[u8; 32], sbox: Sbox) -> Gost28147 {
        Gost28147::new(key, sbox)
    }
}

/// A key and its description.
struct Key<C> {
    key: C,
    words: [u32; 8],
    sbox: Sbox,
}

impl<C: Cipher> Key<C> {
    fn random(numbers: &mut Numbers) -> Key<C> {
        let bytes: [u8; 32] = numbers.bytes(32).try_into().expect("32 bytes");
        let key = C::make(&bytes, Sbox::ALL[numbers.below(6)]);
        let words = match C::ORDER {
            ByteOrder::Big => spec::magma_words(&bytes),
            ByteOrder::Little => spec::gost28147_words(&bytes),
        };
        Key { sbox: key.sbox(), key, words }
    }

    fn encrypt(&self, block: &[u8]) -> [u8; 8] {
        let number = C::ORDER.number(block.try_into().expect("8 bytes"));
        C::ORDER.block(spec::encrypt(self.sbox.rows(), &self.words, number))
    }

    /// A register of z blocks that moves up by a block at every step.
    fn cbc(&self, iv: &[u8], data: &[u8]) -> Vec<u8> {
        let (mut register, mut out) = (iv.to_vec(), Vec::new());
        for p in data.chunks(8) {
            let c = self.encrypt(&xor(&register[..8], p));
            register.drain(..8);
            register.extend(c);
            out.extend(c);
        }
        out
    }

    fn cfb(&self, iv: &[u8], data: &[u8]) -> Vec<u8> {
        let (mut register, mut out) = (iv.to_vec(), Vec::new());
        for p in data.chunks(8) {
            let c = xor(&self.encrypt(&register[..8]), p);
            register.drain(..8);
            register.extend(&c);
            out.extend(c);
        }
        out
    }

    fn omac(&self, data: &[u8]) -> [u8; 8] {
        // Doubling as long multiplication of a bit string, unlike the code under test.
        let double = |b: [u8; 8]| {
            let mut d: [u8; 8] =
                core::array::from_fn(|i| b[i] << 1 | b.get(i + 1).map_or(0, |next| next >> 7));
            if b[0] & 0x80 != 0 {
                d[7] ^= 0x1b;
            }
            d
        };
        let k1 = double(self.encrypt(&[0; 8]));
        let k2 = double(k1);
        let split = if data.is_empty() { 0 } else { (data.len() - 1) / 8 * 8 };
        let mut state = vec![0; 8];
        for p in data[..split].chunks(8) {
            state = self.encrypt(&xor(&state, p)).to_vec();
        }
        let mut last = data[split..].to_vec();
        let subkey = if last.len() == 8 {
            k1
        } else {
            last.push(0x80);
            last.resize(8, 0);
            k2
        };
        self.encrypt(&xor(&xor(&state, &last), &subkey))
    }
}

impl Key<Magma> {
    fn ctr(&self, iv: &[u8], data: &[u8]) -> Vec<u8> {
        let start = u64::from(u32::from_be_bytes(iv.try_into().expect("4 bytes"))) << 32;
        let blocks = data.chunks(8).zip(start..);
        blocks.flat_map(|(p, counter)| xor(&self.encrypt(&counter.to_be_bytes()), p)).collect()
    }

    /// RFC 9058, 4.1, with the full tag.
    fn mgm(&self, nonce: &[u8], aad: &[u8], data: &[u8]) -> (Vec<u8>, [u8; 8]) {
        let start = |bit: u8| {
            let mut first = nonce.to_vec();
            first[0] |= bit << 7;
            u64::from_be_bytes(self.encrypt(&first))
        };
        let (mut y, mut z) = (start(0), start(1));
        let mut c = Vec::new();
        for p in data.chunks(8) {
            c.extend(xor(&self.encrypt(&y.to_be_bytes()), p));
            y = y & !0xffff_ffff | u64::from((y as u32).wrapping_add(1));
        }
        let mut text = aad.to_vec();
        text.resize(aad.len().next_multiple_of(8), 0);
        text.extend(&c);
        text.resize(text.len().next_multiple_of(8), 0);
        text.extend((8 * aad.len() as u32).to_be_bytes());
        text.extend((8 * data.len() as u32).to_be_bytes());
        let mut sum = 0;
        for x in text.chunks(8) {
            let h = u64::from_be_bytes(self.encrypt(&z.to_be_bytes()));
            sum ^= product(h, u64::from_be_bytes(x.try_into().expect("8 bytes")));
            z = z.wrapping_add(1 << 32);
        }
        (c, self.encrypt(&sum.to_be_bytes()))
    }
}

/// In GF(2^64) with x^64 + x^4 + x^3 + x + 1, bit by bit.
fn product(a: u64, b: u64) -> u64 {
    (0..64).rev().fold(0, |p, bit| (p << 1) ^ (0x1b * (p >> 63)) ^ (a * (b >> bit & 1)))
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// Lengths in bytes, in many mixes: equal, all small, one long among short, random in no order; none, one, fewer and
/// more than the lanes.
fn mixes(numbers: &mut Numbers) -> Vec<Vec<usize>> {
    let mut mixes = vec![vec![], vec![0], vec![0, 0, 0], vec![1], vec![8], vec![9], vec![4000]];
    mixes.push((0..=80).collect());
    mixes.push((0..=80).rev().collect());
    for n in [2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 300] {
        mixes.push(vec![64; n]);
    }
    mixes.push([vec![24; 127], vec![2048]].concat());
    mixes.push([vec![700], vec![2048; 3], vec![0, 5]].concat());
    for (n, most) in [(5, 600), (40, 100), (128, 200), (200, 300), (150, 1500)] {
        mixes.push((0..n).map(|_| numbers.below(most)).collect());
    }
    mixes
}

/// Messages of these lengths, each with the number of its key: one key for all, a few keys, or one for each.
struct Messages {
    data: Vec<Vec<u8>>,
    keys: Vec<usize>,
}

impl Messages {
    fn new(numbers: &mut Numbers, lengths: &[usize], round: usize) -> Messages {
        let keys = (0..lengths.len()).map(|i| [i % 150, 0, i % 3][round % 3]).collect();
        Messages { data: lengths.iter().map(|&n| numbers.bytes(n)).collect(), keys }
    }
}

fn all_keys<C: Cipher>(numbers: &mut Numbers) -> Vec<Key<C>> {
    (0..150).map(|_| Key::random(numbers)).collect()
}

fn serial<C: Cipher>(name: &str, batch: &Batch<'_>) {
    let mut numbers = Numbers(11);
    let keys = all_keys::<C>(&mut numbers);
    for (round, lengths) in mixes(&mut numbers).iter().enumerate() {
        let ivs: Vec<Vec<u8>> = lengths
            .iter()
            .map(|_| {
                let z = [1, 1, 1, 2, 3, 5, 40][numbers.below(7)];
                numbers.bytes(8 * z)
            })
            .collect();
        let m = Messages::new(&mut numbers, lengths, round);

        let mut data = m.data.clone();
        let items = data.iter_mut().zip(&ivs).zip(&m.keys);
        let mut jobs: Vec<_> = items.map(|((data, iv), &k)| CfbJob { key: &keys[k].key, iv, data }).collect();
        assert!(batch.cfb_encrypt(&mut jobs).expect("threads").iter().all(Result::is_ok));
        for (i, got) in data.iter().enumerate() {
            let same = *got == keys[m.keys[i]].cfb(&ivs[i], &m.data[i]);
            assert!(same, "{name}: CFB mix {round}, job {i} of {} bytes", got.len());
        }

        let whole: Vec<Vec<u8>> = m.data.iter().map(|d| d[..d.len() / 8 * 8].to_vec()).collect();
        let mut data = whole.clone();
        let items = data.iter_mut().zip(&ivs).zip(&m.keys);
        let mut jobs: Vec<_> = items.map(|((data, iv), &k)| CbcJob { key: &keys[k].key, iv, data }).collect();
        assert!(batch.cbc_encrypt(&mut jobs).expect("threads").iter().all(Result::is_ok));
        for (i, got) in data.iter().enumerate() {
            let same = *got == keys[m.keys[i]].cbc(&ivs[i], &whole[i]);
            assert!(same, "{name}: CBC mix {round}, job {i} of {} bytes", got.len());
        }

        let mut data = whole.clone();
        let mut jobs: Vec<_> =
            data.iter_mut().zip(&m.keys).map(|(data, &k)| EcbJob { key: &keys[k].key, data }).collect();
        assert!(ecb_encrypt(batch, &mut jobs).expect("threads").iter().all(Result::is_ok));
        for (i, got) in data.iter().enumerate() {
            let want: Vec<u8> = whole[i].chunks(8).flat_map(|b| keys[m.keys[i]].encrypt(b)).collect();
            assert!(*got == want, "{name}: ECB mix {round}, job {i} of {} bytes", got.len());
        }

        let mut macs: Vec<Vec<u8>> = (0..lengths.len()).map(|i| vec![0xa5; 4 + i % 5]).collect();
        let items = m.data.iter().zip(&mut macs).zip(&m.keys);
        let mut jobs: Vec<_> =
            items.map(|((data, mac), &k)| OmacJob { key: &keys[k].key, data, mac }).collect();
        assert!(batch.omac(&mut jobs).expect("threads").iter().all(Result::is_ok));
        for (i, got) in macs.iter().enumerate() {
            let same = *got == keys[m.keys[i]].omac(&m.data[i])[..got.len()];
            assert!(same, "{name}: OMAC mix {round}, job {i} of {} bytes", m.data[i].len());
            let (key, mut mac) = (&keys[m.keys[i]], [0; 8]);
            let alone = OmacJob { key: &key.key, data: &m.data[i], mac: &mut mac };
            assert_eq!(batch.omac(&mut [alone]).expect("threads"), [Ok(())]);
            assert!(mac[..] == key.omac(&m.data[i])[..], "{name}: OMAC of one, {} bytes", m.data[i].len());
        }
    }
}

#[test]
fn magma_in_serial_modes_is_the_specifications() {
    each(serial::<Magma>);
}

#[test]
fn gost_28147_with_mixed_s_boxes_is_the_specifications() {
    each(serial::<Gost28147>);
}

#[test]
fn counters_are_the_specifications() {
    each(|name, batch| {
        let mut numbers = Numbers(12);
        let keys = all_keys::<Magma>(&mut numbers);
        for (round, lengths) in mixes(&mut numbers).iter().enumerate() {
            let m = Messages::new(&mut numbers, lengths, round);
            let ivs: Vec<Vec<u8>> = lengths.iter().map(|_| numbers.bytes(4)).collect();
            let mut data = m.data.clone();
            let items = data.iter_mut().zip(&ivs).zip(&m.keys);
            let mut jobs: Vec<_> =
                items.map(|((data, iv), &k)| CtrJob { key: &keys[k].key, iv, data }).collect();
            assert!(batch.ctr(&mut jobs).expect("threads").iter().all(Result::is_ok));
            for (i, got) in data.iter().enumerate() {
                let same = *got == keys[m.keys[i]].ctr(&ivs[i], &m.data[i]);
                assert!(same, "{name}: mix {round}, job {i} of {} bytes", got.len());
            }
        }
    });
}

#[test]
fn mgm_is_the_specifications_and_opens_what_it_seals() {
    each(|name, batch| {
        let mut numbers = Numbers(13);
        let keys = all_keys::<Magma>(&mut numbers);
        for (round, lengths) in mixes(&mut numbers).iter().enumerate() {
            let m = Messages::new(&mut numbers, lengths, round);
            let tag = 4 + round % 5;
            let nonces: Vec<[u8; 8]> = lengths.iter().map(|_| (numbers.next() >> 1).to_be_bytes()).collect();
            let aads: Vec<Vec<u8>> = lengths
                .iter()
                .map(|&n| {
                    let most = [1, 8, 30, 400][round % 4];
                    let len = numbers.below(most).max(usize::from(n == 0));
                    numbers.bytes(len)
                })
                .collect();
            let mut data = m.data.clone();
            let mut tags = vec![vec![0xa5; tag]; lengths.len()];
            let mut jobs: Vec<_> = (data.iter_mut().zip(&mut tags).enumerate())
                .map(|(i, (data, tag))| SealJob {
                    key: &keys[m.keys[i]].key,
                    nonce: &nonces[i],
                    aad: &aads[i],
                    data,
                    tag,
                })
                .collect();
            assert!(batch.mgm_seal(tag, &mut jobs).expect("threads").iter().all(Result::is_ok));
            for i in 0..lengths.len() {
                let (c, t) = keys[m.keys[i]].mgm(&nonces[i], &aads[i], &m.data[i]);
                let what = format!("mix {round}, job {i}: {} + {} bytes", aads[i].len(), c.len());
                assert!(data[i] == c, "{name}: {what}");
                assert!(tags[i] == t[..tag], "{name}: tag, {what}");
            }
            // Every fifth message is damaged: in its tag, nonce, associated data or text, by one bit.
            let mut aads = aads;
            let mut nonces = nonces;
            let damaged = |i: usize| i % 5 == 2;
            for i in (0..lengths.len()).filter(|&i| damaged(i)) {
                let bit = 1 << numbers.below(8);
                match (i / 5) % 4 {
                    1 if !data[i].is_empty() => {
                        let at = numbers.below(data[i].len());
                        data[i][at] ^= bit;
                    }
                    2 if !aads[i].is_empty() => {
                        let at = numbers.below(aads[i].len());
                        aads[i][at] ^= bit;
                    }
                    3 => nonces[i][7] ^= bit,
                    _ => tags[i][numbers.below(tag)] ^= bit,
                }
            }
            let mut jobs: Vec<_> = (data.iter_mut().zip(&tags).enumerate())
                .map(|(i, (data, tag))| OpenJob {
                    key: &keys[m.keys[i]].key,
                    nonce: &nonces[i],
                    aad: &aads[i],
                    data,
                    tag,
                })
                .collect();
            let outcomes = batch.mgm_open(tag, &mut jobs).expect("threads");
            for (i, outcome) in outcomes.into_iter().enumerate() {
                if damaged(i) {
                    assert_eq!(outcome, Err(Error::Refused), "{name}: mix {round}, job {i}");
                    assert!(data[i].iter().all(|&b| b == 0), "{name}: mix {round}, job {i} not wiped");
                } else {
                    assert_eq!(outcome, Ok(()), "{name}: mix {round}, job {i}");
                    assert!(data[i] == m.data[i], "{name}: mix {round}, job {i} opened");
                }
            }
        }
    });
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).expect("ASCII"), 16).expect("hex");
    digits.chunks(2).map(byte).collect()
}

const KEY: &str = "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";

fn magma(key: &str) -> Magma {
    Magma::from_slice(&hex(key), Engine::best()).expect("32 bytes")
}

/// RFC 9058, A.2.1 and A.2.2, both in one batch, repeated so that all lanes process them, and each alone.
#[test]
fn rfc_9058_a2() {
    let keys = [magma(KEY), magma("99aabbccddeeff0011223344556677fedcba987654321001 23456789abcdef88")];
    let nonces = [hex("12def06b3c130a59"), hex("0077665544332211")];
    let aads = [
        hex("0101010101010101 0202020202020202 0303030303030303 0404040404040404 0505050505050505 ea"),
        vec![],
    ];
    let plain = [
        hex("ffeeddccbbaa9988 1122334455667700 8899aabbcceeff0a 0011223344556677 99aabbcceeff0a00
             1122334455667788 aabbcceeff0a0011 2233445566778899 aabbcc"),
        hex("22334455667700ff"),
    ];
    let sealed = [
        hex("c795066c5f9ea03b 85113342459185ae 1f2e00d6bf2b785d 940470b8bb9c8e7d 9a5dd3731f7ddc70
             ec27cb0ace6fa576 70f65c646abb75d5 47aa37c3bcb5c34e 03bb9c"),
        hex("6a95e1426b259d4e"),
    ];
    let tags = [hex("a7928069aa10fd10"), hex("334ee270450bec9e")];
    each(|name, batch| {
        for which in [vec![0], vec![1], (0..256).map(|i| i % 2).collect()] {
            let mut data: Vec<Vec<u8>> = which.iter().map(|&i: &usize| plain[i].clone()).collect();
            let mut got = vec![[0; 8]; which.len()];
            let mut jobs: Vec<_> = (data.iter_mut().zip(&mut got).zip(&which))
                .map(|((data, tag), &i)| SealJob {
                    key: &keys[i],
                    nonce: &nonces[i],
                    aad: &aads[i],
                    data,
                    tag,
                })
                .collect();
            assert!(batch.mgm_seal(8, &mut jobs).expect("threads").iter().all(Result::is_ok));
            for (lane, &i) in which.iter().enumerate() {
                assert_eq!((&data[lane], &got[lane][..]), (&sealed[i], &tags[i][..]), "{name}: lane {lane}");
            }
        }
    });
}

/// The reference itself against published answers, so that an error in both is found: RFC 9058, A.2.2, and GOST R
/// 34.13-2015, A.2.4 and A.2.5 as quoted in pygost's tests, and the four bytes of A.2.6, quoted in gost-engine's.
#[test]
fn the_reference_meets_published_answers() {
    let key = |text| {
        let bytes: [u8; 32] = hex(text).try_into().expect("32 bytes");
        Key { key: Magma::new(&bytes), words: spec::magma_words(&bytes), sbox: Sbox::Z }
    };
    let (c, t) = key("99aabbccddeeff0011223344556677fedcba98765432100123456789abcdef88").mgm(
        &hex("0077665544332211"),
        &[],
        &hex("22334455667700ff"),
    );
    assert_eq!((c, t.to_vec()), (hex("6a95e1426b259d4e"), hex("334ee270450bec9e")));
    let key = key(KEY);
    let plain = hex("92def06b3c130a59 db54c704f8189d20 4a98fb2e67a8024c 8912409b17b57e41");
    let iv = hex("1234567890abcdef 234567890abcdef1 34567890abcdef12");
    let cbc = hex("96d1b05eea683919 aff76129abb937b9 5058b4a1c4bc0019 20b78b1a7cd7e667");
    assert_eq!(key.cbc(&iv, &plain), cbc);
    let cfb = hex("db37e0e266903c83 0d46644c1f9a089c 24bdd2035315d38b bcc0321421075505");
    assert_eq!(key.cfb(&iv[..16], &plain), cfb);
    assert_eq!(key.omac(&plain)[..4], hex("154e7210"));
}

#[test]
fn bad_jobs_are_named_and_leave_the_others_alone() {
    each(|name, batch| {
        let (a, b) = (magma(KEY), Gost28147::new(&[7; 32], Sbox::CryptoProA));
        let mut numbers = Numbers(14);
        let plain = numbers.bytes(48);

        let mut data = vec![plain.clone(); 4];
        let [d0, d1, d2, d3] = data.get_disjoint_mut([0, 1, 2, 3]).expect("four");
        let iv = |n: usize| &[9u8; 2000][..n];
        let mut jobs = [
            CbcJob { key: &b, iv: iv(7), data: d0 },
            CbcJob { key: &b, iv: iv(16), data: d1 },
            CbcJob { key: &b, iv: iv(8), data: &mut d2[..47] },
            CbcJob { key: &b, iv: iv(0), data: d3 },
        ];
        let want = |got| Err(Error::NonceLength { got, want: "1 to 128 blocks of 8 bytes" });
        let outcomes = batch.cbc_encrypt(&mut jobs).expect("threads");
        assert_eq!(outcomes, [want(7), Ok(()), Err(Error::Unaligned(47)), want(0)], "{name}");
        assert!(data[0] == plain && data[1] != plain && data[2] == plain && data[3] == plain, "{name}");
        let mut one = plain.clone();
        let mut jobs = [CfbJob { key: &b, iv: iv(8 * 129), data: &mut one }];
        assert_eq!(batch.cfb_encrypt(&mut jobs).expect("threads"), [want(8 * 129)], "{name}");

        let mut jobs = [CtrJob { key: &a, iv: iv(8), data: &mut one }];
        let want = [Err(Error::NonceLength { got: 8, want: "4" })];
        assert_eq!(batch.ctr(&mut jobs).expect("threads"), want, "{name}");
        let mut jobs = [EcbJob { key: &a, data: &mut one[..9] }];
        assert_eq!(ecb_encrypt(batch, &mut jobs).expect("threads"), [Err(Error::Unaligned(9))], "{name}");
        let mut jobs = [
            OmacJob { key: &a, data: &plain, mac: &mut [0; 3] },
            OmacJob { key: &a, data: &plain, mac: &mut [0; 9] },
        ];
        let want = [Err(Error::TagLength(3)), Err(Error::TagLength(9))];
        assert_eq!(batch.omac(&mut jobs).expect("threads"), want, "{name}");
        assert_eq!(batch.omac(&mut jobs[..1]).expect("threads"), want[..1], "{name}");
        assert!(one == plain, "{name}");

        let mut tags = [[0u8; 9]; 6];
        let [t0, t1, t2, t3, t4, t5] = &mut tags;
        let mut data = vec![plain.clone(); 6];
        let [d0, d1, d2, d3, d4, d5] = data.get_disjoint_mut([0, 1, 2, 3, 4, 5]).expect("six");
        fn seal<'a>(
            key: &'a Magma,
            nonce: &'a [u8],
            aad: &'a [u8],
            data: &'a mut [u8],
            tag: &'a mut [u8],
        ) -> SealJob<'a> {
            SealJob { key, nonce, aad, data, tag }
        }
        let mut jobs = [
            seal(&a, iv(7), &[], &mut d0[..], &mut t0[..8]),
            seal(&a, &[0x80; 8], &[], &mut d1[..], &mut t1[..8]),
            seal(&a, iv(8), &[], &mut d2[..], &mut t2[..8]),
            seal(&a, iv(8), &[], &mut d3[..], &mut t3[..7]),
            seal(&a, iv(8), &[], &mut d4[..], &mut t4[..9]),
            seal(&a, iv(8), &[], &mut d5[..0], &mut t5[..8]),
        ];
        let want = [
            Err(Error::NonceLength { got: 7, want: "8" }),
            Err(Error::NonceTopBit),
            Ok(()),
            Err(Error::TagLength(7)),
            Err(Error::TagLength(9)),
            Err(Error::EmptyMessage),
        ];
        assert_eq!(batch.mgm_seal(8, &mut jobs).expect("threads"), want, "{name}");
        for i in [0, 1, 3, 4, 5] {
            assert!(data[i] == plain && tags[i] == [0; 9], "{name}: job {i} was touched");
        }
        assert!(data[2] != plain && tags[2] != [0; 9], "{name}");
        // A tag length that no protocol may fix is refused for all jobs.
        for n in [3, 9] {
            let mut jobs = [seal(&a, iv(8), &[], &mut one[..], &mut tags[0][..n])];
            assert_eq!(batch.mgm_seal(n, &mut jobs).expect("threads"), [Err(Error::TagLength(n))]);
        }
        // Zeros that are never read: 2^29 bytes in total are one too many.
        let aad = vec![0; 0x2000_0000 - 48];
        let mut jobs = [seal(&a, iv(8), &aad, &mut one[..], &mut tags[0][..8])];
        let want = [Err(Error::TooLong { limit: 0x1fff_ffff })];
        assert_eq!(batch.mgm_seal(8, &mut jobs).expect("threads"), want, "{name}");
        assert!(one == plain, "{name}");
    });
}

#[test]
fn groups_keep_every_thread_busy() {
    for (lanes, threads, most) in
        [(0, 1, 16), (1, 1, 16), (128, 1, 128), (129, 1, 80), (128, 2, 64), (300, 2, 80), (10_000, 2, 128)]
    {
        assert_eq!(share(lanes, threads), most, "{lanes} lanes by {threads} threads");
    }
}

#[test]
fn short_messages_go_together_and_long_ones_alone() {
    let alone = |lengths: &[usize]| parallel::alone(128, lengths.iter().map(|&n| parallel::cost(128, n)));
    assert_eq!(alone(&[8; 128]), 0);
    assert_eq!(alone(&[200, 150, 8]), 3);
    assert_eq!(alone(&[100; 4]), 4);
    assert_eq!(alone(&[&[500, 128][..], &[16; 100]].concat()), 2);
    assert_eq!(alone(&[]), 0);
}
