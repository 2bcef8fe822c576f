//! The report's three recommendations, decided again from verdicts.
#![forbid(unsafe_code)]

use lanework_race::record::ResultRow;
use lanework_race::verdict::Verdict;
use serde::Serialize;

/// The verdicts over all sets, summed up.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Says {
    /// Faster on every set, by ratios from here to there.
    Yes(f64, f64),
    /// The same or slower on every set.
    No(f64, f64),
    /// Faster on some sets only, by name.
    Depends(Vec<String>),
    /// Not settled.
    CannotTell,
    /// Not measured here.
    NotHere,
}

impl Says {
    /// From the rows of one variant against one baseline.
    pub(super) fn of<'a>(rows: impl Iterator<Item = &'a ResultRow>) -> Says {
        let rows: Vec<&ResultRow> = rows.collect();
        let low = rows.iter().map(|r| r.ratio).fold(f64::INFINITY, f64::min);
        let high = rows.iter().map(|r| r.ratio).fold(0.0, f64::max);
        let count = |verdict| rows.iter().filter(|r| r.verdict == verdict).count();
        let faster = count(Verdict::Faster);
        let unsettled = rows.iter().filter(|r| !r.verdict.is_settled()).count();
        match rows.len() {
            0 => Says::NotHere,
            n if faster == n => Says::Yes(low, high),
            _ if faster == 0 && unsettled == 0 => Says::No(low, high),
            n if faster > 0 && faster + unsettled < n => Says::Depends(
                rows.iter().filter(|r| r.verdict == Verdict::Faster).map(|r| set_name(&r.subject)).collect(),
            ),
            _ => Says::CannotTell,
        }
    }

    fn text(&self) -> String {
        match self {
            Says::Yes(low, high) => format!("faster on every set raced, {}", span(*low, *high)),
            Says::No(low, high) => format!("on no set raced faster, {}", span(*low, *high)),
            Says::Depends(sets) => format!("faster on {} alone", sets.join(", ")),
            Says::CannotTell => "not settled by this run".to_owned(),
            Says::NotHere => "not to be had here".to_owned(),
        }
    }

    /// The highest ratio, where the variant pays everywhere.
    fn best(&self) -> Option<f64> {
        match self {
            Says::Yes(_, high) => Some(*high),
            _ => None,
        }
    }
}

fn span(low: f64, high: f64) -> String {
    format!("×{low:.2} to ×{high:.2}")
}

/// `MAYO-1` of `mayo/round2/mayo1/...`.
pub(super) fn set_name(subject: &str) -> String {
    let digit = subject.split('/').find_map(|part| part.strip_prefix("mayo").filter(|d| !d.is_empty()));
    format!("MAYO-{}", digit.unwrap_or("?"))
}

/// A recommendation, decided.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Answer {
    pub(super) recommendation: String,
    pub(super) verdict: &'static str,
    pub(super) reason: String,
}

const HOLDS: &str = "HOLDS";
const IN_PART: &str = "HOLDS IN PART";
const FAILS: &str = "DOES NOT HOLD";
const UNSETTLED: &str = "CANNOT TELL";
const ABSENT: &str = "NOT HERE";

/// What the decisions rest on.
pub(super) struct Findings {
    /// AVX2 against portable code.
    pub(super) avx2: Says,
    /// AVX-512 against AVX2.
    pub(super) avx512: Says,
    /// Threads inside one operation, two and four, against one thread of portable code.
    pub(super) inside: Vec<(String, Says)>,
    /// The same against AVX2.
    pub(super) avx2_inside: Vec<(String, Says)>,
    /// AVX2 with threads inside against the same loops not forked: what the threads alone do.
    pub(super) avx2_forked: Vec<(String, Says)>,
    /// A batch over all cores against portable code, and against AVX2.
    pub(super) batch: Says,
    pub(super) avx2_batch: Says,
    pub(super) cores: usize,
}

impl Findings {
    /// From the races of one round.
    pub(super) fn of(rows: &[ResultRow], round: &str, cores: usize) -> Findings {
        let says = |variant: &str, baseline: &str| {
            let here = |r: &&ResultRow| r.subject.starts_with(&format!("mayo/{round}/"));
            Says::of(rows.iter().filter(here).filter(|r| r.variant == variant && r.baseline == baseline))
        };
        let inside = |tier: &str| {
            [2, 4]
                .map(|n| (format!("{n} threads inside"), says(&format!("{tier}+inside={n}"), tier)))
                .to_vec()
        };
        Findings {
            avx2: says("avx2", "portable"),
            avx512: says("avx512", "avx2"),
            inside: inside("portable"),
            avx2_inside: inside("avx2"),
            avx2_forked: [2, 4]
                .map(|n| (format!("{n} threads"), says(&format!("avx2+inside={n}"), "avx2+inside=1")))
                .to_vec(),
            batch: says(&format!("portable+threads={cores}"), "portable"),
            avx2_batch: says(&format!("avx2+threads={cores}"), "avx2"),
            cores,
        }
    }

    fn threads(&self, inside: &[(String, Says)], batch: &Says) -> String {
        let mut parts: Vec<String> = inside.iter().map(|(name, s)| format!("{name}: {}", s.text())).collect();
        parts.push(format!("a batch over {} threads: {}", self.cores, batch.text()));
        parts.join("; ")
    }

    /// Use AVX2 only.
    fn best(&self) -> (&'static str, String) {
        let mut reason = format!("AVX2 against portable code: {}", self.avx2.text());
        let verdict = match &self.avx2 {
            Says::NotHere => return (ABSENT, reason),
            Says::CannotTell => return (UNSETTLED, reason),
            Says::No(..) => return (FAILS, reason),
            Says::Yes(..) | Says::Depends(_) => {
                let beaten = self.avx512.best().is_some() || self.avx2_batch.best().is_some();
                if beaten || matches!(self.avx2, Says::Depends(_)) { IN_PART } else { HOLDS }
            }
        };
        if self.avx512.best().is_some() {
            reason += &format!(". It is not the best choice: AVX-512 against AVX2 is {}", self.avx512.text());
        } else {
            reason += &format!(". AVX-512 against AVX2: {}", self.avx512.text());
        }
        let only = if self.avx2_batch.best().is_some() { "\"Only\" is wrong for batches" } else { "Batches" };
        reason +=
            &format!(". {only}: AVX2 over {} threads against one is {}", self.cores, self.avx2_batch.text());
        (verdict, reason)
    }

    /// Threads where there is no AVX2.
    fn alternative(&self) -> (&'static str, String) {
        (Findings::pays(&self.inside, &self.batch), self.threads(&self.inside, &self.batch))
    }

    /// Whether threads pay: inside and across, one of the two, or not at all.
    fn pays(inside: &[(String, Says)], batch: &Says) -> &'static str {
        let inner = inside.iter().any(|(_, s)| s.best().is_some());
        let settled = |s: &Says| matches!(s, Says::Yes(..) | Says::No(..) | Says::Depends(_));
        match (inner, batch.best().is_some()) {
            (true, true) => HOLDS,
            (true, false) | (false, true) => IN_PART,
            _ if inside.iter().any(|(_, s)| matches!(s, Says::Depends(_))) => IN_PART,
            _ if settled(batch) && inside.iter().all(|(_, s)| settled(s)) => FAILS,
            _ => UNSETTLED,
        }
    }

    /// No threads with AVX2.
    fn avoid(&self) -> (&'static str, String) {
        let mut reason = self.threads(&self.avx2_inside, &self.avx2_batch);
        for (name, says) in &self.avx2_forked {
            reason += &format!("; {name} against the same loops not forked: {}", says.text());
        }
        if self.avx2 == Says::NotHere {
            return (ABSENT, reason);
        }
        let verdict = match Findings::pays(&self.avx2_inside, &self.avx2_batch) {
            HOLDS => FAILS,
            FAILS => HOLDS,
            other => other,
        };
        (verdict, reason)
    }

    /// All three, in the report's order.
    pub(super) fn answers(&self, said: &super::question::Recommendations) -> Vec<Answer> {
        let decided =
            [(&said.best, self.best()), (&said.alternative, self.alternative()), (&said.avoid, self.avoid())];
        decided
            .into_iter()
            .map(|(text, (verdict, reason))| Answer { recommendation: text.clone(), verdict, reason })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(avx2: Says, avx512: Says, inner: Says, across: Says) -> Findings {
        let inside = vec![("2 threads inside".to_owned(), inner)];
        Findings {
            avx2,
            avx512,
            inside: inside.clone(),
            avx2_inside: inside,
            avx2_forked: Vec::new(),
            batch: across.clone(),
            avx2_batch: across,
            cores: 2,
        }
    }

    fn decided(f: &Findings) -> [&'static str; 3] {
        [f.best().0, f.alternative().0, f.avoid().0]
    }

    #[test]
    fn decisions_follow_the_verdicts() {
        let (yes, no) = (Says::Yes(1.5, 1.9), Says::No(0.5, 0.9));
        // The report's world: threads never help AVX2.
        assert_eq!(
            decided(&findings(yes.clone(), Says::NotHere, no.clone(), no.clone())),
            [HOLDS, FAILS, HOLDS]
        );
        // Batches scale, loops do not, AVX-512 is better.
        let f = findings(yes.clone(), yes.clone(), no.clone(), yes.clone());
        assert_eq!(decided(&f), [IN_PART, IN_PART, IN_PART]);
        assert!(f.best().1.contains("not the best choice"));
        // Everything scales.
        assert_eq!(decided(&findings(yes.clone(), no.clone(), yes.clone(), yes)), [IN_PART, HOLDS, FAILS]);
        // Nothing known.
        let (here, tell) = (Says::NotHere, Says::CannotTell);
        assert_eq!(
            decided(&findings(here.clone(), here, tell.clone(), tell.clone())),
            [ABSENT, UNSETTLED, ABSENT]
        );
        assert_eq!(decided(&findings(no.clone(), no, tell.clone(), tell)), [FAILS, UNSETTLED, UNSETTLED]);
    }

    #[test]
    fn sets_are_named() {
        assert_eq!(set_name("mayo/round2/mayo5/keygen+sign+verify"), "MAYO-5");
        assert_eq!(set_name("nothing"), "MAYO-?");
    }

    #[test]
    fn nothing_measured_is_not_here() {
        assert_eq!(Says::of([].into_iter()), Says::NotHere);
    }
}
