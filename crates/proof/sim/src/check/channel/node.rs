//! The model of all channels at one node.

use bumpless_base::{ChannelId, Duration, Instant, LinkSet};
use bumpless_wire::DataHeader;

use super::earliest_first::Heard;
use super::receiving::Receiving;
use super::sending::{ProbeTimeouts, Sending};
use super::told::{ChannelTerms, Message, Networks, Passed, TransferTurn};
use crate::check::{Exemption, Tally, Verdict};

/// A channel at one of its nodes.
pub(super) struct End {
    pub(super) partner: usize,
    pub(super) sending: Sending,
    pub(super) receiving: Receiving,
    /// Nothing is under way, awaited or owed: until something happens, no turn says anything of it.
    pub(super) quiet: bool,
}

/// All channels of a node's process.
#[derive(Default)]
pub(super) struct Node {
    /// By application; `None` where the node is no candidate.
    pub(super) ends: Vec<Option<End>>,
    /// The applications by the identity of their channels.
    by_channel: Vec<Option<usize>>,
    /// All of them are quiet.
    pub(super) quiet: bool,
    /// Something may lie ready that was not shown.
    pub(super) shows: bool,
    /// When a packet of a state was last handed to a link.
    sent_at: Instant,
    /// How often something was sent again since any acknowledgement came.
    repeated: u32,
    /// When 64 questions last had no answer: a wait that had begun by then is a slow one.
    slow_at: Instant,
    longest_round_trip: Duration,
    /// Its networks after the turn before.
    networks: Networks,
    tally: Tally,
}

impl Node {
    /// A process of `node` that has done nothing yet.
    pub(super) fn new(node: usize, all: &[ChannelTerms], tally: &Tally) -> Self {
        let end = |terms: &ChannelTerms| {
            let at = terms
                .nodes
                .iter()
                .position(|&candidate| candidate == node)?;
            Some(End {
                partner: terms.nodes[1 - at],
                sending: Sending::new(terms, tally),
                receiving: Receiving::new(terms),
                quiet: false,
            })
        };
        let first = all.iter().map(|terms| terms.first_round_trip).max();
        let channels = all.iter().map(|terms| usize::from(terms.id.get()));
        let mut by_channel = vec![None; channels.clone().max().map_or(0, |last| last + 1)];
        for (application, channel) in channels.enumerate() {
            by_channel[channel] = Some(application);
        }
        Self {
            ends: all.iter().map(end).collect(),
            by_channel,
            quiet: false,
            shows: false,
            sent_at: Instant::ZERO,
            repeated: 0,
            slow_at: Instant::ZERO,
            longest_round_trip: first.unwrap_or_default(),
            networks: Networks::default(),
            tally: tally.clone(),
        }
    }

    /// The data plane hands its cores what has come, and they act.
    pub(super) fn receives(&mut self, turn: &TransferTurn<'_>) {
        self.longest_round_trip = self.longest_round_trip.max(turn.round_trip);
        for passed in turn.taken {
            self.take(passed, turn);
        }
        for (application, end) in self.ends.iter_mut().enumerate() {
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
    }

    /// What each channel must have done by the end of the turn.
    pub(super) fn ends_turn(
        &mut self,
        turn: &TransferTurn<'_>,
        mut note: impl FnMut(usize, Verdict),
    ) {
        // What is heard from this turn on can only be asked in the next.
        let before = std::mem::replace(&mut self.networks, turn.networks);
        let up = before.up.intersection(turn.networks.up);
        let probe_timeout = self.silence(up, turn.acted);
        self.quiet = true;
        for (application, end) in self.ends.iter_mut().enumerate() {
            let Some(end) = end.as_mut().filter(|end| !end.quiet) else {
                continue;
            };
            note(application, end.receiving.ends_turn());
            let answer = |ticket| (turn.answer)(application, ticket);
            note(application, end.sending.ends_turn(turn.acted, answer));
            let silent = end
                .sending
                .keeps_silent(self.sent_at, turn.acted, probe_timeout);
            note(application, silent);
            end.quiet = end.sending.is_quiet() && end.receiving.is_quiet();
            self.quiet &= end.quiet;
        }
    }

    /// What it knows in a turn after which its networks are like `after`.
    pub(super) const fn heard(&self, after: Networks) -> Heard {
        Heard {
            before: self.networks,
            after,
        }
    }

    /// Longer than the sender can wait for an answer (T-19): its smoothed round trip and four
    /// variations, each at most the longest that it can have measured.
    fn probe_timeout(&self) -> Duration {
        self.longest_round_trip * 5 + Duration::from_micros(100)
    }

    /// Longer than the sender can wait before it asks (T-23): its smoothed round trip and one variation,
    /// until twelve questions of a channel, or 64 of all, have no answer, or a channel's networks are all
    /// down; then up to 16 times its probe timeout. A wait that has begun behind those 64 is not cut short.
    fn silence(&mut self, up: LinkSet, now: Instant) -> ProbeTimeouts {
        let answered = self.longest_round_trip * 2 + Duration::from_micros(100);
        let mut sendings = self.ends.iter().flatten().map(|end| &end.sending);
        let presses = |sending: &Sending| sending.repeated() < 12 && sending.is_reached(up);
        let slowly = self.repeated >= 64 || !sendings.all(presses);
        if self.repeated >= 64 {
            self.slow_at = now;
        }
        ProbeTimeouts {
            answered,
            unanswered: self.probe_timeout() * 16,
            slowly,
            slow_at: self.slow_at,
        }
    }

    /// The application to whose channel a message belongs.
    pub(super) fn find(&self, passed: &Passed) -> Option<usize> {
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
                let probe_timeout = self.probe_timeout();
                let Some(application) = self.find(passed) else {
                    return;
                };
                if let Some(end) = &mut self.ends[application]
                    && let Some(took) =
                        end.sending
                            .hears(header, blocks, turn.received, probe_timeout)
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
    pub(super) fn sendings(
        &self,
        partner: usize,
    ) -> impl Iterator<Item = (usize, &Sending)> + Clone {
        let ends = self.ends.iter().enumerate();
        ends.filter_map(|(at, end)| Some((at, end.as_ref()?)))
            .filter(move |(_, end)| end.partner == partner)
            .map(|(at, end)| (at, &end.sending))
    }

    pub(super) fn sends(
        &mut self,
        application: usize,
        network: usize,
        header: &DataHeader,
        payload: usize,
        turn: &TransferTurn<'_>,
    ) -> Result<Option<u64>, String> {
        self.sent_at = turn.acted;
        let Some(end) = &mut self.ends[application] else {
            return Err("sends on a channel of which its node is no end".to_owned());
        };
        end.quiet = false;
        let before = end.sending.repeated();
        let begun = end.sending.sends(network, header, payload, turn.acted);
        self.repeated += u32::from(end.sending.repeated() > before);
        begun
    }

    /// bounded, by the datagrams themselves: transfers that end in this turn are left out.
    pub(super) fn check_in_flight(&self, terms: &[ChannelTerms]) -> Verdict {
        for (at, terms) in terms.iter().enumerate() {
            let Some(partner) = self.partner(at) else {
                continue;
            };
            if (0..at).any(|before| self.partner(before) == Some(partner)) {
                continue;
            }
            let sum = |of: fn(&Sending) -> u32| -> u32 {
                let sendings = self.sendings(partner);
                sendings.map(|(_, sending)| of(sending)).sum()
            };
            if sum(Sending::in_flight_at_most) <= terms.in_flight_max {
                continue;
            }
            let in_flight = sum(Sending::in_flight_at_least);
            if in_flight <= terms.in_flight_max {
                self.tally.count(Exemption::GivenUpInThisTurn);
            } else {
                return Err(format!(
                    "{in_flight} packets are sent and not acknowledged, {} are allowed",
                    terms.in_flight_max
                ));
            }
        }
        Ok(())
    }
}
