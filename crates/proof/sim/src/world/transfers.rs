//! What the reference model of the channels is shown of each turn.

use bumpless_base::{Duration, Instant, LinkId, TransferOutcome};
use bumpless_config::{Config, Distribution, Unsent};
use bumpless_node::snapshot::LinkSnapshot;

use super::World;
use crate::check::{ChannelTerms, Networks, TransferTurn};

/// Packets that a driver hands over at once.
const BURST: u64 = 64;
/// What the transfer core assumes of a link (`spec/transfer.md` T-26).
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(1);

impl World {
    /// Shows the checkers what the data plane of `node` took at `received` and sent at `acted`.
    pub(super) fn account(&mut self, node: usize, received: Instant, acted: Instant) {
        let Some(process) = self.hosts[node].process.as_mut() else {
            return;
        };
        let changed = process.follow_sessions();
        let followed = std::mem::take(&mut process.followed);
        // Status shows other round trips only when it is refreshed.
        let refreshed = std::mem::replace(&mut process.refreshed, process.plane.refreshed());
        let refreshed = refreshed != process.plane.refreshed();
        let mut exchange = self.exchange.get();
        if changed {
            exchange.set_sessions(node, process.tags.iter().copied().flatten());
        }
        let genuine = std::mem::replace(&mut exchange.genuine, Ok(()));
        let forgiven = std::mem::take(&mut exchange.forgiven);
        let silent = exchange.taken.is_empty() && exchange.sent.is_empty();
        drop(exchange);
        forgiven.into_iter().for_each(|it| self.checks.forgives(it));
        if genuine.is_err() {
            self.checks.genuine(self.queue.now(), genuine);
        }
        if !silent || followed || refreshed || !self.checks.is_quiet(node) {
            self.judge(node, (received, acted), refreshed);
        }
    }

    #[inline(never)] // Most turns have nothing for it.
    fn judge(&mut self, node: usize, (received, acted): (Instant, Instant), refreshed: bool) {
        let at = self.queue.now();
        let Some(process) = self.hosts[node].process.as_ref() else {
            return;
        };
        let plane = &process.plane;
        let links = plane.links().iter().filter(|_| refreshed);
        let round_trip = links.filter_map(|link| link.round_trip).max();
        let channel = |application: usize| {
            let at = process.channels.get(application).copied().flatten();
            at.and_then(|at| plane.channels()[at].as_ref())
        };
        let networks = plane.networks().max(1);
        let partners = plane.links().chunks(networks);
        let all = |is: fn(&LinkSnapshot) -> bool| {
            let to_all = |link: &LinkId| {
                let mut partners = partners.clone();
                partners.all(|links| is(&links[usize::from(link.0)]))
            };
            (0..networks as u8).map(LinkId).filter(to_all).collect()
        };
        let exchange = &mut *self.exchange.get();
        self.checks.turn(&TransferTurn {
            node,
            received,
            acted,
            taken: &exchange.taken,
            sent: &exchange.sent,
            round_trip: round_trip.unwrap_or_default(),
            networks: Networks {
                up: all(|link| link.up),
                wide: all(|link| link.up && !link.narrow),
            },
            sessions: &process.sessions,
            answer: &|application, ticket| {
                let outcome = channel(application).map(|channel| channel.mailbox.outcome(ticket));
                outcome.unwrap_or(TransferOutcome::Pending)
            },
            at,
        });
        exchange.clear_passed();
    }
}

/// What the configuration says of each application's channel.
pub(super) fn terms(config: &Config) -> Vec<ChannelTerms> {
    let version = config.transfer.version;
    let payload_size = config.transfer.payload_size;
    let terms = config.applications.iter().map(|app| {
        let nodes = &config.groups[app.group].candidates;
        let networks = app.networks.iter().map(|link| usize::from(link.0));
        let time = |network: &bumpless_config::Network| {
            let frame = u64::from(payload_size)
                + u64::from(version.header_len())
                + u64::from(network.message_overhead());
            match network.bandwidth {
                0 => Duration::ZERO,
                bandwidth => Duration::from_nanos(frame * 8 * 1_000_000_000 / bandwidth + 1),
            }
        };
        let packet_time = config.networks.iter().map(time).max().unwrap_or_default();
        ChannelTerms {
            id: app.channel,
            nodes: [0, 1].map(|at: usize| usize::from(nodes[at].0)),
            max_size: app.state_max,
            deadline: app.deadline,
            expiry: app.expiry,
            networks: networks.collect(),
            replicated: app.distribution == Distribution::Replicate,
            keeps: app.unsent == Unsent::Keep,
            version,
            payload_size,
            in_flight_max: config.transfer.in_flight_max,
            packet_time,
            pacing: packet_time * BURST,
            first_round_trip: FIRST_ROUND_TRIP,
        }
    });
    terms.collect()
}
