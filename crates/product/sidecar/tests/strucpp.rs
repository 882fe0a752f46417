//! PLC programs of STruC++: what is built of its C++, how it runs, and what is refused (H-37 to H-44).

mod common;

use std::fs;
use std::path::Path;

use bumpless_controller::retain::Record;
use bumpless_controller::successor::Successor;
use bumpless_controller::{Application, CycleContext};
use bumpless_sidecar::plc::{Built, Succession, retained};
use bumpless_sidecar::{ByVariables, Command, Sidecar};
use common::project::{Project, built, cycle, options, runs, shape};
use common::{Seen, Sequence, first_difference_with, need_compiler, patient, saved, started};

fn project() -> Project {
    need_compiler();
    Project::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/strucpp"))
}

/// Inputs in the order of their addresses: %IX1.2, %IW0, %IW1, %ID4.
fn inputs(button: f64, level: f64, choice: f64, set_point: f64) -> [f64; 4] {
    [button, level, choice, set_point]
}

/// What the project of this folder does, written again.
#[derive(Default)]
struct Twin {
    smooth: f64,
    rises: Option<u64>,
    table: [f64; 5],
    cycles: f64,
    lamp: f64,
}

impl Twin {
    /// Outputs in the order of their addresses: %QX0.3, %QW0, %QW7, %QD2.
    fn outputs(&mut self, number: u64, [button, level, choice, set_point]: [f64; 4]) -> [f64; 4] {
        let now = (number - 1) * 20;
        match level > 10.0 {
            true => self.rises = self.rises.or(Some(now)),
            false => self.rises = None,
        }
        let late = self.rises.is_some_and(|since| now - since >= 200);
        self.smooth += 0.25 * (set_point - level - self.smooth);
        self.cycles += 1.0;
        self.table[choice as usize - 1] += 1.0;
        if number % 5 == 1 {
            self.lamp += 1000.0 + 100.0 + self.cycles;
        }
        let alarm = f64::from(u8::from(late || button != 0.0));
        [alarm, self.smooth.trunc(), self.table[0], self.lamp]
    }
}

fn values_go_by_address_and_tasks_run_by_priority_in_their_cycles() {
    let project = project();
    let built = built(&project);
    let told = |list: &[bumpless_sidecar::plc::Located]| -> Vec<String> {
        let row = |it: &bumpless_sidecar::plc::Located| format!("{} {}", it.address, it.of);
        list.iter().map(row).collect()
    };
    let of_inputs = ["%IX1.2 BOOL", "%IW0 INT", "%IW1 INT", "%ID4 REAL"];
    assert_eq!(told(&built.inputs), of_inputs);
    let of_outputs = ["%QX0.3 BOOL", "%QW0 INT", "%QW7 UINT", "%QD2 DINT"];
    assert_eq!(told(&built.outputs), of_outputs);
    assert_eq!(built.period.as_millis(), 20);
    let tasks: Vec<_> = built.tasks.iter().map(|it| (&*it.name, it.every)).collect();
    assert_eq!(tasks, [("FAST", 1), ("RARE", 5)]);
    let (mut sidecar, mut twin) = (runs(&built), Twin::default());
    for number in 1..=100 {
        let level = if number % 40 < 25 { 12.0 } else { 3.0 };
        let choice = (number % 5 + 1) as f64;
        let inputs = inputs(f64::from(u8::from(number == 38)), level, choice, 21.5);
        let outputs = cycle(&built, &mut sidecar, number, &inputs);
        assert_eq!(outputs, twin.outputs(number, inputs), "cycle {number}");
    }
}

/// 10,000 cycles, 100 moves: pointers, tables of functions, the image and the time are all in the state.
fn a_program_of_strucpp_goes_on_wherever_its_state_is_moved() {
    let project = project();
    let built = built(&project);
    let (command, shape) = (Command::new(&built.output), shape(&built));
    let mut sequence = Sequence(5);
    let inputs = move |cycle: u64, values: &mut [f64]| {
        let level = if cycle % 90 < 40 { 12.0 } else { 3.0 };
        let choice = (sequence.below(5) + 1) as f64;
        values.copy_from_slice(&inputs(0.0, level, choice, sequence.below(40) as f64));
    };
    let make = || started(&command, shape, patient());
    let mut alarms = |outputs: &[f64], seen: &mut Seen| seen.batches += outputs[0];
    let (difference, seen) =
        first_difference_with(make, (10_000, 100), built.period, inputs, &mut alarms);
    assert_eq!(difference, None);
    assert!(seen.batches > 1000.0, "the timer has run: {seen:?}");
}

/// What is said of a cycle in which the program cannot go on, and that nothing of the cycle counts.
fn stopped(project: &Project) -> String {
    let built = built(project);
    let mut sidecar = runs(&built);
    for number in 1..=6 {
        cycle(&built, &mut sidecar, number, &inputs(0.0, 0.0, 1.0, 0.0));
    }
    let before = saved(&sidecar);
    let context = CycleContext {
        cycle: 7,
        period: built.period,
    };
    let wrong = inputs(0.0, 0.0, 9.0, 0.0);
    let fault = sidecar
        .run_cycle(&context, &wrong, &mut [0.0; 4])
        .expect_err("a fault");
    assert_eq!(saved(&sidecar), before, "nothing of the cycle counts");
    fault.to_string()
}

fn an_index_that_an_array_has_not_stops_the_cycle_and_is_named() {
    let told = stopped(&project());
    assert!(told.contains("an array has no such index: A"), "{told}");
}

/// As versions do that have no `iec_fault.hpp`, and blocks in C++.
fn an_exception_stops_the_cycle_and_is_named() {
    let project = project();
    let headers = "strucpp_runtime/include/iec_std_lib.hpp";
    project.replace(
        headers,
        "#include \"iec_fault.hpp\"",
        "#include <stdexcept>",
    );
    project.replace(
        headers,
        "iec_runtime_fault(IecFault::ArrayBounds, \"A\")",
        "throw std::out_of_range(\"no such element\")",
    );
    project.remove("strucpp_runtime/include/iec_fault.hpp");
    let told = stopped(&project);
    assert!(
        told.contains("the program throws: no such element"),
        "{told}"
    );
}

fn retaining(built: &Built) -> Sidecar {
    let file = fs::read(&built.output).expect("the executable");
    runs(built)
        .retaining(retained(&file).expect("a table"))
        .expect("a table of this program")
}

fn variables_of_instances_and_global_ones_are_retained_by_name() {
    let project = project();
    project.replace(
        "generated.hpp",
        "GlobalVar<IEC_UINT> COUNT{0};",
        "GlobalVar<IEC_UINT> COUNT{0};\ninline GlobalVar<IEC_TIME> SINCE{7};",
    );
    let io = "inputs = [\"%ID4\", \"%IX1.2\", \"%IW0\", \"%IW1\"]\n\
              outputs = [\"%QX0.3\", \"%QW0\", \"%QW7\", \"%QD2\"]\n\
              retain = [\"INST0.TOTAL\", \"INST0.SMOOTH.Y\", \"SINCE\"]\n";
    project.write("io.toml", io);
    let built = built(&project);
    let linked = retained(&fs::read(&built.output).expect("the executable")).expect("a table");
    let of: Vec<_> = linked.iter().map(|it| (&*it.of, it.len)).collect();
    assert_eq!(of, [("DINT", 4), ("LREAL", 8), ("LTIME", 8)]);
    let mut sidecar = retaining(&built);
    for number in 1..=3 {
        cycle(&built, &mut sidecar, number, &[8.0, 0.0, 0.0, 1.0]);
    }
    let (mut record, table) = (Vec::new(), sidecar.retained().expect("a table").clone());
    table.cut(&saved(&sidecar), &mut record);
    let parsed = Record::parse(&record).expect("a record");
    let entries: Vec<_> = parsed.entries().map(|it| (it.name, it.value)).collect();
    let smooth = 4.625_f64.to_le_bytes();
    assert_eq!(entries[0], ("INST0.SMOOTH.Y", &smooth[..]));
    assert_eq!(entries[1], ("INST0.TOTAL", &3i32.to_le_bytes()[..]));
    assert_eq!(entries[2], ("SINCE", &7i64.to_le_bytes()[..]));
    // A program that begins anew goes on with them.
    let mut fresh = retaining(&built);
    let mut state = saved(&fresh);
    assert_eq!(table.apply(parsed, &mut state).taken, 3);
    fresh.load(&state).expect("its own state");
    let outputs = cycle(&built, &mut fresh, 1, &[8.0, 0.0, 0.0, 1.0]);
    assert_eq!(outputs[1], (4.625_f64 + 0.25 * (8.0 - 4.625)).trunc());
}

/// The next version of the project: variables come, and all others lie elsewhere.
fn next_version(project: &Project) -> Built {
    project.replace(
        "generated.hpp",
        "    TON DELAY;\n    FILTER SMOOTH;",
        "    IEC_DINT MORE;\n    FILTER SMOOTH;\n    TON DELAY;",
    );
    project.replace(
        "generated.hpp",
        "inline GlobalVar<IEC_UINT> COUNT{0};",
        "inline GlobalVar<IEC_INT> SHIFTS{12};\ninline GlobalVar<IEC_UINT> COUNT{0};",
    );
    built(project)
}

/// H-44: timer, filter, table, memory at an address, and what goes over it.
fn the_next_version_goes_on_with_all_that_it_still_has() {
    let (project, other) = (project(), project());
    let (first, next) = (built(&project), next_version(&other));
    let succession = Succession::between(&first.variables, &next.variables);
    assert_eq!(succession.other_type, []);
    assert_eq!(succession.lost, [""; 0]);
    assert_eq!(succession.added, ["INST0.MORE", "SHIFTS.value"]);
    for name in [
        "INST0.DELAY.START",
        "INST0.TABLE.of_",
        "INST0.SMOOTH.Y",
        "bumpless_at_MW5",
    ] {
        assert!(
            succession.kept.iter().any(|it| it == name),
            "{name}: {succession:?}"
        );
    }
    let inputs = |number: u64| {
        let level = if number % 40 < 25 { 12.0 } else { 3.0 };
        inputs(0.0, level, (number % 5 + 1) as f64, 21.5)
    };
    let (mut stays, mut followers) = (runs(&first), Vec::new());
    for number in 1..=200 {
        let outputs = cycle(&first, &mut stays, number, &inputs(number));
        for (since, follower) in &mut followers {
            let context = CycleContext {
                cycle: number,
                period: next.period,
            };
            let follower: &mut Successor<Sidecar, ByVariables> = follower;
            let mut own = vec![0.0; outputs.len()];
            follower
                .execute(&context, &inputs(number), &mut own)
                .unwrap_or_else(|fault| panic!("{fault}"));
            assert_eq!(own, outputs, "cycle {number}, next version since {since}");
        }
        if [1, 6, 31, 35, 50, 77].contains(&number) {
            let sidecar = runs(&next);
            let conversion = ByVariables::new(first.owner, succession.clone(), &sidecar);
            let mut follower = Successor::new(sidecar, conversion);
            follower
                .load(&saved(&stays))
                .expect("a state of the version before");
            followers.push((number, follower));
        }
    }
}

fn a_variable_of_another_type_in_the_next_version_is_named() {
    let (first, project) = (built(&project()), project());
    project.replace(
        "generated.hpp",
        "    IEC_DINT TOTAL;\n    IEC_DINT *LAST;",
        "    IEC_INT TOTAL;\n    IEC_INT *LAST;",
    );
    let next = built(&project);
    let succession = Succession::between(&first.variables, &next.variables);
    let other = &succession.other_type;
    let other: Vec<_> = other
        .iter()
        .map(|it| (&*it.name, &*it.was, &*it.is))
        .collect();
    assert_eq!(other, [("INST0.TOTAL", "DINT", "INT")]);
}

fn what_cannot_be_retained_is_refused_with_its_reason() {
    let project = project();
    project.write(
        "io.toml",
        "inputs = [\"%ID4\", \"%IX1.2\", \"%IW0\", \"%IW1\"]\n\
         outputs = [\"%QX0.3\", \"%QW0\", \"%QW7\", \"%QD2\"]\n\
         retain = [\"INST0.LEVEL\", \"SETPOINT\", \"INST0.DELAY\", \"INST0.NONE\", \"TOTAL\"]\n",
    );
    project.refused(&[
        "INST0.LEVEL in \"retain\" has an address",
        "SETPOINT in \"retain\" has an address",
        "INST0.DELAY in \"retain\" has the type TON",
        "INST0.NONE in \"retain\" is not in generated.hpp",
        "TOTAL in \"retain\" is not in generated.hpp",
    ]);
}

fn what_a_program_of_strucpp_must_not_do_is_refused_by_name() {
    for (file, from, to, parts) in [
        (
            "programs.cpp",
            "TOTAL = *LAST + 1;",
            "static int *p; p = new int[3]; TOTAL = *p;",
            &["new[] (in ST: __NEW)", "heap"][..],
        ),
        (
            "programs.cpp",
            "#include \"generated.hpp\"",
            "#include \"generated.hpp\"\n#include <chrono>\nlong bent() { return std::chrono::system_clock::now().time_since_epoch().count(); }",
            &["CURRENT_DT", "clock"],
        ),
        (
            "generated.hpp",
            "inline GlobalVar<IEC_UINT> COUNT{0};",
            "inline GlobalVar<IEC_UINT> COUNT{0};\n}\n#include <string>\nnamespace strucpp {\ninline std::string TEXT{\"a text that is long\"};",
            &["TEXT is a std::string", "heap"],
        ),
        (
            "generated.hpp",
            "inline GlobalVar<IEC_UINT> COUNT{0};",
            "inline GlobalVar<IEC_UINT> COUNT{0};\ninline thread_local int EACH = 3;\ninline int each() { return ++EACH; }\nstatic int made = each();",
            &["outside of its state", ".tdata"],
        ),
        (
            "programs.cpp",
            "void FILTER::operator()() {\n    Y = Y + 0.25 * (X - Y);\n}",
            "",
            &["strucpp::FILTER::operator()", "is missing"],
        ),
        (
            "configuration.cpp",
            "LocatedSize::Word, 7, 0,",
            "LocatedSize::Word, 8, 0,",
            &["does not start", "look at what it printed"],
        ),
        (
            "generated.hpp",
            "locatedVarsCount = 10",
            "locatedVarsCount = 11",
            &["0.5 and 0.6", "counts its located variables differently"],
        ),
        (
            "strucpp_runtime/include/iec_std_lib.hpp",
            "\tuint8_t unused[3];\n",
            "\tuint8_t unused[13];\n",
            &["0.5 and 0.6", "LocatedVar is another than known"],
        ),
    ] {
        let project = project();
        project.replace(file, from, to);
        project.refused(parts);
    }
}

fn a_cpp_compiler_or_headers_that_are_missing_are_named_with_the_remedy() {
    let project = project();
    let mut options = options(need_compiler(), project.output());
    options.cpp_compiler = "/nowhere/c++".into();
    let fault = project.build_as(&options).expect_err("a fault").to_string();
    assert!(
        fault.contains("/nowhere/c++") && fault.contains("--cxx"),
        "{fault}"
    );
    project.remove("strucpp_runtime/include/iec_std_lib.hpp");
    project.refused(&["does not compile", "strucpp_runtime/include", "--include"]);
}

fn the_debugger_and_libraries_are_left_out_and_said_so() {
    let project = project();
    project.write("generated_debug.cpp", "#error of the debugger");
    fs::create_dir(project.folder().join("libraries")).expect("a folder");
    let left_out: Vec<_> = built(&project)
        .left_out
        .into_iter()
        .map(|it| it.0)
        .collect();
    assert_eq!(left_out, ["generated_debug.cpp", "libraries"]);
}

tests_and_programs!(
    values_go_by_address_and_tasks_run_by_priority_in_their_cycles,
    a_program_of_strucpp_goes_on_wherever_its_state_is_moved,
    an_index_that_an_array_has_not_stops_the_cycle_and_is_named,
    an_exception_stops_the_cycle_and_is_named,
    variables_of_instances_and_global_ones_are_retained_by_name,
    the_next_version_goes_on_with_all_that_it_still_has,
    a_variable_of_another_type_in_the_next_version_is_named,
    what_cannot_be_retained_is_refused_with_its_reason,
    what_a_program_of_strucpp_must_not_do_is_refused_by_name,
    a_cpp_compiler_or_headers_that_are_missing_are_named_with_the_remedy,
    the_debugger_and_libraries_are_left_out_and_said_so,
);
