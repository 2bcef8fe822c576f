//! Texts: settings of the environment, records, studies.
#![forbid(unsafe_code)]

use lanework_cpu::{Features, Settings};
use lanework_race::record::Record;
use lanework_race::study::Study;

/// Three strings, divided by line ends.
pub(crate) fn settings(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut parts = text.splitn(3, '\n');
    let mut part = || parts.next().unwrap_or("");
    let (mask, backend, require) = (part(), part(), part());
    if let Ok(settings) = Settings::parse(mask, backend, require) {
        // Masked features are gone, whatever else is masked.
        let mask = Features::parse(mask).expect("it was just parsed");
        assert!(settings.cpu().features().iter().all(|feature| !mask.contains(feature)));
        for (primitive, name) in settings.forced() {
            assert!(!name.is_empty() && !primitive.contains(','));
        }
    }
}

pub(crate) fn settings_seeds() -> Vec<Vec<u8>> {
    [
        "",
        "avx512f\nmayo=avx2\nportable,avx2",
        "avx,aes\nportable\n",
        "x\n=\n,,",
        "sse2\na=b,c\nd",
        "\navx2,avx2",
    ]
    .map(|t| t.as_bytes().to_vec())
    .to_vec()
}

/// A record is read, written and read as the same; one that is not valid is refused, not believed.
pub(crate) fn record(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(record) = Record::from_json(text) {
        let written = record.to_json().expect("a record that was read can be written");
        let again = Record::from_json(&written).expect("a record that was written can be read");
        let twice = again.to_json().expect("as above");
        assert!(twice == written, "a record changes when it is written");
        let packed = record.to_packed_json().expect("a record that was read can be packed");
        let unpacked = Record::from_json(&packed).expect("a record that was packed can be read");
        assert!(unpacked.to_json().is_ok_and(|text| text == written), "a record changes when it is packed");
    }
}

pub(crate) fn record_seeds() -> Vec<Vec<u8>> {
    ["{}", "[]", "{\"schema\":1}", "{\"schema\":1,\"machine\":{},\"results\":[]}"].map(|t| t.into()).to_vec()
}

/// A study's question: refused, or read with its name and the same every time.
pub(crate) fn study(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(study) = Study::from_toml("fuzz", text) {
        assert!(study.name == "fuzz", "a study is named by its file");
        // Written out, it is a study too. Compared by text, since a table may hold values not equal to themselves.
        let written = toml::to_string(&study).expect("a study that was read can be written");
        let again = Study::from_toml("fuzz", &written).expect("a study that was written can be read");
        assert!(format!("{again:?}") == format!("{study:?}"), "it is read as another");
    }
}

pub(crate) fn study_seeds() -> Vec<Vec<u8>> {
    [
        "question = \"Does it?\"\nsubjects = [\"a\", \"b\"]\n[original]\nratio = 1.07\n",
        "question = \"\"",
        "name = \"x\"\nquestion = '''y'''\nd = 2024-01-01T00:00:00Z\nn = nan\n",
        "",
    ]
    .map(|t| t.as_bytes().to_vec())
    .to_vec()
}
