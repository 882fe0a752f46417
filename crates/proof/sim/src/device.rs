//! Field devices as `spec/field.md` has them, one for each application: they refuse what is older
//! than what they have accepted.

use bumpless_base::{Epoch, Random};
use bumpless_controller::{FieldSample, OutputStamp};

/// What a node asks of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The inputs, or only a sign of life.
    Read,
    /// Outputs with this stamp.
    Write(OutputStamp),
}

/// What the device answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Inputs, with what it tells of the write that it has accepted.
    Inputs(FieldSample),
    /// The outputs are in force.
    Accepted,
    /// The epoch is older than this one (F-5).
    OlderEpoch(Epoch),
    /// The cycle is older than the last one (F-6).
    OlderCycle,
}

/// A request on its way to a device and back.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The node that asks.
    pub node: usize,
    /// In which life of its process.
    pub incarnation: u32,
    /// The application's position in it.
    pub app: usize,
    /// Whose device.
    pub application: usize,
    /// It goes to another one, which a wrong configuration names.
    pub elsewhere: bool,
    /// Its number among all of them.
    pub serial: u64,
    /// What.
    pub ask: Ask,
    /// The answer, once the device has given it.
    pub reply: Option<Reply>,
}

/// A field device.
#[derive(Clone, Debug)]
pub struct Device {
    epoch: Epoch,
    cycle: u64,
    checks: bool,
    random: Random,
    /// One way to it, at least.
    way: u64,
}

/// One way to the device, and its cycle.
const WAY: u64 = 100_000;

impl Device {
    /// A device that has accepted nothing. One that does not check accepts everything.
    pub fn new(checks: bool, random: Random) -> Self {
        Self {
            epoch: Epoch(0),
            cycle: 0,
            checks,
            random,
            way: WAY,
        }
    }

    /// Makes the way to it longer, nanoseconds.
    pub fn put_apart(&mut self, takes: u64) {
        self.way += takes;
    }

    /// How long a message takes.
    pub fn way(&mut self) -> u64 {
        self.way + self.random.below(WAY)
    }

    /// Does what is asked (F-5 to F-7).
    pub fn serve(&mut self, ask: Ask) -> Reply {
        let Ask::Write(stamp) = ask else {
            let known = self.checks && self.epoch != Epoch(0);
            return Reply::Inputs(FieldSample {
                epoch_seen: known.then_some(self.epoch),
                cycle_seen: known.then_some(self.cycle),
            });
        };
        if self.checks && stamp.epoch < self.epoch {
            return Reply::OlderEpoch(self.epoch);
        }
        if self.checks && stamp.epoch == self.epoch && stamp.cycle < self.cycle {
            return Reply::OlderCycle;
        }
        (self.epoch, self.cycle) = (stamp.epoch, stamp.cycle);
        Reply::Accepted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bumpless_base::NodeId;

    #[test]
    fn older_epochs_and_older_cycles_of_the_same_epoch_are_refused() {
        let mut device = Device::new(true, Random::new(1));
        let mut write = |epoch, cycle| {
            device.serve(Ask::Write(OutputStamp {
                epoch: Epoch(epoch),
                writer: NodeId(0),
                cycle,
            }))
        };
        assert_eq!(write(2, 10), Reply::Accepted);
        assert_eq!(write(2, 10), Reply::Accepted);
        assert_eq!(write(2, 9), Reply::OlderCycle);
        assert_eq!(write(3, 1), Reply::Accepted);
        assert_eq!(write(2, 20), Reply::OlderEpoch(Epoch(3)));
        let told = FieldSample {
            epoch_seen: Some(Epoch(3)),
            cycle_seen: Some(1),
        };
        assert_eq!(device.serve(Ask::Read), Reply::Inputs(told));
    }
}
