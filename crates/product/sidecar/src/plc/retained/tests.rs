use super::table::length;
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
9;VAR;CONFIG0.RES0.TANK0.COLOUR;CONFIG0.RES0.TANK0.COLOUR;HUE;
8;VAR;CONFIG0.RES0.ODD0.X;CONFIG0.RES0.ODD0.X;INT;

// Ticktime
20000000
";

const HEADER: &str = "\
__DECLARE_ARRAY_TYPE(__ARRAY_OF_REAL_4,REAL,[4])
__DECLARE_ARRAY_TYPE(__ARRAY_OF_TON_3,TON,[3])
__DECLARE_ARRAY_TYPE(LONGEST,ULINT,[1000][10][10])
typedef struct {
  __DECLARE_VAR(__ARRAY_OF_REAL_4,RECIPE)
  __DECLARE_VAR(__ARRAY_OF_TON_3,TIMERS)
  __DECLARE_VAR(LONGEST,LONG)
} TANK;
__DECLARE_GLOBAL(__ARRAY_OF_REAL_4,CONFIG0,LEVELS)
__DECLARE_GLOBAL(__ARRAY_OF_REAL_4,RES0,LEVELS)
";

fn found(name: &str) -> Result<Variable, String> {
    let mut listed = Listed::parse(LIST);
    listed.declared.read(HEADER);
    listed.find(name)
}

#[test]
fn strings_come_from_the_list_and_arrays_from_the_headers() {
    let label = found("CONFIG0.RES0.TANK0.LABEL").unwrap();
    assert_eq!(label.of, "STRING");
    let recipe = found("CONFIG0.RES0.TANK0.RECIPE").unwrap();
    assert_eq!(recipe.of, "REAL[4]");
    let (_, text) = table(&[label, recipe], None);
    for part in [
        "{&RES0__TANK0.LABEL.value, 1 * sizeof(STRING), {'S', 'T', 'R', 'I', 'N', 'G'}, ",
        "{&RES0__TANK0.RECIPE.value, 16, {'R', 'E', 'A', 'L', '[', '4', ']'}, ",
        "_Static_assert(sizeof RES0__TANK0.RECIPE.value == 16,",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for (name, symbol) in [
        ("CONFIG0.LEVELS", "CONFIG0__LEVELS"),
        ("CONFIG0.RES0.LEVELS", "RES0__LEVELS"),
    ] {
        let levels = found(name).unwrap();
        assert_eq!(levels.place, Place::Global(symbol.into()));
    }
}

#[test]
fn more_than_a_file_has_room_for_is_refused_with_the_largest() {
    let of = |len: usize| Retained {
        name: "TABLE".into(),
        of: "USINT[1]".into(),
        offset: 8,
        len,
    };
    let most = RECORD_MAX - of(0).entry_len();
    assert_eq!(has_room(&[of(most)]), Ok(()));
    let refused = has_room(&[of(most), of(1)]).unwrap_err().to_string();
    assert!(refused.contains("TABLE has 10"), "{refused}");
}

#[test]
fn variables_of_programs_and_global_ones_are_found_with_type_and_place() {
    let count = found("CONFIG0.RES0.TANK0.COUNTED.CV").unwrap();
    assert_eq!((&count.of[..], &length(&count.of)[..]), ("INT", "2"));
    let place = Place::Program {
        of: "TANK".into(),
        symbol: "RES0__TANK0".into(),
        member: "COUNTED.CV".into(),
    };
    assert_eq!(count.place, place);
    let shift = found("CONFIG0.SHIFT").unwrap();
    let place = Place::Global("CONFIG0__SHIFT".into());
    assert_eq!((&length(&shift.of)[..], shift.place), ("16", place));
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
        ("CONFIG0.RES0.TANK0.COLOUR", "the type HUE"),
        ("CONFIG0.RES0.TANK0.TIMERS", "the type TON[3], which"),
        ("CONFIG0.RES0.TANK0.LONG", "longer than 16 bytes"),
        ("CONFIG0.RES0.TANK0.MISSING", "third column"),
        ("CONFIG0.RES0.TANK0.SHIFT", "name the global variable"),
        ("CONFIG0.RES0.ODD0.X", "no instance of a program"),
    ] {
        let problem = found(name).unwrap_err();
        assert!(problem.contains(part), "{name}: {problem}");
    }
}
