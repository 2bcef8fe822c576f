//! `lanework vdf --checkpoint`: killed at any moment, it goes on to the same result; foreign and edited files are refused.
#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Place, code, json, stderr};

/// A generator that repeats (SplitMix64, Steele, Lea and Flood).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % n
    }
}

const PROVE: [&str; 10] =
    ["vdf", "prove", "--challenge", "c0ffee", "--bits", "512", "--iterations", "400000", "--witness", "2"];
const KEPT: [&str; 4] = ["--checkpoint", "kept", "--every", "0.01"];

fn proof(bytes: &[u8]) -> String {
    json(bytes)["proof"].as_str().expect("digits").to_owned()
}

/// Ends a child that this test started.
fn signal(child: &std::process::Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(sent.expect("kill can be run").success());
}

#[test]
fn killed_twenty_times_it_makes_the_same_proof() {
    let place = Place::new();
    let expected = place.run(&PROVE);
    assert_eq!(code(&expected), 0, "{}", stderr(&expected));
    let expected = proof(&expected.stdout);
    let ask = [&PROVE[..], &KEPT[..], &["-o", "proof.json"]].concat();
    let (mut random, mut kills, mut rounds, mut resumed) = (Random(20), 0, 0, 0);
    // Moments from the first to far into the work. A run that ends before its moment is checked, and the work starts again.
    while kills < 20 {
        rounds += 1;
        assert!(rounds < 400, "only {kills} kills");
        let mut child = place
            .command(&ask)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        // Half of them at any moment from the start, the others once something has been kept, however slow the machine is.
        let kept = || std::fs::metadata(place.path("kept")).map_or(0, |m| m.len());
        let before = kept();
        while rounds % 2 == 0 && kept() <= before && child.try_wait().expect("it is ours").is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(random.below(250)));
        // SIGKILL.
        child.kill().expect("it is ours");
        let end = child.wait().expect("it ends");
        if end.signal() == Some(9) && !place.path("proof.json").exists() {
            kills += 1;
            continue;
        }
        let made = place.get("proof.json");
        assert_eq!(proof(&made), expected, "after {kills} kills");
        resumed += json(&made)["resumed"].as_u64().expect("a number");
        std::fs::remove_file(place.path("proof.json")).expect("it is there");
        std::fs::remove_file(place.path("kept")).expect("it is there");
    }
    let last = place.run(&ask);
    assert_eq!(code(&last), 0, "{}", stderr(&last));
    let made = place.get("proof.json");
    assert_eq!(proof(&made), expected);
    resumed += json(&made)["resumed"].as_u64().expect("a number");
    assert!(resumed > 0, "no run was ever resumed");
    // Finished, it only has to be read.
    let again = place.run(&[&ask[..], &["--force"]].concat());
    assert_eq!(code(&again), 0, "{}", stderr(&again));
    assert_eq!(proof(&place.get("proof.json")), expected);
}

#[test]
fn a_first_signal_ends_it_cleanly() {
    let place = Place::new();
    for (name, status) in [("INT", 130), ("TERM", 143)] {
        // More than this machine squares while the test waits.
        let ask = ["vdf", "evaluate", "--challenge", "5eed", "--iterations", "4000000000"];
        let kept = format!("kept-{name}");
        let ask = [&ask[..], &["--checkpoint", &kept, "--every", "0.01", "-o", "y.json"]].concat();
        let start = |ask: &[&str]| {
            let mut command = place.signalled(ask);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("the command starts")
        };
        let child = start(&ask);
        // The file appears when the work has begun, and signals are handled by then.
        while std::fs::metadata(place.path(&kept)).map_or(0, |m| m.len()) < 1000 {
            std::thread::sleep(Duration::from_millis(10));
        }
        signal(&child, name);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        let told = stderr(&output);
        assert!(told.contains("interrupted after") && told.contains(&kept), "{told}");
        assert!(!place.path("y.json").exists() && output.stdout.is_empty());
        // The checkpoint can be used.
        let size = place.get(&kept).len();
        let child = start(&ask);
        while place.get(&kept).len() <= size {
            std::thread::sleep(Duration::from_millis(10));
        }
        signal(&child, name);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
    }
}

#[test]
fn foreign_and_edited_checkpoints_are_refused() {
    let place = Place::new();
    let ask = ["vdf", "evaluate", "--challenge", "0a", "--bits", "512", "--iterations", "20000"];
    let kept = ["--checkpoint", "kept", "--every", "0.001"];
    let made = place.run(&[&ask[..], &kept].concat());
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    let whole = place.get("kept");
    let refused = |args: &[&str], says: &str| {
        let output = place.run(&[args, &kept].concat());
        let told = stderr(&output);
        assert_eq!(code(&output), 2, "{args:?}: {told}");
        assert!(told.starts_with("error: kept: ") && told.contains("\nhelp: "), "{told}");
        assert!(told.contains(says), "{args:?}: {told}");
        assert!(output.stdout.is_empty());
    };
    let with = |at: usize, value: &'static str| {
        let mut ask = ask;
        ask[at] = value;
        ask
    };
    refused(&with(3, "0b"), "another computation: the discriminant");
    refused(&with(7, "20001"), "another computation: the number of squarings");
    refused(&with(1, "prove"), "another computation: it is for a proof");
    let y = json(&made.stdout)["y"].as_str().expect("digits").to_owned();
    refused(&[&ask[..], &["--input", &y]].concat(), "another computation: the input");
    assert_eq!(place.get("kept"), whole, "a refused file is left as it is");
    // Each significant byte changed; the last record may be torn, and is then made again.
    let (mut refusals, mut step) = (0, 1);
    for at in (0..whole.len()).step_by(1 + whole.len() / 97) {
        let mut edited = whole.clone();
        edited[at] ^= 1 << (at % 8);
        place.put("kept", &edited);
        let output = place.run(&[&ask[..], &kept].concat());
        match code(&output) {
            0 => assert_eq!(json(&output.stdout)["y"], y.as_str(), "byte {at}"),
            2 => refusals += 1,
            other => panic!("byte {at}: {other}: {}", stderr(&output)),
        }
        step += 1;
    }
    assert!(refusals * 2 > step, "{refusals} of {step} edits were refused");
    // Cut anywhere, it gives the same result.
    for cut in [0, 1, 7, whole.len() / 3, whole.len() / 2, whole.len() - 1] {
        place.put("kept", &whole[..cut]);
        let output = place.run(&[&ask[..], &kept].concat());
        assert_eq!(code(&output), 0, "cut at {cut}: {}", stderr(&output));
        assert_eq!(json(&output.stdout)["y"], y.as_str(), "cut at {cut}");
    }
    place.put("kept", b"Dear diary, today I squared nothing.\n");
    refused(&ask, "no checkpoint");
    std::fs::create_dir(place.path("folder")).expect("a directory");
    let output = place.run(&[&ask[..], &["--checkpoint", "folder"]].concat());
    assert_eq!(code(&output), 2);
    let output = place.run(&[&ask[..], &["--checkpoint", "no/such/place"]].concat());
    assert_eq!(code(&output), 2);
    let output = place.run(&[&ask[..], &["--every", "1"]].concat());
    assert_eq!(code(&output), 2, "--every without --checkpoint");
}

#[test]
fn a_checkpoint_that_is_removed_is_written_anew() {
    let place = Place::new();
    let ask = ["vdf", "evaluate", "--challenge", "5eed", "--iterations", "4000000000"];
    let ask = [&ask[..], &["--checkpoint", "kept", "--every", "0.01"]].concat();
    let mut command = place.signalled(&ask);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("the command starts");
    let size = || std::fs::metadata(place.path("kept")).map_or(0, |m| m.len());
    let mut grows_beyond = |bytes| {
        let waits = (0..3000).take_while(|_| size() <= bytes);
        waits.for_each(|_| std::thread::sleep(Duration::from_millis(10)));
        if size() <= bytes {
            child.kill().expect("it is ours");
            panic!("nothing is kept any more");
        }
    };
    grows_beyond(1000);
    let before = size();
    std::fs::remove_file(place.path("kept")).expect("it is there");
    grows_beyond(before);
    signal(&child, "INT");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let told = stderr(&output);
    assert!(told.contains("kept: was removed") && told.contains("kept keeps them"), "{told}");
}

/// What the command says from the moment it warns that the checkpoint `folder/kept` is lost, interrupted then.
fn lost(ask: &[&str], lose: fn(&std::path::Path)) -> String {
    let place = Place::new();
    let folder = place.path("folder");
    std::fs::create_dir(&folder).expect("a directory");
    let generator = format!("08{}", "00".repeat(99));
    let job = serde_json::json!({ "challenge": "5eed", "iterations": 4_000_000_000_u64, "y": generator });
    place.put("jobs", job.to_string().as_bytes());
    let mut command = place.signalled(&[ask, &["--every", "0.01"]].concat());
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("the command starts");
    let kept = || std::fs::read_dir(&folder).ok()?.next()?.ok()?.metadata().ok().map(|m| m.len());
    for _ in 0..3000 {
        if kept().is_some_and(|length| length > 1000) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    lose(&folder);
    let mut lines =
        BufReader::new(child.stderr.take().expect("a pipe")).lines().map(|line| line.expect("text"));
    let warning = lines.find(|line| line.starts_with("warning: ")).expect("a warning");
    signal(&child, "INT");
    let told = std::iter::once(warning).chain(lines).collect::<Vec<_>>().join("\n");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{told}");
    told
}

#[test]
fn what_was_lost_and_what_happens_now_is_said() {
    let evaluate = ["vdf", "evaluate", "--challenge", "5eed", "--iterations", "4000000000"];
    let evaluate = [&evaluate[..], &["--checkpoint", "folder/kept"]].concat();
    let compact = ["vdf", "compact", "--jobs", "jobs", "--memory", "1", "--checkpoint", "folder"];
    let remove: fn(&std::path::Path) = |folder| std::fs::remove_dir_all(folder).expect("removed");
    let replace: fn(&std::path::Path) = |folder| {
        let kept =
            std::fs::read_dir(folder).expect("a directory").next().expect("a file").expect("a file").path();
        let other = folder.join("other");
        std::fs::write(&other, "a diary").and_then(|()| std::fs::rename(other, kept)).expect("replaced");
    };
    let removed = "was removed and cannot be created again";
    let replaced = "was replaced by another file";
    for (lose, how, undo) in
        [(remove, removed, "restore its directory"), (replace, replaced, "move that file away")]
    {
        let warning = format!(
            "{how}: the work continues, but nothing of it is saved\nhelp: {undo}, and the next update"
        );
        let told = lost(&evaluate, lose);
        assert!(told.contains(&warning), "{told}");
        assert!(
            told.contains(&format!("they are lost: folder/kept {how}\nhelp: name another file")),
            "{told}"
        );
        let told = lost(&compact, lose);
        assert!(told.contains(&warning), "{told}");
        let end = format!("{how}\nhelp: {undo}; the same command then begins this chain anew");
        assert!(told.contains("the work on a chain is lost: folder/") && told.contains(&end), "{told}");
    }
}
