//! `lanework tune`: finds what is fastest here, and keeps it.
#![forbid(unsafe_code)]

mod device;

use lanework_race::record::ResultRow;
use lanework_race::table;
use lanework_race::verdict::Verdict;
use lanework_study::{Failure, Outcome};
use lanework_suite::Job;

use crate::args::TuneArgs;
use crate::profile::{Choice, Profile};
use crate::ui::Session;
pub(crate) use device::{DeviceChoices, DevicePrint, DeviceUse};
use lanework_study::races::{Race, race_all, race_of};

pub(crate) fn run(session: &Session, args: &TuneArgs) -> Result<Outcome, Failure> {
    // Peers take part in races, never in a profile.
    let context = lanework_suite::Context { peers: None, ..session.context.clone() };
    session.device_there()?;
    if !args.dry_run {
        Profile::may_save(&context, args.force)?;
    }
    let pattern = args.what.as_deref().unwrap_or("all");
    let subjects = lanework_suite::matching(&context, pattern);
    if subjects.is_empty() {
        return Err(Failure::input(format!("no subject matches '{pattern}'"))
            .help("`lanework bench all --list` shows them"));
    }
    // An operation that no command performs is raced only by `bench`.
    let races: Vec<(Job, Race)> = subjects
        .iter()
        .filter_map(|subject| Some((Job::of_path(subject.path())?, race_of(subject))))
        .collect();
    if races.is_empty() {
        return Err(Failure::input(format!("nothing to tune: no command performs '{pattern}'"))
            .help("`lanework bench` races it"));
    }
    let (jobs, races): (Vec<Job>, Vec<Race>) = races.into_iter().unzip();
    let devices = devices(session)?;
    let record = race_all(session, "tune", &races, &args.effort)?;
    // One that cannot be used here is replaced only where that was asked for.
    let old = session.profile.as_ref().ok().cloned().flatten();
    let mut profile = old.unwrap_or_else(|| Profile::new(&context, record.date.clone()));
    profile.date.clone_from(&record.date);
    for (job, race) in jobs.iter().zip(&races) {
        let rows: Vec<&ResultRow> = record.results.iter().filter(|r| r.subject == race.subject).collect();
        match choose(&race.baseline, &rows) {
            Some(choice) => profile.choices.insert(*job, choice),
            // The race could not tell, so no choice is kept, neither a new nor an old one: the default applies.
            None => profile.choices.remove(job),
        };
        if devices.is_empty() {
            continue;
        }
        let emulated = context.device.is_hosted();
        match device::choose(context.device.name(), emulated, &devices, &rows) {
            Some(choice) => profile.devices.entry(*job).or_default().keep(choice),
            None => {
                if let Some(choices) = profile.devices.get_mut(job) {
                    choices.forget(&devices);
                }
            }
        }
        profile.devices.retain(|_, choices| !choices.is_empty());
    }
    let saved = if args.dry_run { None } else { Some(profile.save()?) };
    if session.json {
        println!(
            "{}",
            serde_json::json!({
                "profile": saved.as_ref().map(|p| p.display().to_string()),
                "choices": profile.choices,
                "spills": profile.spills,
                "devices": profile.devices,
            })
        );
        return Ok(Outcome::Yes);
    }
    print!("{}", table::render(&record, session.style));
    println!();
    for (job, race) in jobs.iter().zip(&races) {
        match profile.choices.get(job) {
            Some(c) => {
                let threads = match c.threads {
                    None => String::new(),
                    Some(0) => ", on every core".to_owned(),
                    Some(1) => ", on 1 thread".to_owned(),
                    Some(n) => format!(", on {n} threads"),
                };
                println!("{job}: {} ({} over {}){threads}", c.backend, table::times(c.ratio), race.baseline);
            }
            None => println!("{job}: cannot tell, so the default applies"),
        }
        if let Some(choice) = profile.devices.get(job).and_then(|all| all.of(&devices)) {
            println!("{job} on {}: {}", context.device, choice.told());
        }
    }
    // Found by `respill auto --keep` and by studies, which check before they race; kept beside the rest.
    for (function, spill) in &profile.spills {
        println!("spilled values of {function}: {}", spill.told());
    }
    match saved {
        Some(path) => println!("profile: {}", lanework_study::text::shown(&path)),
        None => println!("dry run: no profile was written"),
    }
    Ok(Outcome::Yes)
}

/// The devices that were asked for, as a profile identifies them.
fn devices(session: &Session) -> Result<Vec<DevicePrint>, Failure> {
    if !session.context.device.is_asked() {
        return Ok(Vec::new());
    }
    let device = &session.context.device;
    let opened = device.open().map_err(|why| Failure::unavailable(why).help(device.remedy()))?;
    Ok(DevicePrint::of(opened.iter().map(lanework_cuda::Device::card)))
}

/// The least gain for more threads; below it, one thread does as well and leaves the other cores alone.
const WORTH_IT: f64 = 1.05;

/// The backend with the best ratio among those that are faster than the baseline beyond doubt. The baseline if every other
/// is, beyond doubt, not faster. None if that cannot be told: then the default is the better guess. Fewer threads than
/// cores (0: all of them) only if the races could tell.
fn choose(baseline: &str, rows: &[&ResultRow]) -> Option<Choice> {
    let single = |r: &&&ResultRow| !r.variant.contains('+');
    let best = rows
        .iter()
        .filter(single)
        .filter(|r| r.verdict == Verdict::Faster)
        .max_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let (backend, ratio) = match best {
        Some(r) => (r.variant.clone(), r.ratio),
        None if rows.iter().filter(single).any(|r| !r.verdict.is_settled()) => return None,
        None => (baseline.to_owned(), 1.0),
    };
    let is_one = |r: &&ResultRow| r.variant.ends_with("+batch") || r.variant.ends_with("+threads=1");
    let one = rows.iter().find(|r| is_one(r));
    // A race that its control voided chooses nothing.
    let void = rows.iter().any(|r| r.verdict == Verdict::Void && r.variant.contains('+'));
    let many: Vec<(&&ResultRow, usize)> = rows
        .iter()
        .filter(|r| !is_one(r))
        .filter_map(|r| Some((r, r.variant.rsplit_once("+threads=")?.1.parse::<usize>().ok()?)))
        .collect();
    let wins = many
        .iter()
        .filter(|(r, _)| !void && one.is_some_and(|one| r.low > one.high))
        .max_by(|(a, _), (b, _)| a.ratio.total_cmp(&b.ratio));
    // Both raced against the same baseline, so their intervals bound what threads can gain.
    let hopeless = !void && one.is_some_and(|one| many.iter().all(|(r, _)| r.high < WORTH_IT * one.low));
    let threads = match wins {
        Some((_, n)) => Some(*n),
        None if hopeless => Some(1),
        // They were raced, and could not be told apart.
        None => one.map(|_| 0),
    };
    Some(Choice { backend, ratio, threads })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The row with another median, in nanoseconds.
    pub(super) fn timed(row: ResultRow, median: f64) -> ResultRow {
        ResultRow { median, ..row }
    }

    pub(super) fn row(variant: &str, verdict: &str, low: f64, ratio: f64, high: f64) -> ResultRow {
        serde_json::from_value(serde_json::json!({
            "subject": "s", "variant": variant, "baseline": "portable", "ratio": ratio, "low": low, "high": high,
            "noise": 0.001, "verdict": verdict, "unit": "ns", "median": 1.0, "mean": 1.0, "min": 1.0, "q1": 1.0,
            "q3": 1.0, "ticks": null, "baseline_median": 1.0, "baseline_mean": 1.0, "baseline_min": 1.0,
            "margin": 0.005, "detectable": 0.01, "backend": "v", "baseline_backend": "b", "cores": 1,
            "iterations": [1, 1], "launch_pairs": [0], "samples": [], "baseline_samples": [],
        }))
        .expect("a row")
    }

    fn chosen(rows: &[ResultRow]) -> Option<(String, Option<usize>)> {
        choose("portable", &rows.iter().collect::<Vec<_>>()).map(|c| (c.backend, c.threads))
    }

    #[test]
    fn what_is_faster_beyond_doubt_is_kept() {
        let rows = [
            row("avx2", "faster", 9.0, 10.0, 11.0),
            row("avx512", "faster", 19.0, 20.0, 21.0),
            row("avx512+batch", "faster", 19.0, 20.0, 21.0),
            row("avx512+threads=2", "faster", 37.0, 38.0, 39.0),
        ];
        assert_eq!(chosen(&rows), Some(("avx512".into(), Some(2))));
    }

    #[test]
    fn a_disturbed_race_does_not_choose_the_slowest() {
        assert_eq!(chosen(&[row("avx2", "cannot tell", 0.1, 20.0, 900.0)]), None);
        assert_eq!(chosen(&[row("avx2", "slower", 0.8, 0.9, 0.95)]), Some(("portable".into(), None)));
    }

    #[test]
    fn threads_are_given_up_only_where_there_is_nothing_to_gain() {
        let batch = row("avx2+batch", "faster", 9.0, 10.0, 11.0);
        let fast = row("avx2", "faster", 9.0, 10.0, 11.0);
        let rows = |threads| [fast.clone(), batch.clone(), threads];
        let told = rows(row("avx2+threads=2", "faster", 8.0, 9.0, 9.3));
        assert_eq!(chosen(&told), Some(("avx2".into(), Some(1))));
        let untold = rows(row("avx2+threads=2", "faster", 6.0, 10.0, 16.0));
        assert_eq!(chosen(&untold), Some(("avx2".into(), Some(0))));
        for void in
            [row("avx2+threads=2", "void", 8.0, 9.0, 9.3), row("avx2+threads=2", "void", 18.0, 19.0, 19.3)]
        {
            assert_eq!(chosen(&rows(void)), Some(("avx2".into(), Some(0))));
        }
        assert_eq!(
            chosen(&[fast.clone(), batch.clone()]),
            Some(("avx2".into(), Some(1))),
            "there is one core"
        );
    }
}
