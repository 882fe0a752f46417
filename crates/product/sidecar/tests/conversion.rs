//! A program's next version makes its state of that of the version before, by a function of its own (H-36).

mod common;

use std::fs;
use std::path::Path;

use bumpless_base::Duration;
use bumpless_controller::Application;
use bumpless_sidecar::{Cause, Command, Limits};
use common::languages::{ONE, compiled, scripted};
use common::{context, patient, run_when_ready, saved, started};

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

tests_and_programs!(
    the_next_version_of_a_program_converts_the_state_of_the_one_before_in_each_language,
    a_conversion_in_c_begins_with_what_the_programs_own_bytes_hold,
    a_conversion_that_fails_ends_by_the_limit_and_leaves_the_state_as_it_was,
);
