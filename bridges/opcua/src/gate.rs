//! Stands before the server: so many connections and no more, and nothing in the clear but discovery.
//!
//! The server behind it takes any number of connections, opens channels for certificates that nobody trusts, and makes
//! sessions on channels without security, of which it has only so many. So what comes in the clear is looked at here:
//! Hello, the questions of discovery, and OpenSecureChannel, which names the client's certificate. From then on bytes are
//! passed as they are: only the server can open them, and it judges them.

mod message;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use opcua::crypto::SecurityPolicy;
use opcua::types::StatusCode;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};

use self::message::{FIND_SERVERS, GET_ENDPOINTS, Kind, Malformed};
use crate::identity;
use bumpless_bridge::Report;

/// So many connections at a time.
pub const CONNECTIONS_MAX: usize = 64;
/// So many of them from one address.
pub const CONNECTIONS_OF_ONE_MAX: usize = 16;
/// Who is not done by then is cut off.
const PATIENCE: Patience = Patience {
    beginning: Duration::from_secs(5),
    in_the_clear: Duration::from_secs(10),
};
/// Refusals for one cause are told so often at most, and counted meanwhile.
const TELLING: Duration = Duration::from_secs(1);
/// After the system has refused a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a client may take.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// Until a channel is asked for.
    beginning: Duration,
    /// Until the channel is one with security.
    in_the_clear: Duration,
}

/// Whom the gate lets through.
#[derive(Clone, Debug)]
pub enum Entry {
    /// Who shows a certificate that is trusted in this folder, with one of the server's policies.
    Trusted(PathBuf),
    /// Anybody, in the clear.
    Anybody,
}

/// Why a connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Refusal {
    TooMany,
    TooManyOfOne,
    Silent,
    Garbage,
    NotDiscovery,
    Policy,
    Untrusted,
}

impl Refusal {
    fn name(self) -> &'static str {
        match self {
            Self::TooMany => "too_many_connections",
            Self::TooManyOfOne => "too_many_connections_of_one_address",
            Self::Silent => "no_secure_channel_in_time",
            Self::Garbage => "no_opc_ua",
            Self::NotDiscovery => "request_without_security",
            Self::Policy => "security_policy_not_offered",
            Self::Untrusted => "certificate_not_trusted",
        }
    }

    /// What the other end is told (OPC 10000-6, 7.1.5).
    fn code(self) -> StatusCode {
        match self {
            Self::TooMany | Self::TooManyOfOne => StatusCode::BadTcpNotEnoughResources,
            Self::Silent => StatusCode::BadTimeout,
            Self::Garbage => StatusCode::BadTcpMessageTypeInvalid,
            Self::NotDiscovery => StatusCode::BadSecurityModeInsufficient,
            Self::Policy => StatusCode::BadSecurityPolicyRejected,
            Self::Untrusted => StatusCode::BadSecurityChecksFailed,
        }
    }
}

/// What is refused: how often, and when that was told last.
#[derive(Debug)]
struct Refusals {
    report: Report,
    causes: Mutex<HashMap<Refusal, (u64, Option<Instant>)>>,
}

impl Refusals {
    fn count(&self, refusal: Refusal, from: IpAddr) {
        let mut causes = self.causes.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, told) = causes.entry(refusal).or_default();
        *count += 1;
        let now = Instant::now();
        if told.is_none_or(|told| now - told >= TELLING) {
            *told = Some(now);
            let words = format!("refused {from}: {} ({count} so far)", refusal.name());
            let fields = json!({"from": from.to_string(), "cause": refusal.name(), "count": count});
            self.report.tell("refused_client", &words, fields);
        }
    }
}

/// Connections that are there, by address.
#[derive(Clone, Debug, Default)]
struct Present(Arc<Mutex<HashMap<IpAddr, usize>>>);

impl Present {
    fn enter(&self, from: IpAddr) -> Result<Place, Refusal> {
        let mut present = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if present.values().sum::<usize>() >= CONNECTIONS_MAX {
            return Err(Refusal::TooMany);
        }
        let of_one = present.entry(from).or_default();
        if *of_one >= CONNECTIONS_OF_ONE_MAX {
            return Err(Refusal::TooManyOfOne);
        }
        *of_one += 1;
        Ok(Place {
            present: self.clone(),
            from,
        })
    }
}

/// One connection's place; dropped, it is free again.
#[derive(Debug)]
struct Place {
    present: Present,
    from: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut present = self
            .present
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(of_one) = present.get_mut(&self.from) {
            *of_one -= 1;
            if *of_one == 0 {
                present.remove(&self.from);
            }
        }
    }
}

/// Lets clients of `listener` through to the server at `inner`. Never ends.
pub async fn serve(listener: TcpListener, inner: SocketAddr, entry: Entry, report: Report) {
    let refusals = Arc::new(Refusals {
        report,
        causes: Mutex::default(),
    });
    let present = Present::default();
    loop {
        let Ok((client, from)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let from = from.ip().to_canonical();
        let place = match present.enter(from) {
            Ok(place) => place,
            Err(refusal) => {
                refusals.count(refusal, from);
                continue;
            }
        };
        let (entry, refusals) = (entry.clone(), refusals.clone());
        tokio::spawn(async move {
            if let Err(refusal) = pass(client, inner, &entry).await {
                refusals.count(refusal, from);
            }
            drop(place);
        });
    }
}

/// One connection, from its beginning to its end.
async fn pass(mut client: TcpStream, inner: SocketAddr, entry: &Entry) -> Result<(), Refusal> {
    let Ok(mut server) = TcpStream::connect(inner).await else {
        return Ok(());
    };
    // Small messages that wait for an answer each.
    let _ = client
        .set_nodelay(true)
        .and_then(|()| server.set_nodelay(true));
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let outcome = tokio::select! {
        outcome = upstream(&mut from_client, &mut to_server, entry, PATIENCE) => outcome,
        _ = copy(&mut from_server, &mut to_client) => Ok(()),
    };
    if let Err(refusal) = outcome {
        let error = message::error(refusal.code().bits(), refusal.name());
        let _ = timeout(PAUSE, to_client.write_all(&error)).await;
    }
    outcome
}

async fn upstream(
    client: &mut (impl AsyncRead + Unpin),
    server: &mut (impl AsyncWrite + Unpin),
    entry: &Entry,
    patience: Patience,
) -> Result<(), Refusal> {
    let in_the_clear = in_the_clear(client, server, entry, patience.beginning);
    let secured = timeout(patience.in_the_clear, in_the_clear).await;
    if secured.map_err(|_| Refusal::Silent)?? {
        let _ = copy(client, server).await;
    }
    Ok(())
}

/// Passes what comes in the clear; returns whether something follows that is not, or that anybody may send.
async fn in_the_clear(
    client: &mut (impl AsyncRead + Unpin),
    server: &mut (impl AsyncWrite + Unpin),
    entry: &Entry,
    beginning: Duration,
) -> Result<bool, Refusal> {
    let begun = Instant::now();
    let mut channel = false;
    loop {
        let read = match channel {
            // Who called this has an eye on the time from here on.
            true => Ok(message::read(client).await),
            false => {
                timeout(
                    beginning.saturating_sub(begun.elapsed()),
                    message::read(client),
                )
                .await
            }
        };
        let (kind, bytes) = match read.map_err(|_| Refusal::Silent)? {
            Ok(read) => read,
            Err(Malformed::Ended) => return Ok(false),
            Err(Malformed::Garbage) => return Err(Refusal::Garbage),
        };
        let secured = match &kind {
            Kind::Hello | Kind::Close => false,
            Kind::Open {
                policy,
                certificate,
            } => {
                channel = true;
                may_open(entry, policy, certificate).await?
            }
            Kind::Request(FIND_SERVERS | GET_ENDPOINTS) => false,
            Kind::Request(_) => return Err(Refusal::NotDiscovery),
        };
        if server.write_all(&bytes).await.is_err() {
            return Ok(false);
        }
        if secured {
            return Ok(true);
        }
    }
}

/// The policies of the server's endpoints with security.
pub const POLICIES: [SecurityPolicy; 2] = [
    SecurityPolicy::Basic256Sha256,
    SecurityPolicy::Aes256Sha256RsaPss,
];

/// Whether the channel needs no further look.
async fn may_open(entry: &Entry, policy: &str, certificate: &[u8]) -> Result<bool, Refusal> {
    let policy = SecurityPolicy::from_uri(policy);
    match entry {
        Entry::Anybody if policy == SecurityPolicy::None => Ok(true),
        Entry::Trusted(_) if policy == SecurityPolicy::None => Ok(false),
        Entry::Trusted(files) if POLICIES.contains(&policy) => {
            let (files, certificate) = (files.clone(), certificate.to_vec());
            let judged = tokio::task::spawn_blocking(move || {
                let trusted = identity::is_trusted(&files, &certificate);
                if !trusted {
                    identity::keep_rejected(&files, &certificate);
                }
                trusted
            });
            match judged.await {
                Ok(true) => Ok(true),
                _ => Err(Refusal::Untrusted),
            }
        }
        _ => Err(Refusal::Policy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn connections_are_bounded_in_all_and_of_one_address() {
        let present = Present::default();
        let address = |n| IpAddr::V4(Ipv4Addr::new(127, 0, 0, n));
        let mut places: Vec<_> = (0..CONNECTIONS_OF_ONE_MAX)
            .map(|_| present.enter(address(1)).unwrap())
            .collect();
        assert_eq!(
            present.enter(address(1)).unwrap_err(),
            Refusal::TooManyOfOne
        );
        let rest = CONNECTIONS_MAX - CONNECTIONS_OF_ONE_MAX;
        places.extend((0..rest).map(|n| present.enter(address(10 + n as u8)).unwrap()));
        assert_eq!(present.enter(address(2)).unwrap_err(), Refusal::TooMany);
        places.clear();
        assert!(
            present.0.lock().unwrap().is_empty(),
            "places are given back"
        );
        present.enter(address(1)).unwrap();
    }

    /// What reaches the server of `bytes`, and what comes of the connection.
    async fn passed(bytes: &[u8], entry: &Entry) -> (Vec<u8>, Result<(), Refusal>) {
        let (mut client, mut server) = (bytes, Vec::new());
        let outcome = upstream(&mut client, &mut server, entry, PATIENCE).await;
        (server, outcome)
    }

    fn message(head: &[u8], body: &[u8]) -> Vec<u8> {
        [head, &(8 + body.len() as u32).to_le_bytes(), body].concat()
    }

    fn open(policy: SecurityPolicy, certificate: &[u8]) -> Vec<u8> {
        open_with(policy.to_uri(), certificate)
    }

    fn open_with(policy: &str, certificate: &[u8]) -> Vec<u8> {
        let uri = policy.as_bytes();
        let length = |it: &[u8]| (it.len() as u32).to_le_bytes();
        let body = [
            &[0; 4][..],
            &length(uri),
            uri,
            &length(certificate),
            certificate,
        ]
        .concat();
        message(b"OPNF", &body)
    }

    fn request(number: u8) -> Vec<u8> {
        message(b"MSGF", &[&[0; 16][..], &[1, 0, number, 1]].concat())
    }

    #[tokio::test]
    async fn without_security_nothing_but_discovery_reaches_the_server() {
        let folder = tempfile::tempdir().unwrap();
        let entry = Entry::Trusted(folder.path().into());
        let hello = message(b"HELF", &[0; 24]);
        let plain = open(SecurityPolicy::None, b"");
        let [ask, find] = [GET_ENDPOINTS, FIND_SERVERS].map(|it| request((it - 256) as u8));
        let discovery = [&hello[..], &plain, &ask, &find].concat();
        assert_eq!(
            passed(&discovery, &entry).await,
            (discovery.clone(), Ok(()))
        );
        // CreateSession is 461, Read 631; nothing of them is passed.
        for number in [461_u32, 463] {
            let session = [&hello[..], &plain, &request((number - 256) as u8)].concat();
            let (reached, outcome) = passed(&session, &entry).await;
            assert_eq!(outcome, Err(Refusal::NotDiscovery), "{number}");
            assert_eq!(reached, [&hello[..], &plain].concat());
        }
        let (all, outcome) = passed(
            &[&hello[..], &plain, b"what follows"].concat(),
            &Entry::Anybody,
        )
        .await;
        assert!(
            all.ends_with(b"what follows") && outcome == Ok(()),
            "anybody passes"
        );
    }

    #[tokio::test]
    async fn a_channel_is_opened_for_a_trusted_certificate_alone() {
        let folder = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let files = folder.path();
        for (at, uri) in [(files, "urn:a"), (other.path(), "urn:b")] {
            identity::make(at, uri, &[]).unwrap();
        }
        let client = other.path().join(identity::CERTIFICATE);
        let der = std::fs::read(&client).unwrap();
        let entry = Entry::Trusted(files.into());
        let (good, old) = (SecurityPolicy::Basic256Sha256, SecurityPolicy::Basic256);
        let first = open(good, &der);
        let (reached, outcome) = passed(&first, &entry).await;
        assert_eq!((reached, outcome), (Vec::new(), Err(Refusal::Untrusted)));
        identity::trust(files, &client).unwrap();
        let bytes = [&first[..], b"sealed"].concat();
        assert_eq!(passed(&bytes, &entry).await, (bytes.clone(), Ok(())));
        let (good, old) = (good.to_uri(), old.to_uri());
        for (policy, certificate, refusal) in [
            (old, &der[..], Refusal::Policy),
            ("http://unknown", &der, Refusal::Policy),
            ("", &der, Refusal::Policy),
            (good, &der[1..], Refusal::Untrusted),
            (good, b"", Refusal::Untrusted),
        ] {
            let (reached, outcome) = passed(&open_with(policy, certificate), &entry).await;
            assert_eq!((reached.len(), outcome), (0, Err(refusal)));
        }
        let secure = passed(&first, &Entry::Anybody).await;
        assert_eq!(
            secure.1,
            Err(Refusal::Policy),
            "there is no such endpoint without files"
        );
    }

    #[tokio::test]
    async fn who_opens_no_channel_with_security_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let entry = Entry::Trusted(folder.path().into());
        let (short, long) = (Duration::from_millis(20), Duration::from_secs(3600));
        let patience = |beginning, in_the_clear| Patience {
            beginning,
            in_the_clear,
        };
        let plain = open(SecurityPolicy::None, b"");
        for (said, patience) in [
            (&b""[..], patience(short, long)),
            (b"HELF", patience(short, long)),
            (&plain, patience(long, short)),
        ] {
            let (mut client, mut other) = tokio::io::duplex(1024);
            other.write_all(said).await.unwrap();
            let outcome = upstream(&mut client, &mut Vec::new(), &entry, patience).await;
            assert_eq!(outcome, Err(Refusal::Silent), "{said:?}");
        }
    }
}
