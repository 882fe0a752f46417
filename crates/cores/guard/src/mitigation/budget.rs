//! Budget mitigation: the critical task's earliness is the driver's budget.

use bumpless_base::{Duration, Instant};

use super::policy::{Gates, Mitigation};
use crate::metric::{Earliness, Fill};

/// The driver may spend what the critical task had left; then the network is silent until the task reports again.
///
/// The driver's own time is charged and not that of interrupts, as in the dissertation. Both tasks have the same priority.
#[derive(Clone, Debug)]
pub struct Budget {
    /// `None` before the first report: as much as it needs.
    left: Option<Duration>,
}

impl Budget {
    /// A policy that has heard no report.
    pub const fn new() -> Self {
        Self { left: None }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new()
    }
}

impl Mitigation for Budget {
    fn handle_processed(&mut self, _now: Instant, spent: Duration, _fill: Fill) {
        self.left = self.left.map(|left| left - spent);
    }

    fn handle_completion(&mut self, _now: Instant, earliness: Earliness) {
        self.left = Some(earliness.left());
    }

    fn gates(&self) -> Gates {
        match self.left {
            Some(Duration::ZERO) => Gates::SHUT,
            _ => Gates::OPEN,
        }
    }
}
