//! A whole container on one thread: from a reader to a writer.
#![forbid(unsafe_code)]

use core::fmt;
use std::io::{self, Read, Write};

use zeroize::Zeroizing;

use super::{Decryptor, Encryptor, Error, HEADER, Header, Options, Secret, TAG};
use crate::backend::Engine;

/// Why a stream failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamError {
    /// The container has a fault.
    Container(Error),
    /// Reading failed.
    Read(io::Error),
    /// Writing failed.
    Write(io::Error),
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamError::Container(e) => e.fmt(f),
            StreamError::Read(e) => write!(f, "reading failed: {e}"),
            StreamError::Write(e) => write!(f, "writing failed: {e}"),
        }
    }
}

impl core::error::Error for StreamError {}

impl From<Error> for StreamError {
    fn from(e: Error) -> StreamError {
        StreamError::Container(e)
    }
}

/// Reads pieces of a fixed size, and finds out whether each is the last.
struct Pieces<R> {
    reader: R,
    /// The piece, and one byte of the next.
    buffer: Zeroizing<Vec<u8>>,
    size: usize,
    ahead: bool,
}

impl<R: Read> Pieces<R> {
    fn new(reader: R, size: usize) -> Pieces<R> {
        Pieces { reader, buffer: Zeroizing::new(vec![0; size + 1]), size, ahead: false }
    }

    /// Fills the buffer; its length and whether it is the last.
    fn fill(&mut self) -> Result<(usize, bool), StreamError> {
        let mut filled = 0;
        if self.ahead {
            self.buffer[0] = self.buffer[self.size];
            filled = 1;
        }
        filled += read_full(&mut self.reader, &mut self.buffer[filled..])?;
        self.ahead = filled > self.size;
        Ok((filled.min(self.size), !self.ahead))
    }
}

/// Reads until the buffer is full or the data ends.
fn read_full(reader: &mut impl Read, buffer: &mut [u8]) -> Result<usize, StreamError> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(StreamError::Read(e)),
        }
    }
    Ok(filled)
}

/// Makes a container from all bytes of `reader`. `salt` as for [`Encryptor::new`]: random, and new for each container.
///
/// # Errors
/// [`StreamError`]; the output is then not a whole container.
pub fn encrypt(
    secret: &Secret,
    options: Options,
    salt: [u8; 32],
    engine: Engine,
    reader: impl Read,
    mut writer: impl Write,
) -> Result<(), StreamError> {
    let encryptor = Encryptor::new(secret, options, salt, engine)?;
    writer.write_all(encryptor.header()).map_err(StreamError::Write)?;
    let mut pieces = Pieces::new(reader, encryptor.chunk());
    loop {
        let (length, last) = pieces.fill()?;
        for place in encryptor.places(1, last)? {
            let data = &mut pieces.buffer[..length];
            let tag = encryptor.seal(place, data)?;
            writer.write_all(data).and_then(|()| writer.write_all(&tag)).map_err(StreamError::Write)?;
        }
        if last {
            return writer.flush().map_err(StreamError::Write);
        }
    }
}

/// Opens a container: `writer` gets verified chunks and nothing else.
///
/// # Errors
/// [`StreamError`]. The chunks before the fault have been written: they are authentic, but incomplete.
pub fn decrypt(
    secret: &Secret,
    engine: Engine,
    mut reader: impl Read,
    mut writer: impl Write,
) -> Result<(), StreamError> {
    let mut header = [0; HEADER];
    let got = read_full(&mut reader, &mut header)?;
    let header = Header::parse(&header[..got])?;
    let decryptor = Decryptor::new(secret, &header, engine)?;
    let mut pieces = Pieces::new(reader, decryptor.chunk() + TAG);
    for chunk in 0.. {
        let (length, last) = pieces.fill()?;
        let plain = decryptor.open(chunk, last, &mut pieces.buffer[..length])?;
        writer.write_all(&pieces.buffer[..plain]).map_err(StreamError::Write)?;
        if last {
            break;
        }
    }
    writer.flush().map_err(StreamError::Write)
}
