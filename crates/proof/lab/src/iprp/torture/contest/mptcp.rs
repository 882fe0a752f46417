//! MPTCP v1 of the kernel: messages of fixed length on one connection with a subflow on each network.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bumpless_base::Duration as Span;
use bumpless_net_linux::Clock;
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};

use crate::iprp::hosts::{Hosts, address, interface};
use crate::iprp::torture::TortureOptions;
use crate::iprp::torture::known::{
    Attempt, Contestant, LEN, RATE, Stream, Trouble, befall, second_route,
};
use crate::iprp::{LabError, impossible};

const MPTCP: i32 = 262;
const PORT: u16 = 20_100;
/// How long a call waits before it looks whether it is over.
const LOOK: Duration = Duration::from_millis(50);
/// How often it is looked whether it is up.
const UP_LOOKS: u32 = 60;
/// What TCP has after the end for bringing what it has taken.
const SETTLE: Duration = Duration::from_secs(3);

/// Both programs.
struct Pair<'a> {
    hosts: &'a Hosts,
    stop: Arc<AtomicBool>,
    /// The sending program is to be away.
    is_away: Arc<AtomicBool>,
}

impl Attempt for Pair<'_> {
    fn hosts(&self) -> &Hosts {
        self.hosts
    }

    fn sleep(&mut self, time: Duration) -> Result<(), LabError> {
        super::sleep(time, &self.stop)
    }

    fn end_sender(&mut self) -> Result<(), LabError> {
        self.is_away.store(true, Ordering::Release);
        Ok(())
    }

    fn begin_sender(&mut self) -> Result<(), LabError> {
        self.is_away.store(false, Ordering::Release);
        Ok(())
    }
}

fn socket() -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::from(MPTCP)))?;
    socket.set_reuse_address(true)?;
    Ok(socket)
}

/// Tells the kernel of both networks.
fn endpoints(hosts: &Hosts) -> Result<(), String> {
    for (host, kind) in [(0, "subflow"), (1, "signal")] {
        let limits = "mptcp limits set subflow 4 add_addr_accepted 4";
        let other = address(1, host);
        let endpoint = format!("mptcp endpoint add {other} dev {} {kind}", interface(1));
        for line in [limits, &endpoint] {
            hosts.host(host).tool("ip", line)?;
        }
    }
    Ok(())
}

fn connect() -> std::io::Result<TcpStream> {
    let socket = socket()?;
    socket.bind(&SockAddr::from(SocketAddr::from((address(0, 0), 0))))?;
    let to = SocketAddr::from((address(0, 1), PORT));
    socket.connect_timeout(&to.into(), Duration::from_secs(2))?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(LOOK))?;
    Ok(stream)
}

/// Sends at an even rate until it is over. A message that the connection does not take in time waits, with all behind it, as
/// it would in any program.
fn send(is_over: &AtomicBool, is_away: &AtomicBool, sent: &Mutex<Stream>) {
    let (mut stream, mut due) = (connect().ok(), Clock.now());
    let (mut number, mut waiting) = (0u32, Vec::new());
    while !is_over.load(Ordering::Acquire) {
        if is_away.load(Ordering::Acquire) {
            // Killed: whoever is at the other end is told by nothing but a reset.
            if let Some(stream) = stream.take() {
                let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
            }
            waiting.clear();
            due = Clock.now();
        } else if stream.is_none() {
            stream = connect().ok();
            // Half a message would shift all behind it.
            waiting.clear();
        }
        let now = Clock.now();
        while due <= now && !is_away.load(Ordering::Acquire) {
            let mut message = [0; LEN];
            message[..4].copy_from_slice(&number.to_be_bytes());
            waiting.extend_from_slice(&message);
            if let Ok(mut sent) = sent.lock() {
                sent.sent.insert(number, due.as_nanos());
            }
            number += 1;
            due += Span::from_micros(1_000_000 / u64::from(RATE));
        }
        let taken = stream.as_mut().map(|it| it.write(&waiting));
        match taken {
            Some(Ok(taken)) => drop(waiting.drain(..taken)),
            Some(Err(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Some(Err(_)) => stream = None,
            None => {}
        }
        Clock.sleep_until(due.max(now + Span::from_micros(200)));
    }
    // What it has taken still has its time.
    if let Some(mut stream) = stream {
        let _ = stream.set_write_timeout(Some(SETTLE));
        let _ = stream.write_all(&waiting);
        thread::sleep(SETTLE);
    }
}

fn receive(listener: &TcpListener, is_over: &AtomicBool, came: &Mutex<Stream>) {
    let _ = listener.set_nonblocking(true);
    thread::scope(|scope| {
        while !is_over.load(Ordering::Acquire) {
            match listener.accept() {
                Ok((stream, _)) => {
                    scope.spawn(move || read(stream, is_over, came));
                }
                Err(_) => thread::sleep(LOOK / 10),
            }
        }
    });
}

fn read(mut stream: TcpStream, is_over: &AtomicBool, came: &Mutex<Stream>) {
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_read_timeout(Some(LOOK));
    let (mut message, mut filled) = ([0; LEN], 0);
    while !is_over.load(Ordering::Acquire) {
        match stream.read(&mut message[filled..]) {
            Ok(0) => return,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(_) => return,
        }
        if filled == LEN {
            filled = 0;
            let [a, b, c, d, ..] = message;
            if let Ok(mut came) = came.lock() {
                let number = u32::from_be_bytes([a, b, c, d]);
                let now = Clock.now().as_nanos();
                came.came.entry(number).or_insert((now, 0)).1 += 1;
            }
        }
    }
}

/// What the receiving host counts of MPTCP: connections with it, and subflows that joined one.
fn joined(hosts: &Hosts) -> [u64; 2] {
    let read = || std::fs::read_to_string("/proc/thread-self/net/netstat").unwrap_or_default();
    let said = hosts.host(1).run(read).unwrap_or_default();
    ["MPCapableACKRX", "MPJoinAckRx"].map(|name| counted(&said, name))
}

/// The counter of a name among those of MPTCP: a line of names, a line of numbers.
fn counted(said: &str, name: &str) -> u64 {
    let mut lines = said.lines().filter(|line| line.starts_with("MPTcpExt:"));
    let [names, numbers] = [lines.next(), lines.next()].map(Option::unwrap_or_default);
    let mut both = names.split_whitespace().zip(numbers.split_whitespace());
    let found = both.find(|it| it.0 == name);
    found.and_then(|it| it.1.parse().ok()).unwrap_or(0)
}

/// Waits until it is MPTCP that runs, with a subflow on each network; the inner error says that it does not.
fn both(hosts: &Hosts, stop: &Arc<AtomicBool>) -> Result<Result<(), String>, LabError> {
    let mut seen = [0; 2];
    for _ in 0..UP_LOOKS {
        super::sleep(LOOK, stop)?;
        seen = joined(hosts);
        if seen.iter().all(|it| *it > 0) {
            return super::sleep(LOOK * 4, stop).map(Ok);
        }
    }
    let [connections, joins] = seen;
    Ok(Err(format!(
        "its connection has no subflow on each network: {connections} connections with MPTCP, {joins} further subflows; do it again"
    )))
}

pub fn attempt(
    options: &TortureOptions,
    trouble: Trouble,
) -> Result<Result<Contestant, String>, LabError> {
    let hosts = Hosts::new(2, options.seed)?;
    if let Err(why) = endpoints(&hosts) {
        return Ok(Err(format!(
            "this kernel or iproute2 has no MPTCP: {why}; Linux 5.10 and iproute2 5.10 have it"
        )));
    }
    second_route(&hosts)?;
    let listen = || -> std::io::Result<TcpListener> {
        let socket = socket()?;
        let any = std::net::Ipv4Addr::UNSPECIFIED;
        socket.bind(&SockAddr::from(SocketAddr::from((any, PORT))))?;
        socket.listen(16)?;
        Ok(socket.into())
    };
    let listener = match hosts.host(1).run(listen).map_err(impossible)? {
        Ok(listener) => listener,
        Err(error) => {
            return Ok(Err(format!(
                "this kernel has no MPTCP sockets: {error}; one with CONFIG_MPTCP has"
            )));
        }
    };
    let stream = Mutex::new(Stream::default());
    let [sends, receives] = [AtomicBool::new(false), AtomicBool::new(false)];
    let mut pair = Pair {
        hosts: &hosts,
        stop: Arc::clone(&options.stop),
        is_away: Arc::default(),
    };
    let is_away = Arc::clone(&pair.is_away);
    let befell = thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&listener, &receives, &stream));
        let sending = scope.spawn(|| hosts.host(0).run(|| send(&sends, &is_away, &stream)));
        let befell = both(&hosts, &options.stop).and_then(|up| {
            let Ok(()) = up else {
                return Ok(up.map(|()| Default::default()));
            };
            hosts.relay.set(trouble.at_first().to_vec());
            befall(&mut pair, trouble).map(Ok)
        });
        sends.store(true, Ordering::Release);
        let _ = sending.join();
        receives.store(true, Ordering::Release);
        let _ = receiving.join();
        befell
    })?;
    let befell = match befell {
        Ok(befell) => befell,
        Err(why) => return Ok(Err(why)),
    };
    let mut stream = stream.into_inner().unwrap_or_default();
    stream.befell = befell;
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut it = stream.judged(
        super::Who::Mptcp.name(),
        &format!("Linux {}", kernel.trim()),
    );
    it.note = "a byte stream: what waits behind a lost segment comes late".into();
    Ok(Ok(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_their_names() {
        let said = "TcpExt: A MPJoinAckRx\nTcpExt: 1 9\nMPTcpExt: MPCapableACKRX MPJoinAckRx\nMPTcpExt: 2 3\n";
        let all = ["MPCapableACKRX", "MPJoinAckRx", "A"].map(|name| counted(said, name));
        assert_eq!(all, [2, 3, 0]);
        assert_eq!(counted("", "A"), 0);
    }
}
