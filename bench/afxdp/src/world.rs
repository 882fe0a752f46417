//! Two namespaces with a pair of virtual interfaces between them, which go with this process, however it ends.

use std::io;
use std::os::fd::AsRawFd;
use std::process::Command;

use bumpless_base::Duration;
use bumpless_guard::{Flow, Match, Priority, Rate, Setup, Terms, Transport};
use bumpless_reception::Reception;

use crate::namespace::Namespace;
use crate::program::Redirecting;
use crate::ring::Rings;
use crate::threads;

/// Ports of the two flows: the urgent one and the other.
pub const PORTS: [u16; 2] = [4700, 4701];
/// A port that nobody registered.
pub const CLOSED: u16 = 9;
pub const HERE: &str = "10.9.0.1";
pub const THERE: &str = "10.9.0.2";

/// How packets come to the program that wants them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The guard, then the kernel's UDP.
    Socket,
    /// The guard's program, then a ring for each flow.
    Ring,
}

/// Who works off what comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worker {
    /// Whoever is interrupted: with a pair of virtual interfaces, who sends, on its processor.
    Interrupted,
    /// A thread of the interface's own on the receiver's processor, above the receiver.
    Thread,
}

pub struct World {
    pub kind: Kind,
    pub worker: Worker,
    name: String,
    pub here: Namespace,
    pub there: Namespace,
    pub rings: Option<Rings>,
    /// The interface's own thread.
    pub thread: Option<libc::pid_t>,
    _guard: Option<Reception>,
    _program: Option<Redirecting>,
}

fn terms(capacity: u32) -> Terms {
    Terms {
        priority: Priority(1),
        rate: Some(Rate {
            capacity,
            period: Duration::from_millis(1000),
        }),
        queue: 1,
    }
}

/// Both flows are the partner's; of the rest little is let in.
fn setup() -> Setup {
    let partner = THERE.parse().expect("an address");
    let flow = |port| Flow {
        matches: vec![Match::PortFrom(Transport::Udp, port, partner)],
        terms: terms(1 << 22),
    };
    Setup {
        flows: PORTS.map(flow).into(),
        resolution: terms(100),
        icmp: terms(100),
        fragments: terms(100),
        unregistered: terms(10),
        unknown: terms(10),
        ..Setup::closed(2)
    }
}

/// Joins both by a pair of virtual interfaces with one queue, with addresses, each of which knows the other's.
fn wire(here: &Namespace, there: &Namespace, name: &str) -> Result<(), String> {
    here.tool("ip", &format!("link add {name} address 02:00:00:00:00:01 numrxqueues 1 numtxqueues 1 type veth peer name there address 02:00:00:00:00:02 numrxqueues 1 numtxqueues 1"))?;
    here.tool("ip", &format!("link set there netns {}", there.path()))?;
    for (namespace, device, own, other, last) in [
        (here, name, HERE, THERE, 2),
        (there, "there", THERE, HERE, 1),
    ] {
        let tool = |arguments: &str| namespace.tool("ip", arguments);
        tool(&format!("address add {own}/24 dev {device}"))?;
        tool(&format!("link set {device} up"))?;
        tool(&format!(
            "neighbour add {other} lladdr 02:00:00:00:00:0{last} nud permanent dev {device}"
        ))?;
    }
    Ok(())
}

impl World {
    pub fn new(kind: Kind, worker: Worker) -> Result<Self, String> {
        let (here, there) = (Namespace::new()?, Namespace::new()?);
        let letter = match (kind, worker) {
            (Kind::Socket, Worker::Interrupted) => 'a',
            (Kind::Socket, Worker::Thread) => 'b',
            (Kind::Ring, Worker::Interrupted) => 'c',
            (Kind::Ring, Worker::Thread) => 'd',
        };
        let name = format!("x{letter}{:x}", std::process::id() & 0xfff);
        wire(&here, &there, &name)?;
        let (mut guard, mut program, mut rings) = (None, None, None);
        match kind {
            Kind::Socket => {
                let names = [name.clone()];
                let started = here.run(|| Reception::start(&setup(), &names))?;
                let started = started.map_err(|all| format!("{:?}", all))?;
                let report = started.report().map_err(|error| error.to_string())?;
                let mode = report[0].mode.map(|it| it.name());
                (mode == Some("native"))
                    .then_some(())
                    .ok_or_else(|| format!("the guard is not in the driver: {mode:?}"))?;
                guard = Some(started);
            }
            Kind::Ring => {
                let opened = here.run(|| {
                    let program = Redirecting::attach(&setup(), &name)?;
                    Rings::open(&name, &program).map(|rings| (program, rings))
                })?;
                let (attached, opened) = opened.map_err(|error| format!("AF_XDP: {error}"))?;
                (program, rings) = (Some(attached), Some(opened));
            }
        }
        let joined = here.run(|| join(&name, true))?;
        joined.map_err(|error| format!("GRO: {error}"))?;
        let thread = match worker {
            Worker::Interrupted => None,
            Worker::Thread => Some(own_thread(&here, &name)?),
        };
        Ok(Self {
            kind,
            worker,
            name,
            here,
            there,
            rings,
            thread,
            _guard: guard,
            _program: program,
        })
    }
}

impl World {
    /// Has the kernel join datagrams, or not.
    pub fn join(&self, on: bool) -> Result<(), String> {
        let name = &self.name;
        let done = self.here.run(|| join(name, on))?;
        done.map_err(|error| format!("GRO: {error}"))
    }
}

/// Has a thread of the interface's own work packets off.
fn own_thread(here: &Namespace, name: &str) -> Result<libc::pid_t, String> {
    let mut command = Command::new("unshare");
    let script = format!("mount -t sysfs sys /sys && echo 1 > /sys/class/net/{name}/threaded");
    command.args(["-m", "sh", "-c", &script]);
    here.put_into(&mut command);
    let status = command.status().map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("{name}: no thread of its own"));
    }
    let thread = threads::of_interface(name)?;
    threads::place(thread, threads::RECEIVER, threads::Urgency::RealTime(60))?;
    Ok(thread)
}

/// Has the kernel join what comes in (GRO), or not. Cards come with it; a pair of virtual interfaces with a program has it off.
fn join(name: &str, on: bool) -> io::Result<()> {
    const ETHTOOL_SGRO: u32 = 0x2c;
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    let mut value = [ETHTOOL_SGRO, u32::from(on)];
    // SAFETY: zero is a value of all its fields.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the request and what it leads to live through the call, and are of the kernel's form.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
