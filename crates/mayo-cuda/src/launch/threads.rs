//! Launches of the kernels that give a whole operation to one thread.

use std::time::Duration;

use lanework_cuda::{Argument, Buffer, Device, Error, Grid, Module, Stream, args};

/// A buffer with this many bytes for each operation, or none where the kernel takes none.
pub(crate) type Each<'a> = Option<(&'a Buffer<u8>, usize)>;

/// The kernel's inputs and outputs, operation by operation.
pub(crate) struct Strings<'a> {
    pub(crate) keys: (&'a Buffer<u8>, usize),
    pub(crate) digests: Each<'a>,
    pub(crate) randomizers: Each<'a>,
    pub(crate) out: (&'a Buffer<u8>, usize),
    /// One for each operation.
    pub(crate) flags: &'a Buffer<u8>,
    /// Three for each.
    pub(crate) cycles: &'a Buffer<u64>,
}

/// The place of operation `at` in a buffer that must have all `count`.
fn place(what: &str, each: Each<'_>, at: usize, count: usize) -> Result<Argument, Error> {
    match each {
        None => Ok(Argument::null()),
        Some((buffer, size)) if buffer.len() >= count.saturating_mul(size) => buffer.at(at * size),
        Some(_) => Err(Error::Shape(format!("there are fewer than {count} {what}"))),
    }
}

/// Runs `count` operations, `blocks` times `threads` to a launch, one launch after the other. Returns the device's
/// time for all of them, and the number of launches.
pub(crate) fn run(
    stream: &Stream,
    module: &Module,
    kernel: &str,
    (blocks, threads): (u32, u32),
    count: usize,
    strings: &Strings<'_>,
) -> Result<(Duration, usize), Error> {
    let kernel = module.kernel(kernel)?;
    let at_once = (blocks as usize).saturating_mul(threads as usize);
    if at_once == 0 || u32::try_from(at_once).is_err() {
        return Err(Error::Shape(format!("{blocks} blocks of {threads} threads cannot be launched")));
    }
    if strings.flags.len() < count || strings.cycles.len() < count.saturating_mul(3) {
        return Err(Error::Shape(format!("there is no room for {count} results")));
    }
    let start = stream.mark()?;
    let mut launches = 0;
    for at in (0..count).step_by(at_once) {
        let now = (count - at).min(at_once);
        let arguments = args![
            now as u32,
            place("keys", Some(strings.keys), at, count)?,
            place("digests", strings.digests, at, count)?,
            place("randomizers", strings.randomizers, at, count)?,
            place("results", Some(strings.out), at, count)?,
            strings.flags.at(at)?,
            strings.cycles.at(3 * at)?
        ];
        // SAFETY: these are the arguments that `thread.cu` declares; each buffer was checked to have the bytes of
        // `count` operations, and a kernel without digests or randomizers does not read them.
        unsafe { stream.launch(&kernel, Grid { blocks, threads, shared: 0 }, arguments)? };
        launches += 1;
    }
    Ok((stream.mark()?.since(&start)?, launches))
}

/// Bytes of a thread's working memory, for each of the eight sets.
pub(crate) fn bytes(device: &Device, module: &Module) -> Result<Vec<u32>, Error> {
    let (stream, out) = (device.stream()?, device.buffer::<u32>(8)?);
    let grid = Grid { blocks: 1, threads: 1, shared: 0 };
    // SAFETY: the kernel writes eight words, and the buffer has eight.
    unsafe { stream.launch(&module.kernel("thread_bytes")?, grid, args![&out])? };
    stream.get(&out, 0..8)
}
