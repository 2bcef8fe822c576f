//! Backends with planted leaks: every kernel that sees secrets, leaking by a branch and by an address, in every tier
//! that valgrind can run, and in those with kernels of their own that it cannot.
#![forbid(unsafe_code)]

use lanework_leakage::plants::{
    ADDRESS, BRANCH, branch_on_byte, branch_on_lanes, branch_wide, load_by_byte, load_by_lanes, load_wide,
};

use super::BATCH;
use crate::backend::operands::{ExpandSecret, Finish, Keygen, Sign, Solve};
use crate::backend::{Engine, Expand, Kernels, SetKernels, altered, avx2, avx2_gfni, avx512, portable};
use crate::params::{Params, Round, Set};
use crate::sys::{Block, bytes};

/// The set that leaks are planted in.
pub(super) fn params() -> &'static Params {
    Params::of(Round::Three, Set::Mayo2)
}

/// Kernels that see secrets.
pub(super) const KERNELS: [&str; 9] = [
    "shake256",
    "shake256_xn",
    "seed_and_stream",
    "keygen",
    "expand_secret",
    "sign",
    "sign_expanded",
    "solve",
    "finish",
];

/// A backend with one leak.
pub(super) struct Plant {
    pub(super) tier: &'static str,
    pub(super) kernel: &'static str,
    /// The function that leaks.
    pub(super) function: &'static str,
    /// Memcheck's complaint about it.
    pub(super) complaint: &'static str,
    pub(super) kernels: &'static Kernels,
}

impl Plant {
    /// The backend, with the leak and without instruments.
    pub(super) fn engine(&self) -> Engine {
        altered(self.tier, Kernels { expand: self.kernels.expand, sets: self.kernels.sets })
    }
}

/// Stamps the planted kernels of one tier and one leak: each does the real kernel's work, then leaks its output.
macro_rules! planted {
    ($name:ident, $sound:path, $leak:path $(, #[$feature:meta])?) => {
        mod $name {
            use super::*;

            fn sound() -> &'static SetKernels {
                &$sound.sets[params().index()]
            }

            $(#[$feature])?
            fn shake256(parts: &[&[u8]], out: &mut [u8]) {
                $sound.expand.shake256(parts, out);
                $leak(out);
            }

            $(#[$feature])?
            fn shake256_xn(messages: &[&[u8]], outs: &mut [&mut [u8]]) {
                $sound.expand.shake256_xn(messages, outs);
                for out in outs {
                    $leak(out);
                }
            }

            $(#[$feature])?
            fn seed_and_stream(seed: &[u8], hash: &mut [u8], stream: &mut [u8]) {
                $sound.expand.seed_and_stream(seed, hash, stream);
                $leak(hash);
            }

            $(#[$feature])?
            fn keygen(Keygen { p, o, p3, scratch }: Keygen<'_>) {
                sound().keygen(Keygen { p, o, p3, scratch });
                $leak(p3);
            }

            $(#[$feature])?
            fn expand_secret(ExpandSecret { p, o, layout, scratch }: ExpandSecret<'_>) {
                sound().expand_secret(ExpandSecret { p, o, layout, scratch });
                // The layout is private to the backend, but it holds L, and P1 in the rest.
                for block in layout {
                    $leak(&block.0);
                }
            }

            $(#[$feature])?
            fn sign(Sign { key: p, o, vinegar, lambda, m, u, scratch }: Sign<'_, &[u8]>) {
                sound().sign(Sign { key: p, o, vinegar, lambda, m, u, scratch });
                $leak(bytes(m));
            }

            $(#[$feature])?
            fn sign_expanded(Sign { key: layout, o, vinegar, lambda, m, u, scratch }: Sign<'_, &[Block]>) {
                sound().sign_expanded(Sign { key: layout, o, vinegar, lambda, m, u, scratch });
                $leak(bytes(u));
            }

            $(#[$feature])?
            fn solve(Solve { m, u, t, r, x, scratch }: Solve<'_>) -> bool {
                let solvable = sound().solve(Solve { m, u, t, r, x, scratch });
                $leak(x);
                solvable
            }

            $(#[$feature])?
            fn finish(Finish { o, vinegar, x, s }: Finish<'_>) {
                sound().finish(Finish { o, vinegar, x, s });
                $leak(s);
            }

            pub(super) fn plant(kernel: &str) -> &'static Kernels {
                let mut expand: Expand = $sound.expand;
                let mut sets = $sound.sets;
                let set = &mut sets[params().index()];
                *set = set.around_another();
                match kernel {
                    "shake256" => (expand.shake256, expand.seed_and_stream) = (shake256, None),
                    // Also where the backend takes one message at a time.
                    "shake256_xn" => (expand.shake256_xn, expand.lanes) = (shake256_xn, expand.lanes.max(BATCH)),
                    "seed_and_stream" => expand.seed_and_stream = Some(seed_and_stream),
                    "keygen" => set.keygen = keygen,
                    "expand_secret" => set.expand_secret = expand_secret,
                    "sign" => set.sign = sign,
                    "sign_expanded" => set.sign_expanded = sign_expanded,
                    "solve" => set.solve = solve,
                    "finish" => set.finish = finish,
                    other => panic!("no leak is planted in {other}"),
                }
                Box::leak(Box::new(Kernels { expand, sets }))
            }
        }
    };
}

planted!(portable_branch, portable::KERNELS, branch_on_byte);
planted!(portable_load, portable::KERNELS, load_by_byte);
planted!(avx2_branch, avx2::KERNELS, branch_on_lanes, #[target_feature(enable = "avx2")]);
planted!(avx2_load, avx2::KERNELS, load_by_lanes, #[target_feature(enable = "avx2")]);
planted!(gfni_branch, avx2_gfni::KERNELS, branch_on_lanes, #[target_feature(enable = "avx2")]);
planted!(gfni_load, avx2_gfni::KERNELS, load_by_lanes, #[target_feature(enable = "avx2")]);
planted!(avx512_branch, avx512::KERNELS, branch_wide);
planted!(avx512_load, avx512::KERNELS, load_wide);

/// Plants one leak in the kernel named.
type Planting = fn(&str) -> &'static Kernels;

/// The backends whose kernels have plants.
pub(super) const TIERS: [&str; 4] = ["portable", "avx2", "avx2-gfni", "avx512"];

/// Every plant in the kernels of this name; none for rows that are not among [`TIERS`].
pub(super) fn of(tier: &'static str) -> Vec<Plant> {
    let kinds: [(&str, &str, Planting); 2] = match tier {
        "portable" => [
            ("branch_on_byte", BRANCH, portable_branch::plant),
            ("load_by_byte", ADDRESS, portable_load::plant),
        ],
        "avx2" => {
            [("branch_on_lanes", BRANCH, avx2_branch::plant), ("load_by_lanes", ADDRESS, avx2_load::plant)]
        }
        "avx2-gfni" => {
            [("branch_on_lanes", BRANCH, gfni_branch::plant), ("load_by_lanes", ADDRESS, gfni_load::plant)]
        }
        "avx512" => {
            [("branch_on_mask", BRANCH, avx512_branch::plant), ("gather_wide", ADDRESS, avx512_load::plant)]
        }
        _ => return Vec::new(),
    };
    kinds
        .into_iter()
        .flat_map(|(function, complaint, plant)| {
            KERNELS.map(|kernel| Plant { tier, kernel, function, complaint, kernels: plant(kernel) })
        })
        .collect()
}
