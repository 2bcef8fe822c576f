//! Signals at any moment: they leave no file behind, no half of a pair, and no terminal without echo.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{PROGRAM, Place, code, stderr, yes};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};

const SIGNALS: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::KILL];
/// Moments of each run, from its start to beyond its end.
const MOMENTS: u32 = 12;

fn start(place: &Place, args: &[&str]) -> Child {
    let mut command = place.signalled(args);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("the command starts")
}

fn whole(bytes: &[u8]) -> bool {
    bytes.starts_with(b"-----BEGIN") && bytes.ends_with(b"KEY-----\n")
}

type Check<'a> = dyn Fn(&[Option<Vec<u8>>], bool) + 'a;

/// Sends each signal at moments over the whole run. `check` gets what the outputs hold afterwards, and whether the signal let
/// the command see it.
fn sweep(
    place: &Place,
    inputs: &[&str],
    outputs: &[&str],
    args: &[&str],
    prepare: &dyn Fn(),
    check: &Check<'_>,
) {
    prepare();
    let begin = Instant::now();
    assert!(start(place, args).wait().expect("it ends").success(), "{args:?}");
    let whole_run = begin.elapsed();
    let (mut ended, mut left_behind) = (0, 0);
    for signal in SIGNALS {
        for moment in 0..MOMENTS {
            prepare();
            let mut child = start(place, args);
            std::thread::sleep(whole_run * (2 * moment + 1) / (2 * MOMENTS - 4));
            // Not reaped yet, so the number is still its own.
            kill_process(Pid::from_child(&child), signal).expect("it is ours");
            let end = child.wait().expect("it ends");
            assert!(end.success() || end.signal() == Some(signal.as_raw()), "{args:?}: {end}");
            ended += u32::from(!end.success());
            let mut left: Vec<String> = place.names();
            left.retain(|name| !inputs.contains(&&**name) && !outputs.contains(&&**name));
            if signal == Signal::KILL && left.len() == 1 {
                assert!(left[0].starts_with(".lanework-") && left[0].ends_with(".tmp"), "{left:?}");
                let mode = fs::metadata(place.path(&left[0])).expect("it is there").permissions().mode();
                assert_eq!(mode & 0o077, 0, "{left:?}");
                left_behind += 1;
            } else {
                assert_eq!(left, Vec::<String>::new(), "{args:?} after {signal:?}");
            }
            let held: Vec<_> = outputs.iter().map(|name| fs::read(place.path(name)).ok()).collect();
            check(&held, signal != Signal::KILL);
        }
    }
    assert!(ended >= 4, "only {ended} runs were ended by a signal");
    // The next run removes leftovers.
    prepare();
    yes(place, args);
    let mut all: Vec<String> = [inputs, outputs].concat().iter().map(|&name| name.to_owned()).collect();
    all.sort();
    assert_eq!(place.names(), all, "{args:?} after {left_behind} rests");
}

#[test]
fn key_generation_leaves_two_keys_or_none() {
    let place = Place::new();
    let args = ["mayo", "keygen", "--set", "mayo5", "--secret-key", "sk", "--public-key", "pk"];
    let clear = || {
        for name in ["sk", "pk"] {
            let _ = fs::remove_file(place.path(name));
        }
    };
    sweep(&place, &[], &["sk", "pk"], &args, &clear, &|held, seen| {
        assert!(held.iter().flatten().all(|key| whole(key)));
        // SIGKILL can come between the two; the secret key is the first.
        assert!(held[0].is_some() == held[1].is_some() || (!seen && held[0].is_some()), "half a pair");
    });
    clear();
    yes(&place, &args);
    let old = ["sk", "pk"].map(|name| place.get(name));
    let restore = || {
        place.put("sk", &old[0]);
        place.put("pk", &old[1]);
    };
    sweep(&place, &[], &["sk", "pk"], &[&args[..], &["--force"]].concat(), &restore, &|held, seen| {
        let held: Vec<&Vec<u8>> = held.iter().map(|key| key.as_ref().expect("it was there before")).collect();
        assert!(held.iter().all(|key| whole(key)));
        let new = [*held[0] != old[0], *held[1] != old[1]];
        assert!(new[0] == new[1] || (!seen && new[0]), "half a pair is new");
    });
}

#[test]
fn decryption_leaves_the_whole_or_nothing() {
    let place = Place::new();
    place.put("key", &[7; 32]);
    let text: Vec<u8> = (0..8_000_000u32).map(|i| ((i * 7) >> 3) as u8).collect();
    place.put("text", &text);
    yes(&place, &["magma", "encrypt", "--key-file", "key", "-o", "box", "text"]);
    let args = ["magma", "decrypt", "--key-file", "key", "-o", "out", "box"];
    let clear = || {
        let _ = fs::remove_file(place.path("out"));
    };
    let inputs = ["box", "key", "text"];
    sweep(&place, &inputs, &["out"], &args, &clear, &|held, _| {
        assert!(held[0].as_ref().is_none_or(|out| *out == text));
    });
    let restore = || place.put("out", b"as it was");
    sweep(&place, &inputs, &["out"], &[&args[..], &["--force"]].concat(), &restore, &|held, _| {
        let out = held[0].as_ref().expect("it was there before");
        assert!(out == b"as it was" || *out == text);
    });
}

#[test]
fn signals_that_were_ignored_stay_so() {
    let place = Place::new();
    place.put("key", &[7; 32]);
    place.put("text", b"some text");
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().expect("mkfifo runs").success());
    let mut shell = Command::new("sh");
    shell.arg("-c").arg("trap '' HUP INT; exec \"$0\" \"$@\"").args([
        PROGRAM,
        "magma",
        "encrypt",
        "--key-file",
        "key",
        "-o",
        "box",
        "pipe",
    ]);
    let mut child = shell.current_dir(place.path("")).spawn().expect("a shell");
    // Opens when the other end has been opened for reading, and the output comes before the input is read.
    let mut pipe = fs::OpenOptions::new().write(true).open(place.path("pipe")).expect("the pipe opens");
    let pid = Pid::from_child(&child);
    until("signals are listened for", || threads(&child).iter().any(|name| name == "signals"));
    kill_process(pid, Signal::HUP).expect("it is ours");
    kill_process(pid, Signal::INT).expect("it is ours");
    pipe.write_all(b"more text").expect("it is read");
    drop(pipe);
    assert!(child.wait().expect("it ends").success());
    assert!(place.path("box").exists());
}

fn threads(child: &Child) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).into_iter().flatten().flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.map(|name| name.trim().to_owned()).collect()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it never happened that {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A terminal with the command in its foreground, waiting for a passphrase.
struct Prompt {
    keyboard: File,
    terminal: File,
    child: Child,
}

impl Prompt {
    fn new(place: &Place) -> Prompt {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).expect("ours");
        unlockpt(&master).expect("ours");
        let name = ptsname(&master, Vec::new()).expect("it has a name").into_string().expect("text");
        // Held open, and not this process's controlling terminal.
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let terminal = rustix::fs::open(&*name, flags, rustix::fs::Mode::empty()).expect("it opens");
        let command = place.signalled(&[
            "magma",
            "encrypt",
            "--passphrase",
            "--iterations",
            "1000",
            "-o",
            "box",
            "text",
        ]);
        // The leader of a new session: the first terminal that it opens becomes the session's.
        let mut shell = Command::new("setsid");
        shell.args(["sh", "-c", &format!("ulimit -c 0; exec \"$0\" \"$@\" <{name} >{name} 2>{name}")]);
        shell.arg(command.get_program()).args(command.get_args()).current_dir(place.path(""));
        shell.env("LANEWORK_PROFILE", place.path("no-profile.json"));
        let child = shell.spawn().expect("setsid (util-linux) is there");
        let prompt = Prompt { keyboard: File::from(master), terminal: File::from(terminal), child };
        until("the passphrase is asked for", || !prompt.echoes());
        prompt
    }

    fn echoes(&self) -> bool {
        tcgetattr(&self.terminal).expect("a terminal").local_modes.contains(LocalModes::ECHO)
    }

    fn press(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).expect("a keyboard");
    }

    /// The state of the command, as the system's letter.
    fn state(&self) -> char {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it is there");
        stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).expect("a letter")
    }
}

#[test]
fn a_signal_at_the_prompt_gives_the_echo_back() {
    let place = Place::new();
    place.put("text", b"some text");
    // Ctrl-C and Ctrl-\ as a terminal sends them, the others as others do.
    for (key, signal) in
        [(&b"\x03"[..], Signal::INT), (b"\x1c", Signal::QUIT), (b"", Signal::TERM), (b"", Signal::HUP)]
    {
        let mut prompt = Prompt::new(&place);
        if key.is_empty() {
            kill_process(Pid::from_child(&prompt.child), signal).expect("it is ours");
        } else {
            prompt.press(key);
        }
        let end = prompt.child.wait().expect("it ends");
        assert_eq!(end.signal(), Some(signal.as_raw()), "{end}");
        assert!(prompt.echoes(), "no echo after {signal:?}");
        assert_eq!(place.names(), ["text"]);
    }
}

#[test]
fn suspended_at_the_prompt_it_gives_the_echo_back_and_takes_it_again() {
    let place = Place::new();
    place.put("text", b"some text");
    let mut prompt = Prompt::new(&place);
    prompt.press(b"half of a passphr\x1a");
    until("it is suspended", || prompt.state() == 'T');
    assert!(prompt.echoes(), "no echo while it is suspended");
    kill_process(Pid::from_child(&prompt.child), Signal::CONT).expect("it is ours");
    until("it asks again", || !prompt.echoes());
    prompt.press(b"a passphrase\n");
    // The second question discards what was typed before it.
    let mut shown = Vec::new();
    let mut piece = [0; 256];
    while !String::from_utf8_lossy(&shown).contains("passphrase again: ") {
        let n = prompt.keyboard.read(&mut piece).expect("a screen");
        shown.extend_from_slice(&piece[..n]);
    }
    prompt.press(b"a passphrase\n");
    assert!(prompt.child.wait().expect("it ends").success());
    assert!(prompt.echoes());
    let shown = String::from_utf8_lossy(&shown);
    assert!(!shown.contains("a passphrase") && shown.matches("passphrase: ").count() == 2, "{shown:?}");
    place.put("words", b"a passphrase\n");
    let back = place.run(&["magma", "decrypt", "--passphrase-file", "words", "box"]);
    assert_eq!((code(&back), &back.stdout[..]), (0, &b"some text"[..]), "{}", stderr(&back));
}
