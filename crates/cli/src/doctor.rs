//! `lanework doctor`: what this machine offers and what limits measuring on it.
#![forbid(unsafe_code)]

use std::fmt::Write as _;

use lanework_cpu::Threads;
use lanework_lab::clock::Monotonic;
use lanework_lab::machine::Machine;
use lanework_subjects::device::CUDA;

use crate::outcome::{Failure, Outcome};
use crate::profile;
use crate::ui::Session;

/// What was found.
pub(crate) struct Findings {
    machine: Machine,
    features: String,
    masked: String,
    /// (primitive, backend, what it is, why not or None, whether it is the one chosen)
    backends: Vec<(&'static str, String, String, Option<String>, bool)>,
    chosen_error: Option<String>,
    peers: Vec<(String, Result<String, String>)>,
    /// The CUDA devices, or why there is none.
    devices: Result<Vec<lanework_cuda::Card>, String>,
}

pub(crate) fn run(session: &Session) -> Result<Outcome, Failure> {
    let found = inspect(session);
    if session.json {
        let backends: Vec<_> = found
            .backends
            .iter()
            .map(|(p, b, what, why, chosen)| {
                serde_json::json!({ "primitive": p, "backend": b, "what": what, "unavailable": why, "chosen": chosen })
            })
            .collect();
        let peers: Vec<_> = found
            .peers
            .iter()
            .map(|(name, state)| {
                serde_json::json!({
                    "name": name, "what": state.as_ref().ok(), "unavailable": state.as_ref().err(),
                })
            })
            .collect();
        let devices = match &found.devices {
            Ok(cards) => serde_json::json!({ "devices": cards.iter().map(card).collect::<Vec<_>>() }),
            Err(why) => serde_json::json!({ "devices": [], "unavailable": why }),
        };
        println!(
            "{}",
            serde_json::json!({
                "machine": found.machine, "features": found.features, "masked": found.masked,
                "backends": backends, "peers": peers, "cuda": devices,
                "profile": profile::path().map(|p| p.display().to_string()),
                "profile_used": session.profile.as_ref().is_ok_and(Option::is_some),
                "profile_error": session.profile.as_ref().err().map(Failure::message),
                "error": found.chosen_error,
            })
        );
    } else {
        print!("{}", short(&found));
        print!("{}", long(session, &found));
    }
    match found.chosen_error {
        // The object has said so, and there is to be one object.
        Some(_) if session.json => Ok(Outcome::Unavailable),
        Some(why) => Err(Failure::unavailable(why)),
        None => Ok(Outcome::Yes),
    }
}

/// A CUDA device as data.
fn card(card: &lanework_cuda::Card) -> serde_json::Value {
    serde_json::json!({
        "ordinal": card.ordinal, "name": card.name, "capability": [card.capability.0, card.capability.1],
        "multiprocessors": card.multiprocessors, "memory": card.memory, "shared_per_block": card.shared_per_block,
        "l2": card.l2, "clock_khz": card.clock_khz, "driver": [card.driver.0, card.driver.1],
    })
}

pub(crate) fn inspect(session: &Session) -> Findings {
    let cpu = &session.context.cpu;
    let (engine, choice) = (session.mayo_engine(""), session.magma_choice(""));
    let mayo = lanework_mayo::backend::BACKENDS.iter().map(|b| {
        let chosen = engine.as_ref().is_ok_and(|e| e.name() == b.name());
        ("mayo", b.name(), b.summary(), b.get(cpu).err(), chosen)
    });
    let magma = lanework_magma::backend::BACKENDS.iter().map(|b| {
        let chosen = choice.as_ref().is_ok_and(|c| c.name() == b.name());
        ("magma", b.name(), b.summary(), b.get(cpu).err(), chosen)
    });
    let integers = session.integer_backend();
    let integer = lanework_integer::backend::BACKENDS.iter().map(|b| {
        let chosen = integers.as_ref().is_ok_and(|c| c.name() == b.name());
        ("integer", b.name(), b.summary(), b.get(cpu).err(), chosen)
    });
    let chain = session.vdf_backend("vdf/1024/square");
    let vdf = lanework_vdf::backend::BACKENDS.iter().map(|b| {
        let chosen = chain.as_ref().is_ok_and(|c| c.name() == b.name());
        ("vdf", b.name(), b.summary(), b.get(cpu).err(), chosen)
    });
    let devices = lanework_cuda::devices().map_err(|u| u.why);
    // Devices are an axis of their own; what runs on them stands here all the same, and can be forced and required.
    let kernels = {
        let wrong = || devices.as_ref().err().cloned();
        let why = wrong().map(|why| lanework_cpu::Unavailable { what: CUDA.to_owned(), why });
        let what = "batches on CUDA devices, where --device asks for one; unproven on hardware";
        ("mayo", CUDA, what, why, session.context.device.is_asked())
    };
    let backends = mayo
        .chain([kernels])
        .chain(magma)
        .chain(integer)
        .chain(vdf)
        .map(|(primitive, name, summary, unavailable, chosen)| {
            (primitive, name.to_owned(), summary.to_owned(), unavailable.map(|u| u.why), chosen)
        })
        .collect();
    Findings {
        machine: Machine::inspect(&Monotonic::new(), Vec::new()),
        features: cpu.features().to_string(),
        masked: cpu.masked().to_string(),
        backends,
        chosen_error: engine
            .err()
            .or(choice.err())
            .or(integers.err())
            .or(chain.err())
            .map(|e| e.message().to_owned()),
        peers: peers(session),
        devices,
    }
}

#[cfg(feature = "peers")]
fn peers(session: &Session) -> Vec<(String, Result<String, String>)> {
    let dir = session.context.peers.clone().unwrap_or_else(|| "target/peers".into());
    lanework_peers::Peers::discover(&dir)
        .into_iter()
        .map(|p| match p {
            Ok(peer) => {
                let card = peer.card();
                (
                    peer.name().to_owned(),
                    Ok(format!(
                        "{} {} {}, {}",
                        card.project, card.version, card.round, card.compiler_version
                    )),
                )
            }
            Err(u) => (u.name.clone(), Err(u.to_string())),
        })
        .chain(lanework_subjects::vdf::peers::found(&dir))
        .collect()
}

#[cfg(not(feature = "peers"))]
fn peers(_: &Session) -> Vec<(String, Result<String, String>)> {
    Vec::new()
}

/// The machine and the backends: the head of the tour.
pub(crate) fn short(found: &Findings) -> String {
    let mut out = found.machine.summary();
    let _ = writeln!(out, "features    {}", or_none(&found.features));
    if !found.masked.is_empty() {
        let _ = writeln!(out, "masked      {}", found.masked);
    }
    let _ = writeln!(out, "threads     {}", Threads::Own(0).count());
    match &found.devices {
        Ok(cards) => {
            for card in cards {
                let _ = writeln!(out, "gpu         {}: {card}", card.ordinal);
            }
        }
        Err(why) => {
            let _ = writeln!(out, "gpu         none: {why}");
        }
    }
    for (primitive, name, what, why, chosen) in &found.backends {
        let state = match (why, chosen) {
            (Some(why), _) => format!("unavailable: {why}"),
            (None, true) => "chosen".to_owned(),
            (None, false) => "available".to_owned(),
        };
        let _ = writeln!(out, "backend     {primitive}/{name}: {state} ({what})");
    }
    out
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none beyond the baseline" } else { text }
}

fn long(session: &Session, found: &Findings) -> String {
    let mut out = String::new();
    for (name, state) in &found.peers {
        let _ = match state {
            Ok(what) => writeln!(out, "peer        {name}: {what}"),
            Err(why) => writeln!(out, "peer        {why}"),
        };
    }
    if !cfg!(feature = "peers") {
        let _ = writeln!(out, "peers       not in this build (feature `peers`)");
    }
    let _ = match (profile::path(), &session.profile) {
        (_, Err(damaged)) => writeln!(out, "profile     damaged: {}", damaged.message()),
        (Some(path), Ok(Some(p))) => {
            for (function, spill) in &p.spills {
                let _ = writeln!(out, "spills      {function}: {}", spill.told());
            }
            writeln!(
                out,
                "profile     {} of {}, {} choices",
                crate::ui::shown(&path),
                p.date,
                p.choices.len()
            )
        }
        (Some(path), Ok(None)) if path.exists() => writeln!(
            out,
            "profile     {} is of another machine, or features are masked; not used. `lanework tune` writes a new one",
            crate::ui::shown(&path)
        ),
        (Some(path), Ok(None)) => {
            writeln!(out, "profile     none; `lanework tune` writes {}", crate::ui::shown(&path))
        }
        (None, Ok(_)) => {
            writeln!(out, "profile     no place for one: neither LANEWORK_PROFILE nor HOME is set")
        }
    };
    out
}
