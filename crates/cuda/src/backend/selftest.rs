//! Whether a device, its driver and this crate together compute what a CPU computes: small kernels without secrets.

use crate::args;
use crate::device::Device;
use crate::error::Error;
use crate::module::Image;
use crate::stream::{Grid, Stream};

/// The self-test's program.
#[cfg(not(feature = "emulated"))]
static IMAGE: Image = Image::new("lanework_selftest", include_bytes!("selftest.fatbin"));
#[cfg(feature = "emulated")]
static IMAGE: Image = {
    // SAFETY: the build script compiles `selftest.cu`, which defines it.
    let kernels = unsafe { &lanework_selftest };
    Image::new("lanework_selftest", include_bytes!("selftest.fatbin")).with_emulated(kernels)
};

#[cfg(feature = "emulated")]
unsafe extern "C" {
    static lanework_selftest: crate::Kernels;
}

/// One test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What was tested.
    pub what: &'static str,
    /// Whether the device agrees with the CPU, else the first difference.
    pub result: Result<(), String>,
}

/// Runs the self-test: copies, a ragged grid, shared memory, warp collectives, products of bits. Each answer is computed on the
/// CPU as well.
///
/// # Errors
/// The device's fault. A wrong answer is a row, not an error.
pub fn selftest(device: &Device) -> Result<Vec<Report>, Error> {
    let stream = device.stream()?;
    Ok(vec![
        Report { what: "copies there and back", result: copies(device, &stream)? },
        Report { what: "a ragged grid", result: map(device, &stream)? },
        Report { what: "shared memory and warps", result: warps(device, &stream)? },
        Report { what: "products of bits", result: bits(device, &stream)? },
    ])
}

fn scramble(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

fn words(count: u32, seed: u32) -> Vec<u32> {
    (0..count).map(|i| scramble(i.wrapping_mul(0x9e37_79b9) ^ seed)).collect()
}

fn same(got: &[u32], want: &[u32]) -> Result<(), String> {
    if got.len() != want.len() {
        return Err(format!("got {} words, expected {}", got.len(), want.len()));
    }
    match got.iter().zip(want).position(|(got, want)| got != want) {
        None => Ok(()),
        Some(i) => Err(format!("word {i} is {:08x}, expected {:08x}", got[i], want[i])),
    }
}

fn copies(device: &Device, stream: &Stream) -> Result<Result<(), String>, Error> {
    let values = words(10_007, 1);
    let (one, two) = (device.secret::<u32>(values.len())?, device.buffer::<u32>(values.len())?);
    stream.put(&values, &one, 0)?;
    stream.copy(&one, 1..values.len(), &two, 0)?;
    stream.copy(&one, 0..1, &two, values.len() - 1)?;
    stream.zero(&two, 3..5)?;
    let mut want = values;
    want.rotate_left(1);
    want[3..5].fill(0);
    Ok(same(&stream.get(&two, 0..want.len())?, &want))
}

fn map(device: &Device, stream: &Stream) -> Result<Result<(), String>, Error> {
    let values = words(1_000, 2);
    let (input, output) = (device.buffer::<u32>(values.len())?, device.buffer::<u32>(values.len())?);
    stream.put(&values, &input, 0)?;
    let kernel = device.module(&IMAGE)?.kernel("lanework_map")?;
    let grid = Grid { blocks: 8, threads: 128, shared: 0 };
    // SAFETY: these are its arguments, and both buffers have the 1,000 words of its length argument.
    unsafe { stream.launch(&kernel, grid, args![&input, &output, 1_000u32, 7u32])? };
    let want: Vec<u32> =
        (0..).zip(&values).map(|(i, v): (u32, &u32)| scramble(v.wrapping_add(i).wrapping_add(7))).collect();
    Ok(same(&stream.get(&output, 0..want.len())?, &want))
}

/// The expected output of `lanework_warps` for a block's 128 words.
fn warps_on_cpu(words: &[u32]) -> Vec<u32> {
    let mut out = Vec::new();
    for warp in 0..4 {
        let v: Vec<u32> = (0..32).map(|lane| words[127 - (32 * warp + lane)]).collect();
        let ballot = (0..32).fold(0, |b, lane| b | (v[lane] & 1) << lane);
        let or = v.iter().fold(0, |or, v| or | v & 0x00ff_00ff);
        let xor = v.iter().fold(0, |xor, v| xor ^ v);
        for lane in 0..32 {
            let r = v[lane ^ 5] ^ (ballot << 1) ^ or ^ scramble(xor);
            let both = u64::from(r) << 32 | u64::from(v[lane]);
            let byte = |i: u32| ((both >> (8 * i)) & 0xff) as u32;
            // Selectors 1, 4, 5, 2 from the lowest byte on: those of 0x2541.
            let permuted = byte(1) | byte(4) << 8 | byte(5) << 16 | byte(2) << 24;
            out.push(r ^ v[lane] ^ permuted);
        }
    }
    out
}

fn warps(device: &Device, stream: &Stream) -> Result<Result<(), String>, Error> {
    let values = words(5 * 128, 3);
    let (input, output) = (device.buffer::<u32>(values.len())?, device.buffer::<u32>(values.len())?);
    stream.put(&values, &input, 0)?;
    let kernel = device.module(&IMAGE)?.kernel("lanework_warps")?;
    let grid = Grid { blocks: 5, threads: 128, shared: 512 };
    // SAFETY: these are its arguments, and both buffers have 128 words for every block.
    unsafe { stream.launch(&kernel, grid, args![&input, &output])? };
    let want: Vec<u32> = values.chunks(128).flat_map(warps_on_cpu).collect();
    Ok(same(&stream.get(&output, 0..want.len())?, &want))
}

fn bits(device: &Device, stream: &Stream) -> Result<Result<(), String>, Error> {
    let (left, right) = (words(16 * 8, 4), words(8 * 8, 5));
    let (a, b, output) =
        (device.buffer::<u32>(left.len())?, device.buffer::<u32>(right.len())?, device.buffer::<u32>(128)?);
    stream.put(&left, &a, 0)?;
    stream.put(&right, &b, 0)?;
    let kernel = device.module(&IMAGE)?.kernel("lanework_bits")?;
    // SAFETY: these are its arguments, of 16 and 8 times 8 words, and 16 times 8 for the sums.
    unsafe { stream.launch(&kernel, Grid { blocks: 1, threads: 32, shared: 0 }, args![&a, &b, &output])? };
    let want: Vec<u32> = left
        .chunks(8)
        .flat_map(|row| {
            right.chunks(8).map(|column| row.iter().zip(column).map(|(a, b)| (a & b).count_ones()).sum())
        })
        .collect();
    Ok(same(&stream.get(&output, 0..128)?, &want))
}
