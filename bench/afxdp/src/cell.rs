//! One measurement: who receives on one processor, who sends on another.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration as Pause;

use bumpless_base::Duration;
use bumpless_net_linux::{Clock, UdpConfig, UdpLink};

use crate::namespace::Namespace;
use crate::sender::{HEADER, Sent, Stream, read, send, send_state};
use crate::threads::{self, RECEIVER, SENDER, Urgency};
use crate::way::Way;
use crate::world::{THERE, World};

/// Below the interface's own thread.
pub const URGENT: Urgency = Urgency::RealTime(40);
/// What the first datagrams take is not counted.
const WARM: u64 = 20;
/// Datagrams of a state of 1 MB.
pub const DATAGRAMS: usize = 715;
const BYTES: usize = 1400;
const FILL: u8 = 9;

/// What is sent and how it is received.
pub struct Task {
    pub streams: Vec<Stream>,
    pub nanoseconds: u64,
    pub busy: bool,
    /// Whether sockets ask the interface with each read.
    pub asks: bool,
    pub urgency: Urgency,
    /// What each datagram of the second flow costs its receiver.
    pub work_ns: u64,
    /// Whether one-way times are taken.
    pub stamped: bool,
}

/// What became of it.
#[derive(Default)]
pub struct Outcome {
    pub sender: Sent,
    pub received: [u64; 2],
    /// One-way times of each flow, nanoseconds.
    pub took: [Vec<u64>; 2],
    /// Time in the calls that take datagrams.
    pub taking_ns: u64,
    /// Processor time of the receiver.
    pub receiver_ns: u64,
    /// Processor time of the interface's own thread.
    pub thread_ns: u64,
}

fn rest() {
    thread::sleep(Pause::from_millis(120));
}

fn now() -> u64 {
    Clock.now().as_nanos()
}

/// Runs `receive` in one namespace and `send` in the other once the first is ready; each with its processor.
fn both<R: Send, S: Send>(
    (here, there): (&Namespace, &Namespace),
    urgency: Urgency,
    receive: impl FnOnce(&AtomicBool, &AtomicBool) -> Result<R, String> + Send,
    send: impl FnOnce() -> Result<S, String> + Send,
) -> Result<(R, S), String> {
    rest();
    let (ready, done) = (&AtomicBool::new(false), &AtomicBool::new(false));
    thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let result = here.run(|| {
                threads::place(0, RECEIVER, urgency)?;
                receive(ready, done)
            });
            ready.store(true, Ordering::Release);
            result?
        });
        while !ready.load(Ordering::Acquire) {
            thread::sleep(Pause::from_millis(1));
        }
        let sent = there.run(|| {
            threads::place(0, SENDER, URGENT)?;
            send()
        });
        done.store(true, Ordering::Release);
        let received = receiver
            .join()
            .map_err(|_| "the receiver ended by a panic".to_owned())??;
        Ok((received, sent??))
    })
}

/// Runs a task in a world.
pub fn run(world: &mut World, task: &Task) -> Result<Outcome, String> {
    let mut rings = world.rings.take();
    let before = world.thread.map_or(0, threads::spent);
    let result = both(
        (&world.here, &world.there),
        task.urgency,
        |ready, done| {
            receive(
                Way::open(rings.as_mut(), task.streams.len(), task.asks)?,
                task,
                ready,
                done,
            )
        },
        || send(&task.streams, task.nanoseconds),
    );
    world.rings = rings;
    let (mut outcome, sent) = result?;
    outcome.sender = sent;
    outcome.thread_ns = world.thread.map_or(0, threads::spent) - before;
    Ok(outcome)
}

fn receive(
    mut way: Way<'_>,
    task: &Task,
    ready: &AtomicBool,
    done: &AtomicBool,
) -> Result<Outcome, String> {
    let flows = task.streams.len();
    for flow in 0..flows {
        while way.receive(flow, &mut |_| ()) {}
    }
    let mut outcome = Outcome::default();
    outcome.took.iter_mut().for_each(|it| it.reserve(1 << 17));
    ready.store(true, Ordering::Release);
    let before = Clock.computed();
    let mut last = now();
    loop {
        way.wait(Clock.now() + Duration::from_millis(2), task.busy);
        let came = outcome.received;
        let began = now();
        loop {
            let Outcome { received, took, .. } = &mut outcome;
            let mut take = |flow: usize, datagram: &[u8]| {
                received[flow] += 1;
                let (number, sent) = read(datagram);
                if task.stamped && number >= WARM {
                    took[flow].push(now().saturating_sub(sent));
                }
                if flow == 1 && task.work_ns > 0 {
                    let end = now() + task.work_ns;
                    while now() < end {}
                }
            };
            // The urgent flow first and as long as it has something, a turn of the other then.
            while way.receive(0, &mut |it| take(0, it)) {}
            if flows < 2 || !way.receive(1, &mut |it| take(1, it)) {
                break;
            }
        }
        if outcome.received != came {
            last = now();
            outcome.taking_ns += last - began;
        } else if done.load(Ordering::Acquire) && now() > last + 3_000_000 {
            break;
        }
    }
    outcome.receiver_ns = (Clock.computed().as_nanos()).saturating_sub(before.as_nanos());
    Ok(outcome)
}

/// States of 1 MB, one after the other.
#[derive(Default)]
pub struct States {
    /// Nanoseconds from the first byte in the program's memory to the last.
    pub spread: Vec<u64>,
    /// Nanoseconds from before the first call that sends to the last byte in the program's memory.
    pub whole: Vec<u64>,
    pub incomplete: u64,
    /// Buffers in which the kernel gave them to sockets.
    pub buffers: u64,
    pub receiver_ns: u64,
    pub thread_ns: u64,
}

/// Sends `count` states with `distance` nanoseconds between each 44 datagrams.
pub fn states(world: &mut World, busy: bool, distance: u64, count: u64) -> Result<States, String> {
    let mut rings = world.rings.take();
    let before = world.thread.map_or(0, threads::spent);
    let whole = AtomicU64::new(0);
    let result = both(
        (&world.here, &world.there),
        URGENT,
        |ready, done| {
            take_states(
                Way::open(rings.as_mut(), 1, busy)?,
                busy,
                &whole,
                (ready, done),
            )
        },
        || {
            let local = format!("{THERE}:0").parse().expect("an address");
            let mut link =
                UdpLink::open(&UdpConfig::new(local)).map_err(|error| error.to_string())?;
            let state = vec![FILL; DATAGRAMS * (BYTES - HEADER)];
            for _ in 0..count {
                let had = whole.load(Ordering::Acquire);
                send_state(&mut link, &state, BYTES, distance);
                let end = now() + 5_000_000;
                while whole.load(Ordering::Acquire) == had && now() < end {
                    thread::yield_now();
                }
                thread::sleep(Pause::from_millis(2));
            }
            Ok(())
        },
    );
    world.rings = rings;
    let (mut states, ()) = result?;
    states.incomplete = count - states.whole.len() as u64;
    states.thread_ns = world.thread.map_or(0, threads::spent) - before;
    Ok(states)
}

fn take_states(
    mut way: Way<'_>,
    busy: bool,
    complete: &AtomicU64,
    (ready, done): (&AtomicBool, &AtomicBool),
) -> Result<States, String> {
    const PART: usize = BYTES - HEADER;
    let mut state = vec![0u8; DATAGRAMS * PART];
    while way.receive(0, &mut |_| ()) {}
    let mut states = States::default();
    // When the state at hand was sent, when its first byte was there, and how much of it is.
    let (mut at_hand, mut first, mut had) = (0, 0, 0);
    ready.store(true, Ordering::Release);
    let (before, buffers) = (Clock.computed(), buffers());
    let mut last = now();
    loop {
        way.wait(Clock.now() + Duration::from_millis(2), busy);
        let mut came = false;
        let mut take = |datagram: &[u8]| {
            came = true;
            let (number, sent) = read(datagram);
            let at = number as usize * PART;
            if let (Some(place), Some(payload)) =
                (state.get_mut(at..at + PART), datagram.get(HEADER..))
            {
                place.copy_from_slice(payload);
            }
            if sent != at_hand {
                (at_hand, first, had) = (sent, now(), 0);
            }
            had += 1;
            if had == DATAGRAMS {
                let end = now();
                states.spread.push(end - first);
                states.whole.push(end - at_hand);
                complete.fetch_add(1, Ordering::Release);
            }
        };
        while way.receive(0, &mut take) {}
        if came {
            last = now();
        } else if done.load(Ordering::Acquire) && now() > last + 3_000_000 {
            break;
        }
    }
    let whole = states.whole.is_empty() || state.iter().all(|&byte| byte == FILL);
    if !whole {
        return Err("a state is not what was sent".to_owned());
    }
    states.buffers = self::buffers() - buffers;
    states.receiver_ns = Clock
        .computed()
        .as_nanos()
        .saturating_sub(before.as_nanos());
    Ok(states)
}

/// Buffers that sockets of this namespace were given so far; one has several datagrams where the kernel has joined them.
fn buffers() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap_or_default();
    let line = text.lines().filter(|it| it.starts_with("Udp: ")).nth(1);
    let first = line.and_then(|it| it.split_whitespace().nth(1));
    first.and_then(|it| it.parse().ok()).unwrap_or(0)
}
