//! The sending end of a trial.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bumpless_net_linux::random;
use serde_json::Value;

use super::carried::{self, Carried};
use super::datagram::{ASK_LEN, Head, Kind};
use super::report::Report;
use super::{Ask, TrialError, system};
use crate::request::Request;

/// How long a listener has for its answer, and for its report.
const ANSWER: Duration = Duration::from_secs(3);
/// How long a session has for its beginning.
const SETTLE: Duration = Duration::from_secs(5);
/// Between two hellos, and two requests for the report.
const AGAIN: Duration = Duration::from_millis(50);
/// Silence in which both ends look at their counters: longer than copies are under way.
const QUIET: Duration = Duration::from_millis(300);

/// What is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendPlan {
    /// To whom.
    pub host: IpAddr,
    /// To which port.
    pub port: u16,
    /// Datagrams a second.
    pub rate: u32,
    /// Datagrams.
    pub count: u32,
    /// Bytes of each, `LEN_MIN` to `LEN_MAX`.
    pub bytes: usize,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Datagrams that were sent; fewer than planned if it was interrupted.
    pub sent: u32,
    /// Of these, those that the system did not take.
    pub not_taken: u32,
    /// How long that took.
    pub took: Duration,
    /// Whether the other host's file has the port.
    pub is_monitored: bool,
    /// Whether copies left on several networks from the first datagram on.
    pub is_replicated: bool,
    /// Copies, by network.
    pub networks: Vec<Carried>,
    /// What the other host tells; `None` if that did not come.
    pub report: Option<Report>,
}

/// Sends a stream, and collects what came of it. `tell` hears what happens. `None` if it was interrupted before the stream began.
///
/// # Errors
/// The daemon of this host does not answer, or nobody listens.
pub fn send(
    plan: &SendPlan,
    ask: Ask<'_>,
    stop: &AtomicBool,
    tell: &dyn Fn(&str),
) -> Result<Option<Sent>, TrialError> {
    let status = || ask(&Request::Status).map_err(TrialError::Daemon);
    status()?;
    let run = random::seed().map_err(|errno| system("draw random bytes")(errno.into()))?;
    let source = Source::open(*plan, run)?;
    let Some((is_monitored, is_replicated)) = source.introduce(&status, stop)? else {
        return Ok(None);
    };
    tell(match (is_monitored, is_replicated) {
        (_, true) => "the other host listens, and the port is replicated; the stream begins",
        (true, false) => {
            "the other host listens and monitors the port, which is not replicated; the stream begins"
        }
        (false, false) => "the other host listens and does not monitor the port; the stream begins",
    });
    thread::sleep(QUIET);
    let before = status()?;
    let began = Instant::now();
    let (sent, not_taken) = source.stream(began, stop);
    let took = began.elapsed();
    thread::sleep(QUIET);
    let networks = carried::sent(&status()?, &before, plan.port, plan.host);
    Ok(Some(Sent {
        sent,
        not_taken,
        took,
        is_monitored,
        is_replicated,
        networks,
        report: source.collect(sent),
    }))
}

/// An ordinary socket, as an application has it: the system chooses address and network.
struct Source {
    socket: UdpSocket,
    plan: SendPlan,
    run: u64,
    began: Instant,
}

impl Source {
    fn open(plan: SendPlan, run: u64) -> Result<Self, TrialError> {
        let any: IpAddr = match plan.host {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0)).map_err(system("open a socket"))?;
        let patience = socket.set_read_timeout(Some(AGAIN));
        patience.map_err(system("open a socket"))?;
        Ok(Self {
            socket,
            plan,
            run,
            began: Instant::now(),
        })
    }

    fn head(&self, kind: Kind, number: u32, total: u32) -> Head {
        Head {
            kind,
            run: self.run,
            number,
            total,
            sent_ns: self.began.elapsed().as_nanos() as u64,
        }
    }

    fn say(&self, bytes: &[u8]) -> io::Result<usize> {
        let to = SocketAddr::new(self.plan.host, self.plan.port);
        self.socket.send_to(bytes, to)
    }

    /// The next datagram of this kind, if one comes soon. It may come from another address of the listener's: on any network.
    fn hear(&self, kind: Kind) -> Option<(Head, Vec<u8>)> {
        let mut buffer = [0; 2048];
        let until = Instant::now() + AGAIN;
        while Instant::now() < until {
            let (len, _) = self.socket.recv_from(&mut buffer).ok()?;
            match Head::read(&buffer[..len]) {
                Some((head, rest)) if head.kind == kind && head.run == self.run => {
                    return Some((head, rest.to_vec()));
                }
                _ => {}
            }
        }
        None
    }

    /// Says hello until the listener has answered and the port is replicated: whether it is monitored there, and replicated. `None` if it
    /// was interrupted before.
    fn introduce(
        &self,
        status: &dyn Fn() -> Result<Value, TrialError>,
        stop: &AtomicBool,
    ) -> Result<Option<(bool, bool)>, TrialError> {
        let SendPlan {
            host, port, count, ..
        } = self.plan;
        let began = Instant::now();
        let mut monitored = None;
        while !stop.load(Ordering::Relaxed) {
            // A network that is down for the host itself refuses; another one may take the next one.
            let _ = self.say(&self.head(Kind::Hello, 0, count).bytes());
            if let Some((head, _)) = self.hear(Kind::Welcome) {
                monitored = Some(head.number == 1);
                // Answers come at once, hellos not.
                thread::sleep(AGAIN);
            }
            let is_replicated =
                carried::session(&status()?, port, host).is_some_and(|(_, live)| live);
            match monitored {
                Some(monitored) if is_replicated => return Ok(Some((monitored, true))),
                Some(false) => return Ok(Some((false, false))),
                Some(true) if began.elapsed() > SETTLE => return Ok(Some((true, false))),
                None if began.elapsed() > ANSWER => {
                    return Err(TrialError::NobodyListens(host, port));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// The stream itself: how many were sent, and how many of them the system did not take.
    fn stream(&self, began: Instant, stop: &AtomicBool) -> (u32, u32) {
        let SendPlan {
            rate, count, bytes, ..
        } = self.plan;
        let (mut not_taken, every) = (0, Duration::from_secs(1) / rate.max(1));
        for number in 0..count {
            let due = began + every * number;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if stop.load(Ordering::Relaxed) {
                return (number, not_taken);
            }
            let datagram = self.head(Kind::Data, number, count).padded(bytes);
            not_taken += u32::from(self.say(&datagram).is_err());
        }
        (count, not_taken)
    }

    fn collect(&self, sent: u32) -> Option<Report> {
        let began = Instant::now();
        while began.elapsed() < ANSWER {
            let _ = self.say(&self.head(Kind::Ask, 0, sent).padded(ASK_LEN));
            if let Some((_, report)) = self.hear(Kind::Report) {
                return Report::read(&report);
            }
        }
        None
    }
}
