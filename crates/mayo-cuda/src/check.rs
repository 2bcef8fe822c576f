//! The checks that a device must pass, as functions: the tests, the command and the laboratory call the same ones.
//!
//! A device's results are compared with the published answers and with the CPU's. A result that the CPU had to compute
//! for the device is a failure here.
#![forbid(unsafe_code)]

use lanework_mayo::hazmat::sign_with_randomizer;
use lanework_mayo::internals::known::{self, Drawn, NistDrbg, Record};
use lanework_mayo::{Error, Params, PublicKey, SecretKey, SignOptions, Signature};
use zeroize::Zeroizing;

use super::{Expand, Gpu, GpuError, GpuSigners, GpuVerifiers, Multiply, Options, Release, Ring, Tally};

pub use lanework_cpu::check::{Depth, Row};

/// Options for checking or measuring a device: nothing goes to the CPU unless the device fails.
pub const ALONE: Options = Options {
    chunk: 1024,
    streams: 4,
    ring: Ring::Cache,
    expand: Expand::Alone,
    multiply: Multiply::Masks,
    break_even: 0,
    cpu_share: 0.0,
    cpu_threads: 0,
    spot_check: 0,
};

/// Batch sizes around those of warps and of an H100's multiprocessors.
const SIZES: [usize; 8] = [0, 1, 31, 32, 33, 131, 132, 133];

fn new_row(what: &str, gpu: &Gpu, params: &Params) -> Row {
    let card = gpu.device().card();
    Row::new(format!("{what}, {}, device {}", params.name(), card.ordinal), card.backend())
}

/// The device's other modes, each with its name: the places where matrices are expanded, and the instructions of
/// products.
const FORMS: [(&str, Expand, Multiply); 3] = [
    ("expansion beside products", Expand::Beside, Multiply::Masks),
    ("expansion within products", Expand::Fused, Multiply::Masks),
    ("products of bits", Expand::Alone, Multiply::Bits),
];

/// A batch's inputs, and the CPU's results.
struct Inputs {
    params: &'static Params,
    keys: Vec<SecretKey>,
    messages: Vec<Vec<u8>>,
    randomizers: Vec<Zeroizing<Vec<u8>>>,
}

impl Inputs {
    fn new(params: &'static Params, count: usize) -> Result<Inputs, Error> {
        let mut source = NistDrbg::new(&[params.index() as u8 ^ 0x90; 48]);
        let mut draw = |count: usize| {
            let mut bytes = vec![0; count];
            source.fill(&mut bytes);
            bytes
        };
        let mut inputs = Inputs { params, keys: Vec::new(), messages: Vec::new(), randomizers: Vec::new() };
        for i in 0..count {
            inputs.keys.push(SecretKey::from_seed(params, &draw(params.salt_bytes()))?);
            inputs.messages.push(draw(i % 200));
            inputs.randomizers.push(Zeroizing::new(draw(params.salt_bytes())));
        }
        Ok(inputs)
    }

    fn sign(&self, gpu: &Gpu, signers: GpuSigners<'_>) -> Result<Signed, Error> {
        gpu.sign_randomized(self.params, signers, &self.messages, &self.randomizers, Release::Verified)
    }

    /// The CPU's signature of message `i`.
    fn expected(&self, gpu: &Gpu, key: &SecretKey, i: usize) -> Result<Signature, Error> {
        let options = SignOptions { verify: false };
        sign_with_randomizer(&(gpu.cpu, key), &self.messages[i], &self.randomizers[i], options)
    }
}

type Signed = (Vec<Result<Signature, Error>>, Tally);

/// One case: the device computed all of a batch, correctly.
fn judge(row: &mut Row, what: &str, count: usize, tally: &Tally, right: bool) {
    row.case(right, || format!("{what} of a batch of {count} differ from the CPU's"));
    row.case(tally.device == count && tally.trouble.is_none(), || {
        let trouble = tally.trouble.as_deref().unwrap_or("no reason given");
        format!("{what}: {} of a batch of {count} were left to the CPU: {trouble}", tally.cpu)
    });
}

/// NIST's response file by its digest, the first three records or all 100: one batch for each operation, so one
/// launch of each kernel.
#[must_use]
pub fn known_answers(gpu: &Gpu, params: &'static Params, depth: Depth) -> Row {
    let known::Digests { all, three, .. } = known::digests(params);
    let (count, expected) = if depth == Depth::Full { (100, all) } else { (3, three) };
    let mut row = new_row(&format!("{count} known answers in one launch"), gpu, params);
    // One launch of each kernel, independent of the cache. Faults found by the self-test show in the batches again.
    let _ = gpu.test(params);
    let gpu = &gpu.with(Options { chunk: count, ring: Ring::Whole, ..*gpu.options() });
    match records(gpu, params, count) {
        Ok(records) => {
            let digest = known::sha256_hex(known::response(&records).as_bytes());
            row.case(digest == expected, || format!("the digest is {digest}"));
            row.passed *= count;
        }
        Err(why) => row.case(false, || why),
    }
    row
}

/// The first `count` records of a set's response file, made only on the device.
fn records(gpu: &Gpu, params: &'static Params, count: usize) -> Result<Vec<Record>, String> {
    let mut inputs = Inputs { params, keys: Vec::new(), messages: Vec::new(), randomizers: Vec::new() };
    let mut seeds = Vec::new();
    for Drawn { seed, message, secret_key, randomizer } in known::drawn(params.sizes(), count) {
        seeds.push(seed);
        inputs.keys.push(SecretKey::from_seed(params, &secret_key).map_err(|e| e.to_string())?);
        inputs.messages.push(message);
        inputs.randomizers.push(Zeroizing::new(randomizer));
    }
    let alone = |tally: Tally| match tally.trouble {
        None if tally.device == count => Ok(()),
        trouble => Err(trouble.unwrap_or_else(|| format!("{} were left to the CPU", tally.cpu))),
    };
    let (public, tally) = gpu.keygen(&inputs.keys).map_err(|e| e.to_string())?;
    alone(tally)?;
    let (signed, tally) = inputs.sign(gpu, GpuSigners::Each(&inputs.keys)).map_err(|e| e.to_string())?;
    alone(tally)?;
    let signed: Vec<Signature> = signed.into_iter().collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    let verifiers = GpuVerifiers::Each(&public);
    let (verdicts, tally) = gpu.verify(verifiers, &inputs.messages, &signed).map_err(|e| e.to_string())?;
    alone(tally)?;
    if let Some(at) = verdicts.iter().position(Result::is_err) {
        return Err(format!("the signature of record {at} was refused"));
    }
    let made = |i: usize| Record {
        seed: seeds[i],
        message: inputs.messages[i].clone(),
        public_key: public[i].as_bytes().to_vec(),
        secret_key: inputs.keys[i].expose_seed().to_vec(),
        randomizer: inputs.randomizers[i].to_vec(),
        signed: [signed[i].as_bytes(), &inputs.messages[i]].concat(),
    };
    Ok((0..count).map(made).collect())
}

/// Keys, signatures and verdicts of odd batch sizes against the CPU's: compact keys, one expanded key and several,
/// every third signature corrupted in another bit. Of small batches two operations at a time have their matrices in
/// memory.
#[must_use]
pub fn agreement(gpu: &Gpu, params: &'static Params, depth: Depth) -> Row {
    let mut row = new_row("agreement with the CPU", gpu, params);
    let _ = gpu.test(params);
    for &count in if depth == Depth::Full { &SIZES[..] } else { &[3] } {
        // Small batches reuse their places too.
        let few = gpu.with(Options { ring: Ring::Operations(2), ..*gpu.options() });
        let gpu = if count < 100 { &few } else { gpu };
        if let Err(e) = batch(gpu, params, count, &mut row) {
            row.case(false, || format!("a batch of {count}: {e}"));
        }
    }
    row
}

fn batch(gpu: &Gpu, params: &'static Params, count: usize, row: &mut Row) -> Result<(), GpuError> {
    let inputs = Inputs::new(params, count)?;
    let (public, tally) = gpu.keygen(&inputs.keys)?;
    let expected: Vec<PublicKey> = inputs.keys.iter().map(|k| k.public_key(gpu.cpu)).collect();
    judge(row, "public keys", count, &tally, public == expected);
    let (signed, tally) = inputs.sign(gpu, GpuSigners::Each(&inputs.keys))?;
    let expected: Vec<_> =
        inputs.keys.iter().enumerate().map(|(i, key)| inputs.expected(gpu, key, i)).collect();
    judge(row, "signatures with compact keys", count, &tally, signed == expected);
    if count == 0 {
        return Ok(());
    }
    let few = &inputs.keys[..count.min(3)];
    let held = gpu.expand_secret(few)?;
    row.case(held.public_keys() == &public[..few.len()], || {
        format!("the public halves of {} expanded keys differ from the CPU's", few.len())
    });
    let which: Vec<usize> = (0..count).map(|i| i * 7 % few.len()).collect();
    let (signed, tally) = inputs.sign(gpu, GpuSigners::Of(&held, &which))?;
    let expected: Vec<_> = which.iter().enumerate().map(|(i, &k)| inputs.expected(gpu, &few[k], i)).collect();
    judge(row, "signatures with expanded keys", count, &tally, signed == expected);
    let (signed, tally) = inputs.sign(gpu, GpuSigners::One(&held))?;
    let expected: Vec<_> = (0..count).map(|i| inputs.expected(gpu, &few[0], i)).collect();
    judge(row, "signatures with one expanded key", count, &tally, signed == expected);

    let mut signatures: Vec<Signature> = signed.into_iter().collect::<Result<_, _>>()?;
    let spoilt = |i: usize| i % 3 == 1;
    for (i, signature) in signatures.iter_mut().enumerate().filter(|(i, _)| spoilt(*i)) {
        let mut bytes = signature.clone().into_bytes();
        let bit = i * 37 % (bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        *signature = Signature::from_bytes(params, &bytes)?;
    }
    let verdicts: Vec<_> = (0..count).map(|i| if spoilt(i) { Err(Error::Refused) } else { Ok(()) }).collect();
    let (same, firsts) = (vec![public[0].clone(); count], vec![0; count]);
    let verifying = gpu.expand_public(&public[..few.len()])?;
    row.case(verifying.multiply() == gpu.options().multiply, || {
        format!("keys are laid out for {:?}, not for {:?}", verifying.multiply(), gpu.options().multiply)
    });
    for (what, verifiers) in [
        ("verdicts with compact keys", GpuVerifiers::Each(&same)),
        ("verdicts with one expanded key", GpuVerifiers::One(&verifying)),
        ("verdicts with expanded keys", GpuVerifiers::Of(&verifying, &firsts)),
    ] {
        let (got, tally) = gpu.verify(verifiers, &inputs.messages, &signatures)?;
        judge(row, what, count, &tally, got == verdicts);
    }
    Ok(())
}

/// [`agreement`] in each of the device's other modes, a row for each; unsupported modes are skipped with the reason.
/// Separate from [`run`], since a device that fails in one mode is no longer used at all.
pub fn forms(gpu: &Gpu, params: &'static Params, depth: Depth, each: &mut dyn FnMut(Row)) {
    for (what, expand, multiply) in FORMS {
        let gpu = gpu.with(Options { expand, multiply, ..*gpu.options() });
        let fused = gpu.fused(params);
        let mut row = new_row(&format!("agreement with the CPU, {what}"), &gpu, params);
        let within = if expand == Expand::Fused { fused } else { fused.map(|_| [true; 3]) };
        match (multiply.on(gpu.device().card()), within) {
            (_, Err(why)) => row.case(false, || why),
            (Err(why), _) => row.skip(&why),
            (_, Ok([false, false, false])) => {
                row.skip("a block has too little shared memory for any operation")
            }
            _ => {
                for &count in if depth == Depth::Full { &[3, 33][..] } else { &[3] } {
                    if let Err(e) = batch(&gpu, params, count, &mut row) {
                        row.case(false, || format!("a batch of {count}: {e}"));
                    }
                }
            }
        }
        each(row);
    }
}

/// Every check of a device on one set in its current mode, reported as they finish.
pub fn run(gpu: &Gpu, params: &'static Params, depth: Depth, each: &mut dyn FnMut(Row)) {
    each(known_answers(gpu, params, depth));
    each(agreement(gpu, params, depth));
}
