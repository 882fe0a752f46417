//! States in the place of messages, and their acknowledgements in that of answers: a pair of controllers, one at each host, of which
//! both networks are the network and the backup.
//!
//! A state must be safe before the next one of its channel leaves, so that states take turns with channels: one of a channel leaves
//! when its last one is older than whatever a round trip takes.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddrV4;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender as Teller;
use std::thread;

use bumpless_base::{Duration, Instant, TransferOutcome};
use bumpless_bench::peer::states::{Receiver, Sender};
use bumpless_config::Config;
use bumpless_net_linux::Clock;

use super::MESSAGE;
use super::client::{Heard, LINGER, LOOK, Message, PERIOD, bytes};
use crate::study::host::Host;

/// How many channels take turns.
const CHANNELS: usize = 16;
/// How long the two nodes may take until they know each other.
const PATIENCE: Duration = Duration::from_secs(15);
/// The newest state stays readable through the whole run.
const EXPIRY: Duration = Duration::from_secs(3_600);
/// A state is given up when its channel's next one is due.
const DEADLINE: Duration = Duration::from_nanos(PERIOD.as_nanos() * CHANNELS as u64);
/// The real-time priority of whatever is measured: the lowest one is background traffic's (U-55).
const PRIORITY: u8 = 2;
/// On a radio backup, packets wait for those before them: the fewer, the better.
const HEARTBEAT_MS: u32 = 100;
/// Longer than what a radio backup delays heartbeats, milliseconds; and what a node waits for at its start.
const LEASE_MS: u32 = 1_000;
const START_WAIT_MS: u32 = 2_400;

/// Both ends, which know each other.
pub struct States {
    sender: Sender,
    receiver: Receiver,
}

impl States {
    /// Starts a node at `host` and one in the namespace of the calling thread, the ends of both `ways`.
    ///
    /// # Errors
    /// One cannot start, or they do not find each other.
    pub fn meet(host: &Host, ways: [(SocketAddrV4, SocketAddrV4); 2]) -> io::Result<Self> {
        let config = configuration(ways).map_err(io::Error::other)?;
        let other = config.clone();
        let receiver =
            host.at(|| Receiver::start(other, "substation").map_err(io::Error::other))?;
        let sender = Sender::start(config, "centre", (PATIENCE, EXPIRY));
        Ok(Self {
            sender: sender.map_err(io::Error::other)?,
            receiver,
        })
    }

    /// Sends so many states, the first one so long after this; `began` is told when that is.
    ///
    /// # Errors
    /// Somebody wants to stop, or the substation does not have what it has acknowledged.
    pub fn run(
        mut self,
        amount: (usize, Duration),
        began: &Teller<Instant>,
        stop: &AtomicBool,
    ) -> io::Result<Heard> {
        let heard = self.talk(amount, began, stop);
        // The next pair of this substation has the same ports.
        self.sender.end();
        self.receiver.end();
        heard
    }

    fn talk(
        &mut self,
        (count, after): (usize, Duration),
        began: &Teller<Instant>,
        stop: &AtomicBool,
    ) -> io::Result<Heard> {
        // By default the kernel wakes a thread up to 50 us later than it asks for.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        self.sender.register();
        let first = Clock.now() + after;
        let _ = began.send(first);
        let mut talk = Talk::default();
        let due = |number: usize| first + Duration::from_nanos(PERIOD.as_nanos() * number as u64);
        let end = due(count.saturating_sub(1)) + LINGER;
        loop {
            let now = Clock.now();
            talk.hear(&self.sender, now);
            let next = talk.messages.len();
            if next < count && due(next) <= now {
                talk.send(&mut self.sender, (due(next), now));
                continue;
            }
            if now >= end || (next == count && talk.open.iter().all(Option::is_none)) {
                break;
            }
            if stop.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let until = if next < count { due(next) } else { end };
            thread::park_timeout(until.since(now).min(LOOK).to_std());
        }
        self.compare(&talk.messages)?;
        Ok(Heard {
            messages: talk.messages,
            switched: None,
        })
    }

    /// Whether the substation has the last state that it acknowledged.
    fn compare(&mut self, messages: &[Message]) -> io::Result<()> {
        let Some(last) = messages.iter().rposition(|it| it.answered.is_some()) else {
            return Ok(());
        };
        match self.receiver.newest(last % CHANNELS) {
            Some(state) if state == bytes(last) => Ok(()),
            _ => Err(io::Error::other(format!(
                "the substation does not have state {last}, which it has acknowledged"
            ))),
        }
    }
}

/// All states of a run.
#[derive(Default)]
struct Talk {
    messages: Vec<Message>,
    /// Of each channel, the state that nothing is known of: its number and its ticket.
    open: [Option<(usize, u64)>; CHANNELS],
}

impl Talk {
    fn send(&mut self, sender: &mut Sender, (due, sent): (Instant, Instant)) {
        let number = self.messages.len();
        self.messages.push(Message {
            due,
            sent,
            answered: None,
        });
        let channel = number % CHANNELS;
        let ticket = sender.publish(channel, &bytes(number));
        self.open[channel] = Some((number, ticket));
    }

    fn hear(&mut self, sender: &Sender, now: Instant) {
        for (channel, open) in self.open.iter_mut().enumerate() {
            let Some((number, ticket)) = *open else {
                continue;
            };
            match sender.outcome(channel, ticket) {
                TransferOutcome::Pending => continue,
                TransferOutcome::Safe => self.messages[number].answered = Some(now),
                TransferOutcome::Failed => {}
            }
            *open = None;
        }
    }
}

/// The pair's configuration, the same at both ends.
fn configuration(ways: [(SocketAddrV4, SocketAddrV4); 2]) -> Result<Config, String> {
    let [network, backup] = ways;
    let port = network.1.port();
    let mut text = format!(
        "[pair]\nname = \"study\"\n[realtime]\npriority = {PRIORITY}\n\
         [timing]\nheartbeat_ms = {HEARTBEAT_MS}\nlease_ms = {LEASE_MS}\nstart_wait_ms = {START_WAIT_MS}\n"
    );
    for name in ["network", "backup"] {
        let _ = write!(text, "[[network]]\nname = \"{name}\"\nbandwidth_mbit = 0\n");
    }
    let ends = [
        ("centre", network.0.ip(), backup.0.ip()),
        ("substation", network.1.ip(), backup.1.ip()),
    ];
    for (node, network, backup) in ends {
        let _ = write!(
            text,
            "[[node]]\nname = \"{node}\"\naddresses = {{ network = \"{network}:{port}\", backup = \"{backup}:{port}\" }}\n"
        );
    }
    text.push_str(
        "[[group]]\nname = \"g\"\nnodes = [\"centre\", \"substation\"]\nwithout_reference = true\n",
    );
    for number in 1..=CHANNELS {
        let _ = write!(
            text,
            "[[application]]\nname = \"state-{number}\"\ngroup = \"g\"\nkind = \"synthetic\"\nchannel = {number}\n\
             period_ms = 10\ncommit = \"before_output\"\nsize = 16\nchanged_share = 0.0\n"
        );
    }
    let mut config = Config::parse(&text, "study").map_err(|problems| {
        let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
        lines.join("; ")
    })?;
    for application in &mut config.applications {
        application.period = DEADLINE;
        application.deadline = DEADLINE;
        application.expiry = EXPIRY;
        application.state_max = MESSAGE as u32;
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn both_nodes_have_both_ways_and_a_channel_for_each_turn() {
        let end = |last| SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, last), 4840);
        let config = configuration([(end(1), end(2)), (end(3), end(4))]).unwrap();
        assert_eq!((config.nodes.len(), config.networks.len()), (2, 2));
        assert_eq!(config.applications.len(), CHANNELS);
        assert!(config.applications.iter().all(|it| it.deadline == DEADLINE));
    }
}
