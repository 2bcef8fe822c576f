//! Kinds of homes as an argument names them, and what each needs of a processor.
#![forbid(unsafe_code)]

use std::str::FromStr;

use lanework_cpu::{Feature, Features};
use lanework_respill::homes::Bank;

/// Kinds of homes, each with the most that may be used: `mm:4,xmm`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Homes(pub Vec<(Bank, Option<usize>)>);

impl FromStr for Homes {
    type Err = String;

    fn from_str(said: &str) -> Result<Homes, String> {
        let mut out: Vec<(Bank, Option<usize>)> = Vec::new();
        for part in said.split(',') {
            let (name, most) = match part.split_once(':') {
                Some((name, most)) => match most.parse::<usize>() {
                    Ok(most @ 1..) => (name, Some(most)),
                    _ => {
                        return Err(format!(
                            "'{most}' is not a number of registers: NAME:4 takes four at most"
                        ));
                    }
                },
                None => (part, None),
            };
            let bank: Bank = name.parse()?;
            let all = bank.homes().len();
            if let Some(most) = most.filter(|most| *most > all) {
                return Err(format!("'{name}:{most}': there are {all} {name} homes"));
            }
            if out.iter().any(|&(other, _)| other == bank) {
                return Err(format!("'{name}' is there twice"));
            }
            out.push((bank, most));
        }
        Ok(Homes(out))
    }
}

/// What a bank's moves need of the processor.
#[must_use]
pub fn needs(bank: Bank) -> Features {
    match bank {
        Bank::Mm | Bank::Xmm => Features::NONE,
        Bank::Xmm32 => Features::of(&[Feature::Avx512vl]),
        Bank::K => Features::of(&[Feature::Avx512bw]),
        Bank::ZmmLane => Features::of(&[Feature::Avx512bw, Feature::Avx512dq, Feature::Avx512vl]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_read() {
        let homes: Homes = "mm:4,xmm".parse().expect("homes");
        assert_eq!(homes.0, [(Bank::Mm, Some(4)), (Bank::Xmm, None)]);
        for bad in ["", "mm,", "mm:0", "mm:x", "mm:9", "mm,mm", "ymm"] {
            assert!(bad.parse::<Homes>().is_err(), "{bad}");
        }
    }
}
