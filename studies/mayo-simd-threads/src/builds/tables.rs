//! The tables of the published sources, and what they say of the report's equal columns.
#![forbid(unsafe_code)]

use lanework_race::record::ResultRow;
use lanework_race::table::times;
use lanework_study::markdown::{NONE, strings, table};

use super::{Build, short, whole};
use crate::answers::set_name;
use crate::question::SETS;
use crate::races::Measured;

/// What the published sources show.
pub(crate) struct Tables<'a>(pub(crate) &'a Measured);

impl Tables<'_> {
    fn build(&self, name: &str) -> Option<&Build> {
        self.0.builds.iter().find(|b| b.name == whole(name))
    }

    /// Whether two builds are one program; `None` where one is not here.
    fn one_program(&self, a: &str, b: &str) -> Option<bool> {
        Some(self.build(a)?.digest == self.build(b)?.digest)
    }

    fn rows(&self, variant: &str, baseline: &str) -> impl Iterator<Item = &ResultRow> {
        let (variant, baseline) = (whole(variant), whole(baseline));
        let rows = self.0.record.results.iter();
        rows.filter(move |r| r.variant == variant && r.baseline == baseline)
    }

    /// The least and the greatest ratio over the sets raced.
    fn span(&self, variant: &str, baseline: &str) -> Option<String> {
        let ratios: Vec<f64> = self.rows(variant, baseline).map(|r| r.ratio).collect();
        let low = ratios.iter().copied().reduce(f64::min)?;
        let high = ratios.iter().copied().reduce(f64::max)?;
        Some(format!("{} to {}", times(low), times(high)))
    }

    /// Threads that were seen in the runs of a build, by name.
    fn threads(&self, build: &Build) -> String {
        let of = |name: &str| name.split("+omp=").next() == Some(build.name.as_str());
        let seen: Vec<String> =
            self.0.ran.iter().filter(|(name, _)| of(name)).map(|(_, r)| r.threads.to_string()).collect();
        if seen.is_empty() { NONE.to_owned() } else { seen.join(", ") }
    }

    /// Which code each build runs.
    pub(crate) fn code(&self) -> String {
        let builds = &self.0.builds;
        let rows: Vec<Vec<String>> = builds
            .iter()
            .enumerate()
            .map(|(at, b)| {
                let same = builds[..at].iter().find(|earlier| earlier.digest == b.digest);
                vec![
                    short(&b.name).to_owned(),
                    format!("`{}`", b.flags),
                    if b.files == "opt" { "plain C" } else { "AVX2" }.to_owned(),
                    if b.aes == "c" { "plain C" } else { "AES-NI" }.to_owned(),
                    b.wide.to_string(),
                    b.forks.to_string(),
                    self.threads(b),
                    same.map_or_else(|| NONE.to_owned(), |same| short(&same.name).to_owned()),
                ]
            })
            .collect();
        let header = [
            "Build",
            "Flags",
            "MAYO's files",
            "AES",
            "256- and 512-bit instructions",
            "Calls that start threads",
            "Threads seen",
            "Same code as",
        ];
        table(&strings(&header), &rows)
    }

    /// What each takes, against its race's baseline.
    pub(crate) fn seconds(&self) -> String {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        let all = self.0.record.results.iter().filter(|r| super::is_build(&r.variant));
        for pair in all.map(|r| (r.variant.as_str(), r.baseline.as_str())) {
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
        let cell = |set: &str, variant: &str, baseline: &str| {
            let path = format!("round1/{set}");
            let subject = format!("mayo/{path}/keygen+sign+verify");
            let row = self
                .0
                .record
                .results
                .iter()
                .find(|r| r.subject == subject && r.variant == variant && r.baseline == baseline);
            let of = |name: &str| self.0.seconds.get(&(path.clone(), name.to_owned())).map(|f| f.seconds);
            match (row, of(variant)) {
                (Some(row), Some(s)) => format!("{s:.3}s, {} {}", times(row.ratio), row.verdict),
                _ => NONE.to_owned(),
            }
        };
        let rows: Vec<Vec<String>> = pairs
            .iter()
            .map(|(variant, baseline)| {
                let mut row = vec![short(variant).to_owned(), short(baseline).to_owned()];
                row.extend(SETS.iter().map(|set| cell(set, variant, baseline)));
                row
            })
            .collect();
        let mut header = strings(&["Build", "against"]);
        header.extend(SETS.iter().map(|set| set_name(set)));
        table(&header, &rows)
    }

    /// Why the report's columns are equal, from what was built and timed here.
    pub(crate) fn says(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(one) = self.one_program("omp-native-plain", "avx2-omp-plain") {
            lines.push(if one {
                "MAYO-C chooses kernels by `MAYO_BUILD_TYPE`, which no compiler flag sets, and adds `-march=native` to \
                 every compilation by itself. Completed so, `-O3 -fopenmp` and `-O3 -mavx2 -fopenmp -march=native` \
                 compile the plain files to the same instructions: a report that built MAYO-C so timed one program twice."
            } else {
                "With `-march=native` on both lines, as MAYO-C adds it, `-O3 -fopenmp` and `-O3 -mavx2 -fopenmp \
                 -march=native` compile to different code, so equal columns are not explained by equal programs."
            }
            .to_owned());
        }
        if let (Some(chosen), Some(forked)) =
            (self.span("avx2-omp", "omp"), self.span("avx2-omp-pragmas+omp=4", "omp"))
        {
            lines.push(format!(
                "Had the flags chosen AVX2 files, as liboqs's build lets them, the combined build would be {chosen} as fast \
                 as the OpenMP build, and with pragmas and four threads {forked}. No set of the report shows that."
            ));
        }
        if let Some(plain) = self.span("avx2-omp-plain", "omp") {
            let wide = self.build("avx2-omp-plain").map_or(0, |b| b.wide);
            lines.push(format!(
                "On plain files `-mavx2 -march=native` makes gcc vectorise ({wide} instructions on wide registers), and \
                 that build is {plain} as fast as `-O3 -fopenmp` without them."
            ));
        }
        if let (Some(true), Some(build)) = (self.one_program("omp", "o3"), self.build("omp")) {
            lines.push(format!(
                "The published sources have no pragma: `-fopenmp` compiles them to the same code as `-O3`, with {} calls that \
                 start threads. Two threads as slow as four, as the report has on three sets, are what such a binary gives.",
                build.forks
            ));
        }
        if let (Some(two), Some(four)) =
            (self.span("omp-pragmas+omp=2", "omp"), self.span("omp-pragmas+omp=4", "omp"))
        {
            lines.push(format!(
                "With pragmas at the independent loops of products, two threads are {two} as fast as none and four {four}."
            ));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::races::tests::measured;

    fn build(name: &str, digest: &str) -> Build {
        Build {
            name: whole(name),
            flags: "-O3".to_owned(),
            pragmas: false,
            files: "opt".to_owned(),
            aes: "c".to_owned(),
            wide: 7,
            forks: 0,
            digest: digest.to_owned(),
            machine: lanework_race::machine::PeerBuild {
                name: whole(name),
                version: String::new(),
                compiler: String::new(),
                flags: String::new(),
            },
        }
    }

    #[test]
    fn the_answer_follows_the_code() {
        let mut found = measured();
        assert!(Tables(&found).says().is_empty(), "nothing is built");
        found.builds = vec![build("omp-native-plain", "a"), build("avx2-omp-plain", "a")];
        assert!(Tables(&found).says()[0].contains("one program twice"));
        assert!(Tables(&found).code().contains("omp-native-plain"));
        // A planted difference.
        found.builds[1].digest = "b".to_owned();
        assert!(Tables(&found).says()[0].contains("different code"));
    }
}
