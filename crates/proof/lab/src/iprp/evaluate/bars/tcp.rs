//! A TCP connection, 1,000 bytes every 50 ms, over networks of which the faster one is cut: no round trip takes longer than the other
//! network's own. A connection that felt the cut would wait for TCP's own repetition, 200 ms at least.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bumpless_base::Duration as Span;
use bumpless_net_linux::Clock;
use serde_json::json;

use super::super::Plan;
use super::super::statistics::chance_of_ranks;
use super::{
    Bar, Cut, NETWORKS, ONE_IN, SETTLE, all_in_copies, cut, cuts_told, even, felt, lengths, ms,
    plain, spread,
};
use crate::iprp::hosts::address;
use crate::iprp::site::{PORT, Site};
use crate::iprp::stalls::Stalls;
use crate::iprp::{LabError, impossible};

/// Bytes of a request and of its answer, and the time between two requests.
const LEN: usize = 1_000;
const ANSWER: usize = 32;
const EVERY: Span = Span::from_millis(50);
/// The faster network is the one that is cut.
const DELAYS_MS: [u64; NETWORKS] = [2, 6];
/// How long it is cut, and how long both are sound before that.
const DOWN: Duration = Duration::from_millis(600);
const SOUND: Duration = Duration::from_millis(300);
pub const TURN: Duration = Duration::from_millis(900);
/// Round trips that are looked at when a network has been cut, and of the other one alone.
const LOOK: usize = 4;
/// A round trip that takes longer has waited for TCP's own repetition.
const OWN_REPETITION_NS: u64 = 150 * super::MS;
/// An answer that takes longer does not come any more.
const PATIENCE: Duration = Duration::from_secs(3);
/// Beside that of the site's files.
const AT: u16 = PORT + 1;

/// When a request was sent, and when its answer was there.
type Trip = (u64, u64);

/// What was seen.
pub struct Seen {
    trips: Vec<Trip>,
    unanswered: usize,
    cuts: Vec<Cut>,
}

/// Runs client and server.
///
/// # Errors
/// As a scenario's.
pub fn measure(plan: &Plan, cuts: usize) -> Result<Seen, LabError> {
    let more = format!("[[monitor]]\nprotocol = \"tcp\"\nport = {AT}\n");
    let mut site = Site::start_with(&plan.binary, (NETWORKS, 1, &more), plan.seed, &plan.stop)?;
    let at = SocketAddr::from((address(0, 1), AT));
    let bind = || TcpListener::bind(at);
    let listener = site.hosts.host(1).run(bind).map_err(impossible)?;
    let listener = listener.map_err(impossible)?;
    let connect = || TcpStream::connect_timeout(&at, PATIENCE);
    let client = site.hosts.host(0).run(connect).map_err(impossible)?;
    let client = client.map_err(impossible)?;
    let (server, _) = listener.accept().map_err(impossible)?;
    for end in [&client, &server] {
        end.set_nodelay(true).map_err(impossible)?;
        end.set_read_timeout(Some(PATIENCE)).map_err(impossible)?;
    }
    let is_over = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        scope.spawn(|| answer(&server));
        let asking = scope.spawn(|| ask(&client, &is_over));
        let done = befall(&mut site, cuts);
        is_over.store(true, Ordering::Release);
        let (trips, unanswered) = asking.join().unwrap_or_default();
        // Only then: a request that was sent has its answer.
        let _ = client.shutdown(Shutdown::Both);
        done.map(|cuts| Seen {
            trips,
            unanswered,
            cuts,
        })
    });
    let seen = seen?;
    site.end();
    Ok(seen)
}

fn befall(site: &mut Site, cuts: usize) -> Result<Vec<Cut>, LabError> {
    // It begins before it is replicated.
    site.wait("both directions of the connection are replicated", |site| {
        (0..2).all(|host| sends(site, host))
    })?;
    let (usual, before) = (even(DELAYS_MS), plain(site));
    site.set(usual.to_vec());
    site.sleep(SETTLE)?;
    let mut done = Vec::new();
    for _ in 0..cuts {
        site.sleep(SOUND)?;
        done.push(cut(site, &usual, 0, DOWN)?);
    }
    site.sleep(SETTLE)?;
    all_in_copies(site, before, "the TCP connection over cuts")?;
    Ok(done)
}

/// Whether a host sends packets of the connection on both networks.
fn sends(site: &Site, host: usize) -> bool {
    let status = site.status(host).unwrap_or_default();
    let sending = status["sending"].as_array().cloned().unwrap_or_default();
    sending.iter().any(|it| {
        let networks = it["networks"].as_array().map_or(0, Vec::len);
        it["protocol"] == "tcp" && it["port"] == AT && networks == NETWORKS
    })
}

/// Answers each request.
fn answer(mut server: &TcpStream) {
    let mut request = [0; LEN];
    while server.read_exact(&mut request).is_ok() {
        if server.write_all(&[7; ANSWER]).is_err() {
            return;
        }
    }
}

/// Asks at an even rate; each round trip, and requests that had no answer.
fn ask(client: &TcpStream, is_over: &AtomicBool) -> (Vec<Trip>, usize) {
    let (mut trips, mut due) = (Vec::new(), Clock.now());
    while !is_over.load(Ordering::Acquire) {
        let sent = Clock.now().as_nanos();
        if one(client).is_err() {
            return (trips, 1);
        }
        trips.push((sent, Clock.now().as_nanos()));
        due = (due + EVERY).max(Clock.now());
        Clock.sleep_until(due);
    }
    (trips, 0)
}

fn one(mut client: &TcpStream) -> io::Result<()> {
    client.write_all(&[5; LEN])?;
    client.read_exact(&mut [0; ANSWER])
}

impl Seen {
    /// The longest of the first round trips that end after a cut.
    fn after(&self, cut: &Cut) -> Option<Trip> {
        let trips = self.trips.iter().filter(|it| it.1 >= cut.from_ns);
        trips.take(LOOK).copied().max_by_key(|it| it.1 - it.0)
    }

    /// The longest of the last ones that end before the network is there again: those of the other one alone.
    fn own(&self, cut: &Cut) -> Option<u64> {
        let trips = self.trips.iter().rev().filter(|it| it.1 <= cut.until_ns);
        trips.take(LOOK).map(|it| it.1 - it.0).max()
    }

    /// Whether what is taken for the other network's own is slower than what both have: otherwise nothing was cut.
    fn took_place(&self, own: &[u64]) -> bool {
        let both = self.cuts.iter().filter_map(|cut| {
            let trips = self.trips.iter().rev().filter(|it| it.1 < cut.from_ns);
            trips.take(LOOK).map(|it| it.1 - it.0).min()
        });
        let least = |it: &mut dyn Iterator<Item = u64>| it.min().unwrap_or(0);
        let (both, own) = (
            least(&mut both.into_iter()),
            least(&mut own.iter().copied()),
        );
        own > both + (DELAYS_MS[1] - DELAYS_MS[0]) * super::MS / 2
    }

    /// What it comes to.
    pub fn judged(&self, stalls: &Stalls) -> Bar {
        let longest: Vec<_> = self.cuts.iter().filter_map(|cut| self.after(cut)).collect();
        let after = lengths(&longest);
        let own: Vec<_> = self.cuts.iter().filter_map(|cut| self.own(cut)).collect();
        let chance = chance_of_ranks(&after, &own);
        let (felt, stalled) = felt(&longest, (OWN_REPETITION_NS, &own), stalls);
        let took_place = self.took_place(&own);
        Bar {
            id: "cut-tcp",
            promised: format!(
                "the faster of two networks is cut under a TCP connection, {LEN} bytes every {} ms: every answer comes, and no round trip after \
                 a cut is told from the other network's own (ranks, once in {ONE_IN:.0} true measurements), or takes more than {} ms and all \
                 of these",
                EVERY.as_millis(),
                OWN_REPETITION_NS / super::MS
            ),
            seen: format!(
                "{}: {} of {} unanswered; longest of {LOOK} round trips after a cut {}, of the other network alone {}; by chance so in \
                 {:.1} % of measurements; {felt} waited for TCP's own repetition",
                cuts_told(self.cuts.len(), took_place),
                self.unanswered,
                self.trips.len() + self.unanswered,
                spread(&after),
                spread(&own),
                chance * 100.0
            ),
            held: took_place && self.unanswered == 0 && felt == 0 && chance * ONE_IN >= 1.0,
            stalled,
            figures: json!({
                "sent": self.trips.len() + self.unanswered,
                "unanswered": self.unanswered,
                "longest_after_a_cut_ms": ms(&after),
                "longest_of_the_other_ms": ms(&own),
                "chance": chance,
                "felt": felt,
                "took_place": took_place,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MS, stall};
    use super::*;

    /// Eight cuts, after each of which one round trip takes `more` ms more.
    fn seen(more: u64) -> Seen {
        let cuts: Vec<_> = (0..8)
            .map(|turn: u64| Cut {
                network: 0,
                from_ns: (turn * 900 + 300) * MS,
                until_ns: (turn * 900 + 900) * MS,
            })
            .collect();
        let trips = (0..8 * 18).map(|at: u64| {
            let sent = (at * 50 + 10) * MS;
            let takes = match at % 18 {
                0..=5 => 2_300,
                6 => 6_300 + more * 1_000,
                _ => 6_300,
            };
            let jitter = at * 7919 % 300;
            (sent, sent + (takes + jitter) * 1_000)
        });
        Seen {
            trips: trips.collect(),
            unanswered: 0,
            cuts,
        }
    }

    #[test]
    fn a_round_trip_that_waits_for_tcp_breaks_it_and_the_other_networks_own_does_not() {
        assert!(
            seen(0).judged(&Stalls::default()).held,
            "{:?}",
            seen(0).judged(&Stalls::default())
        );
        for more in [3, 200] {
            assert!(
                !seen(more).judged(&Stalls::default()).held,
                "{:?}",
                seen(more).judged(&Stalls::default())
            );
        }
        // One of eight is enough, whatever the ranks say, unless the machine stood still.
        let mut one = seen(0);
        let trip = one.trips.iter_mut().find(|it| it.0 == 310 * MS).unwrap();
        trip.1 += 200 * MS;
        let bar = one.judged(&Stalls::default());
        assert!(!bar.held && bar.stalled == 0, "{bar:?}");
        let bar = one.judged(&stall(320, 200));
        assert!(bar.held && bar.stalled == 1, "{bar:?}");
        let mut silent = seen(0);
        silent.unanswered = 1;
        assert!(!silent.judged(&Stalls::default()).held);
    }

    #[test]
    fn a_cut_that_did_not_take_place_proves_nothing() {
        let mut seen = seen(0);
        seen.trips.iter_mut().for_each(|it| it.1 = it.0 + 2 * MS);
        assert!(!seen.judged(&Stalls::default()).held);
    }
}
