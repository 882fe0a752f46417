//! The sender of the model: which packets may leave and what they say, and when a state is safe.

mod turn_end;
mod waiting;

pub use turn_end::ProbeTimeouts;

use std::collections::VecDeque;

use bumpless_base::{Duration, Instant, TransferOutcome};
use bumpless_wire::{AckHeader, DataHeader, WireVersion, packet_count, piece};

use super::{ChannelTerms, State};
use crate::check::{Tally, Verdict};

/// The shortest time from sending to the first question (T-23).
const LEAST_TIMEOUT: Duration = Duration::from_micros(100);

/// A transfer whose first packet has left.
#[derive(Clone, Debug)]
struct Open {
    state: State,
    session: Option<u32>,
    cycle: u32,
    /// Whether the state is cut into short pieces.
    short: bool,
    packets: u32,
    /// The earliest that its deadline can be: it may have inherited another state's (T-3).
    earliest: Instant,
    /// Packets that left at least once: all below this number.
    started: u32,
    acknowledged: u32,
    /// The first packet that is not acknowledged.
    low: u32,
    /// When it was last acknowledged or asked for, as far as is known.
    heard: Instant,
    /// How often something was sent again since.
    repeated: u32,
    /// It has ended in this turn, unsafe.
    ends: bool,
    /// It may be given up in this turn when it comes to send, which is told in the next one.
    doubtful: bool,
}

/// A state of which a packet is ready to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// The state.
    pub state: u64,
    /// The latest that its deadline can be.
    pub deadline: Instant,
    /// It was given up in this turn, or may be.
    pub may_end: bool,
}

/// What a node has published and sent on a channel.
pub struct Sending {
    terms: ChannelTerms,
    session: Option<u32>,
    /// States whose fate is not known, oldest first.
    states: VecDeque<State>,
    /// Of what is kept: states that a later one may have taken the place of, and that may have been given up.
    doubted: VecDeque<u64>,
    last_cycle: Option<u32>,
    /// Whether the state of that cycle was cut into short pieces.
    last_short: bool,
    /// The state whose transfer began last, and when.
    last_begun: Option<u64>,
    began: Instant,
    open: Option<Open>,
    /// By network, then packet: when it last left, plus one; 0 for never.
    left: Vec<u64>,
    acknowledged: Vec<bool>,
    /// By network: the first packet that never left there, and one that is lost and goes first.
    unsent: Vec<u32>,
    first: Vec<Option<u32>>,
    /// The highest state that acknowledgements cover, in time beyond doubt.
    safe: Option<u64>,
    /// The same, in time if it has inherited nothing and was not given up.
    perhaps_safe: Option<u64>,
    /// The session ended in this turn, and with it the transfer of this state.
    cut_off: bool,
    cut_short: Option<u64>,
    /// The newest state was, or may be, given up in this turn.
    newest_fails: bool,
    tally: Tally,
}

impl Sending {
    /// Nothing has been published.
    pub fn new(terms: &ChannelTerms, tally: &Tally) -> Self {
        let networks = terms.networks.iter().max().map_or(0, |&last| last + 1);
        Self {
            terms: terms.clone(),
            session: None,
            states: VecDeque::new(),
            doubted: VecDeque::new(),
            last_cycle: None,
            last_short: false,
            last_begun: None,
            began: Instant::ZERO,
            open: None,
            left: Vec::new(),
            acknowledged: Vec::new(),
            unsent: vec![0; networks],
            first: vec![None; networks],
            safe: None,
            perhaps_safe: None,
            cut_off: false,
            cut_short: None,
            newest_fails: false,
            tally: tally.clone(),
        }
    }

    /// A state is published. Of what is kept it may take the place of the one before, if two wait already: how many of
    /// them the sender has taken over, nobody else knows.
    pub fn publish(&mut self, state: State) {
        if self.terms.keeps && self.unbegun().count() >= 2 {
            let last = self.states.back().map(|last| last.ticket);
            self.doubted.extend(last);
        }
        self.states.push_back(state);
    }

    fn deadline(&self, state: &State) -> Instant {
        state.at + self.terms.deadline
    }

    /// Takes an acknowledgement; returns the longest round trip that it can show.
    /// `probe_timeout`: what was sent so long before is lost unless it is acknowledged.
    pub fn hears(
        &mut self,
        header: &AckHeader,
        blocks: &[(u32, u32)],
        now: Instant,
        probe_timeout: Duration,
    ) -> Option<Duration> {
        let probe_timeout = probe_timeout + self.terms.pacing;
        let same = header.version == self.terms.version
            && (header.version == WireVersion::V1 || Some(header.tag) == self.session)
            && Some(header.cycle) == self.last_cycle;
        if !same {
            return None;
        }
        let took = now.since(self.began);
        self.absorb(header, blocks, now, probe_timeout);
        Some(took)
    }

    fn absorb(
        &mut self,
        header: &AckHeader,
        blocks: &[(u32, u32)],
        now: Instant,
        probe_timeout: Duration,
    ) {
        let Some(open) = &mut self.open else { return };
        let known = |sequence: u32| sequence < open.started;
        // T-27.
        let genuine = blocks.iter().all(|&(_, high)| known(high))
            && header.trigger.is_none_or(known)
            && header.received.is_none_or(|n| n <= open.started);
        let deadline = open.state.at + self.terms.deadline;
        if !genuine || now > deadline {
            return;
        }
        let mut news = 0;
        for &(low, high) in blocks {
            for at in low.max(open.low)..=high {
                let there = &mut self.acknowledged[at as usize];
                news += u32::from(!*there);
                *there = true;
            }
        }
        open.acknowledged += news;
        while self.acknowledged.get(open.low as usize) == Some(&true) {
            open.low += 1;
        }
        (open.heard, open.repeated) = (now, 0);
        let (low, ticket) = (open.low, open.state.ticket);
        if low < open.packets {
            return self.note_lost(low, blocks, now, probe_timeout);
        }
        // What was given up when it came to send is told as that in this turn, whatever comes in it.
        if now <= open.earliest && !open.doubtful {
            self.safe = Some(ticket);
        }
        self.perhaps_safe = Some(ticket);
        self.open = None;
    }

    /// T-19 by time, T-21: a packet that is reported missing and whose answer is overdue on every link
    /// goes next on each of them.
    fn note_lost(
        &mut self,
        low: u32,
        blocks: &[(u32, u32)],
        now: Instant,
        probe_timeout: Duration,
    ) {
        self.first.fill(None);
        let reported = blocks.last().is_some_and(|&(_, high)| low < high);
        let sendings = (0..self.unsent.len()).map(|network| self.left_at(network, low));
        let last = sendings.flatten().max();
        if reported && last.is_some_and(|last| now > last + probe_timeout) {
            self.first.fill(Some(low));
        }
    }

    fn left_at(&self, network: usize, sequence: u32) -> Option<Instant> {
        let packets = self.acknowledged.len();
        let left = self.left.get(network * packets + sequence as usize)?;
        left.checked_sub(1).map(Instant::from_nanos)
    }

    /// After what had come: the session is this; `answer` says what applications are told.
    pub fn act(
        &mut self,
        session: Option<u32>,
        now: Instant,
        answer: impl Fn(u64) -> TransferOutcome,
    ) {
        self.cut_off = self.session != session;
        self.session = session;
        let cut_off = self.cut_off;
        let fails = |state: &State| answer(state.ticket) == TransferOutcome::Failed;
        let earliest = self.states.front().map(|state| self.deadline(state));
        let doubtful = |state: &State| !self.had_time(state, earliest, now);
        let newest = match self.terms.keeps {
            true => self.unbegun().next(),
            false => self.states.back(),
        };
        let newest_fails = newest.is_some_and(|state| fails(state) || doubtful(state));
        let given_up: Vec<_> = match self.terms.keeps {
            true => {
                let given_up = self.unbegun().filter(|it| fails(it) || doubtful(it));
                let given_up = given_up.map(|it| it.ticket);
                given_up.filter(|it| !self.doubted.contains(it)).collect()
            }
            false => Vec::new(),
        };
        self.newest_fails = newest_fails;
        self.doubted.extend(given_up);
        self.cut_short = None;
        if let Some(open) = &mut self.open {
            open.ends = cut_off || fails(&open.state);
            let left = u64::from(open.packets - open.acknowledged);
            open.doubtful = now + self.terms.packet_time * left >= open.earliest;
            self.cut_short = cut_off.then_some(open.state.ticket);
        }
    }

    /// A packet is handed to a link. Returns the digest of the state that begins with it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn sends(
        &mut self,
        network: usize,
        header: &DataHeader,
        payload: usize,
        now: Instant,
    ) -> Result<Option<u64>, String> {
        if !self.terms.networks.contains(&network) {
            return Err(format!("sends on network {network}, which is not its own"));
        }
        let mut begun = None;
        if self
            .open
            .as_ref()
            .is_none_or(|open| open.cycle != header.cycle)
        {
            begun = Some(self.begins(header, now)?);
        }
        self.check_packet(network, header, payload, now)?;
        self.note_left(network, header.sequence, now);
        Ok(begun)
    }

    /// T-3, T-6, T-54: the state that was published last, or the oldest that is kept, in the next cycle.
    fn begins(&mut self, header: &DataHeader, now: Instant) -> Result<u64, String> {
        let next = self.last_cycle.map(|last| match self.terms.version {
            WireVersion::V1 => u32::from((last as u16).wrapping_add(1)),
            WireVersion::V2 => last.wrapping_add(1),
        });
        if next.is_some_and(|next| next != header.cycle) {
            return Err(format!(
                "begins transfer cycle {} after {:?}",
                header.cycle, self.last_cycle
            ));
        }
        self.skip_replaced(header.expiry, now);
        let newest = self.waiting().ok_or_else(|| {
            format!(
                "begins transfer cycle {} although nothing waits to be sent",
                header.cycle
            )
        })?;
        if let Some(open) = self.open.as_ref().filter(|open| !open.ends) {
            return Err(format!(
                "begins transfer cycle {} while {} is under way",
                header.cycle, open.cycle
            ));
        }
        let earliest = self.states.front().map(|state| self.deadline(state));
        let piece = piece(self.terms.payload_size, header.short);
        let packets = packet_count(newest.len, piece);
        (self.last_cycle, self.last_short) = (Some(header.cycle), header.short);
        (self.last_begun, self.began) = (Some(newest.ticket), now);
        self.open = Some(Open {
            state: newest,
            session: self.session,
            cycle: header.cycle,
            short: header.short,
            packets,
            earliest: earliest.unwrap_or(now),
            started: 0,
            acknowledged: 0,
            low: 0,
            heard: now,
            repeated: 0,
            ends: false,
            doubtful: false,
        });
        let packets = packets as usize;
        self.left.clear();
        self.left.resize(packets * self.unsent.len(), 0);
        self.acknowledged.clear();
        self.acknowledged.resize(packets, false);
        self.unsent.fill(0);
        self.first.fill(None);
        Ok(newest.digest)
    }

    fn check_packet(
        &self,
        network: usize,
        header: &DataHeader,
        payload: usize,
        now: Instant,
    ) -> Verdict {
        let Some(open) = &self.open else {
            return Ok(());
        };
        let piece = u32::from(piece(self.terms.payload_size, open.short));
        let sequence = header.sequence;
        let wrong = |what: &str| {
            Err(format!(
                "packet {sequence} of transfer cycle {} {what}",
                open.cycle
            ))
        };
        if sequence > open.started || sequence >= open.packets {
            return wrong("leaves before its turn");
        }
        let left = open.state.len.saturating_sub(sequence * piece).min(piece);
        let size = (header.total_size, header.short, payload as u32);
        if size != (open.state.len, open.short, left) {
            return wrong("has another size than the state that was published");
        }
        if header.version == WireVersion::V2
            && (Some(header.tag), usize::from(header.link.0)) != (self.session, network)
        {
            return wrong("names another session or link");
        }
        if open.session != self.session {
            return wrong("leaves in another session than the first");
        }
        // T-8.
        if header.expiry != self.stamp(open.state.at + self.terms.expiry, now) {
            return wrong("does not say how long its state may be used");
        }
        if now >= self.deadline(&open.state) {
            return wrong("leaves after the deadline");
        }
        if self.acknowledged[sequence as usize] {
            return wrong("leaves again although it is acknowledged");
        }
        let before = self.left_at(network, sequence).is_some();
        if header.version == WireVersion::V2 && header.retransmission != before {
            return wrong("does not say whether it was sent before on its link");
        }
        match self.first[network] {
            Some(lost) if lost < sequence => wrong(&format!(
                "leaves before packet {lost}, which is known to be lost"
            )),
            _ => Ok(()),
        }
    }

    fn stamp(&self, expires_at: Instant, now: Instant) -> Duration {
        let left = expires_at.since(now);
        match self.terms.version {
            WireVersion::V1 => Duration::from_millis(left.as_millis().min(u64::from(u16::MAX))),
            WireVersion::V2 => Duration::from_micros(left.as_micros().min(u64::from(u32::MAX))),
        }
    }

    fn note_left(&mut self, network: usize, sequence: u32, now: Instant) {
        let packets = self.acknowledged.len();
        let at = |network: usize| network * packets + sequence as usize;
        let again = self.left[at(network)] != 0;
        let moved = self.asks_elsewhere(sequence, now);
        self.left[at(network)] = now.as_nanos() + 1;
        if self.first[network] == Some(sequence) {
            self.first[network] = None;
        }
        if self.terms.replicated {
            self.unsent[network] = self.unsent[network].max(sequence + 1);
        } else {
            let next = self.unsent[network].max(sequence + 1);
            self.unsent.fill(next);
        }
        if let Some(open) = &mut self.open {
            open.repeated += u32::from(again || moved);
            open.started = open.started.max(sequence + 1);
        }
    }

    /// Whether a packet that leaves on a link for the first time is a question (T-23). It is if it is the last that is
    /// not acknowledged, and was sent in vain elsewhere: no question comes within the least probe timeout. *What leaves on
    /// all links, one after the other, is none; of each transfer at most one packet for each further link is
    /// mistaken for one.*
    fn asks_elsewhere(&self, sequence: u32, now: Instant) -> bool {
        let packets = self.acknowledged.len();
        let started = self.open.as_ref().map_or(0, |open| open.started as usize);
        let last = (0..started).rfind(|&at| !self.acknowledged[at]);
        let elsewhere = self.left.iter().skip(sequence as usize).step_by(packets);
        let waited = now.before(LEAST_TIMEOUT).as_nanos();
        let in_vain = |&left: &u64| (1..=waited).contains(&left);
        last == Some(sequence as usize) && elsewhere.copied().any(|left| in_vain(&left))
    }

    /// Packets in flight, unless their transfer may end in this turn.
    pub fn in_flight_at_least(&self) -> u32 {
        let stands = |open: &&Open| !open.ends && !open.doubtful;
        let open = self.open.as_ref().filter(stands);
        open.map_or(0, |open| open.started - open.acknowledged)
    }

    /// Packets in flight, though their transfer may have ended in this turn.
    pub fn in_flight_at_most(&self) -> u32 {
        self.open
            .as_ref()
            .map_or(0, |open| open.started - open.acknowledged)
    }

    /// Packets that may be in flight to the partner.
    pub fn in_flight_max(&self) -> u32 {
        self.terms.in_flight_max
    }

    /// The networks that carry the channel.
    pub fn networks(&self) -> &[usize] {
        &self.terms.networks
    }

    /// The earliest that the deadline of what is being sent can be, and the latest.
    pub fn deadlines(&self) -> Option<(Instant, Instant)> {
        match &self.open {
            Some(open) if !open.ends => Some((open.earliest, self.deadline(&open.state))),
            _ => {
                let (first, last) = (self.states.front()?, self.states.back()?);
                Some((self.deadline(first), self.deadline(last)))
            }
        }
    }

    /// The state of which a packet is ready for `network`; `room`: whether the in-flight limit lets a packet go for
    /// the first time.
    pub fn is_ready(&self, network: usize, room: bool) -> Option<Ready> {
        let (state, first_time, may_end) = match &self.open {
            Some(open) if open.ends => return None,
            Some(open) => {
                let from = self.unsent[network].max(open.low) as usize;
                let next = (from..self.acknowledged.len()).find(|&at| !self.acknowledged[at])?;
                (open.state, next as u32 >= open.started, open.doubtful)
            }
            None => (self.waiting()?, true, self.newest_fails),
        };
        (self.session.is_some() && (room || !first_time)).then(|| Ready {
            state: state.ticket,
            deadline: self.deadline(&state),
            may_end,
        })
    }
}
