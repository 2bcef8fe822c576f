//! Tells dependents where the dialect's headers are and, for the emulated device, compiles its scheduler and the
//! self-test's kernels.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=shim");
    println!("cargo:rerun-if-changed=src/backend/selftest.cu");
    // Build scripts of dependents read it as DEP_LANEWORK_EMULATED_SHIM.
    let here = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo:shim={here}/shim");
    #[cfg(feature = "emulated")]
    emulated();
}

/// C++ without its library: the dialect uses none of it.
#[cfg(feature = "emulated")]
fn emulated() {
    cc::Build::new()
        .cpp(true)
        .cpp_link_stdlib(None)
        .std("c++17")
        .flag("-fno-exceptions")
        .flag("-fno-rtti")
        .flag("-fwrapv")
        .flag("-fno-strict-aliasing")
        .opt_level(2)
        .define("LANEWORK_EMULATED", None)
        .include("shim")
        .file("shim/emulated.cpp")
        .file("shim/selftest_emulated.cpp")
        .compile("lanework_emulated");
}
