//! `lanework doctor`: what this machine offers and what limits measuring on it.
#![forbid(unsafe_code)]

use std::fmt::Write as _;

use lanework_cpu::{Backends, Threads};
use lanework_race::clock::Monotonic;
use lanework_race::machine::Machine;
use lanework_study::{Failure, Outcome};
use lanework_suite::device::CUDA;

use crate::profile;
use crate::ui::{Session, counted};

/// A backend.
#[derive(serde::Serialize)]
struct Row {
    primitive: &'static str,
    #[serde(rename = "backend")]
    name: &'static str,
    what: &'static str,
    /// Why it cannot run here.
    unavailable: Option<String>,
    /// Whether it is used unless a job chooses another.
    chosen: bool,
}

/// What was found.
pub(crate) struct Findings {
    machine: Machine,
    features: String,
    masked: String,
    backends: Vec<Row>,
    chosen_error: Option<String>,
    peers: Vec<(String, Result<String, String>)>,
    /// The CUDA devices, or why there is none.
    devices: Result<Vec<lanework_cuda::Card>, String>,
}

pub(crate) fn run(session: &Session) -> Result<Outcome, Failure> {
    let found = inspect(session);
    if session.json {
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
                "backends": found.backends, "peers": peers, "cuda": devices,
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
        // The one JSON object already has the error.
        Some(_) if session.json => Ok(Outcome::Unavailable),
        Some(why) => {
            Err(Failure::unavailable(why).help("name another with --backend or LANEWORK_BACKEND, or none"))
        }
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

/// The rows of one primitive's table; and why none is chosen, if none is.
fn rows<K: Backends>(session: &Session, rows: &mut Vec<Row>, error: &mut Option<String>) {
    let chosen = session.usual_engine::<K>().map_err(|e| e.message().to_owned());
    rows.extend(K::BACKENDS.iter().map(|backend| Row {
        primitive: K::PRIMITIVE,
        name: backend.name(),
        what: backend.summary(),
        unavailable: backend.get(&session.context.cpu).err().map(|u| u.why),
        chosen: chosen.as_ref().is_ok_and(|engine| engine.name() == backend.name()),
    }));
    if let (None, Err(why)) = (&error, chosen) {
        *error = Some(why);
    }
}

pub(crate) fn inspect(session: &Session) -> Findings {
    let cpu = &session.context.cpu;
    let devices = lanework_cuda::devices().map_err(|u| u.why);
    // Devices are chosen separately; their backend is listed here all the same, and can be forced and required.
    let on_devices = Row {
        primitive: "mayo",
        name: CUDA,
        what: "batches on CUDA devices, if --device asks for one; so far run only on an H100",
        unavailable: devices.as_ref().err().cloned(),
        chosen: session.context.device.is_asked(),
    };
    let (mut backends, mut chosen_error) = (Vec::new(), None);
    rows::<lanework_mayo::Kernels>(session, &mut backends, &mut chosen_error);
    backends.push(on_devices);
    rows::<lanework_magma::backend::Kernels>(session, &mut backends, &mut chosen_error);
    rows::<lanework_integer::backend::Gcds>(session, &mut backends, &mut chosen_error);
    rows::<lanework_vdf::backend::Kernels>(session, &mut backends, &mut chosen_error);
    Findings {
        machine: Machine::inspect(&Monotonic::new(), Vec::new()),
        features: cpu.features().to_string(),
        masked: cpu.masked().to_string(),
        backends,
        chosen_error,
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
        .chain(lanework_suite::vdf::peers::found(&dir))
        .collect()
}

#[cfg(not(feature = "peers"))]
fn peers(_: &Session) -> Vec<(String, Result<String, String>)> {
    Vec::new()
}

/// The processor in two lines: the head of the tour.
pub(crate) fn brief(found: &Findings) -> String {
    let summary = found.machine.summary();
    format!("{}\nfeatures    {}\n", summary.lines().next().unwrap_or_default(), or_none(&found.features))
}

/// The machine and the backends: the head of the tour with `--verbose`.
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
    for Row { primitive, name, what, unavailable, chosen } in &found.backends {
        let state = match (unavailable, chosen) {
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
                "profile     {} of {}, {}",
                lanework_study::text::shown(&path),
                p.date,
                counted(p.choices.len() as u64, "choice", "choices")
            )
        }
        (Some(path), Ok(None)) if path.exists() => writeln!(
            out,
            "profile     {} is for another machine, or features are masked; not used. `lanework tune --force` writes a new one",
            lanework_study::text::shown(&path)
        ),
        (Some(path), Ok(None)) => {
            writeln!(out, "profile     none; `lanework tune` writes {}", lanework_study::text::shown(&path))
        }
        (None, Ok(_)) => {
            writeln!(out, "profile     no place for one: neither LANEWORK_PROFILE nor HOME is set")
        }
    };
    out
}
