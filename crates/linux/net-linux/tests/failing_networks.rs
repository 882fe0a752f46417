//! Networks that go away and come back, between hosts of our own: what happens to one link is
//! nothing to the other, and a link works again as soon as its network does.

mod support;

use bumpless_base::{Duration, Instant};
use bumpless_net_linux::{
    Clock, Echo, Link, Pinger, Poller, Segment, SendFailure, UdpConfig, UdpLink, Waker,
};
use std::net::SocketAddr;
use support::netns::{self, A, B, Hosts, Network, ip, with_hosts};
use support::{content, drain, open, receive, send};

/// Both ends of one network.
struct Path {
    near: UdpLink,
    far: UdpLink,
    /// Counts batches, so that a latecomer of an earlier one is not taken for the current one's.
    batch: u32,
}

const BATCH: usize = 50;

impl Path {
    fn open(hosts: &Hosts, network: Network, v6: bool) -> Self {
        Self {
            near: hosts.left(|| open(&network.left(v6), true)),
            far: hosts.right(|| open(&network.right(v6), true)),
            batch: 0,
        }
    }

    /// The current batch's datagrams.
    fn datagrams(&self) -> Vec<Vec<u8>> {
        let datagram = |number| [&self.batch.to_be_bytes()[..], &content(number, 900)].concat();
        (0..BATCH).map(datagram).collect()
    }

    /// Sends a batch; what the link said.
    fn try_send(&mut self) -> Option<SendFailure> {
        self.batch += 1;
        let datagrams = self.datagrams();
        let outcome = send(&mut self.near, self.far.local_address(), &datagrams, 30);
        assert_eq!(outcome.failure.is_none(), outcome.sent == BATCH);
        outcome.failure
    }

    /// Sends a batch and requires all of it to arrive, in order.
    fn carry(&mut self) {
        assert_eq!(self.try_send(), None);
        let mut received = Vec::new();
        while received.len() < BATCH {
            let arrived = receive(&mut self.far, 1);
            assert!(
                !arrived.is_empty(),
                "lost: {} of {BATCH} arrived",
                received.len()
            );
            let datagrams = arrived.into_iter().map(|(_, bytes)| bytes);
            received.extend(datagrams.filter(|bytes| bytes.starts_with(&self.batch.to_be_bytes())));
        }
        assert!(received == self.datagrams());
    }

    /// Sends until something arrives. Routes and neighbours may take their time to come back.
    fn carry_again(&mut self) {
        let timeout = Clock.now() + Duration::from_secs(20);
        while drain(&mut self.far).is_empty() {
            assert!(
                Clock.now() < timeout,
                "the network is back, the link is not"
            );
            self.try_send();
            std::thread::sleep(Duration::from_millis(1).to_std());
        }
    }
}

/// Makes `fault` on network A while both links send, then `repair`, over IPv4 and IPv6.
/// `refused` says whether the near host must know of the fault.
fn survives(fault: fn(&Hosts, bool), repair: fn(&Hosts, bool), refused: bool) {
    with_hosts(move |hosts| {
        for v6 in [false, true] {
            let (mut a, mut b) = (Path::open(hosts, A, v6), Path::open(hosts, B, v6));
            a.carry_again();
            b.carry_again();
            a.carry();
            for _ in 0..2 {
                fault(hosts, v6);
                for _ in 0..100 {
                    let failure = a.try_send();
                    assert!(
                        !refused || failure == Some(SendFailure::Unreachable),
                        "{failure:?}"
                    );
                    assert_eq!(a.near.receive(&mut |_, _| {}).failure, None);
                    b.carry();
                }
                repair(hosts, v6);
                a.carry_again();
                a.carry();
                b.carry();
            }
            assert!(
                a.near.segmentation(),
                "a fault of the network is not one of offload"
            );
        }
    });
}

fn an_interface_that_goes_down_and_up_disturbs_no_other_link() {
    survives(
        |hosts, _| hosts.left(|| ip("link set a1 down")),
        |hosts, _| hosts.left(|| bring_up(A.interface, &A.left(true))),
        true,
    );
}

/// What a network manager does for an interface that comes up: the kernel keeps the IPv4 addresses
/// of an interface that goes down, and drops the IPv6 ones.
fn bring_up(interface: &str, v6: &str) {
    ip(&format!("link set {interface} up"));
    netns::add_address(interface, v6);
}

fn an_address_that_goes_and_returns_disturbs_no_other_link() {
    survives(
        |hosts, v6| hosts.left(|| netns::remove_address(A.interface, &A.left(v6))),
        |hosts, v6| hosts.left(|| netns::add_address(A.interface, &A.left(v6))),
        true,
    );
}

fn an_interface_that_is_replaced_disturbs_no_other_link() {
    survives(
        |hosts, _| hosts.left(|| ip("link del a1")),
        |hosts, _| hosts.connect(A),
        true,
    );
}

fn a_cable_pulled_at_the_far_end_disturbs_no_other_link_and_works_again() {
    survives(
        |hosts, _| hosts.right(|| ip("link set a2 down")),
        |hosts, _| hosts.right(|| bring_up(A.peer, &A.right(true))),
        false,
    );
}

fn a_link_opened_before_its_address_exists_works_once_it_does() {
    with_hosts(|hosts| {
        for v6 in [false, true] {
            hosts.left(|| netns::remove_address(A.interface, &A.left(v6)));
            let local = SocketAddr::new(A.left(v6).parse().unwrap(), 4_700);
            let config = UdpConfig {
                may_be_absent: true,
                ..UdpConfig::new(local)
            };
            let near = hosts.left(|| UdpLink::open(&config)).unwrap();
            let far = hosts.right(|| open(&A.right(v6), true));
            let mut path = Path {
                near,
                far,
                batch: 0,
            };
            assert!(!path.near.report().address_present);
            assert_eq!(path.try_send(), Some(SendFailure::Unreachable));
            hosts.left(|| netns::add_address(A.interface, &A.left(v6)));
            path.carry_again();
            path.carry();
            assert_eq!(path.near.local_address(), local);
            assert!(path.near.segmentation());
        }
    });
}

fn a_full_queue_is_reported_at_once_and_disturbs_no_other_link() {
    with_hosts(|hosts| {
        hosts.left(|| {
            netns::run(
                "tc",
                "qdisc add dev a1 root tbf rate 8mbit burst 16kb limit 4mb",
            )
        });
        let mut b = Path::open(hosts, B, false);
        b.carry_again();
        let local = SocketAddr::new(A.left(false).parse().unwrap(), 0);
        let config = UdpConfig {
            send_buffer: 64 << 10,
            ..UdpConfig::new(local)
        };
        let near = hosts.left(|| UdpLink::open(&config)).unwrap();
        let mut a = Path {
            near,
            far: hosts.right(|| open(&A.right(false), true)),
            batch: 0,
        };
        a.carry_again();

        let datagrams = vec![content(0, 900); 1_000];
        let outcome = send(&mut a.near, a.far.local_address(), &datagrams, 30);
        assert_eq!(outcome.failure, Some(SendFailure::Full));
        assert!(outcome.sent < 1_000);
        b.carry();
        assert!(a.near.segmentation());

        let mut poller = Poller::new(&[a.near.descriptor().unwrap()], Waker::new().unwrap());
        poller.watch_writable(0, true);
        assert!(poller.wait(Instant::FAR_FUTURE).unwrap().contains(0));
        assert!(send(&mut a.near, a.far.local_address(), &datagrams, 30).sent > 0);
    });
}

fn pings_are_answered_over_either_kind_of_socket_and_only_ours_count() {
    with_hosts(|hosts| {
        for range in ["1 0", "0 2147483647"] {
            hosts
                .left(|| std::fs::write("/proc/sys/net/ipv4/ping_group_range", range))
                .unwrap();
            for v6 in [false, true] {
                let target = A.right(v6).parse().unwrap();
                let local = Some(A.left(v6).parse().unwrap());
                let mut ours = hosts.left(|| Pinger::open(target, local, 1)).unwrap();
                // On a raw socket its replies reach ours too, with the same identifier.
                let mut other = hosts.left(|| Pinger::open(target, None, 0x1_0001)).unwrap();
                assert_eq!(ours.receive(), None);
                for sequence in [7, 8, u16::MAX] {
                    other.send(sequence ^ 0x100).unwrap();
                    assert_eq!(ping(&mut ours, sequence), sequence);
                }
                let foreign = ours.passed_over().foreign;
                let raw = range == "1 0";
                assert!(if raw { foreign >= 3 } else { foreign == 0 }, "{foreign}");
                hosts.left(|| ip("link set a1 down"));
                assert_eq!(ours.send(9), Err(SendFailure::Unreachable));
                // Asked again because the machine stalled.
                while let Some(late) = ours.receive() {
                    assert!([7, 8, u16::MAX].contains(&late.sequence), "{late:?}");
                }
                hosts.left(|| bring_up(A.interface, &A.left(true)));
                assert_eq!(ping(&mut ours, 10), 10);
            }
        }
    });
}

/// Sends `sequence` until it is answered, and returns the answer.
fn ping(pinger: &mut Pinger, sequence: u16) -> u16 {
    let mut poller = Poller::new(&[pinger.descriptor()], Waker::new().unwrap());
    for _ in 0..200 {
        let _ = pinger.send(sequence);
        poller
            .wait(Clock.now() + Duration::from_millis(50))
            .unwrap();
        while let Some(reply) = pinger.receive() {
            assert!(
                [7, 8, u16::MAX, 10].contains(&reply.sequence),
                "{reply:?} is not ours"
            );
            if reply.sequence == sequence {
                return reply.sequence;
            }
        }
    }
    panic!("no answer to {sequence}");
}

/// A setting of network A's interface, on the host that the thread is on.
fn set(interface: &str, name: &str, value: &str) {
    let path = format!("/proc/sys/net/ipv4/{}", name.replace("IF", interface));
    std::fs::write(path, value).unwrap();
}

/// What the left host knows of how the right one is reached on network A.
fn neighbour(hosts: &Hosts) -> String {
    hosts.left(|| {
        let arguments = ["neigh", "show", "to", &A.right(false), "dev", A.interface];
        let output = std::process::Command::new("ip").args(arguments).output();
        String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
    })
}

fn is_lost(neighbour: &str) -> bool {
    ["FAILED", "INCOMPLETE"]
        .iter()
        .any(|it| neighbour.contains(it))
}

/// V-103: what a flood of ARP does to the answers; the kernel is told so by each datagram.
fn whoever_is_confirmed_stays_reachable_although_no_question_for_the_address_is_answered() {
    /// Between two datagrams, of which the kernel waits for the next one much longer.
    const STEP: Duration = Duration::from_millis(20);
    with_hosts(|hosts| {
        hosts.left(|| {
            set(A.interface, "neigh/IF/base_reachable_time_ms", "200");
            set(A.interface, "neigh/IF/delay_first_probe_time", "2");
            set(A.interface, "neigh/IF/retrans_time_ms", "100");
        });
        let answers = |on: bool| {
            let ignore = if on { "0" } else { "8" };
            hosts.right(|| set(A.peer, "conf/IF/arp_ignore", ignore));
        };
        let mut path = Path::open(hosts, A, false);
        let to = path.far.local_address();
        let one = [Segment {
            header: b"a",
            payload: b"",
        }];
        path.carry_again();
        answers(false);
        let begun = Clock.now();
        while !is_lost(&neighbour(hosts)) {
            path.near.send(to, &one);
            assert!(
                Clock.now() < begun + Duration::from_secs(60),
                "it is found without being asked for"
            );
            std::thread::sleep(STEP.to_std());
        }
        let lost_after = Clock.now().since(begun);
        // A machine that stands still for long confirms nothing: then once more.
        for attempt in 0..10 {
            answers(true);
            drain(&mut path.far);
            path.carry_again();
            answers(false);
            drain(&mut path.far);
            let begun = Clock.now();
            let (mut last, mut longest) = (begun, Duration::ZERO);
            while last < begun + lost_after * 2 {
                let _ = path.near.send_confirmed(to, &one);
                std::thread::sleep(STEP.to_std());
                longest = longest.max(Clock.now().since(last));
                last = Clock.now();
            }
            let (found, known) = (!drain(&mut path.far).is_empty(), neighbour(hosts));
            if found && !is_lost(&known) {
                return path.carry();
            }
            assert!(
                longest > Duration::from_secs(1),
                "{known} although confirmed each {longest:?}, attempt {attempt}"
            );
        }
    });
}

bumpless_testing::tests![
    an_interface_that_goes_down_and_up_disturbs_no_other_link,
    an_address_that_goes_and_returns_disturbs_no_other_link,
    an_interface_that_is_replaced_disturbs_no_other_link,
    a_cable_pulled_at_the_far_end_disturbs_no_other_link_and_works_again,
    a_link_opened_before_its_address_exists_works_once_it_does,
    a_full_queue_is_reported_at_once_and_disturbs_no_other_link,
    pings_are_answered_over_either_kind_of_socket_and_only_ours_count,
    whoever_is_confirmed_stays_reachable_although_no_question_for_the_address_is_answered,
];
