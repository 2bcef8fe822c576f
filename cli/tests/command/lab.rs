//! `lanework doctor`, `check`, `bench` and `compare` as their users run them.

use std::process::{Command, Output};

fn lanework(args: &[&str]) -> Output {
    let dir = std::env::temp_dir();
    Command::new(env!("CARGO_BIN_EXE_lanework"))
        .args(args)
        .current_dir(&dir)
        .env("LANEWORK_PROFILE", dir.join("lanework-no-such-profile.json"))
        .env_remove("LANEWORK_MASK")
        .env_remove("LANEWORK_BACKEND")
        .output()
        .expect("the command runs")
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn doctor_lists_every_backend() {
    let answer = json(&lanework(&["--json", "doctor"]));
    let backends = answer["backends"].as_array().expect("an array");
    for primitive in ["mayo", "magma", "integer", "vdf"] {
        let of: Vec<_> = backends.iter().filter(|b| b["primitive"] == primitive).collect();
        assert!(of.iter().any(|b| b["backend"] == "portable"), "{primitive}: {backends:?}");
        assert_eq!(of.iter().filter(|b| b["chosen"] == true).count(), 1, "{primitive}: {backends:?}");
    }
}

#[test]
fn check_gives_rows_and_a_verdict() {
    let output = lanework(&["--json", "--backend", "portable", "check", "--quick", "mayo/round3/mayo2"]);
    assert_eq!(output.status.code(), Some(0));
    let rows = json(&output);
    let rows = rows["results"].as_array().expect("an array").clone();
    assert!(rows.iter().any(|r| r["backend"] == "portable" && r["passed"].as_u64() > Some(0)));
    assert!(rows.iter().all(|r| r["failed"] == 0));
}

#[test]
fn the_integers_are_checked_forced_and_refused() {
    let answer = lanework(&["--json", "check", "--quick", "integer"]);
    assert_eq!(answer.status.code(), Some(0));
    let answer = json(&answer);
    let rows = answer["results"].as_array().expect("an array");
    assert!(rows.iter().all(|r| r["what"].as_str().is_some_and(|w| w.starts_with("integer: "))));
    assert!(rows.iter().any(|r| r["backend"] == "portable" && r["passed"].as_u64() > Some(0)));
    let chosen = |backend: &str, mask: &str| {
        Command::new(env!("CARGO_BIN_EXE_lanework"))
            .args(["--json", "doctor"])
            .env("LANEWORK_BACKEND", format!("integer={backend}"))
            .env("LANEWORK_MASK", mask)
            .output()
            .expect("the command runs")
    };
    let answer = json(&chosen("portable", ""));
    let backends = answer["backends"].as_array().expect("an array");
    let of = |b: &&serde_json::Value| b["primitive"] == "integer" && b["chosen"] == true;
    let names: Vec<_> = backends.iter().filter(of).map(|b| b["backend"].clone()).collect();
    assert_eq!(names, ["portable"]);
    // One that is not here, and one that exists nowhere.
    #[cfg(target_arch = "x86_64")]
    assert_eq!(chosen("adx", "adx").status.code(), Some(3));
    assert_eq!(chosen("gfni", "").status.code(), Some(2));
    // No sums are published.
    let none = lanework(&["check", "--known-answers", "integer"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("no known answers under 'integer'"));
}

#[test]
fn a_required_backend_that_is_masked_fails_the_check() {
    let output = Command::new(env!("CARGO_BIN_EXE_lanework"))
        .args(["check", "--quick", "mayo/round3/mayo2"])
        .env("LANEWORK_MASK", "avx")
        .env("LANEWORK_REQUIRE", "portable,avx2")
        .output()
        .expect("the command runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("required, but"), "{said}");
    // It failed, and it did not run.
    let ran = said.lines().find(|line| line.starts_with("ran: ")).expect("what ran");
    assert!(ran.contains("portable (") && ran.contains("not avx2: required, but"), "{ran}");
    assert!(!ran.contains("avx2 ("), "{ran}");
}

#[test]
fn a_race_gives_the_schema() {
    let output = lanework(&[
        "--json",
        // Batches run on the chosen backend, here the one that every machine has.
        "--backend",
        "portable",
        "bench",
        "mayo/round3/mayo2/verify",
        "--only",
        "portable+batch",
        "--seconds",
        "0.5",
        "--launches",
        "1",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let record = json(&output);
    assert_eq!(record["schema"], 1);
    let row = &record["results"][0];
    for field in [
        "subject", "variant", "baseline", "ratio", "low", "high", "noise", "verdict", "unit", "median",
        "mean",
    ] {
        assert!(!row[field].is_null(), "{field} is missing");
    }
    assert_eq!(row["subject"], "mayo/round3/mayo2/verify");
}

#[test]
fn unknown_names_exit_2() {
    for args in [
        &["bench", "mayo/round9"][..],
        &["check", "magma7"],
        &["compare", "portable", "avx1024"],
        &["compare", "portable", "portable"],
        &["bench", "--core", "x"],
        &["nonsense"],
    ] {
        let output = lanework(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(!output.stderr.is_empty(), "{args:?} says nothing");
    }
}

#[test]
fn completions_and_manual_are_there() {
    for args in [&["completions", "bash"][..], &["completions", "zsh"], &["man"]] {
        let output = lanework(args);
        assert_eq!(output.status.code(), Some(0));
        assert!(String::from_utf8_lossy(&output.stdout).contains("lanework"));
    }
}

#[test]
fn a_name_that_no_machine_has_is_a_usage_error_wherever_it_stands() {
    for (variable, value) in
        [(false, "aes=avx2"), (false, "sse9"), (true, "mayo=sse9"), (true, "magmo=portable")]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanework"));
        command.args(["bench", "--list"]).env_remove("LANEWORK_BACKEND");
        if variable {
            command.env("LANEWORK_BACKEND", value);
        } else {
            command.args(["--backend", value]);
        }
        let output = command.output().expect("the command runs");
        assert_eq!(output.status.code(), Some(2), "{value}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("\nhelp: choose one of "), "{value}");
    }
}

/// Every verb refuses it: none of them could skip a backend of that name.
#[test]
fn a_required_name_that_no_backend_has_is_a_usage_error() {
    for args in [
        &["bench", "magma/ctr/16"][..],
        &["compare", "portable", "avx2"],
        &["tune", "--dry-run"],
        &["check", "--leaks"],
        &["check"],
        &["doctor"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanework"));
        let output = command.args(args).env("LANEWORK_REQUIRE", "portable,avx21").output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(
            said.contains("no backend 'avx21' (LANEWORK_REQUIRE)\nhelp: choose one of portable"),
            "{said}"
        );
    }
}

#[test]
fn json_is_one_object_in_failure_too() {
    let masked = Command::new(env!("CARGO_BIN_EXE_lanework"))
        .args(["--json", "--backend", "avx512", "doctor"])
        .env("LANEWORK_MASK", "avx512f")
        .output()
        .expect("the command runs");
    assert_eq!(masked.status.code(), Some(3));
    assert!(json(&masked)["error"].as_str().is_some_and(|e| e.contains("avx512")));
    for args in [
        &["--json", "nonsense"][..],
        &["--json", "bench", "--seconds", "nan"],
        &["--json", "bench", "--csv", "mayo/round3/mayo2/verify"],
        &["bench", "--csv", "mayo/round3/mayo2/verify", "--json"],
        &["bench", "mayo/round9", "--json"],
    ] {
        let output = lanework(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let object = json(&output);
        assert_eq!(object["exit"], 2, "{args:?}");
        for field in ["error", "help"] {
            assert!(object[field].as_str().is_some_and(|e| !e.is_empty()), "{args:?}: {field}");
        }
    }
}

#[test]
fn a_race_can_be_shown_as_clusters() {
    let race = ["bench", "magma/ctr/16", "--only", "avx2", "--seconds", "0.5", "--launches", "1"];
    let output = lanework(&[&race[..], &["--style", "histogram"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("magma/ctr/16: ") && text.contains(" for 1,000 operations"), "{text}");
    for name in ["portable (baseline), ", "avx2, "] {
        let of = text.split(name).nth(1).unwrap_or_else(|| panic!("{name} is not in {text}"));
        // "99%: 11719", and no share is lost.
        let (share, cycles) = of.lines().nth(1).and_then(|l| l.split_once("%: ")).expect("a cluster");
        assert!(share.parse::<u64>().is_ok_and(|s| s <= 100), "{of}");
        assert!(cycles.parse::<u64>().is_ok_and(|c| c > 1000), "{of}");
    }
    for form in [&["--json"][..], &["--csv"], &["--list"]] {
        let output = lanework(&[form, &race[..1], &race[1..2], &["--style", "histogram"]].concat());
        assert_eq!(output.status.code(), Some(2), "{form:?}");
    }
}

#[test]
fn who_could_not_race_is_told_by_the_exit_code() {
    let run = |args: &[&str], required: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanework"));
        command.args(args).args(["--seconds", "0.3", "--launches", "1"]).env("LANEWORK_MASK", "avx512f,gfni");
        command.env("LANEWORK_REQUIRE", required).output().expect("the command runs")
    };
    let compare = ["compare", "portable", "avx512", "--on", "magma/ctr/16"];
    assert_eq!(run(&compare, "portable").status.code(), Some(3));
    let required = run(&compare, "portable,avx512");
    assert_eq!(required.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&required.stderr).contains("required, but"));
    let clusters = run(&["bench", "magma/ctr/16", "--only", "avx512", "--style", "histogram"], "portable");
    assert_eq!(clusters.status.code(), Some(3));
    let said = String::from_utf8_lossy(&clusters.stdout).into_owned();
    assert!(said.starts_with("not here: magma/ctr/16 avx512"), "{said}");
    assert_eq!(said.lines().next().map(|line| line.matches("avx512:").count()), Some(1), "{said}");
    assert!(!said.contains("avx512 is not available"), "the name is said twice: {said}");
    // CSV has no place for reasons.
    let values = Command::new(env!("CARGO_BIN_EXE_lanework"))
        .args(["bench", "vdf/1024/square", "--csv", "--seconds", "0.3", "--launches", "1"])
        .env("LANEWORK_MASK", "adx,avx512f")
        .env("LANEWORK_REQUIRE", "portable")
        .output()
        .expect("the command runs");
    assert_eq!((values.status.code(), values.stdout.iter().filter(|b| **b == b'\n').count()), (Some(3), 1));
    assert!(String::from_utf8_lossy(&values.stderr).contains("nothing raced"));
    // Of several, the available ones race.
    assert_eq!(run(&["bench", "magma/ctr/16"], "portable").status.code(), Some(0));
}

/// The command itself serves as the older build.
#[test]
fn every_variant_is_raced_against_that_of_an_older_build() {
    let itself = env!("CARGO_BIN_EXE_lanework");
    let race = |old: &str, only: &str| {
        Command::new(itself)
            .args(["bench", "magma/ctr/1024", "--old", old, "--only", only, "--seconds", "0.5", "--json"])
            .env_remove("LANEWORK_REQUIRE")
            .env_remove("LANEWORK_MASK")
            .output()
            .expect("the command runs")
    };
    let output = race(itself, "portable");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let record = json(&output);
    let rows = record["results"].as_array().expect("results");
    assert_eq!(rows.len(), 1, "{record}");
    assert_eq!((&rows[0]["variant"], &rows[0]["baseline"]), (&"portable".into(), &"older portable".into()));
    assert_eq!(rows[0]["backend"], "portable");
    assert_eq!(record["study"], "bench-magma/ctr/1024-only-portable-old");
    assert!(record["gate"].as_array().is_some_and(|gate| !gate.is_empty()), "{record}");
    // More than a hundred processes take longer, which is said.
    assert!(record["remarks"].to_string().contains("more than --seconds 0.5"), "{}", record["remarks"]);
    // Other programs are refused, and so is a variant that no subject has.
    for (old, only, why) in [
        ("/bin/true", "portable", "not a Lanework binary"),
        ("/no/such/file", "portable", "cannot be run"),
        (itself, "no-such", "no subject here has a variant"),
    ] {
        let output = race(old, only);
        assert_eq!(output.status.code(), Some(2), "{old} {only}");
        assert!(json(&output)["error"].as_str().is_some_and(|e| e.contains(why)), "{old} {only}");
    }
    // An older build may lack the subject. The record repeats what it said.
    let folder = tempfile::tempdir().expect("a folder");
    let stranger = folder.path().join("stranger");
    let script =
        format!("[ \"$1\" = --version ] && exec {itself} --version\necho no such subject >&2\nexit 2\n");
    // A file that this process has open for writing when another test starts a program cannot be executed.
    let written = Command::new("sh")
        .args(["-c", "printf '#!/bin/sh\n%s' \"$1\" >\"$0\" && chmod +x \"$0\""])
        .args([stranger.as_os_str(), script.as_ref()])
        .status();
    assert!(written.is_ok_and(|s| s.success()));
    let output = race(&stranger.display().to_string(), "portable");
    assert_eq!(output.status.code(), Some(3));
    let told = json(&output)["not_here"][0]["why"].as_str().map(str::to_owned).unwrap_or_default();
    assert!(told.contains("no such subject"), "{told}");
}

#[test]
fn a_record_that_could_not_be_stored_is_not_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("written");
    for place in [file.clone(), file.join("below")] {
        let save = format!("--save={}", place.display());
        for args in [
            &["--json", "bench", "magma/ctr/16", "--seconds", "3600", &save][..],
            &["--json", "compare", "portable", "avx2", "--seconds", "3600", &save],
            &["--json", "study", "lab-self-check", "--full", &save],
        ] {
            let refused = lanework(args);
            assert_eq!(refused.status.code(), Some(2), "{args:?}");
            assert!(
                json(&refused)["error"].as_str().is_some_and(|e| e.contains("not a directory")),
                "{args:?}"
            );
        }
    }
}

/// A worker that outlived its race would go on measuring during whatever comes next.
#[cfg(target_os = "linux")]
#[test]
fn workers_end_with_their_race() {
    let mut race = Command::new(env!("CARGO_BIN_EXE_lanework"))
        .args(["bench", "mayo/round3/mayo5/sign", "--seconds", "3600"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the command runs");
    let children = format!("/proc/{0}/task/{0}/children", race.id());
    let waited = |what: &dyn Fn() -> bool| {
        (0..600).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            what()
        })
    };
    let worker = || {
        let list = std::fs::read_to_string(&children).unwrap_or_default();
        list.split_whitespace().next().map(str::to_owned)
    };
    assert!(waited(&|| worker().is_some()), "no worker was started");
    let status = format!("/proc/{}/stat", worker().expect("a worker"));
    race.kill().expect("killed");
    race.wait().expect("waited for");
    // A process that was not waited for has ended all the same.
    let ended = || std::fs::read_to_string(&status).map_or(true, |s| s.contains(") Z "));
    assert!(waited(&ended), "{status} is still there");
}

#[test]
fn save_takes_no_subject_for_a_directory() {
    let output = lanework(&["bench", "--save", "mayo/round3/mayo2/verify", "--list"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.lines().count(), 1, "{text}");
}
