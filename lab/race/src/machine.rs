//! The machine card: what the figures were measured on, and what could not be found out, with the reason.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::record::slug;
use crate::sys;

/// Why there is no second calibration yet.
const NOT_OVER: &str = "the races are not over";

/// A known value, or the reason why it is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Fact<T> {
    /// Not known, and why.
    Missing {
        /// Why.
        missing: String,
    },
    /// Known.
    Known(T),
}

impl<T> Fact<T> {
    fn missing(why: impl Into<String>) -> Self {
        Self::Missing { missing: why.into() }
    }

    fn of(value: Option<T>, why: &str) -> Self {
        value.map_or_else(|| Self::missing(why), Self::Known)
    }

    /// The value, if known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Missing { .. } => None,
        }
    }
}

impl<T: std::fmt::Display> std::fmt::Display for Fact<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Known(value) => value.fmt(f),
            Self::Missing { missing } => write!(f, "unknown ({missing})"),
        }
    }
}

/// One cache, as seen by one core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// 1, 2, 3...
    pub level: u8,
    /// `data`, `instruction` or `unified`.
    pub kind: String,
    /// Size in KiB.
    pub kib: u64,
}

/// How our code was compiled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// `rustc --version`.
    pub rustc: String,
    /// Cargo's profile.
    pub profile: String,
    /// Optimisation level.
    pub opt_level: String,
    /// Target triple.
    pub target: String,
    /// CPU features that the compiler may use everywhere.
    pub target_features: String,
    /// Extra compiler flags.
    pub rustflags: String,
    /// The commit that was checked out when the laboratory was last compiled.
    pub commit: String,
    /// `clean` or `changed`: whether tracked files differed from that commit then.
    pub tree: String,
}

impl Build {
    /// The build of this executable.
    #[must_use]
    pub fn ours() -> Self {
        Self {
            rustc: env!("LANEWORK_LAB_RUSTC").into(),
            profile: env!("LANEWORK_LAB_PROFILE").into(),
            opt_level: env!("LANEWORK_LAB_OPT_LEVEL").into(),
            target: env!("LANEWORK_LAB_TARGET").into(),
            target_features: env!("LANEWORK_LAB_FEATURES").into(),
            rustflags: env!("LANEWORK_LAB_RUSTFLAGS").into(),
            commit: env!("LANEWORK_LAB_COMMIT").into(),
            tree: env!("LANEWORK_LAB_TREE").into(),
        }
    }
}

/// How a peer was compiled, as the caller reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerBuild {
    /// The peer.
    pub name: String,
    /// Its version or commit.
    pub version: String,
    /// Its compiler, with version.
    pub compiler: String,
    /// The flags it was compiled with.
    pub flags: String,
}

/// A chain of dependent additions, timed: one core cycle each, so additions per nanosecond is the core's
/// frequency in GHz while it ran.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The fastest of the runs, in GHz.
    pub best_ghz: f64,
    /// The median of the runs, in GHz.
    pub median_ghz: f64,
    /// The slowest of the runs, in GHz.
    pub worst_ghz: f64,
}

/// Times the chain `runs` times, about 250 µs each. `None` where the chain is not written for this ISA.
pub fn calibrate(clock: &dyn Clock, runs: usize) -> Option<Calibration> {
    const TURNS: u64 = 16_384;
    let mut rates = Vec::with_capacity(runs);
    sys::add_chain(TURNS)?;
    for _ in 0..runs.max(1) {
        let start = clock.now_ns();
        std::hint::black_box(sys::add_chain(TURNS)?);
        let took = clock.now_ns().saturating_sub(start).max(1);
        rates.push((TURNS * sys::CHAIN) as f64 / took as f64);
    }
    let s = crate::stats::Summary::of(&rates)?;
    Some(Calibration { best_ghz: s.max, median_ghz: s.median, worst_ghz: s.min })
}

/// The machine card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The CPU's brand string.
    pub cpu: Fact<String>,
    /// The CPU's vendor.
    pub vendor: Fact<String>,
    /// Family, as CPUID gives it, extended part included.
    pub family: Fact<u8>,
    /// Model, as CPUID gives it, extended part included.
    pub model: Fact<u8>,
    /// Stepping.
    pub stepping: Fact<u8>,
    /// The CPU's features, as the kernel lists them.
    pub features: Fact<Vec<String>>,
    /// The hypervisor, when there is one.
    pub hypervisor: Fact<String>,
    /// Cores this process may use.
    pub cores: Fact<usize>,
    /// The caches of the first core.
    pub caches: Fact<Vec<Cache>>,
    /// The kernel's clock source.
    pub clock_source: Fact<String>,
    /// The step of the clock that times samples, in nanoseconds.
    pub clock_step_ns: u64,
    /// Time-stamp counter rate in GHz, as measured against the clock.
    pub tsc_ghz: Fact<f64>,
    /// Whether the counter keeps its rate in all states, as CPUID promises.
    pub tsc_invariant: Fact<bool>,
    /// Hardware counters: `available`, or why not.
    pub counters: Fact<String>,
    /// The frequency governor.
    pub governor: Fact<String>,
    /// Whether turbo or boost is on.
    pub boost: Fact<String>,
    /// The kernel.
    pub kernel: Fact<String>,
    /// How our code was compiled.
    pub build: Build,
    /// How the peers' code was compiled.
    #[serde(default)]
    pub peers: Vec<PeerBuild>,
    /// The calibration chain before the races.
    pub calibration_before: Fact<Calibration>,
    /// The calibration chain after the races.
    pub calibration_after: Fact<Calibration>,
    /// Further facts from the caller, such as a GPU.
    #[serde(default)]
    pub more: BTreeMap<String, String>,
}

fn file(path: &str) -> Fact<String> {
    match fs::read_to_string(path) {
        Ok(text) => Fact::Known(text.trim().to_owned()),
        Err(e) => Fact::missing(format!("{path}: {e}")),
    }
}

fn features() -> Fact<Vec<String>> {
    match fs::read_to_string("/proc/cpuinfo") {
        Ok(text) => Fact::of(
            text.lines()
                .find_map(|l| l.strip_prefix("flags")?.split_once(':'))
                .map(|(_, list)| list.split_whitespace().map(str::to_owned).collect()),
            "/proc/cpuinfo has no line of flags",
        ),
        Err(e) => Fact::missing(format!("/proc/cpuinfo: {e}")),
    }
}

fn caches(root: &Path) -> Fact<Vec<Cache>> {
    let mut caches = Vec::new();
    for index in 0..16 {
        let folder = root.join(format!("index{index}"));
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok().map(|s| s.trim().to_owned());
        let (Some(level), Some(kind), Some(size)) = (read("level"), read("type"), read("size")) else {
            break;
        };
        let kib = size.strip_suffix('K').and_then(|s| s.parse().ok());
        if let (Ok(level), Some(kib)) = (level.parse(), kib) {
            caches.push(Cache { level, kind: kind.to_lowercase(), kib });
        }
    }
    Fact::of((!caches.is_empty()).then_some(caches), "the kernel does not list caches")
}

fn boost() -> Fact<String> {
    // The first is the generic and AMD driver's switch, the second Intel's, with the opposite sense.
    if let Fact::Known(text) = file("/sys/devices/system/cpu/cpufreq/boost") {
        return Fact::Known(if text == "0" { "off" } else { "on" }.into());
    }
    if let Fact::Known(text) = file("/sys/devices/system/cpu/intel_pstate/no_turbo") {
        return Fact::Known(if text == "0" { "on" } else { "off" }.into());
    }
    Fact::missing("the kernel offers no frequency driver here")
}

fn counters() -> Fact<String> {
    match sys::probe_cycle_counter() {
        Ok(()) => Fact::Known("available".into()),
        Err(e) => {
            let why = match e.raw_os_error() {
                Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
                    "the CPU or its hypervisor offers none"
                }
                Some(libc::EACCES | libc::EPERM) => {
                    "the kernel forbids them here (see /proc/sys/kernel/perf_event_paranoid)"
                }
                Some(libc::ENOSYS) => "the kernel was built without them",
                _ => "the kernel refuses",
            };
            Fact::missing(format!("{why}: {e}; times are in nanoseconds and time-stamp ticks only"))
        }
    }
}

/// The counter's rate against the clock, over at least 10 ms.
fn tsc_ghz(clock: &dyn Clock) -> Fact<f64> {
    // Clock first and counter second, here and below, so that the cost of the readings cancels.
    let start = clock.now_ns();
    let Some(first) = clock.ticks() else {
        return Fact::missing("no time-stamp counter on this architecture");
    };
    // The number of turns is bounded too, in case the clock stands still.
    for _ in 0..1_000_000_000_u64 {
        let ns = clock.now_ns().saturating_sub(start);
        if ns >= 10_000_000 {
            let ticks = clock.ticks().unwrap_or(first).saturating_sub(first);
            return Fact::Known((ticks as f64 / ns as f64 * 1e4).round() / 1e4);
        }
    }
    Fact::missing("the clock stands still")
}

/// Identifies the CPU by brand, family and model, without timing anything.
#[must_use]
pub fn cpu_identity() -> String {
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    {
        let cpuid = raw_cpuid::CpuId::new();
        let brand = cpuid.get_processor_brand_string().map(|b| b.as_str().trim().to_owned());
        let ids = cpuid.get_feature_info().map(|i| (i.family_id(), i.model_id()));
        let (family, model) = ids.unwrap_or_default();
        format!("{}, family {family} model {model}", brand.unwrap_or_else(|| "unnamed CPU".to_owned()))
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
    std::env::consts::ARCH.to_owned()
}

impl Machine {
    /// Inspects the machine and times the calibration chain for the first time. Takes some 20 ms.
    pub fn inspect(clock: &dyn Clock, peers: Vec<PeerBuild>) -> Self {
        let mut card = Self {
            cpu: Fact::missing("CPUID exists on x86 only"),
            vendor: Fact::missing("CPUID exists on x86 only"),
            family: Fact::missing("CPUID exists on x86 only"),
            model: Fact::missing("CPUID exists on x86 only"),
            stepping: Fact::missing("CPUID exists on x86 only"),
            features: features(),
            hypervisor: Fact::missing("CPUID names none"),
            cores: crate::affinity::allowed()
                .map_or_else(|e| Fact::missing(e.to_string()), |c| Fact::Known(c.len())),
            caches: caches(Path::new("/sys/devices/system/cpu/cpu0/cache")),
            clock_source: file("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            clock_step_ns: clock.step_ns(),
            tsc_ghz: tsc_ghz(clock),
            tsc_invariant: Fact::missing("CPUID exists on x86 only"),
            counters: counters(),
            governor: file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            boost: boost(),
            kernel: file("/proc/sys/kernel/osrelease"),
            build: Build::ours(),
            peers,
            calibration_before: Fact::of(
                calibrate(clock, 21),
                "the chain is not written for this architecture",
            ),
            calibration_after: Fact::missing(NOT_OVER),
            more: BTreeMap::new(),
        };
        card.ask_cpuid();
        card
    }

    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    fn ask_cpuid(&mut self) {
        let cpuid = raw_cpuid::CpuId::new();
        let no_leaf = "CPUID does not say";
        self.cpu =
            Fact::of(cpuid.get_processor_brand_string().map(|b| b.as_str().trim().to_owned()), no_leaf);
        self.vendor = Fact::of(cpuid.get_vendor_info().map(|v| v.as_str().to_owned()), no_leaf);
        if let Some(info) = cpuid.get_feature_info() {
            self.family = Fact::Known(info.family_id());
            self.model = Fact::Known(info.model_id());
            self.stepping = Fact::Known(info.stepping_id());
        }
        self.tsc_invariant =
            Fact::of(cpuid.get_advanced_power_mgmt_info().map(|info| info.has_invariant_tsc()), no_leaf);
        if let Some(info) = cpuid.get_hypervisor_info() {
            self.hypervisor = Fact::Known(format!("{:?}", info.identify()));
        }
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
    fn ask_cpuid(&mut self) {}

    /// Times the calibration chain again, when the races are over.
    pub fn finish(&mut self, clock: &dyn Clock) {
        self.calibration_after =
            Fact::of(calibrate(clock, 21), "the chain is not written for this architecture");
    }

    /// The peer that a variant is, or is a form of: `chiavdf` has `chiavdf-asm` and `chiavdf-square`.
    #[must_use]
    pub fn peer(&self, variant: &str) -> Option<&PeerBuild> {
        let is = |p: &&PeerBuild| {
            variant.strip_prefix(p.name.as_str()).is_some_and(|form| form.is_empty() || form.starts_with('-'))
        };
        self.peers.iter().find(is)
    }

    /// The core's clock, in GHz: the mean of the calibration chain before and after the races.
    #[must_use]
    pub fn ghz(&self) -> Option<f64> {
        let before = self.calibration_before.known()?.median_ghz;
        Some(self.calibration_after.known().map_or(before, |after| f64::midpoint(before, after.median_ghz)))
    }

    /// How far the core's frequency moved between the two calibrations, as a fraction; `None` without both.
    #[must_use]
    pub fn frequency_drift(&self) -> Option<f64> {
        let before = self.calibration_before.known()?.median_ghz;
        let after = self.calibration_after.known()?.median_ghz;
        Some(after / before - 1.0)
    }

    /// The card in a few lines, for a terminal. A missing fact carries its reason.
    #[must_use]
    pub fn summary(&self) -> String {
        let ghz = |c: &Fact<Calibration>| match c {
            Fact::Known(c) => format!("{:.3} GHz", c.median_ghz),
            Fact::Missing { missing } => format!("unknown ({missing})"),
        };
        // Until the races are over there is no second calibration.
        let core_runs = match &self.calibration_after {
            Fact::Missing { missing } if missing == NOT_OVER => ghz(&self.calibration_before),
            after => format!("{} before the races, {} after", ghz(&self.calibration_before), ghz(after)),
        };
        let caches = match &self.caches {
            Fact::Known(list) => {
                let one = |c: &Cache| {
                    let kind = if c.kind == "unified" { "" } else { c.kind.get(..1).unwrap_or("") };
                    format!("L{}{kind} {} KiB", c.level, c.kib)
                };
                list.iter().map(one).collect::<Vec<_>>().join(", ")
            }
            Fact::Missing { missing } => format!("unknown ({missing})"),
        };
        format!(
            "CPU         {}, family {} model {}, {} core{} usable, hypervisor {}\n\
             caches      {caches}\n\
             core runs   {core_runs}\n\
             clock       {}, step {} ns; time-stamp counter {} GHz\n\
             counters    {}\n\
             governor    {}; boost {}\n\
             kernel      {}\n\
             build       {}, {} (opt-level {}), flags {}, commit {} ({})\n",
            self.cpu,
            self.family,
            self.model,
            self.cores,
            if matches!(self.cores, Fact::Known(1)) { "" } else { "s" },
            self.hypervisor,
            self.clock_source,
            self.clock_step_ns,
            self.tsc_ghz,
            self.counters,
            self.governor,
            self.boost,
            self.kernel,
            self.build.rustc,
            self.build.profile,
            self.build.opt_level,
            self.build.rustflags,
            self.build.commit,
            self.build.tree,
        )
    }

    /// The CPU's name with family and model, which tell CPUs of one name apart.
    #[must_use]
    pub fn title(&self) -> String {
        match (self.family.known(), self.model.known()) {
            (Some(family), Some(model)) => format!("{} (family {family}, model {model})", self.cpu),
            _ => self.cpu.to_string(),
        }
    }

    /// The folder that this machine's records go to: CPU name, family and model.
    #[must_use]
    pub fn slug(&self) -> String {
        let cpu = self.cpu.known().map_or("unknown-cpu", String::as_str);
        match (self.family.known(), self.model.known()) {
            (Some(family), Some(model)) => slug(&format!("{cpu} {family} {model}")),
            _ => slug(cpu),
        }
    }
}
