//! The connection to the broker: MQTT 5, by TLS unless that is given up in so many words.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bumpless_bridge::{Problem, Report};
use bumpless_guarded_file::{self as guarded, Guard};
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{ConnectProperties, Filter, LastWill as Will, Packet};
use rumqttc::v5::{AsyncClient, Event as Heard, EventLoop, MqttOptions};
use rumqttc::{Outgoing, TlsConfiguration, Transport};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use srad_client::{Client, Event, LastWill, StatePayload, topic_and_payload_to_event};
use srad_types::payload::{Message, Payload};
use srad_types::topic::{self, DeviceTopic, NodeTopic, StateTopic, TopicFilter};

/// A broker that has heard nothing for one and a half times this says that the edge node is dead (MQTT 5, 3.1.2.10).
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// Between two attempts to connect.
const PAUSE: Duration = Duration::from_secs(1);
/// Messages that wait for the connection: more than all births, so that nobody who has a sequence number waits for room.
const WAITING_MAX: usize = 1024;
/// Longest certificate, key or password, bytes.
const FILE_MAX: usize = 64 << 10;

/// How the broker is reached.
#[derive(Clone, Debug)]
pub struct Way {
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Authorities that may have issued the broker's certificate; `None`: without TLS.
    pub authorities: Option<PathBuf>,
    /// Certificate and key that the broker is shown.
    pub own: Option<(PathBuf, PathBuf)>,
    /// Name, and the file of the password.
    pub login: Option<(String, PathBuf)>,
}

impl Way {
    /// The broker as people write it.
    pub fn place(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// What the library needs for it, if all files are right.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn options(&self, client: &str) -> Result<MqttOptions, Vec<Problem>> {
        let mut options = MqttOptions::new(client, &self.host, self.port);
        let mut properties = ConnectProperties::new();
        // Sparkplug 3.0, 4.2.1 and 5.4: a session ends with its connection.
        properties.session_expiry_interval = Some(0);
        options
            .set_keep_alive(KEEP_ALIVE)
            .set_clean_start(true)
            .set_connect_properties(properties);
        let mut problems = Vec::new();
        match self.tls() {
            Ok(Some(config)) => {
                let tls = TlsConfiguration::Rustls(Arc::new(config));
                options.set_transport(Transport::Tls(tls));
            }
            Ok(None) => {}
            Err(found) => problems.extend(found),
        }
        if let Some((name, file)) = &self.login {
            match read(file, Guard::Secret) {
                Ok(password) => {
                    let text = String::from_utf8_lossy(&password);
                    options.set_credentials(name, text.trim_end_matches(['\r', '\n']));
                }
                Err(problem) => problems.push(problem),
            }
        }
        match problems.is_empty() {
            true => Ok(options),
            false => Err(problems),
        }
    }

    fn tls(&self) -> Result<Option<ClientConfig>, Vec<Problem>> {
        let Some(authorities) = &self.authorities else {
            return Ok(None);
        };
        let mut problems = Vec::new();
        let mut roots = RootCertStore::empty();
        match certificates(authorities) {
            Ok(all) => {
                let (taken, _) = roots.add_parsable_certificates(all);
                if taken == 0 {
                    problems.push(no_certificate(authorities));
                }
            }
            Err(problem) => problems.push(problem),
        }
        let own = self.own.as_ref().map(|(certificate, key)| {
            let shown = certificates(certificate).map_err(|problem| problems.push(problem));
            let key = private_key(key).map_err(|problem| problems.push(problem));
            shown.ok().zip(key.ok())
        });
        if !problems.is_empty() {
            return Err(problems);
        }
        let refused = |error: rustls::Error| {
            vec![Problem::new(
                error.to_string(),
                "give a certificate with its own key",
            )]
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(refused)?
            .with_root_certificates(roots);
        let config = match own.flatten() {
            Some((shown, key)) => builder.with_client_auth_cert(shown, key).map_err(refused)?,
            None => builder.with_no_client_auth(),
        };
        Ok(Some(config))
    }
}

fn read(path: &Path, guard: Guard) -> Result<zeroize::Zeroizing<Vec<u8>>, Problem> {
    guarded::read(path, guard, FILE_MAX).map_err(|cause| {
        Problem::new(
            format!("{}: {}", path.display(), cause.wrong()),
            cause.remedy(path),
        )
    })
}

fn no_certificate(path: &Path) -> Problem {
    Problem::new(
        format!("{} has no certificate in PEM", path.display()),
        "give the file with the certificate of the authority that has issued the broker's",
    )
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Problem> {
    let content = read(path, Guard::Unchanged)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&content).collect();
    all.ok()
        .filter(|all| !all.is_empty())
        .ok_or_else(|| no_certificate(path))
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Problem> {
    let content = read(path, Guard::Secret)?;
    PrivateKeyDer::from_pem_slice(&content).map_err(|_| {
        Problem::new(
            format!("{} has no private key in PEM", path.display()),
            "give the key of --certificate, without a passphrase",
        )
    })
}

/// Both ends of the library's connection.
pub fn connect(options: MqttOptions, place: String, report: Report) -> (Events, Sender) {
    let (client, events) = AsyncClient::new(options, WAITING_MAX);
    let events = Events {
        events,
        place,
        report,
        is_up: false,
        is_over: false,
        trouble: None,
    };
    (events, Sender(client))
}

/// What comes from the broker.
pub struct Events {
    events: EventLoop,
    place: String,
    report: Report,
    is_up: bool,
    /// The edge node has ended the connection itself.
    is_over: bool,
    /// Why there is none.
    trouble: Option<String>,
}

impl Events {
    fn came_up(&mut self) {
        (self.is_up, self.trouble) = (true, None);
        let words = format!("connected to the broker at {}", self.place);
        self.report
            .tell("connected", &words, json!({"broker": self.place}));
    }

    /// Tells a cause once.
    fn failed(&mut self, cause: String) {
        if self.trouble.as_ref() != Some(&cause) {
            let words = format!("no connection to the broker at {}: {cause}", self.place);
            let fields = json!({"broker": self.place, "cause": cause});
            self.report.tell("disconnected", &words, fields);
            self.trouble = Some(cause);
        }
    }
}

#[async_trait]
impl srad_client::EventLoop for Events {
    async fn poll(&mut self) -> Event {
        loop {
            match self.events.poll().await {
                Ok(Heard::Incoming(Packet::ConnAck(_))) => {
                    self.came_up();
                    return Event::Online;
                }
                Ok(Heard::Incoming(Packet::Publish(message))) => {
                    let (topic, payload) = (message.topic.to_vec(), message.payload.to_vec());
                    return topic_and_payload_to_event(topic, payload);
                }
                Ok(Heard::Outgoing(Outgoing::Disconnect)) => {
                    self.is_over = true;
                    self.is_up = false;
                    return Event::Offline;
                }
                Ok(_) => {}
                // Its own end needs no second word.
                Err(_) if self.is_over => std::future::pending().await,
                Err(error) => {
                    self.failed(error.to_string());
                    if std::mem::take(&mut self.is_up) {
                        return Event::Offline;
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    fn set_last_will(&mut self, will: LastWill) {
        let quality = quality(will.qos);
        let will = Will::new(will.topic, will.payload, quality, will.retain, None);
        self.events.options.set_last_will(will);
    }
}

const fn quality(of: topic::QoS) -> QoS {
    match of {
        topic::QoS::AtMostOnce => QoS::AtMostOnce,
        topic::QoS::AtLeastOnce => QoS::AtLeastOnce,
    }
}

/// What goes to the broker.
pub struct Sender(AsyncClient);

type Sent = Result<(), ()>;

impl Sender {
    async fn publish(
        &self,
        topic: String,
        (qos, retain): (topic::QoS, bool),
        payload: Vec<u8>,
    ) -> Sent {
        let sent = self.0.publish(topic, quality(qos), retain, payload).await;
        sent.map_err(|_| ())
    }

    fn try_publish(
        &self,
        topic: String,
        (qos, retain): (topic::QoS, bool),
        payload: Vec<u8>,
    ) -> Sent {
        let sent = self.0.try_publish(topic, quality(qos), retain, payload);
        sent.map_err(|_| ())
    }
}

#[async_trait]
impl Client for Sender {
    async fn disconnect(&self) -> Sent {
        self.0.disconnect().await.map_err(|_| ())
    }

    async fn publish_state_message(&self, topic: StateTopic, payload: StatePayload) -> Sent {
        let how = payload.get_publish_quality_retain();
        self.publish(topic.topic, how, payload.into()).await
    }

    async fn try_publish_state_message(&self, topic: StateTopic, payload: StatePayload) -> Sent {
        let how = payload.get_publish_quality_retain();
        self.try_publish(topic.topic, how, payload.into())
    }

    async fn publish_node_message(&self, topic: NodeTopic, payload: Payload) -> Sent {
        let how = topic.get_publish_quality_retain();
        self.publish(topic.topic, how, payload.encode_to_vec())
            .await
    }

    async fn try_publish_node_message(&self, topic: NodeTopic, payload: Payload) -> Sent {
        let how = topic.get_publish_quality_retain();
        self.try_publish(topic.topic, how, payload.encode_to_vec())
    }

    async fn publish_device_message(&self, topic: DeviceTopic, payload: Payload) -> Sent {
        let how = topic.get_publish_quality_retain();
        self.publish(topic.topic, how, payload.encode_to_vec())
            .await
    }

    async fn try_publish_device_message(&self, topic: DeviceTopic, payload: Payload) -> Sent {
        let how = topic.get_publish_quality_retain();
        self.try_publish(topic.topic, how, payload.encode_to_vec())
    }

    async fn subscribe_many(&self, topics: Vec<TopicFilter>) -> Sent {
        let filters = topics.into_iter();
        let filters = filters.map(|it| Filter::new(it.topic, quality(it.qos)));
        self.0.subscribe_many(filters).await.map_err(|_| ())
    }
}
