use std::path::PathBuf;

use bumpless_base::Duration;
use bumpless_config::Config;
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
