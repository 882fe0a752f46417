//! What is answered, and what follows from it: what has arrived, how long it took, which network carries.

use super::state::State;
use crate::counters::Discard;
use crate::event::{SenderEvent, SessionId};
use crate::header::{Answer, CLEAR, FEEDBACK_LEN, Header};
use crate::keys::answer_key;
use bumpless_base::Instant;
use bumpless_secure::Suite;

impl<S: Suite> State<S> {
    /// A receiver's answer.
    pub(crate) fn handle_feedback(
        &mut self,
        now: Instant,
        datagram: &mut [u8],
    ) -> Result<(), Discard> {
        let header = Header::decode(datagram)?;
        if !header.feedback {
            return Err(Discard::Malformed);
        }
        let datagram = datagram
            .get_mut(..)
            .filter(|it| it.len() == FEEDBACK_LEN)
            .ok_or(Discard::Truncated)?;
        let place = self
            .base
            .find_space(header.space)
            .ok_or(Discard::UnknownKey)?;
        let answer = self.open_answer(now, place, &header, datagram)?;
        let session = self.base.get_mut(place).ok_or(Discard::UnknownKey)?;
        if answer.asked >= session.next || answer.high >= session.next {
            return Err(Discard::Malformed);
        }
        let at = session.position(header.ind).ok_or(Discard::UnknownKey)?;
        let path = session.path_mut(at).ok_or(Discard::UnknownKey)?;
        let is_later = path.handle_answer(now, answer.asked);
        self.keep.acknowledge(&mut session.standby.kept, &answer);
        if !is_later {
            return Err(Discard::Duplicate);
        }
        let is_resumed = session.asking.heard();
        let own = self.networks;
        let back = session.answered(at, answer.asked, &own);
        let id = SessionId(place as u32);
        if is_resumed {
            self.notify(SenderEvent::Resumed { session: id });
        }
        if let Some((from, to)) = back {
            self.notify(SenderEvent::Moved {
                session: id,
                from,
                to,
                again: 0,
            });
        }
        Ok(())
    }

    fn open_answer(
        &mut self,
        now: Instant,
        place: usize,
        header: &Header,
        datagram: &mut [u8],
    ) -> Result<Answer, Discard> {
        let session = self.base.get_mut(place).ok_or(Discard::UnknownKey)?;
        let sealing = &mut session.sealing;
        let is_ours = header.tag == sealing.tag && header.key == (sealing.number & 15) as u8;
        if !is_ours || sealing.group {
            return Err(Discard::UnknownKey);
        }
        let (clear, body) = datagram
            .split_at_mut_checked(CLEAR + 8)
            .ok_or(Discard::Truncated)?;
        let boot = clear
            .last_chunk()
            .map_or(0, |bytes| u64::from_be_bytes(*bytes));
        match &sealing.answers {
            Some((known, key)) if *known == boot => {
                if !S::open(key, header.nonce(), clear, body) {
                    return Err(Discard::Forged);
                }
            }
            _ => {
                if !self.trials.spend(now) {
                    return Err(Discard::Untried);
                }
                let key = answer_key::<S>(&sealing.material, boot);
                if !S::open(&key, header.nonce(), clear, body) {
                    return Err(Discard::Forged);
                }
                sealing.answers = Some((boot, key));
            }
        }
        Answer::decode(body).ok_or(Discard::Truncated)
    }
}
