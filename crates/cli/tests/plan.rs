//! `bumpless plan` as a user calls it.

mod support;

use std::path::{Path, PathBuf};

use bumpless_testing::page::loads;
use serde_json::Value;
use support::process::{bumpless, outcome};
use tempfile::TempDir;

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

struct Planned {
    _directory: TempDir,
    path: PathBuf,
}

impl Planned {
    fn new(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pair.toml");
        std::fs::write(&path, text).unwrap();
        Self {
            _directory: directory,
            path,
        }
    }

    fn ask(&self, more: &[&str]) -> (String, String, Option<i32>) {
        let mut arguments = vec!["plan", self.path.to_str().unwrap()];
        arguments.extend(more);
        outcome(&bumpless(&arguments))
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.ask(&["--json"]).0).unwrap()
    }
}

fn plan(text: &str) -> (String, String, Option<i32>) {
    Planned::new(text).ask(&[])
}

/// Table 20 with a channel of 40 kB that is due after 6 ms, which three losses do not permit.
fn refused() -> String {
    let text = example("table20.toml");
    text.replace(
        "period_ms = 50\ndeadline_ms = 50",
        "period_ms = 50\ndeadline_ms = 6",
    )
}

#[test]
fn every_example_is_a_yes_with_the_papers_load() {
    for name in ["table20.toml", "quadruple-tank.toml", "two-computers.toml"] {
        let (said, errors, status) = plan(&example(name));
        assert_eq!(status, Some(0), "{name}: {said} {errors}");
        let first = said.lines().next().unwrap();
        assert!(first.contains(": yes, every state is in time"), "{first}");
        assert!(said.contains("To spare: "), "{said}");
        assert!(
            said.lines().all(|line| line.chars().count() <= 120),
            "{said}"
        );
    }
    let (said, ..) = plan(&example("table20.toml"));
    assert!(said.contains("74.3 %"), "{said}");
}

/// The tanks of `two-computers.toml` with times for a distance, and the paper's network in a file beside it.
fn apart(lease_ms: u32) -> (Planned, String) {
    let text = example("two-computers.toml")
        .replace("lease_ms = 10", &format!("lease_ms = {lease_ms}"))
        .replace("period_ms = 10", "period_ms = 100");
    let text = text.split("# A load beside it").next().unwrap_or_default();
    let planned = Planned::new(text);
    let grid = planned.path.with_file_name("grid.json");
    let (json, ..) = outcome(&bumpless(&["wan", "topology", "--json"]));
    std::fs::write(&grid, json).unwrap();
    (planned, grid.display().to_string())
}

#[test]
fn sites_of_a_wide_area_network_are_apart_as_its_ways_are() {
    let (planned, grid) = apart(30);
    let sites = "north=centre-2,south=s10-1-1,witness-a=s05,witness-b=s15,field=s03";
    let far = ["--wan", &grid, "--sites", sites];
    let (said, errors, status) = planned.ask(&far);
    assert_eq!(status, Some(0), "{said} {errors}");
    // 5.5 ms over the paper's way, and the 0.25 that neighbours take.
    assert!(
        said.contains("there and back: 5.75 ms over A and B"),
        "{said}"
    );
    let json: Value =
        serde_json::from_str(&planned.ask(&[&far[..], &["--json"]].concat()).0).unwrap();
    let distance = &json["distances"][0];
    assert_eq!(distance["networks"][0]["round_trip_ns"], 5_750_000);
    // Five pairs of the ring at 250 us, a loop's link and a chain's at 150 and 100: 1.5 ms each way from s10-1-1.
    assert_eq!(
        distance["references"][0]["round_trip_ns"], 3_250_000,
        "{distance}"
    );
    assert!(distance["refusals"].as_array().unwrap().is_empty());
    let near = planned.json();
    assert_eq!(
        near["distances"][0]["networks"][0]["round_trip_ns"],
        250_000
    );
}

#[test]
fn what_a_distance_does_not_permit_is_refused_with_the_reason() {
    let (planned, grid) = apart(10);
    let sites = "north=centre-2,south=s10-1-1,witness-a=s05,witness-b=s15";
    let (said, _, status) = planned.ask(&["--wan", &grid, "--sites", sites]);
    assert_eq!(status, Some(1), "{said}");
    for word in [
        "no, the distance does not permit what is configured",
        "lease_ms = 10 is less than",
        "(P-81); give at least 12.65",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn sites_that_cannot_be_are_refused_all_at_once() {
    let (planned, grid) = apart(30);
    let sites = "north=centre-1,south=centre-1,witness-a=b05a,nobody=s05,witness-b=s99";
    let (said, errors, status) = planned.ask(&["--wan", &grid, "--sites", sites]);
    assert_eq!(status, Some(2), "{said} {errors}");
    for word in [
        "b05a is a router",
        "has no nobody",
        "\"s99\"",
        "north and south of group",
    ] {
        assert!(errors.contains(word), "{word}: {errors}");
    }
    let (_, errors, status) = planned.ask(&["--wan", &grid, "--sites", "north=centre-1,north=s05"]);
    assert_eq!(status, Some(2), "{errors}");
    for word in [
        "north is given twice",
        "where south is, is missing",
        "where witness-a is",
    ] {
        assert!(errors.contains(word), "{word}: {errors}");
    }
    for (arguments, word) in [
        (
            &["--wan", "/nowhere.json", "--sites", "north=s05"][..],
            "/nowhere.json",
        ),
        (&["--wan", &grid][..], "--sites"),
        (&["--sites", "north=s05"][..], "--wan"),
        (&["--wan", &grid, "--sites", "left"][..], "NAME=SITE"),
    ] {
        let (_, errors, status) = planned.ask(arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(word), "{arguments:?}: {errors}");
    }
}

#[test]
fn a_no_says_where_and_by_how_much_and_what_it_proposes_is_a_yes() {
    let text = refused();
    let (said, _, status) = plan(&text);
    assert_eq!(status, Some(1), "{said}");
    let mut lines = said.lines();
    assert!(lines.next().unwrap().contains(": no, "), "{said}");
    let reason = lines
        .find(|line| line.contains("too much in the 6.00 ms after"))
        .unwrap();
    for part in [
        "network A",
        "application-3 ",
        "until losses are known",
        "its answer",
    ] {
        assert!(reason.contains(part), "{reason}");
    }
    let advice = said
        .lines()
        .find(|line| line.contains("application-3: deadline_ms = "))
        .unwrap_or_else(|| panic!("{said}"));
    let words: Vec<&str> = advice.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "=").unwrap();
    let proposed: f64 = words[at + 1].parse().unwrap();
    let with = |deadline: f64| {
        let to = format!("period_ms = 50\ndeadline_ms = {deadline}");
        plan(&text.replace("period_ms = 50\ndeadline_ms = 6", &to)).2
    };
    assert_eq!(with(proposed), Some(0), "{advice}");
    assert_eq!(with(proposed - 0.02), Some(1), "{advice}");
}

/// A margin is something that can be written into the configuration: here memory ends before the networks do.
#[test]
fn a_margin_ends_where_the_configuration_ends() {
    let slow = example("quadruple-tank.toml").replace("period_ms = 10\n", "period_ms = 1000\n");
    let limited = slow.replacen("[transfer]\n", "[transfer]\nmemory_max = \"1 MiB\"\n", 1);
    assert_ne!(slow, limited);
    let room = |text: &str| {
        let json = Planned::new(text).json();
        let channel = &json["senders"][0]["headroom"]["channels"][0];
        (
            channel["size"].as_u64().unwrap(),
            channel["period_ns"].as_u64().unwrap(),
        )
    };
    // Two buffers to send, two to receive, and two in the application.
    assert_eq!(room(&limited).0, (1 << 20) / 6);
    assert!(room(&slow).0 > 1_000_000 && room(&slow).1 >= 1_000_000);
}

/// What is told is the first time at which there is too much, here that of the shortest deadline; there is a later
/// one, which others make up.
#[test]
fn channels_that_are_too_much_only_later_are_among_what_could_be_changed() {
    let slow = example("table20.toml").replace("bandwidth_mbit = 1000", "bandwidth_mbit = 830");
    let (said, ..) = plan(&slow);
    assert!(said.contains("too much in the 10.0 ms after"), "{said}");
    let change = "application-7: size = ";
    let advice = said
        .lines()
        .find_map(|line| line.trim().strip_prefix(change));
    let advice = advice.unwrap_or_else(|| panic!("{said}"));
    let bytes: u32 = advice.split(' ').next().unwrap().parse().unwrap();
    let state = format!(
        "channel = 7\n{}",
        slow.split("channel = 7\n").nth(1).unwrap()
    );
    let smaller = state.replacen("\"8.0 MB\"", &bytes.to_string(), 1);
    assert_eq!(plan(&slow.replace(&state, &smaller)).2, Some(0), "{advice}");
}

#[test]
fn too_slow_networks_are_a_no_with_advice_and_refused_elsewhere() {
    let slow = |rate: u32| {
        let rate = format!("bandwidth_mbit = {rate}");
        example("table20.toml").replace("bandwidth_mbit = 1000", &rate)
    };
    let (said, errors, status) = plan(&slow(700));
    assert_eq!(status, Some(1), "{said} {errors}");
    let share = said.lines().find(|line| line.contains("106.2 %"));
    assert!(share.is_some(), "{said}");
    let advice = said
        .lines()
        .find(|line| line.contains("all networks: ") && line.contains("bandwidth_mbit"))
        .unwrap_or_else(|| panic!("{said}"));
    let percent: u32 = advice
        .split_whitespace()
        .find_map(|word| word.parse().ok())
        .unwrap();
    assert_eq!(plan(&slow(7 * percent)).2, Some(0), "{advice}");
    assert_eq!(plan(&slow(7 * (percent - 1))).2, Some(1), "{advice}");

    let planned = Planned::new(&slow(700));
    let (_, errors, status) = outcome(&bumpless(&["check", planned.path.to_str().unwrap()]));
    assert_eq!(status, Some(2));
    assert!(errors.contains("116 % of this network's"), "{errors}");
}

#[test]
fn spread_channels_are_judged_where_their_networks_are_one() {
    let text = example("table20.toml").replace(
        "\ncommit = \"async\"",
        "\ncommit = \"async\"\ndistribution = \"spread\"",
    );
    let (said, _, status) = plan(&text);
    assert_eq!(status, Some(0), "{said}");
    let rows: Vec<Vec<&str>> = said
        .lines()
        .skip_while(|line| !line.starts_with("  network "))
        .skip(1)
        .take(3)
        .map(|line| line.split_whitespace().take(2).collect())
        .collect();
    assert_eq!(rows, [["A+B", "-"], ["B", "A"], ["A", "B"]], "{said}");
    assert!(said.contains("37.2 %") && said.contains("74.3 %"), "{said}");
    assert!(!said.contains("be 0 shorter"), "{said}");
}

#[test]
fn where_a_network_states_no_bandwidth_it_cannot_be_said() {
    let text = example("table20.toml").replacen("bandwidth_mbit = 1000", "bandwidth_mbit = 0", 1);
    let (said, _, status) = plan(&text);
    assert_eq!(status, Some(1));
    assert!(
        said.lines().next().unwrap().contains("cannot say"),
        "{said}"
    );
    assert!(
        said.contains("network \"A\" states no bandwidth; set its bandwidth_mbit"),
        "{said}"
    );
    assert_eq!(Planned::new(&text).json()["verdict"], "cannot_say");
}

#[test]
fn more_losses_than_accepted_are_a_no_with_the_budget_that_is_enough() {
    let text = example("table20.toml").replacen(
        "retransmissions = 2\n",
        "retransmissions = 0\naccepted_loss_per_year = 1e-6\n",
        1,
    );
    let (said, _, status) = plan(&text);
    assert_eq!(status, Some(1));
    assert!(
        said.contains("states are lost in a year, 1e-6 are accepted; it needs retransmissions = 2"),
        "{said}"
    );
    assert!(
        said.contains("application-1: retransmissions = 2 instead of 0"),
        "{said}"
    );
}

#[test]
fn an_impossible_value_is_refused_with_its_field_and_the_reason() {
    for (from, to, field, reason) in [
        (
            "period_ms = 50",
            "period_ms = 0",
            "application[3].period_ms",
            "from 1 to",
        ),
        (
            "deadline_ms = 50",
            "deadline_ms = 51",
            "application[3].deadline_ms",
            "longer than the period",
        ),
        (
            "name = \"A\"",
            "name = \"A\"\nbit_error_rate = -1e-9",
            "network[1].bit_error_rate",
            "from 0",
        ),
        (
            "name = \"A\"",
            "name = \"A\"\nbit_error_rate = 1.5",
            "network[1].bit_error_rate",
            "to 0.5",
        ),
        (
            "name = \"A\"",
            "name = \"A\"\nframe_loss = nan",
            "network[1].frame_loss",
            "from 0",
        ),
        (
            "name = \"A\"",
            "name = \"A\"\nround_trip_max_ms = 0",
            "network[1].round_trip_max_ms",
            "0.001",
        ),
        (
            "retransmissions = 3",
            "retransmissions = 300",
            "application[3].retransmissions",
            "to 100",
        ),
        (
            "retransmissions = 3",
            "accepted_loss_per_year = 0",
            "application[3].accepted_loss_per_year",
            "above 0",
        ),
        (
            "\"8.0 MB\"",
            "\"200 MB\"",
            "transfer.memory_max",
            "bytes of buffers",
        ),
    ] {
        let text = example("table20.toml").replacen(from, to, 1);
        let (said, errors, status) = plan(&text);
        assert_eq!(status, Some(2), "{to}: {said}");
        let line = errors.lines().find(|line| line.contains(field));
        assert!(
            line.is_some_and(|line| line.contains(reason)),
            "{to}: {errors}"
        );
    }
    // Beyond what the wire version can number.
    let text = example("table20.toml")
        .replacen("\"8.0 MB\"", "\"96 MB\"", 1)
        .replace(
            "[realtime]",
            "[transfer]\nwire_version = 1\nmemory_max = \"4 GiB\"\n[realtime]",
        );
    let (_, errors, status) = plan(&text);
    assert_eq!(status, Some(2));
    assert!(errors.contains("version 1 numbers 65536"), "{errors}");
}

/// V-90 to V-93: the example's nodes, recomputed from what is printed.
#[test]
fn it_says_what_reception_costs_each_node_and_how_much_of_a_flood_it_bears() {
    let told = |more: &str, command: &str| {
        let planned = Planned::new(&(example("two-computers.toml") + more));
        let asked = [command, planned.path.to_str().unwrap(), "--json"];
        let value: Value = serde_json::from_str(&outcome(&bumpless(&asked)).0).unwrap();
        let (words, ..) = outcome(&bumpless(&asked[..2]));
        (value["reception"].clone(), words)
    };
    let (usual, words) = told("", "plan");
    assert_eq!(usual.as_array().unwrap().len(), 2);
    let north = &usual[0];
    assert_eq!(
        (&north["node"], &north["guarded"]),
        (&"north".into(), &true.into())
    );
    let number = |node: &Value, field: &str| node[field].as_u64().unwrap();
    // A ring of 256 is full when so many have come in a burst's time; flows of the known take their part of the processor.
    let until_ring = |node: &Value, packet_ns: u64| {
        let burst = number(node, "burst");
        let free = 1_000_000_000 - number(node, "known_flows_per_s") * packet_ns;
        (burst + number(node, "ring")) * free / (burst * packet_ns)
    };
    assert_eq!(
        (&north["ring"], &north["ring_ends_it"]),
        (&256.into(), &true.into())
    );
    assert_eq!(number(north, "flood_per_s"), until_ring(north, 2000));
    // Of other ports, ICMP and the unknown in 10 ms, addresses and fragments in 100 ms, of ssh, of strangers at both ports; twice, on two
    // networks.
    assert_eq!(
        number(north, "burst"),
        2 * 2 * (100 + 2 * 5 + 2 * 50 + 50 + 2 * 10)
    );
    let flows = number(north, "flows_per_s");
    assert_eq!(
        number(north, "flood_unguarded_per_s"),
        (500_000_000 - flows * 2000) / 2000
    );
    // 10,000 of other ports and 2,000 of what else there is, on each of two networks.
    assert_eq!(number(north, "budgets_per_s"), flows + 24_000);
    for part in [
        format!(
            "Reception of north:\n  all budgets let in {} packets",
            number(north, "budgets_per_s")
        ),
        format!(
            "{} packets of a flood a second are borne",
            number(north, "flood_per_s")
        ),
        format!(
            "more would fill a ring of 256 while {} packets are worked off",
            number(north, "burst")
        ),
        "let in takes 2000 ns (an estimate)".to_owned(),
    ] {
        assert!(words.contains(&part), "{part} in {words}");
    }
    let changed = "[reception]\nguard = \"off\"\npacket_ns = 3000\ndropped_ns = 300\nprocessor_percent = 80\nring = 8192\n";
    let (changed, words) = told(changed, "check");
    let north = &changed[0];
    assert_eq!(north["guarded"], false);
    // Of 80 % of a processor, what all budgets take is missing; each packet of a flood is 300 ns.
    assert!(until_ring(north, 3000) > number(north, "flood_per_s"));
    assert_eq!(north["ring_ends_it"], false);
    let left = 800_000_000 - number(north, "budgets_per_s") * 3000;
    assert_eq!(number(north, "flood_per_s"), left / 300);
    assert!(
        words.contains("one dropped 300 ns (as the file says)")
            && words.contains("switches the guard off"),
        "{words}"
    );
}

#[test]
fn json_has_the_answer_and_all_figures() {
    let json = Planned::new(&example("table20.toml")).json();
    assert_eq!(json["schema"], "bumpless.plan/1");
    assert_eq!(
        (&json["pair"], &json["verdict"]),
        (&"table20".into(), &"yes".into())
    );
    assert_eq!(json["reasons"], Value::Array(Vec::new()));
    let sender = &json["senders"][0];
    assert_eq!(sender["nodes"], serde_json::json!(["left", "right"]));
    assert_eq!(sender["memory"]["limit_bytes"], 1u64 << 30);
    let channel = &sender["channels"][2];
    assert_eq!(
        (&channel["name"], &channel["packets"]),
        (&"application-3".into(), &29.into())
    );
    // 40,064 bytes and 29 packets of 30 + 66 bytes of headers and 39 of protection at 1 Gbit/s.
    assert_eq!(channel["on"][0]["wire_bytes"], 40_064 + 29 * 135);
    assert_eq!(channel["on"][0]["wire_ns"], (40_064 + 29 * 135) * 8);
    let situations = sender["situations"].as_array().unwrap();
    let without: Vec<&Value> = situations.iter().map(|one| &one["without"]).collect();
    assert_eq!(without, [&Value::Null, &"A".into(), &"B".into()]);
    let share = situations[0]["resources"][0]["payload_utilisation"].as_f64();
    assert!(share.is_some_and(|share| (share - 0.743).abs() < 0.0006));
    for situation in situations {
        for channel in situation["channels"].as_array().unwrap() {
            assert!(channel["response_ns"].as_u64() > Some(0), "{channel}");
            assert!(channel["loss_per_year"].as_f64() < Some(1e-6), "{channel}");
        }
    }
    assert!(sender["headroom"]["growth"].as_f64() > Some(1.0));
    let refused = Planned::new(&refused()).json();
    assert_eq!(refused["verdict"], "no");
    let refusal = &refused["senders"][0]["situations"][0]["resources"][0]["refusal"];
    assert_eq!(
        (&refusal["condition"], &refusal["window_ns"]),
        (&"demand".into(), &6_000_000.into())
    );
    assert_eq!(refusal["loads"][0]["channel"], "application-3");
    let advice = &refused["senders"][0]["advice"][0];
    assert_eq!(advice["change"]["channel"], "application-3", "{advice}");
}

#[test]
fn the_page_needs_nothing_else_and_the_pictures_stand_alone() {
    let planned = Planned::new(&example("table20.toml"));
    let (page, pictures) = (
        planned.path.with_extension("html"),
        planned.path.with_extension("d"),
    );
    let more = [
        "--html",
        page.to_str().unwrap(),
        "--svg",
        pictures.to_str().unwrap(),
    ];
    assert_eq!(planned.ask(&more).2, Some(0));
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
    assert_eq!(
        html.matches("<svg").count(),
        2,
        "the losses, and one time line for two alike"
    );
    assert_eq!(loads(&html), [""; 0]);
    let names: Vec<String> = std::fs::read_dir(&pictures)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    for name in names {
        let svg = std::fs::read_to_string(pictures.join(name)).unwrap();
        assert!(svg.starts_with("<svg xmlns=") && svg.contains("<style>"));
    }
    let nowhere = planned.path.join("below-a-file.html");
    let (_, errors, status) = planned.ask(&["--html", nowhere.to_str().unwrap()]);
    assert_eq!(status, Some(1));
    assert!(
        errors.contains("cannot write") && errors.contains("name a file"),
        "{errors}"
    );
}
