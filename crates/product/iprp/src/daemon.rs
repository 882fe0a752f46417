//! The parts put together: starting, and ending.

mod error;
mod survey;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration as StdDuration;

use bumpless_capture::{Firewall, Injector, OwnAddresses, Queue, Sightings};
use bumpless_iprp::{
    Mode, Networks, Receiver, ReceiverLimits, ReceiverSetup, Sender, SenderLimits, SenderSetup,
    Timing,
};
use bumpless_net_linux::{Clock, Waker, random};
use bumpless_node::InstanceLock;
use bumpless_node::control::{ControlServer, Handler, refusal};
use bumpless_secure::RingSuite;
use rtrb::RingBuffer;

use crate::agreements::{self, Agreements};
use crate::closed::{Channels, Closed};
use crate::config::Config;
use crate::control_plane::{Asked, ControlPlane, Outbox, Signals, State};
use crate::data_plane::{Buffers, DataPlane, Here, KnownMembers, Outgoing};
use crate::diverting::Ways;
use crate::event::Log;
use crate::exchange::{Attached, LENGTH};
use crate::groups::{GroupChannels, GroupKeys};
use crate::host::{attach, modes, rules};
use crate::members::Memberships;
use crate::networks::Attachment;
use crate::request::{Reply, Request};
use crate::root::Root;
use crate::snapshot::Passed;
use crate::trust::Trust;
use crate::unanswered::Watch;
use crate::unheard;
pub use error::RunError;
pub use survey::{Found, check_host};
use survey::{Surveyed, beside_socket, survey};

/// The firewall's tables of ours.
const TABLE: &str = "bumpless_iprp";
/// Packets that wait in the kernel's queue at most.
const QUEUED: u32 = 8192;
/// Packets of `standby` flows that are kept at most, all together...
const KEPT: usize = 8192;
/// ...each with room for so many bytes, or for a longer one if the networks carry that...
const KEPT_LEN: usize = 1_500;
/// ...in so many bytes at most.
const KEPT_BYTES: usize = KEPT * KEPT_LEN;
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

/// Runs the daemon with the file at `file`, whose content is `config`, until it is told to stop.
///
/// # Errors
/// [`RunError`]. Whatever it ends by, none of the firewall's rules is left.
pub fn run(config: Config, file: &Path, options: Options) -> Result<(), RunError> {
    let surveyed = survey(&config, file).map_err(RunError::Several)?;
    let Surveyed {
        trust,
        groups,
        networks: attachments,
        socket,
    } = surveyed;
    let lock = beside_socket(&socket, "lock");
    let _lock = InstanceLock::take(&lock).map_err(RunError::Lock)?;
    let system = |what: &'static str| move |cause| RunError::System { what, cause };
    let mut root =
        Root::load(&beside_socket(&socket, "root")).map_err(system("draw random bytes"))?;
    let number = root.number().wrapping_add(1);
    root.keep(number);
    let (attached, ports, cards) = attach(&config, &attachments, None).map_err(RunError::Socket)?;
    let sender = sender(&config, &attached, &groups)?;
    let receiver = receiver(&config, attached.networks, &groups, (root.secret(), number))?;
    let members = Memberships::new(groups.iter().map(GroupKeys::address).collect());
    let members = members.map_err(system("be a member of groups"))?;
    let spoken = GroupChannels::new(groups, seed()?, Clock.now());
    let spoken = spoken.map_err(|error| RunError::Setup(error.to_string()))?;
    let queue = Queue::open(config.host.queue, QUEUED).map_err(RunError::Queue)?;
    let sightings = Sightings::open(config.host.queue).map_err(RunError::Queue)?;
    let injector = Injector::open().map_err(system("give packets back to the host"))?;
    let own = OwnAddresses::open().map_err(system("ask the kernel for this host's addresses"))?;
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
        here: Here::new(own),
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
        watch: Watch::new(config.limits.sessions),
        unheard: unheard::Watch::new(match config.groups.is_empty() {
            true => 0,
            false => config.limits.sessions,
        }),
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
    let every = config.timing.advertise_every;
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
        outbox: Outbox::new(to_data),
        requests,
        waker: control,
        data: waker,
        log,
        signals: Signals {
            stop: options.stop,
            reload: options.reload,
        },
        state: State::new(Clock.now(), every),
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
    attached: &Attached,
    groups: &[GroupKeys],
) -> Result<Sender<RingSuite>, RunError> {
    let is_standby = config.monitors.iter().any(|it| it.mode == Mode::Standby);
    let (kept_packets, kept_len) = kept(is_standby, attached.room);
    let limits = SenderLimits {
        sessions: config.limits.sessions,
        kept_packets,
        kept_len,
    };
    let setup = SenderSetup {
        networks: attached.networks,
        groups: groups.iter().map(GroupKeys::for_core).collect(),
        limits,
        seed: seed()?,
    };
    Sender::new(setup).map_err(|error| RunError::Setup(error.to_string()))
}

/// How many packets of standby flows are kept, and of what length at most, where a copy has this `room` at the start.
fn kept(is_standby: bool, room: usize) -> (usize, usize) {
    let len = room.max(KEPT_LEN);
    let packets = KEPT_BYTES / len;
    // A reload may name the first one.
    let packets = if is_standby { packets } else { packets / 8 };
    (packets, len)
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
    type Reply = Reply;

    fn is_order(request: &Request) -> bool {
        *request != Request::Status
    }

    fn handle(&mut self, request: Request) -> Reply {
        let (reply, replies) = sync_channel(1);
        let busy = || Reply::Other(refusal("the daemon is busy; ask again"));
        if self.asked.try_send((request, reply)).is_err() {
            return busy();
        }
        self.control.wake();
        replies.recv_timeout(PATIENCE).unwrap_or_else(|_| busy())
    }
}

#[cfg(test)]
mod tests {
    use super::kept;

    #[test]
    fn what_standby_keeps_is_as_long_as_a_copy_may_be_and_takes_no_more_memory_for_it() {
        // Of Ethernet, and of jumbo frames, behind the headers of IPv4 and UDP.
        assert_eq!(kept(true, 1_472), (8_192, 1_500));
        assert_eq!(kept(true, 8_972), (1_369, 8_972));
        // No network yet, the least one of IPv6, the loopback device.
        for room in [0, 1_232, 65_507] {
            let (packets, len) = kept(true, room);
            assert!(packets > 0 && packets * len <= 8_192 * 1_500, "{room}");
            assert!(len >= room.max(1_472), "{room}");
            assert_eq!(kept(false, room), (packets / 8, len));
        }
    }
}
