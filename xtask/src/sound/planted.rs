//! A throw-away project with one fault for each tool, which must find it before its verdict on our code counts.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;

use super::{Tool, watched};

const MANIFEST: &str = "\
[package]
name = \"planted\"
version = \"0.0.0\"
edition = \"2024\"

[workspace]
";

/// A test that passes without the tool, and the tool's message about it.
fn fault(tool: Tool) -> (&'static str, &'static str) {
    match tool {
        // The byte lies inside the allocation that its neighbour has too, so no page fault reveals it.
        Tool::Address => (
            "#[test] fn reads() { let v = std::hint::black_box(vec![1u8; 24]);
              let at = std::hint::black_box(24);
              std::hint::black_box(unsafe { v.as_ptr().add(at).read_volatile() }); }",
            "heap-buffer-overflow",
        ),
        Tool::Miri => (
            "#[test] fn reads() { let v = [0u32; 2];
              let p = v.as_ptr().cast::<u8>().wrapping_add(1).cast::<u32>();
              std::hint::black_box(unsafe { std::ptr::read(p) }); }",
            "Undefined Behavior",
        ),
        Tool::Thread => (
            "static mut N: u64 = 0;
             #[test] fn counts() { let t: Vec<_> = (0..2).map(|_| std::thread::spawn(|| {
                for _ in 0..1000 { unsafe { let n = &raw mut N; n.write_volatile(n.read_volatile() + 1); } } })).collect();
                t.into_iter().for_each(|t| t.join().unwrap()); }",
            "data race",
        ),
        Tool::Mutants => (
            "pub fn sum(a: u32, b: u32) -> u32 { a + b }
             #[test] fn adds() { assert_eq!(sum(0, 0), 0); }",
            "MISSED",
        ),
    }
}

/// Whether the tool finds what is planted for it, by its name.
pub(super) fn found(tool: Tool) -> Result<(), String> {
    let project =
        std::path::absolute(Path::new("target").join("planted").join(format!("{tool:?}").to_lowercase()))
            .map_err(|e| e.to_string())?;
    let (source, says) = fault(tool);
    let write = |name: &str, text: &str| fs::write(project.join(name), text).map_err(|e| e.to_string());
    fs::create_dir_all(project.join("src")).map_err(|e| e.to_string())?;
    write("Cargo.toml", MANIFEST)?;
    write("src/lib.rs", source)?;
    let output = watched(tool).current_dir(&project).output().map_err(|e| e.to_string())?;
    let told =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() {
        return Err("it passed".to_owned());
    }
    if told.contains(says) {
        Ok(())
    } else {
        Err(format!("its output lacks {says:?}: {}", told.lines().last().unwrap_or_default()))
    }
}
