//! Another version of a PLC program: what goes on in it, and what begins anew (H-31 to H-34).

mod common;

use std::fs;

use bumpless_controller::retain::{Record, Table};
use bumpless_controller::successor::Successor;
use bumpless_controller::{Application, CycleContext};
use bumpless_sidecar::plc::{Built, StateVariable, Succession, retained, variables};
use bumpless_sidecar::{ByVariables, Sidecar};
use common::project::{Project, built, cycle, example, runs};
use common::saved;

/// Outputs in the order of the example's `io.toml`: batches counted, and the phase of the sequence.
const BATCHES: usize = 4;
const PHASE: usize = 5;

/// Runs until two batches are counted and a third is under way, and returns the record of what is retained.
fn record_of_two_batches(built: &Built) -> Vec<u8> {
    let mut sidecar = retaining(built);
    let mut level = 0.0;
    let mut number = 0;
    loop {
        number += 1;
        let outputs = cycle(built, &mut sidecar, number, &[1.0, level, 20.0]);
        // The inlet fills the tank, the outlet empties it.
        level = (level + 10.0 * outputs[0] - 10.0 * outputs[1]).clamp(0.0, 100.0);
        if outputs[BATCHES] == 2.0 && outputs[PHASE] == 1.0 {
            break;
        }
        assert!(number < 1000, "no batch comes to its end");
    }
    record_of(&sidecar)
}

fn retaining(built: &Built) -> Sidecar {
    let file = fs::read(&built.output).expect("the executable");
    let variables = retained(&file).expect("a table");
    runs(built)
        .retaining(variables)
        .expect("a table of this program")
}

/// Another version, in which everything lies elsewhere.
fn moved_about(project: &Project) {
    project.replace(
        "POUS.h",
        "  TON SOAK;",
        "  __DECLARE_VAR(TIME,SINCE_WHEN)\n  TON SOAK;",
    );
    project.replace("Res0.c", "BOOL FAST;", "TIME MORE[7];\nBOOL FAST;");
}

fn another_version_goes_on_with_what_is_retained_and_begins_the_rest_anew() {
    let record = record_of_two_batches(example());
    let project = Project::new();
    moved_about(&project);
    // A global variable is retained besides.
    project.replace(
        "Config0.c",
        "// CONFIGURATION CONFIG0",
        "struct { UINT value; BYTE flags; } CONFIG0__SHIFTS = {3, 0};",
    );
    project.replace(
        "VARIABLES.csv",
        "// Variables",
        "// Variables\n99;VAR;CONFIG0.SHIFTS;CONFIG0.SHIFTS;UINT;",
    );
    project.replace("io.toml", "retain = [", "retain = [\"CONFIG0.SHIFTS\", ");
    let built = built(&project);
    let mut sidecar = retaining(&built);
    let (mut state, table) = (
        saved(&sidecar),
        sidecar.retained().expect("a table").clone(),
    );
    let places = |table: &Table| {
        table
            .variables()
            .iter()
            .map(|it| it.offset)
            .collect::<Vec<_>>()
    };
    let before = retaining(example());
    assert_ne!(
        places(&table)[..1],
        places(before.retained().expect("a table"))[..],
        "it lies elsewhere"
    );
    let applied = table.apply(Record::parse(&record).expect("a record"), &mut state);
    assert_eq!(
        (applied.taken, &applied.added[..]),
        (1, &["CONFIG0.SHIFTS".to_owned()][..])
    );
    sidecar.load(&state).expect("its own state");
    let outputs = cycle(&built, &mut sidecar, 1, &[0.0, 50.0, 20.0]);
    assert_eq!((outputs[BATCHES], outputs[PHASE]), (2.0, 0.0));
    // What it retains itself has the global variable's value.
    let mut record = Vec::new();
    table.cut(&saved(&sidecar), &mut record);
    let entries: Vec<_> = Record::parse(&record)
        .expect("a record")
        .entries()
        .collect();
    assert_eq!(
        (entries[1].name, entries[1].value),
        ("CONFIG0.SHIFTS", &[3, 0][..])
    );
}

/// The example with a label, a recipe of `count` numbers, and global levels, all retained. In each cycle the recipe's last number grows, the
/// label gets a letter more, and a level follows the tick.
fn with_texts(project: &Project, count: usize) {
    project.replace(
        "lib/iec_std_lib.h",
        "#define TRUE 1",
        "typedef struct {\n\tint8_t len;\n\tuint8_t body[126];\n} STRING;\n#define TRUE 1",
    );
    project.replace(
        "lib/accessor.h",
        "#define __INIT_VAR",
        "#define __DECLARE_ARRAY_TYPE(type, base, size) typedef struct { base table size; } type;\n\
         #define __DECLARE_GLOBAL(type, domain, name) struct { type value; BYTE flags; } domain##__##name;\n#define __INIT_VAR",
    );
    project.replace(
        "POUS.h",
        "// PROGRAM TANK",
        &format!(
            "__DECLARE_ARRAY_TYPE(RECIPE_OF_{count},INT,[{count}])\n__DECLARE_ARRAY_TYPE(__ARRAY_OF_REAL_2_3,REAL,[2][3])\n// PROGRAM TANK"
        ),
    );
    project.replace(
        "POUS.h",
        "  __DECLARE_VAR(INT,STEP)",
        &format!(
            "  __DECLARE_VAR(INT,STEP)\n  __DECLARE_VAR(STRING,LABEL)\n  __DECLARE_VAR(RECIPE_OF_{count},RECIPE)"
        ),
    );
    project.replace(
        "POUS.c",
        "void TANK_body__(TANK *data__) {",
        &format!(
            "void TANK_body__(TANK *data__) {{\n  data__->RECIPE.value.table[{}] += 2;\n  \
             data__->LABEL.value.body[data__->LABEL.value.len & 63] = 'B' + data__->LABEL.value.len;\n  \
             data__->LABEL.value.len += 1;\n",
            count - 1
        ),
    );
    project.replace(
        "Config0.c",
        "// CONFIGURATION CONFIG0",
        "// CONFIGURATION CONFIG0\n__DECLARE_GLOBAL(__ARRAY_OF_REAL_2_3,CONFIG0,LEVELS)\n",
    );
    project.replace(
        "Config0.c",
        "  RES0_run__(tick);",
        "  RES0_run__(tick);\n  CONFIG0__LEVELS.value.table[1][0] = 0.5f * tick;",
    );
    project.replace(
        "VARIABLES.csv",
        "// Variables",
        "// Variables\n99;VAR;CONFIG0.RES0.TANK0.LABEL;CONFIG0.RES0.TANK0.LABEL;STRING;",
    );
    project.replace(
        "io.toml",
        "retain = [",
        "retain = [\"CONFIG0.RES0.TANK0.LABEL\", \"CONFIG0.RES0.TANK0.RECIPE\", \"CONFIG0.LEVELS\", ",
    );
}

/// What `sidecar` retains now.
fn record_of(sidecar: &Sidecar) -> Vec<u8> {
    let mut record = Vec::new();
    let table = sidecar.retained().expect("a table");
    table.cut(&saved(sidecar), &mut record);
    record
}

/// H-31, K-17.
fn strings_and_arrays_are_retained_as_long_as_they_are_of_the_same_length() {
    let first = Project::new();
    with_texts(&first, 3);
    let first = built(&first);
    let mut sidecar = retaining(&first);
    for number in 1..=5 {
        cycle(&first, &mut sidecar, number, &[0.0, 50.0, 20.0]);
    }
    let record = record_of(&sidecar);
    let before = Record::parse(&record).expect("a record");
    let values: Vec<_> = before
        .entries()
        .map(|it| (it.name, it.of, it.value))
        .collect();
    let levels: Vec<u8> = [0.0f32, 0.0, 0.0, 2.0, 0.0, 0.0]
        .iter()
        .flat_map(|it| it.to_le_bytes())
        .collect();
    assert_eq!(values[0], ("CONFIG0.LEVELS", "REAL[2][3]", &levels[..]));
    let (name, of, label) = values[2];
    assert_eq!(
        (name, of, label.len()),
        ("CONFIG0.RES0.TANK0.LABEL", "STRING", 127)
    );
    assert_eq!(&label[..7], b"\x05BCDEF\0");
    let recipe = [0, 0, 0, 0, 10, 0];
    assert_eq!(
        values[3],
        ("CONFIG0.RES0.TANK0.RECIPE", "INT[3]", &recipe[..])
    );

    // The next version, in which everything lies elsewhere, and one with a longer recipe.
    for (count, taken) in [(3, 4), (4, 3)] {
        let project = Project::new();
        with_texts(&project, count);
        moved_about(&project);
        let next = built(&project);
        let mut sidecar = retaining(&next);
        let (mut state, table) = (
            saved(&sidecar),
            sidecar.retained().expect("a table").clone(),
        );
        let applied = table.apply(before, &mut state);
        assert_eq!(applied.taken, taken, "{applied}");
        assert_eq!(applied.other_type.len() as u32, 4 - taken, "{applied}");
        sidecar.load(&state).expect("its own state");
        cycle(&next, &mut sidecar, 1, &[0.0, 50.0, 20.0]);
        let record = record_of(&sidecar);
        let after: Vec<_> = Record::parse(&record)
            .expect("a record")
            .entries()
            .collect();
        assert_eq!(&after[2].value[..7], b"\x06BCDEFG");
        let last = after[3].value.last_chunk::<2>().expect("a number");
        assert_eq!(i16::from_le_bytes(*last), if taken == 4 { 12 } else { 2 });
    }
}

/// K-15.
fn more_than_a_file_has_room_for_is_not_built() {
    let project = Project::new();
    with_texts(&project, 600_000);
    project.refused(&["RECIPE has 1200000 bytes", "shorter arrays"]);
}

/// Headers that tell another length than what was compiled.
fn an_array_that_is_not_what_the_headers_say_is_refused() {
    let project = Project::new();
    with_texts(&project, 3);
    project.replace(
        "POUS.h",
        "(RECIPE_OF_3,INT,[3])",
        "(RECIPE_OF_3,INT,[1 + 3])",
    );
    project.refused(&["CONFIG0.RES0.TANK0.RECIPE in \"retain\" has the type INT[1 + 3]"]);
    let project = Project::new();
    with_texts(&project, 3);
    project.replace(
        "Config0.c",
        "__DECLARE_GLOBAL(__ARRAY_OF_REAL_2_3,CONFIG0,LEVELS)",
        "__DECLARE_GLOBAL(REAL,CONFIG0,LEVELS)\n#if 0\n__DECLARE_GLOBAL(__ARRAY_OF_REAL_2_3,CONFIG0,LEVELS)\n#endif",
    );
    project.replace("Config0.c", "value.table[1][0]", "value");
    project.refused(&["CONFIG0.LEVELS is no REAL[2][3]"]);
}

/// The next version of the example: variables come and go, and all others lie elsewhere.
fn next_version(project: &Project) {
    project.replace(
        "POUS.h",
        "__DECLARE_VAR(BOOL,RUNNING)",
        "__DECLARE_VAR(TIME,LONGEST) __DECLARE_VAR(BOOL,RUNNING)",
    );
    project.replace(
        "POUS.h",
        "  TON SOAK;\n  CTU COUNTED;",
        "  __DECLARE_VAR(INT,SHIFT)\n  CTU COUNTED;\n  TON SOAK;",
    );
    project.replace(
        "POUS.c",
        "  TON_init__(&data__->SOAK,retain);",
        "  __INIT_VAR(data__->SHIFT,7,retain);\n  TON_init__(&data__->SOAK,retain);",
    );
    project.replace("Res0.c", "BOOL FAST;", "DINT SHIFTS = 12;\nBOOL FAST;");
    project.replace(
        "lib/iec_std_lib.h",
        "typedef float REAL",
        "typedef int32_t DINT;\ntypedef float REAL",
    );
}

fn told(built: &Built) -> Vec<StateVariable> {
    let found = variables(&fs::read(&built.output).expect("a file")).expect("a table");
    assert_eq!(found, built.variables);
    found
}

/// H-34: at each of these moments timer, counter, controller and sequence are somewhere else.
fn the_next_version_goes_on_with_timers_counters_and_controllers_wherever_they_lie() {
    let (first, project) = (example(), Project::new());
    next_version(&project);
    let next = built(&project);
    assert_ne!(first.owner, next.owner);
    let succession = Succession::between(&told(first), &told(&next));
    assert_eq!(succession.other_type, []);
    assert_eq!(succession.lost, [""; 0]);
    let added = ["RES0__TANK0.SHIFT", "RES0__TANK0.SOAK.LONGEST", "SHIFTS"];
    assert_eq!(succession.added, added);
    for part in ["SOAK.SINCE", "COUNTED.CV", "CONTROL.INTEGRAL", "STEP"] {
        let name = format!("RES0__TANK0.{part}");
        assert!(succession.kept.contains(&name), "{name}: {succession}");
    }
    let inputs = |number: u64| {
        let level = if number % 160 < 30 { 90.0 } else { 3.0 };
        [1.0, level, 20.0 + (number * 7 % 50) as f64]
    };
    let mut stays = runs(first);
    let mut followers = Vec::new();
    let (mut soaks, mut counts) = (0, 0.0);
    for number in 1..=400 {
        let outputs = cycle(first, &mut stays, number, &inputs(number));
        soaks += u64::from(outputs[5] == 2.0);
        counts = outputs[4];
        for (since, follower) in &mut followers {
            let mut own = outputs.clone();
            own.fill(0.0);
            let context = CycleContext {
                cycle: number,
                period: next.period,
            };
            let follower: &mut Successor<Sidecar, ByVariables> = follower;
            follower
                .execute(&context, &inputs(number), &mut own)
                .unwrap_or_else(|fault| panic!("{fault}"));
            assert_eq!(
                own, outputs,
                "cycle {number} of the one that follows since {since}"
            );
        }
        if [1, 20, 45, 77, 100, 180, 250].contains(&number) {
            let sidecar = runs(&next);
            let conversion = ByVariables::new(first.owner, succession.clone(), &sidecar);
            let mut follower = Successor::new(sidecar, conversion);
            follower
                .load(&saved(&stays))
                .expect("a state of the version before");
            followers.push((number, follower));
        }
    }
    assert!(
        soaks > 100 && counts >= 2.0,
        "{soaks} cycles of the timer, {counts} batches"
    );
    // What came has its initial value, and what is its own is taken as ever.
    let (_, follower) = &mut followers[0];
    let mut state = vec![0; follower.state_size_max()];
    let len = follower.save(&mut state);
    let at = |name: &str| {
        told(&next)
            .iter()
            .find(|it| it.name == name)
            .map(|it| it.offset as usize + 8)
    };
    let shift = at("RES0__TANK0.SHIFT").expect("a place");
    assert_eq!(state[shift..shift + 2], 7i16.to_le_bytes());
    follower.load(&state[..len]).expect("its own state");
}

/// H-34: such a variable is named, and nothing of it is taken for what it is not.
fn a_variable_of_another_type_in_the_next_version_is_named_and_begins_anew() {
    let (first, project) = (example(), Project::new());
    project.replace(
        "lib/iec_std_lib.h",
        "typedef float REAL",
        "typedef int32_t DINT;\ntypedef float REAL",
    );
    project.replace("POUS.h", "__DECLARE_VAR(INT,CV)", "__DECLARE_VAR(DINT,CV)");
    project.replace("io.toml", "retain = [", "# retain = [");
    let next = built(&project);
    let succession = Succession::between(&told(first), &told(&next));
    let other: Vec<_> = succession
        .other_type
        .iter()
        .map(|it| (&*it.name, &*it.was, &*it.is))
        .collect();
    assert_eq!(other, [("RES0__TANK0.COUNTED.CV", "INT", "DINT")]);
    let mut before = runs(first);
    for number in 1..=300 {
        let level = if number % 160 < 30 { 90.0 } else { 3.0 };
        cycle(first, &mut before, number, &[1.0, level, 20.0]);
    }
    let sidecar = runs(&next);
    let conversion = ByVariables::new(first.owner, succession, &sidecar);
    let mut next_one = Successor::new(sidecar, conversion);
    next_one.load(&saved(&before)).expect("what fits");
    let mut outputs = [0.0; 6];
    let context = CycleContext {
        cycle: 301,
        period: next.period,
    };
    next_one
        .execute(&context, &[0.0, 3.0, 20.0], &mut outputs)
        .unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(outputs[4], 0.0, "the batches are counted anew");
}

tests_and_programs!(
    another_version_goes_on_with_what_is_retained_and_begins_the_rest_anew,
    strings_and_arrays_are_retained_as_long_as_they_are_of_the_same_length,
    more_than_a_file_has_room_for_is_not_built,
    an_array_that_is_not_what_the_headers_say_is_refused,
    the_next_version_goes_on_with_timers_counters_and_controllers_wherever_they_lie,
    a_variable_of_another_type_in_the_next_version_is_named_and_begins_anew,
);
