//! Random functions with spills. Each knows which of its slots are private.
//!
//! A slot is *private* if, for every input, only the instructions that name it touch it, and if that follows from the function: each
//! other access to the frame has a known distance or a bounded index, and no address of the frame leaves the function for code that
//! may do anything with it. [`Privacy`] has everything else about a slot.
//!
//! A function never reads what it has not written, and never keeps an address of code, so it computes the same on every stack.

mod maker;
mod statements;
mod traits;

use std::collections::BTreeSet;

use maker::Maker;
use traits::{POINTERS, Trait};

/// SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// True once in `n` times.
    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// Vectors that this machine has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Features {
    pub(crate) avx2: bool,
    pub(crate) avx512: bool,
}

impl Features {
    pub(crate) fn here() -> Features {
        Features {
            avx2: std::arch::is_x86_feature_detected!("avx2"),
            avx512: super::native::runs_here(lanework_respill::homes::Bank::K),
        }
    }
}

/// What the generator knows of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Privacy {
    /// Nothing but the instructions that name it touches it.
    Private,
    /// The same, and the function makes an address of its frame in this way, or has such an access to it.
    Beside(&'static str),
    /// It is private, and its function calls itself.
    Recursive,
    /// An instruction that names it needs memory.
    Memory,
    /// Something else touches it.
    Aliased(&'static str),
    /// Something else may touch it, as far as the function tells.
    Open(&'static str),
}

/// A slot of 4 or 8 bytes.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) function: String,
    /// Bytes from the stack pointer at the entry, or from where that was aligned.
    pub(crate) offset: i64,
    pub(crate) aligned: bool,
    /// 4 or 8.
    pub(crate) size: i64,
    /// How the function names it, unless it has pushed something.
    pub(crate) operand: String,
    pub(crate) privacy: Privacy,
}

/// A function with its helpers.
#[derive(Clone, Debug)]
pub(crate) struct Generated {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) slots: Vec<Known>,
    /// What it has, by name.
    pub(crate) features: BTreeSet<&'static str>,
}

/// The prefix of every name that a batch defines.
pub(crate) const PREFIX: &str = "zq_";

/// A function of its own seed, with its helpers.
pub(crate) fn function(seed: u64, indirect: bool, here: Features) -> Generated {
    let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x1234);
    let name = format!("{PREFIX}{seed}");
    let mut traits: Vec<Trait> = Vec::new();
    let common = [
        (Trait::Vectors, 5),
        (Trait::Float, 14),
        (Trait::Mmx, 16),
        (Trait::Masks, 16),
        (Trait::LocalCalls, 3),
        (Trait::OutsideCalls, 6),
        (Trait::Memset, 16),
        (Trait::Table, 14),
        (Trait::TailCall, 40),
        (Trait::HalfTail, 12),
        (Trait::Alloca, 40),
        (Trait::Recursion, 40),
        (Trait::CallBack, 32),
        (Trait::LongDouble, 24),
        (Trait::ReturnsVector, 10),
        (Trait::Pushes, 4),
        (Trait::Bounded, 4),
        (Trait::TooFar, 12),
        (Trait::Wild, 16),
        (Trait::Overlap, 14),
        (Trait::Narrow, 12),
        (Trait::Odd, 12),
    ];
    for (one, times) in common {
        if random.one_in(times) {
            traits.push(one);
        }
    }
    if random.one_in(6) {
        let which = random.below(POINTERS.len());
        traits.push(Trait::Pointer(which));
    }
    if indirect && random.one_in(3) {
        traits.push(Trait::Indirect);
    }
    let mut out =
        Generated { name: name.clone(), text: String::new(), slots: Vec::new(), features: BTreeSet::new() };
    let (mut helpers, mut made): (Vec<String>, Vec<Generated>) = Default::default();
    let wanted = [Trait::LocalCalls, Trait::TailCall, Trait::HalfTail, Trait::CallBack, Trait::Indirect];
    if traits.iter().any(|one| wanted.contains(one)) {
        for n in 0..1 + random.below(2) {
            let helper = format!("{name}_h{n}");
            let mut few: Vec<Trait> = Vec::new();
            let typed = random.one_in(2);
            for (one, times) in
                [(Trait::Vectors, 6), (Trait::Bounded, 5), (Trait::Pushes, 6), (Trait::Memset, 24)]
            {
                if random.one_in(times) {
                    few.push(one);
                }
            }
            if n == 1 && random.one_in(2) {
                few.push(Trait::LocalCalls);
            }
            let below = helpers.clone();
            let mut one = Maker::new(&mut random, here, &helper, few, below, true).make();
            if typed {
                one.text.insert_str(0, &format!("\t.type\t{helper},@function\n"));
            }
            helpers.push(helper);
            made.push(one);
        }
    }
    if traits.contains(&Trait::Recursion) {
        out.add(recursive(&format!("{name}_r")));
    }
    if traits.contains(&Trait::Pointer(10)) {
        out.text.push_str(&format!(
            "{name}_p:\n\tmovq\t(%rdi), %rax\n\taddq\t%rsi, (%rdi)\n\txorl\t%edi, %edi\n\tret\n"
        ));
    }
    let main = Maker::new(&mut random, here, &name, traits, helpers, false).make();
    // A compiler leaves out what nothing calls. Code to which no jump leads would count for every function of the file.
    let mut kept: Vec<Generated> = Vec::new();
    for one in made.into_iter().rev() {
        if main.text.contains(&one.name) || kept.iter().any(|other| other.text.contains(&one.name)) {
            kept.push(one);
        }
    }
    kept.into_iter().rev().for_each(|one| out.add(one));
    out.add(main);
    out
}

impl Generated {
    fn add(&mut self, other: Generated) {
        self.text.push_str(&other.text);
        self.slots.extend(other.slots);
        self.features.extend(other.features);
    }
}

/// A function that calls itself up to three times with a live slot.
fn recursive(name: &str) -> Generated {
    let text = format!(
        "{name}:\n\tsubq\t$24, %rsp\n\tmovq\t%rsi, 8(%rsp)\n\tandl\t$3, %edi\n\tje\t.L{name}\n\tdecl\t%edi\n\tleaq\t1(%rsi,%rsi), %rsi\n\
         \tcall\t{name}\n\txorl\t%edi, %edi\n.L{name}:\n\tmovq\t8(%rsp), %rax\n\taddq\t%rsi, %rax\n\taddq\t$24, %rsp\n\tret\n"
    );
    let slot = Known {
        function: name.to_owned(),
        offset: -16,
        aligned: false,
        size: 8,
        operand: "8(%rsp)".to_owned(),
        privacy: Privacy::Recursive,
    };
    Generated { name: name.to_owned(), text, slots: vec![slot], features: BTreeSet::from(["recursion"]) }
}
