//! Devices from the command line: asked for, required, missing, and emulated; and the study that races them.

#[path = "command/common/mod.rs"]
mod common;

#[cfg(feature = "study")]
use std::fs;

use common::{Place, code, json, stderr};

#[cfg(feature = "study")]
const STUDY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../studies/mayo-gpu/");

#[cfg(feature = "study")]
fn stdout(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_device_that_is_not_there_is_an_error_that_says_why() {
    let place = Place::new();
    for args in [
        &["--device", "4000000", "check", "mayo/round3/mayo2", "--quick"][..],
        &["--device", "4000000", "bench", "mayo/round3/mayo2/sign"],
        &[
            "--device",
            "4000000",
            "mayo",
            "keygen",
            "--set",
            "mayo2",
            "--secret-key",
            "s",
            "--public-key",
            "p",
        ],
    ] {
        let output = place.run(args);
        assert_eq!(code(&output), 3, "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("cuda is not available"), "{}", stderr(&output));
    }
    assert!(place.names().is_empty(), "no key was left behind");
    let output = place.run(&["--device", "gpu0", "check", "mayo"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("none, ptx, cuda or all, or numbers"), "{}", stderr(&output));
}

#[test]
fn a_required_device_may_not_be_skipped() {
    let place = Place::new();
    let check = ["--json", "--device", "none", "check", "mayo/round3/mayo2", "--quick"];
    let free = place.run(&check);
    assert_eq!(code(&free), 0, "{}", stderr(&free));
    let output = place.command(&check).env("LANEWORK_REQUIRE", "cuda").output().expect("it runs");
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    let rows = json(&output.stdout);
    let row =
        rows["results"].as_array().expect("rows").iter().find(|r| r["backend"] == "cuda").expect("a row");
    assert_eq!(row["failed"], 1);
    assert!(row["why"].as_str().is_some_and(|why| why.contains("required")), "{row}");
    // Other primitives have no kernels for it.
    let output = place.run(&["--backend", "magma=cuda", "check", "magma", "--quick"]);
    assert_eq!(code(&output), 2);
}

/// The study's folder, with less to do.
#[cfg(feature = "study")]
fn study(place: &Place) {
    let folder = place.path("studies").join("mayo-gpu");
    fs::create_dir_all(&folder).expect("a folder");
    let text = fs::read_to_string(format!("{STUDY}study.toml")).expect("the question");
    let (head, tail) = text.split_once("[quick]").expect("a quick form");
    let (_, rest) = tail.split_once("[full]").expect("a full form");
    let quick = "[quick]\nsets = [\"mayo2\"]\noperations = [\"keygen\", \"sign\", \"verify\"]\nbatches = [1, 2]\n\
        seconds = 1.0\nlaunches = 1\njoules_seconds = 0.0\nthread_launches = [[1, 2]]\nthread_turns = 1\nsanitized = [\"round3/mayo2\"]\n";
    fs::write(folder.join("study.toml"), format!("{head}{quick}\n[full]{rest}")).expect("a file");
    fs::copy(format!("{STUDY}study.md"), folder.join("study.md")).expect("a file");
}

#[cfg(feature = "study")]
#[test]
fn without_a_device_the_study_says_so_and_runs_the_rest() {
    let place = Place::new();
    study(&place);
    let output = place.run(&["--device", "none", "study", "mayo-gpu"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    for part in [
        "64 operations in flight in every set, where its launch had 16 threads",
        "are 481.8",
        "No verdict on a GPU: none is here",
        "| GPU, report ",
        "554.41",
        "keygen: PK_PRF",
        "1070523",
        "memcheck, initcheck and synccheck",
        "## Not here",
        "Not told: none is to be used",
        "| GPU here, a thread each, 4x4 ",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!text.contains("PAYS"), "{text}");
}

#[test]
fn the_shipped_ptx_is_checked_on_this_cpu() {
    let place = Place::new();
    let output = place.run(&["--json", "--device", "ptx", "check", "mayo/round3/mayo2", "--quick"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let rows = json(&output.stdout)["results"].clone();
    let rows: Vec<_> = rows.as_array().expect("rows").iter().filter(|r| r["backend"] == "ptx").collect();
    // Known answers, agreement, and agreement in each of the three other forms.
    assert_eq!(rows.len(), 5, "{rows:?}");
    let right = |r: &serde_json::Value| r["failed"] == 0 && r["passed"].as_u64().is_some_and(|n| n > 0);
    assert!(rows.iter().all(|r| right(r)), "{rows:?}");
}

#[cfg(feature = "emulated")]
mod emulated {
    use super::*;

    #[test]
    fn jobs_run_on_two_devices() {
        let place = Place::new();
        let device = ["--json", "--device", "emulated:2", "mayo"];
        let run = |args: &[&str]| place.run(&[&device[..], args].concat());
        let made = run(&["keygen", "--set", "mayo2", "--secret-key", "sk.pem", "--public-key", "pk.pem"]);
        assert_eq!(code(&made), 0, "{}", stderr(&made));
        let devices = json(&made.stdout)["devices"].clone();
        assert_eq!(devices.as_array().map(Vec::len), Some(2), "{devices}");
        let names = ["a", "b", "c", "d", "e"];
        names.iter().for_each(|name| place.put(name, name.as_bytes()));
        let signed = run(&[&["sign", "--key", "sk.pem"][..], &names].concat());
        assert_eq!(code(&signed), 0, "{}", stderr(&signed));
        let on = |out: &std::process::Output| -> Vec<u64> {
            let rows = json(&out.stdout)["devices"].clone();
            assert!(rows.as_array().is_some_and(|r| r.iter().all(|d| d["trouble"].is_null())), "{rows}");
            rows.as_array().expect("rows").iter().filter_map(|d| d["on_device"].as_u64()).collect()
        };
        assert_eq!(on(&signed).iter().sum::<u64>(), 5);
        assert!(on(&signed).iter().all(|&n| n > 0), "both had some");
        // The CPU accepts them, and each device accepts the other's, but not one that was changed.
        let verify = [&["mayo", "verify", "--key", "pk.pem"][..], &names].concat();
        assert_eq!(code(&place.run(&verify)), 0);
        place.put("d", b"other");
        let verified = run(&[&["verify", "--key", "pk.pem"][..], &names].concat());
        assert_eq!(code(&verified), 1);
        let results = json(&verified.stdout)["results"].clone();
        let valid: Vec<bool> = results.as_array().expect("rows").iter().map(|r| r["valid"] == true).collect();
        assert_eq!(valid, [true, true, true, false, true]);
        assert_eq!(on(&verified).iter().sum::<u64>(), 5);
    }

    #[test]
    fn checks_run_on_the_device() {
        let place = Place::new();
        let output = place.run(&["--json", "--device", "emulated", "check", "mayo/round3/mayo2", "--quick"]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let rows = json(&output.stdout)["results"].clone();
        let rows: Vec<_> =
            rows.as_array().expect("rows").iter().filter(|r| r["backend"] == "emulated").collect();
        // Known answers, agreement, and agreement in each of the three other forms.
        assert_eq!(rows.len(), 5, "{rows:?}");
        assert!(
            rows.iter().all(|r| r["failed"] == 0 && r["passed"].as_u64().is_some_and(|n| n > 0)),
            "{rows:?}"
        );
    }

    #[test]
    fn what_was_tuned_is_used_on_these_devices_alone() {
        let place = Place::new();
        let device = ["--json", "--device", "emulated"];
        let run = |args: &[&str]| place.run(&[&device[..], args].concat());
        let tuned = run(&["tune", "mayo/round3/mayo2/verify-expanded", "--seconds", "1", "--launches", "1"]);
        assert_eq!(code(&tuned), 0, "{}", stderr(&tuned));
        let subject = "mayo/round3/mayo2/verify-expanded";
        let mut profile = json(&place.get("no-profile.json"));
        let kept = profile["devices"][subject][0].clone();
        assert_eq!(kept["devices"].as_array().map(Vec::len), Some(1), "{kept}");
        assert_eq!((&kept["small"][0], &kept["large"][0]), (&1.into(), &2.into()), "{kept}");
        assert!(kept["cpu"].as_f64().is_some_and(|ns| ns > 0.0), "{kept}");
        let names = ["a", "b", "c", "d"];
        names.iter().for_each(|name| place.put(name, name.as_bytes()));
        let keys = ["mayo", "keygen", "--set", "mayo2", "--secret-key", "sk.pem", "--public-key", "pk.pem"];
        assert_eq!(code(&place.run(&keys)), 0);
        assert_eq!(code(&place.run(&[&["mayo", "sign", "--key", "sk.pem"][..], &names].concat())), 0);
        let on_device = |files: &[&str]| {
            let output = run(&[&["mayo", "verify", "--key", "pk.pem"][..], files].concat());
            assert_eq!(code(&output), 0, "{}", stderr(&output));
            json(&output.stdout)["devices"][0]["on_device"].as_u64()
        };
        // As if: three to start and one each on the device, two each on the CPU. They meet at three; of more, the CPU gets a third.
        let choice = &mut profile["devices"][subject][0];
        (choice["small"], choice["large"]) = (serde_json::json!([1, 4.0]), serde_json::json!([2, 5.0]));
        choice["cpu"] = 2.0.into();
        place.put("no-profile.json", profile.to_string().as_bytes());
        assert_eq!((on_device(&names[..2]), on_device(&names)), (Some(0), Some(3)));
        // Another program on the device changes its pace: a device that is named is used.
        let measured = profile.clone();
        profile["devices"][subject][0]["devices"][0]["program"] = "another".into();
        place.put("no-profile.json", profile.to_string().as_bytes());
        assert_eq!((on_device(&names[..2]), on_device(&names)), (Some(2), Some(4)));
        // Two devices. The second, a MiB smaller, was found to take three times as long: it gets a quarter of a batch, instead of
        // the half that it got before this was known.
        let shares = || {
            let args = ["--json", "--device", "emulated:2", "mayo", "verify", "--key", "pk.pem"];
            let output = place.run(&[&args[..], &names].concat());
            assert_eq!(code(&output), 0, "{}", stderr(&output));
            let rows = json(&output.stdout)["devices"].clone();
            [0, 1].map(|i| rows[i]["on_device"].as_u64())
        };
        assert_eq!(shares(), [Some(2), Some(2)]);
        let mut profile = measured;
        let mut first = profile["devices"][subject][0].clone();
        (first["small"], first["large"]) = (serde_json::json!([1, 1.0]), serde_json::json!([2, 2.0]));
        first["cpu"] = 1e9.into();
        let mut second = first.clone();
        (second["small"], second["large"]) = (serde_json::json!([1, 3.0]), serde_json::json!([2, 6.0]));
        let memory = &mut second["devices"][0]["memory"];
        *memory = memory.as_u64().map(|bytes| bytes - (1 << 20)).into();
        profile["devices"][subject] = serde_json::json!([first, second]);
        place.put("no-profile.json", profile.to_string().as_bytes());
        assert_eq!(shares(), [Some(3), Some(1)]);
    }

    /// A sanitizer with this exit code for that tool; with any other, it runs the given command.
    #[cfg(feature = "study")]
    fn sanitizer(place: &Place, tool: &str) -> std::path::PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let script =
            format!("#!/bin/sh\n[ \"$2\" = {tool} ] && echo Race && exit 86\nshift 4\nexec \"$@\"\n");
        place.put("sanitizer", script.as_bytes());
        let path = place.path("sanitizer");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
        path
    }

    #[cfg(feature = "study")]
    #[test]
    fn a_complaint_of_the_sanitizer_ends_the_study() {
        let place = Place::new();
        let studies = STUDY.trim_end_matches("mayo-gpu/");
        let args = ["--device", "emulated", "study", "mayo-gpu", "--studies", studies];
        let program = sanitizer(&place, "synccheck");
        let output =
            place.command(&args).env("LANEWORK_COMPUTE_SANITIZER", program).output().expect("it runs");
        assert_ne!(code(&output), 0);
        let why = stderr(&output);
        assert!(why.contains("synccheck, ") && why.contains("86") && why.contains("Race"), "{why}");
    }

    #[cfg(feature = "study")]
    #[test]
    fn the_study_runs_whole_and_gives_no_verdict() {
        let place = Place::new();
        let studies = STUDY.trim_end_matches("mayo-gpu/");
        let args = ["--device", "emulated", "study", "mayo-gpu", "--studies", studies];
        let program = sanitizer(&place, "none");
        let output =
            place.command(&args).env("LANEWORK_COMPUTE_SANITIZER", program).output().expect("it runs");
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let text = stdout(&output);
        for part in [
            "**Emulated.**",
            "No verdict: the device is emulated",
            "Not told: an emulated device uses no energy",
            "agreement with the CPU, ",
            "| secrets left in freed memory, MAYO-",
            "| memcheck, ",
            "| synccheck, ",
            "all at once in the ring's time",
            "round 3 verify-expanded",
            "pays from",
            "| GPU here, a thread each, 4x4 ",
            "| GPU here, cooperative ",
            "a device's thread, cycles",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(!text.contains("PAYS"), "{text}");
        assert!(!text.contains("in mayo-gpu/"), "every variant raced\n{text}");
        assert!(!text.contains("a thread each, round3/"), "every launch ran\n{text}");
        let rows: Vec<Vec<&str>> =
            text.lines().map(|line| line.split('|').map(str::trim).collect()).collect();
        let number = |cell: &str| cell.split(' ').next().and_then(|n| n.parse::<f64>().ok()).unwrap_or(-1.0);
        for (launch, in_flight) in [("4x4", "16"), ("2x2", "4")] {
            let row = rows.iter().find(|r| r.len() > 8 && r[1..4] == ["round3/mayo2", launch, in_flight]);
            let row = row.unwrap_or_else(|| panic!("{launch} is not in\n{text}"));
            // It used its bytes; the clock of an emulated device stands still, so there is no rate.
            assert!(number(row[4]) > 100_000.0, "{row:?}");
            assert_eq!(row[8], "-", "{row:?}");
        }
    }
}
