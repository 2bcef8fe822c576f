//! `lanework report`, `history`, `bench --process` and the records between them, as their users run them. Nothing here depends on how
//! long anything takes: regressions are planted a thousandfold.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn lanework(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lanework"))
        .args(args)
        .current_dir(folder)
        .env("LANEWORK_PROFILE", folder.join("no-such-profile.json"))
        .env_remove("LANEWORK_MASK")
        .env_remove("LANEWORK_BACKEND")
        .output()
        .expect("the command runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&output.stderr)))
}

/// A short race, saved. Every machine has the portable backend.
fn saved(folder: &Path) -> PathBuf {
    let race = [
        "bench",
        "magma/ctr/1024",
        "--only",
        "avx2",
        "--seconds",
        "0.5",
        "--launches",
        "1",
        "--save",
        "--save-samples",
    ];
    let output = lanework(folder, &race);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    let path = said.lines().find_map(|l| l.strip_prefix("saved: ")).expect("says where");
    folder.join(path)
}

/// A copy of a record in the plain schema, changed.
fn changed(from: &Path, to: &str, change: impl FnOnce(&mut serde_json::Value)) -> PathBuf {
    let record = lanework_race::record::Record::load(from).expect("a record");
    let mut value: serde_json::Value = serde_json::from_str(&record.to_json().expect("JSON")).expect("JSON");
    change(&mut value);
    let path = from.with_file_name(to);
    std::fs::write(&path, value.to_string()).expect("written");
    path
}

/// The record itself with figures that do not depend on how busy the machine was.
fn steady(record: &Path) {
    let name = record.file_name().and_then(|name| name.to_str()).expect("a name");
    changed(record, name, |v| {
        for row in v["results"].as_array_mut().expect("results") {
            let median = row["median"].clone();
            for field in ["mean", "min", "q1", "q3"] {
                row[field] = median.clone();
            }
            row["samples"].as_array_mut().expect("samples").fill(median);
            (row["low"], row["ratio"], row["high"]) = (2.49.into(), 2.5.into(), 2.51.into());
            (row["noise"], row["detectable"], row["verdict"]) = (0.001.into(), 0.01.into(), "faster".into());
        }
    });
}

/// As if everything had once been that many times as fast against its baseline.
fn once_better(value: &mut serde_json::Value, times: f64) {
    value["date"] = "2001-01-01T00:00:00Z".into();
    for row in value["results"].as_array_mut().expect("results") {
        for field in ["ratio", "low", "high"] {
            row[field] = (row[field].as_f64().expect("a number") * times).into();
        }
        row["verdict"] = "faster".into();
        (row["noise"], row["detectable"]) = (0.01.into(), 0.02.into());
    }
}

#[test]
fn a_record_becomes_a_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let none = lanework(folder.path(), &["report"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("no such directory of records"), "{}", text(&none.stderr));
    std::fs::create_dir(folder.path().join("empty")).expect("a folder");
    let none = lanework(folder.path(), &["report", "--records", "empty"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("no records"), "{}", text(&none.stderr));
    let record = saved(folder.path());
    assert!(std::fs::read_to_string(&record).expect("read").contains("\"schema\":2"));
    assert_eq!(lanework(folder.path(), &["report"]).status.code(), Some(0));
    let page = std::fs::read_to_string(folder.path().join("report.html")).expect("a page");
    assert!(page.contains("<svg ") && page.contains("lanework bench magma/ctr/1024"));
    // Not replaced unasked; a file that is not a record is named.
    assert_eq!(lanework(folder.path(), &["report"]).status.code(), Some(2));
    assert_eq!(lanework(folder.path(), &["report", "--force"]).status.code(), Some(0));
    std::fs::write(folder.path().join("bad.json"), "{\"schema\":9}").expect("written");
    let bad = lanework(folder.path(), &["report", "bad.json", "-o", "-"]);
    assert_eq!(bad.status.code(), Some(2));
    assert!(text(&bad.stderr).contains("bad.json: the record has schema 9"), "{}", text(&bad.stderr));
    let endless = lanework(folder.path(), &["report", "/dev/zero", "-o", "-"]);
    assert!(text(&endless.stderr).contains("/dev/zero: longer than 67108864 bytes"), "{endless:?}");
}

/// A folder with one good record and two other files: every command that reads it does what it can, names the two, and exits 2.
#[test]
fn files_that_cannot_be_read_are_named_and_hold_nothing_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = saved(folder.path());
    let bad = record.with_file_name("a-cut.json");
    std::fs::write(&bad, "{\"schema\":2,").expect("written");
    std::fs::create_dir(record.with_file_name("b-folder.json")).expect("made");
    let run = |args: &[&str]| {
        let output = lanework(folder.path(), args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        for name in ["2 files were skipped", "a-cut.json: not a record", "b-folder.json: not a regular file"]
        {
            assert!(said.contains(name), "{args:?}: {said}");
        }
        output
    };
    let skipped = |answer: &serde_json::Value| {
        let files = answer["skipped"].as_array().expect("a list").clone();
        assert_eq!(files.len(), 2, "{answer}");
        assert!(files[0]["file"].as_str().is_some_and(|f| f.ends_with("a-cut.json")), "{answer}");
        assert!(files[1]["why"].as_str().is_some_and(|w| w.contains("not a regular file")), "{answer}");
    };
    assert!(text(&run(&["history", "list"]).stdout).contains("bench-magma/ctr/1024-only-avx2"));
    let listed = json(&run(&["--json", "history", "list"]));
    assert_eq!(listed["records"].as_array().map(Vec::len), Some(1));
    skipped(&listed);
    let plot = run(&["--json", "history", "plot", "magma/ctr/1024"]);
    assert_eq!(json(&plot)["points"].as_array().map(Vec::len), Some(1));
    skipped(&json(&plot));
    run(&["history", "plot", "magma/ctr/9"]);
    let check = run(&["--json", "history", "check"]);
    assert_eq!((json(&check)["studies"].as_u64(), json(&check)["regressions"].as_u64()), (Some(0), Some(0)));
    skipped(&json(&check));
    skipped(&json(&run(&["--json", "report"])));
    let page = std::fs::read_to_string(folder.path().join("report.html")).expect("a page");
    assert!(page.contains("lanework bench magma/ctr/1024"));
    // If it is asked for by name, there is only an error.
    let named = lanework(folder.path(), &["report", &bad.display().to_string(), "-o", "-"]);
    assert!(named.status.code() == Some(2) && named.stdout.is_empty());
    // A folder of only such files is not an empty folder.
    std::fs::remove_file(&record).expect("removed");
    run(&["report", "--force"]);
    let studies = folder.path().join("studies/broken");
    std::fs::create_dir_all(&studies).expect("made");
    std::fs::write(studies.join("study.toml"), "question = ").expect("written");
    let list = lanework(folder.path(), &["study", "list"]);
    assert_eq!(list.status.code(), Some(2));
    assert!(text(&list.stderr).contains("broken/study.toml"), "{}", text(&list.stderr));
}

/// The pairs that a launch must have do not fit such a budget for the largest messages.
#[test]
fn launches_that_outrun_their_budget_are_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let race = ["bench", "magma/ctr", "--only", "portable,avx2", "--seconds", "0.1", "--launches", "3"];
    let output = lanework(folder.path(), &race);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let told: Vec<&str> =
        said.lines().filter(|l| l.starts_with("remark: ") && l.contains("budget")).collect();
    assert_eq!(told.len(), 1, "{said}");
    let (over, of) = told[0]["remark: ".len()..].split_once(" of ").expect("how many of how many");
    assert!(over.parse::<u32>().is_ok_and(|n| n >= 3), "{}", told[0]);
    assert!(of.starts_with("24 launches outran their budget"), "{}", told[0]);
}

#[test]
fn what_a_study_said_is_on_the_page_and_so_is_a_remark() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = saved(folder.path());
    let of_study = changed(&record, "study.json", |v| {
        v["study"] = "planted".into();
        v["page"] = "# Does it?\n\n| a | b |\n|---|---|\n| x | ×1.23 |\n\n- **HOLDS**\n".into();
    });
    let page = lanework(folder.path(), &["report", &of_study.display().to_string(), "-o", "-"]);
    let page = text(&page.stdout);
    for part in ["<h3>Does it?</h3>", "<td>×1.23</td>", "<strong>HOLDS</strong>"] {
        assert!(page.contains(part), "the page lacks {part}");
    }
    let race = ["--json", "bench", "magma/ctr/16", "--only", "avx2", "--seconds", "0.5", "--launches", "1"];
    let remarked = json(&lanework(folder.path(), &[&race[..], &["--remark", "made under load"]].concat()));
    assert!(remarked["remarks"].as_array().expect("remarks").contains(&"made under load".into()));
}

#[test]
fn history_lists_compares_and_plots() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(lanework(folder.path(), &["history", "list"]).status.code(), Some(0));
    let record = saved(folder.path());
    steady(&record);
    let path = record.display().to_string();
    let listed = json(&lanework(folder.path(), &["--json", "history", "list"]));
    assert_eq!(listed["records"].as_array().map(Vec::len), Some(1));
    assert_eq!(listed["records"][0]["study"], "bench-magma/ctr/1024-only-avx2");
    // With itself: nothing moved, and nothing is called faster.
    let same = json(&lanework(folder.path(), &["--json", "history", "compare", &path, &path]));
    assert_eq!(same["machines"], serde_json::json!([]));
    for change in same["changes"].as_array().expect("changes") {
        assert!(change["time"]["verdict"] != "faster" && change["time"]["verdict"] != "slower", "{change}");
    }
    // Another machine, a hundred times as slow and then no slower than noise.
    let other = |name: &str, times: f64| {
        changed(&record, name, |v| {
            v["machine"]["cpu"] = "Another CPU".into();
            for row in v["results"].as_array_mut().expect("results") {
                for field in ["median", "mean", "min", "q1", "q3"] {
                    row[field] = (row[field].as_f64().expect("a number") * times).into();
                }
                for sample in row["samples"].as_array_mut().expect("samples") {
                    *sample = (sample.as_f64().expect("a number") * times).into();
                }
            }
        })
        .display()
        .to_string()
    };
    let slow =
        text(&lanework(folder.path(), &["history", "compare", &path, &other("slow.json", 100.0)]).stdout);
    assert!(slow.contains("Two machines") && slow.contains("A is faster"), "{slow}");
    let near =
        text(&lanework(folder.path(), &["history", "compare", &path, &other("near.json", 1.02)]).stdout);
    assert!(near.contains("cannot tell") && !near.contains("is faster"), "{near}");
    // One figure over time.
    let plot = lanework(folder.path(), &["history", "plot", "magma/ctr/1024", "-o", "plot.svg"]);
    assert_eq!(plot.status.code(), Some(0), "{}", text(&plot.stderr));
    assert_eq!(text(&plot.stdout).lines().filter(|l| l.contains('*')).count(), 3);
    assert!(
        text(&plot.stdout).contains("avx2 against portable, times as fast, from ×"),
        "{}",
        text(&plot.stdout)
    );
    let svg = std::fs::read_to_string(folder.path().join("plot.svg")).expect("a plot");
    assert!(svg.starts_with("<svg ") && svg.contains("times as fast as the baseline"), "{svg}");
    let none = lanework(folder.path(), &["history", "plot", "magma/ctr/9"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("magma/ctr/1024"));
    let none = lanework(folder.path(), &["history", "plot", "magma/ctr/1024", "--variant", "zzz"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("'zzz'\nhelp: choose among avx2"), "{}", text(&none.stderr));
}

#[test]
fn a_planted_regression_is_raced_again_and_exits_1() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = saved(folder.path());
    let check = ["--json", "history", "check", "--seconds", "0.5", "--launches", "1"];
    // One record is not a history.
    let alone = lanework(folder.path(), &check);
    assert_eq!(alone.status.code(), Some(3), "{}", text(&alone.stdout));
    assert_eq!(json(&alone)["studies"], 0);
    assert!(text(&alone.stderr).contains("nothing was compared"), "{}", text(&alone.stderr));
    // Once a thousand times as fast: the race, run again, cannot reach that either.
    let old = changed(&record, "old.json", |v| once_better(v, 1000.0));
    let found = lanework(folder.path(), &check);
    assert_eq!(found.status.code(), Some(1), "{}", text(&found.stdout));
    let answer = json(&found);
    assert_eq!(answer["regressions"], 1);
    assert_eq!(answer["suspects"][0]["again"]["step"]["verdict"], "slower");
    // The same suspicion in another machine's records does not concern this one.
    std::fs::remove_file(&old).expect("removed");
    changed(&record, "old.json", |v| {
        once_better(v, 1000.0);
        v["machine"]["cpu"] = "Another CPU".into();
    });
    assert_eq!(lanework(folder.path(), &check).status.code(), Some(3), "nothing of this machine is compared");
    // A newest record that is wrong, a thousandfold too slow: raced again it is not borne out.
    std::fs::remove_file(&old).expect("removed");
    changed(&record, "new.json", |v| {
        v["date"] = "2999-01-01T00:00:00Z".into();
        for row in v["results"].as_array_mut().expect("results") {
            for field in ["ratio", "low", "high"] {
                row[field] = (row[field].as_f64().expect("a number") / 1000.0).into();
            }
            row["verdict"] = "slower".into();
        }
    });
    let wolf = lanework(folder.path(), &check);
    assert_eq!(wolf.status.code(), Some(0), "{}", text(&wolf.stdout));
    assert_eq!(
        (json(&wolf)["suspects"].as_array().map(Vec::len), json(&wolf)["regressions"].as_u64()),
        (Some(1), Some(0))
    );
}

#[test]
fn two_builds_are_raced_process_by_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = saved(folder.path());
    changed(&record, "old.json", |v| once_better(v, 1000.0));
    // The old executable is this very one: it is not worse by a factor of a thousand.
    let old = env!("CARGO_BIN_EXE_lanework");
    let found = lanework(folder.path(), &["--json", "history", "check", "--old", old, "--seconds", "1"]);
    let answer = json(&found);
    assert_eq!(answer["suspects"][0]["again"]["how"], "both executables in pairs", "{answer}");
    let factor = answer["suspects"][0]["again"]["step"]["factor"].as_f64().expect("a factor");
    assert!((0.01..100.0).contains(&factor), "{factor}");
    // What cannot be checked does not pass: an old executable that is missing or not Lanework, a folder, a study, a race.
    for (more, code, named) in [
        (["--old", "/no/such/file"], 2, "/no/such/file"),
        (["--old", "/bin/true"], 2, "not a Lanework binary"),
        (["--records", "nowhere"], 2, "nowhere"),
        (["--study", "nosuch"], 2, "bench-magma/ctr/1024-only-avx2"),
    ] {
        let refused = lanework(folder.path(), &[&["--json", "history", "check"], &more[..]].concat());
        assert_eq!(refused.status.code(), Some(code), "{more:?}");
        let said =
            ["error", "help"].map(|field| json(&refused)[field].as_str().unwrap_or_default().to_owned());
        assert!(said.concat().contains(named), "{more:?}: {said:?}");
    }
    let nowhere = lanework(folder.path(), &["--json", "history", "check", "--core", "4095"]);
    assert_eq!(nowhere.status.code(), Some(3), "{}", text(&nowhere.stdout));
    assert_eq!(
        (json(&nowhere)["unjudged"].as_u64(), json(&nowhere)["regressions"].as_u64()),
        (Some(1), Some(0))
    );
}

#[test]
fn whole_processes_are_raced_behind_a_check() {
    let folder = tempfile::tempdir().expect("a folder");
    let args = ["--json", "bench", "--seconds", "0.5", "--process", "sh -c 'exit 0'"];
    let race = |more: &[&str]| lanework(folder.path(), &[&args[..], more].concat());
    let medium = "sh -c 'head -c 80000000 /dev/zero | tail -c 80000000 > /dev/null'";
    let large = "sh -c 'head -c 320000000 /dev/zero | tail -c 320000000 > /dev/null'";
    let memory = || {
        let args = ["--json", "bench", "--seconds", "0.5", "--process", medium, large];
        let found = lanework(folder.path(), &args);
        assert_eq!(found.status.code(), Some(0), "{}", text(&found.stderr));
        let answer = json(&found);
        let rows = answer["results"].as_array().expect("rows");
        assert!(rows.iter().any(|r| r["subject"] == "process"));
        let peak = rows.iter().find(|r| r["subject"] == "process/peak").expect("memory").clone();
        (answer, peak)
    };
    // One race in a hundred is void by chance.
    let (answer, peak) =
        (0..5).map(|_| memory()).find(|(_, peak)| peak["verdict"] != "void").expect("a race");
    assert_eq!((peak["unit"].as_str(), peak["verdict"].as_str()), (Some("KiB"), Some("slower")));
    assert_eq!(answer["processes"].as_array().map(Vec::len), Some(2));
    // What needs less than this command cannot be seen below it: no ratio to our own peak.
    let hidden = json(&race(&[large]));
    let rows = hidden["results"].as_array().expect("rows");
    assert!(!rows.iter().any(|r| r["subject"] == "process/peak"), "{hidden}");
    let remarks = hidden["remarks"].to_string();
    assert!(remarks.contains("do not exceed this command's own"), "{remarks}");
    // A command that fails, is missing, or prints something else is not timed.
    assert_eq!(race(&["sh -c 'exit 3'"]).status.code(), Some(1));
    assert_eq!(race(&["/no/such/program"]).status.code(), Some(2));
    assert_eq!(race(&["echo x", "--same-output"]).status.code(), Some(1));
    assert_eq!(race(&["sh -c 'open"]).status.code(), Some(2));
    // Options that do not apply, such as pinning, are refused.
    assert_eq!(race(&["true", "--core", "0"]).status.code(), Some(2));
    assert_eq!(lanework(folder.path(), &["bench", "magma/ctr/16", "--same-output"]).status.code(), Some(2));
    // A command's standard error is not kept: it stays out of our output, and out of our memory, which its peak would start at.
    let loud = "sh -c 'head -c 60000000 /dev/zero; echo loud >&2'";
    let heard = lanework(folder.path(), &["bench", "--seconds", "0.5", "--process", loud, loud]);
    assert_eq!(heard.status.code(), Some(0), "{}", text(&heard.stderr));
    assert!(!text(&heard.stderr).contains("loud\n"), "{}", text(&heard.stderr));
    let small = |u: &serde_json::Value| u["own_peak_kib"].as_u64().is_some_and(|kib| kib < 60_000);
    let args = ["--json", "bench", "--seconds", "0.5", "--process", loud, loud, "--same-output"];
    let same = json(&lanework(folder.path(), &args));
    assert!(same["processes"].as_array().expect("both").iter().all(small), "{same}");
    // Other commands have a history of their own.
    assert_ne!(json(&race(&["true"]))["study"], json(&race(&["sh -c 'exit 0'"]))["study"]);
}

/// Suspects that this command cannot race again, or not as it was called: no advice that would not help, and no success.
#[test]
fn a_suspect_that_is_not_ours_to_race_is_not_judged() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = saved(folder.path());
    steady(&record);
    let check = ["--json", "history", "check", "--seconds", "0.5", "--launches", "1"];
    let judged = |subject: &str, variant: &str, unit: &str, more: &[&str]| {
        for (name, date, median) in [("old.json", "2001", 1000.0), ("new.json", "2999", 9000.0)] {
            changed(&record, name, |v| {
                v["date"] = format!("{date}-01-01T00:00:00Z").into();
                v["study"] = "planted".into();
                let row = &mut v["results"][0];
                (row["subject"], row["variant"], row["unit"]) = (subject.into(), variant.into(), unit.into());
                for field in ["median", "mean", "min", "q1", "q3"] {
                    row[field] = median.into();
                }
                for field in ["samples", "baseline_samples"] {
                    row[field] = serde_json::json!([]);
                }
            });
        }
        let found = lanework(folder.path(), &[&check[..], more].concat());
        assert_eq!(found.status.code(), Some(3), "{}", text(&found.stdout));
        let answer = json(&found);
        assert_eq!(
            (answer["unjudged"].as_u64(), answer["regressions"].as_u64()),
            (Some(1), Some(0)),
            "{answer}"
        );
        let plain = lanework(folder.path(), &[&check[1..], more].concat());
        (answer["suspects"][0]["why"].as_str().unwrap_or_default().to_owned(), text(&plain.stdout))
    };
    let old = ["--old", env!("CARGO_BIN_EXE_lanework")];
    for more in [&[][..], &old] {
        let (why, said) = judged("process/peak", "a-command", "KiB", more);
        assert!(why.contains("`lanework bench magma/ctr/1024") && !why.contains("--old"), "{why}");
        // Memory is not a time.
        assert!(said.contains("1000 KiB -> 9000 KiB") && said.contains("(more)"), "{said}");
        let (why, said) = judged("magma/ctr/1024", "libpeer", "ns", more);
        assert!(why.contains("'libpeer'") && why.contains("--peers") && !why.contains("--old"), "{why}");
        assert!(said.contains("1.00 µs -> 9.00 µs"), "{said}");
    }
    let (why, _) = judged("magma/ctr/1024", "avx2", "ns", &[]);
    assert!(why.contains("--old"), "{why}");
}
