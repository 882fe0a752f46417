//! A piece of the run: what it measures, how long it will take, and where its result goes.

use std::time::Duration;

use crate::network::Shape;
use crate::plan::{CaseKind, Column, Options};
use crate::result::Run;
use crate::run::Trouble;
use crate::run::cyclic::{self, Load, SteadyLoss, UTILISATION};
use crate::run::loss::LossCase;
use crate::run::pair::Peer;
use crate::run::transfers::{Bench, Case};
use crate::run::{cost, cut};

/// Steps of the ramp, share of 1 Gbit/s.
const RAMP: [f64; 9] = [0.5, 0.6, 0.7, UTILISATION, 0.8, 0.85, 0.9, 0.93, 0.95];
/// Least time of a step: the longest period is a second.
const STEP: Duration = Duration::from_secs(5);
/// Tries of a step, and the stall that makes another one worth it: half of the shortest deadline.
const ATTEMPTS: usize = 3;
const STOOD_STILL_NS: u64 = 5_000_000;
/// Channels of the case that grows them.
const CHANNELS: [u32; 4] = [1, 10, 100, 1000];
/// Sizes and numbers of transfers whose cost is measured.
const COSTS: [(usize, usize); 2] = [(1 << 20, 300), (16 << 20, 20)];
/// Cuts for each peer.
const CUTS: usize = 10;

/// One piece.
#[derive(Clone, Debug)]
pub enum Job {
    /// A column of table 15.
    Column(Column),
    /// Table 20 under a loss: position of the peer, whether each channel has a connection.
    Applications(usize, bool, SteadyLoss),
    /// The ramp of a peer.
    Ramp(usize),
    /// Cuts for a peer.
    Cut(usize),
    /// What a peer costs.
    Cost(usize),
    /// A peer with more and more channels.
    Channels(usize),
}

/// All pieces over networks of `shape`.
pub fn jobs(options: &Options, peers: &[Peer], shape: Shape) -> Vec<Job> {
    let columns = |shape| {
        options
            .columns(peers, Some(shape))
            .into_iter()
            .map(Job::Column)
    };
    if shape == Shape::Unshaped {
        let wanted = options.wants(CaseKind::Unshaped);
        return columns(shape).filter(|_| wanted).collect();
    }
    let all = 0..peers.len();
    let lossy = shape == Shape::GigabitByPacket;
    let mut jobs = Vec::new();
    for kind in CaseKind::ALL
        .into_iter()
        .filter(|kind| options.wants(*kind))
    {
        match kind {
            CaseKind::Transfers => jobs.extend(columns(shape)),
            CaseKind::Applications if lossy => {
                for &loss in options.steady_losses() {
                    for peer in all.clone() {
                        let connections = options.connections(&peers[peer]);
                        jobs.extend(
                            connections
                                .iter()
                                .map(|&many| Job::Applications(peer, many, loss)),
                        );
                    }
                }
            }
            CaseKind::Applications | CaseKind::Unshaped => {}
            _ if lossy => {}
            CaseKind::Ramp => jobs.extend(all.clone().map(Job::Ramp)),
            CaseKind::Cut => jobs.extend(all.clone().map(Job::Cut)),
            CaseKind::Cost => jobs.extend(all.clone().map(Job::Cost)),
            CaseKind::Channels => jobs.extend(all.clone().map(Job::Channels)),
        }
    }
    jobs
}

impl Job {
    /// Position of its peer.
    pub const fn peer(&self) -> usize {
        match self {
            Self::Column(column) => column.peer,
            Self::Applications(peer, ..)
            | Self::Ramp(peer)
            | Self::Cut(peer)
            | Self::Cost(peer)
            | Self::Channels(peer) => *peer,
        }
    }

    /// What it does, for people.
    pub fn what(&self) -> String {
        match self {
            Self::Column(column) => format!("transfers, lost: {}", column.loss.name()),
            Self::Applications(_, _, loss) => format!("eleven applications, lost: {}", loss.name()),
            Self::Ramp(_) => "growing load".into(),
            Self::Cut(_) => "one network cut".into(),
            Self::Cost(_) => "cost".into(),
            Self::Channels(_) => "many channels".into(),
        }
    }

    /// Seconds that it will take, roughly.
    pub fn estimate(&self, options: &Options, peers: &[Peer]) -> f64 {
        match self {
            Self::Column(column) => {
                let ours = peers[column.peer].is_ours();
                cell_estimate(options, column.loss, ours) * column.sizes.len() as f64
            }
            Self::Applications(..) => options.span.as_secs_f64() + 3.0,
            Self::Ramp(_) => RAMP.len() as f64 * (step(options).as_secs_f64() + 3.0) * 0.6,
            Self::Cut(_) => CUTS as f64 * 1.6 + 2.0,
            Self::Cost(_) => 8.0,
            Self::Channels(_) => CHANNELS.len() as f64 * (step(options).as_secs_f64() + 3.0),
        }
    }

    /// Measures it, into `run`. Columns are the caller's.
    ///
    /// # Errors
    /// The user wants to stop.
    pub fn measure(
        &self,
        bench: &Bench<'_>,
        peer: &Peer,
        options: &Options,
        run: &mut Run,
    ) -> Result<(), Trouble> {
        match *self {
            Self::Column(_) => {}
            Self::Applications(_, many, loss) => {
                let load = Load {
                    case: "applications",
                    many,
                    channels: cyclic::applications(UTILISATION),
                    loss,
                    span: options.span,
                };
                run.applications.push(cyclic::run(bench, peer, &load)?);
            }
            Self::Ramp(_) => ramp(bench, peer, options, run)?,
            Self::Cut(_) => run.cuts.push(cut::run(bench, peer, CUTS)?),
            Self::Cost(_) => {
                for (size, count) in COSTS {
                    run.costs.push(cost::run(bench, peer, size, count)?);
                }
            }
            Self::Channels(_) => {
                for count in CHANNELS {
                    let load = Load {
                        case: "channels",
                        many: !peer.is_ours(),
                        channels: cyclic::small_channels(count),
                        loss: SteadyLoss::None,
                        span: step(options),
                    };
                    run.applications.push(cyclic::run(bench, peer, &load)?);
                }
            }
        }
        Ok(())
    }
}

fn step(options: &Options) -> Duration {
    (options.span / 4).max(STEP.min(options.span))
}

/// Seconds that a cell of transfers will take, roughly: what is lost costs other protocols a timeout.
fn cell_estimate(options: &Options, loss: LossCase, ours: bool) -> f64 {
    let each = match loss.packets() {
        Some(0) => 0.008,
        _ if ours => 0.01,
        // Where nothing follows that tells of the loss, a timer ends it.
        Some(1) if matches!(loss, LossCase::First | LossCase::Last) => 0.2,
        Some(1) => 0.06,
        _ => 0.1,
    };
    (options.iterations() as f64 * each).min(options.cell_limit(loss).as_secs_f64()) + 0.3
}

/// A load that grows until the first miss. A step in which the machine itself stood still is tried again:
/// its misses say nothing of the peer.
fn ramp(bench: &Bench<'_>, peer: &Peer, options: &Options, run: &mut Run) -> Result<(), Trouble> {
    for utilisation in RAMP {
        let load = Load {
            case: "ramp",
            many: !peer.is_ours(),
            channels: cyclic::applications(utilisation),
            loss: SteadyLoss::None,
            span: step(options),
        };
        let mut over = true;
        for _ in 0..ATTEMPTS {
            let result = cyclic::run(bench, peer, &load)?;
            over = result.own_misses() > 0 || result.error.is_some();
            let disturbed = result.jitter.longest_ns >= STOOD_STILL_NS;
            run.applications.push(result);
            if !over || !disturbed {
                break;
            }
        }
        if over {
            break;
        }
    }
    Ok(())
}

/// The cell of a column.
pub fn case(options: &Options, size: usize, loss: LossCase) -> Case {
    Case {
        size,
        loss,
        iterations: options.iterations(),
        limit: options.cell_limit(loss),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan;

    #[test]
    fn applications_run_beside_the_losses_that_are_asked_for() {
        let mut options = plan::tests::options();
        options.cases = vec![CaseKind::Applications];
        options.peers = vec!["transfer".into()];
        let peers = options.chosen_peers().unwrap();
        let beside = |options: &Options| -> Vec<_> {
            jobs(options, &peers, Shape::GigabitByPacket)
                .iter()
                .map(|job| match job {
                    Job::Applications(0, false, loss) => *loss,
                    other => panic!("{other:?}"),
                })
                .collect()
        };
        assert_eq!(beside(&options), SteadyLoss::LOSSY);
        options.steady_losses = vec![SteadyLoss::EachSecond];
        assert_eq!(beside(&options), [SteadyLoss::EachSecond]);
    }
}
