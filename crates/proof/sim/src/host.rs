//! One controller: the shipped data plane and executors under a clock of its own, with what a
//! process has around it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use bumpless_base::{Instant, LinkId, NodeId, Permit, Random};
use bumpless_config::{Config, ReferenceKind, Security};
use bumpless_node::admission::Admission;
use bumpless_node::build::{Beginning, Node};
use bumpless_node::change::Changer;
use bumpless_node::data_plane::addresses::Addresses;
use bumpless_node::data_plane::drivers::Drivers;
use bumpless_node::data_plane::link_port::LinkPort;
use bumpless_node::data_plane::protection::{Protection, Sender};
use bumpless_node::data_plane::{Command, DataPlane};
use bumpless_node::log::EventLog;
use bumpless_node::wiring::Wiring;
use bumpless_transfer::ChannelPlace;
use rtrb::Producer;

use crate::application::App;
use crate::changing::Changing;
use crate::clock::LocalClock;
use crate::echo::SimEcho;
use crate::exchange::{Shared, SimLink};
use crate::kept::StateDisk;
use crate::readable::{self, Readable};
use crate::streams::{Purpose, stream};
use crate::variants::Configuration;

/// Cycles before their wrap with which a channel may begin.
const NEAR_WRAP: u64 = 1000;
/// How late a thread goes on when nothing is wrong: a real-time thread on an ordinary kernel, behind an
/// interface that moderates its interrupts.
const LATENCY: u64 = 80_000;

/// What the ports of one node's executors see of it.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// The node's clock during the present call.
    pub now: Rc<Cell<Instant>>,
    /// Somebody has woken the data plane.
    pub woken: Rc<Cell<bool>>,
}

impl bumpless_node::executor::Environment for Environment {
    fn now(&self) -> Instant {
        self.now.get()
    }
    fn wake_data_plane(&self) {
        self.woken.set(true);
    }
}

/// Drivers of the simulated networks.
pub enum Simulated {}

impl Drivers for Simulated {
    type Link = SimLink;
    type Echo = SimEcho;
    type Suite = Readable;
}

/// The process of a node while it runs.
pub struct Process {
    /// The shipped data plane.
    pub plane: DataPlane<Simulated>,
    /// Its event log.
    pub log: EventLog,
    /// Orders to it.
    pub orders: Producer<Command<Readable>>,
    /// Its applications, by place.
    pub apps: Vec<Option<App>>,
    /// Changes its configuration.
    pub change: Changing,
    /// By application among all that there ever are, its place.
    pub channels: Vec<Option<ChannelPlace>>,
    /// The session with each group's partner.
    pub tags: Vec<Option<u32>>,
    /// The session of each application's channel.
    pub sessions: Vec<Option<u32>>,
    /// Sessions or places were looked up anew since the checkers were last told.
    pub followed: bool,
    /// States received when last looked.
    pub states_delivered: u64,
    /// When status was refreshed, when last looked.
    pub refreshed: Instant,
}

/// A controller's computer.
pub struct Host {
    /// Its position in the configuration.
    pub node: usize,
    /// Its clock.
    pub clock: LocalClock,
    /// The rate of its clock while nothing is wrong, parts per billion.
    pub sound_rate: i64,
    /// Its process.
    pub process: Option<Process>,
    /// With what its process began.
    pub configuration: Configuration,
    /// States on its disk.
    pub disk: StateDisk,
    /// How many processes it has had.
    pub incarnation: u32,
    /// Ports' view.
    pub environment: Environment,
    /// Every thread stands still until this.
    pub paused_until: u64,
    /// The next turn stops, after it has received, until this.
    pub stalled_until: u64,
    /// The next turn only shows what the last one, stopped in its middle, has done.
    pub owes_observation: bool,
    /// When the last turn took what had arrived.
    pub received_at: u64,
    /// Added to every latency, at most.
    pub slow: u64,
    /// Since when its thread could go on, or from when on it can, whatever comes.
    pub ready_at: u64,
    /// The last plan's serial of any of its executors.
    pub serials: u32,
    /// Until when the data plane asked to wait.
    pub due: Instant,
    /// The same in true time, unless the clock was changed since.
    wakes: Option<u64>,
    /// The permit that the checkers were told last, by group, and the true time of its end.
    pub permits: Vec<(Option<Permit>, u64)>,
    /// How long threads take.
    pub random: Random,
    seeds: Random,
    origins: Random,
    cycles: Random,
}

impl Process {
    /// Looks up the sessions; returns whether one is another than it was.
    pub fn follow_sessions(&mut self) -> bool {
        let redundancy = &self.plane.cores().redundancy;
        let mut changed = false;
        for (known, group) in self.tags.iter_mut().zip(self.plane.groups()) {
            let tag = redundancy.transfer_tag(group.peer);
            changed |= std::mem::replace(known, tag) != tag;
        }
        if changed {
            self.follow_places();
        }
        changed
    }

    /// Looks up which application has which place, and its session.
    pub fn follow_places(&mut self) {
        self.followed = true;
        self.channels.fill(None);
        self.sessions.fill(None);
        let channels = self.plane.channels();
        let places = channels.indices().zip(channels.iter());
        for (application, (place, channel)) in self.change.applications.iter().zip(places) {
            if let (Some(application), Some(channel)) = (application, channel) {
                self.channels[*application] = Some(place);
                self.sessions[*application] = self.tags[channel.membership.group.0];
            }
        }
    }

    /// The executor at `place`.
    pub fn app(&mut self, place: usize) -> Option<&mut App> {
        self.apps.get_mut(place)?.as_mut()
    }
}

impl Host {
    /// A computer that is switched off. Clocks differ by no more than `drift_ppm` from each other.
    pub fn new(config: &Config, node: usize, seed: u64) -> Self {
        let mut clocks = stream(seed, Purpose::Clock, node);
        let shows = clocks.below(1 << 50);
        let ppb = draw_rate(config, &mut clocks);
        Self {
            node,
            clock: LocalClock::new(0, shows, ppb),
            sound_rate: ppb,
            process: None,
            configuration: Configuration::Right,
            disk: StateDisk::default(),
            incarnation: 0,
            environment: Environment::default(),
            paused_until: 0,
            stalled_until: 0,
            owes_observation: false,
            received_at: 0,
            slow: 0,
            ready_at: u64::MAX,
            serials: 0,
            due: Instant::ZERO,
            wakes: None,
            permits: vec![(None, 0); config.groups.len()],
            random: stream(seed, Purpose::Host, node),
            seeds: stream(seed, Purpose::Session, node),
            origins: stream(seed, Purpose::Envelopes, node),
            cycles: stream(seed, Purpose::Cycles, node),
        }
    }

    /// Another origin of the clock, as after a restart of the computer.
    pub fn reboot(&mut self, now: u64) {
        let shows = self.seeds.below(1 << 50);
        self.clock = LocalClock::new(now, shows, self.clock.ppb());
    }

    /// Gives its clock another rate from true time `now` on.
    pub fn set_rate(&mut self, now: u64, ppb: i64, ahead: u64) {
        self.clock.set_rate(now, ppb, ahead);
        self.wakes = None;
    }

    /// The data plane waits until `due`: returns the true time at which the clock shows it.
    pub fn wakes(&mut self, due: Instant) -> u64 {
        // Most turns leave it as it was.
        if let Some(wakes) = self.wakes.filter(|_| self.due == due) {
            return wakes;
        }
        let wakes = self.clock.true_time(due);
        (self.due, self.wakes) = (due, Some(wakes));
        wakes
    }

    /// How long a thread of this computer takes to go on.
    pub fn latency(&mut self) -> u64 {
        2_000 + self.random.below(LATENCY + self.slow)
    }

    /// Starts a process at true time `now`.
    ///
    /// # Errors
    /// What a core refuses of its setup.
    pub fn start(
        &mut self,
        (config, all): (&Config, &Config),
        exchange: &Shared,
        now: u64,
    ) -> Result<(), String> {
        let local = self.clock.local(now);
        self.environment.now.set(local);
        let seed = self.seeds.next_u64();
        let wiring = Wiring::new(config, NodeId(self.node as u8));
        let ports = self.ports(config, &wiring, exchange, local);
        let pingers = self.pingers(config, &wiring, exchange);
        let beginning = Beginning {
            seed,
            now: local,
            stop: Arc::default(),
            log_transfers: false,
        };
        let Node {
            mut plane,
            ends,
            parts,
            mut log,
            orders,
            board,
            factories,
            ..
        } = Node::new(config, &wiring, (ports, pingers), beginning)
            .map_err(|error| error.to_string())?;
        self.draw_cycles(&mut plane);
        let registry = log.registry();
        plane.tell_started(local);
        let ends = ends.0.into_iter().zip(ends.1);
        let ends = wiring.applications.indices().zip(ends);
        let mut found = Vec::new();
        let apps = ends
            .map(|(at, ends)| {
                let settings = &config.applications[wiring.applications[at]];
                let index = position(all, &settings.name)?;
                let opened = self.disk.open(config, (index, at, settings), (now, local));
                found.extend(opened.found);
                let sink = log.sink();
                let shared = parts.shared(at);
                let environment = (&self.environment, opened.keeper, opened.saver);
                Some(App::new(
                    (index, settings),
                    shared,
                    ends,
                    sink,
                    environment,
                    self.node,
                ))
            })
            .collect();
        plane.restore(&found, local);
        let admission = Admission::unplanned();
        let changer = Changer::new((config, admission), parts, factories);
        self.incarnation += 1;
        (self.due, self.wakes) = (local, None);
        self.owes_observation = false;
        let mut process = Process {
            tags: vec![None; plane.groups().len()],
            sessions: vec![None; all.applications.len()],
            channels: vec![None; all.applications.len()],
            change: Changing::new(changer, board, registry),
            plane,
            log,
            orders,
            apps,
            followed: true,
            states_delivered: 0,
            refreshed: Instant::ZERO,
        };
        process.change.follow(all);
        process.follow_places();
        self.process = Some(process);
        Ok(())
    }

    fn pingers(&self, config: &Config, wiring: &Wiring, exchange: &Shared) -> Vec<Option<SimEcho>> {
        let pingers = config.references.iter().enumerate().map(|(at, reference)| {
            let network = usize::from(reference.network.0);
            let used = |&group: &usize| config.groups[group].references.contains(&at);
            let ReferenceKind::Ping(target) = reference.kind else {
                return None;
            };
            config.nodes[self.node].addresses[network]
                .filter(|_| wiring.groups.iter().any(used))
                .map(|local| SimEcho {
                    exchange: exchange.clone(),
                    node: self.node,
                    network,
                    reference: at,
                    local,
                    target,
                })
        });
        pingers.collect()
    }

    /// Half of all channels begin so that their cycles wrap within seconds.
    fn draw_cycles(&mut self, plane: &mut DataPlane<Simulated>) {
        for channel in (0..plane.channels().iter().flatten().count()).map(ChannelPlace) {
            let before_wrap = self.cycles.below(2 * NEAR_WRAP);
            if before_wrap < NEAR_WRAP {
                plane.set_last_cycle(channel, u32::MAX - before_wrap as u32);
            }
        }
    }

    fn ports(
        &mut self,
        config: &Config,
        wiring: &Wiring,
        exchange: &Shared,
        local: Instant,
    ) -> Vec<Option<LinkPort<SimLink, Readable>>> {
        let keys = (config.security != Security::Open).then(readable::keys);
        let keys = keys.map(Arc::new);
        let settings = wiring.links(config);
        let ports = settings.iter().enumerate().map(|(network, settings)| {
            let settings = settings.as_ref()?;
            let link = LinkId(network as u8);
            let driver = SimLink::new(exchange, (self.node, network), settings.local);
            let addresses = Addresses::new(config, wiring, link);
            let sender = Sender {
                node: wiring.node,
                link,
                origin: self.origins.next_u64(),
            };
            let protection = match &keys {
                Some(keys) => {
                    Protection::sealed(keys, sender, &addresses, settings.message_max, local)
                }
                None => Protection::none(addresses.nodes.len()),
            };
            let with = (addresses, protection);
            Some(LinkPort::new(link, driver, settings, with, local))
        });
        ports.collect()
    }
}

/// The position of the application named `name`.
pub fn position(config: &Config, name: &str) -> Option<usize> {
    let mut applications = config.applications.iter();
    applications.position(|application| application.name == name)
}

/// A rate within the configured drift, parts per billion: two such clocks differ by no more than
/// that from each other.
pub fn draw_rate(config: &Config, random: &mut Random) -> i64 {
    let most = i64::from(config.timing.clock_drift_ppm) * 1000 / 2;
    random.below(2 * most as u64 + 1) as i64 - most
}

/// A cell that a port fills and the world empties.
pub type Slot<T> = Rc<RefCell<Vec<T>>>;
