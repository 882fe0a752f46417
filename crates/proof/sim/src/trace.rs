//! What is told of a world: a digest of everything, the last events, and if wanted a packet capture
//! and an event log.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use bumpless_base::Instant;
use bumpless_config::Config;
use bumpless_controller::executor::Resumed;
use bumpless_node::event::NodeEvent;
use bumpless_node::log::{Names, render};
use bumpless_wire::DataHeader;
use serde_json::{Value, json};

use crate::check::Output;
use crate::digest::{Digester, digest, mix_in};
use crate::network::Datagram;
use crate::pcap::Capture;
use crate::readable::{before_message, message_in};
use crate::script::{Fault, words};

/// With this begins a packet of a state (`HType`).
const DATA: [u8; 2] = [0, 1];
/// Events that a failure shows.
const LAST: usize = 40;

/// What a field device made of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// In force.
    Accepted,
    /// Refused (F-5).
    OlderEpoch,
    /// Refused (F-6).
    OlderCycle,
}

/// Something that happened in the world.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Happening {
    /// A node's process began.
    Started { node: usize, incarnation: u32 },
    /// It ended.
    Ended { node: usize },
    /// It ended because a cycle did not.
    WatchdogExpired { node: usize },
    /// A witness began, without memory.
    WitnessStarted { reference: usize },
    /// A fault began.
    FaultBegins { fault: u32, what: Fault },
    /// It ended.
    FaultEnds { fault: u32, what: Fault },
    /// Links of the wide-area network changed, by this step of its script.
    LinksChange { step: u32 },
    /// A datagram found no room at its node.
    Overflow { node: usize },
    /// An application handed a state to its channel.
    Published {
        node: usize,
        application: usize,
        cycle: u64,
        digest: u64,
    },
    /// A state lay ready.
    Delivered {
        node: usize,
        application: usize,
        cycle: u32,
    },
    /// An application took up the role.
    Resumed {
        node: usize,
        application: usize,
        with: Resumed,
    },
    /// A field device judged an output.
    Output {
        output: Output,
        judgement: Judgement,
    },
}

#[derive(Clone, Copy)]
enum Line {
    World(Happening),
    Node(usize, NodeEvent),
}

/// The teller.
pub struct Trace {
    sum: u64,
    config: Arc<Config>,
    names: Vec<Names>,
    last: VecDeque<(u64, Line)>,
    capture: Option<Capture>,
    log: Option<Box<dyn Write>>,
    trouble: Option<io::Error>,
    /// Datagrams lost on their way.
    pub lost: u64,
}

impl Trace {
    /// A teller that writes no files. Names come from `config`.
    pub fn new(config: Arc<Config>) -> Self {
        Self {
            sum: 0,
            names: vec![Names::default(); config.nodes.len()],
            config,
            last: VecDeque::with_capacity(LAST + 1),
            capture: None,
            log: None,
            trouble: None,
            lost: 0,
        }
    }

    /// Writes a packet capture and an event log, too.
    pub fn write_to(&mut self, capture: Box<dyn Write>, log: Box<dyn Write>) -> io::Result<()> {
        self.capture = Some(Capture::begin(capture)?);
        self.log = Some(log);
        Ok(())
    }

    /// The digest of all that happened.
    pub fn digest(&self) -> u64 {
        self.sum
    }

    /// Ends the files.
    ///
    /// # Errors
    /// What kept them from being written.
    pub fn finish(&mut self) -> io::Result<()> {
        if let Some(trouble) = self.trouble.take() {
            return Err(trouble);
        }
        if let Some(capture) = &mut self.capture {
            capture.flush()?;
        }
        self.log.as_mut().map_or(Ok(()), |log| log.flush())
    }

    /// A datagram leaves `sender`.
    pub fn datagram(
        &mut self,
        at: u64,
        sender: usize,
        Datagram {
            network,
            target,
            bytes,
            ..
        }: &Datagram,
        source: impl FnOnce() -> Option<SocketAddr>,
    ) {
        let place = (*network as u64) << 32 | sender as u64;
        // The bytes of a state are in the digest of its publication; its packets' headers tell the rest.
        let before = before_message(bytes);
        let head = if message_in(bytes).starts_with(&DATA) {
            &bytes[..bytes.len().min(before + DataHeader::MAX_LEN)]
        } else {
            bytes
        };
        self.sum = mix_in(
            mix_in(self.sum, at ^ place.rotate_left(40)),
            digest(place ^ (bytes.len() as u64) << 8, head),
        );
        if let (Some(capture), Some(from)) = (&mut self.capture, source())
            && let Err(error) = capture.datagram(at, from, *target, bytes)
        {
            self.trouble.get_or_insert(error);
        }
    }

    /// A datagram was lost.
    pub fn lost(&mut self) {
        self.lost += 1;
    }

    /// A node's own event.
    pub fn log(&mut self, at: u64, node: usize, names: &Names, event: &NodeEvent) {
        let mut said = Digester::new(node as u64);
        event.hash(&mut said);
        self.sum = mix_in(mix_in(self.sum, at), said.finish());
        if self.names[node].node.is_empty() {
            self.names[node] = names.clone();
        }
        self.keep(at, Line::Node(node, *event));
        if self.log.is_some() {
            let line = rendered(names, at, event);
            self.write(&line);
        }
    }

    /// Something happened.
    pub fn tell(&mut self, at: u64, happening: Happening) {
        self.sum = mix_in(self.sum, at ^ key(&happening));
        if let Some(more) = detail(&happening) {
            self.sum = mix_in(self.sum, more);
        }
        self.keep(at, Line::World(happening));
        if self.log.is_some() {
            let line = self.line(at, &happening);
            self.write(&line);
        }
    }

    fn keep(&mut self, at: u64, line: Line) {
        if self.last.len() == LAST {
            self.last.pop_front();
        }
        self.last.push_back((at, line));
    }

    fn write(&mut self, line: &Value) {
        if let Some(log) = &mut self.log
            && let Err(error) = writeln!(log, "{line}")
        {
            self.trouble.get_or_insert(error);
        }
    }

    /// The last events as lines of the event log.
    pub fn last(&self) -> Vec<Value> {
        let lines = self.last.iter().map(|(at, line)| match line {
            Line::World(happening) => self.line(*at, happening),
            Line::Node(node, event) => rendered(&self.names[*node], *at, event),
        });
        lines.collect()
    }

    /// A happening as a line of the event log: the live program's schema, with events that only a
    /// world outside the nodes can tell.
    fn line(&self, at: u64, happening: &Happening) -> Value {
        let node = |node: usize| self.config.nodes[node].name.clone();
        let app = |app: usize| self.config.applications[app].name.clone();
        let (whose, event, fields) = match *happening {
            Happening::Started {
                node: n,
                incarnation,
            } => (
                node(n),
                "process_started",
                json!({"incarnation": incarnation}),
            ),
            Happening::Ended { node: n } => (node(n), "process_ended", json!({})),
            Happening::WatchdogExpired { node: n } => (node(n), "cycle_hung", json!({})),
            Happening::WitnessStarted { reference } => (
                self.config.references[reference].name.clone(),
                "witness_started",
                json!({}),
            ),
            Happening::FaultBegins { fault, what } => (
                "world".into(),
                "fault_begins",
                json!({"fault": fault, "what": words(&self.config, &what).join(" ")}),
            ),
            Happening::FaultEnds { fault, what } => (
                "world".into(),
                "fault_ends",
                json!({"fault": fault, "what": words(&self.config, &what).join(" ")}),
            ),
            Happening::LinksChange { step } => {
                ("world".into(), "links_change", json!({"step": step}))
            }
            Happening::Overflow { node: n } => (node(n), "receive_buffer_full", json!({})),
            Happening::Published {
                node: n,
                application,
                cycle,
                ..
            } => (
                node(n),
                "published",
                json!({"application": app(application), "cycle": cycle}),
            ),
            Happening::Delivered {
                node: n,
                application,
                cycle,
            } => (
                node(n),
                "received",
                json!({"application": app(application), "cycle": cycle}),
            ),
            Happening::Resumed {
                node: n,
                application,
                with,
            } => (
                node(n),
                "resumed_with",
                json!({"application": app(application), "with": format!("{with:?}")}),
            ),
            Happening::Output { output, judgement } => (
                node(output.node),
                "device",
                json!({
                    "application": app(output.application), "epoch": output.epoch.0,
                    "cycle": output.cycle, "outcome": match judgement {
                        Judgement::Accepted => "accepted",
                        Judgement::OlderEpoch => "older_epoch",
                        Judgement::OlderCycle => "older_cycle",
                    },
                }),
            ),
        };
        let mut line = json!({
            "schema": "bumpless.event/1", "time_ns": at, "node": whose, "event": event,
        });
        if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) {
            line.extend(fields);
        }
        line
    }
}

/// What tells one happening from another, for the digest.
fn key(happening: &Happening) -> u64 {
    let parts = |kind: u64, a: u64, b: u64| kind << 56 ^ a.rotate_left(40) ^ b;
    match *happening {
        Happening::Started { node, incarnation } => parts(1, node as u64, incarnation.into()),
        Happening::Ended { node } => parts(2, node as u64, 0),
        Happening::WatchdogExpired { node } => parts(3, node as u64, 0),
        Happening::WitnessStarted { reference } => parts(4, reference as u64, 0),
        Happening::FaultBegins { fault, .. } => parts(5, fault.into(), 0),
        Happening::FaultEnds { fault, .. } => parts(6, fault.into(), 0),
        Happening::Overflow { node } => parts(7, node as u64, 0),
        Happening::Published {
            node,
            application,
            digest,
            ..
        } => parts(8, (node << 8 | application) as u64, digest),
        Happening::Delivered {
            node,
            application,
            cycle,
        } => parts(9, (node << 8 | application) as u64, cycle.into()),
        Happening::Resumed {
            node, application, ..
        } => parts(10, node as u64, application as u64),
        Happening::LinksChange { step } => parts(14, step.into(), 0),
        Happening::Output { output, judgement } => parts(
            11 + judgement as u64,
            (output.node << 8 | output.application) as u64,
            output.cycle,
        ),
    }
}

/// What else there is to tell of it.
fn detail(happening: &Happening) -> Option<u64> {
    let words = |what: &dyn std::fmt::Debug| digest(0, format!("{what:?}").as_bytes());
    match happening {
        Happening::FaultBegins { what, .. } => Some(words(what)),
        Happening::Resumed { with, .. } => Some(words(with)),
        Happening::Output { output, .. } => Some(output.epoch.0.into()),
        _ => None,
    }
}

/// A node's event as its log has it, but for the process: all nodes are in this one, whose number no seed gives again.
fn rendered(names: &Names, at: u64, event: &NodeEvent) -> Value {
    let mut line = render(names, Instant::from_nanos(at), event);
    if let Some(process) = line.get_mut("pid") {
        *process = 0.into();
    }
    line
}
