//! One end of a session, in a process of its own: says what it does in lines of JSON, ends with its input.

use std::io::{self, Write};
use std::thread;

use bumpless_base::{Duration, Instant, Random};
use bumpless_config::Config;
use bumpless_net_linux::{Clock, JitterMeter, Stall};
use bumpless_node::realtime::prepare_executor_thread;
use serde::{Deserialize, Serialize};

use super::session::Session;
use crate::peer::node::{Channel, Node};
use crate::peer::payload::Payload;
use crate::peer::{ChannelSender, Side, TIMEOUT, wait_for_end};
use crate::run::meter::on_each_processor;

/// How long each end waits for the other at first: somebody has to start it there.
const MEETING: Duration = Duration::from_secs(120);
/// Without a state for so long, the sender is gone.
const SILENCE: Duration = Duration::from_secs(60);
/// How often the receiver looks at what it has.
const LOOK: Duration = Duration::from_millis(10);
/// How long it stays, so that the sender gets the last acknowledgement.
const FAREWELL: Duration = Duration::from_millis(300);
/// Between two states.
const PAUSE: Duration = Duration::from_millis(2);
/// Rounds that do not count.
const WARM_UP: usize = 1;
/// A slow network's session ends after so long, if there were so many rounds at least.
const LIMIT: Duration = Duration::from_secs(15);
const ROUNDS_AT_LEAST: usize = 2;
/// Transfers that may fail in a session.
const FAILURES: usize = 3;
/// For how many wake-ups each meter has room.
const REMEMBERED: usize = 400_000;
/// Processors that are watched at most.
const METERS: usize = 8;
/// A wake-up later than this is a stall.
pub const STALL: Duration = Duration::from_micros(500);
/// One in so many wake-ups is told with its lateness: enough for any percentile of many sessions together.
const KEPT: usize = 50;
/// The beginning of the last state of a session.
const MARK: &[u8] = b"bumpless: what this session has measured\n";

/// What an end says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Said {
    /// Both ends are connected.
    Ready,
    /// So many states have been transferred.
    Progress {
        /// States.
        states: usize,
    },
    /// The session has ended.
    Result(Outcome),
}

/// What a session has measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Name of the sender's computer.
    pub host: String,
    /// How often the meters of the sender's computer woke.
    pub wakes: u64,
    /// How late the latest fiftieth of them were, latest first.
    pub latest_ns: Vec<u64>,
    /// For each size, in the session's order.
    pub sizes: Vec<Times>,
}

/// The times of one size, nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Bytes of each state.
    pub size: u32,
    /// How long each transfer took.
    pub took: Vec<u64>,
    /// For how long in all the machine stood still during each.
    pub stall: Vec<u64>,
}

fn say(said: &Said) -> Result<(), String> {
    let mut output = io::stdout().lock();
    serde_json::to_writer(&mut output, said).map_err(|error| error.to_string())?;
    output
        .write_all(b"\n")
        .and_then(|()| output.flush())
        .map_err(|error| error.to_string())
}

/// Runs one end of `session` until it is over or the input ends.
///
/// # Errors
/// It cannot run, the other end does not answer, or transfers fail.
pub fn run_end(config: &Config, session: &Session, side: Side) -> Result<(), String> {
    let own = session.configuration(config)?;
    thread::spawn(|| {
        wait_for_end();
        std::process::exit(0);
    });
    match side {
        Side::Send => send(own, session),
        Side::Receive => receive(own, session),
    }
}

fn send(config: Config, session: &Session) -> Result<(), String> {
    let priority = config.realtime.priority;
    let mut node = Node::start(config, &session.from)?;
    let channels = node.meet(MEETING, TIMEOUT * 2)?;
    let mut channel = channels
        .into_iter()
        .next()
        .ok_or("the session has no channel")?;
    channel.begin();
    prepare_executor_thread(priority);
    say(&Said::Ready)?;
    // One above the data plane's priority, and what that was refused the meters are refused too.
    let above = priority.map(|priority| priority.saturating_add(1).min(99));
    let meter = || JitterMeter::new(Duration::ZERO, REMEMBERED);
    let (sent, meters) =
        on_each_processor(METERS, meter, above, || transfers(&mut channel, session));
    let outcome = outcome(session, &sent?, meters);
    let mut last = MARK.to_vec();
    serde_json::to_writer(&mut last, &outcome).map_err(|error| error.to_string())?;
    // The receiver may have ended on it before its acknowledgement came through.
    let _ = channel.transfer(&last, TIMEOUT);
    say(&Said::Result(outcome))
}

/// One transfer: position of its size, beginning, time.
type Sent = (usize, Instant, Duration);

fn transfers(channel: &mut Channel, session: &Session) -> Result<Vec<Sent>, String> {
    let largest = session.sizes.iter().copied().max().unwrap_or(0);
    let mut payload = Payload::new(largest as usize, 0);
    let mut random = Random::new(u64::from(session.number) + 1);
    let (mut sent, mut failures, mut states) = (Vec::new(), 0, 0);
    let began = Clock.now();
    for round in 0..session.rounds + WARM_UP {
        let late = Clock.now().since(began) > LIMIT;
        if late && round >= ROUNDS_AT_LEAST + WARM_UP {
            break;
        }
        for at in shuffled(session.round(), &mut random) {
            let state = payload.next(session.sizes[at] as usize);
            Clock.sleep_until(Clock.now() + PAUSE);
            let from = Clock.now();
            match channel.transfer(state, TIMEOUT) {
                Ok(took) if round >= WARM_UP => sent.push((at, from, took)),
                Ok(_) => {}
                Err(reason) if failures == FAILURES => return Err(reason),
                Err(_) => failures += 1,
            }
            states += 1;
        }
        say(&Said::Progress { states })?;
    }
    Ok(sent)
}

/// The same in a random order.
fn shuffled(mut order: Vec<usize>, random: &mut Random) -> Vec<usize> {
    for at in (1..order.len()).rev() {
        order.swap(at, (random.next_u64() % (at as u64 + 1)) as usize);
    }
    order
}

fn outcome(session: &Session, sent: &[Sent], meters: Vec<JitterMeter>) -> Outcome {
    let mut lateness: Vec<u64> = Vec::new();
    let mut stalls: Vec<Stall> = Vec::new();
    for meter in &meters {
        lateness.extend(meter.stalls().map(|stall| stall.length().as_nanos()));
        stalls.extend(meter.stalls().filter(|stall| stall.length() >= STALL));
    }
    let mut sizes: Vec<Times> = session
        .sizes
        .iter()
        .map(|&size| Times {
            size,
            ..Times::default()
        })
        .collect();
    stalls.sort_by_key(|stall| stall.asked);
    for &(at, from, took) in sent {
        sizes[at].took.push(took.as_nanos());
        sizes[at]
            .stall
            .push(stood_still(&stalls, from, from + took).as_nanos());
    }
    lateness.sort_unstable_by(|a, b| b.cmp(a));
    let wakes = lateness.len();
    lateness.truncate(wakes.div_ceil(KEPT));
    Outcome {
        host: host(),
        wakes: wakes as u64,
        latest_ns: lateness,
        sizes,
    }
}

/// For how long between `from` and `to` at least one processor stood still; `stalls` by their beginnings.
fn stood_still(stalls: &[Stall], from: Instant, to: Instant) -> Duration {
    let (mut total, mut counted) = (Duration::ZERO, from);
    for stall in stalls.iter().take_while(|stall| stall.asked < to) {
        let end = stall.woke.min(to);
        total = total + end.since(stall.asked.max(counted));
        counted = counted.max(end);
    }
    total
}

fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| "unknown".into(), |name| name.trim().to_owned())
}

fn receive(config: Config, session: &Session) -> Result<(), String> {
    let mut node = Node::start(config, &session.to)?;
    let (mut reader, _) = node
        .take_subscribers()?
        .into_iter()
        .next()
        .ok_or("the session has no channel")?;
    let (mut seen, mut ready) = (0, false);
    let mut heard = Clock.now();
    loop {
        Clock.sleep_until(Clock.now() + LOOK);
        let now = Clock.now();
        if now.since(heard) > if ready { SILENCE } else { MEETING } {
            return Err(format!(
                "node '{}' does not answer; start the same command there, with the same configuration",
                session.from
            ));
        }
        let Some(state) = reader.read(now).filter(|state| state.cycle() != seen) else {
            continue;
        };
        (seen, heard) = (state.cycle(), now);
        if let Some(json) = state.data().strip_prefix(MARK) {
            let outcome = serde_json::from_slice(json).map_err(|error| format!("the sender's last state cannot be read: {error}; run the same version on both computers"))?;
            drop(state);
            say(&Said::Result(outcome))?;
            Clock.sleep_until(Clock.now() + FAREWELL);
            return Ok(());
        }
        if !ready {
            say(&Said::Ready)?;
            ready = true;
        }
        say(&Said::Progress {
            states: seen as usize,
        })?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_of_two_processors_counts_once_and_only_within_the_transfer() {
        let at = |micros: u64| Instant::ZERO + Duration::from_micros(micros);
        let stalls = [(10, 30), (20, 25), (28, 40), (90, 200)];
        let stalls = stalls.map(|(asked, woke)| Stall {
            asked: at(asked),
            woke: at(woke),
        });
        let micros = |from, to| stood_still(&stalls, at(from), at(to)).as_micros();
        assert_eq!(micros(0, 100), 30 + 10);
        assert_eq!(micros(15, 29), 14);
        assert_eq!(micros(40, 90), 0);
        assert_eq!(micros(100, 150), 50);
    }

    #[test]
    fn a_round_has_every_size_in_random_order_and_small_ones_more_often() {
        let session: Session = serde_json::from_str(
            r#"{"number":0,"purpose":"verify","from":"a","to":"b","networks":["A"],"spread":false,
                "payload":1442,"sizes":[0,99999,100000,8000000],"rounds":1}"#,
        )
        .unwrap();
        let mut order = shuffled(session.round(), &mut Random::new(1));
        assert_ne!(order, session.round());
        order.sort_unstable();
        assert_eq!(order, [0, 0, 0, 0, 1, 1, 1, 1, 2, 3]);
    }
}
