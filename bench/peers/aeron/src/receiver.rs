//! The receiver's agent: takes states and answers with their digests.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use anyhow::{Context, anyhow};
use peer_conversation::{Arguments, digest};
use rusteron_client::{
    AeronExclusivePublication, AeronFragmentClosureAssembler, AeronHeader, AeronSubscription,
};

use crate::idle::Idle;
use crate::media::{HEADER, Media, Publishing, channel, port_back};
use crate::sender::ACKNOWLEDGEMENT;

const FRAGMENTS: usize = 10;

/// Receives for ever; calls `ready` when it listens.
pub fn run(arguments: &Arguments, ready: impl FnOnce()) -> anyhow::Result<()> {
    let media = Media::start(arguments)?;
    let there = channel(arguments.local[0], arguments.port, None);
    let mut streams = Vec::new();
    let subscriptions = media.subscribe_all(&there, arguments.connection_count())?;
    for (number, subscription) in subscriptions.into_iter().enumerate() {
        streams.push(Stream {
            number,
            subscription,
            way_back: WayBack::Unknown,
            assembler: AeronFragmentClosureAssembler::new().map_err(|error| anyhow!("{error}"))?,
            answers: VecDeque::new(),
        });
    }
    ready();
    let mut idle = Idle::new(arguments.tuned);
    loop {
        let mut worked = false;
        for stream in &mut streams {
            stream.connect(&media, arguments)?;
            worked |= stream.turn()?;
        }
        idle.idle(worked);
    }
}

/// One stream each way.
struct Stream {
    number: usize,
    subscription: AeronSubscription,
    way_back: WayBack,
    assembler: AeronFragmentClosureAssembler,
    /// Acknowledgements that wait for room.
    answers: VecDeque<[u8; ACKNOWLEDGEMENT]>,
}

/// Where answers go.
enum WayBack {
    /// No sender has come.
    Unknown,
    Opening(Publishing),
    Open(AeronExclusivePublication),
}

impl Stream {
    /// Opens the way back to the sender whose image has come.
    fn connect(&mut self, media: &Media, arguments: &Arguments) -> anyhow::Result<()> {
        if let WayBack::Opening(publishing) = &self.way_back {
            let opened = publishing
                .poll()
                .map_err(|error| anyhow!("no way back: {error}"))?;
            if let Some(publication) = opened {
                self.way_back = WayBack::Open(publication);
            }
            return Ok(());
        }
        if matches!(self.way_back, WayBack::Open(_)) {
            return Ok(());
        }
        let Some(image) = self.subscription.image_at_index(0) else {
            return Ok(());
        };
        let constants = image.get_constants().map_err(|error| anyhow!("{error}"))?;
        let source = constants.source_identity().to_owned();
        let (address, _) = source.split_once(':').context("a source without a port")?;
        let sender: Ipv4Addr = address
            .parse()
            .with_context(|| format!("source {source}"))?;
        let back = channel(sender, port_back(arguments), Some(arguments.local[0]));
        self.way_back = WayBack::Opening(media.publish(&back, self.number)?);
        Ok(())
    }

    /// Takes fragments and answers the states that they complete.
    fn turn(&mut self) -> anyhow::Result<bool> {
        let taken = self
            .assembler
            .poll(&self.subscription, &mut self.answers, answer, FRAGMENTS);
        let mut worked = taken.map_err(|error| anyhow!("cannot poll: {error}"))? > 0;
        if let WayBack::Open(publication) = &self.way_back {
            while let Some(next) = self.answers.front() {
                match publication.offer(next) {
                    Ok(_) => worked = self.answers.pop_front().is_some(),
                    Err(error) if error.is_retryable() => break,
                    Err(error) => return Err(anyhow!("cannot acknowledge: {error}")),
                }
            }
        }
        Ok(worked)
    }
}

/// A whole message has come: the channel and the state.
fn answer(answers: &mut VecDeque<[u8; ACKNOWLEDGEMENT]>, message: &[u8], _: AeronHeader) {
    if let Some((channel, state)) = message.split_at_checked(HEADER) {
        let mut answer = [0; ACKNOWLEDGEMENT];
        answer[..HEADER].copy_from_slice(channel);
        answer[HEADER..].copy_from_slice(&digest(state).to_le_bytes());
        answers.push_back(answer);
    }
}
