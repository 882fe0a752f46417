//! channel: the reference model of one channel, slow and obvious, with which sender and receiver
//! must agree.
//!
//! It is fed with the very datagrams that a node took from its links and handed to them, and with
//! what its applications published. It follows `spec/transfer.md`, not the code: which packets may
//! leave and what they say ([`sending`]), which states must lie ready and what must be acknowledged
//! ([`receiving`]), and what becomes of each published state.

mod earliest_first;
mod node;
mod receiving;
mod sending;
mod told;

use std::collections::{BTreeSet, VecDeque};

use self::earliest_first::EarliestFirst;
use self::node::Node;
pub use self::receiving::full_payload;
pub use self::told::{ChannelTerms, Message, Networks, Passed, State, TransferTurn};
use super::{Delivered, Exemption, Tally, Verdict, Violation};

/// A transfer cycle of a session, and what it carries.
#[derive(Clone, Copy)]
struct Carried {
    from: usize,
    session: Option<u32>,
    cycle: u32,
    digest: u64,
}

/// Cycles of a channel that are remembered: as many as states in the ledger, since a node that stood still takes what
/// came meanwhile.
const REMEMBERED: usize = 65_536;

/// The checker.
pub struct Channels {
    terms: Vec<ChannelTerms>,
    nodes: Vec<Node>,
    /// Nodes and applications of which nobody reads there what comes.
    blind: BTreeSet<(usize, usize)>,
    /// By application: what the latest cycles of any sender carry.
    carried: Vec<VecDeque<Carried>>,
    earliest_first: EarliestFirst,
    tally: Tally,
}

impl Channels {
    /// A checker of channels on these terms, by application, between `nodes` nodes.
    pub fn new(terms: Vec<ChannelTerms>, nodes: usize, tally: &Tally) -> Self {
        Self {
            carried: terms.iter().map(|_| VecDeque::new()).collect(),
            nodes: (0..nodes).map(|_| Node::default()).collect(),
            blind: BTreeSet::new(),
            terms,
            earliest_first: EarliestFirst::new(tally),
            tally: tally.clone(),
        }
    }

    /// The process of `node` is a new one.
    pub fn started(&mut self, node: usize) {
        self.nodes[node] = Node::new(node, &self.terms, &self.tally);
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
            return Err(format!(
                "application {} can be read at node {}, which is no candidate for it",
                delivered.application, delivered.node
            ));
        };
        let from = end.partner;
        let session = end.receiving.delivered(delivered)?;
        let cycle = delivered.transfer_cycle;
        let carried = self.carried[delivered.application]
            .iter()
            .rfind(|it| (it.from, it.session, it.cycle) == (from, session, cycle));
        match carried {
            None => Err(format!(
                "application {} of node {} can read transfer cycle {cycle}, which node {from} has not begun in \
                 this session",
                delivered.application, delivered.node
            )),
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
            if missing.is_some() && !looked_at {
                self.tally.count(Exemption::NobodyReads);
            } else if let Some(cycle) = missing {
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
        self.nodes[turn.node].receives(turn);
        let sent_any = self.judge_sent(turn, &mut note);
        let node = &mut self.nodes[turn.node];
        if sent_any {
            note("bounded", node.check_in_flight(&self.terms));
        }
        node.ends_turn(turn, |application, verdict| {
            note("channel", verdict.map_err(|what| of(application, what)));
        });
    }

    /// Everything that the turn handed to links; tells whether packets of states were among it.
    fn judge_sent(
        &mut self,
        turn: &TransferTurn<'_>,
        note: &mut impl FnMut(&'static str, Verdict),
    ) -> bool {
        let node = &mut self.nodes[turn.node];
        let mut before = None;
        for passed in turn.sent {
            let Some(application) = node.find(passed) else {
                note("channel", Err(not_its_own(passed)));
                continue;
            };
            let said = |what| of(application, what);
            match &passed.message {
                Message::Data(header, payload) => {
                    // Only another channel's packet, or another state's, can be out of order.
                    let this = Some((passed.network, application, header.cycle));
                    if before != this {
                        let channels = node.sendings(passed.partner);
                        let order = &mut self.earliest_first;
                        let heard = node.heard(turn.networks);
                        note(
                            "earliest first",
                            order.leaves((application, passed.network), heard, channels),
                        );
                    }
                    before = this;
                    let begun = node.sends(application, passed.network, header, *payload, turn);
                    if let Ok(Some(digest)) = begun {
                        let carried = Carried {
                            from: turn.node,
                            session: turn.session(application),
                            cycle: header.cycle,
                            digest,
                        };
                        remember(&mut self.carried[application], carried);
                    }
                    note("channel", begun.map(drop).map_err(said));
                }
                Message::Ack(header, blocks) => {
                    if let Some(end) = &mut node.ends[application] {
                        end.quiet = false;
                        let verdict = end.receiving.acknowledges(header, blocks);
                        note("channel", verdict.map_err(said));
                    }
                }
            }
        }
        before.is_some()
    }
}

fn not_its_own(passed: &Passed) -> String {
    let what = match &passed.message {
        Message::Data(header, _) => format!("a packet of channel {}", header.channel),
        Message::Ack(header, _) => format!("an acknowledgement of channel {}", header.channel),
    };
    let partner = passed.partner;
    format!("sends node {partner} {what}, which it does not share with that node")
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
