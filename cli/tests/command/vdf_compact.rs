//! `lanework vdf compact`: proofs of known results, the same as `prove` makes; wrong results, bad lists, and interruptions.
#![cfg(unix)]

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Place, code, json, stderr};
use serde_json::{Value, json};

/// What `evaluate` prints for this challenge.
fn evaluated(place: &Place, challenge: &str, bits: &str, iterations: &str) -> Value {
    let out =
        place.run(&["vdf", "evaluate", "--challenge", challenge, "--bits", bits, "--iterations", iterations]);
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    json(&out.stdout)
}

fn lines(bytes: &[u8]) -> Vec<Value> {
    bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(json).collect()
}

fn list(jobs: &[Value]) -> Vec<u8> {
    jobs.iter().flat_map(|job| format!("{job}\n").into_bytes()).collect()
}

#[test]
fn proofs_are_those_of_prove_and_a_wrong_result_has_none() {
    let place = Place::new();
    let mut jobs = Vec::new();
    for (challenge, iterations) in
        [("c0ffee01", "20000"), ("c0ffee01", "7000"), ("c0ffee02", "9000"), ("c0ffee01", "300")]
    {
        jobs.push(evaluated(&place, challenge, "512", iterations));
    }
    jobs[1]["id"] = json!({ "height": 7 });
    // The generator and its group, named differently.
    jobs[2]
        .as_object_mut()
        .expect("an object")
        .retain(|name, _| ["discriminant", "iterations", "y"].contains(&name.as_str()));
    jobs[3]["y"] = jobs[1]["y"].clone();
    place.put("jobs", &list(&jobs));
    for threads in ["1", "2", "5"] {
        let out = place.run(&["vdf", "compact", "--jobs", "jobs", "--threads", threads, "--memory", "1"]);
        assert_eq!(code(&out), 1, "{}", stderr(&out));
        let mut got = lines(&out.stdout);
        got.sort_by_key(|line| line["line"].as_u64());
        assert_eq!(got.len(), 4);
        assert_eq!(got[1]["id"], json!({ "height": 7 }));
        assert_eq!(got[3]["refused"], "the chain has another result");
        assert!(["proof", "b", "compact"].iter().all(|name| got[3].get(name).is_none()), "{}", got[3]);
        for (n, iterations) in [(0, "20000"), (1, "7000"), (2, "9000")] {
            let challenge = if n == 2 { "c0ffee02" } else { "c0ffee01" };
            let proof = place.run(&[
                "vdf",
                "prove",
                "--challenge",
                challenge,
                "--bits",
                "512",
                "--iterations",
                iterations,
            ]);
            let proof = json(&proof.stdout);
            for member in ["proof", "y", "b", "compact", "witness", "discriminant", "input", "iterations"] {
                assert_eq!(got[n][member], proof[member], "{member} of line {}", n + 1);
            }
            place.put("one", got[n].to_string().as_bytes());
            assert_eq!(code(&place.run(&["vdf", "verify", "one"])), 0);
        }
    }
    // From standard input to a file, which is not replaced unasked.
    let pipe = |rest: &[&str]| {
        place.fed(&[&["vdf", "compact", "--jobs", "-", "-o", "proofs"], rest].concat(), &list(&jobs[..1]))
    };
    let out = pipe(&[]);
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(said.starts_with("1 result proved and verified, 0 refused, on 1 chain of 20,000"), "{said}");
    assert_eq!(lines(&place.get("proofs")).len(), 1);
    assert_eq!(code(&pipe(&[])), 2, "the file exists");
    assert_eq!(code(&pipe(&["--force"])), 0);
}

#[test]
fn a_bad_list_is_refused_before_anything_is_squared() {
    let place = Place::new();
    // It would take a year.
    let mut good = evaluated(&place, "c0ffee01", "512", "10");
    good["iterations"] = json!(1_000_000_000_000u64);
    let with = |member: &str, value: Value| {
        let mut job = good.clone();
        job[member] = value;
        job
    };
    let without = |member: &str| {
        let mut job = good.clone();
        job.as_object_mut().expect("an object").remove(member);
        job
    };
    let other = evaluated(&place, "c0ffee02", "512", "10");
    let y = good["y"].as_str().expect("digits").to_owned();
    for (job, said) in [
        (json!("a text"), "line 2: not a job in JSON"),
        (json!([1]), "line 2: not a job in JSON"),
        (without("y"), "line 2: y: missing"),
        (without("iterations"), "line 2: iterations: missing"),
        (with("iterations", json!(0)), "line 2: iterations: 0 squarings"),
        (with("iterations", json!(-1)), "line 2: not a job in JSON"),
        (with("y", json!("00")), "line 2: y: "),
        (with("y", json!(format!("{y}zz"))), "line 2: y: "),
        (with("y", json!(format!("ff{}", &y[2..]))), "line 2: y: "),
        (with("input", json!("0800")), "line 2: input: "),
        (with("bits", json!(520)), "line 2: "),
        (
            with("discriminant", other["discriminant"].clone()),
            "line 2: discriminant: not the one of the challenge",
        ),
        (with("discriminant", json!("7")), "line 2: discriminant: "),
        (json!({ "iterations": 5, "y": y }), "line 2: challenge or discriminant is missing"),
    ] {
        place.put("jobs", &list(&[good.clone(), job]));
        let out = place.run(&["vdf", "compact", "--jobs", "jobs", "-o", "proofs"]);
        assert_eq!(code(&out), 2, "{said}: {}", stderr(&out));
        assert!(stderr(&out).contains(said), "{said}: {}", stderr(&out));
        assert!(out.stdout.is_empty() && !place.path("proofs").exists(), "{said}");
    }
    // A composite discriminant: anything can be proved in its group.
    let composite = json!({ "discriminant": "-15", "iterations": 5, "y": "00" });
    place.put("jobs", &list(&[composite]));
    assert_ne!(code(&place.run(&["vdf", "compact", "--jobs", "jobs"])), 0);
    for (text, said) in [(&b""[..], "no jobs"), (b"\n \n", "no jobs"), (b"{", "line 1: not a job in JSON")] {
        place.put("jobs", text);
        let out = place.run(&["vdf", "compact", "--jobs", "jobs"]);
        assert!(code(&out) == 2 && stderr(&out).contains(said), "{said}: {}", stderr(&out));
    }
    place.put("jobs", &list(&[good]));
    for rest in [
        &["-o", "jobs", "--force"][..],
        &["--checkpoint", "jobs"],
        &["--checkpoint", "none"],
        &["--memory", "0"],
    ] {
        let out = place.run(&[&["vdf", "compact", "--jobs", "jobs"], rest].concat());
        assert_eq!(code(&out), 2, "{rest:?}: {}", stderr(&out));
    }
}

#[test]
fn interrupted_it_goes_on_and_leaves_no_file() {
    let place = Place::new();
    let jobs = [("c0ffee01", "600000"), ("c0ffee01", "200"), ("c0ffee02", "500000")]
        .map(|(challenge, iterations)| evaluated(&place, challenge, "512", iterations));
    place.put("jobs", &list(&jobs));
    let expected = place.run(&["vdf", "compact", "--jobs", "jobs", "--threads", "1"]);
    let sorted = |bytes: &[u8]| {
        let mut all = lines(bytes);
        all.sort_by_key(|line| line["line"].as_u64());
        all
    };
    std::fs::create_dir(place.path("kept")).expect("a folder");
    let ask = ["vdf", "compact", "--jobs", "jobs", "--checkpoint", "kept", "--every", "0.05", "-o", "proofs"];
    let (mut interrupted, mut ended) = (0, false);
    for round in 0..40 {
        let mut child = place
            .signalled(&ask)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        let files = || std::fs::read_dir(place.path("kept")).expect("the folder").count();
        for _ in 0..2000 {
            if files() > 0 || child.try_wait().expect("a child").is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(20 + 17 * round));
        let name = if round % 2 == 0 { "-INT" } else { "-KILL" };
        // It may have ended.
        let _ = Command::new("kill").args([name, &child.id().to_string()]).stderr(Stdio::null()).status();
        let status = child.wait().expect("it ends");
        if status.success() {
            ended = true;
            break;
        }
        assert!(!place.path("proofs").exists());
        interrupted += 1;
    }
    assert!(ended && interrupted > 0, "{interrupted} interruptions");
    assert_eq!(sorted(&place.get("proofs")), sorted(&expected.stdout));
    assert_eq!(std::fs::read_dir(place.path("kept")).expect("the folder").count(), 0);
}
