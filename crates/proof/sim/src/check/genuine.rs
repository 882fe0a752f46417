//! genuine: what a process takes for protected was sealed for it, on that network, by one that has the key, is as it was
//! when it left, and is taken once.

use super::Exemption;
use crate::network::Datagram;
use crate::script::End;

/// Processes of a sender of which a receiver remembers what it has opened (N-7).
const REMEMBERED: u32 = 4;

/// What one process has taken on one network, for as long as it lives.
#[derive(Debug, Default)]
pub struct Genuine {
    /// A bit for each datagram that was ever sent, by its number.
    taken: Vec<u64>,
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
        match before & bit {
            0 => Ok(None),
            _ if processes > REMEMBERED => Ok(Some(Exemption::ForgottenProcess)),
            _ => Err("takes a datagram for the second time".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Sent;

    const NODE: End = End::Node(1);

    fn datagram(number: u64) -> Datagram {
        let mut datagram = Datagram::with_room(64);
        datagram.bytes.extend_from_slice(&[1; 40]);
        datagram.sent_as = Some(Sent {
            number,
            network: 0,
            from: End::Node(0),
            to: NODE,
        });
        datagram
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
