//! `bumpless apply`: change the applications of a running pair.

mod ending;
mod told;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bumpless_config::{Change, Config};
use bumpless_node::control::{Request, Station};
use clap::Args;
use serde_json::{Value, json};

use self::ending::Ending;
use self::told::{Fates, lines, lists, together};
use crate::output::{self, Failure, Outcome};
use crate::stop;

const LOOK: Duration = Duration::from_millis(5);
/// Between two lines about what is waited for.
const PROGRESS: Duration = Duration::from_secs(5);

/// Change the applications of a running pair to those of another configuration
///
/// Applications may come, go, and be tuned (period, deadline, expiry, commit, parameters, field I/O) without a
/// missed cycle of those that stay, and a program may go on in another version with its state: by names and types of variables
/// (PLC), by a function of its own (others); what becomes of it is told before anything is changed, and --dry-run tells
/// that alone. Where the next file says `together = true` (section `change`), all that are tuned change at one moment, or none does.
/// Everything else takes a restart. Both nodes put the new configuration
/// beside the old one first; then they change together, and it takes the old file's place. Until then the
/// old one is in force on both. After a refusal, Ctrl-C, and --wait the change is withdrawn, unless a node is making it
/// already: which configuration is in force is then asked of the nodes, and told.
///
/// Exit status 0: the new configuration is in force, also where it could not be withdrawn any more. 1: it is not, or not on all
/// that were asked, or nobody knows yet. 2: a file or the usage is wrong.
///
/// Asks every node of the pair that runs on this machine. A node with a certificate brings the new file to its partner
/// and asks it for the same. Without, put the file on both machines and run this on each, with --node: the first waits
/// for the second.
#[derive(Debug, Args)]
pub struct Apply {
    /// The configuration file with which the nodes run
    config: PathBuf,
    /// The file of the next configuration
    #[arg(required_unless_present = "withdraw")]
    new: Option<PathBuf>,
    /// Ask only this node
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Give up what is prepared and not made yet
    #[arg(long, conflicts_with = "new")]
    withdraw: bool,
    /// Only tell what would change, and what would become of the states of programs
    #[arg(long, conflicts_with = "withdraw")]
    dry_run: bool,
    /// Seconds to wait for both nodes; then the change is withdrawn where it is not being made already
    // A node withdraws by itself after 60 s.
    #[arg(long, value_name = "S", default_value_t = 50, value_parser = clap::value_parser!(u64).range(..=55))]
    wait: u64,
    /// Print the result as JSON (schema bumpless.apply/1)
    #[arg(long)]
    json: bool,
}

/// A node that is asked.
struct Asked {
    name: String,
    station: Station,
}

impl Asked {
    fn request(&self, request: &Request) -> Result<Value, Failure> {
        let reply = self
            .station
            .request(request)
            .map_err(|error| Failure::refused(format_args!("'{}': {error}", self.name)))?;
        match reply["error"].as_str() {
            Some(error) => Err(Failure::refused(format_args!("'{}': {error}", self.name))),
            None => Ok(reply),
        }
    }

    fn configuration(&self) -> Result<Value, Failure> {
        Ok(self.request(&Request::Status)?["configuration"].take())
    }

    /// Whether it has made the change already, or its partner has it prepare it.
    fn is_on_the_way(&self, fingerprint: &str) -> bool {
        let configuration = self.configuration().unwrap_or_default();
        configuration["fingerprint"] == fingerprint || configuration["next"] == fingerprint
    }

    /// Whether it was asked for the same before, and waits for its partner: it goes on with that.
    fn has_prepared(&self, fingerprint: &str) -> bool {
        let configuration = self.configuration().unwrap_or_default();
        configuration["next"] == fingerprint && !configuration["change"].is_null()
    }
}

impl Apply {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let json = self.json;
        self.execute().map_err(|failure| failure.in_json(json))
    }

    fn execute(self) -> Outcome {
        let old = output::load(&self.config, self.json)?;
        let Some(new) = &self.new else {
            return self.give_up(&self.nodes(&old)?);
        };
        let next = output::load(new, self.json).map_err(Failure::of_what_runs)?;
        let file = absolute(new)?;
        if file == absolute(&self.config)? {
            return Err(Failure::usage(format_args!(
                "{} is the file with which the nodes run; write the next configuration to a file of its \
                 own, which takes that one's place when both nodes have changed",
                self.config.display()
            )));
        }
        let change = Change::between(&old, &next, &new.display().to_string())
            .map_err(|problems| Failure::configuration_change(&problems, self.json))?;
        let fates = Fates::of(&old, &next, &change);
        if self.dry_run {
            return self.told_alone((&old, &next, &change), &fates);
        }
        if !self.json {
            fates.lines().iter().for_each(output::warn);
        }
        let nodes = self.nodes(&old)?;
        let stop = stop::stop_flag()?;
        let began = Instant::now();
        let fingerprint = format!("{:016x}", next.fingerprint());
        let (mut prepared, mut carried_to) = (Vec::new(), None);
        for node in &nodes {
            if !node.has_prepared(&fingerprint) {
                let request = Request::Apply { file: file.clone() };
                match node.request(&request) {
                    Ok(reply) => {
                        carried_to = carried_to.or(reply["partner"].as_str().map(str::to_owned))
                    }
                    // The one that was asked before has asked this one.
                    Err(_) if !prepared.is_empty() && node.is_on_the_way(&fingerprint) => {}
                    Err(failure) if prepared.is_empty() => return Err(failure),
                    Err(failure) => {
                        let ending = Ending::withdrawn(&prepared, &nodes, &fingerprint);
                        return Err(failure.followed_by(ending.told()));
                    }
                }
            }
            prepared.push(node);
        }
        if let Err(failure) = self.await_all(&nodes, &fingerprint, &stop) {
            let ending = Ending::withdrawn(&prepared, &nodes, &fingerprint);
            let failure = failure.followed_by(ending.told());
            if !ending.is_made() {
                return Err(failure);
            }
            failure.lines().iter().for_each(output::remark);
        }
        let mut names: Vec<_> = nodes.iter().map(|node| node.name.clone()).collect();
        names.extend(carried_to.filter(|name| !names.contains(name)));
        self.done((&old, &next, &change), &fates, &names, began.elapsed());
        Ok(ExitCode::SUCCESS)
    }

    /// What would change; nothing does.
    fn told_alone(&self, all: (&Config, &Config, &Change), fates: &Fates) -> Outcome {
        if self.json {
            let mut line =
                json!({"schema": "bumpless.apply/1", "pair": all.1.pair, "dry_run": true});
            for (what, names) in lists(all) {
                line[what] = names.into();
            }
            line["together"] = together(all).into();
            line["states"] = fates.as_json();
            output::print_line(line);
        } else {
            lines(all).iter().for_each(output::print_line);
            fates.lines().iter().for_each(output::print_line);
        }
        let refused: Vec<String> = fates.refused().collect();
        match refused.is_empty() {
            true => Ok(ExitCode::SUCCESS),
            false => Err(Failure::refused(refused.join("\n"))),
        }
    }

    /// The named node, or all that run on this machine.
    fn nodes(&self, config: &Config) -> Result<Vec<Asked>, Failure> {
        if let Some(name) = &self.node {
            let node = output::find_node(config, name)?;
            let station = Station::of(config, node);
            let name = name.clone();
            return Ok(vec![Asked { name, station }]);
        }
        let (mut here, mut elsewhere) = (Vec::new(), Vec::new());
        for (at, node) in config.nodes.iter().enumerate() {
            let station = Station::of(config, bumpless_base::NodeId(at as u8));
            if station.exists() {
                let name = node.name.clone();
                here.push(Asked { name, station });
            } else if let Some(hint) = station.elsewhere() {
                elsewhere.push(format!("\n'{}': {hint}", node.name));
            }
        }
        if here.is_empty() {
            return Err(Failure::refused(format_args!(
                "no node of '{}' answers on this machine; run this where the nodes run, as the user who runs them{}",
                config.pair,
                elsewhere.concat()
            )));
        }
        Ok(here)
    }

    fn await_all(
        &self,
        nodes: &[Asked],
        fingerprint: &str,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), Failure> {
        let began = Instant::now();
        let mut told = began;
        loop {
            let mut waits = None;
            for node in nodes {
                // It may be on its way back, with what it has prepared.
                let Ok(configuration) = node.configuration() else {
                    waits = Some((&node.name, "unknown, as it does not answer".to_owned()));
                    continue;
                };
                let made = configuration["fingerprint"] == fingerprint;
                let change = configuration["change"].as_str();
                if !made && change.is_none() {
                    return Err(Failure::refused(format_args!(
                        "'{}' has given the change up; see its log",
                        node.name
                    )));
                }
                let follows = change.is_none_or(|change| change.starts_with("made;"));
                if !(made && follows) {
                    waits = Some((&node.name, change.unwrap_or("being made").to_owned()));
                }
            }
            let Some((name, doing)) = waits else {
                return Ok(());
            };
            let waited = began.elapsed();
            if stop.load(Ordering::Acquire) {
                return Err(Failure::refused(format_args!(
                    "stopped while the change on '{name}' is {doing}"
                )));
            }
            if waited.as_secs() >= self.wait {
                return Err(Failure::refused(format_args!(
                    "after {} s the change on '{name}' is {doing}. The \
                     other node must run, hear this one, be asked for the same change, and have \
                     the same files of programs (`bumpless check` shows their hashes)",
                    self.wait
                )));
            }
            if told.elapsed() >= PROGRESS {
                told = Instant::now();
                output::warn(format_args!(
                    "'{name}': {doing}; given up in {} s",
                    self.wait.saturating_sub(waited.as_secs())
                ));
            }
            thread::sleep(LOOK);
        }
    }

    fn give_up(&self, nodes: &[Asked]) -> Outcome {
        let changes = |node: &&Asked| {
            let configuration = node.configuration();
            configuration.is_ok_and(|configuration| !configuration["change"].is_null())
        };
        let mut asked: Vec<_> = nodes.iter().filter(changes).collect();
        if asked.is_empty() {
            asked.extend(nodes);
        }
        let (mut names, mut refused) = (Vec::new(), None);
        for node in asked {
            match node.request(&Request::Withdraw) {
                Ok(_) => names.push(&node.name),
                // A node that follows is free when it hears that the other one has withdrawn.
                Err(failure) => refused = refused.or(Some(failure)),
            }
        }
        if let Some(failure) = refused.filter(|_| names.is_empty()) {
            return Err(failure);
        }
        output::done("the prepared change was given up");
        if self.json {
            output::print_line(json!({"schema": "bumpless.apply/1", "withdrawn": names}));
        } else {
            output::print_line("the prepared change was given up; nothing has changed");
        }
        Ok(ExitCode::SUCCESS)
    }

    fn done(
        &self,
        all: (&Config, &Config, &Change),
        fates: &Fates,
        nodes: &[String],
        took: Duration,
    ) {
        let new = all.1;
        output::done("the new configuration is in force");
        if self.json {
            let mut line = json!({
                "schema": "bumpless.apply/1",
                "pair": new.pair,
                "fingerprint": format!("{:016x}", new.fingerprint()),
                "in_force_on": nodes,
                "took_ms": took.as_secs_f64() * 1e3,
            });
            for (what, names) in lists(all) {
                line[what] = names.into();
            }
            line["together"] = together(all).into();
            line["states"] = fates.as_json();
            output::print_line(line);
            return;
        }
        lines(all).iter().for_each(output::print_line);
        output::print_line(format_args!(
            "in force on {} after {:.0} ms; {} is what a restart begins with",
            nodes.join(" and "),
            took.as_secs_f64() * 1e3,
            self.config.display()
        ));
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    path.canonicalize()
        .map_err(|error| Failure::usage(format_args!("cannot find {}: {error}", path.display())))
}
