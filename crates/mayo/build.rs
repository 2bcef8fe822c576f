//! For the emulated device: compiles the CUDA kernels as C++.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/backend/cuda");
    #[cfg(feature = "emulated")]
    emulated();
}

/// The same flags as the emulation itself. The dialect's header is where `lanework-cuda` says.
#[cfg(feature = "emulated")]
fn emulated() {
    let shim = std::env::var("DEP_LANEWORK_EMULATED_SHIM").unwrap_or_default();
    cc::Build::new()
        .cpp(true)
        .cpp_link_stdlib(None)
        .std("c++17")
        .flag("-fno-exceptions")
        .flag("-fno-rtti")
        .flag("-fwrapv")
        .flag("-fno-strict-aliasing")
        .opt_level(2)
        .debug(true)
        .warnings(false)
        .define("LANEWORK_EMULATED", None)
        .include(shim)
        .file("src/backend/cuda/mayo_emulated.cpp")
        .file("src/backend/cuda/thread_emulated.cpp")
        .file("src/backend/cuda/planted_emulated.cpp")
        .compile("lanework_mayo_emulated");
}
