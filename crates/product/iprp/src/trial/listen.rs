//! The listening end of a trial.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::carried::{came, came_since};
use super::datagram::{Head, Kind};
use super::report::{Came, Report};
use super::tally::Tally;
use super::{Ask, COUNT_MAX, TrialError, system};
use crate::request::Request;

/// Silence after which counters are looked at: shorter than the sender's.
const PAUSE: Duration = Duration::from_millis(50);
/// A stream of which nothing is heard for this long has ended.
const SILENT: Duration = Duration::from_secs(10);
/// After the report: it may be asked for again.
const LINGER: Duration = Duration::from_millis(500);

/// What is listened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenPlan {
    /// At which port.
    pub port: u16,
    /// Whether this host's file has it.
    pub is_monitored: bool,
    /// For how long a sender is waited for.
    pub wait: Duration,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The sender has sent all that it was asked for, and told so.
    Whole,
    /// The sender has told its end before that.
    Early,
    /// Nothing was heard of the sender any more.
    Silent,
    /// This end was told to stop.
    Interrupted,
}

/// What came of a stream.
#[derive(Clone, Debug)]
pub struct Heard {
    /// From where.
    pub from: SocketAddr,
    /// How many the sender was asked for.
    pub asked: u32,
    /// How many there were: by what the sender told at its end; by the highest number that came, if this end was told to stop; or else as
    /// many as it was asked for.
    pub total: u32,
    /// How it ended.
    pub ending: Ending,
    /// What came.
    pub report: Report,
}

/// Listens to one stream. `None` if it was interrupted before one began.
///
/// # Errors
/// The daemon of this host does not answer, the port is taken, or nobody sends.
pub fn listen(
    plan: &ListenPlan,
    ask: Ask<'_>,
    stop: &AtomicBool,
) -> Result<Option<Heard>, TrialError> {
    ask(&Request::Status).map_err(TrialError::Daemon)?;
    let socket = open(plan.port)?;
    let began = Instant::now();
    let mut stream: Option<Stream> = None;
    let mut buffer = [0; 2048];
    while !stop.load(Ordering::Relaxed) {
        let came = socket.recv_from(&mut buffer);
        let now = began.elapsed();
        match came {
            Ok((len, from)) => {
                let Some((head, _)) = Head::read(&buffer[..len]) else {
                    continue;
                };
                if stream.is_none() && head.kind == Kind::Hello {
                    let mut new = Stream::new(&head, from, now);
                    new.find_addresses(ask);
                    stream = Some(new);
                }
                if let Some(stream) = stream.as_mut().filter(|it| it.run == head.run) {
                    stream.take((&socket, plan), &head, now, ask);
                }
            }
            Err(_) => {
                let Some(stream) = &mut stream else {
                    if now > plan.wait {
                        return Err(TrialError::NobodySends(plan.port, plan.wait.as_secs()));
                    }
                    continue;
                };
                stream.look(plan.port, ask);
                let patience = if stream.is_whole { LINGER } else { SILENT };
                if now > stream.last + patience {
                    break;
                }
            }
        }
    }
    let is_stopped = stop.load(Ordering::Relaxed);
    Ok(stream.map(|it| it.heard(is_stopped)))
}

fn open(port: u16) -> Result<UdpSocket, TrialError> {
    // That of IPv6 takes both; a host may have only the other one.
    let both = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port));
    let socket = match both {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))
        }
        both => both,
    };
    let socket = socket.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => TrialError::PortTaken(port),
        _ => system("open the port")(error),
    })?;
    let patience = socket.set_read_timeout(Some(PAUSE));
    patience.map_err(system("open the port"))?;
    Ok(socket)
}

/// The stream that is listened to.
struct Stream {
    run: u64,
    from: SocketAddr,
    /// The sender's host on each network.
    addresses: BTreeSet<IpAddr>,
    asked: u32,
    total: u32,
    tally: Tally,
    /// The daemon's counters before and after it.
    before: Option<Vec<Came>>,
    after: Vec<Came>,
    /// Whether something has come since the counters were looked at.
    is_fresh: bool,
    last: Duration,
    is_whole: bool,
}

impl Stream {
    fn new(head: &Head, from: SocketAddr, now: Duration) -> Self {
        let total = head.total.min(COUNT_MAX);
        Self {
            run: head.run,
            from,
            addresses: BTreeSet::from([from.ip().to_canonical()]),
            asked: total,
            total,
            tally: Tally::new(total),
            before: None,
            after: Vec::new(),
            is_fresh: true,
            last: now,
            is_whole: false,
        }
    }

    fn peer(&self) -> IpAddr {
        self.from.ip().to_canonical()
    }

    fn take(
        &mut self,
        (socket, plan): (&UdpSocket, &ListenPlan),
        head: &Head,
        now: Duration,
        ask: Ask<'_>,
    ) {
        self.last = now;
        let answer = |kind, number| Head {
            kind,
            number,
            ..*head
        };
        match head.kind {
            Kind::Hello => {
                self.is_fresh = true;
                let welcome = answer(Kind::Welcome, u32::from(plan.is_monitored)).bytes();
                self.answer(socket, &welcome);
            }
            Kind::Data => {
                self.is_fresh = true;
                let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
                self.tally.note(head.number, head.sent_ns, now);
            }
            Kind::Ask => {
                self.total = head.total.min(self.total);
                self.is_whole = true;
                self.look(plan.port, ask);
                let report =
                    [&answer(Kind::Report, 0).bytes()[..], &self.report().bytes()].concat();
                self.answer(socket, &report);
            }
            Kind::Welcome | Kind::Report => {}
        }
    }

    /// Looks at the daemon's counters, if something has come since the last look.
    fn look(&mut self, port: u16, ask: Ask<'_>) {
        if !std::mem::take(&mut self.is_fresh) {
            return;
        }
        self.find_addresses(ask);
        let Ok(status) = ask(&Request::Status) else {
            return;
        };
        self.after = came(&status, port, self.peer());
        if self.tally.arrived() == 0 {
            self.before = Some(self.after.clone());
        }
    }

    /// Looks where the sender's host is reached, until that is known.
    fn find_addresses(&mut self, ask: Ask<'_>) {
        if self.addresses.len() > 1 {
            return;
        }
        let ways = ask(&Request::Ways { host: self.peer() }).unwrap_or_default();
        let ways = ways["networks"].as_array().into_iter().flatten();
        let found = ways.filter_map(|way| way["to"].as_str()?.parse::<IpAddr>().ok());
        self.addresses.extend(found);
    }

    /// Answers the sender at each of its addresses: a network that is dead is not to keep the report from it.
    fn answer(&self, socket: &UdpSocket, bytes: &[u8]) {
        let is_v6 = socket.local_addr().is_ok_and(|it| it.is_ipv6());
        for address in &self.addresses {
            let address = match address {
                IpAddr::V4(v4) if is_v6 => v4.to_ipv6_mapped().into(),
                other => *other,
            };
            let _ = socket.send_to(bytes, SocketAddr::new(address, self.from.port()));
        }
    }

    fn report(&self) -> Report {
        let before = self.before.as_deref().unwrap_or_default();
        Report {
            networks: came_since(&self.after, before),
            ..self.tally.report()
        }
    }

    fn heard(self, is_stopped: bool) -> Heard {
        let ending = match (self.is_whole, is_stopped) {
            (true, _) if self.total == self.asked => Ending::Whole,
            (true, _) => Ending::Early,
            (false, true) => Ending::Interrupted,
            (false, false) => Ending::Silent,
        };
        Heard {
            from: SocketAddr::new(self.peer(), self.from.port()),
            asked: self.asked,
            total: match ending {
                Ending::Interrupted => self.tally.reach(),
                _ => self.total,
            },
            ending,
            report: self.report(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of which five were asked for and three came.
    fn stream() -> Stream {
        let hello = Head {
            kind: Kind::Hello,
            run: 1,
            number: 0,
            total: 5,
            sent_ns: 0,
        };
        let from = SocketAddr::from(([10, 0, 0, 1], 4000));
        let mut stream = Stream::new(&hello, from, Duration::ZERO);
        (0..3).for_each(|number| stream.tally.note(number, 0, 0));
        stream
    }

    fn ended(total: Option<u32>, is_stopped: bool) -> (Ending, u32, u32) {
        let mut stream = stream();
        stream.is_whole = total.is_some();
        stream.total = total.unwrap_or(stream.total);
        let heard = stream.heard(is_stopped);
        (heard.ending, heard.asked, heard.total)
    }

    #[test]
    fn a_stream_that_ended_early_is_not_whole() {
        assert_eq!(ended(Some(5), false), (Ending::Whole, 5, 5));
        assert_eq!(ended(Some(5), true), (Ending::Whole, 5, 5));
        assert_eq!(ended(Some(3), false), (Ending::Early, 5, 3));
        assert_eq!(ended(None, false), (Ending::Silent, 5, 5));
        // What was sent after that is not lost.
        assert_eq!(ended(None, true), (Ending::Interrupted, 5, 3));
    }
}
