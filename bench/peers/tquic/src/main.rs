//! Multipath QUIC by tquic: a path for each network with the redundant scheduler, a bidirectional stream for
//! each transfer.

mod receiver;
mod sender;
mod settings;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use anyhow::{Context, bail};
use bytes::Bytes;
use peer_conversation::{Arguments, Peer, TIMEOUT, Timing, Transfer};

use sender::Job;

fn main() -> ExitCode {
    peer_conversation::run::<Tquic>()
}

struct Tquic;

impl Peer for Tquic {
    type Receiver = JoinHandle<()>;
    type Sender = Sender;

    fn version() -> String {
        env!("PEER_VERSION").to_owned()
    }

    fn settings(arguments: &Arguments) -> String {
        settings::describe(arguments)
    }

    fn receive(arguments: &Arguments) -> anyhow::Result<Self::Receiver> {
        let arguments = arguments.clone();
        let (ready, listening) = mpsc::channel();
        let thread = thread::spawn(move || {
            let told = receiver::run(&arguments, || {
                let _ = ready.send(());
            });
            complain(told);
        });
        listening
            .recv()
            .context("cannot listen; the reason is above")?;
        Ok(thread)
    }

    fn connect(arguments: &Arguments) -> anyhow::Result<Sender> {
        let (jobs, queue) = mpsc::channel();
        let (ready, connected) = mpsc::channel();
        let given = arguments.clone();
        thread::spawn(move || {
            complain(sender::run(&given, queue, |waker| drop(ready.send(waker))))
        });
        let waker = connected
            .recv()
            .context("cannot connect; the reason is above")?;
        let jobs = (0..arguments.channels)
            .map(|_| Mutex::new(jobs.clone()))
            .collect();
        Ok(Sender { jobs, waker })
    }
}

/// Gives states to the thread that drives tquic.
struct Sender {
    jobs: Vec<Mutex<mpsc::Sender<Job>>>,
    waker: mio::Waker,
}

impl Transfer for Sender {
    fn transfer(&self, channel: usize, state: &Bytes) -> anyhow::Result<Timing> {
        let (answer, answered) = mpsc::channel();
        let Ok(jobs) = self.jobs[channel].lock() else {
            bail!("a thread of this channel has panicked");
        };
        let job = Job {
            channel,
            state: state.clone(),
            answer,
        };
        jobs.send(job)
            .context("the thread that drives tquic has ended")?;
        self.waker.wake()?;
        match answered.recv_timeout(TIMEOUT) {
            Ok(result) => result,
            Err(_) => bail!("no acknowledgement within {} s", TIMEOUT.as_secs()),
        }
    }
}

fn complain(result: anyhow::Result<()>) {
    if let Err(error) = result {
        eprintln!("tquic: {error:#}");
    }
}
