//! Aeron's C media driver, embedded, and its C client: an exclusive publication each way, driven by one
//! agent thread in each process.

mod idle;
mod media;
mod receiver;
mod sender;

use std::process::ExitCode;
use std::sync::{Mutex, mpsc};
use std::thread::{self, Thread};

use anyhow::{Context, bail};
use bytes::Bytes;
use peer_conversation::{Arguments, TIMEOUT, Peer, Timing, Transfer};

use sender::Job;

fn main() -> ExitCode {
    peer_conversation::run::<Aeron>()
}

struct Aeron;

impl Peer for Aeron {
    type Receiver = ();
    type Sender = Sender;

    fn version() -> String {
        media::version()
    }

    fn settings(arguments: &Arguments) -> String {
        media::describe(arguments)
    }

    fn receive(arguments: &Arguments) -> anyhow::Result<()> {
        let arguments = arguments.clone();
        let (ready, listening) = mpsc::channel();
        thread::spawn(move || {
            complain(receiver::run(&arguments, || {
                let _ = ready.send(());
            }));
        });
        listening
            .recv()
            .context("cannot listen; the reason is above")
    }

    fn connect(arguments: &Arguments) -> anyhow::Result<Sender> {
        let given = arguments.clone();
        let (jobs, queue) = mpsc::channel();
        let (ready, connected) = mpsc::channel();
        let agent = thread::spawn(move || {
            complain(sender::run(&given, &queue, || {
                let _ = ready.send(());
            }));
        });
        connected
            .recv()
            .context("cannot connect; the reason is above")?;
        let jobs = (0..arguments.channels)
            .map(|_| Mutex::new(jobs.clone()))
            .collect();
        Ok(Sender {
            jobs,
            agent: agent.thread().clone(),
        })
    }

    fn leave() {
        media::remove_directory();
    }
}

/// Gives states to the agent.
struct Sender {
    jobs: Vec<Mutex<mpsc::Sender<Job>>>,
    agent: Thread,
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
        jobs.send(job).context("the agent has ended")?;
        self.agent.unpark();
        match answered.recv_timeout(TIMEOUT) {
            Ok(result) => result,
            Err(_) => bail!("no acknowledgement within {} s", TIMEOUT.as_secs()),
        }
    }
}

fn complain(result: anyhow::Result<()>) {
    if let Err(error) = result {
        eprintln!("aeron: {error:#}");
    }
}
