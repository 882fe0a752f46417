//! The plan of whole scenarios: several networks, what is impossible, what makes a no.

use bumpless_base::{ChannelId, Duration, LinkId, LinkSet};
use bumpless_plan::evaluate::{Unmet, is_admitted};
use bumpless_plan::resource::Kind;
use bumpless_plan::{
    Background, Burst, Channel, Distribution, Link, Loss, Machine, Packets, Scenario, evaluate,
};
use proptest::prelude::*;

fn link(name: &str, megabits: u64) -> Link {
    Link {
        name: name.into(),
        bandwidth: megabits * 1_000_000,
        frame_overhead: 66,
        gap: 20,
        round_trip: (Duration::from_micros(50), Duration::from_micros(200)),
        answers_behind: false,
        burst: Burst::Fixed(6_000),
        other_frame: 1_538,
        loss: Loss::BitErrors(1e-10),
        background: vec![Background {
            acknowledges: None,
            bytes: 200,
            period: Duration::from_millis(2),
        }],
    }
}

fn channel(name: &str, size: u32, period: u64) -> Channel {
    Channel {
        id: ChannelId::new(1).unwrap(),
        name: name.into(),
        size,
        period: Duration::from_millis(period),
        deadline: Duration::from_millis(period),
        budget: 1,
        budget_follows: false,
        accepted_loss_per_year: None,
        links: LinkSet::first(2),
        distribution: Distribution::Replicate,
    }
}

fn scenario(channels: Vec<Channel>) -> Scenario {
    Scenario {
        links: vec![link("A", 100), link("B", 100)],
        packets: Packets {
            payload: 1_442,
            header: 30,
            security: 0,
            in_flight_max: 512,
        },
        machine: Machine::default(),
        channels,
    }
}

fn spread(mut channel: Channel) -> Channel {
    channel.distribution = Distribution::Spread;
    channel
}

#[test]
fn a_replicated_channel_needs_each_network_alone() {
    // 1 MB each 100 ms is 80 Mbit/s and a little: one network carries it, and so does each.
    let fits = evaluate(&scenario(vec![channel("a", 1_000_000, 100)])).expect("possible");
    assert!(fits.admitted, "{:?}", fits.unmet);
    assert_eq!(fits.situations.len(), 3, "with both, without A, without B");
    let mut slow = scenario(vec![channel("a", 1_000_000, 100)]);
    slow.links[1].bandwidth = 50_000_000;
    let plan = evaluate(&slow).expect("possible");
    let late: Vec<_> = plan
        .unmet
        .iter()
        .map(|unmet| match unmet {
            Unmet::Late {
                situation,
                resource,
            } => {
                let situation = &plan.situations[*situation];
                (situation.without, situation.resources[*resource].kind)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let b = Kind::Networks(LinkSet::only(LinkId(1)));
    assert_eq!(
        late,
        [(None, b), (Some(0), b)],
        "B is too slow, whether A is there or not"
    );
}

#[test]
fn a_spread_channel_has_both_networks_and_is_told_what_one_cannot_carry() {
    let plan = evaluate(&scenario(vec![spread(channel("a", 1_500_000, 100))])).expect("possible");
    let both = &plan.situations[0];
    assert!(
        both.resources
            .iter()
            .all(|resource| resource.refusal.is_none())
    );
    assert!(both.channels[0].response_ns.is_some());
    for alone in &plan.situations[1..] {
        assert!(
            alone
                .resources
                .iter()
                .any(|resource| resource.refusal.is_some())
        );
        assert_eq!(alone.channels[0].response_ns, None);
    }
    assert!(!plan.admitted);
}

#[test]
fn a_replicated_channel_beside_a_spread_one_expects_all_of_its_packets() {
    // Each fits beside half of the spread one, and not beside all of it.
    let channels = |size| vec![channel("a", 700_000, 100), spread(channel("b", size, 100))];
    assert!(
        evaluate(&scenario(channels(300_000)))
            .expect("possible")
            .admitted
    );
    let plan = evaluate(&scenario(channels(900_000))).expect("possible");
    assert!(
        plan.situations[0]
            .resources
            .iter()
            .any(|resource| resource.refusal.is_some())
    );
}

#[test]
fn a_refusal_names_the_window_and_who_fills_it() {
    let plan = evaluate(&scenario(vec![
        channel("large", 1_000_000, 100),
        channel("small", 100_000, 20),
    ]))
    .expect("possible");
    let (refusal, loads) = plan.situations[0].resources[0]
        .refusal
        .as_ref()
        .expect("120 Mbit/s of 100");
    let window = refusal.window_ns.expect("a window");
    let sum: u128 = loads.iter().map(|load| load.nanos).sum();
    assert!(refusal.demand_ns.expect("its load") > u128::from(window));
    assert!(sum <= refusal.demand_ns.expect("its load"));
    assert!(
        loads.windows(2).all(|pair| pair[0].nanos >= pair[1].nanos),
        "most first"
    );
}

#[test]
fn losses_follow_the_networks_that_are_there() {
    let mut both = scenario(vec![channel("a", 1_442, 100)]);
    both.channels[0].budget = 0;
    let plan = evaluate(&both).expect("possible");
    let loss = |at: usize| {
        plan.situations[at].channels[0]
            .packet_loss
            .expect("carried")
    };
    assert!(
        (loss(0) / (loss(1) * loss(2)) - 1.0).abs() < 1e-12,
        "both must lose it"
    );
    both.channels[0].links = LinkSet::only(LinkId(0));
    let plan = evaluate(&both).expect("possible");
    assert_eq!(
        plan.situations[1].channels[0].packet_loss, None,
        "without A it is not carried"
    );
    assert!(plan.admitted, "that is said, and is not a deadline missed");
}

#[test]
fn more_loss_than_is_accepted_is_a_no_that_names_the_budget_that_would_do() {
    let mut lossy = scenario(vec![channel("a", 100_000, 100)]);
    lossy.channels[0].budget = 0;
    lossy.channels[0].accepted_loss_per_year = Some(1e-3);
    let plan = evaluate(&lossy).expect("possible");
    let needed = plan.unmet.iter().map(|unmet| match unmet {
        Unmet::Lossy { needed_budget, .. } => needed_budget.expect("one does"),
        other => panic!("{other:?}"),
    });
    lossy.channels[0].budget = needed.max().expect("without a network, none is too little");
    let plan = evaluate(&lossy).expect("possible");
    assert!(plan.admitted, "{:?}", plan.unmet);
}

#[test]
fn a_limit_in_flight_that_starves_the_network_is_a_no() {
    let mut far = scenario(vec![channel("a", 800_000, 100)]);
    far.links[0].round_trip.1 = Duration::from_millis(20);
    far.packets.in_flight_max = 20;
    let plan = evaluate(&far).expect("possible");
    assert!(
        plan.unmet
            .iter()
            .any(|unmet| matches!(unmet, Unmet::InFlight { link: 0, needed } if *needed > 20))
    );
}

#[test]
fn a_processor_that_cannot_keep_up_is_a_no_although_the_networks_could() {
    let mut slow = scenario(vec![channel("a", 100_000, 10)]);
    slow.links
        .iter_mut()
        .for_each(|link| link.bandwidth = 10_000_000_000);
    assert!(evaluate(&slow).expect("possible").admitted);
    slow.machine.per_packet_ns = 80_000;
    let plan = evaluate(&slow).expect("possible");
    let processor = plan.situations[0]
        .resources
        .iter()
        .find(|r| r.kind == Kind::Processor);
    assert!(processor.expect("it is known").refusal.is_some());
}

#[test]
fn threads_so_late_that_a_pacer_forgets_its_credit_cost_bandwidth() {
    // Half a burst is 250 us here: as late as that, nothing is lost; later, the wire stands idle each time.
    let late = |micros: u64| {
        let mut late = scenario(vec![channel("a", 100_000, 100)]);
        late.links
            .iter_mut()
            .for_each(|link| link.background.clear());
        late.machine.jitter_ns = micros * 1_000;
        evaluate(&late).expect("possible").situations[0].resources[0].utilisation
    };
    assert_eq!(late(0), late(250));
    assert!(
        (late(500) / late(0) - 2.0).abs() < 0.01,
        "{} of {}",
        late(500),
        late(0)
    );
}

#[test]
fn an_empty_state_takes_one_packet() {
    let plan = evaluate(&scenario(vec![channel("a", 0, 10)])).expect("possible");
    assert_eq!(plan.channels[0].packets, 1);
    assert!(plan.admitted);
}

/// What is impossible, and the field that must be named.
fn impossible() -> Vec<(&'static str, Scenario)> {
    let with = |field, change: &dyn Fn(&mut Scenario)| {
        let mut scenario = scenario(vec![channel("a", 1_000, 10)]);
        change(&mut scenario);
        (field, scenario)
    };
    vec![
        with("period", &|s| s.channels[0].period = Duration::ZERO),
        with("deadline", &|s| s.channels[0].deadline = Duration::ZERO),
        with("deadline", &|s| {
            s.channels[0].deadline = Duration::from_millis(11)
        }),
        with("period", &|s| s.channels[0].period = Duration::MAX),
        with("retransmissions", &|s| s.channels[0].budget = u32::MAX),
        with("accepted_loss_per_year", &|s| {
            s.channels[0].accepted_loss_per_year = Some(f64::NAN)
        }),
        with("accepted_loss_per_year", &|s| {
            s.channels[0].accepted_loss_per_year = Some(-1.0)
        }),
        with("accepted_loss_per_year", &|s| {
            s.channels[0].accepted_loss_per_year = Some(f64::INFINITY)
        }),
        with("networks", &|s| s.channels[0].links = LinkSet::EMPTY),
        with("networks", &|s| s.channels[0].links = LinkSet::first(3)),
        with("bandwidth", &|s| s.links[0].bandwidth = 0),
        with("bandwidth", &|s| s.links[0].bandwidth = u64::MAX),
        with("bit_error_rate", &|s| {
            s.links[0].loss = Loss::BitErrors(-1e-10)
        }),
        with("bit_error_rate", &|s| {
            s.links[0].loss = Loss::BitErrors(f64::NAN)
        }),
        with("frame_loss", &|s| s.links[0].loss = Loss::Frames(1.0)),
        with("frame_loss", &|s| {
            s.links[0].loss = Loss::Frames(f64::INFINITY)
        }),
        with("round_trip", &|s| {
            s.links[0].round_trip = (Duration::from_millis(2), Duration::from_millis(1))
        }),
        with("background", &|s| {
            s.links[0].background[0].period = Duration::ZERO
        }),
        with("payload", &|s| s.packets.payload = 0),
        with("payload", &|s| s.packets.payload = u32::MAX),
        with("header", &|s| s.packets.header = u32::MAX),
        with("in_flight_max", &|s| s.packets.in_flight_max = 0),
        with("jitter_ns", &|s| s.machine.jitter_ns = u64::MAX),
        with("number", &|s| s.links.clear()),
    ]
}

#[test]
fn what_is_impossible_is_refused_by_field_and_reason() {
    for (field, scenario) in impossible() {
        let faults = evaluate(&scenario).expect_err(field);
        assert!(
            faults.iter().any(|fault| fault.field == field),
            "{field}: {faults:?}"
        );
        assert!(
            faults.iter().all(
                |fault| !fault.place.is_empty() && fault.reason.contains("give")
                    || fault.reason.contains("name")
            ),
            "{faults:?}"
        );
        assert!(!is_admitted(&scenario), "{field}");
    }
}

prop_compose! {
    fn any_channel()(
        size in prop_oneof![Just(0), Just(u32::MAX), any::<u32>(), 0u32..100_000],
        period in prop_oneof![1u64..1_000, Just(3_600_000)],
        share in 1u64..=100,
        budget in 0u32..=100,
        links in 1u8..4,
        is_spread in any::<bool>(),
        accepted in prop::option::of(prop_oneof![Just(f64::MIN_POSITIVE), Just(1e-30), Just(1.0), Just(f64::MAX)]),
    ) -> Channel {
        let mut channel = channel("x", size, period);
        channel.deadline = Duration::from_nanos((period * share * 10_000).max(1));
        channel.budget = budget;
        channel.links = LinkSet(links);
        channel.accepted_loss_per_year = accepted;
        if is_spread { spread(channel) } else { channel }
    }
}

prop_compose! {
    fn any_scenario()(
        channels in prop::collection::vec(any_channel(), 0..6),
        bandwidths in prop::array::uniform2(prop_oneof![Just(1u64), Just(1_000_000_000_000), 1u64..10_000_000_000]),
        loss in prop_oneof![Just(Loss::BitErrors(0.0)), Just(Loss::BitErrors(1e-300)), Just(Loss::Frames(0.999_999)), Just(Loss::BitErrors(1e-10))],
        machine in (0u64..3_600_000_000_000, 0u64..1_000_000, 0u64..1_000_000),
        extremes in any::<bool>(),
    ) -> Scenario {
        let mut scenario = scenario(channels);
        for (link, bandwidth) in scenario.links.iter_mut().zip(bandwidths) {
            link.bandwidth = bandwidth;
            link.loss = loss;
            if extremes {
                link.burst = Burst::Fixed(u32::MAX);
                link.other_frame = u32::MAX;
                link.frame_overhead = u32::MAX;
                link.round_trip.1 = Duration::from_secs(3_600);
            }
        }
        scenario.machine = Machine { per_packet_ns: machine.0, per_kilobyte_ns: machine.1, per_transfer_ns: machine.2, jitter_ns: machine.2 };
        scenario
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn whatever_is_possible_has_an_answer_without_overflow_and_nan(scenario in any_scenario()) {
        let plan = evaluate(&scenario).expect("possible");
        prop_assert_eq!(plan.admitted, is_admitted(&scenario), "the short way agrees");
        for situation in &plan.situations {
            for resource in &situation.resources {
                prop_assert!(resource.utilisation.is_finite() && resource.payload_utilisation.is_finite());
                prop_assert!(resource.growth.is_finite());
            }
            for (channel, state) in scenario.channels.iter().zip(&situation.channels) {
                for number in [state.packet_loss, state.state_loss].into_iter().flatten() {
                    prop_assert!((0.0..=1.0).contains(&number), "{}", number);
                }
                prop_assert!(state.loss_per_year.is_none_or(f64::is_finite));
                prop_assert!(state.response_ns.is_none_or(|r| r <= channel.deadline.as_nanos()));
            }
        }
    }

    #[test]
    fn a_state_more_or_a_slower_network_never_turns_a_no_into_a_yes(
        scenario in any_scenario(), more in any_channel(), slower in 2u64..10
    ) {
        prop_assume!(!is_admitted(&scenario));
        let mut with_more = scenario.clone();
        with_more.channels.push(more);
        prop_assert!(!is_admitted(&with_more));
        let mut slow = scenario;
        slow.links.iter_mut().for_each(|link| link.bandwidth = (link.bandwidth / slower).max(1));
        prop_assert!(!is_admitted(&slow));
    }
}
