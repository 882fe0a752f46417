//! Answers to senders that ask whether what they send arrives.

use super::state::State;
use crate::header::{Answer, CLEAR, FEEDBACK_LEN, Header};
use crate::ind::Ind;
use bumpless_secure::Suite;
use core::net::SocketAddr;

/// An answer that is to leave for a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// The network on which the question came: the answer leaves on it, too.
    pub on: Option<Ind>,
    /// Where the question came from: the sender's data port.
    pub to: SocketAddr,
    /// Bytes of the answer, at the front of the caller's buffer.
    pub len: usize,
}

impl<S: Suite> State<S> {
    pub(crate) fn poll_feedback(&mut self, out: &mut [u8; FEEDBACK_LEN]) -> Option<Feedback> {
        loop {
            let pending = self.answers.pop()?;
            let process = self.processes.find(pending.tag);
            let space = self.active.find_space(pending.tag, pending.space);
            let (Some(process), Some((place, slot))) = (process, space) else {
                continue;
            };
            let (high, behind) = self.active.seen(place, slot);
            self.count_answer();
            let header = Header {
                ind: pending.ind,
                feedback: true,
                group: false,
                ask: false,
                ipv6: false,
                key: (pending.key_number & 15) as u8,
                tag: pending.tag,
                space: pending.space,
                number: self.answered,
            };
            let answer = Answer {
                asked: pending.asked,
                high,
                behind,
            };
            let process = self.processes.get_mut(process)?;
            let (root, number, boot) = (&self.root, pending.key_number, self.boot);
            let key = process.answer_key(number, boot, || root.material(number, pending.tag));
            out[..CLEAR].copy_from_slice(&header.encode());
            out[CLEAR..CLEAR + 8].copy_from_slice(&boot.to_be_bytes());
            out[CLEAR + 8..CLEAR + 24].copy_from_slice(&answer.encode());
            let (clear, body) = out.split_at_mut(CLEAR + 8);
            let (body, tag) = body.split_at_mut(16);
            tag.copy_from_slice(&S::seal(key, header.nonce(), clear, body));
            return Some(Feedback {
                on: pending.on,
                to: pending.to,
                len: FEEDBACK_LEN,
            });
        }
    }

    /// No two answers of one key have one number.
    fn count_answer(&mut self) {
        match self.answered.checked_add(1) {
            Some(next) => self.answered = next,
            None => {
                self.answered = 0;
                self.boot = self.random.next_u64();
                self.processes.drop_answer_keys();
            }
        }
    }
}
