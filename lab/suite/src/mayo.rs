//! MAYO as subjects: `mayo/round3/mayo1/sign` and its siblings.
//!
//! Every iteration signs or verifies another message-salt pair out of a small pool, so that restarts of signing (7 % of
//! MAYO-1's in round 3) come as often as they do in use, and no branch predictor learns one input by heart. A pool of
//! inputs is made before timing starts. Randomness is drawn before timing too: a race of signatures is not a race of
//! system calls, and the peers' generator is replaced by a cheap one for the same reason.
#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::hint::black_box;

use lanework_cpu::{Cpu, Select, Threads};
use lanework_mayo::batch::{self, Signers, Verifiers};
use lanework_mayo::internals::{BACKENDS, check as checks};
use lanework_mayo::{
    Engine, Params, PublicKey, Round, SecretKey, Set, SignOptions, Signature, SigningKey, VerifyingKey,
};
use lanework_race::gate::{Gate, GateRow};
use lanework_race::subject::{Facts, Runnable, Subject, Unavailable, Variant, work};
use rand_core::{TryCryptoRng, TryRng};

use crate::device::{CUDA, DeviceChoice};
use crate::{Context, Depth, missing, row, selects, skipped};

mod batches;
pub mod cuda;
mod floor;
#[cfg(feature = "peers")]
pub mod peers;
pub mod phases;
pub mod threads;

pub(crate) use floor::floor;

/// The operations that race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A compact key pair from a seed.
    Keygen,
    /// A signature from a compact key, expansion included.
    Sign,
    /// A verification with a compact key, expansion included.
    Verify,
    /// A signature from an expanded key.
    SignExpanded,
    /// A verification with an expanded key.
    VerifyExpanded,
    /// An expanded public key from a compact one.
    ExpandPublic,
}

impl Operation {
    /// All six; the first three are the headline.
    pub const ALL: [Operation; 6] = [
        Operation::Keygen,
        Operation::Sign,
        Operation::Verify,
        Operation::SignExpanded,
        Operation::VerifyExpanded,
        Operation::ExpandPublic,
    ];

    /// The last component of the subject's path.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Keygen => "keygen",
            Operation::Sign => "sign",
            Operation::Verify => "verify",
            Operation::SignExpanded => "sign-expanded",
            Operation::VerifyExpanded => "verify-expanded",
            Operation::ExpandPublic => "expand-public",
        }
    }

    /// The command that does it.
    #[must_use]
    pub const fn command(self) -> Option<&'static str> {
        match self {
            Operation::Keygen => Some("mayo keygen"),
            Operation::Sign => Some("mayo sign"),
            Operation::Verify => Some("mayo verify"),
            Operation::SignExpanded => Some("mayo sign FILE FILE..."),
            Operation::VerifyExpanded => Some("mayo verify FILE FILE..."),
            // Once for each run of a command, on the backend of what follows.
            Operation::ExpandPublic => None,
        }
    }
}

/// Different inputs that an operation goes through in turn.
const POOL: usize = 64;

/// Items in a batch: a multiple of the usual core counts, and long enough that handing work out hardly counts.
pub const BATCH: usize = 32;

/// The path of an operation's race.
#[must_use]
pub fn path(params: &Params, operation: Operation) -> String {
    format!("mayo/{}/{}", params.path(), operation.name())
}

/// Every MAYO subject: both rounds, four sets, six operations; and batches by their size.
#[must_use]
pub fn subjects(context: &Context) -> Vec<Subject> {
    Params::all()
        .flat_map(|p| Operation::ALL.into_iter().map(move |operation| (p, operation)))
        .map(|(p, operation)| subject(context, p, operation))
        .chain(batches::subjects(context))
        .collect()
}

/// Round 3: keygen, sign and verify of the four sets.
#[must_use]
pub fn headline(context: &Context) -> Vec<Subject> {
    Set::ALL
        .into_iter()
        .flat_map(|set| {
            [Operation::Keygen, Operation::Sign, Operation::Verify]
                .map(|operation| subject(context, Params::of(Round::DEFAULT, set), operation))
        })
        .collect()
}

/// One subject with all its variants; `portable` is the baseline.
#[must_use]
pub fn subject(context: &Context, params: &'static Params, operation: Operation) -> Subject {
    let gate_context = context.clone();
    let gate = Gate::new(move || Ok(gate_rows(&gate_context, params)));
    let mut variants = BACKENDS.iter().map(|b| {
        let cpu = context.cpu;
        let name = b.name();
        Variant::new(name, move || {
            let engine =
                Engine::choose(&cpu, Select::Named(name)).map_err(|u| Unavailable::because(u.why))?;
            one_by_one(engine, fastest(&cpu)?, params, operation)
        })
    });
    let first =
        variants.next().unwrap_or_else(|| Variant::new("none", || Err(Unavailable::because("no backend"))));
    let mut subject = Subject::new(path(params, operation), gate, first);
    for v in variants {
        subject = subject.with(v);
    }
    let cpu = context.cpu;
    let cores = Threads::Own(0).count();
    let engine = Engine::choose(&context.cpu, context.settings.select("mayo"));
    let counts = if cores > 1 { vec![1, cores] } else { vec![1] };
    for threads in counts.into_iter().filter(|_| operation != Operation::ExpandPublic) {
        let engine = engine.clone();
        let backend = engine.as_ref().map_or("best", Engine::name).to_owned();
        let name =
            if threads == 1 { format!("{backend}+batch") } else { format!("{backend}+threads={threads}") };
        let variant = Variant::new(name, move || {
            let engine = engine.clone().map_err(|u| Unavailable::because(u.to_string()))?;
            in_batches(engine, fastest(&cpu)?, params, operation, (BATCH, threads))
        });
        subject = subject.with(variant.cores(threads).units(BATCH as u64));
    }
    if context.device.is_asked() {
        let emulated = context.device.is_hosted();
        for how in cuda::forms(emulated).into_iter().filter(|how| how.is_for(operation)) {
            subject = subject.with(cuda::variant(context, params, operation, how));
        }
    }
    #[cfg(feature = "peers")]
    for variant in peers::variants(context, params, operation) {
        subject = subject.with(variant);
    }
    subject
}

/// The fastest backend of this CPU.
///
/// # Errors
/// Where none can run.
pub fn fastest(cpu: &Cpu) -> Result<Engine, Unavailable> {
    Engine::choose(cpu, Select::Best).map_err(|u| Unavailable::because(u.to_string()))
}

/// What must hold before MAYO is timed: every backend that can run makes record 0 of the known answers, agrees with
/// the specification on fresh inputs, and refuses damaged signatures.
#[must_use]
pub fn gate_rows(context: &Context, params: &'static Params) -> Vec<GateRow> {
    let mut rows = Vec::new();
    for engine in Engine::all(&context.cpu) {
        match engine {
            Ok(engine) => checks::run(engine, params, checks::Depth::Quick, &mut |r| rows.push(row(r))),
            Err(unavailable) => rows.push(skipped(&place(params), &unavailable)),
        }
    }
    if context.device.is_asked() {
        rows.extend(cuda::gate_rows(context, params));
    }
    #[cfg(feature = "peers")]
    rows.extend(peers::gate_rows(context, params));
    rows
}

fn place(params: &Params) -> String {
    format!("mayo/{}", params.path())
}

/// All checks of MAYO on every backend; a required backend that cannot run is a failed row.
pub fn check(
    context: &Context,
    pattern: &str,
    depth: Depth,
    progress: &mut dyn FnMut(&GateRow),
) -> Vec<GateRow> {
    let mut rows = Vec::new();
    let mut push = |row: GateRow| {
        progress(&row);
        rows.push(row);
    };
    let wanted = context.device != DeviceChoice::None || context.settings.requires(CUDA);
    let mut devices = None;
    for params in Params::all() {
        if !pattern.is_empty() && !selects(pattern, &place(params)) {
            continue;
        }
        for engine in Engine::all(&context.cpu) {
            match engine {
                Ok(engine) => {
                    let mut each = |r| push(row(r));
                    match depth {
                        Depth::Quick => checks::run(engine, params, checks::Depth::Quick, &mut each),
                        Depth::KnownAnswers => {
                            each(checks::known_answers(engine, params, checks::Depth::Full));
                        }
                        Depth::Full => checks::run(engine, params, checks::Depth::Full, &mut each),
                    }
                }
                Err(unavailable) => push(missing(context, &place(params), &unavailable)),
            }
        }
        if wanted {
            let devices = devices.get_or_insert_with(|| {
                Engine::choose(&context.cpu, Select::Best).and_then(|cpu| cuda::fleet(context, cpu))
            });
            cuda::check(context, devices, params, depth, &mut push);
        }
        #[cfg(feature = "peers")]
        peers::gate_rows(context, params).into_iter().for_each(&mut push);
    }
    // Last of all: a device that fails one of its other forms is of no use for later checks.
    if let Some(Ok(fleet)) = &devices {
        for params in Params::all().filter(|p| pattern.is_empty() || selects(pattern, &place(p))) {
            cuda::check_forms(fleet, params, depth, &mut push);
        }
    }
    rows
}

/// Keys and messages for a race; made from fixed seeds, so that every launch sees the same.
struct Inputs {
    secret: SecretKey,
    public: PublicKey,
    keys: Vec<SecretKey>,
    messages: Vec<[u8; 32]>,
    /// What makes the inputs: the fastest backend here, whichever races. All make the same bytes (the gate has checked that),
    /// and a slow one would spend a short race's time on preparing it.
    maker: Engine,
}

/// A generator for inputs and randomizers. Races need variety, not secrecy, and must not time the system's generator.
pub(crate) struct Filler(u64);

impl Filler {
    pub(crate) fn new(seed: u64) -> Filler {
        Filler(seed)
    }

    pub(crate) fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            // SplitMix64 (Steele, Lea and Flood, 2014).
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            chunk.copy_from_slice(&(z ^ z >> 31).to_le_bytes()[..chunk.len()]);
        }
    }
}

impl TryRng for Filler {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        self.fill(out);
        Ok(())
    }
}

// The library requires a cryptographic generator by type; what this one makes is thrown away.
impl TryCryptoRng for Filler {}

impl Inputs {
    fn new(maker: Engine, params: &'static Params) -> Inputs {
        let mut filler = Filler::new(1);
        let keys: Vec<SecretKey> = (0..POOL).map(|_| SecretKey::generate(params, &mut filler)).collect();
        let secret = keys[0].clone();
        let public = secret.public_key(maker);
        let messages = (0..POOL)
            .map(|_| {
                let mut m = [0; 32];
                filler.fill(&mut m);
                m
            })
            .collect();
        Inputs { secret, public, keys, messages, maker }
    }

    fn signatures(&self) -> Result<Vec<Signature>, Unavailable> {
        let mut filler = Filler::new(2);
        self.messages
            .iter()
            .map(|m| self.secret.sign_with(self.maker, m, SignOptions::default(), &mut filler))
            .collect::<Result<_, _>>()
            .map_err(|e| Unavailable::because(e.to_string()))
    }
}

/// 1, 2, … POOL - 1, 0, 1, …
fn turns() -> impl FnMut() -> usize {
    let mut at = 0;
    move || {
        at = (at + 1) % POOL;
        at
    }
}

/// An operation called once for each unit. A result that is wrong ends the race by a panic, which the laboratory
/// reports as a failed launch.
pub(crate) fn one_by_one(
    engine: Engine,
    maker: Engine,
    params: &'static Params,
    operation: Operation,
) -> Result<Box<dyn Runnable>, Unavailable> {
    let inputs = Inputs::new(maker, params);
    let facts = move || Facts { backend: engine.name().to_owned(), notes: Vec::new() };
    let mut next = turns();
    let mut filler = Filler::new(3);
    let options = SignOptions::default();
    Ok(match operation {
        Operation::Keygen => work(move || drop(black_box(inputs.keys[next()].public_key(engine))), facts),
        Operation::Sign => work(
            move || {
                let made = inputs.secret.sign_with(engine, &inputs.messages[next()], options, &mut filler);
                assert!(black_box(made).is_ok());
            },
            facts,
        ),
        Operation::Verify => {
            let signatures = inputs.signatures()?;
            work(
                move || {
                    let i = next();
                    assert!(inputs.public.verify(engine, &inputs.messages[i], &signatures[i]).is_ok());
                },
                facts,
            )
        }
        Operation::SignExpanded => {
            let key = SigningKey::new(engine, &inputs.secret);
            work(
                move || {
                    let made = key.sign_with(&inputs.messages[next()], options, &mut filler);
                    assert!(black_box(made).is_ok());
                },
                facts,
            )
        }
        Operation::VerifyExpanded => {
            let signatures = inputs.signatures()?;
            let key = VerifyingKey::new(engine, &inputs.public);
            work(
                move || {
                    let i = next();
                    assert!(key.verify(&inputs.messages[i], &signatures[i]).is_ok());
                },
                facts,
            )
        }
        Operation::ExpandPublic => {
            work(move || drop(black_box(VerifyingKey::new(engine, &inputs.public))), facts)
        }
    })
}

/// The same operation through the batch calls, `items` at a time on a pool of `threads` that outlives the samples.
///
/// # Errors
/// Where the pool cannot be made.
///
/// # Panics
/// The work panics where a batch's result is wrong.
pub fn in_batches(
    engine: Engine,
    maker: Engine,
    params: &'static Params,
    operation: Operation,
    (items, threads): (usize, usize),
) -> Result<Box<dyn Runnable>, Unavailable> {
    let inputs = Inputs::new(maker, params);
    let pool = Threads::pool(threads).map_err(|e| Unavailable::because(e.to_string()))?;
    let facts =
        move || Facts { backend: engine.name().to_owned(), notes: vec![format!("batches of {items}")] };
    let repeat = |i: usize| i % POOL;
    let messages: Vec<[u8; 32]> = (0..items).map(|i| inputs.messages[repeat(i)]).collect();
    let options = SignOptions::default();
    let mut filler = Filler::new(3);
    Ok(match operation {
        Operation::Keygen => {
            let keys: Vec<SecretKey> = (0..items).map(|i| inputs.keys[repeat(i)].clone()).collect();
            work(
                move || {
                    let made = batch::keygen(engine, &keys, Threads::Pool(&pool));
                    assert!(black_box(made).is_ok_and(|m| m.len() == items));
                },
                facts,
            )
        }
        Operation::Sign | Operation::SignExpanded => {
            let expanded = SigningKey::new(engine, &inputs.secret);
            work(
                move || {
                    let signers = match operation {
                        Operation::Sign => Signers::OneCompact(engine, &inputs.secret),
                        _ => Signers::One(&expanded),
                    };
                    let made = batch::sign(signers, &messages, options, &mut filler, Threads::Pool(&pool));
                    assert!(black_box(made).is_ok_and(|m| m.iter().all(Result::is_ok)));
                },
                facts,
            )
        }
        Operation::Verify | Operation::VerifyExpanded => {
            let pool_of = inputs.signatures()?;
            let signatures: Vec<Signature> = (0..items).map(|i| pool_of[repeat(i)].clone()).collect();
            let expanded = VerifyingKey::new(engine, &inputs.public);
            work(
                move || {
                    let verifiers = match operation {
                        Operation::Verify => Verifiers::OneCompact(engine, &inputs.public),
                        _ => Verifiers::One(&expanded),
                    };
                    let done = batch::verify(verifiers, &messages, &signatures, Threads::Pool(&pool));
                    assert!(done.is_ok_and(|d| d.iter().all(Result::is_ok)));
                },
                facts,
            )
        }
        // `subject` offers no batch variant of it.
        Operation::ExpandPublic => return Err(Unavailable::because("there is no batch call for it")),
    })
}
