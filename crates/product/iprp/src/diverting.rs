//! By which way captured packets come: datagrams of UDP by a ring that the kernel fills, where this host has that, and all else, or all
//! of them, by the queue.
//!
//! By the ring comes only what leaves by a next hop that the kernel can reach. A datagram for another one would wait in the kernel until
//! that is found, and its sender with it when many do.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsRawFd, RawFd};

use bumpless_base::{Duration, Instant};
use bumpless_capture::{
    DIVERTED_MAX, Diversion, Diverted, Diverting, Firewall, Hop, Neighbours, Undiverted, interfaces,
};
use bumpless_iprp::{MAX_OVERHEAD, MAX_OVERHEAD_IPV4};
use serde_json::{Value, json};

use crate::config::Capture;

/// The longest headers of IP before a datagram that is handed over.
const IP_HEADER_MAX: usize = 60;
const UDP_HEADER: usize = 8;
/// Next hops that the firewall is told at most; what leaves by others is queued.
const HOPS_MAX: usize = 1024;
/// How often it is looked whether a next hop that was asked has answered.
const TICK: Duration = Duration::from_millis(100);
/// Who is asked whether it is still there answers at once, if it is. The kernel waits three seconds for that.
const ANSWERS: Duration = Duration::from_millis(150);

/// The ring's end at which it is said what comes by it.
#[derive(Debug)]
struct Ring {
    diversion: Diversion,
    neighbours: Neighbours,
    looked: Instant,
    /// Next hops that the firewall has been told.
    told: BTreeSet<Hop>,
    /// Those that are asked whether they are still there, since when.
    probed: BTreeMap<Hop, Instant>,
}

/// The ways of this host.
#[derive(Debug)]
pub struct Ways {
    ring: Option<Ring>,
    /// Why there is only the queue.
    why: Option<String>,
}

impl Ways {
    /// The ways that the file permits and this host has, and what comes by the one beside the queue. `drawn` is a random number.
    pub fn open(capture: Capture, drawn: u64) -> (Self, Option<Diverted>) {
        let opened = match capture {
            Capture::Queue => Err("the file does not ask for the ring".to_owned()),
            Capture::Ring => open(drawn).map_err(|error| error.to_string()),
        };
        let (ring, diverted, why) = match opened {
            Ok((ring, diverted)) => (Some(ring), Some(diverted), None),
            Err(why) => (None, None, Some(why)),
        };
        (Self { ring, why }, diverted)
    }

    /// What says that next hops may have changed.
    pub fn news(&self) -> Option<RawFd> {
        self.ring.as_ref().map(|it| it.neighbours.as_raw_fd())
    }

    /// Looks by which interfaces and next hops packets can leave, if there is news or it is time, and tells the firewall if they are others.
    ///
    /// # Errors
    /// What the firewall says, in words.
    pub fn follow(&mut self, now: Instant, firewall: &mut Firewall) -> Result<(), String> {
        let Some(ring) = &mut self.ring else {
            return Ok(());
        };
        if !ring.neighbours.changed() && now.since(ring.looked) < TICK {
            return Ok(());
        }
        ring.looked = now;
        let reached = ring.reached(now);
        if reached == ring.told {
            return Ok(());
        }
        let hops: Vec<_> = reached.iter().copied().collect();
        firewall.divert_by(&hops).map_err(|error| {
            format!("the firewall cannot be told by which next hops datagrams leave: {error}")
        })?;
        ring.told = reached;
        Ok(())
    }

    /// What the firewall is to do of it, where a copy may be so long behind its UDP header.
    pub fn for_rules(&self, room: usize) -> Option<Diverting> {
        let ring = self.ring.as_ref()?;
        // What is longer has no copy, and leaves by the queue as it is.
        let longest = |overhead: usize| {
            let datagram = room.saturating_sub(overhead) + UDP_HEADER;
            u16::try_from(datagram.min(DIVERTED_MAX - IP_HEADER_MAX)).unwrap_or(u16::MAX)
        };
        Some(Diverting {
            marks: ring.diversion.marks(),
            longest: (longest(MAX_OVERHEAD_IPV4), longest(MAX_OVERHEAD)),
        })
    }

    /// For people.
    pub fn words(&self) -> String {
        match &self.why {
            None => {
                "datagrams are captured by a ring in the kernel, all else by a queue".to_owned()
            }
            Some(why) => format!("packets are captured by a queue ({why})"),
        }
    }

    /// What status tells.
    pub fn status(&self) -> Value {
        let (way, passed_by, hops) = match &self.ring {
            Some(ring) => ("ring", ring.diversion.passed_by(), ring.told.len()),
            None => ("queue", 0, 0),
        };
        json!({"datagrams": way, "why_not_ring": self.why, "next_hops": hops, "passed_by": passed_by})
    }
}

fn open(drawn: u64) -> Result<(Ring, Diverted), Undiverted> {
    let (diversion, diverted) = Diversion::open(drawn)?;
    let neighbours = Neighbours::open().map_err(|cause| Undiverted::System {
        what: "hear of next hops",
        cause,
    })?;
    let ring = Ring {
        diversion,
        neighbours,
        looked: Instant::ZERO,
        told: BTreeSet::new(),
        probed: BTreeMap::new(),
    };
    Ok((ring, diverted))
}

impl Ring {
    /// Next hops by which packets can be handed over; those that were told already where the kernel does not say.
    fn reached(&mut self, now: Instant) -> BTreeSet<Hop> {
        let (Ok(interfaces), Ok(neighbours)) = (interfaces(), self.neighbours.read()) else {
            return self.told.clone();
        };
        let watched: Vec<_> = interfaces.iter().map(|it| it.index).collect();
        if self.diversion.watches_others_than(&watched) {
            self.diversion.watch(&watched);
        }
        let watched: BTreeSet<_> = self.diversion.watched().collect();
        let probed = neighbours.iter().filter(|it| it.probed);
        let since = |hop: &Hop| self.probed.get(hop).copied().unwrap_or(now);
        self.probed = probed.map(|it| (it.hop, since(&it.hop))).collect();
        let answers = |hop: &Hop| {
            let since = self.probed.get(hop);
            since.is_none_or(|since| now.since(*since) < ANSWERS)
        };
        let hops = neighbours.iter().map(|it| it.hop);
        let reached = hops.filter(|it| watched.contains(&it.0) && answers(it));
        reached.take(HOPS_MAX).collect()
    }
}
