//! Building one flavour of liboqs, with MAYO and the schemes that it is compared with.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

use lanework_peers::card::{Card, Code, SCHEMA, fingerprint, hex_sha256};
use lanework_peers::flavour::{Flags, Flavour, Tuning};
use lanework_peers::machine::this_cpu;
use serde_json::Value;

use super::tools::{Problem, Tools, logged, version_line};
use super::{inspect, pragmas};

/// Compiled into each library once per parameter set.
const EXPOSE: &str = include_str!("expose.c");

/// The tools and choices of one build.
struct Plan {
    cmake: PathBuf,
    compiler: PathBuf,
    compiler_version: String,
    options: Vec<String>,
    cpu: Option<String>,
    recipe: String,
}

impl Plan {
    fn new(flavour: &Flavour, tools: &Tools) -> Result<Self, Problem> {
        let cmake = tools.need("cmake", "to build liboqs")?;
        let compiler = tools.compiler(flavour.compiler)?;
        let compiler_version = version_line(&compiler)?;
        let options = options(flavour);
        let native = match flavour.tuning {
            Tuning::Native => true,
            Tuning::Dispatch | Tuning::Generic => false,
            Tuning::Flags(flags) => flags.native(),
        };
        let cpu = native.then(this_cpu);
        let inserted = pragmas_of(flavour).then(pragmas::recipe);
        let compiler_path = compiler.display().to_string();
        let (options_line, linker_line) = (options.join(" "), linker_flags(flavour, &[]));
        let mut decides = vec![
            flavour.release.checksum,
            &compiler_path,
            &compiler_version,
            &options_line,
            cpu.as_deref().unwrap_or_default(),
            EXPOSE,
            &linker_line,
        ];
        decides.extend(inserted.as_deref());
        let recipe = hex_sha256(decides.join("\n").as_bytes());
        Ok(Self { cmake, compiler, compiler_version, options, cpu, recipe })
    }
}

/// Whether an earlier build of the same recipe exists and is complete.
fn is_built(out: &Path, flavour: &Flavour, plan: &Plan) -> bool {
    Card::read(&out.join(flavour.card()))
        .is_ok_and(|card| card.recipe == plan.recipe && card.matches(&out.join(flavour.library())).is_ok())
}

/// Builds `flavour` from the sources that `source` yields and puts library and card into `out`; does
/// nothing when an earlier build of the same recipe exists, unless `again`.
pub(crate) fn build(
    out: &Path,
    source: impl FnOnce() -> Result<PathBuf, Problem>,
    flavour: &Flavour,
    tools: &Tools,
    again: bool,
) -> Result<(), Problem> {
    let plan = Plan::new(flavour, tools)?;
    if !again && is_built(out, flavour, &plan) {
        return Ok(());
    }
    let source = &source()?;
    let directory = out.join("build").join(flavour.name);
    // From scratch each time: a cached configuration would keep an old compiler.
    if directory.exists() {
        std::fs::remove_dir_all(&directory).map_err(|e| problem(&directory, e))?;
    }
    std::fs::create_dir_all(&directory).map_err(|e| problem(&directory, e))?;
    let copy = pragmas_of(flavour).then(|| directory.join("source"));
    if let Some(copy) = &copy {
        pragmas::copy_with(source, copy, flavour.release.sets.iter().map(|set| set.symbol.to_owned()))?;
    }
    let source = copy.as_ref().unwrap_or(source);

    let objects: Vec<PathBuf> =
        flavour.release.sets.iter().map(|set| directory.join(format!("expose_{}.o", set.symbol))).collect();
    let mut configure = Command::new(&plan.cmake);
    configure.arg("-S").arg(source).arg("-B").arg(&directory).args(&plan.options);
    configure.arg(format!("-DCMAKE_C_COMPILER={}", plan.compiler.display()));
    configure.arg(format!("-DCMAKE_SHARED_LINKER_FLAGS={}", linker_flags(flavour, &objects)));
    if tools.find("ninja").is_some() {
        configure.args(["-G", "Ninja"]);
    }
    // Flags of the caller's environment would affect the build without being on the card.
    for variable in ["CFLAGS", "LDFLAGS", "CPPFLAGS"] {
        configure.env_remove(variable);
    }
    logged(&mut configure, &out.join("build").join(format!("{}.configure.log", flavour.name)))?;

    expose(&directory, source, flavour, &plan.compiler, &objects)?;
    let mut make = Command::new(&plan.cmake);
    make.arg("--build").arg(&directory).args(["--target", "oqs", "--parallel"]);
    logged(&mut make, &out.join("build").join(format!("{}.build.log", flavour.name)))?;

    let built = directory.join("lib").join(format!("liboqs{}", std::env::consts::DLL_SUFFIX));
    let checked = inspect::check(tools, &built, flavour.tuning)?;
    let code = match flavour.tuning {
        Tuning::Flags(flags) if std::env::consts::ARCH == "x86_64" => {
            let sets: Vec<_> = flavour.release.sets.iter().map(|set| set.symbol).collect();
            let vector_files = directory.join("src/sig/mayo/CMakeFiles/mayo_1_avx2.dir").is_dir();
            Some(inspect::code(tools, &directory, &sets, flags, vector_files)?)
        }
        _ => None,
    };
    install(out, &built, flavour, plan, Found { checked, code }, &directory)?;
    copy.map_or(Ok(()), |copy| std::fs::remove_dir_all(&copy).map_err(|e| problem(&copy, e)))
}

/// Whether the flavour's sources get pragmas.
fn pragmas_of(flavour: &Flavour) -> bool {
    matches!(flavour.tuning, Tuning::Flags(Flags { pragmas: true, .. }))
}

/// What was found in a finished library.
struct Found {
    checked: Vec<String>,
    code: Option<Code>,
}

/// The options that make the flavour; without the compiler and paths.
fn options(flavour: &Flavour) -> Vec<String> {
    let all = flavour.release.sets.iter().chain(flavour.release.others);
    let sets: Vec<_> = all.map(|set| format!("SIG_{}", set.symbol)).collect();
    let (dispatch, target) = match flavour.tuning {
        Tuning::Native => ("OFF", Some("native")),
        Tuning::Dispatch => ("ON", None),
        Tuning::Generic | Tuning::Flags(_) => ("OFF", Some("generic")),
    };
    let mut options = vec![
        "-DCMAKE_BUILD_TYPE=Release".to_owned(),
        "-DBUILD_SHARED_LIBS=ON".to_owned(),
        "-DOQS_BUILD_ONLY_LIB=ON".to_owned(),
        "-DOQS_USE_OPENSSL=OFF".to_owned(),
        format!("-DOQS_MINIMAL_BUILD={}", sets.join(";")),
        format!("-DOQS_DIST_BUILD={dispatch}"),
    ];
    options.extend(target.map(|target| format!("-DOQS_OPT_TARGET={target}")));
    if let Tuning::Flags(flags) = flavour.tuning {
        // liboqs finds out what a program compiled with them can use, and chooses files by that.
        options.push(format!("-DCMAKE_C_FLAGS={}", flags.flags));
        if flags.plain {
            options
                .extend(["AES", "AVX2", "AVX512F"].map(|what| format!("-DOQS_USE_{what}_INSTRUCTIONS=OFF")));
        }
    }
    options
}

/// Binds the library's calls to its own functions, since several copies live in one process, and adds
/// our objects. A library with OpenMP stays loaded: its idle threads wait in libgomp's code, which would be unmapped with it.
fn linker_flags(flavour: &Flavour, objects: &[PathBuf]) -> String {
    let mut flags = if cfg!(target_os = "macos") { String::new() } else { "-Wl,-Bsymbolic".to_owned() };
    if matches!(flavour.tuning, Tuning::Flags(own) if own.openmp()) {
        flags.push_str(" -Wl,-z,nodelete");
    }
    for object in objects {
        flags.push_str(&format!(" \"{}\"", object.display()));
    }
    flags
}

/// Compiles `expose.c` for each set, against the configuration that has just been written.
fn expose(
    directory: &Path,
    source: &Path,
    flavour: &Flavour,
    compiler: &Path,
    objects: &[PathBuf],
) -> Result<(), Problem> {
    let file = directory.join("expose.c");
    std::fs::write(&file, EXPOSE).map_err(|e| problem(&file, e))?;
    for (index, (set, object)) in flavour.release.sets.iter().zip(objects).enumerate() {
        let number = set.symbol.trim_start_matches("mayo_");
        let mut compile = Command::new(compiler);
        compile.args(["-std=c11", "-O2", "-fPIC", "-fvisibility=hidden", "-c"]);
        compile.arg(format!("-DMAYO_VARIANT=MAYO_{number}")).arg("-DMAYO_BUILD_TYPE_OPT");
        compile.arg(format!("-DLANEWORK_SET={number}"));
        if index == 0 {
            compile.arg("-DLANEWORK_AES");
        }
        compile.arg("-I").arg(directory.join("include"));
        compile.arg("-I").arg(source.join(format!("src/sig/mayo/pqmayo_mayo-{number}_opt")));
        compile.arg("-o").arg(object).arg(&file);
        logged(&mut compile, &directory.join(format!("expose_{}.log", set.symbol)))?;
    }
    Ok(())
}

/// Copies the library to its place and writes its card.
fn install(
    out: &Path,
    built: &Path,
    flavour: &Flavour,
    plan: Plan,
    found: Found,
    directory: &Path,
) -> Result<(), Problem> {
    let library = out.join(flavour.library());
    let partial = out.join(format!("{}.partial", flavour.library()));
    // Renamed into place: a program that has the old library open keeps the old one.
    std::fs::copy(built, &partial).map_err(|e| problem(built, e))?;
    std::fs::rename(&partial, &library).map_err(|e| problem(&library, e))?;
    let (library_bytes, library_sha256) = fingerprint(&library).map_err(|e| problem(&library, e))?;
    let release = flavour.release;
    let card = Card {
        schema: SCHEMA,
        name: flavour.name.to_owned(),
        family: "mayo".to_owned(),
        project: release.project.to_owned(),
        version: release.version.to_owned(),
        round: release.round.to_owned(),
        source: format!("{} {}", release.package, release.package_version),
        source_sha256: release.checksum.to_owned(),
        compiler: plan.compiler.display().to_string(),
        compiler_version: plan.compiler_version,
        flags: hot_flags(&directory.join("compile_commands.json"))?,
        options: plan.options,
        target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        cpu: plan.cpu,
        recipe: plan.recipe,
        checked: found.checked,
        code: found.code,
        library_bytes,
        library_sha256,
    };
    let path = out.join(flavour.card());
    card.write(&path).map_err(|e| problem(&path, e))
}

/// The flags with which MAYO-1's main file was compiled, in its fastest variant.
fn hot_flags(database: &Path) -> Result<String, Problem> {
    let of = |variant: &str| flags_in(database, &format!("pqmayo_mayo-1_{variant}/mayo.c"));
    of("avx2").or_else(|_| of("neon")).or_else(|_| of("opt"))
}

/// The flags with which the file whose path ends in `file` was compiled.
pub(crate) fn flags_in(database: &Path, file: &str) -> Result<String, Problem> {
    let text = std::fs::read_to_string(database).map_err(|e| problem(database, e))?;
    let entries: Value =
        serde_json::from_str(&text).map_err(|e| Problem::Failed(format!("{}: {e}", database.display())))?;
    let of_file = |entry: &&Value| entry["file"].as_str().is_some_and(|path| path.ends_with(file));
    entries
        .as_array()
        .and_then(|entries| entries.iter().find(of_file)?["command"].as_str())
        .map(flags_of)
        .ok_or_else(|| Problem::Failed(format!("{} does not mention {file}", database.display())))
}

/// The flags of a compiler command, less the compiler, definitions, include paths and file names.
fn flags_of(command: &str) -> String {
    let mut flags = Vec::new();
    let mut words = command.split_whitespace().skip(1);
    while let Some(word) = words.next() {
        match word {
            "-o" | "-c" | "-I" | "-isystem" => {
                words.next();
            }
            _ if word.starts_with("-I") || word.starts_with("-D") || word.starts_with("-W") => {}
            _ if word.starts_with('-') && !flags.contains(&word) => flags.push(word),
            _ => {}
        }
    }
    flags.join(" ")
}

fn problem(path: &Path, error: std::io::Error) -> Problem {
    Problem::Failed(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanework_peers::{FLAG_BUILDS, FLAVOURS};

    #[test]
    fn the_card_shows_code_generation_flags_only() {
        let command = "/usr/bin/cc -DMAYO_AVX -I/a/b -I /c -O3 -DNDEBUG -std=gnu11 -fPIC -march=native -Wbad \
                       -O3 -mavx2 -o a.o -c /a/mayo.c";
        assert_eq!(flags_of(command), "-O3 -std=gnu11 -fPIC -march=native -mavx2");
    }

    #[test]
    fn each_tuning_has_its_own_options() {
        let of = |name: &str| {
            let flavour = FLAVOURS.iter().find(|flavour| flavour.name == name).expect("known");
            options(flavour).join(" ")
        };
        assert!(of("liboqs-gcc-native").contains("OQS_DIST_BUILD=OFF -DOQS_OPT_TARGET=native"));
        assert!(of("liboqs12-generic").contains("OQS_DIST_BUILD=OFF -DOQS_OPT_TARGET=generic"));
        assert!(of("liboqs-dist").ends_with("OQS_DIST_BUILD=ON"));
        assert!(of("liboqs-dist").contains("SIG_mayo_1;SIG_mayo_2;SIG_mayo_3;SIG_mayo_5;SIG_ml_dsa_44;"));
        assert!(of("liboqs12-dist").contains("SIG_mayo_5 "));
        let of = |name: &str| {
            let flavour = FLAG_BUILDS.iter().find(|flavour| flavour.name == name).expect("known");
            options(flavour).join(" ")
        };
        // None of the build system's own: exactly the report's.
        let both = of("liboqs12-flags-avx2-omp");
        assert!(
            both.ends_with("-DOQS_OPT_TARGET=generic -DCMAKE_C_FLAGS=-O3 -mavx2 -fopenmp -march=native"),
            "{both}"
        );
        assert!(of("liboqs12-flags-avx2-omp-plain").contains("-march=native -DOQS_USE_AES_INSTRUCTIONS=OFF"));
    }

    #[test]
    fn paths_with_spaces_survive_the_linker_flags() {
        let flags = linker_flags(&FLAVOURS[0], &[PathBuf::from("/a b/x.o")]);
        assert!(flags.ends_with(" \"/a b/x.o\""), "{flags}");
    }
}
