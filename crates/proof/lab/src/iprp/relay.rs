//! The networks between two hosts: frames pass through here, copies are recorded, lost and delayed.
//!
//! What becomes of a copy is decided by [`Way`], which knows neither devices nor clocks. Only copies from the first host to the
//! second one are lost by chance and delayed, unless a fault is of all frames; a cut takes everything.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use bumpless_base::{Duration, Instant, Random};
use bumpless_net_linux::{Clock, Poller, Waker, realtime};
use serde::Serialize;

use super::port::{HEADER, Port};

/// Above everything that it serves, so that it is the network and not the scheduler that delays.
const PRIORITY: u8 = 40;
/// Frames that are taken from one end before the others have their turn.
const BATCH: usize = 64;
/// Most frames that wait at a time, and most copies that are recorded.
const WAITING_MAX: usize = 1 << 16;
const RECORDED_MAX: usize = 1 << 22;
/// Longest sleep; orders wake it.
const IDLE: Duration = Duration::from_millis(200);
/// Where in a frame the UDP payload lies: behind Ethernet, IPv4 without options, UDP.
const PAYLOAD: usize = 14 + 20 + 8;

/// By how much copies are delayed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delay {
    /// At least, nanoseconds.
    pub least_ns: u64,
    /// Uniformly up to so much more.
    pub spread_ns: u64,
}

/// Which copies are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each with this probability, independently.
    Independent(f64),
    /// In bursts, as Gilbert and Elliott have it.
    Bursty(Burst),
}

/// The model of Gilbert and Elliott.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// From good to bad, at each packet.
    pub to_bad: f64,
    /// From bad to good.
    pub to_good: f64,
    /// Loss in the good state.
    pub in_good: f64,
    /// Loss in the bad state.
    pub in_bad: f64,
}

/// What is wrong with a network.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fault {
    /// Nothing passes.
    pub cut: bool,
    /// Which copies are lost.
    pub loss: Loss,
    /// By how much they are delayed.
    pub delay: Delay,
    /// Loss and delay befall everything from the first host to the second one, not copies alone.
    pub of_all: bool,
}

/// What a network did with frames from the first host to the second one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// All of them.
    pub left: u64,
    /// Lost by chance.
    pub lost: u64,
    /// Lost by a cut.
    pub cut: u64,
    /// Passed, and were held back for longer than a millisecond.
    pub delayed: u64,
}

/// What has become of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// On which network, as numbered from 0.
    pub network: usize,
    /// The tag of the sender's process, which tells it from the one before a restart.
    pub process: u64,
    /// The session's number space.
    pub space: u32,
    /// Its number in that.
    pub number: u32,
    /// When it left the sender (nanoseconds of CLOCK_BOOTTIME).
    pub left_ns: u64,
    /// When it reached the receiver; `None`: it was lost.
    pub came_ns: Option<u64>,
}

impl Tally {
    /// Both together.
    pub fn with(self, other: Self) -> Self {
        Self {
            left: self.left + other.left,
            lost: self.lost + other.lost,
            cut: self.cut + other.cut,
            delayed: self.delayed + other.delayed,
        }
    }

    fn count(&mut self, is_cut: bool, delay: Option<u64>) {
        self.left += 1;
        match delay {
            None if is_cut => self.cut += 1,
            None => self.lost += 1,
            Some(delay) => self.delayed += u64::from(delay > 1_000_000),
        }
    }
}

/// 64 bits that hang on each of those given.
fn mixed(bits: u64) -> u64 {
    Random::new(bits).next_u64()
}

/// The space in which frames are numbered that are no copies. A sender counts its sessions from 0, and comes to this number in no
/// run of the lab; if one did, no more than the draws of both would be alike.
const NO_SPACE: u32 = u32::MAX;

/// A network from the first host to the second.
pub struct Way {
    pub fault: Fault,
    seed: u64,
    /// Frames that are no copies, and that a fault befell.
    others: u32,
    /// Whether the packets of a space are in the bad state: each flow has bursts of its own, as if it were alone.
    bad: BTreeMap<u32, bool>,
}

impl Way {
    /// One that draws from `seed` and its own number.
    pub fn of(seed: u64, network: usize) -> Self {
        Self::new(mixed(seed).wrapping_add(network as u64 + 1))
    }

    fn new(seed: u64) -> Self {
        Self {
            fault: Fault::default(),
            seed,
            others: 0,
            bad: BTreeMap::new(),
        }
    }

    /// By how much a copy is delayed; `None`: it is lost. That is drawn from the copy's own numbers, so that what befalls one
    /// hangs neither on when it comes nor on how many came before it on this network.
    pub fn pass(&mut self, space: u32, number: u32) -> Option<u64> {
        let copy = u64::from(space) << 32 | u64::from(number);
        let mut random = Random::new(mixed(self.seed ^ mixed(copy)));
        let Delay {
            least_ns,
            spread_ns,
        } = self.fault.delay;
        let is_lost = match self.fault.loss {
            Loss::None => false,
            Loss::Independent(probability) => random.chance(probability),
            Loss::Bursty(burst) => {
                let bad = self.bad.entry(space).or_default();
                let turns = if *bad { burst.to_good } else { burst.to_bad };
                *bad ^= random.chance(turns);
                let loss = if *bad { burst.in_bad } else { burst.in_good };
                random.chance(loss)
            }
        };
        let more = random.below(spread_ns.max(1));
        (!is_lost).then_some(least_ns + more)
    }

    /// The same of a frame from the first host that is no copy.
    fn pass_other(&mut self) -> Option<u64> {
        if !self.fault.of_all {
            return Some(0);
        }
        self.others = self.others.wrapping_add(1);
        self.pass(NO_SPACE, self.others)
    }
}

/// The process's tag, space and number of the copy in `frame`, if it is one for this port.
fn copy_in(frame: &[u8], port: u16) -> Option<(u64, u32, u32)> {
    let word = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
    let long = |at: usize| Some(u32::from_be_bytes(*frame.get(at..)?.first_chunk()?));
    let is_udp = word(12)? == 0x0800 && *frame.get(14)? == 0x45 && *frame.get(23)? == 17;
    let is_data = is_udp && word(36)? == port && frame.get(PAYLOAD + 1)? & 0x80 == 0;
    if !is_data {
        return None;
    }
    let tag = u64::from_be_bytes(*frame.get(PAYLOAD + 2..)?.first_chunk()?);
    Some((tag, long(PAYLOAD + 10)?, long(PAYLOAD + 14)?))
}

enum Order {
    Faults(Vec<Fault>),
    Take(Sender<Vec<Copied>>),
    Tally(Sender<Vec<Tally>>),
    End,
}

/// The running networks; they end with this value.
#[derive(Debug)]
pub struct Relay {
    orders: Sender<Order>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Networks between these ends; copies are what goes to the UDP port `data`. Draws from `seed`.
    ///
    /// # Errors
    /// There is no thread or descriptor to be had.
    pub fn start(ends: Vec<[Port; 2]>, data: u16, seed: u64) -> io::Result<Self> {
        let waker = Waker::new()?;
        let (orders, ordered) = channel();
        let wakes = waker.clone();
        let thread = thread::Builder::new().name("relay".into()).spawn(move || {
            // Without the permission it is as prompt as everything else.
            let _ = realtime::set_fifo(PRIORITY);
            let _ = realtime::tighten_timers();
            Carrier::new(ends, data, seed).serve(&ordered, wakes);
        })?;
        Ok(Self {
            orders,
            waker,
            thread: Some(thread),
        })
    }

    fn order(&self, order: Order) {
        let _ = self.orders.send(order);
        self.waker.wake();
    }

    /// What is wrong with each network from here on.
    pub fn set(&self, faults: Vec<Fault>) {
        self.order(Order::Faults(faults));
    }

    /// What has become of copies since this was asked last. One that is on its way counts as come.
    pub fn take(&self) -> Vec<Copied> {
        let (sender, receiver) = channel();
        self.order(Order::Take(sender));
        receiver.recv().unwrap_or_default()
    }

    /// What each network did since this was asked last.
    pub fn tally(&self) -> Vec<Tally> {
        let (sender, receiver) = channel();
        self.order(Order::Tally(sender));
        receiver.recv().unwrap_or_default()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.order(Order::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A frame on its way: when it is due, in which order, to which end, and itself.
type Waiting = (u64, u64, usize, Vec<u8>);

struct Carrier {
    /// Both ends of each network, one behind the other.
    ports: Vec<Port>,
    ways: Vec<Way>,
    data: u16,
    waiting: BinaryHeap<Reverse<Waiting>>,
    order: u64,
    copies: Vec<Copied>,
    tallies: Vec<Tally>,
}

impl Carrier {
    fn new(ends: Vec<[Port; 2]>, data: u16, seed: u64) -> Self {
        let tallies = vec![Tally::default(); ends.len()];
        let ways = (0..ends.len()).map(|network| Way::of(seed, network));
        Self {
            ways: ways.collect(),
            ports: ends.into_iter().flatten().collect(),
            data,
            waiting: BinaryHeap::new(),
            order: 0,
            copies: Vec::new(),
            tallies,
        }
    }

    fn serve(mut self, orders: &Receiver<Order>, waker: Waker) {
        let descriptors: Vec<_> = self.ports.iter().map(AsRawFd::as_raw_fd).collect();
        let mut poller = Poller::new(&descriptors, waker);
        loop {
            let due = self.waiting.peek().map(|Reverse(first)| first.0);
            let until = due.map_or_else(|| Clock.now() + IDLE, Instant::from_nanos);
            // Out of memory for a moment: the next turn looks again.
            let ready = poller.wait(until).unwrap_or_default();
            for order in orders.try_iter() {
                match order {
                    Order::Faults(faults) => {
                        for (way, fault) in self.ways.iter_mut().zip(faults) {
                            way.fault = fault;
                        }
                    }
                    Order::Take(to) => {
                        let _ = to.send(std::mem::take(&mut self.copies));
                    }
                    Order::Tally(to) => {
                        let none = vec![Tally::default(); self.tallies.len()];
                        let _ = to.send(std::mem::replace(&mut self.tallies, none));
                    }
                    Order::End => return,
                }
            }
            for end in 0..self.ports.len() {
                if ready.contains(end) {
                    self.receive(end);
                }
            }
            self.send_due();
        }
    }

    fn receive(&mut self, end: usize) {
        let now = Clock.now().as_nanos();
        for _ in 0..BATCH {
            let Some(frame) = self.ports[end].receive() else {
                return;
            };
            let (network, to) = (end / 2, end ^ 1);
            let way = &mut self.ways[network];
            let leaves = end.is_multiple_of(2);
            let copy =
                copy_in(frame.get(HEADER..).unwrap_or_default(), self.data).filter(|_| leaves);
            let delay = match (way.fault.cut, copy) {
                (true, _) => None,
                (false, Some((_, space, number))) => way.pass(space, number),
                (false, None) if leaves => way.pass_other(),
                (false, None) => Some(0),
            };
            if leaves {
                self.tallies[network].count(way.fault.cut, delay);
            }
            let room = self.waiting.len() < WAITING_MAX;
            let came_ns = delay.filter(|_| room).map(|delay| now + delay);
            if let Some((process, space, number)) =
                copy.filter(|_| self.copies.len() < RECORDED_MAX)
            {
                self.copies.push(Copied {
                    network,
                    process,
                    space,
                    number,
                    left_ns: now,
                    came_ns,
                });
            }
            if let Some(due) = came_ns {
                self.order += 1;
                self.waiting.push(Reverse((due, self.order, to, frame)));
            }
        }
    }

    fn send_due(&mut self) {
        let now = Clock.now().as_nanos();
        while self.waiting.peek().is_some_and(|Reverse(it)| it.0 <= now) {
            if let Some(Reverse((_, _, to, frame))) = self.waiting.pop() {
                self.ports[to].send(&frame);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(loss: Loss, count: u32) -> Vec<bool> {
        let mut way = Way::new(7);
        way.fault.loss = loss;
        (0..count)
            .map(|number| way.pass(1, number).is_none())
            .collect()
    }

    fn share(lost: &[bool]) -> f64 {
        lost.iter().filter(|it| **it).count() as f64 / lost.len() as f64
    }

    #[test]
    fn both_natures_of_loss_take_one_in_twenty_and_only_one_of_them_in_bursts() {
        let paper = Burst {
            to_bad: 0.01,
            to_good: 0.19,
            in_good: 0.01,
            in_bad: 0.81,
        };
        let after_a_loss = |lost: &[bool]| {
            let next: Vec<_> = lost.windows(2).filter(|it| it[0]).map(|it| it[1]).collect();
            share(&next)
        };
        let (single, bursts) = (
            lost(Loss::Independent(0.05), 200_000),
            lost(Loss::Bursty(paper), 200_000),
        );
        assert!((share(&single) - 0.05).abs() < 0.003, "{}", share(&single));
        assert!((share(&bursts) - 0.05).abs() < 0.005, "{}", share(&bursts));
        assert!(after_a_loss(&single) < 0.06);
        assert!(after_a_loss(&bursts) > 0.4, "{}", after_a_loss(&bursts));
        assert_eq!(share(&lost(Loss::None, 1000)), 0.0);
    }

    #[test]
    fn networks_lose_independently_of_each_other_and_the_same_copies_each_time() {
        let lost = |network: u64| {
            let mut way = Way::new(mixed(1).wrapping_add(network));
            way.fault.loss = Loss::Independent(0.05);
            let all = (0..20u32).flat_map(|space| (0..10_000).map(move |number| (space, number)));
            all.map(|(space, number)| way.pass(space, number).is_none())
                .collect::<Vec<_>>()
        };
        let (a, b) = (lost(1), lost(2));
        let both: Vec<_> = a.iter().zip(&b).map(|(a, b)| *a && *b).collect();
        // Three standard deviations of 500.
        let expected = share(&a) * share(&b) * both.len() as f64;
        let found = share(&both) * both.len() as f64;
        assert!((found - expected).abs() < 67.0, "{found} {expected}");
        assert_eq!(a, lost(1));
    }

    #[test]
    fn what_is_no_copy_passes_unless_the_fault_is_of_all() {
        let mut way = Way::new(7);
        way.fault.loss = Loss::Independent(0.4);
        assert!((0..1_000).all(|_| way.pass_other() == Some(0)));
        way.fault.of_all = true;
        let lost = (0..10_000).filter(|_| way.pass_other().is_none()).count();
        assert!((3_800..4_200).contains(&lost), "{lost}");
    }

    #[test]
    fn delays_are_uniform_between_their_bounds() {
        let mut way = Way::new(3);
        way.fault.delay = Delay {
            least_ns: 5,
            spread_ns: 10,
        };
        let mut seen = [0; 20];
        for number in 0..10_000 {
            seen[way.pass(0, number).unwrap() as usize] += 1;
        }
        assert!(seen[..5].iter().chain(&seen[15..]).all(|count| *count == 0));
        assert!(seen[5..15].iter().all(|count| *count > 800), "{seen:?}");
    }

    #[test]
    fn only_copies_for_the_data_port_are_recorded_and_nothing_is_read_beyond_a_frame() {
        let mut frame = vec![0; PAYLOAD + 60];
        frame[12..15].copy_from_slice(&[8, 0, 0x45]);
        frame[23] = 17;
        frame[36..38].copy_from_slice(&4761u16.to_be_bytes());
        frame[PAYLOAD + 9..PAYLOAD + 18].copy_from_slice(&[9, 0, 0, 0, 4, 0, 0, 1, 1]);
        assert_eq!(copy_in(&frame, 4761), Some((9, 4, 257)));
        assert_eq!(copy_in(&frame, 4760), None);
        for length in 0..PAYLOAD + 18 {
            assert_eq!(copy_in(&frame[..length], 4761), None, "{length}");
        }
        // An answer is none.
        frame[PAYLOAD + 1] = 0x80;
        assert_eq!(copy_in(&frame, 4761), None);
    }
}
