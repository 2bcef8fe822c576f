//! `lanework report`: records as one HTML page.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use lanework_race::history::{self, Entry, History};
use lanework_race::report::{self, Options};
use lanework_race::study::Study;
use lanework_study::{Failure, Outcome};

use crate::args::ReportArgs;
use crate::files::{self, Access, Sink};
use crate::history::{ended, load, load_all, skipped_json, skipped_told};
use crate::ui::{Session, counted};

/// The studies in this build.
fn studies() -> Result<Vec<Study>, Failure> {
    #[cfg(feature = "study")]
    return crate::study::all();
    #[cfg(not(feature = "study"))]
    Ok(Vec::new())
}

pub(crate) fn run(session: &Session, args: &ReportArgs) -> Result<Outcome, Failure> {
    files::check_distinct(args.records.iter().map(PathBuf::as_path), [args.output.as_path()])?;
    let sink = Sink::create(&args.output, Access::Public, args.force)?;
    // All that were read, those found in the folder too, whether the page shows them or not.
    let mut read = args.records.clone();
    let (entries, skipped): (Vec<Entry>, _) = if args.records.is_empty() {
        let History { entries, skipped } = load_all(&args.folder)?;
        read.extend(entries.iter().map(|e| e.path.clone()));
        read.extend(skipped.iter().map(|why| why.path().to_owned()));
        (history::newest_of_each(entries), skipped)
    } else {
        let named = args.records.iter().map(|path| load(path));
        (named.collect::<Result<_, _>>()?, Vec::new())
    };
    if entries.is_empty() {
        if let Some(why) = skipped_told(&skipped) {
            return Err(Failure::file(&args.folder, format!("no readable record: {why}"))
                .help("correct or remove these files; `lanework bench --save` makes records"));
        }
        let why = if args.folder.is_dir() {
            "no records in directories of machines, such as records/MACHINE/DATE-NAME.json"
        } else {
            "no such directory of records"
        };
        return Err(Failure::file(&args.folder, why).help("`lanework bench --save` makes one"));
    }
    let paths: Vec<PathBuf> = entries.iter().map(|e| e.path.clone()).collect();
    let records: Vec<_> = entries.into_iter().map(|e| e.record).collect();
    let options = Options {
        samples: args.samples,
        floor: Some(&lanework_suite::floor),
        studies: &studies()?,
        headline: lanework_suite::HEADLINE,
    };
    let page = report::html(&records, &options).map_err(Failure::input)?;
    files::check_distinct(read.iter().map(PathBuf::as_path), [args.output.as_path()])?;
    sink.put(page.as_bytes())?;
    if session.json && args.output.as_os_str() != "-" {
        println!(
            "{}",
            serde_json::json!({
                "written": args.output, "bytes": page.len(), "records": paths, "skipped": skipped_json(&skipped),
            })
        );
    } else if args.output.as_os_str() != "-" {
        let records = counted(paths.len() as u64, "record", "records");
        println!("{}: {} bytes, {records}", lanework_study::text::shown(&args.output), page.len());
    }
    ended(&skipped)
}
