//! What the plant saw, and whether it keeps the promises of every failover.

use std::collections::BTreeMap;
use std::path::Path;

use super::json_lines;

/// One write that came to the plant.
#[derive(Clone, Debug)]
pub struct Write {
    pub at_ns: u64,
    pub writer: u64,
    pub epoch: u64,
    pub cycle: u64,
    pub accepted: bool,
}

/// The writes in the plant's log, in order.
#[derive(Clone, Debug)]
pub struct Writes(pub Vec<Write>);

impl Writes {
    pub fn read(log: &Path) -> Self {
        let lines = json_lines(log);
        let writes = lines.iter().filter(|line| line["type"] == "write");
        let number = |line: &serde_json::Value, key: &str| line[key].as_u64().unwrap();
        Self(
            writes
                .map(|line| Write {
                    at_ns: number(line, "at_ns"),
                    writer: number(line, "writer"),
                    epoch: number(line, "epoch"),
                    cycle: number(line, "cycle"),
                    accepted: line["accepted"] == true,
                })
                .collect(),
        )
    }

    pub fn accepted(&self) -> impl Iterator<Item = &Write> {
        self.0.iter().filter(|write| write.accepted)
    }

    /// Never two writers in one epoch, and no output of an epoch that was over.
    pub fn judge_epochs(&self) {
        let mut writers = BTreeMap::new();
        let mut last: Option<&Write> = None;
        for write in self.accepted() {
            let writer = *writers.entry(write.epoch).or_insert(write.writer);
            assert_eq!(writer, write.writer, "two writers in one epoch: {write:?}");
            if let Some(last) = last {
                assert!(write.epoch >= last.epoch, "{write:?} came after {last:?}");
            }
            last = Some(write);
        }
        assert!(last.is_some(), "nothing was written at all");
    }

    /// Besides, no output of an earlier cycle than the last one, over all failovers.
    pub fn judge(&self) {
        self.judge_epochs();
        let accepted: Vec<_> = self.accepted().collect();
        for pair in accepted.windows(2) {
            assert!(
                pair[1].cycle >= pair[0].cycle,
                "{:?} came after {:?}",
                pair[1],
                pair[0]
            );
        }
    }
}
