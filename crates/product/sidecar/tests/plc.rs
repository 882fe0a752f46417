//! PLC programs: what is built of generated C, and what is refused with which words (H-21 to H-27).

mod common;

use std::path::Path;

use bumpless_controller::{Application, CycleContext};
use bumpless_sidecar::plc::build;
use bumpless_sidecar::{Cause, Hash};
use common::project::{Project, built, cycle, example, options, runs};
use common::{need_compiler, saved};

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
    let options = options(need_compiler(), empty.path().join("program"));
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
    project.refused(&["strucpp.cpp is C++", "has no generated.hpp", "MATIEC"]);
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
        "generate the project's code",
    ]);
    let project = Project::new();
    project.replace("VARIABLES.csv", "COUNTED.CV;INT;", "COUNTED.CX;INT;");
    project.refused(&[
        "are not what VARIABLES.csv or generated.hpp says",
        "COUNTED",
    ]);
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
    the_same_sources_give_the_same_file_in_another_folder,
    what_cannot_be_retained_is_refused_with_everything_else_at_once,
    a_variable_that_is_not_what_the_list_says_is_found_by_the_compiler,
    an_older_executable_stays_if_the_new_one_cannot_be_built,
);
