//! The checks pass in every build of the library: `--no-default-features` leaves it without threads, detection of the CPU
//! and the operating system's randomness.

use lanework_mayo::internals::check::{self, Depth};
use lanework_mayo::{Engine, Params};

#[test]
fn the_checks_pass() {
    let engine = Engine::best();
    println!("ran: {}", engine.name());
    for params in Params::all() {
        let mut rows = 0;
        check::run(engine, params, Depth::Quick, &mut |row| {
            assert!(row.ok(), "{row:#?}");
            rows += 1;
        });
        assert!(rows > 0, "{}", params.name());
    }
}
