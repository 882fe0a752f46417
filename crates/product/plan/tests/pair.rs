//! From a configuration to what each node may have to send.

use bumpless_base::{Duration, LinkSet};
use bumpless_config::Config;
use bumpless_plan::report::{Report, words};
use bumpless_plan::{Background, Machine, PairPlan, Verdict, pair, plan};
use proptest::prelude::*;

fn example(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../examples")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

fn planned(text: &str) -> PairPlan {
    let config = Config::parse(text, "t").unwrap_or_else(|problems| panic!("{problems:#?}"));
    plan(&config, None)
}

#[test]
fn both_nodes_of_a_pair_may_have_the_same_to_send() {
    let plan = planned(&example("table20.toml"));
    assert_eq!(plan.senders.len(), 1);
    let sender = &plan.senders[0];
    assert_eq!(sender.nodes, ["left", "right"]);
    // 42.8 MB and the executors' envelopes: two buffers to send, two to receive, two of the application.
    assert_eq!(sender.memory, ((42_841_600 + 11 * 64) * 6, 1 << 30));
    let scenario = &sender.scenario;
    assert_eq!((scenario.links.len(), scenario.channels.len()), (2, 11));
    assert_eq!(
        (scenario.packets.payload, scenario.packets.header),
        (1403, 30)
    );
    let link = &scenario.links[0];
    assert_eq!(
        (link.bandwidth, link.frame_overhead, link.gap),
        // 66 of headers, 39 of protection.
        (1_000_000_000, 105, 20)
    );
    assert_eq!((link.burst(), link.other_frame), (62_500, 1538));
    assert_eq!(
        link.round_trip,
        (Duration::ZERO, Duration::from_micros(500))
    );
    let channel = &scenario.channels[2];
    assert_eq!((channel.size, channel.budget), (40_064, 3));
    assert_eq!(channel.accepted_loss_per_year, None);
    assert_eq!(channel.links, LinkSet::first(2));
    assert_eq!(scenario.machine.jitter_ns, 250_000);
}

#[test]
fn heartbeats_and_requests_to_witnesses_have_their_real_sizes() {
    let plan = planned(&example("table20.toml"));
    let [heartbeat, full_length, request] = plan.senders[0].scenario.links[0].background[..] else {
        panic!("{plan:#?}")
    };
    // One group: 121 bytes of heartbeat, 57 of request, 66 of headers, 39 of protection; every 2 ms, more often in haste.
    let (bytes, period) = (121 + 105, Duration::from_micros(250));
    assert_eq!(
        heartbeat,
        Background {
            bytes,
            period,
            acknowledges: None
        }
    );
    // What fills a packet of 1500 bytes, ten times a second.
    let (bytes, period) = (1472 + 66, Duration::from_millis(100));
    assert_eq!(
        full_length,
        Background {
            bytes,
            period,
            acknowledges: None
        }
    );
    let (bytes, period) = (57 + 105, Duration::from_millis(1));
    assert_eq!(
        request,
        Background {
            bytes,
            period,
            acknowledges: None
        }
    );
}

#[test]
fn a_time_line_goes_by_channel_number_where_deadlines_are_equal() {
    // Both are due after 100 ms; the one with the higher number comes first in the file.
    let text = example("table20.toml")
        .replace("channel = 4\n", "channel = 104\n")
        .replace("channel = 5\n", "channel = 4\n")
        .replace("channel = 104\n", "channel = 5\n");
    let report = Report {
        pair: "p".into(),
        plan: planned(&text),
        advice: vec![Vec::new()],
        headroom: vec![None],
    };
    let drawings = report.drawings();
    let (_, line) = drawings
        .iter()
        .find(|(_, svg)| svg.contains("Time line"))
        .unwrap();
    let row = |name: &str| line.find(&format!(">{name}<")).unwrap();
    assert!(row("application-5") < row("application-4"));
    let acknowledged = |name: &str| {
        let state = line.split(&format!("{name}, state 1, ")).nth(1).unwrap();
        let (_, at) = state.split_once("acknowledged by ").unwrap();
        at.split_once(" ms").unwrap().0.parse::<f64>().unwrap()
    };
    assert!(acknowledged("application-5") < acknowledged("application-4"));
}

/// Three nodes in two groups: `b` is a candidate of both.
fn pool() -> String {
    let table = example("two-computers.toml");
    let start = table.find("[[application]]").unwrap();
    let node = "[[node]]\nname = \"west\"\naddresses = { A = \"192.0.2.14:4700\", B = \"[2001:db8:b::14]:4700\" }\n";
    let group =
        "[[group]]\nname = \"more\"\nnodes = [\"west\", \"south\"]\nreferences = [\"witness-a\"]\n";
    let application = |name: &str, group: &str, channel: u16| {
        format!(
            "[[application]]\nname = \"{name}\"\ngroup = \"{group}\"\nkind = \"synthetic\"\n\
             channel = {channel}\nperiod_ms = 100\nsize = \"100 kB\"\nnetworks = [\"A\"]\n"
        )
    };
    let (one, two) = (
        application("one", "tanks", 1),
        application("two", "more", 2),
    );
    format!("{}{node}{group}{one}{two}", &table[..start])
}

#[test]
fn a_node_of_two_groups_may_send_both_and_acknowledge_both() {
    let plan = planned(&pool());
    let nodes: Vec<_> = plan.senders.iter().map(|s| s.nodes.join(" ")).collect();
    assert_eq!(nodes, ["north", "south", "west"]);
    let names = |at: usize| -> Vec<&str> {
        let channels = &plan.senders[at].scenario.channels;
        channels
            .iter()
            .map(|channel| channel.name.as_str())
            .collect()
    };
    assert_eq!(
        (names(0), names(1), names(2)),
        (vec!["one"], vec!["one", "two"], vec!["two"])
    );
    let south = &plan.senders[1];
    assert_eq!(south.partners, 2);
    // Network B carries no state, so it is no part of the plan.
    assert_eq!(south.scenario.links.len(), 1);
    let link = &south.scenario.links[0];
    assert_eq!(link.name, "A");
    // Two heartbeats to each of two partners, a witness for two groups, two channels to acknowledge.
    assert_eq!(link.background.len(), 2 * 2 + 2 + 2);
    let one = &plan.senders[0].scenario.links[0];
    assert_eq!(one.background.len(), 2 + 1);
    assert_eq!(link.burst(), 2 * one.burst());
    // To north, an acknowledgement of south's may stand behind a state of south's; to south, neither of
    // its partners has a state to send beside.
    let stated = Duration::from_micros(250);
    assert_eq!(link.round_trip.1, stated);
    assert!(one.longest_round_trip() > stated + Duration::from_micros(500));
}

#[test]
fn the_budget_is_the_smallest_that_suffices_without_any_one_network() {
    let text = example("table20.toml");
    let with =
        |more: &str| planned(&text.replace("retransmissions = 5\n", more)).senders[0].clone();
    let budget = |more: &str| with(more).scenario.channels[6].budget;
    // 8 MB every 500 ms at 1e-10: equation 4 on one network gives 7e-6 lost for R = 4, 8e-9 for R = 5.
    assert_eq!(budget(""), 5);
    assert_eq!(budget("accepted_loss_per_year = 1e-5\n"), 4);
    assert_eq!(
        budget("accepted_loss_per_year = 1e-5\nretransmissions = 7\n"),
        7
    );
    let sender = with("");
    let plan = sender.plan.unwrap();
    for situation in &plan.situations {
        assert!(situation.channels[6].loss_per_year.unwrap() <= 1e-6);
    }
}

#[test]
fn where_a_network_states_no_bandwidth_nothing_is_promised() {
    let text = example("table20.toml").replacen("bandwidth_mbit = 1000", "bandwidth_mbit = 0", 1);
    let plan = planned(&text);
    assert_eq!(plan.verdict, Verdict::CannotSay);
    let unknown = plan.senders[0].plan.as_ref().unwrap_err();
    assert_eq!(unknown.len(), 1);
    assert_eq!(
        (unknown[0].place.as_str(), unknown[0].field),
        ("network \"A\"", "bandwidth")
    );
}

/// Values from the edges of what a configuration takes, and from between.
fn edges() -> impl Strategy<Value = String> {
    let network = (
        prop::sample::select(vec!["0.001", "100", "1000", "1000", "1000000"]),
        prop::sample::select(vec![
            "",
            "",
            "",
            "bit_error_rate = 0",
            "bit_error_rate = 0.5",
            "bit_error_rate = 1e-300",
            "frame_loss = 0.9",
            "frame_loss = 1e-4",
        ]),
        prop::sample::select(vec!["0.001", "0.5", "0.5", "10000"]),
        prop::sample::select(vec!["0", "65535"]),
    );
    let application = (
        prop::sample::select(vec![0u64, 1, 800, 40_000, 8_000_000, 4_294_967_231]),
        prop::sample::select(vec![1.0, 10.0, 333.3, 1000.0, 60_000.0]),
        prop::sample::select(vec![0.1, 0.5, 1.0]),
        prop::sample::select(vec![
            "",
            "retransmissions = 0",
            "retransmissions = 2",
            "retransmissions = 100",
        ]),
        prop::sample::select(vec![
            "",
            "",
            "",
            "accepted_loss_per_year = 1e-300",
            "accepted_loss_per_year = 1e9",
        ]),
        prop::sample::select(vec!["replicate", "spread"]),
    );
    let jitter = prop::sample::select(vec!["0", "0.25", "0.25", "1000"]);
    let all = (
        network.clone(),
        network,
        prop::collection::vec(application, 1..5),
        jitter,
    );
    all.prop_map(|(a, b, applications, jitter)| {
        let mut text = format!(
            "[pair]\nname = \"p\"\n[transfer]\nmemory_max = \"1024 GiB\"\n[plan]\njitter_ms = {jitter}\n"
        );
        for (name, (bandwidth, loss, trip, other)) in [("A", a), ("B", b)] {
            text += &format!(
                "[[network]]\nname = \"{name}\"\nbandwidth_mbit = {bandwidth}\n{loss}\n\
                 round_trip_max_ms = {trip}\nother_traffic_bytes = {other}\n"
            );
        }
        for (node, host) in [("l", 1), ("r", 2)] {
            text += &format!(
                "[[node]]\nname = \"{node}\"\naddresses = {{ A = \"192.0.2.{host}:1\", B = \"198.51.100.{host}:1\" }}\n"
            );
        }
        text += "[[group]]\nname = \"g\"\nnodes = [\"l\", \"r\"]\nwithout_reference = true\n";
        for (at, (size, period, share, budget, accepted, distribution)) in
            applications.into_iter().enumerate()
        {
            text += &format!(
                "[[application]]\nname = \"a{at}\"\ngroup = \"g\"\nkind = \"synthetic\"\nchannel = {}\n\
                 period_ms = {period}\ndeadline_ms = {}\ncommit = \"async\"\nsize = {size}\n{budget}\n{accepted}\n\
                 distribution = \"{distribution}\"\n",
                at + 1,
                f64::max(period * share, 0.1)
            );
        }
        text
    })
}

/// Every number below `value`.
fn numbers(value: &serde_json::Value, seen: &mut Vec<f64>) {
    match value {
        serde_json::Value::Number(number) => seen.push(number.as_f64().unwrap()),
        serde_json::Value::Array(all) => all.iter().for_each(|one| numbers(one, seen)),
        serde_json::Value::Object(all) => all.values().for_each(|one| numbers(one, seen)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn values_from_the_edges_never_make_a_plan_that_contradicts_itself(text in edges()) {
        // What the configuration itself refuses is not planned.
        let Ok(config) = Config::parse(&text, "t") else { return Ok(()) };
        let plan = plan(&config, None);
        prop_assert_eq!(plan.verdict, pair::verdict(&config, Machine::default()));
        let report = Report::new("p", plan, |_, _| ());
        let json = report.json();
        let mut all = Vec::new();
        numbers(&json, &mut all);
        prop_assert!(all.iter().all(|number| number.is_finite() && *number >= 0.0));
        prop_assert!(!report.text().contains("NaN") && !report.text().contains("inf"));
        prop_assert_eq!(report.plan.verdict == Verdict::No, !words::reasons(&report.plan).is_empty());
        let planned = report.plan.senders[0].plan.as_ref().unwrap();
        for situation in planned.situations.iter().filter(|_| planned.admitted) {
            for (state, channel) in situation.channels.iter().zip(&report.plan.senders[0].scenario.channels) {
                let response = state.response_ns.unwrap();
                prop_assert!(response <= channel.deadline.as_nanos());
                // What a state takes alone on the fastest network bounds it from below.
                let least = u128::from(channel.size) * 8_000_000_000 / 2_000_000_000_000;
                prop_assert!(u128::from(response) >= least);
            }
            for resource in &situation.resources {
                prop_assert!(resource.utilisation <= 1.0 && resource.growth >= 1.0);
                for loss in situation.channels.iter().map(|state| state.state_loss.unwrap()) {
                    prop_assert!((0.0..=1.0).contains(&loss));
                }
            }
        }
    }
}
