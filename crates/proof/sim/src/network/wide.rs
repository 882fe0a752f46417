//! What travels over the first network when that is a wide-area one: datagrams, and messages to field devices and back.

use bumpless_base::random::mix64;

use super::directory::key;
use super::{Network, Parcel};
use crate::queue::{Queue, What};
use crate::wide::{Forwarding, Hop, Load, Wide};

/// The network that it is.
pub const WIDE: usize = 0;
/// A message of a field bus with its TCP header, which is longer than that of UDP.
const LEG_BYTES: usize = 32;
/// TCP sends again after this, and then after twice as long each time (RTO_MIN of Linux; the ways are shorter).
const SENT_AGAIN: u64 = 200_000_000;
/// So often, even if the program has closed the connection (`tcp_orphan_retries` of Linux, as it is for 0).
const REPEATED: u32 = 8;

/// A request to a field device, or its answer, as TCP carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// Which request.
    pub slot: u32,
    /// Tells it from others of this number.
    pub serial: u64,
    /// The node that asks.
    pub node: usize,
    /// It is the answer.
    pub answers: bool,
    /// When it was sent, and how often before.
    sent: u64,
    repeated: u32,
}

impl Leg {
    /// A message that is sent for the first time.
    pub fn new((slot, serial): (u32, u64), node: usize, answers: bool) -> Self {
        Self {
            slot,
            serial,
            node,
            answers,
            sent: 0,
            repeated: 0,
        }
    }

    /// Whether it is what a request waits for, which has this number, and to which there is an answer on its way or is not: else
    /// another copy of it has come before.
    pub fn is_awaited(&self, serial: u64, is_answered: bool) -> bool {
        self.serial == serial && self.answers == is_answered
    }

    /// Whether it has not been sent before.
    pub fn is_first(&self) -> bool {
        self.repeated == 0
    }

    /// The same once more, and when that is sent; `None`: it is given up.
    pub fn again(self) -> Option<(Self, u64)> {
        let again = Self {
            repeated: self.repeated + 1,
            ..self
        };
        (again.repeated <= REPEATED).then(|| (again, self.sent + (SENT_AGAIN << self.repeated)))
    }
}

/// What travels.
pub enum Cargo {
    /// A datagram.
    Datagram(Parcel),
    /// A message of a field bus.
    Leg(Leg),
}

/// What has come of a packet.
pub enum Came {
    /// It goes on, or its node finds it.
    Nothing,
    /// A datagram is there.
    Datagram,
    /// A datagram is lost.
    Lost(Parcel),
    /// A message of a field bus is there.
    Leg(Leg),
    /// A message of a field bus is lost.
    LostLeg(Leg),
}

/// Puts a datagram that has left its computer on the way.
pub fn depart(
    wide: &mut Forwarding<Cargo>,
    queue: &mut Queue,
    (ends, at): ((usize, usize), u64),
    datagram: Parcel,
) {
    let load = Load {
        ends,
        bytes: datagram.bytes.len(),
        flow: mix64(key(&datagram.source)) ^ key(&datagram.target),
    };
    let flight = wide.enter(load, Cargo::Datagram(datagram));
    queue.push(at, What::Hop { flight });
}

impl Network {
    /// Makes the first network a wide-area one, and every other one as long as its backup.
    pub fn spread_out(&mut self, wide: &Wide, seed: u64) {
        let references = self.ends - wide.places.nodes.len();
        let mut places = wide.places.nodes.clone();
        places.extend((0..references).map(|_| wide.places.witness));
        places.push(wide.places.field);
        let square = self.ends * self.ends;
        let backup = wide.backup.unwrap_or(0);
        for path in self.paths[square..]
            .iter_mut()
            .chain(&mut self.sound[square..])
        {
            path.base += backup;
        }
        self.wide = Some(Forwarding::new(&wide.topology, wide.routing, &places, seed));
    }

    /// The wide-area network, if there is one.
    pub fn wide(&mut self) -> Option<&mut Forwarding<Cargo>> {
        self.wide.as_mut()
    }

    /// Sends a message of a field bus at `at`, and with `backup` another one that comes then over another network.
    /// Returns whether there is a wide-area network.
    pub fn send_leg(&mut self, queue: &mut Queue, leg: Leg, at: u64, backup: Option<u64>) -> bool {
        let Some(wide) = &mut self.wide else {
            return false;
        };
        let (node, field) = (leg.node, self.ends);
        let load = Load {
            ends: match leg.answers {
                false => (node, field),
                true => (field, node),
            },
            bytes: LEG_BYTES,
            // Both directions of a connection have ports of their own; one connection is opened after the other.
            flow: mix64((node as u64) << 1 | u64::from(leg.answers)),
        };
        let leg = Leg { sent: at, ..leg };
        let flight = wide.enter(load, Cargo::Leg(leg));
        queue.push(at, What::Hop { flight });
        if let Some(takes) = backup {
            let flight = wide.enter_at_end(load, Cargo::Leg(leg));
            queue.push(at + takes, What::Hop { flight });
        }
        true
    }

    /// A packet comes to a node of the wide-area network.
    pub fn hop(&mut self, queue: &mut Queue, flight: u32) -> Came {
        let now = queue.now();
        let hop = self.wide.as_mut().and_then(|wide| wide.hop(flight, now));
        match hop {
            None => Came::Nothing,
            Some(Hop::On(at)) => {
                queue.push(at, What::Hop { flight });
                Came::Nothing
            }
            Some(Hop::There(Cargo::Datagram(parcel))) => {
                self.launch(queue, now, parcel);
                Came::Datagram
            }
            Some(Hop::There(Cargo::Leg(leg))) => Came::Leg(leg),
            Some(Hop::Lost(Cargo::Datagram(parcel), _)) => Came::Lost(parcel),
            Some(Hop::Lost(Cargo::Leg(leg), _)) => Came::LostLeg(leg),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_copies_of_a_message_the_first_counts() {
        let (request, answer) = (Leg::new((3, 7), 0, false), Leg::new((3, 7), 0, true));
        assert!(request.is_awaited(7, false) && answer.is_awaited(7, true));
        // The request has come, and the next one has the same place.
        assert!(!request.is_awaited(7, true) && !answer.is_awaited(7, false));
        assert!(!request.is_awaited(8, false) && !answer.is_awaited(8, true));
    }

    #[test]
    fn what_is_lost_is_sent_again_after_twice_as_long_each_time_and_then_given_up() {
        let mut leg = Leg {
            sent: 1_000_000_000,
            ..Leg::new((0, 0), 0, false)
        };
        assert!(leg.is_first());
        for after_ms in [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600] {
            let (again, at) = leg.again().unwrap();
            assert_eq!(at, leg.sent + after_ms * 1_000_000);
            leg = Leg { sent: at, ..again };
            assert!(!leg.is_first());
        }
        assert_eq!(leg.again(), None);
    }
}
