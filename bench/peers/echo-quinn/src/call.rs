//! The client.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use peer_certificate::{CERTIFICATE_DER, NAME};
use quinn::{ClientConfig, Connection, Endpoint, RecvStream, SendStream};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;

use crate::serve::transport;
use crate::{MESSAGE, clock};

/// Between two messages, nanoseconds.
const PERIOD: u64 = 50_000_000;
/// How long answers are waited for when all messages have left, nanoseconds.
const LINGER: u64 = 3_000_000_000;
/// How long a first connection may take.
const ESTABLISHED: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub struct Call {
    /// Its own address on the network
    from: Ipv4Addr,
    /// The server's
    to: Ipv4Addr,
    /// The server's port
    port: u16,
    /// Its own address on the backup
    backup_from: Ipv4Addr,
    /// The server's
    backup_to: Ipv4Addr,
    /// How many messages
    messages: usize,
    /// The first one leaves so long after the connection is there, microseconds
    after_us: u64,
    /// An answer that is later sends it to the backup, milliseconds
    timeout_ms: u64,
}

/// One message: when it was due, when it was sent, when its answer came, nanoseconds.
type Message = (u64, u64, Option<u64>);

/// A connection with a stream. All of it is kept for as long as it is used.
struct Way {
    send: SendStream,
    _connection: Connection,
    _endpoint: Endpoint,
}

impl Call {
    pub async fn run(self) -> anyhow::Result<()> {
        let config = config()?;
        let (heard, mut answers) = unbounded_channel();
        let first = self.way(&config, (self.from, self.to), &heard);
        let first = tokio::time::timeout(ESTABLISHED, first).await;
        let mut way = first.context("no connection within 5 s")??;
        let began = clock::now() + self.after_us * 1000;
        println!("{}", json!({"began_ns": began}));
        let mut messages: Vec<Message> = Vec::with_capacity(self.messages);
        let mut switched = None;
        loop {
            let now = clock::now();
            let (next, oldest) = (messages.len(), oldest(&messages));
            let due = |number: usize| began + PERIOD * number as u64;
            if next < self.messages && due(next) <= now {
                messages.push((due(next), now, None));
                // A stream that fails leaves its messages without answers.
                let _ = way.send.write_all(&bytes(next)).await;
                continue;
            }
            let late = messages.get(oldest).filter(|_| switched.is_none());
            let late = late.map(|(_, sent, _)| sent + self.timeout_ms * 1_000_000);
            if late.is_some_and(|late| late <= now) {
                switched = Some(now);
                way = self
                    .way(&config, (self.backup_from, self.backup_to), &heard)
                    .await?;
                let unanswered = (oldest..next).filter(|&number| messages[number].2.is_none());
                for number in unanswered {
                    way.send.write_all(&bytes(number)).await?;
                }
                continue;
            }
            let end = due(self.messages - 1) + LINGER;
            if oldest == self.messages || now >= end {
                break;
            }
            let until = if next < self.messages { due(next) } else { end };
            let until = late.map_or(until, |late| late.min(until));
            listen(&mut answers, &mut messages, until.saturating_sub(now)).await;
        }
        println!("{}", json!({"switched_ns": switched, "messages": messages}));
        Ok(())
    }

    /// A connection and its stream; what was agreed on with an earlier one makes it carry messages at once.
    async fn way(
        &self,
        config: &ClientConfig,
        (from, to): (Ipv4Addr, Ipv4Addr),
        heard: &UnboundedSender<(usize, u64)>,
    ) -> anyhow::Result<Way> {
        let mut endpoint = Endpoint::client(SocketAddr::from((from, 0)))?;
        endpoint.set_default_client_config(config.clone());
        let connecting = endpoint.connect(SocketAddr::from((to, self.port)), NAME)?;
        let connection = match connecting.into_0rtt() {
            Ok((connection, _)) => connection,
            Err(connecting) => connecting.await?,
        };
        let (send, receive) = connection.open_bi().await?;
        tokio::spawn(hear(receive, heard.clone()));
        Ok(Way {
            send,
            _connection: connection,
            _endpoint: endpoint,
        })
    }
}

fn config() -> anyhow::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(CERTIFICATE_DER))?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(Arc::new(transport()));
    Ok(config)
}

/// Tells the number of each answer, and when it was whole.
async fn hear(mut receive: RecvStream, heard: UnboundedSender<(usize, u64)>) -> anyhow::Result<()> {
    let mut answer = [0; MESSAGE];
    loop {
        receive.read_exact(&mut answer).await?;
        let number = answer.first_chunk().map_or(0, |it| u32::from_be_bytes(*it));
        heard.send((number as usize, clock::now()))?;
    }
}

/// Takes answers until one has come, or for so many nanoseconds.
async fn listen(
    answers: &mut UnboundedReceiver<(usize, u64)>,
    messages: &mut [Message],
    nanos: u64,
) {
    tokio::select! {
        Some((number, at)) = answers.recv() => {
            if let Some((_, _, answered)) = messages.get_mut(number) {
                answered.get_or_insert(at);
            }
        }
        () = sleep(Duration::from_nanos(nanos)) => {}
    }
}

/// The first message that has no answer.
fn oldest(messages: &[Message]) -> usize {
    let found = messages
        .iter()
        .position(|(_, _, answered)| answered.is_none());
    found.unwrap_or(messages.len())
}

/// A message: its number, and what nobody reads.
fn bytes(number: usize) -> [u8; MESSAGE] {
    let mut bytes = [number as u8; MESSAGE];
    bytes[..4].copy_from_slice(&(number as u32).to_be_bytes());
    bytes
}
