//! The study `codegen-flags` over builds that are kept: bad input, builds that are not what they should be, and a race to its page.
//!
//! The builds here are scripts around this test's own command that report a different build: the races are real, and no ratio is
//! checked.
#![cfg(all(unix, feature = "study"))]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Mutex, MutexGuard};

use crate::common::{Place, code, json, no, stderr, yes};
use serde_json::Value;

/// One test at a time: another test's child would inherit a file that is being written, and no system runs a file open for writing.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A folder with a short version of the study.
fn place() -> Place {
    let place = Place::new();
    fs::create_dir_all(place.path("studies/codegen-flags")).expect("a folder");
    let whole = include_str!("../../../studies/codegen-flags/study.toml");
    let quick = "\
[quick]
builds = [\"o1\", \"native\"]
subjects = [\"magma/ctr/1024\"]
backends = [\"portable\"]
seconds = 0.1
rounds = 8

";
    let (head, rest) = whole.split_once("[quick]").expect("a quick mode");
    let (_, full) = rest.split_once("[full]").expect("a full mode");
    place.put("studies/codegen-flags/study.toml", format!("{head}{quick}[full]{full}").as_bytes());
    place.put(
        "studies/codegen-flags/study.md",
        include_bytes!("../../../studies/codegen-flags/study.md").as_slice(),
    );
    fs::create_dir_all(place.path("kept/bin")).expect("a folder");
    place
}

/// What the test's own command reports about its build.
fn own(place: &Place) -> Value {
    json(&place.run(&["--json", "doctor"]).stdout)["machine"]["build"].clone()
}

/// Keeps a build under that name that reports itself as `build`. `first` are the first lines of its script.
fn keep(place: &Place, name: &str, build: &Value, first: &str) {
    let says = serde_json::json!({ "machine": { "build": build } });
    let script = format!(
        "#!/bin/sh\n{first}\ncase \"$*\" in *doctor) cat <<'END'\n{says}\nEND\nexit;; esac\nexec '{}' \"$@\"\n",
        env!("CARGO_BIN_EXE_lanework")
    );
    let path = place.path("kept/bin").join(name);
    fs::write(&path, script).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it runs");
}

fn with(build: &Value, changes: &[(&str, &str)]) -> Value {
    let mut build = build.clone();
    for (key, value) in changes {
        build[*key] = (*value).into();
    }
    build
}

const ASK: [&str; 5] = ["study", "codegen-flags", "--as-built", "--builds", "kept"];

#[test]
fn bad_input_is_named() {
    let _alone = alone();
    let place = place();
    no(&place, &["study", "codegen-flags", "--as-built", "--build-only"], 2, "cannot be used with");
    for option in [&["--builds", "kept"][..], &["--as-built"], &["--build-only"]] {
        no(
            &place,
            &[&["study", "lab-self-check"], option].concat(),
            2,
            ": an option of the study codegen-flags, not of lab-self-check",
        );
    }
    // Nothing is kept, or there is nothing to race against.
    no(&place, &ASK, 3, "bin/release is not there");
    let plain = with(&own(&place), &[("opt_level", "3"), ("rustflags", "none")]);
    keep(&place, "release", &plain, "");
    no(&place, &ASK, 3, "bin/o1 is not there");
    // Not an executable, and one that prints nothing.
    place.put("kept/bin/release", b"text");
    no(&place, &ASK, 3, "cannot be run");
    keep(&place, "release", &plain, "exit 0");
    no(&place, &ASK, 3, "does not say how it was built");
    place.put("studies/codegen-flags/study.toml", b"question = \"?\"\n");
    no(&place, &ASK, 2, "baseline");
}

#[test]
fn builds_that_are_others_or_check_otherwise_are_not_raced() {
    let _alone = alone();
    let place = place();
    let plain = with(&own(&place), &[("opt_level", "3"), ("rustflags", "none")]);
    keep(&place, "release", &plain, "");
    keep(&place, "o1", &plain, "");
    keep(&place, "native", &with(&plain, &[("rustflags", "-Ctarget-cpu=native"), ("commit", "another")]), "");
    let output = place.run(&ASK);
    assert_eq!(code(&output), 3);
    let why = stderr(&output);
    assert!(why.contains("opt-level is '3' and not '1'") && why.contains("more than flags differ"), "{why}");
    // A build whose checks end differently: its gate's count is changed on the way out.
    let changed = format!(
        "case \"$*\" in *__race*) case \"$LANEWORK_LAB_ORDERS\" in *'\"gate_passed\":false'*) \
         '{}' \"$@\" | sed 's/\"passed\":[0-9]*/\"passed\":1/'; exit;; esac;; esac",
        env!("CARGO_BIN_EXE_lanework")
    );
    keep(&place, "o1", &with(&plain, &[("opt_level", "1")]), &changed);
    no(&place, &ASK, 1, "o1: its checks are not those of the baseline");
}

#[test]
fn kept_builds_are_raced_to_a_page_and_a_record() {
    let _alone = alone();
    let place = place();
    let plain = with(&own(&place), &[("opt_level", "3"), ("rustflags", "none"), ("commit", "0123abc")]);
    keep(&place, "release", &plain, "");
    keep(&place, "o1", &with(&plain, &[("opt_level", "1")]), "");
    let record = json(&yes(&place, &[&ASK[..], &["--json"]].concat()));
    let results = record["results"].as_array().expect("rows");
    assert_eq!(results.len(), 1, "{results:?}");
    let row = &results[0];
    assert_eq!((row["build"].as_str(), row["of_backend"].as_str()), (Some("o1"), Some("portable")), "{row}");
    assert!(row["samples"].as_array().is_some_and(|s| s.len() >= 8), "{row}");
    let builds = record["findings"]["builds"].as_array().expect("builds");
    assert_eq!(builds.len(), 3, "{builds:?}");
    assert!(builds[0]["kib"].is_number() && builds[2]["kib"].is_null(), "{builds:?}");
    assert!(record["gate"].as_array().is_some_and(|rows| rows.len() >= 2), "both gates are in it");
    let page = record["page"].as_str().expect("a page");
    for part in [
        "| magma/ctr/1024 | portable |",
        "`o1` (opt-level 1): **",
        "build native: ",
        "bin/native is not there",
        "kept, of commit 0123abc",
        "the builds are of commit 0123abc, and this command of",
    ] {
        assert!(page.contains(part), "{part:?} is not in\n{page}");
    }
}
