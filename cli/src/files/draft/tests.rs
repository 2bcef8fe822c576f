use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::*;

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn draft(path: &Path, access: Access, unnamed: bool, text: &[u8]) -> Draft {
    let mut draft = Draft::of_kind(path, access, unnamed).unwrap();
    draft.file().write_all(text).unwrap();
    draft
}

/// Both kinds behave alike; only the one with a name is visible meanwhile.
#[test]
fn a_draft_shows_nothing_of_itself_until_it_is_placed() {
    for unnamed in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new");
        let made = draft(&path, Access::Public, unnamed, b"text");
        let meanwhile: &[&str] = if unnamed { &[] } else { &[".lanework-0.tmp"] };
        assert_eq!(names(folder.path()), meanwhile);
        if !unnamed {
            assert_eq!(mode(&folder.path().join(".lanework-0.tmp")), 0o600);
        }
        Draft::place_all(vec![made], false).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"text");
        // Not replaced unasked, and an unplaced draft leaves nothing behind.
        let made = draft(&path, Access::Public, unnamed, b"other");
        let (at, e) = Draft::place_all(vec![made], false).unwrap_err();
        assert_eq!((at, e.kind()), (0, io::ErrorKind::AlreadyExists));
        drop(draft(&path, Access::Public, unnamed, b"dropped"));
        assert_eq!(fs::read(&path).unwrap(), b"text");
        Draft::place_all(vec![draft(&path, Access::Public, unnamed, b"other")], true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"other");
        assert_eq!(names(folder.path()), ["new"]);
    }
}

#[test]
fn rights_are_the_stricter_ones() {
    for unnamed in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let put = |access| Draft::place_all(vec![draft(&path, access, unnamed, b"")], true).unwrap();
        put(Access::Private);
        assert_eq!(mode(&path), 0o600);
        put(Access::Public);
        assert_eq!(mode(&path), 0o600, "what was private stays private");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o440)).unwrap();
        put(Access::Public);
        assert_eq!(mode(&path), 0o440);
        put(Access::Private);
        assert_eq!(mode(&path), 0o400);
    }
}

#[test]
fn what_a_killed_run_left_is_removed_and_what_a_living_one_holds_is_not() {
    for unnamed in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let left = |n: usize| folder.path().join(temporary(n));
        let put = |n| fs::OpenOptions::new().mode(0o600).create_new(true).write(true).open(left(n)).unwrap();
        let held = put(0);
        flock(&held, FlockOperation::LockExclusive).unwrap();
        drop(put(1));
        drop(put(2));
        let path = folder.path().join("file");
        fs::write(&path, "old").unwrap();
        let made = draft(&path, Access::Private, unnamed, b"new");
        assert!(left(0).exists() && !left(2).exists());
        Draft::place_all(vec![made], true).unwrap();
        assert_eq!(names(folder.path()), [".lanework-0.tmp", "file"]);
        assert_eq!(fs::read(&path).unwrap(), b"new");
        // A name that is not a file was not left by a run.
        drop(held);
        fs::remove_file(left(0)).unwrap();
        std::os::unix::fs::symlink("file", left(0)).unwrap();
        Draft::place_all(vec![draft(&path, Access::Private, unnamed, b"newer")], true).unwrap();
        assert_eq!(names(folder.path()), [".lanework-0.tmp", "file"]);
    }
}

#[test]
fn of_several_all_are_placed_or_none() {
    for unnamed in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        let both =
            || vec![draft(&a, Access::Private, unnamed, b"1"), draft(&b, Access::Public, unnamed, b"2")];
        let drafts = both();
        fs::write(&b, "in the way").unwrap();
        assert_eq!(Draft::place_all(drafts, false).unwrap_err().0, 1);
        assert_eq!(names(folder.path()), ["b"], "the first was taken back");
        fs::remove_file(&b).unwrap();
        Draft::place_all(both(), false).unwrap();
        assert_eq!(names(folder.path()), ["a", "b"]);
        assert_ne!(fs::metadata(&a).unwrap().ino(), fs::metadata(&b).unwrap().ino());
    }
}

/// The variable that tells this test, run as its own child, where to make its file.
const PLACE: &str = "LANEWORK_TEST_DRAFT";

/// File systems without unnamed files are rare, so a child of this test makes a file that has a name from the start.
#[test]
fn a_signal_removes_a_named_draft() {
    if let Some(path) = std::env::var_os(PLACE) {
        signals::listen().unwrap();
        let _made = draft(&PathBuf::from(path), Access::Private, false, b"secret");
        println!("made");
        loop {
            std::thread::park();
        }
    }
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM, rustix::process::Signal::HUP]
    {
        let folder = tempfile::tempdir().unwrap();
        // If the tests run under `nohup`, the child would ignore the signal too.
        let mut child = Command::new("env")
            .arg("--default-signal")
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "files::draft::tests::a_signal_removes_a_named_draft"])
            .env(PLACE, folder.path().join("new"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut said, mut piece) = (String::new(), [0; 64]);
        let out = child.stdout.as_mut().unwrap();
        while !said.contains("made") {
            let n = out.read(&mut piece).unwrap();
            assert_ne!(n, 0, "{said}");
            said += &String::from_utf8_lossy(&piece[..n]);
        }
        assert_eq!(names(folder.path()), [".lanework-0.tmp"]);
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
        let end = std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap());
        assert_eq!(end, Some(signal.as_raw()));
        assert!(names(folder.path()).is_empty(), "{signal:?}");
    }
}

#[test]
fn a_file_of_another_group_gives_it_nothing() {
    let modes = [0o666, 0o640].map(Mode::from_raw_mode);
    assert_eq!(allowed(modes[0], None).as_raw_mode(), 0o666);
    assert_eq!(allowed(modes[0], Some((modes[1], true))).as_raw_mode(), 0o640);
    assert_eq!(allowed(modes[0], Some((modes[1], false))).as_raw_mode(), 0o600);
}
