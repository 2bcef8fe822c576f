//! Where peers get their randomness: a cheap predictable stream, or whatever a caller plugs in.
//!
//! A peer left alone asks the operating system for every seed and salt, and a race would then measure
//! the system call as well. Each thread instead has its own SplitMix64 stream (Steele, Lea and Flood,
//! 2014): a counter and a mixing function, a few nanoseconds for the 24 to 40 bytes a peer takes.
//! It is **not** secure, on purpose, and starts from the same seed in every thread.
#![forbid(unsafe_code)]

use std::any::Any;
use std::cell::{Cell, RefCell};

/// The odd constant by which the counter advances: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A caller's generator: fills the whole slice.
pub type Source = Box<dyn FnMut(&mut [u8])>;

thread_local! {
    static COUNTER: Cell<u64> = const { Cell::new(0) };
    static SOURCE: RefCell<Option<Source>> = const { RefCell::new(None) };
    static PANIC: RefCell<Option<Box<dyn Any + Send>>> = const { RefCell::new(None) };
}

/// Makes peers on this thread draw from the stream that starts at `seed`.
pub fn seed_random(seed: u64) {
    SOURCE.with_borrow_mut(|source| *source = None);
    COUNTER.set(seed);
}

/// Makes peers on this thread draw from `source` until [`seed_random`] or another call of this.
///
/// For reproducing known answers, whose generator the caller brings. A panic inside `source` comes out
/// of the peer's method that drew from it.
pub fn set_random(source: Source) {
    SOURCE.with_borrow_mut(|slot| *slot = Some(source));
}

/// Fills `out` on behalf of a peer. Never panics, as it is called from foreign code.
pub(crate) fn fill(out: &mut [u8]) {
    // Taken out while it runs: a source may itself call a peer, which then draws from the stream.
    let taken = SOURCE.try_with(|source| source.try_borrow_mut().ok().and_then(|mut s| s.take()));
    let Ok(Some(mut source)) = taken else {
        return fill_from_stream(out);
    };
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| source(out))) {
        Ok(()) => {
            let _ = SOURCE.try_with(|slot| {
                if let Ok(mut slot) = slot.try_borrow_mut()
                    && slot.is_none()
                {
                    *slot = Some(source);
                }
            });
        }
        Err(payload) => {
            fill_from_stream(out);
            let _ = PANIC.try_with(|slot| {
                if let Ok(mut slot) = slot.try_borrow_mut() {
                    *slot = Some(payload);
                }
            });
        }
    }
}

/// Resumes a panic of the caller's source, now that the foreign code has returned.
pub(crate) fn resume_panic() {
    if let Some(payload) = PANIC.take() {
        std::panic::resume_unwind(payload);
    }
}

fn fill_from_stream(out: &mut [u8]) {
    // `try_with` only fails while the thread is being torn down; the constant start is as good then.
    let mut counter = COUNTER.try_with(Cell::get).unwrap_or(0);
    for chunk in out.chunks_mut(8) {
        counter = counter.wrapping_add(STEP);
        let mut word = counter;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
    }
    let _ = COUNTER.try_with(|slot| slot.set(counter));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(bytes: usize) -> Vec<u8> {
        let mut out = vec![0; bytes];
        fill(&mut out);
        out
    }

    #[test]
    fn the_stream_is_splitmix64() {
        // The first outputs of the reference generator from state 1234567.
        seed_random(1_234_567);
        let expected: [u64; 3] =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        for word in expected {
            assert_eq!(draw(8), word.to_le_bytes());
        }
    }

    #[test]
    fn a_seed_repeats_and_another_differs() {
        seed_random(7);
        let first = draw(45);
        assert_ne!(draw(45), first);
        seed_random(7);
        assert_eq!(draw(45), first);
        seed_random(8);
        assert_ne!(draw(45), first);
    }

    #[test]
    fn a_plugged_source_is_asked_and_can_be_unplugged() {
        let mut next = 0;
        set_random(Box::new(move |out| {
            for byte in out {
                next += 1;
                *byte = next;
            }
        }));
        assert_eq!(draw(3), [1, 2, 3]);
        assert_eq!(draw(2), [4, 5]);
        seed_random(0);
        assert_ne!(draw(2), [6, 7]);
    }

    #[test]
    fn a_panic_in_a_source_comes_out_later() {
        set_random(Box::new(|_| std::panic::panic_any("planted")));
        draw(4);
        let caught = std::panic::catch_unwind(resume_panic).expect_err("the panic goes on");
        assert_eq!(caught.downcast_ref::<&str>(), Some(&"planted"));
        resume_panic();
        seed_random(0);
    }
}
