//! Both ends of a pair's channels for whoever sends states one by one and looks what becomes of each.
//!
//! The data planes are the daemon's, on threads of their own; they have the network namespace of the thread that starts them.

use bumpless_base::{Duration, TransferOutcome};
use bumpless_config::Config;
use bumpless_net_linux::Clock;

use super::node::{Channel, Node, Reader};

/// The node whose states are sent; ends when dropped.
pub struct Sender {
    channels: Vec<Channel>,
    // Ends after what it gave away.
    node: Node,
}

impl Sender {
    /// Starts the node called `name`, and waits for so long until it is primary and has its partner. `expiry`: how long a state
    /// can be used.
    ///
    /// # Errors
    /// The node cannot start, or its partner does not answer.
    pub fn start(
        config: Config,
        name: &str,
        (patience, expiry): (Duration, Duration),
    ) -> Result<Self, String> {
        let mut node = Node::start(config, name)?;
        let channels = node.meet(patience, expiry)?;
        Ok(Self { channels, node })
    }

    /// Has the calling thread unparked whenever something becomes of a state.
    pub fn register(&mut self) {
        self.channels.iter_mut().for_each(Channel::register);
    }

    /// Sends a state on the channel at this position: by what [`Self::outcome`] knows it.
    pub fn publish(&mut self, channel: usize, state: &[u8]) -> u64 {
        self.channels[channel].publish(state)
    }

    /// Ends, and waits for it: the partner is primary then.
    pub fn end(self) {
        drop(self.channels);
        self.node.end();
    }

    /// What has become of a state of this channel.
    pub fn outcome(&self, channel: usize, ticket: u64) -> TransferOutcome {
        self.channels[channel].outcome(ticket)
    }
}

/// The node that has the states then; ends when dropped.
pub struct Receiver {
    readers: Vec<Reader>,
    node: Node,
}

impl Receiver {
    /// Starts the node called `name`.
    ///
    /// # Errors
    /// It cannot start.
    pub fn start(config: Config, name: &str) -> Result<Self, String> {
        let mut node = Node::start(config, name)?;
        Ok(Self {
            readers: node.take_subscribers()?,
            node,
        })
    }

    /// Ends, and waits for it. Its partner is to have ended before, or it would be handed over to.
    pub fn end(self) {
        drop(self.readers);
        self.node.end();
    }

    /// The newest state of the channel at this position, if there is one that can be used.
    pub fn newest(&mut self, channel: usize) -> Option<Vec<u8>> {
        let (reader, guard) = &mut self.readers[channel];
        let state = reader.read(Clock.now())?;
        match guard {
            Some(guard) => guard.open(state.data()).map(<[u8]>::to_vec),
            None => Some(state.data().to_vec()),
        }
    }
}
