//! What goes wrong with programs in a process of their own, one test for each trap (G-10, H-8 to H-18).

mod common;

use std::os::unix::process::ExitStatusExt;
use std::process::Command as Tool;
use std::thread;
use std::time::Duration as StdDuration;

use bumpless_base::{Duration, Pieces};
use bumpless_controller::{
    Application, LoadError, Mishap, ProgramFault, ProgramFaultKind, Unanswered,
};
use bumpless_program::layout::{Header, VARIABLE};
use bumpless_program::{Areas, Shared};
use bumpless_sidecar::{Cause, HowItEnded, Limits, Shape, Sidecar, StartCause};
use bumpless_testing::skip;
use common::programs::{LARGE, WORDS, order, written};
use common::raw::STATE;
use common::{
    Sequence, context, fault, first_difference, own, patient, run_when_ready, saved, started, until,
};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::process::{Pid, Signal, kill_process};

const SUM: Shape = Shape {
    inputs: 2,
    outputs: 2,
    state_max: 64,
};
const HIDES: Shape = Shape {
    inputs: 1,
    outputs: 1,
    state_max: 64,
};

fn sum() -> Sidecar {
    started(&own("sum"), SUM, patient())
}

/// Whether the program `name` gives other outputs once its state was moved.
fn differs_when_moved(name: &str) -> bool {
    let make = || started(&own(name), HIDES, patient());
    first_difference(make, (60, 3), |_, inputs| inputs.fill(1.0)).is_some()
}

fn trap_hidden_variables_are_found_by_a_move() {
    assert!(differs_when_moved("static"));
    let make = || started(&own("sum"), SUM, patient());
    let honest = first_difference(make, (60, 3), |cycle, inputs| {
        (inputs[0], inputs[1]) = (cycle as f64, 0.0);
    });
    assert_eq!(honest, None);
}

fn trap_heap_is_found_by_a_move() {
    assert!(differs_when_moved("heap"));
}

fn trap_clock_is_found_by_a_move() {
    assert!(differs_when_moved("clock"));
}

fn trap_random_numbers_are_found_by_a_move() {
    assert!(differs_when_moved("chance"));
}

/// How many kills; `BUMPLESS_KILLS` says otherwise.
fn kills() -> u64 {
    let told = std::env::var("BUMPLESS_KILLS").ok();
    told.and_then(|told| told.parse().ok()).unwrap_or(1_000)
}

/// The program is killed while it writes each of its state's words anew; what is saved has one number in all of them.
fn trap_torn_state_is_never_saved_whenever_the_program_is_killed() {
    let shape = Shape {
        inputs: 0,
        outputs: 1,
        state_max: WORDS * 8,
    };
    let (mut sidecar, mut sequence) = (started(&own("words"), shape, patient()), Sequence(3));
    let (mut good, mut died, mut outputs) = (0_u64, 0, [0.0]);
    while died < kills() {
        let process = sidecar.process_id();
        let wait = StdDuration::from_micros(sequence.below(900));
        let killer = thread::spawn(move || {
            thread::sleep(wait);
            let pid = process.and_then(|id| Pid::from_raw(id.cast_signed()));
            pid.map(|pid| kill_process(pid, Signal::KILL))
        });
        loop {
            match sidecar.run_cycle(&context(good + 1), &[], &mut outputs) {
                Ok(()) => good += 1,
                Err(fault) => match fault.cause {
                    Cause::Died(HowItEnded::Signal(9)) => {
                        died += 1;
                        break;
                    }
                    Cause::NotReady => thread::sleep(StdDuration::from_micros(200)),
                    other => panic!("{other:?}"),
                },
            }
            if killer.is_finished() && sidecar.process_id() != process {
                break;
            }
        }
        let _ = killer.join().expect("no panic");
        let state = saved(&sidecar);
        let words = state[8..].chunks_exact(8);
        let mut numbers = words.map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes")));
        assert!(
            numbers.all(|number| number == good),
            "torn after cycle {good}"
        );
    }
    assert!(good > 0);
}

/// Runs a few cycles, one that goes wrong by `order`, and goes on; outputs and state are as if that one had not been.
fn goes_on_after(order: f64, limits: Limits) -> Cause {
    let mut sidecar = started(&own("sum"), SUM, limits);
    let mut outputs = [0.0; 2];
    for cycle in 1..=3 {
        run_when_ready(&mut sidecar, cycle, &[1.0, 0.0], &mut outputs);
    }
    let before = saved(&sidecar);
    let first = sidecar.process_id();
    let cause = fault(&mut sidecar, 4, &[1.0, order]).cause;
    assert_eq!(
        saved(&sidecar),
        before,
        "nothing of the failed cycle is left"
    );
    run_when_ready(&mut sidecar, 4, &[1.0, 0.0], &mut outputs);
    assert_eq!(outputs, [104.0, 4.0]);
    assert_ne!(sidecar.process_id(), first, "it is another process");
    cause
}

fn trap_endless_loop_is_stopped_at_its_limit() {
    let limits = Limits {
        execute: Duration::from_millis(200),
        ..patient()
    };
    // Once at least: a computer that stands still delays any of them.
    until("a loop is stopped before twice its limit", || {
        let cause = goes_on_after(order::LOOP, limits);
        let unanswered = unanswered(&cause);
        assert!(unanswered.elapsed >= limits.execute, "{cause}");
        assert!(unanswered.computed > Some(Duration::ZERO), "{cause}");
        unanswered.elapsed < limits.execute * 2
    });
}

fn unanswered(cause: &Cause) -> Unanswered {
    match cause {
        Cause::Unanswered(unanswered) => *unanswered,
        other => panic!("{other}"),
    }
}

fn kind(sidecar: &mut Sidecar, order: f64) -> ProgramFaultKind {
    ProgramFault::from(fault(sidecar, 1, &[1.0, order])).kind
}

/// H-29: whoever loops is found out as soon as the computer lets it compute.
fn trap_endless_loop_is_told_from_a_program_that_had_no_processor() {
    let limits = Limits {
        execute: Duration::from_millis(100),
        ..patient()
    };
    let mut sidecar = started(&own("sum"), SUM, limits);
    let mut outputs = [0.0; 2];
    // One that sleeps, or whose process stands still, has not computed, whatever the computer does.
    assert_eq!(kind(&mut sidecar, order::SLEEP), ProgramFaultKind::Starved);
    run_when_ready(&mut sidecar, 1, &[1.0, 0.0], &mut outputs);
    let process = sidecar.process_id().expect("it runs").cast_signed();
    kill_process(Pid::from_raw(process).expect("its number"), Signal::STOP).expect("it is there");
    assert_eq!(kind(&mut sidecar, 0.0), ProgramFaultKind::Starved);
    until("a loop has the processor to itself", || {
        run_when_ready(&mut sidecar, 1, &[1.0, 0.0], &mut outputs);
        kind(&mut sidecar, order::LOOP) == ProgramFaultKind::Overrun
    });
}

fn trap_crash_leaves_the_state_before_it() {
    let aborted = Cause::Died(HowItEnded::Signal(6));
    assert_eq!(goes_on_after(order::ABORT, patient()), aborted);
    let left = Cause::Died(HowItEnded::Status(3));
    assert_eq!(goes_on_after(order::EXIT, patient()), left);
}

fn a_failure_that_the_program_tells_is_passed_on_in_its_words() {
    let said = Cause::Failed("the valve is stuck in cycle 4".into());
    assert_eq!(goes_on_after(order::FAIL, patient()), said);
}

fn trap_memory_beyond_the_limit_ends_the_program_alone() {
    let limits = Limits {
        memory: Some(256 << 20),
        ..patient()
    };
    assert_eq!(
        goes_on_after(order::ALLOCATE, limits),
        Cause::Died(HowItEnded::Signal(6))
    );
}

fn trap_wrong_answer_of_another_size_is_refused() {
    for (name, field) in [
        ("larger state", "bytes of the state"),
        ("huge state", "bytes of the state"),
        ("more outputs", "outputs"),
        ("other state version", "version of the state"),
        ("other result", "result"),
        ("garbage", "bytes of the state"),
    ] {
        let shape = Shape {
            state_max: 4096,
            ..HIDES
        };
        let mut sidecar = started(&own(name), shape, patient());
        let before = saved(&sidecar);
        let cause = fault(&mut sidecar, 1, &[0.0]).cause;
        let named = matches!(cause, Cause::WrongAnswer { field: found, .. } if found == field);
        assert!(named, "{name}: {cause:?}");
        assert_eq!(saved(&sidecar), before, "{name}");
        assert_eq!(before.len() as u64, 8 + STATE);
    }
}

fn a_program_cannot_take_the_memory_from_under_its_host() {
    let mut sidecar = started(&own("shrinks"), HIDES, patient());
    let mut outputs = [0.0];
    for cycle in 1..=3 {
        let ran = sidecar.run_cycle(&context(cycle), &[0.0], &mut outputs);
        assert_eq!(ran, Ok(()));
    }
    assert_eq!(outputs, [3.0]);
}

/// A program that meets a memory whose header is `changed`: its exit status, and what it left in the header.
fn met(name: &str, changed: impl Fn(&Header)) -> (Option<i32>, u32, u32, u32) {
    use std::os::fd::AsRawFd;
    use std::sync::atomic::Ordering;
    let areas = Areas {
        inputs: 2,
        outputs: 2,
        state_max: 64,
    };
    let memory = memfd_create("test", MemfdFlags::empty()).expect("a file in memory");
    ftruncate(&memory, areas.total() as u64).expect("its size");
    let shared = Shared::create(&memory, areas).expect("a mapping");
    let header = shared.header();
    header.command.store(1, Ordering::Relaxed);
    header.request.store(1, Ordering::Relaxed);
    changed(header);
    let status = Tool::new(std::env::current_exe().expect("this program"))
        .arg(name)
        .env(VARIABLE, memory.as_raw_fd().to_string())
        .stderr(std::process::Stdio::null())
        .status()
        .expect("it starts");
    assert_eq!(status.signal(), None, "{status}");
    (
        status.code(),
        header.program_version.load(Ordering::Relaxed),
        header.result.load(Ordering::Relaxed),
        header.answer.load(Ordering::Relaxed),
    )
}

fn trap_header_of_another_version_is_refused_by_either_side() {
    use std::sync::atomic::Ordering::Relaxed;
    let newer = met("sum", |header| header.version.store(2, Relaxed));
    assert_eq!(
        newer,
        (Some(64), 1, 2, 1),
        "the program says which it speaks"
    );
    let fault = Sidecar::start(&own("other version"), HIDES, patient())
        .err()
        .expect("a fault");
    assert!(matches!(fault.cause, StartCause::Version(2)), "{fault}");
}

fn a_program_refuses_a_memory_that_contradicts_itself() {
    use std::sync::atomic::Ordering::Relaxed;
    let no_word = (Some(64), 0, 0, 0);
    assert_eq!(met("sum", |header| header.magic.store(1, Relaxed)), no_word);
    let looked = (Some(64), 1, 0, 0);
    let changes: [&dyn Fn(&Header); 7] = [
        &|header| header.total.store(1 << 40, Relaxed),
        &|header| header.inputs.store(u32::MAX, Relaxed),
        &|header| header.outputs.store(u32::MAX, Relaxed),
        &|header| header.inputs_at.store(u64::MAX, Relaxed),
        &|header| header.outputs_at.store(0, Relaxed),
        &|header| header.state_at.store(8, Relaxed),
        &|header| header.state_max.store(u64::MAX, Relaxed),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        assert_eq!(met("sum", change), looked, "change {number}");
    }
}

fn trap_two_builds_do_not_take_each_others_states() {
    let mut sidecar = sum();
    let state = saved(&sidecar);
    assert_eq!(sidecar.load(&state), Ok(()));
    let mut others = state.clone();
    others[0] ^= 1;
    assert!(matches!(
        sidecar.load(&others),
        Err(LoadError::Value { .. })
    ));
    for len in [0, 7, 8, state.len() - 1] {
        let refused = sidecar.load(&state[..len]);
        assert!(matches!(refused, Err(LoadError::Length { .. })), "{len}");
    }
    assert_eq!(saved(&sidecar), state, "nothing has changed");
}

fn a_reset_leads_to_the_initial_state_and_so_to_the_same_outputs() {
    let mut sidecar = sum();
    let run = |sidecar: &mut Sidecar| {
        let mut all = Vec::new();
        let mut outputs = [0.0; 2];
        for cycle in 1..=5 {
            run_when_ready(sidecar, cycle, &[cycle as f64, 0.0], &mut outputs);
            all.push(outputs);
        }
        all
    };
    let first = run(&mut sidecar);
    sidecar.reset();
    assert_eq!(run(&mut sidecar), first);
    fault(&mut sidecar, 6, &[1.0, order::ABORT]);
    sidecar.reset();
    assert_eq!(run(&mut sidecar), first, "also while it is started again");
}

fn a_program_that_fails_each_time_is_not_started_for_ever_at_full_speed() {
    let mut sidecar = sum();
    let began = std::time::Instant::now();
    while began.elapsed() < StdDuration::from_millis(700) {
        let mut outputs = [0.0; 2];
        let _ = sidecar.run_cycle(&context(1), &[1.0, order::EXIT], &mut outputs);
        thread::sleep(StdDuration::from_millis(1));
    }
    let counts = sidecar.counts();
    // 0, 10, 20, 40, 80, 160, 320 ms between two starts: at most 8 in that time, were a start to take none.
    assert!((2..=8).contains(&counts.starts), "{counts:?}");
    assert!(counts.deaths >= 1 && counts.not_running >= 1, "{counts:?}");
}

fn large() -> Sidecar {
    let shape = Shape {
        inputs: 0,
        outputs: 1,
        state_max: LARGE,
    };
    started(&own("large"), shape, patient())
}

fn a_large_state_is_whole_although_only_what_changed_is_copied() {
    let (mut sidecar, mut expected, mut outputs) = (large(), vec![0; LARGE], [0.0]);
    if !sidecar.is_tracked() {
        skip("needs a kernel with PAGEMAP_SCAN and userfaultfd (Linux 6.7)");
    }
    let mut buffers = [(); 3].map(|()| (vec![0; LARGE + 8], None));
    // Tracking pauses in cycle 201, and begins again 256 cycles later.
    for cycle in 1..=600 {
        if cycle == 150 || cycle == 300 {
            // A state that comes from elsewhere is followed like any other.
            expected.iter_mut().for_each(|byte| *byte ^= 0x55);
            let owner = sidecar.owner().to_le_bytes();
            let state = [&owner[..], &expected].concat();
            sidecar.load(&state).expect("its own layout");
        }
        run_when_ready(&mut sidecar, cycle, &[], &mut outputs);
        for (at, value) in written(cycle) {
            expected[at] = value;
        }
        assert!(saved(&sidecar)[8..] == expected, "cycle {cycle}");
        // As a channel's buffers are filled: sometimes one again and again, while another waits for long.
        let (buffer, held) = &mut buffers[[0, 1, 0, 2, 0, 1, 1][cycle as usize % 7]];
        for piece in [0..5000, 5000..LARGE + 8] {
            sidecar.copy(piece.start, &mut buffer[piece], *held);
        }
        *held = sidecar.revision();
        assert!(buffer[..] == saved(&sidecar), "cycle {cycle}, published");
    }
    assert!(sidecar.is_tracked());
    assert_eq!(sidecar.counts().tracking_lost, 0);
}

fn tracking_that_misses_a_change_is_found_out_and_given_up() {
    let shape = Shape {
        state_max: 256 * 1024,
        ..HIDES
    };
    let mut sidecar = started(&own("lies"), shape, patient());
    assert!(sidecar.is_tracked());
    let mut outputs = [0.0];
    for cycle in 1..=3 {
        run_when_ready(&mut sidecar, cycle, &[0.0], &mut outputs);
    }
    assert!(!sidecar.is_tracked());
    assert_eq!(sidecar.counts().tracking_lost, 1);
    let told = sidecar.mishap().expect("it is told");
    assert!(!told.counts && told.fault.kind == ProgramFaultKind::WrongAnswer);
    assert!(
        told.fault.detail.contains("not told of a change"),
        "{}",
        told.fault
    );
    assert_eq!(sidecar.mishap(), None);
    assert!(saved(&sidecar)[8..].iter().all(|&byte| byte == 3));
}

fn changes_told_beyond_the_state_are_nothing() {
    let shape = Shape {
        state_max: 256 * 1024,
        ..HIDES
    };
    let mut sidecar = started(&own("far ranges"), shape, patient());
    let before = saved(&sidecar);
    for cycle in 1..=3 {
        run_when_ready(&mut sidecar, cycle, &[0.0], &mut [0.0]);
    }
    assert_eq!(saved(&sidecar), before);
}

fn a_program_that_dies_between_cycles_is_replaced_without_being_asked() {
    let (mut sidecar, mut outputs) = (sum(), [0.0; 2]);
    run_when_ready(&mut sidecar, 1, &[1.0, 0.0], &mut outputs);
    let pid = sidecar
        .process_id()
        .and_then(|id| Pid::from_raw(id.cast_signed()));
    kill_process(pid.expect("a process"), Signal::KILL).expect("it was there");
    let mut told = None;
    until("another one is ready, and that is told", || {
        told = sidecar.mishap();
        told.is_some()
    });
    let Some(Mishap { fault, counts }) = told else {
        panic!("nothing told");
    };
    assert_eq!((fault.kind, counts), (ProgramFaultKind::Crash, true));
    for part in [sidecar.name(), "signal 9 (SIGKILL)", "between two cycles"] {
        assert!(fault.detail.contains(part), "{part:?} in {fault}");
    }
    assert_eq!((sidecar.counts().starts, sidecar.counts().deaths), (2, 1));
    // A backup does not execute; whenever it takes over, it goes on from the committed state, and at once.
    let ran = sidecar.run_cycle(&context(2), &[1.0, 0.0], &mut outputs);
    assert_eq!((ran, outputs), (Ok(()), [102.0, 2.0]));
    assert_eq!(sidecar.mishap(), None, "it is told once");
}

tests_and_programs!(
    trap_hidden_variables_are_found_by_a_move,
    trap_heap_is_found_by_a_move,
    trap_clock_is_found_by_a_move,
    trap_random_numbers_are_found_by_a_move,
    trap_torn_state_is_never_saved_whenever_the_program_is_killed,
    trap_endless_loop_is_stopped_at_its_limit,
    trap_endless_loop_is_told_from_a_program_that_had_no_processor,
    trap_crash_leaves_the_state_before_it,
    a_failure_that_the_program_tells_is_passed_on_in_its_words,
    trap_memory_beyond_the_limit_ends_the_program_alone,
    trap_wrong_answer_of_another_size_is_refused,
    a_program_cannot_take_the_memory_from_under_its_host,
    trap_header_of_another_version_is_refused_by_either_side,
    a_program_refuses_a_memory_that_contradicts_itself,
    trap_two_builds_do_not_take_each_others_states,
    a_reset_leads_to_the_initial_state_and_so_to_the_same_outputs,
    a_program_that_fails_each_time_is_not_started_for_ever_at_full_speed,
    a_large_state_is_whole_although_only_what_changed_is_copied,
    tracking_that_misses_a_change_is_found_out_and_given_up,
    changes_told_beyond_the_state_are_nothing,
    a_program_that_dies_between_cycles_is_replaced_without_being_asked,
);
