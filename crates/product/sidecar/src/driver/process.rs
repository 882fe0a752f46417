//! One process of a driver: made, told what it is for, ended.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use bumpless_base::Duration;
use bumpless_controller::DriverFault;
use bumpless_field_driver::message::{self, MESSAGE_MAX, Opening, Said};
use bumpless_field_driver::{Direction, now};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socketpair, sockopt,
};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getpid, getppid,
    kill_process_group, pidfd_open, set_parent_process_death_signal, setrlimit, waitid,
};

use super::cause::DriverCause;
use super::{DriverOrder, timespec};
use crate::HowItEnded;

/// How long a driver may take until it is ready.
const START: Duration = Duration::from_secs(5);
/// How long one that was killed is waited for. A process that the kernel does not let die is left to it.
const CLEARING: Duration = Duration::from_secs(2);

pub(super) struct Process {
    pid: Pid,
    pidfd: OwnedFd,
    how: OnceLock<HowItEnded>,
}

impl Process {
    /// Starts it, with one end of a connection as its standard input; the other end is returned.
    pub fn start(order: &DriverOrder) -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        for end in [&ours, &theirs] {
            // Room for the longest message and one more; what the system does not give is found out by a message.
            let _ = sockopt::set_socket_send_buffer_size(end, 4 * MESSAGE_MAX);
        }
        let pid = spawn(order, theirs)?;
        // Nobody else waits for the process, so its number is its own until it is waited for.
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).inspect_err(|_| {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
        })?;
        let how = OnceLock::new();
        Ok((Self { pid, pidfd, how }, ours))
    }

    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// Tells the driver its device and points, and waits until the driver is ready. Returns the name and version that the driver
    /// states. `Err(None)`: the driver is not wanted any more.
    pub fn ready(
        &self,
        socket: &OwnedFd,
        order: &DriverOrder,
        wake: &OwnedFd,
        unwanted: &dyn Fn() -> bool,
    ) -> Result<String, Option<DriverCause>> {
        let until = now() + START.as_nanos();
        let mut buffer = Vec::new();
        let mut talk = Talk {
            process: self,
            socket,
            wake,
            unwanted,
            until,
        };
        let opening = Opening {
            inputs: order.count(Direction::Input),
            outputs: order.count(Direction::Output),
            device: order.device.clone(),
            address: order.address.clone(),
            options: order.options.clone(),
        };
        message::put_open(&mut buffer, 1, &opening);
        talk.say(&buffer)?;
        let (mut inputs, mut outputs) = (0.., 0..);
        for point in &order.points {
            let at = match point.direction {
                Direction::Input => inputs.next(),
                Direction::Output => outputs.next(),
            };
            message::put_point(&mut buffer, 1, at.unwrap_or(u32::MAX), point);
            talk.say(&buffer)?;
        }
        message::put_begin(&mut buffer, 1);
        talk.say(&buffer)?;
        buffer.resize(MESSAGE_MAX + 1, 0);
        let len = talk.hear(&mut buffer)?;
        match Said::parse(&buffer[..len.min(buffer.len())]) {
            Ok((_, Said::Ready(what))) => Ok(what.to_owned()),
            Ok((_, Said::Refused(why))) => Err(Some(DriverCause::Refused(why.to_owned()))),
            Ok(_) => Err(Some(DriverFault::Unasked.into())),
            Err(fault) => Err(Some(fault.into())),
        }
    }

    /// Waits until it has ended, or somebody wakes; `limit` ends the wait, too. Returns whether it has ended.
    pub fn wait(&self, wake: &OwnedFd, limit: Option<Duration>) -> bool {
        let limit = limit.map(|limit| timespec(limit.as_nanos()));
        let mut ends = [
            PollFd::new(&self.pidfd, PollFlags::IN),
            PollFd::new(wake, PollFlags::IN),
        ];
        let _ = poll(&mut ends, limit.as_ref());
        !ends[0].revents().is_empty()
    }

    /// Whether it ends within `limit` by itself.
    pub fn ends_within(&self, limit: Duration) -> bool {
        let mut ended = [PollFd::new(&self.pidfd, PollFlags::IN)];
        let _ = poll(&mut ended, Some(&timespec(limit.as_nanos())));
        !ended[0].revents().is_empty()
    }

    /// How it ended, when it has.
    pub fn how(&self) -> HowItEnded {
        *self.how.get_or_init(|| {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            match waitid(WaitId::PidFd(self.pidfd.as_fd()), options) {
                Ok(Some(status)) => match status.exit_status() {
                    Some(code) => HowItEnded::Status(code),
                    None => HowItEnded::Signal(status.terminating_signal().unwrap_or(0)),
                },
                _ => HowItEnded::Signal(0),
            }
        })
    }

    /// Ends it and its group, whatever they do, and clears away.
    pub fn end(&self) {
        // Its number belongs to it as long as nobody has waited it away, and so does the group's.
        let _ = kill_process_group(self.pid, Signal::KILL);
        self.ends_within(CLEARING);
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let _ = waitid(WaitId::PidFd(self.pidfd.as_fd()), options);
    }
}

/// The first messages, which are awaited.
struct Talk<'a> {
    process: &'a Process,
    socket: &'a OwnedFd,
    wake: &'a OwnedFd,
    unwanted: &'a dyn Fn() -> bool,
    until: u64,
}

impl Talk<'_> {
    fn say(&mut self, bytes: &[u8]) -> Result<(), Option<DriverCause>> {
        loop {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match rustix::net::send(self.socket, bytes, flags) {
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::AGAIN) => self.wait(PollFlags::OUT)?,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Some(self.broken(error.into()))),
            }
        }
    }

    fn hear(&mut self, buffer: &mut [u8]) -> Result<usize, Option<DriverCause>> {
        loop {
            match rustix::net::recv(self.socket, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Err(Some(self.broken(io::ErrorKind::UnexpectedEof.into()))),
                Ok((_, len)) => return Ok(len),
                Err(rustix::io::Errno::AGAIN) => self.wait(PollFlags::IN)?,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Some(self.broken(error.into()))),
            }
        }
    }

    /// The connection is broken: it has ended, or is about to.
    fn broken(&self, error: io::Error) -> DriverCause {
        match self.process.ends_within(CLEARING) {
            true => DriverCause::Ended(self.process.how()),
            false => DriverCause::Start(error),
        }
    }

    fn wait(&self, what: PollFlags) -> Result<(), Option<DriverCause>> {
        let left = self.until.saturating_sub(now());
        if left == 0 {
            return Err(Some(DriverCause::Slow(START)));
        }
        let mut ends = [
            PollFd::new(self.socket, what),
            PollFd::new(self.wake, PollFlags::IN),
        ];
        let _ = poll(&mut ends, Some(&timespec(left)));
        // Else no later wait would be one.
        drain(self.wake);
        if (self.unwanted)() {
            return Err(None);
        }
        Ok(())
    }
}

/// Forgets who woke.
pub(super) fn drain(wake: &OwnedFd) {
    let _ = rustix::io::read(wake, &mut [0; 8]);
}

fn spawn(order: &DriverOrder, theirs: OwnedFd) -> io::Result<Pid> {
    let mut started = Command::new(&order.program);
    started.args(&order.arguments);
    started.stdin(Stdio::from(theirs));
    // The node's standard output is for what it was asked.
    started.stdout(Stdio::from(io::stderr().as_fd().try_clone_to_owned()?));
    started.process_group(0);
    let node = getpid();
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(node) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let none = Rlimit {
            current: Some(0),
            maximum: Some(0),
        };
        Ok(setrlimit(Resource::Core, none)?)
    };
    // SAFETY: between fork and exec it makes system calls alone, and neither allocates nor takes a lock.
    unsafe { started.pre_exec(prepare) };
    let child = started.spawn()?;
    // A handle that is dropped neither ends nor waits.
    Pid::from_raw(child.id().cast_signed()).ok_or_else(|| io::ErrorKind::NotFound.into())
}
