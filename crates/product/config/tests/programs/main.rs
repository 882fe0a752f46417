//! Programs of users in the file: what is right, what is wrong, and that everything wrong is said at once.

mod registers;

use std::path::Path;

use bumpless_base::Duration;
use bumpless_config::{
    ApplicationKind, Area, Bus, Config, FieldDevices, InputFrom, ModuleEngine, OnProgramFault,
    Order, Problem, Program, ProgramHost, ValueType, WeaknessCode, sample,
};

const WASM: &[u8] = b"\0asm\x01\0\0\0";

const PROGRAM: &str = r#"
[[application]]
name = "boiler"
group = "tank"
kind = "wasm"
channel = 2
period_ms = 20
file = "boiler.wasm"
state_max = "64 KiB"
execute_limit_ms = 3
on_program_fault = "safe"

[application.field]
on_failure = "fail"

[[application.field.device]]
name = "plc"
address = "192.0.2.20:502"
unit = 7

[[application.field.device]]
name = "pump"
address = "192.0.2.21:502"
required = false

[[application.input]]
name = "level"
device = "plc"
register = 10
word_order = "little"
scale = 0.5
poll = 5

[[application.input]]
name = "open"
device = "plc"
area = "discrete_input"
register = 3

[[application.input]]
name = "pump-there"
device = "pump"
area = "answers"

[[application.output]]
name = "valve"
device = "plc"
register = 0
type = "i16"
safe = -1

[[application.output]]
name = "run"
device = "pump"
area = "coil"
register = 0
safe = 0
"#;

/// A folder with the sample, the program and its file.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("boiler.wasm"), WASM).unwrap();
    folder
}

fn parse(folder: &Path, program: &str) -> Result<Config, Vec<Problem>> {
    let name = folder.join("pair.toml").display().to_string();
    Config::parse(&(sample() + program), &name)
}

fn program(config: &Config) -> &Program {
    match &config.applications[1].kind {
        ApplicationKind::Program(program) => program,
        other => panic!("{other:?}"),
    }
}

fn unit(bus: &Bus) -> u8 {
    match bus {
        Bus::Modbus(modbus) => modbus.unit,
        other => panic!("{other:?}"),
    }
}

/// The one problem with the program when `from` is `to`.
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
fn a_program_has_its_file_limits_inputs_and_outputs() {
    let folder = folder();
    let config = parse(folder.path(), PROGRAM).unwrap();
    let boiler = program(&config);
    assert_eq!(boiler.host, ProgramHost::Wasm);
    assert_eq!(boiler.file, folder.path().join("boiler.wasm"));
    // As sha256sum has it.
    let hash = "93a44bbb96c751218e4c00d479e4c14358122a389acca16205b1e4d0dc5f9476";
    assert_eq!(boiler.sha256_hex(), hash);
    assert_eq!(
        (boiler.state_max, boiler.execute_limit),
        (65_536, Duration::from_millis(3))
    );
    assert_eq!(boiler.on_fault, OnProgramFault::Safe(vec![-1.0, 0.0]));
    let (level, poll) = boiler.inputs[0].registers().unwrap();
    assert_eq!(
        (level.area, level.register, poll),
        (Area::InputRegister, 10, 5)
    );
    assert_eq!(
        (level.value, level.word_order),
        (ValueType::F32, Order::Little)
    );
    assert_eq!((level.scale, level.byte_order), (0.5, Order::Big));
    let (open, _) = boiler.inputs[1].registers().unwrap();
    assert_eq!(open.value, ValueType::Bool);
    assert_eq!(boiler.inputs[2].device, 1);
    assert_eq!(boiler.inputs[2].from, InputFrom::Answers);
    assert_eq!(boiler.outputs[0].registers().unwrap().value, ValueType::I16);
    let field = config.applications[1].field.as_ref().unwrap();
    let FieldDevices::Program(devices) = &field.devices else {
        panic!("{field:?}");
    };
    let units: Vec<_> = devices.iter().map(|it| unit(&it.bus)).collect();
    assert_eq!(units, [7, 255]);
    assert_eq!((devices[0].required, devices[1].required), (true, false));
    // The executor's envelope with two outputs, and what a host may add.
    assert_eq!(config.applications[1].state_max, 65_536 + 64 + 16);
}

#[test]
fn another_file_is_another_configuration_and_another_place_is_not() {
    let (here, there) = (folder(), folder());
    let fingerprint = |folder: &Path| parse(folder, PROGRAM).unwrap().fingerprint();
    assert_eq!(fingerprint(here.path()), fingerprint(there.path()));
    let program = |folder: &Path| parse(folder, PROGRAM).unwrap().applications[1].program();
    assert_eq!(program(here.path()), program(there.path()));
    std::fs::write(there.path().join("boiler.wasm"), [WASM, b"\0"].concat()).unwrap();
    assert_ne!(fingerprint(here.path()), fingerprint(there.path()));
    assert_ne!(program(here.path()), program(there.path()));
}

#[test]
fn every_field_of_a_program_counts_in_the_fingerprint() {
    let folder = folder();
    let whole = parse(folder.path(), PROGRAM).unwrap().fingerprint();
    let changes = [
        ("execute_limit_ms = 3", "execute_limit_ms = 4"),
        ("safe = -1", "safe = 1"),
        ("unit = 7", "unit = 8"),
        ("required = false", "required = true"),
        ("register = 10", "register = 12"),
        ("word_order = \"little\"", "word_order = \"big\""),
        ("scale = 0.5", "scale = 0.25"),
        ("poll = 5", "poll = 6"),
        ("type = \"i16\"", "type = \"u16\""),
        ("192.0.2.21:502", "192.0.2.22:502"),
        ("name = \"run\"", "name = \"go\""),
    ];
    for (from, to) in changes {
        assert!(PROGRAM.contains(from), "{from}");
        let changed = parse(folder.path(), &PROGRAM.replacen(from, to, 1)).unwrap();
        assert_ne!(changed.fingerprint(), whole, "{to}");
    }
}

#[test]
fn devices_that_compare_no_epoch_are_a_weakness_each() {
    let folder = folder();
    let config = parse(folder.path(), PROGRAM).unwrap();
    let weak = config.weaknesses.iter();
    let weak = weak.filter(|it| it.code == WeaknessCode::OutputsNotFenced);
    let subjects: Vec<_> = weak.map(|it| it.subject.as_str()).collect();
    let device = |name| format!("application \"boiler\", device \"{name}\"");
    assert_eq!(subjects, [device("plc"), device("pump")]);
    let block = PROGRAM
        .replacen("register = 0\ntype = \"i16\"\n", "area = \"block\"\n", 1)
        .replacen("unit = 7", "epoch_register = 100\ncycle_register = 102", 1);
    let config = parse(folder.path(), &block).unwrap();
    let weak = config.weaknesses.iter();
    let weak = weak.filter(|it| it.code == WeaknessCode::OutputsNotFenced);
    assert_eq!(weak.count(), 1);
}

#[test]
fn each_mistake_in_a_program_names_its_place_and_remedy() {
    one(
        "boiler.wasm",
        "boil.wasm",
        ".file",
        "cannot be read",
        "put the program there",
    );
    one(
        "file = \"boiler.wasm\"\n",
        "",
        ".file",
        "is missing",
        "give the path",
    );
    one(
        "state_max = \"64 KiB\"\n",
        "",
        ".state_max",
        "is missing",
        "program test",
    );
    one(
        "execute_limit_ms = 3",
        "execute_limit_ms = 21",
        ".execute_limit_ms",
        "longer than the period",
        "at most",
    );
    one(
        "device = \"plc\"",
        "device = \"plk\"",
        ".input[1].device",
        "is not a device",
        "did you mean \"plc\"?",
    );
    one(
        "name = \"open\"",
        "name = \"level\"",
        ".input[2].name",
        "already the name",
        "of its own",
    );
    one(
        "name = \"valve\"",
        "name = \"level\"",
        ".output[1].name",
        "already the name",
        "of its own",
    );
    one(
        "register = 10\n",
        "",
        ".input[1].register",
        "is missing",
        "counted from 0",
    );
    one(
        "register = 10\n",
        "register = 65535\n",
        ".input[1].register",
        "leaves no room",
        "65534",
    );
    one(
        "area = \"answers\"",
        "area = \"answers\"\nscale = 2",
        ".input[3].scale",
        "means nothing",
        "remove",
    );
    one(
        "area = \"coil\"",
        "area = \"coil\"\ntype = \"u16\"",
        ".output[2].type",
        "is no bit",
        "leave it out",
    );
    one(
        "safe = -1\n",
        "",
        ".output[1].safe",
        "is missing",
        "give what is written",
    );
    one(
        "on_program_fault = \"safe\"",
        "gain = [1, 1]\non_program_fault = \"safe\"",
        ".gain",
        "belongs to kind quadruple_tank",
        "remove",
    );
    one(
        "on_failure",
        "address = \"192.0.2.1:502\"\non_failure",
        ".field.address",
        "belongs to kind",
        "application.field.device",
    );
    one(
        "unit = 7",
        "unit = 7\nepoch_register = 9",
        ".field.device[1].epoch_register",
        "carry no epoch",
        "block",
    );
    one(
        "kind = \"wasm\"",
        "kind = \"wasm\"\ncommand = [\"python3\"]",
        ".command",
        "belongs to kind process",
        "process",
    );
    one(
        "scale = 0.5",
        "scal = 0.5",
        ".input[1].scal",
        "is not a field",
        "did you mean scale?",
    );
    one(
        "type = \"i16\"",
        "type = \"i16\"\nscale = 0",
        ".output[1].scale",
        "is 0",
        "multiplied",
    );
}

#[test]
fn the_memory_of_a_process_has_a_limit_if_its_file_says_one() {
    let (modules, folder) = (folder(), folder());
    std::fs::copy("/proc/self/exe", folder.path().join("boiler.wasm")).unwrap();
    let with = |kind: &str, more: &str| {
        let kind = format!("kind = {kind:?}\n{more}");
        parse(
            folder.path(),
            &PROGRAM.replacen("kind = \"wasm\"", &kind, 1),
        )
    };
    let most = |more: &str| program(&with("process", more).unwrap()).memory_max;
    assert_eq!(most(""), None);
    assert_eq!(most("memory_max = \"1 GiB\""), Some(1 << 30));
    let print = |more: &str| with("process", more).unwrap().fingerprint();
    assert_ne!(
        print(""),
        print("memory_max = \"1 GiB\""),
        "both nodes have the same"
    );
    let small = with("process", "memory_max = \"64 KiB\"").unwrap_err();
    assert_eq!(small.len(), 1, "{small:#?}");
    assert_eq!(small[0].field, "application[2].memory_max");
    assert!(small[0].wrong.contains("no room for a state"), "{small:#?}");
    // Of a module it is the memory, of which not all is in a state.
    let with = |more: &str| {
        let more = format!("kind = \"wasm\"\n{more}");
        let text = PROGRAM.replacen("kind = \"wasm\"", &more, 1);
        parse(modules.path(), &text)
    };
    let most = |more: &str| program(&with(more).unwrap()).memory_max;
    assert_eq!(most("memory_max = \"64 KiB\""), Some(64 << 10));
    for (given, says) in [
        ("60 KiB", "61440 bytes are not"),
        ("5 GiB", "5368709120 bytes are not"),
    ] {
        let wrong = with(&format!("memory_max = \"{given}\"")).unwrap_err();
        assert_eq!(wrong.len(), 1, "{wrong:#?}");
        assert_eq!(wrong[0].field, "application[2].memory_max");
        assert!(wrong[0].wrong.contains(says), "{wrong:#?}");
        assert!(wrong[0].right.contains("64 KiB to 4 GiB"), "{wrong:#?}");
    }
}

/// G-46: two nodes with different engines do not take each other for partners.
#[test]
fn what_runs_a_module_is_configured_for_both_nodes() {
    let folder = folder();
    let with = |more: &str| {
        let more = format!("state_max = \"64 KiB\"\n{more}");
        parse(
            folder.path(),
            &PROGRAM.replacen("state_max = \"64 KiB\"", &more, 1),
        )
    };
    let engine = |more: &str| program(&with(more).unwrap()).engine;
    assert_eq!(engine(""), ModuleEngine::Wasmi);
    assert_eq!(engine("engine = \"wasmi\""), ModuleEngine::Wasmi);
    assert_eq!(engine("engine = \"wasmtime\""), ModuleEngine::Wasmtime);
    let print = |more: &str| with(more).unwrap().fingerprint();
    assert_eq!(print(""), print("engine = \"wasmi\""));
    assert_ne!(print(""), print("engine = \"wasmtime\""));
    std::fs::copy("/proc/self/exe", folder.path().join("boiler.wasm")).unwrap();
    let process = "kind = \"process\"\nengine = \"wasmtime\"";
    let text = PROGRAM.replacen("kind = \"wasm\"", process, 1);
    let wrong = parse(folder.path(), &text).unwrap_err();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    assert_eq!(wrong[0].field, "application[2].engine");
    assert!(
        wrong[0].wrong.contains("belongs to kind wasm"),
        "{wrong:#?}"
    );
}

#[test]
fn everything_that_is_wrong_with_a_program_is_said_at_once() {
    let wrong = PROGRAM
        .replacen("boiler.wasm", "nothing.wasm", 1)
        .replacen("device = \"plc\"", "device = \"plk\"", 1)
        .replacen("safe = 0", "", 1)
        .replacen("unit = 7", "unit = 700", 1);
    let folder = folder();
    let problems = parse(folder.path(), &wrong).unwrap_err();
    let fields: Vec<_> = problems.iter().map(|it| it.field.as_str()).collect();
    let expected = [
        "application[2].file",
        "application[2].field.device[1].unit",
        "application[2].input[1].device",
        "application[2].output[2].safe",
    ];
    assert_eq!(fields, expected, "{problems:#?}");
}

#[test]
fn what_is_no_program_of_its_kind_is_refused() {
    let folder = folder();
    std::fs::write(folder.path().join("boiler.wasm"), "(module)").unwrap();
    let problems = parse(folder.path(), PROGRAM).unwrap_err();
    assert!(
        problems[0].wrong.contains("no WebAssembly module"),
        "{problems:#?}"
    );
    // It would run by itself, and nobody may execute it.
    let process = PROGRAM.replacen("\"wasm\"", "\"process\"", 1);
    let problems = parse(folder.path(), &process).unwrap_err();
    assert!(
        problems[0].wrong.contains("not executable"),
        "{problems:#?}"
    );
    let python = process.replacen("state_max", "command = [\"python3\"]\nstate_max", 1);
    let config = parse(folder.path(), &python).unwrap();
    let command = vec!["python3".to_owned()];
    let arguments = Vec::new();
    assert_eq!(
        program(&config).host,
        ProgramHost::Process { command, arguments }
    );
    let folder_as_file = PROGRAM.replacen("\"boiler.wasm\"", "\".\"", 1);
    let problems = parse(folder.path(), &folder_as_file).unwrap_err();
    assert!(
        problems[0].wrong.contains("no regular file"),
        "{problems:#?}"
    );
}

#[test]
fn each_device_has_the_security_of_its_field_unless_it_says_otherwise() {
    let text = PROGRAM
        .replacen("on_failure = \"fail\"", "security = \"tls\"", 1)
        .replacen(
            "192.0.2.20:502\"",
            "192.0.2.20\"\nserver_name = \"plc.field\"",
            1,
        )
        .replacen("192.0.2.21:502\"", "192.0.2.21\"\nsecurity = \"open\"", 1);
    let folder = folder();
    let config = parse(folder.path(), &text).unwrap();
    let field = config.applications[1].field.as_ref().unwrap();
    let FieldDevices::Program(devices) = &field.devices else {
        panic!("{field:?}");
    };
    let name = devices[0].security().unwrap().server_name.as_deref();
    assert_eq!((name, devices[0].address.port()), (Some("plc.field"), 802));
    assert!(devices[1].security().is_none() && devices[1].address.port() == 502);
    let open = { config.weaknesses.iter() }
        .find(|it| it.code == WeaknessCode::FieldOpen && it.subject.contains("boiler"));
    let open = open.unwrap();
    assert!(open.hazard.contains("pump (192.0.2.21:502)"), "{open}");
    assert!(!open.hazard.contains("plc"), "{open}");
}

#[test]
fn a_name_belongs_to_a_device_and_units_of_one_gateway_have_one_security() {
    one(
        "on_failure = \"fail\"",
        "security = \"tls\"\nserver_name = \"plc.field\"",
        ".field.server_name",
        "belongs to kind quadruple_tank",
        "[[application.field.device]]",
    );
    one(
        "192.0.2.21:502\"",
        "192.0.2.20:502\"\nsecurity = \"tls\"",
        ".field.device[2].security",
        "is not that of the device on line",
        "same security",
    );
}
