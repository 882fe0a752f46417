//! One process of a program: made, asked, ended.

use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use bumpless_base::{Duration, Instant};
use bumpless_program::layout::{VARIABLE, VERSION, command, result};
use bumpless_program::{Areas, Shared};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getpid, getppid,
    kill_process_group, pidfd_open, pidfd_send_signal, set_parent_process_death_signal, setrlimit,
    waitid,
};
use rustix::thread::futex;
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::processor::ProcessorClock;
use crate::{Command, Hash, HowItEnded, Limits, Shape, StartCause};

/// What a program has told of itself when it attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attached {
    pub state_len: usize,
    /// As the program gives it.
    pub state_version: u64,
    /// Whose a saved state is (H-19).
    pub owner: u64,
    /// Zero if it can run with any.
    pub period: Duration,
    /// Whether it converts states of other versions.
    pub converts: bool,
}

/// How waiting for an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Answered,
    Gone,
    Late,
}

/// A process, from its start until nothing of it is left.
#[derive(Debug)]
pub(crate) struct Process {
    shared: Shared,
    pid: Pid,
    pidfd: OwnedFd,
    gone: AtomicBool,
    how: OnceLock<HowItEnded>,
    processor: Option<ProcessorClock>,
    /// What tells its file from others.
    file: u64,
    /// Whether a cycle has ended well.
    proven: AtomicBool,
}

/// Now, on the clock that the waits here use.
pub(crate) fn now() -> Instant {
    let now = clock_gettime(ClockId::Monotonic);
    Instant::from_nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

impl Process {
    /// Starts it; the first request stands in its memory.
    pub fn start(command: &Command, shape: Shape, limits: Limits) -> Result<Self, StartCause> {
        check_hash(command)?;
        // One that is not there is not started either, and that is said with its cause.
        let file = Hash::of_file(&command.file()).map_or(0, |hash| hash.short());
        let areas = Areas {
            inputs: shape.inputs,
            outputs: shape.outputs,
            state_max: shape.state_max,
        };
        let memory_cause = |error: io::Error| StartCause::Memory {
            size: areas.total(),
            error,
        };
        let memory = make_memory(areas.total()).map_err(memory_cause)?;
        let shared = Shared::create(&memory, areas).map_err(memory_cause)?;
        let header = shared.header();
        header.command.store(command::ATTACH, Ordering::Relaxed);
        let track = u32::from(shape.state_max >= limits.track_from);
        header.track.store(track, Ordering::Relaxed);
        header.request.store(1, Ordering::Release);
        let pid = spawn(command, limits, &memory).map_err(|error| not_started(command, error))?;
        // Nobody else waits for the process, so its number is its own until it is waited for.
        let pidfd = pidfd_open(pid, PidfdFlags::empty());
        let pidfd = pidfd.map_err(|error| {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
            StartCause::System(error.into())
        })?;
        Ok(Self {
            shared,
            pid,
            pidfd,
            gone: AtomicBool::new(false),
            how: OnceLock::new(),
            processor: ProcessorClock::of(pid),
            file,
            proven: AtomicBool::new(false),
        })
    }

    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Processor time that it has used so far, all its threads together, if the system tells.
    pub fn computed(&self) -> Option<Duration> {
        self.processor.as_ref()?.read()
    }

    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// How it ended, as soon as it is gone.
    pub fn how(&self) -> HowItEnded {
        self.how.get().copied().unwrap_or(HowItEnded::Signal(0))
    }

    pub fn prove(&self) {
        self.proven.store(true, Ordering::Relaxed);
    }

    pub fn is_proven(&self) -> bool {
        self.proven.load(Ordering::Relaxed)
    }

    /// Ends it, whatever it does. Whoever watches it clears away.
    pub fn kill(&self) {
        // A process that has ended is what was wanted.
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Gives it the command, as request `number`.
    pub fn request(&self, number: u32, command: u32) {
        let header = self.shared.header();
        header.command.store(command, Ordering::Relaxed);
        header.request.store(number, Ordering::Release);
        let _ = futex::wake(&header.request, futex::Flags::empty(), i32::MAX as u32);
    }

    /// Waits until request `number` is answered, at most until `until`.
    pub fn wait(&self, number: u32, until: Instant) -> Waited {
        let header = self.shared.header();
        let until = timespec(until);
        let mut late = false;
        loop {
            let answer = header.answer.load(Ordering::Acquire);
            // Who watches the process says so before he disturbs the answer: a wait that begins later ends at once.
            if self.is_gone() {
                return Waited::Gone;
            }
            if answer == number {
                return Waited::Answered;
            }
            if late {
                return Waited::Late;
            }
            let any = NonZeroU32::MAX;
            let flags = futex::Flags::empty();
            let waited = futex::wait_bitset(&header.answer, flags, answer, Some(&until), any);
            late = waited == Err(rustix::io::Errno::TIMEDOUT);
        }
    }

    /// Waits until it has attached, and judges what it tells.
    pub fn attached(
        &self,
        shape: Shape,
        limit: Duration,
        wanted: &dyn Fn() -> bool,
    ) -> Result<Attached, StartCause> {
        let until = now() + limit;
        loop {
            let at = now();
            let slice = (at + Duration::from_millis(5)).min(until);
            match self.wait(1, slice) {
                Waited::Answered => return self.judge(shape),
                Waited::Gone => return Err(StartCause::Ended(self.how())),
                Waited::Late if at >= until => return Err(StartCause::Slow(limit)),
                Waited::Late => {}
            }
            if !wanted() {
                return Err(StartCause::Unwanted);
            }
            if self.has_ended() {
                // What it said last may say why.
                return match self.shared.header().answer.load(Ordering::Acquire) {
                    1 => self.judge(shape),
                    _ => Err(StartCause::Ended(self.how_it_ends())),
                };
            }
        }
    }

    /// Gives it this priority among real-time threads, as far as that is permitted: the node says in its status whether it
    /// is, and the same holds for its programs. One that begins has none yet: loading it would keep others from running.
    pub fn raise(&self, priority: u8) {
        let parameters = libc::sched_param {
            sched_priority: priority.into(),
        };
        // SAFETY: the call reads one `sched_param`. Nobody has waited for the process, so its number is its own.
        unsafe {
            libc::sched_setscheduler(
                self.pid.as_raw_pid(),
                libc::SCHED_FIFO,
                &raw const parameters,
            )
        };
    }

    fn judge(&self, shape: Shape) -> Result<Attached, StartCause> {
        let header = self.shared.header();
        let speaks = header.program_version.load(Ordering::Relaxed);
        let said = header.result.load(Ordering::Relaxed);
        if speaks != VERSION || said == result::VERSION {
            return Err(StartCause::Version(speaks));
        }
        if said != result::DONE {
            return Err(StartCause::Refused(self.message()));
        }
        let counts = [
            ("inputs", &header.program_inputs, shape.inputs),
            ("outputs", &header.program_outputs, shape.outputs),
        ];
        for (what, field, configured) in counts {
            let (program, configured) =
                (u64::from(field.load(Ordering::Relaxed)), configured as u64);
            if program != configured {
                return Err(StartCause::Count {
                    what,
                    program,
                    configured,
                });
            }
        }
        let (len, max) = (
            header.state_len.load(Ordering::Relaxed),
            shape.state_max as u64,
        );
        if len > max {
            return Err(StartCause::State {
                program: len,
                configured: max,
            });
        }
        let state_version = header.state_version.load(Ordering::Relaxed);
        Ok(Attached {
            state_len: len as usize,
            state_version,
            owner: match state_version {
                0 => self.file,
                version => version,
            },
            period: Duration::from_nanos(header.program_period.load(Ordering::Relaxed)),
            converts: header.converts.load(Ordering::Relaxed) == 1,
        })
    }

    /// What the program said last of a failure; what is no text in it is replaced.
    pub fn message(&self) -> String {
        let header = self.shared.header();
        let len = header.message_len.load(Ordering::Relaxed) as usize;
        let bytes: Vec<u8> = header
            .message
            .iter()
            .take(len)
            .map(|byte| byte.load(Ordering::Relaxed))
            .collect();
        let text = String::from_utf8_lossy(&bytes);
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        if text.is_empty() {
            return "it does not say why".into();
        }
        text
    }

    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(
            waitid(WaitId::PidFd(self.pidfd.as_fd()), options),
            Ok(Some(_))
        )
    }

    fn how_it_ends(&self) -> HowItEnded {
        self.watch(WaitIdOptions::NOWAIT);
        self.how()
    }

    /// Waits until the process has ended, clears away what is left of it and its group, and wakes whoever waits
    /// for its answer.
    pub fn watch_to_the_end(&self) {
        self.watch(WaitIdOptions::NOWAIT);
        // Its number belongs to it as long as nobody has waited it away, and so does the group's.
        let _ = kill_process_group(self.pid, Signal::KILL);
        self.watch(WaitIdOptions::empty());
        self.gone.store(true, Ordering::Release);
        // Never the number that somebody waits for, whether this request was answered or not.
        let header = self.shared.header();
        header.answer.fetch_xor(1 << 31, Ordering::Release);
        let _ = futex::wake(&header.answer, futex::Flags::empty(), i32::MAX as u32);
    }

    fn watch(&self, options: WaitIdOptions) {
        let options = WaitIdOptions::EXITED | options;
        let status = loop {
            match waitid(WaitId::PidFd(self.pidfd.as_fd()), options) {
                Ok(Some(status)) => break status,
                Err(rustix::io::Errno::INTR) | Ok(None) => {}
                // Somebody has waited it away.
                Err(_) => return,
            }
        };
        let how = match (status.exit_status(), status.terminating_signal()) {
            (Some(status), _) => HowItEnded::Status(status),
            (None, signal) => HowItEnded::Signal(signal.unwrap_or(0)),
        };
        let _ = self.how.set(how);
    }
}

fn timespec(at: Instant) -> Timespec {
    let nanos = at.as_nanos();
    Timespec {
        tv_sec: (nanos / 1_000_000_000).cast_signed(),
        tv_nsec: (nanos % 1_000_000_000).cast_signed(),
    }
}

fn check_hash(command: &Command) -> Result<(), StartCause> {
    let Some((file, expected)) = &command.hash else {
        return Ok(());
    };
    let found = Hash::of_file(file).map_err(|error| StartCause::Unreadable(file.clone(), error))?;
    if found != *expected {
        return Err(StartCause::Hash {
            file: file.clone(),
            expected: *expected,
            found,
        });
    }
    Ok(())
}

/// A file in memory, all of it there, whose size nobody can change.
fn make_memory(size: usize) -> io::Result<OwnedFd> {
    // Taking more than there is would end in the kernel's ending some process, perhaps this one.
    if available_memory().is_some_and(|available| available < size as u64) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = rustix::fs::memfd_create("bumpless", flags)?;
    ftruncate(&memory, size as u64)?;
    fallocate(&memory, FallocateFlags::empty(), 0, size as u64)?;
    let seals = SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&memory, seals)?;
    Ok(memory)
}

/// Bytes that the kernel expects to have for new use.
fn available_memory() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = told
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Whose fault it is that the system does not start it: what is started, which need not be the program's own file.
fn not_started(command: &Command, error: io::Error) -> StartCause {
    match command.script {
        Some(_) => StartCause::Starter(command.program.clone(), error),
        None => StartCause::System(error),
    }
}

fn spawn(command: &Command, limits: Limits, memory: &OwnedFd) -> io::Result<Pid> {
    let mut started = process::Command::new(located(&command.program)?);
    started.args(&command.arguments);
    if let Some(folder) = &command.folder {
        started.current_dir(folder);
    }
    let inherited = memory.try_clone()?;
    started.env(VARIABLE, inherited.as_raw_fd().to_string());
    started.stdin(Stdio::null());
    if command.silent {
        started.stdout(Stdio::null()).stderr(Stdio::null());
    } else {
        // The host's standard output is for what it was asked.
        started.stdout(Stdio::from(io::stderr().as_fd().try_clone_to_owned()?));
    }
    started.process_group(0);
    let host = getpid();
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(host) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty())?;
        set_limit(Resource::Core, 0)?;
        if let Some(memory) = limits.memory {
            set_limit(Resource::As, memory)?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec it makes system calls alone, and neither allocates nor takes a lock.
    unsafe { started.pre_exec(prepare) };
    let child = started.spawn()?;
    prefer_to_end(child.id());
    // A handle that is dropped neither ends nor waits.
    Pid::from_raw(child.id().cast_signed()).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Has the kernel end this process, with those that it starts, before any other where memory runs out (H-47): never the
/// host, which starts it again. Where `/proc` is missing, nothing tells the kernel, and the program runs all the same.
fn prefer_to_end(id: u32) {
    let _ = std::fs::write(format!("/proc/{id}/oom_score_adj"), "1000");
}

/// A path as the host means it, whatever the folder in which the program runs.
fn located(program: &Path) -> io::Result<PathBuf> {
    match program.components().count() {
        0 => Err(io::ErrorKind::NotFound.into()),
        // Looked for in `PATH`.
        1 if !program.is_absolute() => Ok(program.to_owned()),
        _ => std::path::absolute(program),
    }
}

fn set_limit(resource: Resource, value: u64) -> io::Result<()> {
    let limit = Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    Ok(setrlimit(resource, limit)?)
}
