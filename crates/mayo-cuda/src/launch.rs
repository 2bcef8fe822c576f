//! The programs, and lanes that run chunks of operations through them: the only launches of kernels.

pub(crate) mod fuse;
#[cfg(test)]
mod header;
pub(crate) mod job;
pub(crate) mod kernels;
pub(crate) mod lane;
pub(crate) mod shape;
pub(crate) mod threads;

use lanework_cuda::Image;

/// The compiled `mayo.cu`.
pub(crate) static CODE: &[u8] = include_bytes!("kernels/mayo.fatbin");

/// The program: `mayo.cu` for devices, and with the feature `emulated` also as C++.
#[cfg(not(feature = "emulated"))]
pub(crate) static IMAGE: Image = Image::new("lanework_mayo", CODE);
#[cfg(feature = "emulated")]
pub(crate) static IMAGE: Image = {
    // SAFETY: the build script compiles `mayo.cu`, which defines it.
    let kernels = unsafe { &lanework_mayo_kernels };
    Image::new("lanework_mayo", CODE).with_emulated(kernels)
};

#[cfg(feature = "emulated")]
unsafe extern "C" {
    static lanework_mayo_kernels: lanework_cuda::Kernels;
    #[cfg(test)]
    static lanework_mayo_planted_kernels: lanework_cuda::Kernels;
    static lanework_mayo_thread_kernels: lanework_cuda::Kernels;
}

/// Kernels with planted leaks.
#[cfg(all(test, feature = "emulated"))]
pub(crate) static PLANTED: Image = {
    // SAFETY: the build script compiles `planted_emulated.cpp`, which defines it.
    let kernels = unsafe { &lanework_mayo_planted_kernels };
    Image::new("lanework_mayo_planted", &[]).with_emulated(kernels)
};

/// One thread to a whole operation.
#[cfg(not(feature = "emulated"))]
pub(crate) static THREAD: Image = Image::new("lanework_mayo_thread", include_bytes!("kernels/thread.fatbin"));
#[cfg(feature = "emulated")]
pub(crate) static THREAD: Image = {
    // SAFETY: the build script compiles `thread.cu`, which defines it.
    let kernels = unsafe { &lanework_mayo_thread_kernels };
    Image::new("lanework_mayo_thread", include_bytes!("kernels/thread.fatbin")).with_emulated(kernels)
};
