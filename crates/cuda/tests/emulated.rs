//! The emulated device, by its public interface.
#![cfg(feature = "emulated")]

use lanework_cuda::{
    Control, Device, Emulation, Error, Grid, Image, Kernel, Kernels, Limit, Order, args, selftest,
};

unsafe extern "C" {
    static lanework_faults: Kernels;
}

/// Kernels with faults: `faults.cu`.
fn faults() -> Image {
    // SAFETY: the build script compiles `faults.cu`, which defines it.
    let kernels = unsafe { &lanework_faults };
    Image::new("faults", b"").with_emulated(kernels)
}

fn device() -> (Device, Control) {
    Device::emulated(Emulation::default())
}

fn kernel(device: &Device, name: &str) -> Kernel {
    device.module(&faults()).unwrap().kernel(name).unwrap()
}

/// The fault of a kernel of `faults.cu` on 64 words and two warps.
fn fault_of(name: &str, shared: u32) -> String {
    let (device, _) = device();
    let words = device.buffer::<u32>(64).unwrap();
    let stream = device.stream().unwrap();
    stream.put(&[0; 64], &words, 0).unwrap();
    let kernel = kernel(&device, name);
    // SAFETY: that is its argument, and the emulation survives its faults.
    unsafe { stream.launch(&kernel, Grid { blocks: 1, threads: 64, shared }, args![&words]).unwrap() };
    let Err(Error::Fault(failure)) = stream.finish() else { panic!("{name} went through") };
    assert!(device.is_dead() && device.cause_of_death().is_some_and(|cause| cause.contains(&failure.text)));
    assert!(matches!(stream.finish(), Err(Error::Dead { .. })), "what is lost stays lost");
    assert!(matches!(device.buffer::<u8>(1), Err(Error::Dead { .. })));
    failure.text
}

#[test]
fn the_self_test_passes_in_every_order() {
    for order in [Order::Forward, Order::Reverse, Order::Shuffled(1), Order::Shuffled(77)] {
        let (device, control) = Device::emulated(Emulation { order, ..Emulation::default() });
        for row in selftest(&device).unwrap() {
            assert_eq!(row.result, Ok(()), "{} in {order:?}", row.what);
        }
        // One kernel clears the shared memory that it had; the copies' buffer was a secret.
        let launched = control.launched();
        assert!(launched.iter().any(|l| l.kernel == "lanework_warps" && l.left == 0 && l.collectives > 0));
        assert!(control.freed().iter().filter(|freed| freed.secret).all(|freed| freed.zero));
        assert_eq!(control.in_use(), 0);
    }
}

#[test]
fn the_self_test_sees_a_device_that_computes_wrongly() {
    for (download, what) in
        ["copies there and back", "a ragged grid", "shared memory and warps", "products of bits"]
            .iter()
            .enumerate()
    {
        let (device, control) = device();
        control.corrupt_download(download as u64, 41, 4);
        let wrong: Vec<_> =
            selftest(&device).unwrap().into_iter().filter(|row| row.result.is_err()).collect();
        assert_eq!(wrong.len(), 1);
        assert_eq!(&wrong[0].what, what);
        assert!(wrong[0].result.as_ref().is_err_and(|why| why.starts_with("word 10 is")));
    }
}

#[test]
fn divergent_collectives_end_the_launch_and_are_told() {
    let text = fault_of("divergent_ballot", 0);
    assert!(text.contains("divergent_ballot") && text.contains("__ballot_sync"), "{text}");
    let text = fault_of("exited_lane", 0);
    assert!(text.contains("lane 3") && text.contains("has ended"), "{text}");
    let text = fault_of("partial_barrier", 0);
    assert!(text.contains("__syncthreads") && text.contains("ended"), "{text}");
    let text = fault_of("barrier_against_shuffle", 0);
    assert!(text.contains("divergent"), "{text}");
    let text = fault_of("two_barriers", 0);
    assert!(text.contains("at once"), "{text}");
    let text = fault_of("deadlock", 0);
    assert!(text.contains("deadlock") && text.contains("barrier 3"), "{text}");
    let text = fault_of("missing_arrival", 128);
    assert!(text.contains("deadlock") && text.contains("barrier 2"), "{text}");
    let text = fault_of("unheard_arrival", 0);
    assert!(text.contains("32 threads arrived at barrier 4") && text.contains("ended before"), "{text}");
    let text = fault_of("early_arrival", 0);
    assert!(text.contains("barrier 5 holds 32 threads, and one more"), "{text}");
    let text = fault_of("two_counts", 0);
    assert!(text.contains("barrier 6 is to hold 32 threads") && text.contains("and 64 at"), "{text}");
    let text = fault_of("shuffle_from_outside", 0);
    assert!(text.contains("leaves out"), "{text}");
}

#[test]
fn writes_beyond_memory_are_told() {
    assert!(fault_of("beyond", 0).contains("beyond a buffer of 256 bytes"));
    assert!(fault_of("below", 0).contains("below a buffer"));
    assert!(fault_of("beyond_shared", 64).contains("beyond the 64 bytes of shared memory"));
    assert!(fault_of("trap", 0).contains("trapped"));
}

#[test]
fn a_race_gives_other_results_in_another_order() {
    let run = |order| {
        let (device, control) = device();
        control.set_order(order);
        let (stream, words) = (device.stream().unwrap(), device.buffer::<u32>(64).unwrap());
        let kernel = kernel(&device, "race");
        // SAFETY: that is its argument, with a word for each thread.
        unsafe {
            stream.launch(&kernel, Grid { blocks: 1, threads: 64, shared: 256 }, args![&words]).unwrap()
        };
        stream.get(&words, 0..64).unwrap()
    };
    assert_ne!(run(Order::Forward), run(Order::Reverse));
}

#[test]
fn shared_memory_that_is_left_is_told() {
    let (device, control) = device();
    let (stream, words) = (device.stream().unwrap(), device.buffer::<u32>(64).unwrap());
    let kernel = kernel(&device, "race");
    // SAFETY: that is its argument, with a word for each thread.
    unsafe { stream.launch(&kernel, Grid { blocks: 1, threads: 64, shared: 256 }, args![&words]).unwrap() };
    stream.finish().unwrap();
    assert!(control.launched()[0].left > 0);
}

#[test]
fn wrong_launches_are_refused_and_do_no_harm() {
    let (device, _) = device();
    let (stream, words) = (device.stream().unwrap(), device.buffer::<u32>(64).unwrap());
    let kernel = kernel(&device, "race");
    let grid = Grid { blocks: 1, threads: 64, shared: 0 };
    let refused = |grid, arguments: &[lanework_cuda::Argument]| {
        // SAFETY: every launch here is refused.
        match unsafe { stream.launch(&kernel, grid, arguments) } {
            Err(Error::Shape(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    assert!(refused(grid, args![]).contains("takes 1 arguments but gets 0"));
    assert!(refused(grid, args![7u32]).contains("an address"));
    assert!(refused(Grid { threads: 1025, ..grid }, args![&words]).contains("1 to 1024"));
    assert!(refused(Grid { blocks: 0, ..grid }, args![&words]).contains("0 blocks"));
    assert!(refused(Grid { shared: 100 * 1024, ..grid }, args![&words]).contains("shared memory"));
    let (other, _) = Device::emulated(Emulation::default());
    let elsewhere = other.buffer::<u32>(64).unwrap();
    assert!(refused(grid, args![&elsewhere]).contains("not an address of this device"));
    assert!(matches!(stream.zero(&elsewhere, 0..1), Err(Error::Shape(_))));
    assert!(matches!(stream.get(&words, 60..65), Err(Error::Shape(_))));
    assert!(matches!(words.at(65), Err(Error::Shape(_))));
    assert!(matches!(device.buffer::<u64>(usize::MAX), Err(Error::Shape(_))));
    assert!(matches!(device.module(&faults()).unwrap().kernel("none"), Err(Error::NoKernel { .. })));
    let bare = Image::new("bare", b"");
    assert!(matches!(device.module(&bare), Err(Error::Unavailable(_))));
    assert!(!device.is_dead());
}

#[test]
fn memory_runs_out_by_type_and_comes_back() {
    let (device, control) = Device::emulated(Emulation { memory: 1 << 20, ..Emulation::default() });
    let half = device.buffer::<u8>(1 << 19).unwrap();
    let why = device.buffer::<u8>((1 << 19) + 1).unwrap_err();
    assert!(why.is_memory() && !why.is_fatal(), "{why}");
    assert_eq!(device.memory().unwrap().free, 1 << 19);
    drop(half);
    assert_eq!(device.buffer::<u8>(1 << 20).unwrap().len(), 1 << 20);
    control.limit_memory(0);
    assert!(device.buffer::<u8>(1).unwrap_err().is_memory());
    device.limit(Limit::Stack, 1 << 16).unwrap();
}

#[test]
fn secrets_are_cleared_before_they_are_freed() {
    let (device, control) = device();
    let stream = device.stream().unwrap();
    let (secret, public) = (device.secret::<u32>(100).unwrap(), device.buffer::<u32>(100).unwrap());
    let mut pinned = device.pinned::<u32>(100).unwrap();
    assert!(pinned.read().unwrap().iter().all(|word| *word == 0));
    pinned.write().unwrap().fill(0x5ec2_e700);
    // Work that is queued when they are dropped finishes before the clearing.
    stream.upload(&pinned, 0..100, &secret, 0).unwrap();
    stream.upload(&pinned, 0..100, &public, 0).unwrap();
    drop((secret, public));
    let freed = control.freed();
    assert_eq!(freed.len(), 2);
    assert!(freed[0].secret && freed[0].zero && !freed[1].secret);
    // A lost device cannot be cleared: its content stays, as checked here.
    let secret = device.secret::<u32>(100).unwrap();
    stream.put(&[1; 100], &secret, 0).unwrap();
    control.lose_device_after(0);
    let kernel = kernel(&device, "race");
    let words = device.buffer::<u32>(64).unwrap();
    // SAFETY: that is its argument, with a word for each thread.
    unsafe { stream.launch(&kernel, Grid { blocks: 1, threads: 64, shared: 256 }, args![&words]).unwrap() };
    assert!(matches!(stream.finish(), Err(Error::Fault(_))));
    drop(secret);
    let last = control.freed().pop().unwrap();
    assert!(last.secret && !last.zero);
}

#[test]
fn work_happens_in_order_and_when_it_is_waited_for() {
    let (device, _) = device();
    let (one, two) = (device.stream().unwrap(), device.stream().unwrap());
    let words = device.buffer::<u32>(4).unwrap();
    let copy = device.buffer::<u32>(4).unwrap();
    one.put(&[1; 4], &words, 0).unwrap();
    let mut staged = device.pinned::<u32>(4).unwrap();
    staged.write().unwrap().fill(2);
    one.upload(&staged, 0..4, &words, 0).unwrap();
    // The second stream was not ordered after the first.
    two.copy(&words, 0..4, &copy, 0).unwrap();
    assert_eq!(two.get(&copy, 0..4).unwrap(), [1; 4]);
    let mark = one.mark().unwrap();
    two.wait_for(&mark).unwrap();
    two.copy(&words, 0..4, &copy, 0).unwrap();
    assert_eq!(two.get(&copy, 0..4).unwrap(), [2; 4]);
    assert!(mark.is_done().unwrap());
    // Writing staged memory waits for its readers.
    one.upload(&staged, 0..4, &words, 0).unwrap();
    staged.write().unwrap().fill(3);
    assert_eq!(one.get(&words, 0..4).unwrap(), [2; 4]);
    // Polling ends.
    one.zero(&words, 0..4).unwrap();
    let mark = one.mark().unwrap();
    assert!((0..100).any(|_| mark.is_done().unwrap()));
    assert_eq!(one.get(&words, 0..4).unwrap(), [0; 4]);
}

#[test]
fn a_condemned_device_computes_nothing_and_still_clears() {
    let (device, control) = device();
    let secret = device.secret::<u8>(64).unwrap();
    device.stream().unwrap().put(&[9; 64], &secret, 0).unwrap();
    device.condemn("a known answer came out wrong");
    assert!(device.is_dead());
    assert!(matches!(device.stream(), Err(Error::Dead { cause }) if cause.contains("known answer")));
    drop(secret);
    assert!(control.freed().last().is_some_and(|freed| freed.secret && freed.zero));
}

#[test]
fn host_threads_share_a_device() {
    let (device, _) = device();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(selftest(&device).unwrap().iter().all(|row| row.result.is_ok())));
        }
    });
}

#[test]
fn what_is_not_overwritten_is_found_again_and_what_is_is_not() {
    let secret: Vec<u8> = (1..=32).collect();
    let public: Vec<u8> = (101..=132).collect();
    let absent = vec![0x77; 16];
    let needles = [secret.clone(), public.clone(), absent];
    for leave in [false, true] {
        let how = Emulation { memory: 8 << 20, recycles: true, ..Emulation::default() };
        let (device, _) = Device::emulated(how);
        let used = if leave { device.leaving_secrets() } else { device.clone() };
        let stream = used.stream().unwrap();
        let (hidden, open) = (used.secret::<u8>(5000).unwrap(), used.buffer::<u8>(70_000).unwrap());
        let mut pinned = used.pinned::<u8>(9000).unwrap();
        pinned.write().unwrap()[4090..4122].copy_from_slice(&secret);
        stream.upload(&pinned, 4090..4122, &hidden, 77).unwrap();
        stream.put(&public, &open, 69_000).unwrap();
        stream.finish().unwrap();
        drop((hidden, open, pinned, stream, used));
        // Public memory is never overwritten: it shows that the search finds remains, in the same context and in a
        // fresh one.
        let expected = if leave { vec![0, 1] } else { vec![1] };
        let found = device.search(&needles).unwrap();
        assert_eq!(found.on_device, expected);
        assert_eq!(found.pinned, if leave { vec![0] } else { vec![] });
        let reopener = device.reopener();
        drop(device);
        let fresh = reopener.open().unwrap();
        let found = fresh.search(&needles).unwrap();
        // Of pinned memory the first search has taken for itself, and overwritten, what it found.
        assert!(found.on_device == expected && found.pinned.is_empty(), "{found:?}");
        assert!(found.device_bytes > 7 << 20 && found.pinned_bytes > 0, "{found:?}");
        assert!(fresh.search(&[vec![1; 15]]).is_err());
    }
}
