//! The bridge while it runs: an edge node at the broker, and what the node says told as it changes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bumpless_bridge::model::Shown;
use bumpless_bridge::node::{self, Said};
use bumpless_bridge::{Problem, Report, told_to_end};
use serde_json::json;
use srad_eon::{DeviceHandle, EoNBuilder, MetricPublisher, NodeHandle, PublishError};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::broker::{Way, connect};
use crate::look::{ANSWERS, Look, gone, is_slow};
use crate::metrics::{Change, Metrics, Values};

/// Between two looks at the node.
const LOOK: Duration = Duration::from_millis(200);
/// Between two tellings of figures that change all the time.
const SLOW: Duration = Duration::from_secs(5);
/// Between two births for other metrics: hosts have to take all of them.
const BIRTH_MIN: Duration = Duration::from_secs(1);
/// For the broker to hear of the end.
const END_MAX: Duration = Duration::from_secs(2);
/// Exit status of what a second signal ended.
const INTERRUPTED: u8 = 130;

/// What the bridge is told.
#[derive(Clone, Debug)]
pub struct Orders {
    /// The node's control socket.
    pub control: PathBuf,
    /// How the broker is reached.
    pub broker: Way,
    /// The group that the edge node is in.
    pub group: String,
    /// What the edge node is called.
    pub node: String,
}

/// Runs until it is told to end.
///
/// # Errors
/// What keeps it from starting.
pub async fn run(orders: Orders, report: Report) -> Result<ExitCode, Vec<Problem>> {
    let failed = |error: String| vec![Problem::new(error, "see spec/sparkplug.md")];
    let client = format!("bumpless-{}-{}", orders.group, orders.node);
    let options = orders.broker.options(&client)?;
    let (events, sender) = connect(options, orders.broker.place(), report);
    let metrics = Metrics::of_node();
    let answers = [(ANSWERS.to_owned(), Shown::Flag(false))];
    // That nothing is known yet is no change that anybody must hear of.
    let _ = metrics.update(answers.into(), |_, _| false);
    let (edge, handle) = EoNBuilder::new(events, sender)
        .with_group_id(&orders.group)
        .with_node_id(&orders.node)
        .with_metric_manager(metrics.clone())
        .build()
        .map_err(failed)?;
    tell_start(&orders, report);
    let mut shown = Edge {
        handle,
        metrics,
        born: Instant::now(),
        slow_due: Instant::now(),
        devices: BTreeMap::new(),
        trouble: None,
        report,
    };
    let running = tokio::spawn(edge.run());
    let told = until_told(&mut shown, &orders).await;
    let name = told.map_err(|error| failed(error.to_string()))?;
    report.tell(
        "stopping",
        &format!("stopping ({name})"),
        json!({"signal": name}),
    );
    let end = async {
        shown.handle.cancel().await;
        let _ = timeout(END_MAX, running).await;
    };
    Ok(tokio::select! {
        _ = timeout(END_MAX, end) => ExitCode::SUCCESS,
        _ = told_to_end() => ExitCode::from(INTERRUPTED),
    })
}

fn tell_start(orders: &Orders, report: Report) {
    let (group, node) = (&orders.group, &orders.node);
    let control = orders.control.display();
    let words = format!("edge node {group}/{node} shows the node at {control}");
    let broker = orders.broker.place();
    let fields = json!({"group": group, "node": node, "control": orders.control, "broker": broker});
    report.tell("started", &words, fields);
    if orders.broker.authorities.is_none() {
        let weakness = "MQTT without TLS: whoever is on the way to the broker reads all of it and may change what is read; give --ca \
                        in place of --insecure";
        report.tell(
            "insecure",
            &format!("WARNING: {weakness}"),
            json!({"weakness": weakness}),
        );
    }
}

/// Shows the node until a signal tells to end; returns its name.
async fn until_told(shown: &mut Edge, orders: &Orders) -> std::io::Result<&'static str> {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let told = told_to_end();
    tokio::pin!(told);
    loop {
        let look = async {
            looks.tick().await;
            let said = node::said(&orders.control).await;
            shown.show(said).await;
        };
        tokio::select! {
            () = look => {}
            name = &mut told => return name,
        }
    }
}

/// What hosts see.
struct Edge {
    handle: NodeHandle,
    metrics: Metrics,
    /// When it was last born for other metrics.
    born: Instant,
    /// When figures that change all the time are told again.
    slow_due: Instant,
    devices: BTreeMap<String, Device>,
    /// Why the node does not answer.
    trouble: Option<String>,
    report: Report,
}

struct Device {
    handle: DeviceHandle,
    metrics: Metrics,
    is_enabled: bool,
}

impl Edge {
    async fn show(&mut self, said: Result<Said, String>) {
        let look = Look::of(said.as_ref().ok());
        self.tell_trouble(said.err());
        for name in gone(self.devices.keys(), &look) {
            self.set_enabled(&name, false);
        }
        self.show_node(look.node).await;
        for (name, values) in look.applications {
            self.show_device(name, values).await;
        }
    }

    fn tell_trouble(&mut self, trouble: Option<String>) {
        match (&trouble, self.trouble.take()) {
            (Some(now), before) if before.as_ref() != Some(now) => {
                self.report
                    .tell("no_data", &format!("no data: {now}"), json!({"cause": now}));
            }
            (None, Some(_)) => self
                .report
                .tell("node_answers", "the node answers", json!({})),
            _ => {}
        }
        self.trouble = trouble;
    }

    async fn show_node(&mut self, values: Values) {
        let now = Instant::now();
        if now < self.born + BIRTH_MIN && self.metrics.differs(&values) {
            return;
        }
        let is_due = now >= self.slow_due;
        if is_due {
            self.slow_due = now + SLOW;
        }
        match self
            .metrics
            .update(values, |name, _| !is_due && is_slow(name))
        {
            Change::Nothing => {}
            Change::Birth => {
                self.born = now;
                self.handle.rebirth();
            }
            Change::Data(changed) => {
                let sent = self.handle.try_publish_metrics_unsorted(changed).await;
                self.sent(sent);
            }
        }
    }

    async fn show_device(&mut self, name: String, values: Values) {
        if !self.devices.contains_key(&name) {
            let metrics = self.metrics.of_device();
            let Ok(handle) = self.handle.register_device(&name, metrics.clone()) else {
                return;
            };
            let device = Device {
                handle,
                metrics,
                is_enabled: false,
            };
            self.devices.insert(name.clone(), device);
        }
        if values.is_empty() {
            return self.set_enabled(&name, false);
        }
        let Some(device) = self.devices.get_mut(&name) else {
            return;
        };
        match device.metrics.update(values, |_, _| false) {
            Change::Birth if device.is_enabled => device.handle.rebirth(),
            Change::Data(changed) if device.is_enabled => {
                let sent = device.handle.try_publish_metrics_unsorted(changed).await;
                self.sent(sent);
            }
            _ => self.set_enabled(&name, true),
        }
    }

    /// What did not find room on its way to the broker has used up a sequence number, and nobody hears of it again: all
    /// are born anew. Who has no connection is, when there is one.
    fn sent(&self, sent: Result<(), PublishError>) {
        if sent.is_err() {
            self.handle.rebirth();
        }
    }

    /// A device is there while this node has its process in hand.
    fn set_enabled(&mut self, name: &str, is_enabled: bool) {
        let Some(device) = self.devices.get_mut(name) else {
            return;
        };
        if device.is_enabled == is_enabled {
            return;
        }
        device.is_enabled = is_enabled;
        let (event, words) = match is_enabled {
            true => {
                device.handle.enable();
                ("device_born", "is in hand here")
            }
            false => {
                device.handle.disable();
                ("device_died", "is not in hand here")
            }
        };
        self.report.tell(
            event,
            &format!("application {name} {words}"),
            json!({"application": name}),
        );
    }
}
