//! Homes for values other than memory, and the moves to and from them.
#![forbid(unsafe_code)]

use core::fmt;
use core::str::FromStr;

use iced_x86::Register;
use serde::Serialize;

/// A kind of home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bank {
    /// mm0 to mm7, which are the x87 registers too.
    Mm,
    /// xmm0 to xmm15.
    Xmm,
    /// xmm16 to xmm31, then xmm15 to xmm0: AVX-512.
    Xmm32,
    /// The mask registers k1 to k7 and k0: AVX-512BW.
    K,
    /// Seven lanes of each of zmm16 to zmm30: not lane 0, since scalar moves to it would clear the others. k1 to k7 hold the lanes'
    /// masks and zmm31 takes a lane out: AVX-512.
    ZmmLane,
}

impl Bank {
    /// All of them.
    pub const ALL: [Bank; 5] = [Bank::Mm, Bank::Xmm, Bank::Xmm32, Bank::K, Bank::ZmmLane];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Bank::Mm => "mm",
            Bank::Xmm => "xmm",
            Bank::Xmm32 => "xmm32",
            Bank::K => "k",
            Bank::ZmmLane => "zmm-lane",
        }
    }

    /// Its homes, the first to be used first.
    #[must_use]
    pub fn homes(self) -> Vec<Home> {
        match self {
            Bank::Mm => (0..8).map(Home::Mm).collect(),
            // Arguments and results use the low registers.
            Bank::Xmm => (0..16).rev().map(Home::Xmm).collect(),
            Bank::Xmm32 => (16..32).rev().chain((0..16).rev()).map(Home::Xmm).collect(),
            Bank::K => (1..8).chain([0]).map(Home::K).collect(),
            Bank::ZmmLane => {
                (16..31).flat_map(|zmm| (1..8).map(move |lane| Home::Lane { zmm, lane })).collect()
            }
        }
    }
}

impl fmt::Display for Bank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Bank {
    type Err = String;

    fn from_str(said: &str) -> Result<Bank, String> {
        Bank::ALL.into_iter().find(|bank| bank.name() == said).ok_or_else(|| {
            let names: Vec<&str> = Bank::ALL.iter().map(|bank| bank.name()).collect();
            format!("no home '{said}'; expected one of: {}", names.join(", "))
        })
    }
}

/// A place for one value of up to 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Home {
    /// An MMX register.
    Mm(u8),
    /// The low lane of a vector register.
    Xmm(u8),
    /// A mask register.
    K(u8),
    /// A lane of a long vector register.
    Lane {
        /// The register.
        zmm: u8,
        /// The lane, 1 to 7.
        lane: u8,
    },
}

impl Home {
    /// Its kind.
    #[must_use]
    pub const fn bank(self) -> Bank {
        match self {
            Home::Mm(_) => Bank::Mm,
            Home::Xmm(0..16) => Bank::Xmm,
            Home::Xmm(_) => Bank::Xmm32,
            Home::K(_) => Bank::K,
            Home::Lane { .. } => Bank::ZmmLane,
        }
    }

    /// Whether the two cannot hold values at the same time.
    #[must_use]
    pub fn clashes(self, other: Home) -> bool {
        match (self, other) {
            (Home::Lane { .. }, Home::Lane { .. }) => self == other,
            _ => self.registers().iter().any(|register| other.registers().contains(register)),
        }
    }

    /// The registers that the function must not use for other purposes.
    #[must_use]
    pub fn registers(self) -> Vec<Register> {
        match self {
            Home::Mm(n) => vec![Register::MM0 + u32::from(n)],
            Home::Xmm(n) => vec![Register::ZMM0 + u32::from(n)],
            Home::K(n) => vec![Register::K0 + u32::from(n)],
            Home::Lane { zmm, lane } => {
                vec![Register::ZMM0 + u32::from(zmm), Register::ZMM31, Register::K0 + u32::from(lane)]
            }
        }
    }
}

impl fmt::Display for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Home::Mm(n) => write!(f, "mm{n}"),
            Home::Xmm(n) => write!(f, "xmm{n}"),
            Home::K(n) => write!(f, "k{n}"),
            Home::Lane { zmm, lane } => write!(f, "zmm{zmm}[{lane}]"),
        }
    }
}

impl FromStr for Home {
    type Err = String;

    /// The text of [`Home`]'s `Display`.
    fn from_str(said: &str) -> Result<Home, String> {
        let all = Bank::ALL.into_iter().flat_map(Bank::homes);
        all.into_iter().find(|home| home.to_string() == said).ok_or_else(|| format!("no home '{said}'"))
    }
}

/// The two ways of writing operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// Source first, registers with `%`.
    Att,
    /// Destination first.
    Intel {
        /// Whether registers still carry `%` (`.intel_syntax prefix`).
        prefix: bool,
    },
}

impl Syntax {
    /// A register as it is written.
    #[must_use]
    pub fn register(self, name: &str) -> String {
        match self {
            Syntax::Att | Syntax::Intel { prefix: true } => format!("%{name}"),
            Syntax::Intel { prefix: false } => name.to_owned(),
        }
    }

    /// A constant as it is written.
    #[must_use]
    pub fn constant(self, value: u8) -> String {
        match self {
            Syntax::Att => format!("${value}"),
            Syntax::Intel { .. } => value.to_string(),
        }
    }

    /// An instruction with its operands, the destination last in the call.
    #[must_use]
    pub fn say(self, mnemonic: &str, operands: &[&str]) -> String {
        let operands: Vec<&str> = match self {
            Syntax::Att => operands.to_vec(),
            Syntax::Intel { .. } => operands.iter().rev().copied().collect(),
        };
        if operands.is_empty() { mnemonic.to_owned() } else { format!("{mnemonic}\t{}", operands.join(", ")) }
    }
}

/// The form of moves in one function.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// The syntax at that place of the text.
    pub syntax: Syntax,
    /// Whether vector moves are VEX-encoded: as the rest of the function, since mixing the two costs.
    pub vex: bool,
}

impl Style {
    /// The name of the form of `register` that has `size` bytes.
    fn general(self, register: Register, size: usize) -> String {
        let register = if size == 8 { register.full_register() } else { register.full_register32() };
        self.syntax.register(&format!("{register:?}").to_ascii_lowercase())
    }

    /// `register` to `home`. No flags, no other register, no memory.
    #[must_use]
    pub fn put(self, register: Register, home: Home, size: usize) -> String {
        let s = self.syntax;
        let from = self.general(register, size);
        let wide = size == 8;
        match home {
            Home::Mm(n) => {
                s.say(if wide { "movq" } else { "movd" }, &[&from, &s.register(&format!("mm{n}"))])
            }
            Home::Xmm(n) => s.say(self.vector(n, wide), &[&from, &s.register(&format!("xmm{n}"))]),
            Home::K(n) => {
                s.say(if wide { "kmovq" } else { "kmovd" }, &[&from, &s.register(&format!("k{n}"))])
            }
            // The upper half of a 32-bit value's register is not the value's: it is dropped when the value is taken.
            Home::Lane { zmm, lane } => {
                let mask = s.register(&format!("k{lane}"));
                let to = format!("{}{{{mask}}}", s.register(&format!("zmm{zmm}")));
                s.say("vpbroadcastq", &[&self.general(register, 8), &to])
            }
        }
    }

    /// `home` to `register`. A value of 4 bytes is extended by zeros, as `movl` does.
    #[must_use]
    pub fn take(self, home: Home, register: Register, size: usize) -> String {
        let s = self.syntax;
        let to = self.general(register, size);
        let wide = size == 8;
        match home {
            Home::Mm(n) => s.say(if wide { "movq" } else { "movd" }, &[&s.register(&format!("mm{n}")), &to]),
            Home::Xmm(n) => s.say(self.vector(n, wide), &[&s.register(&format!("xmm{n}")), &to]),
            Home::K(n) => s.say(if wide { "kmovq" } else { "kmovd" }, &[&s.register(&format!("k{n}")), &to]),
            Home::Lane { zmm, lane } => {
                let (from, out) = (s.register(&format!("zmm{zmm}")), s.register("zmm31"));
                let shift = s.say("valignq", &[&s.constant(lane), &from, &from, &out]);
                let take = s.say(if wide { "vmovq" } else { "vmovd" }, &[&s.register("xmm31"), &to]);
                format!("{shift}\n\t{take}")
            }
        }
    }

    const fn vector(self, n: u8, wide: bool) -> &'static str {
        match (self.vex || n >= 16, wide) {
            (true, true) => "vmovq",
            (true, false) => "vmovd",
            (false, true) => "movq",
            (false, false) => "movd",
        }
    }

    /// The preparation of lanes, once: a mask for each lane, made without a general register or a flag.
    #[must_use]
    pub fn prepare(self, lanes: &[u8]) -> Vec<String> {
        let s = self.syntax;
        let mut out = Vec::new();
        for lane in lanes {
            let k = s.register(&format!("k{lane}"));
            out.push(s.say("kxnorb", &[&k, &k, &k]));
            out.push(s.say("kshiftrb", &[&s.constant(7), &k, &k]));
            out.push(s.say("kshiftlb", &[&s.constant(*lane), &k, &k]));
        }
        out
    }

    /// Clears the register of a home.
    #[must_use]
    pub fn wipe(self, home: Home) -> String {
        let s = self.syntax;
        match home {
            Home::Mm(n) => {
                let mm = s.register(&format!("mm{n}"));
                s.say("pxor", &[&mm, &mm])
            }
            Home::Xmm(n) if n < 16 => {
                let xmm = s.register(&format!("xmm{n}"));
                if self.vex { s.say("vpxor", &[&xmm, &xmm, &xmm]) } else { s.say("pxor", &[&xmm, &xmm]) }
            }
            Home::Xmm(n) | Home::Lane { zmm: n, .. } => {
                let xmm = s.register(&format!("xmm{n}"));
                s.say("vpxorq", &[&xmm, &xmm, &xmm])
            }
            Home::K(n) => {
                let k = s.register(&format!("k{n}"));
                s.say("kxorq", &[&k, &k, &k])
            }
        }
    }
}
