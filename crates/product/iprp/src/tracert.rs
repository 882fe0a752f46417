//! The hops to another host on each network, found on all networks at once.

use std::net::IpAddr;

use bumpless_net_linux::{Clock, Errno, HopProber, Poller, Waker};
use serde_json::{Value, json};

use crate::route::{Hop, Route, RouteEnd, RouteLimits};

/// Values of errno(3) with a remedy of their own.
const EPERM: i32 = 1;
const ENODEV: i32 = 19;
const EADDRNOTAVAIL: i32 = 99;
const ENETDOWN: i32 = 100;
const ENETUNREACH: i32 = 101;
const EHOSTUNREACH: i32 = 113;

/// One network's way to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The network.
    pub ind: u8,
    /// This host's interface there.
    pub interface: String,
    /// This host's address there.
    pub from: IpAddr,
    /// The other host's.
    pub to: IpAddr,
}

/// What was found on one network.
#[derive(Clone, Debug)]
pub struct Traced {
    /// Where.
    pub way: Way,
    /// Who answered, hop by hop.
    pub hops: Vec<Hop>,
    /// How it ended.
    pub end: RouteEnd,
}

/// Searches each of these ways, all at once: in `hops` times `wait` at most.
///
/// # Errors
/// The system has no descriptors left. What concerns one network is told as its end.
pub fn trace(ways: Vec<Way>, limits: RouteLimits) -> Result<Vec<Traced>, Errno> {
    let mut routes: Vec<_> = ways.iter().map(|_| Route::new(limits)).collect();
    let mut probers = Vec::new();
    for (way, route) in ways.iter().zip(&mut routes) {
        let prober = HopProber::open(way.to, way.from, Some(&way.interface));
        probers.push(match prober {
            Ok(prober) => Some(prober),
            Err((call, errno)) => {
                route.not_sent(refusal(way, call, errno));
                None
            }
        });
    }
    let descriptors: Vec<_> = probers
        .iter()
        .flatten()
        .map(HopProber::descriptor)
        .collect();
    let mut poller = Poller::new(&descriptors, Waker::new()?);
    loop {
        for ((way, route), prober) in ways.iter().zip(&mut routes).zip(&probers) {
            let Some(prober) = prober else { continue };
            while let Some(answer) = prober.receive() {
                route.answered(Clock.now(), &answer);
            }
            send_due(way, route, prober);
        }
        let open = routes.iter().filter(|route| route.end().is_none());
        let Some(due) = open.map(Route::due).min() else {
            break;
        };
        poller.wait(due)?;
    }
    let found = ways.into_iter().zip(routes).map(|(way, route)| Traced {
        way,
        hops: route.hops().to_vec(),
        end: route.end().cloned().unwrap_or(RouteEnd::TooFar),
    });
    Ok(found.collect())
}

fn send_due(way: &Way, route: &mut Route, prober: &HopProber) {
    let Some((hops, ports)) = route.poll(Clock.now()) else {
        return;
    };
    for port in ports {
        if let Err(errno) = prober.send(hops, port) {
            return route.not_sent(refusal(way, "send", errno));
        }
    }
}

fn refusal(way: &Way, call: &str, errno: Errno) -> String {
    let Way {
        interface,
        from,
        to,
        ..
    } = way;
    match errno.0 {
        ENETUNREACH | EHOSTUNREACH => format!(
            "this host has no way to {to} on {interface}: add one (`ip route get {to} oif {interface}` tells what there is)"
        ),
        ENETDOWN => format!("{interface} is down: bring it up (`ip link set {interface} up`)"),
        ENODEV | EADDRNOTAVAIL => {
            format!("{interface} with {from} is not there any more: look at what `ip address` says")
        }
        EPERM if call != "send" => format!(
            "cannot {call} {interface}: before Linux 5.7 that takes CAP_NET_RAW, so run it as root"
        ),
        EPERM => format!("this host's firewall lets no UDP pass to {to} on {interface}"),
        _ => format!("cannot {call} from {from} on {interface}: {errno}"),
    }
}

impl Traced {
    /// Whether the host was reached.
    pub fn is_reached(&self) -> bool {
        self.end == RouteEnd::Reached
    }

    /// How it ended, as a sentence.
    pub fn words(&self) -> String {
        let to = self.way.to;
        match &self.end {
            RouteEnd::Reached => match self.hops.len() {
                1 => format!("{to} reached in one hop"),
                hops => format!("{to} reached in {hops} hops"),
            },
            RouteEnd::Silent(1) => format!(
                "nothing answers, not even the first hop; the cable, the switch or {to} is dead"
            ),
            RouteEnd::Silent(hop) => format!(
                "nothing answers from hop {hop} on: the way ends behind {}, or who is behind it drops UDP",
                self.last_heard()
            ),
            RouteEnd::Refused(by, kind, code) => {
                let own = if *by == self.way.from {
                    ", this host itself: nobody has that address on the network"
                } else {
                    ""
                };
                format!("refused by {by} (ICMP type {kind}, code {code}){own}")
            }
            RouteEnd::NotSent(why) => why.clone(),
            RouteEnd::TooFar => format!(
                "{to} is further away than {} hops; give more",
                self.hops.len()
            ),
        }
    }

    fn last_heard(&self) -> String {
        let last = self.hops.iter().rev().find_map(|hop| hop.answers.first());
        last.map_or("this host".into(), |(from, _)| from.to_string())
    }

    fn json(&self) -> Value {
        let silent_from = match self.end {
            RouteEnd::Silent(hop) => Some(hop),
            _ => None,
        };
        json!({
            "ind": self.way.ind,
            "interface": self.way.interface,
            "from": self.way.from.to_string(),
            "to": self.way.to.to_string(),
            "end": end_name(&self.end),
            "silent_from_hop": silent_from,
            "words": self.words(),
            "hops": self.hops.iter().map(hop).collect::<Vec<_>>(),
        })
    }
}

const fn end_name(end: &RouteEnd) -> &'static str {
    match end {
        RouteEnd::Reached => "reached",
        RouteEnd::Silent(_) => "silent",
        RouteEnd::Refused(..) => "refused",
        RouteEnd::NotSent(_) => "not_sent",
        RouteEnd::TooFar => "too_far",
    }
}

fn hop(hop: &Hop) -> Value {
    let answer = |(from, trip): &(IpAddr, bumpless_base::Duration)| json!({"from": from.to_string(), "round_trip_us": trip.as_nanos() as f64 / 1e3});
    json!({
        "hop": hop.number,
        "sent": hop.sent,
        "answers": hop.answers.iter().map(answer).collect::<Vec<_>>(),
    })
}

/// What was found, as `bumpless.iprp.tracert/1`.
pub fn traced_json(found: &[Traced]) -> Value {
    json!({
        "schema": "bumpless.iprp.tracert/1",
        "networks": found.iter().map(Traced::json).collect::<Vec<_>>(),
    })
}
