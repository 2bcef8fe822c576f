//! The kernels with one thread to a whole operation, on the emulated device.

use lanework_cuda::{Argument, Buffer, Device, Emulation, Grid, Limit, Stream, args};

use super::THREAD;
use crate::keys::{SecretKey, SignOptions};
use crate::params::Params;
use crate::scheme::Engine;

/// As published: four threads to a block.
const THREADS: u32 = 4;

fn put(stream: &Stream, device: &Device, values: &[u8]) -> Buffer<u8> {
    let buffer = device.buffer(values.len()).unwrap();
    stream.put(values, &buffer, 0).unwrap();
    buffer
}

/// Five keys, signatures and verdicts by one kind of memory.
fn agrees(params: &'static Params, memory: &str) {
    const COUNT: usize = 5;
    let what = format!("{} on the {memory}", params.name());
    let (device, _) = Device::emulated(Emulation::default());
    device.limit(Limit::Stack, 1 << 20).unwrap();
    let (stream, module) = (device.stream().unwrap(), device.module(&THREAD).unwrap());
    let bytes = |tag: usize, i: usize| -> Vec<u8> {
        (0..params.salt_bytes).map(|at| (at * 41 + i * 97 + tag) as u8).collect()
    };
    let engine = Engine::best();
    let keys: Vec<SecretKey> =
        (0..COUNT).map(|i| SecretKey::from_seed(params, &bytes(1, i)).unwrap()).collect();
    let (mut digests, mut signatures, mut public) = (Vec::new(), Vec::new(), Vec::new());
    for (i, key) in keys.iter().enumerate() {
        let mut digest = vec![0; params.digest_bytes];
        engine.expand().shake256(&[&[i as u8]], &mut digest);
        digests.extend(digest);
        let made = key.sign_randomized(engine, &[i as u8], &bytes(2, i), SignOptions::default());
        signatures.extend(made.unwrap().into_bytes());
        public.extend_from_slice(key.public_key(engine).as_bytes());
    }
    let seeds = put(&stream, &device, &(0..COUNT).flat_map(|i| bytes(1, i)).collect::<Vec<u8>>());
    let randomizers = put(&stream, &device, &(0..COUNT).flat_map(|i| bytes(2, i)).collect::<Vec<u8>>());
    let digests = put(&stream, &device, &digests);
    let (flags, cycles) = (device.buffer::<u8>(COUNT).unwrap(), device.buffer::<u64>(3 * COUNT).unwrap());
    let run = |name: &str, arguments: [Argument; 4]| {
        let kernel = module.kernel(&format!("thread_{name}_{memory}_{}", params.index())).unwrap();
        let grid = Grid { blocks: COUNT.div_ceil(THREADS as usize) as u32, threads: THREADS, shared: 0 };
        let [keys, digests, randomizers, out] = arguments;
        let count = COUNT as u32;
        // SAFETY: the buffers hold what the kernel takes for `COUNT` operations.
        unsafe {
            stream
                .launch(&kernel, grid, args![count, keys, digests, randomizers, out, &flags, &cycles])
                .unwrap();
        }
        stream.get(&flags, 0..COUNT).unwrap()
    };
    let made = device.buffer::<u8>(public.len()).unwrap();
    let null = Argument::null();
    assert_eq!(run("keygen", [(&seeds).into(), null, null, (&made).into()]), [1; COUNT], "{what}");
    assert!(stream.get(&made, 0..public.len()).unwrap() == public, "public keys of {what}");
    let signed = device.buffer::<u8>(signatures.len()).unwrap();
    let sign = [(&seeds).into(), (&digests).into(), (&randomizers).into(), (&signed).into()];
    assert_eq!(run("sign", sign), [1; COUNT], "{what}");
    assert!(stream.get(&signed, 0..signatures.len()).unwrap() == signatures, "signatures of {what}");
    signatures[3 * params.signature_bytes() + 7] ^= 2;
    let spoilt = put(&stream, &device, &signatures);
    let verify = [(&made).into(), (&digests).into(), null, (&spoilt).into()];
    assert_eq!(run("verify", verify), [1, 1, 1, 0, 1], "{what}");
}

#[test]
fn one_thread_to_an_operation_gives_what_the_cpu_gives() {
    for params in Params::all() {
        agrees(params, "heap");
        if params.p12_bytes() < 300_000 {
            agrees(params, "stack");
        }
    }
}
