//! What a witness tells: changes of holder and what it counts, as lines of words or of `bumpless.witness/1`
//! (spec/status.md), through a thread that may block on its output.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use bumpless_base::{Counter, Counters, Epoch, Instant};
use bumpless_net_linux::Clock;
use bumpless_wire::{WitnessReply, WitnessRequest};
use serde_json::{Map, Value, json};

use super::CAPACITY;
use crate::warn;

const SCHEMA: &str = "bumpless.witness/1";
/// How long the end waits for lines that are not written yet: whoever reads them may have stopped.
const TIMEOUT: Duration = Duration::from_secs(1);

/// What is no discard or failure, for comparison.
const TRAFFIC: [Counter; 3] = [
    Counter::DatagramsReceived,
    Counter::DatagramsSent,
    Counter::WitnessRequests,
];

/// Every cause for which a witness does not serve somebody.
const DISCARDS: [Counter; 21] = [
    Counter::DiscardSocketFull,
    Counter::DiscardNoSource,
    Counter::DiscardTruncated,
    Counter::DiscardUnknownType,
    Counter::DiscardUnknownVersion,
    Counter::DiscardCorrupt,
    Counter::DiscardMalformed,
    Counter::DiscardWrongKind,
    Counter::DiscardUnprotected,
    Counter::DiscardWrongNode,
    Counter::DiscardUnknownKey,
    Counter::DiscardMisdirected,
    Counter::DiscardForged,
    Counter::DiscardReplayed,
    Counter::DiscardUntried,
    Counter::DiscardTooManyRequests,
    Counter::WitnessTableFull,
    Counter::WitnessLeaseRefused,
    Counter::SendFailures,
    Counter::ReceiveFailures,
    Counter::EventsLost,
];

/// How often somebody was not served.
pub(super) fn discards(counters: &Counters) -> u64 {
    DISCARDS.iter().map(|&cause| counters.get(cause)).sum()
}

/// Tells changes of holder, not renewals.
pub(super) struct Journal {
    entries: SyncSender<Entry>,
    ended: Receiver<()>,
    last: Vec<Grant>,
    pub(super) lost: Arc<AtomicU64>,
}

pub(super) enum Entry {
    Listening(Instant, SocketAddr),
    Granted(Instant, Grant),
    Counted(Instant, Box<Counters>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Grant {
    pair: u32,
    group: u16,
    holder: u8,
    epoch: Epoch,
}

impl Journal {
    pub(super) fn start(json: bool, mut output: impl Write + Send + 'static) -> io::Result<Self> {
        let (entries, received) = sync_channel::<Entry>(CAPACITY);
        let (end, ended) = sync_channel(1);
        let lost = Arc::new(AtomicU64::new(0));
        let unwritten = Arc::clone(&lost);
        std::thread::Builder::new()
            .name("journal".into())
            .spawn(move || {
                for entry in received {
                    // Nobody reading is no reason to stop answering, and none to complain.
                    match writeln!(output, "{}", entry.line(json)) {
                        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                            complain(&error, unwritten.fetch_add(1, Ordering::Relaxed));
                        }
                        _ => {}
                    }
                }
                let _ = end.try_send(());
            })?;
        Ok(Self {
            entries,
            ended,
            last: Vec::with_capacity(CAPACITY),
            lost,
        })
    }

    pub(super) fn tell(&mut self, entry: Entry) {
        // Full: the terminal has blocked for a thousand lines.
        if let Err(TrySendError::Full(_)) = self.entries.try_send(entry) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines that nobody took, or that could not be written.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Tells the last, and waits a moment until it is written.
    pub(super) fn end(mut self, last: Entry) {
        self.tell(last);
        drop(self.entries);
        let _ = self.ended.recv_timeout(TIMEOUT);
    }

    pub(super) fn note(&mut self, request: &WitnessRequest, reply: &WitnessReply) {
        if !reply.granted || !request.kind.is_lease() {
            return;
        }
        let grant = Grant {
            pair: request.pair,
            group: request.group,
            holder: reply.holder,
            epoch: reply.epoch,
        };
        let same = |last: &Grant| last.pair == grant.pair && last.group == grant.group;
        match self.last.iter().position(same) {
            Some(at) if self.last[at] == grant => return,
            Some(at) => self.last[at] = grant,
            None if self.last.len() < CAPACITY => self.last.push(grant),
            None => return,
        }
        self.tell(Entry::Granted(Clock.now(), grant));
    }
}

/// Says on standard error that lines cannot be written, at the first of them.
fn complain(error: &io::Error, before: u64) {
    if before == 0 {
        warn(format_args!(
            "the witness cannot write to standard output: {error}; make room there or send it elsewhere. It \
             serves on, and counts what it could not write as events_lost"
        ));
    }
}

impl Entry {
    fn line(&self, as_json: bool) -> String {
        if as_json {
            self.json().to_string()
        } else {
            self.words()
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Listening(_, address) => format!("witness answers on {address}"),
            Self::Granted(_, grant) => format!(
                "pair {:08x} group {}: node {} is primary in epoch {}",
                grant.pair, grant.group, grant.holder, grant.epoch
            ),
            Self::Counted(_, counters) => {
                let counted = TRAFFIC.iter().chain(&DISCARDS);
                let shown: Vec<_> = counted
                    .filter(|&&counter| counters.get(counter) > 0)
                    .map(|&counter| format!("{} {}", counter.name(), counters.get(counter)))
                    .collect();
                let shown = match shown.is_empty() {
                    true => "nothing".to_owned(),
                    false => shown.join(", "),
                };
                format!("witness has counted: {shown}")
            }
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Listening(at, address) => json!({
                "schema": SCHEMA, "time_ns": at.as_nanos(), "event": "listening",
                "address": address.to_string(),
            }),
            Self::Granted(at, grant) => json!({
                "schema": SCHEMA, "time_ns": at.as_nanos(), "event": "granted",
                "pair": format!("{:08x}", grant.pair), "group": grant.group,
                "holder": grant.holder, "epoch": grant.epoch.0,
            }),
            Self::Counted(at, counters) => {
                let counted = TRAFFIC.iter().chain(&DISCARDS);
                let figures: Map<_, _> = counted
                    .map(|&counter| (counter.name().to_owned(), counters.get(counter).into()))
                    .collect();
                json!({
                    "schema": SCHEMA, "time_ns": at.as_nanos(), "event": "counted",
                    "counters": figures,
                })
            }
        }
    }
}
