//! The network with backups, servers and daemons on it, as long as a study takes.

use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use bumpless_wan::Topology;
use bumpless_wan::address::{Addresses, Pool};
use bumpless_wan::emulation::{
    self, Backup, Cables, Carrying, Lines, Place, Routing, Running, Tie, UpError, speak_from_link,
};

use super::daemons::{Daemons, monitor};
use super::end::{Certificate, Foreign, Ports, Server, serve};
use super::host::Host;
use super::needs;
use super::plan::{self, Site};
use super::transport::{ALL, Protection, Socket, Transport};

/// What a stage is made of.
#[derive(Debug)]
pub struct Setting<'a> {
    /// The program whose `wan keep` and `iprp run` are used.
    pub binary: &'a Path,
    /// The name of the network.
    pub place: Place,
    /// The network.
    pub topology: Topology,
    /// Who decides where packets go in it.
    pub routing: Routing,
    /// Substations at once, at most.
    pub sites: usize,
    /// What will be used on it.
    pub transports: Vec<&'static Transport>,
    /// Where programs are that are built apart.
    pub peers: Option<&'a Path>,
    /// What delays are drawn from.
    pub seed: u64,
    /// Somebody wants to stop.
    pub stop: &'a AtomicBool,
}

/// Everything; gone when this is dropped.
#[derive(Debug)]
pub struct Stage {
    // Ends first.
    daemons: Option<Daemons>,
    servers: Vec<Server>,
    /// Programs that are built apart, by the socket that they have, as far as they are there.
    pub programs: Vec<(Socket, Foreign)>,
    /// The network that runs.
    pub running: Running,
    /// Its nodes and links.
    pub topology: Topology,
    /// Where messages come from.
    pub centre: Host,
    /// Where they go to, with what can be cut.
    pub sites: Vec<(Host, Site)>,
    /// What the backup is like, by place of a host: the centre has the first one, and each site the next.
    pub lines: Lines,
    /// What TLS takes.
    pub certificate: Certificate,
    /// Transports that this machine lacks, and why.
    pub lacking: Vec<(&'static Transport, String)>,
    /// Whether the kernel was told of the ways of MPTCP, which all its transports share; `None`: nobody has tried.
    multipath: Option<Result<(), String>>,
    cables: Cables,
    carrying: Carrying,
    place: Place,
    _tie: Tie,
}

/// Why a transport cannot be measured.
enum NoPort {
    /// The machine lacks what it takes.
    Lacking(String),
    /// Something failed that should not.
    Failed(String),
}

impl Stage {
    /// Puts everything on this machine.
    ///
    /// # Errors
    /// What is missing or refused. Nothing of it is left then.
    pub fn new(setting: &Setting<'_>) -> Result<Self, String> {
        let topology = &setting.topology;
        let chosen = plan::sites(topology, setting.sites);
        let (centre, sites) = chosen.ok_or(
            "no substation has a link on its way to a control centre that can be cut for it alone; give a network with chains (--chain-routers)",
        )?;
        let protected = setting
            .transports
            .iter()
            .any(|it| it.by_daemons().is_some());
        let mut lacking = emulation::lacking(topology);
        lacking.extend(needs::lacking(
            (topology.nodes().len(), sites.len()),
            &needs::Each {
                what: "runs side by side",
                option: "--side-by-side",
                bytes: needs::RUN_BYTES,
                protected,
            },
        ));
        if !lacking.is_empty() {
            return Err(UpError::Lacking(lacking).to_string());
        }
        let addresses = Addresses::new(topology, Pool::V4).map_err(|error| error.to_string())?;
        let certificate = Certificate::new()?;
        let mut keeper = Command::new(setting.binary);
        keeper.args(["wan", "keep", "--tied", "--name", setting.place.name()]);
        let (running, tie) = emulation::up_tied(
            &setting.place,
            topology,
            (Pool::V4, setting.routing),
            &mut keeper,
        )
        .map_err(|error| error.to_string())?;
        let nodes = [centre].into_iter().chain(sites.iter().map(|it| it.node));
        let nodes: Vec<_> = nodes.collect();
        let backup = Backup::new(&running, topology, (&nodes, 1))
            .map_err(|error| format!("cannot make the backup: {error}"))?;
        // A program that leaves its source to the kernel would speak from an address that nobody was told.
        for &node in &nodes {
            speak_from_link(&running, topology, &addresses, node)
                .map_err(|error| format!("cannot set the source of routes: {error}"))?;
        }
        let host = |at| Host::new(&running, topology, &addresses, at);
        let mut hosts = nodes.iter().copied().enumerate().map(host);
        let centre = hosts.next().ok_or("no control centre")?;
        let sites = hosts.zip(sites).collect();
        let mut stage = Self {
            daemons: None,
            servers: Vec::new(),
            programs: Vec::new(),
            topology: topology.clone(),
            centre,
            sites,
            lines: backup.lines(),
            certificate,
            lacking: Vec::new(),
            multipath: None,
            cables: backup.cables(),
            carrying: backup.carry(setting.seed),
            running,
            place: setting.place.clone(),
            _tie: tie,
        };
        stage.listen(setting)?;
        if protected {
            stage.protect(setting)?;
        }
        Ok(stage)
    }

    /// Whether all that was put up has stood until this moment.
    ///
    /// # Errors
    /// What a daemon said that ended, or why the backup carries nothing.
    pub fn stood(&self) -> Result<(), String> {
        self.carrying.stood()?;
        self.daemons.as_ref().map_or(Ok(()), Daemons::stood)
    }

    /// How many packets found no room where they were to be held, over the network and the backup.
    pub fn overflowed(&self) -> Option<u64> {
        let network = emulation::overflowed(&self.running, &self.topology).ok()?;
        Some(network.unwrap_or(0) + self.cables.overflowed().ok()?)
    }

    /// Opens the port of each transport at each substation.
    fn listen(&mut self, setting: &Setting<'_>) -> Result<(), String> {
        for &transport in &setting.transports {
            let listens = match (transport.socket, transport.socket.program()) {
                // Both its ends begin with each run.
                (Socket::State, _) => Ok(()),
                (_, Some(name)) => self.listen_by(name, transport, setting.peers),
                (_, None) => self.listen_for(transport),
            };
            match listens {
                Ok(()) => {}
                Err(NoPort::Lacking(why)) => self.lacking.push((transport, why)),
                Err(NoPort::Failed(why)) => return Err(format!("{}: {why}", transport.name)),
            }
        }
        Ok(())
    }

    fn listen_by(
        &mut self,
        name: &str,
        transport: &Transport,
        folder: Option<&Path>,
    ) -> Result<(), NoPort> {
        let program = Foreign::find(folder, name).map_err(NoPort::Lacking)?;
        for (site, _) in &self.sites {
            let addresses = [site.network, site.backup];
            let server = site.at(|| program.serve(transport.port, addresses));
            let server = server
                .map_err(|error| NoPort::Failed(format!("{name} does not listen: {error}")))?;
            self.servers.push(server);
        }
        self.programs.push((transport.socket, program));
        Ok(())
    }

    fn listen_for(&mut self, transport: &Transport) -> Result<(), NoPort> {
        let ports: Result<Vec<_>, _> = self
            .sites
            .iter()
            .map(|(site, _)| {
                site.at(|| Ports::open(transport, site.network, &self.certificate.server))
            })
            .collect();
        let ports = ports.map_err(|error| match is_lacking(&error) {
            true => NoPort::Lacking(format!("the kernel does not offer its socket: {error}")),
            false => NoPort::Failed(format!("cannot listen: {error}")),
        })?;
        if transport.socket == Socket::Mptcp {
            self.multipath().map_err(NoPort::Lacking)?;
        }
        ports.into_iter().for_each(serve);
        Ok(())
    }

    /// Tells the kernel of the ways of MPTCP, once.
    fn multipath(&mut self) -> Result<(), String> {
        let tell = || {
            self.centre.multipath(true)?;
            let mut sites = self.sites.iter();
            sites.try_for_each(|(site, _)| site.multipath(false))
        };
        let told = self.multipath.take().unwrap_or_else(tell);
        self.multipath = Some(told.clone());
        told
    }

    fn protect(&mut self, setting: &Setting<'_>) -> Result<(), String> {
        let sites = self.sites.iter().map(|(host, _)| host);
        let hosts = [&self.centre].into_iter().chain(sites).cloned().collect();
        let folder = self.place.folder().map_err(|error| error.to_string())?;
        self.daemons = Some(Daemons::start(
            setting.binary,
            &folder,
            (hosts, &monitors()),
            setting.stop,
        )?);
        Ok(())
    }
}

/// Whether a socket is refused because the kernel has none of the kind.
fn is_lacking(error: &io::Error) -> bool {
    let none = [
        libc::EPROTONOSUPPORT,
        libc::ENOPROTOOPT,
        libc::EAFNOSUPPORT,
        libc::ESOCKTNOSUPPORT,
    ];
    error.raw_os_error().is_some_and(|it| none.contains(&it))
}

/// What the daemons protect: the port of each transport that is protected.
fn monitors() -> String {
    let ports = ALL.iter().filter_map(|it| {
        let mode = match it.by_daemons()? {
            Protection::Redundant => "redundant",
            Protection::Standby => "standby",
        };
        Some(monitor(it.socket.protocol(), it.port, mode))
    });
    ports.collect()
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.daemons = None;
        self.servers.clear();
        // What does not end in order ends with the process that holds it.
        let _ = emulation::down(&self.place);
    }
}
