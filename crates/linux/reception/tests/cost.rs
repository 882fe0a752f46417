//! Each kind of frame that nobody wants is dropped beyond its budget, and what it costs of the processor's time, with a filter and
//! without, is printed (V-56). What a machine that is busy measures is no verdict: the longest way through the program is
//! bounded beside it (`src/program.rs`).
//!
//! Frames are brought to an interface by the kernel as a driver brings them, so that nothing of a sender's is in the figures: what is
//! passed becomes a buffer of the kernel's and goes its whole way, what is dropped goes back to the ring. It is the
//! processor's time of this thread that is compared within one run, each figure the least of several.

use std::process::Command;

use bumpless_base::Duration;
use bumpless_guard::{Flow, FlowId, Match, Priority, Rate, Setup, Terms, Transport};
use bumpless_reception::{Counts, Filter, Reception, missing};
use bumpless_testing::{need_namespaces, skip};

bumpless_testing::tests![
    each_kind_of_junk_is_dropped_beyond_its_budget_and_all_that_is_wanted_passes
];

const FRAMES: u32 = 10_000;
const RUNS: usize = 5;
/// The budget of each kind that is not wanted.
const BUDGET: u32 = 10;
const PARTNER: [u8; 4] = [10, 9, 0, 2];
const HERE: [u8; 6] = [2, 0, 0, 0, 0, 1];

fn terms(capacity: u32) -> Terms {
    Terms {
        priority: Priority(1),
        rate: Some(Rate {
            capacity,
            // Longer than the test: a budget is spent once.
            period: Duration::from_secs(3600),
        }),
        queue: 1,
    }
}

/// What a host has: some flows, and budgets for the rest.
fn setup() -> Setup {
    let partner = PARTNER.into();
    let flow = |pattern, capacity| Flow {
        matches: vec![pattern],
        terms: terms(capacity),
    };
    Setup {
        flows: vec![
            flow(Match::PortFrom(Transport::Udp, 4700, partner), 1 << 20),
            flow(Match::Port(Transport::Udp, 4700), BUDGET),
            flow(Match::Port(Transport::Tcp, 22), 100),
            flow(Match::Answers(Transport::Tcp, partner, 502), 100),
        ],
        resolution: terms(BUDGET),
        icmp: terms(BUDGET),
        fragments: terms(BUDGET),
        unregistered: terms(BUDGET),
        unknown: terms(BUDGET),
        ..Setup::closed(2)
    }
}

/// A frame to this host: from `from`, `protocol`, the fragment's word, ports or what stands there.
fn frame(to: [u8; 6], from: [u8; 4], (protocol, fragment): (u8, u16), above: &[u8]) -> Vec<u8> {
    let mut frame = to.to_vec();
    frame.extend([2, 0, 0, 0, 0, 2, 8, 0]);
    let start = frame.len();
    frame.extend([0x45, 0]);
    frame.extend((20 + above.len() as u16).to_be_bytes());
    frame.extend([0, 1]);
    frame.extend(fragment.to_be_bytes());
    frame.extend([64, protocol, 0, 0]);
    frame.extend(from);
    frame.extend(if to == HERE {
        [10, 9, 0, 1]
    } else {
        [10, 9, 0, 255]
    });
    let sum: u32 = frame[start..]
        .chunks(2)
        .map(|it| u32::from(u16::from_be_bytes([it[0], it[1]])))
        .sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(above);
    frame
}

fn udp(port: u16) -> Vec<u8> {
    let [high, low] = port.to_be_bytes();
    [&[0x30, 0x39, high, low, 0, 26, 0, 0][..], &[7; 18]].concat()
}

fn spent() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a structure of the kernel's that it fills.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds of this thread's processor time for each frame, with each of these filters.
fn cost<const N: usize>(filters: [&Filter; N], frame: &[u8]) -> [f64; N] {
    let mut least = [f64::INFINITY; N];
    for _ in 0..RUNS {
        for (least, filter) in least.iter_mut().zip(filters) {
            let before = spent();
            filter.arrive(frame, FRAMES, "here").expect("frames arrive");
            *least = least.min((spent() - before) as f64 / f64::from(FRAMES));
        }
    }
    least
}

fn ip(commands: &[&str]) {
    for command in commands {
        let status = Command::new("ip").args(command.split_whitespace()).status();
        assert!(status.expect("ip (iproute2)").success(), "ip {command}");
    }
}

/// Frames that nobody wants, each with its kind and its flow.
fn junk() -> [(&'static str, FlowId, Vec<u8>); 6] {
    let stranger = [10, 9, 0, 3];
    let syn = [
        &[
            0x30, 0x39, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 1, 0, 0, 0, 0, 0,
        ][..],
        &[0; 6],
    ]
    .concat();
    [
        (
            "data port",
            FlowId::Registered(1),
            frame(HERE, stranger, (17, 0), &udp(4700)),
        ),
        (
            "closed port",
            FlowId::Unregistered,
            frame(HERE, stranger, (17, 0), &udp(9)),
        ),
        (
            "closed port, TCP",
            FlowId::Unregistered,
            frame(HERE, stranger, (6, 0), &syn),
        ),
        (
            "fragment",
            FlowId::Fragments,
            frame(HERE, stranger, (17, 0x2000), &udp(4700)),
        ),
        (
            "ICMP",
            FlowId::Icmp,
            frame(
                HERE,
                stranger,
                (1, 0),
                &[[8, 0, 0xf7, 0xff].as_slice(), &[0; 22]].concat(),
            ),
        ),
        (
            "broadcast",
            FlowId::Unregistered,
            frame([0xff; 6], stranger, (17, 0), &udp(9)),
        ),
    ]
}

fn counts(filter: &Filter, flow: FlowId) -> Counts {
    let all = filter.counts().expect("counts");
    let found = all.into_iter().find(|(of, _)| *of == flow);
    found.expect("the flow's counts").1
}

fn each_kind_of_junk_is_dropped_beyond_its_budget_and_all_that_is_wanted_passes() {
    need_namespaces();
    if !missing().is_empty() {
        skip("needs CAP_NET_ADMIN, CAP_BPF and CAP_PERFMON");
    }
    // SAFETY: it concerns this thread's network namespace alone.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0);
    ip(&[
        "link set lo up",
        "link add here address 02:00:00:00:00:01 type veth peer name there",
        "address add 10.9.0.1/24 dev here",
        "neighbour add 10.9.0.2 lladdr 02:00:00:00:00:02 dev here",
        "link set here up",
        "link set there up",
    ]);
    // So that its driver runs programs.
    let attached = Reception::start(&setup(), &["here".to_owned()]).expect("attached");
    let report = attached.report().expect("a report");
    assert_eq!(
        report[0].mode.map(|it| it.name()),
        Some("native"),
        "{report:?}"
    );
    let open = Filter::open().expect("a program");
    let shut = Filter::shut().expect("a program");
    let filter = Filter::new(&setup()).expect("a program");
    // What the data port has in a pair: a socket whose buffer is full.
    let _socket = std::net::UdpSocket::bind("10.9.0.1:4700").expect("a socket");
    for (name, flow, frame) in junk() {
        let before = counts(&filter, flow);
        let [floor, with, without] = cost([&shut, &filter, &open], &frame);
        let after = counts(&filter, flow);
        let (dropped, came) = (after.capacity - before.capacity, FRAMES * RUNS as u32);
        assert_eq!(
            after.passed - before.passed + dropped,
            came.into(),
            "{name}"
        );
        // The budget is spent by the first kind that has it.
        assert_eq!(after.passed, u64::from(BUDGET), "{name}");
        assert!(!filter.passes(&frame, 1).expect("an answer"), "{name}");
        let share = (with - floor) / (without - floor);
        println!(
            "{name}: {without:.0} ns without, {with:.0} ns with, of them {floor:.0} ns for bringing it: 1/{:.1}, as a whole 1/{:.1}",
            1.0 / share,
            without / with
        );
    }
    let wanted = frame(HERE, PARTNER, (17, 0), &udp(4700));
    let [with, without] = cost([&filter, &open], &wanted);
    println!("wanted: {without:.0} ns without, {with:.0} ns with");
    let flow = counts(&filter, FlowId::Registered(0));
    assert_eq!(flow.passed, u64::from(FRAMES) * RUNS as u64);
    assert_eq!((flow.capacity, flow.closed), (0, 0));
    assert!(filter.passes(&wanted, 1).expect("an answer"));
}
