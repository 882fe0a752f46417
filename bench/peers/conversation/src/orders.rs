//! The orders that the benchmark writes to a peer's standard input.

use std::str::FromStr;
use std::time::Duration;

use crate::Arguments;

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub enum Order {
    /// Send one state of so many bytes on channel 0.
    Transfer(usize),
    /// Send states on a grid of time.
    Cyclic(Plan),
    /// Say what was allocated.
    Cost,
    /// End.
    Exit,
}

/// A cyclic run.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    /// How long new states are sent.
    pub duration: Duration,
    /// Who sends what.
    pub channels: Vec<Channel>,
}

/// One channel of a cyclic run.
#[derive(Debug, PartialEq, Eq)]
pub struct Channel {
    /// Its number.
    pub number: usize,
    /// Bytes of a state.
    pub size: usize,
    /// Time between two states.
    pub period: Duration,
    /// Time from a state's release to its acknowledgement.
    pub deadline: Duration,
}

impl Plan {
    /// Whether the peer was started for such a run.
    pub fn fits(&self, arguments: &Arguments) -> Result<(), String> {
        for channel in &self.channels {
            if channel.number >= arguments.channels {
                return Err(format!(
                    "channel {} is beyond --channels {}",
                    channel.number, arguments.channels
                ));
            }
            if channel.size > arguments.max_size {
                return Err(format!(
                    "{} bytes are more than --max-size {}",
                    channel.size, arguments.max_size
                ));
            }
        }
        Ok(())
    }
}

impl FromStr for Order {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let order = match words.next() {
            Some("transfer") => Self::Transfer(number(words.next(), "SIZE")?),
            Some("cyclic") => {
                let duration = Duration::try_from_secs_f64(number(words.next(), "SECONDS")?)
                    .map_err(|error| format!("SECONDS: {error}"))?;
                let channels = words.by_ref().map(str::parse).collect::<Result<_, _>>()?;
                Self::Cyclic(Plan { duration, channels })
            }
            Some("cost") => Self::Cost,
            Some("exit") => Self::Exit,
            _ => {
                return Err(format!(
                    "unknown order '{line}': transfer, cyclic, cost or exit"
                ));
            }
        };
        match words.next() {
            Some(word) => Err(format!("superfluous '{word}' in '{line}'")),
            None => Ok(order),
        }
    }
}

impl FromStr for Channel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let channel = Self {
            number: number(parts.next(), "CH")?,
            size: number(parts.next(), "SIZE")?,
            period: Duration::from_micros(number(parts.next(), "PERIOD_US")?),
            deadline: Duration::from_micros(number(parts.next(), "DEADLINE_US")?),
        };
        if channel.period.is_zero() || parts.next().is_some() {
            return Err(format!("'{text}' is not CH:SIZE:PERIOD_US:DEADLINE_US"));
        }
        Ok(channel)
    }
}

fn number<N: FromStr<Err: std::fmt::Display>>(word: Option<&str>, name: &str) -> Result<N, String> {
    let word = word.ok_or_else(|| format!("{name} is missing"))?;
    word.parse()
        .map_err(|error| format!("{name} '{word}': {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_understood() {
        assert_eq!("transfer 128".parse(), Ok(Order::Transfer(128)));
        assert_eq!("cost".parse(), Ok(Order::Cost));
        let Ok(Order::Cyclic(plan)) = "cyclic 1.5 0:800:10000:9000 3:40:500:500".parse() else {
            panic!("a plan");
        };
        assert_eq!(plan.duration, Duration::from_millis(1500));
        assert_eq!(plan.channels[0].deadline, Duration::from_millis(9));
        assert_eq!(plan.channels[1].number, 3);
    }

    #[test]
    fn nonsense_is_refused() {
        for line in [
            "",
            "transfer",
            "transfer -1",
            "transfer 1 2",
            "cyclic x",
            "cyclic 1 0:1:0:1",
        ] {
            assert!(line.parse::<Order>().is_err(), "{line}");
        }
    }
}
