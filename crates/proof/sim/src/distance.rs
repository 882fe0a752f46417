//! How far apart everybody is.

/// How much longer ways take than between neighbours, nanoseconds, each direction.
#[derive(Clone, Debug, Default)]
pub struct Distances {
    /// Between two ends, on every network; nodes are numbered first, then reference points.
    pub between: Vec<(usize, usize, u64)>,
    /// Between any node and any field device.
    pub field: u64,
}
