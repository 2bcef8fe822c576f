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
    assert_eq!(
        (code(&listed), String::from_utf8_lossy(&listed.stdout).into_owned()),
        (0, format!("long-messages: {QUESTION}\n"))
    );
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
    assert_eq!(String::from_utf8_lossy(&listed.stdout), format!("good: {QUESTION}\n"));
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
