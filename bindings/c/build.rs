//! The shared library's SONAME: it changes with every break of the ABI, the file's version with every release.
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,liblanework.so.0");
    }
}
