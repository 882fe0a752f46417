//! The program's side of the conversation (H-3 to H-7).

use core::sync::atomic::Ordering;
use std::env;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::process::ExitCode;
use std::time::Duration;

use rustix::fs::fstat;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::thread::futex;

use crate::layout::{ALL, Header, MESSAGE_MAX, STATE_ALIGNMENT, VARIABLE, command, result};
use crate::track::Tracker;
use crate::{Cycle, Program, Shared};

/// Exit status of a program that cannot begin.
const CANNOT_BEGIN: u8 = 64;

/// Runs `P` for the host that started this process, until that ends it.
///
/// Where there is no host, or one of another version, it says so on standard error and returns at once.
pub fn run<P: Program>() -> ExitCode {
    match attach().and_then(|shared| serve::<P>(&shared)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(CANNOT_BEGIN)
        }
    }
}

fn attach() -> Result<Shared, String> {
    let told = env::var(VARIABLE).map_err(|_| {
        format!(
            "this is a control program: a Bumpless host starts it and gives it memory ({VARIABLE} is not set); \
             try it with `bumpless program test`"
        )
    })?;
    let unusable = |why: String| format!("{VARIABLE}={told}: {why}");
    let number: RawFd = told
        .parse()
        .ok()
        .filter(|&number| number > 2)
        .ok_or_else(|| unusable("no descriptor's number".into()))?;
    // SAFETY: the host gave this descriptor to this process and has no use for it here; this is its only taker.
    let memory = unsafe { OwnedFd::from_raw_fd(number) };
    let cannot = |error: rustix::io::Errno| unusable(format!("the memory cannot be used: {error}"));
    // What this program starts itself has no business with it.
    fcntl_setfd(&memory, FdFlags::CLOEXEC).map_err(cannot)?;
    let size = fstat(&memory).map_err(cannot)?.st_size;
    Shared::attach(&memory, usize::try_from(size).unwrap_or(0))
        .map_err(|misfit| unusable(misfit.to_string()))
}

fn serve<P: Program>(shared: &Shared) -> Result<(), String> {
    let (header, areas) = (shared.header(), shared.areas());
    let len = size_of::<P::State>();
    describe::<P>(header);
    if len > areas.state_max {
        let why = format!(
            "its state has {len} bytes, and the configuration allows {}",
            areas.state_max
        );
        say(header, &why);
        header.answer(result::MISFIT);
        return Err(why);
    }
    // A reference is made for one command at a time: in between the host writes there, and a conversion does by bytes.
    let mut state = shared.state().cast::<P::State>();
    // SAFETY: the area holds `len` bytes, is aligned to more than any type, and any bytes are a `P::State`; the
    // host touches it between an answer and the next request only (H-7), and nothing else here refers to it.
    P::start(unsafe { state.as_mut() });
    let wanted = header.track.load(Ordering::Relaxed) == 1;
    let mut tracker = wanted
        .then(|| Tracker::of(shared.state(), len.next_multiple_of(STATE_ALIGNMENT)).ok())
        .flatten();
    header
        .tracked
        .store(tracker.is_some().into(), Ordering::Relaxed);
    let (mut inputs, mut outputs) = (vec![0.0; P::INPUTS], vec![0.0; P::OUTPUTS]);
    let mut answered = header.answer(result::DONE);
    loop {
        answered = next_request(header, answered);
        let outcome = match header.command.load(Ordering::Relaxed) {
            command::END => {
                header.answer(result::DONE);
                return Ok(());
            }
            command::EXECUTE => {
                get(shared.inputs(), &mut inputs);
                get(shared.outputs(), &mut outputs);
                // SAFETY: as for `start`.
                let state = unsafe { state.as_mut() };
                let outcome = P::step(cycle(header), &inputs, &mut outputs, state);
                for (slot, value) in shared.outputs().iter().zip(&outputs) {
                    slot.store(value.to_bits(), Ordering::Relaxed);
                }
                outcome
            }
            command::CONVERT => convert::<P>(shared),
            other => Err(format!("the host's command {other} is unknown")),
        };
        let result = match outcome {
            Ok(()) => result::DONE,
            Err(why) => {
                say(header, &why);
                result::FAILED
            }
        };
        // While the host copies everything, nothing needs to be protected.
        match &mut tracker {
            Some(tracker) if header.track.load(Ordering::Relaxed) == 1 => tracker.tell(header),
            _ => header.changes.store(ALL, Ordering::Relaxed),
        }
        header.answer(result);
    }
}

/// Makes the state from the one of another version that stands in its place.
fn convert<P: Program>(shared: &Shared) -> Result<(), String> {
    let header = shared.header();
    let len = header.old_len.load(Ordering::Relaxed) as usize;
    if len > shared.areas().state_max {
        return Err("the state to be converted is longer than any may be".into());
    }
    let mut old = vec![0; len];
    shared.copy_state(0, &mut old);
    shared.write_state(&vec![0; size_of::<P::State>()]);
    // Made after the old bytes were read and the zeros written, which is done through other pointers.
    // SAFETY: as in `serve`, which has ended if the area holds no `P::State`, and has no reference while this runs.
    let state = unsafe { shared.state().cast::<P::State>().as_mut() };
    P::start(state);
    P::convert(header.old_version.load(Ordering::Relaxed), &old, state)
}

fn describe<P: Program>(header: &Header) {
    let len = size_of::<P::State>() as u64;
    header.state_len.store(len, Ordering::Relaxed);
    let version = P::STATE_VERSION;
    header.state_version.store(version, Ordering::Relaxed);
    header.converts.store(P::CONVERTS.into(), Ordering::Relaxed);
    let counts = [
        (&header.program_inputs, P::INPUTS),
        (&header.program_outputs, P::OUTPUTS),
    ];
    for (field, count) in counts {
        // More than 2^32 fit into no memory, and no host has as many.
        field.store(u32::try_from(count).unwrap_or(u32::MAX), Ordering::Relaxed);
    }
    let period = P::PERIOD.map_or(0, |period| period.as_nanos() as u64);
    header.program_period.store(period, Ordering::Relaxed);
}

fn cycle(header: &Header) -> Cycle {
    Cycle {
        number: header.cycle.load(Ordering::Relaxed),
        period: Duration::from_nanos(header.period.load(Ordering::Relaxed)),
    }
}

fn get(from: &[core::sync::atomic::AtomicU64], into: &mut [f64]) {
    for (value, slot) in into.iter_mut().zip(from) {
        *value = f64::from_bits(slot.load(Ordering::Relaxed));
    }
}

/// Waits for a request after `answered`.
fn next_request(header: &Header, answered: u32) -> u32 {
    loop {
        let request = header.request.load(Ordering::Acquire);
        if request != answered {
            return request;
        }
        // Any end of the wait leads to another look.
        let _ = futex::wait(&header.request, futex::Flags::empty(), request, None);
    }
}

/// Leaves a message for the host, cut to what there is room for.
fn say(header: &Header, message: &str) {
    let len = message.floor_char_boundary(MESSAGE_MAX);
    for (slot, byte) in header.message.iter().zip(message[..len].bytes()) {
        slot.store(byte, Ordering::Relaxed);
    }
    header.message_len.store(len as u32, Ordering::Relaxed);
}
