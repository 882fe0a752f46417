use super::*;
use crate::{Shape, generate};

fn network() -> Topology {
    generate(&Shape {
        backbone_pairs: 3,
        ..Shape::default()
    })
    .unwrap()
}

fn read(outages: &str) -> Result<Script, Vec<String>> {
    let text = format!(r#"{{"schema": "bumpless.wan-script/1", "outages": [{outages}]}}"#);
    Script::from_json(&text, &network())
}

fn seconds(step: &Step) -> (f64, usize, usize) {
    (step.at.as_secs_f64(), step.cut.len(), step.heal.len())
}

#[test]
fn a_link_is_whole_when_the_last_of_its_outages_has_ended() {
    let network = network();
    let link = network.links_at(network.find("b01a").unwrap())[0];
    let [one, other] = network.links()[link].ends;
    let name = format!("{}:{}", network.node(one).name, network.node(other).name);
    let script = read(&format!(
        r#"{{"at_s": 1, "for_s": 2, "what": ["{name}"]}}, {{"at_s": 2.5, "for_s": 1.5, "what": ["{name}", "{name}"]}},
           {{"at_s": 4, "for_s": 1, "what": ["{name}"]}}, {{"at_s": 9, "for_s": 0.25, "what": ["{name}"]}}"#
    ))
    .unwrap();
    let told: Vec<_> = script.steps().iter().map(seconds).collect();
    // The second begins before the first ends, and the third when the second does.
    assert_eq!(told, [(1.0, 1, 0), (5.0, 0, 1), (9.0, 1, 0), (9.25, 0, 1)]);
}

#[test]
fn a_node_stands_for_all_of_its_links_and_what_is_left_out_stays_as_it_is() {
    let network = network();
    let all = network.links_at(network.find("b01a").unwrap()).to_vec();
    let mut script = read(r#"{"at_s": 0, "for_s": 1, "what": ["b01a"]}"#).unwrap();
    let mut cut = script.steps()[0].cut.clone();
    cut.sort_unstable();
    let mut expected = all.clone();
    expected.sort_unstable();
    assert_eq!(cut, expected);
    script.without(&all[1..]);
    assert_eq!(
        (&*script.steps()[0].cut, &*script.steps()[1].heal),
        (&all[..1], &all[..1])
    );
    script.without(&all);
    assert_eq!(script.steps(), []);
}

fn impaired(loss_millionths: u32, rate_mbit: Option<u32>) -> Option<Impairment> {
    Some(Impairment {
        loss_millionths,
        rate_mbit,
    })
}

#[test]
fn impairments_at_once_are_the_worst_of_each_and_end_as_it_was_before() {
    let network = network();
    let link = network.links_at(network.find("s02-1-1").unwrap())[0];
    let text = r#"{"schema": "bumpless.wan-script/1", "impairments": [
        {"at_s": 1, "for_s": 3, "what": ["s02-1-1"], "loss_percent": 1, "rate_mbit": 20},
        {"at_s": 2, "for_s": 1, "what": ["s02-1-1"], "rate_mbit": 10},
        {"at_s": 2, "for_s": 1, "what": ["s02-1-1"], "loss_percent": 0.5, "rate_mbit": 30},
        {"at_s": 4, "for_s": 1, "what": ["s02-1-1"], "loss_percent": 2}],
        "outages": [{"at_s": 1.5, "for_s": 9, "what": ["s02-1-1"]}]}"#;
    let mut script = Script::from_json(text, &network).unwrap();
    let told = |script: &Script| -> Vec<_> {
        let changed = script.steps().iter().filter(|step| !step.impair.is_empty());
        changed
            .map(|step| (step.at.as_secs(), step.impair.clone()))
            .collect()
    };
    let expected = [
        (1, vec![(link, impaired(10_000, Some(20)))]),
        (2, vec![(link, impaired(10_000, Some(10)))]),
        (3, vec![(link, impaired(10_000, Some(20)))]),
        (4, vec![(link, impaired(20_000, None))]),
        (5, vec![(link, None)]),
    ];
    assert_eq!(told(&script), expected);
    assert_eq!(script.steps().len(), 7);
    // A link that stays cut is impaired all the same.
    script.without(&[link]);
    assert_eq!(told(&script), expected);
    assert_eq!(script.steps().len(), 5);
}

#[test]
fn everything_that_is_wrong_in_a_script_is_told_at_once() {
    let wrong = read(
        r#"{"at_s": -1, "for_s": 2, "what": ["b01a"]}, {"at_s": 1, "for_s": 0, "what": []},
           {"at_s": 604800, "for_s": 1, "what": ["nobody", "b01a:s02-1-1"]}"#,
    )
    .unwrap_err();
    assert_eq!(wrong.len(), 6, "{wrong:?}");
    for (place, words) in [
        (0, "outage 1: at_s is -1"),
        (1, "outage 2: for_s is 0"),
        (2, "outage 2: it names no link"),
        (3, "outage 3: for_s is 1"),
        (4, "outage 3: no node is called \"nobody\""),
        (5, "outage 3: no link is between b01a and s02-1-1"),
    ] {
        assert!(wrong[place].contains(words), "{wrong:?}");
    }
    let text = r#"{"schema": "bumpless.wan-script/1", "outages": [{"at_s": 1, "for_s": 0, "what": ["b01a"]}], "impairments": [
        {"at_s": 1, "for_s": 1, "what": ["b01a"], "loss_percent": 101, "rate_mbit": 0},
        {"at_s": 1, "for_s": 1, "what": ["nobody"], "loss_percent": 0}]}"#;
    let wrong = Script::from_json(text, &network()).unwrap_err();
    assert_eq!(wrong.len(), 4, "{wrong:?}");
    for (place, words) in [
        (0, "outage 1: for_s is 0"),
        (1, "impairment 1: loss_percent is 0, or from"),
        (1, "rate_mbit is from 1"),
        (2, "impairment 2: it has neither loss_percent nor rate_mbit"),
        (3, "impairment 2: no node is called"),
    ] {
        assert!(wrong[place].contains(words), "{wrong:?}");
    }
    for text in [
        "",
        "[]",
        r#"{"schema": "bumpless.wan-script/2", "outages": []}"#,
        r#"{"schema": "bumpless.wan-script/1", "outages": []}"#,
        r#"{"schema": "bumpless.wan-script/1", "outages": [{"at_s": 1, "for_s": 1, "what": ["b01a"], "who": 1}]}"#,
        r#"{"schema": "bumpless.wan-script/1", "outages": [{"at_s": 1e999, "for_s": 1, "what": ["b01a"]}]}"#,
    ] {
        assert_eq!(
            Script::from_json(text, &network()).unwrap_err().len(),
            1,
            "{text}"
        );
    }
}
