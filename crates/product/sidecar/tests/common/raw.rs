//! Programs that speak the protocol by hand, and wrongly.

use std::env;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use bumpless_program::Shared;
use bumpless_program::layout::{Header, VARIABLE, VERSION, command, result};
use rustix::fs::{fstat, ftruncate};

/// Bytes of state that each of them has.
pub const STATE: u64 = 64;

/// Attaches rightly with one input and one output, and does in each cycle what its name says.
pub fn run(name: &str) -> ExitCode {
    let told = env::var(VARIABLE).expect("a host");
    // SAFETY: the host gave it to this process, and this is its only taker.
    let memory = unsafe { OwnedFd::from_raw_fd(told.parse().expect("a number")) };
    let size = fstat(&memory).expect("a file").st_size as usize;
    let shared = Shared::attach(&memory, size).expect("a memory");
    let header = shared.header();
    header.program_inputs.store(1, Ordering::Relaxed);
    header.program_outputs.store(1, Ordering::Relaxed);
    header.state_len.store(STATE, Ordering::Relaxed);
    if name == "other version" {
        header.program_version.store(VERSION + 1, Ordering::Relaxed);
    }
    if name == "lies" || name == "far ranges" {
        // It says of each cycle that it has written nothing.
        let len = shared.areas().state_max;
        header.state_len.store(len as u64, Ordering::Relaxed);
        header.tracked.store(1, Ordering::Relaxed);
    }
    header.answer(result::DONE);
    loop {
        let answered = header.answer.load(Ordering::Relaxed);
        while header.request.load(Ordering::Acquire) == answered {
            thread::sleep(Duration::from_micros(200));
        }
        if header.command.load(Ordering::Relaxed) == command::END {
            header.answer(result::DONE);
            return ExitCode::SUCCESS;
        }
        let cycle = header.cycle.load(Ordering::Relaxed);
        act(name, &shared, &memory, cycle);
        shared.outputs()[0].store((cycle as f64).to_bits(), Ordering::Relaxed);
        let said = if name == "other result" {
            77
        } else {
            result::DONE
        };
        header.answer(said);
    }
}

fn act(name: &str, shared: &Shared, memory: &OwnedFd, cycle: u64) {
    let header = shared.header();
    match name {
        "larger state" => header.state_len.store(STATE + 8, Ordering::Relaxed),
        "huge state" => header.state_len.store(u64::MAX, Ordering::Relaxed),
        "more outputs" => header.program_outputs.store(2, Ordering::Relaxed),
        "other state version" => header.state_version.store(5, Ordering::Relaxed),
        "garbage" => fill(header),
        "shrinks" => {
            // A host would die by touching what is cut off.
            let refused = ftruncate(memory, 0).is_err() && ftruncate(memory, 1 << 30).is_err();
            assert!(refused, "the memory has changed its size");
        }
        "far ranges" => {
            header.changes.store(448, Ordering::Relaxed);
            for range in &header.ranges {
                range[0].store(u32::MAX, Ordering::Relaxed);
                range[1].store(u32::MAX, Ordering::Relaxed);
            }
            header.changes.store(1000, Ordering::Relaxed);
        }
        "lies" => {
            let state = vec![cycle as u8; shared.areas().state_max];
            shared.write_state(&state);
        }
        _ => {}
    }
}

/// Overwrites everything but what says that the request is answered.
fn fill(header: &Header) {
    for field in [
        &header.magic,
        &header.total,
        &header.inputs_at,
        &header.outputs_at,
        &header.state_at,
        &header.state_max,
        &header.cycle,
        &header.period,
        &header.state_len,
        &header.state_version,
        &header.program_period,
        &header.tracked,
    ] {
        field.store(u64::MAX, Ordering::Relaxed);
    }
    for field in [
        &header.version,
        &header.program_version,
        &header.inputs,
        &header.outputs,
        &header.command,
        &header.track,
        &header.result,
        &header.program_inputs,
        &header.program_outputs,
        &header.message_len,
        &header.changes,
    ] {
        field.store(u32::MAX, Ordering::Relaxed);
    }
    for byte in &header.message {
        byte.store(0xFF, Ordering::Relaxed);
    }
}
