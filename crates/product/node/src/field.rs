//! From an application's settings to its field devices.

use std::io;

use bumpless_config::{self as config, ApplicationKind, FieldDevices};
use bumpless_controller::{Devices, FieldIo, ModbusField, ModbusSettings, NoField};
use bumpless_net_linux::Clock;

use crate::field_drivers::Opened;
use crate::field_identity::FieldIdentity;

/// The field of an application, with what this node shows to devices and of their values.
pub fn open_field(
    settings: &config::Application,
    own: &FieldIdentity,
    opened: &mut Opened,
) -> io::Result<Box<dyn FieldIo>> {
    let Some(field) = &settings.field else {
        return Ok(Box::new(NoField));
    };
    let dialer = own.dialer(settings)?;
    let opened: Box<dyn FieldIo> = match (&field.devices, &settings.kind) {
        (FieldDevices::Tank { address, security }, _) => {
            let mut modbus = ModbusSettings::quadruple_tank(*address);
            if !field.check_epoch {
                // Such a device may keep anything at the place where others keep the epoch.
                (modbus.map.epoch, modbus.map.cycle) = (None, None);
            }
            match security.as_ref().zip(dialer) {
                None => Box::new(ModbusField::new(modbus, || Clock.now())?),
                Some((security, dialer)) => {
                    let name = dialer.name_of(security, *address)?;
                    Box::new(ModbusField::secure(modbus, (dialer, name), || Clock.now())?)
                }
            }
        }
        (FieldDevices::Program(devices), ApplicationKind::Program(program)) => {
            let values = (&program.inputs[..], &program.outputs[..]);
            let (check_epoch, dialer) = (field.check_epoch, dialer.as_ref());
            let clock = || Clock.now();
            let links = &mut |device| own.driver(settings, device, opened);
            let devices = Devices::new(devices, values, check_epoch, dialer, links, clock)?;
            Box::new(devices)
        }
        (FieldDevices::Program(_), _) => Box::new(NoField),
    };
    Ok(own.values().shown(opened, settings))
}
