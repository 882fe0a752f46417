//! The checkers: one for each invariant, apart from the code that they judge.
//!
//! They see what an observer outside sees: what applications published, what lay ready for the
//! backup, what field devices accepted, and until when, in true time, each node had the right to
//! write. A checker answers each observation; [`Checks`] gives an answer its invariant's name.

mod bears_floods;
mod bounded;
mod channel;
mod continues;
mod exemption;
mod forward;
mod fresh;
mod genuine;
mod hands_over;
mod heals;
mod ledger;
mod names;
mod never_apart;
mod no_bump;
mod one_configuration;
mod one_writer;
mod outputs;
mod whole;

pub use self::bears_floods::{BearsFloods, Place};
pub use self::bounded::{Bounded, Load};
pub use self::channel::{
    ChannelTerms, Channels, Message, Networks, Passed, State, TransferTurn, full_payload,
};
pub use self::continues::{Continues, Continuing};
pub use self::exemption::{Exemption, Forgiven, Tally};
pub use self::forward::Forward;
pub use self::fresh::Fresh;
pub use self::genuine::Genuine;
pub use self::hands_over::HandsOver;
pub use self::heals::{Heals, Health};
pub use self::ledger::{Delivered, Ledger, Published};
pub use self::names::Names;
pub use self::never_apart::NeverApart;
pub use self::no_bump::{NoBump, Output};
pub use self::one_configuration::{OneConfiguration, Together};
pub use self::one_writer::{OneWriter, Permit};
pub use self::outputs::{Outputs, Seen, Window};
pub use self::whole::Whole;

use bumpless_base::Epoch;
use bumpless_controller::executor::Resumed;

use crate::changing::Disk;
use crate::variants::Configuration;

/// Longer between two turns of a data plane, nanoseconds, it has stood still.
const PAUSE: u64 = 20_000_000;

/// The answer to an observation: what is wrong with it.
pub type Verdict = Result<(), String>;

/// The names of all invariants, as failures have them (spec/simulation.md).
pub const INVARIANTS: [&str; 15] = [
    "whole",
    "forward",
    "never apart",
    "fresh",
    "earliest first",
    "bounded",
    "channel",
    "one writer",
    "no bump",
    "continues",
    "one configuration",
    "genuine",
    "heals",
    "hands over",
    "bears floods",
];

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant's name, as in `spec/simulation.md`.
    pub invariant: &'static str,
    /// True time, nanoseconds since the world began.
    pub at: u64,
    /// What was seen.
    pub what: String,
}

/// All checkers of a world.
pub struct Checks {
    ledger: Ledger,
    forward: Forward,
    fresh: Fresh,
    one_writer: OneWriter,
    no_bump: NoBump,
    continues: Continues,
    /// When each node's data plane last ended a turn, true time, and the last time that was followed by a pause.
    looked_at: Vec<u64>,
    paused_from: Vec<u64>,
    /// By node: since a pause it has never taken all that had come.
    backlog: Vec<bool>,
    one_configuration: OneConfiguration,
    outputs: Outputs,
    tally: Tally,
    restored: u64,
    bounded: Bounded,
    bears_floods: BearsFloods,
    heals: Heals,
    hands_over: HandsOver,
    channels: Channels,
    names: Names,
    /// What was found, in order.
    pub violations: Vec<Violation>,
}

/// What the checkers have to know of the world.
#[derive(Clone, Debug)]
pub struct Terms {
    /// For how long the states of each application may be used, nanoseconds.
    pub expiry: Vec<u64>,
    /// Between two outputs of each application, nanoseconds.
    pub period: Vec<u64>,
    /// By how much a clock differs from true time at most, parts per million.
    pub drift_ppm: u32,
    /// Whether each application's backup may be a cycle behind.
    pub behind: Vec<bool>,
    /// What nodes, applications, groups and networks are called.
    pub names: Names,
    /// For each application, how long after its last output its process bears a going on, nanoseconds.
    pub hot_restart: Vec<u64>,
    /// Whether going on later than that is a violation.
    pub hot_restart_enforced: bool,
    /// For how long a starting node listens before it may become primary, nanoseconds.
    pub start_wait: u64,
    /// How long healing takes at most, nanoseconds.
    pub heal_within: u64,
    /// The applications' channels.
    pub channels: Vec<ChannelTerms>,
}

impl Terms {
    fn continuing(&self) -> Vec<Continuing> {
        let applications = self.behind.iter().zip(&self.hot_restart);
        let waits = self.period.iter().zip(&self.channels);
        let terms = applications
            .zip(waits)
            .map(|((&behind, &hot_restart), (&period, channel))| Continuing {
                behind,
                hot_restart,
                unsure: period + channel.deadline.as_nanos(),
            });
        terms.collect()
    }
}

impl Checks {
    /// Checkers for a world on these terms; outputs are counted within `window`.
    pub fn new(terms: &Terms, window: Window) -> Self {
        let (applications, nodes) = (terms.period.len(), terms.names.nodes.len());
        let groups = terms.names.groups.len();
        let tally = Tally::default();
        let together = Together {
            timeout: terms.start_wait,
            heal_within: terms.heal_within,
        };
        let bears = (terms.drift_ppm, terms.hot_restart_enforced);
        Self {
            looked_at: vec![0; nodes],
            paused_from: vec![0; nodes],
            backlog: vec![false; nodes],
            continues: Continues::new(&terms.continuing(), nodes, bears, &tally),
            one_configuration: OneConfiguration::new(
                together,
                terms.period.clone(),
                (groups, nodes),
                &tally,
            ),
            outputs: Outputs::new(window, applications),
            ledger: Ledger::new(applications),
            forward: Forward::new(applications, nodes),
            fresh: Fresh::new(terms.expiry.clone(), terms.drift_ppm, &tally),
            one_writer: OneWriter::new(groups, nodes),
            no_bump: NoBump::new(terms.behind.clone(), &tally),
            bounded: Bounded,
            bears_floods: BearsFloods::new(nodes, terms.heal_within),
            heals: Heals::new(
                terms.heal_within,
                terms.period.clone(),
                terms.names.networks.len(),
                &tally,
            ),
            hands_over: HandsOver::new(terms.heal_within, terms.period.clone(), &tally),
            channels: Channels::new(terms.channels.clone(), nodes, &tally),
            names: terms.names.clone(),
            violations: Vec::new(),
            tally,
            restored: 0,
        }
    }

    /// Something is forgiven that no checker of its own judges.
    pub fn forgives(&self, exemption: Exemption) {
        self.tally.count(exemption);
    }

    /// What was forgiven so far.
    pub fn forgiven(&self) -> Forgiven {
        self.tally.forgiven()
    }

    /// What was seen of each application's outputs until `end`.
    pub fn outputs(&self, end: u64) -> Vec<Seen> {
        self.outputs.until(end)
    }

    /// How often each application began from its initial state after its first output.
    pub fn cold_starts(&self) -> Vec<u64> {
        self.continues.cold_starts().collect()
    }

    /// How often an application began from a state that was on disk.
    pub const fn restored_starts(&self) -> u64 {
        self.restored
    }

    #[inline]
    fn note(&mut self, invariant: &'static str, at: u64, verdict: Verdict) {
        if let Err(what) = verdict {
            self.found(invariant, at, &what);
        }
    }

    #[cold]
    fn found(&mut self, invariant: &'static str, at: u64, what: &str) {
        debug_assert!(INVARIANTS.contains(&invariant));
        self.violations.push(Violation {
            invariant,
            at,
            what: self.names.put_into(what),
        });
    }

    /// An application handed a state to its channel.
    pub fn published(&mut self, published: Published, state: State) {
        self.ledger.publish(published);
        self.continues.published(&published);
        self.channels
            .published(published.node, published.application, state);
    }

    /// A state lies ready for the application of a backup.
    pub fn delivered(&mut self, delivered: &Delivered) {
        let origin = self.ledger.origin(delivered);
        let verdict = Whole.delivered(delivered, origin);
        self.note("whole", delivered.at, verdict);
        if let Some(origin) = origin {
            let Delivered { node, .. } = *delivered;
            // What has waited may have come at any time of the pause, as far as its node knows.
            let waited = self.backlog[node] || delivered.transit > PAUSE;
            let looked = match waited {
                true => self.paused_from[node].min(self.looked_at[node]),
                false => self.looked_at[node],
            };
            self.continues.delivered(delivered, &origin, looked);
            self.one_configuration.delivered(node, origin.node);
            let verdict = self.forward.delivered(delivered, &origin);
            self.note("forward", delivered.at, verdict);
            let verdict = self.fresh.delivered(delivered, &origin);
            self.note("fresh", delivered.at, verdict);
        }
        let verdict = self.channels.delivered(delivered);
        self.note("channel", delivered.at, verdict);
    }

    /// All that lies ready at `node` was shown. `waits`: whether more has come for it that it has not taken.
    pub fn looked(&mut self, node: usize, at: u64, waits: impl FnOnce() -> bool) {
        let before = std::mem::replace(&mut self.looked_at[node], at);
        let paused = at - before > PAUSE;
        if paused && !self.backlog[node] {
            self.paused_from[node] = before;
        }
        // What waited behind what came in the pause may have come in it, too.
        self.backlog[node] = (paused || self.backlog[node]) && waits();
        let verdict = self.channels.looked(node);
        self.note("channel", at, verdict);
    }

    /// Whether a turn of the data plane of `node` need not be told in which nothing passed, in the same sessions
    /// as before.
    pub fn is_quiet(&self, node: usize) -> bool {
        self.channels.is_quiet(node)
    }

    /// A data plane took a turn.
    pub fn turn(&mut self, turn: &TransferTurn<'_>) {
        let before = self.violations.len();
        self.channels.turn(turn, &mut self.violations);
        for found in &mut self.violations[before..] {
            found.what = self.names.put_into(&found.what);
        }
    }

    /// A node's process has started with this configuration.
    pub fn started(&mut self, node: usize, configuration: Configuration, at: u64) {
        self.forward.started(node);
        self.channels.started(node);
        self.continues.forgets(node);
        self.one_configuration.started(node, configuration, at);
    }

    /// A node's process has ended.
    pub fn ended(&mut self, node: usize) {
        self.continues.forgets(node);
        self.one_configuration.ended(node);
    }

    /// Whether two processes run with different configurations.
    pub fn are_apart(&self) -> bool {
        self.one_configuration.is_apart()
    }

    /// What was taken since this was told last.
    pub fn genuine(&mut self, at: u64, verdict: Verdict) {
        self.note("genuine", at, verdict);
    }

    /// The last heartbeat that came to `node` of its partner was sent at `sent`.
    pub fn hears(&mut self, node: usize, sent: u64) {
        self.one_configuration.hears(node, sent);
    }

    /// A node becomes primary.
    pub fn takes_role(&mut self, node: usize, at: u64) {
        self.continues.takes_role(node);
        let verdict = self.bears_floods.takes_role(node, at);
        self.note("bears floods", at, verdict);
        let verdict = self.one_configuration.takes_role(node, at);
        self.note("one configuration", at, verdict);
    }

    /// An application goes on from this, or begins, as its executor reports, on a node that is primary.
    pub fn begins(&mut self, application: usize, node: usize, with: Resumed, at: u64) {
        let verdict = self.continues.begins(application, node, with, at);
        self.note("continues", at, verdict);
    }

    /// A node has, from `at` on, this right to write the outputs of `group`.
    pub fn permit(&mut self, group: usize, node: usize, permit: Option<Permit>, at: u64) {
        let verdict = self.one_writer.permit(group, node, permit, at);
        self.note("one writer", at, verdict);
        let verdict = self.one_configuration.permit(group, node, permit, at);
        self.note("one configuration", at, verdict);
    }

    /// A field device has accepted an output.
    pub fn accepted(&mut self, output: &Output, at: u64) {
        self.heals.accepted(output.application, at);
        let verdict = self.hands_over.accepted(output.application, at);
        self.note("hands over", at, verdict);
        let verdict = self.one_writer.accepted(output);
        self.note("one writer", at, verdict);
        let verdict = self.no_bump.accepted(output);
        self.note("no bump", at, verdict);
        self.continues.accepted(output, at);
        self.outputs.accepted(output.application, output.epoch, at);
        let verdict = (self.one_configuration).accepted(output.application, output.node, at);
        self.note("one configuration", at, verdict);
    }

    /// A node sends an output of `group` in this epoch.
    pub fn writes(&mut self, group: usize, node: usize, epoch: Epoch, at: u64) {
        let verdict = self.one_writer.writes(group, node, epoch, at);
        self.note("one writer", at, verdict);
        let verdict = self.one_configuration.writes(node, at);
        self.note("one configuration", at, verdict);
    }

    /// The field device of `application` does not answer `node`, which has the right to write.
    pub fn asks_in_vain(&mut self, application: usize, node: usize, at: u64) {
        self.continues.asks_in_vain(application, node, at);
    }

    /// An application begins from its initial state, on a node that has taken the role with a fresh
    /// state or without.
    pub fn cold_start(&mut self, application: usize, with_state: bool, at: u64) {
        let outlived = self.continues.is_outlived(application, at);
        let verdict = self.no_bump.cold_start(application, (with_state, outlived));
        self.note("no bump", at, verdict);
    }

    /// An application begins from a state that was on disk, which may be older than its last output.
    pub fn restored(&mut self, application: usize) {
        self.restored += 1;
        self.no_bump.begins_older(application);
    }

    /// A node has taken an application's role by an ordered hand-over.
    pub fn handed_over(&mut self, application: usize) {
        self.no_bump.handed_over(application);
        self.continues.handed_over(application);
    }

    /// The executor of `application` runs on `node`, or it does not.
    pub fn reads(&mut self, node: usize, application: usize, reads: bool) {
        self.channels.reads(node, application, reads);
        if !reads {
            self.continues.leaves(application, node);
        }
    }

    /// From `at` on, an application writes outputs in this period, or it does not any more.
    pub fn expect_outputs(&mut self, application: usize, period: Option<u64>, at: u64) {
        self.hands_over.expect(application, period, at);
        if self.heals.expect(application, period.is_some(), at) {
            self.outputs.expect(application);
        }
    }

    /// A node has made a change of its configuration last; these are the disks, by node.
    pub fn made_last(&mut self, disks: &[Disk], at: u64) {
        let verdict = NeverApart.made_last(disks);
        self.note("never apart", at, verdict);
    }

    /// How full a node is after a turn.
    pub fn load(&mut self, load: &Load, at: u64) {
        let verdict = self.bounded.load(load);
        self.note("bounded", at, verdict);
    }

    /// So many packets wait in the ring of an interface of `node`, which has `room`.
    pub fn waits_in_ring(&mut self, node: usize, waiting: usize, room: usize, at: u64) {
        let verdict = self.bounded.ring(node, waiting, room);
        self.note("bounded", at, verdict);
    }

    /// A flood begins that lasts until `until`.
    pub fn flood(&mut self, from: u64, until: u64) {
        self.bears_floods.flood(from, until);
    }

    /// See [`BearsFloods::missed`].
    pub fn missed(&mut self, node: usize, missed: u64, at: u64) {
        let verdict = self.bears_floods.missed(node, missed, at);
        self.note("bears floods", at, verdict);
    }

    /// See [`BearsFloods::own_lost`].
    pub fn own_lost(&mut self, node: usize, at: u64) {
        let verdict = self.bears_floods.own_lost(node, at);
        self.note("bears floods", at, verdict);
    }

    /// See [`BearsFloods::let_in`].
    pub fn let_in(&mut self, place: Place, rate: bumpless_guard::Rate, at: u64) {
        let verdict = self.bears_floods.let_in(place, rate, at);
        self.note("bears floods", at, verdict);
    }

    /// See [`BearsFloods::through`].
    pub fn through(&mut self, node: usize, came: u64, done: u64, at: u64) {
        let verdict = self.bears_floods.through(node, came, done);
        self.note("bears floods", at, verdict);
    }

    /// The last fault has ended at `at`, as far as is known; `network`: it is one of this network alone.
    pub fn faults_end(&mut self, network: Option<usize>, at: u64) {
        self.heals.faults_end(network, at);
        self.bears_floods.faults_end(at);
        self.hands_over.faults_end(at);
    }

    /// Somebody orders a switchover, after which the pair may take its time to be redundant again.
    pub fn ordered(&mut self, at: u64) {
        self.heals.faults_end(None, at);
        self.bears_floods.faults_end(at);
        self.hands_over.ordered(at);
    }

    /// The process of `node` has ended by itself; one is there again at `again`.
    pub fn process_ended(&mut self, node: usize, at: u64, again: u64) {
        let verdict = self.heals.process_ended(node, at, again);
        self.note("heals", at, verdict);
        self.hands_over.faults_end(again);
        self.bears_floods.faults_end(again);
        self.another_fault(again);
    }

    /// Something goes wrong that is no matter of configurations, and is felt until `felt`.
    pub fn another_fault(&mut self, felt: u64) {
        self.one_configuration.another_fault(felt);
    }

    /// How the groups are at `at`.
    pub fn health(&mut self, health: &Health, at: u64) {
        let verdict = self.heals.look(health, at);
        self.note("heals", at, verdict);
        let verdict = self.hands_over.look(at);
        self.note("hands over", at, verdict);
        let verdict = self.one_configuration.look(at);
        self.note("one configuration", at, verdict);
    }
}
