//! A session with the server: made, asked, ended.

use std::collections::HashMap;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use opcua::client::{Client, ClientBuilder, Session as Inner, SessionEventLoop, SessionPollResult};
use opcua::types::{
    DataValue, Error, NodeId, ReadValueId, StatusCode, TimestampsToReturn, Variant, WriteValue,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::endpoint;
use super::fence::{Fence, Way};
use super::login;
use super::namespace;
use super::setting::{Setting, Tag};
use crate::identity;

/// For the server to tell its endpoints, and for a session to be made.
const MAKE_MAX: Duration = Duration::from_secs(5);
/// The library's own bound on a request; the node's is shorter.
const REQUEST_MAX: Duration = Duration::from_secs(60);
/// What is asked for besides a node's orders, so that the server keeps the session.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// A session of which the server hears nothing ends there after so long, milliseconds.
const SESSION_MS: u32 = 30_000;
/// Keys of a channel are renewed after three quarters of this, milliseconds.
const CHANNEL_MS: u32 = 24 * 3_600_000;
/// Nodes in one request, where the server does not say how many it takes.
const NODES_MAX: usize = 1000;

/// Server/NamespaceArray and Server/ServerStatus/State, and how many nodes a request may have (OPC 10000-5, 6.3.1 and
/// 6.3.11).
const NAMESPACES: u32 = 2255;
const STATE: u32 = 2259;
const READ_MAX: u32 = 11_705;
const WRITE_MAX: u32 = 11_707;

/// A session that is up until something ends it. When it is dropped, the connection is reset.
pub struct Session {
    inner: Arc<Inner>,
    driving: JoinHandle<()>,
    read_max: usize,
    write_max: usize,
    inputs: Vec<NodeId>,
    outputs: Vec<NodeId>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driving.abort();
    }
}

impl Session {
    /// Makes one, and has the server answer on it.
    ///
    /// # Errors
    /// Why there is none, and what to do.
    pub async fn make(setting: Setting, fence: Fence) -> Result<Self, String> {
        let made = timeout(MAKE_MAX, attempt(&setting, fence)).await;
        made.unwrap_or_else(|_| {
            Err(format!(
                "no session within {} ms; check that it is an OPC UA server and its network",
                MAKE_MAX.as_millis()
            ))
        })
    }

    pub fn is_up(&self) -> bool {
        !self.driving.is_finished()
    }

    /// The inputs in this session; in another one, namespaces may have other numbers.
    pub fn inputs(&self) -> &[NodeId] {
        &self.inputs
    }

    /// The outputs in this session.
    pub fn outputs(&self) -> &[NodeId] {
        &self.outputs
    }

    /// Reads `nodes`, and before them the server's state.
    ///
    /// # Errors
    /// The server's, or the connection's.
    pub async fn read(&self, nodes: Vec<NodeId>) -> Result<(Option<i32>, Vec<DataValue>), Error> {
        let all: Vec<_> = std::iter::once(NodeId::new(0, STATE))
            .chain(nodes)
            .map(ReadValueId::from)
            .collect();
        let mut found = Vec::with_capacity(all.len());
        for part in all.chunks(self.read_max) {
            let values = self.inner.read(part, TimestampsToReturn::Neither, 0.0);
            let values = values.await?;
            if values.len() != part.len() {
                return Err(Error::new(
                    StatusCode::BadUnexpectedError,
                    "values are missing",
                ));
            }
            found.extend(values);
        }
        let state = match found.remove(0).value {
            Some(Variant::Int32(state)) => Some(state),
            _ => None,
        };
        Ok((state, found))
    }

    /// Writes `values`; returns the first status that is bad, and of which of them. What is refused keeps nothing else from
    /// being written.
    ///
    /// # Errors
    /// The server's, or the connection's.
    pub async fn write(&self, values: &[WriteValue]) -> Result<Option<(usize, StatusCode)>, Error> {
        let (mut before, mut bad) = (0, None);
        for part in values.chunks(self.write_max) {
            let statuses = self.inner.write(part).await?;
            if statuses.len() != part.len() {
                return Err(Error::new(
                    StatusCode::BadUnexpectedError,
                    "statuses are missing",
                ));
            }
            let mut numbered = statuses.into_iter().enumerate();
            let first = numbered.find(|(_, status)| status.is_bad());
            bad = bad.or(first.map(|(at, status)| (before + at, status)));
            before += part.len();
        }
        Ok(bad)
    }
}

/// Whether an error is of the connection or session, so that nothing more can be had on it.
pub fn ends_session(status: StatusCode) -> bool {
    use StatusCode as S;
    [
        S::BadTimeout,
        S::BadCommunicationError,
        S::BadConnectionClosed,
        S::BadNotConnected,
        S::BadUnexpectedError,
        S::BadSecureChannelClosed,
        S::BadSecureChannelIdInvalid,
        S::BadSecurityChecksFailed,
        S::BadSessionClosed,
        S::BadSessionIdInvalid,
        S::BadSessionNotActivated,
        S::BadTcpInternalError,
        S::BadServerHalted,
        S::BadShutdown,
    ]
    .contains(&status)
}

fn client(setting: &Setting) -> Result<Client, String> {
    let own = setting.protection.as_ref().map(|it| it.own.as_path());
    let builder = ClientBuilder::new()
        .application_name("Bumpless field driver")
        .application_uri(&setting.uri)
        .product_uri("urn:bumpless:field")
        // Without security there is nothing to read or keep.
        .pki_dir(own.unwrap_or(Path::new("/dev/null")))
        .certificate_path(identity::CERTIFICATE)
        .private_key_path(identity::KEY)
        .trust_server_certs(false)
        // The one certificate that is believed is compared byte for byte; names in it decide nothing.
        .verify_server_certs(false)
        .session_timeout(SESSION_MS)
        .channel_lifetime(CHANNEL_MS)
        .request_timeout(REQUEST_MAX)
        .keep_alive_interval(KEEP_ALIVE)
        .session_retry_limit(0)
        .recreate_subscriptions(false)
        .max_array_length(100_000);
    builder.client().map_err(|errors| errors.join("; "))
}

async fn attempt(setting: &Setting, fence: Fence) -> Result<Session, String> {
    let client = client(setting)?;
    let way = Way {
        address: setting.address,
        url: setting.url.clone(),
        fence,
    };
    let endpoints = client.get_server_endpoints_from_url(way.clone()).await;
    let endpoints = endpoints.map_err(|error| {
        format!("{error}; check that the server runs, its address and its network")
    })?;
    let endpoint = endpoint::chosen(setting, endpoints)?;
    let built = client
        .session_builder()
        .with_connector(way)
        .user_identity_token(login::token(setting.login.as_ref())?)
        .connect_to_endpoint_directly(endpoint)
        .and_then(|builder| builder.build(Arc::clone(client.certificate_store())));
    let (inner, events) = built.map_err(|error| error.to_string())?;
    let (driving, up) = drive(events);
    let mut session = Session {
        inner,
        driving,
        read_max: NODES_MAX,
        write_max: NODES_MAX,
        inputs: Vec::new(),
        outputs: Vec::new(),
    };
    let up = up.await.unwrap_or(Err(StatusCode::BadConnectionClosed));
    up.map_err(|status| login::refused(setting.login.as_ref(), status))?;
    session.learn_limits(setting).await?;
    session.learn_nodes(setting).await?;
    Ok(session)
}

/// Has the library work on the session until the connection is lost; says when it is up, or why it is not.
fn drive(
    events: SessionEventLoop<Way>,
) -> (JoinHandle<()>, oneshot::Receiver<Result<(), StatusCode>>) {
    let (told, up) = oneshot::channel();
    let driving = tokio::spawn(async move {
        let mut told = Some(told);
        let mut tell = |what| {
            if let Some(told) = told.take() {
                // Who waited may have gone.
                let _ = told.send(what);
            }
        };
        let mut events = pin!(events.enter());
        while let Some(event) = events.next().await {
            match event {
                Ok(SessionPollResult::Reconnected(_)) => tell(Ok(())),
                Ok(SessionPollResult::ReconnectFailed(status)) | Err(status) => {
                    return tell(Err(status));
                }
                // A lost one is not mended but made anew, by whoever knows how often.
                Ok(SessionPollResult::ConnectionLost(_)) => return,
                Ok(_) => {}
            }
        }
    });
    (driving, up)
}

impl Session {
    /// Asks how many nodes a request may have; that is answered shows that the session works.
    async fn learn_limits(&mut self, setting: &Setting) -> Result<(), String> {
        let nodes = vec![NodeId::new(0, READ_MAX), NodeId::new(0, WRITE_MAX)];
        let found = self.ask(nodes, setting).await?;
        let limit = |value: &DataValue| match value.value {
            Some(Variant::UInt32(limit @ 1..)) => (limit as usize).min(NODES_MAX),
            _ => NODES_MAX,
        };
        if let [read, write] = &found[..] {
            (self.read_max, self.write_max) = (limit(read), limit(write));
        }
        Ok(())
    }

    /// Reads what the server tells of itself.
    async fn ask(&self, nodes: Vec<NodeId>, setting: &Setting) -> Result<Vec<DataValue>, String> {
        let refused = |error: Error| login::refused(setting.login.as_ref(), error.status());
        Ok(self.read(nodes).await.map_err(refused)?.1)
    }

    /// Finds where this session has what is read and written.
    async fn learn_nodes(&mut self, setting: &Setting) -> Result<(), String> {
        let tags = || setting.inputs.iter().chain(&setting.outputs);
        let mut namespaces = Vec::new();
        if tags().any(|tag| tag.place.needs_server()) {
            let asked = vec![NodeId::new(0, NAMESPACES)];
            let found = self.ask(asked, setting).await?;
            let told = found.first().and_then(namespace::of_server);
            namespaces = told.ok_or(
                "Server/NamespaceArray cannot be read; have the server let this user read that, or name points by ns=",
            )?;
        }
        let place = |tag: &'_ Tag| (tag.name.clone(), tag.place.clone());
        let places: Vec<_> = tags().map(place).collect();
        let places = places.iter().map(|(name, place)| (&**name, place));
        self.inputs = namespace::resolve(places, &namespaces)?;
        self.outputs = self.inputs.split_off(setting.inputs.len());
        written_once(&self.outputs, &setting.outputs)
    }
}

/// That no two outputs are one node, which may have a number in one of their names and a URI in the other.
///
/// # Errors
/// Two that are, and what to do.
fn written_once(nodes: &[NodeId], tags: &[Tag]) -> Result<(), String> {
    let mut taken = HashMap::new();
    for (node, tag) in nodes.iter().zip(tags) {
        if let Some(other) = taken.insert(node, &tag.name) {
            return Err(format!(
                "{other:?} and {:?} are one value there; give each output a value of its own",
                tag.name
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::namespace::Place;
    use bumpless_field_driver::ValueKind;

    #[test]
    fn no_node_is_written_by_two_outputs_whatever_they_call_it() {
        let names = ["ns=2;s=a", "nsu=urn:a;s=a"];
        let tag = |name: &&str| Tag {
            name: (*name).into(),
            place: Place::parse(name).unwrap(),
            kind: ValueKind::F64,
        };
        let tags: Vec<_> = names.iter().map(tag).collect();
        let nodes = |second: u16| [NodeId::new(2, "a"), NodeId::new(second, "a")];
        assert_eq!(written_once(&nodes(3), &tags), Ok(()));
        let told = written_once(&nodes(2), &tags).unwrap_err();
        for name in names {
            assert!(told.contains(name), "{name}: {told}");
        }
    }
}
