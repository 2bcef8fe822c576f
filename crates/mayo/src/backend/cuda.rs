//! MAYO on a CUDA device.
#![forbid(unsafe_code)]

#[cfg(test)]
mod header;
