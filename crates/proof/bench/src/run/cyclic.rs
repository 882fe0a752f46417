//! Many applications at once (table 20), and how far their load can grow.

use std::sync::atomic::AtomicBool;
use std::time::Duration as Span;

use bumpless_base::Duration;
use bumpless_net_linux::Clock;
use serde::{Deserialize, Serialize};

use super::Trouble;
use super::meter::{self, Jitter, Seen};
use super::pair::{Pair, Peer, Setup};
use super::transfers::Bench;
use crate::conversation::{Answer, ChannelTimes, CyclicChannel, Order};
use crate::network::filter::{Filter, Loss};
use crate::paper;
use crate::statistics::Summary;

/// Payload utilisation of table 20 at 1 Gbit/s.
pub const UTILISATION: f64 = 0.743;

/// What is lost while applications run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SteadyLoss {
    /// Nothing.
    None,
    /// One packet each second, as in the paper.
    EachSecond,
    /// One in a hundred, at random.
    OnePercent,
}

impl SteadyLoss {
    /// Those that lose something.
    pub const LOSSY: [Self; 2] = [Self::EachSecond, Self::OnePercent];

    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::EachSecond => "one-per-second",
            Self::OnePercent => "random-1-percent",
        }
    }

    const fn loss(self) -> Loss {
        match self {
            Self::None => Loss::None,
            Self::EachSecond => Loss::Every(1_000_000_000),
            Self::OnePercent => Loss::Random(0.01),
        }
    }
}

/// What a run of many applications came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Applications {
    /// `applications`, `ramp` or `channels`.
    pub case: String,
    /// The peer.
    pub peer: String,
    /// Whether each channel had a connection of its own, or all had one.
    pub connection: String,
    /// What the networks carry.
    pub network: String,
    /// What was lost.
    pub loss: String,
    /// Share of a network of 1 Gbit/s that the states take, without headers.
    pub utilisation: f64,
    /// How long it ran, seconds.
    pub seconds: f64,
    /// Packets counted on network A, and dropped.
    pub packets: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// States sent, all channels together.
    pub sent: u64,
    /// Deadlines missed, all channels together.
    pub missed: u64,
    /// Those of them that are the machine's: between their release and their end it stood still for at least
    /// as long as they were late or, of those given up, so long that there was no time left for what 99 of
    /// 100 take. None where the peer does not tell when it missed.
    #[serde(default)]
    pub missed_standing_still: u64,
    /// Each channel.
    pub channels: Vec<Channel>,
    /// What the meter saw.
    pub jitter: Jitter,
    /// Processor time of sender and receiver, nanoseconds.
    pub cpu_ns: [u64; 2],
    /// Most resident memory of sender and receiver, bytes.
    pub peak_bytes: [u64; 2],
    /// Why there are no figures, if so.
    pub error: Option<String>,
}

/// One channel of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// Its number, from 0 on.
    pub channel: u32,
    /// Bytes of each state.
    pub size: usize,
    /// Period and deadline, microseconds.
    pub period_us: u64,
    /// States sent.
    pub sent: u64,
    /// Deadlines missed.
    pub missed: u64,
    /// Times from release to acknowledgement, nanoseconds.
    pub times: Option<Summary>,
    /// Each of them, in the order in which they ended.
    #[serde(default)]
    pub samples_ns: Vec<u64>,
}

/// A load and what happens to it.
#[derive(Clone, Debug)]
pub struct Load {
    /// Which case it is part of.
    pub case: &'static str,
    /// Whether each channel has a connection of its own.
    pub many: bool,
    /// The channels.
    pub channels: Vec<CyclicChannel>,
    /// What is lost.
    pub loss: SteadyLoss,
    /// How long.
    pub span: Span,
}

/// The applications of table 20 with their states scaled to take `utilisation` of 1 Gbit/s.
pub fn applications(utilisation: f64) -> Vec<CyclicChannel> {
    let scale = utilisation / UTILISATION;
    paper::APPLICATIONS
        .iter()
        .zip(0..)
        .map(|(application, channel)| {
            let period = Duration::from_millis(application.period_ms);
            CyclicChannel {
                channel,
                size: (application.size as f64 * scale) as usize,
                period,
                deadline: period,
            }
        })
        .collect()
}

/// `count` channels with small states that make a thousand states each second together.
pub fn small_channels(count: u32) -> Vec<CyclicChannel> {
    let period = Duration::from_millis(count.into());
    let channel = |channel| CyclicChannel {
        channel,
        size: 1000,
        period,
        // Not the subject here: a thousand releases at once take their time.
        deadline: Duration::from_secs(1),
    };
    (0..count).map(channel).collect()
}

fn utilisation(channels: &[CyclicChannel]) -> f64 {
    let load = channels
        .iter()
        .map(|channel| channel.size as f64 * 8.0 / channel.period.as_secs_f64());
    load.sum::<f64>() / 1e9
}

/// Runs `load` over `peer`.
///
/// # Errors
/// The user wants to stop. Whatever else goes wrong stands in the result.
pub fn run(bench: &Bench<'_>, peer: &Peer, load: &Load) -> Result<Applications, Trouble> {
    let mut result = Applications {
        case: load.case.into(),
        peer: peer.name.clone(),
        connection: if load.many { "many" } else { "single" }.into(),
        network: bench.network.into(),
        loss: load.loss.name().into(),
        utilisation: utilisation(&load.channels),
        seconds: load.span.as_secs_f64(),
        ..Applications::default()
    };
    let filter = bench.place.lab().and_then(|lab| lab.filters().first());
    let began = Clock.now();
    let (outcome, meter) = meter::beside(|| measure(bench, peer, load, filter, &mut result));
    if let Some(filter) = filter {
        (result.packets, result.dropped) = (filter.seen(), filter.dropped());
        filter.set(Loss::None);
    }
    result.jitter = meter::told(&meter, began);
    match outcome {
        Ok(times) => result.take(&load.channels, &times, &meter),
        Err(Trouble::Stopped) => return Err(Trouble::Stopped),
        Err(Trouble::Failed(reason)) => result.error = Some(reason),
    }
    Ok(result)
}

fn setup(bench: &Bench<'_>, load: &Load) -> Setup {
    Setup {
        channels: load.channels.len() as u32,
        many: load.many,
        max_size: load
            .channels
            .iter()
            .map(|channel| channel.size)
            .max()
            .unwrap_or(0),
        bandwidth_mbit: bench.bandwidth_mbit,
        deadlines_us: load
            .channels
            .iter()
            .map(|channel| channel.deadline.as_micros())
            .collect(),
    }
}

fn measure(
    bench: &Bench<'_>,
    peer: &Peer,
    load: &Load,
    filter: Option<&Filter>,
    result: &mut Applications,
) -> Result<Vec<ChannelTimes>, Trouble> {
    let stop: &AtomicBool = bench.stop;
    let mut pair = Pair::start(bench.place, peer, &setup(bench, load), stop)?;
    let order = |span: Duration| Order::Cyclic {
        span,
        channels: load.channels.clone(),
    };
    // A second does not count: connections find their pace, memory is touched for the first time.
    pair.ask(&order(Duration::from_secs(1)), Span::from_secs(1), stop)?;
    if let Some(filter) = filter {
        filter.set(load.loss.loss());
    }
    let before = pair.usage();
    let span = Duration::from_nanos(u64::try_from(load.span.as_nanos()).unwrap_or(u64::MAX));
    let answer = pair.ask(&order(span), load.span, stop)?;
    let after = pair.usage();
    for side in 0..2 {
        result.cpu_ns[side] = after[side].cpu_ns.saturating_sub(before[side].cpu_ns);
        result.peak_bytes[side] = after[side].peak_bytes;
    }
    match answer {
        Answer::Cyclic { channels } => Ok(channels),
        Answer::Failed { reason } => Err(Trouble::Failed(reason)),
        other => Err(Trouble::Failed(format!(
            "{other:?} is no answer to 'cyclic'"
        ))),
    }
}

impl Applications {
    fn take(&mut self, channels: &[CyclicChannel], times: &[ChannelTimes], meter: &Seen) {
        self.channels = channels
            .iter()
            .map(|channel| {
                let told = times.iter().find(|times| times.channel == channel.channel);
                Channel {
                    channel: channel.channel,
                    size: channel.size,
                    period_us: channel.period.as_micros(),
                    sent: told.map_or(0, |told| told.sent),
                    missed: told.map_or(0, |told| told.missed),
                    times: told.and_then(|told| Summary::of(told.nanoseconds.iter().copied())),
                    samples_ns: told.map_or_else(Vec::new, |told| told.nanoseconds.clone()),
                }
            })
            .collect();
        self.sent = self.channels.iter().map(|channel| channel.sent).sum();
        self.missed = self.channels.iter().map(|channel| channel.missed).sum();
        self.missed_standing_still = channels
            .iter()
            .filter_map(|channel| {
                let told = times
                    .iter()
                    .find(|times| times.channel == channel.channel)?;
                let summary = Summary::of(told.nanoseconds.iter().copied());
                let take = Duration::from_nanos(summary.map_or(0, |times| times.p99));
                let excused = told
                    .misses
                    .iter()
                    .filter(|miss| meter::explains(meter.stalls(), miss, channel.deadline, take));
                Some(excused.map(|miss| miss.periods).sum::<u64>())
            })
            .sum();
    }

    /// Deadlines missed that are not the machine's.
    pub fn own_misses(&self) -> u64 {
        self.missed.saturating_sub(self.missed_standing_still)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_take_the_share_that_they_are_named_after() {
        assert!((utilisation(&applications(UTILISATION)) - UTILISATION).abs() < 0.001);
        assert!((utilisation(&applications(0.93)) - 0.93).abs() < 0.001);
        for count in [1, 10, 1000] {
            let channels = small_channels(count);
            let rate: f64 = channels
                .iter()
                .map(|channel| 1.0 / channel.period.as_secs_f64())
                .sum();
            assert!((rate - 1000.0).abs() < 1e-6, "{count}: {rate}");
        }
    }
}
