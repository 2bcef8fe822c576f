//! The published sources of round 1 as the report's flags build them: what runs in each, and the same workload.
//!
//! Without the feature `peers`, or without `--peers`, there are none.
#![forbid(unsafe_code)]

pub(super) mod tables;

use lanework_race::machine::PeerBuild;
use lanework_study::Failure;
use serde::Serialize;

use super::sets::Set;
use super::workload::{Configuration, Report};

/// What all of their names begin with.
const STEM: &str = "liboqs12-flags-";

/// The whole name of a build in `study.toml`.
pub(super) fn whole(name: &str) -> String {
    format!("{STEM}{name}")
}

/// A name without what all have in common.
pub(super) fn short(name: &str) -> &str {
    name.strip_prefix(STEM).unwrap_or(name)
}

/// Whether a configuration is a build.
pub(super) fn is_build(name: &str) -> bool {
    name.starts_with(STEM)
}

/// A build that is here, as its card describes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Build {
    pub(super) name: String,
    pub(super) flags: String,
    pub(super) pragmas: bool,
    /// Which of liboqs's files run: `avx2` or `opt`.
    pub(super) files: String,
    pub(super) aes: String,
    /// Instructions on 256- or 512-bit registers in the scheme's code.
    pub(super) wide: usize,
    /// Calls in it that start threads.
    pub(super) forks: usize,
    /// Of its instructions.
    pub(super) digest: String,
    pub(super) machine: PeerBuild,
}

#[cfg(feature = "peers")]
mod found {
    use std::cell::Cell;
    use std::path::Path;

    use lanework_peers::flavour::Tuning;
    use lanework_peers::{FLAG_BUILDS, Peers, STACK_BYTES, SignaturePeer, SignatureSet, set_random};

    use super::{Build, Configuration, Failure, PeerBuild, Report, Set};
    use crate::workload::{filled, fold, threads_now};

    /// Those that can run here, and why the others cannot.
    pub(in crate::builds) fn all(dir: &Path) -> Vec<Result<Build, (String, String)>> {
        let of = |found: Result<Box<dyn SignaturePeer>, lanework_peers::Unavailable>| {
            let peer = found.map_err(|u| (u.name.clone(), u.to_string()))?;
            let name = peer.name().to_owned();
            let flags = FLAG_BUILDS.iter().find(|f| f.name == name).and_then(|f| match f.tuning {
                Tuning::Flags(flags) => Some(flags),
                _ => None,
            });
            let card = peer.card();
            let (Some(flags), Some(code)) = (flags, card.code.clone()) else {
                return Err((name, "its card does not say what it consists of".to_owned()));
            };
            let machine = PeerBuild {
                name: name.clone(),
                version: format!("{} {} ({})", card.project, card.version, card.round),
                compiler: card.compiler_version.clone(),
                flags: card.flags.clone(),
            };
            Ok(Build {
                name,
                flags: flags.flags.to_owned(),
                pragmas: flags.pragmas,
                files: peer.sets().first().map(|set| set.code.clone()).unwrap_or_default(),
                aes: peer.aes().to_owned(),
                wide: code.wide,
                forks: code.forks,
                digest: code.digest,
                machine,
            })
        };
        Peers::discover_flag_builds(dir).into_iter().map(of).collect()
    }

    fn one(peer: &dyn SignaturePeer, set: &SignatureSet, item: usize) -> (u64, bool) {
        let (seed, randomizer) = (filled::<40>(item, 1), filled::<40>(item, 2));
        let message = filled::<32>(item, 3);
        // The key's seed is the first thing that it draws, the signature's randomizer the second.
        let drawn = Cell::new(0);
        set_random(Box::new(move |out| {
            let source = if drawn.replace(drawn.get() + 1) == 0 { &seed } else { &randomizer };
            out.copy_from_slice(&source[..out.len()]);
        }));
        let (mut pk, mut sk) = (vec![0; set.public_key], vec![0; set.secret_key]);
        let mut signature = vec![0; set.signature];
        let made = peer
            .keypair(set.id, &mut pk, &mut sk)
            .and_then(|()| peer.sign(set.id, &mut signature, &message, &sk))
            .and_then(|_| peer.verify(set.id, &message, &signature, &pk));
        (fold(fold(0, &pk), &signature), made == Ok(true))
    }

    pub(in crate::builds) fn run(
        dir: &Path,
        c: &Configuration,
        set: Set,
        count: usize,
    ) -> Result<Report, Failure> {
        let peer = Peers::find(dir, &c.backend).map_err(|u| Failure::unavailable(u.to_string()))?;
        let path = set.path();
        let (round, name) = path.split_once('/').unwrap_or_default();
        let theirs = peer.set(name).filter(|_| peer.round() == round).cloned();
        let Some(theirs) = theirs else {
            return Err(Failure::input(format!("{} has no set '{path}'", peer.name())));
        };
        let (peer, theirs) = (&*peer, &theirs);
        let work = move || -> (Vec<(u64, bool)>, usize) {
            let items = (0..count).map(|item| one(peer, theirs, item)).collect();
            (items, threads_now())
        };
        let done = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(4 * STACK_BYTES).spawn_scoped(scope, work);
            thread.map_err(Failure::unavailable)?.join().map_err(|_| Failure::refused("the build panicked"))
        });
        let (items, threads) = done?;
        // What this process was told, which may not be what its parent meant.
        let told = std::env::var("OMP_NUM_THREADS").ok();
        let openmp = told.filter(|_| c.openmp.is_some()).map(|n| format!("+omp={n}")).unwrap_or_default();
        Ok(Report {
            backend: format!("{}{openmp}", peer.name()),
            summary: peer.card().flags.clone(),
            elimination: theirs.code.clone(),
            own_products: true,
            aes: peer.aes().to_owned(),
            // Without the one that waits for the work.
            threads: threads.saturating_sub(1),
            count,
            valid: items.iter().filter(|i| i.1).count(),
            sum: items.iter().fold(0, |sum, i| fold(sum, &i.0.to_le_bytes())),
        })
    }
}

/// Those that can run here, and why the others cannot.
pub(super) fn all(context: &lanework_suite::Context) -> Vec<Result<Build, (String, String)>> {
    #[cfg(feature = "peers")]
    if let Some(dir) = &context.peers {
        return found::all(dir);
    }
    let _ = context;
    Vec::new()
}

/// The workload of a build, in this process.
pub(super) fn run(
    context: &lanework_suite::Context,
    c: &Configuration,
    set: Set,
    count: usize,
) -> Result<Report, Failure> {
    #[cfg(feature = "peers")]
    if let Some(dir) = &context.peers {
        return found::run(dir, c, set, count);
    }
    let _ = (context, set, count);
    Err(Failure::unavailable(format!("{}: peers were not asked for (--peers)", c.backend)))
}
