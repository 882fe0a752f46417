//! The sending program's side: a thread for each channel, orders from one stream, answers to another.

use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};

use bumpless_base::{Duration, Instant};
use bumpless_net_linux::Clock;

use super::{Answer, ChannelTimes, CyclicChannel, Miss, Order};
use crate::peer::payload::Payload;
use crate::peer::{ChannelSender, TIMEOUT};

/// How long before the first release of a cyclic run all threads are told of it.
const LEAD: Duration = Duration::from_millis(20);

/// The line that says that a program is ready.
pub fn ready(peer: &str, version: &str, settings: &str) -> Answer {
    Answer::Ready {
        peer: peer.into(),
        version: version.into(),
        settings: settings.into(),
    }
}

/// Writes an answer as a line.
///
/// # Errors
/// Nobody reads.
pub fn tell(output: &mut dyn Write, answer: &Answer) -> io::Result<()> {
    serde_json::to_writer(&mut *output, answer)?;
    output.write_all(b"\n")?;
    output.flush()
}

enum Task {
    Transfer(usize),
    Cyclic {
        channel: CyclicChannel,
        from: Instant,
        to: Instant,
    },
}

/// Says `ready`, then carries out the orders in `input` with one thread for each of `channels`, until
/// `exit` or the end. `max_size` is the largest state, bytes; `buffers` what the peer's own state buffers
/// take.
///
/// # Errors
/// Nobody reads the answers, or the orders cannot be read.
pub fn serve(
    ready: &Answer,
    channels: Vec<Box<dyn ChannelSender>>,
    max_size: usize,
    buffers: Option<u64>,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> io::Result<()> {
    let (answers, answered) = channel();
    thread::scope(|scope| {
        let workers = start(scope, channels, max_size, &answers)?;
        tell(output, ready)?;
        let mut line = String::new();
        loop {
            line.clear();
            if input.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let answer = match line.trim().parse() {
                Ok(Order::Exit) => return Ok(()),
                Ok(Order::Cost) => Answer::Cost {
                    peak_buffer_bytes: buffers,
                },
                Ok(Order::Transfer(size)) => transfer(&workers, &answered, size, max_size),
                Ok(Order::Cyclic { span, channels }) => {
                    cyclic(&workers, &answered, span, &channels, max_size)
                }
                Err(reason) => Answer::Failed { reason },
            };
            tell(output, &answer)?;
        }
    })
}

/// Starts the channels' threads; returns when each has its states ready.
fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    channels: Vec<Box<dyn ChannelSender>>,
    max_size: usize,
    answers: &Sender<Answer>,
) -> io::Result<Vec<Sender<Task>>> {
    let (prepared, all_prepared) = channel();
    let mut workers = Vec::new();
    for (sender, number) in channels.into_iter().zip(0u64..) {
        let (tasks, taken) = channel();
        let (answers, prepared) = (answers.clone(), prepared.clone());
        thread::Builder::new()
            .stack_size(256 << 10)
            .spawn_scoped(scope, move || {
                let payload = Payload::new(max_size, number);
                drop(prepared);
                work(sender, payload, &taken, &answers);
            })?;
        workers.push(tasks);
    }
    drop::<Sender<()>>(prepared);
    // Ends when no thread holds its end any more.
    all_prepared.iter().for_each(drop);
    Ok(workers)
}

fn gone() -> Answer {
    Answer::Failed {
        reason: "a channel's thread has ended".into(),
    }
}

fn too_large(size: usize, max_size: usize) -> Answer {
    Answer::Failed {
        reason: format!("{size} bytes are more than the {max_size} of --max-size"),
    }
}

fn transfer(
    workers: &[Sender<Task>],
    answered: &Receiver<Answer>,
    size: usize,
    max_size: usize,
) -> Answer {
    if size > max_size {
        return too_large(size, max_size);
    }
    let sent = workers
        .first()
        .map(|worker| worker.send(Task::Transfer(size)));
    match sent {
        Some(Ok(())) => answered.recv().unwrap_or_else(|_| gone()),
        _ => gone(),
    }
}

fn cyclic(
    workers: &[Sender<Task>],
    answered: &Receiver<Answer>,
    span: Duration,
    channels: &[CyclicChannel],
    max_size: usize,
) -> Answer {
    if let Some(channel) = channels.iter().find(|channel| channel.size > max_size) {
        return too_large(channel.size, max_size);
    }
    let from = Clock.now() + LEAD;
    let mut open = 0;
    for &channel in channels {
        let task = Task::Cyclic {
            channel,
            from,
            to: from + span,
        };
        let worker = workers.get(channel.channel as usize);
        if worker.is_none_or(|worker| worker.send(task).is_err()) {
            return Answer::Failed {
                reason: format!("channel {} is not among --channels", channel.channel),
            };
        }
        open += 1;
    }
    let mut times: Vec<ChannelTimes> = Vec::new();
    let mut failed = None;
    for _ in 0..open {
        match answered.recv() {
            Ok(Answer::Cyclic { channels }) => times.extend(channels),
            Ok(other) => failed = Some(other),
            Err(_) => failed = Some(gone()),
        }
    }
    times.sort_by_key(|times| times.channel);
    failed.unwrap_or(Answer::Cyclic { channels: times })
}

/// One channel's thread.
fn work(
    mut sender: Box<dyn ChannelSender>,
    mut payload: Payload,
    tasks: &Receiver<Task>,
    answers: &Sender<Answer>,
) {
    sender.begin();
    while let Ok(task) = tasks.recv() {
        let answer = match task {
            Task::Transfer(size) => match sender.transfer(payload.next(size), TIMEOUT) {
                Ok(took) => Answer::Done {
                    nanoseconds: took.as_nanos(),
                },
                Err(reason) => Answer::Failed { reason },
            },
            Task::Cyclic { channel, from, to } => Answer::Cyclic {
                channels: vec![run_cyclic(
                    sender.as_mut(),
                    &mut payload,
                    &channel,
                    (from, to),
                )],
            },
        };
        if answers.send(answer).is_err() {
            return;
        }
    }
}

/// Sends a state at every point of the channel's grid; one that comes due while the last is still on
/// its way is skipped, and missed.
fn run_cyclic(
    sender: &mut dyn ChannelSender,
    payload: &mut Payload,
    channel: &CyclicChannel,
    (from, to): (Instant, Instant),
) -> ChannelTimes {
    let periods = to
        .since(from)
        .as_nanos()
        .div_ceil(channel.period.as_nanos());
    let mut times = ChannelTimes {
        channel: channel.channel,
        nanoseconds: Vec::with_capacity(usize::try_from(periods).unwrap_or(0).min(1 << 20)),
        ..ChannelTimes::default()
    };
    let mut release = from;
    while release < to {
        let state = payload.next(channel.size);
        Clock.sleep_until(release);
        times.sent += 1;
        let arrived = sender.transfer(state, TIMEOUT).is_ok();
        let took = Clock.now().since(release);
        if arrived {
            times.nanoseconds.push(took.as_nanos());
        }
        let late =
            (arrived && took > channel.deadline).then(|| (took - channel.deadline).as_nanos());
        let mut miss = Miss {
            released: release.as_nanos(),
            late,
            periods: u64::from(!arrived || late.is_some()),
        };
        release += channel.period;
        while release < to && release < Clock.now() {
            miss.periods += 1;
            release += channel.period;
        }
        if miss.periods > 0 {
            times.missed += miss.periods;
            times.misses.push(miss);
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Acknowledges at once, but for sizes that it was told to fail or to be slow with.
    struct Instantly;

    impl ChannelSender for Instantly {
        fn transfer(&mut self, state: &[u8], _: Duration) -> Result<Duration, String> {
            match state.len() {
                13 => Err("unlucky".into()),
                50 => {
                    Clock.sleep_until(Clock.now() + Duration::from_millis(25));
                    Ok(Duration::from_millis(25))
                }
                size => Ok(Duration::from_nanos(size as u64)),
            }
        }
    }

    fn converse(orders: &str) -> Vec<Answer> {
        let channels: Vec<Box<dyn ChannelSender>> = vec![Box::new(Instantly), Box::new(Instantly)];
        let mut output = Vec::new();
        let up = ready("instant", "1", "");
        serve(
            &up,
            channels,
            100,
            Some(7),
            &mut orders.as_bytes(),
            &mut output,
        )
        .unwrap();
        let text = String::from_utf8(output).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        assert_eq!(serde_json::from_str::<Answer>(first).unwrap(), up);
        rest.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn every_order_gets_one_answer_and_the_end_of_orders_ends_the_program() {
        let answers = converse("transfer 20\ntransfer 13\ntransfer 101\nnonsense\ncost\n");
        assert_eq!(answers[0], Answer::Done { nanoseconds: 20 });
        assert_eq!(
            answers[1],
            Answer::Failed {
                reason: "unlucky".into()
            }
        );
        assert!(matches!(&answers[2], Answer::Failed { reason } if reason.contains("--max-size")));
        assert!(matches!(&answers[3], Answer::Failed { reason } if reason.contains("nonsense")));
        assert_eq!(
            answers[4],
            Answer::Cost {
                peak_buffer_bytes: Some(7)
            }
        );
        assert_eq!(answers.len(), 5);
        assert_eq!(converse("exit\ntransfer 20\n"), []);
    }

    #[test]
    fn every_period_is_sent_or_missed() {
        let answers =
            converse("cyclic 0.1 0:20:10000:9999999 1:50:10000:9999999\ncyclic 1 2:1:1:1\n");
        let Answer::Cyclic { channels } = &answers[0] else {
            panic!("{answers:?}");
        };
        let [fast, slow] = channels.as_slice() else {
            panic!("{answers:?}");
        };
        // The machine may have stood still: what was skipped then counts as missed.
        assert_eq!((fast.channel, fast.sent + fast.missed), (0, 10));
        // At 25 ms for each, at least two of three periods of 10 ms are skipped.
        assert!(slow.sent <= 4 && slow.missed >= 6, "{slow:?}");
        assert_eq!(slow.sent, slow.nanoseconds.len() as u64);
        assert!(matches!(&answers[1], Answer::Failed { .. }));
    }

    #[test]
    fn a_state_that_never_arrives_is_missed() {
        let answers = converse("cyclic 0.03 0:13:10000:10000\n");
        let Answer::Cyclic { channels } = &answers[0] else {
            panic!("{answers:?}");
        };
        assert_eq!(channels[0].missed, 3);
        assert!(channels[0].nanoseconds.is_empty());
    }
}
