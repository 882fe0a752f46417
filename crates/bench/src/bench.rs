//! The whole run: every case of the plan, one after the other.

use crate::network::{Lab, Place, Shape};
use crate::plan::{CaseKind, Column, Options};
use crate::result::{PeerTold, Run};
use crate::run::Trouble;
use crate::run::pair::Peer;
use crate::run::progress::Progress;
use crate::run::transfers::{Bench, Case, Session};

/// Measures what `options` want.
///
/// # Errors
/// Nothing can be measured: no right to make networks, an unknown peer. A user who stops gets what was
/// measured until then.
pub fn measure(options: &Options) -> Result<Run, String> {
    let began = std::time::Instant::now();
    let peers = options.chosen_peers()?;
    let mut run = Run::begin(if options.quick { "loopback" } else { "lab" });
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
        self.progress = Progress::new(self.estimate(&columns), self.options.silent);
        self.columns(&Place::Loopback, ("loopback", 0), &columns)
    }

    fn lab(&mut self) -> Result<(), Trouble> {
        let plans = [
            (CaseKind::Transfers, Shape::Gigabit),
            (CaseKind::Unshaped, Shape::Unshaped),
        ];
        let plans: Vec<_> = plans
            .into_iter()
            .filter(|(kind, _)| self.options.wants(*kind))
            .map(|(_, shape)| (shape, self.options.columns(self.peers, Some(shape))))
            .collect();
        let planned = plans
            .iter()
            .map(|(_, columns)| self.estimate(columns))
            .sum();
        self.progress = Progress::new(planned, self.options.silent);
        for (shape, columns) in plans {
            let place = Place::Lab(Lab::new(shape)?);
            self.columns(&place, (shape.name(), shape.bandwidth_mbit()), &columns)?;
        }
        Ok(())
    }

    fn estimate(&self, columns: &[Column]) -> f64 {
        columns
            .iter()
            .map(|column| self.cell_estimate(column) * column.sizes.len() as f64)
            .sum()
    }

    /// Seconds that a cell will take, roughly: what is lost costs other protocols a timeout or two.
    fn cell_estimate(&self, column: &Column) -> f64 {
        let ours = self.peers[column.peer].is_ours();
        let each = match column.loss.packets() {
            0 => 0.006,
            _ if ours => 0.008,
            1 => 0.1,
            _ => 0.3,
        };
        (self.options.iterations() as f64 * each).min(self.options.cell_limit.as_secs_f64()) + 0.1
    }

    fn columns(
        &mut self,
        place: &Place,
        (network, bandwidth_mbit): (&str, u32),
        columns: &[Column],
    ) -> Result<(), Trouble> {
        let bench = Bench {
            place,
            network,
            bandwidth_mbit,
            stop: &self.options.stop,
        };
        for column in columns {
            self.column(&bench, column)?;
        }
        Ok(())
    }

    fn column(&mut self, bench: &Bench<'_>, column: &Column) -> Result<(), Trouble> {
        let peer = &self.peers[column.peer];
        let largest = column.sizes.iter().copied().max().unwrap_or(0);
        let mut session = Session::new(bench, peer, column.many, largest);
        let estimate = self.cell_estimate(column);
        for &size in &column.sizes {
            let what = format!("{} {} B, lost: {}", peer.name, size, column.loss.name());
            self.progress.begins(&what);
            if column.many {
                session = Session::new(bench, peer, true, size);
            }
            let cell = session.cell(&Case {
                size,
                loss: column.loss,
                iterations: self.options.iterations(),
                limit: self.options.cell_limit,
            })?;
            self.progress.ends(estimate);
            self.note(peer, session.told(), cell.error.as_deref());
            self.run.transfers.push(cell);
        }
        Ok(())
    }

    fn note(&mut self, peer: &Peer, told: Option<(&str, &str)>, error: Option<&str>) {
        let (version, settings) = told.unwrap_or_default();
        let error = error.filter(|_| told.is_none());
        self.run.note_peer(PeerTold {
            name: peer.name.clone(),
            version: version.into(),
            settings: settings.into(),
            networks: peer.networks,
            error: error.map(Into::into),
        });
    }
}
