//! The program in the kernel decides on every frame as the core does, its slow twin (V-50, V-51).

use std::net::{IpAddr, Ipv6Addr};

use bumpless_base::{Duration, Instant};
use bumpless_guard::{Flow, Guard, Match, Priority, Rate, Setup, Terms, Transport, Verdict};
use bumpless_reception::{Counts, Filter, LoadError, missing};
use bumpless_testing::skip;

bumpless_testing::tests![
    every_frame_is_decided_on_as_by_the_core,
    flows_that_come_and_go_are_decided_on_as_by_the_core_and_cost_no_other_its_budget,
    periods_follow_one_another_from_the_start,
    a_period_shorter_than_a_tick_begins_as_soon_as_the_one_before_has_ended,
    who_is_known_finds_addresses_while_everybody_else_asks_for_them,
    processors_share_a_budget_to_the_frame,
    a_setup_without_addresses_is_decided_on_as_by_the_core,
    four_thousand_flows_pass_the_verifier,
    a_rate_that_the_program_cannot_hold_is_refused,
];

const FRAMES: usize = 30_000;
const OURS: [u8; 4] = [10, 0, 0, 2];
const PARTNER: [u8; 4] = [10, 0, 0, 1];

fn need_programs() {
    if !missing().is_empty() {
        skip("needs CAP_NET_ADMIN, CAP_BPF and CAP_PERFMON");
    }
}

fn partner_v6() -> Ipv6Addr {
    Ipv6Addr::from([0xfd; 16])
}

/// Random numbers by the same generator on every machine.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(1);
        (bumpless_base::random::mix64(self.0) % bound as u64) as usize
    }
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
    fn sometimes(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.below(256) as u8).collect()
    }
}

fn terms(capacity: u32) -> Terms {
    Terms {
        priority: Priority(1),
        rate: Some(Rate {
            capacity,
            // No test lasts so long: the budget is spent once.
            period: Duration::from_secs(100_000),
        }),
        queue: u16::MAX,
    }
}

fn open() -> Terms {
    Terms {
        rate: None,
        ..terms(0)
    }
}

fn flow(matches: &[Match], terms: Terms) -> Flow {
    Flow {
        matches: matches.to_vec(),
        terms,
    }
}

/// One of every kind of pattern and of terms.
fn setup() -> Setup {
    use Transport::{Tcp, Udp};
    Setup {
        flows: vec![
            flow(&[Match::PortFrom(Udp, 4700, PARTNER.into())], open()),
            flow(
                &[Match::PortFrom(Udp, 4700, partner_v6().into())],
                terms(300),
            ),
            flow(&[Match::Port(Udp, 4700), Match::Port(Tcp, 22)], terms(200)),
            flow(&[Match::Answers(Tcp, PARTNER.into(), 502)], terms(100)),
            flow(&[Match::Answers(Udp, partner_v6().into(), 53)], open()),
            flow(
                &[
                    Match::EchoReplies(PARTNER.into()),
                    Match::Resolution(PARTNER.into()),
                ],
                terms(40),
            ),
            flow(
                &[
                    Match::EchoReplies(partner_v6().into()),
                    Match::Resolution(partner_v6().into()),
                ],
                open(),
            ),
            flow(&[Match::Port(Udp, 9)], Terms::CLOSED),
            flow(&[Match::Port(Udp, 0), Match::Port(Tcp, 65_535)], open()),
        ],
        resolution: terms(400),
        icmp: terms(300),
        fragments: terms(50),
        unregistered: terms(500),
        unknown: terms(600),
        ..Setup::closed(1 << 20)
    }
}

/// A frame that is mostly right, and sometimes changed or cut.
fn frame(draw: &mut Draw) -> Vec<u8> {
    let mut frame = vec![0x11; 12];
    for _ in 0..draw.one(&[0, 0, 0, 1, 2, 3]) {
        frame.extend(draw.one(&[0x8100u16, 0x88a8, 0x9100]).to_be_bytes());
        frame.extend([0x20, 7]);
    }
    let transport = transport(draw);
    match draw.below(20) {
        0..9 => ipv4(draw, &mut frame, &transport),
        9..18 => ipv6(draw, &mut frame, &transport),
        18 => {
            frame.extend([8, 6]);
            let kind = draw.one(&[[0, 1, 8, 0, 6, 4], [0, 1, 8, 0, 6, 4], [0, 6, 8, 0, 6, 4]]);
            arp(&mut frame, kind, draw.one(&[PARTNER, [10, 0, 0, 9]]));
        }
        _ => frame.extend(draw.bytes(40)),
    }
    let padding = draw.one(&[0, 0, 1, 20]);
    frame.extend(vec![0xee; padding]);
    if draw.sometimes(3) {
        for _ in 0..=draw.below(3) {
            let at = draw.below(frame.len().min(120));
            frame[at] = draw.below(256) as u8;
        }
    }
    if draw.sometimes(6) {
        let keep = 14 + draw.below(frame.len().saturating_sub(13).max(1));
        frame.truncate(keep);
    }
    frame
}

/// A question for an address, of this kind of hardware and protocol, from this one.
fn arp(frame: &mut Vec<u8>, kind: [u8; 6], sender: [u8; 4]) {
    frame.extend(kind);
    frame.extend([0, 1, 2, 2, 2, 2, 2, 2]);
    frame.extend(sender);
    frame.extend([0; 6]);
    frame.extend(OURS);
}

/// The protocol above IP and its packet.
fn transport(draw: &mut Draw) -> (u8, Vec<u8>) {
    let ports = [4700u16, 4701, 22, 9, 0, 65_535, 502, 53];
    let mut packet = draw.one(&ports).to_be_bytes().to_vec();
    packet.extend(draw.one(&ports).to_be_bytes());
    packet.extend(vec![0; draw.one(&[0, 3, 4, 8, 15, 16, 20, 40])]);
    let protocol = draw.one(&[17u8, 17, 17, 6, 6, 6, 1, 58, 58, 59, 51, 2]);
    if protocol == 6 && packet.len() > 12 {
        packet[12] = draw.one(&[0x50, 0x50, 0x50, 0x60, 0x40, 0xf0]);
    }
    if protocol == 1 {
        packet[0] = draw.one(&[0, 0, 3, 8]);
    }
    if protocol == 58 {
        packet[0] = draw.one(&[128, 129, 132, 133, 135, 137, 138]);
    }
    (protocol, packet)
}

fn ipv4(draw: &mut Draw, frame: &mut Vec<u8>, (protocol, packet): &(u8, Vec<u8>)) {
    let options = draw.one(&[0, 0, 0, 0, 1, 10]);
    let header = 20 + options * 4;
    let total = (header + packet.len()) as u16;
    // Sometimes shorter than a header is.
    let told = if draw.sometimes(20) { 4 } else { header / 4 };
    frame.extend([8, 0, 0x40 | told as u8, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([0, 1]);
    frame.extend(
        draw.one(&[0u16, 0, 0, 0x4000, 0x4000, 0x2000, 0x00b9])
            .to_be_bytes(),
    );
    frame.extend([64, *protocol, 0, 0]);
    frame.extend(draw.one(&[PARTNER, PARTNER, [10, 0, 0, 9]]));
    frame.extend(OURS);
    frame.extend(vec![1; options * 4]);
    frame.extend(packet);
}

fn ipv6(draw: &mut Draw, frame: &mut Vec<u8>, (protocol, packet): &(u8, Vec<u8>)) {
    let count = draw.one(&[0, 0, 0, 1, 1, 2, 3, 8, 9, 10]);
    let kinds: Vec<u8> = (0..count)
        .map(|place| match place {
            0 => draw.one(&[0, 43, 44, 60, 51]),
            _ => draw.one(&[43, 44, 60, 60, 43, 0]),
        })
        .collect();
    let mut after = Vec::new();
    for (at, kind) in kinds.iter().enumerate() {
        let next = kinds.get(at + 1).unwrap_or(protocol);
        if *kind == 44 {
            after.extend([*next, 0]);
            after.extend(draw.one(&[0u16, 0, 0, 0, 6, 1, 0x0100]).to_be_bytes());
            after.extend([0; 4]);
        } else {
            let len = draw.one(&[0u8, 0, 1, 2, 30]);
            after.extend([*next, len]);
            after.extend(vec![0; usize::from(len) * 8 + 6]);
        }
    }
    after.extend(packet);
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
    frame.extend((after.len() as u16).to_be_bytes());
    frame.extend([*kinds.first().unwrap_or(protocol), draw.one(&[255, 64])]);
    let mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1];
    frame.extend(draw.one(&[
        partner_v6().octets(),
        partner_v6().octets(),
        mapped,
        [0xfe; 16],
    ]));
    frame.extend([0xfd; 16]);
    frame.extend(after);
}

/// Hands frames to both; every answer and, in the end, every count is the same.
fn compare(setup: &Setup, seed: u64, count: usize) {
    let filter = Filter::new(setup).expect("the kernel takes the program");
    decides_as_the_core(&filter, setup, seed, count);
}

/// The same with a filter that was used before.
fn decides_as_the_core(filter: &Filter, setup: &Setup, seed: u64, count: usize) {
    let before = filter.counts().expect("counts");
    let now = Instant::from_nanos(1);
    let mut guard = Guard::new(setup, now).expect("a setup");
    let mut draw = Draw(seed << 32);
    for number in 0..count {
        let frame = match number % 10 {
            0 => {
                let len = 14 + draw.below(60);
                draw.bytes(len)
            }
            _ => frame(&mut draw),
        };
        let taken = matches!(
            guard.handle_frame(now, &frame, frame.len(), ()),
            Verdict::Queued { .. }
        );
        // What is queued leaves at once: no frame is given up for want of buffers.
        let _ = guard.poll_frame();
        let passed = filter.passes(&frame, 1).expect("a run");
        assert_eq!(passed, taken, "frame {number} of seed {seed}: {frame:02x?}");
    }
    let mut flows_with_frames = 0;
    for ((flow, counts), (_, earlier)) in filter.counts().expect("counts").into_iter().zip(before) {
        let expected = guard.counts(flow).expect("a flow");
        let told = (
            counts.passed - earlier.passed,
            counts.capacity - earlier.capacity,
            counts.closed - earlier.closed,
        );
        assert_eq!(
            told,
            (expected.taken, expected.capacity, expected.queue_full),
            "{flow:?}"
        );
        flows_with_frames += usize::from(counts != Counts::default());
    }
    // The frames are of every kind, or nothing was shown.
    assert_eq!(flows_with_frames, setup.flows.len() + 5);
}

fn every_frame_is_decided_on_as_by_the_core() {
    need_programs();
    compare(&setup(), 1, FRAMES);
}

fn a_setup_without_addresses_is_decided_on_as_by_the_core() {
    need_programs();
    let mut setup = setup();
    setup
        .flows
        .retain(|flow| flow.matches.iter().all(|it| matches!(it, Match::Port(..))));
    assert_eq!(setup.flows.len(), 3);
    compare(&setup, 2, 5_000);
    setup.flows.push(flow(
        &[Match::Answers(Transport::Tcp, IpAddr::from(PARTNER), 502)],
        open(),
    ));
    compare(&setup, 3, 5_000);
    setup.flows[3] = flow(
        &[Match::PortFrom(Transport::Udp, 4700, IpAddr::from(PARTNER))],
        open(),
    );
    compare(&setup, 4, 5_000);
    setup.flows[3] = flow(&[Match::EchoReplies(IpAddr::from(PARTNER))], open());
    compare(&setup, 5, 5_000);
}

/// V-81: a filter in which flows came and went decides as one that had those that stay from the start.
fn flows_that_come_and_go_are_decided_on_as_by_the_core_and_cost_no_other_its_budget() {
    need_programs();
    let whole = setup();
    let mut begun = whole.clone();
    let later = begun.flows.split_off(2);
    let mut filter = Filter::with_room(&begun, later.len() + 1).expect("the kernel takes it");
    let junk = [0x11; 64];
    assert!(filter.passes(&junk, 599).expect("a run"));
    let guest = |from: [u8; 4], port| Flow {
        matches: vec![
            Match::PortFrom(Transport::Udp, port, from.into()),
            Match::Port(Transport::Tcp, port),
        ],
        terms: terms(5),
    };
    // All places are taken and given back, once with the port of a flow that stays.
    for (at, port) in (2u16..).zip([53, 502, 4700, 9, 22, 0, 7, 8]) {
        let flow = guest([10, 0, 0, 9], port);
        filter.set_flow(at, flow).expect("a place");
    }
    assert_eq!(filter.counts().expect("counts").len(), 2 + 8 + 5);
    // What is counted of a guest is not its successor's.
    let mut to_guest = vec![0x11; 12];
    to_guest.extend([8, 0, 0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 9]);
    to_guest.extend(OURS);
    to_guest.extend([0x30, 0x39, 0x12, 0x5c, 0, 8, 0, 0]);
    assert!(filter.passes(&to_guest, 5).expect("a run"));
    assert!(!filter.passes(&to_guest, 1).expect("a run"));
    let taken = filter
        .set_flow(9, guest(PARTNER, 4700))
        .expect_err("its port is another's");
    assert!(taken.to_string().contains("both claim"), "{taken}");
    assert!(
        filter.set_flow(10, guest(PARTNER, 7)).is_err(),
        "there is no such place"
    );
    assert!(
        filter.set_flow(0, Flow::NONE).is_err(),
        "flows of the setup's own stay: the program may have them written down"
    );
    for at in 2..10 {
        filter.set_flow(at, Flow::NONE).expect("the place again");
    }
    for (at, flow) in (2u16..).zip(later) {
        filter.set_flow(at, flow).expect("a place");
    }
    // As of the setup's own: an address in IPv6's notation is the same one.
    let mapped = std::net::Ipv4Addr::from(PARTNER).to_ipv6_mapped();
    let again = flow(
        &[Match::Answers(Transport::Tcp, mapped.into(), 502)],
        open(),
    );
    let taken = filter
        .set_flow(9, again)
        .expect_err("its pattern is another's");
    assert!(taken.to_string().contains("both claim"), "{taken}");
    // One of the unknown's 600 is left, whatever came and went.
    assert!(filter.passes(&junk, 1).expect("a run"));
    assert!(!filter.passes(&junk, 1).expect("a run"));
    let told = filter.counts().expect("counts");
    assert!(told[2..9].iter().all(|(_, it)| *it == Counts::default()));
    let unknown = Counts {
        passed: 600,
        capacity: 1,
        closed: 0,
    };
    assert_eq!(told.last().expect("the unknown").1, unknown);
    let mut setup = whole;
    setup.unknown = terms(0);
    decides_as_the_core(&filter, &setup, 5, 5_000);
}

/// V-14 in the kernel: the budget is whole again each period, and not before.
fn periods_follow_one_another_from_the_start() {
    need_programs();
    let period = std::time::Duration::from_millis(8);
    let mut setup = setup();
    setup.unknown.rate = Some(Rate {
        capacity: 3,
        period: Duration::from_millis(8),
    });
    let filter = Filter::new(&setup).expect("the kernel takes the program");
    let started = std::time::Instant::now();
    let frame = [0x11; 64];
    let (mut sent, mut passed, mut row) = (0, 0, 0);
    let (mut rows, mut begins) = (Vec::new(), Vec::new());
    while started.elapsed() < 40 * period {
        sent += 1;
        if filter.passes(&frame, 1).expect("a run") {
            if row == 0 {
                begins.push(started.elapsed());
            }
            (passed, row) = (passed + 1, row + 1);
        } else if row > 0 {
            rows.push(std::mem::take(&mut row));
        }
    }
    let periods = started.elapsed().as_millis() as u64 / 8;
    // Two of them are there in part.
    let at_most = 3 * (periods + 2);
    assert!(sent > at_most, "{sent} frames are no flood");
    assert!(passed <= at_most, "{passed} in {periods} periods");
    // How often this process runs is not said, but mostly it runs for as long as three frames take.
    let whole = rows.iter().filter(|&&row| row == 3).count();
    assert!(rows.len() > 2 && 2 * whole > rows.len(), "{rows:?}");
    // And at least once in two periods after each other; the clock is that of the last tick.
    let nearest = begins.windows(2).map(|it| it[1] - it[0]).min();
    assert!(nearest < Some(period * 3 / 2), "{begins:?}");
}

/// V-51: whatever the kernel's ticks are, no frame is refused once a period has passed since the last one that passed.
fn a_period_shorter_than_a_tick_begins_as_soon_as_the_one_before_has_ended() {
    need_programs();
    let period = std::time::Duration::from_millis(1);
    let mut setup = setup();
    setup.unknown.rate = Some(Rate {
        capacity: 1,
        period: Duration::from_millis(1),
    });
    let filter = Filter::new(&setup).expect("the kernel takes the program");
    let frame = [0x11; 64];
    let began = std::time::Instant::now();
    // Before and after, since nobody knows when the kernel looked at its clock.
    let (mut last, mut passed) = (began, 0);
    while began.elapsed() < 300 * period {
        let before = std::time::Instant::now();
        if filter.passes(&frame, 1).expect("a run") {
            (last, passed) = (std::time::Instant::now(), passed + 1);
        } else {
            // The kernel's clock for programs may be behind by what it was corrected by last.
            let since = before.duration_since(last);
            let slack = std::time::Duration::from_micros(10);
            assert!(since < period + slack, "{since:?}, after {passed}");
        }
    }
    let at_most = began.elapsed().as_millis() + 2;
    assert!(0 < passed && passed <= at_most, "{passed} of {at_most}");
}

/// V-6, V-70: a storm of questions for addresses costs those of the partner nothing.
fn who_is_known_finds_addresses_while_everybody_else_asks_for_them() {
    need_programs();
    let known = [PARTNER.into(), partner_v6().into()].map(Match::Resolution);
    let setup = Setup {
        flows: vec![flow(&known, terms(10))],
        resolution: terms(50),
        ..Setup::closed(2)
    };
    let filter = Filter::new(&setup).expect("the kernel takes the program");
    let asked_by = |sender| {
        let mut frame = vec![0xff; 12];
        frame.extend([8, 6]);
        arp(&mut frame, [0, 1, 8, 0, 6, 4], sender);
        frame
    };
    // A solicitation with the hop limit of one that no router has passed on.
    let solicited_by = |sender: [u8; 16]| {
        let mut frame = vec![0x33; 12];
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 24, 58, 255]);
        frame.extend(sender);
        frame.extend([0xfd; 16]);
        frame.extend([135, 0]);
        frame.extend([0; 22]);
        frame
    };
    assert!(
        !filter
            .passes(&asked_by([10, 0, 0, 9]), 5_000)
            .expect("runs")
    );
    assert!(
        !filter
            .passes(&solicited_by([0xfe; 16]), 5_000)
            .expect("runs")
    );
    for frame in [asked_by(PARTNER), solicited_by(partner_v6().octets())] {
        assert!(filter.passes(&frame, 5).expect("runs"));
    }
    // What has the partner's address is bounded, too.
    assert!(!filter.passes(&asked_by(PARTNER), 1).expect("a run"));
    let counts = filter.counts().expect("counts");
    let told = |at: usize| (counts[at].1.passed, counts[at].1.capacity);
    assert_eq!((told(0), told(1)), ((10, 1), (50, 9_950)));
}

/// V-51: processors that take from one budget at once take no more than it has, and no less.
fn processors_share_a_budget_to_the_frame() {
    need_programs();
    const CAPACITY: u32 = 3_000_000;
    let mut setup = setup();
    setup.unknown = terms(CAPACITY);
    let filter = Filter::new(&setup).expect("the kernel takes the program");
    std::thread::scope(|scope| {
        for processor in 0..2 {
            let filter = &filter;
            scope.spawn(move || {
                stay_on(processor);
                filter.passes(&[0x11; 64], CAPACITY).expect("runs");
            });
        }
    });
    let counts = filter.counts().expect("counts");
    let (_, counts) = counts.last().expect("the unknown");
    assert_eq!(
        (counts.passed, counts.capacity),
        (CAPACITY.into(), CAPACITY.into())
    );
}

/// This thread runs on one processor, if there is such a one.
fn stay_on(processor: usize) {
    // SAFETY: zero is a value of the set, the call takes the set by pointer with its size, and zero is this thread.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
}

fn four_thousand_flows_pass_the_verifier() {
    need_programs();
    let mut setup = setup();
    setup.flows = (0..Setup::MAX_FLOWS as u32)
        .map(|at| {
            let address = IpAddr::from((at + 1).to_be_bytes());
            flow(
                &[
                    Match::PortFrom(Transport::Udp, 4700, address),
                    Match::Port(Transport::Tcp, at as u16 + 1),
                ],
                terms(9),
            )
        })
        .collect();
    let filter = Filter::new(&setup).expect("the kernel takes the program");
    assert_eq!(filter.counts().expect("counts").len(), Setup::MAX_FLOWS + 5);
}

fn a_rate_that_the_program_cannot_hold_is_refused() {
    need_programs();
    let refused = |change: fn(&mut Setup)| {
        let mut setup = setup();
        change(&mut setup);
        match Filter::new(&setup) {
            Err(error @ (LoadError::Rate(..) | LoadError::Setup(_))) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let short =
        refused(|it| it.icmp.rate.as_mut().expect("a rate").period = Duration::from_micros(999));
    assert!(short.contains("Icmp") && short.contains("1 ms"), "{short}");
    let large = refused(|it| it.flows[3].terms = terms(8_388_609));
    assert!(large.contains("Registered(3)"), "{large}");
    let overall = refused(|it| it.overall = terms(1).rate);
    assert!(overall.contains("polls by itself"), "{overall}");
    let twice = refused(|it| it.flows[1] = it.flows[0].clone());
    assert!(twice.contains("both claim"), "{twice}");
}
