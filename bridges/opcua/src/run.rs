//! The bridge while it runs: the server, the gate before it, and the node's status shown five times a second.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use opcua::server::{Server, ServerHandle};
use opcua::types::ServerState;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::address_space::Nodes;
use crate::gate::{self, Entry as Admitted};
use crate::identity;
use crate::level::{self, Steady};
use crate::server::{Setting, build};
use bumpless_bridge::model::{Entry, Kind, Quality, Shown, entries};
use bumpless_bridge::node::{self, Said};
use bumpless_bridge::{Problem, Report, told_to_end};

/// Between two looks at the node.
const LOOK: Duration = Duration::from_millis(200);
/// Between two looks at the refused certificates.
const TIDY: Duration = Duration::from_secs(10);
/// For clients to hear of the end.
const FAREWELL: Duration = Duration::from_millis(300);
/// For their connections to end.
const END_MAX: Duration = Duration::from_secs(2);
/// For the server to be ready for its first connection.
const START_MAX: Duration = Duration::from_secs(10);
/// Exit status of what a second signal ended.
const INTERRUPTED: u8 = 130;

/// What there is without a certificate, as a weakness and in words.
const INSECURE: &str = "OPC UA without security: whoever reaches this server reads all of it, and whoever is on the way may \
                        change what is read; give it --files with a certificate in place of --insecure";

/// What the bridge is told.
#[derive(Clone, Debug)]
pub struct Orders {
    /// The node's control socket.
    pub control: PathBuf,
    /// Where clients connect.
    pub listen: SocketAddr,
    /// The server.
    pub setting: Setting,
}

/// Runs until it is told to end.
///
/// # Errors
/// What keeps it from starting.
pub async fn run(orders: Orders, report: Report) -> Result<ExitCode, Problem> {
    let listener = TcpListener::bind(orders.listen).await.map_err(|error| {
        let wrong = format!("--listen {}: {error}", orders.listen);
        Problem::new(
            wrong,
            "give an address of this computer and a port that is free",
        )
    })?;
    let failed =
        |error: &dyn std::fmt::Display| Problem::new(error.to_string(), "see spec/opcua.md");
    let port = listener
        .local_addr()
        .map_err(|error| failed(&error))?
        .port();
    let (server, handle, nodes) = build(&orders.setting).map_err(|error| failed(&error))?;
    let (inner, running) = start(server, &handle, port)
        .await
        .map_err(|error| failed(&error))?;
    let admitted = match &orders.setting.files {
        Some(files) => Admitted::Trusted(files.clone()),
        None => Admitted::Anybody,
    };
    let gate = tokio::spawn(gate::serve(listener, inner, admitted, report));
    let tidying = orders
        .setting
        .files
        .clone()
        .map(|files| tokio::spawn(tidy(files)));
    tell_start(&orders, port, report);
    let mut shown = Bridge {
        insecure: orders.setting.files.is_none(),
        handle,
        nodes,
        steady: Steady::default(),
        level: None,
        state: None,
        trouble: None,
        report,
    };
    let stopped_by = until_told(&mut shown, &orders.control)
        .await
        .map_err(|error| failed(&error))?;
    report.tell(
        "stopping",
        &format!("stopping ({stopped_by})"),
        json!({"signal": stopped_by}),
    );
    shown.set_level(level::MAINTENANCE);
    shown.set_state(ServerState::Shutdown);
    let end = async {
        sleep(FAREWELL).await;
        gate.abort();
        if let Some(tidying) = &tidying {
            tidying.abort();
        }
        shown.handle.cancel();
        let _ = timeout(END_MAX, running).await;
    };
    let status = tokio::select! {
        () = end => ExitCode::SUCCESS,
        _ = told_to_end() => ExitCode::from(INTERRUPTED),
    };
    Ok(status)
}

/// Starts the server behind the gate; clients are told the gate's port as its own.
async fn start(
    server: Server,
    handle: &ServerHandle,
    port: u16,
) -> Result<(SocketAddr, JoinHandle<()>), String> {
    let inner = TcpListener::bind(("127.0.0.1", 0)).await;
    let inner = inner.map_err(|error| format!("no port on 127.0.0.1: {error}"))?;
    let address = inner.local_addr().map_err(|error| error.to_string())?;
    let running = tokio::spawn(async move {
        if let Err(error) = server.run_with(inner).await {
            eprintln!("bumpless-opcua: the server has ended: {error}");
        }
    });
    let said = &handle.info().port;
    let ready = async {
        while said.load(Ordering::Relaxed) != address.port() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(START_MAX, ready)
        .await
        .map_err(|_| "the server does not start")?;
    said.store(port, Ordering::Relaxed);
    Ok((address, running))
}

/// Keeps the folder of refused certificates small. Never ends.
async fn tidy(files: PathBuf) {
    loop {
        sleep(TIDY).await;
        identity::trim_rejected(&files);
    }
}

fn tell_start(orders: &Orders, port: u16, report: Report) {
    let url = format!("opc.tcp://{}:{port}/", orders.setting.host);
    let security = match orders.setting.files {
        Some(_) => "SignAndEncrypt",
        None => "none",
    };
    let words = format!(
        "{url} shows the node at {} ({security})",
        orders.control.display()
    );
    let fields = json!({
        "url": url, "control": orders.control, "security": security, "uri": orders.setting.uri,
        "partner_uri": orders.setting.partner_uri,
    });
    report.tell("listening", &words, fields);
    if orders.setting.files.is_none() {
        report.tell(
            "insecure",
            &format!("WARNING: {INSECURE}"),
            json!({"weakness": INSECURE}),
        );
    }
}

/// Shows the node until a signal tells to end; returns its name.
async fn until_told(shown: &mut Bridge, control: &Path) -> std::io::Result<&'static str> {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let told = told_to_end();
    tokio::pin!(told);
    loop {
        let said = async {
            looks.tick().await;
            node::said(control).await
        };
        tokio::select! {
            said = said => shown.show(said),
            name = &mut told => return name,
        }
    }
}

/// What clients see, and what they were told last.
struct Bridge {
    insecure: bool,
    handle: ServerHandle,
    nodes: Nodes,
    steady: Steady,
    level: Option<u8>,
    state: Option<ServerState>,
    /// Why the node does not answer.
    trouble: Option<String>,
    report: Report,
}

impl Bridge {
    fn show(&mut self, said: Result<Said, String>) {
        match said {
            Ok(Said { status, values }) => {
                let mut entries = entries(&status, &values);
                self.add_own(&mut entries);
                self.nodes.show(&entries);
                let level = self.steady.see(level::of(&status));
                self.set_level(level);
                self.set_state(ServerState::Running);
                if self.trouble.take().is_some() {
                    self.report
                        .tell("node_answers", "the node answers", json!({}));
                }
            }
            Err(trouble) => {
                let level = self.steady.see(level::NO_DATA);
                self.set_level(level);
                self.set_state(ServerState::CommunicationFault);
                self.nodes.lose();
                if self.trouble.as_ref() != Some(&trouble) {
                    let words = format!("no data: {trouble}");
                    self.report
                        .tell("no_data", &words, json!({"cause": trouble}));
                    self.trouble = Some(trouble);
                }
            }
        }
    }

    /// The bridge's own weakness is one of what it shows.
    fn add_own(&self, entries: &mut Vec<Entry>) {
        let security = match self.insecure {
            true => "None",
            false => "SignAndEncrypt",
        };
        entries.push(Entry {
            folders: Vec::new(),
            name: "BridgeSecurity".into(),
            kind: Kind::Text,
            value: Shown::Text(security.into()),
            quality: Quality::Good,
        });
        let weaknesses = entries.iter_mut().find(|entry| entry.kind == Kind::Texts);
        if let (
            true,
            Some(Entry {
                value: Shown::Texts(texts),
                ..
            }),
        ) = (self.insecure, weaknesses)
        {
            texts.push(INSECURE.into());
        }
    }

    fn set_level(&mut self, level: u8) {
        if self.level != Some(level) {
            self.handle.set_service_level(level);
            let before = self.level.replace(level);
            let words = format!("ServiceLevel {level}");
            self.report.tell(
                "service_level",
                &words,
                json!({"level": level, "before": before}),
            );
        }
    }

    fn set_state(&mut self, state: ServerState) {
        if self.state != Some(state) {
            self.handle.set_server_state(state);
            self.state = Some(state);
        }
    }
}
