//! Asks both nodes again and again what they say of themselves, while a fault lasts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bumpless_node::control::{self, Request};
use serde_json::Value;

use super::now_ns;
use super::result::Said;
use crate::demo::configuration::NODES;

/// Time between two questions.
const LOOK: Duration = Duration::from_millis(40);
/// Most different answers that are kept.
const SAID_MAX: usize = 400;

/// What a node said, from when on.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// Nanoseconds of CLOCK_BOOTTIME.
    pub at_ns: u64,
    /// What.
    pub said: Said,
}

/// The thread that asks.
#[derive(Debug)]
pub struct Watch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Heard>>>,
}

impl Watch {
    /// Asks the nodes with these control sockets, whose weaknesses are `usual`.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn start(controls: [PathBuf; 2], usual: [Vec<String>; 2]) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let ask = move || {
            let mut heard: Vec<Heard> = Vec::new();
            let mut last: [Option<Said>; 2] = [None, None];
            while !stopping.load(Ordering::Relaxed) {
                for node in 0..2 {
                    let said = ask(node, &controls[node], &usual[node]);
                    if last[node].as_ref() != Some(&said) && heard.len() < SAID_MAX {
                        last[node] = Some(said.clone());
                        let at_ns = now_ns();
                        heard.push(Heard { at_ns, said });
                    }
                }
                thread::sleep(LOOK);
            }
            heard
        };
        Ok(Self {
            stop,
            thread: Some(thread::Builder::new().name("watch".into()).spawn(ask)?),
        })
    }

    /// Ends asking, and gives what was said: each answer that differed from the one before.
    pub fn end(mut self) -> Vec<Heard> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take();
        thread
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Texts in a list of a status.
pub fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn ask(node: usize, control: &Path, usual: &[String]) -> Said {
    let name = NODES[node].to_owned();
    match control::request(control, &Request::Status) {
        Ok(status) => understand(name, &status, usual),
        Err(_) => Said {
            node: name,
            role: "silent".into(),
            writes_outputs: false,
            redundancy: String::new(),
            cause: String::new(),
            links_down: Vec::new(),
            weaknesses: Vec::new(),
        },
    }
}

fn understand(node: String, status: &Value, usual: &[String]) -> Said {
    let group = &status["groups"][0];
    let text = |field: &str| group[field].as_str().unwrap_or_default().to_owned();
    let links = status["links"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let down = links.iter().filter(|link| link["up"] == false);
    let name = |link: &Value| link["network"].as_str().map(str::to_owned);
    let mut weaknesses = texts(&status["weaknesses"]);
    weaknesses.retain(|weakness| !usual.contains(weakness));
    Said {
        node,
        role: text("role"),
        writes_outputs: group["writes_outputs"] == true,
        redundancy: text("redundancy"),
        cause: text("cause"),
        links_down: down.filter_map(name).collect(),
        weaknesses,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_node_says_is_its_role_why_and_what_is_unusual() {
        let status = json!({
            "groups": [{"role": "primary", "writes_outputs": true, "redundancy": "degraded",
                        "cause": "network A is down"}],
            "links": [{"network": "A", "up": false}, {"network": "B", "up": true}],
            "weaknesses": ["always so", "new"],
        });
        let said = understand("left".into(), &status, &["always so".into()]);
        assert_eq!(
            (said.role.as_str(), said.redundancy.as_str()),
            ("primary", "degraded")
        );
        assert_eq!(
            (said.links_down, said.weaknesses),
            (vec!["A".to_owned()], vec!["new".to_owned()])
        );
        assert!(said.writes_outputs);
    }

    #[test]
    fn a_node_that_does_not_answer_is_silent() {
        assert_eq!(ask(0, Path::new("/nowhere/left.sock"), &[]).role, "silent");
    }
}
