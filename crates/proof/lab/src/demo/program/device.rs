//! The device of a program: it gives other inputs after each output that it has taken, and writes both down. So the
//! inputs of every cycle are known afterwards, whoever executed it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use bumpless_controller::OutputStamp;
use bumpless_controller::plant::log::Line;
use bumpless_controller::plant::{DoorSettings, Plant, PlantError, PlantOptions, Simulated};
use bumpless_host::kit::Inputs;
use bumpless_net_linux::Clock;

use super::rows::Rows;

/// Where it tells the accepted epoch.
pub const EPOCH: u16 = 0;
/// Where it tells the cycle of the last accepted write.
pub const CYCLE: u16 = 2;
/// Where its inputs begin, binary64 each. Between them and the others is a gap, so that who reads the epoch alone reads no
/// inputs.
pub const INPUTS: u16 = 8;
/// Registers of an input.
pub const REGISTERS: u16 = 4;

/// A device as it is started.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceOptions {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Its log.
    pub log: PathBuf,
    /// What it gives.
    pub given: Inputs,
    /// How many inputs it gives.
    pub inputs: usize,
    /// How many outputs it takes.
    pub outputs: usize,
}

/// Runs a device, behind `door` if there is one, until `stop` is set.
///
/// # Errors
/// It cannot listen, or not write its log.
pub fn run_device(
    options: DeviceOptions,
    door: Option<DoorSettings>,
    stop: &AtomicBool,
) -> Result<(), PlantError> {
    let device = Device {
        rows: Rows::new(options.given, options.inputs),
        outputs: options.outputs,
        after: 0,
    };
    let plant = Plant::bind(PlantOptions {
        log: Some(options.log),
        ..PlantOptions::at(options.listen)
    })?;
    let clock = || Clock.now();
    let mut plant = plant.simulating(Box::new(device));
    if let Some(door) = door {
        plant = plant.behind(door);
    }
    plant.run(clock, stop)
}

struct Device {
    rows: Rows,
    outputs: usize,
    /// The cycle of the last accepted write.
    after: u64,
}

impl Simulated for Device {
    fn outputs(&self) -> usize {
        self.outputs
    }

    fn advance_to(&mut self, _: f64) {}

    fn registers(&mut self, accepted: Option<OutputStamp>) -> Vec<u16> {
        let mut registers = Vec::new();
        let mut put = |bytes: &[u8]| {
            let words = bytes.chunks_exact(2);
            registers.extend(words.map(|word| u16::from_be_bytes([word[0], word[1]])));
        };
        put(&accepted.map_or(0, |stamp| stamp.epoch.0).to_be_bytes());
        put(&accepted.map_or(0, |stamp| stamp.cycle).to_be_bytes());
        put(&[0; 4]);
        let row = self.rows.row(self.after);
        row.iter()
            .for_each(|value| put(&value.to_bits().to_be_bytes()));
        registers
    }

    fn take(&mut self, stamp: OutputStamp, _: &[f64]) {
        self.after = stamp.cycle;
    }

    fn line(&self, _: u64) -> Option<Line> {
        None
    }

    fn read_line(&self, at_ns: u64, first: u16, count: u16) -> Option<Line> {
        let after = self.after;
        (first + count > INPUTS).then_some(Line::Inputs { at_ns, after })
    }
}

#[cfg(test)]
mod tests {
    use bumpless_base::{Epoch, NodeId};

    use super::*;

    #[test]
    fn inputs_change_after_each_output_and_only_who_reads_them_is_noted() {
        let mut device = Device {
            rows: Rows::new(Inputs::Drawn { seed: 1 }, 2),
            outputs: 1,
            after: 0,
        };
        let first = device.registers(None);
        assert_eq!(first.len(), 8 + 2 * 4);
        assert_eq!(first, device.registers(None));
        let stamp = OutputStamp {
            epoch: Epoch(0x0001_0002),
            writer: NodeId(0),
            cycle: 7,
        };
        device.take(stamp, &[1.0]);
        let second = device.registers(Some(stamp));
        assert_eq!(second[..6], [1, 2, 0, 0, 0, 7]);
        assert_ne!(second[8..], first[8..]);
        assert_eq!(device.read_line(5, 0, 6), None);
        let line = Some(Line::Inputs { at_ns: 5, after: 7 });
        assert_eq!(device.read_line(5, 8, 8), line);
    }
}
