//! One thread for a whole operation, as published: the baseline for our own methods on the same device.
#![forbid(unsafe_code)]

use lanework_mayo::Params;
use lanework_suite::Context;
use lanework_suite::mayo::threads::{Ran, Shape, Trial, sweep};
use serde::Serialize;

use super::races::Measured;

/// All launches of one set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Baseline {
    pub(super) set: String,
    pub(super) trials: Vec<Trial>,
}

/// How much more the cooperative kernels do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Advantage {
    set: String,
    /// Whole MAYO a second in the cooperative kernels' best batches, over one thread each at its best launch.
    ratio: f64,
    launch: Shape,
}

impl Baseline {
    pub(super) fn measure(
        context: &Context,
        params: &'static Params,
        shapes: &[Shape],
        turns: usize,
    ) -> Baseline {
        Baseline { set: params.path(), trials: sweep(context, params, shapes, turns) }
    }

    /// The launches that ran and gave what the CPU gives.
    pub(super) fn runs(&self) -> impl Iterator<Item = &Ran> {
        self.trials.iter().filter_map(|t| t.ran.as_ref().ok())
    }

    pub(super) fn at(&self, shape: Shape) -> Option<&Ran> {
        self.runs().find(|ran| ran.shape == shape)
    }

    /// The launch of the highest throughput, and whole MAYO a second by it.
    pub(super) fn best(&self) -> Option<(&Ran, f64)> {
        self.runs().filter_map(|ran| Some((ran, ran.per_second()?))).max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Why a result differed from the CPU's, where one did.
    pub(super) fn wrong(&self) -> Option<String> {
        let mut wrong = self.trials.iter().filter_map(|t| {
            t.ran
                .as_ref()
                .err()
                .filter(|lost| lost.wrong)
                .map(|lost| format!("{}: {}", shown(t.shape), lost.why))
        });
        wrong.next()
    }
}

/// `4x4`.
pub(super) fn shown(shape: Shape) -> String {
    format!("{}x{}", shape.0, shape.1)
}

pub(super) fn of<'a>(measured: &'a Measured, params: &Params) -> Option<&'a Baseline> {
    let set = params.path();
    measured.threads.iter().find(|b| b.set == set)
}

/// Throughput of the cooperative kernels over one thread each at its best launch, on one device: one thread each runs on the
/// first device alone, so comparing it with several devices would say nothing.
pub(super) fn advantage(measured: &Measured, params: &Params) -> Option<f64> {
    let figures = measured.figures();
    let (_, best) = of(measured, params)?.best()?;
    (measured.cards.len() == 1).then_some(())?;
    Some(figures.whole(|o| figures.best(params, o).map(|b| b.ns))? / best)
}

/// Advantages of all sets that have one.
pub(super) fn advantages(measured: &Measured) -> Vec<Advantage> {
    let of = |params: &&Params| {
        let launch = of(measured, params)?.best()?.0.shape;
        Some(Advantage { set: params.path(), ratio: advantage(measured, params)?, launch })
    };
    measured.params.iter().filter_map(of).collect()
}

/// Mean cycles of a MAYO-1 operation, or of a phase of it, in this launch, and its share.
pub(super) fn cycles(
    threads: &[Baseline],
    shape: Shape,
    operation: &str,
    phase: Option<&str>,
) -> Option<(f64, f64)> {
    let baseline = threads.iter().find(|b| b.set.ends_with("/mayo1"))?;
    let row = ["keygen", "sign", "verify"].iter().position(|name| *name == operation)?;
    let of = baseline.at(shape)?.cycles[row];
    let part = match phase {
        None => of[0],
        Some("expansion") => of[1],
        Some("products") => of[2],
        Some(_) => return None,
    };
    (of[0] > 0.0).then(|| (part, part / of[0]))
}

/// Launches that have no times, and why.
pub(super) fn lost(measured: &Measured) -> Vec<String> {
    let trials = measured.threads.iter().flat_map(|b| b.trials.iter().map(move |t| (b, t)));
    trials
        .filter_map(|(b, t)| {
            let lost = t.ran.as_ref().err()?;
            Some(format!("a thread each, {} by {}: {}", b.set, shown(t.shape), lost.why))
        })
        .collect()
}

/// What the verdict says of a set.
pub(super) fn verdict(measured: &Measured, params: &Params, published: Shape) -> Vec<String> {
    let over = advantage(measured, params);
    of(measured, params)
        .map(|baseline| lines(&params.name(), baseline, published, over, measured.cards.len()))
        .unwrap_or_default()
}

fn lines(
    name: &str,
    baseline: &Baseline,
    published: Shape,
    advantage: Option<f64>,
    devices: usize,
) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(why) = baseline.wrong() {
        lines.push(format!("{name}: a thread for each operation computes WRONGLY, by {why}."));
    }
    let Some((best, rate)) = baseline.best() else { return lines };
    let first = baseline
        .at(published)
        .and_then(Ran::per_second)
        .map_or_else(String::new, |rate| format!("{rate:.0} MAYO/s by {} as published, ", shown(published)));
    let lost = baseline.trials.iter().filter(|t| t.ran.is_err()).count();
    let among = if lost == 0 { String::new() } else { format!(" of those that ran ({lost} did not)") };
    let over = match advantage {
        Some(ratio) => format!(
            " Cooperative kernels do {} that, copies and the check before release included, which a thread's figures leave out.",
            lanework_race::table::times(ratio)
        ),
        None if devices > 1 => " Name one device to have the cooperative kernels held against it.".to_owned(),
        None => String::new(),
    };
    lines.push(format!(
        "{name}: a thread for each operation does {first}{rate:.0} MAYO/s at its best launch{among}, {}.{over}",
        shown(best.shape),
    ));
    lines
}

#[cfg(test)]
mod tests {
    use lanework_suite::mayo::threads::Lost;

    use super::*;

    /// Launches with known milliseconds for each operation, and one that went wrong.
    fn baseline(set: &str) -> Baseline {
        let ran = |shape: Shape, ms: f64| Trial {
            shape,
            ran: Ok(Ran {
                shape,
                bytes: 1,
                ms: [ms, 2.0 * ms, ms],
                cycles: [[100.0, 60.0, 30.0], [200.0, 50.0, 100.0], [80.0, 40.0, 20.0]],
            }),
        };
        let lost = |wrong, why: &str| Err(Lost { wrong, why: why.to_owned() });
        Baseline {
            set: set.to_owned(),
            trials: vec![
                ran((4, 4), 10.0),
                ran((128, 32), 100.0),
                ran((512, 64), 3200.0),
                Trial { shape: (1, 3), ran: lost(false, "no room") },
                Trial { shape: (1, 5), ran: lost(true, "another key") },
            ],
        }
    }

    #[test]
    fn the_best_launch_is_the_one_of_the_highest_throughput() {
        let baseline = baseline("round3/mayo1");
        let (best, rate) = baseline.best().expect("a launch");
        // 4096 in 0.4 s, beside 16 in 0.04 s and 32768 in 12.8 s.
        assert_eq!((best.shape, rate.round()), ((128, 32), 10240.0));
        assert_eq!(baseline.at((4, 4)).and_then(Ran::per_second).map(f64::round), Some(400.0));
        assert!(baseline.at((1, 3)).is_none() && baseline.at((1, 5)).is_none());
        assert_eq!(baseline.wrong().as_deref(), Some("1x5: another key"));
        // A device whose clock stands still has no best.
        let still = Baseline {
            set: baseline.set.clone(),
            trials: baseline
                .runs()
                .map(|ran| Trial { shape: ran.shape, ran: Ok(Ran { ms: [0.0; 3], ..ran.clone() }) })
                .collect(),
        };
        assert!(still.runs().count() == 3 && still.best().is_none());
    }

    #[test]
    fn cycles_are_those_of_mayo_1_in_the_reports_launch() {
        let both = [baseline("round3/mayo2"), baseline("round3/mayo1")];
        let of = |operation, phase| cycles(&both, (4, 4), operation, phase);
        assert_eq!(of("keygen", None), Some((100.0, 1.0)));
        assert_eq!(of("sign", Some("expansion")), Some((50.0, 0.25)));
        assert_eq!(of("verify", Some("products")), Some((20.0, 0.25)));
        assert_eq!(of("sign", Some("hashing")), None);
        assert_eq!(cycles(&both[..1], (4, 4), "sign", None), None);
        assert_eq!(cycles(&both, (1, 3), "sign", None), None);
    }

    #[test]
    fn the_verdict_tells_wrong_results_and_does_not_compare_several_devices_with_one() {
        let baseline = baseline("round3/mayo1");
        let one = lines("MAYO-1", &baseline, (4, 4), Some(5.0), 1);
        assert!(one[0].contains("WRONGLY, by 1x5"), "{one:?}");
        assert!(
            one[1].contains("400 MAYO/s by 4x4 as published, 10240 MAYO/s at its best launch of those that ran (2 did not), 128x32"),
            "{one:?}"
        );
        assert!(one[1].contains("5.0"), "{one:?}");
        let two = lines("MAYO-1", &baseline, (4, 4), None, 2);
        assert!(two[1].ends_with("held against it."), "{two:?}");
    }
}
