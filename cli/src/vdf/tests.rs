//! How often a discriminant is searched for: never if the input can be refused without it.
#![forbid(unsafe_code)]

use clap::Parser;
use lanework_study::Failure;
use lanework_vdf::Engine;

use super::args::VdfJob;
use super::{compact, prove, verify};
use crate::args::{Cli, Command};

/// Searches, and the exit code with its reason.
fn searches(line: &str) -> (usize, u8, String) {
    let cli = Cli::try_parse_from(line.split_whitespace()).expect("arguments that clap takes");
    let Some(Command::Vdf(args)) = cli.command else { panic!("{line}: another command") };
    let engine = Engine::portable();
    let mut count = 0;
    let mut find = |named: &super::group::Named| {
        count += 1;
        named.find(engine)
    };
    let done = match &args.job {
        VdfJob::Verify(args) => {
            verify::Asked::new(args).and_then(|asked| asked.verdict(&mut find)).map(|verdict| verdict.result)
        }
        VdfJob::Evaluate(args) => prove::begin(&args.chain, 0, find).map(|_| Ok(Vec::new())),
        VdfJob::Prove(args) => prove::begin(&args.chain, args.witness, find).map(|_| Ok(Vec::new())),
        VdfJob::Compact(args) => compact::chains(args, &mut find).map(|_| Ok(Vec::new())),
        _ => panic!("{line}: another job"),
    };
    let (code, why) = match done {
        Ok(Ok(_)) => (0, String::new()),
        Ok(Err(why)) => (1, why.what().to_owned()),
        Err(failure) => (Failure::code(&failure), failure.message().to_owned()),
    };
    (count, code, why)
}

#[test]
fn what_needs_no_group_is_refused_without_a_search() {
    let place = tempfile::tempdir().expect("a directory");
    let folder = place.path().display().to_string();
    let generator = format!("08{}", "00".repeat(99));
    let no_a = "00".repeat(100);
    let zeros = "00".repeat(33);
    // A segment of 2^64 - 1 squarings with B = 0.
    let segment = format!("{}{zeros}{generator}", "ff".repeat(8));
    let even = format!("{}{zeros}{generator}", "00".repeat(8));
    let proof = format!("{generator}{generator}");
    let long = lanework_vdf::serial::generator_bytes(2048);
    let long: String = long.iter().map(|byte| format!("{byte:02x}")).collect();
    let verify = "lanework vdf verify --challenge 00ff --bits 512 --iterations 100";
    let cases = [
        // From the issue: the longest search, for a proof that is too short.
        (
            "lanework vdf verify --challenge 00ff --bits 2048 --iterations 5 --proof 00".to_owned(),
            2,
            "1 bytes",
        ),
        (format!("{verify} --proof {generator}"), 2, "100 bytes"),
        (format!("{verify} --proof {proof}00"), 2, "201 bytes"),
        (format!("{verify} --proof {proof} --witness 1"), 2, "with this many segments it has 341"),
        (format!("{verify} --proof {proof} --witness 64"), 2, "at most 63"),
        (format!("{verify} --proof {proof} --b {zeros}"), 2, "with this many segments it has 100"),
        (format!("{verify} --proof {generator} --b {zeros}"), 1, "no prime"),
        (format!("{verify} --proof {proof}{segment} --witness 1"), 1, "more squarings than are left"),
        (format!("{verify} --proof {proof}{even} --witness 1"), 1, "no prime"),
        (format!("{verify} --proof {no_a}{generator}"), 2, "the result: a is 0"),
        (format!("{verify} --proof {generator}{no_a}"), 2, "the last proof: a is 0"),
        (format!("{verify} --proof {proof} --input 0800"), 2, "--input: a form of 2 bytes"),
        (format!("{verify} --proof {proof} --input {no_a}"), 2, "--input: a is 0"),
        (
            format!("lanework vdf verify --challenge 00ff --bits 512 --iterations 0 --proof {proof}"),
            2,
            "no squarings",
        ),
        (
            format!(
                "lanework vdf verify --challenge 00ff --bits 512 --iterations 281474976710657 --proof {proof}"
            ),
            2,
            "at most 281474976710656",
        ),
        (
            format!(
                "lanework vdf verify --challenge 00ff --bits 2048 --iterations 5 --proof {long}02{}",
                &long[2..]
            ),
            2,
            "the last proof: version 2",
        ),
        (
            "lanework vdf evaluate --challenge 00ff --bits 2048 --iterations 5 --input 0800".to_owned(),
            2,
            "--input",
        ),
        ("lanework vdf evaluate --challenge 00ff --bits 2048 --iterations 0".to_owned(), 2, "--iterations"),
        (
            "lanework vdf prove --challenge 00ff --bits 2048 --iterations 5 --witness 1".to_owned(),
            2,
            "--witness",
        ),
        (
            format!(
                "lanework vdf evaluate --challenge 00ff --bits 2048 --iterations 5 --checkpoint {folder}"
            ),
            2,
            "not a file",
        ),
        (
            format!(
                "lanework vdf prove --challenge 00ff --bits 2048 --iterations 5 --checkpoint {folder}/no/such"
            ),
            2,
            "no: ",
        ),
    ];
    for (line, code, says) in cases {
        let (count, got, why) = searches(&line);
        assert_eq!((count, got), (0, code), "{line}: {why}");
        assert!(why.contains(says), "{line}: {why}");
    }
}

/// The counter counts: a well-formed false proof needs the group, and so does a chain.
#[test]
fn what_needs_the_group_searches_it_once() {
    let generator = format!("08{}", "00".repeat(99));
    for (line, code) in [
        (
            format!(
                "lanework vdf verify --challenge 00ff --bits 512 --iterations 5 --proof {generator}{generator}"
            ),
            1,
        ),
        ("lanework vdf evaluate --challenge 00ff --bits 512 --iterations 5".to_owned(), 0),
        ("lanework vdf prove --challenge 00ff --bits 512 --iterations 70000 --witness 1".to_owned(), 0),
    ] {
        let (count, got, why) = searches(&line);
        assert_eq!((count, got), (1, code), "{line}: {why}");
    }
}

/// Jobs of one challenge and length share the search.
#[test]
fn a_list_searches_each_group_once() {
    let place = tempfile::tempdir().expect("a directory");
    let jobs = place.path().join("jobs");
    let y = format!("08{}", "00".repeat(99));
    let line = |challenge: &str, bits: usize| {
        serde_json::json!({ "challenge": challenge, "bits": bits, "iterations": 5, "y": y }).to_string()
    };
    let lines =
        [line("00ff", 256), line("00fe", 256), line("00ff", 256), line("00ff", 512), line("00ff", 256)];
    std::fs::write(&jobs, lines.join("\n")).expect("a file");
    let (count, code, why) = searches(&format!("lanework vdf compact --jobs {}", jobs.display()));
    assert_eq!((count, code), (3, 0), "{why}");
}
