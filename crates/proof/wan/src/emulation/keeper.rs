//! The process that holds a network: when it ends, however it does, the kernel removes the network.

use std::convert::Infallible;
use std::os::fd::AsRawFd;
use std::time::Instant;

use super::build::{self, Delays};
use super::delay::{self, Times};
use super::impairment;
use super::ospf::{self, Routing};
use super::place::{Place, Running};
use crate::address::{Addresses, Pool};
use crate::topology::Topology;

/// Makes the network and holds it until the process is ended by a signal. `abandoned` says whether nobody wants it any
/// more, and `ready` is called when it is up.
///
/// # Errors
/// Why it could not be made, or held on.
pub fn keep(
    place: &Place,
    topology: &Topology,
    (pool, routing): (Pool, Routing),
    abandoned: &(dyn Fn() -> bool + Sync),
    ready: impl FnOnce(),
) -> Result<Infallible, String> {
    let since = Instant::now();
    // Out of the terminal's reach; a process that leads a group already is so.
    let _ = rustix::process::setsid();
    let _ = std::env::set_current_dir("/");
    let lock = place.lock_to_keep().map_err(|error| error.to_string())?;
    let lock = lock.ok_or("another process has just taken this name; see `bumpless wan status`")?;
    let made = Addresses::new(topology, pool)
        .map_err(|error| error.to_string())
        .and_then(|addresses| {
            let network = build::build(topology, (&addresses, routing), abandoned)?;
            let daemons = match routing {
                Routing::Fixed | Routing::EqualCost => None,
                Routing::Ospf => {
                    let folder = place.folder().map_err(|error| error.to_string())?;
                    let namespaces = (&network.namespaces[..], folder.as_path());
                    Some(ospf::begin(topology, &addresses, namespaces, abandoned)?)
                }
            };
            Ok((addresses, network, daemons))
        });
    let (addresses, network, _daemons) = match made {
        Ok(made) => made,
        Err(why) => {
            place.clear(lock);
            return Err(why);
        }
    };
    let (hosts, mut queues): (Vec<_>, Vec<_>) = network.queues.into_iter().unzip();
    let times = Times::new(topology, &addresses, &hosts);
    let running = Running {
        name: place.name().to_owned(),
        pid: std::process::id(),
        pool: pool.to_string(),
        routing,
        delays: network.delays.clone(),
        took_ms: since.elapsed().as_millis() as u64,
        namespaces: network.namespaces.iter().map(AsRawFd::as_raw_fd).collect(),
        topology: topology.to_json(),
    };
    if let Err(error) = impairment::begin(&running, topology, abandoned) {
        place.clear(lock);
        return Err(error.to_string());
    }
    if abandoned() {
        place.clear(lock);
        return Err("nobody waits for the network any more".to_owned());
    }
    place
        .tell(&lock, &running)
        .map_err(|error| error.to_string())?;
    ready();
    if network.delays == Delays::Held {
        let held = delay::hold(&mut queues, |host, come, header| {
            come + times.of(host, header)
        });
        let Err(error) = held;
        return Err(format!("packets cannot be delayed any more: {error}"));
    }
    loop {
        std::thread::park();
    }
}
