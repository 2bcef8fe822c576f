//! `cargo xtask cuda`: compiles the kernels for CUDA devices, lints their machine code, and keeps shipped programs in step with their
//! sources.
//!
//! Every `kernels.toml` below `crates/` names programs. Their fat binaries ship in the repository, so building
//! needs no CUDA compiler; `kernels.lock` records the sources and the compiler of each. The lint runs over every kernel
//! that handles secrets. Before that it runs over planted faults, and must refuse them all.
#![forbid(unsafe_code)]

mod compile;
mod floors;
mod flow;
mod lint;
mod manifest;
mod sass;
mod signature;
mod state;

use core::fmt;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Instant;

use crate::Complaint;
use compile::{NVCC, Toolchain};
use manifest::{Lock, Locked, Program};

/// Options of `cargo xtask cuda`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Change nothing: recompile, and fail if the result differs from what ships.
    #[arg(long)]
    check: bool,
    /// Compare hashes only, which needs no compiler.
    #[arg(long, conflicts_with = "check")]
    hashes: bool,
    /// Compile nothing: count the machine code that ships, and write the tables of floors.
    #[arg(long, conflicts_with = "hashes")]
    floors: bool,
    /// Print all refusals of every kernel, not only the first few.
    #[arg(long)]
    all: bool,
    /// Only programs whose source's path contains this.
    #[arg(long, value_name = "PART")]
    only: Option<String>,
    /// Where the compiler is kept. [default: target/nvcc in the workspace]
    #[arg(long, value_name = "DIR", env = "LANEWORK_NVCC")]
    toolchain: Option<PathBuf>,
}

/// Why the task failed.
pub(crate) enum Problem {
    /// Something is wrong with the kernels or their compilation.
    Failed(String),
    /// No compiler is available here.
    Missing(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Failed(why) | Problem::Missing(why) => f.write_str(why),
        }
    }
}

/// Refusals of a kernel that are printed without `--all`.
const SHOWN: usize = 3;

/// Runs the task. The exit code is 0 for success, 1 for a failure, and 3 where there is no compiler.
pub(crate) fn run(options: &Options) -> ExitCode {
    match work(options) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failed) => {
            Complaint::from(format!("{failed} failed")).print();
            ExitCode::from(1)
        }
        Err(problem) => {
            Complaint::from(problem.to_string()).print();
            ExitCode::from(if matches!(problem, Problem::Missing(_)) { 3 } else { 1 })
        }
    }
}

fn work(options: &Options) -> Result<usize, Problem> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let root = package.as_deref().and_then(Path::parent).unwrap_or(Path::new("")).to_owned();
    let manifests = manifest::find(&root);
    let mut failed = 0;
    if options.hashes {
        for path in &manifests {
            for why in manifest::stale(&root, path).map_err(Problem::Failed)? {
                println!("FAILED {why}");
                failed += 1;
            }
        }
        return Ok(failed);
    }
    let folder = options.toolchain.clone().unwrap_or_else(|| root.join("target").join("nvcc"));
    let folder =
        std::path::absolute(&folder).map_err(|e| Problem::Failed(format!("{}: {e}", folder.display())))?;
    let toolchain = Toolchain::get(&folder)?;
    let scratch = folder.with_extension("work");
    let floors = |path: &Path| {
        let folder = path.parent().unwrap_or(&root);
        floors::renew(&toolchain, folder, options.check).map_err(Problem::Failed)
    };
    if options.floors {
        return manifests.iter().map(|path| floors(path)).sum();
    }
    fs::create_dir_all(&scratch).map_err(|e| Problem::Failed(format!("{}: {e}", scratch.display())))?;
    plants(&toolchain, &root, &scratch)?;
    for path in &manifests {
        failed += one(options, &toolchain, &root, path, &scratch)?;
    }
    if failed == 0 {
        for path in &manifests {
            failed += floors(path)?;
        }
    }
    Ok(failed)
}

/// Compiles the planted faults and lints them. A lint that lets one pass proves nothing.
fn plants(toolchain: &Toolchain, root: &Path, scratch: &Path) -> Result<(), Problem> {
    let program = Program {
        source: "plants.cu".to_owned(),
        code: String::new(),
        include: vec![root.join("crates/cuda/shim").display().to_string()],
        options: Vec::new(),
        secret: Vec::new(),
        exempt: BTreeMap::new(),
        declassified: BTreeMap::new(),
        public: BTreeMap::from([("*_open_*".to_owned(), vec!["open".to_owned()])]),
    };
    let code = scratch.join("plants.fatbin");
    let folder = root.join("xtask/src/cuda/plants");
    let source = read(&folder.join(&program.source))?;
    toolchain.compile(&folder, &program, &code)?;
    let functions = sass::parse(&toolchain.listing(&code)?).map_err(Problem::Failed)?;
    let constants = sass::constants(&toolchain.sections(&code)?);
    let (mut refused, mut passed) = (0, 0);
    for function in &functions {
        let memory = memory(&program, &source, function, None, &constants).map_err(Problem::Failed)?;
        let findings = lint::judge(function, memory);
        let passes = findings.refusals.is_empty();
        if passes != function.name.starts_with("pass_") {
            let what = if passes { "passes the planted" } else { "refuses the clean" };
            return Err(Problem::Failed(format!(
                "the lint {what} {} ({}): {:?}",
                function.name, function.architecture, findings.refusals
            )));
        }
        if passes { passed += 1 } else { refused += 1 }
    }
    if refused == 0 || passed == 0 {
        return Err(Problem::Failed("the planted kernels were not found in their program".to_owned()));
    }
    println!("lint: {refused} planted kernels refused, {passed} clean ones passed");
    Ok(())
}

/// Checks the programs of one manifest. Returns how many checks failed.
fn one(
    options: &Options,
    toolchain: &Toolchain,
    root: &Path,
    path: &Path,
    scratch: &Path,
) -> Result<usize, Problem> {
    let folder = path.parent().unwrap_or(root);
    let manifest = manifest::read(path).map_err(Problem::Failed)?;
    let lock_path = manifest::lock_path(path);
    let old = manifest::read_lock(&lock_path).ok();
    let mut lock = Lock { nvcc: NVCC.to_owned(), program: Vec::new() };
    let mut failed = 0;
    let wanted = |program: &Program| {
        let source = folder.join(&program.source).display().to_string();
        options.only.as_ref().is_none_or(|part| source.contains(part.as_str()))
    };
    let fresh = |program: &Program| scratch.join(&program.code).with_extension("fresh");
    std::thread::scope(|scope| -> Result<(), Problem> {
        let compiled: Vec<_> = manifest
            .program
            .iter()
            .map(|p| wanted(p).then(|| start(scope, toolchain, folder, p, fresh(p))))
            .collect();
        for (program, compiled) in manifest.program.iter().zip(compiled) {
            let before = old.iter().flat_map(|old| &old.program).find(|locked| locked.code == program.code);
            let Some(compiled) = compiled else {
                // Its old entry stays. Without one, the lock must be made anew.
                if let Some(before) = before {
                    lock.program.push(clone(before));
                }
                continue;
            };
            // This one is linted while others are still being compiled.
            compiled.join().unwrap_or_else(|e| std::panic::resume_unwind(e))?;
            let fresh = fresh(program);
            let bytes = fs::read(&fresh).map_err(|e| Problem::Failed(format!("{}: {e}", fresh.display())))?;
            let (wrong, kernels) = judge(options, toolchain, folder, program, &fresh)?;
            failed += wrong;
            let locked = Locked {
                code: program.code.clone(),
                sha256: manifest::sha256(&bytes),
                options: compile::options(program),
                sources: manifest::sources(root, folder, program).map_err(Problem::Failed)?,
                kernels,
            };
            let ships = folder.join(&program.code);
            if options.check {
                if fs::read(&ships).ok().as_deref() != Some(&bytes[..]) {
                    println!("FAILED {} differs from what {} compiles to", program.code, program.source);
                    failed += 1;
                }
                if before != Some(&locked) {
                    println!("FAILED {} does not match kernels.lock", program.code);
                    failed += 1;
                }
            } else if wrong == 0 {
                fs::write(&ships, &bytes)
                    .map_err(|e| Problem::Failed(format!("{}: {e}", ships.display())))?;
            }
            lock.program.push(locked);
        }
        Ok(())
    })?;
    if !options.check && failed == 0 {
        let text = toml::to_string(&lock).map_err(|e| Problem::Failed(e.to_string()))?;
        let text = format!("# Written by `cargo xtask cuda`: what ships and what it was made of.\n{text}");
        fs::write(&lock_path, text).map_err(|e| Problem::Failed(format!("{}: {e}", lock_path.display())))?;
    }
    Ok(failed)
}

/// Starts compiling a program: programs are compiled side by side, since the compiler's front end has one thread.
fn start<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    toolchain: &'env Toolchain,
    folder: &'env Path,
    program: &'env Program,
    to: PathBuf,
) -> ScopedJoinHandle<'scope, Result<(), Problem>> {
    scope.spawn(move || {
        let started = Instant::now();
        toolchain.compile(folder, program, &to)?;
        println!("{}: compiled in {:.0} s", program.source, started.elapsed().as_secs_f64());
        Ok(())
    })
}

fn clone(locked: &Locked) -> Locked {
    Locked {
        code: locked.code.clone(),
        sha256: locked.sha256.clone(),
        options: locked.options.clone(),
        sources: locked.sources.clone(),
        kernels: locked.kernels.clone(),
    }
}

fn read(path: &Path) -> Result<String, Problem> {
    fs::read_to_string(path).map_err(|e| Problem::Failed(format!("{}: {e}", path.display())))
}

/// The function's arguments, from the program's source and its entry in `kernels.toml`.
fn memory(
    program: &Program,
    source: &str,
    function: &sass::Function,
    bank: Option<u64>,
    constants: &BTreeMap<(String, String), Vec<u32>>,
) -> Result<flow::Memory, String> {
    let public = program.public.iter().filter(|(pattern, _)| manifest::matches(pattern, &function.name));
    let public: Vec<String> = public.flat_map(|(_, names)| names.clone()).collect();
    let memory = signature::memory(source, &function.name, &function.architecture, &public, bank)?;
    let own = constants.get(&(function.architecture.clone(), function.name.clone()));
    Ok(memory.with_constants(own.cloned().unwrap_or_default()))
}

/// A program whose kernels handle no secrets: its machine code is not linted, but every kernel must be exempt by name.
fn exempt(
    program: &Program,
    resources: BTreeMap<(String, String), String>,
) -> Result<(usize, BTreeMap<String, String>), Problem> {
    let mut failed = 0;
    let mut kernels = BTreeMap::new();
    for ((kernel, architecture), used) in resources {
        let name = format!("{architecture}/{kernel}");
        let named = program.exempt.keys().any(|pattern| manifest::matches(pattern, &kernel));
        println!(
            "{name:48} exempt {used}{}",
            if named { "" } else { "  REFUSED: kernels.toml does not name it" }
        );
        failed += usize::from(!named);
        kernels.insert(name, used);
    }
    if kernels.is_empty() {
        println!("FAILED {} has no machine code", program.source);
        failed += 1;
    }
    Ok((failed, kernels))
}

/// Lints a program's kernels. Returns how many are refused, and the resources of each.
fn judge(
    options: &Options,
    toolchain: &Toolchain,
    folder: &Path,
    program: &Program,
    code: &Path,
) -> Result<(usize, BTreeMap<String, String>), Problem> {
    let started = Instant::now();
    let resources = usage(&toolchain.resources(code)?);
    if program.secret.is_empty() {
        return exempt(program, resources);
    }
    let functions = sass::parse(&toolchain.listing(code)?).map_err(Problem::Failed)?;
    let constants = sass::constants(&toolchain.sections(code)?);
    let source = read(&folder.join(&program.source))?;
    let mut failed = 0;
    let mut kernels = BTreeMap::new();
    for function in &functions {
        let name = format!("{}/{}", function.architecture, function.name);
        let mut released = String::new();
        let used = resources.get(&(function.name.clone(), function.architecture.clone()));
        let used = used.map_or("", String::as_str);
        let secret = program.secret.iter().any(|pattern| manifest::matches(pattern, &function.name));
        let exempt = program.exempt.iter().find(|(pattern, _)| manifest::matches(pattern, &function.name));
        let mut why = Vec::new();
        match (secret, exempt) {
            (true, None) => {
                match memory(program, &source, function, value(used, "CONSTANT[0]"), &constants) {
                    Ok(memory) => {
                        let findings = lint::judge(function, memory);
                        why = findings.refusals;
                        let named = program
                            .declassified
                            .iter()
                            .find(|(pattern, _)| manifest::matches(pattern, &function.name))
                            .map_or(0, |(_, named)| {
                                released = format!(", released {}: {}", named.count, named.why);
                                named.count
                            });
                        if findings.declassified != named {
                            why.push(format!(
                                "{} values are made public, but kernels.toml says {named}",
                                findings.declassified
                            ));
                        }
                    }
                    Err(reason) => why.push(reason),
                }
                if ["STACK", "LOCAL"].iter().any(|part| value(used, part) != Some(0)) {
                    why.push(format!("local memory: {used}"));
                }
            }
            (false, Some(_)) => {}
            (true, Some(_)) => why.push("kernels.toml calls it secret and exempt".to_owned()),
            (false, None) => why.push("kernels.toml calls it neither secret nor exempt".to_owned()),
        }
        let kind = if secret { "secret" } else { "exempt" };
        println!("{name:48} {kind} {used}{released}{}", if why.is_empty() { "" } else { "  REFUSED" });
        failed += usize::from(!why.is_empty());
        let shown = if options.all { why.len() } else { why.len().min(SHOWN) };
        for line in &why[..shown] {
            println!("    {line}");
        }
        if shown < why.len() {
            println!("    and {} more", why.len() - shown);
        }
        kernels.insert(name, used.to_owned());
    }
    println!("{}: linted in {:.0} s", program.source, started.elapsed().as_secs_f64());
    if functions.is_empty() {
        println!("FAILED {} has no machine code", program.source);
        failed += 1;
    }
    Ok((failed, kernels))
}

/// The resource line of each kernel and architecture.
fn usage(text: &str) -> BTreeMap<(String, String), String> {
    let (mut found, mut name, mut architecture) = (BTreeMap::new(), String::new(), String::new());
    for line in text.lines() {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("arch = ") {
            architecture = rest.to_owned();
        } else if let Some(rest) = line.strip_prefix("Function ") {
            name = rest.trim_end_matches(':').to_owned();
        } else if line.starts_with("REG:") {
            let kept = line.split_whitespace().filter(|part| {
                ["REG:", "STACK:", "SHARED:", "LOCAL:", "CONSTANT[0]:"]
                    .iter()
                    .any(|kept| part.starts_with(kept))
            });
            found.insert((name.clone(), architecture.clone()), kept.collect::<Vec<_>>().join(" "));
        }
    }
    found
}

/// One value of such a line.
fn value(used: &str, part: &str) -> Option<u64> {
    used.split_whitespace().find_map(|word| word.strip_prefix(part)?.strip_prefix(':')?.parse().ok())
}
