use super::*;

#[test]
fn the_directory_goes_unless_it_is_to_be_kept() {
    let temporary = Directory::new(None).unwrap();
    let path = temporary.path.clone();
    fs::write(path.join("log"), "x").unwrap();
    drop(temporary);
    assert!(!path.exists());

    let parent = tempfile::tempdir().unwrap();
    let kept = parent.path().join("kept");
    let directory = Directory::new(Some(&kept)).unwrap();
    fs::write(directory.path.join("log"), "x").unwrap();
    drop(directory);
    assert!(kept.join("log").exists());
    let full = Directory::new(Some(&kept)).err().unwrap();
    assert!(
        full.to_string().contains("choose an empty directory"),
        "{full}"
    );
}

#[test]
fn faults_are_called_on_the_command_line_as_in_the_report() {
    for kind in FaultKind::ALL {
        assert_eq!(kind.name().parse(), Ok(kind));
    }
    assert!(
        "fire"
            .parse::<FaultKind>()
            .unwrap_err()
            .contains("kill, switchover, cut-a, cut-both")
    );
}

#[test]
fn the_configuration_of_the_demonstration_is_accepted() {
    let addresses = addresses::Addresses::find().unwrap();
    let tank = configuration::controller(&script::SET_POINT_STEPS);
    let text = configuration::text(
        Path::new("/tmp/demo"),
        &addresses,
        &configuration::tank_text(addresses.plant, &tank, configuration::FIELD_SECURITY),
    );
    let config = bumpless_config::Config::parse(&text, "pair.toml")
        .unwrap_or_else(|problems| panic!("{text}\n{problems:#?}"));
    assert_eq!(config.nodes.len(), 2);
    assert_eq!(config.weaknesses, []);
    assert_eq!(config.pair, configuration::PAIR);
    let security = &config.security;
    assert!(
        matches!(security, bumpless_config::Security::Certificates(_)),
        "{security:?}"
    );
    let mut before = config;
    for (number, [removed, tuned, added]) in [(0, [0, 1, 1]), (1, [1, 0, 1])] {
        let text = configuration::changed(&text, number);
        let config = bumpless_config::Config::parse(&text, "change.toml")
            .unwrap_or_else(|problems| panic!("{text}\n{problems:#?}"));
        let change = bumpless_config::Change::between(&before, &config, "change.toml").unwrap();
        assert_eq!(
            [change.removed.len(), change.tuned.len(), change.added.len()],
            [removed, tuned, added]
        );
        before = config;
    }
}
