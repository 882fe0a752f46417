//! channel: the reference model of one channel, slow and obvious, with which sender and receiver
//! must agree.
//!
//! It is fed with the very datagrams that a node took from its links and handed to them, and with
//! what its applications published. It follows `spec/transfer.md`, not the code: which packets may
//! leave and what they say ([`sending`]), which states must lie ready and what must be acknowledged
//! ([`receiving`]), and what becomes of each published state.

mod receiving;
mod sending;

use std::collections::{BTreeSet, VecDeque};

use bumpless_base::{ChannelId, Duration, Instant};
use bumpless_wire::{AckHeader, DataHeader, Version};

use self::receiving::Receiving;
pub use self::receiving::full_payload;
pub use self::sending::Sending;
use super::{Delivered, EarliestFirst, Verdict, Violation};

/// What a channel is told at the start.
#[derive(Clone, Debug)]
pub struct ChannelTerms {
    /// Its identity on the wire.
    pub id: ChannelId,
    /// The two nodes that it joins.
    pub nodes: [usize; 2],
    /// Largest state, bytes.
    pub max_size: u32,
    /// From publication to acknowledgement.
    pub deadline: Duration,
    /// From publication until it must not be used.
    pub expiry: Duration,
    /// The networks that carry it, and whether each carries every packet.
    pub networks: Vec<usize>,
    /// See there.
    pub replicated: bool,
    /// Wire version.
    pub version: Version,
    /// State bytes in a packet.
    pub payload_size: u16,
    /// Packets in flight to one partner.
    pub in_flight_max: u32,
    /// Time that a full packet takes on the slowest network; zero if that is not limited.
    pub packet_time: Duration,
    /// How long a driver may hold packets back so as not to fill the network's queue.
    pub pacing: Duration,
    /// Round trip that the sender assumes before it has measured one.
    pub first_round_trip: Duration,
}

/// A state that an application published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Its number.
    pub ticket: u64,
    /// When it was published, by the node's clock.
    pub at: Instant,
    /// Its length and digest.
    pub len: u32,
    /// See there.
    pub digest: u64,
}

/// What became of a published state, as its application is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The backup has it, or a later one.
    Safe,
    /// It was given up.
    Failed,
    /// Not known yet.
    Pending,
}

/// A message of state transfer that a node exchanged with a partner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// On which network.
    pub network: usize,
    /// With which node.
    pub partner: usize,
    /// What.
    pub message: Message,
}

/// See [`Passed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A packet of a state: its header, and how long its payload is.
    Data(DataHeader, usize),
    /// An acknowledgement and its blocks.
    Ack(AckHeader, Vec<(u32, u32)>),
}

/// A turn of a node's data plane.
pub struct TransferTurn<'a> {
    /// The node.
    pub node: usize,
    /// When it took what had come, by its clock.
    pub received: Instant,
    /// When it acted and sent.
    pub acted: Instant,
    /// What it took from its links, in order.
    pub taken: &'a [Passed],
    /// What it handed to them, in order.
    pub sent: &'a [Passed],
    /// The longest round trip that its status shows.
    pub round_trip: Duration,
    /// The session of each application's channel after the turn; beyond the end, none.
    pub sessions: &'a [Option<u32>],
    /// What an application is told of one of its states.
    pub answer: &'a dyn Fn(usize, u64) -> Answer,
    /// True time.
    pub at: u64,
}

impl TransferTurn<'_> {
    fn session(&self, application: usize) -> Option<u32> {
        self.sessions.get(application).copied().flatten()
    }
}

/// A channel at one of its nodes.
struct End {
    partner: usize,
    sending: Sending,
    receiving: Receiving,
    /// Nothing is under way, awaited or owed: until something happens, no turn says anything of it.
    quiet: bool,
}

/// All channels of a node's process.
#[derive(Default)]
struct Node {
    /// By application; `None` where the node is no candidate.
    ends: Vec<Option<End>>,
    /// The applications by the identity of their channels.
    by_channel: Vec<Option<usize>>,
    /// All of them are quiet.
    quiet: bool,
    /// Something may lie ready that was not shown.
    shows: bool,
    /// When a packet of a state was last handed to a link.
    sent_at: Instant,
    /// How often something was sent again since any acknowledgement came.
    repeated: u32,
    longest_round_trip: Duration,
}

/// A transfer cycle of a session, and what it carries.
#[derive(Clone, Copy)]
struct Carried {
    from: usize,
    session: Option<u32>,
    cycle: u32,
    digest: u64,
}

/// Cycles of a channel that are remembered.
const REMEMBERED: usize = 64;

/// The checker.
pub struct Channels {
    terms: Vec<ChannelTerms>,
    nodes: Vec<Node>,
    /// Nodes and applications of which nobody reads there what comes.
    blind: BTreeSet<(usize, usize)>,
    /// By application: what the latest cycles of any sender carry.
    carried: Vec<VecDeque<Carried>>,
    earliest_first: EarliestFirst,
}

impl Channels {
    /// A checker of channels on these terms, by application, between `nodes` nodes.
    pub fn new(terms: Vec<ChannelTerms>, nodes: usize) -> Self {
        Self {
            carried: terms.iter().map(|_| VecDeque::new()).collect(),
            nodes: (0..nodes).map(|_| Node::default()).collect(),
            blind: BTreeSet::new(),
            terms,
            earliest_first: EarliestFirst,
        }
    }

    /// The process of `node` is a new one.
    pub fn started(&mut self, node: usize) {
        let end = |terms: &ChannelTerms| {
            let at = terms
                .nodes
                .iter()
                .position(|&candidate| candidate == node)?;
            Some(End {
                partner: terms.nodes[1 - at],
                sending: Sending::new(terms),
                receiving: Receiving::new(terms),
                quiet: false,
            })
        };
        let first = self.terms.iter().map(|terms| terms.first_round_trip).max();
        let channels = self.terms.iter().map(|terms| usize::from(terms.id.get()));
        let mut by_channel = vec![None; channels.clone().max().map_or(0, |last| last + 1)];
        for (application, channel) in channels.enumerate() {
            by_channel[channel] = Some(application);
        }
        self.nodes[node] = Node {
            ends: self.terms.iter().map(end).collect(),
            by_channel,
            quiet: false,
            shows: false,
            sent_at: Instant::ZERO,
            repeated: 0,
            longest_round_trip: first.unwrap_or_default(),
        };
    }

    /// An application handed a state to its channel.
    pub fn published(&mut self, node: usize, application: usize, state: State) {
        let node = &mut self.nodes[node];
        if let Some(Some(end)) = node.ends.get_mut(application) {
            end.sending.publish(state);
            (end.quiet, node.quiet) = (false, false);
        }
    }

    /// A state lies ready for an application.
    pub fn delivered(&mut self, delivered: &Delivered) -> Verdict {
        let node = &mut self.nodes[delivered.node];
        let Some(Some(end)) = node.ends.get_mut(delivered.application) else {
            return Ok(());
        };
        let (from, session) = (end.partner, end.receiving.session());
        end.receiving.delivered(delivered)?;
        // Packets of a cycle that nobody began were forged, or changed on their way.
        let cycle = delivered.transfer_cycle;
        let carried = self.carried[delivered.application]
            .iter()
            .rfind(|it| (it.from, it.session, it.cycle) == (from, session, cycle));
        match carried {
            Some(carried) if carried.digest != delivered.digest => Err(format!(
                "application {} of node {} can read, as transfer cycle {cycle}, another state than \
                 that cycle carries",
                delivered.application, delivered.node
            )),
            _ => Ok(()),
        }
    }

    /// Whether all that must lie ready at `node` has been shown.
    pub fn looked(&mut self, node: usize) -> Verdict {
        if !std::mem::take(&mut self.nodes[node].shows) {
            return Ok(());
        }
        for (application, end) in self.nodes[node].ends.iter().enumerate() {
            let looked_at = !self.blind.contains(&(node, application));
            let missing = end.as_ref().and_then(|end| end.receiving.is_missing());
            if let Some(cycle) = missing.filter(|_| looked_at) {
                return Err(format!(
                    "application {application} of node {node}: transfer cycle {cycle} has come whole and \
                     in time, and cannot be read"
                ));
            }
        }
        Ok(())
    }

    /// Whether no turn of `node` says anything of any channel in which nothing passes and no session changes.
    pub fn is_quiet(&self, node: usize) -> bool {
        self.nodes[node].quiet
    }

    /// The executor of `application` runs on `node`, or it does not, and nobody reads what has come.
    pub fn reads(&mut self, node: usize, application: usize, reads: bool) {
        if reads {
            let begins = self.blind.remove(&(node, application));
            let end = self.nodes[node].ends.get_mut(application);
            if let Some(Some(end)) = end.filter(|_| begins) {
                end.receiving.nobody_read();
            }
        } else {
            self.blind.insert((node, application));
        }
    }

    /// A data plane took a turn.
    pub fn turn(&mut self, turn: &TransferTurn<'_>, found: &mut Vec<Violation>) {
        let mut note = |invariant, verdict: Verdict| {
            if let Err(what) = verdict {
                let at = turn.at;
                found.push(Violation {
                    invariant,
                    at,
                    what: format!("node {}, {what}", turn.node),
                });
            }
        };
        let node = &mut self.nodes[turn.node];
        node.longest_round_trip = node.longest_round_trip.max(turn.round_trip);
        for passed in turn.taken {
            node.take(passed, turn);
        }
        for (application, end) in node.ends.iter_mut().enumerate() {
            let Some(end) = end else { continue };
            let session = turn.session(application);
            if end.quiet && session == end.receiving.session() {
                continue;
            }
            end.quiet = false;
            end.receiving.act(session, turn.acted);
            end.sending.act(session, turn.acted, |ticket| {
                (turn.answer)(application, ticket)
            });
        }
        let mut before = None;
        for passed in turn.sent {
            let Some(application) = node.find(passed) else {
                continue;
            };
            match &passed.message {
                Message::Data(header, payload) => {
                    // Only another channel's packet, or another state's, can be out of order.
                    let this = Some((passed.network, application, header.cycle));
                    if before != this {
                        let channels = node.sendings(passed.partner);
                        let verdict =
                            self.earliest_first
                                .leaves(application, passed.network, channels);
                        note("earliest first", verdict);
                    }
                    before = this;
                    let begun = node.sends(application, passed.network, header, *payload, turn);
                    match begun {
                        Ok(Some(digest)) => {
                            let carried = Carried {
                                from: turn.node,
                                session: turn.session(application),
                                cycle: header.cycle,
                                digest,
                            };
                            remember(&mut self.carried[application], carried);
                        }
                        Ok(None) => {}
                        Err(what) => note("channel", Err(of(application, what))),
                    }
                }
                Message::Ack(header, blocks) => {
                    if let Some(end) = &mut node.ends[application] {
                        end.quiet = false;
                        let verdict = end.receiving.acknowledges(header, blocks);
                        note("channel", verdict.map_err(|what| of(application, what)));
                    }
                }
            }
        }
        if before.is_some() {
            note("bounded", node.check_in_flight(&self.terms));
        }
        let patience = node.silence();
        node.quiet = true;
        for (application, end) in node.ends.iter_mut().enumerate() {
            let Some(end) = end.as_mut().filter(|end| !end.quiet) else {
                continue;
            };
            let said = |what| of(application, what);
            note("channel", end.receiving.ends_turn().map_err(said));
            let answer = |ticket| (turn.answer)(application, ticket);
            note(
                "channel",
                end.sending.ends_turn(turn.acted, answer).map_err(said),
            );
            let silent = end.sending.keeps_silent(node.sent_at, turn.acted, patience);
            note("channel", silent.map_err(said));
            end.quiet = end.sending.is_quiet() && end.receiving.is_quiet();
            node.quiet &= end.quiet;
        }
    }
}

impl Node {
    /// Longer than the sender can wait for an answer (T-19): its smoothed round trip and four
    /// variations, each at most the longest that it can have measured.
    fn patience(&self) -> Duration {
        self.longest_round_trip * 5 + Duration::from_micros(100)
    }

    /// Longer than the sender can wait before it asks (T-23): its smoothed round trip and one variation,
    /// until twelve questions of a channel, or 64 of all, have no answer; then up to 16 times its patience.
    fn silence(&self) -> Duration {
        let mut sendings = self.ends.iter().flatten().map(|end| &end.sending);
        if self.repeated < 64 && sendings.all(|sending| sending.repeated() < 12) {
            self.longest_round_trip * 2 + Duration::from_micros(100)
        } else {
            self.patience() * 16
        }
    }

    /// The application to whose channel a message belongs.
    fn find(&self, passed: &Passed) -> Option<usize> {
        let id = match &passed.message {
            Message::Data(header, _) => header.channel,
            Message::Ack(header, _) => header.channel,
        };
        self.of_channel(passed.partner, id)
    }

    fn of_channel(&self, partner: usize, id: ChannelId) -> Option<usize> {
        let application = (*self.by_channel.get(usize::from(id.get()))?)?;
        let end = self.ends[application].as_ref()?;
        (end.partner == partner).then_some(application)
    }

    fn take(&mut self, passed: &Passed, turn: &TransferTurn<'_>) {
        match &passed.message {
            Message::Data(header, payload) => {
                let admitted = self
                    .ends
                    .iter()
                    .flatten()
                    .any(|end| end.partner == passed.partner && end.receiving.admits(header));
                if !admitted {
                    return;
                }
                if let Some(application) = self.find(passed)
                    && let Some(end) = &mut self.ends[application]
                    && end.receiving.admits(header)
                {
                    end.receiving.take(header, *payload, turn.received);
                    end.quiet = false;
                    self.shows |= end.receiving.is_missing().is_some();
                }
                let forced = header.force_ack;
                if let Some(application) = forced.and_then(|id| self.of_channel(passed.partner, id))
                    && let Some(end) = &mut self.ends[application]
                    && end.receiving.admits(header)
                {
                    end.receiving.is_asked();
                    end.quiet = false;
                }
            }
            Message::Ack(header, blocks) => {
                let patience = self.patience();
                let Some(application) = self.find(passed) else {
                    return;
                };
                if let Some(end) = &mut self.ends[application]
                    && let Some(took) = end.sending.hears(header, blocks, turn.received, patience)
                {
                    self.longest_round_trip = self.longest_round_trip.max(took);
                    self.repeated = 0;
                }
            }
        }
    }

    fn partner(&self, application: usize) -> Option<usize> {
        self.ends[application].as_ref().map(|end| end.partner)
    }

    /// The channels to `partner`, with their applications.
    fn sendings(&self, partner: usize) -> impl Iterator<Item = (usize, &Sending)> + Clone {
        let ends = self.ends.iter().enumerate();
        ends.filter_map(|(at, end)| Some((at, end.as_ref()?)))
            .filter(move |(_, end)| end.partner == partner)
            .map(|(at, end)| (at, &end.sending))
    }

    fn sends(
        &mut self,
        application: usize,
        network: usize,
        header: &DataHeader,
        payload: usize,
        turn: &TransferTurn<'_>,
    ) -> Result<Option<u64>, String> {
        self.sent_at = turn.acted;
        match &mut self.ends[application] {
            Some(end) => {
                end.quiet = false;
                let before = end.sending.repeated();
                let begun = end.sending.sends(network, header, payload, turn.acted);
                self.repeated += u32::from(end.sending.repeated() > before);
                begun
            }
            None => Ok(None),
        }
    }

    /// bounded, by the datagrams themselves: transfers that end in this turn are left out.
    fn check_in_flight(&self, terms: &[ChannelTerms]) -> Verdict {
        for (at, terms) in terms.iter().enumerate() {
            let Some(partner) = self.partner(at) else {
                continue;
            };
            if (0..at).any(|before| self.partner(before) == Some(partner)) {
                continue;
            }
            let in_flight: u32 = self
                .sendings(partner)
                .map(|(_, sending)| sending.in_flight_at_least())
                .sum();
            if in_flight > terms.in_flight_max {
                return Err(format!(
                    "{in_flight} packets are sent and not acknowledged, {} are allowed",
                    terms.in_flight_max
                ));
            }
        }
        Ok(())
    }
}

fn of(application: usize, what: String) -> String {
    format!("application {application}: {what}")
}

fn remember(cycles: &mut VecDeque<Carried>, carried: Carried) {
    if cycles.len() == REMEMBERED {
        cycles.pop_front();
    }
    cycles.push_back(carried);
}

#[cfg(test)]
mod tests;
