//! A stream through several threads, in constant memory.
//!
//! Every thread takes whole jobs through a buffer of its own: it reads the next job, works on it, and writes the result when it
//! is that job's turn. So one thread reads while another computes and a third writes, a job stays in one core's cache,
//! and no queue can grow.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use indicatif::ProgressBar;
use lanework_cpu::memory::{Block, bytes_mut, wipe_blocks};
use lanework_study::Failure;

use crate::files::{Sink, Source};

/// The most bytes that one job reads: what a core's second-level cache holds.
pub(crate) const JOB: usize = 512 * 1024;

/// The most threads: their buffers together stay within what the command may use.
const MOST_THREADS: usize = 64;

/// How a job lies in its buffer: in pieces, each with room for its output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Bytes of a piece as read.
    pub(crate) read: usize,
    /// Bytes of a piece as written.
    pub(crate) write: usize,
    /// Pieces of a job.
    pub(crate) pieces: usize,
}

impl Layout {
    /// One piece, whose length does not change, except for up to `tail` bytes at the stream's end.
    pub(crate) fn whole(tail: usize) -> Layout {
        Layout { read: JOB, write: JOB + tail, pieces: 1 }
    }

    /// The distance from piece to piece: each begins on a cache line.
    pub(crate) fn stride(&self) -> usize {
        self.read.max(self.write).next_multiple_of(64)
    }

    /// Bytes that a job reads.
    fn job(&self) -> usize {
        self.read * self.pieces
    }

    /// The part of `buffer` that holds the bytes from `from` to `to`, of pieces of `size` bytes, piece by piece.
    fn ranges(&self, size: usize, from: usize, to: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let stride = self.stride();
        (from / size..to.div_ceil(size)).map(move |piece| {
            let at = piece * size;
            (piece * stride + from.saturating_sub(at), piece * stride + (to - at).min(size))
        })
    }
}

/// A stretch of the stream being processed.
pub(crate) struct Job<'a> {
    /// Its number, from 0.
    pub(crate) index: u64,
    /// Bytes read. 0 only where the stream is empty.
    pub(crate) length: usize,
    /// Whether the stream ends here.
    pub(crate) last: bool,
    /// The pieces.
    pub(crate) buffer: &'a mut [u8],
    /// Bytes to write, in pieces; they are written even if the job then fails.
    pub(crate) done: usize,
}

/// How many bytes went in and out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) read: u64,
    pub(crate) written: u64,
}

/// Whether several jobs may be worked on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Yes.
    Any,
    /// One after the other.
    InTurn,
}

/// Lets jobs through a gate in order.
struct Turn {
    /// The next job's number; `None` when no further job may pass.
    next: Mutex<Option<u64>>,
    changed: Condvar,
}

impl Turn {
    fn new() -> Turn {
        Turn { next: Mutex::new(Some(0)), changed: Condvar::new() }
    }

    /// Waits for the turn of this job; `false` if it will never come.
    fn wait(&self, index: u64) -> bool {
        let mut next = locked(&self.next);
        while next.is_some_and(|n| n < index) {
            next = self.changed.wait(next).unwrap_or_else(PoisonError::into_inner);
        }
        next.is_some()
    }

    /// Lets the next job pass.
    fn pass(&self) {
        let mut next = locked(&self.next);
        *next = next.map(|n| n + 1);
        self.changed.notify_all();
    }

    /// Lets no further job pass.
    fn end(&self) {
        *locked(&self.next) = None;
        self.changed.notify_all();
    }
}

/// A poisoned lock is as good as another here: the panic ends the command anyway.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends both turns if a thread panics, so that the others do not wait for it for ever.
struct EndOnPanic<'a>(&'a Turn, &'a Turn);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end();
            self.1.end();
        }
    }
}

/// The reading end.
struct Input<'a, A> {
    file: &'a mut File,
    /// The first byte of the next job: whether there is one decides whether this job is the last.
    ahead: Option<u8>,
    next: u64,
    ended: bool,
    assign: A,
}

impl<A> Input<'_, A> {
    /// Fills a job; returns the number of bytes, and whether the stream ends with them.
    fn fill(&mut self, layout: &Layout, buffer: &mut [u8]) -> io::Result<(usize, bool)> {
        let (want, stride) = (layout.job(), layout.stride());
        let mut filled = 0;
        if let Some(byte) = self.ahead.take() {
            buffer[0] = byte;
            filled = 1;
        }
        let mut ahead = [0];
        loop {
            let first = filled / layout.read;
            let mut slices: Vec<IoSliceMut<'_>> = buffer[first * stride..]
                .chunks_mut(stride)
                .take(layout.pieces - first)
                .enumerate()
                .map(|(i, piece)| {
                    IoSliceMut::new(&mut piece[if i == 0 { filled % layout.read } else { 0 }..layout.read])
                })
                .collect();
            slices.push(IoSliceMut::new(&mut ahead));
            match self.file.read_vectored(&mut slices) {
                Ok(0) => return Ok((filled, true)),
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
            if filled > want {
                self.ahead = Some(ahead[0]);
                return Ok((want, false));
            }
        }
    }
}

/// Writes the first `length` bytes of the pieces.
fn write(file: &mut impl Write, layout: &Layout, buffer: &[u8], length: usize) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> =
        layout.ranges(layout.write, 0, length).map(|(from, to)| IoSlice::new(&buffer[from..to])).collect();
    let mut rest = slices.as_mut_slice();
    while !rest.is_empty() {
        match file.write_vectored(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => IoSlice::advance_slices(&mut rest, n),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Takes `source` job by job through `work` into `sink`, on `threads` threads. `assign` is called for each job in order, before
/// any work on it, with the bytes read and whether they are the last; its result goes to `work`.
///
/// # Errors
/// The first failure in the stream's order; everything before it is written.
pub(crate) fn run<T: Send>(
    source: &mut Source,
    sink: &mut Sink<'_>,
    layout: Layout,
    (threads, order): (usize, Order),
    progress: &ProgressBar,
    assign: impl FnMut(usize, bool) -> Result<T, Failure> + Send,
    work: impl Fn(&mut Job<'_>, T) -> Result<(), Failure> + Sync,
) -> Result<Totals, Failure> {
    let name = source.name().to_owned();
    let unreadable = |e: io::Error| Failure::input(format!("{name}: cannot be read: {e}"));
    let input = Mutex::new(Input { file: source.file(), ahead: None, next: 0, ended: false, assign });
    let output = Mutex::new((sink, Totals::default(), None));
    let (working, writing) = (Turn::new(), Turn::new());
    let thread = || {
        let _guard = EndOnPanic(&working, &writing);
        let mut blocks = vec![Block::ZERO; layout.stride() * layout.pieces / 64];
        loop {
            let buffer = bytes_mut(&mut blocks);
            let mut reading = locked(&input);
            if reading.ended {
                break;
            }
            let index = reading.next;
            reading.next += 1;
            let filled = reading.fill(&layout, buffer).map_err(unreadable);
            let assigned =
                filled.and_then(|(length, last)| Ok((length, last, (reading.assign)(length, last)?)));
            reading.ended = !matches!(assigned, Ok((_, false, _)));
            drop(reading);
            let mut job = Job { index, length: 0, last: true, buffer, done: 0 };
            let outcome = assigned.and_then(|(length, last, ticket)| {
                (job.length, job.last) = (length, last);
                if order == Order::Any {
                    return work(&mut job, ticket);
                }
                // A turn that will never come means that an earlier job has failed; the next gate says so too.
                if working.wait(index) {
                    work(&mut job, ticket)?;
                    working.pass();
                }
                Ok(())
            });
            if !writing.wait(index) {
                break;
            }
            let mut writer = locked(&output);
            let (sink, totals, failure) = &mut *writer;
            let written = write(*sink, &layout, job.buffer, job.done).map_err(|e| sink.failed(&e));
            match written.and(outcome) {
                Ok(()) => {
                    totals.read += job.length as u64;
                    totals.written += job.done as u64;
                    progress.inc(job.length as u64);
                    drop(writer);
                    writing.pass();
                }
                Err(e) => {
                    *failure = Some(e);
                    locked(&input).ended = true;
                    working.end();
                    writing.end();
                    break;
                }
            }
        }
        // They held plaintext.
        wipe_blocks(&mut blocks);
    };
    std::thread::scope(|scope| {
        // The calling thread is one of them.
        for _ in 1..threads.clamp(1, MOST_THREADS) {
            scope.spawn(thread);
        }
        thread();
    });
    progress.finish_and_clear();
    let (_, totals, failure) = output.into_inner().unwrap_or_else(PoisonError::into_inner);
    failure.map_or(Ok(totals), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of 100 that become pieces of 103, on `threads` threads.
    fn through(
        data: &[u8],
        threads: usize,
        order: Order,
        fail: Option<u64>,
    ) -> (Vec<u8>, Result<Totals, Failure>) {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        std::fs::write(&from, data).unwrap();
        std::fs::write(&to, b"").unwrap();
        let layout = Layout { read: 100, write: 103, pieces: 4 };
        let mut source = Source::open(&from).unwrap();
        let mut sink = Sink::create(&to, crate::files::Access::Public, true).unwrap();
        let mut expected = 0;
        let seen = Mutex::new(0);
        let totals = run(
            &mut source,
            &mut sink,
            layout,
            (threads, order),
            &ProgressBar::hidden(),
            move |_, _| {
                expected += 1;
                Ok(expected - 1)
            },
            |job, ticket: u64| {
                assert_eq!(ticket, job.index);
                if order == Order::InTurn {
                    let mut seen = seen.lock().unwrap();
                    assert_eq!(*seen, job.index);
                    *seen += 1;
                }
                let pieces = job.length.div_ceil(100);
                for (i, piece) in job.buffer.chunks_mut(layout.stride()).take(pieces).enumerate() {
                    let length = (job.length - i * 100).min(100);
                    piece[length..length + 3].copy_from_slice(b"...");
                    job.done += length + 3;
                    if fail == Some(job.index) && i == 1 {
                        return Err(Failure::refused("planted"));
                    }
                }
                Ok(())
            },
        );
        sink.commit(true).unwrap();
        (std::fs::read(&to).unwrap(), totals)
    }

    fn expected(data: &[u8]) -> Vec<u8> {
        data.chunks(100).flat_map(|c| [c, b"..."].concat()).collect()
    }

    #[test]
    fn every_length_and_thread_count_gives_the_same_bytes() {
        for length in [0, 1, 99, 100, 101, 399, 400, 401, 5000, 12_345] {
            let data: Vec<u8> = (0..length).map(|i| (i * 7 + i / 256) as u8).collect();
            for (threads, order) in [(1, Order::Any), (2, Order::Any), (5, Order::InTurn), (9, Order::Any)] {
                let (out, totals) = through(&data, threads, order, None);
                let totals = totals.unwrap();
                assert!(out == expected(&data), "{length} {threads}");
                assert_eq!((totals.read, totals.written), (length as u64, out.len() as u64));
            }
        }
    }

    #[test]
    fn a_failure_lets_through_what_comes_before_it_and_nothing_after() {
        let data: Vec<u8> = (0..10_000).map(|i| i as u8).collect();
        for (threads, order) in [(1, Order::Any), (4, Order::Any), (4, Order::InTurn)] {
            let (out, totals) = through(&data, threads, order, Some(7));
            assert!(totals.is_err());
            // Seven jobs of four pieces, and two pieces of the job that failed.
            assert!(out == expected(&data)[..30 * 103], "{threads} {order:?} {}", out.len());
        }
    }

    #[test]
    fn a_panic_ends_all_threads() {
        let caught = std::panic::catch_unwind(|| {
            let dir = tempfile::tempdir().unwrap();
            let from = dir.path().join("from");
            std::fs::write(&from, vec![0; 10_000]).unwrap();
            let to = dir.path().join("to");
            let mut sink = Sink::create(&to, crate::files::Access::Public, true).unwrap();
            let layout = Layout { read: 100, write: 100, pieces: 1 };
            let bar = ProgressBar::hidden();
            let mut source = Source::open(&from).unwrap();
            let _ = run(
                &mut source,
                &mut sink,
                layout,
                (4, Order::InTurn),
                &bar,
                |_, _| Ok(()),
                |job, ()| {
                    assert!(job.index != 5, "planted");
                    Ok(())
                },
            );
        });
        assert!(caught.is_err());
    }
}
