//! Devices of field drivers in the file: what is right, what is wrong, and that everything wrong is said at once.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bumpless_base::Duration;
use bumpless_config::{
    ApplicationKind, Config, DriverProtocol, FieldDevice, FieldDevices, InputFrom, OpcUaPolicy,
    OutputTo, Problem, Program, ValueType, WeaknessCode, sample,
};

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
max_age_ms = 200

[[application.field.device]]
name = "scale"
kind = "driver"
address = "192.0.2.21:4700"
driver = "./driver"
arguments = ["--slow"]
required = false

[[application.field.device]]
name = "plc"
address = "192.0.2.22"

[[application.input]]
name = "level"
device = "furnace"
point = "ns=2;s=Furnace.Level"
type = "f32"
scale = 0.5
poll = 5

[[application.input]]
name = "level-quality"
device = "furnace"
area = "quality"
point = "ns=2;s=Furnace.Level"

[[application.input]]
name = "level-age"
device = "furnace"
area = "age"
point = "ns=2;s=Furnace.Level"

[[application.input]]
name = "weight"
device = "scale"
point = "gross"

[[application.input]]
name = "scale-there"
device = "scale"
area = "answers"

[[application.output]]
name = "valve"
device = "furnace"
point = "ns=2;i=12"
type = "i16"

[[application.output]]
name = "tare"
device = "scale"
point = "tare"
"#;

/// A folder with the program's file and something that can be executed.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("boiler.wasm"), b"\0asm\x01\0\0\0").unwrap();
    let driver = folder.path().join("driver");
    std::fs::write(&driver, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&driver, PermissionsExt::from_mode(0o755)).unwrap();
    folder
}

fn parse(folder: &Path, program: &str) -> Result<Config, Vec<Problem>> {
    let name = folder.join("pair.toml").display().to_string();
    Config::parse(&(sample() + program), &name)
}

fn devices(config: &Config) -> &[FieldDevice] {
    let field = config.applications[1].field.as_ref().unwrap();
    match &field.devices {
        FieldDevices::Program(devices) => devices,
        other => panic!("{other:?}"),
    }
}

fn program(config: &Config) -> &Program {
    match &config.applications[1].kind {
        ApplicationKind::Program(program) => program,
        other => panic!("{other:?}"),
    }
}

/// The one problem when `from` is `to`.
#[track_caller]
fn one(from: &str, to: &str, field: &str, wrong: &str, right: &str) {
    assert!(PROGRAM.contains(from), "{from}");
    let folder = folder();
    let problems = parse(folder.path(), &PROGRAM.replacen(from, to, 1)).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:#?}");
    let problem = &problems[0];
    assert_eq!(problem.field, format!("application[2]{field}"), "{problem}");
    assert!(problem.wrong.contains(wrong), "{problem}");
    assert!(problem.right.contains(right), "{problem}");
}

#[test]
fn a_device_of_a_driver_has_its_program_protocol_and_values() {
    let folder = folder();
    let config = parse(folder.path(), PROGRAM).unwrap();
    let devices = devices(&config);
    assert_eq!(devices[0].address.to_string(), "192.0.2.20:4840");
    let furnace = devices[0].driver().unwrap();
    assert_eq!(furnace.program, folder.path().join("./driver"));
    assert_eq!(furnace.arguments, ["field"]);
    assert_eq!(furnace.max_age, Some(Duration::from_millis(200)));
    let protocol = DriverProtocol::OpcUa {
        path: "/".into(),
        policy: OpcUaPolicy::Basic256Sha256,
        files: Some("opcua".into()),
        login: None,
    };
    assert_eq!(furnace.protocol, protocol);
    let scale = devices[1].driver().unwrap();
    assert_eq!(
        (&scale.protocol, scale.max_age),
        (&DriverProtocol::Own, None)
    );
    assert_eq!(scale.arguments, ["--slow"]);
    assert!(devices[2].driver().is_none());
    let boiler = program(&config);
    let InputFrom::Driver(level, poll) = &boiler.inputs[0].from else {
        panic!("{:?}", boiler.inputs[0]);
    };
    assert_eq!((level.name.as_str(), *poll), ("ns=2;s=Furnace.Level", 5));
    assert_eq!((level.value, level.scale), (ValueType::F32, 0.5));
    assert_eq!(boiler.inputs[1].from, InputFrom::Quality(0));
    assert_eq!(boiler.inputs[2].from, InputFrom::Age(0));
    assert_eq!(boiler.inputs[4].from, InputFrom::Answers);
    let OutputTo::Driver(tare) = &boiler.outputs[1].to else {
        panic!("{:?}", boiler.outputs[1]);
    };
    assert_eq!((tare.name.as_str(), tare.value), ("tare", ValueType::F64));
}

#[test]
fn what_both_nodes_must_share_of_a_driver_changes_the_fingerprint() {
    let folder = folder();
    let whole = parse(folder.path(), PROGRAM).unwrap().fingerprint();
    for (from, to, counts) in [
        ("ns=2;i=12", "ns=2;i=13", true),
        ("type = \"i16\"", "type = \"i64\"", true),
        (
            "files =",
            "policy = \"Aes256_Sha256_RsaPss\"\nfiles =",
            true,
        ),
        ("max_age_ms = 200", "max_age_ms = 201", true),
        ("\"--slow\"", "\"--quick\"", true),
        ("192.0.2.20\"", "192.0.2.20:4841\"", true),
        ("area = \"age\"", "area = \"quality\"", true),
        ("files = \"opcua\"", "files = \"elsewhere\"", false),
        ("driver = \"./driver\"", "driver = \"./../driver\"", false),
    ] {
        assert!(PROGRAM.contains(from), "{from}");
        let above = folder.path().join("below");
        std::fs::create_dir_all(&above).unwrap();
        std::fs::copy(folder.path().join("boiler.wasm"), above.join("boiler.wasm")).unwrap();
        std::fs::copy(folder.path().join("driver"), above.join("driver")).unwrap();
        let changed = parse(&above, &PROGRAM.replacen(from, to, 1)).unwrap();
        assert_eq!(changed.fingerprint() != whole, counts, "{to}");
    }
}

#[test]
fn outputs_by_drivers_are_not_fenced_and_a_policy_of_none_is_open() {
    let folder = folder();
    let config = parse(folder.path(), PROGRAM).unwrap();
    let of = |config: &Config, code| {
        let weak = config.weaknesses.clone().into_iter();
        weak.filter(|it| it.code == code && it.subject.contains("boiler"))
            .collect::<Vec<_>>()
    };
    let fence = of(&config, WeaknessCode::OutputsNotFenced);
    let subjects: Vec<_> = fence.iter().map(|it| it.subject.as_str()).collect();
    let device = |name| format!("application \"boiler\", device \"{name}\"");
    assert_eq!(subjects, [device("furnace"), device("scale")]);
    let open = of(&config, WeaknessCode::FieldOpen);
    assert_eq!(open.len(), 1, "{open:#?}");
    assert!(open[0].hazard.contains("plc (192.0.2.22:502)"), "{open:?}");
    let none = PROGRAM.replacen("files = \"opcua\"", "policy = \"None\"", 1);
    let config = parse(folder.path(), &none).unwrap();
    let open = of(&config, WeaknessCode::FieldOpen);
    assert_eq!(open.len(), 2, "{open:#?}");
    assert!(
        open[1]
            .hazard
            .contains("furnace (192.0.2.20:4840) has policy")
    );
    assert!(!open[0].hazard.contains("furnace"), "{open:?}");
}

#[test]
fn tls_for_modbus_devices_leaves_those_of_drivers_alone() {
    let folder = folder();
    let text = PROGRAM.replacen(
        "on_failure = \"hold\"",
        "security = \"tls\"\ncertificates = \"certificates\"",
        1,
    );
    let config = parse(folder.path(), &text).unwrap();
    let secure: Vec<_> = devices(&config)
        .iter()
        .map(|it| it.security_name())
        .collect();
    assert_eq!(secure, [Some("Basic256Sha256"), None, Some("tls")]);
}

#[test]
fn each_mistake_in_a_driven_device_names_its_place_and_remedy() {
    let device = ".field.device[1]";
    let at = |key: &str| format!("{device}.{key}");
    one(
        "driver = \"./driver\"",
        "driver = \"./drover\"",
        &at("driver"),
        "cannot be read",
        "bridges/opcua",
    );
    one(
        "driver = \"./driver\"",
        "driver = \"no-such-program-anywhere\"",
        &at("driver"),
        "is not in PATH",
        "bridges/opcua",
    );
    one(
        "driver = \"./driver\"",
        "driver = \"./boiler.wasm\"",
        &at("driver"),
        "no file that can be executed",
        "give its path",
    );
    one(
        "files = \"opcua\"\n",
        "",
        &at("files"),
        "is missing",
        "policy = \"None\"",
    );
    one(
        "files = \"opcua\"",
        "files = \"opcua\"\npolicy = \"None\"",
        &at("files"),
        "although policy",
        "leave policy out",
    );
    one(
        "files = \"opcua\"",
        "files = \"opcua\"\npolicy = \"Basic256\"",
        &at("policy"),
        "Basic256",
        "Aes256_Sha256_RsaPss",
    );
    one(
        "files = \"opcua\"",
        "files = \"opcua\"\npath = \"UA\"",
        &at("path"),
        "is \"UA\"",
        "/UA/Server",
    );
    one(
        "files = \"opcua\"",
        "files = \"opcua\"\nunit = 3",
        &at("unit"),
        "belongs to kind modbus",
        "remove",
    );
    one(
        "files = \"opcua\"",
        "files = \"opcua\"\nsecurity = \"tls\"",
        &at("security"),
        "belongs to kind modbus",
        "remove",
    );
    one(
        "files = \"opcua\"",
        "files = \"opcua\"\narguments = [\"-v\"]",
        &at("arguments"),
        "belongs to kind driver",
        "remove",
    );
    one(
        "kind = \"opcua\"",
        "kind = \"opc\"",
        &at("kind"),
        "is the text \"opc\"",
        "\"opcua\"",
    );
    one(
        "192.0.2.21:4700",
        "192.0.2.21",
        ".field.device[2].address",
        "has no port",
        "give the port",
    );
    one(
        "address = \"192.0.2.22\"",
        "address = \"192.0.2.22\"\npolicy = \"None\"",
        ".field.device[3].policy",
        "belongs to kind opcua",
        "remove",
    );
}

#[test]
fn each_mistake_in_a_driven_value_names_its_place_and_remedy() {
    one(
        "point = \"ns=2;s=Furnace.Level\"\ntype",
        "point = \"ns=2;x=Furnace.Level\"\ntype",
        ".input[1].point",
        "begins with i=",
        "NodeId",
    );
    one(
        "point = \"ns=2;i=12\"",
        "point = \"ns=2;i=twelve\"",
        ".output[1].point",
        "numeric",
        "NodeId",
    );
    one(
        "type = \"i16\"",
        "type = \"int16\"",
        ".output[1].type",
        "int16",
        "\"i16\"",
    );
    one(
        "point = \"gross\"\n",
        "",
        ".input[4].point",
        "is missing",
        "what the driver calls",
    );
    one(
        "point = \"gross\"",
        "point = \"gross\"\nregister = 3",
        ".input[4].register",
        "belongs to Modbus",
        "remove",
    );
    one(
        "point = \"gross\"",
        "point = \"gross\"\narea = \"coil\"",
        ".input[4].area",
        "belongs to Modbus",
        "leave it out",
    );
    one(
        "point = \"tare\"",
        "point = \"tare\"\nscale = 0",
        ".output[2].scale",
        "is 0",
        "multiplied",
    );
    one(
        "area = \"age\"\npoint = \"ns=2;s=Furnace.Level\"",
        "area = \"age\"\npoint = \"ns=2;s=Furnace.Lever\"",
        ".input[3].point",
        "read by no input",
        "area = \"value\"",
    );
    one(
        "area = \"age\"",
        "area = \"age\"\nscale = 2",
        ".input[3].scale",
        "means nothing",
        "remove",
    );
}

#[test]
fn a_quality_of_what_a_driver_does_not_read_is_refused_with_a_problem() {
    let quality =
        "\n[[application.input]]\nname = \"doubt\"\ndevice = \"scale\"\narea = \"quality\"\n";
    let with = |point: &str| format!("{PROGRAM}{quality}point = {point:?}\n");
    let folder = folder();
    assert!(parse(folder.path(), &with("gross")).is_ok());
    let problems = parse(folder.path(), &with("gros")).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:#?}");
    assert_eq!(problems[0].field, "application[2].input[6].point");
    assert!(
        problems[0].wrong.contains("read by no input"),
        "{problems:#?}"
    );
}

#[test]
fn no_value_of_a_server_is_written_by_two_outputs() {
    let twice =
        "\n[[application.output]]\nname = \"again\"\ndevice = \"scale\"\npoint = \"tare\"\n";
    let folder = folder();
    let problems = parse(folder.path(), &(PROGRAM.to_owned() + twice)).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:#?}");
    assert_eq!(problems[0].field, "application[2].output[3].point");
    assert!(problems[0].wrong.contains("written by output \"tare\""));
    // Another name for the same server does not help, and another text for the same value neither.
    let server = "kind = \"driver\"\naddress = \"192.0.2.21:4700\"";
    let behind = PROGRAM.replacen(
        server,
        "kind = \"driver\"\naddress = \"192.0.2.20:4840\"",
        1,
    );
    let behind = behind.replacen("point = \"tare\"", "point = \"ns=2;i=12\"", 1);
    assert!(
        parse(folder.path(), &behind).is_ok(),
        "two devices behind a gateway"
    );
    let same = "kind = \"opcua\"\nfiles = \"opcua\"\naddress = \"192.0.2.20:4840\"";
    let same = PROGRAM
        .replacen(server, same, 1)
        .replacen("arguments = [\"--slow\"]\n", "", 1);
    let same = same.replacen("point = \"gross\"", "point = \"ns=2;i=13\"", 1);
    let same = same.replacen("point = \"tare\"", "point = \"ns=02;i=012\"", 1);
    let problems = parse(folder.path(), &same).unwrap_err();
    assert!(
        problems[0].wrong.contains("written by output \"valve\""),
        "{problems:#?}"
    );
    // Nor is another application's device another server.
    let second = PROGRAM
        .replacen("name = \"boiler\"", "name = \"second\"", 1)
        .replacen("channel = 2", "channel = 3", 1)
        .replacen("192.0.2.22", "192.0.2.23", 1);
    let problems = parse(folder.path(), &(PROGRAM.to_owned() + &second)).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:#?}");
    let by = "written by output \"valve\" of application \"boiler\"";
    assert!(problems[0].wrong.contains(by), "{problems:#?}");
}

#[test]
fn everything_that_is_wrong_with_drivers_is_said_at_once() {
    let wrong = PROGRAM
        .replacen("192.0.2.20\"", "nowhere\"", 1)
        .replacen("driver = \"./driver\"", "driver = \"./drover\"", 1)
        .replacen("files = \"opcua\"\n", "", 1)
        .replacen("ns=2;i=12", "12", 1)
        .replacen("point = \"gross\"\n", "", 1);
    let folder = folder();
    let problems = parse(folder.path(), &wrong).unwrap_err();
    let fields: Vec<_> = problems.iter().map(|it| it.field.as_str()).collect();
    let expected = [
        "application[2].field.device[1].address",
        "application[2].field.device[1].driver",
        "application[2].field.device[1].files",
        "application[2].input[4].point",
        "application[2].output[1].point",
    ];
    let mut found = fields.clone();
    found.sort_unstable();
    assert_eq!(found, expected, "{problems:#?}");
}
