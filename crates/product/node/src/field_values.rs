//! The values that applications have read from their devices and written to them last, for people to look at.
//!
//! An executor leaves them in passing; it never waits for who looks, and who looks finds values of one moment.

use std::sync::{Arc, Mutex, PoisonError, TryLockError, Weak};

use bumpless_base::Instant;
use bumpless_config::{self as config, ApplicationKind};
use bumpless_controller::driver_link::{DriverFailures, DriverNumber, HandedOver};
use bumpless_controller::quadruple_tank::{INPUTS, OUTPUTS};
use bumpless_controller::{FieldError, FieldIo, FieldSample, OutputStamp};
use bumpless_net_linux::Clock;

/// What one application has read and written last.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    /// Its inputs, in their order.
    pub inputs: Box<[f64]>,
    /// When they were read here last; `None`: never.
    pub read_at: Option<Instant>,
    /// Devices that had not answered then, a bit for each of the first 64 by position: their inputs are older.
    pub silent: u64,
    /// Its outputs as the devices have accepted them, in their order.
    pub outputs: Box<[f64]>,
    /// With what they were accepted, and when; `None`: never.
    pub written: Option<(OutputStamp, Instant)>,
}

/// Where an executor leaves its values.
#[derive(Debug)]
pub struct ValueBoard(Mutex<Values>);

impl ValueBoard {
    fn new(inputs: usize, outputs: usize) -> Self {
        Self(Mutex::new(Values {
            inputs: vec![0.0; inputs].into(),
            read_at: None,
            silent: 0,
            outputs: vec![0.0; outputs].into(),
            written: None,
        }))
    }

    fn has_room_for(&self, inputs: usize, outputs: usize) -> bool {
        let values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (values.inputs.len(), values.outputs.len()) == (inputs, outputs)
    }

    /// Changes the values unless somebody looks at them: the next cycle has newer ones.
    fn leave(&self, change: impl FnOnce(&mut Values)) {
        match self.0.try_lock() {
            Ok(mut values) => change(&mut values),
            Err(TryLockError::Poisoned(values)) => change(&mut values.into_inner()),
            Err(TryLockError::WouldBlock) => {}
        }
    }

    /// What is there at this moment.
    pub fn look(&self) -> Values {
        let values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        values.clone()
    }
}

/// The boards by the applications' names, for as long as these run.
#[derive(Clone, Debug, Default)]
pub struct FieldValues(Arc<Mutex<Vec<Named>>>);

type Named = (String, Weak<ValueBoard>);

impl FieldValues {
    /// `field`, which is that of the application with `settings`, leaving what passes. An application that goes on with
    /// other settings keeps its board.
    pub fn shown(
        &self,
        field: Box<dyn FieldIo>,
        settings: &config::Application,
    ) -> Box<dyn FieldIo> {
        let (inputs, outputs) = signals(settings);
        let board = self.board(&settings.name, (inputs.len(), outputs.len()));
        Box::new(Shown { field, board })
    }

    fn board(&self, name: &str, (inputs, outputs): (usize, usize)) -> Arc<ValueBoard> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.iter().find(|(known, _)| known == name);
        let known = known.and_then(|(_, board)| board.upgrade());
        if let Some(board) = known.filter(|board| board.has_room_for(inputs, outputs)) {
            return board;
        }
        let board = Arc::new(ValueBoard::new(inputs, outputs));
        all.retain(|(known, board)| known != name && board.strong_count() > 0);
        all.push((name.to_owned(), Arc::downgrade(&board)));
        board
    }

    /// The board of the application `name`, if it runs and has inputs or outputs.
    pub fn of(&self, name: &str) -> Option<Arc<ValueBoard>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, board) = all.iter().find(|(known, _)| known == name)?;
        board.upgrade()
    }
}

/// Field I/O that leaves on a board what passes.
struct Shown {
    field: Box<dyn FieldIo>,
    board: Arc<ValueBoard>,
}

impl FieldIo for Shown {
    fn read(&mut self, inputs: &mut [f64], until: Instant) -> Result<FieldSample, FieldError> {
        let sample = self.field.read(inputs, until)?;
        let silent = self.field.silent();
        self.board.leave(|values| {
            take(&mut values.inputs, inputs);
            (values.read_at, values.silent) = (Some(Clock.now()), silent);
        });
        Ok(sample)
    }

    fn write(
        &mut self,
        outputs: &[f64],
        stamp: OutputStamp,
        until: Instant,
    ) -> Result<(), FieldError> {
        self.field.write(outputs, stamp, until)?;
        self.board.leave(|values| {
            take(&mut values.outputs, outputs);
            values.written = Some((stamp, Clock.now()));
        });
        Ok(())
    }

    fn silent(&self) -> u64 {
        self.field.silent()
    }

    fn driver_failures(&mut self) -> Option<DriverFailures> {
        self.field.driver_failures()
    }

    fn warm_up(&mut self, until: Instant) -> bool {
        self.field.warm_up(until)
    }

    fn take_over(&mut self, before: &mut dyn FieldIo) {
        self.field.take_over(before);
    }

    fn hand_over(&mut self, driver: DriverNumber) -> Option<HandedOver> {
        self.field.hand_over(driver)
    }

    fn keep_warm(&mut self, until: Instant) -> Result<FieldSample, FieldError> {
        self.field.keep_warm(until)
    }
}

fn take(into: &mut [f64], from: &[f64]) {
    into.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}

/// An input or output: its name, and the device that has it, by position.
pub type Signal<'a> = (&'a str, usize);

/// The inputs and the outputs of the application with `settings`, in their order.
pub fn signals(settings: &config::Application) -> (Vec<Signal<'_>>, Vec<Signal<'_>>) {
    match &settings.kind {
        ApplicationKind::QuadrupleTank(_) => {
            let all = |names: &[&'static str]| names.iter().map(|name| (*name, 0)).collect();
            (all(&INPUTS), all(&OUTPUTS))
        }
        ApplicationKind::Synthetic(_) => (Vec::new(), Vec::new()),
        ApplicationKind::Program(program) => {
            let inputs = program.inputs.iter();
            let inputs = inputs.map(|it| (it.name.as_str(), it.device)).collect();
            let outputs = program.outputs.iter();
            let outputs = outputs.map(|it| (it.name.as_str(), it.device)).collect();
            (inputs, outputs)
        }
    }
}

#[cfg(test)]
mod tests {
    use bumpless_base::{Epoch, NodeId};

    use super::*;

    /// Inputs 1, 2; takes outputs unless they are 9.
    struct Device;

    impl FieldIo for Device {
        fn read(&mut self, inputs: &mut [f64], _: Instant) -> Result<FieldSample, FieldError> {
            inputs.copy_from_slice(&[1.0, 2.0]);
            Ok(FieldSample::default())
        }
        fn write(&mut self, outputs: &[f64], _: OutputStamp, _: Instant) -> Result<(), FieldError> {
            match outputs {
                [9.0] => Err(FieldError {
                    kind: bumpless_controller::FieldErrorKind::Timeout,
                    place: "device".into(),
                }),
                _ => Ok(()),
            }
        }
        fn silent(&self) -> u64 {
            2
        }
        fn keep_warm(&mut self, _: Instant) -> Result<FieldSample, FieldError> {
            Ok(FieldSample::default())
        }
    }

    fn field(all: &FieldValues, shape: (usize, usize)) -> Shown {
        Shown {
            field: Box::new(Device),
            board: all.board("levels", shape),
        }
    }

    const fn stamp(cycle: u64) -> OutputStamp {
        OutputStamp {
            epoch: Epoch(3),
            writer: NodeId(0),
            cycle,
        }
    }

    #[test]
    fn what_devices_gave_and_took_is_shown_and_nothing_else() {
        let all = FieldValues::default();
        let mut device = field(&all, (2, 1));
        let board = all.of("levels").unwrap();
        assert_eq!((board.look().read_at, board.look().written), (None, None));
        assert!(device.keep_warm(Instant::FAR_FUTURE).is_ok());
        assert_eq!(board.look().read_at, None, "a backup reads no inputs");
        device.read(&mut [0.0; 2], Instant::FAR_FUTURE).unwrap();
        device.write(&[4.0], stamp(7), Instant::FAR_FUTURE).unwrap();
        assert!(device.write(&[9.0], stamp(8), Instant::FAR_FUTURE).is_err());
        let values = board.look();
        assert_eq!(values.inputs[..], [1.0, 2.0]);
        assert_eq!(values.silent, 2);
        assert_eq!(
            values.outputs[..],
            [4.0],
            "refused outputs were not accepted"
        );
        assert_eq!(values.written.map(|(stamp, _)| stamp), Some(stamp(7)));
    }

    #[test]
    fn an_executor_never_waits_for_who_looks() {
        let all = FieldValues::default();
        let mut device = field(&all, (2, 1));
        let board = all.of("levels").unwrap();
        let looking = board.0.lock().unwrap();
        device.read(&mut [0.0; 2], Instant::FAR_FUTURE).unwrap();
        assert_eq!(looking.read_at, None);
        drop(looking);
        device.read(&mut [0.0; 2], Instant::FAR_FUTURE).unwrap();
        assert!(board.look().read_at.is_some());
    }

    #[test]
    fn a_board_lasts_through_other_settings_and_ends_with_its_application() {
        let all = FieldValues::default();
        let mut before = field(&all, (2, 1));
        before.read(&mut [0.0; 2], Instant::FAR_FUTURE).unwrap();
        let after = field(&all, (2, 1));
        drop(before);
        assert_eq!(all.of("levels").unwrap().look().inputs[..], [1.0, 2.0]);
        drop(after);
        assert!(all.of("levels").is_none());
        let _other_shape = field(&all, (4, 0));
        assert_eq!(all.of("levels").unwrap().look().inputs.len(), 4);
        assert_eq!(all.0.lock().unwrap().len(), 1);
    }
}
