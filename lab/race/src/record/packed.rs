//! Samples as files hold them: their decimal text, compressed.
//!
//! The text is packed, not the binary numbers, so that unpacking gives digit for digit what `--json` prints, and needs
//! only zlib and Base64. zlib's checksum reveals a damaged file.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::io::{Read, Write};

use base64ct::{Base64, Encoding};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{PACKED, RecordError, SCHEMA, gzip};

/// The lists whose entries hold samples, and the fields that hold them.
const LISTS: [&str; 2] = ["results", "controls"];
const FIELDS: [&str; 2] = ["samples", "baseline_samples"];

/// Samples, packed.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Packed {
    /// How many there are.
    count: usize,
    /// Base64 of a zlib stream (RFC 1950) of the numbers in JSON's decimal notation, separated by commas.
    zlib: String,
}

/// Calls `change` for every list of samples in a record, with the name of its place.
fn each(
    record: &mut Value,
    mut change: impl FnMut(&str, &mut Value) -> Result<(), RecordError>,
) -> Result<(), RecordError> {
    for list in LISTS {
        let Some(entries) = record.get_mut(list).and_then(Value::as_array_mut) else { continue };
        for (i, entry) in entries.iter_mut().enumerate() {
            for field in FIELDS {
                // A missing field is reported when the record is read as a whole.
                if let Some(samples) = entry.get_mut(field) {
                    change(&format!("{list}[{i}].{field}"), samples)?;
                }
            }
        }
    }
    Ok(())
}

/// Packs arrays of numbers.
pub(super) fn pack(record: &mut Value) -> Result<(), RecordError> {
    each(record, |_, samples| {
        let numbers = samples.as_array().map(Vec::as_slice).unwrap_or_default();
        let mut text = String::new();
        for (i, number) in numbers.iter().enumerate() {
            // Writing into a string cannot fail.
            let _ = write!(text, "{}{number}", if i == 0 { "" } else { "," });
        }
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        let io = |e: std::io::Error| RecordError::Malformed(serde_json::Error::io(e));
        zlib.write_all(text.as_bytes()).map_err(io)?;
        let zlib = Base64::encode_string(&zlib.finish().map_err(io)?);
        *samples =
            serde_json::to_value(Packed { count: numbers.len(), zlib }).map_err(RecordError::Malformed)?;
        Ok(())
    })?;
    record["schema"] = PACKED.into();
    Ok(())
}

/// Unpacks samples into arrays of numbers. All lists together hold at most as much text as a record: a small file must not
/// unpack to a large one.
pub(super) fn unpack(record: &mut Value) -> Result<(), RecordError> {
    let mut left = gzip::LIMIT;
    each(record, |place, samples| {
        let wrong = |why: String| RecordError::Packed { place: place.to_owned(), why };
        let packed: Packed = serde_json::from_value(samples.take()).map_err(|e| wrong(e.to_string()))?;
        let bytes = Base64::decode_vec(&packed.zlib).map_err(|e| wrong(e.to_string()))?;
        let mut text = String::new();
        let mut stream = ZlibDecoder::new(bytes.as_slice());
        (&mut stream).take(left + 1).read_to_string(&mut text).map_err(|e| wrong(e.to_string()))?;
        left = left.checked_sub(text.len() as u64).ok_or_else(|| {
            wrong(format!("the samples of a record hold more than {} characters", gzip::LIMIT))
        })?;
        if stream.total_in() != bytes.len() as u64 {
            return Err(wrong("data follows the stream".to_owned()));
        }
        let numbers: Vec<f64> =
            serde_json::from_str(&format!("[{text}]")).map_err(|e| wrong(e.to_string()))?;
        if numbers.len() != packed.count {
            return Err(wrong(format!("{} samples announced, {} found", packed.count, numbers.len())));
        }
        *samples = numbers.into();
        Ok(())
    })?;
    record["schema"] = SCHEMA.into();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(samples: &[f64]) -> Value {
        json!({ "schema": 1, "results": [{ "samples": samples, "baseline_samples": [2.5] }], "controls": [] })
    }

    #[test]
    fn what_is_packed_comes_back_digit_for_digit() {
        for samples in [&[][..], &[0.1], &[1234.567, 1e-7, 8.589_973e9, 3.0, 1e300]] {
            let plain = record(samples);
            let mut value = plain.clone();
            pack(&mut value).expect("packs");
            assert_eq!(value["schema"], 2);
            assert_eq!(value["results"][0]["samples"]["count"], samples.len());
            assert!(value["results"][0]["samples"]["zlib"].is_string());
            unpack(&mut value).expect("unpacks");
            assert_eq!(value, plain);
        }
    }

    #[test]
    fn noise_of_seven_digits_takes_less_room_than_as_an_array() {
        let mut rng = crate::stats::Rng::new(3);
        let samples: Vec<f64> =
            (0..4000).map(|_| super::super::round(1e5 * (1.0 + 0.01 * rng.unit()))).collect();
        let plain = record(&samples);
        let mut value = plain.clone();
        pack(&mut value).expect("packs");
        let (before, after) = (plain.to_string().len(), value.to_string().len());
        assert!(after * 5 < before * 4, "{before} bytes became {after}");
    }

    #[test]
    fn damage_is_told_with_its_place() {
        let whole = {
            let mut value = record(&[1.0, 2.0, 3.0]);
            pack(&mut value).expect("packs");
            value
        };
        let after = |change: &dyn Fn(&mut Value)| {
            let mut value = whole.clone();
            change(&mut value["results"][0]["samples"]);
            match unpack(&mut value) {
                Err(RecordError::Packed { place, why }) => {
                    assert_eq!(place, "results[0].samples");
                    why
                }
                other => panic!("not refused: {other:?}"),
            }
        };
        let stream = |bytes: &[u8]| Value::from(Base64::encode_string(bytes));
        let bytes = Base64::decode_vec(whole["results"][0]["samples"]["zlib"].as_str().expect("text"))
            .expect("base64");
        assert!(after(&|v| v["count"] = 4.into()).contains("announced"));
        assert!(after(&|v| *v = json!([1.0])).contains("invalid type"));
        assert!(after(&|v| v["more"] = 1.into()).contains("unknown field"));
        assert!(!after(&|v| v["zlib"] = "?".into()).is_empty());
        // Cut short, a bit flipped in the checksum, and data after the end.
        assert!(!after(&|v| v["zlib"] = stream(&bytes[..bytes.len() - 5])).is_empty());
        let mut flipped = bytes.clone();
        *flipped.last_mut().expect("bytes") ^= 1;
        assert!(!after(&|v| v["zlib"] = stream(&flipped)).is_empty());
        assert!(after(&|v| v["zlib"] = stream(&[&bytes[..], b"x"].concat())).contains("follows"));
        let packed = |text: &[u8]| {
            let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
            zlib.write_all(text).expect("compresses");
            stream(&zlib.finish().expect("compresses"))
        };
        assert!(!after(&|v| v["zlib"] = packed(b"1,2,\"three\"")).is_empty());
    }

    /// A small file must not become a large one: 1,000 equal lists of 8 MiB each are one small `.json.gz`.
    #[test]
    fn all_lists_share_one_limit() {
        const LISTS: u64 = 16;
        let list = |length: u64| {
            let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
            zlib.write_all(" ".repeat(length as usize - 1).as_bytes()).expect("compresses");
            zlib.write_all(b"1").expect("compresses");
            let zlib = Base64::encode_string(&zlib.finish().expect("compresses"));
            json!({ "samples": { "count": 1, "zlib": zlib } })
        };
        let mut value = json!({ "schema": 2, "results": vec![list(gzip::LIMIT / LISTS); LISTS as usize] });
        let full = value.clone();
        unpack(&mut value).expect("just within the limit");
        let mut value = full;
        value["results"].as_array_mut().expect("a list").push(list(1));
        match unpack(&mut value) {
            Err(RecordError::Packed { place, why }) => {
                assert_eq!(place, "results[16].samples");
                assert_eq!(why, "the samples of a record hold more than 67108864 characters");
            }
            other => panic!("not refused: {other:?}"),
        }
    }
}
