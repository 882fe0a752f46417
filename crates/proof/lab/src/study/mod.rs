//! The fifth paper's study of failovers, with every transport that this machine has and with ours (`spec/wan.md`, U-50 and further).
//!
//! | module | owns |
//! |---|---|
//! | `transport` | what carries messages, and how it is protected |
//! | `end` | the programs at both ends |
//! | `plan` | what is measured when, over which ways |
//! | `needs` | what this machine may lack |
//! | `host`, `daemons`, `stage` | the network with everything on it |
//! | `run` | runs side by side, and their outages |
//! | `background` | messages of others meanwhile |
//! | `bytes` | what passes a substation's links |
//! | `result` | what is kept |
//! | `analysis` | what it comes to: round trips, failovers, promises |
//! | `paper` | the paper's figures |
//! | `report` | tables, drawings, answers and the page |

mod analysis;
mod background;
mod bytes;
pub(crate) mod daemons;
mod end;
pub(crate) mod host;
pub(crate) mod needs;
mod paper;
mod plan;
mod report;
mod result;
mod run;
mod stage;
mod transport;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bumpless_base::Instant;
use bumpless_bench::run::meter;
use bumpless_net_linux::{Clock, realtime};
use bumpless_wan::Topology;
use bumpless_wan::emulation::{Delays, Line, Place, Routing, Running};

pub use result::{Network, NotMeasured, Promise, Run, Settings, Study};

use background::Traffic;
use plan::Case;
use stage::{Setting, Stage};
use transport::Transport;
pub(crate) use transport::line_name;

/// What a study is to be.
#[derive(Debug)]
pub struct StudyOptions {
    /// The program whose network and daemons are used.
    pub binary: PathBuf,
    /// The name of the network meanwhile.
    pub place: Place,
    /// The network.
    pub topology: Topology,
    /// Who decides where packets go in it.
    pub routing: Routing,
    /// Names of transports; all if there are none.
    pub transports: Vec<String>,
    /// Where programs are that are built apart.
    pub peers: Option<PathBuf>,
    /// Kinds of backup.
    pub backups: Vec<Line>,
    /// Runs of each case.
    pub runs: u32,
    /// Seconds of a run.
    pub seconds: u64,
    /// Runs side by side at most.
    pub side_by_side: usize,
    /// Messages of others in a second, beside which all runs are made once more; 0: they are not.
    pub background: u32,
    /// Where captures of the first run of each case without background traffic go, if they are wanted.
    pub captures: Option<PathBuf>,
    /// What all chance is drawn from.
    pub seed: u64,
    /// Set to end it.
    pub stop: Arc<AtomicBool>,
}

/// Names of all transports.
pub fn transports() -> impl Iterator<Item = &'static str> {
    transport::ALL.iter().map(|it| it.name)
}

/// Whether a transport is called so.
pub fn is_transport(name: &str) -> bool {
    transport::named(name).is_some()
}

/// The lowest real-time priority.
const PRIORITY: u8 = 1;
/// That of what is measured, of its network and of daemons.
const MEASURED: u8 = background::PRIORITY + 1;

/// Makes a study; `told` hears how many runs of how many are done.
///
/// # Errors
/// What is missing for it. Nothing of it is left.
pub fn run_study(
    options: &StudyOptions,
    told: &(dyn Fn(usize, usize) + Sync),
) -> Result<Study, String> {
    let mut study = Study::begin(Settings {
        runs: options.runs,
        seconds: options.seconds,
        side_by_side: 0,
        background: options.background,
        seed: options.seed,
    });
    let (measured, lack) = meter::beside_ordinary(|| urgent(|| measure(options, told, &mut study)));
    let began = measured?;
    study.lack = meter::told(&lack, began);
    // What they saw while everything was put up explains nothing.
    study.lack.stalls.retain(|&(at, _)| at > 0);
    study.head.took_s = Clock.now().since(began).as_nanos() as f64 / 1e9;
    study.promises = analysis::promises(&study);
    Ok(study)
}

/// Does `work` on a thread whose threads and processes go before those of others, where that is granted: what else runs on
/// the machine is not what is measured.
pub(crate) fn urgent<T: Send>(
    work: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, String> {
    let all = || {
        let _ = realtime::set_fifo(PRIORITY);
        work()
    };
    let done = thread::scope(|scope| scope.spawn(all).join());
    done.unwrap_or_else(|_| Err("a thread ended by a panic".to_owned()))
}

/// Puts everything up, and makes all runs; gives when the first one could begin.
fn measure(
    options: &StudyOptions,
    told: &(dyn Fn(usize, usize) + Sync),
    study: &mut Study,
) -> Result<Instant, String> {
    // Threads and processes that begin here have it, too.
    let _ = realtime::set_fifo(MEASURED);
    let chosen = |it: &&Transport| {
        options.transports.is_empty() || options.transports.iter().any(|name| name == it.name)
    };
    let transports: Vec<&'static Transport> = transport::ALL.iter().filter(chosen).collect();
    let stage = Stage::new(&Setting {
        binary: &options.binary,
        place: options.place.clone(),
        topology: options.topology.clone(),
        routing: options.routing,
        sites: options.side_by_side,
        transports: with_baseline(&transports),
        peers: options.peers.as_deref(),
        seed: options.seed,
        stop: &options.stop,
    })?;
    study.settings.side_by_side = stage.sites.len();
    study.network = network(&stage.running, &stage.topology, &stage.centre.name);
    study.not_measured = not_measured(&stage);
    let lacks = |it: &&'static Transport| stage.lacking.iter().any(|(other, _)| other == it);
    let present = transports.into_iter().filter(|it| !lacks(it));
    let cases = cases(present, &options.backups);
    // The same outages without and with background traffic.
    let jobs = plan::jobs(&cases, options.runs, options.seconds, options.seed);
    let loads: Vec<u32> = match options.background {
        0 => vec![0],
        each_second => vec![0, each_second],
    };
    let count = jobs.len() * loads.len();
    let began = Clock.now();
    let begin = |load| Traffic::begin(&stage, load);
    // What is measured must not make its own meter late: that would excuse it.
    let (broke_off, stood_still) = meter::beside_urgent(MEASURED, || {
        passes(&loads, &options.stop, begin, |load, traffic| {
            let before = study.runs.len();
            let told = |done| told(before + done, count);
            let captures = options.captures.as_deref().filter(|_| load == 0);
            let (mut runs, stood) =
                run::all((&stage, captures), &jobs, (began, &options.stop), &told);
            runs.iter_mut().for_each(|run| run.background = load);
            study.runs.extend(runs);
            let ended = traffic.map(Traffic::end).transpose()?;
            study.background.extend(ended);
            stood
        })
    });
    let broke_off = broke_off.and_then(|()| stage.stood());
    study.overflowed = stage.overflowed();
    study.head.complete = study.runs.len() == count && broke_off.is_ok();
    study.broke_off = broke_off.err();
    study.jitter = meter::told(&stood_still, began);
    Ok(began)
}

/// Makes a pass with each of these loads, beside the traffic that `begin` begins, until somebody wants to stop.
///
/// # Errors
/// Traffic cannot be had, or its figures are lost. What was measured before stays.
fn passes<T>(
    loads: &[u32],
    stop: &AtomicBool,
    begin: impl Fn(u32) -> Result<T, String>,
    mut pass: impl FnMut(u32, Option<T>) -> Result<(), String>,
) -> Result<(), String> {
    for &load in loads {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let traffic = (load > 0).then(|| begin(load)).transpose()?;
        pass(load, traffic)?;
    }
    Ok(())
}

/// What is kept of the network that a study is made on.
pub(crate) fn network(running: &Running, topology: &Topology, centre: &str) -> Network {
    let delays = match &running.delays {
        Delays::Nothing => "nothing",
        Delays::Netem => "netem",
        Delays::Held => "held",
        Delays::Lacking(_) => "lacking",
    };
    let congestion = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    Network {
        nodes: topology.nodes().len(),
        links: topology.links().len(),
        router_us: topology.router_us(),
        delays: delays.to_owned(),
        routing: running.routing.name().to_owned(),
        centre: centre.to_owned(),
        congestion: congestion.unwrap_or_default().trim().to_owned(),
    }
}

/// What must be said of packets that found no room where they were to be held, if there were any.
pub(crate) fn no_room(packets: Option<u64>) -> String {
    match packets {
        None | Some(0) => String::new(),
        Some(lost) => format!(
            "; {lost} packets were lost for want of room where they were to be held, which is the machine's doing"
        ),
    }
}

fn not_measured(stage: &Stage) -> Vec<NotMeasured> {
    let lacking = stage.lacking.iter();
    let told = lacking.map(|(transport, why)| NotMeasured {
        transport: transport.name.to_owned(),
        why: why.clone(),
    });
    told.collect()
}

/// Table II is of plain TCP, whatever else is measured.
fn with_baseline(transports: &[&'static Transport]) -> Vec<&'static Transport> {
    let plain = &transport::ALL[0];
    let others = transports.iter().copied().filter(|it| *it != plain);
    [plain].into_iter().chain(others).collect()
}

/// Every case: ways without outages, and each transport with each backup.
fn cases(transports: impl Iterator<Item = &'static Transport>, backups: &[Line]) -> Vec<Case> {
    let baseline = backups.iter().map(|&line| Case::Backup(line));
    let outages = transports.flat_map(|it| backups.iter().map(move |&line| Case::Outage(it, line)));
    [Case::Network]
        .into_iter()
        .chain(baseline)
        .chain(outages)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_that_cannot_be_had_ends_a_study_and_keeps_what_it_has() {
        let mut made = Vec::new();
        let refuse = |_| Err::<(), _>("no port".to_owned());
        let ended = passes(&[0, 500], &AtomicBool::new(false), refuse, |load, _| {
            made.push(load);
            Ok(())
        });
        assert_eq!((made, ended), (vec![0], Err("no port".to_owned())));
    }

    #[test]
    fn a_study_that_is_stopped_begins_no_further_traffic() {
        let (stop, mut made) = (AtomicBool::new(false), Vec::new());
        let begin = |load| Ok::<u32, String>(load);
        let ended = passes(&[0, 500], &stop, begin, |load, _| {
            made.push(load);
            stop.store(true, Ordering::Relaxed);
            Ok(())
        });
        assert_eq!((made, ended), (vec![0], Ok(())));
    }
}
