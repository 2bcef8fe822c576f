//! The GCDs with MULX and loops in assembly.

use super::*;
use crate::kernels::Adx;

stamp!(
    // SAFETY: these kernels are reachable only through their row of the table, which requires these features.
    unsafe { Adx::assume() },
    #[target_feature(enable = "bmi1,bmi2,lzcnt,adx")]
);
