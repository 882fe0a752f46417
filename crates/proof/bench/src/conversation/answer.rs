//! What a program that is measured says.

use serde::{Deserialize, Serialize};

/// One line on a program's standard output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Answer {
    /// It listens, or is connected.
    Ready {
        /// Its name.
        peer: String,
        /// Version of the library or kernel that does the work.
        version: String,
        /// What was set otherwise than by default, and what could not be had.
        settings: String,
    },
    /// A state is at the receiving application, and its acknowledgement has come back.
    Done {
        /// From just before the call that sends to just after the acknowledgement was read.
        nanoseconds: u64,
    },
    /// A state did not arrive in time, or the order cannot be carried out.
    Failed {
        /// Why.
        reason: String,
    },
    /// A cyclic run has ended.
    Cyclic {
        /// What became of each channel's states.
        channels: Vec<ChannelTimes>,
    },
    /// What the program has taken of memory, as far as it can tell.
    Cost {
        /// Most bytes that its buffers took; `None` if it cannot tell.
        peak_buffer_bytes: Option<u64>,
    },
}

/// One channel's part in a cyclic run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChannelTimes {
    /// The channel.
    pub channel: u32,
    /// States sent.
    pub sent: u64,
    /// Periods whose state was not acknowledged within the deadline, or not sent because the one
    /// before was still on its way.
    pub missed: u64,
    /// Every acknowledged state's time, from its release on.
    pub nanoseconds: Vec<u64>,
    /// When what was missed was released and what became of it, if the program tells.
    #[serde(default)]
    pub misses: Vec<Miss>,
}

/// A state that came too late, with those that were skipped because of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Miss {
    /// Its release by the system's monotonic clock, nanoseconds.
    pub released: u64,
    /// How long after its deadline it was acknowledged, nanoseconds; `None` if never.
    pub late: Option<u64>,
    /// Periods missed: its own, if it was late, and those that had to be skipped.
    pub periods: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_read_as_the_specification_writes_them() {
        let cases = [
            (
                r#"{"event":"ready","peer":"quinn","version":"0.11.9","settings":""}"#,
                Answer::Ready {
                    peer: "quinn".into(),
                    version: "0.11.9".into(),
                    settings: String::new(),
                },
            ),
            (
                r#"{"event":"done","nanoseconds":17}"#,
                Answer::Done { nanoseconds: 17 },
            ),
            (
                r#"{"event":"cost","peak_buffer_bytes":3}"#,
                Answer::Cost {
                    peak_buffer_bytes: Some(3),
                },
            ),
        ];
        for (line, answer) in cases {
            assert_eq!(serde_json::from_str::<Answer>(line).unwrap(), answer);
            assert_eq!(serde_json::to_string(&answer).unwrap(), line);
        }
    }
}
