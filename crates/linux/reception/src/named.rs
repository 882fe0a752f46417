//! Flows with names and budgets for the rest: what a host's file or a pair's plan says, as a setup.

use bumpless_base::Duration;
use bumpless_guard::{Flow, FlowId, Match, Priority, Rate, Setup, Terms, Transport};

/// A flow with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFlow {
    /// Its name.
    pub name: String,
    /// What belongs to it.
    pub matches: Vec<Match>,
    /// How much of it is received, on each interface.
    pub rate: Rate,
}

impl NamedFlow {
    /// Whether it may come from any address.
    pub fn is_from_anywhere(&self) -> bool {
        self.matches.iter().any(|it| matches!(it, Match::Port(..)))
    }
}

/// Rates of flows that may come from anywhere, and of those from known addresses.
pub fn rates(flows: &[NamedFlow]) -> (Vec<Rate>, Vec<Rate>) {
    let (anywhere, known): (Vec<_>, Vec<_>) = flows.iter().partition(|it| it.is_from_anywhere());
    let rates = |of: Vec<&NamedFlow>| of.into_iter().map(|flow| flow.rate).collect();
    (rates(anywhere), rates(known))
}

/// Budgets of what belongs to no flow, in packets a second on each interface; none: nothing of it is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// Finding addresses (ARP, neighbour discovery).
    pub resolution: u32,
    /// ICMP.
    pub icmp: u32,
    /// Pieces of IP packets.
    pub fragments: u32,
    /// Ports that nobody registered.
    pub unregistered: u32,
    /// What is not understood.
    pub unknown: u32,
}

impl Rest {
    /// Enough for a host's other services, and so little that a flood of each kind takes a few hundredths of a processor together. The
    /// rest is not dropped altogether: who guards a host from afar would cut off their own session, the answers to its
    /// name server, clock and updates, and what keeps its links up (LACP, spanning tree).
    pub const USUAL: Self = Self {
        resolution: 500,
        icmp: 500,
        fragments: 500,
        unregistered: 10_000,
        unknown: 500,
    };
}

impl Rest {
    /// As rates, those that are not closed.
    pub fn rates(&self) -> Vec<Rate> {
        let all = [
            per_second(self.resolution, LONG_PERIOD),
            per_second(self.icmp, REST_PERIOD),
            per_second(self.fragments, LONG_PERIOD),
            per_second(self.unregistered, REST_PERIOD),
            per_second(self.unknown, REST_PERIOD),
        ];
        all.into_iter().filter_map(|it| it.rate).collect()
    }
}

/// Budgets of the rest are given for a second, and renewed a hundred times in it: anybody can use one up in one go, and while that is worked
/// off, what comes waits in the interface's ring (V-90).
const REST_PERIOD: Duration = Duration::from_millis(10);
/// Those of finding addresses and of fragments are renewed ten times: a host that starts asks for all its partners' addresses at once, and
/// waits a second where an answer is lost; the pieces of a datagram, 45 of the largest, come at once, and are worth nothing one by one.
const LONG_PERIOD: Duration = Duration::from_millis(100);

/// The terms of so many packets a second: as many whole ones as in `period` or a little longer, so that it is no more in a second.
fn per_second(packets: u32, period: Duration) -> Terms {
    const SECOND: u64 = 1_000_000_000;
    if packets == 0 {
        return Terms::CLOSED;
    }
    let capacity = packets.div_ceil((SECOND / period.as_nanos()) as u32);
    let period = (u64::from(capacity) * SECOND).div_ceil(packets.into());
    terms(Rate {
        capacity,
        period: Duration::from_nanos(period),
    })
}

fn terms(rate: Rate) -> Terms {
    match rate.capacity {
        0 => Terms::CLOSED,
        _ => Terms {
            priority: Priority(0),
            rate: Some(rate),
            queue: u16::MAX,
        },
    }
}

/// The setup of these flows and the rest.
pub fn setup(flows: &[NamedFlow], rest: &Rest) -> Setup {
    let one = |flow: &NamedFlow| Flow {
        matches: flow.matches.clone(),
        terms: terms(flow.rate),
    };
    Setup {
        flows: flows.iter().map(one).collect(),
        resolution: per_second(rest.resolution, LONG_PERIOD),
        icmp: per_second(rest.icmp, REST_PERIOD),
        fragments: per_second(rest.fragments, LONG_PERIOD),
        unregistered: per_second(rest.unregistered, REST_PERIOD),
        unknown: per_second(rest.unknown, REST_PERIOD),
        // Queues are the sockets'.
        ..Setup::closed(2)
    }
}

/// The terms of a flow in `setup`.
pub fn terms_of(setup: &Setup, flow: FlowId) -> Terms {
    match flow {
        FlowId::Registered(at) => setup
            .flows
            .get(usize::from(at))
            .map_or(Terms::CLOSED, |flow| flow.terms),
        FlowId::Resolution => setup.resolution,
        FlowId::Icmp => setup.icmp,
        FlowId::Fragments => setup.fragments,
        FlowId::Unregistered => setup.unregistered,
        FlowId::Unknown => setup.unknown,
    }
}

/// The name of a flow that every guard has; `None`: it is a registered one.
pub const fn name_of_rest(flow: FlowId) -> Option<&'static str> {
    Some(match flow {
        FlowId::Registered(_) => return None,
        FlowId::Resolution => "resolution",
        FlowId::Icmp => "icmp",
        FlowId::Fragments => "fragments",
        FlowId::Unregistered => "unregistered",
        FlowId::Unknown => "unknown",
    })
}

/// A pattern as messages have it.
pub fn in_words(pattern: &Match) -> String {
    let name = |transport| match transport {
        Transport::Udp => "udp",
        Transport::Tcp => "tcp",
    };
    match *pattern {
        Match::Port(transport, port) => format!("{} {port}", name(transport)),
        Match::PortFrom(transport, port, from) => {
            format!("{} {port} from {from}", name(transport))
        }
        Match::Answers(transport, from, port) => {
            format!("answers from {} {port} of {from}", name(transport))
        }
        Match::EchoReplies(from) => format!("echo replies from {from}"),
        Match::Resolution(from) => format!("address resolution of {from}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_for_a_second_is_that_in_a_second_whatever_its_periods_and_none_is_none() {
        let rate = |terms: Terms| terms.rate.map(|it| (it.capacity, it.period.as_nanos()));
        let usual = setup(&[], &Rest::USUAL);
        assert_eq!(rate(usual.unregistered), Some((100, 10_000_000)));
        assert_eq!(rate(usual.resolution), Some((50, 100_000_000)));
        // The largest datagram comes in 45 pieces.
        assert_eq!(rate(usual.fragments), Some((50, 100_000_000)));
        for packets in [1, 7, 99, 100, 101, 5_000, 999_999] {
            let rest = Rest {
                icmp: 0,
                fragments: packets,
                unregistered: packets,
                ..Rest::USUAL
            };
            let setup = setup(&[], &rest);
            assert_eq!(setup.icmp, Terms::CLOSED);
            for terms in [setup.fragments, setup.unregistered] {
                let (capacity, period) = rate(terms).expect("a rate");
                let in_second = u64::from(capacity) * 1_000_000_000 / period;
                let packets = u64::from(packets);
                assert!(in_second <= packets && packets <= in_second + 1 + packets / 1000);
            }
        }
    }
}
