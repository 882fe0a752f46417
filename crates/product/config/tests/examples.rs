//! The files in `examples/` are valid and say what they claim to.

use bumpless_base::{Duration, LinkId, NodeId};
use bumpless_config::{ApplicationKind, Commit, Config, IpVersion, ReferenceKind, WeaknessCode};

fn load(name: &str) -> Config {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../examples")
        .join(name);
    Config::load(&path).unwrap_or_else(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        panic!("{}", lines.join("\n"))
    })
}

#[test]
fn every_example_is_valid() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".toml") {
            load(&name);
            count += 1;
        }
    }
    assert!(count >= 3);
}

#[test]
fn table_20_is_the_papers() {
    let config = load("table20.toml");
    let sizes = [800, 800, 40_000, 400_000, 800_000, 1_600_000];
    let sizes = sizes.into_iter().chain([8_000_000; 5]);
    let periods = [10, 20, 50, 100, 100, 200, 500, 500, 500, 500, 1000];
    let budgets = [2, 2, 3, 3, 4, 4, 5, 5, 5, 5, 5];
    assert_eq!(config.applications.len(), 11);
    let mut utilisation = 0.0;
    for (i, (size, period)) in sizes.zip(periods).enumerate() {
        let application = &config.applications[i];
        let ApplicationKind::Synthetic(synthetic) = &application.kind else {
            panic!("{i}")
        };
        assert_eq!(synthetic.size, size);
        assert_eq!(usize::from(application.channel.get()), i + 1);
        assert_eq!(application.period, Duration::from_millis(period));
        assert_eq!(application.deadline, application.period);
        assert_eq!(application.commit, Commit::Async);
        assert_eq!(application.retransmissions, Some(budgets[i]));
        assert_eq!(application.networks.len(), 2);
        utilisation += f64::from(size) * 8.0 / application.period.as_secs_f64() / 1e9;
    }
    assert!((utilisation - 0.743).abs() < 0.0005, "{utilisation}");
    assert!(
        config
            .networks
            .iter()
            .all(|network| network.bandwidth == 1_000_000_000)
    );
}

#[test]
fn the_quadruple_tank_runs_on_loopback_with_a_witness_per_network() {
    let config = load("quadruple-tank.toml");
    assert_eq!(config.networks.len(), 2);
    assert_eq!(config.node("right"), Some(NodeId(1)));
    assert_eq!(config.partners(NodeId(0)), [NodeId(1)]);
    for (i, reference) in config.references.iter().enumerate() {
        assert_eq!(usize::from(reference.network.0), i);
        let ReferenceKind::Witness(address) = reference.kind else {
            panic!("{reference:?}")
        };
        assert!(address.ip().is_loopback());
    }
    let addresses = config
        .nodes
        .iter()
        .flat_map(|node| node.addresses.iter().flatten());
    assert!(
        addresses
            .into_iter()
            .all(|address| address.ip().is_loopback())
    );
    let tank = &config.applications[0];
    assert_eq!(
        (tank.period, tank.commit),
        (Duration::from_millis(10), Commit::BeforeOutput)
    );
    assert_eq!(tank.deadline, Duration::from_millis(5));
    assert_eq!(tank.expiry, Duration::from_millis(52));
    let field = tank.field.as_ref().unwrap();
    assert_eq!(field.timeout, Duration::from_micros(2500));
    assert!(field.check_epoch);
    let codes: Vec<WeaknessCode> = config
        .weaknesses
        .iter()
        .map(|weakness| weakness.code)
        .collect();
    assert_eq!(codes, [WeaknessCode::FieldOpen]);
}

#[test]
fn two_computers_mix_ip_versions_and_the_smaller_payload_counts() {
    let config = load("two-computers.toml");
    let versions: Vec<IpVersion> = config.networks.iter().map(|network| network.ip).collect();
    assert_eq!(versions, [IpVersion::V4, IpVersion::V6]);
    assert_eq!(config.transfer.payload_size, 1403);
    assert_eq!(config.networks[0].message_overhead(), 66 + 39);
    assert_eq!(config.networks[1].message_overhead(), 86 + 39);
    assert!(config.applications[0].networks.contains(LinkId(1)));
}
