//! No register and no value is written by two outputs of a file, whatever its devices are called and whichever
//! applications have them (F-37).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;

use super::field_drivers::UNIT;
use super::{field_security, node_id};
use crate::file::ApplicationEntry;
use crate::model::{Area, Output, OutputTo};
use crate::reader::Reader;
use crate::schema::DeviceKindWord;

/// Registers of the stamp in front of the outputs in a block, and of each of these (F-3).
const STAMP: u32 = 8;
const IN_BLOCK: u32 = 2;
/// Outputs of the quadruple tank.
const TANK_OUTPUTS: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Device {
    /// A Modbus unit at an address.
    Unit(SocketAddr, u64),
    /// A server of OPC UA.
    OpcUa(SocketAddr),
    /// Of this application, by position, the device at this position: behind one address of another driver there may be
    /// many devices.
    Named(usize, usize),
}

/// What only one output may write.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Written {
    Register(Device, Area, u32),
    /// As the device's driver calls it.
    Value(Device, String),
}

/// What the applications of a file write, as far as they have been looked at.
#[derive(Default)]
pub(crate) struct Writers {
    /// With the words for who does.
    taken: BTreeMap<Written, String>,
    applications: usize,
}

impl Writers {
    /// Looks at the next application. `outputs` are those of its program that are known.
    pub(super) fn add(
        &mut self,
        reader: &mut Reader,
        entry: &ApplicationEntry,
        outputs: &[Option<Output>],
    ) {
        let devices: Vec<_> = (0..entry.devices.len())
            .map(|position| device(entry, (self.applications, position)))
            .collect();
        self.applications += 1;
        for (output, given) in outputs.iter().zip(&entry.outputs) {
            let Some(output) = output else { continue };
            let who = who(entry, &format!("output {:?} of ", output.name));
            match &output.to {
                OutputTo::Registers(point) => {
                    let first = u32::from(point.register);
                    let registers = first..first + u32::from(point.value.registers());
                    let place = (devices[output.device], point.area);
                    if let Some(wrong) = self.take_registers(place, registers, &who) {
                        let right = "give each output registers of its own";
                        reader.wrong(&given.place, "register", wrong, right);
                    }
                }
                OutputTo::Driver(tag) => {
                    let device = devices[output.device];
                    let name = match device {
                        Device::OpcUa(_) => node_id::plain(&tag.name),
                        _ => tag.name.clone(),
                    };
                    if let Some(other) = self.take(Written::Value(device, name), &who) {
                        let wrong = format!("{:?} is written by {other} already", tag.name);
                        let right = "give each output a value of its own";
                        reader.wrong(&given.place, "point", wrong, right);
                    }
                }
                // One request has all of a device's.
                OutputTo::Block => {}
            }
        }
        for (position, device) in devices.into_iter().enumerate() {
            let is_in_block = |it: &&Output| it.device == position && it.to == OutputTo::Block;
            let count = outputs.iter().flatten().filter(is_in_block).count();
            let place = &entry.devices[position].place;
            if let Some(wrong) = self.take_block(device, count, &who(entry, "the block of ")) {
                let right = "give the block of each device to one application, in one entry";
                reader.wrong(place, "address", wrong, right);
            }
        }
    }

    /// Looks at the next application, a quadruple tank.
    pub(super) fn add_tank(&mut self, reader: &mut Reader, entry: &ApplicationEntry) {
        self.applications += 1;
        let Some(field) = &entry.field else { return };
        let Some(address) = field_security::tank_address(field) else {
            return;
        };
        let device = Device::Unit(address, UNIT);
        if let Some(wrong) = self.take_block(device, TANK_OUTPUTS, &who(entry, "the block of ")) {
            let right = "give each quadruple tank a server of its own";
            reader.wrong(&field.place, "address", wrong, right);
        }
    }

    /// What is wrong with writing the block of so many outputs.
    fn take_block(&mut self, device: Device, outputs: usize, who: &str) -> Option<String> {
        let end = match outputs {
            0 => 0,
            some => STAMP + IN_BLOCK * some as u32,
        };
        let wrong = self.take_registers((device, Area::HoldingRegister), 0..end, who);
        wrong.map(|wrong| format!("leads to a device whose holding register {wrong}"))
    }

    /// What is wrong with writing these registers; of several, the first one is told.
    fn take_registers(
        &mut self,
        (device, area): (Device, Area),
        registers: Range<u32>,
        who: &str,
    ) -> Option<String> {
        let mut wrong = None;
        for register in registers {
            let other = self.take(Written::Register(device, area, register), who);
            let told = other.map(|other| format!("{register} is written by {other} already"));
            wrong = wrong.or(told);
        }
        wrong
    }

    /// From here on `who` writes it, unless somebody does already, who is returned.
    fn take(&mut self, what: Written, who: &str) -> Option<String> {
        if let Some(other) = self.taken.get(&what) {
            return Some(other.clone());
        }
        self.taken.insert(what, who.to_owned());
        None
    }
}

fn who(entry: &ApplicationEntry, what: &str) -> String {
    let name = entry.fields.name.as_deref().unwrap_or("?");
    format!("{what}application {name:?}")
}

/// The device at `position` of the application at `at`.
fn device(entry: &ApplicationEntry, (at, position): (usize, usize)) -> Device {
    let known = || {
        let given = &entry.devices[position];
        let address = field_security::address(given, entry.field.as_ref())?;
        match given.kind? {
            DeviceKindWord::Modbus => Some(Device::Unit(address, given.unit?.unwrap_or(UNIT))),
            DeviceKindWord::OpcUa => Some(Device::OpcUa(address)),
            DeviceKindWord::Driver => None,
        }
    };
    // What is wrong with a device is told of it. Its own outputs can be compared all the same.
    known().unwrap_or(Device::Named(at, position))
}
