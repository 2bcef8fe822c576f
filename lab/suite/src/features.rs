//! Every CPU feature that a backend's sources enable is one that its row in `BACKENDS` requires. Otherwise a CPU without the feature, or a
//! mask, would reach code that it cannot run.
//!
//! Which code a row reaches is read from the sources. It begins with the table of kernels that the row names. A path in a file leads to
//! other files, and a name leads to every item of that name in all of them: more than the compiler would find, and nothing less.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use lanework_cpu::{Backend, Features};

/// Sources by their modules' paths below `backend`, which itself is the empty path: `avx512::few`.
type Sources = BTreeMap<String, String>;

/// A backend, and where its table of kernels is.
struct Row<'a> {
    name: &'a str,
    needs: Features,
    module: &'a str,
    table: &'a str,
}

/// The features that string literals of `text` name: attributes hold them, and so do the arguments of the macros that stamp kernels.
fn literals(text: &str) -> Vec<&str> {
    const FAMILIES: [&str; 12] =
        ["adx", "aes", "avx", "bmi", "fma", "gfni", "lzcnt", "movbe", "pclmul", "popcnt", "vaes", "vpclmul"];
    let is_feature = |word: &str| {
        let plain = word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.');
        // `avx512` is the name of backends, not of a feature.
        plain
            && word != "avx512"
            && (word.starts_with("sse4") || FAMILIES.iter().any(|f| word.starts_with(f)))
    };
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split('"').skip(1).step_by(2))
        .filter(|literal| literal.split(',').all(|word| is_feature(word.trim())))
        .collect()
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Words and punctuation without comments; a string is `"`.
fn tokens(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in text.lines() {
        let code = line.split("//").next().unwrap_or_default();
        for (i, mut part) in code.split('"').enumerate() {
            if i % 2 == 1 {
                found.push("\"");
                continue;
            }
            while let Some(start) = part.find(|c: char| !c.is_whitespace()) {
                part = &part[start..];
                let word = part.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(part.len());
                let one = part.chars().next().map_or(0, char::len_utf8);
                let (token, rest) = part.split_at(if part.starts_with("::") { 2 } else { word.max(one) });
                found.push(token);
                part = rest;
            }
        }
    }
    found
}

/// All paths, those in groups of a `use` with the group's own before them.
fn paths(text: &str) -> Vec<Vec<&str>> {
    let (mut found, mut path, mut groups) = (Vec::new(), Vec::new(), vec![Vec::new()]);
    let mut last = "";
    for token in tokens(text) {
        if is_word(token) {
            if last != "::" {
                found.push(std::mem::take(&mut path));
                path.clone_from(groups.last().expect("the outermost"));
            }
            path.push(token);
        } else if token == "{" {
            groups.push(if last == "::" { path.clone() } else { Vec::new() });
        } else if token == "}" && groups.len() > 1 {
            groups.pop();
        }
        last = token;
    }
    found.push(path);
    found
}

fn parent(module: &str) -> &str {
    module.rsplit_once("::").map_or("", |(parent, _)| parent)
}

/// The modules that a path in `module` may lead to: two if it goes up, since it may begin in a module within the file.
fn leads<'a>(sources: &'a Sources, module: &str, path: &[&str]) -> Vec<&'a str> {
    let up = path.iter().take_while(|part| **part == "super").count();
    let (mut starts, skipped) = match path {
        ["crate", "backend", ..] => (vec![""], 2),
        ["crate", ..] => return Vec::new(),
        _ => (vec![(0..up).fold(module, |module, _| parent(module))], up),
    };
    if up > 0 {
        starts.push((1..up).fold(module, |module, _| parent(module)));
    }
    let deepest = |start: &str| {
        let (mut at, _) = sources.get_key_value(start)?;
        for part in &path[skipped..] {
            let below = if at.is_empty() { (*part).to_owned() } else { format!("{at}::{part}") };
            match sources.get_key_value(&below) {
                Some((module, _)) => at = module,
                None => break,
            }
        }
        Some(at.as_str())
    };
    // The table of backends leads to every row.
    starts.into_iter().filter_map(deepest).filter(|at| !at.is_empty()).collect()
}

/// The items that begin in a file's first column, each with its attributes and comments.
fn items(text: &str) -> Vec<&str> {
    let (mut starts, mut open, mut at) = (vec![0], true, 0);
    for line in text.split_inclusive('\n') {
        let begins = line.starts_with(|c: char| c.is_alphabetic()) && !line.starts_with("where");
        if begins || line.starts_with("#[") || line.starts_with("//") {
            if !open {
                starts.push(at);
            }
            open = !begins;
        }
        at += line.len();
    }
    starts.push(text.len());
    starts.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect()
}

/// The names that reach an item; none if it is reached whenever its file is.
fn names(item: &str) -> Vec<&str> {
    const KINDS: [&str; 8] = ["enum", "fn", "mod", "static", "struct", "trait", "type", "union"];
    let code = item.lines().skip_while(|line| !line.starts_with(|c: char| c.is_alphabetic()));
    let mut code: Vec<&str> = code.flat_map(tokens).collect();
    let visible = code.first() == Some(&"pub");
    if visible {
        let end = if code[1] == "(" { code.iter().position(|token| *token == ")").unwrap_or(0) } else { 0 };
        code.drain(..=end);
    }
    match code[..] {
        // A visible import is reached by all its names, a private one by a new name. Other items have their own.
        ["use", ..] if visible => {
            code.iter().filter(|t| is_word(t) && !["crate", "self", "super"].contains(t)).copied().collect()
        }
        ["use", ..] => {
            let renamed = code.windows(2).filter(|pair| pair[0] == "as").map(|pair| pair[1]);
            std::iter::once("use").chain(renamed).collect()
        }
        ["const", name, ":", ..] => vec![name],
        ["macro_rules", "!", name, ..] => vec![name],
        // What a macro stamps is named by the arguments before the features.
        [_, "!", ..] => {
            let mut left = code.split(|token| *token == "\"").next().unwrap_or_default();
            let mut names = Vec::new();
            while let [before @ .., name, ","] = left
                && is_word(name)
            {
                names.push(*name);
                left = before;
            }
            names
        }
        ["impl", ..] | ["unsafe", "impl", ..] => Vec::new(),
        _ => {
            let kind = code.iter().position(|token| KINDS.contains(token));
            kind.and_then(|kind| code.get(kind + 1)).into_iter().copied().collect()
        }
    }
}

/// The items that a row reaches, each with its module.
fn reached<'a>(sources: &'a Sources, row: &Row<'_>) -> Vec<(&'a str, &'a str)> {
    let mut files: BTreeSet<&str> = BTreeSet::new();
    let mut waiting = leads(sources, "", &row.module.split("::").collect::<Vec<_>>());
    while let Some(module) = waiting.pop() {
        if files.insert(module) {
            let paths = paths(&sources[module]);
            let led = |path: &Vec<&str>| leads(sources, module, path);
            // A path may begin with a module that another one brought in.
            let imported: Vec<(&str, &str)> =
                paths.iter().flat_map(|p| led(p).into_iter().zip(p.last().copied())).collect();
            for path in paths.iter().filter(|path| path.len() > 1) {
                waiting.extend(led(path));
                let begun = imported.iter().filter(|(at, name)| path[0] == *name && at.ends_with(name));
                waiting.extend(begun.flat_map(|(at, _)| leads(sources, at, &path[1..])));
            }
        }
    }
    let mut left: Vec<(&str, &str)> = files
        .iter()
        .flat_map(|module| items(&sources[*module]).into_iter().map(|item| (*module, item)))
        .collect();
    let (mut known, mut found) = (BTreeSet::from([row.table]), Vec::new());
    loop {
        let is_named = |(_, item): &(&str, &str)| {
            let names = names(item);
            names.is_empty() || names.iter().any(|name| known.contains(name))
        };
        let (now, later): (Vec<_>, Vec<_>) = left.into_iter().partition(is_named);
        if now.is_empty() {
            return found;
        }
        for (_, item) in &now {
            let tokens = tokens(item);
            // An operand of a macro is not a name.
            let named = tokens
                .iter()
                .zip(std::iter::once(&"").chain(&tokens))
                .filter(|(name, last)| **last != "$" && is_word(name));
            known.extend(named.map(|(name, _)| *name).filter(|name| *name != "use"));
        }
        found.extend(now);
        left = later;
    }
}

/// Whether an item, or the module that it is in, is built for tests or with a feature of the crate only.
fn is_conditional(sources: &Sources, module: &str, item: &str) -> bool {
    let conditional = |text: &str| {
        text.lines()
            .any(|line| line.starts_with("#[cfg") && (line.contains("test") || line.contains("feature =")))
    };
    let declared = |module: &str| {
        let name = module.rsplit("::").next().unwrap_or_default();
        items(&sources[parent(module)])
            .into_iter()
            .find(|item| names(item) == [name])
            .is_some_and(conditional)
    };
    conditional(item)
        || (!module.is_empty() && (declared(module) || is_conditional(sources, parent(module), "")))
}

/// What is wrong: features that a row reaches and does not require, and features in code that no row reaches.
fn faults(sources: &Sources, rows: &[Row<'_>]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut judged = BTreeSet::new();
    let parse = |module: &str, literal: &str, faults: &mut Vec<String>| {
        Features::parse(literal).map_err(|unknown| faults.push(format!("{module}: {unknown}"))).ok()
    };
    for row in rows {
        for (module, item) in reached(sources, row) {
            judged.insert(item.as_ptr());
            for literal in literals(item) {
                let Some(enabled) = parse(module, literal, &mut faults) else { continue };
                let missing = enabled.difference(row.needs);
                if missing != Features::NONE {
                    faults.push(format!(
                        "{module}: enables {missing}, which the row {} does not require",
                        row.name
                    ));
                }
            }
        }
    }
    for (module, text) in sources {
        for item in items(text).into_iter().filter(|item| !judged.contains(&item.as_ptr())) {
            for literal in literals(item).into_iter().filter(|_| !module.is_empty()) {
                let Some(enabled) = parse(module, literal, &mut faults) else { continue };
                let has_all = |row: &Row<'_>| enabled.difference(row.needs) == Features::NONE;
                if !is_conditional(sources, module, item) || !rows.iter().any(has_all) {
                    faults.push(format!("{module}: enables {literal}, and no row leads to it"));
                }
            }
        }
    }
    faults
}

/// All Rust files below a folder but tests.
fn read(folder: &Path, module: &str, sources: &mut Sources) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let below = if module.is_empty() { name.clone() } else { format!("{module}::{name}") };
        if path.is_dir() {
            read(&path, &below, sources);
        } else if path.extension().is_some_and(|e| e == "rs") && !name.ends_with("tests") {
            sources.insert(below, fs::read_to_string(&path).expect("a source"));
        }
    }
}

/// The rows of a table, with the tables of kernels that its source names.
fn rows<'a>(table: &[(&'a str, Features)], source: &'a str) -> Vec<Row<'a>> {
    let row = |&(name, needs): &(&'a str, Features)| {
        let calls = source
            .split("Backend::new(")
            .filter(|call| call.trim_start().starts_with(&format!("\"{name}\",")));
        let kernels =
            calls.flat_map(|call| call.split('&').skip(1)).find(|at| at.starts_with(char::is_lowercase));
        let path = kernels.and_then(|at| at.split([',', ')']).next()?.rsplit_once("::"));
        let (module, table) = path.unwrap_or_else(|| panic!("the row {name} names no table of a module"));
        Row { name, needs, module, table: table.trim() }
    };
    table.iter().map(row).collect()
}

/// The rows of a table, for [`check`].
pub fn needs<K>(table: &'static [Backend<K>]) -> impl Iterator<Item = (&'static str, Features)> {
    table.iter().map(|row| (row.name(), row.needs()))
}

/// Compares the rows of the tables in `src/<module>.rs`, whose kernels are in `src/<module>/`, with their sources.
///
/// # Panics
/// With every feature that a row's kernels enable and the row does not require; and where the check itself is blind: taking the features
/// off a row must make it find something.
pub fn check(src: &Path, module: &str, table: &[(&str, Features)]) {
    let mut sources = Sources::new();
    sources
        .insert(String::new(), fs::read_to_string(src.join(module).with_extension("rs")).expect("the table"));
    read(&src.join(module), "", &mut sources);
    let mut rows = rows(table, &sources[""]);
    let wrong = faults(&sources, &rows);
    assert!(wrong.is_empty(), "{}:\n{}", src.display(), wrong.join("\n"));
    // A row that needs nothing enables nothing; any other is found to enable something.
    for i in 0..rows.len() {
        let needs = std::mem::replace(&mut rows[i].needs, Features::NONE);
        assert_eq!(!faults(&sources, &rows).is_empty(), needs != Features::NONE, "{}", rows[i].name);
        rows[i].needs = needs;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_row_does_not_require_is_found() {
        let found = |sources: &[(&str, &str)]| {
            let table = "#[cfg(test)]\nmod planted;\nmod avx2;\nmod wide;\n";
            let all = [("", table)].into_iter().chain(sources.iter().copied());
            let sources = all.map(|(module, text)| (module.to_owned(), text.to_owned())).collect();
            let needs = Features::parse("avx2,bmi1").expect("features");
            faults(&sources, &[Row { name: "avx2-twin", needs, module: "avx2", table: "KERNELS" }])
        };
        let one = |sources: &[(&str, &str)], words: &str| {
            let found = found(sources);
            assert!(found.len() == 1 && found[0].contains(words), "{found:?}");
        };
        let kernel = |features: &str| {
            format!(
                "static KERNELS: Kernels = Kernels {{ blocks }};\n\n#[target_feature(enable = \"{features}\")]\nunsafe fn blocks() {{}}\n"
            )
        };
        assert_eq!(found(&[("avx2", &kernel("avx2,bmi1"))]), [""; 0]);
        assert_eq!(found(&[("avx2", &(kernel("avx2") + "// stamp!(\"avx2,gfni\");\n"))]), [""; 0]);
        one(&[("avx2", &kernel("avx2,gfni"))], "enables gfni, which the row avx2-twin does not require");
        one(&[("avx2", &kernel("avx2,fma"))], "'fma' is not a CPU feature");
        // Through files, by each kind of path, and through macros.
        let stamped = "stamp!(wide, deep, \"gfni\",);\n";
        for path in ["use super::shared::wide;", "use crate::backend::{none, shared::{self, deep}};"] {
            let caller = format!("{path}\nstatic KERNELS: Kernels = Kernels {{ blocks: wide::blocks }};\n");
            one(&[("avx2", &caller), ("shared", stamped)], "shared: enables gfni");
        }
        let caller = "use super::shared;\nstatic KERNELS: Kernels = Kernels { blocks: shared::few::wide };\n";
        one(&[("avx2", caller), ("shared", ""), ("shared::few", stamped)], "shared::few: enables gfni");
        let caller = "mod few;\nstatic KERNELS: Kernels = Kernels { blocks: few::wide };\n";
        one(&[("avx2", caller), ("avx2::few", stamped)], "avx2::few: enables gfni");
        // Beside what the row reaches: another row's tier is not looked at, code without a row is.
        let both = kernel("avx2") + "\nstatic OTHER: Kernels = Kernels { blocks: wide };\n" + stamped;
        one(&[("avx2", &both)], "avx2: enables gfni, and no row leads to it");
        one(&[("avx2", &kernel("avx2")), ("wide", stamped)], "wide: enables gfni, and no row leads to it");
        let planted = "#[target_feature(enable = \"avx2\")]\nfn leaky() {}\n";
        assert_eq!(found(&[("avx2", &kernel("avx2")), ("planted", planted)]), [""; 0]);
        one(
            &[("avx2", &kernel("avx2")), ("planted", stamped)],
            "planted: enables gfni, and no row leads to it",
        );
    }
}
