//! What every entry does first and last: the panic boundary, and the memory of its caller.
//!
//! An entry claims all buffers of its call in one step, before it looks at anything else. A claim checks them for NULL, for
//! lengths that no object has, and for overlaps; only then are they slices. An [`Output`] is zeroed when it is dropped, unless
//! the entry kept it: so an error or a panic anywhere leaves zeros.

use core::marker::PhantomData;
use core::mem::{align_of, size_of};
use core::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use inout::InOutBuf;
use lanework_cpu::Threads;
use lanework_cpu::memory::wipe;

use crate::status::lw_status;

/// An entry's own outcome.
pub(crate) type Answer<T> = Result<T, lw_status>;

/// A buffer to read: its address and bytes.
pub(crate) type In = (*const u8, usize);
/// A buffer to write.
pub(crate) type Out = (*mut u8, usize);

/// Runs an entry. A panic would be undefined behaviour in C; it becomes [`lw_status::Internal`].
pub(crate) fn guard(body: impl FnOnce() -> Answer<()>) -> lw_status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => lw_status::Ok,
        Ok(Err(status)) => status,
        Err(payload) => {
            // Dropping it could panic again.
            core::mem::forget(payload);
            lw_status::Internal
        }
    }
}

/// The number of threads of a batch.
pub(crate) fn threads(count: usize) -> Answer<Threads<'static>> {
    match count {
        1 => Ok(Threads::One),
        n if n <= Threads::MOST => Ok(Threads::Own(n)),
        _ => Err(lw_status::Parameter),
    }
}

fn aligned<T>(at: *const T) -> Answer<()> {
    if at.is_null() {
        return Err(lw_status::NullPointer);
    }
    if at.addr().is_multiple_of(align_of::<T>()) { Ok(()) } else { Err(lw_status::Misaligned) }
}

/// A handle that may be shared.
///
/// # Safety
/// Unless it is NULL or misaligned, `handle` points to a `T` that lives, and that nobody changes, for `'a`.
pub(crate) unsafe fn shared<'a, T>(handle: *const T) -> Answer<&'a T> {
    aligned(handle)?;
    // SAFETY: aligned and not NULL; the rest is promised.
    Ok(unsafe { &*handle })
}

/// A handle that one thread uses.
///
/// # Safety
/// Unless it is NULL or misaligned, `handle` points to a `T` that lives, and that nobody else uses, for `'a`.
pub(crate) unsafe fn exclusive<'a, T>(handle: *mut T) -> Answer<&'a mut T> {
    aligned(handle)?;
    // SAFETY: aligned and not NULL; the rest is promised.
    Ok(unsafe { &mut *handle })
}

/// Another reference to a handle of [`Place::share`].
///
/// # Safety
/// `handle` is NULL, misaligned, or of [`Place::share`] and not yet freed as often as it was made and referenced.
pub(crate) unsafe fn reference<T>(handle: *const T) -> lw_status {
    guard(|| {
        aligned(handle)?;
        // SAFETY: it came from an `Arc` that still has a reference.
        unsafe { Arc::increment_strong_count(handle) };
        Ok(())
    })
}

/// Gives a reference back.
///
/// # Safety
/// As for [`reference`].
pub(crate) unsafe fn release<T>(handle: *const T) {
    guard(|| {
        aligned(handle)?;
        // SAFETY: it came from an `Arc`, and this reference is the caller's.
        drop(unsafe { Arc::from_raw(handle) });
        Ok(())
    });
}

/// Frees a handle of [`Place::give`].
///
/// # Safety
/// `handle` is NULL, misaligned, or of [`Place::give`] and not yet freed.
pub(crate) unsafe fn free<T>(handle: *mut T) {
    guard(|| {
        aligned(handle)?;
        // SAFETY: it came from a `Box` that only the caller has.
        drop(unsafe { Box::from_raw(handle) });
        Ok(())
    });
}

/// Where a result goes that is not a buffer. It is zero, or NULL, until the entry has one.
pub(crate) struct Place<T>(*mut T);

/// A place for a result, which is set to `empty` at once.
///
/// # Safety
/// Unless it is NULL or misaligned, `at` may be written until the entry returns. The call has no buffers.
pub(crate) unsafe fn place<T>(at: *mut T, empty: T) -> Answer<Place<T>> {
    aligned(at)?;
    let place = Place(at);
    place.put(empty);
    Ok(place)
}

/// [`place`], and the buffers of the call as of [`claim`]: the place lies in none of them.
///
/// # Safety
/// As for [`claim`], and unless it is NULL or misaligned, `at` may be written until the entry returns.
#[allow(clippy::type_complexity, reason = "it is taken apart at once")]
pub(crate) unsafe fn place_and_claim<'a, T, const I: usize, const O: usize>(
    at: *mut T,
    empty: T,
    inputs: [In; I],
    outputs: [Out; O],
) -> Answer<(Place<T>, ([&'a [u8]; I], [Output<'a>; O]))> {
    // SAFETY: promised.
    let place = unsafe { place(at, empty) }?;
    let own = Region::new(at, 1, true)?;
    let apart = |at: *const u8, len| !Region::new(at, len, false).is_ok_and(|region| own.overlaps(&region));
    if !inputs.iter().all(|&(at, len)| apart(at, len)) || !outputs.iter().all(|&(at, len)| apart(at, len)) {
        for buffer in outputs {
            // SAFETY: the caller lends it for writing.
            unsafe { refuse(buffer) };
        }
        return Err(lw_status::Overlap);
    }
    // SAFETY: promised.
    Ok((place, unsafe { claim(inputs, outputs) }?))
}

impl<T> Place<T> {
    /// Writes the result.
    pub(crate) fn put(&self, value: T) {
        // SAFETY: `place` checked the address, and its caller promised that it may be written. What was there before is no
        // value of ours to drop.
        unsafe { self.0.write(value) }
    }
}

impl<T: Send + Sync> Place<*const T> {
    /// Hands out a counted handle, which any number of threads may use.
    pub(crate) fn share(&self, value: T) {
        self.put(Arc::into_raw(Arc::new(value)));
    }
}

impl<T: Send> Place<*mut T> {
    /// Hands out a handle for one thread at a time.
    pub(crate) fn give(&self, value: T) {
        self.put(Box::into_raw(Box::new(value)));
    }
}

/// A buffer as an address range.
#[derive(Clone, Copy)]
struct Region {
    start: usize,
    end: usize,
    written: bool,
}

impl Region {
    const EMPTY: Region = Region { start: 0, end: 0, written: false };

    fn new<T>(at: *const T, count: usize, written: bool) -> Answer<Region> {
        if count == 0 {
            return Ok(Region::EMPTY);
        }
        aligned(at)?;
        let bytes = count.checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok());
        let end = bytes.and_then(|bytes| at.addr().checked_add(bytes)).ok_or(lw_status::Length)?;
        Ok(Region { start: at.addr(), end, written })
    }

    fn overlaps(&self, other: &Region) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// Refuses regions of which a written one overlaps another.
fn disjoint(regions: &mut [Region]) -> Answer<()> {
    regions.sort_unstable_by_key(|region| region.start);
    let (mut any, mut written) = (0, 0);
    for region in regions.iter().filter(|region| region.start < region.end) {
        if region.start < if region.written { any } else { written } {
            return Err(lw_status::Overlap);
        }
        any = any.max(region.end);
        if region.written {
            written = written.max(region.end);
        }
    }
    Ok(())
}

/// The buffers of a batch, while they are collected.
pub(crate) struct Buffers {
    /// The batch's own arrays.
    arrays: Vec<Region>,
    regions: Vec<Region>,
    outputs: Vec<Out>,
    fault: Option<lw_status>,
}

impl Buffers {
    /// With the batch's own arrays.
    pub(crate) fn new<T>(jobs: &[T], statuses: &[lw_status]) -> Buffers {
        let regions = Vec::with_capacity(2 + 5 * jobs.len());
        let mut buffers = Buffers { arrays: Vec::new(), regions, outputs: Vec::new(), fault: None };
        buffers.add(jobs.as_ptr(), jobs.len(), false);
        buffers.add(statuses.as_ptr(), statuses.len(), true);
        buffers.arrays = buffers.regions.clone();
        buffers
    }

    fn add<T>(&mut self, at: *const T, count: usize, written: bool) {
        match Region::new(at, count, written) {
            Ok(region) => self.regions.push(region),
            Err(fault) => self.fault = self.fault.or(Some(fault)),
        }
    }

    /// Notes a buffer that is read.
    pub(crate) fn read(&mut self, at: *const u8, len: usize) {
        self.add(at, len, false);
    }

    /// Notes a buffer that is written.
    pub(crate) fn write(&mut self, at: *mut u8, len: usize) {
        self.add(at, len, true);
        self.outputs.push((at, len));
    }

    /// Checks them all. If one is refused, those that are written are zeroed, except where the batch's own arrays lie.
    ///
    /// # Safety
    /// Those that are written may be, unless NULL or longer than an object.
    pub(crate) unsafe fn claim(mut self) -> Answer<()> {
        let answer = self.fault.map_or_else(|| disjoint(&mut self.regions), Err);
        if answer.is_err() {
            let apart = |&(at, len): &Out| {
                Region::new(at, len, true)
                    .is_ok_and(|region| !self.arrays.iter().any(|array| array.overlaps(&region)))
            };
            for buffer in self.outputs.into_iter().filter(apart) {
                // SAFETY: promised, and the batch's slices of jobs and statuses lie elsewhere.
                unsafe { refuse(buffer) };
            }
        }
        answer
    }
}

/// The bytes of a buffer that was checked.
///
/// # Safety
/// [`Region::new`] accepted `buffer`, [`disjoint`] found nothing that writes it, and it may be read for `'a`.
pub(crate) unsafe fn bytes<'a>((at, len): In) -> &'a [u8] {
    // SAFETY: not NULL unless empty, no longer than an object; the rest is promised.
    if len == 0 { &[] } else { unsafe { core::slice::from_raw_parts(at, len) } }
}

/// A buffer of the caller that the entry writes.
pub(crate) struct Output<'a> {
    bytes: &'a mut [u8],
    kept: bool,
}

impl Output<'_> {
    /// # Safety
    /// As for [`bytes`], and nothing else reads it.
    pub(crate) unsafe fn new((at, len): Out) -> Self {
        // SAFETY: not NULL unless empty, no longer than an object; the rest is promised.
        let bytes = if len == 0 { &mut [][..] } else { unsafe { core::slice::from_raw_parts_mut(at, len) } };
        Output { bytes, kept: false }
    }

    /// Leaves what the entry wrote.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }

    /// Takes `bytes`, which must fill it.
    pub(crate) fn fill(self, bytes: &[u8]) -> Answer<()> {
        if self.bytes.len() != bytes.len() {
            return Err(lw_status::Length);
        }
        self.bytes.copy_from_slice(bytes);
        self.keep();
        Ok(())
    }

    /// Takes `bytes` of a length that the caller learns, and must have room for. NULL with no room asks for the length.
    pub(crate) fn fill_some(self, bytes: &[u8], length: &Place<usize>) -> Answer<()> {
        length.put(bytes.len());
        let room = self.bytes.get_mut(..bytes.len()).ok_or(lw_status::Length)?;
        room.copy_from_slice(bytes);
        wipe(&mut self.bytes[bytes.len()..]);
        self.keep();
        Ok(())
    }
}

impl Deref for Output<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl DerefMut for Output<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes
    }
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        if !self.kept {
            wipe(self.bytes);
        }
    }
}

/// Data from one buffer into another, or in place.
pub(crate) struct Data<'a> {
    input: *const u8,
    output: *mut u8,
    len: usize,
    kept: bool,
    life: PhantomData<&'a mut [u8]>,
}

impl Data<'_> {
    /// For the crates' own calls.
    pub(crate) fn buffers(&mut self) -> InOutBuf<'_, '_, u8> {
        if self.len == 0 {
            return InOutBuf::from(&mut [][..]);
        }
        // SAFETY: `claim_data` checked both for NULL and length; they are the same or do not overlap, and nothing else reads or
        // writes the output for as long as this lives.
        unsafe { InOutBuf::from_raw(self.input, self.output, self.len) }
    }

    /// Leaves what the entry wrote.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Data<'_> {
    fn drop(&mut self) {
        if !self.kept && self.len > 0 {
            // SAFETY: as for `buffers`, of which none is left.
            wipe(unsafe { core::slice::from_raw_parts_mut(self.output, self.len) });
        }
    }
}

/// Zeroes what may be written although the call is refused.
///
/// # Safety
/// The buffer may be written, unless it is NULL or longer than an object can be.
unsafe fn refuse((at, len): Out) {
    if !at.is_null() && isize::try_from(len).is_ok() {
        // SAFETY: promised.
        unsafe { at.write_bytes(0, len) };
    }
}

/// The most buffers of one call.
const MOST: usize = 10;

/// Claims the buffers of a call: those that are read, and those that are written.
///
/// # Safety
/// Every buffer may be read, or written, for `'a`, unless its address is NULL or its length is more than any object has.
pub(crate) unsafe fn claim<'a, const I: usize, const O: usize>(
    inputs: [In; I],
    outputs: [Out; O],
) -> Answer<([&'a [u8]; I], [Output<'a>; O])> {
    // SAFETY: promised; empty data is always allowed.
    let (_, inputs, outputs) =
        unsafe { claim_data((core::ptr::null(), core::ptr::null_mut(), 0), inputs, outputs)? };
    Ok((inputs, outputs))
}

/// [`claim`] with data of `.2` bytes that is read at `.0` and written at `.1`, which may be the same.
///
/// # Safety
/// As for [`claim`].
#[allow(clippy::type_complexity, reason = "it is taken apart at once")]
pub(crate) unsafe fn claim_data<'a, const I: usize, const O: usize>(
    (input, output, len): (*const u8, *mut u8, usize),
    inputs: [In; I],
    outputs: [Out; O],
) -> Answer<(Data<'a>, [&'a [u8]; I], [Output<'a>; O])> {
    const { assert!(I + O + 2 <= MOST) };
    let check = || -> Answer<()> {
        let mut regions = [Region::EMPTY; MOST];
        for (region, &(at, len)) in regions.iter_mut().zip(&inputs) {
            *region = Region::new(at, len, false)?;
        }
        for (region, &(at, len)) in regions[I..].iter_mut().zip(&outputs) {
            *region = Region::new(at, len, true)?;
        }
        regions[I + O] = Region::new(output, len, true)?;
        let whole = Region::new(input, len, false)?;
        if !core::ptr::eq(input, output) {
            regions[I + O + 1] = whole;
        }
        disjoint(&mut regions[..I + O + 2])
    };
    if let Err(status) = check() {
        for buffer in outputs.into_iter().chain([(output, len)]) {
            // SAFETY: the caller lends it for writing.
            unsafe { refuse(buffer) };
        }
        return Err(status);
    }
    let data = Data { input, output, len, kept: false, life: PhantomData };
    // SAFETY: checked above.
    Ok((
        data,
        inputs.map(|buffer| unsafe { bytes(buffer) }),
        outputs.map(|buffer| unsafe { Output::new(buffer) }),
    ))
}

/// Runs a batch of `count` jobs. `body` sets the statuses of jobs. What it returns as an error is the status of all jobs. The
/// answer is the first status that is not OK.
///
/// Nothing is written where the statuses cannot be, would overwrite jobs, or are more than an array of jobs has.
///
/// # Safety
/// As for [`claim`], for `count` jobs that are read and `count` statuses that are written.
pub(crate) unsafe fn batch<T>(
    jobs: *const T,
    count: usize,
    statuses: *mut lw_status,
    body: impl FnOnce(&[T], &mut [lw_status]) -> Answer<()>,
) -> lw_status {
    let written = match Region::new(statuses, count, true) {
        Ok(region) => region,
        Err(status) => return status,
    };
    if count == 0 {
        return lw_status::Ok;
    }
    let arrays = Region::new(jobs, count, false).and_then(|read| disjoint(&mut [read, written]));
    if let Err(status @ (lw_status::Overlap | lw_status::Length)) = arrays {
        return status;
    }
    // SAFETY: checked, and promised to be writable.
    unsafe {
        for i in 0..count {
            statuses.add(i).write(lw_status::Internal);
        }
    }
    // SAFETY: all of them were just written.
    let statuses = unsafe { core::slice::from_raw_parts_mut(statuses, count) };
    let answer = guard(|| {
        arrays?;
        // SAFETY: checked for NULL, alignment, length and the statuses; the rest is promised.
        body(unsafe { core::slice::from_raw_parts(jobs, count) }, statuses)
    });
    if answer != lw_status::Ok {
        statuses.fill(answer);
    }
    statuses.iter().copied().find(|&status| status != lw_status::Ok).unwrap_or(lw_status::Ok)
}

/// Statuses of a batch from its items' outcomes. Only good ones keep what was written for them.
pub(crate) fn settle<E: Into<lw_status>, const N: usize>(
    statuses: &mut [lw_status],
    outcomes: Vec<Result<(), E>>,
    places: Vec<[Output<'_>; N]>,
) {
    for ((status, outcome), places) in statuses.iter_mut().zip(outcomes).zip(places) {
        *status = outcome.map_or_else(Into::into, |()| lw_status::Ok);
        if *status == lw_status::Ok {
            places.into_iter().for_each(Output::keep);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_status_and_leaves_zeros() {
        let mut out = [7; 4];
        let at = out.as_mut_ptr();
        let status = guard(|| {
            // SAFETY: a live array.
            let (_, [mut out]) = unsafe { claim([], [(at, 4)]) }?;
            out.fill_some_for_test();
            panic!("planted");
        });
        assert_eq!((status, out), (lw_status::Internal, [0; 4]));
    }

    impl Output<'_> {
        fn fill_some_for_test(&mut self) {
            self.bytes.fill(9);
        }
    }

    #[test]
    fn overlaps_are_found_and_zeroed() {
        let mut memory = [5u8; 64];
        let base = memory.as_mut_ptr();
        let at = |offset: usize| base.wrapping_add(offset);
        // SAFETY: all inside `memory`.
        let claim = |input: (usize, usize), output: (usize, usize)| unsafe {
            claim([(at(input.0).cast_const(), input.1)], [(at(output.0), output.1)])
                .map(|(_, [out])| out.keep())
                .err()
        };
        assert_eq!(claim((0, 8), (8, 8)), None);
        assert_eq!(claim((8, 8), (0, 8)), None);
        assert_eq!(claim((0, 0), (0, 8)), None);
        for (input, output) in
            [((0, 9), (8, 8)), ((8, 8), (8, 8)), ((0, 32), (8, 8)), ((9, 1), (8, 8)), ((15, 8), (8, 8))]
        {
            assert_eq!(claim(input, output), Some(lw_status::Overlap), "{input:?} {output:?}");
        }
        assert_eq!((memory[7], &memory[8..16], memory[16]), (5, &[0; 8][..], 5));
    }

    #[test]
    fn null_and_lengths_of_no_object_are_refused() {
        let byte = 0u8;
        let null = core::ptr::null::<u8>();
        for (buffer, status) in
            [((null, 1), lw_status::NullPointer), ((&raw const byte, usize::MAX), lw_status::Length)]
        {
            // SAFETY: refused before anything is read.
            let refused = unsafe { claim([buffer], []) }.err();
            assert_eq!(refused, Some(status));
        }
        // SAFETY: no bytes.
        assert!(unsafe { claim([(null, 0)], [(core::ptr::null_mut(), 0)]) }.is_ok());
        let misaligned = core::ptr::without_provenance::<u64>(12);
        // SAFETY: refused before anything is read.
        let refused = unsafe { shared(misaligned) }.err();
        assert_eq!(refused, Some(lw_status::Misaligned));
    }
}
