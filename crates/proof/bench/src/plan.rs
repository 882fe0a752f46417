//! What is measured: which peers, cases, sizes and losses.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::network::Shape;
use crate::paper;
use crate::run::cyclic::SteadyLoss;
use crate::run::loss::LossCase;
use crate::run::pair::Peer;

/// Iterations of a transfer, as in the paper.
pub const ITERATIONS: usize = 100;
/// Programs of `bench/peers` that use both networks.
pub const MULTIPATH: [&str; 3] = ["tquic", "tquic-tuned", "cyclonedds-tuned"];
/// No transfer of a cell is begun after so long.
pub const CELL_LIMIT: Duration = Duration::from_secs(20);
/// The same where the first or the last packet is lost: a hundred transfers that take three seconds each have time,
/// as a protocol that waits for its timer of a second does.
pub const CELL_LIMIT_OF_ENDS: Duration = Duration::from_secs(300);

/// What the user wants measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `bumpless` program, which runs the peers of this workspace.
    pub program: PathBuf,
    /// Loopback, without root, in under three minutes.
    pub quick: bool,
    /// Only these peers; all if empty.
    pub peers: Vec<String>,
    /// Where programs of other peers lie.
    pub peers_dir: Option<PathBuf>,
    /// Those of them that use both networks; `None`: those of [`MULTIPATH`] that are there.
    pub multipath: Option<Vec<String>>,
    /// Only these cases; all if empty.
    pub cases: Vec<CaseKind>,
    /// Sizes of transfers, bytes; those of table 13 if empty.
    pub sizes: Vec<usize>,
    /// Losses of transfers; all if empty.
    pub losses: Vec<LossCase>,
    /// Losses beside which many applications run; all of [`SteadyLoss::LOSSY`] if empty.
    pub steady_losses: Vec<SteadyLoss>,
    /// Only with one connection for all (`false`) or one for each (`true`); both if `None`.
    pub many: Option<bool>,
    /// Transfers in each cell that no stall touches; [`ITERATIONS`] if `None`.
    pub iterations: Option<usize>,
    /// No transfer of a cell is begun after so long; [`CELL_LIMIT`] and [`CELL_LIMIT_OF_ENDS`] if `None`.
    pub cell_limit: Option<Duration>,
    /// How long each cyclic run lasts.
    pub span: Duration,
    /// How long processors may take to wake, microseconds; as the computer is if `None`.
    pub wake_latency: Option<u16>,
    /// Tell no progress.
    pub silent: bool,
    /// Set when the user wants to stop.
    pub stop: Arc<AtomicBool>,
}

/// A family of measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CaseKind {
    /// Table 13: sizes by losses over 1 Gbit/s.
    Transfers,
    /// Table 20: eleven applications under loss.
    Applications,
    /// The same with a load that grows until the first miss.
    Ramp,
    /// One network cut in the middle of a transfer.
    Cut,
    /// Processor time and memory.
    Cost,
    /// From 1 to 1,000 channels.
    Channels,
    /// Sizes without loss over networks as fast as the machine.
    Unshaped,
}

impl CaseKind {
    /// All of them, in the order in which they are measured.
    pub const ALL: [Self; 7] = [
        Self::Transfers,
        Self::Applications,
        Self::Ramp,
        Self::Cut,
        Self::Cost,
        Self::Channels,
        Self::Unshaped,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transfers => "transfers",
            Self::Applications => "applications",
            Self::Ramp => "ramp",
            Self::Cut => "cut",
            Self::Cost => "cost",
            Self::Channels => "channels",
            Self::Unshaped => "unshaped",
        }
    }
}

/// Transfers of one peer that share a connection, or none of which does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Position among the peers.
    pub peer: usize,
    /// Whether each size has a connection of its own.
    pub many: bool,
    /// What is lost.
    pub loss: LossCase,
    /// The sizes, bytes.
    pub sizes: Vec<usize>,
}

impl Options {
    /// The peers that are wanted.
    ///
    /// # Errors
    /// A name that nobody has, or a directory that cannot be read.
    pub fn chosen_peers(&self) -> Result<Vec<Peer>, String> {
        let mut known = Peer::own(&self.program);
        if let Some(directory) = &self.peers_dir {
            let usual = || MULTIPATH.map(String::from).to_vec();
            known.extend(Peer::others(
                directory,
                &self.multipath.clone().unwrap_or_else(usual),
            )?);
        }
        let names: Vec<String> = known.iter().map(|peer| peer.name.clone()).collect();
        let mut asked = self.peers.iter().chain(self.multipath.iter().flatten());
        if let Some(unknown) = asked.find(|name| !names.contains(name)) {
            return Err(format!(
                "no peer is called '{unknown}'; there are {}. --peers-dir names a directory with more",
                names.join(", ")
            ));
        }
        if self.quick && self.peers.is_empty() {
            // One computer has one network: two copies over it tell nothing.
            known.retain(|peer| {
                !matches!(peer.name.as_str(), "transfer-replicate" | "transfer-spread")
            });
        }
        known.retain(|peer| match self.peers.is_empty() {
            true => !peer.is_on_demand(),
            false => self.peers.contains(&peer.name),
        });
        Ok(known)
    }

    /// Whether cases of `kind` are wanted.
    pub fn wants(&self, kind: CaseKind) -> bool {
        self.cases.is_empty() || self.cases.contains(&kind)
    }

    /// The kinds of connections with which `peer` is measured; ours has none and is measured once.
    pub fn connections(&self, peer: &Peer) -> &'static [bool] {
        match self.many {
            _ if peer.is_ours() => &[false],
            Some(false) => &[false],
            Some(true) => &[true],
            None => &[false, true],
        }
    }

    /// The losses beside which many applications run.
    pub fn steady_losses(&self) -> &[SteadyLoss] {
        match self.steady_losses.is_empty() {
            true => &SteadyLoss::LOSSY,
            false => &self.steady_losses,
        }
    }

    /// Transfers in each cell that no stall touches.
    pub fn iterations(&self) -> usize {
        self.iterations.unwrap_or(ITERATIONS)
    }

    /// How long transfers of a cell are begun.
    pub fn cell_limit(&self, loss: LossCase) -> Duration {
        self.cell_limit.unwrap_or(match loss {
            LossCase::First | LossCase::Last => CELL_LIMIT_OF_ENDS,
            _ => CELL_LIMIT,
        })
    }

    /// The columns of the tables of transfers: with loss only where packets travel one by one, and with
    /// each size on a connection of its own only over 1 Gbit/s.
    pub fn columns(&self, peers: &[Peer], shape: Option<Shape>) -> Vec<Column> {
        let lossy = shape == Some(Shape::GigabitByPacket);
        let both = lossy || shape == Some(Shape::Gigabit);
        let losses = LossCase::ALL.into_iter().filter(|loss| {
            (self.losses.is_empty() || self.losses.contains(loss))
                && lossy != (*loss == LossCase::None)
        });
        let mut columns = Vec::new();
        for loss in losses {
            for (peer, spec) in peers.iter().enumerate() {
                let connections = if both {
                    self.connections(spec)
                } else {
                    &[false]
                };
                for &many in connections {
                    let sizes = self.sizes_for(loss, shape);
                    if !sizes.is_empty() {
                        columns.push(Column {
                            peer,
                            many,
                            loss,
                            sizes,
                        });
                    }
                }
            }
        }
        columns
    }

    fn sizes_for(&self, loss: LossCase, shape: Option<Shape>) -> Vec<usize> {
        let mut sizes = self.sizes.clone();
        if sizes.is_empty() {
            sizes = paper::SIZES.to_vec();
            if shape == Some(Shape::Unshaped) {
                sizes.push(10 << 20);
            }
        }
        sizes.retain(|&size| loss.applies_to(size));
        sizes
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Options that want everything.
    pub(crate) fn options() -> Options {
        Options {
            program: "bumpless".into(),
            quick: false,
            peers: Vec::new(),
            peers_dir: None,
            multipath: None,
            cases: Vec::new(),
            sizes: Vec::new(),
            losses: Vec::new(),
            steady_losses: Vec::new(),
            many: None,
            iterations: None,
            cell_limit: None,
            span: Duration::from_secs(1),
            wake_latency: None,
            silent: true,
            stop: Arc::default(),
        }
    }

    #[test]
    fn the_cases_of_table_13_are_all_there() {
        let options = options();
        let peers = options.chosen_peers().unwrap();
        let shapes = [Shape::Gigabit, Shape::GigabitByPacket];
        let columns = shapes.map(|shape| options.columns(&peers, Some(shape)));
        let columns = columns.concat();
        let cells = |peer: &str, many: bool| -> usize {
            let of = |column: &&Column| peers[column.peer].name == peer && column.many == many;
            columns
                .iter()
                .filter(of)
                .map(|column| column.sizes.len())
                .sum()
        };
        // 13 sizes by no, first, last and random loss, 7 of them by three losses in the middle.
        assert_eq!(cells("tcp", false), 13 * 4 + 7 * 3);
        assert_eq!(cells("tcp", true), 73);
        assert_eq!((cells("transfer", false), cells("transfer", true)), (73, 0));
        let unshaped = options.columns(&peers, Some(Shape::Unshaped));
        assert!(
            unshaped
                .iter()
                .all(|column| column.loss == LossCase::None && column.sizes.len() == 14)
        );
    }

    #[test]
    fn a_hundred_transfers_that_lose_an_end_fit_even_a_timer_of_a_second() {
        let mut options = options();
        let hundred = Duration::from_millis(1100) * ITERATIONS as u32;
        for loss in [LossCase::First, LossCase::Last] {
            // Twice: as many again where a stall touched each.
            assert!(options.cell_limit(loss) >= 2 * hundred);
        }
        assert_eq!(options.cell_limit(LossCase::Middle(10)), CELL_LIMIT);
        options.cell_limit = Some(Duration::from_secs(2));
        assert_eq!(options.cell_limit(LossCase::Last), Duration::from_secs(2));
    }

    #[test]
    fn an_unknown_peer_is_refused_with_the_known_ones() {
        let mut options = options();
        options.peers = vec!["zenoh".into()];
        let refusal = options.chosen_peers().unwrap_err();
        assert!(
            refusal.contains("zenoh") && refusal.contains("tcp-tuned"),
            "{refusal}"
        );
    }
}
