//! The arguments of `lanework magma`.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use lanework_magma::Sbox;
use lanework_magma::sbox::UnknownSbox;
use lanework_study::text::echoed;

// `magma`.
#[derive(Debug, Args)]
pub(crate) struct MagmaArgs {
    #[command(subcommand)]
    pub(crate) job: MagmaJob,
}

// The jobs of `magma`.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum MagmaJob {
    /// Encrypt a file or a pipe of any size into an authenticated container, or with --mode into the bare bytes of a mode.
    Encrypt(EncryptArgs),
    /// Decrypt the output of encrypt. A pipe gets only verified chunks. Exits 1 if a chunk is missing, moved or damaged, or if
    /// the header is cut short.
    Decrypt(DecryptArgs),
    /// Seal one message of less than 512 MiB with MGM (RFC 9058) into the ciphertext, then the tag. From 256 MiB on it needs
    /// --key-limit. A longer file is refused before anything is written; a longer pipe leaves the output written by then.
    Seal(SealArgs),
    /// Open one sealed message. Nothing is written before its tag is verified. Exits 1 if the tag is wrong or the message is
    /// cut short.
    Open(OpenArgs),
    /// Print the MAC of files, or verify one.
    Mac(MacArgs),
    /// Wrap a key for transport with KExp15.
    Wrap(WrapArgs),
    /// Unwrap a key with KImp15; exits 1 if it is not authentic or has the wrong length.
    Unwrap(WrapArgs),
}

/// Bytes given in hexadecimal digits.
#[derive(Clone, Debug)]
pub(crate) struct Hex(pub(crate) Vec<u8>);

impl std::str::FromStr for Hex {
    type Err = String;

    fn from_str(text: &str) -> Result<Hex, String> {
        hex(text.as_bytes()).map(Hex)
    }
}

/// The bytes of hexadecimal digits.
pub(crate) fn hex(digits: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; digits.len() / 2];
    hex_into(digits, &mut bytes).map(|()| bytes)
}

/// Like [`hex`], into a buffer of exactly that many bytes.
pub(crate) fn hex_into(digits: &[u8], bytes: &mut [u8]) -> Result<(), String> {
    if digits.len() != 2 * bytes.len() {
        return Err(format!("{} digits, expected two per byte", digits.len()));
    }
    // The digits may be a key: the error names the position of a bad character, never the character.
    if digits.iter().fold(0, |all, &byte| all | digit(byte)) > 15 {
        let at = digits.iter().take_while(|&&byte| digit(byte) <= 15).count();
        return Err(format!("character {} is not a hexadecimal digit", at + 1));
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0]) << 4 | digit(pair[1]);
    }
    Ok(())
}

/// The value of a hexadecimal digit, or 255 for any other character. Only arithmetic, since the digits may be a key.
pub(crate) fn digit(character: u8) -> u8 {
    let below = |x: u8, limit: u8| (u16::from(x).wrapping_sub(limit.into()) >> 8) as u8;
    let (number, letter) = (character.wrapping_sub(b'0'), (character | 0x20).wrapping_sub(b'a'));
    let (is_number, is_letter) = (below(number, 10), below(letter, 6));
    number & is_number | letter.wrapping_add(10) & is_letter | !(is_number | is_letter)
}

// Where the secret comes from.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct SecretArgs {
    /// The key: a file of 32 raw bytes or of 64 hexadecimal digits; `-` for standard input. Warns if others may read it.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Ask for a passphrase at the terminal.
    #[arg(long)]
    pub(crate) passphrase: bool,
    /// Read the passphrase from a file of one line; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) passphrase_file: Option<PathBuf>,
}

// The input, and where the result goes.
#[derive(Debug, Args)]
pub(crate) struct StreamArgs {
    /// Where to write the result; a file appears only once it is complete. Default, and `-`: standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing file.
    #[arg(long)]
    pub(crate) force: bool,
    /// Wait until the result is on the disk before it appears.
    #[arg(long)]
    pub(crate) sync: bool,
    /// Threads; 0 means one per core. Default: what `lanework tune` found fastest, otherwise one per core.
    #[arg(long, value_name = "N", value_parser = crate::args::threads())]
    pub(crate) threads: Option<usize>,
    /// The input; `-` for standard input.
    #[arg(default_value = "-", value_name = "FILE")]
    pub(crate) input: PathBuf,
}

// A mode's bare bytes instead of a container.
#[derive(Debug, Args)]
pub(crate) struct RawArgs {
    /// Write or read the bare bytes of this mode, without header or authentication. A file beyond the limit of the mode or
    /// of --key-limit is refused before anything is written. A pipe is refused at the limit, and output written by then
    /// stays.
    #[arg(long, value_enum, requires = "key_file")]
    pub(crate) mode: Option<Mode>,
    /// The initialisation vector: 4 bytes for CTR and CTR-ACPKM, 8 for CNT, any multiple of 8 for CBC, CFB and OFB. Never
    /// reuse one under the same key.
    #[arg(long, value_name = "HEX", requires = "mode")]
    pub(crate) iv: Option<Hex>,
    /// Allow ECB, which reveals equal blocks.
    #[arg(long, requires = "mode")]
    pub(crate) hazmat: bool,
    /// For ECB and CBC: how the last block is filled (GOST R 34.13-2015, 4.1). With none, it must be full.
    #[arg(long, value_enum, default_value_t = PaddingName::None, requires = "mode")]
    pub(crate) padding: PaddingName,
    /// For CTR-ACPKM: bytes after which the key changes, a multiple of 8 up to 2^28. Default: 1024.
    #[arg(long, value_name = "BYTES", requires = "mode")]
    pub(crate) section: Option<usize>,
    /// The cipher.
    #[arg(long, value_enum, default_value_t = CipherName::Magma, requires = "mode")]
    pub(crate) cipher: CipherName,
    #[command(flatten)]
    pub(crate) legacy: LegacyArgs,
    #[command(flatten)]
    pub(crate) limit: LimitArgs,
}

// What GOST 28147-89 leaves open.
#[derive(Debug, Args)]
pub(crate) struct LegacyArgs {
    /// For GOST 28147-89: the S-box set (z, cryptopro-a to -d, test, or an object identifier).
    #[arg(long, value_name = "NAME", value_parser = sbox)]
    pub(crate) sbox: Option<Sbox>,
    /// For GOST 28147-89: change the key after every 1024 bytes, as CryptoPro does (RFC 4357, 2.3.2).
    #[arg(long)]
    pub(crate) meshing: bool,
}

/// An S-box set by name.
fn sbox(text: &str) -> Result<Sbox, UnknownSbox> {
    text.parse().map_err(|UnknownSbox(text)| UnknownSbox(echoed(&text)))
}

// How much a key may process.
#[derive(Debug, Args)]
pub(crate) struct LimitArgs {
    /// The maximum number of bytes that the key may process, in begun blocks of 8, or `none`. Default: 2^28 (RFC 9227, 5).
    #[arg(long, value_name = "BYTES", value_parser = key_limit)]
    pub(crate) key_limit: Option<u64>,
}

/// [`u64::MAX`] stands for no limit.
fn key_limit(text: &str) -> Result<u64, String> {
    match text {
        "none" => Ok(u64::MAX),
        _ => text.parse().map_err(|_| "expected a number of bytes, or none".to_owned()),
    }
}

/// A mode by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Counter (GOST R 34.13-2015).
    Ctr,
    /// Counter with re-keying (RFC 8645).
    CtrAcpkm,
    /// Cipher block chaining.
    Cbc,
    /// Cipher feedback.
    Cfb,
    /// Output feedback.
    Ofb,
    /// Electronic codebook; only with --hazmat.
    Ecb,
    /// The counter mode of GOST 28147-89.
    Cnt,
}

/// A padding procedure by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PaddingName {
    /// None: the data must be whole blocks.
    None,
    /// Procedure 1: zeros; cannot be removed.
    #[value(name = "1")]
    One,
    /// Procedure 2: a one bit, then zeros.
    #[value(name = "2")]
    Two,
}

/// A cipher by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CipherName {
    /// GOST R 34.12-2015, 64-bit block.
    Magma,
    /// GOST 28147-89; needs --sbox.
    Gost28147,
}

// `magma encrypt`.
#[derive(Debug, Args)]
pub(crate) struct EncryptArgs {
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    /// Chunk size of the container in bytes: a power of two from 4096 to 65536.
    #[arg(long, value_name = "BYTES", conflicts_with = "mode")]
    pub(crate) chunk_size: Option<usize>,
    /// PBKDF2 iterations for a passphrase, from 1000 to 10000000.
    #[arg(long, value_name = "N", conflicts_with_all = ["mode", "key_file"])]
    pub(crate) iterations: Option<u32>,
    #[command(flatten)]
    pub(crate) raw: RawArgs,
    #[command(flatten)]
    pub(crate) stream: StreamArgs,
}

// `magma decrypt`.
#[derive(Debug, Args)]
pub(crate) struct DecryptArgs {
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    #[command(flatten)]
    pub(crate) raw: RawArgs,
    #[command(flatten)]
    pub(crate) stream: StreamArgs,
}

// What one MGM message needs besides its data.
#[derive(Debug, Args)]
pub(crate) struct MessageArgs {
    /// The key: a file of 32 raw bytes or of 64 hexadecimal digits; `-` for standard input. Warns if others may read it.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: PathBuf,
    /// The nonce, 8 bytes whose top bit is 0. Never reuse one under the same key.
    #[arg(long, value_name = "HEX")]
    pub(crate) nonce: Hex,
    /// Associated data, which is authenticated but not part of the output.
    #[arg(long, value_name = "HEX", conflicts_with = "aad_file")]
    pub(crate) aad: Option<Hex>,
    /// Associated data from a file.
    #[arg(long, value_name = "FILE")]
    pub(crate) aad_file: Option<PathBuf>,
    /// Tag length in bytes, from 4 to 8.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) tag_length: usize,
    #[command(flatten)]
    pub(crate) limit: LimitArgs,
    #[command(flatten)]
    pub(crate) stream: StreamArgs,
}

// `magma seal`.
#[derive(Debug, Args)]
pub(crate) struct SealArgs {
    #[command(flatten)]
    pub(crate) message: MessageArgs,
}

// `magma open`.
#[derive(Debug, Args)]
pub(crate) struct OpenArgs {
    #[command(flatten)]
    pub(crate) message: MessageArgs,
}

/// A MAC by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MacName {
    /// The MAC of GOST R 34.13-2015, also known as CMAC.
    Omac,
    /// OMAC with re-keying (R 1323565.1.017-2018).
    OmacAcpkm,
    /// The MAC of GOST 28147-89; needs --sbox.
    Imit,
}

// `magma mac`.
#[derive(Debug, Args)]
pub(crate) struct MacArgs {
    /// The key: a file of 32 raw bytes or of 64 hexadecimal digits; `-` for standard input. Warns if others may read it.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: PathBuf,
    /// The MAC algorithm.
    #[arg(long, value_enum, default_value_t = MacName::Omac)]
    pub(crate) algorithm: MacName,
    /// Tag length in bytes: 4 to 8, always 4 for IMIT. Default: the longest.
    #[arg(long, value_name = "N")]
    pub(crate) tag_length: Option<usize>,
    /// For OMAC-ACPKM: section length in bytes, a multiple of 8 up to 2^28.
    #[arg(long, value_name = "BYTES")]
    pub(crate) section: Option<usize>,
    /// For OMAC-ACPKM: bytes of key material under one master key, a multiple of 40 below 2^28.
    #[arg(long, value_name = "BYTES")]
    pub(crate) frequency: Option<usize>,
    #[command(flatten)]
    pub(crate) legacy: LegacyArgs,
    #[command(flatten)]
    pub(crate) limit: LimitArgs,
    /// Compare the MAC of a single file with this one; exits 1 if they differ.
    #[arg(long, value_name = "HEX")]
    pub(crate) verify: Option<Hex>,
    /// Threads for several files; 0 means one per core.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = crate::args::threads())]
    pub(crate) threads: usize,
    /// The files; `-` for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

// `magma wrap` and `magma unwrap`.
#[derive(Debug, Args)]
pub(crate) struct WrapArgs {
    /// The key that authenticates: a file of 32 raw bytes or of 64 hexadecimal digits.
    #[arg(long, value_name = "FILE")]
    pub(crate) mac_key_file: PathBuf,
    /// The key that encrypts; it must differ from the other.
    #[arg(long, value_name = "FILE")]
    pub(crate) enc_key_file: PathBuf,
    /// The initialisation vector, 4 bytes. Never reuse one under the same pair of keys.
    #[arg(long, value_name = "HEX")]
    pub(crate) iv: Hex,
    /// Where to write the result. Default, and `-`: standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing file.
    #[arg(long)]
    pub(crate) force: bool,
    /// wrap: the key to wrap, a file of 32 raw bytes or of 64 hexadecimal digits. unwrap: the output of wrap.
    #[arg(default_value = "-", value_name = "FILE")]
    pub(crate) input: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_told_from_all_other_characters() {
        for character in 0..=u8::MAX {
            let want = char::from(character).to_digit(16).map_or(255, |value| value as u8);
            assert_eq!(digit(character), want, "{character:#x}");
        }
        assert_eq!(hex(b"0f A9").unwrap_err(), "5 digits, expected two per byte");
        assert_eq!(hex(b"0f-A9b").unwrap_err(), "character 3 is not a hexadecimal digit");
        assert_eq!(hex(b"0fA9bC"), Ok(vec![0x0f, 0xa9, 0xbc]));
    }
}
