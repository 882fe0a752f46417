//! Loss where a network ends: a program in the kernel that counts the packets that carry states and
//! drops the ones it is told to. Gone with the process that loaded it.

use std::io;

use bumpless_bpf::{Link, Numbers, Program, Purpose, interface_number};

use super::namespace::Namespace;
use super::program::{self, Control};

/// What `bpftool` shows the programs and their numbers under.
const NAME: &str = "bumpless_loss";

/// Least payload of a datagram that counts as a part of a state: acknowledgements and the like are smaller,
/// the smallest state is not.
const THRESHOLD: u64 = 128;
/// How heartbeats of ours begin (`HType`); what else ours sends to a backup is pieces of states.
const HEARTBEAT: u64 = 0x2001;

/// What the datagrams of a peer look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagrams {
    /// Pieces of states and heartbeats of ours, told apart by their type.
    Ours,
    /// Told apart by their size.
    Others,
}

/// What a filter is attached for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where states arrive.
    Forward,
    /// Where acknowledgements arrive.
    Backward,
}

/// Which packets are lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// None.
    None,
    /// `count` packets from `first` on, counted from 0 since the filter was set.
    These {
        /// The first one.
        first: u64,
        /// How many.
        count: u64,
    },
    /// Each with this probability.
    Random(f64),
    /// The first one after each so many nanoseconds.
    Every(u64),
    /// The network is cut in both directions when so many have passed.
    CutAfter(u64),
}

/// The filter of one network, in both directions.
#[derive(Debug)]
pub struct Filter {
    block: Numbers,
    _attached: Vec<Link>,
}

impl Filter {
    /// Filters at these interfaces.
    ///
    /// # Errors
    /// The kernel refuses (before 6.6 it knows no such attachment), or an interface is missing.
    pub fn new(ends: &[(&Namespace, Place, String)]) -> Result<Self, String> {
        let refused = |error: io::Error| {
            format!("cannot make packets fall: {error}; it takes root and Linux 6.6 or later")
        };
        let block = Numbers::new(NAME, Control::COUNT).map_err(refused)?;
        let mut attached = Vec::new();
        for (host, place, interface) in ends {
            let code = match place {
                Place::Forward => program::forward(block.number()),
                Place::Backward => program::backward(block.number()),
            };
            let program = Program::load(NAME, Purpose::Arriving, &code).map_err(refused)?;
            let link = host.run(|| attach(&program, interface))?.map_err(refused)?;
            attached.push(link);
        }
        let filter = Self {
            block,
            _attached: attached,
        };
        filter.expect(Datagrams::Others);
        filter.set(Loss::None);
        Ok(filter)
    }

    /// Counts the datagrams that carry states among those of `datagrams`.
    pub fn expect(&self, datagrams: Datagrams) {
        let (threshold, skip) = match datagrams {
            Datagrams::Ours => (1, HEARTBEAT),
            Datagrams::Others => (THRESHOLD, 0),
        };
        self.store(Control::Threshold, threshold);
        self.store(Control::Skip, skip);
    }

    /// Counts from 0, and loses as `loss` says.
    pub fn set(&self, loss: Loss) {
        // Nothing is lost while the numbers change.
        let losses = [
            Control::Amount,
            Control::Chance,
            Control::Every,
            Control::CutAt,
        ];
        let counted = [Control::Seen, Control::Dropped, Control::Next, Control::Cut];
        for which in losses.into_iter().chain(counted) {
            self.store(which, 0);
        }
        match loss {
            Loss::None => {}
            Loss::These { first, count } => {
                self.store(Control::First, first);
                self.store(Control::Amount, count);
            }
            Loss::Random(chance) => {
                let chance = (chance.clamp(0.0, 1.0) * 2f64.powi(32)) as u64;
                self.store(Control::Chance, chance);
            }
            Loss::Every(nanoseconds) => self.store(Control::Every, nanoseconds),
            Loss::CutAfter(packets) => self.store(Control::CutAt, packets.max(1)),
        }
    }

    /// Packets counted since the filter was set, dropped ones among them.
    pub fn seen(&self) -> u64 {
        self.load(Control::Seen)
    }

    /// Packets dropped since the filter was set.
    pub fn dropped(&self) -> u64 {
        self.load(Control::Dropped)
    }

    /// Packets of both directions that a cut has swallowed.
    pub fn swallowed(&self) -> u64 {
        self.load(Control::Cut)
    }

    fn store(&self, which: Control, value: u64) {
        self.block.store(which as usize, value);
    }

    fn load(&self, which: Control) -> u64 {
        self.block.load(which as usize)
    }
}

/// Attaches to an interface of the calling thread's namespace.
fn attach(program: &Program, interface: &str) -> io::Result<Link> {
    let number = interface_number(interface).ok_or(io::ErrorKind::NotFound)?;
    program.attach_behind(number)
}
