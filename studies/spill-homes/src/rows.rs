//! The rows of the study `spill-homes`, as its file lists them.
#![forbid(unsafe_code)]

use lanework_study::compiler::Compiler;
use serde::Deserialize;

use super::compile;
use super::kernels::Kernel;
use super::packages::Packages;
use super::programs::{Assembly, NotHere};

/// The rows, and the compilers' flags.
#[derive(Clone, Debug, Deserialize)]
pub struct Rows {
    /// The report's rows.
    pub row: Vec<Row>,
    /// Field multiplications of fiat-crypto.
    pub fiat: Vec<Fiat>,
    /// Lanework's own kernels.
    pub kernel: Vec<Kernel>,
    /// Flags.
    pub compilers: Flags,
}

/// The compilers' flags.
#[derive(Clone, Debug, Deserialize)]
pub struct Flags {
    /// For our own sources.
    pub starved: String,
    /// For fiat-crypto's.
    pub fiat: String,
    /// For Lanework's own kernels, in Rust.
    pub rust: String,
}

/// A row of the report.
#[derive(Clone, Debug, Deserialize)]
pub struct Row {
    /// Its name here.
    pub name: String,
    /// libjade's name of the function.
    pub function: String,
    /// The report's table that it is in: kem, hash or xof.
    pub table: String,
    /// The package that has libjade's own assembly,
    pub package: Option<String>,
    /// and where in it.
    pub path: Option<String>,
    /// Else: our own source,
    pub source: Option<String>,
    /// the function in it,
    pub ours: Option<String>,
    /// and flags beside the common ones.
    #[serde(default)]
    pub flags: String,
    /// The homes of the report's own rewrite.
    pub home: String,
    /// Its policy.
    pub policy: String,
    /// The report's figures; poly1305 is named by it and has none.
    pub original: Option<Figures>,
    /// The call and its arguments.
    pub case: String,
    /// Other calls that checks follow: lengths whose code the first does not reach.
    #[serde(default)]
    pub also: Vec<String>,
}

/// The report's figures of a row, in cycles.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Figures {
    /// Median with the values on the stack.
    pub baseline: f64,
    /// Median with the values in MMX registers.
    pub mmx: f64,
    /// Standard deviations of both.
    pub stdev: [f64; 2],
}

impl Figures {
    /// How much longer the MMX version took, as a fraction.
    #[must_use]
    pub fn overhead(&self) -> f64 {
        self.mmx / self.baseline - 1.0
    }
}

/// A multiplication of fiat-crypto.
#[derive(Clone, Debug, Deserialize)]
pub struct Fiat {
    /// Its name here.
    pub name: String,
    /// The header.
    pub header: String,
    /// A macro that it needs, or that keeps the compiler's inline assembly out of it.
    pub defines: Option<String>,
    /// The function.
    pub function: String,
    /// Words of 64 bits in an element.
    pub words: usize,
}

/// A program that can be looked at.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The row's name.
    pub name: String,
    /// The function.
    pub function: String,
    /// The text.
    pub assembly: Assembly,
    /// The call and its arguments, with the function's name in place.
    pub case: String,
    /// Other calls that checks follow.
    pub also: Vec<String>,
    /// Whether this is the report's own function, not one that stands in for it.
    pub original: bool,
}

impl Row {
    /// The row's program: the user's own file, libjade's in a package, or ours that stands in.
    ///
    /// # Errors
    /// It is not here, and why.
    pub fn subject(
        &self,
        flags: &Flags,
        packages: &Result<Packages, NotHere>,
        own: Option<Assembly>,
    ) -> Result<Subject, NotHere> {
        let with = |function: &str, assembly: Assembly, original: bool| Subject {
            name: self.name.clone(),
            function: function.to_owned(),
            assembly,
            case: self.case.replace("{function}", function),
            also: self.also.iter().map(|case| case.replace("{function}", function)).collect(),
            original,
        };
        if let Some(own) = own {
            return Ok(with(&self.function, own, true));
        }
        match (&self.package, &self.path, &self.source, &self.ours) {
            (Some(package), Some(path), ..) => {
                let packages = packages.as_ref().map_err(NotHere::clone)?;
                Ok(with(&self.function, packages.assembly(package, path)?, true))
            }
            (_, _, Some(source), Some(ours)) => {
                let flags = format!("{} {}", flags.starved, self.flags);
                let made = compile::assembly(
                    &Compiler::gcc().map_err(NotHere)?,
                    source,
                    compile::source(source)?,
                    &flags,
                    None,
                )?;
                Ok(with(ours, made, false))
            }
            _ => Err(NotHere(format!("row {}: neither package and path nor source and ours", self.name))),
        }
    }
}

impl Fiat {
    /// The multiplication as this compiler makes it.
    ///
    /// # Errors
    /// It is not here, and why.
    pub fn subject(
        &self,
        flags: &Flags,
        packages: &Result<Packages, NotHere>,
        compiler: &Compiler,
    ) -> Result<Subject, NotHere> {
        let (_, folder) = packages.as_ref().map_err(NotHere::clone)?.folder("aws-lc-sys")?;
        let name = format!("spill_{}", self.name.replace('-', "_"));
        let defines = self.defines.as_ref().map_or_else(String::new, |name| format!("#define {name}\n"));
        // The library's own barrier against optimisation, which two of its headers call.
        let barrier =
            "static inline uint64_t value_barrier_u64(uint64_t x) { __asm__(\"\" : \"+r\"(x)); return x; }";
        let text = format!(
            "{defines}#include <stdint.h>\n{barrier}\n#include \"{}\"\n\
             void {name}(uint64_t *out, const uint64_t *a, const uint64_t *b) {{ {}(out, a, b); }}\n",
            self.header, self.function
        );
        let include = folder.join("aws-lc/third_party/fiat");
        let assembly = compile::assembly(compiler, &self.header, &text, &flags.fiat, Some(&include))?;
        let bytes = 8 * self.words;
        let case = format!("measure {name}(product: out {bytes}, a: random {bytes}, b: random {bytes})");
        let name_with = format!("{}-{}", self.name, compiler.family);
        Ok(Subject { name: name_with, function: name, assembly, case, also: Vec::new(), original: false })
    }
}
