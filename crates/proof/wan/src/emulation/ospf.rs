//! Routes by a routing daemon: BIRD on each router, OSPF with BFD (`spec/wan.md`, U-12).

use std::fmt::Write;
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use super::{link, namespace};
use crate::address::Addresses;
use crate::topology::{NodeId, Topology};

/// The program, of Debian's bird2.
pub const PROGRAM: &str = "bird";
/// How long routers have to know every host.
pub const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(100);

/// Who decides where packets go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// Routes that are made once, with the fewest hops.
    #[default]
    Fixed,
    /// The same, but of links that are equally near all are used: which one, a hash of a packet's addresses and ports says.
    EqualCost,
    /// BIRD on each router, by OSPF; BFD tells of links that carry nothing.
    Ospf,
}

impl Routing {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::EqualCost => "equal-cost",
            Self::Ospf => "ospf",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Fixed, Self::EqualCost, Self::Ospf];
        all.into_iter().find(|it| it.name() == name)
    }
}

/// Daemons that run; the kernel ends them with the thread that started them.
#[derive(Debug)]
pub struct Daemons(Vec<(NodeId, Child)>);

impl Drop for Daemons {
    fn drop(&mut self) {
        for (_, daemon) in &mut self.0 {
            let _ = daemon.kill();
        }
        for (_, daemon) in &mut self.0 {
            let _ = daemon.wait();
        }
    }
}

/// Starts a daemon on each router, from the calling thread, with files in `folder`, and waits until every router knows every
/// host. `abandoned` says whether nobody wants them any more.
///
/// # Errors
/// One does not start or has ended, or they do not agree.
pub fn begin(
    topology: &Topology,
    addresses: &Addresses,
    (namespaces, folder): (&[OwnedFd], &Path),
    abandoned: &(dyn Fn() -> bool + Sync),
) -> Result<Daemons, String> {
    let here = File::open("/proc/thread-self/ns/net").map_err(|error| error.to_string())?;
    let mut daemons = Daemons(Vec::new());
    let routers = topology.places();
    for router in routers.filter(|&node| topology.node(node).kind.forwards()) {
        if abandoned() {
            return Err("nobody waits for the network any more".to_owned());
        }
        let name = &topology.node(router).name;
        let started = started(
            name,
            folder,
            &configuration(topology, addresses, router),
            || namespace::enter(&namespaces[router.index()]),
        );
        let started =
            started.map_err(|error| format!("cannot start {PROGRAM} on {name}: {error}"))?;
        daemons.0.push((router, started));
    }
    namespace::enter(&here).map_err(|error| error.to_string())?;
    agree(topology, (namespaces, folder), &mut daemons, abandoned)?;
    Ok(daemons)
}

#[allow(unsafe_code)]
fn started(
    name: &str,
    folder: &Path,
    configuration: &str,
    enter: impl FnOnce() -> io::Result<()>,
) -> io::Result<Child> {
    let file = folder.join(format!("{name}.conf"));
    fs::write(&file, configuration)?;
    let says = File::create(folder.join(format!("{name}.out")))?;
    enter()?;
    let mut command = Command::new(PROGRAM);
    command
        .arg("-f")
        .arg("-c")
        .arg(&file)
        .arg("-s")
        .arg(folder.join(format!("{name}.ctl")))
        .stdin(Stdio::null())
        .stdout(says.try_clone()?)
        .stderr(says);
    let parent = Some(getpid());
    // SAFETY: between fork and exec only async-signal-safe calls are made (prctl, getppid), and nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            match getppid() == parent {
                true => Ok(()),
                false => Err(rustix::io::Errno::SRCH.into()),
            }
        });
    }
    command.spawn()
}

/// What the daemon of a router is told. Its costs are hops, so that it takes the ways of [`crate::route`], or others that are as
/// short.
fn configuration(topology: &Topology, addresses: &Addresses, router: NodeId) -> String {
    let links = topology.links_at(router);
    let near = links
        .first()
        .map(|&index| own(topology, addresses, (router, index)));
    let near = near.map_or_else(String::new, |it| it.to_string());
    let mut text = format!(
        "router id {near};\nlog stderr {{ warning, error, fatal, bug }};\nprotocol device {{ }}\n\
         protocol kernel {{ ipv4 {{ import none; export where source ~ [ RTS_OSPF, RTS_OSPF_IA ]; }}; }}\n\
         protocol bfd {{ interface \"eth*\" {{ interval 300 ms; multiplier 3; }}; }}\n\
         protocol ospf v2 {{ tick 1; ipv4 {{ import all; export none; }};\narea 0 {{\n"
    );
    for (place, &index) in links.iter().enumerate() {
        let other = topology.links()[index].other(router);
        let name = link::name(place);
        if topology.node(other).kind.forwards() {
            let _ = writeln!(
                text,
                "interface \"{name}\" {{ type ptp; cost 1; hello 1; dead 5; retransmit 2; bfd yes; }};"
            );
        } else {
            let _ = writeln!(text, "interface \"{name}\" {{ cost 1; stub yes; }};");
            if let Some(host) = addresses.host(other) {
                let _ = writeln!(text, "stubnet {host}/32 {{ cost 1; }};");
            }
        }
    }
    text.push_str("};\n}\n");
    text
}

fn own(topology: &Topology, addresses: &Addresses, (node, link): (NodeId, usize)) -> IpAddr {
    let here = usize::from(topology.links()[link].ends[1] == node);
    addresses.link(link)[here]
}

/// Waits until every router has a route to every host.
fn agree(
    topology: &Topology,
    (namespaces, folder): (&[OwnedFd], &Path),
    daemons: &mut Daemons,
    abandoned: &(dyn Fn() -> bool + Sync),
) -> Result<(), String> {
    let hosts = topology.hosts().count();
    let until = Instant::now() + PATIENCE;
    let count = daemons.0.len();
    for place in 0..count {
        let (router, _) = daemons.0[place];
        let name = &topology.node(router).name;
        loop {
            let known = known(&namespaces[router.index()])
                .map_err(|error| format!("cannot read the routes of {name}: {error}"))?;
            if known >= hosts {
                break;
            }
            if let Some(ended) = daemons.0.iter_mut().find_map(|(node, daemon)| {
                let status = daemon.try_wait().ok().flatten()?;
                let name = &topology.node(*node).name;
                let words = last_line(&folder.join(format!("{name}.out")));
                Some(format!("{PROGRAM} on {name} has ended ({status}): {words}"))
            }) {
                return Err(ended);
            }
            if abandoned() {
                return Err("nobody waits for the network any more".to_owned());
            }
            if Instant::now() > until {
                return Err(format!(
                    "after {} s {name} knows {known} of {hosts} hosts, and {place} of {count} routers know all; a smaller network (--backbone-pairs) or fixed routes (--routing fixed) take less",
                    PATIENCE.as_secs()
                ));
            }
            thread::sleep(LOOK);
        }
    }
    Ok(())
}

/// The last line that a daemon has written: its files go with the network.
fn last_line(file: &Path) -> String {
    let words = fs::read(file).unwrap_or_default();
    let words = String::from_utf8_lossy(&words);
    let mut lines = words.lines().rev().map(str::trim);
    let last = lines.find(|line| !line.is_empty());
    last.unwrap_or("it says nothing").to_owned()
}

/// The version of the program by what it says of itself: the first of its numbers.
pub fn version(said: &str) -> Option<u32> {
    let (_, version) = said.split_once("BIRD version ")?;
    let first = version.trim().split('.').next()?;
    first.parse().ok()
}

/// To how many single addresses a namespace has routes.
fn known(namespace: &OwnedFd) -> io::Result<usize> {
    let ask = || {
        namespace::enter(namespace)?;
        let mut known = 0;
        namespace::socket()?.dump(link::routes().bytes(), |_, body| {
            // Length of the prefix, and the table: the main one.
            known += usize::from(body.get(1) == Some(&32) && body.get(4) == Some(&254));
        })?;
        Ok(known)
    };
    thread::scope(|scope| scope.spawn(ask).join())
        .unwrap_or_else(|_| Err(io::Error::other("a thread ended by a panic")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Pool;
    use crate::{Shape, generate};

    #[test]
    fn a_version_is_read_from_what_the_program_says_of_itself() {
        for (said, is) in [
            ("BIRD version 2.0.12\n", Some(2)),
            ("BIRD version 1.6.8\n", Some(1)),
            ("BIRD version 3\n", Some(3)),
            ("bird 2.0", None),
            ("BIRD version of mine", None),
        ] {
            assert_eq!(version(said), is, "{said}");
        }
    }

    #[test]
    fn a_router_is_told_of_its_links_and_of_the_hosts_at_it() {
        let topology = generate(&Shape::default()).unwrap();
        let addresses = Addresses::new(&topology, Pool::V4).unwrap();
        let router = topology.find("c10-1-1").unwrap();
        let host = addresses.host(topology.find("s10-1-1").unwrap()).unwrap();
        let text = configuration(&topology, &addresses, router);
        // One router before it in its chain, one after it, and a substation.
        assert_eq!(text.matches("type ptp").count(), 2, "{text}");
        assert_eq!(text.matches("stub yes").count(), 1, "{text}");
        assert!(text.contains(&format!("stubnet {host}/32")), "{text}");
        let near = own(
            &topology,
            &addresses,
            (router, topology.links_at(router)[0]),
        );
        assert!(text.starts_with(&format!("router id {near};")), "{text}");
    }
}
