//! The kernels of one set on one device.

#[cfg(all(test, feature = "emulated"))]
use lanework_cuda::{Device, Grid, args};
use lanework_cuda::{Error, Kernel, Module};
use lanework_mayo::Params;

use super::fuse::Fused;
use super::lane::bits::BitKernels;

/// The kernels of one set on one device.
#[derive(Debug)]
pub(crate) struct Kernels {
    pub(crate) params: &'static Params,
    pub(super) fused: Fused,
    pub(super) seed: Kernel,
    pub(super) salt: Kernel,
    pub(super) target: Kernel,
    pub(super) draw: Kernel,
    pub(super) expand: Kernel,
    pub(super) place: Kernel,
    pub(super) keygen: Kernel,
    pub(super) lower: Kernel,
    pub(super) sign: Kernel,
    pub(super) sign_expanded: Kernel,
    pub(super) verify: Kernel,
    pub(super) check: Kernel,
    pub(super) solve: Kernel,
    pub(super) schedules: Kernel,
    pub(super) bits: BitKernels,
}

impl Kernels {
    pub(crate) fn new(module: &Module, params: &'static Params) -> Result<Kernels, Error> {
        let of = |name: &str| module.kernel(&format!("mayo_{name}_{}", params.index()));
        Ok(Kernels {
            params,
            fused: Fused::new(module, params)?,
            seed: of("seed")?,
            salt: of("salt")?,
            target: of("target")?,
            draw: of("draw")?,
            expand: of("expand")?,
            place: of("place")?,
            keygen: of("keygen")?,
            lower: of("lower")?,
            sign: of("sign")?,
            sign_expanded: of("sign_expanded")?,
            verify: of("verify")?,
            check: of("check")?,
            solve: of("solve")?,
            schedules: module.kernel("mayo_schedules")?,
            bits: BitKernels::new(module, params)?,
        })
    }

    /// All of them.
    pub(crate) fn each(&self) -> Vec<&Kernel> {
        let mut all = vec![
            &self.seed,
            &self.salt,
            &self.target,
            &self.draw,
            &self.expand,
            &self.place,
            &self.keygen,
            &self.lower,
            &self.sign,
            &self.sign_expanded,
            &self.verify,
            &self.check,
            &self.solve,
            &self.schedules,
        ];
        all.extend([&self.bits.lay, &self.bits.each, &self.bits.one]);
        all.extend(self.fused.each());
        all
    }

    /// The same with one kernel that leaks, taken by its name from `planted`.
    #[cfg(all(test, feature = "emulated"))]
    pub(crate) fn planted(mut self, planted: &Module, name: &str) -> Result<Kernels, Error> {
        let kernel = planted.kernel(&format!("planted_{name}"))?;
        match name {
            "draw" => self.draw = kernel,
            "sign" => self.sign = kernel,
            "fused_sign" => self.fused.sign = kernel,
            "solve" => self.solve = kernel,
            _ => return Err(Error::Shape(format!("nothing is planted in {name}"))),
        }
        Ok(self)
    }

    /// The kernels' own sizes: 14 words for each of eight sets, and six for each of the products of bits.
    #[cfg(all(test, feature = "emulated"))]
    pub(crate) fn shapes(device: &Device, module: &Module) -> Result<[Vec<u32>; 2], Error> {
        Ok([
            said(device, &module.kernel("mayo_shapes")?, 112)?,
            said(device, &module.kernel("mayo_bits_shapes")?, 48)?,
        ])
    }
}

/// The sizes that a kernel reports: `words` words.
#[cfg(all(test, feature = "emulated"))]
pub(super) fn said(device: &Device, kernel: &Kernel, words: usize) -> Result<Vec<u32>, Error> {
    let (stream, out) = (device.stream()?, device.buffer::<u32>(words)?);
    let grid = Grid { blocks: 1, threads: 1, shared: 0 };
    // SAFETY: these kernels write 14 or six words for each of eight sets, and callers pass that number.
    unsafe { stream.launch(kernel, grid, args![&out])? };
    stream.get(&out, 0..words)
}
