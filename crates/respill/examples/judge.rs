//! Rewrites a file with one kind of home, checks it, and drops refused slots until the rest is accepted.
//!
//! `cargo run --release -p lanework-respill --example judge -- FILE HOME CASE ...`
#![forbid(unsafe_code)]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use lanework_respill::case::Case;
    use lanework_respill::plan::{Policy, Wish, plan};
    use lanework_respill::rewrite::{Options as Rewriting, rewrite};
    use lanework_respill::validate::differ::{Stack, differential};
    use lanework_respill::validate::{Failure, Options, Versions, validate};
    use lanework_respill::{Analysis, Program};
    use std::time::Instant;

    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, home, cases @ ..] = &words[..] else { return Err("FILE HOME CASE ...".into()) };
    let analysis = Analysis::new(Program::new(file, std::fs::read_to_string(file)?)?);
    let cases: Vec<Case> = cases.iter().map(|case| Case::parse(case)).collect::<Result<_, _>>()?;
    let mut wish = Wish {
        banks: vec![(home.parse()?, None)],
        policy: Policy::Hottest,
        counts: None,
        stay: Default::default(),
        only: Default::default(),
        operands: true,
    };
    loop {
        let plan = plan(&analysis, &wish);
        let text = rewrite(&analysis, &plan, Rewriting::default())?.text;
        let other = Program::new(file, text)?;
        let begun = Instant::now();
        let judged = validate(&analysis, &other, &cases, &Options::default());
        println!("{} homes, {:.2} s", plan.homes.len(), begun.elapsed().as_secs_f64());
        let runs = match &judged {
            Ok(report) => &report.runs,
            Err(Failure::Refused(refused)) => &refused.runs,
            Err(_) => &Vec::new(),
        };
        for ran in runs {
            let [followed, compared, _] = ran.seconds;
            println!(
                "  {:.2} M instructions followed a second, {:.2} M pairs compared a second, {:?}",
                ran.followed as f64 / followed / 1e6,
                ran.compared as f64 / compared / 1e6,
                ran
            );
        }
        match judged {
            Ok(report) => {
                print!("{report}");
                return Ok(());
            }
            Err(Failure::Refused(refused)) => {
                println!("{refused}");
                let versions = Versions::new(&analysis.program, &other, &Options::default().externals)?;
                let time = Options::default().time;
                for (stack, case) in [Stack::AsLeft, Stack::Poisoned].into_iter().zip([&cases[0]; 2]) {
                    println!("{stack:?}: {:?}", differential(case, &versions, 100, stack, time)?);
                }
                let before = wish.stay.len();
                wish.stay.extend(refused.stay());
                if wish.stay.len() == before {
                    return Err("refused".into());
                }
            }
            Err(failure) => return Err(failure.into()),
        }
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() {}
