//! QUIC by quinn: a bidirectional stream for each transfer, which quinn's documentation recommends for
//! messages (<https://quinn-rs.github.io/quinn/quinn/data-transfer.html>).

mod endpoint;
mod settings;

use std::process::ExitCode;
use std::sync::Mutex;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use anyhow::{Context, bail};
use bytes::Bytes;
use peer_conversation::{Arguments, TIMEOUT, Peer, Timing, Transfer, digest};
use quinn::{Connection, Incoming, RecvStream, SendStream};
use tokio::sync::{mpsc, oneshot};

fn main() -> ExitCode {
    peer_conversation::run::<Quinn>()
}

struct Quinn;

impl Peer for Quinn {
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
        let (ready, listening) = std::sync::mpsc::channel();
        let thread = thread::spawn(move || {
            let result = on_runtime(async {
                let endpoint = endpoint::server(&arguments)?;
                let _ = ready.send(());
                while let Some(incoming) = endpoint.accept().await {
                    tokio::spawn(serve(incoming, arguments.max_size));
                }
                Ok(())
            });
            complain("listening", result);
        });
        listening
            .recv()
            .context("cannot listen; the reason is above")?;
        Ok(thread)
    }

    fn connect(arguments: &Arguments) -> anyhow::Result<Sender> {
        let arguments = arguments.clone();
        let channels = arguments.channels;
        let (jobs, mut queue) = mpsc::unbounded_channel::<Job>();
        let (ready, connected) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let result = on_runtime(async {
                let (_endpoint, connections) = endpoint::connect(&arguments).await?;
                let _ = ready.send(());
                while let Some(job) = queue.recv().await {
                    let connection = connections[arguments.connection_of(job.channel)].clone();
                    tokio::spawn(async move {
                        let _ = job.answer.send(transfer(&connection, job.state).await);
                    });
                }
                Ok(())
            });
            complain("connecting", result);
        });
        connected
            .recv()
            .context("cannot connect; the reason is above")?;
        let jobs = (0..channels).map(|_| Mutex::new(jobs.clone())).collect();
        Ok(Sender { jobs })
    }
}

/// Gives states to the thread that drives quinn: one thread, since then nothing is handed over between
/// threads while a state is on its way.
struct Sender {
    jobs: Vec<Mutex<mpsc::UnboundedSender<Job>>>,
}

struct Job {
    channel: usize,
    state: Bytes,
    answer: oneshot::Sender<anyhow::Result<Timing>>,
}

impl Transfer for Sender {
    fn transfer(&self, channel: usize, state: &Bytes) -> anyhow::Result<Timing> {
        let (answer, answered) = oneshot::channel();
        let job = Job {
            channel,
            state: state.clone(),
            answer,
        };
        let Ok(jobs) = self.jobs[channel].lock() else {
            bail!("a thread of this channel has panicked");
        };
        if jobs.send(job).is_err() {
            bail!("the thread that drives quinn has ended");
        }
        answered
            .blocking_recv()
            .context("the thread that drives quinn has ended")?
    }
}

async fn transfer(connection: &Connection, state: Bytes) -> anyhow::Result<Timing> {
    let expected = digest(&state);
    let work = async {
        let start = Instant::now();
        let (mut send, mut receive) = connection.open_bi().await?;
        send.write_chunk(state).await?;
        send.finish()?;
        let mut acknowledgement = [0; 8];
        receive.read_exact(&mut acknowledgement).await?;
        let end = Instant::now();
        if u64::from_le_bytes(acknowledgement) != expected {
            bail!("the acknowledgement is of another state");
        }
        Ok(Timing { start, end })
    };
    match tokio::time::timeout(TIMEOUT, work).await {
        Ok(result) => result,
        Err(_) => bail!("no acknowledgement within {} s", TIMEOUT.as_secs()),
    }
}

async fn serve(incoming: Incoming, max_size: usize) {
    let result = async {
        let connection = incoming.await?;
        loop {
            let (send, receive) = connection.accept_bi().await?;
            tokio::spawn(async move {
                complain("a state", acknowledge(send, receive, max_size).await);
            });
        }
    };
    complain("a connection", result.await);
}

async fn acknowledge(
    mut send: SendStream,
    mut receive: RecvStream,
    max_size: usize,
) -> anyhow::Result<()> {
    let state = receive.read_to_end(max_size).await?;
    send.write_all(&digest(&state).to_le_bytes()).await?;
    send.finish()?;
    Ok(())
}

fn on_runtime(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(work)
}

fn complain(what: &str, result: anyhow::Result<()>) {
    if let Err(error) = result {
        eprintln!("quinn: {what}: {error:#}");
    }
}
