//! AES-128 and SHAKE256 straight from FIPS 197 and FIPS 202: slow, readable, table-free, the oracle that every
//! backend's `expand` functions are checked against.
//!
//! Nothing here is fast or constant time. Only checks call it, never on a caller's secrets.
#![forbid(unsafe_code)]

/// Multiplies by `x` in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1 (FIPS 197, section 4.2.1).
fn xtime(a: u8) -> u8 {
    (a << 1) ^ (if a & 0x80 != 0 { 0x1b } else { 0 })
}

/// Multiplies two field elements, shift and add (FIPS 197, section 4.2).
fn gf_mul(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 != 0 {
            product ^= a;
        }
        a = xtime(a);
        b >>= 1;
    }
    product
}

/// SubBytes on one byte: the inverse, as the power 2 + 4 + ... + 128 = 254, then the affine map (FIPS 197, section
/// 5.1.1).
#[must_use]
pub fn sub_byte(a: u8) -> u8 {
    let (mut square, mut inverse) = (a, 1);
    for _ in 1..8 {
        square = gf_mul(square, square);
        inverse = gf_mul(inverse, square);
    }
    (0..5).fold(0x63, |sum, turn| sum ^ inverse.rotate_left(turn))
}

/// The eleven round keys of AES-128 (FIPS 197, section 5.2).
fn expand_key(key: &[u8; 16]) -> [[u8; 16]; 11] {
    let mut words = [[0u8; 4]; 44];
    for (word, bytes) in words.iter_mut().zip(key.chunks_exact(4)) {
        word.copy_from_slice(bytes);
    }
    let mut constant = 1;
    for i in 4..44 {
        let mut word = words[i - 1];
        if i % 4 == 0 {
            word.rotate_left(1);
            word = word.map(sub_byte);
            word[0] ^= constant;
            constant = xtime(constant);
        }
        for (byte, earlier) in word.iter_mut().zip(words[i - 4]) {
            *byte ^= earlier;
        }
        words[i] = word;
    }
    core::array::from_fn(|round| core::array::from_fn(|byte| words[4 * round + byte / 4][byte % 4]))
}

fn add_round_key(state: &mut [u8; 16], round_key: &[u8; 16]) {
    for (byte, key) in state.iter_mut().zip(round_key) {
        *byte ^= key;
    }
}

/// Encrypts one block with AES-128 (FIPS 197, section 5.1). The state's row `r`, column `c` is byte `r + 4 c`.
pub fn aes128_encrypt_block(key: &[u8; 16], block: &[u8; 16]) -> [u8; 16] {
    let round_keys = expand_key(key);
    let mut state = *block;
    add_round_key(&mut state, &round_keys[0]);
    for round in 1..=10 {
        let substituted = state.map(sub_byte);
        // ShiftRows: row r turns left by r columns.
        state = core::array::from_fn(|i| substituted[(i + 4 * (i % 4)) % 16]);
        if round < 10 {
            for column in state.chunks_exact_mut(4) {
                let a = [column[0], column[1], column[2], column[3]];
                for (r, byte) in column.iter_mut().enumerate() {
                    *byte = gf_mul(2, a[r]) ^ gf_mul(3, a[(r + 1) % 4]) ^ a[(r + 2) % 4] ^ a[(r + 3) % 4];
                }
            }
        }
        add_round_key(&mut state, &round_keys[round]);
    }
    state
}

/// AES-128 in counter mode over a zero message: block `i` of the output is `AES(key, nonce xor BE128(first_block +
/// i))`.
pub fn aes128_ctr(key: &[u8; 16], nonce: &[u8; 16], first_block: u32, out: &mut [u8]) {
    for (i, chunk) in (u128::from(first_block)..).zip(out.chunks_mut(16)) {
        let block = (u128::from_be_bytes(*nonce) ^ i).to_be_bytes();
        chunk.copy_from_slice(&aes128_encrypt_block(key, &block)[..chunk.len()]);
    }
}

/// The sponge state: `state[x][y]` is the lane at column `x`, row `y` of FIPS 202.
type Lanes = [[u64; 5]; 5];

/// The round constant of round `round`, from the shift register of FIPS 202, section 3.2.5.
fn round_constant(round: usize) -> u64 {
    let rc = |t: usize| {
        let mut register: u16 = 1;
        for _ in 0..t % 255 {
            register <<= 1;
            if register & 0x100 != 0 {
                register ^= 0x171;
            }
        }
        u64::from(register & 1)
    };
    (0..7).fold(0, |constant, j| constant | rc(j + 7 * round) << ((1 << j) - 1))
}

/// Keccak-f\[1600\]: 24 rounds of theta, rho, pi, chi, iota (FIPS 202, section 3.2).
fn keccak_f1600(a: &mut Lanes) {
    for round in 0..24 {
        // theta
        let parity = a.map(|column| column.iter().fold(0, |sum, lane| sum ^ lane));
        for x in 0..5 {
            let d = parity[(x + 4) % 5] ^ parity[(x + 1) % 5].rotate_left(1);
            a[x].iter_mut().for_each(|lane| *lane ^= d);
        }
        // rho: the lane reached after t steps of (x, y) -> (y, 2x + 3y) turns by (t + 1)(t + 2)/2.
        let (mut x, mut y) = (1, 0);
        for t in 0..24u32 {
            a[x][y] = a[x][y].rotate_left((t + 1) * (t + 2) / 2 % 64);
            (x, y) = (y, (2 * x + 3 * y) % 5);
        }
        // pi
        let b: Lanes = core::array::from_fn(|x| core::array::from_fn(|y| a[(x + 3 * y) % 5][x]));
        // chi
        for x in 0..5 {
            for y in 0..5 {
                a[x][y] = b[x][y] ^ (!b[(x + 1) % 5][y] & b[(x + 2) % 5][y]);
            }
        }
        // iota
        a[0][0] ^= round_constant(round);
    }
}

/// SHAKE256 of `message`, as many bytes as `out` holds (FIPS 202, section 6.2).
pub fn shake256(message: &[u8], out: &mut [u8]) {
    const RATE: usize = 136;
    let mut padded = message.to_vec();
    padded.push(0x1f);
    padded.resize(padded.len().next_multiple_of(RATE), 0);
    if let Some(last) = padded.last_mut() {
        *last ^= 0x80;
    }
    let mut a: Lanes = [[0; 5]; 5];
    for block in padded.chunks_exact(RATE) {
        for (i, byte) in block.iter().enumerate() {
            a[(i / 8) % 5][i / 40] ^= u64::from(*byte) << (8 * (i % 8));
        }
        keccak_f1600(&mut a);
    }
    for (n, chunk) in out.chunks_mut(RATE).enumerate() {
        if n > 0 {
            keccak_f1600(&mut a);
        }
        for (i, byte) in chunk.iter_mut().enumerate() {
            *byte = a[(i / 8) % 5][i / 40].to_le_bytes()[i % 8];
        }
    }
}
