//! A device that a field driver speaks to: a process of its own (spec/field-driver.md).
//!
//! One order at a time goes to the driver. No call waits for an answer beyond its deadline; where one is owed, later calls
//! fail at once until it has come, and a driver that owes it for too long is given up.

mod conversation;
mod succession;
mod value;

use std::sync::Arc;

use bumpless_base::{Duration, Instant};
use bumpless_config::{FieldDevice, FieldDriver, Input, InputFrom, Output, OutputTo, Tag};
use bumpless_field_driver::message::{self, Said};
use bumpless_field_driver::{Outcome, Quality};

use crate::driver_link::{DriverFailures, DriverFault, DriverLink};
use crate::{FieldErrorKind, OutputStamp, TimeSource};
use conversation::Conversation;
use value::Reading;
pub use value::kind_of;

/// What an input of the device is.
enum Companion {
    Quality(usize),
    Age(usize),
    Answers,
}

/// The age of what was never read, milliseconds.
const NEVER_MS: f64 = 1e12;

/// One device of a program that a driver speaks to.
pub(crate) struct Device<T> {
    place: Arc<str>,
    required: bool,
    max_age: Option<Duration>,
    clock: T,
    conversation: Conversation,
    /// What is read, in the driver's order.
    readings: Vec<Reading>,
    /// Which of them the present order asks for.
    due: Vec<bool>,
    /// What is told of them, with the input's position.
    companions: Vec<(usize, Companion)>,
    /// What is written, in the driver's order: the output's position, and what it is.
    outputs: Vec<(usize, Tag)>,
    /// Why the last call failed.
    failure: Option<FieldErrorKind>,
    /// Why the last reading failed, which no later write makes good.
    unread: Option<FieldErrorKind>,
}

impl<T: TimeSource> Device<T> {
    pub(crate) fn new(
        (at, settings, driver): (usize, &FieldDevice, &FieldDriver),
        (inputs, outputs): (&[Input], &[Output]),
        link: Box<dyn DriverLink>,
        clock: T,
    ) -> Self {
        let own = || {
            let numbered = inputs.iter().enumerate();
            numbered.filter(|(_, input)| input.device == at)
        };
        let readings: Vec<_> = own()
            .filter_map(|(input, it)| Reading::of(input, it))
            .collect();
        let reading_of = |input: usize| readings.iter().position(|it| it.input == input);
        let companion = |(input, it): (usize, &Input)| {
            let companion = match it.from {
                InputFrom::Quality(of) => Companion::Quality(reading_of(of)?),
                InputFrom::Age(of) => Companion::Age(reading_of(of)?),
                InputFrom::Answers => Companion::Answers,
                InputFrom::Registers(..) | InputFrom::Driver(..) => return None,
            };
            Some((input, companion))
        };
        let companions: Vec<_> = own().filter_map(companion).collect();
        let written = |(output, it): (usize, &Output)| match &it.to {
            OutputTo::Driver(tag) if it.device == at => Some((output, tag.clone())),
            _ => None,
        };
        let mut device = Self {
            place: settings.place().into(),
            required: settings.required,
            max_age: driver.max_age,
            clock,
            conversation: Conversation::new(link),
            due: vec![false; readings.len()],
            readings,
            companions,
            outputs: outputs.iter().enumerate().filter_map(written).collect(),
            failure: None,
            unread: None,
        };
        for (_, companion) in &device.companions {
            if let Companion::Quality(of) = companion {
                device.readings[*of].is_doubted_aloud = true;
            }
        }
        device
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

    /// Whether it does not answer, or what it reads is bad.
    pub(crate) const fn is_silent(&self) -> bool {
        self.failure.is_some() || self.unread.is_some()
    }

    /// The failures of the driver's process that have not been told yet.
    pub(crate) fn driver_failures(&mut self) -> Option<DriverFailures> {
        self.conversation.failures()
    }

    /// Asks for what is due the `number`th time, and for what is owed.
    pub(crate) async fn read(&mut self, number: u64, until: Instant) {
        self.failure = match self.read_due(number, until).await {
            Ok(()) => self.worst(),
            Err(kind) => {
                // What it says when it is back is to be of one time.
                self.readings.iter_mut().for_each(Reading::owe);
                Some(kind)
            }
        };
        self.unread = self.failure;
    }

    async fn read_due(&mut self, number: u64, until: Instant) -> Result<(), FieldErrorKind> {
        if self.conversation.attend(self.clock.now())? {
            self.readings.iter_mut().for_each(Reading::owe);
        }
        let due = self.readings.iter().map(|it| it.is_due(number));
        self.due
            .iter_mut()
            .zip(due)
            .for_each(|(slot, due)| *slot = due);
        if !self.due.contains(&true) {
            return Ok(());
        }
        let due = &self.due;
        let message = self.conversation.ask(&self.clock, until, |buffer, number| {
            message::put_read(buffer, number, until.as_nanos(), due.iter().copied());
        });
        let message = message.await?;
        let now = self.clock.now();
        let wanted = self.due.iter().filter(|due| **due).count();
        match Said::parse(message) {
            Ok((_, Said::Values(Outcome::Done, values))) if values.len() == wanted => {
                let asked = self.readings.iter_mut().zip(&self.due);
                let asked = asked.filter_map(|(reading, due)| due.then_some(reading));
                asked
                    .zip(values.iter())
                    .for_each(|(reading, value)| reading.take(value, now));
                Ok(())
            }
            Ok((_, Said::Values(outcome, _))) if outcome != Outcome::Done => Err(kind(outcome)),
            _ => Err(self.conversation.give_up(DriverFault::Unasked)),
        }
    }

    /// What is wrong with a value whose quality nobody asks for.
    fn worst(&mut self) -> Option<FieldErrorKind> {
        let now = self.clock.now();
        for reading in &mut self.readings {
            reading.judge(now, self.max_age);
        }
        let mut silent = self.readings.iter().filter(|it| !it.is_doubted_aloud);
        let bad = silent.find(|it| it.quality == Quality::Bad)?;
        Some(FieldErrorKind::BadValue {
            input: bad.input as u32,
            status: bad.status,
        })
    }

    /// Takes over what was read: into `inputs`, by position.
    pub(crate) fn give(&mut self, inputs: &mut [f64]) {
        let answers = self.failure.is_none();
        let now = self.clock.now();
        if answers {
            self.readings.iter_mut().for_each(|it| it.give(inputs));
        }
        for (input, companion) in &self.companions {
            inputs[*input] = match *companion {
                Companion::Answers => f64::from(u8::from(answers)),
                // Of what was not to be had, nothing is known.
                Companion::Quality(_) if !answers => f64::from(Quality::Bad as u8),
                Companion::Quality(of) => f64::from(self.readings[of].quality as u8),
                Companion::Age(of) => self.readings[of].age_ms(now).unwrap_or(NEVER_MS),
            };
        }
    }

    /// Writes its outputs. The driver sends nothing of them after `until`.
    pub(crate) async fn write(&mut self, outputs: &[f64], stamp: OutputStamp, until: Instant) {
        // Whether a device answers that is only read, reading has shown.
        if !self.outputs.is_empty() {
            self.failure = self.write_all(outputs, stamp, until).await.err();
        }
    }

    async fn write_all(
        &mut self,
        outputs: &[f64],
        stamp: OutputStamp,
        until: Instant,
    ) -> Result<(), FieldErrorKind> {
        self.conversation.attend(self.clock.now())?;
        let values = self.outputs.iter().map(|(at, tag)| {
            let output = outputs.get(*at).copied().unwrap_or_default();
            value::to_device(tag, output)
        });
        let stamp = (until.as_nanos(), stamp.epoch.0.into(), stamp.cycle);
        let message = self.conversation.ask(&self.clock, until, |buffer, number| {
            message::put_write(buffer, number, stamp, values);
        });
        match Said::parse(message.await?) {
            Ok((_, Said::Written(Outcome::Done))) => Ok(()),
            Ok((_, Said::Written(outcome))) => Err(kind(outcome)),
            _ => Err(self.conversation.give_up(DriverFault::Unasked)),
        }
    }

    /// Keeps the connection up. Nothing is written, and nothing of the process is read.
    pub(crate) async fn keep_warm(&mut self, until: Instant) {
        self.failure = self.probe(until).await.err();
        self.unread = None;
        // What was read as primary long ago is not what a new primary may begin with.
        self.readings.iter_mut().for_each(Reading::owe);
    }

    async fn probe(&mut self, until: Instant) -> Result<(), FieldErrorKind> {
        self.conversation.attend(self.clock.now())?;
        let message = self.conversation.ask(&self.clock, until, |buffer, number| {
            message::put_probe(buffer, number, until.as_nanos());
        });
        match Said::parse(message.await?) {
            Ok((_, Said::State(Outcome::Done))) => Ok(()),
            Ok((_, Said::State(outcome))) => Err(kind(outcome)),
            _ => Err(self.conversation.give_up(DriverFault::Unasked)),
        }
    }
}

/// What an order that was not carried out is to the program.
const fn kind(outcome: Outcome) -> FieldErrorKind {
    match outcome {
        Outcome::NotConnected => FieldErrorKind::NotConnected(std::io::ErrorKind::NotConnected),
        Outcome::Late => FieldErrorKind::Late,
        Outcome::Refused(status) => FieldErrorKind::Status(status),
        Outcome::NoAnswer | Outcome::Done => FieldErrorKind::Timeout,
    }
}

#[cfg(test)]
mod tests;
