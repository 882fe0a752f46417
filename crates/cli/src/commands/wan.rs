//! `bumpless wan`: a power grid's wide-area network.

mod capture;
mod impair;
mod impairment;
mod kept;
mod links;
mod network;
mod programs;
mod script;
mod sim;
mod sites;
mod study;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use bumpless_wan::address::{Addresses, Pool};
use bumpless_wan::route::{Way, Ways, round_trip_us};
use bumpless_wan::{
    Kind, MEASURED_ROUTER_US, NodeId, Shape, Topology, containerlab, generate, picture,
};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use crate::output::{self, Failure, Outcome};

/// Most bytes of a file that are read. A topology of ten thousand routers takes some three million.
const FILE_MAX: u64 = 16 << 20;

/// The wide-area network of a power grid: its shape, its ways, its picture, itself on this machine, and failovers over it
///
/// Without options it is that of the fifth paper: 340 routers, 260 substations, two control centres (spec/wan.md).
#[derive(Debug, Args)]
pub struct Wan {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Tell what the network has, draw it, or write it for another engine
    Topology(Describe),
    /// Tell the way between two nodes with the fewest hops, and what a packet takes on it
    Path(Route),
    Up(network::Up),
    Down(network::Down),
    Status(network::Status),
    Exec(network::Exec),
    /// Make links carry nothing, without telling anybody: interfaces stay up, and routes stay
    Cut(links::Links),
    /// Make links carry everything again
    Heal(links::Links),
    Impair(impair::Impair),
    Script(script::Script),
    Capture(capture::Capture),
    Study(Box<study::Run>),
    Programs(Box<programs::Run>),
    Sites(Box<sites::Run>),
    Sim(Box<sim::Run>),
    #[command(hide = true)]
    Keep(network::Keep),
}

#[derive(Debug, Args)]
struct Describe {
    #[command(flatten)]
    network: Network,
    /// Draw every node in this page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the network for containerlab into this new or empty directory: a topology and a script of delays
    #[arg(long, value_name = "DIRECTORY")]
    containerlab: Option<PathBuf>,
    /// Print every node and link as JSON (schema bumpless.wan-topology/1); --file takes it
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Route {
    #[command(flatten)]
    network: Network,
    /// Where it begins, such as centre-2
    from: String,
    /// Where it ends, such as s10-1-1
    to: String,
    /// Print the result as JSON (schema bumpless.wan-path/1)
    #[arg(long)]
    json: bool,
}

/// What a router adds to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Profile {
    /// Nothing: a round trip of 5.5 ms over the paper's 23 hops
    Nominal,
    /// 57 us: the 8.0 ms that the paper measured
    Measured,
}

#[derive(Debug, Args)]
struct Network {
    /// A network from this file instead of a generated one (schema bumpless.wan-topology/1)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["backbone_pairs", "loop_pairs", "chain_routers", "centres", "backbone_us", "aggregation_us", "access_us", "profile"])]
    file: Option<PathBuf>,
    /// Pairs of routers in the backbone ring
    #[arg(long, value_name = "N", default_value_t = Shape::default().backbone_pairs)]
    backbone_pairs: usize,
    /// Pairs of routers in the loop at each backbone pair
    #[arg(long, value_name = "N", default_value_t = Shape::default().loop_pairs)]
    loop_pairs: usize,
    /// Routers in the chain at each pair of a loop
    #[arg(long, value_name = "N", default_value_t = Shape::default().chain_routers)]
    chain_routers: usize,
    /// Control centres, at the first backbone pair
    #[arg(long, value_name = "N", default_value_t = Shape::default().centres)]
    centres: usize,
    /// Delay between two backbone pairs, one way, microseconds
    #[arg(long, value_name = "US", default_value_t = Shape::default().backbone_us)]
    backbone_us: u32,
    /// Delay between two pairs of a loop, one way, microseconds
    #[arg(long, value_name = "US", default_value_t = Shape::default().aggregation_us)]
    aggregation_us: u32,
    /// Delay of a link of a chain, one way, microseconds
    #[arg(long, value_name = "US", default_value_t = Shape::default().access_us)]
    access_us: u32,
    /// What each router adds
    #[arg(long, value_enum, default_value_t = Profile::Nominal)]
    profile: Profile,
    /// Addresses of links and hosts are taken from here, such as 10.64.0.0/16 or fd42:7761:6e00::/48
    #[arg(long, value_name = "PREFIX", default_value_t = Pool::V4)]
    pool: Pool,
}

impl Wan {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self.action {
            Action::Topology(describe) => {
                let json = describe.json;
                describe.run().map_err(|failure| failure.in_json(json))
            }
            Action::Path(path) => {
                let json = path.json;
                path.run().map_err(|failure| failure.in_json(json))
            }
            Action::Up(up) => {
                let json = up.json;
                up.run().map_err(|failure| failure.in_json(json))
            }
            Action::Down(down) => {
                let json = down.json;
                down.run().map_err(|failure| failure.in_json(json))
            }
            Action::Status(status) => {
                let json = status.json;
                status.run().map_err(|failure| failure.in_json(json))
            }
            Action::Exec(exec) => exec.run(),
            Action::Cut(links) => {
                let json = links.json;
                links.cut().map_err(|failure| failure.in_json(json))
            }
            Action::Heal(links) => {
                let json = links.json;
                links.heal().map_err(|failure| failure.in_json(json))
            }
            Action::Impair(impair) => {
                let json = impair.json;
                impair.run().map_err(|failure| failure.in_json(json))
            }
            Action::Script(script) => {
                let json = script.json;
                script.run().map_err(|failure| failure.in_json(json))
            }
            Action::Capture(capture) => {
                let json = capture.json;
                capture.run().map_err(|failure| failure.in_json(json))
            }
            Action::Study(study) => {
                let json = study.json;
                study.run().map_err(|failure| failure.in_json(json))
            }
            Action::Programs(programs) => {
                let json = programs.json;
                programs.run().map_err(|failure| failure.in_json(json))
            }
            Action::Sites(sites) => {
                let json = sites.json;
                sites.run().map_err(|failure| failure.in_json(json))
            }
            Action::Sim(sim) => {
                let json = sim.json;
                sim.run().map_err(|failure| failure.in_json(json))
            }
            Action::Keep(keep) => keep.run(),
        }
    }
}

impl Network {
    fn topology(&self) -> Result<Topology, Failure> {
        if let Some(file) = &self.file {
            return topology_in(file);
        }
        let shape = Shape {
            backbone_pairs: self.backbone_pairs,
            loop_pairs: self.loop_pairs,
            chain_routers: self.chain_routers,
            centres: self.centres,
            backbone_us: self.backbone_us,
            aggregation_us: self.aggregation_us,
            access_us: self.access_us,
            router_us: match self.profile {
                Profile::Nominal => 0,
                Profile::Measured => MEASURED_ROUTER_US,
            },
        };
        generate(&shape)
            .map_err(|faults| Failure::usage(listed("no network of this shape", &faults)))
    }

    fn addresses(&self, topology: &Topology) -> Result<Addresses, Failure> {
        Addresses::new(topology, self.pool).map_err(Failure::usage)
    }
}

/// The network that the file tells of.
pub fn topology_in(file: &Path) -> Result<Topology, Failure> {
    let text = read(file).map_err(Failure::usage)?;
    Topology::from_json(&text)
        .map_err(|faults| Failure::usage(listed(&file.display().to_string(), &faults)))
}

fn listed(what: &str, faults: &[impl ToString]) -> String {
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    format!("{what}: {}", faults.join("\n  "))
}

fn read(file: &Path) -> Result<String, String> {
    use io::Read;
    let failed = |error: io::Error| format!("cannot read {}: {error}", file.display());
    let mut text = String::new();
    let mut limited = fs::File::open(file).map_err(failed)?.take(FILE_MAX + 1);
    limited.read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > FILE_MAX {
        return Err(format!(
            "{} has more than {} MiB, which no topology and no script has; give another file",
            file.display(),
            FILE_MAX >> 20
        ));
    }
    Ok(text)
}

impl Describe {
    fn run(self) -> Outcome {
        let topology = self.network.topology()?;
        let addresses = self.network.addresses(&topology)?;
        if let Some(file) = &self.html {
            output::write_whole(file, &picture::page(&topology, &addresses))?;
        }
        if let Some(directory) = &self.containerlab {
            export(&topology, &addresses, directory)?;
        }
        if self.json {
            output::print_line(topology.to_json());
        } else {
            output::print_line(told(&topology));
            for file in self.html.iter().chain(&self.containerlab) {
                output::print_line(format_args!("written: {}", file.display()));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What a network has, in a few lines.
fn told(topology: &Topology) -> String {
    let count = |wanted: fn(Kind) -> bool| {
        topology
            .nodes()
            .iter()
            .filter(|node| wanted(node.kind))
            .count()
    };
    let mut lines = vec![format!(
        "{} routers, {} substations, {} control centres, {} links, {} of them with a delay",
        count(Kind::forwards),
        count(|kind| kind == Kind::Substation),
        count(|kind| kind == Kind::Centre),
        topology.links().len(),
        topology
            .links()
            .iter()
            .filter(|link| link.delay_us > 0)
            .count(),
    )];
    let centres = topology
        .hosts()
        .filter(|&host| topology.node(host).kind == Kind::Centre);
    for centre in centres {
        if let Some(way) = longest(topology, centre) {
            lines.push(format!("longest way from {}", way_told(topology, &way)));
        }
    }
    lines.join("\n")
}

fn longest(topology: &Topology, from: NodeId) -> Option<Way> {
    let ways = Ways::new(topology, from);
    let hosts = topology.hosts().filter(|&host| host != from);
    let mut longest = hosts
        .filter_map(|host| ways.way(host))
        .max_by_key(|way| (way.delay_us(topology), way.links.len()))?;
    longest.nodes.reverse();
    longest.links.reverse();
    Some(longest)
}

fn way_told(topology: &Topology, way: &Way) -> String {
    let name = |place: Option<&NodeId>| place.map_or("", |&place| &topology.node(place).name);
    let (from, to) = (way.nodes.first(), way.nodes.last());
    // The way back may be another one.
    let trip_us = from
        .zip(to)
        .and_then(|(&from, &to)| round_trip_us(topology, from, to));
    format!(
        "{} to {}: {} links, {} routers, {:.3} ms there and back",
        name(from),
        name(to),
        way.links.len(),
        way.routers(topology),
        trip_us.unwrap_or(0) as f64 / 1e3
    )
}

fn export(topology: &Topology, addresses: &Addresses, directory: &Path) -> Result<(), Failure> {
    let refused = |error: io::Error| {
        Failure::refused(format_args!("cannot make {}: {error}", directory.display()))
    };
    fs::create_dir_all(directory).map_err(refused)?;
    if fs::read_dir(directory).map_err(refused)?.next().is_some() {
        let place = directory.display();
        return Err(Failure::refused(format_args!(
            "{place} is not empty; give a new or empty directory"
        )));
    }
    output::write_whole(
        &directory.join("wan.clab.yml"),
        &containerlab::file(topology, addresses, "wan"),
    )?;
    output::write_whole(
        &directory.join("delays.sh"),
        &containerlab::delays(topology, "wan"),
    )
}

impl Route {
    fn run(self) -> Outcome {
        let topology = self.network.topology()?;
        let find = |name: &str| {
            topology.find(name).ok_or_else(|| {
                Failure::usage(format_args!(
                    "no node is called {name:?}; `bumpless wan topology --json` names them all"
                ))
            })
        };
        let (from, to) = (find(&self.from)?, find(&self.to)?);
        // A network is connected, and a way between two nodes passes through routers alone.
        let way = Ways::new(&topology, to).way(from).ok_or_else(|| {
            Failure::refused(format_args!(
                "no way leads from {} to {}",
                self.from, self.to
            ))
        })?;
        let names: Vec<&str> = way
            .nodes
            .iter()
            .map(|&place| topology.node(place).name.as_str())
            .collect();
        if self.json {
            output::print_line(json!({
                "schema": "bumpless.wan-path/1",
                "nodes": names,
                "links": way.links.len(),
                "routers": way.routers(&topology),
                "one_way_us": way.delay_us(&topology),
                "round_trip_us": round_trip_us(&topology, from, to),
            }));
        } else {
            output::print_line(way_told(&topology, &way));
            output::print_line(names.join(" "));
        }
        Ok(ExitCode::SUCCESS)
    }
}
