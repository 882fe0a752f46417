//! What the bench tells the sending program to do.

use std::fmt;
use std::str::FromStr;

use bumpless_base::Duration;

/// One line on the sending program's standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Send one state of so many bytes on channel 0 and wait for its acknowledgement.
    Transfer(usize),
    /// Send states on several channels at once, each on a grid of its own.
    Cyclic {
        /// For how long.
        span: Duration,
        /// The channels, from 0 on.
        channels: Vec<CyclicChannel>,
    },
    /// Tell what memory was taken.
    Cost,
    /// End.
    Exit,
}

/// One channel of a cyclic run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CyclicChannel {
    /// Its number.
    pub channel: u32,
    /// Bytes of each state.
    pub size: usize,
    /// Between two releases.
    pub period: Duration,
    /// From a release to its acknowledgement.
    pub deadline: Duration,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transfer(size) => write!(f, "transfer {size}"),
            Self::Cyclic { span, channels } => {
                write!(f, "cyclic {}", span.as_secs_f64())?;
                channels.iter().try_for_each(|channel| {
                    write!(
                        f,
                        " {}:{}:{}:{}",
                        channel.channel,
                        channel.size,
                        channel.period.as_micros(),
                        channel.deadline.as_micros()
                    )
                })
            }
            Self::Cost => f.write_str("cost"),
            Self::Exit => f.write_str("exit"),
        }
    }
}

impl FromStr for Order {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let order = match words.next() {
            Some("transfer") => Self::Transfer(number(words.next(), "transfer SIZE")?),
            Some("cyclic") => {
                let seconds: f64 = number(words.next(), "cyclic SECONDS CHANNEL...")?;
                if !(seconds > 0.0 && seconds <= 1e6) {
                    return Err(format!("cyclic {seconds}: give seconds from 0 to 1000000"));
                }
                let channels = words.by_ref().map(channel).collect::<Result<_, _>>()?;
                Self::Cyclic {
                    span: Duration::from_nanos((seconds * 1e9) as u64),
                    channels,
                }
            }
            Some("cost") => Self::Cost,
            Some("exit") => Self::Exit,
            _ => {
                return Err(format!(
                    "'{line}' is no order; give transfer, cyclic, cost or exit"
                ));
            }
        };
        match words.next() {
            Some(word) => Err(format!("'{word}' in '{line}' is one word too many")),
            None => Ok(order),
        }
    }
}

fn number<T: FromStr>(word: Option<&str>, usage: &str) -> Result<T, String> {
    word.and_then(|word| word.parse().ok())
        .ok_or_else(|| format!("'{}' is no number; give {usage}", word.unwrap_or_default()))
}

fn channel(word: &str) -> Result<CyclicChannel, String> {
    const USAGE: &str = "CHANNEL:SIZE:PERIOD_US:DEADLINE_US";
    let mut parts = word.split(':');
    let channel = CyclicChannel {
        channel: number(parts.next(), USAGE)?,
        size: number(parts.next(), USAGE)?,
        period: Duration::from_micros(number(parts.next(), USAGE)?),
        deadline: Duration::from_micros(number(parts.next(), USAGE)?),
    };
    if parts.next().is_some() || channel.period == Duration::ZERO {
        return Err(format!("'{word}': give {USAGE}, with a period above zero"));
    }
    Ok(channel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_was_written_reads_as_itself() {
        let channel = CyclicChannel {
            channel: 3,
            size: 800,
            period: Duration::from_millis(10),
            deadline: Duration::from_micros(9_500),
        };
        let cyclic = Order::Cyclic {
            span: Duration::from_millis(1500),
            channels: vec![
                channel,
                CyclicChannel {
                    channel: 4,
                    ..channel
                },
            ],
        };
        for order in [Order::Transfer(1 << 20), cyclic, Order::Cost, Order::Exit] {
            assert_eq!(order.to_string().parse(), Ok(order));
        }
    }

    #[test]
    fn what_is_no_order_is_refused_with_what_would_be_one() {
        for line in [
            "",
            "transfer",
            "transfer -1",
            "transfer 1 2",
            "cyclic",
            "cyclic 0 0:1:1:1",
            "cyclic 1 0:1:1",
            "cyclic 1 0:1:0:1",
            "cyclic 1 0:1:1:1:1",
            "go",
        ] {
            assert!(line.parse::<Order>().is_err(), "{line}");
        }
    }
}
