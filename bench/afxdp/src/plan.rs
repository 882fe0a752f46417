//! What is measured, in rounds, so that what a shared machine does meanwhile falls on all ways alike.

use serde_json::{Value, json};

use crate::cell::{self, Task, URGENT};
use crate::sender::Stream;
use crate::threads::Urgency;
use crate::world::{CLOSED, Kind, PORTS, Worker, World};

/// The rates that are tried, datagrams a second.
const RATES: [u32; 12] = [
    100_000, 150_000, 200_000, 250_000, 300_000, 350_000, 400_000, 500_000, 600_000, 800_000,
    1_000_000, 1_500_000,
];
/// States of a round in each cell.
const STATES: u64 = 20;

pub fn measure(rounds: u64) -> Result<Vec<Value>, String> {
    let mut worlds = Vec::new();
    for worker in [Worker::Interrupted, Worker::Thread] {
        for kind in [Kind::Socket, Kind::Ring] {
            worlds.push(World::new(kind, worker)?);
        }
    }
    let mut cells = Vec::new();
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        let mut put = |world: &World, mut cell: Value| {
            cell["round"] = json!(round);
            cell["way"] = json!(match world.kind {
                Kind::Socket => "socket",
                Kind::Ring => "ring",
            });
            cell["worker"] = json!(match world.worker {
                Worker::Interrupted => "interrupted",
                Worker::Thread => "thread",
            });
            cells.push(cell);
        };
        for world in &mut worlds {
            for cell in delays(world)?
                .into_iter()
                .chain(priorities(world)?)
                .chain(states(world)?)
            {
                put(world, cell);
            }
            let costs = match world.worker {
                Worker::Interrupted => costs(world)?,
                Worker::Thread => Vec::new(),
            };
            for cell in costs.into_iter().chain(highest(world)?) {
                put(world, cell);
            }
        }
    }
    Ok(cells)
}

fn stream(bytes: usize, per_second: u32) -> Stream {
    Stream {
        port: PORTS[0],
        bytes,
        per_second,
        batch: 1,
        segments: false,
    }
}

/// Whether a receiver does without sleeping, and then whether its sockets ask the interface with each read: rings never do.
fn looks(world: &World) -> impl Iterator<Item = (bool, bool)> + use<> {
    let kind = world.kind;
    let all = [(false, false), (true, true), (true, false)];
    all.into_iter().filter(move |it| match kind {
        Kind::Socket => true,
        Kind::Ring => !it.1,
    })
}

/// 1,000 datagrams a second, one by one.
fn delays(world: &mut World) -> Result<Vec<Value>, String> {
    let mut cells = Vec::new();
    for bytes in [128, 280, 1400] {
        for (busy, asks) in looks(world) {
            let task = Task {
                streams: vec![stream(bytes, 1_000)],
                nanoseconds: 500_000_000,
                busy,
                asks,
                urgency: URGENT,
                work_ns: 0,
                stamped: true,
            };
            let outcome = cell::run(world, &task)?;
            cells.push(json!({
                "what": "delay", "bytes": bytes, "busy": busy, "asks": asks, "sent": outcome.sender.sent[0],
                "received": outcome.received[0], "still_ns": outcome.sender.still_ns, "took_ns": outcome.took[0],
            }));
        }
    }
    Ok(cells)
}

/// The urgent flow beside 100,000 datagrams a second of another one, each of which takes its receiver 4 us.
fn priorities(world: &mut World) -> Result<Vec<Value>, String> {
    let mut cells = Vec::new();
    for (busy, asks) in looks(world) {
        let other = Stream {
            port: PORTS[1],
            ..stream(128, 100_000)
        };
        let task = Task {
            streams: vec![stream(128, 1_000), other],
            nanoseconds: 500_000_000,
            busy,
            asks,
            urgency: URGENT,
            work_ns: 4_000,
            stamped: true,
        };
        let mut outcome = cell::run(world, &task)?;
        let mut other = std::mem::take(&mut outcome.took[1]);
        other.sort_unstable();
        let at = |part: usize| other.get(other.len() * part / 100).copied();
        cells.push(json!({
            "what": "priority", "bytes": 128, "busy": busy, "asks": asks, "sent": outcome.sender.sent, "received": outcome.received,
            "still_ns": outcome.sender.still_ns,
            "took_ns": outcome.took[0], "other_p50_ns": at(50), "other_p99_ns": at(99),
        }));
    }
    Ok(cells)
}

/// States of 1 MB, as fast as they go and at the rates of networks.
fn states(world: &mut World) -> Result<Vec<Value>, String> {
    let mut cells = Vec::new();
    let kind = world.kind;
    // 44 datagrams on the wire, with their 66 bytes around each.
    for (gigabits, distance) in [(0, 0), (10, 51_600), (1, 516_000)] {
        let ways = [(false, true), (true, true), (false, false)];
        for (busy, joined) in ways.into_iter().filter(|it| it.1 || kind == Kind::Socket) {
            world.join(joined)?;
            let states = cell::states(world, busy, distance, STATES)?;
            world.join(true)?;
            cells.push(json!({
                "what": "state", "gigabits": gigabits, "busy": busy, "joined": joined, "states": STATES,
                "datagrams": cell::DATAGRAMS, "incomplete": states.incomplete, "buffers": states.buffers, "spread_ns": states.spread,
                "whole_ns": states.whole, "receiver_ns": states.receiver_ns, "thread_ns": states.thread_ns,
            }));
        }
    }
    Ok(cells)
}

/// Processor time for each datagram, wanted and not, of a receiver that sleeps and of one that does not.
fn costs(world: &mut World) -> Result<Vec<Value>, String> {
    let mut cells = Vec::new();
    for bytes in [128, 280, 1400] {
        for per_second in [50_000, 200_000] {
            let wanted = stream(bytes, per_second);
            let junk = Stream {
                port: CLOSED,
                ..wanted
            };
            cells.push(cost(world, (junk, (false, false)), "junk")?);
            for look in looks(world) {
                cells.push(cost(world, (wanted, look), "cost")?);
            }
        }
        let with_checksum = |world: &mut World, on| {
            world.rings.iter_mut().for_each(|it| it.checksum = on);
            world.rings.is_some()
        };
        if with_checksum(world, true) {
            let wanted = stream(bytes, 200_000);
            cells.push(cost(world, (wanted, (true, false)), "cost with checksum")?);
        }
        with_checksum(world, false);
    }
    Ok(cells)
}

fn cost(
    world: &mut World,
    (stream, (busy, asks)): (Stream, (bool, bool)),
    what: &str,
) -> Result<Value, String> {
    let task = Task {
        streams: vec![stream],
        nanoseconds: 500_000_000,
        busy,
        asks,
        urgency: match busy {
            true => URGENT,
            false => Urgency::Ordinary,
        },
        work_ns: 0,
        stamped: false,
    };
    let outcome = cell::run(world, &task)?;
    Ok(json!({
        "what": what, "bytes": stream.bytes, "per_second": stream.per_second, "busy": busy, "asks": asks,
        "sent": outcome.sender.sent[0], "received": outcome.received[0], "receiver_ns": outcome.receiver_ns,
        "taking_ns": outcome.taking_ns, "calls_ns": outcome.sender.calls_ns, "still_ns": outcome.sender.still_ns,
    }))
}

/// Higher and higher rates, until datagrams are lost in both of two tries, or the sender has no more.
fn highest(world: &mut World) -> Result<Vec<Value>, String> {
    let mut cells = Vec::new();
    for bytes in [128, 1400] {
        for segments in [false, true] {
            for per_second in RATES {
                let stream = Stream {
                    batch: 16,
                    segments,
                    ..stream(bytes, per_second)
                };
                let task = Task {
                    streams: vec![stream],
                    nanoseconds: 300_000_000,
                    busy: false,
                    asks: false,
                    urgency: URGENT,
                    work_ns: 0,
                    stamped: false,
                };
                let mut lost = u64::MAX;
                let mut sent = 0;
                for _ in 0..2 {
                    let outcome = cell::run(world, &task)?;
                    sent = sent.max(outcome.sender.sent[0]);
                    lost = lost.min(outcome.sender.sent[0].saturating_sub(outcome.received[0]));
                    if lost == 0 {
                        break;
                    }
                }
                let attained = sent * 10 / 3;
                cells.push(json!({
                    "what": "highest", "bytes": bytes, "segments": segments, "per_second": per_second,
                    "attained_per_second": attained, "lost": lost,
                }));
                if lost > 0 || attained * 100 < u64::from(per_second) * 95 {
                    break;
                }
            }
        }
    }
    Ok(cells)
}
