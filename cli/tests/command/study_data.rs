//! Studies that are folders and nothing else.
#![cfg(target_os = "linux")]

use std::fs;

use crate::common::{Place, code, json, stderr};

const QUESTION: &str = "Does a long message favour the fastest backend?";
const MODES: &str = "[quick]\nseconds = 0.2\nlaunches = 1\n[full]\nseconds = 1.0\nlaunches = 2\n";
const RACE: &str =
    "[[race]]\nsubject = \"magma/ctr/*\"\nbaseline = [\"nobody\", \"portable\"]\nvariants = [\"*\"]\n";
const PAGE: &str = "# {{ question }}\n{{ asked.note }}, {{ launches }} launch\n{{ table }}\
    {% for row in rows %}row {{ row.subject }} {{ row.baseline }} {{ row.ratio|times }}\n{% endfor %}\
    {% for line in not_here %}not here: {{ line }}\n{% endfor %}";

fn folder(place: &Place, name: &str, toml: &str, page: &str) {
    let folder = place.path("studies").join(name);
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("study.toml"), toml).expect("a file");
    fs::write(folder.join("study.md"), page).expect("a file");
}

fn toml(rest: &str) -> String {
    format!("question = \"{QUESTION}\"\nnote = \"a note\"\n{MODES}{rest}")
}

#[test]
fn a_folder_is_a_study() {
    let place = Place::new();
    folder(&place, "long-messages", &toml(RACE), PAGE);
    let listed = place.run(&["study", "list"]);
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert_eq!(code(&listed), 0);
    // The built-in ones are there too.
    for line in [&format!("long-messages: {QUESTION}\n"), "ctr-sizes: ", "lab-self-check: "] {
        assert!(names.contains(line), "{names}");
    }
    let ran = place.run(&["study", "long-messages"]);
    let page = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(code(&ran), 0, "{}", stderr(&ran));
    assert!(page.starts_with(&format!("# {QUESTION}\na note, 1 launch\n| subject ")), "{page}");
    assert!(page.contains("row magma/ctr/16384 portable ×") && page.contains("| magma/ctr/16 "), "{page}");
    // The page names a baseline that no subject has; the next one in the list is taken.
    assert!(page.contains("not here: magma/ctr/*: nobody"), "{page}");
    let saved = place.run(&["--json", "study", "long-messages", "--save=records"]);
    let record = json(&saved.stdout);
    assert_eq!(record["study"], "long-messages");
    assert!(record["page"].as_str().is_some_and(|page| page.contains(QUESTION)), "{record}");
    assert_eq!(fs::read_dir(place.path("records")).expect("a folder").count(), 1);
}

#[test]
fn the_word_threads_stands_for_ours_on_several() {
    let place = Place::new();
    let race = RACE.replace("\"*\"", "\"threads\"");
    let page = "{% for row in rows %}{{ row.variant }}\n{% endfor %}";
    folder(&place, "threads", &toml(&race), page);
    let ran = place.run(&["study", "threads"]);
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() == 1) {
        assert!(code(&ran) == 3 && stderr(&ran).contains("none of its races"), "{}", stderr(&ran));
        return;
    }
    let page = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(code(&ran), 0, "{}", stderr(&ran));
    let rows: Vec<&str> = page.lines().filter(|line| !line.is_empty()).collect();
    assert!(!rows.is_empty() && rows.iter().all(|name| name.contains("+threads=")), "{page}");
}

#[test]
fn what_cannot_run_is_not_offered() {
    let place = Place::new();
    folder(&place, "good", &toml(RACE), PAGE);
    folder(&place, "codeless", &toml(""), PAGE);
    let listed = place.run(&["study", "list"]);
    assert_eq!(code(&listed), 2);
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(names.contains(&format!("good: {QUESTION}\n")) && !names.contains("codeless"), "{names}");
    assert!(stderr(&listed).contains("codeless: no [[race]]"), "{}", stderr(&listed));
    for (name, says) in [
        ("codeless", "codeless: no [[race]]"),
        ("nothing", "no study 'nothing'"),
        ("../studies/good", "no study '../studies/good'"),
    ] {
        let refused = place.run(&["study", name]);
        assert_eq!(code(&refused), 2, "{name}");
        assert!(stderr(&refused).contains(says) && refused.stdout.is_empty(), "{}", stderr(&refused));
    }
}

#[test]
fn mistakes_are_named() {
    let place = Place::new();
    let wrong = [
        (
            "[[race]]\nsubject = \"magma/rot13/*\"\nbaseline = [\"portable\"]\nvariants = [\"*\"]\n",
            "magma/rot13/*",
            2,
        ),
        ("[[race]]\nsubject = \"magma/ctr/*\"\nbase = [\"portable\"]\nvariants = [\"*\"]\n", "base", 2),
        ("[[race]]\nsubject = \"magma/ctr/16\"\nbaseline = [\"rot13\"]\nvariants = [\"*\"]\n", "rot13", 3),
    ];
    for (race, says, exit) in wrong {
        folder(&place, "wrong", &toml(race), PAGE);
        let refused = place.run(&["study", "wrong"]);
        assert_eq!(code(&refused), exit, "{race}: {}", stderr(&refused));
        assert!(
            stderr(&refused).contains(says) && stderr(&refused).contains("wrong"),
            "{}",
            stderr(&refused)
        );
    }
    for (from, to, says) in [
        ("seconds = 1.0", "seconds = 1e30", "[full] seconds: it takes from 0.1 to 86400 seconds"),
        ("launches = 1", "launches = 0", "[quick] launches: 0, from 1 to 100"),
    ] {
        folder(&place, "wrong", &toml(RACE).replacen(from, to, 1), PAGE);
        let refused = place.run(&["study", "wrong"]);
        assert!(code(&refused) == 2 && stderr(&refused).contains(says), "{}", stderr(&refused));
    }
    folder(&place, "wrong", &toml(RACE), "{{ answer }}");
    let refused = place.run(&["study", "wrong"]);
    assert!(
        code(&refused) == 2 && stderr(&refused).contains("wrong/study.md: no page has 'answer'"),
        "{}",
        stderr(&refused)
    );
    assert!(refused.stdout.is_empty(), "nothing was raced");
    // Found by rendering alone: the results are printed all the same.
    folder(&place, "wrong", &toml(RACE), "{% for row in rows %}{{ row.answer }}{% endfor %}");
    let refused = place.run(&["study", "wrong"]);
    assert!(code(&refused) == 2 && stderr(&refused).contains("study.md:1"), "{}", stderr(&refused));
    assert!(String::from_utf8_lossy(&refused.stdout).contains("magma/ctr/16"), "the table is missing");
}

/// A program that was copied anywhere has every study, and a directory of something else hides none.
#[test]
fn built_in_studies_need_no_folder() {
    let place = Place::new();
    let listed = || {
        let output = place.run(&["--json", "study", "list"]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let studies = json(&output.stdout)["studies"].as_array().expect("a list").clone();
        studies.iter().map(|s| s["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    let built_in = listed();
    assert!(built_in.is_sorted() && built_in.contains(&"ctr-sizes".to_owned()), "{built_in:?}");
    let folders = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../studies")).expect("the studies");
    let folders = folders.map(|e| e.expect("an entry").path()).filter(|p| p.join("study.toml").is_file());
    assert_eq!(built_in.len(), folders.count(), "a study is not built in: {built_in:?}");
    fs::create_dir_all(place.path("studies/medicine")).expect("a folder");
    fs::write(place.path("studies/medicine/notes.txt"), "no study of ours").expect("a file");
    assert_eq!(listed(), built_in);
    // One in the folder replaces the built-in one of its name, whose races are then these.
    folder(&place, "ctr-sizes", &toml(RACE), PAGE);
    assert_eq!(listed(), built_in);
    let names = place.run(&["study", "list"]);
    assert!(String::from_utf8_lossy(&names.stdout).contains(&format!("ctr-sizes: {QUESTION}")));
}
