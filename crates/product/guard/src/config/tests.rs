use super::*;

fn problems(text: &str) -> Vec<String> {
    let problems = Config::parse(text, "g.toml").expect_err("wrong");
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn the_sample_is_a_file_and_lets_in_what_it_says() {
    let config = Config::parse(&sample(), "sample.toml").expect("a file");
    assert_eq!(config.host.interfaces, ["eth0"]);
    assert_eq!(config.rest, Rest::USUAL);
    let names: Vec<_> = config.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["setpoints", "field", "ssh"]);
    assert_eq!(config.flows[1].matches.len(), 2);
    assert_eq!(config.cost().budgets_per_s, 12_000 + 2000 + 3000 + 2000);
    assert!((config.cost().budgets_percent() - 3.8).abs() < 1e-9);
}

#[test]
fn everything_that_is_wrong_is_told_at_once_with_its_line() {
    let told = problems(
        "[guard]\ninterfaces = [\"eth0\", \"eth0\", \"\"]\n\
         [rest]\nicmp_per_s = -1\n\
         [[flow]]\nname = \"a\"\nprotocol = \"udp\"\nport = \"10-20\"\ncapacity = 1\n\
         [[flow]]\nname = \"a\"\nprotocol = \"udp\"\nport = 15\ncapacity = 1\nperiod_ms = 0\n\
         [[flow]]\nname = \"b\"\nprotocol = \"tcp\"\nport = 502\nside = \"there\"\ncapacity = 1\n\
         [[flow]]\nname = \"c\"\nprotocol = \"sctp\"\nport = 0\nfrom = [\"10.0.0.0/8\", \"224.0.0.1\"]\n",
    );
    let expected = [
        ("g.toml:2", "interfaces[2]"),
        ("g.toml:2", "interfaces[3]"),
        ("g.toml:4", "icmp_per_s"),
        ("g.toml:11", "is \"a\", as of the flow on line 5"),
        ("g.toml:13", "has udp 15, as the flow on line 5"),
        ("g.toml:15", "period_ms"),
        ("g.toml:16", "name the servers"),
        ("g.toml:22", "capacity"),
        ("g.toml:24", "protocol"),
        ("g.toml:25", "port"),
        ("g.toml:26", "from[1]"),
        ("g.toml:26", "from[2]"),
    ];
    let text = told.join("\n");
    assert_eq!(told.len(), expected.len(), "{text}");
    for ((line, part), told) in expected.iter().zip(&told) {
        assert!(
            told.contains(line) && told.contains(part),
            "{line} {part}: {told}"
        );
    }
}

#[test]
fn budgets_beyond_the_processor_are_refused_with_what_they_take() {
    let flow = |capacity: u32| {
        format!(
            "[guard]\ninterfaces = [\"a\", \"b\"]\n[[flow]]\nname = \"a\"\nprotocol = \"udp\"\nport = 9\ncapacity = {capacity}\n"
        )
    };
    // Both interfaces: 12,000 of the rest, and the flow's ten times a second, at 2 us.
    assert!(Config::parse(&flow(11_300), "g.toml").is_ok());
    let told = problems(&flow(11_400));
    assert_eq!(told.len(), 1);
    for part in [
        "processor_percent",
        "252000 packets a second",
        "50 % of a processor at 2000 ns",
    ] {
        assert!(told[0].contains(part), "{part}: {told:?}");
    }
}

#[test]
fn senders_tell_flows_of_one_port_apart() {
    let text = "[guard]\ninterfaces = [\"a\"]\n\
         [[flow]]\nname = \"partner\"\nprotocol = \"udp\"\nport = 9\nfrom = [\"10.0.0.1\", \"::ffff:10.0.0.2\"]\ncapacity = 5\n\
         [[flow]]\nname = \"others\"\nprotocol = \"udp\"\nport = 9\ncapacity = 0\n";
    let config = Config::parse(text, "g.toml").expect("a file");
    assert_eq!(config.flows.len(), 2);
    assert!(
        bumpless_guard::Guard::<()>::new(&config.setup(), bumpless_base::Instant::ZERO).is_ok()
    );
    let again = text.replace(
        "port = 9\ncapacity = 0",
        "port = 9\nfrom = [\"10.0.0.2\"]\ncapacity = 0",
    );
    let told = problems(&again);
    assert!(told[0].contains("udp 9 from 10.0.0.2"), "{told:?}");
}

/// V-84: what programs may register is set aside, used or not, and a flood does not have it.
#[test]
fn what_programs_register_within_their_share_takes_nothing_from_the_flood_that_is_borne() {
    let text = "[guard]\ninterfaces = [\"a\"]\nring = 65536\n[registration]\ngroup = \"root\"\nprocessor_percent = 20\n";
    let config = Config::parse(text, "g.toml").expect("a file");
    let planned = config.cost();
    // In a ring as large as that a burst has room.
    assert!(!planned.ring_ends_it, "{planned:?}");
    assert_eq!(config.costs().reserve_percent, 50 - 20);
    // A fifth of a processor in packets of 2 us, one at a time.
    let all = Rate {
        capacity: 100,
        period: bumpless_base::Duration::from_millis(1),
    };
    let with_registered = config.cost_with(&[all]);
    assert_eq!(with_registered.flood_per_s, planned.flood_per_s);
}
