//! What was published, what arrived and what was told: the slow and obvious account.

use super::plan::{AMPLE, Plan};
use bumpless_base::random::mix64;
use bumpless_base::{Counter, Counters, Duration, Instant, Serial16, Serial32};
use bumpless_transfer::{Published, SenderChannel, SenderEvent};
use bumpless_wire::{DataHeader, WireVersion, packet_count, piece};
use std::collections::{BTreeMap, BTreeSet};

struct State {
    key: u64,
    len: usize,
    ticket: u64,
    at: Instant,
    answered: bool,
    safe: bool,
    /// Its sender has been started anew since.
    forgotten: bool,
}

/// A transfer cycle of one session.
type CycleKey = (Option<u32>, u32);

#[derive(Default)]
struct Channel {
    states: Vec<State>,
    /// The earliest of `states` that the last read can have been.
    last_read: usize,
    /// The longest that a packet was on its way.
    longest_way: Duration,
    /// Packets that came with the tag of the receiver's session, and how many there are.
    arrived: BTreeMap<CycleKey, (usize, BTreeSet<u32>)>,
    updated: BTreeSet<CycleKey>,
    newest: Option<CycleKey>,
}

pub(super) struct Ledger {
    channels: Vec<Channel>,
    keys: u64,
}

/// Byte `at` of the state with this key.
fn content(key: u64, at: usize) -> u8 {
    (mix64((key << 32) + at as u64 / 8) >> (at % 8 * 8)) as u8
}

pub(super) fn fill(buffer: &mut [u8], key: u64) {
    for (at, byte) in buffer.iter_mut().enumerate() {
        *byte = content(key, at);
    }
}

fn is_part(bytes: &[u8], key: u64, offset: usize) -> bool {
    let mut numbered = bytes.iter().enumerate();
    numbered.all(|(at, &byte)| byte == content(key, offset + at))
}

impl Ledger {
    pub fn new(channels: usize) -> Self {
        Self {
            channels: (0..channels).map(|_| Channel::default()).collect(),
            keys: 0,
        }
    }

    pub fn next_key(&mut self) -> u64 {
        self.keys += 1;
        self.keys
    }

    pub fn published(
        &mut self,
        channel: usize,
        key: u64,
        len: usize,
        told: Published,
        at: Instant,
    ) {
        let states = &mut self.channels[channel].states;
        let state = State {
            key,
            len,
            ticket: told.ticket,
            at,
            answered: false,
            safe: false,
            forgotten: false,
        };
        states.push(state);
        if let Some(superseded) = told.superseded {
            self.answer(channel, superseded);
        }
    }

    /// The sender has been started anew: nobody answers its tickets any more.
    pub fn forget_tickets(&mut self) {
        for channel in &mut self.channels {
            channel
                .states
                .iter_mut()
                .for_each(|state| state.forgotten = true);
        }
    }

    fn answer(&mut self, channel: usize, ticket: u64) -> &mut State {
        let mut states = self.channels[channel].states.iter_mut().rev();
        let state = states.find(|state| state.ticket == ticket && !state.forgotten);
        let Some(state) = state else {
            panic!("an answer to ticket {ticket}, which nobody got");
        };
        assert!(!state.answered, "ticket {ticket} is answered twice");
        state.answered = true;
        state
    }

    /// When the latest state was published that is still to be answered and has these bytes.
    pub fn may_send(
        &self,
        channel: usize,
        size: u32,
        offset: usize,
        part: &[u8],
    ) -> Option<Instant> {
        let mut states = self.channels[channel].states.iter().rev();
        let found = states.find(|state| {
            let open = !state.answered && !state.forgotten;
            open && state.len == size as usize && is_part(part, state.key, offset)
        });
        found.map(|state| state.at)
    }

    /// A data packet reached the receiver.
    pub fn arrived(
        &mut self,
        channel: usize,
        session: Option<u32>,
        header: &DataHeader,
        payload_size: u16,
        age: Duration,
    ) {
        let channel = &mut self.channels[channel];
        channel.longest_way = channel.longest_way.max(age);
        if session.is_some() && (header.version == WireVersion::V1 || session == Some(header.tag)) {
            let cycle = channel.arrived.entry((session, header.cycle)).or_default();
            let piece = piece(payload_size, header.short);
            cycle.0 = packet_count(header.total_size, piece) as usize;
            cycle.1.insert(header.sequence);
        }
    }

    /// The receiver has a whole state.
    pub fn updated(&mut self, at: usize, session: Option<u32>, cycle: u32, plan: &Plan) {
        let channel = &mut self.channels[at];
        let version = plan.version_of(at);
        if !plan.hostile {
            let arrived = channel.arrived.get(&(session, cycle));
            let whole = arrived.is_some_and(|(packets, arrived)| *packets == arrived.len());
            assert!(whole, "whole: delivered without all packets of its session");
        }
        if let Some((before, newest)) = channel.newest
            && before == session
        {
            let newer = match version {
                WireVersion::V1 => Serial16(cycle as u16).is_newer_than(Serial16(newest as u16)),
                WireVersion::V2 => Serial32(cycle).is_newer_than(Serial32(newest)),
            };
            assert!(newer, "forward: cycle {cycle} after {newest}");
        }
        channel.newest = Some((session, cycle));
        channel.updated.insert((session, cycle));
    }

    /// What became of a state.
    pub fn told(
        &mut self,
        event: SenderEvent,
        plan: &Plan,
        session: impl Fn(usize) -> Option<u32>,
        receiver: &Counters,
    ) {
        match event {
            SenderEvent::Safe {
                channel,
                ticket,
                cycle,
                took,
            } => {
                let setup = &plan.channels[channel.0];
                assert!(took <= setup.deadline, "safe {took} after its publication");
                let state = self.answer(channel.0, ticket);
                state.safe = true;
                let len = state.len as u32;
                if !plan.hostile {
                    let payload = plan.peers[usize::from(setup.peer.0)].payload_size;
                    let packets = packet_count(len, payload) as usize;
                    self.check_kept(channel.0, (session(channel.0), cycle), packets, receiver);
                }
            }
            SenderEvent::Failed {
                channel, ticket, ..
            }
            | SenderEvent::Superseded { channel, ticket } => {
                self.answer(channel.0, ticket);
            }
        }
    }

    /// Safe means that the other end has it whole, or had, and found it expired.
    fn check_kept(&self, channel: usize, cycle: CycleKey, packets: usize, receiver: &Counters) {
        let channel = &self.channels[channel];
        let arrived = channel.arrived.get(&cycle).map_or(0, |(_, set)| set.len());
        let expired = arrived == packets && receiver.get(Counter::StatesAbandoned) > 0;
        assert!(
            channel.updated.contains(&cycle) || expired,
            "kept promise: safe, and {arrived} of {packets} packets are there"
        );
    }

    /// An application has read a state.
    pub fn read(&mut self, at: usize, plan: &Plan, data: &[u8], expires_at: Instant) {
        if plan.hostile {
            return;
        }
        let channel = &mut self.channels[at];
        let is = |state: &State| state.len == data.len() && is_part(data, state.key, 0);
        let whole = channel.states.iter().any(is);
        assert!(whole, "whole: {} bytes that nobody published", data.len());
        let found = channel.states[channel.last_read..].iter().position(is);
        let Some(found) = found else {
            panic!("forward: an older state after a newer one");
        };
        channel.last_read += found;
        let latest = channel.states.iter().rfind(|&state| is(state));
        let latest = latest.map_or(Instant::ZERO, |state| state.at);
        assert!(
            expires_at <= latest + plan.channels[at].expiry + channel.longest_way,
            "fresh: readable longer than published"
        );
    }

    /// The newest state of a channel whose times are ample has arrived.
    pub fn expect_safe(&mut self, channel: usize, setup: &SenderChannel) {
        let newest = self.channels[channel].states.last();
        let safe = newest.is_some_and(|state| state.safe);
        let ample = setup.deadline >= AMPLE && setup.expiry >= AMPLE;
        assert!(safe || !ample, "heals: channel {channel}");
    }

    pub fn expect_all_answered(&self) {
        for channel in &self.channels {
            let open = channel.states.iter().find(|s| !s.answered && !s.forgotten);
            assert!(
                open.is_none(),
                "ticket {:?} is never answered",
                open.map(|s| s.ticket)
            );
        }
    }
}
