//! For the emulated device: compiles the CUDA kernels as C++.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/kernels");
    #[cfg(feature = "emulated")]
    emulated();
}

/// The same flags as the emulation itself. The dialect's header is where `lanework-cuda` says.
#[cfg(feature = "emulated")]
fn emulated() {
    let shim = std::env::var("DEP_LANEWORK_EMULATED_SHIM").unwrap_or_default();
    // -O3 halves what products take, which the tests of all sets and sizes wait for; the kernels of one thread for a
    // whole operation are run seldom and compile for twice as long by it.
    for (files, level) in [(&["mayo", "planted"][..], 3), (&["thread"][..], 2)] {
        let mut build = cc::Build::new();
        build
            .cpp(true)
            .cpp_link_stdlib(None)
            .std("c++17")
            .flag("-fno-exceptions")
            .flag("-fno-rtti")
            .flag("-fwrapv")
            .flag("-fno-strict-aliasing")
            .opt_level(level)
            .debug(true)
            .warnings(false)
            .define("LANEWORK_EMULATED", None)
            .include(&shim);
        for name in files {
            build.file(format!("src/kernels/{name}_emulated.cpp"));
        }
        build.compile(&format!("lanework_mayo_emulated_{}", files[0]));
    }
}
