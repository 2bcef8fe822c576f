//! Building chiavdf: GMP for this CPU, the package's functions as a library, its two chains and its benchmark as programs.
//!
//! Neither the package's own build script nor its makefile is run: the first needs libclang to describe four functions, and
//! both take the system's GMP. The compiler's flags are theirs; the card shows them.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

use lanework_peers::card::{Card, SCHEMA, fingerprint, hex_sha256};
use lanework_peers::delay::{
    BENCH, CHAIN, CHIAVDF, DELAY_FLAVOURS, DelayFlavour, GMP, IFMA, LIBRARY, vdf_bench,
};
use lanework_peers::ifma::{Limbs, Radix52};
use lanework_peers::machine::this_cpu;
use lanework_peers::{DelayPath, Peers};

use super::sources;
use super::tools::{Problem, Tools, capture, logged, version_line};

/// The process that squares on request.
const CHAIN_SOURCE: &str = include_str!("chain.cpp");

/// The flags of the package's `CMakeLists.txt` for its library, and of `Makefile.vdf-client` for its programs. The assembly
/// has absolute addresses, hence `-no-pie`.
const LIBRARY_FLAGS: &[&str] = &["-std=gnu++17", "-O3", "-DNDEBUG", "-fPIC"];
const PROGRAM_FLAGS: &[&str] = &[
    "-std=c++1z",
    "-O3",
    "-flto=auto",
    "-no-pie",
    "-pthread",
    "-fvisibility=hidden",
    "-DVDF_MODE=0",
    "-DFAST_MACHINE=1",
    "-DCHIAVDF_VERSION=\"1.2.2\"",
];

/// The assembly files that the package's generator writes, with the generator's argument for each.
const ASSEMBLY: &[(&str, Option<&str>)] = &[
    ("asm_compiled.s", None),
    ("avx2_asm_compiled.s", Some("avx2")),
    ("avx512_asm_compiled.s", Some("avx512")),
];

/// How the assembly of the 52-bit limbs becomes a library.
const IFMA_FLAGS: &[&str] = &["-shared", "-nostdlib"];
/// What is changed in it, for the card.
const RELOCATED: &str = "chiavdf's generated assembly with addresses relative to the instruction, as its generator writes them for macOS";

/// The names of all, for `--only`.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    DELAY_FLAVOURS.iter().map(|flavour| flavour.name)
}

fn problem(path: &Path, error: std::io::Error) -> Problem {
    Problem::Failed(format!("{}: {error}", path.display()))
}

/// The CPU to build GMP for, where its own choice would be poor: it does not know AMD's newest, and takes the plainest code for
/// them. Its best code for those is that of Zen 3.
fn gmp_build() -> Option<&'static str> {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    gmp_build_for(&text)
}

fn gmp_build_for(cpuinfo: &str) -> Option<&'static str> {
    let value = |key: &str| {
        let line = cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|k| k.trim() == key))?;
        line.split_once(':').map(|(_, value)| value.trim())
    };
    let flags: Vec<&str> = value("flags")?.split_whitespace().collect();
    let family: u32 = value("cpu family")?.parse().ok()?;
    let new = value("vendor_id")? == "AuthenticAMD" && family >= 0x19;
    (new && ["adx", "bmi2", "avx2"].iter().all(|flag| flags.contains(flag))).then_some("zen3-pc-linux-gnu")
}

/// What a build needs.
struct Plan {
    cc: PathBuf,
    cxx: PathBuf,
    make: PathBuf,
    compiler_version: String,
    gmp_options: Vec<String>,
    recipe: String,
}

impl Plan {
    /// The recipe of one flavour.
    fn recipe(&self, flavour: &DelayFlavour) -> String {
        match flavour.name {
            IFMA => hex_sha256([&self.recipe, RELOCATED, &IFMA_FLAGS.join(" ")].join("\n").as_bytes()),
            _ => self.recipe.clone(),
        }
    }

    fn new(tools: &Tools) -> Result<Self, Problem> {
        if std::env::consts::ARCH != "x86_64" || std::env::consts::OS != "linux" {
            return Err(Problem::Missing("chiavdf's chains are built on x86-64 Linux only".to_owned()));
        }
        let cc = tools.need("gcc", "to build GMP")?;
        let cxx = tools.need("g++", "to build chiavdf")?;
        let make = tools.need("make", "to build GMP")?;
        tools.need("m4", "to build GMP")?;
        let compiler_version = version_line(&cxx)?;
        let mut gmp_options: Vec<String> =
            ["--disable-shared", "--enable-static", "--with-pic"].map(str::to_owned).to_vec();
        gmp_options.extend(gmp_build().map(|build| format!("--build={build}")));
        let decides = [
            CHIAVDF.checksum,
            GMP.checksum,
            &compiler_version,
            &gmp_options.join(" "),
            &LIBRARY_FLAGS.join(" "),
            &PROGRAM_FLAGS.join(" "),
            CHAIN_SOURCE,
            &this_cpu(),
        ];
        let recipe = hex_sha256(decides.join("\n").as_bytes());
        Ok(Self { cc, cxx, make, compiler_version, gmp_options, recipe })
    }
}

fn is_built(out: &Path, flavour: &DelayFlavour, plan: &Plan) -> bool {
    Card::read(&out.join(flavour.card())).is_ok_and(|card| {
        card.recipe == plan.recipe(flavour) && card.matches(&out.join(flavour.file())).is_ok()
    })
}

/// Builds the missing parts, and tries them out. Returns a sentence on the result.
pub(crate) fn provide(
    out: &Path,
    flavour: &DelayFlavour,
    tools: &Tools,
    again: bool,
) -> Result<String, Problem> {
    let plan = Plan::new(tools)?;
    if again || !is_built(out, flavour, &plan) {
        build(out, flavour, &plan, again)?;
    }
    let _ = std::fs::remove_file(out.join(flavour.note()));
    let (card, what) = try_out(out, flavour)?;
    Ok(format!("there: {} {}, {}; {what}", card.project, card.version, card.compiler_version))
}

fn build(out: &Path, flavour: &DelayFlavour, plan: &Plan, again: bool) -> Result<(), Problem> {
    let chia = sources::fetch_folder(out, &CHIAVDF)?;
    let gmp_source = sources::fetch_folder(out, &GMP)?;
    let directory = out.join("build").join("chiavdf");
    std::fs::create_dir_all(&directory).map_err(|e| problem(&directory, e))?;
    let gmp = build_gmp(&gmp_source, &directory, plan, again)?;
    let place = Place { chia, gmp, gmp_source, directory };
    let built = place.directory.join(flavour.file());
    let flags = match flavour.name {
        LIBRARY => library(&place, plan, &built)?,
        IFMA => ifma(&place, plan, &built)?,
        CHAIN => {
            let source = place.directory.join("chain.cpp");
            std::fs::write(&source, CHAIN_SOURCE).map_err(|e| problem(&source, e))?;
            program(&place, plan, &source, &built)?
        }
        _ => program(&place, plan, &place.chia.join("vdf_bench.cpp"), &built)?,
    };
    install(out, flavour, &built, plan, flags)
}

/// Where sources and builds are.
struct Place {
    chia: PathBuf,
    gmp: PathBuf,
    gmp_source: PathBuf,
    directory: PathBuf,
}

impl Place {
    fn includes(&self, command: &mut Command) {
        for folder in [&self.chia, &self.gmp, &self.gmp_source] {
            command.arg("-I").arg(folder);
        }
    }

    fn gmp_archive(&self) -> PathBuf {
        self.gmp.join(".libs").join("libgmp.a")
    }

    fn log(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.log"))
    }
}

/// A command without the caller's flags, which would affect the build without being on the card.
fn plain(program: &Path) -> Command {
    let mut command = Command::new(program);
    for variable in ["CFLAGS", "CXXFLAGS", "LDFLAGS", "CPPFLAGS", "MAKEFLAGS"] {
        command.env_remove(variable);
    }
    command
}

/// GMP, as one archive of position-independent code; made once for a recipe.
fn build_gmp(source: &Path, directory: &Path, plan: &Plan, again: bool) -> Result<PathBuf, Problem> {
    let gmp = directory.join("gmp");
    let done = gmp.join("lanework-recipe");
    if !again && std::fs::read_to_string(&done).is_ok_and(|recipe| recipe == plan.recipe) {
        return Ok(gmp);
    }
    if gmp.exists() {
        std::fs::remove_dir_all(&gmp).map_err(|e| problem(&gmp, e))?;
    }
    std::fs::create_dir_all(&gmp).map_err(|e| problem(&gmp, e))?;
    // Packages do not keep execute permissions.
    let mut configure = plain(Path::new("/bin/sh"));
    configure.arg(source.join("configure")).args(&plan.gmp_options).current_dir(&gmp);
    configure.env("CC", &plan.cc);
    logged(&mut configure, &directory.join("gmp.configure.log"))?;
    let mut make = plain(&plan.make);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    make.arg(format!("-j{cores}")).current_dir(&gmp);
    logged(&mut make, &directory.join("gmp.build.log"))?;
    std::fs::write(&done, &plan.recipe).map_err(|e| problem(&done, e))?;
    Ok(gmp)
}

/// The package's functions; returns the flags.
fn library(place: &Place, plan: &Plan, built: &Path) -> Result<String, Problem> {
    let object = place.directory.join("lzcnt.pic.o");
    lzcnt(place, plan, &object)?;
    let mut compile = plain(&plan.cxx);
    compile.args(LIBRARY_FLAGS).args(["-w", "-shared", "-Wl,-Bsymbolic"]);
    place.includes(&mut compile);
    compile.arg("-o").arg(built).arg(place.chia.join("c_bindings/c_wrapper.cpp"));
    compile.arg(object).arg(place.gmp_archive());
    logged(&mut compile, &place.log(LIBRARY))?;
    Ok(LIBRARY_FLAGS.join(" "))
}

fn lzcnt(place: &Place, plan: &Plan, object: &Path) -> Result<(), Problem> {
    let mut compile = plain(&plan.cc);
    compile.args(["-O3", "-fPIC", "-c", "-o"]).arg(object).arg(place.chia.join("refcode/lzcnt.c"));
    logged(&mut compile, &place.log("lzcnt"))
}

/// A program over the chains; returns the flags.
fn program(place: &Place, plan: &Plan, source: &Path, built: &Path) -> Result<String, Problem> {
    let object = place.directory.join("lzcnt.o");
    lzcnt(place, plan, &object)?;
    assembly(place, plan)?;
    let mut compile = plain(&plan.cxx);
    compile.args(PROGRAM_FLAGS).arg("-w");
    place.includes(&mut compile);
    compile.arg("-o").arg(built).arg(source).arg(object);
    compile.args(ASSEMBLY.iter().map(|(file, _)| place.directory.join(file))).arg(place.gmp_archive());
    let name = built.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    logged(&mut compile, &place.log(&name))?;
    Ok(PROGRAM_FLAGS.join(" "))
}

/// The assembly of the 52-bit limbs as a library; returns the flags.
fn ifma(place: &Place, plan: &Plan, built: &Path) -> Result<String, Problem> {
    assembly(place, plan)?;
    let written = place.directory.join(ASSEMBLY[2].0);
    let text = std::fs::read_to_string(&written).map_err(|e| problem(&written, e))?;
    let source = place.directory.join("ifma.s");
    std::fs::write(&source, relocatable(&text)).map_err(|e| problem(&source, e))?;
    let mut link = plain(&plan.cc);
    link.args(IFMA_FLAGS).arg("-o").arg(built).arg(source);
    logged(&mut link, &place.log(IFMA))?;
    Ok(format!("{} ({RELOCATED})", IFMA_FLAGS.join(" ")))
}

/// The generator's assembly with addresses relative to the instruction. A constant's address loses a byte; that of the table of signs
/// takes a load and an addition, the two instructions that the generator has for macOS. The linker refuses what is forgotten here.
fn relocatable(assembly: &str) -> String {
    let mut out = String::with_capacity(assembly.len());
    for line in assembly.lines() {
        // Behind `#` is the generator's comment.
        let code = line.split('#').next().unwrap_or_default().trim_end();
        if let Some((before, table)) = code.split_once(", [avx512_add_table+")
            && let (Some(index), Some(register)) = (table.strip_suffix(']'), before.rsplit(' ').next())
        {
            out.push_str(&format!("{before}, [RIP+avx512_add_table]\nADD {register}, {index}\n"));
        } else {
            out.push_str(&code.replace("[_avx512_label_", "[RIP+_avx512_label_"));
            out.push('\n');
        }
    }
    out
}

/// Has the package's generator write its assembly, unless it already has.
fn assembly(place: &Place, plan: &Plan) -> Result<(), Problem> {
    let done = place.directory.join("assembly-recipe");
    if std::fs::read_to_string(&done).is_ok_and(|recipe| recipe == plan.recipe) {
        return Ok(());
    }
    let generator = place.directory.join("compile_asm");
    let mut compile = plain(&plan.cxx);
    // How fast the generator is does not matter, and optimising it takes most of the build's time.
    compile
        .args(PROGRAM_FLAGS.iter().filter(|flag| !["-O3", "-flto=auto"].contains(flag)))
        .args(["-O0", "-w"]);
    place.includes(&mut compile);
    compile.arg("-o").arg(&generator).arg(place.chia.join("compile_asm.cpp")).arg(place.gmp_archive());
    logged(&mut compile, &place.log("compile_asm"))?;
    for (file, told) in ASSEMBLY {
        let mut write = plain(&generator);
        write.args(told.iter()).current_dir(&place.directory);
        logged(&mut write, &place.log(file))?;
    }
    std::fs::write(&done, &plan.recipe).map_err(|e| problem(&done, e))
}

/// Copies the file to its place and writes its card.
fn install(
    out: &Path,
    flavour: &DelayFlavour,
    built: &Path,
    plan: &Plan,
    flags: String,
) -> Result<(), Problem> {
    let target = out.join(flavour.file());
    let partial = out.join(format!("{}.partial", flavour.file()));
    // Renamed into place: a program that has the old file open keeps the old one.
    std::fs::copy(built, &partial).map_err(|e| problem(built, e))?;
    std::fs::rename(&partial, &target).map_err(|e| problem(&target, e))?;
    let (library_bytes, library_sha256) = fingerprint(&target).map_err(|e| problem(&target, e))?;
    let card = Card {
        schema: SCHEMA,
        name: flavour.name.to_owned(),
        family: "vdf".to_owned(),
        project: "chiavdf".to_owned(),
        version: CHIAVDF.version.to_owned(),
        round: "Chia's class groups".to_owned(),
        source: format!(
            "{} {}, {} {} ({})",
            CHIAVDF.package, CHIAVDF.version, GMP.package, GMP.version, GMP.folder
        ),
        source_sha256: CHIAVDF.checksum.to_owned(),
        compiler: plan.cxx.display().to_string(),
        compiler_version: plan.compiler_version.clone(),
        flags,
        options: plan.gmp_options.iter().map(|option| format!("GMP {option}")).collect(),
        target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        cpu: Some(this_cpu()),
        recipe: plan.recipe(flavour),
        checked: vec![format!("the archive of GMP's package has SHA-256 {}", GMP.checksum)],
        code: None,
        library_bytes,
        library_sha256,
    };
    let path = out.join(flavour.card());
    card.write(&path).map_err(|e| problem(&path, e))
}

/// The discriminant of a challenge of the package's own tests: the chains are tried on it.
const MAGNITUDE: &str = "9a8eaf9c52d9a5f1db648cdf7bcd04b35cb1ac4f421c978fa61fe1344b97d4199dbff700d24e7cfc0b785e4b8b8023dc\
                         49f0e90227f74f54234032ac3381879f";
/// The challenge that it comes from.
const CHALLENGE: [u8; 10] = [0x6c, 0x3b, 0x9a, 0xa7, 0x67, 0xf7, 0x85, 0xb5, 0x37, 0xc0];

/// Loads or starts what was just built, the way its users will.
fn try_out(out: &Path, flavour: &DelayFlavour) -> Result<(Card, String), Problem> {
    let failed = |why: String| Problem::Failed(format!("built, but cannot be used: {why}"));
    match flavour.name {
        LIBRARY => {
            let library = Peers::delay_library(out).map_err(|u| failed(u.why))?;
            let mut d = [0; 64];
            library.discriminant(&CHALLENGE, &mut d).map_err(|e| failed(e.to_string()))?;
            let hex: String = d.iter().map(|byte| format!("{byte:02x}")).collect();
            if hex != MAGNITUDE {
                return Err(failed("its discriminant differs from that of its own tests".to_owned()));
            }
            Ok((library.card().clone(), "makes the discriminant of its tests".to_owned()))
        }
        CHAIN => {
            let mut forms = Vec::new();
            let mut card = None;
            for path in [DelayPath::Gmp, DelayPath::Pipeline] {
                let mut chain = Peers::delay_chain(out, MAGNITUDE, false).map_err(|u| failed(u.why))?;
                chain.square(path, 50).map_err(|e| failed(e.to_string()))?;
                forms.push(chain.form().map_err(|e| failed(e.to_string()))?);
                card = Some(chain.card().clone());
            }
            match card {
                Some(card) if forms.windows(2).all(|pair| pair[0] == pair[1]) => {
                    Ok((card, "both chains reach the same form".to_owned()))
                }
                _ => Err(failed("its two chains reach different forms".to_owned())),
            }
        }
        IFMA => {
            let ([small, _], card) = Peers::ifma(out).map_err(|u| match u.why.contains("no AVX-512") {
                true => Problem::Missing(u.why),
                false => failed(u.why),
            })?;
            let limbs = |x: &[u64], negative| {
                Limbs::new(x, negative).ok_or_else(|| failed("a number is too long".to_owned()))
            };
            let (x, y) = (limbs(&[u64::MAX; 8], true)?, limbs(&[3], false)?);
            let (mut a, mut b, mut c, mut z) = (Radix52::ZERO, Radix52::ZERO, Radix52::ZERO, Limbs::ZERO);
            small.to(&x, &mut a);
            small.to(&y, &mut b);
            small.mul(&a, &b, &mut c);
            small.from_wide(&c, &mut z);
            let mut expected = [u64::MAX; 9];
            (expected[0], expected[8]) = (u64::MAX - 2, 2);
            if z.limbs() != expected || !z.is_negative() {
                return Err(failed(format!("its product is {z:x?}")));
            }
            Ok((card, "multiplies".to_owned()))
        }
        BENCH => {
            let (mut command, card) = vdf_bench(out, false).map_err(|u| failed(u.why))?;
            let said = capture(command.args(["square", "1000"]))?;
            if !said.starts_with("Time: ") {
                return Err(failed(format!("it says {:?}", said.lines().next().unwrap_or_default())));
            }
            Ok((card, "runs".to_owned()))
        }
        other => Err(failed(format!("there is no {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_relative_and_nothing_else_changes() {
        let text = "avx512_Xx_6: MOV RAX, RDI                # x:1    MOV `out, [_avx512_label_0]\n\
                    avx512_Xx_9: VPANDQ ZMM3, ZMM2, ZMMWORD PTR [_avx512_label_12] # y:2\n\
                    avx512_Xx_7: LEA R10, [avx512_add_table+R9] # add:632\n.quad 0x3\n";
        let expected = "avx512_Xx_6: MOV RAX, RDI\n\
                        avx512_Xx_9: VPANDQ ZMM3, ZMM2, ZMMWORD PTR [RIP+_avx512_label_12]\n\
                        avx512_Xx_7: LEA R10, [RIP+avx512_add_table]\nADD R10, R9\n.quad 0x3\n";
        assert_eq!(relocatable(text), expected);
    }

    #[test]
    fn gmp_is_told_of_processors_that_it_does_not_know() {
        let of = |vendor: &str, family: &str, flags: &str| {
            gmp_build_for(&format!("vendor_id\t: {vendor}\ncpu family\t: {family}\nflags\t\t: {flags}\n"))
        };
        assert_eq!(of("AuthenticAMD", "26", "fpu adx bmi2 avx2"), Some("zen3-pc-linux-gnu"));
        assert_eq!(of("AuthenticAMD", "25", "fpu adx bmi2 avx2"), Some("zen3-pc-linux-gnu"));
        assert_eq!(of("AuthenticAMD", "26", "fpu avx2"), None);
        assert_eq!(of("AuthenticAMD", "23", "fpu adx bmi2 avx2"), None);
        assert_eq!(of("GenuineIntel", "6", "fpu adx bmi2 avx2"), None);
        assert_eq!(gmp_build_for(""), None);
    }
}
