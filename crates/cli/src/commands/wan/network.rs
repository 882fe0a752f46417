//! `bumpless wan up`, `down`, `status` and `exec`: the network on this machine.

use std::env;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use bumpless_wan::Topology;
use bumpless_wan::emulation::{self, Delays, Place, Routing, Running};
use clap::Args;
use serde_json::{Value, json};

use super::{Network, impairment};
use crate::output::{self, Failure, Outcome};

/// Exit statuses of shells: a program that is not there, and one that cannot be started.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

/// Which network is meant.
#[derive(Debug, Args)]
pub struct Name {
    /// Its name: several networks can be up, beside each other
    #[arg(long = "name", value_name = "NAME", default_value = "grid")]
    pub name: String,
}

impl Name {
    fn place(&self) -> Result<Place, Failure> {
        Place::new(&self.name).map_err(Failure::usage)
    }

    /// The network of this name, which must be up.
    pub fn running(&self) -> Result<(Running, Topology), Failure> {
        let running = self.place()?.running().map_err(Failure::refused)?;
        let name = &self.name;
        let running = running.ok_or_else(|| {
            Failure::refused(format_args!(
                "no network called {name} is up; `bumpless wan up --name {name}` makes one"
            ))
        })?;
        let topology = running.topology().map_err(Failure::refused)?;
        Ok((running, topology))
    }
}

/// Put the network on this machine: a namespace for each node, forwarding by the kernel
///
/// It stays until `bumpless wan down`. It takes root, and touches nothing that is not its own.
#[derive(Debug, Args)]
pub struct Up {
    #[command(flatten)]
    network: Network,
    #[command(flatten)]
    name: Name,
    /// Who decides where packets go: fixed routes with the fewest hops, equal-cost, which are the same over all links that are
    /// equally near, or ospf, the daemon BIRD on each router with BFD
    #[arg(long, value_name = "WHO", default_value = "fixed", value_parser = routing)]
    routing: Routing,
    /// Print the result as JSON (schema bumpless.wan-status/1)
    #[arg(long)]
    pub json: bool,
}

/// Who decides where packets go.
pub fn routing(text: &str) -> Result<Routing, String> {
    Routing::named(text).ok_or_else(|| "give fixed, equal-cost or ospf".to_owned())
}

/// The same where outages are on the ways of what is measured.
pub fn routing_with_outages(text: &str) -> Result<Routing, String> {
    let known = Routing::named(text).filter(|it| *it != Routing::EqualCost);
    known.ok_or_else(|| {
        "give fixed or ospf; over equal links it would be chance whether an outage is on a way"
            .to_owned()
    })
}

impl Up {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let topology = self.network.topology()?;
        self.network.addresses(&topology)?;
        let place = self.name.place()?;
        let program = env::current_exe().map_err(Failure::refused)?;
        let mut keeper = Command::new(program);
        keeper.args(["wan", "keep", "--name", place.name()]);
        let settings = (self.network.pool, self.routing);
        let running =
            emulation::up(&place, &topology, settings, &mut keeper).map_err(Failure::refused)?;
        show(&self.name.name, &running, &topology, self.json)
    }
}

/// Holds a network for `up`, which starts it.
#[derive(Debug, Args)]
pub struct Keep {
    #[command(flatten)]
    name: Name,
    /// End with whoever started it
    #[arg(long)]
    tied: bool,
}

impl Keep {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let place = self.name.place()?;
        let kept = emulation::order().and_then(|(topology, settings, abandoned)| {
            emulation::keep(&place, &topology, settings, &abandoned, || {
                emulation::answer(None);
                if self.tied {
                    emulation::end_with_starter();
                }
            })
        });
        let Err(why) = kept;
        emulation::answer(Some(&why));
        Ok(ExitCode::FAILURE)
    }
}

/// End the network and the programs that run in it
#[derive(Debug, Args)]
pub struct Down {
    #[command(flatten)]
    name: Name,
    /// Print the result as JSON (schema bumpless.wan-down/1)
    #[arg(long)]
    pub json: bool,
}

impl Down {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let name = &self.name.name;
        let ended = emulation::down(&self.name.place()?).map_err(Failure::refused)?;
        if self.json {
            let programs = ended.iter().flatten();
            let programs: Vec<Value> = programs
                .map(|it| json!({"pid": it.pid, "program": it.name}))
                .collect();
            output::print_line(json!({
                "schema": "bumpless.wan-down/1",
                "name": name,
                "was_up": ended.is_some(),
                "ended": programs,
            }));
            return Ok(ExitCode::SUCCESS);
        }
        let Some(ended) = ended else {
            output::print_line(format_args!("no network called {name} is up"));
            return Ok(ExitCode::SUCCESS);
        };
        for program in &ended {
            output::print_line(format_args!(
                "ended: {} (process {})",
                program.name, program.pid
            ));
        }
        output::print_line(format_args!("the network {name} is gone"));
        Ok(ExitCode::SUCCESS)
    }
}

/// Tell what is up, how links are delayed, which are cut or impaired, and what runs in the network
#[derive(Debug, Args)]
pub struct Status {
    #[command(flatten)]
    name: Name,
    /// Print the result as JSON (schema bumpless.wan-status/1)
    #[arg(long)]
    pub json: bool,
}

impl Status {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let (running, topology) = self.name.running()?;
        show(&self.name.name, &running, &topology, self.json)
    }
}

/// Run a command at a node; its exit status is that of this command
///
/// Options of `exec` come first: `bumpless wan exec --name lab centre-2 -- ping -c 3 10.64.6.1`.
#[derive(Debug, Args)]
pub struct Exec {
    #[command(flatten)]
    name: Name,
    /// Where it runs, such as centre-2
    node: String,
    /// The command with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Exec {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let (running, topology) = self.name.running()?;
        let node = topology.find(&self.node).ok_or_else(|| {
            Failure::usage(format_args!(
                "no node is called {:?}; `bumpless wan topology --json` names them all",
                self.node
            ))
        })?;
        File::open(running.namespace(node.index()))
            .and_then(|namespace| emulation::enter(&namespace))
            .map_err(|error| {
                Failure::refused(format_args!(
                    "cannot enter {}: {error}; run as root",
                    self.node
                ))
            })?;
        let error = Command::new(&self.command[0])
            .args(&self.command[1..])
            .exec();
        output::warn(format_args!("cannot run {}: {error}", self.command[0]));
        Ok(ExitCode::from(match error.kind() {
            std::io::ErrorKind::NotFound => NOT_FOUND,
            _ => NOT_STARTED,
        }))
    }
}

/// The name of a link, as [`bumpless_wan::ends_of`] takes it.
pub fn named(topology: &Topology, link: usize) -> String {
    let [one, other] = topology.links()[link].ends;
    format!("{}:{}", topology.node(one).name, topology.node(other).name)
}

/// How links are delayed, and what is not there.
fn delays_told(delays: &Delays) -> String {
    match delays {
        Delays::Nothing => "no link has a delay".to_owned(),
        Delays::Netem => "delays: each end of a link, by the kernel's netem".to_owned(),
        Delays::Held => "delays: this kernel has no netem, so the host that a packet is for holds it for what its way by the \
             first routes takes; what is sent to routers is not delayed; `ping -U` shows the delay"
            .to_owned(),
        Delays::Lacking(why) => format!("delays: NONE, every link is instant: {why}"),
    }
}

fn show(name: &str, running: &Running, topology: &Topology, as_json: bool) -> Outcome {
    let cut = emulation::outages(running, topology)
        .map_err(|error| Failure::refused(format_args!("the kernel does not tell: {error}")))?;
    let cut: Vec<_> = cut.iter().map(|&link| named(topology, link)).collect();
    let impaired = emulation::impairments(running, topology)
        .map_err(|error| Failure::refused(format_args!("the kernel does not tell: {error}")))?;
    let impaired: Vec<_> = impaired
        .into_iter()
        .map(|(link, it)| (named(topology, link), it))
        .collect();
    let (impaired, impaired_told) = impairment::status(&impaired);
    // Not every kernel tells.
    let overflowed = emulation::overflowed(running, topology).unwrap_or_default();
    let programs = emulation::processes(running);
    let at = |node| topology.node(node).name.as_str();
    if as_json {
        let programs = programs
            .iter()
            .map(|it| json!({"pid": it.pid, "node": at(it.node), "program": it.name}));
        output::print_line(json!({
            "schema": "bumpless.wan-status/1",
            "name": name,
            "pid": running.pid,
            "nodes": topology.nodes().len(),
            "links": topology.links().len(),
            "pool": running.pool,
            "routing": running.routing,
            "took_ms": running.took_ms,
            "delays": running.delays,
            "overflowed": overflowed,
            "cut": cut,
            "impaired": impaired,
            "programs": programs.collect::<Vec<_>>(),
        }));
        return Ok(ExitCode::SUCCESS);
    }
    output::print_line(format_args!(
        "the network {name} is up: {} nodes, {} links, addresses of {}, held by process {}, made in {} ms",
        topology.nodes().len(),
        topology.links().len(),
        running.pool,
        running.pid,
        running.took_ms
    ));
    match running.routing {
        Routing::Fixed => {}
        Routing::EqualCost => output::print_line(
            "routes: the fewest hops over all links that are equally near, by a hash of addresses and ports",
        ),
        Routing::Ospf => output::print_line("routes: BIRD on each router, by OSPF with BFD"),
    }
    output::print_line(delays_told(&running.delays));
    if let Some(lost @ 1..) = overflowed {
        output::print_line(format_args!(
            "{lost} packets were lost for want of room where they were to be held"
        ));
    }
    if !cut.is_empty() {
        output::print_line(format_args!("cut: {}", cut.join(", ")));
    }
    if !impaired_told.is_empty() {
        output::print_line(format_args!("impaired: {}", impaired_told.join("; ")));
    }
    for it in &programs {
        output::print_line(format_args!(
            "at {}: {} (process {})",
            at(it.node),
            it.name,
            it.pid
        ));
    }
    Ok(ExitCode::SUCCESS)
}
