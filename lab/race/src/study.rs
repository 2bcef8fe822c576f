//! Studies: a question as data, and the page that answers it as a template.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::read_at_most;

/// A study: the folder `studies/<name>` with `study.toml` and `study.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// The folder's name; filled in by [`Study::load`].
    #[serde(default)]
    pub name: String,
    /// What the study asks, as a sentence.
    pub question: String,
    /// Everything else in the file: subjects, baselines, the original's figures.
    #[serde(flatten)]
    pub table: toml::Table,
}

/// Why a study could not be read or rendered.
#[derive(Debug)]
pub enum StudyError {
    /// A file cannot be read.
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// `study.toml` is not a study.
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong and where.
        why: String,
    },
    /// The template is faulty or uses an undefined name.
    Template(minijinja::Error),
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Malformed { path, why } => write!(f, "{}: {why}", path.display()),
            Self::Template(e) => write!(f, "template: {e:#}"),
        }
    }
}

impl std::error::Error for StudyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Template(e) => Some(e),
            Self::Malformed { .. } => None,
        }
    }
}

/// The most bytes of a study's description.
const LIMIT: u64 = 1 << 20;

fn read(path: &Path) -> Result<String, StudyError> {
    let text = || {
        let bytes = read_at_most(fs::File::open(path)?, LIMIT)?;
        String::from_utf8(bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
    };
    text().map_err(|source| StudyError::Io { path: path.to_owned(), source })
}

impl Study {
    /// A study from the text of its `study.toml`.
    ///
    /// # Errors
    /// [`StudyError::Malformed`], naming `name` as the file.
    pub fn from_toml(name: &str, text: &str) -> Result<Self, StudyError> {
        let mut study: Self = toml::from_str(text)
            .map_err(|e| StudyError::Malformed { path: name.into(), why: e.to_string() })?;
        study.name = name.into();
        Ok(study)
    }

    /// Reads the study in `folder`: the question and the template.
    ///
    /// # Errors
    /// [`StudyError`], naming the file.
    pub fn load(folder: &Path) -> Result<(Self, String), StudyError> {
        let path = folder.join("study.toml");
        let name = folder.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let study = Self::from_toml(&name, &read(&path)?).map_err(|e| match e {
            StudyError::Malformed { why, .. } => StudyError::Malformed { path: path.clone(), why },
            other => other,
        })?;
        Ok((study, read(&folder.join("study.md"))?))
    }

    /// The studies under `root`, by name, and why others cannot be read. Folders without a `study.toml` are skipped.
    ///
    /// # Errors
    /// [`StudyError`] when `root` cannot be listed.
    pub fn list(root: &Path) -> Result<(Vec<Self>, Vec<StudyError>), StudyError> {
        let failed = |source| StudyError::Io { path: root.to_owned(), source };
        let (mut studies, mut skipped) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(root).map_err(failed)? {
            let folder = entry.map_err(failed)?.path();
            if folder.join("study.toml").is_file() {
                match Self::load(&folder) {
                    Ok((study, _)) => studies.push(study),
                    Err(e) => skipped.push(e),
                }
            }
        }
        studies.sort_by(|a, b| a.name.cmp(&b.name));
        Ok((studies, skipped))
    }
}

/// Fills in a template. It may use the filters `percent` (0.0123 → `1.23 %`), `times` (3.912 → `×3.91`) and `time`
/// (nanoseconds → `3.91 µs`). An undefined name is an error: a report must not have holes.
///
/// # Errors
/// [`StudyError::Template`] when the template is faulty or uses a name that `context` lacks.
pub fn render(template: &str, context: impl Serialize) -> Result<String, StudyError> {
    render_as("study.md", template, context)
}

/// The names that a template takes from its context.
///
/// # Errors
/// [`StudyError::Template`] when it cannot be parsed.
pub fn names(template: &str) -> Result<BTreeSet<String>, StudyError> {
    let engine = engine()?;
    let parsed = engine.template_from_named_str("study.md", template).map_err(StudyError::Template)?;
    Ok(parsed.undeclared_variables(false).into_iter().collect())
}

/// [`render`] under a name whose ending decides what is escaped: everything in `.html`, nothing in `.md`.
pub(crate) fn render_as(name: &str, template: &str, context: impl Serialize) -> Result<String, StudyError> {
    let context = minijinja::value::Serde(context);
    engine()?.render_named_str(name, template, context).map_err(StudyError::Template)
}

pub(crate) fn engine() -> Result<minijinja::Environment<'static>, StudyError> {
    let mut engine = minijinja::Environment::new();
    engine.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    let syntax = minijinja::syntax::SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true)
        .build()
        .map_err(StudyError::Template)?;
    engine.set_syntax(syntax);
    engine.set_formatter(formatted);
    engine.add_filter("percent", |x: f64| crate::table::percent(x));
    engine.add_filter("times", |x: f64| crate::table::times(x));
    engine.add_filter("time", |x: f64| crate::table::time(x));
    Ok(engine)
}

/// Escapes as the engine does, except for slashes: they mean nothing in HTML, and a page of subjects is full of them.
fn formatted(
    out: &mut minijinja::Output<'_>,
    state: &mut minijinja::State<'_, '_>,
    value: &minijinja::Value,
) -> Result<(), minijinja::Error> {
    use std::fmt::Write as _;

    let html = matches!(state.auto_escape(), minijinja::AutoEscape::Html);
    let Some(text) = value.as_str().filter(|_| html && !value.is_safe()) else {
        return minijinja::escape_formatter(out, state, value);
    };
    for c in text.chars() {
        match c {
            '&' => out.write_str("&amp;"),
            '<' => out.write_str("&lt;"),
            '>' => out.write_str("&gt;"),
            '"' => out.write_str("&quot;"),
            '\'' => out.write_str("&#x27;"),
            c => out.write_char(c),
        }?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_with_its_table() {
        let s = Study::from_toml(
            "threads",
            "question = \"Do threads pay?\"\nsubjects = [\"a/b\"]\n[original]\nx4 = 2.2\n",
        )
        .expect("a study");
        assert_eq!((s.name.as_str(), s.question.as_str()), ("threads", "Do threads pay?"));
        assert_eq!(s.table["original"]["x4"].as_float(), Some(2.2));
        let e = Study::from_toml("threads", "subjects = []").expect_err("no question");
        assert!(e.to_string().contains("question"), "{e}");
    }

    #[test]
    fn markup_of_a_value_is_text_in_a_page_and_stays_in_markdown() {
        let value = || serde_json::json!({ "v": "a/b <i> & \"x\" 'y'" });
        let page = render_as("p.html", "<b>{{ v }}</b>{{ v|safe }}", value()).expect("renders");
        assert_eq!(page, "<b>a/b &lt;i&gt; &amp; &quot;x&quot; &#x27;y&#x27;</b>a/b <i> & \"x\" 'y'");
        assert_eq!(render("{{ v }}", value()).expect("renders"), "a/b <i> & \"x\" 'y'");
    }

    #[test]
    fn templates_are_filled_in_whole() {
        #[derive(Serialize)]
        struct C {
            rows: Vec<f64>,
        }
        let t = "{% for r in rows %}\n{{ r|times }} {{ r|percent }} {{ r|time }}\n{% endfor %}\n";
        assert_eq!(render(t, C { rows: vec![1500.0] }).expect("renders"), "×1500 150000 % 1.50 µs\n");
        assert!(matches!(render("{{ missing }}", C { rows: vec![] }), Err(StudyError::Template(_))));
        assert!(matches!(render("{% for %}", C { rows: vec![] }), Err(StudyError::Template(_))));
        assert_eq!(
            names("{% for r in rows %}{{ r.x }}{{ tabel }}{% endfor %}").expect("parsed"),
            ["rows", "tabel"].map(str::to_owned).into()
        );
        assert!(matches!(names("{% for %}"), Err(StudyError::Template(_))));
    }

    #[test]
    fn loads_and_lists() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("one");
        fs::create_dir(&folder).expect("created");
        fs::write(folder.join("study.toml"), "question = \"?\"").expect("written");
        assert!(
            matches!(Study::load(&folder), Err(StudyError::Io { path, .. }) if path.ends_with("study.md"))
        );
        fs::write(folder.join("study.md"), "page").expect("written");
        assert_eq!(Study::load(&folder).expect("loads").1, "page");
        // An unreadable study does not hide the others.
        let broken = root.path().join("another");
        fs::create_dir(&broken).expect("created");
        fs::write(broken.join("study.toml"), "question = ").expect("written");
        let (studies, skipped) = Study::list(root.path()).expect("lists");
        assert_eq!(studies.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["one"]);
        assert!(matches!(&skipped[..], [StudyError::Malformed { path, .. }] if path.starts_with(&broken)));
    }
}
