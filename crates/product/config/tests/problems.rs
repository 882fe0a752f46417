//! A wrong file: every error at once, each with line, field, cause and remedy.

mod common;

use bumpless_config::{Config, sample};
use common::{changed, one, problems};

#[test]
fn a_misspelt_field_is_named_with_the_right_one() {
    one(
        "#lease_ms = 10",
        "leese_ms = 10",
        "timing.leese_ms",
        "not a field",
        "mean lease_ms?",
    );
    one(
        "period_ms = 10",
        "periods = 3\nperiod_ms = 10",
        "application[1].periods",
        "",
        "period_ms?",
    );
    one(
        "#check_epoch = true",
        "chek_epoch = true",
        "application[1].field.chek_epoch",
        "not a field",
        "mean check_epoch?",
    );
}

#[test]
fn a_field_that_is_misspelt_in_the_wrong_section_is_sent_home_too() {
    one(
        "#lease_ms = 10",
        "bandwith_mbit = 10",
        "timing.bandwith_mbit",
        "not a field",
        "did you mean bandwidth_mbit of [[network]]?",
    );
}

#[test]
fn a_misspelt_address_is_named_with_the_right_one_wherever_it_stands() {
    for (from, field, right) in [
        (
            "addresses = { A = \"127.0.1.1:4700\"",
            "node[1].adress",
            "addresses",
        ),
        (
            "address = \"127.0.1.9:4710\"",
            "reference[1].adress",
            "address",
        ),
        (
            "address = \"127.0.0.10:5502\"",
            "application[1].field.adress",
            "address",
        ),
    ] {
        let to = from.replacen(right, "adress", 1);
        let found = problems(&sample().replacen(from, &to, 1));
        let named = found.iter().find(|problem| problem.field == field);
        let named = named.unwrap_or_else(|| panic!("{field} is not in {found:#?}"));
        assert_eq!(named.right, format!("did you mean {right}?"));
    }
}

#[test]
fn a_field_in_the_wrong_section_is_sent_home() {
    one(
        "#lease_ms = 10",
        "bandwidth_mbit = 10",
        "timing.bandwidth_mbit",
        "",
        "belongs in [[network]]",
    );
}

#[test]
fn numbers_out_of_range_not_numbers_and_infinities_are_refused() {
    for value in [
        "0",
        "-2",
        "nan",
        "inf",
        "-inf",
        "1e300",
        "9223372036854775807",
        "\"2\"",
        "[2]",
    ] {
        let to = format!("heartbeat_ms = {value}");
        one(
            "#heartbeat_ms = 2",
            &to,
            "timing.heartbeat_ms",
            "is",
            "from 0.5 to 1000",
        );
    }
    one(
        "period_ms = 10",
        "period_ms = -10",
        "application[1].period_ms",
        "is -10",
        "from 1 to 60000",
    );
    one(
        "tank1_cm = 12.4",
        "tank1_cm = nan",
        "application[1].set_points[1].tank1_cm",
        "NaN",
        "0 to 20",
    );
}

#[test]
fn names_that_lead_nowhere_are_named_with_the_nearest() {
    one(
        "group = \"tank\"",
        "group = \"tnak\"",
        "application[1].group",
        "\"tnak\"",
        "mean \"tank\"?",
    );
    one(
        "\"right\"]",
        "\"rihgt\"]",
        "group[1].nodes",
        "\"rihgt\" is not a node",
        "\"right\"",
    );
    one(
        "\"witness-b\"]",
        "\"quorum\"]",
        "group[1].references",
        "not a reference",
        "witness-a, witness-b",
    );
    one(
        "#networks =",
        "networks = [\"A\", \"C\"]",
        "application[1].networks",
        "\"C\"",
        "name one of A, B",
    );
}

#[test]
fn headers_of_the_wrong_kind_are_explained() {
    let found = problems("[network]\nname = \"A\"\n[[timing]]\n");
    let text: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(text[0].starts_with("test.toml:1: "), "{text:#?}");
    assert!(
        text.iter()
            .any(|t| t.contains("test.toml:1: network: is a single table; write [[network]]"))
    );
    assert!(
        text.iter()
            .any(|t| t.contains("test.toml:3: timing: is a list of tables; write [timing]"))
    );
}

#[test]
fn an_empty_file_says_what_is_needed() {
    let found = problems("");
    for field in ["pair.name", "network", "node", "group", "application"] {
        assert!(
            found.iter().any(|problem| problem.field == field),
            "{field}: {found:#?}"
        );
    }
    assert_eq!(found.len(), 5, "{found:#?}");
}

#[test]
fn syntax_errors_are_all_found_and_do_not_hide_the_rest() {
    let text = sample()
        .replace("#heartbeat_ms = 2", "heartbeat_ms = = 2")
        .replace("#lease_ms = 10", "leese_ms = 10")
        .replacen("#mtu = 1500", "mtu = 1500\nmtu = 1501", 1)
        .replace("at_s = 20", "at_s = 'twenty");
    let found = problems(&text);
    let syntax = found
        .iter()
        .filter(|problem| problem.wrong.starts_with("syntax: "))
        .count();
    assert_eq!((found.len(), syntax), (4, 3), "{found:#?}");
    for problem in &found {
        let line = text.lines().nth(problem.line - 1).unwrap();
        let expected = ["heartbeat_ms", "leese_ms", "mtu", "at_s"];
        assert!(
            expected.iter().any(|key| line.starts_with(key)),
            "{problem}: {line}"
        );
    }
}

#[test]
fn an_open_bracket_ends_the_reading_with_one_error() {
    let found = problems("[pair]\nname = \"x\"\nlist = [1,\n[timing]\nlease_ms = 1\n");
    assert_eq!(found.len(), 1, "{found:#?}");
}

#[test]
fn a_dozen_mistakes_are_reported_in_one_go_in_the_order_of_lines() {
    let found = problems(include_str!("data/dozen.toml"));
    let text: Vec<String> = found.iter().map(ToString::to_string).collect();
    let kept = include_str!("data/dozen.txt");
    assert_eq!(text.join("\n") + "\n", kept);
    assert!(found.len() >= 12);
    assert!(found.windows(2).all(|pair| pair[0].line <= pair[1].line));
}

#[test]
fn a_problem_in_json_has_the_documented_fields() {
    let found = problems("[pair]\nname = 3\n");
    let json = serde_json::to_value(&found[0]).unwrap();
    let keys: Vec<&str> = json
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(keys, ["field", "file", "line", "right", "wrong"]);
    let open = sample().replacen("#packets = \"protected\"", "packets = \"open\"", 1);
    let config = Config::parse(&open, "t").unwrap();
    let json = serde_json::to_value(&config.weaknesses[0]).unwrap();
    assert_eq!(json["code"], "unauthenticated");
}

#[test]
fn one_wrong_name_is_one_problem() {
    let right = "1 to 32 letters";
    one(
        "name = \"A\"",
        "name = \"A B\"",
        "network[1].name",
        "\"A B\"",
        right,
    );
    one(
        "name = \"left\"",
        "name = \"\"",
        "node[1].name",
        "\"\"",
        right,
    );
    one(
        "name = \"witness-a\"",
        "name = 1",
        "reference[1].name",
        "is 1",
        right,
    );
}

#[test]
fn a_pair_has_no_name_that_makes_its_nodes_pass_for_others() {
    let sample = sample();
    let line = sample.lines().find(|line| line.starts_with("name = "));
    let line = line.unwrap();
    for name in ["witness", "keys", "field", "Field"] {
        let to = format!("name = \"{name}\"");
        one(line, &to, "pair.name", name, "another name");
    }
    let (near, _) = changed(line, "name = \"fields\"");
    assert_eq!(Config::parse(&near, "t").unwrap().pair, "fields");
}

#[test]
fn a_message_stays_on_one_line_whatever_the_file_holds() {
    let found = problems("\"a\\nb\" = 1\n[pair]\nname = \"p\\nq\"\n\"c\\nd\" = 1\n");
    assert!(found.len() > 3);
    assert!(
        found
            .iter()
            .all(|problem| !problem.to_string().contains('\n')),
        "{found:#?}"
    );
}

#[test]
fn processors_are_given_as_linux_writes_them() {
    for wrong in ["\"1-\"", "\"none\"", "3", "\"1024\"", "\"\""] {
        let given = format!("interrupt_cpus = {wrong}");
        let right = "such as \"0\" or \"0,2-3\"";
        one(
            "#interrupt_cpus =",
            &given,
            "reception.interrupt_cpus",
            "is ",
            right,
        );
    }
    let text = sample().replacen("#interrupt_cpus =", "interrupt_cpus = \"0,2-3\"", 1);
    let text = text.replacen("#rps_cpus =", "rps_cpus = \"none\"", 1);
    let placement = Config::parse(&text, "test").unwrap().reception.placement;
    let told = placement.interrupt_cpus.map(|it| it.to_string());
    assert_eq!(told.as_deref(), Some("0,2-3"));
    assert!(placement.rps_cpus.is_some_and(|it| it.is_empty()));
}
