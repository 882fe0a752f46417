//! From an application's settings to what runs it.

use std::io;

use bumpless_base::NodeId;
use bumpless_config::{self as config, ApplicationKind, Commit, FieldDevices};
use bumpless_controller::pid::PidParameters;
use bumpless_controller::tanks::SENSOR_GAIN;
use bumpless_controller::{
    Application, CommitMode, ExecutorSettings, FieldIo, ModbusDevices, ModbusField, ModbusSettings,
    NoField, OnFailure, OnProgramFault, QuadrupleTank, QuadrupleTankParameters, SetPointStep,
    Synthetic, SyntheticParameters,
};

use bumpless_net_linux::Clock;

/// How the application with these settings is executed on node `writer`.
pub fn executor_settings(settings: &config::Application, writer: NodeId) -> ExecutorSettings {
    let on_failure = settings.field.as_ref().map(|field| field.on_failure);
    ExecutorSettings {
        writer,
        period: settings.period,
        deadline: settings.deadline,
        expiry: settings.expiry,
        field_timeout: settings
            .field
            .as_ref()
            .map_or(settings.period, |field| field.timeout),
        commit: match settings.commit {
            Commit::BeforeOutput => CommitMode::BeforeOutput,
            Commit::Async => CommitMode::Async,
        },
        on_failure: match on_failure {
            Some(config::OnFailure::Fail) => OnFailure::Fail,
            Some(config::OnFailure::Hold) | None => OnFailure::Hold,
        },
        on_program_fault: match &settings.kind {
            ApplicationKind::Program(program) => match &program.on_fault {
                config::OnProgramFault::Hold => OnProgramFault::Hold,
                config::OnProgramFault::Safe(values) => OnProgramFault::Safe(values[..].into()),
            },
            _ => OnProgramFault::Hold,
        },
    }
}

/// The application that `settings` describe.
///
/// # Errors
/// A program of the user is refused, with what to do about it.
pub fn build(settings: &config::Application) -> io::Result<Box<dyn Application>> {
    Ok(match &settings.kind {
        ApplicationKind::QuadrupleTank(tank) => Box::new(QuadrupleTank::new(tank_parameters(tank))),
        ApplicationKind::Synthetic(synthetic) => Box::new(Synthetic::new(SyntheticParameters {
            size: synthetic.size as usize,
            changed_share: synthetic.changed_share,
        })),
        ApplicationKind::Program(program) => {
            let kind = program.host.name();
            return Err(io::Error::other(format!(
                "this build cannot run programs of kind {kind}"
            )));
        }
    })
}

fn tank_parameters(tank: &config::QuadrupleTank) -> QuadrupleTankParameters {
    let mut parameters = QuadrupleTankParameters {
        time_scale: tank.time_scale,
        ..Default::default()
    };
    for (pid, configured) in parameters.loops.iter_mut().zip(&tank.loops) {
        *pid = PidParameters {
            // Configured per centimetre of level; the controller measures in sensor volts.
            gain: configured.gain / SENSOR_GAIN,
            integral_time: configured.integral_s,
            derivative_time: configured.derivative_s,
            ..*pid
        };
    }
    parameters.steps = tank
        .set_points
        .iter()
        .map(|point| SetPointStep {
            at: point.at.as_secs_f64(),
            levels: [point.tank1_cm, point.tank2_cm],
        })
        .collect();
    if let Some(first) = parameters.steps.first() {
        parameters.initial = first.levels;
    }
    parameters
}

pub(super) fn open_field(settings: &config::Application) -> io::Result<Box<dyn FieldIo>> {
    Ok(match &settings.field {
        Some(field) => match (&field.devices, &settings.kind) {
            (FieldDevices::Tank(address), _) => {
                let mut modbus = ModbusSettings::quadruple_tank(*address);
                if !field.check_epoch {
                    // Such a device may keep anything at the place where others keep the epoch.
                    (modbus.map.epoch, modbus.map.cycle) = (None, None);
                }
                Box::new(ModbusField::new(modbus, || Clock.now())?)
            }
            (FieldDevices::Program(devices), ApplicationKind::Program(program)) => {
                let values = (&program.inputs[..], &program.outputs[..]);
                let clock = || Clock.now();
                Box::new(ModbusDevices::new(
                    devices,
                    values,
                    field.check_epoch,
                    clock,
                )?)
            }
            (FieldDevices::Program(_), _) => Box::new(NoField),
        },
        None => Box::new(NoField),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bumpless_config::Config;
    use bumpless_controller::executor::published_size_max;

    #[test]
    fn every_channel_carries_the_largest_state_that_its_application_publishes() {
        for example in ["quadruple-tank", "table20", "two-computers"] {
            let path = format!(
                "{}/../../../examples/{example}.toml",
                env!("CARGO_MANIFEST_DIR")
            );
            let config = Config::load(path.as_ref()).unwrap();
            for settings in &config.applications {
                let needed = published_size_max(build(settings).unwrap().as_ref());
                assert!(
                    needed <= settings.state_max as usize,
                    "{example}: {} needs {needed}",
                    settings.name
                );
            }
        }
    }
}
