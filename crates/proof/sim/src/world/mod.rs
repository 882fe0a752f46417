//! The world: computers, networks, witnesses and field devices in one thread under one clock.

mod applications;
mod arrivals;
mod changes;
mod faults;
mod field;
mod floods;
mod health;
mod keys;
mod transfers;
mod turns;
mod wide;

use std::sync::Arc;

use bumpless_base::{Duration, Instant};
use bumpless_config::{Commit, Config, ReferenceKind, Security};
use bumpless_node::witness::envelopes::{Envelopes, PairKey};
use bumpless_redundancy::{Witness, WitnessSetup};
use bumpless_secure::place;
use bumpless_wire::WitnessReply;

use crate::changing::Disk;
use crate::check::{Checks, Genuine, Names, Terms, Window};
use crate::clock::LocalClock;
use crate::device::{Device, Request};
use crate::distance::Distances;
use crate::exchange::{Exchange, Shared};
use crate::host::{Host, draw_rate};
use crate::network::{Network, Parcel};
use crate::processor::{FloodCounts, Processor};
use crate::queue::{Queue, What};
use crate::readable::{self, Readable};
use crate::script::{Fault, Junk, Timed};
use crate::streams::{Purpose, stream};
use crate::trace::{Happening, Trace};
use crate::variants::{Configuration, Everybody, variant, wrong};
use keys::Keys;
use wide::Spread;

/// The longest lease that a witness grants unless it is told otherwise.
const LONGEST_LEASE: Duration = Duration::from_secs(1);
/// Bytes in a receive buffer.
const RECEIVE_BUFFER: usize = 4 << 20;
/// Between two looks at the pair's health.
const LOOK: u64 = 50_000_000;

/// What answers at a reference point: a witness process on a computer of its own, or an address.
pub(crate) struct WitnessHost {
    clock: LocalClock,
    sound_rate: i64,
    witness: Option<Witness>,
    envelopes: Envelopes<Readable>,
    /// Where it is, for those who seal.
    place: u32,
    genuine: Genuine,
    /// It is an address that answers echo requests and nothing else.
    only_echoes: bool,
    /// What it said last.
    said: Option<WitnessReply>,
    seeds: bumpless_base::Random,
    origins: bumpless_base::Random,
}

/// Everything.
pub struct World {
    /// With every application that there ever is.
    pub(crate) config: Arc<Config>,
    /// The configurations between which the pair changes, by number.
    variants: Vec<Config>,
    /// By node, what a restart begins with.
    disks: Vec<Disk>,
    delays: bumpless_base::Random,
    /// How often a node has changed its configuration.
    pub changes: u64,
    /// With which keys partners protect their messages.
    pub keys: Keys,
    /// What a node has read that was not told of the last change.
    old_config: Config,
    pub(crate) queue: Queue,
    pub(crate) network: Network,
    pub(crate) exchange: Shared,
    pub(crate) hosts: Vec<Host>,
    /// When the data plane of each of them takes its next turn: looked at before each event.
    turns: Vec<u64>,
    witnesses: Vec<WitnessHost>,
    devices: Vec<Device>,
    /// What answers where a wrong configuration says that they are.
    other_devices: Vec<Device>,
    requests: Vec<Option<Request>>,
    /// How many requests there have been.
    asked: u64,
    vacant_requests: Vec<u32>,
    script: Vec<Timed>,
    /// Positions in it of the faults that are on, in ascending order.
    active: Vec<usize>,
    junk: bumpless_base::Random,
    /// By node; none if the script has no flood.
    processors: Vec<Processor>,
    flood_gaps: bumpless_base::Random,
    /// What became of floods.
    pub floods: FloodCounts,
    /// Room for what has arrived, and for a header.
    arrived: Vec<(u64, Parcel)>,
    header: Vec<u8>,
    /// What judges it.
    pub checks: Checks,
    /// What is told of it.
    pub trace: Trace,
    outbox: Vec<crate::network::Parcel>,
    /// What its first network is, if that is a wide-area one.
    spread: Option<Spread>,
}

impl World {
    /// A world of `everybody` in which `script` happens; nothing runs yet. Of the applications, the first run from
    /// the start, and the others come with changes or mistakes. Outputs are counted within `window`.
    ///
    /// # Errors
    /// What a core refuses of its setup.
    pub fn new(
        everybody: &Everybody,
        seed: u64,
        (script, window): (Vec<Timed>, Window),
        trace: Trace,
    ) -> Result<Self, String> {
        let (config, stay) = (Arc::clone(&everybody.config), everybody.stay);
        let nodes = config.nodes.len();
        let exchange = Exchange::shared(&config, RECEIVE_BUFFER);
        let processors = floods::processors(&config, &script)?;
        let mut world = Self {
            queue: Queue::default(),
            network: Network::new(&config, seed, script.iter().any(replays)),
            hosts: (0..nodes)
                .map(|node| Host::new(&config, node, seed))
                .collect(),
            turns: vec![u64::MAX; nodes],
            witnesses: witnesses(&config, seed),
            devices: devices(&config, seed, 0),
            other_devices: devices(&config, seed, config.applications.len()),
            requests: Vec::new(),
            asked: 0,
            vacant_requests: Vec::new(),
            active: Vec::new(),
            script,
            junk: stream(seed, Purpose::Junk, 1),
            processors,
            flood_gaps: stream(seed, Purpose::Floods, 0),
            floods: FloodCounts::default(),
            arrived: Vec::new(),
            header: Vec::new(),
            checks: Checks::new(&terms(&config), window),
            trace,
            exchange,
            outbox: Vec::new(),
            spread: None,
            old_config: before_the_last_change(&variant(&config, stay, 0)),
            variants: changes::variants(everybody),
            disks: vec![Disk::default(); nodes],
            delays: stream(seed, Purpose::Changes, 0),
            changes: 0,
            keys: Keys::new(&config, seed),
            config,
        };
        for reference in 0..world.witnesses.len() {
            world.start_witness(reference);
        }
        world.expect_outputs();
        for node in 0..nodes {
            world.start_node(node)?;
        }
        let begins = |(at, timed): (usize, &Timed)| {
            let fault = at as u32;
            (timed.at, What::FaultBegins { fault })
        };
        let faults = world.script.iter().enumerate();
        world.queue.push_all(faults.map(begins));
        world.queue.push(LOOK, What::Look);
        Ok(world)
    }

    /// Makes ways longer; before anything runs.
    pub fn put_apart(&mut self, distances: &Distances) {
        self.network.put_apart(distances);
        let devices = self.devices.iter_mut().chain(&mut self.other_devices);
        devices.for_each(|device| device.put_apart(distances.field));
    }

    /// Runs until true time `end`, or until an invariant is broken.
    pub fn run(&mut self, end: u64) {
        while self.checks.violations.is_empty() {
            let turns = self.turns.iter().copied().enumerate();
            let (node, at) = turns.min_by_key(|&(_, at)| at).unwrap_or((0, u64::MAX));
            if let Some(what) = self.queue.pop(at.min(end)) {
                self.dispatch(what);
            } else if at <= end {
                self.queue.go_on_to(at);
                self.turn_is_due(node);
            } else {
                return self.queue.go_on_to(end);
            }
        }
    }

    /// True time, nanoseconds.
    pub fn now(&self) -> u64 {
        self.queue.now()
    }

    fn dispatch(&mut self, what: What) {
        match what {
            What::Application { node, app, serial } => {
                self.application_is_due(node.into(), app.into(), serial);
            }
            What::Arrival { packet } => self.arrival(packet),
            What::Request { request } => self.request(request),
            What::FaultBegins { fault } => self.fault_begins(fault as usize),
            What::FaultEnds { fault } => self.fault_ends(fault as usize),
            What::FaultActs { fault } => self.fault_acts(fault as usize),
            What::Restart { node, incarnation } => {
                let node = usize::from(node);
                if self.hosts[node].incarnation == incarnation
                    && self.hosts[node].process.is_none()
                    && !self.is_held_down(node)
                {
                    self.restart(node);
                }
            }
            What::Change { node, incarnation } => self.change_is_due(node.into(), incarnation),
            What::Hop { flight } => self.wide_hop(flight),
            What::Step { step } => self.wide_step(step),
            What::Converge => self.wide_converge(),
            What::Key { end, number, step } => self.key_is_due(end.into(), number, step),
            What::Look => {
                self.take_in_where_nobody_looks();
                self.look();
                self.look_at_deadlines();
                self.queue.push(self.now() + LOOK, What::Look);
            }
        }
    }

    pub(crate) fn tell(&mut self, happening: Happening) {
        let now = self.queue.now();
        self.trace.tell(now, happening);
    }

    #[cold]
    fn restart(&mut self, node: usize) {
        if let Err(error) = self.start_node(node) {
            unreachable!("a node that has started once starts again: {error}");
        }
    }

    fn start_node(&mut self, node: usize) -> Result<(), String> {
        let now = self.now();
        // Nobody was there to take it.
        self.take_in(node);
        let right = &self.variants[self.disks[node].current];
        let configuration = self.configuration_of(node);
        let mistaken;
        let config = match configuration {
            Configuration::Right => right,
            Configuration::Old => &self.old_config,
            Configuration::Wrong(what) => {
                mistaken = wrong(right, &self.config, what);
                &mistaken
            }
        };
        let host = &mut self.hosts[node];
        host.configuration = configuration;
        host.start((config, &self.config), &self.exchange, now)?;
        let incarnation = host.incarnation;
        let apps = host
            .process
            .as_ref()
            .map_or(0, |process| process.apps.len());
        self.checks.started(node, configuration, now);
        self.exchange.get().listening = self.checks.are_apart();
        // Whoever starts into a fault has it from the start.
        self.refresh_hosts();
        self.tell(Happening::Started { node, incarnation });
        self.turn_now(node);
        for app in 0..apps {
            self.plan_application(node, app, now);
        }
        self.show_readers(node);
        self.resume_change(node);
        self.keys_of_a_newcomer(node);
        Ok(())
    }

    /// Ends the process of `node` at once.
    fn kill(&mut self, node: usize) {
        let now = self.now();
        let host = &mut self.hosts[node];
        if host.process.take().is_none() {
            return;
        }
        self.turns[node] = u64::MAX;
        host.owes_observation = false;
        (host.paused_until, host.stalled_until) = (0, 0);
        let groups = host.permits.len();
        self.exchange.get().clear(node);
        if let Some(processor) = self.processors.get_mut(node) {
            let mut exchange = self.exchange.get();
            let passed = processor.passed.drain(..);
            passed.for_each(|(_, parcel)| exchange.recycle(parcel));
        }
        // It takes its rights along: nobody else's fault.
        self.checks.ended(node);
        for group in 0..groups {
            self.hosts[node].permits[group] = (None, 0);
            self.checks.permit(group, node, None, now);
        }
        self.exchange.get().listening = self.checks.are_apart();
        self.tell(Happening::Ended { node });
    }

    fn start_witness(&mut self, reference: usize) {
        let now = self.now();
        let setup = WitnessSetup {
            max_lease: longest_lease(&self.config),
            drift_ppm: self.config.timing.clock_drift_ppm,
            capacity: 64,
        };
        self.exchange.get().witness_starts(reference);
        let host = &mut self.witnesses[reference];
        let seed = host.seeds.next_u64();
        let local = host.clock.local(now);
        host.witness = Witness::new(setup, seed, local).ok();
        host.genuine = Genuine::default();
        host.said = None;
        host.place = match self.config.references[reference].kind {
            ReferenceKind::Witness(address) => place(address),
            ReferenceKind::Ping(_) => 0,
        };
        let key = PairKey {
            keys: readable::keys(),
            pair: self.config.pair_id(),
            origin: host.origins.next_u64(),
        };
        host.envelopes = match self.config.security {
            Security::Protected(_) | Security::Certificates(_) => {
                Envelopes::new([key], &[host.place], false, local)
            }
            Security::Open => Envelopes::new([], &[], true, local),
        };
        self.tell(Happening::WitnessStarted { reference });
    }
}

/// Whether what was sent comes again.
fn replays(timed: &Timed) -> bool {
    matches!(
        timed.fault,
        Fault::Junk {
            kind: Junk::Replay
                | Junk::Forged
                | Junk::Redirected
                | Junk::Stripped
                | Junk::Spliced
                | Junk::Downgraded,
            ..
        }
    )
}

/// The configuration as it was. Both nodes may run with it at once, so it differs in nothing that
/// is judged.
fn before_the_last_change(config: &Config) -> Config {
    let mut old = config.clone();
    old.timing.start_wait = old.timing.start_wait + Duration::from_millis(1);
    old
}

fn devices(config: &Config, seed: u64, first: usize) -> Vec<Device> {
    let places = first..first + config.applications.len();
    let device = |at| Device::new(true, stream(seed, Purpose::Device, at));
    places.map(device).collect()
}

fn witnesses(config: &Config, seed: u64) -> Vec<WitnessHost> {
    let hosts = config.references.iter().enumerate().map(|(at, reference)| {
        let mut seeds = stream(seed, Purpose::Witness, at);
        let shows = seeds.below(1 << 50);
        let ppb = draw_rate(config, &mut seeds);
        WitnessHost {
            clock: LocalClock::new(0, shows, ppb),
            sound_rate: ppb,
            witness: None,
            envelopes: Envelopes::new([], &[], false, Instant::ZERO),
            place: 0,
            genuine: Genuine::default(),
            only_echoes: matches!(reference.kind, ReferenceKind::Ping(_)),
            said: None,
            seeds,
            origins: stream(seed, Purpose::Envelopes, config.nodes.len() + at),
        }
    });
    hosts.collect()
}

fn terms(config: &Config) -> Terms {
    let nanos = |span: Duration| span.as_nanos();
    Terms {
        expiry: config
            .applications
            .iter()
            .map(|app| nanos(app.expiry))
            .collect(),
        period: config
            .applications
            .iter()
            .map(|app| nanos(app.period))
            .collect(),
        drift_ppm: config.timing.clock_drift_ppm,
        behind: config
            .applications
            .iter()
            .map(|app| app.commit == Commit::Async)
            .collect(),
        names: Names {
            nodes: config.nodes.iter().map(|it| it.name.clone()).collect(),
            applications: config
                .applications
                .iter()
                .map(|it| it.name.clone())
                .collect(),
            groups: config.groups.iter().map(|it| it.name.clone()).collect(),
            networks: config.networks.iter().map(|it| it.name.clone()).collect(),
        },
        hot_restart: config
            .applications
            .iter()
            .map(|app| app.hot_restart.as_nanos())
            .collect(),
        hot_restart_enforced: true,
        start_wait: nanos(config.timing.start_wait),
        heal_within: nanos(heal_within(config)),
        channels: transfers::terms(config),
    }
}

/// The longest lease that a witness grants: as long as it is started with where sites are near, the pair's own where that is longer.
fn longest_lease(config: &Config) -> Duration {
    LONGEST_LEASE.max(config.timing.lease)
}

/// twice the start wait, a witness's quiet period and a second; and a period of the slowest
/// application with its deadline, for the first state.
pub fn heal_within(config: &Config) -> Duration {
    let first_state = config
        .applications
        .iter()
        .map(|app| app.period + app.deadline)
        .max()
        .unwrap_or_default();
    let quiet = longest_lease(config).stretched(2 * config.timing.clock_drift_ppm + 10);
    config.timing.start_wait * 2 + quiet + Duration::from_secs(1) + first_state * 2
}
