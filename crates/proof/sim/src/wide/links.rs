//! What each link is like at the moment, and what comes over it.

use bumpless_base::Random;
use bumpless_wan::{Impairment, NodeId, Step, Topology};

use super::Cause;
use crate::streams::{Purpose, stream};

/// Ethernet, IP and UDP before what is sent: a rate is that of frames (U-41).
const HEADERS: u64 = 42;
/// The longest frame.
const FRAME: u64 = 1_514;
/// So much waits for a link that carries so much a second: 50 ms of it or ten frames (U-41).
const WAITS_NS: u64 = 50_000_000;
const WAITS_FRAMES: u64 = 10;
const LOSS_WHOLE: u64 = 1_000_000;

/// A packet's passage over a link.
#[derive(Clone, Copy, Debug)]
pub struct Passage {
    link: u32,
    direction: u8,
    /// How often the link had died when it began.
    deaths: u32,
}

struct State {
    cut: bool,
    deaths: u32,
    /// A router at one of its ends died with it.
    by_router: bool,
    /// Since when it is as it is.
    since: u64,
    /// What it is like outside of the script, and now.
    own: Impairment,
    impairment: Impairment,
    /// By direction: until when it sends what waits.
    busy: [u64; 2],
    losses: [Random; 2],
}

/// All links.
pub struct Links {
    all: Vec<State>,
    /// By node: how many of its links are cut.
    cut_at: Vec<u32>,
}

impl Links {
    /// Those of `topology`, as they are without outages.
    pub fn new(topology: &Topology, seed: u64) -> Self {
        let state = |(at, link): (usize, &bumpless_wan::Link)| State {
            cut: false,
            deaths: 0,
            by_router: false,
            since: 0,
            own: link.impairment,
            impairment: link.impairment,
            busy: [0; 2],
            losses: [0, 1].map(|direction| stream(seed, Purpose::Wide, 2 * at + direction)),
        };
        Self {
            all: topology.links().iter().enumerate().map(state).collect(),
            cut_at: vec![0; topology.nodes().len()],
        }
    }

    /// What a step of a script changes.
    pub fn take(&mut self, topology: &Topology, step: &Step, now: u64) {
        let all = step.cut.iter().map(|&link| (link, true));
        for (link, cut) in all.chain(step.heal.iter().map(|&link| (link, false))) {
            let state = &mut self.all[link];
            if state.cut == cut {
                continue;
            }
            (state.cut, state.since) = (cut, now);
            // What waited is lost.
            state.busy = [0; 2];
            state.deaths += u32::from(cut);
            for end in topology.links()[link].ends {
                let count = &mut self.cut_at[end.index()];
                *count = count.wrapping_add_signed(if cut { 1 } else { -1 });
            }
        }
        // Whether a router has died shows when all of its links have: that is why what was under way is lost.
        for &link in &step.cut {
            let ends = topology.links()[link].ends;
            self.all[link].by_router = ends.iter().any(|&end| self.is_dead(topology, end));
        }
        for &(link, impairment) in &step.impair {
            let state = &mut self.all[link];
            state.impairment = impairment.unwrap_or(state.own);
        }
    }

    /// Whether a node is a router none of whose links carries anything.
    fn is_dead(&self, topology: &Topology, node: NodeId) -> bool {
        topology.node(node).kind.forwards()
            && self.cut_at[node.index()] as usize == topology.links_at(node).len()
    }

    /// Whether a link is cut, and since when it is as it is.
    pub fn state(&self, link: usize) -> (bool, u64) {
        (self.all[link].cut, self.all[link].since)
    }

    /// Puts a packet on a link whose sender has it at `ready`; when it is at the other end.
    pub fn send(
        &mut self,
        (topology, link, from): (&Topology, usize, NodeId),
        ready: u64,
        bytes: usize,
    ) -> Result<(u64, Passage), Cause> {
        let cable = &topology.links()[link];
        if self.all[link].cut {
            let is_router = cable.ends.iter().any(|&end| self.is_dead(topology, end));
            return Err(cause(is_router));
        }
        let state = &mut self.all[link];
        let direction = usize::from(cable.ends[0] != from);
        let leaves = match state.impairment.rate_mbit {
            None => ready,
            Some(mbit) => {
                // Bits a microsecond.
                let takes = |bytes: u64| bytes * 8 * 1_000 / u64::from(mbit);
                let begins = state.busy[direction].max(ready);
                if begins - ready > WAITS_NS.max(takes(WAITS_FRAMES * FRAME)) {
                    return Err(Cause::QueueFull);
                }
                state.busy[direction] = begins + takes(bytes as u64 + HEADERS);
                state.busy[direction]
            }
        };
        let passage = Passage {
            link: link as u32,
            direction: direction as u8,
            deaths: state.deaths,
        };
        Ok((leaves + u64::from(cable.delay_us) * 1_000, passage))
    }

    /// Whether what has been on its way over a link is at the other end.
    pub fn receive(&mut self, passage: Passage) -> Result<(), Cause> {
        let state = &mut self.all[passage.link as usize];
        if state.deaths != passage.deaths {
            return Err(cause(state.by_router));
        }
        let share = state.impairment.loss_millionths;
        let lost = share > 0
            && state.losses[usize::from(passage.direction)].below(LOSS_WHOLE) < u64::from(share);
        match lost {
            true => Err(Cause::Loss),
            false => Ok(()),
        }
    }
}

/// Why a link that has died carries nothing.
const fn cause(by_router: bool) -> Cause {
    match by_router {
        true => Cause::DeadRouter,
        false => Cause::DeadLink,
    }
}
