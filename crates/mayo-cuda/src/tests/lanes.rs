//! What stays on a device between batches.
#![forbid(unsafe_code)]

use lanework_cuda::{Control, Emulation};
use lanework_mayo::{Params, Round, Set};

use super::{Batch, OPTIONS, gpu};
use crate::{Gpu, GpuSigners, Options};

const SMALL: Options = Options { chunk: 2, streams: 2, ..OPTIONS };

fn buffers_freed(control: &Control) -> usize {
    control.freed().len()
}

fn clear(gpu: &Gpu) -> Vec<bool> {
    gpu.kept.all().iter_mut().flat_map(|(_, lanes)| lanes.iter_mut().map(|lane| lane.is_clear())).collect()
}

#[test]
fn lanes_are_used_again_for_the_same_and_hold_no_secrets_meanwhile() {
    let (gpu, control) = gpu(Emulation::default(), SMALL);
    let batch = Batch::new(Params::of(Round::Two, Set::Mayo2), 5);
    gpu.test(batch.params).unwrap();
    let (first, _) = batch.sign(&gpu, GpuSigners::Each(&batch.keys));
    let freed = buffers_freed(&control);
    assert_eq!(clear(&gpu), [true, true], "two lanes are kept");
    let (second, tally) = batch.sign(&gpu, GpuSigners::Each(&batch.keys));
    assert_eq!((second, tally.device), (first, 5));
    assert_eq!(buffers_freed(&control), freed, "nothing was made anew");
    // Another operation has lanes of its own; a batch of one needs one lane.
    gpu.keygen(&batch.keys).unwrap();
    assert_eq!((clear(&gpu), buffers_freed(&control)), (vec![true; 4], freed));
    gpu.keygen(&batch.keys[..1]).unwrap();
    assert_eq!(clear(&gpu), [true; 3]);
    assert!(buffers_freed(&control) > freed);
    assert!(gpu.kept.release() && !gpu.kept.release() && clear(&gpu).is_empty());
}

#[test]
fn a_lane_that_was_not_cleared_is_found_out() {
    let (gpu, _) = gpu(Emulation::default(), SMALL);
    let batch = Batch::new(Params::of(Round::Two, Set::Mayo2), 2);
    batch.sign(&gpu, GpuSigners::Each(&batch.keys));
    for (_, lanes) in gpu.kept.all().iter_mut() {
        for planted in 0..2 {
            let memory = if planted == 0 { &mut lanes[0].host_seeds } else { &mut lanes[0].host_signatures };
            memory.write().unwrap()[0] = 1;
            assert!(!lanes[0].is_clear(), "in pinned memory");
            lanes[0].clear().unwrap();
            assert!(lanes[0].is_clear());
        }
        lanes[0].host_seeds.write().unwrap()[0] = 1;
        lanes[0].keygen(1).unwrap();
        lanes[0].host_seeds.wipe().unwrap();
        assert!(!lanes[0].is_clear(), "on the device");
    }
    assert_eq!(clear(&gpu).len(), 1);
}
