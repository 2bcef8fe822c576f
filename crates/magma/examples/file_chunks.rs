//! A file in chunks, each verified before any of its bytes is used.
//!
//! `cargo run -p lanework-magma --example file_chunks -- seal|open KEY IN OUT`, where KEY is a file of 32 random bytes.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use lanework_magma::Engine;
use lanework_magma::container::{Options, Secret, decrypt, encrypt};
use zeroize::Zeroizing;

type Failure = Box<dyn std::error::Error>;

fn run(verb: &str, key: &Path, from: &Path, to: &Path) -> Result<(), Failure> {
    let bytes = Zeroizing::new(fs::read(key).map_err(|e| format!("{}: {e}", key.display()))?);
    let key: [u8; 32] = bytes.as_slice().try_into().map_err(|_| "the key is not 32 bytes long")?;
    let secret = Secret::Key(Zeroizing::new(key));

    // Output before a fault is authentic but incomplete, so the file gets its name only at the end.
    let partial = to.with_extension("partial");
    let reader = BufReader::new(File::open(from).map_err(|e| format!("{}: {e}", from.display()))?);
    let writer = File::create(&partial).map_err(|e| format!("{}: {e}", partial.display()))?;
    let done: Result<(), Failure> = match verb {
        "seal" => {
            let mut salt = [0; 32];
            getrandom::fill(&mut salt)?;
            encrypt(&secret, Options::default(), salt, Engine::best(), reader, writer).map_err(Failure::from)
        }
        "open" => decrypt(&secret, Engine::best(), reader, writer).map_err(Failure::from),
        other => Err(format!("neither seal nor open: '{other}'").into()),
    };
    match done {
        Ok(()) => Ok(fs::rename(&partial, to)?),
        Err(why) => {
            fs::remove_file(&partial)?;
            Err(format!("{}: {why}", from.display()).into())
        }
    }
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [verb, key, from, to] = &words[..] else {
        return Err("usage: file_chunks seal|open KEY IN OUT".into());
    };
    run(verb, key.as_ref(), from.as_ref(), to.as_ref())
}
