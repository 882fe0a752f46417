//! One Modbus device of a program: its connection, what it is asked, and what it said last.

use std::sync::Arc;

use bumpless_base::{Duration, Epoch, Instant};
use bumpless_config::{FieldDevice, Input, InputFrom, ModbusDevice, Output, OutputTo};
use bumpless_pki::DeviceName;
use tokio_modbus::{ExceptionCode, Request, Response};

use super::SecureDialer;
use super::connection::{Connection, SecureWay, Way};
use super::registers::{OUTPUT_BLOCK, put_output_block};
use super::requests::{Run, Told, reads, writes};
use crate::{FieldErrorKind, OutputStamp, TimeSource};

/// How long one attempt to connect may take, an answer included; and the longest wait between two.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const RECONNECT_MAX: Duration = Duration::from_millis(500);

/// A read and what came of it.
struct Read {
    run: Run,
    /// The answer that has not been taken over yet.
    answer: Option<Response>,
    /// Its values are those of the last time when it was due.
    is_fresh: bool,
}

/// One device of a program.
pub(crate) struct Device<T> {
    place: Arc<str>,
    required: bool,
    connection: Connection<T>,
    reads: Vec<Read>,
    writes: Vec<Run>,
    /// The outputs in the block that carries the epoch, by position.
    block: Vec<usize>,
    /// Whether the device compares the epoch.
    compares: bool,
    /// Inputs that tell whether it answers, by position.
    answers: Vec<usize>,
    told: Told,
    /// Why the last call failed.
    failure: Option<FieldErrorKind>,
    /// Why the last reading failed, which no later write makes good.
    unread: Option<FieldErrorKind>,
}

impl<T: TimeSource> Device<T> {
    pub(crate) fn new(
        (at, settings, modbus): (usize, &FieldDevice, &ModbusDevice),
        (inputs, outputs): (&[Input], &[Output]),
        check_epoch: bool,
        secure: Option<(SecureDialer, DeviceName)>,
        clock: T,
    ) -> Self {
        let place: Arc<str> = settings.place().into();
        let told = match check_epoch {
            true => (modbus.epoch_register, modbus.cycle_register),
            // Such a device may keep anything at the place where others keep the epoch.
            false => (None, None),
        };
        let reads: Vec<_> = reads(inputs, at, told)
            .into_iter()
            .map(|run| Read {
                run,
                answer: None,
                is_fresh: false,
            })
            .collect();
        let own = |(number, output): (usize, &Output)| {
            (output.device == at && output.to == OutputTo::Block).then_some(number)
        };
        let asks = |(number, input): (usize, &Input)| {
            (input.device == at && input.from == InputFrom::Answers).then_some(number)
        };
        // A device that is only written is tried by a read all the same: an exception is an answer.
        let probe = reads.first().map_or_else(
            || Request::ReadHoldingRegisters(0, 1),
            |read| read.run.read(),
        );
        let way = Way {
            address: settings.address,
            unit: modbus.unit,
            connect_timeout: CONNECT_TIMEOUT,
            reconnect_max: RECONNECT_MAX,
            probe: Some(probe.clone()),
            secure: secure.map(|(dialer, name)| SecureWay {
                dialer,
                name: Arc::new(name),
                device: Arc::clone(&place),
                greeting: probe,
            }),
        };
        Self {
            place,
            required: settings.required,
            connection: Connection::new(way, clock),
            reads,
            writes: writes(outputs, at),
            block: outputs.iter().enumerate().filter_map(own).collect(),
            compares: check_epoch && modbus.epoch_register.is_some(),
            answers: inputs.iter().enumerate().filter_map(asks).collect(),
            told: Told::default(),
            failure: None,
            unread: None,
        }
    }

    pub(crate) const fn place(&self) -> &Arc<str> {
        &self.place
    }

    pub(crate) const fn is_required(&self) -> bool {
        self.required
    }

    /// Why the last call failed here, if it did.
    pub(crate) const fn failure(&self) -> Option<FieldErrorKind> {
        self.failure
    }

    /// Whether it does not answer, or refuses what is read of it.
    pub(crate) const fn is_silent(&self) -> bool {
        self.failure.is_some() || self.unread.is_some()
    }

    /// What it told last of the writes that it has accepted.
    pub(crate) const fn told(&self) -> Told {
        self.told
    }

    /// Asks for what is due the `number`th time, and for what is owed.
    pub(crate) async fn read(&mut self, number: u64, until: Instant) {
        self.failure = self.read_due(number, until).await.err();
        if self.failure.is_some() {
            // What it says when it is back is to be of one time.
            self.reads.iter_mut().for_each(|read| read.is_fresh = false);
        }
        // A device of which nothing is read has only been connected to.
        self.unread = self.failure.filter(|_| !self.reads.is_empty());
    }

    async fn read_due(&mut self, number: u64, until: Instant) -> Result<(), FieldErrorKind> {
        if self.reads.is_empty() {
            return self.connection.connect(until).await;
        }
        for read in &mut self.reads {
            let due = number.is_multiple_of(read.run.poll.into());
            if read.is_fresh && !due {
                continue;
            }
            let answer = self.connection.exchange(read.run.read(), until).await?;
            (read.answer, read.is_fresh) = (Some(answer), true);
        }
        Ok(())
    }

    /// Takes over what was answered: into `inputs`, by position.
    pub(crate) fn give(&mut self, inputs: &mut [f64]) {
        let mut fits = true;
        for read in &mut self.reads {
            // Of a call that failed halfway, nothing: inputs of one device are of one moment.
            let answer = read.answer.take().filter(|_| self.failure.is_none());
            if let Some(answer) = answer {
                fits &= read.run.take(&answer, inputs, &mut self.told).is_some();
            }
        }
        if !fits {
            self.failure = Some(self.connection.distrust());
            self.unread = self.failure;
            self.reads.iter_mut().for_each(|read| read.is_fresh = false);
        }
        for &input in &self.answers {
            inputs[input] = f64::from(u8::from(self.failure.is_none()));
        }
    }

    /// Writes its outputs. No request begins after `until`.
    pub(crate) async fn write(&mut self, outputs: &[f64], stamp: OutputStamp, until: Instant) {
        if self.block.is_empty() && self.writes.is_empty() {
            // Whether a device answers that is only read, reading has shown.
            return;
        }
        self.failure = match self.block.is_empty() {
            false => self.write_block(outputs, stamp, until).await.err(),
            true => self.write_runs(outputs, until).await,
        };
    }

    /// Writes what is in no block, and says what failed first. What is refused keeps nothing else from being written.
    async fn write_runs(&mut self, outputs: &[f64], until: Instant) -> Option<FieldErrorKind> {
        let mut failure = None;
        for at in 0..self.writes.len() {
            let request = self.writes[at].write(outputs);
            let failed = match self.connection.exchange(request, until).await {
                Ok(answer) if self.writes[at].is_written(&answer) => continue,
                Ok(_) => self.connection.distrust(),
                Err(kind) => kind,
            };
            failure = failure.or(Some(failed));
            if !is_of_one_request(failed) {
                break;
            }
        }
        failure
    }

    async fn write_block(
        &mut self,
        outputs: &[f64],
        stamp: OutputStamp,
        until: Instant,
    ) -> Result<(), FieldErrorKind> {
        let own = self.block.iter().filter_map(|&at| outputs.get(at).copied());
        let own: Vec<f64> = own.collect();
        let mut block = Vec::new();
        put_output_block(&mut block, stamp, &own);
        let count = block.len() as u16;
        let request = Request::WriteMultipleRegisters(OUTPUT_BLOCK, block.into());
        match self.connection.exchange(request, until).await {
            Ok(Response::WriteMultipleRegisters(OUTPUT_BLOCK, n)) if n == count => Ok(()),
            Ok(_) => Err(self.connection.distrust()),
            Err(kind) => Err(self.explain(kind, stamp, until).await),
        }
    }

    /// Tells a rejection for the epoch from other illegal values (F-8).
    async fn explain(
        &mut self,
        kind: FieldErrorKind,
        stamp: OutputStamp,
        until: Instant,
    ) -> FieldErrorKind {
        let illegal_value = FieldErrorKind::Exception(ExceptionCode::IllegalDataValue.into());
        if kind != illegal_value || !self.compares {
            return kind;
        }
        self.ask_what_is_accepted(until).await;
        match self.told.epoch.map(Epoch) {
            Some(seen) if seen > stamp.epoch => FieldErrorKind::RejectedEpoch { seen },
            _ => kind,
        }
    }

    /// Reads what tells of the accepted epoch; returns whether that was answered.
    async fn ask_what_is_accepted(&mut self, until: Instant) -> bool {
        let tells = |read: &&Read| read.run.tells_of_writes();
        let Some(read) = self.reads.iter().find(tells) else {
            return false;
        };
        let answer = self.connection.exchange(read.run.read(), until).await;
        answer.is_ok_and(|answer| read.run.take_told(&answer, &mut self.told).is_some())
    }

    /// Keeps the connection up, and learns of the accepted epoch where it is told.
    pub(crate) async fn keep_warm(&mut self, until: Instant) {
        (self.failure, self.unread) = (None, None);
        let tells = |read: &&Read| read.run.tells_of_writes();
        let read = self.reads.iter().find(tells).or(self.reads.first());
        let Some(read) = read else {
            self.failure = self.connection.connect(until).await.err();
            return;
        };
        match self.connection.exchange(read.run.read(), until).await {
            Ok(answer) => {
                if read.run.take_told(&answer, &mut self.told).is_none() {
                    self.failure = Some(self.connection.distrust());
                }
            }
            Err(kind) => self.failure = Some(kind),
        }
        // What was read as primary long ago is not what a new primary may begin with.
        self.reads.iter_mut().for_each(|read| read.is_fresh = false);
    }
}

/// Whether the device has refused this request, and can take the next one. A gateway that does not reach the device
/// (exceptions 10 and 11) would say so of each.
const fn is_of_one_request(failed: FieldErrorKind) -> bool {
    matches!(failed, FieldErrorKind::Exception(code) if code != 10 && code != 11)
}
