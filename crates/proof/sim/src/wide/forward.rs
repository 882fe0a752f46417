//! Packets on their way, from node to node.

use std::sync::Arc;

use bumpless_base::random::mix64;
use bumpless_wan::{NodeId, Step, Topology};

use super::links::{Links, Passage};
use super::tables::Tables;
use super::{Cause, Counts, Routing};

/// What a packet is to the network.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// From which place to which, as they were given.
    pub ends: (usize, usize),
    /// Bytes behind its headers.
    pub bytes: usize,
    /// What its addresses and ports have in common with those of its connection.
    pub flow: u64,
}

/// A packet on its way.
struct Flight<C> {
    cargo: C,
    load: Load,
    /// Where it comes, and over what.
    at: NodeId,
    over: Option<Passage>,
    hops: usize,
}

/// What becomes of a packet when it comes to a node.
#[derive(Debug, PartialEq, Eq)]
pub enum Hop<C> {
    /// It comes to the next one at this time.
    On(u64),
    /// It is at its end.
    There(C),
    /// It is lost.
    Lost(C, Cause),
}

/// A network and what is on its way in it.
pub struct Forwarding<C> {
    topology: Arc<Topology>,
    links: Links,
    tables: Tables,
    /// In slots that go round: nothing is allocated once the network has carried its most.
    flights: Vec<Option<Flight<C>>>,
    vacant: Vec<u32>,
    /// What became of them.
    pub counts: Counts,
}

impl<C> Forwarding<C> {
    /// A sound network with ends at `places`.
    pub fn new(topology: &Arc<Topology>, routing: Routing, places: &[NodeId], seed: u64) -> Self {
        Self {
            links: Links::new(topology, seed),
            tables: Tables::new(topology, routing, places, mix64(seed)),
            topology: Arc::clone(topology),
            flights: Vec::new(),
            vacant: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Puts a packet at its first node; the caller has it hop when it is there.
    pub fn enter(&mut self, load: Load, cargo: C) -> u32 {
        self.put(load, self.tables.place(load.ends.0), cargo)
    }

    /// Puts a packet at its last node: it has come another way.
    pub fn enter_at_end(&mut self, load: Load, cargo: C) -> u32 {
        self.put(load, self.tables.place(load.ends.1), cargo)
    }

    fn put(&mut self, load: Load, at: NodeId, cargo: C) -> u32 {
        self.counts.entered += 1;
        let flight = Some(Flight {
            cargo,
            load,
            at,
            over: None,
            hops: 0,
        });
        match self.vacant.pop() {
            Some(slot) => {
                self.flights[slot as usize] = flight;
                slot
            }
            None => {
                self.flights.push(flight);
                (self.flights.len() - 1) as u32
            }
        }
    }

    /// A packet is where it was to come to; `None`: there is none of this number.
    pub fn hop(&mut self, number: u32, now: u64) -> Option<Hop<C>> {
        let flight = self.flights.get_mut(number as usize)?.as_mut()?;
        let outcome = step((&self.topology, &self.tables, &mut self.links), flight, now);
        if let Ok(Some(at)) = outcome {
            return Some(Hop::On(at));
        }
        let flight = self.flights[number as usize].take()?;
        self.vacant.push(number);
        self.counts.hops += flight.hops as u64;
        Some(match outcome {
            Err(cause) => {
                self.counts.lose(cause);
                Hop::Lost(flight.cargo, cause)
            }
            Ok(_) => {
                self.counts.delivered += 1;
                Hop::There(flight.cargo)
            }
        })
    }

    /// Links change; how long after that routers find out of links that have died, and of those that carry again.
    pub fn take(&mut self, step: &Step, now: u64) -> [Option<u64>; 2] {
        self.links.take(&self.topology, step, now);
        let cut = step.cut.iter().map(|&link| (link, true));
        let changes = cut.chain(step.heal.iter().map(|&link| (link, false)));
        self.tables.changes(changes)
    }

    /// Routers may have found out.
    pub fn converge(&mut self, now: u64) {
        self.tables.converge(&self.links, now, &mut self.counts);
    }

    /// How many packets were on their way at once at most.
    #[cfg(test)]
    pub fn room(&self) -> usize {
        self.flights.len()
    }
}

/// When a packet that comes to a node is at the next one; `None`: this was the last.
fn step<C>(
    (topology, tables, links): (&Topology, &Tables, &mut Links),
    flight: &mut Flight<C>,
    now: u64,
) -> Result<Option<u64>, Cause> {
    if let Some(passage) = flight.over {
        links.receive(passage)?;
        flight.hops += 1;
    }
    let (_, to) = flight.load.ends;
    if flight.at == tables.place(to) {
        return Ok(None);
    }
    // Each is nearer than the one before by the tables of the moment, so no packet goes round for ever.
    let next = tables.next(to, flight.at, flight.load.flow);
    let link = next.ok_or(Cause::NoWay)?;
    let takes = match topology.node(flight.at).kind.forwards() {
        true => u64::from(topology.router_us()) * 1_000,
        false => 0,
    };
    let (at, passage) = links.send((topology, link, flight.at), now + takes, flight.load.bytes)?;
    flight.over = Some(passage);
    flight.at = topology.links()[link].other(flight.at);
    Ok(Some(at))
}

#[cfg(test)]
mod tests;
