//! Round trips through miniz_oxide on two kinds of inputs, all levels; prints a hash of all compressed bytes.
fn main() {
    let mut state = 1u64;
    let mut next = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as usize
    };
    let mut digest = 0xcbf2_9ce4_8422_2325u64;
    let mut absorb = |bytes: &[u8]| bytes.iter().for_each(|b| digest = (digest ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3));
    for level in 0..=10 {
        for kind in 0..3 {
            let mut input: Vec<u8> = Vec::new();
            for n in 0..30_000 + next() % 100_000 {
                let old = if n > 5000 && kind == 1 && next() % 64 != 0 { input[n - 4999] } else { next() as u8 };
                input.push(if kind == 2 { b"the stack and its homes "[next() % 24] } else { old });
            }
            let mut packed = miniz_oxide::deflate::compress_to_vec_zlib(&input, level);
            let back = miniz_oxide::inflate::decompress_to_vec_zlib(&packed).expect("it comes back");
            assert!(back == input, "level {level}, kind {kind}");
            absorb(&packed);
            let n = packed.len();
            packed[next() % n] ^= 1 << (next() % 8);
            absorb(format!("{:?}", miniz_oxide::inflate::decompress_to_vec_zlib(&packed).map_err(|e| e.status)).as_bytes());
        }
    }
    println!("{digest:016x}");
}
