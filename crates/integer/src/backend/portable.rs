//! The GCDs in plain Rust.

use super::*;
use crate::kernels::Portable;

stamp!(Portable,);
