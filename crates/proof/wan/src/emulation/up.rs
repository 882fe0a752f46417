//! Starts the process that holds a network, and waits for its answer.

use std::fmt;
use std::io::{self, BufRead, Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use super::needs;
use super::ospf::Routing;
use super::place::{Place, PlaceError, Running};
use crate::address::Pool;
use crate::topology::Topology;

/// Why a network did not come up. Nothing of it is left.
#[derive(Debug)]
pub enum UpError {
    /// One of this name is up.
    Taken(String, u32),
    /// This machine lacks all this.
    Lacking(Vec<String>),
    /// The place where it is to be known cannot be used.
    Place(PlaceError),
    /// The process that was to hold it says this, or could not be started.
    Failed(String),
}

impl fmt::Display for UpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken(name, pid) => write!(
                f,
                "a network called {name} is up already (process {pid}): `bumpless wan down --name {name}` ends it, and another \
                 --name makes one beside it"
            ),
            Self::Lacking(all) => write!(
                f,
                "this machine cannot have the network, nothing was made: {}",
                all.join("\n  ")
            ),
            Self::Place(error) => error.fmt(f),
            Self::Failed(why) => write!(
                f,
                "the network did not come up, nothing is left of it: {why}"
            ),
        }
    }
}

impl std::error::Error for UpError {}

impl From<PlaceError> for UpError {
    fn from(error: PlaceError) -> Self {
        Self::Place(error)
    }
}

/// What the process that is to hold a network is told, in one line.
#[derive(Serialize, Deserialize)]
struct Order {
    pool: String,
    routing: Routing,
    topology: String,
}

/// Makes a network and leaves it to `keeper`, a command that reads its [`order`], calls [`super::keep`] and writes its
/// [`answer`]. When the calling process ends before this returns, the network ends, too.
///
/// # Errors
/// [`UpError`].
pub fn up(
    place: &Place,
    topology: &Topology,
    settings: (Pool, Routing),
    keeper: &mut Command,
) -> Result<Running, UpError> {
    let (running, mut tie) = up_tied(place, topology, settings, keeper)?;
    // It goes on alone.
    tie.0 = None;
    Ok(running)
}

/// A network's process, which ends with this value if it calls [`end_with_starter`], even if its owner is killed.
#[derive(Debug)]
pub struct Tie(Option<Child>);

impl Drop for Tie {
    fn drop(&mut self) {
        if let Some(mut process) = self.0.take() {
            process.stdin = None;
            // It ends in order by `down` before, and by the end of its input otherwise.
            let _ = process.wait();
        }
    }
}

/// As [`up`], and gives what holds the process.
///
/// # Errors
/// [`UpError`].
pub fn up_tied(
    place: &Place,
    topology: &Topology,
    settings: (Pool, Routing),
    keeper: &mut Command,
) -> Result<(Running, Tie), UpError> {
    if let Some(running) = place.running()? {
        return Err(UpError::Taken(place.name().to_owned(), running.pid));
    }
    let mut lacking = needs::lacking(topology);
    match settings.1 {
        Routing::Fixed => {}
        Routing::EqualCost => lacking.extend(needs::lacking_for_equal_cost()),
        Routing::Ospf => lacking.extend(needs::lacking_for_daemons(topology, settings.0)),
    }
    if !lacking.is_empty() {
        return Err(UpError::Lacking(lacking));
    }
    let process = started(topology, settings, keeper).map_err(UpError::Failed)?;
    let running = place.running()?.ok_or_else(|| {
        UpError::Failed("the process that held it was ended as soon as it was up".to_owned())
    })?;
    Ok((running, Tie(Some(process))))
}

/// Starts the keeper, or gives what it says is wrong.
fn started(
    topology: &Topology,
    (pool, routing): (Pool, Routing),
    keeper: &mut Command,
) -> Result<Child, String> {
    let mut process = keeper
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let order = Order {
        pool: pool.to_string(),
        routing,
        topology: topology.to_json(),
    };
    let mut order = serde_json::to_string(&order).expect("strings are JSON");
    order.push('\n');
    // It stays open: by its end the keeper knows that nobody waits any more.
    let input = process.stdin.as_mut().expect("a pipe");
    let output = process.stdout.take().expect("a pipe");
    let mut answer = String::new();
    let heard = input
        .write_all(order.as_bytes())
        .and_then(|()| io::BufReader::new(output).read_line(&mut answer));
    let answer = match heard {
        Ok(0) | Err(_) => "the process that was to hold it ended without a word",
        Ok(_) if answer.trim() == UP => return Ok(process),
        Ok(_) => answer.trim(),
    };
    let _ = process.wait();
    Err(answer.to_owned())
}

/// What the keeper writes when the network is up.
const UP: &str = "up";
/// Most bytes of an order.
const ORDER_MAX: u64 = 64 << 20;

/// The keeper's answer to whoever waits for it: `why` it could not, or that it could.
pub fn answer(why: Option<&str>) {
    let mut output = io::stdout();
    // An answer that nobody reads any more changes nothing.
    let _ = writeln!(output, "{}", why.unwrap_or(UP).replace('\n', " "));
    let _ = output.flush();
}

/// Has the calling keeper end, and its network with it, when the input ends that its [`order`] came on: whoever started it
/// holds that by a [`Tie`].
pub fn end_with_starter() {
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
}

/// Reads what the keeper is told on standard input, and gives a way to ask whether that has ended.
///
/// # Errors
/// It is no order.
pub fn order() -> Result<(Topology, (Pool, Routing), impl Fn() -> bool + Sync), String> {
    let mut line = String::new();
    io::BufReader::new(io::stdin().take(ORDER_MAX))
        .read_line(&mut line)
        .map_err(|error| error.to_string())?;
    let order: Order = serde_json::from_str(&line)
        .map_err(|error| format!("this process is started by `bumpless wan up` alone: {error}"))?;
    let topology = Topology::from_json(&order.topology)
        .map_err(|faults| faults.iter().map(ToString::to_string).collect::<String>())?;
    let settings = (order.pool.parse()?, order.routing);
    Ok((topology, settings, || {
        let input = io::stdin();
        let mut ends = [PollFd::new(&input, PollFlags::IN)];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut ends, Some(&at_once)).is_ok_and(|ready| ready > 0)
    }))
}
