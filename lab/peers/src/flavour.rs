//! Which peers exist, as data: releases of other people's sources, and the ways each is built.
#![forbid(unsafe_code)]

/// A published source release that peers are built from.
#[derive(Debug, PartialEq, Eq)]
pub struct Release {
    /// The project, as it calls itself.
    pub project: &'static str,
    /// The project's version.
    pub version: &'static str,
    /// The package of the Rust registry that carries the sources.
    pub package: &'static str,
    /// That package's exact version, without build metadata.
    pub package_version: &'static str,
    /// SHA-256 of that package's archive, as the registry's index gives it.
    pub checksum: &'static str,
    /// Which submission round of the scheme the release implements. Rounds do not interoperate.
    pub round: &'static str,
    /// The parameter sets it offers.
    pub sets: &'static [SetFacts],
    /// Parameter sets of other signature schemes, built into the same libraries.
    pub others: &'static [SetFacts],
}

/// The expected facts of one parameter set; a library that reports other sizes is refused.
#[derive(Debug, PartialEq, Eq)]
pub struct SetFacts {
    /// The set's short name, unique within its family and round: `mayo1`.
    pub name: &'static str,
    /// Its name in the library: `MAYO-1`.
    pub method: &'static str,
    /// The part of the set's name in the library's symbols: `mayo_1`.
    pub symbol: &'static str,
    /// Bytes of a public key.
    pub public_key: usize,
    /// Bytes of a secret key.
    pub secret_key: usize,
    /// Bytes of a signature.
    pub signature: usize,
}

const fn set(
    name: &'static str,
    method: &'static str,
    symbol: &'static str,
    public_key: usize,
    secret_key: usize,
    signature: usize,
) -> SetFacts {
    SetFacts { name, method, symbol, public_key, secret_key, signature }
}

/// liboqs 0.13.0: MAYO as submitted to the second round, and the schemes that it is compared with.
pub static LIBOQS_13: Release = Release {
    project: "liboqs",
    version: "0.13.0",
    package: "oqs-sys",
    package_version: "0.11.0",
    checksum: "ac6d66ee528a895ce5cc08851698d109c5d7ee5d7a0b3b40d61550eda91e414f",
    round: "round2",
    sets: &[
        set("mayo1", "MAYO-1", "mayo_1", 1420, 24, 454),
        set("mayo2", "MAYO-2", "mayo_2", 4912, 24, 186),
        set("mayo3", "MAYO-3", "mayo_3", 2986, 32, 681),
        set("mayo5", "MAYO-5", "mayo_5", 5554, 40, 964),
    ],
    others: &[
        set("ml-dsa-44", "ML-DSA-44", "ml_dsa_44", 1312, 2560, 2420),
        set("ml-dsa-65", "ML-DSA-65", "ml_dsa_65", 1952, 4032, 3309),
        set("ml-dsa-87", "ML-DSA-87", "ml_dsa_87", 2592, 4896, 4627),
        // The form whose signatures have one length.
        set("falcon-512", "Falcon-padded-512", "falcon_padded_512", 897, 1281, 666),
        set("falcon-1024", "Falcon-padded-1024", "falcon_padded_1024", 1793, 2305, 1280),
        // The submission that became SLH-DSA: same parameters, sizes and work; the standard frames the message differently.
        set("sphincs-128f", "SPHINCS+-SHA2-128f-simple", "sphincs_sha2_128f_simple", 32, 64, 17088),
    ],
};

/// liboqs 0.12.0: MAYO as submitted to the first round, in the nibble-sliced form of its authors.
pub static LIBOQS_12: Release = Release {
    project: "liboqs",
    version: "0.12.0",
    package: "oqs-sys",
    package_version: "0.10.1",
    checksum: "b4084714b15c8545e7dd2e9d1e4a5482547ece7476d07f4b5e96b5babb78c4dd",
    round: "round1",
    sets: &[
        set("mayo1", "MAYO-1", "mayo_1", 1168, 24, 321),
        set("mayo2", "MAYO-2", "mayo_2", 5488, 24, 180),
        set("mayo3", "MAYO-3", "mayo_3", 2656, 32, 577),
        set("mayo5", "MAYO-5", "mayo_5", 5008, 40, 838),
    ],
    others: &[],
};

/// Which compiler a flavour is built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compiler {
    /// `gcc` of the search path.
    Gcc,
    /// The newest `clang` or `clang-N` of the search path.
    Clang,
    /// What `CC` names, or `cc`.
    Default,
}

/// For which CPU a flavour is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tuning {
    /// For the machine that builds it, no run-time dispatch: the strongest build there.
    Native,
    /// As distributed: generic code around kernels chosen at run time.
    Dispatch,
    /// For the architecture's baseline, no special instructions anywhere: the plain C code.
    Generic,
    /// By compiler flags that are given, with none of the build system's own for a CPU.
    Flags(Flags),
}

/// How a build by flags is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags {
    /// The compiler's flags.
    pub flags: &'static str,
    /// Plain C files whatever the flags allow, for AES and SHAKE too. Otherwise liboqs chooses files by what the flags allow.
    pub plain: bool,
    /// OpenMP pragmas at the loops of products whose iterations are independent; the published sources have none.
    pub pragmas: bool,
}

impl Flags {
    /// Whether the compiler may use instructions of the CPU that it runs on.
    pub fn native(&self) -> bool {
        self.flags.contains("-march=native")
    }

    /// Whether the compiler heeds OpenMP's pragmas.
    pub fn openmp(&self) -> bool {
        self.flags.contains("-fopenmp")
    }
}

/// One way of building one release.
#[derive(Debug, PartialEq, Eq)]
pub struct Flavour {
    /// The peer's name, unique, and the stem of its files.
    pub name: &'static str,
    /// Where its sources come from.
    pub release: &'static Release,
    /// Its compiler.
    pub compiler: Compiler,
    /// What it is compiled for.
    pub tuning: Tuning,
}

impl Flavour {
    /// The file name of its shared library on this platform.
    pub fn library(&self) -> String {
        format!("{}{}", self.name, std::env::consts::DLL_SUFFIX)
    }

    /// The file name of its card.
    pub fn card(&self) -> String {
        format!("{}.json", self.name)
    }

    /// The file name of the note that says why it could not be built.
    pub fn note(&self) -> String {
        format!("{}.unavailable", self.name)
    }
}

const fn flavour(
    name: &'static str,
    release: &'static Release,
    compiler: Compiler,
    tuning: Tuning,
) -> Flavour {
    Flavour { name, release, compiler, tuning }
}

/// For the machine that builds it, as if it had no AVX-512. The compilers use that in native builds, so races of narrower backends take
/// these builds.
const WITHOUT_AVX512: Tuning =
    Tuning::Flags(Flags { flags: "-O3 -march=native -mno-avx512f", plain: false, pragmas: false });

/// Every signature peer there is, in the order in which they are listed.
pub static FLAVOURS: &[Flavour] = &[
    flavour("liboqs-gcc-native", &LIBOQS_13, Compiler::Gcc, Tuning::Native),
    flavour("liboqs-clang-native", &LIBOQS_13, Compiler::Clang, Tuning::Native),
    flavour("liboqs-gcc-avx2", &LIBOQS_13, Compiler::Gcc, WITHOUT_AVX512),
    flavour("liboqs-clang-avx2", &LIBOQS_13, Compiler::Clang, WITHOUT_AVX512),
    flavour("liboqs-dist", &LIBOQS_13, Compiler::Default, Tuning::Dispatch),
    flavour("liboqs-generic", &LIBOQS_13, Compiler::Default, Tuning::Generic),
    flavour("liboqs12-gcc-native", &LIBOQS_12, Compiler::Gcc, Tuning::Native),
    flavour("liboqs12-clang-native", &LIBOQS_12, Compiler::Clang, Tuning::Native),
    flavour("liboqs12-dist", &LIBOQS_12, Compiler::Default, Tuning::Dispatch),
    flavour("liboqs12-generic", &LIBOQS_12, Compiler::Default, Tuning::Generic),
];

const fn flag_build(name: &'static str, flags: &'static str, plain: bool, pragmas: bool) -> Flavour {
    flavour(name, &LIBOQS_12, Compiler::Gcc, Tuning::Flags(Flags { flags, plain, pragmas }))
}

/// The flags of the report behind the study `mayo-simd-threads`.
const AVX2: &str = "-O3 -mavx2 -march=native";
const OPENMP: &str = "-O3 -fopenmp";
const BOTH: &str = "-O3 -mavx2 -fopenmp -march=native";

/// Builds that differ in their flags, for the study `mayo-simd-threads` alone: no other race takes them. One is `-O3 -fopenmp` as the
/// build systems of MAYO-C and liboqs complete it, which both add `-march=native`.
pub static FLAG_BUILDS: &[Flavour] = &[
    flag_build("liboqs12-flags-o3", "-O3", true, false),
    flag_build("liboqs12-flags-avx2", AVX2, false, false),
    flag_build("liboqs12-flags-avx2-pragmas", AVX2, false, true),
    flag_build("liboqs12-flags-avx2-plain", AVX2, true, false),
    flag_build("liboqs12-flags-omp", OPENMP, false, false),
    flag_build("liboqs12-flags-omp-pragmas", OPENMP, false, true),
    flag_build("liboqs12-flags-omp-native-plain", "-O3 -fopenmp -march=native", true, false),
    flag_build("liboqs12-flags-avx2-omp", BOTH, false, false),
    flag_build("liboqs12-flags-avx2-omp-pragmas", BOTH, false, true),
    flag_build("liboqs12-flags-avx2-omp-plain", BOTH, true, false),
    flag_build("liboqs12-flags-avx2-omp-plain-pragmas", BOTH, true, true),
];
