//! States of many channels on grids of time.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::orders::{Channel, Plan};
use crate::payload::{Payloads, Pool};
use crate::{Transfer, nanoseconds};

/// Threads start within this time, so that all channels begin together.
const START: Duration = Duration::from_millis(20);

/// What became of one channel's states.
#[derive(Default)]
struct Outcome {
    sent: u64,
    missed: u64,
    times: Vec<u64>,
    failure: Option<String>,
}

/// Runs the plan, a thread per channel, and gives the answer.
pub fn run(sender: &impl Transfer, plan: &Plan, pool: &Pool) -> Value {
    let start = Instant::now() + START;
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let threads: Vec<_> = plan
            .channels
            .iter()
            .map(|channel| {
                let payloads = pool.payloads();
                scope.spawn(move || run_channel(sender, channel, start, plan.duration, payloads))
            })
            .collect();
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_default());
        joined.collect()
    });
    let channels: Vec<_> = plan.channels.iter().zip(outcomes).map(report).collect();
    json!({"event": "cyclic", "channels": channels})
}

fn report((channel, outcome): (&Channel, Outcome)) -> Value {
    if let Some(reason) = outcome.failure {
        eprintln!("channel {}: first failure: {reason}", channel.number);
    }
    json!({
        "channel": channel.number,
        "sent": outcome.sent,
        "missed": outcome.missed,
        "nanoseconds": outcome.times,
    })
}

/// One channel: a state at each point of the grid, unless the one before is still on its way.
fn run_channel(
    sender: &impl Transfer,
    channel: &Channel,
    start: Instant,
    duration: Duration,
    mut payloads: Payloads,
) -> Outcome {
    let periods = duration.as_nanos().div_ceil(channel.period.as_nanos());
    let mut outcome = Outcome {
        times: Vec::with_capacity(usize::try_from(periods).unwrap_or_default()),
        ..Outcome::default()
    };
    let mut release = start;
    while release < start + duration {
        thread::sleep(release.saturating_duration_since(Instant::now()));
        let state = payloads.next(channel.size);
        outcome.sent += 1;
        match sender.transfer(channel.number, &state) {
            Ok(timing) => {
                let time = timing.end.saturating_duration_since(release);
                outcome.missed += u64::from(time > channel.deadline);
                outcome.times.push(nanoseconds(time));
            }
            Err(error) => {
                outcome.missed += 1;
                outcome.failure.get_or_insert_with(|| format!("{error:#}"));
            }
        }
        release += channel.period;
        let now = Instant::now();
        while release < now && release < start + duration {
            outcome.missed += 1;
            release += channel.period;
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timing;
    use bytes::Bytes;

    /// Takes a fixed time for each state.
    struct Slow(Duration);

    impl Transfer for Slow {
        fn transfer(&self, _channel: usize, _state: &Bytes) -> anyhow::Result<Timing> {
            let start = Instant::now();
            thread::sleep(self.0);
            Ok(Timing {
                start,
                end: start + self.0,
            })
        }
    }

    #[test]
    fn a_period_that_finds_the_channel_busy_is_skipped_and_missed() {
        let plan = Plan {
            duration: Duration::from_millis(40),
            channels: vec![Channel {
                number: 0,
                size: 8,
                period: Duration::from_millis(10),
                deadline: Duration::from_millis(10),
            }],
        };
        let answer = run(&Slow(Duration::from_millis(1005)), &plan, &Pool::new(8));
        let channel = &answer["channels"][0];
        assert_eq!(channel["sent"], 1);
        assert_eq!(channel["missed"], 4);
        assert_eq!(channel["nanoseconds"].as_array().map(Vec::len), Some(1));
    }
}
