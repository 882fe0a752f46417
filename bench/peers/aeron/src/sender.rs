//! The sender's agent: offers states and takes acknowledgements.

use std::collections::VecDeque;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use bytes::Bytes;
use peer_conversation::{Arguments, TIMEOUT, Timing, digest};
use rusteron_client::{AeronExclusivePublication, AeronSubscription};

use crate::idle::Idle;
use crate::media::{HEADER, Media, channel, port_back};

const CONNECTING: Duration = Duration::from_secs(60);
const FRAGMENTS: usize = 10;
/// Bytes of an acknowledgement: the channel and the digest.
pub const ACKNOWLEDGEMENT: usize = 16;

/// One state to send.
pub struct Job {
    pub channel: usize,
    pub state: Bytes,
    pub answer: mpsc::Sender<anyhow::Result<Timing>>,
}

/// A state that was offered and not yet acknowledged.
struct Flight {
    start: Instant,
    digest: u64,
    answer: mpsc::Sender<anyhow::Result<Timing>>,
}

/// Connects, calls `ready`, then sends what comes from the queue.
pub fn run(
    arguments: &Arguments,
    queue: &mpsc::Receiver<Job>,
    ready: impl FnOnce(),
) -> anyhow::Result<()> {
    let media = Media::start(arguments)?;
    let mut agent = Agent::connect(&media, arguments)?;
    ready();
    let mut idle = Idle::new(arguments.tuned);
    loop {
        let mut worked = false;
        while let Ok(job) = queue.try_recv() {
            agent.waiting.push_back((job, None));
            worked = true;
        }
        worked |= agent.offer();
        worked |= agent.take_acknowledgements()?;
        idle.idle(worked);
    }
}

struct Agent<'a> {
    arguments: &'a Arguments,
    publications: Vec<AeronExclusivePublication>,
    subscriptions: Vec<AeronSubscription>,
    /// States that the publications have not yet taken, with the time of the first try.
    waiting: VecDeque<(Job, Option<Instant>)>,
    /// By channel.
    flights: Vec<Option<Flight>>,
}

impl<'a> Agent<'a> {
    /// Opens the streams and waits until each is connected both ways.
    fn connect(media: &Media, arguments: &'a Arguments) -> anyhow::Result<Self> {
        let (own, other) = (arguments.local[0], arguments.remote[0]);
        let there = channel(other, arguments.port, Some(own));
        let back = channel(own, port_back(arguments), None);
        let streams = arguments.connection_count();
        let subscriptions = media.subscribe_all(&back, streams)?;
        let publications = media.publish_all(&there, streams)?;
        let end = Instant::now() + CONNECTING;
        let connected = || {
            publications
                .iter()
                .all(AeronExclusivePublication::is_connected)
                && subscriptions.iter().all(AeronSubscription::is_connected)
        };
        while !connected() {
            if Instant::now() > end {
                bail!("cannot connect to {there} within {CONNECTING:?}");
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(Self {
            arguments,
            publications,
            subscriptions,
            waiting: VecDeque::new(),
            flights: (0..arguments.channels).map(|_| None).collect(),
        })
    }

    /// Offers every state that waits; says whether one was taken.
    fn offer(&mut self) -> bool {
        let mut worked = false;
        for _ in 0..self.waiting.len() {
            let Some((job, tried)) = self.waiting.pop_front() else {
                break;
            };
            let start = tried.unwrap_or_else(Instant::now);
            let publication = &self.publications[self.arguments.connection_of(job.channel)];
            let header: [u8; HEADER] = (job.channel as u64).to_le_bytes();
            match publication.offer_parts(&[&header, &job.state]) {
                Ok(_) => {
                    worked = true;
                    self.flights[job.channel] = Some(Flight {
                        start,
                        digest: digest(&job.state),
                        answer: job.answer,
                    });
                }
                Err(error) if error.is_retryable() && start.elapsed() < TIMEOUT => {
                    self.waiting.push_back((job, Some(start)));
                }
                Err(error) => {
                    let _ = job
                        .answer
                        .send(Err(anyhow!("cannot offer a state: {error}")));
                }
            }
        }
        worked
    }

    /// Takes what acknowledgements there are; says whether there was one.
    fn take_acknowledgements(&mut self) -> anyhow::Result<bool> {
        let flights = &mut self.flights;
        let mut worked = false;
        for subscription in &self.subscriptions {
            let taken = subscription.poll_fn(|message, _| land(flights, message), FRAGMENTS);
            worked |= taken.map_err(|error| anyhow!("cannot poll: {error}"))? > 0;
        }
        Ok(worked)
    }
}

/// Ends the flight that an acknowledgement is for.
fn land(flights: &mut [Option<Flight>], message: &[u8]) {
    let end = Instant::now();
    let Ok(message) = <[u8; ACKNOWLEDGEMENT]>::try_from(message) else {
        return;
    };
    let (channel, digest) = message.split_at(HEADER);
    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).unwrap_or_default();
    let place = usize::try_from(word(channel)).unwrap_or(usize::MAX);
    let Some(flight) = flights.get_mut(place) else {
        return;
    };
    if let Some(landed) = flight.take_if(|flight| flight.digest == word(digest)) {
        let start = landed.start;
        let _ = landed.answer.send(Ok(Timing { start, end }));
    }
}
