//! `lanework vdf`: the delay function's jobs.
#![forbid(unsafe_code)]

use std::path::Path;

use lanework_study::{Failure, Outcome};
use lanework_suite::Job;
use lanework_suite::vdf::{BITS, Operation};
use lanework_vdf::number;

use crate::files::{Access, Sink, check_distinct};

use crate::ui::Session;

pub(crate) mod args;
mod client;
mod compact;
mod group;
mod interrupt;
mod meter;
mod proof_file;
mod prove;
mod verify;

#[cfg(test)]
mod tests;

use args::{DiscriminantArgs, Format, OutputArgs, VdfArgs, VdfJob};
use group::Named;

pub(crate) fn run(session: &Session, args: VdfArgs) -> Result<Outcome, Failure> {
    match args.job {
        VdfJob::Discriminant(a) => discriminant(session, &a),
        VdfJob::Evaluate(a) => prove::evaluate(session, &a),
        VdfJob::Prove(a) => prove::prove(session, &a),
        VdfJob::Compact(a) => compact::run(session, &a),
        VdfJob::Verify(a) => verify::run(session, &a),
        VdfJob::Client(a) => client::run(session, &a),
    }
}

fn discriminant(session: &Session, args: &DiscriminantArgs) -> Result<Outcome, Failure> {
    let output = Output::new(session, &args.output, None)?;
    let named = Named::by_challenge(&args.challenge.0, "--challenge".to_owned(), args.bits, "--bits")?;
    let engine = session.engine(Job::Vdf(Operation::Discriminant, BITS))?;
    let group = named.find(engine)?;
    let number = group.discriminant.value();
    let mut object = group.json();
    object.insert("backend".to_owned(), engine.name().into());
    object.insert("decimal".to_owned(), number::to_decimal(&number).into());
    let mut bytes = vec![0; number.bits().div_ceil(8)];
    number.magnitude().write_be_bytes(&mut bytes);
    output.write(object, &number::to_hexadecimal(&number), &bytes)?;
    Ok(Outcome::Yes)
}

/// Bytes in hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The members of a JSON object.
fn members(object: serde_json::Value) -> serde_json::Map<String, serde_json::Value> {
    match object {
        serde_json::Value::Object(members) => members,
        _ => serde_json::Map::new(),
    }
}

/// Where a result goes, opened before the work begins.
struct Output<'a> {
    args: &'a OutputArgs,
    sink: Sink<'a>,
}

impl<'a> Output<'a> {
    fn new(
        session: &Session,
        args: &'a OutputArgs,
        checkpoint: Option<&Path>,
    ) -> Result<Output<'a>, Failure> {
        if session.json && args.format != Format::Json {
            return Err(Failure::input("--json asks for an object and --format for something else")
                .help("leave one out"));
        }
        if args.format == Format::Raw {
            crate::ui::no_terminal(args.output.as_deref())?;
        }
        let path = args.output.as_deref().unwrap_or(Path::new("-"));
        check_distinct([], [path].into_iter().chain(checkpoint))?;
        Ok(Output { args, sink: Sink::create(path, Access::Public, args.force)? })
    }

    /// Writes the result in the form that was asked for.
    fn write(
        self,
        object: serde_json::Map<String, serde_json::Value>,
        text: &str,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let bytes = match self.args.format {
            Format::Json => format!("{}\n", serde_json::Value::Object(object)).into_bytes(),
            Format::Hex => format!("{text}\n").into_bytes(),
            Format::Raw => bytes.to_vec(),
        };
        self.sink.put(&bytes)
    }

    /// Whether the result leaves standard output free.
    fn is_elsewhere(&self) -> bool {
        self.args.output.as_deref().is_some_and(|path| path != Path::new("-"))
    }
}
