//! Costs from a file: what they hold for, and what a plan takes from them.

use bumpless_base::Duration;
use bumpless_config::Config;
use bumpless_plan::cost::file::{Basis, Jitter, NodeCosts, Path, SCHEMA};
use bumpless_plan::cost::{Cost, Costs};
use bumpless_plan::{evaluate, pair};

fn config(change: impl Fn(&str) -> String) -> Config {
    let text = "[pair]\nname = \"p\"\n\
        [[network]]\nname = \"A\"\n\
        [[network]]\nname = \"B\"\nbandwidth_mbit = 100\n\
        [[node]]\nname = \"left\"\naddresses = { A = \"127.1.1.1:4700\", B = \"127.1.2.1:4700\" }\n\
        [[node]]\nname = \"right\"\naddresses = { A = \"127.1.1.2:4700\", B = \"127.1.2.2:4700\" }\n\
        [[group]]\nname = \"g\"\nnodes = [\"left\", \"right\"]\nwithout_reference = true\n\
        [[application]]\nname = \"app\"\ngroup = \"g\"\nkind = \"synthetic\"\nchannel = 1\n\
        period_ms = 100\nsize = \"50 kB\"\n";
    Config::parse(&change(text), "test").unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn path(networks: &[&str], from: &str, per_transfer_ns: f64) -> Path {
    let cost = Cost {
        per_transfer_ns,
        per_packet_ns: 700.0,
        per_kilobyte_ns: 310.2,
        pace_stretch: 1.0,
        ..Cost::default()
    };
    Path {
        from: from.into(),
        to: if from == "left" { "right" } else { "left" }.into(),
        networks: networks.iter().map(|name| (*name).to_owned()).collect(),
        spread: false,
        cost,
        largest_error: 0.03,
        held_out_error: Some(0.04),
        round_trip_ns: [60_000, 190_000],
        thrown_away: 0,
        sizes: Vec::new(),
    }
}

fn costs(config: &Config) -> Costs {
    let node = |name: &str, p9999_ns| NodeCosts {
        name: name.into(),
        host: "h".into(),
        jitter: Jitter {
            p9999_ns,
            ..Jitter::default()
        },
    };
    Costs {
        schema: SCHEMA.into(),
        measured_unix_s: 1,
        version: "0".into(),
        basis: Basis::of(config),
        nodes: vec![node("left", 300_000), node("right", 400_000)],
        paths: vec![
            path(&["A"], "left", 80e3),
            path(&["A"], "right", 90e3),
            path(&["A", "B"], "left", 120e3),
        ],
    }
}

#[test]
fn a_plan_reckons_with_the_slower_node_and_the_measured_round_trips() {
    let config = config(str::to_owned);
    let costs = costs(&config);
    costs.check(&config).unwrap();
    let machine = costs.machine();
    assert_eq!((machine.per_packet_ns, machine.per_kilobyte_ns), (700, 311));
    // What an empty state takes beyond the shortest round trip.
    assert_eq!(
        (machine.per_transfer_ns, machine.jitter_ns),
        (30_000, 400_000)
    );
    let mut scenario = pair::scenario(&config, config.node("left").unwrap(), Default::default());
    let assumed = scenario.links[1].round_trip;
    costs.apply(&mut scenario);
    let micros = Duration::from_micros;
    assert_eq!(scenario.links[0].round_trip, (micros(60), micros(190)));
    assert_eq!(
        scenario.links[1].round_trip, assumed,
        "B was not measured alone"
    );
    assert!(evaluate(&scenario).unwrap().admitted);
    // Kept and read again, nothing is different.
    let text = serde_json::to_string(&costs).unwrap();
    assert_eq!(serde_json::from_str::<Costs>(&text).unwrap(), costs);
}

#[test]
fn a_prediction_is_of_the_route_that_the_states_take() {
    let both = config(str::to_owned);
    let costs = costs(&both);
    let predicted = costs.predict(&both, &both.applications[0], 0).unwrap();
    assert!((120e3..122e3).contains(&predicted), "{predicted}");
    let on = |network: &str| {
        let line = format!("networks = [\"{network}\"]\n");
        let config = config(|text| format!("{text}{line}"));
        costs.predict(&config, &config.applications[0], 0)
    };
    // The slower direction counts.
    assert!((90e3..92e3).contains(&on("A").unwrap()));
    assert_eq!(on("B"), None);
}

#[test]
fn costs_of_something_else_are_refused_with_what_is_different() {
    let costs = costs(&config(str::to_owned));
    let refusal = |from: &str, to: &str| {
        let other = config(|text| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        });
        costs.check(&other).unwrap_err()
    };
    let cases = [
        (
            "name = \"B\"\n",
            "name = \"B\"\nmtu = 9000\n",
            "network 'B': the mtu was 1500",
        ),
        (
            "bandwidth_mbit = 100\n",
            "bandwidth_mbit = 10\n",
            "'B': the bandwidth",
        ),
        (
            "[pair]",
            "[transfer]\nwire_version = 1\n[pair]",
            "the wire version was 2",
        ),
        (
            "[pair]",
            "[transfer]\nin_flight_max = 100\n[pair]",
            "in_flight_max was 512",
        ),
        ("\"right\"", "\"west\"", "node 'right'"),
    ];
    for (from, to, expected) in cases {
        let said = refusal(from, to);
        assert!(
            said.contains(expected) && said.contains("calibrate again"),
            "{said}"
        );
    }
}

#[test]
fn costs_that_are_no_costs_are_refused() {
    let config = config(str::to_owned);
    let wrong = |change: fn(&mut Costs)| {
        let mut costs = costs(&config);
        change(&mut costs);
        assert!(costs.check(&config).is_err(), "{costs:?}");
    };
    wrong(|costs| costs.schema = "bumpless.costs/0".into());
    wrong(|costs| costs.paths.clear());
    wrong(|costs| costs.paths[0].cost.per_packet_ns = -1.0);
    wrong(|costs| costs.paths[0].cost.wire_ahead_bytes = f64::NAN);
    wrong(|costs| costs.paths[0].cost.per_transfer_ns = 1e18);
    wrong(|costs| costs.paths[0].round_trip_ns = [2, 1]);
}
