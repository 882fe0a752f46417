//! Ten thousand sessions of two daemons at once: one for each port of an ordinary program.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::site::{BOTH, Site};
use crate::support::hosts::with_hosts;
use crate::support::process::Process;
use crate::support::{try_for, wait_for, wait_until};

const FIRST: u16 = 20_000;
const SESSIONS: u16 = 10_000;
/// How long it may take until all have been found: senders are seen 2,000 a second at most (L-4).
const PATIENCE: Duration = Duration::from_secs(120);
/// Ports that are sent to at once.
const AT_A_TIME: usize = 200;
/// Resident bytes of a daemon that is in so many sessions (`spec/iprp-daemon.md`, L-34).
const MOST: u64 = 12_500 * SESSIONS as u64;
/// What further packets may add: nothing is kept of any.
const GROWTH: u64 = 4 << 20;
/// In so many rounds at most there is one that adds no more.
const ROUNDS: usize = 3;
/// How long it may take until senders know of the receiver's end: an advertisement is good for 90 s.
const UNTOLD: Duration = Duration::from_secs(20);

/// A program with a socket at each port, and one that sends to each in turn.
struct Programs {
    from: UdpSocket,
    at: Vec<UdpSocket>,
}

impl Programs {
    fn new(site: &Site) -> Self {
        bumpless_net_linux::open_files::ensure(u64::from(SESSIONS) + 1_000).unwrap();
        let ports = FIRST..FIRST + SESSIONS;
        let at = ports.map(|port| {
            let socket = site.udp("right", &format!("10.77.1.2:{port}"));
            socket.set_nonblocking(true).unwrap();
            socket
        });
        Self {
            at: at.collect(),
            from: site.udp("left", "10.77.1.1:40000"),
        }
    }

    /// Sends a number to each port, some thousand a second.
    fn send_to_all(&self, number: u32) {
        let began = Instant::now();
        for at in 0..SESSIONS {
            let to = SocketAddr::from((Ipv4Addr::new(10, 77, 1, 2), FIRST + at));
            // A network that is down for the host itself refuses.
            let _ = self.from.send_to(&number.to_be_bytes(), to);
            if at % 40 == 39 {
                let due = began + Duration::from_millis(u64::from(at) / 4);
                thread::sleep(due.saturating_duration_since(Instant::now()));
            }
        }
    }

    /// Sends a number to each port and waits until it has come there, some ports at a time, so that nothing has to wait for a
    /// place in the kernel's queue. At how many ports it came more than once.
    fn exchange(&self, number: u32) -> usize {
        let mut came = vec![0; self.at.len()];
        for first in (0..self.at.len()).step_by(AT_A_TIME) {
            let some = first..(first + AT_A_TIME).min(self.at.len());
            for at in some.clone() {
                let to = SocketAddr::from((Ipv4Addr::new(10, 77, 1, 2), FIRST + at as u16));
                self.from.send_to(&number.to_be_bytes(), to).unwrap();
            }
            wait_until("each packet comes", || {
                for at in some.clone() {
                    came[at] += self.read(at, number);
                }
                came[some.clone()].iter().all(|count| *count > 0)
            });
        }
        for (at, count) in came.iter_mut().enumerate() {
            *count += self.read(at, number);
        }
        came.iter().filter(|count| **count > 1).count()
    }

    /// How often this number has come at a port since it was read last.
    fn read(&self, at: usize, number: u32) -> u32 {
        let (mut count, mut buffer) = (0, [0; 100]);
        loop {
            match self.at[at].recv(&mut buffer) {
                Ok(len) => count += u32::from(buffer[..len] == number.to_be_bytes()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return count,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// What a host counts. It is asked until it has the time to tell of ten thousand sessions.
fn count(site: &Site, host: &str, what: &str) -> u64 {
    let status: Value = wait_for("status", || site.status(host));
    status["counters"][what].as_u64().unwrap()
}

fn resident(site: &Site) -> [u64; 2] {
    [&site.left, &site.right].map(|it| it.as_ref().map(Process::resident).unwrap())
}

/// The same without replies to `status` of ten thousand sessions: what is left of one may be given back with the
/// next only.
fn without_replies(site: &Site) -> [u64; 2] {
    let mut least = resident(site);
    for host in BOTH.into_iter().cycle().take(6) {
        count(site, host, "captured");
        let again = resident(site);
        least = [least[0].min(again[0]), least[1].min(again[1])];
    }
    least
}

/// How many sessions a host sends and receives in.
fn sessions(site: &Site, host: &str) -> Option<(usize, usize)> {
    let status = site.status(host)?;
    let sending = status["sending"].as_array()?.len();
    let receiving = status["receiving"].as_array()?.iter();
    Some((
        sending,
        receiving.filter(|it| it["replicated"] == true).count(),
    ))
}

/// Each network in turn is cut, a packet is sent to each port, and all come, once, as copies.
fn cut_each_network(site: &Site, programs: &Programs, number: &mut u32) {
    for network in ["A", "B"] {
        site.hosts.cut(network);
        *number += 1;
        let before = count(site, "right", "delivered");
        assert_eq!(
            programs.exchange(*number),
            0,
            "ports at which it came twice"
        );
        let delivered = count(site, "right", "delivered") - before;
        assert!(delivered >= u64::from(SESSIONS), "not all as copies");
        site.hosts.mend(network);
    }
}

pub fn ten_thousand_sessions_of_two_daemons_lose_nothing_when_a_network_is_cut_and_stay_within_their_memory()
 {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        for host in BOTH {
            site.replace(host, "sessions = 16", "sessions = 10000");
            site.replace(
                host,
                "advertise_every_ms = 1000",
                "advertise_every_ms = 30000",
            );
            let ports = format!("port = \"{FIRST}-{}\"", FIRST + SESSIONS - 1);
            site.replace(host, "port = 4713", &ports);
            site.start(host);
        }
        let empty = resident(&site);
        let programs = Programs::new(&site);
        let mut number = 0;
        let begun = try_for(PATIENCE, || {
            number += 1;
            programs.send_to_all(number);
            let both = (sessions(&site, "left")?.0, sessions(&site, "right")?.1);
            (both == (SESSIONS.into(), SESSIONS.into())).then_some(())
        });
        assert!(begun.is_some(), "not all sessions have begun");
        wait_until("packets of all are captured", || {
            number += 1;
            let before = count(&site, "left", "captured");
            assert_eq!(programs.exchange(number), 0, "ports at which it came twice");
            let captured = count(&site, "left", "captured") - before;
            captured == u64::from(SESSIONS)
        });
        // What status takes is found by then, too.
        for host in BOTH.into_iter().cycle().take(6) {
            count(&site, host, "captured");
        }
        // What is kept of packets grows with each round; the peak of a buffer is found in one of them.
        let steady = (0..ROUNDS).any(|_| {
            let full = without_replies(&site);
            cut_each_network(&site, &programs, &mut number);
            let after = without_replies(&site);
            println!(
                "resident at the start, with all sessions, after cuts: {empty:?} {full:?} {after:?}"
            );
            assert!(after.iter().all(|it| *it <= MOST), "{after:?}");
            let mut both = after.iter().zip(&full);
            both.all(|(after, full)| *after <= full + GROWTH)
        });
        assert!(steady, "each round of packets takes more memory");
        // Long before they would end for want of advertisements.
        let began = Instant::now();
        site.interrupt("right");
        let left = try_for(UNTOLD, || (sessions(&site, "left")?.0 == 0).then_some(()));
        println!(
            "after the end of one daemon: {:?}, {:?}",
            sessions(&site, "left"),
            began.elapsed()
        );
        assert!(left.is_some(), "not every sender was told of the end");
    });
}
