//! What the control socket's requests do.

use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bumpless_config::Config;
use bumpless_net_linux::{Clock, Waker};
use bumpless_redundancy::GroupId;
use rtrb::Producer;
use serde_json::{Value, json};

use crate::admission::Admission;
use crate::control::{Handler, Request, refusal};
use crate::data_plane::Command;
use crate::log::Names;
use crate::status::{self, Snapshot};

const PATIENCE: Duration = Duration::from_secs(1);

/// Answers requests from the snapshot and passes orders to the data plane.
pub struct Operator {
    config: Config,
    admission: Admission,
    names: Names,
    snapshot: Arc<Mutex<Snapshot>>,
    orders: Producer<Command>,
    waker: Waker,
    warnings: Arc<Mutex<Vec<String>>>,
}

impl Operator {
    /// An operator for one node.
    pub fn new(
        (config, admission): (Config, Admission),
        names: Names,
        snapshot: Arc<Mutex<Snapshot>>,
        orders: Producer<Command>,
        waker: Waker,
        warnings: Arc<Mutex<Vec<String>>>,
    ) -> Self {
        Self {
            config,
            admission,
            names,
            snapshot,
            orders,
            waker,
            warnings,
        }
    }

    fn status(&self) -> Value {
        // Held only for the copy, so that the data plane's next refresh finds it free.
        let snapshot = match self.snapshot.lock() {
            Ok(snapshot) => snapshot.clone(),
            Err(poisoned) => poisoned.into_inner().clone(),
        };
        let warnings = self
            .warnings
            .lock()
            .map(|warnings| warnings.clone())
            .unwrap_or_default();
        let mut status =
            status::render(&snapshot, &self.config, &self.names, &warnings, Clock.now());
        status["plan"] = self.admission.json();
        status
    }

    fn switchover(&mut self, name: Option<String>) -> Value {
        let group = match self.find_group(name.as_deref()) {
            Ok(group) => group,
            Err(refused) => return refused,
        };
        let (reply, answer) = sync_channel(1);
        if self
            .orders
            .push(Command::Switchover { group, reply })
            .is_err()
        {
            return refusal("too many orders are waiting; try again");
        }
        self.waker.wake();
        match answer.recv_timeout(PATIENCE) {
            Ok(Ok(())) => json!({"schema": "bumpless.accepted/1", "accepted": "switchover"}),
            Ok(Err(refused)) => refusal(format_args!("no switchover: {refused}")),
            Err(_) => refusal("the data plane does not answer; see the node's log"),
        }
    }

    fn find_group(&self, name: Option<&str>) -> Result<GroupId, Value> {
        let names: Vec<_> = self
            .config
            .groups
            .iter()
            .map(|group| group.name.as_str())
            .collect();
        let position = match name {
            Some(name) => names.iter().position(|candidate| *candidate == name),
            None if names.len() == 1 => Some(0),
            None => {
                return Err(refusal(format_args!(
                    "name one of the groups: {}",
                    names.join(", ")
                )));
            }
        };
        position
            .map(|position| GroupId(position as u16))
            .ok_or_else(|| {
                refusal(format_args!(
                    "no such group; the configuration has {}",
                    names.join(", ")
                ))
            })
    }
}

impl Handler for Operator {
    fn handle(&mut self, request: Request) -> Value {
        match request {
            Request::Status => self.status(),
            Request::Switchover { group } => self.switchover(group),
        }
    }
}
