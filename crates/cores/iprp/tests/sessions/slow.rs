//! Flows that send seldom, and networks whose answers take long: whether a receiver is there is known as soon, and as surely.

use bumpless_base::{Duration, Instant, Random};
use bumpless_iprp::{FEEDBACK_LEN, Mode, Receiver, ReceiverSetup, SenderEvent, SessionId};
use bumpless_secure::Secret;

use crate::pair::{Copied, MS, Pair, flow, receiver_setup};

/// A flow of one packet each `every`, as a driver passes it on.
struct Slow {
    pair: Pair,
    every: Duration,
    /// One way of both networks.
    half: Duration,
    /// Of 100 datagrams so many are lost.
    loss: u64,
    random: Random,
    is_alive: bool,
    wires: Vec<(Instant, Copied)>,
    answers: Vec<(Instant, Vec<u8>)>,
    /// When packets left in copies, and when as they were.
    sealed: Vec<Instant>,
    plain: Vec<Instant>,
    probes: usize,
    /// When it was told that the receiver counts as gone.
    suspended: Vec<Instant>,
}

impl Slow {
    fn begun(mode: Mode, every: Duration) -> Self {
        let mut pair = Pair::begun();
        pair.sender.set_mode(SessionId(0), mode);
        Self {
            pair,
            every,
            half: MS * 4,
            loss: 0,
            random: Random::new(7),
            is_alive: true,
            wires: Vec::new(),
            answers: Vec::new(),
            sealed: Vec::new(),
            plain: Vec::new(),
            probes: 0,
            suspended: Vec::new(),
        }
    }

    /// So many packets, and the time after each.
    fn send(&mut self, packets: usize) {
        for _ in 0..packets {
            let copies = self.pair.send(b"a packet");
            let left = match copies.is_empty() {
                true => &mut self.plain,
                false => &mut self.sealed,
            };
            left.push(self.pair.now);
            if copies.is_empty() && self.is_alive {
                self.pair.receiver.handle_monitored(self.pair.now, &flow());
            }
            self.transmit(copies);
            self.wait(self.every);
        }
    }

    fn wait(&mut self, time: Duration) {
        let end = self.pair.now + time;
        while self.pair.now < end {
            self.pair.pass(MS);
            self.arrive();
            let mut scratch = [0; 256];
            let mut copies = Vec::new();
            while let Some(copy) = self.pair.sender.poll_transmit(self.pair.now, &mut scratch) {
                copies.push((copy.ind, copy.to, copy.bytes.to_vec()));
            }
            let is_probe = |copy: &&Copied| copy.2.len() < b"a packet".len() + 47;
            self.probes += copies.iter().filter(is_probe).count();
            self.transmit(copies);
            while let Some(event) = self.pair.sender.poll_event() {
                if matches!(event, SenderEvent::Suspended { .. }) {
                    self.suspended.push(self.pair.now);
                }
            }
            while self.pair.receiver.poll_event().is_some() {}
        }
    }

    fn is_lost(&mut self) -> bool {
        self.random.below(100) < self.loss
    }

    fn transmit(&mut self, copies: Vec<Copied>) {
        for copy in copies {
            if !self.is_lost() {
                self.wires.push((self.pair.now + self.half, copy));
            }
        }
    }

    fn arrive(&mut self) {
        let now = self.pair.now;
        if self.is_alive {
            self.pair.control();
        }
        for (at, copy) in std::mem::take(&mut self.wires) {
            if at > now {
                self.wires.push((at, copy));
            } else if self.is_alive {
                let _ = self.pair.arrive(&copy);
            }
        }
        let mut answer = [0; FEEDBACK_LEN];
        while self.pair.receiver.poll_feedback(&mut answer).is_some() {
            if !self.is_lost() {
                self.answers.push((now + self.half, answer.to_vec()));
            }
        }
        for (at, mut answer) in std::mem::take(&mut self.answers) {
            if at > now {
                self.answers.push((at, answer));
            } else {
                let _ = self.pair.sender.handle_feedback(now, &mut answer);
            }
        }
    }

    /// The receiver's process ends; so that it was heard last when the last packet left.
    fn kill(&mut self) {
        self.is_alive = false;
        self.sealed.clear();
    }

    /// Another one begins that knows nothing of the one before.
    fn begin_receiver(&mut self) {
        let setup = ReceiverSetup {
            root: Secret::new([8; 32]),
            key_number: 1,
            seed: 77,
            ..receiver_setup()
        };
        self.pair.receiver = Receiver::new(setup, self.pair.now).unwrap();
        self.is_alive = true;
    }
}

/// Milliseconds between two packets.
const PERIODS: [u64; 8] = [10, 90, 250, 400, 999, 1_001, 5_000, 10_000];

#[test]
fn what_a_flow_of_any_rate_sends_to_a_dead_receiver_leaves_in_copies_for_a_second_at_most() {
    for mode in [Mode::Redundant, Mode::Standby] {
        for every in PERIODS {
            let mut slow = Slow::begun(mode, MS * every);
            slow.send(3);
            slow.kill();
            slow.send(4 + 3_000 / every as usize);
            let (first, last) = (slow.sealed[0], *slow.sealed.last().unwrap());
            // The last answer is to a question that was asked 250 ms before the first one that is not answered, at most.
            let what = format!("{mode:?}, every {every} ms");
            assert!(last.since(first) <= MS * 1_260, "{what}");
            assert!(slow.plain[0] > last && slow.plain.len() > 2, "{what}");
            assert_eq!(slow.suspended.len(), 1, "{what}");
            if every > 1_000 {
                let told = slow.suspended[0].since(first);
                assert!(told <= MS * 1_001, "{what}: told after {told}");
                assert_eq!(slow.sealed.len(), 1, "{what}");
            }
        }
    }
}

#[test]
fn a_flow_of_any_rate_loses_a_second_at_most_when_its_receiver_begins_with_a_fresh_root() {
    for mode in [Mode::Redundant, Mode::Standby] {
        for every in [100, 1_001, 10_000] {
            let mut slow = Slow::begun(mode, MS * every);
            slow.send(3);
            slow.kill();
            slow.begin_receiver();
            slow.send(3 + 3_000 / every as usize);
            let opened = slow.pair.receiver.totals().delivered as usize;
            let lost = slow.sealed.len() - opened;
            let most = 1_260_usize.div_ceil(every as usize);
            let what = format!("{mode:?}, every {every} ms");
            assert!((1..=most).contains(&lost), "{what}: {lost} lost");
            assert!(opened > 0, "{what}: replicated again");
        }
    }
}

#[test]
fn a_slow_flow_is_not_suspended_by_losses_nor_asked_about_without_need() {
    let mut sound = Slow::begun(Mode::Redundant, Duration::from_secs(10));
    sound.send(30);
    assert_eq!(
        (sound.probes, sound.plain.len(), sound.suspended.len()),
        (0, 0, 0)
    );
    let mut lossy = Slow::begun(Mode::Redundant, Duration::from_secs(2));
    lossy.loss = 10;
    lossy.send(300);
    let seen = (lossy.plain.len(), lossy.suspended.len());
    assert_eq!(seen, (0, 0), "three probes ask on two networks");
    // Four of 100 questions have no answer on either network. Each is asked again, on both.
    assert!((6..60).contains(&lossy.probes), "{}", lossy.probes);
}

#[test]
fn what_asks_by_itself_is_not_asked_about_however_long_its_answers_take() {
    for every in [10, 90, 229] {
        let mut quick = Slow::begun(Mode::Redundant, MS * every);
        quick.half = MS * 300;
        quick.send(10_000 / every as usize);
        let seen = (quick.probes, quick.plain.len(), quick.suspended.len());
        assert_eq!(seen, (0, 0, 0), "every {every} ms");
    }
}

/// A driver is never there to the microsecond.
#[test]
fn a_flow_that_has_paused_wakes_nobody() {
    for late in [0, 50, 700, 249_000].map(Duration::from_micros) {
        for mode in [Mode::Redundant, Mode::Standby] {
            let mut slow = Slow::begun(mode, MS * 100);
            slow.send(3);
            slow.kill();
            slow.send(20);
            assert_eq!(slow.suspended.len(), 1);
            let pair = &mut slow.pair;
            let (mut scratch, mut wakes) = ([0; 256], 0);
            let end = pair.now + Duration::from_secs(20);
            while pair.sender.poll_timeout() < end && wakes < 1_000 {
                pair.now = pair.sender.poll_timeout().max(pair.now) + late;
                wakes += 1;
                while pair.sender.poll_transmit(pair.now, &mut scratch).is_some() {}
            }
            assert!(wakes < 50, "{mode:?}, {late} late: woken {wakes} times");
        }
    }
}

/// A satellite's: the next question leaves before the answer to the one before has come.
#[test]
fn standby_learns_round_trips_that_are_longer_than_its_questions_are_apart() {
    for half in [75, 150, 300, 400].map(|half| MS * half) {
        for every in [10, 50, 700] {
            let mut slow = Slow::begun(Mode::Standby, MS * every);
            slow.half = half;
            slow.send(10_000 / every as usize);
            let paths = |slow: &Slow| -> Vec<_> {
                let session = slow.pair.sender.session(SessionId(0)).unwrap();
                session.paths().collect()
            };
            let again = |slow: &Slow| -> u64 {
                let paths = paths(slow);
                paths.iter().map(|path| path.departures.again).sum()
            };
            let before = again(&slow);
            slow.send(20_000 / every as usize);
            let what = format!("{half} and back, every {every} ms");
            let paths = paths(&slow);
            assert!(paths[0].carries && !paths[0].silent, "{what}: {paths:?}");
            assert!(!paths[1].silent, "{what}: {paths:?}");
            for path in paths {
                let measured = path.round_trip.unwrap();
                let off = measured.saturating_sub(half * 2) + (half * 2).saturating_sub(measured);
                assert!(off <= MS * 3, "{what}: {path:?}");
            }
            assert_eq!(again(&slow), before, "{what}: nothing is lost");
        }
    }
}
