//! `lanework mayo keygen|sign|verify`: the jobs themselves, on files and pipes.
#![forbid(unsafe_code)]

mod device;
mod streams;
mod verdict;

use std::path::{Path, PathBuf};

use lanework_mayo::batch::{self, Signers, Verifiers};
use lanework_mayo::{
    MessageDigest, Params, PublicKey, Round, SecretKey, Set, SignOptions, Signature, SigningKey, VerifyingKey,
};
use lanework_mayo_cuda::{FleetSigners, FleetVerifiers};
use lanework_study::{Failure, Outcome};
use lanework_suite::Job;
use lanework_suite::mayo::Operation;

use device::Devices;
use getrandom::SysRng;
use lanework_cpu::Threads;
use verdict::{Judge, Verdict};

use crate::args::{MayoArgs, MayoJob, SetName};
use crate::files::{self, Access, Sink};
use crate::secret_file;
use crate::ui::{self, Session};

/// Longer than any key file: MAYO-5's public key is 5.5 kB before PEM.
const KEY_FILE_LIMIT: u64 = 64 * 1024;

/// Files whose digests are held together, unless a device can use more.
const GROUP: usize = 256;

pub(crate) fn run(session: &Session, args: MayoArgs) -> Result<Outcome, Failure> {
    // A damaged profile is reported before any file is touched, not passed over.
    session.profile.as_ref().map_err(Clone::clone)?;
    match args.job {
        MayoJob::Keygen { set, round, secret_key, public_key, force } => {
            keygen(session, params(set, round), &secret_key, &public_key, force)
        }
        MayoJob::Sign { key, output, threads, verify, force, files } => {
            sign(session, &key, output.as_deref(), threads, verify, force, &files)
        }
        MayoJob::Verify { key, signature, threads, files } => {
            verify(session, &key, signature.as_deref(), threads, &files)
        }
    }
}

fn params(set: SetName, round: u8) -> &'static Params {
    let set = match set {
        SetName::Mayo1 => Set::Mayo1,
        SetName::Mayo2 => Set::Mayo2,
        SetName::Mayo3 => Set::Mayo3,
        SetName::Mayo5 => Set::Mayo5,
    };
    Params::of(if round == 2 { Round::Two } else { Round::Three }, set)
}

fn keygen(
    session: &Session,
    params: &'static Params,
    secret_path: &Path,
    public_path: &Path,
    force: bool,
) -> Result<Outcome, Failure> {
    files::check_distinct([], [secret_path, public_path])?;
    let secret_sink = Sink::create(secret_path, Access::Private, force)?;
    let public_sink = Sink::create(public_path, Access::Public, force)?;
    let engine = session.engine(Job::Mayo(params, Operation::Keygen))?;
    let secret = SecretKey::generate_os(params).map_err(Failure::unavailable)?;
    let mut devices = Devices::asked(session, engine)?;
    let public = match &mut devices {
        None => secret.public_key(engine),
        Some(devices) => {
            let mut made = devices.keygen(std::slice::from_ref(&secret)).map_err(Failure::unavailable)?;
            made.pop().ok_or_else(|| Failure::unavailable("the device made no key"))?
        }
    };
    let used = devices.as_ref().map(Devices::report);
    let (secret_pem, public_pem) =
        (secret.to_pem(engine).map_err(Failure::input)?, public.to_pem().map_err(Failure::input)?);
    // The secret key goes first: a public key whose secret half was never stored would be worse than none.
    files::put_all(vec![(secret_sink, secret_pem.as_bytes()), (public_sink, public_pem.as_bytes())])?;
    if session.json {
        eprintln_or_print(
            &[secret_path, public_path],
            &serde_json::json!({
                "set": params.set().to_string(), "round": params.round().number(), "backend": engine.name(),
                "devices": used, "secret_key": shown(secret_path), "public_key": shown(public_path),
            })
            .to_string(),
        );
    }
    Ok(Outcome::Yes)
}

/// The JSON line goes to standard output unless that carries a key or a signature.
fn eprintln_or_print(outputs: &[&Path], line: &str) {
    if outputs.iter().any(|p| p.as_os_str() == "-") { eprintln!("{line}") } else { println!("{line}") }
}

fn secret_key(session: &Session, path: &Path) -> Result<SecretKey, Failure> {
    secret_file::warn_if_shared(session, path);
    let text = files::read_text(path, KEY_FILE_LIMIT)?;
    // Reading recomputes the public key, to check that the document's two halves belong together.
    SecretKey::from_pem(session.usual_engine()?, &text)
        .map_err(|e| Failure::file(path, e).help("name a secret key that `lanework mayo keygen` wrote"))
}

/// A path for JSON, which cannot hold names that are not Unicode.
fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".sig");
    PathBuf::from(name)
}

fn sign(
    session: &Session,
    key_path: &Path,
    output: Option<&Path>,
    threads: Option<usize>,
    verify: bool,
    force: bool,
    inputs: &[PathBuf],
) -> Result<Outcome, Failure> {
    if inputs.len() == 1 {
        ui::no_terminal(output)?;
    }
    let outputs: Vec<PathBuf> = match (inputs, output) {
        ([_], output) => vec![output.map_or_else(|| PathBuf::from("-"), Path::to_owned)],
        (_, Some(_)) => {
            return Err(Failure::input(format!(
                "--output: one name for the signatures of {} files",
                inputs.len()
            ))
            .help("leave it out: each signature goes to FILE.sig"));
        }
        (_, None) if inputs.iter().any(|p| p.as_os_str() == "-") => {
            return Err(Failure::input("standard input: no FILE.sig for its signature")
                .help("sign it alone, or name a file"));
        }
        (_, None) => inputs.iter().map(|p| beside(p)).collect(),
    };
    let read = inputs.iter().map(PathBuf::as_path).chain([key_path]);
    files::check_distinct(read, outputs.iter().map(PathBuf::as_path))?;
    let only = match outputs.as_slice() {
        [output] => Some(Sink::create(output, Access::Public, force)?),
        // There may be more than can be open at once.
        many => many.iter().try_for_each(|output| files::may_write(output, force)).map(|()| None)?,
    };
    let key = secret_key(session, key_path)?;
    let params = key.params();
    let operation = if inputs.len() == 1 { Operation::Sign } else { Operation::SignExpanded };
    let job = Job::Mayo(params, operation);
    let engine = session.engine(job)?;
    let options = SignOptions { verify };
    let failed = |e: lanework_mayo::Error| match e {
        lanework_mayo::Error::Fault | lanework_mayo::Error::Exhausted => Failure::refused(e),
        _ => Failure::unavailable(e),
    };
    let pool = if inputs.len() > 1 { session.pool(threads, job)? } else { None };
    let threads = pool.as_ref().map_or(Threads::One, Threads::Pool);
    let digests = |paths: &[PathBuf]| -> Result<Vec<MessageDigest>, Failure> {
        streams::digests(engine, params, paths, threads)?.into_iter().collect()
    };
    let mut devices = Devices::asked(session, engine)?;
    let signatures: Vec<Signature> = if let Some(devices) = &mut devices {
        sign_on(session, devices, &key, inputs, digests).map_err(|e| e.into_failure(failed))?
    } else if let [input] = inputs {
        let digest = streams::digest(engine, params, input)?;
        vec![key.sign_digest_with(engine, &digest, options, &mut SysRng).map_err(failed)?]
    } else {
        let expanded = SigningKey::new(engine, &key);
        let bar = session.progress(inputs.len() as u64, "signing");
        let mut done = Vec::with_capacity(inputs.len());
        for group in inputs.chunks(GROUP) {
            let signers = Signers::One(&expanded);
            let signed = batch::sign_digests(signers, &digests(group)?, options, &mut SysRng, threads)
                .map_err(failed)?;
            done.extend(signed.into_iter().collect::<Result<Vec<_>, _>>().map_err(failed)?);
            bar.inc(group.len() as u64);
        }
        bar.finish_and_clear();
        done
    };
    let used = devices.as_ref().map(Devices::report);
    match (only, signatures.as_slice()) {
        (Some(sink), [signature]) => sink.put(signature.as_bytes())?,
        (_, signatures) => {
            for (output, signature) in outputs.iter().zip(signatures) {
                files::write(output, signature.as_bytes(), Access::Public, force)?;
            }
        }
    }
    if session.json {
        let outs: Vec<&Path> = outputs.iter().map(PathBuf::as_path).collect();
        eprintln_or_print(
            &outs,
            &session
                .with_warnings(serde_json::json!({
                    "set": params.set().to_string(), "round": params.round().number(), "backend": engine.name(),
                    "threads": threads.count(), "devices": used, "signatures": outputs.iter().map(|p| shown(p)).collect::<Vec<_>>(), "bytes": params.signature_bytes(),
                }))
                .to_string(),
        );
    }
    Ok(Outcome::Yes)
}

/// Signs on the devices; for several files, with a key that is expanded there.
fn sign_on(
    session: &Session,
    devices: &mut Devices,
    key: &SecretKey,
    inputs: &[PathBuf],
    digests: impl Fn(&[PathBuf]) -> Result<Vec<MessageDigest>, Failure>,
) -> Result<Vec<Signature>, Signing> {
    if inputs.len() == 1 {
        let made = devices.sign(FleetSigners::Each(std::slice::from_ref(key)), &digests(inputs)?)?;
        return Ok(made.into_iter().collect::<Result<_, _>>()?);
    }
    let held = devices.expand_secret(key).map_err(Failure::unavailable)?;
    let bar = session.progress(inputs.len() as u64, "signing");
    let mut done = Vec::with_capacity(inputs.len());
    for group in inputs.chunks(device::GROUP) {
        let signed = devices.sign(FleetSigners::One(&held), &digests(group)?)?;
        done.extend(signed.into_iter().collect::<Result<Vec<_>, _>>()?);
        bar.inc(group.len() as u64);
    }
    bar.finish_and_clear();
    Ok(done)
}

/// What can go wrong with signing: a file, or the operation.
enum Signing {
    File(Failure),
    Scheme(lanework_mayo::Error),
}

impl From<Failure> for Signing {
    fn from(failure: Failure) -> Signing {
        Signing::File(failure)
    }
}

impl From<lanework_mayo::Error> for Signing {
    fn from(error: lanework_mayo::Error) -> Signing {
        Signing::Scheme(error)
    }
}

impl Signing {
    fn into_failure(self, scheme: impl Fn(lanework_mayo::Error) -> Failure) -> Failure {
        match self {
            Signing::File(failure) => failure,
            Signing::Scheme(error) => scheme(error),
        }
    }
}

fn verify(
    session: &Session,
    key_path: &Path,
    signature: Option<&Path>,
    threads: Option<usize>,
    inputs: &[PathBuf],
) -> Result<Outcome, Failure> {
    let signatures: Vec<PathBuf> = match (inputs, signature) {
        ([_], Some(path)) => vec![path.to_owned()],
        (_, Some(_)) => {
            return Err(Failure::input(format!(
                "--signature: one name for the signatures of {} files",
                inputs.len()
            ))
            .help("leave it out: each signature is in FILE.sig"));
        }
        (_, None) => inputs.iter().map(|p| beside(p)).collect(),
    };
    let read = inputs.iter().chain(&signatures).map(PathBuf::as_path).chain([key_path]);
    files::check_distinct(read, [])?;
    let text = files::read_text(key_path, KEY_FILE_LIMIT)?;
    let key = PublicKey::from_pem(&text).map_err(|e| {
        Failure::file(key_path, e).help("name a public key that `lanework mayo keygen` wrote")
    })?;
    let params = key.params();
    let operation = if inputs.len() == 1 { Operation::Verify } else { Operation::VerifyExpanded };
    let job = Job::Mayo(params, operation);
    let engine = session.engine(job)?;
    let pool = if inputs.len() > 1 { session.pool(threads, job)? } else { None };
    let threads = pool.as_ref().map_or(Threads::One, Threads::Pool);
    let mut devices = Devices::asked(session, engine)?;
    let group = if devices.is_some() { device::GROUP } else { GROUP };
    let mut judge: Box<Judge<'_>> = if let Some(devices) = &mut devices {
        let held = devices.expand_public(&key).map_err(Failure::unavailable)?;
        Box::new(move |digests, signatures| devices.verify(FleetVerifiers::One(&held), digests, signatures))
    } else if inputs.len() == 1 {
        Box::new(|digests, signatures| {
            let both = digests.iter().zip(signatures);
            Ok(both.map(|(digest, signature)| key.verify_digest(engine, digest, signature)).collect())
        })
    } else {
        let expanded = VerifyingKey::new(engine, &key);
        Box::new(move |digests, signatures| {
            batch::verify_digests(Verifiers::One(&expanded), digests, signatures, threads)
        })
    };
    let mut verdicts: Vec<Verdict> = Vec::with_capacity(inputs.len());
    let bar = session.progress(inputs.len() as u64, "verifying");
    for (files_, signatures) in inputs.chunks(group).zip(signatures.chunks(group)) {
        let digests = streams::digests(engine, params, files_, threads)?;
        let signatures = signatures.iter().map(|path| streams::signature(params, key_path, path));
        let read: Vec<Result<(MessageDigest, Signature), Failure>> = digests
            .into_iter()
            .zip(signatures)
            .map(|(digest, signature)| Ok((digest?, signature?)))
            .collect();
        let (digests, signatures): (Vec<_>, Vec<_>) = read.iter().flatten().cloned().unzip();
        let judged = judge(&digests, &signatures).map_err(Failure::unavailable)?;
        verdicts.extend(Verdict::of(read, judged));
        bar.inc(files_.len() as u64);
    }
    bar.finish_and_clear();
    drop(judge);
    let used = devices.as_ref().map(Devices::report);
    // For a single file there is nothing else to report.
    if let [Verdict::Malformed(why)] = verdicts.as_slice() {
        return Err(why.clone());
    }
    if session.json {
        let results: Vec<_> =
            inputs.iter().zip(&verdicts).map(|(file, verdict)| verdict.json(file)).collect();
        println!(
            "{}",
            serde_json::json!({
                "set": params.set().to_string(), "round": params.round().number(), "backend": engine.name(),
                "threads": threads.count(), "devices": used, "results": results,
            })
        );
    } else {
        for (file, verdict) in inputs.iter().zip(&verdicts) {
            println!("{}: {verdict}", lanework_study::text::shown(file));
        }
    }
    Ok(Verdict::worst(&verdicts))
}
