use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard};

use bumpless_net_linux::{Link, ReceiveOutcome, Segment, SendFailure, SendOutcome};

use super::*;

/// Both ends of a wire in memory: what is sent can be seen, what is put in arrives.
#[derive(Default)]
struct Wire {
    sent: Vec<(SocketAddr, Vec<u8>)>,
    arriving: VecDeque<(SocketAddr, Vec<u8>)>,
    /// Packets that are still taken before the queue is full.
    room: Option<usize>,
}

#[derive(Clone, Default)]
struct FakeLink(Arc<Mutex<Wire>>);

impl Link for FakeLink {
    fn send(&mut self, to: SocketAddr, packets: &[Segment<'_>]) -> SendOutcome {
        let mut wire = self.0.lock().unwrap();
        for (index, packet) in packets.iter().enumerate() {
            match &mut wire.room {
                Some(0) => {
                    return SendOutcome {
                        sent: index,
                        failure: Some(SendFailure::Full),
                    };
                }
                Some(room) => *room -= 1,
                None => {}
            }
            wire.sent
                .push((to, [packet.header, packet.payload].concat()));
        }
        SendOutcome {
            sent: packets.len(),
            failure: None,
        }
    }
    fn receive(&mut self, sink: &mut dyn FnMut(SocketAddr, &mut [u8])) -> ReceiveOutcome {
        let arriving = std::mem::take(&mut self.0.lock().unwrap().arriving);
        for (from, packet) in &arriving {
            sink(*from, &mut packet.clone());
        }
        ReceiveOutcome {
            datagrams: arriving.len(),
            ..ReceiveOutcome::default()
        }
    }
    fn descriptor(&self) -> Option<RawFd> {
        None
    }
    fn local_address(&self) -> SocketAddr {
        witness()
    }
}

fn partner() -> SocketAddr {
    "127.0.1.2:4700".parse().unwrap()
}

fn witness() -> SocketAddr {
    "127.0.1.9:4710".parse().unwrap()
}

struct Bench {
    wire: Arc<Mutex<Wire>>,
    state: Arc<FaultState>,
    link: FaultyLink<FakeLink>,
}

fn bench(faults: LinkFaults) -> Bench {
    let fake = FakeLink::default();
    let wire = Arc::clone(&fake.0);
    let state = FaultState::new(["A", "B"]);
    state.set(&FaultPlan::on(["A"], &faults)).unwrap();
    let link = FaultyLink::new(
        fake,
        Arc::clone(state.links().next().unwrap()),
        vec![partner()],
        7,
    );
    Bench { wire, state, link }
}

impl Bench {
    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().unwrap()
    }

    /// Sends packets 0 to `n - 1` in bundles of 20.
    fn send(&mut self, to: SocketAddr, n: u32) {
        let numbers: Vec<_> = (0..n).map(u32::to_be_bytes).collect();
        for bundle in numbers.chunks(20) {
            let segments: Vec<_> = bundle
                .iter()
                .map(|n| Segment {
                    header: &n[..2],
                    payload: &n[2..],
                })
                .collect();
            let outcome = self.link.send(to, &segments);
            assert_eq!(
                outcome,
                SendOutcome {
                    sent: bundle.len(),
                    failure: None
                }
            );
        }
    }

    fn sent(&self) -> Vec<u32> {
        self.wire()
            .sent
            .iter()
            .map(|(_, packet)| number(packet))
            .collect()
    }

    /// Lets packets 0 to `n - 1` arrive and says which got through.
    fn receive(&mut self, from: SocketAddr, n: u32) -> Vec<u32> {
        let packets = (0..n).map(|n| (from, n.to_be_bytes().to_vec()));
        self.wire().arriving.extend(packets);
        let mut got = Vec::new();
        self.link.receive(&mut |_, packet| got.push(number(packet)));
        got
    }
}

fn number(packet: &[u8]) -> u32 {
    u32::from_be_bytes(packet.try_into().unwrap())
}

fn both(faults: PacketFaults) -> LinkFaults {
    LinkFaults {
        cut: Cut::Nothing,
        send: faults.clone(),
        receive: faults,
    }
}

#[test]
fn without_faults_every_packet_passes_unchanged_and_in_order() {
    let mut bench = bench(LinkFaults::default());
    bench.send(partner(), 1000);
    assert_eq!(bench.sent(), (0..1000).collect::<Vec<_>>());
    assert_eq!(
        bench.receive(partner(), 1000),
        (0..1000).collect::<Vec<_>>()
    );
    assert_eq!(bench.state.injected(), Injected::default());
}

#[test]
fn the_stated_share_is_lost_in_each_direction() {
    let mut bench = bench(both(PacketFaults {
        loss: 0.05,
        ..PacketFaults::default()
    }));
    bench.send(partner(), 20_000);
    let sent = bench.sent();
    let got = bench.receive(partner(), 20_000);
    for passed in [&sent, &got] {
        assert!((18_800..19_200).contains(&passed.len()), "{}", passed.len());
        assert!(passed.windows(2).all(|pair| pair[0] < pair[1]));
    }
    assert_eq!(
        bench.state.injected().lost as usize,
        40_000 - sent.len() - got.len()
    );
}

#[test]
fn bursts_take_the_stated_number_in_a_row() {
    let mut bench = bench(LinkFaults::bursts(0.002, 10));
    let got = bench.receive(partner(), 50_000);
    let holes: Vec<u32> = got
        .windows(2)
        .map(|pair| pair[1] - pair[0] - 1)
        .filter(|&hole| hole > 0)
        .collect();
    assert!(holes.len() > 50, "{}", holes.len());
    assert!(holes.iter().all(|hole| hole % 10 == 0), "{holes:?}");
}

#[test]
fn a_cut_between_the_pair_leaves_the_witness_in_reach() {
    let mut bench = bench(LinkFaults::cut(Cut::Partners));
    bench.send(partner(), 10);
    bench.send(witness(), 3);
    assert_eq!(bench.sent(), [0, 1, 2]);
    assert_eq!(bench.receive(partner(), 10), [0; 0]);
    assert_eq!(bench.receive(witness(), 2), [0, 1]);
    bench
        .state
        .set(&FaultPlan::on(["A"], &LinkFaults::cut(Cut::All)))
        .unwrap();
    bench.send(witness(), 3);
    assert_eq!(
        (bench.sent().len(), bench.receive(witness(), 2).len()),
        (3, 0)
    );
    bench.state.set(&FaultPlan::default()).unwrap();
    assert_eq!(bench.receive(partner(), 2), [0, 1]);
}

#[test]
fn doubled_packets_come_twice_and_spoiled_ones_differ_in_one_bit() {
    let mut doubling = bench(both(PacketFaults {
        duplicate: 1.0,
        ..PacketFaults::default()
    }));
    doubling.send(partner(), 3);
    assert_eq!(doubling.sent(), [0, 0, 1, 1, 2, 2]);
    assert_eq!(doubling.receive(partner(), 2), [0, 0, 1, 1]);

    let mut spoiling = bench(both(PacketFaults {
        corrupt: 1.0,
        ..PacketFaults::default()
    }));
    spoiling.send(partner(), 100);
    let got = [spoiling.sent(), spoiling.receive(partner(), 100)];
    for passed in got {
        let wrong = passed
            .iter()
            .zip(0u32..)
            .map(|(got, sent)| (got ^ sent).count_ones());
        assert_eq!(wrong.collect::<Vec<_>>(), [1; 100]);
    }
}

#[test]
fn a_reordered_packet_is_overtaken_but_not_lost() {
    let mut bench = bench(both(PacketFaults {
        reorder: 0.1,
        ..PacketFaults::default()
    }));
    let mut got = bench.receive(partner(), 1000);
    assert!(bench.state.injected().reordered > 50);
    assert!(got.windows(2).any(|pair| pair[0] > pair[1]));
    got.sort_unstable();
    got.dedup();
    assert!(got.len() >= 999, "only the very last may still be waiting");
}

#[test]
fn a_full_queue_is_reported_with_the_number_of_packets_that_are_settled() {
    for faults in [
        PacketFaults::default(),
        PacketFaults {
            loss: 0.5,
            ..PacketFaults::default()
        },
        PacketFaults {
            duplicate: 0.5,
            ..PacketFaults::default()
        },
        PacketFaults {
            corrupt: 0.5,
            ..PacketFaults::default()
        },
    ] {
        let mut bench = bench(both(faults));
        bench.wire().room = Some(7);
        let numbers: Vec<_> = (0..40u32).map(u32::to_be_bytes).collect();
        let segments: Vec<_> = numbers
            .iter()
            .map(|n| Segment {
                header: n,
                payload: &[],
            })
            .collect();
        let outcome = bench.link.send(partner(), &segments);
        assert_eq!(outcome.failure, Some(SendFailure::Full));
        assert!((3..40).contains(&outcome.sent), "{outcome:?}");
        // Nothing at or beyond the reported packet has left, so sending it again is right.
        assert!(bench.sent().len() <= 7);
    }
}

#[test]
fn orders_hold_when_the_call_returns_and_wrong_ones_change_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("left.faults");
    let mut bench = bench(LinkFaults::default());
    let control = FaultControl::start(&path, Arc::clone(&bench.state)).unwrap();
    assert_eq!(
        apply(&path, &FaultPlan::on(["A"], &LinkFaults::loss(1.0)))
            .unwrap()
            .lost,
        0
    );
    assert_eq!(bench.receive(partner(), 5), [0; 0]);

    let wrong_link = apply(&path, &FaultPlan::on(["C"], &LinkFaults::default())).unwrap_err();
    assert!(
        wrong_link.to_string().contains("there are A, B"),
        "{wrong_link}"
    );
    let wrong_share = apply(&path, &FaultPlan::on(["A"], &LinkFaults::loss(1.5))).unwrap_err();
    assert!(
        wrong_share.to_string().contains("between 0 and 1"),
        "{wrong_share}"
    );
    assert_eq!(bench.receive(partner(), 5), [0; 0]);

    assert_eq!(apply(&path, &FaultPlan::default()).unwrap().lost, 10);
    assert_eq!(bench.receive(partner(), 2), [0, 1]);
    drop(control);
    assert!(!path.exists() && apply(&path, &FaultPlan::default()).is_err());
}
