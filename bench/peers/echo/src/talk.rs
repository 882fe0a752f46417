//! Messages that are due one after the other, and what came of each.

use serde_json::json;

use crate::clock::now;
use crate::{Call, MESSAGE};

/// Between two messages, nanoseconds.
const PERIOD: u64 = 50_000_000;
/// How long answers are waited for when all messages have left, nanoseconds.
const LINGER: u64 = 3_000_000_000;

/// One message: when it was due, when it was sent, when its answer came, nanoseconds.
type Message = (u64, u64, Option<u64>);

/// All messages of a client.
#[derive(Debug)]
pub struct Talk {
    began: u64,
    count: usize,
    messages: Vec<Message>,
}

impl Talk {
    /// Begins, and says when.
    pub fn begin(call: &Call) -> Self {
        let began = now() + call.after_us * 1000;
        println!("{}", json!({"began_ns": began}));
        Self {
            began,
            count: call.messages,
            messages: Vec::with_capacity(call.messages),
        }
    }

    /// The next message, if it is due; it counts as sent at `now`.
    pub fn send(&mut self, now: u64) -> Option<[u8; MESSAGE]> {
        let number = self.messages.len();
        let due = self.due(number);
        if number == self.count || due > now {
            return None;
        }
        self.messages.push((due, now, None));
        Some(bytes(number))
    }

    /// Takes an answer that was whole at `at`.
    pub fn hear(&mut self, answer: &[u8], at: u64) {
        let number = answer.first_chunk().map_or(0, |it| u32::from_be_bytes(*it));
        if let Some((_, _, answered)) = self.messages.get_mut(number as usize) {
            answered.get_or_insert(at);
        }
    }

    /// When the oldest message without an answer was sent.
    pub fn oldest_sent(&self) -> Option<u64> {
        let oldest = self.messages.iter().find(|it| it.2.is_none());
        oldest.map(|(_, sent, _)| *sent)
    }

    /// All that were sent and have no answer.
    pub fn unanswered(&self) -> impl Iterator<Item = [u8; MESSAGE]> {
        let numbered = self.messages.iter().enumerate();
        let without = numbered.filter(|(_, it)| it.2.is_none());
        without.map(|(number, _)| bytes(number))
    }

    /// Whether every message has its answer, or none is waited for any more.
    pub fn is_over(&self, now: u64) -> bool {
        let left = self.messages.len() == self.count;
        left && (now >= self.end() || self.oldest_sent().is_none())
    }

    /// When there is something to do again, unless an answer comes.
    pub fn next(&self) -> u64 {
        match self.messages.len() {
            next if next < self.count => self.due(next),
            _ => self.end(),
        }
    }

    /// Tells everything. `switched`: when the client went to the backup.
    pub fn tell(&self, switched: Option<u64>) {
        let told = json!({"switched_ns": switched, "messages": self.messages});
        println!("{told}");
    }

    fn due(&self, number: usize) -> u64 {
        self.began + PERIOD * number as u64
    }

    fn end(&self) -> u64 {
        self.due(self.count.saturating_sub(1)) + LINGER
    }
}

/// A message: its number, and what nobody reads.
fn bytes(number: usize) -> [u8; MESSAGE] {
    let mut bytes = [number as u8; MESSAGE];
    bytes[..4].copy_from_slice(&(number as u32).to_be_bytes());
    bytes
}
