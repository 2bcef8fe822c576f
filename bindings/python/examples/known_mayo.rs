//! Prints record 0 of MAYO-1's response files as JSON: `cargo run --example known_mayo > tests/known_mayo.json`.
//!
//! The test compares the SHA-256 of each record with the published one.
#![forbid(unsafe_code)]

use lanework_mayo::internals::known::{Library, records};
use lanework_mayo::{Engine, Params, Round, Set};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn main() {
    let record = |round| {
        let params = Params::of(round, Set::Mayo1);
        let all = records(&Library { engine: Engine::best(), params }, 1).expect("signing succeeds");
        let r = &all[0];
        format!(
            "{{\"name\": \"MAYO-1\", \"round\": {}, \"seed\": \"{}\", \"mlen\": {}, \"msg\": \"{}\", \"pk\": \"{}\", \
             \"sk\": \"{}\", \"smlen\": {}, \"sm\": \"{}\"}}",
            params.round().number(),
            hex(&r.seed),
            r.message.len(),
            hex(&r.message),
            hex(&r.public_key),
            hex(&r.secret_key),
            r.signed.len(),
            hex(&r.signed)
        )
    };
    println!("[\n{},\n{}\n]", record(Round::Two), record(Round::Three));
}
