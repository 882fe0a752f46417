//! Datagrams that programs in the kernel hand over: which ones, in which order, what becomes of the others, and of all of them when
//! nobody takes them any more.

#[path = "hosts/mod.rs"]
mod hosts;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use bumpless_capture::{
    Decide, Diversion, Diverted, Diverting, Firewall, Held, Hop, Neighbours, Queue, Queued, Rules,
    Verdict, interfaces, parse,
};
use bumpless_testing::skip;
use hosts::{Hosts, NUMBER, TABLE, UDP, captured, received, rules, socket, wait_for};

const LONGEST: u16 = 1_400;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    // Fails only while a thread is being torn down, when nothing is measured.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Lets every packet go on, and takes no memory for that.
struct LetGo;

impl Decide for LetGo {
    fn decide(&mut self, _: Queued<'_>, _: Held<'_>) -> Verdict {
        Verdict::Accept
    }

    fn end(&mut self, _: Held<'_>) {}
}

/// What a test does with packets: notes their payloads, and lets those go on of which `goes_on` says so.
struct Note<'a, F> {
    seen: &'a mut Vec<Vec<u8>>,
    goes_on: F,
}

impl<F: Fn(&[u8]) -> bool> Decide for Note<'_, F> {
    fn decide(&mut self, packet: Queued<'_>, _: Held<'_>) -> Verdict {
        let parsed = parse(packet.bytes).unwrap();
        self.seen.push(parsed.payload.to_vec());
        match (self.goes_on)(parsed.payload) {
            true => Verdict::Accept,
            false => Verdict::Drop,
        }
    }

    fn end(&mut self, _: Held<'_>) {}
}

/// A host that captures by both ways.
struct Capturing {
    firewall: Firewall,
    queue: Queue,
    diversion: Diversion,
    diverted: Diverted,
}

fn with_diversion(diversion: &Diversion) -> Rules {
    let diverting = Diverting {
        marks: diversion.marks(),
        longest: (LONGEST, LONGEST),
    };
    Rules {
        diverting: Some(diverting),
        ..rules(&[])
    }
}

/// The other host's addresses.
const HOPS: [&str; 4] = ["10.1.0.1", "10.1.0.2", "10.2.0.2", "fd00:a::2"];

/// These as next hops by every interface.
fn reached(addresses: &[&str]) -> Vec<Hop> {
    let all = interfaces().unwrap();
    let all = all.iter().map(|it| it.index);
    let by = |interface| {
        addresses
            .iter()
            .map(move |it| (interface, it.parse().unwrap()))
    };
    all.flat_map(by).collect()
}

impl Capturing {
    /// Both ways at all interfaces of the host.
    fn new() -> Self {
        let queue = Queue::open(NUMBER, 1024).unwrap();
        // Tests run at once, and each host needs marks of its own.
        let drawn = bumpless_net_linux::random::seed().unwrap();
        let opened = Diversion::open(drawn);
        let opened = opened.unwrap_or_else(|error| skip(&format!("needs a ring: {error}")));
        let (mut diversion, diverted) = opened;
        let all: Vec<_> = interfaces().unwrap().iter().map(|it| it.index).collect();
        assert!(diversion.watches_others_than(&all));
        diversion.watch(&all);
        assert!(!diversion.watches_others_than(&all));
        let mut firewall = Firewall::install(TABLE, &with_diversion(&diversion)).unwrap();
        firewall.divert_by(&reached(&HOPS)).unwrap();
        Self {
            firewall,
            queue,
            diversion,
            diverted,
        }
    }

    /// Waits until so many packets have come by the ring; what was in them.
    fn handed_over(&mut self, count: usize, goes_on: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
        let mut seen = Vec::new();
        wait_for("packets that were handed over", || {
            let goes_on = &goes_on;
            self.diverted.drain_by(
                16,
                Note {
                    seen: &mut seen,
                    goes_on,
                },
            );
            (seen.len() >= count).then_some(())
        });
        seen
    }

    /// The same of the queue.
    fn queued(&mut self, count: usize) -> Vec<Vec<u8>> {
        let mut seen = Vec::new();
        wait_for("packets in the queue", || {
            let goes_on = |_: &[u8]| false;
            let taken = self.queue.drain_by(
                16,
                Note {
                    seen: &mut seen,
                    goes_on,
                },
            );
            taken.unwrap();
            (seen.len() >= count).then_some(())
        });
        seen
    }
}

fn drop_all(_: &[u8]) -> bool {
    false
}

fn set(socket: &UdpSocket, level: i32, option: i32, value: i32) {
    let (at, len) = ((&raw const value).cast(), size_of::<i32>() as u32);
    // SAFETY: the kernel reads four bytes of `value`, which lives through the call.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, at, len) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

fn datagrams_are_handed_over_in_order_and_what_is_let_go_arrives_as_it_was() {
    let hosts = Hosts::new();
    for (here, there) in [("10.1.0.1", "10.1.0.2"), ("fd00:a::1", "fd00:a::2")] {
        let at = |address: &str, port: u16| SocketAddr::new(address.parse().unwrap(), port);
        let target = hosts.at(&hosts.b, || socket(&at(there, 5000).to_string()));
        hosts.at(&hosts.a, || {
            let mut host = Capturing::new();
            let source = socket(&at(here, 4000).to_string());
            let send = |text: &[u8]| source.send_to(text, at(there, 5000)).unwrap();
            send(b"before");
            assert_eq!(received(&target).0, b"before");
            host.firewall.capture(&captured(UDP, there, 5000)).unwrap();
            for number in 0..100_u8 {
                send(&[number; 280]);
            }
            let seen = host.handed_over(100, |it| it[0] == 42);
            assert!(
                seen.iter()
                    .zip(0..)
                    .all(|(it, number)| *it == [number; 280])
            );
            let (bytes, from) = received(&target);
            assert_eq!((bytes, from), (vec![42; 280], at(here, 4000)));
            // Of the hundred only that one has left.
            host.firewall.release(&captured(UDP, there, 5000)).unwrap();
            send(b"after");
            assert_eq!(received(&target).0, b"after");
            assert_eq!((host.diverted.lost(), host.diversion.passed_by()), (0, 0));
        });
    }
}

fn what_is_no_plain_datagram_of_a_socket_waits_in_the_queue() {
    let hosts = Hosts::new();
    let target = hosts.at(&hosts.b, || socket("10.1.0.2:5000"));
    hosts.at(&hosts.a, || {
        let mut host = Capturing::new();
        host.firewall
            .capture(&captured(UDP, "10.1.0.2", 5000))
            .unwrap();
        let to = "10.1.0.2:5000";
        let source = socket("10.1.0.1:4000");
        let longest = usize::from(LONGEST) - 8;
        source.send_to(&vec![1; longest], to).unwrap();
        assert_eq!(host.handed_over(1, drop_all)[0].len(), longest);
        source.send_to(&vec![2; longest + 1], to).unwrap();
        source.send_to(&vec![3; 3_000], to).unwrap();
        let queued = host.queued(2);
        assert_eq!([queued[0].len(), queued[1].len()], [longest + 1, 3_000]);
        // A program that marks its packets means something by it.
        let marking = socket("10.1.0.1:4001");
        set(&marking, libc::SOL_SOCKET, libc::SO_MARK, 99);
        marking.send_to(b"marked", to).unwrap();
        assert_eq!(host.queued(1), [b"marked"]);
        // A next hop that is not known to be there.
        host.firewall.divert_by(&reached(&HOPS[2..])).unwrap();
        source.send_to(b"unknown", to).unwrap();
        assert_eq!(host.queued(1), [b"unknown"]);
        host.firewall.divert_by(&reached(&HOPS)).unwrap();
        // Other rules change nothing of that.
        host.firewall
            .replace(&with_diversion(&host.diversion))
            .unwrap();
        source.send_to(b"known", to).unwrap();
        assert_eq!(host.handed_over(1, drop_all), [b"known"]);
        host.firewall
            .release(&captured(UDP, "10.1.0.2", 5000))
            .unwrap();
        source.send_to(b"nothing else came", to).unwrap();
        assert_eq!(received(&target).0, b"nothing else came");
    });
}

fn datagrams_that_a_socket_gave_in_one_are_handed_over_one_by_one() {
    let hosts = Hosts::new();
    let target = hosts.at(&hosts.b, || socket("10.1.0.2:5000"));
    hosts.at(&hosts.a, || {
        let mut host = Capturing::new();
        host.firewall
            .capture(&captured(UDP, "10.1.0.2", 5000))
            .unwrap();
        let source = socket("10.1.0.1:4000");
        set(&source, libc::SOL_UDP, libc::UDP_SEGMENT, 100);
        let bytes: Vec<u8> = (0..=255).cycle().take(1_050).collect();
        source.send_to(&bytes, "10.1.0.2:5000").unwrap();
        let seen = host.handed_over(11, |it| it.len() == 50 || it == &bytes[100..200]);
        assert_eq!(seen, bytes.chunks(100).collect::<Vec<_>>());
        assert_eq!(received(&target).0, bytes[100..200]);
        assert_eq!(received(&target).0, bytes[1_000..]);
    });
}

fn packets_are_handed_over_and_let_go_without_memory_being_taken() {
    let hosts = Hosts::new();
    let target = hosts.at(&hosts.b, || socket("10.1.0.2:5000"));
    hosts.at(&hosts.a, || {
        let mut host = Capturing::new();
        host.firewall
            .capture(&captured(UDP, "10.1.0.2", 5000))
            .unwrap();
        let source = socket("10.1.0.1:4000");
        let segmented = socket("10.1.0.1:4001");
        set(&segmented, libc::SOL_UDP, libc::UDP_SEGMENT, 100);
        let mut round = || {
            source.send_to(b"one", "10.1.0.2:5000").unwrap();
            segmented.send_to(&[7; 950], "10.1.0.2:5000").unwrap();
            let before = ALLOCATIONS.get();
            let mut count = 0;
            let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
            while count < 11 {
                count += host.diverted.drain_by(64, LetGo);
                assert!(
                    std::time::Instant::now() < until,
                    "{count} of 11 came by the ring"
                );
            }
            let taken = ALLOCATIONS.get() - before;
            (0..11).for_each(|_| drop(received(&target)));
            taken
        };
        // The first one of an interface opens a socket.
        round();
        assert_eq!((0..20).map(|_| round()).sum::<usize>(), 0);
    });
}

fn a_sender_bound_to_an_interface_is_heard_and_let_go_by_that_interface() {
    let hosts = Hosts::new();
    let target = hosts.at(&hosts.b, || socket("10.2.0.2:5000"));
    // A host answers for all its addresses on each network: what comes by the other one does not count.
    let only = socket2::SockRef::from(&target);
    only.bind_device(Some(b"nb")).unwrap();
    hosts.at(&hosts.a, || {
        let mut host = Capturing::new();
        host.firewall.capture(&captured(UDP, "10.2.0.2", 5000)).unwrap();
        let source = UdpSocket::bind("0.0.0.0:4000").unwrap();
        socket2::SockRef::from(&source).bind_device(Some(b"nb")).unwrap();
        hosts.ip(&hosts.a, "route del 10.2.0.0/24 dev nb\nroute add 10.2.0.0/24 dev na metric 5\nroute add 10.2.0.0/24 dev nb metric 9\n");
        source.send_to(b"bound", "10.2.0.2:5000").unwrap();
        assert_eq!(host.handed_over(1, |_| true), [b"bound"]);
        assert_eq!(received(&target).0, b"bound");
        assert_eq!(host.diverted.lost(), 0);
    });
}

fn an_interface_that_is_not_watched_takes_its_datagrams_as_they_are() {
    let hosts = Hosts::new();
    let target = hosts.at(&hosts.b, || socket("10.1.0.2:5000"));
    hosts.at(&hosts.a, || {
        let mut host = Capturing::new();
        host.firewall
            .capture(&captured(UDP, "10.1.0.2", 5000))
            .unwrap();
        host.diversion.watch(&[]);
        let source = socket("10.1.0.1:4000");
        source.send_to(b"as it is", "10.1.0.2:5000").unwrap();
        assert_eq!(received(&target).0, b"as it is");
        assert_eq!(host.diverted.drain_by(16, LetGo), 0);
    });
}

fn next_hops_are_told_with_what_becomes_of_them() {
    let hosts = Hosts::new();
    let target = hosts.at(&hosts.b, || socket("10.1.0.2:5000"));
    hosts.at(&hosts.a, || {
        let mut neighbours = Neighbours::open().unwrap();
        let hop = (
            interfaces().unwrap()[0].index,
            "10.1.0.2".parse::<IpAddr>().unwrap(),
        );
        let is_there = |it: &Neighbours| it.read().unwrap().iter().any(|it| it.hop == hop);
        assert!(!is_there(&neighbours));
        socket("10.1.0.1:4000")
            .send_to(b"x", "10.1.0.2:5000")
            .unwrap();
        received(&target);
        assert!(neighbours.changed() && is_there(&neighbours));
        hosts.ip(&hosts.a, "neighbour flush dev na\n");
        wait_for("its end", || (!is_there(&neighbours)).then_some(()));
        assert!(neighbours.changed());
    });
}

fn datagrams_pass_when_the_ring_is_full_and_when_nobody_has_it() {
    let hosts = Hosts::new();
    let target = hosts.at(&hosts.b, || socket("10.1.0.2:5000"));
    hosts.at(&hosts.a, || {
        let host = Capturing::new();
        let Capturing {
            mut firewall,
            diversion,
            diverted,
            ..
        } = host;
        firewall.capture(&captured(UDP, "10.1.0.2", 5000)).unwrap();
        let source = socket("10.1.0.1:4000");
        let mut sent = 0;
        while diversion.passed_by() < 3 {
            source.send_to(b"full", "10.1.0.2:5000").unwrap();
            sent += 1;
            assert!(sent < 100_000);
        }
        for _ in 0..3 {
            assert_eq!(received(&target).0, b"full");
        }
        assert!(sent > 1_000, "{sent}");
        drop((diversion, diverted));
        source.send_to(b"bypass", "10.1.0.2:5000").unwrap();
        assert_eq!(received(&target).0, b"bypass");
    });
}

fn hosts_of_one_kernel_take_their_own_datagrams_only() {
    let hosts = Hosts::new();
    let mut of_b = hosts.at(&hosts.b, || {
        let mut host = Capturing::new();
        host.firewall
            .capture(&captured(UDP, "10.1.0.1", 5000))
            .unwrap();
        host
    });
    hosts.at(&hosts.a, || {
        let mut of_a = Capturing::new();
        of_a.firewall
            .capture(&captured(UDP, "10.1.0.2", 5000))
            .unwrap();
        socket("10.1.0.1:4000")
            .send_to(b"of a", "10.1.0.2:5000")
            .unwrap();
        assert_eq!(of_a.handed_over(1, drop_all), [b"of a"]);
        hosts.at(&hosts.b, || {
            socket("10.1.0.2:4000")
                .send_to(b"of b", "10.1.0.1:5000")
                .unwrap()
        });
        assert_eq!(of_b.handed_over(1, drop_all), [b"of b"]);
        assert_eq!(
            of_a.diverted.drain_by(
                16,
                Note {
                    seen: &mut Vec::new(),
                    goes_on: drop_all
                }
            ),
            0
        );
        hosts.at(&hosts.a, || ());
    });
}

bumpless_testing::tests!(
    datagrams_are_handed_over_in_order_and_what_is_let_go_arrives_as_it_was,
    what_is_no_plain_datagram_of_a_socket_waits_in_the_queue,
    datagrams_that_a_socket_gave_in_one_are_handed_over_one_by_one,
    packets_are_handed_over_and_let_go_without_memory_being_taken,
    a_sender_bound_to_an_interface_is_heard_and_let_go_by_that_interface,
    an_interface_that_is_not_watched_takes_its_datagrams_as_they_are,
    next_hops_are_told_with_what_becomes_of_them,
    datagrams_pass_when_the_ring_is_full_and_when_nobody_has_it,
    hosts_of_one_kernel_take_their_own_datagrams_only,
);
