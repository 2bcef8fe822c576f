//! What `tune` keeps reaches the command that does the job, for every job there is.
#![cfg(target_os = "linux")]

use crate::common::{Place, code, json, no, stderr, yes};
use lanework_suite::Job;
use serde_json::{Value, json as object};

/// The command that does the job on the files of [`prepared`].
fn words(job: Job) -> Vec<&'static str> {
    let command = job.command().expect("every job of the list has a command");
    match command {
        "mayo keygen" => "mayo keygen --secret-key new --public-key new.pub --force",
        "mayo sign" => "mayo sign --key secret -o one.sig --force one",
        "mayo verify" => "mayo verify --key public one",
        "mayo sign FILE FILE..." => "mayo sign --key secret --force one two",
        "mayo verify FILE FILE..." => "mayo verify --key public one two",
        "magma encrypt" => "magma encrypt --key-file key -o made --force one",
        "magma decrypt" => "magma decrypt --key-file key -o back --force container",
        "magma mac" => "magma mac --key-file key one",
        "magma encrypt --mode ctr" => "magma encrypt --mode ctr --iv 00000001 --key-file key -o made --force one",
        "magma encrypt --mode ecb" => "magma encrypt --mode ecb --hazmat --key-file key -o made --force one",
        "magma encrypt --mode ctr-acpkm" => {
            "magma encrypt --mode ctr-acpkm --iv 00000001 --key-file key -o made --force one"
        }
        "magma decrypt --mode cbc" => {
            "magma decrypt --mode cbc --iv 0000000000000001 --key-file key -o back --force one"
        }
        "magma decrypt --mode cfb" => {
            "magma decrypt --mode cfb --iv 0000000000000001 --key-file key -o back --force one"
        }
        "magma encrypt --mode cfb --cipher gost28147" => {
            "magma encrypt --mode cfb --cipher gost28147 --sbox cryptopro-a --iv 0000000000000001 --key-file key -o made --force one"
        }
        "vdf evaluate" => "vdf evaluate --challenge 0102 --iterations 3",
        "vdf prove" => "vdf prove --challenge 0102 --iterations 3",
        "vdf verify" => "vdf verify proof.json",
        "vdf discriminant" => "vdf discriminant --challenge 0102",
        other => panic!("how is `lanework {other}` called?"),
    }
    .split(' ')
    .collect()
}

/// Keys, texts, and what was made from them, for MAYO with this set.
fn prepared(set: &str) -> Place {
    let place = Place::new();
    let (name, round) = set.split_once(" round ").expect("a set and a round");
    let name = name.to_lowercase().replace('-', "");
    yes(
        &place,
        &[
            "mayo",
            "keygen",
            "--set",
            &name,
            "--round",
            round,
            "--secret-key",
            "secret",
            "--public-key",
            "public",
        ],
    );
    place.put("one", &[7; 1 << 10]);
    place.put("two", &[8; 100]);
    place.put("key", &[0x5a; 32]);
    yes(&place, &["mayo", "sign", "--key", "secret", "one", "two"]);
    place
}

/// An empty profile of this machine, as `tune` writes it.
fn empty(place: &Place) -> Value {
    yes(place, &["tune", "magma/ctr/16", "--seconds", "0.1", "--launches", "1"]);
    let mut profile = json(&place.get("no-profile.json"));
    profile["choices"] = object!({});
    profile
}

fn ran(place: &Place, profile: &Value, words: &[&str]) -> Value {
    place.put("no-profile.json", profile.to_string().as_bytes());
    let mut command = place.command(&["--json"]);
    command.args(words).env_remove("LANEWORK_BACKEND");
    let output = command.output().expect("the command starts");
    assert_eq!(code(&output), 0, "{words:?}: {}", stderr(&output));
    json(&output.stdout)
}

#[test]
fn every_job_reads_its_choice() {
    let mut done: Vec<(&str, String)> = Vec::new();
    let mut places: Vec<(String, Place, Value)> = Vec::new();
    for job in Job::all() {
        // One job for each command, and each set of MAYO with it.
        let (command, set) = match job {
            Job::Mayo(params, _) => (job.command(), format!("{} {}", params.set(), params.round())),
            _ => (job.command(), "MAYO-2 round 3".to_owned()),
        };
        let command = command.expect("a command");
        if done.contains(&(command, set.clone())) {
            continue;
        }
        if !places.iter().any(|(of, ..)| *of == set) {
            let place = prepared(&set);
            yes(&place, &["magma", "encrypt", "--key-file", "key", "-o", "container", "one"]);
            yes(
                &place,
                &[
                    "vdf",
                    "prove",
                    "--challenge",
                    "0102",
                    "--iterations",
                    "3",
                    "-o",
                    "proof.json",
                    "--format",
                    "json",
                ],
            );
            let profile = empty(&place);
            places.push((set.clone(), place, profile));
        }
        let (_, place, profile) = places.iter().find(|(of, ..)| *of == set).expect("just made");
        let words = match job {
            Job::Mayo(params, lanework_suite::mayo::Operation::Keygen) => {
                let mut words: Vec<String> = words(job).into_iter().map(str::to_owned).collect();
                let name = params.set().to_string().to_lowercase().replace('-', "");
                words.extend(["--set".into(), name, "--round".into(), params.round().number().to_string()]);
                words
            }
            _ => words(job).into_iter().map(str::to_owned).collect(),
        };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let usual = ran(place, profile, &words);
        for backend in ["portable", usual["backend"].as_str().expect("a backend")] {
            let mut profile = profile.clone();
            let path = job.to_string();
            profile["choices"][&path] = object!({ "backend": backend, "ratio": 1.0 });
            assert_eq!(ran(place, &profile, &words)["backend"], backend, "{path}");
            if usual.get("threads").is_none() {
                continue;
            }
            for threads in [1, 3] {
                profile["choices"][&path]["threads"] = threads.into();
                let ran = ran(place, &profile, &words);
                // One file is one operation, however many threads a batch would use.
                let expected = if matches!(command, "mayo sign" | "mayo verify") { 1 } else { threads };
                assert_eq!((&ran["backend"], &ran["threads"]), (&backend.into(), &expected.into()), "{path}");
            }
        }
        done.push((command, set));
    }
    assert!(done.len() > 40, "{done:?}");
}

#[test]
fn the_nearest_size_is_taken_and_other_jobs_are_not() {
    let place = Place::new();
    place.put("key", &[0x5a; 32]);
    place.put("short", &[1; 60]);
    place.put("long", &[1; 1 << 20]);
    let mut profile = empty(&place);
    let ctr = |file| {
        [
            "magma",
            "encrypt",
            "--mode",
            "ctr",
            "--iv",
            "00000001",
            "--key-file",
            "key",
            "-o",
            "x",
            "--force",
            file,
        ]
    };
    let usual = ran(&place, &profile, &ctr("long"))["backend"].clone();
    profile["choices"] = object!({
        "magma/ctr/64": { "backend": "portable", "ratio": 1.0 },
        "magma/ctr/16777216": { "backend": usual, "ratio": 1.0, "threads": 1 },
        "magma/omac/16384": { "backend": "portable", "ratio": 1.0, "threads": 7 },
    });
    let short = ran(&place, &profile, &ctr("short"));
    let long = ran(&place, &profile, &ctr("long"));
    assert_eq!((&short["backend"], &long["backend"]), (&"portable".into(), &usual));
    // Only the long job's race was about threads.
    assert_eq!((&short["threads"], &long["threads"]), (&1.into(), &1.into()));
    // A backend asked for by name beats the profile.
    let forced =
        ran(&place, &profile, &[&["--backend", "portable"], &ctr("long")[..], &["--threads", "2"]].concat());
    assert_eq!((&forced["backend"], &forced["threads"]), (&"portable".into(), &2.into()));
}

#[test]
fn a_job_that_is_unknown_is_named() {
    let place = Place::new();
    place.put("key", &[0x5a; 32]);
    place.put("text", b"text");
    let mut profile = empty(&place);
    profile["choices"]["magma/rot13/64"] = object!({ "backend": "portable", "ratio": 1.0 });
    place.put("no-profile.json", profile.to_string().as_bytes());
    let refused = place.run(&["magma", "mac", "--key-file", "key", "text"]);
    assert_eq!(code(&refused), 2);
    assert!(stderr(&refused).contains("'magma/rot13/64' is not a job"), "{}", stderr(&refused));
}

#[test]
fn tune_writes_over_nothing_but_profiles_of_this_machine() {
    let place = Place::new();
    let ours = empty(&place);
    let tune = ["tune", "magma/ctr/16", "--seconds", "0.1", "--launches", "1"];
    let mut other = ours.clone();
    other["machine"]["cpu"] = "another".into();
    let mut newer = ours.clone();
    newer["schema"] = 99.into();
    // A user's own file is not replaced, whatever was asked for; a profile that cannot be used here is, if it was.
    for (content, may_force, says) in [
        ("my diary\n".to_owned(), false, "not a profile"),
        ("{\"name\":\"settings\"}".to_owned(), false, "not a profile"),
        (String::new(), false, "not a profile"),
        (other.to_string(), true, "a profile of another machine"),
        (newer.to_string(), true, "a profile of layout 99"),
    ] {
        place.put("no-profile.json", content.as_bytes());
        no(&place, &tune, 2, says);
        assert_eq!(place.get("no-profile.json"), content.as_bytes(), "{says}");
        // Nothing is written, so nothing is lost.
        yes(&place, &[&tune[..], &["--dry-run"]].concat());
        assert_eq!(place.get("no-profile.json"), content.as_bytes(), "{says}");
        let forced = place.run(&[&tune[..], &["--force"]].concat());
        assert_eq!(code(&forced), if may_force { 0 } else { 2 }, "{says}: {}", stderr(&forced));
        if may_force {
            assert_eq!(json(&place.get("no-profile.json"))["machine"], ours["machine"], "{says}");
        } else {
            assert_eq!(place.get("no-profile.json"), content.as_bytes(), "{says}");
        }
    }
    // Its own profile is extended.
    place.put("no-profile.json", ours.to_string().as_bytes());
    yes(&place, &tune);
    assert_eq!(json(&place.get("no-profile.json"))["machine"], ours["machine"]);
}
