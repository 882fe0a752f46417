//! Registers that more than one output would write.

use super::*;

#[test]
fn no_register_is_written_by_two_outputs() {
    let twice = PROGRAM.replacen(
        "area = \"coil\"\nregister = 0",
        "register = 0\ntype = \"u16\"",
        1,
    );
    let twice = twice.replacen(
        "device = \"pump\"\nregister",
        "device = \"plc\"\nregister",
        1,
    );
    let folder = folder();
    let problems = parse(folder.path(), &twice).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:#?}");
    assert!(
        problems[0].wrong.contains("written by output \"valve\""),
        "{problems:#?}"
    );
}

/// The one problem with these lines.
#[track_caller]
fn twice(text: &str) -> Problem {
    let problems = parse(folder().path(), text).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:#?}");
    problems.into_iter().next().unwrap()
}

#[test]
fn no_register_is_written_by_two_outputs_whatever_its_device_is_called() {
    // The pump is the PLC's unit 7, too, and once more by the port that is usual.
    for address in ["192.0.2.20:502", "192.0.2.20"] {
        let same = PROGRAM.replacen("192.0.2.21:502\"", &format!("{address}\"\nunit = 7"), 1);
        assert!(
            parse(folder().path(), &same).is_ok(),
            "coils are no registers"
        );
        let same = same.replacen("area = \"coil\"\nregister", "type = \"u16\"\nregister", 1);
        let problem = twice(&same);
        assert_eq!(problem.field, "application[2].output[2].register");
        let by = "0 is written by output \"valve\" of application \"boiler\"";
        assert!(problem.wrong.contains(by), "{problem}");
        let other = same.replacen("\"\nunit = 7\nrequired", "\"\nunit = 8\nrequired", 1);
        assert!(parse(folder().path(), &other).is_ok(), "another unit");
    }
}

#[test]
fn no_register_is_written_by_outputs_of_two_applications() {
    let second = PROGRAM
        .replacen("name = \"boiler\"", "name = \"second\"", 1)
        .replacen("channel = 2", "channel = 3", 1)
        .replacen("192.0.2.21", "192.0.2.22", 1);
    let problem = twice(&(PROGRAM.to_owned() + &second));
    assert_eq!(problem.field, "application[3].output[1].register");
    let by = "output \"valve\" of application \"boiler\"";
    assert!(problem.wrong.contains(by), "{problem}");
    // Both may read what they like.
    let beside = second.replacen("register = 0\ntype", "register = 1\ntype", 1);
    assert!(parse(folder().path(), &(PROGRAM.to_owned() + &beside)).is_ok());
}

#[test]
fn the_block_of_a_device_is_written_by_one_application() {
    let valve = "register = 0\ntype = \"i16\"";
    let block = PROGRAM.replacen(valve, "area = \"block\"", 1);
    let second = block
        .replacen("name = \"boiler\"", "name = \"second\"", 1)
        .replacen("channel = 2", "channel = 3", 1)
        .replacen("192.0.2.21", "192.0.2.22", 1);
    let problem = twice(&(block.clone() + &second));
    assert_eq!(problem.field, "application[3].field.device[1].address");
    let by = "register 0 is written by the block of application \"boiler\"";
    assert!(problem.wrong.contains(by), "{problem}");
    // A register inside of it, too; the stamp has eight, and the one output two.
    for (register, inside) in [(9, true), (10, false)] {
        let other = second.replacen("area = \"block\"", &format!("register = {register}"), 1);
        let found = parse(folder().path(), &(block.clone() + &other));
        assert_eq!(found.is_err(), inside, "{found:#?}");
    }
    // The sample's tank is another one.
    let tank = block.replacen("192.0.2.20:502\"\nunit = 7", "127.0.0.10:5502\"", 1);
    let problem = twice(&tank);
    let by = "by the block of application \"tank\"";
    assert!(problem.wrong.contains(by), "{problem}");
}
