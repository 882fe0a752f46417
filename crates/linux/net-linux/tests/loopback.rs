//! Links over the loopback interface: what goes in comes out, on both paths and both IP versions.

mod support;

use bumpless_net_linux::{
    Clock, Link, OpenCause, Poller, Screen, Segment, SendFailure, UdpConfig, UdpLink, Waker,
};
use std::net::SocketAddr;
use support::{content, drain, open, receive, send};

const HOSTS: [&str; 2] = ["127.0.0.1", "::1"];

/// Sends `sizes` and checks that exactly these datagrams arrive, in order.
fn carries(ip: &str, segmentation: bool, sizes: &[usize], header: usize) {
    let (mut from, mut to) = (open(ip, segmentation), open(ip, true));
    let datagrams: Vec<Vec<u8>> = sizes
        .iter()
        .enumerate()
        .map(|(number, &size)| content(number, size))
        .collect();
    let outcome = send(&mut from, to.local_address(), &datagrams, header);
    assert_eq!(
        (outcome.sent, outcome.failure),
        (datagrams.len(), None),
        "{ip} {sizes:?}"
    );
    let received = receive(&mut to, datagrams.len());
    assert_eq!(
        received.len(),
        datagrams.len(),
        "{ip} segmentation {segmentation} {sizes:?}"
    );
    for (number, ((source, bytes), datagram)) in received.iter().zip(&datagrams).enumerate() {
        assert_eq!(*source, from.local_address());
        assert_eq!(
            bytes, datagram,
            "{ip} segmentation {segmentation}: datagram {number}"
        );
    }
    assert_eq!(from.segmentation(), segmentation, "loopback can segment");
    assert!(drain(&mut to).is_empty());
}

fn carries_everywhere(sizes: &[usize], header: usize) {
    for ip in HOSTS {
        for segmentation in [true, false] {
            carries(ip, segmentation, sizes, header);
        }
    }
}

#[test]
fn runs_of_equal_size_arrive_whole_and_in_order_on_both_paths() {
    carries_everywhere(&[1_430; 300], 30);
    carries_everywhere(&[64; 1_000], 30);
}

#[test]
fn mixed_sizes_arrive_whole_and_in_order_on_both_paths() {
    carries_everywhere(
        &[1_430, 1_430, 700, 1_430, 30, 31, 30, 30, 9_000, 9_000, 1],
        30,
    );
    let sizes: Vec<usize> = (0..400).map(|n| 1 + n * 7_919 % 1_500).collect();
    carries_everywhere(&sizes, 18);
}

#[test]
fn the_last_shorter_packet_of_a_state_arrives_with_its_run() {
    let mut sizes = vec![1_430; 63];
    sizes.extend([10, 1_430, 1_430, 1]);
    carries_everywhere(&sizes, 10);
}

#[test]
fn empty_payloads_and_empty_datagrams_arrive() {
    carries_everywhere(&[30, 30, 30], 30);
    carries_everywhere(&[0, 0, 5, 5, 0, 5], 30);
    carries_everywhere(&[0], 0);
}

#[test]
fn the_largest_datagram_arrives() {
    carries_everywhere(&[65_400, 65_400, 40_000, 40_000], 30);
}

#[test]
fn nothing_to_send_is_done_at_once() {
    let mut link = open("127.0.0.1", true);
    let to = link.local_address();
    assert_eq!(link.send(to, &[]).failure, None);
}

#[test]
fn offload_that_the_kernel_refuses_is_given_up_for_good_without_a_loss() {
    for ip in HOSTS {
        let (mut from, mut to) = (open(ip, true), open(ip, true));
        forbid_checksums(&from);
        forbid_checksums(&to);
        let datagrams: Vec<Vec<u8>> = (0..150).map(|number| content(number, 600)).collect();
        assert_eq!(
            send(&mut from, to.local_address(), &datagrams, 30).sent,
            150
        );
        assert!(!from.segmentation());
        assert_eq!(
            send(&mut from, to.local_address(), &datagrams, 30).sent,
            150
        );
        let received: Vec<_> = receive(&mut to, 300)
            .into_iter()
            .map(|(_, bytes)| bytes)
            .collect();
        assert!(
            received == [datagrams.clone(), datagrams].concat(),
            "{ip}: {}",
            received.len()
        );
    }
}

/// Linux refuses to segment for a socket without transmit checksums.
fn forbid_checksums(link: &UdpLink) {
    let options: &[_] = match link.local_address() {
        SocketAddr::V4(_) => &[(libc::SOL_SOCKET, libc::SO_NO_CHECK)],
        SocketAddr::V6(_) => &[
            (libc::SOL_UDP, libc::UDP_NO_CHECK6_TX),
            (libc::SOL_UDP, libc::UDP_NO_CHECK6_RX),
        ],
    };
    let (fd, on) = (link.descriptor().unwrap(), 1i32);
    for &(level, name) in options {
        // SAFETY: `on` is readable for 4 bytes through the call.
        let result = unsafe { libc::setsockopt(fd, level, name, (&raw const on).cast(), 4) };
        assert_eq!(result, 0);
    }
}

#[test]
fn a_closed_port_does_not_stop_later_sends() {
    let mut from = open("127.0.0.1", true);
    let closed = open("127.0.0.1", true).local_address();
    let mut to = open("127.0.0.1", true);
    let datagrams = vec![content(0, 100); 3];
    for _ in 0..20 {
        assert_eq!(send(&mut from, closed, &datagrams, 30).failure, None);
        assert_eq!(send(&mut from, to.local_address(), &datagrams, 30).sent, 3);
        assert_eq!(from.receive(&mut |_, _| {}).failure, None);
    }
    assert_eq!(receive(&mut to, 60).len(), 60);
}

#[test]
fn a_packet_beyond_the_mtu_is_refused_and_the_link_goes_on() {
    // 65,507 bytes are UDP's limit over IPv4, so no interface's MTU takes one more.
    let (mut from, mut to) = (open("127.0.0.1", true), open("127.0.0.1", true));
    let datagrams = [content(0, 10), content(1, 65_508), content(2, 10)];
    let outcome = send(&mut from, to.local_address(), &datagrams, 0);
    assert_eq!(
        (outcome.sent, outcome.failure),
        (1, Some(SendFailure::TooBig))
    );
    assert_eq!(
        send(&mut from, to.local_address(), &datagrams[2..], 0).sent,
        1
    );
    assert_eq!(receive(&mut to, 2).len(), 2);
}

#[test]
fn a_link_that_fails_does_not_disturb_another() {
    let (mut failing, mut good) = (open("127.0.0.1", true), open("127.0.0.1", true));
    let mut to = open("127.0.0.1", true);
    let datagrams = vec![content(0, 500); 10];
    for _ in 0..10 {
        // A loopback source cannot leave the machine, and port 0 is nobody's.
        for nowhere in ["192.0.2.1:9", "127.0.0.1:0"] {
            let outcome = send(&mut failing, nowhere.parse().unwrap(), &datagrams, 30);
            let unreachable = (0, Some(SendFailure::Unreachable));
            assert_eq!((outcome.sent, outcome.failure), unreachable, "{nowhere}");
        }
        let mixed = send(&mut failing, "[::1]:9".parse().unwrap(), &datagrams, 30);
        assert!(mixed.sent == 0 && mixed.failure.is_some());
        assert_eq!(send(&mut good, to.local_address(), &datagrams, 30).sent, 10);
    }
    assert!(
        failing.segmentation(),
        "an unreachable address says nothing about offload"
    );
    assert_eq!(
        send(&mut failing, to.local_address(), &datagrams, 30).sent,
        10
    );
    assert_eq!(receive(&mut to, 110).len(), 110);
}

#[test]
fn one_call_receives_a_bounded_amount_and_says_that_there_is_more() {
    let (mut from, mut to) = (open("127.0.0.1", false), open("127.0.0.1", true));
    let datagrams = vec![content(0, 100); 200];
    assert_eq!(
        send(&mut from, to.local_address(), &datagrams, 30).sent,
        200
    );
    let (mut calls, mut received) = (0, 0);
    while received < 200 {
        let outcome = to.receive(&mut |_, _| {});
        received += outcome.datagrams;
        calls += 1;
        assert!(outcome.datagrams <= 16);
        assert!(outcome.more || received == 200);
    }
    assert!(calls >= 12);
}

#[test]
fn an_arrival_ends_the_wait_of_the_poller() {
    let (mut from, to) = (open("::1", true), open("::1", true));
    let mut poller = Poller::new(&[to.descriptor().unwrap()], Waker::new().unwrap());
    assert!(poller.wait(Clock.now()).unwrap().is_empty());
    from.send(
        to.local_address(),
        &[Segment {
            header: b"x",
            payload: b"",
        }],
    );
    assert!(
        poller
            .wait(bumpless_base::Instant::FAR_FUTURE)
            .unwrap()
            .contains(0)
    );
}

#[test]
fn an_address_in_use_or_elsewhere_is_named_with_its_remedy() {
    let taken = open("127.0.0.1", true);
    let error = UdpLink::open(&UdpConfig::new(taken.local_address()))
        .err()
        .unwrap();
    assert_eq!(error.cause, OpenCause::AddressInUse);
    let port = taken.local_address().port().to_string();
    assert!(
        error.to_string().contains(&port) && error.to_string().contains("ss -ulpn"),
        "{error}"
    );

    for absent in ["192.0.2.77:4700", "[2001:db8::77]:4700"] {
        let config = UdpConfig::new(absent.parse().unwrap());
        let error = UdpLink::open(&config).err().unwrap();
        assert_eq!(error.cause, OpenCause::AddressAbsent);
        assert!(error.to_string().contains("not on this machine"), "{error}");

        let mut link = UdpLink::open(&UdpConfig {
            may_be_absent: true,
            ..config
        })
        .unwrap();
        assert!(!link.report().address_present);
        assert!(link.report().notes.is_empty(), "nothing was refused");
        assert_eq!(link.receive(&mut |_, _| {}).failure, None);
    }
}

#[test]
fn what_the_kernel_did_not_grant_is_said_in_one_line_each() {
    let config = UdpConfig {
        receive_buffer: usize::MAX,
        dscp: 46,
        priority: 6,
        ..UdpConfig::new("127.0.0.1:0".parse().unwrap())
    };
    let link = UdpLink::open(&config).unwrap();
    let report = link.report();
    assert!(report.receive_buffer > 0 && report.coalescing && report.address_present);
    assert_eq!(report.notes.len(), 1, "{:?}", report.notes);
    assert!(report.notes[0].contains("receive buffer") && report.notes[0].contains("rmem_max"));
    assert_eq!(link.receive_drops(), Some(0));
}

#[test]
fn what_the_kernel_drops_for_want_of_room_is_told() {
    let config = UdpConfig {
        receive_buffer: 8192,
        ..UdpConfig::new("127.0.0.1:0".parse().unwrap())
    };
    let mut link: Box<dyn Link> = Box::new(UdpLink::open(&config).unwrap());
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let sent = 100;
    for _ in 0..sent {
        sender.send_to(&[0; 1000], link.local_address()).unwrap();
    }
    let mut received = 0;
    while link.receive(&mut |_, _| received += 1).more {}
    assert!(0 < received && received < sent, "{received}");
    assert_eq!(link.receive_drops(), Some(sent - received));
}

/// Datagrams of a byte each that pass from `from` to `link`, and what the kernel says that it has dropped.
fn passed(from: &std::net::UdpSocket, link: &mut UdpLink, count: usize) -> (usize, u32) {
    let before = link.receive_drops().unwrap();
    for _ in 0..count {
        from.send_to(&[7], link.local_address()).unwrap();
    }
    let (mut passed, begun) = (0, std::time::Instant::now());
    loop {
        while link.receive(&mut |_, _| passed += 1).more {}
        let dropped = link.receive_drops().unwrap().wrapping_sub(before);
        // A busy kernel delivers what was sent a moment later, from a thread of its own.
        let is_all = passed + dropped as usize >= count;
        if is_all || begun.elapsed() > std::time::Duration::from_secs(10) {
            return (passed, dropped);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn a_screen_passes_all_of_the_known_and_few_of_others_until_it_is_gone() {
    const SENT: usize = 3000;
    for host in HOSTS {
        let mut link = open(host, true);
        let socket = || std::net::UdpSocket::bind((host, 0)).unwrap();
        let (stranger, known, other) = (socket(), socket(), socket());
        let address = |of: &std::net::UdpSocket| of.local_addr().unwrap();
        // Of another address, and of the other family.
        let elsewhere = |ip: &str| SocketAddr::new(ip.parse().unwrap(), address(&stranger).port());
        let screen = Screen::new([
            elsewhere("127.0.0.9"),
            elsewhere("::2"),
            address(&known),
            address(&other),
        ]);
        assert!(link.screen(Some(&screen)));
        for partner in [&known, &other] {
            assert_eq!(passed(partner, &mut link, SENT), (SENT, 0), "{host}");
        }
        let (seen, dropped) = passed(&stranger, &mut link, SENT);
        // Of 3,000 some 47: more than a hundred is as unlikely as none.
        assert!((1..120).contains(&seen), "{host}: {seen}");
        assert_eq!(seen + dropped as usize, SENT);
        for _ in 0..2 {
            assert!(link.screen(None));
            assert_eq!(passed(&stranger, &mut link, SENT), (SENT, 0), "{host}");
        }
    }
}

#[test]
fn a_screen_judges_and_counts_each_datagram_of_those_that_come_in_one_message() {
    const RUNS: usize = 60;
    for host in HOSTS {
        let (mut stranger, mut link) = (open(host, true), open(host, true));
        assert!(link.report().coalescing && stranger.segmentation());
        let to = link.local_address();
        assert!(link.screen(Some(&Screen::new([]))));
        let run: Vec<_> = (0..50).map(|number| content(number, 100)).collect();
        let sent: usize = (0..RUNS)
            .map(|_| send(&mut stranger, to, &run, 0).sent)
            .sum();
        let mut seen = 0;
        while link.receive(&mut |_, _| seen += 1).more {}
        let dropped = link.receive_drops().unwrap() as usize;
        assert_eq!((sent, seen + dropped), (RUNS * 50, RUNS * 50), "{host}");
        assert!((1..120).contains(&seen), "{host}: {seen}");
        assert!(link.screen(None));
        assert_eq!(send(&mut stranger, to, &run, 0).sent, 50);
        assert_eq!(receive(&mut link, 50).len(), 50, "{host}");
    }
}
