//! The subjects that are tried, their sources, and the assembly of each.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::survey::sha256;

const LIST: &str = include_str!("list.toml");
/// The manifest that pins the packages.
const CORPUS: [(&str, &str); 3] = [
    ("Cargo.toml", include_str!("../../corpus/Cargo.toml")),
    ("Cargo.lock", include_str!("../../corpus/Cargo.lock")),
    ("nothing.rs", include_str!("../../corpus/nothing.rs")),
];
/// C and Rust that calls other people's code.
const DRIVERS: [(&str, &str); 5] = [
    ("driver.h", include_str!("drivers/driver.h")),
    ("miniz_oxide.rs", include_str!("drivers/miniz_oxide.rs")),
    ("sha2.rs", include_str!("drivers/sha2.rs")),
    ("zstd.c", include_str!("drivers/zstd.c")),
    ("zstd_main.c", include_str!("drivers/zstd_main.c")),
];

/// The default number of inputs of an assembly driver.
pub(crate) const INPUTS: usize = 200;

/// The list as in its file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    compilers: BTreeMap<String, String>,
    debian: Debian,
    /// Public repositories whose code is in no package, by the name that subjects call them.
    repository: BTreeMap<String, Repository>,
    subject: Vec<Subject>,
}

/// A file of Debian's source package, and the member used.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Debian {
    package: String,
    file: String,
    sha256: String,
    member: String,
}

/// A commit of a public repository.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Repository {
    url: String,
    commit: String,
}

/// One entry: assembly, C or a crate.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Subject {
    pub(crate) name: String,
    /// A package of the corpus, or a repository.
    pub(crate) package: String,
    /// A file of assembly in the package.
    assembly: Option<String>,
    /// A file of C in the package or among the drivers.
    source: Option<String>,
    /// A driver in Rust: then the package is a crate that rustc compiles.
    workload: Option<String>,
    /// Folders of headers in the package.
    #[serde(default)]
    include: Vec<String>,
    #[serde(default)]
    flags: String,
    /// The driver of C.
    main: Option<String>,
    /// The statements of assembly's driver, for each input.
    body: Option<String>,
    /// The arguments of each run; one run without any if this is empty.
    #[serde(default)]
    runs: Vec<String>,
    /// What a line must contain to be compared; all lines if this is not given.
    #[serde(default)]
    prints: String,
    /// The build that belongs to the sample.
    sample: Option<String>,
}

/// A subject as one compiler makes it.
pub(crate) struct Build {
    pub(crate) subject: Subject,
    /// `gcc -O2`, `rustc -O3`, or `assembly`.
    pub(crate) by: String,
    pub(crate) text: String,
    /// The compiled crate, whose object can be replaced.
    library: Option<PathBuf>,
}

impl Build {
    /// Its row's name in the table.
    pub(crate) fn name(&self) -> String {
        row(&self.subject, &self.by)
    }

    /// Whether its driver takes a number of inputs.
    pub(crate) fn takes_inputs(&self) -> bool {
        self.subject.body.is_some()
    }

    /// The lines that are compared of what a run prints.
    pub(crate) fn compared(&self, printed: &str) -> String {
        let lines = printed.lines().filter(|line| line.contains(&self.subject.prints));
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// The arguments of each run.
    pub(crate) fn runs(&self) -> Vec<String> {
        if self.subject.runs.is_empty() { vec![String::new()] } else { self.subject.runs.clone() }
    }
}

pub(crate) fn row(subject: &Subject, by: &str) -> String {
    if by == "assembly" { subject.name.clone() } else { format!("{} {by}", subject.name) }
}

/// The list, and where everything is on this machine.
pub(crate) struct Here {
    list: List,
    packages: BTreeMap<String, PathBuf>,
    /// Downloads and builds.
    out: PathBuf,
}

fn io<T>(what: &Path, result: std::io::Result<T>) -> Result<T, String> {
    result.map_err(|e| format!("{}: {e}", what.display()))
}

/// Runs a command, and returns what it prints.
pub(crate) fn said(command: &mut Command) -> Result<String, String> {
    ran(command).map(|(printed, _)| printed)
}

/// The same, with its standard error.
fn ran(command: &mut Command) -> Result<(String, String), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command.env("LC_ALL", "C").stdin(Stdio::null()).output().map_err(|e| format!("{name}: {e}"))?;
    if !out.status.success() {
        let why = String::from_utf8_lossy(&out.stderr);
        let first = why.lines().find(|line| line.contains("rror")).or(why.lines().next()).unwrap_or_default();
        return Err(format!("{name}: {}: {first}", out.status));
    }
    Ok((String::from_utf8_lossy(&out.stdout).into_owned(), String::from_utf8_lossy(&out.stderr).into_owned()))
}

const COMPILERS: [(&str, &str); 2] = [("gcc", "gcc"), ("clang", "clang-19")];

impl Here {
    /// Looks up the packages, which cargo checks against the lock file's hashes, and the compilers.
    ///
    /// # Errors
    /// A package or a compiler is missing, or is another version than the list names.
    pub(crate) fn find(out: &Path) -> Result<Here, String> {
        let list: List = toml::from_str(LIST).map_err(|e| format!("list.toml: {e}"))?;
        let folder = out.join("corpus");
        io(&folder, fs::create_dir_all(&folder))?;
        for (name, text) in CORPUS {
            io(&folder, fs::write(folder.join(name), text))?;
        }
        for (name, text) in DRIVERS {
            io(out, fs::write(out.join(name), text))?;
        }
        let mut cargo = Command::new("cargo");
        cargo.args(["metadata", "--format-version", "1", "--locked", "--quiet", "--manifest-path"]);
        let metadata = said(cargo.arg(folder.join("Cargo.toml")))?;
        let metadata: serde_json::Value =
            serde_json::from_str(&metadata).map_err(|e| format!("cargo metadata: {e}"))?;
        let listed = metadata["packages"].as_array().cloned().unwrap_or_default();
        let place = |package: &serde_json::Value| {
            let manifest = Path::new(package["manifest_path"].as_str()?).parent()?.to_owned();
            Some((package["name"].as_str()?.to_owned(), manifest))
        };
        let mut packages: BTreeMap<String, PathBuf> = listed.iter().filter_map(place).collect();
        packages.extend(list.repository.keys().map(|name| (name.clone(), out.join("git").join(name))));
        if let Some(subject) = list.subject.iter().find(|subject| !packages.contains_key(&subject.package)) {
            return Err(format!("the corpus has no package {}", subject.package));
        }
        let here = Here { list, packages, out: out.to_owned() };
        here.compilers()?;
        Ok(here)
    }

    fn compilers(&self) -> Result<(), String> {
        for (family, wanted) in &self.list.compilers {
            let found = match COMPILERS.iter().find(|(name, _)| name == family) {
                Some((_, command)) => said(Command::new(command).arg("--version"))?,
                None => said(Command::new("rustc").arg("--version"))?,
            };
            if !found.split_whitespace().any(|word| word == wanted) {
                return Err(format!("{family} {wanted} is needed, but {} is here", found.trim()));
            }
        }
        Ok(())
    }

    /// The rows: all, or the sample.
    pub(crate) fn rows(&self, sample: bool, only: &[String]) -> Vec<(Subject, String)> {
        let mut out = Vec::new();
        for subject in &self.list.subject {
            let compiled: &[&str] = match (&subject.source, &subject.workload) {
                (Some(_), _) => &["gcc -O2", "gcc -O3", "clang -O2", "clang -O3"],
                (_, Some(_)) => &["rustc -O2", "rustc -O3"],
                _ => &["assembly"],
            };
            for by in compiled {
                let name = row(subject, by);
                let chosen = if only.is_empty() { true } else { only.iter().any(|only| name.contains(only)) };
                if chosen && (!sample || subject.sample.as_deref() == Some(by)) {
                    out.push((subject.clone(), (*by).to_owned()));
                }
            }
        }
        out
    }

    fn includes(&self, subject: &Subject) -> Vec<String> {
        let folder = &self.packages[&subject.package];
        subject.include.iter().map(|path| format!("-I{}", folder.join(path).display())).collect()
    }

    /// The file of this name among the drivers, in Debian's source package, or in a subject's package.
    fn file(&self, subject: &Subject, path: &str) -> Result<PathBuf, String> {
        if self.list.debian.member.ends_with(&format!("/{path}")) {
            return self.debian();
        }
        let driver = DRIVERS.iter().any(|(name, _)| *name == path);
        Ok(if driver { self.out.join(path) } else { self.packages[&subject.package].join(path) })
    }

    /// Fetches a subject's repository, if its code is in one. git checks the content against the commit's hash.
    fn fetch(&self, subject: &Subject) -> Result<(), String> {
        let Some(Repository { url, commit }) = self.list.repository.get(&subject.package) else {
            return Ok(());
        };
        let folder = &self.packages[&subject.package];
        let git = |words: &[&str]| said(Command::new("git").arg("-C").arg(folder).args(words));
        io(folder, fs::create_dir_all(folder))?;
        git(&["init", "--quiet"])?;
        if git(&["cat-file", "-e", commit]).is_err() {
            git(&["fetch", "--quiet", "--depth", "1", url, commit])?;
        }
        git(&["checkout", "--quiet", "--force", commit]).map(|_| ())
    }

    /// Assembly of a row.
    ///
    /// # Errors
    /// A compiler's message, or git's.
    pub(crate) fn build(&self, subject: &Subject, by: &str) -> Result<Build, String> {
        self.fetch(subject)?;
        let build =
            |text: String, library| Build { subject: subject.clone(), by: by.to_owned(), text, library };
        if subject.workload.is_some() {
            let (library, text) = self.rust(subject, by)?;
            return Ok(build(text, Some(library)));
        }
        if let Some(path) = &subject.assembly {
            let file = self.file(subject, path)?;
            if path.ends_with(".s") {
                return Ok(build(io(&file, fs::read_to_string(&file))?, None));
            }
            let includes = self.includes(subject);
            return Ok(build(said(Command::new("gcc").args(["-E", "-P"]).args(includes).arg(file))?, None));
        }
        let (family, level) = by.split_once(' ').unwrap_or((by, "-O2"));
        let command =
            COMPILERS.iter().find(|(name, _)| *name == family).map_or(family, |(_, command)| command);
        let source = self.file(subject, subject.source.as_deref().unwrap_or_default())?;
        let mut compiler = Command::new(command);
        compiler.args([level, "-w", "-S", "-o", "-"]).args(subject.flags.split_whitespace());
        Ok(build(said(compiler.args(self.includes(subject)).arg(source))?, None))
    }

    /// A crate, compiled by cargo as a dependency, and its assembly.
    fn rust(&self, subject: &Subject, by: &str) -> Result<(PathBuf, String), String> {
        let level = by.trim_start_matches("rustc -O");
        let target = self.out.join(format!("rust-{level}"));
        let deps = target.join("release/deps");
        let stem = format!("{}-", subject.package.replace('-', "_"));
        let found = |end: &str| -> Result<Option<PathBuf>, String> {
            let Ok(listed) = fs::read_dir(&deps) else { return Ok(None) };
            let mut files: Vec<PathBuf> = listed.filter_map(|entry| Some(entry.ok()?.path())).collect();
            files.retain(|file| {
                let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                name.trim_start_matches("lib").starts_with(&stem) && name.ends_with(end)
            });
            match &files[..] {
                [] => Ok(None),
                [one] => Ok(Some(one.clone())),
                _ => Err(format!("{}: several builds of {}; delete it", deps.display(), subject.package)),
            }
        };
        let mut cargo = Command::new("cargo");
        cargo.args(["rustc", "--release", "--locked", "--quiet", "--lib", "--package", &subject.package]);
        cargo.arg("--manifest-path").arg(self.out.join("corpus/Cargo.toml")).arg("--target-dir").arg(&target);
        cargo.args(["--", "--emit=asm,link,metadata", "-Ccodegen-units=1"]);
        cargo.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", level).env_remove("RUSTFLAGS");
        said(&mut cargo)?;
        match (found(".rlib")?, found(".s")?) {
            (Some(library), Some(text)) => Ok((library, io(&text, fs::read_to_string(&text))?)),
            _ => Err(format!("{}: cargo left no assembly of {}", deps.display(), subject.package)),
        }
    }

    /// The output of the program built from a text instead of the build's own.
    ///
    /// # Errors
    /// It is not built, does not end, or fails; or nothing runs this subject.
    pub(crate) fn prints(&self, build: &Build, text: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().map_err(|e| format!("a temporary folder: {e}"))?;
        self.program(build, text, folder.path())?;
        run(build, folder.path()).map(|(lines, _)| lines)
    }

    /// Builds `program` in a folder, from a text instead of the build's own.
    ///
    /// # Errors
    /// It is not built, or nothing runs this subject.
    pub(crate) fn program(&self, build: &Build, text: &str, folder: &Path) -> Result<(), String> {
        let (source, object, program) = (folder.join("f.s"), folder.join("f.o"), folder.join("program"));
        io(&source, fs::write(&source, text))?;
        let subject = &build.subject;
        // Each text goes to the assembler of its compiler, whose directives differ.
        let assembler = if build.by.starts_with("clang") { "clang-19" } else { "gcc" };
        said(Command::new(assembler).arg("-c").arg(&source).arg("-o").arg(&object))?;
        if let (Some(library), Some(workload)) = (&build.library, &subject.workload) {
            self.link_rust(build, library, workload, &object, &program)?;
        } else {
            let driver = folder.join("driver.c");
            let main = match (&subject.main, &subject.body) {
                (Some(main), _) => self.file(subject, main)?,
                (None, Some(body)) => {
                    let text = format!(
                        "#include \"driver.h\"\nint main(int count, char **words) {{\n    int inputs = count > 1 ? atoi(words[1]) : {INPUTS};\n    for (int input = 0; input < inputs; input++) {{\n{body}    }}\n    return finish();\n}}\n"
                    );
                    io(&driver, fs::write(&driver, text))?;
                    driver
                }
                _ => return Err(format!("nothing runs {}: list.toml needs a body for it", subject.name)),
            };
            let mut compiler = Command::new("gcc");
            compiler.args(["-O1", "-w", "-no-pie"]).arg("-I").arg(&self.out);
            compiler.args(self.includes(subject)).args(subject.flags.split_whitespace());
            said(compiler.arg(&main).arg(&object).arg("-lm").arg("-o").arg(&program))?;
        }
        Ok(())
    }

    /// Replaces the crate's object with this one, and links the workload with it.
    fn link_rust(
        &self,
        build: &Build,
        library: &Path,
        workload: &str,
        object: &Path,
        program: &Path,
    ) -> Result<(), String> {
        let members = said(Command::new("ar").arg("t").arg(library))?;
        let objects: Vec<&str> = members.lines().filter(|name| name.ends_with(".o")).collect();
        let [member] = objects[..] else { return Err(format!("{}: not one object", library.display())) };
        let folder = object.with_file_name("rlib");
        io(&folder, fs::create_dir_all(&folder))?;
        let copy = folder.join(library.file_name().unwrap_or_default());
        io(&copy, fs::copy(library, &copy))?;
        let placed = folder.join(member);
        io(&placed, fs::rename(object, &placed))?;
        said(Command::new("ar").arg("r").arg(&copy).arg(&placed))?;
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition", "2024", "-O", "-o"]).arg(program).arg("--extern");
        rustc.arg(format!("{}={}", build.subject.package.replace('-', "_"), copy.display()));
        rustc.arg("-L").arg(format!("dependency={}", library.with_file_name("").display()));
        said(rustc.arg(self.out.join(workload))).map(|_| ())
    }

    /// The benchmark of Debian's source package, by the package manager's own sources.
    fn debian(&self) -> Result<PathBuf, String> {
        let Debian { package, file, sha256: wanted, member } = &self.list.debian;
        let folder = self.out.join("debian");
        let (archive, unpacked) = (folder.join(file), folder.join(member));
        if !archive.exists() {
            let parts = folder.join("parts");
            for each in [&parts, &folder.join("lists/partial")] {
                io(each, fs::create_dir_all(each))?;
            }
            // The machine's own entries, for sources instead of programs.
            let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
            let listed = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().filter_map(Result::ok);
            files.extend(listed.map(|entry| entry.path()));
            for entry in files {
                let Ok(text) = fs::read_to_string(&entry) else { continue };
                let of_sources = |line: &str| match line.strip_prefix("deb ") {
                    Some(rest) => format!("deb-src {rest}\n"),
                    None => format!(
                        "{}\n",
                        line.replace("Types: deb", "Types: deb-src").replace("deb-src-src", "deb-src")
                    ),
                };
                let text: String = text.lines().map(of_sources).collect();
                io(&parts, fs::write(parts.join(entry.file_name().unwrap_or_default()), text))?;
            }
            let apt = || {
                let mut apt = Command::new("apt-get");
                let option = |name: &str, at: &Path| format!("{name}={}", at.display());
                apt.args(["-o", "Dir::Etc::sourcelist=/dev/null"]).current_dir(&folder);
                apt.args(["-o", &option("Dir::Etc::sourceparts", &parts)]);
                apt.args(["-o", &option("Dir::State::lists", &folder.join("lists"))]);
                apt
            };
            said(apt().arg("update"))?;
            said(apt().args(["source", "--download-only", package]))?;
        }
        let found = sha256(&io(&archive, fs::read(&archive))?);
        if found != *wanted {
            return Err(format!("{}: SHA-256 is {found}, not {wanted}", archive.display()));
        }
        said(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&folder).arg(member))?;
        Ok(unpacked)
    }
}

/// Runs the `program` of a folder with each of its arguments, and returns the lines that are compared and the standard
/// error output.
///
/// # Errors
/// It does not end or fails, or prints nothing that could be compared.
pub(crate) fn run(build: &Build, folder: &Path) -> Result<(String, String), String> {
    let (mut lines, mut errors) = (String::new(), String::new());
    for run in build.runs() {
        let mut timed = Command::new("timeout");
        let arguments = run.split_whitespace();
        let out = ran(timed.arg("300").arg(folder.join("program")).args(arguments).current_dir(folder))?;
        let compared = build.compared(&out.0);
        if compared.is_empty() {
            return Err(format!("{} prints nothing to compare", build.name()));
        }
        lines += &compared;
        errors += &out.1;
    }
    Ok((lines, errors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_subject_is_one_thing_and_pinned() {
        let list: List = toml::from_str(LIST).expect("a list");
        let lock = CORPUS[1].1;
        for subject in &list.subject {
            let kinds = [&subject.assembly, &subject.source, &subject.workload];
            assert_eq!(kinds.iter().filter(|kind| kind.is_some()).count(), 1, "{}", subject.name);
            if let Some(repository) = list.repository.get(&subject.package) {
                assert!(repository.commit.len() == 40 && subject.sample.is_none(), "{}", subject.package);
                continue;
            }
            assert!(lock.contains(&format!("name = \"{}\"\n", subject.package)), "{}", subject.package);
            let exact = |line: &str| line.starts_with(&subject.package) && line.contains("\"=");
            assert!(CORPUS[0].1.lines().any(exact), "{}", subject.package);
        }
    }
}
