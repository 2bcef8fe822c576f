//! The compiler: obtained once, outside of the tree, by name, version and hash.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Problem;
use super::manifest::Program;

/// The version of nvcc that programs are compiled with. Drivers refuse intermediate code of a newer version than their own, so it
/// is the oldest that has everything needed.
pub(super) const NVCC: &str = "13.0.88";

/// Exactly the files that pip installs.
const WHEELS: &str = include_str!("wheels.txt");

/// A compiler and a disassembler.
pub(super) struct Toolchain {
    folder: PathBuf,
}

/// Options of every program: machine code for sm_89 and sm_90, and intermediate code for whatever is newer than
/// sm_80. All come from one intermediate code: no source is for one architecture alone, and the front end takes as long as all
/// the rest. So the lint has seen two translations of the code that newer devices compile for themselves.
pub(super) fn options(program: &Program) -> Vec<String> {
    let fixed = ["-std=c++17", "-O3", "-gencode=arch=compute_80,code=[compute_80,sm_89,sm_90]"];
    fixed.iter().map(|option| (*option).to_owned()).chain(program.options.iter().cloned()).collect()
}

impl Toolchain {
    /// The toolchain in this folder, installed there if missing.
    pub(super) fn get(folder: &Path) -> Result<Toolchain, Problem> {
        let toolchain = Toolchain { folder: folder.to_owned() };
        let done = folder.join("wheels.txt");
        if fs::read_to_string(&done).is_ok_and(|text| text == WHEELS) {
            toolchain.version()?;
            return Ok(toolchain);
        }
        let fresh = folder.with_extension("new");
        let _ = fs::remove_dir_all(&fresh);
        let trouble = |what: &Path, e: std::io::Error| Problem::Failed(format!("{}: {e}", what.display()));
        fs::create_dir_all(&fresh).map_err(|e| trouble(&fresh, e))?;
        let list = fresh.join("wheels.txt");
        fs::write(&list, WHEELS).map_err(|e| trouble(&list, e))?;
        println!("installing nvcc {NVCC} into {}", folder.display());
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"])
            .args(["--no-warn-script-location", "--disable-pip-version-check", "--root-user-action=ignore"])
            .arg("--target")
            .arg(&fresh)
            .arg("--requirement")
            .arg(&list);
        run(&mut pip).map_err(|why| Problem::Missing(format!("nvcc cannot be installed: {why}")))?;
        let _ = fs::remove_dir_all(folder);
        fs::rename(&fresh, folder).map_err(|e| trouble(folder, e))?;
        toolchain.version()?;
        Ok(toolchain)
    }

    fn tool(&self, name: &str) -> PathBuf {
        self.folder.join("nvidia/cu13/bin").join(name)
    }

    /// Checks its version.
    fn version(&self) -> Result<(), Problem> {
        let said = run(Command::new(self.tool("nvcc")).arg("--version"))
            .map_err(|why| Problem::Missing(format!("nvcc does not run: {why}")))?;
        if said.contains(&format!("V{NVCC}")) {
            return Ok(());
        }
        Err(Problem::Failed(format!("nvcc is not {NVCC}: {}", said.trim())))
    }

    /// Compiles a program to a fat binary. Paths of this machine stay out of it: the source is named relative to its
    /// folder.
    pub(super) fn compile(&self, folder: &Path, program: &Program, to: &Path) -> Result<(), Problem> {
        let mut nvcc = Command::new(self.tool("nvcc"));
        nvcc.current_dir(folder)
            .args(["-fatbin", "--threads=0"])
            .args(options(program))
            .arg("-isystem")
            .arg(self.folder.join("nvidia/cu13/include"))
            .args(program.include.iter().map(|dir| format!("-I{dir}")))
            .arg(&program.source)
            .arg("-o")
            .arg(to);
        run(&mut nvcc).map(|_| ()).map_err(|why| Problem::Failed(format!("{}: {why}", program.source)))
    }

    /// The machine code of a fat binary, as text.
    pub(super) fn listing(&self, code: &Path) -> Result<String, Problem> {
        run(Command::new(self.tool("cuobjdump")).arg("-sass").arg(code)).map_err(Problem::Failed)
    }

    /// All sections of a fat binary, as text.
    pub(super) fn sections(&self, code: &Path) -> Result<String, Problem> {
        run(Command::new(self.tool("cuobjdump")).arg("-elf").arg(code)).map_err(Problem::Failed)
    }

    /// The intermediate code of a fat binary, in a file of this folder.
    pub(super) fn text(&self, code: &Path, folder: &Path) -> Result<PathBuf, Problem> {
        let trouble = |e: std::io::Error| Problem::Failed(format!("{}: {e}", folder.display()));
        let code = std::path::absolute(code).map_err(trouble)?;
        let mut dump = Command::new(self.tool("cuobjdump"));
        run(dump.current_dir(folder).args(["-xptx", "all"]).arg(&code)).map_err(Problem::Failed)?;
        let files: Vec<_> =
            fs::read_dir(folder).map_err(trouble)?.collect::<Result<_, _>>().map_err(trouble)?;
        match &files[..] {
            [file] => Ok(file.path()),
            _ => Err(Problem::Failed(format!("{} has {} texts, not one", code.display(), files.len()))),
        }
    }

    /// The machine code of a text for an architecture, with its encoding and the line of the text that each instruction comes from.
    pub(super) fn lines(&self, text: &Path, architecture: &str) -> Result<String, Problem> {
        let cubin = text.with_extension(architecture);
        let mut assemble = Command::new(self.tool("ptxas"));
        assemble.arg("-lineinfo").arg(format!("-arch={architecture}")).arg(text).arg("-o").arg(&cubin);
        run(&mut assemble).map_err(Problem::Failed)?;
        run(Command::new(self.tool("nvdisasm")).args(["-gp", "-hex", "-c"]).arg(&cubin))
            .map_err(Problem::Failed)
    }

    /// Registers and memory of each kernel, as text.
    pub(super) fn resources(&self, code: &Path) -> Result<String, Problem> {
        run(Command::new(self.tool("cuobjdump")).arg("-res-usage").arg(code)).map_err(Problem::Failed)
    }
}

/// Runs a tool to its end. Returns what it wrote, or why it failed.
fn run(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("{name}: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{name} ended with {}:\n{errors}{text}", output.status))
}
