//! A pair (or pool) at work: configuration, witnesses, plant and nodes as processes.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::hosts::Hosts;
use super::plan::Plan;
use super::process::{Process, said};
use super::writes::Writes;
use super::{json_lines, wait_for, wait_until};

pub struct Site {
    pub plan: Plan,
    directory: TempDir,
    hosts: Option<Hosts>,
    witnesses: BTreeMap<usize, Process>,
    plant: Option<Process>,
    nodes: BTreeMap<String, Process>,
    /// Further options of `bumpless run`.
    pub run_options: Vec<&'static str>,
}

impl Site {
    /// The configuration written, nothing started.
    pub fn new(plan: Plan) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let site = Self {
            plan,
            directory,
            hosts: None,
            witnesses: BTreeMap::new(),
            plant: None,
            nodes: BTreeMap::new(),
            run_options: Vec::new(),
        };
        std::fs::write(site.config(), site.plan.text(site.directory.path())).unwrap();
        if site.plan.key_lifetime_s.is_some() {
            site.issue_certificates();
        } else if !site.plan.open {
            let (_, stderr, status) = said(&["key", "new", site.key().to_str().unwrap()]);
            assert_eq!(status, Some(0), "{stderr}");
        }
        site
    }

    fn issue_certificates(&self) {
        let authority = self.path("pki").display().to_string();
        let (_, stderr, status) = said(&["pki", "init", &authority, "--site", "plant"]);
        assert_eq!(status, Some(0), "{stderr}");
        let nodes = self.plan.nodes.iter();
        let nodes = nodes.map(|node| format!("{}.{}", node.name, self.plan.name));
        let witnesses = (0..self.plan.witnesses.len()).map(|number| format!("w{number}.witness"));
        nodes.chain(witnesses).for_each(|name| self.issue(&name));
    }

    /// Issues a certificate into the folder that is called as whose it is.
    pub fn issue(&self, name: &str) {
        let authority = self.path("pki").display().to_string();
        let out = self.path(name).display().to_string();
        let issue = [
            "pki",
            "issue",
            name,
            "--authority",
            &authority,
            "--out",
            &out,
        ];
        let (_, stderr, status) = said(&issue);
        assert_eq!(status, Some(0), "{stderr}");
    }

    /// What a witness with a certificate is told.
    fn certified(&self, number: usize) -> Vec<String> {
        let folder = self.directory.path().display().to_string();
        let name = format!("w{number}");
        let mut told = vec!["--certificates".into(), folder, "--name".into(), name];
        for node in &self.plan.nodes {
            told.push("--serve".into());
            told.push(format!("{}.{}", node.name, self.plan.name));
        }
        told
    }

    /// The file with the pair's key, where its configuration looks for it.
    pub fn key(&self) -> PathBuf {
        self.path(&format!("{}.key", self.plan.name))
    }

    /// What a witness is told of the pair's messages.
    pub fn protection(&self) -> Vec<String> {
        match self.plan.open {
            true => vec!["--open".into()],
            false => vec!["--key".into(), self.key().display().to_string()],
        }
    }

    /// Puts each process that is started from here on on the host of its name; witnesses and plant
    /// are on `field`.
    pub fn on(mut self, hosts: Hosts) -> Self {
        self.hosts = Some(hosts);
        self
    }

    pub fn hosts(&self) -> &Hosts {
        self.hosts.as_ref().unwrap()
    }

    /// Every witness and, where an application has one, the plant.
    pub fn start_surroundings(&mut self) {
        self.start_witnesses();
        self.start_plant(&[]);
    }

    /// Witnesses and plant as prompt as nodes with `[realtime]`, where that is permitted: they stand for computers of their own, from which
    /// what keeps the nodes' busy takes nothing.
    pub fn hurry_surroundings(&self) {
        let processes = self.witnesses.values().chain(&self.plant);
        for process in processes {
            let tasks = format!("/proc/{}/task", process.pid());
            for task in std::fs::read_dir(tasks).into_iter().flatten().flatten() {
                let number = task.file_name().to_string_lossy().parse().unwrap();
                let priority = libc::sched_param { sched_priority: 20 };
                // SAFETY: it reads a structure that lives through the call; a thread that is gone is refused.
                unsafe { libc::sched_setscheduler(number, libc::SCHED_FIFO, &raw const priority) };
            }
        }
    }

    pub fn start_witnesses(&mut self) {
        (0..self.plan.witnesses.len()).for_each(|number| self.start_witness(number));
    }

    pub fn start_witness(&mut self, number: usize) {
        let address = self.plan.witnesses[number].1.to_string();
        // For this long after its start a witness grants nothing, so no longer than needed.
        let lease = self.plan.lease_ms.to_string();
        let protection = match self.plan.key_lifetime_s {
            Some(_) => self.certified(number),
            None => self.protection(),
        };
        let mut arguments = vec![
            "witness",
            "--listen",
            &address,
            "--longest-lease-ms",
            &lease,
            "--json",
        ];
        arguments.extend(protection.iter().map(String::as_str));
        let process = self.start_at("field", &arguments, &format!("w{number}"));
        self.witnesses.insert(number, process);
    }

    /// One process for all witnesses, with the certificate of each at its address.
    pub fn start_witness_for_all(&mut self) {
        let lease = self.plan.lease_ms.to_string();
        let folder = self.directory.path().display().to_string();
        let mut arguments = vec!["witness".to_owned(), "--longest-lease-ms".into(), lease];
        arguments.extend(["--certificates".into(), folder]);
        for (number, (_, address)) in self.plan.witnesses.iter().enumerate() {
            arguments.extend(["--listen".into(), address.to_string()]);
            arguments.extend(["--name".into(), format!("w{number}")]);
        }
        for node in &self.plan.nodes {
            arguments.extend([
                "--serve".into(),
                format!("{}.{}", node.name, self.plan.name),
            ]);
        }
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let process = self.start_at("field", &arguments, "witnesses");
        self.witnesses.insert(0, process);
    }

    pub fn kill_witness(&mut self, number: usize) {
        self.take_witness(number).kill();
    }

    /// A witness's process, to be waited for.
    pub fn take_witness(&mut self, number: usize) -> Process {
        self.witnesses.remove(&number).unwrap()
    }

    pub fn witness(&mut self, number: usize) -> &mut Process {
        self.witnesses.get_mut(&number).unwrap()
    }

    /// The plant, with `more` options; returns when it listens.
    pub fn start_plant(&mut self, more: &[&str]) {
        let (address, log) = (self.plan.plant.to_string(), self.path("plant.jsonl"));
        let mut arguments = vec![
            "plant",
            "--listen",
            &address,
            "--log",
            log.to_str().unwrap(),
        ];
        arguments.extend(more);
        let process = self.start_at("field", &arguments, "plant");
        wait_until("the plant listens", || process.said().contains("listens"));
        self.plant = Some(process);
    }

    pub fn kill_plant(&mut self) {
        self.take_plant().kill();
    }

    /// The plant's process, to be waited for.
    pub fn take_plant(&mut self) -> Process {
        self.plant.take().unwrap()
    }

    pub fn plant(&mut self) -> &mut Process {
        self.plant.as_mut().unwrap()
    }

    pub fn start(&mut self, node: &str) {
        self.start_with(node, &self.config());
    }

    /// Starts `node` by another configuration file.
    pub fn start_with(&mut self, node: &str, config: &Path) {
        self.start_as(node, node, config);
    }

    /// Starts `node` by `config`, known here as `name`.
    pub fn start_as(&mut self, name: &str, node: &str, config: &Path) {
        let log = self.log_path(name);
        let (config, log) = (config.to_str().unwrap(), log.to_str().unwrap());
        let mut arguments = vec!["run", config, "--node", node, "--log", log, "--log-outputs"];
        arguments.extend(&self.run_options);
        let process = self.start_at(name, &arguments, name);
        self.nodes.insert(name.into(), process);
    }

    fn start_at(&self, host: &str, arguments: &[&str], name: &str) -> Process {
        let said = self.path(&format!("{name}.said"));
        match &self.hosts {
            Some(hosts) => hosts.at(host, || Process::start(arguments, &said)),
            None => Process::start(arguments, &said),
        }
    }

    pub fn node(&mut self, node: &str) -> &mut Process {
        self.nodes.get_mut(node).unwrap()
    }

    pub fn kill(&mut self, node: &str) {
        self.take(node).kill();
    }

    /// The process of `node`, to be waited for.
    pub fn take(&mut self, node: &str) -> Process {
        self.nodes.remove(node).unwrap()
    }

    /// SIGINT; returns when the node has ended in order.
    pub fn interrupt(&mut self, node: &str) {
        self.take(node).interrupt();
    }

    /// SIGINT to all nodes at once.
    pub fn interrupt_all(&mut self) {
        let nodes = std::mem::take(&mut self.nodes);
        nodes.values().for_each(|node| node.signal(libc::SIGINT));
        for (name, node) in nodes {
            let status = node.wait();
            assert!(status.success(), "{name}: {status:?}");
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn config(&self) -> PathBuf {
        self.path("pair.toml")
    }

    pub fn socket(&self, node: &str) -> PathBuf {
        self.path(&format!("{node}.sock"))
    }

    pub fn log_path(&self, node: &str) -> PathBuf {
        self.path(&format!("{node}.jsonl"))
    }

    /// Everything that `node` has logged, over all its starts.
    pub fn events(&self, node: &str) -> Vec<Value> {
        json_lines(&self.log_path(node))
    }

    /// Events of one kind.
    pub fn events_of(&self, node: &str, event: &str) -> Vec<Value> {
        let mut events = self.events(node);
        events.retain(|line| line["event"] == event);
        events
    }

    /// Waits until `node` has logged an `event` that `wanted` takes.
    pub fn await_event(&self, node: &str, event: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        wait_for(&format!("event {event} of {node}"), || {
            self.events_of(node, event).into_iter().rev().find(&wanted)
        })
    }

    /// What `node` answers to `request` on its control socket; `None` if nobody answers.
    pub fn ask(&self, node: &str, request: &str) -> Option<Value> {
        let stream = UnixStream::connect(self.socket(node)).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        writeln!(&stream, "{request}").ok()?;
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    pub fn status(&self, node: &str) -> Option<Value> {
        self.ask(node, r#"{"command":"status"}"#)
    }

    /// Waits until the status of `node` satisfies `wanted`.
    pub fn await_status(&self, what: &str, node: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        wait_for(&format!("{what} at {node}"), || {
            self.status(node).filter(|status| wanted(status))
        })
    }

    /// A counter of `node`.
    pub fn counter(&self, node: &str, name: &str) -> u64 {
        let status = self
            .status(node)
            .unwrap_or_else(|| panic!("{node} does not answer"));
        status["counters"][name]
            .as_u64()
            .unwrap_or_else(|| panic!("no counter {name}"))
    }

    /// What `node` says of `group`.
    pub fn group(&self, node: &str, group: &str) -> Option<Value> {
        let status = self.status(node)?;
        let groups = status["groups"].as_array()?;
        groups.iter().find(|one| one["name"] == group).cloned()
    }

    /// Waits until `node` is primary of `group` and may write; gives the epoch.
    pub fn await_primary(&self, node: &str, group: &str) -> u64 {
        wait_for(&format!("{node} is primary of {group}"), || {
            let group = self.group(node, group)?;
            let writes = group["role"] == "primary" && group["writes_outputs"] == true;
            writes.then(|| group["epoch"].as_u64().unwrap())
        })
    }

    /// Waits until `group` is whole with either node as primary; gives primary, backup and epoch.
    pub fn await_redundant(&self, group: &str) -> (String, String, u64) {
        self.await_redundancy(group, "ok")
    }

    /// Waits until primary and backup of `group` are there and the primary calls its redundancy
    /// `level`.
    pub fn await_redundancy(&self, group: &str, level: &str) -> (String, String, u64) {
        let candidates = &self
            .plan
            .groups
            .iter()
            .find(|one| one.name == group)
            .unwrap()
            .nodes;
        let role = |node: &str| self.group(node, group);
        wait_for(&format!("redundancy of {group} is {level}"), || {
            let [one, other] = candidates;
            for (primary, backup) in [(one, other), (other, one)] {
                let (Some(first), Some(second)) = (role(primary), role(backup)) else {
                    return None;
                };
                let whole = first["redundancy"] == level && first["writes_outputs"] == true;
                if first["role"] == "primary"
                    && second["role"] == "backup"
                    && second["synced"] == true
                    && whole
                {
                    let epoch = first["epoch"].as_u64().unwrap();
                    return Some((primary.clone(), backup.clone(), epoch));
                }
            }
            None
        })
    }

    /// What the plant has logged.
    pub fn writes(&self) -> Writes {
        Writes::read(&self.path("plant.jsonl"))
    }

    /// Waits until the plant's log has come to `at_ns`, a reading of the machine's clock: all that the plant saw
    /// before then stands in it, since its lines are in the order of events (F-24).
    pub fn await_plant_at(&self, at_ns: u64) {
        wait_until("the plant's log to come further", || {
            let lines = json_lines(&self.path("plant.jsonl"));
            let last = lines.iter().rev().find_map(|line| line["at_ns"].as_u64());
            last >= Some(at_ns)
        });
    }

    /// Waits until the plant has accepted a write in `epoch` or a later one.
    pub fn await_write_in(&self, epoch: u64) {
        wait_until(&format!("an accepted write in epoch {epoch}"), || {
            self.writes()
                .accepted()
                .last()
                .is_some_and(|write| write.epoch >= epoch)
        });
    }

    /// Waits until the plant has accepted `count` more writes.
    pub fn await_writes(&self, count: usize) {
        let before = self.writes().accepted().count();
        wait_until(&format!("{count} more writes"), || {
            self.writes().accepted().count() >= before + count
        });
    }

    fn tell(&self) {
        for node in self.plan.nodes.iter().map(|node| &node.name) {
            eprintln!(
                "--- {node}: {:?}",
                self.status(node).map(|status| status["groups"].to_string())
            );
            let events = self.events(node);
            let told = events.iter();
            let told = told.filter(|line| line["outcome"] != "written" && line["event"] != "stall");
            for line in told.collect::<Vec<_>>().iter().rev().take(40).rev() {
                eprintln!("{line}");
            }
            let said = std::fs::read_to_string(self.path(&format!("{node}.said")));
            let said = said.unwrap_or_default();
            let words = said.lines().filter(|line| !line.contains(" output "));
            for line in words.collect::<Vec<_>>().iter().rev().take(5).rev() {
                eprintln!("said: {line}");
            }
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.tell();
        }
    }
}
