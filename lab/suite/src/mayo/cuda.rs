//! MAYO on devices: variants that race, and checks.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;

use lanework_mayo::{Engine, Params, PublicKey, SecretKey, Signature};
use lanework_mayo_cuda::{
    Expand, Fleet, FleetSigners, FleetVerifiers, Gpu, GpuError, Multiply, Release, Ring, Tally,
    check::{self as checks, ALONE},
};
use lanework_race::gate::GateRow;
use lanework_race::subject::{Facts, Runnable, Unavailable, Variant, work};

use super::{Filler, Inputs, Operation, POOL, fastest, place};
use crate::{Context, Depth, missing, row};

/// Operations to a chunk of a large batch: the unit that a stream works on while others copy.
const CHUNK: usize = 1024;

/// How a variant uses its devices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct How {
    /// Operations in a batch.
    pub batch: usize,
    /// Whether signatures are verified before they are released.
    pub release: Release,
    /// The share of a batch that the CPU's threads compute meanwhile.
    pub cpu_share: f64,
    /// Operations to a chunk, of batches that are larger.
    pub chunk: usize,
    /// How many of a chunk have their matrices at the same time.
    pub ring: Ring,
    /// How those are expanded.
    pub expand: Expand,
    /// The instructions that verify with expanded keys.
    pub multiply: Multiply,
}

impl How {
    /// A batch of `batch` on the devices alone, signatures verified.
    #[must_use]
    pub const fn of(batch: usize) -> How {
        How {
            batch,
            release: Release::Verified,
            cpu_share: 0.0,
            chunk: CHUNK,
            ring: Ring::Cache,
            expand: Expand::Alone,
            multiply: Multiply::Masks,
        }
    }

    /// The name of a variant that uses its devices this way: the batch, and each unusual setting.
    #[must_use]
    pub fn name(&self, device: &str) -> String {
        let mut name = format!("{device}+batch={}", self.batch);
        if self.chunk != CHUNK {
            name.push_str(&format!("+chunk={}", self.chunk));
        }
        match self.ring {
            Ring::Cache => {}
            Ring::Whole => name.push_str("+whole"),
            Ring::Operations(n) => name.push_str(&format!("+ring={n}")),
        }
        match self.expand {
            Expand::Alone => {}
            Expand::Beside => name.push_str("+beside"),
            Expand::Fused => name.push_str("+fused"),
        }
        if self.multiply == Multiply::Bits {
            name.push_str("+bits");
        }
        if self.release == Release::Unverified {
            name.push_str("+unverified");
        }
        name
    }

    /// Whether an operation can be done this way: products of bits are for expanded public keys, which have their matrices already.
    #[must_use]
    pub fn is_for(&self, operation: Operation) -> bool {
        let compact = matches!(operation, Operation::Keygen | Operation::Sign | Operation::Verify);
        (self.multiply == Multiply::Masks || operation == Operation::VerifyExpanded)
            && (self.expand == Expand::Alone || compact)
    }
}

/// The forms that are raced to find the best use of a device: a small and a large batch with the usual settings, whose times make a
/// line, and the large one with others. Not every form fits every operation ([`How::is_for`]).
#[must_use]
pub fn forms(emulated: bool) -> [How; 8] {
    // A device is idle with small batches; an emulated one is slow with any.
    let (small, large, short, long) = if emulated { (1, 2, 1, 2) } else { (64, 8192, 256, 4096) };
    let usual = How::of(large);
    [
        How::of(small),
        usual,
        How { ring: Ring::Whole, ..usual },
        How { multiply: Multiply::Bits, ..usual },
        How { chunk: short, ..usual },
        How { chunk: long, ..usual },
        How { expand: Expand::Beside, ..usual },
        How { expand: Expand::Fused, ..usual },
    ]
}

/// The chosen devices beside this CPU backend; small batches do not go to the CPU.
///
/// # Errors
/// The missing device, and why.
pub fn fleet(context: &Context, cpu: Engine) -> Result<Fleet, lanework_cpu::Unavailable> {
    let name = context.device.name();
    let of = |device| {
        Gpu::of(device, cpu, ALONE)
            .map_err(|e| lanework_cpu::Unavailable { what: name.to_owned(), why: e.to_string() })
    };
    Ok(Fleet::of(context.device.open()?.into_iter().map(of).collect::<Result<_, _>>()?))
}

/// The checks of `params` on every device; a device that is asked for or required and cannot run is a failed row.
pub(super) fn check(
    context: &Context,
    devices: &Result<Fleet, lanework_cpu::Unavailable>,
    params: &'static Params,
    depth: Depth,
    push: &mut dyn FnMut(GateRow),
) {
    let fleet = match devices {
        Ok(fleet) => fleet,
        Err(unavailable) => {
            let mut row = missing(context, &place(params), unavailable);
            if context.device.is_asked() && row.failed == 0 {
                (row.failed, row.skipped) = (1, 0);
                row.why = format!("asked for, but {}", row.why);
            }
            return push(row);
        }
    };
    for gpu in fleet.gpus() {
        let mut each = |r| push(row(r));
        match depth {
            Depth::Quick => checks::run(gpu, params, checks::Depth::Quick, &mut each),
            Depth::KnownAnswers => each(checks::known_answers(gpu, params, checks::Depth::Full)),
            Depth::Full => checks::run(gpu, params, checks::Depth::Full, &mut each),
        }
    }
}

/// The other forms that the devices have for `params`, against the CPU. [`Depth::KnownAnswers`] skips them.
pub(super) fn check_forms(
    fleet: &Fleet,
    params: &'static Params,
    depth: Depth,
    push: &mut dyn FnMut(GateRow),
) {
    let depth = match depth {
        Depth::Quick => checks::Depth::Quick,
        Depth::KnownAnswers => return,
        Depth::Full => checks::Depth::Full,
    };
    for gpu in fleet.gpus() {
        checks::forms(gpu, params, depth, &mut |r| push(row(r)));
    }
}

/// Whether `params` leaves secrets in memory that this device has freed. Nothing else may hold the device.
#[must_use]
pub fn secrets_left(device: lanework_cuda::Device, cpu: Engine, params: &'static Params) -> GateRow {
    row(lanework_mayo_cuda::secrets_left(device, cpu, params))
}

/// The same rows for a gate, quickly: where there is no device there is none of its variants either.
#[must_use]
pub fn gate_rows(context: &Context, params: &'static Params) -> Vec<GateRow> {
    let mut rows = Vec::new();
    if let Ok(engine) = fastest(&context.cpu)
        && let Ok(fleet) = fleet(context, engine)
    {
        check(context, &Ok(fleet), params, Depth::Quick, &mut |row| rows.push(row));
    }
    rows
}

/// What devices did over a race, reported afterwards.
#[derive(Default)]
struct Done {
    device: usize,
    cpu: usize,
    restarts: usize,
    halvings: usize,
    trouble: Option<String>,
}

impl Done {
    fn add(&mut self, tallies: &[Tally]) {
        for t in tallies {
            self.device += t.device;
            self.cpu += t.cpu;
            self.restarts += t.restarts;
            self.halvings += t.halvings;
            self.trouble = self.trouble.take().or_else(|| t.trouble.clone());
        }
    }
}

/// A batch that can be repeated, and what became of it.
pub struct Batch {
    body: Box<dyn FnMut() -> Vec<Tally>>,
    /// The devices' names.
    pub cards: Vec<lanework_cuda::Card>,
}

impl Batch {
    /// Prepares keys and messages, on the devices too where keys are expanded, and runs the self-test.
    ///
    /// # Errors
    /// Why there is no device, or that it computes wrongly.
    pub fn new(
        context: &Context,
        params: &'static Params,
        operation: Operation,
        how: How,
    ) -> Result<Batch, Unavailable> {
        let because = |why: String| Unavailable::because(why);
        let cpu = Engine::choose(&context.cpu, context.settings.select("mayo"))
            .map_err(|u| because(u.to_string()))?;
        let mut fleet = fleet(context, cpu).map_err(|u| because(u.why))?;
        let mut options = ALONE;
        options.chunk = how.chunk.min(how.batch.max(1));
        options.ring = how.ring;
        options.expand = how.expand;
        options.multiply = how.multiply;
        options.cpu_share = how.cpu_share;
        fleet.set_options(options);
        for gpu in fleet.gpus() {
            gpu.test(params).map_err(because)?;
            // A variant must be what its name says.
            how.multiply.on(gpu.device().card()).map_err(because)?;
            let fused = gpu.fused(params).map_err(because)?;
            let at =
                [Operation::Keygen, Operation::Sign, Operation::Verify].iter().position(|o| *o == operation);
            if how.expand == Expand::Fused && !at.is_some_and(|at| fused[at]) {
                return Err(because(format!("{} is not fused with its matrices here", operation.name())));
            }
        }
        let cards = fleet.gpus().iter().map(|gpu| gpu.device().card().clone()).collect();
        let body = body(fleet, fastest(&context.cpu)?, params, operation, how)?;
        Ok(Batch { body, cards })
    }

    /// Computes it once.
    pub fn run(&mut self) -> Vec<Tally> {
        (self.body)()
    }
}

/// The operation over a batch.
fn body(
    fleet: Fleet,
    maker: Engine,
    params: &'static Params,
    operation: Operation,
    how: How,
) -> Result<Box<dyn FnMut() -> Vec<Tally>>, Unavailable> {
    fn right<T, E: std::fmt::Debug>(
        made: Result<(Vec<T>, Vec<Tally>), E>,
        good: impl Fn(&T) -> bool,
    ) -> Vec<Tally> {
        let (made, tallies) = made.expect("a batch of one set");
        assert!(black_box(made).iter().all(good), "a result is wrong");
        tallies
    }
    let lost = |e: GpuError| Unavailable::because(e.to_string());
    let inputs = Inputs::new(maker, params);
    let turn = |i: usize| i % POOL;
    let messages: Vec<[u8; 32]> = (0..how.batch).map(|i| inputs.messages[turn(i)]).collect();
    let keys: Vec<SecretKey> = (0..how.batch).map(|i| inputs.keys[turn(i)].clone()).collect();
    let (one, mut filler) = (std::slice::from_ref(&inputs.secret), Filler::new(3));
    Ok(match operation {
        Operation::Keygen => Box::new(move || right(fleet.keygen(&keys), |_| true)),
        Operation::Sign => Box::new(move || {
            let made = fleet.sign(FleetSigners::Each(&keys), &messages, how.release, &mut filler);
            right(made, Result::is_ok)
        }),
        Operation::SignExpanded => {
            let held = fleet.expand_secret(one).map_err(lost)?;
            Box::new(move || {
                let made = fleet.sign(FleetSigners::One(&held), &messages, how.release, &mut filler);
                right(made, Result::is_ok)
            })
        }
        Operation::Verify => {
            let some = inputs.signatures()?;
            let signatures: Vec<Signature> = (0..how.batch).map(|i| some[turn(i)].clone()).collect();
            let keys: Vec<PublicKey> = vec![inputs.public.clone(); how.batch];
            Box::new(move || {
                right(fleet.verify(FleetVerifiers::Each(&keys), &messages, &signatures), Result::is_ok)
            })
        }
        Operation::VerifyExpanded => {
            let some = inputs.signatures()?;
            let signatures: Vec<Signature> = (0..how.batch).map(|i| some[turn(i)].clone()).collect();
            let held = fleet.expand_public(std::slice::from_ref(&inputs.public)).map_err(lost)?;
            Box::new(move || {
                right(fleet.verify(FleetVerifiers::One(&held), &messages, &signatures), Result::is_ok)
            })
        }
        Operation::ExpandPublic => {
            let keys: Vec<PublicKey> = vec![inputs.public.clone(); how.batch];
            Box::new(move || {
                let made = fleet.expand_public(&keys).expect("a device that lives");
                drop(black_box(made));
                Vec::new()
            })
        }
    })
}

/// `operation` over a batch as it races. A result that a device left to the CPU ends the race: a variant named after a device must
/// do all work on it, but for its CPU share.
fn racing(
    context: &Context,
    params: &'static Params,
    operation: Operation,
    how: How,
) -> Result<Box<dyn Runnable>, Unavailable> {
    let mut batch = Batch::new(context, params, operation, how)?;
    let names: Vec<String> = batch.cards.iter().map(ToString::to_string).collect();
    let slow = batch.cards.iter().find(|card| card.emulated).map(lanework_cuda::Card::backend);
    let done = Rc::new(RefCell::new(Done::default()));
    let told = Rc::clone(&done);
    let body = move || {
        let tallies = batch.run();
        let cpu: usize = tallies.iter().map(|t| t.cpu).sum();
        let trouble = tallies.iter().find_map(|t| t.trouble.as_deref());
        assert!(trouble.is_none(), "the device was left: {}", trouble.unwrap_or_default());
        assert!(how.cpu_share > 0.0 || cpu == 0, "{cpu} of a batch were left to the CPU");
        done.borrow_mut().add(&tallies);
    };
    let facts = move || {
        let done = told.borrow();
        let mut notes = names.clone();
        notes.push(format!("batches of {}", how.batch));
        if done.restarts > 0 {
            notes.push(format!(
                "{} further attempts in {} operations",
                done.restarts,
                done.device + done.cpu
            ));
        }
        if done.halvings > 0 {
            notes.push(format!("chunks were halved {} times for want of memory", done.halvings));
        }
        if let Some(name) = slow {
            notes.push(format!("{name}: its times mean nothing"));
        }
        Facts { backend: slow.unwrap_or("cuda").to_owned(), notes }
    };
    Ok(work(body, facts))
}

/// A variant on the chosen devices: `cuda+batch=N`, with `+whole` where all matrices of a chunk are made first, `+beside` and
/// `+fused` where they are expanded so, `+bits` where products are of bits, and `+unverified` where signatures are released as
/// they come.
#[must_use]
pub fn variant(context: &Context, params: &'static Params, operation: Operation, how: How) -> Variant {
    let name = how.name(context.device.name());
    let context = context.clone();
    Variant::new(name, move || racing(&context, params, operation, how)).units(how.batch as u64)
}
