//! The configuration of the pair that the demonstration runs, written as a user would.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

use bumpless_controller::{QuadrupleTankParameters, SetPointStep};

use super::addresses::Addresses;

/// Names of the nodes.
pub const NODES: [&str; 2] = ["left", "right"];
/// Names of the networks.
pub const NETWORKS: [&str; 2] = ["A", "B"];
/// The group that both nodes are in.
pub const GROUP: &str = "tank";
/// What the pair is called.
pub const PAIR: &str = "quadruple-tank";
/// Period of the application in milliseconds.
pub const PERIOD_MS: u64 = 10;
/// Deadline of its states after the first change, as a share of the period.
const TUNED_DEADLINE: f64 = 0.8;
/// Seconds of process time per second: the tanks take minutes for what a demonstration has seconds.
pub const TIME_SCALE: f64 = 20.0;

/// The controller's parameters as the configuration gives them, with set points that change at
/// `steps` (seconds since the plant's start, on the clock on the wall).
pub fn controller(steps: &[(f64, [f64; 2])]) -> QuadrupleTankParameters {
    let rest = QuadrupleTankParameters::default().initial;
    let moved = |by: [f64; 2]| [rest[0] + by[0], rest[1] + by[1]];
    QuadrupleTankParameters {
        time_scale: TIME_SCALE,
        steps: steps
            .iter()
            .map(|&(at, by)| SetPointStep {
                at: at * TIME_SCALE,
                levels: moved(by),
            })
            .collect(),
        ..QuadrupleTankParameters::default()
    }
}

/// Real-time priority of everything that has deadlines, where it is permitted.
pub const PRIORITY: u8 = 20;

/// What the field device is called in its certificate.
pub const DEVICE: &str = "plant.field";
/// The role of everybody who may write its outputs.
pub const ROLE: &str = "controller";
/// What protects the connections to it.
pub const FIELD_SECURITY: &str = "security = \"tls\"\nserver_name = \"plant.field\"\n";

/// What the witness of `network` is called.
pub fn witness(network: &str) -> String {
    format!("witness-{network}")
}

/// Everybody of the pair who has a certificate, as authorities name them.
pub fn everybody() -> impl Iterator<Item = String> {
    let nodes = NODES.iter().map(|node| format!("{node}.{PAIR}"));
    let witnesses = NETWORKS.iter().map(|network| witness(network) + ".witness");
    nodes.chain(witnesses).chain([DEVICE.to_owned()])
}

/// The file with this application, with control sockets in `directory`.
pub fn text(directory: &Path, addresses: &Addresses, application: &str) -> String {
    let mut file = String::from("# The pair of `bumpless demo`.\n[pair]\n");
    let _ = write!(
        file,
        "name = \"{PAIR}\"\n\n[timing]\nheartbeat_ms = 2\nlease_ms = 10\n"
    );
    // Where this is not permitted, the nodes say so in status and go on without.
    let _ = write!(file, "\n[realtime]\npriority = {PRIORITY}\n");
    for network in NETWORKS {
        let _ = write!(
            file,
            "\n[[network]]\nname = \"{network}\"\nbandwidth_mbit = 1000\n"
        );
    }
    for (index, node) in NODES.iter().enumerate() {
        let [a, b] = addresses.nodes.map(|network| network[index]);
        let control = directory.join(format!("{node}.sock"));
        let _ = write!(
            file,
            "\n[[node]]\nname = \"{node}\"\naddresses = {{ A = \"{a}\", B = \"{b}\" }}\ncontrol = '{}'\n",
            control.display()
        );
    }
    for (network, address) in NETWORKS.iter().zip(addresses.witnesses) {
        let _ = write!(
            file,
            "\n[[reference]]\nname = \"{}\"\nkind = \"witness\"\n\
             network = \"{network}\"\naddress = \"{address}\"\n",
            witness(network)
        );
    }
    let _ = write!(
        file,
        "\n[[group]]\nname = \"{GROUP}\"\nnodes = [\"left\", \"right\"]\n\
         references = [\"witness-A\", \"witness-B\"]\n{application}"
    );
    file
}

/// The application that controls the tanks at `plant`; `more` are further lines of its field.
pub fn tank_text(plant: SocketAddr, tank: &QuadrupleTankParameters, more: &str) -> String {
    let mut file = String::new();
    let _ = write!(
        file,
        "\n[[application]]\nname = \"tank\"\ngroup = \"{GROUP}\"\nkind = \"quadruple_tank\"\n\
         channel = 1\nperiod_ms = {PERIOD_MS}\ncommit = \"before_output\"\n\
         time_scale = {TIME_SCALE:.1}\n\n\
         [application.field]\nkind = \"modbus\"\naddress = \"{}\"\ncheck_epoch = true\n\
         timeout_ms = 4\n{more}",
        plant
    );
    let first = SetPointStep {
        at: 0.0,
        levels: tank.initial,
    };
    for step in std::iter::once(&first).chain(&tank.steps) {
        let [tank1, tank2] = step.levels;
        let _ = write!(
            file,
            "\n[[application.set_points]]\nat_s = {:.3}\ntank1_cm = {tank1:.9}\ntank2_cm = {tank2:.9}\n",
            step.at
        );
    }
    file
}

/// `text` after the first change, and after the second: the deadline of its application is another, beside it `audit`
/// comes, and then `trend` in its place.
pub fn changed(text: &str, change: usize) -> String {
    let period = |line: &&str| line.starts_with("period_ms = ");
    let line = text.lines().find(period).unwrap_or_default();
    let period = line.rsplit(' ').next().and_then(|ms| ms.parse().ok());
    let deadline = period.unwrap_or(PERIOD_MS as f64) * TUNED_DEADLINE;
    let tuned = text.replacen(line, &format!("{line}\ndeadline_ms = {deadline}"), 1);
    let (name, channel) = [("audit", 2), ("trend", 3)][change.min(1)];
    format!(
        "{tuned}\n[[application]]\nname = \"{name}\"\ngroup = \"{GROUP}\"\nkind = \"synthetic\"\n\
         channel = {channel}\nperiod_ms = 20\ndeadline_ms = 18\nsize = \"4 kB\"\n"
    )
}
