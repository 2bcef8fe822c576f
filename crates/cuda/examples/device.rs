//! Lists the CUDA devices, tests the first, and sends bytes there and back.
//!
//! `cargo run -p lanework-cuda --example device`; with `--features emulated ... -- emulated`, on the emulated device.
#![forbid(unsafe_code)]

use lanework_cuda::{Device, devices, selftest};

fn open(emulated: bool) -> Result<Device, Box<dyn std::error::Error>> {
    if emulated {
        #[cfg(feature = "emulated")]
        return Ok(Device::emulated(lanework_cuda::Emulation::default()).0);
        #[cfg(not(feature = "emulated"))]
        return Err("this was built without the feature `emulated`".into());
    }
    for card in devices()? {
        println!("{card}");
    }
    Ok(Device::open(0)?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = open(std::env::args().nth(1).as_deref() == Some("emulated"))?;
    for row in selftest(&device)? {
        row.result.map_err(|why| format!("{}: {why}", row.what))?;
        println!("{}: right", row.what);
    }

    // A secret buffer is overwritten before it is freed.
    let (stream, buffer) = (device.stream()?, device.secret::<u8>(1024)?);
    let sent: Vec<u8> = (0..1024).map(|i| i as u8).collect();
    stream.put(&sent, &buffer, 0)?;
    if stream.get(&buffer, 0..1024)? != sent {
        return Err("other bytes came back".into());
    }
    println!("{} bytes there and back", sent.len());
    Ok(())
}
