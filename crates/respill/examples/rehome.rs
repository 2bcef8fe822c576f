//! Gives a file's spilled values homes in vector registers, and prints the text if the judge accepts it.
//!
//! `cargo run -p lanework-respill --example rehome -- FILE.s CASE ...`, with cases such as `'measure f(5, 7)'`
#![forbid(unsafe_code)]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use lanework_respill::case::Case;
    use lanework_respill::homes::Bank;
    use lanework_respill::plan::{Policy, Wish, plan};
    use lanework_respill::rewrite::{Options as Rewriting, rewrite};
    use lanework_respill::validate::{Failure, Options, validate};
    use lanework_respill::{Analysis, Program};

    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, cases @ ..] = &words[..] else { return Err("usage: rehome FILE.s CASE ...".into()) };
    let text = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    let cases: Vec<Case> = cases.iter().map(|case| Case::parse(case)).collect::<Result<_, _>>()?;
    if cases.is_empty() {
        return Err("no case to judge by".into());
    }
    let analysis = Analysis::new(Program::new(file, text)?);
    let mut wish = Wish {
        banks: vec![(Bank::Xmm, None)],
        policy: Policy::Hottest,
        counts: None,
        stay: Default::default(),
        only: Default::default(),
        operands: true,
    };
    loop {
        let plan = plan(&analysis, &wish);
        let rewritten = rewrite(&analysis, &plan, Rewriting::default())?;
        match validate(&analysis, &Program::new(file, rewritten.text.clone())?, &cases, &Options::default()) {
            Ok(report) => {
                eprint!("{report}");
                print!("{}", rewritten.text);
                return Ok(());
            }
            Err(Failure::Refused(refused)) => {
                // The slots that were refused stay in memory, and the rest is tried again.
                let before = wish.stay.len();
                wish.stay.extend(refused.stay());
                if wish.stay.len() == before {
                    return Err(format!("refused: {refused}").into());
                }
            }
            Err(other) => return Err(other.into()),
        }
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() {
    println!("programs are run and judged on x86-64 Linux only");
}
