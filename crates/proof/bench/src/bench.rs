//! The whole run: every case of the plan, one after the other.

use bumpless_net_linux::realtime;

use crate::job::{self, Job};
use crate::network::{Lab, Place, Shape};
use crate::plan::{Column, Options};
use crate::result::{PeerReport, Run};
use crate::run::Trouble;
use crate::run::pair::{Pair, Peer, Setup};
use crate::run::progress::Progress;
use crate::run::transfers::{Bench, Session};

/// Measures what `options` want.
///
/// # Errors
/// Nothing can be measured: no right to make networks or to keep processors awake, an unknown peer. A user who stops
/// gets what was measured until then.
pub fn measure(options: &Options) -> Result<Run, String> {
    let began = std::time::Instant::now();
    let peers = options.chosen_peers()?;
    let mut run = Run::begin(if options.quick { "loopback" } else { "lab" });
    let awake = options.wake_latency.map(realtime::limit_wake_latency);
    let _held = awake.transpose().map_err(|refused| refused.to_string())?;
    run.host.wake_latency_us = options.wake_latency;
    let mut work = Work {
        options,
        peers: &peers,
        run: &mut run,
        progress: Progress::new(0.0, options.silent),
    };
    let outcome = if options.quick {
        work.loopback()
    } else {
        work.lab()
    };
    work.progress.end();
    run.complete = match outcome {
        Ok(()) => true,
        Err(Trouble::Stopped) => false,
        Err(Trouble::Failed(reason)) => return Err(reason),
    };
    run.took_s = began.elapsed().as_secs_f64();
    Ok(run)
}

struct Work<'a> {
    options: &'a Options,
    peers: &'a [Peer],
    run: &'a mut Run,
    progress: Progress,
}

impl Work<'_> {
    fn loopback(&mut self) -> Result<(), Trouble> {
        let columns = self.options.columns(self.peers, None);
        let jobs: Vec<Job> = columns.into_iter().map(Job::Column).collect();
        self.progress = Progress::new(self.estimate(&jobs), self.options.silent);
        self.jobs(&Place::Loopback, ("loopback", 0), &jobs)
    }

    fn lab(&mut self) -> Result<(), Trouble> {
        let plans = [Shape::Gigabit, Shape::GigabitByPacket, Shape::Unshaped];
        let plans = plans.map(|shape| (shape, job::jobs(self.options, self.peers, shape)));
        let planned = plans.iter().map(|(_, jobs)| self.estimate(jobs)).sum();
        self.progress = Progress::new(planned, self.options.silent);
        for (shape, jobs) in plans.iter().filter(|(_, jobs)| !jobs.is_empty()) {
            let place = Place::Lab(Lab::new(*shape)?);
            self.jobs(&place, (shape.name(), shape.bandwidth_mbit()), jobs)?;
        }
        Ok(())
    }

    fn estimate(&self, jobs: &[Job]) -> f64 {
        jobs.iter()
            .map(|job| job.estimate(self.options, self.peers))
            .sum()
    }

    fn jobs(
        &mut self,
        place: &Place,
        (network, bandwidth_mbit): (&str, u32),
        jobs: &[Job],
    ) -> Result<(), Trouble> {
        let bench = Bench {
            place,
            network,
            bandwidth_mbit,
            stop: &self.options.stop,
        };
        for job in jobs {
            let peer = &self.peers[job.peer()];
            if !self.can_run(&bench, peer)? {
                self.progress.ends(job.estimate(self.options, self.peers));
                continue;
            }
            let estimate = job.estimate(self.options, self.peers);
            let what = format!("{}: {}", peer.name, job.what());
            let under_way = self.progress.begins(&what, estimate);
            match job {
                Job::Column(column) => self.column(&bench, column)?,
                other => other.measure(&bench, peer, self.options, self.run)?,
            }
            drop(under_way);
            self.progress.ends(estimate);
        }
        Ok(())
    }

    /// Whether `peer` runs here at all; tried once, and noted with what it tells of itself.
    fn can_run(&mut self, bench: &Bench<'_>, peer: &Peer) -> Result<bool, Trouble> {
        if let Some(known) = self.run.peers.iter().find(|known| known.name == peer.name) {
            return Ok(known.error.is_none());
        }
        let setup = Setup {
            channels: 1,
            many: false,
            max_size: 1024,
            bandwidth_mbit: bench.bandwidth_mbit,
            deadlines_us: Vec::new(),
        };
        let mut told = PeerReport {
            name: peer.name.clone(),
            networks: peer.networks,
            ..PeerReport::default()
        };
        match Pair::start(bench.place, peer, &setup, bench.stop) {
            Ok(pair) => {
                (told.version, told.settings) = (pair.version.clone(), pair.settings.clone())
            }
            Err(Trouble::Stopped) => return Err(Trouble::Stopped),
            Err(Trouble::Failed(reason)) => told.error = Some(reason),
        }
        let runs = told.error.is_none();
        self.run.peers.push(told);
        Ok(runs)
    }

    fn column(&mut self, bench: &Bench<'_>, column: &Column) -> Result<(), Trouble> {
        let peer = &self.peers[column.peer];
        let largest = column.sizes.iter().copied().max().unwrap_or(0);
        let mut session = Session::new(bench, peer, column.many, largest);
        for &size in &column.sizes {
            if column.many {
                session = Session::new(bench, peer, true, size);
            }
            let cell = session.cell(&job::case(self.options, size, column.loss))?;
            self.run.transfers.push(cell);
        }
        Ok(())
    }
}
