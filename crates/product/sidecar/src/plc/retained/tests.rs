use super::*;

const LIST: &str = "\
// Programs
0;CONFIG0.RES0.TANK0;TANK;

// Variables
0;FB;CONFIG0.RES0.TANK0;CONFIG0.RES0.TANK0;TANK;
1;IN;CONFIG0.RES0.TANK0.START;CONFIG0.RES0.TANK0.START;BOOL;
2;VAR;CONFIG0.RES0.TANK0.STEP;CONFIG0.RES0.TANK0.STEP;INT;INT;1;
3;FB;CONFIG0.RES0.TANK0.COUNTED;CONFIG0.RES0.TANK0.COUNTED;CTU;
4;VAR;CONFIG0.RES0.TANK0.COUNTED.CV;CONFIG0.RES0.TANK0.COUNTED.CV;INT;
5;VAR;CONFIG0.RES0.TANK0.LABEL;CONFIG0.RES0.TANK0.LABEL;STRING;
6;VAR;CONFIG0.SHIFT;CONFIG0.SHIFT;TIME;
7;EXT;CONFIG0.RES0.TANK0.SHIFT;CONFIG0.SHIFT;TIME;
8;VAR;CONFIG0.RES0.ODD0.X;CONFIG0.RES0.ODD0.X;INT;

// Ticktime
20000000
";

fn found(name: &str) -> Result<Variable, String> {
    Listed::parse(LIST).find(name)
}

#[test]
fn variables_of_programs_and_global_ones_are_found_with_type_and_place() {
    let count = found("CONFIG0.RES0.TANK0.COUNTED.CV").unwrap();
    assert_eq!((&count.of[..], count.len), ("INT", 2));
    let place = Place::Program {
        of: "TANK".into(),
        symbol: "RES0__TANK0".into(),
        member: "COUNTED.CV".into(),
    };
    assert_eq!(count.place, place);
    let shift = found("CONFIG0.SHIFT").unwrap();
    let place = Place::Global("CONFIG0__SHIFT".into());
    assert_eq!((shift.len, shift.place), (16, place));
    let (_, text) = table(&[count], None);
    assert!(text.contains("extern TANK RES0__TANK0;"), "{text}");
    assert!(
        text.contains("{&RES0__TANK0.COUNTED.CV.value, 2, {'I', 'N', 'T'}, "),
        "{text}"
    );
}

#[test]
fn what_cannot_be_retained_is_refused_with_the_remedy() {
    for (name, part) in [
        (
            "CONFIG0.RES0.TANK0.CV",
            "is CONFIG0.RES0.TANK0.COUNTED.CV meant?",
        ),
        ("NOTHING", "third column"),
        ("CONFIG0.RES0.TANK0.START", "without AT"),
        ("CONFIG0.RES0.TANK0.COUNTED", "is an instance of CTU"),
        ("CONFIG0.RES0.TANK0.LABEL", "the type STRING"),
        ("CONFIG0.RES0.TANK0.SHIFT", "name the global variable"),
        ("CONFIG0.RES0.ODD0.X", "no instance of a program"),
    ] {
        let problem = found(name).unwrap_err();
        assert!(problem.contains(part), "{name}: {problem}");
    }
}
