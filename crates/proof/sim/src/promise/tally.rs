//! What came of many sets.

use bumpless_plan::demand::Condition;
use serde::Serialize;

use super::draw::FULLNESS;
use super::judge::{Judged, Verdict};

/// Thousandths in a row.
const STEP: u64 = 100;

/// The sets whose fullest resource is about so full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Row {
    /// From this fullness on, thousandths.
    pub from: u64,
    /// Sets.
    pub sets: u64,
    /// Of which the plan admits.
    pub admitted: u64,
    /// Of which missed a deadline.
    pub broken: u64,
    /// Of which some state was in time but took longer than the plan's longest time.
    pub over: u64,
    /// Of all, those that the plan refuses for want of time.
    pub refused: u64,
    /// Of which a miss was looked for.
    pub searched: u64,
    /// And found.
    pub found: u64,
}

/// What came of many sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// By fullness.
    pub rows: Vec<Row>,
    /// Of the searched sets, those of which more is asked in the long run than there is, and of how many a miss was
    /// found.
    pub by_utilisation: (u64, u64),
    /// The same of sets with a window that is too short, or too close to full to be decided.
    pub by_demand: (u64, u64),
    /// States of admitted sets.
    pub states: u64,
    /// Of the admitted sets, those in which nodes were flooded.
    pub flooded: u64,
}

impl Default for Tally {
    fn default() -> Self {
        let row = |from| Row {
            from,
            ..Row::default()
        };
        Self {
            rows: FULLNESS.step_by(STEP as usize).map(row).collect(),
            by_utilisation: (0, 0),
            by_demand: (0, 0),
            states: 0,
            flooded: 0,
        }
    }
}

impl Tally {
    /// Adds a set.
    pub fn add(&mut self, judged: &Judged) {
        let at = (judged.fullness.saturating_sub(FULLNESS.start) / STEP) as usize;
        let last = self.rows.len() - 1;
        let row = &mut self.rows[at.min(last)];
        row.sets += 1;
        match &judged.verdict {
            Verdict::Admitted {
                states,
                missed,
                over,
                ..
            } => {
                row.over += u64::from(*over > 0);
                row.admitted += 1;
                row.broken += u64::from(*missed);
                self.states += states;
                self.flooded += u64::from(judged.flood_per_s > 0);
            }
            Verdict::Refused { condition, found } => {
                row.refused += 1;
                row.searched += u64::from(found.is_some());
                row.found += u64::from(*found == Some(true));
                let pair = match condition {
                    Condition::Utilisation => &mut self.by_utilisation,
                    Condition::Demand | Condition::Undecidable => &mut self.by_demand,
                };
                pair.0 += u64::from(found.is_some());
                pair.1 += u64::from(*found == Some(true));
            }
            Verdict::Otherwise => {}
        }
    }

    /// The sum of all rows.
    pub fn all(&self) -> Row {
        let mut all = Row {
            from: FULLNESS.start,
            ..Row::default()
        };
        for row in &self.rows {
            all.sets += row.sets;
            all.admitted += row.admitted;
            all.broken += row.broken;
            all.over += row.over;
            all.refused += row.refused;
            all.searched += row.searched;
            all.found += row.found;
        }
        all
    }
}
