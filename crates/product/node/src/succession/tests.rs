use std::path::PathBuf;

use bumpless_base::Duration;
use bumpless_config::Config;
#[cfg(feature = "wasm")]
use bumpless_controller::retain::Table;
use bumpless_controller::{Synthetic, SyntheticParameters};

use super::*;

/// An application with a program, and the next version of it.
pub(crate) fn versions(host: ProgramHost) -> (config::Application, config::Application) {
    let example = format!(
        "{}/../../../examples/quadruple-tank.toml",
        env!("CARGO_MANIFEST_DIR")
    );
    let read = Config::load(example.as_ref()).expect("the example");
    let of = |number: u8| config::Application {
        kind: ApplicationKind::Program(Box::new(config::Program {
            host: host.clone(),
            file: PathBuf::from(format!("version-{number}")),
            sha256: [number; 32],
            state_max: 4096,
            memory_max: None,
            engine: config::ModuleEngine::Wasmi,
            execute_limit: Duration::from_millis(5),
            inputs: Vec::new(),
            outputs: Vec::new(),
            on_fault: config::OnProgramFault::Hold,
            state: StateOnChange::Kept,
        })),
        ..read.applications[0].clone()
    };
    (of(1), of(2))
}

/// a state of a third version is not given to a function that takes it for one of the version before.
#[test]
fn a_state_of_neither_version_is_refused_and_not_converted() {
    let mut next = Synthetic::new(SyntheticParameters {
        size: 100,
        changed_share: 1.0,
    });
    let before = Before {
        at: 0,
        owner: 7u64.to_le_bytes(),
    };
    let mut own = vec![0; next.state_size_max()];
    let len = next.save(&mut own);
    let converted = |_: &mut Synthetic, _: &[u8]| Err("it is converted".to_owned());
    assert_eq!(try_with(&mut next, before, &own[..len], converted), Ok(()));
    let of = |owner: u64| [owner.to_le_bytes(), [0; 8]].concat();
    let refused = try_with(&mut next, before, &of(8), converted).expect_err("of a third one");
    assert!(
        refused.contains("is neither of the version that runs"),
        "{refused}"
    );
    let refused = try_with(&mut next, before, &of(7), converted).expect_err("of the one before");
    assert!(refused.contains("it is converted"), "{refused}");
}

fn program(application: &mut config::Application) -> &mut config::Program {
    match &mut application.kind {
        ApplicationKind::Program(program) => program,
        other => panic!("{other:?}"),
    }
}

/// what each node would refuse is refused before anybody is asked.
#[test]
fn another_period_of_a_plc_program_is_refused_where_its_fate_is_told() {
    let (before, mut next) = versions(ProgramHost::Plc);
    next.period = before.period * 2;
    let fate = fate(&before, &next).expect("another version");
    let refused = fate.expect_err("timers would jump");
    assert!(refused.contains("its period is another one"), "{refused}");
}

#[test]
fn what_has_taken_the_place_of_a_programs_file_is_not_read_without_end() {
    let (mut before, _) = versions(ProgramHost::Plc);
    for path in ["/dev/zero", "/"] {
        program(&mut before).file = path.into();
        let refused = crate::program::file_of(program(&mut before)).expect_err("no program");
        let refused = refused.to_string();
        assert!(
            refused.starts_with(path) && refused.contains("no regular file"),
            "{refused}"
        );
    }
}

#[test]
fn the_same_program_does_not_begin_anew_and_is_told_what_its_user_can_do() {
    for (host, remedy) in [
        (ProgramHost::Wasm, "\"fresh\"; leave that line out"),
        (ProgramHost::Plc, "\"fresh\"; leave that line out"),
        (
            ProgramHost::Process {
                command: Vec::new(),
                arguments: Vec::new(),
            },
            "give it another state_version, or leave that line out",
        ),
    ] {
        let (before, mut next) = versions(host);
        assert_eq!(refuse_same(&before, &next), Ok(()), "another version");
        program(&mut next).state = StateOnChange::Fresh;
        assert_eq!(refuse_same(&before, &next), Ok(()), "another version");
        program(&mut next).sha256 = [1; 32];
        let refused = refuse_same(&before, &next).expect_err("the same");
        assert!(refused.contains(remedy), "{refused}");
        assert_eq!(fate(&before, &next), Some(Err(refused)));
        // The line stands there since the change before.
        let (mut before, again) = (next.clone(), next.clone());
        assert_eq!(refuse_same(&before, &again), Ok(()));
        program(&mut before).file = "another".into();
        assert!(refuse_same(&before, &again).is_err());
    }
}

/// `state_max` is not raised while the application runs.
#[test]
fn a_state_that_has_no_room_is_refused_with_what_can_be_done_then() {
    let error = io::Error::other(StartFault {
        program: "ramp".into(),
        cause: StartCause::State {
            program: 16,
            configured: 8,
        },
    });
    let told = not_started(error);
    assert!(told.contains("another name and channel"), "{told}");
    let told = not_started(io::Error::other("no such file"));
    assert_eq!(told, "no such file");
}

/// A module that only has a `cycle`.
#[cfg(feature = "wasm")]
const MODULE: &[u8] = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x07\x09\x01\x05cycle\0\0\x0a\x04\x01\x02\0\x0b";

#[cfg(feature = "wasm")]
#[test]
fn a_module_whose_state_has_no_room_is_refused_with_what_can_be_done_then() {
    let place = tempfile::tempdir().expect("a folder");
    let (before, mut next) = versions(ProgramHost::Wasm);
    program(&mut next).file = place.path().join("next.wasm");
    std::fs::write(place.path().join("next.wasm"), MODULE).expect("a file");
    let was = Version {
        settings: before,
        owner: Some(1),
        size_max: 100,
        retained: Table::default(),
    };
    let refused = |next: &config::Application| build(next, &was, None, None).err();
    let why = refused(&next).expect("it converts nothing");
    assert!(why.contains("bumpless_convert"), "{why}");
    for (own, channel) in [(8, 4096), (4096, 8)] {
        program(&mut next).state_max = own;
        next.state_max = channel;
        let why = refused(&next).expect("there is no room");
        assert!(why.contains("another name and channel"), "{own}: {why}");
    }
}

/// the same module that is to run otherwise is tried before anything is announced, as another version is.
#[cfg(feature = "wasm")]
#[test]
fn a_module_that_cannot_run_on_another_engine_or_in_less_memory_is_refused_before() {
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("same.wasm");
    // Besides its `cycle` it has a memory of two pages.
    let with_memory = [&MODULE[..18], b"\x05\x03\x01\0\x02", &MODULE[18..]].concat();
    std::fs::write(&file, with_memory).expect("a file");
    let (mut before, _) = versions(ProgramHost::Wasm);
    program(&mut before).file = file;
    before.state_max = 1 << 20;
    program(&mut before).state_max = 1 << 20;
    let was = Version {
        settings: before.clone(),
        owner: Some(1),
        size_max: 100,
        retained: Table::default(),
    };
    assert!(!runs_otherwise(&was, &before));
    let mut next = before.clone();
    program(&mut next).memory_max = Some(128 << 10);
    assert!(runs_otherwise(&was, &next));
    assert_eq!(try_again(&next, None), Ok(()));
    program(&mut next).memory_max = Some(64 << 10);
    let why = try_again(&next, None).expect_err("it has no room");
    assert!(why.contains(&next.name), "{why}");
    program(&mut next).memory_max = None;
    program(&mut next).engine = config::ModuleEngine::Wasmtime;
    assert!(runs_otherwise(&was, &next));
    if !cfg!(feature = "wasmtime") {
        let why = try_again(&next, None).expect_err("this build has no such engine");
        assert!(why.contains("wasmtime"), "{why}");
    }
}
