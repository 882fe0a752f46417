//! genuine: what a process takes for protected was sealed for it, on that network, by one that has the key, is as it was
//! when it left, and is taken once; and what is all that is not refused when it comes first.

use super::Exemption;
use crate::network::{Datagram, Sent};
use crate::script::End;

/// Datagrams of one sender that overtake each other by fewer are told apart (N-6: 2,048 less 63). Numbers are of all
/// senders, so they are further apart than counters.
const TOLD_APART: u64 = 1_985;

/// Processes of a sender of which a receiver remembers what it has opened (N-7).
const REMEMBERED: u32 = 4;

/// What one process has taken on one network, for as long as it lives.
#[derive(Debug, Default)]
pub struct Genuine {
    /// A bit for each datagram that was ever sent, by its number.
    taken: Vec<u64>,
    /// The processes of which something was taken, and the highest number of each.
    known: Vec<(End, u32, u64)>,
}

impl Genuine {
    /// `datagram`, whose envelope was opened, is taken by `end` on `network`; its sender has had so many processes.
    /// Returns what is forgiven.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn takes(
        &mut self,
        datagram: &Datagram,
        (network, end): (usize, End),
        processes: u32,
    ) -> Result<Option<Exemption>, String> {
        let Some(sent) = datagram.sent_as else {
            return Err("takes a datagram that nobody sent".into());
        };
        if (sent.network, sent.to) != (network, end) {
            return Err("takes a datagram that was meant for another end or network".into());
        }
        if datagram.is_altered() {
            return Err("takes a datagram that was changed on its way".into());
        }
        let (word, bit) = ((sent.number / 64) as usize, 1 << (sent.number % 64));
        if self.taken.len() <= word {
            self.taken.resize(word + 1, 0);
        }
        let before = self.taken[word];
        self.taken[word] |= bit;
        self.knows(sent);
        match before & bit {
            0 => Ok(None),
            _ if processes > REMEMBERED => Ok(Some(Exemption::ForgottenProcess)),
            _ => Err("takes a datagram for the second time".into()),
        }
    }

    fn knows(&mut self, sent: Sent) {
        let mut known = self.known.iter_mut();
        let id = (sent.from, sent.process);
        match known.find(|it| (it.0, it.1) == id) {
            Some((.., highest)) => *highest = sent.number.max(*highest),
            None => self.known.push((sent.from, sent.process, sent.number)),
        }
    }

    /// `datagram`, which is in an envelope, is refused by `end` on `network`; its sender has had so many processes.
    ///
    /// # Errors
    /// It was sealed for it by a process of which it has taken something, is as it was, and comes for the first time. (One of an
    /// unknown process may be refused untried, N-8.)
    pub fn refuses(
        &self,
        datagram: &Datagram,
        (network, end): (usize, End),
        processes: u32,
    ) -> Result<(), String> {
        let here = |sent: &Sent| (sent.network, sent.to) == (network, end);
        let Some(sent) = datagram.sent_as.filter(here) else {
            return Ok(());
        };
        let (word, bit) = ((sent.number / 64) as usize, 1 << (sent.number % 64));
        let taken = self.taken.get(word).is_some_and(|word| word & bit != 0);
        let id = (sent.from, sent.process);
        let known = self.known.iter().find(|it| (it.0, it.1) == id);
        let lately = |&&(.., highest): &&(End, u32, u64)| highest < sent.number + TOLD_APART;
        let must_open = known.filter(lately).is_some() && processes <= REMEMBERED && !taken;
        if must_open && !datagram.is_altered() {
            return Err(
                "refuses a datagram that was sealed for it and comes for the first time".into(),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: End = End::Node(1);

    fn datagram(number: u64) -> Datagram {
        let mut datagram = Datagram::with_room(64);
        datagram.bytes.extend_from_slice(&[1; 40]);
        datagram.sent_as = Some(Sent {
            number,
            network: 0,
            from: End::Node(0),
            process: 1,
            to: NODE,
        });
        datagram
    }

    #[test]
    fn what_comes_first_as_it_was_sent_is_not_refused_once_its_process_is_known() {
        let mut genuine = Genuine::default();
        let refuses =
            |genuine: &Genuine, datagram: &Datagram| genuine.refuses(datagram, (0, NODE), 4);
        assert_eq!(
            refuses(&genuine, &datagram(5)),
            Ok(()),
            "its process is unknown"
        );
        genuine.takes(&datagram(4), (0, NODE), 4).unwrap();
        assert!(refuses(&genuine, &datagram(5)).is_err());
        assert!(refuses(&genuine, &datagram(3)).is_err(), "it was overtaken");
        assert_eq!(refuses(&genuine, &datagram(4)), Ok(()), "it was taken");
        assert_eq!(genuine.refuses(&datagram(5), (1, NODE), 4), Ok(()));
        assert_eq!(genuine.refuses(&datagram(5), (0, NODE), 5), Ok(()));
        let mut changed = datagram(5);
        changed.is_changed_from_here();
        changed.bytes[7] ^= 1;
        assert_eq!(refuses(&genuine, &changed), Ok(()));
        genuine.takes(&datagram(3_000), (0, NODE), 4).unwrap();
        assert_eq!(
            refuses(&genuine, &datagram(5)),
            Ok(()),
            "it is too late to tell"
        );
    }

    #[test]
    fn each_datagram_is_taken_once_as_it_was_sent_and_where() {
        let mut genuine = Genuine::default();
        let mut takes = |datagram: &Datagram, network, end, processes| {
            genuine.takes(datagram, (network, end), processes)
        };
        for number in [0, 63, 64, 1000, 65] {
            assert_eq!(takes(&datagram(number), 0, NODE, 4), Ok(None));
            assert!(takes(&datagram(number), 0, NODE, 4).is_err());
            let forgotten = Ok(Some(Exemption::ForgottenProcess));
            assert_eq!(takes(&datagram(number), 0, NODE, 5), forgotten);
        }
        assert!(takes(&datagram(2), 1, NODE, 1).is_err());
        assert!(takes(&datagram(2), 0, End::Node(0), 1).is_err());
        let mut changed = datagram(2);
        changed.is_changed_from_here();
        assert_eq!(takes(&changed, 0, NODE, 1), Ok(None), "it is as it was");
        let mut changed = datagram(3);
        changed.is_changed_from_here();
        changed.bytes[7] ^= 1;
        assert!(takes(&changed, 0, NODE, 1).is_err());
        let mut invented = datagram(4);
        invented.sent_as = None;
        assert!(takes(&invented, 0, NODE, 1).is_err());
    }
}
