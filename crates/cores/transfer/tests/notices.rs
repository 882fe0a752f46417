//! What a receiver tells, and what becomes of it when nobody collects it.

use bumpless_base::{ChannelId, Counter, Duration, Instant, LinkId, LinkSet, PeerId};
use bumpless_transfer::{Receiver, ReceiverChannel, ReceiverEvent, ReceiverPeer};
use bumpless_wire::{DataHeader, WireVersion};

const PEER: PeerId = PeerId(0);
const TAG: u32 = 7;
/// A state is overdue so long after the one before.
const TIMEOUT: Duration = Duration::from_millis(1);

fn id() -> ChannelId {
    ChannelId::new(1).unwrap()
}

struct Bench {
    receiver: Receiver,
    now: Instant,
    cycle: u32,
}

impl Bench {
    fn new() -> Self {
        let peer = ReceiverPeer {
            version: WireVersion::V2,
            payload_size: 100,
            in_flight_max: 16,
        };
        let channel = ReceiverChannel {
            id: id(),
            peer: PEER,
            links: LinkSet::first(1),
            max_size: 10,
            expect_within: TIMEOUT,
        };
        let (mut receiver, _) = Receiver::new(&[peer], &[channel]).unwrap();
        let now = Instant::from_nanos(1_000_000_000);
        receiver.set_session(PEER, Some(TAG), now);
        Self {
            receiver,
            now,
            cycle: 0,
        }
    }

    /// A whole state comes.
    fn state(&mut self) {
        self.cycle += 1;
        let header = DataHeader {
            version: WireVersion::V2,
            tag: TAG,
            channel: id(),
            link: LinkId(0),
            retransmission: false,
            short: false,
            cycle: self.cycle,
            sequence: 0,
            total_size: 10,
            expiry: Duration::from_secs(1),
            force_ack: None,
        };
        self.receiver
            .handle_data(PEER, LinkId(0), &header, &[0; 10], self.now);
    }

    /// The next one does not come in time.
    fn silence(&mut self) {
        self.now += TIMEOUT;
        self.receiver.handle_timeout(self.now);
    }

    fn lost(&self) -> u64 {
        self.receiver.counters().get(Counter::EventsLost)
    }

    /// The cycles of all updates that are told.
    fn updates(&mut self) -> Vec<u32> {
        let events = std::iter::from_fn(|| self.receiver.poll_event());
        events
            .filter_map(|event| match event {
                ReceiverEvent::Updated { cycle, .. } => Some(cycle),
                ReceiverEvent::Overdue { .. } => None,
            })
            .collect()
    }
}

#[test]
fn of_updates_that_wait_only_the_latest_is_told() {
    let mut bench = Bench::new();
    (0..100).for_each(|_| bench.state());
    assert_eq!((bench.updates(), bench.lost()), (vec![100], 0));
    bench.state();
    assert_eq!(bench.updates(), [101]);
}

#[test]
fn an_update_that_found_no_room_keeps_no_later_one_back() {
    let mut bench = Bench::new();
    bench.state();
    while bench.lost() == 0 {
        bench.silence();
        bench.state();
    }
    // The first one, whose place is taken by what follows, so that the next update finds none.
    assert!(matches!(
        bench.receiver.poll_event(),
        Some(ReceiverEvent::Updated { .. })
    ));
    bench.silence();
    let lost = bench.lost();
    bench.state();
    assert_eq!(bench.lost(), lost + 1);
    assert_eq!(bench.updates(), []);
    bench.state();
    assert_eq!(bench.updates(), [bench.cycle]);
}
