//! The libraries for programs in C, C++ and Python: they agree with this one on the memory, and their errors help.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command as Tool, Output};

use bumpless_base::Duration;
use bumpless_controller::Application;
use bumpless_program::layout::Header;
use bumpless_sidecar::{Cause, Command, Limits, Shape, Sidecar, StartCause};
use bumpless_testing::skip;
use common::{
    context, fault, need_compiler, patient, python, run_when_ready, saved, started, workspace,
};

const ONE: Shape = Shape {
    inputs: 1,
    outputs: 1,
    state_max: 4096,
};

fn c() -> PathBuf {
    workspace("crates/product/program/c")
}

fn ran(tool: &mut Tool) -> Output {
    let output = tool
        .output()
        .unwrap_or_else(|error| panic!("{tool:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool:?}: {said}");
    output
}

/// Compiles a C program of one file with the library.
fn compiled(place: &Path, text: &str) -> Command {
    let (source, program) = (place.join("program.c"), place.join("program"));
    fs::write(&source, text).expect("a file");
    let mut compiler = Tool::new(need_compiler());
    compiler
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(c());
    ran(compiler
        .arg(&source)
        .arg(c().join("bumpless.c"))
        .arg("-o")
        .arg(&program));
    Command::new(program)
}

fn scripted(place: &Path, text: &str) -> Command {
    let script = place.join("program.py");
    let package = workspace("crates/product/program/python");
    let path = format!(
        "import sys; sys.path.insert(0, {:?})\n",
        package.display().to_string()
    );
    fs::write(&script, path + text).expect("a file");
    Command::new(python()).argument("-ISB").argument(script)
}

fn the_header_compiles_without_a_warning_in_c_and_cpp() {
    let compiler = need_compiler();
    let place = tempfile::tempdir().expect("a folder");
    let text = "#include <bumpless.h>\n#include <bumpless_guard.h>\nint use(void);\n\
                int use(void) { return BUMPLESS_PROTOCOL + bumpless_guard_register(0, NULL, BUMPLESS_GUARD_SOCKET, NULL, 0); }\n";
    for (name, arguments) in [
        ("use.c", &["-std=c99", "-pedantic"][..]),
        ("use.c", &["-std=c17"]),
        ("use.cpp", &["-x", "c++", "-std=c++11", "-pedantic"]),
        ("use.cpp", &["-x", "c++", "-std=c++20"]),
    ] {
        let source = place.path().join(name);
        fs::write(&source, text).expect("a file");
        let mut compile = Tool::new(&compiler);
        compile
            .args(["-Wall", "-Wextra", "-Werror", "-I"])
            .arg(c())
            .args(arguments);
        ran(compile.args(["-fsyntax-only"]).arg(&source));
    }
}

fn the_library_installs_with_pkg_config_and_a_program_links_with_it() {
    need_compiler();
    if !Tool::new("make")
        .arg("--version")
        .output()
        .is_ok_and(|it| it.status.success())
    {
        skip("needs make");
    }
    let place = tempfile::tempdir().expect("a folder");
    let (build, prefix) = (place.path().join("build"), place.path().join("prefix"));
    fs::create_dir(&build).expect("a folder");
    for name in [
        "bumpless.h",
        "bumpless.c",
        "bumpless_guard.h",
        "bumpless_guard.c",
        "bumpless.pc.in",
        "Makefile",
    ] {
        fs::copy(c().join(name), build.join(name)).expect("a copy");
    }
    let told = format!("PREFIX={}", prefix.display());
    ran(Tool::new("make")
        .args(["-s", "-C"])
        .arg(&build)
        .args(["install", &told]));
    let described = fs::read_to_string(prefix.join("lib/pkgconfig/bumpless.pc")).expect("a file");
    let line = |key: &str| {
        let found = described.lines().find_map(|line| line.strip_prefix(key));
        let value = found
            .unwrap_or_else(|| panic!("{key} in {described}"))
            .trim();
        let prefix = prefix.display().to_string();
        value
            .replace("${includedir}", "${prefix}/include")
            .replace("${libdir}", "${prefix}/lib")
            .replace("${prefix}", &prefix)
    };
    let mut compile = Tool::new(need_compiler());
    compile
        .args(line("Cflags:").split(' '))
        .arg(workspace("examples/programs/c/level.c"));
    compile
        .args(line("Libs:").split(' '))
        .arg("-o")
        .arg(place.path().join("level"));
    ran(&mut compile);
}

/// Each field of the header with its offset.
fn fields() -> Vec<(&'static str, usize)> {
    macro_rules! offsets {
        ($($name:ident),+) => { vec![$((stringify!($name), core::mem::offset_of!(Header, $name))),+] };
    }
    offsets!(
        magic,
        version,
        program_version,
        total,
        inputs,
        outputs,
        inputs_at,
        outputs_at,
        state_at,
        state_max,
        request,
        command,
        cycle,
        period,
        track,
        old_version,
        old_len,
        answer,
        result,
        state_len,
        state_version,
        program_inputs,
        program_outputs,
        program_period,
        tracked,
        message_len,
        changes,
        converts,
        message
    )
}

fn c_and_python_lay_the_header_out_as_rust_does() {
    let expected: String = fields()
        .iter()
        .map(|(name, at)| format!("{name} {at}\n"))
        .collect();
    let place = tempfile::tempdir().expect("a folder");
    let rows: String = fields()
        .iter()
        .map(|(name, _)| format!("printf(\"{name} %zu\\n\", offsetof(struct header, {name}));\n"))
        .collect();
    let text = format!(
        "#include \"{}\"\nint main(void) {{ {rows} return 0; }}\n",
        c().join("bumpless.c").display()
    );
    let (source, program) = (place.path().join("print.c"), place.path().join("print"));
    fs::write(&source, text).expect("a file");
    ran(Tool::new(need_compiler())
        .arg("-I")
        .arg(c())
        .arg(&source)
        .arg("-o")
        .arg(&program));
    let printed = ran(&mut Tool::new(&program)).stdout;
    assert_eq!(String::from_utf8_lossy(&printed), expected);

    let names: Vec<_> = fields().iter().map(|(name, _)| *name).collect();
    let code = format!(
        "import sys; sys.path.insert(0, {:?}); import bumpless\n\
         for name in {names:?}: print(name, getattr(bumpless._Header, name).offset)",
        workspace("crates/product/program/python")
            .display()
            .to_string()
    );
    let printed = ran(Tool::new(python()).args(["-B", "-c", &code])).stdout;
    assert_eq!(String::from_utf8_lossy(&printed), expected);
}

const FAILING_C: &str = r#"
#include <bumpless.h>
static int step(const struct bumpless_cycle *cycle, const double *inputs, double *outputs, void *state)
{
    *(double *)state += inputs[0];
    outputs[0] = *(double *)state + (double)cycle->time_ns;
    if (inputs[0] < 0) {
        bumpless_say("the pump does not answer");
        return 1;
    }
    return 0;
}
static void start(void *state) { *(double *)state = 5.0; }
int main(void)
{
    struct bumpless_program program = {0};
    program.inputs = program.outputs = 1;
    program.state_size = sizeof(double);
    program.start = start;
    program.step = step;
    return bumpless_run(&program);
}
"#;

const FAILING_PYTHON: &str = r#"
import bumpless

def step(cycle, inputs, outputs, state):
    if inputs[0] == 2.0:
        return [1.0, 2.0]
    if inputs[0] < 0:
        raise RuntimeError("the pump does not answer")
    state.cast("d")[0] += inputs[0]
    return [state.cast("d")[0] + cycle.number * cycle.period_ns]

def start(state):
    state.cast("d")[0] = 5.0

bumpless.run(step, inputs=1, outputs=1, state=8, start=start)
"#;

/// Runs well, is told to fail, and goes on from the state before.
fn fails_in_its_words(command: &Command, order: f64, words: &str) {
    let (mut sidecar, mut outputs) = (started(command, ONE, patient()), [0.0]);
    run_when_ready(&mut sidecar, 1, &[1.5], &mut outputs);
    let time = common::PERIOD.as_nanos() as f64;
    assert_eq!(outputs, [6.5 + time]);
    let before = saved(&sidecar);
    let cause = fault(&mut sidecar, 2, &[order]).cause;
    let Cause::Failed(said) = &cause else {
        panic!("{cause:?}");
    };
    assert!(said.contains(words), "{said}");
    assert_eq!(saved(&sidecar), before);
    run_when_ready(&mut sidecar, 2, &[1.0], &mut outputs);
    assert_eq!(outputs, [7.5 + 2.0 * time]);
}

fn a_failure_in_c_is_told_in_its_words() {
    let place = tempfile::tempdir().expect("a folder");
    fails_in_its_words(
        &compiled(place.path(), FAILING_C),
        -1.0,
        "the pump does not answer",
    );
}

fn an_exception_in_python_is_told_with_its_line() {
    let place = tempfile::tempdir().expect("a folder");
    let command = scripted(place.path(), FAILING_PYTHON);
    fails_in_its_words(
        &command,
        -1.0,
        "RuntimeError: the pump does not answer (program.py, line 9)",
    );
}

fn trap_wrong_answer_of_another_size_in_python_is_told() {
    let place = tempfile::tempdir().expect("a folder");
    let command = scripted(place.path(), FAILING_PYTHON);
    fails_in_its_words(&command, 2.0, "returned 2 outputs instead of 1");
}

fn what_does_not_fit_is_refused_in_each_language() {
    let place = tempfile::tempdir().expect("a folder");
    for command in [
        compiled(place.path(), FAILING_C),
        scripted(place.path(), FAILING_PYTHON),
    ] {
        let small = Shape {
            state_max: 4,
            ..ONE
        };
        let refused = Sidecar::start(&command, small, patient())
            .err()
            .expect("a fault");
        let said = matches!(&refused.cause, StartCause::Refused(why) if why.contains("8 bytes"));
        assert!(said, "{refused}");
        let more = Shape { inputs: 2, ..ONE };
        let refused = Sidecar::start(&command, more, patient())
            .err()
            .expect("a fault");
        assert!(
            matches!(refused.cause, StartCause::Count { what: "inputs", .. }),
            "{refused}"
        );
    }
}

/// The next version in C: it has a word more, and `convert` is the body of its function.
fn converts_in_c(place: &Path, convert: &str) -> Command {
    let text = format!(
        r#"#include <string.h>
        #include <stdlib.h>
        #include "bumpless.h"
        struct state {{ double more, sum; }};
        static void start(void *state) {{ ((struct state *)state)->more = 5; }}
        static int step(const struct bumpless_cycle *cycle, const double *in, double *out, void *state)
        {{ struct state *s = state; (void)cycle; s->sum += in[0]; out[0] = s->sum + s->more; return 0; }}
        static int convert(uint64_t version, const void *old, size_t size, void *state)
        {{ struct state *s = state; (void)version; (void)old; (void)size; (void)s; {convert} }}
        int main(void)
        {{ static struct bumpless_program p = {{1, 1, sizeof(struct state), 2, 0, start, step, 0, convert}};
           return bumpless_run(&p); }}"#
    );
    compiled(place, &text)
}

/// The same in Python.
fn converts_in_python(place: &Path, convert: &str) -> Command {
    let text = format!(
        r#"
import ctypes, struct, os, bumpless
class State(ctypes.Structure):
    _fields_ = [("more", ctypes.c_double), ("sum", ctypes.c_double)]
def start(state):
    state.more = 5
def step(cycle, inputs, outputs, state):
    state.sum += inputs[0]
    outputs[0] = state.sum + state.more
def convert(version, old, state):
    {convert}
bumpless.run(step, inputs=1, outputs=1, state=State, start=start, convert=convert, state_version=2)
"#
    );
    scripted(place, &text)
}

/// H-36: the state of the version before is one binary64, its version is 1.
fn the_next_version_of_a_program_converts_the_state_of_the_one_before_in_each_language() {
    let place = tempfile::tempdir().expect("a folder");
    let c = "if (version != 1 || size != 8) return 1; memcpy(&s->sum, old, 8); return 0;";
    let python = "assert version == 1 and len(old) == 8\n    state.sum, = struct.unpack('=d', old)";
    for command in [
        converts_in_c(place.path(), c),
        converts_in_python(place.path(), python),
    ] {
        let mut program = started(&command, ONE, patient());
        assert!(program.converts());
        let mut outputs = [0.0];
        program
            .run_cycle(&context(1), &[1.0], &mut outputs)
            .unwrap_or_else(|fault| panic!("{fault}"));
        program
            .convert(1, &37.0f64.to_le_bytes())
            .unwrap_or_else(|cause| panic!("{cause}"));
        assert_eq!(
            saved(&program)[8..],
            [5.0f64.to_le_bytes(), 37.0f64.to_le_bytes()].concat()
        );
        program
            .run_cycle(&context(2), &[1.0], &mut outputs)
            .unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(outputs, [43.0], "{}", program.name());
        // Another process goes on with what was made of it.
        let state = saved(&program);
        let mut other = started(&command, ONE, patient());
        other.load(&state).expect("a state of this version");
        assert_eq!(saved(&other), state);
    }
}

/// H-36: what `convert` gets is what the program began with, also where its own bytes are its state, and however often.
fn a_conversion_in_c_begins_with_what_the_programs_own_bytes_hold() {
    let text = r#"#include <string.h>
        #include "bumpless.h"
        static union { struct { double kept, begun, sum; } s; char page[4096]; }
            own __attribute__((aligned(4096))) = {{7, 1, 0}};
        static void start(void *state) { (void)state; own.s.begun += 1; }
        static int step(const struct bumpless_cycle *cycle, const double *in, double *out, void *state)
        { (void)cycle; (void)state; own.s.kept = 0; own.s.sum += in[0]; out[0] = own.s.sum; return 0; }
        static int convert(uint64_t version, const void *old, size_t size, void *state)
        { (void)version; if (state != &own) return 1; memcpy(&own.s.sum, old, size); return 0; }
        int main(void)
        { static struct bumpless_program p = {1, 1, sizeof own, 2, 0, start, step, &own, convert};
          return bumpless_run(&p); }"#;
    let place = tempfile::tempdir().expect("a folder");
    let mut program = started(&compiled(place.path(), text), ONE, patient());
    for old in [37.0f64, 38.0] {
        let mut outputs = [0.0];
        run_when_ready(&mut program, 1, &[1.0], &mut outputs);
        program
            .convert(1, &old.to_le_bytes())
            .unwrap_or_else(|cause| panic!("{cause}"));
        let expected = [7.0, 2.0, old].map(f64::to_le_bytes).concat();
        assert_eq!(saved(&program)[8..][..24], expected);
    }
}

/// H-36: whatever a conversion does, it ends, and the state is the one from before.
fn a_conversion_that_fails_ends_by_the_limit_and_leaves_the_state_as_it_was() {
    let place = tempfile::tempdir().expect("a folder");
    let limits = Limits {
        execute: Duration::from_millis(300),
        ..patient()
    };
    type Expected = fn(&Cause) -> bool;
    let in_c: [(&str, Expected); 3] = [
        (
            "s->sum = 9; bumpless_say(\"not of me\"); return 1;",
            |cause| cause.to_string().contains("not of me"),
        ),
        (
            "volatile int on = 1; s->sum = 9; while (on) ; return 0;",
            |cause| matches!(cause, Cause::Unanswered(_)),
        ),
        ("s->sum = 9; abort(); return 0;", |cause| {
            matches!(cause, Cause::Died(_))
        }),
    ];
    let in_python = "state.sum = 9; raise ValueError('not of me')";
    let mut commands: Vec<(Command, Expected)> = Vec::new();
    for (index, (convert, expected)) in in_c.into_iter().enumerate() {
        let place = place.path().join(index.to_string());
        fs::create_dir(&place).expect("a folder");
        commands.push((converts_in_c(&place, convert), expected));
    }
    commands.push((converts_in_python(place.path(), in_python), in_c[0].1));
    for (command, expected) in commands {
        let mut program = started(&command, ONE, limits);
        let mut outputs = [0.0];
        run_when_ready(&mut program, 1, &[2.0], &mut outputs);
        let before = saved(&program);
        let cause = program
            .convert(1, &37.0f64.to_le_bytes())
            .expect_err("it fails");
        assert!(expected(&cause), "{cause}");
        assert_eq!(saved(&program), before);
        run_when_ready(&mut program, 2, &[2.0], &mut outputs);
        assert_eq!(outputs, [9.0], "it goes on from its own state");
    }
    // A state that has no room is not even given to it.
    let mut program = started(&converts_in_c(place.path(), "return 0;"), ONE, patient());
    assert!(program.convert(1, &[0; 5000]).is_err());
}

fn two_scripts_do_not_take_each_others_states() {
    let (one, other) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let first = started(&scripted(one.path(), FAILING_PYTHON), ONE, patient());
    let changed = FAILING_PYTHON.replace("5.0", "6.0");
    let mut second = started(&scripted(other.path(), &changed), ONE, patient());
    assert!(second.load(&saved(&first)).is_err());
    let mut same = started(&scripted(one.path(), FAILING_PYTHON), ONE, patient());
    assert_eq!(same.load(&saved(&first)), Ok(()));
}

fn without_a_host_a_program_says_what_it_is() {
    let place = tempfile::tempdir().expect("a folder");
    let (c, python) = (
        compiled(place.path(), FAILING_C),
        scripted(place.path(), FAILING_PYTHON),
    );
    let rust = common::example("level");
    for command in [c, python, Command::new(rust)] {
        let output = Tool::new(&command.program)
            .args(&command.arguments)
            .output();
        let output = output.expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{said}");
        assert!(said.contains("bumpless program test"), "{said}");
    }
}

fn programs_see_the_same_time_and_outputs_in_each_language() {
    let mut outputs = [0.0, 0.0];
    let shape = Shape {
        inputs: 2,
        outputs: 2,
        state_max: 64,
    };
    let place = tempfile::tempdir().expect("a folder");
    let mut all = Vec::new();
    for command in [
        common::level_in_c(),
        common::level_in_python(),
        (place, Command::new(common::example("level"))),
    ] {
        let mut sidecar = started(&command.1, shape, patient());
        let mut given = Vec::new();
        for cycle in 1..=200 {
            let inputs = [1.0 + cycle as f64 / 100.0, 1.5];
            sidecar
                .run_cycle(&context(cycle), &inputs, &mut outputs)
                .expect("a cycle");
            given.push(outputs.map(f64::to_bits));
        }
        all.push(given);
    }
    assert!(all[0] == all[1] && all[1] == all[2]);
}

fn each_example_killed_in_mid_cycle_goes_on_as_if_nothing_had_been() {
    let shape = Shape {
        inputs: 2,
        outputs: 2,
        state_max: 64,
    };
    let place = tempfile::tempdir().expect("a folder");
    for command in [
        common::level_in_c(),
        common::level_in_python(),
        (place, Command::new(common::example("level"))),
    ] {
        let make = || started(&command.1, shape, patient());
        common::survives_kills(make, (200, 10), common::PERIOD, |cycle, inputs| {
            inputs.copy_from_slice(&[1.0 + (cycle % 50) as f64 / 100.0, 1.2]);
        });
    }
}

tests_and_programs!(
    the_header_compiles_without_a_warning_in_c_and_cpp,
    the_library_installs_with_pkg_config_and_a_program_links_with_it,
    c_and_python_lay_the_header_out_as_rust_does,
    a_failure_in_c_is_told_in_its_words,
    an_exception_in_python_is_told_with_its_line,
    trap_wrong_answer_of_another_size_in_python_is_told,
    what_does_not_fit_is_refused_in_each_language,
    the_next_version_of_a_program_converts_the_state_of_the_one_before_in_each_language,
    a_conversion_in_c_begins_with_what_the_programs_own_bytes_hold,
    a_conversion_that_fails_ends_by_the_limit_and_leaves_the_state_as_it_was,
    two_scripts_do_not_take_each_others_states,
    without_a_host_a_program_says_what_it_is,
    programs_see_the_same_time_and_outputs_in_each_language,
    each_example_killed_in_mid_cycle_goes_on_as_if_nothing_had_been,
);
