//! What is due for other hosts, told as far as the control plane has room for it; and when the end has been told.

use bumpless_base::{Duration, Instant};
use bumpless_iprp::{MAX_MESSAGE, Receiver};
use bumpless_secure::Suite;
use rtrb::Producer;

use crate::closed::Kind;
use crate::exchange::ToControl;

/// For how long copies are still taken when all senders have been told of the end.
const FAREWELL: Duration = Duration::from_millis(200);
/// How long it may take to tell them.
const LONGEST: Duration = Duration::from_millis(1_500);

/// What was told in one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// Whether nothing more is due.
    pub is_all: bool,
    /// Whether it was anything.
    pub is_any: bool,
}

/// Tells what `receiver` has for other hosts, and what has happened by that. A quarter of the room is left to replies and to what is
/// captured: what is due then stays due, as one that was taken out and not told would be lost.
pub(super) fn tell_due<S: Suite>(
    now: Instant,
    receiver: &mut Receiver<S>,
    outbox: &mut Producer<ToControl>,
    untold: &mut u64,
) -> Told {
    let reserved = outbox.buffer().capacity() / 4;
    let mut message = [0; MAX_MESSAGE];
    let mut is_any = false;
    while outbox.slots() > reserved {
        let Some(due) = receiver.poll_advertisement(now, &mut message) else {
            return Told {
                is_all: true,
                is_any,
            };
        };
        is_any = true;
        let mut tell = |it| *untold += u64::from(outbox.push(it).is_err());
        tell(ToControl::Send {
            to: due.to,
            kind: Kind::ForSender,
            message: message[..due.len].to_vec(),
        });
        while let Some(event) = receiver.poll_event() {
            tell(ToControl::Receiver(event));
        }
    }
    Told {
        is_all: false,
        is_any,
    }
}

/// The end of the thread: when it is over.
#[derive(Debug)]
pub(super) struct Farewell {
    /// Whether or not all senders have been told.
    latest: Instant,
    /// Since they have.
    over: Option<Instant>,
}

impl Farewell {
    /// Begins at `now`.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            latest: now + LONGEST,
            over: None,
        }
    }

    /// All senders have been told by `now`.
    pub(super) fn all_told(&mut self, now: Instant) {
        self.over.get_or_insert(now + FAREWELL);
    }

    /// When it is over, as far as is known.
    pub(super) fn until(&self) -> Instant {
        self.over.unwrap_or(self.latest)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use bumpless_iprp::{
        Flow, Ind, Monitored, Network, Networks, Origin, PeerId, ReceiverLimits, ReceiverSetup,
        Sender, SenderLimits, SenderSetup, Side, Timing, UDP,
    };
    use bumpless_secure::{RingSuite, Secret};
    use rtrb::RingBuffer;

    use super::*;

    const SESSIONS: u16 = 500;
    const FIRST: u16 = 5_000;
    const NOW: Instant = Instant::from_nanos(1_000_000_000);

    fn address(host: u8) -> IpAddr {
        IpAddr::from([10, 1, 0, host])
    }

    fn networks(host: u8) -> Networks {
        Networks::new(&[Network {
            ind: Ind::new(1).unwrap(),
            address: address(host),
        }])
        .unwrap()
    }

    fn sender() -> Sender<RingSuite> {
        Sender::new(SenderSetup {
            networks: networks(1),
            groups: Vec::new(),
            limits: SenderLimits {
                sessions: SESSIONS.into(),
                kept_packets: 0,
                kept_len: 0,
            },
            seed: 1,
        })
        .unwrap()
    }

    /// A receiver that has seen a packet of each flow.
    fn receiver() -> Receiver<RingSuite> {
        let setup = ReceiverSetup {
            networks: networks(2),
            monitored: vec![Monitored {
                protocol: UDP,
                side: Side::Destination,
                first: FIRST,
                last: FIRST + SESSIONS,
            }],
            groups: Vec::new(),
            root: Secret::new([7; 32]),
            key_number: 5,
            timing: Timing::default(),
            limits: ReceiverLimits {
                sessions: SESSIONS.into(),
                candidates: SESSIONS.into(),
                max_lost: 64,
            },
            seed: 3,
        };
        let mut receiver = Receiver::new(setup, NOW).unwrap();
        for at in 0..SESSIONS {
            let flow = Flow {
                protocol: UDP,
                source: address(1),
                destination: address(2),
                source_port: 40_000,
                destination_port: FIRST + at,
            };
            receiver.handle_monitored(NOW, &flow);
        }
        receiver
    }

    /// Tells all, through a ring that has little room; the messages, in how many turns, and events beside them.
    fn told_in_turns(receiver: &mut Receiver<RingSuite>) -> (Vec<Vec<u8>>, usize, usize) {
        let (mut outbox, mut inbox) = RingBuffer::new(64);
        let (mut messages, mut turns, mut events, mut untold) = (Vec::new(), 0, 0, 0);
        loop {
            let told = tell_due(NOW, receiver, &mut outbox, &mut untold);
            assert!(outbox.slots() >= 15, "room is left to others");
            turns += 1;
            while let Ok(it) = inbox.pop() {
                match it {
                    ToControl::Send { message, .. } => messages.push(message),
                    _ => events += 1,
                }
            }
            assert_eq!(untold, 0);
            if told.is_all {
                return (messages, turns, events);
            }
            assert!(told.is_any);
        }
    }

    #[test]
    fn every_sender_is_told_of_the_end_however_little_room_there_is() {
        let (mut sender, mut receiver) = (sender(), receiver());
        let origin = |host: u8| Origin {
            peer: PeerId(host.into()),
            address: address(host),
        };
        let mut answer = [0; MAX_MESSAGE];
        // Of the first advertisement the sender's name is learnt, with the second one comes its key.
        for _ in 0..2 {
            for message in told_in_turns(&mut receiver).0 {
                let len = sender.handle_message(NOW, origin(2), &message, &mut answer);
                let answer = &answer[..len.unwrap()];
                receiver.handle_message(NOW, origin(1), answer).unwrap();
                while receiver.poll_event().is_some() {}
            }
        }
        assert_eq!(sender.sessions().count(), usize::from(SESSIONS));

        receiver.withdraw();
        let (messages, turns, events) = told_in_turns(&mut receiver);
        assert!(turns > 1, "{turns}");
        let all = usize::from(SESSIONS);
        assert_eq!((messages.len(), events), (all, all));
        for message in messages {
            let _ = sender.handle_message(NOW, origin(2), &message, &mut answer);
        }
        assert_eq!(sender.sessions().count(), 0);
        assert_eq!(receiver.totals().events_lost, 0);
    }

    #[test]
    fn the_end_waits_until_all_are_told_and_not_for_ever() {
        let mut farewell = Farewell::new(NOW);
        assert_eq!(farewell.until(), NOW + LONGEST);
        let later = NOW + Duration::from_millis(700);
        farewell.all_told(later);
        assert_eq!(farewell.until(), later + FAREWELL);
        // Nothing that is told after it makes it longer.
        farewell.all_told(later + FAREWELL);
        assert_eq!(farewell.until(), later + FAREWELL);
    }
}
