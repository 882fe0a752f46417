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

/// A table as the compiler makes it.
fn compiled(rows: &[(u64, u32, &str, &str)]) -> Vec<u8> {
    let mut bytes = [b"\x7fELF before", &MARK[..]].concat();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((rows.len() as u32).to_le_bytes());
    for (address, len, of, name) in rows {
        bytes.extend(address.to_le_bytes());
        bytes.extend(len.to_le_bytes());
        for (text, width) in [(of, OF), (name, NAME)] {
            let mut field = text.as_bytes().to_vec();
            field.resize(width, 0);
            bytes.extend(field);
        }
    }
    bytes.extend(b"behind");
    bytes
}

const COUNT: (u64, u32, &str, &str) = (STATE_ADDRESS + 40, 2, "INT", "COUNT");

#[test]
fn the_table_in_an_executable_is_read_back() {
    let expected = Retained {
        name: "COUNT".into(),
        of: "INT".into(),
        offset: HEAD + 40,
        len: 2,
    };
    assert_eq!(retained(&compiled(&[COUNT])), Ok(vec![expected]));
    assert_eq!(retained(&compiled(&[])), Ok(vec![]));
    assert_eq!(retained(b"of an older build"), Ok(vec![]));
    let longest = "N".repeat(NAME);
    let read = retained(&compiled(&[(STATE_ADDRESS, 16, "TIME", &longest)])).unwrap();
    assert_eq!(read[0].name, longest);
}

#[test]
fn a_damaged_table_is_refused() {
    let wrong = [
        (STATE_ADDRESS - 1, 2, "INT", "COUNT"),
        (STATE_ADDRESS, 4, "INT", "COUNT"),
        (STATE_ADDRESS, u32::MAX, "INT", "COUNT"),
        (STATE_ADDRESS, 2, "WIDE", "COUNT"),
        (STATE_ADDRESS, 2, "INT", ""),
    ];
    for row in wrong {
        assert_eq!(retained(&compiled(&[row])), Err(Damaged), "{row:?}");
    }
    let whole = compiled(&[COUNT]);
    assert_eq!(retained(&whole[..whole.len() - 20]), Err(Damaged), "cut");
    assert_eq!(
        retained(&[&whole[..], &whole].concat()),
        Err(Damaged),
        "twice"
    );
    let at = b"\x7fELF before".len() + MARK.len();
    for (place, value) in [(at, 2), (at + 7, 0xff)] {
        let mut bent = whole.clone();
        bent[place] = value;
        assert_eq!(retained(&bent), Err(Damaged), "{place}");
    }
}
