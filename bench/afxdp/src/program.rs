//! The guard's program with another end: frames of registered flows go to the ring that their flow has, all else as with the guard.
//!
//! What classifies and what counts is the guard's own source.

#[path = "../../../crates/linux/reception/src/program/classify.rs"]
mod classify;
#[path = "../../../crates/linux/reception/src/program/decide.rs"]
mod decide;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use bumpless_bpf::{
    Assembler, Condition, Helper, Instruction, Label, Link, Map, MapKind, Mode, Operation, Program,
    Purpose, R1, R2, R3, R8, interface_number, now,
};
use bumpless_guard::Setup;

use crate::layout::{BUDGET_LEN, COUNTS_LEN, KEY_LEN, Layout, PORTS_LEN, Shapes};

const DROP: i32 = 1;
const PASS: i32 = 2;
/// Flows that may have a ring.
pub const RINGS: u32 = 2;

#[derive(Clone, Copy, Debug)]
struct Maps {
    budgets: i32,
    counts: i32,
    ports: i32,
    senders: i32,
}

struct Ways {
    resolution: Label,
    icmp: Label,
    fragment: Label,
    unknown: Label,
    found: Label,
}

/// The program on an interface.
pub struct Redirecting {
    _link: Link,
    _maps: [Map; 4],
    sockets: OwnedFd,
}

impl Redirecting {
    /// Attached in the driver of `interface`.
    pub fn attach(setup: &Setup, interface: &str) -> io::Result<Self> {
        let layout = Layout::new(setup);
        let (array, flows) = (MapKind::Array, layout.flows());
        let budgets = Map::new("afxdp", array, 4, BUDGET_LEN, flows)?;
        let counts = Map::new("afxdp", MapKind::ArrayPerProcessor, 4, COUNTS_LEN, flows)?;
        let ports = Map::new("afxdp", array, 4, PORTS_LEN, 1)?;
        let entries = layout.senders.len().max(1);
        let senders = Map::new("afxdp", MapKind::Hash, KEY_LEN, 4, entries)?;
        for (at, budget) in (0u32..).zip(layout.budgets(now())) {
            budgets.put(&at.to_ne_bytes(), &budget)?;
        }
        ports.put(&[0; 4], &layout.ports)?;
        for (key, flow) in &layout.senders {
            senders.put(key, &flow.to_ne_bytes())?;
        }
        let maps = Maps {
            budgets: budgets.number(),
            counts: counts.number(),
            ports: ports.number(),
            senders: senders.number(),
        };
        let sockets = socket_map()?;
        let code = code(layout.registered, layout.shapes, maps, sockets.as_raw_fd());
        let program = Program::load("afxdp", Purpose::Driver, &code)?;
        let number = interface_number(interface)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))?;
        Ok(Self {
            _link: program.attach(number, Mode::Native)?,
            _maps: [budgets, counts, ports, senders],
            sockets,
        })
    }

    /// Has frames of a flow go to this socket.
    pub fn lead(&self, flow: u32, socket: RawFd) -> io::Result<()> {
        #[repr(C)]
        struct Arguments {
            map: u32,
            padding: u32,
            key: u64,
            value: u64,
            flags: u64,
        }
        let value = socket as u32;
        let mut arguments = Arguments {
            map: self.sockets.as_raw_fd() as u32,
            padding: 0,
            key: (&raw const flow) as u64,
            value: (&raw const value) as u64,
            flags: 0,
        };
        bpf(2, &mut arguments).map(drop)
    }
}

/// One call of bpf(2).
fn bpf<T>(command: libc::c_long, arguments: &mut T) -> io::Result<i32> {
    let pointer = std::ptr::from_mut(arguments);
    // SAFETY: a structure of the kernel's without padding that is not written, which lives through the call as what its addresses name does.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, pointer, size_of::<T>()) };
    match result {
        0.. => Ok(result as i32),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A map of AF_XDP's sockets by flow.
fn socket_map() -> io::Result<OwnedFd> {
    const SOCKETS: u32 = 17;
    let mut arguments = [SOCKETS, 4, 4, RINGS, 0];
    let descriptor = bpf(0, &mut arguments)?;
    // SAFETY: the kernel has just made it, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn code(registered: u32, shapes: Shapes, maps: Maps, sockets: i32) -> Vec<Instruction> {
    let mut code = Assembler::default();
    let ways = Ways {
        resolution: code.label(),
        icmp: code.label(),
        fragment: code.label(),
        unknown: code.label(),
        found: code.label(),
    };
    classify::classify(&mut code, &ways, shapes, maps);
    decide::decide(&mut code, &ways, registered, maps);
    let mut code = code.finish();
    // The guard's program ends with "passed and counted", and "passed" for what cannot be.
    let mut end = Assembler::default();
    decide::answer(&mut end, PASS);
    decide::answer(&mut end, PASS);
    let end = end.finish();
    assert!(code.ends_with(&end), "the guard's program ends otherwise");
    code.truncate(code.len() - end.len());
    code.extend(redirected(sockets));
    code
}

/// What stands in the place of the end, with the flow's number in `R8`; its third instruction is where "passed" began.
fn redirected(sockets: i32) -> Vec<Instruction> {
    let mut code = Assembler::default();
    let (ring, pass) = (code.label(), code.label());
    code.jump_if(R8, Condition::Less, RINGS as i32, ring);
    code.jump(pass);
    code.here(pass);
    decide::answer(&mut code, PASS);
    code.here(ring);
    code.map(R1, sockets);
    code.register(Operation::Move, R2, R8);
    // Where the flow has no ring: on to the kernel.
    code.number(Operation::Move, R3, PASS);
    code.call(Helper::Redirect);
    code.exit();
    let mut code = code.finish();
    let call = code.len() - 2;
    code[call] = redirect_by_map();
    code
}

/// The call of a helper that the product does not have (`bpf_redirect_map`).
fn redirect_by_map() -> Instruction {
    const CALL: u8 = 0x85;
    let mut bytes = [CALL, 0, 0, 0, 0, 0, 0, 0];
    bytes[4..].copy_from_slice(&51i32.to_ne_bytes());
    // SAFETY: an instruction is these eight bytes as the kernel has them (`repr(C)`), and every value of them is one.
    unsafe { std::mem::transmute::<[u8; 8], Instruction>(bytes) }
}
