//! Hashes of messages of all lengths to 1,000 bytes; the known answers for `abc` come first.
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn main() {
    let short = hex(&Sha256::digest(b"abc"));
    assert_eq!(short, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    let long = hex(&Sha512::digest(b"abc"));
    assert!(long.starts_with("ddaf35a193617abacc417349ae204131") && long.ends_with("2a9ac94fa54ca49f"));
    let message: Vec<u8> = (0..1000u32).map(|n| (n * n + 3 * n) as u8).collect();
    let mut all = Sha512::new();
    for length in 0..message.len() {
        all.update(Sha256::digest(&message[..length]));
        all.update(Sha512::digest(&message[..length]));
        all.update(Sha224::digest(&message[..length]));
        all.update(Sha384::digest(&message[..length]));
    }
    println!("{}", hex(&all.finalize()));
}
