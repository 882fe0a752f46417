//! The real programs at their sites: two controllers, a witness and the field device.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use bumpless_bench::network::namespace::Namespace;
use bumpless_controller::plant::log::Line;
use bumpless_node::control::{self, Request};
use bumpless_node::key_file;
use bumpless_wan::NodeId;
use bumpless_wan::emulation::Running;
use serde_json::Value;

use super::configuration::{KEY, Map, NODES};
use crate::demo::configuration::{PRIORITY, TIME_SCALE};
use crate::demo::processes::{Process, describe};
use crate::runlog::Write;
use crate::torture::ledger::{Count, Ledger};
use crate::torture::pair::{NodeEvent, View};
use crate::torture::tail::Tail;

/// How long the field device may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// The processes; they end with this value.
pub struct Pair<'a> {
    binary: &'a Path,
    directory: &'a Path,
    /// Of both controllers, the witness and the field device.
    places: [Namespace; 4],
    nodes: [Option<Process>; 2],
    logs: Logs,
    starts: usize,
    others: Vec<Process>,
    field_log: Tail,
    ledger: Ledger,
}

/// The logs of both controllers in the order in which their processes began, each with the place of its node.
#[derive(Default)]
struct Logs(Vec<(usize, Tail)>);

impl Logs {
    /// What has been logged since the last call, and how many lines could not be understood.
    fn take(&mut self) -> (Vec<NodeEvent>, u64) {
        let mut events = Vec::new();
        let mut holes = 0;
        for (node, log) in &mut self.0 {
            events.extend(log.take::<Value>().into_iter().map(|line| NodeEvent {
                node: *node,
                time_ns: line["time_ns"].as_u64().unwrap_or_default(),
                line,
            }));
            holes += log.take_holes();
        }
        // A process ends before its node's next one begins: all others are read to their end.
        let newest = [0, 1].map(|node| self.0.iter().rposition(|(of, _)| *of == node));
        let mut place = 0;
        self.0.retain(|_| {
            place += 1;
            newest.contains(&Some(place - 1))
        });
        (events, holes)
    }
}

impl<'a> Pair<'a> {
    /// Starts everything with the configuration `text`; files go to `directory`.
    ///
    /// # Errors
    /// A file cannot be written or a process not be started.
    pub fn start(
        binary: &'a Path,
        directory: &'a Path,
        running: &Running,
        map: &Map,
        (text, longest_lease_ms): (&str, u64),
    ) -> Result<Self, String> {
        let fail = |error: io::Error| format!("{}: {error}", directory.display());
        fs::write(directory.join("pair.toml"), text).map_err(fail)?;
        key_file::create(&directory.join(KEY)).map_err(|error| error.to_string())?;
        let at = |node: NodeId| {
            let file = File::open(running.namespace(node.index()));
            file.map(|file| Namespace::of(file.into())).map_err(fail)
        };
        let places = [
            at(map.nodes[0].0)?,
            at(map.nodes[1].0)?,
            at(map.witness.0)?,
            at(map.field.0)?,
        ];
        let mut pair = Self {
            binary,
            directory,
            places,
            nodes: [None, None],
            logs: Logs::default(),
            starts: 0,
            others: Vec::new(),
            field_log: Tail::new(directory.join("field.jsonl")),
            ledger: Ledger::default(),
        };
        let key = directory.join(KEY).display().to_string();
        let (witness, lease, priority) = (
            map.witness_address(),
            longest_lease_ms.to_string(),
            PRIORITY.to_string(),
        );
        let witness = [
            "witness",
            "--listen",
            &witness,
            "--longest-lease-ms",
            &lease,
            "--priority",
            &priority,
            "--key",
            &key,
        ];
        let witness = pair.process(2, "witness", &witness)?;
        pair.others.push(witness);
        pair.start_field(&map.field_address())?;
        (0..2).try_for_each(|node| pair.start_node(node))?;
        Ok(pair)
    }

    fn process(&self, place: usize, name: &str, arguments: &[&str]) -> Result<Process, String> {
        let mut command = Command::new(self.binary);
        command.args(arguments);
        self.places[place].put_into(&mut command);
        Process::spawn(command, self.directory, name).map_err(|error| format!("{name}: {error}"))
    }

    fn start_field(&mut self, address: &str) -> Result<(), String> {
        let (scale, priority) = (TIME_SCALE.to_string(), PRIORITY.to_string());
        let log = self.field_log.path().display().to_string();
        let arguments = [
            "plant",
            "--listen",
            address,
            "--check-epoch",
            "--time-scale",
            &scale,
            "--priority",
            &priority,
            "--log",
            &log,
        ];
        let mut field = self.process(3, "field", &arguments)?;
        let until = Instant::now() + PATIENCE;
        while !field.last_words().contains("listens") {
            if let Some(status) = field.ended() {
                return Err(format!(
                    "the field device has ended ({}): {}",
                    describe(status),
                    field.last_words()
                ));
            }
            if Instant::now() > until {
                return Err(format!(
                    "the field device does not listen: {}",
                    field.last_words()
                ));
            }
            thread::sleep(Duration::from_millis(1));
        }
        self.others.push(field);
        Ok(())
    }

    /// Starts a controller.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_node(&mut self, node: usize) -> Result<(), String> {
        self.starts += 1;
        let log = self
            .directory
            .join(format!("{}.{}.jsonl", NODES[node], self.starts));
        let (config, told) = (
            self.directory.join("pair.toml").display().to_string(),
            log.display().to_string(),
        );
        let process = self.process(
            node,
            NODES[node],
            &["run", &config, "--node", NODES[node], "--log", &told],
        )?;
        self.nodes[node] = Some(process);
        self.logs.0.push((node, Tail::new(log)));
        Ok(())
    }

    /// Ends a controller as the end of its site does; nanoseconds of CLOCK_BOOTTIME.
    pub fn kill_node(&mut self, node: usize) -> Option<u64> {
        self.nodes[node].take().map(Process::kill)
    }

    /// Orders a switchover of whoever is primary; what a refusal says.
    ///
    /// # Errors
    /// The node does not answer.
    pub fn order(&self, node: usize) -> Result<Option<String>, String> {
        let order = Request::Switchover {
            group: None,
            to: None,
        };
        let reply = control::request(&self.control(node), &order)
            .map_err(|error| format!("an ordered switchover: {error}"))?;
        Ok(reply["error"].as_str().map(str::to_owned))
    }

    fn control(&self, node: usize) -> PathBuf {
        self.directory.join(format!("{}.sock", NODES[node]))
    }

    /// The primary, if the pair is redundant at a moment after `since_ns`.
    pub fn redundant(&self, since_ns: u64) -> Option<usize> {
        let view = |node| {
            control::request(&self.control(node), &Request::Status)
                .ok()
                .map(View)
        };
        let views = [view(0)?, view(1)?];
        let primary = views.iter().position(|view| view.role() == "primary")?;
        let (first, second) = (&views[primary], &views[1 - primary]);
        let whole = first.group("redundancy") == "ok"
            && first.group("writes_outputs") == true
            && second.role() == "backup"
            && views.iter().all(|view| view.of_ns() >= since_ns);
        whole.then_some(primary)
    }

    /// Takes in what the field device has logged since the last call, counted.
    pub fn take_writes(&mut self, count: &mut Count) -> Vec<Write> {
        let lines = self.field_log.take::<Line>().into_iter();
        let written = lines.filter_map(|line| match line {
            Line::Write {
                at_ns,
                writer,
                epoch,
                cycle,
                accepted,
                ..
            } => Some(Write {
                time_ns: at_ns,
                writer: writer.into(),
                epoch: epoch.into(),
                cycle,
                outputs: vec![f64::NAN; 2],
                accepted,
            }),
            _ => None,
        });
        let writes: Vec<Write> = written.collect();
        writes
            .iter()
            .for_each(|write| self.ledger.take(write, count));
        writes
    }

    /// Takes in what the controllers have logged since the last call, and how many lines could not be understood.
    pub fn take_events(&mut self) -> (Vec<NodeEvent>, u64) {
        let (events, holes) = self.logs.take();
        (events, holes + self.field_log.take_holes())
    }

    /// What the controllers said last.
    pub fn last_words(&self) -> String {
        let words = NODES.iter().zip(&self.nodes).map(|(name, process)| {
            let words = process.as_ref().map(Process::last_words);
            format!(
                "{name}: {}",
                words.unwrap_or_else(|| "does not run".to_owned())
            )
        });
        words.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_log_of_a_controller_that_goes_on_is_read_however_often_the_other_one_begins() {
        let folder = tempfile::tempdir().unwrap();
        let mut logs = Logs::default();
        let begin = |logs: &mut Logs, node: usize, name: &str| {
            let path = folder.path().join(name);
            logs.0.push((node, Tail::new(path.clone())));
            File::create(path).unwrap()
        };
        let log = |mut file: &File, time_ns: u64| {
            writeln!(file, "{{\"event\": \"role\", \"time_ns\": {time_ns}}}").unwrap();
        };
        let taken = |logs: &mut Logs| {
            let (events, holes) = logs.take();
            assert_eq!(holes, 0);
            let events = events.iter().map(|it| (it.node, it.time_ns));
            events.collect::<Vec<_>>()
        };
        let right = begin(&mut logs, 1, "right.2");
        let ended = begin(&mut logs, 0, "left.3");
        log(&right, 1);
        log(&ended, 2);
        assert_eq!(taken(&mut logs), [(1, 1), (0, 2)]);
        // The left one is killed, and begins again.
        log(&ended, 3);
        let left = begin(&mut logs, 0, "left.4");
        log(&left, 4);
        log(&right, 5);
        assert_eq!(taken(&mut logs), [(1, 5), (0, 3), (0, 4)]);
        log(&right, 6);
        log(&left, 7);
        assert_eq!(taken(&mut logs), [(1, 6), (0, 7)]);
        assert_eq!(logs.0.len(), 2, "what has ended is not read again");
    }
}
