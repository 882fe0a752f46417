//! The pair's file, with times from the plan.

use std::fmt::Write;
use std::net::IpAddr;
use std::path::Path;

use bumpless_base::Duration;
use bumpless_config::Config;
use bumpless_plan::distance::{Distance, Sizes, distances};
use bumpless_wan::address::Addresses;
use bumpless_wan::route::round_trip_us;
use bumpless_wan::{NodeId, Topology};

use super::{Sites, SitesOptions};
use crate::demo::configuration::{PRIORITY, TIME_SCALE};

/// Names of the controllers.
pub const NODES: [&str; 2] = ["left", "right"];
/// The pair's key, beside its file.
pub const KEY: &str = "sites.key";
/// What a datagram takes there and back besides the delays of its way: forwarding, holding, and threads that wake.
const NEIGHBOURS: Duration = Duration::from_millis(1);
/// How much later than intended a thread goes on, as the plan is told; what is later is the stall meter's.
const JITTER: Duration = Duration::from_millis(1);
const NODE_PORT: u16 = 4700;
const WITNESS_PORT: u16 = 4710;
const FIELD_PORT: u16 = 5502;

/// Where everybody is, by place and address, and how far apart.
#[derive(Clone, Debug)]
pub struct Map {
    /// Both controllers.
    pub nodes: [(NodeId, IpAddr); 2],
    /// The witness.
    pub witness: (NodeId, IpAddr),
    /// The field device.
    pub field: (NodeId, IpAddr),
    /// There and back: between the controllers, from the farther one to the witness and to the field device.
    pub pair: Duration,
    /// See `pair`.
    pub to_witness: Duration,
    /// See `pair`.
    pub to_field: Duration,
}

impl Map {
    /// Where `sites` are.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub fn new(topology: &Topology, addresses: &Addresses, sites: &Sites) -> Result<Self, String> {
        let mut wrong = Vec::new();
        let names = [
            &sites.nodes[0],
            &sites.nodes[1],
            &sites.witness,
            &sites.field,
        ];
        let mut hosts = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let found = topology.find(name);
            match found.and_then(|host| Some((host, addresses.host(host)?))) {
                Some(host) => hosts.push(host),
                None if found.is_some() => wrong.push(format!(
                    "{name} is a router; give a control centre or a substation"
                )),
                None => wrong.push(format!(
                    "no node is called {name:?}; `bumpless wan topology --json` names them all"
                )),
            }
            if names[..at].contains(name) && at < 3 {
                wrong.push(format!(
                    "{name} is named twice: what is to replace a controller ends with that site, too; give each a site of its own"
                ));
            }
        }
        let [left, right, witness, field] = hosts[..] else {
            return Err(wrong.join("\n  "));
        };
        if !wrong.is_empty() {
            return Err(wrong.join("\n  "));
        }
        let way = |one: NodeId, other: NodeId| {
            Duration::from_micros(round_trip_us(topology, one, other).unwrap_or(0))
        };
        let farther = |to: NodeId| way(left.0, to).max(way(right.0, to));
        Ok(Self {
            nodes: [left, right],
            witness,
            field,
            pair: way(left.0, right.0),
            to_witness: farther(witness.0),
            to_field: farther(field.0),
        })
    }

    /// Where the witness listens.
    pub fn witness_address(&self) -> String {
        address(self.witness.1, WITNESS_PORT)
    }

    /// Where the field device listens.
    pub fn field_address(&self) -> String {
        address(self.field.1, FIELD_PORT)
    }
}

fn address(ip: IpAddr, port: u16) -> String {
    std::net::SocketAddr::new(ip, port).to_string()
}

/// The pair's file with its control sockets in `directory`, the times in it, and what the plan promises of it.
///
/// # Errors
/// What the distance does not permit.
pub fn sized(
    options: &SitesOptions,
    map: &Map,
    directory: &Path,
) -> Result<(String, Sizes, Distance), String> {
    let longer = |sizes: &Sizes| {
        let mut sizes = *sizes;
        if let Some(lease) = options.lease {
            sizes.lease = sizes.lease.max(lease);
            sizes.start_wait = sizes.start_wait.max(sizes.lease * 3);
        }
        sizes
    };
    let text = |sizes: &Sizes| text(&longer(sizes), map, directory);
    let (sizes, config): (Sizes, Config) = Sizes::fit(options.heartbeat, options.period, text)
        .map_err(|why| format!("the plan has no times for this distance: {why}"))?;
    let distance = distances(&config).pop().ok_or("the pair has no group")?;
    Ok((text(&sizes), longer(&sizes), distance))
}

fn text(sizes: &Sizes, map: &Map, directory: &Path) -> String {
    let ms = |span: Duration| span.as_millis_f64();
    let round_trip = |way: Duration| ms(way + NEIGHBOURS);
    let mut text = format!(
        "# The pair of `bumpless wan sites`; lease, start wait, period and deadline are what the plan asks for.\n\
         [pair]\nname = \"sites\"\n\n[security]\nkeys = [\"{KEY}\"]\n\n[timing]\nheartbeat_ms = {}\nlease_ms = {}\nstart_wait_ms = {}\n\n\
         [realtime]\npriority = {PRIORITY}\n\n[plan]\njitter_ms = {}\n\n\
         [[network]]\nname = \"wan\"\nbandwidth_mbit = 1000\nround_trip_max_ms = {}\n",
        ms(sizes.heartbeat),
        ms(sizes.lease),
        ms(sizes.start_wait),
        ms(JITTER),
        round_trip(map.pair),
    );
    for (name, (_, ip)) in NODES.iter().zip(map.nodes) {
        let control = directory.join(format!("{name}.sock"));
        let _ = write!(
            text,
            "\n[[node]]\nname = \"{name}\"\naddresses = {{ wan = \"{}\" }}\ncontrol = '{}'\n",
            address(ip, NODE_PORT),
            control.display()
        );
    }
    let field = round_trip(map.to_field);
    let _ = write!(
        text,
        "\n[[reference]]\nname = \"witness\"\nkind = \"witness\"\nnetwork = \"wan\"\naddress = \"{}\"\nround_trip_max_ms = {}\n\n\
         [[group]]\nname = \"sites\"\nnodes = [\"left\", \"right\"]\nreferences = [\"witness\"]\n\n\
         [[application]]\nname = \"tank\"\ngroup = \"sites\"\nkind = \"quadruple_tank\"\nchannel = 1\nperiod_ms = {}\ndeadline_ms = {}\n\
         commit = \"before_output\"\ntime_scale = {TIME_SCALE:.1}\n\n\
         [application.field]\naddress = \"{}\"\ncheck_epoch = true\ntimeout_ms = {}\nround_trip_max_ms = {field}\n\n\
         [[application.set_points]]\nat_s = 0\ntank1_cm = 12.4\ntank2_cm = 12.7\n",
        map.witness_address(),
        round_trip(map.to_witness),
        ms(sizes.period),
        ms(sizes.deadline),
        map.field_address(),
        // A connection that comes up and a request in one call, and what a thread may be late; below the period.
        (2.0 * field + ms(JITTER) + 1.0)
            .max(ms(sizes.period) / 4.0)
            .min(ms(sizes.period) * 0.9),
    );
    text
}
