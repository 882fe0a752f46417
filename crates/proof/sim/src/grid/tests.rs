use bumpless_wan::route::round_trip_us;
use bumpless_wan::{Shape, ends_of, generate};

use super::*;

fn options(routing: Routing, names: [&str; 4]) -> Options {
    let topology = Arc::new(generate(&Shape::default()).unwrap());
    let [left, right, witness, field] = names.map(|name| topology.find(name).unwrap());
    Options {
        places: Places {
            nodes: vec![left, right],
            witness,
            field,
        },
        topology,
        routing,
        backup: None,
        heartbeat: Duration::from_millis(5),
        period: Duration::from_millis(20),
        script: None,
    }
}

const FAR: [&str; 4] = ["centre-1", "s10-2-3", "s05-1-1", "s15-3-2"];

fn promised(routing: Routing, what: &[&str]) -> Promised {
    let options = options(routing, FAR);
    let links: Vec<usize> = what
        .iter()
        .flat_map(|what| ends_of(&options.topology, what).unwrap())
        .collect();
    let cut = Step {
        cut: links.clone(),
        ..Step::default()
    };
    let heal = Step {
        heal: links,
        ..Step::default()
    };
    Reach::new(&options).promised(&options, &[cut, heal]).0
}

#[test]
fn what_is_promised_hangs_on_whom_an_outage_cuts_off_from_whom() {
    for (what, fixed) in [
        (&["centre-1"][..], Promised::PrimaryCut),
        (&["s10-2-3"], Promised::BackupCut),
        (&["c10-2-3"], Promised::BackupCut),
        // The witness alone, and the field device alone.
        (&["s05-1-1"], Promised::Nothing),
        (&["s15-3-2"], Promised::Nothing),
        // On nobody's way, and both ends of the primary's only link.
        (&["c18-1-3", "s07"], Promised::Unnoticed),
        (&["b00a"], Promised::PrimaryCut),
        (&["centre-1", "centre-2"], Promised::PrimaryCut),
        (&["centre-1", "s10-2-3"], Promised::Nothing),
    ] {
        assert_eq!(promised(Routing::Fixed, what), fixed, "{what:?}");
    }
    // A dead router of the ring has daemons look for another way, which the plan does not know.
    for routing in [Routing::Fixed, Routing::EqualCost, Routing::DAEMON] {
        assert_eq!(
            promised(routing, &["b15a"]),
            Promised::Nothing,
            "{routing:?}"
        );
        assert_eq!(promised(routing, &["centre-1"]), Promised::PrimaryCut);
        assert_eq!(promised(routing, &["s10-2-3"]), Promised::BackupCut);
        assert_eq!(promised(routing, &["c18-1-3"]), Promised::Unnoticed);
    }
}

#[test]
fn distances_are_those_of_the_ways_and_of_equal_ones_the_longest() {
    let fixed = options(Routing::Fixed, FAR);
    let [left, right] = [fixed.places.nodes[0], fixed.places.nodes[1]];
    let trip = |one, other| round_trip_us(&fixed.topology, one, other).unwrap();
    let farther = |to| trip(left, to).max(trip(right, to));
    let expected = [
        trip(left, right),
        farther(fixed.places.witness),
        farther(fixed.places.field),
    ];
    assert_eq!(Reach::new(&fixed).round_trips_us(), expected);
    let any = Reach::new(&options(Routing::EqualCost, FAR)).round_trips_us();
    assert!(any.iter().zip(expected).all(|(any, first)| *any >= first));
    let on_ways = |options| Reach::new(&options).on_ways().len();
    assert!(on_ways(options(Routing::EqualCost, FAR)) >= on_ways(fixed));
}

#[test]
fn links_that_lose_some_and_outages_that_follow_each_other_have_no_promise() {
    let options = options(Routing::Fixed, FAR);
    let reach = Reach::new(&options);
    let links = |what| ends_of(&options.topology, what).unwrap();
    let step = |cut, heal| Step {
        cut,
        heal,
        ..Step::default()
    };
    let (left, right) = (links("centre-1"), links("s10-2-3"));
    let steps = [
        step(left.clone(), Vec::new()),
        step(right.clone(), left.clone()),
        step(Vec::new(), right),
    ];
    assert_eq!(reach.promised(&options, &steps).0, Promised::Nothing);
    assert_eq!(
        reach
            .promised(
                &options,
                &[step(left.clone(), vec![]), step(vec![], left.clone())]
            )
            .0,
        Promised::PrimaryCut
    );
    let impaired = Step {
        impair: vec![(left[0], Some(bumpless_wan::Impairment::default()))],
        ..Step::default()
    };
    assert_eq!(reach.promised(&options, &[impaired]).0, Promised::Nothing);
}
