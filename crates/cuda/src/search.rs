//! Searches freed memory for bytes, to find secrets that were not overwritten.
#![forbid(unsafe_code)]

use std::sync::Mutex;

use crate::device::Device;
use crate::error::Error;
use crate::memory::Buffer;

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Bytes of device memory searched.
    pub device_bytes: u64,
    /// Bytes of pinned memory searched.
    pub pinned_bytes: u64,
    /// Numbers of the needles that lie in device memory, in rising order.
    pub on_device: Vec<usize>,
    /// Numbers of those that lie in pinned memory, in rising order.
    pub pinned: Vec<usize>,
}

/// Device memory is taken in pieces of this size first, then in smaller ones between them.
const LARGEST: usize = 256 << 20;
const SMALLEST: usize = 64 << 10;
/// The most pieces; the rest of a fragmented memory is skipped.
const PIECES: usize = 1 << 14;
/// Bytes copied to the host at a time.
const STAGE: usize = 16 << 20;
/// Bytes of pinned memory to search.
const PINNED: usize = 256 << 20;
/// The most bytes of device memory to search: searching 80 GB would take a minute.
const DEVICE: u64 = 16 << 30;
/// A needle's words at every place that it can have to a word of memory.
const WORD: usize = 8;

/// Needles by the words that they contain at any alignment: aligned words are looked up, and matches are compared.
struct Needles<'a> {
    all: &'a [Vec<u8>],
    /// A word of a needle, the needle, and where in it the word lies.
    words: Vec<(u64, usize, usize)>,
    /// A bit for each value of a word's hash, which excludes nearly all words at once.
    seen: Vec<u64>,
}

fn hash(word: u64) -> usize {
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize
}

fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + WORD)?.try_into().ok()?))
}

impl<'a> Needles<'a> {
    fn new(all: &'a [Vec<u8>]) -> Result<Needles<'a>, Error> {
        let mut needles = Needles { all, words: Vec::new(), seen: vec![0; 1 << 10] };
        for (i, needle) in all.iter().enumerate() {
            if needle.len() < 2 * WORD {
                return Err(Error::Shape(format!("needle {i} has fewer than {} bytes", 2 * WORD)));
            }
            for at in 0..WORD {
                let Some(word) = word_at(needle, at) else { continue };
                needles.words.push((word, i, at));
                needles.seen[hash(word) / 64] |= 1 << (hash(word) % 64);
            }
        }
        needles.words.sort_unstable();
        Ok(needles)
    }

    /// Marks those that lie in `bytes`, which begin at a multiple of a word.
    fn look(&self, bytes: &[u8], found: &mut [bool]) {
        for (i, word) in bytes.chunks_exact(WORD).enumerate() {
            let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
            if self.seen[hash(word) / 64] >> (hash(word) % 64) & 1 == 0 {
                continue;
            }
            let first = self.words.partition_point(|w| w.0 < word);
            for (_, needle, at) in self.words[first..].iter().take_while(|w| w.0 == word) {
                let Some(start) = (i * WORD).checked_sub(*at) else { continue };
                found[*needle] |= bytes[start..].starts_with(&self.all[*needle]);
            }
        }
    }

    /// The same on all cores; each takes its part, and the bytes after it that a needle may reach.
    fn look_together(&self, bytes: &[u8], found: &Mutex<Vec<bool>>) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(16);
        let part = (bytes.len().div_ceil(threads).next_multiple_of(WORD)).max(1 << 20);
        let over = self.all.iter().map(Vec::len).max().unwrap_or(0) + WORD;
        std::thread::scope(|scope| {
            for start in (0..bytes.len()).step_by(part) {
                scope.spawn(move || {
                    let mut mine = vec![false; self.all.len()];
                    self.look(&bytes[start..bytes.len().min(start + part + over)], &mut mine);
                    if mine.contains(&true) {
                        let mut found = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        found.iter_mut().zip(mine).for_each(|(all, mine)| *all |= mine);
                    }
                });
            }
        });
    }
}

fn numbers(found: Mutex<Vec<bool>>) -> Vec<usize> {
    let found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    (0..found.len()).filter(|i| found[*i]).collect()
}

/// Takes nearly all free memory of the device, up to 16 GiB, and some pinned memory, with their old content, and searches them for
/// the needles of 16 bytes or more. All of it is released.
///
/// # Errors
/// [`Error::Shape`] for a shorter needle; the driver's error.
pub(crate) fn search(device: &Device, needles: &[Vec<u8>]) -> Result<Found, Error> {
    let wanted = Needles::new(needles)?;
    let mut result = Found::default();
    // Pinned memory first: copies of the device's bytes would overwrite remains there.
    let found = Mutex::new(vec![false; needles.len()]);
    let mut pinned = Vec::new();
    while result.pinned_bytes < PINNED as u64 {
        match device.pinned_as_it_is::<u8>(STAGE) {
            Ok(piece) => pinned.push(piece),
            Err(e) if e.is_memory() => break,
            Err(e) => return Err(e),
        }
        result.pinned_bytes += STAGE as u64;
    }
    for piece in &mut pinned {
        wanted.look_together(piece.read()?, &found);
    }
    drop(pinned);
    result.pinned = numbers(found);

    let mut stage = device.pinned::<u8>(STAGE)?;
    let stream = device.stream()?;
    let found = Mutex::new(vec![false; needles.len()]);
    let (mut pieces, mut size): (Vec<Buffer<u8>>, usize) = (Vec::new(), LARGEST);
    let mut taken = 0;
    while size >= SMALLEST && pieces.len() < PIECES && taken < DEVICE {
        match device.buffer::<u8>(size) {
            Ok(piece) => {
                taken += size as u64;
                pieces.push(piece);
            }
            Err(e) if e.is_memory() => size /= 2,
            Err(e) => return Err(e),
        }
    }
    for piece in &pieces {
        // A needle across the end of one part is whole in the next.
        let mut at = 0;
        while at < piece.len() {
            let end = piece.len().min(at + STAGE);
            stream.download(piece, at..end, &mut stage, 0)?;
            wanted.look_together(&stage.read()?[..end - at], &found);
            if end == piece.len() {
                break;
            }
            at = end - 4096;
        }
        result.device_bytes += piece.len() as u64;
    }
    result.on_device = numbers(found);
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_needle_is_found_at_every_place_and_a_part_of_one_is_none() {
        let needles: Vec<Vec<u8>> = vec![(1..=24).collect(), (101..=116).collect()];
        let wanted = Needles::new(&needles).unwrap();
        for place in 0..40 {
            let mut bytes = vec![0; 96];
            let mut found = [false; 2];
            bytes[place..place + 24].copy_from_slice(&needles[0]);
            bytes[place + 30..place + 45].copy_from_slice(&needles[1][..15]);
            wanted.look(&bytes, &mut found);
            assert_eq!(found, [true, false], "at {place}");
            bytes[place + 45] = needles[1][15];
            wanted.look(&bytes, &mut found);
            assert_eq!(found, [true, true], "at {place}");
        }
        assert!(Needles::new(&[vec![1; 15]]).is_err());
    }

    #[test]
    fn threads_find_what_lies_over_the_edges_of_their_parts() {
        let needles: Vec<Vec<u8>> = vec![(1..=40).collect()];
        let wanted = Needles::new(&needles).unwrap();
        for place in [0, (1 << 20) - 20, (2 << 20) - 1, (3 << 20) - 40] {
            let mut bytes = vec![0; 3 << 20];
            bytes[place..place + 40].copy_from_slice(&needles[0]);
            let found = Mutex::new(vec![false]);
            wanted.look_together(&bytes, &found);
            assert_eq!(numbers(found), [0], "at {place}");
        }
    }
}
