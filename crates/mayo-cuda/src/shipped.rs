//! The PTX which ships, executed on this CPU: published answers, agreement with the CPU, and with the kernels as C++.
#![forbid(unsafe_code)]

use lanework_cuda::{Control, Device, Emulation, Order};
use lanework_mayo::{Engine, Params, Round, Set};

use crate::check::{self, Depth};
use crate::launch::{IMAGE, THREAD};
use crate::{Gpu, Options, Ring};

/// Shared memory as on sm_90, so that every form of a kernel runs.
fn device(order: Order) -> (Device, Control) {
    Device::ptx(Emulation { shared_per_block: 227 << 10, order, ..Emulation::default() })
}

fn gpu(order: Order, options: Options) -> Gpu {
    Gpu::of(device(order).0, Engine::best(), options).unwrap()
}

#[test]
fn every_kernel_is_understood() {
    let (device, _) = device(Order::Forward);
    let lock = include_str!("kernels/kernels.lock");
    let mut found = [0; 2];
    for line in lock.lines() {
        let Some((name, _)) = line.strip_prefix("\"sm_89/").and_then(|rest| rest.split_once('"')) else {
            continue;
        };
        let thread = name.starts_with("thread_");
        let module = device.module(if thread { &THREAD } else { &IMAGE }).unwrap();
        if let Err(why) = module.kernel(name) {
            panic!("{name}: {why}");
        }
        found[usize::from(thread)] += 1;
    }
    assert!(found[0] > 140 && found[1] > 30, "{found:?}");
}

/// Whether this is the long run.
fn in_full() -> bool {
    std::env::var_os("LANEWORK_PTX").is_some_and(|depth| depth == "all")
}

/// Known answers, agreement with the CPU in the usual form and in every other one.
fn checked(round: Round, set: Set) {
    let params = Params::of(round, set);
    let all = in_full();
    let gpu = gpu(Order::Forward, Options { ring: Ring::Operations(2), ..check::ALONE });
    let mut rows = vec![check::known_answers(&gpu, params, if all { Depth::Full } else { Depth::Quick })];
    assert_eq!(rows[0].passed, if all { 100 } else { 3 }, "{rows:?}");
    rows.push(check::agreement(&gpu, params, Depth::Quick));
    check::forms(&gpu, params, Depth::Quick, &mut |row| rows.push(row));
    assert_eq!(rows.len(), 5);
    for row in &rows {
        assert!(row.ok() && row.skipped == 0 && row.backend == "ptx", "{row:?}");
    }
}

macro_rules! checked {
    ($($name:ident: $round:ident $set:ident),*) => {$(
        #[test]
        fn $name() {
            checked(Round::$round, Set::$set);
        }
    )*};
}
checked!(
    ptx_of_mayo1_round3: Three Mayo1,
    ptx_of_mayo2_round3: Three Mayo2,
    ptx_of_mayo3_round3: Three Mayo3,
    ptx_of_mayo5_round3: Three Mayo5,
    ptx_of_mayo1_round2: Two Mayo1,
    ptx_of_mayo2_round2: Two Mayo2,
    ptx_of_mayo3_round2: Two Mayo3,
    ptx_of_mayo5_round2: Two Mayo5
);

/// What the tests of the emulated device do, with its kernels as PTX.
#[cfg(feature = "emulated")]
mod as_the_emulated_device {
    use lanework_cuda::{Device, Emulation, Order};
    use lanework_mayo::{Engine, Params, Round, Set};

    use super::{device, gpu};
    use crate::tests::{OPTIONS, agrees, every_set, on, threads};
    use crate::{Expand, GpuThreads, Multiply, Options, Ring, ThreadLaunch, ThreadMemory};

    /// The smaller sets of both rounds; in the long run all.
    fn sets() -> impl Iterator<Item = &'static Params> {
        Params::all().filter(|params| super::in_full() || matches!(params.set(), Set::Mayo1 | Set::Mayo2))
    }

    #[test]
    fn sets_agree_in_other_orders_of_turns() {
        for (order, expand, multiply) in [
            (Order::Reverse, Expand::Alone, Multiply::Bits),
            (Order::Shuffled(5), Expand::Alone, Multiply::Masks),
            (Order::Reverse, Expand::Fused, Multiply::Masks),
            (Order::Shuffled(9), Expand::Fused, Multiply::Masks),
        ] {
            let gpu = gpu(order, Options { expand, multiply, ..OPTIONS });
            for params in sets() {
                agrees(&gpu, params, 1);
            }
        }
    }

    #[test]
    fn odd_batches_agree() {
        for (expand, counts) in [(Expand::Alone, &[0, 1, 33][..]), (Expand::Fused, &[33][..])] {
            let gpu = gpu(Order::Forward, Options { expand, ..OPTIONS });
            counts.iter().for_each(|count| agrees(&gpu, Params::of(Round::Three, Set::Mayo2), *count));
        }
    }

    #[test]
    fn restarts_and_corrupted_inputs() {
        for params in sets() {
            let gpu = gpu(Order::Forward, Options { ring: Ring::Operations(2), ..OPTIONS });
            every_set::restarts(&gpu, params);
            every_set::corrupted(&gpu, params);
        }
    }

    #[test]
    fn one_thread_to_an_operation() {
        for memory in [ThreadMemory::Heap, ThreadMemory::Stack] {
            let threads = GpuThreads::open(&device(Order::Forward).0, Engine::best(), 0).unwrap();
            let launch = ThreadLaunch { blocks: 1, threads: 2, memory };
            let mut agreed = 0;
            for params in sets().filter(|params| threads.has(params, memory)) {
                threads::agrees(&threads, params, launch, 2);
                agreed += 1;
            }
            assert!(agreed >= 4, "{memory:?}: {agreed}");
        }
    }

    #[test]
    fn every_buffer_is_as_the_kernels_in_cpp_leave_it() {
        // One stream, so that both do the same in the same order.
        for (expand, multiply) in [
            (Expand::Alone, Multiply::Masks),
            (Expand::Alone, Multiply::Bits),
            (Expand::Fused, Multiply::Masks),
        ] {
            let options = Options { streams: 1, cpu_threads: 1, expand, multiply, ..OPTIONS };
            for params in sets() {
                let how = Emulation { shared_per_block: 227 << 10, ..Emulation::default() };
                let watched = [Device::emulated(how), Device::ptx(how)].map(|device| {
                    let (gpu, control) = on(device, options);
                    gpu.test(params).unwrap();
                    control.watch();
                    agrees(&gpu, params, 3);
                    control.watched()
                });
                assert!(watched[0].len() > 20, "{}: {} launches", params.name(), watched[0].len());
                for (i, (cpp, ptx)) in watched[0].iter().zip(&watched[1]).enumerate() {
                    assert_eq!(cpp, ptx, "{}: launch {i}", params.name());
                }
                assert_eq!(watched[0].len(), watched[1].len(), "{}", params.name());
            }
        }
    }
}
