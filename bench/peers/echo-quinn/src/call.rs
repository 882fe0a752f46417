//! The client.

use std::mem;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use peer_certificate::{CERTIFICATE_DER, NAME};
use peer_echo::{Call, ESTABLISHED, MESSAGE, Talk, now};
use quinn::{ClientConfig, Connection, Endpoint, RecvStream, SendStream};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::sleep;

use crate::serve::transport;

/// An answer, and when it was whole.
type Answer = ([u8; MESSAGE], u64);

/// How long the end of all connections may take.
const LEAVING: Duration = Duration::from_millis(200);

/// A connection with a stream.
struct Way {
    send: SendStream,
    connection: Connection,
    endpoint: Endpoint,
}

/// Sends all messages, and tells what came of them.
pub async fn call(call: &Call) -> anyhow::Result<()> {
    let config = config()?;
    let (heard, mut answers) = unbounded_channel();
    let first = way(&config, (call.from, call.to, call.port), &heard);
    let first = tokio::time::timeout(ESTABLISHED, first).await;
    let mut way_now = first.context("no connection within 5 s")??;
    let mut left = Vec::new();
    let mut talk = Talk::begin(call);
    let mut switched = None;
    loop {
        let at = now();
        if let Some(message) = talk.send(at) {
            // A stream that fails leaves its messages without answers.
            let _ = way_now.send.write_all(&message).await;
            continue;
        }
        let late = talk.oldest_sent().filter(|_| switched.is_none());
        let late = late.map(|sent| sent + call.timeout_ms * 1_000_000);
        if late.is_some_and(|late| late <= at) {
            switched = Some(at);
            let backup = (call.backup_from, call.backup_to, call.port);
            let next = way(&config, backup, &heard).await?;
            // Answers that come over it still count.
            left.push(mem::replace(&mut way_now, next));
            for message in talk.unanswered() {
                way_now.send.write_all(&message).await?;
            }
            continue;
        }
        if talk.is_over(at) {
            break;
        }
        let until = late.map_or(talk.next(), |late| late.min(talk.next()));
        tokio::select! {
            Some((answer, at)) = answers.recv() => talk.hear(&answer, at),
            () = sleep(Duration::from_nanos(until.saturating_sub(at))) => {}
        }
    }
    left.push(way_now);
    // Before it tells everything: whoever hears that ends this process.
    let _ = tokio::time::timeout(LEAVING, leave(&left)).await;
    talk.tell(switched);
    Ok(())
}

/// Ends connections, so that the server has none that are idle.
async fn leave(ways: &[Way]) {
    for way in ways {
        way.connection.close(0u32.into(), b"");
    }
    for way in ways {
        way.endpoint.wait_idle().await;
    }
}

/// A connection and its stream; what was agreed on with an earlier one makes it carry messages at once.
async fn way(
    config: &ClientConfig,
    (from, to, port): (Ipv4Addr, Ipv4Addr, u16),
    heard: &UnboundedSender<Answer>,
) -> anyhow::Result<Way> {
    let mut endpoint = Endpoint::client(SocketAddr::from((from, 0)))?;
    endpoint.set_default_client_config(config.clone());
    let connecting = endpoint.connect(SocketAddr::from((to, port)), NAME)?;
    let connection = match connecting.into_0rtt() {
        Ok((connection, _)) => connection,
        Err(connecting) => connecting.await?,
    };
    let (send, receive) = connection.open_bi().await?;
    tokio::spawn(hear(receive, heard.clone()));
    Ok(Way {
        send,
        connection,
        endpoint,
    })
}

fn config() -> anyhow::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(CERTIFICATE_DER))?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(Arc::new(transport()));
    Ok(config)
}

/// Passes on each answer, and when it was whole.
async fn hear(mut receive: RecvStream, heard: UnboundedSender<Answer>) -> anyhow::Result<()> {
    let mut answer = [0; MESSAGE];
    loop {
        receive.read_exact(&mut answer).await?;
        heard.send((answer, now()))?;
    }
}
