//! As whom nodes log in at OPC UA servers: what the file may say, what is wrong, and what is weak.

use std::os::unix::fs::PermissionsExt;

use bumpless_config::{Config, FieldDevices, OpcUaLogin, Problem, WeaknessCode, sample};

const PROGRAM: &str = r#"
[[application]]
name = "boiler"
group = "tank"
kind = "wasm"
channel = 2
period_ms = 20
file = "boiler.wasm"
state_max = "64 KiB"

[application.field]
on_failure = "hold"

[[application.field.device]]
name = "furnace"
kind = "opcua"
address = "192.0.2.20"
driver = "./driver"
files = "opcua"
user = 'PLANT\operator'
password_file = "furnace.password"

[[application.input]]
name = "level"
device = "furnace"
point = "nsu=urn:example:furnace;s=Level"
"#;
const FILES: &str = "files = \"opcua\"";
const USER: &str = "user = 'PLANT\\operator'\n";
const PASSWORD_FILE: &str = "password_file = \"furnace.password\"";

fn parse(program: &str) -> Result<Config, Vec<Problem>> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("boiler.wasm"), b"\0asm\x01\0\0\0").unwrap();
    let driver = folder.path().join("driver");
    std::fs::write(&driver, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&driver, PermissionsExt::from_mode(0o755)).unwrap();
    let name = folder.path().join("pair.toml").display().to_string();
    Config::parse(&(sample() + program), &name)
}

fn changed(changes: &[(&str, &str)]) -> Result<Config, Vec<Problem>> {
    let program = changes.iter().fold(PROGRAM.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    });
    parse(&program)
}

/// With policy None, and the password exposed in so many words.
fn exposed() -> Config {
    let exposed = "policy = \"None\"\npassword_exposed = true";
    changed(&[(FILES, exposed)]).unwrap()
}

fn login(config: &Config) -> Option<&OpcUaLogin> {
    let field = config.applications[1].field.as_ref().unwrap();
    let FieldDevices::Program(devices) = &field.devices else {
        panic!("{field:?}");
    };
    devices[0].login()
}

#[test]
fn a_server_is_told_a_user_whose_password_is_in_a_file_or_nobody() {
    let config = parse(PROGRAM).unwrap();
    let expected = OpcUaLogin {
        user: "PLANT\\operator".into(),
        password_file: "furnace.password".into(),
        exposed: false,
    };
    assert_eq!(login(&config), Some(&expected));
    let nobody = changed(&[(USER, ""), (PASSWORD_FILE, "")]).unwrap();
    assert_eq!(login(&nobody), None);
}

#[test]
fn the_user_is_the_same_on_all_nodes_and_where_the_password_lies_is_not() {
    let whole = parse(PROGRAM).unwrap().fingerprint();
    let other = |from, to| changed(&[(from, to)]).unwrap().fingerprint();
    assert_ne!(other("operator", "nodes"), whole);
    assert_eq!(other("furnace.password", "/etc/furnace"), whole);
    let nobody = changed(&[(USER, ""), (PASSWORD_FILE, "")]).unwrap();
    assert!(!nobody.canonical().contains("login"));
}

#[test]
fn an_exposed_password_is_a_weakness_of_its_own() {
    let of = |config: &Config| {
        let weak = config.weaknesses.iter();
        weak.filter(|it| it.code == WeaknessCode::PasswordExposed)
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert!(of(&parse(PROGRAM).unwrap()).is_empty());
    let weak = of(&exposed());
    assert_eq!(weak.len(), 1, "{weak:?}");
    for part in ["\"boiler\"", "\"furnace\"", "operator", "password_exposed"] {
        assert!(weak[0].contains(part), "{part}: {weak:?}");
    }
}

#[test]
fn each_mistake_names_its_place_and_remedy() {
    for (changes, field, wrong, right) in [
        (
            &[(USER, "")][..],
            "user",
            "is missing beside password_file",
            "name of the user",
        ),
        (
            &[(PASSWORD_FILE, "")],
            "password_file",
            "is missing beside user",
            "remove user",
        ),
        (
            &[(FILES, "policy = \"None\"")],
            "password_file",
            "policy is \"None\"",
            "password_exposed = true",
        ),
        (
            &[(FILES, "files = \"opcua\"\npassword_exposed = true")],
            "password_exposed",
            "Basic256Sha256 protects it",
            "remove",
        ),
        (
            &[
                (FILES, "policy = \"None\"\npassword_exposed = true"),
                (USER, ""),
                (PASSWORD_FILE, ""),
            ],
            "password_exposed",
            "means nothing",
            "remove",
        ),
        (&[(USER, "user = \"\"\n")], "user", "", "user"),
        (
            &[(USER, "user = \"a\\nb\"\n")],
            "user",
            "control",
            "as the server knows it",
        ),
        (
            &[(PASSWORD_FILE, "password_file = \"\"")],
            "password_file",
            "",
            "path",
        ),
    ] {
        let problems = changed(changes).unwrap_err();
        assert_eq!(problems.len(), 1, "{changes:?}: {problems:#?}");
        let problem = &problems[0];
        let place = format!("application[2].field.device[1].{field}");
        assert_eq!(problem.field, place, "{problem}");
        assert!(problem.wrong.contains(wrong), "{problem}");
        assert!(problem.right.contains(right), "{problem}");
    }
    let modbus = changed(&[
        ("kind = \"opcua\"\n", ""),
        ("driver = \"./driver\"\n", ""),
        (FILES, ""),
        ("nsu=urn:example:furnace;s=Level\"", "\"\nregister = 3"),
    ]);
    let problems = modbus.unwrap_err();
    let belongs = problems.iter().filter(|it| it.wrong.contains("opcua"));
    let fields: Vec<_> = belongs.map(|it| it.field.rsplit('.').next()).collect();
    assert_eq!(
        fields,
        [Some("user"), Some("password_file")],
        "{problems:#?}"
    );
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let problems = changed(&[(FILES, "path = \"UA\""), (PASSWORD_FILE, ""), ("Level", "")]);
    let problems = problems.unwrap_err();
    let mut fields: Vec<_> = problems.iter().map(|it| it.field.as_str()).collect();
    fields.sort_unstable();
    let device = "application[2].field.device[1]";
    let of_device = ["files", "password_file", "path"].map(|key| format!("{device}.{key}"));
    assert_eq!(fields[..3], of_device);
    assert_eq!(fields[3..], ["application[2].input[1].point"]);
}

#[test]
fn a_password_in_the_configuration_is_refused_and_not_shown() {
    for line in [
        "password = \"hunter2\"",
        "password = 'hunter2",
        "password = hunter2",
        "password = [\"hunter2\"]",
    ] {
        let problems = changed(&[(PASSWORD_FILE, line)]).unwrap_err();
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        let told = told.join("\n");
        assert!(!told.contains("hunter2"), "{told}");
        if line.ends_with("2\"") {
            assert!(told.contains("password_file"), "{told}");
        }
    }
}
