//! A record of `lanework bench signatures --peers` as a table: sizes and speeds of signature schemes, each by its fastest build.
//!
//! Times come from the record; sizes from MAYO's parameters and from what the peers' libraries must report before they load.
#![forbid(unsafe_code)]

use lanework_mayo::{Params, Round, Set};
use lanework_peers::ed25519;
use lanework_peers::flavour::LIBOQS_13;
use lanework_race::record::{Record, ResultRow};
use lanework_race::table::amount;

use super::source;

/// The study that is shown this way.
pub(super) const STUDY: &str = "bench-signatures-peers";

/// One line of the table.
struct Scheme {
    /// The name in variants.
    name: String,
    label: String,
    public_key: usize,
    signature: usize,
}

/// NIST's security category of a scheme.
fn category(name: &str) -> &'static str {
    match name {
        "mayo1" | "mayo2" | "falcon-512" | "sphincs-128f" => "1",
        "ml-dsa-44" => "2",
        "mayo3" | "ml-dsa-65" => "3",
        "mayo5" | "ml-dsa-87" | "falcon-1024" => "5",
        _ => "none",
    }
}

fn schemes() -> Vec<Scheme> {
    let ours = Set::ALL.map(|set| {
        let params = Params::of(Round::DEFAULT, set);
        Scheme {
            name: format!("mayo{}", set.number()),
            label: format!("**{}**", params.name()),
            public_key: params.public_key_bytes(),
            signature: params.signature_bytes(),
        }
    });
    let theirs = LIBOQS_13.others.iter().map(|set| Scheme {
        name: set.name.to_owned(),
        label: set.method.to_owned(),
        public_key: set.public_key,
        signature: set.signature,
    });
    let last = Scheme {
        name: "ed25519".to_owned(),
        label: "Ed25519".to_owned(),
        public_key: ed25519::PUBLIC_KEY_BYTES,
        signature: ed25519::SIGNATURE_BYTES,
    };
    ours.into_iter().chain(theirs).chain([last]).collect()
}

/// The least median of a scheme at an operation, with the build that took it.
fn fastest(record: &Record, scheme: &str, operation: &str) -> Option<(String, String)> {
    let subject = format!("signatures/{operation}");
    let rows: Vec<&ResultRow> = record.results.iter().filter(|r| r.subject == subject).collect();
    let of = |variant: &str| {
        variant.strip_prefix(scheme).is_some_and(|rest| rest.is_empty() || rest.starts_with('@'))
    };
    let best = rows.iter().filter(|r| of(&r.variant)).min_by(|a, b| a.median.total_cmp(&b.median));
    if let Some(row) = best {
        let who = row.variant.split_once('@').map_or("lanework", |(_, build)| build);
        let backend = if who == "lanework" { format!("{who} {}", row.backend) } else { who.to_owned() };
        return Some((amount(row, row.median), backend));
    }
    // The baseline has a median in each pairing; the middle one stands for it.
    let mut all: Vec<&ResultRow> = rows.into_iter().filter(|r| of(&r.baseline)).collect();
    all.sort_by(|a, b| a.baseline_median.total_cmp(&b.baseline_median));
    let row = all.get(all.len() / 2)?;
    Some((amount(row, row.baseline_median), format!("lanework {}", row.baseline_backend)))
}

/// Each build once, with the operations that it won unless it won all.
fn builds(found: &[(&str, String)]) -> String {
    let mut names: Vec<&str> = found.iter().map(|(_, who)| who.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    if let [one] = names[..] {
        return one.to_owned();
    }
    let won = |name: &str| {
        let operations: Vec<&str> = found.iter().filter(|(_, who)| who == name).map(|(o, _)| *o).collect();
        format!("{name} ({})", operations.join(", "))
    };
    names.into_iter().map(won).collect::<Vec<_>>().join(", ")
}

/// The table of all schemes.
pub(super) fn table(name: &str, record: &Record) -> Result<String, String> {
    let mut out = String::from(
        "| scheme | NIST category | public key | signature | key generation | sign | verify | fastest build |\n\
         |---|---|---:|---:|---:|---:|---:|---|\n",
    );
    for scheme in schemes() {
        let (mut times, mut won) = (Vec::new(), Vec::new());
        for operation in ["keygen", "sign", "verify"] {
            let (time, who) = fastest(record, &scheme.name, operation)
                .ok_or_else(|| format!("{name} has no {operation} of {}", scheme.name))?;
            times.push(time);
            won.push((operation, who));
        }
        out += &format!(
            "| {} | {} | {} B | {} B | {} | {} |\n",
            scheme.label,
            category(&scheme.name),
            scheme.public_key,
            scheme.signature,
            times.join(" | "),
            builds(&won)
        );
    }
    let noise = record.results.iter().map(|r| r.noise).fold(0.0, f64::max);
    out += &format!(
        "\nOne thread, messages of 32 bytes, medians. The noise floor is at most {:.1} %.\n",
        noise * 100.0
    );
    Ok(out + &source(name, record))
}

#[cfg(test)]
mod tests {
    use lanework_race::clock::Monotonic;
    use lanework_race::machine::Machine;

    use super::super::planted;
    use super::*;

    #[test]
    fn each_scheme_stands_with_its_sizes_and_its_fastest_build() {
        let machine = Machine::inspect(&Monotonic::new(), vec![]);
        let mut record = Record::new(STUDY, "lanework bench signatures --peers", machine);
        for operation in ["keygen", "sign", "verify"] {
            for scheme in schemes() {
                let variants = match scheme.name.as_str() {
                    "mayo1" => vec![],
                    "mayo2" | "mayo3" | "mayo5" => vec![(scheme.name.clone(), 10.0)],
                    "ed25519" => vec![("ed25519@openssl".to_owned(), 20.0)],
                    name => vec![
                        (format!("{name}@slow"), if operation == "sign" { 30.0 } else { 50.0 }),
                        (format!("{name}@quick"), 40.0),
                    ],
                };
                for (variant, ns) in variants {
                    let mut row = planted(&variant, ns);
                    row.subject = format!("signatures/{operation}");
                    row.baseline = "mayo1".into();
                    record.results.push(row);
                }
            }
        }
        let text = table("r.json", &record).expect("a table");
        for line in [
            "| **MAYO-1 round 3** | 1 | 1456 B | 464 B | 100 ns | 100 ns | 100 ns | lanework portable |",
            "| ML-DSA-44 | 2 | 1312 B | 2420 B | 40.0 ns | 30.0 ns | 40.0 ns | quick (keygen, verify), slow (sign) |",
            "| Ed25519 | none | 32 B | 64 B | 20.0 ns | 20.0 ns | 20.0 ns | openssl |",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
        assert!(text.contains("(r.json)") && text.contains("0.1 %"), "{text}");
        record.results.retain(|r| r.variant != "ed25519@openssl");
        assert!(table("r.json", &record).is_err_and(|e| e.contains("no keygen of ed25519")));
    }
}
