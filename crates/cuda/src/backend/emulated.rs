//! A device made of fibers: the same host code runs kernels that were compiled as C++.
//!
//! Guard bytes around every buffer are checked after every launch.

mod body;
mod depot;

use core::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use crate::backend::Machine;
use crate::backend::hosted::{self, Control, Emulation};

use body::Fibers;
use depot::Depot;

/// A program compiled as C++: what the dialect's `LW_KERNELS(name, ...)` defines, to be declared as
/// `unsafe extern "C" { static name: Kernels; }`.
#[derive(Debug)]
#[repr(C)]
pub struct Kernels {
    kernels: *const Entry,
    count: u32,
}

// SAFETY: it is a constant of the program, and so are the objects it points to.
unsafe impl Sync for Kernels {}

/// `lw_kernel`.
#[repr(C)]
struct Entry {
    name: *const c_char,
    call: extern "C" fn(*const *const c_void),
    parameters: *const Parameter,
    count: u32,
}

// SAFETY: it only ever is such a constant.
unsafe impl Sync for Entry {}

/// `lw_parameter`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Parameter {
    bytes: u16,
    pointer: u16,
}

/// `dim3`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Dimensions {
    x: u32,
    y: u32,
    z: u32,
}

/// `lw_launch`.
#[repr(C)]
struct Launch {
    blocks: Dimensions,
    threads: Dimensions,
    shared: u64,
    stack: u64,
    order: u32,
    seed: u32,
    left: u64,
    collectives: u64,
}

unsafe extern "C" {
    fn lw_run(
        kernel: *const Entry,
        arguments: *const *const c_void,
        launch: *mut Launch,
        why: *mut c_char,
        length: usize,
    ) -> c_int;
    fn lw_forget();
    fn lw_undefined(memory: *mut c_void, bytes: u64);
}

/// A device of this kind and its control.
pub(crate) fn open(how: Emulation) -> (Arc<dyn Machine>, Control) {
    let depots = how.recycles.then(|| {
        // Places between buffers, and zones around them, take something too.
        let room = usize::try_from(how.memory).unwrap_or(usize::MAX / 4);
        Arc::new(Depots { device: Depot::new(room + room / 4), pinned: Depot::new(PINNED) })
    });
    hosted::open(hosted::card(&how, "emulated device"), how.order, Fibers::new(depots))
}

/// Pinned memory that a recycling device has.
const PINNED: usize = 1 << 30;

/// The common state of a recycling device's contexts.
#[derive(Debug)]
struct Depots {
    device: Depot,
    pinned: Depot,
}
