//! `bumpless wan capture`: what passes nodes and links of a network that is up, in a file.

use std::fs::{self, OpenOptions};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bumpless_wan::Topology;
use bumpless_wan::address::{Addresses, Pool};
use bumpless_wan::emulation::{self, Captured, Ended, Limits, Running};
use clap::Args;
use serde_json::{Value, json};

use super::listed;
use super::network::Name;
use crate::output::{self, Failure, Outcome};
use crate::stop;

/// Capture what passes nodes and links into a file that Wireshark and tcpdump read (pcapng)
///
/// It works on every network that is up, that of a study included (`--name study`), and takes root. It ends by its time, by the
/// size of the file, by Ctrl-C or with the network. After a kill the last packet of the file may be cut, which those two leave out. Where the network holds packets at the
/// host that they are for, those that come are captured before they are held (spec/wan.md, U-39).
#[derive(Debug, Args)]
pub struct Capture {
    #[command(flatten)]
    name: Name,
    /// A node with all of its interfaces, or a link as NODE:NODE, at the end of the first node
    #[arg(required = true, value_name = "LINK-OR-NODE")]
    places: Vec<String>,
    /// The new file
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// How long at most
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// How large the file grows at most
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    max_mib: u64,
    /// How many bytes of each packet are kept
    #[arg(long, value_name = "BYTES", default_value_t = 262_144, value_parser = clap::value_parser!(u32).range(14..=262_144))]
    packet_bytes: u32,
    /// Only packets from or to this node, or this address; may be given several times
    #[arg(long, value_name = "NODE-OR-ADDRESS")]
    with: Vec<String>,
    /// Print the result as JSON (schema bumpless.wan-capture/1)
    #[arg(long)]
    pub json: bool,
}

impl Capture {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let (running, topology) = self.name.running()?;
        let points = emulation::points_of(&topology, &self.places)
            .map_err(|wrong| Failure::usage(listed("nothing can be captured there", &wrong)))?;
        let limits = Limits {
            bytes: self.max_mib << 20,
            lasts: Duration::from_secs(self.seconds),
            packet: self.packet_bytes,
            with: self.addresses(&running, &topology)?,
        };
        let file = self.output.display();
        let mut options = OpenOptions::new();
        let to = options.write(true).create_new(true).open(&self.output);
        let mut to = to.map_err(|error| {
            Failure::refused(format_args!(
                "cannot make {file}: {error}; give the name of a new file with --output"
            ))
        })?;
        let stop = stop::stop_flag()?;
        let captured = emulation::capture(
            (&running, &topology),
            &points,
            (&mut to, limits),
            &|| stop.load(Ordering::Relaxed),
            || output::warn(format_args!("capturing into {file}; Ctrl-C ends it")),
        );
        let captured = captured.map_err(|error| {
            // A file with nothing in it would only be in the way.
            if to.metadata().is_ok_and(|it| it.len() == 0) {
                let _ = fs::remove_file(&self.output);
            }
            Failure::refused(format_args!(
                "the capture into {file} has ended: {error}; {}",
                emulation::remedy(&error)
            ))
        })?;
        self.tell(&captured);
        Ok(ExitCode::SUCCESS)
    }

    /// The addresses of --with: of a node those of its links and of a second way beside the network, and the one that it is known by.
    fn addresses(&self, running: &Running, topology: &Topology) -> Result<Vec<IpAddr>, Failure> {
        let pool: Pool = running.pool.parse().map_err(Failure::refused)?;
        let all = Addresses::new(topology, pool).map_err(Failure::refused)?;
        let (mut addresses, mut wrong) = (Vec::new(), Vec::new());
        for with in &self.with {
            if let Ok(address) = with.parse() {
                addresses.push(address);
            } else if let Some(node) = topology.find(with) {
                addresses.extend(all.host(node));
                for &link in topology.links_at(node) {
                    let end = usize::from(topology.links()[link].ends[1] == node);
                    addresses.push(all.link(link)[end]);
                }
                match emulation::addresses_at(running, node) {
                    Ok(own) => addresses.extend(own),
                    Err(error) => wrong.push(format!(
                        "the addresses of {with} cannot be read: {error}; {}",
                        emulation::remedy(&error)
                    )),
                }
            } else {
                wrong.push(format!("{with:?} is neither a node nor an address"));
            }
        }
        match wrong.is_empty() {
            true => Ok(addresses),
            false => Err(Failure::usage(listed("--with", &wrong))),
        }
    }

    fn tell(&self, captured: &Captured) {
        let packets: u64 = captured.interfaces.iter().map(|it| it.packets).sum();
        if self.json {
            let interfaces = captured.interfaces.iter();
            let interfaces: Vec<Value> = interfaces
                .map(|it| json!({"name": it.name, "leads_to": it.leads, "packets": it.packets}))
                .collect();
            return output::print_line(json!({
                "schema": "bumpless.wan-capture/1",
                "name": self.name.name,
                "file": self.output.display().to_string(),
                "bytes": captured.bytes,
                "seconds": captured.lasted.as_secs_f64(),
                "ended": captured.ended.name(),
                "packets": packets,
                "dropped": captured.dropped,
                "interfaces": interfaces,
            }));
        }
        let why = match captured.ended {
            Ended::Time => "its time was over (--seconds)",
            Ended::Size => "the file was full (--max-mib)",
            Ended::Asked => "it was stopped",
            Ended::Network => "the network ended",
        };
        output::print_line(format_args!(
            "{packets} packets in {:.1} s, {} bytes in {}; it ended because {why}",
            captured.lasted.as_secs_f64(),
            captured.bytes,
            self.output.display()
        ));
        for it in &captured.interfaces {
            output::print_line(format_args!(
                "{} to {}: {} packets",
                it.name, it.leads, it.packets
            ));
        }
        if captured.dropped > 0 {
            output::print_line(format_args!(
                "MISSING: {} packets that there was no room for; keep fewer bytes of each (--packet-bytes) or fewer places",
                captured.dropped
            ));
        }
    }
}
