//! What a frame that nobody wants costs of the processor's time, with a filter and without (V-56).
//!
//! Frames are brought to an interface by the kernel as a driver brings them, so that nothing of a sender's is in the figures: what is
//! passed becomes a buffer of the kernel's and goes its whole way, what is dropped goes back to the ring. It is the
//! processor's time of this thread that is compared within one run, each figure the least of several.

use std::process::Command;

use bumpless_base::Duration;
use bumpless_guard::{Flow, Match, Priority, Rate, Setup, Terms, Transport};
use bumpless_reception::{Filter, Reception, missing};
use bumpless_testing::{need_namespaces, skip};

bumpless_testing::tests![
    a_frame_that_nobody_wants_costs_a_seventh_of_what_it_does_without_a_filter
];

const FRAMES: u32 = 10_000;
const RUNS: usize = 5;
/// How often a figure is measured that seems too high.
const ATTEMPTS: usize = 4;
const HERE: [u8; 6] = [2, 0, 0, 0, 0, 1];

fn terms(capacity: u32) -> Terms {
    Terms {
        priority: Priority(1),
        rate: Some(Rate {
            capacity,
            period: Duration::from_millis(100),
        }),
        queue: 1,
    }
}

/// What a host has: some flows, and budgets for the rest.
fn setup() -> Setup {
    let partner = [10, 9, 0, 2].into();
    let flow = |pattern, capacity| Flow {
        matches: vec![pattern],
        terms: terms(capacity),
    };
    Setup {
        flows: vec![
            flow(Match::PortFrom(Transport::Udp, 4700, partner), 1 << 20),
            flow(Match::Port(Transport::Udp, 4700), 10),
            flow(Match::Port(Transport::Tcp, 22), 100),
            flow(Match::Answers(Transport::Tcp, partner, 502), 100),
        ],
        resolution: terms(10),
        icmp: terms(10),
        fragments: terms(10),
        unregistered: terms(10),
        unknown: terms(10),
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

fn a_frame_that_nobody_wants_costs_a_seventh_of_what_it_does_without_a_filter() {
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
    let stranger = [10, 9, 0, 3];
    let syn = [
        &[
            0x30, 0x39, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 1, 0, 0, 0, 0, 0,
        ][..],
        &[0; 6],
    ]
    .concat();
    let junk = [
        ("data port", frame(HERE, stranger, (17, 0), &udp(4700))),
        ("closed port", frame(HERE, stranger, (17, 0), &udp(9))),
        ("closed port, TCP", frame(HERE, stranger, (6, 0), &syn)),
        ("fragment", frame(HERE, stranger, (17, 0x2000), &udp(4700))),
        (
            "ICMP",
            frame(
                HERE,
                stranger,
                (1, 0),
                &[[8, 0, 0xf7, 0xff].as_slice(), &[0; 22]].concat(),
            ),
        ),
        ("broadcast", frame([0xff; 6], stranger, (17, 0), &udp(9))),
    ];
    // What the data port has in a pair: a socket whose buffer is full.
    let _socket = std::net::UdpSocket::bind("10.9.0.1:4700").expect("a socket");
    let mut dear = Vec::new();
    for (name, frame) in junk {
        // A busy machine makes single figures too high; the share is that of a quiet moment, if there is one.
        let measured = (0..ATTEMPTS).map(|_| cost([&shut, &filter, &open], &frame));
        let share = |it: &[f64; 3]| (it[1] - it[0]) / (it[2] - it[0]);
        let mut least = [f64::INFINITY; 3];
        for it in measured {
            least = [0, 1, 2].map(|at| least[at].min(it[at]));
            if share(&least) <= 1.0 / 7.0 {
                break;
            }
        }
        let [floor, with, without] = least;
        println!(
            "{name}: {without:.0} ns without, {with:.0} ns with, of them {floor:.0} ns for bringing it: 1/{:.1}, as a whole 1/{:.1}",
            1.0 / share(&least),
            without / with
        );
        if share(&least) > 1.0 / 7.0 {
            dear.push(name);
        }
    }
    let wanted = frame(HERE, [10, 9, 0, 2], (17, 0), &udp(4700));
    let [with, without] = cost([&filter, &open], &wanted);
    println!("wanted: {without:.0} ns without, {with:.0} ns with");
    assert_eq!(dear, [""; 0], "what costs more than a seventh");
}
