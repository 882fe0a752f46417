//! From one configuration of a pair to another.

use bumpless_config::Config;
use bumpless_plan::change::{Order, StepKind};
use bumpless_plan::pair::{PairChange, change};
use bumpless_plan::{Machine, Verdict};

fn example(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../examples")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

fn changed(new: &str) -> PairChange {
    let old = example("table20.toml");
    let parse = |text: &str| Config::parse(text, "t").unwrap_or_else(|all| panic!("{all:#?}"));
    change(&parse(&old), &parse(new), Machine::default())
}

#[test]
fn a_lighter_application_makes_room_before_a_heavier_one_takes_it() {
    let table = example("table20.toml");
    let (first, rest) = table.split_at(table.find("size = \"400 kB\"").unwrap());
    let lighter = rest.replacen("size = \"400 kB\"", "size = \"900 kB\"", 1);
    let new = lighter.replacen("size = \"8.0 MB\"", "size = \"4.0 MB\"", 1);
    let change = changed(&format!("{first}{new}"));
    assert_eq!(change.restart, Vec::<&str>::new());
    let Some(Order::Steps { steps }) = change.order else {
        panic!("{change:?}")
    };
    let kinds: Vec<_> = steps.iter().map(|step| step.kind).collect();
    assert_eq!(kinds, [StepKind::Lighten, StepKind::Burden]);
}

#[test]
fn sections_that_cannot_change_while_the_pair_runs_are_named() {
    let new = format!("{}\n[timing]\nheartbeat_ms = 3\n", example("table20.toml"));
    let new = if new.contains("heartbeat_ms = 3") {
        new
    } else {
        format!("[timing]\nheartbeat_ms = 3\n{new}")
    };
    let change = changed(&new);
    assert_eq!(change.restart, ["timing"]);
    assert_eq!(change.order, None);
}

#[test]
fn what_is_refused_itself_has_no_order() {
    let (as_it_is, hasty) = (
        "channel = 4\nperiod_ms = 100\ndeadline_ms = 100",
        "channel = 4\nperiod_ms = 100\ndeadline_ms = 4",
    );
    let new = example("table20.toml").replace(as_it_is, hasty);
    let change = changed(&new);
    assert_eq!(change.verdicts, (Verdict::Yes, Verdict::No));
    assert_eq!((change.restart, change.order), (Vec::new(), None));
}
