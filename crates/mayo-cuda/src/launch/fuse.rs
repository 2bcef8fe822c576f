//! The expansion of matrices for operations with compact keys: by separate kernels, beside products, or in one kernel
//! with them.
#![forbid(unsafe_code)]

#[cfg(all(test, feature = "emulated"))]
use lanework_cuda::Device;
use lanework_cuda::{Argument, Card, Error, Kernel, Module, args};
use lanework_mayo::Params;

use super::job::Job;
use super::kernels::Kernels;
use super::lane::Lane;
use super::shape::{self, Products};

/// How matrices are expanded where every operation has its own. Results are the same; the fastest way depends on the
/// device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expand {
    /// A separate kernel with as many threads as a multiprocessor has registers for; products read its output.
    #[default]
    Alone,
    /// The same with so few threads that one of its blocks and one of products share a multiprocessor, if both fit.
    Beside,
    /// In one kernel with the products, where its shared memory suffices: matrices stay within a block and never reach
    /// device memory. Other operations use `Alone`.
    Fused,
}

/// The kernels that make their matrices themselves.
#[derive(Debug)]
pub(crate) struct Fused {
    keygen: Kernel,
    pub(super) sign: Kernel,
    verify: Kernel,
}

impl Fused {
    pub(super) fn new(module: &Module, params: &Params) -> Result<Fused, Error> {
        let of = |name: &str| module.kernel(&format!("mayo_fused_{name}_{}", params.index()));
        Ok(Fused { keygen: of("keygen")?, sign: of("sign")?, verify: of("verify")? })
    }

    /// All of them.
    pub(crate) fn each(&self) -> [&Kernel; 3] {
        [&self.keygen, &self.sign, &self.verify]
    }

    /// The kernels' own sizes, six words for each of eight sets.
    #[cfg(all(test, feature = "emulated"))]
    pub(crate) fn shapes(device: &Device, module: &Module) -> Result<Vec<u32>, Error> {
        super::kernels::said(device, &module.kernel("mayo_fused_shapes")?, 48)
    }
}

/// Threads of a block: twelve warps.
const FUSED_THREADS: u32 = 384;
/// Rows of a panel and columns of a tile, as in `fused.cuh`.
const PANEL: usize = 16;
const COLUMNS: usize = 8;

/// Blocks of AES that may hold some of `vectors` vectors one after another.
fn blocks(p: &Params, vectors: usize) -> usize {
    let bytes = p.m_bytes();
    let aligned = 1 << bytes.trailing_zeros().min(4);
    (vectors * bytes + 16 - aligned).div_ceil(16)
}

/// Blocks of AES of a tile.
fn room(p: &Params) -> usize {
    let v = p.v();
    let size = |row: usize| PANEL.min(v - row);
    let corner = |row: usize, i: usize| {
        let first = (row + i) * (2 * v + 1 - row - i) / 2;
        if i < size(row) {
            (first * p.m_bytes() % 16 + (size(row) - i) * p.m_bytes()).div_ceil(16)
        } else {
            0
        }
    };
    let pairs = (0..v).step_by(PANEL).flat_map(|row| (0..PANEL / 2).map(move |i| (row, i)));
    let pair = pairs.map(|(row, i)| corner(row, i) + corner(row, PANEL - 1 - i)).max().unwrap_or(0);
    let oil = p.o().div_ceil(p.o().div_ceil(COLUMNS));
    let stride = blocks(p, COLUMNS).max(blocks(p, oil)) | 1;
    let tail = (p.p3_vecs() * p.m_bytes()).div_ceil(16);
    (PANEL * stride).max(PANEL / 2 * pair).max(tail) + usize::from(!p.m_bytes().is_multiple_of(4))
}

/// Masks that the last group of columns or of scalars reads past the last one.
fn past(p: &Params, what: Products) -> usize {
    let columns = shape::columns(p, what);
    let group = shape::group(columns, shape::words(p) / 2);
    let scalars = [4, 5, 3].into_iter().find(|&ta| columns.is_multiple_of(ta)).unwrap_or(4);
    let read = match what {
        Products::Sign => p.k() + p.o().next_multiple_of(scalars),
        _ => columns.next_multiple_of(scalars),
    };
    columns.next_multiple_of(group).max(read) - columns
}

/// Threads of a block and bytes of its shared memory.
pub(crate) fn fused_shape(p: &Params, what: Products) -> (u32, usize) {
    let rows = if what == Products::Verify { p.n() } else { p.v() };
    let columns = shape::columns(p, what);
    let words = shape::words(p);
    let x = columns * words;
    let q = if what == Products::Sign { (p.k() * columns + p.o() * p.k()) * words } else { columns * x };
    let all = 2 * 256 * 32 + 4 * (rows * columns + past(p, what)) + 2 * 4 * room(p) + PANEL * x + q;
    (FUSED_THREADS, all * 4)
}

/// Which operations are fused on a device, with the blocks that a multiprocessor holds at once; and the expansion of
/// the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    keygen: Option<u32>,
    sign: Option<u32>,
    verify: Option<u32>,
    /// Threads of a block that expands, and how many of those blocks a multiprocessor gets.
    pub(super) expand: (u32, u32),
}

impl Plan {
    /// Matrices by a kernel of its own.
    pub(crate) fn alone(kernels: &Kernels) -> Plan {
        let (threads, shared) = (shape::EXPAND_THREADS, shape::EXPAND_SHARED as u32);
        let blocks = kernels.expand.blocks_per_multiprocessor(threads, shared).unwrap_or(1).max(1);
        Plan { keygen: None, sign: None, verify: None, expand: (threads, blocks) }
    }

    /// The effect of `expand` for a job on a device.
    pub(crate) fn new(card: &Card, kernels: &Kernels, job: Job, expand: Expand) -> Plan {
        let alone = Plan::alone(kernels);
        match expand {
            Expand::Alone => alone,
            Expand::Beside => match beside(card, kernels, job) {
                Some(threads) => Plan { expand: (threads, 1), ..alone },
                None => alone,
            },
            Expand::Fused => {
                let of = |kernel: &Kernel, what: Products| {
                    let (threads, shared) = fused_shape(kernels.params, what);
                    if shared > card.shared_per_block as usize {
                        return None;
                    }
                    kernel.blocks_per_multiprocessor(threads, shared as u32).ok().filter(|&blocks| blocks > 0)
                };
                let fused = &kernels.fused;
                Plan {
                    keygen: of(&fused.keygen, Products::Keygen),
                    sign: of(&fused.sign, Products::Sign),
                    verify: of(&fused.verify, Products::Verify),
                    ..alone
                }
            }
        }
    }

    /// Whether no operation of a job needs memory for matrices.
    pub(crate) fn covers(&self, job: Job) -> bool {
        match job {
            Job::Keygen => self.keygen.is_some(),
            Job::Sign => self.sign.is_some() && self.keygen.is_some() && self.verify.is_some(),
            Job::Verify => self.verify.is_some(),
            Job::Expand | Job::SignExpanded | Job::VerifyExpanded => true,
        }
    }

    /// Whether key generation, signing and verification are fused.
    pub(crate) fn fused(&self) -> [bool; 3] {
        [self.keygen, self.sign, self.verify].map(|blocks| blocks.is_some())
    }
}

/// Threads of a block of `expand` that leaves room for one of products: by registers, which are allotted to warps by
/// eights for a thread, and by shared memory, of which a multiprocessor has 1 KiB more than a block may use, and
/// reserves 1 KiB for each block. None where two such blocks do not fit.
fn beside(card: &Card, kernels: &Kernels, job: Job) -> Option<u32> {
    const REGISTERS: u32 = 65_536;
    let (products, what) = match job {
        Job::Keygen => (&kernels.keygen, Products::Keygen),
        Job::Sign => (&kernels.sign, Products::Sign),
        Job::Verify => (&kernels.verify, Products::Verify),
        Job::Expand | Job::SignExpanded | Job::VerifyExpanded => return None,
    };
    let shared = shape::EXPAND_SHARED + shape::products_shared(kernels.params, what) + 1024;
    if shared > card.shared_per_block as usize {
        return None;
    }
    let of = |kernel: &Kernel, threads: u32| kernel.facts().registers.next_multiple_of(8) * threads;
    [512, 384, 256, 128].into_iter().find(|&threads| {
        of(&kernels.expand, threads) + of(products, shape::product_threads(kernels.params, what)) <= REGISTERS
    })
}

impl Lane {
    /// Schedules of `count` keys, `stride` bytes apart, and one launch of a fused kernel.
    fn fuse(
        &self,
        (kernel, what, blocks): (&Kernel, Products, u32),
        count: usize,
        (list, keys, stride): (Argument, Argument, usize),
        arguments: &[Argument],
    ) -> Result<(), Error> {
        self.schedules_of(count, list, (keys, Argument::null(), stride))?;
        let (threads, shared) = fused_shape(self.kernels.params, what);
        // As many blocks as run at once; each processes operation after operation.
        let blocks = count.min((self.multiprocessors * blocks) as usize);
        self.launch(kernel, blocks, threads, shared, arguments)
    }

    /// Public keys of `count` seeds, whose hashes are ready.
    pub(super) fn all_public_keys(&self, count: usize) -> Result<(), Error> {
        let set = self.kernels.params;
        let Some(blocks) = self.plan.keygen else {
            return self.parts(count).try_for_each(|part| self.public_keys_of(part, shape::p12(set)));
        };
        let from = (Argument::null(), (&self.hashes).into(), shape::seed(set));
        let arguments = args![count as u32, &self.schedules, &self.hashes, &self.public_keys];
        self.fuse((&self.kernels.fused.keygen, Products::Keygen, blocks), count, from, arguments)
    }

    /// The products of signing for the first `count` of the list, with compact keys.
    pub(super) fn sign_compact(&self, count: usize) -> Result<(), Error> {
        let Some(blocks) = self.plan.sign else {
            return self.parts(count).try_for_each(|part| self.sign_part(part));
        };
        let from = ((&self.list).into(), (&self.hashes).into(), shape::seed(self.kernels.params));
        let arguments = args![
            count as u32,
            &self.list,
            &self.schedules,
            &self.lambda,
            &self.hashes,
            &self.drawn,
            &self.u,
            &self.m
        ];
        self.fuse((&self.kernels.fused.sign, Products::Sign, blocks), count, from, arguments)
    }

    /// The products of verification with the compact keys that are ready; lambda is ready.
    pub(super) fn verify_compact(&self, count: usize) -> Result<(), Error> {
        let set = self.kernels.params;
        let Some(blocks) = self.plan.verify else {
            return self.parts(count).try_for_each(|part| self.expand_and_verify(part));
        };
        let from = (Argument::null(), (&self.public_keys).into(), set.public_key_bytes());
        let arguments =
            args![count as u32, &self.schedules, &self.public_keys, &self.lambda, &self.signatures, &self.u];
        self.fuse((&self.kernels.fused.verify, Products::Verify, blocks), count, from, arguments)
    }

    /// Matrices of a part from its public keys, and its products of verification; lambda is ready.
    fn expand_and_verify(&self, part: core::ops::Range<usize>) -> Result<(), Error> {
        let set = self.kernels.params;
        let from = self.public_keys.at(part.start * set.public_key_bytes())?;
        let from = (from, Argument::null(), set.public_key_bytes());
        let (total, none) = (shape::public_vecs(set), Argument::null());
        self.expand(part.len(), none, from, shape::p12(set), total, (&self.p).into())?;
        self.verify_part(part)
    }

    /// The same with public keys and matrices made anew from the hashes that are ready.
    pub(super) fn verify_anew(&self, count: usize) -> Result<(), Error> {
        if self.plan.keygen.is_some() && self.plan.verify.is_some() {
            self.all_public_keys(count)?;
            return self.verify_compact(count);
        }
        self.parts(count).try_for_each(|part| {
            self.public_keys_of(part.clone(), shape::public_vecs(self.kernels.params))?;
            self.verify_part(part)
        })
    }
}
