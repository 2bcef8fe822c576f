//! `studies/<name>/results.md`: the newest record of a study on every machine that has one, the newest of all first.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

use lanework_race::history::{self, Entry};
use lanework_race::record::Record;
use lanework_race::study::Study;

use super::{remarks, seen_from};

/// The sentences that open a record's page: what was claimed, what is found, and why they differ.
fn opening(study: &Study, record: &Record) -> Result<String, String> {
    let Some(answer) = study.answer(record).map_err(|e| e.to_string())? else { return Ok(String::new()) };
    let sentences = [("Claimed", &answer.claimed), ("Found", &answer.found), ("Why", &answer.why)];
    let told = sentences.iter().filter(|(_, text)| !text.is_empty());
    Ok(told.map(|(what, text)| format!("**{what}.** {text}\n\n")).collect())
}

/// The file for these records, which are all of one study or listed by it.
fn text(root: &Path, study: &Study, entries: &[&Entry]) -> Result<String, String> {
    let mut out = String::from(
        "<!-- Made by `cargo xtask readme` from the records that it names. Another record changes it; an edit is lost. -->\n",
    );
    for entry in entries {
        let record = &entry.record;
        let day = record.date.get(..10).unwrap_or("undated");
        out += &format!(
            "\n> {}, {day}, from [its record](../../{}); made by `{}`.{}\n\n",
            record.machine.title(),
            seen_from(root, &entry.path),
            record.command,
            remarks(record)
        );
        if record.study == study.name {
            out +=
                &opening(study, record).map_err(|why| format!("{}: {why}", seen_from(root, &entry.path)))?;
        }
        out += record.page.as_deref().unwrap_or_default().trim_end();
        out.push('\n');
    }
    Ok(out)
}

/// The records that are shown: for every study and machine, the newest of its own data and the newest of files that the
/// command named.
fn shown(root: &Path) -> Result<Vec<Entry>, String> {
    let all = history::load_all(&root.join("records")).map_err(|e| e.to_string())?;
    let (given, own) = all.entries.into_iter().partition(|entry| entry.record.command.contains(" --asm "));
    Ok([own, given].map(history::newest_of_each).concat())
}

/// The names of the records that a study's results show: its own, and those that `also` in its `study.toml` lists.
fn names(study: &Study) -> Vec<&str> {
    let also = study.table.get("also").and_then(|also| also.as_array()).into_iter().flatten();
    std::iter::once(study.name.as_str()).chain(also.filter_map(|name| name.as_str())).collect()
}

/// Renews one study's file, or with `check` compares it.
fn renew(root: &Path, study: &Study, entries: &[Entry], check: bool) -> Result<String, String> {
    let name = study.name.as_str();
    let file = root.join("studies").join(name).join("results.md");
    let shown = seen_from(root, &file);
    let wrong = |why: String| format!("{shown}: {why}");
    let mut own: Vec<&Entry> = Vec::new();
    for name in names(study) {
        let mut named: Vec<&Entry> =
            entries.iter().filter(|e| e.record.study == name && e.record.page.is_some()).collect();
        named.sort_by(|a, b| b.record.date.cmp(&a.record.date));
        own.extend(named);
    }
    let found = match fs::read_to_string(&file) {
        Ok(text) => Some(text),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => return Err(wrong(e.to_string())),
    };
    if own.is_empty() {
        return match found {
            None => Ok(format!("studies/{name}: no record of it is kept here")),
            Some(_) => Err(wrong("there is no record that it could come from".to_owned())),
        };
    }
    let due = text(root, study, &own).map_err(wrong)?;
    if found.as_ref() == Some(&due) {
        return Ok(format!("{shown}: as {} records have it", own.len()));
    }
    if check {
        return Err(wrong("it differs from its records".to_owned()));
    }
    fs::write(&file, due).map_err(|e| wrong(e.to_string()))?;
    Ok(format!("{shown}: renewed from {} records", own.len()))
}

/// All studies of the repository at `root`.
pub(super) fn renew_all(root: &Path, check: bool) -> Vec<Result<String, String>> {
    let folder: PathBuf = root.join("studies");
    let (studies, skipped) = match Study::list(&folder) {
        Ok(found) => found,
        Err(e) => return vec![Err(e.to_string())],
    };
    let mut all: Vec<Result<String, String>> = skipped.iter().map(|e| Err(e.to_string())).collect();
    match shown(root) {
        Ok(entries) => all.extend(studies.iter().map(|s| renew(root, s, &entries, check))),
        Err(why) => all.push(Err(why)),
    }
    all
}

#[cfg(test)]
mod tests {
    use lanework_race::clock::Monotonic;
    use lanework_race::machine::Machine;
    use lanework_race::record::Record;

    use super::*;

    #[test]
    fn results_follow_their_record_and_nothing_else() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        let study = root.join("studies/planted");
        fs::create_dir_all(&study).expect("created");
        fs::write(study.join("study.toml"), "question = \"?\"").expect("written");
        fs::write(study.join("study.md"), "page").expect("written");
        let file = study.join("results.md");
        let all = |check| renew_all(root, check).into_iter().collect::<Result<Vec<_>, _>>();
        // No record: no file.
        assert!(all(true).is_ok());
        fs::write(&file, "×99 by hand").expect("written");
        assert!(all(true).is_err_and(|e| e.contains("no record")) && all(false).is_err());
        fs::remove_file(&file).expect("removed");

        let mut record =
            Record::new("planted", "lanework study planted", Machine::inspect(&Monotonic::new(), vec![]));
        record.save(&root.join("records")).expect("saved");
        assert!(all(true).is_ok(), "a record without a page is none of a study's results");
        record.date = "2998-01-01T00:00:00Z".into();
        record.page = Some("# Which?\n\n×4.00\n".into());
        record.remarks.push("made under load".into());
        let saved = record.save(&root.join("records")).expect("saved");
        assert!(all(true).is_err_and(|e| e.contains("differs from its records")));
        assert!(all(false).is_ok() && all(true).is_ok());
        let text = fs::read_to_string(&file).expect("read");
        let link = format!("(../../{})", seen_from(root, &saved));
        for part in ["# Which?", "×4.00", "2998-01-01", "Remark: made under load.", link.as_str()] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        // A record of user-given files is shown beside one of the study's own data, however old.
        record.date = "2997-01-01T00:00:00Z".into();
        record.command = "lanework study planted --asm 'x*=a.s,b.s' --save".into();
        record.page = Some("# Whose?\n".into());
        record.save(&root.join("records")).expect("saved");
        assert!(all(false).is_ok());
        let text = fs::read_to_string(&file).expect("read");
        assert!(
            text.find("# Which?") < text.find("# Whose?") && text.contains("# Whose?"),
            "the newest first: {text}"
        );
        // And one of another name, if the study lists it.
        record.study = "chore".into();
        record.command = "cargo xtask chore --save".into();
        record.page = Some("# What else?\n".into());
        record.save(&root.join("records")).expect("saved");
        assert!(all(true).is_ok());
        fs::write(study.join("study.toml"), "question = \"?\"\nalso = [\"chore\"]").expect("written");
        assert!(all(true).is_err() && all(false).is_ok());
        let text = fs::read_to_string(&file).expect("read");
        assert!(text.contains("# Whose?") && text.contains("# What else?"), "{text}");
        // Its sentences open its own pages; one that a record cannot fill in is an error.
        let asks = |found: &str| {
            format!("question = \"?\"\nalso = [\"chore\"]\n[answer]\nclaimed = \"C.\"\nfound = \"{found}\"")
        };
        fs::write(study.join("study.toml"), asks("{{ ratio('a', 'b', 'c') }}")).expect("written");
        assert!(all(false).is_err_and(|e| e.contains("no row of a: b against c")));
        fs::write(study.join("study.toml"), asks("F.")).expect("written");
        assert!(all(true).is_err() && all(false).is_ok());
        let text = fs::read_to_string(&file).expect("read");
        assert_eq!(text.matches("**Claimed.** C.\n\n**Found.** F.\n\n# W").count(), 2, "{text}");
        // An unreadable record blocks nothing else.
        fs::write(saved.with_file_name("bad.json"), "{").expect("written");
        fs::create_dir(root.join("studies/broken")).expect("created");
        fs::write(root.join("studies/broken/study.toml"), "question = ").expect("written");
        let found = renew_all(root, true);
        assert!(matches!(&found[..], [Err(why), Ok(_)] if why.contains("broken/study.toml")), "{found:?}");
        fs::remove_dir_all(root.join("studies/broken")).expect("removed");
        fs::write(&file, text.replace("×4.00", "×5.00")).expect("written");
        assert!(all(true).is_err());
        assert!(all(false).is_ok() && fs::read_to_string(&file).expect("read").contains("×4.00"));
    }
}
