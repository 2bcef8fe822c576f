//! Calls through the driver's library, without one, and with a fake one: `fake_driver.cpp`.
//!
//! A process has one driver, so each case runs this test's own binary again.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use lanework_cuda::{Device, Error, devices, selftest};

/// In the child: where the words below come from.
const CASE: &str = "LANEWORK_CUDA_TEST_CASE";

/// In the child: does the work and prints the result.
fn child() {
    let cards = match devices() {
        Ok(cards) => cards,
        Err(why) => {
            assert_eq!(Device::open(0).unwrap_err(), Error::Unavailable(why.clone()));
            println!("## {why}");
            return;
        }
    };
    println!("## {} of {}", cards.len(), cards[0]);
    println!("## {}", Device::open(7).unwrap_err());
    let device = match Device::open(0) {
        Ok(device) => device,
        Err(why) => return println!("## {why}"),
    };
    assert_eq!(device.card(), &cards[0]);
    match selftest(&device) {
        Ok(rows) => rows.iter().for_each(|row| println!("## {}: {:?}", row.what, row.result)),
        Err(why) => {
            println!("## {why}");
            println!("## memory {} fatal {} dead {}", why.is_memory(), why.is_fatal(), device.is_dead());
        }
    }
    match device.stream().and_then(|stream| {
        let start = stream.mark()?;
        stream.mark()?.since(&start)
    }) {
        Ok(time) => assert_eq!(time, Duration::from_micros(1500)),
        Err(why) => println!("## {why}"),
    }
    if std::env::var("FAKE_CUDA").is_ok_and(|words| words == "late=1") {
        condemned_amid_a_copy(&device);
    }
}

/// Condemns the device while a copy to pinned memory is under way, and frees that memory.
fn condemned_amid_a_copy(device: &Device) {
    let stream = device.stream().unwrap();
    // The fake driver fills new memory with other bytes than zero.
    let (buffer, mut pinned) =
        (device.buffer::<u8>(AMID_A_COPY).unwrap(), device.pinned::<u8>(AMID_A_COPY).unwrap());
    stream.download(&buffer, 0..AMID_A_COPY, &mut pinned, 0).unwrap();
    device.condemn("a known answer came out wrong");
    assert!(matches!(device.finish(), Err(Error::Dead { .. })));
    drop(pinned);
}

/// Bytes of memory that nothing else has as many of.
const AMID_A_COPY: usize = 4321;

/// What the child printed, and the driver's own notes, with this library folder and these words for it.
fn run(folder: &Path, words: &str) -> (String, String) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "drivers", "--nocapture", "--test-threads=1"])
        .env("LD_LIBRARY_PATH", folder)
        .env("FAKE_CUDA", words)
        .env(CASE, "1")
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let notes = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words}: {out}{notes}");
    assert!(!notes.contains("panicked"), "{words}: {notes}");
    (
        out.lines().filter_map(|line| line.split_once("## ")).map(|(_, said)| format!("{said}\n")).collect(),
        notes,
    )
}

/// If set to 1, a missing C++ compiler is a failure.
const REQUIRE: &str = "LANEWORK_REQUIRE_CXX";

/// Builds the driver into this folder. False, with a message, without a compiler.
fn build(to: &Path, more: &[&str]) -> bool {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::create_dir_all(to).unwrap();
    let status = Command::new(std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned()))
        .args([
            "-std=c++17",
            "-O1",
            "-shared",
            "-fPIC",
            "-fno-exceptions",
            "-fno-rtti",
            "-DLANEWORK_EMULATED",
        ])
        .args(["-ftls-model=global-dynamic", "-Wl,-Bsymbolic"])
        .args(more)
        .arg("-I")
        .arg(here.join("shim"))
        .arg("-o")
        .arg(to.join("libcuda.so"))
        .arg(here.join("shim/emulated.cpp"))
        .args(["-x", "c++"])
        .arg(here.join("src/backend/selftest.cu"))
        .arg(here.join("tests/fake_driver.cpp"))
        .status();
    match status {
        Ok(status) => assert!(status.success(), "the fake driver does not compile"),
        Err(why) => {
            assert!(std::env::var_os(REQUIRE).is_none_or(|v| v != "1"), "{REQUIRE}=1 and no compiler: {why}");
            let line = format!("SKIPPED: the fake driver, since there is no C++ compiler: {why}\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }
    to.join("libcuda.so").exists()
}

#[test]
fn drivers() {
    if std::env::var_os(CASE).is_some() {
        return child();
    }
    let dir = tempfile::tempdir().unwrap();
    let (whole, old, broken) = (dir.path().join("whole"), dir.path().join("old"), dir.path().join("broken"));
    if !build(&whole, &[]) {
        return;
    }
    build(&old, &["-DLACKS_EVENT_RECORD"]);
    std::fs::create_dir_all(&broken).unwrap();
    std::fs::write(broken.join("libcuda.so"), "no library").unwrap();

    // Faults that make a driver unusable.
    if !std::path::Path::new("/dev/nvidiactl").exists() {
        for folder in [dir.path(), &broken] {
            assert!(run(folder, "").0.contains("CUDA is not available here: there is no driver"));
        }
    }
    assert!(run(&old, "").0.contains("its library lacks cuEventRecord"));
    for (words, why) in [
        ("init=100", "the driver finds no device: cuInit failed with 100 (FAKE_NAME)"),
        ("init=803", "the driver does not start: cuInit failed with 803"),
        ("init=999", "999 (a code unknown to the driver)"),
        ("init=123456", "does not start: cuInit failed with 123456"),
        ("count=0", "the driver finds no device"),
        ("version=12040", "the driver is for CUDA 12.4, and programs need one for 13.0 or newer"),
        ("capability=7", "fake card is sm_70, and programs need sm_80 or newer"),
        ("load=222", "the program 'lanework_selftest' is not available here: on fake card"),
        ("load=209", "cuModuleLoadData failed with 209"),
    ] {
        let said = run(&whole, words).0;
        assert!(said.contains(why), "{words}: {said}");
    }

    // One that works: every row of the self-test, and all secrets are clear when they are freed.
    let (said, notes) = run(&whole, "");
    assert!(
        said.contains("1 of fake card, sm_90, 4 multiprocessors, 1.0 GiB, driver for CUDA 13.0"),
        "{said}"
    );
    assert!(said.contains("CUDA device 7 is not available here: the driver finds 1"), "{said}");
    assert_eq!(said.matches(": Ok(())").count(), 4, "{said}");
    assert!(notes.contains("released"), "{notes}");
    let freed: Vec<_> = notes.lines().filter(|line| line.starts_with("freed")).collect();
    assert!(
        freed.iter().any(|line| line.starts_with("freed device memory of 40028 bytes, 0 not")),
        "{freed:?}"
    );
    // The other buffer of that size is public, and shows that the note can say otherwise.
    assert!(freed.iter().any(|line| line.starts_with("freed device memory of 40028 bytes, 3")), "{freed:?}");
    let pinned: Vec<_> = freed.iter().filter(|line| line.contains("pinned")).collect();
    assert!(pinned.len() > 5 && pinned.iter().all(|line| line.ends_with(" 0 not zero")), "{pinned:?}");

    // Pinned memory is cleared when the copies to it are done, also by a device that is condemned meanwhile.
    let (said, notes) = run(&whole, "late=1");
    assert_eq!(said.matches(": Ok(())").count(), 4, "{said}");
    let freed = format!("freed pinned memory of {AMID_A_COPY} bytes, 0 not zero");
    assert!(notes.contains(&freed), "{notes}");

    // One that computes nothing is found out by the self-test.
    let said = run(&whole, "wrong=1").0;
    assert_eq!(said.matches(": Err(\"word").count(), 3, "{said}");

    // Lack of memory leaves the device alive; a sticky fault does not.
    let said = run(&whole, "memory=50000").0;
    assert!(said.contains("out of device memory: 40028 bytes"), "{said}");
    assert!(said.contains("memory true fatal false dead false"), "{said}");
    for code in [700, 719, 999] {
        let said = run(&whole, &format!("launch={code}")).0;
        assert!(
            said.contains("the device is lost: cu") && said.contains(&format!("failed with {code}")),
            "{said}"
        );
        assert!(said.contains("memory false fatal true dead true"), "{said}");
        assert!(said.contains("the device was lost earlier"), "{said}");
    }
}
