//! Programs: what the kernel verifies and runs.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use super::call::{bpf, bpf_opening, info, short_name};
use crate::assembler::Instruction;

const PROGRAM_LOAD: libc::c_long = 5;
const PROGRAM_TEST_RUN: libc::c_long = 10;
const PROGRAM_BY_ID: libc::c_long = 13;
const LINK_CREATE: libc::c_long = 28;
const LINK_UPDATE: libc::c_long = 29;

const XDP_ATTACH: u32 = 37;
const LIVE_FRAMES: u32 = 1 << 1;

/// What a program is for, and so what it is given and may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Frames at the driver of an interface.
    Driver,
    /// Packets that sockets of a group of processes send, whole, before they are cut and before their neighbour is found.
    Sent,
    /// Frames that leave by an interface (Linux 6.6).
    Leaving,
    /// Frames that arrive at an interface, with the kernel's buffer (Linux 6.6).
    Arriving,
}

impl Purpose {
    /// The kernel's kind of program.
    const fn program(self) -> u32 {
        match self {
            Self::Driver => 6,
            Self::Sent => 8,
            Self::Leaving | Self::Arriving => 3,
        }
    }

    /// The kernel's kind of attachment.
    const fn attach(self) -> u32 {
        match self {
            Self::Driver => XDP_ATTACH,
            Self::Sent => 1,
            Self::Leaving => 47,
            Self::Arriving => 46,
        }
    }
}

/// Where in the kernel an interface runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the driver, before there is a buffer of the kernel's.
    Native,
    /// Right behind the driver, which has made a buffer already ("generic", "skb").
    Generic,
}

impl Mode {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Generic => "generic",
        }
    }

    const fn flag(self) -> u32 {
        match self {
            Self::Native => 1 << 2,
            Self::Generic => 1 << 1,
        }
    }
}

#[repr(C)]
struct LoadArguments {
    kind: u32,
    count: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach: u32,
}

#[repr(C)]
#[derive(Default)]
struct TestArguments {
    program: u32,
    verdict: u32,
    data_len: u32,
    out_len: u32,
    data: u64,
    out: u64,
    repeat: u32,
    duration: u32,
    context_len: u32,
    context_out_len: u32,
    context: u64,
    context_out: u64,
    flags: u32,
    processor: u32,
    batch: u32,
    padding: u32,
}

/// A program that the kernel has verified.
#[derive(Debug)]
pub struct Program {
    descriptor: OwnedFd,
    purpose: Purpose,
}

impl Program {
    /// Has the kernel verify and keep a program, which `bpftool` and others show under the first 15 letters of `name`.
    ///
    /// # Errors
    /// The kernel's, with what its verifier says at the end.
    pub fn load(name: &str, purpose: Purpose, code: &[Instruction]) -> io::Result<Self> {
        let attempt = |log: &mut [u8]| Self::attempt(name, purpose, code, log);
        match attempt(&mut []) {
            Err(error) if error.raw_os_error() != Some(libc::EPERM) => {
                let mut log = vec![0; 1 << 20];
                attempt(&mut log).map_err(|error| {
                    // Behind the first zero is what was said of ways that turned out well.
                    let said = log.split(|&byte| byte == 0).next().unwrap_or_default();
                    let said = String::from_utf8_lossy(said);
                    let lines: Vec<_> = said.trim().lines().collect();
                    let last = &lines[lines.len().saturating_sub(4)..];
                    io::Error::new(error.kind(), format!("{error} {}", last.join("; ")))
                })
            }
            other => other,
        }
    }

    fn attempt(
        name: &str,
        purpose: Purpose,
        code: &[Instruction],
        log: &mut [u8],
    ) -> io::Result<Self> {
        let license = CString::from(c"Dual MIT/GPL");
        let mut arguments = LoadArguments {
            kind: purpose.program(),
            count: code.len() as u32,
            code: code.as_ptr() as u64,
            license: license.as_ptr() as u64,
            log_level: u32::from(!log.is_empty()),
            log_size: log.len() as u32,
            log: match log.len() {
                0 => 0,
                _ => log.as_mut_ptr() as u64,
            },
            kernel: 0,
            flags: 0,
            name: short_name(name),
            interface: 0,
            attach: purpose.attach(),
        };
        Ok(Self {
            descriptor: bpf_opening(PROGRAM_LOAD, &mut arguments)?,
            purpose,
        })
    }

    /// Has packets of a group of processes, the folder of a cgroup of version 2, go through it for as long as the link is held.
    ///
    /// # Errors
    /// The kernel's: it is no such folder, or the program is for something else.
    pub fn attach_to_group(&self, folder: BorrowedFd<'_>) -> io::Result<Link> {
        self.link(folder.as_raw_fd() as u32)
    }

    /// Has frames that leave by or arrive at the interface with this number go through it, behind programs of others, for as
    /// long as the link is held.
    ///
    /// # Errors
    /// The kernel's: it is older than 6.6, there is no such interface, or the program is for something else.
    pub fn attach_behind(&self, interface: u32) -> io::Result<Link> {
        self.link(interface)
    }

    fn link(&self, target: u32) -> io::Result<Link> {
        #[repr(C)]
        struct Arguments {
            program: u32,
            target: u32,
            attach: u32,
            flags: u32,
            relative: u32,
            padding: u32,
            revision: u64,
        }
        let mut arguments = Arguments {
            program: self.descriptor.as_raw_fd() as u32,
            target,
            attach: self.purpose.attach(),
            flags: 0,
            relative: 0,
            padding: 0,
            revision: 0,
        };
        bpf_opening(LINK_CREATE, &mut arguments).map(Link)
    }

    /// Attaches it to the driver of an interface for as long as the link is held, and never in the place of another program.
    pub fn attach(&self, interface: u32, mode: Mode) -> io::Result<Link> {
        #[repr(C)]
        struct Arguments {
            program: u32,
            interface: u32,
            attach: u32,
            flags: u32,
        }
        let mut arguments = Arguments {
            program: self.descriptor.as_raw_fd() as u32,
            interface,
            attach: XDP_ATTACH,
            flags: mode.flag(),
        };
        bpf_opening(LINK_CREATE, &mut arguments).map(Link)
    }

    /// Runs it `count` times on a frame of at least 14 bytes: what it answers at last.
    pub fn test(&self, frame: &[u8], count: u32) -> io::Result<u32> {
        self.run(frame, count).map(|it| it.verdict)
    }

    /// How long each of `count` runs on such a frame takes on average, nanoseconds, as the kernel measures it.
    pub fn time(&self, frame: &[u8], count: u32) -> io::Result<u32> {
        self.run(frame, count).map(|it| it.duration)
    }

    fn run(&self, frame: &[u8], count: u32) -> io::Result<TestArguments> {
        let mut arguments = TestArguments {
            program: self.descriptor.as_raw_fd() as u32,
            data_len: frame.len() as u32,
            data: frame.as_ptr() as u64,
            repeat: count,
            ..TestArguments::default()
        };
        bpf(PROGRAM_TEST_RUN, &mut arguments)?;
        Ok(arguments)
    }

    /// Has `count` copies of a frame arrive at an interface whose driver runs programs, as its driver would bring them: what is
    /// passed goes the kernel's whole way (Linux 5.18).
    pub fn arrive(&self, frame: &[u8], count: u32, interface: u32) -> io::Result<()> {
        // What a program sees of a frame: begin, end, metadata, interface, queue, interface out.
        let context = [0, frame.len() as u32, 0, interface, 0, 0];
        let mut arguments = TestArguments {
            program: self.descriptor.as_raw_fd() as u32,
            data_len: frame.len() as u32,
            data: frame.as_ptr() as u64,
            repeat: count,
            context_len: size_of_val(&context) as u32,
            context: context.as_ptr() as u64,
            flags: LIVE_FRAMES,
            ..TestArguments::default()
        };
        bpf(PROGRAM_TEST_RUN, &mut arguments).map(drop)
    }
}

/// A program's way to an interface, which ends with it.
#[derive(Debug)]
pub struct Link(OwnedFd);

impl Link {
    /// Has another program in the place of the one that is there, in one step: the driver goes on.
    pub fn replace(&self, program: &Program) -> io::Result<()> {
        #[repr(C)]
        struct Arguments {
            link: u32,
            program: u32,
            flags: u32,
            before: u32,
        }
        let mut arguments = Arguments {
            link: self.0.as_raw_fd() as u32,
            program: program.descriptor.as_raw_fd() as u32,
            flags: 0,
            before: 0,
        };
        bpf(LINK_UPDATE, &mut arguments).map(drop)
    }

    /// Whether the interface is there still.
    pub fn holds(&self) -> bool {
        let index =
            info::<64>(&self.0).map(|info| u32::from_ne_bytes([16, 17, 18, 19].map(|at| info[at])));
        index.is_ok_and(|index| index != 0)
    }
}

/// The name of the program with this number.
pub fn program_name(number: u32) -> io::Result<String> {
    #[repr(C)]
    struct Arguments {
        number: u32,
        next: u32,
        flags: u32,
    }
    let mut arguments = Arguments {
        number,
        next: 0,
        flags: 0,
    };
    let program = bpf_opening(PROGRAM_BY_ID, &mut arguments)?;
    let info = info::<80>(&program)?;
    let name = info[64..].split(|&byte| byte == 0).next();
    Ok(String::from_utf8_lossy(name.unwrap_or_default()).into_owned())
}
