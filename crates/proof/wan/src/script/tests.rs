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
