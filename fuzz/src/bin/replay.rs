//! Replays the corpus of every target and mutates it. An input that breaks a promise is kept in `fuzz/artifacts`. With
//! `--write-seeds` the targets' own seeds go into `fuzz/corpus`, where libFuzzer begins.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use lanework_fuzz::runner::{self, Effort};
use lanework_fuzz::{Target, target, targets};

struct Wish {
    effort: Effort,
    write: bool,
    targets: Vec<&'static str>,
}

fn wish() -> Result<Wish, String> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut effort = Effort { runs: 1000, time: None, seed: now.as_nanos() as u64 };
    let (mut targets, mut write) = (Vec::new(), false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let text = arguments.next().ok_or(format!("{argument} takes a number"))?;
            text.parse::<u64>().map_err(|e| format!("{argument} {text}: {e}"))
        };
        match argument.as_str() {
            "--runs" => effort.runs = number()?,
            "--seconds" => effort.time = Some(Duration::from_secs(number()?)),
            "--seed" => effort.seed = number()?,
            "--write-seeds" => write = true,
            name => targets.push(target(name).ok_or(format!("no target '{name}'"))?.name),
        }
    }
    Ok(Wish { effort, write, targets })
}

fn one(target: &Target, effort: Effort, home: &Path) -> Result<bool, String> {
    let corpus = runner::corpus(target, &home.join("corpus")).map_err(|e| format!("{}: {e}", target.name))?;
    let outcome = runner::run(target, &corpus, effort);
    let said =
        format!("{:16} {:4} of the corpus, {:6} mutated", target.name, outcome.corpus, outcome.mutated);
    let Some((input, why)) = outcome.broken else {
        println!("{said}: ok");
        return Ok(true);
    };
    println!("{said}: BROKEN: {why}");
    let folder = home.join("artifacts").join(target.name);
    let sum = input
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
    let file = folder.join(format!("crash-{sum:016x}"));
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&file, &input))
        .map_err(|e| format!("{}: {e}", file.display()))?;
    println!("{:16} its input: {}", "", file.display());
    Ok(false)
}

fn main() -> ExitCode {
    let wish = match wish() {
        Ok(wish) => wish,
        Err(why) => {
            eprintln!("replay: {why}");
            return ExitCode::from(2);
        }
    };
    // A target's panic message is printed in its line.
    std::panic::set_hook(Box::new(|_| {}));
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    if wish.write {
        for target in targets() {
            match runner::write_seeds(&target, &home.join("corpus")) {
                Ok(count) => println!("{:16} {count} seeds written", target.name),
                Err(error) => {
                    eprintln!("replay: {}: {error}", target.name);
                    return ExitCode::from(2);
                }
            }
        }
        return ExitCode::SUCCESS;
    }
    println!("mutations are drawn with --seed {}", wish.effort.seed);
    let required = std::env::var_os("LANEWORK_REQUIRE_PEERS").is_some_and(|v| v == "1");
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for target in targets().filter(|t| wish.targets.is_empty() || wish.targets.contains(&t.name)) {
        if let Some(why) = (target.missing)() {
            println!("SKIPPED {:16} {why}", target.name);
            if required {
                println!("{:16} LANEWORK_REQUIRE_PEERS=1 requires it", "");
                failed += 1;
            } else {
                skipped += 1;
            }
            continue;
        }
        match one(&target, wish.effort, home) {
            Ok(true) => passed += 1,
            Ok(false) => failed += 1,
            Err(why) => {
                println!("{why}");
                failed += 1;
            }
        }
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    ExitCode::from(u8::from(failed > 0))
}
