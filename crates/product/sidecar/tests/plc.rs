//! PLC programs: what is built of generated C, and what is refused with which words (H-21 to H-27).

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Tool;
use std::sync::OnceLock;

use bumpless_controller::retain::{Record, Table};
use bumpless_controller::successor::Successor;
use bumpless_controller::{Application, CycleContext};
use bumpless_sidecar::plc::{BuildFault, Built, Options, Succession, build, retained, variables};
use bumpless_sidecar::{ByVariables, Cause, Command, Hash, Shape, Sidecar};
use common::{need_compiler, patient, saved, started, workspace};
use tempfile::TempDir;

/// A copy of the example that a test may spoil.
struct Project {
    place: TempDir,
}

impl Project {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a folder");
        let copied = Tool::new("cp")
            .arg("-R")
            .arg(workspace("examples/programs/plc"))
            .arg(place.path().join("project"))
            .status();
        assert!(copied.is_ok_and(|status| status.success()));
        Self { place }
    }

    fn folder(&self) -> PathBuf {
        self.place.path().join("project")
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder().join(name), text).expect("a file");
    }

    fn replace(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.folder().join(name)).expect("a file");
        assert!(text.contains(from), "{name} has no {from:?}");
        self.write(name, &text.replace(from, to));
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.folder().join(name)).expect("a file");
    }

    fn output(&self) -> PathBuf {
        self.place.path().join("program")
    }

    fn build(&self) -> Result<Built, BuildFault> {
        self.build_with(need_compiler())
    }

    fn build_with(&self, compiler: PathBuf) -> Result<Built, BuildFault> {
        let options = Options {
            compiler,
            includes: Vec::new(),
            output: self.output(),
        };
        build(&self.folder(), &options, &mut |_| ())
    }

    /// What is said of it, which must have each of `parts`.
    fn refused(&self, parts: &[&str]) {
        let fault = self.build().expect_err("it must not be built").to_string();
        for part in parts {
            assert!(fault.contains(part), "{part:?} in {fault}");
        }
        assert!(!self.output().exists(), "nothing is left");
    }
}

fn shape(built: &Built) -> Shape {
    Shape {
        inputs: built.inputs.len(),
        outputs: built.outputs.len(),
        state_max: built.state_len,
    }
}

fn runs(built: &Built) -> Sidecar {
    started(&Command::new(&built.output), shape(built), patient())
}

fn built(project: &Project) -> Built {
    project.build().unwrap_or_else(|fault| panic!("{fault}"))
}

/// The example as it is, built once.
fn example() -> &'static Built {
    static EXAMPLE: OnceLock<(Project, Built)> = OnceLock::new();
    let (_, built) = EXAMPLE.get_or_init(|| {
        need_compiler();
        let project = Project::new();
        let built = built(&project);
        (project, built)
    });
    built
}

fn cycle(built: &Built, sidecar: &mut Sidecar, cycle: u64, inputs: &[f64]) -> Vec<f64> {
    let mut outputs = vec![0.0; built.outputs.len()];
    let context = CycleContext {
        cycle,
        period: built.period,
    };
    sidecar
        .run_cycle(&context, inputs, &mut outputs)
        .unwrap_or_else(|fault| panic!("{fault}"));
    outputs
}

fn what_was_built_tells_period_state_and_hash() {
    let built = example();
    assert_eq!(built.period.as_millis(), 20);
    assert!((64..8192).contains(&built.state_len), "{}", built.state_len);
    assert_eq!(built.hash, Hash::of_file(&built.output).expect("a file"));
    assert_eq!(built.sources, ["Config0.c", "Res0.c", "glueVars.c"]);
    assert_eq!(
        built.left_out,
        [("POUS.c".into(), "another file includes it")]
    );
    let mut fault = runs(built);
    let other = CycleContext {
        cycle: 1,
        period: bumpless_base::Duration::from_millis(10),
    };
    let cause = fault
        .run_cycle(&other, &[0.0; 3], &mut [0.0; 6])
        .expect_err("a fault")
        .cause;
    assert!(matches!(cause, Cause::Period { .. }), "{cause:?}");
}

fn trap_two_builds_have_two_identities_and_the_same_build_one() {
    let project = Project::new();
    let first = example();
    let state = saved(&runs(first));
    assert_eq!(
        runs(&built(&project)).load(&state),
        Ok(()),
        "the same again"
    );
    project.replace(
        "POUS.h",
        "__DECLARE_VAR(INT,STEP)",
        "__DECLARE_VAR(INT,UNUSED) __DECLARE_VAR(INT,STEP)",
    );
    let second = built(&project);
    assert_ne!((first.hash, first.owner), (second.hash, second.owner));
    assert!(runs(&second).load(&state).is_err());
}

/// H-30: the tasks of a file are told, and each runs in its cycles, in step through a move.
fn tasks_of_different_intervals_run_in_their_cycles_through_moves_of_the_state() {
    let project = Project::new();
    // 60 and 100 ms have 20 ms in common, and no task runs in each cycle.
    project.replace("Res0.c", "tick % 1)", "tick % 3)");
    project.replace("Res0.c", "tick % 25)", "tick % 5)");
    project.replace("Config0.c", "= 25UL", "= 15UL");
    let built = built(&project);
    let told: Vec<_> = built.tasks.iter().map(|it| (&*it.name, it.every)).collect();
    assert_eq!(told, [("FAST", 3), ("SLOW", 5)]);
    let mut sidecars = [runs(&built), runs(&built)];
    let mut before = vec![0.0; 6];
    let mut ran = [Vec::new(), Vec::new()];
    for number in 1..=60 {
        let inputs = [1.0, 90.0, 20.0 + number as f64 / 2.0];
        let [kept, moved] = &mut sidecars;
        let outputs = cycle(&built, kept, number, &inputs);
        assert_eq!(outputs, cycle(&built, moved, number, &inputs), "{number}");
        // The heater follows its temperature, and the lamp changes each time.
        let changed = [outputs[3] != before[3], outputs[2] != before[2]];
        for (ran, _) in ran.iter_mut().zip(changed).filter(|(_, changed)| *changed) {
            ran.push(number);
        }
        if number % 7 == 0 {
            let mut successor = runs(&built);
            successor.load(&saved(moved)).expect("its own state");
            *moved = successor;
        }
        before = outputs;
    }
    assert_eq!(
        ran[1],
        (1..=60).filter(|it| it % 5 == 1).collect::<Vec<_>>()
    );
    assert!(
        !ran[0].is_empty() && ran[0].iter().all(|it| it % 3 == 1),
        "{:?}",
        ran[0]
    );
}

/// Pointers that the program wrote itself when it began point to its variables in every process.
fn trap_addresses_in_the_state_are_valid_in_another_process() {
    let built = example();
    let (mut one, mut other) = (runs(built), runs(built));
    for number in 1..=10 {
        cycle(built, &mut one, number, &[1.0, 50.0, 20.0]);
    }
    other.load(&saved(&one)).expect("its own state");
    let (a, b) = (
        cycle(built, &mut one, 11, &[0.0, 90.0, 20.0]),
        cycle(built, &mut other, 11, &[0.0, 90.0, 20.0]),
    );
    assert_eq!(a, b);
    assert_eq!(a[5], 2.0, "heating");
}

fn trap_tick_wraps_where_the_program_says() {
    let built = example();
    let mut sidecar = runs(built);
    let blinks: Vec<bool> = (1..=80)
        .map(|number| cycle(built, &mut sidecar, number, &[0.0; 3])[2] == 1.0)
        .collect();
    let changes: Vec<usize> = (1..80).filter(|&at| blinks[at] != blinks[at - 1]).collect();
    assert!(blinks[0], "the first cycle has tick 0");
    assert_eq!(changes, [25, 50, 75]);
    // Cycle numbers beyond 32 bits.
    let far = (1_u64 << 40) / 25 * 25 + 1;
    let before = cycle(built, &mut sidecar, far - 1, &[0.0; 3])[2];
    assert_ne!(cycle(built, &mut sidecar, far, &[0.0; 3])[2], before);
}

fn values_are_rounded_and_limited_to_their_types() {
    let project = Project::new();
    project.replace(
        "POUS.c",
        "__SET_LOCATED(data__->,BATCHES,__GET_VAR(data__->COUNTED.CV))",
        "__SET_LOCATED(data__->,BATCHES,__GET_LOCATED(data__->LEVEL))",
    );
    let built = built(&project);
    let mut sidecar = runs(&built);
    for (number, (given, got)) in [
        (1.5, 2.0),
        (2.5, 2.0),
        (-0.5, 0.0),
        (1e9, 32767.0),
        (-1e9, -32768.0),
        (f64::INFINITY, 32767.0),
        (f64::NAN, 0.0),
    ]
    .into_iter()
    .enumerate()
    {
        let outputs = cycle(&built, &mut sidecar, number as u64 + 1, &[0.0, given, 0.0]);
        assert_eq!(outputs[4], got, "{given}");
    }
}

fn a_beremiz_project_brings_no_glue_and_gets_its_time_from_the_host() {
    let project = Project::new();
    project.remove("glueVars.c");
    project.remove("io.toml");
    project.write("plc_main.c", "this is not even C");
    let beremiz = built(&project);
    assert!(
        beremiz
            .left_out
            .iter()
            .any(|(name, _)| name == "plc_main.c")
    );
    let addresses: Vec<_> = beremiz
        .outputs
        .iter()
        .map(|it| it.address.as_str())
        .collect();
    assert_eq!(
        addresses,
        ["%QX0.0", "%QX0.1", "%QX0.2", "%QB4", "%QW0", "%QD0"]
    );
    let openplc = example();
    let (mut one, mut other) = (runs(&beremiz), runs(openplc));
    let mut phases = [false; 4];
    for number in 1..=300 {
        let level = if number < 200 { number as f64 } else { 0.0 };
        let inputs = [1.0, level, 40.0];
        // In the order of the addresses: bits, word, double word.
        let b = cycle(&beremiz, &mut one, number, &inputs);
        let o = cycle(openplc, &mut other, number, &inputs);
        assert_eq!(
            [b[0], b[1], b[2], b[5], b[4], b[3]],
            o[..],
            "cycle {number}"
        );
        phases[o[5] as usize] = true;
    }
    assert_eq!(phases, [true; 4], "the timer has run");
}

fn a_plc_program_killed_in_mid_cycle_goes_on_as_if_nothing_had_been() {
    let built = example();
    let inputs = |cycle: u64, inputs: &mut [f64]| {
        inputs.copy_from_slice(&[1.0, (cycle % 200) as f64, 30.0]);
    };
    common::survives_kills(|| runs(built), (800, 100), built.period, inputs);
}

fn symbols_that_are_missing_are_named() {
    let project = Project::new();
    project.remove("Config0.c");
    project.refused(&[
        "config_init__ is missing",
        "config_run__ is missing",
        "common_ticktime__ is missing",
        "MATIEC",
    ]);
    let project = Project::new();
    project.replace(
        "POUS.c",
        "CTU_body__(&data__->COUNTED);",
        "{ extern void OSCAT_FILTER(void); OSCAT_FILTER(); }",
    );
    project.refused(&["the symbol OSCAT_FILTER is missing", "add the file"]);
}

fn what_cannot_be_moved_is_refused_by_name() {
    for (call, parts) in [
        (
            "{ extern void *malloc(unsigned long); static void *p; p = malloc(9); *(volatile char *)p = 1; }",
            &["malloc()", "heap"][..],
        ),
        (
            "{ extern int socket(int, int, int); socket(2, 1, 0); }",
            &["socket()", "sockets"],
        ),
        (
            "{ extern int pthread_create(); pthread_create(); }",
            &["pthread_create()", "threads"],
        ),
        (
            "{ extern long time(long *); time(0); }",
            &["time()", "clock"],
        ),
        ("{ extern int rand(void); rand(); }", &["rand()", "random"]),
    ] {
        let project = Project::new();
        project.replace("POUS.c", "CTU_body__(&data__->COUNTED);", call);
        project.refused(parts);
    }
    let project = Project::new();
    project.replace(
        "Res0.c",
        "BOOL FAST;",
        "BOOL FAST;\n__thread int PER_THREAD = 3;",
    );
    project.refused(&[".tdata", "outside of its state"]);
}

fn a_compiler_that_is_missing_is_named_with_the_remedy() {
    for name in ["/nowhere/cc", "no-such-compiler"] {
        let fault = Project::new()
            .build_with(name.into())
            .expect_err("a fault")
            .to_string();
        assert!(
            fault.contains(name) && fault.contains("apt install build-essential"),
            "{fault}"
        );
    }
}

fn a_folder_that_is_no_project_is_refused_with_what_it_lacks() {
    let empty = tempfile::tempdir().expect("a folder");
    let options = Options {
        compiler: need_compiler(),
        includes: Vec::new(),
        output: empty.path().join("program"),
    };
    let told = |folder: &Path| {
        build(folder, &options, &mut |_| ())
            .expect_err("a fault")
            .to_string()
    };
    assert!(told(empty.path()).contains("has no C file"));
    assert!(told(Path::new("/nowhere")).contains("cannot be read"));
    let project = Project::new();
    project.remove("LOCATED_VARIABLES.h");
    project.refused(&["LOCATED_VARIABLES.h cannot be read"]);
    let project = Project::new();
    project.remove("lib/iec_std_lib.h");
    project.refused(&["does not compile", "--include"]);
    let project = Project::new();
    project.write("strucpp.cpp", "");
    project.refused(&["strucpp.cpp is C++", "MATIEC"]);
    let project = Project::new();
    project.replace("Config0.c", "20000000ULL", "0ULL");
    project.refused(&["common_ticktime__ is 0", "INTERVAL"]);
}

fn located_variables_without_a_place_or_with_two_are_refused() {
    let project = Project::new();
    project.write(
        "io.toml",
        "inputs = [\"%IX0.0\", \"%IW0\", \"%IW0\"]\noutputs = []\n",
    );
    project.refused(&[
        "%IW0 stands twice",
        "%ID0 (REAL) is declared",
        "%QX0.0 (BOOL) is declared",
    ]);
}

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
    let mut record = Vec::new();
    let table = sidecar.retained().expect("a table");
    table.cut(&saved(&sidecar), &mut record);
    record
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

fn told(built: &Built) -> Vec<bumpless_sidecar::plc::StateVariable> {
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

/// H-33: folders and what a debugger would use are not in it.
fn the_same_sources_give_the_same_file_in_another_folder() {
    let (project, other) = (Project::new(), Project::new());
    assert_eq!(built(&project).hash, built(&other).hash);
}

fn what_cannot_be_retained_is_refused_with_everything_else_at_once() {
    let project = Project::new();
    project.write(
        "io.toml",
        "inputs = [\"%IX0.0\", \"%IW0\", \"%ID0\"]\noutputs = []\nretain = [\"CV\", \"CONFIG0.RES0.TANK0.LEVEL\", \
         \"CONFIG0.RES0.TANK0.STEP\", \"CONFIG0.RES0.TANK0.STEP\", \"CONFIG0.RES0.TANK0.SOAK\"]\n",
    );
    project.refused(&[
        "io.toml: CV in \"retain\" is not in VARIABLES.csv; is CONFIG0.RES0.TANK0.COUNTED.CV meant?",
        "io.toml: CONFIG0.RES0.TANK0.LEVEL in \"retain\" has an address",
        "CONFIG0.RES0.TANK0.STEP stands twice in \"retain\"; remove one",
        "CONFIG0.RES0.TANK0.SOAK in \"retain\" is an instance of TON",
        "%QX0.0 (BOOL) is declared",
    ]);
    let project = Project::new();
    project.replace(
        "io.toml",
        "retain = [\"CONFIG0.RES0.TANK0.COUNTED.CV\"]",
        "retain = 3",
    );
    project.refused(&["\"retain\" is no list of names"]);
    let project = Project::new();
    project.remove("VARIABLES.csv");
    project.refused(&["VARIABLES.csv cannot be read", "leave \"retain\" out"]);
}

fn a_variable_that_is_not_what_the_list_says_is_found_by_the_compiler() {
    let project = Project::new();
    project.replace("VARIABLES.csv", "COUNTED.CV;INT;", "COUNTED.CV;DINT;");
    project.refused(&[
        "CONFIG0.RES0.TANK0.COUNTED.CV is no DINT",
        "generate the project's C",
    ]);
    let project = Project::new();
    project.replace("VARIABLES.csv", "COUNTED.CV;INT;", "COUNTED.CX;INT;");
    project.refused(&["are not what VARIABLES.csv says of them", "COUNTED"]);
}

fn an_older_executable_stays_if_the_new_one_cannot_be_built() {
    let project = Project::new();
    let before = built(&project).hash;
    project.replace("POUS.c", "STEP", "NO_SUCH_FIELD");
    assert!(project.build().is_err());
    assert_eq!(Hash::of_file(&project.output()).expect("a file"), before);
}

tests_and_programs!(
    what_was_built_tells_period_state_and_hash,
    trap_two_builds_have_two_identities_and_the_same_build_one,
    tasks_of_different_intervals_run_in_their_cycles_through_moves_of_the_state,
    trap_addresses_in_the_state_are_valid_in_another_process,
    trap_tick_wraps_where_the_program_says,
    values_are_rounded_and_limited_to_their_types,
    a_beremiz_project_brings_no_glue_and_gets_its_time_from_the_host,
    a_plc_program_killed_in_mid_cycle_goes_on_as_if_nothing_had_been,
    symbols_that_are_missing_are_named,
    what_cannot_be_moved_is_refused_by_name,
    a_compiler_that_is_missing_is_named_with_the_remedy,
    a_folder_that_is_no_project_is_refused_with_what_it_lacks,
    located_variables_without_a_place_or_with_two_are_refused,
    another_version_goes_on_with_what_is_retained_and_begins_the_rest_anew,
    the_next_version_goes_on_with_timers_counters_and_controllers_wherever_they_lie,
    a_variable_of_another_type_in_the_next_version_is_named_and_begins_anew,
    the_same_sources_give_the_same_file_in_another_folder,
    what_cannot_be_retained_is_refused_with_everything_else_at_once,
    a_variable_that_is_not_what_the_list_says_is_found_by_the_compiler,
    an_older_executable_stays_if_the_new_one_cannot_be_built,
);
