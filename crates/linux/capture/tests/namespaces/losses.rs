//! What a namespace loses as it comes in.

use bumpless_capture::{Loss, lose_incoming, lost_incoming};

use crate::hosts::Hosts;

fn lost() -> Vec<(u32, u32)> {
    let losses = lost_incoming("test-loss").unwrap().into_iter();
    let mut lost: Vec<_> = losses.map(|it| (it.interface, it.millionths)).collect();
    lost.sort_unstable();
    lost
}

pub fn tables_that_lose_packets_leave_each_other_as_they_are() {
    let _hosts = Hosts::new();
    let loss = |interface, millionths| Loss {
        interface,
        millionths,
    };
    assert_eq!(lost(), []);
    lose_incoming("test-loss", &[loss(2, 10)]).unwrap();
    lose_incoming("test-loss", &[loss(3, 20)]).unwrap();
    lose_incoming("other", &[loss(4, 40)]).unwrap();
    assert_eq!(lost(), [(2, 10), (3, 20)]);
    lose_incoming("test-loss", &[loss(2, 30)]).unwrap();
    assert_eq!(lost(), [(2, 30), (3, 20)]);
    lose_incoming("test-loss", &[loss(2, 0), loss(5, 50)]).unwrap();
    assert_eq!(lost(), [(3, 20), (5, 50)]);
    lose_incoming("test-loss", &[loss(3, 0), loss(5, 0), loss(6, 0)]).unwrap();
    assert_eq!(lost(), []);
}
