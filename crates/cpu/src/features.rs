//! Instruction-set features, detection and masking.
#![forbid(unsafe_code)]

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

macro_rules! features {
    ($($(#[$doc:meta])* $variant:ident = $name:tt, implies [$($implied:ident),*];)*) => {
        /// One instruction-set feature of x86-64, named as the Rust compiler names it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Feature { $($(#[$doc])* $variant,)* }

        impl Feature {
            /// Every feature of this crate, in order of implication: a feature comes after those it implies.
            pub const ALL: &'static [Feature] = &[$(Feature::$variant),*];

            /// The name, as in `target_feature` and `LANEWORK_MASK`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Feature::$variant => $name,)* }
            }

            /// The features that this one implies.
            const fn implied(self) -> &'static [Feature] {
                match self { $(Feature::$variant => &[$(Feature::$implied),*],)* }
            }

            #[cfg(target_arch = "x86_64")]
            fn detected(self) -> bool {
                #[cfg(any(test, feature = "std"))]
                return match self { $(Feature::$variant => std::arch::is_x86_feature_detected!($name),)* };
                #[cfg(not(any(test, feature = "std")))]
                match self { $(Feature::$variant => cfg!(target_feature = $name),)* }
            }
        }
    };
}

features! {
    /// Byte shuffles.
    Ssse3 = "ssse3", implies [];
    /// SSE4.1.
    Sse41 = "sse4.1", implies [Ssse3];
    /// AES rounds on 128-bit registers (AES-NI).
    Aes = "aes", implies [Sse41];
    /// Carry-less multiplication on 128-bit registers.
    Pclmulqdq = "pclmulqdq", implies [];
    /// Bit manipulation, first set (`andn`, `tzcnt`).
    Bmi1 = "bmi1", implies [];
    /// Bit manipulation, second set (`pext`, `rorx`, `mulx`).
    Bmi2 = "bmi2", implies [];
    /// Leading-zero count (`lzcnt`). Without it the same bytes decode as `bsr`, which gives other numbers.
    Lzcnt = "lzcnt", implies [];
    /// Two independent carry chains (`adcx`, `adox`).
    Adx = "adx", implies [];
    /// 256-bit floating-point vectors, the base of every VEX instruction.
    Avx = "avx", implies [Sse41];
    /// 256-bit integer vectors.
    Avx2 = "avx2", implies [Avx];
    /// GF(2^8) affine maps and products.
    Gfni = "gfni", implies [];
    /// AES rounds on wide registers.
    Vaes = "vaes", implies [Avx2, Aes];
    /// Carry-less multiplication on wide registers.
    Vpclmulqdq = "vpclmulqdq", implies [Avx, Pclmulqdq];
    /// 512-bit vectors, foundation.
    Avx512f = "avx512f", implies [Avx2];
    /// Byte and word operations on 512-bit vectors.
    Avx512bw = "avx512bw", implies [Avx512f];
    /// Doubleword and quadword extras.
    Avx512dq = "avx512dq", implies [Avx512f];
    /// EVEX operations on 128- and 256-bit vectors.
    Avx512vl = "avx512vl", implies [Avx512f];
    /// 52-bit integer multiply-add.
    Avx512ifma = "avx512ifma", implies [Avx512f];
    /// Byte permutations.
    Avx512vbmi = "avx512vbmi", implies [Avx512bw];
    /// Byte compression and funnel shifts.
    Avx512vbmi2 = "avx512vbmi2", implies [Avx512bw];
}

/// A set of [`Feature`]s.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Features(u32);

impl Features {
    /// The empty set.
    pub const NONE: Features = Features(0);

    /// The features of the backends named `avx2`.
    pub const AVX2_AES_BMI_PCLMULQDQ: Features =
        Features::of(&[Feature::Avx2, Feature::Aes, Feature::Bmi1, Feature::Bmi2, Feature::Pclmulqdq]);

    /// The features of the backends named `avx512`: F BW DQ VL IFMA VBMI VBMI2 GFNI VAES VPCLMULQDQ together.
    pub const AVX512: Features = Features::of(&[
        Feature::Avx512f,
        Feature::Avx512bw,
        Feature::Avx512dq,
        Feature::Avx512vl,
        Feature::Avx512ifma,
        Feature::Avx512vbmi,
        Feature::Avx512vbmi2,
        Feature::Gfni,
        Feature::Vaes,
        Feature::Vpclmulqdq,
        Feature::Bmi1,
        Feature::Bmi2,
    ]);

    /// The set of `list` and of everything its members imply.
    #[must_use]
    pub const fn of(list: &[Feature]) -> Features {
        let mut bits = 0;
        let mut i = 0;
        while i < list.len() {
            bits |= 1 << list[i] as u32;
            bits |= Features::of(list[i].implied()).0;
            i += 1;
        }
        Features(bits)
    }

    /// Whether `feature` is in the set.
    #[must_use]
    pub const fn contains(self, feature: Feature) -> bool {
        self.0 >> feature as u32 & 1 == 1
    }

    /// Whether all of `other` is in the set.
    #[must_use]
    pub const fn includes(self, other: Features) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets together.
    #[must_use]
    pub const fn union(self, other: Features) -> Features {
        Features(self.0 | other.0)
    }

    /// The members of this set that `other` lacks.
    #[must_use]
    pub const fn difference(self, other: Features) -> Features {
        Features(self.0 & !other.0)
    }

    /// This set without the members of `removed` and without every feature that implies one of them.
    #[must_use]
    pub fn without(self, removed: Features) -> Features {
        Feature::ALL
            .iter()
            .filter(|&&f| self.contains(f) && Features::of(&[f]).0 & removed.0 == 0)
            .fold(Features::NONE, |set, &f| Features(set.0 | 1 << f as u32))
    }

    /// The members, each after those it implies.
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.iter().copied().filter(move |&f| self.contains(f))
    }

    /// Parses a comma-separated list of feature names; blank entries are ignored.
    ///
    /// # Errors
    /// [`UnknownFeature`] with the first name that is not a feature.
    pub fn parse(list: &str) -> Result<Features, UnknownFeature> {
        let mut bits = 0;
        for name in list.split(',').map(str::trim).filter(|n| !n.is_empty()) {
            let feature = Feature::ALL
                .iter()
                .find(|f| f.name() == name)
                .ok_or_else(|| UnknownFeature { name: name.to_owned() })?;
            bits |= 1 << *feature as u32;
        }
        Ok(Features(bits))
    }
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, feature) in self.iter().enumerate() {
            write!(f, "{}{}", if i == 0 { "" } else { " " }, feature.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Features({self})")
    }
}

/// A name that is not a CPU feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFeature {
    /// The name as given.
    pub name: String,
}

impl fmt::Display for UnknownFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a CPU feature; known: ", self.name)?;
        write!(f, "{}", Features::of(Feature::ALL))
    }
}

impl core::error::Error for UnknownFeature {}

/// Whether a 512-bit operation is one operation here, not two of 256 bits. True where a CPU has VP2INTERSECT, as AMD's Zen 5 and
/// Intel's Tiger Lake do. Other CPUs with whole operations may be missed. Both ways give the same results.
#[must_use]
pub fn whole_512() -> bool {
    #[cfg(all(target_arch = "x86_64", any(test, feature = "std")))]
    return std::arch::is_x86_feature_detected!("avx512vp2intersect");
    #[cfg(not(all(target_arch = "x86_64", any(test, feature = "std"))))]
    cfg!(target_feature = "avx512vp2intersect")
}

/// The features that may be used on this machine.
///
/// A `Cpu` comes from detection, and from there it can only lose features. A kernel reached through
/// [`crate::Backend::get`] may therefore rely on the features that its table row names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    usable: Features,
    masked: Features,
}

impl Cpu {
    /// What the processor and the operating system offer, unmasked. Without the feature `std`: what the program was
    /// compiled for.
    #[must_use]
    pub fn detect() -> Cpu {
        #[cfg(target_arch = "x86_64")]
        let found = Feature::ALL.iter().filter(|f| f.detected()).fold(0, |bits, &f| bits | 1u32 << f as u32);
        #[cfg(not(target_arch = "x86_64"))]
        let found = 0;
        // A hypervisor may hide a feature and leave one that implies it; count only whole chains.
        let absent = Features(!found & Features::of(Feature::ALL).0);
        Cpu { usable: Features(found).without(absent), masked: Features::NONE }
    }

    /// A processor without any feature beyond the x86-64 baseline.
    #[must_use]
    pub const fn baseline() -> Cpu {
        Cpu { usable: Features::NONE, masked: Features::NONE }
    }

    /// This processor without `mask` and everything that implies a member of it.
    #[must_use]
    pub fn masking(self, mask: Features) -> Cpu {
        let usable = self.usable.without(mask);
        Cpu { usable, masked: self.masked.union(self.usable.difference(usable)) }
    }

    /// The features that may be used.
    #[must_use]
    pub const fn features(&self) -> Features {
        self.usable
    }

    /// The features that are present but masked.
    #[must_use]
    pub const fn masked(&self) -> Features {
        self.masked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_respects_implication() {
        for (i, f) in Feature::ALL.iter().enumerate() {
            for implied in f.implied() {
                let at = Feature::ALL.iter().position(|g| g == implied);
                assert!(at.is_some_and(|at| at < i), "{} must come after {}", f.name(), implied.name());
            }
        }
    }

    #[test]
    fn masking_takes_what_implies_the_masked_one() {
        let all = Features::of(Feature::ALL);
        let left = all.without(Features::parse("avx2").unwrap());
        for gone in [Feature::Avx2, Feature::Vaes, Feature::Avx512f, Feature::Avx512vbmi2] {
            assert!(!left.contains(gone), "{} survived", gone.name());
        }
        for kept in [Feature::Avx, Feature::Aes, Feature::Gfni, Feature::Bmi2] {
            assert!(left.contains(kept), "{} was lost", kept.name());
        }
    }

    #[test]
    fn masking_never_adds() {
        let cpu = Cpu::baseline().masking(Features::parse("avx2").unwrap());
        assert_eq!(cpu.features(), Features::NONE);
        assert_eq!(cpu.masked(), Features::NONE);
    }

    #[test]
    fn unknown_names_are_named() {
        assert_eq!(Features::parse("avx2, avx3").unwrap_err().name, "avx3");
    }
}
