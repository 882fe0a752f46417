use std::time::Duration;

use super::*;

const LIMITS: Limits = Limits {
    flows: 3,
    percent: 10.0,
    priority: 50,
    burst: None,
    interfaces: 2,
    packet_ns: 2000,
};

fn wanted(port: u16, capacity: u32) -> Registered {
    Registered {
        program: Program {
            pid: 7,
            user: 1000,
            name: "ctl".to_owned(),
        },
        pattern: Match::Port(Transport::Udp, port),
        terms: message::Terms {
            capacity,
            period: Duration::from_millis(100),
            priority: 10,
        },
    }
}

fn registry() -> Registry {
    let setpoints = Match::Port(Transport::Udp, 4713);
    Registry::new(LIMITS, [(setpoints, "setpoints".to_owned())].into())
}

fn refused(registry: &mut Registry, wanted: Registered) -> (Refusal, String) {
    let before: Vec<_> = registry.all().map(|(at, it)| (at, it.clone())).collect();
    let refused = registry.admit(wanted).expect_err("refused");
    let after: Vec<_> = registry.all().map(|(at, it)| (at, it.clone())).collect();
    assert_eq!(after, before);
    refused
}

#[test]
fn each_wrong_value_has_its_cause_and_says_what_would_be_right() {
    let mut registry = registry();
    let with = |change: fn(&mut message::Terms)| {
        let mut wanted = wanted(9, 10);
        change(&mut wanted.terms);
        wanted
    };
    for (asked, cause, part) in [
        (wanted(9, 0), Refusal::Terms, "capacity 0"),
        (wanted(9, CAPACITY_MAX + 1), Refusal::Terms, "8388608"),
        (
            with(|it| it.period = Duration::from_micros(999)),
            Refusal::Terms,
            "999µs",
        ),
        (
            with(|it| it.period = Duration::from_secs(61)),
            Refusal::Terms,
            "of 61s is not 1 ms to 60 s",
        ),
        (with(|it| it.priority = 51), Refusal::Priority, "above 50"),
        (wanted(4713, 10), Refusal::Taken, "\"setpoints\""),
        // 10 % of a processor are 25,000 packets a second on each of two interfaces.
        (wanted(9, 2501), Refusal::Budget, "10.0 % are left"),
    ] {
        let (refusal, told) = refused(&mut registry, asked);
        assert_eq!(refusal, cause, "{told}");
        assert!(told.contains(part), "{part} in {told}");
    }
}

#[test]
fn nobody_registers_what_one_sender_sends_to_a_port_of_the_guards_own() {
    let mut registry = registry();
    let from = |transport, port| Registered {
        pattern: Match::PortFrom(transport, port, [10, 0, 0, 9].into()),
        ..wanted(port, 10)
    };
    let (cause, told) = refused(&mut registry, from(Transport::Udp, 4713));
    assert_eq!(cause, Refusal::Taken);
    assert!(told.contains("\"setpoints\""), "{told}");
    assert!(registry.admit(from(Transport::Tcp, 4713)).is_ok());
    assert!(registry.admit(from(Transport::Udp, 4714)).is_ok());
    // A file that is read again is held against what is registered in the same way.
    let of_port = (Match::Port(Transport::Udp, 4714), "other".to_owned());
    let wrong = registry.follow(LIMITS, [of_port].into()).unwrap_err();
    assert!(wrong[0].contains("\"other\""), "{wrong:?}");
}

#[test]
fn capacities_of_all_sockets_together_stay_below_the_burst_that_the_plan_knows() {
    let mut registry = Registry::new(
        Limits {
            burst: Some(100),
            ..LIMITS
        },
        HashMap::new(),
    );
    let first = registry.admit(wanted(1, 60)).expect("a place");
    let (cause, told) = refused(&mut registry, wanted(2, 41));
    assert_eq!(cause, Refusal::Budget);
    assert!(
        told.contains("40 are left") && told.contains("`burst_max`"),
        "{told}"
    );
    assert!(registry.admit(wanted(2, 40)).is_ok());
    assert_eq!(
        (&registry.json()["burst"], &registry.json()["burst_max"]),
        (&100.into(), &100.into())
    );
    registry.remove(first);
    assert!(registry.admit(wanted(3, 60)).is_ok());
}

#[test]
fn flows_that_come_are_nobodys_although_a_program_has_one_of_their_ports() {
    let mut registry = registry();
    let place = registry.admit(wanted(4800, 10)).expect("a place");
    let of_guard = || -> HashMap<Match, String> {
        let flow = |port| (Match::Port(Transport::Udp, port), "strangers".to_owned());
        [flow(4800), flow(4801)].into()
    };
    let told = registry.impose(LIMITS, of_guard());
    assert!(told.len() == 1 && told[0].contains("udp 4800"), "{told:?}");
    assert_eq!(registry.all().count(), 1);
    let (cause, told) = refused(&mut registry, wanted(4801, 10));
    assert_eq!(cause, Refusal::Taken, "{told}");
    registry.remove(place);
    assert!(registry.impose(LIMITS, of_guard()).is_empty());
    assert_eq!(refused(&mut registry, wanted(4800, 10)).0, Refusal::Taken);
}

#[test]
fn sockets_are_registered_within_their_number_and_their_share_and_places_come_back() {
    let mut registry = registry();
    assert_eq!(registry.admit(wanted(1, 1500)), Ok(0));
    let (refusal, told) = refused(&mut registry, wanted(2, 1001));
    assert_eq!(refusal, Refusal::Budget);
    assert!(told.contains("4.0 % are left"), "{told}");
    assert_eq!(registry.admit(wanted(2, 999)), Ok(1));
    let (refusal, told) = refused(&mut registry, wanted(2, 1));
    assert_eq!(refusal, Refusal::Taken);
    assert!(told.contains("ctl[7]"), "{told}");
    assert_eq!(registry.admit(wanted(3, 1)), Ok(2));
    assert_eq!(refused(&mut registry, wanted(4, 1)).0, Refusal::Full);
    registry.remove(1);
    // A second time it is nobody's place.
    registry.remove(1);
    assert_eq!(registry.admit(wanted(4, 999)), Ok(1));
    assert_eq!(
        registry.admit(wanted(5, 1)).map_err(|it| it.0),
        Err(Refusal::Full)
    );
    registry.remove(0);
    registry.remove(2);
    assert_eq!(registry.admit(wanted(5, 1)), Ok(0));
    let told = registry.json();
    assert_eq!((&told["flows"], &told["flows_max"]), (&2.into(), &3.into()));
}

#[test]
fn any_number_of_comers_and_goers_leaves_nothing() {
    let mut registry = registry();
    for _ in 0..10_000 {
        let place = registry.admit(wanted(9, 2500)).expect("room");
        registry.remove(place);
    }
    assert_eq!(registry.all().count(), 0);
    assert_eq!(registry.free.len(), LIMITS.flows);
    assert!(registry.percent().abs() < f64::EPSILON);
}

#[test]
fn other_limits_hold_for_what_is_registered_whole_or_not_at_all() {
    let mut registry = registry();
    for port in 1..=3 {
        assert!(registry.admit(wanted(port, 100)).is_ok());
    }
    registry.remove(0);
    let none = HashMap::new;
    let taken = || [(Match::Port(Transport::Udp, 2), "other".to_owned())].into();
    let limits = |change: fn(&mut Limits)| {
        let mut limits = LIMITS;
        change(&mut limits);
        limits
    };
    for (limits, of_guard, parts) in [
        (limits(|it| it.flows = 1), none(), ["2 sockets", "`flows`"]),
        (limits(|it| it.percent = 0.7), none(), ["0.8 %", "is 0.7"]),
        (
            limits(|it| it.priority = 9),
            none(),
            ["priority 10", "ctl[7]"],
        ),
        (
            limits(|it| it.packet_ns = 60_000),
            none(),
            ["24.0 %", "is 10"],
        ),
        (
            limits(|it| it.burst = Some(5)),
            none(),
            ["capacities of", "`burst_max` in [registration] is 5"],
        ),
        (LIMITS, taken(), ["\"other\"", "ctl[7]"]),
    ] {
        let before = registry.json();
        let wrong = registry
            .follow(limits, of_guard)
            .expect_err("refused")
            .join("; ");
        assert!(parts.iter().all(|part| wrong.contains(part)), "{wrong}");
        assert_eq!(registry.json(), before);
        assert_eq!(
            registry.clone().admit(wanted(4713, 1)).map_err(|it| it.0),
            Err(Refusal::Taken)
        );
    }
    // Two remain, in the second and third place, and two are permitted: the first place stays free.
    assert_eq!(registry.follow(limits(|it| it.flows = 2), none()), Ok(()));
    let places: Vec<_> = registry.all().map(|(at, _)| at).collect();
    assert_eq!((places, registry.places()), (vec![1, 2], 3));
    let full = registry.admit(wanted(4713, 1)).map_err(|it| it.0);
    assert_eq!(full, Err(Refusal::Full));
    assert_eq!(registry.follow(limits(|it| it.flows = 5), none()), Ok(()));
    for (port, place) in [(4713, 0), (5, 3), (6, 4)] {
        assert_eq!(registry.admit(wanted(port, 1)), Ok(place));
    }
}
