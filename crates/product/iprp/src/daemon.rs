//! The parts put together: starting, and ending.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration as StdDuration;

use bumpless_capture::{
    Firewall, FirewallError, Injector, Missing, Queue, Sightings, missing, remedy,
};
use bumpless_config::Problem;
use bumpless_iprp::{
    Mode, Networks, Receiver, ReceiverLimits, ReceiverSetup, Sender, SenderLimits, SenderSetup,
    Timing,
};
use bumpless_net_linux::{Clock, Waker, random};
use bumpless_node::control::{ControlServer, Handler, refusal};
use bumpless_node::key_file;
use bumpless_node::{InstanceLock, LockError};
use bumpless_secure::RingSuite;
use rtrb::RingBuffer;
use serde_json::Value;

use crate::agreements::{self, Agreements};
use crate::closed::{Channels, Closed};
use crate::config::Config;
use crate::control_plane::{Asked, ControlPlane, Signals, State};
use crate::data_plane::{Buffers, DataPlane, KnownMembers, Outgoing};
use crate::diverting::Ways;
use crate::event::Log;
use crate::exchange::LENGTH;
use crate::groups::{GroupChannels, GroupKeys};
use crate::host::{SocketError, attach, find_attachments, modes, rules};
use crate::members::{self, Memberships};
use crate::networks::Attachment;
use crate::request::{Request, socket_path};
use crate::root::Root;
use crate::snapshot::Passed;
use crate::trust::{self, Shown, Trust, TrustError};

/// The firewall's tables of ours.
const TABLE: &str = "bumpless_iprp";
/// Packets that wait in the kernel's queue at most.
const QUEUED: u32 = 8192;
/// Packets of `standby` flows that are kept at most, all together.
const KEPT: usize = 8192;
/// How long a request waits for its reply.
const PATIENCE: StdDuration = StdDuration::from_secs(3);

/// How a daemon is run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Print events as JSON.
    pub json: bool,
    /// Set to end.
    pub stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
    /// Set to read the file again.
    pub reload: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

/// Why a daemon did not start, or ended unbidden. Nothing of it is left on the host.
#[derive(Debug)]
pub enum RunError {
    /// Capabilities that are missing.
    Rights(Vec<Missing>),
    /// Rules that do not say what the host's networks are.
    Networks(Vec<Problem>),
    /// What protects messages between hosts.
    Trust(TrustError),
    /// It runs already.
    Lock(LockError),
    /// The firewall's rules.
    Firewall(FirewallError),
    /// A socket of a network.
    Socket(SocketError),
    /// Something else of the system's.
    System {
        /// What was attempted.
        what: &'static str,
        /// What the system said.
        cause: io::Error,
    },
    /// A core refused its setup.
    Setup(String),
    /// The data plane has ended by a panic.
    Panicked,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = |f: &mut fmt::Formatter<'_>, all: Vec<String>| f.write_str(&all.join("\n"));
        match self {
            Self::Rights(all) => {
                let path = std::env::current_exe().unwrap_or_default();
                let named: Vec<_> = all.iter().map(ToString::to_string).collect();
                write!(f, "{}; {}", named.join(", "), remedy(&path.display().to_string()))
            }
            Self::Networks(problems) => lines(f, problems.iter().map(ToString::to_string).collect()),
            Self::Trust(error) => error.fmt(f),
            Self::Lock(error) => error.fmt(f),
            Self::Firewall(error) => error.fmt(f),
            Self::Socket(error) => error.fmt(f),
            Self::System { what, cause } => write!(f, "cannot {what}: {cause}"),
            Self::Setup(cause) => write!(f, "the file cannot be run: {cause}"),
            Self::Panicked => f.write_str(
                "the data plane ended by a panic, so the daemon has ended and packets leave as they are; start it again, and report this",
            ),
        }
    }
}

impl std::error::Error for RunError {}

/// What a start finds on this host, beside the file.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its networks.
    pub networks: Vec<Attachment>,
    /// Its certificate, if it has one.
    pub certificate: Option<Shown>,
}

/// What a start would find on this host, beside the file: rights, networks, keys or certificate.
///
/// # Errors
/// Everything that keeps the daemon from starting here.
pub fn check_host(config: &Config, file: &Path) -> Result<Found, Vec<RunError>> {
    let mut errors = Vec::new();
    let missing = missing();
    if !missing.is_empty() {
        errors.push(RunError::Rights(missing));
    }
    let trust = trust::load(config, file).map_err(RunError::Trust);
    let groups = trust::groups(config, file).map_err(RunError::Trust);
    errors.extend(groups.err());
    let networks = find_attachments(config, &file.display().to_string());
    let networks = networks.and_then(|found| {
        let problems = members::problems(config, &found, file);
        problems.is_empty().then_some(found).ok_or(problems)
    });
    match (trust, networks.map_err(RunError::Networks)) {
        (Ok(trust), Ok(networks)) if errors.is_empty() => Ok(Found {
            networks,
            certificate: trust.shown(),
        }),
        (trust, networks) => {
            errors.extend(trust.err().into_iter().chain(networks.err()));
            Err(errors)
        }
    }
}

/// Runs the daemon with the file at `file`, whose content is `config`, until it is told to stop.
///
/// # Errors
/// [`RunError`]. Whatever it ends by, none of the firewall's rules is left.
pub fn run(config: Config, file: &Path, options: Options) -> Result<(), RunError> {
    let missing = missing();
    if !missing.is_empty() {
        return Err(RunError::Rights(missing));
    }
    let trust = trust::load(&config, file).map_err(RunError::Trust)?;
    let groups = trust::groups(&config, file).map_err(RunError::Trust)?;
    let name = file.display().to_string();
    let attachments = find_attachments(&config, &name).map_err(RunError::Networks)?;
    let socket = socket_path(&config, key_file::folder_of(Some(file)));
    let beside = |extension: &str| PathBuf::from(format!("{}.{extension}", socket.display()));
    let _lock = InstanceLock::take(&beside("lock")).map_err(RunError::Lock)?;
    let system = |what: &'static str| move |cause| RunError::System { what, cause };
    let mut root = Root::load(&beside("root")).map_err(system("draw random bytes"))?;
    let number = root.number().wrapping_add(1);
    root.keep(number);
    let (attached, ports, cards) = attach(&config, &attachments).map_err(RunError::Socket)?;
    let sender = sender(&config, attached.networks, &groups)?;
    let receiver = receiver(&config, attached.networks, &groups, (root.secret(), number))?;
    let members = Memberships::new(groups.iter().map(GroupKeys::address).collect());
    let members = members.map_err(system("be a member of groups"))?;
    let spoken = GroupChannels::new(groups, seed()?, Clock.now());
    let spoken = spoken.map_err(|error| RunError::Setup(error.to_string()))?;
    let queue = Queue::open(config.host.queue, QUEUED);
    let queue = queue.map_err(system(
        "capture packets; another `queue` in [host] may be free",
    ))?;
    let sightings = Sightings::open(config.host.queue);
    let sightings = sightings.map_err(system(
        "watch packets; another `queue` in [host] may be free",
    ))?;
    let injector = Injector::open().map_err(system("give packets back to the host"))?;
    let (to_data, from_control) = RingBuffer::new(LENGTH);
    let (to_control, from_data) = RingBuffer::new(LENGTH);
    let (waker, control) = (wakers()?, wakers()?);
    let (channels, agreements) = channels(trust, &config, (&attachments, &control))?;
    let log = Log::start(options.json).map_err(system("start the log's thread"))?;
    let (ways, diverted) = Ways::open(config.host.capture, seed()?);
    // Last: from here on packets can be captured.
    let rules = rules(&config, &attachments, &ways);
    let firewall = Firewall::install(TABLE, &rules).map_err(RunError::Firewall)?;
    let data_plane = DataPlane {
        sender,
        receiver,
        queue,
        diverted,
        sightings,
        injector,
        attached: Box::new(attached),
        modes: modes(&config),
        data_port: config.host.data_port,
        inbox: from_control,
        outbox: to_control,
        waker: waker.clone(),
        control: control.clone(),
        buffers: Buffers::default(),
        outgoing: Outgoing::default(),
        passed: Passed::default(),
        backlog: VecDeque::new(),
        members: KnownMembers::default(),
    };
    let (asked, requests) = sync_channel(16);
    let handler = Asking {
        asked,
        control: control.clone(),
    };
    let _server =
        ControlServer::start(&socket, None, handler).map_err(system("open the control socket"))?;
    let thread = thread::Builder::new()
        .name("data plane".into())
        .spawn(move || data_plane.run())
        .map_err(system("start the data plane's thread"))?;
    say_start(&log, &config, &attachments, &ways);
    let origin = (seed()?, seed()?);
    let control_plane = ControlPlane {
        file: file.to_owned(),
        closed: Closed::new(channels, cards, origin, Clock.now()),
        groups: spoken,
        members,
        agreements,
        config,
        attachments,
        ports,
        firewall: Some(firewall),
        ways,
        root,
        inbox: from_data,
        outbox: to_data,
        requests,
        waker: control,
        data: waker,
        log,
        signals: Signals {
            stop: options.stop,
            reload: options.reload,
        },
        state: State::new(Clock.now()),
    };
    control_plane.run(|| !thread.is_finished());
    // It has ended, or does not end: then the process does, and the kernel cleans up.
    match thread.is_finished() {
        true => thread.join().map_err(|_| RunError::Panicked),
        false => Ok(()),
    }
}

/// With which keys frames are sealed, and where they come from if hosts have certificates.
fn channels(
    trust: Trust,
    config: &Config,
    (attachments, control): (&[Attachment], &Waker),
) -> Result<(Channels, Option<Agreements>), RunError> {
    let own = match trust {
        Trust::Keys(ring) => return Ok((Channels::shared(ring, Clock.now()), None)),
        Trust::Certificate(own) => *own,
    };
    let setup = agreements::Setup {
        own,
        port: config.host.control_port,
        lifetime: config.timing.key_lifetime.to_std(),
    };
    let addresses: Vec<_> = attachments.iter().map(|it| it.address).collect();
    let started = Agreements::start(setup, &addresses, control.clone());
    let started = started.map_err(|cause| RunError::System {
        what: "listen where other hosts call; give all hosts another control_port in [host], or stop the program that has it",
        cause,
    })?;
    Ok((Channels::each(), Some(started)))
}

fn say_start(log: &Log, config: &Config, attachments: &[Attachment], ways: &Ways) {
    let shown: Vec<_> = attachments
        .iter()
        .map(|it| format!("{} ({}, ind {})", it.address, it.interface, it.ind.get()))
        .collect();
    let words = format!(
        "runs on {}; {} monitored; control port {}, data port {}; {}",
        shown.join(", "),
        config.monitors.len(),
        config.host.control_port,
        config.host.data_port,
        ways.words()
    );
    log.say("started", serde_json::json!({"networks": shown}), &words);
}

fn seed() -> Result<u64, RunError> {
    random::seed().map_err(|errno| RunError::System {
        what: "draw random bytes",
        cause: errno.into(),
    })
}

fn wakers() -> Result<Waker, RunError> {
    Waker::new().map_err(|errno| RunError::System {
        what: "make a wake-up descriptor",
        cause: errno.into(),
    })
}

fn sender(
    config: &Config,
    networks: Networks,
    groups: &[GroupKeys],
) -> Result<Sender<RingSuite>, RunError> {
    let is_standby = config.monitors.iter().any(|it| it.mode == Mode::Standby);
    let limits = SenderLimits {
        sessions: config.limits.sessions,
        // A reload may name the first one.
        kept_packets: if is_standby { KEPT } else { KEPT / 8 },
        ..SenderLimits::default()
    };
    let setup = SenderSetup {
        networks,
        groups: groups.iter().map(GroupKeys::for_core).collect(),
        limits,
        seed: seed()?,
    };
    Sender::new(setup).map_err(|error| RunError::Setup(error.to_string()))
}

fn receiver(
    config: &Config,
    networks: Networks,
    groups: &[GroupKeys],
    (root, key_number): (bumpless_secure::Secret, u32),
) -> Result<Receiver<RingSuite>, RunError> {
    let timing = Timing {
        advertise_every: config.timing.advertise_every,
        // The paper's share of the period.
        back_off: config.timing.advertise_every / 3,
        inactivity: config.timing.inactivity,
        key_lifetime: config.timing.key_lifetime,
        ..Timing::default()
    };
    let limits = ReceiverLimits {
        sessions: config.limits.sessions,
        max_lost: config.limits.max_lost,
        ..ReceiverLimits::default()
    };
    let setup = ReceiverSetup {
        networks,
        monitored: config.watched(),
        groups: groups.iter().map(GroupKeys::for_core).collect(),
        root,
        key_number,
        timing,
        limits,
        seed: seed()?,
    };
    Receiver::new(setup, Clock.now()).map_err(|error| RunError::Setup(error.to_string()))
}

/// Hands requests of the control socket to the control plane.
struct Asking {
    asked: SyncSender<Asked>,
    control: Waker,
}

impl Handler for Asking {
    type Request = Request;

    fn is_order(request: &Request) -> bool {
        *request != Request::Status
    }

    fn handle(&mut self, request: Request) -> Value {
        let (reply, replies) = sync_channel(1);
        let busy = || refusal("the daemon is busy; ask again");
        if self.asked.try_send((request, reply)).is_err() {
            return busy();
        }
        self.control.wake();
        replies.recv_timeout(PATIENCE).unwrap_or_else(|_| busy())
    }
}
