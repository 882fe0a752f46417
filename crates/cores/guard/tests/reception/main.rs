//! The guard beside a twin that keeps every frame in one list and counts periods anew each time (V-10 to V-24).

mod twin;

use bumpless_base::{Duration, Instant};
use bumpless_guard::{
    Flow, FlowId, Guard, Match, Mode, Priority, Purpose, Rate, Refusal, Setup, SetupError, Taken,
    Terms, Transport, Verdict, classify,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use twin::Twin;

const START: Instant = Instant::from_nanos(5_000);

/// A datagram from 10.0.0.`from` to `port`.
fn datagram(from: u8, remote_port: u16, port: u16) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, 0, from, 10, 0, 0, 9]);
    frame.extend(remote_port.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend([0, 8, 0, 0]);
    frame
}

fn arp() -> Vec<u8> {
    [vec![0; 12], vec![8, 6], vec![0; 28]].concat()
}

/// A message of ICMP from the address that ends so.
fn echo(from: u8, kind: u8) -> Vec<u8> {
    let mut frame = datagram(from, 0, 0);
    frame[23] = 1;
    frame[34] = kind;
    frame
}

fn fragment() -> Vec<u8> {
    let mut frame = datagram(1, 1, 1);
    frame[20] = 0x20;
    frame
}

fn terms() -> impl Strategy<Value = Terms> {
    let priority = prop_oneof![0u8..4, Just(63u8), Just(64), Just(128), Just(255)];
    (priority, option::of((0u32..4, 1u64..60)), 0u16..5).prop_map(|(priority, rate, queue)| Terms {
        priority: Priority(priority),
        rate: rate.map(|(capacity, period)| Rate {
            capacity,
            period: Duration::from_nanos(period),
        }),
        queue,
    })
}

fn setups() -> impl Strategy<Value = Setup> {
    let overall = option::weighted(0.3, (1u32..6, 1u64..60));
    (vec(terms(), 10), overall, 1u32..10, 0u32..9).prop_map(|(terms, overall, room, reserve)| {
        let udp = Transport::Udp;
        let patterns = [
            Match::Port(udp, 1),
            Match::PortFrom(udp, 1, [10, 0, 0, 2].into()),
            Match::Answers(udp, [10, 0, 0, 3].into(), 502),
            Match::Port(udp, 2),
            Match::EchoReplies([10, 0, 0, 2].into()),
        ];
        let flow = |(pattern, &terms): (&Match, &Terms)| Flow {
            matches: vec![*pattern],
            terms,
        };
        Setup {
            flows: patterns.iter().zip(&terms).map(flow).collect(),
            resolution: terms[5],
            icmp: terms[6],
            fragments: terms[7],
            unregistered: terms[8],
            unknown: terms[9],
            overall: overall.map(|(capacity, period)| Rate {
                capacity,
                period: Duration::from_nanos(period),
            }),
            buffers: room + reserve,
            reserve,
        }
    })
}

fn frames() -> [(Vec<u8>, FlowId); 11] {
    [
        (datagram(1, 9, 1), FlowId::Registered(0)),
        (datagram(2, 9, 1), FlowId::Registered(1)),
        (datagram(3, 502, 40_000), FlowId::Registered(2)),
        (datagram(1, 9, 2), FlowId::Registered(3)),
        (arp(), FlowId::Resolution),
        (fragment(), FlowId::Fragments),
        (datagram(1, 502, 3), FlowId::Unregistered),
        (vec![0; 60], FlowId::Unknown),
        (echo(2, 0), FlowId::Registered(4)),
        // A request of who has a flow for its replies, and a reply of another one.
        (echo(2, 8), FlowId::Icmp),
        (echo(3, 0), FlowId::Icmp),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        // Beside this file.
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        ..ProptestConfig::with_cases(400)
    })]

    #[test]
    fn a_guard_decides_as_a_list_of_all_frames_would(
        setup in setups(),
        steps in vec((0u64..20, 0usize..17), 0..120),
    ) {
        let mut guard = Guard::new(&setup, START).expect("a sound setup");
        let frames = frames();
        let mut twin = Twin {
            setup, waiting: vec![], processing: None, arrivals: 0, spent: vec![], polling: false,
        };
        let mut now = START;
        for (token, (later, what)) in (0u32..).zip(steps) {
            now += Duration::from_nanos(later);
            match what {
                0..11 => {
                    let (frame, flow) = &frames[what];
                    prop_assert_eq!(guard.flow(classify(frame, frame.len())), *flow);
                    let judged = guard.handle_frame(now, frame, frame.len(), token);
                    prop_assert_eq!(judged, twin.frame(now, *flow, token));
                }
                11..14 => prop_assert_eq!(guard.poll_frame(), twin.poll()),
                14 => {
                    guard.handle_processed();
                    twin.processing = None;
                }
                _ => {
                    guard.handle_ring_empty(now);
                    twin.polling &= twin.left(None, twin.setup.overall, now) == Some(0);
                }
            }
            let highest = twin.waiting.iter().map(|it| it.0).chain(twin.processing).max();
            prop_assert_eq!(guard.task_priority(), highest);
            prop_assert_eq!(guard.waiting() as usize, twin.waiting.len());
            prop_assert_eq!(guard.mode() == Mode::Polling, twin.polling);
            prop_assert_eq!(guard.allowance(now), twin.left(None, twin.setup.overall, now));
            let timeout = guard.poll_timeout();
            prop_assert_eq!(timeout.is_some(), twin.polling);
            prop_assert!(timeout.is_none_or(|at| at > now), "a poll that is always due");
        }
    }

    /// V-14 (2.1.2): whatever comes when, no span sees more than one budget over those of its periods.
    #[test]
    fn no_span_sees_more_than_a_deferrable_server_demands(
        capacity in 0u32..5, period in 1u64..50, gaps in vec(0u64..30, 0..60),
    ) {
        let rate = Rate { capacity, period: Duration::from_nanos(period) };
        let mut server = bumpless_guard::DeferrableServer::new(rate, START);
        let mut now = START;
        let mut served = Vec::new();
        for gap in gaps {
            now += Duration::from_nanos(gap);
            if server.take(now) {
                served.push(now.as_nanos());
            }
        }
        for (at, &from) in served.iter().enumerate() {
            for (further, &to) in served[at..].iter().enumerate() {
                let span = to - from + 1;
                let demand = u64::from(capacity) * (span.div_ceil(period) + 1);
                prop_assert!((further as u64) < demand);
            }
        }
    }

    #[test]
    fn every_registered_pattern_is_found_whatever_the_others(
        ports in proptest::collection::btree_set(any::<u16>(), 1..200), strange in any::<u16>(),
    ) {
        let flow = |&port: &u16| Flow { matches: vec![Match::Port(Transport::Udp, port)], terms: Terms::CLOSED };
        let mut setup = Setup::closed(4);
        setup.flows = ports.iter().map(flow).collect();
        let guard = Guard::<u32>::new(&setup, START).expect("a sound setup");
        let to = |port| Purpose::Port {
            transport: Transport::Udp, remote: [1, 2, 3, 4].into(), remote_port: 5, port,
        };
        for (at, &port) in ports.iter().enumerate() {
            prop_assert_eq!(guard.flow(to(port)), FlowId::Registered(at as u16));
        }
        if !ports.contains(&strange) {
            prop_assert_eq!(guard.flow(to(strange)), FlowId::Unregistered);
        }
    }
}

fn open(priority: u8, queue: u16) -> Terms {
    Terms {
        priority: Priority(priority),
        rate: None,
        queue,
    }
}

fn two_flows(buffers: u32, reserve: u32) -> Setup {
    let flow = |port, priority| Flow {
        matches: vec![Match::Port(Transport::Udp, port)],
        terms: open(priority, 100),
    };
    Setup {
        flows: vec![flow(1, 1), flow(2, 9)],
        reserve,
        ..Setup::closed(buffers)
    }
}

#[test]
fn an_ipv6_address_with_the_bits_of_an_ipv4_one_is_another_sender() {
    let known = [10, 0, 0, 1].into();
    let mut setup = two_flows(4, 2);
    setup.flows[0].matches = vec![
        Match::PortFrom(Transport::Udp, 7, known),
        Match::Answers(Transport::Udp, known, 9),
    ];
    let guard = Guard::<u32>::new(&setup, START).expect("a sound setup");
    let from = |remote: std::net::IpAddr, remote_port, port| {
        guard.flow(Purpose::Port {
            transport: Transport::Udp,
            remote,
            remote_port,
            port,
        })
    };
    let strange = "::10.0.0.1".parse().expect("an address");
    assert_eq!(from(known, 5, 7), FlowId::Registered(0));
    assert_eq!(from(known, 9, 5), FlowId::Registered(0));
    assert_eq!(from(strange, 5, 7), FlowId::Unregistered);
    assert_eq!(from(strange, 9, 5), FlowId::Unregistered);

    setup.flows[0].matches = vec![Match::EchoReplies(known)];
    let guard = Guard::<u32>::new(&setup, START).expect("a sound setup");
    let from = |remote| guard.flow(Purpose::EchoReply { remote });
    assert_eq!(from(known), FlowId::Registered(0));
    assert_eq!(from(strange), FlowId::Icmp);

    setup.flows[0].matches = vec![Match::Resolution(known)];
    let guard = Guard::<u32>::new(&setup, START).expect("a sound setup");
    let from = |remote| guard.flow(Purpose::Resolution { remote });
    assert_eq!(from(Some(known)), FlowId::Registered(0));
    assert_eq!(from(Some(strange)), FlowId::Resolution);
    assert_eq!(from(None), FlowId::Resolution);
}

/// The three ways of figure 5.14, one after the other.
#[test]
fn a_frame_is_queued_cut_short_or_takes_the_place_of_a_lesser_one() {
    let mut guard = Guard::new(&two_flows(4, 2), START).expect("a sound setup");
    let mut handle = |port, token| {
        let frame = datagram(1, 9, port);
        guard.handle_frame(START, &frame, frame.len(), token)
    };
    let queued = |flow, recycled| Verdict::Queued {
        flow: FlowId::Registered(flow),
        recycled,
    };
    assert_eq!(handle(1, 'a'), queued(0, None));
    assert_eq!(handle(1, 'b'), queued(0, None));
    let cut_short = Verdict::Refused {
        flow: Some(FlowId::Registered(0)),
        cause: Refusal::Pressure,
    };
    assert_eq!(handle(1, 'c'), cut_short);
    let given_up = |token| Taken {
        flow: FlowId::Registered(0),
        priority: Priority(1),
        token,
    };
    assert_eq!(handle(2, 'd'), queued(1, Some(given_up('b'))));
    assert_eq!(guard.task_priority(), Some(Priority(9)));
    assert_eq!(guard.poll_frame().map(|it| it.token), Some('d'));
    assert_eq!(
        guard.task_priority(),
        Some(Priority(9)),
        "while it is worked off"
    );
    guard.handle_processed();
    assert_eq!(guard.task_priority(), Some(Priority(1)));
    let counts = guard.counts(FlowId::Registered(0)).expect("it exists");
    assert_eq!((counts.pressure, counts.recycled, counts.taken), (1, 1, 0));
}

#[test]
fn a_flow_beyond_its_capacity_harms_no_other() {
    let mut setup = two_flows(64, 8);
    setup.flows[1].terms.rate = Some(Rate {
        capacity: 3,
        period: Duration::from_millis(1),
    });
    let mut guard = Guard::new(&setup, START).expect("a sound setup");
    let (low, high) = (datagram(1, 9, 1), datagram(1, 9, 2));
    for token in 0..30 {
        guard.handle_frame(START, &high, high.len(), token);
    }
    guard.handle_frame(START, &low, low.len(), 99);
    let order: Vec<u32> = std::iter::from_fn(|| guard.poll_frame().map(|it| it.token)).collect();
    assert_eq!(order, [0, 1, 2, 99]);
    let counts = guard.counts(FlowId::Registered(1)).expect("it exists");
    assert_eq!((counts.taken, counts.capacity), (3, 27));
}

#[test]
fn a_setup_that_contradicts_itself_is_refused_with_its_reason() {
    let refused = |setup: &Setup| Guard::<u32>::new(setup, START).expect_err("it is wrong");
    let mut setup = two_flows(4, 4);
    assert_eq!(
        refused(&setup),
        SetupError::NoRoom {
            buffers: 4,
            reserve: 4
        }
    );
    setup = two_flows(4, 2);
    let both = Match::Port(Transport::Udp, 1);
    setup.flows[1].matches.push(both);
    let overlap = SetupError::Overlap {
        first: 0,
        second: 1,
        both,
    };
    assert_eq!(refused(&setup), overlap);
    setup.flows[1].matches.clear();
    assert_eq!(refused(&setup), SetupError::NoMatch(1));
    setup = two_flows(4, 2);
    let never = Some(Rate {
        capacity: 1,
        period: Duration::ZERO,
    });
    setup.icmp.rate = never;
    assert_eq!(refused(&setup), SetupError::NoPeriod(Some(FlowId::Icmp)));
    setup = Setup {
        overall: never,
        ..two_flows(4, 2)
    };
    assert_eq!(refused(&setup), SetupError::NoPeriod(None));
    setup = two_flows(Setup::MAX_BUFFERS + 1, 2);
    assert_eq!(
        refused(&setup),
        SetupError::TooManyBuffers(Setup::MAX_BUFFERS + 1)
    );
    // An IPv4 address in IPv6's clothes is the same sender.
    setup = two_flows(4, 2);
    let from =
        |address: &str| Match::PortFrom(Transport::Tcp, 7, address.parse().expect("an address"));
    setup.flows[0].matches.push(from("10.0.0.7"));
    setup.flows[1].matches.push(from("::ffff:10.0.0.7"));
    assert!(matches!(
        refused(&setup),
        SetupError::Overlap {
            first: 0,
            second: 1,
            ..
        }
    ));
}
