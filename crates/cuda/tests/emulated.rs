//! The emulated device, by its public interface.
#![cfg(feature = "emulated")]

use lanework_cuda::{Device, Emulation, Order, selftest};

#[test]
fn the_self_test_passes_in_every_order() {
    for order in [Order::Forward, Order::Reverse, Order::Shuffled(1), Order::Shuffled(77)] {
        let (device, _) = Device::emulated(Emulation { order, ..Emulation::default() });
        for row in selftest(&device).expect("the emulation has memory") {
            assert_eq!(row.result, Ok(()), "{} in {order:?}", row.what);
        }
    }
}
